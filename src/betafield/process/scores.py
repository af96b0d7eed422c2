"""Process and windows of its residuals, weighed by leave-one-out scores.

Every trial at a sample of places is left out: its own counts are removed from the window, the
process predicts without it (`leaving`), and the residuals of the others are updated (`following`).
A candidate's score is the log probability of the outcomes,

    P = q(expit(logit m₋ + Σg₋/(1/τ + ΣW₋))),

and its weight is ∝ prior · e^(score/T): the prior is ½ for the process, and ½ shared by all
windows; T = 4 keeps the error on every function tried within a few per cent of the better of the
two. Windows only get the excess over the process's e^(score/T), because those that predict no
better add nothing and would only widen intervals. At most twelve candidates are kept.

The sample consists of the rows with the lowest hashes: as many as have the information of 2,000
undistorted trials, at most 8,000, because a trial with a guess rate of ½ is less informative.
Windows that look hopeless after the first quarter of the sample are not scored on the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from betafield import bernstein
from betafield._locks import cached
from betafield.process import law, leaving, linear
from betafield.process.design import design, matrix, product
from betafield.process.fit import Fit, hashes, weights
from betafield.process.following import Following, Moves, MovesOfLevels, Own
from betafield.process.ladder import WIDTHS
from betafield.process.leaving import LEAST as LEAST_LEFT
from betafield.process.likelihood import success
from betafield.process.links import clipped
from betafield.process.pooled import Spread
from betafield.process.residuals import (
    NEVER,
    TAUS,
    Residuals,
    Window,
    by_category,
    log_odds,
    parts,
    residuals,
    stretches,
)
from betafield.process.rows import Rows
from betafield.process.trees import About, Trees

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Index = npt.NDArray[np.intp]

# Size of the sample in undistorted trials, and its most places as a multiple of that.
SAMPLE, MOST = 2_000, 4
# The share of the sample scored first, and the standard deviations beyond which to give up windows.
FIRST, DEVIATIONS = 0.25, 3.0
# Bounds of log odds.
FURTHEST = log_odds(np.array([0.0, 1.0]))
# T, the most candidates kept, and their least weight relative to the heaviest.
TEMPERATURE, KEPT, LEAST = 4.0, 12, 0.01


class Scored(NamedTuple):
    """Candidates with their scores; None is the process alone."""

    candidates: tuple[Window | None, ...]
    scores: Floats


class Entries(NamedTuple):
    """Trials to leave out: those of a row with the same outcome are one entry.

    Parameters
    ----------
    row : index array of shape (e,)
        Index of the row.
    is_success : boolean array of shape (e,)
        The outcome.
    trials : array of shape (e,)
        Number of trials.
    """

    row: Index
    is_success: Bools
    trials: Floats


@dataclass(frozen=True, eq=False)
class Contest:
    """A process and all windows of its residuals, to score against each other.

    Parameters
    ----------
    fits : tuple of Fit
        The process, under each link and in all units.
    rows : Rows
        Places or fine cells of all trials, in the units of the heaviest fit.
    xs : tuple of array of shape (r, d)
        Their coordinates in the units of each fit.
    left_over : Residuals
        What the process leaves over there.
    surfaces : list of Surface
        The fits, as far as answers need them.
    spacings : array of shape (d,) or None
        Least distance between levels of each feature; ∞ if it has none.
    """

    fits: tuple[Fit, ...]
    rows: Rows
    xs: tuple[Floats, ...]
    left_over: Residuals
    surfaces: list[law.Surface]
    spacings: Floats | None = None

    @property
    def best(self) -> Fit:
        """The heaviest fit."""
        return self.fits[int(np.argmax(weights(self.fits)))]

    @cached
    def ways(self) -> tuple[Floats, ...]:
        """The stretches of windows."""
        ways = stretches(self.best.lengths, self.spacings, self.rows.kinds)
        return by_category(ways, len(self.rows.columns)) if self.rows.columns else ways

    @cached
    def following(self) -> Following:
        """How residuals depend on the heaviest fit."""
        return Following.of(self.best, self.rows)

    @cached
    def trees(self) -> Trees:
        """Trees that sum g⁺, g⁻, W and h over windows."""
        held = parts(self.left_over.score, self.left_over.information)
        values = np.column_stack([held, self.following.follow])
        return Trees(self.rows.x, values, self.rows.kinds)

    @property
    def candidates(self) -> tuple[Window | None, ...]:
        """The process, and all windows."""
        widths = range(len(WIDTHS))
        return (
            None,
            *(Window(i, b, tau) for i in range(len(self.ways)) for b in widths for tau in TAUS),
        )


def contest(
    fits: tuple[Fit, ...], rows: Rows, xs: tuple[Floats, ...], spacings: Floats | None = None
) -> Contest:
    """Return the contest between processes and windows of their residuals at rows."""
    surfaces = [law.surface(fit) for fit in fits]
    m = law.mean(surfaces, weights(fits), list(xs))
    return Contest(fits, rows, xs, residuals(m, rows), surfaces, spacings)


def scored(match: Contest, deviations: float = DEVIATIONS) -> Scored:
    """Return the scores of all candidates, −∞ for those given up after the first trials.

    On the first trials, every second width is scored, then the neighbours of promising ones.
    """
    order = sampled(match.rows, match.left_over)
    first = max(1, int(FIRST * len(order)))
    start, rest = (
        Leaving.of(match, entries(match.rows, some)) for some in (order[:first], order[first:])
    )
    glance = glanced(len(match.ways))
    logs = start.logs(glance)
    if not rest.trials:
        is_open = np.ones(len(logs), dtype=bool)
    else:
        is_open = beside(promising(logs, glance, len(order) / first, deviations=deviations))
    if (is_open & ~glance).any():
        logs += start.logs(is_open & ~glance)
    total = np.where(is_open, logs.sum(axis=1), -np.inf)
    if rest.trials and is_open[1:].any():
        total[is_open] += rest.logs(is_open)[is_open].sum(axis=1)
    return Scored(match.candidates, total)


def glanced(ways: int) -> Bools:
    """Return which candidates are scored first: the process, and every second width."""
    widths = np.arange(len(WIDTHS)) % 2 == 0
    widths[-1] = True
    return np.append(True, np.tile(np.repeat(widths, len(TAUS)), ways))


def beside(is_open: Bools) -> Bools:
    """Return the open candidates, and those whose next narrower or wider one is open."""
    each = is_open[1:].reshape(-1, len(WIDTHS), len(TAUS))
    both = each.copy()
    both[:, 1:] |= each[:, :-1]
    both[:, :-1] |= each[:, 1:]
    return np.append(is_open[:1], both.ravel())


def opened(is_open: Bools) -> Iterator[tuple[int, int, list[tuple[int, float]]]]:
    """Yield each stretch and width with open candidates, and these with their τ."""
    each = is_open[1:].reshape(-1, len(WIDTHS), len(TAUS))
    for i, b in np.argwhere(each.any(axis=2)).tolist():
        first = 1 + (i * len(WIDTHS) + b) * len(TAUS)
        yield i, b, [(first + j, TAUS[j]) for j in np.flatnonzero(each[i, b]).tolist()]


def sampled(rows: Rows, left_over: Residuals, size: int = SAMPLE) -> Index:
    """Return the rows whose trials are left out, in order of their hashes.

    Together they have the information of `size` undistorted trials, if there are enough rows.
    """
    plain = left_over.m * (1.0 - left_over.m)
    order = np.argsort(hashes(rows), kind="stable")
    worth = np.cumsum((left_over.weight / plain)[order])
    enough = int(np.searchsorted(worth, size)) + 1
    return order[: min(enough, MOST * size)]


def entries(rows: Rows, sample: Index) -> Entries:
    """Return the trials of these rows."""
    n, k = rows.n[sample], rows.k[sample]
    won, lost = k > 0.0, n - k > 0.0
    return Entries(
        np.concatenate([sample[won], sample[lost]]),
        np.concatenate([np.ones(won.sum(), dtype=bool), np.zeros(lost.sum(), dtype=bool)]),
        np.concatenate([k[won], (n - k)[lost]]),
    )


def promising(
    logs: Floats,
    asked: Bools,
    times: float,
    temperature: float = TEMPERATURE,
    deviations: float = DEVIATIONS,
) -> Bools:
    """Return which scored candidates might still be kept with a sample `times` as large.

    Each difference to the best is extrapolated, with some standard deviations added.
    """
    prior = np.append(np.log(len(logs) - 1.0), np.zeros(len(logs) - 1))
    raised = np.where(asked, logs.sum(axis=1) / temperature + prior, -np.inf)
    best = int(np.argmax(raised))
    apart = logs - logs[best]
    deviation = np.sqrt((apart**2).sum(axis=1) * times * (times - 1.0))
    hoped = times * apart.sum(axis=1) + deviations * deviation
    is_open: Bools = asked & (hoped / temperature + prior - prior[best] > np.log(LEAST))
    is_open[0] = True
    return is_open


@dataclass(frozen=True, eq=False)
class Leaving:
    """Trials to leave out of a contest.

    Parameters
    ----------
    match : Contest
    given : Entries
        The trials.
    rows : index array of shape (u,)
        Their distinct rows.
    which : index array of shape (e,)
        Index of each entry's row among these.
    """

    match: Contest
    given: Entries
    rows: Index
    which: Index

    @classmethod
    def of(cls, match: Contest, given: Entries) -> Leaving:
        """Return entries to leave out of a contest."""
        rows, which = np.unique(given.row, return_inverse=True)
        return cls(match, given, rows, which.ravel())

    @property
    def trials(self) -> int:
        """The number of entries."""
        return len(self.given.row)

    def logs(self, is_open: Bools) -> Floats:
        """Return log P of entries under open candidates, 0 under others."""
        logs = np.zeros((len(is_open), self.trials))
        outcome = Outcome.of(self.match.rows.taken(self.given.row), self.given)
        if is_open[0]:
            logs[0] = outcome.log(self._f)
        for i, b, candidates in opened(is_open):
            g, W = self._sums(self.match.ways[i], b)
            at, tau = zip(*candidates, strict=True)
            inverse = 1.0 / np.array(tau)[:, None]
            logs[list(at)] = outcome.log(self._f + g / (inverse + W))
        return logs

    @cached
    def _f(self) -> Floats:
        """The logit of π without the trial."""
        return log_odds(_left(self.match, self.given))

    def _sums(self, way: Floats, b: int) -> tuple[Floats, Floats]:
        """Return Σg and ΣW over windows without the trial."""
        total = self._about.sums(way, float(WIDTHS[b]))
        others = total[:, 3] - self._own.h
        moved = (others * self._moves.means(way)[:, b])[self.which] * self._pull
        g = (total[:, 0] - total[:, 1])[self.which] - self._score + moved
        return g, np.maximum(total[:, 2] - self._weight, 0.0)[self.which]

    @cached
    def _score(self) -> Floats:
        """The score of every trial."""
        left, row = self.match.left_over, self.given.row
        return (self.given.is_success - left.q[row]) * left.ratio[row]

    @cached
    def _weight(self) -> Floats:
        """The weight of one trial of every row."""
        return self.match.left_over.weight[self.rows]

    @cached
    def _about(self) -> About:
        """Sums over windows about each row."""
        return About(self.match.trees, self.match.rows.x[self.rows])

    @cached
    def _turned(self) -> Floats:
        """C φ̃ of each row."""
        x, covariance = self.match.rows.x[self.rows], self.match.following.covariance
        assert not isinstance(covariance, Spread)  # with categories, see `_moves`
        return product(self.match.best.mode.basis, x, covariance)

    @cached
    def _moves(self) -> Moves | MovesOfLevels:
        """How f moves at other rows if a trial with score 1 is left out."""
        x = self.match.rows.x[self.rows]
        if self.match.rows.columns:
            return self.match.following.moves_of_levels(x, self._own)
        return self.match.following.moves(x, self._turned, self._own)

    @cached
    def _own(self) -> Own:
        """The part of its row that one trial is."""
        follow, n = self.match.following.follow, self.match.rows.n
        return Own(self.rows, follow[self.rows] / n[self.rows])

    @cached
    def _pull(self) -> Floats:
        """The value of a = g/(1 − vw) for each entry."""
        fit, some = self.match.best, self.match.rows.taken(self.rows)
        if some.columns:
            phi = design(fit.mode.basis, some.x)
            f, v = phi.values(fit.mode.b), phi.forms(self.match.following.covariance)
        else:
            P = matrix(fit.mode.basis, some.x)
            v = (self._turned * P).sum(axis=1)
            f = linear.product(P, fit.mode.b[:, None])[:, 0]
        s = success(f, some.context, fit.problem.link)
        left = s.ratio / np.maximum(1.0 - v * s.first * s.ratio, LEAST_LEFT)
        score = np.where(self.given.is_success, s.rest[self.which], -s.q[self.which])
        return np.asarray(score * left[self.which])


class Outcome(NamedTuple):
    """Outcomes: ±1, the number of trials, and the context of that outcome; None if plain."""

    sign: Floats
    trials: Floats
    context: Floats | None

    @classmethod
    def of(cls, rows: Rows, given: Entries) -> Outcome:
        """Return the outcomes of entries, one per row."""
        won = given.is_success
        context = np.where(won[:, None], rows.context, 1.0 - rows.context)
        sign = np.where(won, 1.0, -1.0)
        return cls(sign, given.trials, None if rows.is_plain else context)

    def log(self, f: Floats) -> Floats:
        """Return the log probability of the outcomes, given f = logit π."""
        if self.context is None:
            return np.asarray(-self.trials * np.log1p(np.exp(-self.sign * clipped(f, *FURTHEST))))
        q = bernstein.value_beside(self.context, expit(f), expit(-f))
        return np.asarray(self.trials * np.log(np.maximum(q, NEVER)))


def _left(match: Contest, given: Entries) -> Floats:
    """Return the mean of π at the rows of entries without one of their trials."""
    rows = match.rows.taken(given.row)
    kept, w = law.counted(weights(match.fits))
    each = [
        leaving.means(match.fits[i], rows._replace(x=match.xs[i][given.row]), given.is_success)
        for i in kept
    ]
    return np.asarray((w[:, None] * each).sum(axis=0))


def weighed(
    found: Scored, temperature: float = TEMPERATURE
) -> tuple[tuple[Window | None, ...], Floats]:
    """Return the candidates kept, the process first, and their weights.

    A window whose score is higher than the process's by s has weight ∝ e^(s/T) − 1, and none if it
    predicts no better.
    """
    gain = (found.scores - found.scores[0]) / temperature
    top = max(0.0, float(gain.max()))
    w = np.maximum(np.exp(gain - top) - np.exp(-top), 0.0)
    w[0] = (len(w) - 1) * np.exp(-top)
    order = np.argsort(-w, kind="stable")[:KEPT]
    kept = np.union1d([0], order[w[order] > LEAST * w[order[0]]])
    return tuple(found.candidates[i] for i in kept), np.asarray(w[kept] / w[kept].sum())
