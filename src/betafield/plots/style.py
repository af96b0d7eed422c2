"""Colours, names and axes that all displays share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield._extras import needed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

# Five of Okabe and Ito's eight colours for colour-blind readers: those that also differ in
# lightness or hue if one sees no red or no green.
BLUE, VERMILLION, GREEN, SKY, BLACK = "#0072B2", "#D55E00", "#009E73", "#56B4E9", "#000000"
LINES = (BLUE, VERMILLION, GREEN, SKY, BLACK)
# Lines and markers differ in more than colour, so they can be told apart in print too.
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v")
DATA, FAINT = "0.2", "0.45"
# Colour maps of steadily changing lightness, for a probability and for its uncertainty. Pale means
# less certain, like fading colours. Reports and the dashboard use the same.
MEAN_MAP, UNCERTAINTY_MAP = "viridis", "cividis"
# For chances: the ends are certain, the middle is not.
CHANCE_MAP = "cividis"
# Longer names are cut.
LONGEST = 40
# The largest number of places that are marked.
MARKED = 2_000


class Drawn:
    """What a picture was drawn on last."""

    ax_: Any
    figure_: Any


def pyplot() -> Any:
    """Return matplotlib's pyplot, or say how to install it."""
    return needed("plot", "matplotlib.pyplot")


# Names -------------------------------------------------------------------------------------


def shown(name: Any) -> str:
    r"""Return a name that matplotlib shows literally, not as a formula, and cut to 40 characters.

    Examples
    --------
    >>> print(shown("cost ($)"))
    cost (\$)
    """
    text = " ".join(str(name).split())
    if len(text) > LONGEST:
        text = text[: LONGEST - 1] + "…"
    return text.replace("$", r"\$")


def chance_of(classes: npt.NDArray[Any], index: int) -> str:
    """Return the label of a class's probability; classes 0 and 1 are failure and success.

    Examples
    --------
    >>> chance_of(np.array(["late", "on time"]), 0), chance_of(np.array([False, True]), 1)
    ('P(late)', 'P(success)')
    """
    if classes.tolist() == [0, 1]:
        return ("P(failure)", "P(success)")[index]
    return f"P({shown(classes[index])})"


def percent(level: float) -> str:
    """Return a level in per cent: 0.95 is 95 %."""
    return f"{100 * level:.10g} %"


def some(places: Floats) -> Floats:
    """Return places to mark: all, or a random sample if there are too many."""
    if len(places) <= MARKED:
        return places
    return np.asarray(np.random.default_rng(0).choice(places, MARKED, replace=False))


# Axes --------------------------------------------------------------------------------------


def panels(ax: Any, size: tuple[float, float], **grid: Any) -> list[Axes]:
    """Return the axes to draw on: those given, or those of a new figure.

    A single one has room for the first panel only.
    """
    plt = pyplot()
    if ax is None:
        _, axes = plt.subplots(figsize=size, layout="constrained", **grid)
        return list(np.atleast_1d(axes))
    from matplotlib.axes import Axes

    several = isinstance(ax, (list, tuple, np.ndarray))
    given = list(checks.cells("ax", ax).flat) if several else [ax]
    most = max(grid.get("nrows", 1), grid.get("ncols", 1))
    if not 1 <= len(given) <= most or not all(isinstance(each, Axes) for each in given):
        allowed = "one Axes is" if most == 1 else f"one Axes or {most} are"
        found = f"{len(given)} of them" if several else type(ax).__name__
        raise ValueError(f"ax: found {found}; {allowed} needed")
    return given


def kept(axes: list[Axes]) -> Any:
    """Return the value of a display's `ax_`: one Axes, or an array of several."""
    return axes[0] if len(axes) == 1 else np.array(axes, dtype=object)


def plain(axes: Axes, grid: Literal["both", "x", "y"] = "both") -> None:
    """Reduce frame and grid to what helps reading."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, axis=grid, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


def titled(axes: Axes, text: str) -> None:
    """Write a title above the left corner."""
    axes.set_title(text, loc="left", fontsize="medium")


def padded(low: float, high: float, part: float = 0.02) -> tuple[float, float]:
    """Return a slightly wider range, even if it is a single point."""
    margin = part * (high - low) or part * max(abs(low), 1.0)
    return low - margin, high + margin


def fixed_at(at: Mapping[str, Any] | None) -> str:
    """Return a line with the values of fixed features, or an empty text."""
    if not at:
        return ""
    told = {name: v if isinstance(v, str) else f"{v:.4g}" for name, v in at.items()}
    return "\nat " + ", ".join(f"{shown(name)} = {value}" for name, value in told.items())


def legend(axes: Axes, ncols: int = 2, title: str | None = None) -> None:
    """Draw the legend above the axes, where nothing else is."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=ncols,
        frameon=False,
        fontsize="small",
        borderaxespad=0.2,
        title=title,
        title_fontsize="small",
        alignment="left",
    )
