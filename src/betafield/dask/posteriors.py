"""Lazy answers at the points of Dask collections, block by block."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from dask.delayed import Delayed, delayed

from betafield import success, trials
from betafield.dask.partitions import in_tree, named
from betafield.dask.questions import Answer, Ask, Outline, Question, answered, noted
from betafield.dask.tasks import Part, added, asked_points
from betafield.dask.windows import AnyField, SpreadField, banded
from betafield.field import Field
from betafield.smooth import SmoothField, believed

Floats = npt.NDArray[np.float64]
Lengths = tuple[int, ...] | None


class Posteriors:
    """Lazy posteriors at the points of a Dask collection, block by block.

    The methods are those of `betafield.posteriors`, with a scalar p or q; each returns a Dask
    array.

    Examples
    --------
    >>> import dask.array as da
    >>> from betafield.dask import SmoothBetaClassifier
    >>> X, y = da.linspace(0, 1, 100, chunks=25)[:, None], da.arange(100, chunks=25) % 2
    >>> model = SmoothBetaClassifier(bandwidth=0.2).fit(X, y)
    >>> model.posterior(X).mean()
    dask.array<concatenate, shape=(100,), dtype=float64, chunksize=(25,), chunktype=numpy.ndarray>
    """

    def __init__(self, blocks: list[Delayed], lengths: Lengths, shape: tuple[int, ...]) -> None:
        self.blocks = blocks
        self._lengths, self._shape = lengths, shape

    def mean(self) -> Any:
        """Return the means."""
        return self._all("mean")

    def var(self) -> Any:
        """Return the variances."""
        return self._all("var")

    def std(self) -> Any:
        """Return the standard deviations."""
        return self._all("std")

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """Return the lower and upper ends of equal-tailed intervals."""
        of = functools.partial(_ends, level)
        ends = one_array(self.blocks, self._lengths, of, (2, *self._shape))
        return ends[:, 0], ends[:, 1]

    def pdf(self, p: float) -> Any:
        """Return the densities at p."""
        return self._all("pdf", p)

    def cdf(self, p: float) -> Any:
        """Return P(π ≤ p)."""
        return self._all("cdf", p)

    def prob_above(self, p: float) -> Any:
        """Return P(π > p)."""
        return self._all("prob_above", p)

    def ppf(self, q: float) -> Any:
        """Return the quantiles at q."""
        return self._all("ppf", q)

    def under(self, context: Any) -> Posteriors:
        """Return the distributions of the success probability under one context."""
        found = [delayed(_said)(block, "under", (context,)) for block in self.blocks]
        return Posteriors(found, self._lengths, self._shape)

    def _all(self, method: str, *asked: float) -> Any:
        for value in asked:
            if np.ndim(value):
                raise ValueError(
                    f"{method}: found an array of shape {np.shape(value)}; one number is needed, "
                    "for all rows of a dask collection"
                )
        of = functools.partial(_said, method=method, asked=asked)
        return one_array(self.blocks, self._lengths, of, self._shape)


def posteriors_at(field: AnyField, blocks: list[Delayed]) -> list[Delayed]:
    """Return the lazy posterior at each block."""
    if isinstance(field, SpreadField):
        return _of_parts(field, Field.posterior, blocks)
    ask = functools.partial(believed, n_jobs=field.options.n_jobs)
    return _of_one(field.answering, ask, field, blocks)


def bands_at(
    field: AnyField, blocks: list[Delayed], lipschitz: float, level: float, simultaneous: bool
) -> list[Delayed]:
    """Return the lazy band at each block."""
    ask = banded(lipschitz, level, simultaneous)
    if isinstance(field, SpreadField):
        return _of_parts(field, ask, blocks)
    return _of_one(field.windowed, ask, field, blocks)


def _of_one(
    subject: Any, ask: Callable[..., Any], field: SmoothField, blocks: list[Delayed]
) -> list[Delayed]:
    """Return the lazy answers of one object at each block; it is sent to every worker once.

    Invalid queries raise now.
    """
    ask(subject, np.empty((0, field.features.number)))
    placed = functools.partial(field.wraps.placed, bounds=field.bounds)
    told = delayed((subject, ask, field.features, placed), pure=False, traverse=False)
    return [delayed(_said_at)(told, block) for block in blocks]


def _said_at(told: tuple[Any, Callable[..., Any], trials.Features, Any], X: Any) -> Any:
    subject, ask, features, placed = told
    return ask(subject, placed(asked_points(X, features)))


def _of_parts(field: SpreadField, ask: Ask, blocks: list[Delayed]) -> list[Delayed]:
    """Return the lazy answers of a field with all trials at each block.

    Every part is queried, because the points are not known in advance. Invalid queries raise now.
    """
    bare = field.told
    noted(bare, ask, np.empty((0, field.features.number)))
    told = delayed(bare, pure=False, traverse=False)
    return [_at_block(field, told, ask, block) for block in blocks]


def _at_block(field: SpreadField, told: Delayed, ask: Ask, block: Delayed) -> Delayed:
    points = delayed(_points)(told, block)
    questions = delayed(_noted)(told, ask, points)
    record = in_tree(added, field.windows.telling(Part.answers, questions))
    found: Delayed = delayed(_answered)(told, ask, points, questions, record)
    return found


def _points(told: Field, X: Any) -> Floats:
    return asked_points(X, told.features)


def _noted(told: Field, ask: Ask, points: Floats) -> tuple[list[Question], Outline]:
    return noted(told, ask, points), told.windows


def _answered(
    told: Field,
    ask: Ask,
    points: Floats,
    asked: tuple[list[Question], Outline],
    record: list[Answer],
) -> Any:
    questions, whole = asked
    answers = (each.whole(q, whole) for q, each in zip(questions, record, strict=True))
    return answered(told, ask, points, answers)


def one_array(
    found: list[Delayed],
    lengths: Lengths,
    of: Callable[[Any], Any],
    shape: tuple[int, ...] = (),
    dtype: Any = np.float64,
) -> Any:
    """Return the values of all blocks as one Dask array."""
    from dask import array as da

    rows = lengths or (np.nan,) * len(found)
    arrays = [
        da.from_delayed(delayed(of)(block), (n, *shape), dtype=dtype)
        for block, n in zip(found, rows, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


# Functions of a block's posterior ------------------------------------------------------------


def probabilities(classes: npt.NDArray[Any], posterior: Any) -> Floats:
    """Return the mean probability of each class, in sorted order."""
    return success.by_class(classes, np.asarray(posterior.mean()))


def decided(classes: npt.NDArray[Any], posterior: Any) -> npt.NDArray[Any]:
    """Return the class with the highest mean; the first one in case of a tie."""
    return np.asarray(np.sort(classes)[np.argmax(probabilities(classes, posterior), axis=1)])


def hits(name: str, posterior: Any, classes: npt.NDArray[Any], batch: Any) -> tuple[float, float]:
    """Return the weight of the rows predicted correctly, and that of all rows."""
    if not len(posterior):
        return 0.0, 0.0
    with named(name):
        y = trials.labels(batch["y"], len(posterior))
        weight = trials.weights(batch.get("sample_weight"), len(posterior), part=True)
    is_right = decided(classes, posterior) == y
    if weight is None:
        return float(is_right.sum()), float(len(y))
    return float(weight[is_right].sum()), float(weight.sum())


def _said(posterior: Any, method: str, asked: tuple[Any, ...]) -> Any:
    return getattr(posterior, method)(*asked)


def _ends(level: float, posterior: Any) -> Floats:
    return np.stack(posterior.interval(level), axis=1)
