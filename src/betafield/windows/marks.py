"""Shares of distorted trials in the lattice, for kernels: what `lattice.weights` says, compiled.

A place keeps the shift of its trials, and what they share out is computed where it is needed:
that takes a tenth of the memory, and some tens of instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield._jit import inlined
from betafield.lattice import INVERSES, MIDDLE, POINTS, STEP, UNIT
from betafield.windows.base import Floats, Ints, Shifts

# As an array, because a loop over a tuple is unrolled at the price of a longer compilation.
_INVERSES = np.array(INVERSES)


class Marks(NamedTuple):
    """The shifts of places as kernels read them, with room for the shares of one leaf.

    `size` is empty where all are 1; `first` is the first point of the lattice in use. The j-th
    place of the leaf has `units[j, i]` in the point first + at[j] + i; `x` and `below` are
    scratch. One call of a kernel has one of these: threads do not share the room.
    """

    values: Floats
    held: npt.NDArray[Any]
    size: Floats
    first: int
    at: Ints
    units: Ints
    x: Floats
    below: Floats


def marked(shifts: Shifts | None, first: int, n: int) -> Marks | None:
    """Return the shifts, with room for the shares of n places."""
    if shifts is None:
        return None
    return Marks(
        shifts.values,
        shifts.held,
        np.empty(0) if shifts.size is None else shifts.size,
        first,
        np.empty(n, dtype=np.int64),
        np.empty((n, POINTS), dtype=np.int64),
        np.empty(n),
        np.empty((POINTS + 1, n)),
    )


@inlined
def add_shares(marks: Marks, j: int, points: Ints) -> None:
    """Add what the j-th place of the leaf shares out to the points of the lattice in use."""
    at = marks.at[j]
    for i in range(POINTS):
        points[at + i] += marks.units[j, i]


@inlined
def share_out(marks: Marks, start: int, stop: int) -> None:
    """Compute the shares of the places from start to stop, those without trials too.

    An order of loops that compiles to SIMD; the arithmetic is that of `lattice.weights`, term
    by term, and so are the bits.
    """
    n = stop - start
    at, units, x, below = marks.at, marks.units, marks.x, marks.below
    for j in range(n):
        place = marks.values[start + j] / STEP
        point = np.floor(place) - MIDDLE
        at[j] = np.int64(point) - marks.first
        x[j] = place - point
        below[0, j] = 1.0
        below[POINTS, j] = 1.0
    for i in range(1, POINTS):
        for j in range(n):
            below[i, j] = below[i - 1, j] * (x[j] - (i - 1))
    above = below[POINTS]
    for i in range(POINTS - 1, -1, -1):
        for j in range(n):
            below[i, j] = below[i, j] * above[j] * _INVERSES[i]
            above[j] *= x[j] - i
    for j in range(n):
        size = UNIT
        if marks.size.size:
            size = np.rint(marks.size[start + j] * UNIT)
        held, left = np.int64(marks.held[start + j]), np.int64(size)
        for i in range(POINTS):
            unit = np.int64(np.rint(below[i, j] * size))
            left -= unit
            units[j, i] = held * unit
        units[j, MIDDLE] += held * left
