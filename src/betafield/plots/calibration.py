"""CalibrationDisplay: what was predicted against what happened."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

import betafield.plots.style as style
from betafield import checks, trials
from betafield.evidence.columns import require_countable
from betafield.observed import MOST_BINS, left_out, share_interval, why_not_left_out
from betafield.survey import class_index

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from betafield.estimators import SmoothBetaClassifier

Floats = npt.NDArray[np.float64]

STRATEGIES = ("quantile", "uniform")
# Bars of the histogram of predictions, and the share of predictions cut off at each end.
BARS, TAIL = 40, 0.005
# The only quantile method in NumPy that supports weights.
WEIGHTED: Literal["inverted_cdf"] = "inverted_cdf"


@dataclass(eq=False, repr=False)
class CalibrationDisplay(style.Drawn):
    """The share of successes among trials with similar predictions, with its interval.

    Trials are binned by their predicted probability. If a model is calibrated, the share of
    successes in a bin equals its mean prediction, the diagonal. Each bin has its own
    Clopper–Pearson interval.

    Parameters
    ----------
    prob_true : array of shape (n_bins,)
        The share of successes in each bin that has trials.
    prob_pred : array of shape (n_bins,)
        The mean prediction.
    low, high : arrays of shape (n_bins,)
        Ends of the interval of the share.
    trials : array of shape (n_bins,)
        The number of trials.
    y_prob, weight : arrays of shape (m,)
        All predictions, and the number of trials for each.
    level : float
        The level of the intervals.
    event : str
        The event that was predicted, as in labels.
    name : str
        The name of the model.

    Attributes
    ----------
    ax_ : Axes, or array of two
        The curve, and the histogram of predictions.
    figure_ : Figure

    Examples
    --------
    >>> import numpy as np
    >>> from betafield import SmoothBetaClassifier
    >>> from betafield.plots import CalibrationDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2_000, 1))
    >>> model = SmoothBetaClassifier(bandwidth=0.1).fit(X, rng.uniform(size=2_000) < X[:, 0])
    >>> display = CalibrationDisplay.from_model(model, n_bins=5)
    >>> bool(np.all((display.low < display.prob_pred) & (display.prob_pred < display.high)))
    True
    >>> display.ax_[0].get_ylabel()
    'share of successes'
    """

    prob_true: Floats
    prob_pred: Floats
    low: Floats
    high: Floats
    trials: Floats
    y_prob: Floats
    weight: Floats
    _: KW_ONLY
    level: float = 0.95
    event: str = "P(success)"
    name: str = "model"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        n_bins: int = 10,
        strategy: str = "quantile",
        level: float = 0.95,
        class_: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Compare the predictions of any fitted classifier at X with the outcomes y.

        X and y should be held-out trials.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier with `predict_proba`.
        X, y
            Trials and their outcomes.
        n_bins : int, default=10
            The largest number of bins; empty bins are left out.
        strategy : {"quantile", "uniform"}, default="quantile"
            Bins with equal numbers of trials, or of equal width.
        level : float, default=0.95
            The level of the intervals.
        class_ : label, default=None
            The class whose probability is compared. None: the success, or else the second.
        name : str, default=None
            The model's name in the legend. None: its class name.
        ax : Axes or two of them, default=None
            Axes to draw on. On a single one, the histogram is left out. None: a new figure.
        """
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(
                f"estimator: found {type(estimator).__name__}; a classifier with predict_proba is "
                "needed"
            )
        check_is_fitted(estimator)
        classes = np.asarray(estimator.classes_)
        if len(classes) > 2 and class_ is None:
            raise ValueError(f"class_: found None; one of the classes {classes.tolist()} is needed")
        is_named = class_ is not None
        index = class_index(classes, class_ if is_named else getattr(estimator, "pos_label_", None))
        predicted = np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, index]
        outcome = trials.labels(y, len(predicted))
        trials.outcomes(outcome, classes)
        return cls.from_predictions(
            outcome == classes[index],
            predicted,
            n_bins=n_bins,
            strategy=strategy,
            level=level,
            event=style.chance_of(classes, index),
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
        )

    @classmethod
    def from_model(
        cls,
        model: SmoothBetaClassifier,
        *,
        n: int = 20_000,
        random_state: int = 0,
        n_bins: int = 10,
        strategy: str = "quantile",
        level: float = 0.95,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Compare a model with its own trials by cross-validation.

        Five models each learn from four fifths of the trials and predict the rest; see
        `betafield.observed.left_out`.

        Parameters
        ----------
        model : SmoothBetaClassifier
            Fitted, with two classes, without contexts.
        n, random_state
            The largest number of places at which trials are predicted; the seed of the folds.
        n_bins, strategy, level, name, ax
            As in `from_estimator`.
        """
        found = left_out(model, n, random_state)
        if found is None:
            raise ValueError(f"model: {why_not_left_out(model)}")
        return cls.from_predictions(
            found.successes,
            found.predicted,
            weight=found.trials,
            n_bins=n_bins,
            strategy=strategy,
            level=level,
            event=style.chance_of(model.field_.classes, 1),
            name=f"{type(model).__name__}, trials left out" if name is None else name,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        successes: Any,
        y_prob: Any,
        *,
        weight: Any = None,
        n_bins: int = 10,
        strategy: str = "quantile",
        level: float = 0.95,
        event: str = "P(success)",
        name: str = "predictions",
        ax: Any = None,
    ) -> Self:
        """Compare predictions with successes: 0 or 1 per trial, or a count out of `weight`."""
        successes, predicted = checks.array("successes", successes), checks.array("y_prob", y_prob)
        trials = np.ones_like(predicted) if weight is None else checks.array("weight", weight)
        n_bins = checks.whole("n_bins", n_bins, high=MOST_BINS)
        level = checks.share("level", level)
        for what, text in (("event", event), ("name", name)):
            checks.instance(what, text, str, "a text is needed")
        checks.one_of("strategy", strategy, STRATEGIES)
        _check(successes, predicted, trials)
        edges = _edges(predicted, None if weight is None else trials, n_bins, strategy)
        bin_of = np.searchsorted(edges[1:-1], predicted)
        counts, wins, sums = (
            np.bincount(bin_of, amounts, n_bins).astype(np.float64)
            for amounts in (trials, successes, trials * predicted)
        )
        some = counts > 0
        counts, wins, sums = counts[some], wins[some], sums[some]
        low, high = share_interval(wins, counts, level)
        display = cls(
            wins / counts,
            sums / counts,
            low,
            high,
            counts,
            predicted,
            trials,
            level=level,
            event=event,
            name=name,
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on these axes, one or two, or on a new figure."""
        grid = {"nrows": 2, "sharex": True, "height_ratios": [4, 1]}
        axes = style.panels(ax, (5.2, 5.8), **grid)
        self._draw_curve(axes[0])
        if len(axes) > 1:
            self._draw_histogram(axes[1])
            axes[0].set_xlabel("")
        self.ax_, self.figure_ = style.kept(axes), axes[0].figure
        return self

    def _draw_curve(self, axes: Axes) -> None:
        most = np.quantile(self.y_prob, [TAIL, 1.0 - TAIL], weights=self.weight, method=WEIGHTED)
        ends = np.concatenate([most, self.low, self.high])
        low, high = np.clip(style.padded(ends.min(), ends.max(), 0.03), -0.02, 1.02)
        axes.axline((0.0, 0.0), slope=1.0, color=style.FAINT, linestyle=":", label="calibrated")
        axes.errorbar(
            self.prob_pred,
            self.prob_true,
            [self.prob_true - self.low, self.high - self.prob_true],
            fmt="o",
            color=style.BLUE,
            markersize=4,
            elinewidth=1.1,
            capsize=2.5,
            label=f"{style.shown(self.name)}, {style.percent(self.level)} interval",
        )
        axes.set(
            xlim=(low, high), ylim=(low, high), xlabel=self._xlabel(), ylabel="share of successes"
        )
        style.legend(axes, ncols=1)
        style.plain(axes)

    def _draw_histogram(self, axes: Axes) -> None:
        low, high = axes.get_xlim()
        edges = np.linspace(max(low, 0.0), min(high, 1.0), BARS + 1)
        axes.hist(self.y_prob, edges.tolist(), weights=self.weight, color="0.6")
        axes.set(xlabel=self._xlabel(), ylabel="trials")
        style.plain(axes, "y")

    def _xlabel(self) -> str:
        return f"{self.event}, predicted"


def _check(successes: Floats, predicted: Floats, trials: Floats) -> None:
    if predicted.ndim != 1 or not predicted.size:
        raise ValueError(f"y_prob: found shape {predicted.shape}; one prediction per row is needed")
    for name, values in {"successes": successes, "weight": trials}.items():
        if values.shape != predicted.shape:
            raise ValueError(
                f"{name}: found shape {values.shape}; y_prob has {predicted.shape}, and they must "
                "be alike"
            )
    good = (predicted >= 0.0) & (predicted <= 1.0)
    checks.require_all(good, "y_prob", predicted, "it must be within [0, 1]")
    good = (trials > 0.0) & np.isfinite(trials)
    checks.require_all(good, "weight", trials, "a positive number is needed")
    require_countable("weight", trials)
    good = (successes >= 0.0) & (successes <= trials)
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(
            f"successes row {row}: found {successes[row]} of {trials[row]} trials; "
            "from 0 to all of them are allowed"
        )


def _edges(predicted: Floats, weight: Floats | None, n_bins: int, strategy: str) -> Floats:
    """Return the edges of bins, as in scikit-learn's `calibration_curve`."""
    steps = np.linspace(0.0, 1.0, n_bins + 1)
    if strategy == "uniform":
        return steps
    if weight is None:
        return np.asarray(np.percentile(predicted, 100.0 * steps))
    return np.asarray(np.quantile(predicted, steps, weights=weight, method=WEIGHTED))
