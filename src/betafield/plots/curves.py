"""Drawing a field over one feature."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import betafield.plots.style as style
from betafield.plots.threshold import bar

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from betafield.observed import Binned
    from betafield.plots.shown import Shown

Floats = npt.NDArray[np.float64]


def draw(axes: Axes, field: Shown, show_places: bool) -> None:
    """Draw the curves of a field, with its band, bins, threshold and places if it has them."""
    (grid,) = field.grid
    mean, low, high = (_columns(each) for each in (field.mean, field.low, field.high))
    several = len(mean) > 1 or field.by is not None
    for k, event in enumerate(field.events):
        colour = style.LINES[k % len(style.LINES)]
        dashes: Any = style.STYLES[(k + k // len(style.LINES)) % len(style.STYLES)]
        name = event if several else _mean_name(field)
        axes.plot(grid, mean[k], color=colour, linestyle=dashes, linewidth=1.8, label=name)
        what = _interval_name(field) if k == len(mean) - 1 else None
        shade = 0.22 if len(mean) <= 3 else 0.12
        axes.fill_between(grid, low[k], high[k], color=colour, alpha=shade, linewidth=0, label=what)
    if field.band is not None:
        _draw_band(axes, field)
    for k, bins in enumerate(field.bins):
        _draw_bins(axes, bins, k if several else None)
    if field.threshold is not None:
        bar(axes, field.threshold, field.level)
    if show_places and field.places is not None:
        _draw_rug(axes, field.places[:, 0])
    _finish(axes, field)


def _columns(values: Floats) -> list[Floats]:
    """Return one array per curve."""
    return [values] if values.ndim == 1 else list(values.T)


def _mean_name(field: Shown) -> str:
    return "average over the trials' places" if field.averaged else "posterior mean"


def _interval_name(field: Shown) -> str:
    if field.averaged:
        return f"average of the {style.percent(field.level)} intervals"
    return f"{style.percent(field.level)} credible interval"


def _draw_band(axes: Axes, field: Shown) -> None:
    assert field.band is not None
    name: str | None = f"{style.percent(field.level)} guaranteed band"
    for ends in field.band:
        axes.plot(
            field.grid[0], ends, color=style.VERMILLION, linestyle="--", linewidth=1.1, label=name
        )
        name = None


def _draw_bins(axes: Axes, bins: Binned, k: int | None) -> None:
    """Draw shares with their intervals; with several classes, in the colours of their curves."""
    some = bins.trials > 0
    share, low, high = (each[some] for each in (bins.share, bins.low, bins.high))
    axes.errorbar(
        bins.centres[some],
        share,
        [share - low, high - share],
        fmt="o",
        color=style.DATA if k is None else style.LINES[k % len(style.LINES)],
        markersize=3.5,
        elinewidth=0.8,
        label="share of successes in bins" if k is None else None,
    )


def _draw_rug(axes: Axes, where: Floats) -> None:
    axes.plot(
        where,
        np.full(len(where), 0.012),
        "|",
        transform=axes.get_xaxis_transform(),
        color=style.FAINT,
        markersize=5,
        markeredgewidth=0.4,
        label="places of trials",
    )


def _finish(axes: Axes, field: Shown) -> None:
    axes.set_xlim(*style.padded(field.grid[0][0], field.grid[0][-1]))
    axes.set_ylim(*_limits(field))
    axes.set_xlabel(style.shown(field.features[0]) + style.fixed_at(field.at))
    axes.set_ylabel(field.events[0] if len(field.events) == 1 else "probability")
    style.legend(axes, title=field.by)
    style.plain(axes)


def _limits(field: Shown) -> tuple[float, float]:
    """Return the range of probabilities to show: [0, 1], unless the curves span less than half."""
    shares = [bins.share[bins.trials > 0] for bins in field.bins]
    values = np.concatenate([field.low.ravel(), field.high.ravel(), *shares])
    low, high = float(values.min()), float(values.max())
    if high - low > 0.5:
        return -0.02, 1.02
    low, high = style.padded(low, high, 0.12)
    return max(low, -0.02) if low > 0.3 * high else -0.02 * high, min(high, 1.02)
