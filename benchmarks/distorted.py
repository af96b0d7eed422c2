"""Trials under contexts, "exact" sharing against "mean" and against undistorted trials.

``python benchmarks/distorted.py``; the results are also written to out/distorted.json.

- error: 1-D, Δ by theory, contexts (B, 1): mean over points of E(π̃ − π)², averaged over runs,
  "exact" against "mean" on the same trials.
- distance of coverage: of 95 % intervals in the same runs, how far their coverage is from 95 %,
  added up over the sizes, "exact" against "mean".
- posterior: mean of the posterior, per point, against undistorted trials at the same places and
  the same width. Contexts are pairs of uniform numbers, the lower one for π = 0.
- memory: what the fitted model holds, against that of undistorted trials.
- growth: exponent b of time per point ~ t^b, by least squares over the sizes.
"""

import gc
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from field import Floats, points, probability, theory_width
from report import Row, Target, race, refuse_unless, run

from betafield import SmoothBetaClassifier, contexts
from betafield.posteriors.reference import exact_mixture

RESULTS = Path("out") / "distorted.json"
TITLE = "betafield with contexts: uniform points, Δ by theory, n_jobs=2"
LEVEL = 0.95


@dataclass(frozen=True)
class Sizes:
    """How much of everything one run measures."""

    simulated: tuple[int, ...]
    runs: int
    trials: int
    points: int
    growth: tuple[int, ...]
    repeats: int


FULL = Sizes((1_000, 3_000, 10_000, 30_000), 20, 10**6, 10**5, (10**5, 10**6, 10**7), 3)
QUICK = Sizes((1_000,), 5, 10**5, 10**4, (10**4, 10**5), 1)


# How right ---------------------------------------------------------------------------------


def uniform(rng: np.random.Generator, t: int) -> Floats:
    return rng.uniform(size=t)


def two_kinds(rng: np.random.Generator, t: int) -> Floats:
    return np.where(rng.uniform(size=t) < 0.2, 0.0, 0.95)


OFFSETS: dict[str, tuple[Callable[[np.random.Generator, int], Floats], float]] = {
    "B uniform": (uniform, 0.9),
    "B 0 or 0.95": (two_kinds, 0.75),
}


def error(sizes: Sizes) -> Iterator[Row]:
    grid = np.linspace(0.0, 1.0, 201)[:, None]
    for name, (offsets, target) in OFFSETS.items():
        covered: dict[str, float] = {}
        far = np.zeros(2)
        for t in sizes.simulated:
            runs = [simulated(seed, t, offsets, grid) for seed in range(sizes.runs)]
            exact, mean = np.mean(runs, axis=0)
            covered |= {f"exact t={t:,}": exact[1], f"mean t={t:,}": mean[1]}
            far += np.abs(np.array([exact[1], mean[1]]) - LEVEL)
            yield Row(
                f"L2 error, exact against mean, {name}, t={t:,}",
                exact[0] / mean[0],
                "×",
                Target(target),
                {"exact": exact[0], "mean": mean[0]},
                numbers_unit="",
            )
        yield Row(
            f"distance of coverage from 95 %, over all t, {name}",
            far[0] / far[1],
            "×",
            Target(1.0),
            covered,
            numbers_unit="",
        )


def simulated(
    seed: int, t: int, offsets: Callable[[np.random.Generator, int], Floats], grid: Floats
) -> list[tuple[float, float]]:
    """L2 error and coverage of "exact" and of "mean", on the same trials."""
    rng = np.random.default_rng(seed)
    X, B = rng.uniform(size=(t, 1)), offsets(rng, t)
    y = rng.uniform(size=t) < B + (1.0 - B) * probability(X)
    truth = probability(grid)
    found = []
    for sharing in ("exact", "mean"):
        model = SmoothBetaClassifier("theory", bounds=[(0, 1)], sharing=sharing)
        posterior = model.fit(X, y, context=contexts.background(B)).posterior(grid)
        low, high = posterior.interval(LEVEL)
        squares = posterior.var() + (posterior.mean() - truth) ** 2
        found.append((float(squares.mean()), float(np.mean((low <= truth) & (truth <= high)))))
    return found


# How fast ----------------------------------------------------------------------------------


def distorted_trials(t: int, d: int) -> tuple[Floats, Any, Floats]:
    rng = np.random.default_rng(0)
    X, context = rng.random((t, d)), np.sort(rng.random((t, 2)))
    chance = context[:, 0] + (context[:, 1] - context[:, 0]) * probability(X)
    return X, rng.random(t) < chance, context


def models(t: int, d: int) -> dict[str, SmoothBetaClassifier]:
    """The same trials taken as undistorted, and under their contexts; one width for all."""
    X, y, context = distorted_trials(t, d)
    options = {"bandwidth": theory_width(t, d), "bounds": [(0.0, 1.0)] * d, "n_jobs": 2}
    fitted = {"static": SmoothBetaClassifier(**options).fit(X, y)}
    for sharing in ("mean", "exact"):
        model = SmoothBetaClassifier(sharing=sharing, **options)
        fitted[sharing] = model.fit(X, y, context=context)
    check_exact(fitted["exact"], X, y, context)
    return fitted


def check_exact(model: SmoothBetaClassifier, X: Floats, y: Any, context: Floats) -> None:
    """Compare the posterior at a point with the slow reference, on few of its trials' places."""
    q = points(1, X.shape[1])
    near = np.sqrt(((X - q) ** 2).sum(axis=1)) <= model.bandwidth_
    expected = exact_mixture(context[near], y[near])
    found = model.posterior(q)
    right = np.allclose(found.mean(), expected.mean(), atol=1e-5)
    refuse_unless(right and np.allclose(found.std(), expected.std(), atol=1e-5), "wrong posterior")


def posterior_mean(model: SmoothBetaClassifier, Q: Floats) -> Floats:
    return model.posterior(Q).mean()


def posterior(sizes: Sizes) -> Iterator[Row]:
    fitted, Q = models(sizes.trials, 2), points(sizes.points, 2)
    taken = race(sizes.repeats, *(partial(posterior_mean, model, Q) for model in fitted.values()))
    a_point = dict(zip(fitted, (s / len(Q) for s in taken), strict=True))
    for sharing, target in (("mean", Target(3.0)), ("exact", Target(10.0, 4.0))):
        yield Row(
            f"posterior, {sharing} against undistorted, t={sizes.trials:,}, 2-D",
            a_point[sharing] / a_point["static"],
            "×",
            target,
            {name: a_point[name] for name in ("static", sharing)},
        )
    held = {name: float(len(pickle.dumps(model, protocol=5))) for name, model in fitted.items()}
    yield Row(
        f"memory, exact against undistorted, t={sizes.trials:,}, 2-D",
        held["exact"] / held["static"],
        "×",
        Target(4.0),
        held,
        numbers_unit="B",
    )


def growth(sizes: Sizes) -> Iterator[Row]:
    Q = points(sizes.points, 2)
    taken: dict[str, list[float]] = {"mean": [], "exact": []}
    for t in sizes.growth:
        fitted = models(t, 2)
        for sharing in taken:
            taken[sharing] += race(sizes.repeats, partial(posterior_mean, fitted[sharing], Q))
        del fitted
        gc.collect()
    for sharing, spent in taken.items():
        exponent, _ = np.polyfit(np.log(sizes.growth), np.log(spent), 1)
        yield Row(
            f"growth of time a point with t, exponent, {sharing}, 2-D",
            float(exponent),
            "",
            Target(0.35),
            {f"t={t:,}": s / len(Q) for t, s in zip(sizes.growth, spent, strict=True)},
        )


MEASUREMENTS = {"error": error, "posterior": posterior, "growth": growth}

if __name__ == "__main__":
    run(TITLE, __doc__, MEASUREMENTS, FULL, QUICK, RESULTS)
