"""Placing trials for a threshold: by its expected variance after one more trial.

Fields are drawn from the joint posterior and made monotone, and each has a threshold t_s. A trial
at x would succeed with probability q_s = q(π_s(x)), and after it draws would have weight q_s or
1 − q_s: with q̄ the mean of q_s, the expected variance is

    V(x) = q̄ Var_{w ∝ q}(t) + (1 − q̄) Var_{w ∝ 1−q}(t),

and the trial that lowers it most is made next. q is the average context of the trials so far,
because the next one will be distorted as they were: if half of the answers are guesses, a trial is
most informative where π is high.

The variances of the thresholds of a lower and a higher level count half each. By its own threshold
alone, a curve that stays near the level for a while would be tested only where the threshold seems
to be, and trials beside it would not show that it is elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import bernstein
from betafield.answers.anchors import anchored
from betafield.answers.lines import Line, along
from betafield.answers.rising import rising
from betafield.answers.thresholds import heading, reached
from betafield.methods import AnyField
from betafield.process.noise import Seed
from betafield.smooth import SmoothField

Floats = npt.NDArray[np.float64]

# Number of draws, and of points along the feature.
DRAWS, POINTS = 900, 65
# How far the levels beside the goal's are from it, as a share of the way to 0 and to 1, and the
# weight of their thresholds.
APART, BESIDE = 0.4, 0.5


def expected_gain(
    field: AnyField, goal: Any, rows: Floats, rng: np.random.Generator, side: float
) -> Floats:
    """Return the expected reduction of the threshold's variance by a trial at each row.

    It is in units of the side of the space, squared; `goal` is a `LevelSet` with one feature.
    """
    aim, _ = reached(goal.p, goal.under)
    grid = along(field, 0, POINTS)
    line = Line(0, grid, np.zeros((1, 1)))
    sign = heading(field, line)
    known = anchored(field, line, sign) if goal.anchored else field
    drawn, under = rising(known, line, sign, DRAWS, Seed.of(rng)), usual(field, goal.under)
    gain = np.zeros(len(grid))
    for level, weight in levels(aim):
        thresholds = drawn.crossings(level).at / side
        gain += weight * (thresholds.var() - remaining(drawn.curves, thresholds, under))
    return np.asarray(np.maximum(np.interp(rows[:, 0], grid, gain), 0.0))


def levels(aim: float) -> list[tuple[float, float]]:
    """Return the levels whose thresholds count, with their weights.

    Examples
    --------
    >>> [(round(level, 3), weight) for level, weight in levels(0.5)]
    [(0.5, 1.0), (0.3, 0.5), (0.7, 0.5)]
    """
    beside = aim - APART * aim, aim + APART * (1.0 - aim)
    return [(aim, 1.0), *((level, BESIDE) for level in beside)]


def usual(field: AnyField, under: Any) -> Any:
    """Return the average context of the trials so far; for windows, the goal's own context.

    Unknown rates have their values in the heaviest process.
    """
    if not isinstance(field, SmoothField):
        return under
    (smooth,) = field.smooth
    rows = smooth.fits[int(np.argmax(smooth.weights))].problem.rows
    return np.asarray((rows.n[:, None] * rows.context).sum(axis=0) / rows.n.sum())


def remaining(curves: Floats, thresholds: Floats, under: Any) -> Floats:
    """Return V at the points of curves, shape (n,), for curves (s, n) and their thresholds (s,).

    `under` is the context of the trial.

    Examples
    --------
    Two curves that differ at the second point only: a trial there tells them apart.

    >>> import numpy as np
    >>> curves = np.array([[0.5, 0.1], [0.5, 0.9]])
    >>> remaining(curves, np.array([0.0, 1.0]), None).round(3).tolist()
    [0.25, 0.09]
    """
    q = curves if under is None else bernstein.value(np.array(under), curves)
    q = np.clip(q, 1e-9, 1.0 - 1e-9)
    centred = thresholds - thresholds.mean()
    total, square = q.mean(axis=0), np.mean(centred**2)
    first, second = (np.mean(q * power[:, None], axis=0) for power in (centred, centred**2))
    rest = 1.0 - total
    # E t = 0, so sums over failures are the totals minus those over successes.
    after_success = second / total - (first / total) ** 2
    after_failure = (square - second) / rest - (first / rest) ** 2
    return np.asarray(total * after_success + rest * after_failure)
