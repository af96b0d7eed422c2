"""Authentication: who holds the token of a request, in a header or the dashboard's cookie."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Depends, Path, Request
from starlette.concurrency import run_in_threadpool

from betafield.server import tokens
from betafield.server.metrics import Metrics
from betafield.server.problems import Problem
from betafield.server.schemas import NAME
from betafield.server.security import Bucket
from betafield.server.studies import Studies
from betafield.server.study import Study
from betafield.server.tokens import Holder, Tokens

COOKIE = "betafield"
# Roles that may ask and tell.
RUNNING = ("owner", "run")
CHALLENGE = {"WWW-Authenticate": "Bearer"}
StudyName = Annotated[str, Path(pattern=NAME)]


@dataclass
class Hub:
    """What all routes share."""

    studies: Studies
    tokens: Tokens
    rate: Bucket
    wrong: Bucket
    metrics: Metrics = field(default_factory=Metrics)
    is_closing: bool = False
    # When the database was last known to be writable.
    well_at: float = -math.inf


def hub_of(request: Request) -> Hub:
    """Return the hub that the routes of an application share."""
    hub: Hub = request.app.state.hub
    return hub


def given_token(request: Request) -> str | None:
    """Return the token of a request, in its header or in a cookie."""
    header = request.headers.get("authorization")
    if header is not None:
        kind, _, token = header.partition(" ")
        return token.strip() if kind.lower() == "bearer" else ""
    cookie = request.cookies.get(COOKIE)
    if cookie is not None and request.method not in ("GET", "HEAD"):
        _require_own_page(request)
    return cookie


def _require_own_page(request: Request) -> None:
    """Raise for a cross-site request, whose cookie the browser added by itself."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "same-origin")
    own = request.headers.get("host", "").lower()
    if site != "same-origin" or (origin is not None and origin.partition("://")[2].lower() != own):
        raise Problem(403, f"Origin: found {origin!r}, which is another site")


async def holder_of(request: Request, token: str | None) -> Holder:
    """Return the holder of a token; raise if it is invalid or there were too many requests."""
    hub = hub_of(request)
    holder = None if not token else hub.tokens.holder(token)
    if holder is None:
        hub.wrong.require(request.client.host if request.client else "")
        # Another process may have created it since the tokens were last read.
        holder = None if not token else await run_in_threadpool(hub.tokens.looked_up, token)
    if holder is None:
        what = "found none" if not token else "found one that is not valid"
        raise Problem(401, f"token: {what}; send the header Authorization: Bearer …", CHALLENGE)
    admitted(hub, request.scope, holder)
    return holder


def admitted(hub: Hub, scope: Any, holder: Holder) -> None:
    """Count a request of a token's holder, and note it for the log; raise if there are too many."""
    hub.rate.require(holder.id)
    scope.setdefault("state", {})["token_id"] = holder.id


async def authenticated(request: Request) -> Holder:
    """Return the holder of the request's token."""
    return await holder_of(request, given_token(request))


async def _operator(holder: Annotated[Holder, Depends(authenticated)]) -> Holder:
    tokens.require(holder, None, ("owner",))
    return holder


def study_for(*roles: str) -> Callable[..., Awaitable[Study]]:
    """Return a dependency that finds the study of a route, for callers with one of these roles."""

    async def found(
        request: Request, study: StudyName, holder: Annotated[Holder, Depends(authenticated)]
    ) -> Study:
        tokens.require(holder, study, roles)
        studies = hub_of(request).studies
        known = studies.known(study)
        return await run_in_threadpool(studies.find, study) if known is None else known

    return found


Operator = Annotated[Holder, Depends(_operator)]
Authenticated = Annotated[Holder, Depends(authenticated)]
Owned = Annotated[Study, Depends(study_for("owner"))]
Run = Annotated[Study, Depends(study_for(*RUNNING))]
Viewed = Annotated[Study, Depends(study_for("owner", "view"))]
Shared = Annotated[Hub, Depends(hub_of)]
