"""Partitions of dask collections: found, checked on the worker that reads them, named in errors.

Frames are read together, so that a file is opened once and only the columns asked for are read.
dask would join small partitions of each frame on its own, and rows would no longer go together:
here partitions stay as the user sees them.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import dask
import numpy as np
import numpy.typing as npt
from dask.delayed import Delayed, delayed

from betafield import sharing, trials
from betafield.estimators import SmoothBetaClassifier as Local

Floats = npt.NDArray[np.float64]
# Arguments of a partition by their names.
Batch = dict[str, Any]

# Points of a partition by which regions are cut.
SAMPLE = 200
# Parts that a worker makes for each of its threads, at most, of what it has read.
PARTS = 4
# Tasks that are looked through for the file that a partition comes from.
LOOKED_THROUGH = 100


class Partition(NamedTuple):
    """A part of a collection: how errors call it, and its columns, still to be computed."""

    name: str
    batch: Any


# Finding -----------------------------------------------------------------------------------


def partitions(X: Any, **others: Any) -> list[Partition]:
    """Return the partitions of X, with those of whatever else is given."""
    columns = {"X": X, **{name: each for name, each in others.items() if each is not None}}
    if not dask.is_dask_collection(X):
        for name, values in columns.items():
            if dask.is_dask_collection(values):
                raise TypeError(f"{name}: found a dask collection, but X is none; both must be")
        return [Partition("", columns)]
    same = {name: each for name, each in columns.items() if not dask.is_dask_collection(each)}
    for name, values in same.items():
        _require_for_all(name, values)
    split = {name: each for name, each in columns.items() if name not in same}
    _require_same_number(split)
    batches = [_with(batch, same) for batch in _batches(split)]
    return [Partition(_name(n, batch), batch) for n, batch in enumerate(batches)]


def blocks(name: str, values: Any) -> list[Delayed]:
    """Return the partitions of a dask array or dataframe, by rows."""
    _number(name, values)
    if _is_frame(values):
        return _unjoined(values)
    return list(np.ravel(values.to_delayed()))


def lengths(X: Any) -> tuple[int, ...] | None:
    """Return the numbers of rows of all partitions, where they are known."""
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
            meta=frames[0]._meta,
            enforce_metadata=False,
            align_dataframes=False,
        )
        return _unjoined(together)
    split = [blocks(name, values) for name, values in columns.items()]
    return [dict(zip(columns, each, strict=True)) for each in zip(*split, strict=True)]


def _bundled(*columns: Any, names: list[str]) -> Batch:
    return dict(zip(names, columns, strict=True))


def _with(batch: Any, same: Batch) -> Any:
    """Return a batch with the columns that are the same in all."""
    if isinstance(batch, dict):
        return {**batch, **same}
    return delayed(dict)(batch, **same) if same else batch


def _is_frame(values: Any) -> bool:
    # Whatever a delayed object is asked for, it has.
    is_frame = hasattr(values, "divisions") and hasattr(values, "expr")
    return is_frame and not isinstance(values, Delayed)


def _unjoined(frame: Any) -> list[Delayed]:
    """Return the partitions of a frame, a task each, columns that nobody needs left unread."""
    from dask.dataframe.dask_expr import new_collection

    expression = frame.expr.simplify().lower_completely().fuse()
    return list(new_collection(expression).to_delayed(optimize_graph=False))


def _number(name: str, values: Any) -> int:
    """Return the number of partitions; raise for what has none by rows."""
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


def _require_for_all(name: str, values: Any) -> None:
    """Raise unless a local argument can be the same for all partitions."""
    ndim = np.ndim(values)
    if name == "y" or not (ndim == 0 or (name == "context" and (ndim == 1 or len(values) == 1))):
        raise TypeError(
            f"{name}: found {type(values).__name__}, but X is a dask collection; a dask "
            "collection with the same partitions is needed"
        )


# Naming ------------------------------------------------------------------------------------


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """Raise what is raised inside again, with the name of the partition."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if not name:
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name}: {error}") from error


@contextlib.contextmanager
def blamed(inputs: Sequence[tuple[str, Delayed]]) -> Iterator[None]:
    """Raise what is raised inside again, with the name of the input that cannot be computed."""
    try:
        yield
    except Exception as error:
        if str(error).startswith(("partition ", "region ")):
            raise
        name, cause = _failed(inputs)
        if not name:
            raise
        kinds = (OSError, TypeError, ValueError, LookupError)
        kind = next((kind for kind in kinds if isinstance(cause, kind)), RuntimeError)
        kind = ValueError if kind is LookupError else kind
        what = f"{type(cause).__name__}: {cause}"
        raise kind(f"{name}: could not be computed. {what}") from error


def computed(wanted: Sequence[Delayed], inputs: Sequence[tuple[str, Delayed]]) -> tuple[Any, ...]:
    """Return what is wanted of some inputs."""
    with blamed(inputs):
        return tuple(dask.compute(*wanted))


def on_cluster() -> bool:
    """Return whether tasks go to a cluster, where results can stay."""
    scheduler = getattr(dask.base.get_scheduler(), "__self__", None)
    return hasattr(scheduler, "scheduler_info")


def together(reads: Sequence[Delayed]) -> list[list[int]]:
    """Return which partitions to learn from together: of those that one worker has read, a few.

    A query then asks few windows, however many partitions there are, and nothing is moved.
    """
    futures = [_future(read) for read in reads]
    if not (on_cluster() and all(futures)):
        return [[i] for i in range(len(reads))]
    client = dask.base.get_scheduler().__self__
    owners, threads = client.who_has(futures), client.nthreads()
    groups: dict[str, list[int]] = {}
    for i, future in enumerate(futures):
        owner = next(iter(owners.get(future.key, ())), "")
        groups.setdefault(owner, []).append(i)
    return [
        some.tolist()
        for owner, group in groups.items()
        for some in np.array_split(group, min(len(group), PARTS * threads.get(owner, 1)))
    ]


def _future(block: Delayed) -> Any:
    """Return what stands for a block that is kept on a cluster, or None."""
    value = block.dask.get(block.key)
    value = getattr(value, "value", value)
    return value if hasattr(value, "status") else None


def _failed(inputs: Sequence[tuple[str, Delayed]]) -> tuple[str, BaseException | None]:
    """Return the name of the first input that cannot be computed, and why."""
    for name, block in inputs:
        if on_cluster():
            from distributed import futures_of

            for future in futures_of(block):
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
    """Return the files that a partition is read from, as far as its tasks tell."""
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
    """Return the file and the row groups of a piece, as dask.dataframe tells fsspec of it."""
    if len(value) != 3 or not (isinstance(value[0], str) and value[0].endswith((".parq", "et"))):
        return []
    return [value[0] + _groups(value[1])]


def _file(value: Any) -> list[str]:
    """Return the path of a fragment of pyarrow, or of an open file."""
    fragment = getattr(value, "fragment", None)
    if fragment is not None:
        return [f"{fragment.path}{_groups([group.id for group in fragment.row_groups])}"]
    return [str(value.path)] if hasattr(value, "path") and hasattr(value, "mode") else []


def _groups(numbers: Any) -> str:
    if not isinstance(numbers, list) or not numbers:
        return ""
    return f", row group{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


# Checking ----------------------------------------------------------------------------------


class Checked(NamedTuple):
    """The trials of a partition, checked as `betafield.trials` does, and its features."""

    name: str
    features: dict[str, Any]
    points: Floats
    labels: npt.NDArray[Any] | None = None
    counts: npt.NDArray[np.int64] | None = None
    weight: Floats | None = None
    context: Floats | None = None

    @property
    def is_void(self) -> bool:
        """Whether nothing here counts: no rows, or none with a weight."""
        if self.counts is not None:
            return not self.counts.any()
        counts = self.weight is None or bool((self.weight * trials.FRACTIONS >= 0.5).any())
        return not (len(self.points) and counts)

    def columns(self, classes: npt.NDArray[Any]) -> trials.Columns:
        """Return one row a class, telling how many trials ended so."""
        if self.counts is not None:
            return self.counts
        return trials.outcomes(np.asarray(self.labels), classes)


def checked(name: str, batch: Batch, known: dict[str, Any]) -> Checked:
    """Return the trials of a partition; `known` are the features that it must have, if any."""
    with named(name):
        n_rows = _n_rows(batch["X"])
        if not n_rows:
            _require_empty(batch)
            return Checked(name, {}, np.empty((0, 0)), np.empty(0))
        model = Local()
        model.__dict__.update(known)
        points = trials.points(model, batch["X"], reset=not known)
        features = {k: v for k, v in model.__dict__.items() if k.endswith("_in_")}
        context = trials.context(batch.get("context"), n_rows)
        if "trials" in batch:
            counts = trials.binomial(batch["successes"], batch["trials"], n_rows, part=True)
            return Checked(name, features, points, counts=counts, context=context)
        labels = trials.labels(batch["y"], n_rows)
        weight = trials.weights(batch.get("sample_weight"), n_rows, part=True)
        return Checked(name, features, points, labels, None, weight, context)


def _n_rows(X: Any) -> int:
    return len(X) if np.ndim(X) else 1


def _require_empty(batch: Batch) -> None:
    for name, values in batch.items():
        if name != "context" and np.ndim(values) and len(values):
            raise ValueError(f"{name}: found {len(values)} rows where X has 0; they must be equal")


# A first look ------------------------------------------------------------------------------


class Survey(NamedTuple):
    """A first look at a partition.

    Parameters
    ----------
    name : str
    rows : int
    is_void : bool
        Whether nothing in it counts.
    features : dict
        Number and names of the features.
    labels : array
        Those that it has.
    corners : array of shape (n, d) or None
        The lowest and the highest coordinates of trials that teach something; none where there
        are no such trials. None: classes must be known first.
    sample : array of shape (n, d)
        Some points.
    """

    name: str
    rows: int
    is_void: bool
    features: dict[str, Any]
    labels: npt.NDArray[Any]
    corners: Floats | None
    sample: Floats

    @property
    def is_late(self) -> bool:
        """Whether its corners can be told only when the classes are known."""
        return bool(self.rows) and self.corners is None


def surveyed(
    trials_: Checked, classes: npt.NDArray[Any] | None, rule: str, wants_corners: bool
) -> Survey:
    """Return a first look at a partition, where contexts are shared by this rule."""
    points, labels = trials_.points, np.array([0, 1])
    if trials_.labels is not None:
        labels = np.unique(trials_.labels)
    # Whether a trial under a context teaches something may depend on how it ended.
    known = labels if classes is None else classes
    corners = None
    if wants_corners and (trials_.context is None or len(known) == 2):
        corners = cornered(trials_, known, rule)
    sample = points[:: max(1, len(points) // SAMPLE)]
    return Survey(
        trials_.name,
        len(points),
        trials_.is_void,
        trials_.features,
        labels,
        corners,
        sample,
    )


def cornered(trials_: Checked, classes: npt.NDArray[Any], rule: str) -> Floats:
    """Return the lowest and the highest coordinates of trials that teach something, if any."""
    points, _ = teaching(trials_, classes, rule)
    return np.stack([points.min(axis=0), points.max(axis=0)]) if len(points) else points


def teaching(
    trials_: Checked, classes: npt.NDArray[Any], rule: str
) -> tuple[Floats, sharing.Evidence | None]:
    """Return the points of trials that teach something, and what they teach."""
    if trials_.is_void:
        return trials_.points[:0], None
    model = Local(sharing=rule)
    model.classes_ = classes
    with named(trials_.name):
        evidence = model._evidence(trials_.columns(classes), trials_.weight, trials_.context)
    points = trials_.points if evidence.rows is None else trials_.points[evidence.rows]
    return points, evidence


def exact_sums(
    trials_: Checked, classes: npt.NDArray[Any], rule: str, column: Callable[..., Floats]
) -> list[list[float]]:
    """Return numbers that add up to the sums over all trials of column(points, weights).

    A list for each: their exact sum is that of the column, as no single float may be.
    """
    points, evidence = teaching(trials_, classes, rule)
    if evidence is None:
        return []
    values = column(points, evidence.weights(len(classes)))
    return [_exact_sum(each) for each in values.T]


def _exact_sum(values: Floats) -> list[float]:
    """Return numbers whose sum is exactly that of the values: what is left of it, time and again.

    Examples
    --------
    >>> _exact_sum(np.array([1.0, 1e-30, 1e30]))
    [1e+30, 1.0, 1e-30]
    """
    found: list[float] = []
    while rest := math.fsum(itertools.chain(values, found)):
        found.append(-rest)
    return [-each for each in found]


def require_same_features(found: Sequence[Survey]) -> None:
    """Raise for the first partition whose features are not those of the first one with rows."""
    first, *others = [survey for survey in found if survey.rows]
    for survey, (name, ours) in itertools.product(others, first.features.items()):
        theirs = survey.features.get(name)
        if not np.array_equal(np.asarray(theirs), np.asarray(ours)):
            raise ValueError(
                f"{survey.name}: its {name} is {_listed(theirs)}, that of {first.name} is "
                f"{_listed(ours)}; they must be equal"
            )


def all_labels(found: Sequence[Survey]) -> npt.NDArray[Any]:
    """Return the labels of all partitions; raise where some are texts and others numbers."""
    first, *others = [survey for survey in found if survey.rows]
    for survey in others:
        if _is_text(survey.labels) != _is_text(first.labels):
            raise ValueError(
                f"{survey.name}: found y such as {_listed(survey.labels[:1])}, where {first.name} "
                f"has {_listed(first.labels[:1])}; texts and numbers are no labels of one y"
            )
    return np.concatenate([survey.labels for survey in (first, *others)])


def _is_text(labels: npt.NDArray[Any]) -> bool:
    return any(isinstance(label, str | bytes) for label in labels.tolist())


def _listed(values: Any) -> str:
    return str(np.asarray(values).tolist())
