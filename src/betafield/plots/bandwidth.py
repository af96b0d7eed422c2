"""BandwidthDisplay: how well windows of each width predict, and what each weighs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

import betafield.plots.style as style
from betafield.observed import feature_names, require_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from betafield.estimators import SmoothBetaClassifier

Floats = npt.NDArray[np.float64]
Records = npt.NDArray[Any]

# Scores this much below the best still matter; beyond, the axis is logarithmic.
NEAR = 10.0


class BandwidthDisplay:
    """The score of windows by their width, a line a degree, and the weights of those in use.

    A score is that of leaving trials out, less what parameters cost: see `betafield.weighing`. It
    is the logarithm of a probability, and is shown as the distance from the best one.

    Parameters
    ----------
    candidates : structured array
        Windows around those in use, with the relevance of the heaviest: `relevance`, `width`,
        `degree`, `score`, `effective_parameters` as in `model.weights_`; `weight` is 0. Empty if
        nothing was weighed.
    weights : structured array
        Those in use, `model.weights_`.
    price : float
        What a parameter costs.
    unit : float
        The length of a scaled unit, in `unit_name`.
    unit_name : str
        Of what widths are drawn in.
    asked : str
        The bandwidth that the model was asked for.

    Attributes
    ----------
    ax_ : Axes, or array of two
        Scores and weights.
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
    >>> best = display.candidates["width"][np.argmax(display.value)]
    >>> bool(best == model.bandwidth_)
    True
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        candidates: Records,
        weights: Records,
        *,
        price: float = 0.0,
        unit: float = 1.0,
        unit_name: str = "scaled units",
        asked: str = "auto",
    ) -> None:
        self.candidates = candidates
        self.weights = weights
        self.price = price
        self.unit = unit
        self.unit_name = unit_name
        self.asked = asked

    @property
    def value(self) -> Floats:
        """The scores of the candidates, parameters paid for."""
        return np.asarray(
            self.candidates["score"] - self.price * self.candidates["effective_parameters"],
            dtype=np.float64,
        )

    @classmethod
    def from_estimator(cls, model: SmoothBetaClassifier, *, ax: Any = None) -> Self:
        """Weigh all widths once more, with the trials that the model knows now, and draw.

        Parameters
        ----------
        model : SmoothBetaClassifier
            Fitted. Where its bandwidth is a number, or by theory, there is that one to show.
        ax : Axes or two of them, default=None
            Where to draw; on one, weights are left out. None: a new figure.
        """
        require_model(model)
        alone = model.n_features_in_ == 1 and np.isfinite(model.scale_[0])
        candidates, price = model.weights_[:0], 0.0
        if model.field_.choice.learns:
            from betafield.choosing.around import around

            candidates, price = around(model.field_.weighing(), model.weights_)
        display = cls(
            candidates,
            model.weights_,
            price=price,
            unit=float(model.scale_[0]) if alone else 1.0,
            unit_name=feature_names(model)[0] if alone else "scaled units",
            asked=str(model.bandwidth),
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on these axes, one or two, or on a new figure."""
        axes = style.panels(ax, (6.4, 5.2), nrows=2, sharex=True, height_ratios=[2, 1])
        if len(self.candidates):
            self._draw_scores(axes[0])
        else:
            self._draw_given(axes[0])
        if len(axes) > 1:
            self._draw_weights(axes[1])
        _tick_widths(axes[-1])
        axes[-1].set_xlabel(f"width of the windows ({style.shown(self.unit_name)})")
        self.ax_, self.figure_ = style.kept(axes), axes[0].figure
        return self

    def _draw_scores(self, axes: Axes) -> None:
        behind = self.value - self.value.max()
        for degree in np.unique(self.candidates["degree"]).tolist():
            mine = self.candidates["degree"] == degree
            axes.plot(
                self.candidates["width"][mine] * self.unit,
                behind[mine],
                marker=style.MARKERS[degree],
                markersize=3.5,
                linewidth=1.2,
                color=style.LINES[degree],
                label=f"degree {degree}",
            )
        heaviest = self._heaviest()
        axes.plot(
            self.candidates["width"][heaviest] * self.unit,
            behind[heaviest],
            "o",
            markersize=11,
            fillstyle="none",
            color=style.BLACK,
            clip_on=False,
            label="heaviest in use",
        )
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=NEAR)
        axes.set_ylim(top=0.1 * NEAR)
        axes.set_ylabel("score below the best")
        axes.yaxis.set_major_formatter("{x:g}")
        style.legend(axes, ncols=3)
        style.plain(axes)

    def _heaviest(self) -> int:
        """Return which of the candidates is, or is nearest to, the heaviest in use."""
        heaviest = self.weights[0]
        apart = np.abs(np.log(self.candidates["width"] / heaviest["width"]))
        return int(
            np.argmin(np.where(self.candidates["degree"] == heaviest["degree"], apart, 99.0))
        )

    def _draw_given(self, axes: Axes) -> None:
        """Say that there was one width, and nothing to weigh it against."""
        width = float(self.weights["width"][0]) * self.unit
        axes.axvline(width, color=style.LINES[int(self.weights["degree"][0])])
        axes.set_xscale("log")
        axes.set_xlim(width / 10, width * 10)
        axes.set_yticks([])
        style.titled(axes, f"bandwidth={self.asked}: {width:.4g}, nothing was weighed")
        style.plain(axes, "x")

    def _draw_weights(self, axes: Axes) -> None:
        same = (self.weights["relevance"] == self.weights["relevance"][0]).all(axis=1)
        for record, is_same in zip(self.weights, same, strict=True):
            axes.plot(
                [record["width"] * self.unit] * 2,
                [0.0, record["weight"]],
                linestyle="-" if is_same else (0, (1, 1)),
                linewidth=2.0,
                color=style.LINES[record["degree"]],
                marker=style.MARKERS[record["degree"]],
                markevery=[1],
                markersize=4.5,
            )
        if not same.all():
            style.titled(axes, "dotted: other relevances of the features")
        axes.set_ylim(0.0, 1.08 * float(self.weights["weight"].max()))
        axes.set_ylabel("weight")
        style.plain(axes)


def _tick_widths(axes: Axes) -> None:
    """Write widths as people do, and not as powers of ten."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:g}")
