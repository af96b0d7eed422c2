"""What `monotonic_cst` does on truths that are monotone: ``python benchmarks/rising.py``.

Printed are the squared error over that without the constraint, with its standard error, and the
coverage of pointwise 95 % intervals with and without it. Draws of one feature are made monotone on
129 points, as in the library, and those of two features on 25 × 25, to save time. The truths were
written down before the method had seen any of them.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from betafield import SmoothBetaClassifier, contexts
from betafield.monotone import Monotone
from betafield.process.slices import Slice

Floats = npt.NDArray[np.float64]

TASK = contexts.guess_lapse(0.5, 0.02)
TRIALS = (100, 300, 1_000)
NODES = {1: 129, 2: 25}


class Truth(NamedTuple):
    """A success probability, and the direction along each feature."""

    value: Callable[..., Floats]
    signs: tuple[int, ...]


TRUTHS = {
    "saturating": Truth(lambda x: 0.15 + 0.7 * (1.0 - np.exp(-x / 0.25)), (1,)),
    "slow logistic": Truth(lambda x: 0.1 + 0.8 * expit((x - 0.5) / 0.2), (1,)),
    "square": Truth(lambda x: 0.05 + 0.6 * x**2, (1,)),
    "hinge": Truth(lambda x: 0.3 + 0.5 * np.clip((x - 0.5) / 0.5, 0.0, 1.0), (1,)),
    "half cosine": Truth(lambda x: 0.5 + 0.4 * np.cos(np.pi * x), (-1,)),
    "stairs": Truth(
        lambda x: 0.1 + expit((x[..., None] - [0.2, 0.5, 0.8]) / 0.03) @ [0.25, 0.25, 0.3], (1,)
    ),
    "shallow line": Truth(lambda x: 0.4 + 0.2 * x, (1,)),
    "plane": Truth(lambda x, z: 0.15 + 0.4 * x + 0.3 * z, (1, 1)),
    "product": Truth(lambda x, z: 0.1 + 0.8 * x * z, (1, 1)),
    "front": Truth(lambda x, z: expit((x + 2.0 * z - 1.5) / 0.3), (1, 1)),
    "one of two": Truth(lambda x, z: 0.2 + 0.5 * x**2 + 0.15 * np.sin(3.0 * z), (1, 0)),
}


def judged(name: str, trials: int, is_guessed: bool, seed: int) -> list[float]:
    """Return squared error and coverage without the constraint, and with it."""
    truth = TRUTHS[name]
    d = len(truth.signs)
    rng = np.random.default_rng([seed, trials, int(is_guessed), sum(map(ord, name))])
    X = rng.random((trials, d))
    p, context = truth.value(*X.T), TASK if is_guessed else None
    y = rng.random(trials) < (p if context is None else contexts.probability(context, p))
    model = SmoothBetaClassifier(bounds=[(0, 1)] * d).fit(X, y, context=context)
    nodes = np.linspace(0.0, 1.0, NODES[d])
    grid = Slice(tuple(range(d)), (nodes,) * d, truth.signs)
    points = grid.points(np.zeros((1, d)))
    figures = []
    for post in (
        model.posterior(points),
        Monotone(model.field_.smooth[0], grid).posterior(points),
    ):
        low, high = post.interval(0.95)
        pi = truth.value(*points.T)
        figures += [np.mean((post.mean() - pi) ** 2), np.mean((low <= pi) & (pi <= high))]
    return figures


def line(name: str, table: Floats) -> None:
    """Print the figures of some data sets."""
    free, bound = table[:, 0], table[:, 2]
    ratio = bound.mean() / free.mean()
    error = np.std(bound - ratio * free) / np.sqrt(len(table)) / free.mean()
    covered = f"{table[:, 3].mean():>12.3f}{table[:, 1].mean():>12.3f}"
    print(f"{name:<46}{len(table):>6}{f'{ratio:.3f} ± {error:.3f}':>18}{covered}")
    sys.stdout.flush()


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=int, default=40, help="data sets per truth")
    parser.add_argument("--seed", type=int, default=2_000, help="the first seed")
    parser.add_argument("--trials", type=int, nargs="*", default=TRIALS)
    parser.add_argument("--features", type=int, nargs="*", default=(1, 2))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'':<46}{'sets':>6}{'error':>18}{'covered':>12}{'without':>12}")
    for d in given.features:
        names = [name for name, truth in TRUTHS.items() if len(truth.signs) == d]
        for trials in given.trials:
            for is_guessed in (False, True):
                setting = f"{d} features, {trials:,} trials" + ", guessing" * is_guessed
                every = []
                for name in names:
                    seeds = range(given.seed, given.seed + given.sets)
                    each = np.array([judged(name, trials, is_guessed, seed) for seed in seeds])
                    line(f"{setting}: {name}", each)
                    every.append(each)
                line(f"{setting}: all", np.concatenate(every))


if __name__ == "__main__":
    main()
