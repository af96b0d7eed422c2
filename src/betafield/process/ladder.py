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

from betafield._jit import inlined, kernel
from betafield.process.wrapped import Kinds, embedded

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

WIDTHS = np.array([0.0, *(2.0**-9 * 2.0 ** (j / 2) for j in range(18)), np.inf])
# What 1 is in columns, unless sums would then leave the whole numbers: 2 to these.
UNIT_BITS, MOST_BITS = 36, 62
UNIT = 2.0**UNIT_BITS
# What remains of a sum if nothing but rounding does, in units of the sum, at the most.
NOTHING = 1e-9
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
    out = np.zeros((len(queries), len(WIDTHS), columns.shape[1]), dtype=np.int64)
    at, held = (stretched(points, stretch, kinds) for points in (queries, places))
    _ladder(at, held, columns, bool(kinds), out)
    return out


class Left(NamedTuple):
    """What is left out of the places of each query: the items from `first` to before `last`.

    Parameters
    ----------
    place : integer array of shape (l,)
        Of which place an item is, −1 if of none.
    weight : array of shape (l,)
        By how much less that weighs.
    value : array of shape (l,)
        The value of what is left out.
    first, last : integer array of shape (q,)
        Which items a query leaves out.
    """

    place: Ints
    weight: Floats
    value: Floats
    first: Ints
    last: Ints


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

    Of the places of each query something is left out. Shape (q, widths); NaN in windows that hold
    no place, or nothing but what is left out.
    """
    at, held = (stretched(points, stretch, kinds) for points in (queries, places))
    shape = len(queries), len(WIDTHS)
    total, size, whole = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    _mean_ladder(at, held, values, weight, *left, bool(kinds), size, whole, total)
    is_held = size > NOTHING * whole
    return np.asarray(np.divide(total, size, out=np.full(shape, np.nan), where=is_held))


def stretched(points: Floats, stretch: Floats, kinds: Kinds = ()) -> Floats:
    """Return the features of points that are looked at, multiplied by their stretch."""
    if kinds:
        return np.ascontiguousarray(embedded(points, stretch, kinds))
    used = stretch > 0.0
    return np.ascontiguousarray(points[:, used] * stretch[used])


@kernel
def _ladder(queries: Floats, places: Floats, columns: Ints, is_round: bool, out: Ints) -> None:
    """Add up the columns within every width of every query."""
    _, widths, k = out.shape
    for i in range(len(queries)):
        for j in range(len(places)):
            b = rung(queries, places, widths, i, j, is_round)
            for c in range(k):
                out[i, b, c] += columns[j, c]
        for b in range(1, widths):
            for c in range(k):
                out[i, b, c] += out[i, b - 1, c]


@kernel
def _mean_ladder(
    queries: Floats,
    places: Floats,
    values: Floats,
    weight: Floats,
    own: Ints,
    less: Floats,
    lost: Floats,
    first: Ints,
    last: Ints,
    is_round: bool,
    size: Floats,
    whole: Floats,
    total: Floats,
) -> None:
    """Add up weights, and weighted values[i, j], of the places j within every width of query i.

    `whole` are the weights before anything is left out.
    """
    widths = total.shape[1]
    for i in range(len(queries)):
        for j in range(len(places)):
            b = rung(queries, places, widths, i, j, is_round)
            total[i, b] += weight[j] * values[i, j]
            whole[i, b] += weight[j]
        for b in range(widths):
            size[i, b] = whole[i, b]
        for k in range(first[i], last[i]):
            if own[k] >= 0:
                b = rung(queries, places, widths, i, own[k], is_round)
                total[i, b] -= less[k] * lost[k]
                size[i, b] -= less[k]
        for b in range(1, widths):
            total[i, b] += total[i, b - 1]
            size[i, b] += size[i, b - 1]
            whole[i, b] += whole[i, b - 1]


@inlined
def rung(queries: Floats, places: Floats, widths: int, i: int, j: int, is_round: bool) -> int:
    """Return the narrowest window of a query that holds a place."""
    reach = 0.0
    for a in range(queries.shape[1]):
        apart = abs(queries[i, a] - places[j, a])
        reach = reach + apart * apart if is_round else max(reach, apart)
    if is_round:
        reach = math.sqrt(reach)
    # reach = mantissa · 2^exponent, mantissa in [½, 1)
    mantissa, exponent = math.frexp(reach)
    steps = 2 * (exponent + 9) + 1
    if mantissa <= ROOT:
        steps -= 1
    if mantissa == 0.5:
        steps -= 1
    steps = max(steps, 1)
    steps = min(steps, widths - 1)
    if reach == 0.0:
        steps = 0
    return steps
