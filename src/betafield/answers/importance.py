"""Which features matter, and how π changes along one of them on average.

With f the log-odds of the mean at the places of the trials, and x′ the same place with the value of
feature a taken from another place,

    T_a = ½ E (f(x) − f(x′))²

is the variance of f that is lost if a is unknown (Sobol's total effect); importance is its share of
Σ T. The other places are those a fixed number of positions later in the order of all places, for
eight such shifts, so nothing is random. Partial dependence is the average of π over the places with
one feature fixed; its interval accounts for the correlated errors of neighbouring places (`area`).
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

# Shifts of places, as fractions of their number, spread about evenly.
SHIFTS = (0.0557, 0.1803, 0.3049, 0.4296, 0.5542, 0.6789, 0.8035, 0.9281)
# Probabilities are clipped this far from 0 and 1 before taking log-odds.
LEAST = 1e-9
# Default number of values of a feature, and numbers of places that represent all: for averages, and
# for variances.
VALUES, PLACES, MANY = 25, 128, 512


class PartialDependence(NamedTuple):
    """How π changes along one feature, averaged over the places of the trials.

    Parameters
    ----------
    values : array of shape (k,)
        Values of the feature; levels of a category.
    posterior : LatentNormal | Sampled
        Posterior of the average at each value.
    """

    values: npt.NDArray[Any]
    posterior: LatentNormal | Sampled


def importance(field: AnyField) -> Floats:
    """Return each feature's share of the field's variance; all 0 if the field is constant."""
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
    """Return how π changes along a feature on average."""
    number = chosen(field.features, feature)
    values, column = _values(field, number, grid)
    places = typical(field, PLACES)
    points = np.tile(places, (len(column), 1))
    points[:, number] = np.repeat(column, len(places))
    by = np.repeat(np.arange(len(column)), len(places))
    return PartialDependence(values, area.average(field, points, None, by))


def _values(field: AnyField, number: int, grid: Any) -> tuple[npt.NDArray[Any], Floats]:
    """Return the requested values of a feature, and their coordinates."""
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
