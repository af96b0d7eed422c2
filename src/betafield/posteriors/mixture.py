"""Mixtures of Betas: what is believed when several explanations of the trials remain.

Sums over components are sums of non-negative terms, so nothing cancels; what takes care is the
quantile, which has no closed form. It is solved for in log-odds u = log(π/(1−π)) on the logarithm
of the smaller tail T(u), by Halley's steps kept inside a bracket. With κ_k = p^α (1−p)^β / B(α, β)
the density of component k in log-odds, the derivatives are sums too: T' = ± Σ w_k κ_k and
T'' = ± Σ w_k κ_k (α_k − (α_k + β_k) p).
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
    Posterior,
    Rows,
    by_pair,
    checked_shapes,
    floats,
    refuse,
)
from betafield.posteriors.beta import Beta

# Components held at a time: some tens of megabytes, whatever the numbers of rows and of points.
_BLOCK = 1 << 18
# A step this near to the root, in the error's own units, triples its digits to all there are.
_NEAR = 1e-5
# Components below this share of the tail sought cannot move a quantile.
_NEGLIGIBLE = 1e-20
# Halving [0, 1] in log-odds down to neighbouring floats takes 60 steps; Halley's take 4 or 5.
_MOST_STEPS = 200


class Mixture(Posterior):
    """Mixtures of Beta distributions, one a row.

    Row i has density Σ_k w_k p^(α_k−1) (1−p)^(β_k−1) / B(α_k, β_k) on [0, 1]. With m_k and v_k the
    components' means and variances, the mean is m = Σ w_k m_k and the variance
    Σ w_k (v_k + (m_k − m)²).

    Parameters
    ----------
    log_weights : array-like that broadcasts to (m, k)
        Logarithms of the weights, up to a constant a row; −inf for an absent component. Kept
        normalised: Σ_k w_k = 1.
    alpha, beta : array-like that broadcasts to (m, k)
        The shapes α_k and β_k: positive, finite.

    Examples
    --------
    A uniform prior after one success that had an even chance of being a guess:

    >>> import numpy as np
    >>> from betafield.posteriors.mixture import Mixture
    >>> post = Mixture(np.log([[0.5, 1.0]]), alpha=[1.0, 2.0], beta=[2.0, 1.0])
    >>> post
    <Mixture, shape 1, means from 0.556 to 0.556>
    >>> post.prob_above(0.5).round(6)
    array([0.583333])
    >>> low, high = post.interval(0.9)
    >>> print(low.round(4), high.round(4))
    [0.0724] [0.9621]
    """

    def __init__(
        self, log_weights: npt.ArrayLike, alpha: npt.ArrayLike, beta: npt.ArrayLike
    ) -> None:
        arrays = (
            checked_log_weights(log_weights),
            checked_shapes("alpha", alpha, np.ndim(alpha)),
            checked_shapes("beta", beta, np.ndim(beta)),
        )
        log_weights, self.alpha, self.beta = _broadcast(*arrays)
        self.log_weights = normalised(log_weights)

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,): one distribution a row."""
        return self.log_weights.shape[:1]

    def mean(self) -> Floats:
        """Σ w_k m_k."""
        return np.asarray((self._weights() * self._means()).sum(axis=1))

    def var(self) -> Floats:
        """Σ w_k (v_k + (m_k − m)²): of terms that are not negative."""
        means, total = self._means(), self.alpha + self.beta
        within = means * (self.beta / total) / (total + 1.0)
        between = (means - self.mean()[:, None]) ** 2
        return np.asarray((self._weights() * (within + between)).sum(axis=1))

    def _weights(self) -> Floats:
        return np.exp(self.log_weights)

    def _means(self) -> Floats:
        return self.alpha / (self.alpha + self.beta)

    def _pdf(self, p: Floats) -> Floats:
        return self._by_pair(_density, p)

    def _cdf(self, p: Floats) -> Floats:
        return self._by_pair(_lower, p)

    def _above(self, p: Floats) -> Floats:
        return self._by_pair(_upper, p)

    def _ppf(self, q: Floats) -> Floats:
        return self._by_pair(_quantile, q)

    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        chosen = self._by_pair(_component, rng.uniform(size=size)).astype(np.intp)
        rows = np.broadcast_to(np.arange(len(self)), size)
        return rng.beta(self.alpha[rows, chosen], self.beta[rows, chosen])

    def _take(self, rows: Rows) -> Self:
        taken = copy(self)  # and not a new one: weights normalised twice are not the same bits
        taken.log_weights = self.log_weights[rows]
        taken.alpha, taken.beta = self.alpha[rows], self.beta[rows]
        return taken

    def _by_pair(self, formula: "Formula", values: Floats) -> Floats:
        return by_pair(self, formula, values, _BLOCK // self.log_weights.shape[1])


# Takes a mixture of m rows and m values.
Formula = Callable[[Mixture, Floats], Floats]


def checked_log_weights(values: npt.ArrayLike) -> Floats:
    """Return logarithms of weights, numbers or −inf."""
    array = floats("log_weights", values)
    refuse("log_weights", array, ~(array < np.inf), "must be a number below infinity, or -inf")
    return array


def _broadcast(log_weights: Floats, alpha: Floats, beta: Floats) -> tuple[Floats, Floats, Floats]:
    shapes = log_weights.shape, alpha.shape, beta.shape
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        shape = ()
    if len(shape) != 2 or not shape[1]:
        raise ValueError(
            "log_weights, alpha and beta have the shapes {}, {} and {}; they must broadcast to "
            "(m, k), k components in each of m rows".format(*shapes)
        )
    first, second, third = (np.broadcast_to(a, shape) for a in (log_weights, alpha, beta))
    return first, second, third


def normalised(log_weights: Floats) -> Floats:
    """Shift the rows (m, k) of log-weights so that the weights of each add up to 1."""
    largest = log_weights.max(axis=1, keepdims=True)
    if (largest == -np.inf).any():
        row = int(np.argmax(largest == -np.inf))
        raise ValueError(f"log_weights row {row}: all are -inf; one at least must be finite")
    shifted = log_weights - largest
    result = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    result.flags.writeable = False
    return np.asarray(result)


# Sums over components ----------------------------------------------------------------------


def _terms(mixture: Mixture, formula: Callable[[Beta, Floats], Floats], p: Floats) -> Floats:
    """w_k times the formula of component k, (m, k); a component without weight costs nothing."""
    weights = mixture._weights()
    present = weights > 0.0
    components = Beta(mixture.alpha[present], mixture.beta[present])
    terms = np.zeros(weights.shape)
    points = np.broadcast_to(p[:, None], weights.shape)[present]
    terms[present] = weights[present] * formula(components, points)
    return terms


def _density(mixture: Mixture, p: Floats) -> Floats:
    return np.asarray(_terms(mixture, Beta.pdf, p).sum(axis=1))


def _lower(mixture: Mixture, p: Floats) -> Floats:
    return np.asarray(_terms(mixture, Beta.cdf, p).sum(axis=1).clip(max=1.0))


def _upper(mixture: Mixture, p: Floats) -> Floats:
    return np.asarray(_terms(mixture, Beta.prob_above, p).sum(axis=1).clip(max=1.0))


def _component(mixture: Mixture, uniform: Floats) -> Floats:
    return component_at(mixture._weights(), uniform).astype(np.float64)


def component_at(weights: Floats, uniform: Floats) -> Rows:
    """Index of the component at which the weights add up to more than a uniform number."""
    heights = weights.cumsum(axis=-1)
    levels = uniform[..., None] * heights[..., -1:]
    return np.asarray((heights <= levels).sum(axis=-1))


# Quantiles ---------------------------------------------------------------------------------


class _Search(NamedTuple):
    """Points, and the brackets around the quantiles: low < quantile ≤ high."""

    p: Floats
    low: Floats
    high: Floats


def _quantile(mixture: Mixture, q: Floats) -> Floats:
    result = np.where(q == 1.0, 1.0, 0.0)
    open_rows = np.flatnonzero((q > 0.0) & (q < 1.0))
    mixture, q = _without_negligible(mixture._take(open_rows), q[open_rows]), q[open_rows]
    search = _start(mixture, q)
    for _ in range(_MOST_STEPS):
        search, settled = _advance(mixture, q, search)
        result[open_rows] = search.p
        left = np.flatnonzero(~settled)
        if not left.size:
            break
        mixture, q, open_rows = mixture._take(left), q[left], open_rows[left]
        search = _Search(*(values[left] for values in search))
    return result


def _without_negligible(mixture: Mixture, q: Floats) -> Mixture:
    taken = copy(mixture)
    least = np.log(np.minimum(q, 1.0 - q)[:, None]) + np.log(_NEGLIGIBLE)
    taken.log_weights = np.where(mixture.log_weights < least, -np.inf, mixture.log_weights)
    return taken


def _start(mixture: Mixture, q: Floats) -> _Search:
    """Cantelli's inequality brackets a quantile; the Beta of the same moments guesses it."""
    mean, std = mixture.mean(), mixture.std()
    low = np.maximum(mean - std * np.sqrt((1.0 - q) / q) - _MARGIN, 0.0)
    high = np.minimum(mean + std * np.sqrt(q / (1.0 - q)) + _MARGIN, 1.0)
    guess = _same_moments(mean, std).ppf(q)
    return _Search(np.where((guess > low) & (guess < high), guess, _middle(low, high)), low, high)


# The bracket must hold in spite of the moments' rounding.
_MARGIN = 1e-12


def _same_moments(mean: Floats, std: Floats) -> Beta:
    with np.errstate(divide="ignore", over="ignore"):
        size = np.clip(mean * (1.0 - mean) / std**2 - 1.0, 1e-3, 1e15)
    return Beta(np.maximum(mean * size, 1e-3), np.maximum((1.0 - mean) * size, 1e-3))


def _middle(low: Floats, high: Floats) -> Floats:
    """Return the point halfway in log-odds, or in p where log-odds are too coarse."""
    ends = special.logit(np.maximum(low, _SMALLEST)), special.logit(np.minimum(high, _LARGEST))
    point = special.expit(0.5 * (ends[0] + ends[1]))
    return np.where((point > low) & (point < high), point, low + 0.5 * (high - low))


_SMALLEST, _LARGEST = 5e-324, 1.0 - 2.0**-53


def _advance(mixture: Mixture, q: Floats, search: _Search) -> tuple[_Search, npt.NDArray[np.bool_]]:
    """One step of every search, and which of them are at their quantile now."""
    p = search.p
    error, step, curvature = _halley(mixture, q, p)
    low, high = np.where(error < 0.0, p, search.low), np.where(error < 0.0, search.high, p)
    target = _moved(p, step)
    near = (np.abs(error) < _NEAR) & (np.abs(curvature) < _NEAR)
    narrow = np.nextafter(low, 1.0) >= high
    # Beyond a curvature of 1, as between two modes, the step says nothing about the quantile.
    inside = (np.abs(curvature) < 1.0) & (target > low) & (target < high)
    moved = np.where(near, target.clip(low, high), np.where(inside, target, _middle(low, high)))
    settled = near | narrow | (error == 0.0)
    p = np.select([error == 0.0, narrow], [p, high], moved)
    return _Search(p, low, high), settled


def _halley(mixture: Mixture, q: Floats, p: Floats) -> tuple[Floats, Floats, Floats]:
    """Error of the log tail, which grows with p; Halley's step; and error · second / first²."""
    lower = q <= 0.5
    tail = np.empty_like(p)
    for formula, rows in ((_lower, np.flatnonzero(lower)), (_upper, np.flatnonzero(~lower))):
        tail[rows] = formula(mixture._take(rows), p[rows])
    kernel = _terms(mixture, Beta.pdf, p) * (p * (1.0 - p))[:, None]
    with np.errstate(all="ignore"):  # an empty tail gives no step: the bracket is halved instead
        error = np.where(lower, np.log(tail / q), np.log((1.0 - q) / tail))
        first = kernel.sum(axis=1) / tail
        slopes = kernel * (mixture.alpha - (mixture.alpha + mixture.beta) * p[:, None])
        second = slopes.sum(axis=1) / tail + np.where(lower, -first, first) * first
        curvature = error * second / first**2
        return error, -error / first / np.maximum(1.0 - 0.5 * curvature, 0.5), curvature


def _moved(p: Floats, step: Floats) -> Floats:
    """Return the point at distance `step` from p in log-odds."""
    with np.errstate(all="ignore"):
        e = np.expm1(step)
        return np.asarray(p + p * (1.0 - p) * e / (1.0 + p * e))
