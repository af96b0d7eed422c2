"""A field for trials that flock together: the nearer a trial, the more it says.

A bandit pulls where it pays, so that trials crowd around the best point and are few elsewhere. One
width for all points is then too wide in the crowd, whose edge it cannot tell from its middle, and
too narrow elsewhere, where every small window must be tried for itself. So every point has windows
of widths Δ = 1/2, 1/4, …, 1/64 and 0 around it, in shares of the domain's diagonal, and what they
hold is taken in from the outside: the sums s of the trials begin with nothing, and ring after ring

    s ← (s + trials within Δ, but not within the next width) / (1 + n (L Δ)²),

n being the trials that s + … amounts to. For trials at a distance Δ are off by L Δ or so: however
many, they count for no more than 1 / (L Δ)² trials at the point itself, which count in full. A
crowd far away thus leaves a point as unknown as it is.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import special

from betafield import priors, sharing, trials
from betafield.estimators import SmoothBetaClassifier
from betafield.posteriors import Beta, Posterior
from betafield.units import Units
from betafield.windows.base import Places, concatenate, metric_code
from betafield.windows.brute import Brute

Floats = npt.NDArray[np.float64]

# Δ, in shares of the diagonal.
SHARES = 0.5 ** np.arange(1, 7)


class ZoomedField:
    """A `SmoothBetaClassifier` whose trials count for less the farther they are from a point.

    Parameters
    ----------
    bounds : list of (low, high)
        The domain.
    lipschitz : float, default=1.0
        L, how fast the probability may change: by L over the diagonal of the domain.
    prior : (alpha, beta), default=(1.0, 1.0)

    Examples
    --------
    A crowd of 400 trials says much where it is, and elsewhere little:

    >>> X = np.concatenate([np.linspace(0.19, 0.21, 400), [0.7, 0.9]])[:, None]
    >>> field = ZoomedField([(0, 1)]).partial_fit(X, [1] * 400 + [0] * 2)
    >>> field.posterior([[0.2], [0.25], [0.85]]).std().round(3).tolist()
    [0.004, 0.008, 0.197]
    """

    def __init__(
        self,
        bounds: list[tuple[float, float]],
        lipschitz: float = 1.0,
        prior: Any = (1.0, 1.0),
    ) -> None:
        self.lipschitz = lipschitz
        self._widths = [*(np.sqrt(len(bounds)) * SHARES).tolist(), 0.0]
        self.model = SmoothBetaClassifier(self._widths[0], bounds=bounds, prior=prior)
        low, high = np.array(bounds, dtype=np.float64).T
        self._units = Units(low, np.where(high > low, high - low, np.inf))
        self._supposed: list[Places] = []
        # The points last asked for, what their windows hold, and what that says: a bandit asks for
        # the same again.
        self._known: tuple[Floats, Floats, Posterior] | None = None

    def partial_fit(
        self, X: Any, y: Any, classes: Any = (0, 1), sample_weight: Any = None, context: Any = None
    ) -> Self:
        """Learn from more trials; where they cannot be learned, nothing is."""
        draft = copy.copy(self.model)
        self.model = draft.partial_fit(X, y, classes, sample_weight, context)
        self._known = None
        return self

    def suppose(self, X: Floats, mean: Floats) -> Self:
        """Count trials at the rows of X that bring what is expected of each, a part of a success.

        The sums of all trials are those of the known ones and of these.
        """
        parts = np.rint(np.stack([1.0 - mean, mean]) * trials.FRACTIONS).astype(np.int64)
        more = Places(self._units.axes(X), parts)
        self._supposed = [*self._supposed, more]
        if self._known is not None:
            points, held, _ = self._known
            self._know(points, self._with(held, points, [more]))
        return self

    def posterior(self, X: Any, part: slice = slice(None)) -> Posterior:
        """Return the posterior at rows of X, all or a part; before the first trial, the prior."""
        points = np.array(X, dtype=np.float64)
        if self._known is None or not np.array_equal(points, self._known[0]):
            self._know(points, self._with(self._held(points), points, self._supposed))
        assert self._known is not None
        return self._known[2][part]

    def _know(self, points: Floats, held: Floats) -> None:
        self._known = points, held, self._read(points, held)

    def _held(self, points: Floats) -> Floats:
        """Return what the window of each width and point holds."""
        if is_new(self.model):
            return np.zeros((len(self._widths), len(points), 2))
        scaled, windows = self._units.scaled(points), self.model.windows_
        return np.array([windows.sums(scaled, width) for width in self._widths], dtype=np.float64)

    def _with(self, held: Floats, points: Floats, supposed: list[Places]) -> Floats:
        """Return what windows hold together with supposed trials."""
        if not supposed:
            return held
        scaled, metric = self._units.scaled(points), metric_code("euclidean", points.shape[1])
        index, sums = Brute.build(concatenate(supposed), metric), held.copy()
        for each, width in zip(sums, self._widths, strict=True):
            each[:, :2] += index.sums(scaled, width) / trials.FRACTIONS
        return sums

    def _read(self, points: Floats, held: Floats) -> Posterior:
        """Return the posteriors of points whose windows hold this."""
        reading = sharing.Reading(2) if is_new(self.model) else self.model._reading()
        sums: Any = np.zeros(held.shape[1:])  # parts of trials, which are read as whole ones are
        for share, outer, inner in zip(SHARES, held, held[1:], strict=False):
            sums += outer - inner
            sums /= 1.0 + reading.size(sums)[:, None] * (self.lipschitz * share) ** 2
        return reading.posterior(sums + held[-1], priors.shapes(self.model.prior, points, 2))


Field = SmoothBetaClassifier | ZoomedField


def is_new(field: SmoothBetaClassifier) -> bool:
    """Return whether a field has seen no trial."""
    return not hasattr(field, "windows_")


def blank(model: Any, bounds: list[tuple[float, float]], lipschitz: float) -> Field:
    """Return a field without trials: with the options of a model, or one that zooms."""
    if model is None:
        return ZoomedField(bounds, lipschitz)
    if not isinstance(model, SmoothBetaClassifier):
        raise TypeError(f"model: found {type(model).__name__}; a SmoothBetaClassifier is needed")
    model._check_options()
    return SmoothBetaClassifier(**{**model.get_params(), "bounds": bounds})


def belief(field: Field, points: Floats, part: slice = slice(None)) -> Posterior:
    """Return the posterior of a field at a part of points; before its first trial, the prior."""
    if isinstance(field, ZoomedField):
        return ZoomedField.posterior(field, points, part)
    if not is_new(field):
        return field.posterior(points[part])
    shapes = np.broadcast_to(priors.shapes(field.prior, points[part], 2), (len(points[part]), 2))
    return Beta(shapes[:, 1], shapes[:, 0])


def suppose(field: Field, points: Floats, mean: Floats) -> None:
    """Teach a field that a trial at each point brings its mean: a part of a success."""
    if isinstance(field, ZoomedField):
        field.suppose(points, mean)
        return
    parts, ends = np.concatenate([mean, 1.0 - mean]), np.repeat([1, 0], len(points))
    field.partial_fit(np.vstack([points, points]), ends, classes=(0, 1), sample_weight=parts)


def highest(belief: Posterior, level: float) -> Floats:
    """Return the quantiles of all rows that may be the highest; −∞ for the others.

    A quantile is above v where P(π ≤ v) is below q, which is found much sooner than it.
    """
    mean, std = belief.mean(), belief.std()
    least = belief[int(np.argmax(mean + special.ndtri(level) * std))].ppf(level)
    # By Cantelli's inequality no quantile is farther above the mean.
    may = np.flatnonzero(mean + np.sqrt(level / (1.0 - level)) * std >= least - 1e-9)
    may = may[belief[may].cdf(least) <= level + 1e-9]
    scores = np.full(len(mean), -np.inf)
    scores[may] = belief[may].ppf(level)
    return scores
