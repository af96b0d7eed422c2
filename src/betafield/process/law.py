"""The posterior of a process at points: a normal law of f per point and link, mixed by evidence.

At a point φ̃ = φ̃(x), given the mode b with covariance S of the coefficients,

    f(x) ~ N(c, v₁),   v₁ = φ̃′(S + T J′HJ)φ̃,   T = 3,

J = ∂b/∂θ and H the covariance of θ: v₁ includes the uncertainty of the hyper-parameters. The centre
c is chosen so that the mean of π equals that under N(m, v₀), v₀ = φ̃′Sφ̃, which is more accurate;
mean and interval thus come from one law. m is not the mode but Laplace's mean to first order,

    m = φ̃′(b + S Φ̃′(½ v t)),   t the expected third derivative of the log-likelihood,

without contexts; under contexts m is the mode. Where trials say little, v₁ may be raised to what
a rougher process would have (`companion`).

At a distance e beyond the domain, per feature, laws return to the base rate:

    m ← c₀ + ρ (m − c₀),   v ← ρ² v + (1 − ρ²) σ²,   ρ = exp(−½ Σ (e/ℓ)²)

with c₀ such that a law with centre c₀ and variance σ² has the mean of π over all trials.

If trials come in groups with effects u ~ N(0, τ²), answers are about the average group,
π = E g(f + u), a smooth function of f. On the link's scale its law is taken to be normal, with the
standard deviation of f times the slope of that function.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process import averages, linear
from betafield.process.basis import Basis
from betafield.process.companion import Companion
from betafield.process.design import Design, design
from betafield.process.fit import Fit, Problem, weights
from betafield.process.laplace import Mode
from betafield.process.laws import Laws
from betafield.process.links import LOGIT, Link
from betafield.process.pooled import Spread
from betafield.process.sampling import can_be_sampled, moments

Floats = npt.NDArray[np.float64]

# T, the factor on the variance due to the hyper-parameters.
WIDENING = 3.0
# Components with less weight are left out.
NEGLIGIBLE = 1e-3
# Points per chunk if there are categories.
MANY = 8_192
NO_COMPANIONS: Mapping[int, Companion] = MappingProxyType({})


@dataclass(frozen=True)
class Surface:
    """The parts of a fitted process that queries need, without its rows.

    Parameters
    ----------
    link : Link
        π = g(f).
    basis : Basis
        The basis functions.
    b : array of shape (m,)
        Mean of the coefficients.
    narrow, wide : array of shape (m, m), or Spread with categories
        Their covariance given the hyper-parameters, and with the uncertainty of these.
    lengths : array of shape (d,)
        ℓ.
    variance : float
        σ², the variance of f far from all trials.
    base : float
        c₀, to which f returns far from all trials.
    tau : float
        Standard deviation of the group effects that answers average over; 0 without groups.
    """

    link: Link
    basis: Basis
    b: Floats
    narrow: Any
    wide: Any
    lengths: Floats
    variance: float
    base: float
    tau: float = 0.0


class Latent(NamedTuple):
    """Normal laws of f at points: mean m with variances v₀ and v₁."""

    mean: Floats
    narrow: Floats
    wide: Floats


def surface(fit: Fit, is_exact: bool = True) -> Surface:
    """Return the parts of a fit that queries need, under contexts with exact moments or without."""
    mode, link = fit.mode, fit.problem.link
    b, S = mode.b + shift(fit), fit.slopes.S
    if is_exact and can_be_sampled(fit):
        mean, S = moments(fit)
        b = 0.5 * (mode.b + mean)
    variance, tau = mode.variance, group_deviation(mode.basis)
    wide, own_base = widened(fit, S), base(fit.problem, mode)
    return Surface(link, mode.basis, b, S, wide, fit.lengths, variance, own_base, tau)


def widened(fit: Fit, S: Any) -> Any:
    """Return the covariance S of coefficients, with the hyper-parameters' uncertainty added."""
    moves = fit.slopes.moves
    if isinstance(S, Spread):
        return S.widened(moves, WIDENING * fit.covariance)
    H = linear.product(linear.product(moves.T, fit.covariance), moves)
    wide = S + WIDENING * H
    return 0.5 * (wide + wide.T)


def group_deviation(basis: Basis) -> float:
    """Return the standard deviation of the effects that answers average over, 0 if none."""
    effects = basis.effects
    if basis.layout is not None:
        each = zip(basis.layout.columns, basis.layout.effects, strict=True)
        return max((float(e.root[0]) for c, e in each if c.is_averaged), default=0.0)
    return float(basis.root[-1]) if effects is not None and effects.is_averaged else 0.0


def shift(fit: Fit) -> Floats:
    """Return the mean of the coefficients minus their mode."""
    rows = fit.problem.rows
    if not rows.is_plain:
        return np.zeros_like(fit.mode.b)
    push = design(fit.mode.basis, rows.x).adjoint(
        0.5 * fit.slopes.leverages * fit.mode.reading.third
    )
    if isinstance(fit.slopes.S, Spread):
        return fit.slopes.S.times(push)
    return np.asarray(linear.product(push[None], fit.slopes.S)[0])


def base(problem: Problem, mode: Mode) -> float:
    """Return c₀."""
    n, link = problem.rows.n, problem.link
    rate = np.array([np.sum(n * link.value(mode.f)) / n.sum()])
    deviation = np.array([math.hypot(math.sqrt(mode.variance), group_deviation(mode.basis))])
    return float(averages.centred(link, rate, deviation, link.inverse(rate))[0])


def latent(surface: Surface, x: Floats, companion: Companion | None = None) -> Latent:
    """Return the laws of f at points, which may lie beyond the unit box."""
    if surface.basis.layout is not None and len(x) > MANY:
        parts = [latent(surface, x[i : i + MANY], companion) for i in range(0, len(x), MANY)]
        return Latent(*map(np.concatenate, zip(*parts, strict=True)))
    phi = design(surface.basis, x)
    wide, rho = phi.forms(surface.wide), nearness(x, surface.lengths)
    wide = wide if companion is None else companion.raised(wide, x)
    m, narrow = _plain(surface, phi, rho)
    return Latent(m, narrow, _returned(surface, wide, rho))


def _plain(surface: Surface, phi: Design, rho: Floats) -> tuple[Floats, Floats]:
    """Return m and v₀."""
    m = surface.base + rho * (phi.values(surface.b) - surface.base)
    return m, _returned(surface, phi.forms(surface.narrow), rho)


def nearness(x: Floats, lengths: Floats) -> Floats:
    """Return ρ."""
    x = x[:, : len(lengths)]
    beyond = np.maximum(np.maximum(-x, x - 1.0), 0.0)
    return np.asarray(np.exp(-0.5 * ((beyond / lengths) ** 2).sum(axis=1)))


def _returned(surface: Surface, v: Floats, rho: Floats) -> Floats:
    return rho**2 * np.maximum(v, 0.0) + (1.0 - rho**2) * surface.variance


def laws(fits: tuple[Fit, ...], x: Floats) -> Laws:
    """Return the posterior of π at points, in units of the fits' box."""
    return mixed([surface(f) for f in fits], weights(fits), [x] * len(fits))


def mixed(surfaces: list[Surface], weights: Floats, xs: list[Floats]) -> Laws:
    """Return the posterior of π under weighted surfaces, at points in units of each one's box."""
    return believed(surfaces, weights, xs)[0]


def believed(
    surfaces: list[Surface],
    weights: Floats,
    xs: list[Floats],
    companions: Mapping[int, Companion] = NO_COMPANIONS,
) -> tuple[Laws, Floats]:
    """Return the posterior of π under weighted surfaces, and its mean.

    `companions` are those of surfaces, by index.
    """
    kept, w = counted(weights)
    centres, deviations, means = [], [], []
    for i in kept:
        link, tau = surfaces[i].link, surfaces[i].tau
        f = latent(surfaces[i], xs[i], companions.get(int(i)))
        means.append(averages.mean(link, f.mean, np.sqrt(f.narrow + tau**2)))
        f = f if tau == 0.0 else averaged(link, f, tau)
        centre, deviation = one_law(link, f, means[-1])
        centres.append(centre)
        deviations.append(deviation)
    links = tuple(surfaces[i].link for i in kept)
    found = Laws(links, w, np.stack(centres), np.stack(deviations))
    return found, np.asarray((w[:, None] * means).sum(axis=0))


def mean(surfaces: list[Surface], weights: Floats, xs: list[Floats]) -> Floats:
    """Return the mean of π under weighted surfaces, the same as in `believed`."""
    kept, w = counted(weights)
    means = [_mean(surfaces[i], xs[i]) for i in kept]
    return np.asarray((w[:, None] * means).sum(axis=0))


def _mean(surface: Surface, x: Floats) -> Floats:
    if surface.basis.layout is not None and len(x) > MANY:
        return np.concatenate([_mean(surface, x[i : i + MANY]) for i in range(0, len(x), MANY)])
    phi = design(surface.basis, x)
    m, narrow = _plain(surface, phi, nearness(x, surface.lengths))
    return averages.mean(surface.link, m, np.sqrt(narrow + surface.tau**2))


def counted(weights: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """Return the components that are not negligible, and their weights."""
    kept = np.flatnonzero(weights > NEGLIGIBLE)
    return kept, weights[kept] / weights[kept].sum()


def averaged(link: Link, f: Latent, tau: float) -> Latent:
    """Return the laws of g⁻¹(E g(f + u)), u ~ N(0, τ²)."""
    mean, slope = averages.mean_and_slope(link, f.mean, np.full_like(f.mean, tau))
    centre = link.inverse(mean)
    shrunk = (slope / np.maximum(link.rise(centre)[1], np.finfo(np.float64).tiny)) ** 2
    return Latent(centre, shrunk * f.narrow, shrunk * f.wide)


def one_law(link: Link, f: Latent, target: Floats | None = None) -> tuple[Floats, Floats]:
    """Return centre and standard deviation of the law with variance v₁ and the mean under v₀.

    `target` is that mean of π, if it is known.
    """
    narrow, wide = np.sqrt(f.narrow), np.sqrt(f.wide)
    target = averages.mean(link, f.mean, narrow) if target is None else target
    near = averages.guessed(link, target, wide) if link is LOGIT else f.mean
    return averages.centred(link, target, wide, near), wide
