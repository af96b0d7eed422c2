"""Trials: asking for them, recording, abandoning and listing them."""

from __future__ import annotations

import csv
import io
import json
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Query, Response
from starlette.concurrency import run_in_threadpool

from betafield import categories, checks
from betafield._extras import needed
from betafield.decisions.space import Space, beside
from betafield.server.access import Run, Shared, Viewed
from betafield.server.routes.answering import answered
from betafield.server.schemas import HIGHEST, Ask, Form, Outcome, Text, ToldTrial
from betafield.server.tables import EXPIRED, STATES

router = APIRouter(tags=["trials"])
Number = Annotated[int, Path(ge=0, le=HIGHEST)]
Key = Annotated[Text | None, Header()]
# Trials per page of JSON by default, and the maximum.
PAGE, MOST = 1000, 100_000


@router.post("/studies/{study}/asks")
async def ask(study: Run, body: Ask, idempotency_key: Key = None) -> Response:
    """Return the trials to make next; repeated with the same key, the same ones."""
    key = body.key if body.key is not None else idempotency_key
    told = await study.changed(
        lambda state: state.ask(body.n, body.fixed, body.participant, key), body.participant
    )
    known = study.known_status()
    if known is not None and known["enough"]:
        told["enough"] = told["enough"] or study.definition.enough(0, True)
    return answered(told)


@router.post("/studies/{study}/trials/{trial}/outcome")
async def outcome(study: Run, trial: Number, body: Outcome) -> Response:
    """Record the outcome of a trial; repeats count once, and a different outcome is refused."""
    told = await study.changed(
        lambda state: state.tell(trial, body.success, body.context), body.participant
    )
    return answered(told)


@router.post("/studies/{study}/trials", status_code=201)
async def tell(study: Run, body: ToldTrial, idempotency_key: Key = None) -> Response:
    """Record a trial that was not asked for; repeats with the same key count once."""
    key = body.key if body.key is not None else idempotency_key
    given = body.values, body.success, body.context, body.participant, key
    return answered(await study.changed(lambda state: state.add(*given), body.participant), 201)


@router.post("/studies/{study}/trials/{trial}/abandon")
async def abandon(study: Run, trial: Number) -> Response:
    """Record that a trial will not be made."""
    return answered(await study.changed(lambda state: state.abandon(trial)))


@router.get("/studies/{study}/trials")
async def listed(
    study: Viewed,
    hub: Shared,
    format: Form = "json",  # noqa: A002 (the parameter's name)
    after: Annotated[int, Query(ge=-1, le=HIGHEST)] = -1,
    limit: Annotated[int | None, Query(ge=1, le=MOST)] = None,
) -> Response:
    """Return the trials after a number: a page as JSON, or a table as CSV or Parquet."""
    most = limit or (PAGE if format == "json" else MOST)
    store = hub.studies.store
    rows = await run_in_threadpool(store.page, study.number, after, most)
    space = study.definition.space
    trials = [_trial(row, space) for row in rows]
    is_more = len(rows) == most
    following = rows[-1].id if is_more else None
    if format == "json":
        return answered({"trials": trials, "next": following})
    table = await run_in_threadpool(FORMATS[format], trials, space)
    if following is not None:
        table.headers["x-next"] = str(following)
    table.headers["content-disposition"] = f'attachment; filename="{study.name}.{format}"'
    return table


def _trial(row: Any, space: Space) -> dict[str, Any]:
    return {
        "id": row.id,
        "values": space.values(json.loads(row.point)),
        "state": STATES[row.state],
        "success": None if row.success is None else bool(row.success),
        "context": None if row.context is None else json.loads(row.context),
        "participant": row.participant,
        "why": row.why,
        "expired": row.state == EXPIRED,
        "asked_seq": row.asked_seq,
        "ended_seq": row.ended_seq,
        "asked_at": row.asked_at,
        "ended_at": row.ended_at,
    }


def _flat(trials: list[dict[str, Any]], space: Space) -> dict[str, list[Any]]:
    """Return trials as columns."""
    columns = {name: [t[name] for t in trials] for name in _COLUMNS}
    columns["context"] = [_spelled(context) for context in columns["context"]]
    points = {beside(_COLUMNS, name): [t["values"][name] for t in trials] for name in space.names}
    return {"id": columns.pop("id"), **points, **columns}


def _spelled(context: Any) -> str | None:
    """Return a context for a table: its name, or its coefficients as JSON."""
    return context if context is None or isinstance(context, str) else json.dumps(context)


_COLUMNS = (
    "id",
    "state",
    "success",
    "context",
    "participant",
    "why",
    "expired",
    "asked_seq",
    "ended_seq",
    "asked_at",
    "ended_at",
)
# A spreadsheet would take text that begins like this for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _csv(trials: list[dict[str, Any]], space: Space) -> Response:
    columns = _flat(trials, space)
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*([_cell(v) for v in each] for each in columns.values()), strict=True))
    return Response(text.getvalue(), media_type="text/csv; charset=utf-8")


def _cell(value: Any) -> Any:
    """Return a cell that no spreadsheet evaluates."""
    is_formula = isinstance(value, str) and value.startswith(_FORMULA)
    return f"'{value}" if is_formula else value


def _parquet(trials: list[dict[str, Any]], space: Space) -> Response:
    pyarrow, parquet = needed("files", "pyarrow"), needed("files", "pyarrow.parquet")
    columns, kinds = _flat(trials, space), _kinds(pyarrow)
    for name, side in zip(space.names, space.sides, strict=True):
        if side.kind == "integer":
            kinds[beside(_COLUMNS, name)] = pyarrow.int64()
    for name, levels in space.levels.items():
        if not all(map(checks.is_number, levels)):
            column = beside(_COLUMNS, name)
            kinds[column] = pyarrow.string()
            columns[column] = list(map(categories.text, columns[column]))
    arrays = {
        name: pyarrow.array(values, kinds.get(name, pyarrow.float64()))
        for name, values in columns.items()
    }
    sink = io.BytesIO()
    parquet.write_table(pyarrow.table(arrays), sink)
    return Response(sink.getvalue(), media_type="application/vnd.apache.parquet")


def _kinds(pyarrow: Any) -> dict[str, Any]:
    text, whole, flag = pyarrow.string(), pyarrow.int64(), pyarrow.bool_()
    return {
        **dict.fromkeys(("state", "context", "participant", "why"), text),
        **dict.fromkeys(("id", "asked_seq", "ended_seq"), whole),
        **dict.fromkeys(("success", "expired"), flag),
    }


FORMATS = {"csv": _csv, "parquet": _parquet}
