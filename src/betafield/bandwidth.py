"""The theoretical width Δ of windows, and the candidates for learning it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield.metrics import ORDERS

Floats = npt.NDArray[np.float64]

NAMES = ("theory", "loo", "auto")
# The widest candidate, and the narrowest as a fraction of the widest.
WIDEST, NARROWEST = 1e300, 2.0**-64
# The ratio of one candidate to the next narrower one.
STEP = 2.0**0.5


def theory(t: float, d: int, lipschitz: float) -> float:
    """Return Δ = L^(−2/(d+2)) t^(−1/(d+2)), the width that balances bias and variance.

    Examples
    --------
    >>> round(theory(t=1_000_000, d=1, lipschitz=1.0), 6)
    0.01
    """
    # Separate powers, because L² may overflow even if the width does not.
    return float(lipschitz ** (-2.0 / (d + 2)) * t ** (-1.0 / (d + 2)))


def check(bandwidth: Any) -> None:
    """Raise unless the bandwidth is a positive number or a rule's name."""
    rule = "allowed are a positive number, 'theory', 'loo', 'auto'"
    if isinstance(bandwidth, str):
        checks.one_of("bandwidth", bandwidth, NAMES, rule)
    else:
        checks.positive("bandwidth", bandwidth, rule)


def is_positive(value: Any) -> bool:
    """Return whether the value is a positive finite number."""
    return checks.is_number(value) and 0 < checks.as_float(value) < np.inf


def candidates(sides: Floats, widest: float, n_places: int) -> Floats:
    """Return widths from one that holds about one place up to `widest`, which holds all.

    `sides` are those of the domain. Each place has the volume Π sides / n to itself; sides of
    length 0 add no distance.

    Examples
    --------
    >>> candidates(np.array([1.0]), widest=1.0, n_places=4).round(3).tolist()
    [0.25, 0.354, 0.5, 0.707, 1.0]
    """
    real = sides[sides > 0]
    if not real.size:
        return np.array([widest])
    widest = min(widest, WIDEST)
    alone = np.exp((np.log(real).sum() - np.log(n_places)) / real.size)
    narrowest = min(max(float(alone), widest * NARROWEST), widest)
    steps = int(np.ceil(np.log(widest / narrowest) / np.log(STEP) - 1e-12)) + 1
    return widest * STEP ** np.arange(1.0 - steps, 1.0)


def diameter(sides: Floats, metric: str) -> float:
    """Return the longest distance in a box; 1 if all points coincide."""
    return float(np.linalg.norm(sides, ORDERS[metric])) or 1.0
