"""Pages for people: the list of studies, the dashboard, the example, the reference of routes."""

from __future__ import annotations

from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from starlette.concurrency import run_in_threadpool

from betafield.server import tokens
from betafield.server.access import (
    COOKIE,
    Shared,
    StudyName,
    given_token,
    holder_of,
    hub_of,
)
from betafield.server.problems import missing
from betafield.server.routes.answering import answered

router = APIRouter(tags=["pages"], default_response_class=HTMLResponse)
# A page may load from and connect to its own server only. Inline styles are allowed because plotly
# adds some to what it draws, which a browser would otherwise refuse.
POLICY = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
KINDS = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
PLOTLY = "plotly.min.js"


def _page(text: str) -> HTMLResponse:
    return HTMLResponse(text, headers={"content-security-policy": POLICY})


def _exchanged(request: Request, token: str, path: str) -> Response:
    """Return a redirect without the token, which becomes a cookie that scripts cannot read."""
    answer = RedirectResponse(request.url.path, 303)
    is_secure = request.url.scheme == "https"
    answer.set_cookie(COOKIE, token, path=path, httponly=True, samesite="strict", secure=is_secure)
    return answer


@router.get("/")
async def index(request: Request, hub: Shared, token: str | None = None) -> Response:
    """List the studies of the server, for the holder of the server's token."""
    holder = await holder_of(request, token or given_token(request))
    tokens.require(holder, None, ("owner",))
    if token is not None:
        return _exchanged(request, token, "/")
    told = await run_in_threadpool(hub.studies.summaries)
    from betafield.server import pages

    return _page(pages.index(told))


@router.get("/studies/{study}/dashboard")
async def dashboard(request: Request, study: StudyName, token: str | None = None) -> Response:
    """Show a study as it grows; a token in the link becomes a cookie."""
    holder = await holder_of(request, token or given_token(request))
    tokens.require(holder, study, ("owner", "view"))
    found = await run_in_threadpool(hub_of(request).studies.find, study)
    if token is not None:
        return _exchanged(request, token, f"/studies/{study}")
    from betafield.server import pages

    return _page(pages.dashboard(found.name, found.definition.values, holder.role))


@router.get("/examples/two-alternatives")
async def example() -> Response:
    """Show an experiment with two alternatives that runs in a browser."""
    from betafield.server import pages

    return _page(pages.two_alternatives())


@router.get("/static/{name}", response_class=FileResponse)
async def static(name: str) -> Response:
    """Return a script or a style sheet."""
    found = _plotly() if name == PLOTLY else Path(str(_static() / name))
    is_known = name == PLOTLY or name in {each.name for each in _static().iterdir()}
    if not (is_known and found is not None and found.suffix in KINDS):
        raise missing("file: there is no file of this name")
    headers = {"cache-control": "max-age=300"}
    return FileResponse(found, media_type=KINDS[found.suffix], headers=headers)


def _static() -> Any:
    return resources.files("betafield.server").joinpath("static")


def _plotly() -> Path | None:
    """Return plotly's script, which is part of its package."""
    found = find_spec("plotly")
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / "package_data" / PLOTLY
    return path if path.is_file() else None


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """Return the description of all routes."""
    return answered(request.app.openapi())


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """Show all routes; nothing is loaded from elsewhere."""
    from betafield.server import pages

    described = [
        (method.upper(), path, about.get("description", about.get("summary", "")))
        for path, methods in request.app.openapi()["paths"].items()
        for method, about in methods.items()
    ]
    return _page(pages.routes(described))
