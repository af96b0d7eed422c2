"""Thresholds and slopes, computed from fields drawn from the joint posterior."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq

from betafield import bernstein, checks, distorted
from betafield.answers.anchors import anchored as with_anchors
from betafield.answers.crossings import direction
from betafield.answers.draws import fields
from betafield.answers.lines import Line, axis, fixed, labels, line, numeric
from betafield.answers.rising import rising
from betafield.answers.threshold import Asked, Threshold
from betafield.methods import AnyField
from betafield.posteriors import Sampled
from betafield.process.noise import Seed
from betafield.refusals import refused
from betafield.smooth import SmoothField

Floats = npt.NDArray[np.float64]

# Half the length over which slopes are differences, as a fraction of the box.
STEP = 1.0 / 128.0
# Steps along a curve that determine its direction.
FEW = 8


def threshold(
    field: AnyField,
    level: Any,
    feature: Any,
    at: Any,
    under: Any,
    anchored: Any,
    size: int,
    seed: Seed,
) -> Threshold:
    """Return where the probability first reaches a level along a feature."""
    require_two(field, "level")
    goal, factor = reached(level, under)
    number = numeric(field.features, feature)
    row = fixed(field.features, number, at)
    asked = line(field, number, row)
    sign = heading(field, asked)
    if checks.flag("anchored", anchored):
        field = with_anchors(field, asked, sign)
    found = rising(field, asked, sign, size, seed).crossings(goal)
    low, high = field.bounds[number].tolist()
    told = Asked(
        checks.as_float(level),
        labels(field.features)[number],
        (low, high),
        sign * factor > 0.0,
        _told(field, number, row),
        len(asked.others) > 1,
    )
    return Threshold(found._replace(slope=factor * found.slope), told)


def require_two(field: AnyField, name: str) -> None:
    """Raise if there are more than two classes."""
    if len(field.classes) > 2:
        raise refused(
            name,
            f"this model has {len(field.classes)} classes; thresholds and slopes need two, "
            "success and failure",
        )


def reached(level: Any, under: Any) -> tuple[float, float]:
    """Return the π at which the success probability under a context is `level`, and its slope.

    Examples
    --------
    75 % right answers if half are guessed and one in fifty is a lapse:

    >>> goal, slope = reached(0.75, [0.5, 0.98])
    >>> round(goal, 6), round(slope, 2)
    (0.520833, 0.48)
    """
    aim = checks.share("level", level, "a probability strictly between 0 and 1 is needed")
    if under is None:
        return aim, 1.0
    row = distorted.one_context("under", under)
    steps = np.diff(row)
    if not ((steps >= 0.0).all() or (steps <= 0.0).all()) or row[0] == row[-1]:
        raise refused(
            "under",
            f"found {row.tolist()}; a success probability that rises or falls with π all "
            "along is needed",
        )
    low, high = sorted((row[0], row[-1]))
    rule = f"under the context it is from {low:g} to {high:g}; a level strictly between is needed"
    checks.require(low < aim < high, "level", level, rule)
    goal = float(brentq(lambda p: bernstein.value(row, np.array(p)) - aim, 0.0, 1.0, xtol=1e-14))
    slope = (len(row) - 1) * bernstein.value(steps, np.array(goal))
    return goal, float(slope)


def heading(field: AnyField, asked: Line) -> int:
    """Return the direction of a curve: as constrained, or else that of its mean."""
    few = asked._replace(grid=asked.grid[:: (len(asked.grid) - 1) // FEW])
    if not isinstance(field, SmoothField):
        return direction(few.averaged(field.mean(few.points)))
    known = field.signs[asked.feature]
    return known or direction(few.averaged(field.smooth[0].process_mean(few.points)))


def _told(field: AnyField, feature: int, row: Floats | None) -> dict[str, Any]:
    """Return the values of fixed features, by name."""
    if row is None:
        return {}
    names = labels(field.features)
    told = {names[a]: float(x) for a, x in enumerate(row) if a != feature}
    known = field.features.categories
    for a in known.columns:
        pairs = zip(known.codes(a), known.shown(a), strict=True)
        told[names[a]] = dict(pairs).get(told[names[a]], "a new level")
    return told


# Slopes --------------------------------------------------------------------------------------


def slopes(
    field: AnyField, points: Floats, feature: Any, size: int, seed: Seed
) -> Sampled | dict[str, Sampled]:
    """Return the posterior of ∂π/∂x at points, along one feature or along each."""
    require_two(field, "X")
    names = labels(field.features)
    drawn = fields(field, size, seed, is_centred=False)
    if feature is not None or len(names) == 1:
        return _slope(field, points, numeric(field.features, feature), drawn)
    numbers = field.features.numeric
    return {names[a]: _slope(field, points, a, drawn) for a in numbers}


def _slope(field: AnyField, points: Floats, feature: int, drawn: Any) -> Sampled:
    low, high = beside(field, points[:, feature], feature)
    pairs = np.concatenate([points, points])
    pairs[:, feature] = np.concatenate([low, high])
    values = drawn.at(pairs)
    rise = values[:, len(points) :] - values[:, : len(points)]
    return Sampled(rise / (high - low), support=(-np.inf, np.inf))


def beside(field: AnyField, x: Floats, feature: int) -> tuple[Floats, Floats]:
    """Return values below and above those of a feature, 1/128 of the box away, in the domain."""
    ends, units = field.bounds[feature], axis(field, feature)
    if not ends[0] < ends[1]:
        raise refused(
            "feature",
            f"{labels(field.features)[feature]} has one value, {ends[0]:g}, so there is "
            "no slope along it",
        )
    u = np.clip(units.inside(x), STEP, 1.0 - STEP)
    half = 0.5 * (units.outside(u + STEP) - units.outside(u - STEP))
    # At an end, the slope is one-sided, towards the inside of the domain.
    is_inside = (x >= ends[0]) & (x <= ends[1])
    low, high = (np.where(is_inside, np.clip(end, *ends), end) for end in (x - half, x + half))
    return low, high
