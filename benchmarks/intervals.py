"""How often intervals hold, and how far error bounds are above errors, with the true constants.

Five functions in one, two and three dimensions, each with its Lipschitz constant L. Pointwise
bands: the share of all intervals, over points and data sets, and at the worst point. Simultaneous
bands: the share of data sets without a miss at any point. Errors are those of the width by theory,
at the worst of 200 points and the corners. For credible intervals see accuracy.py.
"""

import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit
from scipy.stats import qmc
from sklearn.base import clone

from betafield import SmoothBetaClassifier, guarantees
from betafield.testing import coverage

Floats = NDArray[np.float64]

RESULTS = Path("out/intervals.json")
LEVEL = 0.95
POINTS = 200
# Data sets by the number of trials, and for errors.
RUNS = {100: 2_000, 1_000: 500, 10_000: 100}
FOR_ERRORS = 100


@dataclass(frozen=True)
class Field:
    """A probability over [0, 1]^d, and L, the largest length of its gradient."""

    of: Callable[[Floats], Floats]
    lipschitz: float


def _away(X: Floats) -> Floats:
    return np.minimum(np.linalg.norm(X - 0.4, axis=1), 1.0)


def _teeth(X: Floats) -> Floats:
    return np.abs(2.0 * ((2.0 * X) % 1.0) - 1.0).mean(axis=1)


def fields(d: int) -> dict[str, Field]:
    """The five functions in d dimensions."""
    return {
        "slope": Field(lambda X: 0.1 + 0.8 * X.mean(axis=1), 0.8 / d**0.5),
        "cone": Field(lambda X: 0.05 + 0.9 * _away(X), 0.9),
        "wave": Field(lambda X: 0.5 + 0.4 * np.sin(2 * np.pi * X[:, 0]), 0.8 * np.pi),
        "steep": Field(lambda X: 0.02 + 0.96 * expit(20 * (X[:, 0] - 0.5)), 4.8),
        "teeth": Field(lambda X: 0.02 + 0.5 * _teeth(X), 2.0 / d**0.5),
    }


@dataclass(frozen=True)
class Measured:
    """Shares and their standard errors; widths; the largest error, its s.e. and its bound."""

    name: str
    d: int
    t: int
    runs: int
    pointwise: float
    pointwise_se: float
    pointwise_worst: float
    pointwise_width: float
    simultaneous: float
    simultaneous_se: float
    simultaneous_width: float
    error: float
    error_se: float
    bound: float

    @property
    def holds(self) -> bool:
        return min(self.pointwise, self.simultaneous) >= LEVEL and self.error <= self.bound

    def line(self) -> str:
        return (
            f"{self.name:6}{self.d:2}{self.t:7,}{self.runs:6,}"
            f"   {self.pointwise:.4f} ± {self.pointwise_se:.4f}  {self.pointwise_worst:.4f}"
            f"  {self.pointwise_width:.3f}"
            f"   {self.simultaneous:.4f} ± {self.simultaneous_se:.4f}"
            f"  {self.simultaneous_width:.3f}"
            f"   {self.error:.5f} ± {self.error_se:.5f}  {self.bound:.5f}"
            f"  {'holds' if self.holds else 'MISSED'}"
        )


TITLES = (
    "         t   runs   pointwise        worst   width   simultaneous     width   error"
    "                bound"
)


def measure(case: tuple[str, int, int]) -> Measured:
    name, d, t = case
    field = fields(d)[name]
    box = [(0.0, 1.0)] * d
    fixed = SmoothBetaClassifier("theory", lipschitz=field.lipschitz, bounds=box)
    rng = np.random.default_rng([t, d, sum(name.encode())])
    options = {"d": d, "t": t, "level": LEVEL, "points": POINTS, "random_state": rng}
    known = coverage(field.of, runs=RUNS[t], lipschitz=field.lipschitz, model=fixed, **options)
    point, all_of = known.pointwise, known.simultaneous
    error, error_se = largest_error(field, fixed, d, t, rng)
    return Measured(
        name,
        d,
        t,
        RUNS[t],
        point.share,
        point.standard_error,
        point.worst,
        point.width,
        all_of.share,
        all_of.standard_error,
        all_of.width,
        error,
        error_se,
        guarantees.error_bound(t, d, field.lipschitz),
    )


def largest_error(
    field: Field, model: SmoothBetaClassifier, d: int, t: int, rng: np.random.Generator
) -> tuple[float, float]:
    """E(π̃ − π)² where it is largest, and its standard error."""
    corners = np.array(list(product([0.0, 1.0], repeat=d)))
    Q = np.concatenate([corners, qmc.Halton(d, rng=0).random(POINTS)])
    errors = np.empty((FOR_ERRORS, len(Q)))
    for run in range(len(errors)):
        X = rng.random((t, d))
        y = rng.random(t) < field.of(X)
        post = clone(model).partial_fit(X, y, classes=[False, True]).posterior(Q)
        errors[run] = post.var() + (post.mean() - field.of(Q)) ** 2
    worst = int(np.argmax(errors.mean(axis=0)))
    return float(errors[:, worst].mean()), float(errors[:, worst].std() / len(errors) ** 0.5)


def uniform_transforms() -> float:
    """The p-value of 10⁶ probability integral transforms being uniform."""
    rng = np.random.default_rng(0)
    t = 10**6
    pi, trials = rng.random(t), rng.integers(0, 30, t)
    X = np.arange(t)[:, None]
    model = SmoothBetaClassifier(0.4, scale=None)
    post = model.fit_counts(X, rng.binomial(trials, pi), trials).posterior(X)
    return float(stats.kstest(post.cdf(pi), "uniform").pvalue)


def main() -> None:
    print(f"Intervals of level {LEVEL}, the true L\n\n{TITLES}")
    cases = list(product(fields(1), (1, 2, 3), RUNS))
    rows = []
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for row in pool.map(measure, cases):
            rows.append(row)
            print(row.line(), flush=True)
    missed = sum(not row.holds for row in rows)
    p_value = uniform_transforms()
    print(f"\n{len(rows) - missed} of {len(rows)} hold, {missed} missed")
    print(f"10⁶ probability integral transforms: p = {p_value:.3f} that they are uniform")
    RESULTS.parent.mkdir(exist_ok=True)
    record = {"level": LEVEL, "transforms": p_value, "rows": [asdict(row) for row in rows]}
    RESULTS.write_text(json.dumps(record, indent=2) + "\n")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
