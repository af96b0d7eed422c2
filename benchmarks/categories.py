"""Categories with partial pooling: error, coverage, time, and real tables against peers.

    python -m benchmarks.categories simulated --seeds 10
    python -m benchmarks.categories windows --seeds 20
    python -m benchmarks.categories rough --seeds 6
    python -m benchmarks.categories time
    python -m benchmarks.categories real --data DIR --rows 20000

`simulated` has levels of unequal size (∝ rank^−0.8), a shared curve, and per level an intercept
alone or a smooth deviation too; no pooling is a model per level, complete pooling one model without
levels. `windows` has the same truths, and a step, for windows whose prior comes from the other
levels and for windows with the plain prior. `rough` has truths that all of four levels share: with
and without windows of residuals, and without the levels. `real` compares log-losses by 5-fold
cross-validation; DIR has ome.csv, codling.csv and flights.parquet, of which `--tables` names some.
pyGAM and R's mgcv are peers if they are installed; `--peers` names those to compare with. Times are
processor time, on one thread.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder

from betafield import SmoothBetaClassifier, contexts

GRID = np.linspace(0.02, 0.98, 25)
UNSEEN = 20
Table = tuple[pd.DataFrame, np.ndarray, np.ndarray]


def simulated(levels: int, trials: int, is_smooth: bool, seed: int) -> Table:
    """Return trials, outcomes, and the truth (levels + 20 unseen ones, points of the grid)."""
    rng = np.random.default_rng([seed, levels, is_smooth])
    share = 1.0 / np.arange(1, levels + 1) ** 0.8
    level = rng.choice(levels, trials, p=share / share.sum())
    x = rng.random(trials)
    J = np.arange(1, 6)
    intercept = rng.normal(0.0, 0.7, levels + UNSEEN)
    waves = rng.normal(0.0, 1.0, (levels + UNSEEN, 5)) * np.exp(-0.5 * (0.3 * np.pi * J) ** 2) * 0.8

    def truth(x: np.ndarray, level: np.ndarray) -> np.ndarray:
        f = 2.0 * np.sin(4.0 * x) - 0.5 + intercept[level]
        return expit(f + is_smooth * np.sum(waves[level] * np.cos(np.pi * J * x[:, None]), axis=1))

    y = rng.random(trials) < truth(x, level)
    every = np.repeat(np.arange(levels + UNSEEN), len(GRID))
    T = truth(np.tile(GRID, levels + UNSEEN), every).reshape(-1, len(GRID))
    return pd.DataFrame({"level": [f"l{c}" for c in level], "x": x}), y, T


def asked(names: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"level": np.repeat(names, len(GRID)), "x": np.tile(GRID, len(names))})


def compared(levels: int, trials: int, is_smooth: bool, seed: int) -> dict[str, float]:
    """Return squared errors (10⁻⁴) and coverage of one run."""
    X, y, T = simulated(levels, trials, is_smooth, seed)
    names = [f"l{c}" for c in range(levels + UNSEEN)]
    start = time.process_time()
    model = SmoothBetaClassifier(bounds=[(0, 1)]).fit(X, y)
    spent = time.process_time() - start
    post = model.posterior(asked(names))
    mean = post.mean().reshape(T.shape)
    low, high = (end.reshape(T.shape) for end in post.interval(0.95))
    held = (low <= T) & (high >= T)
    counts = X["level"].value_counts().reindex(names[:levels], fill_value=0).to_numpy()
    rare = counts < max(10, trials / levels / 3)
    whole = SmoothBetaClassifier(bounds=[(0, 1)]).fit(X[["x"]], y)
    complete = whole.predict_proba(GRID[:, None])[:, 1]
    alone = np.full((levels, len(GRID)), 0.5)
    for c in range(levels):
        own = (X["level"] == names[c]).to_numpy()
        if own.any():
            one = SmoothBetaClassifier(bounds=[(0, 1)], method="process")
            one.partial_fit(X[own][["x"]], y[own], classes=[False, True])
            alone[c] = one.predict_proba(GRID[:, None])[:, 1]
    error = (mean - T) ** 2
    return {
        "error": 1e4 * error[:levels].mean(),
        "none": 1e4 * ((alone - T[:levels]) ** 2).mean(),
        "complete": 1e4 * ((complete - T[:levels]) ** 2).mean(),
        "cover": held[:levels].mean(),
        "rare": held[:levels][rare].mean() if rare.any() else np.nan,
        "unseen": held[levels:].mean(),
        "seconds": spent,
    }


def cost_of_smooth(seed: int) -> float:
    """Return how much larger the error is than with intercepts alone, if these are the truth.

    Intercepts alone: the same model whose smooth deviations are held at nothing.
    """
    from betafield.process import fit as fitting

    X, y, T = simulated(50, 3_000, False, seed)
    names = [f"l{c}" for c in range(50)]
    errors = []
    before = fitting.Problem.ends
    for is_held in (False, True):
        if is_held:
            fitting.Problem.ends = property(lambda self: _held(before.fget(self)))  # type: ignore
        try:
            model = SmoothBetaClassifier(bounds=[(0, 1)]).fit(X, y)
            found = model.predict_proba(asked(names))[:, 1].reshape(50, -1)
        finally:
            fitting.Problem.ends = before  # type: ignore[method-assign]
        errors.append(((found - T[:50]) ** 2).mean())
    return errors[0] / errors[1]


def _held(ends: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    low, high = ends
    high = high.copy()
    low = low.copy()
    low[-1], high[-1] = -12.0, -11.9
    return low, high


def run_simulated(seeds: int) -> None:
    compared(3, 60, True, 0)  # compiles
    for levels, trials in ((2, 400), (10, 1_000), (50, 3_000)):
        for is_smooth in (True, False):
            runs = pd.DataFrame([compared(levels, trials, is_smooth, s) for s in range(seeds)])
            kind = "smooth" if is_smooth else "intercepts"
            print(f"{levels} levels, {trials} trials, {kind}", flush=True)
            print(runs.mean().round(3).to_dict(), flush=True)
            ratio = runs[["none", "complete"]].mean()
            print(
                "  of no pooling, of complete pooling:",
                (runs["error"].mean() / ratio).round(3).to_dict(),
                flush=True,
            )
    costs = [cost_of_smooth(s) for s in range(seeds)]
    print(
        "intercepts are the truth: error with smooth deviations over that without",
        round(float(np.mean(costs)), 3),
        flush=True,
    )


def stepped(seed: int) -> Table:
    """Return trials of six levels that share a step, and the truth as `simulated` does."""
    rng = np.random.default_rng([seed, 77])
    level, x = rng.choice(6, 1_500, p=np.arange(6, 0, -1) / 21), rng.random(1_500)
    effect = rng.normal(0.0, 0.6, 6 + UNSEEN)
    y = rng.random(1_500) < expit(np.where(x < 0.37, -1.2, 0.8) + effect[level])
    T = expit(np.where(GRID < 0.37, -1.2, 0.8) + effect[:, None])
    return pd.DataFrame({"level": [f"l{c}" for c in level], "x": x}), y, T


def in_windows(some: Table, bandwidth: Any) -> dict[str, float]:
    """Return squared error (10⁻⁴) and coverage of windows."""
    X, y, T = some
    levels = len(T) - UNSEEN
    names = [f"l{c}" for c in range(len(T))]
    post = SmoothBetaClassifier(bandwidth, bounds=[(0, 1)]).fit(X, y).posterior(asked(names))
    low, high = (end.reshape(T.shape) for end in post.interval(0.95))
    held = (low <= T) & (high >= T)
    counts = X["level"].value_counts().reindex(names[:levels], fill_value=0).to_numpy()
    rare = counts < max(10, len(X) / levels / 3)
    return {
        "error": 1e4 * ((post.mean().reshape(T.shape) - T)[:levels] ** 2).mean(),
        "cover": held[:levels].mean(),
        "rare": held[:levels][rare].mean() if rare.any() else np.nan,
        "unseen": held[levels:].mean(),
    }


def run_windows(seeds: int) -> None:
    """Print error and coverage with a prior from the other levels, and with the plain one."""
    truths: dict[str, Any] = {
        f"{levels} levels, {trials} trials, {'smooth' if is_smooth else 'intercepts'}": (
            lambda seed, a=(levels, trials, is_smooth): simulated(*a, seed)
        )
        for levels, trials in ((50, 3_000), (10, 1_000), (2, 400))
        for is_smooth in (True, False)
    }
    truths["6 levels, 1500 trials, a step"] = stepped
    first = next(iter(truths))
    kinds = [(name, "loo") for name in truths] + [(first, 0.1), (first, 0.2)]
    for name, bandwidth in kinds:
        print(f"{name}, bandwidth={bandwidth}", flush=True)
        for prior in ("from other levels", "plain"):
            with _plain_prior() if prior == "plain" else contextlib.nullcontext():
                runs = [in_windows(truths[name](seed), bandwidth) for seed in range(seeds)]
            print(f"  {prior}:", pd.DataFrame(runs).mean().round(3).to_dict(), flush=True)


@contextlib.contextmanager
def _plain_prior() -> Iterator[None]:
    """Hold the strength of the prior from other levels at 0, and choose the best width."""
    from betafield import pooling

    before = pooling.STRENGTHS, pooling.CLOSE
    pooling.STRENGTHS, pooling.CLOSE = np.zeros(1), 0.0
    try:
        yield
    finally:
        pooling.STRENGTHS, pooling.CLOSE = before


ROUGH: dict[str, Any] = {
    "a step": lambda x: np.where(x < 0.37, 0.2, 0.7),
    "a narrow bump": lambda x: 0.3 + 0.5 * (np.abs(x - 0.6) < 0.03),
    "a comb": lambda x: 0.35 + 0.3 * np.sign(np.sin(40.0 * x)),
    "a line": lambda x: 0.3 + 0.4 * x,
}


def run_rough(seeds: int) -> None:
    """Print squared errors (10⁻⁴) of 2,000 trials of four levels, with and without windows."""
    grid = np.linspace(0.01, 0.99, 99)
    for name, truth in ROUGH.items():
        found = []
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            x, level = rng.random(2_000), rng.choice(["a", "b", "c", "d"], 2_000)
            X, y = pd.DataFrame({"level": level, "x": x}), rng.random(2_000) < truth(x)
            tried = {
                "with levels": ({}, ["level", "x"]),
                "with levels, no windows": ({"method": "process"}, ["level", "x"]),
                "without": ({}, ["x"]),
                "without, no windows": ({"method": "process"}, ["x"]),
            }
            points = pd.DataFrame({"level": "a", "x": grid})
            errors = {}
            for kind, (options, columns) in tried.items():
                model = SmoothBetaClassifier(bounds=[(0, 1)], **options).fit(X[columns], y)
                mean = model.predict_proba(points[columns])[:, 1]
                errors[kind] = 1e4 * float(np.mean((mean - truth(grid)) ** 2))
            found.append(errors)
        print(name, pd.DataFrame(found).mean().round(1).to_dict(), flush=True)


def run_time() -> None:
    X, y, _ = simulated(5, 200, True, 0)
    SmoothBetaClassifier().fit(X, y)
    for levels, trials in ((200, 20_000), (1_000, 100_000)):
        X, y, _ = simulated(levels, trials, True, 0)
        X = X.astype({"level": "category"})
        start = time.process_time()
        SmoothBetaClassifier(bounds=[(0, 1)]).fit(X, y)
        print(f"{levels} levels, {trials} trials: {time.process_time() - start:.2f} s", flush=True)


def peers() -> dict[str, Any]:
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    encoded = make_pipeline(
        TargetEncoder(random_state=0).set_output(transform="default"),
        StandardScaler(),
        GaussianProcessClassifier(random_state=0),
    )
    return {"boosting": boosting, "encoded process": encoded}


class Additive:
    """pyGAM's factors and splines, and by-terms: a spline per level of columns with few levels."""

    FEW = 12

    def __init__(self, X: pd.DataFrame, has_by_terms: bool) -> None:
        self.has_by_terms = has_by_terms
        self.levels = {c: list(X[c].cat.categories) for c in X if X[c].dtype == "category"}
        self.numbers = [c for c in X if c not in self.levels]

    def coded(self, X: pd.DataFrame) -> np.ndarray:
        columns = [X[c].to_numpy(float) for c in self.numbers]
        columns += [X[c].cat.codes.to_numpy(float) for c in self.levels]
        columns += [(X[c] == level).to_numpy(float) for c, level in self.pairs]
        return np.column_stack(columns)

    @property
    def pairs(self) -> list[tuple[str, Any]]:
        most = self.FEW if self.has_by_terms else 0
        few = {c: each for c, each in self.levels.items() if len(each) <= most}
        return [(c, level) for c, each in few.items() for level in each]

    def fit(self, X: pd.DataFrame, y: np.ndarray, sample_weight: np.ndarray) -> Additive:
        from pygam import LogisticGAM, f, s

        p, k = len(self.numbers), len(self.levels)
        terms = sum((s(i) for i in range(1, p)), start=s(0))
        for j in range(k):
            terms += f(p + j)
        for j in range(len(self.pairs)):
            for i in range(p):
                terms += s(i, by=p + k + j, n_splines=10)
        asked = self.coded(X), y.astype(float)
        tried = [
            LogisticGAM(terms, lam=lam).fit(*asked, weights=sample_weight)
            for lam in (0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
        ]
        self.found = min(tried, key=lambda one: one.statistics_["UBRE"])
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        p = np.clip(self.found.predict_proba(self.coded(X)), 1e-6, 1.0 - 1e-6)
        return np.column_stack([1.0 - p, p])


class Mgcv:
    """mgcv in R: a smooth of every number, effects of levels, and smooth deviations of levels.

    Formulas are R's; `bam` with discrete=TRUE fits long tables, `gam` by REML others.
    """

    LONG = 10_000
    SCRIPT = """
    suppressMessages(library(mgcv)); a <- commandArgs(TRUE)
    train <- read.csv(a[1], stringsAsFactors = TRUE)
    asked <- read.csv(a[2], stringsAsFactors = TRUE)
    for (name in names(asked)) if (is.factor(asked[[name]])) {
      all <- union(levels(train[[name]]), levels(asked[[name]]))
      train[[name]] <- factor(train[[name]], all); asked[[name]] <- factor(asked[[name]], all) }
    fitted <- if (a[4] == "bam") {
      bam(as.formula(a[3]), binomial, train, discrete = TRUE, drop.unused.levels = FALSE)
    } else gam(as.formula(a[3]), binomial, train, method = "REML", drop.unused.levels = FALSE)
    write.csv(data.frame(p = predict(fitted, asked, type = "response")), a[5], row.names = FALSE)
    """

    def __init__(self, formula: str) -> None:
        self.formula = formula

    def predict(
        self, X: pd.DataFrame, k: np.ndarray, n: np.ndarray, asked: pd.DataFrame
    ) -> np.ndarray:
        """Return the probabilities at rows asked for, learned from rows with k successes of n."""
        with tempfile.TemporaryDirectory() as folder:
            train, at, script, out = (
                f"{folder}/{name}" for name in ("train", "at", "script", "out")
            )
            self._worded(X).assign(k=k, failures=n - k).to_csv(train, index=False)
            self._worded(asked).to_csv(at, index=False)
            Path(script).write_text(self.SCRIPT)
            how = "bam" if len(X) > self.LONG else "gam"
            formula = f"cbind(k, failures) ~ {self.formula}"
            subprocess.run(["Rscript", script, train, at, formula, how, out], check=True)
            return pd.read_csv(out)["p"].to_numpy().clip(1e-6, 1.0 - 1e-6)

    def _worded(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return the table with levels that R cannot read as numbers."""
        levels = X.select_dtypes("category")
        return X.assign(**{name: "level " + levels[name].astype(str) for name in levels})


def has_pygam() -> bool:
    return importlib.util.find_spec("pygam") is not None


def has_mgcv() -> bool:
    return shutil.which("Rscript") is not None


def folded(
    name: str,
    X: pd.DataFrame,
    k: Any,
    n: Any,
    guess: Any = None,
    formula: str = "1",
    chosen: list[str] | None = None,
    most_gp: int = 1_500,
) -> None:
    """Print the 5-fold log-loss per trial of rows with k successes of n.

    `formula` is that of mgcv; peers are all that are installed, or those chosen.
    """
    k, n = np.asarray(k, float), np.asarray(n, float)
    text = [c for c in X if not pd.api.types.is_numeric_dtype(X[c])]
    X = X.astype(dict.fromkeys(text, "category"))
    losses: dict[str, list[float]] = {}
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        context = None if guess is None else guess[train]
        rows = {} if n.max() == 1 else {"overdispersion": "auto"}  # as rows of many trials may have
        model = SmoothBetaClassifier().fit_counts(
            X.iloc[train], k[train], n[train], context=context, **rows
        )
        p = model.posterior(X.iloc[test])
        p = p.mean() if guess is None else p.under(guess[test]).mean()
        losses.setdefault("betafield", []).append(_loss(k[test], n[test], p))
        both = pd.concat([X.iloc[train]] * 2)
        y = np.repeat([1, 0], len(train))
        w = np.concatenate([k[train], n[train] - k[train]])
        kept = w > 0
        every = peers()
        if has_pygam():
            every |= {"pyGAM, factors": Additive(X, False), "pyGAM, by-terms": Additive(X, True)}
        if has_mgcv() and (chosen is None or "mgcv" in chosen):
            p = Mgcv(formula).predict(X.iloc[train], k[train], n[train], X.iloc[test])
            losses.setdefault("mgcv", []).append(_loss(k[test], n[test], p))
        if chosen is not None:
            every = {peer: each for peer, each in every.items() if peer in chosen}
        for peer, each in every.items():
            if peer != "encoded process":
                each.fit(both[kept], y[kept], sample_weight=w[kept])
            else:
                rng = np.random.default_rng(0)
                rows = np.repeat(np.flatnonzero(kept), w[kept].astype(int))
                some = rng.choice(rows, min(most_gp, len(rows)), replace=False)
                each.fit(both.iloc[some].astype(dict.fromkeys(text, str)), y[some])
            asked = (
                X.iloc[test]
                if peer != "encoded process"
                else X.iloc[test].astype(dict.fromkeys(text, str))
            )
            losses.setdefault(peer, []).append(
                _loss(k[test], n[test], each.predict_proba(asked)[:, 1])
            )
    print(name, {m: round(float(np.mean(v)), 4) for m, v in losses.items()}, flush=True)


def _loss(k: np.ndarray, n: np.ndarray, p: np.ndarray) -> float:
    y, w = np.repeat([1, 0], len(k)), np.concatenate([k, n - k])
    return float(log_loss(y, np.tile(p, 2), sample_weight=w, labels=[0, 1]))


def run_real(folder: Path, rows: int, tables: list[str], chosen: list[str] | None) -> None:
    for name in tables:
        TABLES[name](folder, rows, chosen)


def of_codling(folder: Path, _: int, chosen: list[str] | None) -> None:
    codling = pd.read_csv(folder / "codling.csv")
    offset = codling["control_mortality"].to_numpy()
    background = np.column_stack([offset, np.ones(len(offset))])
    X = codling[["cultivar", "dose", "ct"]]
    formula = "s(dose, k = 5) + s(ct, k = 6) + s(ct, cultivar, bs = 'fs', k = 5)"
    counts = codling["dead"], codling["insects"]
    folded("codling (cultivar)", X, *counts, background, formula, chosen)


def of_ome(folder: Path, _: int, chosen: list[str] | None) -> None:
    ome = pd.read_csv(folder / "ome.csv")
    names = ["noise", "id"]
    X = ome[[*names, "loud", "age"]].astype(dict.fromkeys(names, str))
    chance = np.tile(np.atleast_2d(contexts.guess_lapse(guess=0.5)), (len(ome), 1))
    formula = "noise + s(loud, by = noise, k = 4) + s(age, k = 4) + s(id, bs = 're')"
    name = f"ome ({', '.join(names)})"
    folded(name, X, ome["correct"], ome["trials"], chance, formula, chosen)


def of_flights(folder: Path, rows: int, chosen: list[str] | None) -> None:
    flights = pd.read_parquet(folder / "flights.parquet")
    flights = flights.sample(min(rows, len(flights)), random_state=0)
    X = flights[["carrier", "origin", "departure_hour"]]
    formula = " + ".join(
        f"s(departure_hour, {each}, bs = 'fs', k = 8)" for each in ("carrier", "origin")
    )
    name = f"flights (carrier, origin × hour), {len(X)} rows"
    folded(name, X, flights["late"], np.ones(len(X)), None, formula, chosen)


TABLES = {"codling": of_codling, "ome": of_ome, "flights": of_flights}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["simulated", "windows", "rough", "time", "real"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--peers", nargs="*")
    parser.add_argument("--tables", nargs="+", choices=list(TABLES), default=list(TABLES))
    asked_for = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked_for.what == "simulated":
        run_simulated(asked_for.seeds)
    elif asked_for.what == "windows":
        run_windows(asked_for.seeds)
    elif asked_for.what == "rough":
        run_rough(asked_for.seeds)
    elif asked_for.what == "time":
        run_time()
    else:
        run_real(asked_for.data, asked_for.rows, asked_for.tables, asked_for.peers)


if __name__ == "__main__":
    main()
