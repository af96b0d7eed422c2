"""Sums over windows of any stretch and width, by trees; `ladder` finds the same by brute force."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from betafield._locks import cached
from betafield.process.ladder import EXACT, WIDTHS, stretched, unit_of, units, window_sums
from betafield.process.wrapped import Kinds
from betafield.windows import Forest, Places

Floats = npt.NDArray[np.float64]

# Up to this many places, brute force is faster than a tree search per width.
FEW = 1_500
# Up to this many places and queries, it is as fast as trees and needs no compiled kernel.
UNCOMPILED = 1 << 10
# Pairs of a query and a place up to which it is quicker along one feature, too.
FEW_PAIRS = 1 << 15


@dataclass(frozen=True, eq=False)
class Trees:
    """Values at places, to be summed over windows: one tree per stretch, built on first use.

    Parameters
    ----------
    x : array of shape (r, d)
        Places.
    values : array of shape (r, k)
        Non-negative. They are summed as integer multiples of 2⁻³⁶, or of a coarser unit if they
        are large, so that sums do not depend on their order.
    kinds : tuple of str
        Kind of each feature; if empty, all are lines.

    Examples
    --------
    >>> import numpy as np
    >>> trees = Trees(np.array([[0.1, 0.5], [0.2, 0.9]]), np.array([[1.0], [2.0]]))
    >>> trees.sums(np.array([[0.1, 0.6]]), np.array([1.0, 0.0]), 0.125)
    array([[3.]])
    """

    x: Floats
    values: Floats
    kinds: Kinds = ()

    def sums(
        self, queries: Floats, stretch: Floats, width: float, n_jobs: int | None = None
    ) -> Floats:
        """Return the sums of values over windows about queries, shape (q, k)."""
        forest = self._forest(tuple(stretch.tolist()))
        return forest.sums(stretched(queries, stretch, self.kinds), width, n_jobs) / self._unit

    def ladder(self, queries: Floats, stretch: Floats) -> Floats:
        """Return the sums over windows of all widths, shape (q, widths, k), by brute force."""
        counts = units(self.values, self._unit)
        return window_sums(queries, self.x, counts, stretch, self.kinds) / self._unit

    def _forest(self, stretch: tuple[float, ...]) -> Forest:
        if stretch not in self._forests:
            axes = np.ascontiguousarray(stretched(self.x, np.array(stretch), self.kinds).T)
            counts = np.ascontiguousarray(units(self.values, self._unit).T)
            metric = "euclidean" if self.kinds else "chebyshev"
            forest = Forest(len(axes), metric).insert(Places(axes, counts))
            self._forests[stretch] = forest
        return self._forests[stretch]

    @cached
    def is_exact(self) -> bool:
        """Whether floats are exact for all sums, in units."""
        return bool(units(self.values, self._unit).sum(axis=0).max(initial=0) < EXACT)

    @cached
    def _unit(self) -> float:
        return unit_of(self.values)

    @cached
    def _forests(self) -> dict[tuple[float, ...], Forest]:
        return {}


@dataclass(frozen=True, eq=False)
class About:
    """Sums over windows of many stretches and widths about the same queries.

    If places are few, those of all widths are found at once and kept. Along one feature, searching
    is quicker unless there are very few.

    Parameters
    ----------
    trees : Trees
        The values to sum.
    queries : array of shape (q, d)
        Points.
    few : int
        Number of places up to which brute force is used.
    """

    trees: Trees
    queries: Floats
    few: int = FEW

    @classmethod
    def uncompiled(cls, trees: Trees, queries: Floats) -> About:
        """Return sums for a single call, without compiling anything if it is small."""
        return cls(trees, queries, UNCOMPILED if len(queries) <= UNCOMPILED else 0)

    def sums(self, stretch: Floats, width: float, n_jobs: int | None = None) -> Floats:
        """Return the sums over windows of one width, shape (q, k)."""
        if not self._is_few(stretch) or width not in WIDTHS:
            return self.trees.sums(self.queries, stretch, width, n_jobs)
        key = tuple(stretch.tolist())
        if key not in self._kept:
            self._kept[key] = self.trees.ladder(self.queries, stretch)
        return self._kept[key][:, WIDTHS.searchsorted(width)]

    def _is_few(self, stretch: Floats) -> bool:
        """Return whether looking at every place is quicker."""
        places = len(self.trees.x)
        is_plane = bool(self.trees.kinds) or int(np.count_nonzero(stretch)) > 1
        if is_plane or places > self.few:
            return places <= self.few
        # Larger sums would be added up by a kernel, which someone has to wait for.
        return places * len(self.queries) <= FEW_PAIRS and self.trees.is_exact

    @cached
    def _kept(self) -> dict[tuple[float, ...], Floats]:
        return {}
