"""The interface of all posteriors.

A posterior is a column of independent distributions of success probabilities, one per row. Users
call the public methods, which validate and broadcast here, once. A new kind of posterior implements
only the formulas: `mean`, `var`, `_pdf`, `_cdf`, `_above`, `_ppf`, `_draw`, and how to `_take`
rows.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self, SupportsIndex, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import special

from betafield import checks
from betafield.bernstein import value_at_log_odds

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.intp]
Index: TypeAlias = SupportsIndex | slice | npt.ArrayLike
Generator: TypeAlias = np.random.Generator | np.random.RandomState
RandomState: TypeAlias = int | Generator | None
Size: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...] | None
Moments: TypeAlias = tuple[Floats, Floats]


class Posterior(ABC):
    """Distributions of success probabilities π, one per row.

    Points and probabilities broadcast against `shape` by NumPy's rules: with m rows, a scalar or
    an array (m,) gives (m,), and a column (k, 1) gives (k, m).
    """

    # The range of possible values.
    support: tuple[float, float] = (0.0, 1.0)

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of one answer: (m,), or (m, K) for K classes."""

    @abstractmethod
    def mean(self) -> Floats:
        """E[π]."""

    @abstractmethod
    def var(self) -> Floats:
        """E[(π − E[π])²]."""

    def polynomial_moments(self, coefficients: Floats) -> Moments:
        """Return E[f(π)] and Var[f(π)] of f(π) = Σ_k b_k binom(p, k) π^k (1−π)^(p−k).

        By default, this sums over equally spaced log-odds between extreme quantiles, which is exact
        for smooth densities; most kinds of posteriors have their own formulas.

        Parameters
        ----------
        coefficients : array of shape (m, p + 1)
            b, one polynomial per row.
        """
        return by_summation(self, coefficients)

    def std(self) -> Floats:
        """Square root of the variance."""
        return np.sqrt(self.var())

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Equal-tailed interval: π is below it, and above it, with probability (1 − level)/2.

        Parameters
        ----------
        level : float, default=0.95
            Probability inside, strictly between 0 and 1.

        Returns
        -------
        low, high : arrays of this posterior's shape
        """
        inside = checks.share("level", level, "a probability strictly between 0 and 1 is needed")
        tail = (1.0 - inside) / 2.0
        ends = self.ppf(tail), self.ppf(1.0 - tail)
        # At levels near 0 both limits are the median, and rounding must not swap them.
        return np.minimum(*ends), np.maximum(*ends)

    def pdf(self, p: npt.ArrayLike) -> Floats:
        """Density of π at `p`; 0 outside [0, 1]."""
        points = self._checked_points(p)
        low, high = self.support
        inside = (points >= low) & (points <= high)
        return np.where(inside, self._each(self._pdf, points.clip(low, high)), 0.0)

    def cdf(self, p: npt.ArrayLike) -> Floats:
        """P(π ≤ p), for any real `p`."""
        points, (low, high) = self._checked_points(p), self.support
        # A distribution may have all its mass at 0, and then a step there.
        return np.where(points < low, 0.0, self._each(self._cdf, points.clip(low, high)))

    def prob_above(self, p: npt.ArrayLike) -> Floats:
        """P(π > p), for any real `p`; precise even if 1 − cdf(p) is not."""
        points, (low, high) = self._checked_points(p), self.support
        return np.where(points < low, 1.0, self._each(self._above, points.clip(low, high)))

    def ppf(self, q: npt.ArrayLike) -> Floats:
        """Quantile: the point p with P(π ≤ p) = q, for `q` within [0, 1]."""
        return self._each(self._ppf, self._checked_probabilities(q))

    def sample(self, size: Size = None, random_state: RandomState = None) -> Floats:
        """Draw from every row.

        Parameters
        ----------
        size : int or tuple of int, optional
            Draws per row: None gives an array of `shape`, k gives (k, *shape).
        random_state : int, numpy Generator or RandomState, optional
            None draws fresh entropy.
        """
        return self._draw(_dimensions(size, self.shape), _generator(random_state))

    def under(self, context: Any) -> "Posterior":
        """Return the distribution of the success probability under a context.

        It is that of q = Σ_k b_k binom(p, k) π^k (1−π)^(p−k); for p = 1, q = lo + (hi − lo) π.

        Parameters
        ----------
        context : array-like of shape (p + 1,) or (m, p + 1)
            Bernstein coefficients b within [0, 1], for p = 1 (lo, hi), as made by
            `betafield.contexts`: one context for all rows, or one per row.

        Returns
        -------
        Posterior of the same shape
            This one itself if the context is (0, 1), which changes nothing.

        Examples
        --------
        Success when rested, when tired, and the chance that at least one of three tries succeeds:

        >>> from betafield import contexts
        >>> from betafield.posteriors import Beta
        >>> rested = Beta(alpha=[4.0], beta=[2.0])
        >>> rested.under(contexts.attenuated(0.6)).mean()
        array([0.4])
        >>> rested.under(contexts.pooled(3)).mean().round(6)
        array([0.928571])
        """
        (put_under,) = _put_under
        return put_under(self, context)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Index) -> Self:
        """Posterior of the chosen rows, by int, slice, mask or ints; an int gives one row."""
        return self._take(_chosen_rows(index, len(self)))

    def __repr__(self) -> str:
        name, shape = type(self).__name__, " x ".join(map(str, self.shape))
        if not len(self):
            return f"<{name}, shape {shape}>"
        mean = self.mean()
        return f"<{name}, shape {shape}, means from {mean.min():.3g} to {mean.max():.3g}>"

    @abstractmethod
    def _pdf(self, p: Floats) -> Floats:
        """`pdf` for points within [0, 1] that broadcast against `shape`."""

    @abstractmethod
    def _cdf(self, p: Floats) -> Floats:
        """`cdf` for points within [0, 1] that broadcast against `shape`."""

    @abstractmethod
    def _above(self, p: Floats) -> Floats:
        """`prob_above` for points within [0, 1] that broadcast against `shape`."""

    @abstractmethod
    def _ppf(self, q: Floats) -> Floats:
        """`ppf` for probabilities within [0, 1] that broadcast against `shape`."""

    @abstractmethod
    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        """Array of shape `size`, whose last axes are those of `shape`."""

    @abstractmethod
    def _take(self, rows: Rows) -> Self:
        """Posterior of the rows at these positions."""

    def _each(self, formula: Callable[[Floats], Floats], values: Floats) -> Floats:
        """Apply a formula to values (..., m); with one row, many values are passed as a column."""
        if self.shape == (1,) and values.ndim and values.shape[-1] != 1:
            return formula(values[..., None])[..., 0]
        return formula(values)

    def _checked_points(self, p: npt.ArrayLike) -> Floats:
        rule = "points must be real numbers"
        points = self._fitting("p", checks.array("p", p, rule))
        checks.require_all(~np.isnan(points), "p", points, rule)
        return points

    def _checked_probabilities(self, q: npt.ArrayLike) -> Floats:
        rule = "probabilities must be within [0, 1]"
        levels = self._fitting("q", checks.array("q", q, rule))
        checks.require_all((levels >= 0.0) & (levels <= 1.0), "q", levels, rule)
        return levels

    def _fitting(self, name: str, array: Floats) -> Floats:
        try:
            np.broadcast_shapes(array.shape, self.shape)
        except ValueError:
            raise ValueError(
                f"{name}: found shape {array.shape}; it must broadcast against the posterior's "
                f"shape {self.shape}"
            ) from None
        return array


AnyPosterior = TypeVar("AnyPosterior", bound=Posterior)
PutUnder: TypeAlias = Callable[[Posterior, Any], Posterior]

_put_under: list[PutUnder] = []


def makes_under(function: PutUnder) -> PutUnder:
    """Register the function that `Posterior.under` calls, because its module imports this one."""
    _put_under[:] = [function]
    return function


def by_summation(post: Posterior, coefficients: Floats) -> Moments:
    """Return E[f(π)] and Var[f(π)]; nodes are doubled until half of them give the same result."""
    # Quantiles that round to 0 or 1 are replaced by the nearest floats inside.
    ends = post.ppf(np.array([[1e-17], [1.0 - 2.0**-53]])).clip(5e-324, 1.0 - 2.0**-53)
    low, high = special.logit(ends)
    # Subtract the value of f at the nearer end, so that a spread far below the rounding of f is
    # kept.
    offset = np.where(low + high > 0.0, coefficients[:, -1], coefficients[:, 0])
    coefficients = coefficients - offset[:, None]
    for doubling in range(5, 14):
        u = low + (high - low) * np.linspace(0.0, 1.0, (1 << doubling) + 1)[:, None]
        p = special.expit(u)
        weights, f = post.pdf(p) * p * (1.0 - p), value_at_log_odds(coefficients, u)
        (mean, var), (half, _) = _weighed(weights, f), _weighed(weights[::2], f[::2])
        if np.all(np.abs(mean - half) <= 1e-11 * np.sqrt(var) + 1e-300):
            break
    return offset + mean, var


def _weighed(weights: Floats, f: Floats) -> Moments:
    shares = weights / weights.sum(axis=0)
    mean = (shares * f).sum(axis=0)
    return mean, (shares * (f - mean) ** 2).sum(axis=0)


def by_pair(
    post: AnyPosterior,
    formula: Callable[[AnyPosterior, Floats], Floats],
    values: Floats,
    most: int,
) -> Floats:
    """Apply a formula of n rows and n values to all pairs of value and row, `most` at a time."""
    shape = np.broadcast_shapes(values.shape, post.shape)
    flat = np.broadcast_to(values, shape).ravel()
    rows = np.broadcast_to(np.arange(len(post)), shape).ravel()
    result = np.empty(flat.size)
    for block in blocks(flat.size, most):
        result[block] = formula(post._take(rows[block]), flat[block])
    return result.reshape(shape)


def blocks(total: int, most: int) -> list[slice]:
    """Split `total` items into blocks of `most`, or of one if that is less."""
    step = max(1, most)
    return [slice(start, start + step) for start in range(0, total, step)]


def checked_shapes(name: str, values: npt.ArrayLike, ndim: int | None = None) -> Floats:
    """Return a read-only copy of an array of shape parameters, all positive and finite."""
    rule = "shapes must be positive and finite"
    array = checks.array(name, values, rule).copy()
    if ndim is not None:
        checks.shaped(name, array, (None,) * ndim, f"{ndim} dimensions are needed")
    checks.require_all((array > 0.0) & (array < np.inf), name, array, rule)
    array.flags.writeable = False
    return array


def require_one_length(**columns: Floats) -> None:
    """Raise unless these columns have the same number of rows."""
    (first, a), (second, b) = columns.items()
    if len(a) != len(b):
        raise ValueError(f"{second}: found {len(b)} rows; {first} has {len(a)}, one each is needed")


def _chosen_rows(index: Index, m: int) -> Rows:
    # An empty list must not become an array of floats.
    found: Any = np.empty(0, dtype=np.intp) if isinstance(index, list) and not index else index
    if isinstance(found, list | np.ma.MaskedArray):
        found = checks.cells("index", found)
    try:
        rows = np.atleast_1d(np.arange(m)[found])
    except (IndexError, TypeError, ValueError) as error:
        raise IndexError(f"index: found {checks.spelled(index)}; {error}") from None
    if rows.ndim > 1:
        raise IndexError(f"index: found rows of shape {rows.shape}; choose rows in one dimension")
    return rows


# Largest number of draws per call; more do not fit into memory.
_MOST_DRAWS = 1 << 40


def _dimensions(size: Size, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of draws: `size` per row."""
    sizes = () if size is None else size if isinstance(size, tuple) else (size,)
    rule = "whole numbers from 0 on, or None, are needed"
    result = (*(checks.whole("size", n, low=0, rule=rule) for n in sizes), *shape)
    at_most = f"at most {_MOST_DRAWS} draws in all are possible"
    checks.require(math.prod(result) <= _MOST_DRAWS, "size", size, at_most)
    return result


def _generator(random_state: RandomState) -> Generator:
    if isinstance(random_state, np.random.RandomState):
        return random_state  # so that its draws match those of the same seed elsewhere
    return checks.generator("random_state", random_state)
