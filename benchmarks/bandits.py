"""What bandits lose while they learn, beside others: ``python benchmarks/bandits.py``.

Four problems over [0, 1]^d, d = 1 and 2: the best of a continuum of points (a hill and a lower
one), and the best of five named arms at a point that is observed. Where hills, peaks and waves are,
how high and how wide, is drawn anew in every run, from its seed and within the ranges of `hills`,
`peaks` and `waves`; so are what is observed and the luck of outcomes, all of it the same for every
learner. Rewards come after batches of 100 pulls. Of each learner the regret after 10,000 pulls,
mean over the seeds 0 to 4, and the exponent b with which it grows, n^b over the second half.

- epsilon-greedy: cells of a fixed size, the highest mean of the cell, and a share of all pulls at
  random: of four sizes and two shares the ones with the least regret;
- MABWiser: NeighborhoodPolicy.Radius with LearningPolicy.ThompsonSampling, of three radii the best.
  In a continuum nothing is observed, so that all trials are near; its arms are the centres of
  cells, of four sizes the best.

Theirs are the best settings on these very runs, in hindsight. Ours are the defaults of
`FieldBandit`, which were chosen on the seeds 100 to 114. Results of MABWiser are kept in
out/bandits, with the time they took. Rows show our regret divided by that of each peer, which
should be below 1, and the exponent.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from report import Row, Target, run

from betafield.decisions.bandit.arms import Arms
from betafield.decisions.bandit.bandit import FieldBandit
from betafield.decisions.bandit.pulls import Pull
from betafield.decisions.bandit.regret import Regret, simulate

RESULTS, CACHE = Path("out") / "bandits.json", Path("out") / "bandits"
Floats = NDArray[np.float64]
Truth = Callable[[Floats], Floats]
BELOW, SUBLINEAR = Target(1.0), Target(1.0)


@dataclass(frozen=True)
class Sizes:
    pulls: int
    seeds: int
    batch: int = 100


# What is to be found out --------------------------------------------------------------------


def hills(seed: int, d: int) -> Truth:
    """A hill on a plain of 0.2, and another of 0.6 to 0.9 of its height, 0.35 away at least.

    The higher one rises by 0.4 to 0.6; widths are 0.08 to 0.16 in 1-D, 0.15 to 0.25 in 2-D.
    """
    rng = np.random.default_rng([seed, d, 7])
    places = rng.uniform(0.05, 0.95, (2, d))
    while np.hypot.reduce(places[0] - places[1]) < 0.35:
        places = rng.uniform(0.05, 0.95, (2, d))
    widths = rng.uniform(*((0.08, 0.16) if d == 1 else (0.15, 0.25)), 2)
    heights = rng.uniform(0.4, 0.6) * np.array([1.0, rng.uniform(0.6, 0.9)])

    def truth(X: Floats) -> Floats:
        far = ((X[:, None] - places) ** 2).sum(axis=2)
        return np.asarray(0.2 + np.exp(-far / widths**2) @ heights)

    return truth


def peaks(seed: int, d: int) -> Truth:
    """Five arms, each best around a value of its own: by 0.4 to 0.7, over a width of 0.1 to 0.3."""
    rng = np.random.default_rng([seed, d, 8])
    places, widths = rng.uniform(0.0, 1.0, 5), rng.uniform(0.1, 0.3, 5)
    heights = rng.uniform(0.4, 0.7, 5)
    return lambda X: np.asarray(0.15 + heights * np.exp(-(((X - places) / widths) ** 2)))


def waves(seed: int, d: int) -> Truth:
    """Five arms, each a wave in a direction of its own: 0.5 ± 0.2 to 0.4, 0.8 to 1.6 long."""
    rng = np.random.default_rng([seed, d, 9])
    turn, phase = rng.uniform(0.0, 2 * np.pi, (2, 5))
    heights, lengths = rng.uniform(0.2, 0.4, 5), rng.uniform(0.8, 1.6, 5)
    ways = np.stack([np.cos(turn), np.sin(turn)]) / lengths
    return lambda X: np.asarray(0.5 + heights * np.sin(2 * np.pi * (X @ ways) + phase))


BOX = {1: {"x": (0, 1)}, 2: {"x": (0, 1), "y": (0, 1)}}
NAMES = ["a", "b", "c", "d", "e"]


@dataclass(frozen=True)
class Problem:
    name: str
    arms: Any
    observed: Any
    family: Callable[[int, int], Truth]
    d: int

    def truth(self, seed: int) -> Truth:
        return self.family(seed, self.d)

    def fingerprint(self, seed: int) -> str:
        values = np.round(self.truth(seed)(np.random.default_rng(0).random((64, self.d))), 9)
        return hashlib.sha256(values.tobytes()).hexdigest()[:8]


PROBLEMS = (
    Problem("continuum, 1-D", BOX[1], None, hills, 1),
    Problem("continuum, 2-D", BOX[2], None, hills, 2),
    Problem("named arms, 1-D", NAMES, BOX[1], peaks, 1),
    Problem("named arms, 2-D", NAMES, BOX[2], waves, 2),
)
EPSILONS = (0.03, 0.1)
CELLS = {1: (8, 12, 16, 24), 2: (4, 6, 9, 12)}
RADII = {1: (0.03, 0.06, 0.12), 2: (0.07, 0.12, 0.2)}


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
    def __init__(self, problem: Problem, seed: int, k: int, epsilon: float) -> None:
        super().__init__(problem, seed, k)
        self.epsilon = epsilon
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
        explores = self.rng.random(len(given)) < self.epsilon
        return np.where(explores, self.rng.integers(self.n_arms, size=len(given)), best)

    def learn(self, arms: Any, rewards: Floats, given: Floats) -> None:
        np.add.at(self.held, (self.cell(given), arms), 1.0)
        np.add.at(self.won, (self.cell(given), arms), rewards)


class MABWiser(Peer):
    def __init__(self, problem: Problem, seed: int, k: int, radius: float | None) -> None:
        from mabwiser.mab import MAB, LearningPolicy, NeighborhoodPolicy

        super().__init__(problem, seed, k)
        near = None if radius is None else NeighborhoodPolicy.Radius(radius)
        arms, policy = list(range(self.n_arms)), LearningPolicy.ThompsonSampling()
        self.mab, self.knows = MAB(arms, policy, near, seed=seed), False

    def chosen(self, given: Floats) -> Any:
        if not self.knows:
            return self.rng.integers(self.n_arms, size=len(given))
        if not self.named:
            return [self.mab.predict() for _ in given]
        return np.atleast_1d(self.mab.predict(given))

    def learn(self, arms: Any, rewards: Floats, given: Floats) -> None:
        more = (given,) if self.named else ()
        (self.mab.partial_fit if self.knows else self.mab.fit)(arms, rewards, *more)
        self.knows = True


# Measuring ----------------------------------------------------------------------------------

Make = Callable[[int], Any]


def regret(problem: Problem, sizes: Sizes, make: Make, seed: int) -> Floats:
    """Return the cumulative regret of one run, in the field of its seed."""
    truth = problem.truth(seed)
    return np.asarray(simulate(make, truth, sizes.pulls, [seed], batch=sizes.batch).cumulative[0])


def regrets(problem: Problem, sizes: Sizes, make: Make) -> Regret:
    return Regret([regret(problem, sizes, make, seed) for seed in range(sizes.seeds)])


def epsilon_greedy(problem: Problem, sizes: Sizes) -> Iterator[tuple[str, Regret]]:
    for k, epsilon in product(CELLS[problem.d], EPSILONS):
        found = regrets(problem, sizes, lambda s, k=k, e=epsilon: EpsilonGreedy(problem, s, k, e))
        yield f"{k} cells a side, epsilon {epsilon:g}", found


def mabwiser(problem: Problem, sizes: Sizes) -> Iterator[tuple[str, Regret]]:
    if problem.observed is not None:
        for radius in RADII[problem.d]:
            yield f"radius {radius:g}", _cached(problem, sizes, 1, radius)
    else:
        for k in CELLS[problem.d]:
            yield f"{k} cells a side", _cached(problem, sizes, k, None)


def _cached(problem: Problem, sizes: Sizes, k: int, radius: float | None) -> Regret:
    """Return the regret of MABWiser, from files where it is known."""
    CACHE.mkdir(parents=True, exist_ok=True)
    runs = []
    for seed in range(sizes.seeds):
        key = f"{problem.name}-{k}-{radius}-{sizes.pulls}-{sizes.batch}-{seed}".replace(" ", "")
        path = CACHE / f"mabwiser-{key}-{problem.fingerprint(seed)}.npz"
        if not path.exists():
            started = process_time()
            found = regret(problem, sizes, lambda s: MABWiser(problem, s, k, radius), seed)
            np.savez(path, regret=found, seconds=process_time() - started)
        with np.load(path) as kept:
            runs.append(kept["regret"])
    return Regret(runs)


PEERS = {"epsilon-greedy": epsilon_greedy, "MABWiser": mabwiser}


def best(peer: str, problem: Problem, sizes: Sizes) -> tuple[str, Regret]:
    """Return the setting of a peer that turned out best, and its regret."""
    return min(PEERS[peer](problem, sizes), key=lambda each: float(each[1].final.mean()))


def measured(policy: str) -> Callable[[Sizes], Iterator[Row]]:
    def ours(problem: Problem) -> Make:
        return lambda seed: FieldBandit(
            problem.arms, policy, observed=problem.observed, random_state=seed
        )

    def rows(sizes: Sizes) -> Iterator[Row]:
        for problem in PROBLEMS:
            started = process_time()
            mine = regrets(problem, sizes, ours(problem))
            taken = (process_time() - started) / (sizes.pulls * sizes.seeds)
            final, name = float(mine.final.mean()), f"{policy}, {problem.name}"
            for peer in PEERS:
                setting, theirs = best(peer, problem, sizes)
                other = float(theirs.final.mean())
                numbers = {"ours": final, setting: other, "its b": theirs.exponent()}
                yield Row(f"{name}: regret to {peer}", final / other, "×", BELOW, numbers, "")
            numbers = {
                "lowest": float(mine.final.min()),
                "highest": float(mine.final.max()),
                "ms per pull": 1e3 * taken,
            }
            yield Row(f"{name}: exponent b", mine.exponent(), "", SUBLINEAR, numbers, "")

    return rows


MEASUREMENTS = {"thompson": measured("thompson"), "ucb": measured("ucb")}


if __name__ == "__main__":
    run(
        "Bandits: cumulative regret, rewards after batches of 100 pulls",
        __doc__,
        MEASUREMENTS,
        full=Sizes(10_000, 5),
        quick=Sizes(500, 1),
        results=RESULTS,
    )
