"""Indexes of doubling sizes: cheap inserts, exact answers, merging.

This is the logarithmic method. A forest is a list of indexes, each larger than all later ones
together; new places and the indexes that would violate this are built into one. So each time a
trial moves, it moves to an index of at least twice the size, at most log₂(t) times, and a query
sums over at most log₂(t) indexes. Sums are integers, so answers do not depend on how the trials are
distributed over the indexes.

Small batches are kept as they are until the first query, so a stream of them costs one build.
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

# Number of statistics up to which prefix sums pay off.
FEW = 8


class Limits(NamedTuple):
    """When a forest builds an index, and how it queries one. This affects only speed, not answers.

    Parameters
    ----------
    small : int
        Indexes up to this size are rebuilt rather than kept separate, which is as fast as building
        one.
    batch : int
        Larger batches are indexed immediately.
    waiting : int
        Number of batches that may wait for the first query.
    rows : int
        Number of rows that may wait: rows at one place are joined only when they are indexed.
    pairs, times : int
        How many pairs of a query and a waiting row may be compared directly, and how often, before
        an index is built: a first answer then needs no compilation.
    chunk : int
        Number of queries that justify another thread.
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
    """The sums of all trials, by place. `insert` and `merge` return a new forest.

    Parameters
    ----------
    d : int
        Number of dimensions.
    metric : {"euclidean", "chebyshev", "manhattan"}
        The distance that defines windows.
    limits : Limits
        When it builds an index, and how it queries one.

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
        # One attribute, replaced as a whole: threads see either the new indexes with nothing
        # waiting, or the previous state, whose waiting batches never change.
        self._state: tuple[tuple[Index, ...], tuple[Places, ...]] = ((), ())
        # Number of rows in the waiting batches, if there are any.
        self._waiting_rows = 0
        # How often waiting trials were compared directly. Only this is changed in place: a race
        # between two threads may lose a count, and the index is then built one query later.
        self._looked = 0

    def insert(self, batch: Places) -> Forest:
        """Return a forest that includes these places, and take ownership of their arrays."""
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
        """Return a forest with the trials of both."""
        grown = self._grown(other.totals, other.distorted)
        grown._state = self._settled([*self.indexes, *other.indexes]), ()
        return grown

    @property
    def parts(self) -> tuple[list[Places], list[Places]]:
        """The places of each index, and the waiting batches; `of` rebuilds the forest from them."""
        built, waiting = self._state
        return [index.places for index in built], list(waiting)

    @classmethod
    def of(cls, d: int, metric: str, built: list[Places], waiting: list[Places]) -> Forest:
        """Return the forest with these parts: the same indexes, the same sums of floats.

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
        """The indexes, largest first."""
        built, waiting = self._state
        if waiting:
            # Joined into new arrays, because other forests may share the same batches.
            built = self._settled([*built, concatenate(list(waiting))])
            self._state = built, ()
        return built

    @property
    def places(self) -> list[Places]:
        """The places of each index; a place may appear in several of them."""
        return [index.places for index in self.indexes]

    @property
    def size(self) -> int:
        """Number of places; a place counts once per index that has it."""
        return sum(places.size for places in self.places)

    @property
    def width(self) -> int:
        """Number of counts, without the lattice of shifts."""
        return self.totals.size

    @property
    def span(self) -> tuple[int, int]:
        """The first lattice point that distorted trials reach, and the number of points."""
        used = [(first, first + n) for first, n in (index.span for index in self.indexes) if n]
        if not used:
            return 0, 0
        first = min(start for start, _ in used)
        return first, max(stop for _, stop in used) - first

    @property
    def has_sizes(self) -> bool:
        """Whether any distorted trial has a weight other than 1."""
        shifts = (places.shifts for places in self.places)
        return any(each is not None and each.size is not None for each in shifts)

    def sums(self, queries: Floats, radius: float, n_jobs: int | None = None) -> Ints:
        """Return (m, width + n): the sums within `radius` of each of the (m, d) queries.

        The columns are the counts and the n lattice points of `span`, in units of 1/UNIT.

        Queries are visited in a spatial order, so that the data for each are often still in the
        processor's cache; answers are in the caller's order.
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
        return out.take(back, axis=0)  # three times as fast as scattering the rows

    def _has_few(self, queries: int) -> bool:
        """Return whether all trials are waiting and few enough to compare directly."""
        built, waiting = self._state
        pairs, most = queries * self._waiting_rows, self.limits
        if built or not waiting or self._looked >= most.times or pairs > most.pairs:
            return False
        width = len(waiting[0].counts)
        return all(part.shifts is None and len(part.counts) == width for part in waiting)

    def _added(self, span: tuple[int, int], parts: list[Ints]) -> Ints:
        """Return the sums over all indexes, given those of each."""
        aligned = map(functools.partial(self._aligned, span), parts, self.indexes)
        return functools.reduce(np.add, aligned)

    def _aligned(self, span: tuple[int, int], part: Ints, index: Index) -> Ints:
        """Return the sums of an index, aligned to the lattice points of all indexes."""
        if index.span == span:
            return part
        out = np.zeros((len(part), self.width + span[1]), dtype=np.int64)
        out[:, : self.width] = part[:, : self.width]
        start = self.width + index.span[0] - span[0]
        out[:, start : start + index.span[1]] = part[:, self.width :]
        return out

    def _grown(self, totals: Ints, distorted: int) -> Forest:
        """Return a forest without places, whose totals are this one's plus those given."""
        forest = Forest(self.d, self.metric, self.limits)
        width = max(self.width, totals.size)
        forest.totals = padded(self.totals, width) + padded(totals, width)
        forest.distorted = self.distorted + distorted
        return forest

    def _settled(self, parts: list[Index | Places]) -> tuple[Index, ...]:
        """Return indexes of these parts, joined until each is larger than all later ones."""
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

    A forest keeps a large index until as many trials again have arrived. So the answers of large
    indexes can be cached, and only small ones are queried again.

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
        """Return the same as `forest.sums(queries, radius)`."""
        known = self._last[1] if self._last[0] == radius else []
        indexes, span = forest.indexes, forest.span
        parts = [self._of(index, radius, known) for index in indexes]
        self._last = radius, list(zip(indexes, parts, strict=True))
        out = np.empty((len(self.queries), forest.width + span[1]), dtype=np.int64)
        out[self._order] = forest._added(span, parts)
        return out

    def _of(self, index: Index, radius: float, known: list[tuple[Index, Ints]]) -> Ints:
        """Return the sums of one index, from the cache if possible."""
        kept = (sums for other, sums in known if other is index)
        sums = next(kept, None)
        return index.sums(self._ordered, radius) if sums is None else sums


def _places(part: Index | Places) -> Places:
    return part if isinstance(part, Places) else part.places


def _size(part: Index | Places) -> int:
    return _places(part).size
