"""Where trials are badly placed, the model should not mind: ``python benchmarks/shapes.py``.

- outlier: 2,000 trials in the unit square and one at (1000, 1000): root mean square error in the
  square, to that with the outlier moved to (1, 1).
- logarithms: features e^(sz), z normal, of which π is smooth in the logarithms: the error to that
  with logarithms given, s = 1 and 2, at places drawn like those of the trials.
- gap: no trials for .35 < x < .65: coverage of 95 % intervals inside, and over all.
- far: ten box lengths away: distance of the mean from the base rate, and the 95 % interval's width.

Functions are those of functions.py without jumps; ratios are geometric means over functions and
seeds. The results are also written to out/shapes.json.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from functions import FRESH, FUNCTIONS, NEW, Floats, Function, Ints, space
from report import Row, Target, geometric, run
from scipy.stats import norm

from betafield import SmoothBetaClassifier

RESULTS = Path("out") / "shapes.json"
SMOOTH = (*FUNCTIONS, *NEW, *FRESH)
GAP = (0.35, 0.65)


@dataclass(frozen=True)
class Sizes:
    trials: int
    seeds: int
    most: int = 100  # functions


def rms(X: Floats, y: Ints, Q: Floats, truth: Floats) -> float:
    mean = SmoothBetaClassifier().fit(X, y).posterior(Q).mean()
    return float(np.sqrt(np.mean((mean - truth) ** 2)))


def of(d: int, sizes: Sizes) -> list[Function]:
    return [f for f in SMOOTH if f.d == d][: sizes.most]


def ratio(name: str, pairs: list[list[tuple[float, float]]], target: Target) -> Row:
    """A row of errors (functions, seeds), each with the error it is compared to."""
    found = np.array(pairs)
    each = found[:, :, 0] / found[:, :, 1]
    value, err = geometric(each)
    worst = max(geometric(one)[0] for one in each)
    return Row(name, value, "×", target, {"s.e.": err, "worst function": worst}, "")


def outlier(sizes: Sizes) -> Iterator[Row]:
    def pair(f: Function, seed: int) -> tuple[float, float]:
        X, y = f.trials(sizes.trials, seed)
        Q, y = space(2), np.append(y, 1)
        ours, clipped = (rms(np.vstack([X, end]), y, Q, f(Q)) for end in ([1e3, 1e3], [1.0, 1.0]))
        return ours, clipped

    pairs = [[pair(f, seed) for seed in range(sizes.seeds)] for f in of(2, sizes)]
    yield ratio("an outlier at (1000, 1000), to clipped", pairs, Target(1.1))


def logarithms(sizes: Sizes) -> Iterator[Row]:
    def pair(f: Function, s: float, seed: int) -> tuple[float, float]:
        X, y = f.trials(sizes.trials, seed)
        X, Q = (s * norm.ppf(U) for U in (X, space(f.d)))
        truth = f(space(f.d))
        return rms(np.exp(X), y, np.exp(Q), truth), rms(X, y, Q, truth)

    for d in (1, 2):
        for s in (1.0, 2.0):
            pairs = [[pair(f, s, seed) for seed in range(sizes.seeds)] for f in of(d, sizes)]
            yield ratio(f"log-normal, s = {s:g}, {d}-D, to logarithms", pairs, Target(1.2))


def gap(sizes: Sizes) -> Iterator[Row]:
    for d in (1, 2):
        held = []
        for f in of(d, sizes):
            for seed in range(sizes.seeds):
                X, y = f.trials(2 * sizes.trials, seed)
                outside = np.flatnonzero(~_in_gap(X))[: sizes.trials]
                Q = space(d)
                post = SmoothBetaClassifier().fit(X[outside], y[outside]).posterior(Q)
                low, high = post.interval(0.95)
                covers = (low <= f(Q)) & (f(Q) <= high)
                held.append((covers[_in_gap(Q)].mean(), covers.mean()))
        inside, everywhere = np.mean(held, axis=0)
        err = float(np.std([h[0] for h in held], ddof=1) / len(held) ** 0.5)
        numbers = {"s.e.": err, "everywhere": float(everywhere)}
        target = Target(0.92, None, True)
        yield Row(f"coverage in a gap, {d}-D", float(inside), "", target, numbers, "")


def _in_gap(X: Floats) -> npt.NDArray[np.bool_]:
    return (X[:, 0] > GAP[0]) & (X[:, 0] < GAP[1])


def far(sizes: Sizes) -> Iterator[Row]:
    for d in (1, 2, 3):
        away, widths = [], []
        for f in of(d, sizes):
            X, y = f.trials(sizes.trials, 0)
            post = SmoothBetaClassifier().fit(X, y).posterior(np.full((1, d), 10.0))
            low, high = post.interval(0.95)
            away.append(float(abs(post.mean()[0] - y.mean())))
            widths.append(float(high[0] - low[0]))
        numbers = {"mean distance": float(np.mean(away)), "narrowest interval": min(widths)}
        yield Row(f"far away, {d}-D: from the base rate", max(away), "", Target(0.1), numbers, "")


if __name__ == "__main__":
    run(
        "Trials that are badly placed",
        __doc__,
        {"outlier": outlier, "logarithms": logarithms, "gap": gap, "far": far},
        Sizes(2_000, 2),
        Sizes(300, 2, 2),
        RESULTS,
    )
