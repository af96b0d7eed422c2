"""Posteriors of a success probability whose log-odds are normal, as in a Gaussian process.

Tails, quantiles and draws are those of the normal distribution. Moments have no closed form, and
are sums over equally spaced nodes: for integrands that are analytic around the real line and vanish
at both ends, such sums have an error of e^(−2πy/h), where h is the step and y the distance to the
nearest singularity. Those of the logistic function are at ±iπ.

- v ≤ 1: over z = (f − m)/√v, which keeps poles π or more away. The summand is the difference
  D = expit(f) − expit(m), formed without cancellation, so that a spread of 1e-6 keeps its digits.
- v > 1: over log-odds, after integration by parts: with Φ the normal cdf,

      E[π^k] = ∫ (d/du expit(u)^k) Φ((m − u)/√v) du,

  where Φ is smooth and the other factor falls as e^(−|u|), however wide the distribution of f is.
"""

from collections.abc import Callable
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy import special

from betafield import checks
from betafield.posteriors.base import Floats, Generator, Posterior, Rows, blocks

Moments = tuple[Floats, Floats]

# Step of all sums: e^(−2π²/h) is 4e-22, and normal densities at the poles add a factor below e^5.
_STEP = 0.4
# Nodes for v ≤ 1. D² grows like e^(2√v z), which shifts the normal density by 2 to the right.
_Z = np.arange(-12.0, 12.0 + _STEP, _STEP)
_WEIGHTS = _STEP * np.exp(-0.5 * _Z * _Z) / np.sqrt(2.0 * np.pi)
# The integrand for v > 1 is left out where it is e^(−42) or less of its integral.
_NEGLIGIBLE = 42.0
# Log-odds at which a probability underflows to 0.
_ZERO = -750.0
# The most numbers held at a time.
_BLOCK = 1 << 20


class LogitNormal(Posterior):
    """Distributions of π = expit(f) with f ~ N(m, v), one per row.

    Row i has P(π ≤ p) = Φ((logit(p) − m)/√v), with Φ the normal cdf; its median is expit(m).
    Mean and variance have a relative error of about 1e-12 for variances from 1e-12 to 1e4.

    Parameters
    ----------
    mean : array-like of shape (m,)
        Mean of the log-odds f; finite.
    variance : array-like of shape (m,)
        Variance of the log-odds f; positive and finite.

    Examples
    --------
    >>> from betafield.baselines import LogitNormal
    >>> post = LogitNormal(mean=[0.0, 2.0], variance=[1.0, 0.25])
    >>> post.mean().round(4)
    array([0.5  , 0.871])
    >>> post.prob_above(0.5).round(4)
    array([0.5, 1. ])
    >>> low, high = post.interval(0.95)
    >>> print(low.round(3), high.round(3))
    [0.123 0.735] [0.877 0.952]
    """

    def __init__(self, mean: npt.ArrayLike, variance: npt.ArrayLike) -> None:
        # `mean` is already a method of all posteriors, hence the longer names.
        self.log_odds_mean = _checked("mean", mean)
        self.log_odds_variance = _checked("variance", variance)
        variance = self.log_odds_variance
        checks.require_all(variance > 0.0, "variance", variance, "it must be > 0")
        if self.log_odds_mean.shape != self.log_odds_variance.shape:
            raise ValueError(
                f"mean has {len(self.log_odds_mean)} rows and variance has "
                f"{len(self.log_odds_variance)}; they must have the same number"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,): one distribution per row."""
        return self.log_odds_mean.shape

    def mean(self) -> Floats:
        """E[expit(f)]."""
        return self._moments()[0]

    def var(self) -> Floats:
        """E[(expit(f) − E[expit(f)])²]."""
        return self._moments()[1]

    @property
    def _spread(self) -> Floats:
        return np.sqrt(self.log_odds_variance)

    def _moments(self) -> Moments:
        # By symmetry with −f; for m ≤ 0 the digits of small probabilities are kept.
        m, s = -np.abs(self.log_odds_mean), self._spread
        mean, var = np.empty((2, *self.shape))
        for formula, rows in ((_narrow, s <= 1.0), (_wide, s > 1.0)):
            mean[rows], var[rows] = formula(m[rows], s[rows])
        mean = np.select([m == 0.0, self.log_odds_mean > 0.0], [0.5, 1.0 - mean], mean)
        return mean, var

    def _standardized(self, p: Floats) -> Floats:
        return np.asarray((special.logit(p) - self.log_odds_mean) / self._spread)

    def _pdf(self, p: Floats) -> Floats:
        inner = (p > 0.0) & (p < 1.0)
        inside = np.where(inner, p, 0.5)
        z, s = self._standardized(inside), self._spread
        # A single exponential, because 1/p alone may overflow where the product does not.
        log_density = -0.5 * z * z - np.log(inside) - np.log1p(-inside)
        with np.errstate(over="ignore"):
            density = np.exp(log_density) / (s * np.sqrt(2.0 * np.pi))
        return np.where(inner, density, 0.0)

    def _cdf(self, p: Floats) -> Floats:
        return np.asarray(special.ndtr(self._standardized(p)))

    def _above(self, p: Floats) -> Floats:
        return np.asarray(special.ndtr(-self._standardized(p)))

    def _ppf(self, q: Floats) -> Floats:
        return self._probability(special.ndtri(q))

    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        return self._probability(rng.standard_normal(size))

    def _probability(self, z: Floats) -> Floats:
        return np.asarray(special.expit(self.log_odds_mean + self._spread * z))

    def _take(self, rows: Rows) -> Self:
        return type(self)(self.log_odds_mean[rows], self.log_odds_variance[rows])


def _checked(name: str, values: npt.ArrayLike) -> Floats:
    """Return a read-only copy of a column of finite numbers."""
    array = checks.finite(
        name, values, "it must be finite", (None,), "one dimension is needed"
    ).copy()
    array.flags.writeable = False
    return array


# Moments for m ≤ 0 and standard deviations s -------------------------------------------------


def _narrow(m: Floats, s: Floats) -> Moments:
    """Sum D and D² over z. Little cancels, as |E[D]|, from median to mean, is below √Var."""
    return _in_blocks(_narrow_block, m, s, len(_Z))


def _narrow_block(m: Floats, s: Floats) -> Moments:
    step = s[:, None] * _Z
    difference = -special.expit(m[:, None] + step) * special.expit(-m)[:, None] * np.expm1(-step)
    first, second = difference @ _WEIGHTS, difference**2 @ _WEIGHTS
    return special.expit(m) + first, second - first**2


def _wide(m: Floats, s: Floats) -> Moments:
    """Sum E[π] and E[π²] over log-odds; they differ enough if s > 1 and m ≤ 0."""
    low, high = _reach(m, s)
    longest = int(np.ceil((high - low).max(initial=0.0) / _STEP)) + 2
    return _in_blocks(lambda m, s: _wide_block(m, s, longest), m, s, longest)


def _wide_block(m: Floats, s: Floats, nodes: int) -> Moments:
    low, high = _reach(m, s)
    step = (high - low) / (nodes - 1)
    u = low[:, None] + step[:, None] * np.arange(nodes)
    p = special.expit(u)
    masses = p * special.expit(-u) * special.ndtr((m[:, None] - u) / s[:, None]) * step[:, None]
    mean = masses.sum(axis=1)
    return mean, 2.0 * (p * masses).sum(axis=1) - mean**2


def _reach(m: Floats, s: Floats) -> Moments:
    """Return the log-odds between which the integrands are not negligible.

    Below m they are less than e^u, whereas E[π] is at least of the order of e^m. Above 0 they fall
    as e^(−u), and below 0 like a normal density about m + 2v.
    """
    low = m - _NEGLIGIBLE
    high = np.minimum(0.0, m + 2.0 * s * s + 10.0 * s) + _NEGLIGIBLE
    return low.clip(min=_ZERO), high.clip(min=_ZERO)


def _in_blocks(
    formula: Callable[[Floats, Floats], Moments], m: Floats, s: Floats, nodes: int
) -> Moments:
    mean, var = np.empty((2, len(m)))
    for rows in blocks(len(m), _BLOCK // nodes):
        mean[rows], var[rows] = formula(m[rows], s[rows])
    return mean, var
