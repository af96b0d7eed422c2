"""Partitions of Dask collections: found, kept on a cluster, named in errors, split by region.

Frames are read together, so that a file is opened once and only the required columns are read. Dask
would fuse small partitions of each frame on its own, and their rows would no longer match, so here
partitions stay as the user sees them.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import dask
import numpy as np
import numpy.typing as npt
from dask.delayed import Delayed, delayed

from betafield.distorted import context_for_all
from betafield.families import ContextFamily

Floats = npt.NDArray[np.float64]
# The arguments of a partition, by name.
Batch = dict[str, Any]

# A worker makes at most this many parts per thread of what it has read.
PARTS = 4
# The number of results that one task joins.
FAN_IN = 8
# The most tasks searched for the file that a partition comes from.
LOOKED_THROUGH = 100


class Partition(NamedTuple):
    """A part of a collection: its name in errors, and its columns, not yet computed."""

    name: str
    batch: Any


# Finding -----------------------------------------------------------------------------------


def partitions(X: Any, **others: Any) -> list[Partition]:
    """Return the partitions of X, with those of the other arguments."""
    columns = {"X": X, **{name: each for name, each in others.items() if each is not None}}
    if not dask.is_dask_collection(X):
        for name, values in columns.items():
            if dask.is_dask_collection(values):
                raise TypeError(f"{name}: found a dask collection, but X is none; both must be")
        return [Partition("", columns)]
    same = {name: each for name, each in columns.items() if not dask.is_dask_collection(each)}
    _require_one_family(same.get("context"))
    for name, values in same.items():
        _require_for_all(name, values)
    if "context" in same:  # otherwise it could pass for one number per row of a partition
        same["context"] = context_for_all(same["context"])
    split = {name: each for name, each in columns.items() if name not in same}
    _require_same_number(split)
    batches = [_with(batch, same) for batch in _batches(split)]
    return [Partition(_name(n, batch), batch) for n, batch in enumerate(batches)]


def blocks(name: str, values: Any) -> list[Delayed]:
    """Return the partitions of a dask array or dataframe, by rows."""
    _number(name, values)
    if _is_frame(values):
        return _unjoined(values)
    # Dask's optimisation drops results that are kept on a cluster.
    return list(np.ravel(values.to_delayed(optimize_graph=not _futures(values))))


def lengths(X: Any) -> tuple[int, ...] | None:
    """Return the numbers of rows of all partitions, if they are known."""
    chunks = getattr(X, "chunks", None)
    if chunks is None or np.isnan(chunks[0]).any():
        return None
    return tuple(chunks[0])


def _batches(columns: Batch) -> list[Any]:
    if all(_is_frame(values) for values in columns.values()):
        from dask import dataframe as dd

        frames, names = list(columns.values()), list(columns)
        together = dd.map_partitions(
            _bundled,
            *frames,
            names=names,
            meta=("batch", float),  # never used: a task returns a dict
            enforce_metadata=False,
            align_dataframes=False,
        )
        return _unjoined(together)
    split = [blocks(name, values) for name, values in columns.items()]
    return [dict(zip(columns, each, strict=True)) for each in zip(*split, strict=True)]


def _bundled(*columns: Any, names: list[str]) -> Batch:
    return dict(zip(names, columns, strict=True))


def _with(batch: Any, same: Batch) -> Any:
    """Return a batch with the arguments that all partitions share."""
    if isinstance(batch, dict):
        return {**batch, **same}
    return delayed(dict)(batch, **same) if same else batch


def _is_frame(values: Any) -> bool:
    # A delayed object has any attribute that it is asked for.
    is_frame = hasattr(values, "divisions") and hasattr(values, "expr")
    return is_frame and not isinstance(values, Delayed)


def _unjoined(frame: Any) -> list[Delayed]:
    """Return the partitions of a frame, one task each, without reading unused columns."""
    from dask.dataframe.dask_expr import new_collection

    expression = frame.expr.simplify().lower_completely().fuse()
    return list(new_collection(expression).to_delayed(optimize_graph=False))


def _number(name: str, values: Any) -> int:
    """Return the number of partitions; raise if it is not partitioned by rows."""
    is_array = hasattr(values, "numblocks") and not isinstance(values, Delayed)
    if is_array and len(values.numblocks) > 1 and values.numblocks[1] > 1:
        raise ValueError(
            f"{name}: found {values.numblocks[1]} chunks along its columns; all columns of a row "
            "must be in one chunk, so do .rechunk({1: -1}) first"
        )
    if _is_frame(values):
        return int(values.npartitions)
    if not (is_array and values.numblocks):
        raise TypeError(
            f"{name}: found {type(values).__name__}; a dask array or dataframe is needed"
        )
    return int(values.numblocks[0])


def _require_same_number(columns: Batch) -> None:
    numbers = {name: _number(name, values) for name, values in columns.items()}
    for name, number in numbers.items():
        if number != numbers["X"]:
            raise ValueError(
                f"{name}: found {number} partitions where X has {numbers['X']}; each must go "
                "with one of X, so repartition or rechunk"
            )


def _require_one_family(context: Any) -> None:
    """Raise for contexts of unknown rates that differ by row, which cannot be split."""
    if isinstance(context, ContextFamily) and len(context) != 1:
        raise TypeError(
            f"context: found {context!r}, but X is a dask collection; rates that are not known "
            "must then be those of one context for all rows, or fit a local model"
        )


def _require_for_all(name: str, values: Any) -> None:
    """Raise unless a local argument can be shared by all partitions."""
    ndim = np.ndim(values)
    if name == "y" or not (ndim == 0 or (name == "context" and (ndim == 1 or len(values) == 1))):
        raise TypeError(
            f"{name}: found {type(values).__name__}, but X is a dask collection; a dask "
            "collection with the same partitions is needed"
        )


# Naming ------------------------------------------------------------------------------------


class PartitionError(Exception):
    """An error that names its partition."""


class PartitionTypeError(PartitionError, TypeError):
    """A partition with values of the wrong kind."""


class PartitionValueError(PartitionError, ValueError):
    """A partition with invalid values."""


class PartitionOSError(PartitionError, OSError):
    """A partition whose file cannot be read."""


class PartitionRuntimeError(PartitionError, RuntimeError):
    """A partition that was lost, or could not be computed for another reason."""


KINDS: dict[type[Exception], type[PartitionError]] = {
    OSError: PartitionOSError,
    TypeError: PartitionTypeError,
    ValueError: PartitionValueError,
    LookupError: PartitionValueError,
    Exception: PartitionRuntimeError,
}


def about(name: str, error: BaseException | None, what: str) -> PartitionError:
    """Return an error of the same kind that names a partition."""
    kind = next(ours for theirs, ours in KINDS.items() if isinstance(error, theirs))
    return kind(f"{name}: {what}")


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """Raise errors again with the name of the partition."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if not name:
            raise
        raise about(name, error, str(error)) from error


@contextlib.contextmanager
def blamed(inputs: Sequence[tuple[str, Delayed]]) -> Iterator[None]:
    """Raise errors again with the name of the input that cannot be computed."""
    try:
        yield
    except PartitionError:
        raise
    except Exception as error:
        require_kept(inputs)
        name, cause = _failed(inputs)
        if not name:
            raise
        what = f"could not be computed. {type(cause).__name__}: {cause}"
        raise about(name, cause, what) from error


def computed(wanted: Sequence[Delayed], inputs: Sequence[tuple[str, Delayed]]) -> tuple[Any, ...]:
    """Return the computed values; errors name the input that failed."""
    with blamed(inputs):
        return tuple(dask.compute(*wanted))


def joint(names: Sequence[str]) -> str:
    """Return one name for several partitions.

    Examples
    --------
    >>> joint(["partition 0", "partition 1", "partition 2", "partition 3", "partition 4"])
    'partition 0, partition 1, partition 2 and 2 more'
    """
    different = list(dict.fromkeys(names))
    rest = f" and {len(different) - 3} more" if len(different) > 3 else ""
    return ", ".join(different[:3]) + rest


def _failed(inputs: Sequence[tuple[str, Delayed]]) -> tuple[str, BaseException | None]:
    """Return the name of the first input that cannot be computed, and why."""
    for name, block in inputs:
        if client_in_use() is not None:
            for future in _futures(block):
                if future.status == "error":
                    return name, future.exception()
        else:
            try:
                dask.compute(block)
            except Exception as error:
                return name, error
    return "", None


def _name(number: int, batch: Any) -> str:
    sources = dict.fromkeys(
        source
        for block in (batch.values() if isinstance(batch, dict) else [batch])
        if isinstance(block, Delayed)
        for source in _sources(block)
    )
    return f"partition {number}" + (f" ({', '.join(sources)})" if 0 < len(sources) < 4 else "")


def _sources(block: Delayed) -> list[str]:
    """Return the files that a partition is read from, as far as its tasks show."""
    graph, found = block.dask, []
    waiting: list[Any] = [graph[block.key]]
    for _ in range(LOOKED_THROUGH):
        if not waiting:
            break
        value = waiting.pop()
        if hasattr(value, "dependencies"):  # a task
            waiting += [graph[key] for key in value.dependencies if key in graph]
            waiting += [getattr(value, "args", ()), getattr(value, "kwargs", {})]
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list | tuple):
            found += _piece(value)
            waiting += value
        else:
            found += _file(value)
    return found


def _piece(value: Any) -> list[str]:
    """Return the file and the row groups of a piece, as dask.dataframe passes it to fsspec."""
    if len(value) != 3 or not (isinstance(value[0], str) and value[0].endswith((".parq", "et"))):
        return []
    return [value[0] + _groups(value[1])]


def _file(value: Any) -> list[str]:
    """Return the path of a pyarrow fragment, or of an open file."""
    fragment = getattr(value, "fragment", None)
    if fragment is not None:
        return [f"{fragment.path}{_groups([group.id for group in fragment.row_groups])}"]
    return [str(value.path)] if hasattr(value, "path") and hasattr(value, "mode") else []


def _groups(numbers: Any) -> str:
    if not isinstance(numbers, list) or not numbers:
        return ""
    return f", row group{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


# Keeping results on a cluster --------------------------------------------------------------


def client_in_use() -> Any:
    """Return the client of the cluster in use, where results can stay; None if there is none."""
    if "distributed" not in sys.modules:
        return None
    from distributed import Client

    client = getattr(dask.base.get_scheduler(), "__self__", None)
    return client if isinstance(client, Client) else None


def require_kept(inputs: Sequence[tuple[str, Delayed]]) -> None:
    """Raise if the cluster has lost its results for these inputs, or is not the one in use.

    Lost workers do not matter, because their tasks are run again; but a cluster that is restarted
    or closed forgets the tasks too.
    """
    kept = [(name, future) for name, block in inputs for future in _futures(block)]
    lost = [name for name, future in kept if future.status == "cancelled"]
    if lost:
        raise PartitionRuntimeError(
            f"{joint(lost)}: lost, because the cluster that kept the trials, or its client, was "
            "restarted or closed; fit again (a model made by compute() outlives its cluster)"
        )
    in_use = client_in_use()
    # Futures from a file or another process have no client yet, and get the one in use.
    away = [name for name, future in kept if future.client not in (None, in_use)]
    if away:
        raise PartitionRuntimeError(
            f"{joint(away)}: kept by another cluster than the one in use; make its client the "
            "current one (with client.as_current(): ...), or fit again"
        )


def together(reads: Sequence[Delayed]) -> list[list[int]]:
    """Return which partitions to learn from together: a few of those on the same worker.

    A query then asks few windows, however many partitions there are, and no data are moved.
    """
    client = client_in_use()
    kept = [future for read in reads for future in _futures(read) if future.key == read.key]
    if client is None or len(kept) < len(reads):
        return [[i] for i in range(len(reads))]
    owners, threads = client.who_has(kept), client.nthreads()
    groups: dict[str, list[int]] = {}
    for i, future in enumerate(kept):
        groups.setdefault(next(iter(owners.get(future.key, ())), ""), []).append(i)
    return [
        some.tolist()
        for owner, group in groups.items()
        for some in np.array_split(group, min(len(group), PARTS * threads.get(owner, 1)))
    ]


def _futures(block: Any) -> list[Any]:
    """Return the futures of results that are kept on a cluster."""
    if "distributed" not in sys.modules:
        return []
    from distributed import futures_of

    return list(futures_of(block))


def in_tree(join: Callable[..., Any], results: list[Delayed]) -> Delayed:
    """Return all results joined in a tree, on the workers that have them."""
    while len(results) > 1:
        groups = [results[i : i + FAN_IN] for i in range(0, len(results), FAN_IN)]
        # As separate arguments: inside a list, Dask loses track of results kept on a cluster.
        results = [delayed(join)(*group) for group in groups]
    return results[0]


# Regions of space with about equally many trials -------------------------------------------


class Plane(NamedTuple):
    """A cut at a value along an axis. Children are indices of planes, or −1 − that of a region."""

    axis: int
    value: float
    low: int
    high: int


class Regions(NamedTuple):
    """Boxes that fill all of space, as a tree of planes.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> Regions.cut(points, number=2).of(points).tolist()
    [0, 0, 1, 1]
    """

    planes: list[Plane]
    number: int

    @classmethod
    def cut(cls, points: Floats, number: int) -> Regions:
        """Return this many regions, cut by a sample of the points."""
        planes: list[Plane] = []
        _cut(points, number, planes, iter(range(number)))
        return cls(planes, number)

    def of(self, points: Floats) -> npt.NDArray[np.intp]:
        """Return the index of each point's region."""
        found = np.zeros(len(points), dtype=np.intp)
        waiting = [(0, np.arange(len(points)))] if self.planes else []
        while waiting:
            mine, rows = waiting.pop()
            plane = self.planes[mine]
            is_low = points[rows, plane.axis] <= plane.value
            for child, some in ((plane.low, rows[is_low]), (plane.high, rows[~is_low])):
                if child < 0:
                    found[some] = -1 - child
                else:
                    waiting.append((child, some))
        return found


def _cut(points: Floats, number: int, planes: list[Plane], regions: Iterator[int]) -> int:
    """Cut the longest side in proportion to the regions on it; return the index of the cut."""
    if number == 1:
        return -1 - next(regions)
    axis = int(np.argmax(np.ptp(points, axis=0))) if len(points) else 0
    half = number // 2
    value = float(np.quantile(points[:, axis], half / number)) if len(points) else 0.0
    is_low = points[:, axis] <= value
    mine = len(planes)
    planes.append(Plane(axis, value, 0, 0))
    low = _cut(points[is_low], half, planes, regions)
    high = _cut(points[~is_low], number - half, planes, regions)
    planes[mine] = Plane(axis, value, low, high)
    return mine
