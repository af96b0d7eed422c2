"""Mixtures of posteriors of any kind: what is believed when several windows remain.

`Mixture` is for Betas, whose second derivatives its quantiles use. Here a component is known by the
methods that every posterior has, and a question may cost it much: `Contextual` integrates anew in
every call, at nearly the same price for one point as for ten. So quantiles are searched for in few
rounds of many points. The quantile of a blend lies between the least and the greatest quantile of
its components. In each round all components are asked at points that cut this bracket, so that it
is sure to shrink, and at some around the best guess, so that it shrinks fast. With g the logarithm
of the smaller tail over the tail sought, the next guess is inverse interpolation: the polynomial
in g through the points' places, at g = 0.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import special

from betafield.posteriors.base import Floats, Generator, Posterior, Rows, blocks
from betafield.posteriors.mixture import checked_log_weights, component_at, normalised

# Points held at a time, whatever the numbers of rows and of levels.
_BLOCK = 1 << 20
# Components below this share of the tail sought cannot move a quantile.
_NEGLIGIBLE = 1e-20
# Places in a bracket: cuts, which no weighted mean of its ends is likely to hit, and, in units of
# the guess's doubt, points around the guess.
_CUTS = np.array([0.0, 0.1773, 0.3891, 0.6107, 0.8229, 1.0])
_AROUND = np.array([-2.0, -0.5, 0.0, 0.5, 2.0])
# Points through which the polynomial goes, and the doubt about the first guess.
_NODES, _FIRST_DOUBT = 8, 0.1
# The doubt is the error of polynomials of two degrees less, which do not agree by chance. One
# below this, in log-odds and in g, leaves none to all digits.
_NO_DOUBT = 1e-12
# Brackets longer than this, in log-odds, are cut in log-odds, others in p.
_LONG = 0.5
# Cuts alone make neighbouring floats of a bracket in 30 rounds; two or three are usual.
_MOST_ROUNDS = 100
_SMALLEST, _LARGEST = 5e-324, 1.0 - 2.0**-53

Bools = npt.NDArray[np.bool_]
# Takes a component of some rows, and those rows; gives an array whose last axis is theirs.
Formula = Callable[[Posterior, Rows], Floats]


class Blend(Posterior):
    """Mixtures of posteriors of any kind, one a row.

    With P_k, m_k and v_k the distribution, mean and variance of component k in a row, the
    distribution is Σ w_k P_k, the mean m = Σ w_k m_k and the variance Σ w_k (v_k + (m_k − m)²).

    Parameters
    ----------
    log_weights : array-like that broadcasts to (m, k)
        Logarithms of the weights w_k, up to a constant a row; −inf for an absent component: (k,)
        for all rows, or (m, k). Kept normalised: Σ_k w_k = 1.
    components : sequence of k posteriors of shape (m,)
        The P_k, at least one.

    See Also
    --------
    Mixture : The same of Betas only, which is faster.

    Examples
    --------
    A success that may have been a guess, with the even chance of two alternatives or the chance of
    one in four, and which of them is not known:

    >>> import numpy as np
    >>> from betafield.posteriors import Blend, Contextual
    >>> guess = [Contextual([1.0], [1.0], shifts=[[s]], trials=[[1.0]]) for s in np.log([2.0, 4.0])]
    >>> post = Blend(np.log([0.5, 0.5]), guess)
    >>> post
    <Blend, shape 1, means from 0.578 to 0.578>
    >>> post.prob_above(0.5).round(6)
    array([0.616667])
    >>> low, high = post.interval(0.9)
    >>> print(low.round(4), high.round(4))
    [0.0871] [0.9655]
    """

    def __init__(self, log_weights: npt.ArrayLike, components: Sequence[Posterior]) -> None:
        self.components = _checked_components(components)
        shape = len(self.components[0]), len(self.components)
        self.log_weights = normalised(_broadcast(checked_log_weights(log_weights), shape))

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,): one distribution a row."""
        return self.log_weights.shape[:1]

    def mean(self) -> Floats:
        """Σ w_k m_k."""
        return self._sum(lambda component, _: component.mean())

    def var(self) -> Floats:
        """Σ w_k (v_k + (m_k − m)²): of terms that are not negative."""
        means = np.zeros(self.log_weights.T.shape)
        for k, rows, component in self._present():
            means[k, rows] = component.mean()
        weights = self._weights().T
        between = (means - (weights * means).sum(axis=0)) ** 2
        within = self._sum(lambda component, _: component.var())
        return np.asarray(within + (weights * between).sum(axis=0))

    def under(self, context: Any) -> Posterior:
        """Return the blend, by the same weights, of what the components are under a context."""
        components = tuple(component.under(context) for component in self.components)
        same = all(one is other for one, other in zip(components, self.components, strict=True))
        return self if same else self._of(self.log_weights, components)

    def _pdf(self, p: Floats) -> Floats:
        return self._sum_at(Posterior.pdf, p)

    def _cdf(self, p: Floats) -> Floats:
        return self._sum_at(Posterior.cdf, p).clip(max=1.0)

    def _above(self, p: Floats) -> Floats:
        return self._sum_at(Posterior.prob_above, p).clip(max=1.0)

    def _ppf(self, q: Floats) -> Floats:
        shape = np.broadcast_shapes(q.shape, self.shape)
        levels = np.broadcast_to(q, shape).reshape(math.prod(shape[:-1]), len(self))
        result = np.empty(levels.shape)
        most = _BLOCK // (max(1, len(levels)) * (len(_CUTS) + len(_AROUND)))
        for block in blocks(len(self), most):
            part = self if most >= len(self) else self[block]
            result[:, block] = _quantiles(part, levels[:, block])
        return result.reshape(shape)

    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        result = np.empty((math.prod(size[:-1]), len(self)))
        chosen = component_at(self._weights(), np.asarray(rng.uniform(size=result.shape)))
        for k, component in enumerate(self.components):
            here = chosen == k
            rows = np.flatnonzero(here.any(axis=0))
            if rows.size:
                result[here] = _draws_in_turn(component[rows], here[:, rows], rng)
        return result.reshape(size)

    def _take(self, rows: Rows) -> Self:
        return self._of(self.log_weights[rows], tuple(c[rows] for c in self.components))

    def _of(self, log_weights: Floats, components: tuple[Posterior, ...]) -> Self:
        other = copy(self)  # and not a new one: weights normalised twice are not the same bits
        other.log_weights, other.components = log_weights, components
        return other

    def _weights(self) -> Floats:
        return np.exp(self.log_weights)

    def _present(self) -> Iterator[tuple[int, Rows, Posterior]]:
        """Each component in the rows where it has weight; where it has none it costs nothing."""
        for k, (weights, component) in enumerate(
            zip(self._weights().T, self.components, strict=True)
        ):
            rows = np.flatnonzero(weights)
            if rows.size:
                yield k, rows, component if rows.size == len(self) else component[rows]

    def _sum(self, formula: Formula, shape: tuple[int, ...] = ()) -> Floats:
        """Σ w_k times a formula of component k, an array of `shape` for each row."""
        total, weights = np.zeros((*shape, *self.shape)), self._weights()
        for k, rows, component in self._present():
            total[..., rows] += weights[rows, k] * formula(component, rows)
        return total

    def _sum_at(self, method: Callable[[Posterior, Floats], Floats], p: Floats) -> Floats:
        points = np.broadcast_to(p, np.broadcast_shapes(p.shape, self.shape))
        return self._sum(
            lambda component, rows: method(component, points[..., rows]), points.shape[:-1]
        )


def _draws_in_turn(component: Posterior, here: Bools, rng: Generator) -> Floats:
    """Draws for the places that are `here`, (n, m): of each row as many as it may need."""
    number = here.cumsum(axis=0)
    draws = component._draw((int(number.max()), len(component)), rng)
    return np.asarray(draws[number[here] - 1, np.nonzero(here)[1]])


# What comes in -----------------------------------------------------------------------------


def _checked_components(components: Sequence[Posterior]) -> tuple[Posterior, ...]:
    # A posterior can be iterated over too, row by row.
    if isinstance(components, Posterior):
        raise TypeError(
            f"components is one {type(components).__name__}; a sequence of posteriors is needed"
        )
    result = tuple(components)
    if not result:
        raise ValueError("components is empty; at least one posterior is needed")
    for k, component in enumerate(result):
        _check_component(k, component, result[0])
    return result


def _check_component(k: int, component: Posterior, first: Posterior) -> None:
    name = f"components[{k}]"
    if not isinstance(component, Posterior):
        raise TypeError(f"{name} is of type {type(component).__name__}; posteriors are needed")
    if len(component.shape) != 1:
        raise ValueError(
            f"{name} has shape {component.shape}; posteriors of one probability a row, of shape "
            "(m,), are needed, such as one class of several, marginal(k)"
        )
    if len(component) != len(first):
        raise ValueError(
            f"{name} has {len(component)} rows and components[0] has {len(first)}; "
            "they must have the same number"
        )


def _broadcast(log_weights: Floats, shape: tuple[int, int]) -> Floats:
    try:
        return np.broadcast_to(log_weights, shape)
    except ValueError:
        raise ValueError(
            f"log_weights has shape {log_weights.shape}; with {shape[1]} components of {shape[0]} "
            f"rows it must broadcast to {shape}"
        ) from None


# Quantiles ---------------------------------------------------------------------------------


class _Bracket(NamedTuple):
    """Stretches that hold one quantile each, low < quantile ≤ high; a place 0..1 is a point."""

    low: Floats
    high: Floats

    def log_odds(self) -> tuple[Floats, Floats]:
        """Return the low end and the length; 0 and 1 count as the floats beside them."""
        low, high = (special.logit(end.clip(_SMALLEST, _LARGEST)) for end in self)
        return low, high - low

    def point(self, place: Floats) -> Floats:
        low, length = self.log_odds()
        even = self.low + place * (self.high - self.low)
        # SciPy's expit is 0 where floats are subnormal.
        uneven = np.exp(-np.logaddexp(0.0, -(low + place * length)))
        point = np.where(length > _LONG, uneven, even)
        ends = [place <= 0.0, place >= 1.0]
        return np.select(ends, [self.low, self.high], point.clip(self.low, self.high))

    def place(self, point: Floats) -> Floats:
        low, length = self.log_odds()
        span = self.high - self.low
        even = (point - self.low) / np.where(span > 0.0, span, 1.0)
        uneven = special.logit(point.clip(_SMALLEST, _LARGEST)) - low
        return np.where(length > _LONG, uneven / np.where(length > _LONG, length, 1.0), even)


class _Guess(NamedTuple):
    """Places in brackets where quantiles may be, and how far off they may be."""

    place: Floats
    doubt: Floats


def _quantiles(blend: Blend, levels: Floats) -> Floats:
    """Quantiles at levels (l, m), l of each row."""
    bracket, guess = _start(blend, levels)
    result = np.where(levels == 1.0, bracket.high, bracket.low)
    wanted = (levels > 0.0) & (levels < 1.0) & (bracket.low < bracket.high)
    for above in (False, True):
        tail = wanted & ((levels > 0.5) == above)
        if not tail.any():
            continue
        chosen, rows = np.flatnonzero(tail.any(axis=1)), np.flatnonzero(tail.any(axis=0))
        at = np.ix_(chosen, rows)
        found = _search(
            _Tail(blend[rows], (1.0 - levels if above else levels)[at], above),
            _Bracket(*(values[at] for values in bracket)),
            _Guess(*(values[at] for values in guess)),
            tail[at],
        )
        result[at] = np.where(tail[at], found, result[at])
    return result


def _start(blend: Blend, levels: Floats) -> tuple[_Bracket, _Guess]:
    """Bracket of the components' quantiles, and their weighted mean in log-odds as a guess."""
    each = np.full((len(blend.components), *levels.shape), np.nan)
    for k, rows, component in blend._present():
        each[k][:, rows] = component.ppf(levels[:, rows])
    weights = blend._weights().T[:, None]
    counts = weights > _NEGLIGIBLE * np.minimum(levels, 1.0 - levels)
    low = np.where(counts, each, np.inf).min(axis=0, initial=np.inf)
    bracket = _Bracket(low, np.where(counts, each, -np.inf).max(axis=0, initial=-np.inf))
    place = np.where(counts, weights * bracket.place(each), 0.0).sum(axis=0)
    return bracket, _Guess(place, np.full(levels.shape, _FIRST_DOUBT))


class _Tail(NamedTuple):
    """The tails that are to be `goal`, (l, m): the lower ones, or the upper ones."""

    blend: Blend
    goal: Floats
    above: bool

    def error(self, p: Floats) -> Floats:
        """Return g: the log of the tail over its goal, with the sign that makes it grow with p."""
        blend = self.blend
        tail = blend._above(p) if self.above else blend._cdf(p)
        with np.errstate(divide="ignore", invalid="ignore"):  # levels 0 and 1 are not asked for
            error = np.log(tail / self.goal)
        return -error if self.above else error


def _search(tail: _Tail, bracket: _Bracket, guess: _Guess, wanted: Bools) -> Floats:
    """Where the tails have their goals; rows leave when all that is wanted of them is found."""
    result, rows = bracket.high.copy(), np.arange(len(tail.blend))
    for _ in range(_MOST_ROUNDS):
        if not rows.size:
            break
        point, settled, bracket, guess = _round(tail, bracket, guess)
        result[:, rows] = np.where(wanted, point, result[:, rows])
        wanted = wanted & ~settled
        left = np.flatnonzero(wanted.any(axis=0))
        rows, wanted = rows[left], wanted[:, left]
        tail = _Tail(tail.blend[left], tail.goal[:, left], tail.above)
        bracket = _Bracket(*(values[:, left] for values in bracket))
        guess = _Guess(*(values[:, left] for values in guess))
    return result


def _round(tail: _Tail, bracket: _Bracket, guess: _Guess) -> tuple[Floats, Bools, _Bracket, _Guess]:
    """Points at or near the quantiles, which of them are at them, and what is known then."""
    places = _places(guess)
    points = bracket.point(places)
    # A belief that is certain of one value steps there, and that may be the end of a bracket; and
    # where floats are too coarse for the tail sought, a bracket of neighbours is all there is.
    before = np.nextafter(bracket.high, 0.0)
    g = tail.error(np.concatenate([points, before[None]]))
    at_low, at_high, g = g[0] >= 0.0, g[-1] < 0.0, g[:-1]

    cell = ((g < 0.0).sum(axis=0) - 1).clip(0, len(g) - 2)
    place, doubt, sure = _interpolated(places, g, cell, bracket.log_odds()[1])
    cells = _Bracket(_at(points, cell), _at(points, cell + 1))
    point = bracket.point(place).clip(*cells)
    point = np.select([at_low, at_high], [bracket.low, bracket.high], point)
    return point, at_low | at_high | sure, cells, _Guess(cells.place(point), doubt)


def _places(guess: _Guess) -> Floats:
    """Where in brackets to ask, in order: cuts, and points around the guess, all within."""
    place = guess.place.clip(0.0, 1.0)
    cuts, around = _CUTS[:, None, None], _AROUND[:, None, None]
    room = np.where(around < 0.0, place, 1.0 - place) / 3.0
    guesses = place + around * np.minimum(guess.doubt, room)
    cuts = np.broadcast_to(cuts, (len(_CUTS), *place.shape))
    return np.sort(np.concatenate([cuts, guesses]), axis=0)


def _interpolated(
    places: Floats, g: Floats, cell: Rows, length: Floats
) -> tuple[Floats, Floats, Bools]:
    """Place at which g is 0, its doubt as a share of its cell, and whether that is none at all.

    By Neville's scheme, through the points nearest to the cell in which g changes its sign.
    """
    left, right = _at(places, cell), _at(places, cell + 1)
    nodes = (cell - _NODES // 2 + 1).clip(0, len(g) - _NODES) + np.arange(_NODES)[:, None, None]
    x = np.take_along_axis(g, nodes, axis=0)
    degrees = [np.take_along_axis(places, nodes, axis=0) - left]
    with np.errstate(
        all="ignore"
    ):  # without a tail, or where it does not grow, there is no polynomial
        for d in range(1, _NODES):
            y = degrees[-1]
            degrees.append((x[d:] * y[:-1] - x[:-d] * y[1:]) / (x[d:] - x[:-d]))
        place, doubt = left + degrees[-1][0], np.abs(degrees[-1] - degrees[-3]).max(axis=0)
        inside = (place > left) & (place < right)
        slope = (_at(g, cell + 1) - _at(g, cell)) / (right - left)
        sure = inside & (doubt * np.maximum(slope, length) < _NO_DOUBT)
        share = np.where(inside, doubt / (right - left), 1.0)
    return np.where(inside, place, 0.5 * (left + right)), share, sure


def _at(values: Floats, index: Rows) -> Floats:
    return np.asarray(np.take_along_axis(values, index[None], axis=0)[0])
