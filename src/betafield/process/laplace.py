"""Laplace's approximation, given hyper-parameters: the mode, its evidence and their derivatives.

A process is f = Φ̃b, b ~ N(0, I). Fisher scoring finds the mode of log-likelihood − ½b′b: with
score g and information W of the rows at f,

    M₀ = I + Φ̃′WΦ̃ = U′U,   b ← M₀⁻¹ Φ̃′(Wf + g),   evidence = log-lik − ½b′b − Σ log U_jj.

If the link is not canonical or trials are distorted, scoring converges only linearly, so near the
mode Newton steps are taken, with the observed information −g′ instead of W. If outcomes contradict
their contexts, −g′ may be far above W and scoring overshoots: once a step has had to be cut to less
than a quarter, the weights are the larger of W and −g′.

For θ = (log σ, log ℓ), with G = ∂ log D/∂θ, S = M₀⁻¹, M = I − S, v the leverages φ̃′Sφ̃ of the rows:

    ∂b/∂θ       (G∘b) S
    gradient    ½G (b² − diag M) + (G∘b) S · Φ̃′(−½ v W′)
    information ½G (M∘M) G′

The gradient is exact if Fisher information equals the observed one (logit without contexts).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process import linear, wrapped
from betafield.process.basis import QUADRATIC, Basis, Prior, basis
from betafield.process.curvature import Curvature, Low, Whole
from betafield.process.design import SPARSE, Design, of_rows
from betafield.process.likelihood import Likelihood, Reading
from betafield.process.links import LOGIT, Link
from betafield.process.pooled import Blocked, Covariance
from betafield.process.rows import Rows

Floats = npt.NDArray[np.float64]

# Scoring stops when a step promises a smaller gain: during the search for θ, and for a final mode.
ROUGH, FINE = 5e-3, 1e-16
# Bound of the coefficient in Anderson mixing.
MIXED = 4.0
# Newton steps are tried once a scoring step promises less gain than NEARBY, and rejected if they
# promise more than MOST_PROMISED.
NEARBY, MOST_PROMISED = 0.5, 2.0
# After they failed, the promised gain must fall by this factor before they are tried again.
LESS = 0.1
# If less than this share of a scoring step could be taken, curvature is larger than it assumes.
SHORT = 0.25
# Most steps, and how many times as many for a final mode: rarely, if outcomes contradict their
# contexts, they are needed. Most halvings of a step. A loss smaller than SLACK is rounding.
STEPS, PATIENCE, HALVINGS, SLACK = 60, 4, 30, 1e-11


class Mode(NamedTuple):
    """A mode, and the quantities computed with it.

    Parameters
    ----------
    theta : array of shape (1 + d,)
        (log σ, log ℓ).
    basis : Basis
        The basis functions.
    b : array of shape (m,)
        Coefficients.
    curvature : Curvature
        M₀ at the mode, factored.
    f : array of shape (r,)
        Latent values of the rows.
    reading : Reading
        The likelihood at f.
    evidence : float
        Laplace's approximation of log P(outcomes | θ).
    """

    theta: Floats
    basis: Basis
    b: Floats
    curvature: Curvature
    f: Floats
    reading: Reading
    evidence: float

    @property
    def lengths(self) -> Floats:
        """Return the length scales, in units of the box.

        A polynomial reaches over the whole domain, and further along features that matter less.
        """
        own = np.exp(self.theta[1 : 1 + len(self.basis.margin)])
        if self.basis.form == QUADRATIC:
            own /= min(1.0, float(own.min()))
        return wrapped.lengths(own, self.basis.kinds)

    @property
    def variance(self) -> float:
        """Return the variance of f far from all trials: σ².

        That of a polynomial is its prior variance on average over the domain, if it is larger:
        σ² E(z + z²/2), z = Σ (x_a − ½)²/ℓ_a².
        """
        sigma = math.exp(2.0 * self.theta[0])
        if self.basis.form != QUADRATIC:
            return sigma
        u = np.exp(-2.0 * self.theta[1 : 1 + len(self.basis.margin)])
        # Of a uniform x, (x − ½)² has the mean 1/12, and its square has 1/80.
        first = float(u.sum()) / 12.0
        second = first**2 + float((u**2).sum()) * (1.0 / 80.0 - 1.0 / 144.0)
        return sigma * max(1.0, first + 0.5 * second)


class Slopes(NamedTuple):
    """Derivatives of a mode and its evidence with respect to θ.

    Parameters
    ----------
    gradient : array of shape (1 + d,)
        Gradient of the evidence.
    information : array of shape (1 + d, 1 + d)
        Expected information of θ.
    S : array of shape (m, m), or Spread with categories
        Covariance of the coefficients.
    leverages : array of shape (r,)
        Posterior variances of the rows' latent values.
    moves : array of shape (1 + d, m)
        ∂b/∂θ.
    """

    gradient: Floats
    information: Floats
    S: Covariance
    leverages: Floats
    moves: Floats


def mode(
    theta: Floats,
    rows: Rows,
    link: Link,
    prior: Prior,
    near: Floats | None = None,
    gain: float = FINE,
    steps: int = STEPS,
    sparse: float = SPARSE,
) -> Mode:
    """Return the mode for these hyper-parameters; `near` are latent values to start from."""
    return _sought(theta, rows, link, prior, near, gain, steps, sparse)[0]


def sloped(
    theta: Floats,
    rows: Rows,
    link: Link,
    prior: Prior,
    near: Floats | None = None,
    gain: float = FINE,
) -> tuple[Mode, Slopes]:
    """Return the mode and its derivatives with respect to the hyper-parameters."""
    found, phi = _sought(theta, rows, link, prior, near, gain, STEPS, SPARSE)
    return found, _slopes(found, phi)


def _sought(
    theta: Floats,
    rows: Rows,
    link: Link,
    prior: Prior,
    near: Floats | None,
    gain: float,
    steps: int,
    sparse: float,
) -> tuple[Mode, Design]:
    """Return the mode and the design matrix at the rows."""
    functions, said = basis(theta, prior), Likelihood.of(rows, link)
    phi = _design(functions, rows, sparse)
    f = np.zeros(len(rows.x)) if near is None else near
    reading = said.read(f)
    _, b = _scored(phi, f, reading, reading.information)
    at, differs = _at(phi, b, said), _differs(said)
    nearby, is_steep = NEARBY, False
    before: tuple[Floats, Floats] | None = None
    for _ in range(steps if gain > FINE else PATIENCE * steps):
        weight = at.reading.steepest if is_steep else at.reading.information
        curvature, target = _scored(phi, at.f, at.reading, weight)
        step = target - at.b
        promised = 0.5 * curvature.form(step)
        if promised < gain:
            break
        if differs and promised < nearby and isinstance(curvature, Whole | Low):
            nearby = LESS * promised
            nearer = _newton(phi, at, said, gain)
            if nearer is not at:
                at, before, is_steep = nearer, None, False
                continue
        aim = target if is_steep else _mixed(target, step, before)
        new = _upward(phi, at, aim - at.b, said)
        if new is at and before is None:  # and would be, however often this were tried
            break
        is_steep = is_steep or (differs and _is_short(new.b - at.b, aim - at.b))
        at, before = new, None if new is at or is_steep else (target, step)
    else:
        is_steep = True
    if is_steep:
        curvature = phi.curvature(at.reading.information)
    evidence = at.objective - curvature.half_log_determinant
    return Mode(theta, functions, at.b, curvature, at.f, at.reading, evidence), phi


def _design(functions: Basis, rows: Rows, sparse: float) -> Design:
    return of_rows(functions, rows.x, float(rows.n.max(initial=0.0)), sparse)


class _Point(NamedTuple):
    """Coefficients with their latent values, likelihood and objective."""

    b: Floats
    f: Floats
    reading: Reading
    objective: float


def _at(phi: Design, b: Floats, said: Likelihood) -> _Point:
    f = phi.values(b)
    reading = said.read(f)
    return _Point(b, f, reading, reading.log - 0.5 * float((b * b).sum()))


def _scored(phi: Design, f: Floats, reading: Reading, weight: Floats) -> tuple[Curvature, Floats]:
    """Return M₀ with these row weights, and the coefficients after a full scoring step."""
    curvature = phi.curvature(weight)
    return curvature, curvature.solve(phi.adjoint(weight * f + reading.score))


def _is_short(step: Floats, whole: Floats) -> bool:
    """Return whether less than the share SHORT of a step was taken."""
    return float((step * step).sum()) < SHORT**2 * float((whole * whole).sum())


def _differs(said: Likelihood) -> bool:
    """Return whether the observed information is available and differs from the expected one."""
    return not said.correlation and not (said.context is None and said.link is LOGIT)


def _newton(phi: Design, at: _Point, said: Likelihood, gain: float) -> _Point:
    """Return where steps of Newton lead, each of them upwards, until one promises less than this.

    That last step is taken too, so that less remains than a scoring step would promise.
    """
    promised = np.inf
    while promised >= gain:
        curvature = phi.curvature(at.reading.observed)
        step = curvature.solve(phi.adjoint(at.reading.score) - at.b)
        promised = 0.5 * curvature.form(step)
        if not promised < MOST_PROMISED:  # or NaN: the curvature is not that of a maximum
            break
        new = _at(phi, at.b + step, said)
        if new.objective < at.objective - SLACK:
            break
        at = new
    return at


def _mixed(target: Floats, step: Floats, before: tuple[Floats, Floats] | None) -> Floats:
    """Return the next target: this one and the last, mixed so that their steps nearly cancel.

    If the link is not canonical or trials are distorted, expected and observed information differ
    and scoring converges only linearly; Anderson mixing makes up for that.
    """
    if before is None:
        return target
    change = step - before[1]
    square = float(np.sum(change * change))
    share = float(np.sum(step * change)) / square if square > 0.0 else 0.0
    return np.asarray(target - np.clip(share, -MIXED, MIXED) * (target - before[0]))


def _upward(phi: Design, at: _Point, step: Floats, said: Likelihood) -> _Point:
    """Return the first point that is not lower, halving the step, or the old one if none is."""
    for _ in range(HALVINGS):
        new = _at(phi, at.b + step, said)
        if new.objective >= at.objective - SLACK:
            return new
        step = 0.5 * step
    return at


def slopes(mode: Mode, rows: Rows, sparse: float = SPARSE) -> Slopes:
    """Return the derivatives of a mode and its evidence with respect to the hyper-parameters."""
    return _slopes(mode, _design(mode.basis, rows, sparse))


def _slopes(mode: Mode, phi: Design) -> Slopes:
    """Return the same, given the design matrix at the rows."""
    if isinstance(mode.curvature, Blocked):
        return _of_blocks(mode, mode.curvature, phi)
    G, b = mode.basis.slope, mode.b
    S = mode.curvature.inverse()
    M = np.eye(len(S)) - S
    leverages = phi.forms(S)
    moves = linear.product(G * b, S)
    drift = phi.adjoint(-0.5 * leverages * mode.reading.slope)
    gradient = (0.5 * G * (b * b - np.diag(M))).sum(axis=1) + (moves * drift).sum(axis=1)
    information = 0.5 * linear.product(linear.product(G, M * M), G.T)
    return Slopes(gradient, information, S, leverages, moves)


def _of_blocks(mode: Mode, curvature: Blocked, phi: Design) -> Slopes:
    """Return the same with levels of categories, without forming M₀⁻¹."""
    G, b = mode.basis.slope, mode.b
    S = curvature.spread()
    leverages = phi.forms(S)
    moves = np.stack([curvature.solve(row) for row in G * b])
    drift = phi.adjoint(-0.5 * leverages * mode.reading.slope)
    gradient = (0.5 * G * (b * b - 1.0 + S.diagonal())).sum(axis=1) + (moves * drift).sum(axis=1)
    core, across, levels = curvature.squares()
    m, k = core.shape[0], len(levels)
    G0, G1 = np.ascontiguousarray(G[:, :m]), np.ascontiguousarray(G[:, m : m + k])
    half = linear.product(linear.product(G1, across), G0.T)
    own = linear.product(linear.product(G0, core), G0.T)
    own += half + half.T + linear.product(linear.product(G1, levels), G1.T)
    return Slopes(gradient, 0.5 * own, S, leverages, moves)
