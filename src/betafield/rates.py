"""Arguments of named contexts: numbers, and columns of numbers of one length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield.refusals import Refused, refused

Floats = npt.NDArray[np.float64]


def numbers(**arguments: Any) -> list[Floats]:
    """Return each argument as a number () or a column (t,), with the same t.

    Examples
    --------
    >>> numbers(gain=0.5, offset=[0.1, 0.2])
    [array(0.5), array([0.1, 0.2])]
    """
    arrays = {name: _number_or_column(name, values) for name, values in arguments.items()}
    lengths = {name: len(array) for name, array in arrays.items() if array.ndim}
    if len(set(lengths.values())) > 1:
        found = " and ".join(f"{length} rows in {name}" for name, length in lengths.items())
        raise ValueError(f"found {found}; all columns must have the same number")
    return list(arrays.values())


def _number_or_column(name: str, values: Any) -> Floats:
    array = checks.array(name, values)
    if array.ndim > 1:
        raise refused(
            name, f"found an array of shape {array.shape}; a number or one per row is needed"
        )
    checks.require_all(np.isfinite(array), name, array, "a finite number is needed")
    return array


def rates(**arguments: Any) -> list[Floats]:
    """Return numbers or columns of probabilities."""
    arrays = numbers(**arguments)
    for name, array in zip(arguments, arrays, strict=True):
        require_rate(name, array)
    return arrays


def require_rate(name: str, rate: Floats) -> None:
    """Raise for the first value that is not a probability."""
    good = (rate >= 0.0) & (rate <= 1.0)
    checks.require_all(good, name, rate, "a probability within [0, 1] is needed")


def outcomes(success: Any) -> npt.NDArray[np.bool_]:
    """Return True or False, or a column of them."""
    values = _number_or_column("success", success)
    happened = np.asarray(values == 1.0)
    checks.require_all(happened | (values == 0.0), "success", values, "True or False is needed")
    return happened


# Errors of several arguments at once ---------------------------------------------------------


def require(good: npt.NDArray[np.bool_], message: Callable[[tuple[int, ...]], Refused]) -> None:
    """Raise with `message(index)` for the first entry that is not good."""
    good = np.asarray(good)
    if not good.all():
        raise message(checks.first(~good)).error(ValueError)


def coefficient(name: str, said: str, at: tuple[int, ...], meaning: str) -> Refused:
    """Say what is wrong in an argument whose last axis holds coefficients."""
    if len(at) == 1:
        return Refused(f"{name} column {at[0]} ({meaning})", said)
    found = checks.refusal(name, said, at)
    return found._replace(part=f"{found.part} ({meaning})")


def spelled(values: Floats, at: tuple[int, ...]) -> str:
    """Return the value for a row, from a column or from a number for all rows."""
    return checks.spelled(values[at[: values.ndim]])
