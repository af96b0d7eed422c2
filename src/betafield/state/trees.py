"""Named tuples of numbers, strings and small arrays as JSON values, and back by their types."""

from __future__ import annotations

import math
import types
import typing
from typing import Any

import numpy as np

from betafield.plain import fields_of, require

# Most characters of a string, entries of a tuple, and numbers of an array.
MOST_LETTERS, MOST_ENTRIES, MOST_NUMBERS = 64, 1024, 1 << 16
# Infinity, which JSON numbers lack.
ENDLESS = "inf"


def told(value: Any) -> Any:
    """Return a nested named tuple as JSON values.

    Examples
    --------
    >>> from betafield.process.model import Component
    >>> told(Component("logit", None, np.array([0.0, 1.0])))["theta"]
    [0.0, 1.0]
    """
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        each = [told(one) for one in value]
        return each if names is None else dict(zip(names, each, strict=True))
    return ENDLESS if isinstance(value, float) and math.isinf(value) else value


def values_of(name: str, kind: Any, value: Any) -> Any:
    """Return the value of a type that JSON values describe, or raise.

    Examples
    --------
    >>> from betafield.process.model import Component
    >>> values_of("one", Component, told(Component("logit", None, np.array([0.0])))).link
    'logit'
    """
    if hasattr(kind, "_fields"):
        usual = {k: told(v) for k, v in kind._field_defaults.items()}
        fields = fields_of(name, value, kind._fields, usual)
        hints = typing.get_type_hints(kind)
        return kind(**{k: values_of(f"{name}.{k}", hints[k], v) for k, v in fields.items()})
    origin, parts = _origin(kind), typing.get_args(kind)
    if origin is tuple:
        is_sound = isinstance(value, list) and len(value) <= MOST_ENTRIES
        require(is_sound, name, type(value).__name__, "short lists")
        return tuple(values_of(name, parts[0], one) for one in value)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (part for part in parts if part is not type(None))
        return None if value is None else values_of(name, inner, value)
    return _array(name, value) if origin is np.ndarray else _plain(name, kind, value)


def _origin(kind: Any) -> Any:
    """Return the class or form of a generic type, or None.

    From NumPy 2.5 on, `NDArray` is an alias, and stands for its value.
    """
    origin = typing.get_origin(kind)
    return _origin(origin.__value__) if hasattr(origin, "__value__") else origin


def _plain(name: str, kind: Any, value: Any) -> Any:
    """Return a string or a number."""
    if kind is float:
        is_number = type(value) in (int, float) or value == ENDLESS
        require(is_number and not math.isnan(float(value)), name, value, "numbers")
        return float(value)
    is_short = kind is not str or (isinstance(value, str) and len(value) <= MOST_LETTERS)
    require(type(value) is kind and is_short, name, value, kind.__name__)
    return value


def _array(name: str, value: Any) -> Any:
    """Return an array of finite numbers."""
    require(isinstance(value, list) and len(value) <= MOST_NUMBERS, name, "others", "short lists")
    flat = [each for row in value for each in (row if isinstance(row, list) else [row])]
    is_sound = len(flat) <= MOST_NUMBERS and all(type(each) in (int, float) for each in flat)
    require(is_sound, name, "others", "numbers")
    array = np.array(value, dtype=np.float64)
    require(np.isfinite(array).all(), name, "others", "finite numbers")
    return array
