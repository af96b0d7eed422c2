"""FieldDisplay: the probability over one feature or two, and how sure it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

import betafield.plots.curves as curves
import betafield.plots.maps as maps
import betafield.plots.style as style
from betafield import checks
from betafield.observed import Binned, binned, feature_names, require_model
from betafield.survey import Question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from betafield.answers.threshold import Threshold
    from betafield.estimators import SmoothBetaClassifier

Floats = npt.NDArray[np.float64]


class FieldDisplay:
    """What a fitted model says of π, over one feature or two.

    Over the one feature of a model: the posterior mean, its credible interval, the guaranteed band
    where a Lipschitz constant is given, and the share of successes in bins of the trials.

    Over two features: the map of the mean beside that of its uncertainty, the width of the
    credible interval; or of the guaranteed band, where a Lipschitz constant is given.

    Over one feature of several, without `at`, partial dependence: with w_i the share of the trials
    that were made at the place x_i, and x_i(v) that place with the feature moved to v,

        mean(v) = Σ w_i E π(x_i(v)),

    and the ends of the interval are the same averages of the intervals' ends. That is the credible
    interval of Σ w_i π(x_i(v)) if errors of all places rise and fall together. Posteriors do not
    say how they do; no other way gives the average a larger variance. The band is then the average
    of simultaneous bands, whose guarantee the average keeps.

    Other features are fixed where `at` says, or at their medians.

    Parameters
    ----------
    grid : tuple of one or two arrays
        Where the field was asked, a feature each: (m,), or (n,) and (m,).
    mean, low, high : arrays of shape (m,), (m, K) or (m, n)
        The posterior mean and the ends of the credible interval; K classes, or a map.
    features : tuple of one or two str
        Their names.
    events : tuple of str
        Whose probability each curve is, as labels say it.
    level : float
        Of intervals and bands.
    band : (low, high) or None
        The guaranteed band, arrays like `mean`.
    bins : tuple of Binned
        The trials in bins, for each curve; empty where shares of outcomes do not show π.
    places : array of shape (n, 1) or (n, 2)
        Where there were trials; some of them, if there are more than 2,000.
    at : dict
        The features that were fixed, and where.
    averaged : bool
        Whether this is partial dependence.
    threshold : Threshold or None
        Where the one curve reaches a level: its interval is drawn as a bar.

    Attributes
    ----------
    ax_ : Axes, or array of two
        The curve, or the map of the mean and that of its uncertainty.
    figure_ : Figure

    Examples
    --------
    >>> import numpy as np
    >>> from betafield import SmoothBetaClassifier
    >>> from betafield.plots import FieldDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2_000, 1))
    >>> model = SmoothBetaClassifier(bandwidth=0.1).fit(X, rng.uniform(size=2_000) < X[:, 0])
    >>> display = FieldDisplay.from_estimator(model, lipschitz=1.0)
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('x0', 'P(success)')
    >>> bool(np.all((display.low < display.mean) & (display.mean < display.high)))
    True
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        grid: tuple[Floats, ...],
        mean: Floats,
        low: Floats,
        high: Floats,
        *,
        features: tuple[str, ...] = ("x0",),
        events: tuple[str, ...] = ("P(success)",),
        level: float = 0.95,
        band: tuple[Floats, Floats] | None = None,
        bins: tuple[Binned, ...] = (),
        places: Floats | None = None,
        at: Mapping[str, float] | None = None,
        averaged: bool = False,
        threshold: Threshold | None = None,
    ) -> None:
        self.grid = grid
        self.mean = mean
        self.low = low
        self.high = high
        self.features = features
        self.events = events
        self.level = level
        self.band = band
        self.bins = bins
        self.places = places
        self.at = at
        self.averaged = averaged
        self.threshold = threshold

    @classmethod
    def from_estimator(
        cls,
        model: SmoothBetaClassifier,
        X: Any = None,
        y: Any = None,
        *,
        features: Any = None,
        at: Mapping[Any, float] | None = None,
        level: float = 0.95,
        lipschitz: float | None = None,
        simultaneous: bool = False,
        under: Any = None,
        class_: Any = None,
        grid_resolution: int | None = None,
        n_bins: int = 20,
        show_places: bool = False,
        threshold: Threshold | None = None,
        ax: Any = None,
    ) -> Self:
        """Ask a fitted model all over its domain, and draw what it says.

        No data is needed: the domain is `model.bounds_`, and the trials are those that the model
        has seen. After contexts the field is that of π, the probability without distortion, and
        outcomes, which do not show it, are not drawn.

        Parameters
        ----------
        model : SmoothBetaClassifier
            Fitted.
        X, y : default=None
            Trials to draw in place of those that the model has seen.
        features : str, int, or two of them, default=None
            Over which features. None: the two most relevant of those that vary, or the only one.
        at : dict, default=None
            Where other features are fixed, by name or number; at their medians where it does not
            say. Without it, one feature of several is shown by partial dependence.
        level : float, default=0.95
            Of intervals and bands.
        lipschitz : float, default=None
            L, how fast π may change, in scaled units: draws the band of `model.band`.
        simultaneous : bool, default=False
            Whether the band holds everywhere at once.
        under : context of shape (p + 1,), default=None
            Shows the probability of success under this context in place of π.
        class_ : label, default=None
            The one class to show; None: of two the success, of more all, or in a map the second.
        grid_resolution : int, default=None
            Points a feature. None: 300, in maps 100, of averages 60.
        n_bins : int, default=20
            Bins of the trials, over the one feature of a model.
        show_places : bool, default=False
            Whether to mark where there were trials.
        threshold : Threshold, default=None
            As `model.threshold` returns it for the feature shown: draws its interval as a bar.
        ax : Axes or two of them, default=None
            Where to draw; on one, a map is that of the mean. None: a new figure.
        """
        require_model(model)
        level = checks.share("level", level)
        lipschitz = None if lipschitz is None else checks.positive("lipschitz", lipschitz)
        checks.flag("simultaneous", simultaneous)
        checks.flag("show_places", show_places)
        asked = Question(model, X, y, features, at, under, class_, grid_resolution)
        mean, low, high = asked.believed(level)
        bins: tuple[Binned, ...] = ()
        if asked.shows_outcomes:
            bins = tuple(
                binned(asked.seen, 0, n_bins, level=level, class_index=k) for k in asked.classes
            )
        display = cls(
            asked.grid,
            mean,
            low,
            high,
            features=asked.names,
            events=_events(asked),
            level=level,
            band=None if lipschitz is None else asked.banded(lipschitz, level, simultaneous),
            bins=bins,
            places=style.some(asked.places),
            at=asked.at,
            averaged=asked.averaged,
            threshold=_fitting(threshold, asked),
        )
        drawn = display.plot(ax=ax, show_places=show_places)
        _in_proportion(drawn, model)
        return drawn

    def plot(self, ax: Any = None, *, show_places: bool = False) -> Self:
        """Draw on these axes, one or two, or on a new figure."""
        if len(self.grid) == 1:
            axes = style.panels(ax, (6.4, 4.2))
            curves.draw(axes[0], self, show_places)
        else:
            axes = style.panels(ax, (10.4, 4.2), ncols=2, sharex=True, sharey=True)
            maps.draw(axes, self, show_places)
        self.ax_, self.figure_ = style.kept(axes), axes[0].figure
        return self


def _in_proportion(drawn: FieldDisplay, model: SmoothBetaClassifier) -> None:
    """Draw a degree of longitude as long as it is in the middle of a map."""
    earth = model.field_.wraps.earth
    names = feature_names(model)
    if earth is None or set(drawn.features) != {names[a] for a in earth}:
        return
    is_turned = drawn.features[0] == names[earth[1]]
    middle = np.cos(np.radians(drawn.grid[0 if is_turned else 1][[0, -1]].mean()))
    for axes in np.atleast_1d(np.asarray(drawn.ax_, dtype=object)):
        axes.set_aspect(max(middle, 0.1) if is_turned else 1.0 / max(middle, 0.1))


def _fitting(threshold: Threshold | None, asked: Question) -> Threshold | None:
    """Return a threshold, if it is one along the feature that is shown."""
    from betafield.answers.threshold import Threshold as Reached

    if threshold is not None:
        rule = "a Threshold is needed, as model.threshold returns it"
        along = checks.instance("threshold", threshold, Reached, rule).asked.feature
        told = f"the curve is along {', '.join(asked.names)}"
        checks.require((along,) == asked.names, "threshold", along, told)
    return threshold


def _events(asked: Question) -> tuple[str, ...]:
    """Return whose probabilities are shown, as labels say it."""
    names = [style.chance_of(asked.model.field_.classes, k) for k in asked.classes]
    if asked.is_moved:
        return tuple(f"{name} under the context" for name in names)
    if asked.is_distorted:
        return tuple(f"{name}, undistorted" for name in names)
    return tuple(names)
