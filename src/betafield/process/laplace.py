"""Laplace's approximation, given hyper-parameters: the mode, its evidence and their slopes.

A process is f = Φ̃b, b ~ N(0, I). Fisher scoring finds the mode of log-likelihood − ½b′b: with
score g and information W of the rows at f,

    M₀ = I + Φ̃′WΦ̃ = U′U,   b ← M₀⁻¹ Φ̃′(Wf + g),   evidence = log-lik − ½b′b − Σ log U_jj.

Near the mode, if links are not canonical or trials distorted, steps are Newton's, with the observed
curvature −g′ in the place of W: those of scoring shrink by a constant factor each. Where outcomes
contradict contexts, −g′ may be far above W, and steps of scoring lead far beyond the mode: after
one of which less than a quarter was of use, weights are the larger of the two.

For θ = (log σ, log ℓ), with G = ∂ log D/∂θ, S = M₀⁻¹, M = I − S, v the leverages φ̃′Sφ̃ of the rows:

    ∂b/∂θ       (G∘b) S
    gradient    ½G (b² − diag M) + (G∘b) S · Φ̃′(−½ v W′)
    information ½G (M∘M) G′

The gradient is exact where Fisher's information is the observed one (logit without contexts).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process import linear, wrapped
from betafield.process.basis import Basis, Prior, basis
from betafield.process.curvature import Curvature, Low, Whole
from betafield.process.design import Design, of_rows
from betafield.process.likelihood import Likelihood, Reading
from betafield.process.links import LOGIT, Link
from betafield.process.pooled import Blocked
from betafield.process.rows import Rows

Floats = npt.NDArray[np.float64]

# Scoring ends where a step promises a smaller gain: on the way, and for a mode that is kept.
ROUGH, FINE = 5e-3, 1e-16
# How much of the step before is mixed in at the most.
MIXED = 4.0
# The gain that a step of scoring promises from which on those of Newton are tried, and the most
# that they may promise.
NEARBY, MOST_PROMISED = 0.5, 2.0
# After they led nowhere, how much less has to be promised until they are tried again.
LESS = 0.1
# A share of a step of scoring; if less was of use, there is more curvature than it sees.
SHORT = 0.25
# Steps at the most, and halvings of one of them. A loss smaller than SLACK is rounding.
STEPS, HALVINGS, SLACK = 60, 30, 1e-11


class Mode(NamedTuple):
    """A mode and what was found on the way.

    Parameters
    ----------
    theta : array of shape (1 + d,)
        (log σ, log ℓ).
    basis : Basis
        The functions.
    b : array of shape (m,)
        Coefficients.
    curvature : Curvature
        M₀ at the mode, factored.
    f : array of shape (r,)
        Latent values of the rows.
    reading : Reading
        The likelihood there.
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
        """Return the length scales, in units of the box."""
        own = np.exp(self.theta[1 : 1 + len(self.basis.margin)])
        return wrapped.lengths(own, self.basis.kinds)


class Slopes(NamedTuple):
    """How a mode and its evidence change with θ.

    Parameters
    ----------
    gradient : array of shape (1 + d,)
        Of the evidence.
    information : array of shape (1 + d, 1 + d)
        Expected, of θ.
    S : array of shape (m, m), or Spread with categories
        Covariance of the coefficients.
    leverages : array of shape (r,)
        Variances of the rows' latent values.
    moves : array of shape (1 + d, m)
        ∂b/∂θ.
    """

    gradient: Floats
    information: Floats
    S: Any
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
) -> Mode:
    """Return the mode for these hyper-parameters; `near` are latent values to start from."""
    return _sought(theta, rows, link, prior, near, gain, steps)[0]


def sloped(
    theta: Floats,
    rows: Rows,
    link: Link,
    prior: Prior,
    near: Floats | None = None,
    gain: float = FINE,
) -> tuple[Mode, Slopes]:
    """Return the same, and how it and its evidence change with the hyper-parameters."""
    found, phi = _sought(theta, rows, link, prior, near, gain, STEPS)
    return found, _slopes(found, phi)


def _sought(
    theta: Floats,
    rows: Rows,
    link: Link,
    prior: Prior,
    near: Floats | None,
    gain: float,
    steps: int,
) -> tuple[Mode, Design]:
    """Return the mode, and the design of the rows."""
    functions, said = basis(theta, prior), Likelihood.of(rows, link)
    phi = _design(functions, rows)
    f = np.zeros(len(rows.x)) if near is None else near
    reading = said.read(f)
    _, b = _scored(phi, f, reading, reading.information)
    at, differs = _at(phi, b, said), _differs(said)
    nearby, is_steep = NEARBY, False
    before: tuple[Floats, Floats] | None = None
    for _ in range(steps):
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


def _design(functions: Basis, rows: Rows) -> Design:
    return of_rows(functions, rows.x, float(rows.n.max(initial=0.0)))


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
    """Return M₀ with these weights of rows, and where a whole step of scoring with it leads."""
    curvature = phi.curvature(weight)
    return curvature, curvature.solve(phi.adjoint(weight * f + reading.score))


def _is_short(step: Floats, whole: Floats) -> bool:
    """Return whether less than this share of a step was taken."""
    return float((step * step).sum()) < SHORT**2 * float((whole * whole).sum())


def _differs(said: Likelihood) -> bool:
    """Return whether the observed curvature is known, and another than the expected one."""
    return not said.correlation and not (said.context is None and said.link is LOGIT)


def _newton(phi: Design, at: _Point, said: Likelihood, gain: float) -> _Point:
    """Return where steps of Newton lead, each of them upwards, until one promises less than this.

    The last one is taken too: what is left then is less than a step of scoring would promise.
    """
    promised = np.inf
    while promised >= gain:
        curvature = phi.curvature(at.reading.observed)
        step = curvature.solve(phi.adjoint(at.reading.score) - at.b)
        promised = 0.5 * curvature.form(step)
        if not promised < MOST_PROMISED:  # nor a number: it is not the curvature of a maximum
            break
        new = _at(phi, at.b + step, said)
        if new.objective < at.objective - SLACK:
            break
        at = new
    return at


def _mixed(target: Floats, step: Floats, before: tuple[Floats, Floats] | None) -> Floats:
    """Return where to go: scoring's target and that before, mixed so that their steps cancel.

    Expected curvature is not the observed one where links are not canonical or trials distorted:
    steps of scoring then shrink by a constant factor each, and Anderson's mixing makes up for it.
    """
    if before is None:
        return target
    change = step - before[1]
    square = float(np.sum(change * change))
    share = float(np.sum(step * change)) / square if square > 0.0 else 0.0
    return np.asarray(target - np.clip(share, -MIXED, MIXED) * (target - before[0]))


def _upward(phi: Design, at: _Point, step: Floats, said: Likelihood) -> _Point:
    """Return the first point on the way back from a step that is not lower, or the old one."""
    for _ in range(HALVINGS):
        new = _at(phi, at.b + step, said)
        if new.objective >= at.objective - SLACK:
            return new
        step = 0.5 * step
    return at


def slopes(mode: Mode, rows: Rows) -> Slopes:
    """Return how a mode and its evidence change with the hyper-parameters."""
    return _slopes(mode, _design(mode.basis, rows))


def _slopes(mode: Mode, phi: Design) -> Slopes:
    """Return the same, given the design of the rows."""
    if isinstance(mode.curvature, Blocked):
        return _of_blocks(mode, mode.curvature, phi)
    G, b = mode.basis.slope, mode.b
    S = mode.curvature.inverse()
    M = np.eye(len(S)) - S
    leverages = phi.forms(S)
    moves = linear.product(G * b, S)
    drift = phi.adjoint(-0.5 * leverages * mode.reading.slope)
    gradient = (0.5 * G * (b * b - np.diag(M))).sum(axis=1) + (moves * drift).sum(axis=1)
    information = 0.5 * linear.product(linear.product(G, M * M), _turned(G))
    return Slopes(gradient, information, S, leverages, moves)


def _of_blocks(mode: Mode, curvature: Blocked, phi: Design) -> Slopes:
    """Return the same with levels of categories: M₀⁻¹ is never made."""
    G, b = mode.basis.slope, mode.b
    S = curvature.spread()
    leverages = phi.forms(S)
    moves = np.stack([curvature.solve(row) for row in G * b])
    drift = phi.adjoint(-0.5 * leverages * mode.reading.slope)
    gradient = (0.5 * G * (b * b - 1.0 + S.diagonal())).sum(axis=1) + (moves * drift).sum(axis=1)
    core, across, levels = curvature.squares()
    m, k = core.shape[0], len(levels)
    G0, G1 = np.ascontiguousarray(G[:, :m]), np.ascontiguousarray(G[:, m : m + k])
    half = linear.product(linear.product(G1, across), _turned(G0))
    own = linear.product(linear.product(G0, core), _turned(G0))
    own += half + half.T + linear.product(linear.product(G1, levels), _turned(G1))
    return Slopes(gradient, 0.5 * own, S, leverages, moves)


def _turned(A: Floats) -> Floats:
    return np.ascontiguousarray(A.T)
