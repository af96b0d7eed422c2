"""Windows of many partitions, on the workers that have them.

Sums over the trials near a point can be added up, so every partition answers for its own trials.
What a model asks its windows does not depend on what they answer. So its questions are noted in a
first run, on windows that answer 0; workers answer them, those whose trials are near enough; the
answers are added up, some at a time; and a second run finds them as if from windows of all trials.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import dask
import numpy as np
import numpy.typing as npt
from dask.delayed import Delayed, delayed

from betafield import sharing, weighing
from betafield.dask.partitions import blamed, computed
from betafield.estimators import SmoothBetaClassifier as Local
from betafield.windows.base import padded
from betafield.windows.moments import monomials
from betafield.windows.zorder import visiting_order

if TYPE_CHECKING:
    from betafield.windows import Forest, Places

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Relevance = tuple[float, ...]

# Answers that one task adds up.
FAN_IN = 8
# Ranges of hashes in which places are counted, at most.
RANGES = 64
# Numbers of queries and of answers that are sent at once, about.
NUMBERS = 1 << 20
# Boxes around queries, by which it is told which partitions to ask.
BOXES = 64
# Forests for different relevances that a worker keeps of a partition.
KEPT = weighing.HEAVIEST + 1

ORDERS = {"euclidean": 2, "chebyshev": np.inf, "manhattan": 1}


# On the worker -----------------------------------------------------------------------------


class Part:
    """What a worker keeps of a partition: its trials in windows.

    Parameters
    ----------
    windows : Forest
        In scaled units, every relevance 1.
    seen : Seen
        How many trials there were.
    polynomials : tuple of polynomials
        Those counted.
    """

    def __init__(
        self, windows: Forest, seen: sharing.Seen, polynomials: tuple[sharing.Polynomial, ...]
    ) -> None:
        self.windows, self.seen, self.polynomials = windows, seen, polynomials
        self.box = _box(windows)
        # Forests that were asked for, the latest last: they can be made again.
        self._made: dict[Any, Forest] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_made": {}}

    def told(self) -> Told:
        """Return what is worth knowing of the trials without asking them."""
        windows = self.windows
        return Told(
            windows.size,
            windows.totals,
            windows.span,
            self.box,
            self.seen,
            self.polynomials,
            windows.has_sizes,
        )

    def forest(self, relevance: Relevance, cell: float | None) -> Forest:
        """Return the windows in which features have this relevance; trials of cells together."""
        if cell is None and set(relevance) == {1.0}:
            return self.windows
        key = relevance, cell
        if key not in self._made:
            windows = self.windows.stretched(np.array(relevance))
            self._made[key] = windows if cell is None else windows.gathered(cell)
            for oldest in list(self._made)[:-KEPT]:
                self._made.pop(oldest, None)
        return self._made.get(key) or self.forest(relevance, cell)

    def answers(self, asked: tuple[list[Question], Outline]) -> list[Answer]:
        """Return the answers to all questions."""
        questions, whole = asked
        return [self._answer(question, whole) for question in questions]

    def _answer(self, question: Question, whole: Outline) -> Answer:
        """Return the sums near the queries that can be near, in the columns of all trials."""
        rows = np.flatnonzero(question.is_near(self.box, whole))
        queries, windows = question.queries[rows], self.forest(question.relevance, question.cell)
        if question.degree is None:
            sums = windows.sums(queries, float(question.radii[0]), question.n_jobs)
            return Answer(rows, _aligned(sums, windows, whole))
        moments = windows.moments(
            queries, question.radii, question.degree, Local()._weigh, question.n_jobs
        )
        return Answer(rows, moments)

    def counted(self, polynomials: tuple[sharing.Polynomial, ...]) -> Part:
        """Return the same trials, counted by these polynomials, ours among them."""
        if self.polynomials in ((), polynomials):
            return Part(self.windows, self.seen, polynomials)
        places = recounted(self.windows.places, self.polynomials, polynomials)
        return Part(built(places, self.windows), self.seen, polynomials)

    def places_below(self, share: float) -> list[Places]:
        """Return the places whose hashes are below this share of all there are."""
        places = self.windows.places
        return [each.where(weighing.below(weighing.hashes(each.axes), share)) for each in places]

    def hashes(
        self, relevance: Relevance, cell: float | None, ranges: int
    ) -> list[npt.NDArray[np.uint64]]:
        """Return the hashes of all places, in so many ranges."""
        places = self.forest(relevance, cell).places
        known = np.unique(np.concatenate([weighing.hashes(each.axes) for each in places]))
        borders = [int(2**64 * j / ranges) for j in range(1, ranges)]
        return np.split(known, np.searchsorted(known, np.array(borders, dtype=np.uint64)))

    def itself(self) -> Part:
        """Return this part, to take it elsewhere."""
        return self


def tell(part: Part, name: str, totals: Ints, method: str, *asked: Any) -> Any:
    """Return what a part says, if it has the trials that it once had.

    A partition is read again where its worker was lost; its file may have changed since.
    """
    if not np.array_equal(part.windows.totals, totals):
        raise ValueError(
            f"{name}: was read again after a worker was lost, and has other trials than before: "
            f"counts of {part.windows.totals.tolist()}, once {totals.tolist()}; fit anew"
        )
    return getattr(part, method)(*asked)


def _box(windows: Forest) -> Floats:
    """Return the lowest and the highest coordinates of all places."""
    ends = [(p.axes.min(axis=1), p.axes.max(axis=1)) for p in windows.places if p.size]
    if not ends:
        return np.zeros((2, windows.d))
    low, high = zip(*ends, strict=True)
    return np.array([np.min(low, axis=0), np.max(high, axis=0)])


def recounted(
    places: list[Places],
    theirs: tuple[sharing.Polynomial, ...],
    polynomials: tuple[sharing.Polynomial, ...],
) -> list[Places]:
    """Return places counted by some polynomials, counted by more."""
    if theirs in ((), polynomials):
        return places
    return sharing.recounted(places, theirs, polynomials)[1]


def built(places: list[Places], like: Forest) -> Forest:
    """Return windows of these places, built at once."""
    from betafield.windows import Forest
    from betafield.windows.base import concatenate

    windows = Forest(like.d, like.metric)
    if places:
        windows = windows.insert(concatenate(places) if len(places) > 1 else places[0])
    _ = windows.indexes  # built now, and not by whoever asks first
    return windows


def _aligned(sums: Ints, windows: Forest, whole: Outline) -> Ints:
    """Return sums with the columns that those of all trials have."""
    width, (first, points) = windows.width, windows.span
    if (width, windows.span) == (whole.width, whole.span):
        return sums
    out = np.zeros((len(sums), whole.width + whole.span[1]), dtype=np.int64)
    out[:, :width] = sums[:, :width]
    start = whole.width + first - whole.span[0] if points else 0
    out[:, start : start + points] = sums[:, width:]
    return out


class Told(NamedTuple):
    """What is known of a partition without asking its windows."""

    size: int
    totals: Ints
    span: tuple[int, int]
    box: Floats
    seen: sharing.Seen
    polynomials: tuple[sharing.Polynomial, ...]
    has_sizes: bool


class Outline(NamedTuple):
    """What windows of all trials would say of themselves, without the trials."""

    d: int
    metric: str
    totals: Ints
    span: tuple[int, int]
    has_sizes: bool

    @property
    def width(self) -> int:
        """Number of counts."""
        return len(self.totals)


# Questions ---------------------------------------------------------------------------------


class Question(NamedTuple):
    """What windows are asked: sums or, of a degree, moments.

    Parameters
    ----------
    relevance : tuple of d floats
    cell : float or None
        Size of the cells in which trials are gathered.
    queries : array of shape (m, d)
        In scaled units times relevance.
    radii : array of shape (W,)
    degree : int or None
        None asks for sums, within the only radius.
    n_jobs : int or None
        Threads.
    """

    relevance: Relevance
    cell: float | None
    queries: Floats
    radii: Floats
    degree: int | None
    n_jobs: int | None

    def nothing(self, whole: Outline) -> npt.NDArray[Any]:
        """Return the answer of windows without trials."""
        m = len(self.queries)
        if self.degree is None:
            return np.zeros((m, whole.width + whole.span[1]), dtype=np.int64)
        kinds = monomials(whole.d, self.degree)
        return np.zeros((m, len(self.radii), len(kinds.exponents) + kinds.half))

    def reach(self) -> float:
        """Return how far trials may be that count; gathering moves them within their cell."""
        moved = 0.0 if self.cell is None else self.cell * len(self.relevance)
        return float(np.max(self.radii)) * (1.0 + 1e-9) + moved

    def is_near(self, box: Floats, whole: Outline) -> npt.NDArray[np.bool_]:
        """Return which queries trials of this box may be near to."""
        low, high = box * self.relevance
        return self._is_within(np.maximum(low - self.queries, self.queries - high), whole)

    def are_near(self, boxes: Floats, whole: Outline) -> npt.NDArray[np.bool_]:
        """Return which of the boxes (n, 2, d) may have trials near any query, or seem to."""
        low, high = np.moveaxis(boxes * self.relevance, 1, 0)[:, :, None]
        groups = np.array_split(visiting_order(self.queries.T), min(BOXES, len(self.queries)))
        ours = [self.queries[rows] for rows in groups if rows.size]
        if not ours:
            return np.zeros(len(boxes), dtype=np.bool_)
        lowest = np.array([some.min(axis=0) for some in ours])
        highest = np.array([some.max(axis=0) for some in ours])
        within = self._is_within(np.maximum(low - highest, lowest - high), whole)
        return np.asarray(within.any(axis=1))

    def pieces(self, whole: Outline) -> list[Question]:
        """Return questions of a few queries each, which ask for the same together."""
        numbers = self.nothing(whole)[:1].size + self.queries.shape[1]
        rows = max(1, NUMBERS // numbers)
        starts = range(0, max(1, len(self.queries)), rows)
        return [self._replace(queries=self.queries[i : i + rows]) for i in starts]

    def _is_within(self, apart: Floats, whole: Outline) -> npt.NDArray[np.bool_]:
        distance = np.linalg.norm(np.maximum(apart, 0.0), ORDERS[whole.metric], axis=-1)
        return np.asarray(distance <= self.reach())


class Answer(NamedTuple):
    """Sums near some queries, those of these rows; there are none near others."""

    rows: npt.NDArray[np.intp]
    values: npt.NDArray[Any]

    @classmethod
    def added(cls, answers: Sequence[Answer]) -> Answer:
        """Return the sum of answers to one question."""
        rows = np.unique(np.concatenate([each.rows for each in answers]))
        first = answers[0].values
        total = np.zeros((len(rows), *first.shape[1:]), dtype=first.dtype)
        for each in answers:
            total[np.searchsorted(rows, each.rows)] += each.values
        return cls(rows, total)

    def whole(self, question: Question, outline: Outline) -> npt.NDArray[Any]:
        """Return the answer with a row for each query."""
        out = question.nothing(outline)
        out[self.rows] = self.values
        return out


class Asked:
    """Windows that note what they are asked. They answer 0, or what is known to be the answer."""

    def __init__(self, whole: Outline, answers: Iterator[npt.NDArray[Any]] | None) -> None:
        self.questions: list[Question] = []
        self.answers = answers
        self._whole = whole

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_whole"], name)

    def ask(self, question: Question) -> npt.NDArray[Any]:
        """Return the next answer."""
        self.questions.append(question)
        return question.nothing(self._whole) if self.answers is None else next(self.answers)


class AskedWindows:
    """`Asked`, for one relevance of the features: what a model takes for its windows."""

    def __init__(self, asked: Asked, relevance: Floats, cell: float | None) -> None:
        self._asked = asked
        self._relevance: Relevance = tuple(relevance.tolist())
        self._cell = cell

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_asked"], name)

    def sums(self, queries: Floats, radius: float, n_jobs: int | None = None) -> Any:
        """Ask for the sums within a radius."""
        radii = np.array([radius])
        return self._asked.ask(Question(self._relevance, self._cell, queries, radii, None, n_jobs))

    def moments(
        self, queries: Floats, radii: Floats, degree: int, _: Any, n_jobs: int | None = None
    ) -> Any:
        """Ask for the moments within some radii."""
        return self._asked.ask(
            Question(self._relevance, self._cell, queries, radii, degree, n_jobs)
        )


# All partitions ----------------------------------------------------------------------------


class Scattered:
    """The trials of all partitions, each on the worker that has them.

    Parameters
    ----------
    d : int
    metric : str
    parts : sequence of delayed Part
    told : sequence of Told
    names : sequence of str
        What errors call them.
    """

    def __init__(
        self,
        d: int,
        metric: str,
        parts: Sequence[Delayed] = (),
        told: Sequence[Told] = (),
        names: Sequence[str] = (),
    ) -> None:
        self.d, self.metric = d, metric
        self.parts, self.told, self.names = list(parts), list(told), list(names)

    @classmethod
    def of(cls, d: int, metric: str, parts: Sequence[Delayed], names: Sequence[str]) -> Scattered:
        """Have these partitions computed; they stay where they are."""
        with blamed(list(zip(names, parts, strict=True))):
            parts = dask.persist(*parts)
        inputs = list(zip(names, parts, strict=True))
        told = computed([delayed(Part.told)(part) for part in parts], inputs)
        return cls(d, metric, parts, told, names)

    @property
    def seen(self) -> sharing.Seen:
        """All trials seen."""
        total = sharing.Seen()
        for each in self.told:
            total = total.plus(each.seen)
        return total

    @property
    def polynomials(self) -> list[tuple[sharing.Polynomial, ...]]:
        """Those of each partition."""
        return [each.polynomials for each in self.told]

    @property
    def outline(self) -> Outline:
        """What one forest of all trials would say of itself."""
        width = max((len(each.totals) for each in self.told), default=0)
        totals = sum((padded(each.totals, width) for each in self.told), np.zeros(width, np.int64))
        spans = [(first, first + n) for first, n in (each.span for each in self.told) if n]
        first = min((start for start, _ in spans), default=0)
        span = first, max((stop for _, stop in spans), default=first) - first
        return Outline(self.d, self.metric, totals, span, any(t.has_sizes for t in self.told))

    def __getattr__(self, name: str) -> Any:
        # Pickle asks before there is anything to ask.
        if name.startswith("_") or name not in ("totals", "width", "span", "has_sizes"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.outline, name)

    def plus(self, other: Scattered) -> Scattered:
        """Return the partitions of both."""
        return Scattered(
            self.d,
            self.metric,
            [*self.parts, *other.parts],
            [*self.told, *other.told],
            [*self.names, *other.names],
        )

    def with_trials(self) -> Scattered:
        """Return the partitions that have any."""
        there = [i for i, each in enumerate(self.told) if each.size]
        return Scattered(
            self.d,
            self.metric,
            [self.parts[i] for i in there],
            [self.told[i] for i in there],
            [self.names[i] for i in there],
        )

    def counted(self, polynomials: tuple[sharing.Polynomial, ...]) -> Scattered:
        """Return the same trials, all of them counted by the same polynomials."""
        if all(each.polynomials in ((), polynomials) for each in self.told):
            return self
        parts = self.telling("counted", polynomials)
        return Scattered.of(self.d, self.metric, parts, self.names)

    def telling(self, method: str, *asked: Any, of: Sequence[int] | None = None) -> list[Delayed]:
        """Return what all parts say, or some of them, still to be computed."""
        return [
            delayed(tell)(self.parts[i], self.names[i], self.told[i].totals, method, *asked)
            for i in (range(len(self.parts)) if of is None else of)
        ]

    def told_now(self, method: str, *asked: Any) -> tuple[Any, ...]:
        """Return what all parts say."""
        return computed(
            self.telling(method, *asked), list(zip(self.names, self.parts, strict=True))
        )

    def answers(self, questions: Sequence[Question]) -> list[npt.NDArray[Any]]:
        """Return the answers of all windows together."""
        whole = self.outline
        pieces = [(n, piece) for n, q in enumerate(questions) for piece in q.pieces(whole)]
        found: list[list[npt.NDArray[Any]]] = [[] for _ in questions]
        for some in _rounds(pieces, whole):
            record = self._record([piece for _, piece in some], whole)
            for (n, _), answer in zip(some, record, strict=True):
                found[n].append(answer)
        return [np.concatenate(each) for each in found]

    def _record(self, questions: list[Question], whole: Outline) -> list[npt.NDArray[Any]]:
        near = self.near(questions)
        if not near:
            return [question.nothing(whole) for question in questions]
        shared = delayed((questions, whole), pure=False, traverse=False)
        inputs = [(self.names[i], self.parts[i]) for i in near]
        (record,) = computed([added(self.telling("answers", shared, of=near))], inputs)
        return [answer.whole(q, whole) for q, answer in zip(questions, record, strict=True)]

    def near(self, questions: Sequence[Question]) -> list[int]:
        """Return the numbers of the partitions that may have trials near any of the queries."""
        boxes = np.array([each.box for each in self.told])
        whole, near = self.outline, np.zeros(len(self.told), dtype=np.bool_)
        for question in questions:
            near |= question.are_near(boxes, whole)
        return np.flatnonzero(near).tolist()

    # Places.

    def sampled(self) -> tuple[list[Places], int | None]:
        """Return places enough to weigh windows on, and the number of all places."""
        share, total = 1.0, None
        if sum(each.size for each in self.told) > weighing.MOST:
            total = self.n_places()
            share = min(1.0, weighing.MOST / total)
        found = self.told_now("places_below", share)
        return [places for some in found for places in some], total

    def n_places(self, relevance: Relevance | None = None, cell: float | None = None) -> int:
        """Return the number of different places, or cells, counted a range of hashes at a time."""
        ranges = min(RANGES, len(self.parts))
        split: list[Any] = self.telling("hashes", relevance or (1.0,) * self.d, cell, ranges)
        counts = [delayed(_n_different)([each[j] for each in split]) for j in range(ranges)]
        return int(sum(computed(counts, list(zip(self.names, self.parts, strict=True)))))


def added(records: list[Delayed]) -> Delayed:
    """Return the sums of answers to the same questions, some parts' at a time."""
    while len(records) > 1:
        groups = [records[i : i + FAN_IN] for i in range(0, len(records), FAN_IN)]
        records = [delayed(_added)(group) for group in groups]
    return records[0]


def _added(records: list[list[Answer]]) -> list[Answer]:
    return [Answer.added(answers) for answers in zip(*records, strict=True)]


def _n_different(hashes: list[npt.NDArray[np.uint64]]) -> int:
    return len(np.unique(np.concatenate(hashes)))


def _rounds(
    pieces: list[tuple[int, Question]], whole: Outline
) -> Iterator[list[tuple[int, Question]]]:
    """Return the pieces in groups that can be sent at once."""
    group: list[tuple[int, Question]] = []
    numbers = 0
    for n, piece in pieces:
        size = piece.nothing(whole).size + piece.queries.size
        if group and numbers + size > NUMBERS:
            yield group
            group, numbers = [], 0
        group.append((n, piece))
        numbers += size
    yield group
