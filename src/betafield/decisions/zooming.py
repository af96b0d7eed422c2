"""Windows as narrow as the trials around a point allow: a field for trials that flock together.

A bandit pulls where it pays, so that trials crowd around the best point and are few elsewhere. One
width for all points is then too wide in the crowd, whose edge it cannot tell from its middle, and
too narrow elsewhere, where every small window must be tried for itself. By the theory of one point,
bias L Δ and error n^(−1/2) balance where n (L Δ)² = 1; so each point has the narrowest of the
widths √d, √d/2, √d/4, … for which

    n(x, Δ) · (L Δ)² ≥ 1,

n(x, Δ) being the trials within Δ of x. For evenly spread trials that is the width by theory.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from betafield import priors
from betafield.estimators import SmoothBetaClassifier
from betafield.posteriors import Beta, Posterior

Floats = npt.NDArray[np.float64]

# Halvings of the widest window: in one dimension, and in more, where narrow ones stay empty.
LINE, SPACE = 7, 5


class ZoomedField:
    """One `SmoothBetaClassifier` for each width, of which every point has one.

    Parameters
    ----------
    bounds : list of (low, high)
        The domain; distances are in shares of it.
    lipschitz : float, default=2.0
        L, how fast the probability may change: 2 is from 0 to 1 over half of the domain.
    prior : (alpha, beta), default=(1.0, 1.0)

    Examples
    --------
    Around many trials windows are narrow, and wide where there are few:

    >>> X = np.concatenate([np.linspace(0.19, 0.21, 400), [0.7, 0.9]])[:, None]
    >>> field = ZoomedField([(0, 1)]).partial_fit(X, [1] * 400 + [0] * 2)
    >>> field.widths([[0.2], [0.25], [0.85]]).tolist()
    [0.03125, 0.0625, 0.5]
    """

    def __init__(
        self,
        bounds: list[tuple[float, float]],
        lipschitz: float = 2.0,
        prior: Any = (1.0, 1.0),
    ) -> None:
        self.bounds, self.lipschitz, self.prior = bounds, lipschitz, prior
        d = len(bounds)
        # Where all trials are at one point, one width says all.
        n = 1 if all(low == high for low, high in bounds) else LINE if d == 1 else SPACE
        halved = np.sqrt(d) * 0.5 ** np.arange(n)
        self.fields = [
            SmoothBetaClassifier(width, bounds=bounds, prior=prior) for width in halved.tolist()
        ]

    def partial_fit(
        self, X: Any, y: Any, classes: Any = (0, 1), sample_weight: Any = None, context: Any = None
    ) -> Self:
        """Learn from more trials; where they cannot be learned, nothing is."""
        drafts = [copy.copy(field) for field in self.fields]
        for draft in drafts:
            draft.partial_fit(X, y, classes, sample_weight, context)
        self.fields = drafts
        return self

    def widths(self, X: Any) -> Floats:
        """Return the width of the window at each row of X."""
        return np.array([self.fields[i].bandwidth for i in self._zoomed(np.asarray(X, float))])

    def posterior(self, X: Any) -> Patches:
        """Return the posterior at each row of X, which before the first trial is the prior."""
        points = np.asarray(X, dtype=np.float64)
        zoomed = self._zoomed(points)
        rows = [np.flatnonzero(zoomed == i) for i in range(len(self.fields))]
        parts = [
            (mine, belief(field, points[mine]))
            for mine, field in zip(rows, self.fields, strict=True)
            if mine.size
        ]
        return Patches(len(points), parts)

    def _zoomed(self, points: Floats) -> npt.NDArray[np.intp]:
        """Return which of the fields each point has: the narrowest that holds enough trials."""
        chosen = np.zeros(len(points), dtype=np.intp)
        if is_new(self.fields[0]):
            return chosen
        for i, field in enumerate(self.fields):
            enough = field._held_at(points) * (self.lipschitz * float(field.bandwidth)) ** 2 >= 1.0
            chosen[enough] = i
        return chosen


class Patches:
    """Posteriors of rows that come from several fields; only what choosing an arm needs."""

    def __init__(self, n: int, parts: list[tuple[npt.NDArray[np.intp], Posterior]]) -> None:
        self.n, self.parts = n, parts

    def mean(self) -> Floats:
        """Return the mean of each row."""
        result = np.empty(self.n)
        for rows, part in self.parts:
            result[rows] = part.mean()
        return result

    def ppf(self, q: Floats) -> Floats:
        """Return the quantile of each row at its own probability."""
        result = np.empty(self.n)
        for rows, part in self.parts:
            result[rows] = part.ppf(q[rows])
        return result


def is_new(field: SmoothBetaClassifier) -> bool:
    """Return whether a field has seen no trial."""
    return not hasattr(field, "windows_")


def belief(field: SmoothBetaClassifier, points: Floats) -> Posterior:
    """Return the posterior of a field, which before its first trial is the prior."""
    if not is_new(field):
        return field.posterior(points)
    shapes = np.broadcast_to(priors.shapes(field.prior, points, 2), (len(points), 2))
    return Beta(shapes[:, 1], shapes[:, 0])
