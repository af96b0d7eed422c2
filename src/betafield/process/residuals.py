"""Residuals of a process, summed over windows: for what is rough, such as storms, jumps and levels.

At each place a process with posterior mean m of π leaves a score and a weight on the logit scale.
With q(π) the success probability under the context and q′ = dq/dπ · m(1−m):

    g = (k − nq) q′/(q(1−q)),   W = n q′²/(q(1−q)).

Over a window, with τ the prior variance of what the process misses within it,

    logit π(x) = f(x) + Σg/(1/τ + ΣW),   f = logit m,
    variance (1 − β)² v(x) + (1 − β) τ,   β = ΣW/(1/τ + ΣW),

with v instead of (1 − β)² v for windows that ignore some features, because the process's error
along those remains, and at new places if places have several trials each, because its error there
is not that of the neighbours. Σg and ΣW are sums over places, computed by trees (`trees`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from betafield.process import averages, wrapped
from betafield.process.laws import Laws
from betafield.process.likelihood import TINY, polynomial
from betafield.process.links import LOGIT
from betafield.process.rows import Rows
from betafield.process.wrapped import Kinds

Floats = npt.NDArray[np.float64]

TAUS = (0.02, 0.08, 0.3, 1.2)
# Means of π are kept this far from 0 and 1.
NEVER = 1e-6
# The smallest stretch: length scales more than 512 times the shortest count as 512 times.
LEAST_STRETCH = 1.0 / 512.0
# If no relative stretch is below this, length scales count as equal.
ALIKE = 0.7
# The factor on coordinates of categories, which have up to 10,000 levels in [0, 1], so that no
# finite window holds two levels.
APART = 1e6


class Residuals(NamedTuple):
    """The residuals of a process at rows.

    Parameters
    ----------
    m : array of shape (r,)
        The process's posterior mean of π.
    q : array of shape (r,)
        Success probability under the context.
    ratio, weight : array of shape (r,)
        Per trial: q′/(q(1−q)), by which outcome − q is multiplied to give the score, and W.
    score, information : array of shape (r,)
        g and W, summed over all trials of the row.
    """

    m: Floats
    q: Floats
    ratio: Floats
    weight: Floats
    score: Floats
    information: Floats


class Window(NamedTuple):
    """Windows with one stretch and width, by index, and one τ."""

    stretch: int
    width: int
    tau: float


def parts(score: Floats, information: Floats) -> Floats:
    """Return the values that windows sum, all non-negative: g⁺, g⁻ and W, shape (r, 3)."""
    return np.column_stack([np.maximum(score, 0.0), np.maximum(-score, 0.0), information])


def residuals(m: Floats, rows: Rows) -> Residuals:
    """Return the residuals at rows of a process with these means of π."""
    m = np.clip(m, NEVER, 1.0 - NEVER)
    q, rise, _ = polynomial(rows.context, m, 1.0 - m)
    rest = np.maximum(polynomial(1.0 - rows.context, m, 1.0 - m)[0], TINY)
    first = rise * m * (1.0 - m)
    ratio = first / (np.maximum(q, TINY) * rest)
    n, k = rows.n, rows.k
    weight = first * ratio
    return Residuals(m, q, ratio, weight, (k * rest - (n - k) * q) * ratio, n * weight)


def stretches(
    lengths: Floats, spacings: Floats | None = None, kinds: Kinds = ()
) -> tuple[Floats, ...]:
    """Return the stretches of distances to try: equal, by 1/ℓ, each feature alone, by level.

    Parameters
    ----------
    lengths : array of shape (d,)
        ℓ of the process.
    spacings : array of shape (d,) or None
        Least distance between levels of each feature; ∞ if it has none. A window by level holds
        one level of a feature, and extends by its width along the others.
    kinds : tuple of str
        Kind of each feature; if empty, all are lines.
    """
    d = len(lengths)
    each = wrapped.alone(kinds) if kinds else list(np.eye(d))
    if kinds and wrapped.LONGITUDE in kinds:
        lengths = lengths.copy()
        lengths[kinds.index(wrapped.LONGITUDE)] = lengths[kinds.index(wrapped.LATITUDE)]
    if len(each) == 1:
        return (np.ones(d),)
    relative = _relative(lengths)
    unequal = (relative,) if relative.min() < ALIKE else ()
    apart = np.full(d, np.inf) if spacings is None else spacings
    by_level = [
        _within(lengths, a, 1.0 / apart[a]) for a in np.flatnonzero(np.isfinite(apart)).tolist()
    ]
    return (np.ones(d), *unequal, *each, *by_level)


def by_category(ways: tuple[Floats, ...], columns: int) -> tuple[Floats, ...]:
    """Return the stretches of d features extended to columns of categories.

    Windows either hold all levels, or one level of one column or of all columns; the latter
    ignore no feature.
    """
    together = [np.append(way, np.zeros(columns)) for way in ways]
    kept = list(np.eye(columns)) + [np.ones(columns)] * (columns > 1)
    whole = [way for way in ways if way.min() > 0.0]
    return (*together, *(np.append(way, APART * each) for each in kept for way in whole))


def _relative(lengths: Floats) -> Floats:
    """Return 1/ℓ relative to the shortest length scale, which has 1."""
    inverse = 1.0 / np.clip(lengths, 0.03, 30.0)
    return np.asarray(np.clip(inverse / inverse.max(), LEAST_STRETCH, 1.0))


def _within(lengths: Floats, feature: int, apart: float) -> Floats:
    """Return the stretch that separates the levels of a feature, with 1/ℓ for the others."""
    others = np.arange(len(lengths)) != feature
    found = np.full(len(lengths), apart)
    found[others] = _relative(lengths[others])
    return found


def corrected(m: Floats, score: Floats, information: Floats, tau: float) -> Floats:
    """Return π given the sums over a window and the process's mean m."""
    return np.asarray(expit(log_odds(m) + score / (1.0 / tau + information)))


def variance(
    v: Floats, information: Floats, tau: float, is_shared: bool | npt.NDArray[np.bool_]
) -> Floats:
    """Return the variance of logit π given ΣW over a window.

    `is_shared` says that the process's error at the point is that in the window: no feature is
    ignored, and places have no effects of their own.
    """
    kept = 1.0 / (1.0 + tau * information)  # 1 − β
    return np.asarray(np.where(is_shared, kept**2, 1.0) * v + kept * tau)


def logit_variance(laws: Laws, m: Floats) -> Floats:
    """Return the variance of logit π under laws with mean m, within and between components."""
    total, f = np.zeros_like(m), log_odds(m)
    parts = zip(laws.weights, laws.links, laws.centres, laws.deviations, strict=True)
    for weight, link, centre, deviation in parts:
        p, rise = link.rise(centre)
        slope = rise / np.maximum(p * (1.0 - p), 1e-4)
        own = averages.mean(link, centre, deviation)
        total += weight * ((slope * deviation) ** 2 + (log_odds(own) - f) ** 2)
    return total


def with_windows(laws: Laws, means: list[Floats], variances: list[Floats], weights: Floats) -> Laws:
    """Return the laws of the process and the windows together; weights[0] is the process's.

    A window's law is normal in logit π, centred so that π has its mean. Weights may differ between
    points, shape (1 + windows, q).
    """
    deviations = [np.sqrt(v) for v in variances]
    centres = [
        averages.centred(LOGIT, p, s, averages.guessed(LOGIT, p, s))
        for p, s in zip(means, deviations, strict=True)
    ]
    own = laws.weights if weights.ndim == 1 else laws.weights[:, None]
    return Laws(
        (*laws.links, *([LOGIT] * len(means))),
        np.concatenate([weights[0] * own, weights[1:]]),
        np.concatenate([laws.centres, *(c[None] for c in centres)]),
        np.concatenate([laws.deviations, *(s[None] for s in deviations)]),
    )


def widened(laws: Laws, added: Floats) -> Laws:
    """Return laws with variance of logit π added at each point, keeping the means of π."""
    some = np.flatnonzero(added)
    centres, deviations = laws.centres.copy(), laws.deviations.copy()
    for i, link in enumerate(laws.links):
        centre, deviation = centres[i, some], deviations[i, some]
        p, rise = link.rise(centre)
        wide = np.sqrt(deviation**2 + added[some] * (p * (1.0 - p) / np.maximum(rise, TINY)) ** 2)
        target = averages.mean(link, centre, deviation)
        centres[i, some] = averages.centred(link, target, wide, centre)
        deviations[i, some] = wide
    return laws._replace(centres=centres, deviations=deviations)


def log_odds(m: Floats) -> Floats:
    """Return logit m, with m kept away from 0 and 1."""
    return np.asarray(logit(np.clip(m, NEVER, 1.0 - NEVER)))
