"""What the default model has learned: a process for what is smooth, windows for what is not.

A `SmoothField` holds the sums of the trials by place, in the features' own units, and what was
found of the process and of the windows of its residuals (`betafield.process`). It is an immutable
value: to learn is to make another one. Finding is left to the first question; what is found for a
few trials less still serves (`GROWTH`), until `settled`. Which trials those are follows from the
batches that were learned, so that questions change nothing of later answers. A settled field is a
function of the sums by place and the options alone.

With three or more classes there is one field per class, against the others. Their means are made
to add up to 1, and the posterior is the Dirichlet with these means and the variance that they have
on average,

    α_k = ν m_k,   ν + 1 = Σ m_k (1 − m_k) / Σ v_k.

Guarantees are those of windows (`betafield.bands`), over the same trials: `windowed`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from betafield import categories, families, learning, monotonic, success, trials, units, weighed
from betafield._locks import cached
from betafield.field import SAME_BOUNDS, Field, require_equal, require_same_question
from betafield.options import Options
from betafield.posteriors import Beta, LatentNormal
from betafield.posteriors.dirichlet import matching
from betafield.sums import Sums
from betafield.units import Units
from betafield.wraps import Wraps

if TYPE_CHECKING:
    from betafield.bands import Bands
    from betafield.evidence import Totals
    from betafield.monotone import Monotone
    from betafield.posteriors import Posterior
    from betafield.process.blocks import Arrangement
    from betafield.process.draws import Fields
    from betafield.process.found import Found
    from betafield.process.model import Smooth
    from betafield.process.sums import Sums as ProcessSums
    from betafield.windows import Places

Floats = npt.NDArray[np.float64]
Records = npt.NDArray[Any]

# Trials, in shares of those there were, until what was found is found anew.
GROWTH = 1.1
NOTHING_FOUND: dict[str, Any] = {"found": None, "found_at": None, "earlier": None}


@dataclass(frozen=True, eq=False)
class SmoothField:
    """A smooth probability, as far as trials have shown it.

    Parameters
    ----------
    options : Options
        What was asked for.
    features : Features
    classes : array of shape (K,)
        Of two, the success is the second.
    sums : Sums
        The trials by place.
    found : tuple of Found, one or one per class, or None
        What was last found of process and windows.
    found_at : Totals or None
        The trials for which it was.
    earlier : SmoothField or None
        One with a few trials less whose finding still serves, if nothing was found yet.
    """

    options: Options
    features: trials.Features
    classes: npt.NDArray[Any]
    sums: Sums
    found: tuple[Found, ...] | None = None
    found_at: Totals | None = None
    earlier: SmoothField | None = None

    # Learning.

    def learned(self, more: Sums) -> Self:
        """Return the field that knows these trials too."""
        self._require_span(more)
        grown = self.supposing(more)
        is_due = grown.totals.trials > GROWTH * self.served_at.trials
        is_due |= self._loses_logarithms(more) or grown.sums.rates != self.sums.rates
        is_due |= bool(self.sums.size) and self.wraps.differ(self.bounds, grown.bounds)
        return dataclasses.replace(grown, **NOTHING_FOUND) if is_due else grown

    def _require_span(self, more: Sums) -> None:
        """Raise if the domain with these trials is wider than a float can hold."""
        if self.options.bounds is not None or not more.size:
            return
        each = [self._of_numbers(more.bounds()), *([self.numeric_bounds] if self.sums.size else [])]
        low, high = np.min(each, axis=0)[:, 0], np.max(each, axis=0)[:, 1]
        units.require_span(np.stack([low, high], axis=1))

    def _loses_logarithms(self, more: Sums) -> bool:
        """Return whether a feature that was positive is no more: its logarithm may be in use."""
        if self.options.bounds is not None or not self.sums.size:
            return False
        lowest = self._of_numbers(more.bounds())[:, 0]
        return bool(np.any((self.numeric_bounds[:, 0] > 0.0) & (lowest <= 0.0)))

    def supposing(self, more: Sums) -> Self:
        """Return the field as if these trials had been made, with what was found without them."""
        sums = self.sums.plus(more)
        found = self._found_so_far if sums.rates == self.sums.rates else NOTHING_FOUND
        return dataclasses.replace(self, sums=sums, **found)

    def merged(self, other: SmoothField) -> Self:
        """Return the field that knows the trials of both; it is to be settled."""
        require_same_question(self, other)
        if self.options.bounds is not None or other.options.bounds is not None:
            ours, theirs = self.numeric_bounds, other.numeric_bounds
            require_equal("bounds_", ours, theirs, SAME_BOUNDS)
        self._require_span(other.sums)
        grown = self.featured(other.features)
        return dataclasses.replace(grown, sums=self.sums.plus(other.sums), **NOTHING_FOUND)

    def featured(self, features: trials.Features | None) -> Self:
        """Return the field with levels of categories that were seen; nothing else changes."""
        if features is None or not features.categories.columns:
            return self
        known = self.features.categories.plus(features.categories)
        categories.require_few(known)
        kept = self.features._replace(categories=known)
        return dataclasses.replace(self, features=kept, **self._found_so_far)

    def settled(self) -> Self:
        """Return the field with process and windows found for all of its trials."""
        if self.found is not None and self.is_settled:
            return self
        is_known = self.is_settled and self.earlier is not None
        found = self.serving[0] if is_known else self._learned[0]
        kept = dataclasses.replace(self, found=found, found_at=self.totals, earlier=None)
        if not is_known:
            kept.__dict__["smooth"] = self._learned[1]
        return kept

    def in_order(self) -> Self:
        """Return this field: whichever trials came first cannot be seen in it."""
        return self

    def asked_for(self, options: Options) -> Self:
        """Return the field with other options, which count from now on."""
        if options.is_as(self.options):
            return self
        success.require_same(self.classes, options.pos_label)
        if _decisive(options) == _decisive(self.options):
            return dataclasses.replace(self, options=options, **self._found_so_far)
        return dataclasses.replace(self, options=options, **NOTHING_FOUND)

    def with_only(self, sums: Sums) -> Self:
        """Return a field with what was found here that knows these trials alone.

        Its domain is that of here, of which length scales and widths are shares.
        """
        found, _ = self.serving
        options = self.options._replace(bounds=self.numeric_bounds)
        kept = dataclasses.replace(self, options=options, sums=sums, earlier=None)
        return dataclasses.replace(kept, found=found, found_at=sums.totals)

    # What there is to know about it.

    @property
    def totals(self) -> Totals:
        """How many trials there are, and how distorted they were."""
        return self.sums.totals

    @property
    def is_settled(self) -> bool:
        """Whether process and windows are found for all trials there are."""
        return self.served_at == self.totals

    @property
    def is_plain(self) -> bool:
        """Whether all there is to learn from are two classes without contexts."""
        return len(self.classes) == 2 and not self.totals.distorted

    @cached
    def bounds(self) -> Floats:
        """The domain (d, 2): as given, or that of all trials; categories have none."""
        every = np.full((self.features.number, 2), np.nan)
        every[self.features.numeric] = self.numeric_bounds
        return every

    @cached
    def numeric_bounds(self) -> Floats:
        """The domain of the features that are numbers."""
        given = self.options.bounds
        if given is None:
            every = self.wraps.domain(self.sums.bounds(), self.sums.values)
            return self._of_numbers(every)
        return units.domain(given, np.empty((0, 0)))

    def _of_numbers(self, rows: Floats) -> Floats:
        """Return rows of a table that are of features which are numbers."""
        return rows[self.features.numeric] if self.features.categories.columns else rows

    @cached
    def wraps(self) -> Wraps:
        """Which features wrap around."""
        return self.options.wraps(self.features)

    def placed_points(self, points: Floats, name: str = "X") -> Floats:
        """Return points as places of the domain; raise for those that are none on Earth."""
        return self.wraps.placed(points, self.bounds, name)

    @property
    def n_parameters(self) -> int:
        """Hyper-parameters of categories, beside which those of groups are like them."""
        known = self.features.categories
        if not known.columns:
            return 0
        each = 1 + (len(self.features.numeric) > 0)
        return each * (len(known.columns) + len(known.interactions)) + self.sums.is_grouped

    @cached
    def arrangement(self) -> Arrangement | None:
        """Which columns of points are features and which categories, if there are any."""
        from betafield.process.blocks import Arrangement

        known = self.features.categories
        if not known.columns:
            return None
        alone = tuple((column,) for column in known.columns)
        return Arrangement(tuple(self.features.numeric), alone + known.interactions)

    @property
    def units(self) -> Units:
        """Shares of the domain."""
        return self.windowed.units

    @property
    def sides(self) -> Floats:
        """Lengths of the domain, in those units."""
        return self.windowed.sides

    @property
    def known(self) -> tuple[tuple[Found, ...] | None, Totals | None]:
        """What was found and for which trials; None if that is left to the first question."""
        is_open = self.found is None and self.earlier is None and "serving" not in self.__dict__
        return (None, None) if is_open else self.serving

    @property
    def served_at(self) -> Totals:
        """The trials for which is found what answers are made of."""
        if self.found_at is not None:
            return self.found_at
        return self.totals if self.earlier is None else self.earlier.totals

    @cached
    def serving(self) -> tuple[tuple[Found, ...], Totals]:
        """What answers are made of, and the trials for which it was found."""
        if self.found is not None and self.found_at is not None:
            return self.found, self.found_at
        return (self._learned[0], self.totals) if self.earlier is None else self.earlier.serving

    @cached
    def smooth(self) -> tuple[Smooth, ...]:
        """What answers questions: one, or one per class."""
        from betafield.process.model import build

        found, _ = self.serving
        if self.found is None and self.earlier is None:
            return self._learned[1]
        return tuple(
            build(each, self.numeric_bounds, one)
            for each, one in zip(self.per_class(), found, strict=True)
        )

    @property
    def signs(self) -> tuple[int, ...]:
        """Which way the field goes along each feature: 1, −1, or 0 for either."""
        return monotonic.signs(
            self.options.monotonic_cst, self.features.number, self.features.names
        )

    @cached
    def answering(self) -> tuple[Smooth, ...] | Monotone:
        """What answers questions, made monotone if that is asked for."""
        return self.monotone() if any(self.signs) else self.smooth

    def monotone(self, **drawn: Any) -> Monotone:
        """Return draws of the field, made monotone."""
        from betafield.monotone import Monotone, grid_over

        (smooth,), numeric = self.smooth, self.features.numeric
        signs = tuple(self.signs[a] for a in numeric)
        grid = grid_over(smooth, self.numeric_bounds, signs, self.levelled)
        grid = grid._replace(features=tuple(numeric[a] for a in grid.features))
        return Monotone(smooth, grid, n_jobs=self.options.n_jobs, **drawn)

    @cached
    def drawn(self) -> Fields:
        """Fields drawn from the joint posterior, the same whenever they are asked for."""
        from betafield.process.draws import SIZE, Fields
        from betafield.process.noise import Seed

        return Fields(self.smooth[0], SIZE, Seed((0,)), self.options.n_jobs)

    @property
    def length_scales(self) -> Floats:
        """How far trials reach along each feature about its middle, in its own units."""
        reaches = [weighed.reach(smooth) for smooth in self.smooth]
        return self._widened(np.min(reaches, axis=0))

    def _widened(self, numbers: Floats) -> Floats:
        """Return one number per feature, NaN for categories."""
        every = np.full(self.features.number, np.nan)
        every[self.features.numeric] = numbers
        return every

    @property
    def reaches(self) -> list[tuple[float, Floats]]:
        """How far trials reach along each feature, in its own units, with the weight of that."""
        return [(1.0, self.length_scales)]

    @property
    def relevance(self) -> Floats:
        """Inverse length scales in shares of the domain, 1 for the shortest."""
        shares = np.min([smooth.lengths for smooth in self.smooth], axis=0)
        return self._widened(shares.min(initial=np.inf) / shares)

    @property
    def correlation(self) -> float:
        """Correlation between trials of a row, over all processes."""
        found, smooth = self.serving[0][0], self.smooth[0]
        each = [component.correlation for component in found.components]
        return float(np.sum(smooth.weights * each))

    @property
    def group_deviation(self) -> float:
        """Deviation of the effects of groups in log-odds, by the heaviest process about π = ½."""
        return max(smooth.group_deviation for smooth in self.smooth)

    @property
    def levelled(self) -> tuple[int, ...]:
        """The features whose levels have effects of their own, which nothing between them has."""
        each = self.serving[0]
        effects = {one.effect for found in each for one in found.components}
        effects.discard(len(self.features.numeric))  # which are those of groups
        spreads = {int(a) for found in each for a in np.flatnonzero(found.spread)}
        return tuple(sorted(a for a in effects | spreads if a is not None))

    @property
    def weights(self) -> Records:
        """The components in use, the heaviest first; of classes those of the first."""
        return weighed.records(self.smooth[0], self.serving[0][0], self.features)

    @property
    def rates(self) -> dict[str, Beta]:
        """What is believed of rates that are not known, by name."""
        if not self.sums.rates:
            return {}
        each = zip(self.sums.rates, self.smooth[0].rates, strict=True)
        return {rate.name: Beta(*shapes) for rate, shapes in each}

    @cached
    def windowed(self) -> Field:
        """The same trials in windows of the width that theory has: for guarantees and counts."""
        return self._in_windows(None)

    def _in_windows(self, rates: Floats | None) -> Field:
        """Return the same trials in windows; rates that are not known are these, or as believed."""
        options = self.options._replace(method="windows", bandwidth="theory", scale="range")
        asked = options, self.features, self.classes, self.bounds
        return learning.in_windows(*asked, self.sums, rates)

    @property
    def windows(self) -> Any:
        """The sums of the trials, by place, in scaled units."""
        return self.windowed.windows

    @property
    def sharing(self) -> str:
        """How trials under contexts count in windows."""
        return self.options.sharing

    @property
    def polynomials(self) -> tuple[Any, ...]:
        """The polynomial contexts that windows count."""
        return self.windowed.polynomials

    def places(self) -> list[Places]:
        """Return the places of all trials, in scaled units."""
        return self.windowed.places()

    # Asking.

    def posterior(self, points: Floats, _: Any = None) -> Posterior:
        """Return the posterior of the success probability at each of the points (m, d)."""
        return believed(self.answering, points, self.options.n_jobs)

    def mean(self, points: Floats) -> Floats:
        """Return the posterior means at each of the points (m, d)."""
        answering = self.answering
        if isinstance(answering, tuple):
            return self.posterior(points).mean()
        return answering.mean(points)

    def n_near(self, points: Floats) -> Floats:
        """Return how many trials lie within the width that theory has for windows."""
        return self.windowed.n_near(points)

    def posterior_of_all(self, point: Floats) -> Posterior:
        """Return what is believed at a point (1, d) if all trials had been made there.

        Rates that are not known are taken at their posterior means.
        """
        if not self.sums.rates:
            return self.windowed.posterior_of_all(point)
        means = np.concatenate([rate.mean() for rate in self.rates.values()])
        return self._in_windows(means).posterior_of_all(point)

    def band(
        self, points: Floats, lipschitz: float, level: float, simultaneous: bool
    ) -> tuple[Floats, Floats]:
        """Return intervals (low, high) that hold π with a probability of at least `level`."""
        families.require_none(self.sums.rates)
        return self.windowed.band(points, lipschitz, level, simultaneous)

    def more_trials(
        self, points: Floats, width: float, lipschitz: float, level: float, simultaneous: bool
    ) -> Floats:
        """Return how many more trials make the band this narrow."""
        families.require_none(self.sums.rates)
        return self.windowed.more_trials(points, width, lipschitz, level, simultaneous)

    def bands(self, lipschitz: float, level: float, simultaneous: bool) -> Bands:
        """Return what computes intervals with a guarantee; raise if there is none."""
        families.require_none(self.sums.rates)
        return self.windowed.bands(lipschitz, level, simultaneous)

    # Inside.

    @property
    def _found_so_far(self) -> dict[str, Any]:
        """What was found; until it is, the field for whose trials it will be."""
        if self.found is None and "serving" not in self.__dict__:
            return NOTHING_FOUND | {"earlier": self.earlier or self}
        found, found_at = self.serving
        return {"found": found, "found_at": found_at, "earlier": None}

    @cached
    def _learned(self) -> tuple[tuple[Found, ...], tuple[Smooth, ...]]:
        """What is found for all trials there are, and what then answers questions."""
        from betafield.process.model import learn

        asked = self.numeric_bounds, self.options.method == "auto"
        scale = units.of_process(self.options.scale)
        each = [learn(one, *asked, scale) for one in self.per_class()]
        return tuple(found for found, _ in each), tuple(smooth for _, smooth in each)

    def per_class(self) -> list[ProcessSums]:
        """Return the trials of each class against the others; of two, of the second alone."""
        from betafield.process.sums import Sums as ProcessSums

        points, counts, context, unit, group = self.sums.rows()
        total, last = counts.sum(axis=0), len(self.classes)
        chosen = [1] if last == 2 else range(last)
        codes, arrangement = None, self.arrangement
        if arrangement is not None:
            points, codes = arrangement.arranged(points)
        scales = self.wraps.among(self.features.numeric).scales
        kept = group, self.sums.is_apart, self.sums.rates, codes, arrangement, scales
        return [ProcessSums(points, total, counts[k], context, unit, *kept) for k in chosen]


def believed(
    smooth: tuple[Smooth, ...] | Monotone, points: Floats, n_jobs: int | None = None
) -> Posterior:
    """Return the posterior at points (m, d) by what answers questions: one, or one per class."""
    if not isinstance(smooth, tuple):
        return smooth.posterior(points)
    each = [LatentNormal(one.laws(points, n_jobs)) for one in smooth]
    if len(each) == 1:
        return each[0]
    means, variances = ([post.mean() for post in each], [post.var() for post in each])
    return matching(np.stack(means, axis=1), np.stack(variances, axis=1))


def _decisive(options: Options) -> tuple[Any, ...]:
    """Return the options on which depends what is found."""
    bounds = None if options.bounds is None else np.asarray(options.bounds).tolist()
    wrapping = dict(options.periodic or {}), tuple(options.geographic or ())
    return options.method, units.of_process(options.scale), bounds, wrapping
