"""The formulas of named contexts: from rates, numbers or columns of them, to coefficients.

Each is affine in every rate, on which `betafield.families` relies.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import bernstein, checks
from betafield.rates import numbers, rates, require, require_rate, spelled

Floats = npt.NDArray[np.float64]

# Tolerance for rounding in the user's arithmetic: 0.1 + 0.2 + 0.7 is not 1.
ROUNDING = 1e-12


def stacked(*coefficients: Floats) -> Floats:
    """Return coefficients side by side, one row per trial if any is a column."""
    return np.stack(np.broadcast_arrays(*coefficients), axis=-1)


def guess_lapse(guess: Any, lapse: Any) -> Floats:
    """Return (guess, 1 − lapse)."""
    guess, lapse = rates(guess=guess, lapse=lapse)
    return stacked(guess, 1.0 - lapse)


def require_room(guess: Any, lapse: Any) -> None:
    """Raise unless guess and lapse add up to at most 1."""
    guess, lapse = rates(guess=guess, lapse=lapse)
    require(
        guess + lapse <= 1.0 + ROUNDING,
        lambda at: checks.refusal(
            "guess and lapse",
            f"found guess {spelled(guess, at)} and lapse {spelled(lapse, at)}; together they must "
            "be at most 1",
            at,
        ),
    )


def diagnostic(sensitivity: Any, specificity: Any) -> Floats:
    """Return (1 − specificity, sensitivity)."""
    sensitivity, specificity = rates(sensitivity=sensitivity, specificity=specificity)
    return stacked(1.0 - specificity, sensitivity)


def attenuated(factor: Any) -> Floats:
    """Return (0, factor)."""
    (factor,) = rates(factor=factor)
    return stacked(np.zeros(()), factor)


def background(rate: Any) -> Floats:
    """Return (rate, 1)."""
    (rate,) = rates(rate=rate)
    return stacked(rate, np.ones(()))


def randomized_response(truth: Any, yes: Any) -> Floats:
    """Return ((1 − truth) yes, 1 − (1 − truth)(1 − yes))."""
    truth, yes = rates(truth=truth, yes=yes)
    return stacked((1.0 - truth) * yes, 1.0 - (1.0 - truth) * (1.0 - yes))


def pooled(size: Any, sensitivity: Any, specificity: Any) -> Floats:
    """Return (1 − specificity, sensitivity, …), elevated to the degree of the largest pool."""
    sizes, hit, quiet = numbers(size=size, sensitivity=sensitivity, specificity=specificity)
    whole = (sizes >= 1.0) & (sizes <= bernstein.HIGHEST) & (sizes == np.floor(sizes))
    rule = f"a whole number from 1 to {bernstein.HIGHEST} is needed"
    checks.require_all(whole, "size", sizes, rule)
    require_rate("sensitivity", hit)
    require_rate("specificity", quiet)
    found = bernstein.any_of(sizes)
    return (1.0 - quiet)[..., None] * (1.0 - found) + hit[..., None] * found
