"""A domain cut into cells, so that what is remembered of it is bounded."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import units
from betafield.tables import native

Floats = npt.NDArray[np.float64]

MOST_PLACES = 100_000


@dataclass(frozen=True)
class Cells:
    """Cells over a box, n along each side.

    Parameters
    ----------
    bounds : array of shape (d, 2)
        The domain, (low, high) a feature.
    n : int or None
        None: there are none, and points stay where they are.

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
        """Return points (t, d) as axes (d, t), moved to the middle of their cells."""
        if self.n is not None:
            low, high = self.bounds.T
            cell = np.floor((points - low) / (high - low) * self.n).clip(0, self.n - 1)
            points = low + (high - low) * ((cell + 0.5) / self.n)
        return np.ascontiguousarray(points.T) + 0.0  # of two zeros, one

    def require_inside(self, points: Floats) -> None:
        """Raise for the first point that is outside of the domain."""
        units.check_bounds(self.bounds, points, np.ones(len(points), dtype=np.bool_))


def box(bounds: Any, d: int | None = None) -> Floats:
    """Return the (d, 2) bounds, checked; None stands for 0 to 1 a feature."""
    given = [(0.0, 1.0)] * (d or 1) if bounds is None else native(bounds)
    d = len(given) if hasattr(given, "__len__") else 1
    units.check_bounds(given, np.zeros((1, d)), np.zeros(1, dtype=np.bool_))
    sides = np.array(given, dtype=np.float64)
    if not d or not (sides[:, 0] < sides[:, 1]).all():
        raise ValueError(f"bounds: found {sides.tolist()}; low < high is needed, a feature")
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(sides[:, 1] - sides[:, 0]).all()
    if not is_finite:
        raise ValueError(f"bounds: found {sides.tolist()}; a range must be a finite float64")
    return sides


def grid(bounds: Floats, step: float) -> Floats:
    """Return the places of a grid over the box, its step at most this share of each side.

    Examples
    --------
    >>> grid(np.array([[0.0, 1.0], [0.0, 3.0]]), step=1.0).tolist()
    [[0.0, 0.0], [0.0, 3.0], [1.0, 0.0], [1.0, 3.0]]
    """
    d, n = len(bounds), 1 + math.ceil(1.0 / step)
    if n**d > MOST_PLACES:
        raise ValueError(
            f"places: found none, and a grid would have {n}^{d}; more than {MOST_PLACES} must be "
            "given one by one"
        )
    axes = [np.linspace(low, high, n) for low, high in bounds]
    return np.array(list(itertools.product(*axes)))


def given_places(places: Any, d: int) -> Floats:
    """Return places (m, d) that were given, checked."""
    try:
        array = np.array(native(places), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"places: {error}") from error
    if array.ndim != 2 or array.shape[1] != d or not len(array):
        raise ValueError(f"places: found shape {array.shape}; (m, {d}) is needed")
    if not np.isfinite(array).all():
        raise ValueError("places: found NaN or inf; every value must be a finite number")
    return array
