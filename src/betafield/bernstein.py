"""Polynomials of π by their Bernstein coefficients, on the last axis of an array.

    f(π) = Σ_k b_k binom(p, k) π^k (1−π)^(p−k),    k = 0..p.

f lies between the least and the greatest coefficient, f(0) = b_0 and f(1) = b_p. With non-negative
coefficients no sum cancels.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from betafield._rows import distinct
from betafield.refusals import refused

Floats = npt.NDArray[np.float64]

# The coefficients of π itself: the context of a trial that was seen as it is.
PLAIN = (0.0, 1.0)
# Degree beyond which binomial coefficients leave the range of floats.
HIGHEST = 1000
# Rounding errors of a line after many degree elevations.
_ELEVATION = 1e-14
# Log-odds beyond which π rounds to 0 or 1.
_FARTHEST = 750.0
# Rounding errors of values and coefficients, per degree: pieces that vary less are flat.
_ROUNDINGS = 8.0
# Averages of numbers smaller than this have larger relative rounding errors.
_TINY = 2.0**-1000


# Values ------------------------------------------------------------------------------------


def value(coefficients: Floats, p: Floats) -> Floats:
    """Return f(p), for p that broadcasts against the coefficients without their last axis.

    By de Casteljau's algorithm, in which nothing cancels.

    Examples
    --------
    >>> value(np.array([0.0, 1.0, 1.0]), np.array([0.0, 0.5, 1.0])).tolist()
    [0.0, 0.75, 1.0]
    """
    shape = np.broadcast_shapes(coefficients.shape[:-1], np.shape(p))
    values, points = coefficients, np.asarray(p)[..., None]
    while values.shape[-1] > 1:
        values = (1.0 - points) * values[..., :-1] + points * values[..., 1:]
    return np.broadcast_to(values[..., 0], shape).copy()


def value_beside(coefficients: Floats, p: Floats, rest: Floats) -> Floats:
    """Return f(p), one row each, with 1 − p given too, because it may have more digits than p.

    Examples
    --------
    >>> value_beside(np.array([[0.0, 1.0, 1.0]]), np.array([0.5]), np.array([0.5])).tolist()
    [0.75]
    """
    if coefficients.shape[-1] == 2:  # most contexts: the same, sooner
        return np.asarray(coefficients[..., 0] * rest + coefficients[..., 1] * p)
    powers, ways = _binomial(coefficients.shape[-1] - 1)
    chances = ways * p[..., None] ** powers * rest[..., None] ** powers[::-1]
    return np.asarray((coefficients * chances).sum(axis=-1))


@lru_cache(maxsize=64)
def _binomial(degree: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return k = 0, 1, …, p and binom(p, k)."""
    powers = np.arange(degree + 1)
    return powers, np.asarray(special.comb(degree, powers))


def value_at_log_odds(coefficients: Floats, u: Floats) -> Floats:
    """Return Σ_k b_k exp(log binom(p, k) + k u − p log(1 + e^u)), f at π = 1/(1 + e^(−u)).

    Examples
    --------
    >>> value_at_log_odds(np.array([0.0, 1.0, 1.0]), np.array([0.0])).round(6).tolist()
    [0.75]
    """
    exponents = _exponents(coefficients.shape[-1] - 1, u)
    return np.asarray((coefficients * np.exp(exponents)).sum(axis=-1))


def scaled_at_log_odds(coefficients: Floats, u: Floats) -> Floats:
    """Return f over its largest term, which has the same sign and never underflows."""
    exponents = _exponents(coefficients.shape[-1] - 1, u)
    largest = np.where(coefficients == 0.0, -np.inf, exponents).max(axis=-1, keepdims=True)
    return np.asarray((coefficients * np.exp(np.minimum(exponents - largest, 0.0))).sum(axis=-1))


def _exponents(degree: int, u: Floats) -> Floats:
    u = np.clip(u, -_FARTHEST, _FARTHEST)[..., None]
    k = np.arange(degree + 1)
    return np.asarray(log_binomials(degree) + k * u - degree * np.logaddexp(0.0, u))


def log_binomials(degree: int) -> Floats:
    """Return log binom(p, k) for k = 0..p.

    Examples
    --------
    >>> np.exp(log_binomials(4)).round(9).tolist()
    [1.0, 4.0, 6.0, 4.0, 1.0]
    """
    k = np.arange(degree + 1)
    return np.asarray(
        special.gammaln(degree + 1) - special.gammaln(k + 1) - special.gammaln(degree - k + 1)
    )


# Ranges ------------------------------------------------------------------------------------


def image(coefficients: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return (min, max) of polynomials over low ≤ π ≤ high, rounded outward.

    The extrema are at the ends, or at turning points between them. No value of the polynomial
    lies outside; by rounding, the interval may be too wide by 32 (p + 1) ε times the largest
    coefficient.

    Parameters
    ----------
    coefficients : array of shape (p + 1,) or (m, p + 1)
        One polynomial for all rows, or one per row.
    low, high : arrays of shape (m,)
        Within [0, 1], low ≤ high.

    Examples
    --------
    The parabola 2π(1−π) is highest in the middle:

    >>> low, high = image(np.array([0.0, 1.0, 0.0]), np.array([0.1, 0.6]), np.array([0.9, 0.7]))
    >>> print(low.round(3), high.round(3))
    [0.18 0.42] [0.5  0.48]
    """
    rows = np.atleast_2d(coefficients)
    which = np.broadcast_to(np.arange(len(rows)), len(low))
    least, most = np.empty(len(low)), np.empty(len(low))
    kinds, kind = distinct(rows)
    for i, row in enumerate(kinds):
        mine = kind.reshape(-1)[which] == i
        least[mine], most[mine] = _image(row, low[mine], high[mine])
    return least, most


def _image(row: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return (min, max) of one polynomial over several intervals."""
    ends = value(row, np.stack([low, high]))
    least, most = ends.min(axis=0), ends.max(axis=0)
    turns = np.array(_turns(tuple(row.tolist())))
    for turn, there in zip(turns, value(row, turns), strict=True):
        inside = (low <= turn) & (turn <= high)
        least = np.where(inside, np.minimum(least, there), least)
        most = np.where(inside, np.maximum(most, there), most)
    slack = 2.0 * _rounding(row)
    # A polynomial never leaves the range of its coefficients.
    return np.maximum(least - slack, row.min()), np.minimum(most + slack, row.max())


@lru_cache(maxsize=256)
def _turns(row: tuple[float, ...]) -> tuple[float, ...]:
    """Return points so near all turning points of a polynomial that the values are the same.

    A piece with monotone coefficients has no turning point. Any other is halved until it is flat.
    The points where pieces meet are included.
    """
    flat = _rounding(np.array(row))
    found, pieces = [], [(0.0, 1.0, np.array(row))]
    while pieces:
        start, width, b = pieces.pop()
        steps, half = np.diff(b), 0.5 * width
        if (steps >= 0.0).all() or (steps <= 0.0).all():
            continue
        found.append(start + half)
        if np.ptp(b) > flat:
            left, right = halves(b)
            pieces += [(start, half, left), (start + half, half, right)]
    return tuple(found)


def _rounding(row: Floats) -> float:
    """Return a bound of the rounding errors of values and coefficients of pieces."""
    return _ROUNDINGS * len(row) * float(np.finfo(float).eps * np.abs(row).max()) + _TINY


# Other coefficients of the same polynomial ---------------------------------------------------


def elevated(coefficients: Floats, degree: int) -> Floats:
    """Return the coefficients in a higher degree, which are averages of neighbours.

    From degree n to n + 1: b'_k = k/(n+1) b_(k−1) + (1 − k/(n+1)) b_k.

    Examples
    --------
    >>> elevated(np.array([0.0, 1.0]), 4).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    while coefficients.shape[-1] <= degree:
        shape = (*coefficients.shape[:-1], coefficients.shape[-1] + 1)
        share = np.arange(shape[-1]) / (shape[-1] - 1)
        below, above = np.zeros(shape), np.zeros(shape)
        below[..., 1:] = above[..., :-1] = coefficients
        coefficients = np.asarray(share * below + (1.0 - share) * above)
    return coefficients


def from_powers(powers: Floats) -> Floats:
    """Return b_k = Σ_j binom(k, j) / binom(p, j) c_j, the coefficients of Σ_j c_j π^j.

    Examples
    --------
    >>> from_powers(np.array([0.0, 2.0, -1.0])).tolist()
    [0.0, 1.0, 1.0]
    """
    k = np.arange(powers.shape[-1])
    shares = special.binom(k[:, None], k) / special.binom(k[-1], k)
    return np.asarray(powers @ shares.T)


def farthest(powers: Floats) -> tuple[float, float]:
    """Return where on [0, 1] Σ_j c_j π^j is farthest from ½, and its value there.

    Examples
    --------
    >>> farthest(np.array([0.0, 4.0, -4.0]))
    (0.5, 1.0)
    """
    curve = np.polynomial.Polynomial(powers)
    turns = np.real(curve.deriv().trim(1e-14).roots())
    # Turning points first, to be named if tied with an end, which may well touch 0 or 1.
    points = np.concatenate([turns[(turns > 0.0) & (turns < 1.0)], [0.0, 1.0]])
    values = curve(points)
    worst = int(np.argmax(np.abs(values - 0.5).round(12)))
    return float(points[worst]), float(values[worst])


def is_line(coefficients: Floats) -> npt.NDArray[np.bool_]:
    """Return which of the rows (t, p + 1) are straight lines, however high their degree.

    Their coefficients are equally spaced, up to rounding errors of degree elevation.

    Examples
    --------
    >>> is_line(np.array([[0.0, 0.5, 1.0], [0.0, 1.0, 1.0]])).tolist()
    [True, False]
    """
    if coefficients.shape[1] <= 2:  # most contexts: nothing to compute
        return np.ones(len(coefficients), dtype=np.bool_)
    share = np.linspace(0.0, 1.0, coefficients.shape[1])
    line = coefficients[:, :1] * (1.0 - share) + coefficients[:, -1:] * share
    return np.asarray((np.abs(coefficients - line) <= _ELEVATION).all(axis=1))


def is_plain(coefficients: Floats) -> npt.NDArray[np.bool_]:
    """Return which of the rows (t, p + 1) are π itself, however high their degree.

    Examples
    --------
    >>> is_plain(np.array([[0.0, 0.5, 1.0], [0.0, 0.4, 0.8]])).tolist()
    [True, False]
    """
    return np.asarray((coefficients[:, [0, -1]] == PLAIN).all(axis=1) & is_line(coefficients))


def require_possible(
    name: str, context: Floats, failures: Any, successes: Any, start: int = 0
) -> None:
    """Raise for the first row with an outcome that cannot have happened; `start` is its number.

    It is told which rows have failures, and which successes.

    Examples
    --------
    >>> require_possible("context", np.array([[0.5, 1.0], [1.0, 1.0]]), [True, True], [True, True])
    Traceback (most recent call last):
        ...
    ValueError: context row 1: found [1.0, 1.0], under which the probability of success is 1 for \
every π, and a failure; this cannot happen
    """
    never, always = (context == 0.0).all(axis=1), (context == 1.0).all(axis=1)
    wrong = np.asarray((successes & never) | (failures & always))
    if wrong.any():
        row = int(np.argmax(wrong))
        found, sure = ("success", 0) if never[row] else ("failure", 1)
        raise refused(
            name,
            f"found {context[row].tolist()}, under which the probability of success is {sure} for "
            f"every π, and a {found}; this cannot happen",
            start + row,
        )


def halves(coefficients: Floats) -> tuple[Floats, Floats]:
    """Return the coefficients of f on [0, ½] and on [½, 1], each stretched to [0, 1].

    Examples
    --------
    >>> left, right = halves(np.array([[0.0, 1.0, 1.0]]))
    >>> left.tolist(), right.tolist()
    ([[0.0, 0.5, 0.75]], [[0.75, 1.0, 1.0]])
    """
    left, right = np.empty_like(coefficients), np.empty_like(coefficients)
    level = coefficients
    for k in range(coefficients.shape[-1]):
        left[..., k], right[..., -1 - k] = level[..., 0], level[..., -1]
        level = 0.5 * (level[..., :-1] + level[..., 1:])
    return left, right


# Other polynomials ---------------------------------------------------------------------------


def any_of(size: Floats) -> Floats:
    """Return the coefficients of 1 − (1−π)^size, all in the degree of the largest size.

    Examples
    --------
    >>> any_of(np.array([1.0, 2.0])).tolist()
    [[0.0, 0.5, 1.0], [0.0, 1.0, 1.0]]
    """
    sizes, which = np.unique(size.astype(np.int64), return_inverse=True)
    degree = int(sizes[-1]) if sizes.size else 1
    plain = [(np.arange(n + 1) > 0).astype(np.float64) for n in sizes.tolist()]
    rows = np.array([elevated(row, degree) for row in plain])
    return rows.reshape(-1, degree + 1)[which.reshape(size.shape)]


def derivative(coefficients: Floats) -> Floats:
    """Return the coefficients of f', p (b_(k+1) − b_k), of degree p − 1."""
    return np.asarray((coefficients.shape[-1] - 1) * np.diff(coefficients))


def product(a: Floats, b: Floats) -> Floats:
    """Return c_k = Σ_i binom(p, i) binom(q, k−i) / binom(p+q, k) a_i b_(k−i): averages of a_i b_j.

    Examples
    --------
    >>> product(np.array([0.0, 1.0]), np.array([0.0, 1.0])).round(9).tolist()
    [0.0, 0.0, 1.0]
    """
    p, q = a.shape[-1] - 1, b.shape[-1] - 1
    chances, sums = log_binomials(q), log_binomials(p + q)
    result = np.zeros((*np.broadcast_shapes(a.shape[:-1], b.shape[:-1]), p + q + 1))
    for i, log_binomial in enumerate(log_binomials(p)):
        share = np.exp(log_binomial + chances - sums[i : i + q + 1])
        result[..., i : i + q + 1] += share * a[..., i : i + 1] * b
    return result


def composed(outer: Floats, inner: Floats) -> Floats:
    """Return the coefficients of outer(inner(π)) per row, both with coefficients within [0, 1].

    By de Casteljau's algorithm for polynomials: every step is (1 − f) a + f b, where the
    coefficients of f, 1 − f, a and b are within [0, 1].

    Examples
    --------
    >>> composed(np.array([[0.0, 0.0, 1.0]]), np.array([[0.0, 1.0]])).round(9).tolist()
    [[0.0, 0.0, 1.0]]
    """
    values, weight = outer[..., None], inner[:, None]
    while values.shape[1] > 1:
        values = product(1.0 - weight, values[:, :-1]) + product(weight, values[:, 1:])
    return values[:, 0].clip(0.0, 1.0)
