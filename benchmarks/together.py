"""Trials that share something: rows that vary, groups, chambers left out.

    python benchmarks/together.py rows --seeds 100
    python benchmarks/together.py groups --seeds 30
    python benchmarks/together.py chambers
    python benchmarks/together.py oracle --seeds 60

- rows: 60 binomial rows of 10 to 300 trials with correlation ρ on two curves; squared error and
  coverage of 95 % intervals by `overdispersion="auto"` and by binomial rows (both the process).
- groups: 1,500 trials in 40 groups with effects of deviation τ; the same by `groups=` and without.
- chambers: codling moths, every chamber left out; how many are within their 95 % predictive
  interval, binomial or beta-binomial with the ρ that was learned.

- oracle: rows with ρ = .1 again, by the process with the true ρ and with the one of some links,
  amplitudes and length scales that has the least error over all data sets, which no method knows.

The curves were fixed before any of them was looked at.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from scipy.special import expit
from scipy.stats import betabinom, binom

from betafield import SmoothBetaClassifier, contexts
from betafield.process import law
from betafield.process.basis import Prior
from betafield.process.fit import Problem, settled
from betafield.process.links import LINKS
from betafield.process.scales import boxed
from betafield.process.sums import Sums

CODLING = Path(__file__).resolve().parents[1] / "examples" / "data" / "codling.csv"
GRID = np.linspace(0.02, 0.98, 49)
CURVES = {
    "weibull": lambda x: 0.02 + 0.96 * (1 - np.exp(-((x / 0.4) ** 3))),
    "sine": lambda x: 0.5 + 0.3 * np.sin(2 * np.pi * x),
    "valley": lambda x: 0.15 + 2.4 * (x - 0.55) ** 2,
}


def _row(name, figures):
    mean, error = np.mean(figures, axis=0), np.std(figures, axis=0) / np.sqrt(len(figures))
    cells = " | ".join(f"{m:.4g} ± {e:.1g}" for m, e in zip(mean, error, strict=True))
    print(f"| {name} | {cells} |", flush=True)


def _judged(fit, truth):
    started = time.process_time()
    model = fit()
    spent = time.process_time() - started
    posterior = model.posterior(GRID[:, None])
    low, high = posterior.interval(0.95)
    held = np.mean((low <= truth) & (truth <= high))
    return 1e4 * np.mean((posterior.mean() - truth) ** 2), held, spent, model


def rows(seeds):
    print(
        "| ρ, curve | 10⁴ squared error, binomial | learned | covered, binomial | learned | ρ | s |"
    )
    print("|---|---|---|---|---|---|---|")
    for rho in (0.0, 0.02, 0.1, 0.2):
        for name, curve in CURVES.items():
            figures = []
            for seed in range(seeds):
                x, k, n = _trials(seed, rho, name)
                said = [
                    _judged(
                        lambda x=x, k=k, n=n, how=how: SmoothBetaClassifier(
                            method="process"
                        ).fit_counts(x, k, n, overdispersion=how),
                        curve(GRID),
                    )
                    for how in (None, "auto")
                ]
                (e0, h0, _, _), (e1, h1, spent, model) = said
                figures.append((e0, e1, h0, h1, model.overdispersion_, spent))
            _row(f"{rho}, {name}", figures)


def _trials(seed, rho, name):
    rng = np.random.default_rng([seed, round(100 * rho), len(name)])
    x = rng.random((60, 1))
    n = np.rint(np.exp(rng.uniform(np.log(10), np.log(300), 60))).astype(int)
    p = CURVES[name](x[:, 0])
    size = 1.0 / max(rho, 1e-9) - 1.0
    return x, rng.binomial(n, rng.beta(p * size, (1 - p) * size) if rho else p), n


def oracle(seeds):
    print("| curve, link, σ in units of the link's, ℓ | 10⁴ squared error |\n|---|---|")
    for name in CURVES:
        each = [_known(seed, 0.1, name) for seed in range(seeds)]
        mean = {known: np.mean([errors[known] for errors in each]) for known in each[0]}
        best = min(mean, key=mean.get)
        _row(f"{name}, {', '.join(map(str, best))}", [[errors[best]] for errors in each])


def _known(seed, rho, name):
    """Return the squared error by link, amplitude and length scale, with the true ρ."""
    x, k, n = _trials(seed, rho, name)
    sums = Sums(x, n, k, is_apart=True)
    box = boxed(sums, np.array([[0.0, 1.0]]), ("range",))
    rows, errors = sums.rows(box)._replace(correlation=rho), {}
    for link in LINKS:
        problem = Problem(rows, link, Prior(link.scale, float(n.sum())))
        for amplitude in (0.7, 1.4, 2.8):
            for length in (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8):
                fit = settled(problem, np.log([link.scale * amplitude, length]))
                mean = law.mean([law.surface(fit)], np.ones(1), [box.inside(GRID[:, None])])
                errors[link.name, amplitude, length] = 1e4 * np.mean(
                    (mean - CURVES[name](GRID)) ** 2
                )
    return errors


def groups(seeds):
    print("| τ, curve | 10⁴ squared error, alone | groups | covered, alone | groups | τ | s |")
    print("|---|---|---|---|---|---|---|")
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    for tau in (0.0, 0.5, 1.0):
        for name, curve in CURVES.items():
            log_odds = lambda x, curve=curve: np.log(curve(x) / (1 - curve(x)))  # noqa: E731
            truth = expit(log_odds(GRID)[:, None] + tau * nodes) @ weights / weights.sum()
            figures = []
            for seed in range(seeds):
                rng = np.random.default_rng([seed, round(100 * tau), len(name)])
                group = rng.integers(0, 40, 1_500)
                x = np.clip(rng.random(40)[group] + 0.1 * rng.normal(size=1_500), 0, 1)
                y = rng.random(1_500) < expit(log_odds(x) + tau * rng.normal(size=40)[group])
                said = [
                    _judged(
                        lambda x=x, y=y, g=g: SmoothBetaClassifier(method="process").fit(
                            x[:, None], y, groups=g
                        ),
                        truth,
                    )
                    for g in (None, group)
                ]
                (e0, h0, _, _), (e1, h1, spent, model) = said
                figures.append((e0, e1, h0, h1, model.group_deviation_, spent))
            _row(f"{tau}, {name}", figures)


def chambers(_):
    table = np.genfromtxt(CODLING, delimiter=",", names=True, dtype=None, encoding="utf-8")
    rng = np.random.default_rng(0)
    for how in (None, "auto"):
        held, total = 0, 0
        for cultivar in np.unique(table["cultivar"]):
            some = table[table["cultivar"] == cultivar]
            for i in range(len(some)):
                held += _is_held(some, i, how, rng)
                total += 1
        print(f"overdispersion={how!r}: {held} of {total} chambers within their 95 % interval")


def _is_held(some, i, how, rng):
    rest = np.delete(some, i)
    control = contexts.background(rest["control_mortality"])
    model = SmoothBetaClassifier(method="process").fit_counts(
        rest["ct"][:, None], rest["dead"], rest["insects"], control, overdispersion=how
    )
    base, n, k = (some[name][i] for name in ("control_mortality", "insects", "dead"))
    p = model.posterior([[some["ct"][i]]]).sample(400, random_state=rng).ravel()
    q, rho = np.clip(base + (1 - base) * p, 1e-9, 1 - 1e-9), model.overdispersion_
    size = 1.0 / max(rho, 1e-9) - 1.0
    law = betabinom(n, q * size, (1 - q) * size) if rho > 1e-8 else binom(n, q)
    return law.cdf(k).mean() > 0.025 and law.cdf(k - 1).mean() < 0.975


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="?", choices=("rows", "groups", "chambers", "oracle"))
    parser.add_argument("--seeds", type=int, default=100)
    given = parser.parse_args()
    for each in (rows, groups, chambers, oracle):
        if given.what in (None, each.__name__):
            each(given.seeds)
