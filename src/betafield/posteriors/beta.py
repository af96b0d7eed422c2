"""Beta posteriors, accurate for shapes from 1e-3 to 1e12, and usable for all others.

Most rows use SciPy's incomplete beta functions; `large_beta` has the density, and the rows with
large shapes, for which SciPy loses digits.

Shapes of 1e308 or of 5e-324 would overflow in sums and products. They are replaced by moderate
shapes whose tails and quantiles are the same floats; see `_moderate`.
"""

from collections.abc import Callable
from copy import copy
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import special

from betafield.posteriors.base import (
    Floats,
    Generator,
    Moments,
    Posterior,
    Rows,
    checked_shapes,
    require_one_length,
)
from betafield.posteriors.large_beta import (
    excess_of,
    large_lower,
    large_quantile,
    large_upper,
    log_kernel,
)

Formula = Callable[[Floats, Floats, Floats], Floats]

# A row is large if one shape is above _LARGE and the other is not below _NOT_SMALL.
_NOT_SMALL, _LARGE = 2.0, 5e3
# Below this point the cdf is a power p^α, to full precision.
_TINY = 1e-300
# Down to this tail, 1 − P(π ≤ p) has 14 digits.
_SMALL_TAIL = 0.01
# If one shape exceeds this and the other is below _NOT_SMALL, π is a Gamma variate over the former.
_HUGE = 1e30
# Shapes in this range need no care; SciPy's tails are right from the least shape on.
_MODERATE = 2.0**-300, 2.0**300
_LEAST = 1e-300
_BLOCK = 8192


class Beta(Posterior):
    """Beta distributions, one per row.

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
        require_one_length(alpha=self.alpha, beta=self.beta)

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,): one distribution per row."""
        return self.alpha.shape

    def mean(self) -> Floats:
        """α/(α+β)."""
        alpha, beta, _ = self._summable()
        return np.asarray(alpha / (alpha + beta))

    def var(self) -> Floats:
        """αβ / ((α+β)² (α+β+1))."""
        alpha, beta, scale = self._summable()
        total = alpha + beta
        return np.asarray(alpha / total * (beta / total) * scale / (total + scale))

    def polynomial_moments(self, coefficients: Floats) -> Moments:
        """Return E[f(π)] = Σ_k b_k E[B_k] and Var[f(π)], in closed form.

        f is expanded in the polynomials that are orthogonal under Beta(α, β). This makes the
        variance a sum of squares, so nothing cancels, however narrow the distribution is:

            Var[f(π)] = Σ_(k=1..p) c_k (E[f⁽ᵏ⁾(π')])²,   π' ~ Beta(α + k, β + k),

        with c_1 = Var[π] and, for n = α + β, c_(k+1)/c_k =
        (α+k) (β+k) (n+k−1) / ((k+1) (n+2k−1) (n+2k)² (n+2k+1)).
        """
        a, b = (shapes[:, None] for shapes in _moderate(self.alpha, self.beta))
        mean = (coefficients * _binomial(a, b, coefficients.shape[1] - 1)).sum(axis=1)
        n, degree, differences = a + b, coefficients.shape[1] - 1, coefficients
        # The square root of c_k, times the factors from the derivatives.
        root = np.sqrt(a / n * (b / n) / (n + 1.0))
        var = np.zeros(len(mean))
        for k in range(1, degree + 1):
            differences, root = np.diff(differences), root * (degree + 1 - k)
            slope = (differences * _binomial(a + k, b + k, degree - k)).sum(axis=1)
            var += (root[:, 0] * slope) ** 2
            ratio = (a + k) / (n + (2 * k - 1)) * ((b + k) / (n + 2 * k)) / (n + 2 * k)
            root = root * np.sqrt(ratio * ((n + (k - 1)) / (n + (2 * k + 1))) / (k + 1))
        return mean, var

    def _summable(self) -> tuple[Floats, Floats, Floats]:
        """Shapes times a scale, which is 1 unless their sum would overflow, and the scale."""
        if max(self.alpha.max(initial=0.0), self.beta.max(initial=0.0)) <= 2.0**1020:
            return self.alpha, self.beta, np.ones(1)
        scale = np.where(np.maximum(self.alpha, self.beta) > 2.0**1020, 2.0**-60, 1.0)
        return self.alpha * scale, self.beta * scale, scale

    def ppf(self, q: npt.ArrayLike) -> Floats:
        """Quantile: the point p with P(π ≤ p) = q, for `q` within [0, 1].

        A quantile can be closer to 0 or 1 than any other float64: a quarter of the mass of
        Beta(1e-3, 1e-3) is below 1e-300. The result is then 0 or 1, and q lies between the cdf
        there and the cdf at the next float64.
        """
        return super().ppf(q)

    def __repr__(self) -> str:
        alpha, beta = (_shortened(shapes) for shapes in (self.alpha, self.beta))
        return f"Beta(alpha={alpha}, beta={beta})"

    def _pdf(self, p: Floats) -> Floats:
        return _density(*np.broadcast_arrays(self.alpha, self.beta, p))

    def _cdf(self, p: Floats) -> Floats:
        return _by_size(_LOWER, self.alpha, self.beta, p)

    def _above(self, p: Floats) -> Floats:
        return _by_size(_UPPER, self.alpha, self.beta, p)

    def _ppf(self, q: Floats) -> Floats:
        return _by_size(_QUANTILE, self.alpha, self.beta, q)

    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        return rng.beta(*_moderate(self.alpha, self.beta), size)

    def _take(self, rows: Rows) -> Self:
        other = copy(self)
        other.alpha, other.beta = self.alpha[rows], self.beta[rows]
        return other


def _shortened(shapes: Floats) -> str:
    return np.array2string(shapes, precision=4, separator=", ", threshold=6, edgeitems=2)


def _binomial(a: Floats, b: Floats, p: int) -> Floats:
    """E[binom(p, k) π^k (1−π)^(p−k)], k = 0..p, along the last axis, from ratios of neighbours."""
    k = np.arange(p)
    logs = np.log((p - k) / (k + 1.0)) + np.log((a + k) / (b + (p - 1 - k)))
    logs = np.concatenate([np.zeros_like(a), logs.cumsum(axis=1)], axis=1)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _moderate(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return shapes with the same tails and quantiles that neither overflow nor underflow.

    Two huge shapes put all mass at the mean, two minute ones at 0 and 1 with odds β : α, so only
    their ratio matters: both are scaled by one power of two, which keeps it. A single minute shape
    only bounds tails below itself.
    """
    least, most = _MODERATE
    smaller, larger = np.minimum(a, b), np.maximum(a, b)
    if smaller.min(initial=1.0) >= least and larger.max(initial=1.0) <= most:
        return a, b
    powers = [-300.0 - np.log2(larger), 300.0 - np.log2(smaller)]
    factor = np.exp2(np.rint(np.select([larger < least, smaller > most], powers, 0.0)))
    return np.maximum(a * factor, _LEAST), np.maximum(b * factor, _LEAST)


def _by_size(formulas: "_Formulas", a: Floats, b: Floats, p: Floats) -> Floats:
    """Apply the formula for its size to each row; the ordinary one at p = 0 and p = 1."""
    a, b = _moderate(a, b)
    smaller, larger = np.minimum(a, b), np.maximum(a, b)
    if not (larger > _LARGE).any():
        return np.asarray(formulas.ordinary(a, b, p))
    a, b, p, smaller, larger = np.broadcast_arrays(a, b, p, smaller, larger)
    inside = (p > 0.0) & (p < 1.0)
    large = inside & (larger > _LARGE) & (smaller >= _NOT_SMALL)
    lopsided = inside & (larger > _HUGE) & (smaller < _NOT_SMALL)
    result = np.empty(p.shape)
    for formula, rows in zip(formulas, (~(large | lopsided), large, lopsided), strict=True):
        result[rows] = _in_blocks(formula, a[rows], b[rows], p[rows])
    return result


def _in_blocks(formula: Formula, a: Floats, b: Floats, p: Floats) -> Floats:
    """Process few rows at a time, so that temporaries of the large formulas stay cached."""
    result = np.empty(p.shape)
    for start in range(0, p.size, _BLOCK):
        rows = slice(start, start + _BLOCK)
        result[rows] = formula(a[rows], b[rows], p[rows])
    return result


def _ordinary_lower(a: Floats, b: Floats, p: Floats) -> Floats:
    """SciPy's function, except for subnormal p, for which it loses digits."""
    power = (np.minimum(p, _TINY) / _TINY) ** a
    return np.asarray(power * special.betainc(a, b, np.maximum(p, _TINY)))


def _ordinary_upper(a: Floats, b: Floats, p: Floats) -> Floats:
    """P(π > p), from `betainc` if 1 − p is exact, or from P(π ≤ p) if that is far from 1.

    `betainc` is ten times faster than `betaincc`.
    """
    a, b, p = np.broadcast_arrays(a, b, p)
    exact = p >= 0.5
    result = np.empty(p.shape)
    result[exact] = special.betainc(b[exact], a[exact], 1.0 - p[exact])
    result[~exact] = 1.0 - _ordinary_lower(a[~exact], b[~exact], p[~exact])
    small = ~exact & (result < _SMALL_TAIL)
    result[small] = special.betaincc(a[small], b[small], p[small])
    return result


def _ordinary_quantile(a: Floats, b: Floats, q: Floats) -> Floats:
    """SciPy's function, except for points and probabilities near 0, where it fails.

    The median of equal shapes is 1/2, of which SciPy's is up to 1.5e-8 off.
    """
    p = np.asarray(special.betaincinv(a, b, q))
    p = np.where((a == b) & (q == 0.5), 0.5, p)
    redo = ((p < _TINY) | (q < 1e-12)) & (q > 0.0)
    if redo.any():
        p[redo] = _bisected(*(values[redo] for values in np.broadcast_arrays(a, b, q)))
    return p


def _bisected(a: Floats, b: Floats, q: Floats) -> Floats:
    """Bisect the float64 numbers in [0, 1], which are ordered like their bits."""
    low, high = np.zeros_like(q).view(np.int64), np.ones_like(q).view(np.int64)
    for _ in range(62):
        middle = (low + high) // 2
        below = _ordinary_lower(a, b, middle.view(np.float64)) < q
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low.view(np.float64)


def _lopsided_lower(a: Floats, b: Floats, p: Floats) -> Floats:
    """P(π ≤ p) with one huge shape: β π, or α (1 − π), is then a Gamma variate."""
    tails = special.gammainc(a, b * p), special.gammaincc(b, a * (1.0 - p))
    return np.asarray(np.where(a < b, *tails))


def _lopsided_upper(a: Floats, b: Floats, p: Floats) -> Floats:
    tails = special.gammaincc(a, b * p), special.gammainc(b, a * (1.0 - p))
    return np.asarray(np.where(a < b, *tails))


def _lopsided_quantile(a: Floats, b: Floats, q: Floats) -> Floats:
    small, huge = np.minimum(a, b), np.maximum(a, b)
    near_one = 1.0 - special.gammainccinv(small, q) / huge
    return np.asarray(np.where(a < b, special.gammaincinv(small, q) / huge, near_one))


def _density(a: Floats, b: Floats, p: Floats) -> Floats:
    inner = (p > 0.0) & (p < 1.0)
    result = np.where(p > 0.5, _density_at_zero(b, a), _density_at_zero(a, b))
    result[inner] = _inner_density(a[inner], b[inner], p[inner])
    return result


def _inner_density(a: Floats, b: Floats, p: Floats) -> Floats:
    smaller = np.minimum(a, b)
    a, b = _moderate(a, b)
    # Huge shapes scale the peak by their square root; minute ones scale the density directly.
    factor = smaller / np.minimum(a, b)
    with np.errstate(over="ignore"):  # the density is unbounded for a shape below 1
        logs = log_kernel(a, b, p, excess_of(a, b, p)) - np.log(p) - np.log1p(-p)
        return np.asarray(np.exp(logs) * np.where(factor > 1.0, np.sqrt(factor), factor))


def _density_at_zero(a: Floats, b: Floats) -> Floats:
    """Limit of the density at 0: infinite, β, or 0 for α below, at, or above 1."""
    return np.select([a < 1.0, a == 1.0], [np.inf, b], 0.0)


class _Formulas(NamedTuple):
    """Formulas for one quantity, by the size of the shapes."""

    ordinary: Formula
    large: Formula
    lopsided: Formula


_LOWER = _Formulas(_ordinary_lower, large_lower, _lopsided_lower)
_UPPER = _Formulas(_ordinary_upper, large_upper, _lopsided_upper)
_QUANTILE = _Formulas(_ordinary_quantile, large_quantile, _lopsided_quantile)
