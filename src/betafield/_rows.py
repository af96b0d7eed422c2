"""Distinct rows of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def groups(
    columns: Sequence[npt.NDArray[Any]] | npt.NDArray[Any],
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the order that sorts rows by their columns, and the start of each run of equal rows.

    Examples
    --------
    >>> order, at = groups(np.array([[0.5, 0.0, 0.5, 0.0], [2.0, 1.0, 2.0, 3.0]]))
    >>> order.tolist(), at.tolist()
    ([1, 3, 0, 2], [0, 1, 2])
    """
    varying = [column for column in columns if (column != column[:1]).any()]
    order = np.lexsort(varying[::-1]) if varying else np.arange(len(columns[0]))
    return order, starts((column[order] for column in varying), len(order))


def starts(columns: Iterable[npt.NDArray[Any]], n: int) -> npt.NDArray[np.intp]:
    """Return the indices, out of n, of rows that differ from the row before them."""
    is_new = np.zeros(n, dtype=np.bool_)
    is_new[:1] = True
    for column in columns:
        is_new[1:] |= column[1:] != column[:-1]
        if is_new.all():  # often known from the first column
            return np.arange(n)
    return np.flatnonzero(is_new)
