"""Dense linear algebra whose sums are always taken in the same order.

Libraries add up in an order of their own, which differs between processors and numbers of
threads: what is learned would too, in its last bits. Matrices here have at most a few hundred
rows, where these loops are about as fast. Every one of them adds multiples of rows to a row, four
at a time, which compiles to vector instructions without changing any order. Plain loops over
scalars, rather than expressions of arrays, compile in a fraction of the time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from betafield._jit import kernel

Floats = npt.NDArray[np.float64]

# What is left of a diagonal entry at the least, in units of it: less is rounding, that of sums of
# cosines too, and would grow from row to row.
SINGULAR = 1e-12
# Rows of a long matrix taken at a time: they stay in the processor's cache.
BLOCK = 128


@kernel
def add_rows(
    out: Floats, i: int, low: int, high: int, scales: Floats, rows: Floats, first: int, count: int
) -> None:
    """Add Σ_k scales[k] rows[first + k] to out[i], k < count, in the columns from low to high."""
    whole = count - count % 4
    for k in range(0, whole, 4):
        s0, s1, s2, s3 = scales[k], scales[k + 1], scales[k + 2], scales[k + 3]
        r = first + k
        for j in range(low, high):
            out[i, j] += (s0 * rows[r, j] + s1 * rows[r + 1, j]) + (
                s2 * rows[r + 2, j] + s3 * rows[r + 3, j]
            )
    for k in range(whole, count):
        s0, r = scales[k], first + k
        for j in range(low, high):
            out[i, j] += s0 * rows[r, j]


@kernel
def factor(A: Floats) -> Floats:
    """Return the upper triangular U with U′U = A, for A positive definite.

    Of 10¹⁵ trials at few places, rounding leaves less than is there: pivots stay positive, and
    the rest of such a row, which is rounding alone, is dropped.
    """
    m = len(A)
    U, scales = np.zeros((m, m)), np.empty(m)
    for i in range(m):
        for k in range(i):
            scales[k] = -U[k, i]
        for j in range(i, m):
            U[i, j] = A[i, j]
        add_rows(U, i, i, m, scales, U, 0, i)
        least = SINGULAR * A[i, i]
        pivot = np.sqrt(max(U[i, i], least))
        is_sound = U[i, i] >= least
        U[i, i] = pivot
        for j in range(i + 1, m):
            U[i, j] = U[i, j] / pivot if is_sound else 0.0
    return U


@kernel
def solve(U: Floats, y: Floats) -> Floats:
    """Return x with U′U x = y."""
    m = len(y)
    x = y.copy()
    for i in range(m):
        x[i] /= U[i, i]
        for j in range(i + 1, m):
            x[j] -= x[i] * U[i, j]
    for i in range(m - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, m):
            total -= U[i, j] * x[j]
        x[i] = total / U[i, i]
    return x


@kernel
def backward(U: Floats, Y: Floats) -> Floats:
    """Return X with U X = Y, for Y of shape (m, k)."""
    m, k = Y.shape
    X, scales = Y.copy(), np.empty(m)
    for i in range(m - 1, -1, -1):
        for j in range(i + 1, m):
            scales[j - i - 1] = -U[i, j]
        add_rows(X, i, 0, k, scales, X, i + 1, m - i - 1)
        for j in range(k):
            X[i, j] /= U[i, i]
    return X


@kernel
def inverse(U: Floats) -> Floats:
    """Return (U′U)⁻¹."""
    m = len(U)
    half, S, scales = np.zeros((m, m)), np.zeros((m, m)), np.empty(m)
    for i in range(m):  # half = U′⁻¹, lower triangular
        for k in range(i):
            scales[k] = -U[k, i]
        add_rows(half, i, 0, i, scales, half, 0, i)
        half[i, i] = 1.0
        for j in range(i + 1):
            half[i, j] /= U[i, i]
    for i in range(m):  # S = half′ half
        for k in range(i, m):
            scales[k - i] = half[k, i]
        add_rows(S, i, 0, i + 1, scales, half, i, m - i)
        for j in range(i):
            S[j, i] = S[i, j]
    return S


@kernel
def weighted_gram(P: Floats, weight: Floats) -> Floats:
    """Return P′ diag(weight) P."""
    count, m = P.shape
    A, scales = np.zeros((m, m)), np.empty(BLOCK)
    for start in range(0, count, BLOCK):
        size = min(BLOCK, count - start)
        for i in range(m):
            for k in range(size):
                scales[k] = weight[start + k] * P[start + k, i]
            add_rows(A, i, 0, i + 1, scales, P, start, size)
    for i in range(m):
        for j in range(i):
            A[j, i] = A[i, j]
    return A


@kernel
def product(A: Floats, B: Floats) -> Floats:
    """Return AB."""
    out, scales = np.zeros((len(A), B.shape[1])), np.empty(len(B))
    for i in range(len(A)):
        for k in range(len(B)):
            scales[k] = A[i, k]
        add_rows(out, i, 0, B.shape[1], scales, B, 0, len(B))
    return out
