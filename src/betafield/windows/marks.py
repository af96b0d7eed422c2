"""Lattice shares of distorted trials, for kernels: a compiled `lattice.weights`.

A place stores the shift of its trials, and their shares are computed when needed: that takes a
tenth of the memory, and a few dozen instructions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield._jit import inlined
from betafield.lattice import INVERSES, MIDDLE, POINTS, STEP, UNIT
from betafield.windows.base import Floats, Ints, Shifts

# An array, because a loop over a tuple would be unrolled and compile more slowly.
_INVERSES = np.array(INVERSES)


class Marks(NamedTuple):
    """The shifts of places for kernels, with buffers for the shares of one leaf.

    `size` is empty if all are 1; `first` is the first lattice point in use. The j-th place of the
    leaf has `units[j, i]` at the lattice point first + at[j] + i; `x` and `below` are scratch
    space. Each kernel call has its own object, because threads must not share buffers.
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
    """Return the shifts, with buffers for the shares of n places."""
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
    """Add the shares of the leaf's j-th place to the lattice points in use."""
    at = marks.at[j]
    for i in range(POINTS):
        points[at + i] += marks.units[j, i]


@inlined
def share_out(marks: Marks, start: int, stop: int) -> None:
    """Compute the shares of the places from start to stop, including those without trials.

    The order of the loops lets them compile to SIMD; the arithmetic is that of `lattice.weights`,
    term by term, so the result is bit-identical.
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
