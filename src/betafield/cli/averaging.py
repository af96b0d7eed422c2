"""Averages over areas: the points of areas in, one row per area out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import betafield.cli.predicting as predicting
import betafield.cli.terminal as terminal
from betafield.cli.writing import harmless
from betafield.refusals import refused

if TYPE_CHECKING:
    from betafield.cli.reading import Given
    from betafield.cli.writing import Columns
    from betafield.estimators import SmoothBetaClassifier


class Areas(NamedTuple):
    """The requested answers about areas, and the columns that name and weigh their points."""

    area: str
    weights: str | None
    level: float
    above: float | None


def averages(
    model: SmoothBetaClassifier, given: Given, wanted: Areas, form: str, watched: bool
) -> Columns:
    """Return the average over each area in a file of points, as columns."""
    import numpy as np

    points, labels, weights = _read(model, given, wanted, watched)
    names = predicting.feature_names(model)
    post = model.average(predicting.as_learned(model, names, points), weights, labels)
    low, high = post.interval(wanted.level)
    each, count = np.unique(labels, return_counts=True)
    if form == "csv" and each.dtype.kind == "U":
        each = np.array([harmless(name) for name in each.tolist()])
    found = {wanted.area: each, "points": count, "mean": post.mean(), "std": post.std()}
    found |= {"low": low, "high": high}
    if wanted.above is not None:
        found["prob_above"] = post.prob_above(wanted.above)
    return found


def _read(
    model: SmoothBetaClassifier, given: Given, wanted: Areas, watched: bool
) -> tuple[Any, Any, Any]:
    """Return points, their areas and weights; raise if an area is missing."""
    import numpy as np

    from betafield.files import Roles

    names = tuple(predicting.feature_names(model))
    roles = Roles(names, sample_weight=wanted.weights, groups=wanted.area, grouping="--area")
    points: list[Any] = []
    labels: list[Any] = []
    weights: list[Any] = []
    with given.rows(roles, watched, None, predicting.ROWS) as rows:
        for batch in rows.read("averaging"):
            with batch.named():
                table = batch.points()
                points.append(np.stack([c.to_numpy() for c in table.columns], axis=1))
                labels.append(_plain(batch.groups(), wanted.area))
                weights.append(batch.weights())
    if not points:
        raise ValueError(f"{given.files[0].name}: has no rows; at least one point is needed")
    terminal.tell_dropped(rows.dropped)
    held = None if wanted.weights is None else np.concatenate(weights)
    return np.concatenate(points), np.concatenate(labels), held


def _plain(labels: Any, name: str) -> Any:
    """Return labels as text or numbers; raise for the first missing one."""
    for row, each in enumerate(labels.tolist()):
        if each is None or each == "" or (isinstance(each, float) and math.isnan(each)):
            said = f"found nothing in column {name!r}; every point needs an area"
            raise refused("area", said, row)
    return labels.astype(str) if labels.dtype == object else labels
