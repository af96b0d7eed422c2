"""Dense linear algebra whose sums are always taken in the same order.

The order of summation in libraries differs between processors and numbers of threads, so the last
bits of a fitted model would too. Matrices here have at most a few hundred rows, for which these
loops are about as fast. Each of them adds multiples of rows to a row, four at a time, which
compiles to vector instructions without changing the order.

Compiling makes users wait, so there are few kernels and they are small: loops over scalars rather
than array expressions, on arrays that NumPy has allocated, all with the same layout.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from betafield._jit import inlined, kernel

Floats = npt.NDArray[np.float64]

# Smallest pivot relative to its diagonal entry: anything less is rounding, also that of sums of
# cosines, and would grow from row to row.
SINGULAR = 1e-12
# Rows of a long matrix taken at a time, so that they stay in the processor's cache.
BLOCK = 128
# Which part of a product is computed: all of it; its lower triangle; the lower triangle of an upper
# triangular matrix times another.
WHOLE, LOWER, TRIANGLES = 0, 1, 2


@inlined
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


def factor(A: Floats) -> Floats:
    """Return the upper triangular U with U′U = A, for A positive definite.

    With 10¹⁵ trials at few places, rounding can exceed a pivot: pivots are kept positive, and the
    rest of such a row, which is rounding only, is set to 0.
    """
    U = np.triu(A)
    eliminate(U, U, True, np.empty(len(U)))
    return U


def inverse(U: Floats) -> Floats:
    """Return (U′U)⁻¹."""
    half = np.eye(len(U))  # U′⁻¹, lower triangular
    eliminate(U, half, False, np.empty(len(U)))
    return _mirrored(_multiplied(np.ascontiguousarray(half.T), half, TRIANGLES))


@kernel
def eliminate(U: Floats, X: Floats, is_factor: bool, scales: Floats) -> None:
    """Store U′⁻¹X in the lower triangle of X, or U with U′U = A in the upper one.

    In the second case X is U itself, and holds A on entry.

    Row by row, X[i] = (X[i] − Σ_k U[k, i] X[k]) / U[i, i], k < i.
    """
    m = len(U)
    for i in range(m):
        for k in range(i):
            scales[k] = -U[k, i]
        low, high = 0, i + 1
        if is_factor:
            low, high = i, m
        least = SINGULAR * X[i, i]
        add_rows(X, i, low, high, scales, X, 0, i)
        is_sound = True
        if is_factor:
            is_sound = X[i, i] >= least
            U[i, i] = np.sqrt(X[i, i] if is_sound else least)
            low = i + 1
        pivot = U[i, i]
        for j in range(low, high):
            X[i, j] = X[i, j] / pivot if is_sound else 0.0


def solve(U: Floats, y: Floats) -> Floats:
    """Return x with U′U x = y."""
    x = y.copy()
    _solve(U, x)
    return x


@kernel
def _solve(U: Floats, x: Floats) -> None:
    m = len(x)
    for i in range(m):
        x[i] /= U[i, i]
        for j in range(i + 1, m):
            x[j] -= x[i] * U[i, j]
    for i in range(m - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, m):
            total -= U[i, j] * x[j]
        x[i] = total / U[i, i]


def forward(U: Floats, Y: Floats) -> Floats:
    """Return X with U′X = Y, for Y of shape (m, k)."""
    # With rows and columns reversed, the transpose is upper triangular again.
    reverse = np.ascontiguousarray(U.T[::-1, ::-1])
    return np.ascontiguousarray(backward(reverse, np.ascontiguousarray(Y[::-1]))[::-1])


def backward(U: Floats, Y: Floats) -> Floats:
    """Return X with U X = Y, for Y of shape (m, k)."""
    X = Y.copy()
    substitute(U, X, np.empty(len(U)))
    return X


@kernel
def substitute(U: Floats, X: Floats, scales: Floats) -> None:
    """Replace X by U⁻¹X."""
    m, k = X.shape
    for i in range(m - 1, -1, -1):
        for j in range(i + 1, m):
            scales[j - i - 1] = -U[i, j]
        add_rows(X, i, 0, k, scales, X, i + 1, m - i - 1)
        for j in range(k):
            X[i, j] /= U[i, i]


def weighted_gram(P: Floats, weight: Floats) -> Floats:
    """Return P′ diag(weight) P."""
    return _mirrored(_multiplied(np.ascontiguousarray((P * weight[:, None]).T), P, LOWER))


def product(A: Floats, B: Floats) -> Floats:
    """Return AB."""
    return _multiplied(np.ascontiguousarray(A), np.ascontiguousarray(B), WHOLE)


def _multiplied(A: Floats, B: Floats, part: int) -> Floats:
    """Return a part of AB, 0 elsewhere."""
    out = np.zeros((len(A), B.shape[1]))
    add_product(A, B, part, out)
    return out


def _mirrored(A: Floats) -> Floats:
    """Return the symmetric matrix with this lower triangle; A is 0 above it."""
    return A + np.tril(A, -1).T


@kernel
def add_product(A: Floats, B: Floats, part: int, out: Floats) -> None:
    """Add a part of AB to a matrix."""
    count, high = len(B), B.shape[1]
    for start in range(0, count, BLOCK):
        for i in range(len(A)):
            first = start
            if part == TRIANGLES:
                first += i
            if part != WHOLE:
                high = i + 1
            if first < count:
                size = count - first
                size = min(size, BLOCK)
                add_rows(out, i, 0, high, A[i, first:], B, first, size)
