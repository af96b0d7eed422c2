"""The one protocol that every posterior keeps.

A posterior is a column of independent beliefs about success probabilities, one a row. Users call
the public methods; they validate and broadcast once, here. A new kind of posterior writes only
the formulas: `mean`, `var`, `_pdf`, `_cdf`, `_above`, `_ppf`, `_draw`, and how to `_take` rows.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self, SupportsIndex, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Rows: TypeAlias = npt.NDArray[np.intp]
Index: TypeAlias = SupportsIndex | slice | npt.ArrayLike
Generator: TypeAlias = np.random.Generator | np.random.RandomState
RandomState: TypeAlias = int | Generator | None
Size: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...] | None


class Posterior(ABC):
    """Distributions of success probabilities π, one a row.

    Points and probabilities broadcast against `shape` by NumPy's rules: with m rows, a scalar or
    an array (m,) gives (m,), and a column (k, 1) gives (k, m).
    """

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Shape of one answer: (m,), or (m, K) with K classes."""

    @abstractmethod
    def mean(self) -> Floats:
        """E[π]."""

    @abstractmethod
    def var(self) -> Floats:
        """E[(π − E[π])²]."""

    def std(self) -> Floats:
        """Root of the variance."""
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
        tail = (1.0 - _checked_level(level)) / 2.0
        ends = self.ppf(tail), self.ppf(1.0 - tail)
        # At levels near 0 both ends are the median, and rounding must not swap them.
        return np.minimum(*ends), np.maximum(*ends)

    def pdf(self, p: npt.ArrayLike) -> Floats:
        """Density of π at `p`; 0 outside [0, 1]."""
        points = self._checked_points(p)
        inside = (points >= 0.0) & (points <= 1.0)
        return np.where(inside, self._each(self._pdf, points.clip(0.0, 1.0)), 0.0)

    def cdf(self, p: npt.ArrayLike) -> Floats:
        """P(π ≤ p), for any real `p`."""
        points = self._checked_points(p)
        # A belief may be certain of 0, and then has a step there.
        return np.where(points < 0.0, 0.0, self._each(self._cdf, points.clip(0.0, 1.0)))

    def prob_above(self, p: npt.ArrayLike) -> Floats:
        """P(π > p), for any real `p`; keeps its relative precision where 1 − cdf(p) loses it."""
        points = self._checked_points(p)
        return np.where(points < 0.0, 1.0, self._each(self._above, points.clip(0.0, 1.0)))

    def ppf(self, q: npt.ArrayLike) -> Floats:
        """Quantile: the point p with P(π ≤ p) = q, for `q` within [0, 1]."""
        return self._each(self._ppf, self._checked_probabilities(q))

    def sample(self, size: Size = None, random_state: RandomState = None) -> Floats:
        """Draw from every row.

        Parameters
        ----------
        size : int or tuple of int, optional
            Draws of each row: None gives an array of `shape`, k gives (k, *shape).
        random_state : int, numpy Generator or RandomState, optional
            None draws fresh entropy.
        """
        return self._draw((*_dimensions(size), *self.shape), _generator(random_state))

    def under(self, context: Any) -> "Posterior":
        """Distribution of the success probability under other circumstances.

        That of q = Σ_k b_k binom(p, k) π^k (1−π)^(p−k), for p = 1 of q = lo + (hi − lo) π. Its
        moments, tails, quantiles and draws are those of q.

        Parameters
        ----------
        context : array-like of shape (p + 1,) or (m, p + 1)
            Bernstein coefficients b within [0, 1], for p = 1 (lo, hi), as made by
            `betafield.contexts`: one context for all rows, or one a row.

        Returns
        -------
        Posterior of the same shape
            This one itself if the context is (0, 1), which changes nothing.

        Examples
        --------
        Success when rested, when tired, and the chance that one of three tries succeeds:

        >>> from betafield import contexts
        >>> from betafield.posteriors import Beta
        >>> rested = Beta(alpha=[4.0], beta=[2.0])
        >>> rested.under(contexts.attenuated(0.6)).mean()
        array([0.4])
        >>> rested.under(contexts.pooled(3)).mean().round(6)
        array([0.928571])
        """
        # That module builds on this one.
        from betafield.posteriors.transformed import transformed

        return transformed(self, context)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Index) -> Self:
        """Posterior of the chosen rows, by int, slice, mask or array of ints; an int gives one."""
        rows = np.atleast_1d(np.arange(len(self))[_row_index(index)])
        if rows.ndim > 1:
            raise IndexError(
                f"index gives rows of shape {rows.shape}; choose rows in one dimension"
            )
        return self._take(rows)

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
        """Apply a formula to values (..., m); many values of one row go in a column to it."""
        if self.shape == (1,) and values.ndim and values.shape[-1] != 1:
            return formula(values[..., None])[..., 0]
        return formula(values)

    def _checked_points(self, p: npt.ArrayLike) -> Floats:
        points = self._checked_shape("p", p)
        refuse("p", points, np.isnan(points), "points must be real numbers")
        return points

    def _checked_probabilities(self, q: npt.ArrayLike) -> Floats:
        levels = self._checked_shape("q", q)
        refuse(
            "q", levels, ~((levels >= 0.0) & (levels <= 1.0)), "probabilities must be within [0, 1]"
        )
        return levels

    def _checked_shape(self, name: str, values: npt.ArrayLike) -> Floats:
        array = floats(name, values)
        try:
            np.broadcast_shapes(array.shape, self.shape)
        except ValueError:
            raise ValueError(
                f"{name} has shape {array.shape}, which does not broadcast against "
                f"the posterior's shape {self.shape}"
            ) from None
        return array


AnyPosterior = TypeVar("AnyPosterior", bound=Posterior)


def by_pair(
    post: AnyPosterior,
    formula: Callable[[AnyPosterior, Floats], Floats],
    values: Floats,
    most: int,
) -> Floats:
    """Apply a formula of n rows and n values to all pairs of a value and its row, `most` a time."""
    shape = np.broadcast_shapes(values.shape, post.shape)
    flat = np.broadcast_to(values, shape).ravel()
    rows = np.broadcast_to(np.arange(len(post)), shape).ravel()
    result = np.empty(flat.size)
    for block in blocks(flat.size, most):
        result[block] = formula(post._take(rows[block]), flat[block])
    return result.reshape(shape)


def blocks(total: int, most: int) -> list[slice]:
    """Cut `total` things into blocks of `most`, or of one if that is less."""
    step = max(1, most)
    return [slice(start, start + step) for start in range(0, total, step)]


def refuse(name: str, values: Floats, wrong: npt.NDArray[np.bool_], rule: str) -> None:
    """Raise a ValueError about the first of `values` where `wrong`, if there is one."""
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        where = f"{name}[{', '.join(map(str, at))}]" if at else name
        raise ValueError(f"{where} is {values[at]}; {rule}")


def checked_shapes(name: str, values: npt.ArrayLike, ndim: int) -> Floats:
    """Return a read-only copy of an array of shape parameters, all positive and finite."""
    array = floats(name, values).copy()
    if array.ndim != ndim:
        raise ValueError(f"{name} has shape {array.shape}; it must be {ndim}-dimensional")
    refuse(name, array, ~((array > 0.0) & (array < np.inf)), "shapes must be positive and finite")
    array.flags.writeable = False
    return array


def floats(name: str, values: npt.ArrayLike) -> Floats:
    """Return an array of float64, or say which argument has none."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must be numbers: {error}") from None


def _checked_level(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level is {level}; it must be strictly between 0 and 1")
    return float(level)


def _row_index(index: Index) -> Any:
    """Make lists arrays; an empty one must not become an array of floats."""
    if isinstance(index, list):
        return np.asarray(index, dtype=None if index else np.intp)
    return index


def _dimensions(size: Size) -> tuple[int, ...]:
    if size is None:
        return ()
    return tuple(operator.index(n) for n in (size if isinstance(size, tuple) else (size,)))


def _generator(random_state: RandomState) -> Generator:
    if isinstance(random_state, np.random.Generator | np.random.RandomState):
        return random_state
    return np.random.default_rng(random_state)
