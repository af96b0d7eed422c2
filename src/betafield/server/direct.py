"""A shortcut for asks, outcomes and told trials, past the framework to the same functions.

The framework takes longer to find the function that answers than the function itself takes, and
most requests are of these three kinds. A plain request (JSON, a token in its header, a study in
memory, a valid body) is passed directly to its route's function. Any other request, and every
invalid one, goes through the framework. The answer is the same either way.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from fastapi import Response
from pydantic import BaseModel

from betafield.server import tokens
from betafield.server.access import RUNNING, Hub, admitted
from betafield.server.problems import Problem
from betafield.server.routes import trials
from betafield.server.routes.answering import explained
from betafield.server.schemas import Ask, Outcome, ToldTrial
from betafield.server.security import again
from betafield.server.study import Study
from betafield.server.tokens import Holder

_PATH = re.compile(
    r"/studies/(?P<study>[A-Za-z0-9_-]{1,64})/"
    r"(?:(?P<asks>asks)|trials(?:/(?P<trial>[0-9]{1,15})/outcome)?)"
)
_ROUTES = {getattr(each, "endpoint", None): each for each in trials.router.routes}
_HEADERS = (b"authorization", b"content-type", b"idempotency-key")


class Plain(NamedTuple):
    """A request that its route's function can answer directly."""

    endpoint: Any
    holder: Holder
    study: Study
    body: BaseModel
    trial: int | None

    async def answer(self) -> Response:
        """Return the answer of the route's function."""
        given = (self.study,) if self.trial is None else (self.study, self.trial)
        answer: Response = await self.endpoint(*given, self.body)
        return answer


class Direct:
    """Answers plain requests, and passes on all others.

    Parameters
    ----------
    app : ASGI application
        The framework.
    hub : Hub
    """

    def __init__(self, app: Any, hub: Hub) -> None:
        self._app, self._hub = app, hub

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["query_string"]:
            await self._app(scope, receive, send)
            return
        message = await receive()  # the whole body, which `Guard` has already read
        plain = self._plain(scope, message.get("body", b""))
        if plain is None:
            await self._app(scope, again(message, receive), send)
            return
        scope["route"] = _ROUTES[plain.endpoint]
        try:
            admitted(self._hub, scope, plain.holder)
            tokens.require(plain.holder, plain.study.name, RUNNING)
            answer = await plain.answer()
        except Problem as problem:
            answer = explained(scope["path"], problem)
        await answer(scope, receive, send)

    def _plain(self, scope: Any, body: bytes) -> Plain | None:
        """Return the request if it is plain; None to leave it to the framework."""
        found = _PATH.fullmatch(scope["path"])
        headers = {name: value for name, value in scope["headers"] if name in _HEADERS}
        if found is None or b"idempotency-key" in headers:
            return None
        if headers.get(b"content-type") != b"application/json":
            return None
        study = self._hub.studies.known(found["study"])
        kind, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        holder = self._hub.tokens.holder(token) if kind == "Bearer" else None
        endpoint, schema = _endpoint(found)
        valid = None if holder is None or study is None else _valid(schema, body)
        if holder is None or study is None or valid is None:
            return None
        trial = None if found["trial"] is None else int(found["trial"])
        return Plain(endpoint, holder, study, valid, trial)


def _endpoint(found: re.Match[str]) -> tuple[Any, type[BaseModel]]:
    """Return the function that answers a path, and the schema of its body."""
    if found["trial"] is not None:
        return trials.outcome, Outcome
    return (trials.ask, Ask) if found["asks"] else (trials.tell, ToldTrial)


def _valid(schema: type[BaseModel], body: bytes) -> BaseModel | None:
    """Return a valid body; None if it is invalid, which the framework then explains."""
    try:
        return schema.model_validate(json.loads(body))
    except (ValueError, RecursionError):
        return None
