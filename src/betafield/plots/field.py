"""FieldDisplay: the probability over one feature or two, and its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

import betafield.plots.curves as curves
import betafield.plots.levels as levels
import betafield.plots.maps as maps
import betafield.plots.style as style
from betafield import checks
from betafield.observed import Binned, binned, feature_names, require_model
from betafield.refusals import refused
from betafield.survey import Question

if TYPE_CHECKING:
    from betafield.answers.threshold import Threshold
    from betafield.estimators import SmoothBetaClassifier
    from betafield.plots.levels import Levels

AT = "a mapping of features to values is needed"
Floats = npt.NDArray[np.float64]


@dataclass(eq=False, repr=False)
class FieldDisplay(style.Drawn):
    """The probability π of a fitted model, over one feature or two.

    For a model with one feature: the posterior mean, its credible interval, the guaranteed band if
    a Lipschitz constant is given, and the share of successes in bins of the trials.

    For two features: a map of the mean next to a map of its uncertainty, which is the width of the
    credible interval, or of the guaranteed band if a Lipschitz constant is given.

    For one feature of several, without `at`: partial dependence. With w_i the share of the trials
    at the place x_i, and x_i(v) that place with the feature moved to v,

        mean(v) = Σ w_i E π(x_i(v)),

    and the ends of the interval are the same averages of the ends of the intervals. This is the
    credible interval of Σ w_i π(x_i(v)) if the errors at all places rise and fall together, which
    gives the average its largest possible variance. The band is then the average of simultaneous
    bands, which keeps their guarantee.

    Other features are fixed at the values in `at`, or at their medians.

    Parameters
    ----------
    grid : tuple of one or two arrays
        The points, one array per feature: (m,), or (n,) and (m,).
    mean, low, high : arrays of shape (m,), (m, K), (m, n) or (m, n, K)
        The posterior mean and the ends of the credible interval; K classes or levels, or a map, or
        one per level.
    features : tuple of one or two str
        Their names.
    events : tuple of str
        The event of each curve, as in labels.
    level : float
        The level of intervals and bands.
    band : (low, high) or None
        The guaranteed band, arrays like `mean`.
    bins : tuple of Binned
        The trials in bins, for each curve; empty if shares of outcomes do not estimate π.
    places : array of shape (n, 1) or (n, 2)
        The places of the trials; a sample of them, if there are more than 2,000.
    at : dict
        The features that were fixed, and their values.
    averaged : bool
        Whether this is partial dependence.
    threshold : Threshold or None
        Where the curve reaches a level; its interval is drawn as a bar.
    by : str or None
        The category with one curve or map per level; the levels are in `events`.

    Attributes
    ----------
    ax_ : Axes, or array of them
        The curve; or the maps of the mean and of its uncertainty; or one map per level.
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

    grid: tuple[Floats, ...]
    mean: Floats
    low: Floats
    high: Floats
    _: KW_ONLY
    features: tuple[str, ...] = ("x0",)
    events: tuple[str, ...] = ("P(success)",)
    level: float = 0.95
    band: tuple[Floats, Floats] | None = None
    bins: tuple[Binned, ...] = ()
    places: Floats | None = None
    at: Mapping[str, float] | None = None
    averaged: bool = False
    threshold: Threshold | None = None
    by: str | None = None

    @classmethod
    def from_estimator(
        cls,
        model: SmoothBetaClassifier,
        X: Any = None,
        y: Any = None,
        *,
        features: Any = None,
        at: Mapping[Any, Any] | None = None,
        by: Any = None,
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
        """Evaluate a fitted model over its domain, and draw the result.

        No data are needed: the domain is `model.bounds_`, and the trials are those that the model
        has seen. If they had contexts, the field shows π without distortion, and outcomes are not
        drawn, because they do not estimate it.

        Parameters
        ----------
        model : SmoothBetaClassifier
            A fitted model.
        X, y : default=None
            Trials to draw instead of those that the model has seen.
        features : str, int, or two of them, default=None
            The features to show. None: the two most relevant of those that vary, or the only one.
        at : dict, default=None
            Values at which other features are fixed, by name or number; those that it does not name
            are fixed at their medians. Without it, one feature of several is shown by partial
            dependence.
        by : str or int, default=None
            A category. Each of its five levels with most trials gets a curve with its interval,
            along one feature, or a map of the mean over two `features`, with shared colours. Other
            features are fixed at `at` or at their medians. There is no band, and one class only.
        level : float, default=0.95
            The level of intervals and bands.
        lipschitz : float, default=None
            L, how fast π may change, in scaled units. If it is given, `model.band` is drawn.
        simultaneous : bool, default=False
            Whether the band holds everywhere at once.
        under : context of shape (p + 1,), default=None
            Show the probability of success under this context instead of π.
        class_ : label, default=None
            The class to show. None: the success if there are two classes; otherwise all of them, or
            the second one in a map.
        grid_resolution : int, default=None
            Points per feature. None: 300 for curves, 100 for maps, 60 for averages.
        n_bins : int, default=20
            Bins of the trials, over the one feature of a model.
        show_places : bool, default=False
            Whether to mark the places of the trials.
        threshold : Threshold, default=None
            A result of `model.threshold` for the feature shown; its interval is drawn as a bar.
        ax : Axes or two of them, default=None
            Axes to draw on. On a single one, only the map of the mean. None: a new figure.
        """
        require_model(model)
        level = checks.share("level", level)
        lipschitz = None if lipschitz is None else checks.positive("lipschitz", lipschitz)
        checks.flag("simultaneous", simultaneous)
        checks.flag("show_places", show_places)
        if by is not None:
            _require_one(model, lipschitz, threshold, class_)
            rest, chosen = (under, class_, grid_resolution), levels.largest(model, by)
            shown = cls._per_level(model, chosen, X, y, features, at, rest, level)
            shown.plot(ax=ax, show_places=show_places)
            _in_proportion(shown, model)
            return shown
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
            at=asked.told,
            averaged=asked.averaged,
            threshold=_fitting(threshold, asked),
        )
        drawn = display.plot(ax=ax, show_places=show_places)
        _in_proportion(drawn, model)
        return drawn

    @classmethod
    def _per_level(
        cls,
        model: SmoothBetaClassifier,
        chosen: Levels,
        X: Any,
        y: Any,
        features: Any,
        at: Any,
        rest: tuple[Any, ...],
        level: float,
    ) -> Self:
        """Return the display with a curve or a map per level."""
        given = {} if at is None else dict(checks.instance("at", at, Mapping, AT))
        if chosen.name in given or chosen.column in given:
            raise refused("at", f"found {chosen.name!r}, whose levels are all shown")
        along = levels.axis(model, features)
        each = [
            Question(model, X, y, along, {**given, chosen.column: label}, *rest)
            for label in chosen.labels
        ]
        mean, low, high = (
            np.stack(values, axis=-1)
            for values in zip(*(one.believed(level) for one in each), strict=True)
        )
        fixed = {name: value for name, value in each[0].told.items() if name != chosen.name}
        return cls(
            each[0].grid,
            mean,
            low,
            high,
            features=each[0].names,
            events=tuple(map(style.shown, chosen.shown)),
            level=level,
            places=style.some(each[0].places),
            at=fixed,
            by=f"{_events(each[0])[0]} by {chosen.told}",
        )

    def plot(self, ax: Any = None, *, show_places: bool = False) -> Self:
        """Draw on these axes, one or two, or on a new figure."""
        if len(self.grid) == 1:
            axes = style.panels(ax, (6.4, 4.2))
            curves.draw(axes[0], self, show_places)
        elif self.by is not None:
            count = len(self.events)
            axes = style.panels(ax, (1.6 + 3.2 * count, 3.6), ncols=count, sharex=True, sharey=True)
            maps.draw_levels(axes, self, show_places)
        else:
            axes = style.panels(ax, (10.4, 4.2), ncols=2, sharex=True, sharey=True)
            maps.draw(axes, self, show_places)
        self.ax_, self.figure_ = style.kept(axes), axes[0].figure
        return self


def _require_one(model: SmoothBetaClassifier, lipschitz: Any, threshold: Any, class_: Any) -> None:
    """Raise for options that cannot be combined with one curve per level."""
    for name, found in (("lipschitz", lipschitz), ("threshold", threshold)):
        if found is not None:
            raise refused(name, f"found {found!r} with by; draw one level by at={{…}}")
    if len(model.classes_) > 2 and class_ is None:
        raise refused(
            "class_", "found None together with by and three or more classes; name one class"
        )


def _in_proportion(drawn: FieldDisplay, model: SmoothBetaClassifier) -> None:
    """Set the aspect ratio of a map to that of degrees at its middle latitude."""
    earth = model.field_.wraps.earth
    names = feature_names(model)
    if earth is None or set(drawn.features) != {names[a] for a in earth}:
        return
    is_turned = drawn.features[0] == names[earth[1]]
    middle = np.cos(np.radians(drawn.grid[0 if is_turned else 1][[0, -1]].mean()))
    for axes in np.atleast_1d(np.asarray(drawn.ax_, dtype=object)):
        axes.set_aspect(max(middle, 0.1) if is_turned else 1.0 / max(middle, 0.1))


def _fitting(threshold: Threshold | None, asked: Question) -> Threshold | None:
    """Return the threshold if it is along the feature shown; raise if it is not."""
    from betafield.answers.threshold import Threshold as Reached

    if threshold is not None:
        rule = "a Threshold is needed, as model.threshold returns it"
        along = checks.instance("threshold", threshold, Reached, rule).asked.feature
        told = f"the curve is along {', '.join(asked.names)}"
        checks.require((along,) == asked.names, "threshold", along, told)
    return threshold


def _events(asked: Question) -> tuple[str, ...]:
    """Return the events whose probabilities are shown, as in labels."""
    names = [style.chance_of(asked.model.field_.classes, k) for k in asked.classes]
    if asked.is_moved:
        return tuple(f"{name} under the context" for name in names)
    if asked.is_distorted:
        return tuple(f"{name}, undistorted" for name in names)
    return tuple(names)
