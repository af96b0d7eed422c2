"""Figure 1: one feature, no contexts.

Left, error against t. The paper: SBP falls like t^(−2/3), LGP does as well, CCBP and a wide fixed
window stop, a narrow fixed window starts badly. Middle, posterior means for the three widths: the
wide window is too smooth, the narrow one ragged. Right, running time: LGP cubic, SBP far below.

LGP is timed twice: with its kernel given, once through its algorithm, which is what grows as t³
and what the check is on; and as it is used, with the kernel learned, whose search takes more or
fewer rounds from one data set to the next.
"""

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from paper import pictures
from paper.problems import PROBLEMS
from paper.results import Check, Checker, Checks, Curve, Results, slope_check
from paper.sizes import Sizes

PROBLEM, SMOOTH = "cone-1", "sine-1"
LEFT, MIDDLE, RIGHT, ON_SINE = "1 left", "1 middle", "1 right", "1 left, sine"
GIVEN = "LGP, kernel given"
RATE = -2 / 3


def curves(sizes: Sizes) -> list[Curve]:
    both = ((LEFT, PROBLEM), (ON_SINE, SMOOTH)) if sizes.smooth else ((LEFT, PROBLEM),)
    return [
        *(
            Curve(panel, method, problem, sizes.t, sizes.all_runs)
            for panel, problem in both
            for method in ("SBP", "Δ₁", "Δ₂", "CCBP")
        ),
        *(Curve(panel, "LGP", problem, sizes.gp_t, sizes.gp_runs) for panel, problem in both),
        *(
            Curve(MIDDLE, method, PROBLEM, (sizes.shown,), (1,), "means")
            for method in ("Δ₁", "Δ₂", "SBP")
        ),
        *(
            Curve(RIGHT, method, PROBLEM, t, (repeats,) * len(t), "seconds")
            for method, t, repeats in (
                ("SBP", sizes.timed, sizes.repeats),
                (GIVEN, sizes.gp_timed, sizes.gp_repeats),
                ("LGP", sizes.gp_learned, 1),
            )
        ),
    ]


# What the paper says -------------------------------------------------------------------------


def times_worse(method: str, at: int, allowed: float) -> Checker:
    """Check that a method's error, at the first or the last t, is several times SBP's."""

    def check(results: Results) -> Check:
        t, ratio = list(results.ratios(LEFT, method, "SBP").items())[at]
        return Check(LEFT, f"L2 error of {method} to SBP's, t = {t:,}", ratio, "≥", allowed)

    return check


def factor_apart(panel: str) -> Checker:
    """Check that LGP and SBP are within a factor of 2 of each other wherever both ran."""

    def check(results: Results) -> Check:
        ratios = results.ratios(panel, "LGP", "SBP")
        t = max(ratios, key=lambda each: abs(np.log(ratios[each])))
        worst = max(ratios[t], 1 / ratios[t])
        return Check(
            panel, f"LGP and SBP apart by a factor of, at worst (t = {t:,})", worst, "≤", 2
        )

    return check


def roughness(method: str, sign: str, allowed: float) -> Checker:
    """Check the mean step from point to point against SBP's."""

    def check(results: Results) -> Check:
        step = {m: np.abs(np.diff(results[MIDDLE][m]["rested"])).mean() for m in (method, "SBP")}
        ratio = float(step[method] / step["SBP"])
        return Check(MIDDLE, f"roughness of the mean of {method} to SBP's", ratio, sign, allowed)

    return check


def grows(method: str, sign: str, allowed: float) -> Checker:
    """Check the exponent of running time."""

    def check(results: Results) -> Check:
        found = results[RIGHT][method]
        at = f"t = {found['t'][0]:,} to {found['t'][-1]:,}"
        claim = f"time of {method} grows with exponent, {at}"
        return Check(RIGHT, claim, found["exponent"], sign, allowed)

    return check


CHECKS: Checks = {
    "1-D slope": slope_check(LEFT, "slope of SBP's L2 error", LEFT, "SBP", -0.60),
    "CCBP stops": times_worse("CCBP", -1, 3.0),
    "wide window stops": times_worse("Δ₁", -1, 3.0),
    "narrow window starts badly": times_worse("Δ₂", 0, 2.0),
    "LGP like SBP, 1-D": factor_apart(LEFT),
    "wide window is smooth": roughness("Δ₁", "≤", 0.5),
    "narrow window is ragged": roughness("Δ₂", "≥", 3.0),
    "LGP's time": grows(GIVEN, "≥", 2.0),
    "SBP's time": grows("SBP", "≤", 1.1),
}

# What hangs on how busy the machine is: for runs that have it to themselves.
TIMED = frozenset({"LGP's time", "SBP's time"})
# What shows after 10,000 trials only.
LATE = frozenset({"CCBP stops"})


# Pictures ------------------------------------------------------------------------------------


def draw(results: Results, folder: Path) -> None:
    figure, (left, middle, right) = pictures.sheet(3)
    draw_errors(left, results)
    draw_means(middle, results)
    draw_times(right, results)
    pictures.save(figure, folder / "figure-1.png")


def draw_errors(axes: Axes, results: Results) -> None:
    pictures.draw_errors(axes, results[LEFT])
    first, last = results[LEFT]["SBP"]["t"][0], results[LEFT]["SBP"]["t"][-1]
    start = 0.6 * results.at(LEFT, "SBP", "l2", first)
    pictures.draw_rate(axes, (first, start), last, RATE, "rate of the theorem  [−2/3]")
    axes.set_title("Error against t", loc="left")
    pictures.legend(axes, "method  [slope]")


def draw_means(axes: Axes, results: Results) -> None:
    problem = PROBLEMS[PROBLEM]
    for method, curve in results[MIDDLE].items():
        colour, _, label = pictures.STYLES[method]
        narrow = method == "Δ₂"
        axes.plot(
            problem.grid[:, 0],
            curve["rested"],
            color=colour,
            linewidth=0.9 if narrow else 1.8,
            zorder=1 if narrow else 2,
            label=label,
        )
    axes.plot(problem.grid[:, 0], problem.truth, zorder=3, **pictures.TRUTH)
    axes.set_xlabel("x")
    axes.set_ylabel("posterior mean of π(x)")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_title(f"Posterior means, t = {results[MIDDLE]['SBP']['t'][0]:,}", loc="left")
    pictures.legend(axes)


def draw_times(axes: Axes, results: Results) -> None:
    for method, curve in results[RIGHT].items():
        colour, marker, _ = pictures.STYLES[method]
        line = {"color": colour, "marker": marker, "linestyle": "--" if method == GIVEN else "-"}
        label = f"{method}  [{curve['exponent']:.2f}]"
        axes.plot(curve["t"], curve["seconds"], label=label, **line)
    pictures.on_log_axes(axes)
    axes.set_ylabel("seconds to fit, and to ask 1,000 points")
    axes.set_title("Running time, one thread", loc="left")
    pictures.legend(axes, "method  [exponent]")
