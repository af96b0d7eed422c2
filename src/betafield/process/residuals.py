"""What a process leaves over, gathered in windows: for days of storms, jumps and levels.

At every place a process with mean m of π leaves a score and a weight on the logit scale, with
q(π) the success probability under the context and q′ = dq/dπ · m(1−m):

    g = (k − nq) q′/(q(1−q)),   W = n q′²/(q(1−q)).

Over a window, with τ the variance of what the process misses within it,

    logit π(x) = f(x) + Σg/(1/τ + ΣW),   f = logit m,
    variance (1 − β)² v(x) + (1 − β) τ,   β = ΣW/(1/τ + ΣW),

v whole for windows that look at some features only, for the process's error in the others stays;
and at new places among such as have several trials each, where it is not that of neighbours.
Σg and ΣW are sums over places, as trees of windows add them up (`trees`).
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
# Means of π are kept so far from 0 and 1.
NEVER = 1e-6
# The longest length scale, in units of the shortest, that a stretch distinguishes from infinity.
LEAST_STRETCH = 1.0 / 512.0
# Stretches that differ by less than this are alike.
ALIKE = 0.7
# By which coordinates of categories, whose levels are up to 10,000 in [0, 1], are multiplied so
# that no finite window holds two levels.
APART = 1e6


class Residuals(NamedTuple):
    """What a process leaves over at rows.

    Parameters
    ----------
    m : array of shape (r,)
        The process's mean of π.
    q : array of shape (r,)
        Success probability under the context.
    ratio, weight : array of shape (r,)
        Per trial: its score is (outcome − q)·ratio, its weight W.
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
    """Windows of one stretch and width, and τ."""

    stretch: int
    width: int
    tau: float


def parts(score: Floats, information: Floats) -> Floats:
    """Return what windows add up, none of it negative: g⁺, g⁻ and W, shape (r, 3)."""
    return np.column_stack([np.maximum(score, 0.0), np.maximum(-score, 0.0), information])


def residuals(m: Floats, rows: Rows) -> Residuals:
    """Return what a process with these means of π leaves over at rows."""
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
    """Return how distances may be stretched: all features alike, by 1/ℓ, each alone, by level.

    Parameters
    ----------
    lengths : array of shape (d,)
        ℓ of the process.
    spacings : array of shape (d,) or None
        How far apart the levels of features are at the least; ∞: it has none. Windows by level hold
        one level of a feature, and reach as far as they are wide along the others.
    kinds : tuple of str
        What every feature is; none: all are lines.
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
    """Return the stretches of features (d,) with columns of categories after them.

    All levels together; levels of each column apart, all features looked at; and of all columns.
    """
    together = [np.append(way, np.zeros(columns)) for way in ways]
    kept = list(np.eye(columns)) + [np.ones(columns)] * (columns > 1)
    whole = [way for way in ways if way.min() > 0.0]
    return (*together, *(np.append(way, APART * each) for each in kept for way in whole))


def _relative(lengths: Floats) -> Floats:
    """Return 1/ℓ, 1 for the shortest."""
    inverse = 1.0 / np.clip(lengths, 0.03, 30.0)
    return np.asarray(np.clip(inverse / inverse.max(), LEAST_STRETCH, 1.0))


def _within(lengths: Floats, feature: int, apart: float) -> Floats:
    """Return the stretch that takes levels of a feature apart, the others by 1/ℓ."""
    others = np.arange(len(lengths)) != feature
    found = np.full(len(lengths), apart)
    found[others] = _relative(lengths[others])
    return found


def corrected(m: Floats, score: Floats, information: Floats, tau: float) -> Floats:
    """Return π in windows of these sums, for the process's mean m."""
    return np.asarray(expit(log_odds(m) + score / (1.0 / tau + information)))


def variance(
    v: Floats, information: Floats, tau: float, is_shared: bool | npt.NDArray[np.bool_]
) -> Floats:
    """Return the variance of logit π in windows of this ΣW.

    `is_shared` if the process errs at the point as it does in the window: all features count, and
    no place is known to have an effect of its own.
    """
    kept = 1.0 / (1.0 + tau * information)  # 1 − β
    return np.asarray(np.where(is_shared, kept**2, 1.0) * v + kept * tau)


def logit_variance(laws: Laws, m: Floats) -> Floats:
    """Return the variance of logit π under laws with the mean m, links' differences included."""
    total, f = np.zeros_like(m), log_odds(m)
    parts = zip(laws.weights, laws.links, laws.centres, laws.deviations, strict=True)
    for weight, link, centre, deviation in parts:
        p, rise = link.rise(centre)
        slope = rise / np.maximum(p * (1.0 - p), 1e-4)
        own = averages.mean(link, centre, deviation)
        total += weight * ((slope * deviation) ** 2 + (log_odds(own) - f) ** 2)
    return total


def with_windows(laws: Laws, means: list[Floats], variances: list[Floats], weights: Floats) -> Laws:
    """Return the laws of the process joined with those of windows; weights[0] is the process's.

    A window's law is normal in logit π, with a centre that gives it its mean. Weights may differ
    by point, shape (1 + windows, q).
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
    """Return laws with a variance of logit π more at every point, means of π kept."""
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
    """Return logit m, for means that are kept away from 0 and 1."""
    return np.asarray(logit(np.clip(m, NEVER, 1.0 - NEVER)))
