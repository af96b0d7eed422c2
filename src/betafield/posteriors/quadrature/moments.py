"""Moments: sums over nodes.

The integrand is smooth and vanishes at both ends, so the error of the trapezoid rule is about
e^−(2π²σ²/h²).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from betafield._jit import kernel
from betafield.posteriors.quadrature.layout import (
    HIGH,
    LOW,
    MASS,
    REACH,
    START,
    VALUE,
    WEIGHT,
    WIDTH,
    E,
    U,
)

Floats = npt.NDArray[np.float64]


@kernel
def _weigh(nodes: Floats, small: Floats, state: Floats, stretches: int) -> tuple[float, float]:
    """Normalise MASS to shares of the whole, per node; return the shares beyond both ends."""
    stop, total = int(small[START + stretches]), 0.0
    for stretch in range(stretches):
        h = small[WIDTH + stretch]
        for i in range(int(small[START + stretch]), int(small[START + stretch + 1])):
            nodes[MASS, i] = h * nodes[WEIGHT, i]
            total += nodes[MASS, i]
    low, high = 0.0, 0.0
    if nodes[U, 0] <= -REACH:
        low = nodes[MASS, 0] / math.expm1(state[LOW] * small[WIDTH])
    if nodes[U, stop - 1] >= REACH:
        high = nodes[MASS, stop - 1] / math.expm1(state[HIGH] * small[WIDTH + stretches - 1])
    total += low + high
    for i in range(stop):
        nodes[MASS, i] /= total
    return low / total, high / total


@kernel
def mean_and_variance(
    nodes: Floats, small: Floats, state: Floats, stretches: int
) -> tuple[float, float]:
    """Return E θ and E (θ − E θ)², computed from the smaller of θ and 1 − θ."""
    low, high = _weigh(nodes, small, state, stretches)
    stop, mean, rest = int(small[START + stretches]), high, low
    for i in range(stop):
        nodes[VALUE, i] = 1.0 / (1.0 + nodes[E, i])
        rest += nodes[MASS, i] * nodes[VALUE, i]
        mean += nodes[MASS, i] * (nodes[E, i] * nodes[VALUE, i])
    # The smaller of θ and 1 − θ has the more accurate digits.
    small_side = mean <= rest
    center = mean if small_side else rest
    var = (low if small_side else high) * center**2 + (high if small_side else low) * (
        1.0 - center
    ) ** 2
    for i in range(stop):
        x = nodes[E, i] * nodes[VALUE, i] if small_side else nodes[VALUE, i]
        var += nodes[MASS, i] * (x - center) ** 2
    return (mean if small_side else 1.0 - rest), var


@kernel
def bernstein(
    nodes: Floats, small: Floats, state: Floats, stretches: int, binomials: Floats, out: Floats
) -> None:
    """Write E binom(p, k) θ^k (1−θ)^(p−k), k = 0..p."""
    low, high = _weigh(nodes, small, state, stretches)
    p, powers = out.size - 1, np.empty(out.size)
    out[:] = 0.0
    for i in range(int(small[START + stretches])):
        q = 1.0 / (1.0 + nodes[E, i])
        theta = nodes[E, i] * q
        # Ascending powers of θ into `powers`, then times descending ones of 1 − θ.
        power = nodes[MASS, i]
        for k in range(p + 1):
            powers[k] = power
            power *= theta
        power = 1.0
        for k in range(p, -1, -1):
            out[k] += binomials[k] * powers[k] * power
            power *= q
    out[0] += low
    out[p] += high


@kernel
def of_polynomial(
    nodes: Floats, small: Floats, state: Floats, stretches: int, c: Floats
) -> tuple[float, float]:
    """Return the mean and the variance of f = Σ c_k θ^k (1−θ)^(p−k)."""
    low, high = _weigh(nodes, small, state, stretches)
    stop, p = int(small[START + stretches]), c.size - 1
    mean = low * c[0] + high * c[p]
    for i in range(stop):
        e, f = nodes[E, i], 0.0
        # Powers of θ/(1−θ), or of its inverse, whichever is below 1.
        for k in range(p + 1):
            f = f * e + c[p - k] if e <= 1.0 else f / e + c[k]
        nodes[VALUE, i] = f * (1.0 / (1.0 + min(e, 1.0 / e))) ** p
        mean += nodes[MASS, i] * nodes[VALUE, i]
    var = low * (c[0] - mean) ** 2 + high * (c[p] - mean) ** 2
    for i in range(stop):
        var += nodes[MASS, i] * (nodes[VALUE, i] - mean) ** 2
    return mean, var
