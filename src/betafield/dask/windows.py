"""Windows of many partitions, on the workers that have them, and the field that queries them.

Sums over the trials near a point can be added up. So every part with trials near enough answers for
its own, and the answers are summed in a tree.
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

from betafield import choosing
from betafield.bandwidth import candidates, diameter
from betafield.dask.partitions import (
    Regions,
    blamed,
    computed,
    in_tree,
    joint,
    require_kept,
    together,
)
from betafield.dask.questions import NUMBERS, Ask, Asked, Outline, Question, answered, noted, rounds
from betafield.dask.tasks import Part, Told, added, gathered, learned, n_different, split, tell
from betafield.evidence import Polynomial, Totals
from betafield.field import Field
from betafield.smooth import SmoothField
from betafield.windows import Forest, Places
from betafield.windows.base import padded

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# The most ranges of hashes in which places are counted.
RANGES = 64


class Kept(NamedTuple):
    """A part kept by a worker: its name in errors, the task, and its known properties."""

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
        The regions of the parts, if each is to have its own.
    numbers : int
        About how many numbers are sent to workers and back at once.
    """

    def __init__(
        self,
        d: int,
        metric: str,
        kept: Sequence[Kept] = (),
        regions: Regions | None = None,
        numbers: int = NUMBERS,
    ) -> None:
        self.kept, self.regions, self.numbers = tuple(kept), regions, numbers
        super().__init__(_outline(d, metric, [each.told for each in self.kept]))

    # Trials.

    def learned(self, bare: Field, names: Sequence[str], reads: Sequence[Delayed]) -> Windows:
        """Return windows of these inputs only; `bare` is the field without trials."""
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
        """Return the windows of both; raise if a part has been lost."""
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
        """The number of trials, and how distorted they were."""
        return functools.reduce(Totals.plus, (each.told.totals for each in self.kept), Totals())

    @property
    def polynomials(self) -> list[tuple[Polynomial, ...]]:
        """The polynomials of each part."""
        return [each.told.polynomials for each in self.kept]

    def _keeping(self, names: Sequence[str], parts: Sequence[Delayed]) -> Windows:
        """Return windows of these parts, which are computed and stay where they are."""
        with blamed(list(zip(names, parts, strict=True))):
            parts = dask.persist(*parts)
        inputs = list(zip(names, parts, strict=True))
        told = computed([delayed(Part.told)(part) for part in parts], inputs)
        return self._with([Kept(*each) for each in zip(names, parts, told, strict=True)])

    def _with(self, kept: Sequence[Kept]) -> Windows:
        return Windows(self.d, self.metric, kept, self.regions, self.numbers)

    # Queries.

    def reply(self, question: Question) -> Ints:
        """Return the sum of all parts' answers to a question."""
        return self.answers([question])[0]

    def answers(self, questions: Sequence[Question]) -> list[Ints]:
        """Return the sums of all parts' answers."""
        found: list[list[Ints]] = [[] for _ in questions]
        for some in rounds(questions, self.outline, self.numbers):
            answers = self._answers([piece for _, piece in some])
            for (n, _), answer in zip(some, answers, strict=True):
                found[n].append(answer)
        return [np.concatenate(each) for each in found]

    def _answers(self, questions: list[Question]) -> list[Ints]:
        near = self.near(questions)
        if not near:
            return [question.nothing(self.outline) for question in questions]
        shared = delayed((questions, self.outline), pure=False, traverse=False)
        asked = [in_tree(added, self.telling(Part.answers, shared, of=near))]
        (record,) = computed(asked, self.inputs(near))
        return [each.whole(q, self.outline) for q, each in zip(questions, record, strict=True)]

    def near(self, questions: Sequence[Question]) -> list[int]:
        """Return the indices of the parts that may have trials near any of the queries."""
        boxes = np.array([each.told.box for each in self.kept])
        near = np.zeros(len(boxes), dtype=np.bool_)
        for question in questions:
            near |= question.are_near(boxes, self.outline)
        return np.flatnonzero(near).tolist()

    def telling(
        self, ask: Callable[..., Any], *asked: Any, of: Sequence[int] | None = None
    ) -> list[Delayed]:
        """Return the lazy answers of all parts, or of some."""
        require_kept(self.inputs(of))
        some = self.kept if of is None else [self.kept[i] for i in of]
        return [delayed(tell)(each.part, each.name, each.told.sums, ask, *asked) for each in some]

    def inputs(self, of: Sequence[int] | None = None) -> list[tuple[str, Delayed]]:
        """Return all parts, or some, with their names in errors."""
        some = self.kept if of is None else [self.kept[i] for i in of]
        return [(each.name, each.part) for each in some]

    # Places.

    @property
    def places(self) -> list[Places]:
        """The places of each part, brought to this machine."""
        return self.forest().places

    def sampled(self, cost: float) -> choosing.Sample:
        """Return what `choosing.sampled` would for all places, from each part's own sample.

        The places with the lowest hashes of all also have the lowest hashes in their part.
        """
        some = self._inhabited()
        places, numbers = self.telling(Part.sampled, cost, of=some), self._n_places(some)
        found = computed([*places, *numbers], self.inputs(some))
        sample = choosing.sampled(list(found[: len(places)]), cost)
        return sample._replace(total=sum(found[len(places) :]))

    def ahead(self, cost: float, sides: Floats, n_jobs: int | None) -> Sampled:
        """Return windows with their sample and its sums for all widths, queried at once."""
        sample = self.sampled(cost)
        queries = np.ascontiguousarray(sample.places.axes.T)
        widths = candidates(sides, diameter(sides, self.metric), sample.total).tolist()
        answers = self.answers([Question(queries, width, n_jobs) for width in widths])
        return Sampled(self.outline, sample, dict(zip(widths, answers, strict=True)))

    def _n_places(self, of: Sequence[int]) -> list[Delayed]:
        """Return the lazy numbers of distinct places per range of hashes."""
        ranges = min(RANGES, len(of))
        hashes: list[Any] = self.telling(Part.hashes, ranges, of=of)
        return [delayed(n_different)(*(each[j] for each in hashes)) for j in range(ranges)]

    def forest(self) -> Forest:
        """Return one forest of all trials on this machine."""
        some = self._inhabited()
        parts: Sequence[Forest] = computed(self.telling(Part.forest, of=some), self.inputs(some))
        return functools.reduce(Forest.merge, parts)

    def _inhabited(self) -> list[int]:
        """Return the indices of the parts with trials."""
        return [i for i, each in enumerate(self.kept) if each.told.size]


class Sampled(Asked):
    """Windows known only at a sample of places, by width."""

    def __init__(self, outline: Outline, sample: choosing.Sample, held: dict[float, Ints]) -> None:
        super().__init__(outline)
        self._sample, self._held = sample, held

    def sampled(self, _: float) -> choosing.Sample:
        """Return the sample."""
        return self._sample

    def reply(self, question: Question) -> Ints:
        """Return the sums over windows of a width at the places of the sample."""
        return self._held[question.radius]


def _outline(d: int, metric: str, told: Sequence[Told]) -> Outline:
    """Return the common outline of all parts."""
    width = max((len(each.sums) for each in told), default=0)
    totals = sum((padded(each.sums, width) for each in told), np.zeros(width, np.int64))
    return Outline(d, metric, totals, _joint_span(told), any(each.has_sizes for each in told))


def _joint_span(told: Sequence[Told]) -> tuple[int, int]:
    """Return the first point of the lattice that any part reaches, and the number of points."""
    spans = [(first, first + n) for first, n in (each.span for each in told) if n]
    first = min((start for start, _ in spans), default=0)
    return first, max((stop for _, stop in spans), default=first) - first


# The field ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class SpreadField(Field):
    """A `Field` whose trials are spread over workers; all widths are queried at once."""

    @functools.cached_property
    def scored(self) -> choosing.Scored:
        """How well windows of all widths predict held-out trials."""
        known = self.windows.ahead(self.decoder.cost, self.sides, self.options.n_jobs)
        return self.over(known).scored

    def band(
        self, points: Floats, lipschitz: float, level: float, simultaneous: bool
    ) -> tuple[Floats, Floats]:
        """Return intervals (low, high) that contain π with a probability of at least `level`."""
        low, high = self._asked(banded(lipschitz, level, simultaneous), points)
        return low, high

    def more_trials(
        self, points: Floats, width: float, lipschitz: float, level: float, simultaneous: bool
    ) -> Floats:
        """Return how many more trials would make the band this narrow."""
        asked = lipschitz, level, simultaneous
        found: Floats = self._asked(lambda field, at: field.more_trials(at, width, *asked), points)
        return found

    @property
    def told(self) -> Field:
        """The field without its trials: its windows are an outline, and their width is fixed."""
        options = self.options._replace(bandwidth=self.width)
        return dataclasses.replace(self.over(self.windows.outline), options=options)

    def over(self, windows: Any) -> Field:
        """Return the field with these windows, on this machine."""
        names = [each.name for each in dataclasses.fields(Field)]
        return Field(**{**{name: getattr(self, name) for name in names}, "windows": windows})

    def here(self) -> Field:
        """Return a field on this machine with all trials."""
        return self.over(self.windows.forest())

    def _asked(self, ask: Ask, points: Floats) -> Any:
        """Return the answer of a field with all trials; its questions are sent at once."""
        told = self.told
        answers = self.windows.answers(noted(told, ask, points))
        return answered(told, ask, points, iter(answers))


# The fields of models over Dask: windows on workers, or a process on the client.
AnyField = SpreadField | SmoothField


def banded(lipschitz: float, level: float, simultaneous: bool) -> Ask:
    """Return the function that computes a field's band."""
    return functools.partial(
        Field.band, lipschitz=lipschitz, level=level, simultaneous=simultaneous
    )
