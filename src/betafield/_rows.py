"""Distinct rows of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from betafield._interrupts import held


def distinct(rows: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Return the distinct rows, sorted, and the index of each row among them.

    Interrupts are deferred: NumPy compares rows in Python code, and if an exception occurs there,
    it reports that they cannot be compared.

    Examples
    --------
    >>> rows, which = distinct(np.array([[0.5, 1.0], [0.0, 1.0], [0.5, 1.0]]))
    >>> rows.tolist(), which.tolist()
    ([[0.0, 1.0], [0.5, 1.0]], [1, 0, 1])
    """
    with held():
        found, which = np.unique(rows, axis=0, return_inverse=True)
    return found, which.reshape(-1)
