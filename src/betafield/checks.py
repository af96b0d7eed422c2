"""Checks of arguments: `argument: found …; allowed are …`, with the row if there is one.

Every function takes the name of an argument and its value, and returns the value in the form in
which it is used. Invalid values raise `ValueError`, and values of the wrong kind `TypeError`; both
messages begin with the argument's name.
"""

from __future__ import annotations

import datetime
import itertools
import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from betafield.refusals import Refused, mistyped, refused
from betafield.tables import native

Floats = npt.NDArray[np.float64]
T = TypeVar("T")

# Floats represent whole numbers exactly up to here.
MOST = 2**53
# The deepest nesting of lists; arrays cannot have more dimensions.
DEEPEST = 64
_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


# Values in messages ------------------------------------------------------------------------


class _Short(reprlib.Repr):
    """Formats a value on one line, as users write it: NaN, not np.float64(nan)."""

    def __init__(self) -> None:
        super().__init__()
        self.maxother = self.maxstring = self.maxlong = 60

    def repr1(self, x: Any, level: int) -> str:
        if isinstance(x, np.datetime64 | np.timedelta64):
            return str(x)
        if isinstance(x, np.generic):
            x = x.item()
        if isinstance(x, float) and math.isnan(x):
            return "NaN"
        try:
            return " ".join(super().repr1(x, level).split())
        except Exception:  # any __repr__ may fail, and that of huge integers does
            return f"a value of type {type(x).__name__}"

    def repr_int(self, x: int, level: int) -> str:
        repr(x)  # fails if x is huge; from Python 3.14 on, reprlib would tell its address instead
        return super().repr_int(x, level)


spelled = _Short().repr


def refusal(
    name: str, said: str, at: Sequence[int] = (), columns: Sequence[Any] | None = None
) -> Refused:
    """Say what is wrong where in an argument: a number, a row of a column, a row and a column.

    Examples
    --------
    >>> str(refusal("y", "found 2")), str(refusal("y", "found 2", (3,)))
    ('y: found 2', 'y row 3: found 2')
    >>> str(refusal("X", "found 2", (3, 1), columns=["dose", "age"]))
    "X row 3, column 'age': found 2"
    """
    parts = [str(i) for i in at[1:]]
    if parts:
        parts[-1] = f"column {at[-1] if columns is None else spelled(columns[at[-1]])}"
    return Refused(name, said, at[0] if at else None, ", ".join(parts))


def require(good: Any, name: str, value: Any, rule: str) -> None:
    """Raise unless `good`.

    Examples
    --------
    >>> require(False, "n", -1, "a whole number from 1 on is needed")
    Traceback (most recent call last):
        ...
    ValueError: n: found -1; a whole number from 1 on is needed
    """
    if not good:
        raise refused(name, f"found {spelled(value)}; {rule}")


def require_all(
    good: Any, name: str, values: Any, rule: str, columns: Sequence[Any] | None = None
) -> None:
    """Raise for the first value that is not good; `columns` names the columns of a table.

    Examples
    --------
    >>> require_all(np.array([True, False]), "y", np.array([1.0, np.nan]), "it must be finite")
    Traceback (most recent call last):
        ...
    ValueError: y row 1: found NaN; it must be finite
    """
    if not np.all(good):
        at = first(~np.asarray(good))
        found = spelled(np.asarray(values)[at])
        raise refusal(name, f"found {found}; {rule}", at, columns).error(ValueError)


def first(bad: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the index of the first True."""
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), np.shape(bad)))


# One value ---------------------------------------------------------------------------------


def is_number(value: Any) -> bool:
    """Return whether the value is one real number; booleans, dates and text are not."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def number(
    name: str,
    value: Any,
    rule: str = "a finite number is needed",
    *,
    low: float = -math.inf,
    high: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
) -> float:
    """Return a finite number with low ≤ number ≤ high and above < number < below.

    Examples
    --------
    >>> number("spread", 0, "a number from 0 to below 1 is needed", low=0, below=1)
    0.0
    >>> number("spread", "a")
    Traceback (most recent call last):
        ...
    ValueError: spread: found 'a'; a finite number is needed
    """
    x = as_float(value) if is_number(value) else math.nan
    require(math.isfinite(x) and low <= x <= high and above < x < below, name, value, rule)
    return x


def as_float(value: Any) -> float:
    """Return a number as a float, infinite if it overflows."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def positive(name: str, value: Any, rule: str = "a positive number is needed") -> float:
    """Return a positive finite number.

    Examples
    --------
    >>> positive("lipschitz", 2)
    2.0
    """
    return number(name, value, rule, above=0.0)


def probability(name: str, value: Any) -> float:
    """Return a number from 0 to 1."""
    return number(name, value, "a probability within [0, 1] is needed", low=0.0, high=1.0)


def share(name: str, value: Any, rule: str = "a number between 0 and 1 is needed") -> float:
    """Return a number strictly between 0 and 1."""
    return number(name, value, rule, above=0.0, below=1.0)


def whole(
    name: str, value: Any, low: int = 1, high: int | None = None, rule: str | None = None
) -> int:
    """Return a whole number from low to high, or up to 2⁵³; 3.0 is not accepted.

    Examples
    --------
    >>> whole("n", np.int64(3))
    3
    >>> whole("n", 0, high=10)
    Traceback (most recent call last):
        ...
    ValueError: n: found 0; a whole number from 1 to 10 is needed
    """
    span = f"from {low} on" if high is None else f"from {low} to {high}"
    rule = rule or f"a whole number {span} is needed"
    good = isinstance(value, Integral) and is_number(value) and low <= int(value)
    require(good and (high is None or int(value) <= high), name, value, rule)
    require(high is not None or int(value) <= MOST, name, value, f"at most {MOST} is possible")
    return int(value)


def flag(name: str, value: Any, rule: str = "True or False is needed") -> bool:
    """Return True or False.

    Examples
    --------
    >>> flag("simultaneous", np.True_)
    True
    """
    require(isinstance(value, bool | np.bool_), name, value, rule)
    return bool(value)


def one_of(name: str, value: Any, allowed: Iterable[Any], rule: str | None = None) -> Any:
    """Return the value if it is allowed: a name, a number or None.

    Examples
    --------
    >>> one_of("degree", np.ones(2), ("auto", 0, 1))
    Traceback (most recent call last):
        ...
    ValueError: degree: found array([1., 1.]); allowed are 'auto', 0 and 1
    """
    known = tuple(allowed)
    comparable = value is None or isinstance(value, str) or is_number(value)
    if not (comparable and value in known):
        require(False, name, value, rule or f"allowed are {listed(known)}")
    return value


def listed(values: Iterable[Any]) -> str:
    """Return values as an enumeration.

    Examples
    --------
    >>> listed(["a", "b", 3])
    "'a', 'b' and 3"
    """
    *others, last = map(spelled, values)
    return f"{', '.join(others)} and {last}" if others else last


def instance(name: str, value: Any, kind: type[T] | tuple[type[T], ...], rule: str) -> T:
    """Return the value if it is of this kind; otherwise `TypeError` names its type.

    Examples
    --------
    >>> instance("space", 3, dict, "a mapping of names to (low, high) is needed")
    Traceback (most recent call last):
        ...
    TypeError: space: found int; a mapping of names to (low, high) is needed
    """
    if not isinstance(value, kind):
        raise mistyped(name, f"found {type(value).__name__}; {rule}")
    return value


def feature_index(what: str, names: tuple[str, ...], feature: Any) -> int:
    """Return the index of a feature, given its index or its name; `what` names the argument.

    Examples
    --------
    >>> feature_index("feature", ("dose", "age"), "age"), feature_index("feature", ("dose",), 0)
    (1, 0)
    """
    if isinstance(feature, str):
        rule = f"the features are {', '.join(names)}"
        return names.index(one_of(what, feature, names, rule))
    last = len(names) - 1
    rule = f"a name or a number from 0 to {last} is needed"
    return whole(what, feature, -len(names), last, rule) % len(names)


def items(name: str, values: Any, rule: str) -> list[Any]:
    """Return the items of an iterable; text and mappings are refused.

    Examples
    --------
    >>> items("seeds", range(3), "a list of whole numbers is needed")
    [0, 1, 2]
    >>> items("seeds", np.array(3), "a list of whole numbers is needed")
    Traceback (most recent call last):
        ...
    TypeError: seeds: found ndarray; a list of whole numbers is needed
    """
    try:
        if not isinstance(values, str | bytes | Mapping):
            return list(values)
    except TypeError:  # arrays without an axis have __iter__ too
        pass
    raise mistyped(name, f"found {type(values).__name__}; {rule}")


def generator(name: str, random_state: Any) -> np.random.Generator:
    """Return a random generator: the one given, or a new one from a seed.

    Examples
    --------
    >>> generator("random_state", 0).random() == generator("random_state", 0).random()
    True
    """
    if isinstance(random_state, np.random.RandomState):  # NumPy 2.0 cannot make a Generator of it
        random_state = random_state.randint(1 << 32, size=4, dtype=np.uint32)
    elif not (random_state is None or isinstance(random_state, np.random.Generator)):
        # NumPy crashes the process if it is given a list that contains itself.
        rule = "a whole number from 0 on, a numpy Generator or RandomState, or None is needed"
        random_state = whole(name, random_state, low=0, high=1 << 128, rule=rule)
    return np.random.default_rng(random_state)


# Arrays ------------------------------------------------------------------------------------


def cells(name: str, values: Any) -> npt.NDArray[Any]:
    """Return values of any kind as an array; masked values and ragged rows are refused.

    Dataframes and columns of any library are converted too.

    Examples
    --------
    >>> cells("y", np.ma.array([1, 2, 3], mask=[False, True, False]))
    Traceback (most recent call last):
        ...
    ValueError: y row 1: found a masked value; fill it in or leave the row out
    """
    given = _native(name, values)
    refuse_masked(name, given)
    found = _plain_array(name, given)
    require(found.dtype.kind in "biufcmMOUST", name, values, "an array of values is needed")
    return found


def _plain_array(name: str, given: Any) -> npt.NDArray[Any]:
    """Return the values as a NumPy array; lists of different lengths are refused."""
    try:
        return np.asarray(given)
    except Exception as error:
        is_list = isinstance(given, list | tuple) and isinstance(error, ValueError)
        found = "rows of different lengths" if is_list else spelled(given)
        rule = "they must be equal" if is_list else "an array is needed"
        raise refused(name, f"found {found}; {rule}") from error


def _native(name: str, values: Any) -> Any:
    """Return dataframes as arrays; errors of their library get the argument's name."""
    try:
        return native(values)
    except Exception as error:
        make = mistyped if isinstance(error, TypeError) else refused
        raise make(name, str(error)) from error


def refuse_masked(name: str, values: Any) -> None:
    """Raise for the first masked value in an array, or in lists of arrays."""
    at = _masked_at(values)
    if at is not None:
        said = "found a masked value; fill it in or leave the row out"
        raise refusal(name, said, at).error(ValueError)


def _masked_at(values: Any, depth: int = 0) -> tuple[int, ...] | None:
    """Return the position of the first masked value in an array, or in lists of arrays."""
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(values)
        return first(hidden) if hidden.any() else None
    if isinstance(values, list | tuple) and depth < DEEPEST and _may_hide(values):
        for row, each in enumerate(values):
            if (at := _masked_at(each, depth + 1)) is not None:
                return (row, *at)
    return None


def _may_hide(values: Sequence[Any]) -> bool:
    """Return whether a list, or a list in it, may hold masked values, without a Python loop."""
    kinds = set(map(type, values))
    if kinds <= {list, tuple}:
        kinds = set(map(type, itertools.chain.from_iterable(values)))
    return any(issubclass(kind, list | tuple | np.ma.MaskedArray) for kind in kinds)


def array(name: str, values: Any, rule: str = "every value must be a number") -> Floats:
    """Return numbers as a float64 array of any shape; NaN and infinities are allowed.

    Refused are masked values, complex numbers, dates, text that looks like numbers, rows of
    different lengths, and whole numbers beyond all floats.

    Examples
    --------
    >>> array("times", [0, 0.5])
    array([0. , 0.5])
    >>> array("times", [0, "09"])
    Traceback (most recent call last):
        ...
    ValueError: times row 1: found '09'; every value must be a number
    """
    if type(values) is np.ndarray and values.dtype == np.float64:
        return values  # the usual case; this matters for the time of a single query
    found = cells(name, values)
    if found.dtype.kind in "biuf":
        return _floats(found)
    if found.dtype.kind != "O" and isinstance(values, list | tuple):
        found = np.asarray(values, dtype=object)  # because numbers among text have become text
    _require_numbers(name, found, rule, values)
    return np.array([_number_of(cell) for cell in found.ravel()]).reshape(found.shape)


def _floats(numbers: npt.NDArray[Any]) -> Floats:
    if numbers.itemsize <= np.dtype(np.float64).itemsize:
        return np.asarray(numbers, dtype=np.float64)
    with np.errstate(over="ignore"):  # long doubles may overflow
        return np.asarray(numbers, dtype=np.float64)


def _number_of(cell: Any) -> float:
    """Return a cell of an object array as a float, NaN if it is missing."""
    return as_float(cell) if isinstance(cell, Real | Decimal) else math.nan


def _require_numbers(name: str, found: npt.NDArray[Any], rule: str, table: Any) -> None:
    """Raise for the first cell that is neither a number nor missing."""
    for at in np.ndindex(found.shape):
        cell = found[at]
        if not _is_number_or_missing(cell):
            names = getattr(table, "column_names", getattr(table, "columns", None))
            wrong = refusal(name, f"found {spelled(cell)}; {rule}", at, names)
            if isinstance(cell, (str, bytes, complex, Real, *_DATES)):
                raise wrong.error(ValueError)
            raise wrong._replace(said=f"{wrong.said} ({_cause(cell)})").error(TypeError)


def _is_number_or_missing(cell: Any) -> bool:
    if isinstance(cell, Integral):
        return not isinstance(cell, np.timedelta64) and math.isfinite(as_float(cell))
    # The last one is pandas's, which need not be installed.
    return cell is None or isinstance(cell, Real | Decimal) or type(cell).__name__ == "NAType"


def _cause(cell: Any) -> str:
    """Return why Python cannot convert it to a number."""
    try:
        float(cell)
    except Exception as error:
        return str(error)
    return f"it is of type {type(cell).__name__}"


def finite(
    name: str,
    values: Any,
    rule: str = "every value must be a finite number",
    shape: tuple[int | None, ...] | None = None,
    needed: str | None = None,
) -> Floats:
    """Return finite numbers as a float64 array, of this shape if given; None is any length.

    `needed` describes the shape in words.

    Examples
    --------
    >>> finite("places", [[0.5, 1.0]], shape=(None, 2)).shape
    (1, 2)
    >>> finite("places", [0.5, 1.0], shape=(None, 2))
    Traceback (most recent call last):
        ...
    ValueError: places: found shape (2,); (any, 2) is needed
    """
    found = array(name, values, rule)
    if shape is not None:
        shaped(name, found, shape, needed)
    require_all(np.isfinite(found), name, found, rule)
    return found


def shaped(
    name: str,
    found: npt.NDArray[Any],
    shape: tuple[int | None, ...],
    needed: str | None = None,
) -> None:
    """Raise unless an array has this shape; None is any length."""
    fits = found.ndim == len(shape) and all(
        n in (None, m) for n, m in zip(shape, found.shape, strict=True)
    )
    if not fits:
        sides = [str(n or "any") for n in shape]
        text = needed or f"({', '.join(sides)}{',' * (len(sides) == 1)}) is needed"
        raise refused(name, f"found shape {found.shape}; {text}")


def require_length(name: str, values: npt.NDArray[Any], n_rows: int) -> None:
    """Raise unless there is one value per row of X."""
    if len(values) != n_rows:
        found = f"found {len(values)} rows where X has {n_rows}"
        raise refused(name, f"{found}; one per row of X is needed")
