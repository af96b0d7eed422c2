"""How loud must a sound be for a child to hear it? Half of the unheard ones are guessed right.

Noise comes from two loudspeakers, a signal is added to one of them, and the child turns to that
one. Chance alone is right half the time, so the share of right answers starts at one half. With
chance as the context, the model learns how often the signal was really heard.

Each child answers several times and counts as independent every time, so the intervals are
somewhat too narrow.
"""

import sys
from pathlib import Path

import numpy as np

from betafield import SmoothBetaClassifier, contexts

DATA = Path(__file__).parent / "data" / "ome.csv"
PICTURE = Path("out") / "ome.png"
SIGNALS = {
    "incoherent": "Incoherent signal: other noise added",
    "coherent": "Coherent signal: the noise made louder",
}
NEAR = 2.0  # decibels: levels are 5 apart and hearing sets in between two, so none shares trials
CHANCE = contexts.guess_lapse(guess=1 / 2)


def answers(signal):
    """Return the rows with this kind of signal: one child, one level, right answers of trials."""
    rows = np.genfromtxt(DATA, delimiter=",", names=True, dtype=None, encoding="utf-8")
    return rows[rows["noise"] == signal]


def learn(rows, context=None):
    """Return a model of the answers by loudness."""
    model = SmoothBetaClassifier(bandwidth=NEAR, scale=None)
    return model.fit_counts(rows["loud"][:, None], rows["correct"], rows["trials"], context=context)


def levels(rows):
    """Return the loudnesses tested and the share of right answers at each."""
    loud, which = np.unique(rows["loud"], return_inverse=True)
    right, trials = (np.bincount(which, rows[name]) for name in ("correct", "trials"))
    return loud, right / trials


def print_levels(signal, rows, naive, heard):
    """Print the share of right answers and both estimates at every loudness."""
    loud, share = levels(rows)
    right, known = (model.posterior(loud[:, None]) for model in (naive, heard))
    low, high = known.interval(0.95)
    print(f"{signal} signal")
    print(f"{'loudness':>10}{'right':>8}{'without context':>17}{'heard':>8}  95 % interval")
    for i, level in enumerate(loud):
        print(
            f"{level:7d} dB{share[i]:8.1%}{right.mean()[i]:17.1%}{known.mean()[i]:8.1%}"
            f"  {low[i]:.1%} to {high[i]:.1%}"
        )


def draw(axes, rows, naive, heard):
    """Draw both estimates at the loudnesses tested, with 95 % intervals."""
    loud, _ = levels(rows)
    axes.axhline(0.5, color="0.45", linestyle=":", label="chance")
    for model, colour, style, shift, label in [
        (naive, "#D55E00", "s--", 0.2, "without context: right answers"),
        (heard, "#0072B2", "o-", -0.2, "with context: signal heard"),
    ]:
        posterior = model.posterior(loud[:, None])
        mean, (low, high) = posterior.mean(), posterior.interval(0.95)
        axes.errorbar(
            loud + shift, mean, [mean - low, high - mean], fmt=style, color=colour, label=label
        )
    axes.set_xlabel("loudness (dB)")


def save_picture(models, picture):
    """Save one panel for each kind of signal."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.3), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, signal in zip(panels, SIGNALS, strict=True):
        draw(axes, *models[signal])
        axes.set_title(SIGNALS[signal], loc="left")
    panels[0].set_ylabel("probability, 95 % interval")
    panels[0].yaxis.set_major_formatter("{x:.0%}")
    panels[0].set_ylim(0, 1.03)
    panels[0].legend(loc="lower right", frameon=False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=110)


def main(picture=PICTURE):
    """Learn with and without chance, tell, draw."""
    models = {}
    for signal in SIGNALS:
        rows = answers(signal)
        models[signal] = rows, learn(rows), learn(rows, CHANCE)
        print_levels(signal, *models[signal])
        print()
    save_picture(models, Path(picture))
    print(f"picture  {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:])
