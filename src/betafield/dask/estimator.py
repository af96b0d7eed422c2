"""SmoothBetaClassifier over Dask collections: the local one, with its trials on workers."""

from __future__ import annotations

import functools
from typing import Any, Self

import dask
import numpy as np
from dask.delayed import delayed
from sklearn.utils.validation import check_is_fitted

import betafield.dask.learning as learning
from betafield import estimators, methods, success, teaching
from betafield._locks import writing
from betafield.dask.partitions import blocks, lengths, partitions
from betafield.dask.posteriors import (
    Posteriors,
    bands_at,
    decided,
    hits,
    one_array,
    posteriors_at,
    probabilities,
)
from betafield.dask.windows import AnyField, SpreadField
from betafield.options import Options
from betafield.refusals import refused

Local = estimators.SmoothBetaClassifier


class SmoothBetaClassifier(Local):
    """`betafield.SmoothBetaClassifier` over Dask arrays and dataframes.

    The parameters, the methods and the answers are the same, to the last bit. By default, workers
    add up trials by place, and the client learns from the distinct places. With windows (a given
    `bandwidth`, or `method="windows"`), `fit` leaves the trials on the workers. At the points of a
    local array, every worker sums up its own windows. At those of a Dask collection, the answer
    is a lazy Dask collection. Any scheduler works: threads, processes, or a `distributed.Client`.

    Parameters
    ----------
    bandwidth, method, lipschitz, metric, scale, bounds, pos_label, prior, sharing, monotonic_cst,
    categorical_features, interactions, missing, periodic, geographic, n_jobs
        As in `betafield.SmoothBetaClassifier`, except that windows on workers cannot wrap around,
        and that with windows every feature is a number and not missing.
    partition : {None, "space"}, default=None
        For windows: "space" gives each partition its own region, in one pass over the trials.
        Points near each other then need few partitions, whatever the order of the trials.

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

    _field_: AnyField

    def __init__(
        self,
        bandwidth: float | str = "auto",
        *,
        method: str = "auto",
        lipschitz: float = 1.0,
        metric: str = "euclidean",
        scale: Any = "auto",
        bounds: Any = None,
        pos_label: Any = None,
        prior: Any = (1.0, 1.0),
        sharing: str = "exact",
        monotonic_cst: Any = None,
        categorical_features: Any = "from_dtype",
        interactions: Any = (),
        missing: str = "error",
        periodic: Any = None,
        geographic: Any = None,
        n_jobs: int | None = None,
        partition: str | None = None,
    ) -> None:
        super().__init__(
            bandwidth,
            method=method,
            lipschitz=lipschitz,
            metric=metric,
            scale=scale,
            bounds=bounds,
            pos_label=pos_label,
            prior=prior,
            sharing=sharing,
            monotonic_cst=monotonic_cst,
            categorical_features=categorical_features,
            interactions=interactions,
            missing=missing,
            periodic=periodic,
            geographic=geographic,
            n_jobs=n_jobs,
        )
        self.partition = partition

    def compute(self) -> Local:
        """Return a local model that has learned from all trials.

        It needs neither Dask nor workers.
        """
        field = self.field_
        return Local.of(field.here() if isinstance(field, SpreadField) else field)

    def save(self, path: Any) -> None:
        """Write the local model of all trials to one file, which `betafield.load` reads."""
        self.compute().save(path)

    # Queries. The field answers at a local array, where windows query the workers; a collection is
    # answered block by block.

    def posterior(self, X: Any) -> Any:
        """Return the posterior of the success probability at each row of X.

        For a Dask collection: `Posteriors`, whose methods return Dask arrays.
        """
        if not dask.is_dask_collection(X):
            return super().posterior(X)
        field = self.field_
        shape = () if len(field.classes) == 2 else (len(field.classes),)
        return Posteriors(posteriors_at(field, blocks("X", X)), lengths(X), shape)

    def predict_proba(self, X: Any) -> Any:
        """Return the posterior mean of each of `classes_`, of shape (m, n_classes)."""
        if not dask.is_dask_collection(X):
            return super().predict_proba(X)
        found, classes = self.posterior(X), self._field_.classes
        told = functools.partial(probabilities, classes)
        return one_array(found.blocks, lengths(X), told, (len(classes),))

    def predict(self, X: Any) -> Any:
        """Return the class with the highest posterior mean; the first one in case of a tie."""
        if not dask.is_dask_collection(X):
            return super().predict(X)
        found, classes = self.posterior(X), self._field_.classes
        decide = functools.partial(decided, classes)
        return one_array(found.blocks, lengths(X), decide, (), classes.dtype)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of outcomes that are predicted correctly."""
        if not dask.is_dask_collection(X):
            return float(super().score(X, y, sample_weight))
        field, parts = self.field_, partitions(X, y=y, sample_weight=sample_weight)
        batches = [delayed(dict)(part.batch) for part in parts]
        found = posteriors_at(field, [batch["X"] for batch in batches])
        counts = [
            delayed(hits)(part.name, block, field.classes, batch)
            for part, block, batch in zip(parts, found, batches, strict=True)
        ]
        right, total = np.sum(dask.compute(*counts), axis=0)
        return float(right / total)

    def band(
        self, X: Any, lipschitz: float, level: float = 0.95, simultaneous: bool = False
    ) -> tuple[Any, Any]:
        """Return intervals (low, high) that contain π(x) with a probability of at least `level`.

        See `betafield.SmoothBetaClassifier.band`; two Dask arrays for a Dask collection.
        """
        if not dask.is_dask_collection(X):
            return super().band(X, lipschitz, level, simultaneous)
        found = bands_at(self.field_, blocks("X", X), lipschitz, level, simultaneous)
        ends = one_array(found, lengths(X), functools.partial(np.stack, axis=1), (2,))
        return ends[:, 0], ends[:, 1]

    @property
    def field_(self) -> AnyField:
        """The immutable field learned so far, with the current options for queries."""
        check_is_fitted(self)
        now = Options.of(self)._replace(pos_label=self._field_.options.pos_label)
        return self._field_.asked_for(now)

    # Learning.

    def fit_files(self, *_: Any, **__: Any) -> Self:
        """Raise, because Dask reads files itself; see `dask.dataframe.read_parquet`."""
        raise TypeError(
            "fit_files: is for one machine; here dask reads files, such as "
            "table = dask.dataframe.read_parquet(folder), fit(table[features], table[outcome])"
        )

    def merge(self, other: Any) -> Self:
        """Add all trials of another fitted model over Dask, as if this one had seen them."""
        check_is_fitted(self)
        if not isinstance(other, SmoothBetaClassifier):
            raise TypeError(
                f"other: found {type(other).__name__} of {type(other).__module__}; a "
                "SmoothBetaClassifier of betafield.dask is needed"
            )
        theirs = other.field_
        with writing(self):
            self._field_ = learning.merged(self._field_.asked_for(self._options()), theirs)
        return self

    def _options(self) -> Options:
        if self.partition not in (None, "space"):
            raise refused("partition", f"found {self.partition!r}; allowed are None and 'space'")
        options = super()._options()
        if options.missing == "drop":
            raise refused(
                "missing",
                "found 'drop', which is for one machine; drop such rows with Dask, as in "
                "table.dropna()",
            )
        usual = Options()
        for name in ("categorical_features", "interactions", "missing"):
            found = getattr(options, name)
            is_usual = found is None or not len(found) or found == getattr(usual, name)
            if not (options.is_smooth or is_usual):
                raise refused(
                    name,
                    f"found {found!r} with windows on dask, in which every feature is a "
                    "number; leave method and bandwidth at their defaults, or fit a local model",
                )
        return options

    def _of_labels(self, known: Any, X: Any, y: Any, classes: Any, **columns: Any) -> AnyField:
        """Return a field that includes these trials."""
        options = self._options()
        if y is None:
            raise ValueError("this estimator requires y to be passed, but the target y is None")
        if columns["groups"] is not None:
            methods.require_dependent("groups", options)
        found = partitions(X, y=y, **columns)
        if known is not None:
            classes = methods.classes_of(known, known.classes, classes, options)
        return learning.taught(known, options, found, classes, self.partition == "space")

    def _of_counts(self, known: Any, X: Any, successes: Any, held: Any, **columns: Any) -> AnyField:
        """Return a field that includes these binomial rows."""
        options = self._options()
        for name in ("groups", "overdispersion"):
            if columns[name] is not None:
                methods.require_dependent(name, options)
        if columns.pop("overdispersion") is not None:
            raise refused(
                "overdispersion",
                "found a value; rows that vary are learned on one machine, so fit "
                "betafield.SmoothBetaClassifier, or give every row a group of its own",
            )
        found = partitions(X, successes=successes, trials=held, **columns)
        if known is not None:
            teaching.require_two(known.classes)
        classes = success.of_counts(options.pos_label) if known is None else known.classes
        return learning.taught(known, options, found, classes, self.partition == "space")
