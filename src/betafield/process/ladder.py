"""Sums over windows of all widths about a point at once, by looking at every place.

A place is in the window of a width if its distance, the largest among the features, is at most
that; where features wrap around it is the length of a straight line (`wrapped`). Widths go up by
factors of √2, from 0, the place itself, to ∞, all of them, so the narrowest
window that holds a place is read off the exponent of its distance. This takes O(queries · places):
it serves where places are few, or where what is added up differs from query to query; otherwise
trees of windows (`trees`) are quicker, and are compared with it.

Columns are whole numbers, not negative, as trees take them, so that sums do not depend on any
order; `units` turns values into them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield._jit import kernel
from betafield.process.wrapped import Kinds, embedded

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

WIDTHS = np.array([0.0, *(2.0**-9 * 2.0 ** (j / 2) for j in range(18)), np.inf])
# What 1 is in columns, unless sums would then leave the whole numbers: 2 to these.
UNIT_BITS, MOST_BITS = 36, 62
UNIT = 2.0**UNIT_BITS
# The mantissa of √2: widths are 2^e or this times 2^e.
ROOT = math.sqrt(0.5)


def unit_of(values: Floats) -> float:
    """Return what 1 is in columns of these values: 2³⁶, or less where trials are many.

    Examples
    --------
    >>> import numpy as np
    >>> [float(np.log2(unit_of(np.array([[most]])))) for most in (1.0, 1e7, 1e12)]
    [36.0, 36.0, 22.0]
    """
    _, bits = math.frexp(len(values) * float(values.max(initial=0.0)))
    return 2.0 ** min(UNIT_BITS, MOST_BITS - bits)


def units(values: Floats, unit: float = UNIT) -> Ints:
    """Return values as whole numbers, 1 being this many."""
    return np.rint(values * unit).astype(np.int64)


def window_sums(
    queries: Floats, places: Floats, columns: Ints, stretch: Floats, kinds: Kinds = ()
) -> Ints:
    """Return the sums of columns over the windows of every width.

    Parameters
    ----------
    queries, places : array of shape (q, d) and (r, d)
        Points.
    columns : integer array of shape (r, k)
        What is added up.
    stretch : array of shape (d,)
        By which distances are multiplied; a feature of 0 is not looked at.
    kinds : tuple of str
        What every feature is; none: all are lines.

    Returns
    -------
    integer array of shape (q, widths, k)
    """
    at, held = (stretched(points, stretch, kinds) for points in (queries, places))
    return ladder(at, held, columns, len(WIDTHS), bool(kinds))


class Left(NamedTuple):
    """What is left out of one place of each query.

    Parameters
    ----------
    place : integer array of shape (q,)
        Which place, −1 if none.
    weight : array of shape (q,)
        By how much less it weighs.
    value : array of shape (q,)
        The value of that.
    """

    place: Ints
    weight: Floats
    value: Floats


def window_means(
    queries: Floats,
    places: Floats,
    values: Floats,
    weight: Floats,
    stretch: Floats,
    left: Left,
    kinds: Kinds = (),
) -> Floats:
    """Return the weighted means of values (q, r) of a query and a place over its windows.

    Of one place of each query something is left out. Shape (q, widths); NaN in windows that hold
    no place, or nothing but what is left out.
    """
    at, held = (stretched(points, stretch, kinds) for points in (queries, places))
    return mean_ladder(at, held, values, weight, *left, len(WIDTHS), bool(kinds))


def stretched(points: Floats, stretch: Floats, kinds: Kinds = ()) -> Floats:
    """Return the features of points that are looked at, multiplied by their stretch."""
    if kinds:
        return np.ascontiguousarray(embedded(points, stretch, kinds))
    used = stretch > 0.0
    return np.ascontiguousarray(points[:, used] * stretch[used])


@kernel
def ladder(queries: Floats, places: Floats, columns: Ints, widths: int, is_round: bool) -> Ints:
    """Return the sums of columns within every width of every query."""
    k = columns.shape[1]
    out = np.zeros((len(queries), widths, k), dtype=np.int64)
    for i in range(len(queries)):
        for j in range(len(places)):
            b = rung(queries, places, widths, i, j, is_round)
            for c in range(k):
                out[i, b, c] += columns[j, c]
        for b in range(1, widths):
            for c in range(k):
                out[i, b, c] += out[i, b - 1, c]
    return out


@kernel
def mean_ladder(
    queries: Floats,
    places: Floats,
    values: Floats,
    weight: Floats,
    own: Ints,
    less: Floats,
    lost: Floats,
    widths: int,
    is_round: bool,
) -> Floats:
    """Return the means of values[i, j] over the places j within every width of the query i."""
    out = np.empty((len(queries), widths))
    total, size = np.empty(widths), np.empty(widths)
    for i in range(len(queries)):
        for b in range(widths):
            total[b] = 0.0
            size[b] = 0.0
        for j in range(len(places)):
            b = rung(queries, places, widths, i, j, is_round)
            total[b] += weight[j] * values[i, j]
            size[b] += weight[j]
            if j == own[i]:
                total[b] -= less[i] * lost[i]
                size[b] -= less[i]
        for b in range(widths):
            if b > 0:
                total[b] += total[b - 1]
                size[b] += size[b - 1]
            out[i, b] = total[b] / size[b] if size[b] > 0.0 else np.nan
    return out


@kernel
def rung(queries: Floats, places: Floats, widths: int, i: int, j: int, is_round: bool) -> int:
    """Return the narrowest window of a query that holds a place."""
    reach = 0.0
    for a in range(queries.shape[1]):
        apart = abs(queries[i, a] - places[j, a])
        reach = reach + apart * apart if is_round else max(reach, apart)
    if is_round:
        reach = math.sqrt(reach)
    if reach == 0.0:
        return 0
    mantissa, exponent = math.frexp(reach)  # reach = mantissa · 2^exponent, mantissa in [½, 1)
    steps = 2 * (exponent + 9) + 1 - int(mantissa <= ROOT) - int(mantissa == 0.5)
    return min(max(steps, 1), widths - 1)
