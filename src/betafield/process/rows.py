"""What a process is fitted to: trials gathered by place, or by cell of a grid, as rows.

A row is a point of the unit box with n trials, k successes and the context that they share, as
the Bernstein coefficients of their success probability (`betafield.contexts`). Counts are whole
numbers and rows are sorted, so rows are a function of the sums by place: neither the order of the
trials nor their batches can be seen in them.

Beyond 256 / 1,600 / 3,000 places in one, two and three dimensions, rows are the cells of a grid
(256, 40², 16³): a cell stands at the mean of its trials, from whole-number sums of coordinates.
Contexts share a cell only if they are equal or, if more than 16 differ, equal to a sixteenth.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Order = npt.NDArray[np.intp]


class Grid(NamedTuple):
    """Rows beyond which trials are gathered in cells, and cells per feature.

    Both by number of features; with more features rows are places.
    """

    most: dict[int, int]
    cells: dict[int, int]


# What a process is fitted to, and what windows of its residuals add up.
COARSE = Grid({1: 256, 2: 1_600, 3: 3_000}, {1: 256, 2: 40, 3: 16})
FINE = Grid({1: 4_096, 2: 20_000, 3: 20_000}, {1: 4_096, 2: 192, 3: 40})
# Contexts that are told apart exactly, and steps of [0, 1] by which more of them are.
FEW, STEPS = 16, 16
# The context of a trial that was seen as it is.
PLAIN = np.array([0.0, 1.0])
# Coordinates are summed in these parts of the box, with weights of at most so many bits.
PARTS, WEIGHT_BITS = 2.0**30, 32


class Rows(NamedTuple):
    """Trials by place or cell, sorted.

    Parameters
    ----------
    x : array of shape (r, d)
        Points of the unit box.
    trials, successes : integer array of shape (r,)
        n and k, in units of `unit`.
    context : array of shape (r, p + 1)
        Bernstein coefficients of P(success) as a polynomial of π.
    unit : float
        What 1 counts for.
    """

    x: Floats
    trials: Ints
    successes: Ints
    context: Floats
    unit: float = 1.0

    @property
    def n(self) -> Floats:
        """Return the trials of every row."""
        return self.trials * np.float64(self.unit)

    @property
    def k(self) -> Floats:
        """Return the successes of every row."""
        return self.successes * np.float64(self.unit)

    @property
    def is_plain(self) -> bool:
        """Return whether every trial was seen as it is."""
        return self.context.shape[1] == 2 and bool((self.context == (0.0, 1.0)).all())

    def taken(self, index: npt.NDArray[np.intp]) -> Rows:
        """Return some of the rows."""
        x, trials, successes, context, unit = self
        return Rows(x[index], trials[index], successes[index], context[index], unit)


def gather(
    x: Floats,
    trials: Ints,
    successes: Ints,
    context: Floats | None = None,
    unit: float = 1.0,
    grid: Grid = COARSE,
) -> Rows:
    """Return the rows of trials at points of the unit box, in any order and any number of parts.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield.process.rows import gather
    >>> x = np.array([[0.5], [0.2], [0.5]])
    >>> rows = gather(x, np.array([1, 4, 2]), np.array([1, 0, 1]))
    >>> rows.x[:, 0], rows.n, rows.k
    (array([0.2, 0.5]), array([4., 3.]), array([0., 2.]))
    """
    given = _given(x, trials, successes, context, unit)
    most = grid.most.get(x.shape[1])
    if most is not None and _surely_more(given, most):
        return by_cell(given, grid)
    rows = by_place(given)
    return rows if most is None or len(rows.x) <= most else by_cell(rows, grid)


def _given(x: Floats, trials: Ints, successes: Ints, context: Floats | None, unit: float) -> Rows:
    """Return a row per row with trials, in their order; all of them must be possible."""
    context = PLAIN if context is None else context
    context = np.broadcast_to(context, (len(x), context.shape[-1]))
    some = np.flatnonzero(trials > 0)
    if not some.size:
        raise ValueError("trials: found none; at least one is needed")
    failures = trials - successes
    never, always = (context == 0.0).all(axis=1), (context == 1.0).all(axis=1)
    _refuse((successes > 0) & never, "a success", "never succeeds")
    _refuse((failures > 0) & always, "a failure", "never fails")
    rows = Rows(x, trials, successes, context, unit)
    return rows if len(some) == len(x) else rows.taken(some)


def _refuse(impossible: npt.NDArray[np.bool_], found: str, why: str) -> None:
    if impossible.any():
        raise ValueError(
            f"context row {int(impossible.argmax())}: found {found} under a context that {why}; "
            "its coefficients must allow every outcome that was seen"
        )


def _surely_more(rows: Rows, most: int) -> bool:
    """Return whether the first rows alone show that there are more places than so many.

    Cells then need no places: whole numbers add up to the same, unless weights are shortened.
    """
    start = rows.x[: 2 * most]
    is_short = _shift(rows.trials) == 0
    return is_short and len(start) > most and len(_groups(start)[1]) > most


def by_place(rows: Rows) -> Rows:
    """Return one row per distinct point and context, sorted."""
    keys = np.column_stack([rows.x, rows.context]) + 0.0  # −0 and 0 are one place
    order, starts = _groups(keys)
    first, d = order[starts], rows.x.shape[1]
    return Rows(
        np.ascontiguousarray(keys[first, :d]),
        np.add.reduceat(rows.trials[order], starts, dtype=np.int64),
        np.add.reduceat(rows.successes[order], starts, dtype=np.int64),
        np.ascontiguousarray(keys[first, d:]),
        rows.unit,
    )


def by_cell(rows: Rows, grid: Grid = COARSE) -> Rows:
    """Return one row per cell of the grid and bin of the context, at the mean of its trials."""
    order, starts = _sorted(cells(rows.x, grid), _bins(rows.context))
    weight = _weights(rows.trials)[order]
    total = np.add.reduceat(weight, starts)

    def mean(values: Floats) -> Floats:
        parts = np.rint(values * PARTS).astype(np.int64)[order] * weight[:, None]
        return np.add.reduceat(parts, starts) / (total[:, None] * PARTS)

    return Rows(
        mean(rows.x),
        np.add.reduceat(rows.trials[order], starts),
        np.add.reduceat(rows.successes[order], starts),
        mean(rows.context),
        rows.unit,
    )


def _groups(keys: npt.NDArray[Any]) -> tuple[Order, Order]:
    """Return the order that sorts rows of keys, first columns first, and where groups start."""
    varying = keys[:, (keys != keys[0]).any(axis=0)]
    order = np.lexsort(varying.T[::-1]) if varying.size else np.arange(len(keys))
    ordered = varying[order]
    return order, _starts((ordered[1:] != ordered[:-1]).any(axis=1))


def _starts(is_new: npt.NDArray[np.bool_]) -> Order:
    return np.flatnonzero(np.concatenate([[True], is_new]))


def _sorted(cells: Ints, bins: Ints) -> tuple[Order, Order]:
    """Return the order by cell and bin, and where each of them starts."""
    key = cells * (bins.max() + 1) + bins
    narrow = key.astype(np.uint16) if key.max() < 1 << 16 else key  # short keys sort by radix
    order = np.argsort(narrow, kind="stable")
    ordered = key[order]
    return order, _starts(ordered[1:] != ordered[:-1])


def cells(x: Floats, grid: Grid = COARSE) -> Ints:
    """Return the number of the cell in which each point is."""
    side = grid.cells[x.shape[1]]
    number = np.zeros(len(x), dtype=np.int64)
    for axis in x.T:
        number = number * side + np.minimum((axis * side).astype(np.int64), side - 1)
    return number


def _bins(context: Floats) -> Ints:
    """Return the number of the bin of each context: one of a few, or equal to a sixteenth."""
    if (context == context[0]).all():
        return np.zeros(len(context), dtype=np.int64)
    order, starts = _groups(context)
    if len(starts) > FEW:
        order, starts = _groups(np.rint(context * STEPS))
    bins = np.zeros(len(context), dtype=np.int64)
    bins[starts[1:]] = 1
    bins[order] = np.cumsum(bins)
    return bins


def _weights(trials: Ints) -> Ints:
    """Return whole numbers in proportion to trials whose sum times PARTS is an int64."""
    return np.asarray(np.maximum(trials >> _shift(trials), 1))


def _shift(trials: Ints) -> int:
    return max(0, int(trials.sum()).bit_length() - WEIGHT_BITS)
