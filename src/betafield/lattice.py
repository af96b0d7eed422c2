"""How a distorted trial is counted: on a lattice of log-likelihood ratios.

A trial whose outcome has the probability l₀ if π = 0 and l₁ if π = 1 says about θ = π(x), in
log-odds u = log(θ/(1−θ)) and up to a constant,

    log((1−θ) l₀ + θ l₁) = φ(u + s) − φ(u),   φ(u) = log(1 + e^u),   s = log l₁ − log l₀.

All that it has of its own is the shift s. φ is analytic within π of the real axis, so φ(u + s)
is a short sum Σ w_j φ(u + s_j) over points s_j of a lattice near s, with Lagrange's weights,
whatever u is. Adding up the weights of many trials, at each point of the lattice, gives the
likelihood of all of them. With this step and this many points the error is below 1e-8 a
trial, and nothing where φ is straight.

Weights are whole numbers of 1/UNIT, so that sums are exact in any order.

A shift beyond EDGE counts as one at EDGE: l₀ and l₁ differ there by a factor of 2e17.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

STEP = 0.25
# Points that share one trial; even, so that as many lie below the shift as above it.
POINTS = 10
# The point at or next below the shift; it takes what rounding leaves over.
MIDDLE = POINTS // 2 - 1
UNIT = 2.0**28
EDGE = 40.0

# Of Lagrange's weights Π_(i≠j) (x − i) / (j − i), the denominators' inverses.
INVERSES = tuple(
    (-1.0) ** (POINTS - 1 - j) / (math.factorial(j) * math.factorial(POINTS - 1 - j))
    for j in range(POINTS)
)


def shift(likelihood: Floats) -> Floats:
    """Return s = log l₁ − log l₀ of pairs (l₀, l₁), both positive; within EDGE of 0.

    Examples
    --------
    >>> shift(np.array([[0.5, 1.0], [1.0, 0.5]])).round(4).tolist()
    [0.6931, -0.6931]
    """
    # NumPy takes logarithms of a strided view by another routine, which may round otherwise.
    logs = np.log(np.ascontiguousarray(likelihood))
    return np.asarray((logs[..., 1] - logs[..., 0]).clip(-EDGE, EDGE))


def position(shifts: Floats) -> Ints:
    """Return the number of the first point that shares in each shift; point j is at j · STEP.

    Examples
    --------
    >>> position(np.array([0.0, 0.3, -0.3])).tolist()
    [-4, -3, -6]
    """
    return np.floor(shifts / STEP).astype(np.int64) - MIDDLE


def weights(shifts: Floats, size: Floats | float = 1.0) -> Ints:
    """Return (t, POINTS): the share of each trial in its points, in whole numbers of 1/UNIT.

    They add up to `size` exactly, which is what the trial counts for: its weight.

    Examples
    --------
    >>> shares = weights(np.array([0.25, 0.3]))
    >>> shares[0].astype(bool).astype(int).tolist()
    [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    >>> bool(np.all(shares.sum(axis=1) == UNIT))
    True
    """
    x = shifts / STEP - position(shifts)
    below, above = np.empty((POINTS, len(x))), np.empty((POINTS, len(x)))
    below[0] = above[-1] = 1.0
    for j in range(1, POINTS):
        below[j] = below[j - 1] * (x - (j - 1))
        above[-1 - j] = above[-j] * (x - (POINTS - j))
    units = np.rint(np.asarray(size) * UNIT)
    shares = np.rint(below * above * np.array(INVERSES)[:, None] * units)
    shares[MIDDLE] += units - shares.sum(axis=0)
    return np.ascontiguousarray(shares.T).astype(np.int64)
