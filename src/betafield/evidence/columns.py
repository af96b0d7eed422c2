"""The layout of counts, defined once, and the limits of counting.

The counts of a place or window are int64 columns, in this order; groups that are not needed are
absent:

    K       trials per class
    K       their fractions, in units of 2⁻³²
    4       mean sharing: the sums of B and of 1 − A − B, in two columns each
    2 per   exact sharing: for each distinct polynomial, its trials and their fractions

Contexts have two classes, so columns after counts and fractions start at OTHERS.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.refusals import refused

Floats = npt.NDArray[np.float64]
Columns = npt.NDArray[np.int64] | npt.NDArray[np.bool_]
Polynomial = tuple[float, ...]

FRACTIONS = 2.0**32
# Sums up to this fit into int64 for certain.
MOST = 2.0**62
OTHERS = 4


class Totals(NamedTuple):
    """The number of trials, and how distorted they were, in units of 2⁻³².

    `distorted` counts the trials whose context was not (0, 1); `low` and `high` sum the lowest
    coefficient, and 1 minus the highest.
    """

    trials: int = 0
    distorted: int = 0
    low: int = 0
    high: int = 0

    def plus(self, other: Totals) -> Totals:
        """Return the sums of both."""
        return Totals(*(a + b for a, b in zip(self, other, strict=True)))

    def number(self) -> int | float:
        """Return the number of trials, the sum of their weights."""
        whole, rest = divmod(self.trials, int(FRACTIONS))
        return whole if not rest else self.trials / FRACTIONS

    def share(self) -> float:
        """Return the average share of a trial that distortion leaves: min(1 − B̄, Ā + B̄).

        This is 1 − B̄ if certain successes stay certain, A + B = 1; and its mirror image if the
        roles of success and failure are exchanged.
        """
        return max(self.trials - max(self.low, self.high), 1) / self.trials

    def spread(self) -> float:
        """Return the sum over all trials of |A|, how much π can change their probability."""
        return (self.trials - self.low - self.high) / FRACTIONS


def require_countable(name: str, amounts: npt.NDArray[Any], most: float = MOST) -> None:
    """Raise if the sum of the amounts may exceed int64."""
    with np.errstate(over="ignore"):  # infinity is too many as well
        require_total(name, float(np.sum(amounts, dtype=np.float64)), most)


def require_total(name: str, total: float, most: float = MOST) -> None:
    """Raise if this total may exceed int64."""
    if not 0 <= total <= most:
        what = "trials" if most == MOST else "trials under contexts"
        raise refused(name, f"adds up to {total:g}; at most {most:g} {what} can be counted")


def tally(columns: Columns, weight: Floats | None) -> Columns:
    """Return the statistics of each trial: one column per class, two if weights are fractional.

    Examples
    --------
    >>> import numpy as np
    >>> tally(np.array([[True, False], [False, True]]), np.array([2.0, 0.5])).tolist()
    [[2, 0], [0, 0], [0, 0], [0, 2147483648]]
    """
    if weight is None:
        return columns
    whole = np.floor(weight)
    fraction = np.rint((weight - whole) * FRACTIONS)
    parts = (whole, fraction) if fraction.any() else (whole,)
    return np.concatenate([columns * part.astype(np.int64) for part in parts])


def untallied(sums: npt.NDArray[Any], n_classes: int) -> npt.NDArray[Any]:
    """Return the trials per class from sums of `tally`; int64 if all weights were whole."""
    if sums.shape[-1] == n_classes:
        return sums
    return sums[..., :n_classes] + sums[..., n_classes:] / FRACTIONS


def polynomial_trials(counts: npt.NDArray[Any]) -> Floats:
    """Return the trials (…, n) of each polynomial, given the counts (…, c)."""
    others = counts[..., OTHERS:]
    return np.asarray(others[..., ::2] + others[..., 1::2] / FRACTIONS)


def polynomial_columns(number: Any) -> tuple[Any, Any]:
    """Return the columns of the trials of a polynomial, and of their fractions."""
    return OTHERS + 2 * number, OTHERS + 2 * number + 1


def has_fractions(totals: npt.NDArray[Any]) -> bool:
    """Return whether any trial of two classes has a fractional weight."""
    return bool(totals[2:OTHERS].any())


def of_trials(wholes: int, fractions: int) -> Totals:
    """Return the totals of undistorted trials, given whole trials and fractions in 2⁻³²."""
    return Totals(wholes * int(FRACTIONS) + fractions)
