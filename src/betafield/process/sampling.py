"""Importance weights: from Laplace's approximation to the exact posterior of the coefficients.

With b = b̂ + U⁻¹z, z ~ N(0, I), U′U the curvature at the mode b̂, a draw has the importance weight

    log w = log-likelihood(b) − ½b′b + ½z′z − (evidence + Σ log U_jj)

for the exact likelihood of the rows, contexts included; log w is 0 at the mode. Laplace's
approximation is symmetric but the posterior is not if π saturates, as it does under contexts, and
these weights correct that. A quarter of the draws comes from a wider distribution in which trials
have a tenth of their information, V′V = I + (U′U − I)/10, and weights are relative to the mixture
of both; otherwise nothing would be drawn where Laplace's approximation has hardly any mass. Weights
are truncated at their mean times √(number of draws), and raised to a power below 1 if the effective
sample size would be less than a tenth of that number.

`moments` are the mean and covariance of the coefficients under these weights. Its random numbers
are always the same, in pairs z and −z, so moments are a function of the rows, the link and θ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from betafield.process import linear
from betafield.process.design import FEW, matrix
from betafield.process.likelihood import log_likelihoods

if TYPE_CHECKING:
    from betafield.process.fit import Fit, Problem
    from betafield.process.laplace import Mode

Floats = npt.NDArray[np.float64]

# The share of draws from the wider distribution, and the weight of trials in it.
WIDER, TOLD = 0.25, 0.1
# The least effective sample size, as a share of the draws.
LEAST_SHARE = 0.1
# Draws whose likelihoods are computed at once.
BLOCK = 512
# Pairs of draws for moments, their seed, and the most entries of Φ̃: with more rows and functions
# it would take long.
PAIRS, SEED, MOST_ENTRIES = 256, 20, 1 << 18


def can_be_sampled(fit: Fit) -> bool:
    """Return whether moments are worth their time: under contexts, with up to three features."""
    rows, functions = fit.problem.rows, fit.mode.basis
    is_small = rows.d <= FEW and len(rows.x) * len(fit.mode.b) <= MOST_ENTRIES
    return is_small and not rows.is_plain and functions.layout is None


def moments(fit: Fit) -> tuple[Floats, Floats]:
    """Return the mean and covariance of the coefficients given θ, by importance weights."""
    half = np.random.default_rng(SEED).standard_normal((len(fit.mode.b), PAIRS))
    z = np.stack([half, -half], axis=2).reshape(len(half), 2 * PAIRS)
    b, logs = weighed(fit.problem, fit.mode, fit.mode.curvature.factor(), z)
    w = tempered(logs)
    mean = (b * w).sum(axis=1)
    away = b - mean[:, None]
    S = linear.product(np.ascontiguousarray(away * w), np.ascontiguousarray(away.T))
    return mean, 0.5 * (S + S.T)


def weighed(problem: Problem, mode: Mode, U: Floats, z: Floats) -> tuple[Floats, Floats]:
    """Return coefficients drawn by standard normal numbers z (m, k), and log importance weights."""
    count = z.shape[1]
    V, wide = wider(U), round(WIDER * count)
    steps = np.concatenate(
        [
            linear.backward(V, np.ascontiguousarray(z[:, :wide])),
            linear.backward(U, np.ascontiguousarray(z[:, wide:])),
        ],
        axis=1,
    )
    b, share = mode.b[:, None] + steps, wide / count
    with np.errstate(divide="ignore"):
        plain = np.log1p(-share) + log_density(U, U, steps)
        mixed = np.logaddexp(plain, np.log(share) + log_density(V, U, steps))
    return b, log_targets(problem, mode, b) - mixed


def wider(U: Floats) -> Floats:
    """Return the factor V of the wider distribution, in which trials have less weight."""
    M, one = linear.product(np.ascontiguousarray(U.T), U), np.eye(len(U))
    return linear.factor(one + TOLD * (M - one))


def log_density(V: Floats, U: Floats, steps: Floats) -> Floats:
    """Return log densities of steps from the centre under V, relative to that of U at 0."""
    square = (linear.product(V, steps) ** 2).sum(axis=0)
    return np.asarray(np.log(np.diag(V)).sum() - np.log(np.diag(U)).sum() - 0.5 * square)


def log_targets(problem: Problem, mode: Mode, b: Floats) -> Floats:
    """Return the log posterior density at coefficients, 0 at the mode."""
    phi = matrix(mode.basis, problem.rows.x)
    top = mode.evidence + mode.curvature.half_log_determinant
    out = -0.5 * (b * b).sum(axis=0) - top
    for start in range(0, b.shape[1], BLOCK):
        f = linear.product(phi, np.ascontiguousarray(b[:, start : start + BLOCK]))
        out[start : start + BLOCK] += log_likelihoods(f, problem.rows, problem.link)
    return np.asarray(out)


def tempered(logs: Floats) -> Floats:
    """Return truncated importance weights whose effective sample size is at least a tenth."""
    w, power = truncated(logs), 1.0
    while effective(w) < LEAST_SHARE * len(w):
        power *= 0.8
        w = truncated(power * logs)
    return w


def truncated(logs: Floats) -> Floats:
    """Return weights that sum to 1, truncated at their mean times the root of their number."""
    w = np.exp(logs - logs.max())
    w = np.minimum(w, w.mean() * np.sqrt(len(w)))
    return np.asarray(w / w.sum())


def effective(w: Floats) -> float:
    """Return the effective sample size."""
    return float(1.0 / np.sum(w * w))
