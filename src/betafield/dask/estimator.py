"""SmoothBetaClassifier over dask collections: the local one, with its windows on workers."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import dask
import numpy as np
import numpy.typing as npt
from dask.delayed import Delayed, delayed
from sklearn.utils.validation import check_is_fitted

from betafield import estimators, local, sharing, trials, units
from betafield.dask.partitions import (
    Checked,
    Survey,
    all_labels,
    blocks,
    checked,
    computed,
    cornered,
    exact_sums,
    lengths,
    named,
    on_cluster,
    partitions,
    require_same_features,
    surveyed,
    together,
)
from betafield.dask.regions import Regions
from betafield.dask.scattered import (
    Asked,
    AskedWindows,
    Outline,
    Part,
    Question,
    Scattered,
    added,
    built,
    recounted,
)
from betafield.windows import Forest, Places

Local = estimators.SmoothBetaClassifier
Floats = npt.NDArray[np.float64]


class SmoothBetaClassifier(Local):
    """`betafield.SmoothBetaClassifier` over dask arrays and dataframes.

    Same parameters, same methods, same counts to the last bit. `fit` leaves the trials on the
    workers. Asked at a local array, every worker sums up its own windows; asked at a dask
    collection, the answer is a dask collection, computed when it is wanted. Any scheduler will do:
    threads, processes, or a `distributed.Client`.

    Parameters
    ----------
    bandwidth, lipschitz, metric, scale, bounds, degree, prior, sharing, n_jobs
        As those of `betafield.SmoothBetaClassifier`.
    partition : {None, "space"}, default=None
        "space" gives each partition a region of its own, in one pass over the trials: points near
        each other then ask few partitions, whatever the order of the trials was.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from betafield.dask import SmoothBetaClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(10_000, 2))
    >>> y = rng.uniform(size=10_000) < X[:, 0]
    >>> many = da.from_array(X, chunks=(1_000, 2)), da.from_array(y, chunks=1_000)
    >>> model = SmoothBetaClassifier(bandwidth=0.1).fit(*many)
    >>> near = model.posterior([[0.3, 0.5]])
    >>> one = model.compute()  # a local model with all trials
    >>> bool(near.alpha == one.posterior([[0.3, 0.5]]).alpha)
    True
    """

    windows_: Any
    _regions_: Regions | None
    _cells_: dict[tuple[float, ...], float]

    def __init__(
        self,
        bandwidth: float | str = "auto",
        *,
        lipschitz: float = 1.0,
        metric: str = "euclidean",
        scale: Any = "auto",
        bounds: Any = None,
        degree: int | str = "auto",
        prior: Any = (1.0, 1.0),
        sharing: str = "exact",
        n_jobs: int | None = None,
        partition: str | None = None,
    ) -> None:
        super().__init__(
            bandwidth,
            lipschitz=lipschitz,
            metric=metric,
            scale=scale,
            bounds=bounds,
            degree=degree,
            prior=prior,
            sharing=sharing,
            n_jobs=n_jobs,
        )
        self.partition = partition

    def compute(self) -> Local:
        """Return a local model that has learned from all trials.

        It needs neither dask nor workers, and outlives them.
        """
        check_is_fitted(self)
        first, *others = (self._from(part) for part in self.windows_.told_now("itself"))
        for other in others:
            first.merge(other)
        model = self._local()
        model.windows_, model.relevance_ = first.windows_, first.relevance_
        return model._choose()

    def save(self, path: Any) -> None:
        """Write the local model of all trials to one file; `betafield.load` gives it back."""
        self.compute().save(path)

    # Asking.

    def posterior(self, X: Any) -> Any:
        """Return the posterior of the success probability at each row of X.

        At a dask collection: `Posteriors`, whose methods return dask arrays.
        """
        if not dask.is_dask_collection(X):
            return super().posterior(X)
        now = self._now()
        found = now._at_blocks(blocks("X", X), "_posterior_at")
        return Posteriors(found, lengths(X), now._shape())

    def predict_proba(self, X: Any) -> Any:
        """Return the posterior mean of each class's probability, of shape (m, n_classes)."""
        if not dask.is_dask_collection(X):
            return super().predict_proba(X)
        posterior = self.posterior(X)
        return _array(posterior.blocks, lengths(X), _probabilities, (len(self.classes_),))

    def predict(self, X: Any) -> Any:
        """Return the class with the highest posterior mean; of equal ones the first."""
        if not dask.is_dask_collection(X):
            return super().predict(X)
        decide = functools.partial(_decided, self._classes())
        return _array(self.posterior(X).blocks, lengths(X), decide, (), self.classes_.dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of outcomes that are predicted right."""
        if not dask.is_dask_collection(X):
            return float(super().score(X, y, sample_weight))
        parts = partitions(X, y=y, sample_weight=sample_weight)
        batches = [delayed(dict)(part.batch) for part in parts]
        found = self._now()._at_blocks([batch["X"] for batch in batches], "_posterior_at")
        hits = [
            delayed(_hits)(part.name, block, self._classes(), batch)
            for part, block, batch in zip(parts, found, batches, strict=True)
        ]
        right, total = np.sum(dask.compute(*hits), axis=0)
        return float(right / total)

    def band(
        self, X: Any, lipschitz: float, level: float = 0.95, simultaneous: bool = False
    ) -> tuple[Any, Any]:
        """Return intervals (low, high) that hold π(x) with a probability of at least `level`.

        See `betafield.SmoothBetaClassifier.band`; at a dask collection two dask arrays.
        """
        if not dask.is_dask_collection(X):
            return super().band(X, lipschitz, level, simultaneous)
        now = self._now()
        now._check_band(lipschitz, level, simultaneous)
        found = now._at_blocks(blocks("X", X), "_band_at", lipschitz, level, simultaneous)
        ends = _array(found, lengths(X), functools.partial(np.stack, axis=1), (2,))
        return ends[:, 0], ends[:, 1]

    def _check_band(self, *asked: Any) -> None:
        """Raise now what would be raised when a band is computed."""
        check_is_fitted(self)
        answer(self._local(), None, "_band_at", np.empty((0, self.n_features_in_)), asked)

    def _classes(self) -> npt.NDArray[Any]:
        check_is_fitted(self)
        return self.classes_

    def _shape(self) -> tuple[int, ...]:
        """Return the shape of what is believed at one point."""
        return () if len(self.classes_) == 2 else (len(self.classes_),)

    def _at_blocks(self, points: list[Delayed], method: str, *asked: Any) -> list[Delayed]:
        """Return what a local model with all trials would say of each block, still to be computed.

        Every partition is asked: where points are is not known before.
        """
        check_is_fitted(self)
        model = delayed(self._local(), pure=False, traverse=False)
        found = []
        for block in points:
            there = delayed(_points)(model, block)
            questions = delayed(noted)(model, method, there, asked)
            record = added(self.windows_.telling("answers", questions))
            found.append(delayed(replayed)(model, questions, record, method, there, asked))
        return found

    def _everywhere(self, method: str, points: Floats, *asked: Any) -> Any:
        """Return what a local model with all trials would, from those that may know something."""
        model = self._local()
        questions, _ = noted(model, method, points, asked)
        return answer(model, iter(self.windows_.answers(questions)), method, points, asked)

    def _posterior_at(self, points: Floats, *asked: Any) -> Any:
        return self._everywhere("_posterior_at", points, *asked)

    def _held_at(self, points: Floats) -> Any:
        return self._everywhere("_held_at", points)

    def _band_at(self, points: Floats, *asked: Any) -> Any:
        return self._everywhere("_band_at", points, *asked)

    def _more_trials_at(self, points: Floats, *asked: Any) -> Any:
        return self._everywhere("_more_trials_at", points, *asked)

    # Learning.

    def fit_files(self, *_: Any, **__: Any) -> Self:
        """Raise: dask reads files itself, see `dask.dataframe.read_parquet`."""
        raise TypeError(
            "fit_files: is for one machine; here dask reads files, such as "
            "table = dask.dataframe.read_parquet(folder), fit(table[features], table[outcome])"
        )

    def merge(self, other: Any) -> Self:
        """Take in all trials of another fitted model over dask, as if this one had seen them."""
        check_is_fitted(self)
        if not isinstance(other, SmoothBetaClassifier):
            raise TypeError(
                f"other: found {type(other).__name__} of {type(other).__module__}; a "
                "SmoothBetaClassifier of betafield.dask is needed"
            )
        return super().merge(other)

    def _check_options(self) -> None:
        super()._check_options()
        if self.partition not in (None, "space"):
            raise ValueError(f"partition: found {self.partition!r}; allowed are None and 'space'")

    def _add_labels(self, X: Any, y: Any, classes: Any, sample_weight: Any, context: Any) -> Self:
        if y is None:
            raise ValueError("this estimator requires y to be passed, but the target y is None")
        found = partitions(X, y=y, sample_weight=sample_weight, context=context)
        if self._has_trials() and classes is not None:
            self._require_classes(classes)
        return self._add_partitions(found, classes)

    def _add_counts(self, X: Any, successes: Any, held: Any, context: Any) -> Self:
        found = partitions(X, successes=successes, trials=held, context=context)
        if self._has_trials() and len(self.classes_) != 2:
            raise ValueError(
                f"successes: this model has {len(self.classes_)} classes; counts need two"
            )
        return self._add_partitions(found, [0, 1])

    def _require_classes(self, classes: Any) -> None:
        if not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes: found {np.unique(classes).tolist()}; "
                f"the first call said {self.classes_.tolist()}"
            )

    def _add_partitions(self, found: list[Any], classes: Any) -> Self:
        """Let workers learn from these trials, and hear from them what there is."""
        known = {k: v for k, v in self.__dict__.items() if k.endswith("_in_")}
        names = [part.name for part in found]
        reads = [delayed(checked)(part.name, part.batch, known) for part in found]
        if not self._has_trials():
            if on_cluster():  # where reading is dear, and there is room to read but once
                reads = list(dask.persist(*reads))
            self._survey(names, reads, classes)
        self._require_same_sharing()
        added = Scattered.of(self.n_features_in_, self.metric, *self._parts(names, reads))
        self._seen_ = self._seen_.plus(added.seen)
        if not self._seen_.trials:
            raise ValueError(NOTHING_LEARNED)
        self._polynomials_ = _union(self._polynomials_, *added.polynomials)
        windows = self.windows_.plus(added.with_trials())
        return self._know(windows.counted(self._polynomials_))

    def _parts(self, names: list[str], reads: list[Delayed]) -> tuple[list[Delayed], list[str]]:
        """Return the parts that workers are to make of what was read, and their names."""
        template = delayed(self._template(), pure=False, traverse=False)
        if self._regions_ is None:
            groups = together(reads)
            parts = [delayed(learned)(template, *(reads[i] for i in group)) for group in groups]
            return parts, [_joint([names[i] for i in group]) for group in groups]
        regions = delayed(self._regions_, pure=False, traverse=False)
        pieces = [delayed(split)(template, regions, read) for read in reads]
        numbers = range(self._regions_.number)
        parts = [delayed(gathered)(template, [each[j] for each in pieces]) for j in numbers]
        return parts, [f"region {j}" for j in numbers]

    def _require_same_sharing(self) -> None:
        if self._seen_.distorted and self.sharing != self._sharing_:
            raise ValueError(
                f"sharing: found {self.sharing!r}; the trials so far were kept for "
                f"{self._sharing_!r}, so fit all of them anew"
            )
        self._sharing_ = self.sharing

    def _joined(self, other: Any) -> Any:
        self._polynomials_ = _union(self._polynomials_, other._polynomials_)
        return self.windows_.plus(other.windows_).counted(self._polynomials_)

    def _places_to_weigh(self) -> tuple[list[Places], int | None]:
        found: tuple[list[Places], int | None] = self.windows_.sampled()
        return found

    def _relate(self, relevance: Floats) -> None:
        """Ask for windows of this relevance from now on: workers make them when asked."""
        self.relevance_ = relevance
        self._cells_ = self._cells()

    def _cells(self) -> dict[tuple[float, ...], float]:
        """Return the cells in which trials are gathered for polynomials, by relevance."""
        if not self._is_local() or sum(each.size for each in self.windows_.told) <= local.GATHERED:
            return {}
        places = self.windows_.n_places()
        cell = local.cell(float(self.weights_["width"].min()), self.n_features_in_)
        relevances = map(tuple, np.unique(self.weights_["relevance"], axis=0).tolist())
        if places <= local.GATHERED:
            return {}
        return {r: cell for r in relevances if 2 * self.windows_.n_places(r, cell) <= places}

    # A first look at all trials.

    def _survey(self, names: list[str], reads: list[Delayed], classes: Any) -> None:
        """Learn the classes, the domain and the units from a first look at all partitions."""
        given = None if classes is None else trials.classes_of(np.empty(0), classes)
        inputs = list(zip(names, reads, strict=True))
        wants = self.bounds is None or self._is_scaled_by("std")
        looks = [delayed(surveyed)(read, given, self.sharing, wants) for read in reads]
        found = computed(looks, inputs)
        _require_something(found)
        require_same_features(found)
        seen = [survey for survey in found if survey.rows]
        self.__dict__.update(seen[0].features)
        self.classes_ = trials.classes_of(all_labels(found), classes)
        self._seen_, self._sharing_, self._polynomials_ = sharing.Seen(), self.sharing, ()
        corners = self._found_corners(found, inputs) if wants else None
        self._measure(corners, inputs)
        self.relevance_ = np.ones(self.n_features_in_)
        self.windows_ = Scattered(self.n_features_in_, self.metric)
        self._regions_ = None
        if self.partition == "space":
            sample = self._units_.scaled(np.concatenate([survey.sample for survey in seen]))
            self._regions_ = Regions.cut(sample, len(reads))

    def _found_corners(
        self, found: tuple[Survey, ...], inputs: list[tuple[str, Delayed]]
    ) -> Floats:
        """Return the lowest and the highest coordinates of all that teaches something."""
        late = [read for survey, (_, read) in zip(found, inputs, strict=True) if survey.is_late]
        more = computed([delayed(cornered)(r, self.classes_, self.sharing) for r in late], inputs)
        corners = [survey.corners for survey in found if survey.corners is not None]
        ends = [each for each in (*corners, *more) if len(each)]
        if not ends:
            raise ValueError(NOTHING_LEARNED)
        return np.concatenate(ends)

    def _measure(self, corners: Floats | None, inputs: list[tuple[str, Delayed]]) -> None:
        """Set the domain and the units."""
        nothing = np.empty((0, self.n_features_in_))
        units.check_bounds(self.bounds, nothing, np.empty(0, dtype=np.bool_))
        if not callable(self.prior):
            self._shapes(nothing)
        self.bounds_ = units.domain(self.bounds, nothing if corners is None else corners)
        scale = "range" if self._is_scaled_by("std") else self.scale
        self._units_ = units.measure(scale, self.bounds_, nothing, lambda: np.empty(0))
        if corners is not None and self._is_scaled_by("std"):
            deviations = self._deviations(corners, inputs)
            unit = np.where(deviations > 0, deviations, np.inf)
            self._units_ = units.Units(self._units_.origin, unit)
        self.scale_ = self._units_.unit

    def _deviations(self, corners: Floats, inputs: list[tuple[str, Delayed]]) -> Floats:
        """Return the standard deviations of all trials, as exactly as on one machine."""

        def sums(column: Callable[..., Floats]) -> Floats:
            of = functools.partial(delayed(exact_sums), column=column)
            some = [of(read, self.classes_, self.sharing) for _, read in inputs]
            found = [each for each in computed(some, inputs) if each]
            return np.array(
                [math.fsum(itertools.chain(*each)) for each in zip(*found, strict=True)]
            )

        return units.deviations(corners.min(axis=0), np.ptp(corners, axis=0), sums)

    # Local models.

    def _template(self) -> Local:
        """Return a local model without trials, that measures as this one and chooses nothing."""
        ranged = self._is_scaled_by("auto", "range", "ard", "std")
        model = Local(
            1.0,
            metric=self.metric,
            scale="range" if ranged else self.scale,
            bounds=self.bounds,
            degree=0,
            prior=self.prior,
            sharing=self.sharing,
        )
        names = ("classes_", "n_features_in_", "bounds_", "scale_", "_units_")
        model.__dict__.update({name: self.__dict__[name] for name in names})
        model.relevance_ = np.ones(self.n_features_in_)
        model.windows_ = Forest(self.n_features_in_, self.metric)
        model._seen_, model._sharing_, model._polynomials_ = sharing.Seen(), self.sharing, ()
        return model

    def _from(self, part: Part) -> Local:
        """Return a local model with the trials of a part."""
        model = self._template()
        model.windows_, model._seen_ = part.windows, part.seen
        model._polynomials_ = part.polynomials
        model._sharing_ = self._sharing_
        return model

    def _local(self) -> Local:
        """Return a local model that has learned what this one has, but has no trials."""
        names = Local().get_params()
        model = Local(**{name: getattr(self, name) for name in names})
        kept = {k: v for k, v in self.__dict__.items() if k.endswith("_") and k != "_regions_"}
        model.__dict__.update(kept)
        model._windows_by_relevance_ = {}
        model.__dict__["windows_"] = self.windows_.outline
        return model


NOTHING_LEARNED = (
    "context: every trial has equal coefficients, so that none says anything about π; "
    "one at least must have different ones"
)


def _require_something(found: tuple[Survey, ...]) -> None:
    """Raise where no partition has anything that counts."""
    if not any(survey.rows for survey in found):
        raise ValueError("X: found 0 rows in all partitions; one at least is needed")
    if all(survey.is_void for survey in found):
        raise ValueError(
            "sample_weight, trials: all are zero in all partitions; one at least must be positive"
        )


class Posteriors:
    """Posteriors at the points of a dask collection, a block at a time, still to be computed.

    Methods are those of `betafield.posteriors`, with one p or q for all; each returns a dask
    array.

    Examples
    --------
    >>> import dask.array as da
    >>> X, y = da.linspace(0, 1, 100, chunks=25)[:, None], da.arange(100, chunks=25) % 2
    >>> model = SmoothBetaClassifier(bandwidth=0.2).fit(X, y)
    >>> model.posterior(X).mean()
    dask.array<concatenate, shape=(100,), dtype=float64, chunksize=(25,), chunktype=numpy.ndarray>
    """

    def __init__(
        self, blocks: list[Delayed], lengths: tuple[int, ...] | None, shape: tuple[int, ...]
    ) -> None:
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
        """Return the lower and the upper ends of equal-tailed intervals."""
        of = functools.partial(_ends, level)
        ends = _array(self.blocks, self._lengths, of, (2, *self._shape))
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
        found = [delayed(_said)(block, "under", context) for block in self.blocks]
        return Posteriors(found, self._lengths, self._shape)

    def _all(self, method: str, *asked: float) -> Any:
        for value in asked:
            if np.ndim(value):
                raise ValueError(
                    f"{method}: found an array of shape {np.shape(value)}; one number is needed, "
                    "for all rows of a dask collection"
                )
        of = functools.partial(_said, method=method, asked=asked)
        return _array(self.blocks, self._lengths, of, self._shape)


def _said(posterior: Any, method: str, asked: Any) -> Any:
    return getattr(posterior, method)(*asked if isinstance(asked, tuple) else (asked,))


def _ends(level: float, posterior: Any) -> Floats:
    return np.stack(posterior.interval(level), axis=1)


def _probabilities(posterior: Any) -> Floats:
    mean = posterior.mean()
    return np.stack([1.0 - mean, mean], axis=1) if mean.ndim == 1 else np.asarray(mean)


def _decided(classes: npt.NDArray[Any], posterior: Any) -> npt.NDArray[Any]:
    return np.asarray(classes[np.argmax(_probabilities(posterior), axis=1)])


def _hits(name: str, posterior: Any, classes: npt.NDArray[Any], batch: Any) -> tuple[float, float]:
    """Return the weights of rows that are predicted right, and of all rows."""
    if not len(posterior):
        return 0.0, 0.0
    with named(name):
        y = trials.labels(batch["y"], len(posterior))
        weight = trials.weights(batch.get("sample_weight"), len(posterior), part=True)
    is_right = _decided(classes, posterior) == y
    if weight is None:
        return float(is_right.sum()), float(len(y))
    return float(weight[is_right].sum()), float(weight.sum())


def _array(
    found: list[Delayed],
    lengths: tuple[int, ...] | None,
    of: Callable[[Any], Any],
    shape: tuple[int, ...] = (),
    dtype: Any = np.float64,
) -> Any:
    """Return what is found in each block as one dask array."""
    from dask import array as da

    rows = lengths or (np.nan,) * len(found)
    arrays = [
        da.from_delayed(delayed(of)(block), (n, *shape), dtype=dtype)
        for block, n in zip(found, rows, strict=True)
    ]
    return da.concatenate(arrays, allow_unknown_chunksizes=True)


# Tasks -------------------------------------------------------------------------------------


class Learned(NamedTuple):
    """What is learned of a partition, or of a piece of it, before it is in windows."""

    places: list[Places]
    seen: sharing.Seen
    polynomials: tuple[sharing.Polynomial, ...]


def learned(template: Local, *reads: Checked) -> Part:
    """Return the windows of some partitions."""
    return gathered(template, [_learned(template, read) for read in reads])


def split(template: Local, regions: Regions, read: Checked) -> list[Learned]:
    """Return what is learned of a partition in each region."""
    places, seen, polynomials = _learned(template, read)
    # What was seen is only ever added up, so that it may go with any of them.
    pieces = [
        Learned([], sharing.Seen() if j else seen, polynomials) for j in range(regions.number)
    ]
    for each in places:
        region = regions.of(each.axes.T)
        for j in np.unique(region):
            pieces[j].places.append(each.where(region == j))
    return pieces


def gathered(template: Local, pieces: list[Learned]) -> Part:
    """Return the windows of all that is learned of several partitions, or pieces of them."""
    union = _union(*(piece.polynomials for piece in pieces))
    places = [
        each for piece in pieces for each in recounted(piece.places, piece.polynomials, union)
    ]
    seen = functools.reduce(sharing.Seen.plus, (piece.seen for piece in pieces))
    return Part(built(places, template.windows_), seen, union)


def _learned(template: Local, read: Checked) -> Learned:
    model = _blank(template)
    if read.is_void:
        return Learned([], model._seen_, ())
    with named(read.name):
        columns = read.columns(model.classes_)
        places = model._placed(read.points, columns, read.weight, read.context)
    return Learned([] if places is None else [places], model._seen_, model._polynomials_)


def _joint(names: list[str]) -> str:
    """Return one name for several partitions."""
    rest = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + rest


def _union(*polynomials: tuple[sharing.Polynomial, ...]) -> tuple[sharing.Polynomial, ...]:
    """Return all polynomials, in the order in which one `fit` would count them."""
    return tuple(sorted({each for some in polynomials for each in some}))


def _points(model: Local, X: Any) -> Floats:
    if not len(X):
        return np.empty((0, model.n_features_in_))
    return trials.points(model, X, reset=False)


def _blank(model: Local) -> Local:
    """Return a copy of a model, to be changed."""
    copy: Local = object.__new__(Local)
    copy.__dict__.update(model.__dict__)
    return copy


def answer(model: Local, answers: Any, method: str, points: Floats, asked: tuple[Any, ...]) -> Any:
    """Return what a model says, if these are the answers of its windows; None: all of them 0."""
    return _run(model, Asked(_outline(model), answers), method, points, asked)


def noted(
    model: Local, method: str, points: Floats, asked: tuple[Any, ...]
) -> tuple[list[Question], Outline]:
    """Return the questions that a model has for its windows."""
    windows = Asked(_outline(model), None)
    _run(model, windows, method, points, asked)
    return windows.questions, _outline(model)


def _outline(model: Any) -> Outline:
    """Return what stands for windows in a model without trials."""
    outline: Outline = model.windows_
    return outline


def replayed(
    model: Local,
    noted: tuple[list[Question], Outline],
    record: Any,
    method: str,
    points: Floats,
    asked: tuple[Any, ...],
) -> Any:
    """Return what a model says, given the record of all partitions' answers."""
    questions, whole = noted
    answers = (each.whole(q, whole) for q, each in zip(questions, record, strict=True))
    return answer(model, answers, method, points, asked)


def _run(model: Any, windows: Asked, method: str, points: Floats, asked: tuple[Any, ...]) -> Any:
    def windows_for(relevance: Floats, gather: bool = False) -> AskedWindows:
        cell = model._cells_.get(tuple(relevance.tolist())) if gather else None
        return AskedWindows(windows, relevance, cell)

    asking = _blank(model)
    asking.__dict__["_windows_for"] = windows_for
    return getattr(asking, method)(points, *asked)
