"""How likely the probability is above a given level: a curve or a map."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

import betafield.report.figures as figures
import betafield.report.words as words
from betafield.report.blocks import Block, Figure, View, row, say
from betafield.report.blocks import name as named
from betafield.report.subject import Floats, Subject

# The chance from which π counts as known to be above the level, or not above it.
SURE = 0.95


def blocks(field: Subject) -> list[Block]:
    """Return the figure, if a level is given and any feature varies."""
    if field.above is None or not field.varying:
        return []
    if len(field.varying) == 1:
        return [row([_curve(field, field.varying[0], field.above)])]
    i, j = sorted(field.varying) if len(field.varying) == 2 else field.varying[:2]
    return [row([_map(field, i, j, field.above)])]


def _curve(field: Subject, k: int, above: float) -> Figure:
    points = field.along(k)
    chance = field.exceeding(points, above)
    x, axis = words.coordinates(points[:, k], field.extents[k]), words.drawn(field.names[k])
    hover = f"{axis} %{{x}}<br><b>chance %{{y:.1%}}</b>"
    views = [
        View(
            field.outcome_name(c),
            [
                figures.curve(
                    x, chance[:, column], [chance[:, column]], figures.BLUE, "chance", hover
                )
            ],
        )
        for column, c in enumerate(field.outcomes)
    ]
    drawn = figures.layout(axis, "chance", 300, yaxis=figures.probabilities())
    return Figure("exceeding", _alt(above), _told(field, chance, above), views, drawn)


def _map(field: Subject, i: int, j: int, above: float) -> Figure:
    n = field.cells
    chance = field.exceeding(field.across(i, j, n), above)
    x, y = (words.coordinates(field.axis(k, n, ends=False), field.extents[k]) for k in (i, j))
    axes = words.drawn(field.names[i]), words.drawn(field.names[j])
    hover = f"{axes[0]} %{{x}}<br>{axes[1]} %{{y}}<br><b>chance %{{z:.1%}}</b>"
    views = []
    for column, c in enumerate(field.outcomes):
        values, label = chance[:, column].reshape(n, n), field.outcome_name(c)
        title = f"chance that P({words.drawn(label, 20)}) > {above:.4g}"
        trace = figures.heatmap(
            x, y, values, [values], title=title, scale="Cividis", hover=hover, limits=(0.0, 1.0)
        )
        views.append(View(label, [trace]))
    below = {"title": {"text": axes[0], "standoff": 38}}
    drawn = figures.layout(*axes, 460, margin={"t": 72}, xaxis=below)
    return Figure("exceeding", _alt(above), _told(field, chance, above), views, drawn)


def _alt(above: float) -> str:
    return f"How likely the probability is above {above:.4g}"


def _told(field: Subject, chance: Floats, above: float) -> Markup:
    """Return over which shares of the domain shown π is known to be above, or not above."""
    parts = [say("How likely the probability is above {}.", words.percent(above))]
    for column, c in enumerate(field.outcomes):
        over, under = (
            float(np.mean(each))
            for each in (chance[:, column] > SURE, chance[:, column] < 1.0 - SURE)
        )
        parts.append(
            say(
                "{}: almost surely above it in {} of the area shown, almost surely not in {}, and "
                "undecided elsewhere.",
                named(field.outcome_name(c)),
                words.percent(over),
                words.percent(under),
            )
        )
    return Markup(" ").join(parts)
