"""Whether the server is well, and what it did."""

from __future__ import annotations

from fastapi import APIRouter, Response
from starlette.concurrency import run_in_threadpool

from betafield.server.access import Operator, Shared
from betafield.server.routes.answering import answered

router = APIRouter(tags=["operating"])


@router.get("/health")
async def health(hub: Shared) -> Response:
    """Return 200 if the database can be written, else 503."""
    await run_in_threadpool(hub.studies.store.probe)
    return answered({"status": "ok"})


@router.get("/metrics")
async def metrics(hub: Shared, _: Operator) -> Response:
    """Return what Prometheus reads."""
    told = await run_in_threadpool(hub.studies.summaries)
    gauges: dict[str, float] = {"betafield_studies": float(len(told))}
    for state in ("told", "pending", "abandoned"):
        total = sum(each[state] for each in told)
        gauges[f'betafield_trials{{state="{state}"}}'] = float(total)
    return Response(hub.metrics.text(gauges), media_type="text/plain; version=0.0.4")
