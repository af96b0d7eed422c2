"""The list of the trials of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield.decisions.ledger import ABANDONED, FAILURE, SUCCESS, Ledger
from betafield.families import ContextFamily

Floats = npt.NDArray[np.float64]
Context = Floats | ContextFamily


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


class History:
    """What was asked, told and abandoned, in the order of asking.

    Parameters
    ----------
    d : int
        Number of features.

    Examples
    --------
    >>> history = History(1)
    >>> first = history.add(np.array([0.5]), "the first")
    >>> history.tell(first, outcome=True)
    >>> history.ledger.counts()["told"], history.told_rows()
    (1, array([[0.5]]))
    """

    def __init__(self, d: int) -> None:
        self._d = d
        self.ledger = Ledger()
        self.rows: list[Floats] = []
        self.whys: list[str] = []
        self.contexts: list[Context | None] = []
        # Numbers of those told, in the order of telling.
        self._told: list[int] = []

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, row: Floats, why: str) -> int:
        """Add a pending trial, and return its number."""
        self.rows.append(row)
        self.whys.append(why)
        self.contexts.append(None)
        return self.ledger.ask()

    def tell(self, number: int, outcome: bool, context: Context | None = None) -> None:
        """Say how a pending trial ended."""
        self.ledger.end([number], [SUCCESS if outcome else FAILURE])
        flat = context.reshape(-1) if isinstance(context, np.ndarray) else context
        self.contexts[number] = flat
        self._told.append(number)

    def abandon(self, number: int) -> None:
        """Say that a pending trial will not be made."""
        self.ledger.end([number], [ABANDONED])

    def told_rows(self, start: int = 0) -> Floats:
        """Return where trials were told, in the order of telling, from one on."""
        return self._stacked(self.rows[number] for number in self._told[start:])

    def last_told(self, n: int) -> list[int]:
        """Return the numbers of the n trials that were told last."""
        return self._told[len(self._told) - n :]

    def last_told_rows(self, n: int) -> Floats:
        """Return where the n trials are that were told last."""
        return self._stacked(self.rows[number] for number in self.last_told(n))

    def pending_rows(self, more: Sequence[Floats] = ()) -> Floats:
        """Return where pending trials are, and these behind them."""
        return self._stacked([*(self.rows[number] for number in self.ledger.pending), *more])

    def about(self, number: int) -> dict[str, Any]:
        """Return what is known of a trial, but where it is."""
        context = self.contexts[number]
        return {
            "id": number,
            "state": self.ledger.state(number),
            "success": self.ledger.outcome(number),
            "context": context.tolist() if isinstance(context, np.ndarray) else context,
            "why": self.whys[number],
        }

    def _stacked(self, rows: Any) -> Floats:
        return np.array(list(rows), dtype=np.float64).reshape(-1, self._d)
