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

# Most steps of the search for a quantile, its tolerance in probability, and the error relative to
# the tail below which one more step is exact, because convergence is quadratic.
STEPS, NEAR, CLOSE = 60, 1e-13, 1e-7


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


def quantiles(laws: Laws, q: Floats) -> Floats:
    """Return the p with P(π ≤ p) = q, for levels (…, points) strictly between 0 and 1.

    The search takes Newton steps between the components' own quantiles, and bisects if a step
    would leave the bracket.
    """
    z = ndtri(q)
    ends = np.stack([link.value(c + z * s) for link, c, s in _each(laws)])
    if len(laws.links) == 1:
        return np.asarray(ends[0])
    each = np.broadcast_to(np.arange(laws.centres.shape[1]), z.shape).ravel()
    columns = laws.weights[:, each] if laws.weights.ndim > 1 else laws.weights[:, None]
    rows = laws._replace(
        weights=np.broadcast_to(columns, (len(columns), z.size)),
        centres=laws.centres[:, each],
        deviations=laws.deviations[:, each],
    )
    level = np.broadcast_to(q, z.shape).ravel()
    return _between(rows, level, ends.reshape(len(ends), -1)).reshape(z.shape)


def _between(laws: Laws, q: Floats, ends: Floats) -> Floats:
    """Return quantiles between the components' own, `ends`, each independent of the others."""
    low, high, p = ends.min(axis=0), ends.max(axis=0), (laws.weights * ends).sum(axis=0)
    open_ = np.arange(len(q))
    for _ in range(STEPS):
        at, some = p[open_], _some(laws, open_)
        excess, density = _excess(some, at, q[open_])
        low[open_] = np.where(excess < 0, at, low[open_])
        high[open_] = np.where(excess < 0, high[open_], at)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            new = at - excess / density
        inside = (new > low[open_]) & (new < high[open_])
        new = np.where(inside, new, 0.5 * (low[open_] + high[open_]))
        is_there = (np.abs(excess) < NEAR) | (high[open_] - low[open_] < NEAR)
        p[open_] = np.where(is_there, at, new)
        is_last = inside & (np.abs(excess) < CLOSE * np.minimum(q, 1.0 - q)[open_])
        open_ = open_[~(is_there | is_last)]
        if not open_.size:
            break
    return np.asarray(p)


def _some(laws: Laws, rows: npt.NDArray[np.intp]) -> Laws:
    return laws._replace(
        weights=laws.weights[:, rows],
        centres=laws.centres[:, rows],
        deviations=laws.deviations[:, rows],
    )


def _excess(laws: Laws, p: Floats, q: Floats) -> tuple[Floats, Floats]:
    """Return P(π ≤ p) − q and the density of π at p, evaluating each link once."""
    total, density = np.zeros_like(p), np.zeros_like(p)
    links = {link.name: link for link in laws.links}
    latent = {name: link.inverse(p) for name, link in links.items()}
    rise = {name: link.rise(latent[name])[1] for name, link in links.items()}
    for weight, (link, centre, deviation) in zip(laws.weights, _each(laws), strict=True):
        z = (latent[link.name] - centre) / deviation
        total += weight * ndtr(z)
        density += weight * np.exp(-0.5 * z**2) / (deviation * rise[link.name])
    return total - q, density / np.sqrt(2.0 * np.pi)


def _each(laws: Laws) -> Iterator[tuple[Link, Floats, Floats]]:
    return zip(laws.links, laws.centres, laws.deviations, strict=True)


def _weights(laws: Laws) -> Floats:
    """Return the weights with one column per point, or one column for all."""
    return laws.weights.reshape(len(laws.links), -1)
