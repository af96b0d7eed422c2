"""The rougher companion of a process: what intervals assume where trials say little.

A process takes f to be as smooth everywhere as it is where the trials are, so its variance is too
small where f is rougher than that: in gaps without trials, and next to jumps. Its companion has the
same σ and ℓ, but the kernel σ² e^(−r/ℓ) (Matérn, ν = ½), under which f is continuous and no more.
Given the weights W of the rows at the mode, a process has a variance that does not depend on the
outcomes, so that of the companion takes no search: with its own Φ̃,

    v_r(x) = φ̃′Sφ̃,   S = (I + Φ̃′WΦ̃)⁻¹.

At every point the variance v₁ of the process is raised towards v_r if that is larger,

    v = v₁ + (1 − (1 − u)(1 − λ)) (v_r − v₁),   u = (v_r/σ²)^¾,   λ = 1/(1 + e^(E − E_r)).

v_r/σ² is the share of the prior variance that trials leave: where they leave nearly all, smoothness
is only assumed. λ is the weight of the companion by evidence: after a jump that many trials show,
it is near 1. E is the evidence of the process; that of the companion, E_r, takes the log-likelihood
to be quadratic about the mode. Where trials are many and f is smooth, v is nearly v₁. Means do not
change, because the centre of a law is chosen for them (`law`).

Draws of whole fields (`draws`) know no companions. Processes of up to two features
have companions: with more, their variance differs too little to be worth the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from betafield._locks import cached
from betafield.process import cosines
from betafield.process.basis import FREE, Basis, basis
from betafield.process.curvature import Curvature
from betafield.process.design import Design, Product, design, of_rows
from betafield.process.fit import Fit
from betafield.process.laplace import Mode

Floats = npt.NDArray[np.float64]

# ν of the companion's kernel, the most features, and the power of v_r/σ² that u is.
SMOOTHNESS, MOST_FEATURES, POWER = 0.5, 2, 0.75


@dataclass(frozen=True, eq=False)
class Companion:
    """The parts of a companion that queries need.

    Parameters
    ----------
    basis : Basis
        Its basis functions.
    S : array of shape (m, m)
        Covariance of their coefficients.
    variance : float
        σ².
    weight : float
        λ, its weight by evidence.
    """

    basis: Basis
    S: Floats
    variance: float
    weight: float

    def raised(self, wide: Floats, x: Floats) -> Floats:
        """Return v at points, given v₁ there."""
        rough = np.maximum(self.rough(x), 0.0)
        unknown = np.minimum(rough / self.variance, 1.0) ** POWER
        share = 1.0 - (1.0 - unknown) * (1.0 - self.weight)
        return np.asarray(wide + share * np.maximum(rough - wide, 0.0))

    def rough(self, x: Floats) -> Floats:
        """Return v_r at points."""
        phi = design(self.basis, x)
        if not isinstance(phi, Product):
            return phi.forms(self.S)
        return cosines.contract(self._spread, *phi.tables)

    @cached
    def _spread(self) -> Floats:
        """The coefficients of v_r as a sum of cosines, which take longer than a few points."""
        phi = design(self.basis, np.zeros((1, len(self.basis.margin))))
        assert isinstance(phi, Product)
        return phi.spread(self.S)


def companion(fit: Fit) -> Companion | None:
    """Return the companion of a process; None with level effects or too many features."""
    rows, _, prior = fit.problem
    if rows.d > MOST_FEATURES or not rows.d or prior.effects is not None or prior.columns:
        return None
    functions = basis(fit.theta, prior._replace(smoothness=SMOOTHNESS, form=FREE))
    phi = of_rows(functions, rows.x, float(rows.n.max(initial=0.0)))
    curvature = phi.curvature(fit.mode.reading.information)
    gain = evidence(fit.mode, phi, curvature) - fit.mode.evidence
    variance = math.exp(2.0 * fit.theta[0])
    return Companion(functions, curvature.inverse(), variance, float(expit(gain)))


def evidence(mode: Mode, phi: Design, curvature: Curvature) -> float:
    """Return the evidence of other functions, the log-likelihood quadratic about a mode.

    With score g and weights W of the rows there, b = M₀⁻¹ Φ̃′(Wf + g) and δ = Φ̃b − f,

        E_r = log-lik(f) + g′δ − ½δ′Wδ − ½b′b − ½ log det M₀.
    """
    score, weight = mode.reading.score, mode.reading.information
    b = curvature.solve(phi.adjoint(weight * mode.f + score))
    move = phi.values(b) - mode.f
    gain = float(((score - 0.5 * weight * move) * move).sum()) - 0.5 * float((b * b).sum())
    return mode.reading.log + gain - curvature.half_log_determinant


def raising(one: Companion | None, wide: Any, phi: Design, x: Floats) -> Floats | float:
    """Return √(v/v₁) at points, 1 without a companion, given the covariance of coefficients."""
    if one is None:
        return 1.0
    v = np.maximum(phi.forms(wide), np.finfo(np.float64).tiny)
    return np.asarray(np.sqrt(one.raised(v, x) / v))
