"""SmoothBetaClassifier: validates, delegates, nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from betafield import cautions, methods, trials
from betafield._locks import writing
from betafield.learned import Learned
from betafield.learning import Trials
from betafield.methods import AnyField
from betafield.options import Options

if TYPE_CHECKING:
    from betafield.posteriors import Posterior

Floats = npt.NDArray[np.float64]


class SmoothBetaClassifier(Learned, ClassifierMixin, BaseEstimator):
    """A smooth probability learned from yes/no trials, with a posterior at every point.

    By default (`method="auto"`) a Gaussian process for what is smooth and windows of its residuals
    for what is not, weighed by how they predict trials that are left out: what is learned is a
    function of the trials by place and of the options alone.

    A `bandwidth` that is given means windows, the Smooth Beta Process of Rolland et al. (2019):
    with n trials within Δ of x, S of them successes, the success probability π(x) has the posterior

        π̃(x) ~ Beta(α(x) + S, β(x) + n − S),

    and with three classes and more the Dirichlet of the window's counts per class. Where no trial
    is near, the prior remains.

    Trials distorted in a known way are learned from with a `context` each, see
    `betafield.contexts`: the posterior is then that of π, the probability without distortion.

    Parameters
    ----------
    bandwidth : float, "theory", "loo" or "auto", default="auto"
        Δ, the width of the windows, in scaled units. "theory": L^(−2/(d+2)) t^(−1/(d+2)).
        "loo": the width with the best leave-one-out log score. Given, it means
        `method="windows"`; "auto" is "loo" there.
    method : {"auto", "process", "windows"}, default="auto"
        "auto": a process and windows of its residuals. "process": the process alone. "windows":
        the paper's method.
    lipschitz : float, default=1.0
        L, how fast π may change, in scaled units; for "theory".
    metric : {"euclidean", "chebyshev", "manhattan"}, default="euclidean"
        Distance between scaled points, for windows and bands.
    scale : "auto", "range", "std", None or array of shape (d,), default="auto"
        The unit of each feature in windows: "range" the width of its bounds, "std" its standard
        deviation, None 1, or as given; "auto" is "range". A constant feature carries no distance.
        A process learns a length scale per feature.
    bounds : array of shape (d, 2), default=None
        The domain, (low, high) per feature. None: the range of all trials seen, for windows that
        of the first data.
    prior : (alpha, beta), callable or Prior, default=(1.0, 1.0)
        For windows: shapes of the prior, the same everywhere or X → (α, β) with one value per row
        of X. With three classes and more: one shape per class, or two equal ones for all.
    sharing : {"exact", "mean"}, default="exact"
        For windows: how trials under different contexts share one. "exact": by the likelihood of
        each. "mean": as if all had the window's mean context (the paper's CSBP; affine contexts
        only).
    n_jobs : int, default=None
        Threads for queries. None: 1; -1: all cores.

    Attributes
    ----------
    classes_ : array
        The classes, sorted; the second of two is the success.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of str
        Their names, if X had names.
    n_trials_ : int or float
        Trials seen, t; the sum of the weights.
    weights_ : structured array
        The components in use, the heaviest first, with their `weight`. Of a process: its `link`,
        the `units` of the features, the feature whose `levels` have effects of their own, and
        `length_scales`, in shares of the domain. Of windows: how distances are stretched, how wide
        they are, and `tau`, the variance of what the process misses within them; of the paper's
        windows the `width` and, if it was learned, its leave-one-out `score`.
    length_scales_ : array of shape (d,)
        How far trials reach along each feature, in its own units. Not with windows.
    relevance_ : array of shape (d,)
        Inverse length scales in shares of the domain, 1 for the most relevant feature.
    settled_ : bool
        Whether all of that was learned from all trials there are; see `settle`.
    bandwidth_ : float
        Δ in use, in scaled units. With windows only.
    scale_ : array of shape (d,)
        The length of one scaled unit in the feature's own; inf for a constant feature.
    bounds_ : array of shape (d, 2)
        The domain.
    windows_ : Forest
        The sums of the trials, by place, in scaled units.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield import SmoothBetaClassifier
    >>> rng = np.random.default_rng(0)
    >>> difficulty = rng.uniform(size=(10_000, 1))
    >>> success = rng.uniform(size=10_000) < 1 - difficulty[:, 0]
    >>> model = SmoothBetaClassifier().fit(difficulty, success)
    >>> posterior = model.posterior([[0.2], [0.5]])
    >>> posterior.mean().round(1).tolist()
    [0.8, 0.5]
    >>> low, high = posterior.interval(0.95)
    >>> bool(np.all((low < [0.8, 0.5]) & (high > [0.8, 0.5])))
    True
    """

    def __init__(
        self,
        bandwidth: float | str = "auto",
        *,
        method: str = "auto",
        lipschitz: float = 1.0,
        metric: str = "euclidean",
        scale: Any = "auto",
        bounds: Any = None,
        prior: Any = (1.0, 1.0),
        sharing: str = "exact",
        n_jobs: int | None = None,
    ) -> None:
        self.bandwidth = bandwidth
        self.method = method
        self.lipschitz = lipschitz
        self.metric = metric
        self.scale = scale
        self.bounds = bounds
        self.prior = prior
        self.sharing = sharing
        self.n_jobs = n_jobs

    # Learning. Whoever changes the model holds its lock, and makes another field in its place:
    # a failure leaves the model as it was, and who asks meanwhile asks the one before.

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
        with writing(self):
            self._field_ = self._of_labels(None, X, y, None, sample_weight, context)
        cautions.after_learning(self._field_)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        context: Any = None,
    ) -> Self:
        """Learn from more trials.

        After `settle`, the result is that of one `fit` on all trials, to the last bit, whatever
        their order; before, length scales and weights that were found for up to a tenth fewer
        trials may serve. Windows (a `bandwidth` that is given, or `method="windows"`) are always
        settled, but unless `bounds` are given, those of the first data stay.

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
        with writing(self):
            known = self._known()
            self._field_ = self._of_labels(known, X, y, classes, sample_weight, context)
        return self

    def fit_counts(self, X: Any, successes: Any, trials: Any, context: Any = None) -> Self:
        """Learn from binomial rows: `successes` of `trials` at each row of X, under its context.

        Examples
        --------
        >>> model = SmoothBetaClassifier(bandwidth=0.5).fit_counts([[0], [1]], [3, 1], [4, 5])
        >>> model.posterior([[0]])
        Beta(alpha=[4.], beta=[2.])
        """
        with writing(self):
            self._field_ = self._of_counts(None, X, successes, trials, context)
        cautions.after_learning(self._field_)
        return self

    def partial_fit_counts(self, X: Any, successes: Any, trials: Any, context: Any = None) -> Self:
        """Learn from more binomial rows; see `partial_fit` and `fit_counts`."""
        with writing(self):
            self._field_ = self._of_counts(self._known(), X, successes, trials, context)
        return self

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
        r"""Learn from Parquet and CSV files, however large, as one `fit` on all rows would.

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
        from betafield import files, streaming

        roles = files.roles(
            features,
            outcome=outcome,
            successes=successes,
            trials=trials,
            sample_weight=sample_weight,
            context=context,
        )
        with writing(self), files.Rows(paths, roles, batch_rows, progress) as rows:
            self._field_ = streaming.learned(type(self).__name__, self._options(), rows)
        cautions.after_learning(self._field_)
        return self

    def settle(self) -> Self:
        """Learn length scales, widths and weights from all trials, if that is due.

        Where `partial_fit` and questions take turns, those found for up to a tenth fewer trials
        serve until then, and `settled_` is False. After settling, what was learned is a function of
        the trials and the options alone, to the last bit: whatever the order, batches and merges.

        Examples
        --------
        >>> X = [[i / 100] for i in range(100)]
        >>> model = SmoothBetaClassifier().fit(X, [0, 1] * 50).partial_fit([[0.5]], [1])
        >>> model.settled_, model.settle().settled_
        (False, True)
        """
        check_is_fitted(self)
        with writing(self):
            self._field_ = self._field_.asked_for(self._options()).settled()
        return self

    def merge(self, other: SmoothBetaClassifier) -> Self:
        """Take in all trials of another fitted model.

        The result is that of one `fit` on all trials, to the last bit. Windows (a `bandwidth` that
        is given, or `method="windows"`) must measure in the same units for that, so give both
        models the same `bounds`.

        Examples
        --------
        >>> a, b = (SmoothBetaClassifier(bandwidth=0.5, bounds=[(0, 1)]) for _ in range(2))
        >>> a = a.fit([[0.1], [0.2]], [0, 1])
        >>> b = b.fit([[0.3], [0.4]], [0, 1])
        >>> int(a.merge(b).n_trials_)
        4
        """
        check_is_fitted(self)
        if not isinstance(other, SmoothBetaClassifier):
            raise TypeError(
                f"other: found {type(other).__name__}; a SmoothBetaClassifier is needed"
            )
        check_is_fitted(other)
        theirs = other.field_  # as it is now, whatever is added to it meanwhile
        with writing(self):
            self._field_ = methods.merged(self._field_.asked_for(self._options()), theirs)
        return self

    # Asking.

    def posterior(self, X: Any) -> Posterior:
        """Return the posterior of the success probability at each row of X.

        A `LatentNormal` for two classes, with success the second of `classes_`; of windows a
        `Beta`, or a `Contextual` if trials were distorted. A `Dirichlet` for more classes.
        """
        field, points = self.asked(X)
        cautions.at_points(field, points)
        return field.posterior(points)

    def predict_proba(self, X: Any) -> Floats:
        """Return the posterior mean of each class's probability, of shape (m, n_classes)."""
        field, points = self.asked(X)
        cautions.at_points(field, points)
        mean = field.mean(points)
        return np.stack([1.0 - mean, mean], axis=1) if mean.ndim == 1 else mean

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the class with the highest posterior mean; of equal ones the first."""
        field, points = self.asked(X)
        mean = field.mean(points)
        best = mean > 0.5 if mean.ndim == 1 else np.argmax(mean, axis=1)
        return np.asarray(field.classes[best.astype(np.intp)])

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
        from betafield import bands

        field, points = self.asked(X)
        return field.band(points, *bands.checked(lipschitz, level, simultaneous))

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

        state.save(self.field_, path)

    # Inside.

    def _options(self) -> Options:
        return Options.of(self).checked()

    def _known(self) -> AnyField | None:
        """Return what was learned so far, if anything."""
        return self.__dict__.get("_field_")

    def _points(self, known: AnyField | None, X: Any) -> tuple[Floats, trials.Features]:
        """Return the points of trials, and the features there are."""
        if known is None:
            return trials.first_points(type(self).__name__, X)
        return trials.more_points(type(self).__name__, X, known.features), known.features

    def _of_labels(
        self, known: AnyField | None, X: Any, y: Any, classes: Any, sample_weight: Any, context: Any
    ) -> AnyField:
        """Return the field that knows these trials too."""
        options = self._options()
        points, features = self._points(known, X)
        outcome = trials.labels(y, len(points))
        weight = trials.weights(sample_weight, len(points))
        every = methods.classes_of(known, outcome, classes)
        columns, context = trials.outcomes(outcome, every), trials.context(context, len(points))
        return methods.taught(
            known, options, features, every, Trials(points, columns, weight, context)
        )

    def _of_counts(
        self, known: AnyField | None, X: Any, successes: Any, held: Any, context: Any
    ) -> AnyField:
        options = self._options()
        points, features = self._points(known, X)
        classes = np.array([0, 1]) if known is None else known.classes
        if len(classes) != 2:
            raise ValueError(f"successes: this model has {len(classes)} classes; counts need two")
        columns = trials.binomial(successes, held, len(points))
        context = trials.context(context, len(points))
        return methods.taught(
            known, options, features, classes, Trials(points, columns, None, context)
        )


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

    return SmoothBetaClassifier.of(state.load(path))
