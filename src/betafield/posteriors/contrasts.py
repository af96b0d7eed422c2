"""Posteriors of contrasts between two averages: their difference and their odds ratio.

The log-odds (f₁, f₂) of the two are jointly normal, per component of a mixture. With η their mean
and δ = f₁ − f₂, the difference π₁ − π₂ = sinh(δ/2)/(cosh η + cosh(δ/2)) increases with δ, and

    P(π₁ − π₂ ≤ t) = E_η P(δ ≤ 2 log y | η),   y = (t cosh η + √(t² cosh² η + 1 − t²))/(1 − t),

by Gauss–Hermite quadrature over η; at t = 0 it is P(δ ≤ 0). The odds ratio is e^δ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
from scipy.special import ndtr

from betafield.posteriors.base import Floats, Generator, Posterior, Rows

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
# Largest number of bisection steps per quantile.
STEPS = 200
# Bound of |η| and |δ|.
MOST = 300.0


class Pair(NamedTuple):
    """Mixed normal laws of the log-odds (f₁, f₂): weights (c,), centres (c, 2), covariances."""

    weights: Floats
    centres: Floats
    covariances: Floats

    @property
    def delta(self) -> tuple[Floats, Floats]:
        """Mean and variance of δ."""
        (_, _), (a, b, c) = self.centres.T, self._entries
        return self.centres[:, 0] - self.centres[:, 1], np.maximum(a + b - 2.0 * c, 0.0)

    @property
    def eta(self) -> tuple[Floats, Floats]:
        """Mean and variance of η."""
        a, b, c = self._entries
        return self.centres.mean(axis=1), np.maximum(0.25 * (a + b + 2.0 * c), 0.0)

    @property
    def across(self) -> Floats:
        """Covariance of η and δ."""
        a, b, _ = self._entries
        return 0.5 * (a - b)

    @property
    def _entries(self) -> tuple[Floats, Floats, Floats]:
        C = self.covariances
        return C[:, 0, 0], C[:, 1, 1], C[:, 0, 1]


class _OfPair(Posterior):
    """What both contrasts share: one row, and the law of δ given η."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair

    @property
    def shape(self) -> tuple[int, ...]:
        """(1,): one distribution."""
        return (1,)

    def median(self) -> Floats:
        """Return the value that is exceeded with probability ½."""
        return self.ppf(0.5)

    def _each(self, formula: Callable[[Floats], Floats], values: Floats) -> Floats:
        """Apply a formula to values; a single value becomes a row."""
        return formula(values if values.ndim else values[None])

    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        count = int(np.prod(size))
        reached = np.cumsum(self.pair.weights)
        which = np.searchsorted(reached, rng.random(count) * reached[-1], side="right")
        which = np.minimum(which, len(reached) - 1)
        z = rng.standard_normal((count, 2))
        (d, dv), (e, ev), across = self.pair.delta, self.pair.eta, self.pair.across
        slope = np.divide(across, ev, out=np.zeros_like(ev), where=ev > 0.0)
        left = np.sqrt(np.maximum(dv - slope * across, 0.0))
        eta = e[which] + np.sqrt(ev)[which] * z[:, 0]
        delta = d[which] + slope[which] * (eta - e[which]) + left[which] * z[:, 1]
        return self._value(eta, delta).reshape(size)

    def _value(self, eta: Floats, delta: Floats) -> Floats:
        raise NotImplementedError

    def _take(self, rows: Rows) -> Self:
        if len(rows) != 1:
            raise IndexError(f"index: found {len(rows)} rows; a contrast has only one")
        return self

    def _ppf(self, q: Floats) -> Floats:
        """Return quantiles, by bisection."""
        low, high = (np.full(q.shape, end) for end in self._ends)
        for _ in range(STEPS):
            middle = 0.5 * (low + high)
            below = self._reached(middle) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
            if np.all(high - low <= 4e-16 * np.maximum(np.abs(low), 1e-3)):
                break
        ends = self.support
        found = self._outer(0.5 * (low + high))
        return np.where(q <= 0.0, ends[0], np.where(q >= 1.0, ends[1], found))

    @property
    def _ends(self) -> tuple[float, float]:
        raise NotImplementedError

    def _reached(self, inner: Floats) -> Floats:
        raise NotImplementedError

    def _outer(self, inner: Floats) -> Floats:
        raise NotImplementedError


class Difference(_OfPair):
    """Distribution of π₁ − π₂, within [−1, 1].

    Parameters
    ----------
    pair : Pair
        Joint laws of the log-odds of π₁ and π₂.
    mean, var : float
        Mean and variance of the difference, which are computed separately.

    Examples
    --------
    >>> import numpy as np
    >>> one = Pair(np.ones(1), np.array([[1.0, 0.0]]), np.diag([0.04, 0.04])[None])
    >>> post = Difference(one, 0.23, 0.004)
    >>> post.prob_above(0.0).round(4), post.odds_ratio().median().round(2)
    (array([0.9998]), array([2.72]))
    """

    support = (-1.0, 1.0)

    def __init__(self, pair: Pair, mean: float, var: float) -> None:
        super().__init__(pair)
        self._mean, self._var = float(mean), float(var)

    def odds_ratio(self) -> OddsRatio:
        """Return the posterior of π₁/(1 − π₁) over π₂/(1 − π₂)."""
        return OddsRatio(self.pair)

    def mean(self) -> Floats:
        """E[π₁ − π₂]."""
        return np.array([self._mean])

    def var(self) -> Floats:
        """Var[π₁ − π₂]."""
        return np.array([self._var])

    def _cdf(self, p: Floats) -> Floats:
        return self._tail(p, 1.0)

    def _above(self, p: Floats) -> Floats:
        return self._tail(p, -1.0)

    def _tail(self, p: Floats, sign: float) -> Floats:
        """Return P(π₁ − π₂ ≤ p), or P(> p)."""
        total = np.zeros(p.shape)
        t = np.clip(p, -1.0 + 1e-15, 1.0 - 1e-15)
        for weight, eta, centre, s in self._given():
            ch = np.cosh(np.clip(eta, -MOST, MOST))
            # For t < 0 the sum would cancel, so y(−t) = 1/y(t) is used.
            size = np.abs(t)
            y = (size * ch + np.sqrt((size * ch) ** 2 + 1.0 - t**2)) / (1.0 - size)
            edge = np.copysign(2.0 * np.log(y), t)
            total += weight * _share(edge, centre, s, sign)
        ends = (0.0, 1.0) if sign > 0.0 else (1.0, 0.0)
        return np.where(p <= -1.0, ends[0], np.where(p >= 1.0, ends[1], total))

    def _pdf(self, p: Floats) -> Floats:
        """Return the density, by numerical differentiation of the cdf."""
        h = 1e-4 * np.sqrt(self._var) + 1e-12
        return np.asarray((self._tail(p + h, 1.0) - self._tail(p - h, 1.0)) / (2.0 * h))

    def _given(self) -> list[tuple[float, float, float, float]]:
        """Return weights, η, and mean and standard deviation of δ given η, at all nodes."""
        (d, dv), (e, ev), across, found = self.pair.delta, self.pair.eta, self.pair.across, []
        for k, weight in enumerate(self.pair.weights):
            slope = across[k] / ev[k] if ev[k] > 0.0 else 0.0
            left = np.sqrt(max(dv[k] - slope * across[k], 0.0))
            for node, share in zip(NODES, WEIGHTS, strict=True):
                step = np.sqrt(ev[k]) * node
                found.append((weight * share, e[k] + step, d[k] + slope * step, left))
        return found

    def _value(self, eta: Floats, delta: Floats) -> Floats:
        return np.asarray(np.sinh(0.5 * delta) / (np.cosh(eta) + np.cosh(0.5 * delta)))

    @property
    def _ends(self) -> tuple[float, float]:
        return -1.0, 1.0

    def _reached(self, inner: Floats) -> Floats:
        return self._cdf(inner)

    def _outer(self, inner: Floats) -> Floats:
        return inner


class OddsRatio(_OfPair):
    """Distribution of an odds ratio e^δ, where δ is a mixture of normals.

    Parameters
    ----------
    pair : Pair
        Joint laws of the log-odds of π₁ and π₂.
    """

    support = (0.0, np.inf)

    def mean(self) -> Floats:
        """E[e^δ]; the median is the more usual summary."""
        d, v = self.pair.delta
        return np.array([(self.pair.weights * np.exp(d + 0.5 * v)).sum()])

    def var(self) -> Floats:
        """Var[e^δ]."""
        d, v = self.pair.delta
        square = (self.pair.weights * np.exp(2.0 * d + 2.0 * v)).sum()
        return np.asarray(square - self.mean() ** 2)

    def _cdf(self, p: Floats) -> Floats:
        return self._of_log(p, 1.0)

    def _above(self, p: Floats) -> Floats:
        return self._of_log(p, -1.0)

    def _of_log(self, p: Floats, sign: float) -> Floats:
        with np.errstate(divide="ignore"):
            return self._tail(np.log(p), sign)

    def _tail(self, delta: Floats, sign: float) -> Floats:
        total = np.zeros(delta.shape)
        for weight, d, v in zip(self.pair.weights, *self.pair.delta, strict=True):
            total += weight * _share(delta, d, np.sqrt(v), sign)
        return total

    def _pdf(self, p: Floats) -> Floats:
        total, inner = np.zeros(p.shape), (p > 0.0) & np.isfinite(p)
        at = np.log(np.where(inner, p, 1.0))
        for weight, d, v in zip(self.pair.weights, *self.pair.delta, strict=True):
            s = max(np.sqrt(v), 1e-300)
            total += weight * np.exp(-0.5 * ((at - d) / s) ** 2) / (s * np.sqrt(2.0 * np.pi))
        return np.where(inner, total / np.where(inner, p, 1.0), 0.0)

    def _value(self, eta: Floats, delta: Floats) -> Floats:
        return np.asarray(np.exp(delta + 0.0 * eta))

    @property
    def _ends(self) -> tuple[float, float]:
        return -2.0 * MOST, 2.0 * MOST

    def _reached(self, inner: Floats) -> Floats:
        return self._tail(inner, 1.0)

    def _outer(self, inner: Floats) -> Floats:
        return np.exp(inner)


def _share(delta: Floats, centre: float, s: float, sign: float) -> Floats:
    """Return P(at most δ), or P(more than δ) if the sign is negative; s may be 0."""
    if s > 0.0:
        return np.asarray(ndtr(sign * (delta - centre) / s))
    return np.where((delta >= centre) == (sign > 0.0), 1.0, 0.0)
