"""Products with the design matrix of a basis at points, Φ̃ = Φ diag(√D).

`Product`, for one to three features, never forms the matrix: it works on sums of cosines
(`cosines`). `Dense`, for more features and for those that wrap around, forms it, one block of rows
at a time if it is large. `Few` is for fits with fewer rows than functions. `Levelled` adds one
function per level of a feature to `Product` or `Dense`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from betafield._locks import cached
from betafield._rows import distinct
from betafield.process import cosines, linear, wrapped
from betafield.process.basis import ADDITIVE, Basis, Effects
from betafield.process.curvature import Arrow, Curvature, Low, Whole
from betafield.process.pooled import Pooled

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Up to this many features, sums of cosines are faster.
FEW = 3
# `Few` is used with at least this many functions per row, and at most this many trials in a row.
SPARSE, MANY = 1.5, 1e4
# Rows per block of a dense matrix, and the most entries that are kept in memory.
BLOCK, MOST_KEPT = 4_096, 1 << 24


class Design(Protocol):
    """The operations on Φ̃ that fits and posteriors need."""

    def values(self, b: Floats) -> Floats:
        """Return Φ̃b."""

    def adjoint(self, r: Floats) -> Floats:
        """Return Φ̃′r."""

    def curvature(self, weight: Floats) -> Curvature:
        """Return I + Φ̃′ diag(weight) Φ̃, factored."""

    def forms(self, S: Any) -> Floats:
        """Return φ̃′Sφ̃ for every point, S symmetric."""


class Cosines(Design, Protocol):
    """Φ̃ of a basis without levels."""

    def information(self, weight: Floats) -> Floats:
        """Return I + Φ̃′ diag(weight) Φ̃."""


@dataclass(frozen=True)
class Product:
    """Φ̃ by sums of cosines, for one to three features.

    Parameters
    ----------
    J : integer array of shape (m, 3)
        Frequencies.
    root : array of shape (m,)
        √D.
    tables : three arrays of shape (r, 2·highest frequency + 1)
        Cosines at each point.
    """

    J: Ints
    root: Floats
    tables: tuple[Floats, Floats, Floats]

    def values(self, b: Floats) -> Floats:
        """Return Φ̃b."""
        T = np.zeros(self._shape(1))
        T[tuple(self.J.T)] = b * self.root
        return cosines.contract(T, *self.tables)

    def adjoint(self, r: Floats) -> Floats:
        """Return Φ̃′r."""
        T = cosines.moments(r, *self.tables, *self._shape(1))
        return np.asarray(T[tuple(self.J.T)] * self.root)

    def curvature(self, weight: Floats) -> Curvature:
        """Return I + Φ̃′ diag(weight) Φ̃, factored."""
        return Whole.of(self.information(weight))

    def information(self, weight: Floats) -> Floats:
        """Return I + Φ̃′ diag(weight) Φ̃."""
        T = cosines.moments(weight, *self.tables, *self._shape(2))
        return cosines.gram(T, self.J, self.root)

    def forms(self, S: Floats) -> Floats:
        """Return φ̃′Sφ̃ for every point, S symmetric."""
        return cosines.contract(self.spread(S), *self.tables)

    def spread(self, S: Floats) -> Floats:
        """Return the coefficients of φ̃′Sφ̃ as a sum of cosines."""
        return cosines.spread(S, self.J, self.root, *self._shape(2))

    def _shape(self, times: int) -> tuple[int, int, int]:
        a, b, c = self._highest
        return times * a + 1, times * b + 1, times * c + 1

    @cached
    def _highest(self) -> list[int]:
        """The highest frequencies."""
        return list(map(int, self.J.max(axis=0)))


@dataclass(frozen=True)
class Dense:
    """Φ̃ as a matrix, in blocks of rows that are kept if they are not too many."""

    basis: Basis
    x: Floats

    def values(self, b: Floats) -> Floats:
        """Return Φ̃b."""
        return np.concatenate([linear.product(P, b[:, None])[:, 0] for P, _ in self._blocks()])

    def adjoint(self, r: Floats) -> Floats:
        """Return Φ̃′r."""
        parts = [linear.product(r[None, at], P)[0] for P, at in self._blocks()]
        return np.asarray(np.sum(parts, axis=0))

    def curvature(self, weight: Floats) -> Curvature:
        """Return I + Φ̃′ diag(weight) Φ̃, factored."""
        return Whole.of(self.information(weight))

    def information(self, weight: Floats) -> Floats:
        """Return I + Φ̃′ diag(weight) Φ̃."""
        A = np.eye(len(self.basis.root))
        for P, at in self._blocks():
            A += linear.weighted_gram(P, weight[at])
        return A

    def forms(self, S: Floats) -> Floats:
        """Return φ̃′Sφ̃ for every point, S symmetric."""
        return np.concatenate([(linear.product(P, S) * P).sum(axis=1) for P, _ in self._blocks()])

    def _blocks(self) -> Iterable[tuple[Floats, slice]]:
        is_small = len(self.x) * len(self.basis.root) <= MOST_KEPT
        return self._kept if is_small else self._made()

    @cached
    def _kept(self) -> list[tuple[Floats, slice]]:
        return list(self._made())

    def _made(self) -> Iterator[tuple[Floats, slice]]:
        for start in range(0, len(self.x), BLOCK):
            at = slice(start, start + BLOCK)
            yield matrix(self.basis, self.x[at]), at


@dataclass(frozen=True)
class Few:
    """Φ̃ for fewer points than functions, as a matrix P.

    With PP′ = U′U, the rows of Q = U′⁻¹P are orthonormal and span those of P = U′Q, so that
    I + P′WP = I + Q′(UWU′)Q: the matrix to factor has one row per point.
    """

    P: Floats

    def values(self, b: Floats) -> Floats:
        """Return Φ̃b."""
        return linear.product(self.P, b[:, None])[:, 0]

    def adjoint(self, r: Floats) -> Floats:
        """Return Φ̃′r."""
        return np.asarray(linear.product(r[None], self.P)[0])

    def curvature(self, weight: Floats) -> Curvature:
        """Return I + Φ̃′ diag(weight) Φ̃, factored."""
        turned, Q = self._spanned
        core = np.eye(len(turned)) + linear.weighted_gram(turned, weight)
        return Low(Whole.of(core), Q)

    def forms(self, S: Floats) -> Floats:
        """Return φ̃′Sφ̃ for every point, S symmetric."""
        return np.asarray((linear.product(self.P, S) * self.P).sum(axis=1))

    @cached
    def _spanned(self) -> tuple[Floats, Floats]:
        """U′ and Q. Repeated points have rows of mere rounding in Q, 10⁻¹⁰ of the others."""
        turned = np.ascontiguousarray(self.P.T)
        U = linear.factor(linear.product(self.P, turned))
        return np.ascontiguousarray(U.T), linear.forward(U, self.P)


@dataclass(frozen=True)
class Levelled:
    """Φ̃ of a basis whose last functions are levels of a feature.

    Within one level the cosines of that feature are constant, so sums over the rows of a level
    involve only cosines of the other features.

    Parameters
    ----------
    cosines : Cosines
        The functions before those of the levels.
    basis : Basis
        All functions.
    x : array of shape (r, d)
        The points.
    """

    cosines: Cosines
    basis: Basis
    x: Floats

    def values(self, b: Floats) -> Floats:
        """Return Φ̃b."""
        return np.asarray(self.cosines.values(b[: self._m]) + self._at(b[self._m :]))

    def adjoint(self, r: Floats) -> Floats:
        """Return Φ̃′r."""
        levels = self._tau * self._by_level(r[:, None])[:, 0]
        return np.concatenate([self.cosines.adjoint(r), levels])

    def curvature(self, weight: Floats) -> Curvature:
        """Return I + Φ̃′ diag(weight) Φ̃, factored."""
        along, which = self._levels
        across = along * self._by_level(weight[:, None] * self._others)[:, which]
        own = self._by_level(weight[:, None])[:, 0]
        A = self.cosines.information(weight)
        return Arrow.of(A, self._tau * across, 1.0 + self._tau**2 * own)

    def forms(self, S: Floats) -> Floats:
        """Return φ̃′Sφ̃ for every point, S symmetric; unseen levels add variance τ².

        If answers are averages over levels, they add nothing.
        """
        m, known = self._m, self._which
        along, which = self._levels
        across = np.zeros((len(along), self._others.shape[1]))
        np.add.at(across.T, which, (S[m:, :m] * along).T)
        cross = np.where(known < 0, 0.0, (across[known] * self._others).sum(axis=1))
        unseen = 0.0 if self._effects.is_averaged else 1.0
        own = np.where(known < 0, unseen, np.diag(S)[m:][known])
        core = self.cosines.forms(np.ascontiguousarray(S[:m, :m]))
        return np.asarray(core + 2.0 * self._tau * cross + self._tau**2 * own)

    @property
    def _m(self) -> int:
        return len(self.basis.J)

    @property
    def _tau(self) -> float:
        return float(self.basis.root[-1])

    @property
    def _effects(self) -> Effects:
        assert self.basis.effects is not None
        return self.basis.effects

    @cached
    def _which(self) -> Ints:
        return self._effects.which(self.x)

    @cached
    def _order(self) -> npt.NDArray[np.intp]:
        return np.argsort(self._which, kind="stable")

    @cached
    def _frequencies(self) -> tuple[Ints, Ints]:
        """The distinct frequencies of the other features, and the index of each function's."""
        J = self.basis.J[:, self._others_of]
        found, which = distinct(J)
        return found, which.ravel()

    @cached
    def _others(self) -> Floats:
        """Products of cosines of the other features at points, one per frequency."""
        return functions(self.basis, self.x, self._others_of, self._frequencies[0])

    @cached
    def _levels(self) -> tuple[Floats, Ints]:
        """√D times the cosines at levels (L, m), and the index of each function's frequencies."""
        effects, m = self._effects, self._m
        along = np.tile(self.basis.root[:m], (len(effects.at), 1))
        if effects.feature < self.basis.J.shape[1]:
            x = np.zeros((len(along), self.basis.J.shape[1]))
            x[:, effects.feature] = effects.at
            own = [effects.feature]
            along *= functions(self.basis, x, own, self.basis.J[:, own])
        return along, self._frequencies[1]

    @property
    def _others_of(self) -> list[int]:
        """The features without levels; if levels are groups, these are all features."""
        return [a for a in range(self.basis.J.shape[1]) if a != self._effects.feature]

    def _at(self, effects: Floats) -> Floats:
        """Return τ times the effect of each point's level."""
        return np.where(self._which < 0, 0.0, self._tau * effects[self._which])

    def _by_level(self, values: Floats) -> Floats:
        """Return sums of the rows of `values` by level."""
        out = np.zeros((len(self.basis.root) - self._m, values.shape[1]))
        ordered = self._which[self._order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        sums = np.add.reduceat(values[self._order], starts)
        known = ordered[starts] >= 0
        out[ordered[starts[known]]] = sums[known]
        return out


def design(basis: Basis, x: Floats) -> Design:
    """Return Φ̃ of a basis at points, clipped to the unit box."""
    if basis.layout is not None:
        return pooled(basis, x)
    plain = _plain(without_effects(basis), x)
    return plain if basis.effects is None else Levelled(plain, basis, x)


def of_rows(basis: Basis, x: Floats, most: float, sparse: float = SPARSE) -> Design:
    """Return Φ̃ at the rows of a fit, whose largest has `most` trials.

    Fits with at least `sparse` basis functions per row use `Few`. Queries do not, because results
    would depend on the other points of a call; nor do rows with so many trials that the part
    outside their span would be rounding.
    """
    is_few = sparse * len(x) <= len(basis.root) and most <= MANY
    return Few(matrix(basis, x)) if is_few and basis.layout is None else design(basis, x)


def pooled(basis: Basis, x: Floats) -> Pooled:
    """Return Φ̃ of a basis with levels of categories, whose coordinates follow the features."""
    assert basis.layout is not None
    d, columns = len(basis.margin), basis.layout.columns
    plain = without_effects(basis)
    which = tuple(
        column.which(x[:, d + k]) if d + k < x.shape[1] else np.full(len(x), -1)
        for k, column in enumerate(columns)
    )
    return Pooled(matrix(plain, x), plain.root, basis.layout, which)


def _plain(basis: Basis, x: Floats) -> Cosines:
    """Return Φ̃ of a basis without levels."""
    d = len(basis.margin)
    x = x[:, :d]
    if d > FEW or basis.kinds or basis.form == ADDITIVE:
        return Dense(basis, x)
    angles, highest = basis.angles(x), basis.J.max(axis=0)
    ones = [np.ones((len(x), 1))] * (FEW - d)
    tables = [cosines.table(angles[:, a], 2 * int(highest[a]) + 1) for a in range(d)]
    J = np.zeros((len(basis.J), FEW), dtype=np.int64)
    J[:, FEW - d :] = basis.J
    first, second, third = ones + tables
    return Product(J, basis.root, (first, second, third))


def without_effects(basis: Basis) -> Basis:
    """Return a basis without its levels."""
    m = len(basis.J)
    root, slope = basis.root[:m], basis.slope[:, :m]
    return basis._replace(root=root, slope=slope, effects=None, layout=None)


def matrix(basis: Basis, x: Floats) -> Floats:
    """Return Φ̃ itself, shape (r, m), or (r, m + L) with levels."""
    if basis.effects is not None:
        which = basis.effects.which(x)
        levels = which[:, None] == np.arange(len(basis.effects.at))
        return np.hstack([matrix(without_effects(basis), x), basis.root[-1] * levels])
    return basis.root * functions(basis, x, list(range(len(basis.margin))), basis.J)


def functions(basis: Basis, x: Floats, features: list[int], J: Ints) -> Floats:
    """Return products of the functions of some features at points, with frequencies J.

    Either both features of the sphere are among them, or neither.
    """
    angles = basis.angles(x[:, : len(basis.margin)])
    P = np.ones((len(x), len(J)))
    for a, j in zip(features, J.T, strict=True):
        kind = basis.kinds[a] if basis.kinds else wrapped.LINE
        if kind == wrapped.LATITUDE:
            around = basis.kinds.index(wrapped.LONGITUDE)
            P *= wrapped.sphere(x[:, around], x[:, a], J[:, features.index(around)], j)
        elif kind == wrapped.CIRCLE:
            P *= wrapped.circle(x[:, a], j)
        elif kind == wrapped.LINE and j.any():
            P *= cosines.table(angles[:, a], int(j.max()) + 1)[:, j]
    return P


def product(basis: Basis, x: Floats, A: Floats) -> Floats:
    """Return Φ̃A, using that each point has at most one level."""
    if basis.layout is not None:
        return pooled(basis, x).products(A)
    if basis.effects is None:
        return linear.product(matrix(basis, x), A)
    m, which = len(basis.J), basis.effects.which(x)
    found = linear.product(matrix(without_effects(basis), x), np.ascontiguousarray(A[:m]))
    levels = np.where(which[:, None] < 0, 0.0, A[m + which])
    return np.asarray(found + basis.root[-1] * levels)
