"""The points at which a posterior is requested: given ones, or a grid at every level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.decisions.space import Space

Floats = npt.NDArray[np.float64]
Given = Mapping[str, Sequence[str]]
# Most points of a request or a grid.
MOST = 10_000
# Default number of grid values per range, by the number of ranges.
USUAL = {1: 101, 2: 21}


class Asked(NamedTuple):
    """Points as rows of coordinates; for a grid, also the number of values per feature."""

    rows: Floats
    shape: dict[str, int] | None = None


def asked(space: Space, grid: int | None, given: Given) -> Asked:
    """Return the points of a request.

    Parameters
    ----------
    space : Space
    grid : int or None
        The number of grid values per range; fewer if a range has fewer whole numbers.
    given : mapping of str to texts
        Values of each feature, as in the query of a URL. If there are none, or if a grid is
        requested and all of them are levels, the points are those of a grid at these levels.

    Examples
    --------
    >>> space = Space.of({"x": (0, 1), "eye": ["left", "right"]})
    >>> asked(space, 2, {"eye": ["right"]})
    Asked(rows=array([[0., 1.],
           [1., 1.]]), shape={'x': 2, 'eye': 1})
    >>> asked(space, 50, {}).shape
    {'x': 50, 'eye': 2}
    >>> asked(space, None, {"x": ["0.1", "0.2"], "eye": ["left"]}).rows
    array([[0.1, 0. ],
           [0.2, 0. ]])
    """
    numbers = {name: _numbers(space, name, given.get(name, ())) for name in space.names}
    told = {name for name, some in numbers.items() if some}
    if not told or (grid is not None and told <= set(space.levels)):
        return _grid(space, grid, numbers)
    return Asked(_listed(numbers))


def _numbers(space: Space, name: str, texts: Sequence[str]) -> list[float]:
    """Return the coordinates of the given values of a feature."""
    side, what = space.sides[space.names.index(name)], f"points, feature {name!r}"
    # Each text is read once, because many points may share it and levels may be many.
    known = {text: side.read(what, text) for text in dict.fromkeys(texts)}
    return [known[text] for text in texts]


def _grid(space: Space, grid: int | None, numbers: Mapping[str, list[float]]) -> Asked:
    """Return a grid over the ranges at every level, or at the given levels."""
    levels = {
        name: numbers[name] or list(map(float, range(len(each))))
        for name, each in space.levels.items()
    }
    ranges, times = len(space.names) - len(levels), math.prod(map(len, levels.values()))
    number = grid or _usual(ranges, times)
    axes = {
        name: levels[name] if name in levels else side.grid(number)
        for name, side in zip(space.names, space.sides, strict=True)
    }
    if math.prod(map(len, axes.values())) > MOST:
        at = f" at {times:,} levels, or combinations of levels" if levels else ""
        found = f"{number:,} values of each range{at}" if ranges else at.removeprefix(" at ")
        raise ValueError(f"grid: found {found}; at most {MOST:,} points are possible in all")
    rows = np.stack(np.meshgrid(*axes.values(), indexing="ij"), axis=-1).reshape(-1, len(axes))
    return Asked(rows, {name: len(axis) for name, axis in axes.items()})


def _usual(ranges: int, times: int) -> int:
    """Return the default number of grid values per range, fewer if there are many levels."""
    if not ranges:
        return 1
    usual = USUAL.get(ranges) or round(math.pow(101, 1 / ranges))
    return max(1, min(usual, math.floor(math.pow(MOST / times, 1 / ranges))))


def _listed(numbers: Mapping[str, list[float]]) -> Floats:
    """Return points from columns of features; a single value applies to all points."""
    lengths = {name: len(some) for name, some in numbers.items()}
    size = max(lengths.values())
    if not set(lengths.values()) <= {1, size}:
        raise ValueError(f"points: found {lengths}; every feature needs as many values, or one")
    if size > MOST:
        raise ValueError(f"points: found {size:,}; at most {MOST:,} are possible")
    columns = [some * size if len(some) == 1 else some for some in numbers.values()]
    return np.array(columns, dtype=np.float64).T
