"""Scores by whole groups: what is asked decides the weights of process and windows.

A question about a place that was seen is answered by weights from trials left out alone; about a
new place whose levels were seen, by weights from places left out whole; about a new level of a
feature, by weights from its levels left out whole. For a group G, C the posterior covariance of f
between its rows, g and W their scores and weights on the link's scale,

    a = (I − WC)⁻¹ g,   f₋ = f − C a,   variance diag((I − CW)⁻¹ C),

and the residuals of every other row j gain h_j C_jG a (`following`). Trials of a group are not
independent: the temperature is 4√φ, φ the mean over groups of (Σ(k − nq))²/Σ nq(1−q), at least 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, xlogy

from betafield.process import averages, law, linear
from betafield.process.design import matrix
from betafield.process.fit import hashes
from betafield.process.following import followed
from betafield.process.ladder import UNIT, WIDTHS, units, window_sums
from betafield.process.likelihood import polynomial
from betafield.process.residuals import NEVER, TAUS, Window, log_odds, parts
from betafield.process.rows import Rows
from betafield.process.scores import TEMPERATURE, Contest, Scored

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Groups = list[npt.NDArray[np.intp]]

# Rows in groups that are left out, at the most.
MOST = 2_000
# The largest variance of a latent value that is left out.
MOST_VARIANCE = 25.0


class Grouped(NamedTuple):
    """Scores of candidates when groups are left out, and φ."""

    scored: Scored
    spread: float

    @property
    def temperature(self) -> float:
        """Return 4√φ."""
        return float(TEMPERATURE * np.sqrt(self.spread))


class Without(NamedTuple):
    """A process without a group: its mean of π at every row of it, and C φ̃′a."""

    m: Floats
    turned: Floats


def by_group(match: Contest, labels: npt.NDArray[np.generic]) -> Grouped:
    """Return the scores of the process and of windows, groups of rows of one label left out.

    A label is a number, or a row of them.
    """
    rows, groups = match.rows, _groups(match.rows, labels)
    coefficients = np.column_stack([match.best.mode.b, law.shift(match.best)])
    found = [_without(match, group, coefficients) for group in groups]
    m = np.concatenate([each.m for each in found])
    turned = np.repeat([each.turned for each in found], [len(g) for g in groups], axis=0)
    some = rows.taken(np.concatenate(groups))
    q = _success(some, m)
    scores = [_score(some, q)]
    for way in match.ways:
        own = np.concatenate([_own(match, group, way) for group in groups])
        means = match.following.means(some.x, turned, way)
        for b, width in enumerate(WIDTHS):
            total = match.trees.sums(some.x, way, float(width)) - own[:, b]
            g = total[:, 0] - total[:, 1] + total[:, 3] * means[:, b]
            W = np.maximum(total[:, 2], 0.0)
            for tau in TAUS:
                pi = expit(log_odds(m) + g / (1.0 / tau + W))
                scores.append(_score(some, _success(some, pi)))
    starts = np.cumsum([0, *(len(g) for g in groups[:-1])])
    return Grouped(Scored(match.candidates, np.array(scores)), _spread(some, q, starts))


def level_effects(
    windows: tuple[Window | None, ...],
    weights: Floats,
    ways: tuple[Floats, ...],
    feature: int,
    spacing: float,
) -> tuple[float, float]:
    """Return the weight of windows that hold one level of a feature each, and Σ τ · weight.

    They look at that feature alone, and are narrower than the spacing of its levels.
    """
    alone = np.eye(len(ways[0]))[feature]
    held = [
        (w, w * window.tau)
        for window, w in zip(windows, weights, strict=True)
        if window is not None
        and np.array_equal(ways[window.stretch], alone)
        and WIDTHS[window.width] < spacing
    ]
    weight, variance = np.sum(held, axis=0) if held else (0.0, 0.0)
    return float(weight), float(variance)


def _groups(rows: Rows, labels: npt.NDArray[np.generic]) -> Groups:
    """Return the rows of groups, in an order that only hashes decide, while they are few enough."""
    axis = 0 if labels.ndim > 1 else None
    _, which = np.unique(labels, axis=axis, return_inverse=True)
    which = which.ravel()
    lowest = np.full(which.max() + 1, np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(lowest, which, hashes(rows))
    each = np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which))[:-1])
    groups = [each[i] for i in np.argsort(lowest, kind="stable")]
    used = np.cumsum([len(group) for group in groups])
    return groups[: max(1, int(np.searchsorted(used, MOST, side="right")))]


def _without(match: Contest, group: Index, coefficients: Floats) -> Without:
    """Return the process without the rows of a group; given its mode and the way to its mean.

    By B = I − √W C √W, positive definite: (I − WC)⁻¹ = I + √W B⁻¹ √W C.
    """
    fit, rows = match.best, match.rows.taken(group)
    P = matrix(fit.mode.basis, rows.x)
    f = linear.product(P, coefficients)
    score, information, _ = followed(fit, rows, np.ascontiguousarray(f[:, 0]))
    turned = linear.product(P, fit.slopes.S)
    C = linear.product(turned, np.ascontiguousarray(P.T))
    root = np.sqrt(information)
    scaled = root[:, None] * C
    inverse = linear.inverse(linear.factor(np.eye(len(group)) - scaled * root))
    half = linear.product(inverse, scaled)
    a = score + root * linear.product(half, score[:, None])[:, 0]
    v = np.diag(C) + (scaled * half).sum(axis=0)
    centre = f.sum(axis=1) - linear.product(C, a[:, None])[:, 0]
    deviation = np.sqrt(np.clip(v, 1e-9, MOST_VARIANCE))
    m = averages.mean(fit.problem.link, centre, deviation)
    return Without(np.clip(m, NEVER, 1.0 - NEVER), linear.product(a[None], turned)[0])


def _own(match: Contest, group: Index, way: Floats) -> Floats:
    """Return the part of the group itself in the sums over windows about its rows."""
    x, left_over = match.rows.x[group], match.left_over
    held = parts(left_over.score[group], left_over.information[group])
    columns = units(np.column_stack([held, match.following.follow[group]]))
    return window_sums(x, x, columns, way) / UNIT


def _success(rows: Rows, pi: Floats) -> Floats:
    return np.clip(polynomial(rows.context, pi, 1.0 - pi)[0], NEVER, 1.0 - NEVER)


def _score(rows: Rows, q: Floats) -> float:
    return float(np.sum(xlogy(rows.k, q) + xlogy(rows.n - rows.k, 1.0 - q)))


def _spread(rows: Rows, q: Floats, starts: npt.NDArray[np.int64]) -> float:
    """Return φ, for rows of groups that start here."""
    apart, expected = rows.k - rows.n * q, rows.n * q * (1.0 - q)
    chi = np.add.reduceat(apart, starts) ** 2 / np.add.reduceat(expected, starts)
    return max(1.0, float(np.mean(chi)))
