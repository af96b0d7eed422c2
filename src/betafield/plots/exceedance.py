"""ExceedanceDisplay: how likely the probability is above a level, over one feature or two."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

import betafield.plots.maps as maps
import betafield.plots.style as style
from betafield import checks
from betafield.observed import require_model
from betafield.survey import Question

if TYPE_CHECKING:
    from collections.abc import Mapping

    from betafield.estimators import SmoothBetaClassifier

Floats = npt.NDArray[np.float64]

# Between these chances it remains open whether π is above the level.
UNSURE = (0.05, 0.95)


@dataclass(eq=False, repr=False)
class ExceedanceDisplay(style.Drawn):
    """The chance P(π > p) that a probability is above p, over one feature or two.

    Above 0.95 the level is almost certainly exceeded, below 0.05 almost certainly not; lines at
    both values separate what is known from what is open. For one feature of several, without `at`,
    it is the chance that the average over the places of the trials is above p.

    Parameters
    ----------
    grid : tuple of one or two arrays
        The points, one array per feature: (m,), or (n,) and (m,).
    chance : array of shape (m,) or (m, n)
        P(π > p).
    above : float
        p.
    features : tuple of one or two str
        Their names.
    event : str
        The event, as in labels.
    places : array of shape (n, 1) or (n, 2)
        The places of the trials; a sample of them, if there are more than 2,000.
    at : dict
        The features that were fixed, and their values.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure

    Examples
    --------
    >>> import numpy as np
    >>> from betafield import SmoothBetaClassifier
    >>> from betafield.plots import ExceedanceDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2_000, 1))
    >>> model = SmoothBetaClassifier().fit(X, rng.uniform(size=2_000) < X[:, 0])
    >>> display = ExceedanceDisplay.from_estimator(model, above=0.5)
    >>> display.ax_.get_ylabel()
    'chance that P(success) > 0.5'
    >>> bool(display.chance[0] < 0.01 and display.chance[-1] > 0.99)
    True
    """

    grid: tuple[Floats, ...]
    chance: Floats
    above: float
    _: KW_ONLY
    features: tuple[str, ...] = ("x0",)
    event: str = "P(success)"
    places: Floats | None = None
    at: Mapping[str, float] | None = None

    @classmethod
    def from_estimator(
        cls,
        model: SmoothBetaClassifier,
        above: float,
        *,
        features: Any = None,
        at: Mapping[Any, float] | None = None,
        under: Any = None,
        class_: Any = None,
        grid_resolution: int | None = None,
        show_places: bool = False,
        ax: Any = None,
    ) -> Self:
        """Evaluate a fitted model over its domain, and draw how likely π is above a level.

        Parameters
        ----------
        model : SmoothBetaClassifier
            A fitted model.
        above : float
            The level p, from 0 to 1.
        features, at, under, grid_resolution, show_places
            As in `FieldDisplay.from_estimator`.
        class_ : label, default=None
            The class to show. None: the success, or the second of three or more classes.
        ax : Axes, default=None
            Axes to draw on. None: a new figure.
        """
        require_model(model)
        above = checks.probability("above", above)
        checks.flag("show_places", show_places)
        classes = model.field_.classes
        label = classes[1] if class_ is None and len(classes) > 2 else class_
        asked = Question(model, None, None, features, at, under, label, grid_resolution)
        display = cls(
            asked.grid,
            asked.exceeding(above),
            above,
            features=asked.names,
            event=style.chance_of(classes, asked.classes[0]),
            places=style.some(asked.places),
            at=asked.told,
        )
        return display.plot(ax=ax, show_places=show_places)

    def plot(self, ax: Any = None, *, show_places: bool = False) -> Self:
        """Draw on these axes, or on a new figure."""
        (axes,) = style.panels(ax, (6.4, 4.2))
        said = f"chance that {self.event} > {self.above:.4g}"
        axes.set_xlabel(style.shown(self.features[0]) + style.fixed_at(self.at))
        if len(self.grid) == 1:
            self._draw_curve(axes)
            axes.set_ylabel(said)
        else:
            maps.draw_chance(axes, self.grid, self.chance, UNSURE)
            axes.set_ylabel(style.shown(self.features[1]))
            style.titled(axes, said)
        if show_places and self.places is not None:
            maps.draw_places(axes, self.places, "white")
        self.ax_, self.figure_ = axes, axes.figure
        return self

    def _draw_curve(self, axes: Any) -> None:
        axes.plot(self.grid[0], self.chance, color=style.BLUE, linewidth=1.8)
        for level in UNSURE:
            axes.axhline(level, color=style.FAINT, linewidth=0.8, linestyle="--")
        axes.set_ylim(-0.02, 1.02)
        style.plain(axes)
