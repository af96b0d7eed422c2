"""Drawing a field over two features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import betafield.plots.style as style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from betafield.plots.shown import Shown

Floats = npt.NDArray[np.float64]
Ends = tuple[float, float]

# About how many contour values; contours in more pieces than this are not drawn.
CONTOURS, PIECES = 5, 24


def draw(axes: list[Axes], field: Shown, show_places: bool) -> None:
    """Draw the mean and, if there are two axes, its uncertainty beside it."""
    _draw_map(axes[0], field, field.mean, style.MEAN_MAP)
    style.titled(axes[0], field.events[0])
    if len(axes) > 1:
        low, high = (field.low, field.high) if field.band is None else field.band
        _draw_map(axes[1], field, high - low, style.UNCERTAINTY_MAP)
        what = "credible interval" if field.band is None else "guaranteed band"
        style.titled(axes[1], f"width of the {style.percent(field.level)} {what}")
    for each in axes:
        each.set_xlabel(style.shown(field.features[0]) + style.fixed_at(field.at))
    if show_places and field.places is not None:
        for each, colour in zip(axes, ("white", "black"), strict=False):
            draw_places(each, field.places, colour)
    axes[0].set_ylabel(style.shown(field.features[1]))


def draw_levels(axes: list[Axes], field: Shown, show_places: bool) -> None:
    """Draw one map of the mean per level, for as many levels as there are axes.

    All share colours and contour values.
    """
    assert field.by is not None
    means, (x, y) = field.mean[..., : len(axes)], field.grid
    ends = float(means.min()), float(means.max())
    for k, each in enumerate(axes):
        image = _draw_image(each, field, means[..., k], style.MEAN_MAP, ends)
        if np.ptp(means[..., k]) > 1e-9:
            _draw_contours(each, x, y, means[..., k], ends)
        style.titled(each, field.events[k])
        each.set_xlabel(style.shown(field.features[0]))
        if show_places and field.places is not None:
            draw_places(each, field.places, "white")
    axes[0].set_ylabel(style.shown(field.features[1]) + style.fixed_at(field.at))
    bar = axes[0].figure.colorbar(image, ax=axes, pad=0.02)
    bar.outline.set_visible(False)
    bar.set_label(field.by)


def _draw_image(
    axes: Axes, field: Shown, values: Floats, colours: str, ends: Ends | None = None
) -> Any:
    """Draw values as colours, over the given range or over that of the values."""
    (x, y), (least, most) = field.grid, ends or (None, None)
    image = axes.pcolormesh(
        x, y, values, cmap=colours, vmin=least, vmax=most, shading="nearest", rasterized=True
    )
    for limit, along in ((axes.set_xlim, x), (axes.set_ylim, y)):
        low, high = float(along[0]), float(along[-1])
        limit(*((low, high) if low < high else style.padded(low, high)))
    return image


def _draw_map(axes: Axes, field: Shown, values: Floats, colours: str) -> None:
    (x, y), image = field.grid, _draw_image(axes, field, values, colours)
    bar = axes.figure.colorbar(image, ax=axes, pad=0.02)
    bar.outline.set_visible(False)
    if np.ptp(values) > 1e-9 and x[0] < x[-1] and y[0] < y[-1]:
        _draw_contours(axes, x, y, values)


def draw_chance(
    axes: Axes, grid: tuple[Floats, ...], chance: Floats, levels: tuple[float, float]
) -> None:
    """Draw a map of chances from 0 to 1, with contours at two of them."""
    from matplotlib.patheffects import withStroke

    x, y = grid
    image = axes.pcolormesh(
        x, y, chance, cmap=style.CHANCE_MAP, vmin=0.0, vmax=1.0, shading="nearest", rasterized=True
    )
    bar = axes.figure.colorbar(image, ax=axes, pad=0.02)
    bar.outline.set_visible(False)
    if chance.min() < levels[1] and chance.max() > levels[0] and min(chance.shape) > 1:
        lines = axes.contour(x, y, chance, levels=levels, colors="white", linewidths=0.9)
        lines.set_path_effects([withStroke(linewidth=1.7, foreground="0.25")])
        for text in axes.clabel(lines, fontsize="x-small"):
            text.set_path_effects([withStroke(linewidth=1.4, foreground="0.25")])


def _draw_contours(
    axes: Axes, x: Floats, y: Floats, values: Floats, ends: Ends | None = None
) -> None:
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import MaxNLocator

    low, high = float(values.min()), float(values.max())
    levels = np.asarray(MaxNLocator(CONTOURS).tick_values(*(ends or (low, high))))
    levels = levels[(levels >= low) & (levels <= high)]
    if not levels.size:
        return
    lines = axes.contour(x, y, values, levels=levels, colors="white", linewidths=0.8)
    if sum(len(pieces) for pieces in lines.allsegs) > PIECES:
        lines.remove()
        return
    # A dark outline keeps white lines visible on light and dark colours.
    lines.set_path_effects([withStroke(linewidth=1.6, foreground="0.25")])
    for text in axes.clabel(lines, fontsize="x-small"):
        text.set_path_effects([withStroke(linewidth=1.4, foreground="0.25")])


def draw_places(axes: Axes, places: Floats, colour: str) -> None:
    """Mark the places of trials."""
    axes.plot(*places.T, ".", color=colour, markersize=2, markeredgewidth=0, alpha=0.6)
