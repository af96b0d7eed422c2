"""Fields drawn from a model's posterior, for either kind of field.

A process of two classes is drawn jointly (`betafield.process.draws`). Windows, and fields of three
or more classes, have one distribution per point: they are drawn as its quantiles at the levels
Φ(e(x)), where e is a smooth random field correlated over the window or the length scales. So the
distribution at each point is exactly that of `posterior`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import gammaincinv, gammaln, log_ndtr, ndtr

from betafield.methods import AnyField
from betafield.posteriors import Dirichlet
from betafield.process.noise import Noise, Seed
from betafield.process.wrapped import laid
from betafield.smooth import SmoothField

Floats = npt.NDArray[np.float64]

# Stream of random numbers for the first class.
CLASSES = 16
# Levels of categories are this far apart, so they share nothing.
APART = 1e6
# Upper bound of the codes of levels.
HIGHEST = 2.0**53
# Smaller Gamma quantiles are computed by their logarithm.
SMALL = 1e-290


class Fields(Protocol):
    """Drawn fields, which can be evaluated at any points."""

    def at(self, points: Floats) -> Floats:
        """Return π of every field at points (m, d), shape (size, m), or (size, m, classes)."""


def fields(field: AnyField, size: int, seed: Seed, is_centred: bool = True) -> Fields:
    """Return `size` fields drawn from the posterior.

    Monotone fields have the mean of `posterior` unless `is_centred` is false. Moving draws to that
    mean can make steep ones less steep, so thresholds and slopes ask for draws as they are.
    """
    if isinstance(field, SmoothField) and any(field.signs):
        return field.monotone(size=size, seed=seed, is_centred=is_centred)
    if isinstance(field, SmoothField) and len(field.smooth) == 1:
        from betafield.process.draws import Fields as Process

        return Process(field.smooth[0], size, seed, field.options.n_jobs)
    return Marginal(field, size, seed)


class Marginal:
    """Fields with the posterior's distribution at each point, correlated over its reach."""

    def __init__(self, field: AnyField, size: int, seed: Seed) -> None:
        self.field, self.size, self.seed = field, size, seed

    def at(self, points: Floats) -> Floats:
        """Return π of every field at points (m, d), shape (size, m), or (size, m, classes)."""
        post, x = self.field.posterior(points), reached(self.field, points)
        if not isinstance(post, Dirichlet):
            return np.asarray(post.ppf(ndtr(self._noise(x, 0))))
        logs = [log_gamma(alpha, self._noise(x, k)) for k, alpha in enumerate(post.alpha.T)]
        table = np.stack(logs, axis=2)
        table = np.exp(table - table.max(axis=2, keepdims=True))
        return np.asarray(table / table.sum(axis=2, keepdims=True))

    def _noise(self, x: Floats, k: int) -> Floats:
        """Return smooth fields of unit variance at points, shape (size, m)."""
        return Noise(self.seed, CLASSES + k, self.size, x.shape[1]).smooth(x).T


def reached(field: AnyField, points: Floats) -> Floats:
    """Return points in units of how far trials reach."""
    if isinstance(field, SmoothField):
        lengths = np.min([smooth.lengths for smooth in field.smooth], axis=0)
        box = field.smooth[0].box
        x, levels = np.split(box.inside(points), [len(lengths)], axis=1)
        return np.column_stack([laid(x, 1.0 / lengths, box.kinds), APART * levels])
    x = np.asarray(field.units.scaled(points) / field.width)
    known = list(field.features.categories.columns)
    if not known:
        return x
    # Codes of levels are too large for the noise to distinguish.
    return np.column_stack([x, APART * (points[:, known] / HIGHEST)])


def log_gamma(alpha: Floats, z: Floats) -> Floats:
    """Return logarithms of Gamma(α) quantiles at the levels Φ(z).

    Near 0, where they underflow, the distribution function is x^α/Γ(α + 1).
    """
    quantile = gammaincinv(alpha, ndtr(z))
    small = (log_ndtr(z) + gammaln(alpha + 1.0)) / alpha
    return np.asarray(np.where(quantile > SMALL, np.log(np.maximum(quantile, SMALL)), small))
