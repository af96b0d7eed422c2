"""Speed and memory against peers, in the same run: ``python benchmarks/speed.py``.

Peers take turns with betafield and the best of several repeats counts, for machines are noisy.
What is counted is checked against the peers first: a wrong engine gets no benchmark. The results
are also written to out/speed.json.

- posterior: mean of the posterior at uniform points in random order, per point, against
  RadiusNeighborsClassifier.predict_proba (on the first of these points) and against
  cKDTree.query_ball_point(return_length=True), which counts but sums nothing. Same radius.
- fit: against building cKDTree with its defaults.
- growth: exponent b of time per point ~ t^b, by least squares over three sizes. In 1-D also with
  ten times the points: few points in much memory each wait for their own cache misses.
- memory: the highest resident memory during fit, less what was resident just before (X, y and
  the compiled code among it), against the bytes of X and y; in a process of its own.
- stream: all trials through partial_fit in batches of 1,000, then one posterior, against one fit,
  then one posterior. Both models must then agree to the bit.
- one-more: medians of partial_fit with one row, and of the posterior at one point after it.
- import: to reach the estimator when scikit-learn is imported; in processes of their own.
- first: from the first import to the first posterior, with numba's cache empty, then full.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
from field import Floats, Ints, points, theory_model, theory_width, trials, window_counts
from report import Row, Target, fresh, race, refuse_unless, run, seconds
from scipy.spatial import cKDTree
from sklearn.neighbors import RadiusNeighborsClassifier

from betafield import SmoothBetaClassifier

RESULTS = Path("out") / "speed.json"
DIMENSIONS = (1, 2, 3)
BATCH = 1000


@dataclass(frozen=True)
class Sizes:
    """How much of everything one run measures."""

    trials: int
    points: int
    sklearn_points: int
    growth: tuple[int, ...]
    memory: int
    stream: int
    one_more: int
    first: tuple[tuple[int, str], ...]
    repeats: int


FULL = Sizes(
    trials=10**6,
    points=10**5,
    sklearn_points=2000,
    growth=(10**5, 10**6, 10**7),
    memory=10**7,
    stream=10**6,
    one_more=10**5,
    first=((1, "theory"), (2, "theory"), (2, "auto")),
    repeats=5,
)
QUICK = Sizes(
    trials=10**5,
    points=10**4,
    sklearn_points=200,
    growth=(10**4, 10**5),
    memory=10**6,
    stream=10**5,
    one_more=10**4,
    first=((2, "theory"),),
    repeats=2,
)


def posterior(sizes: Sizes) -> Iterator[Row]:
    at_least = {1: (500, 50), 2: (20, 3), 3: (10, 3)}
    aim = {1: (5000, 100), 2: (60, 8), 3: (30, 6)}
    for d in DIMENSIONS:
        ours, *peers = posterior_seconds(sizes, d)
        for i, name in enumerate(("RadiusNeighborsClassifier", "cKDTree")):
            yield Row(
                f"posterior, against {name}, {d}-D",
                peers[i] / ours,
                "×",
                Target(at_least[d][i], aim[d][i], more_is_better=True),
                {"a point": ours, name: peers[i]},
            )


def posterior_seconds(sizes: Sizes, d: int) -> tuple[float, float, float]:
    """Seconds per point of betafield, RadiusNeighborsClassifier and cKDTree, at one radius."""
    X, y = trials(sizes.trials, d)
    Q = points(sizes.points, d)
    some = Q[: sizes.sklearn_points]
    model = theory_model(d).fit(X, y)
    radius = model.bandwidth_
    neighbours = RadiusNeighborsClassifier(
        radius=radius, algorithm="kd_tree", n_jobs=2, outlier_label="most_frequent"
    ).fit(X, y)
    tree = cKDTree(X)
    check_width(model, sizes.trials, d)
    check_counts(model, some, *counts_by_ckdtree(tree, X, y, some, radius))
    check_shares(model, some[:100], neighbours.predict_proba(some[:100])[:, 1])
    ours, sklearn, scipy = race(
        sizes.repeats,
        partial(posterior_mean, model, Q),
        partial(neighbours.predict_proba, some),
        partial(tree.query_ball_point, Q, radius, return_length=True, workers=2),
    )
    return ours / len(Q), sklearn / len(some), scipy / len(Q)


def posterior_mean(model: SmoothBetaClassifier, Q: Floats) -> Floats:
    """What is timed: the mean is asked for, lest a posterior put its work off."""
    return model.posterior(Q).mean()


def fit(sizes: Sizes) -> Iterator[Row]:
    for d in DIMENSIONS:
        X, y = trials(sizes.trials, d)
        check_by_distances(theory_model(d).fit(X, y), X, y)
        ours, scipy = race(sizes.repeats, partial(theory_model(d).fit, X, y), partial(cKDTree, X))
        yield Row(
            f"fit, against building cKDTree, {d}-D",
            ours / scipy,
            "×",
            Target(1.0, 0.5),
            {"fit": ours, "cKDTree": scipy},
        )


def growth(sizes: Sizes) -> Iterator[Row]:
    targets = {1: Target(0.1, 0.0), 2: Target(0.35, 0.25), 3: Target(0.35, 0.27)}
    for d in DIMENSIONS:
        models = [checked_model(t, d) for t in sizes.growth]
        for n in (sizes.points, 10 * sizes.points) if d == 1 else (sizes.points,):
            Q = points(n, d)
            taken = race(sizes.repeats, *[partial(posterior_mean, m, Q) for m in models])
            exponent, _ = np.polyfit(np.log(sizes.growth), np.log(taken), 1)
            yield Row(
                f"growth of time a point with t, exponent, {d}-D, {n:,} points",
                float(exponent),
                "",
                targets[d],
                {f"t={t:,}": s / n for t, s in zip(sizes.growth, taken, strict=True)},
            )


def checked_model(t: int, d: int) -> SmoothBetaClassifier:
    """A fitted model whose counts are known to be right."""
    X, y = trials(t, d)
    model = theory_model(d).fit(X, y)
    check_by_distances(model, X, y)
    return model


def memory(sizes: Sizes) -> Iterator[Row]:
    found = fresh("memory_of_fit", sizes.memory, 2)
    refuse_unless(found["trials"] == sizes.memory, "the measured fit did not learn every trial")
    yield Row(
        f"memory of fit, against X and y, t={sizes.memory:,}, 2-D",
        found["extra"] / found["data"],
        "×",
        Target(4.0, 2.5),
        {"peak": found["extra"], "kept": found["kept"], "X and y": found["data"]},
        numbers_unit="B",
    )


def stream(sizes: Sizes) -> Iterator[Row]:
    for d in (1, 2):
        X, y = trials(sizes.stream, d)
        at_once = fit_at_once(X, y)
        check_by_distances(at_once, X, y)
        check_same(at_once, fit_in_batches(X, y), points(1000, d))
        streamed, fitted = race(
            min(sizes.repeats, 3), partial(fit_in_batches, X, y), partial(fit_at_once, X, y)
        )
        yield Row(
            f"stream in batches of {BATCH:,}, against one fit, {d}-D",
            streamed / fitted,
            "×",
            Target(4.0, 2.0),
            {"partial_fit": streamed, "fit": fitted},
        )


def fit_at_once(X: Floats, y: Ints) -> SmoothBetaClassifier:
    """One fit; the posterior at the end is there to bring out work put off until asked."""
    model = theory_model(X.shape[1]).fit(X, y)
    posterior_mean(model, X[:1])
    return model


def fit_in_batches(X: Floats, y: Ints) -> SmoothBetaClassifier:
    """The same, through partial_fit."""
    model = theory_model(X.shape[1])
    for start in range(0, len(X), BATCH):
        batch = slice(start, start + BATCH)
        model.partial_fit(X[batch], y[batch], classes=[0, 1])
    posterior_mean(model, X[:1])
    return model


def one_more(sizes: Sizes) -> Iterator[Row]:
    times = 60 * sizes.repeats
    for d in DIMENSIONS:
        X, y = trials(sizes.one_more + times, d)
        Q = points(times, d)
        fit_in_batches(X[: 2 * BATCH], y[: 2 * BATCH])  # compiles: not what is measured
        model = theory_model(d).fit(X[:-times], y[:-times])
        learn, ask = np.empty(times), np.empty(times)
        for i, row in enumerate(range(sizes.one_more, len(X))):
            learn[i] = seconds(model.partial_fit, X[row : row + 1], y[row : row + 1])
            ask[i] = seconds(posterior_mean, model, Q[i : i + 1])
        check_by_distances(model, X, y)
        for what, taken in (("one more trial", learn), ("posterior after one more trial", ask)):
            numbers = {"median": float(np.median(taken)), "worst": float(taken.max())}
            name = f"{what}, t={sizes.one_more:,}, {d}-D"
            yield Row(name, numbers["median"] * 1e3, " ms", Target(1.0, 0.2), numbers)


def import_(sizes: Sizes) -> Iterator[Row]:
    found = [fresh("import_time")["seconds"] for _ in range(1 + sizes.repeats)][1:]
    yield Row(
        "import after scikit-learn", median(found), " s", Target(0.1), {"median": median(found)}
    )


def first(sizes: Sizes) -> Iterator[Row]:
    for d, bandwidth in sizes.first:
        with TemporaryDirectory() as cache:
            empty, full = (
                fresh("first_posterior", d, bandwidth, NUMBA_CACHE_DIR=cache)["seconds"]
                for _ in range(2)
            )
            refuse_unless(any(Path(cache).iterdir()), "numba did not use the empty cache")
        yield Row(
            f'first posterior ever, bandwidth="{bandwidth}", {d}-D',
            empty,
            " s",
            Target(15.0, 6.0),
            {"nothing cached": empty, "cached": full},
        )


def check_width(model: SmoothBetaClassifier, t: int, d: int) -> None:
    right = bool(np.isclose(model.bandwidth_, theory_width(t, d), rtol=1e-12))
    refuse_unless(right, f"bandwidth {model.bandwidth_} is not t^(-1/(d+2)) for t={t}, d={d}")


def check_counts(model: SmoothBetaClassifier, Q: Floats, n: Ints, S: Ints) -> None:
    found_n, found_S = window_counts(model, Q)
    same = np.array_equal(found_n, n) and np.array_equal(found_S, S)
    refuse_unless(same, f"n or S differs from the peer's at some of {len(Q)} points")


def check_shares(model: SmoothBetaClassifier, Q: Floats, shares: Floats) -> None:
    """Compare the windows' shares of successes with the peer's."""
    n, S = window_counts(model, Q)
    refuse_unless(np.allclose(S, shares * n, atol=1e-6), "shares of successes differ")


def check_same(one: SmoothBetaClassifier, other: SmoothBetaClassifier, Q: Floats) -> None:
    a, b = one.posterior(Q), other.posterior(Q)
    same = np.array_equal(a.mean(), b.mean()) and np.array_equal(a.var(), b.var())
    refuse_unless(same, "the streamed model differs from the one fitted at once")


def counts_by_ckdtree(
    tree: cKDTree, X: Floats, y: Ints, Q: Floats, radius: float
) -> tuple[Ints, Ints]:
    """Trials and successes within the radius of each point."""
    n = tree.query_ball_point(Q, radius, return_length=True)
    return n, cKDTree(X[y == 1]).query_ball_point(Q, radius, return_length=True)


def check_by_distances(model: SmoothBetaClassifier, X: Floats, y: Ints) -> None:
    """Compare the counts at a few points with those that plain distances give."""
    check_width(model, *X.shape)
    Q = points(3, X.shape[1])
    near = [np.sqrt(((X - q) ** 2).sum(axis=1)) <= model.bandwidth_ for q in Q]
    n, S = np.array([(window.sum(), y[window].sum()) for window in near]).T
    check_counts(model, Q, n, S)


MEASUREMENTS: dict[str, Callable[[Sizes], Iterator[Row]]] = {
    "posterior": posterior,
    "fit": fit,
    "growth": growth,
    "memory": memory,
    "stream": stream,
    "one-more": one_more,
    "import": import_,
    "first": first,
}


TITLE = (
    "betafield against its peers in the same run: uniform points, Δ by theory, float64, n_jobs=2"
)

if __name__ == "__main__":
    run(TITLE, __doc__, MEASUREMENTS, FULL, QUICK, RESULTS)
