"""The curvature M₀ = I + Φ̃′WΦ̃ of a log posterior, factored once and used several times.

`Whole` is any such matrix. With one function per level, which interact only through the other
functions, it is an arrow matrix (`Arrow`),

    M₀ = [[A, B′], [B, diag d]],   complement A − B′ diag(d)⁻¹ B = U′U,

so that hundreds of levels cost little more than none:

    step′M₀ step = |U s₀|² + Σ d (s₁ + B s₀/d)²,   log det M₀ = 2 Σ log U_jj + Σ log d.

With fewer rows than functions, it differs from I only in the span of the rows (`Low`): if the rows
of Q are orthonormal and span it, M₀ = I + Q′(C − I)Q.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from betafield.process import linear

Floats = npt.NDArray[np.float64]


class Curvature(Protocol):
    """The operations on M₀ that scoring needs."""

    def solve(self, y: Floats) -> Floats:
        """Return M₀⁻¹y."""

    def form(self, step: Floats) -> float:
        """Return step′M₀ step."""

    def inverse(self) -> Floats:
        """Return M₀⁻¹."""

    def factor(self) -> Floats:
        """Return the upper triangular U with U′U = M₀."""

    @property
    def half_log_determinant(self) -> float:
        """½ log det M₀."""


class Whole(NamedTuple):
    """M₀ = U′U.

    Examples
    --------
    >>> import numpy as np
    >>> Whole.of(np.diag([4.0, 1.0])).solve(np.array([2.0, 3.0]))
    array([0.5, 3. ])
    """

    U: Floats

    @classmethod
    def of(cls, M: Floats) -> Whole:
        """Return the factorisation of a matrix."""
        return cls(linear.factor(M))

    def solve(self, y: Floats) -> Floats:
        """Return M₀⁻¹y."""
        return linear.solve(self.U, y)

    def form(self, step: Floats) -> float:
        """Return step′M₀ step."""
        return float(np.sum(linear.product(step[None], np.ascontiguousarray(self.U.T)) ** 2))

    def inverse(self) -> Floats:
        """Return M₀⁻¹."""
        return linear.inverse(self.U)

    def factor(self) -> Floats:
        """Return U."""
        return self.U

    @property
    def half_log_determinant(self) -> float:
        """½ log det M₀."""
        return float(np.log(np.diag(self.U)).sum())


class Low(NamedTuple):
    """M₀ = I + Q′(C − I)Q, for fewer rows than functions.

    Parameters
    ----------
    core : Whole
        C, of shape (r, r).
    Q : array of shape (r, m)
        Orthonormal rows, or zeros.

    Examples
    --------
    >>> import numpy as np
    >>> low = Low(Whole.of(np.array([[4.0]])), np.array([[0.6, 0.8]]))
    >>> low.solve(np.array([0.6, 0.8])), round(low.form(np.array([0.6, 0.8])), 9)
    (array([0.15, 0.2 ]), 4.0)
    """

    core: Whole
    Q: Floats

    def solve(self, y: Floats) -> Floats:
        """Return M₀⁻¹y."""
        z = self._within(y)
        return np.asarray(y + linear.product((self.core.solve(z) - z)[None], self.Q)[0])

    def form(self, step: Floats) -> float:
        """Return step′M₀ step."""
        z = self._within(step)
        outside = float(np.sum(step * step)) - float(np.sum(z * z))
        return max(outside, 0.0) + self.core.form(z)

    def inverse(self) -> Floats:
        """Return M₀⁻¹."""
        return self._widened(self.core.inverse())

    def factor(self) -> Floats:
        """Return the upper triangular U with U′U = M₀."""
        U = self.core.U
        return linear.factor(self._widened(linear.weighted_gram(U, np.ones(len(U)))))

    @property
    def half_log_determinant(self) -> float:
        """½ log det M₀."""
        return self.core.half_log_determinant

    def _within(self, y: Floats) -> Floats:
        """Return Qy."""
        return linear.product(self.Q, y[:, None])[:, 0]

    def _widened(self, A: Floats) -> Floats:
        """Return I + Q′(A − I)Q."""
        half = linear.product(A - np.eye(len(A)), self.Q)
        both = linear.product(np.ascontiguousarray(self.Q.T), half)
        return np.asarray(np.eye(len(both)) + 0.5 * (both + both.T))


class Arrow(NamedTuple):
    """M₀ = [[A, B′], [B, diag d]], by the factor of its Schur complement.

    Parameters
    ----------
    complement : Whole
        A − B′ diag(d)⁻¹ B.
    B : array of shape (L, m)
    d : array of shape (L,)

    Examples
    --------
    >>> import numpy as np
    >>> arrow = Arrow.of(np.array([[2.0]]), np.array([[1.0], [0.0]]), np.array([1.0, 4.0]))
    >>> arrow.inverse()
    array([[ 1.  , -1.  , -0.  ],
           [-1.  ,  2.  ,  0.  ],
           [-0.  ,  0.  ,  0.25]])
    """

    complement: Whole
    B: Floats
    d: Floats

    @classmethod
    def of(cls, A: Floats, B: Floats, d: Floats) -> Arrow:
        """Return the factorisation of an arrow matrix."""
        return cls(Whole.of(A - linear.weighted_gram(B, 1.0 / d)), B, d)

    def solve(self, y: Floats) -> Floats:
        """Return M₀⁻¹y."""
        m = self.B.shape[1]
        first = self.complement.solve(y[:m] - linear.product((y[m:] / self.d)[None], self.B)[0])
        return np.concatenate([first, y[m:] / self.d - self._through(first)])

    def form(self, step: Floats) -> float:
        """Return step′M₀ step."""
        m = self.B.shape[1]
        rest = step[m:] + self._through(step[:m])
        return self.complement.form(step[:m]) + float(np.sum(self.d * rest**2))

    def inverse(self) -> Floats:
        """Return M₀⁻¹."""
        L, m = self.B.shape
        S = np.empty((m + L, m + L))
        S[:m, :m] = self.complement.inverse()
        across = linear.product(self.B, np.ascontiguousarray(S[:m, :m])) / self.d[:, None]
        S[m:, :m], S[:m, m:] = -across, -across.T
        own = linear.product(across, np.ascontiguousarray((self.B / self.d[:, None]).T))
        S[m:, m:] = 0.5 * (own + own.T) + np.diag(1.0 / self.d)
        return S

    def factor(self) -> Floats:
        """Return the upper triangular U with U′U = M₀."""
        U = self.complement.U
        A = linear.weighted_gram(U, np.ones(len(U))) + linear.weighted_gram(self.B, 1.0 / self.d)
        return linear.factor(np.block([[A, self.B.T], [self.B, np.diag(self.d)]]))

    @property
    def half_log_determinant(self) -> float:
        """½ log det M₀."""
        return self.complement.half_log_determinant + 0.5 * float(np.log(self.d).sum())

    def _through(self, x: Floats) -> Floats:
        """Return B x/d."""
        return np.asarray(linear.product(self.B, x[:, None])[:, 0] / self.d)
