"""Moments of the trials near a point, for several radii in one visit of the tree.

With z = x − q, the window of query q has for each monomial z^e = Π z_k^e_k the sums

    Σ w z^e,  |e| ≤ 2·degree,      w the trials at a place,
    Σ s z^e,  |e| ≤ degree,        s the successes among them.

Radii cut the space around a query into rings. A node that lies within one ring is added to it
whole; one that the border of a ring crosses is opened. Each window is the sum of its rings, so
that one visit serves all radii.

Rows
----
A row is these sums, trials first, about some point c. Nodes have rows about the middles of their
boxes, where nothing cancels, and the binomial theorem moves a row to the query, an axis at a time:

    Σ w (x − q)^n = Σ_(k≤n) binom(n, k) (c − q)^(n−k) Σ w (x − c)^k.

A leaf that is opened has a table of rows, one for each of its places, about its middle too. What
it gives to a ring is the sum of some of them, moved to the query: additions of contiguous rows,
which compile to SIMD. Queries go down the tree in groups of neighbours, as in `kdtree`, so that a
table is made once a group.

The middle of a leaf is a bad point for sums over a ring much smaller than the leaf: what is small
about the query is large about the middle, and the move would leave the rounding of the large.
Where a query has such a ring, it gets a table of rows about itself, and nothing is moved.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from betafield._jit import inlined, kernel
from betafield.windows.base import Floats, Index, Ints, limit
from betafield.windows.kdtree import (
    GROUP,
    LEAF,
    LEAF_SIZE,
    MAX_DEPTH,
    KDTree,
    Nodes,
    corners,
    measure,
)
from betafield.windows.line import Line
from betafield.windows.zorder import visiting_order

# Unsigned: an index that may be negative costs a test, and these stand in the innermost loops.
Numbers = npt.NDArray[np.uint64]
# Rows that are added at once, so that their sum is fetched and stored less often.
AT_ONCE = 8
# Columns of rows come in multiples of this, a register full.
LANES = 4
# A ring is small if its radius is below this share of the leaf's, half the diagonal of its box. A
# move then multiplies rounding errors by at most (1 + 2/SMALL)⁴, for monomials of degree 4.
SMALL = 0.25


class Monomials(NamedTuple):
    """All monomials of d variables up to a degree, those of lower degree first.

    Monomial i is monomial `parent[i]` times variable `axis[i]`; the first `half` are those up to
    half the degree. A row has a column for each, and then one for each of the first half.

    Step j of a move adds (c − q)_`along[j]` times column `gives[j]` to column `gains[j]`.
    """

    exponents: Ints
    parent: Numbers
    axis: Numbers
    half: int
    gains: Numbers
    gives: Numbers
    along: Numbers


@functools.cache
def monomials(d: int, degree: int) -> Monomials:
    """Return the monomials of d variables up to twice this degree.

    Examples
    --------
    >>> monomials(2, degree=1).exponents.tolist()
    [[0, 0], [1, 0], [0, 1], [2, 0], [1, 1], [0, 2]]
    """
    exponents = [
        tuple(sum(k == axis for k in chosen) for axis in range(d))
        for size in range(2 * degree + 1)
        for chosen in itertools.combinations_with_replacement(range(d), size)
    ]
    number = {e: i for i, e in enumerate(exponents)}
    axis = [max((k for k in range(d) if e[k]), default=0) for e in exponents]
    parents = [number.get(_less(e, k), 0) for e, k in zip(exponents, axis, strict=True)]
    half = sum(sum(e) <= degree for e in exponents)
    gains, gives, along = np.array(_steps(exponents, half), dtype=np.uint64).reshape(-1, 3).T
    return Monomials(
        np.array(exponents, dtype=np.int64).reshape(-1, d),
        np.array(parents, dtype=np.uint64),
        np.array(axis, dtype=np.uint64),
        half,
        gains.copy(),
        gives.copy(),
        along.copy(),
    )


def _less(exponent: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(e - (k == axis) for k, e in enumerate(exponent))


def _steps(exponents: list[tuple[int, ...]], half: int) -> list[tuple[int, int, int]]:
    """Return the steps of a move: the column that gains, the one that gives, the axis.

    Pascal's triangle, with no products of powers: let n turns each add h times moment k − 1 to
    moment k, turn t for k = n, n − 1, …, t, and moment n has become Σ binom(n, k) h^(n−k) of the
    moments k. Highest first, so that a turn adds what the turn before has left.
    """
    columns = {(e, 0): i for i, e in enumerate(exponents)}
    columns |= {(e, 1): len(exponents) + i for i, e in enumerate(exponents[:half])}
    return [
        (column, columns[_less(e, axis), kind], axis)
        for axis in range(len(exponents[0]))
        for turn in range(1, sum(exponents[-1]) + 1)
        for (e, kind), column in reversed(columns.items())
        if e[axis] >= turn
    ]


class Moments(NamedTuple):
    """Rows of the nodes; trials and successes of the places."""

    rows: Floats
    held: Floats
    won: Floats


class Scratch(NamedTuple):
    """Room for work on a leaf: tables of rows about its middle and about a query, and so on.

    The last row of both tables stays 0.
    """

    table: Floats
    close: Floats
    z: Floats
    reach: Floats
    chosen: Numbers
    middle: Floats
    apart: Floats
    row: Floats


def _scratch(d: int, width: int) -> Scratch:
    return Scratch(
        np.zeros((LEAF_SIZE + 1, width)),
        np.zeros((LEAF_SIZE + 1, width)),
        np.empty((d, LEAF_SIZE)),
        np.empty(LEAF_SIZE),
        np.empty(LEAF_SIZE + AT_ONCE, dtype=np.uint64),
        np.empty((1, d)),
        np.empty(d),
        np.empty(width),
    )


# Counts (c, t) of places → trials and successes at each.
Weigh = Callable[[npt.NDArray[Any]], tuple[Floats, Floats]]


def moments(
    index: Index, queries: Floats, radii: Floats, degree: int, weigh: Weigh, hole: bool = False
) -> Floats:
    """Return (m, W, c): the moments about each query of its windows of these rising radii.

    With a hole, trials within the first radius are in the first window only.
    """
    tree = index.as_tree() if isinstance(index, Line) else cast("KDTree", index)
    d = len(tree.places.axes)
    kinds = monomials(d, degree)
    if degree not in tree.moments:
        tree.moments[degree] = _of_nodes(tree, kinds, weigh)
    known: Moments = tree.moments[degree]
    m, n_rings, columns = len(queries), len(radii), len(kinds.exponents) + kinds.half
    rings = np.zeros((m * n_rings, columns))
    limits = np.array([limit(radius, tree.metric) for radius in radii])
    small = limit(SMALL, tree.metric)
    order = visiting_order(queries.T)
    scratch = _scratch(d, known.rows.shape[1])
    _near(
        tree.nodes,
        tree.places.axes,
        known,
        kinds,
        queries,
        order,
        limits,
        small,
        tree.metric,
        scratch,
        rings,
    )
    out = rings.reshape(m, n_rings, columns)
    for ring in range(2 if hole else 1, n_rings):
        out[:, ring] += out[:, ring - 1]
    return out


def _of_nodes(tree: KDTree, kinds: Monomials, weigh: Weigh) -> Moments:
    columns = len(kinds.exponents) + kinds.half
    rows = np.zeros((tree.nodes.child.size, -(-columns // LANES) * LANES))
    known = Moments(rows, *weigh(tree.places.counts))
    axes = tree.places.axes
    _fill(tree.nodes, axes, known, kinds, _scratch(len(axes), rows.shape[1]))
    return known


@kernel
def _fill(nodes: Nodes, axes: Floats, known: Moments, kinds: Monomials, scratch: Scratch) -> None:
    """Take the rows of leaves from their places, of other nodes from their children."""
    box, rows, apart = nodes.box, known.rows, scratch.apart
    for node in range(nodes.child.size - 1, -1, -1):
        first = nodes.child[node]
        if first == LEAF:
            start, stop = nodes.start[node], nodes.stop[node]
            for j in range(stop - start):
                scratch.chosen[j] = j
            _set_middle(box, node, scratch.middle)
            _tabulate(axes, known, kinds, start, stop, scratch.middle, 0, scratch.z, scratch.table)
            _sum_up(scratch.table, scratch.chosen, stop - start, scratch.row)
            _add(scratch.row, rows, node)
        else:
            for child in range(first, first + 2):
                for k in range(apart.size):
                    apart[k] = _middle(box, child, k) - _middle(box, node, k)
                _take(rows, child, scratch.row)
                _move(kinds, apart, scratch.row)
                _add(scratch.row, rows, node)


@inlined
def _middle(box: Floats, node: int, axis: int) -> float:
    return float(0.5 * box[node, 0, axis] + 0.5 * box[node, 1, axis])


@inlined
def _set_middle(box: Floats, node: int, middle: Floats) -> None:
    for k in range(middle.shape[1]):
        middle[0, k] = _middle(box, node, k)


@inlined
def _take(rows: Floats, i: int, row: Floats) -> None:
    for c in range(row.size):
        row[c] = rows[i, c]


@inlined
def _move(kinds: Monomials, apart: Floats, row: Floats) -> None:
    """Move a row to a point from which its own is so far apart."""
    for j in range(kinds.gains.size):
        row[kinds.gains[j]] += apart[kinds.along[j]] * row[kinds.gives[j]]


@inlined
def _add(row: Floats, rows: Floats, i: int) -> None:
    for c in range(rows.shape[1]):
        rows[i, c] += row[c]


@inlined
def _tabulate(
    axes: Floats,
    known: Moments,
    kinds: Monomials,
    start: int,
    stop: int,
    points: Floats,
    i: int,
    z: Floats,
    table: Floats,
) -> None:
    """Fill a table with the rows about point i of the places from start to stop."""
    count, won = stop - start, kinds.parent.size
    for j in range(count):
        table[j, 0], table[j, won] = known.held[start + j], known.won[start + j]
    for k in range(z.shape[0]):
        for j in range(count):
            z[k, j] = axes[k, start + j] - points[i, k]
    # A column at a time, so that its parent and axis are looked up once.
    for e in range(1, won):
        parent, axis = kinds.parent[e], kinds.axis[e]
        for j in range(count):
            table[j, e] = table[j, parent] * z[axis, j]
    for e in range(1, kinds.half):
        parent, axis = won + np.int64(kinds.parent[e]), kinds.axis[e]
        for j in range(count):
            table[j, won + e] = table[j, parent] * z[axis, j]


@inlined
def _sum_up(table: Floats, chosen: Numbers, count: int, row: Floats) -> None:
    """Put the sum of the chosen rows of a table into the row."""
    for j in range(count, count + AT_ONCE):
        chosen[j] = LEAF_SIZE  # the row of zeros
    row[:] = 0.0
    for j in range(0, count, AT_ONCE):
        a, b, c, d = chosen[j], chosen[j + 1], chosen[j + 2], chosen[j + 3]
        e, f, g, h = chosen[j + 4], chosen[j + 5], chosen[j + 6], chosen[j + 7]
        for k in range(row.size):
            row[k] += ((table[a, k] + table[b, k]) + (table[c, k] + table[d, k])) + (
                (table[e, k] + table[f, k]) + (table[g, k] + table[h, k])
            )


@inlined
def _ring(limits: Floats, reach: float) -> int:
    """Return the first ring whose limit is not below the reach; their number, if none."""
    low, high = 0, limits.size
    while low < high:
        middle = (low + high) >> 1
        if limits[middle] < reach:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _near(
    nodes: Nodes,
    axes: Floats,
    known: Moments,
    kinds: Monomials,
    queries: Floats,
    order: npt.NDArray[np.intp],
    limits: Floats,
    small: float,
    metric: int,
    scratch: Scratch,
    rings: Floats,
) -> None:
    """Add to each ring of each query what it holds; `kdtree._sums` explains the visit."""
    child = nodes.child
    frames = np.empty((MAX_DEPTH, 3), dtype=np.int64)
    crossing = np.empty(2 * GROUP * MAX_DEPTH, dtype=np.int64)
    for start in range(0, order.size, GROUP):
        begin, end, top = 0, min(GROUP, order.size - start), 0
        for j in range(end):
            crossing[j] = order[start + j]
        first, last = 0, 1
        while True:
            room = end
            for node in range(first, last):
                mine = room
                room = _meet(
                    nodes,
                    node,
                    known,
                    kinds,
                    queries,
                    limits,
                    metric,
                    crossing,
                    begin,
                    end,
                    room,
                    scratch,
                    rings,
                )
                if child[node] == LEAF:
                    near = crossing[mine:room]
                    _look(
                        nodes,
                        node,
                        axes,
                        known,
                        kinds,
                        queries,
                        near,
                        limits,
                        small,
                        metric,
                        scratch,
                        rings,
                    )
                    room = mine
                elif room > mine:
                    frames[top, 0], frames[top, 1], frames[top, 2] = node, mine, room
                    top += 1
            if top == 0:
                break
            top -= 1
            first, begin, end = child[frames[top, 0]], frames[top, 1], frames[top, 2]
            last = first + 2


@inlined
def _meet(
    nodes: Nodes,
    node: int,
    known: Moments,
    kinds: Monomials,
    queries: Floats,
    limits: Floats,
    metric: int,
    crossing: Ints,
    begin: int,
    end: int,
    room: int,
    scratch: Scratch,
    rings: Floats,
) -> int:
    """Add the node to those queries from begin to end one of whose rings holds it whole.

    Those where a border crosses it are listed from `room` on; return where their list ends.
    """
    for j in range(begin, end):
        i = crossing[j]
        nearest, farthest = corners(nodes.box, node, queries, i, metric)
        ring = _ring(limits, nearest)
        if ring == limits.size:
            continue
        if farthest <= limits[ring]:
            for k in range(queries.shape[1]):
                scratch.apart[k] = _middle(nodes.box, node, k) - queries[i, k]
            _take(known.rows, node, scratch.row)
            _move(kinds, scratch.apart, scratch.row)
            _add(scratch.row, rings, i * limits.size + ring)
        else:
            crossing[room] = i
            room += 1
    return room


@inlined
def _look(
    nodes: Nodes,
    node: int,
    axes: Floats,
    known: Moments,
    kinds: Monomials,
    queries: Floats,
    near: Ints,
    limits: Floats,
    small: float,
    metric: int,
    scratch: Scratch,
    rings: Floats,
) -> None:
    """Add the places of a leaf to the rings of the queries near it."""
    start, stop, n_rings = nodes.start[node], nodes.stop[node], limits.size
    middle, apart, row = scratch.middle, scratch.apart, scratch.row
    chosen, table, close = scratch.chosen, scratch.table, scratch.close
    _set_middle(nodes.box, node, middle)
    _, size = corners(nodes.box, node, middle, 0, metric)
    if near.size:
        _tabulate(axes, known, kinds, start, stop, middle, 0, scratch.z, table)
    for i in near:
        nearest, farthest = corners(nodes.box, node, queries, i, metric)
        first, last = _ring(limits, nearest), min(_ring(limits, farthest), n_rings - 1)
        has_small = limits[first] < small * size
        if has_small:
            _tabulate(axes, known, kinds, start, stop, queries, i, scratch.z, close)
        for k in range(apart.size):
            apart[k] = middle[0, k] - queries[i, k]
        measure(axes, start, stop, queries, i, metric, scratch.reach)
        for ring in range(first, last + 1):
            inner = limits[ring - 1] if ring > 0 else -1.0
            count = _choose(scratch.reach, stop - start, inner, limits[ring], chosen)
            if count == 0:
                continue
            if has_small:
                _sum_up(close, chosen, count, row)
            else:
                _sum_up(table, chosen, count, row)
                _move(kinds, apart, row)
            _add(row, rings, i * n_rings + ring)


@inlined
def _choose(reach: Floats, count: int, inner: float, outer: float, chosen: Numbers) -> int:
    """List the places whose reach lies between the borders of a ring; return their number."""
    room = 0
    for j in range(count):
        # Write always, then count: a branch would be guessed wrong too often.
        chosen[np.uint64(room)] = j
        room += int((reach[j] > inner) & (reach[j] <= outer))
    return room
