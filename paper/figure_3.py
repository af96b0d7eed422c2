"""Figure 3: stroke rehabilitation. Success is a (1 − x), x the difficulty, a ~ U[½, 1] the fatigue.

The paper: left, posterior means of the rested patient and at a = ½, CSBP nearer to the truth than
LGP with a as a feature; right, error of the rested state, where CSBP is below LGP and steeper. That
it is steeper is not checked, for slopes differ by no more than their errors: see docs/paper.md.
"""

from pathlib import Path

from matplotlib.axes import Axes

from paper import pictures
from paper.figure_2 import below_gp
from paper.problems import PROBLEMS
from paper.results import Checks, Curve, Results, slope_check
from paper.sizes import Sizes

LEFT, RIGHT = "3 left", "3 right"
PROBLEM = "rehabilitation"
RATE = -2 / 3


def curves(sizes: Sizes) -> list[Curve]:
    return [
        Curve(LEFT, "CSBP", PROBLEM, (sizes.shown,), (1,), "means"),
        Curve(LEFT, "LGP", PROBLEM, (sizes.shown,), (1,), "means"),
        Curve(RIGHT, "CSBP", PROBLEM, sizes.t, sizes.all_runs),
        Curve(RIGHT, "exact", PROBLEM, sizes.t, sizes.all_runs),
        Curve(RIGHT, "LGP", PROBLEM, sizes.gp_t, sizes.gp_runs),
    ]


CHECKS: Checks = {
    "CSBP's mean nearer": below_gp(RIGHT, "squared", "squared error of the mean"),
    "CSBP below LGP, rehabilitation": below_gp(RIGHT, "l2", "L2 error"),
    "rehabilitation slope": slope_check(RIGHT, "slope of CSBP's L2 error", RIGHT, "CSBP", -0.60),
}


def draw(results: Results, folder: Path) -> None:
    figure, (left, right) = pictures.sheet(2)
    draw_means(left, results)
    pictures.draw_errors(right, results[RIGHT], "LGP, a as a feature")
    t = results[RIGHT]["CSBP"]["t"]
    start = 0.6 * results.at(RIGHT, "CSBP", "l2", t[0])
    pictures.draw_rate(right, (t[0], start), t[-1], RATE, "rate of the theorem  [−2/3]")
    right.set_title("Error of the rested state", loc="left")
    pictures.legend(right, "method  [slope]")
    pictures.save(figure, folder / "figure-3.png")


def draw_means(axes: Axes, results: Results) -> None:
    problem = PROBLEMS[PROBLEM]
    x = problem.grid[:, 0]
    for method, curve in results[LEFT].items():
        colour, _, label = pictures.STYLES[method]
        axes.plot(x, curve["rested"], color=colour, linewidth=1.8, label=f"{label}, rested")
        tired = {"linestyle": "--", "label": f"{label}, a = ½"}
        axes.plot(x, curve["tired"], color=colour, linewidth=1.8, **tired)
    axes.plot(x, problem.truth, **pictures.TRUTH)
    axes.plot(x, problem.truth / 2, **pictures.TRUTH | {"label": None})
    axes.set_xlabel("difficulty of the exercise x")
    axes.set_ylabel("posterior mean of the success probability")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_title(f"Posterior means, t = {results[LEFT]['CSBP']['t'][0]:,}", loc="left")
    pictures.legend(axes)
