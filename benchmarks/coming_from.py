"""The same task in other packages and here: ``python benchmarks/coming_from.py [--seeds N]``.

Needs psignifit, questplus and pygam beside betafield. Every package gets the same trials, except in
the adaptive task, where each chooses its own. Three tasks:

- threshold: 400 two-alternative trials at ten levels; where is the signal heard half of the time?
- adaptive: the same question after 80 trials that the package places itself;
- field: 500 yes/no trials at uniform points; what is the probability at 500 others?

Printed for each: the root mean square error over seeds, the share of 95 % intervals that hold the
truth, their mean width, and the median processor time per data set, learning and asking together.
Compilation is done before the clock starts.
"""

import argparse
import warnings
from collections.abc import Callable
from importlib.metadata import version
from time import process_time

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

from betafield import SmoothBetaClassifier, contexts
from betafield.decisions import Experiment, LevelSet

Floats = NDArray[np.float64]
Answer = tuple[Floats, Floats, Floats]  # estimates and the ends of their intervals
Curve = Callable[[Floats], Floats]

GUESS, LAPSE = 1 / 2, 0.02
TASK = contexts.guess_lapse(guess=GUESS, lapse=LAPSE)
LEVELS, PER_LEVEL, ADAPTIVE, PLAIN = np.linspace(0.05, 0.95, 10), 40, 80, 500
NONE = np.array([np.nan])


def normal(x: Floats) -> Floats:
    """The cumulative normal that psignifit and QUEST+ assume."""
    return norm.cdf(x, 0.45, 0.15)


def two_steps(x: Floats) -> Floats:
    """A curve outside of their family: two mechanisms, one after the other."""
    return 0.6 * norm.cdf(x, 0.35, 0.06) + 0.4 * norm.cdf(x, 0.75, 0.06)


CURVES: dict[str, Curve] = {"cumulative normal": normal, "two steps": two_steps}


def heard(curve: Curve, x: Floats, rng: np.random.Generator) -> NDArray[np.bool_]:
    return rng.random(np.shape(x)) < GUESS + (1 - GUESS - LAPSE) * curve(x)


# A threshold from trials at fixed levels -----------------------------------------------------


def psignifit_threshold(x: Floats, right: Floats) -> Answer:
    from psignifit import psignifit

    table = np.column_stack([x, right, np.full(len(x), PER_LEVEL)])
    found = psignifit(
        table,
        experiment_type="2AFC",
        stimulus_range=(0.0, 1.0),
        fixed_parameters={"lambda": LAPSE},  # known to all
    )
    low, high = found.confidence_intervals["threshold"]["0.95"]
    return np.array([found.parameter_estimate_mean["threshold"]]), np.array([low]), np.array([high])


def our_threshold(x: Floats, right: Floats) -> Answer:
    model = SmoothBetaClassifier(bounds=[(0, 1)], monotonic_cst=[1])
    model.fit_counts(x[:, None], right, np.full(len(x), PER_LEVEL), context=TASK)
    found = model.threshold(0.5, anchored=True, random_state=0)
    low, high = found.interval(0.95)
    return np.array([found.median()]), np.array([low]), np.array([high])


# A threshold from trials that the package places ---------------------------------------------


def quest_plus(curve: Curve, rng: np.random.Generator) -> Answer:
    from questplus import QuestPlus

    quest = QuestPlus(
        stim_domain={"intensity": np.linspace(0, 1, 41)},
        func="norm_cdf",
        stim_scale="linear",
        param_domain={
            "mean": np.linspace(0, 1, 41),
            "sd": np.geomspace(0.02, 0.5, 15),
            "lower_asymptote": [GUESS],
            "lapse_rate": [LAPSE],
        },
        outcome_domain={"response": ["Yes", "No"]},
    )
    for _ in range(ADAPTIVE):
        stimulus = quest.next_stim
        answer = heard(curve, np.array(float(stimulus["intensity"])), rng)
        quest.update(stim=stimulus, outcome={"response": "Yes" if answer else "No"})
    means = np.linspace(0, 1, 41)
    below = np.cumsum(quest.marginal_posterior["mean"])
    low, high = np.interp([0.025, 0.975], below, means)
    return np.array([quest.param_estimate["mean"]]), np.array([low]), np.array([high])


def our_experiment(curve: Curve, rng: np.random.Generator) -> Answer:
    experiment = Experiment({"x": (0, 1)}, LevelSet(0.5, anchored=True), random_state=0)
    for _ in range(ADAPTIVE):
        trial = experiment.ask()
        success = bool(heard(curve, np.array(trial["x"]), rng))
        experiment.tell(trial, success=success, context=TASK)
    known = experiment.status()["known"]
    low, high = known["interval"]
    return np.array([known["threshold"]]), np.array([low]), np.array([high])


# A field of one feature and of two -----------------------------------------------------------


def hill(X: Floats) -> Floats:
    return 0.15 + 0.7 * np.exp(-(((X - 0.6) / 0.25) ** 2).sum(axis=1))


def pygam_field(X: Floats, y: Floats, at: Floats) -> Answer:
    from pygam import LogisticGAM, s, te

    terms = s(0) if X.shape[1] == 1 else te(0, 1)
    model = LogisticGAM(terms).gridsearch(X, y, progress=False)
    low, high = model.confidence_intervals(at, width=0.95).T
    return model.predict_proba(at), low, high


def gaussian_process_field(X: Floats, y: Floats, at: Floats) -> Answer:
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    kernel = ConstantKernel(1.0) * RBF([0.3] * X.shape[1])
    model = GaussianProcessClassifier(kernel, random_state=0).fit(X, y)
    return model.predict_proba(at)[:, 1], NONE, NONE


def our_field(X: Floats, y: Floats, at: Floats) -> Answer:
    posterior = SmoothBetaClassifier().fit(X, y).posterior(at)
    return posterior.mean(), *posterior.interval(0.95)


# Measuring -----------------------------------------------------------------------------------


class Scores:
    """Errors, intervals and seconds of one package in one task."""

    def __init__(self) -> None:
        self.squared: list[float] = []
        self.held: list[float] = []
        self.widths: list[float] = []
        self.seconds: list[float] = []

    def add(self, answer: Answer, truth: Floats, seconds: float) -> None:
        estimate, low, high = answer
        self.squared.append(float(np.mean((estimate - truth) ** 2)))
        self.widths.append(float(np.mean(high - low)))
        inside = (low <= truth) & (truth <= high)
        self.held.append(float(np.mean(inside)) if np.isfinite(low).all() else np.nan)
        self.seconds.append(seconds)

    def line(self, task: str, name: str) -> str:
        error, held = np.sqrt(np.mean(self.squared)), np.mean(self.held)
        width, seconds = np.mean(self.widths), np.median(self.seconds)
        interval = "     none           " if np.isnan(held) else f"{held:8.0%} {width:11.3f}"
        return f"{task:34} {name:26} {error:8.4f} {interval} {seconds:9.3f} s"


def timed(function: Callable[..., Answer], *given: object) -> tuple[Answer, float]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of parameters at their bounds, in every package
        started = process_time()
        answer = function(*given)
    return answer, process_time() - started


def thresholds(seeds: int) -> None:
    packages = {"psignifit": psignifit_threshold, "betafield": our_threshold}
    for name, curve in CURVES.items():
        truth = np.array([brentq(lambda x, curve=curve: curve(x) - 0.5, 0.0, 1.0)])
        scores = {package: Scores() for package in packages}
        for seed in range(-1, seeds):
            answers = heard(curve, np.repeat(LEVELS, PER_LEVEL), np.random.default_rng(seed + 1))
            right = answers.reshape(-1, PER_LEVEL).sum(axis=1)
            for package, function in packages.items():
                answer, seconds = timed(function, LEVELS, right)
                if seed >= 0:  # the first data set compiles
                    scores[package].add(answer, truth, seconds)
        for package, score in scores.items():
            print(score.line(f"threshold, {name}", package), flush=True)


def adaptive(seeds: int) -> None:
    packages = {"questplus": quest_plus, "betafield": our_experiment}
    for name, curve in CURVES.items():
        truth = np.array([brentq(lambda x, curve=curve: curve(x) - 0.5, 0.0, 1.0)])
        for package, function in packages.items():
            score = Scores()
            for seed in range(seeds):
                answer, seconds = timed(function, curve, np.random.default_rng(seed))
                score.add(answer, truth, seconds)
            print(score.line(f"adaptive, {name}", package), flush=True)


def fields(seeds: int) -> None:
    packages = {
        "pyGAM": pygam_field,
        "GaussianProcessClassifier": gaussian_process_field,
        "betafield": our_field,
    }
    for d in (1, 2):
        scores = {package: Scores() for package in packages}
        at = np.random.default_rng(10**6).random((500, d))
        for seed in range(-1, seeds):
            rng = np.random.default_rng(seed + 1)
            X = rng.random((PLAIN, d))
            y = (rng.random(PLAIN) < hill(X)).astype(int)
            for package, function in packages.items():
                answer, seconds = timed(function, X, y, at)
                if seed >= 0:
                    scores[package].add(answer, hill(at), seconds)
        for package, score in scores.items():
            print(score.line(f"field, {d} feature{'s' * (d > 1)}", package), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20, help="data sets per task")
    seeds = parser.parse_args().seeds
    names = ("psignifit", "questplus", "pygam", "scikit-learn", "numpy", "scipy")
    print(", ".join(f"{name} {version(name)}" for name in names), f"; {seeds} data sets per task")
    print(f"{'task':34} {'package':26} {'error':>8} {'held':>8} {'width':>11} {'processor':>11}")
    thresholds(seeds)
    fields(seeds)
    adaptive(seeds)


if __name__ == "__main__":
    main()
