"""Sums over windows of all widths about a point at once, by brute force.

A place is in a window if its distance, the largest over the features, is at most the width; if
features wrap around, the distance is the length of a straight line (`wrapped`). Widths grow by
factors of √2, from 0, the place itself, to ∞, all places, so the narrowest window that holds a
place can be read off the exponent of its distance. This takes O(queries · places). It is used if
there are few places, or if the summands differ between queries; otherwise trees (`trees`) are
faster, and are tested against it.

Columns are non-negative integers, as in trees, so that sums do not depend on their order; `units`
converts values to them.

For few pairs of a query and a place NumPy is used, because compiling a kernel makes users wait; for
many, a kernel computes the same sums.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield._jit import inlined, kernel
from betafield.process.wrapped import Kinds, embedded

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

WIDTHS = np.array([0.0, *(2.0**-9 * 2.0 ** (j / 2) for j in range(18)), np.inf])
# 1 is 2^UNIT_BITS in columns, or less so that sums stay below 2^MOST_BITS.
UNIT_BITS, MOST_BITS = 36, 62
UNIT = 2.0**UNIT_BITS
# A sum below this share of what it was before subtraction may be rounding only.
NOTHING = 1e-9
# The bits of a float as an integer: a mantissa of 52 bits below the exponent, which is 1023 − 9 for
# 2⁻⁹. Widths are 2^e, or √2 times that with the mantissa ROOT.
BITS, NARROWEST, MANTISSA = 52, 1023 - 9, 2**52 - 1
ROOT = struct.unpack("<q", struct.pack("<d", math.sqrt(2.0)))[0] & MANTISSA
# Up to this many pairs of a query and a place, no kernel is compiled.
FEW_PAIRS = 1 << 20
# NumPy sees at most this many pairs at a time, so that they stay in the processor's cache.
CACHED_PAIRS = 1 << 14
# Below this every integer is exactly a float.
EXACT = 2.0**53


def unit_of(values: Floats) -> float:
    """Return the integer that stands for 1 in columns of values: 2³⁶, or less if they are large.

    Examples
    --------
    >>> import numpy as np
    >>> [float(np.log2(unit_of(np.array([[most]])))) for most in (1.0, 1e7, 1e12)]
    [36.0, 36.0, 22.0]
    """
    _, bits = math.frexp(len(values) * float(values.max(initial=0.0)))
    return 2.0 ** min(UNIT_BITS, MOST_BITS - bits)


def units(values: Floats, unit: float = UNIT) -> Ints:
    """Return values as integer multiples of 1/unit."""
    return np.rint(values * unit).astype(np.int64)


def window_sums(
    queries: Floats,
    places: Floats,
    columns: Ints,
    stretch: Floats,
    kinds: Kinds = (),
    few: int = FEW_PAIRS,
) -> Ints:
    """Return the sums of columns over the windows of every width.

    Parameters
    ----------
    queries, places : array of shape (q, d) and (r, d)
        Points.
    columns : integer array of shape (r, k)
        The values to sum.
    stretch : array of shape (d,)
        Factors on distances along each feature; a feature with factor 0 is ignored.
    kinds : tuple of str
        Kind of each feature; if empty, all are lines.
    few : int
        Number of pairs of a query and a place up to which nothing is compiled.

    Returns
    -------
    integer array of shape (q, widths, k)
    """
    at, held = (stretched(points, stretch, kinds) for points in (queries, places))
    if len(queries) * len(places) <= few and columns.sum(axis=0).max(initial=0) < EXACT:
        return _few_sums(at, held, columns, bool(kinds))
    out = np.zeros((len(queries), len(WIDTHS), columns.shape[1]), dtype=np.int64)
    _ladder(at, np.ascontiguousarray(held.T), columns, bool(kinds), out)
    return out


def _few_sums(queries: Floats, places: Floats, columns: Ints, is_round: bool) -> Ints:
    """Return the same sums as `_ladder`. Floats are exact, because sums are below 2⁵³."""
    found = np.empty((len(queries), len(WIDTHS), columns.shape[1]))
    every = columns.T.astype(np.float64)
    for some in _cached(len(queries), len(places)):
        rungs = narrowest_windows(queries[some], places, is_round)
        for c, column in enumerate(every):
            found[some, :, c] = _by_rung(rungs, np.broadcast_to(column, rungs.shape))
    return np.cumsum(found, axis=1).astype(np.int64)


def _cached(queries: int, places: int) -> Iterator[slice]:
    """Yield ranges of queries that have few pairs with places."""
    size = max(1, CACHED_PAIRS // max(places, 1))
    for start in range(0, queries, size):
        yield slice(start, start + size)


def _by_rung(rungs: Ints, values: Floats) -> Floats:
    """Return the sums of the values of pairs by query and narrowest window."""
    shape = len(rungs), len(WIDTHS)
    cell = rungs + len(WIDTHS) * np.arange(len(rungs))[:, None]
    sums = np.bincount(cell.ravel(), values.ravel(), shape[0] * shape[1])
    return np.asarray(sums.reshape(shape), dtype=np.float64)


def narrowest_windows(queries: Floats, places: Floats, is_round: bool) -> Ints:
    """Return the narrowest window of each query that holds each place, the same as `climb`."""
    reach, apart = np.zeros((2, len(queries), len(places)))
    for q, x in zip(queries.T, places.T, strict=True):
        np.abs(np.subtract.outer(q, x, out=apart), out=apart)
        if is_round:
            reach += np.square(apart, out=apart)
        else:
            np.maximum(reach, apart, out=reach)
    if is_round:
        np.sqrt(reach, out=reach)
    is_same, below = reach == 0.0, reach.view(np.int64)
    below -= 1
    rungs = below >> BITS
    rungs -= NARROWEST - 1
    rungs *= 2
    below &= MANTISSA
    rungs += below >= ROOT
    np.clip(rungs, 1, len(WIDTHS) - 1, out=rungs)
    rungs[is_same] = 0
    return rungs


class Left(NamedTuple):
    """What each query leaves out of places: the items from `first` up to, not including, `last`.

    Parameters
    ----------
    place : integer array of shape (l,)
        The place an item belongs to, −1 if none.
    weight : array of shape (l,)
        The weight to subtract.
    value : array of shape (l,)
        The value to subtract with that weight.
    first, last : integer array of shape (q,)
        The range of items that a query leaves out.
    """

    place: Ints
    weight: Floats
    value: Floats
    first: Ints
    last: Ints


class Values(NamedTuple):
    """The values to average: table[row[i], column[j]] for query i and place j.

    Parameters
    ----------
    table : array
        Queries that leave out the same trials share a row, places of one level share a column.
    row : integer array of shape (q,)
    column : integer array of shape (r,)
    """

    table: Floats
    row: Ints
    column: Ints


def window_means(
    queries: Floats,
    places: Floats,
    values: Values,
    weight: Floats,
    stretch: Floats,
    left: Left,
    kinds: Kinds = (),
    few: int = FEW_PAIRS,
) -> Floats:
    """Return the weighted means of values over the windows about each query, shape (q, widths).

    What a query leaves out is subtracted first. The mean is NaN if a window holds no place, or
    only what is left out.
    """
    at, held = (stretched(points, stretch, kinds) for points in (queries, places))
    shape = len(queries), len(WIDTHS)
    if len(queries) * len(places) <= few:
        total, size, whole = _few_means(at, held, values, weight, left, bool(kinds))
    else:
        total, size, whole = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        held = np.ascontiguousarray(held.T)
        table, row, column = values
        _mean_ladder(at, held, table, row, column, weight, *left, bool(kinds), size, whole, total)
    is_held = size > NOTHING * whole
    return np.asarray(np.divide(total, size, out=np.full(shape, np.nan), where=is_held))


def _few_means(
    queries: Floats, places: Floats, values: Values, weight: Floats, left: Left, is_round: bool
) -> Floats:
    """Return the same sums as `_mean_ladder`, added in the same order: total, size and whole."""
    sums = np.empty((3, len(queries), len(WIDTHS)))
    for some in _cached(len(queries), len(places)):
        rungs = narrowest_windows(queries[some], places, is_round)
        each = weight * values.table[values.row[some, None], values.column]
        sums[0, some] = _by_rung(rungs, each)
        sums[1:, some] = _by_rung(rungs, np.broadcast_to(weight, rungs.shape))
        query, item = _left_out(left._replace(first=left.first[some], last=left.last[some]))
        at = query, rungs[query, left.place[item]]
        np.subtract.at(sums[0, some], at, left.weight[item] * left.value[item])
        np.subtract.at(sums[1, some], at, left.weight[item])
    return np.cumsum(sums, axis=2)


def _left_out(left: Left) -> tuple[Ints, Ints]:
    """Return the pairs of a query and an item that it leaves out of a place."""
    number = left.last - left.first
    query = np.repeat(np.arange(len(number)), number)
    item = np.arange(len(query)) + (left.first - np.cumsum(number) + number)[query]
    is_there = left.place[item] >= 0
    return query[is_there], item[is_there]


def stretched(points: Floats, stretch: Floats, kinds: Kinds = ()) -> Floats:
    """Return the features of points that are not ignored, multiplied by their stretch."""
    if kinds:
        return np.ascontiguousarray(embedded(points, stretch, kinds))
    used = stretch > 0.0
    return np.ascontiguousarray(points[:, used] * stretch[used])


@kernel
def _ladder(queries: Floats, places: Floats, columns: Ints, is_round: bool, out: Ints) -> None:
    """Sum the columns within every width of every query; places have shape (d, r)."""
    _, widths, k = out.shape
    reach = np.empty(len(columns))
    rungs = np.empty(len(columns), dtype=np.int64)
    for i in range(len(queries)):
        climb(queries[i], places, widths, is_round, reach, rungs)
        for j in range(len(columns)):
            for c in range(k):
                out[i, rungs[j], c] += columns[j, c]
        for b in range(1, widths):
            for c in range(k):
                out[i, b, c] += out[i, b - 1, c]


@kernel
def _mean_ladder(
    queries: Floats,
    places: Floats,
    table: Floats,
    row: Ints,
    column: Ints,
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
    """Sum weights, and weighted values, of the places (d, r) within every width of a query.

    `whole` are the weights before anything is left out.
    """
    widths = total.shape[1]
    reach = np.empty(len(weight))
    rungs = np.empty(len(weight), dtype=np.int64)
    sums = np.empty((widths, 3))
    for i in range(len(queries)):
        climb(queries[i], places, widths, is_round, reach, rungs)
        for b in range(widths):
            sums[b, 0], sums[b, 1] = 0.0, 0.0
        for j in range(len(weight)):
            sums[rungs[j], 0] += weight[j] * table[row[i], column[j]]
            sums[rungs[j], 1] += weight[j]
        for b in range(widths):
            sums[b, 2] = sums[b, 1]
        for k in range(first[i], last[i]):
            if own[k] >= 0:
                sums[rungs[own[k]], 0] -= less[k] * lost[k]
                sums[rungs[own[k]], 2] -= less[k]
        for b in range(widths):
            if b > 0:
                for c in range(3):
                    sums[b, c] += sums[b - 1, c]
            total[i, b], whole[i, b], size[i, b] = sums[b, 0], sums[b, 1], sums[b, 2]


@inlined
def climb(
    query: Floats, places: Floats, widths: int, is_round: bool, reach: Floats, rungs: Ints
) -> None:
    """Set the distance from a query to each place, and the narrowest window that holds the place.

    Each step loops over all places without branches, so that compilers vectorise it eightfold.
    """
    reach[:] = 0.0
    for a in range(len(query)):
        for j in range(len(reach)):
            apart = abs(query[a] - places[a, j])
            reach[j] = reach[j] + apart * apart if is_round else max(reach[j], apart)
    if is_round:
        for j in range(len(reach)):
            reach[j] = math.sqrt(reach[j])
    bits = reach.view(np.int64)
    for j in range(len(reach)):
        # One is subtracted so that a distance equal to a width is in its window.
        below = bits[j] - 1
        rung = 2 * ((below >> BITS) - NARROWEST) + 2 + ((below & MANTISSA) >= ROOT)
        rung = min(max(rung, 1), widths - 1)
        rungs[j] = rung if bits[j] != 0 else 0
