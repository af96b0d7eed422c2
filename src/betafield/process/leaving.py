"""Leaving out: what a process would have said of a trial, or of a row, without having seen it.

No refit: with latent value f, its variance v, score g and information W of what is left out,

    f₋ = f − v g/(1 − v W),   v₋ = v/(1 − v W),

one Newton step of the fit without it. Hyper-parameters move too: with J = ∂f/∂θ and H their
covariance, f₋ is taken with v + JHJ′ in the place of v. The probability of what was seen is then
averaged over N(f₋, v₋), moved by what lies between mean and mode as laws are (`law.shift`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, xlogy

from betafield.process import averages, linear
from betafield.process.design import design
from betafield.process.fit import Fit
from betafield.process.law import shift
from betafield.process.likelihood import polynomial, success
from betafield.process.links import Link
from betafield.process.rows import Rows

Floats = npt.NDArray[np.float64]

# What remains of the information without a trial, in units of that with it, at the least.
LEAST = 0.05
# Nodes for what is not a mean of π.
NODES = np.polynomial.hermite_e.hermegauss(41)


class LeftOut(NamedTuple):
    """A probability at each row, had one of its trials not been seen, by how that had ended."""

    success: Floats
    failure: Floats


def trials(fit: Fit, rows: Rows | None = None) -> LeftOut:
    """Return the success probability of one trial of each row, had it not been seen.

    log P of the trials is Σ k log success + (n − k) log(1 − failure). `rows` are those of the fit,
    or others of the same trials, such as the places of its cells.
    """
    rows = fit.problem.rows if rows is None else rows
    *centres, deviation = _laws(fit, rows)
    link = fit.problem.link
    return LeftOut(*(success_mean(link, rows.context, centre, deviation) for centre in centres))


def means(fit: Fit, rows: Rows, is_success: npt.NDArray[np.bool_]) -> Floats:
    """Return the mean of π at each row, had one of its trials, which ended so, not been seen."""
    success, failure, deviation = _laws(fit, rows)
    return averages.mean(fit.problem.link, np.where(is_success, success, failure), deviation)


def _laws(fit: Fit, rows: Rows) -> tuple[Floats, Floats, Floats]:
    """Return the centres of f without a success and without a failure, and their deviation."""
    phi = design(fit.mode.basis, rows.x)
    f, v = phi.values(fit.mode.b), phi.forms(fit.slopes.S)
    s = success(f, rows.context, fit.problem.link)
    w, joint = s.first * s.ratio, phi.forms(joint_covariance(fit))
    mean, pull = f + phi.values(shift(fit)), joint * s.ratio / _left(joint, w)
    return mean - pull * s.rest, mean + pull * s.q, np.sqrt(v / _left(v, w))


def joint_covariance(fit: Fit) -> Floats:
    """Return S + J′HJ, the covariance of the coefficients with that of the hyper-parameters."""
    moves = fit.slopes.moves
    turned = np.ascontiguousarray(moves.T)
    spread = linear.product(linear.product(turned, fit.covariance), moves)
    return np.asarray(fit.slopes.S + 0.5 * (spread + spread.T))


def _left(v: Floats, w: Floats) -> Floats:
    return np.maximum(1.0 - v * w, LEAST)


def mixed(parts: list[LeftOut], weights: Floats) -> LeftOut:
    """Return the success probabilities under processes of these weights."""
    both = [
        np.sum([w * part[i] for w, part in zip(weights, parts, strict=True)], 0) for i in (0, 1)
    ]
    return LeftOut(*both)


def log_score(left: LeftOut, n: Floats, k: Floats) -> Floats:
    """Return the log probability of every row's trials, each left out alone."""
    return np.asarray(xlogy(k, left.success) + xlogy(n - k, 1.0 - left.failure))


def success_mean(link: Link, context: Floats, centre: Floats, deviation: Floats) -> Floats:
    """Return the mean success probability under contexts, f ~ N(centre, deviation²)."""
    if context.shape[1] == 2:
        p = averages.mean(link, centre, deviation)
        return np.asarray(context[:, 0] + (context[:, 1] - context[:, 0]) * p)
    total = np.zeros_like(centre)
    for x, w in zip(NODES[0], NODES[1] / NODES[1].sum(), strict=True):
        f = centre + x * deviation
        total += w * polynomial(context, link.value(f), link.value(-f))[0]
    return total


def whole_rows(fit: Fit) -> Floats:
    """Return log P of the trials of each row, left out together.

    The integral over N(f₋, v₋) is taken at nodes about the law that has seen the row.
    """
    rows, link, v = fit.problem.rows, fit.problem.link, fit.slopes.leverages
    g, W = fit.mode.reading.score, fit.mode.reading.information
    left = _left(v, W)
    centre, variance = fit.mode.f - v * g / left, v / left
    terms = []
    for x, w in zip(NODES[0], NODES[1] / NODES[1].sum(), strict=True):
        f = fit.mode.f + x * np.sqrt(v)
        s = success(f, rows.context, link)
        log = xlogy(rows.k, s.q) + xlogy(rows.n - rows.k, s.rest)
        gap = 0.5 * x**2 - 0.5 * (f - centre) ** 2 / variance + 0.5 * np.log(left)
        terms.append(np.log(w) + log + gap)
    return np.asarray(logsumexp(terms, axis=0))
