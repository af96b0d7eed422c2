"""Windows of many partitions, on the workers that have them, and the field that asks them.

Sums over the trials near a point can be added up, so every part answers for its own trials, those
whose trials are near enough, and the answers are added up, some at a time.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import dask
import numpy as np
import numpy.typing as npt
from dask.delayed import Delayed, delayed

import betafield.choosing.local as local
import betafield.choosing.weighing as weighing
from betafield.dask.partitions import Regions, blamed, computed, joint, require_kept, together
from betafield.dask.questions import (
    Ask,
    Asked,
    Outline,
    Question,
    Relevance,
    answered,
    noted,
    rounds,
)
from betafield.dask.tasks import Part, Told, added, gathered, learned, n_different, split, tell
from betafield.evidence import Polynomial, Totals
from betafield.field import Field
from betafield.posteriors import Posterior
from betafield.windows import Forest, Places
from betafield.windows.base import padded

Floats = npt.NDArray[np.float64]
Sizes = dict[tuple[Relevance, float | None], int]

# Answers that one task adds up.
FAN_IN = 8
# Ranges of hashes in which places are counted, at most.
RANGES = 64


class Kept(NamedTuple):
    """A part that a worker keeps: what errors call it, where it is, what is known of it."""

    name: str
    part: Delayed
    told: Told


class Windows(Asked):
    """The trials of all partitions, in parts on the workers that have them.

    Parameters
    ----------
    d : int
    metric : str
    kept : sequence of Kept
    regions : Regions or None
        Where trials are, if each part is to have a region of its own.
    relevance : tuple of d floats or None
        By which places are stretched; None: all are 1.
    cell : float or None
        Size of the cells in which trials are gathered.
    sizes : dict or None
        Numbers of places that were counted, by relevance and cell.
    """

    def __init__(
        self,
        d: int,
        metric: str,
        kept: Sequence[Kept] = (),
        regions: Regions | None = None,
        relevance: Relevance | None = None,
        cell: float | None = None,
        sizes: Sizes | None = None,
    ) -> None:
        self.kept, self.regions, self.cell = tuple(kept), regions, cell
        self.relevance = relevance or (1.0,) * d
        self._sizes: Sizes = {} if sizes is None else sizes
        told = [each.told for each in self.kept]
        width = max((len(each.sums) for each in told), default=0)
        totals = sum((padded(each.sums, width) for each in told), np.zeros(width, np.int64))
        has_sizes = any(each.has_sizes for each in told)
        self.outline = Outline(
            d, metric, totals, _joint_span(told), has_sizes, self.relevance, self._sizes
        )

    # Trials.

    def learned(self, bare: Field, names: Sequence[str], reads: Sequence[Delayed]) -> Windows:
        """Return windows of what is read alone; `bare` is the field without trials."""
        model = delayed(bare, pure=False, traverse=False)
        if self.regions is None:
            groups = together(reads)
            parts = [delayed(learned)(model, *(reads[i] for i in group)) for group in groups]
            return self._keeping([joint([names[i] for i in group]) for group in groups], parts)
        regions = delayed(self.regions, pure=False, traverse=False)
        pieces = [delayed(split)(model, regions, read) for read in reads]
        numbers = range(self.regions.number)
        parts = [delayed(gathered)(model, *(each[j] for each in pieces)) for j in numbers]
        return self._keeping([f"region {j}" for j in numbers], parts)

    def merge(self, other: Windows) -> Windows:
        """Return the windows of both, all of which are still there."""
        require_kept([*self.inputs(), *other.inputs()])
        return self._with([*self.kept, *(each for each in other.kept if each.told.size)])

    def counted(self, polynomials: tuple[Polynomial, ...]) -> Windows:
        """Return the same trials, all of them counted by the same polynomials."""
        if all(each.told.polynomials in ((), polynomials) for each in self.kept):
            return self
        return self._keeping(
            [each.name for each in self.kept], self.telling(Part.counted, polynomials)
        )

    @property
    def seen(self) -> Totals:
        """How many trials there are."""
        return functools.reduce(Totals.plus, (each.told.totals for each in self.kept), Totals())

    @property
    def polynomials(self) -> list[tuple[Polynomial, ...]]:
        """Those of each part."""
        return [each.told.polynomials for each in self.kept]

    def _keeping(self, names: Sequence[str], parts: Sequence[Delayed]) -> Windows:
        """Have these parts computed; they stay where they are."""
        with blamed(list(zip(names, parts, strict=True))):
            parts = dask.persist(*parts)
        inputs = list(zip(names, parts, strict=True))
        told = computed([delayed(Part.told)(part) for part in parts], inputs)
        return self._with([Kept(*each) for each in zip(names, parts, told, strict=True)])

    def _with(self, kept: Sequence[Kept]) -> Windows:
        return Windows(self.d, self.metric, kept, self.regions, self.relevance, self.cell)

    # Asking.

    def viewed(self, relevance: Relevance, cell: float | None) -> Windows:
        """Return the same trials, stretched and gathered in cells: workers do so when asked."""
        outline = self.outline
        return Windows(
            outline.d, outline.metric, self.kept, self.regions, relevance, cell, self._sizes
        )

    def reply(self, question: Question) -> npt.NDArray[Any]:
        """Return the answer of all parts together."""
        return self.answers([question])[0]

    def answers(self, questions: Sequence[Question]) -> list[npt.NDArray[Any]]:
        """Return the answers of all parts together."""
        found: list[list[npt.NDArray[Any]]] = [[] for _ in questions]
        for some in rounds(questions, self.outline):
            answers = self._answers([piece for _, piece in some])
            for (n, _), answer in zip(some, answers, strict=True):
                found[n].append(answer)
        return [np.concatenate(each) for each in found]

    def _answers(self, questions: list[Question]) -> list[npt.NDArray[Any]]:
        near = self.near(questions)
        if not near:
            return [question.nothing(self.outline) for question in questions]
        shared = delayed((questions, self.outline), pure=False, traverse=False)
        asked = [all_added(self.telling(Part.answers, shared, of=near))]
        (record,) = computed(asked, self.inputs(near))
        return [each.whole(q, self.outline) for q, each in zip(questions, record, strict=True)]

    def near(self, questions: Sequence[Question]) -> list[int]:
        """Return the numbers of the parts that may have trials near any of the queries."""
        boxes = np.array([each.told.box for each in self.kept])
        near = np.zeros(len(boxes), dtype=np.bool_)
        for question in questions:
            near |= question.are_near(boxes, self.outline)
        return np.flatnonzero(near).tolist()

    def telling(
        self, ask: Callable[..., Any], *asked: Any, of: Sequence[int] | None = None
    ) -> list[Delayed]:
        """Return what all parts say, or some of them, still to be computed."""
        require_kept(self.inputs(of))
        some = self.kept if of is None else [self.kept[i] for i in of]
        return [delayed(tell)(each.part, each.name, each.told.sums, ask, *asked) for each in some]

    def told_now(self, ask: Callable[..., Any], *asked: Any) -> tuple[Any, ...]:
        """Return what all parts say."""
        return computed(self.telling(ask, *asked), self.inputs())

    def inputs(self, of: Sequence[int] | None = None) -> list[tuple[str, Delayed]]:
        """Return all parts, or some of them, with what errors call them."""
        some = self.kept if of is None else [self.kept[i] for i in of]
        return [(each.name, each.part) for each in some]

    # Places.

    @property
    def places(self) -> list[Places]:
        """The places of each part, brought here."""
        stretch = np.array(self.relevance)[:, None]
        found = self.told_now(Part.places_below, 1.0)
        return [each._replace(axes=each.axes * stretch) for some in found for each in some]

    @property
    def size(self) -> int:
        """Number of places; where there are few, one may be counted in each of several parts."""
        key = self.relevance, self.cell
        if key not in self._sizes:
            most = sum(each.told.size for each in self.kept)
            is_few = self.cell is None and most <= local.GATHERED
            self._sizes[key] = most if is_few else self.n_places(*key)
        return self._sizes[key]

    def sampled(self) -> tuple[list[Places], int | None]:
        """Return places enough to weigh windows on, every relevance 1, and the number of all."""
        share, total = 1.0, None
        if sum(each.told.size for each in self.kept) > weighing.MOST:
            total = self.n_places((1.0,) * self.d, None)
            share = min(1.0, weighing.MOST / total)
        found = self.told_now(Part.places_below, share)
        return [places for some in found for places in some], total

    def n_places(self, relevance: Relevance, cell: float | None) -> int:
        """Return the number of different places, or cells, counted a range of hashes at a time."""
        ranges = min(RANGES, len(self.kept))
        hashes: list[Any] = self.telling(Part.hashes, relevance, cell, ranges)
        counts = [delayed(n_different)(*(each[j] for each in hashes)) for j in range(ranges)]
        return int(sum(computed(counts, self.inputs())))

    def forest(self) -> Forest:
        """Return one forest of all trials, every relevance 1, on this machine."""
        parts: list[Forest] = [part.windows for part in self.told_now(Part.itself)]
        return functools.reduce(Forest.merge, parts)


def all_added(records: list[Delayed]) -> Delayed:
    """Return the sums of answers to the same questions, some parts' at a time."""
    while len(records) > 1:
        groups = [records[i : i + FAN_IN] for i in range(0, len(records), FAN_IN)]
        # One by one: of what is in a list, dask forgets what a cluster keeps.
        records = [delayed(added)(*group) for group in groups]
    return records[0]


def _joint_span(told: Sequence[Told]) -> tuple[int, int]:
    """Return the first point of the lattice that any part reaches, and the number of them."""
    spans = [(first, first + n) for first, n in (each.span for each in told) if n]
    first = min((start for start, _ in spans), default=0)
    return first, max((stop for _, stop in spans), default=first) - first


# A field over them -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SpreadField(Field):
    """A `Field` whose trials are spread over workers: all that it asks is asked at once."""

    def posterior(self, points: Floats, ask: Any = None) -> Posterior:
        """Return the posterior of the success probability at each of the points (m, d)."""
        found: Posterior = self.asked(functools.partial(Field.posterior, ask=ask), points)
        return found

    def mean(self, points: Floats, at_once: int = 1 << 23) -> Floats:
        """Return the posterior means at each of the points (m, d)."""
        found: Floats = self.asked(functools.partial(Field.mean, at_once=at_once), points)
        return found

    def n_near(self, points: Floats) -> Floats:
        """Return how many trials the heaviest window has at each point."""
        found: Floats = self.asked(Field.n_near, points)
        return found

    def band(
        self, points: Floats, lipschitz: float, level: float, simultaneous: bool
    ) -> tuple[Floats, Floats]:
        """Return intervals (low, high) that hold π with a probability of at least `level`."""
        low, high = self.asked(banded(lipschitz, level, simultaneous), points)
        return low, high

    def more_trials(
        self, points: Floats, width: float, lipschitz: float, level: float, simultaneous: bool
    ) -> Floats:
        """Return how many more trials make the band this narrow."""
        asked = lipschitz, level, simultaneous
        found: Floats = self.asked(lambda field, at: field.more_trials(at, width, *asked), points)
        return found

    def asked(self, ask: Ask, points: Floats) -> Any:
        """Return what a field with all trials would say, from the parts that may know something."""
        told = self.told
        answers = self.windows.answers(noted(told, ask, points))
        return answered(told, ask, points, iter(answers))

    @property
    def told(self) -> Field:
        """The field without its trials: its windows are an outline."""
        return self.over(self.windows.outline)

    def over(self, windows: Any) -> Field:
        """Return the field that has these windows, on this machine."""
        names = [each.name for each in dataclasses.fields(Field) if not each.name.startswith("_")]
        return Field(**{**{name: getattr(self, name) for name in names}, "windows": windows})

    def prepared(self) -> SpreadField:
        """Return the field after it has counted what it counts before it is first asked."""
        Field.posterior(self.over(self.windows), np.empty((0, self.features.number)))
        return self

    def here(self) -> Field:
        """Return a field on this machine that has learned from all trials."""
        brought = self.over(self.windows.forest())
        return dataclasses.replace(brought, relevance=np.ones_like(self.relevance)).settled()


def banded(lipschitz: float, level: float, simultaneous: bool) -> Ask:
    """Return what asks a field for a band."""
    return functools.partial(
        Field.band, lipschitz=lipschitz, level=level, simultaneous=simultaneous
    )
