"""What every index keeps: places with their sums, and the meaning of "within the window".

A *place* is a distinct point with the sums of its trials' statistics. Statistics are int64
columns and indexes only ever add them, so whatever the order of the additions the answers
are the same bits.

A trial at x lies in the window of q when its *reach* is at most the window's *limit*:

    euclidean   Σ (x_k − q_k)²      radius²
    manhattan   Σ |x_k − q_k|       radius
    chebyshev   max |x_k − q_k|     radius

Every index computes the reach in float64, axis by axis from the first, so that they agree
about trials exactly on the border. In one dimension the three are the same distance, and
`chebyshev` stands for all: squaring would only add rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EUCLIDEAN, CHEBYSHEV, MANHATTAN = 0, 1, 2
METRICS = {"euclidean": EUCLIDEAN, "chebyshev": CHEBYSHEV, "manhattan": MANHATTAN}


class Places(NamedTuple):
    """Points and the sums of the trials at each, one array row an axis or a statistic.

    Parameters
    ----------
    axes : array of shape (d, t)
        Coordinates, in the units in which the radius is measured.
    counts : integer array of shape (c, t)
        Additive statistics. Any integer or boolean dtype goes in; an index holds the narrowest
        that will do, for a query is as fast as memory, and adds them up in int64.
    """

    axes: Floats
    counts: npt.NDArray[Any]

    @property
    def size(self) -> int:
        """Number of places."""
        return int(self.axes.shape[1])

    def widened(self, width: int) -> Places:
        """Return a copy with more statistics, 0 for all trials here."""
        return Places(
            self.axes.copy(), np.pad(self.counts, [(0, width - len(self.counts)), (0, 0)])
        )

    def where(self, mask: npt.NDArray[np.bool_]) -> Places:
        """Return the places that the mask names."""
        return Places(self.axes[:, mask], self.counts[:, mask])

    def sorted_by(self, order: npt.NDArray[Any]) -> Places:
        """Return the places in this order, equal neighbours joined, counts narrowed.

        The axes' array is reordered in place, an axis at a time, to save a copy of the
        largest array there is.
        """
        for axis in self.axes:
            axis[:] = axis[order]
        counts = np.stack([column[order] for column in self.counts])
        axes, counts = Places(self.axes, counts).joined()
        return Places(axes, np.ascontiguousarray(_narrowed(counts)))

    def joined(self) -> Places:
        """Return the places with equal neighbours made one: their counts are added."""
        fresh = np.ones(self.size, dtype=np.bool_)
        np.any(self.axes[:, 1:] != self.axes[:, :-1], axis=0, out=fresh[1:])
        if fresh.all():
            return self
        first = np.flatnonzero(fresh)
        return Places(
            np.ascontiguousarray(self.axes[:, first]),
            np.add.reduceat(self.counts, first, axis=1, dtype=np.int64),
        )


def _narrowed(counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the counts in the narrowest signed integers that hold them."""
    most = int(counts.max())
    kinds = (np.int8, np.int16, np.int32)
    return counts.astype(next((k for k in kinds if most <= np.iinfo(k).max), np.int64), copy=False)


def padded(counts: npt.NDArray[Any], width: int) -> npt.NDArray[Any]:
    """Return the counts with rows of 0 added, up to this many."""
    missing = np.zeros((width - len(counts), *counts.shape[1:]), dtype=counts.dtype)
    return np.concatenate([counts, missing])


def concatenate(parts: list[Places]) -> Places:
    """Return all places of the parts in new arrays, statistics that a part lacks as 0."""
    width = max(len(part.counts) for part in parts)
    return Places(
        np.concatenate([part.axes for part in parts], axis=1),
        np.concatenate([padded(part.counts, width) for part in parts], axis=1),
    )


def metric_code(metric: str, d: int) -> int:
    """Return the number by which kernels know the metric; one dimension has only one."""
    return CHEBYSHEV if d == 1 else METRICS[metric]


def limit(radius: float, metric: int) -> float:
    """Return the largest reach of a trial in the window."""
    return radius * radius if metric == EUCLIDEAN else radius


class Index(Protocol):
    """Sums over windows. An index never changes once it is built."""

    @property
    def places(self) -> Places:
        """The distinct points, in the order of the index."""

    @property
    def totals(self) -> Ints:
        """The sums over all places."""

    @classmethod
    def build(cls, places: Places, metric: int, presorted: bool = False) -> Index:
        """Index the places, whose arrays now belong to the index.

        `presorted` says that they are a few runs, each in the index's order already, which
        some sorts finish in linear time.
        """

    def sums(self, queries: Floats, radius: float) -> Ints:
        """Return (m, c): the sums of the counts within `radius` of each of the (m, d) queries."""
