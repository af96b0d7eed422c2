"""Mean, variance, distribution function and quantiles of mixtures of normal laws under links."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from betafield.process import averages
from betafield.process.laws import Laws
from betafield.process.links import Link

Floats = npt.NDArray[np.float64]

# Steps of the search for a quantile, and how near in probability is near enough.
STEPS, NEAR = 60, 1e-13


def mean(laws: Laws) -> Floats:
    """Return E π per point."""
    parts = [averages.mean(*each) for each in _each(laws)]
    return np.asarray((_weights(laws) * parts).sum(axis=0))


def pdf(laws: Laws, p: Floats) -> Floats:
    """Return the density of π at p, one per point."""
    total = np.zeros_like(p)
    for weight, (link, centre, deviation) in zip(laws.weights, _each(laws), strict=True):
        f = link.inverse(p)
        z = (f - centre) / deviation
        total += weight * np.exp(-0.5 * z**2) / (deviation * link.rise(f)[1])
    return np.asarray(total / np.sqrt(2.0 * np.pi))


def cdf(laws: Laws, p: Floats) -> Floats:
    """Return P(π ≤ p), one p per point."""
    total = np.zeros_like(p)
    for weight, (link, centre, deviation) in zip(laws.weights, _each(laws), strict=True):
        total += weight * ndtr((link.inverse(p) - centre) / deviation)
    return total


def quantiles(laws: Laws, q: Floats) -> Floats:
    """Return the p with P(π ≤ p) = q, for levels (…, points) strictly between 0 and 1.

    Between the components' own quantiles, by Newton's steps, halving where they would leave.
    """
    z = ndtri(q)
    ends = np.stack([link.value(c + z * s) for link, c, s in _each(laws)])
    if len(laws.links) == 1:
        return np.asarray(ends[0])
    low, high = ends.min(axis=0), ends.max(axis=0)
    p = np.sum([w * end for w, end in zip(laws.weights, ends, strict=True)], axis=0)
    for _ in range(STEPS):
        excess = cdf(laws, p) - q
        low, high = np.where(excess < 0, p, low), np.where(excess < 0, high, p)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            new = p - excess / pdf(laws, p)
        middle = 0.5 * (low + high)
        done = (np.abs(excess) < NEAR) | (high - low < NEAR)
        p = np.where(done, p, np.where((new > low) & (new < high), new, middle))
        if done.all():
            break
    return np.asarray(p)


def _each(laws: Laws) -> Iterator[tuple[Link, Floats, Floats]]:
    return zip(laws.links, laws.centres, laws.deviations, strict=True)


def _weights(laws: Laws) -> Floats:
    """Return the weights as columns of points, or one column for all."""
    return laws.weights.reshape(len(laws.links), -1)
