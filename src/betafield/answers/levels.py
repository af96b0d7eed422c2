"""How much each level of a category differs from all levels together.

With a_c the average of π over the places of the trials if all of them had level c, and w_c the
share of trials that had it, the difference of a level is

    δ_c = a_c − Σ w_j a_j,

Its distribution comes from fields drawn from the joint posterior, because levels learned from the
same trials have correlated errors.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.answers.draws import fields
from betafield.answers.lines import typical
from betafield.methods import AnyField
from betafield.process.noise import Seed

Floats = npt.NDArray[np.float64]

# Number of draws, and of places per average.
SIZE, PLACES = 400, 64


class Differences(NamedTuple):
    """Posterior summaries of the levels of a category.

    Parameters
    ----------
    labels : list of str
        The observed levels.
    trials : array of shape (L,)
        Number of trials of each.
    average : array of shape (L, 3)
        Mean and interval limits of a_c.
    difference : array of shape (L, 3)
        The same for δ_c.
    above : array of shape (L,)
        The probability that δ_c is above 0.
    """

    labels: list[str]
    trials: Floats
    average: Floats
    difference: Floats
    above: Floats


def differences(field: AnyField, column: int, trials: Floats, level: float = 0.95) -> Differences:
    """Return how much the levels of a column differ, given the number of trials at each."""
    known = field.features.categories
    codes = known.codes(column)
    drawn, places = fields(field, SIZE, Seed((0,))), typical(field, PLACES)
    each = np.empty((len(codes), SIZE))
    for c, code in enumerate(codes):
        moved = places.copy()
        moved[:, column] = code
        each[c] = drawn.at(moved).mean(axis=1)
    apart = each - (trials / trials.sum()) @ each
    return Differences(
        known.shown(column),
        trials,
        _told(each, level),
        _told(apart, level),
        (apart > 0.0).mean(axis=1),
    )


def _told(draws: Floats, level: float) -> Floats:
    """Return means and interval limits of draws (L, s)."""
    ends = np.quantile(draws, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=1)
    return np.stack([draws.mean(axis=1), *ends], axis=1)
