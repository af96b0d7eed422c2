"""The exact posterior at one point: slow, plain, and the reference for every faster path.

A trial whose outcome has probability Σ_k b_k binom(p, k) θ^k (1−θ)^(p−k), θ = π(x), turns one Beta
into a mixture of p + 1 Betas, and a mixture over Beta(α+i, β+N−i), i = 0..N, into one with N + p.
As a recursion for the weights, with x^(k) = x (x+1) … (x+k−1):

    C_(i+k)  gains  C_i · b_k · binom(p, k) · (α+i)^(k) · (β+N−i)^(p−k).

For p = 1 this is C_i' ∝ lo · (β+n−i) · C_i + hi · (α+i−1) · C_(i−1). All terms are products of
non-negative factors, so each step costs a few roundings and no cancellation. The weights span
thousands of orders of magnitude, and a weight of 1e-1000 may be the largest a thousand trials
later. They are therefore stored as mantissas with their own integer exponents, which are exact; the
error of log C_i would grow with its size.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield import contexts as bernstein
from betafield.bernstein import require_possible
from betafield.posteriors.base import Floats
from betafield.posteriors.mixture import Mixture
from betafield.rates import outcomes

Ints = npt.NDArray[np.int32]
Prior = tuple[float, float]


def exact_mixture(contexts: Any, success: Any, prior: Prior = (1.0, 1.0)) -> Mixture:
    """Return the posterior of π after t trials at one point, each under its own context.

    The density is prior(θ) Π_i P_i(outcome_i | θ), normalised: a mixture over
    Beta(α+i, β+np−i), i = 0..np, where n counts the trials that carry information. A context with
    equal coefficients (gain 0) carries no information and changes nothing. O((tp)²) for degree p;
    t = 5,000 affine trials take about a second.

    Parameters
    ----------
    contexts : array-like of shape (t, p + 1) or (p + 1,)
        Bernstein coefficients of the success probability of each trial, or of all trials; see
        `betafield.contexts`.
    success : array-like of t bools
    prior : (α, β), default=(1.0, 1.0)

    Returns
    -------
    Mixture of one row

    Raises
    ------
    ValueError
        If an outcome was impossible: a success under a context of zeros, or a failure under one of
        ones.

    Examples
    --------
    One success under P(success) = 0.5 π + 0.2, from a Beta(2, 3) prior:

    >>> from betafield import contexts
    >>> from betafield.posteriors.reference import exact_mixture
    >>> post = exact_mixture([contexts.affine(gain=0.5, offset=0.2)], [True], prior=(2, 3))
    >>> post.mean().round(10)
    array([0.45])

    Ten pools of five samples, three of them positive:

    >>> post = exact_mixture(contexts.pooled(5), [True] * 3 + [False] * 7)
    >>> post.mean().round(4)
    array([0.0883])
    """
    alpha, beta = _checked_prior(prior)
    rows = _likelihoods(contexts, success)
    informative = rows[(rows != rows[:, :1]).any(axis=1)]
    weights = _scaled(np.ones(1), np.zeros(1, dtype=np.int32))
    for coefficients in informative:
        weights = _multiplied(weights, coefficients, alpha, beta)
    return _mixture(_log(weights), alpha, beta)


def constant_offset_mixture(
    offset: float, successes: int, trials: int, prior: Prior = (1.0, 1.0)
) -> Mixture:
    """Return the posterior of π after trials under P(success) = offset + (1 − offset) π.

    With B = offset, S = successes and t = trials, it is Σ_(i=0..S) C_i Beta(α+i, β+t−i) with
    C_i ∝ binom(S, i) Γ(α+i) Γ(β+t−i) B^(S−i), where i of the S successes are not background. O(S).
    B = 0 leaves Beta(α+S, β+t−S) alone; B = 1 makes every trial a success and leaves the prior.

    Parameters
    ----------
    offset : float
        Within [0, 1].
    successes, trials : int
        0 ≤ successes ≤ trials.
    prior : (α, β), default=(1.0, 1.0)

    Returns
    -------
    Mixture of one row

    Examples
    --------
    Of 50 insects 20 died, and one in five would have died untreated:

    >>> from betafield.posteriors.reference import constant_offset_mixture
    >>> constant_offset_mixture(0.2, successes=20, trials=50).mean().round(4)
    array([0.2549])
    """
    alpha, beta = _checked_prior(prior)
    offset = checks.probability("offset", offset)
    successes, trials = _checked_counts(successes, trials)
    if offset == 1.0:
        rule = f"under an offset of 1 all of {trials} trials are successes"
        checks.require(successes == trials, "successes", successes, rule)
        return _mixture(np.zeros(1), alpha, beta)
    steps = _log_ratios(offset, successes, trials, alpha, beta)
    # Sum away from the largest weight, so that rounding grows only where weights are negligible.
    mode = int((steps > 0.0).sum())
    below, above = -np.cumsum(steps[:mode][::-1])[::-1], np.cumsum(steps[mode:])
    log_weights = np.concatenate([below, [0.0], above])
    return _mixture(log_weights, alpha, beta + (trials - successes))


def _mixture(log_weights: Floats, alpha: float, beta: float) -> Mixture:
    """Σ_i C_i Beta(α+i, β+n−i), i = 0..n."""
    i = np.arange(len(log_weights))
    return Mixture.of_betas(log_weights[None], alpha + i, beta + i[::-1])


# One trial at a time -----------------------------------------------------------------------


class _Scaled(NamedTuple):
    """Non-negative numbers mantissa · 2^exponent, with a mantissa of 0 or within [½, 1)."""

    mantissa: Floats
    exponent: Ints


# The exponent of 0: below every exponent that a weight can have.
_NOTHING = np.int32(-(2**30))


def _scaled(values: Floats, exponent: Ints) -> _Scaled:
    """Return values · 2^exponent."""
    mantissa, shift = np.frexp(values)
    return _Scaled(mantissa, np.where(mantissa > 0.0, exponent + shift, _NOTHING))


def _times(x: _Scaled, factor: Floats | float) -> _Scaled:
    return _scaled(x.mantissa * factor, x.exponent)


def _plus(x: _Scaled, y: _Scaled) -> _Scaled:
    top = np.maximum(x.exponent, y.exponent)
    terms = (np.ldexp(z.mantissa, z.exponent - top) for z in (x, y))
    return _scaled(sum(terms, np.zeros(1)), top)


def _log(x: _Scaled) -> Floats:
    """Logarithms relative to the largest power of two, which are small for large weights."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(x.mantissa) + (x.exponent - x.exponent.max()) * math.log(2.0))


def _multiplied(weights: _Scaled, coefficients: Floats, alpha: float, beta: float) -> _Scaled:
    """Return the weights after one more trial, whose likelihood has these coefficients."""
    size = len(weights.mantissa) + len(coefficients) - 1
    total = _Scaled(np.zeros(size), np.full(size, _NOTHING))
    for k, share in enumerate(_shares(weights, len(coefficients) - 1, alpha, beta)):
        if coefficients[k] > 0.0:
            slots = slice(k, k + len(weights.mantissa))
            gained = _times(share, coefficients[k])
            here = _plus(_Scaled(total.mantissa[slots], total.exponent[slots]), gained)
            total.mantissa[slots], total.exponent[slots] = here
    return total


def _shares(weights: _Scaled, degree: int, alpha: float, beta: float) -> Iterator[_Scaled]:
    """C_i binom(p, k) (α+i)^(k) (β+N−i)^(p−k), for k = 0..p."""
    i = np.arange(len(weights.mantissa), dtype=np.float64)
    a, b = alpha + i, beta + i[::-1]
    share = weights
    for j in range(degree):
        share = _times(share, b + j)
    yield share
    for k in range(degree):
        # Multiply by the ratio of neighbours in k, of binom and of both rising factorials.
        share = _times(share, (degree - k) / (k + 1) * ((a + k) / (b + (degree - k - 1))))
        yield share


# Many trials at once -----------------------------------------------------------------------


def _log_ratios(offset: float, successes: int, trials: int, alpha: float, beta: float) -> Floats:
    """Logarithms of C_(i+1)/C_i = (S−i)(α+i) / (B (i+1)(β+t−1−i)), which decreases in i."""
    i = np.arange(successes)
    gained = (successes - i) / (i + 1.0) * ((alpha + i) / (beta + (trials - 1 - i)))
    with np.errstate(divide="ignore", over="ignore"):
        return np.log(gained / offset)


# Arguments ---------------------------------------------------------------------------------


def _checked_prior(prior: Prior) -> Prior:
    rule = "two positive finite shapes are needed"
    alpha, beta = checks.finite("prior", prior, rule, shape=(2,), needed=rule)
    checks.require(alpha > 0.0 and beta > 0.0, "prior", prior, rule)
    return float(alpha), float(beta)


def _likelihoods(contexts: Any, success: Any) -> Floats:
    """Return the likelihood's coefficients (t, p + 1); raise if an outcome is impossible."""
    happened = np.atleast_1d(checks.cells("success", success))
    rows = bernstein.likelihood(contexts, happened)
    won = outcomes(happened)
    require_possible("context", np.where(won[:, None], rows, 1.0 - rows), ~won, won)
    return rows


def _checked_counts(successes: int, trials: int) -> tuple[int, int]:
    n = checks.whole("trials", trials, low=0, high=1 << 53)
    return checks.whole("successes", successes, low=0, high=n), n
