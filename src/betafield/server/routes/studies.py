"""Studies: creating, listing, stopping and resuming them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from betafield import checks
from betafield.server import definitions
from betafield.server.access import Authenticated, Operator, Owned, Shared, Viewed
from betafield.server.definitions import Definition
from betafield.server.problems import Problem, refused
from betafield.server.routes.answering import answered
from betafield.server.schemas import MEANT, TAGS, NewStudy

router = APIRouter(tags=["studies"])
YAML = ("application/yaml", "application/x-yaml", "text/yaml")
_NEW_STUDY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": NewStudy.model_json_schema()},
            "application/yaml": {"schema": {"type": "string"}},
        },
    }
}


@router.post("/studies", status_code=201, openapi_extra=_NEW_STUDY)
async def create(request: Request, hub: Shared, _: Operator) -> Response:
    """Create a study from JSON or YAML; its tokens are shown only in this answer."""
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    told = await run_in_threadpool(_created, hub, body, kind in YAML)
    await run_in_threadpool(hub.tokens.refresh)
    return answered(told, 201)


def _created(hub: Any, body: bytes, is_yaml: bool) -> dict[str, Any]:
    try:
        values = definitions.parsed(body.decode("utf-8"), is_yaml)
        checked = NewStudy.model_validate(values).model_dump(exclude_none=True)
        definition = Definition.of(checked)
    except ValidationError as error:
        raise Problem(422, said(error.errors())) from error
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise refused(error) from error
    made: dict[str, Any] = hub.studies.create(definition)
    return made


_NO_OBJECT = (
    "body: it is not a JSON object; send one, with the header Content-Type: application/json"
)


def said(errors: Any) -> str:
    """Return one error of pydantic in one sentence; a misspelt name before the one it lacks.

    Examples
    --------
    >>> said([{"type": "less_than_equal", "loc": ("body", "n"), "input": 2000,
    ...        "msg": "Input should be less than or equal to 1000"}])
    'n: found 2000; it should be less than or equal to 1000'
    """
    first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    kind, hidden = first["type"], ("body", "query", "path", *TAGS)
    if kind == "json_invalid":
        return f"body: it is not JSON, from character {first['loc'][-1]} on"
    where = ", ".join(str(each) for each in first["loc"] if each not in hidden)
    if not where:
        return _NO_OBJECT
    return f"{where[:200]}: {_complaint(kind, first)}"


def _complaint(kind: str, error: Any) -> str:
    """Return what is wrong with a field."""
    if kind == "missing":
        return "found none; it is needed"
    if kind == "extra_forbidden":
        return "there is no field of this name; /docs lists all routes, /openapi.json their fields"
    needed = "true or false is needed" if kind == "bool_type" else None
    needed = needed or MEANT.get(error.get("ctx", {}).get("pattern")) or error["msg"]
    return f"found {checks.spelled(error['input'])}; {needed.replace('Input should', 'it should')}"


@router.get("/studies")
async def listed(hub: Shared, holder: Authenticated) -> Response:
    """List the studies that a token may see."""
    if holder.role == "run":
        raise Problem(403, "token: found one to run; this needs owner or view")
    return answered(await run_in_threadpool(hub.studies.summaries, holder.study))


@router.get("/studies/{study}")
async def definition(study: Viewed) -> Response:
    """Return the definition of a study."""
    return answered(study.definition.values)


@router.post("/studies/{study}/stop")
async def stop(study: Owned) -> Response:
    """Stop a study: no more trials are assigned, but outcomes of pending ones are accepted."""
    return answered(await study.changed(lambda state: state.stop(True)))


@router.post("/studies/{study}/resume")
async def resume(study: Owned) -> Response:
    """Resume a stopped study."""
    return answered(await study.changed(lambda state: state.stop(False)))
