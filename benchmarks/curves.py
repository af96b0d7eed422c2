"""Thresholds, slopes and monotone fields, whether they hold; figures of ``benchmarks/answers.py``.

The peer is a posterior on a grid of Weibull curves, which knows the family of some of the truths.
Truths named "issue" are those that the method was made on; those named "new" were written down
before any of them was looked at.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit, ndtr

from betafield import SmoothBetaClassifier, contexts

Floats = npt.NDArray[np.float64]
Curve = Callable[[Floats], Floats]

GUESS, LAPSE = 0.5, 0.02
TASK = contexts.guess_lapse(GUESS, LAPSE)
GRID = np.linspace(0.0, 1.0, 129)


def weibull(scale: float, power: float) -> Curve:
    """Return a Weibull curve."""
    return lambda x: -np.expm1(-((x / scale) ** power))


STEEP: dict[str, dict[str, Curve]] = {
    "issue": {
        "Weibull .4, 3": weibull(0.4, 3.0),
        "Weibull .6, 5": weibull(0.6, 5.0),
        "logistic": lambda x: expit((x - 0.5) / 0.08),
        "kinked": lambda x: np.interp(x, [0.0, 0.35, 0.55, 1.0], [0.0, 0.2, 0.9, 1.0]),
    },
    "new": {
        "probit": lambda x: ndtr((x - 0.55) / 0.15),
        "Weibull .3, 2": weibull(0.3, 2.0),
        "ramp": lambda x: np.clip((x - 0.2) / 0.5, 0.0, 1.0),
        "two steps": lambda x: 0.4 * expit((x - 0.25) / 0.04) + 0.6 * expit((x - 0.6) / 0.05),
    },
}
FLAT: dict[str, dict[str, Curve]] = {
    "issue": {
        "plateau": lambda x: 0.7 * weibull(0.3, 3.0)(x),
        "late rise": lambda x: 0.3 + 0.5 * np.clip((x - 0.6) / 0.2, 0.0, 1.0),
        "start .25": lambda x: 0.25 + 0.75 * weibull(0.5, 4.0)(x),
        "end .80": weibull(0.85, 3.0),
    },
    "new": {
        "ceiling": lambda x: 0.75 * expit((x - 0.35) / 0.05),
        "floor": lambda x: 0.2 + 0.75 * expit((x - 0.6) / 0.07),
    },
}
MONOTONE: dict[str, dict[str, Curve]] = {
    "issue": {**STEEP["issue"], "line": lambda x: 0.2 + 0.6 * x, "flat": lambda x: 0.6 + 0.0 * x},
    "new": {**STEEP["new"], "root": lambda x: 0.1 + 0.8 * np.sqrt(x)},
}


# Trials --------------------------------------------------------------------------------------


def answered(truth: Curve, x: Floats, rng: np.random.Generator) -> Floats:
    """Return right answers at strengths."""
    return (rng.random(x.shape) < GUESS + (1.0 - GUESS - LAPSE) * truth(x)).astype(np.float64)


def at_random(truth: Curve, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return strengths drawn evenly, and answers."""
    x = rng.random(n)
    return x, answered(truth, x, rng)


def staircase(truth: Curve, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return strengths of a staircase, two down and one up with shrinking steps, and answers."""
    x, y = np.empty(n), np.empty(n)
    at, row, step, last = 0.8, 0, 0.08, 0
    for i in range(n):
        x[i] = np.clip(at + rng.normal(0.0, 0.02), 0.0, 1.0)
        y[i] = answered(truth, x[i : i + 1], rng)[0]
        row = row + 1 if y[i] else 0
        turn = 1 if not y[i] else -1 if row == 2 else 0
        if turn:
            at, row = float(np.clip(at + turn * step, 0.0, 1.0)), 0
            step = max(step * (0.85 if last == -turn else 1.0), 0.03)
            last = turn
    return x, y


# The peer ------------------------------------------------------------------------------------

SCALES = np.linspace(0.02, 1.3, 129)[:, None, None]
POWERS = np.exp(np.linspace(np.log(0.7), np.log(20.0), 41))[:, None]


class Believed(NamedTuple):
    """Median and interval of a threshold, and the interval of the slope there."""

    median: float
    low: float
    high: float
    slope_low: float
    slope_high: float
    seconds: float


def by_weibull(x: Floats, y: Floats) -> Believed:
    """Return what a posterior over Weibull curves believes."""
    start = time.process_time()
    q = GUESS + (1.0 - GUESS - LAPSE) * -np.expm1(-((x / SCALES) ** POWERS))
    q = np.clip(q, 1e-9, 1.0 - 1e-9)
    logs = (y * np.log(q) + (1.0 - y) * np.log1p(-q)).sum(axis=-1)
    w = np.exp(logs - logs.max()).ravel()
    scale, power = np.broadcast_arrays(SCALES[:, :, 0], POWERS[:, 0])
    at = scale * np.log(2.0) ** (1.0 / power)
    slope = 0.5 * power / scale * (at / scale) ** (power - 1.0)
    ends = _weighed(at.ravel(), w, (0.5, 0.025, 0.975))
    return Believed(*ends, *_weighed(slope.ravel(), w, (0.025, 0.975)), time.process_time() - start)


def _weighed(values: Floats, w: Floats, q: tuple[float, ...]) -> list[float]:
    order = np.argsort(values)
    reached = np.cumsum(w[order])
    at = np.searchsorted(reached, np.array(q) * reached[-1])
    return [float(v) for v in values[order][np.minimum(at, len(values) - 1)]]


def by_field(x: Floats, y: Floats, anchored: bool) -> Believed:
    """Return what the field believes; the time is that of the threshold alone."""
    model = SmoothBetaClassifier(bounds=[(0.0, 1.0)]).fit(x[:, None], y, context=TASK)
    start = time.process_time()
    found = model.threshold(0.5, anchored=anchored, random_state=0)
    low, high = found.interval(0.95)
    (slope_low,), (slope_high,) = found.slope().interval(0.95)
    seconds = time.process_time() - start
    return Believed(found.median(), low, high, float(slope_low), float(slope_high), seconds)


# Figures -------------------------------------------------------------------------------------


def thresholds(sets: int) -> None:
    """Print how thresholds under guessing do: anchored, and on curves with flat parts."""
    print("\nthresholds of π = ½ under a guess rate of ½ and 2 % lapses, 95 % intervals")
    _head("width", "held", "error", "slope held", "seconds")
    for kind, truths in STEEP.items():
        for name, place in (("random", at_random), ("staircase", staircase)):
            _cell(f"{kind}, anchored, 100 {name}", truths, place, 100, True, sets)
    for kind, truths in FLAT.items():
        _cell(f"{kind}, flat parts, 300 random", truths, at_random, 300, False, sets)


def _head(*columns: str) -> None:
    print(f"{'':<36}{'':<9}" + "".join(f"{each:>18}" for each in columns))


def _cell(
    name: str,
    truths: dict[str, Curve],
    place: Callable[..., tuple[Floats, Floats]],
    n: int,
    anchored: bool,
    sets: int,
) -> None:
    rows: dict[str, list[list[float]]] = {"field": [], "Weibull": []}
    for seed in range(sets):
        truth = list(truths.values())[seed % len(truths)]
        rng = np.random.default_rng([19, n, seed])
        x, y = place(truth, n, rng)
        at = _reached(truth)
        steep = float((truth(np.array(at + 1 / 128)) - truth(np.array(at - 1 / 128))) * 64.0)
        for who, told in (("field", by_field(x, y, anchored)), ("Weibull", by_weibull(x, y))):
            rows[who].append(_scored(told, at, steep))
    for who, each in rows.items():
        _line(name, who, np.array(each))
    ratio = np.mean([r[2] for r in rows["field"]]) / np.mean([r[2] for r in rows["Weibull"]])
    print(f"{'':<36}error of the field over that of Weibull: {ratio:.3f}")
    sys.stdout.flush()


def _reached(truth: Curve) -> float:
    """Return where a curve reaches ½."""
    return float(brentq(lambda v: float(truth(np.array(v))) - 0.5, 1e-6, 1.0))


def _scored(told: Believed, at: float, steep: float) -> list[float]:
    held = float(told.low <= at <= told.high)
    slope = float(told.slope_low <= steep <= told.slope_high)
    return [told.high - told.low, held, abs(told.median - at), slope, told.seconds]


def _line(name: str, who: str, table: Floats) -> None:
    error = table.std(axis=0) / np.sqrt(len(table))
    cells = [f"{m:.4f} ± {e:.4f}" for m, e in zip(table.mean(axis=0), error, strict=True)]
    print(f"{name:<36}{who:<9}" + "".join(f"{cell:>18}" for cell in cells))


def monotone(sets: int) -> None:
    """Print what monotonic_cst does to error and coverage, on truths that are monotone."""
    print("\nmonotonic_cst: squared error over that without, and pointwise coverage of 95 %")
    print(f"{'':<40}{'error':>18}{'held':>18}{'held without':>18}{'warned':>8}")
    for kind, truths in MONOTONE.items():
        for n, task in ((100, None), (1_000, None), (100, TASK), (300, TASK)):
            name = f"{kind}, {n:,} trials" + ("" if task is None else " with guessing")
            _monotone_cell(name, truths, n, task, sets)


def _monotone_cell(
    name: str, truths: dict[str, Curve], n: int, task: Floats | None, sets: int
) -> None:
    import warnings

    rows: dict[str, list[list[float]]] = {each: [] for each in truths}
    warned = 0
    for seed in range(sets):
        which = list(truths)[seed % len(truths)]
        truth, rng = truths[which], np.random.default_rng([20, n, seed])
        x = rng.random((n, 1))
        p = truth(x[:, 0])
        y = rng.random(n) < (p if task is None else contexts.probability(task, p))
        row = []
        for cst in (None, [1]):
            model = SmoothBetaClassifier(bounds=[(0.0, 1.0)], monotonic_cst=cst)
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                post = model.fit(x, y, context=task).posterior(GRID[:, None])
            warned += any("monotonic_cst" in str(each.message) for each in told)
            low, high = post.interval(0.95)
            pi = truth(GRID)
            row += [np.mean((post.mean() - pi) ** 2), np.mean((low <= pi) & (pi <= high))]
        rows[which].append(row)
    whole = np.concatenate([np.array(each) for each in rows.values()])
    print(f"{name:<40}{_ratio(whole)}{_share(whole[:, 3])}{_share(whole[:, 1])}{warned:>8}")
    for which, each in rows.items():
        one = np.array(each)
        print(f"{'  ' + which:<40}{_ratio(one)}{_share(one[:, 3])}{_share(one[:, 1])}")
    sys.stdout.flush()


def _ratio(table: Floats) -> str:
    """Return the ratio of mean errors, with its standard error."""
    free, bound = table[:, 0], table[:, 2]
    ratio = bound.mean() / free.mean()
    error = np.std(bound - ratio * free) / np.sqrt(len(table)) / free.mean()
    return f"{f'{ratio:.3f} ± {error:.3f}':>18}"


def _share(each: Floats) -> str:
    return f"{f'{each.mean():.3f} ± {each.std() / np.sqrt(len(each)):.3f}':>18}"
