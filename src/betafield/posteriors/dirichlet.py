"""Dirichlet posteriors for several classes; the marginal of each class is a Beta."""

from collections.abc import Callable
from typing import Self

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield.posteriors.base import Floats, Generator, Posterior, Rows, checked_shapes
from betafield.posteriors.beta import Beta

# Least total weight of all classes, in trials, if the variances are too large for any.
LEAST = 1e-3


class Dirichlet(Posterior):
    """Dirichlet distributions over K classes, one per row.

    Row i has density Γ(α₀) ∏ p_k^(α_k − 1) / Γ(α_k) over the points with Σ p_k = 1, where
    α₀ = Σ α_k. After counts n_k a prior with α becomes one with α + n.

    `mean`, `var`, `std`, `interval`, `pdf`, `cdf`, `ppf` and `prob_above` refer to the probability
    of each class, whose marginal is Beta(α_k, α₀ − α_k); their last two axes are rows and classes.
    Only `sample` draws the classes jointly. `under` raises an error, because contexts need two
    classes.

    Parameters
    ----------
    alpha : array-like of shape (m, K)
        The shapes α_k of K ≥ 2 classes: positive, finite. Kept as a read-only float64 array.

    Examples
    --------
    >>> from betafield.posteriors import Dirichlet
    >>> post = Dirichlet(alpha=[[1.0, 2.0, 5.0]])
    >>> post.mean()
    array([[0.125, 0.25 , 0.625]])
    >>> post.prob_above(0.5).round(4)
    array([[0.0078, 0.0625, 0.7734]])
    >>> post.marginal(2).prob_above(0.5).round(4)
    array([0.7734])
    >>> post.sample(random_state=0).sum(axis=-1)
    array([1.])
    """

    def __init__(self, alpha: npt.ArrayLike) -> None:
        self.alpha = checked_shapes("alpha", alpha, ndim=2)
        checks.shaped("alpha", self.alpha[:, :2], (None, 2), "at least 2 classes are needed")
        with np.errstate(over="ignore"):
            others = _sum_of_others(self.alpha)
        finite = (others < np.inf).all(axis=1)
        checks.require_all(finite, "alpha", self.alpha, "shapes with a finite sum are needed")
        self._marginals = Beta(self.alpha.ravel(), others.ravel())

    @property
    def shape(self) -> tuple[int, ...]:
        """(m, K): rows and classes."""
        return self.alpha.shape

    def marginal(self, k: int) -> Beta:
        """Return the distribution of class k's probability, Beta(α_k, α₀ − α_k)."""
        last = self.shape[1] - 1
        k = checks.whole("k", k, low=-last - 1, high=last)
        classes = np.arange(self.alpha.size).reshape(self.shape)
        return self._marginals[classes[:, k]]

    def mean(self) -> Floats:
        """α_k / α₀."""
        return self._marginals.mean().reshape(self.shape)

    def var(self) -> Floats:
        """α_k (α₀ − α_k) / (α₀² (α₀ + 1))."""
        return self._marginals.var().reshape(self.shape)

    def _pdf(self, p: Floats) -> Floats:
        return self._each_class(self._marginals._pdf, p)

    def _cdf(self, p: Floats) -> Floats:
        return self._each_class(self._marginals._cdf, p)

    def _above(self, p: Floats) -> Floats:
        return self._each_class(self._marginals._above, p)

    def _ppf(self, q: Floats) -> Floats:
        return self._each_class(self._marginals._ppf, q)

    def _each_class(self, formula: Callable[[Floats], Floats], p: Floats) -> Floats:
        """Apply a formula of the marginals, which are the m·K rows of one Beta."""
        shape = np.broadcast_shapes(p.shape, self.shape)
        flat = np.broadcast_to(p, shape).reshape(*shape[:-2], -1)
        return formula(flat).reshape(shape)

    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        """Return gamma draws per class over their sum, in logs: small shapes underflow to 0/0."""
        # Gamma(α) is Gamma(α + 1) times a uniform to the power 1/α, which is exp(−exponential/α).
        logs = np.log(rng.standard_gamma(self.alpha + 1.0, size))
        logs -= rng.standard_exponential(size) / self.alpha
        draws = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return np.asarray(draws / draws.sum(axis=-1, keepdims=True))

    def _take(self, rows: Rows) -> Self:
        return type(self)(self.alpha[rows])


def _sum_of_others(alpha: Floats) -> Floats:
    """α₀ − α_k as a sum of the others: subtraction would lose small ones next to a large one."""
    before, after = np.zeros_like(alpha), np.zeros_like(alpha)
    before[:, 1:] = alpha[:, :-1].cumsum(axis=1)
    after[:, :-1] = alpha[:, :0:-1].cumsum(axis=1)[:, ::-1]
    return before + after


def matching(mean: Floats, var: Floats) -> Dirichlet:
    """Return the distributions with these means and, in total, these variances (m, K).

        α_k = ν m_k,   ν + 1 = Σ m_k (1 − m_k) / Σ v_k,

    where means are divided by their sum. The total weight is at least a thousandth of a trial.

    Examples
    --------
    >>> matching(np.array([[0.25, 0.75]]), np.full((1, 2), 0.0375)).alpha
    array([[1., 3.]])
    """
    mean = np.maximum(mean / mean.sum(axis=1, keepdims=True), 1e-12)
    amount = (mean * (1.0 - mean)).sum(axis=1) / np.maximum(var.sum(axis=1), 1e-300) - 1.0
    return Dirichlet(mean * np.maximum(amount, LEAST)[:, None])
