"""Leave-one-out: what a process would have predicted for a trial without having seen it.

There is no refit. With latent value f, its variance v, and the score g and information W of the
trial left out,

    f₋ = f − v g/(1 − v W),   v₋ = v/(1 − v W),

which is one Newton step of the fit without it. Hyper-parameters change too: with J = ∂f/∂θ and H
their covariance, f₋ is computed with v + JHJ′ instead of v. π is then averaged over N(f₋, v₋),
shifted from mode to mean as in `law.shift`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from betafield.process import averages, linear
from betafield.process.design import Design, design
from betafield.process.fit import Fit
from betafield.process.law import shift
from betafield.process.likelihood import success
from betafield.process.pooled import Covariance, Spread
from betafield.process.rows import Rows

Floats = npt.NDArray[np.float64]

# Lower bound of 1 − vW, the share of the information that remains without a trial.
LEAST = 0.05


def means(fit: Fit, rows: Rows, is_success: npt.NDArray[np.bool_]) -> Floats:
    """Return the mean of π at each row without one of its trials, a success or a failure."""
    success, failure, deviation = _laws(fit, rows)
    return averages.mean(fit.problem.link, np.where(is_success, success, failure), deviation)


def _laws(fit: Fit, rows: Rows) -> tuple[Floats, Floats, Floats]:
    """Return the means of f without a success and without a failure, and the deviation."""
    phi = design(fit.mode.basis, rows.x)
    f, v = phi.values(fit.mode.b), _variances(phi, fit.slopes.S)
    s = success(f, rows.context, fit.problem.link)
    w, joint = s.first * s.ratio, _variances(phi, joint_covariance(fit))
    mean, pull = f + phi.values(shift(fit)), joint * s.ratio / _left(joint, w)
    return mean - pull * s.rest, mean + pull * s.q, np.sqrt(v / _left(v, w))


def _variances(phi: Design, covariance: Covariance) -> Floats:
    """Return variances of f, clipped at 0 because with many trials rounding can go below."""
    return np.maximum(phi.forms(covariance), 0.0)


def joint_covariance(fit: Fit) -> Covariance:
    """Return S + J′HJ, the covariance of the coefficients with unknown hyper-parameters."""
    moves = fit.slopes.moves
    if isinstance(fit.slopes.S, Spread):
        return fit.slopes.S.widened(moves, fit.covariance)
    spread = linear.product(linear.product(moves.T, fit.covariance), moves)
    return np.asarray(fit.slopes.S + 0.5 * (spread + spread.T))


def _left(v: Floats, w: Floats) -> Floats:
    return np.maximum(1.0 - v * w, LEAST)
