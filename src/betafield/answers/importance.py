"""Which features matter, and how π goes along one of them on average.

With f the log-odds of the mean at the places of the trials, and x′ the same place with feature a
taken from another,

    T_a = ½ E (f(x) − f(x′))²

is the variance of f that is lost if a is not known (Sobol's total effect); importance is its share
of Σ T. Others are those that come some places later in the order of all places, eight times, so
that nothing is random. Partial dependence is the average of π over the places with one feature
fixed, whose interval counts that neighbouring places err together (`area`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import categories, checks
from betafield.answers import area
from betafield.answers.lines import chosen, typical
from betafield.methods import AnyField
from betafield.posteriors import LatentNormal, Sampled

Floats = npt.NDArray[np.float64]

# Steps by which places are shifted, as shares of their number, about evenly.
SHIFTS = (0.0557, 0.1803, 0.3049, 0.4296, 0.5542, 0.6789, 0.8035, 0.9281)
# Log-odds are told from probabilities that are no nearer to 0 or 1.
LEAST = 1e-9
# Values of a feature that are asked for if none are given, and places that stand for all: of an
# average, and of variances.
VALUES, PLACES, MANY = 25, 128, 512


class PartialDependence(NamedTuple):
    """How π goes along one feature, averaged over the places of the trials.

    Parameters
    ----------
    values : array of shape (k,)
        Of the feature; of a category, its levels.
    posterior : LatentNormal | Sampled
        What is believed of the average at each.
    """

    values: npt.NDArray[Any]
    posterior: LatentNormal | Sampled


def importance(field: AnyField) -> Floats:
    """Return the share of the field's variance per feature; 0 of all if it is constant."""
    points = typical(field, MANY)
    f, totals = _log_odds(field, points), np.zeros(field.features.number)
    for a in range(field.features.number):
        for share in SHIFTS:
            moved = points.copy()
            moved[:, a] = np.roll(points[:, a], max(1, round(share * len(points))))
            totals[a] += float(np.mean((_log_odds(field, moved) - f) ** 2))
    return np.asarray(totals / totals.sum()) if totals.sum() > 0.0 else totals


def _log_odds(field: AnyField, points: Floats) -> Floats:
    p = np.clip(field.mean(points), LEAST, 1.0 - LEAST)
    return np.asarray(np.log(p) - np.log1p(-p))


def partial_dependence(field: AnyField, feature: Any, grid: Any) -> PartialDependence:
    """Return how π goes along a feature on average."""
    number = chosen(field.features, feature)
    values, column = _values(field, number, grid)
    places = typical(field, PLACES)
    points = np.tile(places, (len(column), 1))
    points[:, number] = np.repeat(column, len(places))
    by = np.repeat(np.arange(len(column)), len(places))
    return PartialDependence(values, area.average(field, points, None, by))


def _values(field: AnyField, number: int, grid: Any) -> tuple[npt.NDArray[Any], Floats]:
    """Return the values of a feature that are asked for, and what they are in points."""
    known = field.features.categories
    if number in known.columns:
        if grid is None:
            return np.array(known.shown(number), dtype=object), known.codes(number)
        each = [categories.text(one) for one in checks.items("grid", grid, "levels are needed")]
        checks.require(each, "grid", grid, "one level at least is needed")
        shown = [categories.MISSING if one is None else one for one in each]
        return np.array(shown, dtype=object), np.array([categories.code(one) for one in each])
    if grid is None:
        low, high = field.bounds[number]
        column = np.unique(np.linspace(low, high, VALUES))
        return column, column
    column = checks.finite("grid", grid, "numbers are needed")
    checks.require(column.ndim == 1 and column.size, "grid", column.shape, "one list is needed")
    return column, column
