"""Validated observations: points, outcomes, weights and contexts, in a form that can be summed.

All user input passes through here. Errors name the argument, the first offending row, what was
found and what is allowed.

Trials are stored as int64 columns, one per class, that count the trials with this outcome.
Fractional weights take a second column per class, in units of 2⁻³². All sums are integers, so
results never depend on the order of the trials, on batches or on merges.
"""

from __future__ import annotations

import functools
import operator
from hashlib import blake2b
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import numpy.typing as npt
import sklearn
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from betafield import categories, checks, success
from betafield.categories import Asked, Categories
from betafield.evidence.columns import FRACTIONS, MOST, require_countable
from betafield.refusals import mistyped, refused

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

READS_ALL_TABLES = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
# The default: all columns of X are numbers.
NUMBERS = Asked()
FINITE = "every value must be a finite number"
PRESENT = "a level, even one that was never seen, is needed wherever answers are asked for"
# What errors add about missing values in trials and in query points; None drops the rows.
TAUGHT, ASKED, DROPPED = "missing='drop' leaves such rows out", "", None
AS_LEVEL = ", missing='level' makes a level of its own of them"
LABELS = "labels are booleans, whole numbers or text. Complex data not supported, nor are dates"


# Points ------------------------------------------------------------------------------------


def points(estimator: Any, X: Any, *, reset: bool, name: str = "X") -> Floats:
    """Return X as a finite float64 array of shape (m, d), from an array or any dataframe.

    As in scikit-learn, names and number of the features are recorded on the estimator if `reset`,
    and otherwise compared with those recorded. Errors refer to the argument as `name`.
    """
    array = _numbers(X, estimator, name)
    if reset or not _is_plainly_alike(estimator, X):
        header = _header(X) if hasattr(X, "shape") else array
        try:
            validate_data(estimator, header, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise error if name == "X" else ValueError(f"{name}: {error}") from error
    names = getattr(estimator, "feature_names_in_", None)
    checks.require_all(np.isfinite(array), name, array, FINITE, names)
    return array


def _is_plainly_alike(estimator: Any, X: Any) -> bool:
    """Return whether scikit-learn would accept X: a plain array as wide as the first one.

    This skips scikit-learn's search for feature names, whose cost matters for single points.
    """
    has_names = hasattr(estimator, "feature_names_in_")
    width = getattr(estimator, "n_features_in_", None)
    return type(X) is np.ndarray and X.ndim == 2 and X.shape[1] == width and not has_names


class Features(NamedTuple):
    """The number of features, their names if any, and which are categories."""

    number: int
    names: Any = None
    categories: Categories = Categories()

    @property
    def numeric(self) -> list[int]:
        """The columns that are not categories."""
        return [a for a in range(self.number) if a not in self.categories.columns]

    def numbers(self, points: Floats) -> Floats:
        """Return the columns of points that are not categories, without a copy if that is all."""
        return points[:, self.numeric] if self.categories.columns else points

    @property
    def called(self) -> tuple[str, ...]:
        """The names of all columns, or x0, x1, … if they have none."""
        if self.names is None:
            return tuple(f"x{a}" for a in range(self.number))
        return tuple(map(str, self.names))

    def unseen(self) -> Features:
        """Return the same features without any levels."""
        known = self.categories
        return self._replace(categories=known._replace(labels=((),) * len(known.columns)))

    def named(self, column: int) -> str:
        """Return the name of a column in errors."""
        return f"column {column}" if self.names is None else f"column {self.names[column]!r}"

    @property
    def numeric_names(self) -> list[Any]:
        """Names of the numeric columns in errors."""
        return [a if self.names is None else self.names[a] for a in self.numeric]


def first_points(owner: str, X: Any, asked: Asked = NUMBERS) -> tuple[Floats, Features]:
    """Return X as in `points`, and its features; errors call the estimator `owner`.

    Columns of categories become the codes of their levels.
    """
    header = _estimator(owner)()
    if asked.categorical_features is None and asked.missing == "error":
        categories.interacting(asked.interactions, (), None, 1)
        array = points(header, X, reset=True)
        return array, Features(array.shape[1], getattr(header, "feature_names_in_", None))
    number, names = _noted(header, X, reset=True)
    chosen = categories.columns_of(asked.categorical_features, X, names, number)
    pairs = categories.interacting(asked.interactions, chosen, names, number)
    known = Categories(chosen, (), pairs, asked.missing == "level")
    features = Features(number, names, known).unseen()
    return _coded(header, X, features, "X", DROPPED if asked.missing == "drop" else TAUGHT)


def more_points(owner: str, X: Any, features: Features, name: str = "X") -> Floats:
    """Return X as in `points`; its features must match."""
    return _more(owner, X, features, name, ASKED)[0]


def further_points(
    owner: str, X: Any, features: Features, *, may_miss: bool = False
) -> tuple[Floats, Features]:
    """Do the same for trials, and return the features with the levels in X."""
    return _more(owner, X, features, "X", DROPPED if may_miss else TAUGHT)


def _more(
    owner: str, X: Any, features: Features, name: str, missing: str | None
) -> tuple[Floats, Features]:
    header = _estimator(owner)()
    header.n_features_in_ = features.number
    if features.names is not None:
        header.feature_names_in_ = features.names
    if not features.categories.columns and missing is not None:
        return points(header, X, reset=False, name=name), features
    _noted(header, X, reset=False, name=name)
    return _coded(header, X, features, name, missing)


def _noted(header: Any, X: Any, *, reset: bool, name: str = "X") -> tuple[int, Any]:
    """Return the number and names of a table's columns, after scikit-learn's comparison."""
    cells = X if hasattr(X, "shape") and not _has_words_of_its_own(X) else _objects(X, name)
    if len(getattr(cells, "shape", ())) != 2 or not all(cells.shape):
        points(_estimator("points")(), X, reset=True, name=name)  # raises
    try:
        validate_data(header, _header(cells), reset=reset, skip_check_array=True)
    except ValueError as error:
        raise error if name == "X" else ValueError(f"{name}: {error}") from error
    return int(cells.shape[1]), getattr(header, "feature_names_in_", None)


def _objects(X: Any, name: str) -> npt.NDArray[Any]:
    if _has_words_of_its_own(X):
        return _numbers(X, None, name)  # raises
    if type(X) is np.ndarray and X.dtype.kind in "biuf":
        return X  # one object per number would cost more than a fit
    checks.refuse_masked(name, X)
    try:
        return np.asarray(X, dtype=object)
    except ValueError as error:
        raise refused(name, str(error)) from error


def _coded(
    header: Any, X: Any, features: Features, name: str, missing: str | None
) -> tuple[Floats, Features]:
    """Return a table as numbers, with levels as codes, and its features with these levels.

    `missing` is what errors say about missing values; None allows them.
    """
    known, table = features.categories, categories.table_of(X)
    cells = None if table is not None else _objects(X, name)
    size = table.shape[0] if table is not None else len(_as_cells(cells))
    values = np.empty((size, 0))
    if features.numeric:
        numeric = features.numeric if known.columns else slice(None)
        some: Any = _as_cells(cells)[:, numeric] if table is None else table[:, numeric].to_native()
        values = _numbers(some, header, name)
    out = _among_categories(values, features)
    found = []
    for a in known.columns:
        column = table[:, a].to_list() if table is not None else _as_cells(cells)[:, a].tolist()
        numbers, labels = categories.coded(f"{name}, {features.named(a)},", column)
        if known.has_missing and np.isnan(numbers).any():
            numbers, labels = np.nan_to_num(numbers, nan=categories.NOTHING), (*labels, None)
        out[:, a] = numbers
        found.append(labels)
    if missing is not None:
        _require_present(out, features, name, missing)
    else:
        checks.require_all(~np.isinf(out), name, out, FINITE, features.names)
    seen = known._replace(labels=tuple(found))
    if any(known.labels):
        seen = known.plus(seen)
    return out, features._replace(categories=seen)


def _among_categories(values: Floats, features: Features) -> Floats:
    """Return these numbers with space for the columns of categories, and as given without any."""
    if not features.categories.columns:
        return np.ascontiguousarray(values)
    out = np.empty((len(values), features.number))
    out[:, features.numeric] = values
    return out


def _as_cells(cells: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    assert cells is not None
    return cells


def _require_present(array: Floats, features: Features, name: str, rule: str) -> None:
    """Raise for the first value that is missing or infinite, and say how many there are."""
    wrong = ~np.isfinite(array)
    if wrong.any():
        row, column = checks.first(wrong)
        found, is_category = array[row, column], column in features.categories.columns
        value = "a missing value" if is_category else checks.spelled(found)
        rules = [] if is_category and rule else [FINITE if not is_category else PRESENT]
        if rule and np.isnan(found):
            rules.append(rule + (AS_LEVEL if is_category else ""))
        said = f"found {value}, the first of {int(wrong.sum())} such values; {', and '.join(rules)}"
        raise refused(name, said, row, features.named(column))


@functools.lru_cache
def _estimator(name: str) -> Any:
    """Return a class of this name, whose instances hold what scikit-learn records of features."""
    return type(name, (BaseEstimator,), {})


class _Header:
    """Names and shape of any library's table, for scikit-learn 1.8.

    That release reads names from pandas and by the protocol `__dataframe__`, which polars has
    dropped; later releases read them from all libraries.
    """

    def __init__(self, table: nw.DataFrame[Any]) -> None:
        self.shape = table.shape
        self.column_names = lambda: table.columns

    def __dataframe__(self) -> _Header:
        return self


def _header(X: Any) -> Any:
    """Return an object from which this version of scikit-learn reads the feature names."""
    if READS_ALL_TABLES or isinstance(X, np.ndarray) or hasattr(X, "__dataframe__"):
        return X
    table = nw.from_native(X, pass_through=True)
    is_other = isinstance(table, nw.DataFrame) and not nw.dependencies.is_pandas_dataframe(X)
    return _Header(table) if is_other else X


def _numbers(X: Any, estimator: Any, name: str) -> Floats:
    if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.size:
        return X  # as in check_array, but 100 times faster, which matters for single points
    cells = X if _has_words_of_its_own(X) else checks.array(name, X)
    try:
        array: Floats = check_array(
            cells, dtype=np.float64, ensure_all_finite=False, input_name=name, estimator=estimator
        )
    except (TypeError, ValueError) as error:
        make = mistyped if isinstance(error, TypeError) else refused
        raise make(name, str(error)) from error
    return array


def _has_words_of_its_own(X: Any) -> bool:
    """Return whether scikit-learn refuses X with advice of its own."""
    is_complex = isinstance(X, np.ndarray) and X.dtype.kind == "c"
    return is_complex or isinstance(X, np.matrix) or bool(issparse(X))


# Outcomes ----------------------------------------------------------------------------------


def labels(y: Any, n_rows: int) -> npt.NDArray[Any]:
    """Return y as one label per row, none of them missing."""
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None")
    array = checks.cells("y", y)
    if array.ndim != 1:
        array = _one_column(array)
    checks.require_length("y", array, n_rows)
    _require_labels("y", array)
    return array


def _one_column(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    try:
        return np.asarray(column_or_1d(array, warn=True))
    except ValueError as error:
        raise refused("y", str(error)) from error


def classes_of(
    y: npt.NDArray[Any], classes: Any = None, *, alone: bool = False
) -> npt.NDArray[Any]:
    """Return the sorted classes, at least two: those given, or else those of y.

    If `alone`, outcomes that are all 0 or all 1 will do, because the other class is then known.

    Examples
    --------
    >>> classes_of(np.array([True, True]), alone=True).tolist()
    [False, True]
    """
    name, given = ("y", y) if classes is None else ("classes", checks.cells("classes", classes))
    if given.ndim != 1:
        raise refused(name, f"found shape {given.shape}; a list of labels is needed")
    _require_labels(name, given)
    found = np.unique(given)
    if alone and classes is None:
        found = success.with_the_other(found)
    if len(found) < 2:
        what = f"only one class, {checks.spelled(found[0])}" if len(found) else "no class"
        raise refused(
            name,
            f"found {what}; two or more are needed. "
            "To learn from one class before the other is seen, use "
            "partial_fit(X, y, classes=[...])",
        )
    return found


def _require_labels(name: str, values: npt.NDArray[Any]) -> None:
    """Raise for the first missing or infinite label, and for continuous values."""
    if values.dtype.kind == "f":
        checks.require_all(np.isfinite(values), name, values, "every label must be finite")
    elif values.dtype.kind == "O":
        present = np.array([not _missing(value) for value in values], dtype=np.bool_)
        checks.require_all(present, name, values, "no label may be missing")
    elif values.dtype.kind in "cmM":
        checks.require_all(np.zeros(len(values), np.bool_), name, values, LABELS)
    if values.dtype.kind not in "biuUS" and values.size:  # others are always labels
        try:
            with np.errstate(invalid="ignore"):  # for numbers beyond int64
                check_classification_targets(values)
        except ValueError as error:
            raise refused(name, str(error)) from error


def _missing(value: Any) -> bool:
    """Return whether a value is None, NaN, masked, or pandas' NA, which cannot be compared."""
    try:
        return value is None or value is np.ma.masked or bool(operator.ne(value, value))
    except TypeError:
        return True


def outcomes(y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return one row per class that says which trials had this outcome."""
    columns = np.array([y == label for label in classes])
    checks.require_all(np.any(columns, axis=0), "y", y, f"the classes are {classes.tolist()}")
    return columns


def weights(sample_weight: Any, n_rows: int, *, part: bool = False) -> Floats | None:
    """Return one weight per row; None if no weights were given.

    At least one must be positive, unless these are only some of the rows to learn from.
    """
    if sample_weight is None:
        return None
    array = _column("sample_weight", sample_weight, n_rows)
    checks.require_all(array >= 0, "sample_weight", array, "weights must not be negative")
    if not part:
        _require_weight(array)
    require_countable("sample_weight", array)
    return array


def _require_weight(array: Floats) -> None:
    """Raise unless at least one weight is large enough to count."""
    if not array.any():
        raise refused("sample_weight", "all weights are zero; at least one must be positive")
    if array.max() < 0.5 / FRACTIONS:
        raise refused(
            "sample_weight",
            f"the largest is {array.max():g}; weights below {0.5 / FRACTIONS:.2g} "
            "count as zero, and at least one must be larger",
        )


def groups(values: Any, n_rows: int, *, part: bool = False) -> Floats | None:
    """Return one number per row that identifies its group; None: no groups.

    Some group must have two trials, unless these are only some of the rows to learn from. The
    number is 53 bits of a hash of the label, so a label has the same number in every batch and
    every model, without a table of labels.
    """
    if values is None:
        return None
    array = checks.cells("groups", values)
    if array.ndim != 1:
        raise refused("groups", f"found shape {array.shape}; one label per row is needed")
    checks.require_length("groups", array, n_rows)
    _require_labels("groups", array)
    each, which = np.unique(array, return_inverse=True)
    if len(each) == n_rows and not part:
        raise refused(
            "groups",
            f"found {n_rows} groups of one trial each, which share nothing that could be "
            "learned; give the same label to trials of a group, or leave groups out",
        )
    return np.array([_hashed(label) for label in each.tolist()])[which]


def overdispersed(overdispersion: Any, is_grouped: bool) -> bool:
    """Return whether rows may vary more than binomial."""
    rule = "allowed are None and 'auto'"
    checks.one_of("overdispersion", overdispersion, (None, "auto"), rule)
    if overdispersion is not None and is_grouped:
        raise refused(
            "overdispersion",
            "found 'auto' together with groups, which have effects of their own; "
            "give one of the two, with a group per row if rows vary within groups",
        )
    return overdispersion is not None


def _hashed(label: Any) -> float:
    """Return 53 bits of the hash of a label's text, as in files; 1 and 1.0 are equal."""
    is_whole = isinstance(label, bool | int) or (isinstance(label, float) and label.is_integer())
    key = str(int(label) if is_whole else label)
    return float(int.from_bytes(blake2b(key.encode(), digest_size=8).digest()) >> 11)


def binomial(successes: Any, trials: Any, n_rows: int, *, part: bool = False) -> Ints:
    """Return rows (failures, successes) from counts of successes among trials.

    At least one trial is needed, unless these are only some of the rows to learn from.
    """
    won, held = _counts("successes", successes, n_rows), _counts("trials", trials, n_rows)
    if (won > held).any():
        row = int(np.argmax(won > held))
        raise refused(
            "successes",
            f"found {won[row]} of {held[row]} trials; there cannot be more successes than trials",
            row=row,
        )
    if not (part or held.any()):
        raise refused("trials", "all are zero; at least one must be positive")
    require_countable("trials", held)
    return np.array([held - won, won])


def _counts(name: str, values: Any, n_rows: int) -> Ints:
    given = checks.cells(name, values)
    array = _column(name, values, n_rows)
    whole = (array >= 0) & (array == np.floor(array)) & (array <= MOST)
    checks.require_all(
        whole, name, array, f"counts must be whole numbers from 0 to at most {MOST:g}"
    )
    # Integers must not pass through a float, which is exact only up to 2⁵³.
    exact = given if given.dtype.kind in "biu" else array
    return np.broadcast_to(exact, array.shape).astype(np.int64)


def _column(name: str, values: Any, n_rows: int) -> Floats:
    """Return one finite number per row; a single number applies to all rows."""
    array = checks.array(name, values)
    if array.ndim == 0:
        array = np.full(n_rows, float(array))
    if array.ndim != 1:
        raise refused(name, f"found an array of shape {array.shape}; one value per row is needed")
    checks.require_length(name, array, n_rows)
    checks.require_all(np.isfinite(array), name, array, FINITE)
    return array
