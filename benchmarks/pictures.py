"""The picture of docs/how_it_works.md: what is learned where π is smooth, rough, and not seen.

``python benchmarks/pictures.py [FILE]``; FILE is docs/assets/shapes.png unless named.
"""

import sys
from pathlib import Path

import numpy as np
from functions import ALL
from matplotlib.figure import Figure

from betafield import SmoothBetaClassifier

PICTURE = Path(__file__).parent.parent / "docs" / "assets" / "shapes.png"
BLUE, GREY = "#0072B2", "0.35"
PANELS = (
    ("slow-wave-1", 1_000, None, "Smooth: 1,000 trials"),
    ("dip-1", 1_000, None, "A narrow dip: 1,000 trials"),
    ("oscillating-1", 2_000, (0.35, 0.6), "A gap: 2,000 trials elsewhere"),
    ("stairs-1", 3_000, None, "Rough: 3,000 trials"),
)


def draw(axes, name, t, gap, title):
    """Draw the truth, the posterior mean and its 95 % interval."""
    function = next(f for f in ALL if f.name == name)
    X, y = function.trials(t if gap is None else 2 * t, 0)
    if gap is not None:
        outside = np.flatnonzero((X[:, 0] < gap[0]) | (X[:, 0] > gap[1]))[:t]
        X, y = X[outside], y[outside]
        axes.axvspan(*gap, color="0.93")
    grid = np.linspace(0, 1, 801)[:, None]
    posterior = SmoothBetaClassifier().fit(X, y).posterior(grid)
    axes.fill_between(grid[:, 0], *posterior.interval(0.95), color=BLUE, alpha=0.25, linewidth=0)
    axes.plot(grid[:, 0], function(grid), color=GREY, linestyle="--", linewidth=1, label="truth")
    axes.plot(grid[:, 0], posterior.mean(), color=BLUE, label="mean, 95 % interval")
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)


def main(picture=PICTURE):
    figure = Figure(figsize=(9, 5.6), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    for axes, panel in zip(panels, PANELS, strict=True):
        draw(axes, *panel)
    panels[0].legend(loc="lower left", frameon=False)
    figure.savefig(picture, dpi=100)
    print(f"picture  {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:])
