"""How near is near: the windows in use, in the user's units."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

import betafield.report.words as words
from betafield.report.blocks import Block, Section, Table, Text, name, say
from betafield.report.subject import Subject

# Windows that are listed, and features with a column each.
MOST_WINDOWS, MOST_COLUMNS = 10, 6
RULES = {
    "auto": "All widths and degrees were weighed by how well they predict trials left out, and the "
    "posterior is the mixture of the best.",
    "loo": "It is the width that predicts trials left out one at a time best.",
    "theory": "It follows from the number of trials and from how fast the probability may change.",
}


def section(field: Subject) -> Section:
    """Return the windows, and how relevant each feature is."""
    blocks: list[Block] = [Text(_told(field)), _windows(field)]
    if len(field.names) > 1:
        blocks.append(_relevance(field))
    return Section("bandwidth", "Bandwidth: how near is near", blocks)


def _told(field: Subject) -> Markup:
    model = field.model
    rule = RULES.get(model.bandwidth, "It was given.") if isinstance(model.bandwidth, str) else None
    told = say(
        "Trials within a window around a point tell its probability. {}",
        rule or "Its width was given.",
    )
    if model.bandwidth == "auto" and len(model.classes_) > 2:
        told = say(
            "Trials within a window around a point tell its probability. {}",
            "With three classes and more, the width that predicts best is taken.",
        )
    n = len(model.weights_)
    if n > MOST_WINDOWS:
        told += say(" {} windows are in use; the {} heaviest are listed.", n, MOST_WINDOWS)
    return told + Markup(
        " Degree 0 takes the share of successes in the window; 1 and more fit slopes and bends, so "
        "that windows can be wider."
    )


def _windows(field: Subject) -> Table:
    shown = field.varying[:MOST_COLUMNS]
    rows = [_window(field, record, shown) for record in field.model.weights_[:MOST_WINDOWS]]
    head = ["weight", "degree", *(f"± {words.short(field.names[k])}" for k in shown)]
    caption = Markup("How far a window reaches to either side, in the features' own units")
    return Table(caption, head, rows)


def _window(field: Subject, record: Any, shown: list[int]) -> list[Any]:
    reach = [
        record["width"] * field.model.scale_[k] / record["relevance"][k]
        if record["relevance"][k] > 0
        else np.inf
        for k in shown
    ]
    weight = say(
        '<span class="bar" style="--share:{}"></span>{}',
        f"{float(record['weight']):.4f}",
        words.percent(record["weight"]),
    )
    told = [
        "all" if far >= field.extents[k] else words.number(far)
        for k, far in zip(shown, reach, strict=True)
    ]
    return [weight, str(int(record["degree"])), *told]


def _relevance(field: Subject) -> Table:
    """Return how much each feature matters to what is near."""
    relevance, constant = field.model.relevance_, set(range(len(field.names))) - set(field.varying)
    order = [*field.varying, *sorted(constant)]
    rows = [
        [
            name(field.names[k]),
            "constant: carries no distance" if k in constant else words.number(relevance[k]),
        ]
        for k in order
    ]
    caption = Markup(
        "Relevance: what distances along a feature are multiplied by, 1 for the most relevant"
    )
    return Table(caption, ["feature", "relevance"], rows)
