"""Orders, splits and merges: the same trials by another way give the same bits.

Trials with weights and contexts, and a width that is given. One model learns them by one `fit`.
Others get them in another order, in parts: each part is taught to a model of its own by several
calls of `partial_fit`, and these models are merged, two at a time, until one is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np
from report import telling

from betafield import SmoothBetaClassifier, contexts

# Ways of learning the same trials, of which the first is one `fit`.
PLANS = 20
PROCESSES = 2


class Trials(NamedTuple):
    """Trials, how they are learned from, and where the models are asked."""

    options: dict[str, Any]
    columns: dict[str, Any]
    queries: Any


def orders(cases: int) -> tuple[int, str]:
    """Return in how many cases bits differed, and how many sets of trials there were."""
    seeds = range(-(-cases // PLANS))
    sizes = [min(PLANS, cases - PLANS * seed) for seed in seeds]
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        found = pool.map(differing, seeds, sizes, chunksize=5)
        wrong = sum(telling(found, len(seeds), "orders: sets of trials"))
    return wrong, f"{len(seeds):,} sets of trials"


def differing(seed: int, plans: int) -> int:
    """Return by how many plans the same trials gave other bits than by one `fit`."""
    rng = np.random.default_rng(seed)
    some = drawn(rng)
    expected = bits(SmoothBetaClassifier(**some.options).fit(**some.columns), some.queries)
    return sum(bits(planned(rng, some), some.queries) != expected for _ in range(plans))


def drawn(rng: np.random.Generator) -> Trials:
    """Return 3 to 60 trials: some at the same places, some exactly on the border of a window."""
    t, d = int(rng.integers(3, 61)), int(rng.integers(1, 4))
    on_grid = rng.random() < 0.5
    X = rng.integers(0, 9, (t, d)) / 8 if on_grid else rng.uniform(size=(t, d))
    kind = rng.choice(["none", "affine", "pooled", "mean", "three classes"])
    n_classes = 3 if kind == "three classes" else 2
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, t - n_classes)])
    options = {
        "bandwidth": float(rng.choice([0.125, 0.25, 0.6])),
        "metric": str(rng.choice(["euclidean", "chebyshev", "manhattan"])),
        "bounds": [(0.0, 1.0)] * d,
        "sharing": "mean" if kind == "mean" else "exact",
    }
    columns = {"X": X, "y": y, "sample_weight": weights(rng, t), "context": context(rng, kind, t)}
    return Trials(options, columns, rng.uniform(-0.1, 1.1, (5, d)))


def weights(rng: np.random.Generator, t: int) -> Any:
    kind = rng.integers(3)
    return None if kind == 0 else rng.integers(1, 9, t) / (1.0 if kind == 1 else 3.0)


def context(rng: np.random.Generator, kind: str, t: int) -> Any:
    if kind in ("affine", "mean"):
        return contexts.guess_lapse(rng.uniform(0.0, 0.5, t), rng.choice([0.0, 0.1], t))
    return contexts.pooled(rng.integers(1, 5, t), 0.9, 0.95) if kind == "pooled" else None


def planned(rng: np.random.Generator, some: Trials) -> SmoothBetaClassifier:
    """Return a model that has learned the trials in some other order, in parts."""
    rows = rng.permutation(len(some.columns["y"]))
    models = [taught(rng, some, part) for part in parted(rng, rows)]
    while len(models) > 1:
        other = models.pop(int(rng.integers(len(models))))
        models[int(rng.integers(len(models)))].merge(other)
    return models[0]


def taught(rng: np.random.Generator, some: Trials, rows: Any) -> SmoothBetaClassifier:
    model = SmoothBetaClassifier(**some.options)
    for batch in parted(rng, rows):
        columns = {
            name: None if column is None else column[batch] for name, column in some.columns.items()
        }
        model.partial_fit(**columns, classes=np.unique(some.columns["y"]))
    return model


def parted(rng: np.random.Generator, rows: Any) -> Iterator[Any]:
    """Yield the rows in one to four parts."""
    cuts = np.sort(rng.integers(0, len(rows) + 1, int(rng.integers(0, 4))))
    return (part for part in np.split(rows, cuts) if len(part))


def bits(model: SmoothBetaClassifier, queries: Any) -> list[bytes]:
    posterior = model.posterior(queries)
    answers = posterior.mean(), posterior.var(), model.predict_proba(queries)
    return [np.asarray(answer).tobytes() for answer in answers]
