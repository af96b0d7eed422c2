"""What can a rested patient do? Learned from attempts at every degree of fatigue.

Simulated. An exercise of difficulty x, from 0 to 1, succeeds with probability 1 − x when rested.
Fatigue takes a known factor off each attempt: success has probability a (1 − x), a between one
half and one. With the factor as its context, every attempt says something about the rested state,
and `under` turns that back into the success curve of any other state.
"""

import sys
from pathlib import Path

import numpy as np

from betafield import SmoothBetaClassifier, contexts

PICTURE = Path("out") / "fatigue.png"
ATTEMPTS = 5_000
TIRED = contexts.attenuated(0.5)
GRID = np.linspace(0, 1, 201)
TOLD = [0.1, 0.3, 0.5, 0.7, 0.9]


def rested(difficulty):
    """Return the true success probability of a rested patient."""
    return 1 - difficulty


def attempts(seed=0):
    """Return difficulty, factor and outcome of every attempt."""
    rng = np.random.default_rng(seed)
    difficulty = rng.uniform(size=ATTEMPTS)
    factor = rng.uniform(0.5, 1, size=ATTEMPTS)
    return difficulty, factor, rng.uniform(size=ATTEMPTS) < factor * rested(difficulty)


def learn(difficulty, success, context=None):
    """Return a model of success by difficulty."""
    return SmoothBetaClassifier(bounds=[(0, 1)]).fit(difficulty[:, None], success, context=context)


def coverage(posterior, truth):
    """Return the share of points whose 95 % interval holds the truth."""
    low, high = posterior.interval(0.95)
    return np.mean((low <= truth) & (truth <= high))


def print_curves(naive, model):
    """Print truth and estimates at some difficulties, and how often the bands hold the truth."""
    at = np.array(TOLD)[:, None]
    posterior = model.posterior(at)
    means = [posterior.mean(), posterior.under(TIRED).mean(), naive.posterior(at).mean()]
    print(f"{'':12}{'rested':^18}{'tired':^18}{'no contexts':>12}")
    print(f"{'difficulty':12}{'truth':>8}{'learned':>9} {'truth':>8}{'learned':>9} {'learned':>12}")
    for x, fresh, tired, ignored in zip(TOLD, *means, strict=True):
        truth = rested(x)
        print(f"{x:<12}{truth:8.2f}{fresh:9.2f} {truth / 2:8.2f}{tired:9.2f} {ignored:12.2f}")
    grid, ignored = (each.posterior(GRID[:, None]) for each in (model, naive))
    print(
        f"95 % band holds the rested truth at {coverage(grid, rested(GRID)):.0%} of difficulties,"
    )
    print(f"the tired one at {coverage(grid.under(TIRED), rested(GRID) / 2):.0%};")
    print(f"without contexts, the rested one at {coverage(ignored, rested(GRID)):.0%}")


def save_picture(naive, model, picture):
    """Save the curves of the rested and of the tired patient, with their truths."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    axes = figure.subplots()
    posterior = model.posterior(GRID[:, None])
    for belief, truth, colour, label in [
        (posterior, rested(GRID), "#0072B2", "rested"),
        (posterior.under(TIRED), rested(GRID) / 2, "#009E73", "tired (factor ½)"),
    ]:
        axes.fill_between(GRID, *belief.interval(0.95), color=colour, alpha=0.25, linewidth=0)
        axes.plot(GRID, belief.mean(), color=colour, label=f"{label}: learned, 95 % band")
        axes.plot(GRID, truth, color="black", linestyle=":", linewidth=1.2)
    axes.plot([], [], color="black", linestyle=":", linewidth=1.2, label="truth")
    axes.plot(
        GRID,
        naive.posterior(GRID[:, None]).mean(),
        color="#D55E00",
        linestyle="--",
        label="fatigue ignored",
    )
    axes.set_title(f"Success in {ATTEMPTS:,} attempts at mixed fatigue", loc="left")
    axes.set_xlabel("difficulty of the exercise (0 easiest, 1 hardest)")
    axes.set_ylabel("probability of success")
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.legend(frameon=False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=110)


def main(picture=PICTURE):
    """Learn with and without the factors, tell, draw."""
    difficulty, factor, success = attempts()
    naive = learn(difficulty, success)
    model = learn(difficulty, success, contexts.attenuated(factor))
    print_curves(naive, model)
    save_picture(naive, model, Path(picture))
    print(f"picture  {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:])
