"""The likelihood of the latent values: binomial, under contexts.

Let q be the success probability of a row as a function of its latent f (π = g(f), and q is the
polynomial of π with the context's Bernstein coefficients), r = q′/(q(1−q)), and primes d/df:

    log-likelihood   Σ k log q + (n − k) log(1 − q)
    score            (k − n q) r
    information      W = n q′ r (Fisher)
    its derivative   W′ = n r (2 q″ − q′ r (1 − 2q))
    third            t₃ = E d³/df³ log-likelihood = −n r (3 q″ − 2 q′ r (1 − 2q))

For the logit without contexts r = 1, and W is also the observed information.

Rows with correlated trials (ρ > 0) are beta-binomial, with α = q(1/ρ − 1) and
β = (1 − q)(1/ρ − 1):

    log-likelihood   Σ log B(k + α, n − k + β) − log B(α, β)
    score            (1/ρ − 1) q′ (ψ(k + α) − ψ(α) − ψ(n − k + β) + ψ(β))

and W, W′ and t₃ are those above divided by 1 + (n − 1)ρ. As ρ → 0 all become binomial.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import digamma, gammaln, xlogy

from betafield import bernstein
from betafield.process.links import LOGIT, Link, clipped
from betafield.process.rows import Rows

Floats = npt.NDArray[np.float64]

# Success probabilities are kept this far from 0 and 1, so that products of two do not underflow.
TINY = 1e-140


class Success(NamedTuple):
    """Success probability q of each row, 1 − q, and the derivatives q′ and q″ by f."""

    q: Floats
    rest: Floats
    first: Floats
    second: Floats

    @property
    def ratio(self) -> Floats:
        """Return r = q′/(q(1−q))."""
        return self.first / (self.q * self.rest)


class Reading(NamedTuple):
    """The likelihood of rows at latent values: its log, score and information.

    Parameters
    ----------
    log : float
        Log-likelihood of all rows.
    score, information : array of shape (r,)
        g and W.
    s : Success
        Their success probabilities.
    worth : array of shape (r,)
        The number of independent trials with as much information.
    """

    log: float
    score: Floats
    information: Floats
    s: Success
    worth: Floats

    @property
    def slope(self) -> Floats:
        """W′."""
        r = self.s.ratio
        return self.worth * r * (2.0 * self.s.second - self._bent(r))

    @property
    def third(self) -> Floats:
        """t₃."""
        r = self.s.ratio
        return -self.worth * r * (3.0 * self.s.second - 2.0 * self._bent(r))

    @property
    def observed(self) -> Floats:
        """−g′ for independent trials, which may be negative; W is its expectation."""
        s = self.s
        turn = np.divide(s.second, s.first, out=np.zeros_like(s.q), where=s.first != 0.0)
        return np.asarray(self.information - self.score * (turn - s.ratio * (s.rest - s.q)))

    @property
    def steepest(self) -> Floats:
        """The larger of W and the observed −g′."""
        return np.maximum(self.information, self.observed)

    def _bent(self, r: Floats) -> Floats:
        return self.s.first * r * (self.s.rest - self.s.q)


def success(f: Floats, context: Floats, link: Link) -> Success:
    """Return the success probability of rows at latent values f, under their contexts."""
    bend = link.bend(f)
    value, first, second = polynomial(context, bend.p, bend.rest)
    rest = bernstein.value_beside(1.0 - context, bend.p, bend.rest)
    return Success(
        clipped(value, TINY, 1.0),
        clipped(rest, TINY, 1.0),
        first * bend.first,
        second * bend.first**2 + first * bend.second,
    )


def polynomial(context: Floats, p: Floats, rest: Floats) -> tuple[Floats, Floats, Floats]:
    """Return Σ_k b_k binom(m, k) π^k (1−π)^(m−k) and its first two derivatives by π."""
    value = bernstein.value_beside(context, p, rest)
    if context.shape[-1] == 2:
        first = context[..., 1] - context[..., 0]
        return value, first, np.zeros_like(first)
    rise = bernstein.derivative(context)
    first, second = (
        bernstein.value_beside(each, p, rest) for each in (rise, bernstein.derivative(rise))
    )
    return value, first, second


def log_likelihoods(f: Floats, rows: Rows, link: Link) -> Floats:
    """Return the log-likelihood of rows at many sets of latent values f, shape (rows, sets)."""
    n, k = rows.n[:, None], rows.k[:, None]
    if rows.is_plain and link is LOGIT and not rows.correlation:
        return np.asarray((k * f - n * np.logaddexp(0.0, f)).sum(axis=0))
    (p, rest), context = link.both(f), rows.context[:, None]
    q, other = (
        clipped(bernstein.value_beside(each, p, rest), TINY, 1.0)
        for each in (context, 1.0 - context)
    )
    return np.asarray(_logs(q, other, n, k, rows.correlation).sum(axis=0))


def at_ends(rows: Rows) -> Floats:
    """Return the log-likelihood of each row at π = 0 and at π = 1, shape (2, rows)."""
    ends = np.stack([rows.context[:, 0], rows.context[:, -1]])
    q, other = clipped(ends, TINY, 1.0), clipped(1.0 - ends, TINY, 1.0)
    return _logs(q, other, rows.n, rows.k, rows.correlation)


def _logs(q: Floats, other: Floats, n: Floats, k: Floats, correlation: float) -> Floats:
    """Return log-likelihoods of rows at success probabilities q, with `other` = 1 − q."""
    if not correlation:
        return np.asarray(xlogy(k, q) + xlogy(n - k, other))
    size = 1.0 / correlation - 1.0
    return np.asarray(_rising(size * q, k) + _rising(size * other, n - k) - _rising(size, n))


def _rising(shape: Floats | float, count: Floats) -> Floats:
    """Return log Γ(shape + count)/Γ(shape)."""
    return np.asarray(gammaln(count + shape) - gammaln(shape))


def read(f: Floats, rows: Rows, link: Link) -> Reading:
    """Return the likelihood of rows at their latent values f."""
    return Likelihood.of(rows, link).read(f)


@dataclass(frozen=True, eq=False)
class Likelihood:
    """What rows say under a link, to be read at many latent values.

    Parameters
    ----------
    link : Link
    n, k : array of shape (r,)
        Trials and successes of every row.
    worth : array of shape (r,)
        Independent trials that tell as much.
    correlation : float
        ρ.
    context : array of shape (r, p + 1) or None
        None if every trial was seen as it is.
    """

    link: Link
    n: Floats
    k: Floats
    worth: Floats
    correlation: float
    context: Floats | None

    @classmethod
    def of(cls, rows: Rows, link: Link) -> Likelihood:
        """Return what rows say under a link."""
        n, rho = rows.n, rows.correlation
        context = None if rows.is_plain else rows.context
        return cls(link, n, rows.k, n / (1.0 + (n - 1.0) * rho), rho, context)

    def read(self, f: Floats) -> Reading:
        """Return the likelihood at latent values f of the rows."""
        s = _seen(f, self.link) if self.context is None else success(f, self.context, self.link)
        ratio = s.ratio
        log, score = self._correlated(s) if self.correlation else self._independent(s, ratio)
        return Reading(float(log.sum()), score, self.worth * s.first * ratio, s, self.worth)

    def _independent(self, s: Success, ratio: Floats) -> tuple[Floats, Floats]:
        """Return log-likelihoods and scores of binomial rows."""
        k, failures = self.k, self.n - self.k
        log = xlogy(k, s.q) + xlogy(failures, s.rest)
        return log, (k * s.rest - failures * s.q) * ratio

    def _correlated(self, s: Success) -> tuple[Floats, Floats]:
        """Return log-likelihoods and scores of beta-binomial rows."""
        size = 1.0 / self.correlation - 1.0
        (up, rise), (down, fall) = (
            (_rising(shape, count), digamma(count + shape) - digamma(shape))
            for count, shape in ((self.k, size * s.q), (self.n - self.k, size * s.rest))
        )
        log = up + down - _rising(size, self.n)
        return log, size * s.first * (rise - fall)


def _seen(f: Floats, link: Link) -> Success:
    """Return the success probability of rows without contexts: `success` in half of the time."""
    p, rest, first, second = link.bend(f)
    return Success(clipped(p, TINY, 1.0), clipped(rest, TINY, 1.0), first, second)
