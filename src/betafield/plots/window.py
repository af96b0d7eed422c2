"""WindowDisplay: what the posterior at one point is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

import betafield.plots.style as style
from betafield import checks, trials
from betafield.observed import feature_names, observed, require_model
from betafield.posteriors import Dirichlet, Mixture
from betafield.survey import class_index

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from betafield.estimators import SmoothBetaClassifier
    from betafield.posteriors import Posterior

Floats = npt.NDArray[np.float64]

# Windows in colours of their own; the lighter ones share one.
COLOURED = 4
# How far is shown, in multiples of how far the widest of those reaches.
MARGIN = 3.0
# Points of a density, and what it leaves out at each end.
POINTS, TAIL = 400, 5e-4


class Windows(NamedTuple):
    """The windows of one point, the heaviest first.

    Parameters
    ----------
    weight : array of shape (k,)
    degree : array of shape (k,)
        Of the polynomials fitted.
    reach : array of shape (k, d)
        How far each reaches along each feature, in the feature's own units; inf where it carries
        no distance.
    trials : array of shape (k,)
        How many it holds.
    successes : array of shape (k,) or None
        How many of them ended so; None where outcomes are not kept, as under contexts.
    density : array of shape (k, m)
        Of what each says of π.
    """

    weight: Floats
    degree: npt.NDArray[np.int64]
    reach: Floats
    trials: Floats
    successes: Floats | None
    density: Floats


class WindowDisplay:
    """The windows of one point: where they reach, what they hold, what each says, and all together.

    Over one feature windows are strips, the heaviest at the top; over two, their outlines among
    the places of the trials. With more features, outlines are those of the two most relevant, or
    of those named.

    Parameters
    ----------
    point : array of shape (d,)
    windows : Windows
    p, density : arrays of shape (m,)
        Probabilities, and the density of the posterior there.
    mean, low, high : float
        Of the posterior; ends of its interval.
    level : float
        Of the interval.
    places : array of shape (n, c)
        Where there were trials, along the c features drawn; some of them, if more than 2,000 are
        in the picture.
    bounds : array of shape (c, 2)
        The domain along them.
    features : tuple of int
        Their numbers.
    names : tuple of str
        Their names.
    event : str
        What π is the probability of, as labels say it.
    metric : str
        Which outlines windows have.

    Attributes
    ----------
    ax_ : Axes, or array of two
        The windows, and the densities.
    figure_ : Figure

    Examples
    --------
    >>> import numpy as np
    >>> from betafield import SmoothBetaClassifier
    >>> from betafield.plots import WindowDisplay
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0], [10.0]]), [0, 1, 1, 0, 1]
    >>> model = SmoothBetaClassifier(bandwidth=1.0, scale=None).fit(X, y)
    >>> display = WindowDisplay.from_estimator(model, [1.0])
    >>> display.windows.trials.tolist(), display.windows.successes.tolist()
    ([3.0], [2.0])
    >>> round(display.mean, 2)
    0.6
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        point: Floats,
        windows: Windows,
        p: Floats,
        density: Floats,
        *,
        mean: float,
        low: float,
        high: float,
        level: float,
        places: Floats,
        bounds: Floats,
        features: tuple[int, ...] = (0,),
        names: tuple[str, ...] = ("x0",),
        event: str = "P(success)",
        metric: str = "euclidean",
    ) -> None:
        self.point = point
        self.windows = windows
        self.p = p
        self.density = density
        self.mean = mean
        self.low = low
        self.high = high
        self.level = level
        self.places = places
        self.bounds = bounds
        self.features = features
        self.names = names
        self.event = event
        self.metric = metric

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
        """Take the posterior at one point apart, and draw it.

        Parameters
        ----------
        model : SmoothBetaClassifier
            Fitted.
        x : array of shape (d,), or a table of one row
            The point.
        features : str, int, or two of them, default=None
            Along which features windows are drawn. None: the two most relevant of those that vary,
            or the only one.
        level : float, default=0.95
            Of the interval.
        class_ : label, default=None
            The class whose probability is looked at; None: the second.
        ax : Axes or two of them, default=None
            Where to draw; on one, densities are left out. None: a new figure.
        """
        require_model(model)
        level = checks.share("level", level)
        point = _point(model, x)
        k = class_index(model.classes_, class_)
        chosen = _chosen(model, features)
        known = feature_names(model)
        posterior, parts = _parts(model, point, k)
        p = _probabilities([posterior, *parts])
        densities = np.concatenate([part.pdf(p[:, None]).T for part in parts])
        ends, windows = posterior.interval(level), _windows(model, point, k, densities)
        display = cls(
            point[0],
            windows,
            p,
            posterior.pdf(p[:, None])[:, 0],
            mean=float(posterior.mean()[0]),
            low=float(ends[0][0]),
            high=float(ends[1][0]),
            level=level,
            places=_near(observed(model).points, point[0], windows)[:, chosen],
            bounds=model.bounds_[list(chosen)],
            features=tuple(chosen),
            names=tuple(known[i] for i in chosen),
            event=style.chance_of(model.classes_, k),
            metric=model.windows_.metric,
        )
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw on these axes, one or two, or on a new figure."""
        axes = style.panels(ax, (10.0, 4.6), ncols=2)
        if len(self.features) == 1:
            self._draw_strips(axes[0])
        else:
            self._draw_outlines(axes[0])
        style.legend(axes[0], ncols=1)
        if len(axes) > 1:
            self._draw_densities(axes[1])
        self.ax_, self.figure_ = style.kept(axes), axes[0].figure
        return self

    def _looks(self) -> list[tuple[str, str | None]]:
        """Return the colour and the label of each window."""
        looks: list[tuple[str, str | None]] = []
        for k in range(len(self.windows.weight)):
            if k < COLOURED:
                looks.append((style.LINES[k], self._label(k)))
            else:
                rest = len(self.windows.weight) - COLOURED
                name = f"{rest} lighter one{'s' * (rest > 1)}"
                looks.append(("0.65", name if k == COLOURED else None))
        return looks

    def _label(self, k: int) -> str:
        each = self.windows
        held = f"{_number(each.trials[k])} trials"
        if each.successes is not None:
            held = f"{_number(each.successes[k])} of {held}"
        kind = f", degree {each.degree[k]}" if each.degree.any() else ""
        return f"weight {each.weight[k]:.2f}{kind}: {held}"

    def _draw_strips(self, axes: Axes) -> None:
        (low, high), (feature,), x = self.bounds[0], self.features, self.point[self.features[0]]
        n = max(len(self.windows.weight), 3)
        for k, (colour, label) in enumerate(self._looks()):
            reach = min(float(self.windows.reach[k, feature]), 2.0 * (high - low) or 1.0)
            axes.barh(
                n - k,
                2.0 * reach,
                left=x - reach,
                height=0.7,
                color=colour,
                alpha=0.75,
                label=label,
            )
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
        axes.set_ylim(-0.1 * n, n + 0.7)
        axes.set(xlabel=style.shown(self.names[0]), yticks=[])
        style.plain(axes, "x")
        axes.spines["left"].set_visible(False)

    def _draw_outlines(self, axes: Axes) -> None:
        x = self.point[list(self.features)]
        axes.plot(*self.places.T, ".", color="0.7", markersize=3, markeredgewidth=0)
        outline = _outline(self.metric)
        for k, (colour, label) in enumerate(self._looks()):
            reach = self.windows.reach[k, list(self.features)]
            reach = np.where(np.isfinite(reach), reach, 2.0 * np.ptp(self.bounds, axis=1) + 1.0)
            axes.plot(
                *(x[:, None] + reach[:, None] * outline),
                color=colour,
                linewidth=1.0 + 1.5 * self.windows.weight[k],
                label=label,
                zorder=4.0 - 0.1 * k,
            )
        axes.plot(*x, "+", color=style.BLACK, markersize=9)
        low, high = self._view(x)
        axes.set_xlim(low[0], high[0])
        axes.set_ylim(low[1], high[1])
        axes.set(xlabel=style.shown(self.names[0]), ylabel=style.shown(self.names[1]))
        style.plain(axes)

    def _view(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the corners of what is shown: some way beyond the windows in colours."""
        reach = self.windows.reach[:COLOURED, list(self.features)].max(axis=0)
        low = np.maximum(self.bounds[:, 0], x - MARGIN * reach)
        high = np.minimum(self.bounds[:, 1], x + MARGIN * reach)
        low, high = np.minimum(low, x), np.maximum(high, x)
        edge = 0.02 * np.where(high > low, high - low, 1.0)
        return low - edge, high + edge

    def _draw_densities(self, axes: Axes) -> None:
        for k, (colour, _) in reversed(list(enumerate(self._looks()))):
            axes.plot(self.p, self.windows.weight[k] * self.windows.density[k], color=colour)
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
        axes.set(xlabel=self.event, ylabel="density, times weight", xlim=(self.p[0], self.p[-1]))
        axes.set_ylim(bottom=0.0)
        style.legend(axes, ncols=1)
        style.plain(axes)


def _number(amount: float) -> str:
    """Return an amount as people write it; weights need not be whole."""
    return f"{amount:,.0f}" if amount == round(amount) else f"{amount:,.2f}"


def _outline(metric: str) -> Floats:
    """Return the unit ball of a metric, as a closed line (2, n)."""
    if metric == "euclidean":
        angles = np.linspace(0.0, 2.0 * np.pi, 181)
        return np.stack([np.cos(angles), np.sin(angles)])
    if metric == "manhattan":
        return np.array([[1.0, 0.0, -1.0, 0.0, 1.0], [0.0, 1.0, 0.0, -1.0, 0.0]])
    return np.array([[1.0, 1.0, -1.0, -1.0, 1.0], [-1.0, 1.0, 1.0, -1.0, -1.0]])


# What is in them ---------------------------------------------------------------------------


def _point(model: SmoothBetaClassifier, x: Any) -> Floats:
    """Return the point as one row; numbers alone need no names."""
    rule = f"one finite number a feature is needed, {model.n_features_in_} in all"
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


def _near(places: Floats, x: Floats, windows: Windows) -> Floats:
    """Return the places not far beyond the windows, or some of them."""
    reach = MARGIN * windows.reach[:COLOURED].max(axis=0)
    far = np.abs(places - x) > (reach if len(x) > 1 else np.inf)
    return style.some(places[~far.any(axis=1)])


def _parts(model: SmoothBetaClassifier, point: Floats, k: int) -> tuple[Posterior, list[Posterior]]:
    """Return the posterior of a class's probability, and what each window says of it."""
    posterior = model.field_.posterior(point)
    parts = posterior.components if isinstance(posterior, Mixture) else [posterior]
    return _of_class(posterior, k), [_of_class(part, k) for part in parts]


def _of_class(posterior: Posterior, k: int) -> Posterior:
    if isinstance(posterior, Dirichlet):
        return posterior.marginal(k)
    return posterior if k == 1 else posterior.under([1.0, 0.0])


def _probabilities(posteriors: list[Posterior]) -> Floats:
    """Return probabilities over the range in which there is any density to see."""
    low = min(float(each.ppf(TAIL)[0]) for each in posteriors)
    high = max(float(each.ppf(1.0 - TAIL)[0]) for each in posteriors)
    return np.linspace(low, high, POINTS)


def _windows(model: SmoothBetaClassifier, point: Floats, k: int, densities: Floats) -> Windows:
    """Return what the windows of a point hold."""
    field = model.field_
    records, decoder = field.weights, field.decoder
    sums = np.concatenate([field.sums(point, record) for record in records])
    outcomes = None if field.totals.distorted else decoder.trials(sums)[:, k].astype(np.float64)
    return Windows(
        records["weight"],
        records["degree"],
        records["width"][:, None] * model.scale_ / records["relevance"],
        decoder.size(sums),
        outcomes,
        densities,
    )
