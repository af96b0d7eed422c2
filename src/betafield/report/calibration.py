"""Whether predictions of held-out trials came true."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from scipy import stats

import betafield.report.figures as figures
import betafield.report.words as words
from betafield.observed import LeftOut, left_out, share_interval, why_not_left_out
from betafield.report.blocks import Block, Figure, Notes, Section, Text, Trace, View, row, say
from betafield.report.subject import Floats, Subject

# The number of groups of predictions, and the deviations below which it hardly matters: the average
# over all groups, and that of a single one.
GROUPS, SMALL, LARGE = 10, 0.02, 0.05
# If so many groups are outside their intervals with a lower probability, it is not by chance.
RARE = 0.01


class Groups(NamedTuple):
    """Trials with similar predictions: the mean prediction, the share observed, its interval."""

    predicted: Floats
    share: Floats
    low: Floats
    high: Floats
    trials: Floats


def section(field: Subject) -> Section:
    """Return a comparison of predictions with the outcomes of held-out trials."""
    title = "Calibration"
    why = why_not_left_out(field.model)
    if why is None:
        found = left_out(field.model)
        assert found is not None
        return Section("calibration", title, _compared(field, groups(found, field.level)))
    text = say("Not checked here: {}.", why)
    return Section("calibration", title, [Text(text)])


def groups(found: LeftOut, level: float, n: int = GROUPS) -> Groups:
    """Return up to n groups of about equally many trials, ordered by prediction.

    Equal predictions are never separated.

    Examples
    --------
    >>> some = LeftOut(np.array([0.1, 0.9, 0.1]), np.array([0.0, 3.0, 1.0]), np.full(3, 4.0))
    >>> made = groups(some, level=0.95, n=2)
    >>> made.predicted.tolist(), made.share.tolist(), made.trials.tolist()
    ([0.1, 0.9], [0.125, 0.75], [8.0, 4.0])
    """
    some = found.trials > 0
    value, which = np.unique(found.predicted[some], return_inverse=True)
    trials, successes = (
        np.bincount(which, each[some]).astype(np.float64)
        for each in (found.trials, found.successes)
    )
    middle = (np.cumsum(trials) - 0.5 * trials) / trials.sum()
    group = np.minimum((middle * n).astype(np.intp), n - 1)
    _, group = np.unique(group, return_inverse=True)
    trials, successes, sums = (
        np.bincount(group, each).astype(np.float64) for each in (trials, successes, trials * value)
    )
    return Groups(
        sums / trials, successes / trials, *share_interval(successes, trials, level), trials
    )


def _compared(field: Subject, found: Groups) -> list[Block]:
    explained = say(
        "All trials were divided into five parts; models with the same settings learned from four "
        "of them and predicted the fifth. Trials with similar predictions form a group ({} "
        "groups). If the predictions are right, the marks lie on the diagonal, apart from chance.",
        len(found.trials),
    )
    tone, told = verdict(found, field.level)
    return [Notes([told], tone), Text(explained), row([_figure(field, found)])]


def verdict(found: Groups, level: float) -> tuple[str, Markup]:
    """Return whether predictions can be taken at face value, as a tone and in words."""
    n = len(found.trials)
    inside = (found.low <= found.predicted) & (found.predicted <= found.high)
    missed = int(n - inside.sum())
    gaps = np.abs(found.share - found.predicted)
    gap, worst = float(np.average(gaps, weights=found.trials)), int(np.argmax(gaps * ~inside))
    start = say(
        "In {} of {} groups the prediction lies within the {} interval of what happened, and is "
        "off by {} percentage points on average. ",
        n - missed,
        n,
        words.level_name(level),
        f"{100 * gap:.1f}",
    )
    if stats.binom.sf(missed - 1, n, 1.0 - level) >= RARE:
        return "good", start + Markup("Predictions can be taken at face value.")
    if gap <= SMALL and gaps[worst] <= LARGE:
        more = "That is more than chance, but little: there are enough trials to see it."
        return "good", start + Markup(more)
    side = "too high" if found.predicted[worst] > found.share[worst] else "too low"
    more = say(
        "That is more than chance: around {} predictions are {}, because {} happened.",
        words.percent(found.predicted[worst]),
        side,
        words.percent(found.share[worst]),
    )
    return "warning", start + more


def _figure(field: Subject, found: Groups) -> Figure:
    level = words.drawn(words.level_name(field.level))
    label = words.drawn(field.outcome_name(field.outcomes[0]), 20)
    top = 1.05 * float(max(found.high.max(), found.predicted.max()))
    top = 1.0 if top > 0.6 else top
    axis = {"tickformat": ".0%", "range": [-0.02 * top, 1.02 * top]}
    drawn = figures.layout(
        f"predicted P({label})", "share that happened", 400, xaxis=axis, yaxis=axis
    )
    caption = say(
        "Predicted and observed shares, with {} intervals.", words.level_name(field.level)
    )
    alt = "Predicted probability against the share that happened"
    traces = [_diagonal(), _marks(found, level)]
    return Figure("reliability", alt, caption, [View("", traces)], drawn, narrow=True)


def _diagonal() -> Trace:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [0, 1],
        "y": [0, 1],
        "line": {"color": figures.GREY, "width": 1, "dash": "dash"},
        "hoverinfo": "skip",
    }


def _marks(found: Groups, level: str) -> Trace:
    told = np.stack([found.low, found.high, found.trials], axis=1)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": words.rounded(found.predicted),
        "y": words.rounded(found.share),
        "customdata": words.rounded(told),
        "marker": {"color": figures.BLUE, "size": 8},
        "error_y": figures.whiskers(found.share, found.low, found.high, figures.BLUE),
        "hovertemplate": (
            "predicted %{x:.1%}<br><b>happened %{y:.1%}</b><br>"
            f"{level} interval %{{customdata[0]:.1%}} to %{{customdata[1]:.1%}}<br>"
            "trials %{customdata[2]:,.0f}" + figures.NO_BOX
        ),
    }
