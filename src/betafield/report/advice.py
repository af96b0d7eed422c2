"""Where further trials would help most."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from scipy import stats

import betafield.report.words as words
from betafield.report.blocks import Section, Table, Text, name, say
from betafield.report.subject import Belief, Floats, Subject
from betafield.report.summary import place

# The number of points named, the trials that each would get, and the least and the greatest minimum
# distance between points, as fractions of the domain's sides.
POINTS, MORE, APART, FAR = 5, 100, 0.1, 0.25
# The width of guaranteed intervals for which the missing number of trials is given.
WIDTH = 0.1


class Advice(NamedTuple):
    """Rows of the domain, best first, and the outcome column shown for each."""

    rows: npt.NDArray[np.intp]
    columns: npt.NDArray[np.intp]


def section(field: Subject) -> Section:
    """Return some well separated points, and what trials there would achieve."""
    chosen = best(field)
    told = say(
        "Ranked by how much {} more trials at a point are expected to reduce the posterior "
        "variance v there: v · {}/(s + {}), where m is the mean and s = m(1 − m)/v − 1 is the "
        "number of trials that present knowledge is worth. The points are at least {} of the "
        "domain apart, along features that matter.",
        MORE,
        MORE,
        MORE,
        words.percent(_apart(field)),
    )
    if field.distorted:
        told += Markup(" More trials means undistorted ones.")
    after = Markup(
        "The expected range is that of a Beta distribution with the same mean and that many more "
        "trials, whose outcomes are as expected now. The cost of a trial is not considered."
    )
    return Section(
        "next", "Where the next trials help most", [Text(told), _table(field, chosen), Text(after)]
    )


def best(field: Subject) -> Advice:
    """Return points of large expected gain, each far enough from all before it."""
    gain = gains(field.of_domain)
    total, scaled = gain.sum(axis=1), _sides(field)
    distance = np.full(len(total), np.inf)
    rows: list[int] = []
    while len(rows) < POINTS:
        open_ = np.where(distance >= _apart(field), total, -np.inf)
        row = int(open_.argmax())
        if not np.isfinite(open_[row]):
            break
        rows.append(row)
        distance = np.minimum(distance, np.abs(scaled - scaled[row]).max(axis=1))
    chosen = np.array(rows, dtype=np.intp)
    return Advice(chosen, gain[chosen].argmax(axis=1))


def gains(belief: Belief, more: int = MORE) -> Floats:
    """Return the expected reduction of the variance by `more` trials.

    A Beta with s = α + β and variance v has an expected variance of v · s/(s + N) after N trials.

    Examples
    --------
    >>> flat = Belief(*np.array([[[0.5]], [[0.0]], [[1.0]], [[1 / 12]]]))
    >>> gains(flat, more=2).round(4).tolist()
    [[0.0417]]
    """
    return np.asarray(belief.var * more / (_size(belief) + more))


def _size(belief: Belief) -> Floats:
    """Return α + β of Beta distributions with these means and variances."""
    tiny = np.finfo(np.float64).tiny
    spread = belief.mean * (1.0 - belief.mean)
    return np.asarray(np.maximum(spread / np.maximum(belief.var, tiny) - 1.0, 0.0))


def _sides(field: Subject) -> Floats:
    """Return the domain's points as fractions of its sides, times relevance."""
    if not field.varying:
        return np.zeros((len(field.domain), 1))
    low, high = field.bounds[field.varying].T
    relevance = field.model.relevance_[field.varying]
    return np.asarray((field.domain[:, field.varying] - low) / (high - low) * relevance)


def _apart(field: Subject) -> float:
    """Return the least distance between points: the reach of trials, within limits."""
    if not field.varying:
        return APART
    reach = min(
        float((reach[field.varying] / field.extents[field.varying]).min())
        for _, reach in field.model.field_.reaches
    )
    return float(np.clip(reach, APART, FAR))


def _table(field: Subject, chosen: Advice) -> Table:
    """Return the posterior at each point now, and as expected after more trials."""
    points, now = field.domain[chosen.rows], field.of_domain.taken(chosen.rows)
    then, n_near = expected(now, field.level), field.n_near(points)
    head = ["where", "mean", "interval now", f"with {MORE} more", "trials near"]
    rows: list[list[Any]] = []
    for i, c in enumerate(chosen.columns):
        ends = [words.span(low[i, c], high[i, c]) for low, high in ((now.low, now.high), then)]
        where, mean = place(field, points[i]), words.percent(now.mean[i, c])
        rows.append([where, mean, *ends, words.count(n_near[i])])
    if len(field.outcomes) > 1:
        head.insert(1, "class")
        for row, c in zip(rows, chosen.columns, strict=True):
            row.insert(1, name(field.outcome_name(field.outcomes[c])))
    if field.lipschitz is not None:
        _add_guarantees(field, field.lipschitz, points, head, rows)
    return Table(Markup("The next trials, the most helpful first"), head, rows)


def expected(now: Belief, level: float) -> tuple[Floats, Floats]:
    """Return the intervals expected after `MORE` trials."""
    size = _size(now) + MORE
    known = stats.beta(np.maximum(now.mean, 1e-12) * size, np.maximum(1.0 - now.mean, 1e-12) * size)
    return known.ppf(0.5 * (1.0 - level)), known.ppf(0.5 * (1.0 + level))


def _add_guarantees(
    field: Subject, lipschitz: float, points: Floats, head: list[str], rows: list[list[Any]]
) -> None:
    """Add guaranteed intervals, and the number of trials that a narrow guarantee needs."""
    band = field.model.field_.band(points, lipschitz, field.level, False)
    missing = field.model.field_.more_trials(points, WIDTH, lipschitz, field.level, False)
    head += ["guaranteed now", f"trials to guarantee ±{50 * WIDTH:.0f} points"]
    for row, low, high, more in zip(rows, *band, missing, strict=True):
        row.append(words.span(low, high))
        row.append(words.count(np.ceil(more)) if np.isfinite(more) else "more than possible")
