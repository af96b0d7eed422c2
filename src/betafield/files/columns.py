"""The roles of columns, and their values as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield.families import ContextFamily
from betafield.files.optional import arrow
from betafield.refusals import mistyped, refused

_CONTEXT = (
    "one context for all rows is needed, or a list of the columns that hold its coefficients, or a "
    "function of record batches"
)

# Roles -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Roles:
    """The roles of columns.

    `context` is one context for all rows, the names of the columns with its coefficients, or a
    function of record batches, which then have all columns of the file. `categories` are the
    features whose values are labels, and `worded` those that were recognised as such because no
    value in the first rows is a number.
    """

    features: tuple[str, ...]
    outcome: str | None = None
    successes: str | None = None
    trials: str | None = None
    sample_weight: str | None = None
    context: Any = None
    groups: str | None = None
    categories: tuple[str, ...] = ()
    worded: tuple[str, ...] = ()
    grouping: str = "groups"

    @property
    def coefficients(self) -> tuple[str, ...]:
        """The columns of the context."""
        return self.context if isinstance(self.context, tuple) else ()

    @property
    def others(self) -> tuple[str, ...]:
        """The numeric columns that are not features."""
        named = (self.successes, self.trials, self.sample_weight)
        return (*(name for name in named if name is not None), *self.coefficients)

    @property
    def all(self) -> tuple[str, ...]:
        """All columns, labels first."""
        return (*self.labels, *self.others, *self.features)

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns of labels, which may be text: the outcome and the groups."""
        return tuple(name for name in (self.outcome, self.groups) if name is not None)

    def argument(self, name: str) -> str:
        """Return the argument to which a column belongs."""
        for argument in ("outcome", "successes", "trials", "sample_weight", "groups"):
            if getattr(self, argument) == name:
                return self.grouping if argument == "groups" else argument
        return "context" if name in self.coefficients else "features"


def roles(
    features: Any = None,
    *,
    outcome: Any = None,
    successes: Any = None,
    trials: Any = None,
    sample_weight: Any = None,
    context: Any = None,
    groups: Any = None,
) -> Roles:
    """Return the roles of columns; features that are not named yet are an empty tuple."""
    named: dict[str, Any] = {
        "outcome": _name("outcome", outcome),
        "successes": _name("successes", successes),
        "trials": _name("trials", trials),
        "sample_weight": _name("sample_weight", sample_weight),
        "groups": _name("groups", groups),
    }
    if (outcome is None) == (successes is None) or (successes is None) != (trials is None):
        raise refused(
            "outcome", "name either the column of outcomes, or those of successes and trials"
        )
    if successes is not None and sample_weight is not None:
        raise refused(
            "sample_weight",
            f"found {sample_weight!r} where trials are counted already; weights are for outcomes",
        )
    found = Roles(_names("features", features), **named, context=_context(context))
    twice = [name for i, name in enumerate(found.all) if name in found.all[:i]]
    if twice:
        raise refused("features", f"found column {twice[0]!r} in two places; each has one use")
    return found


def _name(argument: str, name: Any) -> str | None:
    if name is None:
        return None
    if not isinstance(name, str):
        found = checks.spelled(name)
        raise mistyped(argument, f"found {found}; the name of a column is needed")
    return _plain(name)


def _plain(name: str) -> str:
    """Return a str for NumPy strings and enumerations, whose repr differs."""
    return str.__str__(name)


def _names(argument: str, names: Any) -> tuple[str, ...]:
    if names is None:
        return ()
    found = tuple(checks.items(argument, names, "a list of names of columns is needed"))
    for name in found:
        if not isinstance(name, str):
            odd = checks.spelled(name)
            raise mistyped(argument, f"found {odd} in a list; names of columns are needed")
    if not found:
        raise refused(argument, "found no names; at least one column is needed")
    return tuple(map(_plain, found))


def _context(context: Any) -> Any:
    if context is None or callable(context):
        return context
    if isinstance(context, list | tuple) and any(isinstance(each, str) for each in context):
        return _names("context", context)
    if isinstance(context, ContextFamily) and len(context) == 1:
        return context
    array = np.atleast_2d(checks.array("context", context, _CONTEXT))
    if array.shape[0] != 1:
        raise refused("context", f"found shape {array.shape}; {_CONTEXT}")
    return array


# Values ------------------------------------------------------------------------------------


def value_kind(dtype: Any) -> str:
    """Return the kind of a column's values, in words."""
    types = arrow().types
    if types.is_dictionary(dtype):
        return value_kind(dtype.value_type)
    if types.is_boolean(dtype):
        return "booleans"
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "numbers"
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return "text"
    return "nothing" if types.is_null(dtype) else str(dtype)


def as_plain(column: Any) -> Any:
    """Return a column as an array of plain values, without dictionaries and decimals."""
    pa = arrow()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_null(column.type) or pa.types.is_float16(column.type):
        return column.cast(pa.float64())
    if pa.types.is_decimal(column.type):  # through their digits, so that they are rounded only once
        return column.cast(pa.string()).cast(pa.float64())
    return column


def as_numbers(column: Any) -> npt.NDArray[Any]:
    """Return a column of numbers or booleans as an array, with NaN for missing values."""
    pa = arrow()
    column = as_plain(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def is_missing(column: Any) -> npt.NDArray[np.bool_]:
    """Return which values of a column are missing: null, or NaN among numbers."""
    found = as_plain(column).is_null(nan_is_null=True)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_)
