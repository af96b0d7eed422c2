"""`Experiment`, which asks where to test next and records what it is told."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, NamedTuple, Self, overload

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield._locks import writing
from betafield.decisions.experiment.acquisition import Scene, many_fields
from betafield.decisions.experiment.file import Saved, load, save
from betafield.decisions.experiment.goals import LEVEL, PLAIN, Compare, Goal, View
from betafield.decisions.experiment.history import History, Trial, claimed, is_same
from betafield.decisions.experiment.learner import Learner, has_learned
from betafield.decisions.experiment.placing import Placing
from betafield.decisions.results import contexts, outcomes
from betafield.decisions.space import Space, seed_of
from betafield.options import Options

if TYPE_CHECKING:
    from betafield.estimators import SmoothBetaClassifier

Floats = npt.NDArray[np.float64]

# Most trials in one batch, because all are kept until they are told.
MOST_TRIALS = 1 << 20
UNASKED = "told without being asked for"


class Experiment:
    """Decide where to test next, given the outcomes so far.

    Parameters
    ----------
    space : mapping of str to (low, high), Log, Integer or list of levels
        The features of a trial and their bounds. Levels are categories to the model: each has its
        own effect, added to the field that all share.
    goal : Everywhere, LevelSet, Maximize, Minimize or Compare
        What the trials are for.
    model : SmoothBetaClassifier, default=None
        The model that learns from them. The experiment uses a copy, including what it has already
        learned. Without `bounds` it gets those of the space. None: the default model. Levels are
        categories unless `categorical_features` is None.
    random_state : int, default=None
        The seed. The same seed and the same trials give the same asks.
    strategy : str, default=None
        How the goal is pursued. None: the default strategy of the goal. "random" and "sobol" place
        trials without looking at outcomes.
    spread : float, default=0.0
        The smallest distance from all earlier trials, as a fraction of the sides of the space, so
        that nobody sees the same stimulus twice.
    observed : list of str, default=()
        Features that cannot be chosen, such as the age of the participant. Pass their values to
        each ask in `fixed`.

    Attributes
    ----------
    model : SmoothBetaClassifier
        The model with everything learned so far.

    Examples
    --------
    At which difficulty are half of the answers right? (The truth is 0.6.)

    >>> import numpy as np
    >>> from betafield.decisions import Experiment, LevelSet
    >>> experiment = Experiment({"difficulty": (0, 1)}, LevelSet(0.5), random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(40):
    ...     trial = experiment.ask()
    ...     experiment.tell(trial, success=rng.uniform() < (trial["difficulty"] < 0.6))
    >>> bool(abs(experiment.status()["known"]["threshold"] - 0.6) < 0.05)
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
        self._learner = Learner.of(model, self._space)
        is_smooth = Options.of(self._learner.model).is_smooth
        self._placing = Placing(
            self._space,
            self._goal,
            _checked_strategy(strategy, self._goal, self._space, is_smooth),
            _checked_spread(spread, self._goal),
            seed_of(random_state),
        )
        self._history = History(len(self._space.names))

    @property
    def model(self) -> SmoothBetaClassifier:
        """The model with everything learned so far."""
        return self._learner.model

    # Asking.

    @overload
    def ask(self, n: None = None, *, fixed: Any = None) -> Trial: ...
    @overload
    def ask(self, n: int, *, fixed: Any = None) -> list[Trial]: ...
    def ask(self, n: int | None = None, *, fixed: Any = None) -> Trial | list[Trial]:
        """Return the trial to make next, or a list of n different trials.

        Trials are pending until they are told or abandoned, in any order.

        Parameters
        ----------
        n : int, default=None
            The number of trials. None: a single trial instead of a list.
        fixed : mapping, default=None
            Values of features that are not to be chosen this time. It must contain all observed
            features.

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
        size = 1 if n is None else checks.whole("n", n, high=MOST_TRIALS)
        with writing(self):
            batch: list[tuple[Floats, str]] = []
            for _ in range(size):
                batch.append(self._placing.next(self._learner, self._history, held, batch))
            trials = [self._trial(self._history.add(row, why)) for row, why in batch]
        return trials[0] if n is None else trials

    def _held(self, fixed: Any) -> Floats:
        """Return the fixed values, NaN for those to choose."""
        values = self._space.some("fixed", {} if fixed is None else fixed)
        for name in self._space.observed:
            if name not in values:
                raise ValueError(
                    f"fixed: found no value for {name!r}; it is observed, so its value is needed"
                )
        return np.array([values.get(name, np.nan) for name in self._space.names])

    # Telling.

    def tell(self, trial: Any, success: Any, context: Any = None) -> None:
        """Report the outcome of a trial.

        Parameters
        ----------
        trial : Trial, int or mapping
            A trial that was asked for: the `Trial` itself, its `id`, or a mapping with its `id`,
            such as `trial.to_dict()`, perhaps by way of JSON. A mapping of features to values,
            without an id, is recorded as a new trial, which may be anywhere in the space.
        success : bool
        context : array of shape (p + 1,) or ContextFamily, default=None
            How the trial was distorted, see `betafield.contexts`.

        Raises
        ------
        ValueError
            If it was told or abandoned before, or lies outside the space. Nothing is recorded.

        Examples
        --------
        >>> from betafield.decisions import Maximize
        >>> experiment = Experiment({"dose": (0, 10)}, Maximize(), random_state=0)
        >>> experiment.tell({"dose": 2.5}, success=False)
        >>> trial = experiment.ask()
        >>> experiment.tell(trial.id, success=True)
        >>> experiment.status()["told"]
        2
        """
        outcome, context = bool(outcomes(success, ())), contexts(context, 1)
        with writing(self):
            asked = self._number(trial)
            row = self._space.row("trial", trial) if asked is None else self._history.rows[asked]
            self._learner.learn(row, outcome, context)
            number = self._history.add(row, UNASKED) if asked is None else asked
            self._history.tell(number, outcome, context)

    def abandon(self, trial: Any) -> None:
        """Give up a trial that was asked for.

        Parameters
        ----------
        trial : Trial, int or mapping
            The `Trial` itself, its `id`, or a mapping with its `id`.
        """
        with writing(self):
            number = self._number(trial)
            if number is None:
                raise TypeError(
                    f"trial: found {type(trial).__name__}; a trial that `ask` returned, or its "
                    "id, is needed"
                )
            self._history.abandon(number)

    def _number(self, trial: Any) -> int | None:
        """Return the number of the pending trial that is meant; None for a new trial."""
        claim = claimed(trial, self._space.names)
        if claim is None:
            return None
        number, values = claim
        size = len(self._history)
        rule = f"none of this experiment has that id: it has {size} trials, numbered from 0"
        number = checks.whole("trial", number, 0, size - 1, rule)
        point = self._space.point(self._history.rows[number])
        if values and not is_same(values, point):
            found = checks.spelled(values)
            raise ValueError(
                f"trial: found {found} as number {number}, which is none of this experiment; "
                f"that is {checks.spelled(point)}"
            )
        return self._history.ledger.require_pending("trial", number)

    # Knowing.

    def trials(self) -> list[dict[str, Any]]:
        """Return all trials in order, one dict per trial.

        Each dict has the features, `id`, `state` ("pending", "told" or "abandoned"), `success`,
        `context` and `why`. Any dataframe library accepts the list.
        """
        history = self._history
        with writing(self):
            return [
                {**self._space.point(row), **history.about(i)} for i, row in enumerate(history.rows)
            ]

    def pending(self) -> list[Trial]:
        """Return the trials that were asked for and have not been told or abandoned."""
        with writing(self):
            return [self._trial(number) for number in self._history.ledger.pending]

    def _trial(self, number: int) -> Trial:
        history = self._history
        return Trial(number, self._space.point(history.rows[number]), history.whys[number])

    def status(self) -> dict[str, Any]:
        """Return what is known, how uncertain it is, and how many trials are still needed.

        Returns
        -------
        dict
            `told`, `pending`, `abandoned` : numbers of trials.
            `known` : the answer to the goal; None before the first trial.
            `unsure` : how uncertain the answer is; `means` says what this number measures.
            `enough` : whether `unsure` is at most the goal's `within`, the stopping rule.
            `still_needed` : an extrapolation of the number of trials until then; None: unknown.
            `guarantee` : what the stopping rule promises.
            `band` : what the finite-sample band says about the candidates, if trials were placed
            without looking at outcomes ("random" and "sobol"), with integer weights, and without
            contexts or with affine ones; otherwise None.

        Notes
        -----
        The stopping rule is a statement about the posterior: if the model suits π, the posterior
        expectation of the remaining error is at most `within`, however trials were placed and
        whenever you stop. The band holds with probability 0.95 for every π that changes no faster
        than the model's `lipschitz`, if the number of trials was fixed in advance, and if trials
        that were told without being asked for were also placed without looking at outcomes.
        """
        with writing(self):
            counts, model = self._history.ledger.counts(), self.model
        if not has_learned(model):
            none = ("known", "unsure", "means", "still_needed", "guarantee", "band")
            return counts | dict.fromkeys(none) | {"enough": False}
        scene = self._placing.overview(model.field_)
        draws = functools.partial(many_fields, scene, np.random.default_rng(self._placing.seed))
        seed = self._placing.seed
        view = View(self._space, scene.rows, scene.posterior, draws, scene.field, seed)
        known = self._goal.known(view)
        enough = known.unsure <= self._goal.within
        return counts | {
            "known": known.known,
            "unsure": known.unsure,
            "means": known.means,
            "enough": enough,
            "still_needed": 0 if enough else self._still_needed(known.unsure, model.n_trials_),
            "guarantee": (
                f"enough where {known.means} is at most {self._goal.within:g} under the posterior, "
                "wherever trials were placed and whenever one stops, if the model is right"
            ),
            "band": self._proven(scene),
        }

    def _still_needed(self, unsure: float, told: float) -> int | None:
        ratio = self._goal.ratio(unsure, len(self._space.names))
        needed = float(told) * (ratio - 1.0)
        return max(1, math.ceil(needed)) if needed < 1e12 else None

    def _proven(self, scene: Scene) -> dict[str, Any] | None:
        """Return what the finite-sample band says, if its conditions are met."""
        if self._placing.strategy not in PLAIN:
            return None
        lipschitz = checks.positive("lipschitz", scene.field.options.lipschitz)
        try:
            bands = scene.field.bands(lipschitz, LEVEL, simultaneous=True)
        except ValueError:  # there is no guarantee for the kind of trials that this model has seen
            return None
        low, high = bands.intervals(scene.field.units.scaled(scene.points))
        return {"level": LEVEL, "lipschitz": lipschitz, **self._goal.proven(low, high)}

    # Keeping.

    def save(self, path: Any) -> None:
        """Write the experiment to one file, which `Experiment.load` reads.

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
        with writing(self):
            saved = Saved(
                self._space,
                self._goal,
                self._placing.strategy,
                self._placing.spread,
                self._placing.seed,
                self._learner.begun,
                self._history.last_told(self._learner.n_since),
                self._history,
            )
            save(path, saved)

    @classmethod
    def load(cls, path: Any) -> Self:
        """Return the experiment that `save` wrote; every value is checked before it is used."""
        return load(path, cls._restored)

    @classmethod
    def _restored(cls, saved: Saved) -> Self:
        space, strategy = saved.space, saved.strategy
        # In files of earlier releases, levels could have thresholds, as if they were numbers.
        if strategy == "threshold" and "threshold" not in saved.goal.possible(space):
            strategy = "boundary"
        experiment = cls(
            space.given,
            saved.goal,
            saved.model,
            saved.seed,
            strategy,
            saved.spread,
            space.observed,
        )
        experiment._history = history = saved.history
        for number in saved.since:
            context, outcome = history.contexts[number], bool(history.ledger.outcome(number))
            context = context[None] if isinstance(context, np.ndarray) else context
            experiment._learner.learn(history.rows[number], outcome, context)
        return experiment


class Parts(NamedTuple):
    """The parts of an experiment, for code that stores its trials elsewhere (`replaying`)."""

    space: Space
    learner: Learner
    placing: Placing
    history: History


def parts(experiment: Experiment) -> Parts:
    """Return the parts of an experiment; changing them requires its lock."""
    return Parts(experiment._space, experiment._learner, experiment._placing, experiment._history)


# Validation of arguments ------------------------------------------------------------------


def _checked_goal(goal: Any) -> Goal:
    if not isinstance(goal, Goal):
        raise TypeError(
            f"goal: found {checks.spelled(goal)}; allowed are Everywhere(), LevelSet(p), "
            "Maximize(), Minimize() and Compare(points)"
        )
    return goal


def _checked_strategy(strategy: Any, goal: Goal, space: Space, is_smooth: bool) -> str:
    if strategy is None:
        return goal.usual(space, is_smooth)
    possible = goal.possible(space)
    allowed = f"for {type(goal).__name__} allowed are {checks.listed(possible)}"
    return str(checks.one_of("strategy", strategy, possible, allowed))


def _checked_spread(spread: Any, goal: Goal) -> float:
    share = checks.number("spread", spread, "a number from 0 to below 1 is needed", low=0, below=1)
    if share and isinstance(goal, Compare):
        raise ValueError(f"spread: found {spread!r}, but compared points are tested repeatedly")
    return share
