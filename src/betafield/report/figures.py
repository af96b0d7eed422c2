"""Figures for plotly: traces and layouts as plain data."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import betafield.report.words as words
from betafield.observed import Binned
from betafield.report.blocks import Trace
from betafield.report.subject import Belief

Floats = npt.NDArray[np.float64]

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, RED, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, YELLOW, GREY = "#CC79A7", "#56B4E9", "#F0E442", "#7A7A7A"
COLOURS = [BLUE, RED, GREEN, ORANGE, PURPLE, SKY, YELLOW, GREY]
NO_BOX = "<extra></extra>"


def layout(x: str, y: str, height: int = 360, **more: Any) -> dict[str, Any]:
    """Return a layout with named axes; names must be escaped already."""
    axis = {"automargin": True, "zeroline": False, "fixedrange": False, "ticks": "outside"}
    base: dict[str, Any] = {
        "height": height,
        "margin": {"l": 56, "r": 12, "t": 12, "b": 60},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "namelength": 0},
        "showlegend": False,
        "xaxis": {
            **axis,
            "automargin": False,
            "tickangle": 0,
            "title": {"text": x, "standoff": 10},
        },
        "yaxis": {**axis, "title": {"text": y}},
    }
    for key, value in more.items():
        base[key] = {**base[key], **value} if isinstance(base.get(key), dict) else value
    return base


def probabilities(highest: float = 1.0) -> dict[str, Any]:
    """Return the options of an axis of probabilities that reaches at least this high."""
    top = 1.0 if highest > 0.5 else max(0.02, 1.15 * highest)
    return {"tickformat": ".0%" if top > 0.1 else ".1%", "range": [-0.02 * top, 1.02 * top]}


def credible(x: list[float], low: Floats, high: Floats, colour: str, label: str) -> list[Trace]:
    """Return the area between the ends of intervals."""
    edge = {"x": x, "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "type": "scatter"}
    shade = f"rgba({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))}, 0.25)"
    return [
        {**edge, "y": words.rounded(low), "showlegend": False, "name": ""},
        {**edge, "y": words.rounded(high), "fill": "tonexty", "fillcolor": shade, "name": label},
    ]


def guaranteed(x: list[float], low: Floats, high: Floats, label: str) -> list[Trace]:
    """Return the two ends of guaranteed intervals."""
    line = {"color": GREY, "width": 1.5, "dash": "dot"}
    edge = {"x": x, "type": "scatter", "mode": "lines", "line": line, "hoverinfo": "skip"}
    group = {"legendgroup": "guaranteed", "name": label}
    return [
        {**edge, **group, "y": words.rounded(low)},
        {**edge, **group, "y": words.rounded(high), "showlegend": False},
    ]


def curve(
    x: list[float], mean: Floats, told: list[Floats], colour: str, label: str, hover: str
) -> Trace:
    """Return a line; `told` are the columns of its hover text."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": words.rounded(mean),
        "customdata": words.rounded(np.stack(told, axis=1)),
        "line": {"color": colour, "width": 2.5},
        "name": label,
        "hovertemplate": hover + NO_BOX,
    }


def shares(bins: Binned, extent: float, label: str, hover: str) -> Trace:
    """Return shares of trials with the ends of their intervals, one marker per bin."""
    some = bins.trials > 0
    share, low, high = bins.share[some], bins.low[some], bins.high[some]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": words.coordinates(bins.centres[some], extent),
        "y": words.rounded(share),
        "customdata": words.rounded(np.stack([low, high, bins.trials[some]], axis=1)),
        "marker": {"color": RED, "size": 6},
        "error_y": whiskers(share, low, high, RED),
        "name": label,
        "hovertemplate": hover + NO_BOX,
    }


def whiskers(share: Floats, low: Floats, high: Floats, colour: str) -> dict[str, Any]:
    """Return error bars from low to high."""
    return {
        "type": "data",
        "symmetric": False,
        "array": words.rounded(high - share),
        "arrayminus": words.rounded(share - low),
        "color": colour,
        "thickness": 1,
        "width": 0,
    }


def heatmap(
    x: list[float],
    y: list[float],
    z: Floats,
    told: list[Floats],
    *,
    title: str,
    scale: str,
    hover: str,
    limits: tuple[float, float],
) -> Trace:
    """Return a map of values z, of shape (len(y), len(x)); `told` has arrays of that shape."""
    bar: dict[str, Any] = {
        "orientation": "h",
        "thickness": 12,
        "tickformat": ".0%",
        "outlinewidth": 0,
    }
    bar["title"] = {"text": title, "side": "top"}
    return {
        "type": "heatmap",
        "x": x,
        "y": y,
        "z": words.rounded(z),
        "customdata": words.rounded(np.stack(told, axis=-1)),
        "colorscale": scale,
        "zmin": limits[0],
        "zmax": limits[1],
        "colorbar": {**bar, "y": 1.02, "yanchor": "bottom", "len": 0.9, "ypad": 4},
        "hovertemplate": hover + NO_BOX,
    }


def veil(x: list[float], y: list[float], hidden: npt.NDArray[np.bool_]) -> Trace:
    """Return a grey veil over cells."""
    return {
        "type": "heatmap",
        "x": x,
        "y": y,
        "z": [[1 if cell else None for cell in row] for row in hidden.tolist()],
        "colorscale": [[0, "#BBBBBB"], [1, "#BBBBBB"]],
        "opacity": 0.75,
        "showscale": False,
        "hoverinfo": "skip",
    }


def shades(x: list[float], hidden: npt.NDArray[np.bool_]) -> list[dict[str, Any]]:
    """Return grey shapes behind a curve, one per run of hidden points."""
    steps = np.diff(np.concatenate([[0], hidden.astype(np.int8), [0]]))
    runs = zip(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1, strict=True)
    shape = {"type": "rect", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    fill = {"fillcolor": "rgba(128, 128, 128, 0.22)", "line": {"width": 0}}
    return [{**shape, **fill, "x0": x[a], "x1": x[b]} for a, b in runs]


def dots(x: list[float], y: list[float]) -> Trace:
    """Return a small mark at each place."""
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": y,
        "marker": {"size": 3, "color": "#FFFFFF", "line": {"color": "#333333", "width": 0.5}},
        "hoverinfo": "skip",
    }


def bars(x: list[float], heights: Floats, widths: float, colour: str, hover: str) -> Trace:
    """Return bars of shares."""
    return {
        "type": "bar",
        "x": x,
        "y": words.rounded(heights),
        "width": widths,
        "marker": {"color": colour},
        "hovertemplate": hover + NO_BOX,
    }


def told_columns(belief: Belief, column: int, n_near: Floats) -> list[Floats]:
    """Return low, high and trials near: the columns of hover texts."""
    return [belief.low[:, column], belief.high[:, column], n_near]


LEGEND = {
    "showlegend": True,
    "legend": {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "y": 1.02,
        "yanchor": "bottom",
        "itemsizing": "constant",
    },
}
