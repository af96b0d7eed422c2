"""Posteriors of the success probability under a context: `post.under(context)`.

A context (see `betafield.contexts`) makes the success probability a polynomial of π,

    f(π) = Σ_k b_k binom(p, k) π^k (1−π)^(p−k),

so the posterior of π determines that of f(π). Only the public methods of the posterior of π are
used, so any kind of posterior can be put under any context.

- `Affine`, p ≤ 1: everything follows from the posterior of π by a monotone map.
- `Polynomial`, p ≥ 2: [0, 1] is divided where f turns. On each piece f is monotone, so
  {π: f(π) ≤ q} is a union of intervals that end at turns and at solutions of f(π) = q.
"""

from collections.abc import Callable
from copy import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import special

from betafield import contexts
from betafield._locks import cached
from betafield.bernstein import PLAIN, composed, derivative, value_at_log_odds
from betafield.posteriors.base import (
    Floats,
    Generator,
    Moments,
    Posterior,
    Rows,
    blocks,
    by_pair,
    makes_under,
)
from betafield.posteriors.polynomials import Pieces, crossings, monotone_pieces
from betafield.posteriors.quantiles import solved_quantiles

# Largest size of a plain list that is read as one context; longer ones are more likely one number
# per row.
_MOST_PLAIN = 32

Bools = npt.NDArray[np.bool_]


@makes_under
def put_under(post: Posterior, context: Any) -> Posterior:
    """Return the posterior of the success probability under a context; see `Posterior.under`."""
    coefficients = one_per_row(post, context)
    if not contexts.is_affine(coefficients).all():
        return Polynomial(post, coefficients)
    ends = coefficients[:, [0, -1]]
    if (ends == PLAIN).all():
        return post
    return Affine(post, ends)


def one_per_row(post: Posterior, context: Any) -> Floats:
    """Return the validated coefficients of a context for every row."""
    if len(post.shape) != 1:
        raise ValueError(
            f"context: the posterior has {post.shape[-1]} classes; contexts need two, success and "
            "failure, such as one class and all others, marginal(k)"
        )
    values = contexts.checked(context)
    rule = f"one context (p + 1,) or (1, p + 1) for all rows, or one per row ({len(post)}, p + 1)"
    if values.ndim > 2 or (values.ndim == 2 and len(values) not in (1, len(post))):
        raise ValueError(f"context: found shape {values.shape}; {rule} is needed")
    if values.ndim == 1 and len(values) > _MOST_PLAIN:
        raise ValueError(
            f"context: found {len(values)} numbers; one context of as many coefficients for all "
            f"rows is (1, {len(values)}), and {len(values)} affine contexts are ({len(values)}, 2)"
        )
    return np.broadcast_to(values, (len(post), values.shape[-1]))


class _Under(Posterior):
    """What `Affine` and `Polynomial` share: a posterior of π and one context per row."""

    def __init__(self, base: Posterior, coefficients: Floats) -> None:
        self.base, self.coefficients = base, coefficients

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,): one distribution per row."""
        return self.base.shape

    def under(self, context: Any) -> Posterior:
        """Return the distribution under a second context, which is again a polynomial of π."""
        outer = one_per_row(self, context)
        return put_under(self.base, composed(outer, self.coefficients))

    def polynomial_moments(self, coefficients: Floats) -> Moments:
        """Return E and Var of f(g(π)), which is a polynomial of π."""
        return self.base.polynomial_moments(composed(coefficients, self.coefficients))

    def _take(self, rows: Rows) -> Self:
        return type(self)(self.base[rows], self.coefficients[rows])


# Affine contexts ---------------------------------------------------------------------------


class Affine(_Under):
    """Distributions of lo + (hi − lo) π, one per row.

    The mean is lo + (hi − lo) E[π] and the variance (hi − lo)² Var[π]. With t = (q − lo)/(hi − lo),
    P(lo + (hi − lo) π ≤ q) is P(π ≤ t), or P(π > t) if hi < lo reverses the order. If hi = lo, all
    mass is at one point: the cdf is a step, and the density is infinite there and 0 elsewhere.

    Parameters
    ----------
    base : Posterior of shape (m,)
        Posterior of π.
    coefficients : array of shape (m, 2)
        (lo, hi): the success probability if π = 0 and if π = 1.

    Examples
    --------
    >>> from betafield.posteriors import Beta
    >>> rested = Beta(alpha=[4.0, 1.0], beta=[2.0, 1.0])
    >>> tired = rested.under([0.0, 0.5])
    >>> tired
    <Affine, shape 2, means from 0.25 to 0.333>
    >>> tired.prob_above(0.25)
    array([0.8125, 0.5   ])
    """

    @property
    def _low(self) -> Floats:
        return self.coefficients[:, 0]

    @property
    def _high(self) -> Floats:
        return self.coefficients[:, 1]

    @property
    def _gain(self) -> Floats:
        return self._high - self._low

    def mean(self) -> Floats:
        """Lo + (hi − lo) E[π]."""
        return self._stretched(self.base.mean())

    def var(self) -> Floats:
        """(hi − lo)² Var[π]."""
        return np.asarray(self._gain**2 * self.base.var())

    def _pdf(self, p: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            density = self.base.pdf(self._unstretched(p)) / np.abs(self._gain)
        return np.where(self._gain == 0.0, np.where(p == self._low, np.inf, 0.0), density)

    def _cdf(self, p: Floats) -> Floats:
        return self._tail(p, above=False)

    def _above(self, p: Floats) -> Floats:
        return self._tail(p, above=True)

    def _ppf(self, q: Floats) -> Floats:
        # If the order is reversed, a quantile is that of the other tail.
        return self._stretched(self.base.ppf(np.where(self._gain < 0.0, 1.0 - q, q)))

    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        return self._stretched(self.base._draw(size, rng))

    def _stretched(self, p: Floats) -> Floats:
        """Lo + (hi − lo) p, monotone, and equal to lo and hi exactly at the ends."""
        inside = np.where(p == 1.0, self._high, self._low + self._gain * p)
        return inside.clip(np.minimum(self._low, self._high), np.maximum(self._low, self._high))

    def _unstretched(self, p: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray((p - self._low) / np.where(self._gain == 0.0, 1.0, self._gain))

    def _tail(self, p: Floats, above: bool) -> Floats:
        p, turned = np.broadcast_arrays(p, self._gain < 0.0)
        points, step = self._unstretched(p), (p < self._low) == above
        # Compute each tail by the method that keeps its small values; both only if rows need both.
        tails = [
            self.base.prob_above(points) if (turned != above).any() else points,
            self.base.cdf(points) if (turned == above).any() else points,
        ]
        return np.where(self._gain == 0.0, step, np.where(turned != above, *tails))


# Polynomial contexts -----------------------------------------------------------------------


class Polynomial(_Under):
    """Distributions of f(π) = Σ_k b_k binom(p, k) π^k (1−π)^(p−k), one per row.

    P(f(π) ≤ q) is the probability that π lies in one of the intervals where f ≤ q, and the density
    at q is Σ pdf(θ)/|f'(θ)| over the solutions θ of f(θ) = q: infinite at the values where f turns.
    For monotone f, quantiles are f of quantiles; for others they are found by root finding.

    Parameters
    ----------
    base : Posterior of shape (m,)
        Posterior of π.
    coefficients : array of shape (m, p + 1)
        b, within [0, 1].

    Attributes
    ----------
    batch_size : int
        Number of coefficients in memory at once, for any number of rows and points.

    Examples
    --------
    The probability that two independent trials differ, 2π(1−π), with uniform π. It is at most q if
    |2π − 1| ≥ (1 − 2q)^½, with probability 1 − (1 − 2q)^½:

    >>> from betafield.posteriors import Beta
    >>> differ = Beta(alpha=[1.0], beta=[1.0]).under([0.0, 1.0, 0.0])
    >>> differ.cdf([[0.18], [0.32]]).round(12)
    array([[0.2],
           [0.4]])
    >>> differ.ppf(0.4).round(12)
    array([0.32])
    """

    batch_size = 1 << 17

    def __init__(self, base: Posterior, coefficients: Floats) -> None:
        super().__init__(base, coefficients)
        self._pieces = monotone_pieces(coefficients)

    def mean(self) -> Floats:
        """E[f(π)]."""
        return self._moments[0].clip(*self._support())

    def var(self) -> Floats:
        """E[(f(π) − E[f(π)])²]."""
        return self._moments[1].copy()

    @cached
    def _moments(self) -> Moments:
        return self.base.polynomial_moments(self.coefficients)

    def _pdf(self, p: Floats) -> Floats:
        return self._by_pair(_density, p)

    def _cdf(self, p: Floats) -> Floats:
        return self._by_pair(_lower, p)

    def _above(self, p: Floats) -> Floats:
        return self._by_pair(_upper, p)

    def _ppf(self, q: Floats) -> Floats:
        falling, turning = self._directions()
        result = self._curve(self.base.ppf(np.where(falling, 1.0 - q, q)))
        q, turning, rows = np.broadcast_arrays(q, turning, np.arange(len(self)))
        result[turning] = self._take(rows[turning])._by_pair(_solved_quantile, q[turning])
        return result

    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        return self._curve(self.base._draw(size, rng))

    def _take(self, rows: Rows) -> Self:
        other = copy(self)
        other.base, other.coefficients = self.base[rows], self.coefficients[rows]
        other._pieces = Pieces(*(array[rows] for array in self._pieces))
        vars(other).pop("_moments", None)
        return other

    def _curve(self, p: Floats) -> Floats:
        """f(p), clipped to the values that f takes, despite rounding."""
        points, rows = np.broadcast_arrays(special.logit(p), np.arange(len(self)))
        result = np.empty(points.shape)
        for block in blocks(points.size, self._at_a_time()):
            coefficients = self.coefficients[rows.ravel()[block]]
            result.reshape(-1)[block] = value_at_log_odds(coefficients, points.ravel()[block])
        return result.clip(*self._support())

    def _support(self) -> tuple[Floats, Floats]:
        return self._pieces.values.min(axis=1), self._pieces.values.max(axis=1)

    def _directions(self) -> tuple[Bools, Bools]:
        """Which rows have an f that only falls, and which have one that falls and rises."""
        steps = np.diff(self._pieces.values, axis=1)
        falls, rises = np.any(steps < 0.0, axis=1), np.any(steps > 0.0, axis=1)
        return np.asarray(falls & ~rises), np.asarray(falls & rises)

    def _by_pair(self, formula: "Formula", values: Floats) -> Floats:
        return by_pair(self, formula, values, self._at_a_time())

    def _at_a_time(self) -> int:
        return int(self.batch_size // self.coefficients.shape[1])


# Maps a posterior of m rows and m values to m results.
Formula = Callable[[Polynomial, Floats], Floats]


def _density(post: Polynomial, q: Floats) -> Floats:
    left, right, start, end = post._pieces.sides()
    cuts, q = crossings(post._pieces, post.coefficients, q), q[:, None]
    met = (np.minimum(start, end) <= q) & (q <= np.maximum(start, end)) & (left < right)
    density = post.base.pdf(special.expit(cuts).T).T
    slope = np.abs(value_at_log_odds(derivative(post.coefficients)[:, None], cuts))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        terms = np.where(met & (density > 0.0), density / slope, 0.0)
    # A constant f has all its mass at one value, whatever the density at the cut.
    return np.asarray(np.where(met & (start == end), np.inf, terms).sum(axis=1))


def _lower(post: Polynomial, q: Floats) -> Floats:
    return _tail(post, q, above=False)


def _upper(post: Polynomial, q: Floats) -> Floats:
    return _tail(post, q, above=True)


def _tail(post: Polynomial, q: Floats, above: bool) -> Floats:
    """P(f(π) ≤ q) or P(f(π) > q): the mass before or after the cut in every piece."""
    left, right, start, end = post._pieces.sides()
    points = np.stack([left, crossings(post._pieces, post.coefficients, q)], axis=-1).reshape(
        len(q), 2 * left.shape[1]
    )
    points = special.expit(np.append(points, right[:, -1:], axis=1))
    masses = _masses(post.base, points).reshape(*left.shape, 2)
    before, after = masses[..., 0], masses[..., 1]
    sides = np.where((start <= end) != above, before, after)
    return np.asarray(sides.sum(axis=1).clip(0.0, 1.0))


def _masses(base: Posterior, points: Floats) -> Floats:
    """P(a < π ≤ b) for neighbours a ≤ b in each row of points, from the smaller tail."""
    lower, upper = base.cdf(points.T).T, base.prob_above(points.T).T
    below, above = np.diff(lower), -np.diff(upper)
    return np.where(lower[:, 1:] <= 0.5, below, above).clip(min=0.0)


def _solved_quantile(post: Polynomial, level: Floats) -> Floats:
    """Solve P(f(π) ≤ q) = level for q."""
    least, most = post._support()
    low, high = _bracket(post, level)
    low, high = np.where(level == 0.0, least, low), np.where(level == 1.0, most, high)
    return np.asarray(solved_quantiles(post, level[None], low[None], high[None])[0])


def _bracket(post: Polynomial, level: Floats) -> tuple[Floats, Floats]:
    """Range of f on an interval that π leaves with half the probability of the smaller tail."""
    tail = np.minimum(level, 1.0 - level) / 4.0
    ends = special.logit(post.base.ppf(np.stack([tail, 1.0 - tail]))).T
    values = value_at_log_odds(post.coefficients[:, None], ends)
    low, high = values.min(axis=1), values.max(axis=1)
    inside = (post._pieces.ends >= ends[:, :1]) & (post._pieces.ends <= ends[:, 1:])
    low = np.minimum(low, np.where(inside, post._pieces.values, np.inf).min(axis=1))
    high = np.maximum(high, np.where(inside, post._pieces.values, -np.inf).max(axis=1))
    least, most = post._support()
    return np.maximum(low, least), np.minimum(high, most)
