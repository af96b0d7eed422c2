"""The layout of counts, said once, and what can be counted.

The counts of a place, and of a window, are int64 columns, in this order and as far as there are
any:

    K       trials per class
    K       their fractions, in units of 2⁻³²
    4       mean sharing: the sums of B and of 1 − A − B, in two columns each
    2 per   exact sharing: of each distinct polynomial, its trials and their fractions

Contexts have two classes, so what comes after counts and fractions begins at column OTHERS.
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
# Sums up to this are sure to be whole numbers of int64.
MOST = 2.0**62
OTHERS = 4


class Totals(NamedTuple):
    """How many trials there were, and what their contexts left to see, in units of 2⁻³².

    `distorted` counts those whose context was not (0, 1); `low` and `high` add up the lowest
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
        """Return what distortion leaves of a trial, on average: min(1 − B̄, Ā + B̄).

        1 − B̄ where certainty stays certain, A + B = 1; and its mirror image, where failures
        are named instead.
        """
        return max(self.trials - max(self.low, self.high), 1) / self.trials

    def spread(self) -> float:
        """Return the sum over all trials of what π can change, |A|."""
        return (self.trials - self.low - self.high) / FRACTIONS


def require_countable(name: str, amounts: npt.NDArray[Any], most: float = MOST) -> None:
    """Raise where amounts add up to more than int64 sums are sure to hold."""
    with np.errstate(over="ignore"):  # which is too many as well
        require_total(name, float(np.sum(amounts, dtype=np.float64)), most)


def require_total(name: str, total: float, most: float = MOST) -> None:
    """Raise if this is more than int64 sums are sure to hold."""
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
    """Return what the sums of `tally` stand for: trials per class, int64 if weights were whole."""
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
    """Return whether any trial of two classes counts for a part of one."""
    return bool(totals[2:OTHERS].any())


def of_trials(wholes: int, fractions: int) -> Totals:
    """Return the totals of undistorted trials, so many and so many parts of 2⁻³²."""
    return Totals(wholes * int(FRACTIONS) + fractions)
