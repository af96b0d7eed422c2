"""The posterior of a model over its domain, computed once and shared by all sections."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

import betafield.report.words as words
from betafield import components, meaning, survey
from betafield.observed import Observed, feature_names, observed
from betafield.smooth import SmoothField

if TYPE_CHECKING:
    from betafield.estimators import SmoothBetaClassifier
    from betafield.posteriors import Posterior

Floats = npt.NDArray[np.float64]

# Points of a curve, cells along a side of a map, and points that represent a domain of more
# dimensions (as a power of 2) or the places of trials.
CURVE, CELLS, SPREAD, PLACES = 300, 60, 11, 2000
# The number of classes that figures show, and the number above which maps are coarser.
MOST_OUTCOMES, MANY_OUTCOMES = 8, 3


class Belief(NamedTuple):
    """Posteriors at points, one column per outcome: one if there are two classes, else all."""

    mean: Floats
    low: Floats
    high: Floats
    var: Floats

    @property
    def width(self) -> Floats:
        """Width of the intervals."""
        return self.high - self.low

    def taken(self, index: npt.NDArray[np.intp]) -> Belief:
        """Return the posteriors at some of the points."""
        return Belief(*(each[index] for each in self))


class Subject:
    """A model with the queries of a report.

    Parameters
    ----------
    model : SmoothBetaClassifier
        A fitted model.
    level : float
        The level of all intervals.
    lipschitz : float or None
        L, if guaranteed intervals are wanted too.
    above : float or None
        A level; the report shows how likely the probability is above it.
    """

    def __init__(
        self,
        model: SmoothBetaClassifier,
        level: float = 0.95,
        lipschitz: float | None = None,
        above: float | None = None,
    ) -> None:
        # A copy, because another thread may teach the model meanwhile.
        self.model = copy.copy(model)
        self.level = level
        self.lipschitz = lipschitz
        self.above = above
        self.names = feature_names(model)
        self.bounds: Floats = self.model.bounds_
        self.extents: Floats = self.bounds[:, 1] - self.bounds[:, 0]

    # Features and outcomes.

    @cached_property
    def seen(self) -> Observed:
        """The observed outcomes, by place."""
        return observed(self.model)

    @cached_property
    def varying(self) -> list[int]:
        """The features that differ between trials, most relevant first.

        Features whose levels have effects come first, whatever their length scale. Ties go to the
        feature along which the probability changes more.
        """
        relevance, found = self.model.relevance_.copy(), self._differing
        if len(found) < 2:
            return found
        relevance[self.leveled] = 1.0
        return sorted(found, key=lambda k: (-relevance[k], -self.swing[k], k))

    @property
    def _differing(self) -> list[int]:
        apart = (self.extents > 0) & np.isfinite(self.model.scale_)
        return [int(k) for k in np.flatnonzero(apart)]

    @cached_property
    def swing(self) -> dict[int, float]:
        """How much the mean changes along each feature that varies, others at their median."""
        each = {k: self.believe(self.along(k)).mean for k in self._differing}
        return {k: float(np.ptp(mean, axis=0).max()) for k, mean in each.items()}

    @property
    def leveled(self) -> list[int]:
        """The features whose levels have effects of their own."""
        field = self.model.field_
        if not isinstance(field, SmoothField):
            return []
        shares = components.effects(field).items()
        return [k for k, share in shares if k is not None and share >= meaning.SLIGHT]

    @cached_property
    def is_smooth(self) -> bool:
        """Whether the model has a process, as opposed to the paper's windows."""
        return isinstance(self.model.field_, SmoothField)

    @property
    def window(self) -> float:
        """The width of windows in which trials are counted as near, in scaled units."""
        field = self.model.field_
        return field.windowed.width if isinstance(field, SmoothField) else field.width

    @cached_property
    def outcomes(self) -> list[int]:
        """The classes whose probability is shown: the success of two, or the most frequent."""
        k = len(self.model.classes_)
        if k == 2 or self.seen.counts is None:
            return [1]
        by_size = np.argsort(-self.seen.counts.sum(axis=0), kind="stable")[:MOST_OUTCOMES]
        return sorted(int(i) for i in by_size)

    def outcome_name(self, c: int) -> str:
        """Return the name of an outcome: its class; classes 0 and 1 are failure and success."""
        classes = self.model.field_.classes
        if len(classes) == 2 and classes.dtype.kind in "buif" and classes.tolist() == [0, 1]:
            return ("failure", "success")[c]
        return words.shown(classes[c])

    @property
    def distorted(self) -> bool:
        """Whether the model learned from contexts, so that it estimates π without distortion."""
        return bool(self.model.field_.totals.distorted)

    def coordinate(self, k: int, value: float) -> str:
        """Return a formatted coordinate of feature k."""
        return words.coordinate(float(value), float(self.extents[k]))

    # Points.

    @cached_property
    def median(self) -> Floats:
        """The median of the trials per feature; the most common level of categories."""
        known = self.model.field_.features.categories.columns
        return np.array(
            [
                (survey.commonest if a in known else survey.median)(column, self.seen.trials)
                for a, column in enumerate(self.seen.points.T)
            ]
        )

    def axis(self, k: int, n: int, ends: bool = True) -> Floats:
        """Return n coordinates of feature k: from end to end, or the middles of n cells.

        If its levels have effects of their own, these are moved to the nearest levels.
        """
        low, high = self.bounds[k]
        steps = np.linspace(0.0, 1.0, n) if ends else (np.arange(n) + 0.5) / n
        at = low + (high - low) * steps
        if k not in self.model.field_.levelled:
            return np.asarray(at)
        return survey.nearest(np.unique(self.seen.points[:, k]), at)

    def along(self, k: int, n: int = CURVE) -> Floats:
        """Return points from end to end of feature k, all others at their median."""
        points = np.tile(self.median, (n, 1))
        points[:, k] = self.axis(k, n)
        return points

    def across(self, i: int, j: int, n: int) -> Floats:
        """Return the middles of n × n cells of features i and j, i running fastest."""
        points = np.tile(self.median, (n * n, 1))
        points[:, i] = np.tile(self.axis(i, n, ends=False), n)
        points[:, j] = np.repeat(self.axis(j, n, ends=False), n)
        return points

    @property
    def cells(self) -> int:
        """Cells along a side of a map."""
        return CELLS if len(self.outcomes) <= MANY_OUTCOMES else CELLS // 2

    @cached_property
    def domain(self) -> Floats:
        """Points spread evenly over the domain."""
        d = len(self.varying)
        if d == 0:
            return self.median[None]
        if d == 1:
            return self.along(self.varying[0])
        if d == 2:
            return self.across(self.varying[0], self.varying[1], self.cells)
        unit = qmc.Sobol(d, scramble=False).random_base2(SPREAD) + 0.5**SPREAD / 2
        points = np.tile(self.median, (len(unit), 1))
        low, high = self.bounds[self.varying].T
        points[:, self.varying] = low + (high - low) * unit
        return points

    @cached_property
    def places(self) -> npt.NDArray[np.intp]:
        """Some places of trials, sampled evenly: the numbers of their rows in `seen`."""
        if len(self.seen.trials) <= PLACES:
            return np.arange(len(self.seen.trials))
        return np.unique(survey.evenly(self.seen.trials, PLACES))

    # Posteriors.

    def believe(self, points: Floats) -> Belief:
        """Return the posterior at points, one column per outcome."""
        posterior = self.model.field_.posterior(points)
        mean, var = posterior.mean(), posterior.var()
        return _columns(self.outcomes, mean, *posterior.interval(self.level), var)

    def exceeding(self, points: Floats, above: float) -> Floats:
        """Return how likely the probability is above a level, one column per outcome."""
        chance = self.model.field_.posterior(points).prob_above(above)
        return chance[:, None] if chance.ndim == 1 else chance[:, self.outcomes]

    @cached_property
    def of_domain(self) -> Belief:
        """The posterior over the domain."""
        return self.believe(self.domain)

    @cached_property
    def of_places(self) -> Belief:
        """The posterior at places of trials."""
        return self.believe(self.seen.points[self.places])

    def of_all(self) -> Belief:
        """Return the posterior of a single probability for all trials, wherever they were made."""
        posterior = self._of_all()
        ends = posterior.interval(self.level)
        return _columns(self.outcomes, posterior.mean(), *ends, posterior.var())

    def _of_all(self) -> Posterior:
        return self.model.field_.posterior_of_all(self.median[None])

    def guaranteed(self, points: Floats) -> tuple[Floats, Floats] | None:
        """Return guaranteed intervals at points; None if they are not wanted."""
        if self.lipschitz is None:
            return None
        return self.model.field_.band(points, self.lipschitz, self.level, False)

    def n_near(self, points: Floats) -> Floats:
        """Return how many trials are near points: in the window, or one of theoretical width."""
        return self.model.field_.n_near(points)


def _columns(outcomes: Sequence[int], *values: Floats) -> Belief:
    """Return arrays (m,) or (m, K) as one column per outcome."""
    return Belief(*(v[:, None] if v.ndim == 1 else v[:, list(outcomes)] for v in values))
