"""BandwidthDisplay: how well windows of each width predict held-out trials."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

import betafield.plots.style as style
from betafield.field import Field
from betafield.observed import feature_names, require_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from betafield.estimators import SmoothBetaClassifier

Floats = npt.NDArray[np.float64]

# Score differences up to this size get a linear axis; larger ones are on a logarithmic scale.
NEAR = 10.0
# Below this ratio of the widest to the narrowest width, ticks at 2 and 5 are added.
CLOSE = 300.0


@dataclass(eq=False, repr=False)
class BandwidthDisplay(style.Drawn):
    """The leave-one-out score of windows by their width, and the width in use.

    The score is Σ log P(outcome of a trial | the other trials of its window), shown as the
    difference from the best one. It is for models with windows, that is with a given `bandwidth` or
    `method="windows"`; `ComponentsDisplay` works for any model.

    Parameters
    ----------
    widths, scores : arrays of shape (n,)
        Widths in scaled units, increasing, and their scores. Empty if the width was not learned.
    width : float
        The width in use, `model.bandwidth_`.
    unit : float
        The length of a scaled unit, in `unit_name`.
    unit_name : str
        The unit in which widths are drawn.
    asked : str
        The `bandwidth` parameter of the model.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure

    Examples
    --------
    >>> import numpy as np
    >>> from betafield import SmoothBetaClassifier
    >>> from betafield.plots import BandwidthDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(1_000, 1))
    >>> model = SmoothBetaClassifier("loo").fit(X, rng.uniform(size=1_000) < X[:, 0])
    >>> display = BandwidthDisplay.from_estimator(model)
    >>> bool(display.widths[np.argmax(display.scores)] == model.bandwidth_)
    True
    """

    widths: Floats
    scores: Floats
    _: KW_ONLY
    width: float
    unit: float = 1.0
    unit_name: str = "scaled units"
    asked: str = "loo"

    @classmethod
    def from_estimator(cls, model: SmoothBetaClassifier, *, ax: Any = None) -> Self:
        """Score all widths with the trials of a fitted model, and draw the scores.

        Parameters
        ----------
        model : SmoothBetaClassifier
            A fitted model with windows. If its bandwidth is a number or "theory", only that width
            is shown.
        ax : Axes, default=None
            Axes to draw on. None: a new figure.
        """
        require_model(model)
        field = model.field_
        if not isinstance(field, Field):
            raise ValueError(
                f"model: method={field.options.method!r} has no width to choose; ComponentsDisplay "
                "shows its length scales and weights, or fit with bandwidth='loo'"
            )
        alone = field.features.number == 1 and bool(np.isfinite(field.units.unit[0]))
        widths, scores, _ = field.scored if field.is_learned else (np.empty(0), np.empty(0), 0.0)
        display = cls(
            widths,
            scores,
            width=field.width,
            unit=float(field.units.unit[0]) if alone else 1.0,
            unit_name=feature_names(model)[0] if alone else "scaled units",
            asked=str(model.bandwidth),
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on these axes, or on a new figure."""
        (axes,) = style.panels(ax, (6.4, 4.2))
        if len(self.widths):
            self._draw_scores(axes)
        else:
            self._draw_given(axes)
        _tick_widths(axes)
        axes.set_xlabel(f"width of the windows ({style.shown(self.unit_name)})")
        self.ax_, self.figure_ = axes, axes.figure
        return self

    def _draw_scores(self, axes: Axes) -> None:
        behind = self.scores - self.scores.max()
        look: dict[str, Any] = {"marker": "o", "markersize": 3.5, "linewidth": 1.2}
        axes.plot(
            self.widths * self.unit, behind, color=style.BLUE, label="trials left out", **look
        )
        axes.plot(
            self.width * self.unit,
            behind[np.argmin(np.abs(self.widths - self.width))],
            "o",
            markersize=11,
            fillstyle="none",
            color=style.BLACK,
            clip_on=False,
            label="in use",
        )
        axes.set_yscale("symlog", linthresh=NEAR)
        axes.set_ylim(top=0.1 * NEAR)
        axes.set_ylabel("score below the best")
        axes.yaxis.set_major_formatter("{x:g}")
        style.legend(axes)
        style.plain(axes)

    def _draw_given(self, axes: Axes) -> None:
        """Show the only width, which has nothing to be compared with."""
        width = self.width * self.unit
        axes.axvline(width, color=style.BLUE)
        axes.set_xscale("log")
        axes.set_xlim(width / 10, width * 10)
        axes.set_yticks([])
        style.titled(axes, f"bandwidth={self.asked}: {width:.4g}, no others were scored")
        style.plain(axes, "x")


def _tick_widths(axes: Axes) -> None:
    """Label widths with plain numbers instead of powers of ten."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < CLOSE * low else (1.0,)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")
