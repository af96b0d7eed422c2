"""What may be wrong with an answer, said aloud: warnings, each with what to do about it.

after a fit     features that are constant or number the rows, rows that vary more than trials can,
                a basis that is too small, trials that speak against a monotone field
with an answer  points far from all trials
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from betafield.methods import AnyField
from betafield.smooth import SmoothField

if TYPE_CHECKING:
    from betafield.process.model import Smooth

Floats = npt.NDArray[np.float64]

# The share of points far from all trials, and the spread of rows, beyond which it is said.
FAR, OVERDISPERSED = 0.05, 2.0
# Rows below which their spread shows nothing, or numbers of rows are chance.
FEW_ROWS, FEW_LEVELS = 20, 20


SHARED = (
    "if trials of a row or of a group share something, give fit_counts(…, overdispersion='auto') "
    "or fit(…, groups=…)"
)

# The logarithm of that ratio below which trials speak against a monotone field.
AGAINST = -3.0
# The size of a prior, in trials, below which it says little of a rate.
FEW_TRIALS = 10.0
# Features beyond which no basis follows all that might be.
FEW_FEATURES = 3


class FieldWarning(UserWarning):
    """An answer that may not be what it seems, and what to do about it."""


def after_learning(field: AnyField) -> None:
    """Warn of what a field that has just been learned shows."""
    if isinstance(field, SmoothField):
        every = _of_features, _of_rows, _of_basis, _of_signs, _of_rates
        for said in chain.from_iterable(each(field) for each in every):
            _warn(said)


def at_points(field: AnyField, points: Floats) -> None:
    """Warn, once, if many of these points are far from all trials."""
    if not isinstance(field, SmoothField) or not len(points):
        return
    far = np.mean(np.all([smooth.far(points) for smooth in field.smooth], axis=0))
    if far > FAR:
        _warn(
            f"X: {far:.0%} of {len(points)} points are further than two length scales from every "
            "trial; answers there are the base rate with a wide interval, so ask nearer to the "
            "trials, or make some there"
        )


def _warn(said: str) -> None:
    # The caller of the estimator's method.
    warnings.warn(said, FieldWarning, stacklevel=4)


def _of_features(field: SmoothField) -> Iterator[str]:
    points, counts, *_ = field.sums.rows()
    names = field.features.names
    for a, column in enumerate(points.T):
        name = f"column {a}" if names is None else repr(names[a])
        low, high = field.bounds[a]
        if low == high:
            yield f"X: {name} is constant, {low:g}; it says nothing and can be left out"
        elif _numbers_rows(column, counts.shape[1]):
            yield (
                f"X: {name} has as many whole numbers as there are rows, so it seems to number "
                "them; leave it out unless neighbours are alike"
            )


def _numbers_rows(column: Floats, n_rows: int) -> bool:
    """Return whether a column has the numbers of the rows."""
    if n_rows < FEW_LEVELS or np.ptp(column) != n_rows - 1:
        return False
    return bool(np.all(column == np.floor(column)) and len(np.unique(column)) == n_rows)


def _of_rows(field: SmoothField) -> Iterator[str]:
    if field.sums.is_apart or field.sums.is_grouped:
        return
    for smooth in field.smooth[:1]:
        rows, _, prior = smooth.fits[0].problem
        if np.count_nonzero(rows.n >= 2.0) < FEW_ROWS:
            return
        spread = smooth.overdispersion()
        if prior.effects is not None and len(prior.effects.at) == len(rows.x):
            yield (
                "X: rows vary more than independent trials would, so each has an effect of its own "
                f"and intervals between them are wide; {SHARED}, which answer for the average row"
            )
        elif spread > OVERDISPERSED and not smooth.windows:
            yield (
                f"X: trials at a place vary {spread:.1f} times as much as independent ones would, "
                f"so intervals are too narrow; {SHARED}"
            )


def _of_rates(field: SmoothField) -> Iterator[str]:
    """Yield rates that outcomes alone cannot tell from π, if little was known of them before."""
    for j, rate in enumerate(field.sums.rates):
        if rate.alpha + rate.beta < FEW_TRIALS and field.sums.all_have(j):
            yield (
                f"context: the rate {rate.name!r} is not known for any trial, and its prior, "
                f"Beta({rate.alpha:g}, {rate.beta:g}), says less than {FEW_TRIALS:g} trials would; "
                "outcomes alone can hardly tell it from the probability that is learned, so give "
                "counts of a study, or trials for which it is known"
            )


def _of_basis(field: SmoothField) -> Iterator[str]:
    if field.features.number <= FEW_FEATURES and any(map(_is_too_small, field.smooth)):
        yield (
            "X: the field seems rougher than its process can follow; fewer features, bounds around "
            "what matters, or method='windows' would show more"
        )


def _of_signs(field: SmoothField) -> Iterator[str]:
    """Tell if the trials speak against a field that is monotone as it is asked for."""
    from betafield.process.ensemble import shares
    from betafield.process.signs import evidence

    for a, sign in enumerate(field.signs):
        if not sign:
            continue
        members = field.smooth[0].members
        found = evidence([member.mode for member in members], shares(members), a, sign)
        if found < AGAINST:
            name = f"column {a}" if field.features.names is None else repr(field.features.names[a])
            yield (
                f"monotonic_cst: the trials speak against a probability that never "
                f"{'falls' if sign > 0 else 'rises'} along {name}: it is e^{found:.1f} times as "
                f"probable after them as before; look at the model without it"
            )


def _is_too_small(smooth: Smooth) -> bool:
    """Return whether a basis misses what windows do not make up for."""
    return smooth.is_capped and sum(window.weight for window in smooth.windows) < 0.5
