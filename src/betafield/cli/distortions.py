"""Options that describe distortions of trials: named contexts, from numbers and columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from betafield.cli.spelling import fraction, number
from betafield.cli.usage import UsageError
from betafield.refusals import about


@dataclass(frozen=True)
class Family:
    """A named context: its function, the options of its arguments, and which are required."""

    function: str
    arguments: dict[str, str]
    needed: tuple[str, ...]
    # Values of optional arguments for which the function has no default.
    standard: dict[str, float] = field(default_factory=dict)


# Rates that studies estimate: 92/100 means counts of a study, not a number.
STUDIED = ("sensitivity", "specificity")
_COUNTS = re.compile(r"\s*(\d{1,15})\s*/\s*(\d{1,15})\s*")
_BETA = re.compile(r"\s*~\s*[Bb]eta\s*\(([^,()]+),([^,()]+)\)\s*")

_TEST = {"sensitivity": "sensitivity", "specificity": "specificity"}
FAMILIES = (
    Family("guess_lapse", {"guess": "guess", "lapse": "lapse"}, (), {"guess": 0.0}),
    Family("diagnostic", _TEST, ("sensitivity", "specificity")),
    Family("pooled", {"pool-size": "size", **_TEST}, ("pool-size",)),
    Family("background", {"background": "rate"}, ("background",)),
    Family("attenuated", {"attenuated": "factor"}, ("attenuated",)),
    Family("randomized_response", {"truth": "truth", "yes": "yes"}, ("truth",)),
    Family("affine", {"gain": "gain", "offset": "offset"}, ("gain", "offset")),
)


@dataclass(frozen=True)
class Distortion:
    """A context, from numbers and columns, as requested."""

    family: Family
    values: dict[str, Any]

    @property
    def unknown(self) -> list[str]:
        """Sentences about unknown rates."""
        found = {k: v for k, v in self.values.items() if not isinstance(v, float | str)}
        return [
            f"--{k} is unknown, with prior Beta({v.alpha:g}, {v.beta:g})" for k, v in found.items()
        ]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(dict.fromkeys(v for v in self.values.values() if isinstance(v, str)))

    def context(self) -> Any:
        """Return one context for all trials, or this object, as a function of record batches."""
        if self.columns:
            return self
        try:
            return self._made(self.values)
        except ValueError as error:
            raise UsageError(f"--{str(error).replace('_', '-', 1)}") from error

    def __call__(self, cells: Any) -> Any:
        """Return the contexts of the rows of a record batch."""
        from betafield.files import arrow

        held = {name: cells.column(name) for name in self.columns}
        for name, column in held.items():
            if not _is_numeric(arrow().types, column.type):
                raise ValueError(f"column {name!r}: found {column.type}; numbers are needed")
        values = {
            option: held[value].to_numpy(zero_copy_only=False) if value in held else value
            for option, value in self.values.items()
        }
        return self._made(values)

    def _made(self, values: Mapping[str, Any]) -> Any:
        from betafield import contexts

        make: Callable[..., Any] = getattr(contexts, self.family.function)
        theirs = {self.family.arguments[option]: value for option, value in values.items()}
        try:
            return make(**{**self.family.standard, **theirs})
        except ValueError as error:
            raise self._renamed(error) from error

    def _renamed(self, error: ValueError) -> ValueError:
        """Return an error about arguments of the library, said of the options."""
        found = about(error)
        if found is None:
            return error
        ours = {
            theirs: option.replace("-", "_") for option, theirs in self.family.arguments.items()
        }
        return found._replace(argument=ours.get(found.argument, found.argument)).error(ValueError)


def _is_numeric(types: Any, dtype: Any) -> bool:
    numeric = (types.is_integer, types.is_floating, types.is_null, types.is_decimal)
    return any(is_one(dtype) for is_one in numeric)


def distortion(given: Mapping[str, str | None]) -> Distortion | None:
    """Return the distortion that options describe, by name; None if none is given.

    Examples
    --------
    >>> found = distortion({"background": "0.2", "guess": None})
    >>> found.context()
    array([0.2, 1. ])
    >>> distortion({"pool-size": "pool", "sensitivity": "0.9"}).columns
    ('pool',)
    """
    said = {option: text for option, text in given.items() if text is not None}
    if not said:
        return None
    spelled = ", ".join(f"--{option}" for option in said)
    fitting = [family for family in FAMILIES if said.keys() <= family.arguments.keys()]
    if not fitting:
        known = "; ".join(_spelled(family) for family in FAMILIES)
        raise UsageError(
            f"{spelled}: these cannot be combined; the possible combinations are {known}"
        )
    complete = [family for family in fitting if set(family.needed) <= said.keys()]
    if not complete:
        missing = [f"--{option}" for option in fitting[0].needed if option not in said]
        raise UsageError(f"{spelled}: {', '.join(missing)} is needed as well")
    return Distortion(complete[0], {option: _value(option, text) for option, text in said.items()})


def _value(option: str, text: str) -> Any:
    """Return a number, a column, or an unknown rate: ~Beta(a, b), or counts of a study."""
    if text.lstrip().startswith("~"):
        return _prior(option, text)
    counts = _COUNTS.fullmatch(text)
    if counts and option in STUDIED:
        return _study(option, text, *map(int, counts.groups()))
    found = fraction(text)
    return text if found is None else found


def _prior(option: str, text: str) -> Any:
    from betafield.contexts import Unknown

    shapes = _BETA.fullmatch(text)
    if not shapes:
        raise UsageError(f"--{option}: found {text!r}; ~Beta(ALPHA, BETA) is needed")
    try:
        alpha, beta = (number(f"--{option}", part) for part in shapes.groups())
        return Unknown(alpha, beta)
    except ValueError as error:
        raise UsageError(f"--{option}: {error}") from error


def _study(option: str, text: str, found: int, of: int) -> Any:
    """Return the rate estimated by a study: a uniform prior with its counts."""
    from betafield.contexts import Unknown

    if not 0 <= found <= of or not of:
        raise UsageError(
            f"--{option}: found {text!r}; counts of a study are CORRECT/ALL, such as 92/100"
        )
    return Unknown(found + 1, of - found + 1)


def _spelled(family: Family) -> str:
    return " ".join(f"--{option}" for option in family.arguments)


def under(text: str | None) -> Distortion | None:
    """Return a context from a text such as `guess=0.5,lapse=0.02`."""
    if text is None:
        return None
    known = {option for family in FAMILIES for option in family.arguments}
    given: dict[str, str | None] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or name not in known or name in given or not value:
            raise UsageError(
                f"--under: found {part!r}; NAME=NUMBER is needed, and names are "
                f"{', '.join(sorted(known))}"
            )
        given[name] = value
    return distortion(given)
