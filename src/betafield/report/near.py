"""The components of answers, and how far they reach in the user's units."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

import betafield.report.words as words
from betafield import components, meaning
from betafield.components import PROCESS, Group, Sentence
from betafield.report.blocks import Block, Section, Table, Text, name, say
from betafield.report.subject import Subject

# Features with a column each.
MOST_COLUMNS = 6


def section(field: Subject) -> Section:
    """Return the components in use, and how relevant each feature is."""
    told = Markup(" ").join(_sentence(each) for each in meaning.told(field.model))
    blocks: list[Block] = [Text(told)]
    if field.varying:
        blocks.append(_components(field))
    if field.is_smooth or len(field.names) > 1:
        blocks.append(_features(field))
    return Section("near", "How near is near", [*blocks, Text(_counted(field))])


def _sentence(said: Sentence) -> Markup:
    """Return a sentence with the names of features set apart."""
    text = _marked(said)
    return text[:1].upper() + text[1:] + Markup(".")


def _marked(said: Sentence) -> Markup:
    return say(said.text, *(name(each) for each in said.names))


def _counted(field: Subject) -> Markup:
    """Return which trials count as near on this page."""
    if not field.is_smooth:
        return Markup("On this page, trials are near if they are within the window.")
    return say(
        "On this page, trials are near if they are within {} of the domain: the width that theory "
        "gives for windows of this many trials.",
        words.percent(field.window),
    )


# Tables ------------------------------------------------------------------------------------


def _components(field: Subject) -> Table:
    """Return the components, with weights and reaches."""
    shown = field.varying[:MOST_COLUMNS]
    found = components.listed(field.model.field_)
    head = ["what", "weight", *(f"± {words.short(field.names[k])}" for k in shown)]
    caption = Markup(
        "The components of the answers, and how far each reaches to either side in the units of "
        "the features (length scales of a process, widths of windows)"
    )
    return Table(caption, head, [_component(field, group, shown) for group in found])


def _component(field: Subject, group: Group, shown: list[int]) -> list[Any]:
    weight = say(
        '<span class="bar" style="--share:{}"></span>{}',
        f"{group.weight:.4f}",
        words.percent(min(group.weight, 1.0)),
    )
    called = _marked(group.called(field.names))
    return [called, weight, *(_reach(field, group, k) for k in shown)]


def _reach(field: Subject, group: Group, k: int) -> str:
    """Return how far components reach along a feature."""
    if k not in group.features:
        return "any"
    ends = [_far(field, group, k, reach) for reach in (group.least[k], group.most[k])]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def _far(field: Subject, group: Group, k: int, reach: float) -> str:
    is_all = group.part != PROCESS and reach >= field.extents[k]
    return "all" if is_all else words.number(reach)


def _features(field: Subject) -> Table:
    """Return how much each feature matters."""
    constant = sorted(set(range(len(field.names))) - set(field.varying))
    head = ["feature", "relevance", "changes the probability by"]
    if field.is_smooth:
        head[1:1] = ["length scale", "of the domain"]
    silent = ["constant, so it does not matter", *[""] * (len(head) - 2)]
    rows: list[list[Any]] = [
        *(_feature(field, k) for k in field.varying),
        *([name(field.names[k]), *silent] for k in constant),
    ]
    caption = Markup(
        "Features: relevance is 1 for the one along which the probability may change fastest; "
        "the change is the largest between two values of the feature, with all others at their "
        "median"
    )
    return Table(caption, head, rows)


def _feature(field: Subject, k: int) -> list[Any]:
    told = [words.number(field.model.relevance_[k]), f"{100.0 * field.swing[k]:.1f} points"]
    if field.is_smooth:
        ((_, reach),) = field.model.field_.reaches
        share = words.number(np.round(reach[k] / field.extents[k], 3))
        told[:0] = [words.number(reach[k]), f"{share} of it"]
    return [name(field.names[k]), *told]
