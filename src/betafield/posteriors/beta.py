"""Beta posteriors, right from shapes of 1e-3 to shapes of 1e12.

SciPy's incomplete beta functions serve almost every row. Two things are done here, because SciPy
loses digits there (measured against Arb with SciPy 1.14 and 1.17):

- the density, whose textbook formula cancels for large shapes. Loader's form does not: with
  n = α + β and the excess D = n p − α, p^α (1−p)^β / B(α, β) is the value at the mean times
  exp(−α h(D/α) − β h(−D/β)), where h(v) = v − log(1 + v) is never negative;
- tails and quantiles of *large* rows, where SciPy's tails are wrong by up to 1e-4, relative, and
  its quantiles by whole standard deviations. There a tail is the density of the log-odds
  u = log(π/(1−π)) at p times an integral,

      P(π beyond p) = p^α (1−p)^β / B(α, β) · ∫₀^∞ exp(−E(s)) ds,

  with s the distance from p in log-odds and E(s) = ±D s + n log(1−p + p e^{±s}) ∓ n p s. E is
  smooth, convex and, beyond the mean, a sum of positive terms: Gauss-Legendre nodes over the
  stretch where exp(−E) is not negligible give it to rounding, at the same price for every shape.
"""

import math
from collections.abc import Callable
from typing import Self

import numpy as np
import numpy.typing as npt
from numpy.polynomial.legendre import leggauss
from numpy.polynomial.polynomial import polyval
from scipy import special

from betafield.posteriors.base import Floats, Generator, Posterior, Rows, checked_shapes

Formula = Callable[[Floats, Floats, Floats], Floats]

# A row is large when one shape is above _LARGE and the other not below _NOT_SMALL.
_NOT_SMALL, _LARGE = 2.0, 5e3
# Below this point the cdf is a power p^α, to all digits.
_TINY = 1e-300
# Beyond E(s) = 40 the integrand is below 1e-17.
_NEGLIGIBLE = 40.0
_BLOCK, _MOST_STEPS = 8192, 20
# Series, from the constant up: atanh(r)/r³ − 1/r² in r², (e^t − 1 − t)/t² in t, and Stirling's.
_ATANH_REST = [1.0 / (2 * k + 3) for k in range(15)]
_EXPM1_REST = [1.0 / math.factorial(k + 2) for k in range(9)]
_STIRLING_REST = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156]
_NODES, _WEIGHTS = (0.5 * values for values in leggauss(32))
_NODES += 0.5


class Beta(Posterior):
    """Beta distributions, one a row.

    Row i has density p^(α−1) (1−p)^(β−1) / B(α, β) on [0, 1], with mean α/(α+β) and variance
    αβ / ((α+β)² (α+β+1)). After S successes in n trials a prior Beta(α, β) becomes
    Beta(α + S, β + n − S).

    Parameters
    ----------
    alpha, beta : array-like of shape (m,)
        The shapes α and β: positive, finite. Kept as read-only float64 arrays.

    Examples
    --------
    Three successes in four trials, and no trials at all, from a uniform prior:

    >>> import numpy as np
    >>> from betafield.posteriors import Beta
    >>> post = Beta(alpha=[4.0, 1.0], beta=[2.0, 1.0])
    >>> post
    Beta(alpha=[4., 1.], beta=[2., 1.])
    >>> low, high = post.interval(0.9)
    >>> print(low.round(4), high.round(4))
    [0.3426 0.05  ] [0.9236 0.95  ]
    >>> post.prob_above(0.5)
    array([0.8125, 0.5   ])
    >>> post.cdf(np.array([[0.2], [0.8]])).round(5)
    array([[0.00672, 0.2    ],
           [0.73728, 0.8    ]])
    >>> post[0].sample(3, random_state=0).shape
    (3, 1)
    """

    def __init__(self, alpha: npt.ArrayLike, beta: npt.ArrayLike) -> None:
        self.alpha = checked_shapes("alpha", alpha, ndim=1)
        self.beta = checked_shapes("beta", beta, ndim=1)
        if self.alpha.shape != self.beta.shape:
            raise ValueError(
                f"alpha has {len(self.alpha)} rows and beta has {len(self.beta)}; "
                "they must have the same number"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,): one distribution a row."""
        return self.alpha.shape

    def mean(self) -> Floats:
        """α/(α+β)."""
        return self.alpha / (self.alpha + self.beta)

    def var(self) -> Floats:
        """αβ / ((α+β)² (α+β+1))."""
        total = self.alpha + self.beta
        return self.alpha / total * (self.beta / total) / (total + 1.0)

    def ppf(self, q: npt.ArrayLike) -> Floats:
        """Quantile: the point p with P(π ≤ p) = q, for `q` within [0, 1].

        A quantile can lie closer to 0 or 1 than any other float64: a quarter of the mass of
        Beta(1e-3, 1e-3) is below 1e-300. Then the result is 0 or 1, and q lies between the cdf
        at it and the cdf at the float64 next to it.
        """
        return super().ppf(q)

    def __repr__(self) -> str:
        alpha, beta = (_shortened(shapes) for shapes in (self.alpha, self.beta))
        return f"Beta(alpha={alpha}, beta={beta})"

    def _pdf(self, p: Floats) -> Floats:
        return _density(*np.broadcast_arrays(self.alpha, self.beta, p))

    def _cdf(self, p: Floats) -> Floats:
        return _by_size(_ordinary_lower, _large_lower, self.alpha, self.beta, p)

    def _above(self, p: Floats) -> Floats:
        return _by_size(_ordinary_upper, _large_upper, self.alpha, self.beta, p)

    def _ppf(self, q: Floats) -> Floats:
        return _by_size(_ordinary_quantile, _large_quantile, self.alpha, self.beta, q)

    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        return rng.beta(self.alpha, self.beta, size)

    def _take(self, rows: Rows) -> Self:
        return type(self)(self.alpha[rows], self.beta[rows])


def _shortened(shapes: Floats) -> str:
    return np.array2string(shapes, precision=4, separator=", ", threshold=6, edgeitems=2)


def _by_size(ordinary: Formula, large: Formula, a: Floats, b: Floats, p: Floats) -> Floats:
    """Apply `large` to large rows at 0 < p < 1 and `ordinary` to all others."""
    is_large = (np.maximum(a, b) > _LARGE) & (np.minimum(a, b) >= _NOT_SMALL)
    if not is_large.any():
        return np.asarray(ordinary(a, b, p))
    chosen = is_large & (p > 0.0) & (p < 1.0)
    a, b, p = np.broadcast_arrays(a, b, p)
    result = np.empty(chosen.shape)
    result[~chosen] = ordinary(a[~chosen], b[~chosen], p[~chosen])
    result[chosen] = _in_blocks(large, a[chosen], b[chosen], p[chosen])
    return result


def _in_blocks(formula: Formula, a: Floats, b: Floats, p: Floats) -> Floats:
    """Few rows at a time: the many temporaries of the large formulas then stay in the cache."""
    result = np.empty(p.shape)
    for start in range(0, p.size, _BLOCK):
        rows = slice(start, start + _BLOCK)
        result[rows] = formula(a[rows], b[rows], p[rows])
    return result


def _ordinary_lower(a: Floats, b: Floats, p: Floats) -> Floats:
    """SciPy's, but for subnormal p, where it loses digits."""
    power = (np.minimum(p, _TINY) / _TINY) ** a
    return np.asarray(power * special.betainc(a, b, np.maximum(p, _TINY)))


def _ordinary_upper(a: Floats, b: Floats, p: Floats) -> Floats:
    """P(π > p), from `betainc` where 1 − p is exact: it is ten times faster than `betaincc`."""
    a, b, p = np.broadcast_arrays(a, b, p)
    exact = p >= 0.5
    result = np.empty(p.shape)
    result[exact] = special.betainc(b[exact], a[exact], 1.0 - p[exact])
    result[~exact] = special.betaincc(a[~exact], b[~exact], p[~exact])
    return result


def _ordinary_quantile(a: Floats, b: Floats, q: Floats) -> Floats:
    """SciPy's, but for points and probabilities so near to 0 that it is wrong, NaN or infinite.

    Medians of equal shapes are 1/2, of which SciPy's are up to 1.5e-8 off.
    """
    p = np.asarray(special.betaincinv(a, b, q))
    p = np.where((a == b) & (q == 0.5), 0.5, p)
    redo = ((p < _TINY) | (q < 1e-12)) & (q > 0.0)
    if redo.any():
        p[redo] = _bisected(*(values[redo] for values in np.broadcast_arrays(a, b, q)))
    return p


def _bisected(a: Floats, b: Floats, q: Floats) -> Floats:
    """Halve the float64 numbers of [0, 1] until one is left; they are ordered as their bits are."""
    low, high = np.zeros_like(q).view(np.int64), np.ones_like(q).view(np.int64)
    for _ in range(62):
        middle = (low + high) // 2
        below = _ordinary_lower(a, b, middle.view(np.float64)) < q
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low.view(np.float64)


def _density(a: Floats, b: Floats, p: Floats) -> Floats:
    inner = (p > 0.0) & (p < 1.0)
    result = np.where(p > 0.5, _density_at_zero(b, a), _density_at_zero(a, b))
    a, b, p = a[inner], b[inner], p[inner]
    with np.errstate(over="ignore"):  # the density of a shape below 1 has no bound
        result[inner] = np.exp(_log_kernel(a, b, p, _excess(a, b, p)) - np.log(p) - np.log1p(-p))
    return result


def _density_at_zero(a: Floats, b: Floats) -> Floats:
    """Limit at 0 of the density: infinite, β, or 0 for α below, at, or above 1."""
    return np.select([a < 1.0, a == 1.0], [np.inf, b], 0.0)


def _excess(a: Floats, b: Floats, p: Floats) -> Floats:
    """D = (α + β) p − α, rounded once: for large shapes its digits are what n p has lost."""
    n = a + b
    lost_in_sum = (a - (n - (n - a))) + (b - (n - a))
    product, lost_in_product = _exact_product(n, p)
    return (product - a) + (lost_in_product + lost_in_sum * p)


def _exact_product(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Dekker's product: the rounded one, and what the rounding lost."""
    product = x * y
    (x1, x0), (y1, y0) = _halves(x), _halves(y)
    return product, ((x1 * y1 - product) + x1 * y0 + x0 * y1) + x0 * y0


def _halves(x: Floats) -> tuple[Floats, Floats]:
    """Veltkamp's split into two numbers of 26 bits."""
    scaled = x * 134217729.0  # 2^27 + 1
    high = scaled - (scaled - x)
    return high, x - high


def _log_kernel(a: Floats, b: Floats, p: Floats, excess: Floats) -> Floats:
    """log(p^α (1−p)^β / B(α, β)), the log density of the log-odds, in Loader's form."""
    n = a + b
    distance = _deviance(a, excess, p / (a / n)) + _deviance(b, -excess, (1.0 - p) / (b / n))
    peak = 0.5 * np.log(a / n * b / (2.0 * math.pi))
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


def _large_lower(a: Floats, b: Floats, p: Floats) -> Floats:
    above_mean, tail = _large_tail(a, b, p)
    return np.where(above_mean, 1.0 - tail, tail)


def _large_upper(a: Floats, b: Floats, p: Floats) -> Floats:
    above_mean, tail = _large_tail(a, b, p)
    return np.where(above_mean, tail, 1.0 - tail)


def _large_tail(a: Floats, b: Floats, p: Floats) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Whether p is above the mean, and the probability of lying farther from it on that side."""
    excess = _excess(a, b, p)
    side = np.where(excess > 0.0, 1.0, -1.0)
    log_density, integral = _log_kernel(a, b, p, excess), _integral(a + b, p, excess, side)
    return excess > 0.0, np.exp(log_density) * integral


def _integral(n: Floats, p: Floats, excess: Floats, side: Floats) -> Floats:
    """∫₀^∞ exp(−E(s)) ds towards `side` (+1: greater p, −1: smaller)."""
    slope, reach = side * excess, _reach(n, p, excess, side)
    total = np.zeros_like(p)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        total += weight * np.exp(-_energy(n, p, slope, side * reach * node))
    return reach * total


def _energy(n: Floats, p: Floats, slope: Floats, s: Floats) -> Floats:
    """E at signed distance s: both terms in the logarithm are positive, nothing cancels."""
    rest = (1.0 - p) * _expm1_rest(-p * s) + p * _expm1_rest((1.0 - p) * s)
    return slope * np.abs(s) + n * np.log1p(rest)


def _expm1_rest(t: Floats) -> Floats:
    """e^t − 1 − t."""
    near = np.abs(t) < 0.1
    t0 = np.where(near, t, 0.0)
    return np.where(near, t0 * t0 * polyval(t0, _EXPM1_REST), np.expm1(t) - t)


def _reach(n: Floats, p: Floats, excess: Floats, side: Floats) -> Floats:
    """Distance s at which E(s) passes _NEGLIGIBLE: Newton on a convex function ends beyond it."""
    slope, curvature = side * excess, n * p * (1.0 - p)
    s = 2.0 * _NEGLIGIBLE / (slope + np.sqrt(slope * slope + 2.0 * _NEGLIGIBLE * curvature))
    for _ in range(3):
        e = p * np.expm1(side * s)
        gradient = slope + side * n * (1.0 - p) * e / (1.0 + e)
        s = s + (_NEGLIGIBLE - _energy(n, p, slope, side * s)) / gradient
    return s


def _large_quantile(a: Floats, b: Floats, q: Floats) -> Floats:
    """Solve for the smaller tail in log-odds, mirrored so that the mean is below ½."""
    mirrored = a > b
    low, high = np.minimum(a, b), np.maximum(a, b)
    side = np.where((q > 0.5) ^ mirrored, 1.0, -1.0)
    log_tail = np.log(np.minimum(q, 1.0 - q))
    p = _solved(low, high, side, log_tail)
    return np.where(mirrored, 1.0 - p, p)


def _solved(a: Floats, b: Floats, side: Floats, log_tail: Floats) -> Floats:
    """Solve log P(π beyond p, towards `side`) = log_tail for p."""
    p = _approximate_quantile(a, b, side, log_tail)
    rows = np.arange(p.size)
    for _ in range(_MOST_STEPS):
        error, step = _halley(a[rows], b[rows], p[rows], side[rows], log_tail[rows])
        p[rows] = _moved(p[rows], step)
        rows = rows[np.abs(error) > 1e-5]  # in the others the step has cubed the error
        if not rows.size:
            break
    return p


def _approximate_quantile(a: Floats, b: Floats, side: Floats, log_tail: Floats) -> Floats:
    """Abramowitz and Stegun 26.5.22, kept within Chernoff's bound: it is wild for tiny tails."""
    z = -side * special.ndtri_exp(log_tail)
    i, j = 1.0 / (2.0 * a - 1.0), 1.0 / (2.0 * b - 1.0)
    h, k = 2.0 / (i + j), (z * z - 3.0) / 6.0
    w = -z * np.sqrt(h + k) / h - (j - i) * (k + 5.0 / 6.0 - 2.0 / (3.0 * h))
    bound = 1.0 - log_tail / a + np.sqrt(log_tail / a * (log_tail / a - 2.0))
    guess: Floats = a / (a + b * np.exp(2.0 * w))
    return np.minimum(guess, a / (a + b) * bound)


def _halley(
    a: Floats, b: Floats, p: Floats, side: Floats, log_tail: Floats
) -> tuple[Floats, Floats]:
    """Error of log P(π beyond p) against `log_tail`, and Halley's step in log-odds against it."""
    excess = _excess(a, b, p)
    integral = _integral(a + b, p, excess, side)
    error = _log_kernel(a, b, p, excess) + np.log(integral) - log_tail
    # First and second derivative of the log tail; it is concave, so the second is not positive.
    first, second = -side / integral, (side * excess - 1.0 / integral) / integral
    return error, -error / first / np.maximum(1.0 - 0.5 * error * second / first**2, 0.5)


def _moved(p: Floats, step: Floats) -> Floats:
    """Return the point at distance `step` from p in log-odds."""
    e = np.expm1(step)
    return p + p * (1.0 - p) * e / (1.0 + p * e)
