"""Sums over products of cosines, in O(rows · Π 2c_a) where dense ones take O(rows · m²).

Products of cosines are sums of cosines, cos jt cos kt = (cos (j−k)t + cos (j+k)t)/2. With

    T_p = Σ_i w_i Π_a cos p_a t_ia          `moments`, p_a up to twice the highest frequency

every entry of Φ′WΦ is a mean of 2^d of them (`gram`); and read backwards a quadratic form φ′Sφ is
Σ_p T_p Π_a cos p_a t_a for T that `spread` makes from S. `contract` evaluates such sums at points,
each in the same order whichever points are asked with it. One to three features: with fewer, the
first tables are a column of ones.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from betafield._jit import inlined, kernel
from betafield.process.linear import BLOCK, add_rows

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def table(angle: Floats, count: int) -> Floats:
    """Return cos(j·angle) for j < count, shape (points, count).

    By cos (j+1)t = 2 cos t cos jt − cos (j−1)t: angles keep away from 0 and π, where that would
    lose digits.
    """
    columns = np.ones((max(count, 2), len(angle)))
    np.cos(angle, out=columns[1])
    twice = 2.0 * columns[1]
    for j in range(2, count):
        np.multiply(twice, columns[j - 1], out=columns[j])
        columns[j] -= columns[j - 2]
    return np.ascontiguousarray(columns[:count].T)


@kernel
def moments(weight: Floats, C0: Floats, C1: Floats, C2: Floats, a: int, b: int, c: int) -> Floats:
    """Return T[p, q, r] = Σ_i weight_i C0[i, p] C1[i, q] C2[i, r], of shape (a, b, c)."""
    T, scales = np.zeros((a * b, c)), np.empty(BLOCK)
    for start in range(0, len(weight), BLOCK):
        size = min(BLOCK, len(weight) - start)
        for p in range(a):
            for q in range(b):
                for k in range(size):
                    i = start + k
                    scales[k] = weight[i] * C0[i, p] * C1[i, q]
                add_rows(T, p * b + q, 0, c, scales, C2, start, size)
    return T.reshape(a, b, c)


@kernel
def contract(T: Floats, C0: Floats, C1: Floats, C2: Floats) -> Floats:
    """Return Σ_pqr T[p, q, r] C0[i, p] C1[i, q] C2[i, r] for every point i."""
    a, b, c = T.shape
    flat, scales, line = T.reshape(a * b, c), np.empty(a * b), np.empty((1, c))
    out = np.zeros(len(C0))
    for i in range(len(C0)):
        for p in range(a):
            for q in range(b):
                scales[p * b + q] = C0[i, p] * C1[i, q]
        for r in range(c):
            line[0, r] = 0.0
        add_rows(line, 0, 0, c, scales, flat, 0, a * b)
        for r in range(c):
            out[i] += line[0, r] * C2[i, r]
    return out


@kernel
def gram(T: Floats, J: Ints, root: Floats) -> Floats:
    """Return I + R Φ′WΦ R from the moments of W, for frequencies J (m, 3) and R = diag(root)."""
    m = len(J)
    A = np.empty((m, m))
    for p in range(m):
        for q in range(p + 1):
            total = 0.0
            for s in range(4):
                x, y = _either(J, p, q, 0, s & 1), _either(J, p, q, 1, s >> 1)
                total += T[x, y, _either(J, p, q, 2, 0)] + T[x, y, _either(J, p, q, 2, 1)]
            A[p, q] = 0.125 * root[p] * root[q] * total
            A[q, p] = A[p, q]
        A[p, p] += 1.0
    return A


@kernel
def spread(S: Floats, J: Ints, root: Floats, a: int, b: int, c: int) -> Floats:
    """Return T of shape (a, b, c) with Σ T Π cos = φ′RSRφ, S symmetric: `gram` read backwards."""
    T = np.zeros((a, b, c))
    for p in range(len(J)):
        for q in range(p + 1):
            share = 0.125 * root[p] * root[q] * S[p, q] * (1.0 if p == q else 2.0)
            for s in range(8):
                x, y = _either(J, p, q, 0, s & 1), _either(J, p, q, 1, s >> 1 & 1)
                T[x, y, _either(J, p, q, 2, s >> 2)] += share
    return T


@inlined
def _either(J: Ints, p: int, q: int, a: int, is_sum: int) -> int:
    """Return the sum or the difference of two frequencies of a feature."""
    j: int = J[p, a]
    k: int = J[q, a]
    return j + k if is_sum else abs(j - k)
