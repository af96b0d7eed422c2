"""Drawn fields whose mean at each point is that of the posterior there.

Draws (`draws`) vary the hyper-parameters, but the posterior at a point takes its mean from the best
ones alone (`law`): on gentle functions this mean is the more accurate of the two, and the draws
still have the right spread. So the log-odds of all draws at a point are moved by the same δ,

    π ← π e^δ / (1 − π + π e^δ),   δ such that the mean of the draws is m,

which keeps their order, and 0 and 1. m(x), the mean of the posterior, depends on x alone, so the
fields are the same whichever points are queried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from betafield._jit import kernel
from betafield.process import mixtures
from betafield.process.draws import Fields

Floats = npt.NDArray[np.float64]

# Largest |δ|, tolerance of the mean, and most steps of the search.
FURTHEST, NEAR, STEPS = 4.0, 1e-6, 40


@dataclass(frozen=True, eq=False)
class Centred:
    """Drawn fields, moved so that their mean at each point is that of the posterior.

    Parameters
    ----------
    fields : Fields
        Fields drawn from the joint posterior.
    """

    fields: Fields

    def at(self, points: Floats) -> Floats:
        """Return π of every field at points in own units, shape (size, points)."""
        values = np.ascontiguousarray(self.fields.at(points).T)
        means = mixtures.mean(self.fields.smooth.laws(points, self.fields.n_jobs))
        return np.ascontiguousarray(centred(values, means).T)


@kernel
def centred(values: Floats, means: Floats) -> Floats:
    """Return probabilities (points, draws), moved so that the mean of each row is as given.

    A mean that would need a larger |δ| than FURTHEST is approached only.
    """
    count, size = values.shape
    out = np.empty((count, size))
    for i in range(count):
        low, high, delta = -FURTHEST, FURTHEST, 0.0
        for _ in range(STEPS):
            odds, total, slope = math.exp(delta), 0.0, 0.0
            for j in range(size):
                moved = values[i, j] * odds / (1.0 - values[i, j] + values[i, j] * odds)
                total += moved
                slope += moved * (1.0 - moved)
            excess = total - size * means[i]
            if excess > 0.0:
                high = delta
            else:
                low = delta
            delta -= excess / slope
            # Without a slope the step is not a number.
            is_newton = low < delta < high
            if not is_newton:
                delta = 0.5 * (low + high)
            # Newton's step leaves an error of at most excess²/(2 slope).
            if is_newton and excess**2 < NEAR * slope * size:
                break
        odds = math.exp(delta)
        for j in range(size):
            out[i, j] = values[i, j] * odds / (1.0 - values[i, j] + values[i, j] * odds)
    return out
