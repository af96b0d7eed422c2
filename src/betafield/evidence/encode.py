"""From outcomes and contexts to additive counts.

The outcome of a trial has probability l₀ if π = 0 and l₁ if π = 1.

Exact sharing multiplies the likelihoods of all trials in the window:

    l₀ = l₁            the trial carries no information and is dropped
    l₀ = 0 or l₁ = 0   an ordinary success or failure: a Beta count
    other affine       distributed over the lattice of shifts, `betafield.lattice`
    polynomials        counted, one statistic per distinct polynomial

Mean sharing, the paper's CSBP, uses only the mean of the contexts: with n trials in the window, S
of them successes, and mean coefficients B̄ and Ā + B̄, the likelihood is that of n trials under
(B̄, Ā + B̄).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import bernstein, contexts, lattice
from betafield._rows import distinct
from betafield.evidence.columns import (
    FRACTIONS,
    MOST,
    OTHERS,
    Columns,
    Polynomial,
    Totals,
    of_trials,
    polynomial_columns,
    polynomial_trials,
    require_countable,
    tally,
    untallied,
)
from betafield.refusals import refused

if TYPE_CHECKING:
    from betafield.windows import Forest, Places, Shifts

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Coefficients with a smaller relative difference differ only by rounding.
ROUNDING = 1e-14
# Largest number of distinct polynomials.
MOST_POLYNOMIALS = 8192
# The second column of a coefficient holds the remainder, in units of 1/(UNIT · FINE).
FINE = 2.0**27


class Evidence(NamedTuple):
    """Additive statistics of trials.

    Parameters
    ----------
    rows : array of shape (n,) or None
        The row of X of each trial, without those that carry no information. None: all rows, in
        order.
    counts : array of shape (c, n)
    shifts : Shifts or None
        Distorted trials.
    totals : Totals
        Their contribution to the totals.
    polynomials : tuple of polynomials
        The distinct polynomials, in the order of their counts.
    sharing : {"exact", "mean"} or None
        How contexts were combined; None if there were none.
    """

    rows: Ints | None
    counts: Columns
    shifts: Shifts | None
    totals: Totals
    polynomials: tuple[Polynomial, ...] = ()
    sharing: str | None = None

    def present(self, n_rows: int) -> npt.NDArray[np.bool_]:
        """Return which rows of X have trials."""
        return _mask(self.rows, n_rows)

    def weights(self, n_classes: int) -> Floats:
        """Return the number of trials each row stands for."""
        counts = self.counts[: 2 * n_classes].T
        total = untallied(counts, n_classes).sum(axis=1).astype(np.float64)
        if self.shifts is not None:
            total += self.shifts.held * self.shifts.sizes()
        if self.polynomials:
            total += polynomial_trials(self.counts.T).sum(axis=1)
        return np.asarray(total)


def plain(columns: Columns, weight: Floats | None) -> Evidence:
    """Return the evidence of undistorted trials, given the outcomes (K, t) and their weights."""
    counts = tally(columns, weight)
    sums = counts.sum(axis=1, dtype=np.int64).tolist()
    wholes, fractions = sums[: len(columns)], sums[len(columns) :]
    totals = of_trials(sum(wholes), sum(fractions))
    present = np.any(counts, axis=0)
    if present.all():
        return Evidence(None, counts, None, totals)
    return Evidence(np.flatnonzero(present), counts[:, present], None, totals)


class Counted(NamedTuple):
    """Trials that carry information, as they were observed.

    Parameters
    ----------
    rows : array of shape (n,) or None
        The row of X of each trial; None: all rows, in order.
    counts : array of shape (c, n)
        Trials per class, and their fractions if any.
    context : array of shape (n, p + 1) or None
    totals : Totals
    """

    rows: Ints | None
    counts: Columns
    context: Floats | None
    totals: Totals

    def present(self, n_rows: int) -> npt.NDArray[np.bool_]:
        """Return which rows of X have trials."""
        return _mask(self.rows, n_rows)


def _mask(rows: Ints | None, n_rows: int) -> npt.NDArray[np.bool_]:
    """Return a mask of these rows; None: all rows."""
    mask = np.full(n_rows, rows is None)
    if rows is not None:
        mask[rows] = True
    return mask


def counted(columns: Columns, weight: Floats | None, context: Floats | None) -> Counted:
    """Return the counts and contexts of trials; raise for impossible outcomes."""
    if context is None:
        seen = plain(columns, weight)
        return Counted(seen.rows, seen.counts, None, seen.totals)
    learned, context = _learned(columns, weight, context)
    rows = np.unique(learned.rows)
    amount = None if weight is None else weight[rows]
    return Counted(rows, tally(columns[:, rows], amount), context[rows], _totals(learned))


def distorted(
    columns: Columns,
    weight: Floats | None,
    context: Floats,
    sharing: str,
    known: tuple[Polynomial, ...] = (),
    most: int = MOST_POLYNOMIALS,
) -> Evidence:
    """Return the evidence of trials under contexts (t, p + 1), given outcomes (2, t) and weights.

    `known` are the polynomials counted so far. Raises for impossible outcomes, and for more than
    `most` polynomials.
    """
    learned, _ = _learned(columns, weight, context)
    if contexts.is_affine(learned.context).all():
        learned = learned._replace(context=learned.context[:, [0, -1]])
    require_countable("trials", learned.held * learned.size, MOST / lattice.UNIT)
    return _mean(learned) if sharing == "mean" else _exact(learned, known, most)


def _learned(columns: Columns, weight: Floats | None, context: Floats) -> tuple[_Trials, Floats]:
    """Return the trials that carry information, and contexts with at least two coefficients."""
    if context.shape[1] == 1:
        context = np.repeat(context, 2, axis=1)
    # Weights too small to count are zero, as without contexts.
    there = np.asarray(columns > 0)
    if weight is not None:
        there &= weight * FRACTIONS > 0.5
    bernstein.require_possible("context", context, there[0], there[1])
    happened = [_happened(columns[k], there[k], weight, context, bool(k)) for k in (0, 1)]
    return _Trials(*(np.concatenate(parts) for parts in zip(*happened, strict=True))), context


class _Trials(NamedTuple):
    """Trials that carry information: row of X, number, weight of each, outcome, context.

    A whole weight is a number of trials; any other weight is the size of one trial.
    """

    rows: Ints
    held: Ints
    size: Floats
    success: npt.NDArray[np.bool_]
    context: Floats

    def likelihood(self) -> Floats:
        """Return the coefficients of the probability of the observed outcome."""
        return np.where(self.success[:, None], self.context, 1.0 - self.context)


def _happened(
    amount: Any,
    there: npt.NDArray[np.bool_],
    weight: Floats | None,
    context: Floats,
    success: bool,
) -> _Trials:
    """Return the trials with this outcome that carry information."""
    rows = np.flatnonzero(there)
    likelihood = context[rows] if success else 1.0 - context[rows]
    top = likelihood.max(axis=1)
    rows = rows[top - likelihood.min(axis=1) > ROUNDING * top]
    size = np.ones(len(rows)) if weight is None else weight[rows]
    whole = size == np.floor(size)
    held = amount[rows] * np.where(whole, size, 1.0).astype(np.int64)
    return _Trials(
        rows, held, np.where(whole, 1.0, size), np.full(len(rows), success), context[rows]
    )


# Exact -------------------------------------------------------------------------------------


def _exact(learned: _Trials, known: tuple[Polynomial, ...], most: int) -> Evidence:
    from betafield.windows import Shifts

    likelihood = learned.likelihood()
    is_affine = contexts.is_affine(learned.context)
    pure = np.stack([is_affine & (likelihood[:, k] == 0.0) for k in (-1, 0)])
    shifted = is_affine & ~pure.any(axis=0)
    sized = learned.size != 1.0
    shifts = Shifts(
        lattice.shift(np.where(shifted[:, None], likelihood[:, [0, -1]], 1.0)),
        np.where(shifted, learned.held, 0),
        np.where(shifted, learned.size, 1.0) if sized.any() else None,
    )
    counts = tally(pure * learned.held, learned.size)
    polynomials, numbers = _numbered(likelihood[~is_affine], known, most)
    if polynomials:
        counts = _with_polynomials(counts, learned, ~is_affine, numbers, len(polynomials))
    return Evidence(
        learned.rows,
        counts,
        shifts if shifted.any() else None,
        _totals(learned),
        polynomials,
        "exact",
    )


def _numbered(
    likelihood: Floats, known: tuple[Polynomial, ...], most: int
) -> tuple[tuple[Polynomial, ...], Ints]:
    """Return all polynomials counted, and the index of each row's polynomial."""
    rows = likelihood / likelihood.max(axis=1, keepdims=True)
    found, which = distinct(rows)
    places = {polynomial: i for i, polynomial in enumerate(known)}
    numbers = [places.setdefault(tuple(row), len(places)) for row in found.tolist()]
    _require_few(len(places), most)
    return tuple(places), np.array(numbers, dtype=np.int64)[which.reshape(-1)]


def _with_polynomials(
    counts: Columns,
    learned: _Trials,
    there: npt.NDArray[np.bool_],
    numbers: Ints,
    n_polynomials: int,
) -> npt.NDArray[Any]:
    """Return the counts with two more columns per polynomial: its trials, and their fractions.

    With many polynomials most columns are 0, so they are stored in the narrowest integers.
    """
    from betafield.windows.base import narrowest

    amounts = tally(learned.held[None, there], learned.size[there])
    most = int(max(counts.max(initial=0), amounts.max(initial=0)))
    columns = np.zeros((polynomial_columns(n_polynomials)[0], len(there)), dtype=narrowest(most))
    columns[: len(counts)] = counts
    for i, amount in enumerate(amounts):
        columns[polynomial_columns(numbers)[i], np.flatnonzero(there)] = amount
    return columns


def _require_few(n: int, most: int) -> None:
    if n > most:
        raise refused(
            "context",
            f"found {n} distinct polynomials, a context and its outcome each; at most "
            f"{most} can be counted separately, so round their coefficients",
        )


def recounted(
    parts: list[Places], theirs: tuple[Polynomial, ...], ours: tuple[Polynomial, ...]
) -> tuple[tuple[Polynomial, ...], list[Places]]:
    """Return the union of two lists of polynomials, and copies of places counted by it."""
    from betafield.windows import Places

    union = {polynomial: i for i, polynomial in enumerate(dict.fromkeys((*ours, *theirs)))}
    _require_few(len(union), MOST_POLYNOMIALS)
    at, rest = polynomial_columns(np.array([union[polynomial] for polynomial in theirs]))
    moved = []
    for places in parts:
        counts = np.zeros((polynomial_columns(len(union))[0], places.size), dtype=np.int64)
        counts[:OTHERS] = places.counts[:OTHERS]
        counts[at], counts[rest] = places.counts[OTHERS::2], places.counts[OTHERS + 1 :: 2]
        moved.append(Places(places.axes.copy(), counts, places.shifts))
    return tuple(union), moved


def joined(
    windows: Forest,
    ours: tuple[Polynomial, ...],
    others: Forest,
    theirs: tuple[Polynomial, ...],
) -> tuple[Forest, tuple[Polynomial, ...]]:
    """Return the windows with all trials of both, counted by the union of their polynomials."""
    if theirs in (ours, ()):
        return windows.merge(others), ours
    union, places = recounted(others.places, theirs, ours)
    for part in places:
        windows = windows.insert(part)
    return windows, union


# Mean --------------------------------------------------------------------------------------


def _mean(learned: _Trials) -> Evidence:
    is_affine = contexts.is_affine(learned.context)
    if not is_affine.all():
        row = int(learned.rows[~is_affine].min())
        raise refused(
            "context",
            f"found a polynomial of degree {learned.context.shape[1] - 1}; "
            "sharing='mean' is for affine contexts, use sharing='exact'",
            row=row,
        )
    outcomes = np.stack([~learned.success, learned.success])
    counts = tally(outcomes * learned.held, learned.size)
    low, high = learned.context.T
    if (low > 0.0).any() or (high < 1.0).any():
        missing = np.zeros((OTHERS - len(counts), counts.shape[1]), dtype=np.int64)
        lost = _split(learned, low), _split(learned, 1.0, high)
        counts = np.concatenate([counts, missing, *lost], dtype=np.int64)
    return Evidence(learned.rows, counts, None, _totals(learned), sharing="mean")


def _split(learned: _Trials, value: Floats | float, less: Floats | float = 0.0) -> Ints:
    """Return value − less, times each trial's size, in units of 1/UNIT and of 1/(UNIT · FINE).

    Coefficients near 0 and near 1 keep their digits, because `less` is subtracted before rounding.
    """
    coarse = np.floor((value - less) * learned.size * lattice.UNIT)
    rest = np.maximum((value - coarse / (lattice.UNIT * learned.size)) - less, 0.0)
    fine = np.rint(rest * learned.size * (lattice.UNIT * FINE))
    return np.stack([coarse, fine]).astype(np.int64) * learned.held


def _totals(learned: _Trials) -> Totals:
    """Return the totals of these trials."""
    lowest, highest = learned.context.min(axis=1), learned.context.max(axis=1)
    plain = (learned.context[:, 0] == 0.0) & (learned.context[:, -1] == 1.0)
    plain &= contexts.is_affine(learned.context)
    parts = (np.ones(len(lowest)), ~plain, lowest, 1.0 - highest)
    units = [np.rint(part * learned.size * FRACTIONS) for part in parts]
    return Totals(*(_exact_dot(unit, learned.held) for unit in units))


def _exact_dot(a: Floats, b: Ints) -> int:
    """Return Σ a b for whole numbers, without overflow."""
    if float(np.dot(a, b)) < MOST and float(a.max(initial=0.0)) < MOST:
        return int(np.dot(a.astype(np.int64), b))
    return sum(int(x) * y for x, y in zip(a.tolist(), b.tolist(), strict=True))
