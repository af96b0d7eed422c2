"""Warnings about answers that may be wrong, each with what to do about it.

after a fit     outcomes that all are the same, features that are constant or number the rows, rows
                that vary more than independent trials would, groups that tell nothing about how
                groups differ, a basis that is too small, trials that contradict a monotone field
with an answer  points far from all trials
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield.methods import AnyField
from betafield.smooth import SmoothField

if TYPE_CHECKING:
    from betafield.process.model import Smooth

Floats = npt.NDArray[np.float64]

# Warn above this share of points far from all trials, and above this dispersion of rows.
FAR, OVERDISPERSED = 0.05, 2.0
# The largest dispersion reported as a number.
MOST_TOLD = 1_000
# With fewer rows, their dispersion shows nothing, and row numbers may be a coincidence.
FEW_ROWS, FEW_LEVELS = 20, 20


SHARED = (
    "if trials of a row or of a group share something, use fit_counts(…, overdispersion='auto') "
    "or fit(…, groups=…)"
)

# If the log evidence ratio is below this, the trials contradict a monotone field.
AGAINST = -3.0
# A prior worth fewer trials than this says little about a rate.
FEW_TRIALS = 10.0
# With more features, no basis can follow every possible field.
FEW_FEATURES = 3


class FieldWarning(UserWarning):
    """A warning that an answer may be misleading, with what to do about it."""


def after_learning(field: AnyField) -> None:
    """Warn about problems of a field that has just been learned."""
    if isinstance(field, SmoothField):
        every = _of_outcomes, _of_features, _of_rows, _of_groups, _of_basis, _of_signs, _of_rates
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
            "trial; answers there are the base rate with a wide interval, so ask closer to the "
            "trials, or add trials there"
        )


def _warn(said: str) -> None:
    # The level of whoever called the estimator's method.
    warnings.warn(said, FieldWarning, stacklevel=4)


def _of_outcomes(field: SmoothField) -> Iterator[str]:
    seen = np.flatnonzero(field.sums.rows().counts.any(axis=1))
    if len(seen) == 1:
        label = checks.spelled(field.classes[seen[0]])
        yield (
            f"y: every outcome is {label}; with only one kind of outcome the field is the "
            "posterior of a single rate, much the same everywhere"
        )


def _of_features(field: SmoothField) -> Iterator[str]:
    points, counts, *_ = field.sums.rows()
    names = field.features.names
    for a, column in enumerate(points.T):
        name = f"column {a}" if names is None else repr(names[a])
        low, high = field.bounds[a]
        if low == high:
            yield f"X: {name} is constant, {low:g}; it carries no information and can be left out"
        elif _numbers_rows(column, counts.shape[1]):
            yield (
                f"X: {name} seems to number the rows, because its values are consecutive integers, "
                "one per row; leave it out unless neighbouring rows are alike"
            )


def _numbers_rows(column: Floats, n_rows: int) -> bool:
    """Return whether a column holds row numbers."""
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
                "X: rows vary more than independent trials would, so each has its own effect and "
                f"intervals between them are wide; {SHARED}, which describe the average row"
            )
        elif spread > OVERDISPERSED and not smooth.windows:
            times = f"{spread:.1f}" if spread < MOST_TOLD else f"over {MOST_TOLD:,}"
            yield (
                f"X: trials at a place vary {times} times as much as independent ones would, "
                f"so intervals are too narrow; {SHARED}"
            )


def _of_groups(field: SmoothField) -> Iterator[str]:
    """Yield that nothing can be learned about how groups differ."""
    if not field.sums.is_grouped:
        return
    nothing = "so nothing can be learned about how groups differ, and intervals rest on the prior"
    if len(field.sums.groups) == 1:
        yield (
            f"groups: all trials are in one group, {nothing}; leave groups out to describe this "
            "group alone, or add trials of other groups"
        )
    elif _are_single(field):
        yield (
            f"groups: every group has a single trial, {nothing}; give the same label to trials of "
            "a group, or leave groups out"
        )


def _are_single(field: SmoothField) -> bool:
    """Return whether no group has more than one trial."""
    rows = field.sums.rows()
    assert rows.group is not None
    trials = np.bincount(np.searchsorted(field.sums.groups, rows.group), rows.counts.sum(axis=0))
    return float(trials.max(initial=0.0)) * rows.unit <= 1.0


def _of_rates(field: SmoothField) -> Iterator[str]:
    """Yield a warning per unknown rate whose vague prior leaves it confounded with π."""
    for j, rate in enumerate(field.sums.rates):
        if rate.alpha + rate.beta < FEW_TRIALS and field.sums.all_have(j):
            yield (
                f"context: the rate {rate.name!r} is unknown for all trials, and its prior, "
                f"Beta({rate.alpha:g}, {rate.beta:g}), is worth less than {FEW_TRIALS:g} trials; "
                "outcomes alone can hardly separate it from the probability that is learned, so "
                "give the counts of a study, or add trials for which the rate is known"
            )


def _of_basis(field: SmoothField) -> Iterator[str]:
    if field.features.number <= FEW_FEATURES and any(map(_is_too_small, field.smooth)):
        yield (
            "X: the field seems rougher than its process can follow; use fewer features, bounds "
            "around the region that matters, or method='windows' to see more detail"
        )


def _of_signs(field: SmoothField) -> Iterator[str]:
    """Yield a warning if the trials contradict the requested monotonicity."""
    from betafield.process.ensemble import shares
    from betafield.process.signs import evidence

    for a, sign in enumerate(field.signs):
        if not sign:
            continue
        members = field.smooth[0].members
        along = field.features.numeric.index(a)
        found = evidence([member.mode for member in members], shares(members), along, sign)
        if found < AGAINST:
            name = f"column {a}" if field.features.names is None else repr(field.features.names[a])
            yield (
                f"monotonic_cst: the trials contradict a probability that never "
                f"{'falls' if sign > 0 else 'rises'} along {name}: they make it e^{found:.1f} "
                f"times as probable as before; look at the model without the constraint"
            )


def _is_too_small(smooth: Smooth) -> bool:
    """Return whether the basis is truncated and windows do not make up for it."""
    return smooth.is_capped and sum(window.weight for window in smooth.windows) < 0.5
