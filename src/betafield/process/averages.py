"""Means of π = g(f) for normal f, and normal laws with a given mean of π.

Gauss–Hermite quadrature is used while the standard deviation s is of the order of 1/κ, the width
of the link's bends. For larger s, with Λ(μ) = E log(1 + e^f) and κ = 1, the expansion is

    Λ = μ Φ(μ/s) + s φ(μ/s) + Σ_k c_k d^2k/dμ^2k (the same),   c = π²/6, 7π⁴/360, 31π⁶/15120,

and E g is Λ′ for the logit and a difference of two Λ for the soft identity. The rule is chosen per
point, so that no result depends on the other points of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr

from betafield.process.links import LOGIT, Link

Floats = npt.NDArray[np.float64]
Order = npt.NDArray[np.intp]
Nodes = tuple[Floats, Floats]

# Numbers of quadrature nodes, and the largest κs for which they give six digits.
RULES = ((5, 0.4), (7, 0.6), (11, 0.9), (21, 2.5), (81, 5.5))
# Pairs of a point and a node evaluated at once, so that they stay in the processor's cache.
AT_ONCE = 8_192
# Most steps of the search for a centre, and the relative step at which it stops: after a step h the
# error is about h².
STEPS, NEAR = 20, 1e-4


def mean(link: Link, centre: Floats, deviation: Floats) -> Floats:
    """Return E g(f), f ~ N(centre, deviation²).

    Examples
    --------
    >>> import numpy as np
    >>> from betafield.process.averages import mean
    >>> from betafield.process.links import LOGIT
    >>> mean(LOGIT, np.array([1.0, 1.0]), np.array([0.0, 2.0]))
    array([0.73105858, 0.6477...])
    """
    out = np.empty_like(centre)
    for nodes, some in _by_rule(link, deviation):
        c, s = centre[some], deviation[some]
        out[some] = _wide(link, c, s, 0) if nodes is None else _average(link, c, s, nodes)
    return out


def mean_and_slope(link: Link, centre: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Return E g(f) and its derivative by the centre, E g′(f)."""
    out, slope = np.empty_like(centre), np.empty_like(centre)
    for nodes, some in _by_rule(link, deviation):
        c, s = centre[some], deviation[some]
        out[some], slope[some] = (
            (_wide(link, c, s, 0), _wide(link, c, s, 1))
            if nodes is None
            else _averages(link, c, s, nodes)
        )
    return out, slope


def centred(link: Link, target: Floats, deviation: Floats, near: Floats) -> Floats:
    """Return the centres at which normal laws with these deviations have the target mean of π.

    Newton steps are taken on the link's scale, on which the mean is nearly linear, from the guesses
    `near`. A point is not changed any more once it has converged.
    """
    wanted, centre = link.inverse(target), near.copy()
    open_ = np.arange(len(centre))
    for _ in range(STEPS):
        step = _step(link, wanted[open_], centre[open_], deviation[open_])
        centre[open_] = np.clip(centre[open_] + step, -link.most, link.most)
        open_ = open_[np.abs(step) > NEAR * (1.0 + np.abs(centre[open_]))]
        if not open_.size:
            break
    return centre


def guessed(link: Link, target: Floats, deviation: Floats) -> Floats:
    """Return approximate centres for `centred`, so that it needs only one or two steps.

    For the logit, with u = target − ½ and s the deviation, it is logit(target) + s²u − s⁴u(¼ − u²)
    while s is small; for larger s it uses E g ≈ g(c/√(1 + πs²/8)).
    """
    if link is not LOGIT:
        return link.inverse(target)
    latent, u, square = link.inverse(target), target - 0.5, deviation**2
    series = latent + square * u * (1.0 - square * (0.25 - u * u))
    return np.where(square <= 1.0, series, latent * np.sqrt(1.0 + np.pi / 8.0 * square))


def _step(link: Link, wanted: Floats, centre: Floats, deviation: Floats) -> Floats:
    found, slope = mean_and_slope(link, centre, deviation)
    latent = link.inverse(found)
    _, rise = link.rise(latent)
    # Wide laws have flat means: with a larger least slope, steps would fall short every time.
    return np.asarray((wanted - latent) / np.clip(slope / rise, 0.01, 1.5))


def _nodes(count: int) -> Nodes:
    x, w = np.polynomial.hermite_e.hermegauss(count)
    return x, w / w.sum()


_NODES: tuple[tuple[Nodes | None, float], ...] = (
    *((_nodes(count), most) for count, most in RULES),
    (None, np.inf),
)


def _by_rule(link: Link, deviation: Floats) -> Iterator[tuple[Nodes | None, Order]]:
    """Yield each rule's nodes, or None for large deviations, and the points that use it."""
    bends, above = deviation * link.steepness, -1.0
    for nodes, most in _NODES:
        some = np.flatnonzero((bends > above) & (bends <= most))
        if some.size:
            yield nodes, some
        above = most


def _average(link: Link, c: Floats, s: Floats, nodes: Nodes) -> Floats:
    total = np.zeros_like(c)
    for w, value in _weighed(link.value, c, s, nodes):
        total += w * value
    return total


def _averages(link: Link, c: Floats, s: Floats, nodes: Nodes) -> tuple[Floats, Floats]:
    total, slope = np.zeros_like(c), np.zeros_like(c)
    for w, (value, rise) in _weighed(link.rise, c, s, nodes):
        total += w * value
        slope += w * rise
    return total, slope


def _weighed(
    function: Callable[[Floats], Any], c: Floats, s: Floats, nodes: Nodes
) -> Iterator[tuple[float, Any]]:
    """Yield each node's weight and the function's value there; several nodes are evaluated at once.

    Callers add node by node, so that the bits of a sum do not depend on how many points there are.
    """
    x, weights = nodes
    step = max(1, AT_ONCE // len(c))
    for first in range(0, len(x), step):
        some = slice(first, first + step)
        table = function(c + x[some, None] * s)
        each = zip(*table, strict=True) if isinstance(table, tuple) else table
        yield from zip(weights[some], each, strict=True)


# c_k.
_COEFFICIENTS = (np.pi**2 / 6, 7 * np.pi**4 / 360, 31 * np.pi**6 / 15120)


def _wide(link: Link, c: Floats, s: Floats, order: int) -> Floats:
    """Return the mean (order 0) or its derivative (1) for deviations much larger than 1/κ."""
    k = link.steepness
    if link is LOGIT:
        return np.clip(_gauss(c, s, order + 1), 0.0, 1.0)
    upper, lower = (_gauss(k * (c + h), k * s, order) for h in (0.5, -0.5))
    return np.clip((upper - lower) / k ** (1 - order), 0.0, 1.0)


def _gauss(mu: Floats, s: Floats, order: int) -> Floats:
    """Return the derivative of Λ of the given order, 0 to 2."""
    z = mu / s
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    total = (mu * ndtr(z) + s * density, ndtr(z), density / s)[order]
    for k, c in enumerate(_COEFFICIENTS):
        n = 2 * k + order
        hermite = np.polynomial.hermite_e.hermeval(z, [0.0] * n + [1.0])
        total = total + c * (-1.0) ** n * hermite * density / s ** (n + 1)
    return np.asarray(total)
