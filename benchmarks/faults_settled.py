"""Settling: the same trials by another way give the same bits, with default options.

One model learns the trials by one `fit`. Others get them in another order and in parts: each part
is taught to a model of its own by several calls, some of them with questions in between; some
models are saved and loaded, copied or pickled on the way; they are merged, two at a time, until one
is left, and settled. Others are taught on Dask, by chunks. No bounds are given.
"""

from __future__ import annotations

import copy
import pickle
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from faults_orders import PROCESSES, context, parted
from report import telling

from betafield import SmoothBetaClassifier, load
from betafield.cautions import FieldWarning
from betafield.process.found import Found
from betafield.state.trees import told

# Ways of learning the same trials, by the side of one `fit`; the last is on Dask.
PLANS = 10
# What is counted of the models that all are compared with, and of the ways.
SEEN = ("windows", "levels", "ranks", "logs", "Dask")
KINDS = (
    "plain",
    "whole weights",
    "fractional weights",
    "counts",
    "affine",
    "weighted affine",
    "pooled",
    "three classes",
)


class Trials(NamedTuple):
    """Trials as columns, and where models are asked; of counts, `successes` of `trials` a row."""

    columns: dict[str, Any]
    queries: Any

    @property
    def is_counts(self) -> bool:
        return "successes" in self.columns

    @property
    def classes(self) -> dict[str, Any]:
        return {} if self.is_counts else {"classes": np.unique(self.columns["y"])}

    def some(self, rows: Any) -> dict[str, Any]:
        return {name: column[rows] for name, column in self.columns.items()}


def settled(cases: int) -> tuple[int, str]:
    """Return in how many cases bits differed, and what was found how often."""
    seeds = range(-(-cases // PLANS))
    sizes = [min(PLANS, cases - PLANS * seed) for seed in seeds]
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        found = pool.map(differing, seeds, sizes, chunksize=5)
        every = sum(telling(found, len(seeds), "settled: sets of trials"), Counter())
    seen = ", ".join(f"{every[name]:,} {name}" for name in SEEN)
    return every["differing"], f"{len(seeds):,} sets of trials; cases with {seen}"


def differing(seed: int, plans: int) -> Counter[str]:
    """Return by how many plans the same trials gave other bits, and what those plans were like."""
    warnings.simplefilter("ignore", FieldWarning)
    rng = np.random.default_rng([seed, 18])
    some = drawn(rng)
    reference = fitted(SmoothBetaClassifier(), some, slice(None))
    expected, found = bits(reference, some.queries), reference.field_.serving[0]
    counts = Counter({name: plans * has(found) for name, has in PARTS.items()})
    for plan in range(plans):
        is_dask = plan == PLANS - 1
        try:
            model = on_dask(rng, some) if is_dask else planned(rng, some)
            is_wrong = bits(model.settle(), some.queries) != expected
        except Exception:
            is_wrong = True
            traceback.print_exc()
        if is_wrong:
            print(f"set {seed}, plan {plan}: not the same", file=sys.stderr, flush=True)
        counts.update({"differing": is_wrong, "Dask": is_dask})
    return counts


PARTS: dict[str, Callable[[tuple[Found, ...]], bool]] = {
    "windows": lambda every: any(found.windows for found in every),
    "levels": lambda every: any(
        found.spread.any() or any(one.effect is not None for one in found.components)
        for found in every
    ),
    "ranks": lambda every: _is_measured(every, "rank"),
    "logs": lambda every: _is_measured(every, "log"),
}


def _is_measured(every: tuple[Found, ...], scale: str) -> bool:
    return any(scale in one.scale for found in every for one in found.components)


def bits(model: SmoothBetaClassifier, queries: Any) -> list[Any]:
    """Return what was found, and what is said of it, to the last bit."""
    posterior = model.posterior(queries)
    answers = posterior.mean(), posterior.var(), *posterior.interval(0.9), model.bounds_
    found = [told(each) for each in model.field_.serving[0]]
    return [repr(found), model.n_trials_, *(np.asarray(answer).tobytes() for answer in answers)]


# Trials ------------------------------------------------------------------------------------


def drawn(rng: np.random.Generator) -> Trials:
    """Return 2 to 60 trials, or now and then some hundreds or thousands, of all kinds."""
    d = int(rng.choice([1, 2, 3, 5], p=[0.4, 0.37, 0.18, 0.05]))
    most = 400.0 if d < 5 and rng.random() < 0.05 else 60.0
    t = int(np.exp(rng.uniform(np.log(2.0), np.log(most))))
    if d < 3 and rng.random() < 0.002:
        t = int(rng.integers(2_000, 4_000))  # cells, and a rougher process
    X = np.column_stack([feature(rng, t) for _ in range(d)])
    truth, kind = field(rng, X), str(rng.choice(KINDS))
    columns = {"X": X, **outcomes(rng, kind, truth)}
    seen = X[rng.integers(0, t, 4)]
    low, high = X.min(axis=0), X.max(axis=0)
    new = rng.uniform(low - 0.2 * (high - low), high + 0.2 * (high - low), (4, d))
    return Trials(columns, np.vstack([seen, new]))


def feature(rng: np.random.Generator, t: int) -> Any:
    """Return values of one feature: anywhere, on a grid, of few levels, or skew."""
    kind = rng.integers(6)
    if kind == 0:
        return rng.integers(0, 9, t) / 8.0
    if kind == 1:
        return rng.integers(0, int(rng.integers(2, 30)), t).astype(float)
    if kind == 2:
        return np.exp(2.0 * rng.normal(size=t))
    if kind == 3:
        return rng.standard_cauchy(t)
    return rng.uniform(-1.0, 1.0, t) * 10.0 ** rng.integers(-3, 4)


def field(rng: np.random.Generator, X: Any) -> Any:
    """Return a probability per row: smooth in ranks or logarithms, steps, or by level."""
    t, d = X.shape
    kind = rng.integers(4)
    x = X.argsort(axis=0).argsort(axis=0) / t
    x = np.log(X) if kind == 1 and X.min() > 0.0 else x
    wave = np.sin(rng.uniform(1.0, 6.0, d) * x + rng.uniform(0.0, 6.0, d)).sum(axis=1)
    if kind == 2:
        wave = 2.0 * np.sign(np.sin(rng.uniform(10.0, 60.0) * x[:, 0]))
    if kind == 3:
        levels = np.unique(X[:, -1], return_inverse=True)[1]
        wave = wave + 2.0 * rng.normal(size=t)[levels]
    return 1.0 / (1.0 + np.exp(-1.5 * wave))


def outcomes(rng: np.random.Generator, kind: str, truth: Any) -> dict[str, Any]:
    """Return outcomes, weights and contexts of a kind."""
    t = len(truth)
    if kind == "counts":
        held = rng.integers(1, 9, t)
        return {"successes": rng.binomial(held, truth), "trials": held}
    columns: dict[str, Any] = {"y": (rng.random(t) < truth).astype(int)}
    if kind == "three classes":
        columns["y"] += rng.random(t) < 0.4
    elif "affine" in kind or kind == "pooled":
        columns["context"] = context(rng, kind.removeprefix("weighted "), t)
    columns["y"][:2] = 0, 1  # one `fit` needs two classes, however few trials there are
    if "whole" in kind:
        columns["sample_weight"] = rng.integers(1, 9, t).astype(float)
    elif "fractional" in kind or "weighted" in kind:
        columns["sample_weight"] = rng.exponential(size=t)
        if t < 30 and rng.random() < 0.1:
            # Fractions are then counted in coarser units. Beside 10¹² trials at one place the
            # others are rounding, and fits take seconds.
            columns["sample_weight"][0] *= 1e9
    return columns


# Plans -------------------------------------------------------------------------------------


def planned(rng: np.random.Generator, some: Trials) -> SmoothBetaClassifier:
    """Return a model that has learned the trials in some other order, in parts."""
    rows = rng.permutation(len(some.columns["X"]))
    models = [handed_on(rng, taught(rng, some, part)) for part in parted(rng, rows)]
    while len(models) > 1:
        other = models.pop(int(rng.integers(len(models))))
        models[int(rng.integers(len(models)))].merge(other)
    return handed_on(rng, models[0])


def taught(rng: np.random.Generator, some: Trials, rows: Any) -> SmoothBetaClassifier:
    model = SmoothBetaClassifier(n_jobs=[None, 1, 2, -1][rng.integers(4)])
    # What comes first is learned from at once; with a few rows that costs little.
    few = int(rng.integers(0, min(len(rows), 5)))
    for batch in (*([rows[:few]] if few else []), *parted(rng, rows[few:])):
        fitted(model, some, batch, more=True)
        if rng.random() < 0.1:
            model.posterior(some.queries[:1]).mean()
    return model


def fitted(model: Any, some: Trials, rows: Any, *, more: bool = False) -> Any:
    """Teach a model some of the trials, beside what it knows or anew."""
    columns = some.some(rows)
    if not more:
        return model.fit_counts(**columns) if some.is_counts else model.fit(**columns)
    teach = model.partial_fit_counts if some.is_counts else model.partial_fit
    return teach(**columns, **some.classes)


def handed_on(rng: np.random.Generator, model: SmoothBetaClassifier) -> SmoothBetaClassifier:
    """Return the model, or what came of it by a file, a copy or a pickle, settled or not."""
    how = rng.integers(8)
    if how == 0:
        model.settle()
    if how == 1:
        return copy.deepcopy(model)
    if how == 2:
        return pickle.loads(pickle.dumps(model))
    return kept(model) if how in (0, 3) else model


def kept(model: SmoothBetaClassifier) -> SmoothBetaClassifier:
    """Return the model, saved and loaded."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "model.beta")
        model.save(path)
        return load(path)


def on_dask(rng: np.random.Generator, some: Trials) -> SmoothBetaClassifier:
    """Return the local model of one that was taught chunks, by threads, merged, or in two calls."""
    import dask

    rows = rng.permutation(len(some.columns["X"]))
    first, *rest = parted(rng, rows)
    with dask.config.set(scheduler="threads", num_workers=2):
        model = spread(rng, some, first)
        for part in rest:
            if rng.random() < 0.5:
                model.merge(spread(rng, some, part))
            else:
                spread(rng, some, part, model)
        return model.compute()


def spread(rng: np.random.Generator, some: Trials, rows: Any, model: Any = None) -> Any:
    """Return a model that was taught rows as dask arrays of some chunks."""
    import betafield.dask

    model = betafield.dask.SmoothBetaClassifier() if model is None else model
    chunks = tuple(len(part) for part in parted(rng, rows))
    columns = {name: chunked(each, chunks) for name, each in some.some(rows).items()}
    teach = model.partial_fit_counts if some.is_counts else model.partial_fit
    return teach(**columns, **some.classes)


def chunked(column: Any, chunks: tuple[int, ...]) -> Any:
    import dask.array as da

    return da.from_array(column, chunks=(chunks, *column.shape[1:]))
