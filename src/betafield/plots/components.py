"""ComponentsDisplay: the components of answers, with their reaches and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

import betafield.plots.style as style
from betafield.components import Group, groups, is_listed
from betafield.observed import feature_names, require_model

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from betafield.estimators import SmoothBetaClassifier

Floats = npt.NDArray[np.float64]

# Range of the axis, as fractions of the domain; reaches beyond it are drawn at its ends.
LEAST, MOST = 1e-3, 10.0
# Features beyond so many are left out.
FEATURES = 12


@dataclass(eq=False, repr=False)
class ComponentsDisplay(style.Drawn):
    """How far trials reach along each feature, and the weights of the components.

    For the default model these are the length scales of the process, which say how far trials
    reach; processes with effects of levels, if the values of a feature differ more than a smooth
    function allows; and windows of residuals, by the features that they use. For windows alone: how
    far they reach.

    Parameters
    ----------
    groups : list of Group
        See `betafield.components`; heaviest first.
    sides : array of shape (d,)
        Side lengths of the domain.
    names : tuple of str
        The names of the features.

    Attributes
    ----------
    ax_ : Axes, or array of two
        Reaches and weights.
    figure_ : Figure

    Examples
    --------
    >>> import numpy as np
    >>> from betafield import SmoothBetaClassifier
    >>> from betafield.plots import ComponentsDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(500, 1))
    >>> model = SmoothBetaClassifier().fit(X, rng.uniform(size=500) < X[:, 0])
    >>> display = ComponentsDisplay.from_estimator(model)
    >>> display.groups[0].part
    'process'
    >>> bool(np.all(display.groups[0].least == model.length_scales_))
    True
    """

    groups: list[Group]
    sides: Floats
    names: tuple[str, ...]

    @classmethod
    def from_estimator(cls, model: SmoothBetaClassifier, *, ax: Any = None) -> Self:
        """Draw the components of a fitted model.

        Parameters
        ----------
        model : SmoothBetaClassifier
            A fitted model.
        ax : Axes or two of them, default=None
            Axes to draw on. On a single one, weights are left out. None: a new figure.
        """
        require_model(model)
        sides = np.ptp(model.bounds_, axis=1)
        return cls(groups(model.field_), sides, feature_names(model)).plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on these axes, one or two, or on a new figure."""
        shown = [group for group in self.groups if is_listed(group)]
        features = [k for k in range(len(self.sides)) if self.sides[k] > 0.0][:FEATURES]
        heights = [max(len(features), 2), max(len(shown), 2)]
        size = (6.4, 1.6 + 0.45 * sum(heights))
        axes = style.panels(ax, size, nrows=2, height_ratios=heights)
        self._draw_reaches(axes[0], shown, features)
        if len(axes) > 1:
            self._draw_weights(axes[1], shown)
        self.ax_, self.figure_ = style.kept(axes), axes[0].figure
        return self

    def _draw_reaches(self, axes: Axes, shown: list[Group], features: list[int]) -> None:
        """Draw how far each group reaches along each feature, as a fraction of the domain."""
        apart = 0.5 / max(len(shown), 1)
        for i, group in enumerate(shown):
            rows = [k for k in features if k in group.features]
            height = [features.index(k) + apart * (i - 0.5 * (len(shown) - 1)) for k in rows]
            low, high = (
                np.clip(reach[rows] / self.sides[rows], LEAST, MOST)
                for reach in (group.least, group.most)
            )
            axes.hlines(height, low, high, color=style.LINES[i % len(style.LINES)], linewidth=1.6)
            self._mark(axes, i, low, height, style.shown(group.named(self.names)))
            self._mark(axes, i, high, height, None)
        axes.set_xscale("log")
        axes.set_xlim(0.8 * LEAST, 1.25 * MOST)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.axvline(1.0, color=style.FAINT, linestyle=":", linewidth=0.8)
        axes.set_yticks(range(len(features)), [style.shown(self.names[k]) for k in features])
        axes.set_ylim(max(len(features), 1) - 0.5, -0.5)
        axes.set_xlabel("reach, as a share of the domain")
        style.legend(axes, ncols=2)
        style.plain(axes, "x")

    def _mark(self, axes: Axes, i: int, x: Floats, y: list[float], name: str | None) -> None:
        axes.plot(
            x,
            y,
            linestyle="none",
            marker=style.MARKERS[i % len(style.MARKERS)],
            markersize=5,
            color=style.LINES[i % len(style.LINES)],
            label=name,
        )

    def _draw_weights(self, axes: Axes, shown: list[Group]) -> None:
        rows = range(len(shown))
        colours = [style.LINES[i % len(style.LINES)] for i in rows]
        axes.barh(rows, [group.weight for group in shown], height=0.6, color=colours)
        axes.set_yticks(rows, [style.shown(group.named(self.names)) for group in shown])
        axes.set_ylim(max(len(shown), 1) - 0.5, -0.5)
        axes.set(xlim=(0.0, 1.0), xlabel="weight")
        style.plain(axes, "x")
