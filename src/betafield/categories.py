"""Columns of X that are categories: which they are, and their levels as codes.

A level is identified by its text, as in files: 1, 1.0 and "1" are the same level. Its code is 53
bits of a hash of that text, so a level has the same code in every batch and every model, and what
is learned never depends on which level came first. A missing value that counts as a level has the
code −1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield.refusals import mistyped, refused

Floats = npt.NDArray[np.float64]
Label = str | None

# Largest number of levels of one column, and of all columns except the largest.
MOST_LEVELS, MOST_BESIDE = 10_000, 1_000
# The name and the code of a missing value.
MISSING, NOTHING = "(missing)", -1.0
HANDLED = ("error", "drop", "level")
BY_DTYPE = "from_dtype"
RULE = (
    "'from_dtype', None, a list of names or indices of columns, or one boolean per column is needed"
)


class Asked(NamedTuple):
    """The options about columns of X."""

    categorical_features: Any = None
    interactions: Any = ()
    missing: str = "error"


class Categories(NamedTuple):
    """Columns of X that are categories.

    Parameters
    ----------
    columns : tuple of int
        Their indices, sorted.
    labels : tuple of tuples of str
        The observed levels of each, sorted; None, which comes last, is a missing value.
    interactions : tuple of tuples of int
        Columns whose combinations have their own effects.
    has_missing : bool
        Whether a missing value counts as a level.
    """

    columns: tuple[int, ...] = ()
    labels: tuple[tuple[Label, ...], ...] = ()
    interactions: tuple[tuple[int, ...], ...] = ()
    has_missing: bool = False

    def plus(self, other: Categories) -> Categories:
        """Return these categories with the levels of both."""
        pairs = zip(self.labels, other.labels, strict=True)
        return self._replace(labels=tuple(joined(a, b) for a, b in pairs))

    def shown(self, column: int) -> list[str]:
        """Return the levels of a column as shown to users."""
        labels = self.labels[self.columns.index(column)]
        return [MISSING if label is None else label for label in labels]

    def codes(self, column: int) -> Floats:
        """Return the codes of the levels of a column, in the order of their labels."""
        return np.array([code(label) for label in self.labels[self.columns.index(column)]])


def joined(a: Iterable[Label], b: Iterable[Label]) -> tuple[Label, ...]:
    """Return the levels of both, sorted; raise if two of them have the same code."""
    every = sorted({*a, *b}, key=lambda label: (label is None, label))
    if len({code(label) for label in every}) < len(every):
        raise refused("X", "two levels of a category have the same hash; rename one of them")
    return tuple(every)


# Levels ------------------------------------------------------------------------------------


def code(label: Label) -> float:
    """Return the code of a level."""
    if label is None:
        return NOTHING
    return float(int.from_bytes(blake2b(label.encode(), digest_size=8).digest()) >> 11)


def text(value: Any) -> Label:
    """Return a level as text; None if it is missing.

    Examples
    --------
    >>> text(1.0), text("left"), text(True), text(float("nan"))
    ('1', 'left', 'True', None)
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or _is_missing(value):
        return None
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.capitalize()  # as Python spells it, however files do
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if is_whole else value)


def _is_missing(value: Any) -> bool:
    try:
        return value is np.ma.masked or bool(value != value)  # noqa: PLR0124
    except (TypeError, ValueError):
        return True  # pandas' NA, which cannot be compared


def coded(name: str, values: Sequence[Any] | npt.NDArray[Any]) -> tuple[Floats, tuple[Label, ...]]:
    """Return the code of each value, NaN if it is missing, and the sorted levels."""
    numbers: dict[Any, tuple[float, Label]] = {}
    out = np.empty(len(values))
    for i, value in enumerate(values):
        try:
            known = numbers.get(value)
        except TypeError as error:
            said = f"found {checks.spelled(value)}; a level is text or a number"
            raise mistyped(name, said, i) from error
        if known is None:
            label = text(value)
            known = (np.nan if label is None else code(label)), label
            numbers[value] = known
        out[i] = known[0]
    return out, joined({label for _, label in numbers.values() if label is not None}, ())


def require_few(categories: Categories) -> None:
    """Raise if there are more levels than effects can be learned for."""
    sizes = [len(labels) for labels in categories.labels]
    for column, size in zip(categories.columns, sizes, strict=True):
        if size > MOST_LEVELS:
            raise ValueError(
                f"X column {column}: found {size:,} levels; at most {MOST_LEVELS:,} are possible, "
                "so join rare ones, or pass the column as groups if you do not ask about its levels"
            )
    beside = sum(sizes) - max(sizes, default=0)
    if beside > MOST_BESIDE:
        raise refused(
            "X",
            f"found {beside:,} levels in all columns of categories but the one with most; at "
            f"most {MOST_BESIDE:,} are possible, so join rare ones",
        )


# Columns -----------------------------------------------------------------------------------


def table_of(X: Any) -> nw.DataFrame[Any] | None:
    """Return any library's dataframe; None for anything else."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    data = nw.from_native(X, pass_through=True)
    return data if isinstance(data, nw.DataFrame) else None


def columns_of(asked: Any, X: Any, names: Sequence[Any] | None, d: int) -> tuple[int, ...]:
    """Return the columns that are categories, as requested."""
    if asked is None:
        return ()
    if isinstance(asked, str):
        checks.one_of("categorical_features", asked, (BY_DTYPE,), RULE)
        return by_dtype(X)
    given = checks.items("categorical_features", asked, RULE)
    if given and all(isinstance(each, bool | np.bool_) for each in given):
        rule = f"one boolean per column is needed, {d}"
        checks.require(len(given) == d, "categorical_features", asked, rule)
        return tuple(int(i) for i in np.flatnonzero(given))
    found = sorted(index("categorical_features", each, names, d) for each in given)
    checks.require(
        len(set(found)) == len(found), "categorical_features", asked, "every column only once"
    )
    return tuple(found)


def index(name: str, column: Any, names: Sequence[Any] | None, d: int) -> int:
    """Return the index of a column by its name or index."""
    if isinstance(column, str):
        known = [] if names is None else [str(each) for each in names]
        rule = f"the columns are {', '.join(known)}" if known else "X has no names of columns"
        checks.require(column in known, name, column, rule)
        return known.index(column)
    rule = f"names of columns are allowed, and indices from 0 to {d - 1}"
    return checks.whole(name, column, 0, d - 1, rule)


def interacting(
    asked: Any, columns: tuple[int, ...], names: Sequence[Any] | None, d: int
) -> tuple[tuple[int, ...], ...]:
    """Return the columns that interact, as requested."""
    rule = "a list of tuples of columns that are categories is needed"
    if isinstance(asked, str):
        raise mistyped("interactions", f"found {checks.spelled(asked)}; {rule}")
    found = []
    for each in checks.items("interactions", () if asked is None else asked, rule):
        if isinstance(each, str):
            raise mistyped("interactions", f"found {checks.spelled(each)}; {rule}")
        chosen = [
            index("interactions", one, names, d) for one in checks.items("interactions", each, rule)
        ]
        checks.require(len(set(chosen)) == len(chosen) >= 2, "interactions", each, rule)
        for one in chosen:
            known = [str(a) if names is None else str(names[a]) for a in columns]
            told = f"the columns that are categories are {', '.join(known) or 'none'}"
            checks.require(one in columns, "interactions", each, told)
        found.append(tuple(sorted(chosen)))
    checks.require(len(set(found)) == len(found), "interactions", asked, "each only once")
    return tuple(sorted(found))


def by_dtype(X: Any) -> tuple[int, ...]:
    """Return the columns of a dataframe that are text, categories or booleans."""
    table = table_of(X)
    if table is None:
        return ()
    return tuple(i for i, name in enumerate(table.columns) if _is_category(name, table))


def _is_category(name: str, table: nw.DataFrame[Any]) -> bool:
    """Return whether a column holds text, categories or booleans."""
    dtype, column = table.schema[name], table.get_column(name).to_native()
    # In columns of objects, narwhals inspects only the first values.
    if dtype == nw.Object or str(getattr(column, "dtype", "")) == "object":
        return _is_text(name, table)
    return any(dtype == kind for kind in (nw.String, nw.Categorical, nw.Enum, nw.Boolean))


def _is_text(name: str, table: nw.DataFrame[Any]) -> bool:
    """Return whether a column of objects holds text; raise if it also holds numbers."""
    values = table.get_column(name).to_list()
    is_text = [isinstance(value, str | bool) for value in values]
    is_number = [checks.is_number(value) and text(value) is not None for value in values]
    if any(is_text) and any(is_number):
        row = is_number.index(True) if is_text[0] else is_text.index(True)
        raise _mixed(row, name, values[row])
    return any(is_text)


def is_numeral(label: Label) -> bool:
    """Return whether the text of a level is a finite number."""
    try:
        return label is not None and math.isfinite(float(label))
    except ValueError:
        return False


def require_words(column: str, labels: Sequence[Label]) -> None:
    """Raise for the first number in a column whose values have been words so far."""
    for row, label in enumerate(labels):
        if is_numeral(label):
            raise _mixed(row, column, label)


def require_alike(X: Any, known: Categories) -> None:
    """Raise for numbers in dataframe columns that are categories because they were text."""
    table = table_of(X)
    if table is None or table.shape[1] <= max(known.columns, default=0):
        return
    as_text = by_dtype(X)
    for a, labels in zip(known.columns, known.labels, strict=True):
        present = [label for label in labels if label is not None]
        if a not in as_text and present and not any(map(is_numeral, present)):
            values = table[:, a].to_list()
            is_there = [text(value) is not None for value in values]
            if any(is_there):
                row = is_there.index(True)
                raise _mixed(row, table.columns[a], values[row])


def _mixed(row: int, column: str, value: Any) -> ValueError:
    return refused(
        "X",
        f"found {checks.spelled(value)} in a column that has text and numbers; make it one or the "
        "other, or name it in categorical_features",
        row,
        f"column {column!r}",
    )


def missing_of(value: Any) -> str:
    """Return how missing values are handled; raise if that is invalid."""
    return str(checks.one_of("missing", value, HANDLED))
