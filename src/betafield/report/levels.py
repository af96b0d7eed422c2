"""Which levels of categories differ, by how much, and how certain that is."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

import betafield.report.words as words
from betafield.answers.levels import Differences, differences
from betafield.report.blocks import Block, Table, Text, name, say
from betafield.report.subject import Subject

# Columns with more levels have no table; the number of rows in a table.
MOST_LEVELS, ROWS = 1_000, 20


def blocks(field: Subject) -> list[Block]:
    """Return a table per category; none with three or more classes."""
    if len(field.model.classes_) > 2:
        return []
    known = field.model.field_.features.categories
    return [block for a in known.columns for block in _of(field, a, len(known.shown(a)))]


def _of(field: Subject, column: int, size: int) -> list[Block]:
    called = name(field.names[column])
    if size > MOST_LEVELS:
        return [Text(say("{} has {} levels, which are too many for a table.", called, size))]
    learned = field.model.field_
    trials = field.seen.trials_of(column, learned.features.categories.codes(column))
    found = differences(learned, column, trials, field.level)
    order = np.argsort(-np.abs(found.difference[:, 0]), kind="stable")[:ROWS]
    caption = say("How levels of {} differ: the average over the places of all trials", called)
    if size > ROWS:
        caption += say("; of {} levels, the {} that differ most", size, ROWS)
    head = ["level", "trials", "probability", "interval", "difference", "interval", "how sure"]
    rows = [_row(found, int(c)) for c in order]
    return [Table(caption, head, rows), Text(_reading(field))]


def _row(found: Differences, c: int) -> list[Any]:
    mean, low, high = found.average[c]
    apart, *ends = found.difference[c]
    return [
        name(words.short(found.labels[c])),
        words.count(found.trials[c]),
        words.percent(mean),
        words.span(low, high),
        _points(apart),
        f"{_points(ends[0])} to {_points(ends[1])}",
        _sure(float(found.above[c])),
    ]


def _points(share: float) -> str:
    """Return a difference of probabilities in percentage points, with its sign."""
    return f"{100.0 * share:+.1f}".replace("-", "−")


def _sure(above: float) -> str:
    word = "above" if above >= 0.5 else "below"
    return f"{words.percent(max(above, 1.0 - above))} {word}"


def _reading(field: Subject) -> Markup:
    return say(
        "Differences are in percentage points from the average of all levels, weighted by how "
        "often each was seen, with {} intervals; rare levels borrow strength from the others. How "
        "sure: the probability that the level lies on that side of the average.",
        words.level_name(field.level),
    )
