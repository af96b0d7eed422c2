"""Random fields of unit variance, determined by a seed: the noise of draws beside coefficients.

Smooth fields are sums of waves. At each point their distribution is exactly N(0, 1) given the
waves ω,

    e_s(x) = R^(−½) Σ_r a_rs cos ω_r·x + b_rs sin ω_r·x,   ω_r ~ N(0, I),   a, b ~ N(0, 1),

with a squared-exponential correlation e^(−|x − y|²/2) on average over ω. Scattered fields are
independent at different points, from a hash of coordinates and seed. Both depend on the point and
the seed only, not on the other points of a call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from betafield._locks import cached
from betafield.process import linear
from betafield.process.blocks import mixed

Floats = npt.NDArray[np.float64]
Keys = npt.NDArray[np.uint64]

# R, the number of waves.
WAVES = 64
# Coordinates are clipped at this many correlation lengths.
FAR = 1e6


class Seed(NamedTuple):
    """The seed of all random numbers, with a separate generator per purpose."""

    words: tuple[int, ...]

    @classmethod
    def of(cls, rng: np.random.Generator) -> Seed:
        """Return the next seed of a generator."""
        return cls(tuple(int(word) for word in rng.integers(1 << 32, size=4)))

    def generator(self, *purpose: int) -> np.random.Generator:
        """Return the generator for a purpose."""
        return np.random.default_rng([*self.words, *purpose])


@dataclass(frozen=True)
class Noise:
    """Random fields over d features, one per draw.

    Parameters
    ----------
    seed : Seed
    purpose : int
        Fields of different purposes are independent.
    size : int
        Number of draws.
    d : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> fields = Noise(Seed((0,)), 0, 1_000, 1)
    >>> near, far = fields.smooth(np.array([[0.0], [0.1], [9.0]]))[1:]
    >>> first = fields.smooth(np.array([[0.0]]))[0]
    >>> bool(np.corrcoef(first, near)[0, 1] > 0.9 > np.corrcoef(first, far)[0, 1])
    True
    """

    seed: Seed
    purpose: int
    size: int
    d: int

    def smooth(self, x: Floats) -> Floats:
        """Return smooth fields at points in units of correlation lengths, shape (points, draws)."""
        return self._taken(x, slice(None))

    def some(self, x: Floats, draws: npt.NDArray[np.intp]) -> Floats:
        """Return the smooth fields of some draws."""
        return self._taken(x, draws)

    def scattered(self, x: Floats, draws: npt.NDArray[np.intp] | None = None) -> Floats:
        """Return independent values, the same at the same point, shape (points, draws)."""
        key = np.zeros(len(x), dtype=np.uint64)
        for column in x.T:
            key = mixed(key ^ np.ascontiguousarray(column + 0.0).view(np.uint64))
        keys = self._keys if draws is None else self._keys[draws]
        bits = mixed(key[:, None] ^ keys) >> np.uint64(11)
        return np.asarray(ndtri((bits + 0.5) * 2.0**-53))

    def _taken(self, x: Floats, draws: slice | npt.NDArray[np.intp]) -> Floats:
        angles = linear.product(np.clip(x, -FAR, FAR), self._waves)
        table = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
        return linear.product(table, np.ascontiguousarray(self._amplitudes[:, draws]))

    @cached
    def _waves(self) -> Floats:
        return self.seed.generator(self.purpose, 0).standard_normal((self.d, WAVES))

    @cached
    def _amplitudes(self) -> Floats:
        drawn = self.seed.generator(self.purpose, 1).standard_normal((2 * WAVES, self.size))
        return np.asarray(drawn / np.sqrt(WAVES))

    @cached
    def _keys(self) -> Keys:
        rng = self.seed.generator(self.purpose, 2)
        return rng.integers(1 << 64, size=self.size, dtype=np.uint64)
