"""The basis functions of a process: products of cosines on a box larger than the domain.

    φ_j(x) = Π_a cos(π j_a (x_a + δ_a)/(1 + 2δ_a)),   δ_a = ℓ_a rounded up to a power of √2

within [.15, 2], so that the basis is not constrained at the border of the domain. Prior variances
of the coefficients follow the spectrum of a squared-exponential kernel,

    D_j = σ² 2^#{a: j_a > 0} e^(−u_j/2) / Σ e^(−u/2),   u_j = Σ_a (ℓ_a π j_a/(1 + 2δ_a))²,

or, for a Matérn kernel, with (1 + u/2ν)^(−ν−d/2) instead of e^(−u/2); that of the constant is
larger by 4s², s the link's scale. Only functions with

    u_j ≤ 2 max(1, log(4t) + 2 log(σ/s) + Σ_a log min(1, 2.5 ℓ_a/(1 + 2δ_a)))

are kept, which t trials could distinguish from 0, and only the lowest if there are too many.

This form of a process is free. An additive one is a sum of functions of one feature each: only j
with at most one frequency above 0 are kept, and the sum in D is over these (in the limit, −log of
it stands for the last sum). A quadratic one is the Taylor polynomial of a free one about the middle
of the domain, with the kernel

    σ² (1 + z + z²/2),   z = Σ_a (x_a − ½)(y_a − ½)/ℓ_a².

On the largest box the cosines of total frequency ≤ 2 nearly are these monomials, so with
c = π/(1 + 2δ)

    D_j = σ² Π_a w_{j_a} (c ℓ_a)^(−2 j_a),   w = (1, 1, ⅛).

A feature may have levels with independent effects of variance τ²: one function per level is
appended, 1 at that level and 0 elsewhere, and θ ends in log τ. Columns of categories have such
levels too, with smooth deviations (`blocks`), and θ ends in log τ and log σ_d of each column.

A feature may be a circle, and two features may be the sphere: their functions are in `wrapped`.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process import blocks, wrapped
from betafield.process.blocks import Columns, Layout, Shared
from betafield.process.links import clipped
from betafield.process.wrapped import Kinds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Most functions kept: with one, two and three features, and with more.
MOST = {1: 64, 2: 256, 3: 400}
MOST_DENSE = 300
# Functions allowed even with few trials; beyond that, more than one per trial adds nothing.
LEAST_DENSE = 64
# Frequencies considered per feature, by number of features, so that sums stay short.
HIGHEST = {1: 128, 2: 40, 3: 16}
HIGHEST_DENSE = 8
# The same if each function is of one feature.
HIGHEST_ADDED = 24
# Bounds of the margin δ by which the box extends beyond the domain.
MARGINS = (0.15, 2.0)
# Forms of a process, and w of a quadratic one.
FREE, ADDITIVE, QUADRATIC = FORMS = ("free", "additive", "quadratic")
MONOMIALS = (1.0, 1.0, 0.125)
# Prior variance of the constant, in units of the link's scale squared.
CONSTANT = 4.0
# Beyond this u the spectrum adds nothing to its sum.
NOTHING = 80.0


class Effects(NamedTuple):
    """Levels of a feature with effects of their own.

    Parameters
    ----------
    feature : int
        Which one.
    at : array of shape (L,)
        Its levels, sorted, in units of the box.
    is_averaged : bool
        Whether answers are averages over all levels, seen or unseen: levels are then groups of
        trials. Otherwise they are for the level of a point, which adds variance τ² if unseen.
    """

    feature: int
    at: Floats
    is_averaged: bool = False

    def which(self, x: Floats) -> Ints:
        """Return the index of the level of each point, −1 if it is none of these."""
        if self.feature >= x.shape[1]:  # queried points have no group
            return np.full(len(x), -1)
        value = x[:, self.feature]
        index = np.minimum(np.searchsorted(self.at, value), len(self.at) - 1)
        return np.where(self.at[index] == value, index, -1)


class Prior(NamedTuple):
    """The prior of a process apart from σ and ℓ: scale s of the link, t and the kernel.

    Parameters
    ----------
    scale : float
        Scale s of the latent values.
    trials : float
        t, which decides the resolution.
    smoothness : float or None
        ν of a Matérn kernel; None for the squared exponential.
    effects : Effects or None
        Levels with effects of their own.
    columns : tuple of Column
        Columns of categories.
    kinds : tuple of str
        Kind of each feature: a line, a circle or a coordinate of the sphere; if empty, all lines.
    form : {"free", "additive", "quadratic"}
        Whether the process is a sum of functions of one feature each, or of second degree.
    """

    scale: float
    trials: float
    smoothness: float | None = None
    effects: Effects | None = None
    columns: Columns = ()
    kinds: Kinds = ()
    form: str = FREE


class Basis(NamedTuple):
    """The functions kept, and the prior of their coefficients.

    Parameters
    ----------
    margin : array of shape (d,)
        δ.
    J : integer array of shape (m, d)
        Frequencies; the constant comes first.
    root : array of shape (m + L,)
        √D, and τ of the levels.
    slope : array of shape (1 + d, m + L), with one more row if there are levels
        ∂ log D/∂θ.
    is_capped : bool
        Whether functions were dropped that the trials could have distinguished from 0.
    effects : Effects or None
        Levels of a feature.
    layout : Layout or None
        Levels of categories.
    kinds : tuple of str
        Kind of each feature; if empty, all lines.
    form : {"free", "additive", "quadratic"}
        As in `Prior`.
    """

    margin: Floats
    J: Ints
    root: Floats
    slope: Floats
    is_capped: bool
    effects: Effects | None = None
    layout: Layout | None = None
    kinds: Kinds = ()
    form: str = FREE

    def angles(self, x: Floats) -> Floats:
        """Return π (x + δ)/(1 + 2δ), with x clipped to the unit box."""
        return (clipped(x, 0.0, 1.0) + self.margin) * (np.pi / (1.0 + 2.0 * self.margin))


def basis(theta: Floats, prior: Prior) -> Basis:
    """Return the basis for hyper-parameters (log σ, log ℓ_1, …, log ℓ_d), and log τ of levels."""
    if prior.columns:
        shared = theta[: len(theta) - blocks.parameters(prior.columns)]
        return _with_columns(basis(shared, prior._replace(columns=())), theta, prior)
    if prior.effects is not None:
        return _with_effects(basis(theta[:-1], prior._replace(effects=None)), theta, prior.effects)
    if prior.kinds:
        return _wrapped(theta, prior)
    if prior.form == QUADRATIC:
        return _quadratic(theta, prior)
    sigma, lengths = math.exp(theta[0]), np.exp(theta[1:])
    d = len(lengths)
    margin = _margin(lengths)
    steps = (np.pi * lengths / (1.0 + 2.0 * margin)) ** 2
    if prior.form == ADDITIVE:
        total, pull = _added(steps)
        depth = max(1.0, _told(theta[0], prior) - math.log(total))
    else:
        total, pull = _normalised(steps, prior.smoothness)
        depth = _depth(theta[0], lengths, margin, prior)
    lowest = _lowest_added if prior.form == ADDITIVE else _lowest
    limit = _limit(depth, d, prior.smoothness)
    J, u, is_capped = lowest(tuple(steps), limit, _most(d, prior.trials))
    weight, rate = spectrum(u, d, prior.smoothness)
    D = sigma**2 * 2.0 ** (J > 0).sum(axis=1) * weight / total
    slope = np.empty((1 + d, len(J)))
    slope[0], slope[1:] = 2.0, pull[:, None] - (J**2 * steps).T * rate
    D, slope = _with_constant(D, slope, prior)
    return Basis(margin, J, np.sqrt(D), slope, is_capped, form=prior.form)


def _quadratic(theta: Floats, prior: Prior) -> Basis:
    """Return the basis of a process of second degree."""
    d = len(theta) - 1
    margin = np.full(d, MARGINS[1])
    units = np.eye(d, dtype=np.int64)
    pairs = [units[a] + units[b] for a in range(d) for b in range(a + 1)]
    J = np.vstack([np.zeros(d, dtype=np.int64), units, *pairs])
    reach = np.pi / (1.0 + 2.0 * margin) * np.exp(theta[1:])
    D = math.exp(2.0 * theta[0]) * np.prod(np.take(MONOMIALS, J) * reach ** (-2.0 * J), axis=1)
    slope = np.vstack([np.full(len(J), 2.0), -2.0 * J.T])
    D, slope = _with_constant(D, slope, prior)
    return Basis(margin, J, np.sqrt(D), slope, is_capped=False, form=QUADRATIC)


def _wrapped(theta: Floats, prior: Prior) -> Basis:
    """Return the basis if some features are circles or coordinates of the sphere."""
    own, kinds, nu = np.exp(theta[1:]), prior.kinds, prior.smoothness
    d = len(kinds) - (wrapped.LONGITUDE in kinds)  # a longitude has no length scale of its own
    margin = np.where(wrapped.of_kind(kinds, wrapped.LINE), _margin(own), 0.0)
    steps = wrapped.steps(own, margin, kinds)
    depth = _told(theta[0], prior) + wrapped.spans(own, margin, kinds)
    limit = _limit(max(1.0, depth), d, nu)
    most, highest = _most(len(kinds), prior.trials), HIGHEST.get(len(kinds), HIGHEST_DENSE)
    J, u, is_capped = wrapped.lowest(steps, kinds, limit, most, highest)
    weight, rate = spectrum(u, d, nu)
    total, pull = _summed(list(wrapped.ladders(steps, kinds, NOTHING)), d, nu)
    D = math.exp(2.0 * theta[0]) * 2.0 ** wrapped.doubled(J, kinds) * weight / total
    slope = np.vstack(
        [np.full(len(J), 2.0), pull[:, None] - (wrapped.squares(J, kinds) * steps).T * rate]
    )
    D, slope = _with_constant(D, slope, prior)
    return Basis(margin, J, np.sqrt(D), slope, is_capped, kinds=kinds)


def _margin(lengths: Floats) -> Floats:
    """Return δ."""
    return clipped(2.0 ** (np.ceil(2.0 * np.log2(lengths)) / 2.0), *MARGINS)


def _with_constant(D: Floats, slope: Floats, prior: Prior) -> tuple[Floats, Floats]:
    """Return D and ∂ log D/∂θ with the variance of the constant, which comes first, added."""
    constant = CONSTANT * prior.scale**2
    slope[:, 0] *= D[0] / (D[0] + constant)
    D[0] += constant
    return D, slope


def _with_effects(cosines: Basis, theta: Floats, effects: Effects) -> Basis:
    """Return a basis with one more function per level."""
    L = len(effects.at)
    (rows, m), slope = cosines.slope.shape, np.zeros((len(theta), len(cosines.root) + L))
    slope[:rows, :m] = cosines.slope
    slope[-1, m:] = 2.0
    root = np.concatenate([cosines.root, np.full(L, math.exp(theta[-1]))])
    return cosines._replace(root=root, slope=slope, effects=effects)


def _with_columns(cosines: Basis, theta: Floats, prior: Prior) -> Basis:
    """Return a basis with the functions of every level of categories appended."""
    variance, slope = cosines.root**2, cosines.slope.copy()
    variance[0] -= CONSTANT * prior.scale**2
    slope[:, 0] *= cosines.root[0] ** 2 / variance[0]
    found = blocks.layout(Shared(variance, slope), theta, prior.columns)
    (rows, m), root = cosines.slope.shape, np.empty(found.size)
    slope = np.zeros((len(theta), found.size))
    root[:m], slope[:rows, :m] = cosines.root, cosines.slope
    for column, each, first in zip(found.columns, found.effects, found.first, strict=True):
        at = slice(first, first + column.size * len(each.low))
        root[at], slope[:, at] = np.tile(each.root, column.size), np.tile(each.slope, column.size)
    return cosines._replace(root=root, slope=slope, layout=found)


def spectrum(u: Floats, d: int, smoothness: float | None) -> tuple[Floats, Floats]:
    """Return the spectral weight of u and −2 d log weight/du."""
    if smoothness is None:
        return np.exp(-0.5 * u), np.ones_like(u)
    power, ratio = smoothness + 0.5 * d, 1.0 + u / (2.0 * smoothness)
    return ratio**-power, power / (smoothness * ratio)


def _depth(log_sigma: float, lengths: Floats, margin: Floats, prior: Prior) -> float:
    """Return how far log weights may fall before t trials cannot distinguish them from 0."""
    spans = np.log(np.minimum(1.0, 2.5 * lengths / (1.0 + 2.0 * margin))).sum()
    return max(1.0, _told(log_sigma, prior) + float(spans))


def _told(log_sigma: float, prior: Prior) -> float:
    """Return the part of the depth due to t and σ."""
    return math.log(4.0 * max(prior.trials, 1.0)) + 2.0 * (log_sigma - math.log(prior.scale))


def _limit(depth: float, d: int, smoothness: float | None) -> float:
    """Return the largest u that is kept."""
    if smoothness is None:
        return 2.0 * depth
    return 2.0 * smoothness * math.expm1(depth / (smoothness + 0.5 * d))


def _most(d: int, trials: float) -> int:
    """Return the largest number of functions kept."""
    return MOST.get(d) or int(min(MOST_DENSE, max(LEAST_DENSE, trials)))


@functools.lru_cache(maxsize=64)
def _lowest(steps: tuple[float, ...], limit: float, most: int) -> tuple[Ints, Floats, bool]:
    """Return the frequencies with the lowest u = Σ steps_a j_a², sorted by frequency, and their u.

    One feature is added at a time: because u only grows, what is not among the lowest for some
    features is not among the lowest for more.
    """
    d = len(steps)
    J, u, is_capped = np.zeros((1, 0), dtype=np.int64), np.zeros(1), False
    for step in steps:
        j = np.arange(min(HIGHEST.get(d, HIGHEST_DENSE), int(math.sqrt(limit / step)) + 1))
        grown = (u[:, None] + step * j**2).ravel()
        J = np.column_stack([np.repeat(J, len(j), axis=0), np.tile(j, len(u))])
        kept = np.flatnonzero(grown <= limit)
        if len(kept) > most:
            kept, is_capped = kept[np.argsort(grown[kept], kind="stable")[:most]], True
        kept.sort()
        J, u = J[kept], grown[kept]
    return J, u, is_capped


def _lowest_added(steps: tuple[float, ...], limit: float, most: int) -> tuple[Ints, Floats, bool]:
    """Return the same for functions of one feature each."""
    axes = [np.arange(1, min(HIGHEST_ADDED, int(math.sqrt(limit / step)) + 1)) for step in steps]
    feature = np.repeat(np.arange(len(steps)), [len(j) for j in axes])
    J = np.zeros((1 + len(feature), len(steps)), dtype=np.int64)
    J[1 + np.arange(len(feature)), feature] = np.concatenate(axes)
    u = (J**2 * steps).sum(axis=1)
    kept = np.sort(np.argsort(u, kind="stable")[:most])
    return J[kept], u[kept], len(kept) < len(J)


def _normalised(steps: Floats, smoothness: float | None) -> tuple[float, Floats]:
    """Return Σ weight over all frequencies, and the weighted mean of −∂ log weight/∂ log ℓ."""
    axes = [step * np.arange(math.ceil(math.sqrt(NOTHING / step)) + 1) ** 2.0 for step in steps]
    if smoothness is None:
        weights = [np.exp(-0.5 * u) for u in axes]
        totals = np.array([w.sum() for w in weights])
        means = np.array([(w * u).sum() for w, u in zip(weights, axes, strict=True)]) / totals
        return float(totals.prod()), means
    grids = np.meshgrid(*axes, indexing="ij")
    weight, rate = spectrum(np.sum(grids, axis=0), len(steps), smoothness)
    total = float(weight.sum())
    return total, np.array([(weight * rate * grid).sum() / total for grid in grids])


def _added(steps: Floats) -> tuple[float, Floats]:
    """Return the same as `_normalised`, over functions of one feature each."""
    u = [step * np.arange(1, math.ceil(math.sqrt(NOTHING / step)) + 1) ** 2.0 for step in steps]
    total = 1.0 + sum(float(np.exp(-0.5 * each).sum()) for each in u)
    return total, np.array([float((np.exp(-0.5 * each) * each).sum()) / total for each in u])


def _summed(
    axes: list[tuple[Floats, Floats]], d: int, smoothness: float | None
) -> tuple[float, Floats]:
    """Return the same as `_normalised`, given each feature's values of u and their counts."""
    if smoothness is None:
        weights = [count * np.exp(-0.5 * u) for u, count in axes]
        totals = np.array([w.sum() for w in weights])
        means = [(w * u).sum() for w, (u, _) in zip(weights, axes, strict=True)] / totals
        return float(totals.prod()), means
    grids = np.meshgrid(*(u for u, _ in axes), indexing="ij")
    counts = np.meshgrid(*(count for _, count in axes), indexing="ij")
    weight, rate = spectrum(np.sum(grids, axis=0), d, smoothness)
    weight = weight * np.prod(counts, axis=0)
    total = float(weight.sum())
    return total, np.array([(weight * rate * grid).sum() / total for grid in grids])
