"""Posteriors after distorted trials, known by their log-density in log-odds.

With u = log(θ/(1−θ)) and φ(u) = log(1 + e^u), a distorted trial adds φ(u + s) − φ(u) to the
log-density, and a polynomial context adds log P(θ); see `betafield.lattice`. What is wanted of such
a density is one-dimensional integrals of a smooth function: some tens of nodes around the mode
give them, however many trials there were. See `_density` for how.
"""

from __future__ import annotations

import functools
import math
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy import special

from betafield import lattice
from betafield._threads import run
from betafield.posteriors.base import Floats, Generator, Posterior, Rows, checked_shapes, refuse

# Shifts beyond are as good as this one: all that is looked at lies within ±64.
_FAR = 150.0
# Degree up to which roots are found rather than bounded.
_MOST_ROOTS = 64


class Contextual(Posterior):
    """Posteriors of a success probability whose trials were distorted, one a row.

    Row i has, up to a constant, the log-density in log-odds u

        ℓ(u) = α u − (α+β) φ(u)  +  Σ_j amounts[i, j] (φ(u + s_j) − φ(u))
               +  Σ_k trials[i, k] (φ(u + shifts[i, k]) − φ(u))  +  Σ_k repeats[i, k] log P_k(θ)

    with φ(u) = log(1 + e^u), s_j = (first + j) · STEP and
    P_k(θ) = Σ_i b_i binom(p, i) θ^i (1−θ)^(p−i), where b = polynomials[k].

    Parameters
    ----------
    alpha, beta : array-like of shape (m,)
        Shapes of the prior, plus successes and failures of undistorted trials: positive, finite.
    amounts : array-like of shape (m, c), optional
        Trials as they are counted on the lattice of `betafield.lattice`.
    first : int, default=0
        The lattice's point of the first column.
    shifts, trials : array-like of shape (m, k), optional
        Log-likelihood ratios of a row's own, and how many trials have them.
    polynomials : array-like of shape (K, p + 1), optional
        Bernstein coefficients of outcomes' probabilities: not negative, not all 0.
    repeats : array-like of shape (m, K), optional
        How many outcomes of each polynomial a row has.
    n_jobs : int, optional
        Threads. None: 1; -1: all cores.

    Examples
    --------
    A success that had an even chance of being a guess, s = log 1 − log ½, from a uniform prior:

    >>> import numpy as np
    >>> from betafield.posteriors.contextual import Contextual
    >>> post = Contextual([1.0], [1.0], shifts=[[np.log(2.0)]], trials=[[1.0]])
    >>> post
    <Contextual, shape 1, means from 0.556 to 0.556>
    >>> post.prob_above(0.5).round(6)
    array([0.583333])
    >>> low, high = post.interval(0.9)
    >>> print(low.round(4), high.round(4))
    [0.0724] [0.9621]

    Ten pools of five samples, three of them positive:

    >>> pools = [[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0, 1.0, 1.0]]
    >>> Contextual([1.0], [1.0], polynomials=pools, repeats=[[7.0, 3.0]]).mean().round(4)
    array([0.0883])
    """

    def __init__(
        self,
        alpha: npt.ArrayLike,
        beta: npt.ArrayLike,
        *,
        amounts: npt.ArrayLike | None = None,
        first: int = 0,
        shifts: npt.ArrayLike | None = None,
        trials: npt.ArrayLike | None = None,
        polynomials: npt.ArrayLike | None = None,
        repeats: npt.ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = checked_shapes("alpha", alpha, ndim=1)
        self.beta = checked_shapes("beta", beta, ndim=1)
        m = len(self.alpha)
        if self.beta.shape != (m,):
            raise ValueError(
                f"alpha has {m} rows and beta has {len(self.beta)}; they must have the same number"
            )
        self.amounts, self.first = _table("amounts", amounts, m), int(first)
        _check_lattice(self.first, self.amounts.shape[1])
        self.shifts, self.trials = _table("shifts", shifts, m), _table("trials", trials, m)
        self.polynomials = _checked_polynomials(polynomials)
        self.repeats = _table("repeats", repeats, m)
        self.n_jobs = n_jobs
        _check_columns("shifts", self.shifts.shape[1], "trials", self.trials.shape[1])
        _check_columns("polynomials", len(self.polynomials), "repeats", self.repeats.shape[1])

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,): one distribution a row."""
        return self.alpha.shape

    def mean(self) -> Floats:
        """E[π], a sum over nodes."""
        return np.asarray(self._mean_and_variance()[0])

    def var(self) -> Floats:
        """E[(π − E[π])²], a sum of terms that are not negative."""
        return np.asarray(self._mean_and_variance()[1])

    def moments(self, p: int) -> Floats:
        """Return (m, p + 1): E[binom(p, k) π^k (1−π)^(p−k)] for k = 0..p.

        Examples
        --------
        After no trials at all from a uniform prior, all are 1/(p + 1):

        >>> Contextual([1.0], [1.0]).moments(3).round(10)
        array([[0.25, 0.25, 0.25, 0.25]])
        """
        from betafield.posteriors import _density

        binomials = np.array([[math.comb(p, k)] for k in range(p + 1)], dtype=np.float64)
        return self._answers(_density.BERNSTEIN, binomials, p + 1).T.copy()

    def _mean_and_variance(self) -> Floats:
        from betafield.posteriors import _density

        return self._answers(_density.MOMENTS, np.zeros((2, 1)), 2)

    def _pdf(self, p: Floats) -> Floats:
        from betafield.posteriors import _density

        return self._pointwise(_density.PDF, p)

    def _cdf(self, p: Floats) -> Floats:
        from betafield.posteriors import _density

        return self._pointwise(_density.BELOW, p)

    def _above(self, p: Floats) -> Floats:
        from betafield.posteriors import _density

        return self._pointwise(_density.ABOVE, p)

    def _ppf(self, q: Floats) -> Floats:
        from betafield.posteriors import _density

        return self._pointwise(_density.PPF, q)

    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        return self._ppf(np.asarray(rng.uniform(size=size)))

    def _take(self, rows: Rows) -> Self:
        return type(self)(
            self.alpha[rows],
            self.beta[rows],
            amounts=self.amounts[rows],
            first=self.first,
            shifts=self.shifts[rows],
            trials=self.trials[rows],
            polynomials=self.polynomials if len(self.polynomials) else None,
            repeats=self.repeats[rows],
            n_jobs=self.n_jobs,
        )

    def _pointwise(self, what: int, values: Floats) -> Floats:
        """Ask for every value of every row."""
        shape = np.broadcast_shapes(values.shape, self.shape)
        table = np.broadcast_to(values, shape).reshape(math.prod(shape[:-1]), len(self))
        return self._answers(what, np.ascontiguousarray(table), len(table)).reshape(shape)

    def _answers(self, what: int, values: Floats, count: int) -> Floats:
        """Return (count, m), from the kernels."""
        from betafield.posteriors import _density

        out = np.empty((count, len(self)))
        values = values if values.shape[1:] == self.shape else np.broadcast_to(values, out.shape)
        polynomials, table = _powers(self.polynomials), _table_of_functions()
        moments = what in (_density.MOMENTS, _density.BERNSTEIN)
        answer = _density.answer_moments if moments else _density.answer_points

        def fill(rows: slice) -> None:
            part = np.empty((count, len(self.alpha[rows])))
            answer(
                self.alpha[rows],
                self.beta[rows],
                self.amounts[rows],
                self.first,
                np.exp(self.shifts[rows].clip(-_FAR, _FAR)),
                self.trials[rows],
                self.repeats[rows],
                polynomials,
                table,
                what,
                _frozen(np.ascontiguousarray(values[:, rows])),
                part,
            )
            out[:, rows] = part

        run(fill, len(self), self.n_jobs)
        return out


# What comes in -----------------------------------------------------------------------------


def _table(name: str, values: npt.ArrayLike | None, m: int) -> Floats:
    if values is None:
        return _frozen(np.zeros((m, 0)))
    array = _frozen(np.ascontiguousarray(values, dtype=np.float64))
    if array.ndim != 2 or len(array) != m:
        raise ValueError(f"{name} has shape {array.shape}; ({m}, columns) is needed")
    refuse(name, array, ~np.isfinite(array), "must be finite")
    return array


def _frozen(array: Floats) -> Floats:
    """Return the same numbers, read-only: kernels are compiled for that, once."""
    view = array.view()
    view.flags.writeable = False
    return view


def _check_lattice(first: int, columns: int) -> None:
    most = int(64.0 / lattice.STEP)
    if columns and not -most <= first <= first + columns - 1 <= most:
        raise ValueError(
            f"amounts: columns are points {first} to {first + columns - 1} of the lattice; "
            f"they must be within {-most} to {most}"
        )


def _check_columns(first: str, columns: int, second: str, others: int) -> None:
    if columns != others:
        raise ValueError(f"{first} counts {columns} and {second} has {others} columns; one each")


def _checked_polynomials(values: npt.ArrayLike | None) -> Floats:
    if values is None:
        return np.zeros((0, 1))
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != 2 or not array.shape[1]:
        raise ValueError(f"polynomials has shape {array.shape}; (polynomials, degree + 1)")
    refuse(
        "polynomials",
        array,
        ~((array >= 0.0) & (array < np.inf)),
        "coefficients must be finite and not negative",
    )
    nothing = ~(array > 0.0).any(axis=1)
    if nothing.any():
        raise ValueError(f"polynomials row {int(nothing.argmax())}: all are 0; one at least is not")
    return array


# What the kernels need ---------------------------------------------------------------------


def _powers(polynomials: Floats) -> Floats:
    """Write P as z^a Σ_i c_i z^i / (1+z)^p with z = e^u = θ/(1−θ), c_0 > 0 and i = 0..d.

    A row is (a, p − a − d, p, d, distance, c_0, c_1, …, slopes), the distance being that of the
    nearest root from the real axis of u, the slopes d/du log Σ c_i z^i at points of the lattice.
    """
    from betafield.posteriors import _density

    p = polynomials.shape[1] - 1
    result = np.zeros((len(polynomials), 5 + p + 1 + _density.KNOWN_SLOPES))
    for k, row in enumerate(polynomials):
        parts = _one_polynomial(tuple(row.tolist()))
        result[k, : len(parts[0])], result[k, -_density.KNOWN_SLOPES :] = parts
    return result


@functools.lru_cache(maxsize=4096)
def _one_polynomial(row: tuple[float, ...]) -> tuple[Floats, Floats]:
    """Return the head of a row of `_powers`, and the slopes."""
    from betafield.posteriors import _density

    p, there = len(row) - 1, np.flatnonzero(row)
    powers = np.arange(there[0], there[-1] + 1)
    logs = np.array(
        [math.lgamma(p + 1) - math.lgamma(i + 1) - math.lgamma(p - i + 1) for i in powers]
    )
    with np.errstate(divide="ignore"):
        logs += np.log(np.array(row)[powers])
    c, degree = np.exp(logs - logs.max()), len(powers) - 1
    # Coefficients that are not negative keep roots out of a sector of angle π/degree.
    distance = math.pi / max(degree, 1)
    if degree <= _MOST_ROOTS:
        distance = float(np.abs(np.angle(np.roots(c[::-1]))).min(initial=math.pi))
    u = np.arange(-_density.CELLS - 1, _density.CELLS + 3) * lattice.STEP
    shares = special.softmax(logs + u[:, None] * np.arange(degree + 1), axis=1)
    head = np.array([there[0], p - there[-1], p, degree, distance, *c])
    return head, np.asarray(shares @ np.arange(degree + 1.0))


@functools.cache
def _table_of_functions() -> Floats:
    """φ and its like on the lattice, and weights: the same for all posteriors."""
    from betafield.posteriors import _density

    edge, span = _density.EDGE, _density.SPAN
    u = np.concatenate(
        [
            np.arange(-(edge << level), (edge << level) + 1) * (lattice.STEP / (1 << level))
            for level in range(_density.LEVELS + 1)
        ]
    )
    series = _series(np.arange(-edge, edge + 1, dtype=np.float64) * lattice.STEP, _density.ORDER)
    points, weights = np.polynomial.legendre.leggauss(_density.GAUSS)
    points = 0.5 * points + 0.5
    powers = np.array([_monomials(span, cell) for cell in range(span - 1)])
    at_gauss = np.array([_at_points(span, cell, points) for cell in range(span - 1)])
    parts = [np.logaddexp(0.0, u), np.exp(u), series[:, 1], series, at_gauss, powers, points]
    return np.concatenate([part.ravel() for part in [*parts, 0.5 * weights]])


def _series(u: Floats, order: int) -> Floats:
    """φ^(d)(u)/d! for d = 0..order, as columns; φ' = p and p' = p (1 − p) give one by one."""
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
    """Coefficients (node, power) of Lagrange's polynomials, in the distance from a cell's middle.

    The nodes are at 0..span−1, and the cell is the one after node `cell`.
    """
    places = np.arange(span) - (cell + 0.5)
    rows = []
    for k in range(span):
        others = np.delete(places, k)
        rows.append(np.polynomial.polynomial.polyfromroots(others) / np.prod(places[k] - others))
    return np.array(rows)


def _at_points(span: int, cell: int, points: Floats) -> Floats:
    """Weights (node, point) of nodes 0..span−1 at shares of a cell."""
    return np.asarray(np.polynomial.polynomial.polyval(points - 0.5, _monomials(span, cell).T))
