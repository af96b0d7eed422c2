"""An experiment rebuilt from the list of what happened, without asking again.

What an experiment asks next is a function of its seed and of its list of trials, in the order in
which they were asked and told. Code that stores that list elsewhere (in a database) adds to an
experiment what was asked and how it ended; the model learns all new outcomes at once when it is
next needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield._locks import writing
from betafield.decisions.experiment.experiment import Experiment, parts
from betafield.decisions.experiment.goals import PLAIN
from betafield.decisions.experiment.history import Context, Trial

Floats = npt.NDArray[np.float64]


class Replay:
    """An experiment whose outcomes are learned when they are needed.

    Parameters
    ----------
    experiment : Experiment
        Nothing else may change it.

    Examples
    --------
    >>> from betafield.decisions import Everywhere
    >>> one, other = (Experiment({"x": (0, 1)}, Everywhere(), random_state=0) for _ in range(2))
    >>> replay = Replay(other)
    >>> for i in range(20):
    ...     trial = one.ask()
    ...     one.tell(trial, success=i % 2 == 0)
    ...     (number,) = replay.add_all([np.array([trial["x"]])], [trial.why])
    ...     replay.end_all([(number, i % 2 == 0, None)])
    >>> replay.learned().ask() == one.ask()
    True
    """

    def __init__(self, experiment: Experiment) -> None:
        self._experiment, self._parts = experiment, parts(experiment)
        self._unlearned: list[tuple[int, bool, Context | None]] = []
        # Whether a trial has ended since the last ask; only then is an ask likely to come next.
        self._has_news = False

    def __len__(self) -> int:
        return len(self._parts.history)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of told, pending and abandoned trials."""
        return self._parts.history.ledger.counts()

    @property
    def is_learned(self) -> bool:
        """Whether the model has learned all outcomes."""
        return not self._unlearned

    def state(self, number: int) -> str:
        """Return "pending", "told" or "abandoned"."""
        return self._parts.history.ledger.state(number)

    def pending(self) -> list[int]:
        """Return the numbers of the trials that have not ended, the oldest first."""
        return self._parts.history.ledger.pending

    def outcome(self, number: int) -> bool | None:
        """Return whether a trial was a success; None if it was not told."""
        return self._parts.history.ledger.outcome(number)

    def row(self, number: int) -> Floats:
        """Return the coordinates of a trial."""
        return self._parts.history.rows[number]

    def why(self, number: int) -> str:
        """Return why a trial was placed there."""
        return self._parts.history.whys[number]

    def point(self, number: int) -> dict[str, Any]:
        """Return the features of a trial."""
        return self._parts.space.point(self.row(number))

    def checked_row(self, values: Any) -> Floats:
        """Return the coordinates of a trial chosen elsewhere; raise if it is not in the space."""
        return self._parts.space.row("values", values)

    def add_all(self, rows: Sequence[Floats], whys: Sequence[str]) -> list[int]:
        """Add pending trials, and return their numbers."""
        with writing(self._experiment):
            return [self._parts.history.add(*each) for each in zip(rows, whys, strict=True)]

    def end_all(self, ends: Sequence[tuple[int, bool | None, Context | None]]) -> None:
        """Record how pending trials ended, in this order, each as (number, outcome, context).

        The outcome None means that the trial will not be made. The model learns the others when it
        is next needed.
        """
        history = self._parts.history
        with writing(self._experiment):
            for number, outcome, context in ends:
                self._has_news = True
                if outcome is None:
                    history.abandon(number)
                else:
                    history.tell(number, outcome, context)
                    self._unlearned.append((number, outcome, context))

    def learned(self) -> Experiment:
        """Return the experiment with a model that has learned all outcomes."""
        experiment = self._experiment
        with writing(experiment):
            if self._unlearned:
                numbers, outcomes, contexts = zip(*self._unlearned, strict=True)
                rows = self._parts.history.rows
                self._parts.learner.learn_all(
                    np.array([rows[i] for i in numbers]), outcomes, _rows(contexts)
                )
                self._unlearned = []
        return experiment

    def ask(self, n: int, fixed: Any) -> list[Trial]:
        """Return the n trials to make next, as `Experiment.ask` does."""
        self._has_news = False
        return self.learned().ask(n, fixed=fixed)

    def prepare(self) -> None:
        """Compute the result of the next ask in advance.

        Nothing is done unless a trial has ended since the last ask, because most users tell an
        outcome before they ask again, which changes the result.
        """
        is_plain = self._parts.placing.strategy in PLAIN
        if is_plain or self._parts.space.observed or not self._has_news:
            return
        self._has_news = False
        experiment = self.learned()
        free = np.full(len(self._parts.space.names), np.nan)
        # Placing keeps its result, and the next ask reuses it unless something happens before.
        with writing(experiment):
            self._parts.placing.next(self._parts.learner, self._parts.history, free, [])


def _rows(contexts: Sequence[Context | None]) -> list[Any]:
    """Return contexts in the shape that the learner takes."""
    return [c[None] if isinstance(c, np.ndarray) and c.ndim == 1 else c for c in contexts]
