"""Distances to the nearest of many points that arrive one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Neighbours:
    """Points in trees of decreasing size.

    A tree is rebuilt once as many points have arrived as it holds, so each point enters a tree at
    most log₂ t times, and there are at most log₂ t trees to search.

    Examples
    --------
    >>> known = Neighbours()
    >>> for x in (0.0, 1.0, 4.0):
    ...     known.add(np.array([[x]]))
    >>> known.distances(np.array([[0.25], [3.0]])).tolist()
    [0.25, 1.0]
    >>> known.sizes
    [2, 1]
    """

    def __init__(self) -> None:
        self._trees: list[Any] = []

    @property
    def sizes(self) -> list[int]:
        """The number of points per tree."""
        return [tree.n for tree in self._trees]

    def add(self, points: Floats) -> None:
        """Add points of shape (m, d)."""
        from scipy.spatial import cKDTree

        if not len(points):
            return
        while self._trees and self._trees[-1].n <= len(points):
            points = np.concatenate([self._trees.pop().data, points])
        self._trees.append(cKDTree(points))

    def distances(self, points: Floats) -> Floats:
        """Return the distance of each point to the nearest one; infinite if there are none."""
        found = np.full(len(points), np.inf)
        for tree in self._trees:
            np.minimum(found, tree.query(points)[0], out=found)
        return found
