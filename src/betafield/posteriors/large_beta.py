"""Beta distributions with large shapes, for which SciPy 1.14 and 1.17 lose digits (checked by Arb).

This module computes two things:

- the density, whose textbook formula cancels for large shapes. Loader's form does not: with
  n = α + β and the excess D = n p − α, p^α (1−p)^β / B(α, β) is the value at the mean times
  exp(−α h(D/α) − β h(−D/β)), where h(v) = v − log(1 + v) is never negative;
- tails and quantiles. SciPy's tails have relative errors of up to 1e-4, and its quantiles are off
  by whole standard deviations. A tail is the density of the log-odds u = log(π/(1−π)) at p times
  an integral,

      P(π beyond p) = p^α (1−p)^β / B(α, β) · ∫₀^∞ exp(−E(s)) ds,

  where s is the distance from p in log-odds and E(s) = ±D s + n log(1−p + p e^{±s}) ∓ n p s. E
  is smooth, convex and, beyond the mean, a sum of positive terms: Gauss–Legendre nodes over the
  range where exp(−E) is not negligible give it to rounding, at the same cost for every shape.
"""

import math

import numpy as np
import numpy.typing as npt
from numpy.polynomial.legendre import leggauss
from numpy.polynomial.polynomial import polyval
from scipy import special

from betafield.posteriors.base import Floats

# Beyond E(s) = 40 the integrand is below 1e-17.
_NEGLIGIBLE = 40.0
# For larger shapes, 40 standard deviations are below rounding.
_MEAN_ONLY = 2.0**120
_MOST_STEPS = 20
_LEAST_NORMAL = float(np.finfo(np.float64).tiny)
# Coefficients, from the constant up: atanh(r)/r³ − 1/r² in r², (e^t − 1 − t)/t² in t, Stirling's.
_ATANH_REST = [1.0 / (2 * k + 3) for k in range(15)]
_EXPM1_REST = [1.0 / math.factorial(k + 2) for k in range(9)]
_STIRLING_REST = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156]
_NODES, _WEIGHTS = (0.5 * values for values in leggauss(32))
_NODES += 0.5


def excess_of(a: Floats, b: Floats, p: Floats) -> Floats:
    """D = (α + β) p − α, rounded once: for large shapes, n p alone would lose its digits."""
    # Veltkamp's split of larger numbers would overflow.
    scale = np.where(np.maximum(a, b) > 2.0**900, 2.0**-200, 1.0)
    a, b = a * scale, b * scale
    n = a + b
    lost_in_sum = (a - (n - (n - a))) + (b - (n - a))
    product, lost_in_product = _exact_product(n, p)
    return np.asarray(((product - a) + (lost_in_product + lost_in_sum * p)) / scale)


def _exact_product(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Dekker's product: the rounded product and its rounding error."""
    product = x * y
    (x1, x0), (y1, y0) = _halves(x), _halves(y)
    return product, ((x1 * y1 - product) + x1 * y0 + x0 * y1) + x0 * y0


def _halves(x: Floats) -> tuple[Floats, Floats]:
    """Veltkamp's split into two numbers of 26 bits."""
    scaled = x * 134217729.0  # 2^27 + 1
    high = scaled - (scaled - x)
    return high, x - high


def log_kernel(a: Floats, b: Floats, p: Floats, excess: Floats) -> Floats:
    """log(p^α (1−p)^β / B(α, β)), the log-density of the log-odds, in Loader's form."""
    n = a + b
    mean, rest = (np.maximum(shape / n, _LEAST_NORMAL) for shape in (a, b))
    distance = _deviance(a, excess, p / mean) + _deviance(b, -excess, (1.0 - p) / rest)
    peak = 0.5 * np.log(np.minimum(a, b) * (np.maximum(a, b) / n) / (2.0 * math.pi))
    return peak + (_stirling_error(n) - _stirling_error(a) - _stirling_error(b)) - distance


def _deviance(a: Floats, excess: Floats, ratio: Floats) -> Floats:
    """Return a h(v), h(v) = v − log(1 + v), for v = excess/a and ratio = 1 + v."""
    near = np.abs(excess) < 0.5 * a
    v = np.where(near, excess, 0.0) / a
    r = v / (2.0 + v)  # log(1 + v) = 2 atanh(r) = 2r + rest, and v − 2r = v r
    series = a * r * (v - 2.0 * r * r * polyval(r * r, _ATANH_REST))
    return np.where(near, series, excess - a * np.log(ratio))


def _stirling_error(a: Floats) -> Floats:
    """Return log Γ(a) − ((a − ½) log a − a + ½ log 2π), about 1/(12 a)."""
    small, big = np.minimum(a, 10.0), np.maximum(a, 10.0)
    stirling = (small - 0.5) * np.log(small) - small + 0.5 * math.log(2.0 * math.pi)
    series = polyval(big**-2.0, _STIRLING_REST) / big
    return np.where(a < 10.0, special.gammaln(small) - stirling, series)


def large_lower(a: Floats, b: Floats, p: Floats) -> Floats:
    """P(π ≤ p)."""
    above_mean, tail = _tail(a, b, p)
    return np.where(above_mean, 1.0 - tail, tail)


def large_upper(a: Floats, b: Floats, p: Floats) -> Floats:
    """P(π > p)."""
    above_mean, tail = _tail(a, b, p)
    return np.where(above_mean, tail, 1.0 - tail)


def _tail(a: Floats, b: Floats, p: Floats) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Whether p is above the mean, and the probability of lying beyond p on that side."""
    excess = excess_of(a, b, p)
    side = np.where(excess > 0.0, 1.0, -1.0)
    with np.errstate(over="ignore"):  # with huge shapes, logarithms overflow far from the mean
        log_density = log_kernel(a, b, p, excess)
    return excess > 0.0, np.exp(log_density) * _integral(a + b, p, excess, side)


def _integral(n: Floats, p: Floats, excess: Floats, side: Floats) -> Floats:
    """∫₀^∞ exp(−E(s)) ds towards `side` (+1: larger p, −1: smaller p)."""
    slope, reach = side * excess, _reach(n, p, excess, side)
    total = np.zeros_like(p)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += weight * np.exp(-_energy(n, p, slope, side * reach * node))
    return reach * total


def _energy(n: Floats, p: Floats, slope: Floats, s: Floats) -> Floats:
    """E at signed distance s; both terms in the logarithm are positive, so nothing cancels."""
    rest = (1.0 - p) * _expm1_rest(-p * s) + p * _expm1_rest((1.0 - p) * s)
    return slope * np.abs(s) + n * np.log1p(rest)


def _expm1_rest(t: Floats) -> Floats:
    """e^t − 1 − t."""
    near = np.abs(t) < 0.1
    t0 = np.where(near, t, 0.0)
    return np.where(near, t0 * t0 * polyval(t0, _EXPM1_REST), np.expm1(t) - t)


def _reach(n: Floats, p: Floats, excess: Floats, side: Floats) -> Floats:
    """Distance s at which E(s) exceeds _NEGLIGIBLE; Newton on a convex function ends beyond it."""
    slope, curvature = side * excess, n * p * (1.0 - p)
    # Halves of the denominator, because its sum and square might overflow.
    half = 0.5 * slope, math.sqrt(0.5 * _NEGLIGIBLE) * np.sqrt(curvature)
    s = _NEGLIGIBLE / (half[0] + np.hypot(*half))
    for _ in range(3):
        e = p * np.expm1(side * s)
        gradient = slope + side * n * (1.0 - p) * e / (1.0 + e)
        s = s + (_NEGLIGIBLE - _energy(n, p, slope, side * s)) / gradient
    return s


def large_quantile(a: Floats, b: Floats, q: Floats) -> Floats:
    """Solve for the smaller tail in log-odds, mirrored so that the mean is below ½."""
    mirrored = a > b
    low, high = np.minimum(a, b), np.maximum(a, b)
    side = np.where((q > 0.5) ^ mirrored, 1.0, -1.0)
    log_tail = np.log(np.minimum(q, 1.0 - q))
    # For such large shapes every quantile equals the mean, to rounding.
    p, rows = low / (low + high), np.flatnonzero(low < _MEAN_ONLY)
    p[rows] = _solved(low[rows], high[rows], side[rows], log_tail[rows])
    return np.asarray(np.where(mirrored, 1.0 - p, p))


def _solved(a: Floats, b: Floats, side: Floats, log_tail: Floats) -> Floats:
    """Solve log P(π beyond p, towards `side`) = log_tail for p."""
    p = _approximate_quantile(a, b, side, log_tail)
    rows = np.arange(p.size)
    for _ in range(_MOST_STEPS):
        error, step = _halley(a[rows], b[rows], p[rows], side[rows], log_tail[rows])
        p[rows] = _moved(p[rows], step)
        rows = rows[np.abs(error) > 1e-5]  # for the others the step has cubed the error
        if not rows.size:
            break
    return p


def _approximate_quantile(a: Floats, b: Floats, side: Floats, log_tail: Floats) -> Floats:
    """Abramowitz and Stegun 26.5.22, limited by Chernoff's bound: it fails for tiny tails."""
    z = -side * special.ndtri_exp(log_tail)
    i, j = 0.5 / (a - 0.5), 0.5 / (b - 0.5)
    h, k = 2.0 / (i + j), (z * z - 3.0) / 6.0
    w = -z * np.sqrt(h + k) / h - (j - i) * (k + 5.0 / 6.0 - 2.0 / (3.0 * h))
    bound = 1.0 - log_tail / a + np.sqrt(log_tail / a * (log_tail / a - 2.0))
    guess: Floats = a / b / (a / b + np.exp(2.0 * w))
    return np.minimum(guess, a / (a + b) * bound)


def _halley(
    a: Floats, b: Floats, p: Floats, side: Floats, log_tail: Floats
) -> tuple[Floats, Floats]:
    """Error of log P(π beyond p) against `log_tail`, and Halley's step to correct it."""
    excess = excess_of(a, b, p)
    integral = _integral(a + b, p, excess, side)
    error = log_kernel(a, b, p, excess) + np.log(integral) - log_tail
    # First and second derivative of the log tail, which is concave, so the second is not positive.
    first, second = -side / integral, (side * excess - 1.0 / integral) / integral
    return error, -error / first / np.maximum(1.0 - 0.5 * error * second / first**2, 0.5)


def _moved(p: Floats, step: Floats) -> Floats:
    """Return the point at distance `step` from p in log-odds."""
    e = np.expm1(step)
    return p + p * (1.0 - p) * e / (1.0 + p * e)
