"""The state of a tracker: an immutable value, replaced as a whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.decisions.tracker.cells import Cells
from betafield.decisions.tracker.memory import Memory
from betafield.trials import Features

Floats = npt.NDArray[np.float64]
Context = tuple[float, ...]


class Domain(NamedTuple):
    """The cells of the memory, and the places (m, d) to check for alarms."""

    cells: Cells
    places: Floats


@dataclass(frozen=True, eq=False)
class State:
    """Everything that a tracker has learned.

    Parameters
    ----------
    memory : Memory
        The trials that are not forgotten.
    domain : Domain or None
        None until the first trials show how many features there are.
    features : Features or None
        The features of the trials; None before the first.
    contexts : frozenset
        All contexts of the trials.
    since : array of shape (m,)
        When the alarm at each place began, NaN if there is none.
    time : float or None
        The latest time seen.
    n_trials, n_late : int
        Number of trials seen, and of those that arrived too late to count.
    """

    memory: Memory
    domain: Domain | None = None
    features: Features | None = None
    contexts: frozenset[Context] = frozenset()
    since: Floats = field(default_factory=lambda: np.empty(0))
    time: float | None = None
    n_trials: int = 0
    n_late: int = 0
