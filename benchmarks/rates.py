"""Rates that are not known, learned with the field, against rates that are taken for known.

``python benchmarks/rates.py``; the results are also written to out/rates.json.

- lapse: two alternatives, a lapse rate of 0.10. Taken to be 0.02, and unknown with a prior of
  Beta(1.5, 30). Thresholds (π = 1/2) by isotonic draws with five anchors at either end, over a
  Weibull, a logistic and a kinked curve.
- prevalence: a map from a test of specificity 0.97 whose sensitivity (0.6 and 0.85) was estimated
  from 100 positives. The estimate taken for the truth, and unknown with the study's counts. The
  mean over the area by draws.

Standard errors in brackets; seconds are those of a processor.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.isotonic import isotonic_regression

from betafield import SmoothBetaClassifier, contexts

Floats = npt.NDArray[np.float64]

RESULTS = Path("out") / "rates.json"
LEVEL, DRAWS, ANCHORS = 0.95, 500, 5
GRID = np.linspace(0.0, 1.0, 129)
SPECIFICITY, POSITIVES = 0.97, 100


class Answer(NamedTuple):
    """How far off an answer is, whether its interval holds, how wide it is, seconds to fit."""

    error: float
    holds: float
    width: float
    seconds: float


def weibull(x: Floats) -> Floats:
    return np.asarray(1.0 - np.exp(-((x / 0.5) ** 2.5)))


def logistic(x: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-14.0 * (x - 0.45))))


def kinked(x: Floats) -> Floats:
    return np.interp(x, [0.0, 0.2, 0.45, 0.8, 1.0], [0.0, 0.05, 0.6, 0.97, 1.0])


CURVES = (weibull, logistic, kinked)


def timed(X: Floats, y: Any, context: Any) -> tuple[SmoothBetaClassifier, float]:
    """Return a fitted model, and the seconds that took."""
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SmoothBetaClassifier(bounds=[(0, 1)] * X.shape[1]).fit(X, y, context=context)
        model.posterior(X[:1])
    return model, time.process_time() - started


def told(draws: Floats, truth: float, seconds: float) -> Answer:
    """Return what draws of a number say of it."""
    low, middle, high = np.quantile(draws, [0.5 - LEVEL / 2, 0.5, 0.5 + LEVEL / 2])
    return Answer(abs(middle - truth), float(low <= truth <= high), high - low, seconds)


# Lapses ------------------------------------------------------------------------------------


def crossing(curve: Floats) -> float:
    """Return where a rising curve over the grid first reaches 1/2; the ends if it never does."""
    above = int(np.argmax(curve >= 0.5))
    if curve[above] < 0.5:
        return 1.0
    if above == 0:
        return 0.0
    a, b = curve[above - 1], curve[above]
    return float(GRID[above - 1] + (GRID[above] - GRID[above - 1]) * (0.5 - a) / (b - a))


def lapse(n: int, seed: int) -> Iterator[tuple[str, Answer]]:
    """Yield thresholds of one data set, by what is said of the lapse rate."""
    curve = CURVES[seed % len(CURVES)]
    rng = np.random.default_rng([seed, n])
    x = np.concatenate([rng.random(n), np.zeros(ANCHORS), np.ones(ANCHORS)])
    y = rng.random(len(x)) < 0.5 + 0.4 * curve(x)
    y[n:] = x[n:] == 1.0
    which = np.where(np.arange(len(x)) < n, "trial", "anchor")
    truth = crossing(curve(GRID))
    rates = {"0.02": 0.02, "unknown": contexts.Unknown(1.5, 30), "0.10": 0.1}
    for name, rate in rates.items():
        each = {"trial": contexts.guess_lapse(0.5, rate), "anchor": [0.0, 1.0]}
        model, seconds = timed(x[:, None], y, contexts.by_row(which, each))
        fields = model.draws(GRID[:, None], size=DRAWS, random_state=seed)
        yield (
            name,
            told(np.array([crossing(isotonic_regression(f)) for f in fields]), truth, seconds),
        )


# Prevalence --------------------------------------------------------------------------------


def field(X: Floats) -> Floats:
    hill = np.exp(-((X[:, 0] - 0.6) ** 2 + (X[:, 1] - 0.35) ** 2) / 0.08)
    return np.asarray(0.1 + 0.4 * hill + 0.12 * X[:, 1])


def prevalence(n: int, sensitivity: float, seed: int) -> Iterator[tuple[str, Answer]]:
    """Yield means over the area of one data set, by what is said of the sensitivity."""
    rng = np.random.default_rng([seed, n, int(100 * sensitivity)])
    X = rng.random((n, 2))
    y = rng.random(n) < 1 - SPECIFICITY + (sensitivity + SPECIFICITY - 1) * field(X)
    found = int(rng.binomial(POSITIVES, sensitivity))
    g = np.linspace(0.025, 0.975, 20)
    Q = np.stack(np.meshgrid(g, g), axis=-1).reshape(-1, 2)
    study = contexts.Unknown(found + 1, POSITIVES - found + 1)
    for name, rate in {
        "estimate": found / POSITIVES,
        "unknown": study,
        "truth": sensitivity,
    }.items():
        model, seconds = timed(X, y, contexts.diagnostic(rate, SPECIFICITY))
        draws = model.draws(Q, size=DRAWS, random_state=seed).mean(axis=1)
        yield name, told(draws, float(field(Q).mean()), seconds)


# All of it ---------------------------------------------------------------------------------


def summed(runs: int, case: Callable[[int], Iterator[tuple[str, Answer]]]) -> dict[str, Any]:
    """Return means and standard errors over data sets."""
    found: dict[str, list[Answer]] = {}
    for seed in range(runs):
        for name, answer in case(seed):
            found.setdefault(name, []).append(answer)
    every = {name: np.array(answers) for name, answers in found.items()}
    return {
        name: {
            part: (float(a[:, i].mean()), float(a[:, i].std() / len(a) ** 0.5))
            for i, part in enumerate(Answer._fields)
        }
        for name, a in every.items()
    }


def shown(title: str, cell: dict[str, Any]) -> None:
    print(title)
    for name, each in cell.items():
        parts = [f"{part} {m:.4f} ({se:.4f})" for part, (m, se) in each.items()]
        print(f"  {name:9s} {'  '.join(parts)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=102, help="data sets per cell")
    parser.add_argument("--only", choices=("lapse", "prevalence"))
    asked = parser.parse_args()
    cells: dict[str, Any] = {}
    for n in (100, 300) if asked.only != "prevalence" else ():
        cell = summed(asked.runs, lambda seed, n=n: lapse(n, seed))  # type: ignore[misc]
        cells[f"lapse, {n} trials"] = cell
        shown(f"lapse 0.10, {n} trials, {asked.runs} data sets: the threshold", cell)
        ratio = cell["unknown"]["error"][0] / cell["0.02"]["error"][0]
        verdict = "met" if cell["unknown"]["holds"][0] >= 0.9 and ratio <= 0.8 else "MISSED"
        print(f"  unknown: coverage ≥ 0.90, error {ratio:.2f} of that at 0.02 (≤ 0.8): {verdict}")
    for n, se in ((1_000, 0.6), (1_000, 0.85), (10_000, 0.85)) if asked.only != "lapse" else ():
        cell = summed(asked.runs, lambda seed, n=n, se=se: prevalence(n, se, seed))  # type: ignore[misc]
        cells[f"prevalence, {n} trials, sensitivity {se}"] = cell
        shown(f"prevalence, {n} trials, sensitivity {se}, {asked.runs} data sets: the mean", cell)
        verdict = "met" if cell["unknown"]["holds"][0] >= 0.9 else "MISSED"
        print(f"  unknown: coverage ≥ 0.90: {verdict}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"runs": asked.runs, "cells": cells}, indent=2) + "\n")


if __name__ == "__main__":
    main()
