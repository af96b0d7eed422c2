"""Curves of drawn fields along one feature, with the others fixed or averaged over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import categories, checks, trials
from betafield.answers.draws import Fields
from betafield.evidence import Evidence, Totals
from betafield.field import Field
from betafield.methods import AnyField
from betafield.process.boxes import Axis, by_range
from betafield.refusals import refused

Floats = npt.NDArray[np.float64]

# Points along the feature, with others fixed or averaged over; number of places for averages.
POINTS, AVERAGED, PLACES = 129, 65, 48


class Line(NamedTuple):
    """Points along a feature, at one or several places of the others.

    Parameters
    ----------
    feature : int
    grid : array of shape (n,)
        Values of the feature over its whole domain, evenly spaced in the model's units.
    others : array of shape (r, d)
        Places over which the curve is averaged; their values of the feature are ignored.
    """

    feature: int
    grid: Floats
    others: Floats

    @property
    def points(self) -> Floats:
        """All points, with those of each place adjacent, shape (r · n, d)."""
        points = np.repeat(self.others, len(self.grid), axis=0)
        points[:, self.feature] = np.tile(self.grid, len(self.others))
        return points

    def averaged(self, values: Floats) -> Floats:
        """Return the mean over places of values (..., r · n), shape (..., n)."""
        shape = (*values.shape[:-1], len(self.others), len(self.grid))
        return np.asarray(values.reshape(shape).mean(axis=-2))

    def curves(self, fields: Fields) -> Floats:
        """Return the curve of every field, shape (size, n)."""
        total = None
        for place in self.others:
            each = fields.at(self._replace(others=place[None]).points)
            total = each if total is None else total + each
        assert total is not None
        return np.asarray(total / len(self.others))


def line(field: AnyField, feature: int, at: Floats | None) -> Line:
    """Return the points along a feature: at one row of all features, or at places of trials."""
    low, high = field.bounds[feature]
    names = labels(field.features)
    checks.require(
        low < high, "feature", names[feature], f"it has one value, {low:g}, so nothing is along it"
    )
    if at is not None or field.features.number == 1:
        fixed = np.zeros((1, field.features.number)) if at is None else at[None]
        return Line(feature, along(field, feature, POINTS), fixed)
    return Line(feature, along(field, feature, AVERAGED), typical(field))


def along(field: AnyField, feature: int, count: int) -> Floats:
    """Return points from end to end of a feature's domain, evenly spaced in the model's units."""
    from betafield.monotone import nodes_along

    return nodes_along(axis(field, feature), field.bounds[feature], count)


def axis(field: AnyField, feature: int) -> Axis:
    """Return the units of a feature in the heaviest process."""
    if isinstance(field, Field):
        return by_range(*field.bounds[feature])
    smooth, number = field.smooth[0], field.features.numeric.index(feature)
    return smooth.boxes[int(np.argmax(smooth.weights))].axes[number]


def typical(field: AnyField, most: int = PLACES) -> Floats:
    """Return a sample that represents the places of all trials, in proportion to their trials."""
    points, count = places(field)
    reached = np.cumsum(count)
    n = min(most, max(1, int(reached[-1])))
    steps = (np.arange(n) + 0.5) / n * reached[-1]
    return np.asarray(points[np.minimum(np.searchsorted(reached, steps), len(points) - 1)])


def places(field: AnyField) -> tuple[Floats, Floats]:
    """Return the places of the trials, sorted, and the number of trials at each."""
    if not isinstance(field, Field):
        rows = field.sums.rows()
        points, count = rows.points, rows.counts.sum(axis=0) * rows.unit
    else:
        axes, count = _in_windows(field)
        points = field.units.restored(axes)
    order = np.lexsort(points.T[::-1])
    return points[order], count[order]


def _in_windows(field: Field) -> tuple[Floats, Floats]:
    """Return places in scaled units (d, t), and the number of trials at each."""
    from betafield.windows import Forest
    from betafield.windows.base import concatenate

    if not isinstance(field.windows, Forest):
        raise TypeError(
            "at: found None where trials are on workers; give values of the other features, or "
            "ask the local model of `model.compute()`"
        )
    held = concatenate(field.places())
    counted = Evidence(None, held.counts, held.shifts, Totals(), field.polynomials)
    return held.axes, counted.weights(2)


# Arguments -----------------------------------------------------------------------------------


def labels(features: trials.Features) -> tuple[str, ...]:
    """Return the names of features, or x0, x1, … if they have none."""
    if features.names is None:
        return tuple(f"x{a}" for a in range(features.number))
    return tuple(map(str, features.names))


def chosen(features: trials.Features, feature: Any) -> int:
    """Return the index of the requested feature; with only one, it need not be named."""
    names = labels(features)
    if feature is None:
        one = f"one of {', '.join(names)} is needed, because the model has {len(names)} features"
        checks.require(len(names) == 1, "feature", None, one)
        return 0
    return checks.feature_index("feature", names, feature)


def numeric(features: trials.Features, feature: Any) -> int:
    """Return the same for a numeric feature; with only one, it need not be named."""
    if feature is None and len(features.numeric) == 1:
        return features.numeric[0]
    number = chosen(features, feature)
    if number in features.categories.columns:
        raise refused(
            "feature",
            f"found {labels(features)[number]!r}, which is a category; a numeric feature is needed",
        )
    return number


def fixed(features: trials.Features, feature: int, at: Any) -> Floats | None:
    """Return the values of the fixed features, as a row of all; None if none are fixed."""
    names = labels(features)
    if at is None:
        return None
    if isinstance(at, Mapping):
        return _by_name(features, feature, at)
    row = checks.finite("at", at, "a mapping of features to numbers or a row of X is needed")
    row = row[0] if row.ndim == 2 and len(row) == 1 else row
    checks.shaped("at", row, (len(names),), f"one number per feature is needed, ({len(names)},)")
    return row


def _by_name(features: trials.Features, feature: int, at: Mapping[Any, Any]) -> Floats:
    names = labels(features)
    row = np.full(len(names), np.nan)
    for name, value in at.items():
        number = checks.feature_index("at", names, name)
        if number == feature:
            raise refused("at", f"found {name!r}, which is the feature that varies")
        if number in features.categories.columns:
            row[number] = categories.code(categories.text(value))
        else:
            row[number] = checks.number(f"at, feature {name!r}", value)
    row[feature] = 0.0
    missing = [names[i] for i in np.flatnonzero(np.isnan(row))]
    checks.require(
        not missing, "at", dict(at), f"values of {', '.join(missing)} are missing; give all others"
    )
    return row
