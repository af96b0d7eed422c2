"""Which windows predict best: widths, degrees and relevances, weighed by leaving trials out.

A candidate is a relevance of each feature, by which its distances are multiplied, a width Δ and
the degree of a local polynomial. Its score is Σ log P(outcome of a trial | the others of its
window); k = Σ h, h the leverage of a trial, is its effective number of parameters, what its
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
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, softmax

import betafield.choosing.scoring as scores
from betafield.bandwidth import candidates
from betafield.choosing.candidates import (
    HEAVIEST,
    LEAST,
    TIE,
    Candidate,
    Records,
    Relevance,
    diameter,
    dimensions,
    records,
    shrunk,
    volume,
)

if TYPE_CHECKING:
    from betafield.choosing.scoring import Scoring
    from betafield.windows import Places

Floats = npt.NDArray[np.float64]
Band = tuple[float, float]

# Places of the first sample, how many times more each time, and of the last at the most.
FIRST, GROWTH, MOST = 1_024, 8, 1 << 16
# In larger samples than LARGE, trials of a hole are left out together, so that all trials are
# scored at few places. A hole is at most this part of the narrowest window.
HOLE = 1 / 16
# What a parameter costs.
PRICE = 0.25
# Parameters of the best candidate, times d² (d at most 3), beyond which values are tempered.
PARAMETERS = 12.0
# Candidates further below the best are not tried on a larger sample.
MARGIN = 12.0
# Of the weights, this much is kept, in HEAVIEST candidates at the most.
HEAVY = 0.95
# A relevance is a power of FACTOR (a power of 2: nothing is rounded), and at least LEAST of the
# highest; a step away from equal ones costs STEP_PRICE. RELEVANCES go on to a larger sample, one
# beyond LARGE: holes of different shapes hold different trials, and trials are then held but once.
FACTOR, STEP_PRICE, RELEVANCES = 4.0, 0.5, 4
LARGE = 1 << 15


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
    effective_parameters: Floats
    cost: float

    def values(self, price: float) -> Floats:
        """Return the scores, parameters and relevance paid for."""
        return self.score - price * self.effective_parameters - self.cost

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
        part = np.minimum(np.prod(sides) / scores.HOLES, narrowest**d * HOLE)
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
            Candidate(
                relevance, float(width), degree, float(score), float(effective_parameters), 0.0
            )
            for relevance, table in tables.items()
            for width, *rows in zip(
                table.widths, table.score, table.effective_parameters, strict=True
            )
            for degree, score, effective_parameters in zip(self.scoring.degrees, *rows, strict=True)
        ]
        values = np.concatenate([table.values(self.price).ravel() for table in tables.values()])
        k = found[int(np.argmax(values))].effective_parameters
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
