"""Features that wrap around, that span decades, that are skewed, and one trial far from all others.

    python benchmarks/features.py [seeds]

Mean squared errors ×10⁴ and coverage of 95 % intervals over seeds, and the ratio that is asked for.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import SmoothBetaClassifier

Floats = npt.NDArray[np.float64]
Truth = Callable[[Floats], Floats]
Result = dict[str, tuple[float, float]]


def told(model: SmoothBetaClassifier, X: Floats, truth: Floats) -> tuple[float, float]:
    """Return the squared error ×10⁴ and the share of intervals that hold the truth."""
    posterior = model.posterior(X)
    low, high = posterior.interval(0.95)
    error = 1e4 * float(np.mean((posterior.mean() - truth) ** 2))
    return error, float(np.mean((low <= truth) & (truth <= high)))


def fitted(X: Floats, pi: Floats, rng: np.random.Generator, **options: Any) -> SmoothBetaClassifier:
    """Return a model of one trial per row."""
    return SmoothBetaClassifier(**options).fit(X, rng.random(len(X)) < pi)


def around(share: Floats) -> Floats:
    """Return a probability over a period."""
    first, second = np.cos(2 * np.pi * (share - 0.95)), np.sin(4 * np.pi * (share + 0.1))
    return np.asarray(0.35 + 0.3 * first + 0.12 * second)


def steep(share: Floats) -> Floats:
    """Return a probability with a peak at the end of the period."""
    return np.asarray(0.2 + 0.6 * np.exp(4.0 * (np.cos(2 * np.pi * (share - 0.02)) - 1.0)))


def periodic(rng: np.random.Generator, truth: Truth, near: float = 2.0) -> Result:
    """Hours, 1,000 trials, within so many hours of midnight.

    The third model has a day that starts at noon, so that midnight is in its middle: what is left
    without any border.
    """
    x, at = rng.uniform(0, 24, (1_000, 1)), np.r_[0:near:21j, 24 - near : 24 : 21j][:, None]
    y, pi = rng.random(1_000) < truth(x[:, 0] / 24), truth(at[:, 0] / 24)
    both = {"without": {}, "periodic": {"periodic": {0: 24}}}
    models = {name: SmoothBetaClassifier(**each).fit(x, y) for name, each in both.items()}
    found = {name: told(each, at, pi) for name, each in models.items()}
    noon = SmoothBetaClassifier().fit((x + 12) % 24, y)
    return found | {"a day from noon": told(noon, (at + 12) % 24, pi)}


def sphere(rng: np.random.Generator) -> Result:
    """Places all over the Earth, 500 trials."""

    def places(n: int) -> tuple[Floats, Floats]:
        v = rng.standard_normal((n, 3))
        v /= np.linalg.norm(v, axis=1)[:, None]
        lon, lat = np.arctan2(v[:, 1], v[:, 0]), np.arcsin(np.clip(v[:, 2], -1, 1))
        one = np.exp((v @ [0, 0.3, 0.954] - 1) / 0.15)
        other = np.exp((v @ [-0.98, 0.05, -0.19] - 1) / 0.1)
        pi = 0.1 + 0.5 * one + 0.35 * other + 0.15 * v[:, 0] ** 2
        return np.degrees(np.column_stack([lon, lat])), np.clip(pi, 0, 1)

    (X, pi), (at, truth) = places(500), places(800)
    y = rng.random(500) < pi
    both = {"without": {}, "geographic": {"geographic": (0, 1)}}
    models = {name: SmoothBetaClassifier(**each).fit(X, y) for name, each in both.items()}
    return {name: told(each, at, truth) for name, each in models.items()}


def decades(rng: np.random.Generator) -> Result:
    """Doses over three decades, 1,000 trials."""
    x, at = 10 ** rng.uniform(-3, 0, (1_000, 1)), 10 ** np.linspace(-2.95, -0.05, 60)[:, None]

    def pi(dose: Floats) -> Floats:
        return np.asarray(1 / (1 + (0.02 / dose[:, 0]) ** 1.5))

    y = rng.random(1_000) < pi(x)
    given = SmoothBetaClassifier(scale="range").fit(np.log(x), y)
    auto = SmoothBetaClassifier().fit(x, y)
    return {"logarithm given": told(given, np.log(at), pi(at)), "auto": told(auto, at, pi(at))}


def wavy(X: Floats) -> Floats:
    """Return a probability over the unit square."""
    return np.asarray(0.5 + 0.4 * np.sin(3 * X[:, 0]) * np.cos(4 * X[:, 1]))


def outlier(rng: np.random.Generator) -> Result:
    """One row at (1000, 1000) among 2,000 in the unit square."""
    X, at = rng.random((2_000, 2)), rng.random((500, 2))
    y = rng.random(2_000) < wavy(X)
    more, ends = np.vstack([X, [[1000.0, 1000.0]]]), np.append(y, True)
    clean, with_one = SmoothBetaClassifier().fit(X, y), SmoothBetaClassifier().fit(more, ends)
    return {"without it": told(clean, at, wavy(at)), "with it": told(with_one, at, wavy(at))}


def skewed(rng: np.random.Generator, d: int) -> Result:
    """Log-normal features, 1,000 trials."""
    Z, at = rng.normal(size=(1_000, d)), rng.normal(size=(500, d)).clip(-2, 2)

    def pi(Z: Floats) -> Floats:
        return np.asarray(1 / (1 + np.exp(-1.5 * np.sin(1.5 * Z).sum(axis=1))))

    y = rng.random(1_000) < pi(Z)
    given = SmoothBetaClassifier(scale="range").fit(Z, y)
    auto = SmoothBetaClassifier().fit(np.exp(1.5 * Z), y)
    return {
        "logarithm given": told(given, at, pi(at)),
        "auto": told(auto, np.exp(1.5 * at), pi(at)),
    }


CASES: dict[str, tuple[Callable[[np.random.Generator], Result], float]] = {
    "periodic, smooth": (lambda rng: periodic(rng, around), 0.5),
    "periodic, smooth, within an hour": (lambda rng: periodic(rng, around, 1.0), 0.5),
    "periodic, a peak": (lambda rng: periodic(rng, steep), 0.5),
    "sphere": (sphere, 0.75),
    "three decades": (decades, 1.2),
    "one outlier": (outlier, 1.05),
    "log-normal, 1-D": (lambda rng: skewed(rng, 1), 1.1),
    "log-normal, 2-D": (lambda rng: skewed(rng, 2), 1.1),
}


def main(seeds: int = 20) -> None:
    """Print a line per case."""
    start = time.process_time()
    for name, (case, most) in CASES.items():
        found = [case(np.random.default_rng([seed, 20])) for seed in range(seeds)]
        errors = {key: np.mean([each[key] for each in found], axis=0) for key in found[0]}
        (before, _), (after, _), *_ = errors.values()
        each = ", ".join(f"{key} {e:.2f} ({c:.3f})" for key, (e, c) in errors.items())
        is_met = "met" if after <= most * before else "MISSED"
        print(f"{name}: {each}; ratio {after / before:.2f}, at most {most}: {is_met}", flush=True)
    print(f"{time.process_time() - start:.0f} s of processor time, {seeds} seeds")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
