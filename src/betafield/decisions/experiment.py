"""Ask where to test next, tell what happened.

An experiment is a model, a goal and a list of trials. What it asks next is a function of the
seed and of that list: there is no other state, so that a saved experiment goes on as if it had
never stopped.

Where to test is found by `placing`, what that is worth is said by `acquisition`, what is known by
`goals`, and `records` has the list and its file.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Iterator, Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
import numpy.typing as npt

from betafield.decisions import acquisition, records
from betafield.decisions.acquisition import Scene
from betafield.decisions.goals import PLAIN, Compare, Goal, View
from betafield.decisions.placing import Placing
from betafield.decisions.records import ABANDONED, PENDING, STATES, TOLD, History
from betafield.decisions.space import Space, seed_of

if TYPE_CHECKING:
    from betafield.estimators import SmoothBetaClassifier

Floats = npt.NDArray[np.float64]

# Trials from which on the default model has one window, which is quick to ask.
MANY_TRIALS = 1 << 11
LEVEL = 0.95


class Trial(Mapping[str, float]):
    """A point to test: a mapping of features to values.

    Attributes
    ----------
    id : int
        Its place in the list of trials.
    why : str
        Which quantity decided, with its value.
    """

    __slots__ = ("_values", "id", "why")

    def __init__(self, id: int, values: Mapping[str, float], why: str) -> None:  # noqa: A002
        self.id = id
        self.why = why
        self._values = dict(values)

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Trial({self._values}, id={self.id}, why={self.why!r})"


class Experiment:
    """Where to test next, given what came out so far.

    Parameters
    ----------
    space : mapping of str to (low, high)
        The features of a trial and their bounds.
    goal : Everywhere, LevelSet, Maximize, Minimize or Compare
        What the trials are for.
    model : SmoothBetaClassifier, default=None
        What learns from them; a copy is taken, with all that it has learned. Without `bounds` it
        gets those of the space. None: all widths weighed ("auto") up to 2,048 trials, from there
        on the best one ("loo"), which is quicker.
    random_state : int, default=None
        The seed. With the same seed and the same trials, asks are the same.
    strategy : str, default=None
        How a goal is pursued; None: the first that the goal has. "random" and "sobol" place
        trials without looking at outcomes.
    spread : float, default=0.0
        The least distance from all earlier trials, as a share of the sides of the space, so that
        nobody sees the same stimulus twice.
    observed : list of str, default=()
        Features that are not chosen, such as the age of who is tested: each ask is told them in
        `fixed`.

    Attributes
    ----------
    model : SmoothBetaClassifier
        What was learned so far.

    Examples
    --------
    At which difficulty do half of the answers come right? (At 0.6.)

    >>> import numpy as np
    >>> from betafield.decisions import Experiment, LevelSet
    >>> experiment = Experiment({"difficulty": (0, 1)}, LevelSet(0.5), random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(100):
    ...     trial = experiment.ask()
    ...     experiment.tell(trial, success=rng.uniform() < (trial["difficulty"] < 0.6))
    >>> bool(abs(experiment.status()["known"]["threshold"] - 0.6) < 0.02)
    True
    """

    def __init__(
        self,
        space: Any,
        goal: Any,
        model: Any = None,
        random_state: int | None = None,
        strategy: str | None = None,
        spread: float = 0.0,
        observed: Any = (),
    ) -> None:
        self._space = Space.of(space, observed)
        self._goal = _checked_goal(goal)
        self._placing = Placing(
            self._space,
            self._goal,
            _checked_strategy(strategy, self._goal),
            _checked_spread(spread, self._goal),
            seed_of(random_state),
        )
        self._is_default = model is None
        self.model: SmoothBetaClassifier = _engine(model, self._space)
        self._history = History(len(self._space.names))

    # Asking.

    @overload
    def ask(self, n: None = None, *, fixed: Any = None) -> Trial: ...
    @overload
    def ask(self, n: int, *, fixed: Any = None) -> list[Trial]: ...
    def ask(self, n: int | None = None, *, fixed: Any = None) -> Trial | list[Trial]:
        """Return the trial to make next, or a list of n, none of them twice.

        They are pending until they are told or abandoned, in any order.

        Parameters
        ----------
        n : int, default=None
            How many; None: one, and not in a list.
        fixed : mapping, default=None
            Values of features that are not to be chosen this time; those observed must be there.

        Examples
        --------
        >>> from betafield.decisions import Everywhere
        >>> space = {"dose": (0, 10), "age": (18, 90)}
        >>> experiment = Experiment(space, Everywhere(), random_state=0, observed=["age"])
        >>> trial = experiment.ask(fixed={"age": 40})
        >>> trial["age"], 0 <= trial["dose"] <= 10
        (40.0, True)
        """
        held = self._held(fixed)
        batch: list[tuple[Floats, str]] = []
        for _ in range(_checked_number(n)):
            before = [row for row, _ in batch]
            batch.append(self._placing.next(self.model, self._history, held, before))
        trials = [self._trial(self._history.add(row, why)) for row, why in batch]
        return trials[0] if n is None else trials

    def _held(self, fixed: Any) -> Floats:
        """Return the values that are fixed, NaN for those to be chosen."""
        values = self._space.some("fixed", {} if fixed is None else fixed)
        for name in self._space.observed:
            if name not in values:
                raise KeyError(f"fixed: found no value of {name!r}, which is observed, not chosen")
        return np.array([values.get(name, np.nan) for name in self._space.names])

    # Telling.

    def tell(self, trial: Any, success: Any, context: Any = None) -> None:
        """Say how a trial ended.

        Parameters
        ----------
        trial : Trial or mapping
            One that was asked for, or any point of the space. Of one that was asked for, a `dict`
            is another trial.
        success : bool
        context : array of shape (p + 1,), default=None
            How the trial was distorted, see `betafield.contexts`.

        Raises
        ------
        ValueError
            Where it was told or abandoned before, or lies outside the space; nothing is counted.

        Examples
        --------
        >>> from betafield.decisions import Maximize
        >>> experiment = Experiment({"dose": (0, 10)}, Maximize(), random_state=0)
        >>> experiment.tell({"dose": 2.5}, success=False)
        >>> experiment.status()["told"]
        1
        """
        asked = self._place(trial) if isinstance(trial, Trial) else None
        row = self._space.row("trial", trial) if asked is None else self._history.row(asked)
        outcome = _checked_outcome(success)
        self._learn(row, outcome, context)
        place = self._history.add(row, "told without being asked for") if asked is None else asked
        self._history.end(place, TOLD, outcome, context)

    def _learn(self, row: Floats, outcome: bool, context: Any) -> None:
        """Teach the model one trial, or raise and change nothing."""
        model = self.model
        if self._is_default and self._history.told == MANY_TRIALS:
            model = copy.copy(model).set_params(bandwidth="loo")
        if hasattr(model, "n_trials_"):
            model.partial_fit(row[None], model.classes_[[int(outcome)]], context=context)
        else:
            model.partial_fit(row[None], [outcome], classes=[False, True], context=context)
        self.model = model

    def abandon(self, trial: Any) -> None:
        """Say that a trial that was asked for will not be made."""
        if not isinstance(trial, Trial):
            raise TypeError(
                f"trial: found {type(trial).__name__}; one that `ask` returned is needed"
            )
        self._history.end(self._place(trial), ABANDONED)

    def _place(self, trial: Trial) -> int:
        """Return the place of a trial that is pending."""
        place = trial.id
        known = isinstance(place, int) and 0 <= place < len(self._history)
        if not (known and self._space.point(self._history.row(place)) == dict(trial)):
            raise ValueError(f"trial: found {trial!r}, which is none of this experiment")
        state = self._history.state(place)
        if state != PENDING:
            raise ValueError(
                f"trial: number {place} was {STATES[state]} before; only pending trials can be "
                "told or abandoned"
            )
        return place

    # Knowing.

    def trials(self) -> list[dict[str, Any]]:
        """Return all trials in the order in which they came, one dict each.

        The features, and `id`, `state` ("pending", "told" or "abandoned"), `success`, `context`
        and `why`. Any dataframe library makes a table of it.
        """
        return [
            {**self._space.point(self._history.row(i)), **self._history.told_of(i)}
            for i in range(len(self._history))
        ]

    def pending(self) -> list[Trial]:
        """Return the trials that were asked for and not told or abandoned yet."""
        return [self._trial(i) for i in self._history.pending()]

    def _trial(self, place: int) -> Trial:
        history = self._history
        return Trial(place, self._space.point(history.row(place)), history.why(place))

    def status(self) -> dict[str, Any]:
        """Return what is known, how sure, and how many trials are still needed.

        Returns
        -------
        dict
            `told`, `pending`, `abandoned` : numbers of trials.
            `known` : what the goal asks for; None before the first trial.
            `unsure` : how unsure that is, and `means`: of what this is a measure.
            `enough` : whether that is at most the goal's `within`: the stopping rule.
            `still_needed` : trials until then, by the rate at which one gets surer; None: unknown.
            `guarantee` : what the stopping rule promises.
            `band` : what the finite-sample band says, where trials were placed without looking at
            outcomes ("random" and "sobol"); else None.

        Notes
        -----
        The stopping rule is about the posterior: if the model's windows suit π, its expectation
        of what is still wrong is at most `within`, however trials were placed and whenever one
        stops. The band holds whatever π is, if it changes no faster than the model's `lipschitz`,
        with probability 0.95 for a number of trials that was fixed before.
        """
        counts = {STATES[state]: self._history.count(state) for state in STATES}
        told = {name: counts[name] for name in ("told", "pending", "abandoned")}
        if not hasattr(self.model, "n_trials_"):
            none = ("known", "unsure", "means", "still_needed", "guarantee", "band")
            return told | dict.fromkeys(none) | {"enough": False}
        scene = self._placing.overview(self.model)
        rng = np.random.default_rng(self._placing.seed)
        draws = functools.partial(_drawn, scene, rng)
        known = self._goal.known(View(self._space, scene.rows, scene.posterior, draws))
        enough = known.unsure <= self._goal.within
        return told | {
            "known": known.known,
            "unsure": known.unsure,
            "means": known.means,
            "enough": enough,
            "still_needed": 0 if enough else self._still_needed(known.unsure),
            "guarantee": (
                f"enough where {known.means} is at most {self._goal.within:g} under the posterior, "
                "wherever trials were placed and whenever one stops, if the model is right"
            ),
            "band": self._proven(scene),
        }

    def _still_needed(self, unsure: float) -> int | None:
        ratio = self._goal.ratio(unsure, len(self._space.names))
        needed = float(self.model.n_trials_) * (ratio - 1.0)
        return max(1, math.ceil(needed)) if needed < 1e12 else None

    def _proven(self, scene: Scene) -> dict[str, Any] | None:
        """Return what the finite-sample band says, if its conditions are met."""
        if self._placing.strategy not in PLAIN or self.model._polynomials_:
            return None
        lipschitz = self.model.lipschitz
        band = self.model.band(scene.rows, lipschitz, level=LEVEL, simultaneous=True)
        return {"level": LEVEL, "lipschitz": float(lipschitz), **self._goal.proven(*band)}

    # Keeping.

    def save(self, path: Any) -> None:
        """Write the experiment to one file, from which `Experiment.load` gives it back.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from betafield.decisions import Everywhere
        >>> experiment = Experiment({"x": (0, 1)}, Everywhere(), random_state=0)
        >>> with TemporaryDirectory() as folder:
        ...     experiment.save(f"{folder}/dots.beta")
        ...     again = Experiment.load(f"{folder}/dots.beta")
        >>> again.ask() == experiment.ask()
        True
        """
        options = {
            "is_default": self._is_default,
            "seed": self._placing.seed,
            "spread": self._placing.spread,
            "strategy": self._placing.strategy,
        }
        records.save(path, options, self._space, self._goal, self.model, self._history)

    @classmethod
    def load(cls, path: Any) -> Self:
        """Return the experiment that `save` wrote, every value checked before it is used."""
        with records.sound(path):
            options, space, goal, model, history = records.load(path)
            experiment = cls(
                dict(zip(space.names, space.bounds, strict=True)),
                goal,
                model,
                options["seed"],
                options["strategy"],
                options["spread"],
                space.observed,
            )
        experiment._is_default = options["is_default"]
        experiment._history = history
        return experiment


def _drawn(scene: Scene, rng: np.random.Generator, n: int) -> Floats:
    return acquisition.many_fields(scene, n, rng)


# What is given, checked -------------------------------------------------------------------


def _checked_goal(goal: Any) -> Goal:
    if not isinstance(goal, Goal):
        raise TypeError(
            f"goal: found {goal!r}; allowed are Everywhere(), LevelSet(p), Maximize(), Minimize() "
            "and Compare(points)"
        )
    return goal


def _checked_strategy(strategy: Any, goal: Goal) -> str:
    if strategy is None:
        return goal.strategies[0]
    if strategy not in goal.strategies:
        allowed = ", ".join(map(repr, goal.strategies))
        raise ValueError(
            f"strategy: found {strategy!r}; for {type(goal).__name__} allowed are {allowed}"
        )
    return str(strategy)


def _checked_spread(spread: Any, goal: Goal) -> float:
    is_number = isinstance(spread, Real) and not isinstance(spread, bool)
    if not (is_number and 0.0 <= float(spread) < 1.0):
        raise ValueError(f"spread: found {spread!r}; a number from 0 to below 1 is needed")
    if spread and isinstance(goal, Compare):
        raise ValueError(f"spread: found {spread!r}, but compared points are tested repeatedly")
    return float(spread)


def _checked_number(n: Any) -> int:
    if n is None:
        return 1
    if isinstance(n, bool) or not isinstance(n, Integral) or int(n) < 1:
        raise ValueError(f"n: found {n!r}; a whole number from 1 is needed")
    return int(n)


def _checked_outcome(success: Any) -> bool:
    if isinstance(success, bool | np.bool_) or (isinstance(success, Real) and success in (0, 1)):
        return bool(success)
    raise ValueError(f"success: found {success!r}; True or False is needed")


def _engine(model: Any, space: Space) -> Any:
    """Return a model for this space that learns for itself."""
    from betafield.estimators import SmoothBetaClassifier

    bounds = [tuple(ends) for ends in space.bounds]
    if model is None:
        return SmoothBetaClassifier(bounds=bounds)
    if not isinstance(model, SmoothBetaClassifier):
        raise TypeError(f"model: found {type(model).__name__}; a SmoothBetaClassifier is needed")
    own = copy.copy(model)
    if hasattr(own, "n_trials_"):
        _require_fitting(own, space)
    elif own.bounds is None:
        own.set_params(bounds=bounds)
    return own


def _require_fitting(model: Any, space: Space) -> None:
    """Raise unless what the model has learned is of this space."""
    if model.n_features_in_ != len(space.names):
        raise ValueError(
            f"model: found one with {model.n_features_in_} features; the space has "
            f"{len(space.names)}"
        )
    if len(model.classes_) != 2:
        raise ValueError(f"model: found one with {len(model.classes_)} classes; two are needed")
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        raise ValueError(
            f"model: found one with named features, {list(names)}; fit it to an array whose "
            f"columns are {', '.join(space.names)}"
        )
