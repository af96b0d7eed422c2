"""FieldCalibratedClassifier: any classifier's score as a probability with an interval.

In many dimensions no trial is near another. A classifier combines all features into one score, and
a field learns P(success | score) on this one feature. Because new points are unseen by the
classifier, the field learns from held-out scores: each trial is scored by a classifier that was
fitted without its fold.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.utils import get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from betafield import checks, success, trials
from betafield.estimators import SmoothBetaClassifier
from betafield.folds import divided

if TYPE_CHECKING:
    from betafield.posteriors import Posterior

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]

# Where scores come from, in order of preference. Only their order matters. With two classes, the
# decision function, and logarithms, keep the order of probabilities that round to 0 and 1.
OF_TWO = ("decision_function", "predict_log_proba", "predict_proba")
# With more classes, the decision function of one class says little without those of the others,
# which are already accounted for in its probability.
OF_MORE = ("predict_log_proba", "predict_proba", "decision_function")


class FieldCalibratedClassifier(ClassifierMixin, BaseEstimator):
    """Calibrated probabilities with intervals, from any classifier, in any number of dimensions.

    With s(x) the score of the classifier and u(s) its rank among the scores of the trials, scaled
    to [0, 1], the posterior at x is that of a `SmoothBetaClassifier` with one feature,

        P(success | s(x)) ~ field(u(s(x))).

    The field learns from held-out scores: each trial is scored by a classifier that was fitted
    without its fold. New points are scored by the classifier that was fitted on all trials.
    Nothing is assumed about the relation between score and probability, not even that it rises.

    The interval is that of P(success | s(x)), the share of successes among all points with this
    score. If the classifier misses something, points with different probabilities share a score.

    Parameters
    ----------
    estimator : classifier, default=None
        A classifier with `decision_function` or `predict_proba`. None:
        LogisticRegression(max_iter=1000).
    cv : int, splitter or iterable of (train, test), default=None
        The folds, in which each trial is held out once. None: 5 folds stratified by class, or as
        many as the rarest class has trials, but at least two.
    bandwidth : float, "theory", "loo" or "auto", default="auto"
        "auto": the default model of `SmoothBetaClassifier`. Otherwise windows of this width, in
        units in which all scores span 1.
    prior : (alpha, beta), callable or Prior, default=(1.0, 1.0)
        For windows, that is if `bandwidth` is not "auto": shapes of the prior; a callable receives
        u. With three or more classes, it is the prior of each class against the rest.
    n_jobs : int, default=None
        Number of folds fitted at once, and of threads for queries. None: 1; -1: all cores.
    pos_label : label, default=None
        Which of two classes is the success that `posterior` describes. None: the second.

    Attributes
    ----------
    classes_ : array
        The classes, sorted, as the columns of `predict_proba` are.
    pos_label_ : label
        The success, of two classes.
    estimator_ : classifier
        The classifier, fitted on all trials.
    field_ : SmoothBetaClassifier, or a list of them
        The field over u; with three or more classes, one per class.
    n_features_in_ : int
        Number of features, if the estimator has it.
    feature_names_in_ : array of str
        Their names, if X had names.

    Examples
    --------
    Naive Bayes is overconfident if features repeat each other. The field is not:

    >>> import numpy as np
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from betafield.calibration import FieldCalibratedClassifier
    >>> rng = np.random.default_rng(0)
    >>> true = rng.normal(size=(4_000, 1))
    >>> X = true + 0.1 * rng.normal(size=(4_000, 20))
    >>> y = rng.uniform(size=4_000) < 1 / (1 + np.exp(-true[:, 0]))
    >>> at = np.full((1, 20), np.log(0.7 / 0.3))
    >>> GaussianNB().fit(X, y).predict_proba(at).round(2).tolist()
    [[0.0, 1.0]]
    >>> model = FieldCalibratedClassifier(GaussianNB()).fit(X, y)
    >>> model.predict_proba(at).round(1).tolist()
    [[0.3, 0.7]]
    >>> low, high = model.posterior(at).interval(0.95)
    >>> bool(low < 0.7 < high)
    True
    """

    classes_: Labels
    pos_label_: Any
    estimator_: Any
    field_: SmoothBetaClassifier | list[SmoothBetaClassifier]
    n_features_in_: int
    feature_names_in_: npt.NDArray[Any]
    _scorer_: Scorer
    _ranks_: list[Ranks]

    def __init__(
        self,
        estimator: Any = None,
        *,
        cv: Any = None,
        bandwidth: float | str = "auto",
        prior: Any = (1.0, 1.0),
        n_jobs: int | None = None,
        pos_label: Any = None,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.bandwidth = bandwidth
        self.prior = prior
        self.n_jobs = n_jobs
        self.pos_label = pos_label

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Learn from trials at X with outcomes y, and forget earlier trials.

        Parameters
        ----------
        X : array, dataframe or whatever the estimator takes, of t rows
            Where the trials were made.
        y : array of shape (t,)
            The outcome of each trial: two or more classes.
        sample_weight : array of shape (t,), default=None
            Weights for the field, and for the estimator if it accepts weights. A row of weight 2
            counts as two identical rows in one fold.
        **fit_params
            Passed to the `fit` of the estimator; arrays of t rows are split into folds like X.
            With metadata routing, the estimator and `cv` each receive what they requested.
        """
        X, n_rows = _rows(X)
        outcome = trials.labels(y, n_rows)
        weight = trials.weights(sample_weight, len(outcome))
        classes = _classes(outcome)
        success.require_label(self.pos_label)
        successes = success.in_order(classes, self.pos_label)
        estimator = self._chosen_estimator()
        _method(estimator, len(classes))
        # A fit on two trials shows any invalid option before a classifier is fitted.
        self._field().fit([[0.0], [1.0]], [False, True])
        given, split_params = self._routed(estimator, weight, fit_params)
        folds = divided(self.cv, X, outcome, weight, split_params)

        scorer = Scorer(estimator, len(classes), _routing())
        with config_context(enable_metadata_routing=False):  # parameters are already routed
            scores = cross_val_predict(
                scorer, X, outcome, cv=folds, params=given, n_jobs=self.n_jobs, method="predict"
            )
        _require_numbers(scores)
        ranks = [Ranks(column, weight) for column in scores.T]
        fields = [
            self._field().fit(rank.places(column), outcome == label, sample_weight=weight)
            for rank, column, label in zip(ranks, scores.T, successes[-len(ranks) :], strict=True)
        ]
        scorer.fit(X, outcome, **given)
        self.classes_ = classes
        self.estimator_ = scorer.estimator_
        self.field_ = fields[0] if len(fields) == 1 else fields
        self._note_success(successes)
        self._scorer_, self._ranks_ = scorer, ranks
        self._note_features()
        return self

    def posterior(self, X: Any) -> Posterior | list[Posterior]:
        """Return the posterior of P(success | score) at each row of X.

        With three or more classes it is a list with one posterior for each of `classes_`, against
        the rest. Their means need not add up to 1; those of `predict_proba` do.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = load_iris(return_X_y=True)
        >>> model = FieldCalibratedClassifier(GaussianNB())
        >>> posterior = model.fit(X[50:], y[50:]).posterior(X[[60, 100]])
        >>> (posterior.prob_above(0.5) > 0.9).tolist()
        [False, True]
        >>> setosa, versicolor, virginica = model.fit(X, y).posterior(X[[60, 100]])
        >>> virginica.prob_above(0.5).round(1).tolist()
        [0.0, 1.0]
        """
        fields = [field.posterior(places) for field, places in self._places(X)]
        return fields[0] if len(fields) == 1 else fields

    def predict_proba(self, X: Any) -> Floats:
        """Return the posterior mean of each class's probability, of shape (m, n_classes).

        With three or more classes, the means of the fields are divided by their sum.
        """
        each = [field.predict_proba(places) for field, places in self._places(X)]
        if len(each) == 1:
            is_second = bool(self.classes_[1] == self.pos_label_)
            return np.ascontiguousarray(each[0] if is_second else each[0][:, ::-1])
        means = np.stack([mean[:, 1] for mean in each], axis=1)
        return np.asarray(means / means.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> Labels:
        """Return the class with the highest posterior mean; the first one in case of a tie."""
        best = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how the arguments of `fit` are routed to estimator, splitter and field."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self._chosen_estimator(),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # X is passed to the estimator unchanged.
        tags.input_tags = get_tags(self._chosen_estimator()).input_tags
        return tags

    # Private.

    def _chosen_estimator(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        default = LogisticRegression(max_iter=1000)
        return default.set_fit_request(sample_weight=True) if _routing() else default

    def _field(self) -> SmoothBetaClassifier:
        return SmoothBetaClassifier(
            self.bandwidth, bounds=[(0.0, 1.0)], prior=self.prior, n_jobs=self.n_jobs
        )

    def _routed(
        self, estimator: Any, weight: Floats | None, fit_params: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the parameters for the estimator's `fit`, and those for the splitter's `split`."""
        if _routing():
            routed = process_routing(self, "fit", sample_weight=weight, **fit_params)
            return dict(routed.estimator.fit), dict(routed.splitter.split)
        if weight is None:
            return fit_params, {}
        if has_fit_parameter(estimator, "sample_weight"):
            return {**fit_params, "sample_weight": weight}, {}
        warnings.warn(
            f"sample_weight: fit of {type(estimator).__name__} takes none, so that only the field "
            "is weighted",
            stacklevel=3,
        )
        return fit_params, {}

    def _note_success(self, classes: Labels) -> None:
        """Record which class is the success, if there are two."""
        if len(classes) == 2:
            self.pos_label_ = classes[1]
        elif hasattr(self, "pos_label_"):
            del self.pos_label_

    def _note_features(self) -> None:
        """Record what the estimator has recorded about features, and nothing else."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
            elif hasattr(self, name):
                delattr(self, name)

    def _places(self, X: Any) -> list[tuple[SmoothBetaClassifier, Floats]]:
        """Return each field and the places of the rows of X in it."""
        check_is_fitted(self)
        X, _ = _rows(X)
        fields = self.field_ if isinstance(self.field_, list) else [self.field_]
        try:
            scores = self._scorer_.predict(X)
        except TypeError as error:  # it may come from anywhere inside
            what = f"{type(X).__name__} of values that {type(self.estimator_).__name__} cannot use"
            raise TypeError(f"X: found {what}; give the features that it was fitted to") from error
        except ValueError as error:
            raise ValueError(f"X: {error}") from error
        _require_numbers(scores)
        return [
            (field, rank.places(column))
            for field, rank, column in zip(fields, self._ranks_, scores.T, strict=True)
        ]


# Places -------------------------------------------------------------------------------------


class Ranks:
    """Maps a score to its place among the trials' scores, in [0, 1], whatever its units and tails.

    With W the weight of the trials, the rank of a score s and its place are

        r(s) = (W(scores < s) + W(scores ≤ s)) / 2W,    u(s) = (2/π) arcsin √r(s).

    Equal scores share a place, a score between two trials lies between them, and one beyond all
    trials lies half a trial beyond the last. With ranks, every window holds equally many trials;
    the arcsine puts fewer trials in windows near the ends, where a rare class is separated. Ranks
    lose the width of gaps: if two classes are cleanly separated, a window at the border reaches
    across the gap, and further with fewer trials.

    Examples
    --------
    >>> ranks = Ranks([-1e9, 0.0, 0.0, 1.0], None)
    >>> ranks.places([0.0, -1e9, -1.0, 7.0]).round(3).ravel().tolist()
    [0.5, 0.23, 0.333, 1.0]
    """

    def __init__(self, scores: npt.ArrayLike, weight: Floats | None) -> None:
        self.scores, position = np.unique(scores, return_inverse=True)
        self.below = np.zeros(len(self.scores) + 1)
        self.below[1:] = np.cumsum(np.bincount(position, weight))

    def places(self, scores: npt.ArrayLike) -> Floats:
        """Return u of each score, as one column."""
        below = self.below[np.searchsorted(self.scores, scores, "left")]
        up_to = self.below[np.searchsorted(self.scores, scores, "right")]
        ranks = (below + up_to) / (2.0 * self.below[-1])
        return np.asarray(2.0 / np.pi * np.arcsin(np.sqrt(ranks)))[:, None]


# Scores -------------------------------------------------------------------------------------


class Scorer(BaseEstimator):
    """A classifier that predicts its scores as float32: (m, 1) for two classes, (m, K) for more.

    With two classes, the score is that of the second. `cross_val_predict` keeps the labels of the
    classes only with `method="predict"`, and a classifier may refer to them, as in
    class_weight={"yes": 5}.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> scorer = Scorer(GaussianNB(), n_classes=2, routing=False)
    >>> scorer.fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[1.0], [2.0]]).tolist()
    [[-4.0], [4.0]]
    """

    estimator_: Any

    def __init__(self, estimator: Any, n_classes: int, routing: bool) -> None:
        self.estimator = estimator
        self.n_classes = n_classes
        self.routing = routing

    def fit(self, X: Any, y: Labels, **given: Any) -> Self:
        """Fit the classifier, with the user's setting for metadata routing."""
        with config_context(enable_metadata_routing=self.routing):
            self.estimator_ = clone(self.estimator).fit(X, y, **given)
        return self

    def predict(self, X: Any) -> npt.NDArray[np.float32]:
        """Return the scores of the rows of X."""
        method = _method(self.estimator_, self.n_classes)
        # A probability may be 0 and its score infinite, but the rank is still valid.
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            found = np.asarray(getattr(self.estimator_, method)(X), dtype=np.float64)
            found = found.reshape(len(found), -1)
            columns = 1 if method == "decision_function" and self.n_classes == 2 else self.n_classes
            if found.shape[1] != columns:
                raise ValueError(
                    f"estimator: {method} of {type(self.estimator_).__name__} gives "
                    f"{found.shape[1]} columns for {self.n_classes} classes; {columns} are needed"
                )
            if method != "decision_function":
                found = _log_odds(np.log(found) if method == "predict_proba" else found)
            # Equal points may differ in the last bits of a sum, but must have equal scores.
            return found.astype(np.float32)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags  # precomputed kernels have two axes
        return tags


def _method(estimator: Any, n_classes: int) -> str:
    """Return the method from which scores are taken."""
    for method in OF_TWO if n_classes == 2 else OF_MORE:
        if hasattr(estimator, method):
            return method
    raise TypeError(
        f"estimator: found {type(estimator).__name__}, which has neither decision_function nor "
        "predict_proba; one of them is needed for a score"
    )


def _log_odds(logs: Floats) -> Floats:
    """Return log p_k − log Σ_{j≠k} p_j from log p; with two classes, only for the second.

    Examples
    --------
    >>> _log_odds(np.log([[0.25, 0.75], [0.5, 0.5]])).round(3).tolist()
    [[1.099], [0.0]]
    """
    first = 1 if logs.shape[1] == 2 else 0
    odds = [
        logs[:, k] - logsumexp(np.delete(logs, k, axis=1), axis=1)
        for k in range(first, logs.shape[1])
    ]
    return np.stack(odds, axis=1)


def _require_numbers(scores: npt.NDArray[np.float32]) -> None:
    """Raise for the first row without a score."""
    missing = np.isnan(scores).any(axis=1)
    if missing.any():
        row = int(np.argmax(missing))
        raise ValueError(f"estimator: found NaN as the score of X row {row}; a number is needed")


# Trials -------------------------------------------------------------------------------------


def _rows(X: Any) -> tuple[Any, int]:
    """Return X in a form whose rows can be selected, and their number."""
    checks.refuse_masked("X", X)
    try:
        (X,) = indexable(X)
        return X, X.shape[0] if hasattr(X, "shape") else len(X)
    except (TypeError, ValueError) as error:
        raise TypeError(f"X: found {checks.spelled(X)}; an array of rows is needed") from error


def _classes(y: Labels) -> Labels:
    """Return the sorted classes of y, two or more."""
    classes = np.unique(y)
    if len(classes) < 2:
        raise ValueError(
            f"y: found {len(classes)} class, {classes.tolist()}; two or more are needed"
        )
    return classes


def _routing() -> bool:
    return bool(get_config()["enable_metadata_routing"])
