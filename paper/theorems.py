"""What the theorems promise without a figure.

L1 error and excess Bayes risk fall at least like t^(−1/(d+2)), with contexts as without. Noise of
mean zero in the contexts that the model is told leaves the rate of the L2 error as it is.
"""

from pathlib import Path

from matplotlib.axes import Axes

from paper import pictures
from paper.results import Check, Checks, Curve, Found, Results, slope_check
from paper.sizes import Sizes

# Panel, method and problem; the rate; and words for them.
SETTINGS = {
    "theorem, 1-D": ("SBP", "cone-1", -1 / 3, "one feature"),
    "theorem, 2-D": ("SBP", "cone-2", -1 / 4, "two features"),
    "theorem, contexts": ("CSBP", "background", -1 / 3, "one feature, contexts"),
}
NOISE, PLAIN, NOISY = "theorem, noise", "told", "told with noise"
LINES = (
    {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    {"color": "#004B76", "marker": "s", "linestyle": "--"},
    {"color": "#56B4E9", "marker": "^", "linestyle": "-."},
)
PLAIN_PANEL, NOISY_PANEL = "theorem, contexts as told", "theorem, contexts with noise"


def curves(sizes: Sizes) -> list[Curve]:
    found = [
        Curve(panel, method, problem, sizes.t, sizes.all_runs)
        for panel, (method, problem, *_) in SETTINGS.items()
    ]
    for panel, problem in ((PLAIN_PANEL, PLAIN), (NOISY_PANEL, NOISY)):
        found.append(Curve(panel, "CSBP", problem, sizes.t, sizes.all_runs))
    return found


def same_slope(results: Results) -> Check:
    """Check that noise makes the slope no flatter."""
    plain, noisy = (results[panel]["CSBP"]["l2"] for panel in (PLAIN_PANEL, NOISY_PANEL))
    error = float((plain["slope_se"] ** 2 + noisy["slope_se"] ** 2) ** 0.5)
    claim = f"slope with noise ({noisy['slope']:.3f}) against without ({plain['slope']:.3f})"
    difference = abs(noisy["slope"] - plain["slope"])
    return Check(NOISE, claim.replace("-", "−") + ", difference", difference, "≤", 0.0, error)


CHECKS: Checks = {
    f"{words} of {setting}": slope_check(panel, f"slope of the {words}", panel, method, rate, name)
    for panel, (method, _, rate, setting) in SETTINGS.items()
    for name, words in (("l1", "L1 error"), ("excess", "excess Bayes risk"))
} | {"noisy contexts": same_slope}


def draw(results: Results, folder: Path) -> None:
    figure, (left, middle, right) = pictures.sheet(3)
    for axes, name, title in ((left, "l1", "L1 error E|π̃ − π|"), (middle, "excess", "Excess risk")):
        for (panel, (method, *_, words)), line in zip(SETTINGS.items(), LINES, strict=True):
            draw_curve(axes, results[panel][method], name, words, line)
        axes.set_title(title, loc="left")
    for panel, words, line in (
        (PLAIN_PANEL, "contexts as told", LINES[0]),
        (NOISY_PANEL, "noise in the contexts", LINES[1]),
    ):
        draw_curve(right, results[panel]["CSBP"], "l2", words, line)
    right.set_title("L2 error E(π̃ − π)²", loc="left")
    middle.set_ylim(bottom=0.3 * lowest(results))
    for axes in (left, middle, right):
        pictures.on_log_axes(axes)
        pictures.legend(axes, "setting  [slope]")
    pictures.save(figure, folder / "theorems.png")


def lowest(results: Results) -> float:
    """Return the smallest excess risk drawn: bars may reach 0, which has no place on the axis."""
    return min(
        min(results[panel][method]["excess"]["mean"]) for panel, (method, *_) in SETTINGS.items()
    )


def draw_curve(axes: Axes, curve: Found, name: str, words: str, line: dict[str, str]) -> None:
    label = pictures.with_slope(words, curve[name])
    pictures.draw_means(axes, curve, name, label=label, **line)
