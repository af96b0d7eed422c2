"""How the choice of a width settles as more trials are left out: ``python benchmarks/settling.py``.

Of t = 10,000 trials, m are left out, each by itself, and the width with the best score is taken
(degree 0). A line a function and m: the median of the widths taken over 20 seeds, to that of all
trials scored; the spread, the ratio of their upper to their lower quartile; and the mean squared
error, to that of the best width for each seed. The last lines have holes: all trials are scored,
at 2,048 places, those around a place left out together.
"""

import numpy as np
from functions import FUNCTIONS, Floats, space
from joblib import Parallel, delayed

from betafield import SmoothBetaClassifier, bandwidth
from betafield.choosing import candidates, scoring, weighing

T, SEEDS = 10_000, 20
LEFT_OUT = (300, 600, 1_200, 2_500, 5_000, T)
NAMES = ("smooth-1", "kinked-1", "bump-2", "cone-2")


def chosen(name: str, left_out: int, holes: bool, seed: int) -> tuple[float, float]:
    """Return the width taken, and its error."""
    scoring.QUERIES = left_out
    weighing.LARGE = 0 if holes else T
    X, y, Q, truth = trials(name, seed)
    bounds = [(0.0, 1.0)] * X.shape[1]
    model = SmoothBetaClassifier("loo", bounds=bounds).fit(X, y)
    return model.bandwidth_, mean_square(model.posterior(Q).mean() - truth)


def best(name: str, seed: int) -> float:
    """Return the error of the best width."""
    X, y, Q, truth = trials(name, seed)
    sides = np.ones(X.shape[1])
    model = SmoothBetaClassifier(1.0, bounds=[(0.0, 1.0)] * len(sides)).fit(X, y)
    errors = []
    for width in bandwidth.candidates(sides, candidates.diameter(sides, "euclidean"), T):
        sums = model.windows_.sums(Q, float(width))
        errors.append(mean_square((1.0 + sums[:, 1]) / (2.0 + sums.sum(axis=1)) - truth))
    return min(errors)


def trials(name: str, seed: int) -> tuple[Floats, Floats, Floats, Floats]:
    pi = next(f for f in FUNCTIONS if f.name == name)
    Q = space(pi.d)
    return *pi.trials(T, seed), Q, pi(Q)


def mean_square(errors: Floats) -> float:
    return float(np.mean(errors**2))


def main() -> None:
    print(f"{'function':10} {'left out':>9} {'width':>7} {'spread':>7} {'error':>7}")
    for name in NAMES:
        with Parallel(n_jobs=2) as pool:
            lowest = np.array(pool(delayed(best)(name, seed) for seed in range(SEEDS)))
            lines = [(m, False) for m in LEFT_OUT] + [(T, True)]
            found = [
                np.array(pool(delayed(chosen)(name, *line, seed) for seed in range(SEEDS)))
                for line in lines
            ]
        all_scored = np.median(found[-2][:, 0])
        for (m, holes), widths in zip(lines, found, strict=True):
            lower, median, upper = np.quantile(widths[:, 0], [0.25, 0.5, 0.75])
            error = float(np.mean(widths[:, 1] / lowest))
            label = "holes" if holes else f"{m:,}"
            ratio, spread = median / all_scored, upper / lower
            print(f"{name:10} {label:>9} {ratio:7.2f} {spread:7.2f} {error:7.2f}", flush=True)


if __name__ == "__main__":
    main()
