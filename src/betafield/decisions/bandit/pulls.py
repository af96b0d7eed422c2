"""The list of the pulls of a bandit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.decisions.bandit.arms import Arms
from betafield.decisions.ledger import ABANDONED, Ledger

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pull(Mapping[str, float]):
    """One pull: a mapping of the features at which it is made.

    Parameters
    ----------
    id : int
        Its number, from 0.
    arm : str, int or dict
        The name of the arm, the number of the point, or a point of a continuum.
    features : dict
        All features: the arm's own, and those observed.
    why : str
        Which quantity decided, with its value.
    index : int
        Index of the arm, or of the candidate in a continuum.
    """

    id: int
    arm: Any
    features: dict[str, float]
    why: str
    index: int = field(repr=False)

    def __getitem__(self, name: str) -> float:
        return self.features[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.features)

    def __len__(self) -> int:
        return len(self.features)


class Step(NamedTuple):
    """Pulls whose rewards were learned together, and their contexts (1 or n, p + 1)."""

    numbers: list[int]
    contexts: Floats | None


class Pulls:
    """The pulls: arms, observed features, rewards, and the steps in which they were learned.

    Parameters
    ----------
    arms : Arms
    """

    def __init__(self, arms: Arms) -> None:
        self.arms = arms
        self.ledger = Ledger()
        self.index: list[int] = []
        self.given: list[Floats] = []
        self.steps: list[Step] = []
        self.whys: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.index)

    @property
    def pending(self) -> list[Pull]:
        """The pulls whose rewards are still to come, the oldest first."""
        return [self.pull(number) for number in self.ledger.pending]

    def add(self, at: int, given: Floats, why: str) -> Pull:
        """Add the pull of an arm, given the observed features."""
        number = self.ledger.ask()
        self.index.append(at)
        self.given.append(given)
        self.whys[number] = why
        return self.pull(number)

    def pull(self, number: int) -> Pull:
        """Return a pending pull."""
        return self.made(number, self.index[number], self.given[number], self.whys[number])

    def made(self, number: int, at: int, given: Floats, why: str) -> Pull:
        """Return the pull of an arm; its number need not be in the list."""
        features = self.arms.point(self.arms.row_of(at, given))
        return Pull(number, self.arms.arm(at), features, why, at)

    def learn(self, step: Step, ends: Sequence[int]) -> None:
        """Record the rewards of pulls."""
        self.steps.append(step)
        self._end(step.numbers, ends)

    def abandon(self, numbers: Sequence[int]) -> None:
        """Record that these pulls will have no reward."""
        self._end(numbers, [ABANDONED] * len(numbers))

    def rows(self, numbers: Sequence[int]) -> Floats:
        """Return all features of these pulls, one row per pull."""
        return np.array([self.arms.row_of(self.index[n], self.given[n]) for n in numbers])

    def by_field(self, numbers: Sequence[int]) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
        """Yield each field that these pulls belong to, with the indices of its pulls."""
        named = self.arms.names is not None
        fields = np.array([self.index[n] if named else 0 for n in numbers], dtype=np.intp)
        for each in np.unique(fields).tolist():
            yield each, np.flatnonzero(fields == each)

    def _end(self, numbers: Sequence[int], ends: Sequence[int]) -> None:
        self.ledger.end(numbers, ends)
        for number in numbers:
            del self.whys[number]
