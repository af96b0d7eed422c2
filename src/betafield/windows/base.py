"""What all indexes share: places with their sums, and the definition of a window.

A *place* is a distinct point with the sums of its trials' statistics. Statistics are int64 columns,
and indexes only ever add them, so answers are identical, bit for bit, in whatever order they are
added.

Distorted trials are counted on a lattice of shifts (`betafield.lattice`). A place stores the shift
of its trials, one number that stands for ten shares, and an index sums these shares. Its answers
are the counts, followed by the lattice points that its trials reach, from `first` on.

A trial at x lies in the window of q if its *reach* is at most the window's *limit*:

    euclidean   Σ (x_k − q_k)²      radius²
    manhattan   Σ |x_k − q_k|       radius
    chebyshev   max |x_k − q_k|     radius

Every index computes the reach in float64, axis by axis from the first, so they agree about trials
exactly on the border. In one dimension the three distances are equal, and `chebyshev` stands for
all, because squaring would only add rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from betafield import lattice
from betafield._rows import starts
from betafield.metrics import ORDERS

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EUCLIDEAN, CHEBYSHEV, MANHATTAN = 0, 1, 2
CODES = dict(zip(ORDERS, (EUCLIDEAN, CHEBYSHEV, MANHATTAN), strict=True))


class Shifts(NamedTuple):
    """Distorted trials, one shift per place; `held` is 0 for a place without any.

    Parameters
    ----------
    values : array of shape (t,)
        Shifts s = log l₁ − log l₀.
    held : integer array of shape (t,)
        Number of trials at the place with this shift.
    size : array of shape (t,) or None
        The weight of each of these trials; None: 1.
    """

    values: Floats
    held: npt.NDArray[Any]
    size: Floats | None = None

    @classmethod
    def none(cls, t: int) -> Shifts:
        """Return the shifts of t places without distorted trials."""
        return cls(np.zeros(t), np.zeros(t, dtype=np.int8))

    def taken(self, index: Any) -> Shifts:
        """Return the shifts of these places."""
        size = None if self.size is None else self.size[index]
        return Shifts(self.values[index], self.held[index], size)

    def sizes(self) -> Floats:
        """Return the weight of each trial."""
        return np.ones(len(self.values)) if self.size is None else self.size

    def total(self) -> int:
        """Return the total weight, in units of the lattice."""
        if self.size is None:
            return int(self.held.sum(dtype=np.int64)) * int(lattice.UNIT)
        units = np.rint(self.size * lattice.UNIT).astype(np.int64)
        return int(np.sum(units * self.held, dtype=np.int64))

    def span(self) -> tuple[int, int]:
        """Return the first lattice point that these trials reach, and the number of points."""
        values = self.values[self.held > 0]
        if not values.size:
            return 0, 0
        first, last = lattice.position(np.array([values.min(), values.max()])).tolist()
        return first, last - first + lattice.POINTS

    def alike(self) -> list[Floats]:
        """Return the keys that must be equal for trials of one place."""
        return [self.values] if self.size is None else [self.values, self.size]


class Places(NamedTuple):
    """Points, and the sums of the trials at each; arrays have one row per axis or statistic.

    Parameters
    ----------
    axes : array of shape (d, t)
        Coordinates, in the units in which the radius is measured.
    counts : integer array of shape (c, t)
        Additive, non-negative statistics. Any integer or boolean dtype is accepted; an index stores
        the narrowest one, because memory limits the speed of queries, and adds in int64.
    shifts : Shifts or None
        Distorted trials, if any. A point whose trials have several shifts is one place per shift.
    """

    axes: Floats
    counts: npt.NDArray[Any]
    shifts: Shifts | None = None

    @property
    def size(self) -> int:
        """Number of places."""
        return int(self.axes.shape[1])

    @property
    def width(self) -> int:
        """Number of counts, without the lattice."""
        return len(self.counts)

    @property
    def span(self) -> tuple[int, int]:
        """The first lattice point in use, and the number of points."""
        return (0, 0) if self.shifts is None else self.shifts.span()

    def widened(self, width: int) -> Places:
        """Return a copy with more statistics, which are 0 for all places."""
        return Places(
            self.axes.copy(),
            np.pad(self.counts, [(0, width - len(self.counts)), (0, 0)]),
            self.shifts,
        )

    def where(self, mask: npt.NDArray[np.bool_] | slice) -> Places:
        """Return the selected places, with each axis contiguous as kernels need it."""
        shifts = None if self.shifts is None else self.shifts.taken(mask)
        return Places(np.ascontiguousarray(self.axes[:, mask]), self.counts[:, mask], shifts)

    def sorted_by(self, order: npt.NDArray[Any]) -> Places:
        """Return the places in this order, with equal neighbours joined and counts narrowed.

        The axes are reordered in place, one at a time, to avoid a copy of the largest array.
        """
        for axis in self.axes:
            axis[:] = axis[order]
        counts = np.stack([column[order] for column in self.counts])
        shifts = None if self.shifts is None else self.shifts.taken(order)
        axes, counts, shifts = Places(self.axes, counts, shifts).joined()
        if shifts is not None:
            shifts = shifts._replace(held=_narrowed(shifts.held))
        return Places(axes, np.ascontiguousarray(_narrowed(counts)), shifts)

    def joined(self) -> Places:
        """Return the places with equal neighbours merged and their counts added."""
        shifts = self.shifts
        first = starts((*self.axes, *(() if shifts is None else shifts.alike())), self.size)
        if len(first) == self.size:
            return self
        if shifts is not None:
            held = np.add.reduceat(shifts.held, first, dtype=np.int64)
            shifts = shifts.taken(first)._replace(held=held)
        return Places(
            np.ascontiguousarray(self.axes[:, first]),
            np.add.reduceat(self.counts, first, axis=1, dtype=np.int64),
            shifts,
        )


def _narrowed(counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the counts in the narrowest signed integers that can hold them."""
    return counts.astype(narrowest(int(counts.max(initial=0))), copy=False)


def narrowest(most: int) -> type[np.signedinteger[Any]]:
    """Return the narrowest signed integer type that can hold numbers up to `most`."""
    kinds = (np.int8, np.int16, np.int32)
    return next((kind for kind in kinds if most <= np.iinfo(kind).max), np.int64)


def padded(counts: npt.NDArray[Any], width: int) -> npt.NDArray[Any]:
    """Return the counts with rows of zeros added, up to `width` rows."""
    missing = np.zeros((width - len(counts), *counts.shape[1:]), dtype=counts.dtype)
    return np.concatenate([counts, missing])


def concatenate(parts: list[Places]) -> Places:
    """Return all places of the parts in new arrays; statistics that a part lacks are 0."""
    width = max(part.width for part in parts)
    return Places(
        np.concatenate([part.axes for part in parts], axis=1),
        np.concatenate([padded(part.counts, width) for part in parts], axis=1),
        _concatenated_shifts(parts),
    )


def _concatenated_shifts(parts: list[Places]) -> Shifts | None:
    if all(part.shifts is None for part in parts):
        return None
    shifts = [part.shifts or Shifts.none(part.size) for part in parts]
    unsized = all(part.size is None for part in shifts)
    return Shifts(
        np.concatenate([part.values for part in shifts]),
        np.concatenate([part.held for part in shifts]),
        None if unsized else np.concatenate([part.sizes() for part in shifts]),
    )


def metric_code(metric: str, d: int) -> int:
    """Return the kernels' code of a metric; in one dimension all are the same."""
    return CHEBYSHEV if d == 1 else CODES[metric]


def limit(radius: float, metric: int) -> float:
    """Return the largest reach of a trial in the window."""
    return radius * radius if metric == EUCLIDEAN else radius


class Index(Protocol):
    """Sums over windows. An index is immutable."""

    @property
    def places(self) -> Places:
        """The distinct points, in the order of the index."""

    @property
    def totals(self) -> Ints:
        """The sums over all places."""

    @property
    def span(self) -> tuple[int, int]:
        """The first lattice point among the sums, and the number of points."""

    @classmethod
    def build(cls, places: Places, metric: int, presorted: bool = False) -> Index:
        """Index the places, and take ownership of their arrays.

        `presorted` says that they consist of a few runs that are already in the index's order,
        which some sorting algorithms finish in linear time.
        """

    def sums(self, queries: Floats, radius: float) -> Ints:
        """Return the sums within `radius` of each of the (m, d) queries.

        An array (m, c + n): the counts, and the n lattice points in use.
        """
