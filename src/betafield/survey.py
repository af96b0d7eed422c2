"""Querying a model over its domain: grids, medians, averages over the trials, and classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from betafield import bernstein, categories, checks, distorted, trials
from betafield.categories import Categories
from betafield.checks import feature_index
from betafield.observed import Observed, feature_names, observed
from betafield.posteriors.base import blocks
from betafield.refusals import refused

if TYPE_CHECKING:
    from betafield.estimators import SmoothBetaClassifier
    from betafield.posteriors import Posterior

Floats = npt.NDArray[np.float64]

# Grid points per feature for a curve, a map and an average; places per average.
CURVE, MAP, AVERAGE, AVERAGED = 300, 100, 60, 256
# Largest number of grid points per feature.
FINEST = 10_000
# Number of posteriors in memory at once.
BLOCK = 1 << 14


def median(values: Floats, weights: Floats) -> float:
    """Return the weighted median: the lowest value with half of the weight at or below it.

    Examples
    --------
    >>> median(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 5.0]))
    2.0
    """
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, 0.5 * reached[-1])])


def evenly(trials: Floats, n: int) -> npt.NDArray[np.intp]:
    """Return the rows of n trials spread evenly over all trials, in row order.

    Examples
    --------
    >>> evenly(np.array([1.0, 8.0, 1.0]), n=5).tolist()
    [0, 1, 1, 1, 1]
    """
    reached = np.cumsum(trials)
    steps = (np.arange(n) + 0.5) / n * reached[-1]
    return np.asarray(np.minimum(np.searchsorted(reached, steps), len(reached) - 1))


def nearest(levels: Floats, values: Floats) -> Floats:
    """Return the level nearest to each value; levels are sorted.

    Examples
    --------
    >>> nearest(np.array([1.0, 2.0, 7.0]), np.array([0.0, 1.6, 9.0])).tolist()
    [1.0, 2.0, 7.0]
    """
    return np.asarray(levels[np.searchsorted(0.5 * (levels[1:] + levels[:-1]), values)])


def commonest(codes: Floats, trials: Floats) -> float:
    """Return the level with the most trials; the first one in case of a tie."""
    levels, which = np.unique(codes, return_inverse=True)
    return float(levels[np.argmax(np.bincount(which, trials))])


def class_index(classes: npt.NDArray[Any], class_: Any) -> int:
    """Return the index of a class; by default the second."""
    if class_ is None:
        return 1
    known = classes.tolist()
    is_label = isinstance(class_, str | bytes | bool | np.generic) or checks.is_number(class_)
    checks.require(is_label and class_ in known, "class_", class_, f"the classes are {known}")
    return int(known.index(class_))


@dataclass(eq=False)
class Question:
    """A query of a fitted model; see `FieldDisplay.from_estimator` for the arguments."""

    model: SmoothBetaClassifier
    X: Any = None
    y: Any = None
    features: Any = None
    fixed: Any = None
    under: Any = None
    class_: Any = None
    resolution: int | None = None

    def __post_init__(self) -> None:
        if self.resolution is not None:
            self.resolution = checks.whole("grid_resolution", self.resolution, 2, FINEST)
        if self.y is not None and self.X is None:
            raise refused("X", "found None where y was given; both are needed")
        if self.under is not None:
            self.under = distorted.one_context("under", self.under)

    # Points.

    @cached_property
    def chosen(self) -> tuple[int, ...]:
        """The indices of the features along the axes, one or two."""
        known = feature_names(self.model)
        if self.features is None:
            varies = np.ptp(self.model.bounds_, axis=1) > 0
            relevance = np.nan_to_num(self.model.relevance_, nan=-1.0)
            order = np.argsort(-relevance * np.where(relevance < 0.0, 1.0, varies), kind="stable")
            found = tuple(sorted(order[: np.clip(np.count_nonzero(varies), 1, 2)].tolist()))
            self._require_numbers(found)
            return found
        rule = "one is needed, or two different ones"
        one = isinstance(self.features, (str, Integral))
        given = [self.features] if one else checks.items("features", self.features, rule)
        chosen = tuple(feature_index("features", known, feature) for feature in given)
        self._require_numbers(chosen)
        checks.require(1 <= len(set(chosen)) == len(chosen) <= 2, "features", self.features, rule)
        return chosen

    def _require_numbers(self, chosen: tuple[int, ...]) -> None:
        """Raise if an axis is a category, whose levels have no order."""
        for a in chosen:
            if a in self._categories.columns:
                raise refused(
                    "features",
                    f"{feature_names(self.model)[a]!r} is a category, which cannot be "
                    "an axis; name numeric features, and fix the level with at={…}",
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of those features."""
        known = feature_names(self.model)
        return tuple(known[i] for i in self.chosen)

    @cached_property
    def at(self) -> dict[str, float]:
        """The other features and the values they are fixed at; empty if they are averaged."""
        known, given = feature_names(self.model), self._given()
        if self.averaged:
            return {}
        others = [i for i in range(len(known)) if i not in self.chosen]
        return {known[i]: given.get(i, self._median(i)) for i in others}

    @property
    def told(self) -> dict[str, Any]:
        """The same, with levels of categories shown as labels."""
        known, found = feature_names(self.model), dict[str, Any](self.at)
        for a in self._categories.columns:
            if known[a] in found:
                pairs = zip(self._categories.codes(a), self._categories.shown(a), strict=True)
                found[known[a]] = dict(pairs).get(found[known[a]], "a new level")
        return found

    def _given(self) -> dict[int, float]:
        known, fixed = feature_names(self.model), {}
        given = {} if self.fixed is None else self.fixed
        checks.instance("at", given, Mapping, "a mapping of features to numbers is needed")
        for feature, value in given.items():
            number = feature_index("at", known, feature)
            if number in self.chosen:
                raise refused("at", f"found {feature!r}, which is an axis")
            if number in self._categories.columns:
                fixed[number] = categories.code(categories.text(value))
            else:
                fixed[number] = checks.number(f"at, feature {feature!r}", value)
        return fixed

    @property
    def _categories(self) -> Categories:
        return self.model.field_.features.categories

    def _median(self, feature: int) -> float:
        if feature in self._categories.columns:
            return commonest(self.seen.points[:, feature], self.seen.trials)
        return median(self.seen.points[:, feature], self.seen.trials)

    @property
    def averaged(self) -> bool:
        """Whether other features are averaged over the places of trials."""
        return len(self.chosen) == 1 and self.model.n_features_in_ > 1 and self.fixed is None

    @cached_property
    def grid(self) -> tuple[Floats, ...]:
        """The coordinates along each axis, over the whole domain."""
        usual = AVERAGE if self.averaged else (CURVE, MAP)[len(self.chosen) - 1]
        n = usual if self.resolution is None else self.resolution
        bounds = self.model.bounds_[list(self.chosen)]
        evenly_spaced = (np.linspace(low, high, n) for low, high in bounds.tolist())
        return tuple(map(self._known, self.chosen, evenly_spaced))

    def _known(self, feature: int, grid: Floats) -> Floats:
        """Return the grid, moved to observed levels if each level has its own effect."""
        if feature not in self.model.field_.levelled:
            return grid
        return np.unique(nearest(np.unique(self.seen.points[:, feature]), grid))

    @cached_property
    def points(self) -> Floats:
        """All query points, as rows; for averages, the places of each coordinate are adjacent."""
        if self.averaged:
            places, (grid,) = self._typical(), self.grid
            points = np.tile(places, (len(grid), 1))
            points[:, self.chosen[0]] = np.repeat(grid, len(places))
            return points
        columns = np.meshgrid(*self.grid)
        points = np.empty((columns[0].size, self.model.n_features_in_))
        known = feature_names(self.model)
        for name, value in self.at.items():
            points[:, known.index(name)] = value
        for i, column in zip(self.chosen, columns, strict=True):
            points[:, i] = column.ravel()
        return points

    def _typical(self) -> Floats:
        """Return a representative sample of places."""
        n = min(AVERAGED, max(1, int(self.seen.trials.sum())))
        return np.asarray(self.seen.points[evenly(self.seen.trials, n)])

    # Trials.

    @cached_property
    def seen(self) -> Observed:
        """The given trials, or else those that the model has seen."""
        if self.X is None:
            return observed(self.model)
        (_, points), known = self.model.asked(self.X), feature_names(self.model)
        counts = None
        if self.y is not None:
            outcome = trials.labels(self.y, len(points))
            counts = trials.outcomes(outcome, self.model.field_.classes).T.astype(np.float64)
        return Observed(points, np.ones(len(points)), counts, known, "y was not given")

    @property
    def places(self) -> Floats:
        """The places of the trials, along the axes."""
        return self.seen.points[:, list(self.chosen)]

    @property
    def shows_outcomes(self) -> bool:
        """Whether shares of outcomes estimate the same probability as the curve."""
        if self.model.n_features_in_ > 1 or self.seen.counts is None:
            return False
        return self.X is not None or not (self.is_moved or self.is_distorted)

    # Posteriors.

    @property
    def classes(self) -> tuple[int, ...]:
        """The indices of the classes shown."""
        known = self.model.field_.classes
        if len(known) > 2 and len(self.chosen) == 1 and self.class_ is None:
            return tuple(range(len(known)))
        return (class_index(known, self.class_),)

    @property
    def is_moved(self) -> bool:
        """Whether the probability is one under a context."""
        return self.under is not None

    @property
    def is_distorted(self) -> bool:
        """Whether the model has learned from contexts, so that outcomes do not estimate π."""
        return bool(self.model.field_.totals.distorted)

    def believed(self, level: float) -> tuple[Floats, Floats, Floats]:
        """Return the posterior mean and the limits of the credible interval, over the grid."""
        mean, low, high = self._over_grid(
            lambda points: self._said(self.model.field_.posterior(points), level)
        )
        return mean, low, high

    def exceeding(self, above: float) -> Floats:
        """Return the probability that the first class shown has a probability above `above`."""
        if self.averaged:
            return self._average_exceeding(above)

        def ask(points: Floats) -> list[Floats]:
            posterior = self._moved(self.model.field_.posterior(points))
            k = self.classes[0]
            if len(posterior.shape) > 1:
                return [posterior.prob_above(above)[:, [k]]]
            chance = posterior.prob_above(above) if k else posterior.cdf(1.0 - above)
            return [chance[:, None]]

        return self._over_grid(ask)[0]

    def _average_exceeding(self, above: float) -> Floats:
        """Return the same for averages over the places of trials, at each coordinate."""
        from betafield.answers import area

        if len(self.model.field_.classes) > 2 or self.is_moved:
            raise refused(
                "at",
                "found None; averages are of two classes and without a context, so say where "
                "the other features are fixed",
            )
        each = len(self.points) // len(self.grid[0])
        by = np.repeat(np.arange(len(self.grid[0])), each)
        average = area.average(self.model.field_, self.points, by=by)
        return average.prob_above(above) if self.classes[0] else average.cdf(1.0 - above)

    def _moved(self, posterior: Posterior) -> Posterior:
        """Return the posterior under the requested context."""
        return posterior.under(self.under[None]) if self.is_moved else posterior

    def _said(self, posterior: Posterior, level: float) -> list[Floats]:
        """Return mean, low and high (m, c) for the classes shown."""
        posterior = self._moved(posterior)
        said = [posterior.mean(), *posterior.interval(level)]
        if said[0].ndim > 1:
            return [values[:, list(self.classes)] for values in said]
        if self.classes == (0,):  # failures are the complement of successes
            mean, low, high = said
            said = [1.0 - mean, 1.0 - high, 1.0 - low]
        return [values[:, None] for values in said]

    def banded(self, lipschitz: float, level: float, simultaneous: bool) -> tuple[Floats, Floats]:
        """Return the guaranteed band over the grid; averages use simultaneous bands.

        Under a context, each point's interval is transformed before any averaging, because the mean
        of transformed values is not the transformed mean.
        """
        at_once = simultaneous or self.averaged

        def ask(points: Floats) -> list[Floats]:
            ends = self.model.field_.band(points, lipschitz, level, at_once)
            if self.is_moved:
                ends = bernstein.image(self.under, *ends)
            return [end[:, None] for end in ends]

        low, high = self._over_grid(ask)
        return (1.0 - high, 1.0 - low) if self.classes == (0,) else (low, high)

    def _over_grid(self, ask: Callable[[Floats], list[Floats]]) -> tuple[Floats, ...]:
        """Return answers (m, c) at all points in the shape of the grid, after averaging."""
        parts = [ask(self.points[block]) for block in blocks(len(self.points), BLOCK)]
        answers = [np.concatenate(column) for column in zip(*parts, strict=True)]
        n_classes = answers[0].shape[1]
        if len(self.grid) == 2:
            x, y = self.grid
            return tuple(values.reshape(len(y), len(x)) for values in answers)
        if self.averaged:
            answers = [v.reshape(len(self.grid[0]), -1, n_classes).mean(axis=1) for v in answers]
        return tuple(values[:, 0] if n_classes == 1 else values for values in answers)
