"""How wide the intervals are, over the domain and at the places of trials."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

import betafield.report.figures as figures
import betafield.report.words as words
from betafield.report.blocks import Figure, Row, Section, Table, Text, View, row, say
from betafield.report.subject import Floats, Subject

# Half widths of intervals in the table, and bars of the figure.
HALVES, BARS = (0.01, 0.02, 0.05, 0.1, 0.2), 25


def section(field: Subject) -> Section:
    """Return how well the probability is known over how much of the domain."""
    domain, places = (b.width.max(axis=1) for b in (field.of_domain, field.of_places))
    return Section(
        "sure",
        "How sure",
        [Text(_told(field, domain)), _shares(domain, places), _bars(field, domain)],
    )


def _told(field: Subject, widths: Floats) -> Markup:
    told = say(
        "Half of the domain has {} intervals narrower than {} percentage points; {} of it is known "
        "within ±5, and {} within ±10.",
        words.level_name(field.level),
        f"{100 * np.median(widths):.1f}",
        words.percent(_within(widths, 0.05)),
        words.percent(_within(widths, 0.1)),
    )
    if len(field.outcomes) > 1:
        told += Markup(" With several classes, the least certain one counts.")
    return told


def _within(widths: Floats, half: float) -> float:
    """Return the share of intervals with at most this half width."""
    return float(np.mean(widths <= 2.0 * half))


def _shares(domain: Floats, places: Floats) -> Table:
    rows = [
        [f"±{100 * half:.0f} points", *(words.percent(_within(w, half)) for w in (domain, places))]
        for half in HALVES
    ]
    caption = Markup("How much of the domain is known within ± this many percentage points")
    return Table(caption, ["known within", "of the domain", "where trials were made"], rows)


def _bars(field: Subject, widths: Floats) -> Row:
    """Return the distribution of interval widths over the domain."""
    top = max(float(np.ceil(widths.max() * 20) / 20), 0.05)
    counts, edges = np.histogram(widths, bins=BARS, range=(0.0, top))
    middles = 0.5 * (edges[1:] + edges[:-1])
    step = top / BARS
    hover = "intervals about %{x:.1%} wide<br>in %{y:.1%} of the domain"
    trace = figures.bars(
        words.coordinates(middles, top), counts / len(widths), 0.92 * step, figures.BLUE, hover
    )
    level = words.level_name(field.level)
    drawn = figures.layout(
        f"width of the {words.drawn(level)} interval",
        "share of the domain",
        260,
        xaxis={"tickformat": ".0%", "range": [0.0, top]},
        yaxis={"tickformat": ".0%", "rangemode": "tozero"},
    )
    caption = say("How wide the intervals are over the domain: further left means more certain.")
    return row(
        [Figure("widths", "Distribution of interval widths", caption, [View("", [trace])], drawn)]
    )
