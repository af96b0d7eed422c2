"""Between the features' own units and the unit box in which a process lives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class Box(NamedTuple):
    """A domain that is made the unit box, feature by feature; constant ones are in its middle.

    Examples
    --------
    >>> import numpy as np
    >>> box = Box.of(np.array([[0.0, 10.0], [7.0, 7.0]]))
    >>> box.inside(np.array([[5.0, 7.0], [20.0, 9.0]])).tolist()
    [[0.5, 0.5], [2.0, 0.5]]
    """

    origin: Floats
    side: Floats

    @classmethod
    def of(cls, bounds: Floats) -> Box:
        """Return the box of bounds (d, 2)."""
        side = bounds[:, 1] - bounds[:, 0]
        is_constant = ~(side > 0.0)
        # Everything is in the middle of an endless side.
        return cls(bounds[:, 0], np.where(is_constant, np.inf, side))

    def inside(self, points: Floats) -> Floats:
        """Return points (m, d) in units of the box, beyond it if they are."""
        x = (points - self.origin) / self.side
        return np.where(np.isinf(self.side), 0.5, x)

    def within(self, points: Floats) -> Floats:
        """Return the same, none beyond the box: rounding takes none out."""
        return np.clip(self.inside(points), 0.0, 1.0)
