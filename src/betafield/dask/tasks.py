"""What workers do: check the trials of a partition, survey them, learn from them, answer.

Tasks are pure functions, because Dask runs them again if a worker is lost with its results.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import categories, choosing, distorted, fitting, learning, trials
from betafield.categories import Asked, Categories
from betafield.dask.partitions import Batch, PartitionValueError, Regions, named
from betafield.dask.questions import Answer, Outline, Question
from betafield.evidence import Polynomial, Totals
from betafield.evidence.columns import FRACTIONS
from betafield.evidence.encode import recounted
from betafield.field import Field
from betafield.learning import Trials
from betafield.options import Options
from betafield.smooth import SmoothField
from betafield.sums import Sums
from betafield.windows import Forest, Places
from betafield.windows.base import concatenate

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

# The estimator's name in errors.
OWNER = "SmoothBetaClassifier"
# Points sampled per partition, by which regions are cut.
SAMPLE = 200


# Checking ----------------------------------------------------------------------------------


class Checked(NamedTuple):
    """The trials of a partition, checked as in `betafield.trials`, and its features."""

    name: str
    features: trials.Features
    points: Floats
    labels: npt.NDArray[Any] | None = None
    counts: Ints | None = None
    weight: Floats | None = None
    context: distorted.Context | None = None
    group: Floats | None = None

    @property
    def is_void(self) -> bool:
        """Whether nothing here counts: there are no rows, or none with a weight."""
        if self.counts is not None:
            return not self.counts.any()
        counts = self.weight is None or bool((self.weight * FRACTIONS >= 0.5).any())
        return not (len(self.points) and counts)

    def trials(self, classes: npt.NDArray[Any]) -> Trials:
        """Return the trials, given all classes."""
        if self.counts is not None:
            return Trials(self.points, self.counts, self.weight, self.context, self.group)
        outcomes = trials.outcomes(np.asarray(self.labels), classes)
        return Trials(self.points, outcomes, self.weight, self.context, self.group)


def checked(
    name: str, batch: Batch, known: trials.Features | None, asked: Asked = trials.NUMBERS
) -> Checked:
    """Return the checked trials of a partition; `known` are the features required, if any."""
    with named(name):
        n_rows = _n_rows(batch["X"])
        if not n_rows:
            _require_empty(batch)
            return Checked(name, trials.Features(0), np.empty((0, 0)), np.empty(0))
        points, features = _points(batch["X"], known, asked)
        context = distorted.context(batch.get("context"), n_rows)
        group = trials.groups(batch.get("groups"), n_rows, part=True)
        if "trials" in batch:
            counts = trials.binomial(batch["successes"], batch["trials"], n_rows, part=True)
            return Checked(name, features, points, counts=counts, context=context, group=group)
        labels = trials.labels(batch["y"], n_rows)
        weight = trials.weights(batch.get("sample_weight"), n_rows, part=True)
        return Checked(name, features, points, labels, None, weight, context, group)


def asked_points(X: Any, features: trials.Features) -> Floats:
    """Return the points of a block, which may be empty."""
    return trials.more_points(OWNER, X, features) if len(X) else np.empty((0, features.number))


def levels_of(read: Checked) -> Categories | None:
    """Return the levels of categories in a partition; None if it has no rows."""
    return read.features.categories if len(read.points) else None


def _points(X: Any, known: trials.Features | None, asked: Asked) -> tuple[Floats, trials.Features]:
    if known is None:
        return trials.first_points(OWNER, X, asked)
    if isinstance(asked.categorical_features, str):
        categories.require_alike(X, known.categories)
    return trials.further_points(OWNER, X, known.unseen())


def _n_rows(X: Any) -> int:
    return len(X) if np.ndim(X) else 1


def _require_empty(batch: Batch) -> None:
    for name, values in batch.items():
        if name != "context" and np.ndim(values) and len(values):
            raise ValueError(f"{name}: found {len(values)} rows where X has 0; they must be equal")


# Survey ------------------------------------------------------------------------------------


class Look(NamedTuple):
    """A survey of one partition.

    Parameters
    ----------
    name : str
    rows : int
    is_void : bool
        Whether nothing in it counts.
    features : Features
    labels : array
        The distinct labels.
    corners : array of shape (n, d) or None
        The lowest and the highest coordinates of informative trials; empty if there are no such
        trials. None: the classes must be known first.
    sample : array of shape (n, d)
        A sample of the points.
    """

    name: str
    rows: int
    is_void: bool
    features: trials.Features
    labels: npt.NDArray[Any]
    corners: Floats | None
    sample: Floats

    @property
    def is_late(self) -> bool:
        """Whether its corners cannot be computed before the classes are known."""
        return bool(self.rows) and self.corners is None


def looked_at(
    read: Checked, classes: npt.NDArray[Any] | None, options: Options, wants_corners: bool
) -> Look:
    """Return a survey of one partition."""
    points, labels = read.points, np.array([0, 1])
    if read.labels is not None:
        labels = np.unique(read.labels)
    # Whether a trial under a context is informative may depend on its outcome.
    known = labels if classes is None else classes
    is_sure = classes is not None or options.pos_label is None
    corners = None
    if wants_corners and (read.context is None or (is_sure and len(known) == 2)):
        corners = cornered(read, known, options)
    sample = points[:: max(1, len(points) // SAMPLE)]
    return Look(read.name, len(points), read.is_void, read.features, labels, corners, sample)


def cornered(read: Checked, classes: npt.NDArray[Any], options: Options) -> Floats:
    """Return the lowest and the highest coordinates of informative trials, if any."""
    points, _ = _teaching(read, classes, options)
    return np.stack([points.min(axis=0), points.max(axis=0)]) if len(points) else points


def exact_sums(
    read: Checked, classes: npt.NDArray[Any], options: Options, column: Callable[..., Floats]
) -> list[list[float]]:
    """Return numbers that add up exactly to the sums of column(points, weights) over all trials.

    There is one list per column, because a single float may not hold an exact sum.
    """
    points, weight = _teaching(read, classes, options)
    return [exact_sum(each) for each in column(points, weight).T] if len(points) else []


def exact_sum(values: Floats) -> list[float]:
    """Return numbers with exactly the sum of the values: repeatedly, the rounded remainder.

    Examples
    --------
    >>> exact_sum(np.array([1.0, 1e-30, 1e30]))
    [1e+30, 1.0, 1e-30]
    """
    found: list[float] = []
    while rest := math.fsum(itertools.chain(values, found)):
        found.append(-rest)
    return [-each for each in found]


def _teaching(read: Checked, classes: npt.NDArray[Any], options: Options) -> tuple[Floats, Floats]:
    """Return the points of informative trials, and the number of trials at each."""
    if read.is_void:
        return read.points[:0], np.empty(0)
    with named(read.name):
        evidence = learning.evident(None, options, len(classes), read.trials(classes))
    there = slice(None) if evidence.rows is None else evidence.rows
    return read.points[there], evidence.weights(len(classes))


# Sums by place -----------------------------------------------------------------------------


def summed(bare: SmoothField, *reads: Checked) -> Sums:
    """Return the trials of some partitions by place; `bare` is the field without trials."""
    return joined(*(_summed(bare, read) for read in reads))


def joined(*some: Sums) -> Sums:
    """Return the trials of several sums, with each place once."""
    return functools.reduce(Sums.plus, some).distinct()


def _summed(bare: SmoothField, read: Checked) -> Sums:
    if read.is_void:
        return bare.sums
    with named(read.name):
        return fitting.added(bare, read.trials(bare.classes)).sums


# Windows -----------------------------------------------------------------------------------


class Learned(NamedTuple):
    """The evidence of a partition, or of a piece of it, before it is put into windows."""

    places: list[Places]
    totals: Totals
    polynomials: tuple[Polynomial, ...]


def learned(bare: Field, *reads: Checked) -> Part:
    """Return the windows of some partitions; `bare` is the field without trials."""
    return gathered(bare, *(_learned(bare, read) for read in reads))


def split(bare: Field, regions: Regions, read: Checked) -> list[Learned]:
    """Return the evidence of a partition in each region."""
    places, totals, polynomials = _learned(bare, read)
    # Totals are only ever added up, so they may go with any of the regions.
    pieces = [Learned([], Totals() if j else totals, polynomials) for j in range(regions.number)]
    for each in places:
        region = regions.of(each.axes.T)
        for j in np.unique(region):
            pieces[j].places.append(each.where(region == j))
    return pieces


def gathered(bare: Field, *pieces: Learned) -> Part:
    """Return the windows of several partitions, or of pieces of them."""
    every = union(*(piece.polynomials for piece in pieces))
    places = [
        each for piece in pieces for each in _recounted(piece.places, piece.polynomials, every)
    ]
    totals = functools.reduce(Totals.plus, (piece.totals for piece in pieces))
    return Part(_built(places, bare.windows), totals, every)


def union(*polynomials: tuple[Polynomial, ...]) -> tuple[Polynomial, ...]:
    """Return all polynomials, in the order in which a single `fit` would count them."""
    return tuple(sorted({each for some in polynomials for each in some}))


def _learned(bare: Field, read: Checked) -> Learned:
    if read.is_void:
        return Learned([], Totals(), ())
    with named(read.name):
        some = read.trials(bare.classes)
        points, evidence = learning.located(
            bare, bare.options, bare.features, len(bare.classes), some
        )
    places = [bare.placed(points, evidence)] if len(points) else []
    return Learned(places, evidence.totals, evidence.polynomials)


def _recounted(
    places: list[Places], theirs: tuple[Polynomial, ...], ours: tuple[Polynomial, ...]
) -> list[Places]:
    """Return places that were counted by some polynomials, counted by more."""
    return places if theirs in ((), ours) else recounted(places, theirs, ours)[1]


def _built(places: list[Places], like: Forest) -> Forest:
    """Return windows of these places, with the index built."""
    windows = Forest(like.d, like.metric)
    if places:
        windows = windows.insert(concatenate(places) if len(places) > 1 else places[0])
    _ = windows.indexes  # built now, not by the first query
    return windows


# Answers -----------------------------------------------------------------------------------


class Told(NamedTuple):
    """The properties of a part that are known without querying its windows."""

    size: int
    sums: Ints
    span: tuple[int, int]
    box: Floats
    totals: Totals
    polynomials: tuple[Polynomial, ...]
    has_sizes: bool


@dataclass(frozen=True, eq=False)
class Part:
    """The trials of some partitions, in windows that a worker keeps.

    Parameters
    ----------
    windows : Forest
        In scaled units.
    totals : Totals
        The number of trials, and how distorted they were.
    polynomials : tuple of polynomials
        The polynomials counted.
    """

    windows: Forest
    totals: Totals
    polynomials: tuple[Polynomial, ...]

    @functools.cached_property
    def box(self) -> Floats:
        """The lowest and the highest coordinates of all places."""
        ends = [(p.axes.min(axis=1), p.axes.max(axis=1)) for p in self.windows.places if p.size]
        if not ends:
            return np.zeros((2, self.windows.d))
        low, high = zip(*ends, strict=True)
        return np.array([np.min(low, axis=0), np.max(high, axis=0)])

    def told(self) -> Told:
        """Return the properties of the part that need no queries."""
        windows = self.windows
        return Told(
            windows.size,
            windows.totals,
            windows.span,
            self.box,
            self.totals,
            self.polynomials,
            windows.has_sizes,
        )

    def answers(self, asked: tuple[Sequence[Question], Outline]) -> list[Answer]:
        """Return the answers to all questions."""
        questions, whole = asked
        return [self._answer(question, whole) for question in questions]

    def counted(self, polynomials: tuple[Polynomial, ...]) -> Part:
        """Return the same trials, counted by these polynomials, which include its own."""
        if self.polynomials in ((), polynomials):
            return Part(self.windows, self.totals, polynomials)
        places = _recounted(self.windows.places, self.polynomials, polynomials)
        return Part(_built(places, self.windows), self.totals, polynomials)

    def sampled(self, cost: float) -> Places:
        """Return as many places as a sample of all would have, those with the lowest hashes."""
        return choosing.sampled(self.windows.places, cost).places

    def hashes(self, ranges: int) -> list[Hashes]:
        """Return the hashes of all places, split into this many ranges."""
        known = np.unique(np.concatenate([choosing.hashes(p.axes) for p in self.windows.places]))
        borders = [int(2**64 * j / ranges) for j in range(1, ranges)]
        return np.split(known, np.searchsorted(known, np.array(borders, dtype=np.uint64)))

    def forest(self) -> Forest:
        """Return the windows, to move them elsewhere."""
        return self.windows

    def _answer(self, question: Question, whole: Outline) -> Answer:
        """Return the sums near the queries in reach, in the columns of all trials."""
        rows = np.flatnonzero(question.is_near(self.box, whole))
        sums = self.windows.sums(question.queries[rows], question.radius, question.n_jobs)
        return Answer(rows, _aligned(sums, self.windows, whole))


Ask = Callable[..., Any]


def tell(part: Part, name: str, sums: Ints, ask: Ask, *asked: Any) -> Any:
    """Return the answer of a part; raise if its trials have changed.

    A partition is read again if its worker was lost, and its file may have changed since.
    """
    if not np.array_equal(part.windows.totals, sums):
        raise PartitionValueError(
            f"{name}: was read again after a worker was lost, and has other trials than before: "
            f"counts of {part.windows.totals.tolist()}, once {sums.tolist()}; fit again"
        )
    return ask(part, *asked)


def added(*records: list[Answer]) -> list[Answer]:
    """Return the sums of several parts' answers to the same questions."""
    return [Answer.added(answers) for answers in zip(*records, strict=True)]


def n_different(*hashes: Hashes) -> int:
    """Return the number of distinct hashes over several parts."""
    return len(np.unique(np.concatenate(hashes)))


def _aligned(sums: Ints, windows: Forest, whole: Outline) -> Ints:
    """Return sums with the columns of those over all trials."""
    width, (first, points) = windows.width, windows.span
    if (width, windows.span) == (whole.width, whole.span):
        return sums
    out = np.zeros((len(sums), whole.width + whole.span[1]), dtype=np.int64)
    out[:, :width] = sums[:, :width]
    start = whole.width + first - whole.span[0] if points else 0
    out[:, start : start + points] = sums[:, width:]
    return out
