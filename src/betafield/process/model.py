"""The whole model: from sums by place to posteriors anywhere.

`find` estimates the hyper-parameters of the process and of the windows of its residuals (`Found`:
length scales, widths, weights), which is most of the work. From these and from the same sums, or
a few more, `build` makes the model that answers queries (`Smooth`). Both depend on the sums by
place only, and the result of `build` does not depend on how its `Found` was obtained. `learn` does
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

from betafield._locks import cached, remember
from betafield.process import law
from betafield.process.boxes import Box
from betafield.process.companion import Companion, companion
from betafield.process.ensemble import Member, members
from betafield.process.finding import Asked, alone, find, inside, is_repeated, places, search
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

__all__ = ["Asked", "Component", "Found", "Smooth", "Sums", "Window", "build", "find", "learn"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

# A point is far from a trial if it is more than this many length scales away.
FAR = 2.0


class Beliefs(NamedTuple):
    """The posterior at points, and its parts.

    Parameters
    ----------
    xs : list of arrays of shape (q, d)
        The points, in units of each component's box.
    process : Laws
        The posterior of the processes alone.
    mean : array of shape (q,)
        Its mean of π.
    held : list of arrays of shape (q,)
        ΣW over each of the windows.
    question : integer array of shape (q,)
        Kind of query: 0 for a place with trials, 1 for a new place, 2 + a for a new level of
        feature a.
    laws : Laws
        The posterior of processes and windows together.
    """

    xs: list[Floats]
    process: Laws
    mean: Floats
    held: list[Floats]
    question: Ints
    laws: Laws

    def kept(self, j: int, window: Window) -> Floats:
        """Return 1 − β at every point: the share of the process that a window keeps."""
        return np.asarray(1.0 / (1.0 + window.tau * self.held[j]))


@dataclass(frozen=True, eq=False)
class Smooth:
    """A smooth probability: the posterior of processes and of windows of their residuals.

    Parameters
    ----------
    boxes : tuple of Box
        From own units to the unit box, one per component.
    fits : tuple of Fit
        One per component.
    windows : tuple of Window
        Those in use, in the units of the first component.
    fine : Rows or None
        Trials by place or fine cell, whose residuals are summed over windows; None without
        windows.
    spread : array of shape (d,)
        Variance between the levels of each feature.
    levels : tuple of array or None
        Levels with trials, per feature, in units of the first box; None if it has no levels.
    nodes : array of shape (k, u)
        Quadrature nodes of the unknown rates; `fits` then holds each component at every node.
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
        """The parts of the fits that queries need; negligible ones take no time."""
        kept, _ = law.counted(self.weights)
        return [law.surface(fit, i in kept) for i, fit in enumerate(self.fits)]

    @cached
    def companions(self) -> dict[int, Companion]:
        """The rougher companions of the processes that are not negligible, by index."""
        kept, _ = law.counted(self.weights)
        found = {int(i): companion(self.fits[i]) for i in kept}
        return {i: one for i, one in found.items() if one is not None}

    @cached
    def weights(self) -> Floats:
        """The weights of the processes, which sum to 1."""
        return weights(self.fits)

    @cached
    def members(self) -> tuple[Member, ...]:
        """The joint posterior of the processes, from which fields are drawn."""
        kept, _ = law.counted(self.weights)
        return members({int(i): self.fits[i] for i in kept})

    @property
    def by_component(self) -> Floats:
        """The weights of the components, summed over nodes."""
        return np.asarray(self.weights.reshape(-1, max(len(self.nodes), 1)).sum(axis=1))

    @property
    def node_weights(self) -> Floats:
        """The weights of the nodes, summed over components."""
        return np.asarray(self.weights.reshape(-1, max(len(self.nodes), 1)).sum(axis=0))

    @property
    def rates(self) -> list[tuple[Floats, Floats]]:
        """Shapes of the Beta distributions that match the posterior moments of unknown rates."""
        told = [matched(*moments(x, self.node_weights)) for x in self.nodes.T]
        return [(np.array([alpha]), np.array([beta])) for alpha, beta in told]

    @property
    def box(self) -> Box:
        """The box of the first component, and of windows."""
        return self.boxes[0]

    @property
    def lengths(self) -> Floats:
        """Length scales of the heaviest process, as fractions of the box."""
        return self.fits[int(np.argmax(self.weights))].lengths

    @property
    def is_capped(self) -> bool:
        """Whether the heaviest process is coarser than the trials would allow.

        Either its number of basis functions was capped, or trials are in cells and a length scale
        is at its lower bound.
        """
        best = self.fits[int(np.argmax(self.weights))]
        is_shortest = bool(np.any(np.log(best.lengths) <= SHORTEST + 1e-9))
        is_short = is_shortest and not best.problem.rows.is_places
        return best.mode.basis.is_capped or is_short

    @property
    def group_deviation(self) -> float:
        """Standard deviation of group effects, in log-odds at π = ½, by the heaviest process."""
        best = self.surfaces[int(np.argmax(self.weights))]
        slope = float(best.link.rise(np.zeros(1))[1][0]) / 0.25
        return best.tau * slope

    def laws(self, points: Floats, n_jobs: int | None = None) -> Laws:
        """Return the posterior of π at points, given in own units."""
        return self.beliefs(points, n_jobs).laws

    def beliefs(self, points: Floats, n_jobs: int | None = None, is_joint: bool = False) -> Beliefs:
        """Return the posterior at points, given in own units, and its parts.

        `is_joint` leaves companions out, as draws of whole fields do.
        """
        xs = inside(list(self.boxes), points)
        companions = law.NO_COMPANIONS if is_joint else self.companions
        process, m = law.believed(self.surfaces, self.weights, xs, companions)
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
        """Return where the process's error is taken to be the same all over the window.

        An unseen level has an effect of its own, which the window's trials do not have.
        """
        is_own = np.isin(question, [2 + a for a in self._effects])
        return np.asarray(window.is_whole & ~is_own & ~((question == 1) & self._is_repeated))

    @property
    def _effects(self) -> set[int]:
        """The features whose levels have effects in a process."""
        each = (fit.problem.prior.effects for fit in self.fits)
        return {effects.feature for effects in each if effects is not None}

    def process_mean(self, points: Floats) -> Floats:
        """Return the mean of π under the processes alone, which is much faster."""
        return law.mean(self.surfaces, self.weights, inside(list(self.boxes), points))

    def far(self, points: Floats) -> Bools:
        """Return which points are further than two length scales from every trial.

        Distances are Euclidean, each feature in units of its length scale in the heaviest process.
        """
        best = int(np.argmax(self.weights))
        if not self.lengths.size:  # all features are categories
            return np.zeros(len(points), dtype=np.bool_)
        x = self._in_lengths(self.boxes[best].inside(points)[:, : len(self.lengths)])
        return np.asarray(self._nearby.sums(x, FAR)[:, 0] == 0)

    def _in_lengths(self, x: Floats) -> Floats:
        """Return points of the heaviest process's box in units of its length scales."""
        kinds = self.boxes[int(np.argmax(self.weights))].kinds
        return stretched(x, 1.0 / self.lengths, kinds) if kinds else x / self.lengths

    def overdispersion(self) -> float:
        """Return Pearson's χ² over its degrees of freedom, for rows with at least two trials.

        It is about 1 if trials at a place are independent, and NaN if there are no such rows.
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
        """Trees that sum the residuals of fine rows over windows."""
        assert self.fine is not None
        xs = places(list(self.boxes), self.fine)
        left_over = residuals(law.mean(self.surfaces, self.weights, xs), self.fine)
        held = parts(left_over.score, left_over.information)
        return Trees(self.fine.x, held, self.fine.kinds)

    @cached
    def _nearby(self) -> Forest:
        """Places of trials, in units of length scales."""
        rows = self.fits[int(np.argmax(self.weights))].problem.rows
        x = rows.x[:, : rows.d]
        axes = np.ascontiguousarray(self._in_lengths(x).T)
        return Forest(len(axes)).insert(Places(axes, np.ones((1, len(x)), dtype=np.int64)))

    @cached
    def window_weights(self) -> Floats:
        """Weights of the process and the windows, shape (kinds of query, 1 + windows)."""
        w = np.array([[window.weight, *window.others] for window in self.windows]).T
        return np.column_stack([1.0 - w.sum(axis=1), w])

    @cached
    def added(self) -> Floats:
        """Variance between levels that is added, per kind of query."""
        added = np.zeros_like(self.spread) if self._effects else self.spread
        return np.concatenate([np.zeros(2), added if added.size else np.zeros(self._features)])

    @property
    def _features(self) -> int:
        return len(self.boxes[0].axes)

    @cached
    def _is_repeated(self) -> bool:
        """Whether places are repeated often enough for new places to have weights of their own."""
        return self.fine is not None and is_repeated(self.fine)

    def _asked(self, about: About) -> Ints:
        """Return the kind of each query, as in `Beliefs.question`."""
        seen = about.sums(np.ones(self._features), 0.0)[:, 2] > 0.0
        question = np.where(seen, 0, 1)
        for a in np.argsort(self.spread, kind="stable"):
            if self.levels[a] is not None:
                question[~np.isin(about.queries[:, a], self.levels[a])] = 2 + a
        return question


def build(sums: Sums, bounds: Floats, found: Found, gain: float = EXACT) -> Smooth:
    """Return the model that answers queries, given trials and the result of `find`.

    The search for a mode stops when a step gains less than `gain`.
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


def learn(sums: Sums, asked: Asked) -> tuple[Found, Smooth]:
    """Return what `find` returns for these trials, and what `build` makes of it.

    Processes that were fitted to convergence during the search are not fitted again.
    """
    if sums.rates:
        found = find_unknown(sums, asked)
        return found, build(sums, asked.bounds, found)
    done = search(sums, asked)
    if not done.is_settled:
        return done.found, build(sums, asked.bounds, done.found)
    boxes = tuple(process.box for process in done.processes)
    fits = tuple(process.fit for process in done.processes)
    if done.match is None:
        return done.found, Smooth(boxes, fits)
    smooth = Smooth(boxes, fits)
    if done.found.windows:
        smooth = _beside_windows(done.found, boxes, fits, done.match.rows, done.levels)
    remember(smooth, "surfaces", done.match.surfaces)
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
    """Return trials by place or fine cell, with unknown rates at their posterior means."""
    rows = sums.rows(box, FINE, levels)
    if not process.nodes.size:
        return rows
    return rows._replace(context=at(rows.context, process.node_weights @ process.nodes))


def _needs_levels(found: Found) -> bool:
    return bool(found.windows) or any(each.effect is not None for each in found.components)
