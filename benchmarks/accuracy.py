"""Accuracy of SmoothBetaClassifier() against peers: ``python benchmarks/accuracy.py``.

Every function of functions.py is learned from t trials, five seeds each (three at t = 10^5); its
error is the mean square of (posterior mean − truth) over 2,000 points of the space, averaged over
seeds.
One line per function and t comes first, then the mean over functions of our error divided by the
peer's.
The results are also written to out/accuracy.json, the lines to out/accuracy-functions.json.

Peers:

- GP: GaussianProcessClassifier, an ARD RBF kernel times a constant, both optimised; t ≤ 1,000.
  From length scales of 0.3 it finds what four restarts more find, and better than from 1.
- pyGAM: LogisticGAM, a spline per feature and a tensor product of all, with the best smoothing of
  three by UBRE on at most the first 10,000 trials; t ≥ 10,000.
- radius, kNN: RadiusNeighborsClassifier and KNeighborsClassifier, the parameter by 5-fold
  cross-validation (squared error) on up to 20,000 held-out trials, fewer for kNN with many
  neighbours, of which at most 8,192/d are tried.
- boosting: HistGradientBoostingClassifier, stopped early, in CalibratedClassifierCV, isotonic;
  t ≥ 10,000.

Peers' errors do not change with betafield: they are kept in out/accuracy-peers.json by function,
t, seed, peer, its version and recipe, and taken from there. Times are never kept: for the time
row the Gaussian process runs anew, on two functions, both with one thread: with two, on a machine
that does other things as well, its linear algebra waits far more than it computes.

Measurements (--only): error, time, auto (all candidates against one fixed width at t = 10^6).
Real data: real.py.

Besides --quick and --only NAME:
--peers-only           fill the cache of peers, measure nothing of ours
--cached-only          compute no peer: functions whose peers are not all known are left out
--functions A,B --t T  only these functions; only these t (comma-separated)
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path
from time import perf_counter

import field
import numpy as np
from functions import FUNCTIONS, Floats, Ints, space
from joblib import Parallel, delayed
from kept import Kept
from peers import Loss, boosting, gp, knn, pygam, radius, squared
from report import Row, Target, race, refuse_unless, run
from threadpoolctl import threadpool_limits

from betafield import SmoothBetaClassifier

OUT = Path("out")
RESULTS = OUT / "accuracy.json"
LINES = OUT / "accuracy-functions.json"
CACHE = OUT / "accuracy-peers.json"
TITLE = "SmoothBetaClassifier() against its peers: mean squared error of the posterior mean"
LEVEL = 0.95
BY_NAME = {f.name: f for f in FUNCTIONS}


@dataclass(frozen=True)
class Sizes:
    """How much of everything one run measures."""

    functions: tuple[str, ...]
    seeds: dict[int, int]  # t: how many
    timed: tuple[str, ...]
    timed_at: int
    repeats: int
    auto: int
    auto_points: int
    cached_only: bool = False


FULL = Sizes(
    functions=tuple(BY_NAME),
    seeds={100: 5, 1_000: 5, 10_000: 5, 100_000: 3},
    timed=("smooth-1", "bump-2"),
    timed_at=1_000,
    repeats=3,
    auto=10**6,
    auto_points=10**5,
)
QUICK = replace(
    FULL,
    functions=("kinked-1", "bump-2"),
    seeds={100: 2, 1_000: 2},
    timed=("kinked-1",),
    timed_at=300,
    repeats=1,
    auto=10**5,
    auto_points=10**4,
)


@dataclass(frozen=True)
class Peer:
    """How a peer learns and predicts, and from how many trials it is asked to."""

    name: str
    predict: Callable[[Floats, Ints, Floats, Loss], Floats]
    package: str
    fewest: int
    most: int
    recipe: int = 1  # to be raised when its settings change

    @property
    def version(self) -> str:
        return f"{self.package} {version(self.package)}, recipe {self.recipe}"


PEERS = (
    Peer("GP", gp, "scikit-learn", 1, 1_000),
    Peer("pyGAM", pygam, "pygam", 5_000, 10**6),
    Peer("radius", radius, "scikit-learn", 1, 10**6),
    Peer("kNN", knn, "scikit-learn", 1, 10**6),
    Peer("boosting", boosting, "scikit-learn", 5_000, 10**6),
)
NEAR_AND_TREES = ("radius", "kNN", "boosting")
BY_PEER = {p.name: p for p in PEERS}
OURS = "ours"


def installed(peer: Peer) -> bool:
    try:
        return bool(version(peer.package))
    except PackageNotFoundError:
        return False


def peers_at(t: int) -> list[Peer]:
    return [p for p in PEERS if p.fewest <= t <= p.most and installed(p)]


# Work: a unit is one learner on one set of trials ------------------------------------------


@dataclass(frozen=True)
class Unit:
    """One learner (None: ours) on one set of trials."""

    case: str
    t: int
    seed: int
    peer: Peer | None
    work: Callable[[], dict[str, float]]
    fingerprint: str

    @property
    def learner(self) -> str:
        return OURS if self.peer is None else self.peer.name

    @property
    def key(self) -> str:
        assert self.peer is not None
        named = f"{self.case} {self.fingerprint} | t={self.t} | seed {self.seed}"
        return f"{named} | {self.peer.name} | {self.peer.version}"


def worked(units: Iterable[Unit], cached_only: bool) -> Iterator[tuple[Unit, dict[str, float]]]:
    """Every unit with what it scored, in order; two at a time, known ones at once."""
    kept = Kept(CACHE)
    units = [u for u in units if u.peer is None or not cached_only or u.key in kept.known]
    missing = [u for u in units if u.peer is None or u.key not in kept.known]
    results = iter(Parallel(n_jobs=2, return_as="generator")(delayed(u.work)() for u in missing))
    pending = {id(u) for u in missing}
    for unit in units:
        if id(unit) not in pending:
            yield unit, kept.known[unit.key]
            continue
        scored = next(results)
        if unit.peer is not None:
            kept.keep(unit.key, scored)
        yield unit, scored


# Errors and coverage -----------------------------------------------------------------------


def simulate(peer: str | None, function: str, t: int, seed: int) -> dict[str, float]:
    """Score a learner on one set of trials; all by names, which another process understands."""
    pi = BY_NAME[function]
    Q = space(pi.d)
    truth, (X, y) = pi(Q), pi.trials(t, seed)
    if peer is not None:
        return {"mse": mean_square(BY_PEER[peer].predict(X, y, Q, squared) - truth)}
    posterior = SmoothBetaClassifier().fit(X, y).posterior(Q)
    low, high = posterior.interval(LEVEL)
    covered = float(np.mean((low <= truth) & (truth <= high)))
    return {"mse": mean_square(posterior.mean() - truth), "coverage": covered}


def mean_square(errors: Floats) -> float:
    return float(np.mean(errors**2))


def simulations(sizes: Sizes, ours: bool) -> Iterator[Unit]:
    for t, seeds in sizes.seeds.items():
        for name in sizes.functions:
            mark = BY_NAME[name].fingerprint
            for peer in ([None] if ours else []) + peers_at(t):
                for seed in range(seeds):
                    work = partial(simulate, peer and peer.name, name, t, seed)
                    yield Unit(name, t, seed, peer, work, mark)


@dataclass(frozen=True)
class Line:
    """One function at one t: errors averaged over seeds, ours and the peers', and coverage."""

    function: str
    d: int
    t: int
    mse: float
    coverage: float
    peers: dict[str, float]

    def ratio(self, *names: str) -> float | None:
        """Our error divided by that of the best of these peers; None unless all were run."""
        known = [self.peers[name] for name in names if name in self.peers]
        return self.mse / min(known) if len(known) == len(names) else None

    def cells(self) -> tuple[str, ...]:
        start = (self.function, str(self.d), f"{self.t:,}", f"{self.mse:.2e}")
        against = (
            f"{self.peers[name]:.2e} {self.ratio(name):6.2f}" if name in self.peers else ""
            for name in BY_PEER
        )
        return (*start, *against, f"{self.coverage:.3f}")


LINE_TITLES = ("function", "d", "t", "ours", *(f"{name:8}  ratio" for name in BY_PEER), "coverage")
LINE_WIDTHS = (14, 1, 7, 8, *(15 for _ in BY_PEER), 8)


def print_line(cells: Iterable[str]) -> None:
    padded = (f"{cell:{width}}" for cell, width in zip(cells, LINE_WIDTHS, strict=True))
    print("  ".join(padded).rstrip(), flush=True)


def lines(sizes: Sizes) -> Iterator[Line]:
    """All functions at all t; each as soon as its last learner is through."""
    done = worked(simulations(sizes, ours=True), sizes.cached_only)
    for (name, t), group in groupby(done, key=lambda found: (found[0].case, found[0].t)):
        scores: dict[str, list[dict[str, float]]] = defaultdict(list)
        for unit, scored in group:
            scores[unit.learner].append(scored)
        mse = {
            learner: float(np.mean([s["mse"] for s in found]))
            for learner, found in scores.items()
            if len(found) == sizes.seeds[t]
        }
        coverage = float(np.mean([s["coverage"] for s in scores[OURS]]))
        yield Line(name, BY_NAME[name].d, t, mse.pop(OURS), coverage, mse)


def error(sizes: Sizes) -> Iterator[Row]:
    print(f"\nMean squared errors, averaged over seeds ({sizes.seeds}), and ours to each")
    print_line(LINE_TITLES)
    found = []
    for line in lines(sizes):
        print_line(line.cells())
        found.append(line)
    OUT.mkdir(exist_ok=True)
    LINES.write_text(json.dumps([asdict(line) for line in found], indent=1) + "\n")
    print()
    yield from error_rows(found)
    yield from coverage_rows(found)


def error_rows(found: list[Line]) -> Iterator[Row]:
    yield from ratio_rows(found, "GP", ("GP",), 100, None, Target(1.1, 0.95))
    aims = {1: Target(1.1, 0.85), 2: Target(1.5, 1.0), 3: Target(1.5, 1.0)}
    for d, target in aims.items():
        yield from ratio_rows(found, "GP", ("GP",), 1_000, d, target)
    best = "best neighbour or boosting"
    for t in (10_000, 100_000):
        yield from ratio_rows(found, best, NEAR_AND_TREES, t, None, Target(0.6, 0.4))
        yield from ratio_rows(found, "pyGAM", ("pyGAM",), t, None, Target(1.3, 0.9))


def ratio_rows(
    found: list[Line], against: str, peers: tuple[str, ...], t: int, d: int | None, target: Target
) -> Iterator[Row]:
    """At most one row: the mean over functions of our error divided by that of the best peer."""
    here = [line for line in found if line.t == t and d in (None, line.d)]
    ratios = [(r, line.function) for line in here if (r := line.ratio(*peers)) is not None]
    if not ratios:
        return
    values = [r for r, _ in ratios]
    worst, where = max(ratios)
    yield Row(
        f"error, against {against}, t={t:,}" + ("" if d is None else f", {d}-D"),
        float(np.mean(values)),
        "×",
        target,
        {
            "geometric mean": float(np.exp(np.mean(np.log(values)))),
            "functions": len(values),
            f"worst: {where}": worst,
        },
        numbers_unit="",
    )


@dataclass(frozen=True)
class Within(Target):
    """Neither too little nor too much: both goals are ranges, by their lower ends here."""

    up_to: tuple[float, float] = (1.0, 1.0)

    def _reached(self, value: float, goal: float) -> bool:
        upper = dict(zip((self.at_least, self.aim), self.up_to, strict=True))[goal]
        return goal <= value <= upper


class CoverageRow(Row):
    """Shows ranges."""

    def cells(self) -> tuple[str, ...]:
        measure, value, _, _, verdict, absolute = super().cells()
        goals = zip((self.target.at_least, self.target.aim), self.target.up_to, strict=True)
        return (measure, value, *(f"{a:g}–{b:g}" for a, b in goals), verdict, absolute)


def coverage_rows(found: list[Line]) -> Iterator[Row]:
    target = Within(0.92, 0.94, True, (0.98, 0.97))
    for d in (1, 2, 3):
        for t in sorted({line.t for line in found if line.t >= 300}):
            here = [(line.coverage, line.function) for line in found if (line.d, line.t) == (d, t)]
            if here:
                yield CoverageRow(
                    f"coverage of 95 % intervals, t={t:,}, {d}-D",
                    float(np.mean([c for c, _ in here])),
                    "",
                    target,
                    {
                        f"lowest: {min(here)[1]}": min(here)[0],
                        f"highest: {max(here)[1]}": max(here)[0],
                    },
                    numbers_unit="",
                )


# Times -------------------------------------------------------------------------------------


def time(sizes: Sizes) -> Iterator[Row]:
    t, taken = sizes.timed_at, np.zeros(2)
    for name in sizes.timed:
        X, y = BY_NAME[name].trials(t, 0)
        Q = space(X.shape[1])
        learn_and_ask(X, y, Q)  # compiles: not what is measured
        peer = partial(gp, X, y, Q, squared)
        with threadpool_limits(1):
            taken += race(sizes.repeats, partial(learn_and_ask, X, y, Q), peer)
    numbers = dict(zip(("ours", "GP"), (taken / len(sizes.timed)).tolist(), strict=True))
    yield Row(
        f"time of fit and {len(Q):,} posteriors, against GP, t={t:,}",
        numbers["ours"] / numbers["GP"],
        "×",
        Target(1 / 20, 1 / 200),
        numbers,
    )


def learn_and_ask(X: Floats, y: Ints, Q: Floats) -> Floats:
    return SmoothBetaClassifier().fit(X, y).posterior(Q).mean()


def auto(sizes: Sizes) -> Iterator[Row]:
    X, y = field.trials(sizes.auto, 2)
    Q = field.points(sizes.auto_points, 2)
    learned = SmoothBetaClassifier(n_jobs=2).fit(X, y)
    one = SmoothBetaClassifier(learned.bandwidth_, n_jobs=2).fit(X, y)
    for what, actions, target in (
        ("fit", [partial(m.fit, X, y) for m in (learned, one)], Target(5.0, 2.0)),
        ("posteriors", [partial(means, m, Q) for m in (learned, one)], Target(8.0, 3.0)),
    ):
        taken = race(sizes.repeats, *actions)
        yield Row(
            f'"auto" against a fixed width, {what}, t={sizes.auto:,}, 2-D',
            taken[0] / taken[1],
            "×",
            target,
            dict(zip(("auto", "fixed"), taken, strict=True)),
        )


def means(model: SmoothBetaClassifier, Q: Floats) -> Floats:
    return model.posterior(Q).mean()


# The run -----------------------------------------------------------------------------------


MEASUREMENTS = {"error": error, "time": time, "auto": auto}


def fill(sizes: Sizes) -> None:
    """Let the peers score all there is, so that later runs need not wait for them."""
    units = list(simulations(sizes, ours=False))
    started = perf_counter()
    for i, (unit, scored) in enumerate(worked(units, cached_only=False), start=1):
        what = f"{unit.case} t={unit.t:,} seed {unit.seed} {unit.learner}"
        value = next(iter(scored.values()))
        print(
            f"{i}/{len(units)} {perf_counter() - started:6.0f} s  {what}  {value:.3g}", flush=True
        )


def chosen(sizes: Sizes, options: argparse.Namespace) -> Sizes:
    functions = options.functions or sizes.functions
    unknown = sorted(set(functions) - set(BY_NAME))
    refuse_unless(not unknown, f"--functions: found {unknown}; there are {', '.join(BY_NAME)}")
    seeds = {t: FULL.seeds.get(t, 5) for t in options.t} if options.t else sizes.seeds
    return replace(
        sizes,
        functions=tuple(functions),
        seeds=seeds,
        cached_only=options.cached_only,
    )


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--peers-only", action="store_true")
    parser.add_argument("--cached-only", action="store_true")
    parser.add_argument("--functions", type=lambda names: names.split(","))
    parser.add_argument("--t", type=lambda ts: [int(float(t)) for t in ts.split(",")])
    options, others = parser.parse_known_args()
    full, quick = (chosen(sizes, options) for sizes in (FULL, QUICK))
    for peer in PEERS:
        if not installed(peer):
            print(f"{peer.name}: {peer.package} is not installed; its rows are left out")
    if options.peers_only:
        fill(quick if "--quick" in others else full)
        return
    sys.argv[1:] = others
    run(TITLE, __doc__, MEASUREMENTS, full, quick, RESULTS)


if __name__ == "__main__":
    main()
