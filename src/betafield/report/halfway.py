"""Where the probability reaches one half along the only feature that varies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup

import betafield.report.figures as figures
import betafield.report.words as words
from betafield.report.blocks import Trace, say
from betafield.report.blocks import name as named

if TYPE_CHECKING:
    from betafield.answers.threshold import Threshold
    from betafield.report.subject import Subject

# The level, the number of draws, and their seed, fixed so that a report is reproducible.
LEVEL, SIZE, SEED = 0.5, 1_000, 0


def threshold(field: Subject) -> Threshold | None:
    """Return where the probability is one half; None if nowhere, or if there is no such curve."""
    if not field.is_smooth or len(field.model.classes_) != 2 or len(field.varying) != 1:
        return None
    k = field.varying[0]
    at = field.median if len(field.names) > 1 else None
    found = field.model.threshold(LEVEL, k, at, size=SIZE, random_state=SEED)
    return found if found.not_reached < 0.5 else None


def bar(field: Subject, found: Threshold) -> Trace:
    """Return the interval as a line at the level."""
    low, high = found.interval(field.level)
    x = words.coordinates([low, found.median(), high], field.extents[field.varying[0]])
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": x,
        "y": [found.level] * 3,
        "line": {"color": figures.RED, "width": 4},
        "marker": {"size": [0, 9, 0], "color": figures.RED},
        "name": f"{words.level_name(field.level)} interval of the threshold",
        "hoverinfo": "skip",
    }


def told(field: Subject, found: Threshold) -> Markup:
    """Return the same in words."""
    k = field.varying[0]
    low, high = (field.coordinate(k, end) for end in found.interval(field.level))
    said = say(
        "P({}) {} {} at {} = {}, {} interval from {} to {}.",
        named(field.outcome_name(field.outcomes[0])),
        "rises to" if found.asked.rises else "falls to",
        words.percent(found.level),
        named(field.names[k]),
        field.coordinate(k, found.median()),
        words.level_name(field.level),
        low,
        high,
    )
    if found.not_reached < 0.005:
        return said
    share = words.percent(found.not_reached)
    return said + say(" In {} of the drawn curves this does not happen within the domain.", share)
