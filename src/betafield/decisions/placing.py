"""Where to test next: candidates, what each is worth, and the one to take.

1. Candidates: a scrambled Sobol set, the same in every ask, with the values that are fixed.
2. Their posteriors, by the model; what each is worth by the strategy (`acquisition`).
3. The one that is worth most, or one drawn in proportion; and again among points around it.

Trials that are pending are kept away from: what a candidate is worth shrinks with its distance
to them, in widths of the model's window. Everything drawn comes from the seed and the number of
trials before, so that nothing is to be remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from betafield.decisions import acquisition
from betafield.decisions.acquisition import Scene, Scores
from betafield.decisions.goals import PLAIN, Goal
from betafield.decisions.records import TOLD, History
from betafield.decisions.space import Space
from betafield.decisions.standing import StandingPoints

if TYPE_CHECKING:
    from betafield.posteriors import Posterior

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
# A new generator each time, all alike.
Dice = Callable[[], np.random.Generator]

# Points around the best candidate that are tried too.
NEAR = 32


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
        The least distance from earlier trials, in shares of the sides.
    seed : int
    """

    space: Space
    goal: Goal
    strategy: str
    spread: float
    seed: int
    _last: tuple[Any, Scene] | None = field(default=None, init=False)
    _standing: StandingPoints | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.goal.only(self.space)  # which raises where the goal is none for this space

    @cached_property
    def only(self) -> Floats | None:
        """The points that are compared, if they are all there is to choose from."""
        return self.goal.only(self.space)

    @cached_property
    def candidates(self) -> Floats:
        """The points among which every ask looks first."""
        return self.space.candidates(self.seed) if self.only is None else self.only

    @property
    def start(self) -> int:
        """Trials that are spread over the space before much is known."""
        return 4 * (1 + len(self.space.names)) if self.only is None else len(self.only)

    def next(
        self, model: Any, history: History, held: Floats, batch: list[Floats]
    ) -> tuple[Floats, str]:
        """Return the next point, and why.

        Parameters
        ----------
        model : SmoothBetaClassifier
        history : History
        held : array of shape (d,)
            Values that are fixed; NaN for those to be chosen.
        batch : list of arrays of shape (d,)
            What will be pending before it.
        """
        k = len(history) + len(batch)
        pending = np.array([*history.pending_rows(), *batch]).reshape(-1, len(held))
        allowed = self._rule(history, pending)
        if self.strategy in PLAIN:
            return self._plain(self.strategy, k, held, allowed), f"{self.strategy} placement"
        learned = getattr(model, "n_trials_", 0)
        if not learned or learned + len(pending) < self.start:
            why = f"one of the first {self.start}, spread over the space before much is known"
            return self._plain("sobol", k, held, allowed), why
        return self._best(model, history.told, held, allowed, pending, self._dice(k))

    def overview(self, model: Any) -> Scene:
        """Return the candidates and their posteriors, nothing fixed."""
        return self._at(model, self.candidates)

    def _dice(self, k: int) -> Dice:
        """Return what makes generators for the ask after k trials."""
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
            # Of those that come next, the first that is far enough.
            rows = self.space.sobol(len(self.candidates) if self.spread else 1, self.seed, k)
        rows = np.where(np.isnan(held), rows, held)
        return np.asarray(rows[int(np.argmax(allowed(rows)))])

    def _best(
        self,
        model: Any,
        told: int,
        held: Floats,
        allowed: Callable[[Floats], Bools],
        pending: Floats,
        dice: Dice,
    ) -> tuple[Floats, str]:
        """Return the point that the strategy finds best, and why."""
        scene = self._scene(model, told, held)
        row, value, scores = self._pick(scene, allowed(scene.rows), pending, dice)
        n = len(scene.rows)
        if self.only is None and np.isnan(held).any():
            near = self._at(model, self._around(row, held, dice()))
            # The row itself is among them, and is allowed.
            row, value, scores = self._pick(near, allowed(near.rows), pending, dice)
            n += NEAR - 1
        how = "the highest" if scores.power is None else f"drawn by its power of {scores.power:.0f}"
        return row, f"{scores.quantity} is {value:.3g} here, {how} among {n} candidates"

    def _pick(
        self, scene: Scene, may: Bools, pending: Floats, dice: Dice
    ) -> tuple[Floats, float, Scores]:
        """Return the candidate to take, what it is worth, and what all are worth."""
        scores = acquisition.STRATEGIES[self.strategy](scene, dice())
        worth = scores.values
        if len(pending) and self.only is None and self.strategy != "thompson":
            worth = worth * self._apart(scene, pending)
        if scores.power is not None:
            # The highest of log-scores with Gumbel noise is drawn in proportion to scores.
            noise = dice().spawn(1)[0].gumbel(size=len(worth))
            worth = scores.power * np.log(np.maximum(worth, np.finfo(float).tiny)) + noise
        best = int(np.argmax(np.where(may, worth, -np.inf)))
        return scene.rows[best], float(scores.values[best]), scores

    def _scene(self, model: Any, told: int, held: Floats) -> Scene:
        """Return the candidates with what is fixed, computed once after each tell."""
        key = told, held.tobytes()
        if self._last is None or self._last[0] != key:
            rows, free = self.candidates, np.isnan(held)
            if self.only is not None:
                rows = _matching(rows, held)
            elif not free.all():
                rows = np.where(free, rows, held)[: None if free.any() else 1]
            self._last = key, self._at(model, rows, self._points(rows).posterior(model))
        return self._last[1]

    def _points(self, rows: Floats) -> StandingPoints:
        """Return the points that are asked for, which are mostly those of the ask before."""
        if self._standing is None or not np.array_equal(self._standing.rows, rows):
            self._standing = StandingPoints(rows)
        return self._standing

    def _at(self, model: Any, rows: Floats, posterior: Posterior | None = None) -> Scene:
        found = model.posterior(rows) if posterior is None else posterior
        return Scene(model, self.goal, rows, self.space.shares(rows), found)

    def _around(self, row: Floats, held: Floats, rng: np.random.Generator) -> Floats:
        """Return the row and points around it, about as far as its neighbours are."""
        free = np.isnan(held)
        reach = len(self.candidates) ** (-1.0 / np.count_nonzero(free))
        steps = rng.uniform(-reach, reach, (NEAR, len(row)))
        rows = self.space.rows(np.clip(self.space.shares(row[None]) + steps, 0.0, 1.0))
        rows[0] = row
        return np.where(free, rows, row)

    def _apart(self, scene: Scene, pending: Floats) -> Floats:
        """Return what is left of scores near pending trials: the distance in windows, up to 1."""
        stretch = acquisition.windows_a_side(scene.model)
        steps = (scene.shares[:, None, :] - self.space.shares(pending)) * stretch
        return np.asarray(np.minimum(np.sqrt((steps**2).sum(axis=2)), 1.0).prod(axis=1))

    def _rule(self, history: History, pending: Floats) -> Callable[[Floats], Bools]:
        """Return which rows may be asked for: none that is pending, none nearer than `spread`."""

        def allowed(rows: Floats) -> Bools:
            same = (rows[:, None, :] == pending).all(axis=2)
            if self.only is not None:
                times = same.sum(axis=1)
                return np.asarray(times == times.min())
            free = ~same.any(axis=1)
            if self.spread:
                free &= self._is_spread(rows, history, pending)
            if not free.any():
                raise ValueError(
                    f"spread: none of {len(rows)} candidates is {self.spread:g} away from all "
                    f"{len(history)} trials so far, and none may be asked for twice"
                )
            return np.asarray(free)

        return allowed

    def _is_spread(self, rows: Floats, history: History, pending: Floats) -> Bools:
        from scipy.spatial import cKDTree

        earlier = np.concatenate([history.rows(TOLD), pending])
        if not len(earlier):
            return np.ones(len(rows), dtype=np.bool_)
        nearest, _ = cKDTree(self.space.shares(earlier)).query(self.space.shares(rows))
        return np.asarray(nearest >= self.spread)


def _matching(rows: Floats, held: Floats) -> Floats:
    """Return the points of a comparison that have these values."""
    found: Floats = rows[((rows == held) | np.isnan(held)).all(axis=1)]
    if not len(found):
        raise ValueError("fixed: found values that none of the compared points has")
    return found
