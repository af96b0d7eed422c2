"""Answers on the joint posterior, whether they hold: ``python benchmarks/answers.py``.

Averages: the mean of π over four areas of two features, and one contrast, after 2,000 trials on
functions that nothing here was tuned on. Printed are the share of 95 % intervals that hold the
truth, with its standard error, their mean width, and the processor time of one average over 1,024
points.

Thresholds and monotone fields: see ``curves.py``, beside this file.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable

import curves
import numpy as np
import numpy.typing as npt

from betafield import SmoothBetaClassifier

Floats = npt.NDArray[np.float64]
Function = Callable[[Floats], Floats]

GRID = np.stack(np.meshgrid(*[np.linspace(0.015, 0.985, 32)] * 2, indexing="ij"), -1).reshape(-1, 2)


def hill(x: Floats) -> Floats:
    """Return a hill beside a valley."""
    up = np.exp(-((x[:, 0] - 0.65) ** 2 + (x[:, 1] - 0.3) ** 2) / 0.04)
    down = np.exp(-((x[:, 0] - 0.2) ** 2 + (x[:, 1] - 0.75) ** 2) / 0.08)
    return 0.35 + 0.45 * up - 0.25 * down


def ramp(x: Floats) -> Floats:
    """Return a logistic ramp across the diagonal."""
    return 0.05 + 0.85 / (1.0 + np.exp(-(x[:, 0] + x[:, 1] - 1.0) / 0.12))


def waves(x: Floats) -> Floats:
    """Return waves along one feature that fade along the other."""
    return 0.5 + 0.35 * np.sin(7.0 * x[:, 0]) * (1.0 - 0.8 * x[:, 1])


def rare(x: Floats) -> Floats:
    """Return a risk of a few per cent that triples."""
    return 0.03 + 0.06 * x[:, 1] ** 2


FUNCTIONS: tuple[Function, ...] = (hill, ramp, waves, rare)


def areas() -> dict[str, Floats]:
    """Return the weights of every area over the grid."""
    x, y = GRID.T
    return {
        "whole": np.ones(len(GRID)),
        "quarter": ((x > 0.5) & (y < 0.5)).astype(float),
        "tenth": ((np.abs(x - 0.25) < 0.16) & (np.abs(y - 0.6) < 0.16)).astype(float),
        "population": np.exp(-((x - 0.3) ** 2 + (y - 0.3) ** 2) / 0.1),
    }


def averages(trials: int, sets: int) -> None:
    """Print how often intervals of averages hold, and what they cost."""
    held: dict[str, list[bool]] = {}
    width: dict[str, list[float]] = {}
    spent = []
    for seed in range(sets):
        truth = FUNCTIONS[seed % len(FUNCTIONS)]
        rng = np.random.default_rng([19, trials, seed])
        X = rng.random((trials, 2)) if seed % 2 else rng.beta(1.4, 1.4, (trials, 2))
        y = rng.random(trials) < truth(X)
        model = SmoothBetaClassifier(bounds=[(0, 1)] * 2).fit(X, y)
        model.posterior(GRID[:1])
        if not seed:
            model.average(GRID)  # compiles
        pi, weights = truth(GRID), areas()
        for name, w in weights.items():
            start = time.process_time()
            low, high = model.average(GRID, w).interval(0.95)
            spent.append(time.process_time() - start)
            note(held, width, name, low[0], high[0], float(w @ pi / w.sum()))
        one, two = weights["quarter"], weights["tenth"]
        found = model.contrast(GRID, GRID, one, two).interval(0.95)
        gap = float(one @ pi / one.sum() - two @ pi / two.sum())
        note(held, width, "contrast", found[0][0], found[1][0], gap)
    table(trials, sets, held, width)
    times = 1e3 * np.array(spent)
    print(
        f"average over {len(GRID)} points: median {np.median(times):.1f} ms, "
        f"mean {times.mean():.1f} ms, 95 % below {np.quantile(times, 0.95):.1f} ms"
    )


def note(
    held: dict[str, list[bool]],
    width: dict[str, list[float]],
    name: str,
    low: float,
    high: float,
    truth: float,
) -> None:
    """Note whether an interval holds, and how wide it is."""
    held.setdefault(name, []).append(bool(low <= truth <= high))
    width.setdefault(name, []).append(float(high - low))


def table(
    trials: int, sets: int, held: dict[str, list[bool]], width: dict[str, list[float]]
) -> None:
    """Print a line per area."""
    print(f"\naverages, {trials:,} trials, {sets} data sets of two features")
    print(f"{'area':<12}{'held':>7}{'s.e.':>7}{'width':>8}")
    for name, each in held.items():
        share = float(np.mean(each))
        error = float(np.sqrt(share * (1.0 - share) / len(each)))
        print(f"{name:<12}{share:>7.3f}{error:>7.3f}{np.mean(width[name]):>8.4f}")
    whole = np.concatenate(list(held.values()))
    print(f"{'all':<12}{whole.mean():>7.3f}")


def main() -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=200, help="data sets per figure")
    known = {"averages": all_averages, "thresholds": curves.thresholds, "monotone": curves.monotone}
    parser.add_argument("figures", nargs="*", default=list(known), help=", ".join(known))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for figure in given.figures:
        known[figure](given.sets)


def all_averages(sets: int) -> None:
    """Print figures of averages."""
    for trials in (2_000, 300):
        averages(trials, sets)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
