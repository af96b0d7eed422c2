"""A field for trials that cluster: the nearer a trial, the more it counts.

A bandit pulls where rewards are high, so trials cluster around the best point and are few
elsewhere. A single width is then too wide within the cluster, whose edge it cannot tell from its
middle, and too narrow elsewhere, where every small window would need its own trials. So every point
has windows of widths Δ = 1/2, 1/4, …, 1/64 and 0, as fractions of the domain's diagonal, which are
combined from the outside in: the sums s of the trials begin at 0, and ring by ring

    s ← (s + trials within Δ, but not within the next width) / (1 + n (L Δ)²),

where n is the number of trials in s + …. Because trials at a distance Δ are biased by about L Δ,
they count for at most 1 / (L Δ)² trials at the point itself, however many they are; trials at the
point count in full. A distant cluster thus does not make a point seem better known than it is.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from betafield import priors
from betafield.estimators import SmoothBetaClassifier
from betafield.evidence import Decoder
from betafield.evidence.columns import FRACTIONS
from betafield.field import Field
from betafield.posteriors import Posterior
from betafield.units import Units
from betafield.windows.base import Places, concatenate, metric_code
from betafield.windows.brute import Brute

Floats = npt.NDArray[np.float64]


class ZoomedField:
    """An immutable field whose trials count for less the further they are from a point.

    Parameters
    ----------
    bounds : list of (low, high)
        The domain.
    lipschitz : float, default=1.0
        L, how fast the probability may change: by L over the diagonal of the domain.
    prior : (alpha, beta), default=(1.0, 1.0)
    rings : int, default=6
        The narrowest window has the width 2^-rings.

    Examples
    --------
    A cluster of 400 trials is informative where it is, but hardly elsewhere:

    >>> X = np.concatenate([np.linspace(0.19, 0.21, 400), [0.7, 0.9]])[:, None]
    >>> field = ZoomedField([(0, 1)]).learned(X, np.array([1] * 400 + [0] * 2))
    >>> field.posterior(np.array([[0.2], [0.25], [0.85]])).std().round(3).tolist()
    [0.004, 0.008, 0.197]
    """

    def __init__(
        self,
        bounds: list[tuple[float, float]],
        lipschitz: float = 1.0,
        prior: Any = (1.0, 1.0),
        rings: int = 6,
    ) -> None:
        self._lipschitz, self._prior = lipschitz, prior
        self._shares = 0.5 ** np.arange(1, rings + 1)
        self._widths = [*(np.sqrt(len(bounds)) * self._shares).tolist(), 0.0]
        self._model = SmoothBetaClassifier(self._widths[0], bounds=bounds, prior=prior)
        low, high = np.array(bounds, dtype=np.float64).T
        self._units = Units(low, np.where(high > low, high - low, np.inf))
        self._field: Field | None = None
        self._supposed: tuple[Places, ...] = ()
        # The points of the last query, the sums over their windows, and the posterior, because a
        # bandit repeats its queries.
        self._known: tuple[Floats, Floats, Posterior] | None = None

    def learned(self, rows: Floats, ends: npt.NDArray[Any], context: Any = None) -> Self:
        """Return the field after learning these trials."""
        grown = copy.copy(self)
        model = copy.copy(self._model).partial_fit(rows, ends, classes=(0, 1), context=context)
        field = model.field_
        assert isinstance(field, Field)  # a field of windows, because their width is given
        grown._model, grown._field, grown._known = model, field, None
        return grown

    def supposing(self, rows: Floats, mean: Floats) -> Self:
        """Return the field as if a trial at each row had brought its mean reward."""
        parts = np.rint(np.stack([1.0 - mean, mean]) * FRACTIONS).astype(np.int64)
        more, grown = Places(self._units.axes(rows), parts), copy.copy(self)
        grown._supposed = (*self._supposed, more)
        if self._known is not None:
            points, sums, _ = self._known
            grown._known = grown._knowing(points, self._with(sums, points, (more,)))
        return grown

    def posterior(self, points: Floats, part: slice = slice(None)) -> Posterior:
        """Return the posterior at all points or a part; before the first trial, the prior."""
        known = self._known
        if known is None or not np.array_equal(points, known[0]):
            sums = self._with(self._sums(points), points, self._supposed)
            known = self._known = self._knowing(points, sums)
        return known[2][part]

    def _knowing(self, points: Floats, sums: Floats) -> tuple[Floats, Floats, Posterior]:
        return points, sums, self._read(points, sums)

    def _sums(self, points: Floats) -> Floats:
        """Return the sums over the windows of each width and point."""
        if self._field is None:
            return np.zeros((len(self._widths), len(points), 2))
        scaled, windows = self._units.scaled(points), self._field.windows
        return np.array([windows.sums(scaled, width) for width in self._widths], dtype=np.float64)

    def _with(self, sums: Floats, points: Floats, supposed: tuple[Places, ...]) -> Floats:
        """Return the sums over windows with supposed trials added."""
        if not supposed:
            return sums
        scaled, metric = self._units.scaled(points), metric_code("euclidean", points.shape[1])
        index, both = Brute.build(concatenate(list(supposed)), metric), sums.copy()
        for each, width in zip(both, self._widths, strict=True):
            each[:, :2] += index.sums(scaled, width) / FRACTIONS
        return both

    def _read(self, points: Floats, sums: Floats) -> Posterior:
        """Return the posteriors of points, given the sums over their windows."""
        decoder = Decoder(2) if self._field is None else self._field.decoder
        total: Any = np.zeros(sums.shape[1:])  # fractions of trials, decoded like whole ones
        for share, outer, inner in zip(self._shares, sums, sums[1:], strict=False):
            total += outer - inner
            total /= 1.0 + decoder.size(total)[:, None] * (self._lipschitz * share) ** 2
        return decoder.posterior(total + sums[-1], priors.shapes(self._prior, points, 2))
