"""How far the others move when trials leave the process: windows would otherwise see them.

The residuals of the other trials are those of a process that has seen what is left out. Without it
f moves by −C_jL a_L at j, C the joint posterior covariance of f, so Σg over a window gains

    Σ_{j ∉ L in the window} h_j C_jL a_L,   h_j = n_j (dq/dπ)² m(1−m) (dπ/df)/(q(1−q)),

for one trial a = g/(1 − vw). Leaving this out, or bounding it, lets left-out outcomes leak into
their own score. C is as smooth as the highest frequency of the basis, so the sum is taken as Σ h_j
over the window, which trees add up, times the mean of C over the window's cells on a grid that is
fine enough for that frequency; with four features and more, over its rows among some of lowest
hash.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process import linear
from betafield.process.basis import Basis
from betafield.process.design import design, matrix, without_effects
from betafield.process.fit import Fit, hashes
from betafield.process.ladder import Left, window_means
from betafield.process.leaving import joint_covariance
from betafield.process.likelihood import polynomial, read, success
from betafield.process.rows import Rows

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Index = npt.NDArray[np.intp]

# Cells per wave of the highest frequency, fewest and most cells of a feature.
FINENESS, FEWEST, MOST = 8.0, 4, {1: 256, 2: 40, 3: 16}
# With more features: cells along one of them, and rows of lowest hash in the place of cells.
ALONG, ROWS = 32, 1_500


class Own(NamedTuple):
    """What queries leave out themselves.

    Parameters
    ----------
    row : index array of shape (q,)
        Of which row it is.
    h : array of shape (q,)
        How its scores follow the process.
    """

    row: Index
    h: Floats


class Cells(NamedTuple):
    """Cells of rows, over which covariances are averaged.

    Parameters
    ----------
    x : array of shape (c, d)
        Their centres.
    weight : array of shape (c,)
        Σh.
    P : array of shape (m, c), or (m + L, c)
        Means of φ̃.
    numbers : integer array of shape (c, d)
        Their numbers along each feature.
    which : integer array of shape (c,) or None
        Their levels, if P lacks them.
    basis : Basis
        The functions.
    of : integer array of shape (r,)
        Which cell every row is in, −1 if in none.
    """

    x: Floats
    weight: Floats
    P: Floats
    numbers: Ints
    which: Ints | None
    basis: Basis
    of: Ints

    def products(self, turned: Floats) -> Floats:
        """Return φ̃′·turned for every query and cell."""
        m = len(self.P)
        found = linear.product(np.ascontiguousarray(turned[:, :m]), self.P)
        if self.which is not None:
            found += self.basis.root[-1] * turned[:, m + self.which]
        return found

    def paired(self, turned: Floats, at: Ints) -> Floats:
        """Return φ̃′·turned for every query and a cell of its own."""
        m = len(self.P)
        found = np.einsum("qm,mq->q", turned[:, :m], self.P[:, at])
        if self.which is not None:
            found += self.basis.root[-1] * turned[np.arange(len(at)), m + self.which[at]]
        return np.asarray(found)

    def along(self, used: tuple[bool, ...]) -> Cells:
        """Return the cells joined to those along some features."""
        P = self.P.T if self.which is None else matrix(self.basis, self.x)
        x, weight, P, joint = _joined(self.numbers[:, np.array(used)], self.x, self.weight, P)
        of = np.where(self.of >= 0, joint[self.of], -1)
        return Cells(x, weight, np.ascontiguousarray(P.T), self.numbers[:0], None, self.basis, of)


@dataclass(frozen=True, eq=False)
class Following:
    """How residuals of rows follow a process.

    Parameters
    ----------
    fit : Fit
        The process.
    rows : Rows
        Where residuals are.
    follow : array of shape (r,)
        h.
    """

    fit: Fit
    rows: Rows
    follow: Floats

    @classmethod
    def of(cls, fit: Fit, rows: Rows) -> Following:
        """Return how residuals at rows follow a process."""
        f = design(fit.mode.basis, rows.x).values(fit.mode.b)
        return cls(fit, rows, followed(fit, rows, f)[2])

    def means(
        self, queries: Floats, turned: Floats, stretch: Floats, own: Own | None = None
    ) -> Floats:
        """Return the mean of φ̃′·turned over the windows of every width, shape (q, widths).

        `turned` (q, m) has Σ_k C φ̃_k a_k of what a query leaves out; `own` says what of its cell
        that is, for C is largest there. Windows that hold no cell have the value at the query, or
        the next wider one's if they look at some features only.
        """
        cells = self._cells(tuple((stretch > 0.0).tolist()))
        left = self._left(turned, cells, own)
        found = window_means(queries, cells.x, cells.products(turned), cells.weight, stretch, left)
        if stretch.min() > 0.0:
            here = (matrix(self.fit.mode.basis, queries) * turned).sum(axis=1)
            return np.where(np.isnan(found), here[:, None], found)
        for b in range(found.shape[1] - 2, -1, -1):
            found[:, b] = np.where(np.isnan(found[:, b]), found[:, b + 1], found[:, b])
        return found

    def _left(self, turned: Floats, cells: Cells, own: Own | None) -> Left:
        """Return which place of a query has less weight, by how much, and the value of that."""
        if own is None:
            none = np.zeros(len(turned))
            return Left(np.full(len(turned), -1), none, none)
        whole = self._whole
        return Left(cells.of[own.row], own.h, whole.paired(turned, whole.of[own.row]))

    def _cells(self, used: tuple[bool, ...]) -> Cells:
        """Return cells along the features in use."""
        if used not in self._kept:
            self._kept[used] = self._whole if all(used) else self._whole.along(used)
        return self._kept[used]

    @functools.cached_property
    def _kept(self) -> dict[tuple[bool, ...], Cells]:
        return {}

    @functools.cached_property
    def _whole(self) -> Cells:
        """Return the cells that hold rows."""
        basis, x, weight = self.fit.mode.basis, self.rows.x, self.follow
        sides, of = _sides(basis), np.arange(len(x))
        if x.shape[1] in MOST:
            x, weight, _, of = _joined(_numbers(x, sides, basis), x, weight, np.zeros((len(x), 0)))
        elif len(x) > ROWS:
            some = np.sort(np.argsort(hashes(self.rows), kind="stable")[:ROWS])
            x, weight = x[some], weight[some]
            of = np.full(len(of), -1)
            of[some] = np.arange(ROWS)
        index, which = _numbers(x, sides, basis), None
        if basis.effects is not None:
            which = index[:, basis.effects.feature]
            x[:, basis.effects.feature] = basis.effects.at[which]
        P = matrix(without_effects(basis), x)
        return Cells(x, weight, np.ascontiguousarray(P.T), index, which, basis, of)

    @functools.cached_property
    def covariance(self) -> Floats:
        """The joint covariance of coefficients and hyper-parameters."""
        return joint_covariance(self.fit)


def followed(fit: Fit, rows: Rows, f: Floats) -> tuple[Floats, Floats, Floats]:
    """Return score and information of rows on the link's scale, and h, how scores follow f."""
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
    waves = basis.J.max(axis=0) / (2.0 * (1.0 + 2.0 * basis.margin))
    sides = np.ceil(FINENESS * waves).astype(np.int64)
    return np.clip(sides, FEWEST, MOST[d]) if d in MOST else np.full(d, ALONG)


def _numbers(x: Floats, sides: Ints, basis: Basis) -> Ints:
    """Return in which cell along each feature points are; levels with effects are cells."""
    index = np.minimum((x * sides).astype(np.int64), sides - 1)
    if basis.effects is not None:
        middles = 0.5 * (basis.effects.at[1:] + basis.effects.at[:-1])
        index[:, basis.effects.feature] = np.searchsorted(middles, x[:, basis.effects.feature])
    return index


def _joined(
    index: Ints, x: Floats, weight: Floats, P: Floats
) -> tuple[Floats, Floats, Floats, Ints]:
    """Return weighted means of x, the weights, and means of P, by cell; and who is in which."""
    key = np.ravel_multi_index(tuple(index.T), tuple(index.max(axis=0) + 1))
    _, which = np.unique(key, return_inverse=True)
    total = np.bincount(which, weight)
    # Rows that nothing follows still have a place.
    weight = np.where(total[which] > 0.0, weight, 1.0)
    size = np.bincount(which, weight)

    def mean(values: Floats) -> Floats:
        sums = [np.bincount(which, weight * column) for column in values.T]
        return np.stack(sums, axis=1) / size[:, None] if sums else np.zeros((len(size), 0))

    return mean(x), np.asarray(total, dtype=np.float64), mean(P), which
