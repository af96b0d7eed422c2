"""Options and labels as JSON values, and back; and careful reading of untrusted values.

Lists, text, numbers, booleans and None represent themselves; other values are

    {"tuple": […]}
    {"array": […], "dtype": …}
    {"mean": …, "variance": …}     a `Prior`
    {"mapping": {…}}               names to whole numbers
    {"mapping": [[…, …], …]}       names or whole numbers to numbers

and labels are {"dtype": …, "labels": […]}. Nothing else can be represented, least of all functions.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from numbers import Integral, Real
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield.priors import Prior
from betafield.tables import native

NUMBERS = re.compile(r"\|b1|[|<>][iu][1248]|[<>]f[248]")
LABELS = re.compile(NUMBERS.pattern + r"|[<>]U[0-9]{1,7}|\|S[0-9]{1,7}|\|O")
# The type of labels in JSON, by kind of array.
TYPES = {"b": bool, "i": int, "u": int, "f": float, "U": str, "S": str, "O": str}
# The most bytes of all labels, and the deepest nesting of lists.
MOST_BYTES, DEEPEST = 1 << 24, 4


# Options -----------------------------------------------------------------------------------


def native_value(value: Any) -> Any:
    """Return arrays as lists, and NumPy's numbers as Python's."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def stored(name: str, value: Any) -> Any:
    """Return an option as a JSON value.

    Examples
    --------
    >>> stored("bounds", [(0, 1), (0.5, 2)])
    [{'tuple': [0, 1]}, {'tuple': [0.5, 2]}]
    >>> stored("scale", np.array([1.0, 2.0]))
    {'array': [1.0, 2.0], 'dtype': '<f8'}
    >>> stored("monotonic_cst", {"dose": 1})
    {'mapping': {'dose': 1}}
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Real):
        return _number(name, value)
    if isinstance(value, list | tuple | Mapping):
        return _stored_items(name, value)
    if type(value) is Prior and not (callable(value.mean) or callable(value.variance)):
        return {part: _number(name, getattr(value, part)) for part in ("mean", "variance")}
    if callable(value):
        raise ValueError(
            f"{name}: found a function, and no file can hold one; (alpha, beta) and "
            "Prior.from_mean_variance of two numbers can be saved"
        )
    return _stored_array(name, np.asarray(native(value)))


def _stored_items(name: str, value: list[Any] | tuple[Any, ...] | Mapping[Any, Any]) -> Any:
    if isinstance(value, Mapping):
        if not all(isinstance(k, str) and isinstance(v, Integral) for k, v in value.items()):
            return {"mapping": [[stored(name, k), _number(name, v)] for k, v in value.items()]}
        return {"mapping": {str(key): _number(name, each) for key, each in value.items()}}
    each = [stored(name, one) for one in value]
    return each if isinstance(value, list) else {"tuple": each}


def _number(name: str, value: Any) -> int | float:
    """Return a number that JSON represents exactly."""
    if isinstance(value, Integral):
        return int(value)
    if not (isinstance(value, Real) and math.isfinite(value) and float(value) == value):
        raise ValueError(f"{name}: found {value!r}; only finite float64 and integers can be saved")
    return float(value)


def _stored_array(name: str, array: npt.NDArray[Any]) -> dict[str, Any]:
    if not (NUMBERS.fullmatch(array.dtype.str) and np.isfinite(array).all()):
        raise ValueError(
            f"{name}: found {array.dtype} values; only arrays of finite numbers can be saved"
        )
    return {"array": array.tolist(), "dtype": array.dtype.str}


def option(name: str, value: Any, depth: int = 0) -> Any:
    """Return the option that a JSON value represents.

    Examples
    --------
    >>> option("prior", {"tuple": [1.0, 2.0]})
    (1.0, 2.0)
    >>> option("monotonic_cst", {"mapping": {"dose": 1}})
    {'dose': 1}
    """
    if depth > DEEPEST:
        raise ValueError(f"{name}: found lists in lists, more than {DEEPEST} deep")
    match value:
        case None | str() | int() | float():
            return value
        case list():
            return [option(name, each, depth + 1) for each in value]
        case {"tuple": list(each), **rest} if not rest:
            return tuple(option(name, one, depth + 1) for one in each)
        case {"array": list(cells), "dtype": str(dtype), **rest} if not rest:
            return _array(name, cells, dtype, NUMBERS)
        case {"mapping": dict() | list() as each, **rest} if not rest:
            return _mapping(name, each)
        case {"mean": int() | float(), "variance": int() | float(), **rest} if not rest:
            return Prior.from_mean_variance(value["mean"], value["variance"])
    raise ValueError(f"{name}: found neither a value nor a list nor an array")


def _mapping(name: str, each: dict[str, Any] | list[Any]) -> dict[Any, Any]:
    if isinstance(each, list):
        return dict(_item(name, one) for one in each)
    return {key: _whole(name, one) for key, one in each.items()}


def _item(name: str, value: Any) -> tuple[Any, Any]:
    match value:
        case [str() | int() as key, int() | float() as number]:
            return key, number
    raise ValueError(f"{name}: found {str(value)[:60]}; a name and a number are needed here")


def _whole(name: str, value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{name}: found {str(value)[:60]}; whole numbers are needed here")
    return value


def _array(name: str, cells: list[Any], dtype: str, allowed: re.Pattern[str]) -> npt.NDArray[Any]:
    """Return an array of exactly these cells."""
    if not allowed.fullmatch(dtype) or np.dtype(dtype).str != dtype:
        raise ValueError(f"{name}: found dtype {dtype[:20]!r}, which is not allowed")
    if np.dtype(dtype).itemsize * len(cells) > MOST_BYTES:
        raise ValueError(f"{name}: found {len(cells)} of dtype {dtype}; fewer are allowed")
    array = np.array(cells, dtype=dtype)
    if array.tolist() != cells:
        raise ValueError(f"{name}: found values that are none of dtype {dtype}")
    return array


# Labels ------------------------------------------------------------------------------------


def stored_labels(classes: npt.NDArray[Any]) -> dict[str, Any]:
    """Return classes as a JSON value.

    Examples
    --------
    >>> stored_labels(np.array(["no", "yes"]))
    {'dtype': '<U3', 'labels': ['no', 'yes']}
    """
    cells = classes.tolist()
    is_text = all(isinstance(cell, str) for cell in cells)
    if not LABELS.fullmatch(classes.dtype.str) or (classes.dtype == object and not is_text):
        raise ValueError(
            f"classes: found {cells!r:.60} of dtype {classes.dtype}; only booleans, numbers and "
            "text can be saved"
        )
    if classes.dtype.kind == "S":
        cells = [cell.decode("latin-1") for cell in cells]
    return {"dtype": classes.dtype.str, "labels": cells}


def labels(value: Any) -> npt.NDArray[Any]:
    """Return the classes that a JSON value represents: at least two, sorted and distinct.

    Examples
    --------
    >>> labels({"dtype": "|b1", "labels": [False, True]})
    array([False,  True])
    """
    found = _labels("classes", value)
    rising = all(a < b for a, b in itertools.pairwise(found.tolist()))
    if len(found) < 2 or not rising:
        raise ValueError("classes: found fewer than two, or some that are not in order")
    return found


def _labels(name: str, value: Any) -> npt.NDArray[Any]:
    """Return the labels that a JSON value represents, in any order."""
    match value:
        case {"dtype": str(dtype), "labels": list(cells), **rest} if not rest:
            kind = TYPES.get(dtype[1:2])
            if any(type(cell) is not kind for cell in cells):
                raise ValueError(f"{name}: found labels that are none of dtype {dtype[:20]}")
            if dtype[1:2] == "S":
                cells = [cell.encode("latin-1") for cell in cells]
            return _array(name, cells, dtype, LABELS)
    raise ValueError(f"{name}: found other fields; dtype and labels are needed")


def stored_label(name: str, value: Any) -> Any:
    """Return one label as a JSON value, or None.

    Examples
    --------
    >>> stored_label("pos_label", True)
    {'dtype': '|b1', 'labels': [True]}
    """
    if value is None:
        return None
    try:
        return stored_labels(np.array([value]))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def label(name: str, value: Any) -> Any:
    """Return the label that a JSON value represents, or None.

    Examples
    --------
    >>> label("pos_label", {"dtype": "<U3", "labels": ["yes"]})
    'yes'
    """
    if value is None:
        return None
    found = _labels(name, value)
    require(len(found) == 1, name, len(found), "one label")
    return found.tolist()[0]


# Untrusted values ----------------------------------------------------------------------------


def require(good: Any, name: str, found: Any, rule: Any) -> None:
    """Raise unless `good`, and say what was found and what is allowed."""
    if not good:
        raise ValueError(f"{name}: found {str(found)[:60]}; allowed are {rule}")


def fields_of(
    name: str, values: Any, keys: tuple[str, ...], usual: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Return a dict with exactly these keys.

    Keys with a default may be missing, because earlier releases did not write them.
    """
    if not (isinstance(values, dict) and set(keys) - set(usual) <= values.keys() <= set(keys)):
        raise ValueError(f"{name}: found other fields; allowed are {', '.join(keys)}")
    return {**usual, **values}


def whole(name: str, value: Any, least: int, most: int) -> int:
    """Return an integer within these limits."""
    is_sound = type(value) is int and least <= value <= most
    require(is_sound, name, value, f"whole numbers from {least} to {most}")
    return int(value)


def one_of(name: str, value: Any, names: tuple[str, ...]) -> str:
    """Return one of these names."""
    require(isinstance(value, str) and value in names, name, value, ", ".join(names))
    return str(value)


def taken(
    left: dict[str, npt.NDArray[Any]], name: str, kinds: tuple[Any, ...], *shape: int | None
) -> Any:
    """Remove and return an array of one of these kinds and this shape; None is any length."""
    array = left.pop(name, None)
    if array is None:
        raise ValueError(f"{name}: found no such array")
    require(array.dtype.type in kinds, f"{name}: dtype", array.dtype, _listed(kinds))
    is_shaped = array.ndim == len(shape) and all(
        n in (None, m) for n, m in zip(shape, array.shape, strict=True)
    )
    require(is_shaped, f"{name}: shape", array.shape, f"{shape}, None being any")
    return array


def _listed(kinds: tuple[Any, ...]) -> str:
    return ", ".join(kind.__name__ for kind in kinds)
