"""Nodes, equally spaced in u, out to where the density is e^−DROP of its peak.

For wide rows they are points of the lattice halved a few times, so that φ(u + s_j) is in a table
again, and ℓ at all nodes is a correlation of amounts and table. For narrow rows the trials on the
lattice are expanded in a Taylor series around the mode, and all other terms are differences from
the mode without cancellation: φ(u + x) − φ(u) = log1p(φ'(u) expm1(x)).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from betafield._jit import inlined, kernel
from betafield.lattice import STEP
from betafield.posteriors.quadrature.layout import (
    AGREE,
    ALPHA,
    CELLS,
    COLUMNS,
    CURVATURE,
    DROP,
    EDGE,
    ELL,
    EXPS,
    FIRST,
    GROWN,
    HEIGHT,
    HIGH,
    LEVELS,
    LOW,
    NARROW,
    NODES,
    ORDER,
    PHI,
    PLACE,
    POLYNOMIALS,
    RADIUS,
    REACH,
    REST,
    SERIES,
    SHARE,
    SHIFTS,
    SPACING,
    SPAN,
    START,
    TAYLOR,
    VALUE,
    WEIGHT,
    WIDTH,
    E,
    U,
)
from betafield.posteriors.quadrature.log_density import (
    all_modes,
    direct,
    log_polynomial,
    only_mode,
    polynomial_slope,
)

Floats = npt.NDArray[np.float64]


@kernel
def build(
    terms: Floats, polys: Floats, table: Floats, nodes: Floats, small: Floats, state: Floats
) -> int:
    """Fill in the row's nodes, and return the number of stretches."""
    modes = 1
    if int(state[POLYNOMIALS]) == 0:
        only_mode(terms, polys, table, small, state)
    else:
        modes = all_modes(terms, polys, table, small, state)
    top = small[HEIGHT]
    for mode in range(1, modes):
        top = max(top, small[HEIGHT + mode])
    # A single mode has the height 0; the top is then that of its nodes.
    top = top if modes > 1 else np.nan
    small[START] = 0.0
    # Not a literal 0, for which numba would compile all that follows a second time.
    stretches, end = int(small[START]), -np.inf
    for mode in range(modes):
        # A mode may be negligible, or within the previous stretch.
        if modes == 1 or (small[HEIGHT + mode] > top - DROP and small[PLACE + mode] > end):
            _stretch(terms, polys, table, nodes, small, state, mode, stretches, top)
            stretches += 1
            end = nodes[U, int(small[START + stretches]) - 1]
    return stretches


@kernel
def _stretch(
    terms: Floats,
    polys: Floats,
    table: Floats,
    nodes: Floats,
    small: Floats,
    state: Floats,
    mode: int,
    stretch: int,
    top: float,
) -> None:
    """Append the nodes around a mode."""
    curvature = small[CURVATURE + mode]
    if curvature > NARROW and _narrow(terms, polys, table, nodes, small, state, mode, stretch, top):
        return
    needed, level = _finest(terms, polys, state, curvature), 0
    while level < LEVELS and STEP / (1 << level) > needed:
        level += 1
    while True:
        _wide(terms, polys, table, nodes, small, state, mode, stretch, top, level)
        if _resolved(nodes, small, stretch, state) or level == LEVELS:
            return
        level += 1


@kernel
def _finest(terms: Floats, polys: Floats, state: Floats, curvature: float) -> float:
    """Return the spacing that a curvature and the polynomials' singularities need."""
    spacing = SPACING / math.sqrt(max(curvature, 1e-300))
    for k in range(int(state[POLYNOMIALS])):
        if terms[3, k] != 0.0:
            spacing = min(spacing, SHARE * polys[k, 4])
    return spacing


@kernel
def _resolved(nodes: Floats, small: Floats, stretch: int, state: Floats) -> bool:
    """Compute the exponentials; return whether the sums over even and odd nodes agree."""
    start, stop = int(small[START + stretch]), int(small[START + stretch + 1])
    h = small[WIDTH + stretch]
    total, difference, sign = 0.0, 0.0, 1.0
    for i in range(start, stop):
        w = math.exp(nodes[ELL, i])
        nodes[WEIGHT, i] = w
        total += w
        difference += sign * w
        sign = -sign
    # The contribution of nodes beyond the ends.
    if nodes[U, start] <= -REACH:
        difference -= nodes[WEIGHT, start] / (1.0 + math.exp(state[LOW] * h))
    if nodes[U, stop - 1] >= REACH:
        difference += sign * nodes[WEIGHT, stop - 1] / (1.0 + math.exp(state[HIGH] * h))
    return abs(difference) < AGREE * total


@kernel
def _window(curvature: float, h: float) -> tuple[int, int]:
    """Return the nodes per side that a Gaussian would need, and how many to add at a time."""
    reach = min(math.sqrt(2.0 * DROP / max(curvature, 1e-6)), 40.0)
    return int(1.1 * reach / h) + SPAN // 2, 8 if curvature > 10.0 else 32


@inlined
def _trimmed(nodes: Floats, lo: int, hi: int, floor: float) -> tuple[int, int]:
    """Drop nodes below the floor, except one per side, and keep at least SPAN."""
    while hi - lo >= SPAN and nodes[VALUE, lo + 1] < floor:
        lo += 1
    while hi - lo >= SPAN and nodes[VALUE, hi - 1] < floor:
        hi -= 1
    return lo, hi


@inlined
def _zero(level: int) -> int:
    """Return the index of u = 0 in the tables of this level."""
    return 2 * EDGE * ((1 << level) - 1) + level + (EDGE << level)


@kernel
def _wide(
    terms: Floats,
    polys: Floats,
    table: Floats,
    nodes: Floats,
    small: Floats,
    state: Floats,
    mode: int,
    stretch: int,
    top: float,
    level: int,
) -> None:
    """Place nodes on the lattice, halved `level` times."""
    h, middle, last = STEP / (1 << level), CELLS << level, 2 * CELLS << level
    at = math.floor(small[PLACE + mode] / h + 0.5) + middle
    half, block = _window(small[CURVATURE + mode], h)
    lo, hi = min(max(at - half, 0), last - SPAN), max(min(at + half, last), SPAN)
    _fill(terms, polys, table, nodes, state, level, lo, hi)
    if math.isnan(top):
        top = nodes[VALUE, lo]
        for i in range(lo, hi + 1):
            top = max(top, nodes[VALUE, i])
    floor = top - DROP
    while lo > 0 and nodes[VALUE, lo] > floor:
        _fill(terms, polys, table, nodes, state, level, max(lo - block, 0), lo - 1)
        lo = max(lo - block, 0)
    while hi < last and nodes[VALUE, hi] > floor:
        _fill(terms, polys, table, nodes, state, level, hi + 1, min(hi + block, last))
        hi = min(hi + block, last)
    lo, hi = _trimmed(nodes, lo, hi, floor)
    start, exps = int(small[START + stretch]) - lo, EXPS + _zero(level) - middle
    for i in range(lo, hi + 1):
        nodes[U, start + i] = (i - middle) * h
        nodes[E, start + i] = table[exps + i]
        nodes[ELL, start + i] = nodes[VALUE, i] - top
    small[START + stretch + 1] = start + hi + 1
    small[WIDTH + stretch] = h


@kernel
def _fill(
    terms: Floats,
    polys: Floats,
    table: Floats,
    nodes: Floats,
    state: Floats,
    level: int,
    lo: int,
    hi: int,
) -> None:
    """Write ℓ at points lo..hi of the halved lattice into VALUE."""
    count, at = hi + 1 - lo, _zero(level) - (CELLS << level) + lo
    out = nodes[VALUE, lo : hi + 1]
    phi, exps = table[PHI + at : PHI + at + count], table[EXPS + at : EXPS + at + count]
    # α u − n φ(u) = −α φ(−u) − (n − α) φ(u), without cancellation.
    alpha, rest, mirrored = state[ALPHA], state[REST], PHI + 2 * _zero(level) - at
    for i in range(count):
        out[i] = -alpha * table[mirrored - i] - rest * phi[i]
    first = PHI + at + (int(state[FIRST]) << level)
    _correlate(terms, table, first, level, int(state[COLUMNS]), out)
    for k in range(int(state[SHIFTS])):
        factor, trials = terms[1, k], terms[2, k]
        for i in range(count):
            out[i] += trials * math.log(1.0 + factor * exps[i])
    for k in range(int(state[POLYNOMIALS])):
        if terms[3, k] != 0.0:
            for i in range(count):
                out[i] += terms[3, k] * log_polynomial(polys, k, exps[i])


@kernel
def _correlate(
    terms: Floats, table: Floats, at: int, level: int, columns: int, out: Floats
) -> None:
    """Add Σ_j amount_j φ(u_i + s_j), four columns at a time, with the nodes in the inner loop."""
    # Unsigned, because a signed index could be negative, that is count from the table's end.
    p, step = np.uint64(at), np.uint64(1 << level)
    j = 0
    while j + 4 <= columns:
        a, b, c, d = terms[0, j], terms[0, j + 1], terms[0, j + 2], terms[0, j + 3]
        q, r, s = p + step, p + step + step, p + step + step + step
        if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
            for n in range(out.size):
                i = np.uint64(n)
                left, right = a * table[p + i] + b * table[q + i], c * table[r + i]
                out[i] += left + (right + d * table[s + i])
        p = s + step
        j += 4
    while j < columns:
        a = terms[0, j]
        for n in range(out.size):
            i = np.uint64(n)
            out[i] += a * table[p + i]
        p += step
        j += 1


@kernel
def _narrow(
    terms: Floats,
    polys: Floats,
    table: Floats,
    nodes: Floats,
    small: Floats,
    state: Floats,
    mode: int,
    stretch: int,
    top: float,
) -> bool:
    """Place nodes around a sharp mode; return False if the row turns out not to be narrow."""
    center, curvature = _expand(terms, polys, table, small, state, mode)
    if not curvature > 0.25 * NARROW:
        return False
    offset = 0.0 if math.isnan(top) else direct(terms, polys, state, center)[0] - top
    h = _finest(terms, polys, state, curvature)
    for _ in range(4):
        if not _outwards(terms, polys, nodes, small, state, stretch, center, curvature, h, offset):
            return False
        if _resolved(nodes, small, stretch, state):
            break
        h *= 0.5
    return True


@kernel
def _outwards(
    terms: Floats,
    polys: Floats,
    nodes: Floats,
    small: Floats,
    state: Floats,
    stretch: int,
    center: float,
    curvature: float,
    h: float,
    offset: float,
) -> bool:
    """Place nodes from a sharp mode outwards; return False if they reach too far."""
    middle, e = NODES // 2, math.exp(center)
    half, block = _window(curvature, h)
    lo, hi, floor = middle - half, middle + half, -DROP - offset
    most = min(int(RADIUS / h), middle - 1) - block
    _fill_narrow(terms, polys, nodes, small, state, e, h, lo, hi)
    while nodes[VALUE, lo] > floor and middle - lo < most:
        _fill_narrow(terms, polys, nodes, small, state, e, h, lo - block, lo - 1)
        lo -= block
    while nodes[VALUE, hi] > floor and hi - middle < most:
        _fill_narrow(terms, polys, nodes, small, state, e, h, hi + 1, hi + block)
        hi += block
    if max(nodes[VALUE, lo], nodes[VALUE, hi]) > floor:
        return False
    lo, hi = _trimmed(nodes, lo, hi, floor)
    start = int(small[START + stretch]) - lo
    for i in range(lo, hi + 1):
        nodes[ELL, start + i] = nodes[VALUE, i] + offset
        nodes[U, start + i] = center + (i - middle) * h
        nodes[E, start + i] = e + e * nodes[GROWN, i]
    small[START + stretch + 1] = start + hi + 1
    small[WIDTH + stretch] = h
    return True


@kernel
def _fill_narrow(
    terms: Floats,
    polys: Floats,
    nodes: Floats,
    small: Floats,
    state: Floats,
    e: float,
    h: float,
    lo: int,
    hi: int,
) -> None:
    """Write ℓ relative to the mode into VALUE; e is e^u at the mode."""
    out, grown = nodes[VALUE, lo : hi + 1], nodes[GROWN, lo : hi + 1]
    begin = lo - NODES // 2
    out[:] = 0.0
    if state[COLUMNS] > 0.0:
        for d in range(ORDER, 0, -1):
            c = small[TAYLOR + d]
            for i in range(out.size):
                out[i] = (out[i] + c) * ((begin + i) * h)
    # α x − n (φ(u + x) − φ(u)), from whichever side of 0 cancels less.
    alpha, total = state[ALPHA], state[ALPHA] + state[REST]
    side, share = (alpha, e / (1.0 + e)) if e <= 1.0 else (-state[REST], 1.0 / (1.0 + e))
    for i in range(out.size):
        x = (begin + i) * h
        grown[i] = math.expm1(x)
        change = grown[i] if e <= 1.0 else -grown[i] / (1.0 + grown[i])
        out[i] += side * x - total * math.log1p(share * change)
    for k in range(int(state[SHIFTS])):
        odds, trials = terms[1, k] * e, terms[2, k]
        share = odds / (1.0 + odds)
        for i in range(out.size):
            out[i] += trials * math.log1p(share * grown[i])
    for k in range(int(state[POLYNOMIALS])):
        if terms[3, k] != 0.0:
            here = log_polynomial(polys, k, e)
            for i in range(out.size):
                there = log_polynomial(polys, k, e + e * grown[i])
                out[i] += terms[3, k] * (there - here)


@kernel
def _expand(
    terms: Floats, polys: Floats, table: Floats, small: Floats, state: Floats, mode: int
) -> tuple[float, float]:
    """Write the lattice's Taylor series at the mode into TAYLOR; return the mode and −ℓ'' there."""
    cell = math.floor(small[PLACE + mode] / STEP + 0.5)
    c = small[TAYLOR : TAYLOR + ORDER + 1]
    c[:] = 0.0
    for j in range(int(state[COLUMNS])):
        amount = terms[0, j]
        at = np.uint64(SERIES + (cell + int(state[FIRST]) + j + EDGE) * (ORDER + 1))
        for n in range(ORDER + 1):
            d = np.uint64(n)
            c[d] += amount * table[at + d]
    x, curvature = _newton(terms, polys, small, state, cell * STEP, small[PLACE + mode])
    # Move the series from the lattice point to the mode, by Horner's scheme.
    for lowest in range(ORDER):
        for i in range(ORDER - 1, lowest - 1, -1):
            c[i] += x * c[i + 1]
    return cell * STEP + x, curvature


@kernel
def _newton(
    terms: Floats, polys: Floats, small: Floats, state: Floats, origin: float, guess: float
) -> tuple[float, float]:
    """Solve ℓ' = 0 near a point of the lattice; return the distance from it, and −ℓ'' there."""
    low, high, x = -1.25 * STEP, 1.25 * STEP, guess - origin
    curvature = 0.0
    for _ in range(60):
        slope, curvature = _derivatives(terms, polys, small, state, origin, x)
        if slope > 0.0:
            low = x
        else:
            high = x
        there = x + slope / curvature if curvature > 0.0 else low
        if not low < there < high:
            there = 0.5 * (low + high)
        moved, x = there - x, there
        # The place of the nodes need only be known to a fraction of a standard deviation.
        if moved * moved * curvature < 1e-4:
            break
    return x, curvature


@kernel
def _derivatives(
    terms: Floats, polys: Floats, small: Floats, state: Floats, origin: float, x: float
) -> tuple[float, float]:
    """Return ℓ' and −ℓ'' at origin + x, from the series at the origin."""
    first, second = 0.0, 0.0
    for d in range(ORDER, 0, -1):
        second = second * x + first
        first = first * x + d * small[TAYLOR + d]
    e = math.exp(origin + x)
    p = e / (1.0 + e)
    first += (state[ALPHA] - state[REST] * e) / (1.0 + e)
    second -= (state[ALPHA] + state[REST]) * p / (1.0 + e)
    for k in range(int(state[SHIFTS])):
        odds = terms[1, k] * e
        p = odds / (1.0 + odds)
        first += terms[2, k] * p
        second += terms[2, k] * p / (1.0 + odds)
    for k in range(int(state[POLYNOMIALS])):
        if terms[3, k] != 0.0:
            near = polynomial_slope(polys, k, e)
            # A difference is enough: curvature only guides the steps and sets the spacing.
            far = polynomial_slope(polys, k, e * (1.0 + 1e-5))
            first += terms[3, k] * near
            second += terms[3, k] * (far - near) / 1e-5
    return first, -second
