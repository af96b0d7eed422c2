"""The queries of a field to its windows, recorded and answered elsewhere.

The questions of a field do not depend on the answers. So a field over windows that answer 0 reveals
its questions; workers answer them; and the same field over windows that replay these answers
returns what it would with the windows of all trials.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.field import Field
from betafield.metrics import ORDERS
from betafield.windows.zorder import visiting_order

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
# From a field and points to the field's answer there, such as `Field.posterior`.
Ask = Callable[[Field, Floats], Any]

# About how many numbers, in queries and answers, are sent at once.
NUMBERS = 1 << 20
# The number of boxes around queries, by which the partitions to ask are chosen.
BOXES = 64


class Outline(NamedTuple):
    """The properties of the windows of all trials, without the trials.

    Parameters
    ----------
    d : int
    metric : str
    totals : array of shape (c,)
        The sums over all trials.
    span : (int, int)
        The first point of the lattice that distorted trials reach, and the number of points.
    has_sizes : bool
        Whether any distorted trial has a weight other than one.
    """

    d: int
    metric: str
    totals: Ints
    span: tuple[int, int]
    has_sizes: bool

    @property
    def width(self) -> int:
        """Number of counts."""
        return len(self.totals)


class Question(NamedTuple):
    """A question to windows: the sums within a radius of each query.

    Parameters
    ----------
    queries : array of shape (m, d)
        In scaled units.
    radius : float
    n_jobs : int or None
        The number of threads.
    """

    queries: Floats
    radius: float
    n_jobs: int | None

    def nothing(self, whole: Outline) -> Ints:
        """Return the answer of windows without trials."""
        return np.zeros((len(self.queries), whole.width + whole.span[1]), dtype=np.int64)

    def is_near(self, box: Floats, whole: Outline) -> npt.NDArray[np.bool_]:
        """Return which queries may be near trials in this box."""
        low, high = box
        return self._is_within(np.maximum(low - self.queries, self.queries - high), whole)

    def are_near(self, boxes: Floats, whole: Outline) -> npt.NDArray[np.bool_]:
        """Return which of the boxes (n, 2, d) may have trials near any query; some may not."""
        low, high = np.moveaxis(boxes, 1, 0)[:, :, None]
        groups = np.array_split(visiting_order(self.queries.T), min(BOXES, len(self.queries)) or 1)
        ours = [self.queries[rows] for rows in groups if rows.size]
        if not ours:
            return np.zeros(len(boxes), dtype=np.bool_)
        lowest = np.array([some.min(axis=0) for some in ours])
        highest = np.array([some.max(axis=0) for some in ours])
        within = self._is_within(np.maximum(low - highest, lowest - high), whole)
        return np.asarray(within.any(axis=1))

    def pieces(self, whole: Outline, numbers: int) -> list[Question]:
        """Return the question split into questions of a few queries each."""
        each = whole.width + whole.span[1] + whole.d
        rows = max(1, numbers // each)
        starts = range(0, max(1, len(self.queries)), rows)
        return [self._replace(queries=self.queries[i : i + rows]) for i in starts]

    def _is_within(self, apart: Floats, whole: Outline) -> npt.NDArray[np.bool_]:
        distance = np.linalg.norm(np.maximum(apart, 0.0), ORDERS[whole.metric], axis=-1)
        return np.asarray(distance <= self.radius * (1.0 + 1e-9))  # with a margin for rounding


class Answer(NamedTuple):
    """Sums near the queries of the given rows; those of all other rows are 0."""

    rows: npt.NDArray[np.intp]
    values: Ints

    @classmethod
    def added(cls, answers: Sequence[Answer]) -> Answer:
        """Return the sum of answers to one question."""
        rows = np.unique(np.concatenate([each.rows for each in answers]))
        total = np.zeros((len(rows), answers[0].values.shape[1]), dtype=np.int64)
        for each in answers:
            total[np.searchsorted(rows, each.rows)] += each.values
        return cls(rows, total)

    def whole(self, question: Question, outline: Outline) -> Ints:
        """Return the answer with one row per query."""
        out = question.nothing(outline)
        out[self.rows] = self.values
        return out


def rounds(
    questions: Sequence[Question], whole: Outline, numbers: int
) -> Iterator[list[tuple[int, Question]]]:
    """Return pieces of the questions, with their indices, in groups that can be sent at once."""
    group: list[tuple[int, Question]] = []
    sent = 0
    for n, question in enumerate(questions):
        for piece in question.pieces(whole, numbers):
            size = piece.nothing(whole).size + piece.queries.size
            if group and sent + size > numbers:
                yield group
                group, sent = [], 0
            group.append((n, piece))
            sent += size
    yield group


# Windows without trials --------------------------------------------------------------------


class Asked(ABC):
    """Windows of a `Field` whose answers come from elsewhere.

    Parameters
    ----------
    outline : Outline
    """

    def __init__(self, outline: Outline) -> None:
        self.outline = outline

    @abstractmethod
    def reply(self, question: Question) -> Ints:
        """Return the answer to a question."""

    def sums(self, queries: Floats, radius: float, n_jobs: int | None = None) -> Ints:
        """Return the sums within a radius of each query."""
        return self.reply(Question(queries, radius, n_jobs))

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
        """Number of counts, without the lattice of shifts."""
        return self.outline.width

    @property
    def span(self) -> tuple[int, int]:
        """The first point of the lattice that distorted trials reach, and the number of points."""
        return self.outline.span

    @property
    def has_sizes(self) -> bool:
        """Whether any distorted trial has a weight other than one."""
        return self.outline.has_sizes


class Replying(Asked):
    """Windows that forward questions to a function."""

    def __init__(self, outline: Outline, reply: Callable[[Question], Ints]) -> None:
        super().__init__(outline)
        self._reply = reply

    def reply(self, question: Question) -> Ints:
        """Return the answer to a question."""
        return self._reply(question)


def noted(field: Field, ask: Ask, points: Floats) -> list[Question]:
    """Return the questions of a field, whose windows are an outline."""
    questions: list[Question] = []

    def note(question: Question) -> Ints:
        questions.append(question)
        return question.nothing(field.windows)

    ask(_over(field, note), points)
    return questions


def answered(field: Field, ask: Ask, points: Floats, answers: Iterator[Ints]) -> Any:
    """Return the answer of a field, given the answers to its questions."""
    return ask(_over(field, lambda _: next(answers)), points)


def _over(field: Field, reply: Callable[[Question], Ints]) -> Field:
    return field.holding(Replying(field.windows, reply), field.totals)
