"""What a model is learned from: sums by place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process.boxes import Box
from betafield.process.rows import COARSE, Grid, Rows, gather

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Sums(NamedTuple):
    """Trials by place, in the features' own units, in any order and any number of parts.

    Parameters
    ----------
    points : array of shape (r, d)
    trials, successes : integer array of shape (r,)
        In units of `unit`.
    context : array of shape (r, p + 1) or None
        Bernstein coefficients of P(success) as a polynomial of π; None: all were seen as they are.
    unit : float
        What 1 counts for.
    """

    points: Floats
    trials: Ints
    successes: Ints
    context: Floats | None = None
    unit: float = 1.0

    def rows(self, box: Box, grid: Grid = COARSE) -> Rows:
        """Return the trials gathered in a box."""
        return gather(*self, grid=grid, box=box.within)
