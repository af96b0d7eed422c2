"""Scores by whole groups: what is asked decides the weights of process and windows.

A question about a place that was seen is answered by weights from trials left out alone; about a
new place whose levels were seen, by weights from places left out whole; about a new level of a
feature, by weights from its levels left out whole. For a group G, C the posterior covariance of f
between its rows, g and W their scores and weights on the link's scale,

    a = (I − WC)⁻¹ g,   f₋ = f − C a,   variance diag((I − CW)⁻¹ C),

and the residuals of every other row j gain a_j C_jG a (`following`). Trials of a group are not
independent: the temperature is 4√φ, φ the mean over groups of (Σ(k − nq))²/Σ nq(1−q), at least 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from betafield.process import averages, law, linear
from betafield.process.design import matrix
from betafield.process.fit import Fit, hashes
from betafield.process.following import followed
from betafield.process.ladder import WIDTHS
from betafield.process.likelihood import polynomial
from betafield.process.residuals import NEVER, TAUS, Residuals, Window, columns, corrected, sums
from betafield.process.rows import Rows
from betafield.process.scores import TEMPERATURE, Scored

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

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
    """The process without a group: its mean of π there, and what others' scores gain."""

    m: Floats
    gain: Floats


class Pairs(NamedTuple):
    """What leaving groups out needs of all rows, on the scale of the fit's link."""

    fit: Fit
    P: Floats
    shifted: Floats
    f: Floats
    score: Floats
    root: Floats
    follow: Floats


def by_group(
    rows: Rows,
    left_over: Residuals,
    labels: npt.NDArray[np.generic],
    ways: tuple[Floats, ...],
    fit: Fit,
) -> Grouped:
    """Return the scores of the process and of windows, groups of rows of one label left out."""
    pairs = _pairs(fit, rows)
    totals, spreads = [], []
    for group in _groups(rows, labels):
        without = _without(pairs, group)
        q = np.array(
            [
                _success(rows.taken(group), m)
                for m in _candidates(rows, left_over, group, without, ways)
            ]
        )
        n, k = rows.n[group], rows.k[group]
        totals.append((xlogy(k, q) + xlogy(n - k, 1.0 - q)).sum(axis=1))
        spreads.append(np.sum(k - n * q[0]) ** 2 / np.sum(n * q[0] * (1.0 - q[0])))
    names = [
        Window(i, b, tau) for i in range(len(ways)) for b in range(len(WIDTHS)) for tau in TAUS
    ]
    scored = Scored((None, *names), np.sum(totals, axis=0))
    return Grouped(scored, max(1.0, float(np.mean(spreads))))


def level_variance(
    windows: tuple[Window | None, ...], weights: Floats, ways: tuple[Floats, ...], feature: int
) -> float:
    """Return the variance between levels of a feature, which a new level has on top.

    Σ τ · weight of the windows along that feature alone.
    """
    alone = np.eye(len(ways[0]))[feature]
    return float(
        sum(
            w * window.tau
            for window, w in zip(windows, weights, strict=True)
            if window is not None and np.array_equal(ways[window.stretch], alone)
        )
    )


def _groups(rows: Rows, labels: npt.NDArray[np.generic]) -> Iterator[Index]:
    """Yield the rows of groups, in an order that only hashes decide, while they are few enough."""
    _, which = np.unique(labels, return_inverse=True)
    which = which.ravel()
    lowest = np.full(which.max() + 1, np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(lowest, which, hashes(rows))
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which))
    used = 0
    for group in np.argsort(lowest, kind="stable"):
        held = order[ends[group - 1] if group else 0 : ends[group]]
        if used and used + len(held) > MOST:
            return
        used += len(held)
        yield held


def _pairs(fit: Fit, rows: Rows) -> Pairs:
    P = matrix(fit.mode.basis, rows.x)
    both = linear.product(P, np.column_stack([fit.mode.b, law.shift(fit)]))
    f = np.ascontiguousarray(both[:, 0])
    score, information, follow = followed(fit, rows, f)
    return Pairs(fit, P, both[:, 1], f, score, np.sqrt(information), follow)


def _without(pairs: Pairs, group: Index) -> Without:
    """Return the process without the rows of a group.

    By B = I − √W C √W, positive definite: (I − WC)⁻¹ = I + √W B⁻¹ √W C.
    """
    link, turned = pairs.fit.problem.link, linear.product(pairs.P[group], pairs.fit.slopes.S)
    C = linear.product(turned, np.ascontiguousarray(pairs.P[group].T))
    root, score = pairs.root[group], pairs.score[group]
    scaled = root[:, None] * C
    inverse = linear.inverse(linear.factor(np.eye(len(group)) - scaled * root))
    half = linear.product(inverse, scaled)
    a = score + root * linear.product(half, score[:, None])[:, 0]
    v = np.diag(C) + (scaled * half).sum(axis=0)
    centre = pairs.f[group] + pairs.shifted[group] - linear.product(C, a[:, None])[:, 0]
    deviation = np.sqrt(np.clip(v, 1e-9, MOST_VARIANCE))
    m = np.clip(averages.mean(link, centre, deviation), NEVER, 1.0 - NEVER)
    gain = linear.product(pairs.P, linear.product(a[None], turned).T.copy())[:, 0] * pairs.follow
    return Without(m, gain)


def _candidates(
    rows: Rows, left_over: Residuals, group: Index, without: Without, ways: tuple[Floats, ...]
) -> Iterator[Floats]:
    """Yield π at the rows of a group that was left out, by the process and by all windows."""
    yield without.m
    others = np.setdiff1d(np.arange(len(rows.x)), group)
    gained = (left_over.score + without.gain)[others]
    held = columns(gained, left_over.information[others])
    for way in ways:
        total = sums(rows.x[group], rows.x[others], held, way)
        for b in range(len(WIDTHS)):
            for tau in TAUS:
                yield corrected(without.m, total.score[:, b], total.information[:, b], tau)


def _success(rows: Rows, pi: Floats) -> Floats:
    return np.clip(polynomial(rows.context, pi, 1.0 - pi)[0], NEVER, 1.0 - NEVER)
