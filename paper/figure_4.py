"""Figure 4: Bayes risk against t, with priors that know the truth, and without.

The paper: priors whose mean is π(x) help while trials are few, the more the smaller their variance
v; later the curves meet. Fixed-radius neighbours, which have no prior, are there to compare with.
Drawn is the risk itself, with the smallest possible one; the results hold the excess as well.
"""

from pathlib import Path
from typing import Any

import numpy as np

from paper import pictures
from paper.methods import VARIANCES
from paper.problems import PROBLEMS
from paper.results import Check, Checks, Curve, Results
from paper.sizes import Sizes

PANEL, PROBLEM = "4", "cone-1"
INFORMED = tuple(f"v = {v}" for v in VARIANCES)
ALL = (*INFORMED, "SBP", "NN")


def curves(sizes: Sizes) -> list[Curve]:
    return [
        Curve(PANEL, method, PROBLEM, sizes.early, (sizes.runs,) * len(sizes.early))
        for method in ALL
    ]


def ordered(results: Results) -> Check:
    """Check that at the smallest t the risk rises from each prior to the next weaker one."""
    t = results[PANEL]["SBP"]["t"][0]
    risks = [results.at(PANEL, method, "risk", t) for method in (*INFORMED, "SBP")]
    steps = min(np.diff(risks) / risks[0])
    claim = f"smallest relative rise of risk to the next larger v, t = {t:,}"
    return Check(PANEL, claim, float(steps), "≥", 0.0)


def met_later(results: Results) -> Check:
    """Check that at the largest t all risks are within 5 % of each other."""
    t = results[PANEL]["SBP"]["t"][-1]
    risks = [results.at(PANEL, method, "risk", t) for method in ALL]
    return Check(PANEL, f"largest risk to smallest, t = {t:,}", max(risks) / min(risks), "≤", 1.05)


CHECKS: Checks = {"priors help in order of v": ordered, "priors meet": met_later}


# Pictures ------------------------------------------------------------------------------------

# Shades that no method has in other figures.
INFORMED_STYLES = dict(
    zip(INFORMED, (("#332288", "s"), ("#882255", "^"), ("#BB9911", "D")), strict=True)
)


def draw(results: Results, folder: Path) -> None:
    figure, (axes,) = pictures.sheet(1)
    figure.set_size_inches(6.8, 4.6)
    truth = PROBLEMS[PROBLEM].truth
    least = float(np.minimum(truth, 1 - truth).mean())
    axes.axhline(least, **pictures.TRUTH | {"label": "smallest possible"})
    for method, curve in results[PANEL].items():
        pictures.draw_means(axes, curve, "risk", **line(method))
    axes.set_xscale("log")
    pictures.plain(axes)
    axes.set_ylabel("risk of the classifier 1[E π̃ ≥ ½]")
    axes.set_title("Bayes risk, priors of mean π(x) and variance v", loc="left")
    pictures.legend(axes)
    pictures.save(figure, folder / "figure-4.png")


def line(method: str) -> dict[str, Any]:
    """Return how a method is drawn."""
    if method in INFORMED:
        colour, marker = INFORMED_STYLES[method]
        return {"color": colour, "marker": marker, "label": f"SBP, {method}"}
    colour, marker, label = pictures.STYLES[method]
    if method == "SBP":
        return {"color": colour, "marker": marker, "label": "SBP, uniform prior"}
    # It decides as the uniform prior does: dashes let that one show through.
    return {"color": colour, "marker": marker, "label": label, "linestyle": "--", "zorder": 5}
