"""Where to test next: candidates, their scores, and the choice.

1. The candidates are a scrambled Sobol set, the same in every ask, with fixed values inserted.
2. The model gives their posteriors, and the strategy their scores (`acquisition`).
3. The one with the highest score is taken, or one is drawn in proportion; then this is repeated
   among points around it.

Trials that the posterior does not include, pending ones and those of the round (`learner`), repel:
the score of a candidate shrinks with its distance to them, within the reach of a trial. All random
numbers come from the seed and the number of earlier trials, so no other state is needed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import bandwidth
from betafield._locks import cached
from betafield.decisions.experiment.acquisition import STRATEGIES, Scene, Scores
from betafield.decisions.experiment.goals import PLAIN, Goal
from betafield.decisions.experiment.history import History
from betafield.decisions.experiment.learner import Learner, categories_of
from betafield.decisions.experiment.neighbours import Neighbours
from betafield.decisions.experiment.standing import StandingPoints
from betafield.decisions.space import Space

if TYPE_CHECKING:
    from betafield.methods import AnyField

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
# Returns a new generator with the same seed on every call.
Dice = Callable[[], np.random.Generator]


class Unknown(NamedTuple):
    """Trials (n, d) that the posterior does not include: told in this round, and pending."""

    told: Floats
    pending: Floats


@dataclass
class Placing:
    """How trials are placed.

    Parameters
    ----------
    space : Space
    goal : Goal
    strategy : str
        One of the goal's.
    spread : float
        The least distance from earlier trials, as a fraction of the sides.
    seed : int
    near : int, default=32
        Number of points to try around the best candidate.
    block : int, default=1 << 20
        Most differences between candidates and pending trials that are computed at once.

    Attributes
    ----------
    only : array of shape (m, d), or None
        The points to compare, if there are no others to choose from.
    """

    space: Space
    goal: Goal
    strategy: str
    spread: float
    seed: int
    near: int = 32
    block: int = 1 << 20
    only: Floats | None = field(init=False)
    # Computed for the last ask; and the trials told up to then.
    _last: tuple[AnyField, bytes, Scene] | None = field(default=None, init=False)
    _standing: StandingPoints | None = field(default=None, init=False)
    _told: Neighbours = field(default_factory=Neighbours, init=False)
    # The last result with its inputs, so that an ask that was prepared finds it.
    _found: tuple[AnyField, tuple[int, int, bytes, bytes], tuple[Floats, str]] | None = field(
        default=None, init=False
    )
    # Factors on the candidates' scores due to trials of the round, and the number of these trials.
    _left: tuple[Scene, int, Floats] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.only = self.goal.only(self.space)

    @cached
    def candidates(self) -> Floats:
        """The candidates that every ask considers first."""
        return self.space.candidates(self.seed) if self.only is None else self.only

    @property
    def start(self) -> int:
        """The number of trials that are spread over the space before much is known."""
        return 4 * (1 + len(self.space.names)) if self.only is None else len(self.only)

    def next(
        self,
        learner: Learner,
        history: History,
        held: Floats,
        batch: list[tuple[Floats, str]],
    ) -> tuple[Floats, str]:
        """Return the next point, and why.

        Parameters
        ----------
        learner : Learner
        history : History
        held : array of shape (d,)
            Fixed values; NaN for those to choose.
        batch : list of earlier results
            Points of the same batch, which will be pending too.
        """
        k = len(history) + len(batch)
        pending = history.pending_rows([row for row, _ in batch])
        allowed = functools.partial(self._allowed, self._rooms(history, pending), pending)
        if self.strategy in PLAIN:
            return self._plain(self.strategy, k, held, allowed), f"{self.strategy} placement"
        field = learner.field
        if field is None or learner.model.n_trials_ + len(pending) < self.start:
            why = f"one of the first {self.start}, spread over the space before much is known"
            return self._plain("sobol", k, held, allowed), why
        key = k, learner.n_since, held.tobytes(), pending.tobytes()
        if self._found is None or self._found[0] is not field or self._found[1] != key:
            unknown = Unknown(history.last_told_rows(learner.n_since), pending)
            best = self._best(field, held, allowed, unknown, self._dice(k))
            self._found = field, key, best
        return self._found[2]

    def overview(self, field: AnyField) -> Scene:
        """Return the candidates and their posteriors, with nothing fixed."""
        return self._at(field, self.candidates)

    def _dice(self, k: int) -> Dice:
        """Return the factory of generators for the ask after k trials."""
        return lambda: np.random.default_rng([self.seed, k])

    def _plain(
        self, strategy: str, k: int, held: Floats, allowed: Callable[[Floats], Bools]
    ) -> Floats:
        """Return a point that does not depend on outcomes."""
        rng = self._dice(k)()
        if self.only is not None:
            n = len(self.only)
            order = rng.permutation(n) if strategy == "random" else (np.arange(n) + k) % n
            rows = _matching(self.only[order], held)
        elif strategy == "random":
            rows = self.space.rows(rng.random((len(self.candidates), len(held))))
        else:
            # With a spread, more than one is needed to find one that is far enough.
            rows = self.space.sobol(len(self.candidates) if self.spread else 1, self.seed, k)
        rows = np.where(np.isnan(held), rows, held)
        return np.asarray(rows[int(np.argmax(allowed(rows)))])

    def _best(
        self,
        field: AnyField,
        held: Floats,
        allowed: Callable[[Floats], Bools],
        unknown: Unknown,
        dice: Dice,
    ) -> tuple[Floats, str]:
        """Return the point that the strategy chooses, and why."""
        scene = self.scene(field, held)
        row, value, scores = self._pick(scene, allowed(scene.rows), unknown, dice)
        n = len(scene.rows)
        if self.only is None and np.isnan(held).any() and self.strategy != "threshold":
            near = self._at(field, self._around(row, held, dice()))
            # The row itself is among them, and is allowed.
            row, value, scores = self._pick(near, allowed(near.rows), unknown, dice)
            n += self.near - 1
        how = "the highest" if scores.power is None else f"drawn by its power of {scores.power:.0f}"
        return row, f"{scores.quantity} is {value:.3g} here, {how} among {n} candidates"

    def _pick(
        self, scene: Scene, may: Bools, unknown: Unknown, dice: Dice
    ) -> tuple[Floats, float, Scores]:
        """Return the candidate to take, its score, and the scores of all."""
        scores = STRATEGIES[self.strategy](scene, dice())
        worth = scores.values
        if scores.power is not None:
            # The maximum of log-scores plus Gumbel noise is a draw in proportion to scores.
            noise = dice().spawn(1)[0].gumbel(size=len(worth))
            worth = scores.power * _log(worth) + noise
        if self.only is None and self.strategy != "thompson":
            apart = self._apart(scene, unknown)
            worth = worth * apart if scores.power is None else worth + _log(apart)
        best = int(np.argmax(np.where(may, worth, -np.inf)))
        return scene.rows[best], float(scores.values[best]), scores

    def scene(self, field: AnyField, held: Floats) -> Scene:
        """Return the candidates with fixed values inserted, computed once after each tell."""
        key = held.tobytes()
        if self._last is None or self._last[0] is not field or self._last[1] != key:
            rows, free = self.candidates, np.isnan(held)
            if self.only is not None:
                rows = _matching(rows, held)
            elif not free.all():
                rows = np.where(free, rows, held)[: None if free.any() else 1]
            points = self._points(self.space.coded(rows, categories_of(field)))
            ask = functools.partial(points.posterior, field)
            scene = Scene(self.space, field, self.goal, rows, ask, self.seed)
            self._last = field, key, scene
        return self._last[2]

    def _points(self, rows: Floats) -> StandingPoints:
        """Return the points to query, reusing those of the last ask if they are the same."""
        if self._standing is None or not np.array_equal(self._standing.rows, rows):
            self._standing = StandingPoints(rows)
        return self._standing

    def _at(self, field: AnyField, rows: Floats) -> Scene:
        ask = functools.partial(field.posterior, self.space.coded(rows, categories_of(field)))
        return Scene(self.space, field, self.goal, rows, ask, self.seed)

    def _around(self, row: Floats, held: Floats, rng: np.random.Generator) -> Floats:
        """Return the row and points around it, about as far away as neighbouring candidates."""
        free = np.isnan(held)
        reach = len(self.candidates) ** (-1.0 / np.count_nonzero(free))
        steps = rng.uniform(-reach, reach, (self.near, len(row)))
        rows = self.space.rows(np.clip(self.space.shares(row[None]) + steps, 0.0, 1.0))
        rows[0] = row
        return np.where(free, rows, row)

    def _apart(self, scene: Scene, unknown: Unknown) -> Floats:
        """Return the factors on scores near trials that the posterior does not include."""
        return self._after_round(scene, unknown.told) * self._between(scene, unknown.pending)

    def _after_round(self, scene: Scene, told: Floats) -> Floats:
        """Return the factors due to trials of the round, which are applied one after the other."""
        if self._last is None or scene is not self._last[2]:
            return self._between(scene, told)
        if self._left is None or self._left[0] is not scene:
            self._left = scene, 0, np.ones(len(scene.rows))
        _, n, left = self._left
        for row in told[n:]:
            left = left * self._between(scene, row[None])
        self._left = scene, len(told), left
        return left

    def _between(self, scene: Scene, rows: Floats) -> Floats:
        """Return the product of the distances to rows, each at most 1.

        The unit is the reach of a trial, but at most the theoretical width, because with many
        trials the influence of one extends over less than the process's length scales.
        """
        widest = bandwidth.theory(scene.field.totals.number(), len(self.space.names), 1.0)
        (_, reach), *_ = scene.reaches
        unit, shares = np.minimum(reach, widest), self.space.shares(rows)
        size = max(1, self.block // max(1, shares.size))
        found = [
            _product(scene.shares[i : i + size], shares, unit)
            for i in range(0, len(scene.shares), size)
        ]
        return np.concatenate(found)

    def _allowed(
        self, distances: Callable[[Floats], Floats] | None, pending: Floats, rows: Floats
    ) -> Bools:
        """Return which rows may be asked for: not pending, and no nearer than `spread`."""
        same = (rows[:, None, :] == pending).all(axis=2)
        if self.only is not None:
            times = same.sum(axis=1)
            return np.asarray(times == times.min())
        free = ~same.any(axis=1)
        if distances is not None:
            free &= distances(rows) >= self.spread
        if not free.any():
            if self.space.is_finite and not self.spread:
                times = same.sum(axis=1)
                return np.asarray(times == times.min())
            if self.spread:
                what = f"spread: none of {len(rows)} candidates is {self.spread:g} away from all"
            else:
                what = f"fixed: found values that leave {len(rows)} candidates, all among the"
            raise ValueError(f"{what} trials so far, and no point may be asked for twice")
        return np.asarray(free)

    def _rooms(self, history: History, pending: Floats) -> Callable[[Floats], Floats] | None:
        """Return the function of distances from all trials, as fractions; None if not needed."""
        if not self.spread:
            return None
        self._told.add(self.space.shares(history.told_rows(start=sum(self._told.sizes))))
        waiting = Neighbours()
        waiting.add(self.space.shares(pending))

        def distances(rows: Floats) -> Floats:
            shares = self.space.shares(rows)
            return np.minimum(self._told.distances(shares), waiting.distances(shares))

        return distances


def _product(ones: Floats, others: Floats, unit: Floats) -> Floats:
    """Return the product of each row's distances to the others, in this unit, each at most 1."""
    steps = (ones[:, None, :] - others) / unit
    return np.asarray(np.minimum(np.sqrt((steps**2).sum(axis=2)), 1.0).prod(axis=1))


def _log(values: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(values, np.finfo(float).tiny)))


def _matching(rows: Floats, held: Floats) -> Floats:
    """Return the compared points that have these fixed values."""
    found: Floats = rows[((rows == held) | np.isnan(held)).all(axis=1)]
    if not len(found):
        raise ValueError("fixed: found values that none of the compared points has")
    return found
