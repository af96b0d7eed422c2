"""Fields that are monotone along some features, made from draws that are not.

Draws of a field are evaluated on a tensor grid: over all features if there are few of them,
otherwise over the monotone ones only, at each point's own values of the others. Along each monotone
feature in turn, each line of the grid is replaced by its isotonic regression (`isotonic`). This
preserves the order between lines, so a grid made monotone along one feature stays so when others
follow. Fields are multilinear between grid points and constant beyond the domain, so they are
monotone everywhere.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield._rows import distinct
from betafield.process.isotonic import isotonic

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.intp]
Draw = Callable[[Floats], Floats]

# Grid points along a monotone feature and along another, by the number of features of the grid.
ALONG = {1: 129, 2: 65, 3: 33}
ACROSS = {2: 33, 3: 17}
# Grid points along a monotone feature if there are many features, by the number of monotone ones.
MANY = {1: 33, 2: 17, 3: 9}
# Values drawn at a time.
BLOCK = 1 << 22


class Slice(NamedTuple):
    """A tensor grid over some features.

    Parameters
    ----------
    features : tuple of int
        Which features.
    grids : tuple of arrays
        Increasing values of each, over its domain.
    signs : tuple of {-1, 0, 1}
        Direction of the field along each; 0 if it need not be monotone.
    """

    features: tuple[int, ...]
    grids: tuple[Floats, ...]
    signs: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of grid points along each feature."""
        return tuple(len(grid) for grid in self.grids)

    @property
    def size(self) -> int:
        """The number of grid points."""
        return math.prod(self.shape)

    def points(self, others: Floats) -> Floats:
        """Return the points of one grid per row of `others` (r, d), shape (r · size, d)."""
        points = np.repeat(others, self.size, axis=0)
        mesh = np.meshgrid(*self.grids, indexing="ij")
        for a, column in zip(self.features, mesh, strict=True):
            points[:, a] = np.tile(column.ravel(), len(others))
        return points

    def projected(self, values: Floats) -> Floats:
        """Return draws on grids (size, grids, points) made monotone along every signed feature."""
        shape = (*values.shape[:2], *self.shape)
        values = values.reshape(shape)
        for axis, sign in enumerate(self.signs, start=2):
            if sign:
                lines = np.moveaxis(values, axis, -1)
                flat = isotonic(lines.reshape(-1, lines.shape[-1]), sign)
                values = np.moveaxis(flat.reshape(lines.shape), -1, axis)
        return values.reshape(*shape[:2], -1)

    def drawn(self, draw: Draw, others: Floats) -> Floats:
        """Return monotone draws on one grid per row of `others`, shape (size, rows, points)."""
        values = draw(self.points(others))
        return self.projected(values.reshape(len(values), len(others), self.size))

    def between(self, values: Floats, points: Floats) -> Floats:
        """Return grid values (..., grid points) interpolated at points (m, d), shape (..., m)."""
        cells = [
            _cell(points[:, a], grid) for a, grid in zip(self.features, self.grids, strict=True)
        ]
        out = np.zeros((*values.shape[:-1], len(points)))
        for corner in itertools.product((0, 1), repeat=len(cells)):
            at = [cell.node(step) for cell, step in zip(cells, corner, strict=True)]
            share = np.prod(
                [cell.weight(step) for cell, step in zip(cells, corner, strict=True)], 0
            )
            out += values[..., np.ravel_multi_index(at, self.shape)] * share
        return out


class _Cell(NamedTuple):
    """Cells of a grid: the node below each value, the last node, and the weight of the next."""

    low: Ints
    last: int
    share: Floats

    def node(self, step: int) -> Ints:
        return np.minimum(self.low + step, self.last)

    def weight(self, step: int) -> Floats:
        return self.share if step else 1.0 - self.share


def _cell(x: Floats, grid: Floats) -> _Cell:
    """Return the cell of a grid that holds each value; beyond the grid, the first or the last."""
    if len(grid) == 1:
        return _Cell(np.zeros(len(x), dtype=np.intp), 0, np.zeros(len(x)))
    low = np.clip(np.searchsorted(grid, x, side="right") - 1, 0, len(grid) - 2)
    share = np.clip((x - grid[low]) / (grid[low + 1] - grid[low]), 0.0, 1.0)
    return _Cell(low, len(grid) - 1, share)


def sides(signs: tuple[int, ...], apart: tuple[int, ...] = ()) -> dict[int, int]:
    """Return the features of the grid and the number of points along each.

    With few features these are all except those `apart`, with more the monotone ones.

    Examples
    --------
    >>> sides((1,)), sides((0, -1)), sides((1, 0, 0, 0, 0))
    ({0: 129}, {0: 33, 1: 65}, {0: 33})
    """
    if len(signs) > max(ACROSS):
        chosen = [a for a, sign in enumerate(signs) if sign]
        return dict.fromkeys(chosen, MANY[len(chosen)])
    chosen = [a for a, sign in enumerate(signs) if sign or a not in apart]
    k = len(chosen)
    return {a: ALONG[k] if signs[a] else ACROSS[k] for a in chosen}


def at_points(draw: Draw, size: int, grid: Slice, points: Floats) -> Floats:
    """Return monotone fields at points (m, d), shape (size, m).

    Parameters
    ----------
    draw : callable
        Maps points (n, d) to draws (size, n) of the same fields, whatever the points.
    size : int
        Number of fields.
    grid : Slice
        The grid on which fields are made monotone.
    points : array of shape (m, d)
    """
    others = points.copy()
    others[:, list(grid.features)] = 0.0
    rows, which = distinct(others)
    order, counts = np.argsort(which.ravel(), kind="stable"), np.bincount(which.ravel())
    mine = np.split(order, np.cumsum(counts)[:-1])
    out = np.empty((size, len(points)))
    step = max(1, BLOCK // (grid.size * size))
    for start in range(0, len(rows), step):
        values = grid.drawn(draw, rows[start : start + step])
        for i, chosen in enumerate(mine[start : start + step]):
            out[:, chosen] = grid.between(values[:, i], points[chosen])
    return out
