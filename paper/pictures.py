"""What all pictures share: one colour and one marker a method, whatever the figure."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from paper.results import Found

# Okabe and Ito's colours, which stay apart for colour-blind readers.
STYLES = {
    "SBP": ("#0072B2", "o", "SBP, Δ by theory"),
    "CSBP": ("#0072B2", "o", "CSBP (mean context)"),
    "exact": ("#009E73", "s", "exact likelihood (ours)"),
    "Δ₁": ("#56B4E9", "v", "SBP, Δ₁ fixed, wide"),
    "Δ₂": ("#E69F00", "^", "SBP, Δ₂ fixed, narrow"),
    "CCBP": ("#CC79A7", "D", "CCBP, fixed kernel"),
    "LGP": ("#D55E00", "X", "LGP"),
    "LGP, kernel given": ("#D55E00", "P", "LGP, kernel given"),
    "NN": ("#666666", "x", "fixed-radius neighbours"),
}
TRUTH = {"color": "black", "linestyle": ":", "linewidth": 1.3, "label": "truth"}


def sheet(panels: int) -> tuple[Figure, Any]:
    """Return a figure and its panels, side by side."""
    figure = Figure(figsize=(5.4 * panels, 4.4), layout="constrained")
    return figure, figure.subplots(1, panels, squeeze=False)[0]


def save(figure: Figure, picture: Path) -> None:
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=110)


def draw_errors(axes: Axes, curves: dict[str, Found], gp: str = "LGP") -> None:
    """Draw L2 errors against t on logarithmic axes, with their slopes."""
    for method, curve in curves.items():
        colour, marker, words = STYLES[method]
        label = with_slope(gp if method == "LGP" else words, curve["l2"])
        draw_means(axes, curve, "l2", color=colour, marker=marker, label=label)
    on_log_axes(axes)
    axes.set_ylabel("L2 error E(π̃ − π)²")


def draw_means(axes: Axes, curve: Found, name: str, **line: Any) -> None:
    """Draw means over runs, with two standard errors."""
    found = curve[name]
    spread = 2 * np.array(found["se"])
    axes.errorbar(curve["t"], found["mean"], spread, markersize=5, capsize=2, elinewidth=1, **line)


def with_slope(words: str, found: Found) -> str:
    return f"{words}  [{found['slope']:.2f}]".replace("-", "−")


def on_log_axes(axes: Axes) -> None:
    """Make both axes logarithmic, with numbers at 1, 2 and 5 times powers of ten."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    subs = (1.0, 2.0, 5.0) if high < 30 * low else (1.0,) if high > 1_000 * low else (1.0, 3.0)
    axes.yaxis.set_major_locator(LogLocator(subs=subs))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    plain(axes)


def plain(axes: Axes) -> None:
    axes.set_xlabel("number of trials t")
    axes.grid(which="major", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def draw_rate(
    axes: Axes, start: tuple[float, float], end: float, exponent: float, label: str
) -> None:
    """Draw a dashed line of known slope, to compare with by eye."""
    t = np.array([start[0], end])
    axes.plot(
        t, start[1] * (t / t[0]) ** exponent, "--", color="#999999", linewidth=1.2, label=label
    )


def legend(axes: Axes, title: str | None = None, **where: Any) -> None:
    axes.legend(frameon=False, fontsize=8.5, title=title, title_fontsize=8.5, **where)
