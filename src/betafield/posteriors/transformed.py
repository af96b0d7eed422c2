"""Posteriors of the success probability under other circumstances: `post.under(context)`.

A context (see `betafield.contexts`) makes the success probability a polynomial of π,

    f(π) = Σ_k b_k binom(p, k) π^k (1−π)^(p−k),

and what is believed about π makes what is believed about f(π). Only the public methods of the
posterior of π are used, so any kind of posterior can be put under any context.

- `Affine`, p ≤ 1: everything follows from the posterior of π by a monotone map.
- `Polynomial`, p ≥ 2: [0, 1] is cut where f turns. On each piece f is monotone, so that
  {π: f(π) ≤ q} is a union of stretches that end at turns and at solutions of f(π) = q.

Points are held as log-odds u = log(π/(1−π)), in which small probabilities and their complements
are equally precise, and in which every term is one exponential: with φ(u) = log(1 + e^u),
binom(p, k) π^k (1−π)^(p−k) = exp(log binom(p, k) + k u − p φ(u)).
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from numpy.polynomial.legendre import leggauss, legvander
from scipy import special

from betafield import contexts
from betafield.posteriors.base import Floats, Generator, Posterior, Rows, blocks, by_pair

# Log-odds beyond which a float is 0 or 1, and beyond which densities are not asked for.
_ZERO, _ONE = -750.0, 40.0
_INSIDE = -690.0, 36.0
# Numbers held at a time, whatever the numbers of rows, points and coefficients.
_BLOCK = 1 << 17
_EPS, _TINY = float(np.finfo(np.float64).eps), 1e-300
# Differences of coefficients that may be what rounding, as of degree elevation, leaves over.
_NOISE = 64.0 * _EPS
# Two turns nearer to each other than this many halvings of [0, 1] are none, to all digits.
_MOST_HALVINGS = 24
_SAME_TURN = 1e-12
_MOST_STEPS = 200
# Moments. Quantiles between which panels lie at first; nodes of a panel; a panel's error in
# standard deviations above which it is halved. The nodes of one that passes miss far less.
_LEVELS = np.array([1e-16, 1e-4, 0.5, 1.0 - 1e-4, 1.0 - 2.0**-53])
_NODES, _WEIGHTS = leggauss(16)
_PANEL_ERROR, _MOST_GENERATIONS, _MOST_PANELS = 1e-10, 50, 64
# Legendre coefficients 14 and 15 of f on a panel, in the column of each. Sixteen nodes integrate
# degree 31: as coefficients fall geometrically, what is missed is like the square of these.
_ROUGHNESS = (legvander(_NODES, 15) * _WEIGHTS[:, None] * (np.arange(16) + 0.5))[:, 14:]

Bools = npt.NDArray[np.bool_]


def transformed(post: Posterior, context: Any) -> Posterior:
    """Return the posterior of the success probability under a context; see `Posterior.under`."""
    coefficients = _one_a_row(post, context)
    if not contexts.is_affine(coefficients).all():
        return Polynomial(post, coefficients)
    ends = coefficients[:, [0, -1]]
    if (ends == (0.0, 1.0)).all():
        return post
    return Affine(post, ends)


def _one_a_row(post: Posterior, context: Any) -> Floats:
    if len(post.shape) != 1:
        raise ValueError(
            f"context: the posterior has {post.shape[-1]} classes; contexts need two, success and "
            "failure, such as one class and all others, marginal(k)"
        )
    values = contexts.checked(context)
    if values.ndim > 2:
        raise ValueError(
            f"context: found an array of shape {values.shape}; one context (p + 1,) for all rows, "
            f"or one a row (m, p + 1), is needed"
        )
    if values.ndim == 2 and len(values) != len(post):
        raise ValueError(
            f"context: found {len(values)} rows where the posterior has {len(post)}; "
            "one context for all rows, or one a row, is needed"
        )
    return np.broadcast_to(values, (len(post), values.shape[-1]))


class _Transformed(Posterior):
    """What `Affine` and `Polynomial` share: a posterior of π and a context for each row."""

    def __init__(self, base: Posterior, coefficients: Floats) -> None:
        self.base, self.coefficients = base, coefficients

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,): one distribution a row."""
        return self.base.shape

    def under(self, context: Any) -> Posterior:
        """Return the distribution under a second context: of a polynomial of π again."""
        outer = _one_a_row(self, context)
        return transformed(self.base, _composed(outer, self.coefficients))

    def _take(self, rows: Rows) -> Self:
        return type(self)(self.base[rows], self.coefficients[rows])


# Affine contexts ---------------------------------------------------------------------------


class Affine(_Transformed):
    """Distributions of lo + (hi − lo) π, one a row.

    The mean is lo + (hi − lo) E[π], the variance (hi − lo)² Var[π], and with t = (q − lo)/(hi − lo)
    P(lo + (hi − lo) π ≤ q) is P(π ≤ t), or P(π > t) where hi < lo turns the order round. Where
    hi = lo all belief is at one point: its cdf is a step, its density infinite there and 0
    elsewhere.

    Parameters
    ----------
    base : Posterior of shape (m,)
        Of π.
    coefficients : array of shape (m, 2)
        (lo, hi): the success probability when π = 0 and when π = 1.

    Examples
    --------
    >>> from betafield.posteriors import Beta
    >>> rested = Beta(alpha=[4.0, 1.0], beta=[2.0, 1.0])
    >>> tired = rested.under([0.0, 0.5])
    >>> tired
    <Affine, shape 2, means from 0.25 to 0.333>
    >>> tired.prob_above(0.25)
    array([0.8125, 0.5   ])
    """

    @property
    def _low(self) -> Floats:
        return self.coefficients[:, 0]

    @property
    def _high(self) -> Floats:
        return self.coefficients[:, 1]

    @property
    def _gain(self) -> Floats:
        return self._high - self._low

    def mean(self) -> Floats:
        """Lo + (hi − lo) E[π]."""
        return self._stretched(self.base.mean())

    def var(self) -> Floats:
        """(hi − lo)² Var[π]."""
        return np.asarray(self._gain**2 * self.base.var())

    def _pdf(self, p: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            density = self.base.pdf(self._unstretched(p)) / np.abs(self._gain)
        return np.where(self._gain == 0.0, np.where(p == self._low, np.inf, 0.0), density)

    def _cdf(self, p: Floats) -> Floats:
        return self._tail(p, above=False)

    def _above(self, p: Floats) -> Floats:
        return self._tail(p, above=True)

    def _ppf(self, q: Floats) -> Floats:
        # Where the order is turned round, a quantile is that of the other tail.
        return self._stretched(self.base.ppf(np.where(self._gain < 0.0, 1.0 - q, q)))

    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        return self._stretched(self.base._draw(size, rng))

    def _stretched(self, p: Floats) -> Floats:
        """Lo + (hi − lo) p: never decreases or never increases, and has the ends' own bits."""
        inside = np.where(p == 1.0, self._high, self._low + self._gain * p)
        return inside.clip(np.minimum(self._low, self._high), np.maximum(self._low, self._high))

    def _unstretched(self, p: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray((p - self._low) / np.where(self._gain == 0.0, 1.0, self._gain))

    def _tail(self, p: Floats, above: bool) -> Floats:
        p, turned = np.broadcast_arrays(p, self._gain < 0.0)
        points, step = self._unstretched(p), (p < self._low) == above
        # Each tail by the method that keeps its small values; both only where rows need both.
        tails = [
            self.base.prob_above(points) if (turned != above).any() else points,
            self.base.cdf(points) if (turned == above).any() else points,
        ]
        return np.where(self._gain == 0.0, step, np.where(turned != above, *tails))


# Polynomial contexts -----------------------------------------------------------------------


class Polynomial(_Transformed):
    """Distributions of f(π) = Σ_k b_k binom(p, k) π^k (1−π)^(p−k), one a row.

    P(f(π) ≤ q) is the probability that π lies in one of the stretches where f ≤ q, and the density
    at q is Σ pdf(θ)/|f'(θ)| over the solutions θ of f(θ) = q: infinite at the values where f turns.
    Quantiles of monotone f are f of quantiles; others are solved for.

    Parameters
    ----------
    base : Posterior of shape (m,)
        Of π.
    coefficients : array of shape (m, p + 1)
        b, within [0, 1].

    Examples
    --------
    The chance that two independent trials differ, 2π(1−π), with π uniform. It is at most q where
    |2π − 1| ≥ (1 − 2q)^½, with probability 1 − (1 − 2q)^½:

    >>> from betafield.posteriors import Beta
    >>> differ = Beta(alpha=[1.0], beta=[1.0]).under([0.0, 1.0, 0.0])
    >>> differ.cdf([[0.18], [0.32]]).round(12)
    array([[0.2],
           [0.4]])
    >>> differ.ppf(0.4).round(12)
    array([0.32])
    """

    def __init__(
        self, base: Posterior, coefficients: Floats, pieces: "_Pieces | None" = None
    ) -> None:
        super().__init__(base, coefficients)
        self._pieces = _monotone_pieces(coefficients) if pieces is None else pieces

    def mean(self) -> Floats:
        """E[f(π)]."""
        return self._moments[0].copy()

    def var(self) -> Floats:
        """E[(f(π) − E[f(π)])²]."""
        return self._moments[1].copy()

    @cached_property
    def _moments(self) -> tuple[Floats, Floats]:
        mean, var = np.empty(self.shape), np.empty(self.shape)
        for block in blocks(len(self), self._at_a_time(len(_NODES) * len(_LEVELS))):
            rows = np.arange(len(self))[block]
            mean[block], var[block] = _moments(self.base[rows], self.coefficients[rows])
        return mean.clip(*self._support()), var

    def _pdf(self, p: Floats) -> Floats:
        return self._by_pair(_density, p)

    def _cdf(self, p: Floats) -> Floats:
        return self._by_pair(_lower, p)

    def _above(self, p: Floats) -> Floats:
        return self._by_pair(_upper, p)

    def _ppf(self, q: Floats) -> Floats:
        falling, turning = self._directions()
        result = self._curve(self.base.ppf(np.where(falling, 1.0 - q, q)))
        q, turning, rows = np.broadcast_arrays(q, turning, np.arange(len(self)))
        result[turning] = self._take(rows[turning])._by_pair(_solved_quantile, q[turning])
        return result

    def _draw(self, size: tuple[int, ...], rng: Generator) -> Floats:
        return self._curve(self.base._draw(size, rng))

    def _take(self, rows: Rows) -> Self:
        pieces = _Pieces(*(array[rows] for array in self._pieces))
        return type(self)(self.base[rows], self.coefficients[rows], pieces)

    def _curve(self, p: Floats) -> Floats:
        """f(p), kept by force within the values that f takes in spite of rounding."""
        points, rows = np.broadcast_arrays(special.logit(p), np.arange(len(self)))
        result = np.empty(points.shape)
        for block in blocks(points.size, self._at_a_time()):
            coefficients = self.coefficients[rows.ravel()[block]]
            result.reshape(-1)[block] = _value(coefficients, points.ravel()[block])
        return result.clip(*self._support())

    def _support(self) -> tuple[Floats, Floats]:
        return self._pieces.values.min(axis=1), self._pieces.values.max(axis=1)

    def _directions(self) -> tuple[Bools, Bools]:
        """Which rows' f only falls, and which rows' f does both."""
        steps = np.diff(self._pieces.values, axis=1)
        falls, rises = np.any(steps < 0.0, axis=1), np.any(steps > 0.0, axis=1)
        return np.asarray(falls & ~rises), np.asarray(falls & rises)

    def _by_pair(self, formula: "Formula", values: Floats) -> Floats:
        return by_pair(self, formula, values, self._at_a_time())

    def _at_a_time(self, each: int = 1) -> int:
        return int(_BLOCK // (each * self.coefficients.shape[1]))


# Takes a posterior of m rows and m values.
Formula = Callable[[Polynomial, Floats], Floats]


def _density(post: Polynomial, q: Floats) -> Floats:
    left, right, start, end = post._pieces.sides()
    cuts, q = _cuts(post, q), q[:, None]
    met = (np.minimum(start, end) <= q) & (q <= np.maximum(start, end)) & (left < right)
    density = post.base.pdf(special.expit(cuts).T).T
    slope = np.abs(_value(_derivative(post.coefficients)[:, None], cuts))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        terms = np.where(met & (density > 0.0), density / slope, 0.0)
    # A constant f has all its mass at one value, whatever the density at the cut.
    return np.asarray(np.where(met & (start == end), np.inf, terms).sum(axis=1))


def _lower(post: Polynomial, q: Floats) -> Floats:
    return _tail(post, q, above=False)


def _upper(post: Polynomial, q: Floats) -> Floats:
    return _tail(post, q, above=True)


def _tail(post: Polynomial, q: Floats, above: bool) -> Floats:
    """P(f(π) ≤ q) or P(f(π) > q): the mass before or after the cut in every piece."""
    left, right, start, end = post._pieces.sides()
    points = np.stack([left, _cuts(post, q)], axis=-1).reshape(len(q), 2 * left.shape[1])
    points = special.expit(np.append(points, right[:, -1:], axis=1))
    masses = _masses(post.base, points).reshape(*left.shape, 2)
    before, after = masses[..., 0], masses[..., 1]
    sides = np.where((start <= end) != above, before, after)
    return np.asarray(sides.sum(axis=1).clip(0.0, 1.0))


def _masses(base: Posterior, points: Floats) -> Floats:
    """P(a < π ≤ b) for neighbours a ≤ b in each row of points, from the tail that is small."""
    lower, upper = base.cdf(points.T).T, base.prob_above(points.T).T
    below, above = np.diff(lower), -np.diff(upper)
    return np.where(lower[:, 1:] <= 0.5, below, above).clip(min=0.0)


def _solved_quantile(post: Polynomial, level: Floats) -> Floats:
    """Solve P(f(π) ≤ q) = level for q, on the smaller tail."""
    low, high = _bracket(post, level)
    upper = level > 0.5

    def excess(q: Floats, at: Rows) -> Floats:
        result, turned = np.empty(len(at)), upper[at]
        for above, formula in ((False, _lower), (True, _upper)):
            chosen = np.flatnonzero(turned == above)
            tail = formula(post._take(at[chosen]), q[chosen])
            goal = level[at[chosen]]
            result[chosen] = (1.0 - goal) - tail if above else tail - goal
        return result

    # The bracket's tails are not worth computing: of these only the signs are sure.
    size = np.maximum(np.minimum(level, 1.0 - level), _TINY)
    result = _root(excess, low, high, -size, size)
    return np.select([level == 0.0, level == 1.0], list(post._support()), result)


def _bracket(post: Polynomial, level: Floats) -> tuple[Floats, Floats]:
    """Range of f on an interval that π leaves with half the probability of the smaller tail."""
    tail = np.minimum(level, 1.0 - level) / 4.0
    ends = special.logit(post.base.ppf(np.stack([tail, 1.0 - tail]))).T
    values = _value(post.coefficients[:, None], ends)
    low, high = values.min(axis=1), values.max(axis=1)
    inside = (post._pieces.ends >= ends[:, :1]) & (post._pieces.ends <= ends[:, 1:])
    low = np.minimum(low, np.where(inside, post._pieces.values, np.inf).min(axis=1))
    high = np.maximum(high, np.where(inside, post._pieces.values, -np.inf).max(axis=1))
    least, most = post._support()
    return np.maximum(low, least), np.minimum(high, most)


# Moments -----------------------------------------------------------------------------------


class _Panels(NamedTuple):
    """Stretches of log-odds: the row each belongs to, its ends, and the probability of π in it."""

    row: Rows
    left: Floats
    right: Floats
    mass: Floats

    def take(self, chosen: Bools) -> "_Panels":
        row, left, right, mass = self
        return _Panels(row[chosen], left[chosen], right[chosen], mass[chosen])


class _Parts(NamedTuple):
    """Probabilities of parts of rows, and the mean and the variance of f in each."""

    row: Rows
    mass: Floats
    mean: Floats
    var: Floats

    def take(self, chosen: Bools) -> "_Parts":
        row, mass, mean, var = self
        return _Parts(row[chosen], mass[chosen], mean[chosen], var[chosen])


def _moments(base: Posterior, coefficients: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of f by Gauss-Legendre nodes on panels of log-odds.

    The mass of a panel is known from the tails of π. A panel is halved until its nodes find that
    mass and f is smooth between them; only the place of π *within* the panel is left to its
    density, so that neither narrow posteriors nor densities without bound at 0 or 1 lose digits.
    """
    # f less its value at the end where π is: a spread far below rounding of f itself is kept.
    offset = np.where(base.ppf(0.5) > 0.5, coefficients[:, -1], coefficients[:, 0])
    coefficients = coefficients - offset[:, None]
    panels, outside = _first_panels(base, coefficients)
    done, rows = [outside], len(coefficients)
    for _ in range(_MOST_GENERATIONS):
        parts, error = _integrated(base, coefficients, panels)
        mean, var = _together([*done, parts], rows)
        halve = error > _PANEL_ERROR * np.sqrt(var[panels.row])
        halve &= np.bincount(panels.row, minlength=rows)[panels.row] <= _MOST_PANELS
        if not halve.any():
            break
        done.append(parts.take(~halve))
        panels = _halved(base, panels.take(halve))
    return offset + mean, var


def _first_panels(base: Posterior, coefficients: Floats) -> tuple[_Panels, _Parts]:
    """Panels between quantiles, and what lies outside: so near to 0 or 1 that f is constant."""
    ends = special.logit(base.ppf(_LEVELS[:, None])).T.clip(*_INSIDE)
    points = special.expit(ends)
    row = np.arange(len(ends))
    panels = _Panels(
        np.repeat(row, len(_LEVELS) - 1),
        ends[:, :-1].ravel(),
        ends[:, 1:].ravel(),
        _masses(base, points).ravel(),
    )
    outside = np.concatenate([base.cdf(points[:, 0]), base.prob_above(points[:, -1])])
    values = _value(coefficients[:, None], ends[:, [0, -1]]).T.ravel()
    return panels, _Parts(np.tile(row, 2), outside, values, np.zeros(outside.size))


def _integrated(base: Posterior, coefficients: Floats, panels: _Panels) -> tuple[_Parts, Floats]:
    """Mean and variance of f in each panel, and what its nodes may have missed of the mean."""
    half = 0.5 * (panels.right - panels.left)[:, None]
    u = panels.left[:, None] + half * (1.0 + _NODES)
    p, f = special.expit(u), _value(coefficients[panels.row, None], u)
    found = half * _WEIGHTS * base[panels.row].pdf(p.T).T * p * (1.0 - p)
    total = found.sum(axis=1)
    shares = np.where(total[:, None] > 0.0, found / np.where(total > 0.0, total, 1.0)[:, None], 0.0)
    mean = f[:, 0] + (shares * (f - f[:, :1])).sum(axis=1)
    var = (shares * (f - mean[:, None]) ** 2).sum(axis=1)
    # Exponents are of the size of p u, and so are the roundings that they pass on to f.
    terms = 2.0 + coefficients.shape[1] * np.abs(u).max(axis=1)
    rounding = 8.0 * _EPS * terms * np.abs(f).max(axis=1)
    spread = (f.max(axis=1) - f.min(axis=1) - rounding).clip(min=0.0)
    rough = (np.abs(f @ _ROUGHNESS).sum(axis=1) - rounding).clip(min=0.0)
    missed = rough * rough / np.where(spread > 0.0, spread, np.inf)
    error = np.abs(total - panels.mass) * spread + missed * panels.mass
    return _Parts(panels.row, panels.mass, mean, var), error


def _halved(base: Posterior, panels: _Panels) -> _Panels:
    middle = 0.5 * (panels.left + panels.right)
    ends = np.column_stack([panels.left, middle, panels.right])
    masses = _masses(base[panels.row], special.expit(ends))
    return _Panels(
        np.repeat(panels.row, 2), ends[:, :-1].ravel(), ends[:, 1:].ravel(), masses.ravel()
    )


def _together(parts: list[_Parts], rows: int) -> tuple[Floats, Floats]:
    """Mean and variance of each row from those of its parts: sums of terms that do not cancel."""
    row, mass, means, within = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    total = np.bincount(row, mass, rows)
    mean = np.bincount(row, mass * means, rows) / total
    between = (means - mean[row]) ** 2
    return mean, np.bincount(row, mass * (within + between), rows) / total


# Pieces on which f is monotone --------------------------------------------------------------


class _Pieces(NamedTuple):
    """Ends in log-odds of the pieces on which f is monotone, and f at them, both (m, J + 1).

    From π = 0 to π = 1; rows with fewer pieces than others have empty ones at the right.
    """

    ends: Floats
    values: Floats

    def sides(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Left and right ends of the pieces, and f at either."""
        return self.ends[:, :-1], self.ends[:, 1:], self.values[:, :-1], self.values[:, 1:]


def _monotone_pieces(coefficients: Floats) -> _Pieces:
    distinct, which = np.unique(coefficients, axis=0, return_inverse=True)
    ends = _without_duplicates(_with_both_ends(*_possible_turns(distinct), len(distinct)))
    values = _values_at_ends(distinct, ends)
    # A possible turn through which f just goes on rising, or falling, is none.
    steps = np.diff(values)
    ends[:, 1:-1][steps[:, :-1] * steps[:, 1:] > 0.0] = _ONE
    ends.sort(axis=1)
    ends = ends[:, : 1 + max(1, int((ends < _ONE).sum(axis=1).max(initial=0)))]
    return _Pieces(ends[which], _values_at_ends(distinct, ends)[which])


def _values_at_ends(coefficients: Floats, ends: Floats) -> Floats:
    values = _value(coefficients[:, None], ends)
    values = np.where(ends == _ZERO, coefficients[:, :1], values)
    return np.where(ends == _ONE, coefficients[:, -1:], values)


def _with_both_ends(row: Rows, u: Floats, rows: int) -> Floats:
    """Put the points of each row in order between 0 and 1, filled up with ones."""
    order = np.lexsort((u, row))
    row, u = row[order], u[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    ends = np.full((rows, 3 + int(rank.max(initial=-1))), _ONE)
    ends[:, 0] = _ZERO
    ends[row, 1 + rank] = u
    return ends


def _without_duplicates(ends: Floats) -> Floats:
    near = np.diff(special.expit(ends)) <= _SAME_TURN
    ends[:, 1:][near] = _ONE
    return np.sort(ends, axis=1)


def _possible_turns(coefficients: Floats) -> tuple[Rows, Floats]:
    """Rows and log-odds of all points at which f may turn, and perhaps of some more.

    By Descartes' rule for the Bernstein form a polynomial has no root in (0, 1) if its
    coefficients do not change sign, and one if they do so once; others are halved by de Casteljau.
    """
    slopes = _derivative(coefficients)
    rounding = _NOISE * coefficients.max(axis=1, keepdims=True) * slopes.shape[1]
    slopes = np.where(np.abs(slopes) <= rounding, 0.0, slopes)
    row, local = np.arange(len(slopes)), slopes
    left, right = np.zeros(len(row)), np.ones(len(row))
    rows, turns = [row[:0]], [left[:0]]
    for _ in range(_MOST_HALVINGS):
        changes, first_sign = _sign_changes(local)
        one, more = changes == 1, changes > 1
        rows += [row[one], row[more]]
        middle = 0.5 * (left[more] + right[more])
        turns += [
            _turn(slopes[row[one]], left[one], right[one], first_sign[one]),
            _log_odds(middle),
        ]
        row, local = np.tile(row[more], 2), np.concatenate(_split(local[more]))
        left, right = np.append(left[more], middle), np.append(middle, right[more])
    return np.concatenate(rows), np.concatenate(turns)


def _sign_changes(coefficients: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """How often signs change along each row, zeros left out, and the first sign."""
    signs = np.sign(coefficients)
    for k in range(1, signs.shape[1]):
        signs[:, k] = np.where(signs[:, k] == 0.0, signs[:, k - 1], signs[:, k])
    changes = (signs[:, 1:] * signs[:, :-1] < 0.0).sum(axis=1)
    # After the last change the sign is the last one, so before all changes it is this.
    return changes, signs[:, -1] * (-1.0) ** changes


def _split(coefficients: Floats) -> tuple[Floats, Floats]:
    """Coefficients of the same polynomial on the left and on the right half of its interval."""
    left, right = np.empty_like(coefficients), np.empty_like(coefficients)
    level = coefficients
    for k in range(coefficients.shape[1]):
        left[:, k], right[:, -1 - k] = level[:, 0], level[:, -1]
        level = 0.5 * (level[:, :-1] + level[:, 1:])
    return left, right


def _turn(slopes: Floats, left: Floats, right: Floats, first_sign: Floats) -> Floats:
    """Log-odds of the only root of f' between two points."""
    return _root(
        lambda u, at: _scaled(slopes[at], u),
        _log_odds(left),
        _log_odds(right),
        first_sign,
        -first_sign,
    )


def _cuts(post: Polynomial, q: Floats) -> Floats:
    """Log-odds in each piece at which f passes q, or the end up to which all or none is below."""
    left, right, start, end = post._pieces.sides()
    level = q[:, None]
    at_right = (start <= end) == (np.maximum(start, end) <= level)
    cuts = np.where(at_right, right, left)
    row, piece = np.nonzero((np.minimum(start, end) < level) & (level < np.maximum(start, end)))
    coefficients, goal = post.coefficients[row], q[row]
    cuts[row, piece] = _root(
        lambda u, at: _value(coefficients[at], u) - goal[at],
        left[row, piece],
        right[row, piece],
        start[row, piece] - goal,
        end[row, piece] - goal,
    )
    return cuts


# Polynomials in Bernstein form --------------------------------------------------------------


def _value(coefficients: Floats, u: Floats) -> Floats:
    """Σ_k b_k exp(log binom(p, k) + k u − p φ(u)), for log-odds u; the last axis holds b."""
    return np.asarray(
        (coefficients * np.exp(_exponents(coefficients.shape[-1] - 1, u))).sum(axis=-1)
    )


def _scaled(coefficients: Floats, u: Floats) -> Floats:
    """Return the value over that of its largest term: of the same sign, and never underflows."""
    exponents = _exponents(coefficients.shape[-1] - 1, u)
    largest = np.where(coefficients == 0.0, -np.inf, exponents).max(axis=-1, keepdims=True)
    return np.asarray((coefficients * np.exp(np.minimum(exponents - largest, 0.0))).sum(axis=-1))


def _exponents(degree: int, u: Floats) -> Floats:
    u = u.clip(_ZERO, -_ZERO)[..., None]
    k = np.arange(degree + 1)
    return np.asarray(_log_binom(degree) + k * u - degree * np.logaddexp(0.0, u))


def _log_binom(degree: int) -> Floats:
    k = np.arange(degree + 1)
    return np.asarray(
        special.gammaln(degree + 1) - special.gammaln(k + 1) - special.gammaln(degree - k + 1)
    )


def _derivative(coefficients: Floats) -> Floats:
    return np.asarray((coefficients.shape[-1] - 1) * np.diff(coefficients))


def _log_odds(p: Floats) -> Floats:
    return np.asarray(special.logit(p).clip(_ZERO, _ONE))


def _composed(outer: Floats, inner: Floats) -> Floats:
    """Coefficients of outer(inner(π)): de Casteljau's averages, of polynomials.

    Every step is (1 − f) a + f b with f, 1 − f, a and b of coefficients within [0, 1].
    """
    values, weight = outer[..., None], inner[:, None]
    while values.shape[1] > 1:
        values = _product(1.0 - weight, values[:, :-1]) + _product(weight, values[:, 1:])
    return values[:, 0].clip(0.0, 1.0)


def _product(a: Floats, b: Floats) -> Floats:
    """c_k = Σ_i binom(p, i) binom(q, k−i) / binom(p+q, k) a_i b_(k−i), averages of a_i b_j."""
    p, q = a.shape[-1] - 1, b.shape[-1] - 1
    chances, sums = _log_binom(q), _log_binom(p + q)
    result = np.zeros((*np.broadcast_shapes(a.shape[:-1], b.shape[:-1]), p + q + 1))
    for i, log_binom in enumerate(_log_binom(p)):
        share = np.exp(log_binom + chances - sums[i : i + q + 1])
        result[..., i : i + q + 1] += share * a[..., i : i + 1] * b
    return result


# Roots -------------------------------------------------------------------------------------


def _root(
    function: Callable[[Floats, Rows], Floats],
    low: Floats,
    high: Floats,
    at_low: Floats,
    at_high: Floats,
) -> Floats:
    """Solve function = 0 between `low` and `high`, at which its signs differ.

    Chandrupatla's method: inverse quadratic interpolation where three points allow it, and halving
    elsewhere. `function` is called with points and the positions that they belong to.
    """
    result, at = 0.5 * (low + high), np.arange(len(low))
    # The bracket is [a, b] with the newest point a; c is the point before.
    a, b, c, fa, fb, fc = high, low, low, at_high, at_low, at_low
    share = np.full(len(low), 0.5)
    for _ in range(_MOST_STEPS):
        if not at.size:
            break
        x = a + share * (b - a)
        fx = function(x, at)
        same = (fx > 0.0) == (fa > 0.0)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        result[at] = np.where(np.abs(fa) < np.abs(fb), a, b)
        width, least = np.abs(b - a), 2.0 * _EPS * np.abs(result[at]) + _TINY
        left = np.flatnonzero((fa != 0.0) & (width > 2.0 * least))
        at, width, least = at[left], width[left], least[left]
        a, b, c, fa, fb, fc = (values[left] for values in (a, b, c, fa, fb, fc))
        share = _interpolated(a, b, c, fa, fb, fc)
        share = np.clip(share, least / width, 1.0 - least / width)
    return result


def _interpolated(a: Floats, b: Floats, c: Floats, fa: Floats, fb: Floats, fc: Floats) -> Floats:
    """Where between a and b, as a share, the parabola through three points says that f is 0."""
    with np.errstate(all="ignore"):
        place, height = (a - b) / (c - b), (fa - fb) / (fc - fb)
        good = (1.0 - np.sqrt(1.0 - place) < height) & (height < np.sqrt(place))
        share = fa / (fb - fa) * fc / (fb - fc)
        share += (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        return np.where(good & np.isfinite(share), share, 0.5)
