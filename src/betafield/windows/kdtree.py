"""Two dimensions and more: a kd-tree whose nodes hold the sums of their trials.

Layout
------
Places are sorted by z-order code (`zorder`), so every node is a range [start, stop) of consecutive
places. `Nodes` stores the tree as arrays; node 0 is the root.

    child[i]          the first of the two children of i, the other is child[i] + 1;
                      LEAF for a leaf
    start[i], stop[i] its places
    box[i, 0], [i, 1] lowest and highest coordinates of its places, tight
    sums[i]           sums of its places' counts, and of their shares in the lattice of shifts

Invariants
----------
1. The children of a node split its range at the highest bit in which its codes differ, that
   is at the middle of a cell; ranges with a single code are halved. So depth is at most 64 plus
   the logarithm of the number of places.
2. A child comes after its parent, so sums and boxes are filled from the last node to the first.
3. A leaf has at most LEAF_SIZE places.

Query
-----
The search starts at the root. A node whose box lies inside the window is added as a whole, one that
lies outside is dropped, and one that crosses the border is opened; only in leaves on the border are
individual places checked. Queries descend the tree in groups of neighbours, each node with the
queries whose border crosses it, so it is fetched from memory once per group.

Rounding cannot make the result differ from checking each place: subtraction, squaring and addition
are monotone in floating point too, so the nearest and farthest corners of a box bound the computed
reach of each place in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield._jit import inlined, kernel
from betafield.windows.base import CHEBYSHEV, EUCLIDEAN, Floats, Ints, Places, limit
from betafield.windows.marks import Marks, add_shares, marked, share_out
from betafield.windows.zorder import Codes, codes

LEAF = -1
# Opening a node costs about as much as checking this many places, which SIMD does fast.
LEAF_SIZE = 96
# Queries that descend together: many share a node, and their list stays in the cache.
GROUP = 64
# Each level of the tree leaves at most one open sibling on the stack.
MAX_DEPTH = 160


class Nodes(NamedTuple):
    """The tree as arrays, described in the module's docstring.

    `used` lists the counts that are not 0 everywhere; only these are summed in leaves.
    """

    child: npt.NDArray[np.int32]
    start: Ints
    stop: Ints
    box: Floats
    sums: Ints
    used: npt.NDArray[np.intp]


@dataclass(frozen=True)
class KDTree:
    """Sums over windows in d dimensions; nodes inside a window are added as a whole.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield.windows.base import EUCLIDEAN
    >>> grid = np.array(np.meshgrid(np.arange(100.0), np.arange(100.0))).reshape(2, -1)
    >>> tree = KDTree.build(Places(grid, np.ones((1, 10_000), dtype=np.int64)), EUCLIDEAN)
    >>> tree.sums(np.array([[50.0, 50.0], [0.0, 0.0]]), radius=1.0)
    array([[5],
           [3]])
    """

    places: Places
    nodes: Nodes
    metric: int
    span: tuple[int, int]

    @classmethod
    def build(cls, places: Places, metric: int, presorted: bool = False) -> KDTree:
        """Sort the places along the z-order curve and sum them."""
        code = codes(places.axes)
        order = _order(code, places, presorted)
        code = code[order]
        places = places.sorted_by(order)
        if places.size < code.size:
            code = codes(places.axes)
        shared = _shared(code, places.axes)
        if shared.size:
            places = _brought_together(code, shared, places)
            code = codes(places.axes)
        span = places.span
        return cls(places, _summed(*_split(code), places, span), metric, span)

    @property
    def totals(self) -> Ints:
        """The sums over all places."""
        totals: Ints = self.nodes.sums[0]
        return totals

    def sums(self, queries: Floats, radius: float) -> Ints:
        """Return (m, c + n): the sums within `radius` of each query."""
        out = np.zeros((len(queries), self.nodes.sums.shape[1]), dtype=np.int64)
        axes, counts, shifts = self.places
        marks = marked(shifts, self.span[0], LEAF_SIZE)
        reach = limit(radius, self.metric)
        # Any other memory layout would trigger another compilation.
        queries = np.ascontiguousarray(queries)
        _sums(self.nodes, axes, counts, marks, queries, reach, self.metric, out)
        return out


def _order(code: Codes, places: Places, presorted: bool) -> npt.NDArray[np.intp]:
    """Return the order by code, with trials of one shift at one point next to each other."""
    if places.shifts is not None:
        return np.lexsort((*places.shifts.alike(), code))
    return np.argsort(code, kind="stable" if presorted else None)


def _shared(code: Codes, axes: Floats) -> Codes:
    """Return the codes shared by several points that are too close for the grid."""
    pairs = np.flatnonzero(code[1:] == code[:-1])
    return code[pairs[np.any(axes[:, pairs] != axes[:, pairs + 1], axis=0)]]


def _brought_together(code: Codes, shared: Codes, places: Places) -> Places:
    """Return places with equal ones joined, also if others with the same code separated them.

    Otherwise a stream of trials at few places would take as much memory as its trials.
    """
    mixed = np.flatnonzero(np.isin(code, shared))
    alike = [] if places.shifts is None else places.shifts.alike()
    keys = [key[mixed] for key in (*alike, *places.axes, code)]
    order = np.arange(places.size)
    order[mixed] = mixed[np.lexsort(keys)]
    return places.sorted_by(order)


def _split(code: Codes) -> tuple[npt.NDArray[np.int32], Ints, Ints]:
    """Return child, start and stop of every node for these sorted codes."""
    room, made = 4 * (code.size // LEAF_SIZE) + 2, -1
    while made < 0:
        child = np.full(room, LEAF, dtype=np.int32)
        start, stop = np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64)
        made = _split_into(code, child, start, stop)
        room *= 2
    return child[:made].copy(), start[:made].copy(), stop[:made].copy()


@kernel
def _split_into(code: Codes, child: npt.NDArray[np.int32], start: Ints, stop: Ints) -> int:
    """Fill in the nodes; return their number, or -1 if there is not enough room."""
    start[0], stop[0] = 0, code.size
    node, made = 0, 1
    while node < made:
        if stop[node] - start[node] > LEAF_SIZE:
            if made + 2 > child.size:
                return -1
            middle = _middle(code, start[node], stop[node])
            child[node] = made
            start[made], stop[made] = start[node], middle
            start[made + 1], stop[made + 1] = middle, stop[node]
            made += 2
        node += 1
    return made


@kernel
def _middle(code: Codes, start: int, stop: int) -> int:
    """Return where the highest differing bit in the range turns from 0 to 1."""
    differ = code[start] ^ code[stop - 1]
    if differ == np.uint64(0):
        return (start + stop) >> 1
    bit = np.uint64(1)
    while differ > np.uint64(1):
        differ >>= np.uint64(1)
        bit <<= np.uint64(1)
    low, high = start, stop - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if code[middle] & bit:
            high = middle
        else:
            low = middle
    return high


def _summed(
    child: npt.NDArray[np.int32], start: Ints, stop: Ints, places: Places, span: tuple[int, int]
) -> Nodes:
    """Return the nodes with their boxes and sums."""
    box = np.empty((child.size, 2, len(places.axes)))
    box[:, 0], box[:, 1] = np.inf, -np.inf
    sums = np.zeros((child.size, places.width + span[1]), dtype=np.int64)
    used = np.flatnonzero(places.counts.any(axis=1))
    nodes = Nodes(child, start, stop, box, sums, used)
    _fill(nodes, places.axes, places.counts, marked(places.shifts, span[0], LEAF_SIZE))
    return nodes


@kernel
def _fill(nodes: Nodes, axes: Floats, counts: npt.NDArray[Any], marks: Marks | None) -> None:
    """Compute boxes and sums: of leaves from their places, of others from their children."""
    child, box, sums = nodes.child, nodes.box, nodes.sums
    for node in range(child.size - 1, -1, -1):
        first = child[node]
        if first == LEAF:
            _fill_leaf(nodes, node, axes, counts)
            if marks is not None:
                start, stop = nodes.start[node], nodes.stop[node]
                share_out(marks, start, stop)
                for j in range(stop - start):
                    if marks.held[start + j]:
                        add_shares(marks, j, sums[node, counts.shape[0] :])
        else:
            for k in range(axes.shape[0]):
                box[node, 0, k] = min(box[first, 0, k], box[first + 1, 0, k])
                box[node, 1, k] = max(box[first, 1, k], box[first + 1, 1, k])
            for k in range(sums.shape[1]):
                sums[node, k] = sums[first, k] + sums[first + 1, k]


@inlined
def _fill_leaf(nodes: Nodes, node: int, axes: Floats, counts: npt.NDArray[Any]) -> None:
    """Compute the box of a leaf and the sums of its counts from its places."""
    box, sums = nodes.box, nodes.sums
    for k in range(axes.shape[0]):
        for i in range(nodes.start[node], nodes.stop[node]):
            box[node, 0, k] = min(box[node, 0, k], axes[k, i])
            box[node, 1, k] = max(box[node, 1, k], axes[k, i])
    for k in range(counts.shape[0]):
        for i in range(nodes.start[node], nodes.stop[node]):
            sums[node, k] += counts[k, i]


@kernel
def _sums(
    nodes: Nodes,
    axes: Floats,
    counts: npt.NDArray[Any],
    marks: Marks | None,
    queries: Floats,
    limit: float,
    metric: int,
    out: Ints,
) -> None:
    child = nodes.child
    reach, inside = np.empty(LEAF_SIZE), np.empty(LEAF_SIZE, dtype=np.int64)
    # A frame is a node to open and the range in `crossing` of the queries whose border it crosses.
    frames = np.empty((MAX_DEPTH, 3), dtype=np.int64)
    crossing = np.empty(2 * GROUP * MAX_DEPTH, dtype=np.int64)
    for start in range(0, queries.shape[0], GROUP):
        begin, end, top = 0, min(GROUP, queries.shape[0] - start), 0
        for j in range(end):
            crossing[j] = start + j
        # Treat the root like any other node, as the only child of a node above it.
        first, last = 0, 1
        while True:
            room = end
            for node in range(first, last):
                mine = room
                room = _meet(nodes, node, queries, limit, metric, crossing, begin, end, room, out)
                if child[node] == LEAF:
                    near = crossing[mine:room]
                    _look(
                        nodes,
                        node,
                        axes,
                        counts,
                        marks,
                        queries,
                        near,
                        limit,
                        metric,
                        reach,
                        inside,
                        out,
                    )
                    room = mine
                elif room > mine:
                    frames[top, 0], frames[top, 1], frames[top, 2] = node, mine, room
                    top += 1
            if top == 0:
                break
            top -= 1
            # Entries after this frame's queries belong to frames that are done.
            first, begin, end = child[frames[top, 0]], frames[top, 1], frames[top, 2]
            last = first + 2


@inlined
def _meet(
    nodes: Nodes,
    node: int,
    queries: Floats,
    limit: float,
    metric: int,
    crossing: Ints,
    begin: int,
    end: int,
    room: int,
    out: Ints,
) -> int:
    """Add the node to those queries from begin to end whose window contains it.

    Queries whose border crosses it are listed from `room` on; return the end of that list.
    """
    for j in range(begin, end):
        i = crossing[j]
        nearest, farthest = corners(nodes.box, node, queries, i, metric)
        if farthest <= limit:
            for k in range(out.shape[1]):
                out[i, k] += nodes.sums[node, k]
        elif nearest <= limit:
            crossing[room] = i
            room += 1
    return room


@inlined
def _look(
    nodes: Nodes,
    node: int,
    axes: Floats,
    counts: npt.NDArray[Any],
    marks: Marks | None,
    queries: Floats,
    near: Ints,
    limit: float,
    metric: int,
    reach: Floats,
    inside: Ints,
    out: Ints,
) -> None:
    """Add the places of a leaf that lie in the windows of the queries near it."""
    start, stop = nodes.start[node], nodes.stop[node]
    if marks is not None and near.size:
        share_out(marks, start, stop)
    for i in near:
        measure(axes, start, stop, queries, i, metric, reach)
        for j in range(stop - start):
            inside[j] = -np.int64(reach[j] <= limit)
        for k in nodes.used:
            out[i, k] += _masked(counts[k, start:stop], inside)
        if marks is not None:
            for j in range(stop - start):
                if reach[j] <= limit and marks.held[start + j]:
                    add_shares(marks, j, out[i, counts.shape[0] :])


@inlined
def corners(box: Floats, node: int, queries: Floats, i: int, metric: int) -> tuple[float, float]:
    """Return the reach of the nearest and the farthest point of a node's box."""
    nearest = farthest = 0.0
    for k in range(queries.shape[1]):
        q = queries[i, k]
        below, above = box[node, 0, k] - q, q - box[node, 1, k]
        near, far = max(below, above, 0.0), max(-below, -above)
        if metric == EUCLIDEAN:
            nearest += near * near
            farthest += far * far
        elif metric == CHEBYSHEV:
            nearest, farthest = max(nearest, near), max(farthest, far)
        else:
            nearest += near
            farthest += far
    return nearest, farthest


# Places of a leaf, one axis at a time: loops without branches, which compile to SIMD.


@inlined
def measure(
    axes: Floats, start: int, stop: int, queries: Floats, i: int, metric: int, reach: Floats
) -> None:
    """Compute the reach of each place from start to stop."""
    n = stop - start
    reach[:n] = 0.0
    for k in range(queries.shape[1]):
        axis, q = axes[k, start:stop], queries[i, k]
        if metric == EUCLIDEAN:
            for j in range(n):
                apart = axis[j] - q
                reach[j] += apart * apart
        elif metric == CHEBYSHEV:
            for j in range(n):
                reach[j] = max(reach[j], abs(axis[j] - q))
        else:
            for j in range(n):
                reach[j] += abs(axis[j] - q)


@inlined
def _masked(column: npt.NDArray[Any], inside: Ints) -> np.int64:
    """Return the sum of a count over the places whose mask has all bits set."""
    total = np.int64(0)
    for j in range(column.size):
        total += np.int64(column[j]) & inside[j]
    return total
