"""Lookup tables for the kernels: polynomials as powers of e^u, and functions on the lattice."""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt
from scipy import special

from betafield import lattice
from betafield._rows import distinct
from betafield.posteriors.quadrature.layout import (
    CELLS,
    EDGE,
    GAUSS,
    KNOWN_SLOPES,
    LEVELS,
    ORDER,
    SPAN,
)

Floats = npt.NDArray[np.float64]

# The degree up to which roots are computed rather than bounded.
MOST_ROOTS = 64
# Leading coefficients below this are too small to divide by; the most numbers held at once.
UNDERFLOW, BLOCK = 1e-290, 1 << 22


def powers(polynomials: Floats) -> Floats:
    """Write P as z^a Σ_i c_i z^i / (1+z)^p with z = e^u = θ/(1−θ), c_0 > 0 and i = 0..d.

    A row is (a, p − a − d, p, d, distance, c_0, c_1, …, slopes): `distance` is that of the nearest
    root from the real axis of u, and the slopes are d/du log Σ c_i z^i at points of the lattice.
    """
    return _powers(np.ascontiguousarray(polynomials).tobytes(), polynomials.shape[1])


@functools.lru_cache(maxsize=2)  # all rows at once: a cache of single rows could be too small
def _powers(rows: bytes, width: int) -> Floats:
    polynomials, p = np.frombuffer(rows).reshape(-1, width), width - 1
    result = np.zeros((len(polynomials), 5 + width + KNOWN_SLOPES))
    there = polynomials > 0.0
    spans = np.stack([there.argmax(axis=1), p - there[:, ::-1].argmax(axis=1)], axis=1)
    for low, high in distinct(spans)[0].tolist():
        alike = np.flatnonzero((spans == (low, high)).all(axis=1))
        size = max(1, BLOCK // ((high - low + 1) * max(KNOWN_SLOPES, high - low)))
        for start in range(0, len(alike), size):
            some = alike[start : start + size]
            head, slopes = _of_one_degree(polynomials[some], low, high)
            result[some, : head.shape[1]], result[some, -KNOWN_SLOPES:] = head, slopes
    return result


def _of_one_degree(polynomials: Floats, low: int, high: int) -> tuple[Floats, Floats]:
    """Return heads and slopes of rows with these first and last positive coefficients."""
    p, degree = polynomials.shape[1] - 1, high - low
    powers = np.arange(low, high + 1)
    with np.errstate(divide="ignore"):
        logs = np.log(polynomials[:, powers])
    logs += special.gammaln(p + 1) - special.gammaln(powers + 1) - special.gammaln(p - powers + 1)
    c = np.exp(logs - logs.max(axis=1, keepdims=True))
    u = np.arange(-CELLS - 1, CELLS + 3) * lattice.STEP
    shares = special.softmax(logs[:, None] + u[:, None] * np.arange(degree + 1), axis=2)
    numbers = np.broadcast_to((low, p - high, p, degree), (len(c), 4))
    head = np.column_stack([numbers, _distances(c), c])
    return head, np.asarray((shares * np.arange(degree + 1.0)).sum(axis=2))


def _distances(c: Floats) -> Floats:
    """Return the distance of the nearest root of Σ c_i e^(iu) from the real axis of u."""
    # Non-negative coefficients keep roots out of a sector of angle π/degree.
    degree = c.shape[1] - 1
    distance = np.full(len(c), math.pi / max(degree, 1))
    clear = c[:, -1] > UNDERFLOW
    if 0 < degree <= MOST_ROOTS:
        companion = np.zeros((int(clear.sum()), degree, degree))
        companion[:, np.arange(1, degree), np.arange(degree - 1)] = 1.0
        companion[:, 0] = -c[clear, -2::-1] / c[clear, -1:]
        found = np.abs(np.angle(np.linalg.eigvals(companion))).min(axis=1)
        distance[clear] = np.maximum(found, distance[clear])  # some roots are not computed
    return distance


@functools.cache
def functions() -> Floats:
    """Return φ and related functions on the lattice, and weights: the same for all posteriors."""
    edge, span = EDGE, SPAN
    u = np.concatenate(
        [
            np.arange(-(edge << level), (edge << level) + 1) * (lattice.STEP / (1 << level))
            for level in range(LEVELS + 1)
        ]
    )
    series = _series(np.arange(-edge, edge + 1, dtype=np.float64) * lattice.STEP, ORDER)
    points, weights = np.polynomial.legendre.leggauss(GAUSS)
    points = 0.5 * points + 0.5
    powers = np.array([_monomials(span, cell) for cell in range(span - 1)])
    at_gauss = np.array([_at_points(span, cell, points) for cell in range(span - 1)])
    parts = [np.logaddexp(0.0, u), np.exp(u), series[:, 1], series, at_gauss, powers, points]
    return np.concatenate([part.ravel() for part in [*parts, 0.5 * weights]])


def _series(u: Floats, order: int) -> Floats:
    """Return φ^(d)(u)/d! for d = 0..order, as columns, recursively from φ' = p, p' = p (1 − p)."""
    result = np.empty((len(u), order + 1))
    result[:, 0] = np.logaddexp(0.0, u)
    p, q = np.exp(-np.logaddexp(0.0, -u)), np.exp(-np.logaddexp(0.0, u))
    # Coefficients of p, from those of p and q = 1 − p, which do not cancel.
    terms = [p]
    others = [q]
    for d in range(order - 1):
        product = sum((terms[i] * others[d - i] for i in range(d + 1)), np.zeros(len(u))) / (d + 1)
        terms.append(product)
        others.append(-product)
    for d in range(order):
        result[:, d + 1] = terms[d] / (d + 1)
    return result


def _monomials(span: int, cell: int) -> Floats:
    """Return the coefficients (node, power) of Lagrange polynomials about a cell's middle.

    The nodes are at 0..span−1, and the cell is the one after node `cell`.
    """
    places = np.arange(span) - (cell + 0.5)
    rows = []
    for k in range(span):
        others = np.delete(places, k)
        rows.append(np.polynomial.polynomial.polyfromroots(others) / np.prod(places[k] - others))
    return np.array(rows)


def _at_points(span: int, cell: int, points: Floats) -> Floats:
    """Return the weights (node, point) of nodes 0..span−1 at fractions of a cell."""
    return np.asarray(np.polynomial.polynomial.polyval(points - 0.5, _monomials(span, cell).T))
