"""What else could be used, on the same trials: ``python benchmarks/alternatives.py``.

Every function of functions.py is learned from t trials at uniform points, three seeds at t = 1,000
and one at t = 10,000. Of each learner:

- error: its mean squared error at 2,000 points divided by ours, as a geometric mean over functions
  and seeds;
- better: in how many of these cases its error is less than ours;
- held: the share of these points at which its 95 % interval holds the truth, where it has one;
- seconds of the processor, one thread, to learn and to ask at 2,000 points, its own search for
  parameters among it; mean over functions and seeds.

The results are also written to out/alternatives.json. Settings are those of accuracy.py; further,
a logistic regression of the features as they are, and CCBP with its usual length scale.
"""

import json
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
from accuracy import mean_square
from functions import FUNCTIONS, Floats, Function, Ints, space
from peers import SMOOTHINGS, gam, gp, radius, squared
from report import environment
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from betafield import SmoothBetaClassifier
from betafield.baselines import ContinuousCorrelatedBeta

RESULTS = Path("out") / "alternatives.json"
SEEDS = {1_000: 3, 10_000: 1}
OURS, LEVEL = "betafield", 0.95
# Means at Q, and intervals where there are any.
Answer = tuple[Floats, tuple[Floats, Floats] | None]


def field(X: Floats, y: Ints, Q: Floats) -> Answer:
    posterior = SmoothBetaClassifier().fit(X, y).posterior(Q)
    return posterior.mean(), posterior.interval(LEVEL)


def process(X: Floats, y: Ints, Q: Floats) -> Answer:
    return gp(X, y, Q, squared), None


def splines(X: Floats, y: Ints, Q: Floats) -> Answer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [gam(X, smoothing).fit(X, y) for smoothing in SMOOTHINGS]
        model = min(models, key=lambda model: model.statistics_["UBRE"])
        low, high = model.confidence_intervals(Q, width=LEVEL).T
    return model.predict_proba(Q), (low, high)


def neighbours(X: Floats, y: Ints, Q: Floats) -> Answer:
    return radius(X, y, Q, squared), None


def fixed_kernel(X: Floats, y: Ints, Q: Floats) -> Answer:
    posterior = ContinuousCorrelatedBeta().fit(X, y).posterior(Q)
    return posterior.mean(), posterior.interval(LEVEL)


def logistic(X: Floats, y: Ints, Q: Floats) -> Answer:
    return LogisticRegression(max_iter=1_000).fit(X, y).predict_proba(Q)[:, 1], None


LEARNERS: dict[str, tuple[Callable[[Floats, Ints, Floats], Answer], int]] = {
    OURS: (field, 10_000),
    "Gaussian process": (process, 1_000),  # its time grows as t³
    "pyGAM": (splines, 10_000),
    "radius neighbours": (neighbours, 10_000),
    "CCBP": (fixed_kernel, 10_000),
    "logistic regression": (logistic, 10_000),
}


def scored(name: str, pi: Function, t: int, seed: int) -> dict[str, float]:
    """Return error, share held (NaN without intervals) and seconds of one learner."""
    Q, (X, y) = space(pi.d), pi.trials(t, seed)
    with threadpool_limits(1):
        started = process_time()
        mean, interval = LEARNERS[name][0](X, y, Q)
        taken = process_time() - started
    held = np.nan
    if interval is not None:
        held = float(np.mean((interval[0] <= pi(Q)) & (pi(Q) <= interval[1])))
    return {"error": mean_square(mean - pi(Q)), "held": held, "seconds": taken}


def compared(t: int) -> list[dict[str, object]]:
    """Print and return a line per learner, for t trials."""
    found = defaultdict(list)
    names = [name for name, (_, most) in LEARNERS.items() if t <= most]
    for name in names:
        for pi in FUNCTIONS:
            for seed in range(SEEDS[t]):
                found[name].append(scored(name, pi, t, seed))
    ours = np.array([each["error"] for each in found[OURS]])
    lines: list[dict[str, object]] = []
    for name in names:
        error, held, seconds = (
            np.array([each[key] for each in found[name]]) for key in ("error", "held", "seconds")
        )
        ratio = float(np.exp(np.mean(np.log(error / ours))))
        better = float(np.mean(error < ours))
        lines.append(
            {
                "t": t,
                "learner": name,
                "error": ratio,
                "better": better,
                "held": float(held.mean()),
                "seconds": float(seconds.mean()),
                "of each": found[name],
            }
        )
        told = f"{held.mean():.1%}" if np.isfinite(held).all() else "-"
        line = f"{t:7,}  {name:20} {ratio:7.2f} {better:7.0%} {told:>7} {seconds.mean():10.3f} s"
        print(line, flush=True)
    return lines


def main() -> None:
    for pi in FUNCTIONS:  # compiles what will be asked for
        scored(OURS, pi, min(SEEDS), seed=0)
    print(f"{'trials':>7}  {'learner':20} {'error':>7} {'better':>7} {'held':>7} {'time':>12}")
    lines = [line for t in SEEDS for line in compared(t)]
    RESULTS.parent.mkdir(exist_ok=True)
    record = {"environment": environment(), "lines": lines}
    RESULTS.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
