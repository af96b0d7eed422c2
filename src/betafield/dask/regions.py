"""Regions of space, each with about as many trials: partitions that few queries need to ask."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Plane(NamedTuple):
    """A cut at a value of an axis. Children are numbers of planes, or −1 − that of a region."""

    axis: int
    value: float
    low: int
    high: int


class Regions(NamedTuple):
    """Boxes that fill all space, as a tree of planes.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Regions.cut(points, number=2).of(points).tolist()
    [0, 0, 1, 1]
    """

    planes: list[Plane]
    number: int

    @classmethod
    def cut(cls, points: Floats, number: int) -> Regions:
        """Return so many regions, by some of the points that they are for."""
        planes: list[Plane] = []
        _cut(points, number, planes, iter(range(number)))
        return cls(planes, number)

    def of(self, points: Floats) -> npt.NDArray[np.intp]:
        """Return the number of the region of each point."""
        found = np.zeros(len(points), dtype=np.intp)
        waiting = [(0, np.arange(len(points)))] if self.planes else []
        while waiting:
            mine, rows = waiting.pop()
            plane = self.planes[mine]
            is_low = points[rows, plane.axis] <= plane.value
            for child, some in ((plane.low, rows[is_low]), (plane.high, rows[~is_low])):
                if child < 0:
                    found[some] = -1 - child
                else:
                    waiting.append((child, some))
        return found


def _cut(points: Floats, number: int, planes: list[Plane], regions: Iterator[int]) -> int:
    """Cut the longest side so that both halves have their share; return the number of the cut."""
    if number == 1:
        return -1 - next(regions)
    axis = int(np.argmax(np.ptp(points, axis=0))) if len(points) else 0
    half = number // 2
    value = float(np.quantile(points[:, axis], half / number)) if len(points) else 0.0
    is_low = points[:, axis] <= value
    mine = len(planes)
    planes.append(Plane(axis, value, 0, 0))
    low = _cut(points[is_low], half, planes, regions)
    high = _cut(points[~is_low], number - half, planes, regions)
    planes[mine] = Plane(axis, value, low, high)
    return mine
