"""Where curves reach a level, and how steep they are there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Crossings(NamedTuple):
    """Where monotone curves reach a level, one per curve.

    Parameters
    ----------
    at : array of shape (r,)
        Where it is first reached; an end of the range if it is not reached within.
    slope : array of shape (r,)
        The slope of the curve there, over neighbouring grid cells.
    never : array of shape (r,)
        Whether the curve does not reach the level by the high end.
    already : array of shape (r,)
        Whether it is already beyond the level at the low end.
    """

    at: Floats
    slope: Floats
    never: Bools
    already: Bools


def crossings(curves: Floats, grid: Floats, level: float, sign: int = 1) -> Crossings:
    """Return where each curve first reaches the level, by linear interpolation on the grid.

    Parameters
    ----------
    curves : array of shape (r, n)
        One monotone curve per row.
    grid : array of shape (n,)
        Where they are known, in increasing order.
    level : float
    sign : {1, -1}, default=1
        Whether curves rise to the level or fall to it.

    Examples
    --------
    >>> import numpy as np
    >>> grid = np.array([0.0, 1.0, 2.0])
    >>> found = crossings(np.array([[0.0, 0.4, 0.8], [0.0, 0.1, 0.2], [0.7, 0.8, 0.9]]), grid, 0.6)
    >>> found.at.tolist(), found.never.tolist(), found.already.tolist()
    ([1.5, 2.0, 0.0], [False, True, False], [False, False, True])
    """
    heights, aim = sign * curves, sign * level
    is_past = heights >= aim
    never, already = ~is_past[:, -1], is_past[:, 0]
    # The level is reached in the cell that ends at j; outside, that is the first or last cell.
    j = np.where(never, len(grid) - 1, np.maximum(is_past.argmax(axis=1), 1))
    rows = np.arange(len(curves))
    below, above = heights[rows, j - 1], heights[rows, j]
    rise = np.where(above > below, above - below, 1.0)
    share = np.where(never, 1.0, np.where(already, 0.0, np.clip((aim - below) / rise, 0.0, 1.0)))
    at = grid[j - 1] + share * (grid[j] - grid[j - 1])
    return Crossings(at, slopes(curves, grid, j), never, already)


def slopes(curves: Floats, grid: Floats, j: npt.NDArray[np.intp]) -> Floats:
    """Return the slope of each curve around the cell that ends at its j, over three cells.

    Over one cell alone, the slope of an isotonic fit is 0 wherever neighbours were pooled.
    """
    rows = np.arange(len(curves))
    low, high = np.maximum(j - 2, 0), np.minimum(j + 1, len(grid) - 1)
    return np.asarray((curves[rows, high] - curves[rows, low]) / (grid[high] - grid[low]))


def direction(curve: Floats) -> int:
    """Return 1 if a curve rises overall, −1 if it falls.

    Examples
    --------
    >>> import numpy as np
    >>> direction(np.array([0.2, 0.1, 0.6])), direction(np.array([0.9, 0.5, 0.6]))
    (1, -1)
    """
    away = np.arange(len(curve)) - 0.5 * (len(curve) - 1)
    return 1 if float((away * curve).sum()) >= 0.0 else -1
