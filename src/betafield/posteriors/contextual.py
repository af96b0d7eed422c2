"""Posteriors after distorted trials, given by their log-density in log-odds.

With u = log(θ/(1−θ)) and φ(u) = log(1 + e^u), a distorted trial adds φ(u + s) − φ(u) to the
log-density, and a polynomial context adds log P(θ); see `betafield.lattice`. All answers are
one-dimensional integrals of a smooth function: a few dozen nodes around the mode are enough,
however many trials there were. See `quadrature` for the method.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
import numpy.typing as npt

from betafield import checks, lattice
from betafield._threads import run
from betafield.posteriors.base import (
    Floats,
    Generator,
    Moments,
    Posterior,
    Rows,
    checked_shapes,
    require_one_length,
)
from betafield.posteriors.quadrature import layout, tables

# Larger shifts have the same effect as this one, because all nodes lie within ±64.
_FAR = 150.0
_JOBS = "a whole number of threads, -1 for all cores, or None is needed"


class Contextual(Posterior):
    """Posteriors of a success probability from distorted trials, one per row.

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
        Trials as counted on the lattice of `betafield.lattice`.
    first : int, default=0
        The lattice point of the first column.
    shifts, trials : array-like of shape (m, k), optional
        Log-likelihood ratios per row, and the number of trials that have them.
    polynomials : array-like of shape (K, p + 1), optional
        Bernstein coefficients of the probabilities of outcomes: non-negative, not all 0.
    repeats : array-like of shape (m, K), optional
        Number of outcomes of each polynomial per row.
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
        require_one_length(alpha=self.alpha, beta=self.beta)
        m = len(self.alpha)
        self.amounts = _table("amounts", amounts, m)
        self.first = _checked_first(first, self.amounts.shape[1])
        self.shifts, self.trials = _table("shifts", shifts, m), _table("trials", trials, m)
        self.polynomials = _checked_polynomials(polynomials)
        self.repeats = _table("repeats", repeats, m)
        self.n_jobs = None if n_jobs is None else checks.whole("n_jobs", n_jobs, -4096, rule=_JOBS)
        _check_columns("shifts", self.shifts.shape[1], "trials", self.trials.shape[1])
        _check_columns("polynomials", len(self.polynomials), "repeats", self.repeats.shape[1])

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,): one distribution per row."""
        return self.alpha.shape

    def mean(self) -> Floats:
        """E[π], a sum over nodes."""
        return np.asarray(self._mean_and_variance()[0])

    def var(self) -> Floats:
        """E[(π − E[π])²], a sum of non-negative terms."""
        return np.asarray(self._mean_and_variance()[1])

    def moments(self, p: int) -> Floats:
        """Return (m, p + 1): E[binom(p, k) π^k (1−π)^(p−k)] for k = 0..p.

        Examples
        --------
        With no trials and a uniform prior, all are 1/(p + 1):

        >>> Contextual([1.0], [1.0]).moments(3).round(10)
        array([[0.25, 0.25, 0.25, 0.25]])
        """
        p = checks.whole("p", p, low=0, high=1000)
        binomials = np.array([[math.comb(p, k)] for k in range(p + 1)], dtype=np.float64)
        return self._answers(layout.BERNSTEIN, binomials, p + 1).T.copy()

    def polynomial_moments(self, coefficients: Floats) -> Moments:
        """E[f(π)] and E[(f(π) − E[f(π)])²], sums over nodes."""
        # Subtract the value of f at the nearer end, so that a spread far below its rounding is
        # kept.
        offset = np.where(self.mean() > 0.5, coefficients[:, -1], coefficients[:, 0])
        p = coefficients.shape[1] - 1
        binomials = np.array([math.comb(p, k) for k in range(p + 1)], dtype=np.float64)
        values = ((coefficients - offset[:, None]) * binomials).T
        mean, var = self._answers(layout.POLYNOMIAL, values, 2)
        return offset + mean, np.asarray(var)

    def _mean_and_variance(self) -> Floats:
        return self._answers(layout.MOMENTS, np.zeros((2, 1)), 2)

    def _pdf(self, p: Floats) -> Floats:
        return self._pointwise(layout.PDF, p)

    def _cdf(self, p: Floats) -> Floats:
        return self._pointwise(layout.BELOW, p)

    def _above(self, p: Floats) -> Floats:
        return self._pointwise(layout.ABOVE, p)

    def _ppf(self, q: Floats) -> Floats:
        return self._pointwise(layout.PPF, q)

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
        """Compute the answer for every value and row."""
        shape = np.broadcast_shapes(values.shape, self.shape)
        table = np.broadcast_to(values, shape).reshape(math.prod(shape[:-1]), len(self))
        return self._answers(what, np.ascontiguousarray(table), len(table)).reshape(shape)

    def _answers(self, what: int, values: Floats, count: int) -> Floats:
        """Return (count, m), from the kernels."""
        # Imported here, because it needs numba.
        from betafield.posteriors.quadrature import answers

        out = np.empty((count, len(self)))
        values = values if values.shape[1:] == self.shape else np.broadcast_to(values, out.shape)
        polynomials, table = tables.powers(self.polynomials), tables.functions()
        moments = what in (layout.MOMENTS, layout.BERNSTEIN, layout.POLYNOMIAL)
        answer = answers.answer_moments if moments else answers.answer_points

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


# Arguments ---------------------------------------------------------------------------------


def _table(name: str, values: npt.ArrayLike | None, m: int) -> Floats:
    if values is None:
        return _frozen(np.zeros((m, 0)))
    found = checks.finite(name, values, shape=(m, None), needed=f"({m}, columns) is needed")
    return _frozen(np.ascontiguousarray(found))


def _frozen(array: Floats) -> Floats:
    """Return a read-only view, the only kind of array that kernels are compiled for."""
    view = array.view()
    view.flags.writeable = False
    return view


def _checked_first(first: int, columns: int) -> int:
    most = int(64.0 / lattice.STEP)
    rule = f"with {columns} columns a whole number from {-most} to {most + 1 - columns} is needed"
    last = most + 1 - columns if columns else None
    return checks.whole("first", first, low=-most, high=last, rule=rule)


def _check_columns(first: str, columns: int, second: str, others: int) -> None:
    if columns != others:
        raise ValueError(f"{second}: found {others} columns; {first} count {columns}, one each")


def _checked_polynomials(values: npt.ArrayLike | None) -> Floats:
    if values is None:
        return np.zeros((0, 1))
    shape, needed = (None, None), "(polynomials, degree + 1) is needed"
    array = np.ascontiguousarray(checks.finite("polynomials", values, shape=shape, needed=needed))
    checks.require(array.shape[1], "polynomials", array, needed)
    rule = "coefficients that are finite and not negative are needed"
    checks.require_all(array >= 0.0, "polynomials", array, rule)
    positive = (array > 0.0).any(axis=1)
    checks.require_all(positive, "polynomials", array, "one coefficient at least must not be 0")
    return array
