"""What is known of a study: status, posterior, model, and changes as they happen."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from betafield.decisions.experiment.learner import has_learned
from betafield.server.access import Hub, Shared, Viewed
from betafield.server.problems import Problem, conflict
from betafield.server.routes.answering import answered, plain
from betafield.server.study import Study

router = APIRouter(tags=["knowing"])
# Points of a grid, or of a question, at the most.
MOST_POINTS = 10_000
# Points per feature of a grid, by the number of features.
USUAL = {1: 101, 2: 21}
# Seconds between looks at what has changed, and between signs of life.
LOOK, ALIVE = 0.25, 15.0


@router.get("/studies/{study}/status")
async def status(study: Viewed) -> Response:
    """Return what is known, how sure, and how many trials are still needed."""
    told = await run_in_threadpool(study.status)
    return answered({**told, "participants": study.connected()})


@router.get("/studies/{study}/posterior")
async def posterior(
    request: Request,
    study: Viewed,
    grid: Annotated[int | None, Query(ge=1, le=MOST_POINTS)] = None,
    level: Annotated[float, Query(gt=0, lt=1, allow_inf_nan=False)] = 0.95,
) -> Response:
    """Return mean and interval at points (?x=0.1&x=0.2) or on a grid (?grid=101)."""
    given = {name: request.query_params.getlist(name) for name in study.definition.space}
    points = await run_in_threadpool(_points, study, grid, given)
    experiment = await study.changed(lambda state: state.replay.learned())
    return answered(await run_in_threadpool(_believed, experiment.model, points, study, level))


def _points(study: Study, grid: int | None, given: dict[str, list[str]]) -> Any:
    """Return the points that are asked about, one row each."""
    space = study.definition.space
    if not any(given.values()):
        number = grid or USUAL.get(len(space)) or round(101 ** (1 / len(space)))
        if number ** len(space) > MOST_POINTS:
            raise Problem(422, f"grid: found {number} per feature; at most {MOST_POINTS} in all")
        axes = [np.linspace(low, high, number) for low, high in space.values()]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(space))
    lengths = {name: len(values) for name, values in given.items()}
    if len(set(lengths.values())) > 1:
        raise Problem(422, f"points: found {lengths}; every feature needs as many values")
    try:
        rows = np.array([[float(v) for v in values] for values in given.values()]).T
    except ValueError as error:
        raise Problem(422, f"points: {error}") from error
    low, high = np.array(list(space.values())).T
    if len(rows) > MOST_POINTS or not np.all((rows >= low) & (rows <= high)):
        raise Problem(422, f"points: at most {MOST_POINTS} within the bounds {space} are possible")
    return rows


def _believed(model: Any, points: Any, study: Study, level: float) -> dict[str, Any]:
    names = list(study.definition.space)
    told = [dict(zip(names, row, strict=True)) for row in points.tolist()]
    if not has_learned(model):
        none = [None] * len(told)
        return {"points": told, "level": level, "mean": none, "low": none, "high": none}
    believed = model.field_.posterior(points)
    low, high = believed.interval(level)
    return {"points": told, "level": level, "mean": believed.mean(), "low": low, "high": high}


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
    """Send an event `status` whenever something has happened, for as long as one listens."""
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(
        _events(request, study, hub), media_type="text/event-stream", headers=headers
    )


async def _events(request: Request, study: Study, hub: Hub) -> AsyncIterator[str]:
    last, waited, looks = None, 0.0, 0
    while not (hub.is_closing or await request.is_disconnected()):
        if not hub.studies.store.is_file and looks % 4 == 0:  # others may have changed it
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
    """Return the numbers of a study, and whether it is enough as far as that is known."""

    def told(state: Any) -> dict[str, Any]:
        return {**state.replay.counts, "head": state.head, "stopped": state.stopped}

    now: dict[str, Any] = await study.changed(told)
    known = study.known_status()
    by_goal = known is not None and bool(known["enough"])
    return {**now, "enough": study.definition.enough(now["told"], by_goal) or by_goal}
