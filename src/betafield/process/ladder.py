"""Sums over windows of all widths about a point at once, by looking at every place.

A place is in the window of a width if its distance, the largest among the features, is at most
that; where features wrap around it is the length of a straight line (`wrapped`). Widths go up by
factors of √2, from 0, the place itself, to ∞, all of them, so the narrowest
window that holds a place is read off the exponent of its distance. This takes O(queries · places):
it serves where places are few, or where what is added up differs from query to query; otherwise
trees of windows (`trees`) are quicker, and are compared with it.

Columns are whole numbers, not negative, as trees take them, so that sums do not depend on any
order; `units` turns values into them.

NumPy does this for few pairs of a query and a place, because users wait for compilers; a kernel
adds up the same for many.
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
# The most that rounding alone can leave of a sum, in units of that sum.
NOTHING = 1e-9
# Pairs of a query and a place up to which no kernel is compiled.
FEW_PAIRS = 1 << 20
# Below this every whole number is a float.
EXACT = 2.0**53
# The mantissa of √2: widths are 2^e or this times 2^e.
ROOT = math.sqrt(0.5)
# Bits of the fraction of a float, and what is added to its exponent.
FRACTION, BIAS = 52, 1023


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
    """Return values as whole multiples of 1/unit."""
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
    if len(queries) * len(places) <= FEW_PAIRS and columns.sum(axis=0).max(initial=0) < EXACT:
        return _few_sums(at, held, columns, bool(kinds))
    out = np.zeros((len(queries), len(WIDTHS), columns.shape[1]), dtype=np.int64)
    _ladder(at, held, columns, bool(kinds), out)
    return out


def _few_sums(queries: Floats, places: Floats, columns: Ints, is_round: bool) -> Ints:
    """Return what `_ladder` adds up. Floats are exact, because sums are below 2⁵³."""
    cell = _cells(_rungs(queries, places, is_round))
    shape = len(queries), len(places)
    found = [_added(cell, np.broadcast_to(column, shape)) for column in columns.T.astype(float)]
    return np.cumsum(np.stack(found, axis=-1), axis=1).astype(np.int64)


def _rungs(queries: Floats, places: Floats, is_round: bool) -> Ints:
    """Return the narrowest window of each query that holds each place, as `rung` does.

    Widths go up by factors of √2, and the bits of floats, as whole numbers, are in their order. One
    less than those of a distance has the exponent of the power of 2 below it; widths between two
    powers are passed where the fraction is that of √2 or more.
    """
    reach, apart = np.zeros((2, len(queries), len(places)))
    for q, x in zip(queries.T, places.T, strict=True):
        np.abs(np.subtract.outer(q, x, out=apart), out=apart)
        if is_round:
            reach += np.square(apart, out=apart)
        else:
            np.maximum(reach, apart, out=reach)
    if is_round:
        np.sqrt(reach, out=reach)
    is_apart = reach > 0.0
    below = reach.view(np.int64)
    below -= 1
    steps = below >> FRACTION
    below += (1 << FRACTION) - (int(np.array(ROOT).view(np.int64)) & ((1 << FRACTION) - 1))
    below >>= FRACTION
    steps += below
    steps -= 2 * (BIAS - 10)
    np.clip(steps, 1, len(WIDTHS) - 1, out=steps)
    steps *= is_apart
    return steps


def _cells(rung: Ints) -> Ints:
    """Return the cell of a table of queries and widths that each pair is added to."""
    return rung + len(WIDTHS) * np.arange(len(rung))[:, None]


def _added(cell: Ints, values: Floats) -> Floats:
    """Return the sums of values (q, r) in each cell, in the order of places."""
    shape = len(cell), len(WIDTHS)
    held = np.bincount(cell.ravel(), values.ravel(), shape[0] * shape[1])
    return np.asarray(held, dtype=np.float64).reshape(shape)


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
    block = max(1, FEW_PAIRS // max(1, len(places)))
    found = [
        _means(at, held, values, weight, left, slice(i, i + block), bool(kinds))
        for i in range(0, len(queries), block)
    ]
    return np.concatenate([np.empty((0, len(WIDTHS))), *found])


def _means(
    queries: Floats,
    places: Floats,
    values: Floats,
    weight: Floats,
    left: Left,
    some: slice,
    is_round: bool,
) -> Floats:
    """Return the weighted means over windows of some queries."""
    rung = _rungs(queries[some], places, is_round)
    cell = _cells(rung)
    total = _added(cell, weight * values[some])
    whole = _added(cell, np.broadcast_to(weight, cell.shape))
    size = whole.copy()
    query, item = _left_out(left, some)
    at = query, rung[query, left.place[item]]
    np.subtract.at(total, at, left.weight[item] * left.value[item])
    np.subtract.at(size, at, left.weight[item])
    total, size, whole = (np.cumsum(each, axis=1) for each in (total, size, whole))
    is_held = size > NOTHING * whole
    return np.asarray(np.divide(total, size, out=np.full(size.shape, np.nan), where=is_held))


def _left_out(left: Left, some: slice) -> tuple[Ints, Ints]:
    """Return pairs of a query, counted among some, and an item of a place that it leaves out."""
    number = left.last[some] - left.first[some]
    query = np.repeat(np.arange(len(number)), number)
    start = left.first[some] - np.cumsum(number) + number
    item = np.arange(len(query)) + start[query]
    is_there = left.place[item] >= 0
    return query[is_there], item[is_there]


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
