"""What a page is made of: sections of texts, notes, figures, tables and code."""

from __future__ import annotations

from typing import Any, NamedTuple

from markupsafe import Markup

import betafield.report.words as words

Trace = dict[str, Any]


class Text(NamedTuple):
    """A paragraph."""

    text: Markup
    kind: str = "text"


class Notes(NamedTuple):
    """Things to know, one an item; `tone` is "warning" or "good"."""

    notes: list[Markup]
    tone: str = "warning"
    kind: str = "notes"


# What a number is, the number, and more about it.
Tile = tuple[str, str, Markup]


class Tiles(NamedTuple):
    """Numbers that come first."""

    tiles: list[Tile]
    kind: str = "tiles"


class Table(NamedTuple):
    """A table; columns from `numeric` on are aligned to the right.

    Where `folded`, it is opened by a click.
    """

    caption: Markup
    head: list[str]
    rows: list[list[Any]]
    numeric: int = 1
    folded: bool = False
    kind: str = "table"


class View(NamedTuple):
    """One of the pictures that a figure can show."""

    label: str
    traces: list[Trace]


class Figure(NamedTuple):
    """A figure: its caption says in words what it shows."""

    name: str
    alt: str
    caption: Markup
    views: list[View]
    layout: dict[str, Any]
    narrow: bool = False
    kind: str = "figure"

    def data(self) -> dict[str, Any]:
        """Return what the page's script draws."""
        return {"views": [view.traces for view in self.views], "layout": self.layout}


class Row(NamedTuple):
    """Figures side by side, where there is room; `choices` switches the views of all of them."""

    figures: list[Figure]
    choices: list[str]
    name: str
    kind: str = "row"


class Code(NamedTuple):
    """Lines to copy."""

    label: str
    lines: str
    kind: str = "code"


Block = Text | Notes | Tiles | Table | Row | Code


class Section(NamedTuple):
    """A heading, and what stands below it."""

    name: str
    title: str
    blocks: list[Block]

    def figures(self) -> list[Figure]:
        """Return all figures of the section."""
        return [each for block in self.blocks if isinstance(block, Row) for each in block.figures]


def say(template: str, *values: Any, **named: Any) -> Markup:
    """Return a sentence; what is filled in is escaped.

    Examples
    --------
    >>> say("<b>{}</b> is new", "<i>")
    Markup('<b>&lt;i&gt;</b> is new')
    """
    return Markup(template).format(*values, **named)


def name(text: Any) -> Markup:
    """Return a name that came with the data, set apart from the words around it.

    Examples
    --------
    >>> name("a<b")
    Markup('<bdi class="name">a&lt;b</bdi>')
    """
    return say('<bdi class="name">{}</bdi>', words.shown(text))


def row(figures: list[Figure], title: str = "") -> Row:
    """Return figures side by side."""
    labels = [view.label for view in figures[0].views]
    return Row(figures, labels if len(labels) > 1 else [], title or figures[0].name)
