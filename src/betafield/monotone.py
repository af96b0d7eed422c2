"""Fields that never fall, or never rise, along some features: `monotonic_cst`.

Fields are drawn from the joint posterior (`betafield.process.draws`), moved so that their mean is
that of the posterior at each point (`betafield.process.centring`), and each draw is made monotone
(`betafield.process.slices`). So without contexts the constraint changes the mean only where draws
break it. Answers come from these draws: the posterior at a point is their distribution there.
Thresholds and slopes come from draws that were not moved, because they are about the shape of each
draw. The seed and the number of draws are fixed, so the posterior is a function of the trials and
the options alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from betafield._locks import cached
from betafield.posteriors import Sampled
from betafield.posteriors.base import blocks
from betafield.process.boxes import Axis
from betafield.process.centring import Centred
from betafield.process.draws import Fields
from betafield.process.model import Smooth
from betafield.process.noise import Seed
from betafield.process.slices import Slice, at_points, sides

Floats = npt.NDArray[np.float64]

# Number of draws per posterior, and their seed.
SIZE, SEED = 1_000, Seed((0,))
# Number of points per block.
BLOCK = 4_096


@dataclass(frozen=True, eq=False)
class Monotone:
    """Fields drawn from the joint posterior and made monotone, for queries at any points.

    Parameters
    ----------
    smooth : Smooth
        The unconstrained fitted model.
    grid : Slice
        The features along which fields are made monotone, and the grid for this.
    size : int
        Number of draws.
    seed : Seed
        Seed of the draws.
    n_jobs : int or None
        Threads for queries of windows.
    is_centred : bool
        Whether draws are moved so that their mean is that of the posterior.
    """

    smooth: Smooth
    grid: Slice
    size: int = SIZE
    seed: Seed = SEED
    n_jobs: int | None = None
    is_centred: bool = True

    def at(self, points: Floats) -> Floats:
        """Return π of every draw at points in the features' own units, shape (size, points)."""
        if self._is_whole:
            return self.grid.between(self._nodes, points)
        return at_points(self._fields.at, self.size, self.grid, points)

    def posterior(self, points: Floats) -> Sampled:
        """Return the posterior of π at points."""
        # Interpolation may round to just outside [0, 1].
        return Sampled(np.clip(self.at(points), 0.0, 1.0))

    def mean(self, points: Floats) -> Floats:
        """Return the mean of π at points, block by block."""
        some = [self.posterior(points[block]).mean() for block in blocks(len(points), BLOCK)]
        return np.concatenate(some) if some else np.zeros(0)

    @property
    def _is_whole(self) -> bool:
        """Whether one grid covers all features."""
        is_every = len(self.grid.features) == len(self.smooth.box.axes)
        return is_every and self.smooth.box.arrangement is None

    @cached
    def _fields(self) -> Centred | Fields:
        drawn = Fields(self.smooth, self.size, self.seed, self.n_jobs)
        return Centred(drawn) if self.is_centred else drawn

    @cached
    def _nodes(self) -> Floats:
        """π of every draw at the nodes of the one grid."""
        nowhere = np.zeros((1, len(self.grid.features)))
        return self.grid.drawn(self._fields.at, nowhere)[:, 0]


def grid_over(
    smooth: Smooth, bounds: Floats, signs: tuple[int, ...], apart: tuple[int, ...]
) -> Slice:
    """Return the grid on which fields are made monotone.

    It is even in the units of the heaviest process. Features `apart` are left out unless they are
    needed, because there is nothing between their levels.
    """
    axes = smooth.boxes[int(np.argmax(smooth.weights))].axes
    counts = sides(signs, apart)
    grids = tuple(nodes_along(axes[a], bounds[a], count) for a, count in counts.items())
    return Slice(tuple(counts), grids, tuple(signs[a] for a in counts))


def nodes_along(axis: Axis, ends: Floats, count: int) -> Floats:
    """Return points from end to end of a feature's domain, evenly spaced in box units.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield.process.boxes import by_log
    >>> nodes_along(by_log(1.0, 100.0), np.array([1.0, 100.0]), 3).round(9).tolist()
    [1.0, 10.0, 100.0]
    """
    inner = axis.outside(np.linspace(0.0, 1.0, count))
    inner = inner[(inner > ends[0]) & (inner < ends[1])]
    return np.unique(np.concatenate([ends[:1], inner, ends[1:]]))
