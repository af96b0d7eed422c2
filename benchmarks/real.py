"""Real data: 10-fold log-loss against peers, and the curve of a hearing test.

    python benchmarks/real.py --data DIR

DIR has field_goals.csv and flights.parquet with all its columns; what examples/data has is taken
from there. Sets whose file is missing are left out, and said to be. Results are in out/real.json.

- log-loss: every trial is predicted once, by models that learned from nine tenths of the others;
  "by chamber" leaves rows of the table out whole, with all of their trials. Ours is
  SmoothBetaClassifier() as it is. Peers: logistic regression, pyGAM (peers.py), k-NN with k by
  cross-validation, and boosting with its defaults and calibrated. Features are numbers; carriers
  and airports are codes, in alphabetical order. The standard error is that of the mean difference
  to the best peer, over trials (over chambers, where these are left out).
- hearing: ome.csv with its guess rate of one half, by signal and for both together: the lowest
  value between 55 and 65 dB, and the largest step between two points .1 dB apart. The picture is
  out/hearing.png.

What peers scored is kept in out/real-peers.json.
"""

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from functions import Floats, Ints
from kept import Kept
from peers import Loss, boosting, knn, log_loss, logistic, plain_boosting, pygam
from report import Row, Target, run
from sklearn import __version__ as sklearn_version
from sklearn.model_selection import KFold, StratifiedKFold

from betafield import SmoothBetaClassifier, contexts

RESULTS = Path("out") / "real.json"
KEPT = Path("out") / "real-peers.json"
PICTURE = Path("out") / "hearing.png"
EXAMPLES = Path(__file__).parent.parent / "examples" / "data"
FOLDS = 10
FEW = 1024  # neighbours, over the number of features
PEERS: dict[str, Callable[[Floats, Ints, Floats, Loss], Floats]] = {
    "logistic": logistic,
    "pyGAM": pygam,
    "boosting": plain_boosting,
    "calibrated": boosting,
    "k-NN": partial(knn, most=FEW),
}


@dataclass(frozen=True)
class Sizes:
    flights: int
    data: str | None = None
    sets: tuple[str, ...] = ()


# Tables: one row with its successes and trials ----------------------------------------------


@dataclass(frozen=True)
class Table:
    features: Floats
    successes: Ints
    trials: Ints

    def expanded(self) -> tuple[Floats, Ints, Ints]:
        """Features, outcome and row of every trial."""
        row = np.repeat(np.arange(len(self.trials)), self.trials)
        held = np.stack([self.successes, self.trials - self.successes], axis=1)
        y = np.repeat(np.tile([1, 0], len(self.trials)), held.ravel())
        return self.features[row], y, row


def path_of(name: str, data: str | None) -> Path | None:
    places = [*([Path(data)] if data else []), EXAMPLES]
    return next((place / name for place in places if (place / name).exists()), None)


def read(name: str, sizes: Sizes) -> Any:
    path = path_of(name, sizes.data)
    if path is None:
        raise FileNotFoundError(name)
    return np.genfromtxt(path, delimiter=",", names=True, dtype=None, encoding="utf-8")


def field_goals(sizes: Sizes) -> Table:
    rows = read("field_goals.csv", sizes)
    return Table(_stacked(rows["yards"]), rows["made"], rows["kicks"])


def ome(sizes: Sizes, *, all_features: bool) -> Table:
    rows = read("ome.csv", sizes)
    more = [rows["noise"] == "coherent", rows["age"]] if all_features else []
    return Table(_stacked(rows["loud"], *more), rows["correct"], rows["trials"])


def codling(sizes: Sizes, *names: str) -> Table:
    rows = read("codling.csv", sizes)
    return Table(_stacked(*(rows[name] for name in names)), rows["dead"], rows["insects"])


FLIGHTS = ("day_of_year", "departure_hour", "distance_miles", "carrier", "origin")


def flights(sizes: Sizes, features: int) -> Table:
    import pyarrow.parquet

    path, names = path_of("flights.parquet", sizes.data), FLIGHTS[:features]
    if path is None or not {*names} <= {*pyarrow.parquet.read_schema(path).names}:
        raise FileNotFoundError(f"flights.parquet with {', '.join(names)}")
    table = pyarrow.parquet.read_table(path, columns=[*names, "late"])
    some = np.random.default_rng(0).choice(table.num_rows, sizes.flights, replace=False)
    columns = [_numbers(column)[some] for column in table.columns]
    late = columns.pop().astype(np.int64)
    return Table(_stacked(*columns), late, np.ones_like(late))


def _numbers(column: Any) -> Any:
    """Values, or codes in alphabetical order."""
    values = column.to_numpy()
    return np.unique(values, return_inverse=True)[1] if values.dtype == object else values


def _stacked(*columns: Any) -> Floats:
    return np.stack(columns, axis=1).astype(np.float64)


TABLES: dict[str, tuple[Callable[[Sizes], Table], bool]] = {  # and whether rows are left out whole
    "field goals": (field_goals, False),
    "ome, 1 feature": (partial(ome, all_features=False), False),
    "ome, 3 features": (partial(ome, all_features=True), False),
    "codling by insect, ct": (lambda s: codling(s, "ct"), False),
    "codling by insect, dose": (lambda s: codling(s, "dose"), False),
    "codling by insect, ct and dose": (lambda s: codling(s, "ct", "dose"), False),
    "codling by chamber, ct": (lambda s: codling(s, "ct"), True),
    "codling by chamber, dose": (lambda s: codling(s, "dose"), True),
    "flights, 2 features": (partial(flights, features=2), False),
    "flights, 3 features": (partial(flights, features=3), False),
    "flights, 5 features": (partial(flights, features=5), False),
}


# Log-loss ----------------------------------------------------------------------------------


def folds(y: Ints, row: Ints, whole: bool) -> Iterator[tuple[Ints, Ints]]:
    """Trials to learn from, and those left out."""
    if not whole:
        yield from StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(row, y)
        return
    for _, out in KFold(FOLDS, shuffle=True, random_state=0).split(np.arange(row.max() + 1)):
        held = np.isin(row, out)
        yield np.flatnonzero(~held), np.flatnonzero(held)


def ours(X: Floats, y: Ints, Q: Floats, _: Loss) -> Floats:
    return SmoothBetaClassifier().fit(X, y).posterior(Q).mean()


def losses(learner: Callable[..., Floats], table: Table, whole: bool) -> Floats:
    """Return the log-loss of every trial, predicted from the other folds."""
    X, y, row = table.expanded()
    found = np.empty(len(y))
    for learn, out in folds(y, row, whole):
        found[out] = log_loss(learner(X[learn], y[learn], X[out], log_loss), y[out])
    return found


def log_losses(sizes: Sizes) -> Iterator[Row]:
    kept = Kept(KEPT)
    for name in sizes.sets or TABLES:
        make, whole = TABLES[name]
        try:
            table = make(sizes)
        except FileNotFoundError as missing:
            print(f"{name}: {missing} was not found: left out", flush=True)
            continue
        yield compared(name, table, whole, kept)


def compared(name: str, table: Table, whole: bool, kept: Kept) -> Row:
    data = table.features.tobytes() + table.successes.tobytes()
    mark = f"{name} {hashlib.sha256(data).hexdigest()[:8]} | scikit-learn {sklearn_version}"
    mine = losses(ours, table, whole)
    found = {
        peer: kept.scored(
            f"{mark} | {peer}", lambda learner=learner: _scored(learner, table, whole)
        )["log-loss"]
        for peer, learner in PEERS.items()
        if peer != "pyGAM" or find_spec("pygam")
    }
    best = min(found, key=found.__getitem__)
    row = table.expanded()[2] if whole else np.arange(len(mine))
    gaps = np.bincount(row, mine - losses(PEERS[best], table, whole))
    err = float(gaps.std(ddof=1) * np.sqrt(len(gaps)) / len(mine)) / found[best]
    numbers = {"s.e.": err, "ours": float(mine.mean()), **found}
    target = Target(1.01, 1.0)
    return Row(
        f"log-loss to the best peer, {name}", mine.mean() / found[best], "×", target, numbers, ""
    )


def _scored(learner: Callable[..., Floats], table: Table, whole: bool) -> dict[str, float]:
    return {"log-loss": float(losses(learner, table, whole).mean())}


# A curve -----------------------------------------------------------------------------------


def hearing(sizes: Sizes) -> Iterator[Row]:
    from matplotlib.figure import Figure

    rows = read("ome.csv", sizes)
    grid = np.linspace(35, 65, 301)
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    panels = figure.subplots(1, 3, sharey=True)
    for axes, signal in zip(panels, ("coherent", "incoherent", "both"), strict=True):
        some = rows if signal == "both" else rows[rows["noise"] == signal]
        model = SmoothBetaClassifier().fit_counts(
            _stacked(some["loud"]),
            some["correct"],
            some["trials"],
            context=contexts.guess_lapse(0.5),
        )
        posterior = model.posterior(grid[:, None])
        mean = posterior.mean()
        axes.plot(grid, mean)
        axes.fill_between(grid, *posterior.interval(0.95), alpha=0.3, linewidth=0)
        axes.set_title(signal)
        loud = mean[(grid >= 55) & (grid <= some["loud"].max())]
        name = f"heard, {signal}, from 55 dB on"
        yield Row(f"{name}: lowest", float(loud.min()), "", Target(0.85, None, True), {}, "")
        step = float(np.abs(np.diff(loud)).max())
        yield Row(f"{name}: largest step of .1 dB", step, "", Target(0.05), {}, "")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--data")
    parser.add_argument("--sets", type=lambda names: tuple(names.split(";")), default=())
    options, others = parser.parse_known_args()
    sys.argv[1:] = others
    full = Sizes(20_000, options.data, options.sets)
    quick = replace(full, flights=500, sets=options.sets or ("codling by chamber, ct",))
    measurements = {"log-loss": log_losses, "hearing": hearing}
    run(
        "Real data: SmoothBetaClassifier() against peers",
        __doc__,
        measurements,
        full,
        quick,
        RESULTS,
    )


if __name__ == "__main__":
    main()
