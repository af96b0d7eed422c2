"""What a tracker has seen: an immutable value, replaced whole."""

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
    """The cells that are remembered, and the places (m, d) to look at."""

    cells: Cells
    places: Floats


@dataclass(frozen=True, eq=False)
class State:
    """All that a tracker has learned.

    Parameters
    ----------
    memory : Memory
        The trials that are not forgotten.
    domain : Domain or None
        None: the first trials will tell how many features there are.
    features : Features or None
        Those of the trials; None before the first.
    contexts : frozenset
        How trials were distorted.
    since : array of shape (m,)
        When the alarm at each place began, NaN where there is none.
    time : float or None
        The latest time seen.
    n_trials, n_late : int
        Trials seen, and those that came too late to count.
    """

    memory: Memory
    domain: Domain | None = None
    features: Features | None = None
    contexts: frozenset[Context] = frozenset()
    since: Floats = field(default_factory=lambda: np.empty(0))
    time: float | None = None
    n_trials: int = 0
    n_late: int = 0
