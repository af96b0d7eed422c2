"""Which windows predict best: widths, degrees and relevances, weighed by leaving trials out.

A candidate is a relevance of each feature, by which its distances are multiplied, a width Δ and
the degree of a local polynomial. Its score is Σ log P(outcome of a trial | the others of its
window); its complexity k = Σ h, h the leverage of a trial, is the number of parameters that its
fits amount to. With k* that of the best candidate, its weight is

    w ∝ exp((score − k/4 − r/2) / max(1, d² k*/12)),

r the number of steps by which its relevances, powers of 1/4, are less than 1, and d taken as 3 at
the most. Parameters cost, for scores are noisy, those of narrow windows most. The best candidate's
error is about k*/2 in units of scores, and more the more dimensions there are: one that does worse
by a part of that is still worth keeping, or intervals would leave out the error of the windows'
width.

Wide windows of many trials cost time and are seldom best. All widths are first weighed on a
sample of the places, then those that were not far behind on a larger one, where windows hold more
trials and may be narrower. Where there are more places still, widths shrink as theory has it:
Δ ∝ t^(−1/(2·degree + 2 + d)).

Samples are chosen by a hash of the coordinates, and sorted: neither the order of the trials nor
their batches make a difference.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, softmax

from betafield import local
from betafield.bandwidth import candidates

if TYPE_CHECKING:
    from betafield.sharing import Reading
    from betafield.windows import Forest, Places
    from betafield.windows.moments import Weigh

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Records = npt.NDArray[Any]
Relevance = tuple[float, ...]
Band = tuple[float, float]

# Places of the first sample, how many times more each time, and of the last at the most.
FIRST, GROWTH, MOST = 1_024, 8, 1 << 16
# Places at which trials are left out at the most, at the most where that is slow, and at a time.
QUERIES, FEWEST, BLOCK = 4_096, 250, 2_048
# In larger samples than LARGE, trials of a hole are left out together, so that all trials are
# scored at so many places. A hole is at most this part of the narrowest window.
HOLES, HOLE = 2_048, 1 / 16
# What a parameter costs.
PRICE = 0.25
# Parameters of the best candidate, times d² (d at most 3), beyond which values are tempered.
PARAMETERS = 12.0
# Candidates further below the best are not tried on a larger sample.
MARGIN = 12.0
# Of the weights, this much is kept, in so many candidates at the most.
HEAVY, HEAVIEST = 0.95, 12
# A relevance is a power of FACTOR (a power of 2: nothing is rounded), and at least LEAST of the
# highest; a step away from equal ones costs STEP_PRICE. RELEVANCES go on to a larger sample, one
# beyond LARGE: holes of different shapes hold different trials, and trials are then held but once.
FACTOR, LEAST, STEP_PRICE, RELEVANCES = 4.0, 4.0**-5, 0.5, 4
LARGE = 1 << 15
# Values this close, relatively, are a tie: windows hold the same trials. The wider one wins, for
# it says more between places.
TIE = 1e-9


class Candidate(NamedTuple):
    """Windows, how they did when trials were left out, and the weight that it gave them."""

    relevance: Relevance
    width: float
    degree: int
    score: float
    complexity: float
    weight: float


def records(kept: list[Candidate]) -> Records:
    """Return candidates as a table, a column a field.

    Examples
    --------
    >>> records([given(0.5, 2, d=3)])["relevance"]
    array([[1., 1., 1.]])
    """
    kinds: list[Any] = [(name, np.float64) for name in Candidate._fields]
    kinds[0] = ("relevance", np.float64, (len(kept[0].relevance),))
    kinds[2] = ("degree", np.int64)
    return np.array([tuple(candidate) for candidate in kept], dtype=kinds)


def given(width: float, degree: int, d: int) -> Candidate:
    """Return the only candidate, which nothing was weighed against."""
    return Candidate((1.0,) * d, width, degree, np.nan, np.nan, 1.0)


def shrunk(kept: Records, growth: float, sides: Floats, metric: str) -> Records:
    """Return candidates for so many times more trials; windows that hold all trials still do."""
    result = kept.copy()
    rate = -1.0 / (2.0 * kept["degree"] + 2.0 + dimensions(sides))
    widest = np.array([diameter(sides * relevance, metric) for relevance in kept["relevance"]])
    result["width"] *= np.where(kept["width"] < widest * (1.0 - TIE), growth**rate, 1.0)
    return result


# Scores ------------------------------------------------------------------------------------


class Scores(NamedTuple):
    """Scores and complexities (m, W, D) of the trials left out at m places, and their number."""

    score: Floats
    complexity: Floats
    trials: Floats

    def counting(self, trials: float) -> Scores:
        """Return the scores as if so many trials had been left out: holes overlap or leave gaps."""
        times = trials / self.trials.sum()
        return Scores(*(part * times for part in self))

    def totals(self) -> tuple[Floats, Floats]:
        """Return the sums over places of scores and of complexities."""
        return self.score.sum(axis=0), self.complexity.sum(axis=0)


class Scoring(Protocol):
    """How windows of a kind predict trials."""

    @property
    def degrees(self) -> tuple[int, ...]:
        """The degrees weighed."""

    def most(self, is_large: bool, /) -> int:
        """Return at how many places trials of a sample are left out, at the most."""

    def __call__(
        self, windows: Forest, asked: Places, radii: Floats, hole: float, shapes: Floats, /
    ) -> Scores:
        """Leave out each trial of the places asked or, together, those of a hole around them."""


@dataclass(frozen=True)
class LocalScoring:
    """Two classes, no contexts: local polynomials of some degrees.

    With leverage h at its own place, the fit without a trial of outcome s is (p̂ − h s)/(1 − h).
    """

    weigh: Weigh
    degrees: tuple[int, ...]
    n_jobs: int | None = None

    def most(self, is_large: bool) -> int:
        """Return the number of holes, or of places."""
        return HOLES if is_large else QUERIES

    def __call__(
        self, windows: Forest, asked: Places, radii: Floats, hole: float, shapes: Floats
    ) -> Scores:
        """Leave trials out, some places at a time: moments may take kilobytes a place."""
        leave = self._leave_hole if hole else self._leave_one
        blocks = [slice(i, i + BLOCK) for i in range(0, asked.size, BLOCK)]
        parts = [leave(windows, asked.where(b), radii, hole, shapes[b]) for b in blocks]
        scores = Scores(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        return scores.counting(self.weigh(windows.totals[:, None])[0].sum()) if hole else scores

    def _leave_one(
        self, windows: Forest, asked: Places, radii: Floats, _: float, shapes: Floats
    ) -> Scores:
        sums = self._moments(windows, asked, radii, hole=False)
        held, won = self.weigh(asked.counts)
        fits = local.fits(sums, radii, windows.d, self.degrees)
        # One trial, or what is there of one where weights make it less.
        if_lost, if_won = (
            _chance(*fits.without(np.minimum(there, 1.0), outcome), shapes)
            for there, outcome in ((held - won, 0.0), (won, 1.0))
        )
        return _scores(fits, held, won, if_lost, if_won)

    def _leave_hole(
        self, windows: Forest, asked: Places, radii: Floats, hole: float, shapes: Floats
    ) -> Scores:
        sums = self._moments(windows, asked, np.concatenate([[hole], radii]), hole=True)
        held, won = local.totals(sums[:, 0], windows.d, max(self.degrees))
        fits = local.fits(sums[:, 1:], radii, windows.d, self.degrees)
        chance = _chance(*fits.estimate(), shapes)
        return _scores(fits, held, won, chance, chance)

    def _moments(self, windows: Forest, asked: Places, radii: Floats, hole: bool) -> Floats:
        queries = np.ascontiguousarray(asked.axes.T)
        return windows.moments(queries, radii, max(self.degrees), self.weigh, self.n_jobs, hole)


def _chance(share: Floats, worth: Floats, shapes: Floats) -> Floats:
    """Return the posterior mean of π, from p̂, n_eff and the prior's shapes."""
    failure, success = shapes.T[:, :, None, None]
    return np.asarray((success + worth * share) / (success + failure + worth))


def _scores(fits: local.Fits, held: Floats, won: Floats, if_lost: Floats, if_won: Floats) -> Scores:
    """Return the scores of trials, from the chances of success without a lost one, a won one."""
    trials, wins = held[:, None, None], won[:, None, None]
    score = wins * np.log(if_won) + (trials - wins) * np.log1p(-if_lost)
    return Scores(score, trials * np.minimum(fits.leverage, 1.0), held)


@dataclass(frozen=True)
class CountScoring:
    """Several classes, or trials under contexts: the sums of windows, degree 0."""

    reading: Reading
    n_jobs: int | None = None

    @property
    def degrees(self) -> tuple[int, ...]:
        """Only 0."""
        return (0,)

    def most(self, _: bool) -> int:
        """Return fewer places where a posterior costs more, but enough to tell widths apart."""
        return max(FEWEST, int(QUERIES / self.reading.cost))

    def __call__(
        self, windows: Forest, asked: Places, radii: Floats, _: float, shapes: Floats
    ) -> Scores:
        """Leave out each trial, a width at a time."""
        queries = np.ascontiguousarray(asked.axes.T)
        reading = replace(self.reading, width=windows.width, span=windows.span)
        held, score_of = (_of_classes if reading.n_classes > 2 else _of_contexts)(reading, asked)
        score, complexity = np.empty((2, asked.size, len(radii), 1))
        for i, radius in enumerate(radii):
            sums = windows.sums(queries, float(radius), self.n_jobs)
            score[:, i, 0] = score_of(sums, shapes)
            complexity[:, i, 0] = held / np.maximum(reading.size(sums), 1.0)
        return Scores(score, complexity, held)


# Sums of windows and the prior's shapes → the scores of places.
ScoreOf = Callable[[Ints, Floats], Floats]


def _of_classes(reading: Reading, asked: Places) -> tuple[Floats, ScoreOf]:
    """Return the trials of each place, and how they are scored when left out."""
    counts = reading.trials(asked.counts.T).astype(np.float64)
    return counts.sum(axis=1), lambda sums, shapes: held_out_score(
        counts, reading.trials(sums), shapes
    )


def _of_contexts(reading: Reading, asked: Places) -> tuple[Floats, ScoreOf]:
    out = reading.left_out(asked)

    def by_place(amounts: Floats) -> Floats:
        return np.bincount(out.place, amounts, asked.size).astype(np.float64)

    return by_place(out.weight), lambda sums, shapes: by_place(
        out.weight * reading.log_scores(out, sums, shapes)
    )


def held_out_score(counts: Floats, sums: Floats, shapes: Floats) -> Floats:
    """Return Σ log P(a trial's outcome | the other trials of its window), a place at a time.

    With N_c trials of class c in the window, a_c the prior's shapes, and the trial itself of
    class c taken off: (a_c + N_c − 1) / (Σ a + Σ N − 1). Where weights make a place worth less
    than one trial, what is there is taken off.

    Parameters
    ----------
    counts : array of shape (m, k)
        Trials at each place, a column a class.
    sums : array of shape (m, k)
        Trials in the window of each place, its own included.
    shapes : array that broadcasts against (m, k)
        The prior's.
    """
    own = np.minimum(counts, 1.0)
    alone = np.broadcast_to(shapes, sums.shape) + sums
    chance = (alone - own) / (alone.sum(axis=1, keepdims=True) - own)
    return np.asarray(np.sum(counts * np.log(chance), axis=1))


# Weights -----------------------------------------------------------------------------------


class Sample(NamedTuple):
    """Some places, sorted, the share of all that they are, and whether they are many."""

    places: Places
    share: float
    is_large: bool

    def n_points(self) -> int:
        """Return the number of different points; at one there may be several shifts."""
        axes = self.places.axes
        return 1 + int(np.any(axes[:, 1:] != axes[:, :-1], axis=0).sum())

    def some(self, n: int) -> npt.NDArray[np.bool_]:
        """Return a mask of about n of the places, or of all if there are no more."""
        size = self.places.size
        share = self.share * n / size if size > n else 1.0
        return below(hashes(self.places.axes), share)


class Table(NamedTuple):
    """Scores and complexities (W, D) of the widths and degrees of one relevance; what it costs."""

    widths: Floats
    score: Floats
    complexity: Floats
    cost: float

    def values(self, price: float) -> Floats:
        """Return the scores, parameters and relevance paid for."""
        return self.score - price * self.complexity - self.cost

    def value(self, price: float) -> float:
        """Return log Σ exp(value) of all candidates."""
        return float(logsumexp(self.values(price)))


@dataclass(frozen=True, eq=False)
class Weighing:
    """Weighs candidates on growing samples of the trials.

    Parameters
    ----------
    parts : list of Places
        All trials, in scaled units, every relevance 1.
    metric : str
    scoring : Scoring
    shapes_at : callable
        Axes (d, m) in scaled units → the prior's shapes there.
    sides : array of shape (d,)
        Lengths of the domain.
    width : float or None
        The one width there is to be, if any.
    relevances : bool
        Whether features may differ in relevance.
    price : float
        What a parameter costs.
    total : int or None
        The number of all places, where parts have only some: those with the lowest hashes.
    """

    parts: list[Places]
    metric: str
    scoring: Scoring
    shapes_at: Callable[[Floats], Floats]
    sides: Floats
    width: float | None = None
    relevances: bool = False
    price: float = PRICE
    total: int | None = None

    def __call__(self) -> Records:
        """Return the candidates worth keeping, the heaviest first."""
        total = self._n_places
        going: list[Relevance] = [(1.0,) * len(self.sides)]
        band, size = (0.0, np.inf), min(total, FIRST)
        while True:
            sample = self._sample(min(1.0, size / total), size > LARGE)
            tables = self._tables(sample, going, band)
            if size >= min(total, MOST):
                return shrunk(self._kept(tables), 1.0 / sample.share, self.sides, self.metric)
            more = min(total, size * GROWTH, MOST)
            going = list(tables)[:RELEVANCES]
            band, size = self._near(tables, more / size), more

    @functools.cached_property
    def _hashes(self) -> list[npt.NDArray[np.uint64]]:
        return [hashes(part.axes) for part in self.parts]

    @functools.cached_property
    def _n_places(self) -> int:
        """The number of points with trials: one may stand in several parts, and under shifts."""
        if self.total is not None:
            return self.total
        known = self._hashes
        if len(known) == 1 and self.parts[0].shifts is None:
            return known[0].size
        return np.unique(np.concatenate(known)).size

    def _sample(self, share: float, is_large: bool) -> Sample:
        from betafield.windows.base import concatenate

        masks = [below(known, share) for known in self._hashes]
        places = concatenate([p.where(mask) for p, mask in zip(self.parts, masks, strict=True)])
        keys = [] if places.shifts is None else places.shifts.alike()
        return Sample(places.sorted_by(np.lexsort((*keys, *places.axes))), share, is_large)

    def _tables(self, sample: Sample, going: list[Relevance], band: Band) -> dict[Relevance, Table]:
        """Return the tables of these relevances and, where it pays, of others; the best first."""
        if sample.is_large:
            return {going[0]: self._table(sample, going[0], band)}
        table = functools.cache(lambda relevance: self._table(sample, relevance, band))
        tried = self._explored(going, table) if self.relevances else going
        values = {relevance: table(relevance).value(self.price) for relevance in tried}
        best = sorted(tried, key=lambda relevance: -values[relevance])
        return {r: table(r) for r in best if values[r] > values[best[0]] - MARGIN}

    def _explored(
        self, going: list[Relevance], table: Callable[[Relevance], Table]
    ) -> list[Relevance]:
        """Climb to a better relevance, one feature at a time; return all that were tried."""
        values = {relevance: table(relevance).value(self.price) for relevance in going}
        best, before = max(values, key=values.__getitem__), None
        real = np.flatnonzero(self.sides).tolist()
        while best != before and len(real) > 1:
            before = best
            for axis, factor in itertools.product(real, (1.0 / FACTOR, FACTOR)):
                while (tried := _changed(best, real, axis, factor)) is not None:
                    values[tried] = table(tried).value(self.price)
                    if values[tried] <= values[best]:
                        break
                    best = tried
        return list(values)

    def _table(self, sample: Sample, relevance: Relevance, band: Band) -> Table:
        """Return the scores of the widths in a band of volumes."""
        from betafield.windows import Forest

        stretch = np.array(relevance)[:, None]
        places = sample.places._replace(axes=sample.places.axes * stretch)
        widths = self._widths(relevance, sample.n_points(), band)
        asked = places.where(sample.some(self.scoring.most(sample.is_large)))
        hole = self._hole(relevance, widths[0]) if sample.is_large else 0.0
        shapes = self.shapes_at(asked.axes / stretch)
        shapes = np.broadcast_to(shapes, (asked.size, shapes.shape[-1]))
        windows = Forest(len(self.sides), self.metric).insert(places)
        cost = STEP_PRICE * float(np.sum(-np.log(stretch))) / np.log(FACTOR)
        return Table(widths, *self.scoring(windows, asked, widths, hole, shapes).totals(), cost)

    def _hole(self, relevance: Relevance, narrowest: float) -> float:
        """Return the radius of holes that hold all trials together, small beside all windows."""
        sides, d = (self.sides * relevance)[self.sides > 0], dimensions(self.sides)
        part = np.minimum(np.prod(sides) / HOLES, narrowest**d * HOLE)
        return float(part ** (1.0 / d))

    def _widths(self, relevance: Relevance, n_places: int, band: Band) -> Floats:
        if self.width is not None:
            return np.array([self.width])
        sides = self.sides * relevance
        grid = candidates(sides, diameter(sides, self.metric), n_places)
        volumes = np.array([volume(width, sides) for width in grid])
        inside = (volumes >= band[0] * (1.0 - TIE)) & (volumes <= band[1] * (1.0 + TIE))
        return grid[inside] if inside.any() else grid[-1:]

    def _near(self, tables: dict[Relevance, Table], growth: float) -> Band:
        """Return the volumes of windows that may be best for so many times more places."""
        values = {r: table.values(self.price) for r, table in tables.items()}
        best = max(float(value.max()) for value in values.values())
        low, high = float("inf"), 0.0
        for relevance, value in values.items():
            near = tables[relevance].widths[np.any(value > best - MARGIN, axis=1)]
            if near.size:
                sides = self.sides * relevance
                narrower = float(near[0]) * growth ** (-1.0 / (dimensions(sides) + 2))
                low = min(low, volume(narrower, sides))
                high = max(high, volume(float(near[-1]), sides))
        return low, high

    def _kept(self, tables: dict[Relevance, Table]) -> Records:
        """Return the heaviest candidates of all tables."""
        found = [
            Candidate(relevance, float(width), degree, float(score), float(complexity), 0.0)
            for relevance, table in tables.items()
            for width, *rows in zip(table.widths, table.score, table.complexity, strict=True)
            for degree, score, complexity in zip(self.scoring.degrees, *rows, strict=True)
        ]
        values = np.concatenate([table.values(self.price).ravel() for table in tables.values()])
        k = found[int(np.argmax(values))].complexity
        temper = k * min(dimensions(self.sides), 3) ** 2 / PARAMETERS
        weights = softmax(values / max(1.0, temper))
        order = _heaviest_first(weights, np.array([c.width for c in found]))
        enough = 1 + int(np.searchsorted(np.cumsum(weights[order]), HEAVY))
        order = order[: min(enough, HEAVIEST)]
        share = weights[order] / weights[order].sum()
        return records(
            [found[i]._replace(weight=float(w)) for i, w in zip(order, share, strict=True)]
        )


def _heaviest_first(weights: Floats, widths: Floats) -> npt.NDArray[np.intp]:
    """Return the order of the weights; of those that tie, the widest is first."""
    return np.lexsort((-widths, -np.rint(weights / TIE)))


def _changed(relevance: Relevance, real: list[int], axis: int, factor: float) -> Relevance | None:
    """Return the relevance with one feature's changed, the highest 1; None beyond the limits.

    Those that are not real are constant, and stay as they are.
    """
    changed = {k: relevance[k] * (factor if k == axis else 1.0) for k in real}
    highest = max(changed.values())
    if min(changed.values()) < LEAST * highest:
        return None
    return tuple(changed[k] / highest if k in changed else r for k, r in enumerate(relevance))


def dimensions(sides: Floats) -> int:
    """Return the number of features that carry distance, 1 at the least."""
    return max(int(np.count_nonzero(sides)), 1)


def volume(width: float, sides: Floats) -> float:
    """Return about the share of the domain that a window holds.

    Examples
    --------
    >>> volume(0.5, np.array([1.0, 0.25, 0.0]))
    0.5
    """
    return float(np.prod(np.minimum(width / sides[sides > 0], 1.0)))


def diameter(sides: Floats, metric: str) -> float:
    """Return the longest distance in a box; 1 where all points are one."""
    order = {"euclidean": 2, "chebyshev": np.inf, "manhattan": 1}[metric]
    return float(np.linalg.norm(sides, order)) or 1.0


def below(known: npt.NDArray[np.uint64], share: float) -> npt.NDArray[np.bool_]:
    """Return which hashes are below this share of all there are.

    A place is chosen or not wherever and whenever it is seen: neither order nor batches matter.
    """
    if share >= 1.0:
        return np.ones(known.size, dtype=np.bool_)
    return known < np.uint64(share * 2.0**64)


def hashes(axes: Floats) -> npt.NDArray[np.uint64]:
    """Return a well-mixed 64-bit hash of each point (the finaliser of splitmix64, chained)."""
    state = np.zeros(axes.shape[1], dtype=np.uint64)
    for axis in axes:
        # Adding 0.0 makes -0.0 the same as 0.0.
        state = (state ^ (axis + 0.0).view(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state
