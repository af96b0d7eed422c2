"""The server's health, and its metrics."""

from __future__ import annotations

import time

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from betafield.server.access import Operator, Shared
from betafield.server.routes.answering import answered

router = APIRouter(tags=["operating"])
RECENT = 1.0


@router.get("/health")
async def health(hub: Shared) -> Response:
    """Return 200 if the database could be written within the last second, else 503."""
    # Anybody may ask this, so not every request should cause a write.
    if time.monotonic() - hub.well_at > RECENT:
        await run_in_threadpool(hub.studies.store.probe)
        hub.well_at = time.monotonic()
    return answered({"status": "ok"})


@router.get("/metrics")
async def metrics(hub: Shared, _: Operator) -> Response:
    """Return metrics in Prometheus format."""
    told = await run_in_threadpool(hub.studies.summaries)
    gauges: dict[str, float] = {"betafield_studies": float(len(told))}
    for state in ("told", "pending", "abandoned"):
        total = sum(each[state] for each in told)
        gauges[f'betafield_trials{{state="{state}"}}'] = float(total)
    return Response(hub.metrics.text(gauges), media_type="text/plain; version=0.0.4")
