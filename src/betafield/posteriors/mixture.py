"""Mixtures of posteriors, for several competing explanations of the trials.

Sums over components have non-negative terms, so nothing cancels. A quantile lies between the
smallest and largest quantile of its components, and is found by root finding.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Self

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield.posteriors.base import (
    Floats,
    Generator,
    Moments,
    Posterior,
    Rows,
    blocks,
    checked_shapes,
)
from betafield.posteriors.beta import Beta
from betafield.posteriors.quantiles import solved_quantiles

# Components with less than this fraction of the required tail cannot move a quantile.
_NEGLIGIBLE = 1e-20

# Maps components and the rows they belong to into an array whose last axis is that of components.
Formula = Callable[[Posterior, Rows], Floats]


class Mixture(Posterior):
    """Mixtures of posteriors of any kind, one per row.

    With P_k, m_k and v_k the distribution, mean and variance of component k in a row, the
    distribution is Σ w_k P_k, the mean m = Σ w_k m_k and the variance Σ w_k (v_k + (m_k − m)²).

    Parameters
    ----------
    log_weights : array-like that broadcasts to (m, k)
        Logarithms of the weights w_k, up to a constant per row; −inf for an absent component: (k,)
        for all rows, or (m, k). Stored normalised: Σ_k w_k = 1.
    components : sequence of k posteriors of shape (m,)
        The P_k, at least one.

    Attributes
    ----------
    batch_size : int
        Number of components evaluated at once, for any number of rows and points.

    Examples
    --------
    A success that may have been a guess, when it is unknown whether there were two alternatives (an
    even chance) or four:

    >>> import numpy as np
    >>> from betafield.posteriors import Contextual, Mixture
    >>> guess = [Contextual([1.0], [1.0], shifts=[[s]], trials=[[1.0]]) for s in np.log([2.0, 4.0])]
    >>> post = Mixture(np.log([0.5, 0.5]), guess)
    >>> post
    <Mixture, shape 1, means from 0.578 to 0.578>
    >>> post.prob_above(0.5).round(6)
    array([0.616667])
    >>> low, high = post.interval(0.9)
    >>> print(low.round(4), high.round(4))
    [0.0871] [0.9655]
    """

    batch_size = 1 << 18

    # Batch j has widths[j] components per row, one row after the other.
    _batches: tuple[Posterior, ...]
    _widths: tuple[int, ...]

    def __init__(self, log_weights: npt.ArrayLike, components: Sequence[Posterior]) -> None:
        self._batches = _checked_components(components)
        self._widths = (1,) * len(self._batches)
        shape = len(self._batches[0]), len(self._batches)
        self.log_weights = _normalised(_broadcast(_checked_log_weights(log_weights), shape))

    @classmethod
    def of_betas(
        cls, log_weights: npt.ArrayLike, alpha: npt.ArrayLike, beta: npt.ArrayLike
    ) -> Self:
        """Return mixtures of Beta distributions, from arrays that broadcast to (m, k).

        Examples
        --------
        A uniform prior after one success that had an even chance of being a guess:

        >>> import numpy as np
        >>> from betafield.posteriors import Mixture
        >>> post = Mixture.of_betas(np.log([[0.5, 1.0]]), alpha=[1.0, 2.0], beta=[2.0, 1.0])
        >>> post.prob_above(0.5).round(6)
        array([0.583333])
        """
        arrays = (
            _checked_log_weights(log_weights),
            *map(checked_shapes, ("alpha", "beta"), (alpha, beta)),
        )
        weights, alpha, beta = _broadcast_together(*arrays)
        mixture = cls.__new__(cls)
        mixture.log_weights, mixture._widths = _normalised(weights), weights.shape[1:]
        mixture._batches = (Beta(alpha.ravel(), beta.ravel()),)
        return mixture

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,): one distribution per row."""
        return self.log_weights.shape[:1]

    @property
    def components(self) -> tuple[Posterior, ...]:
        """The k posteriors of shape (m,)."""
        return tuple(
            batch if width == 1 else batch[k::width]
            for batch, width in zip(self._batches, self._widths, strict=True)
            for k in range(width)
        )

    @property
    def alpha(self) -> Floats:
        """α of the components (m, k), if they are Betas."""
        return self._of_betas("alpha")

    @property
    def beta(self) -> Floats:
        """β of the components (m, k), if they are Betas."""
        return self._of_betas("beta")

    def _of_betas(self, name: str) -> Floats:
        if not all(isinstance(batch, Beta) for batch in self._batches):
            raise AttributeError(f"{name}: the components are not Beta distributions")
        return np.stack([getattr(part, name) for part in self.components], axis=1)

    def mean(self) -> Floats:
        """Σ w_k m_k."""
        return self._sum(self._asked(lambda components, _: components.mean()))

    def var(self) -> Floats:
        """Σ w_k (v_k + (m_k − m)²), a sum of non-negative terms."""
        means = self._asked(lambda components, _: components.mean())
        return self._joined(means, self._asked(lambda components, _: components.var()))[1]

    def polynomial_moments(self, coefficients: Floats) -> Moments:
        """Return the moments of the components, combined as in `mean` and `var`."""
        means, variances = self._asked(
            lambda components, rows: np.stack(components.polynomial_moments(coefficients[rows])),
            (2,),
        )
        return self._joined(means, variances)

    def _joined(self, means: Floats, variances: Floats) -> Moments:
        mean = self._sum(means)
        return mean, self._sum(variances + (means - mean[:, None]) ** 2)

    def _pdf(self, p: Floats) -> Floats:
        return self._sum_at(lambda components, x: components._pdf(x), p)

    def _cdf(self, p: Floats) -> Floats:
        return self._sum_at(lambda components, x: components._cdf(x), p).clip(max=1.0)

    def _above(self, p: Floats) -> Floats:
        return self._sum_at(lambda components, x: components._above(x), p).clip(max=1.0)

    def _ppf(self, q: Floats) -> Floats:
        return self._in_blocks(lambda part, levels: part._quantiles(levels), q)

    def _quantiles(self, levels: Floats) -> Floats:
        """Quantiles at levels (l, m), between those of the components that matter."""
        each = self._asked(
            lambda components, rows: components._ppf(levels[:, rows]), levels.shape[:1]
        )
        tail = np.minimum(levels, 1.0 - levels)[..., None]
        counts = np.exp(self.log_weights) > _NEGLIGIBLE * tail
        low = np.where(counts, each, np.inf).min(axis=-1, initial=np.inf)
        high = np.where(counts, each, -np.inf).max(axis=-1, initial=-np.inf)
        return solved_quantiles(self, levels, low, high)

    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        result = np.empty((math.prod(size[:-1]), len(self)))
        chosen = self._in_blocks(
            lambda part, uniform: _component_at(np.exp(part.log_weights), uniform),
            np.asarray(rng.uniform(size=result.shape)),
        )
        start = 0
        for batch, width in zip(self._batches, self._widths, strict=True):
            line, row = np.nonzero((chosen >= start) & (chosen < start + width))
            places = row * width + chosen[line, row].astype(np.intp) - start
            draw = _drawn_each if width > 1 else _drawn_in_turn
            if places.size:
                result[line, row] = draw(batch, places, rng)
            start += width
        return result.reshape(size)

    def _take(self, rows: Rows) -> Self:
        other = copy(self)  # normalising the weights again would change bits
        other.log_weights = self.log_weights[rows]
        other._batches = tuple(
            batch[(rows[:, None] * width + np.arange(width)).ravel()]
            for batch, width in zip(self._batches, self._widths, strict=True)
        )
        return other

    def _present(self) -> Iterator[tuple[slice, Rows, Posterior]]:
        """Columns of each batch, and its components with weight; others are not evaluated."""
        start = 0
        for batch, width in zip(self._batches, self._widths, strict=True):
            columns = slice(start, start + width)
            places = np.flatnonzero(np.exp(self.log_weights[:, columns]))
            if places.size:
                yield columns, places, batch if places.size == len(batch) else batch[places]
            start += width

    def _asked(self, formula: Formula, lines: tuple[int, ...] = ()) -> Floats:
        """Return the value of a formula for each component, (..., m, k); 0 for absent ones."""
        table = np.zeros((*lines, *self.log_weights.shape))
        for columns, places, components in self._present():
            row, column = np.divmod(places, columns.stop - columns.start)
            table[..., row, columns.start + column] = formula(components, row)
        return table

    def _sum(self, table: Floats) -> Floats:
        return np.asarray((np.exp(self.log_weights) * table).sum(axis=-1))

    def _sum_at(self, formula: Callable[[Posterior, Floats], Floats], p: Floats) -> Floats:
        def ask(part: Mixture, points: Floats) -> Floats:
            return part._sum(
                part._asked(
                    lambda components, rows: formula(components, points[:, rows]), points.shape[:1]
                )
            )

        return self._in_blocks(ask, p)

    def _in_blocks(self, ask: Callable[[Self, Floats], Floats], values: Floats) -> Floats:
        """Evaluate values that broadcast against `shape` as tables (l, some rows)."""
        shape = np.broadcast_shapes(values.shape, self.shape)
        table = np.broadcast_to(values, shape).reshape(math.prod(shape[:-1]), len(self))
        result, most = np.empty(table.shape), self.batch_size // self.log_weights.shape[1]
        for lines in blocks(len(table), most):
            for rows in blocks(len(self), most // len(table[lines])):
                part = self if len(table[0, rows]) == len(self) else self[rows]
                result[lines, rows] = ask(part, table[lines, rows])
        return result.reshape(shape)


def _component_at(weights: Floats, uniform: Floats) -> Floats:
    """Index of the component at which the cumulative weight exceeds a uniform number."""
    heights = weights.cumsum(axis=-1)
    levels = uniform[..., None] * heights[..., -1:]
    return np.asarray((heights <= levels).sum(axis=-1), dtype=np.float64)


def _drawn_each(batch: Posterior, places: Rows, rng: Generator) -> Floats:
    """Return one draw for each of these components of a batch."""
    return batch[places].sample(random_state=rng)


def _drawn_in_turn(batch: Posterior, places: Rows, rng: Generator) -> Floats:
    """Return the same, but query each component once for all its draws, which may be expensive."""
    rows, column, counts = np.unique(places, return_inverse=True, return_counts=True)
    turn, order = np.empty(places.size, dtype=np.intp), np.argsort(column, kind="stable")
    turn[order] = np.arange(places.size) - np.repeat(counts.cumsum() - counts, counts)
    draws = batch[rows].sample(int(counts.max()), random_state=rng)
    return np.asarray(draws[turn, column])


# Arguments ---------------------------------------------------------------------------------


def _checked_log_weights(values: npt.ArrayLike) -> Floats:
    rule = "numbers below infinity, or -inf, are needed"
    array = checks.array("log_weights", values, rule)
    checks.require_all(array < np.inf, "log_weights", array, rule)
    return array


def _normalised(log_weights: Floats) -> Floats:
    """Shift the rows (m, k) of log-weights so that the weights of each row add up to 1."""
    largest = log_weights.max(axis=1, keepdims=True)
    if (largest == -np.inf).any():
        row = int(np.argmax(largest == -np.inf))
        raise ValueError(f"log_weights row {row}: found -inf only; at least one must be finite")
    shifted = log_weights - largest
    result = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    result.flags.writeable = False
    return np.asarray(result)


def _broadcast(log_weights: Floats, shape: tuple[int, int]) -> Floats:
    try:
        return np.broadcast_to(log_weights, shape)
    except ValueError:
        raise ValueError(
            f"log_weights: found shape {log_weights.shape}; with {shape[1]} components of "
            f"{shape[0]} rows it must broadcast to {shape}"
        ) from None


def _broadcast_together(*arrays: Floats) -> list[Floats]:
    shapes = [array.shape for array in arrays]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        shape = ()
    if len(shape) != 2 or not shape[1]:
        raise ValueError(
            "log_weights, alpha and beta: found shapes {}, {} and {}; they must broadcast to "
            "(m, k), k components in each of m rows".format(*shapes)
        )
    return [np.broadcast_to(array, shape) for array in arrays]


def _checked_components(components: Sequence[Posterior]) -> tuple[Posterior, ...]:
    rule = "a sequence of posteriors is needed"
    if isinstance(components, Posterior):  # also iterable, row by row
        raise TypeError(f"components: found one {type(components).__name__}; {rule}")
    result = tuple(checks.items("components", components, rule))
    checks.require(result, "components", result, "at least one posterior is needed")
    for k, component in enumerate(result):
        _check_component(f"components[{k}]", component, result[0])
    return result


def _check_component(name: str, component: Posterior, first: Posterior) -> None:
    checks.instance(name, component, Posterior, "posteriors are needed")
    if len(component.shape) != 1:
        raise ValueError(
            f"{name}: found shape {component.shape}; posteriors of one probability per row, of "
            "shape (m,), are needed, such as one class of several, marginal(k)"
        )
    if len(component) != len(first):
        raise ValueError(
            f"{name}: found {len(component)} rows; components[0] has {len(first)}, one each is "
            "needed"
        )
