"""The parts of a page: sections of texts, notes, figures, tables and code."""

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
    """Notes, one per item; `tone` is "warning" or "good"."""

    notes: list[Markup]
    tone: str = "warning"
    kind: str = "notes"


# A label, the number, and a remark.
Tile = tuple[str, str, Markup]


class Tiles(NamedTuple):
    """Key figures."""

    tiles: list[Tile]
    kind: str = "tiles"


class Table(NamedTuple):
    """A table; columns from `numeric` on are aligned to the right.

    A `folded` table is opened by a click.
    """

    caption: Markup
    head: list[str]
    rows: list[list[Any]]
    numeric: int = 1
    folded: bool = False
    kind: str = "table"


class View(NamedTuple):
    """One of the alternative pictures in a figure."""

    label: str
    traces: list[Trace]


class Figure(NamedTuple):
    """A figure, with a caption that says in words what it shows."""

    name: str
    alt: str
    caption: Markup
    views: list[View]
    layout: dict[str, Any]
    narrow: bool = False
    kind: str = "figure"

    def data(self) -> dict[str, Any]:
        """Return the data for the page's script."""
        return {"views": [view.traces for view in self.views], "layout": self.layout}


class Row(NamedTuple):
    """Figures side by side, if there is room; `choices` switches the views of all of them."""

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
    """A heading, and the blocks below it."""

    name: str
    title: str
    blocks: list[Block]

    def figures(self) -> list[Figure]:
        """Return all figures of the section."""
        return [each for block in self.blocks if isinstance(block, Row) for each in block.figures]


def say(template: str, *values: Any, **named: Any) -> Markup:
    """Return a sentence with escaped values filled in.

    Examples
    --------
    >>> say("<b>{}</b> is new", "<i>")
    Markup('<b>&lt;i&gt;</b> is new')
    """
    return Markup(template).format(*values, **named)


def name(text: Any) -> Markup:
    """Return a name from the data, set apart from the words around it.

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
