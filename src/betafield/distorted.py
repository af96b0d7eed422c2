"""Validated contexts, which say how trials were distorted: one per row, or one for all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import checks, contexts, families
from betafield.bernstein import HIGHEST
from betafield.families import ContextFamily
from betafield.refusals import refused

Floats = npt.NDArray[np.float64]
Context = Floats | ContextFamily

# Largest size of a plain list that is read as one context for all rows.
MOST_IN_ONE = 32
ONE_OR_EACH = (
    "if these are the coefficients of one context for all rows, give them as one row (1, p + 1), "
    "and if they are one number per row, make contexts of them, such as contexts.background(rate)"
)


def context(values: Any, n_rows: int) -> Context | None:
    """Return one context per row, as Bernstein coefficients (t, p + 1); None if none was given.

    With unknown rates, a `ContextFamily` of t rows.
    """
    if values is None:
        return None
    if isinstance(values, ContextFamily):
        return _family(values, n_rows)
    array = contexts.checked(values)
    if array.ndim == 1 and (array.size > MOST_IN_ONE or array.size == n_rows > 2):
        raise refused(
            "context", f"found shape {array.shape} where X has {n_rows} rows; {ONE_OR_EACH}"
        )
    if array.ndim > 2:
        raise refused(
            "context",
            f"found shape {array.shape}; one row of coefficients per row of X is needed, "
            "or one row for all",
        )
    if array.shape[-1] > HIGHEST + 1:
        raise refused(
            "context", f"found {array.shape[-1]} coefficients; degrees up to {HIGHEST} are possible"
        )
    if array.ndim == 2 and len(array) != 1:
        checks.require_length("context", array, n_rows)
    return np.broadcast_to(array, (n_rows, array.shape[-1]))


def known_context(values: Any, n_rows: int) -> Floats | None:
    """Return one context per row; raise if any rate is unknown."""
    found = context(values, n_rows)
    return np.asarray(found) if isinstance(found, ContextFamily) else found


def _family(family: ContextFamily, n_rows: int) -> ContextFamily:
    """Return contexts with unknown rates, one per row."""
    if len(family) != 1:
        checks.require_length("context", family.corners, n_rows)
    return family.rows(n_rows)


def context_for_all(values: Any) -> Any:
    """Return one context for any number of rows, as one row (1, p + 1).

    Contexts with unknown rates are returned as they are.

    Examples
    --------
    >>> context_for_all([0.5, 0.75, 1]).shape
    (1, 3)
    """
    if isinstance(values, ContextFamily):
        return values
    array = contexts.checked(values)
    if array.ndim == 1 and array.size > MOST_IN_ONE:
        raise refused("context", f"found shape {array.shape}; {ONE_OR_EACH}")
    return np.atleast_2d(array)


def one_context(name: str, values: Any) -> Floats:
    """Return the coefficients (p + 1,) of one context.

    Examples
    --------
    >>> one_context("under", [[0.5, 1]])
    array([0.5, 1. ])
    """
    rule = "the coefficients of a context must be within [0, 1]"
    families.refuse(name, values)
    row = checks.finite(name, values, rule)
    row = row[0] if row.ndim == 2 and len(row) == 1 else row
    if row.ndim != 1 or not 1 <= row.size <= HIGHEST + 1:
        one = f"one context of 1 to {HIGHEST + 1} coefficients is needed"
        raise refused(name, f"found shape {row.shape}; {one}")
    checks.require_all((row >= 0.0) & (row <= 1.0), name, row, rule)
    return row
