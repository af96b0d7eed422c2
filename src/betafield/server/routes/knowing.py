"""The state of a study: status, posterior, model, and changes as they happen."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from betafield.decisions.experiment.learner import categories_of, has_learned
from betafield.decisions.space import OPTIONS, Space, beside
from betafield.server import points
from betafield.server.access import Hub, Shared, Viewed
from betafield.server.points import Asked
from betafield.server.problems import conflict, refused
from betafield.server.routes.answering import answered, plain
from betafield.server.study import Study

router = APIRouter(tags=["knowing"])
# Seconds between checks for changes, and between keep-alive messages.
LOOK, ALIVE = 0.25, 15.0


@router.get("/studies/{study}/status")
async def status(study: Viewed) -> Response:
    """Return the estimates, their uncertainty, and how many trials are still needed."""
    told = await run_in_threadpool(study.status)
    return answered({**told, "participants": study.connected()})


@router.get("/studies/{study}/posterior")
async def posterior(
    request: Request,
    study: Viewed,
    grid: Annotated[int | None, Query(ge=1, le=points.MOST)] = None,
    level: Annotated[float, Query(gt=0, lt=1, allow_inf_nan=False)] = 0.95,
) -> Response:
    """Return mean and interval at points (?x=0.1&x=0.2) or on a grid (?grid=101).

    A grid covers the ranges at every level; with ?grid=101&eye=left, only at this one.
    """
    space = study.definition.space
    query = request.query_params
    given = {name: query.getlist(beside(OPTIONS, name)) for name in space.names}
    try:
        where = await run_in_threadpool(points.asked, space, grid, given)
    except ValueError as error:
        raise refused(error) from error
    experiment = await study.changed(lambda state: state.replay.learned())
    return answered(await run_in_threadpool(_believed, experiment.model, where, space, level))


def _believed(model: Any, where: Asked, space: Space, level: float) -> dict[str, Any]:
    """Return the posterior at points, whose levels are given by name."""
    listed = [space.values(row) for row in where.rows.tolist()]
    told = {"points": listed, "grid": where.shape, "level": level}
    if not has_learned(model):
        none = [None] * len(listed)
        return {**told, "mean": none, "low": none, "high": none}
    field = model.field_
    believed = field.posterior(space.coded(where.rows, categories_of(field)))
    low, high = believed.interval(level)
    return {**told, "mean": believed.mean(), "low": low, "high": high}


@router.get("/studies/{study}/model")
async def model(study: Viewed) -> Response:
    """Return the model as the file that `SmoothBetaClassifier.load` reads."""
    experiment = await study.changed(lambda state: state.replay.learned())
    if not has_learned(experiment.model):
        raise conflict("model: it has learned nothing yet; tell a trial first")
    name = f'attachment; filename="{study.name}.beta"'
    body = await run_in_threadpool(_saved, experiment.model)
    headers = {"content-disposition": name}
    return Response(body, media_type="application/octet-stream", headers=headers)


def _saved(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.beta")
        model.save(path)
        return path.read_bytes()


@router.get("/studies/{study}/events")
async def events(request: Request, study: Viewed, hub: Shared) -> StreamingResponse:
    """Send an event `status` after every change, for as long as the client listens."""
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(
        _events(request, study, hub), media_type="text/event-stream", headers=headers
    )


async def _events(request: Request, study: Study, hub: Hub) -> AsyncIterator[str]:
    last, waited, looks = None, 0.0, 0
    while not (hub.is_closing or await request.is_disconnected()):
        if not hub.studies.store.is_file and looks % 4 == 0:  # other processes may have changed it
            await study.changed(lambda state: state.head)
        now = await _now(study) if last is None or study.head != last["head"] else last
        now = {**now, "participants": study.connected()}
        if now != last:
            yield f"event: status\ndata: {json.dumps(plain(now))}\n\n"
            last, waited = now, 0.0
        elif waited >= ALIVE:
            yield ": alive\n\n"
            waited = 0.0
        await asyncio.sleep(LOOK)
        waited, looks = waited + LOOK, looks + 1


async def _now(study: Study) -> dict[str, Any]:
    """Return the numbers of a study, and whether they are enough, as far as is known."""

    def told(state: Any) -> dict[str, Any]:
        return {**state.replay.counts, "head": state.head, "stopped": state.stopped}

    now: dict[str, Any] = await study.changed(told)
    known = study.known_status()
    by_goal = known is not None and bool(known["enough"])
    return {**now, "enough": study.definition.enough(now["told"], by_goal) or by_goal}
