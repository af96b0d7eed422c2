"""Isotonic regression of curves, by pooling adjacent violators."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from betafield._jit import kernel

Floats = npt.NDArray[np.float64]


def isotonic(curves: Floats, sign: int = 1) -> Floats:
    """Return, per row, the non-decreasing curve m with the least Σ_j (m_j − c_j)².

    With `sign` −1 it is non-increasing. A curve that is already monotone is unchanged, and a curve
    that lies above another stays above it.

    Parameters
    ----------
    curves : array of shape (r, n)
        One curve per row, at equally weighted points.
    sign : {1, -1}, default=1
        1 for non-decreasing curves, −1 for non-increasing ones.

    Examples
    --------
    >>> import numpy as np
    >>> isotonic(np.array([[0.0, 0.5, 0.3, 1.0]])).tolist()
    [[0.0, 0.4, 0.4, 1.0]]
    >>> isotonic(np.array([[0.0, 0.5, 0.3, 1.0]]), -1).tolist()
    [[0.45, 0.45, 0.45, 0.45]]
    """
    given = np.ascontiguousarray(curves, dtype=np.float64)
    return _pooled(given) if sign > 0 else -_pooled(-given)


@kernel
def _pooled(curves: Floats) -> Floats:
    """Return non-decreasing rows; neighbours that decrease are pooled at their mean."""
    count, n = curves.shape
    out, value, size = np.empty((count, n)), np.empty(n), np.empty(n, dtype=np.int64)
    for i in range(count):
        k = 0
        for j in range(n):
            value[k] = curves[i, j]
            size[k] = 1
            k += 1
            while k > 1 and value[k - 2] > value[k - 1]:
                whole = size[k - 2] + size[k - 1]
                share = size[k - 1] / whole
                value[k - 2] += share * (value[k - 1] - value[k - 2])
                size[k - 2] = whole
                k -= 1
        j = 0
        for block in range(k):
            for _ in range(size[block]):
                out[i, j] = value[block]
                j += 1
    return out
