"""The smooth process beside scikit-learn's Gaussian process classifier: error, intervals, time.

    python benchmarks/process.py error --trials 100 --seeds 3
    python benchmarks/process.py error --trials 1000 --seeds 1 --kind fresh
    python benchmarks/process.py time
    python benchmarks/process.py leaving
    python benchmarks/process.py heaviest --trials 10000 100000

Set OPENBLAS_NUM_THREADS=1: seconds are of the processor, and more threads only wait.

Judged on the functions of `functions.py`, all of which were written down before any of them was
looked at. What the peer scored is kept in out/process-peers.json. Standard errors are over seeds.
"""

import argparse
import itertools
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
from functions import ALL, FUNCTIONS, KINDS, LATER, NEW, space
from kept import Kept
from report import geometric
from scipy.stats import ttest_1samp
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

from betafield import SmoothBetaClassifier
from betafield.posteriors import LatentNormal
from betafield.process import averages, law
from betafield.process.fit import fit, fit_links, weights
from betafield.process.ladder import WIDTHS
from betafield.process.residuals import corrected, parts, residuals
from betafield.process.rows import Rows, by_place, gather
from betafield.process.scores import Leaving, contest, entries
from betafield.process.trees import Trees

PEERS = Path("out") / "process-peers.json"
PEER = f"GaussianProcessClassifier {version('scikit-learn')}"


# Error and intervals -----------------------------------------------------------------------


def ours(X, y, Q):
    """Return mean, ends of the 95 % interval, and processor seconds of the fit."""
    started = time.process_time()
    model = SmoothBetaClassifier().fit(X, y)
    seconds = time.process_time() - started
    post = model.posterior(Q)
    return post.mean(), *post.interval(0.95), seconds


def theirs(X, y, Q):
    """Return the mean of scikit-learn's, length scales per feature and defaults otherwise."""
    model = GaussianProcessClassifier(1.0 * RBF(np.ones(X.shape[1])))
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return model.predict_proba(Q)[:, 1], time.process_time() - started


def peer_scores(function, t, seed):
    X, y = function.trials(t, seed)
    Q = space(function.d)
    mean, seconds = theirs(X, y, Q)
    return {"mse": float(np.mean((mean - function(Q)) ** 2)), "seconds": seconds}


def compare(function, t, seed, kept):
    """Return squared errors of both, coverage of ours, and seconds of both."""
    X, y = function.trials(t, seed)
    Q = space(function.d)
    truth = function(Q)
    mean, low, high, seconds = ours(X, y, Q)
    key = f"{function.name} {function.fingerprint} | t={t} | seed {seed} | {PEER}"
    peer = kept.scored(key, lambda: peer_scores(function, t, seed))
    covered = float(np.mean((low <= truth) & (truth <= high)))
    return float(np.mean((mean - truth) ** 2)), peer["mse"], covered, seconds, peer["seconds"]


def error(t, seeds, functions):
    """Print errors by function, and geometric means by number of features."""
    found, kept = {}, Kept(PEERS)
    for function in functions:
        found[function] = np.array([compare(function, t, seed, kept) for seed in range(seeds)])
        mine, peer, coverage, seconds, slow = found[function].mean(axis=0)
        ratio, err = geometric(found[function][:, 0] / found[function][:, 1])
        print(
            f"{function.name:16s} t {t:5d}  rmse {np.sqrt(mine):.4f}  peer {np.sqrt(peer):.4f}  "
            f"squared, ratio {ratio:.3f} ± {err:.3f}  coverage {coverage:.3f}  "
            f"fit {seconds:.3f} s, peer {slow:.1f} s",
            flush=True,
        )
    for d in sorted({f.d for f in found}):
        for name, of in (*KINDS.items(), ("all", ALL)):
            chosen = [r for f, r in found.items() if f.d == d and f in of]
            if chosen:
                summary(f"d {d}, t {t}, {name}", np.array(chosen))


def summary(title, results):
    """Print the geometric mean of ratios and the mean coverage of results (functions, seeds, 5)."""
    ratios, coverage = results[:, :, 0] / results[:, :, 1], results[:, :, 2]
    ratio, err = geometric(ratios)
    worst = max(geometric(each)[0] for each in ratios)
    spread = coverage.std(axis=1, ddof=1) if coverage.shape[1] > 1 else np.nan
    held = np.sqrt(np.mean(spread**2) / coverage.size)
    print(
        f"{title}: ratio {ratio:.3f} ± {err:.3f} (worst {worst:.2f}), "
        f"coverage {coverage.mean():.3f} ± {held:.3f}",
        flush=True,
    )


# One component or several -------------------------------------------------------------------


def heaviest(t, seeds, functions):
    """Print whether intervals that rest on one component are any worse than others.

    One component has 99 % of the weight, or none has.
    """
    found = []
    for function, seed in itertools.product(functions, range(seeds)):
        Q = space(function.d)
        model = SmoothBetaClassifier().fit(*function.trials(t, seed))
        low, high = model.posterior(Q).interval(0.95)
        truth = function(Q)
        covered = np.mean((low <= truth) & (truth <= high))
        found.append((model.weights_["weight"].max() > 0.99, covered))
    is_one, covered = np.array(found).T
    for name, which in (("one component", is_one == 1.0), ("several", is_one == 0.0)):
        held = covered[which]
        print(
            f"t {t}, {name}: {len(held)} fits, coverage {held.mean():.3f}, "
            f"below .9 in {np.sum(held < 0.9)}",
            flush=True,
        )


# Time --------------------------------------------------------------------------------------


def seconds_of(action):
    started = time.process_time()
    result = action()
    return time.process_time() - started, result


def timing(sizes):
    """Print processor seconds of fits and microseconds per answer, kernels compiled."""
    chosen = {1: "oscillating-1", 2: "wave-2", 3: "smooth-3"}
    for d, t in itertools.product((1, 2, 3), sizes):
        function = next(f for f in (*FUNCTIONS, *NEW) if f.name == chosen[d])
        X, y = function.trials(t, 0)
        one = np.ones(t, dtype=np.int64)
        law.laws(fit_links(gather(X[:50], one[:50], y[:50])), X[:2])
        gathering, rows = seconds_of(lambda X=X, y=y, one=one: gather(X, one, y))
        fitting, fits = seconds_of(lambda rows=rows: fit_links(rows))
        Q = np.random.default_rng(1).random((10_000, d))
        print(
            f"d {d}, t {t:8d}: gather {gathering:.3f} s, fit {fitting:.3f} s; "
            f"{answer_times(fits, Q)}; functions {[len(f.mode.b) for f in fits]}, "
            f"rows {len(rows.x)}",
            flush=True,
        )


def answer_times(fits, Q):
    """Return, as text, what a mean and a posterior with its interval take per point."""
    surfaces, w = [law.surface(f) for f in fits], weights(fits)

    def mean():
        for surface in surfaces:
            at = law.latent(surface, Q)
            averages.mean(surface.link, at.mean, np.sqrt(at.narrow))

    alone, _ = seconds_of(mean)
    whole, _ = seconds_of(
        lambda: LatentNormal(law.mixed(surfaces, w, [Q] * len(surfaces))).interval()
    )
    return f"mean {1e6 * alone / len(Q):.1f} µs, with interval {1e6 * whole / len(Q):.1f} µs"


# Leaving out -------------------------------------------------------------------------------


def left_out(t, each):
    """Print how far scores without refits are from those of real refits, in nats per trial.

    Of the process, and of windows of its residuals with the best score.
    """
    names = (
        *("steep-1", "plateau-1", "oscillating-1", "teeth-1", "bump-2", "wave-2", "quadrants-2"),
        *("shell-3", "smooth-3", "half-3"),
    )
    means = []
    for name in names:
        chosen = next(f for f in ALL if f.name == name)
        gaps = gaps_of(*chosen.trials(t, 7), each)
        means.append(gaps.mean(axis=0))
        for kind, gap in zip(("process", "windows"), gaps.T, strict=True):
            print(
                f"{name:13s} t {t} {kind}: |gap| {np.abs(gap).mean():.4f}, largest "
                f"{np.abs(gap).max():.3f}, mean {gap.mean():+.4f}, "
                f"p {ttest_1samp(gap, 0).pvalue:.2f}",
                flush=True,
            )
    for kind, mean in zip(("process", "windows"), np.transpose(means), strict=True):
        print(f"all, {kind}: mean {mean.mean():+.4f}, p {ttest_1samp(mean, 0).pvalue:.2f}")


def gaps_of(X, y, each):
    """Return scores less those of refits, of the process and of the best windows."""
    plain = np.tile([0.0, 1.0], (len(X), 1))
    rows = by_place(Rows(X, np.ones(len(X), dtype=np.int64), y, plain))
    fits = fit_links(rows)
    match = contest(fits, rows, (rows.x,) * len(fits))
    some = np.unique(np.linspace(0, len(X) - 1, each).astype(int))
    given = entries(rows, some)
    logs = Leaving.of(match, given).logs(np.ones(len(match.candidates), dtype=bool))
    best = 1 + int(np.argmax(logs[1:].sum(axis=1)))
    window = match.candidates[best]
    real = np.array([refitted(rows, fits, match.ways, window, i) for i in given.row])
    return logs[[0, best]].T - real


def refitted(rows, fits, ways, window, i):
    """Return log P of row i under processes fitted to the others, and windows of residuals."""
    others = rows.taken(np.delete(np.arange(len(rows.x)), i))
    again = tuple(_alike(f, others) for f in fits)
    surfaces, w, x = [law.surface(f) for f in again], weights(again), rows.x[i : i + 1]
    m = law.mean(surfaces, w, [x] * len(again))
    left = residuals(law.mean(surfaces, w, [others.x] * len(again)), others)
    trees = Trees(others.x, parts(left.score, left.information))
    up, down, W = trees.sums(x, ways[window.stretch], float(WIDTHS[window.width])).T
    both = np.array([m[0], corrected(m, up - down, W, window.tau)[0]])
    return np.log(both if rows.k[i] else 1.0 - both)


def _alike(f, rows):
    """Return a process of the same kind, fitted to other rows from its hyper-parameters."""
    _, link, prior = f.problem
    return fit(rows, link, f.theta, form=prior.form)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["error", "heaviest", "time", "leaving"])
    parser.add_argument("--trials", type=int, nargs="+", default=[100, 300])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--kind", choices=KINDS, help="only these functions")
    parser.add_argument("--features", type=int, help="only functions of this many")
    options = parser.parse_args()
    every = KINDS[options.kind] if options.kind else ALL
    chosen = [f for f in every if options.features in (None, f.d)]
    if options.what == "error":
        for t in options.trials:
            error(t, options.seeds, chosen)
    elif options.what == "heaviest":
        for t in options.trials:
            heaviest(t, options.seeds, (*ALL, *LATER))
    elif options.what == "time":
        timing((1_000, 10_000, 1_000_000))
    else:
        left_out(200, 200)


if __name__ == "__main__":
    main()
