"""Constants of the quadrature, and the layout of the arrays that its kernels share.

These are a few flat arrays, because compiled calls with tuples of arrays count references:

- `table`: everything that does not depend on rows, in the parts named by the constants below;
- `terms` (4, ·): the row's amounts on the lattice, its factors e^shift and their trials, and its
  repeats of polynomials;
- `state`: the row's totals, from ALPHA on;
- `polys` (K, 5 + p + 1): see `tables.powers`;
- `nodes` (9, ·): see VALUE and the following constants;
- `small`: stretches and modes, see START and the following constants.
"""

from betafield.lattice import STEP

# The density is neglected where it is below e^-DROP of its peak.
DROP = 25.0
# Cells of the lattice on each side of 0 that are used: u within ±REACH.
CELLS = 256
REACH = CELLS * STEP
# The lattice may be halved this many times.
LEVELS = 5
# Spacing of nodes in standard deviations of u, and as a share of the distance to a singularity.
SPACING, SHARE = 0.75, 0.125
# From this curvature on, a Taylor series of this order serves a whole row, up to this distance.
NARROW, ORDER, RADIUS = 300.0, 12, 0.9
# If the spacing is fine enough, even and odd nodes agree to this; the error is at most its square.
AGREE = 2e-4
SPAN, GAUSS = 12, 4
# Number of slopes of a polynomial at points of the lattice, from one before the first cell to two
# after the last; they are at the end of its row.
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

# Not a power of two, because then all rows of `nodes` would compete for the same cache lines.
NODES = (4 * CELLS << LEVELS) + 88
# Rows of `nodes`: work space, and e^x − 1 at a distance x from the mode; log-odds, e^u, log-density
# and density relative to the peak; masses left of a node, right of it, and between it and the next.
VALUE, GROWN, U, E, ELL, WEIGHT, LEFT, RIGHT, MASS = range(9)
# Parts of `small`: a Taylor series; the first nodes of stretches and their spacings; the cell,
# curvature, place and height of each mode; the coefficients in one cell.
TAYLOR = 0
START = TAYLOR + ORDER + 1
WIDTH = START + MODES + 1
CELL, CURVATURE, PLACE, HEIGHT = (WIDTH + MODES * i for i in range(1, 5))
LOCAL = HEIGHT + MODES
SMALL = LOCAL + SPAN


# Parts of `state`, the totals of a row: ℓ = α u − n φ(u) + …, with REST = n − α, and slopes LOW
# and −HIGH at the ends; and how many terms of each kind it has.
ALPHA, REST, LOW, HIGH, COLUMNS, FIRST, SHIFTS, POLYNOMIALS = range(8)

# Kinds of answers.
MOMENTS, BERNSTEIN, POLYNOMIAL, BELOW, ABOVE, PDF, PPF = range(7)
