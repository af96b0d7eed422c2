"""The application: its routes, and the layers before them."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from betafield import __version__
from betafield.server.access import Hub
from betafield.server.direct import Direct
from betafield.server.logs import Log
from betafield.server.problems import MEDIA_TYPE, Problem, failure
from betafield.server.routes import knowing, operating, pages, studies, trials
from betafield.server.routes.answering import explained
from betafield.server.routes.studies import said
from betafield.server.security import LOOPBACK, Bucket, Guard
from betafield.server.storage import Store
from betafield.server.studies import Studies
from betafield.server.tokens import Tokens

# Requests per second and token, and wrong tokens per second and address.
RATE, WRONG = 1000.0, 20.0
PROBLEM: dict[str, Any] = {
    "description": "A problem (RFC 9457)",
    "content": {
        MEDIA_TYPE: {
            "schema": {
                "type": "object",
                "required": ["type", "title", "status", "detail", "instance"],
                "properties": {
                    **{
                        name: {"type": "string"} for name in ("type", "title", "detail", "instance")
                    },
                    "status": {"type": "integer"},
                },
            }
        }
    },
}
STATUSES = (400, 401, 403, 404, 405, 408, 409, 413, 421, 422, 429, 503)


class App:
    """The application that a server runs, and the hub that its routes share.

    Parameters
    ----------
    hub : Hub
    entered : ASGI application
        The outermost layer: the log, the guard, the shortcut, then the routes. These layers are
        around the framework rather than within it, because otherwise requests that take the
        shortcut would still pass through the framework.
    """

    def __init__(self, hub: Hub, entered: Any) -> None:
        self.hub, self._entered = hub, entered

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        await self._entered(scope, receive, send)


def create_app(
    store: Store,
    token: str,
    *,
    hosts: Sequence[str] = LOOPBACK,
    origins: Sequence[str] = (),
    rate: float = RATE,
) -> App:
    """Return the application that serves a database.

    Parameters
    ----------
    store : Store
        The database, which is closed with the application.
    token : str
        The server's own token.
    hosts : list of str
        Host names under which it may be reached.
    origins : list of str
        Sites whose pages may use it.
    rate : float
        Most requests per second and token.
    """
    known = Tokens(store, token)
    hub = Hub(Studies(store), known, Bucket(rate, 2 * rate), Bucket(WRONG, 10 * WRONG))

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        hub.is_closing = True
        hub.studies.close()
        known.close()
        store.close()

    app = FastAPI(
        title="betafield",
        version=__version__,
        description="Ask where to test next, tell what happened; see docs/server.md.",
        docs_url=None,
        openapi_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=dict.fromkeys(STATUSES, PROBLEM),
    )
    app.state.hub = hub
    for routes in (operating, studies, trials, knowing, pages):
        app.include_router(routes.router)
    _explain(app)
    return App(hub, Log(Guard(_crossing(Direct(app, hub), origins), hosts), hub.metrics))


def _crossing(app: Any, origins: Sequence[str]) -> Any:
    """Return an application that pages of these other sites may use."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=list(origins),
        allow_methods=["GET", "POST"],
        allow_headers=["authorization", "content-type", "idempotency-key"],
    )


def _explain(app: FastAPI) -> None:
    """Answer every error with a problem document."""

    async def problem(request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)
        return explained(request.url.path, error)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return explained(request.url.path, Problem(422, said(error.errors())))

    async def other(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = dict(error.headers or {})
        detail = str(error.detail)
        if error.status_code == 404:
            detail = f"path: found {request.url.path[:200]}; /docs lists all routes"
        if error.status_code == 405:
            detail = f"method: found {request.method}; allowed here: {headers.get('Allow', 'none')}"
        return explained(request.url.path, Problem(error.status_code, detail, headers))

    async def failed(request: Request, _: Exception) -> Response:
        return explained(request.url.path, failure())  # `Log` logs the error itself

    app.add_exception_handler(Exception, failed)
    app.add_exception_handler(Problem, problem)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, other)
