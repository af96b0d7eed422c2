"""The smooth process beside scikit-learn's Gaussian process classifier: error, intervals, time.

    python benchmarks/process.py error --trials 100 --seeds 3
    python benchmarks/process.py error --trials 1000 --seeds 1 --new
    python benchmarks/process.py time
    python benchmarks/process.py leaving

Set OPENBLAS_NUM_THREADS=1: seconds are of the processor, and more threads only wait.

Judged on the functions of `functions.py` and on those below, all of which were written down before
any of them was looked at. The constants of the process (priors, starts, T) were tuned on neither.
"""

import argparse
import itertools
import time
import warnings

import numpy as np
from functions import FUNCTIONS, Function, space
from scipy.special import expit
from scipy.stats import ttest_1samp
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

from betafield.process import averages, law, mixtures
from betafield.process.fit import fit, fit_links, weights
from betafield.process.ladder import WIDTHS
from betafield.process.model import Sums, build, find
from betafield.process.residuals import corrected, parts, residuals
from betafield.process.rows import Rows, by_place, gather
from betafield.process.scores import by_trial, contest, entries
from betafield.process.trees import Trees


def _far(x, *centre):
    return np.sqrt(((x - np.array(centre)[:, None]) ** 2).sum(axis=0))


NEW = tuple(
    Function(name, int(name[-1]), of)
    for name, of in {
        "two-steps-1": lambda x: (
            0.15 + 0.35 * expit(18 * (x[0] - 0.25)) + 0.4 * expit(30 * (x[0] - 0.72))
        ),
        "decay-1": lambda x: 0.05 + 0.85 * np.exp(-3 * x[0]),
        "beat-1": lambda x: 0.5 + 0.25 * np.sin(9 * x[0]) + 0.15 * np.sin(23 * x[0] + 1),
        "plateau-1": lambda x: np.clip(2.2 * x[0] - 0.6, 0.05, 0.95),
        "saddle-2": lambda x: expit(6 * ((x[0] - 0.4) ** 2 - (x[1] - 0.6) ** 2) + 0.5 * x[0]),
        "wave-2": lambda x: 0.5 + 0.35 * np.sin(6 * x[0] + 3 * x[1] ** 2),
        "valley-2": lambda x: 0.1 + 0.8 * np.abs(x[0] - x[1]) ** 1.5,
        "two-bumps-2": lambda x: (
            0.12
            + 0.6 * np.exp(-0.5 * (_far(x, 0.25, 0.3) / 0.12) ** 2)
            + 0.5 * np.exp(-0.5 * (_far(x, 0.7, 0.7) / 0.2) ** 2)
        ),
        "additive-3": lambda x: expit(2 * np.sin(4 * x[0]) + 2 * (x[1] - 0.5) - 1.5 * x[2] ** 2),
        "shell-3": lambda x: (
            0.2 + 0.6 * np.exp(-0.5 * ((_far(x, 0.5, 0.5, 0.5) - 0.45) / 0.2) ** 2)
        ),
        "product-3": lambda x: 0.05 + 0.8 * x[0] * (1 - x[1]) + 0.1 * x[2],
    }.items()
)

# Jumps, sawteeth and levels: where a smooth process alone is not enough.
ROUGH = tuple(
    Function(name, int(name[-1]), of)
    for name, of in {
        "jump-1": lambda x: np.where(x[0] < 0.58, 0.3, 0.85) - 0.2 * x[0],
        "teeth-1": lambda x: 0.2 + 0.6 * ((3 * x[0] + 0.1) % 1),
        "stairs-1": lambda x: np.array([0.2, 0.55, 0.4, 0.9, 0.65])[(x[0] * 4.999).astype(int)],
        "quadrants-2": lambda x: np.where((x[0] < 0.45) ^ (x[1] < 0.6), 0.25, 0.75),
        "ring-2": lambda x: np.where(np.abs(_far(x, 0.5, 0.5) - 0.3) < 0.1, 0.75, 0.25),
        "edge-2": lambda x: expit(3 * x[0] - 2 + 2 * (x[1] > 0.35 + 0.3 * x[0])),
        "half-3": lambda x: np.where(x[0] + x[1] < 0.9, 0.2, 0.7) + 0.1 * x[2],
        "ball-3": lambda x: np.where(_far(x, 0.4, 0.5, 0.6) < 0.4, 0.8, 0.3),
    }.items()
)


# Error and intervals -----------------------------------------------------------------------


def ours(X, y, Q):
    """Return mean, ends of the 95 % interval, and processor seconds of the fit."""
    sums, bounds = Sums(X, np.ones(len(X), dtype=np.int64), y), np.tile([0.0, 1.0], (len(Q.T), 1))
    started = time.process_time()
    smooth = build(sums, bounds, find(sums, bounds))
    seconds = time.process_time() - started
    laws = smooth.laws(Q)
    return mixtures.mean(laws), *mixtures.interval(laws), seconds


def theirs(X, y, Q):
    """Return the mean of scikit-learn's, length scales per feature and defaults otherwise."""
    model = GaussianProcessClassifier(1.0 * RBF(np.ones(X.shape[1])))
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    return model.predict_proba(Q)[:, 1], time.process_time() - started


def compare(function, t, seed):
    """Return squared errors of both, coverage of ours, and seconds of both."""
    X, y = function.trials(t, seed)
    Q = space(function.d)
    truth = function(Q)
    mean, low, high, seconds = ours(X, y, Q)
    other, slow = theirs(X, y, Q)
    errors = [float(np.mean((m - truth) ** 2)) for m in (mean, other)]
    return *errors, float(np.mean((low <= truth) & (truth <= high))), seconds, slow


def error(t, seeds, functions):
    """Print errors by function, and geometric means by number of features."""
    found = {}
    for function in functions:
        results = np.array([compare(function, t, seed) for seed in range(seeds)])
        found[function] = results
        ratio = np.exp(np.log(results[:, 0] / results[:, 1]).mean())
        print(
            f"{function.name:16s} t {t:5d}  rmse {np.sqrt(results[:, 0].mean()):.4f}  "
            f"peer {np.sqrt(results[:, 1].mean()):.4f}  squared, ratio {ratio:.3f}  "
            f"coverage {results[:, 2].mean():.3f}  "
            f"fit {results[:, 3].mean():.3f} s, peer {results[:, 4].mean():.1f} s",
            flush=True,
        )
    for d in (1, 2, 3):
        for name, of in (("smooth", FUNCTIONS), ("new", NEW), ("rough", ROUGH)):
            chosen = [r for f, r in found.items() if f.d == d and f in of]
            if chosen:
                summary(f"d {d}, t {t}, {name}", chosen)
        summary(f"d {d}, t {t}, all", [r for f, r in found.items() if f.d == d])


def summary(title, results):
    each = np.concatenate(results)
    ratio = np.exp(np.log(each[:, 0] / each[:, 1]).mean())
    worst = max(np.exp(np.log(r[:, 0] / r[:, 1]).mean()) for r in results)
    print(f"{title}: ratio {ratio:.3f} (worst {worst:.2f}), coverage {each[:, 2].mean():.3f}")


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
    whole, _ = seconds_of(lambda: mixtures.interval(law.mixed(surfaces, w, [Q] * len(surfaces))))
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
        chosen = next(f for f in (*FUNCTIONS, *NEW, *ROUGH) if f.name == name)
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
    logs = by_trial(match, given)
    best = 1 + int(np.argmax(logs[1:].sum(axis=1)))
    window = match.candidates[best]
    real = np.array([refitted(rows, fits, match.ways, window, i) for i in given.row])
    return logs[[0, best]].T - real


def refitted(rows, fits, ways, window, i):
    """Return log P of row i under processes fitted to the others, and windows of residuals."""
    others = rows.taken(np.delete(np.arange(len(rows.x)), i))
    again = tuple(fit(others, f.problem.link, f.theta) for f in fits)
    surfaces, w, x = [law.surface(f) for f in again], weights(again), rows.x[i : i + 1]
    m = law.mean(surfaces, w, [x] * len(again))
    left = residuals(law.mean(surfaces, w, [others.x] * len(again)), others)
    trees = Trees(others.x, parts(left.score, left.information))
    up, down, W = trees.sums(x, ways[window.stretch], float(WIDTHS[window.width])).T
    both = np.array([m[0], corrected(m, up - down, W, window.tau)[0]])
    return np.log(both if rows.k[i] else 1.0 - both)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["error", "time", "leaving"])
    parser.add_argument("--trials", type=int, nargs="+", default=[100, 300])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--new", action="store_true", help="only the functions of this file")
    options = parser.parse_args()
    if options.what == "error":
        for t in options.trials:
            error(t, options.seeds, NEW if options.new else (*FUNCTIONS, *NEW, *ROUGH))
    elif options.what == "time":
        timing((1_000, 10_000, 1_000_000))
    else:
        left_out(200, 200)


if __name__ == "__main__":
    main()
