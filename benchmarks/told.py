"""What it is worth to tell the model how trials were distorted: ``python benchmarks/told.py``.

Trials succeed with probability B + Aπ(x). *Told*, the model has (B, A + B) as their context;
*by hand*, it learns the share of successes q and π is (q − B)/A, clipped to [0, 1]. A row is the
geometric mean, over functions and seeds, of the root mean square error told to that by hand; both
learn from the same trials with the default model. Functions are those of functions.py that do not
jump, each with several seeds. The results are also written to out/told.json.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from functions import FRESH, FUNCTIONS, NEW, Floats, Function, space
from report import Row, Target, geometric, run

from betafield import SmoothBetaClassifier
from betafield.contexts import background, diagnostic, guess_lapse

RESULTS = Path("out") / "told.json"
SMOOTH = (*FUNCTIONS, *NEW, *FRESH)


@dataclass(frozen=True)
class Sizes:
    trials: tuple[int, ...]
    seeds: int
    most: int = 100  # functions


FULL = Sizes((300, 1_000, 6_000), 2)
QUICK = Sizes((300,), 2, 2)


def errors(function: Function, t: int, seed: int, context: Floats) -> tuple[float, float]:
    """Return root mean square errors told and by hand, of the same trials."""
    X = function.trials(t, seed)[0]
    low, high = context
    rng = np.random.default_rng([seed, t, 17])
    y = rng.random(t) < low + (high - low) * function(X)
    Q = space(function.d)
    told = SmoothBetaClassifier().fit(X, y, context=context).posterior(Q).mean()
    share = SmoothBetaClassifier().fit(X, y).posterior(Q).mean()
    by_hand = np.clip((share - low) / (high - low), 0.0, 1.0)
    return rms(told - function(Q)), rms(by_hand - function(Q))


def rms(errors: Floats) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def compared(name: str, context: Floats, d: int, sizes: Sizes, target: Target) -> Iterator[Row]:
    functions = [f for f in SMOOTH if f.d == d][: sizes.most]
    for t in sizes.trials:
        found = np.array(
            [[errors(f, t, seed, context) for seed in range(sizes.seeds)] for f in functions]
        )
        ratios = found[:, :, 0] / found[:, :, 1]
        value, err = geometric(ratios)
        each = [geometric(r)[0] for r in ratios]
        numbers = {
            "s.e.": err,
            f"worst: {functions[int(np.argmax(each))].name}": max(each),
            "rmse told": rms(found[:, :, 0]),
            "by hand": rms(found[:, :, 1]),
        }
        yield Row(f"{name}, {d}-D, t={t:,}: told / by hand", value, "×", target, numbers, "")


def guessing(sizes: Sizes) -> Iterator[Row]:
    yield from compared("guess 1/2, lapses .02", guess_lapse(0.5, 0.02), 1, sizes, Target(1.02))


def deaths(sizes: Sizes) -> Iterator[Row]:
    yield from compared("background .2", background(0.2), 1, sizes, Target(1.02))


def tests(sizes: Sizes) -> Iterator[Row]:
    context = diagnostic(0.85, 0.9)
    yield from compared("sensitivity .85, specificity .9", context, 2, sizes, Target(1.02, 0.9))


def guessing_in_2d(sizes: Sizes) -> Iterator[Row]:
    context = guess_lapse(0.5, 0.02)
    yield from compared("guess 1/2, lapses .02", context, 2, sizes, Target(1.02, 0.9))


if __name__ == "__main__":
    run(
        "Told how trials were distorted, against inverting by hand: RMSE",
        __doc__,
        {"guess": guessing, "background": deaths, "test": tests, "guess-2d": guessing_in_2d},
        FULL,
        QUICK,
        RESULTS,
    )
