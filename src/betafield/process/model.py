"""All of it together: from sums by place to what is believed anywhere.

`find` learns what the process and the windows of its residuals are to be like (`Found`: length
scales, widths, weights), which is most of the work; `build` makes of it, and of the same sums or
of a few more, what answers questions (`Smooth`). Both are functions of the sums by place and of
nothing else: what `build` makes of what was found does not depend on how it was found. `learn` does
both for the same sums, to the same bits, in less time.

Examples
--------
>>> import numpy as np
>>> from betafield.process import mixtures
>>> from betafield.process.model import Sums, build, find
>>> points = np.array([[0.0], [10.0], [20.0], [30.0]])
>>> sums = Sums(points, np.full(4, 100), np.array([20, 20, 80, 80]))
>>> bounds = np.array([[0.0, 30.0]])
>>> smooth = build(sums, bounds, find(sums, bounds))
>>> mixtures.mean(smooth.laws(points)).round(1)
array([0.2, 0.2, 0.8, 0.8])
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield._locks import cached
from betafield.process import law
from betafield.process.boxes import Box
from betafield.process.ensemble import Member, members
from betafield.process.finding import alone, find, inside, is_repeated, places, search
from betafield.process.fit import SHORTEST, Fit, weights
from betafield.process.found import NONE, Component, Found, Window
from betafield.process.ladder import stretched
from betafield.process.laplace import FINE as EXACT
from betafield.process.law import Surface
from betafield.process.laws import Laws
from betafield.process.likelihood import success
from betafield.process.residuals import (
    corrected,
    logit_variance,
    parts,
    residuals,
    variance,
    widened,
    with_windows,
)
from betafield.process.rows import FINE, Levels, Rows
from betafield.process.scales import boxed
from betafield.process.sums import Sums, at
from betafield.process.trees import About, Trees
from betafield.process.unknown import find_unknown, fit_of, matched, moments
from betafield.windows import Forest, Places

__all__ = ["Component", "Found", "Smooth", "Sums", "Window", "build", "find", "learn"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# Length scales beyond which a point is far from a trial.
FAR = 2.0


class Beliefs(NamedTuple):
    """What is believed at points, and what it is made of.

    Parameters
    ----------
    xs : list of arrays of shape (q, d)
        The points, in units of every component's box.
    process : Laws
        What the processes believe.
    mean : array of shape (q,)
        Their mean of π.
    held : list of arrays of shape (q,)
        ΣW over each of the windows.
    question : integer array of shape (q,)
        What is asked: 0 a place that was seen, 1 a new one, 2 + a a new level of a.
    laws : Laws
        All of it together.
    """

    xs: list[Floats]
    process: Laws
    mean: Floats
    held: list[Floats]
    question: Ints
    laws: Laws

    def kept(self, j: int, window: Window) -> Floats:
        """Return 1 − β, what a window leaves of the process, at every point."""
        return np.asarray(1.0 / (1.0 + window.tau * self.held[j]))


@dataclass(frozen=True, eq=False)
class Smooth:
    """A smooth probability: what a process and windows of its residuals believe anywhere.

    Parameters
    ----------
    boxes : tuple of Box
        Own units to the unit box, one per component.
    fits : tuple of Fit
        One per component.
    windows : tuple of Window
        Those in use, in the units of the first component.
    fine : Rows or None
        Trials by place or fine cell, whose residuals windows add up; None without windows.
    spread : array of shape (d,)
        Variance between levels of every feature.
    levels : tuple of array or None
        Levels of every feature that were seen, in units of the first box; None: it has none.
    nodes : array of shape (k, u)
        Values of rates that are not known; fits are those of every component at all of them.
    """

    boxes: tuple[Box, ...]
    fits: tuple[Fit, ...]
    windows: tuple[Window, ...] = ()
    fine: Rows | None = None
    spread: Floats = field(default_factory=lambda: NONE)
    levels: Levels = ()
    nodes: Floats = field(default_factory=lambda: NONE)

    @cached
    def surfaces(self) -> list[Surface]:
        """The processes, as far as answers need them."""
        return [law.surface(fit) for fit in self.fits]

    @cached
    def weights(self) -> Floats:
        """The weights of the processes among themselves."""
        return weights(self.fits)

    @cached
    def members(self) -> tuple[Member, ...]:
        """The joint posterior of the processes, as draws are made of it."""
        kept, _ = law.counted(self.weights)
        return members({int(i): self.fits[i] for i in kept})

    @property
    def by_component(self) -> Floats:
        """The weights of the components, at all nodes together."""
        return np.asarray(self.weights.reshape(-1, max(len(self.nodes), 1)).sum(axis=1))

    @property
    def node_weights(self) -> Floats:
        """The weights of the nodes, in all components together."""
        return np.asarray(self.weights.reshape(-1, max(len(self.nodes), 1)).sum(axis=0))

    @property
    def rates(self) -> list[tuple[Floats, Floats]]:
        """Shapes of the Beta laws with mean and variance of what is believed of unknown rates."""
        told = [matched(*moments(x, self.node_weights)) for x in self.nodes.T]
        return [(np.array([alpha]), np.array([beta])) for alpha, beta in told]

    @property
    def box(self) -> Box:
        """The box of the first component, and of windows."""
        return self.boxes[0]

    @property
    def lengths(self) -> Floats:
        """Length scales of the heaviest process, in shares of the box."""
        return self.fits[int(np.argmax(self.weights))].lengths

    @property
    def is_capped(self) -> bool:
        """Whether the heaviest process cannot follow all that the trials could have told.

        It has too few functions, or trials in cells would make it shorter than it may be.
        """
        best = self.fits[int(np.argmax(self.weights))]
        is_shortest = bool(np.any(best.theta[1 : 1 + len(best.lengths)] <= SHORTEST))
        is_short = is_shortest and not best.problem.rows.is_places
        return best.mode.basis.is_capped or is_short

    @property
    def group_deviation(self) -> float:
        """Deviation of the effects of groups in log-odds about π = ½, by the heaviest process."""
        best = self.surfaces[int(np.argmax(self.weights))]
        slope = float(best.link.rise(np.zeros(1))[1][0]) / 0.25
        return best.tau * slope

    def laws(self, points: Floats, n_jobs: int | None = None) -> Laws:
        """Return what is believed of π at points, in own units."""
        return self.beliefs(points, n_jobs).laws

    def beliefs(self, points: Floats, n_jobs: int | None = None) -> Beliefs:
        """Return what is believed at points, in own units, and what it is made of."""
        xs = inside(list(self.boxes), points)
        process, m = law.believed(self.surfaces, self.weights, xs)
        question = np.zeros(len(points), dtype=np.int64)
        if not self.windows:
            return Beliefs(xs, process, m, [], question, process)
        has_questions = bool(self.windows[0].others.size)
        about = About.uncompiled(self._trees, xs[0])
        question = self._asked(about) if has_questions else question
        v = logit_variance(process, m)
        sums = [about.sums(w.stretch, w.width, n_jobs).T for w in self.windows]
        means, variances = [], []
        for window, (up, down, W) in zip(self.windows, sums, strict=True):
            means.append(corrected(m, up - down, W, window.tau))
            variances.append(variance(v, W, window.tau, self.is_shared(window, question)))
        held = [W for _, _, W in sums]
        if not has_questions:
            laws = with_windows(process, means, variances, self.window_weights[0])
            return Beliefs(xs, process, m, held, question, laws)
        weights = self.window_weights[question].T
        laws = widened(with_windows(process, means, variances, weights), self.added[question])
        return Beliefs(xs, process, m, held, question, laws)

    def is_shared(self, window: Window, question: Ints) -> Bools:
        """Return where the process is taken to err as it does in the window about the point."""
        return np.asarray(window.is_whole & ~((question == 1) & self._is_repeated))

    def process_mean(self, points: Floats) -> Floats:
        """Return the mean of π under the processes alone, which takes a fraction of the time."""
        return law.mean(self.surfaces, self.weights, inside(list(self.boxes), points))

    def far(self, points: Floats) -> Bools:
        """Return which points are further than two length scales from every trial.

        Distances are Euclidean, every feature in its length scale of the heaviest process.
        """
        best = int(np.argmax(self.weights))
        if not self.lengths.size:  # there are categories only
            return np.zeros(len(points), dtype=np.bool_)
        x = self._in_lengths(self.boxes[best].inside(points)[:, : len(self.lengths)])
        return np.asarray(self._nearby.sums(x, FAR)[:, 0] == 0)

    def _in_lengths(self, x: Floats) -> Floats:
        """Return points of the box of the heaviest process in its length scales."""
        kinds = self.boxes[int(np.argmax(self.weights))].kinds
        return stretched(x, 1.0 / self.lengths, kinds) if kinds else x / self.lengths

    def overdispersion(self) -> float:
        """Return Pearson's statistic of rows with two trials and more over its degrees of freedom.

        About 1 if trials at a place are independent; NaN if there are no such rows.
        """
        fit = self.fits[int(np.argmax(self.weights))]
        rows, f = fit.problem.rows, fit.mode
        s = success(f.f, rows.context, fit.problem.link)
        several = rows.n >= 2.0
        chi = (rows.k - rows.n * s.q) ** 2 / (rows.n * s.q * s.rest)
        free = 1.0 - fit.slopes.leverages * f.reading.information
        return float(chi[several].sum() / free[several].sum()) if several.any() else math.nan

    @cached
    def _trees(self) -> Trees:
        """Sums of residuals at fine rows over windows."""
        assert self.fine is not None
        xs = places(list(self.boxes), self.fine)
        left_over = residuals(law.mean(self.surfaces, self.weights, xs), self.fine)
        held = parts(left_over.score, left_over.information)
        return Trees(self.fine.x, held, self.fine.kinds)

    @cached
    def _nearby(self) -> Forest:
        """Places of trials in length scales."""
        rows = self.fits[int(np.argmax(self.weights))].problem.rows
        x = rows.x[:, : rows.d]
        axes = np.ascontiguousarray(self._in_lengths(x).T)
        return Forest(len(axes)).insert(Places(axes, np.ones((1, len(x)), dtype=np.int64)))

    @cached
    def window_weights(self) -> Floats:
        """Weights of the process and of windows, shape (questions, 1 + windows)."""
        w = np.array([[window.weight, *window.others] for window in self.windows]).T
        return np.column_stack([1.0 - w.sum(axis=1), w])

    @cached
    def added(self) -> Floats:
        """Variance between levels that a question has on top."""
        has_effects = any(fit.problem.prior.effects is not None for fit in self.fits)
        added = np.zeros_like(self.spread) if has_effects else self.spread
        return np.concatenate([np.zeros(2), added if added.size else np.zeros(self._features)])

    @property
    def _features(self) -> int:
        return len(self.boxes[0].axes)

    @cached
    def _is_repeated(self) -> bool:
        """Whether places have trials enough for weights of their own at new places."""
        return self.fine is not None and is_repeated(self.fine)

    def _asked(self, about: About) -> Ints:
        """Return what is asked: 0 a place that was seen, 1 a new one, 2 + a a new level of a."""
        seen = about.sums(np.ones(self._features), 0.0)[:, 2] > 0.0
        question = np.where(seen, 0, 1)
        for a in np.argsort(self.spread, kind="stable"):
            if self.levels[a] is not None:
                question[~np.isin(about.queries[:, a], self.levels[a])] = 2 + a
        return question


def build(sums: Sums, bounds: Floats, found: Found, gain: float = EXACT) -> Smooth:
    """Return what answers questions, of these trials and what was found.

    Modes are sought until a step gains less than `gain`.
    """
    levels = sums.levels() if sums.group is None and _needs_levels(found) else ()
    boxes: dict[tuple[str, ...], Box] = {}
    rows: dict[tuple[tuple[str, ...], int | None], Rows] = {}
    for component in found.components:
        scale, effect = component.scale, component.effect
        if scale not in boxes:
            boxes[scale] = boxed(sums, bounds, scale)
        if (scale, effect) not in rows:
            kept = () if effect is None else alone(levels, effect)
            rows[scale, effect] = sums.rows(boxes[scale], levels=kept)
    each = tuple(boxes[component.scale] for component in found.components)
    fits = tuple(
        fit_of(rows[one.scale, one.effect], found, i, gain)
        for i, one in enumerate(found.components)
    )
    if not found.windows:
        return Smooth(each, fits, nodes=found.nodes)
    fine = _fine(sums, each[0], levels, Smooth(each, fits, nodes=found.nodes))
    return _beside_windows(found, each, fits, fine, levels)


def learn(
    sums: Sums, bounds: Floats, with_windows: bool = True, scale: str | tuple[str, ...] = "auto"
) -> tuple[Found, Smooth]:
    """Return what is found for these trials, as `find` does, and what `build` makes of it.

    Processes that were settled while searching are not settled again.
    """
    if sums.rates:
        found = find_unknown(sums, bounds, with_windows, scale)
        return found, build(sums, bounds, found)
    done = search(sums, bounds, with_windows, scale)
    if not done.is_settled:
        return done.found, build(sums, bounds, done.found)
    boxes = tuple(process.box for process in done.processes)
    fits = tuple(process.fit for process in done.processes)
    if done.match is None:
        return done.found, Smooth(boxes, fits)
    smooth = Smooth(boxes, fits)
    if done.found.windows:
        smooth = _beside_windows(done.found, boxes, fits, done.match.rows, done.levels)
    smooth.__dict__["surfaces"] = done.match.surfaces  # computed once, as `cached` would
    return done.found, smooth


def _beside_windows(
    found: Found, boxes: tuple[Box, ...], fits: tuple[Fit, ...], fine: Rows, levels: Levels
) -> Smooth:
    """Return processes with windows of their residuals at fine rows."""
    held = tuple(
        np.unique(fine.x[:, a]) if found.spread.size and at is not None else None
        for a, at in enumerate(levels)
    )
    return Smooth(boxes, fits, found.windows, fine, found.spread, held, found.nodes)


def _fine(sums: Sums, box: Box, levels: Levels, process: Smooth) -> Rows:
    """Return trials by place or fine cell, at the means of rates that are not known."""
    rows = sums.rows(box, FINE, levels)
    if not process.nodes.size:
        return rows
    return rows._replace(context=at(rows.context, process.node_weights @ process.nodes))


def _needs_levels(found: Found) -> bool:
    return bool(found.windows) or any(each.effect is not None for each in found.components)
