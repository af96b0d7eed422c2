"""How trials made under different contexts share a window: what is added up, how it is read.

`Evidence` turns outcomes and contexts into additive statistics, `Reading` turns the sums of a
window into a posterior. A trial's outcome has the probability l₀ if π = 0 and l₁ if π = 1.

Exact sharing multiplies the likelihoods of all trials of the window:

    l₀ = l₁            nothing is learned, the trial is dropped
    l₀ = 0 or l₁ = 0   a success or a failure like any other: a Beta count
    other affine       shared out on the lattice of shifts, `betafield.lattice`
    polynomials        counted, one statistic a distinct polynomial

Mean sharing, the paper's CSBP, knows the mean of the contexts only: with n trials in the window,
S of them successes, B̄ and Ā + B̄ the mean coefficients, the likelihood is that of n trials under
(B̄, Ā + B̄).

The counts of a window are, in this order and as far as there are any: trials a class; their
fractions, in units of 2⁻³²; and then for mean sharing the sums of B and of 1 − A − B, in two
columns each, for exact sharing a count and its fraction a polynomial.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import contexts, lattice, trials
from betafield.posteriors import Beta, Contextual, Dirichlet, Posterior

if TYPE_CHECKING:
    from betafield.windows import Places, Shifts

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Polynomial = tuple[float, ...]

NAMES = ("exact", "mean")
# Where the statistics beyond counts and their fractions begin; contexts have two classes.
OTHERS = 4
# Coefficients this near to each other, relatively, differ by rounding only.
ROUNDING = 1e-14
# Distinct polynomials that can be counted apart.
MOST_POLYNOMIALS = 8192
# Polynomials that double the time of a posterior.
CHEAP = 16
# What is left of a coefficient in units of 1/UNIT, in its second column.
FINE = 2.0**27


class Seen(NamedTuple):
    """How many trials there were, and what their contexts left to see, in units of 2⁻³².

    `distorted` counts those whose context was not (0, 1); `low` and `high` add up the lowest
    coefficient, and 1 minus the highest.
    """

    trials: int = 0
    distorted: int = 0
    low: int = 0
    high: int = 0

    def plus(self, other: Seen) -> Seen:
        """Return the sums of both."""
        return Seen(*(a + b for a, b in zip(self, other, strict=True)))

    def number(self) -> int | float:
        """Return the number of trials, the sum of their weights."""
        whole, rest = divmod(self.trials, int(trials.FRACTIONS))
        return whole if not rest else self.trials / trials.FRACTIONS

    def share(self) -> float:
        """Return what distortion leaves of a trial, on average: min(1 − B̄, Ā + B̄).

        1 − B̄ where certainty stays certain, A + B = 1; and its mirror image, where failures
        are named instead.
        """
        return max(self.trials - max(self.low, self.high), 1) / self.trials

    def spread(self) -> float:
        """Return the sum over all trials of what π can change, |A|."""
        return (self.trials - self.low - self.high) / trials.FRACTIONS


class Affine(NamedTuple):
    """What affine contexts of windows add up to: S, n, Σ A and Σ B; P(success) = A π + B."""

    won: Floats
    held: Floats
    gain: Floats
    offset: Floats


class Evidence(NamedTuple):
    """Additive statistics of trials.

    Parameters
    ----------
    rows : array of shape (n,) or None
        The row of X at which each was made; trials that teach nothing are not among them. None:
        all of them, in their order.
    counts : array of shape (c, n)
    shifts : Shifts or None
        Distorted trials.
    seen : Seen
        What they add to the trials seen.
    polynomials : tuple of polynomials
        Those counted, in the order of their counts.
    """

    rows: Ints | None
    counts: trials.Columns
    shifts: Shifts | None
    seen: Seen
    polynomials: tuple[Polynomial, ...] = ()

    def present(self, n_rows: int) -> npt.NDArray[np.bool_]:
        """Return which rows of X there are trials of."""
        if self.rows is None:
            return np.ones(n_rows, dtype=np.bool_)
        mask = np.zeros(n_rows, dtype=np.bool_)
        mask[self.rows] = True
        return mask

    def weights(self, n_classes: int) -> Floats:
        """Return how many trials each stands for."""
        counts = self.counts[: 2 * n_classes].T
        total = trials.untallied(counts, n_classes).sum(axis=1).astype(np.float64)
        if self.shifts is not None:
            total += self.shifts.held * self.shifts.sizes()
        if self.polynomials:
            total += _wholes(self.counts[OTHERS:].T).sum(axis=1)
        return np.asarray(total)


def plain(columns: trials.Columns, weight: Floats | None) -> Evidence:
    """Return the evidence of undistorted trials, given the outcomes (K, t) and their weights."""
    counts = trials.tally(columns, weight)
    sums = counts.sum(axis=1, dtype=np.int64).tolist()
    wholes, fractions = sums[: len(columns)], sums[len(columns) :]
    seen = Seen(sum(wholes) * int(trials.FRACTIONS) + sum(fractions))
    present = np.any(counts, axis=0)
    if present.all():
        return Evidence(None, counts, None, seen)
    return Evidence(np.flatnonzero(present), counts[:, present], None, seen)


def distorted(
    columns: trials.Columns,
    weight: Floats | None,
    context: Floats,
    sharing: str,
    known: tuple[Polynomial, ...] = (),
) -> Evidence:
    """Return the evidence of trials under contexts (t, p + 1), given outcomes (2, t) and weights.

    `known` are polynomials counted already. Raises for an outcome that was impossible.
    """
    if context.shape[1] == 1:
        context = np.repeat(context, 2, axis=1)
    # Weights too small to be counted are none, as without contexts.
    there = np.asarray(columns > 0)
    if weight is not None:
        there &= weight * trials.FRACTIONS > 0.5
    _require_possible(there, context)
    happened = [_happened(columns[k], there[k], weight, context, bool(k)) for k in (0, 1)]
    learned = _Trials(*(np.concatenate(parts) for parts in zip(*happened, strict=True)))
    if contexts.is_affine(learned.context).all():
        learned = learned._replace(context=learned.context[:, [0, -1]])
    trials.require_countable("trials", learned.held * learned.size, trials.MOST / lattice.UNIT)
    return _mean(learned) if sharing == "mean" else _exact(learned, known)


class _Trials(NamedTuple):
    """Trials that teach something: row of X, how many, what each counts for, outcome, context.

    A weight that is a whole number is so many trials, another is the size of one.
    """

    rows: Ints
    held: Ints
    size: Floats
    success: npt.NDArray[np.bool_]
    context: Floats

    def likelihood(self) -> Floats:
        """Return the coefficients of the probability of what happened."""
        return np.where(self.success[:, None], self.context, 1.0 - self.context)


def _require_possible(there: npt.NDArray[np.bool_], context: Floats) -> None:
    """Raise for the first outcome that cannot have happened."""
    never = np.asarray(~context.any(axis=1))
    always = np.asarray((context == 1.0).all(axis=1))
    wrong = (there[1] & never) | (there[0] & always)
    if wrong.any():
        row = int(np.argmax(wrong))
        found, sure = ("success", 0) if never[row] else ("failure", 1)
        raise ValueError(
            f"context row {row}: found {context[row].tolist()}, under which the probability of "
            f"success is {sure} for every π, and a {found}; this cannot happen"
        )


def _happened(
    amount: Any,
    there: npt.NDArray[np.bool_],
    weight: Floats | None,
    context: Floats,
    success: bool,
) -> _Trials:
    """Return the trials that ended so, and teach something."""
    rows = np.flatnonzero(there)
    likelihood = context[rows] if success else 1.0 - context[rows]
    top = likelihood.max(axis=1)
    rows = rows[top - likelihood.min(axis=1) > ROUNDING * top]
    size = np.ones(len(rows)) if weight is None else weight[rows]
    whole = size == np.floor(size)
    held = amount[rows] * np.where(whole, size, 1.0).astype(np.int64)
    return _Trials(
        rows, held, np.where(whole, 1.0, size), np.full(len(rows), success), context[rows]
    )


# Exact -------------------------------------------------------------------------------------


def _exact(learned: _Trials, known: tuple[Polynomial, ...]) -> Evidence:
    from betafield.windows import Shifts

    likelihood = learned.likelihood()
    is_affine = contexts.is_affine(learned.context)
    pure = np.stack([is_affine & (likelihood[:, k] == 0.0) for k in (-1, 0)])
    shifted = is_affine & ~pure.any(axis=0)
    sized = learned.size != 1.0
    shifts = Shifts(
        lattice.shift(np.where(shifted[:, None], likelihood[:, [0, -1]], 1.0)),
        np.where(shifted, learned.held, 0),
        np.where(shifted, learned.size, 1.0) if sized.any() else None,
    )
    counts = trials.tally(pure * learned.held, learned.size)
    polynomials, numbers = _numbered(likelihood[~is_affine], known)
    if polynomials:
        counts = _with_polynomials(counts, learned, ~is_affine, numbers, len(polynomials))
    return Evidence(
        learned.rows,
        counts,
        shifts if shifted.any() else None,
        _seen(learned),
        polynomials,
    )


def _numbered(
    likelihood: Floats, known: tuple[Polynomial, ...]
) -> tuple[tuple[Polynomial, ...], Ints]:
    """Return all polynomials counted, and the number of each row's among them."""
    rows = likelihood / likelihood.max(axis=1, keepdims=True)
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    places = {polynomial: i for i, polynomial in enumerate(known)}
    numbers = [places.setdefault(tuple(row), len(places)) for row in distinct.tolist()]
    _require_few(len(places))
    return tuple(places), np.array(numbers, dtype=np.int64)[which.reshape(-1)]


def _with_polynomials(
    counts: trials.Columns,
    learned: _Trials,
    there: npt.NDArray[np.bool_],
    numbers: Ints,
    n_polynomials: int,
) -> npt.NDArray[Any]:
    """Return counts and two columns a polynomial: its trials, and their fractions.

    Of many polynomials most columns are 0: they are never written in wider numbers than needed.
    """
    from betafield.windows.base import narrowest

    amounts = trials.tally(learned.held[None, there], learned.size[there])
    most = int(max(counts.max(initial=0), amounts.max(initial=0)))
    columns = np.zeros((OTHERS + 2 * n_polynomials, len(there)), dtype=narrowest(most))
    columns[: len(counts)] = counts
    for i, amount in enumerate(amounts):
        columns[OTHERS + 2 * numbers + i, np.flatnonzero(there)] = amount
    return columns


def _require_few(n: int) -> None:
    if n > MOST_POLYNOMIALS:
        raise ValueError(
            f"context: found {n} distinct polynomials, a context and its outcome each; at most "
            f"{MOST_POLYNOMIALS} can be counted apart, so round their coefficients"
        )


def recounted(
    parts: list[Places], theirs: tuple[Polynomial, ...], ours: tuple[Polynomial, ...]
) -> tuple[tuple[Polynomial, ...], list[Places]]:
    """Return the union of two lists of polynomials, and copies of their places counted by it."""
    from betafield.windows import Places

    union = {polynomial: i for i, polynomial in enumerate(dict.fromkeys((*ours, *theirs)))}
    _require_few(len(union))
    at = np.array([OTHERS + 2 * union[polynomial] for polynomial in theirs])
    moved = []
    for places in parts:
        counts = np.zeros((OTHERS + 2 * len(union), places.size), dtype=np.int64)
        counts[:OTHERS] = places.counts[:OTHERS]
        counts[at], counts[at + 1] = places.counts[OTHERS::2], places.counts[OTHERS + 1 :: 2]
        moved.append(Places(places.axes.copy(), counts, places.shifts))
    return tuple(union), moved


# Mean --------------------------------------------------------------------------------------


def _mean(learned: _Trials) -> Evidence:
    is_affine = contexts.is_affine(learned.context)
    if not is_affine.all():
        row = int(learned.rows[~is_affine].min())
        raise ValueError(
            f"context row {row}: found a polynomial of degree {learned.context.shape[1] - 1}; "
            "sharing='mean' is for affine contexts, use sharing='exact'"
        )
    outcomes = np.stack([~learned.success, learned.success])
    counts = trials.tally(outcomes * learned.held, learned.size)
    low, high = learned.context.T
    if (low > 0.0).any() or (high < 1.0).any():
        missing = np.zeros((OTHERS - len(counts), counts.shape[1]), dtype=np.int64)
        lost = _split(learned, low), _split(learned, 1.0, high)
        counts = np.concatenate([counts, missing, *lost], dtype=np.int64)
    return Evidence(learned.rows, counts, None, _seen(learned))


def _split(learned: _Trials, value: Floats | float, less: Floats | float = 0.0) -> Ints:
    """Return value − less, times each trial's size, in units of 1/UNIT and of 1/(UNIT · FINE).

    Coefficients near 0 and near 1 keep their digits: the rest is taken off before it is rounded.
    """
    coarse = np.floor((value - less) * learned.size * lattice.UNIT)
    rest = np.maximum((value - coarse / (lattice.UNIT * learned.size)) - less, 0.0)
    fine = np.rint(rest * learned.size * (lattice.UNIT * FINE))
    return np.stack([coarse, fine]).astype(np.int64) * learned.held


def _seen(learned: _Trials) -> Seen:
    """Return what these trials leave to see."""
    lowest, highest = learned.context.min(axis=1), learned.context.max(axis=1)
    plain = (learned.context[:, 0] == 0.0) & (learned.context[:, -1] == 1.0)
    plain &= contexts.is_affine(learned.context)
    parts = (np.ones(len(lowest)), ~plain, lowest, 1.0 - highest)
    units = [np.rint(part * learned.size * trials.FRACTIONS) for part in parts]
    return Seen(*(_exact_dot(unit.astype(np.int64), learned.held) for unit in units))


def _exact_dot(a: Ints, b: Ints) -> int:
    """Return Σ a b, whatever its size."""
    if float(np.dot(a.astype(np.float64), b)) < trials.MOST:
        return int(np.dot(a, b))
    return sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))


# Reading -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """What the sums of a window mean.

    Parameters
    ----------
    n_classes : int
    sharing : {"exact", "mean"}
    width : int
        Counts among the sums; points of the lattice follow them.
    span : (int, int)
        The first of those points, and their number.
    polynomials : tuple of polynomials
        Those counted.
    n_jobs : int or None
        Threads for posteriors that need them.
    """

    n_classes: int
    sharing: str = "exact"
    width: int = 2
    span: tuple[int, int] = (0, 0)
    polynomials: tuple[Polynomial, ...] = ()
    n_jobs: int | None = None

    def posterior(self, sums: Ints, shapes: Floats) -> Posterior:
        """Return the posteriors of windows with these sums, given the prior's shapes (m, K)."""
        if not self.is_plain:
            return self._mean(sums, shapes) if self.sharing == "mean" else self._exact(sums, shapes)
        shapes = shapes + self.trials(sums)
        return Dirichlet(shapes) if self.n_classes > 2 else Beta(shapes[:, 1], shapes[:, 0])

    @property
    def is_plain(self) -> bool:
        """Whether the sums count undistorted trials only."""
        return not self.span[1] and self.width <= 2 * self.n_classes

    def trials(self, sums: Ints) -> npt.NDArray[Any]:
        """Return the Beta counts, a column a class."""
        return trials.untallied(sums[..., : min(self.width, 2 * self.n_classes)], self.n_classes)

    def size(self, sums: Ints) -> Floats:
        """Return the number of trials."""
        total = self.trials(sums).sum(axis=-1) + sums[..., self.width :].sum(axis=-1) / lattice.UNIT
        if self.polynomials:
            total = total + self._repeats(sums).sum(axis=-1)
        return np.asarray(total, dtype=np.float64)

    @property
    def is_summed(self) -> bool:
        """Whether the sums tell successes and contexts, and not likelihoods."""
        return self.is_plain or self.sharing == "mean"

    def affine(self, sums: Ints) -> Affine:
        """Return what the contexts of windows add up to, where they are summed."""
        held = self.trials(sums)
        won, held = held[..., 1].astype(np.float64), held.sum(axis=-1).astype(np.float64)
        if self.is_plain:
            return Affine(won, held, held, np.zeros_like(held))
        low, low_rest, high, high_rest = np.moveaxis(sums[..., OTHERS : OTHERS + 4], -1, 0)
        offset = (low + low_rest / FINE) / lattice.UNIT
        return Affine(won, held, held - offset - (high + high_rest / FINE) / lattice.UNIT, offset)

    def likelihoods(self, sums: Ints) -> tuple[Floats, Floats]:
        """Return numbers of trials (…, c) and the logarithms (c,) of their ratios l₁/l₀."""
        first, points = self.span
        ratios = lattice.STEP * np.arange(first, first + points)
        amounts = [self.trials(sums), sums[..., self.width :] / lattice.UNIT]
        return np.concatenate(amounts, axis=-1), np.concatenate([[-np.inf, np.inf], ratios])

    @cached_property
    def _order(self) -> npt.NDArray[np.intp]:
        """An order of the polynomials that does not depend on which came first."""
        return np.array(
            sorted(range(len(self.polynomials)), key=lambda i: self.polynomials[i]), dtype=np.intp
        )

    @cached_property
    def _coefficients(self) -> Floats:
        """The polynomials, in that order, all of the highest degree."""
        return np.concatenate([_raised([self.polynomials[i]], self._degree) for i in self._order])

    def _repeats(self, sums: Ints) -> Floats:
        """Return the number of trials of each polynomial."""
        return _wholes(sums[..., OTHERS : self.width])[..., self._order]

    def _exact(self, sums: Ints, shapes: Floats) -> Contextual:
        """Return the posterior under the likelihood of all trials of the window."""
        beta, alpha = (shapes + self.trials(sums)).T
        options: dict[str, Any] = {}
        if self.polynomials:
            options = {"polynomials": self._coefficients, "repeats": self._repeats(sums)}
        if sums.shape[1] > self.width:
            options |= {"amounts": sums[:, self.width :] / lattice.UNIT, "first": self.span[0]}
        return Contextual(alpha, beta, n_jobs=self.n_jobs, **options)

    def _mean(self, sums: Ints, shapes: Floats) -> Contextual:
        """Return the posterior as if all trials of the window had its mean context."""
        held = self.trials(sums)
        rows = _mean_likelihoods(sums, held.sum(axis=1))
        is_lost, is_won = rows[..., 1] == 0.0, rows[..., 0] == 0.0
        shifted = ~(is_won | is_lost)
        return Contextual(
            shapes[:, 1] + (held * is_won).sum(axis=1),
            shapes[:, 0] + (held * is_lost).sum(axis=1),
            shifts=lattice.shift(np.where(shifted[..., None], rows, 1.0)),
            trials=held * shifted,
            n_jobs=self.n_jobs,
        )

    # Leaving out.

    def left_out(self, places: Places) -> LeftOut:
        """Return the trials of some places, to be taken off their windows one at a time."""
        parts = self._counted_mean(places) if self.sharing == "mean" else self._counted(places)
        if places.shifts is not None:
            parts.append(self._shifted(places.shifts))
        return LeftOut(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def log_scores(self, out: LeftOut, sums: Ints, shapes: Floats) -> Floats:
        """Return log P(outcome | the other trials of its window) of each trial left out.

        E[l(π)] under the posterior without the trial, l its likelihood; up to a constant that
        is the same for every window.
        """
        rest, shapes = sums[out.place] - out.own, shapes[out.place]
        if self.polynomials:
            shares = self._exact(rest, shapes).moments(self._degree)
        else:
            mean = self.posterior(rest, shapes).mean()
            shares = np.stack([1.0 - mean, mean], axis=1)
        return np.asarray(np.log(np.sum(shares * out.likelihood, axis=1)))

    @property
    def cost(self) -> float:
        """About how much a posterior costs, against one without polynomials."""
        return 1.0 + len(self.polynomials) / CHEAP

    def _counted(self, places: Places) -> list[LeftOut]:
        """Return the counted trials of each class and each polynomial."""
        failure, success = _raised([[1.0, 0.0], [0.0, 1.0]], self._degree)
        columns = [(0, 2, failure), (1, 3, success)]
        for i, polynomial in enumerate(self.polynomials):
            whole = OTHERS + 2 * i
            columns.append((whole, whole + 1, _raised([polynomial], self._degree)[0]))
        parts = []
        for whole, fraction, likelihood in columns:
            part = self._taken(places, whole, fraction)
            rows = np.broadcast_to(likelihood, (len(part.place), len(likelihood)))
            parts.append(part._replace(likelihood=rows))
        return parts

    def _counted_mean(self, places: Places) -> list[LeftOut]:
        """Return the trials of each class; all of a place have its mean context."""
        sums = places.counts.T.astype(np.int64)
        held = self.trials(sums).sum(axis=1)
        rows, each = _mean_likelihoods(sums, held), sums[:, OTHERS:] / held[:, None]
        parts = []
        for outcome in (0, 1):
            part = self._taken(places, outcome, outcome + 2)
            one = np.minimum(part.weight, 1.0)[:, None]
            part.own[:, OTHERS:] = np.rint(each[part.place] * one)
            parts.append(part._replace(likelihood=rows[part.place, outcome]))
        return parts

    def _taken(self, places: Places, whole: int, fraction: int) -> LeftOut:
        """Return the trials that two counts tell of; where less than one is there, that."""
        wholes = places.counts[whole].astype(np.int64)
        rests = places.counts[fraction].astype(np.int64) if fraction < self.width else 0 * wholes
        place = np.flatnonzero(wholes + rests)
        own = np.zeros((len(place), self.width + self.span[1]), dtype=np.int64)
        own[:, whole] = np.minimum(wholes[place], 1)
        if fraction < self.width:
            own[:, fraction] = np.where(wholes[place] > 0, 0, rests[place])
        weight = wholes[place] + rests[place] / trials.FRACTIONS
        return LeftOut(place, own, weight, np.empty((len(place), 0)))

    def _shifted(self, shifts: Shifts) -> LeftOut:
        """Return the trials on the lattice."""
        place = np.flatnonzero(shifts.held)
        values, held, size = shifts.values[place], shifts.held[place], shifts.sizes()[place]
        own = np.zeros((len(place), self.width + self.span[1]), dtype=np.int64)
        at = lattice.position(values) - self.span[0] + self.width
        units = lattice.weights(values, np.minimum(size, 1.0))
        own[np.arange(len(place))[:, None], at[:, None] + np.arange(lattice.POINTS)] = units
        ends = np.exp(np.stack([-np.maximum(values, 0.0), np.minimum(values, 0.0)], axis=1))
        return LeftOut(place, own, held * size, _raised(ends, self._degree))

    @cached_property
    def _degree(self) -> int:
        """The highest degree of a trial's likelihood."""
        return max([2, *map(len, self.polynomials)]) - 1


class LeftOut(NamedTuple):
    """Trials of places: which place, what to take off its window, how many, likelihood."""

    place: Ints
    own: Ints
    weight: Floats
    likelihood: Floats


def _wholes(columns: npt.NDArray[Any]) -> Floats:
    """Return the amounts of pairs of columns: trials, and their fractions."""
    return np.asarray(columns[..., ::2] + columns[..., 1::2] / trials.FRACTIONS)


def _raised(rows: Any, degree: int) -> Floats:
    return contexts.elevate(np.asarray(rows, dtype=np.float64), degree)


def _mean_likelihoods(sums: Ints, held: npt.NDArray[Any]) -> Floats:
    """Return (m, 2, 2): of a failure and of a success, under the mean context, l₀ and l₁.

    1 − B̄ and Ā + B̄ are what B and 1 − A − B leave of the trials, subtracted as whole numbers.
    """
    low, low_rest, high, high_rest = sums[:, OTHERS : OTHERS + 4].T
    units = np.rint(held * lattice.UNIT).astype(np.int64)
    coarse = np.stack([units - low, high, low, units - high])
    fine = np.stack([-low_rest, high_rest, low_rest, -high_rest])
    means = (coarse + fine / FINE) / (lattice.UNIT * np.maximum(held, 1.0 / FINE))
    return np.asarray(means.T.clip(0.0, 1.0).reshape(-1, 2, 2))
