"""Indexes of doubling sizes: cheap inserts, exact answers, merging.

The logarithmic method. A forest is a list of indexes, each larger than all after it taken
together; new places join every index that is not, in one build. A trial thus moves to an
index of at least twice the size each time it moves, log₂(t) times at most, and a query
sums over at most log₂(t) indexes. Sums are integers: how the trials are spread over the
indexes cannot be seen in the answer.

Small batches wait, as they came, until the first query: a stream of them costs one build.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from betafield._threads import CHUNK, run
from betafield.windows.base import Floats, Index, Ints, Places, concatenate, metric_code, padded
from betafield.windows.brute import Brute
from betafield.windows.kdtree import KDTree
from betafield.windows.line import Line
from betafield.windows.zorder import visiting_order

# Statistics for which prefix sums pay.
FEW = 8


class Limits(NamedTuple):
    """When a forest builds an index, and how it asks one. No answer depends on it, only its time.

    Parameters
    ----------
    small : int
        Indexes up to this size are rebuilt rather than kept apart, which is as fast as building
        one.
    batch : int
        Larger batches are indexed at once.
    waiting : int
        Batches that may wait for the first query.
    rows : int
        Rows that may wait: rows at one place are joined only when they are indexed.
    pairs, times : int
        Pairs of a query and a row that waits which are compared one by one, and how often, before
        an index is built: a first answer needs nothing compiled.
    chunk : int
        Queries for which a thread of their own pays.
    """

    small: int = 1 << 10
    batch: int = 1 << 14
    waiting: int = 1 << 10
    rows: int = 1 << 20
    pairs: int = 1 << 16
    times: int = 8
    chunk: int = CHUNK


USUAL = Limits()


class Forest:
    """The sums of all trials seen, by place. `insert` and `merge` return a new forest.

    Parameters
    ----------
    d : int
        Number of dimensions.
    metric : {"euclidean", "chebyshev", "manhattan"}
        Distance in which windows are round.
    limits : Limits
        When it builds an index, and how it asks one.

    Examples
    --------
    >>> import numpy as np
    >>> some = Places(np.array([[0.1, 0.2]]), np.array([[1, 1]]))
    >>> more = Places(np.array([[0.15, 0.9]]), np.array([[1, 1]]))
    >>> forest = Forest(d=1).insert(some).insert(more)
    >>> forest.sums(np.array([[0.0], [1.0]]), radius=0.15)
    array([[2],
           [1]])
    """

    def __init__(self, d: int, metric: str = "euclidean", limits: Limits = USUAL) -> None:
        self.d = d
        self.metric = metric
        self.limits = limits
        self.totals: Ints = np.zeros(0, dtype=np.int64)
        self.distorted = 0
        # One attribute, replaced whole: threads see the indexes built and nothing waiting, or
        # the previous state, whose waiting batches are never changed.
        self._state: tuple[tuple[Index, ...], tuple[Places, ...]] = ((), ())
        # Rows of the batches that wait, as long as any do.
        self._waiting_rows = 0
        # How often waiting trials were compared one by one. Only this changes in place: of two
        # threads one may not be counted, and the index is then built one question later.
        self._looked = 0

    def insert(self, batch: Places) -> Forest:
        """Return the forest with these places too. Their arrays now belong to it."""
        built, waiting = self._state
        grown = self._grown(
            batch.counts.sum(axis=1, dtype=np.int64),
            0 if batch.shifts is None else batch.shifts.total(),
        )
        rows = batch.size + (self._waiting_rows if waiting else 0)
        most = self.limits
        if batch.size <= most.batch and len(waiting) < most.waiting and rows <= most.rows:
            grown._state, grown._waiting_rows = (built, (*waiting, batch)), rows
        else:
            grown._state = self._settled([*self.indexes, batch]), ()
        return grown

    def merge(self, other: Forest) -> Forest:
        """Return the forest of both forests' trials."""
        grown = self._grown(other.totals, other.distorted)
        grown._state = self._settled([*self.indexes, *other.indexes]), ()
        return grown

    @property
    def parts(self) -> tuple[list[Places], list[Places]]:
        """The places of each index, and the batches that wait, from which `of` makes it again."""
        built, waiting = self._state
        return [index.places for index in built], list(waiting)

    @classmethod
    def of(cls, d: int, metric: str, built: list[Places], waiting: list[Places]) -> Forest:
        """Return the forest that has these parts: the same indexes, the same sums of floats.

        Examples
        --------
        >>> forest = Forest(d=1).insert(Places(np.array([[0.1, 0.2]]), np.array([[1, 1]])))
        >>> Forest.of(1, "euclidean", *forest.parts).totals
        array([2])
        """
        forest = cls(d, metric)
        for part in (*built, *waiting):
            distorted = 0 if part.shifts is None else part.shifts.total()
            forest = forest._grown(part.counts.sum(axis=1, dtype=np.int64), distorted)
        indexes = tuple(forest._build(part, presorted=True) for part in built)
        forest._state, forest._waiting_rows = (
            (indexes, tuple(waiting)),
            sum(p.size for p in waiting),
        )
        return forest

    @property
    def indexes(self) -> tuple[Index, ...]:
        """The indexes, the largest first."""
        built, waiting = self._state
        if waiting:
            # Joined into new arrays: other forests may wait for the same batches.
            built = self._settled([*built, concatenate(list(waiting))])
            self._state = built, ()
        return built

    @property
    def places(self) -> list[Places]:
        """The places of each index; a place may stand in several of them."""
        return [index.places for index in self.indexes]

    @property
    def size(self) -> int:
        """Number of places, those in several indexes counted in each."""
        return sum(places.size for places in self.places)

    @property
    def width(self) -> int:
        """Number of counts, the lattice of shifts aside."""
        return self.totals.size

    @property
    def span(self) -> tuple[int, int]:
        """The first point of the lattice that distorted trials reach, and the number of them."""
        used = [(first, first + n) for first, n in (index.span for index in self.indexes) if n]
        if not used:
            return 0, 0
        first = min(start for start, _ in used)
        return first, max(stop for _, stop in used) - first

    @property
    def has_sizes(self) -> bool:
        """Whether any distorted trial counts for more or less than one."""
        shifts = (places.shifts for places in self.places)
        return any(each is not None and each.size is not None for each in shifts)

    def sums(self, queries: Floats, radius: float, n_jobs: int | None = None) -> Ints:
        """Return (m, width + n): the sums within `radius` of each of the (m, d) queries.

        The counts, and the n points of the lattice that `span` names, in units of 1/UNIT.

        Queries are visited in a spatial order, so that each finds in the processor's cache
        what the one before it used; the answers come in the caller's order.
        """
        if self._has_few(len(queries)):
            self._looked += 1
            waiting = concatenate(list(self._state[1]))
            return Brute.build(waiting, metric_code(self.metric, self.d)).sums(queries, radius)
        order = visiting_order(queries.T)
        ordered = queries[order]
        indexes, span = self.indexes, self.span
        out = np.empty((len(queries), self.width + span[1]), dtype=np.int64)

        def answer(chunk: slice) -> None:
            parts = [index.sums(ordered[chunk], radius) for index in indexes]
            out[chunk] = self._added(span, parts)

        run(answer, len(queries), n_jobs, self.limits.chunk)
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        return out.take(back, axis=0)  # three times as fast as putting rows where they belong

    def _has_few(self, queries: int) -> bool:
        """Return whether all trials wait, and looking at all of them is quick."""
        built, waiting = self._state
        pairs, most = queries * self._waiting_rows, self.limits
        if built or not waiting or self._looked >= most.times or pairs > most.pairs:
            return False
        width = len(waiting[0].counts)
        return all(part.shifts is None and len(part.counts) == width for part in waiting)

    def _added(self, span: tuple[int, int], parts: list[Ints]) -> Ints:
        """Return the sums of all indexes, given those of each."""
        aligned = map(functools.partial(self._aligned, span), parts, self.indexes)
        return functools.reduce(np.add, aligned)

    def _aligned(self, span: tuple[int, int], part: Ints, index: Index) -> Ints:
        """Return the sums of an index, with the points of the lattice that all together reach."""
        if index.span == span:
            return part
        out = np.zeros((len(part), self.width + span[1]), dtype=np.int64)
        out[:, : self.width] = part[:, : self.width]
        start = self.width + index.span[0] - span[0]
        out[:, start : start + index.span[1]] = part[:, self.width :]
        return out

    def _grown(self, totals: Ints, distorted: int) -> Forest:
        """Return a forest still without trials, whose totals are ours and those given."""
        forest = Forest(self.d, self.metric, self.limits)
        width = max(self.width, totals.size)
        forest.totals = padded(self.totals, width) + padded(totals, width)
        forest.distorted = self.distorted + distorted
        return forest

    def _settled(self, parts: list[Index | Places]) -> tuple[Index, ...]:
        """Return indexes of these parts, joined until each is larger than all after it."""
        width = max(len(_places(part).counts) for part in parts)
        parts = [p if len(_places(p).counts) == width else _places(p).widened(width) for p in parts]
        parts.sort(key=_size)
        before = np.cumsum([0, *map(_size, parts)])
        joins = [
            i for i, part in enumerate(parts) if _size(part) <= max(before[i], self.limits.small)
        ]
        cut = joins[-1] + 1 if joins else 0
        alone = [self._index(part) for part in parts[cut:]]
        joined = [self._joined(parts[:cut])] if cut else []
        return (*reversed(alone), *joined)

    def _joined(self, parts: list[Index | Places]) -> Index:
        """Return one index of these parts."""
        if len(parts) == 1:
            return self._index(parts[0])
        return self._build(concatenate([_places(part) for part in parts]), presorted=True)

    def _index(self, part: Index | Places) -> Index:
        return self._build(part) if isinstance(part, Places) else part

    def _build(self, places: Places, presorted: bool = False) -> Index:
        flat = self.d == 1 and places.shifts is None and places.width <= FEW
        kind = Line if flat else KDTree
        return kind.build(places, metric_code(self.metric, self.d), presorted)


class Standing:
    """Queries that are asked repeatedly while trials arrive.

    A forest keeps a large index until it has grown by as many trials again. So the answers of large
    indexes can be kept too, and only small ones are asked again.

    Parameters
    ----------
    queries : array of shape (m, d)

    Examples
    --------
    >>> import numpy as np
    >>> forest = Forest(d=1).insert(Places(np.array([[0.1, 0.2]]), np.array([[1, 1]])))
    >>> Standing(np.array([[0.0], [1.0]])).sums(forest, radius=0.15)
    array([[1],
           [0]])
    """

    def __init__(self, queries: Floats) -> None:
        self.queries = queries
        self._order = visiting_order(queries.T)
        self._ordered = queries[self._order]
        self._last: tuple[float, list[tuple[Index, Ints]]] = (0.0, [])

    def sums(self, forest: Forest, radius: float) -> Ints:
        """Return what `forest.sums(queries, radius)` would."""
        known = self._last[1] if self._last[0] == radius else []
        indexes, span = forest.indexes, forest.span
        parts = [self._of(index, radius, known) for index in indexes]
        self._last = radius, list(zip(indexes, parts, strict=True))
        out = np.empty((len(self.queries), forest.width + span[1]), dtype=np.int64)
        out[self._order] = forest._added(span, parts)
        return out

    def _of(self, index: Index, radius: float, known: list[tuple[Index, Ints]]) -> Ints:
        """Return the sums of one index, which may be known."""
        kept = (sums for other, sums in known if other is index)
        sums = next(kept, None)
        return index.sums(self._ordered, radius) if sums is None else sums


def _places(part: Index | Places) -> Places:
    return part if isinstance(part, Places) else part.places


def _size(part: Index | Places) -> int:
    return _places(part).size
