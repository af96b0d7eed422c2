"""Validation of what is told about trials: their outcomes and contexts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import checks, distorted, families
from betafield.families import ContextFamily


def outcomes(success: Any, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return outcomes of this shape, 0 or 1 each.

    Examples
    --------
    >>> outcomes([True, False], (2,))
    array([1, 0])
    >>> outcomes(0.5, ())
    Traceback (most recent call last):
        ...
    ValueError: success: found 0.5; True, False, 1 or 0 is needed
    """
    found = checks.cells("success", success)
    needed = f"a list of {shape[0]} is needed" if shape else "one is needed"
    checks.shaped("success", found, shape, needed)
    possible = np.array([_is_outcome(each) for each in found.flat], dtype=np.bool_).reshape(shape)
    checks.require_all(possible, "success", found, "True, False, 1 or 0 is needed")
    return found.astype(np.int64)


def _is_outcome(value: Any) -> bool:
    is_known = isinstance(value, bool | np.bool_) or checks.is_number(value)
    return is_known and bool(value in (0, 1))


def contexts(context: Any, t: int) -> Any:
    """Return the contexts of t trials, shape (t, p + 1), or (1, p + 1) if all share one.

    The context of a single trial may have unknown rates.

    Examples
    --------
    >>> contexts([0.5, 1.0], 3)
    array([[0.5, 1. ]])
    """
    if context is None or (isinstance(context, ContextFamily) and t == len(context) == 1):
        return context
    families.refuse("context", context)
    rows = checks.finite("context", context)
    distorted.context(rows, t)
    return np.atleast_2d(rows)
