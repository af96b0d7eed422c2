"""Products with a basis whose last functions are levels of categories, and their curvature.

Levels of the longest column interact only through the functions before theirs, the core (the
shared functions, and levels of other columns). With Ψ the functions of its levels and P the core,

    M₀ = [[A, C₁′, C₂′, …], [C₁, A₁, ], [C₂, , A₂], …],   A_c = I + Ψ_c′WΨ_c,   C_c = Ψ_c′WP_c,

a block-arrow matrix. With A_c = U_c′U_c, R_c = U_c⁻¹ and B_c = R_c′C_c, its Schur complement is
A − Σ B_c′B_c; thousands of levels cost O(Σ k² (k + m)), with k functions per level and m in the
core. With S₀ the inverse of the complement and H_c = R_cB_c,

    M₀⁻¹ = [[S₀, −S₀H_c′], [−H_cS₀, R_cR_c′ + H_cS₀H_c′]],

and the variance of f at a point of level c is |R_c′ψ|² + e′S₀e, e = p − H_c′ψ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield._jit import kernel
from betafield._locks import cached
from betafield.process import linear
from betafield.process.blocks import Effects, Layout
from betafield.process.curvature import Whole

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@kernel
def eliminated(
    P: Floats, weight: Floats, starts: Ints, low: Ints, ratio: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return U_c, R_c and B_c of all levels; the rows of level c begin at starts[c]."""
    L, k, m = len(starts) - 1, len(low), P.shape[1]
    U, R, B = np.zeros((L, k, k)), np.zeros((L, k, k)), np.zeros((L, k, m))
    some = np.empty(k)
    for c in range(L):
        first, size = starts[c], starts[c + 1] - starts[c]
        scales, C = np.empty(size), np.zeros((k, m))
        for i in range(k):
            for r in range(size):
                scales[r] = ratio[i] * weight[first + r] * P[first + r, low[i]]
            linear.add_rows(C, i, 0, m, scales, P, first, size)
        for i in range(k):
            for j in range(i, k):
                U[c, i, j] = C[i, low[j]] * ratio[j]
            U[c, i, i] += 1.0
            R[c, i, i] = 1.0
        linear.eliminate(U[c], U[c], True, some)
        linear.substitute(U[c], R[c], some)
        for i in range(k):
            linear.add_rows(B[c], i, 0, m, R[c, :, i].copy(), C, 0, k)
    return U, R, B


@kernel
def reduced(
    P: Floats, which: Ints, low: Ints, ratio: Floats, R: Floats, H: Floats
) -> tuple[Floats, Floats]:
    """Return e = p − H_c′ψ and |R_c′ψ|² per row; p and |ψ|² for rows without a known level."""
    k, m = len(low), P.shape[1]
    E, own, psi = P.copy(), np.zeros(len(P)), np.empty(k)
    for r in range(len(P)):
        c = which[r]
        for i in range(k):
            psi[i] = ratio[i] * P[r, low[i]]
        if c < 0:
            for i in range(k):
                own[r] += psi[i] * psi[i]
            continue
        for j in range(k):
            total = 0.0
            for i in range(j + 1):  # R is upper triangular
                total += R[c, i, j] * psi[i]
            own[r] += total * total
        for i in range(k):
            for j in range(m):
                E[r, j] -= psi[i] * H[c, i, j]
    return E, own


class Spread(NamedTuple):
    """M₀⁻¹ by its parts, plus the covariance moves′ · theta · moves.

    Parameters
    ----------
    core : array of shape (m, m)
        S₀.
    R : array of shape (L, k, k)
    H : array of shape (L, k, m)
    moves : array of shape (p, m + Lk)
        ∂b/∂θ; if empty, nothing is added.
    theta : array of shape (p, p)
        The covariance of θ.
    """

    core: Floats
    R: Floats
    H: Floats
    moves: Floats
    theta: Floats

    def widened(self, moves: Floats, theta: Floats) -> Spread:
        """Return the same with the uncertainty of the hyper-parameters added."""
        return self._replace(moves=moves, theta=theta)

    def times(self, y: Floats) -> Floats:
        """Return the product with a vector."""
        m, (L, k, _) = len(self.core), self.H.shape
        levels, flat = y[m:].reshape(L, k), self.H.reshape(L * k, m)
        rest = y[:m] - linear.product(np.ascontiguousarray(y[None, m:]), flat)[0]
        first = linear.product(rest[None], self.core)[0]
        own = np.einsum("cij,cj->ci", self.R, np.einsum("cij,ci->cj", self.R, levels))
        found = np.concatenate([first, own.ravel() - (flat * first).sum(axis=1)])
        if not self.moves.size:
            return found
        along = (self.moves * y).sum(axis=1)
        pulled = linear.product((self.theta * along).sum(axis=1)[None], self.moves)[0]
        return np.asarray(found + pulled)

    def diagonal(self) -> Floats:
        """Return the diagonal of M₀⁻¹."""
        L, k, m = self.H.shape
        flat = self.H.reshape(L * k, m)
        own = (self.R**2).sum(axis=2).ravel() + (linear.product(flat, self.core) * flat).sum(axis=1)
        return np.concatenate([np.diag(self.core), own])


# A covariance of coefficients, without levels of categories and with them.
Covariance = Floats | Spread


class Blocked(NamedTuple):
    """M₀ as a factored block-arrow matrix: the `Curvature` of `Pooled`.

    Parameters
    ----------
    complement : Whole
        A − Σ B_c′B_c.
    U, R : array of shape (L, k, k)
    B : array of shape (L, k, m)
    """

    complement: Whole
    U: Floats
    R: Floats
    B: Floats

    def solve(self, y: Floats) -> Floats:
        """Return M₀⁻¹y."""
        flat, m = self._flat, self.B.shape[2]
        z = np.einsum("cij,ci->cj", self.R, y[m:].reshape(self.B.shape[:2]))
        first = self.complement.solve(y[:m] - linear.product(z.reshape(1, -1), flat)[0])
        return np.concatenate([first, self._back(first, z).ravel()])

    def _back(self, first: Floats, z: Floats) -> Floats:
        """Return R_c (z_c − B_c x₀)."""
        left = z - (self._flat * first).sum(axis=1).reshape(z.shape)
        return np.asarray(np.einsum("cij,cj->ci", self.R, left))

    def form(self, step: Floats) -> float:
        """Return step′M₀ step."""
        m = self.B.shape[2]
        own = np.einsum("cij,cj->ci", self.U, step[m:].reshape(self.B.shape[:2]))
        through = (self._flat * step[:m]).sum(axis=1)
        return self.complement.form(step[:m]) + float(np.sum((own.ravel() + through) ** 2))

    def spread(self) -> Spread:
        """Return M₀⁻¹ by its parts."""
        H = np.einsum("cij,cjl->cil", self.R, self.B)
        nothing = np.zeros((0, 0))
        return Spread(self.complement.inverse(), self.R, H, nothing, nothing)

    def drawn(self, z: Floats) -> Floats:
        """Return steps (size, n) with covariance M₀⁻¹, from standard normal numbers."""
        m = self.B.shape[2]
        first = linear.backward(self.complement.U, np.ascontiguousarray(z[:m]))
        left = z[m:] - linear.product(self._flat, first)
        levels = np.einsum("cij,cjn->cin", self.R, left.reshape(*self.B.shape[:2], -1))
        return np.concatenate([first, levels.reshape(len(z) - m, -1)])

    def inverse(self) -> Floats:
        """Return M₀⁻¹ as a full matrix, with one row per coefficient."""
        spread = self.spread()
        return np.stack([spread.times(row) for row in np.eye(self._size)])

    def factor(self) -> Floats:
        """Return the upper triangular U with U′U = M₀."""
        return linear.factor(linear.inverse(linear.factor(self.inverse())))

    def squares(self) -> tuple[Floats, Floats, Floats]:
        """Return the squared entries of I − M₀⁻¹: core, core with levels, and levels.

        They have shapes (m, m), (k, m) and (k, k), because they are summed over levels. Between
        different levels,

            Σ_{c,c′} (h_ci′S₀h_c′j)² = ⟨K_i, K_j⟩,   K_i = Σ_c Z′h_ci h_ci′Z,   S₀ = ZZ′.
        """
        L, k, m = self.B.shape
        S, one = self.spread(), np.eye(k)
        flat = S.H.reshape(L * k, m)
        across = linear.product(flat, S.core)
        near = np.einsum("cij,clj->cil", across.reshape(L, k, m), S.H)
        own = np.einsum("cij,clj->cil", S.R, S.R) + near
        T = linear.product(flat, linear.backward(self.complement.U, np.eye(m))).reshape(L, k, m)
        K = [linear.weighted_gram(np.ascontiguousarray(T[:, i]), np.ones(L)) for i in range(k)]
        pairs = np.array([[np.sum(a * b) for b in K] for a in K])
        levels = pairs + ((one - own) ** 2 - near**2).sum(axis=0)
        between = (across**2).reshape(L, k, m).sum(axis=0)
        return (np.eye(m) - S.core) ** 2, between, levels

    @property
    def half_log_determinant(self) -> float:
        """½ log det M₀."""
        own = float(np.log(np.einsum("cii->ci", self.U)).sum())
        return self.complement.half_log_determinant + own

    @property
    def _flat(self) -> Floats:
        L, k, m = self.B.shape
        return self.B.reshape(L * k, m)

    @property
    def _size(self) -> int:
        L, k, m = self.B.shape
        return int(m + L * k)


class Loose(NamedTuple):
    """A distribution of coefficients that includes the uncertainty of the hyper-parameters.

    Parameters
    ----------
    curvature : Blocked
    moves : array of shape (p, size)
        ∂b/∂θ.
    root : array of shape (p, p)
        U, upper triangular, with U′U the covariance of θ.
    """

    curvature: Blocked
    moves: Floats
    root: Floats

    def drawn(self, z: Floats, e: Floats) -> Floats:
        """Return steps (size, n) from standard normal numbers (size, n) and (p, n)."""
        steps = linear.product(np.ascontiguousarray(self.root.T), e)
        along = linear.product(np.ascontiguousarray(self.moves.T), steps)
        return np.asarray(self.curvature.drawn(z) + along)


@dataclass(frozen=True, eq=False)
class Pooled:
    """Φ̃ of the shared functions and of levels.

    Parameters
    ----------
    plain : array of shape (r, m)
        √D φ of the shared functions.
    root : array of shape (m,)
        √D.
    layout : Layout
        The coefficients of the levels.
    which : tuple of integer arrays of shape (r,)
        The level of each row, per column, −1 if unseen.
    """

    plain: Floats
    root: Floats
    layout: Layout
    which: tuple[Ints, ...]

    def values(self, b: Floats) -> Floats:
        """Return Φ̃b."""
        return self.products(b[:, None])[:, 0]

    def products(self, A: Floats) -> Floats:
        """Return Φ̃A."""
        m = self.plain.shape[1]
        out = linear.product(self.plain, np.ascontiguousarray(A[:m]))
        for k in range(len(self.layout.columns)):
            (psi, _), of, which = self._seen(k), self._of(A, k), np.maximum(self.which[k], 0)
            if A.shape[1] == 1:
                out[:, 0] += (psi * of[:, :, 0][which]).sum(axis=1)
                continue
            for j in range(psi.shape[1]):
                out += psi[:, j, None] * of[which, j]
        return out

    def adjoint(self, r: Floats) -> Floats:
        """Return Φ̃′r."""
        out = np.zeros(self.layout.size)
        m = self.plain.shape[1]
        out[:m] = linear.product(r[None], self.plain)[0]
        for k, column in enumerate(self.layout.columns):
            (psi, at), first = self._seen(k), self.layout.first[k]
            size = column.size * psi.shape[1]
            out[first : first + size] = np.bincount(at, (psi * r[:, None]).ravel(), size)
        return out

    def curvature(self, weight: Floats) -> Blocked:
        """Return I + Φ̃′ diag(weight) Φ̃, factored."""
        P, order, starts = self._sorted
        W, (low, ratio) = weight[order], self._last
        U, R, B = eliminated(P, W, starts, low, ratio)
        A = np.eye(P.shape[1]) + linear.weighted_gram(P, W)
        flat = B.reshape(-1, P.shape[1])
        A -= linear.weighted_gram(flat, np.ones(len(flat)))
        return Blocked(Whole.of(A), U, R, B)

    def forms(self, S: Any) -> Floats:
        """Return φ̃′Sφ̃ for every point; unseen levels have their prior variance."""
        last = self.layout.last
        E, own = reduced(self._core, self.which[last], *self._last, S.R, S.H)
        found = (linear.product(E, S.core) * E).sum(axis=1)
        for k, column in enumerate(self.layout.columns):
            if k == last:
                is_known = self.which[k] >= 0
                found += np.where(is_known | (not column.is_averaged), own, 0.0)
            elif not column.is_averaged:
                found += np.where(self.which[k] < 0, (self._psi(k) ** 2).sum(axis=1), 0.0)
        if S.moves.size:
            J = self.products(np.ascontiguousarray(S.moves.T))
            found += (linear.product(J, S.theta) * J).sum(axis=1)
        return np.asarray(found)

    def covariances(self, other: Pooled, S: Spread) -> Floats:
        """Return φ̃′Sφ̃ between the points of this and another design, all of seen levels.

        It is e′S₀e, plus ψ′R_cR_c′ψ within a level of the longest column.
        """
        E, F = (reduced(each._core, each._at, *each._last, S.R, S.H)[0] for each in (self, other))
        found = linear.product(linear.product(E, S.core), np.ascontiguousarray(F.T))
        A, B = self._rooted(S), other._rooted(S)
        is_one = self._at[:, None] == other._at
        found += np.where(is_one, linear.product(A, np.ascontiguousarray(B.T)), 0.0)
        if S.moves.size:
            J, K = (each.products(np.ascontiguousarray(S.moves.T)) for each in (self, other))
            found += linear.product(linear.product(J, S.theta), np.ascontiguousarray(K.T))
        return np.asarray(found)

    @property
    def _at(self) -> Ints:
        """The levels of the longest column."""
        return self.which[self.layout.last]

    def _rooted(self, S: Spread) -> Floats:
        """Return R_c′ψ for every point."""
        return np.asarray(np.einsum("rij,ri->rj", S.R[self._at], self._psi(self.layout.last)))

    def unseen(self) -> list[tuple[int, Floats]]:
        """Return ψ at points of unseen levels, 0 elsewhere, for each column with such points."""
        found = []
        for k, column in enumerate(self.layout.columns):
            is_new = self.which[k] < 0
            if is_new.any() and not column.is_averaged:
                found.append((k, np.where(is_new[:, None], self._psi(k), 0.0)))
        return found

    def _effects(self, k: int) -> Effects:
        return self.layout.effects[k]

    def _psi(self, k: int) -> Floats:
        """Return the functions of the effects of a column at points."""
        if k not in self._known:
            low, root, _ = self._effects(k)
            self._known[k] = self.plain[:, low] * (root / self.root[low])
        return self._known[k]

    @cached
    def _known(self) -> dict[int, Floats]:
        """The values of `_psi` computed so far."""
        return {}

    def _seen(self, k: int) -> tuple[Floats, Ints]:
        """Return `_psi`, 0 at unseen levels, and the coefficient of each of its values."""
        if k not in self._known_seen:
            psi = np.where(self.which[k][:, None] < 0, 0.0, self._psi(k))
            width = psi.shape[1]
            at = width * np.maximum(self.which[k], 0)[:, None] + np.arange(width)
            self._known_seen[k] = psi, at.ravel()
        return self._known_seen[k]

    @cached
    def _known_seen(self) -> dict[int, tuple[Floats, Ints]]:
        """The values of `_seen` computed so far."""
        return {}

    def _of(self, A: Floats, k: int) -> Floats:
        """Return the rows of a matrix that belong to a column's levels, (L, functions, n)."""
        first, count = self.layout.first[k], self.layout.columns[k].size
        width = len(self._effects(k).low)
        return A[first : first + count * width].reshape(count, width, -1)

    @cached
    def _last(self) -> tuple[Ints, Floats]:
        """The core functions of the longest column's levels, and the factors on them."""
        low, root, _ = self._effects(self.layout.last)
        return low, root / self.root[low]

    @cached
    def _core(self) -> Floats:
        """The functions before those of the longest column's levels, at points."""
        m, layout = self.plain.shape[1], self.layout
        if layout.core == m:
            return self.plain
        P = np.zeros((len(self.plain), layout.core))
        P[:, :m] = self.plain
        for k in range(len(layout.columns)):
            if k != layout.last:
                psi, known = self._psi(k), np.flatnonzero(self.which[k] >= 0)
                at = layout.first[k] + self.which[k][known] * psi.shape[1]
                for j in range(psi.shape[1]):
                    P[known, at + j] = psi[known, j]
        return P

    @cached
    def _sorted(self) -> tuple[Floats, npt.NDArray[np.intp], Ints]:
        """The core sorted by level of the longest column, the order, and where levels start."""
        last = self.layout.last
        order = np.argsort(self.which[last], kind="stable")
        levels = np.arange(self.layout.columns[last].size + 1)
        starts = np.searchsorted(self.which[last][order], levels).astype(np.int64)
        return np.ascontiguousarray(self._core[order]), order, starts
