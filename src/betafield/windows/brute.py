"""Every trial compared with every query: slow, plain NumPy, the oracle for the other indexes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from betafield import lattice
from betafield.windows.base import CHEBYSHEV, EUCLIDEAN, Floats, Ints, Places, limit

# Number of distances in memory at once.
BLOCK = 1 << 22


@dataclass(frozen=True)
class Brute:
    """An index without structure.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield.windows.base import EUCLIDEAN
    >>> places = Places(np.array([[0.0, 3.0], [0.0, 4.0]]), np.array([[1, 10]]))
    >>> Brute.build(places, EUCLIDEAN).sums(np.zeros((1, 2)), radius=5.0)
    array([[11]])
    """

    places: Places
    metric: int

    @classmethod
    def build(cls, places: Places, metric: int, presorted: bool = False) -> Brute:
        """Keep the places as they are."""
        return cls(places._replace(counts=places.counts.astype(np.int64)), metric)

    @property
    def totals(self) -> Ints:
        """The sums over all places."""
        return np.asarray(self._statistics().sum(axis=1))

    @property
    def span(self) -> tuple[int, int]:
        """The first lattice point among the sums, and the number of points."""
        return self.places.span

    def sums(self, queries: Floats, radius: float) -> Ints:
        """Return (m, c + n): the sums within `radius` of each query."""
        rows = max(1, BLOCK // max(1, self.places.size))
        statistics = self._statistics()
        blocks = [
            self._inside(queries[start : start + rows], radius) @ statistics.T
            for start in range(0, len(queries), rows)
        ]
        return np.concatenate([np.empty((0, len(statistics)), np.int64), *blocks])

    def _statistics(self) -> Ints:
        """Return the counts of each place and its lattice shares, one row per statistic."""
        counts, shifts = self.places.counts, self.places.shifts
        if shifts is None:
            return counts
        first, n = shifts.span()
        shares = np.zeros((n, self.places.size), dtype=np.int64)
        there = np.flatnonzero(shifts.held)
        distorted = shifts.taken(there)
        at = lattice.position(distorted.values) - first
        weights = lattice.weights(distorted.values, distorted.sizes()) * distorted.held[:, None]
        for j in range(lattice.POINTS):
            shares[at + j, there] = weights[:, j]
        return np.concatenate([counts, shares])

    def _inside(self, queries: Floats, radius: float) -> Ints:
        reach = np.zeros((len(queries), self.places.size))
        with np.errstate(over="ignore"):
            for axis, q in zip(self.places.axes, queries.T, strict=True):
                apart = np.abs(axis - q[:, None])
                if self.metric == CHEBYSHEV:
                    np.maximum(reach, apart, out=reach)
                else:
                    reach += apart * apart if self.metric == EUCLIDEAN else apart
            return (reach <= limit(radius, self.metric)).astype(np.int64)
