"""SmoothBetaClassifier: validates, delegates, nothing else."""

from __future__ import annotations

import functools
from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from betafield import bandwidth as widths
from betafield import lattice, priors, sharing, trials, units
from betafield.posteriors import Beta, Blend, Mixture

if TYPE_CHECKING:
    from betafield.bands import Bands
    from betafield.choosing import Choice, Chosen
    from betafield.files import Batch, Rows
    from betafield.posteriors import Posterior
    from betafield.weighing import Weighing
    from betafield.windows import Forest, Places

Floats = npt.NDArray[np.float64]
# What windows hold at queries, within a width.
Ask = Callable[["Forest", Floats, float], npt.NDArray[np.int64]]

METRICS = ("euclidean", "chebyshev", "manhattan")
# Numbers that are held at once where only the mean of a posterior is asked for.
BLOCK = 1 << 23


class SmoothBetaClassifier(ClassifierMixin, BaseEstimator):
    """A smooth probability learned from yes/no trials, with a posterior at every point.

    The Smooth Beta Process: with n trials within Δ of x, S of them successes, the success
    probability π(x) has the posterior

        π̃(x) ~ Beta(α(x) + S, β(x) + n − S),

    and with three classes and more the Dirichlet of the window's counts per class. Where no
    trial is near, the prior remains.

    Trials distorted in a known way are learned from with a `context` each, see
    `betafield.contexts`: the posterior is then that of π, the probability without distortion.

    Parameters
    ----------
    bandwidth : float, "theory", "loo" or "auto", default="auto"
        Δ, the width of the windows, in scaled units. "theory": L^(−2/(d+2)) t^(−1/(d+2)).
        "loo": the width with the best leave-one-out log score. "auto": all widths and degrees,
        weighed by their scores; the posterior is a mixture, see `weights_`. With three classes
        and more, "auto" takes the best width.
    lipschitz : float, default=1.0
        L, how fast π may change, in scaled units; for "theory".
    metric : {"euclidean", "chebyshev", "manhattan"}, default="euclidean"
        Distance between scaled points.
    scale : "auto", "range", "ard", "std", None or array of shape (d,), default="auto"
        The unit of each feature: "range" the width of its bounds, "std" its standard deviation,
        None 1, or as given. "ard" is "range", and how relevant each feature is, is learned by
        leave-one-out. "auto" is "ard" where the bandwidth is "auto", and else "range". A constant
        feature carries no distance.
    bounds : array of shape (d, 2), default=None
        The domain, (low, high) a feature. None: the range of the first data seen.
    degree : {"auto", 0, 1, 2}, default="auto"
        Degree of the polynomial fitted to the outcomes of a window. 0, their share, is the
        paper's rule. 1 and 2 follow slopes and bends of π, so that windows can be wider: 2 up to
        three features, 1 up to six, for two classes without contexts. "auto" weighs all degrees
        where the bandwidth is "auto" (in one dimension up to 4), and is else 0. Of more than
        131,072 places, those of small cells are taken together to fit polynomials.
    prior : (alpha, beta), callable or Prior, default=(1.0, 1.0)
        Shapes of the prior, the same everywhere or X → (α, β) with one value a row of X.
        With three classes and more: one shape a class, or two equal ones for all.
    sharing : {"exact", "mean"}, default="exact"
        How trials under different contexts share a window. "exact": by the likelihood of each.
        "mean": as if all had the window's mean context (the paper's CSBP; affine contexts only).
    n_jobs : int, default=None
        Threads for queries. None: 1; -1: all cores.

    Attributes
    ----------
    classes_ : array
        The classes, sorted; the second of two is the success.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Their names, where X had names.
    n_trials_ : int or float
        Trials seen, t; the sum of the weights.
    bandwidth_ : float
        Δ in use, in scaled units times relevance; of several, the heaviest.
    weights_ : structured array
        The windows in use, the heaviest first: `relevance` of each feature, `width`, `degree`,
        leave-one-out `score`, `complexity` (the number of parameters that all fits amount to),
        and `weight`. Weighed anew as t doubles; widths shrink in between.
    relevance_ : array of shape (d,)
        What distances along each feature are multiplied by: 1 for the most relevant, less for
        others, in powers of 1/4; of several, the heaviest.
    scale_ : array of shape (d,)
        The length of one scaled unit in the feature's own; inf for a constant feature.
    bounds_ : array of shape (d, 2)
        The domain.
    windows_ : Forest
        The sums of the trials, by place.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield import SmoothBetaClassifier
    >>> rng = np.random.default_rng(0)
    >>> difficulty = rng.uniform(size=(10_000, 1))
    >>> success = rng.uniform(size=10_000) < 1 - difficulty[:, 0]
    >>> model = SmoothBetaClassifier(bandwidth=0.05).fit(difficulty, success)
    >>> posterior = model.posterior([[0.2], [0.5]])
    >>> posterior.mean().round(1).tolist()
    [0.8, 0.5]
    >>> low, high = posterior.interval(0.95)
    >>> bool(np.all((low < [0.8, 0.5]) & (high > [0.8, 0.5])))
    True
    """

    classes_: npt.NDArray[Any]
    n_features_in_: int
    n_trials_: int | float
    bandwidth_: float
    scale_: Floats
    bounds_: Floats
    relevance_: Floats
    weights_: npt.NDArray[Any]
    windows_: Forest
    _units_: units.Units
    _seen_: sharing.Seen
    _sharing_: str
    _chosen_: Chosen | None = None
    _windows_by_relevance_: dict[tuple[float, ...], Forest]
    _polynomials_: tuple[sharing.Polynomial, ...]

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
    ) -> None:
        self.bandwidth = bandwidth
        self.lipschitz = lipschitz
        self.metric = metric
        self.scale = scale
        self.bounds = bounds
        self.degree = degree
        self.prior = prior
        self.sharing = sharing
        self.n_jobs = n_jobs

    # Learning. Each method works on a draft, which takes this model's place when all went well.

    def fit(self, X: Any, y: Any, sample_weight: Any = None, context: Any = None) -> Self:
        """Learn from trials at X, of shape (t, d), with outcomes y. Forgets earlier trials.

        Parameters
        ----------
        X : array or dataframe of shape (t, d)
            Where the trials were made.
        y : array of shape (t,)
            How each ended: two classes or more.
        sample_weight : array of shape (t,), default=None
            A row of weight 2 is the same as the row twice.
        context : array of shape (t, p + 1), (1, p + 1) or (p + 1,), default=None
            How each trial was distorted, or all of them: see `betafield.contexts`. None: not
            at all, which is (0, 1).

        Examples
        --------
        Two alternatives, so that half of what is not known is guessed right:

        >>> from betafield import contexts
        >>> X, y = [[0.1], [0.2], [0.3], [0.4]], [1, 0, 1, 1]
        >>> model = SmoothBetaClassifier(bandwidth=1.0)
        >>> model.fit(X, y).posterior([[0.2]]).mean().round(3).tolist()
        [0.667]
        >>> chance = contexts.guess_lapse(guess=1 / 2)
        >>> model.fit(X, y, context=chance).posterior([[0.2]]).mean().round(3).tolist()
        [0.462]
        """
        draft = self._draft(blank=True)
        return self._become(draft._add_labels(X, y, None, sample_weight, context))

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        context: Any = None,
    ) -> Self:
        """Learn from more trials. The result is that of one `fit` on all.

        Units and bounds are taken from the first data, or from `bounds`.

        Parameters
        ----------
        X, y, sample_weight, context
            As in `fit`. Trials with contexts and trials without may follow each other.
        classes : array, default=None
            All classes that may come, in the first call; None: those of the first y.

        Examples
        --------
        >>> model = SmoothBetaClassifier(bandwidth=0.1, bounds=[(0, 1)])
        >>> for batch in ([0.2, 0.3], [0.25, 0.9]):
        ...     model = model.partial_fit([[x] for x in batch], [1, 0], classes=[0, 1])
        >>> model.posterior([[0.25]]).mean().tolist()
        [0.6]
        """
        return self._become(self._draft()._add_labels(X, y, classes, sample_weight, context))

    def fit_counts(self, X: Any, successes: Any, trials: Any, context: Any = None) -> Self:
        """Learn from binomial rows: `successes` of `trials` at each row of X, under its context.

        Examples
        --------
        >>> model = SmoothBetaClassifier(bandwidth=0.5).fit_counts([[0], [1]], [3, 1], [4, 5])
        >>> model.posterior([[0]])
        Beta(alpha=[4.], beta=[2.])
        """
        draft = self._draft(blank=True)
        return self._become(draft._add_counts(X, successes, trials, context))

    def partial_fit_counts(self, X: Any, successes: Any, trials: Any, context: Any = None) -> Self:
        """Learn from more binomial rows; see `partial_fit` and `fit_counts`."""
        return self._become(self._draft()._add_counts(X, successes, trials, context))

    def fit_files(
        self,
        paths: Any,
        *,
        outcome: str | None = None,
        features: Any = None,
        successes: str | None = None,
        trials: str | None = None,
        sample_weight: str | None = None,
        context: Any = None,
        progress: bool | None = None,
        batch_rows: int = 1 << 17,
    ) -> Self:
        r"""Learn from Parquet and CSV files, however large. The result is that of one `fit` on all.

        Files are read some rows at a time: memory goes with the number of distinct places, not
        with that of the rows. They are read once to find the classes (the outcome alone), once to
        find the domain unless `bounds` says it, and once to learn. The order of files and rows
        does not matter, and trials learned earlier are forgotten.

        Parameters
        ----------
        paths : str, path, or list of them
            Files that end in .parquet, .pq or .csv (with a line of names), folders and globs. A
            file named twice is read once.
        outcome : str, default=None
            The column that says how each trial ended; or else `successes` and `trials`.
        features : list of str, default=None
            The columns that say where; None: all others, if all of them are numbers.
        successes, trials : str, default=None
            The columns of counts, where a row stands for several trials.
        sample_weight : str, default=None
            The column of weights, beside an outcome.
        context : array, list of str or callable, default=None
            How trials were distorted: one context for all rows; the columns of its Bernstein
            coefficients; or a function that gets a `pyarrow.RecordBatch` with all columns of a
            file and returns the contexts of its rows. See `betafield.contexts`.
        progress : bool, default=None
            Whether to show how far it is and the time left; None: on a terminal, if `rich` is
            installed.
        batch_rows : int, default=131072
            Rows that are read at once.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     for month in ("may", "june"):
        ...         _ = Path(folder, f"{month}.csv").write_text("dose,died\n1,no\n2,yes\n")
        ...     model = SmoothBetaClassifier(bandwidth=0.5).fit_files(folder, outcome="died")
        >>> model.n_trials_, model.classes_.tolist(), model.feature_names_in_.tolist()
        (4, ['no', 'yes'], ['dose'])
        """
        from betafield import files

        roles = files.roles(
            features,
            outcome=outcome,
            successes=successes,
            trials=trials,
            sample_weight=sample_weight,
            context=context,
        )
        draft = self._draft(blank=True)
        with files.Rows(paths, roles, batch_rows, progress) as rows:
            draft._begin_with(rows)
            for batch in rows.read("learning"):
                with batch.named():
                    places = draft._placed(*draft._observed(batch))
                    if places is not None:
                        draft._count(draft.windows_.insert(places))
            if not draft._seen_.trials:
                raise rows.nothing("no row that teaches anything")
            with rows.working("choosing"):
                draft._in_order()._choose()
        return self._become(draft)

    def merge(self, other: SmoothBetaClassifier) -> Self:
        """Take in all trials of another fitted model, as if this one had seen them.

        Both must measure in the same units, so give both the same `bounds`.

        Examples
        --------
        >>> a, b = (SmoothBetaClassifier(bandwidth=0.5, bounds=[(0, 1)]) for _ in range(2))
        >>> a = a.fit([[0.1], [0.2]], [0, 1])
        >>> b = b.fit([[0.3], [0.4]], [0, 1])
        >>> int(a.merge(b).n_trials_)
        4
        """
        check_is_fitted(self)
        self._require_alike(other)
        draft = self._draft()
        draft.bounds_ = np.stack(
            [
                np.minimum(self.bounds_[:, 0], other.bounds_[:, 0]),
                np.maximum(self.bounds_[:, 1], other.bounds_[:, 1]),
            ],
            axis=1,
        )
        draft._seen_ = self._seen_.plus(other._seen_)
        draft._sharing_ = self._sharing_ if self._seen_.distorted else other._sharing_
        return self._become(draft._know(draft._joined(other)))

    # Asking.

    def posterior(self, X: Any) -> Posterior:
        """Return the posterior of the success probability at each row of X.

        A `Beta` for two classes, with success the second of `classes_`, or a `Contextual` where
        trials were distorted; of several windows a `Mixture` or a `Blend` of them. A `Dirichlet`
        for more classes.
        """
        return self._now()._posterior(X)

    def predict_proba(self, X: Any) -> Floats:
        """Return the posterior mean of each class's probability, of shape (m, n_classes)."""
        mean = self._now()._mean(X)
        return np.stack([1.0 - mean, mean], axis=1) if mean.ndim == 1 else mean

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class with the highest posterior mean; of equal ones the first."""
        now = self._now()
        best = np.argmax(now.predict_proba(X), axis=1)
        return np.asarray(now.classes_[best])

    def band(
        self, X: Any, lipschitz: float, level: float = 0.95, simultaneous: bool = False
    ) -> tuple[Floats, Floats]:
        """Return intervals (low, high) that hold π(x) with a probability of at least `level`.

        That is so for any number of trials and any π with |π(x) − π(y)| ≤ L · distance, neither
        prior nor model being asked. Where there are no trials the interval is [0, 1]. See
        `betafield.bands` for why they hold.

        They hold given the points of the trials, if outcomes are independent. Neither these points
        nor X may have been chosen by looking at the outcomes: a point that was found by them, say
        the best one, has the guarantee where `simultaneous`; trials that were placed by them have
        none.

        Parameters
        ----------
        X : array or dataframe of shape (m, d)
            Where to know π.
        lipschitz : float
            L, how fast π may change: in scaled units, as the model's own `lipschitz`.
        level : float, default=0.95
            The probability, over all outcomes that might have been, that an interval holds π(x).
        simultaneous : bool, default=False
            Whether that is the probability that the intervals of all x at once hold it.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(size=(10_000, 1))
        >>> y = rng.uniform(size=10_000) < 1 - X[:, 0]
        >>> model = SmoothBetaClassifier(bounds=[(0, 1)]).fit(X, y)
        >>> low, high = model.band([[0.2], [0.5]], lipschitz=1.0)
        >>> bool(np.all((low < [0.8, 0.5]) & (high > [0.8, 0.5])))
        True
        """
        now = self._now()
        return now._band_at(now._points(X), lipschitz, level, simultaneous)

    def save(self, path: Any) -> None:
        """Write the model to one file, from which `betafield.load` gives it back.

        The file holds options, arrays and a checksum, and nothing that can run. It is written
        beside an older one and then takes its place: a crash leaves the one or the other. A prior
        that is a function cannot be saved.

        Parameters
        ----------
        path : str or path

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> model = SmoothBetaClassifier(bandwidth=0.5).fit([[0], [1]], ["no", "yes"])
        >>> with TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/doses.beta")
        ...     again = load(f"{folder}/doses.beta")
        >>> again.predict([[0.1], [0.9]]).tolist()
        ['no', 'yes']
        """
        from betafield import state

        now = self._now()
        check_is_fitted(now)
        state.save(now, path)

    # Inside.

    def _now(self) -> Self:
        """Return the model as it is, whatever another thread teaches it meanwhile."""
        now = object.__new__(type(self))
        now.__dict__ = self.__dict__
        return now

    def _posterior(self, X: Any) -> Posterior:
        return self._posterior_at(self._points(X))

    def _points(self, X: Any) -> Floats:
        check_is_fitted(self)
        return trials.points(self, X, reset=False)

    def _band_at(
        self, points: Floats, lipschitz: float, level: float, simultaneous: bool
    ) -> tuple[Floats, Floats]:
        bands = self._bands(lipschitz, level, simultaneous)
        return bands.intervals(self._units_.scaled(points))

    def _more_trials_at(
        self, points: Floats, width: float, lipschitz: float, level: float, simultaneous: bool
    ) -> Floats:
        """Return how many trials more make the band this narrow."""
        bands = self._bands(lipschitz, level, simultaneous)
        return bands.more_trials(self._units_.scaled(points), width)

    def _held_at(self, points: Floats) -> Floats:
        """Return how many trials the heaviest window has."""
        queries = self._units_.scaled(points) * self.relevance_
        sums = self._windows_for(self.relevance_).sums(queries, self.bandwidth_, self.n_jobs)
        return self._reading().size(sums)

    def _bands(self, lipschitz: float, level: float, simultaneous: bool) -> Bands:
        from betafield.bands import Bands

        if not widths.is_positive(lipschitz):
            raise ValueError(f"lipschitz: found {lipschitz!r}; a positive number is needed")
        if not (widths.is_positive(level) and level < 1.0):
            raise ValueError(f"level: found {level!r}; a number between 0 and 1 is needed")
        self._require_whole_affine()
        return Bands(
            self._windows_for(np.ones_like(self.relevance_)),
            self._reading(),
            self._sides(),
            self._seen_,
            float(lipschitz),
            min(1.0 - level, 0.5),  # what is proven is for intervals that hold more often than not
            simultaneous,
            self.n_jobs,
        )

    def _require_whole_affine(self) -> None:
        """Raise where trials are none of which a guarantee is known."""
        if len(self.classes_) > 2:
            raise ValueError(
                f"band: this model has {len(self.classes_)} classes; guarantees are for two"
            )
        if self._polynomials_:
            raise ValueError(
                "band: this model has learned from polynomial contexts; guarantees are for trials "
                "without contexts and for affine contexts"
            )
        if self.windows_.has_sizes or self.windows_.totals[2 : sharing.OTHERS].any():
            raise ValueError(
                "band: this model has learned from fractional weights, and a fraction of a trial "
                "has no outcome of its own; guarantees are for whole weights"
            )

    def _posterior_at(self, points: Floats, ask: Ask | None = None) -> Posterior:
        scaled, shapes = self._units_.scaled(points), self._shapes(points)
        if self._is_local():
            return self._local_posterior(scaled, shapes)
        each = [self._counted_posterior(scaled, shapes, record, ask) for record in self.weights_]
        return each[0] if len(each) == 1 else Blend(np.log(self.weights_["weight"]), each)

    def _counted_posterior(
        self, scaled: Floats, shapes: Floats, record: Any, ask: Ask | None = None
    ) -> Posterior:
        """Return what the sums of windows say."""
        windows = self._windows_for(record["relevance"])
        queries, width = scaled * record["relevance"], float(record["width"])
        sums = ask(windows, queries, width) if ask else windows.sums(queries, width, self.n_jobs)
        return self._reading().posterior(sums, shapes)

    def _local_posterior(self, scaled: Floats, shapes: Floats) -> Posterior:
        """Return what local polynomials say: mixtures of Beta(α + n_eff p̂, β + n_eff (1 − p̂))."""
        from betafield import local

        weights = self.weights_
        share, worth = np.empty((2, len(scaled), len(weights)))
        for relevance in np.unique(weights["relevance"], axis=0):
            these = (weights["relevance"] == relevance).all(axis=1)
            share[:, these], worth[:, these] = local.estimates(
                self._windows_for(relevance, gather=True),
                scaled * relevance,
                weights["width"][these],
                weights["degree"][these],
                self._weigh,
                self.n_jobs,
            )
        alpha, beta = shapes[:, 1:] + worth * share, shapes[:, :1] + worth * (1.0 - share)
        if len(weights) == 1:
            return Beta(alpha[:, 0], beta[:, 0])
        return Mixture(np.log(weights["weight"]), alpha, beta)

    def _windows_for(self, relevance: Floats, gather: bool = False) -> Forest:
        """Return the windows in which features have this relevance, made when first asked for.

        Those for polynomials may gather trials in cells.
        """
        key = (*relevance.tolist(), gather)
        if key not in self._windows_by_relevance_:
            windows = self.windows_
            if not np.array_equal(relevance, self.relevance_):
                windows = windows.stretched(relevance / self.relevance_)
            if gather:
                from betafield import local

                windows = local.gathered(windows, float(self.weights_["width"].min()))
            self._windows_by_relevance_[key] = windows
        return self._windows_by_relevance_[key]

    def _is_local(self) -> bool:
        """Return whether local polynomials, or several widths, are asked for."""
        return self._is_plain() and bool(len(self.weights_) > 1 or self.weights_["degree"][0])

    def _weigh(self, counts: npt.NDArray[Any]) -> tuple[Floats, Floats]:
        """Return the trials and the successes of places with these counts."""
        held = trials.untallied(counts.T, 2).astype(np.float64)
        return held.sum(axis=1), np.ascontiguousarray(held[:, 1])

    def _mean(self, X: Any) -> Floats:
        """Return the posterior means, some points at a time: sums may take a kilobyte a point."""
        points = self._points(X)
        numbers = self.windows_.width + self.windows_.span[1] + 6 * len(self.weights_)
        block = max(1, BLOCK // numbers)
        starts = range(0, max(1, len(points)), block)
        return np.concatenate([self._posterior_at(points[i : i + block]).mean() for i in starts])

    def _reading(self) -> sharing.Reading:
        """Return what the sums of a window mean."""
        return sharing.Reading(
            len(self.classes_),
            self._sharing_,
            self.windows_.width,
            self.windows_.span,
            self._polynomials_,
            self.n_jobs,
        )

    def _draft(self, blank: bool = False) -> Self:
        """Return a model with the same attributes, but those learned (in _) where it is blank."""
        self._check_options()
        draft = object.__new__(type(self))
        kept = {k: v for k, v in self.__dict__.items() if not (blank and k.endswith("_"))}
        draft.__dict__.update(kept)
        return draft

    def _become(self, draft: Self) -> Self:
        """Take over what the draft has learned, all at once."""
        self.__dict__ = draft.__dict__
        return self

    def _check_options(self) -> None:
        widths.check(self.bandwidth)
        if self.metric not in METRICS:
            raise ValueError(f"metric: found {self.metric!r}; allowed are {', '.join(METRICS)}")
        if isinstance(self.degree, bool) or self.degree not in ("auto", 0, 1, 2):
            raise ValueError(f"degree: found {self.degree!r}; allowed are 'auto', 0, 1 and 2")
        if self.sharing not in sharing.NAMES:
            raise ValueError(f"sharing: found {self.sharing!r}; allowed are 'exact' and 'mean'")
        if not widths.is_positive(self.lipschitz):
            raise ValueError(f"lipschitz: found {self.lipschitz!r}; a positive number is needed")
        if not (self.n_jobs is None or (isinstance(self.n_jobs, Integral) and self.n_jobs != 0)):
            raise ValueError(
                f"n_jobs: found {self.n_jobs!r}; allowed are None, positive whole numbers, "
                "and -1 for all cores"
            )

    def _add_labels(self, X: Any, y: Any, classes: Any, sample_weight: Any, context: Any) -> Self:
        points = trials.points(self, X, reset=not self._has_trials())
        outcome = trials.labels(y, len(points))
        weight = trials.weights(sample_weight, len(points))
        if not self._has_trials():
            self.classes_ = trials.classes_of(outcome, classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(
                f"classes: found {np.unique(classes).tolist()}; "
                f"the first call said {self.classes_.tolist()}"
            )
        return self._add(points, trials.outcomes(outcome, self.classes_), weight, context)

    def _add_counts(self, X: Any, successes: Any, held: Any, context: Any) -> Self:
        points = trials.points(self, X, reset=not self._has_trials())
        if not self._has_trials():
            self.classes_ = np.array([0, 1])
        elif len(self.classes_) != 2:
            raise ValueError(
                f"successes: this model has {len(self.classes_)} classes; counts need two"
            )
        return self._add(points, trials.binomial(successes, held, len(points)), None, context)

    def _add(
        self, points: Floats, columns: trials.Columns, weight: Floats | None, context: Any
    ) -> Self:
        """Add trials to the windows, and choose windows for all of them."""
        places = self._placed(points, columns, weight, context)
        if places is None:
            return self._require_trials()
        return self._know(self.windows_.insert(places))

    def _placed(
        self, points: Floats, columns: trials.Columns, weight: Floats | None, context: Any
    ) -> Places | None:
        """Return trials by place, after the units on the first call; None if they teach nothing."""
        from betafield.windows import Places

        evidence = self._evidence(columns, weight, trials.context(context, len(points)))
        units.check_bounds(self.bounds, points, evidence.present(len(points)))
        if not callable(self.prior):
            self._shapes(points)
        if evidence.rows is not None:
            points = points[evidence.rows]
        if not len(points):
            return None
        if not self._has_trials():
            domain = units.domain(self.bounds, points)
            self._begin(domain, points, lambda: evidence.weights(len(columns)))
        axes = self._units_.axes(points)
        if np.any(self.relevance_ != 1.0):
            axes *= self.relevance_[:, None]
        self._seen_ = self._seen_.plus(evidence.seen)
        return Places(axes, evidence.counts, evidence.shifts)

    def _begin(self, domain: Floats, points: Floats, weigh: Callable[[], Floats]) -> None:
        """Fix the domain and the units, given the first points and their weights."""
        from betafield.windows import Forest

        self.bounds_ = domain
        self._units_ = units.measure(self.scale, domain, points, weigh)
        self.scale_ = self._units_.unit
        self.relevance_ = np.ones(points.shape[1])
        self.windows_ = Forest(points.shape[1], self.metric)

    def _begin_with(self, rows: Rows) -> None:
        """Take the names of features, the classes and the domain from files."""
        if self._is_scaled_by("std"):
            raise ValueError(
                "scale: found 'std', for which fit_files does not read files twice more; give the "
                "standard deviations as numbers, one a feature"
            )
        nowhere = trials.points(self, rows.header(), reset=True)
        units.check_bounds(self.bounds, nowhere, np.zeros(1, dtype=np.bool_))
        self.classes_ = rows.classes()
        if not callable(self.prior):
            self._shapes(nowhere)
        corners = nowhere if self.bounds is not None else self._corners(rows)
        self._seen_, self._sharing_, self._polynomials_ = sharing.Seen(), self.sharing, ()
        self._begin(units.domain(self.bounds, corners), nowhere, lambda: np.ones(1))
        self._choice().degrees()  # what cannot be is said now, not after all rows

    def _corners(self, rows: Rows) -> Floats:
        """Return the lowest and the highest coordinates of trials that teach something."""
        corners = np.empty((0, self.n_features_in_))
        for batch in rows.read("bounds"):
            with batch.named():
                points, columns, weight, context = self._observed(batch)
                context = trials.context(context, len(points))
                there = self._evidence(columns, weight, context).present(len(points))
            some = np.concatenate([corners, points[there]])
            if len(some):
                corners = np.stack([some.min(axis=0), some.max(axis=0)])
        if not len(corners):
            raise rows.nothing("no row that teaches anything")
        return corners

    def _observed(self, batch: Batch) -> tuple[Floats, trials.Columns, Floats | None, Any]:
        """Return points, outcomes, weights and contexts of some rows of a file."""
        points = trials.points(self, batch.points(), reset=False)
        counts, t = batch.counts(), len(points)
        if counts is not None:
            return points, trials.binomial(*counts, t, part=True), None, batch.context()
        columns = trials.outcomes(batch.outcomes(), np.arange(len(self.classes_)))
        return points, columns, trials.weights(batch.weights(), t, part=True), batch.context()

    def _in_order(self) -> Self:
        """Count polynomials of contexts in the order of one `fit`, whichever came first."""
        from betafield.windows import Forest

        known, ordered = self._polynomials_, tuple(sorted(self._polynomials_))
        if ordered != known:
            self._polynomials_, places = sharing.recounted(self.windows_.places, known, ordered)
            self.windows_ = Forest(self.windows_.d, self.windows_.metric)
            for part in places:
                self.windows_ = self.windows_.insert(part)
        return self

    def _evidence(
        self, columns: trials.Columns, weight: Floats | None, context: Floats | None
    ) -> sharing.Evidence:
        """Return the statistics of these trials; what is known of contexts goes with them."""
        if not self._has_trials():
            self._seen_, self._sharing_, self._polynomials_ = sharing.Seen(), self.sharing, ()
        if context is None:
            return sharing.plain(columns, weight)
        if len(self.classes_) > 2:
            raise ValueError(
                f"context: found one where there are {len(self.classes_)} classes; "
                "contexts are for two"
            )
        if self.sharing != self._sharing_:
            if self._seen_.distorted:
                raise ValueError(
                    f"sharing: found {self.sharing!r}; the trials so far were kept for "
                    f"{self._sharing_!r}, so fit all of them anew"
                )
            self._sharing_ = self.sharing
        evidence = sharing.distorted(columns, weight, context, self._sharing_, self._polynomials_)
        self._polynomials_ = evidence.polynomials
        return evidence

    def _require_trials(self) -> Self:
        """Raise where nothing was learned yet, and nothing can be learned now."""
        if not self._has_trials():
            raise ValueError(
                "context: every trial has equal coefficients, so that none says anything about π; "
                "one at least must have different ones"
            )
        return self

    def _joined(self, other: SmoothBetaClassifier) -> Forest:
        """Return the windows of both models, the polynomials of the other counted as here."""
        theirs = other.windows_
        if not np.array_equal(other.relevance_, self.relevance_):
            theirs = theirs.stretched(self.relevance_ / other.relevance_)
        if other._polynomials_ == self._polynomials_ or not other._polynomials_:
            return self.windows_.merge(theirs)
        self._polynomials_, places = sharing.recounted(
            theirs.places, other._polynomials_, self._polynomials_
        )
        windows = self.windows_
        for part in places:
            windows = windows.insert(part)
        return windows

    def _know(self, windows: Forest) -> Self:
        """Replace all trials known by those of these windows, and choose windows for them."""
        return self._count(windows)._choose()

    def _count(self, windows: Forest) -> Self:
        """Replace all trials known by those of these windows."""
        self.windows_ = windows
        self.n_trials_ = self._seen_.number()
        most = trials.MOST / (lattice.UNIT if self._seen_.distorted else 1.0)
        trials.require_countable("trials", np.array(self.n_trials_), most)
        return self

    def _choose(self) -> Self:
        """Choose the windows for the trials known: anew as t doubles."""
        choice = self._choice()
        self._chosen_ = choice.weighed(self._chosen_, functools.partial(self._weighing, choice))
        self.weights_ = choice.records(self._chosen_)
        self.bandwidth_ = float(self.weights_["width"][0])
        self._relate(self.weights_["relevance"][0])
        return self

    def _choice(self) -> Choice:
        """Return what was asked for, and what the choice of windows depends on."""
        from betafield.choosing import Choice

        relates = ("auto", "ard") if self.bandwidth == "auto" else ("ard",)
        return Choice(
            self.bandwidth,
            self.lipschitz,
            self.degree,
            self._is_scaled_by(*relates),
            self._seen_,
            len(self.classes_),
            self._sides(),
            self.windows_.metric,
        )

    def _is_scaled_by(self, *names: str) -> bool:
        return isinstance(self.scale, str) and self.scale in names

    def _weighing(self, choice: Choice) -> Weighing:
        """Return what finds the windows that predict best."""
        from betafield import weighing

        scoring: weighing.Scoring = weighing.CountScoring(self._reading(), self.n_jobs)
        if choice.is_plain:
            scoring = weighing.LocalScoring(self._weigh, choice.degrees(), self.n_jobs)
        places, total = self._places_to_weigh()
        return weighing.Weighing(
            places,
            self.windows_.metric,
            scoring,
            lambda axes: self._shapes(self._units_.restored(axes)),
            choice.sides,
            None if choice.learns_width else choice.width,
            choice.learns_relevance,
            weighing.PRICE if self.bandwidth == "auto" else 0.0,
            total,
        )

    def _places_to_weigh(self) -> tuple[list[Places], int | None]:
        """Return the places of all trials, every relevance 1; and how many, if they are not all."""
        places = self.windows_.places
        if np.any(self.relevance_ != 1.0):
            places = [p._replace(axes=p.axes / self.relevance_[:, None]) for p in places]
        return places, None

    def _is_plain(self) -> bool:
        """Return whether all there is to learn from are two classes without contexts."""
        return len(self.classes_) == 2 and not self._seen_.distorted

    def _sides(self) -> Floats:
        return np.asarray((self.bounds_[:, 1] - self.bounds_[:, 0]) / self.scale_)

    def _relate(self, relevance: Floats) -> None:
        """Hold the trials in windows of this relevance from now on."""
        if not np.array_equal(relevance, self.relevance_):
            self.windows_ = self.windows_.stretched(relevance / self.relevance_)
            self.relevance_ = relevance
        self._windows_by_relevance_ = {}

    def _shapes(self, points: Floats) -> Floats:
        return priors.shapes(self.prior, points, len(self.classes_))

    def _require_alike(self, other: SmoothBetaClassifier) -> None:
        """Raise unless trials of the other model mean the same here."""
        if not isinstance(other, SmoothBetaClassifier):
            raise TypeError(
                f"other: found {type(other).__name__}; a SmoothBetaClassifier is needed"
            )
        check_is_fitted(other)
        if self.windows_.metric != other.windows_.metric:
            raise ValueError(
                f"other: its metric is {other.windows_.metric}, here it is {self.windows_.metric}"
            )
        distorted = self._seen_.distorted and other._seen_.distorted
        if distorted and self._sharing_ != other._sharing_:
            raise ValueError(
                f"other: its sharing is {other._sharing_!r}, here it is {self._sharing_!r}"
            )
        ranged = all(m._is_scaled_by("auto", "range", "ard") for m in (self, other))
        shared = ("n_features_in_", "feature_names_in_", "classes_")
        for name in (*shared, "bounds_") if ranged else (*shared, "scale_"):
            ours, theirs = (np.asarray(getattr(model, name, None)) for model in (self, other))
            if not np.array_equal(ours, theirs):
                hint = "give both the same `bounds`" if name == "bounds_" else "they must be equal"
                raise ValueError(
                    f"other: its {name} is {_listed(theirs)}, here it is {_listed(ours)}; {hint}"
                )
        if not np.array_equal(self._units_.origin, other._units_.origin):
            raise ValueError(
                f"other: its bounds_ is {_listed(other.bounds_)}, here it is "
                f"{_listed(self.bounds_)}; give both the same `bounds`"
            )

    def _has_trials(self) -> bool:
        return "windows_" in self.__dict__


def _listed(values: npt.NDArray[Any]) -> str:
    return str(values.tolist())


def load(path: Any) -> SmoothBetaClassifier:
    """Return the model that `SmoothBetaClassifier.save` wrote to a file.

    It answers, learns and merges as the saved one would, to the last bit. Files may come from
    anywhere: nothing in them is run, and every value is checked before it is used.

    Raises
    ------
    ValueError
        Where the file is none of betafield, of a newer version of the format, cut off, damaged,
        or holds no sound model.
    OSError
        Where it cannot be read.
    """
    from betafield import state

    model: SmoothBetaClassifier = state.load(path, SmoothBetaClassifier)
    return model
