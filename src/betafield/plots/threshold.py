"""ThresholdDisplay: where a probability reaches a level, with its curve."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

import betafield.plots.style as style
from betafield import checks
from betafield.observed import require_model
from betafield.survey import Question

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from betafield.answers.threshold import Threshold
    from betafield.estimators import SmoothBetaClassifier

Floats = npt.NDArray[np.float64]

# Bins of the histogram of draws.
BINS = 40


@dataclass(eq=False, repr=False)
class ThresholdDisplay(style.Drawn):
    """A threshold: the curve, the level, the interval within which it is reached, and draws of it.

    Parameters
    ----------
    grid : array of shape (m,)
        The points of the curve.
    mean, low, high : arrays of shape (m,)
        The posterior mean of the probability, and the ends of its credible interval.
    threshold : Threshold
        Where it reaches the level.
    event : str, default="P(success)"
        The event, as in labels.
    level : float, default=0.95
        The level of intervals.

    Attributes
    ----------
    ax_ : array of two Axes
        The curve, and below it the draws of the threshold.
    figure_ : Figure

    Examples
    --------
    >>> import numpy as np
    >>> from betafield import SmoothBetaClassifier
    >>> from betafield.plots import ThresholdDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(400, 1))
    >>> model = SmoothBetaClassifier().fit(X, rng.uniform(size=400) < X[:, 0])
    >>> display = ThresholdDisplay.from_estimator(model, 0.5, random_state=0)
    >>> display.ax_[1].get_xlabel()
    'x0'
    >>> low, high = display.threshold.interval(0.95)
    >>> low < 0.5 < high
    True
    """

    grid: Floats
    mean: Floats
    low: Floats
    high: Floats
    threshold: Threshold
    _: KW_ONLY
    event: str = "P(success)"
    level: float = 0.95

    @classmethod
    def from_estimator(
        cls,
        model: SmoothBetaClassifier,
        p: float,
        feature: Any = None,
        *,
        at: Any = None,
        under: Any = None,
        anchored: bool = False,
        level: float = 0.95,
        size: int = 2000,
        random_state: Any = None,
        ax: Any = None,
    ) -> Self:
        """Find where the probability of a fitted model reaches p, and draw it.

        Parameters
        ----------
        model : SmoothBetaClassifier
            A fitted model.
        p : float
            The probability to reach: the `level` of `model.threshold`.
        feature, at, under, anchored, size, random_state
            As in `model.threshold`.
        level : float, default=0.95
            The level of intervals.
        ax : two Axes, default=None
            Axes to draw on. On a single one, only the curve. None: a new figure.
        """
        require_model(model)
        level = checks.share("level", level)
        found = model.threshold(
            p, feature, at, under, anchored, size=size, random_state=random_state
        )
        fixed = found.asked.at or None
        asked = Question(model, features=found.asked.feature, fixed=fixed, under=under)
        mean, low, high = asked.believed(level)
        event = style.chance_of(model.classes_, asked.classes[0]) + (
            " under the context" if asked.is_moved else ""
        )
        display = cls(asked.grid[0], mean, low, high, found, event=event, level=level)
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on these axes, one or two, or on a new figure."""
        grid: dict[str, Any] = {"nrows": 2, "sharex": True, "height_ratios": (3, 1)}
        axes = style.panels(ax, (6.4, 5.2), **grid)
        self._draw_curve(axes[0])
        if len(axes) > 1:
            self._draw_draws(axes[1])
        axes[-1].set_xlabel(style.shown(self.threshold.asked.feature) + self._fixed())
        self.ax_, self.figure_ = style.kept(axes), axes[0].figure
        return self

    def _fixed(self) -> str:
        return style.fixed_at(dict(self.threshold.asked.at))

    def _draw_curve(self, axes: Axes) -> None:
        name = f"{style.percent(self.level)} credible interval"
        axes.plot(self.grid, self.mean, color=style.BLUE, linewidth=1.8, label="posterior mean")
        axes.fill_between(
            self.grid, self.low, self.high, color=style.BLUE, alpha=0.22, linewidth=0, label=name
        )
        bar(axes, self.threshold, self.level)
        axes.set_ylim(-0.02, 1.02)
        axes.set_xlim(*style.padded(float(self.grid[0]), float(self.grid[-1])))
        axes.set_ylabel(self.event)
        style.legend(axes)
        style.plain(axes)

    def _draw_draws(self, axes: Axes) -> None:
        ends = self.threshold.asked.domain
        heights, edges = np.histogram(self.threshold.draws, BINS, ends)
        shares = heights / len(self.threshold.draws)
        axes.stairs(shares, edges, color=style.VERMILLION, fill=True, alpha=0.6)
        axes.set_ylabel("share of draws")
        style.plain(axes)


def bar(axes: Axes, threshold: Threshold, level: float) -> None:
    """Draw the interval of a threshold as a bar at its level, and its median as a dot."""
    low, high = threshold.interval(level)
    name = f"{style.percent(level)} interval of the threshold"
    axes.plot([low, high], [threshold.level] * 2, color=style.VERMILLION, linewidth=3.0, label=name)
    axes.plot([threshold.median()], [threshold.level], "o", color=style.VERMILLION, markersize=6)
