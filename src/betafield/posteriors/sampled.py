"""Posteriors represented by draws, for any quantity that can be computed from drawn fields."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from betafield import bernstein, checks
from betafield._locks import cached
from betafield.posteriors.base import Floats, Generator, Moments, Posterior, Rows, blocks
from betafield.posteriors.under import one_per_row

# Number of values in memory at once, for densities.
BLOCK = 1 << 21
# Interquartile range of the standard normal distribution.
QUARTILES = 1.349


class Sampled(Posterior):
    """Distributions represented by draws, one per row.

    Tails and quantiles are empirical: P(value ≤ p) is the share of draws at or below p, and a
    quantile is the smallest draw at which that share reaches q. The density is a kernel density
    estimate with normal kernels of width 0.9 min(s, interquartile range/1.349) n^(−1/5), where n is
    the effective number of draws (Silverman's rule), reflected at the ends of the support; it is
    meant for plots.

    Draws with the same index belong together: `sample` takes all rows from the same draw, so that
    the correlation between rows is kept.

    Parameters
    ----------
    draws : array-like of shape (S, m), or (S,) for one row
        The draws; may be infinite, not NaN.
    weights : array-like of shape (S,), optional
        Their weights. None: equal weights.
    support : (low, high), default=(0.0, 1.0)
        The range of possible values: probabilities by default, (-inf, inf) for differences and
        slopes, which have no `under`.

    Examples
    --------
    >>> from betafield.posteriors import Sampled
    >>> post = Sampled([[0.1, 0.7], [0.2, 0.9], [0.3, 0.8], [0.4, 0.6]])
    >>> post.mean()
    array([0.25, 0.75])
    >>> post.cdf(0.3), post.prob_above(0.3)
    (array([0.75, 0.  ]), array([0.25, 1.  ]))
    >>> post.ppf(0.5)
    array([0.2, 0.7])
    """

    def __init__(
        self,
        draws: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        support: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.draws = _checked_draws(draws)
        self.weights = None if weights is None else _checked_weights(weights, len(self.draws))
        low, high = support
        self.support = float(low), float(high)
        inside = (self.draws >= low) & (self.draws <= high)
        checks.require_all(inside, "draws", self.draws, f"values within [{low}, {high}] are needed")

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,): one distribution per row."""
        return (self.draws.shape[1],)

    @property
    def effective_size(self) -> float:
        """The equivalent number of equally weighted draws: 1/Σw²."""
        return float(1.0 / np.sum(self._shares**2))

    def mean(self) -> Floats:
        """Σ w · draw."""
        return _summed(self._shares[:, None] * self.draws)

    def var(self) -> Floats:
        """Σ w (draw − mean)²."""
        return _summed(self._shares[:, None] * (self.draws - self.mean()) ** 2)

    def median(self) -> Floats:
        """Return the smallest draw with at least half of the weight at or below it."""
        return self.ppf(0.5)

    def polynomial_moments(self, coefficients: Floats) -> Moments:
        """Return E[f(π)] and Var[f(π)], from f at the draws."""
        moved = Sampled(bernstein.value(coefficients, self.draws), self.weights)
        return moved.mean(), moved.var()

    def under(self, context: Any) -> Sampled:
        """Return the distribution of the success probability under a context: f at the draws."""
        if self.support != (0.0, 1.0):
            raise ValueError(
                "context: contexts are for success probabilities; these are values within "
                f"{list(self.support)}"
            )
        coefficients = one_per_row(self, context)
        return Sampled(bernstein.value(coefficients, self.draws), self.weights)

    @cached
    def _shares(self) -> Floats:
        """Normalised weights, which add up to 1."""
        count = len(self.draws)
        return np.full(count, 1.0 / count) if self.weights is None else self.weights

    @cached
    def _sorted(self) -> tuple[Floats, Floats]:
        """Sorted draws, and the weight at or below each, both (m, S)."""
        order = np.argsort(self.draws.T, axis=1, kind="stable")
        values = np.take_along_axis(self.draws.T, order, axis=1)
        if self.weights is None:
            reached = np.arange(1.0, len(self.draws) + 1.0) / len(self.draws)
            return values, np.broadcast_to(reached, values.shape)
        reached = np.cumsum(self.weights[order], axis=1)
        return values, reached / reached[:, -1:]

    def _pdf(self, p: Floats) -> Floats:
        p = np.broadcast_to(p, np.broadcast_shapes(p.shape, self.shape))
        out, width = np.empty(p.shape), self._widths
        for j in range(len(self)):
            points = p[..., j].ravel()
            found = np.concatenate(
                [
                    self._density(points[some], j, width[j])
                    for some in blocks(len(points), BLOCK // len(self.draws))
                ]
                or [points]
            )
            out[..., j] = found.reshape(p.shape[:-1])
        return out

    def _density(self, points: Floats, j: int, width: float) -> Floats:
        """Return the sum of a row's kernels at points, including those reflected at both ends."""
        if width == 0.0:
            return np.where(points == self.draws[0, j], np.inf, 0.0)
        total = np.zeros(len(points))
        for mirrored in _mirrored(self.draws[:, j], self.support):
            z = (points[:, None] - mirrored) / width
            total += (np.exp(-0.5 * z**2) * self._shares).sum(axis=1)
        return np.asarray(total / (width * np.sqrt(2.0 * np.pi)))

    @cached
    def _widths(self) -> Floats:
        """Widths of the kernels, one per row; 0 if all draws are equal."""
        quartiles = self.ppf(0.75) - self.ppf(0.25)
        deviation = self.std()
        spread = np.where(quartiles > 0.0, np.minimum(deviation, quartiles / QUARTILES), deviation)
        return np.asarray(0.9 * spread * self.effective_size**-0.2)

    def _cdf(self, p: Floats) -> Floats:
        return self._reached(p, "right")

    def _above(self, p: Floats) -> Floats:
        return 1.0 - self._reached(p, "right")

    def _reached(self, p: Floats, side: Any) -> Floats:
        """Return the weight of draws up to p."""
        p = np.broadcast_to(p, np.broadcast_shapes(p.shape, self.shape))
        out, (values, reached) = np.empty(p.shape), self._sorted
        for j in range(len(self)):
            below = np.searchsorted(values[j], p[..., j], side=side)
            out[..., j] = np.append(0.0, reached[j])[below]
        return out

    def _ppf(self, q: Floats) -> Floats:
        q = np.broadcast_to(q, np.broadcast_shapes(q.shape, self.shape))
        out, (values, reached) = np.empty(q.shape), self._sorted
        for j in range(len(self)):
            at = np.searchsorted(reached[j], q[..., j] * (1.0 - 1e-15), side="left")
            out[..., j] = values[j][np.minimum(at, len(self.draws) - 1)]
        return out

    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        reached = np.cumsum(self._shares)
        at = np.searchsorted(reached, rng.random(size[:-1]) * reached[-1], side="right")
        return np.asarray(self.draws[np.minimum(at, len(self.draws) - 1)])

    def _take(self, rows: Rows) -> Self:
        return type(self)(self.draws[:, rows], self.weights, self.support)


def _summed(values: Floats) -> Floats:
    """Return sums over the first axis, in the same order for any number of rows."""
    return np.asarray(np.ascontiguousarray(values.T).sum(axis=1))


def _mirrored(draws: Floats, support: tuple[float, float]) -> list[Floats]:
    """Return the draws, and their reflections at every finite end of the support."""
    return [draws, *(2.0 * end - draws for end in support if np.isfinite(end))]


def _checked_draws(draws: npt.ArrayLike) -> Floats:
    rule = "draws must be real numbers"
    array = checks.array("draws", draws, rule)
    array = array[:, None] if array.ndim == 1 else array
    checks.shaped("draws", array, (None, None), "draws of every row, (S, m), are needed")
    checks.require(len(array), "draws", array.shape, "at least one draw is needed")
    checks.require_all(~np.isnan(array), "draws", array, rule)
    array = array.copy()
    array.flags.writeable = False
    return array


def _checked_weights(weights: npt.ArrayLike, count: int) -> Floats:
    rule = "weights must be finite, none below 0 and one above"
    array = checks.array("weights", weights, rule)
    checks.shaped("weights", array, (count,), f"one weight for each of {count} draws is needed")
    checks.require_all((array >= 0.0) & (array < np.inf), "weights", array, rule)
    checks.require(array.max() > 0.0, "weights", 0.0, rule)
    array = array / array.max()
    array = array / array.sum()
    array.flags.writeable = False
    return np.asarray(array)
