"""Flights: what the default makes of a table with levels, as the trials grow.

    python benchmarks/flights.py                  16,000 and 65,000 flights, some minutes
    python benchmarks/flights.py --trials 16000 65000 297346 --days 20 --effects 3

Learned from day of the year and hour of departure; 30,000 flights are held out. Printed are the
log-loss, the share of held-out cells (a day and an hour with enough flights) whose share of late
flights is within what a 95 % interval and binomial noise allow, and processor seconds. `--days`
holds whole days out, `--effects` simulates days with effects of their own. Set
OPENBLAS_NUM_THREADS=1: more threads only wait.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scipy.special import expit
from scipy.stats import betabinom
from sklearn.metrics import log_loss

from betafield import SmoothBetaClassifier

DATA = Path(__file__).parents[1] / "examples" / "data" / "flights.parquet"
HELD_OUT = 30_000
# Held-out flights of a cell at the least.
ENOUGH = 8


def table(path):
    """Return day and hour of all flights, and whether they were late."""
    flights = pq.read_table(path)
    columns = [flights[name].to_numpy() for name in ("day_of_year", "departure_hour")]
    return np.column_stack(columns).astype(float), flights["late"].to_numpy().astype(int)


def timed(action):
    """Return the result of an action and its processor seconds."""
    started = time.process_time()
    result = action()
    return result, time.process_time() - started


def covered(posterior, y, cells):
    """Return the share of cells whose successes lie within the middle 95 % of what is predicted.

    Flights of a cell are wrong together, so its success probability has the mean and the deviation
    that they have on average; its successes have binomial noise beside. As counts are whole
    numbers, the one that was seen counts by half.
    """
    _, which, n = np.unique(cells, return_inverse=True, return_counts=True)
    m, s, k = (np.bincount(which, v) for v in (posterior.mean(), np.sqrt(posterior.var()), y))
    m, s = m / n, s / n
    amount = np.maximum(m * (1.0 - m) / s**2 - 1.0, 1e-3)
    law = betabinom(n, m * amount, (1.0 - m) * amount)
    rank = law.cdf(k) - 0.5 * law.pmf(k)
    some = n >= ENOUGH
    return float(np.mean(np.abs(rank[some] - 0.5) <= 0.475)), int(some.sum())


def hours(X):
    """Return a number per day and hour."""
    return (X[:, 0] * 24 + np.floor(X[:, 1])).astype(int)


def growing(X, y, sizes, seed):
    """Print how the default does on flights held out, as trials grow."""
    order = np.random.default_rng(seed).permutation(len(X))
    test, learn = order[:HELD_OUT], order[HELD_OUT:]
    SmoothBetaClassifier().fit(X[learn[:3_000]], y[learn[:3_000]]).posterior(X[:9]).interval(0.95)
    for size in sizes:
        some = learn[:size]
        model, fitting = timed(lambda some=some: SmoothBetaClassifier().fit(X[some], y[some]))
        posterior, asking = timed(lambda model=model: model.posterior(X[test]))
        _, ending = timed(lambda posterior=posterior: posterior.interval(0.95))
        share, cells = covered(posterior, y[test], hours(X[test]))
        print(
            f"flights, {len(some):7,d} trials: log-loss {log_loss(y[test], posterior.mean()):.4f}  "
            f"cells covered {share:.3f} of {cells}  fit {fitting:.2f} s  "
            f"posterior {1e6 * asking / HELD_OUT:.0f} µs, with interval "
            f"{1e6 * (asking + ending) / HELD_OUT:.0f} µs",
            flush=True,
        )


def new_days(X, y, size, count, seed):
    """Print how the default does on whole days held out."""
    rng = np.random.default_rng(seed)
    days = rng.permutation(np.unique(X[:, 0]))[:count]
    is_new = np.isin(X[:, 0], days)
    learn = rng.permutation(np.flatnonzero(~is_new))[:size]
    test = rng.permutation(np.flatnonzero(is_new))[:HELD_OUT]
    model, seconds = timed(lambda: SmoothBetaClassifier().fit(X[learn], y[learn]))
    posterior = model.posterior(X[test])
    share, cells = covered(posterior, y[test], X[test, 0])
    print(
        f"new days, {len(learn):7,d} trials: log-loss {log_loss(y[test], posterior.mean()):.4f}  "
        f"days covered {share:.3f} of {cells}  fit {seconds:.2f} s",
        flush=True,
    )


def effects(size, seed):
    """Print how the default does on simulated days with independent effects."""
    rng = np.random.default_rng(seed)
    effect = rng.normal(0.0, 0.8, 365)
    X = np.column_stack([rng.integers(365, size=size), rng.uniform(0, 24, size)]).astype(float)

    def truth(X):
        return expit(effect[X[:, 0].astype(int)] - 1.2 + 0.6 * np.sin(X[:, 1] / 4))

    model, seconds = timed(lambda: SmoothBetaClassifier().fit(X, rng.random(size) < truth(X)))
    Q = np.column_stack([rng.integers(365, size=3_000), rng.uniform(0, 24, 3_000)]).astype(float)
    posterior = model.posterior(Q)
    low, high = posterior.interval(0.95)
    error = np.sqrt(np.mean((posterior.mean() - truth(Q)) ** 2))
    share = np.mean((low <= truth(Q)) & (truth(Q) <= high))
    print(
        f"day effects, {size:,d} trials: rmse {error:.4f}  covered {share:.3f}  "
        f"fit {seconds:.2f} s",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--trials", type=int, nargs="*", default=[16_000, 65_000])
    parser.add_argument("--days", type=int, default=36, help="days held out; 0: none")
    parser.add_argument("--effects", type=int, default=1, help="simulated sets of days")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    X, y = table(options.data)
    if options.trials:
        growing(X, y, options.trials, options.seed)
    if options.days:
        new_days(X, y, max(options.trials, default=16_000), options.days, options.seed)
    for seed in range(options.effects):
        effects(30_000, options.seed + seed)


if __name__ == "__main__":
    main()
