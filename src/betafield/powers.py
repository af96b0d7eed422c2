"""Polynomials given by powers of π, as contexts: Bernstein coefficients within [0, 1]."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import bernstein, checks
from betafield.rates import coefficient, require, spelled
from betafield.refusals import Refused, refused

Floats = npt.NDArray[np.float64]

# Tolerance for rounding in the user's arithmetic: 0.1 + 0.2 + 0.7 is not 1.
ROUNDING = 1e-12
# A bound of the coefficients of any polynomial within [0, 1] of a usable degree.
LARGEST = 1e100
# A polynomial nearer to 0 or 1 than about 1/100 of its height needs a higher degree than this.
HIGHEST_DEGREE = 100


def as_context(coefficients: Any) -> Floats:
    """Return Bernstein coefficients in the lowest degree at which all lie within [0, 1]."""
    powers = _power_rows(coefficients)
    rule = f"from {-LARGEST:g} to {LARGEST:g} are possible"
    checks.require_all(np.abs(powers) <= LARGEST, "coefficients", powers, rule)
    context = bernstein.from_powers(powers)
    while not _fits(context).all() and context.shape[-1] <= HIGHEST_DEGREE:
        context = bernstein.elevated(context, context.shape[-1])
    require(_fits(context), lambda at: _misfit(powers[at], at))
    return context.clip(0.0, 1.0)


def _power_rows(coefficients: Any) -> Floats:
    powers = checks.array("coefficients", coefficients)
    if powers.ndim not in (1, 2) or not powers.shape[-1]:
        raise refused(
            "coefficients",
            f"found an array of shape {powers.shape}; "
            "one row (p + 1,), or one row per trial (t, p + 1), is needed",
        )
    require(
        np.isfinite(powers),
        lambda at: coefficient(
            "coefficients",
            f"found {spelled(powers, at)}; a finite number is needed",
            at,
            f"of π^{at[-1]}",
        ),
    )
    return powers


def _fits(context: Floats) -> npt.NDArray[np.bool_]:
    good = (context >= -ROUNDING) & (context <= 1.0 + ROUNDING)
    return np.asarray(good.all(axis=-1))


def _misfit(powers: Floats, at: tuple[int, ...]) -> Refused:
    """Return a message on where a polynomial leaves [0, 1], or comes too near its ends."""
    point, value = bernstein.farthest(powers)
    rule = "; it must stay within [0, 1] for every π in [0, 1]"
    if -ROUNDING <= value <= 1.0 + ROUNDING:
        rule = (
            f", too near to {value:.0f} for Bernstein coefficients within [0, 1] up to degree "
            f"{HIGHEST_DEGREE}; shrink the polynomial a little towards 1/2"
        )
    said = f"success probability is {value:.6g} at π = {point:.6g}{rule}"
    return checks.refusal("coefficients", said, at)
