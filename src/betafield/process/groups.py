"""Scores with whole groups held out: the kind of query decides the weights.

At a place with trials, process and windows have the weights found by leaving out single trials; at
a new place whose levels were seen, by leaving out whole places; at a new level of a feature, by
leaving out whole levels. For a group G, with C the posterior covariance of f between its rows, and
g and W their scores and weights on the link's scale,

    a = (I − WC)⁻¹ g,   f₋ = f − C a,   variance diag((I − CW)⁻¹ C),

and the residuals of every other row j gain h_j C_jG a (`following`). Trials of a group are not
independent, so the temperature is 4√φ, φ the mean over groups of (Σ(k − nq))²/Σ nq(1−q), at least
1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, xlogy

from betafield._locks import cached
from betafield.process import averages, law, linear
from betafield.process.design import matrix, product
from betafield.process.fit import hashes
from betafield.process.following import Moves, Own, followed
from betafield.process.ladder import WIDTHS, unit_of, units, window_sums
from betafield.process.likelihood import polynomial
from betafield.process.pooled import Spread
from betafield.process.residuals import NEVER, Window, log_odds, parts
from betafield.process.rows import Rows
from betafield.process.scores import (
    TEMPERATURE,
    Contest,
    Scored,
    beside,
    glanced,
    opened,
    promising,
)
from betafield.process.trees import About

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

# Most rows in the groups left out.
MOST = 2_000
# Upper bound of the variance of f at a row left out.
MOST_VARIANCE = 25.0
# Lower bound of 1 − vW, the share of the information that remains without a row.
LEAST = 1e-6


class Grouped(NamedTuple):
    """Scores of candidates with groups left out, and φ."""

    scored: Scored
    spread: float

    @property
    def temperature(self) -> float:
        """Return 4√φ."""
        return float(TEMPERATURE * np.sqrt(self.spread))


class Without(NamedTuple):
    """A process without each row's group: its mean of π at the row, and C φ̃′a per group."""

    m: Floats
    turned: Floats


def by_group(match: Contest, labels: npt.NDArray[np.generic]) -> Grouped:
    """Return the scores of process and windows with groups left out, the rows of one label each.

    A label is a number, or a row of numbers.
    """
    index, sizes = _groups(match.rows, labels)
    some = match.rows.taken(index)
    m, turned = _without(match, some, sizes)
    q = _success(some, m)
    spread = _spread(some, q, np.cumsum(sizes) - sizes)
    own = Own(index, match.following.follow[index], sizes)
    asked = Asked(match, index, sizes, m, match.following.moves(some.x, turned, own))
    glance = glanced(len(match.ways))
    totals = asked.scores(glance)
    hopeful = promising(totals[:, None], glance, 1.0, TEMPERATURE * math.sqrt(spread))
    more = beside(hopeful) & ~glance
    totals += asked.scores(more)
    totals[~(glance | more)] = -np.inf
    return Grouped(Scored(match.candidates, totals), spread)


@dataclass(frozen=True, eq=False)
class Asked:
    """Rows sorted by group, on which candidates are scored.

    Parameters
    ----------
    match : Contest
    index, sizes : integer array
        Indices of the rows, and the number of rows per group.
    m : array
        The process's mean of π without the group.
    moves : Moves
        How f moves at the other rows.
    """

    match: Contest
    index: Index
    sizes: Index
    m: Floats
    moves: Moves

    def scores(self, is_open: Bools) -> Floats:
        """Return the scores of open candidates, 0 for the others."""
        rows = self.match.rows.taken(self.index)
        found, f = np.zeros(len(is_open)), log_odds(self.m)
        if is_open[0]:
            found[0] = _score(rows, _success(rows, self.m))
        for i, b, candidates in opened(is_open):
            g, W = self._sums(self.match.ways[i], b)
            for at, tau in candidates:
                found[at] = _score(rows, _success(rows, expit(f + g / (1.0 / tau + W))))
        return found

    def _sums(self, way: Floats, b: int) -> tuple[Floats, Floats]:
        """Return Σg and ΣW without the group, for a stretch and a width."""
        total = self._about.sums(way, float(WIDTHS[b])) - self._own(way)[:, b]
        g = total[:, 0] - total[:, 1] + total[:, 3] * self.moves.means(way)[:, b]
        return g, np.maximum(total[:, 2], 0.0)

    @cached
    def _about(self) -> About:
        """Sums over windows about each row."""
        return About(self.match.trees, self.match.rows.x[self.index])

    def _own(self, way: Floats) -> Floats:
        """Return each group's own part in the sums over windows about its rows, by width."""
        key = tuple(way.tolist())
        if key not in self._kept:
            self._kept[key] = _own(self.match, self.index, self.sizes, way)
        return self._kept[key]

    @cached
    def _kept(self) -> dict[tuple[float, ...], Floats]:
        return {}


def level_effects(
    windows: tuple[Window | None, ...],
    weights: Floats,
    ways: tuple[Floats, ...],
    feature: int,
    spacing: float,
) -> tuple[float, float]:
    """Return the weight of windows that hold one level of a feature each, and Σ τ · weight.

    These are windows along that feature alone, narrower than the spacing of its levels.
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


def _groups(rows: Rows, labels: npt.NDArray[np.generic]) -> tuple[Index, Index]:
    """Return the rows of a sample of groups, group by group, and the groups' sizes.

    Groups are taken in order of their lowest hash, until there are too many rows.
    """
    axis = 0 if labels.ndim > 1 else None
    _, which = np.unique(labels, axis=axis, return_inverse=True)
    which = which.ravel()
    sizes, lowest = np.bincount(which), np.empty(which.max() + 1, dtype=np.uint64)
    order = np.argsort(which, kind="stable")
    lowest[:] = np.minimum.reduceat(hashes(rows)[order], np.cumsum(sizes) - sizes)
    first = np.argsort(lowest, kind="stable")
    kept = first[: max(1, int(np.searchsorted(np.cumsum(sizes[first]), MOST, side="right")))]
    ends = np.cumsum(sizes)
    each = [order[ends[i] - sizes[i] : ends[i]] for i in kept]
    return np.concatenate(each), sizes[kept]


def _without(match: Contest, rows: Rows, sizes: Index) -> Without:
    """Return the process without each group; rows are in order of groups of these sizes."""
    fit = match.best
    assert not isinstance(fit.slopes.S, Spread)  # groups are not left out beside categories
    P = matrix(fit.mode.basis, rows.x)
    turned = product(fit.mode.basis, rows.x, fit.slopes.S)
    f = linear.product(P, np.column_stack([fit.mode.b, law.shift(fit)]))
    score, information, _ = followed(fit, rows, np.ascontiguousarray(f[:, 0]))
    v = (turned * P).sum(axis=1)
    rest = np.maximum(1.0 - information * v, LEAST)
    a, moved, variance = score / rest, v * score / rest, v / rest
    for at in _several(sizes):
        C = linear.product(turned[at], np.ascontiguousarray(P[at].T))
        a[at], moved[at], variance[at] = _left_out(C, score[at], information[at])
    deviation = np.sqrt(np.clip(variance, 1e-9, MOST_VARIANCE))
    m = averages.mean(fit.problem.link, f.sum(axis=1) - moved, deviation)
    pulled = np.add.reduceat(a[:, None] * turned, np.cumsum(sizes) - sizes)
    return Without(np.clip(m, NEVER, 1.0 - NEVER), pulled)


def _left_out(C: Floats, score: Floats, information: Floats) -> tuple[Floats, Floats, Floats]:
    """Return a, Ca and the variances without a group.

    They use B = I − √W C √W, which is positive definite: (I − WC)⁻¹ = I + √W B⁻¹ √W C.
    """
    root = np.sqrt(information)
    scaled = root[:, None] * C
    inverse = linear.inverse(linear.factor(np.eye(len(C)) - scaled * root))
    half = linear.product(inverse, scaled)
    a = score + root * linear.product(half, score[:, None])[:, 0]
    return a, linear.product(C, a[:, None])[:, 0], np.diag(C) + (scaled * half).sum(axis=0)


def _several(sizes: Index) -> list[slice]:
    """Return the slices of groups with more than one row."""
    ends = np.cumsum(sizes)
    return [slice(ends[i] - sizes[i], ends[i]) for i in np.flatnonzero(sizes > 1)]


def _own(match: Contest, index: Index, sizes: Index, way: Floats) -> Floats:
    """Return each group's own part in the sums over windows about its rows."""
    x, left_over = match.rows.x[index], match.left_over
    held = parts(left_over.score[index], left_over.information[index])
    values = np.column_stack([held, match.following.follow[index]])
    unit = unit_of(values)
    columns = units(values, unit)
    own = np.repeat(columns[:, None], len(WIDTHS), axis=1)
    for at in _several(sizes):
        own[at] = window_sums(x[at], x[at], columns[at], way, match.rows.kinds)
    return own / unit


def _success(rows: Rows, pi: Floats) -> Floats:
    return np.clip(polynomial(rows.context, pi, 1.0 - pi)[0], NEVER, 1.0 - NEVER)


def _score(rows: Rows, q: Floats) -> float:
    return float(np.sum(xlogy(rows.k, q) + xlogy(rows.n - rows.k, 1.0 - q)))


def _spread(rows: Rows, q: Floats, starts: npt.NDArray[np.int64]) -> float:
    """Return φ, for groups of rows that start at these indices."""
    apart, expected = rows.k - rows.n * q, rows.n * q * (1.0 - q)
    chi = np.add.reduceat(apart, starts) ** 2 / np.add.reduceat(expected, starts)
    return max(1.0, float(np.mean(chi)))
