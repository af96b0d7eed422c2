"""How the residuals of other trials change when trials are left out of the process.

The residuals of the others come from a process that has seen the trials L left out. Without them
f moves by −C_jL a_L at row j, C the joint posterior covariance of f, so Σg over a window gains

    Σ_{j ∉ L in the window} h_j C_jL a_L,   h_j = n_j (dq/dπ)² m(1−m) (dπ/df)/(q(1−q)),

where a = g/(1 − vw) for a single trial. Omitting or bounding this term lets left-out outcomes leak
into their own score. C is as smooth as the highest frequency of the basis, so the sum is computed
as Σ h_j over the window, from trees, times the mean of C over the window's cells on a grid fine
enough for that frequency; with four or more features, over a sample of rows with the lowest hashes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield._locks import cached
from betafield.process import linear
from betafield.process.basis import Basis, Effects
from betafield.process.design import design, matrix, pooled, without_effects
from betafield.process.fit import Fit, hashes
from betafield.process.ladder import Left, Values, window_means
from betafield.process.leaving import joint_covariance
from betafield.process.likelihood import TINY, polynomial, read, success
from betafield.process.pooled import Covariance, Spread
from betafield.process.rows import Rows
from betafield.process.wrapped import LATITUDE, LINE, Kinds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Index = npt.NDArray[np.intp]

# Cells per wave of the highest frequency, and the fewest and most cells per feature.
FINENESS, FEWEST, MOST = 8.0, 4, {1: 256, 2: 40, 3: 16}
# Most cells of levels, if levels have effects.
MOST_OF_LEVELS = 2_048
# With more features: cells along one of them, and the rows of lowest hash used instead of cells.
ALONG, ROWS = 32, 1_500


class Own(NamedTuple):
    """What each query leaves out, together with the others of its group.

    Parameters
    ----------
    row : index array of shape (q,)
        The row it belongs to.
    h : array of shape (q,)
        The part of h_j that is left out.
    sizes : integer array or None
        Number of queries per group, groups in order; None if each query is a group.
    """

    row: Index
    h: Floats
    sizes: Index | None = None

    def left(self, of: Ints, value: Floats) -> Left:
        """Return what is left out of cells, given the cell of each row and the values left out."""
        sizes = np.ones(len(self.row), dtype=np.int64) if self.sizes is None else self.sizes
        last = np.cumsum(sizes)
        every = np.repeat([last - sizes, last], sizes, axis=1)
        return Left(of[self.row], self.h, value, *every)


class Cells(NamedTuple):
    """Cells of rows, over which covariances are averaged.

    Parameters
    ----------
    x : array of shape (c, d)
        Centres of the cells.
    weight : array of shape (c,)
        Σh.
    P : array of shape (m, c)
        Means of φ̃, without levels.
    numbers : integer array of shape (c, d)
        Index of each cell along each feature.
    of : integer array of shape (r,)
        The cell of each row, −1 if it is in none.
    """

    x: Floats
    weight: Floats
    P: Floats
    numbers: Ints
    of: Ints

    def along(self, used: npt.NDArray[np.bool_]) -> Cells:
        """Return the cells merged to cells along the features in use."""
        x, weight, P, joint = _joined(self.numbers[:, used], self.x, self.weight, self.P.T)
        of = np.where(self.of >= 0, joint[self.of], -1)
        return Cells(x, weight, np.ascontiguousarray(P.T), self.numbers[:0], of)


class Levels(NamedTuple):
    """Cells that hold rows of one level each, over which level effects are averaged.

    Parameters
    ----------
    effects : Effects
        The levels.
    x : array of shape (c, d)
        Centres of cells.
    weight : array of shape (c,)
        Σh.
    which : integer array of shape (c,)
        The level of each cell, −1 if it has none.
    of : integer array of shape (r,)
        The cell of each row.
    """

    effects: Effects
    x: Floats
    weight: Floats
    which: Ints
    of: Ints


@dataclass(frozen=True, eq=False)
class Following:
    """How the residuals of rows depend on a process.

    Parameters
    ----------
    fit : Fit
        The process.
    rows : Rows
        The rows that have the residuals.
    follow : array of shape (r,)
        h, minus the expected derivative of each row's score by f.
    """

    fit: Fit
    rows: Rows
    follow: Floats

    @classmethod
    def of(cls, fit: Fit, rows: Rows) -> Following:
        """Return how the residuals at rows depend on a process."""
        f = design(fit.mode.basis, rows.x).values(fit.mode.b)
        return cls(fit, rows, followed(fit, rows, f)[2])

    def moves(self, queries: Floats, turned: Floats, own: Own | None = None) -> Moves:
        """Return how f moves at the other rows.

        `turned` (q, m) is Σ_k C φ̃_k a_k over what a query leaves out, with one row per query or
        per group; `own` says which part of which cells is left out, where C is largest.
        """
        return Moves(self, queries, turned, own)

    @cached
    def basis(self) -> Basis:
        """The basis functions without level effects."""
        return without_effects(self.fit.mode.basis)

    @cached
    def sides(self) -> Ints:
        """The number of cells per feature."""
        return _sides(self.basis)

    @cached
    def levels(self) -> Levels | None:
        """The cells of levels; None if levels have no effects."""
        effects = self.fit.mode.basis.effects
        if effects is None:
            return None
        x, which = self.rows.x, effects.which(self.rows.x)
        others = np.arange(x.shape[1]) != effects.feature
        side = int((MOST_OF_LEVELS / len(effects.at)) ** (1.0 / max(1, others.sum())))
        numbers = _numbers(x, np.where(others, np.clip(side, 1, self.sides), 1))
        numbers[:, effects.feature] = which + 1
        x, weight, _, of = _joined(numbers, x, self.follow, np.zeros((len(x), 0)))
        level = np.empty(len(x), dtype=np.int64)
        level[of] = which
        # By rounding, the mean of equal values may differ from them.
        x[:, effects.feature] = np.where(level < 0, x[:, effects.feature], effects.at[level])
        return Levels(effects, x, weight, level, of)

    def cells(self, used: tuple[bool, ...]) -> Cells:
        """Return cells along the features in use."""
        if used not in self._kept:
            self._kept[used] = self.whole if all(used) else self.whole.along(np.array(used))
        return self._kept[used]

    @cached
    def _kept(self) -> dict[tuple[bool, ...], Cells]:
        return {}

    @cached
    def whole(self) -> Cells:
        """The cells that hold rows."""
        x, weight, of = self.rows.x, self.follow, np.arange(len(self.rows.x))
        if x.shape[1] in MOST:
            numbers = _numbers(x, self.sides)
            x, weight, _, of = _joined(numbers, x, weight, np.zeros((len(x), 0)))
        elif len(x) > ROWS:
            some = np.sort(np.argsort(hashes(self.rows), kind="stable")[:ROWS])
            x, weight = x[some], weight[some]
            of = np.full(len(of), -1)
            of[some] = np.arange(ROWS)
        P = np.ascontiguousarray(matrix(self.basis, x).T)
        return Cells(x, weight, P, _numbers(x, self.sides), of)

    @cached
    def covariance(self) -> Covariance:
        """The joint covariance of coefficients and hyper-parameters."""
        return joint_covariance(self.fit)

    @cached
    def some(self) -> Index:
        """A sample of rows: those with the lowest hashes."""
        return np.sort(np.argsort(hashes(self.rows), kind="stable")[:ROWS])

    def moves_of_levels(self, queries: Floats, own: Own) -> MovesOfLevels:
        """Return how f moves at the other rows if there are levels of categories."""
        return MovesOfLevels(self, queries, own)


class Averaged(NamedTuple):
    """Cells: centres, Σh, the cell of each row, and the values per query and cell to average."""

    x: Floats
    weight: Floats
    of: Ints
    values: Values


class _Kept:
    """Means over windows, each computed once."""

    def means(self, stretch: Floats) -> Floats:
        """Return the means over the windows of every width, shape (q, widths)."""
        key = tuple(stretch.tolist())
        if key not in self._kept:
            self._kept[key] = self._means(stretch)
        return self._kept[key]

    def _means(self, stretch: Floats) -> Floats:
        raise NotImplementedError

    @cached
    def _kept(self) -> dict[tuple[object, ...], Floats]:
        """Results shared between stretches and widths."""
        return {}


@dataclass(frozen=True, eq=False)
class Moves(_Kept):
    """How far f moves at other rows in windows about queries, when these leave trials out.

    Parameters
    ----------
    following : Following
        How residuals depend on the process.
    queries : array of shape (q, d)
        Where trials are left out.
    turned : array of shape (q, m), or (q, m + L)
        Σ_k C φ̃_k a_k of these trials; if groups are left out, one row per group.
    own : Own or None
        The part of the query's own row, or of its group's rows, that is left out.
    """

    following: Following
    queries: Floats
    turned: Floats
    own: Own | None = None

    def _means(self, stretch: Floats) -> Floats:
        """Return the mean of φ̃′·turned over the windows of every width, shape (q, widths).

        Windows that hold no cell get the value at the query, or that of the next wider window if
        they ignore some features. Level effects are averaged over separate cells, which are wider
        along the other features.
        """
        return self._smooth(stretch) + self._of_levels(stretch)

    def _smooth(self, stretch: Floats) -> Floats:
        cells = self.following.cells(tuple((stretch > 0.0).tolist()))
        at, held = self._placed(self.queries, stretch), self._placed(cells.x, stretch)
        values = self._by_query(self._products(stretch > 0.0), np.arange(len(cells.x)))
        left = self._left(cells)
        found = window_means(at, held, values, cells.weight, stretch, left, self._kinds)
        return _filled(found, self._here, stretch)

    def _placed(self, x: Floats, stretch: Floats) -> Floats:
        """Return points, moved to cell centres along features whose levels are kept apart.

        Cells are wider than the spacing of levels, so the cell that holds a level stands for it.
        """
        sides = self.following.sides
        return np.where(stretch > 1.0, (_numbers(x, sides) + 0.5) / sides, x)

    def _products(self, used: npt.NDArray[np.bool_]) -> Floats:
        """Return φ̃′·turned for each row of `turned` and each cell along the features in use."""
        key = tuple(used.tolist())
        if ("products", *key) not in self._kept:
            found = linear.product(self._turned, self.following.cells(key).P)
            self._kept["products", *key] = found
        return self._kept["products", *key]

    @cached
    def _row(self) -> Ints:
        """The row of `turned` of each query: its own, or its group's."""
        sizes = None if self.own is None else self.own.sizes
        if sizes is None:
            return np.arange(len(self.queries))
        return np.repeat(np.arange(len(sizes)), sizes)

    @cached
    def _turned(self) -> Floats:
        return np.ascontiguousarray(self.turned[:, : len(self.following.basis.J)])

    @cached
    def _here(self) -> Floats:
        """The value at the query."""
        own = self._turned[self._row]
        return np.asarray((matrix(self.following.basis, self.queries) * own).sum(axis=1))

    def _left(self, cells: Cells) -> Left:
        """Return which cells lose weight for each query, how much, and the values they lose."""
        if self.own is None:
            return _nothing(len(self.queries))
        whole = self.following.whole
        value = np.einsum("qm,mq->q", self._turned[self._row], whole.P[:, whole.of[self.own.row]])
        return self.own.left(cells.of, np.asarray(value))

    def _of_levels(self, stretch: Floats) -> Floats:
        """Return the means of level effects, or 0 if there are none."""
        levels = self.following.levels
        if levels is None:
            return np.zeros(1)
        which = levels.effects.which(self.queries)
        own = self._effects[self._row, np.where(which < 0, len(levels.effects.at), which)]
        if stretch[levels.effects.feature] > 0.0:
            x, weight, of, values = self._of_each(levels)
        else:
            x, weight, of, values = self._beside_levels(levels, stretch > 0.0)
        left = _nothing(len(own))
        if self.own is not None:
            left = self.own.left(of, own)
        found = window_means(self.queries, x, values, weight, stretch, left, self._kinds)
        return _filled(found, own, stretch)

    @property
    def _kinds(self) -> Kinds:
        return self.following.rows.kinds

    def _beside_levels(self, levels: Levels, used: npt.NDArray[np.bool_]) -> Averaged:
        """Return cells along the other features, with level effects averaged in each."""
        cells = self.following.cells(tuple(used.tolist()))
        which, follow = levels.which[levels.of], self.following.follow
        known = (which >= 0) & (cells.of >= 0)
        mass = np.zeros((len(levels.effects.at), len(cells.x)))
        np.add.at(mass, (which[known], cells.of[known]), follow[known])
        mass /= np.maximum(cells.weight, TINY)
        values = linear.product(np.ascontiguousarray(self._effects[:, :-1]), mass)
        of_each = self._by_query(values, np.arange(len(cells.x)))
        return Averaged(cells.x, cells.weight, cells.of, of_each)

    def _of_each(self, levels: Levels) -> Averaged:
        """Return the cells of levels, with the effect of each."""
        column = np.where(levels.which < 0, len(levels.effects.at), levels.which)
        values = self._by_query(self._effects, column)
        return Averaged(levels.x, levels.weight, levels.of, values)

    def _by_query(self, table: Floats, column: Ints) -> Values:
        """Return values per query and cell, given a table with a row per row of `turned`."""
        return Values(table, self._row, column)

    @cached
    def _effects(self) -> Floats:
        """The level effects in φ̃′·turned; the last column, for points without a level, is 0."""
        effects = self.following.fit.mode.basis.root[-1] * self.turned[:, self._turned.shape[1] :]
        return np.column_stack([effects, np.zeros(len(effects))])


@dataclass(frozen=True, eq=False)
class MovesOfLevels(_Kept):
    """The same as `Moves`, for single trials and with levels of categories.

    Covariances include the levels, and are averaged over a sample of rows instead of cells.

    Parameters
    ----------
    following : Following
    queries : array of shape (q, d + columns)
        Where a trial with score 1 is left out.
    own : Own
        The part of its row that is left out.
    """

    following: Following
    queries: Floats
    own: Own

    def _means(self, stretch: Floats) -> Floats:
        """Return the mean of C over the windows of every width, shape (q, widths)."""
        rows, some = self.following.rows, self.following.some
        each = Values(self._covariances, np.arange(len(self.queries)), np.arange(len(some)))
        asked = self.queries, rows.x[some], each, self.following.follow[some], stretch
        found = window_means(*asked, self.own.left(self._of, self._here), rows.kinds)
        return _filled(found, self._here, stretch)

    @cached
    def _of(self) -> Ints:
        """The index of each row in the sample, −1 if it is not in it."""
        of = np.full(len(self.following.rows.x), -1)
        of[self.following.some] = np.arange(len(self.following.some))
        return of

    @cached
    def _here(self) -> Floats:
        """The variance at the query."""
        basis = self.following.fit.mode.basis
        return pooled(basis, self.queries).forms(self.following.covariance)

    @cached
    def _covariances(self) -> Floats:
        basis, x = self.following.fit.mode.basis, self.following.rows.x[self.following.some]
        asked, covariance = pooled(basis, self.queries), self.following.covariance
        assert isinstance(covariance, Spread)
        return asked.covariances(pooled(basis, x), covariance)


def _filled(found: Floats, here: Floats, stretch: Floats) -> Floats:
    """Return means over windows, with empty windows given the value at the query.

    Empty windows that ignore some features get the value of the next wider one instead.
    """
    if stretch.min() > 0.0:
        return np.where(np.isnan(found), here[:, None], found)
    for b in range(found.shape[1] - 2, -1, -1):
        found[:, b] = np.where(np.isnan(found[:, b]), found[:, b + 1], found[:, b])
    return found


def _nothing(count: int) -> Left:
    """Return a `Left` for this many queries that leave nothing out."""
    none = np.zeros(count, dtype=np.int64)
    return Left(none, np.zeros(count), np.zeros(count), none, none)


def followed(fit: Fit, rows: Rows, f: Floats) -> tuple[Floats, Floats, Floats]:
    """Return score and information of rows on the link's scale, and h."""
    link = fit.problem.link
    reading = read(f, rows, link)
    p, rise = link.rise(f)
    _, slope, _ = polynomial(rows.context, p, 1.0 - p)
    s = success(f, rows.context, link)
    follow = rows.n * slope**2 * p * (1.0 - p) * rise / (s.q * s.rest)
    return reading.score, reading.information, follow


def _sides(basis: Basis) -> Ints:
    """Return the number of cells per feature."""
    d = basis.J.shape[1]
    waves = np.abs(basis.J).max(axis=0) / (2.0 * (1.0 + 2.0 * basis.margin))
    waves *= [1.0 if kind in (LINE, LATITUDE) else 2.0 for kind in basis.kinds or (LINE,) * d]
    sides = np.ceil(FINENESS * waves).astype(np.int64)
    return np.clip(sides, FEWEST, MOST[d]) if d in MOST else np.full(d, ALONG)


def _numbers(x: Floats, sides: Ints) -> Ints:
    """Return the index of each point's cell along each feature."""
    return np.minimum((x * sides).astype(np.int64), sides - 1)


def _joined(
    index: Ints, x: Floats, weight: Floats, P: Floats
) -> tuple[Floats, Floats, Floats, Ints]:
    """Return, per cell, weighted means of x, Σ weight and means of P; and the cell of each row."""
    key = np.ravel_multi_index(tuple(index.T), tuple(index.max(axis=0) + 1))
    _, which = np.unique(key, return_inverse=True)
    total = np.bincount(which, weight)
    # Cells whose weights are all 0 still need a centre.
    weight = np.where(total[which] > 0.0, weight, 1.0)
    size = np.bincount(which, weight)

    def mean(values: Floats) -> Floats:
        sums = [np.bincount(which, weight * column) for column in values.T]
        return np.stack(sums, axis=1) / size[:, None] if sums else np.zeros((len(size), 0))

    return mean(x), np.asarray(total, dtype=np.float64), mean(P), which
