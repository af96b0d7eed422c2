"""Sums over products of cosines, in O(rows · Π 2c_a) instead of O(rows · m²).

Products of cosines are sums of cosines, cos jt cos kt = (cos (j−k)t + cos (j+k)t)/2. With

    T_p = Σ_i w_i Π_a cos p_a t_ia          `moments`, p_a up to twice the highest frequency

each entry of Φ′WΦ is a mean of 2^d of them (`gram`). Conversely, a quadratic form φ′Sφ is
Σ_p T_p Π_a cos p_a t_a with T computed from S by `spread`. `contract` evaluates such sums at
points, each in the same order whatever the other points of a call. All functions take three
features: if there are fewer, the first tables are a column of ones. Sums over points and over
frequencies are matrix products, one block of rows at a time.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from betafield.process.linear import WHOLE, add_product

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Points per block: a multiple of four, because four rows are added at once.
POINTS = 4096


def table(angle: Floats, count: int) -> Floats:
    """Return cos(j·angle) for j < count, shape (points, count).

    The recurrence is cos (j+1)t = 2 cos t cos jt − cos (j−1)t; it loses digits near 0 and π, but
    angles stay away from these.
    """
    columns = np.ones((max(count, 2), len(angle)))
    np.cos(angle, out=columns[1])
    twice = 2.0 * columns[1]
    for j in range(2, count):
        np.multiply(twice, columns[j - 1], out=columns[j])
        columns[j] -= columns[j - 2]
    return np.ascontiguousarray(columns[:count].T)


def moments(weight: Floats, C0: Floats, C1: Floats, C2: Floats, a: int, b: int, c: int) -> Floats:
    """Return T[p, q, r] = Σ_i weight_i C0[i, p] C1[i, q] C2[i, r], of shape (a, b, c)."""
    T = np.zeros((a * b, c))
    for start in range(0, len(weight), POINTS):
        at = slice(start, start + POINTS)
        scales = weight[None, at]
        if a * b > 1:  # otherwise they are ones
            # They are transposed before the product, not after, because it is much larger.
            first, second = (np.ascontiguousarray(C.T) for C in (C0[at, :a], C1[at, :b]))
            scales = ((scales * first)[:, None] * second).reshape(a * b, -1)
        add_product(scales, np.ascontiguousarray(C2[at, :c]), WHOLE, T)
    return T.reshape(a, b, c)


def contract(T: Floats, C0: Floats, C1: Floats, C2: Floats) -> Floats:
    """Return Σ_pqr T[p, q, r] C0[i, p] C1[i, q] C2[i, r] for each point i."""
    a, b, c = T.shape
    flat, out = T.reshape(a * b, c), np.empty(len(C0))
    for start in range(0, len(C0), POINTS):
        at = slice(start, start + POINTS)
        lines = np.zeros((len(C0[at]), c))
        scales = C0[at, :a, None] * C1[at, None, :b]
        add_product(scales.reshape(-1, a * b), flat, WHOLE, lines)
        lines *= C2[at, :c]
        out[at] = lines.cumsum(axis=1)[:, -1]  # adds in order, which `sum` does not
    return out


def gram(T: Floats, J: Ints, root: Floats) -> Floats:
    """Return I + R Φ′WΦ R from the moments of W, for frequencies J (m, 3) and R = diag(root)."""
    p, q, at, square = _pairs(J.tobytes(), T.shape)
    entries = 0.125 * root[p] * root[q] * _products(T, at)
    A = entries[square]
    A.ravel()[:: len(J) + 1] += 1.0
    return A


def _products(T: Floats, at: Ints) -> Floats:
    """Return the sum of the 2³ products of every pair, in this order: s and s + 4, then the next.

    Along features that there are not, two products are one, and are read once.
    """
    t, (a, b, _) = T.ravel(), T.shape
    if a == b == 1:
        return np.asarray(4.0 * (t[at[0]] + t[at[4]]))
    if a == 1:
        first, second = t[at[0]] + t[at[4]], t[at[2]] + t[at[6]]
        return np.asarray(first + first + second + second)
    each = t[at]
    pairs = each[:4] + each[4:]
    return np.asarray(pairs[0] + pairs[1] + pairs[2] + pairs[3])


def spread(S: Floats, J: Ints, root: Floats, a: int, b: int, c: int) -> Floats:
    """Return T of shape (a, b, c) with Σ T Π cos = φ′RSRφ, S symmetric: the adjoint of `gram`."""
    p, q, at, _ = _pairs(J.tobytes(), (a, b, c))
    share = 0.125 * root[p] * root[q] * S[p, q] * np.where(p == q, 1.0, 2.0)
    # bincount adds in this order.
    found: Floats = np.bincount(at.T.ravel(), np.repeat(share, len(at)), a * b * c)  # type: ignore[assignment]
    return found.reshape(a, b, c)


@functools.lru_cache(maxsize=4)
def _pairs(frequencies: bytes, shape: tuple[int, int, int]) -> tuple[Ints, Ints, Ints, Ints]:
    """Return the pairs (p, q) of frequencies, q ≤ p, and where in T their 2³ products are.

    The s-th product has sums of frequencies where bits of s are set, differences elsewhere. The
    last has the number of the pair of any two.
    """
    J = np.frombuffer(frequencies, dtype=np.int64).reshape(-1, len(shape))
    p, q = np.tril_indices(len(J))
    either = np.abs(J[p] - J[q]), J[p] + J[q]
    at = [
        np.ravel_multi_index([either[s >> a & 1][:, a] for a in range(len(shape))], shape)
        for s in range(1 << len(shape))
    ]
    square = np.empty((len(J), len(J)), dtype=np.int64)
    square[p, q] = square[q, p] = np.arange(len(p))
    return p, q, np.array(at), square
