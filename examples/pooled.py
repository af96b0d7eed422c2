"""How common is an infection along a river? Learned from samples tested in pools.

Simulated. A pool of 1, 5 or 10 samples gets one test, which is positive if any sample is, apart
from the test's own errors. The share of positive pools says little: it mixes prevalence, pool
size and errors. With pool size and errors as the context, the model learns the prevalence.
"""

import sys
from pathlib import Path

import numpy as np

from betafield import SmoothBetaClassifier, contexts

PICTURE = Path("out") / "pooled.png"
POOLS = 6_000
SIZES = [1, 5, 10]
SENSITIVITY, SPECIFICITY = 0.95, 0.98
LENGTH = 100.0  # kilometres
NEAR = 5.0  # kilometres: the infection spreads over some tens of them
GRID = np.linspace(0, LENGTH, 201)
TOLD = [5.0, 25.0, 40.0, 60.0, 90.0]


def prevalence(place):
    """Return the true share of infected samples: high below the town at kilometre 35."""
    return 0.01 + 0.11 * np.exp(-(((place - 40) / 15) ** 2))


def pools(seed=0):
    """Return place, context and result of every pool."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(0, LENGTH, size=POOLS)
    context = contexts.pooled(rng.choice(SIZES, size=POOLS), SENSITIVITY, SPECIFICITY)
    positive = rng.uniform(size=POOLS) < contexts.probability(context, prevalence(place))
    return place, context, positive


def learn(place, positive, context=None):
    """Return a model of positive results by place."""
    model = SmoothBetaClassifier(bandwidth=NEAR, scale=None)
    return model.fit(place[:, None], positive, context=context)


def coverage(posterior):
    """Return the share of places whose 95 % interval holds the true prevalence."""
    low, high = posterior.interval(0.95)
    return np.mean((low <= prevalence(GRID)) & (prevalence(GRID) <= high))


def print_places(naive, model):
    """Print truth and estimates at some places, and how often the bands hold the truth."""
    at = np.array(TOLD)[:, None]
    posterior = model.posterior(at)
    rows = [
        prevalence(at[:, 0]),
        posterior.mean(),
        *posterior.interval(),
        naive.posterior(at).mean(),
    ]
    print(f"{'place':>8}{'truth':>8}{'learned':>9}  {'95 % interval':16}{'positive pools':>15}")
    for place, truth, mean, low, high, share in zip(TOLD, *rows, strict=True):
        print(f"{place:5.0f} km{truth:8.1%}{mean:9.1%}  {low:6.1%} to {high:6.1%}{share:15.1%}")
    grid = GRID[:, None]
    print(f"95 % band holds the truth at {coverage(model.posterior(grid)):.0%} of places,")
    print(f"without contexts at {coverage(naive.posterior(grid)):.0%}")


def save_picture(naive, model, picture):
    """Save the prevalence learned, its truth, and the share of positive pools."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    axes = figure.subplots()
    posterior = model.posterior(GRID[:, None])
    axes.plot(
        GRID,
        naive.posterior(GRID[:, None]).mean(),
        color="#D55E00",
        linestyle="--",
        label="without contexts: share of positive pools",
    )
    axes.fill_between(GRID, *posterior.interval(0.95), color="#0072B2", alpha=0.25, linewidth=0)
    axes.plot(GRID, posterior.mean(), color="#0072B2", label="with contexts: prevalence, 95 % band")
    axes.plot(GRID, prevalence(GRID), color="black", linestyle=":", label="true prevalence")
    axes.set_title(f"Infection along a river, from {POOLS:,} pools of 1, 5 or 10", loc="left")
    axes.set_xlabel("place (km from the source)")
    axes.set_ylabel("probability")
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.set_xlim(0, LENGTH)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=110)


def main(picture=PICTURE):
    """Learn with and without the sizes and errors, tell, draw."""
    place, context, positive = pools()
    naive, model = learn(place, positive), learn(place, positive, context)
    print_places(naive, model)
    save_picture(naive, model, Path(picture))
    print(f"picture  {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:])
