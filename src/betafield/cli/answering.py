"""Loading a model, and writing its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import betafield.cli.maps as maps
import betafield.cli.predicting as predicting
import betafield.cli.reading as reading
import betafield.cli.terminal as terminal
import betafield.cli.writing as writing
from betafield.cli.usage import UsageError

if TYPE_CHECKING:
    from betafield.cli.distortions import Distortion
    from betafield.estimators import SmoothBetaClassifier


FOR_MAPS = ("geojson", "geotiff")


class Where(NamedTuple):
    """The points of a query: a grid, or the rows of a table, and how to read that."""

    grid: int | None
    at: str | None
    separator: str | None = None
    drop_missing: bool = False


def loaded(path: str) -> SmoothBetaClassifier:
    """Return the model in a file or in standard input."""
    from betafield import state
    from betafield.estimators import SmoothBetaClassifier

    with reading.model_file(path) as (real, name):
        return SmoothBetaClassifier.of(state.load(real, name))


def answers_to(
    model: str,
    where: tuple[int | None, str | None],
    to: tuple[str | None, str | None, bool],
    option: str = "--at",
) -> tuple[str, str]:
    """Return the file and the format for answers; raise if points are missing or data at risk."""
    (grid, at), (out, form, force) = where, to
    if (grid is None) == (at is None):
        raise UsageError("--grid, --at: one of them is needed, to say where")
    if model == at == "-":
        raise UsageError(f"MODEL, {option}: found - twice; standard input can be read once")
    target = out or "-"
    form = form if form in FOR_MAPS else writing.form(target, form)
    writing.require_free(target, force, [model, *reading.inputs([] if at is None else [at])])
    return target, form


def write_answers(
    model: SmoothBetaClassifier,
    ask: Any,
    where: Where,
    under: Distortion | None,
    target: str,
    form: str,
) -> None:
    """Write answers at the points of a grid or of a file."""
    watched = terminal.is_watched(target)
    if where.grid is not None:
        _write(model, predicting.on_grid(model, where.grid, ask, under, watched), target, form)
    if where.at is not None:
        with reading.tables([where.at], where.separator, where.drop_missing) as given:
            echo = "text" if form == "csv" else "numbers"
            tables = predicting.in_file(model, given, ask, under, watched, echo)
            _write(model, tables, target, form)


def _write(model: SmoothBetaClassifier, tables: Any, target: str, form: str) -> None:
    if form in FOR_MAPS:
        maps.write(tables, maps.columns(model, form), target, form)
    else:
        writing.write_tables(tables, target, form)
