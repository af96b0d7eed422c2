"""Indexes of doubling sizes: cheap inserts, exact answers, merging.

The logarithmic method. A forest is a list of indexes, each larger than all after it taken
together; new places join every index that is not, in one build. A trial thus moves to an
index of at least twice the size each time it moves, log₂(t) times at the most, and a query
sums over at most log₂(t) indexes. Sums are integers: how the trials are spread over the
indexes cannot be seen in the answer.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from betafield.windows.base import Floats, Index, Ints, Places, concatenate, metric_code
from betafield.windows.kdtree import KDTree
from betafield.windows.line import Line
from betafield.windows.zorder import codes

if TYPE_CHECKING:
    from collections.abc import Callable

# Indexes smaller than this are rebuilt rather than kept apart: that is as fast as to build one.
SMALL = 1024
# Queries for which a thread of their own pays.
CHUNK = 2048


@dataclass(frozen=True)
class Forest:
    """The sums of all trials seen, by place. It never changes: `insert` returns a new forest.

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

    d: int
    metric: str = "euclidean"
    indexes: tuple[Index, ...] = ()

    def insert(self, batch: Places) -> Forest:
        """Return the forest with these places too. Their arrays now belong to it."""
        return self._settled([*self.indexes, batch])

    def merge(self, other: Forest) -> Forest:
        """Return the forest of both forests' trials."""
        return self._settled([*self.indexes, *other.indexes])

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
        """Number of statistics."""
        return max((len(places.counts) for places in self.places), default=0)

    def totals(self) -> Ints:
        """Return the sums over all trials."""
        sums = [places.counts.sum(axis=1) for places in self.places]
        return np.asarray(np.sum(sums, axis=0), dtype=np.int64)

    def sums(self, queries: Floats, radius: float, n_jobs: int | None = None) -> Ints:
        """Return (m, width): the sums within `radius` of each of the (m, d) queries.

        Queries are visited in a spatial order, so that each finds in the processor's cache
        what the one before it used; the answers come in the caller's order.
        """
        order = _spatial_order(queries)
        ordered = queries[order]
        out = np.zeros((len(queries), self.width), dtype=np.int64)

        def answer(chunk: slice) -> None:
            for index in self.indexes:
                out[order[chunk]] += index.sums(ordered[chunk], radius)

        _run(answer, len(queries), _threads(n_jobs))
        return out

    def _settled(self, parts: list[Index | Places]) -> Forest:
        """Return the forest of these parts, joined until each is larger than all before it."""
        width = max(len(_places(part).counts) for part in parts)
        parts = [
            part if len(_places(part).counts) == width else _places(part).widened(width)
            for part in parts
        ]
        parts.sort(key=_size)
        before = np.cumsum([0, *map(_size, parts)])
        joins = [i for i, part in enumerate(parts) if _size(part) <= max(before[i], SMALL)]
        cut = joins[-1] + 1 if joins else 0
        groups = [parts[:cut], *([part] for part in parts[cut:])]
        indexes = [self._index(group) for group in reversed(groups) if group]
        return Forest(self.d, self.metric, tuple(indexes))

    def _index(self, group: list[Index | Places]) -> Index:
        """Return one index of the parts; a lone index is its own."""
        if len(group) == 1 and not isinstance(group[0], Places):
            return group[0]
        places = [_places(part) for part in group]
        kind = Line if self.d == 1 else KDTree
        return kind.build(
            concatenate(places), metric_code(self.metric, self.d), presorted=len(places) > 1
        )


def _places(part: Index | Places) -> Places:
    return part if isinstance(part, Places) else part.places


def _size(part: Index | Places) -> int:
    return _places(part).size


def _spatial_order(queries: Floats) -> Ints:
    return np.argsort(queries[:, 0] if queries.shape[1] == 1 else codes(queries.T))


def _threads(n_jobs: int | None) -> int:
    """Return the number of threads, as joblib counts: None is 1, -1 all cores, -2 all but one."""
    if n_jobs is None:
        return 1
    return n_jobs if n_jobs > 0 else max(1, len(os.sched_getaffinity(0)) + 1 + n_jobs)


def _run(work: Callable[[slice], None], m: int, threads: int) -> None:
    """Do the work over chunks of m queries: several a thread, for some regions cost more.

    A pool lives for one call: nothing to share between callers, nothing to lose in a fork.
    """
    size = max(CHUNK, -(-m // (8 * threads)))
    chunks = [slice(start, start + size) for start in range(0, m, size)]
    if threads == 1 or len(chunks) == 1:
        for chunk in chunks:
            work(chunk)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, chunks))
