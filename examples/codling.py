"""How much fumigation kills codling moths? Some would have died anyway.

Each row of the data is one chamber: how many insects were in it, how many died, and the share
that dies untreated (control mortality), about a fifth. With that share as the context of its row,
the model learns the mortality that the fumigant itself causes.

The lowest dose tested is 15.6: nothing is known below it. Insects of one chamber share more than
their dose, and each counts as a trial of its own here, so the bands are too narrow.
"""

import sys
from pathlib import Path

import numpy as np

from betafield import SmoothBetaClassifier, contexts

DATA = Path(__file__).parent / "data" / "codling.csv"
PICTURE = Path("out") / "codling.png"
NEAR = 5.0  # how far apart doses may be to share trials; the lowest ones are 4 apart
DOSES = np.linspace(15.6, 65.0, 500)
TOLD = [17.5, 30.0, 40.0, 50.0, 60.0]


def chambers():
    """Return the table, with one row a chamber."""
    return np.genfromtxt(DATA, delimiter=",", names=True, dtype=None, encoding="utf-8")


def learn(rows, context=None):
    """Return a model of mortality by dose, measured as concentration × time."""
    model = SmoothBetaClassifier(bandwidth=NEAR, scale=None)
    return model.fit_counts(rows["ct"][:, None], rows["dead"], rows["insects"], context=context)


def print_doses(naive, corrected):
    """Print both mortalities, with 95 % intervals, at some doses."""
    at = np.array(TOLD)[:, None]
    print(f"{'dose':>6}   {'all deaths':25}{'deaths by fumigation':25}")
    for dose, *posteriors in zip(TOLD, naive.posterior(at), corrected.posterior(at), strict=True):
        texts = []
        for posterior in posteriors:
            mean, (low, high) = posterior.mean(), posterior.interval(0.95)
            texts.append(f"{mean[0]:6.1%} ({low[0]:.1%} to {high[0]:.1%})")
        print(f"{dose:6.1f}   {texts[0]:25}{texts[1]:25}")


def save_picture(rows, naive, corrected, picture):
    """Save both curves with their bands, over the shares that died."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    axes = figure.subplots()
    axes.scatter(
        rows["ct"], rows["dead"] / rows["insects"], s=14, color="0.45", label="dead in one chamber"
    )
    axes.axhline(
        np.average(rows["control_mortality"], weights=rows["insects"]),
        color="0.45",
        linestyle=":",
        label="dead without fumigation (mean)",
    )
    for model, colour, style, label in [
        (naive, "#D55E00", "--", "without contexts: all deaths"),
        (corrected, "#0072B2", "-", "with contexts: deaths by fumigation"),
    ]:
        posterior = model.posterior(DOSES[:, None])
        axes.fill_between(DOSES, *posterior.interval(0.95), color=colour, alpha=0.3, linewidth=0)
        axes.plot(DOSES, posterior.mean(), color=colour, linestyle=style, label=label)
    axes.set_title("Codling moths fumigated with methyl bromide", loc="left")
    axes.set_xlabel("dose (concentration × time, in the source's units)")
    axes.set_ylabel("probability of death")
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.set_xlim(0, 67)
    axes.set_ylim(0, 1.02)
    axes.text(7.5, 0.5, "no dose tested\nbelow 15.6", color="0.35", ha="center", va="center")
    axes.legend(loc="upper left", frameon=False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=110)


def main(picture=PICTURE):
    """Learn with and without the control mortality, tell, draw."""
    rows = chambers()
    naive = learn(rows)
    corrected = learn(rows, contexts.background(rows["control_mortality"]))
    print_doses(naive, corrected)
    save_picture(rows, naive, corrected, Path(picture))
    print(f"picture  {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:])
