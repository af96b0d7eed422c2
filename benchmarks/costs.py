"""What the default model costs, in processor time and memory: ``python benchmarks/costs.py``.

Set OPENBLAS_NUM_THREADS=1: seconds are of the processor, the best of several.

- fit: 10³, 10⁴ and 10⁶ trials, until the first question is answered: finding is left to it.
- posterior: mean, and mean with 95 % interval, at 10⁴ places per place; 10⁵ trials.
- memory: the highest resident memory during a fit of 10⁷ trials in 2-D, less what was resident
  before, against the bytes of X and y; in a process of its own.
- asks: the next trial of an `Experiment` in 2-D whose model has 10³ and 10⁵ trials, after a `tell`;
  the median.
- first: a process of its own from its start to the first interval, with numba's cache empty, then
  full.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

import numpy as np
from field import points
from functions import ALL, Floats, Ints
from report import Row, Target, fresh, processor, refuse_unless, run

from betafield import SmoothBetaClassifier
from betafield.decisions import Everywhere, Experiment

RESULTS = Path("out") / "costs.json"
CHOSEN = {1: "oscillating-1", 2: "wave-2", 3: "smooth-3"}
LIMITS = {
    1: {10**3: 0.1, 10**4: 0.3, 10**6: 3.0},
    2: {10**3: 0.2, 10**4: 0.6, 10**6: 5.0},
    3: {10**3: 0.6, 10**4: 1.5, 10**6: 12.0},
}
ASKS = {10**3: Target(30.0, 10.0), 10**5: Target(10.0, 3.0)}  # ms
ANSWERS = {1: (10.0, 30.0), 2: (15.0, 50.0), 3: (30.0, 80.0)}  # µs: mean, with interval


@dataclass(frozen=True)
class Sizes:
    fits: tuple[int, ...]
    repeats: int
    asked_at: int
    memory: int
    asks: int


FULL = Sizes((10**3, 10**4, 10**6), 3, 10**5, 10**7, 60)
QUICK = Sizes((10**3,), 1, 10**4, 10**5, 10)


def trials(d: int, t: int) -> tuple[Floats, Ints]:
    return next(f for f in ALL if f.name == CHOSEN[d]).trials(t, 0)


def learned(X: Floats, y: Ints) -> SmoothBetaClassifier:
    """A model that has answered: nothing is put off."""
    model = SmoothBetaClassifier().fit(X, y)
    model.posterior(X[:1]).mean()
    return model


def fit(sizes: Sizes) -> Iterator[Row]:
    for d, limits in LIMITS.items():
        learned(*trials(d, 300))  # compiles: not what is measured
        for t in sizes.fits:
            taken = [processor(learned, *trials(d, t)) for _ in range(sizes.repeats)]
            target = Target(limits[t], limits[t] / 2)
            numbers = {"longest": max(taken)}
            yield Row(f"fit, {d}-D, t={t:,}", min(taken), " s", target, numbers)


def posterior(sizes: Sizes) -> Iterator[Row]:
    for d, limits in ANSWERS.items():
        model, Q = learned(*trials(d, sizes.asked_at)), points(10**4, d)
        asks = {
            "mean": lambda m=model, Q=Q: m.posterior(Q).mean(),
            "mean and interval": partial(_interval, model, Q),
        }
        for (name, ask), limit in zip(asks.items(), limits, strict=True):
            ask()
            taken = [processor(ask) / len(Q) for _ in range(sizes.repeats)]
            target = Target(limit, limit / 2)
            yield Row(f"posterior, {name}, {d}-D", 1e6 * min(taken), " µs", target, {}, "")


def _interval(model: SmoothBetaClassifier, Q: Floats) -> None:
    post = model.posterior(Q)
    post.mean()
    post.interval(0.95)


def memory(sizes: Sizes) -> Iterator[Row]:
    found = fresh("memory_of_default", sizes.memory, 2)
    refuse_unless(found["trials"] == sizes.memory, "the measured fit did not learn every trial")
    numbers = {"peak": found["extra"], "kept": found["kept"], "X and y": found["data"]}
    name = f"memory of fit, against X and y, t={sizes.memory:,}, 2-D"
    yield Row(name, found["extra"] / found["data"], "×", Target(3.0), numbers, "B")


def asks(sizes: Sizes) -> Iterator[Row]:
    for t, target in ASKS.items():
        taken = list(asked(t, sizes.asks))
        numbers = {"longest": max(taken), "mean": sum(taken) / len(taken)}
        name = f"an ask after a tell, 2-D, t={t:,}"
        yield Row(name, 1e3 * median(taken), " ms", target, numbers)


def asked(t: int, times: int) -> Iterator[float]:
    """Yield the seconds of asks, each after a tell; the first, which learns, is not among them."""
    function, rng = next(f for f in ALL if f.name == CHOSEN[2]), np.random.default_rng(0)
    model = SmoothBetaClassifier(bounds=[(0, 1), (0, 1)]).fit(*trials(2, t))
    experiment = Experiment({"a": (0, 1), "b": (0, 1)}, Everywhere(), model, random_state=0)
    trial = experiment.ask()
    for _ in range(times):
        at = np.array([[trial["a"], trial["b"]]])
        experiment.tell(trial, bool(rng.random() < function(at)[0]))
        started = process_time()
        trial = experiment.ask()
        yield process_time() - started


def first(_: Sizes) -> Iterator[Row]:
    for d in (1, 2):
        with TemporaryDirectory() as cache:
            empty, full = (fresh("first_default", d, NUMBA_CACHE_DIR=cache) for _ in range(2))
            refuse_unless(any(Path(cache).iterdir()), "numba did not use the empty cache")
        numbers = {"of it imports": empty["imports"], "cached": full["seconds"]}
        name = f"first fit, posterior and interval ever, {d}-D"
        yield Row(name, empty["seconds"], " s", Target(8.0, 5.0), numbers)


if __name__ == "__main__":
    run(
        "SmoothBetaClassifier(): processor time and memory",
        __doc__,
        {"fit": fit, "posterior": posterior, "memory": memory, "asks": asks, "first": first},
        FULL,
        QUICK,
        RESULTS,
    )
