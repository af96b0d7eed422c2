"""The log-density of a row: its terms, its values and slopes, and its modes.

ℓ' is evaluated on the lattice of trials, where every φ'(u + s_j) is in a table, and bisection finds
the cell in which it changes sign. With polynomials there may be several modes, so all cells are
examined.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from betafield._jit import inlined, kernel
from betafield.lattice import STEP
from betafield.posteriors.quadrature.layout import (
    ALPHA,
    CELL,
    CELLS,
    COLUMNS,
    CURVATURE,
    EDGE,
    EXPS,
    FIRST,
    HEIGHT,
    HIGH,
    KNOWN_SLOPES,
    LOW,
    MODES,
    PLACE,
    POLYNOMIALS,
    REST,
    SHIFTS,
    SLOPES,
)

Floats = npt.NDArray[np.float64]


@kernel
def prepared(
    alpha: float,
    beta: float,
    amounts: Floats,
    first: int,
    factors: Floats,
    trials: Floats,
    repeats: Floats,
    polys: Floats,
    terms: Floats,
    state: Floats,
) -> None:
    """Gather the non-zero terms of a row, so that columns of zeros at the ends change nothing."""
    rest, high, shifts = beta, beta, 0
    start, stop = 0, amounts.size
    while start < stop and amounts[start] == 0.0:
        start += 1
    while start < stop and amounts[stop - 1] == 0.0:
        stop -= 1
    for j in range(start, stop):
        terms[0, j - start] = amounts[j]
        rest += amounts[j]
    for k in range(trials.size):
        if trials[k] != 0.0:
            terms[1, shifts], terms[2, shifts] = factors[k], trials[k]
            shifts += 1
            rest += trials[k]
    for k in range(repeats.size):
        terms[3, k] = repeats[k]
        alpha += repeats[k] * polys[k, 0]
        high += repeats[k] * polys[k, 1]
        rest += repeats[k] * (polys[k, 2] - polys[k, 0])
    state[ALPHA], state[REST], state[LOW], state[HIGH] = alpha, rest, alpha, high
    state[COLUMNS], state[FIRST] = stop - start, first + start
    state[SHIFTS], state[POLYNOMIALS] = shifts, repeats.size


@kernel
def log_polynomial(polys: Floats, k: int, e: float) -> float:
    """Return log Σ c_i e^(iu)."""
    d = int(polys[k, 3])
    if e <= 1.0:
        value = polys[k, 5 + d]
        for i in range(d - 1, -1, -1):
            value = value * e + polys[k, 5 + i]
        return math.log(value)
    value, x = polys[k, 5], 1.0 / e
    for i in range(1, d + 1):
        value = value * x + polys[k, 5 + i]
    return math.log(value) + d * math.log(e)


@kernel
def polynomial_slope(polys: Floats, k: int, e: float) -> float:
    """Return d/du log Σ c_i e^(iu): the mean of i."""
    d = int(polys[k, 3])
    x = min(e, 1.0 / e)
    value, first = 0.0, 0.0
    for i in range(d, -1, -1):
        first = first * x + value
        value = value * x + polys[k, 5 + (i if e <= 1.0 else d - i)]
    mean = x * first / value
    return mean if e <= 1.0 else d - mean


@kernel
def _slope_elsewhere(terms: Floats, state: Floats, e: float) -> float:
    """Return ℓ' without the terms of the lattice and the polynomials."""
    slope = (state[ALPHA] - state[REST] * e) / (1.0 + e)
    for k in range(int(state[SHIFTS])):
        x = terms[1, k] * e
        slope += terms[2, k] * (x / (1.0 + x))
    return float(slope)


@kernel
def direct(terms: Floats, polys: Floats, state: Floats, u: float) -> tuple[float, float]:
    """Return ℓ and ℓ' at any u, directly: slow, and accurate to rounding of the largest term."""
    e = math.exp(min(max(u, -300.0), 300.0))
    # α u − n φ(u), without cancellation.
    value = -state[ALPHA] * _softplus(-u) - state[REST] * _softplus(u)
    slope = _slope_elsewhere(terms, state, e)
    for j in range(int(state[COLUMNS])):
        x = u + (state[FIRST] + j) * STEP
        value += terms[0, j] * _softplus(x)
        slope += terms[0, j] * expit(x)
    for k in range(int(state[SHIFTS])):
        value += terms[2, k] * _softplus(u + math.log(terms[1, k]))
    for k in range(int(state[POLYNOMIALS])):
        if terms[3, k] != 0.0:
            # Where e overflows, the polynomial equals its first or last term.
            beyond = max(u - 300.0, 0.0) * polys[k, 3]
            value += terms[3, k] * (log_polynomial(polys, k, e) + beyond)
            slope += terms[3, k] * polynomial_slope(polys, k, e)
    return value, slope


@inlined
def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@inlined
def expit(x: float) -> float:
    """Return 1/(1 + e^−x)."""
    e = math.exp(-abs(x))
    return 1.0 / (1.0 + e) if x >= 0.0 else e / (1.0 + e)


@kernel
def _slope(terms: Floats, polys: Floats, table: Floats, state: Floats, cell: int) -> float:
    """Return ℓ' at a point of the lattice."""
    columns, at = int(state[COLUMNS]), SLOPES + EDGE + cell + int(state[FIRST])
    a, b, c, d, j = 0.0, 0.0, 0.0, 0.0, 0
    while j + 4 <= columns:
        a += terms[0, j] * table[at + j]
        b += terms[0, j + 1] * table[at + j + 1]
        c += terms[0, j + 2] * table[at + j + 2]
        d += terms[0, j + 3] * table[at + j + 3]
        j += 4
    while j < columns:
        a += terms[0, j] * table[at + j]
        j += 1
    slope = ((a + b) + (c + d)) + _slope_elsewhere(terms, state, table[EXPS + EDGE + cell])
    tabulated = polys.shape[1] - KNOWN_SLOPES + CELLS + 1 + cell
    for k in range(int(state[POLYNOMIALS])):
        slope += terms[3, k] * polys[k, tabulated]
    return float(slope)


@kernel
def only_mode(terms: Floats, polys: Floats, table: Floats, small: Floats, state: Floats) -> None:
    """Bisect down to one cell: ℓ' is positive before it and not after."""
    low, high = -CELLS, CELLS
    before, after = state[LOW], -state[HIGH]
    while high - low > 1:
        middle = (low + high) >> 1
        slope = _slope(terms, polys, table, state, middle)
        if slope > 0.0:
            low, before = middle, slope
        else:
            high, after = middle, slope
    _note_mode(terms, polys, table, small, state, low, before, after, 0)


@kernel
def _note_mode(
    terms: Floats,
    polys: Floats,
    table: Floats,
    small: Floats,
    state: Floats,
    cell: int,
    before: float,
    after: float,
    mode: int,
) -> None:
    """Store a mode's cell, the curvature around it, and its approximate place."""
    fall = before - after
    curvature = max(fall, _slope(terms, polys, table, state, cell - 1) - before)
    curvature = max(curvature, after - _slope(terms, polys, table, state, cell + 2)) / STEP
    share = min(max(before / fall, 0.0), 1.0) if fall > 0.0 else 0.5
    small[CELL + mode], small[CURVATURE + mode] = cell, curvature
    small[PLACE + mode], small[HEIGHT + mode] = (cell + share) * STEP, 0.0


@kernel
def all_modes(terms: Floats, polys: Floats, table: Floats, small: Floats, state: Floats) -> int:
    """Find every cell in which ℓ' falls through 0; with heights if there are several."""
    modes, before = 0, state[LOW]
    for cell in range(-CELLS, CELLS):
        after = _slope(terms, polys, table, state, cell + 1)
        if before > 0.0 and after <= 0.0 and modes < MODES:
            _note_mode(terms, polys, table, small, state, cell, before, after, modes)
            modes += 1
        before = after
    if modes == 0:
        _note_mode(terms, polys, table, small, state, CELLS - 1, before, before, 0)
        modes = 1
    for mode in range(modes if modes > 1 else 0):
        _climb(terms, polys, small, state, mode)
    return modes


@kernel
def _climb(terms: Floats, polys: Floats, small: Floats, state: Floats, mode: int) -> None:
    """Find the height of a mode by bisection of its cell."""
    low = small[CELL + mode] * STEP
    high = low + STEP
    for _ in range(40):
        middle = 0.5 * (low + high)
        if direct(terms, polys, state, middle)[1] > 0.0:
            low = middle
        else:
            high = middle
    small[PLACE + mode] = low
    small[HEIGHT + mode] = direct(terms, polys, state, low)[0]
