"""What a field asks of its windows, noted and answered elsewhere.

What a field asks does not depend on what it is answered. So a field over `Noting` windows, which
answer 0, tells its questions; workers answer them; and the same field over `Answering` windows
finds the answers as if from windows of all trials.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from betafield.field import Field
from betafield.windows.base import ORDERS
from betafield.windows.moments import Weigh, monomials
from betafield.windows.zorder import visiting_order

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Relevance = tuple[float, ...]
# A field and points → what the field says there, such as `Field.posterior`.
Ask = Callable[[Field, Floats], Any]

# Numbers of queries and of answers that are sent at once, about.
NUMBERS = 1 << 20
# Boxes around queries, by which it is told which partitions to ask.
BOXES = 64


class Outline(NamedTuple):
    """What windows of all trials would say of themselves, without the trials.

    Parameters
    ----------
    d : int
    metric : str
    totals : array of shape (c,)
        The sums over all trials.
    span : (int, int)
        The first point of the lattice that distorted trials reach, and the number of them.
    has_sizes : bool
        Whether any distorted trial counts for more or less than one.
    relevance : tuple of d floats
        By which places are stretched.
    sizes : mapping
        Numbers of places, by relevance and cell.
    """

    d: int
    metric: str
    totals: Ints
    span: tuple[int, int]
    has_sizes: bool
    relevance: Relevance
    sizes: Mapping[tuple[Relevance, float | None], int]

    @property
    def width(self) -> int:
        """Number of counts."""
        return len(self.totals)


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
    degree : int
    weigh : callable or None
        Tells the trials and the successes of places. None asks for sums, within the only radius.
    n_jobs : int or None
        Threads.
    """

    relevance: Relevance
    cell: float | None
    queries: Floats
    radii: Floats
    degree: int
    weigh: Weigh | None
    n_jobs: int | None

    def nothing(self, whole: Outline) -> npt.NDArray[Any]:
        """Return the answer of windows without trials."""
        m = len(self.queries)
        if self.weigh is None:
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
        groups = np.array_split(visiting_order(self.queries.T), min(BOXES, len(self.queries)) or 1)
        ours = [self.queries[rows] for rows in groups if rows.size]
        if not ours:
            return np.zeros(len(boxes), dtype=np.bool_)
        lowest = np.array([some.min(axis=0) for some in ours])
        highest = np.array([some.max(axis=0) for some in ours])
        within = self._is_within(np.maximum(low - highest, lowest - high), whole)
        return np.asarray(within.any(axis=1))

    def pieces(self, whole: Outline, numbers: int) -> list[Question]:
        """Return questions of a few queries each, which ask for the same together."""
        each = self.nothing(whole)[:1].size + self.queries.shape[1]
        rows = max(1, numbers // each)
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


def rounds(questions: Sequence[Question], whole: Outline) -> Iterator[list[tuple[int, Question]]]:
    """Return pieces of the questions, with their numbers, in groups that can be sent at once."""
    group: list[tuple[int, Question]] = []
    sent = 0
    for n, question in enumerate(questions):
        for piece in question.pieces(whole, NUMBERS):
            size = piece.nothing(whole).size + piece.queries.size
            if group and sent + size > NUMBERS:
                yield group
                group, sent = [], 0
            group.append((n, piece))
            sent += size
    yield group


# Windows without trials --------------------------------------------------------------------


class Asked(ABC):
    """What a `Field` takes for its windows: whoever asks gets a reply from elsewhere.

    Parameters
    ----------
    outline : Outline
    relevance : tuple of d floats
        By which places are stretched here.
    cell : float or None
        Size of the cells in which trials are gathered.
    """

    outline: Outline
    relevance: Relevance
    cell: float | None

    @abstractmethod
    def reply(self, question: Question) -> npt.NDArray[Any]:
        """Return the answer to a question."""

    @abstractmethod
    def viewed(self, relevance: Relevance, cell: float | None) -> Self:
        """Return the same trials, stretched and gathered in cells."""

    @property
    def d(self) -> int:
        """Number of dimensions."""
        return self.outline.d

    @property
    def metric(self) -> str:
        """Distance in which windows are round."""
        return self.outline.metric

    @property
    def totals(self) -> Ints:
        """The sums over all trials."""
        return self.outline.totals

    @property
    def width(self) -> int:
        """Number of counts, the lattice of shifts aside."""
        return self.outline.width

    @property
    def span(self) -> tuple[int, int]:
        """The first point of the lattice that distorted trials reach, and the number of them."""
        return self.outline.span

    @property
    def has_sizes(self) -> bool:
        """Whether any distorted trial counts for more or less than one."""
        return self.outline.has_sizes

    @property
    def size(self) -> int:
        """Number of places."""
        return self.outline.sizes[self.relevance, self.cell]

    def stretched(self, factors: Floats) -> Self:
        """Return the windows with each axis multiplied by its factor."""
        return self.viewed(tuple((np.array(self.relevance) * factors).tolist()), self.cell)

    def gathered(self, cell: float) -> Self:
        """Return the windows with trials moved to the middles of cells of this size."""
        return self.viewed(self.relevance, cell)

    def sums(self, queries: Floats, radius: float, n_jobs: int | None = None) -> Any:
        """Return the sums within a radius of each query."""
        radii = np.array([radius])
        return self.reply(Question(self.relevance, self.cell, queries, radii, 0, None, n_jobs))

    def moments(
        self, queries: Floats, radii: Floats, degree: int, weigh: Weigh, n_jobs: int | None = None
    ) -> Any:
        """Return the moments within some radii of each query."""
        return self.reply(
            Question(self.relevance, self.cell, queries, radii, degree, weigh, n_jobs)
        )


class Replying(Asked):
    """Windows that pass questions on."""

    def __init__(
        self,
        outline: Outline,
        reply: Callable[[Question], npt.NDArray[Any]],
        relevance: Relevance | None = None,
        cell: float | None = None,
    ) -> None:
        self.outline, self.cell = outline, cell
        self.relevance = outline.relevance if relevance is None else relevance
        self._reply = reply

    def reply(self, question: Question) -> npt.NDArray[Any]:
        """Return the answer to a question."""
        return self._reply(question)

    def viewed(self, relevance: Relevance, cell: float | None) -> Replying:
        """Return the same trials, stretched and gathered in cells."""
        return Replying(self.outline, self._reply, relevance, cell)


def noted(field: Field, ask: Ask, points: Floats) -> list[Question]:
    """Return what a field asks its windows; those that it has are an outline."""
    questions: list[Question] = []

    def note(question: Question) -> npt.NDArray[Any]:
        questions.append(question)
        return question.nothing(field.windows)

    ask(_over(field, note), points)
    return questions


def answered(field: Field, ask: Ask, points: Floats, answers: Iterator[npt.NDArray[Any]]) -> Any:
    """Return what a field says, if these are the answers to what it asks."""
    return ask(_over(field, lambda _: next(answers)), points)


def _over(field: Field, reply: Callable[[Question], npt.NDArray[Any]]) -> Field:
    return field.holding(Replying(field.windows, reply), field.totals)
