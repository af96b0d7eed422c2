"""WindowDisplay: the trials and components behind the posterior at one point."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

import betafield.plots.style as style
from betafield import checks, trials
from betafield.components import PROCESS, groups, own
from betafield.field import Field
from betafield.observed import Observed, feature_names, observed, require_model
from betafield.posteriors import Dirichlet, LatentNormal
from betafield.process.laws import Laws
from betafield.survey import class_index

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from betafield.estimators import SmoothBetaClassifier
    from betafield.methods import AnyField
    from betafield.posteriors import Posterior
    from betafield.process.boxes import Box
    from betafield.smooth import SmoothField

Floats = npt.NDArray[np.float64]

# Groups of components with a lower weight are not drawn.
LIGHT = 0.01
# The picture extends this many times as far from the point as the trials that count as near.
MARGIN = 3.0
# Points of a density, and the probability cut off at each end.
POINTS, TAIL = 400, 5e-4


class Near(NamedTuple):
    """The trials near one point.

    Parameters
    ----------
    what : str
        What "near" means: in the window, or within a length scale.
    low, high : array of shape (d,)
        Its ends along each feature, in the units of the feature; infinite if the feature adds no
        distance.
    trials : float
        The number of trials there.
    successes : float or None
        The number of observed successes among them; None if outcomes are not kept.
    """

    what: str
    low: Floats
    high: Floats
    trials: float
    successes: float | None


class Part(NamedTuple):
    """The posterior of one kind of components.

    Parameters
    ----------
    name : str
    weight : float
    density : array of shape (m,)
    """

    name: str
    weight: float
    density: Floats


@dataclass(eq=False, repr=False)
class WindowDisplay(style.Drawn):
    """The trials near one point, and the posterior there.

    "Near" means in the window or, by default, within one length scale of the process, whose outline
    is an ellipse in the units in which the process is smooth. For one feature it is a strip; for
    two, its outline is drawn among the places of the trials. With more features, the two most
    relevant ones are drawn, or those that are named.

    If both a process and windows of its residuals have weights, the density of each is drawn times
    its weight; they add up to the posterior density.

    Parameters
    ----------
    point : array of shape (d,)
    near : Near
    parts : list of Part
        One part if there is only one kind of components.
    p, density : arrays of shape (m,)
        Probabilities, and the density of the posterior there.
    mean, low, high : float
        The posterior mean, and the ends of the credible interval.
    level : float
        The level of the interval.
    places : array of shape (n, c)
        The places of the trials, along the c features drawn; a sample of them, if more than 2,000
        are in the picture.
    bounds : array of shape (c, 2)
        The domain along these features.
    features : tuple of int
        Their numbers.
    names : tuple of str
        Their names.
    event : str
        The event, as in labels.
    outline : array of shape (2, m)
        The border of the near region along two features, through the point; empty for one feature.

    Attributes
    ----------
    ax_ : Axes, or array of two
        The near region, and the densities.
    figure_ : Figure

    Examples
    --------
    >>> import numpy as np
    >>> from betafield import SmoothBetaClassifier
    >>> from betafield.plots import WindowDisplay
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0], [10.0]]), [0, 1, 1, 0, 1]
    >>> model = SmoothBetaClassifier(bandwidth=1.0, scale=None).fit(X, y)
    >>> display = WindowDisplay.from_estimator(model, [1.0])
    >>> display.near.trials, display.near.successes, round(display.mean, 2)
    (3.0, 2.0, 0.6)
    """

    point: Floats
    near: Near
    parts: list[Part]
    p: Floats
    density: Floats
    _: KW_ONLY
    mean: float
    low: float
    high: float
    level: float
    places: Floats
    bounds: Floats
    features: tuple[int, ...] = (0,)
    names: tuple[str, ...] = ("x0",)
    event: str = "P(success)"
    outline: Floats = field(default_factory=lambda: np.empty((2, 0)))

    @classmethod
    def from_estimator(
        cls,
        model: SmoothBetaClassifier,
        x: Any,
        *,
        features: Any = None,
        level: float = 0.95,
        class_: Any = None,
        ax: Any = None,
    ) -> Self:
        """Draw the trials and components behind the posterior of a fitted model at one point.

        Parameters
        ----------
        model : SmoothBetaClassifier
            A fitted model.
        x : array of shape (d,), or a table of one row
            The point.
        features : str, int, or two of them, default=None
            The features to draw. None: the two most relevant of those that vary, or the only one.
        level : float, default=0.95
            The level of the interval.
        class_ : label, default=None
            The class to show. None: the success if there are two classes, otherwise the second.
        ax : Axes or two of them, default=None
            Axes to draw on. On a single one, densities are left out. None: a new figure.
        """
        require_model(model)
        level = checks.share("level", level)
        point = _point(model, x)
        k = class_index(model.field_.classes, class_)
        chosen = _chosen(model, features)
        known, seen, field = feature_names(model), observed(model), model.field_
        near = _near(field, seen, point, k)
        posterior, parts = _said(field, known, point, k)
        p = _probabilities([posterior, *(each for _, _, each in parts)])
        ends = posterior.interval(level)
        display = cls(
            point[0],
            near,
            [Part(name, weight, each.pdf(p[:, None])[:, 0]) for name, weight, each in parts],
            p,
            posterior.pdf(p[:, None])[:, 0],
            mean=float(posterior.mean()[0]),
            low=float(ends[0][0]),
            high=float(ends[1][0]),
            level=level,
            places=_around(seen.points, point[0], near)[:, chosen],
            bounds=model.bounds_[list(chosen)],
            features=tuple(chosen),
            names=tuple(known[i] for i in chosen),
            event=style.chance_of(model.field_.classes, k),
            outline=_border(field, point[0], chosen),
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on these axes, one or two, or on a new figure."""
        axes = style.panels(ax, (10.0, 4.6), ncols=2)
        if len(self.features) == 1:
            self._draw_strip(axes[0])
        else:
            self._draw_outline(axes[0])
        style.legend(axes[0], ncols=1)
        if len(axes) > 1:
            self._draw_densities(axes[1])
        self.ax_, self.figure_ = style.kept(axes), axes[0].figure
        return self

    def _label(self) -> str:
        near = self.near
        held = f"{_number(near.trials)} trials"
        if near.successes is not None:
            held = f"{_number(near.successes)} of {held}"
        return f"{near.what}: {held}"

    def _draw_strip(self, axes: Axes) -> None:
        (low, high), (feature,), x = self.bounds[0], self.features, self.point[self.features[0]]
        far = 2.0 * (high - low) or 1.0
        ends = max(self.near.low[feature], x - far), min(self.near.high[feature], x + far)
        axes.axvspan(*ends, color=style.BLUE, alpha=0.25, linewidth=0, label=self._label())
        axes.axvline(x, color=style.BLACK, linewidth=0.8)
        axes.plot(
            self.places[:, 0],
            np.full(len(self.places), 0.02),
            "|",
            transform=axes.get_xaxis_transform(),
            color=style.FAINT,
            markersize=6,
            markeredgewidth=0.4,
        )
        axes.set_xlim(*style.padded(min(low, x), max(high, x)))
        axes.set(xlabel=style.shown(self.names[0]), yticks=[])
        style.plain(axes, "x")
        axes.spines["left"].set_visible(False)

    def _draw_outline(self, axes: Axes) -> None:
        x = self.point[list(self.features)]
        axes.plot(*self.places.T, ".", color="0.7", markersize=3, markeredgewidth=0)
        axes.plot(*self.outline, color=style.BLUE, linewidth=2.0, label=self._label())
        axes.plot(*x, "+", color=style.BLACK, markersize=9)
        low, high = self._view(x)
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1])
        axes.set(xlabel=style.shown(self.names[0]), ylabel=style.shown(self.names[1]))
        style.plain(axes)

    def _view(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the corners of the view, which extends some way beyond the near region."""
        near_low, near_high = (
            self.near.low[list(self.features)],
            self.near.high[list(self.features)],
        )
        low = np.maximum(self.bounds[:, 0], x - MARGIN * (x - near_low))
        high = np.minimum(self.bounds[:, 1], x + MARGIN * (near_high - x))
        low, high = np.minimum(low, x), np.maximum(high, x)
        edge = 0.02 * np.where(high > low, high - low, 1.0)
        return low - edge, high + edge

    def _draw_densities(self, axes: Axes) -> None:
        several = len(self.parts) > 1
        for k, part in enumerate(self.parts if several else []):
            axes.plot(
                self.p,
                part.weight * part.density,
                color=style.LINES[k % (len(style.LINES) - 1)],
                linestyle=style.STYLES[1 + k % (len(style.STYLES) - 1)],
                label=f"{style.shown(part.name)}, weight {part.weight:.2f}",
            )
        inside = (self.p >= self.low) & (self.p <= self.high)
        axes.plot(self.p, self.density, color=style.BLACK, linewidth=1.8, label="posterior")
        axes.fill_between(
            self.p[inside],
            self.density[inside],
            color="0.88",
            linewidth=0,
            zorder=0,
            label=f"{style.percent(self.level)}: {self.low:#.3g} to {self.high:#.3g}",
        )
        label = "density, times weight" if several else "density"
        axes.set(xlabel=self.event, ylabel=label, xlim=(self.p[0], self.p[-1]))
        axes.set_ylim(bottom=0.0)
        style.legend(axes, ncols=1)
        style.plain(axes)


def _number(amount: float) -> str:
    """Return a formatted number of trials, which need not be whole if there are weights."""
    return f"{amount:,.0f}" if amount == round(amount) else f"{amount:,.2f}"


def _outline(metric: str) -> Floats:
    """Return the unit ball of a metric, as a closed line (2, n)."""
    if metric == "euclidean":
        angles = np.linspace(0.0, 2.0 * np.pi, 181)
        return np.stack([np.cos(angles), np.sin(angles)])
    if metric == "manhattan":
        return np.array([[1.0, 0.0, -1.0, 0.0, 1.0], [0.0, 1.0, 0.0, -1.0, 0.0]])
    return np.array([[1.0, 1.0, -1.0, -1.0, 1.0], [-1.0, 1.0, 1.0, -1.0, -1.0]])


# The near region and the posterior's parts -------------------------------------------------


def _point(model: SmoothBetaClassifier, x: Any) -> Floats:
    """Return the point as one row; an array needs no column names."""
    rule = f"one finite number per feature is needed, {model.n_features_in_} in all"
    row = checks.finite("x", x, rule)
    if row.ndim != 2:
        checks.shaped("x", row, (model.n_features_in_,), rule)
        return row[None]
    points = trials.points(model, x, reset=False)
    if len(points) != 1:
        raise ValueError(f"x: found {len(points)} points; one is needed")
    return points


def _chosen(model: SmoothBetaClassifier, features: Any) -> list[int]:
    from betafield.survey import Question

    return list(Question(model, features=features).chosen)


def _around(places: Floats, x: Floats, near: Near) -> Floats:
    """Return the places in view, or a sample of them."""
    if len(x) == 1:
        return style.some(places)
    low, high = x - MARGIN * (x - near.low), x + MARGIN * (near.high - x)
    return style.some(places[((places >= low) & (places <= high)).all(axis=1)])


def _near(field: AnyField, seen: Observed, point: Floats, k: int) -> Near:
    """Return the trials near a point."""
    if isinstance(field, Field):
        return _in_window(field, point, k)
    box, lengths = _process(field)
    apart = (box.inside(seen.points) - box.inside(point)) / lengths
    within = np.linalg.norm(apart, axis=1) <= 1.0
    outcomes = None if seen.counts is None else float(seen.counts[within, k].sum())
    low, high = (_own(box, point[0], sign * lengths[:, None])[:, 0] for sign in (-1.0, 1.0))
    constant = np.array([len(axis.at) == 1 for axis in box.axes])
    low, high = np.where(constant, -np.inf, low), np.where(constant, np.inf, high)
    return Near("within a length scale", low, high, float(seen.trials[within].sum()), outcomes)


def _in_window(field: Field, point: Floats, k: int) -> Near:
    sums, decoder = field.sums(point, field.width), field.decoder
    outcomes = None if field.totals.distorted else float(decoder.trials(sums)[0, k])
    reach, held = field.width * field.units.unit, float(decoder.size(sums)[0])
    return Near("in the window", point[0] - reach, point[0] + reach, held, outcomes)


def _process(field: SmoothField) -> tuple[Box, Floats]:
    """Return the box of the process with the shortest length scale, and its length scales."""
    smooth = min(field.smooth, key=lambda each: float(each.lengths.min()))
    return smooth.boxes[int(np.argmax(smooth.weights))], smooth.lengths


def _own(box: Box, x: Floats, steps: Floats) -> Floats:
    """Return a point moved by steps (d, m) in the box, in own units."""
    at = box.inside(x[None])[0][:, None] + steps
    return np.stack([own(axis, u) for axis, u in zip(box.axes, at, strict=True)])


def _border(field: AnyField, x: Floats, chosen: list[int]) -> Floats:
    """Return the border of the near region along two features, (2, m); empty for one."""
    if len(chosen) == 1:
        return np.empty((2, 0))
    steps = np.zeros((len(x), 181))
    if isinstance(field, Field):
        outline = _outline(field.windows.metric)
        reach = field.width * field.units.unit[chosen]
        beyond = 2.0 * np.ptp(field.bounds[chosen], axis=1) + 1.0
        reach = np.where(np.isfinite(reach), reach, beyond)
        return np.asarray(x[chosen, None] + reach[:, None] * outline)
    box, lengths = _process(field)
    steps[chosen] = lengths[chosen, None] * _outline("euclidean")
    return _own(box, x, steps)[chosen]


def _said(
    field: AnyField, names: tuple[str, ...], point: Floats, k: int
) -> tuple[Posterior, list[tuple[str, float, Posterior]]]:
    """Return the posterior of a class's probability, and that of each kind of components."""
    posterior = field.posterior(point)
    parts: list[tuple[str, float, Posterior]] = [("posterior", 1.0, posterior)]
    if isinstance(posterior, LatentNormal) and not isinstance(field, Field):
        every = _each_kind(field, names, len(posterior.laws.links))
        parts = [(name, *_part(posterior.laws, some)) for name, some in every]
    heavy = [(name, w, _of_class(each, k)) for name, w, each in parts if w >= LIGHT]
    return _of_class(posterior, k), heavy


def _each_kind(
    field: SmoothField, names: tuple[str, ...], n_laws: int
) -> list[tuple[str, list[int]]]:
    """Return the indices of the laws of the processes, and of windows by their features."""
    first = n_laws - len(field.smooth[0].windows)  # windows come after processes
    windows = [group for group in groups(field) if group.windows]
    each = [(group.named(names), [first + i for i in group.windows]) for group in windows]
    return [(PROCESS, list(range(first))), *each]


def _part(laws: Laws, some: list[int]) -> tuple[float, LatentNormal]:
    """Return the weight of some laws at one point, and the posterior of these alone."""
    weights = laws.weights.reshape(len(laws.links))[some]
    alone = Laws(
        tuple(laws.links[i] for i in some),
        weights / weights.sum() if weights.sum() > 0.0 else weights,
        laws.centres[some],
        laws.deviations[some],
    )
    return float(weights.sum()), LatentNormal(alone)


def _of_class(posterior: Posterior, k: int) -> Posterior:
    if isinstance(posterior, Dirichlet):
        return posterior.marginal(k)
    return posterior if k == 1 else posterior.under([1.0, 0.0])


def _probabilities(posteriors: list[Posterior]) -> Floats:
    """Return probabilities over the range where any of the densities is visible."""
    low = min(float(each.ppf(TAIL)[0]) for each in posteriors)
    high = max(float(each.ppf(1.0 - TAIL)[0]) for each in posteriors)
    return np.linspace(low, high, POINTS)
