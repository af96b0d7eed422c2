"""Sums over windows of all widths about a point at once, by looking at every place.

A place is in the window of a width if its distance, the largest among the features, is at most
that. Widths go up by factors of √2, from 0, the place itself, to ∞, all of them. This is plain and
slow, O(queries · places): what trees of windows answer is compared with it. Columns are whole
numbers, not negative, as trees take them, so that sums do not depend on any order; `units` turns
values into them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from betafield._jit import kernel

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

WIDTHS = np.array([0.0, *(2.0**-9 * 2.0 ** (j / 2) for j in range(18)), np.inf])
# What 1 is in columns: sums of 2²⁰ rows with values up to 2⁷ are still whole numbers.
UNIT = 2.0**36


def units(values: Floats) -> Ints:
    """Return values as whole numbers of 2⁻³⁶."""
    return np.rint(values * UNIT).astype(np.int64)


def window_sums(queries: Floats, places: Floats, columns: Ints, stretch: Floats) -> Ints:
    """Return the sums of columns over the windows of every width.

    Parameters
    ----------
    queries, places : array of shape (q, d) and (r, d)
        Points.
    columns : integer array of shape (r, k)
        What is added up.
    stretch : array of shape (d,)
        By which distances are multiplied; a feature of 0 is not looked at.

    Returns
    -------
    integer array of shape (q, widths, k)
    """
    used = stretch > 0.0
    at = np.ascontiguousarray(queries[:, used] * stretch[used])
    held = np.ascontiguousarray(places[:, used] * stretch[used])
    return ladder(at, held, columns, WIDTHS)


def paired_sums(queries: Floats, places: Floats, values: Floats, stretch: Floats) -> Floats:
    """Return the same for values (q, r) of a query and a place, shape (q, widths)."""
    used = stretch > 0.0
    at = np.ascontiguousarray(queries[:, used] * stretch[used])
    held = np.ascontiguousarray(places[:, used] * stretch[used])
    return pair_ladder(at, held, values, WIDTHS)


@kernel
def ladder(queries: Floats, places: Floats, columns: Ints, widths: Floats) -> Ints:
    """Return the sums of columns within every width of every query."""
    k = columns.shape[1]
    out = np.zeros((len(queries), len(widths), k), dtype=np.int64)
    for i in range(len(queries)):
        for j in range(len(places)):
            b = _rung(queries, places, widths, i, j)
            for c in range(k):
                out[i, b, c] += columns[j, c]
        for b in range(1, len(widths)):
            for c in range(k):
                out[i, b, c] += out[i, b - 1, c]
    return out


@kernel
def pair_ladder(queries: Floats, places: Floats, values: Floats, widths: Floats) -> Floats:
    """Return the sums of values[i, j] over the places j within every width of the query i."""
    out = np.zeros((len(queries), len(widths)))
    for i in range(len(queries)):
        for j in range(len(places)):
            out[i, _rung(queries, places, widths, i, j)] += values[i, j]
        for b in range(1, len(widths)):
            out[i, b] += out[i, b - 1]
    return out


@kernel
def _rung(queries: Floats, places: Floats, widths: Floats, i: int, j: int) -> int:
    """Return the narrowest window of a query that holds a place."""
    reach = 0.0
    for a in range(queries.shape[1]):
        reach = max(reach, abs(queries[i, a] - places[j, a]))
    low, high = 0, len(widths) - 1
    while low < high:
        middle = (low + high) // 2
        if widths[middle] < reach:
            low = middle + 1
        else:
            high = middle
    return low
