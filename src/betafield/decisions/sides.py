"""The kinds of features of a space: a range, a logarithmic range, integers, or levels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import categories, checks

Floats = npt.NDArray[np.float64]

RULE = (
    "(low, high) is needed, two finite numbers, or Log(low, high), Integer(low, high), or a list "
    "of levels"
)
# Most levels, because each of them has to be tried.
MOST_LEVELS = 1_000


class Log(NamedTuple):
    """Positive numbers from low to high, on a logarithmic scale.

    Examples
    --------
    >>> from betafield.decisions import Everywhere, Experiment, Log
    >>> experiment = Experiment({"contrast": Log(0.001, 1)}, Everywhere(), random_state=0)
    >>> 0.001 <= experiment.ask()["contrast"] <= 1
    True
    """

    low: float
    high: float


class Integer(NamedTuple):
    """Integers from low to high, both included.

    Examples
    --------
    >>> from betafield.decisions import Everywhere, Experiment, Integer
    >>> experiment = Experiment({"items": Integer(1, 10)}, Everywhere(), random_state=0)
    >>> experiment.ask()["items"] in range(1, 11)
    True
    """

    low: int
    high: int


_KINDS: dict[str, type[Log] | type[Integer]] = {"log": Log, "integer": Integer}


def to_json(space: Any) -> Any:
    """Return the description of a space as JSON, in which a tuple is a list like any other.

    Examples
    --------
    >>> to_json({"contrast": Log(0.001, 1), "size": (0, 1)})
    {'contrast': {'log': [0.001, 1]}, 'size': (0, 1)}
    """
    if not isinstance(space, Mapping):
        return space
    words = {kind: word for word, kind in _KINDS.items()}
    return {
        name: {words[type(given)]: list(given)} if type(given) in words else given
        for name, given in space.items()
    }


def from_json(space: Any) -> Any:
    """Return what describes a space as Python has it.

    Examples
    --------
    >>> from_json({"contrast": {"log": [0.001, 1]}, "size": [0, 1]})
    {'contrast': Log(low=0.001, high=1), 'size': [0, 1]}
    """
    if not isinstance(space, Mapping):
        return space
    return {name: _side_from_json(name, given) for name, given in space.items()}


def _side_from_json(name: str, given: Any) -> Any:
    if not isinstance(given, Mapping):
        return given
    word = next(iter(given), None)
    ends = given[word] if len(given) == 1 and word in _KINDS else None
    what, rule = f"space, feature {name!r}", '{"log": [low, high]} or {"integer": [low, high]}'
    if not (isinstance(ends, list | tuple) and len(ends) == 2):
        raise ValueError(f"{what}: found {checks.spelled(dict(given))}; {rule} is needed")
    return _KINDS[str(word)](*ends)


class Side(NamedTuple):
    """One side of a space.

    Parameters
    ----------
    low, high : float
        Its ends; for levels, the numbers of the first and the last.
    kind : {"", "log", "integer", "levels"}
    levels : tuple
        The levels that the numbers 0, 1, … stand for; to a model they are categories.
    """

    low: float
    high: float
    kind: str = ""
    levels: tuple[Any, ...] = ()

    @property
    def given(self) -> Any:
        """The description it was made from, as `side` takes it."""
        if self.kind == "levels":
            return list(self.levels)
        if self.kind == "integer":
            return Integer(int(self.low), int(self.high))
        return Log(self.low, self.high) if self.kind else (self.low, self.high)

    @property
    def is_whole(self) -> bool:
        """Whether its numbers are integers."""
        return self.kind in ("integer", "levels")

    def shares(self, x: Floats) -> Floats:
        """Return numbers as fractions of the side, from 0 to 1."""
        if self.kind == "log":
            return np.asarray(np.log(x / self.low) / math.log(self.high / self.low))
        if self.is_whole:
            return np.asarray((x - self.low + 0.5) / (self.high - self.low + 1.0))
        return np.asarray((x - self.low) / (self.high - self.low))

    def numbers(self, share: Floats) -> Floats:
        """Return the numbers at fractions of the side, none beyond its ends."""
        if self.kind == "log":
            x = self.low * (self.high / self.low) ** share
        elif self.is_whole:
            x = self.low + np.floor(share * (self.high - self.low + 1.0))
        else:
            x = self.low + share * (self.high - self.low)
        return np.clip(x, self.low, self.high)

    def grid(self, n: int) -> Floats:
        """Return n numbers from end to end, spread evenly as the side is; fewer if it has fewer.

        Examples
        --------
        >>> side("x", Log(0.01, 1)).grid(3).tolist(), side("x", Integer(1, 4)).grid(9).tolist()
        ([0.01, 0.1, 1.0], [1.0, 2.0, 3.0, 4.0])
        """
        if self.kind == "log":
            return np.geomspace(self.low, self.high, n)
        if self.is_whole:
            return np.unique(np.round(np.linspace(self.low, self.high, n)))
        return np.linspace(self.low, self.high, n)

    def reached(self, reach: Floats) -> Floats:
        """Return how far trials reach about the middle, as a fraction of the side."""
        if self.kind != "log":
            return np.asarray(reach / (self.high - self.low))
        middle = math.sqrt(self.low * self.high)
        return np.asarray(2.0 * np.arcsinh(0.5 * reach / middle) / math.log(self.high / self.low))

    def number(self, what: str, value: Any) -> float:
        """Return the number of a value, or raise if the side does not have it."""
        if self.kind == "levels":
            rule = f"one of {', '.join(map(repr, self.levels))} is needed"
            found = [i for i, level in enumerate(self.levels) if _is_same(level, value)]
            checks.require(found, what, value, rule)
            return float(found[0])
        if self.kind == "integer":
            return self._whole(what, value)
        rule = f"a number from {self.low!r} to {self.high!r} is needed"
        return checks.number(what, value, rule, low=self.low, high=self.high)

    def _whole(self, what: str, value: Any) -> float:
        """Return a whole number; 3.0 is one, because JSON does not tell it from 3."""
        low, high = int(self.low), int(self.high)
        is_whole = isinstance(value, float) and value.is_integer()
        number = int(value) if is_whole else value
        rule = f"a whole number from {low} to {high} is needed"
        return float(checks.whole(what, number, low, high, rule))

    def read(self, what: str, text: str) -> float:
        """Return the number of a value given as text.

        Examples
        --------
        >>> side("x", [1, 2, 3]).read("x", "3"), side("x", (0, 1)).read("x", "3e-1")
        (2.0, 0.3)
        """
        if self.kind == "levels":
            return self.number(what, self.named(text))
        try:
            return self.number(what, float(text))
        except ValueError:  # the error should quote the text, not the number made from it
            return self.number(what, text)

    def named(self, text: str) -> Any:
        """Return the level with this text, or the text itself if there is none."""
        label = categories.text(text)
        return next((each for each in self.levels if categories.text(each) == label), text)

    def value(self, number: float) -> Any:
        """Return the value of a number."""
        if self.kind == "levels":
            return self.levels[int(number)]
        return int(number) if self.kind == "integer" else number


def side(what: str, given: Any) -> Side:
    """Return the side that a user has described."""
    if isinstance(given, Integer):
        first, last = (checks.whole(what, end, -(1 << 53), 1 << 53, RULE) for end in given)
        checks.require(first < last, what, given, "low must be below high")
        return Side(float(first), float(last), "integer")
    if isinstance(given, list) and _are_levels(given):
        return _of_levels(what, given)
    low, high = _ends(what, given)
    if isinstance(given, Log):
        checks.require(low > 0.0, what, given, "a logarithm needs positive numbers")
        return Side(low, high, "log")
    return Side(low, high)


def _ends(what: str, ends: Any) -> tuple[float, float]:
    """Return (low, high), finite and low < high."""
    low, high = checks.finite(what, ends, RULE, (2,), RULE).tolist()
    checks.require(low < high, what, (low, high), "low must be below high")
    checks.require(
        math.isfinite(high - low), what, (low, high), "high - low must be a finite float"
    )
    return low, high


def _are_levels(given: list[Any]) -> bool:
    """Return whether a list contains levels; two numbers are a range."""
    return len(given) != 2 or any(isinstance(each, str | bool) for each in given)


def _of_levels(what: str, given: list[Any]) -> Side:
    """Return the side with these levels."""
    for level in given:
        is_sound = isinstance(level, str | bool) or checks.is_number(level)
        checks.require(is_sound, what, level, "levels are text, numbers or booleans")
    is_twice = any(_is_same(a, b) for i, a in enumerate(given) for b in given[:i])
    checks.require(not is_twice, what, given, "every level must be there once")
    good = 2 <= len(given) <= MOST_LEVELS
    checks.require(good, what, f"{len(given)} levels", f"from 2 to {MOST_LEVELS:,} are allowed")
    return Side(0.0, float(len(given) - 1), "levels", tuple(given))


def _is_same(a: Any, b: Any) -> bool:
    """Return whether two levels are the same; True differs from 1."""
    is_kind = isinstance(a, bool) == isinstance(b, bool) and isinstance(b, str | int | float)
    return is_kind and bool(a == b)
