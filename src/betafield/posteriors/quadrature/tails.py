"""Tails, densities and quantiles.

Between two nodes ℓ is the polynomial through the SPAN nearest ones, and each cell is integrated by
Gauss's rule. Beyond the nodes the density is exponential in u.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from betafield._jit import kernel
from betafield.posteriors.quadrature.layout import (
    AT_GAUSS,
    ELL,
    GAUSS,
    HIGH,
    KNOTS,
    LEFT,
    LOCAL,
    LOW,
    MASS,
    POWERS,
    REACH,
    RIGHT,
    SPAN,
    START,
    WEIGHT,
    WIDTH,
    U,
)
from betafield.posteriors.quadrature.log_density import direct, expit

Floats = npt.NDArray[np.float64]


@kernel
def add_up(
    nodes: Floats, small: Floats, table: Floats, state: Floats, stretches: int
) -> tuple[float, float, float]:
    """Fill in masses of cells and beside nodes; return the total and the slopes at both ends."""
    stop = int(small[START + stretches])
    for stretch in range(stretches):
        start, end = int(small[START + stretch]), int(small[START + stretch + 1])
        for i in range(start, end - 1):
            first = min(max(i - SPAN // 2 + 1, start), end - SPAN)
            nodes[MASS, i] = small[WIDTH + stretch] * _cell_mass(nodes, table, first, i - first)
        nodes[MASS, end - 1] = 0.0  # there is nothing between two stretches
    low, high = _end_slopes(nodes, small, state, stretches)
    nodes[LEFT, 0] = nodes[WEIGHT, 0] / low
    for i in range(1, stop):
        nodes[LEFT, i] = nodes[LEFT, i - 1] + nodes[MASS, i - 1]
    nodes[RIGHT, stop - 1] = nodes[WEIGHT, stop - 1] / high
    for i in range(stop - 2, -1, -1):
        nodes[RIGHT, i] = nodes[RIGHT, i + 1] + nodes[MASS, i]
    return nodes[LEFT, stop - 1] + nodes[RIGHT, stop - 1], low, high


@kernel
def _cell_mass(nodes: Floats, table: Floats, first: int, cell: int) -> float:
    """Integrate over the cell after node first + cell, using the SPAN nodes from `first` on."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for k in range(SPAN):
        at, value = AT_GAUSS + (cell * SPAN + k) * GAUSS, nodes[ELL, first + k]
        a += table[at] * value
        b += table[at + 1] * value
        c += table[at + 2] * value
        d += table[at + 3] * value
    outer, inner = table[KNOTS + GAUSS], table[KNOTS + GAUSS + 1]
    return float(outer * (math.exp(a) + math.exp(d)) + inner * (math.exp(b) + math.exp(c)))


@kernel
def _end_slopes(nodes: Floats, small: Floats, state: Floats, stretches: int) -> tuple[float, float]:
    """Return the rates at which the density falls beyond the first and the last node."""
    stop = int(small[START + stretches])
    low, high = state[LOW], state[HIGH]
    if nodes[U, 0] > -REACH:
        low = max((nodes[ELL, 1] - nodes[ELL, 0]) / small[WIDTH], 1e-3)
    if nodes[U, stop - 1] < REACH:
        fall = nodes[ELL, stop - 2] - nodes[ELL, stop - 1]
        high = max(fall / small[WIDTH + stretches - 1], 1e-3)
    return low, high


@kernel
def _localise(nodes: Floats, small: Floats, table: Floats, i: int) -> float:
    """Write ℓ in the cell after node i as a polynomial into LOCAL; return the width, or 0."""
    stretch = 0
    while int(small[START + stretch + 1]) <= i:
        stretch += 1
    start, end = int(small[START + stretch]), int(small[START + stretch + 1])
    if i == end - 1:
        return 0.0
    first = min(max(i - SPAN // 2 + 1, start), end - SPAN)
    local = small[LOCAL : LOCAL + SPAN]
    local[:] = 0.0
    for k in range(SPAN):
        value = nodes[ELL, first + k]
        at = np.uint64(POWERS + ((i - first) * SPAN + k) * SPAN)
        for n in range(SPAN):
            d = np.uint64(n)
            local[d] += table[at + d] * value
    return float(small[WIDTH + stretch])


@kernel
def _at(small: Floats, x: float) -> float:
    """Return ℓ at a fraction x of the cell."""
    x -= 0.5
    value = small[LOCAL + SPAN - 1]
    for d in range(SPAN - 2, -1, -1):
        value = value * x + small[LOCAL + d]
    return float(value)


@kernel
def _part(small: Floats, table: Floats, low: float, high: float) -> float:
    """Return the mass between two fractions of a cell of width 1."""
    total = 0.0
    for g in range(GAUSS):
        x = low + (high - low) * table[KNOTS + g]
        total += table[KNOTS + GAUSS + g] * math.exp(_at(small, x))
    return total * (high - low)


@kernel
def _last(nodes: Floats, what: int, stop: int, x: float, rising: bool) -> int:
    """Return the last node i with nodes[what, i] ≤ x, or ≥ x if they fall; node 0 qualifies."""
    low, high = 0, stop
    while high - low > 1:
        middle = (low + high) >> 1
        value = nodes[what, middle]
        if (value <= x) if rising else (value >= x):
            low = middle
        else:
            high = middle
    return low


@kernel
def _both_tails(
    nodes: Floats,
    small: Floats,
    table: Floats,
    stretches: int,
    low: float,
    high: float,
    u: float,
) -> tuple[float, float]:
    """Return the mass below u and above it."""
    last = int(small[START + stretches]) - 1
    if u < nodes[U, 0]:
        below = nodes[LEFT, 0] * math.exp(low * (u - nodes[U, 0]))
        return below, nodes[RIGHT, 0] + (nodes[LEFT, 0] - below)
    if u >= nodes[U, last]:
        above = nodes[RIGHT, last] * math.exp(-high * (u - nodes[U, last]))
        return nodes[LEFT, last] + (nodes[RIGHT, last] - above), above
    i = _last(nodes, U, last + 1, u, True)
    h = _localise(nodes, small, table, i)
    if h == 0.0:
        return nodes[LEFT, i], nodes[RIGHT, i]
    x = min((u - nodes[U, i]) / h, 1.0)
    below, above = h * _part(small, table, 0.0, x), h * _part(small, table, x, 1.0)
    return nodes[LEFT, i] + below, nodes[RIGHT, i + 1] + above


@kernel
def tail(
    nodes: Floats,
    small: Floats,
    table: Floats,
    stretches: int,
    ends: tuple[float, float, float],
    p: float,
    upper: bool,
) -> float:
    """Return P(θ ≤ p), or P(θ > p)."""
    if p <= 0.0 or p >= 1.0:
        return 1.0 if (p >= 1.0) != upper else 0.0
    whole, low, high = ends
    u = math.log(p) - math.log1p(-p)
    below, above = _both_tails(nodes, small, table, stretches, low, high, u)
    return min((above if upper else below) / whole, 1.0)


@kernel
def density(
    terms: Floats,
    polys: Floats,
    nodes: Floats,
    small: Floats,
    table: Floats,
    state: Floats,
    stretches: int,
    whole: float,
    p: float,
) -> float:
    """Return the density of θ at p."""
    if p <= 0.0 or p >= 1.0:
        u, power = (-REACH, state[LOW]) if p <= 0.0 else (REACH, state[HIGH])
        if power != 1.0:
            return np.inf if power < 1.0 else 0.0
        value = REACH + _log_density(terms, polys, nodes, small, table, state, stretches, u)
    else:
        u = math.log(p) - math.log1p(-p)
        value = _log_density(terms, polys, nodes, small, table, state, stretches, u)
        value -= math.log(p) + math.log1p(-p)
    value -= math.log(whole)
    return math.exp(value) if value < 709.0 else np.inf


@kernel
def _log_density(
    terms: Floats,
    polys: Floats,
    nodes: Floats,
    small: Floats,
    table: Floats,
    state: Floats,
    stretches: int,
    u: float,
) -> float:
    """Return ℓ(u) relative to its peak: interpolated between nodes, or else by the formula."""
    last = int(small[START + stretches]) - 1
    if nodes[U, 0] <= u < nodes[U, last]:
        i = _last(nodes, U, last + 1, u, True)
        h = _localise(nodes, small, table, i)
        if h > 0.0:
            return _at(small, (u - nodes[U, i]) / h)
    here = direct(terms, polys, state, nodes[U, 0])[0] - nodes[ELL, 0]
    return float(direct(terms, polys, state, u)[0] - here)


@kernel
def quantile(
    nodes: Floats,
    small: Floats,
    table: Floats,
    stretches: int,
    ends: tuple[float, float, float],
    q: float,
) -> float:
    """Return p with P(θ ≤ p) = q, computed from the smaller tail."""
    if q <= 0.0 or q >= 1.0:
        return 1.0 if q >= 1.0 else 0.0
    whole, low, high = ends
    last, lower = int(small[START + stretches]) - 1, q <= 0.5
    target = (q if lower else 1.0 - q) * whole
    if lower and target <= nodes[LEFT, 0]:
        return expit(nodes[U, 0] + math.log(target / nodes[LEFT, 0]) / low)
    if not lower and target <= nodes[RIGHT, last]:
        return expit(nodes[U, last] - math.log(target / nodes[RIGHT, last]) / high)
    i = _last(nodes, LEFT if lower else RIGHT, last + 1, target, lower)
    missing = target - nodes[LEFT, i] if lower else nodes[RIGHT, i] - target
    h = _localise(nodes, small, table, i)
    if h == 0.0:
        return expit(nodes[U, i])
    return expit(nodes[U, i] + h * _share(small, table, missing / h, nodes[MASS, i] / h))


@kernel
def _share(small: Floats, table: Floats, missing: float, mass: float) -> float:
    """Return the fraction x of a cell with mass `missing`, by Newton's method in a bracket."""
    low, high = 0.0, 1.0
    x = min(max(missing / mass, 0.0), 1.0)
    for _ in range(60):
        error = _part(small, table, 0.0, x) - missing
        if error < 0.0:
            low = x
        else:
            high = x
        there = x - error * math.exp(-_at(small, x))
        if not low <= there <= high:
            there = 0.5 * (low + high)
        moved, x = abs(there - x), there
        if moved < 1e-9:  # the next step would be about its square
            break
    return x
