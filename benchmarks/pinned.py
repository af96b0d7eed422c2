"""The default model against the one before it: ``python benchmarks/pinned.py``.

The last commit whose default was a mixture of windows with local polynomials is checked out into a
temporary folder, and learns the same trials in a process of its own (`git worktree`; the
repository's history is needed). A line per function: our mean squared error to its, and the
coverage of both; two rows per t: the geometric mean over functions, and the worst of them, with how
many are above 1.05, and how many by more than twice their standard error; then the mean over all t.
What the earlier default scored is kept in out/pinned-peers.json; results are in out/pinned.json.

- error: functions of functions.py, rough ones too.
- days: a feature with 365 levels, each with an effect of its own, and a smooth second one.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from functions import ALL, LATER, Floats, Function, Ints, space
from kept import Kept, Scores
from report import Row, Target, geometric, run
from scipy.special import expit, logit

COMMIT = "d5e026c72294a72dfe32210d75e2a1480f318308"
ROOT = Path(__file__).parent.parent
RESULTS = Path("out") / "pinned.json"
PEERS = Path("out") / "pinned-peers.json"
LEVELS = 365


@dataclass(frozen=True)
class Sizes:
    seeds: dict[int, int]  # by number of trials
    most: int = 100  # functions
    days: int = 30_000


FULL = Sizes({300: 4, 1_000: 4, 10_000: 2, 100_000: 1})
QUICK = Sizes({100: 2}, 2, 3_000)


def day_effects(seed: int) -> Function:
    """365 levels, each with an effect of standard deviation .7 on the logit scale."""
    effects = 0.7 * np.random.default_rng([seed, LEVELS]).standard_normal(LEVELS)

    def of(x: Floats) -> Floats:
        day = np.minimum((x[0] * LEVELS).astype(np.int64), LEVELS - 1)
        return expit(logit(0.25) + effects[day] + np.sin(2 * np.pi * x[1]))

    return Function("days-2", 2, of)


def cases(name: str, t: int, seed: int) -> tuple[Floats, Ints, Floats, Floats]:
    """Trials, points and truth, by names that another process understands."""
    if name == "days-2":
        function = day_effects(seed)
        rng = np.random.default_rng([seed, t])
        X, Q = (_on_days(rng.random((n, 2))) for n in (t, 4_000))
        return X, (rng.random(t) < function(X)).astype(np.int64), Q, function(Q)
    function = next(f for f in (*ALL, *LATER) if f.name == name)
    Q = space(function.d)
    return *function.trials(t, seed), Q, function(Q)


def _on_days(X: Floats) -> Floats:
    """The middle of each level: days are whole numbers."""
    day = np.floor(X[:, 0] * LEVELS)
    return np.column_stack([(day + 0.5) / LEVELS, X[:, 1]])


def scores(name: str, t: int, seed: int) -> Scores:
    """What the default of the betafield that is imported here scores."""
    from betafield import SmoothBetaClassifier

    X, y, Q, truth = cases(name, t, seed)
    post = SmoothBetaClassifier().fit(X, y).posterior(Q)
    low, high = post.interval(0.95)
    covered = float(np.mean((low <= truth) & (truth <= high)))
    return {"mse": float(np.mean((post.mean() - truth) ** 2)), "coverage": covered}


# The earlier default ------------------------------------------------------------------------


@contextmanager
def checked_out() -> Iterator[Path]:
    """The sources of the pinned commit, in a folder that goes away."""
    git = ["git", "-C", str(ROOT), "worktree"]
    with TemporaryDirectory() as folder:
        place = Path(folder) / "betafield"
        subprocess.run([*git, "add", "--quiet", "--detach", str(place), COMMIT], check=True)
        try:
            yield place / "src"
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def fill(units: list[tuple[str, int, int]]) -> Kept:
    """Let the earlier default score what is not known of it yet."""
    kept = Kept(PEERS)
    missing = [unit for unit in units if key(*unit) not in kept.known]
    if missing:
        with checked_out() as sources:
            command = [sys.executable, __file__, "--pinned", str(sources)]
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as peer:
                assert peer.stdin is not None
                assert peer.stdout is not None
                for unit in missing:
                    peer.stdin.write(json.dumps(unit) + "\n")
                    peer.stdin.flush()
                    kept.keep(key(*unit), json.loads(peer.stdout.readline()))
                peer.stdin.close()
    return kept


def answer(sources: str) -> None:
    """Score what standard input asks for, a line each, with the sources given."""
    sys.path.insert(0, sources)
    import betafield

    assert Path(betafield.__file__).is_relative_to(sources), betafield.__file__
    for line in sys.stdin:
        print(json.dumps(scores(*json.loads(line))), flush=True)


def key(name: str, t: int, seed: int) -> str:
    _, _, _, truth = cases(name, 64, seed)
    return f"{name} {truth[:64].sum():.9f} | t={t} | seed {seed} | {COMMIT[:7]}"


# Rows --------------------------------------------------------------------------------------


def error(sizes: Sizes) -> Iterator[Row]:
    names = [f.name for f in ALL][-sizes.most :]
    averages = []
    for t, seeds in sizes.seeds.items():
        found = compared(names, t, seeds)
        ratios = found[:, :, 0] / found[:, :, 2]
        value, err = geometric(ratios)
        averages.append(value)
        each, errs = np.array([geometric(r) for r in ratios]).T
        for name, ratio, line in zip(names, each, found.mean(axis=1), strict=True):
            print(f"  {name:16} {ratio:.3f}  coverage {line[1]:.3f}, before {line[3]:.3f}")
        numbers = {"s.e.": err, "functions": len(names), "coverage": found[:, :, 1].mean()}
        yield Row(f"error to the default before, t={t:,}", value, "×", Target(0.8), numbers, "")
        worst = f"worst: {names[int(np.argmax(each))]}, t={t:,}"
        above = {"above": int(np.sum(each > 1.05)), "clearly": int(np.sum(each - 2 * errs > 1.05))}
        yield Row(worst, each.max(), "×", Target(1.05), above, "")
    name = "error to the default before, mean over all t"
    yield Row(name, float(np.exp(np.mean(np.log(averages)))), "×", Target(0.8), {}, "")


def compared(names: list[str], t: int, seeds: int) -> Floats:
    """Return error and coverage of ours and of the default before, (names, seeds, 4)."""
    units = [(name, t, seed) for name in names for seed in range(seeds)]
    kept = fill(units)
    pairs = [(scores(*unit), kept.known[key(*unit)]) for unit in units]
    found = [[each[what] for each in pair for what in ("mse", "coverage")] for pair in pairs]
    return np.reshape(found, (len(names), seeds, 4))


def days(sizes: Sizes) -> Iterator[Row]:
    found = compared(["days-2"], sizes.days, 2)
    value, err = geometric(found[:, :, 0] / found[:, :, 2])
    numbers = {"s.e.": err, "rmse": float(np.sqrt(found[:, :, 0].mean()))}
    name = f"day effects, t={sizes.days:,}"
    yield Row(f"{name}: error to the default before", value, "×", Target(0.2), numbers, "")
    held = {"before": found[:, :, 3].mean()}
    covered, target = float(found[:, :, 1].mean()), Target(0.9, None, True)
    yield Row(f"{name}: coverage of 95 % intervals", covered, "", target, held, "")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--pinned"]:
        answer(sys.argv[2])
    else:
        title = f"SmoothBetaClassifier() against that of {COMMIT[:7]}: mean squared error"
        run(title, __doc__, {"error": error, "days": days}, FULL, QUICK, RESULTS)
