"""What bandits lose while they learn, beside others: ``python benchmarks/bandits.py``.

Four problems over [0, 1]^d, d = 1 and 2: the best of a continuum of points (a hill and a lower
one), and the best of five named arms at a point that is observed. Rewards come after batches of 100
pulls, for all alike; what is observed and the luck of outcomes are those of the seed. Of each
learner the regret after 10,000 pulls, mean over seeds, and the exponent b with which it grows, n^b
over the second half.

- epsilon-greedy: cells of a fixed size, the highest mean of the cell, and one pull in ten at
  random;
- MABWiser: NeighborhoodPolicy.Radius with LearningPolicy.ThompsonSampling. In a continuum its arms
  are the centres of cells and all contexts the same.

Both have the size of cells, or the radius, that turned out better of two on these very runs; ours
has its defaults. Results of MABWiser are kept in out/bandits: it takes minutes. Rows say the regret
to that of the best of each peer, which should be below 1, and the exponent.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from report import Row, Target, run

from betafield.decisions.arms import Arms
from betafield.decisions.bandits import FieldBandit, Pull
from betafield.decisions.simulation import Regret, simulate

RESULTS, CACHE = Path("out") / "bandits.json", Path("out") / "bandits"
Floats = NDArray[np.float64]
EPSILON = 0.1
BELOW, SUBLINEAR = Target(1.0), Target(1.0)


@dataclass(frozen=True)
class Sizes:
    pulls: int
    seeds: int
    batch: int = 100


# What is to be found out --------------------------------------------------------------------


def hills(X: Floats, width: float) -> Floats:
    """A hill of 0.7 and one of 0.55, on a plain of 0.2."""
    high, low = np.array([0.7, 0.3][: X.shape[1]]), np.array([0.2, 0.8][: X.shape[1]])
    near = [np.exp(-(((X - at) / width) ** 2).sum(axis=1)) for at in (high, low)]
    return np.asarray(0.2 + 0.5 * near[0] + 0.35 * near[1])


def peaks(X: Floats) -> Floats:
    """Five arms, each best around its own value of the one feature."""
    return np.asarray(0.15 + 0.6 * np.exp(-(((X - [0.1, 0.3, 0.5, 0.7, 0.9]) / 0.2) ** 2)))


def waves(X: Floats) -> Floats:
    """Five arms, each a wave in a direction of its own."""
    turn = 2 * np.pi * np.arange(5) / 5
    along = X[:, :1] * np.cos(turn) + X[:, 1:] * np.sin(turn)
    return np.asarray(0.5 + 0.3 * np.sin(2 * np.pi * along + turn))


BOX = {1: {"x": (0, 1)}, 2: {"x": (0, 1), "y": (0, 1)}}
NAMES = ["a", "b", "c", "d", "e"]


@dataclass(frozen=True)
class Problem:
    name: str
    arms: Any
    observed: Any
    truth: Callable[[Floats], Floats]
    d: int

    def fingerprint(self) -> str:
        values = np.round(self.truth(np.random.default_rng(0).random((64, self.d))), 9)
        return hashlib.sha256(values.tobytes()).hexdigest()[:8]


PROBLEMS = (
    Problem("continuum, 1-D", BOX[1], None, lambda X: hills(X, 0.12), 1),
    Problem("continuum, 2-D", BOX[2], None, lambda X: hills(X, 0.2), 2),
    Problem("named arms, 1-D", NAMES, BOX[1], peaks, 1),
    Problem("named arms, 2-D", NAMES, BOX[2], waves, 2),
)
CELLS = {1: (8, 16), 2: (5, 8)}
RADII = {1: (0.05, 0.1), 2: (0.1, 0.2)}


# Peers, with the methods that a simulation asks for ------------------------------------------


class Peer:
    """Arms are names, or the centres of k^d cells; what is observed may be in cells too."""

    def __init__(self, problem: Problem, seed: int, k: int) -> None:
        self.arms = Arms.of(problem.arms, problem.observed, seed)
        axes = np.meshgrid(*[(np.arange(k) + 0.5) / k] * problem.d)
        self.centres = np.stack([axis.ravel() for axis in axes], axis=1)
        self.k = k
        self.named = problem.observed is not None
        self.n_arms = len(NAMES) if self.named else len(self.centres)
        self.rng = np.random.default_rng([seed, 1])

    def pull(self, x: Floats | None = None, n: int | None = None) -> list[Pull]:
        given = np.zeros((n or 0, 1)) if x is None else x
        return [
            Pull(i, int(arm), self._features(arm, row), "", int(arm))
            for i, (arm, row) in enumerate(zip(self.chosen(given), given, strict=True))
        ]

    def _features(self, arm: int, row: Floats) -> dict[str, float]:
        values = row if self.named else self.centres[arm]
        return dict(zip("xy", values.tolist(), strict=False))

    def update(self, pulls: list[Pull], success: NDArray[np.bool_]) -> None:
        rows = [list(p.features.values()) if self.named else [0.0] for p in pulls]
        self.learn(np.array([p.index for p in pulls]), success.astype(float), np.array(rows))

    def chosen(self, given: Floats) -> Any:
        raise NotImplementedError

    def learn(self, arms: Any, rewards: Floats, given: Floats) -> None:
        raise NotImplementedError


class EpsilonGreedy(Peer):
    def __init__(self, problem: Problem, seed: int, k: int) -> None:
        super().__init__(problem, seed, k)
        cells = k**problem.d if self.named else 1
        self.held, self.won = np.zeros((2, cells, self.n_arms))

    def cell(self, given: Floats) -> NDArray[np.int64]:
        if not self.named:
            return np.zeros(len(given), dtype=np.int64)
        at = np.minimum((given * self.k).astype(np.int64), self.k - 1)
        return np.asarray(at @ self.k ** np.arange(given.shape[1]))

    def chosen(self, given: Floats) -> Any:
        mean = (self.won + 1.0) / (self.held + 2.0)
        noise = 1e-9 * self.rng.random((len(given), self.n_arms))
        best = np.argmax(mean[self.cell(given)] + noise, axis=1)
        explores = self.rng.random(len(given)) < EPSILON
        return np.where(explores, self.rng.integers(self.n_arms, size=len(given)), best)

    def learn(self, arms: Any, rewards: Floats, given: Floats) -> None:
        np.add.at(self.held, (self.cell(given), arms), 1.0)
        np.add.at(self.won, (self.cell(given), arms), rewards)


class MABWiser(Peer):
    def __init__(self, problem: Problem, seed: int, k: int, radius: float) -> None:
        from mabwiser.mab import MAB, LearningPolicy, NeighborhoodPolicy

        super().__init__(problem, seed, k)
        policy, near = LearningPolicy.ThompsonSampling(), NeighborhoodPolicy.Radius(radius)
        self.mab, self.knows = MAB(list(range(self.n_arms)), policy, near, seed=seed), False

    def chosen(self, given: Floats) -> Any:
        if not self.knows:
            return self.rng.integers(self.n_arms, size=len(given))
        return np.atleast_1d(self.mab.predict(given))

    def learn(self, arms: Any, rewards: Floats, given: Floats) -> None:
        (self.mab.partial_fit if self.knows else self.mab.fit)(arms, rewards, given)
        self.knows = True


# Measuring ----------------------------------------------------------------------------------


def regret(problem: Problem, sizes: Sizes, make: Callable[[int], Any]) -> Regret:
    return simulate(make, problem.truth, sizes.pulls, range(sizes.seeds), batch=sizes.batch)


def epsilon_greedy(problem: Problem, sizes: Sizes) -> Regret:
    """The better of two sizes of cells."""
    found = [
        regret(problem, sizes, lambda seed, k=k: EpsilonGreedy(problem, seed, k))
        for k in CELLS[problem.d]
    ]
    return min(found, key=lambda each: float(each.final.mean()))


def mabwiser(problem: Problem, sizes: Sizes) -> Regret:
    """The better of two radii, or of two sizes of cells where nothing is observed."""
    named = problem.observed is not None
    settings = RADII[problem.d] if named else CELLS[problem.d]
    found = [
        _cached(problem, sizes, setting, 1 if named else int(setting), setting if named else 1.0)
        for setting in settings
    ]
    return min(found, key=lambda each: float(each.final.mean()))


def _cached(problem: Problem, sizes: Sizes, setting: float, k: int, radius: float) -> Regret:
    CACHE.mkdir(parents=True, exist_ok=True)
    key = f"{problem.name}-{setting}-{sizes.pulls}-{sizes.seeds}-{sizes.batch}".replace(" ", "")
    path = CACHE / f"mabwiser-{key}-{problem.fingerprint()}.npy"
    if not path.exists():
        found = regret(problem, sizes, lambda seed: MABWiser(problem, seed, k, radius))
        np.save(path, found.cumulative)
    return Regret(np.load(path))


PEERS = {"epsilon-greedy": epsilon_greedy, "MABWiser": mabwiser}


def measured(policy: str) -> Callable[[Sizes], Iterator[Row]]:
    def rows(sizes: Sizes) -> Iterator[Row]:
        for problem in PROBLEMS:
            started = process_time()
            ours = regret(
                problem,
                sizes,
                lambda seed, p=problem: FieldBandit(
                    p.arms, policy, observed=p.observed, random_state=seed
                ),
            )
            taken = (process_time() - started) / (sizes.pulls * sizes.seeds)
            mine, name = float(ours.final.mean()), f"{policy}, {problem.name}"
            for peer, of in PEERS.items():
                theirs = of(problem, sizes)
                other = float(theirs.final.mean())
                numbers = {"ours": mine, peer: other, f"b of {peer}": theirs.exponent()}
                yield Row(f"{name}: regret to {peer}", mine / other, "×", BELOW, numbers, "")
            numbers = {"ms a pull": 1e3 * taken}
            yield Row(f"{name}: exponent b", ours.exponent(), "", SUBLINEAR, numbers, "")

    return rows


MEASUREMENTS = {"thompson": measured("thompson"), "ucb": measured("ucb")}


if __name__ == "__main__":
    run(
        "Bandits: cumulative regret, rewards after batches of 100 pulls",
        __doc__,
        MEASUREMENTS,
        full=Sizes(10_000, 3),
        quick=Sizes(500, 1),
        results=RESULTS,
    )
