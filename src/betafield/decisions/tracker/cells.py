"""A domain divided into cells, so that memory is bounded."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import checks, units

Floats = npt.NDArray[np.float64]

MOST_PLACES = 100_000
# Most cells along a side: with more, float64 could not distinguish their centres.
MOST_CELLS = 1 << 50


@dataclass(frozen=True)
class Cells:
    """Cells over a box, n along each side.

    Parameters
    ----------
    bounds : array of shape (d, 2)
        The domain, (low, high) per feature.
    n : int or None
        None for no cells: points stay where they are.

    Examples
    --------
    >>> import numpy as np
    >>> cells = Cells(np.array([[0.0, 10.0]]), n=5)
    >>> cells.axes(np.array([[0.3], [10.0]])).tolist()
    [[1.0, 9.0]]
    """

    bounds: Floats
    n: int | None

    def axes(self, points: Floats) -> Floats:
        """Return points (t, d) as axes (d, t), moved to the centres of their cells."""
        if self.n is not None:
            low, high = self.bounds.T
            cell = np.floor((points - low) / (high - low) * self.n).clip(0, self.n - 1)
            points = low + (high - low) * ((cell + 0.5) / self.n)
        return np.ascontiguousarray(points.T) + 0.0  # turns −0 into 0

    def require_inside(self, points: Floats) -> None:
        """Raise for the first point outside the domain."""
        units.check_bounds(self.bounds, points, np.ones(len(points), dtype=np.bool_))


def box(bounds: Any, d: int | None = None) -> Floats:
    """Return the (d, 2) bounds, validated; None stands for 0 to 1 per feature."""
    given = [(0.0, 1.0)] * (d or 1) if bounds is None else bounds
    needed = "(low, high) per feature is needed, (d, 2)"
    sides = checks.finite("bounds", given, shape=(None, 2), needed=needed)
    checks.require(len(sides), "bounds", [], needed)
    low, high = sides.T
    checks.require_all(low < high, "bounds", sides, "low must be below high")
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(high - low)
    checks.require_all(is_finite, "bounds", sides, "high - low must be a finite float64")
    return sides


def parts(name: str, share: float) -> int:
    """Return the number of equal parts of a side, each at most this fraction of it.

    Examples
    --------
    >>> parts("bandwidth", 0.3)
    4
    """
    # 1/share may overflow.
    if share * MOST_CELLS < 1.0:
        least = f"at least 1/{MOST_CELLS} of a side is needed"
        raise ValueError(f"{name}: found parts of {share:g} of a side; {least}")
    return max(1, math.ceil(1.0 / share))


def grid(bounds: Floats, step: float) -> Floats:
    """Return the places of a grid over the box, with steps of at most this fraction of each side.

    Examples
    --------
    >>> grid(np.array([[0.0, 1.0], [0.0, 3.0]]), step=1.0).tolist()
    [[0.0, 0.0], [0.0, 3.0], [1.0, 0.0], [1.0, 3.0]]
    """
    d, n = len(bounds), 1 + parts("bandwidth", step)
    if n**d > MOST_PLACES:
        raise ValueError(
            f"places: found none, and a grid would have {n}^{d}; more than {MOST_PLACES} must be "
            "given one by one"
        )
    axes = [np.linspace(low, high, n) for low, high in bounds]
    return np.array(list(itertools.product(*axes)))


def given_places(places: Any, d: int) -> Floats:
    """Return the given places (m, d), validated."""
    found = checks.finite("places", places, shape=(None, d))
    checks.require(len(found), "places", [], "at least one is needed")
    return found
