"""Posteriors of π = g(f) with normal f, mixed over links: the posterior of a Gaussian process.

Tails, quantiles and draws come from normal distributions; means from `betafield.process.averages`.
The second moment is a Gauss–Hermite sum if the standard deviation s of f is of the order of the
link's curvature scale, 1/κ, and for larger s an integral by parts:

    E g² = ∫ (g²)′(u) Φ((c − u)/s) du,   whose integrand vanishes quickly outside the bends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from scipy.special import ndtr

from betafield import checks
from betafield.posteriors.base import Floats, Generator, Posterior, Rows, blocks
from betafield.process import averages, mixtures
from betafield.process.laws import Laws
from betafield.process.links import LOGIT, Link

# Largest κs for which sums over this many nodes are right to nine digits.
SHARP = 2.5
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(81)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
# Range over which the link's square rises, in units of 1/κ beyond its ends, and number of nodes.
REACH, STEPS = 40.0, 801
# Number of values in memory at once.
BLOCK = 1 << 21


class LatentNormal(Posterior):
    """Distributions of π = g(f), f ~ N(c, s²), mixed over components with their own links.

    Row i has P(π ≤ p) = Σ_k w_k Φ((g_k⁻¹(p) − c_ki)/s_ki).

    Parameters
    ----------
    laws : Laws
        Links, weights (for all rows or per row), and centre and deviation of f per link and row.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield.process.laws import Laws
    >>> from betafield.process.links import LOGIT
    >>> one = Laws((LOGIT,), np.ones(1), np.array([[0.0, 2.0]]), np.array([[1.0, 0.5]]))
    >>> post = LatentNormal(one)
    >>> post.mean().round(4)
    array([0.5  , 0.871])
    >>> low, high = post.interval(0.95)
    >>> print(low.round(3), high.round(3))
    [0.123 0.735] [0.877 0.952]
    """

    def __init__(self, laws: Laws) -> None:
        rule = "betafield.process.laws.Laws are needed: links, weights, centres and deviations"
        self.laws = checks.instance("laws", laws, Laws, rule)

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,): one distribution per row."""
        return (self.laws.centres.shape[1],)

    def mean(self) -> Floats:
        """E[g(f)]."""
        return mixtures.mean(self.laws)

    def var(self) -> Floats:
        """E[(g(f) − E[g(f)])²]."""
        mean, total = self.mean(), np.zeros(self.shape)
        for weight, (link, centre, deviation) in self._weighed:
            own, spread = moments(link, centre, deviation)
            total += weight * (spread + (own - mean) ** 2)
        return total

    @property
    def _weighed(self) -> Iterator[tuple[Any, tuple[Link, Floats, Floats]]]:
        """The laws with their weights, which are one number or one per row."""
        links, weights, centres, deviations = self.laws
        return zip(weights, zip(links, centres, deviations, strict=True), strict=True)

    def _pdf(self, p: Floats) -> Floats:
        p = np.broadcast_to(p, np.broadcast_shapes(p.shape, self.shape))
        inner = (p > 0.0) & (p < 1.0)
        return np.where(inner, mixtures.pdf(self.laws, np.where(inner, p, 0.5)), 0.0)

    def _cdf(self, p: Floats) -> Floats:
        return self._tail(p, 1.0)

    def _above(self, p: Floats) -> Floats:
        return self._tail(p, -1.0)

    def _tail(self, p: Floats, sign: float) -> Floats:
        total = np.zeros(np.broadcast_shapes(p.shape, self.shape))
        for weight, (link, centre, deviation) in self._weighed:
            total += weight * ndtr(sign * (link.inverse(p) - centre) / deviation)
        # All mass is strictly inside (0, 1).
        return np.where(p <= 0.0, float(sign < 0), np.where(p >= 1.0, float(sign > 0), total))

    def _ppf(self, q: Floats) -> Floats:
        q = np.broadcast_to(q, np.broadcast_shapes(q.shape, self.shape))
        inner = (q > 0.0) & (q < 1.0)
        return np.where(inner, mixtures.quantiles(self.laws, np.where(inner, q, 0.5)), q)

    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        u, z, out = rng.random(size), rng.standard_normal(size), np.empty(size)
        reached = np.zeros(self.shape)
        for weight, (link, centre, deviation) in self._weighed:
            out = np.where(u >= reached, link.value(centre + z * deviation), out)
            reached = reached + weight
        return out

    def _take(self, rows: Rows) -> Self:
        links, weights, centres, deviations = self.laws
        weights = weights[:, rows] if weights.ndim > 1 else weights
        return type(self)(Laws(links, weights, centres[:, rows], deviations[:, rows]))


def moments(link: Link, centre: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of g(f) for f ~ N(centre, deviation²)."""
    mean, var = averages.mean(link, centre, deviation), np.empty_like(centre)
    is_wide = deviation * link.steepness > SHARP
    for formula, chosen in ((_sharp, ~is_wide), (_by_parts, is_wide)):
        rows = np.flatnonzero(chosen)
        for block in blocks(len(rows), BLOCK // STEPS):
            some = rows[block]
            var[some] = formula(link, centre[some], deviation[some], mean[some])
    return mean, np.maximum(var, 0.0)


def _sharp(link: Link, centre: Floats, deviation: Floats, mean: Floats) -> Floats:
    """Return the variance as a sum over nodes of f."""
    value = link.value(centre[:, None] + deviation[:, None] * NODES)
    return np.asarray(((value - mean[:, None]) ** 2 * WEIGHTS).sum(axis=1))


def _by_parts(link: Link, centre: Floats, deviation: Floats, mean: Floats) -> Floats:
    """Return the variance, with the second moment by parts."""
    half = 0.0 if link is LOGIT else 0.5
    u = np.linspace(-half - REACH / link.steepness, half + REACH / link.steepness, STEPS)
    value, rise = link.rise(u)
    below = ndtr((centre[:, None] - u) / deviation[:, None])
    return np.asarray((2.0 * value * rise * below).sum(axis=1) * (u[1] - u[0]) - mean**2)
