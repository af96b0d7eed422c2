"""The rows that a process is fitted to: trials gathered by place, or by cell of a grid.

A row is a point of the unit box with n trials, k successes and the context that they share, as
the Bernstein coefficients of their success probability (`betafield.contexts`). Counts are integers
and rows are sorted, so rows are a function of the sums by place: they depend neither on the order
of the trials nor on their batches.

Beyond 256 / 1,600 / 3,000 places in one, two and three dimensions, rows are the cells of a grid
(256, 40², 16³; up to 24³ if there are many trials). A cell is located at the mean of its trials,
from integer sums of coordinates. Levels of a feature can be kept apart, whatever the grid. Contexts
share a cell only if they are equal or, if there are more than 16, equal when rounded to a
sixteenth.

Trials in groups have one more coordinate, the number of their group, in which no process is smooth.
Rows that may be overdispersed are never merged, even if they are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import bernstein
from betafield._rows import groups, starts
from betafield.process.blocks import Columns
from betafield.process.wrapped import Kinds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# Per feature its levels, sorted, in units of the box; None: it has no levels. Empty: none has.
Levels = tuple["Floats | None", ...]


class Grid(NamedTuple):
    """The most places before trials are gathered in cells, and the cells per feature.

    All are by number of features; with more features rows are always places. `whole` is the most
    cells if levels of features are kept apart, and `finest` the most per feature with many trials.
    """

    most: dict[int, int]
    cells: dict[int, int]
    whole: int
    finest: Mapping[int, int] = MappingProxyType({})

    def side(self, d: int, t: float) -> int:
        """Return the cells per feature.

        Where a field is steep or curved, its average over a cell is not its value at the centre: by
        ∝ 1/side². This must fall like the posterior's deviation, ∝ t^−½.
        """
        fewest = self.cells[d]
        wanted = int(PER_FOURTH_ROOT * math.sqrt(math.sqrt(t)))
        return max(fewest, min(wanted, self.finest.get(d, fewest)))

    def cut(self, d: int, levels: Levels = (), t: float = 0.0) -> Cut:
        """Return the cells of d features; those with levels have one cell per level if possible.

        Coordinates after the features have levels.
        """
        levels = levels or (None,) * d
        kept = sorted((len(at), a) for a, at in enumerate(levels) if at is not None)
        while kept and math.prod(count for count, _ in kept) > self.whole:
            kept.pop()
        counts = {a: count for count, a in kept}
        room = self.whole / math.prod(counts.values())
        side = self.side(d, t)
        free = len(levels) - len(counts)
        if counts and free:
            side = min(side, max(FEWEST, int(room ** (1.0 / free))))
        sides = tuple(counts.get(a, side) for a in range(len(levels)))
        return Cut(sides, tuple(at if a in counts else None for a, at in enumerate(levels)))


class Cut(NamedTuple):
    """Cells per feature, and its levels if each level is a cell."""

    sides: tuple[int, ...]
    levels: Levels

    def numbers(self, x: Floats) -> Ints:
        """Return the number of each point's cell."""
        number = np.zeros(len(x), dtype=np.int64)
        for axis, side, levels in zip(x.T, self.sides, self.levels, strict=True):
            if levels is None:
                index = np.minimum((axis * side).astype(np.int64), side - 1)
            else:
                index = np.searchsorted(levels, axis)
            number = number * side + index
        return number


# Grids for the fit of a process, and for the residuals that windows sum.
COARSE = Grid({1: 256, 2: 1_600, 3: 3_000}, {1: 256, 2: 40, 3: 16}, 1 << 15, {3: 24})
FINE = Grid({1: 4_096, 2: 20_000, 3: 20_000}, {1: 4_096, 2: 192, 3: 40}, 1 << 17)
# The grid for trials in groups, each cell within one group.
GROUPED = Grid({1: 20_000, 2: 20_000, 3: 20_000}, {1: 256, 2: 40, 3: 16}, 1 << 20)
# Cells per feature are wanted to be this times t^¼, which are 16 at 42,000 trials.
PER_FOURTH_ROOT = 1.12
# Fewest cells per feature, if the levels of others leave little room.
FEWEST = 8
# Up to FEW distinct contexts are kept apart exactly; more are rounded to steps of 1/STEPS.
FEW, STEPS = 16, 16
# Coordinates are summed in these parts of the box, with weights of at most so many bits.
PARTS, WEIGHT_BITS = 2.0**30, 32
# Trials gathered at a time, and parts kept before they are merged.
LONG, MANY = 1 << 17, 8
NO_TRIALS = "trials: found none; at least one is needed"


class Rows(NamedTuple):
    """Trials by place or cell, sorted.

    Parameters
    ----------
    x : array of shape (r, d)
        Points of the unit box.
    trials, successes : integer array of shape (r,)
        n and k, in multiples of `unit`.
    context : array of shape (r, p + 1)
        Bernstein coefficients of P(success) as a polynomial of π.
    unit : float
        The number of trials that 1 stands for.
    is_places : bool
        Whether rows are places rather than cells.
    is_grouped : bool
        Whether the last coordinate is the number of a group.
    correlation : float
        ρ, the correlation between any two trials of a row.
    share : float
        Log prior weight of the rates at which contexts are evaluated.
    columns : tuple of Column
        Columns of categories, whose coordinates come last.
    kinds : tuple of str
        Kind of each feature: a line, a circle or a coordinate of the sphere; if empty, all lines.
    """

    x: Floats
    trials: Ints
    successes: Ints
    context: Floats
    unit: float = 1.0
    is_places: bool = True
    is_grouped: bool = False
    correlation: float = 0.0
    share: float = 0.0
    columns: Columns = ()
    kinds: Kinds = ()

    @property
    def d(self) -> int:
        """Return the number of features."""
        return int(self.x.shape[1]) - self.is_grouped - len(self.columns)

    @property
    def n(self) -> Floats:
        """Return the number of trials per row."""
        return self.trials * np.float64(self.unit)

    @property
    def k(self) -> Floats:
        """Return the number of successes per row."""
        return self.successes * np.float64(self.unit)

    @property
    def events(self) -> float:
        """Return the number of trials with the rarer outcome."""
        successes = float(self.successes.sum()) * self.unit
        return min(successes, float(self.trials.sum()) * self.unit - successes)

    @property
    def is_plain(self) -> bool:
        """Return whether no trial is distorted."""
        return self.context.shape[1] == 2 and bool((self.context == bernstein.PLAIN).all())

    def taken(self, index: npt.NDArray[np.intp]) -> Rows:
        """Return some of the rows."""
        return self._replace(
            x=self.x[index],
            trials=self.trials[index],
            successes=self.successes[index],
            context=self.context[index],
        )


def gather(
    x: Floats,
    trials: Ints,
    successes: Ints,
    context: Floats | None = None,
    unit: float = 1.0,
    grid: Grid = COARSE,
    box: Callable[[Floats], Floats] | None = None,
    levels: Levels = (),
    is_grouped: bool = False,
    long: int = LONG,
) -> Rows:
    """Return the rows of trials at points, given in any order and with repetitions.

    Points are in the unit box, or `box` maps them to it, `long` of them at a time. Cells keep
    `levels` of features apart, the last of which are those of groups.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield.process.rows import gather
    >>> x = np.array([[0.5], [0.2], [0.5]])
    >>> rows = gather(x, np.array([1, 4, 2]), np.array([1, 0, 1]))
    >>> rows.x[:, 0], rows.n, rows.k
    (array([0.2, 0.5]), array([4., 3.]), array([0., 2.]))
    """
    is_long = len(x) > long and _is_constant(context) and _shift(trials) == 0
    step = long if is_long else len(x)
    d = x.shape[1] - is_grouped
    most = grid.most.get(d, np.inf)
    t = float(trials.sum()) * unit
    cut = grid.cut(d, levels, t) if d in grid.cells else Cut((), ())
    places: list[Rows] = []
    sums: list[CellSums] = []
    for start in range(0, len(x), max(step, 1)):
        at = slice(start, start + step)
        given = _given(x[at], trials[at], successes[at], _part(context, at), unit, box, start)
        if given is None:
            continue
        if sums or (most < np.inf and _surely_more(given, int(most))):
            sums.append(cell_sums(given, cut))
        else:
            places.append(by_place(given))
            if len(places) > MANY:
                places = [by_place(_joined(places))]
                if len(places[0].x) > most:
                    sums, places = [cell_sums(places[0], cut)], []
        if len(sums) > MANY:
            sums = [_added(sums)]
    return _settled(places, sums, cut, most)._replace(is_grouped=is_grouped)


def listed(
    x: Floats, trials: Ints, successes: Ints, context: Floats | None = None, unit: float = 1.0
) -> Rows:
    """Return rows of trials as given, sorted; equal ones stay separate.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield.process.rows import listed
    >>> rows = listed(np.array([[0.5], [0.2], [0.5]]), np.array([3, 4, 2]), np.array([1, 0, 1]))
    >>> rows.x[:, 0], rows.n, rows.k
    (array([0.2, 0.5, 0.5]), array([4., 2., 3.]), array([0., 1., 1.]))
    """
    given = _given(x, trials, successes, context, unit, None, 0)
    if given is None:
        raise ValueError(NO_TRIALS)
    keys = np.column_stack([given.x, given.context]) + 0.0
    order = np.lexsort((given.successes, given.trials, *keys.T[::-1]))
    d = x.shape[1]
    at, under = (np.ascontiguousarray(each) for each in np.split(keys[order], [d], axis=1))
    return Rows(at, given.trials[order], given.successes[order], under, unit)


def _settled(places: list[Rows], sums: list[CellSums], cut: Cut, most: float) -> Rows:
    """Return the rows of all parts, whether gathered by place or by cell."""
    if not places and not sums:
        raise ValueError(NO_TRIALS)
    if sums:
        parts = [cell_sums(each, cut) for each in places]
        return _added([*parts, *sums]).rows(cut)
    rows = by_place(_joined(places)) if len(places) > 1 else places[0]
    return rows if len(rows.x) <= most else cell_sums(rows, cut).rows(cut)


def _is_constant(context: Floats | None) -> bool:
    return context is None or context.ndim == 1


def _part(context: Floats | None, at: slice) -> Floats | None:
    return context if context is None or context.ndim == 1 else context[at]


def _joined(parts: list[Rows]) -> Rows:
    """Return the rows of all parts, one after the other."""
    x, trials, successes, context = (np.concatenate([p[i] for p in parts]) for i in range(4))
    return Rows(x, trials, successes, context, parts[0].unit)


def _given(
    x: Floats,
    trials: Ints,
    successes: Ints,
    context: Floats | None,
    unit: float,
    box: Callable[[Floats], Floats] | None,
    start: int,
) -> Rows | None:
    """Return the rows that have trials, in the same order; None if there are none.

    Every outcome must be possible under its context; `start` is the number of the first row.
    """
    context = np.array(bernstein.PLAIN) if context is None else context
    context = np.broadcast_to(context, (len(x), context.shape[-1]))
    some = np.flatnonzero(trials > 0)
    if not some.size:
        return None
    bernstein.require_possible("context", context, trials > successes, successes > 0, start)
    rows = Rows(x, trials, successes, context, unit)
    rows = rows if len(some) == len(x) else rows.taken(some)
    return rows if box is None else rows._replace(x=box(rows.x))


def _surely_more(rows: Rows, most: int) -> bool:
    """Return whether the first rows alone show that there are more than `most` places.

    Then trials can go straight to cells: integer sums are the same, unless weights are rounded.
    """
    start = rows.x[: 2 * most]
    is_short = _shift(rows.trials) == 0
    return is_short and len(start) > most and len(groups(start.T)[1]) > most


def by_place(rows: Rows) -> Rows:
    """Return one row per distinct point and context, sorted."""
    keys = np.column_stack([rows.x, rows.context]) + 0.0  # −0 and 0 are one place
    order, at = groups(keys.T)
    first, d = order[at], rows.x.shape[1]
    return Rows(
        np.ascontiguousarray(keys[first, :d]),
        np.add.reduceat(rows.trials[order], at, dtype=np.int64),
        np.add.reduceat(rows.successes[order], at, dtype=np.int64),
        np.ascontiguousarray(keys[first, d:]),
        rows.unit,
    )


class CellSums(NamedTuple):
    """Integer sums by cell, sorted by the cells' keys.

    Parameters
    ----------
    key : integer array of shape (c,)
        Number of the cell and of the bin of the context.
    weight, trials, successes : integer array of shape (c,)
        Sums of weights, n and k.
    x, context : integer array of shape (c, d) and (c, p + 1)
        Weighted sums of coordinates and coefficients, in multiples of 1/PARTS.
    least : array of shape (c, d)
        The smallest coordinates; along a feature with levels, the level itself.
    unit : float
        The number of trials that 1 stands for.
    """

    key: Ints
    weight: Ints
    trials: Ints
    successes: Ints
    x: Ints
    context: Ints
    least: Floats
    unit: float

    def rows(self, cut: Cut) -> Rows:
        """Return the cells as rows."""
        size = self.weight[:, None] * PARTS
        is_level = np.array([levels is not None for levels in cut.levels])
        x = np.where(is_level, self.least, self.x / size)
        context, is_places = self.context / size, bool(is_level.all())
        return Rows(x, self.trials, self.successes, context, self.unit, is_places)


def cell_sums(rows: Rows, cut: Cut) -> CellSums:
    """Return the sums of rows by cell and bin of the context."""
    bins = _bins(rows.context)
    key = cut.numbers(rows.x) * (bins.max() + 1) + bins
    weight = _weights(rows.trials)

    def parts(values: Floats) -> Ints:
        return np.rint(values * PARTS).astype(np.int64) * weight[:, None]

    columns = [weight, rows.trials, rows.successes, parts(rows.x), parts(rows.context)]
    return _summed(key, columns, rows.x, rows.unit)


def _summed(key: Ints, columns: list[Ints], x: Floats, unit: float) -> CellSums:
    """Return the sums of columns by key, and the minimum of x."""
    narrow = key.astype(np.uint16) if key.max() < 1 << 16 else key  # short keys sort by radix
    order = np.argsort(narrow, kind="stable")
    ordered = key[order]
    first = starts([ordered], len(ordered))
    weight, trials, successes, parts, context = (np.add.reduceat(c[order], first) for c in columns)
    least = np.minimum.reduceat(x[order], first)
    return CellSums(ordered[first], weight, trials, successes, parts, context, least, unit)


def _added(parts: list[CellSums]) -> CellSums:
    """Return the sums of all parts."""
    key, *columns = (np.concatenate([part[i] for part in parts]) for i in range(6))
    least = np.concatenate([part.least for part in parts])
    return _summed(key, columns, least, parts[0].unit)


def _bins(context: Floats) -> Ints:
    """Return the bin of each context: one per distinct context, or per sixteenth if many."""
    if (context == context[0]).all():
        return np.zeros(len(context), dtype=np.int64)
    order, first = groups(context.T)
    if len(first) > FEW:
        order, first = groups(np.rint(context * STEPS).T)
    bins = np.zeros(len(context), dtype=np.int64)
    bins[first[1:]] = 1
    bins[order] = np.cumsum(bins)
    return bins


def _weights(trials: Ints) -> Ints:
    """Return integers in proportion to trials whose sum times PARTS fits an int64."""
    return np.asarray(np.maximum(trials >> _shift(trials), 1))


def _shift(trials: Ints) -> int:
    return max(0, int(trials.sum()).bit_length() - WEIGHT_BITS)
