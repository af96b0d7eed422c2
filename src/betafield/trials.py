"""What was observed: points, outcomes, weights and contexts, validated, as sums that can be added.

All that comes from users passes through here. Errors name the argument, the first offending
row, what was found and what is allowed.

Trials are kept as int64 columns, one a class: how many trials ended so. Fractional weights
take a second column a class, in units of 2⁻³²: sums stay integers, so that the order of the
trials, batches and merges can never be seen in a result.
"""

from __future__ import annotations

import math
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt
import sklearn
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from betafield import contexts
from betafield.tables import native

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Columns = npt.NDArray[np.int64] | npt.NDArray[np.bool_]

READS_ALL_TABLES = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
FRACTIONS = 2.0**32
MOST = 2.0**62
# Degree of a polynomial context: beyond it, binomial coefficients leave the range of floats.
HIGHEST = 1000


# Points ------------------------------------------------------------------------------------


def points(estimator: Any, X: Any, *, reset: bool) -> Floats:
    """Return X as a finite float64 array of shape (m, d), from an array or any dataframe.

    Names and number of the features are recorded on the estimator where `reset`, and compared
    with those recorded otherwise, as scikit-learn does.
    """
    array = _numbers(X, estimator)
    header = _header(X) if hasattr(X, "shape") else array
    validate_data(estimator, header, reset=reset, skip_check_array=True)
    bad = ~np.isfinite(array)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        names = getattr(estimator, "feature_names_in_", None)
        raise ValueError(
            f"X row {row}, column {column if names is None else repr(names[column])}: "
            f"found {_spelled(array[row, column])}; every value must be a finite number"
        )
    return array


class _Header:
    """Names and shape of a table of any library, for scikit-learn 1.8.

    That release reads names from pandas and by the protocol `__dataframe__`, which polars has
    dropped; later ones read them from all libraries.
    """

    def __init__(self, table: nw.DataFrame[Any]) -> None:
        self.shape = table.shape
        self.column_names = lambda: table.columns

    def __dataframe__(self) -> _Header:
        return self


def _header(X: Any) -> Any:
    """Return something from which this scikit-learn reads the names of the features."""
    if READS_ALL_TABLES or isinstance(X, np.ndarray) or hasattr(X, "__dataframe__"):
        return X
    table = nw.from_native(X, pass_through=True)
    is_other = isinstance(table, nw.DataFrame) and not nw.dependencies.is_pandas_dataframe(X)
    return _Header(table) if is_other else X


def _numbers(X: Any, estimator: Any) -> Floats:
    if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.size:
        return X  # what check_array would say, a hundred times faster: it counts for one point
    cells = X
    try:
        cells = native(X)
        if getattr(cells, "dtype", np.dtype(float)).kind in "mM":  # NaT would be a date long ago
            cells = np.where(np.isnat(cells), np.nan, cells.astype(np.float64))
        array: Floats = check_array(
            cells, dtype=np.float64, ensure_all_finite=False, input_name="X", estimator=estimator
        )
    except (TypeError, ValueError) as error:
        _raise_for_text(np.asarray(cells, dtype=object if isinstance(X, list) else None), X, error)
        raise type(error)(f"X: {error}") from error
    return array


def _raise_for_text(cells: npt.NDArray[Any], X: Any, error: Exception) -> None:
    """Raise the error again for the first cell that is no number, if there is one."""
    if cells.ndim == 2 and cells.dtype.kind in "OUS":
        names = getattr(X, "column_names", getattr(X, "columns", range(cells.shape[1])))
        for (row, column), cell in np.ndenumerate(cells):
            _require_number(f"X row {row}, column {names[column]!r}", cell, error)


def _require_number(where: str, cell: Any, error: Exception) -> None:
    value = cell.item() if isinstance(cell, np.generic) else cell
    try:
        float(value)
    except (TypeError, ValueError) as cause:
        raise type(cause)(
            f"{where}: found {value!r}; every value must be a number ({cause})"
        ) from error


# Outcomes ----------------------------------------------------------------------------------


def labels(y: Any, n_rows: int) -> npt.NDArray[Any]:
    """Return y as one label a row, none of them missing."""
    if y is None:
        raise ValueError("this estimator requires y to be passed, but the target y is None")
    array = _array("y", y)
    if array.ndim != 1:
        array = column_or_1d(array, warn=True)
    _require_length("y", array, n_rows)
    _require_labels("y", array)
    return array


def classes_of(y: npt.NDArray[Any], classes: Any = None) -> npt.NDArray[Any]:
    """Return the sorted classes: those given, or else those of y, two or more."""
    name, given = ("y", y) if classes is None else ("classes", _array("classes", classes))
    if given.ndim != 1:
        raise ValueError(f"{name}: found shape {given.shape}; a list of labels is needed")
    _require_labels(name, given)
    found = np.unique(given)
    if len(found) < 2:
        what = f"one class only, {_spelled(found[0])}" if len(found) else "no class"
        raise ValueError(
            f"{name}: found {what}; two or more are needed. "
            "A field of which one class was seen so far is learned by "
            "partial_fit(X, y, classes=[...])"
        )
    return found


def _require_labels(name: str, values: npt.NDArray[Any]) -> None:
    """Raise for the first label that is missing or infinite, and for measurements."""
    if values.dtype.kind == "f":
        _require(np.isfinite(values), name, values, "every label must be finite")
    elif values.dtype.kind == "O":
        present = np.array([not _missing(value) for value in values], dtype=np.bool_)
        _require(present, name, values, "no label may be missing")
    if values.dtype.kind not in "biuUS" and values.size:  # these are labels, whatever they say
        try:
            check_classification_targets(values)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from error


def _missing(value: Any) -> bool:
    """Return whether a value is None, NaN, or pandas' NA, which will not even say whether it is."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124
    except TypeError:
        return True


def outcomes(y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return one row a class, telling which trials ended so."""
    columns = np.array([y == label for label in classes])
    _require(np.any(columns, axis=0), "y", y, f"the classes are {classes.tolist()}")
    return columns


def weights(sample_weight: Any, n_rows: int, *, part: bool = False) -> Floats | None:
    """Return one weight a row, or None where all count alike.

    One at least must count, unless these are a part only of the rows to learn from.
    """
    if sample_weight is None:
        return None
    array = _column("sample_weight", sample_weight, n_rows)
    _require(array >= 0, "sample_weight", array, "weights must not be negative")
    if not part:
        _require_weight(array)
    require_countable("sample_weight", array)
    return array


def _require_weight(array: Floats) -> None:
    """Raise unless one weight at least is large enough to be counted."""
    if not array.any():
        raise ValueError("sample_weight: all weights are zero; one at least must be positive")
    if array.max() * FRACTIONS < 0.5:
        raise ValueError(
            f"sample_weight: the largest is {array.max():g}; weights below {0.5 / FRACTIONS:.2g} "
            "count as zero, and one at least must be larger"
        )


def context(values: Any, n_rows: int) -> Floats | None:
    """Return one context a row, Bernstein coefficients (t, p + 1); None where none was given."""
    if values is None:
        return None
    array = contexts.checked(values)
    if array.ndim == 1 and array.size == n_rows > 2:
        raise ValueError(
            f"context: found shape {array.shape} where X has {n_rows} rows; if these are the "
            "coefficients of one context for all rows, give them as one row (1, p + 1), and if "
            "they are one number a row, make contexts of them, such as contexts.background(rate)"
        )
    if array.ndim > 2:
        raise ValueError(
            f"context: found shape {array.shape}; one row of coefficients a row of X is needed, "
            "or one row for all"
        )
    if array.shape[-1] > HIGHEST + 1:
        raise ValueError(
            f"context: found {array.shape[-1]} coefficients; degrees up to {HIGHEST} are possible"
        )
    if array.ndim == 2 and len(array) != 1:
        _require_length("context", array, n_rows)
    return np.broadcast_to(array, (n_rows, array.shape[-1]))


def binomial(successes: Any, trials: Any, n_rows: int, *, part: bool = False) -> Ints:
    """Return rows (failures, successes) from counts of successes among trials.

    There must be a trial, unless these are a part only of the rows to learn from.
    """
    won, held = _counts("successes", successes, n_rows), _counts("trials", trials, n_rows)
    if (won > held).any():
        row = int(np.argmax(won > held))
        raise ValueError(
            f"successes row {row}: found {won[row]} of {held[row]} trials; "
            "there cannot be more successes than trials"
        )
    if not (part or held.any()):
        raise ValueError("trials: all are zero; one at least must be positive")
    require_countable("trials", held)
    return np.array([held - won, won])


def require_countable(name: str, amounts: npt.NDArray[Any], most: float = MOST) -> None:
    """Raise where amounts add up to more than int64 sums are sure to hold."""
    total = float(np.sum(amounts, dtype=np.float64))
    if not 0 <= total <= most:
        what = "trials" if most == MOST else "trials under contexts"
        raise ValueError(f"{name}: adds up to {total:g}; at most {most:g} {what} can be counted")


def _counts(name: str, values: Any, n_rows: int) -> Ints:
    given = _array(name, values)
    array = _column(name, given, n_rows)
    whole = (array >= 0) & (array == np.floor(array)) & (array <= MOST)
    _require(whole, name, array, f"counts must be whole numbers from 0 to at most {MOST:g}")
    # Whole numbers that came as such never pass through a float, which is exact to 2⁵³ only.
    exact = given if given.dtype.kind in "biu" else array
    return np.broadcast_to(exact, array.shape).astype(np.int64)


def _column(name: str, values: Any, n_rows: int) -> Floats:
    """Return one finite number a row; one number alone stands for all rows."""
    cells = _array(name, values)
    try:
        array = cells.astype(np.float64)
    except (TypeError, ValueError) as error:
        for row, cell in enumerate(cells.ravel()):
            _require_number(f"{name} row {row}", cell, error)
        raise
    if array.ndim == 0:
        array = np.full(n_rows, float(array))
    if array.ndim != 1:
        raise ValueError(
            f"{name}: found an array of shape {array.shape}; one value a row is needed"
        )
    _require_length(name, array, n_rows)
    _require(np.isfinite(array), name, array, "every value must be a finite number")
    return array


def _array(name: str, values: Any) -> npt.NDArray[Any]:
    try:
        return np.asarray(native(values))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _require_length(name: str, values: npt.NDArray[Any], n_rows: int) -> None:
    if len(values) != n_rows:
        raise ValueError(
            f"{name}: found {len(values)} rows where X has {n_rows}; one a row of X is needed"
        )


def _require(good: npt.NDArray[np.bool_], name: str, values: npt.NDArray[Any], rule: str) -> None:
    """Raise for the first row that is not good."""
    if not np.all(good):
        row = int(np.argmin(good))
        raise ValueError(f"{name} row {row}: found {_spelled(values[row])}; {rule}")


def _spelled(value: Any) -> str:
    """Return a value as users write it: NaN and inf, not nan and np.float64(inf)."""
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return repr(value.item() if isinstance(value, np.generic) else value)


# Sums --------------------------------------------------------------------------------------


def tally(columns: Columns, weight: Floats | None) -> Columns:
    """Return the statistics of each trial: a column a class, a second where weights have fractions.

    Examples
    --------
    >>> import numpy as np
    >>> tally(np.array([[True, False], [False, True]]), np.array([2.0, 0.5])).tolist()
    [[2, 0], [0, 0], [0, 0], [0, 2147483648]]
    """
    if weight is None:
        return columns
    whole = np.floor(weight)
    fraction = np.rint((weight - whole) * FRACTIONS)
    parts = (whole, fraction) if fraction.any() else (whole,)
    return np.concatenate([columns * part.astype(np.int64) for part in parts])


def untallied(sums: npt.NDArray[Any], n_classes: int) -> npt.NDArray[Any]:
    """Return what the sums of `tally` stand for: trials a class, int64 if weights were whole."""
    if sums.shape[-1] == n_classes:
        return sums
    return sums[..., :n_classes] + sums[..., n_classes:] / FRACTIONS
