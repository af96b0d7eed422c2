"""Sums over windows of any stretch and width, by trees; `ladder` finds the same by brute force."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from betafield._locks import cached
from betafield.process.ladder import WIDTHS, stretched, unit_of, units, window_sums
from betafield.process.wrapped import Kinds
from betafield.windows import Forest, Places

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Places and queries up to which sums of all widths at once are as quick as trees, and need nothing
# compiled.
FEW = 1 << 10


@dataclass(frozen=True, eq=False)
class Trees:
    """Values at places, to be added up over windows: a tree per stretch, made when it is asked.

    Parameters
    ----------
    x : array of shape (r, d)
        Places.
    values : array of shape (r, k)
        Not negative. They are added up in whole numbers of 2⁻³⁶, or coarser ones where they are
        large, so no order can be seen.
    kinds : tuple of str
        What every feature is; none: all are lines.

    Examples
    --------
    >>> import numpy as np
    >>> trees = Trees(np.array([[0.1, 0.5], [0.2, 0.9]]), np.array([[1.0], [2.0]]))
    >>> trees.sums(np.array([[0.1, 0.6]]), np.array([1.0, 0.0]), 0.125)
    array([[3.]])
    """

    x: Floats
    values: Floats
    kinds: Kinds = ()

    def sums(
        self, queries: Floats, stretch: Floats, width: float, n_jobs: int | None = None
    ) -> Floats:
        """Return the sums of values over windows about queries, shape (q, k)."""
        if self._are_few(queries, stretch) and width in WIDTHS:
            return self._laddered(queries, stretch)[:, WIDTHS.searchsorted(width)] / self._unit
        forest = self._forest(tuple(stretch.tolist()))
        return forest.sums(stretched(queries, stretch, self.kinds), width, n_jobs) / self._unit

    def _are_few(self, queries: Floats, stretch: Floats) -> bool:
        """Return whether all pairs are looked at. Along one feature, searching is quicker."""
        is_plane = bool(self.kinds) or int(np.count_nonzero(stretch)) > 1
        return is_plane and max(len(queries), len(self.x)) <= FEW

    def _laddered(self, queries: Floats, stretch: Floats) -> Ints:
        """Return sums over windows of every width, which are asked for one after another."""
        key = queries.tobytes(), stretch.tobytes()
        known = self._last.get("sums")
        if known is None or known[0] != key:
            columns = units(self.values, self._unit)
            known = key, window_sums(queries, self.x, columns, stretch, self.kinds)
            self._last["sums"] = known
        return known[1]

    def _forest(self, stretch: tuple[float, ...]) -> Forest:
        if stretch not in self._forests:
            axes = np.ascontiguousarray(stretched(self.x, np.array(stretch), self.kinds).T)
            counts = np.ascontiguousarray(units(self.values, self._unit).T)
            metric = "euclidean" if self.kinds else "chebyshev"
            forest = Forest(len(axes), metric).insert(Places(axes, counts))
            self._forests[stretch] = forest
        return self._forests[stretch]

    @cached
    def _unit(self) -> float:
        return unit_of(self.values)

    @cached
    def _last(self) -> dict[str, tuple[tuple[bytes, bytes], Ints]]:
        """The sums that were asked for last, and about what."""
        return {}

    @cached
    def _forests(self) -> dict[tuple[float, ...], Forest]:
        return {}
