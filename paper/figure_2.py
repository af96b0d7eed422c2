"""Figure 2: two features; and one feature with contexts B ~ U[0, 1], A = 1 − B.

The paper: left, SBP falls like t^(−1/2) and LGP does as well; right, CSBP keeps the rate of one
feature and is well below LGP, which takes B for a second feature and is read at B = 0.
"""

from pathlib import Path

from matplotlib.axes import Axes

from paper import pictures
from paper.figure_1 import factor_apart
from paper.results import Check, Checker, Checks, Curve, Results, slope_check
from paper.sizes import Sizes

LEFT, RIGHT = "2 left", "2 right"
RATES = {LEFT: (-1 / 2, "−1/2"), RIGHT: (-2 / 3, "−2/3")}
# LGP must not be nearer from here on.
LEAST = 300


def curves(sizes: Sizes) -> list[Curve]:
    return [
        Curve(LEFT, "SBP", "cone-2", sizes.t, sizes.all_runs),
        Curve(LEFT, "LGP", "cone-2", sizes.gp_t, sizes.gp_runs),
        Curve(RIGHT, "CSBP", "background", sizes.t, sizes.all_runs),
        Curve(RIGHT, "exact", "background", sizes.t, sizes.all_runs),
        Curve(RIGHT, "LGP", "background", sizes.gp_t, sizes.gp_runs),
    ]


def below_gp(panel: str, name: str, words: str) -> Checker:
    """Check that an error of CSBP is below LGP's at every t from 300 on."""

    def check(results: Results) -> Check:
        ratios = results.ratios(panel, "CSBP", "LGP", name, LEAST)
        t = max(ratios, key=lambda each: ratios[each])
        claim = f"{words} of CSBP to LGP's, at worst (t = {t:,})"
        return Check(panel, claim, ratios[t], "≤", 1.0)

    return check


CHECKS: Checks = {
    "2-D slope": slope_check(LEFT, "slope of SBP's L2 error", LEFT, "SBP", -0.45),
    "LGP like SBP, 2-D": factor_apart(LEFT),
    "contextual slope": slope_check(RIGHT, "slope of CSBP's L2 error", RIGHT, "CSBP", -0.60),
    "CSBP below LGP, background": below_gp(RIGHT, "l2", "L2 error"),
}


def draw(results: Results, folder: Path) -> None:
    figure, panels = pictures.sheet(2)
    titles = ("Two features", "One feature, contexts B ~ U[0, 1]")
    for axes, panel, title in zip(panels, (LEFT, RIGHT), titles, strict=True):
        gp = "LGP" if panel == LEFT else "LGP, B as a feature"
        pictures.draw_errors(axes, results[panel], gp)
        draw_rate(axes, results, panel)
        axes.set_title(title, loc="left")
        pictures.legend(axes, "method  [slope]")
    pictures.save(figure, folder / "figure-2.png")


def draw_rate(axes: Axes, results: Results, panel: str) -> None:
    ours = next(iter(results[panel]))
    t, (rate, words) = results[panel][ours]["t"], RATES[panel]
    start = 0.6 * results.at(panel, ours, "l2", t[0])
    pictures.draw_rate(axes, (t[0], start), t[-1], rate, f"rate of the theorem  [{words}]")
