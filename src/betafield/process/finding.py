"""Estimating the hyper-parameters of processes and windows: most of the work of a fit.

Processes are fitted under both links and in the units worth trying (`scales`); with one or two
features and at least 3,000 trials a rougher process is fitted too. They are weighed by evidence,
and windows of their residuals by leave-one-out (`scores`). If windows along a single feature with
levels help, a process is fitted jointly with effects of those levels, and kept if it predicts
held-out trials better. Because a query may be about a known or a new place or level, whole places
and levels are also held out (`groups`).
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process.basis import FREE, Effects
from betafield.process.blocks import parameters
from betafield.process.boxes import Box
from betafield.process.correlations import correlated
from betafield.process.fit import Fit, fit, settled, weights
from betafield.process.found import NONE, Component, Found, Window
from betafield.process.groups import by_group, level_effects
from betafield.process.ladder import WIDTHS
from betafield.process.laplace import ROUGH
from betafield.process.links import LINKS, LOGIT, Link
from betafield.process.residuals import Window as Candidate
from betafield.process.rows import COARSE, FINE, Levels, Rows
from betafield.process.scales import Scale, fitted
from betafield.process.scores import TEMPERATURE, Contest, Scored, contest, scored, weighed
from betafield.process.sums import Sums

Floats = npt.NDArray[np.float64]
Kept = tuple[tuple[Candidate | None, ...], Floats]

# Processes with less weight are dropped.
LIGHT = 0.01
# The rougher process: its ν, the fewest trials and the most features for which it is tried, the
# factor on its length scales at the start, and its Newton steps (also with level effects).
SMOOTHNESS, ROUGH_FROM, ROUGH_FEATURES, LONGER, STEPS = 2.5, 3_000, 2, 1.5, 6
# For level effects: at least this many levels, trials per level, and weight of windows along them.
FEWEST_LEVELS, PER_LEVEL, OF_USE = 5, 3, 0.2
# They are kept if they are this many nats ahead.
CLEARLY = 2.0
# A length scale is short if it spans fewer levels. With level effects, log ℓ starts no lower than
# SMOOTH; TAU is their variance if no window can estimate it.
SHORT, SMOOTH, TAU = 3.0, math.log(0.8), 0.3
# Levels nearer to each other, as a fraction of the box, are not told apart.
NEAREST = 1e-9
# If windows of single levels weigh at least this, a new level's variance includes theirs.
SURE = 0.5
# Whole places are left out if there are at least this many trials per place.
REPEATED = 1.1
# A column with fewer levels does not show how much they vary: then a grid of these steps in log τ
# and log σ_d is used, and at most MOST_ON_GRID processes on it are kept.
FEW_LEVELS, GRID, MOST_ON_GRID = 20, (-1.2, -0.6, 0.0, 0.6, 1.2), 16


class Process(NamedTuple):
    """A fitted process, its units and its box."""

    scale: Scale
    box: Box
    fit: Fit


class Search(NamedTuple):
    """What was found, and what it was found with.

    Parameters
    ----------
    found : Found
    processes : list of Process
        Those that were found.
    is_settled : bool
        Whether each of them is at its mode, and not only near it.
    match : Contest or None
        That of the processes with windows of their residuals, if there was any.
    levels : tuple of array or None
        Levels of every feature.
    """

    found: Found
    processes: list[Process]
    is_settled: bool
    match: Contest | None = None
    levels: Levels = ()


class Asked(NamedTuple):
    """Which processes and windows are to be tried.

    Parameters
    ----------
    bounds : array of shape (d, 2)
        The domain, in own units.
    with_windows : bool
        Whether to weigh windows of the process's residuals against it.
    scale : {"auto", "range", "rank", "log"} or tuple of one of the last three per feature
        Units in which the field is smooth: own units, ranks or logarithms. "auto" weighs them by
        evidence.
    links : tuple of Link
        Links to weigh by evidence.
    """

    bounds: Floats
    with_windows: bool = True
    scale: str | tuple[str, ...] = "auto"
    links: tuple[Link, ...] = LINKS


def find(
    sums: Sums, bounds: Floats, with_windows: bool = True, scale: str | tuple[str, ...] = "auto"
) -> Found:
    """Return the best processes and windows for these trials; see `Asked`."""
    return search(sums, Asked(bounds, with_windows, scale)).found


def search(sums: Sums, asked: Asked) -> Search:
    """Return the best processes and windows for these trials, and what they were found with."""
    processes = _processes(sums, asked)
    # Windows would mistake the effect of a group or a row for one of its place.
    is_shared = sums.group is not None or sums.is_apart or not len(asked.bounds)
    kept = _unsure(processes)
    if not asked.with_windows or is_shared:
        return Search(_found(kept), kept, kept is processes)
    if sums.codes is not None:
        return _beside_levels(sums, kept, kept is processes)
    levels = sums.levels()
    fine = sums.rows(processes[0].box, FINE, levels)
    spacings = _spacings(sums, levels, processes[0].box)
    match = _contest(processes, fine, spacings)
    result = scored(match)
    feature = _levelled(match, weighed(result), sums, levels)
    if feature is not None:
        joint = _joint(sums, processes[0], levels, feature, match, weighed(result))
        other = _contest([joint], fine, spacings)
        outcome = scored(other)
        if _is_better(joint, outcome, processes[0], result):
            processes, match, result = [joint], other, outcome
    found = _weighed(_found(processes), match, result, _with_levels(sums, levels))
    return Search(found, processes, True, match, levels)


def _beside_levels(sums: Sums, processes: list[Process], is_settled: bool) -> Search:
    """Return processes with levels of categories, and windows over all levels and within each."""
    match = _contest(processes, sums.rows(processes[0].box, FINE), None)
    kept = weighed(scored(match))
    windows = _windows(match, [kept]) if len(kept[0]) > 1 else []
    found = _found(processes)._replace(windows=tuple(windows))
    return Search(found, processes, is_settled, match)


def _processes(sums: Sums, asked: Asked) -> list[Process]:
    """Return the processes with enough weight, the heaviest first."""
    tried = fitted(sums, asked.bounds, asked.scale, asked.links)
    each = [Process(one.scale, one.box, fit) for one in tried for fit in one.fits]
    if sums.is_apart:
        each += [one._replace(fit=fit) for one in each for fit in correlated(one.fit)]
    d, t = len(asked.bounds), float(tried[0].rows.n.sum())
    if d <= ROUGH_FEATURES and t >= ROUGH_FROM:
        each.append(_rougher(each))
    w = weights(tuple(process.fit for process in each))
    return [each[i] for i in np.argsort(-w, kind="stable") if w[i] > LIGHT]


def _rougher(processes: list[Process]) -> Process:
    """Return a Matérn process like the heaviest free one."""
    free = [process for process in processes if process.fit.problem.prior.form == FREE]
    w = weights(tuple(process.fit for process in free))
    best = free[int(np.argmax(w))]
    start = best.fit.theta.copy()
    start[1 : 1 + len(best.fit.lengths)] += math.log(LONGER)
    problem = best.fit.problem
    return best._replace(fit=fit(problem.rows, problem.link, start, SMOOTHNESS, steps=STEPS))


def _unsure(processes: list[Process]) -> list[Process]:
    """Return processes with a grid of level variances, if a column has few levels.

    A handful of levels says little about how much levels vary, and so about unseen ones.
    """
    columns = processes[0].fit.problem.prior.columns
    if all(column.size >= FEW_LEVELS or column.is_averaged for column in columns):
        return processes
    every = [_moved(each, *step) for each in processes for step in itertools.product(GRID, GRID)]
    w = weights(tuple(process.fit for process in every))
    best = np.argsort(-w, kind="stable")[:MOST_ON_GRID]
    return [every[i] for i in best if w[i] > LIGHT]


def _moved(process: Process, tau: float, deviation: float) -> Process:
    """Return a process with log τ and log σ_d of the columns with few levels moved by a step."""
    problem, theta = process.fit.problem, process.fit.theta.copy()
    at = len(theta) - parameters(problem.prior.columns)
    for column in problem.prior.columns:
        if column.size < FEW_LEVELS and not column.is_averaged:
            theta[at : at + column.parameters] += (tau, deviation)[: column.parameters]
        at += column.parameters
    theta = np.clip(theta, *problem.ends)
    return process._replace(fit=settled(problem, theta, ROUGH))


def _found(processes: list[Process]) -> Found:
    return Found(tuple(_component(process) for process in processes))


def _component(process: Process) -> Component:
    rows, link, prior = process.fit.problem
    effect = None if prior.effects is None else prior.effects.feature
    theta, scale = process.fit.theta, process.scale
    return Component(
        link.name, prior.smoothness, theta, scale, effect, rows.correlation, prior.form
    )


def _contest(processes: list[Process], fine: Rows, spacings: Floats | None) -> Contest:
    fits = tuple(process.fit for process in processes)
    xs = tuple(places([process.box for process in processes], fine))
    return contest(fits, fine, xs, spacings)


def inside(boxes: list[Box], points: Floats) -> list[Floats]:
    """Return points in units of every box, computed once per distinct box."""
    known = {id(box): box for box in boxes}
    x = {key: box.inside(points) for key, box in known.items()}
    return [x[id(box)] for box in boxes]


def places(boxes: list[Box], rows: Rows) -> list[Floats]:
    """Return the coordinates in every box of rows given in the first."""
    if all(box is boxes[0] for box in boxes):
        return [rows.x] * len(boxes)
    if rows.columns:
        return _beside(boxes, rows)
    xs = inside(boxes, boxes[0].outside(rows.x))
    is_own = [box is boxes[0] for box in boxes]
    return [rows.x if own else np.clip(x, 0.0, 1.0) for x, own in zip(xs, is_own, strict=True)]


def _beside(boxes: list[Box], rows: Rows) -> list[Floats]:
    """Return `places` with levels of categories, whose coordinates are the same in every box."""
    own, levels = boxes[0].outside(rows.x[:, : rows.d]), rows.x[:, rows.d :]
    found = {id(boxes[0]): rows.x}
    for box in boxes:
        if id(box) not in found:
            x = np.clip(box.features(own), 0.0, 1.0)
            found[id(box)] = np.column_stack([x, levels])
    return [found[id(box)] for box in boxes]


# Levels ------------------------------------------------------------------------------------


def _with_levels(sums: Sums, levels: Levels) -> list[int]:
    """Return the features with enough levels, and enough trials per level."""
    t = float(sums.trials.sum()) * sums.unit
    return [
        a
        for a, at in enumerate(levels)
        if at is not None and len(at) >= FEWEST_LEVELS and PER_LEVEL * len(at) <= t
    ]


def _spacings(sums: Sums, levels: Levels, box: Box) -> Floats:
    """Return the least distance between levels of each feature in a box; ∞ if it has none."""
    found = np.full(len(levels), np.inf)
    for a in _with_levels(sums, levels):
        at = effects(levels, box, a).at
        nearest = np.diff(at).min(initial=np.inf)
        found[a] = nearest if nearest >= NEAREST else np.inf
    return found


def _levelled(match: Contest, kept: Kept, sums: Sums, levels: Levels) -> int | None:
    """Return the feature whose levels seem to have effects of their own, if there is one.

    Windows along it alone have weight, or the length scale spans only a few of its levels.
    """
    if match.rows.x.shape[1] not in COARSE.cells:
        return None
    signs = {}
    for a in _with_levels(sums, levels):
        at = levels[a]
        assert at is not None
        is_short = float(match.best.lengths[a]) * len(at) < SHORT
        signs[a] = _along(match, kept, a)[0] + _within(match, kept, a) + is_short
    best = max(signs, key=lambda a: signs[a], default=0)
    return best if signs.get(best, 0.0) >= OF_USE else None


def _is_better(joint: Process, outcome: Scored, plain: Process, result: Scored) -> bool:
    """Return whether the joint process clearly scores higher, or as high with more evidence.

    A handful of levels fits a smooth curve as well as effects of their own; the curve is preferred.
    """
    gain = float(outcome.scores.max() - result.scores.max())
    evidence = joint.fit.objective - plain.fit.objective
    return gain > CLEARLY or (gain > -TEMPERATURE and evidence > CLEARLY)


def _along(match: Contest, kept: Kept, feature: int) -> tuple[float, float]:
    """Return the weight of windows along a feature that hold one level each, and Σ τ · weight."""
    spacing = np.diff(np.unique(match.rows.x[:, feature])).min(initial=1.0)
    return level_effects(*kept, match.ways, feature, float(spacing))


def _within(match: Contest, kept: Kept, feature: int) -> float:
    """Return the weight of windows that stay within one level of a feature but span others."""
    ways, each = match.ways, zip(*kept, strict=True)
    held = (w for window, w in each if window and ways[window.stretch][feature] > 1.0)
    return float(sum(held))


def effects(levels: Levels, box: Box, feature: int) -> Effects:
    """Return the levels of a feature in units of a box."""
    at = levels[feature]
    assert at is not None
    return Effects(feature, np.unique(np.clip(box.axes[feature].inside(at), 0.0, 1.0)))


def alone(levels: Levels, feature: int) -> Levels:
    """Return the levels of one feature only."""
    return tuple(at if a == feature else None for a, at in enumerate(levels))


def _joint(
    sums: Sums, best: Process, levels: Levels, feature: int, match: Contest, kept: Kept
) -> Process:
    """Return a process fitted jointly with effects of a feature's levels."""
    rows = sums.rows(best.box, COARSE, alone(levels, feature))
    weight, total = _along(match, kept, feature)
    tau = total / weight if weight > 0.0 else TAU
    start = np.append(best.fit.theta, 0.5 * math.log(tau))
    start[0] -= math.log(best.fit.problem.link.scale)
    start[1 + feature] = max(start[1 + feature], SMOOTH)
    at = effects(levels, best.box, feature)
    return best._replace(fit=fit(rows, LOGIT, start, effects=at, steps=STEPS))


# Weights per kind of query -----------------------------------------------------------------


def _weighed(found: Found, match: Contest, result: Scored, features: list[int]) -> Found:
    """Return `found` with windows and their weights for each kind of query."""
    kept = weighed(result)
    if len(kept[0]) == 1:
        return found
    d = match.rows.x.shape[1]
    by_question: list[Kept] = [kept] * (2 + d)
    rows = match.rows
    if is_repeated(rows):
        by_question[1] = _grouped(match, rows.x)
    spread = np.zeros(d)
    for a in features:
        by_question[2 + a] = _grouped(match, rows.x[:, a])
        weight, variance = _along(match, kept, a)
        spread[a] = variance if weight >= SURE else 0.0
    return found._replace(
        windows=tuple(_windows(match, by_question)), spread=spread if features else NONE
    )


def is_repeated(rows: Rows) -> bool:
    """Return whether rows are places with several trials each, so that new places differ."""
    return bool(rows.is_places and rows.n.sum() >= REPEATED * len(rows.x))


def _grouped(match: Contest, labels: Floats) -> Kept:
    grouped = by_group(match, labels)
    return weighed(grouped.scored, grouped.temperature)


def _windows(match: Contest, by_question: list[Kept]) -> list[Window]:
    """Return the windows that any kind of query uses, with their weights."""
    tables = [dict(zip(*kept, strict=True)) for kept in by_question]
    is_one = all(kept is by_question[0] for kept in by_question)
    every = dict.fromkeys(w for table in tables for w in table if w is not None)
    found = []
    for window in sorted(every):
        w = [float(table.get(window, 0.0)) for table in tables]
        stretch, width = match.ways[window.stretch], float(WIDTHS[window.width])
        others = NONE if is_one else np.array(w[1:])
        found.append(Window(stretch, width, window.tau, w[0], others))
    return found
