"""Compiled kernels of `Contextual`: from a row's log-density to its moments, tails and quantiles.

For one row at a time:

1. The mode. ℓ'(u) is looked at on the lattice of trials, where every φ'(u + s_j) stands in a
   table, and the cells are halved until one is left in which it changes its sign. With polynomials
   there may be several modes, and all cells are looked at.
2. Nodes, equally spaced in u, out to where the density is e^−DROP of its peak. For wide rows they
   are points of the lattice halved a few times, so that φ(u + s_j) is a table again, and ℓ at all
   nodes is a correlation of amounts and table. For narrow rows the trials on the lattice are a
   Taylor series around the mode, and what else there is comes as differences from the mode
   without cancellation: φ(u + x) − φ(u) = log1p(φ'(u) expm1(x)).
3. Sums over nodes. The integrand is smooth and vanishes at both ends, so the trapezoid rule errs
   by about e^−(2π²σ²/h²); that even and odd nodes agree is checked, and else h is halved.
4. For tails, ℓ between two nodes is a polynomial through the SPAN nearest, and each cell is
   integrated by Gauss's rule. Beyond the nodes the density is exponential in u.

Kernels pass a few flat arrays on, for a compiled call with tuples of arrays counts references:

- `table`: all that does not depend on rows, in the parts that the constants below name;
- `terms` (4, ·): the row's amounts on the lattice, its factors e^shift and their trials, its
  repeats of polynomials;
- `state`: what it adds up to, see ALPHA and what follows it;
- `polys` (K, 5 + p + 1): see `powers` in `contextual`;
- `nodes` (9, ·): see VALUE and what follows it;
- `small`: stretches and modes, see START and what follows it.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from betafield._jit import inlined, kernel
from betafield.lattice import STEP

Floats = npt.NDArray[np.float64]

# Mass at less than e^-DROP of the peak does not count.
DROP = 25.0
# Cells of the lattice on each side of 0 that are looked at: u within ±REACH.
CELLS = 256
REACH = CELLS * STEP
# The lattice may be halved so many times.
LEVELS = 5
# Spacing of nodes in standard deviations of u, and as a share of the way to a singularity.
SPACING, SHARE = 0.75, 0.125
# From this curvature on a Taylor series of this order serves all of a row, to this distance.
NARROW, ORDER, RADIUS = 300.0, 12, 0.9
# Even and odd nodes agree so far if the spacing is right; the error is the square of it, or less.
AGREE = 2e-4
SPAN, GAUSS = 12, 4
# Slopes of a polynomial at points of the lattice, from one before the first cell to two after
# the last, at the end of its row.
KNOWN_SLOPES = 2 * CELLS + 4
MODES = 16

# Parts of `table`. Values of u + s lie within EDGE cells of 0.
EDGE = 2 * CELLS
POINTS = 2 * EDGE + 1
PHI = 0
EXPS = PHI + 2 * EDGE * ((2 << LEVELS) - 1) + LEVELS + 1
SLOPES = EXPS + EXPS
SERIES = SLOPES + POINTS
AT_GAUSS = SERIES + POINTS * (ORDER + 1)
POWERS = AT_GAUSS + (SPAN - 1) * SPAN * GAUSS
KNOTS = POWERS + (SPAN - 1) * SPAN * SPAN
TABLE = KNOTS + 2 * GAUSS

# Not a power of two, for then all rows of `nodes` would compete for the same lines of the cache.
NODES = (4 * CELLS << LEVELS) + 88
# Rows of `nodes`: room, and e^x − 1 at a distance x from the mode; log-odds, e^u, log-density and
# density below the peak; masses left of a node, right of it, and between it and the next.
VALUE, GROWN, U, E, ELL, WEIGHT, LEFT, RIGHT, MASS = range(9)
# Parts of `small`: a series; first nodes of stretches; their spacings; of modes the
# cell, the curvature, the place and the height; coefficients in one cell.
TAYLOR = 0
START = TAYLOR + ORDER + 1
WIDTH = START + MODES + 1
CELL, CURVATURE, PLACE, HEIGHT = (WIDTH + MODES * i for i in range(1, 5))
LOCAL = HEIGHT + MODES
SMALL = LOCAL + SPAN


# Parts of `state`, what a row adds up to: ℓ = α u − n φ(u) + …, with REST = n − α, and slopes LOW
# and −HIGH at the ends; and how many terms of each kind it has.
ALPHA, REST, LOW, HIGH, COLUMNS, FIRST, SHIFTS, POLYNOMIALS = range(8)


# The log-density ---------------------------------------------------------------------------


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
    """Gather what of a row is not 0, so that columns of zeros at the ends change nothing."""
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
def _log_polynomial(polys: Floats, k: int, e: float) -> float:
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
def _polynomial_slope(polys: Floats, k: int, e: float) -> float:
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
    """ℓ' but for what the lattice and the polynomials add."""
    slope = (state[ALPHA] - state[REST] * e) / (1.0 + e)
    for k in range(int(state[SHIFTS])):
        x = terms[1, k] * e
        slope += terms[2, k] * (x / (1.0 + x))
    return float(slope)


@kernel
def direct(terms: Floats, polys: Floats, state: Floats, u: float) -> tuple[float, float]:
    """ℓ and ℓ' at any u, plainly: slow, and good to rounding of the largest term."""
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
            # Beyond e's range the polynomial is its first or last term.
            beyond = max(u - 300.0, 0.0) * polys[k, 3]
            value += terms[3, k] * (_log_polynomial(polys, k, e) + beyond)
            slope += terms[3, k] * _polynomial_slope(polys, k, e)
    return value, slope


@inlined
def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@inlined
def expit(x: float) -> float:
    """1/(1 + e^−x)."""
    e = math.exp(-abs(x))
    return 1.0 / (1.0 + e) if x >= 0.0 else e / (1.0 + e)


# The mode ----------------------------------------------------------------------------------


@inlined
def _zero(level: int) -> int:
    """Where u = 0 is in the tables of this level."""
    return 2 * EDGE * ((1 << level) - 1) + level + (EDGE << level)


@kernel
def _slope(terms: Floats, polys: Floats, table: Floats, state: Floats, cell: int) -> float:
    """ℓ' at a point of the lattice."""
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
def _only_mode(terms: Floats, polys: Floats, table: Floats, small: Floats, state: Floats) -> None:
    """Halve the cells until one is left: ℓ' is positive before it and not after."""
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
    """Keep of a mode its cell, the curvature around it and about where it is."""
    fall = before - after
    curvature = max(fall, _slope(terms, polys, table, state, cell - 1) - before)
    curvature = max(curvature, after - _slope(terms, polys, table, state, cell + 2)) / STEP
    share = min(max(before / fall, 0.0), 1.0) if fall > 0.0 else 0.5
    small[CELL + mode], small[CURVATURE + mode] = cell, curvature
    small[PLACE + mode], small[HEIGHT + mode] = (cell + share) * STEP, 0.0


@kernel
def _all_modes(terms: Floats, polys: Floats, table: Floats, small: Floats, state: Floats) -> int:
    """Find every cell in which ℓ' falls through 0; with heights, if there are several."""
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
    """Find the height of a mode by halving its cell."""
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


# Nodes -------------------------------------------------------------------------------------


@kernel
def build(
    terms: Floats, polys: Floats, table: Floats, nodes: Floats, small: Floats, state: Floats
) -> int:
    """Fill in the row's nodes, and return how many stretches they make."""
    modes = 1
    if int(state[POLYNOMIALS]) == 0:
        _only_mode(terms, polys, table, small, state)
    else:
        modes = _all_modes(terms, polys, table, small, state)
    top = small[HEIGHT]
    for mode in range(1, modes):
        top = max(top, small[HEIGHT + mode])
    # One mode alone has the height 0; the top is then that of its nodes.
    top = top if modes > 1 else np.nan
    small[START] = 0.0
    # Not a plain 0: numba would compile all that follows twice, for 0 and for other integers.
    stretches, end = int(small[START]), -np.inf
    for mode in range(modes):
        # A mode may be negligible, or within the stretch of the one before.
        if modes == 1 or (small[HEIGHT + mode] > top - DROP and small[PLACE + mode] > end):
            _stretch(terms, polys, table, nodes, small, state, mode, stretches, top)
            stretches += 1
            end = nodes[U, int(small[START + stretches]) - 1]
    return stretches


@kernel
def _finest(terms: Floats, polys: Floats, state: Floats, curvature: float) -> float:
    """Return the spacing that a curvature and the polynomials' singularities need."""
    spacing = SPACING / math.sqrt(max(curvature, 1e-300))
    for k in range(int(state[POLYNOMIALS])):
        if terms[3, k] != 0.0:
            spacing = min(spacing, SHARE * polys[k, 4])
    return spacing


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
def _resolved(nodes: Floats, small: Floats, stretch: int, state: Floats) -> bool:
    """Take the exponentials; return whether even nodes give the same sum as odd ones."""
    start, stop = int(small[START + stretch]), int(small[START + stretch + 1])
    h = small[WIDTH + stretch]
    total, difference, sign = 0.0, 0.0, 1.0
    for i in range(start, stop):
        w = math.exp(nodes[ELL, i])
        nodes[WEIGHT, i] = w
        total += w
        difference += sign * w
        sign = -sign
    # What nodes beyond the ends would add.
    if nodes[U, start] <= -REACH:
        difference -= nodes[WEIGHT, start] / (1.0 + math.exp(state[LOW] * h))
    if nodes[U, stop - 1] >= REACH:
        difference += sign * nodes[WEIGHT, stop - 1] / (1.0 + math.exp(state[HIGH] * h))
    return abs(difference) < AGREE * total


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
    """Nodes on the lattice, halved `level` times."""
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
def _window(curvature: float, h: float) -> tuple[int, int]:
    """How many nodes a side a Gaussian would need, and how many more to add at a time."""
    reach = min(math.sqrt(2.0 * DROP / max(curvature, 1e-6)), 40.0)
    return int(1.1 * reach / h) + SPAN // 2, 8 if curvature > 10.0 else 32


@inlined
def _trimmed(nodes: Floats, lo: int, hi: int, floor: float) -> tuple[int, int]:
    """Leave out what is below the floor, but for one node a side, and SPAN in all."""
    while hi - lo >= SPAN and nodes[VALUE, lo + 1] < floor:
        lo += 1
    while hi - lo >= SPAN and nodes[VALUE, hi - 1] < floor:
        hi -= 1
    return lo, hi


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
                out[i] += terms[3, k] * _log_polynomial(polys, k, exps[i])


@kernel
def _correlate(
    terms: Floats, table: Floats, at: int, level: int, columns: int, out: Floats
) -> None:
    """Add Σ_j amount_j φ(u_i + s_j): four columns at a time, all nodes in the inner loop."""
    # Unsigned, for a number that may be negative would count from the table's end.
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


# Narrow rows -------------------------------------------------------------------------------


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
    """Nodes around a sharp mode; False if the row turns out not to be narrow."""
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
    """Nodes from a sharp mode outwards; False if that leads too far."""
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
            here = _log_polynomial(polys, k, e)
            for i in range(out.size):
                there = _log_polynomial(polys, k, e + e * grown[i])
                out[i] += terms[3, k] * (there - here)


@kernel
def _expand(
    terms: Floats, polys: Floats, table: Floats, small: Floats, state: Floats, mode: int
) -> tuple[float, float]:
    """Put the lattice's Taylor series at the mode into TAYLOR; return the mode and −ℓ'' there."""
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
    # The series around the mode, from that around the lattice's point: Horner's scheme.
    for lowest in range(ORDER):
        for i in range(ORDER - 1, lowest - 1, -1):
            c[i] += x * c[i + 1]
    return cell * STEP + x, curvature


@kernel
def _newton(
    terms: Floats, polys: Floats, small: Floats, state: Floats, origin: float, guess: float
) -> tuple[float, float]:
    """Solve ℓ' = 0 near a point of the lattice; the distance from it, and −ℓ'' there."""
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
        # The nodes' place need not be known better than to a share of a standard deviation.
        if moved * moved * curvature < 1e-4:
            break
    return x, curvature


@kernel
def _derivatives(
    terms: Floats, polys: Floats, small: Floats, state: Floats, origin: float, x: float
) -> tuple[float, float]:
    """Return ℓ' and −ℓ'' at origin + x, with the series at the origin."""
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
            near = _polynomial_slope(polys, k, e)
            # A difference is enough: curvature only steers the steps and sets the spacing.
            far = _polynomial_slope(polys, k, e * (1.0 + 1e-5))
            first += terms[3, k] * near
            second += terms[3, k] * (far - near) / 1e-5
    return first, -second


# Moments -----------------------------------------------------------------------------------


@kernel
def _weigh(nodes: Floats, small: Floats, state: Floats, stretches: int) -> tuple[float, float]:
    """Make MASS a share of the whole for each node; return the shares beyond both ends."""
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
def _mean_and_variance(
    nodes: Floats, small: Floats, state: Floats, stretches: int
) -> tuple[float, float]:
    low, high = _weigh(nodes, small, state, stretches)
    stop, mean, rest = int(small[START + stretches]), high, low
    for i in range(stop):
        nodes[VALUE, i] = 1.0 / (1.0 + nodes[E, i])
        rest += nodes[MASS, i] * nodes[VALUE, i]
        mean += nodes[MASS, i] * (nodes[E, i] * nodes[VALUE, i])
    # Of θ and 1 − θ the smaller one has the digits.
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
def _bernstein(
    nodes: Floats, small: Floats, state: Floats, stretches: int, binomials: Floats, out: Floats
) -> None:
    """Write E binom(p, k) θ^k (1−θ)^(p−k), k = 0..p."""
    low, high = _weigh(nodes, small, state, stretches)
    p, powers = out.size - 1, np.empty(out.size)
    out[:] = 0.0
    for i in range(int(small[START + stretches])):
        q = 1.0 / (1.0 + nodes[E, i])
        theta = nodes[E, i] * q
        # Powers of θ upwards into `powers`, then times those of 1 − θ downwards.
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


# Tails and quantiles -----------------------------------------------------------------------


@kernel
def _add_up(
    nodes: Floats, small: Floats, table: Floats, state: Floats, stretches: int
) -> tuple[float, float, float]:
    """Fill in masses of cells and beside nodes; return the whole and the slopes at both ends."""
    stop = int(small[START + stretches])
    for stretch in range(stretches):
        start, end = int(small[START + stretch]), int(small[START + stretch + 1])
        for i in range(start, end - 1):
            first = min(max(i - SPAN // 2 + 1, start), end - SPAN)
            nodes[MASS, i] = small[WIDTH + stretch] * _cell_mass(nodes, table, first, i - first)
        nodes[MASS, end - 1] = 0.0  # between two stretches there is nothing
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
    """Integrate over the cell after node first + cell, from the SPAN nodes from `first`."""
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
    """At which rates the density falls beyond the first and the last node."""
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
    """Put ℓ in the cell after node i as a polynomial into LOCAL; return the cell's width, or 0."""
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
    """ℓ at a share x of the cell."""
    x -= 0.5
    value = small[LOCAL + SPAN - 1]
    for d in range(SPAN - 2, -1, -1):
        value = value * x + small[LOCAL + d]
    return float(value)


@kernel
def _part(small: Floats, table: Floats, low: float, high: float) -> float:
    """Mass between two shares of a cell of width 1."""
    total = 0.0
    for g in range(GAUSS):
        x = low + (high - low) * table[KNOTS + g]
        total += table[KNOTS + GAUSS + g] * math.exp(_at(small, x))
    return total * (high - low)


@kernel
def _last(nodes: Floats, what: int, stop: int, x: float, rising: bool) -> int:
    """Last node i with nodes[what, i] ≤ x, or ≥ x if they fall; the first of them is."""
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
    """Mass below u and above it."""
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
def _tail(
    nodes: Floats,
    small: Floats,
    table: Floats,
    stretches: int,
    ends: tuple[float, float, float],
    p: float,
    upper: bool,
) -> float:
    """P(θ ≤ p), or P(θ > p)."""
    if p <= 0.0 or p >= 1.0:
        return 1.0 if (p >= 1.0) != upper else 0.0
    whole, low, high = ends
    u = math.log(p) - math.log1p(-p)
    below, above = _both_tails(nodes, small, table, stretches, low, high, u)
    return min((above if upper else below) / whole, 1.0)


@kernel
def _density(
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
    """Density of θ at p."""
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
    """ℓ(u) below its peak: between nodes from them, and else from the formula."""
    last = int(small[START + stretches]) - 1
    if nodes[U, 0] <= u < nodes[U, last]:
        i = _last(nodes, U, last + 1, u, True)
        h = _localise(nodes, small, table, i)
        if h > 0.0:
            return _at(small, (u - nodes[U, i]) / h)
    here = direct(terms, polys, state, nodes[U, 0])[0] - nodes[ELL, 0]
    return float(direct(terms, polys, state, u)[0] - here)


@kernel
def _quantile(
    nodes: Floats,
    small: Floats,
    table: Floats,
    stretches: int,
    ends: tuple[float, float, float],
    q: float,
) -> float:
    """Return p with P(θ ≤ p) = q, by way of the smaller tail."""
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
    """Share x of a cell that holds the mass `missing`, by Newton's steps kept in a bracket."""
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
        if moved < 1e-9:  # the next step would be about the square of it
            break
    return x


# All rows ----------------------------------------------------------------------------------


# What may be asked.
MOMENTS, BERNSTEIN, BELOW, ABOVE, PDF, PPF = range(6)


@kernel
def _room(columns: int, shifts: int, polynomials: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return terms, nodes, small and state for one row after the other."""
    terms = np.empty((4, max(columns, shifts, polynomials)))
    return terms, np.empty((9, NODES)), np.empty(SMALL), np.empty(8)


# Two kernels for all questions: nearly all there is to compile is what they share, and whoever
# asks for means only need not wait for the rest.


@kernel
def answer_moments(
    alpha: Floats,
    beta: Floats,
    amounts: Floats,
    first: int,
    factors: Floats,
    trials: Floats,
    repeats: Floats,
    polys: Floats,
    table: Floats,
    what: int,
    values: Floats,
    out: Floats,
) -> None:
    """Write moments, (k, m): the mean and the variance, or E binom(p, k) θ^k (1−θ)^(p−k)."""
    terms, nodes, small, state = _room(amounts.shape[1], trials.shape[1], repeats.shape[1])
    for row in range(alpha.size):
        parts = amounts[row], first, factors[row], trials[row], repeats[row]
        prepared(alpha[row], beta[row], *parts, polys, terms, state)
        stretches = build(terms, polys, table, nodes, small, state)
        if what == MOMENTS:
            out[0, row], out[1, row] = _mean_and_variance(nodes, small, state, stretches)
        else:
            _bernstein(nodes, small, state, stretches, values[:, 0], out[:, row])


@kernel
def answer_points(
    alpha: Floats,
    beta: Floats,
    amounts: Floats,
    first: int,
    factors: Floats,
    trials: Floats,
    repeats: Floats,
    polys: Floats,
    table: Floats,
    what: int,
    values: Floats,
    out: Floats,
) -> None:
    """Write (k, m) densities, tails or quantiles of (k, m) values."""
    terms, nodes, small, state = _room(amounts.shape[1], trials.shape[1], repeats.shape[1])
    for row in range(alpha.size):
        parts = amounts[row], first, factors[row], trials[row], repeats[row]
        prepared(alpha[row], beta[row], *parts, polys, terms, state)
        stretches = build(terms, polys, table, nodes, small, state)
        ends = _add_up(nodes, small, table, state, stretches)
        for k in range(values.shape[0]):
            value = values[k, row]
            if what == PDF:
                out[k, row] = _density(
                    terms, polys, nodes, small, table, state, stretches, ends[0], value
                )
            elif what == PPF:
                out[k, row] = _quantile(nodes, small, table, stretches, ends, value)
            else:
                out[k, row] = _tail(nodes, small, table, stretches, ends, value, what == ABOVE)
