"""Constants of the quadrature, and the layout of the arrays that its kernels pass on.

These are a few flat arrays, because a compiled call with tuples of arrays counts references:

- `table`: all that does not depend on rows, in the parts that the constants below name;
- `terms` (4, ·): the row's amounts on the lattice, its factors e^shift and their trials, its
  repeats of polynomials;
- `state`: what it adds up to, see ALPHA and what follows it;
- `polys` (K, 5 + p + 1): see `tables.powers`;
- `nodes` (9, ·): see VALUE and what follows it;
- `small`: stretches and modes, see START and what follows it.
"""

from betafield.lattice import STEP

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

# What may be asked.
MOMENTS, BERNSTEIN, POLYNOMIAL, BELOW, ABOVE, PDF, PPF = range(7)
