"""Asking what to test next: how long it takes, and how many trials it saves.

``python benchmarks/asking.py``; the results are also written to out/asking.json.

- ask, tell: medians and means of processor time at t trials in 2-D, 1,024 candidates and 32 around
  the best, the default model, fitted to all but the last trials at once. Each ask follows a tell.
  Most are made with what was known when the round began; the first of a round, one in t/64, is told
  apart. Once t has grown by a tenth length scales are found anew as well, which takes as long as a
  fit.
- threshold: x in [0, 1], two alternatives, 75 % correct. Median absolute error after 100 trials of
  `LevelSet(0.75)`, which is told nothing of guessing, against QUEST+ (Watson 2017) with its Weibull
  family (threshold and slope unknown, guess rate known): the same rule in NumPy, after one run of
  the package questplus, where it is installed, has given the same estimates. Two functions are of
  the family, seven are not.
- anchored: the same with guess and lapse rate (2 %) known to both, and ours anchored. Mean absolute
  error after 100 trials on two curves of QUEST+'s family, on two others that are near it, and on
  the seven above, ours over QUEST+'s. Beside it, the error of a posterior that knows the curve but
  for a shift and a stretch: what remains if nothing of the shape has to be learned.
- random placement: its error with twice the trials over ours, with the same model.
- level set: two features, share of the space on the wrong side after 200 trials, random placement
  over ours. A circle, a slanted line, and the two functions of Owen et al. (2021, "Adaptive
  nonparametric psychophysics"), at 75 %.

What was tuned was tuned on other runs: on the Weibull functions, the circle, the line and Owen's,
with seeds from 1000 on; here they are 0, 1, 2, …
"""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import numpy.typing as npt
from report import Row, Target, processor, refuse_unless, run
from scipy.optimize import brentq
from scipy.special import expit, ndtr, xlogy

from betafield import SmoothBetaClassifier, contexts
from betafield.decisions import Everywhere, Experiment, LevelSet, Maximize

Floats = npt.NDArray[np.float64]

RESULTS = Path("out") / "asking.json"
TITLE = "betafield.decisions: what to test next"
CORRECT, LAPSE = 0.75, 0.02


@dataclass(frozen=True)
class Sizes:
    """How much of everything one run measures."""

    told: tuple[int, ...]
    asks: int
    trials: int
    runs: int
    plane_trials: int
    plane_runs: int


FULL = Sizes((10**3, 10**5), 101, 100, 100, 200, 40)
QUICK = Sizes((10**3, 10**4), 11, 30, 4, 30, 2)


# How long ----------------------------------------------------------------------------------


# Milliseconds of an ask: at least, and the aim, from so many trials on.
LIMITS = {10**3: Target(30, 10), 10**4: Target(30, 10), 10**5: Target(10, 3)}


def times(sizes: Sizes) -> Iterator[Row]:
    for told in sizes.told:
        yield from times_at(told, sizes.asks)


def times_at(told: int, n: int) -> Iterator[Row]:
    rng = np.random.default_rng(0)
    X = rng.random((told, 2))
    y = rng.random(told) < circle(X)
    model = SmoothBetaClassifier(bounds=[(0, 1), (0, 1)]).fit(X, y)
    for goal, strategy in (
        (LevelSet(0.5), "boundary"),
        (LevelSet(0.5), "entropy"),
        (Everywhere(), "variance"),
        (Maximize(), "thompson"),
        (Maximize(), "ucb"),
    ):
        model.partial_fit(rng.random((1, 2)), [True])  # of which nobody has asked yet
        experiment = Experiment({"x": (0, 1), "y": (0, 1)}, goal, model, 0, strategy)
        first = processor(experiment.ask)
        asks, tells = timed(experiment, n, rng)
        numbers = {"first of a round": first, "mean": mean(asks), "longest": max(asks)}
        name = f"ask, {strategy}, {told:,} trials"
        yield Row(name, 1e3 * median(asks), " ms", LIMITS[told], numbers)
    yield Row(
        f"tell, {told:,} trials", 1e3 * median(tells), " ms", Target(1), {"mean": mean(tells)}
    )


def timed(
    experiment: Experiment, n: int, rng: np.random.Generator
) -> tuple[list[float], list[float]]:
    """Return the seconds of asks and of tells, which take turns."""
    experiment.tell(experiment.pending()[0], success=True)
    asks, tells = [], []
    for _ in range(n):
        asks.append(processor(experiment.ask))
        trial = experiment.pending()[0]
        outcome = bool(rng.random() < 0.5)
        tells.append(processor(partial(experiment.tell, trial, success=outcome)))
    return asks, tells


# One feature -------------------------------------------------------------------------------


def weibull(threshold: float, slope: float, x: Any) -> Floats:
    return np.asarray(1.0 - np.exp(-((np.asarray(x) / threshold) ** slope)))


def kink(x: Any) -> Floats:
    x = np.asarray(x)
    return np.where(x < 0.55, 0.25 * x / 0.55, 0.25 + 0.75 * np.clip((x - 0.55) / 0.06, 0, 1))


def two_stages(x: Any) -> Floats:
    x = np.asarray(x)
    return np.asarray(0.2 * ndtr((x - 0.15) / 0.05) + 0.8 * ndtr((x - 0.7) / 0.04))


def step(x: Any) -> Floats:
    return np.asarray(ndtr((np.asarray(x) - 0.45) / 0.01))


def shifted(x: Any) -> Floats:
    """Nothing is seen below 0.3."""
    return weibull(0.2, 2.0, np.maximum(np.asarray(x) - 0.3, 0.0))


def lapses(x: Any) -> Floats:
    """One answer in ten is a guess, however clear the stimulus."""
    return np.asarray(0.9 * weibull(0.5, 4.0, x))


def shoulder(x: Any) -> Floats:
    """Up to 0.4, where it stays for a while, and then up."""
    x = np.asarray(x)
    return np.asarray(0.4 * ndtr((x - 0.2) / 0.05) + 0.6 * ndtr((x - 0.65) / 0.05))


def plateau(x: Any) -> Floats:
    """Up to 0.7, where it stays for a while, and then up."""
    x = np.asarray(x)
    return np.asarray(0.7 * ndtr((x - 0.35) / 0.05) + 0.3 * ndtr((x - 0.8) / 0.05))


RIGHT = {
    "Weibull(0.4, 3)": partial(weibull, 0.4, 3.0),
    "Weibull(0.6, 5)": partial(weibull, 0.6, 5.0),
}
WRONG = {
    "kink": kink,
    "two stages": two_stages,
    "step": step,
    "shifted": shifted,
    "lapses": lapses,
    "shoulder": shoulder,
    "plateau": plateau,
}
CURVES: dict[str, Callable[[Any], Floats]] = RIGHT | WRONG


def kinked(x: Any) -> Floats:
    return np.interp(x, [0.0, 0.35, 0.55, 1.0], [0.0, 0.2, 0.9, 1.0])


def two_mechanisms(x: Any) -> Floats:
    return 0.35 * weibull(0.25, 5.0, x) + 0.65 * weibull(0.8, 8.0, x)


OTHERS = {"kinked": kinked, "two mechanisms": two_mechanisms}
KNOWN: dict[str, Callable[[Any], Floats]] = CURVES | OTHERS


def truth(name: str) -> float:
    return float(brentq(lambda x: float(KNOWN[name](x)) - 0.5, 0.01, 1.0))


def correct(name: str, x: float, rng: np.random.Generator, lapse: float = 0.0) -> bool:
    return bool(rng.uniform() < 0.5 + (0.5 - lapse) * float(KNOWN[name](x)))


def ours(name: str, strategy: str | None, n: int, seed: int) -> float:
    """Return the error of the threshold after n trials."""
    experiment = Experiment({"x": (0, 1)}, LevelSet(CORRECT), None, seed, strategy)
    rng = np.random.default_rng(seed)
    for _ in range(n):
        trial = experiment.ask()
        experiment.tell(trial, success=correct(name, trial["x"], rng))
    return abs(experiment.status()["known"]["threshold"] - truth(name))


def ours_anchored(name: str, n: int, seed: int) -> float:
    """Return the error of the threshold after n trials, if guess and lapse rate are known."""
    task = contexts.guess_lapse(0.5, LAPSE)
    experiment = Experiment({"x": (0, 1)}, LevelSet(0.5, anchored=True), None, seed)
    rng = np.random.default_rng(seed)
    for _ in range(n):
        trial = experiment.ask()
        experiment.tell(trial, correct(name, trial["x"], rng, LAPSE), context=task)
    return abs(experiment.status()["known"]["threshold"] - truth(name))


STIMULI = np.linspace(0.01, 1, 100)
THRESHOLDS, SLOPES = np.linspace(0.02, 1, 50), np.linspace(1, 10, 19)


def quest_plus(name: str, n: int, seed: int, lapse: float = 0.0) -> float:
    """Return the estimate of QUEST+: least expected entropy of its parameters, then their means."""
    threshold, slope = (a.ravel() for a in np.meshgrid(THRESHOLDS, SLOPES, indexing="ij"))
    p = 0.5 + (0.5 - lapse) * weibull(threshold, slope, STIMULI[:, None])
    belief, unsure = np.full(threshold.size, 1 / threshold.size), entropy(p)
    rng = np.random.default_rng(seed)
    for _ in range(n):
        # The entropy of the parameters falls by what an outcome tells about them.
        best = int(np.argmax(entropy(p @ belief) - unsure @ belief))
        right = correct(name, STIMULI[best], rng, lapse)
        belief = belief * (p[best] if right else 1 - p[best])
        belief /= belief.sum()
    return crossing(float(belief @ threshold), float(belief @ slope))


def entropy(p: Floats) -> Floats:
    """Return the entropy of outcomes of probability p, in nats."""
    return np.asarray(-xlogy(p, p) - xlogy(1 - p, 1 - p))


def crossing(threshold: float, slope: float) -> float:
    return float(threshold * (-np.log(2 * (1 - CORRECT))) ** (1 / slope))


# Shifts and stretches of a known curve.
SHIFTS, STRETCHES = np.linspace(-0.4, 0.4, 81), np.geomspace(0.4, 2.5, 19)


def knowing(name: str, n: int, seed: int) -> float:
    """Return the error of a posterior that knows the curve but for a shift and a stretch.

    Every trial is placed where the expected variance of the threshold after it is least.
    """
    shift, stretch = (a.ravel() for a in np.meshgrid(SHIFTS, STRETCHES, indexing="ij"))
    own = truth(name)
    x = np.maximum(own + stretch * (STIMULI[:, None] - own - shift), 0.0)
    p = 0.5 + (0.5 - LAPSE) * KNOWN[name](x)
    belief = np.full(shift.size, 1 / shift.size)
    rng = np.random.default_rng(seed)
    for _ in range(n):
        # The mean variance after an outcome is E t² less the mean of the squared means.
        yes, every = p @ (belief * shift), belief @ shift
        chance = p @ belief
        best = int(np.argmax(yes**2 / chance + (every - yes) ** 2 / (1 - chance)))
        belief = belief * (p[best] if correct(name, STIMULI[best], rng, LAPSE) else 1 - p[best])
        belief /= belief.sum()
    return abs(float(belief @ shift))


def package(name: str, n: int, seed: int) -> float:
    """Return the estimate of the package questplus."""
    from questplus import QuestPlus

    quest = QuestPlus(
        stim_domain={"intensity": STIMULI},
        func="weibull",
        stim_scale="linear",
        param_domain={
            "threshold": THRESHOLDS,
            "slope": SLOPES,
            "lower_asymptote": [0.5],
            "lapse_rate": [0.0],
        },
        outcome_domain={"response": ["Yes", "No"]},
        stim_selection_method="min_entropy",
        param_estimation_method="mean",
    )
    rng = np.random.default_rng(seed)
    for _ in range(n):
        stimulus = quest.next_stim
        answer = "Yes" if correct(name, float(stimulus["intensity"]), rng) else "No"
        quest.update(stim=stimulus, outcome={"response": answer})
    found = quest.param_estimate
    return crossing(float(found["threshold"]), float(found["slope"]))


def theirs(name: str, n: int, seed: int) -> float:
    return abs(quest_plus(name, n, seed) - truth(name))


def theirs_anchored(name: str, n: int, seed: int) -> float:
    return abs(quest_plus(name, n, seed, LAPSE) - truth(name))


def require_the_same_rule(n: int) -> None:
    """Stop unless the package gives the same estimate; say so where it is not installed."""
    try:
        found = package("kink", n, 0)
    except ImportError:
        print("questplus is not installed: its rule was not compared with the package's")
        return
    refuse_unless(abs(found - quest_plus("kink", n, 0)) < 1e-9, "QUEST+ is not questplus's")


def threshold(sizes: Sizes) -> Iterator[Row]:
    require_the_same_rule(sizes.trials)
    n, runs = sizes.trials, sizes.runs
    with ProcessPoolExecutor(2) as pool:
        for name in CURVES:
            mine = errors(pool, partial(ours, name, None, n), runs)
            quest = errors(pool, partial(theirs, name, n), runs)
            chance = errors(pool, partial(ours, name, "random", 2 * n), runs)
            numbers = {"ours": mine, "QUEST+": quest, f"random, {2 * n} trials": chance}
            wanted = Target(1 if name in RIGHT else 2, more_is_better=True)
            yield Row(f"{name}: error, QUEST+ / ours", quest / mine, "×", wanted, numbers, "")
            again = Target(1, more_is_better=True)
            named = f"{name}: error, random with {2 * n} trials / ours"
            yield Row(named, chance / mine, "×", again, numbers, "")


def anchored(sizes: Sizes) -> Iterator[Row]:
    families = ("its", RIGHT, 1.0), ("another", OTHERS, 0.8), ("far from its", WRONG, 0.8)
    with ProcessPoolExecutor(2) as pool:
        for family, names, most in families:
            mine, quest, best = (
                np.array(
                    [
                        list(pool.map(partial(one, name, sizes.trials), range(sizes.runs)))
                        for name in names
                    ]
                )
                for one in (ours_anchored, theirs_anchored, knowing)
            )
            ratio = mine.mean() / quest.mean()
            spread = float(np.std(mine - ratio * quest) / np.sqrt(mine.size) / quest.mean())
            numbers = {"ours": mine.mean(), "QUEST+": quest.mean(), "standard error": spread}
            numbers["if the shape were known"] = best.mean()
            for name, one, two in zip(names, mine, quest, strict=True):
                numbers |= {f"ours, {name}": one.mean(), f"QUEST+, {name}": two.mean()}
            yield Row(
                f"{family} family: error, ours / QUEST+", ratio, "×", Target(most), numbers, ""
            )


def errors(pool: ProcessPoolExecutor, one: Callable[[int], float], runs: int) -> float:
    return median(pool.map(one, range(runs)))


# Two features ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """A success probability over a square, and a level of it."""

    p: Callable[[Floats], Floats]
    level: float
    low: float = 0.0
    high: float = 1.0


def circle(X: Floats) -> Floats:
    return np.asarray(expit(25.0 * (0.3 - np.hypot(X[:, 0] - 0.5, X[:, 1] - 0.4))))


def line(X: Floats) -> Floats:
    return np.asarray(expit(12.0 * (X[:, 0] + 0.5 * X[:, 1] - 0.7)))


def owen(X: Floats) -> Floats:
    """How many times weaker than this an intensity is that is seen."""
    return np.asarray((X[:, 1] + 1) / (0.05 + 0.4 * (0.2 * X[:, 0] - 1) ** 2 * X[:, 0] ** 2))


def detection(X: Floats) -> Floats:
    return np.asarray(ndtr(2.0 * owen(X) - 4.0))


def discrimination(X: Floats) -> Floats:
    return np.asarray(ndtr(owen(X)))


FIELDS = {
    "circle": Field(circle, 0.5),
    "line": Field(line, 0.5),
    "Owen's detection": Field(detection, CORRECT, -1.0),
    "Owen's discrimination": Field(discrimination, CORRECT, -1.0),
}


def wrong_share(name: str, strategy: str | None, n: int, seed: int) -> float:
    """Return the share of the space on the wrong side after n trials."""
    field = FIELDS[name]
    ends = (field.low, field.high)
    goal = LevelSet(field.level)
    experiment = Experiment({"x": ends, "y": ends}, goal, None, seed, strategy)
    rng = np.random.default_rng(seed)
    for _ in range(n):
        trial = experiment.ask()
        chance = field.p(np.array([[trial["x"], trial["y"]]]))[0]
        experiment.tell(trial, success=rng.uniform() < chance)
    side = field.low + (field.high - field.low) * (np.arange(40) + 0.5) / 40
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    above = experiment.model.posterior(grid).prob_above(field.level) > 0.5
    return float(np.mean(above != (field.p(grid) > field.level)))


def level_set(sizes: Sizes) -> Iterator[Row]:
    n, runs = sizes.plane_trials, range(sizes.plane_runs)
    with ProcessPoolExecutor(2) as pool:
        for name in FIELDS:
            mine, chance = (
                float(np.mean(list(pool.map(partial(wrong_share, name, strategy, n), runs))))
                for strategy in (None, "random")
            )
            numbers = {"ours": mine, "random": chance}
            target = Target(2, more_is_better=True)
            yield Row(
                f"{name}: wrong share, random / ours", chance / mine, "×", target, numbers, ""
            )


MEASUREMENTS = {
    "times": times,
    "threshold": threshold,
    "anchored": anchored,
    "level-set": level_set,
}

if __name__ == "__main__":
    sys.exit(run(TITLE, __doc__, MEASUREMENTS, FULL, QUICK, RESULTS))
