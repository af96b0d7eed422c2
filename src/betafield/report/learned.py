"""What was learned: a curve, a map, or slices through more dimensions."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

import betafield.report.exceeding as exceeding
import betafield.report.figures as figures
import betafield.report.halfway as halfway
import betafield.report.levels as levels
import betafield.report.words as words
from betafield.observed import binned
from betafield.report.blocks import Block, Figure, Row, Section, Table, Text, Trace, View, row, say
from betafield.report.blocks import name as named
from betafield.report.subject import Belief, Floats, Subject
from betafield.report.summary import place

# Features with a curve of their own, bins of raw data, rows of the table of a curve, cells along a
# side of the table of a map, and the number of places up to which a map marks them.
MOST_CURVES, BINS, ROWS, SIDE, DOTS = 12, 20, 11, 5, 400


def section(field: Subject) -> Section:
    """Return the figures of the field."""
    d = len(field.varying)
    if d == 0:
        text = "All trials were made at one place, so there is nothing to draw: see the summary."
        blocks = [Text(Markup(text)), *levels.blocks(field)]
        return Section("learned", "What was learned", blocks)
    blocks = (_line, _plane)[d - 1](field) if d <= 2 else _slices(field)
    every = [*blocks, *levels.blocks(field), *exceeding.blocks(field)]
    return Section("learned", "What was learned", every)


def _line(field: Subject) -> list[Block]:
    k, half = field.varying[0], halfway.threshold(field)
    curve = _curve(field, k, "curve", 420)
    if half is None:
        return [Text(_raw(field)), row([curve]), _curve_table(field, k)]
    curve.views[0].traces.append(halfway.bar(field, half))
    said = Text(halfway.told(field, half))
    return [Text(_raw(field)), row([curve]), said, _curve_table(field, k)]


def _plane(field: Subject) -> list[Block]:
    i, j = sorted(field.varying)
    return [_maps(field, i, j), _map_table(field, i, j)]


def _slices(field: Subject) -> list[Block]:
    shown = field.varying[:MOST_CURVES]
    i, j = field.varying[:2]
    told = say(
        "With more than two features these are slices: one or two features change, and all others "
        "stay at their median over the trials ({}).",
        place(field, field.median),
    )
    if len(shown) < len(field.varying):
        told += say(" The {} most relevant features have a curve.", len(shown))
    pictures = [_curve(field, k, f"slice-{k}", 300) for k in shown]
    return [
        Text(told),
        row(pictures, "slices"),
        Text(say("The two most relevant features are {} and {}:", *_both(field, i, j))),
        _maps(field, i, j),
        _map_table(field, i, j),
    ]


def _both(field: Subject, i: int, j: int) -> tuple[Markup, Markup]:
    return named(field.names[i]), named(field.names[j])


def _raw(field: Subject) -> Markup:
    """Return the remark on raw data beside a curve."""
    if _shows_raw(field):
        return say(
            "Marks are shares of the trials themselves, in up to {} bins, with {} Clopper-Pearson "
            "intervals.",
            BINS,
            words.level_name(field.level),
        )
    return Markup(
        "Shares of the trials themselves are not drawn: they were distorted, and the curve shows "
        "the probability without distortion."
    )


def _shows_raw(field: Subject) -> bool:
    return len(field.varying) == 1 and not field.distorted and field.seen.counts is not None


# Curves ------------------------------------------------------------------------------------


def _curve(field: Subject, k: int, name: str, height: int) -> Figure:
    """Return the probability along one feature."""
    points = field.along(k)
    belief, n_near = field.believe(points), field.n_near(points)
    x = words.coordinates(points[:, k], field.extents[k])
    views = [
        View(field.outcome_name(c), _traces(field, k, x, belief, n_near, column))
        for column, c in enumerate(field.outcomes)
    ]
    if len(views) > 1:
        views.insert(0, View("all", _all_classes(field, k, x, belief, n_near)))
    legend = figures.LEGEND if len(field.varying) == 1 else {}
    axis = words.drawn(field.names[k])
    title = "probability" if len(views) > 1 else f"P({words.drawn(views[0].label, 20)})"
    drawn = figures.layout(
        axis, title, height, xaxis=_digits(field, k), yaxis=_range(field, belief), **legend
    )
    drawn["shapes"] = figures.shades(x, n_near == 0)
    if len(views) == 1:
        drawn["hovermode"] = "x"  # the hover text of a curve shows at any height
    alt = f"Probability along {words.short(field.names[k])}, with intervals"
    return Figure(name, alt, _told_curve(field, k, points, belief, n_near), views, drawn)


def _digits(field: Subject, k: int) -> dict[str, object]:
    """Return the precision of a feature's coordinates."""
    decimals = words.places_after_point(float(field.extents[k]))
    return {"hoverformat": f",.{max(decimals, 0)}~f"} if -9 <= decimals <= 9 else {}


def _range(field: Subject, belief: Belief) -> dict[str, object]:
    low_lying = not _shows_raw(field) and field.lipschitz is None and len(field.varying) == 1
    return figures.probabilities(float(belief.high.max()) if low_lying else 1.0)


def _traces(
    field: Subject, k: int, x: list[float], belief: Belief, n_near: Floats, column: int
) -> list[Trace]:
    """Return interval, mean, guaranteed interval and raw shares of one outcome."""
    label, level = field.outcome_name(field.outcomes[column]), words.level_name(field.level)
    low, high = belief.low[:, column], belief.high[:, column]
    traces = figures.credible(x, low, high, figures.BLUE, f"{level} interval")
    told, hover = figures.told_columns(belief, column, n_near), _hover(field, k, label)
    band = field.guaranteed(field.along(k))
    if band is not None:
        traces += figures.guaranteed(x, *band, f"{level} guaranteed")
        told, hover = [*told, *band], hover + _span_hover("guaranteed", 3)
    traces.append(figures.curve(x, belief.mean[:, column], told, figures.BLUE, "mean", hover))
    if _shows_raw(field):
        traces.append(_shares(field, k, field.outcomes[column]))
    return traces


def _all_classes(
    field: Subject, k: int, x: list[float], belief: Belief, n_near: Floats
) -> list[Trace]:
    traces = []
    for column, c in enumerate(field.outcomes):
        label, told = field.outcome_name(c), figures.told_columns(belief, column, n_near)
        colour, hover = figures.COLOURS[column], _hover(field, k, label)
        mean = belief.mean[:, column]
        traces.append(figures.curve(x, mean, told, colour, words.drawn(label, 20), hover))
    return traces


def _shares(field: Subject, k: int, outcome: int) -> Trace:
    bins = binned(field.seen, k, BINS, level=field.level, class_index=outcome)
    level = words.drawn(words.level_name(field.level))
    hover = (
        f"{words.drawn(field.names[k])} about %{{x}}<br>share of trials %{{y:.1%}}"
        f"{_span_hover(f'{level} interval', 0)}"
        f"<br>trials %{{customdata[2]:{_whole(field)}}}"
    )
    return figures.shares(bins, float(field.extents[k]), "share of trials", hover)


def _hover(field: Subject, k: int, label: str) -> str:
    """Return the hover text of a curve."""
    return (
        f"{words.drawn(field.names[k])} %{{x}}<br>"
        f"<b>P({words.drawn(label, 20)}) %{{y:.1%}}</b>{credible_hover(field)}"
    )


def credible_hover(field: Subject) -> str:
    """Return the hover lines of interval and trials near, from columns 0 to 2."""
    level = words.drawn(words.level_name(field.level))
    near = f"<br>trials near %{{customdata[2]:{_whole(field)}}}"
    return _span_hover(f"{level} interval", 0) + near


def _span_hover(label: str, first: int) -> str:
    return f"<br>{label} %{{customdata[{first}]:.1%}} to %{{customdata[{first + 1}]:.1%}}"


def _whole(field: Subject) -> str:
    """Return plotly's format for numbers of trials."""
    return ",.0f" if float(field.model.n_trials_).is_integer() else ",.1f"


def _told_curve(field: Subject, k: int, points: Floats, belief: Belief, n_near: Floats) -> Markup:
    """Return in words how the probability of each outcome changes along a feature."""
    parts = []
    for column, c in enumerate(field.outcomes):
        mean, at = belief.mean[:, column], points[:, k]
        parts.append(
            say(
                "{}: {} at {}, {} at {}; highest {} at {}, lowest {} at {}.",
                named(field.outcome_name(c)),
                *(
                    text
                    for i in (0, -1, int(mean.argmax()), int(mean.argmin()))
                    for text in (words.percent(mean[i]), field.coordinate(k, at[i]))
                ),
            )
        )
    head = say("Probability along {}. ", named(field.names[k]))
    if (n_near == 0).any():
        rest = (
            "so the answer rests on distant trials"
            if field.is_smooth
            else "so only the prior is left"
        )
        parts.append(say("Grey areas: no trial is near, {}.", rest))
    return head + Markup(" ").join(parts)


def _curve_table(field: Subject, k: int) -> Table:
    points = field.along(k, ROWS)
    belief, n_near = field.believe(points), field.n_near(points)
    head = [words.short(field.names[k])]
    for c in field.outcomes:
        head += [words.short(field.outcome_name(c)), "interval"]
    rows = []
    for i, point in enumerate(points):
        told = [field.coordinate(k, point[k])]
        for column in range(len(field.outcomes)):
            told += _cell(belief, i, column)
        rows.append([*told, words.count(n_near[i])])
    return Table(Markup("Values as a table"), [*head, "trials near"], rows, folded=True, numeric=0)


def _cell(belief: Belief, i: int, column: int) -> list[str]:
    ends = words.span(belief.low[i, column], belief.high[i, column])
    return [words.percent(belief.mean[i, column]), ends]


# Maps --------------------------------------------------------------------------------------


def _maps(field: Subject, i: int, j: int) -> Row:
    """Return the map of the mean beside the map of the uncertainty."""
    n = field.cells
    points = field.across(i, j, n)
    belief, n_near = field.believe(points), field.n_near(points)
    axes = words.drawn(field.names[i]), words.drawn(field.names[j])
    means, widths = [], []
    for column, c in enumerate(field.outcomes):
        label = field.outcome_name(c)
        mean, width = _map_traces(field, (i, j), belief, n_near, column)
        means.append(View(label, mean))
        widths.append(View(label, width))
    # With heatmaps, plotly puts short titles between tick labels unless a standoff is set.
    below = {"title": {"text": axes[0], "standoff": 38}, **_digits(field, i)}
    drawn = figures.layout(*axes, 460, margin={"t": 72}, xaxis=below, yaxis=_digits(field, j))
    level = words.level_name(field.level)
    left = Figure("map", "Map of the probability", _told_map(field, points, belief), means, drawn)
    told = say("How wide the {} intervals are: pale means less certain.", level)
    if (n_near == 0).any():
        told += say(" Grey areas: no trial is near.")
    right = Figure("unsure", f"Map of the width of {level} intervals", told, widths, drawn)
    return row([left, right], "maps")


def _map_traces(
    field: Subject, axes: tuple[int, int], belief: Belief, n_near: Floats, column: int
) -> tuple[list[Trace], list[Trace]]:
    """Return the traces of the mean and those of the uncertainty."""
    (i, j), n = axes, field.cells
    x, y = (words.coordinates(field.axis(k, n, ends=False), field.extents[k]) for k in axes)
    told = [each.reshape(n, n) for each in figures.told_columns(belief, column, n_near)]
    mean, width = (each[:, column].reshape(n, n) for each in (belief.mean, belief.width))
    label = field.outcome_name(field.outcomes[column])
    hover = _map_hover(field, i, j, label)
    empty = (n_near == 0).reshape(n, n)
    over = [figures.veil(x, y, empty)] if empty.any() else []
    if len(field.varying) == 2 and len(field.seen.points) <= DOTS:
        at = (words.coordinates(field.seen.points[:, k], field.extents[k]) for k in axes)
        over.append(figures.dots(*at))
    left = figures.heatmap(
        x,
        y,
        mean,
        [*told, mean],
        title=f"P({words.drawn(label, 20)})",
        scale="Viridis",
        hover=hover,
        limits=_limits(belief.mean),
    )
    right = figures.heatmap(
        x,
        y,
        width,
        [*told, mean],
        title=f"width of the {words.drawn(words.level_name(field.level))} interval",
        scale="Cividis",
        hover=hover,
        limits=(0.0, _limits(belief.width)[1]),
    )
    return [left, *over], [right, *over]


def _limits(values: Floats) -> tuple[float, float]:
    """Return the ends of a colour scale: multiples of 0.05 around all values."""
    low, high = np.floor(values.min() * 20) / 20, np.ceil(values.max() * 20) / 20
    return float(low), float(max(high, low + 0.05))


def _map_hover(field: Subject, i: int, j: int, label: str) -> str:
    return (
        f"{words.drawn(field.names[i])} %{{x}}<br>{words.drawn(field.names[j])} %{{y}}<br>"
        f"<b>P({words.drawn(label, 20)}) %{{customdata[3]:.1%}}</b>{credible_hover(field)}"
    )


def _told_map(field: Subject, points: Floats, belief: Belief) -> Markup:
    parts = [say("Probability at each point.")]
    for column, c in enumerate(field.outcomes):
        mean = belief.mean[:, column]
        top, bottom = int(mean.argmax()), int(mean.argmin())
        parts.append(
            say(
                "{}: from {} at {} to {} at {}.",
                named(field.outcome_name(c)),
                words.percent(mean[bottom]),
                place(field, points[bottom]),
                words.percent(mean[top]),
                place(field, points[top]),
            )
        )
    return Markup(" ").join(parts)


def _map_table(field: Subject, i: int, j: int) -> Table:
    """Return a coarse map of the first outcome in numbers."""
    points = field.across(i, j, SIDE)
    belief = field.believe(points)
    texts = [say("{}<br><small>{}</small>", *_cell(belief, r, 0)) for r in range(len(points))]
    columns = [field.coordinate(i, v) for v in field.axis(i, SIDE, ends=False)]
    rows = []
    for r in reversed(range(SIDE)):
        at = field.coordinate(j, points[r * SIDE, j])
        rows.append([at, *texts[r * SIDE : (r + 1) * SIDE]])
    caption = say("Values of {} as a table", named(field.outcome_name(field.outcomes[0])))
    corner = f"{words.short(field.names[j])} \\ {words.short(field.names[i])}"
    return Table(caption, [corner, *columns], rows, folded=True, numeric=0)
