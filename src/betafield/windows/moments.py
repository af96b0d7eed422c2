"""Moments of the trials near a point, for several radii in one visit of the tree.

With z = x − q, the window of query q has for each monomial z^e = Π z_k^e_k the sums

    Σ w z^e,  |e| ≤ 2·degree,      w the trials at a place,
    Σ s z^e,  |e| ≤ degree,        s the successes among them.

Nodes of a tree hold these sums about the middle c of their box, where nothing cancels, and the
binomial theorem moves them to the query:

    Σ w (x − q)^e = Σ_(k≤e) binom(e, k) (c − q)^(e−k) Σ w (x − c)^k.

Radii cut the space around a query into rings. A node that lies within one ring is added to it
whole; one that the border of a ring crosses is opened. Each window is the sum of its rings, so
that one visit serves all radii.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from betafield._jit import inlined, kernel
from betafield.windows.base import Floats, Index, Ints, limit
from betafield.windows.kdtree import LEAF, LEAF_SIZE, MAX_DEPTH, KDTree, Nodes, corners, measure
from betafield.windows.line import Line


class Monomials(NamedTuple):
    """All monomials of d variables up to a degree, those of lower degree first.

    Monomial i is monomial `parent[i]` times variable `axis[i]`. The j-th term of a move is
    `target[j]` gains `factor[j]` · (c − q)^`power[j]` · the moment `source[j]`; terms of monomials
    up to half the degree come first, `few` of them.
    """

    exponents: Ints
    parent: Ints
    axis: Ints
    target: Ints
    source: Ints
    power: Ints
    factor: Floats
    half: int
    few: int


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
    terms = [
        (
            number[e],
            number[k],
            number[tuple(a - b for a, b in zip(e, k, strict=True))],
            math.prod(math.comb(a, b) for a, b in zip(e, k, strict=True)),
        )
        for e in exponents
        for k in itertools.product(*(range(a + 1) for a in e))
    ]
    half = sum(sum(e) <= degree for e in exponents)
    target, source, power, factor = (np.array(column) for column in zip(*terms, strict=True))
    return Monomials(
        np.array(exponents, dtype=np.int64).reshape(-1, d),
        np.array(parents, dtype=np.int64),
        np.array(axis, dtype=np.int64),
        target.astype(np.int64),
        source.astype(np.int64),
        power.astype(np.int64),
        factor.astype(np.float64),
        half,
        int(np.sum(target < half)),
    )


def _less(exponent: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(e - (k == axis) for k, e in enumerate(exponent))


class Moments(NamedTuple):
    """Sums of nodes about the middles of their boxes; trials and successes of the places."""

    sums: Floats
    held: Floats
    won: Floats


# Counts (c, t) of places → trials and successes at each.
Weigh = Callable[[npt.NDArray[Any]], tuple[Floats, Floats]]


def moments(index: Index, queries: Floats, radii: Floats, degree: int, weigh: Weigh) -> Floats:
    """Return (m, W, c): the moments about each query of its windows of these rising radii."""
    tree = index.as_tree() if isinstance(index, Line) else cast("KDTree", index)
    kinds = monomials(len(tree.places.axes), degree)
    if degree not in tree.moments:
        tree.moments[degree] = _of_nodes(tree, kinds, weigh)
    known = tree.moments[degree]
    out = np.zeros((len(queries), len(radii), known.sums.shape[1]))
    limits = np.array([limit(radius, tree.metric) for radius in radii])
    _near(tree.nodes, tree.places.axes, known, kinds, queries, limits, tree.metric, out)
    return out


def _of_nodes(tree: KDTree, kinds: Monomials, weigh: Weigh) -> Moments:
    held, won = weigh(tree.places.counts)
    sums = np.zeros((tree.nodes.child.size, len(kinds.exponents) + kinds.half))
    _fill(tree.nodes, tree.places.axes, held, won, kinds, sums)
    return Moments(sums, held, won)


@inlined
def _powers(kinds: Monomials, z: Floats, out: Floats) -> None:
    """Fill in the monomials of z."""
    out[0] = 1.0
    for i in range(1, kinds.parent.size):
        out[i] = out[kinds.parent[i]] * z[kinds.axis[i]]


@inlined
def _move(kinds: Monomials, apart: Floats, sums: Floats, out: Floats) -> None:
    """Add the sums of a node, whose middle has these monomials from the query, to the query's."""
    n = kinds.parent.size
    for j in range(kinds.target.size):
        out[kinds.target[j]] += kinds.factor[j] * apart[kinds.power[j]] * sums[kinds.source[j]]
    for j in range(kinds.few):
        out[n + kinds.target[j]] += (
            kinds.factor[j] * apart[kinds.power[j]] * sums[n + kinds.source[j]]
        )


@inlined
def _add(kinds: Monomials, z: Floats, held: float, won: float, powers: Floats, out: Floats) -> None:
    """Add the trials of one place."""
    _powers(kinds, z, powers)
    n = kinds.parent.size
    for i in range(n):
        out[i] += held * powers[i]
    for i in range(kinds.half):
        out[n + i] += won * powers[i]


@kernel
def _fill(
    nodes: Nodes, axes: Floats, held: Floats, won: Floats, kinds: Monomials, sums: Floats
) -> None:
    d = axes.shape[0]
    z, powers = np.empty(d), np.empty(kinds.parent.size)
    for node in range(nodes.child.size - 1, -1, -1):
        first = nodes.child[node]
        if first == LEAF:
            for i in range(nodes.start[node], nodes.stop[node]):
                for k in range(d):
                    z[k] = axes[k, i] - _middle(nodes.box, node, k)
                _add(kinds, z, held[i], won[i], powers, sums[node])
        else:
            for child in range(first, first + 2):
                for k in range(d):
                    z[k] = _middle(nodes.box, child, k) - _middle(nodes.box, node, k)
                _powers(kinds, z, powers)
                _move(kinds, powers, sums[child], sums[node])


@inlined
def _middle(box: Floats, node: int, axis: int) -> float:
    return float(0.5 * box[node, 0, axis] + 0.5 * box[node, 1, axis])


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


@inlined
def _look(
    axes: Floats,
    known: Moments,
    kinds: Monomials,
    start: int,
    stop: int,
    query: Floats,
    reach: Floats,
    limits: Floats,
    z: Floats,
    powers: Floats,
    out: Floats,
) -> None:
    """Add the places of a leaf to their rings."""
    for i in range(start, stop):
        ring = _ring(limits, reach[i - start])
        if ring < limits.size:
            for k in range(query.size):
                z[k] = axes[k, i] - query[k]
            _add(kinds, z, known.held[i], known.won[i], powers, out[ring])


@kernel
def _near(
    nodes: Nodes,
    axes: Floats,
    known: Moments,
    kinds: Monomials,
    queries: Floats,
    limits: Floats,
    metric: int,
    out: Floats,
) -> None:
    d = axes.shape[0]
    z, powers, reach = np.empty(d), np.empty(kinds.parent.size), np.empty(LEAF_SIZE)
    stack = np.empty(MAX_DEPTH, dtype=np.int64)
    for i in range(queries.shape[0]):
        stack[0], top = 0, 1
        while top:
            top -= 1
            node = stack[top]
            nearest, farthest = corners(nodes.box, node, queries, i, metric)
            ring = _ring(limits, nearest)
            if ring == limits.size:
                continue
            if farthest <= limits[ring]:
                for k in range(d):
                    z[k] = _middle(nodes.box, node, k) - queries[i, k]
                _powers(kinds, z, powers)
                _move(kinds, powers, known.sums[node], out[i, ring])
            elif nodes.child[node] == LEAF:
                start, stop = nodes.start[node], nodes.stop[node]
                measure(axes, start, stop, queries, i, metric, reach)
                _look(axes, known, kinds, start, stop, queries[i], reach, limits, z, powers, out[i])
            else:
                stack[top], stack[top + 1] = nodes.child[node], nodes.child[node] + 1
                top += 2
        for ring in range(1, limits.size):
            for c in range(out.shape[2]):
                out[i, ring, c] += out[i, ring - 1, c]
