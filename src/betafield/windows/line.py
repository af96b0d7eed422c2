"""One dimension: sorted places and prefix sums.

A window [q − r, q + r] is a run of consecutive places, so its sums are the difference of two prefix
sums; only its two ends have to be found. Prefix sums take eight bytes per statistic and place, so
this suits few statistics and no distorted trials.

With many places, speed is limited by memory, not by arithmetic. `levels[0]` holds the places, and
each further level holds every eighth value of the previous one, until a level fits in the
processor's cache. That level is searched by galloping from the end of the previous query, because
queries come almost sorted from the forest; further down, the eight candidates are compared without
branches. Each level has its own loop over the queries, so that memory loads for many queries
overlap.

For few queries, NumPy finds the same ends, to avoid the wait for compilation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from betafield._jit import kernel
from betafield.windows.base import Floats, Ints, Places

BLOCK = 8
CACHED = 1 << 16
# Number of queries up to which no kernel is compiled.
FEW = 1 << 12


@dataclass(frozen=True)
class Line:
    """Sorted places of one axis, search levels, and `before[i]`, the sums before the i-th place.

    Up to `few` queries are answered without a kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield.windows.base import CHEBYSHEV
    >>> places = Places(np.array([[0.5, 0.1, 0.2]]), np.array([[1, 10, 100]]))
    >>> Line.build(places, CHEBYSHEV).sums(np.array([[0.0], [0.35], [0.9]]), radius=0.2)
    array([[110],
           [101],
           [  0]])
    """

    places: Places
    levels: tuple[Floats, ...]
    before: Ints
    few: int = FEW

    @classmethod
    def build(
        cls, places: Places, metric: int, presorted: bool = False, cached: int = CACHED
    ) -> Line:
        """Sort the places and sum their counts; the last level has at most `cached` places."""
        order = np.argsort(places.axes[0], kind="stable" if presorted else None)
        places = places.sorted_by(order)
        before = np.zeros((places.size + 1, len(places.counts)), dtype=np.int64)
        np.cumsum(places.counts.T, axis=0, dtype=np.int64, out=before[1:])
        levels = [places.axes[0]]
        while levels[-1].size > cached:
            levels.append(levels[-1][::BLOCK].copy())
        return cls(places, tuple(levels), before)

    @property
    def span(self) -> tuple[int, int]:
        """The lattice points among the sums: none."""
        return 0, 0

    @property
    def totals(self) -> Ints:
        """The sums over all places."""
        totals: Ints = self.before[-1]
        return totals

    def sums(self, queries: Floats, radius: float) -> Ints:
        """Return (m, c): the sums of the counts within `radius` of each query."""
        # x − q >= −r as a strict comparison: x − q > the float below −r.
        outside = float(np.nextafter(-radius, -np.inf))
        if len(queries) <= self.few:
            bounds = np.array([[outside], [radius]])
            first, beyond = _searched(self.levels[0], queries[:, 0], bounds)
            return np.asarray(self.before[beyond] - self.before[first])
        first = self._first_above(queries, outside)
        beyond = self._first_above(queries, radius)
        out = np.empty((len(queries), self.before.shape[1]), dtype=np.int64)
        _difference(self.before, first, beyond, out)
        return out

    def _first_above(self, queries: Floats, bound: float) -> Ints:
        """Return, for each query q, the first i with xs[i] − q > bound.

        Like every index, this compares x − q with the radius, not x with q + r, which rounds
        differently; x − q never decreases along sorted places, so the search is exact.
        """
        qs, ends = queries[:, 0], np.empty(len(queries), dtype=np.int64)
        _gallop(self.levels[-1], qs, bound, ends)
        for level in self.levels[-2::-1]:
            _descend(level, qs, bound, ends)
        return ends


def _searched(xs: Floats, queries: Floats, bounds: Floats) -> Ints:
    """Return the first i with xs[i] − q > bound, for (m,) queries and (k, 1) bounds at once.

    Searching for q + bound is right up to rounding; wrong results are corrected by bisection.
    """
    if not xs.size:
        return np.zeros((len(bounds), len(queries)), dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore"):  # queries may be infinite
        ends = xs.searchsorted(queries + bounds, side="right")
        # Neighbours are looked up individually, because copying all places would cost more.
        is_above = (ends == xs.size) | (xs.take(ends, mode="clip") - queries > bounds)
        is_within = (ends == 0) | (xs.take(ends - 1, mode="clip") - queries <= bounds)
        is_right = is_above & is_within
        if not is_right.all():
            which, wrong = np.nonzero(~is_right)
            ends[which, wrong] = _bisected(xs, queries[wrong], bounds[which, 0])
    return ends


def _bisected(xs: Floats, queries: Floats, bound: Floats) -> Ints:
    """Return the same for one bound per query, by comparing only x − q with it."""
    low = np.zeros(len(queries), dtype=np.int64)
    high = np.full(len(queries), xs.size, dtype=np.int64)
    last = max(xs.size - 1, 0)
    for _ in range(int(xs.size).bit_length()):
        middle = (low + high) >> 1
        is_inside = (low < high) & (xs[np.minimum(middle, last)] - queries <= bound)
        low, high = np.where(is_inside, middle + 1, low), np.where(is_inside, high, middle)
    return low


@kernel
def _gallop(xs: Floats, queries: Floats, bound: float, ends: Ints) -> None:
    """Find the first x above the bound, starting from the result of the previous query."""
    low = 0
    for i in range(queries.size):
        q = queries[i]
        high, step = low, 1
        while high < xs.size and xs[high] - q <= bound:
            low = high + 1
            high += step
            step *= 2
        high, step = high if high < xs.size else xs.size, 1
        while low > 0 and xs[low - 1] - q > bound:
            high = low - 1
            low = low - step if low > step else 0
            step *= 2
        while low < high:
            middle = (low + high) >> 1
            if xs[middle] - q <= bound:
                low = middle + 1
            else:
                high = middle
        ends[i] = low


@kernel
def _descend(xs: Floats, queries: Floats, bound: float, ends: Ints) -> None:
    """Convert the first x above the bound at the level above into that of this level."""
    for i in range(queries.size):
        start = max(ends[i] - 1, 0) * BLOCK
        inside = 0
        if start + BLOCK <= xs.size:
            block = xs[start:]
            for j in range(BLOCK):
                inside += int(block[j] - queries[i] <= bound)
        else:
            for j in range(start, xs.size):
                inside += int(xs[j] - queries[i] <= bound)
        ends[i] = start + inside


@kernel
def _difference(before: Ints, first: Ints, beyond: Ints, out: Ints) -> None:
    for i in range(first.size):
        for c in range(out.shape[1]):
            out[i, c] = before[beyond[i], c] - before[first[i], c]
