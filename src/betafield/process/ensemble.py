"""The joint posterior of a field as a list of members, each normal in its coefficients.

Every fitted process (link, units, kernel) has members at hyper-parameters on a star,

    θ_0 + chol(H) z,   z = 0 and ±r on every axis,   r² = 1.5 d_θ,

with weights e^(evidence + log prior) |chol H|, multiplied off the centre by e^(r²/2)/(2(r² − d_θ)).
For a normal distribution of θ this preserves mean and covariance. Given θ, the coefficients are
N(b̂, (U′U)⁻¹), Laplace's approximation, which importance weights then correct (`draws`).

If that would take long, with four or more features or with hundreds of levels, a process is a
single member: the normal distribution of `law`, whose variance includes the uncertainty of θ. Its
draws have no importance weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process import law, linear
from betafield.process.design import FEW, design
from betafield.process.fit import Fit, Problem
from betafield.process.laplace import Mode, mode
from betafield.process.pooled import Blocked, Loose, Spread

Floats = npt.NDArray[np.float64]

# r² divided by the number of hyper-parameters.
RADIUS = 1.5
# Members with less weight relative to the heaviest are dropped; of many, all may have little.
LIGHT = 1e-3
# Tolerance of the modes off the centre, in nats.
NEAR = 1e-4
# Most functions for a star, and most entries of Φ̃ for importance weights.
MOST_FUNCTIONS, MOST_ENTRIES = 450, 1 << 21


class Member(NamedTuple):
    """A normal distribution of the coefficients, and its weight.

    Parameters
    ----------
    problem : Problem
        Rows, link and prior.
    mode : Mode
        θ, the functions, and the mode of their coefficients.
    centre : array of shape (m,)
        Mean of the coefficients.
    factor : array of shape (m, m), or Loose with categories
        U, upper triangular: their covariance is (U′U)⁻¹.
    log_weight : float
        Log weight, up to a constant that all members share.
    which : int
        The process, and so the box, it belongs to.
    is_weighed : bool
        Whether draws get importance weights by the likelihood of the rows.
    """

    problem: Problem
    mode: Mode
    centre: Floats
    factor: Any
    log_weight: float
    which: int
    is_weighed: bool

    @property
    def lengths(self) -> Floats:
        """Length scales, in units of the box."""
        return self.mode.lengths

    @property
    def deviation(self) -> float:
        """σ, the standard deviation of the field far from all trials."""
        return math.sqrt(self.mode.variance)

    @property
    def base(self) -> float:
        """c₀, the mean of the field there."""
        return law.base(self.problem, self.mode)


def members(fits: dict[int, Fit]) -> tuple[Member, ...]:
    """Return the members of processes, given by index, without those of little weight."""
    found = [member for which, fit in fits.items() for member in of_fit(fit, which)]
    return heavy(found)


def heavy(found: list[Member]) -> tuple[Member, ...]:
    """Return members without those of little weight."""
    w = shares(found)
    least = LIGHT * w.max()
    return tuple(member for member, share in zip(found, w, strict=True) if share > least)


def shares(found: list[Member] | tuple[Member, ...]) -> Floats:
    """Return the weights of members, which sum to 1."""
    logs = np.array([member.log_weight for member in found])
    w = np.exp(logs - logs.max())
    return np.asarray(w / w.sum())


def of_fit(fit: Fit, which: int) -> Iterator[Member]:
    """Yield the members of a process."""
    root = np.ascontiguousarray(linear.factor(fit.covariance).T)
    weight = fit.objective + float(np.log(np.diag(root)).sum())
    if not has_star(fit):
        yield _whole(fit, weight, which)
        return
    is_weighed = len(fit.problem.rows.x) * len(fit.mode.b) <= MOST_ENTRIES
    U = fit.mode.curvature.factor()
    yield Member(fit.problem, fit.mode, fit.mode.b, U, weight, which, is_weighed)
    phi = design(fit.mode.basis, fit.problem.rows.x)
    for theta, factor in star(fit.theta, root, fit.problem.ends):
        moved = linear.product((theta - fit.theta)[None], fit.slopes.moves)[0]
        at = mode(theta, *fit.problem, fit.mode.f + phi.values(moved), NEAR)
        objective = at.evidence + fit.problem.log_prior(theta)
        log_weight = weight - fit.objective + objective + factor
        U = at.curvature.factor()
        yield Member(fit.problem, at, at.b, U, log_weight, which, is_weighed)


def has_star(fit: Fit) -> bool:
    """Return whether a process has members off the centre."""
    if fit.mode.basis.layout is not None:
        return False
    return fit.problem.rows.d <= FEW and len(fit.mode.b) <= MOST_FUNCTIONS


def star(
    theta: Floats, root: Floats, ends: tuple[Floats, Floats]
) -> Iterator[tuple[Floats, float]]:
    """Yield hyper-parameters off the centre, and the logarithms of their weight factors."""
    d = len(theta)
    square = RADIUS * d
    factor = 0.5 * square - math.log(2.0 * (square - d))
    for axis in range(d):
        for sign in (-1.0, 1.0):
            yield np.clip(theta + sign * math.sqrt(square) * root[:, axis], *ends), factor


def _whole(fit: Fit, log_weight: float, which: int) -> Member:
    """Return a process as a single member whose variance includes the uncertainty of θ."""
    surface = law.surface(fit)
    if isinstance(surface.wide, Spread):
        assert isinstance(fit.mode.curvature, Blocked)
        loose = Loose(fit.mode.curvature, fit.slopes.moves, linear.factor(surface.wide.theta))
        return Member(fit.problem, fit.mode, surface.b, loose, log_weight, which, False)
    factor = linear.factor(linear.inverse(linear.factor(surface.wide)))
    return Member(fit.problem, fit.mode, surface.b, factor, log_weight, which, False)
