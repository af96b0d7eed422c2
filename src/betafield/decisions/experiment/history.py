"""The list of the trials of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield.decisions.ledger import ABANDONED, FAILURE, SUCCESS, Ledger
from betafield.families import ContextFamily

Floats = npt.NDArray[np.float64]
Context = Floats | ContextFamily


class Trial(Mapping[str, Any]):
    """A point to test: a mapping of features to values.

    Attributes
    ----------
    id : int
        Its place in the list of trials.
    why : str
        Which quantity decided, with its value.

    Examples
    --------
    A trial goes to JSON and back, and is the same trial:

    >>> import json
    >>> trial = Trial(3, {"dose": 2.5}, "the first few are spread evenly")
    >>> wire = json.dumps(trial.to_dict())
    >>> Trial.from_dict(json.loads(wire))
    Trial({'dose': 2.5}, id=3, why='the first few are spread evenly')
    """

    __slots__ = ("_values", "id", "why")

    def __init__(self, id: int, values: Mapping[str, Any], why: str) -> None:  # noqa: A002
        self.id = id
        self.why = why
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Trial({self._values}, id={self.id}, why={self.why!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return `{"id": …, "values": {feature: value}, "why": …}`, which JSON can hold.

        Floats survive JSON to the last bit, so that `from_dict` returns the same trial.
        """
        return {"id": self.id, "values": dict(self._values), "why": self.why}

    @classmethod
    def from_dict(cls, trial: Any) -> Self:
        """Return the trial that `to_dict` described; `why` may be left out.

        Examples
        --------
        >>> Trial.from_dict({"id": 3, "values": {"dose": 2.5}})["dose"]
        2.5
        >>> Trial.from_dict({"dose": 2.5})
        Traceback (most recent call last):
            ...
        ValueError: trial: found no 'id' in {'dose': 2.5}; {"id": …, "values": {…}} is needed
        """
        found = dict(checks.instance("trial", trial, Mapping, _NEEDED))
        for name in ("id", "values"):
            if name not in found:
                raise ValueError(f"trial: found no {name!r} in {checks.spelled(found)}; {_NEEDED}")
        number = checks.whole("trial, 'id'", found["id"], low=0)
        values = checks.instance("trial, 'values'", found["values"], Mapping, "a mapping is needed")
        why = checks.instance("trial, 'why'", found.get("why", ""), str, "text is needed")
        return cls(number, {name: _value(name, values[name]) for name in values}, why)


_NEEDED = '{"id": …, "values": {…}} is needed'


def _value(name: Any, value: Any) -> Any:
    what = f"trial, feature {checks.spelled(name)}"
    checks.instance(what, name, str, "names must be text")
    if _is_level(value):
        return value
    number = checks.number(what, value)
    return int(value) if isinstance(value, Integral) else number  # how many, perhaps


def _is_level(value: Any) -> bool:
    """Return whether this is not a number, so that it can only be a level of a feature."""
    return isinstance(value, str | bool | np.bool_)


def claimed(trial: Any, names: Sequence[str]) -> tuple[Any, Mapping[str, Any]] | None:
    """Return the id of the trial that is meant and the values given with it; None if it is new.

    Examples
    --------
    >>> claimed({"id": 3, "dose": 2.5}, ["dose"]), claimed({"dose": 2.5}, ["dose"])
    ((3, {'dose': 2.5}), None)
    """
    if isinstance(trial, Trial):
        return trial.id, dict(trial)
    if checks.is_number(trial):
        return trial, {}
    if not (isinstance(trial, Mapping) and "id" in trial):
        return None
    if isinstance(values := trial.get("values"), Mapping):
        return trial["id"], values
    # A feature may be called "id".
    given = {name: trial[name] for name in names if name in trial}
    return None if "id" in given else (trial["id"], given)


def is_same(values: Mapping[str, Any], point: Mapping[str, Any]) -> bool:
    """Return whether these are exactly the values of a point."""
    return values.keys() == point.keys() and all(
        _is_value(values[name]) and bool(values[name] == point[name]) for name in point
    )


def _is_value(value: Any) -> bool:
    return _is_level(value) or checks.is_number(value)


class History:
    """The trials that were asked, told and abandoned, in the order of asking.

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
        # Numbers of the trials told, in the order of telling.
        self._told: list[int] = []
        # The points of pending trials, stacked when they are first needed after a change.
        self._pending_rows: Floats | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, row: Floats, why: str) -> int:
        """Add a pending trial, and return its number."""
        self.rows.append(row)
        self.whys.append(why)
        self.contexts.append(None)
        self._pending_rows = None
        return self.ledger.ask()

    def tell(self, number: int, outcome: bool, context: Context | None = None) -> None:
        """Record the outcome of a pending trial."""
        self._end(number, SUCCESS if outcome else FAILURE)
        flat = context.reshape(-1) if isinstance(context, np.ndarray) else context
        self.contexts[number] = flat
        self._told.append(number)

    def abandon(self, number: int) -> None:
        """Record that a pending trial will not be made."""
        self._end(number, ABANDONED)

    def _end(self, number: int, end: int) -> None:
        self.ledger.end([number], [end])
        self._pending_rows = None

    def told_rows(self, start: int = 0) -> Floats:
        """Return the points of the trials told, in the order of telling, from `start` on."""
        return self._stacked(self.rows[number] for number in self._told[start:])

    def last_told(self, n: int) -> list[int]:
        """Return the numbers of the last n trials told."""
        return self._told[len(self._told) - n :]

    def last_told_rows(self, n: int) -> Floats:
        """Return the points of the last n trials told."""
        return self._stacked(self.rows[number] for number in self.last_told(n))

    def pending_rows(self, more: Sequence[Floats] = ()) -> Floats:
        """Return the points of pending trials, followed by `more`."""
        if self._pending_rows is None:
            self._pending_rows = self._stacked(self.rows[n] for n in self.ledger.pending)
        return np.concatenate([self._pending_rows, self._stacked(more)])

    def about(self, number: int) -> dict[str, Any]:
        """Return what is known about a trial, except its point."""
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
