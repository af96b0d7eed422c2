"""How many do what they would not admit? Learned from a survey that protects everyone in it.

Simulated. Everyone throws a die in secret: on 1 to 4 they answer truthfully, on 5 and 6 a coin
answers for them. No single yes gives anyone away, but the rules are known, and with them as the
context the model learns the rate behind the answers.
"""

import sys
from pathlib import Path

import numpy as np

from betafield import SmoothBetaClassifier, contexts

PICTURE = Path("out") / "randomised_response.png"
PEOPLE = 20_000
TRUTH = 2 / 3
AGES = (18.0, 80.0)
GRID = np.linspace(*AGES, 201)
TOLD = [20.0, 30.0, 45.0, 60.0, 75.0]
RULES = contexts.randomized_response(truth=TRUTH, yes=0.5)


def rate(age):
    """Return the true share of those who would have to say yes."""
    return 0.03 + 0.30 / (1 + np.exp((age - 40) / 7))


def survey(seed=0):
    """Return the age and the answer of everyone."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(*AGES, size=PEOPLE)
    truthful = rng.uniform(size=PEOPLE) < TRUTH
    does, coin = rng.uniform(size=PEOPLE) < rate(age), rng.uniform(size=PEOPLE) < 0.5
    return age, np.where(truthful, does, coin)


def learn(age, yes, context=None):
    """Return a model of yes by age."""
    return SmoothBetaClassifier(bounds=[AGES]).fit(age[:, None], yes, context=context)


def coverage(posterior):
    """Return the share of ages whose 95 % interval holds the true rate."""
    low, high = posterior.interval(0.95)
    return np.mean((low <= rate(GRID)) & (rate(GRID) <= high))


def print_ages(naive, model):
    """Print truth and estimates at some ages, and how often the bands hold the truth."""
    at = np.array(TOLD)[:, None]
    posterior = model.posterior(at)
    rows = [rate(at[:, 0]), posterior.mean(), *posterior.interval(), naive.posterior(at).mean()]
    print(f"{'age':>5}{'truth':>8}{'learned':>9}  {'95 % interval':16}{'said yes':>10}")
    for age, truth, mean, low, high, share in zip(TOLD, *rows, strict=True):
        print(f"{age:5.0f}{truth:8.1%}{mean:9.1%}  {low:6.1%} to {high:6.1%}{share:10.1%}")
    grid = GRID[:, None]
    print(f"95 % band holds the truth at {coverage(model.posterior(grid)):.0%} of ages,")
    print(f"without contexts at {coverage(naive.posterior(grid)):.0%}")


def save_picture(naive, model, picture):
    """Save the rate learned, its truth, and the share of yes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    axes = figure.subplots()
    posterior = model.posterior(GRID[:, None])
    axes.plot(
        GRID,
        naive.posterior(GRID[:, None]).mean(),
        color="#D55E00",
        linestyle="--",
        label="without contexts: share of yes",
    )
    axes.fill_between(GRID, *posterior.interval(0.95), color="#0072B2", alpha=0.25, linewidth=0)
    axes.plot(GRID, posterior.mean(), color="#0072B2", label="with contexts: rate, 95 % band")
    axes.plot(GRID, rate(GRID), color="black", linestyle=":", label="true rate")
    axes.set_title(f"{PEOPLE:,} answers, a third of them by a coin", loc="left")
    axes.set_xlabel("age (years)")
    axes.set_ylabel("probability")
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.set_xlim(*AGES)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=110)


def main(picture=PICTURE):
    """Learn with and without the rules, tell, draw."""
    age, yes = survey()
    naive, model = learn(age, yes), learn(age, yes, RULES)
    print_ages(naive, model)
    save_picture(naive, model, Path(picture))
    print(f"picture  {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:])
