"""One dimension: sorted places and prefix sums.

A window [q − r, q + r] is a run of consecutive places, so its sums are the difference of two
prefix sums, whatever it holds. Queries come sorted from the forest; each search starts where
the last one ended and gallops from there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from betafield._jit import inlined, kernel
from betafield.windows.base import Floats, Ints, Places


@dataclass(frozen=True)
class Line:
    """Sorted places of one axis, and `before[i]`, the sums of the places before the i-th.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield.windows.base import CHEBYSHEV
    >>> places = Places(np.array([[0.5, 0.1, 0.2]]), np.array([[1, 10, 100]]))
    >>> Line.build(places, CHEBYSHEV).sums(np.array([[0.0], [0.3], [0.9]]), radius=0.2)
    array([[110],
           [101],
           [  0]])
    """

    places: Places
    before: Ints

    @classmethod
    def build(cls, places: Places, metric: int, presorted: bool = False) -> Line:  # noqa: ARG003
        """Sort the places and add up their counts."""
        order = np.argsort(places.axes[0], kind="stable" if presorted else None)
        places = places.sorted_by(order)
        before = np.zeros((places.size + 1, len(places.counts)), dtype=np.int64)
        np.cumsum(places.counts.T, axis=0, out=before[1:])
        return cls(places, before)

    def sums(self, queries: Floats, radius: float) -> Ints:
        """Return (m, c): the sums of the counts within `radius` of each query."""
        out = np.empty((len(queries), self.before.shape[1]), dtype=np.int64)
        # x − q >= −r, as a strict comparison: x − q > the float below −r.
        outside = np.nextafter(-radius, -np.inf)
        _sums(self.places.axes[0], self.before, queries[:, 0], outside, radius, out)
        return out


@kernel
def _sums(
    xs: Floats, before: Ints, queries: Floats, outside: float, radius: float, out: Ints
) -> None:
    low = high = 0
    for i in range(queries.size):
        low = _first_above(xs, queries[i], outside, low)
        high = _first_above(xs, queries[i], radius, high)
        for c in range(out.shape[1]):
            out[i, c] = before[high, c] - before[low, c]


@inlined
def _first_above(xs: Floats, q: float, bound: float, guess: int) -> int:
    """Return the first i with xs[i] − q > bound, fast where it is near the guess.

    Like every index it compares x − q with the radius, and not x with q + r, which rounds
    differently; x − q never falls along sorted places, so bisection is exact.
    """
    low = high = guess
    step = 1
    while high < xs.size and xs[high] - q <= bound:
        low = high + 1
        high += step
        step *= 2
    high = min(high, xs.size)
    step = 1
    while low > 0 and xs[low - 1] - q > bound:
        high = low - 1
        low = max(0, low - step)
        step *= 2
    while low < high:
        middle = (low + high) >> 1
        if xs[middle] - q <= bound:
            low = middle + 1
        else:
            high = middle
    return low
