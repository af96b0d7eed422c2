"""Features that wrap around: circles and the sphere, with bases other than the cosines of a line.

    circle   1, cos 2πkx, sin 2πkx                D_k ∝ e^(−u_k/2), u_k = (2kℓ)²
    sphere   real spherical harmonics Y_l^m        D_l ∝ e^(−u_l/2), u_l = l(l + 1)(2ℓ)²

ℓ is in diameters of the circle or the sphere. The sum of squares of all functions with the same u
is constant, so all points of a circle or the sphere are equivalent, and a process does not depend
on where x starts.

In J, a function of a circle is given by its frequency, negative for sines; one of the sphere by
(m, l) in the columns of longitude and latitude, m negative for sines. The sphere has one ℓ, that of
the latitude; the longitude's is unused. Windows on a circle or the sphere are round: distances are
chords, combined with those along lines as in Pythagoras' theorem.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
# Kind of each feature; if empty, all are lines.
Kinds = tuple[str, ...]

LINE, CIRCLE, LONGITUDE, LATITUDE = "line", "circle", "longitude", "latitude"
# A diameter as a fraction of the feature's range: 1, one period, 360° and 180°.
DIAMETERS = {LINE: 1.0, CIRCLE: 1.0 / np.pi, LONGITUDE: 1.0 / np.pi, LATITUDE: 2.0 / np.pi}


# Length scales -----------------------------------------------------------------------------


def of_kind(kinds: Kinds, *wanted: str) -> Bools:
    """Return which features are of one of these kinds."""
    return np.array([kind in wanted for kind in kinds], dtype=np.bool_)


def lengths(own: Floats, kinds: Kinds) -> Floats:
    """Return length scales as fractions of the features' ranges, given those in diameters."""
    if not kinds:
        return own
    own = own.copy()
    if LONGITUDE in kinds:
        own[kinds.index(LONGITUDE)] = own[kinds.index(LATITUDE)]
    return np.asarray(own * [DIAMETERS[kind] for kind in kinds])


def steps(own: Floats, margin: Floats, kinds: Kinds) -> Floats:
    """Return u at frequency 1, per feature."""
    line = (np.pi * own / (1.0 + 2.0 * margin)) ** 2
    return np.select(
        [of_kind(kinds, LINE), of_kind(kinds, CIRCLE, LATITUDE)], [line, (2.0 * own) ** 2], 0.0
    )


def spans(own: Floats, margin: Floats, kinds: Kinds) -> float:
    """Return Σ log of roughly the constant's share of the spectrum, over features."""
    line = 2.5 * own / (1.0 + 2.0 * margin)
    each = np.select(
        [of_kind(kinds, LINE), of_kind(kinds, CIRCLE), of_kind(kinds, LATITUDE)],
        [line, 2.5 * own / np.pi, 2.0 * own**2],
        1.0,
    )
    return float(np.log(np.minimum(1.0, each)).sum())


# Functions ---------------------------------------------------------------------------------


def squares(J: Ints, kinds: Kinds) -> Ints:
    """Return the factor on u at frequency 1, per function and feature."""
    out = J**2
    out[:, of_kind(kinds, LONGITUDE)] = 0
    at = of_kind(kinds, LATITUDE)
    out[:, at] = J[:, at] * (J[:, at] + 1)
    return np.asarray(out)


def doubled(J: Ints, kinds: Kinds) -> Ints:
    """Return the number of features in which a function is a cosine or sine, mean square ½."""
    return np.asarray((J[:, of_kind(kinds, LINE, CIRCLE)] != 0).sum(axis=1))


def ladders(step: Floats, kinds: Kinds, furthest: float) -> Iterator[tuple[Floats, Floats]]:
    """Yield, per feature, the values of u up to `furthest`, and the number of functions of each."""
    for one, kind in zip(step, kinds, strict=True):
        if kind == LONGITUDE:
            yield np.zeros(1), np.ones(1)
            continue
        k = np.arange(math.ceil(math.sqrt(furthest / one)) + 1.0)
        if kind == LATITUDE:
            yield one * k * (k + 1.0), 2.0 * k + 1.0
        else:
            yield one * k**2, np.where((k > 0) & (kind == CIRCLE), 2.0, 1.0)


def lowest(
    step: Floats, kinds: Kinds, limit: float, most: int, highest: int
) -> tuple[Ints, Floats, bool]:
    """Return the functions with the lowest u, sorted by u, their u, and whether some were dropped.

    Functions with the same u are kept or dropped together, because a circle has no direction.
    """
    J, u, is_capped = np.zeros((1, len(kinds)), dtype=np.int64), np.zeros(1), False
    for a, codes, more in _codes(step, kinds, limit, highest):
        grown = (u[:, None] + more).ravel()
        J = np.repeat(J, len(more), axis=0)
        J[:, a] = np.tile(codes, (len(u), 1))
        kept = np.flatnonzero(grown <= limit)
        if len(kept) > most:
            last = np.sort(grown[kept])[most]
            kept, is_capped = kept[grown[kept] < last], True
        J, u = J[kept], grown[kept]
    order = np.lexsort((*J.T[::-1], u))
    return J[order], u[order], is_capped


def _codes(
    step: Floats, kinds: Kinds, limit: float, highest: int
) -> Iterator[tuple[list[int], Ints, Floats]]:
    """Yield features, the frequencies of their functions and the u of each."""
    for a, kind in enumerate(kinds):
        if kind == LONGITUDE:
            continue
        most = highest // 2 if kind == CIRCLE else highest
        k = np.arange(min(most, int(math.sqrt(limit / step[a])) + 1))
        if kind == LINE:
            yield [a], k[:, None], step[a] * k**2
        elif kind == CIRCLE:
            signed = np.concatenate([k, -k[1:]])
            yield [a], signed[:, None], step[a] * signed**2
        else:
            degree = np.repeat(k, 2 * k + 1)
            order = np.concatenate([np.arange(-one, one + 1) for one in k])
            both = np.column_stack([order, degree])
            yield [kinds.index(LONGITUDE), a], both, step[a] * degree * (degree + 1.0)


def circle(x: Floats, code: Ints) -> Floats:
    """Return cosines and sines at points of a circle, shape (points, functions)."""
    each, which = np.unique(code, return_inverse=True)
    turned = (2.0 * np.pi) * np.multiply.outer(x, np.abs(each))
    return np.asarray(np.where(each < 0, np.sin(turned), np.cos(turned))[:, which.ravel()])


def sphere(x: Floats, y: Floats, order: Ints, degree: Ints) -> Floats:
    """Return real spherical harmonics with mean square 1, shape (points, functions).

    x and y are longitude and latitude as fractions of their ranges, from −180° and −90°.
    """
    each, which = np.unique(np.abs(order), return_inverse=True)
    turned = (2.0 * np.pi) * np.multiply.outer(x - 0.5, each)
    around = np.stack([np.cos(turned), np.sin(turned)])[(order < 0).astype(np.int64), :, which]
    up = np.pi * (y - 0.5)
    P = _legendre(np.sin(up), np.cos(up), int(degree.max(initial=0)))
    return np.asarray(P[degree, np.abs(order)].T * around.T)


def _legendre(s: Floats, c: Floats, highest: int) -> Floats:
    """Return Legendre functions P[l, m] at sine s, normalised for harmonics of mean square 1."""
    P = np.zeros((highest + 1, highest + 1, len(s)))
    P[0, 0] = 1.0
    for m in range(1, highest + 1):
        first = math.sqrt(3.0) if m == 1 else math.sqrt((2.0 * m + 1.0) / (2.0 * m))
        P[m, m] = first * c * P[m - 1, m - 1]
    for m in range(highest):
        P[m + 1, m] = math.sqrt(2.0 * m + 3.0) * s * P[m, m]
        for k in range(m + 2, highest + 1):
            a = math.sqrt((4.0 * k * k - 1.0) / (k * k - m * m))
            b = math.sqrt(((k - 1.0) ** 2 - m * m) / (4.0 * (k - 1.0) ** 2 - 1.0))
            P[k, m] = a * (s * P[k - 1, m] - b * P[k - 2, m])
    return P


# Distances ---------------------------------------------------------------------------------


def laid(points: Floats, stretch: Floats, kinds: Kinds) -> Floats:
    """Return stretched points in a space with Euclidean distances; ignored features are 0."""
    return embedded(points, stretch, kinds, with_all=True) if kinds else points * stretch


def dimensions(kinds: Kinds, d: int) -> int:
    """Return the number of coordinates of d features in that space."""
    return d + sum(kind in (CIRCLE, LATITUDE) for kind in kinds)


def embedded(points: Floats, stretch: Floats, kinds: Kinds, with_all: bool = False) -> Floats:
    """Return stretched points in a space with Euclidean distances, without ignored features.

    A line has one coordinate, a circle of circumference 1 two, and the sphere, which measures 1
    from pole to pole, three. Levels of categories, which come after the features, are lines.

    Examples
    --------
    >>> import numpy as np
    >>> embedded(np.array([[0.25]]), np.array([2 * np.pi]), ("circle",)).round(6).tolist()
    [[0.0, 1.0]]
    """
    columns = []
    every = (*kinds, *(LINE,) * (len(stretch) - len(kinds)))
    for a, kind in enumerate(every):
        x, s = points[:, a], float(stretch[a])
        if (s == 0.0 and not with_all) or kind == LONGITUDE:
            continue
        if kind == LINE:
            columns.append(x * s)
        elif kind == CIRCLE:
            turned = np.ascontiguousarray(x) * (2.0 * np.pi)
            columns += [np.cos(turned) * (s / (2.0 * np.pi)), np.sin(turned) * (s / (2.0 * np.pi))]
        else:
            around = (2.0 * np.pi) * (points[:, kinds.index(LONGITUDE)] - 0.5)
            up = np.pi * (np.ascontiguousarray(x) - 0.5)
            level = np.cos(up) * (s / np.pi)
            columns += [level * np.cos(around), level * np.sin(around), np.sin(up) * (s / np.pi)]
    return np.column_stack(columns)


def alone(kinds: Kinds) -> list[Floats]:
    """Return the stretches that use one feature each; the sphere counts as one."""
    out = []
    for a, kind in enumerate(kinds):
        if kind != LONGITUDE:
            out.append(np.eye(len(kinds))[a])
        if kind == LATITUDE:
            out[-1][kinds.index(LONGITUDE)] = 1.0
    return out
