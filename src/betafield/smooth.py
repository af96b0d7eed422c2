"""What the default model has learned: a process for what is smooth, windows for what is not.

A `SmoothField` holds the sums of the trials by place, in the features' own units, and the estimates
of the process and of the windows of its residuals (`betafield.process`). It is immutable: learning
returns a new field. Estimation is deferred until the first question, and estimates from slightly
fewer trials are reused (`GROWTH`) until `settled`. Which trials those are depends only on the
batches that were learned, so questions never change later answers. A settled field is a function of
the sums by place and the options alone.

With three or more classes there is one field per class against the rest. Their means are normalised
to add up to 1, and the posterior is the Dirichlet distribution with these means that matches their
total variance,

    α_k = ν m_k,   ν + 1 = Σ m_k (1 − m_k) / Σ v_k.

Guarantees come from windows (`betafield.bands`) over the same trials; see `windowed`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from betafield import categories, families, learning, monotonic, success, trials, units, weighed
from betafield._locks import cached, remember
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

# Estimates are renewed when the number of trials exceeds this multiple of the earlier number.
GROWTH = 1.1
NOTHING_FOUND: dict[str, Any] = {"found": None, "found_at": None, "earlier": None}


@dataclass(frozen=True, eq=False)
class SmoothField:
    """The default field: a smooth probability learned from trials.

    Parameters
    ----------
    options : Options
        The estimator's options.
    features : Features
    classes : array of shape (K,)
        With two classes, the second is the success.
    sums : Sums
        The trials by place.
    found : tuple of Found, one or one per class, or None
        The latest estimates of the process and windows.
    found_at : Totals or None
        The totals of the trials from which they were estimated.
    earlier : SmoothField or None
        Until there are estimates: a field with slightly fewer trials whose estimates are used.
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
        """Return a field that includes these trials."""
        self._require_span(more)
        grown = self.supposing(more)
        is_due = grown.totals.trials > GROWTH * self.served_at.trials
        is_due |= self._loses_logarithms(more) or grown.sums.rates != self.sums.rates
        is_due |= bool(self.sums.size) and self.wraps.differ(self.bounds, grown.bounds)
        return dataclasses.replace(grown, **NOTHING_FOUND) if is_due else grown

    def _require_span(self, more: Sums) -> None:
        """Raise if these trials would make the domain wider than a float can hold."""
        if self.options.bounds is not None or not more.size:
            return
        each = [self._of_numbers(more.bounds()), *([self.numeric_bounds] if self.sums.size else [])]
        low, high = np.min(each, axis=0)[:, 0], np.max(each, axis=0)[:, 1]
        units.require_span(np.stack([low, high], axis=1))

    def _loses_logarithms(self, more: Sums) -> bool:
        """Return whether a feature is no longer positive, so its logarithm no longer exists."""
        if self.options.bounds is not None or not self.sums.size:
            return False
        lowest = self._of_numbers(more.bounds())[:, 0]
        return bool(np.any((self.numeric_bounds[:, 0] > 0.0) & (lowest <= 0.0)))

    def supposing(self, more: Sums) -> Self:
        """Return the field as if these trials had been made, without renewing the estimates."""
        sums = self.sums.plus(more)
        found = self._found_so_far if sums.rates == self.sums.rates else NOTHING_FOUND
        return dataclasses.replace(self, sums=sums, **found)

    def merged(self, other: SmoothField) -> Self:
        """Return an unsettled field with the trials of both."""
        require_same_question(self, other)
        if self.options.bounds is not None or other.options.bounds is not None:
            ours, theirs = self.numeric_bounds, other.numeric_bounds
            require_equal("bounds_", ours, theirs, SAME_BOUNDS)
        self._require_span(other.sums)
        grown = self.featured(other.features)
        return dataclasses.replace(grown, sums=self.sums.plus(other.sums), **NOTHING_FOUND)

    def featured(self, features: trials.Features | None) -> Self:
        """Return the field with these levels of categories added; nothing else changes."""
        if features is None or not features.categories.columns:
            return self
        known = self.features.categories.plus(features.categories)
        categories.require_few(known)
        return dataclasses.replace(self, features=self.features._replace(categories=known))

    def settled(self) -> Self:
        """Return the field with the process and windows estimated from all of its trials."""
        if self.found is not None and self.is_settled:
            return self
        is_known = self.is_settled and self.earlier is not None
        found = self.serving[0] if is_known else self._learned[0]
        kept = dataclasses.replace(self, found=found, found_at=self.totals, earlier=None)
        if not is_known:
            remember(kept, "smooth", self._learned[1])
        return kept

    def in_order(self) -> Self:
        """Return this field, because it does not depend on the order of the trials."""
        return self

    def asked_for(self, options: Options) -> Self:
        """Return the field with other options, which apply from now on."""
        if options.is_as(self.options):
            return self
        success.require_same(self.classes, options.pos_label)
        if _decisive(options) == _decisive(self.options):
            return dataclasses.replace(self, options=options, **self._found_so_far)
        return dataclasses.replace(self, options=options, **NOTHING_FOUND)

    def with_only(self, sums: Sums) -> Self:
        """Return a field that has these estimates, but only the given trials.

        Its domain is unchanged, because length scales and widths are fractions of it.
        """
        found, _ = self.serving
        options = self.options._replace(bounds=self.numeric_bounds)
        kept = dataclasses.replace(self, options=options, sums=sums, earlier=None)
        return dataclasses.replace(kept, found=found, found_at=sums.totals)

    # Properties.

    @property
    def totals(self) -> Totals:
        """The number of trials, and how distorted they were."""
        return self.sums.totals

    @property
    def is_settled(self) -> bool:
        """Whether the process and windows were estimated from all trials."""
        return self.served_at == self.totals

    @cached
    def bounds(self) -> Floats:
        """The domain (d, 2): as given, or the range of all trials; NaN for categories."""
        every = np.full((self.features.number, 2), np.nan)
        every[self.features.numeric] = self.numeric_bounds
        return every

    @cached
    def numeric_bounds(self) -> Floats:
        """The domain of the numeric features."""
        given = self.options.bounds
        if given is None:
            every = self.wraps.domain(self.sums.bounds(), self.sums.values)
            return self._of_numbers(every)
        return units.domain(given, np.empty((0, 0)))

    def _of_numbers(self, rows: Floats) -> Floats:
        """Return the rows of a table that belong to numeric features."""
        return rows[self.features.numeric] if self.features.categories.columns else rows

    @cached
    def wraps(self) -> Wraps:
        """Which features wrap around."""
        return self.options.wraps(self.features)

    def placed_points(self, points: Floats, name: str = "X") -> Floats:
        """Return points as places in the domain; raise for invalid longitudes or latitudes."""
        return self.wraps.placed(points, self.bounds, name)

    @property
    def n_parameters(self) -> int:
        """Number of hyper-parameters of categories, including that of groups."""
        known = self.features.categories
        if not known.columns:
            return 0
        each = 1 + (len(self.features.numeric) > 0)
        return each * (len(known.columns) + len(known.interactions)) + self.sums.is_grouped

    @cached
    def arrangement(self) -> Arrangement | None:
        """Which columns are features and which are categories; None if none are categories."""
        from betafield.process.blocks import Arrangement

        known = self.features.categories
        if not known.columns:
            return None
        alone = tuple((column,) for column in known.columns)
        return Arrangement(tuple(self.features.numeric), alone + known.interactions)

    @property
    def units(self) -> Units:
        """Fractions of the domain."""
        return self.windowed.units

    @property
    def sides(self) -> Floats:
        """Side lengths of the domain, in those units."""
        return self.windowed.sides

    @property
    def known(self) -> tuple[tuple[Found, ...] | None, Totals | None]:
        """The estimates and the totals they came from; None if estimation has not happened yet."""
        is_open = self.found is None and self.earlier is None and "serving" not in self.__dict__
        return (None, None) if is_open else self.serving

    @property
    def served_at(self) -> Totals:
        """The totals of the trials behind the estimates in use."""
        if self.found_at is not None:
            return self.found_at
        return self.totals if self.earlier is None else self.earlier.totals

    @cached
    def serving(self) -> tuple[tuple[Found, ...], Totals]:
        """The estimates in use, and the totals of the trials behind them."""
        if self.found is not None and self.found_at is not None:
            return self.found, self.found_at
        return (self._learned[0], self.totals) if self.earlier is None else self.earlier.serving

    @cached
    def smooth(self) -> tuple[Smooth, ...]:
        """The fitted models that answer questions: one, or one per class."""
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
        """The direction along each feature: 1 rising, −1 falling, 0 unconstrained."""
        return monotonic.signs(
            self.options.monotonic_cst, self.features.number, self.features.names
        )

    @cached
    def answering(self) -> tuple[Smooth, ...] | Monotone:
        """The fitted models, made monotone if requested."""
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
        """Fields drawn from the joint posterior, with a fixed seed."""
        from betafield.process.draws import SIZE, Fields
        from betafield.process.noise import Seed

        return Fields(self.smooth[0], SIZE, Seed((0,)), self.options.n_jobs)

    @property
    def length_scales(self) -> Floats:
        """How far the influence of a trial reaches along each feature, in its own units."""
        reaches = [weighed.reach(smooth) for smooth in self.smooth]
        return self._widened(np.min(reaches, axis=0))

    def _widened(self, numbers: Floats) -> Floats:
        """Return one number per feature, NaN for categories."""
        every = np.full(self.features.number, np.nan)
        every[self.features.numeric] = numbers
        return every

    @property
    def reaches(self) -> list[tuple[float, Floats]]:
        """How far trials reach along each feature, in its own units, with the weight of each."""
        return [(1.0, self.length_scales)]

    @property
    def relevance(self) -> Floats:
        """Inverse length scales as fractions of the domain, 1 for the shortest."""
        shares = np.min([smooth.lengths for smooth in self.smooth], axis=0)
        return self._widened(shares.min(initial=np.inf) / shares)

    @property
    def correlation(self) -> float:
        """Correlation between trials of a row, averaged over all processes."""
        found, smooth = self.serving[0][0], self.smooth[0]
        each = [component.correlation for component in found.components]
        return float(np.sum(smooth.weights * each))

    @property
    def group_deviation(self) -> float:
        """Standard deviation of group effects in log-odds near π = ½, by the heaviest process."""
        return max(smooth.group_deviation for smooth in self.smooth)

    @property
    def levelled(self) -> tuple[int, ...]:
        """The features whose levels have their own effects, which values between them lack."""
        each = self.serving[0]
        effects = {one.effect for found in each for one in found.components}
        effects.discard(len(self.features.numeric))  # the effects of groups
        spreads = {int(a) for found in each for a in np.flatnonzero(found.spread)}
        return tuple(sorted(a for a in effects | spreads if a is not None))

    @property
    def weights(self) -> Records:
        """The components in use, heaviest first; with several classes, those of the first."""
        return weighed.records(self.smooth[0], self.serving[0][0], self.features)

    @property
    def rates(self) -> dict[str, Beta]:
        """The posterior of each unknown rate, by name."""
        if not self.sums.rates:
            return {}
        each = zip(self.sums.rates, self.smooth[0].rates, strict=True)
        return {rate.name: Beta(*shapes) for rate, shapes in each}

    @cached
    def windowed(self) -> Field:
        """The same trials in windows of the theoretical width, for guarantees and counts."""
        return self._in_windows(None)

    def _in_windows(self, rates: Floats | None) -> Field:
        """Return the same trials in windows; unknown rates are as given, or prior means."""
        options = self.options._replace(method="windows", bandwidth="theory", scale="range")
        asked = options, self.features, self.classes, self.bounds
        return learning.in_windows(*asked, self.sums, rates)

    @property
    def windows(self) -> Any:
        """The sums of the trials, by place, in scaled units."""
        return self.windowed.windows

    @property
    def sharing(self) -> str:
        """How trials under contexts are combined in windows."""
        return self.options.sharing

    @property
    def polynomials(self) -> tuple[Any, ...]:
        """The polynomial contexts that windows count."""
        return self.windowed.polynomials

    def places(self) -> list[Places]:
        """Return the places of all trials, in scaled units."""
        return self.windowed.places()

    # Queries.

    def posterior(self, points: Floats, _: Any = None) -> Posterior:
        """Return the posterior of the success probability at each of the points (m, d).

        The second argument is for windows (see `Field.posterior`), and not used here.
        """
        return believed(self.answering, points, self.options.n_jobs)

    def mean(self, points: Floats) -> Floats:
        """Return the posterior means at each of the points (m, d)."""
        answering = self.answering
        if isinstance(answering, tuple):
            return self.posterior(points).mean()
        return answering.mean(points)

    def n_near(self, points: Floats) -> Floats:
        """Return how many trials lie within the theoretical window width of each point."""
        return self.windowed.n_near(points)

    def posterior_of_all(self, point: Floats) -> Posterior:
        """Return the posterior at a point (1, d) as if all trials had been made there.

        Unknown rates are set to their posterior means.
        """
        if not self.sums.rates:
            return self.windowed.posterior_of_all(point)
        means = np.concatenate([rate.mean() for rate in self.rates.values()])
        return self._in_windows(means).posterior_of_all(point)

    def band(
        self, points: Floats, lipschitz: float, level: float, simultaneous: bool
    ) -> tuple[Floats, Floats]:
        """Return intervals (low, high) that contain π with a probability of at least `level`."""
        families.require_none(self.sums.rates)
        return self.windowed.band(points, lipschitz, level, simultaneous)

    def more_trials(
        self, points: Floats, width: float, lipschitz: float, level: float, simultaneous: bool
    ) -> Floats:
        """Return how many more trials would make the band this narrow."""
        families.require_none(self.sums.rates)
        return self.windowed.more_trials(points, width, lipschitz, level, simultaneous)

    def bands(self, lipschitz: float, level: float, simultaneous: bool) -> Bands:
        """Return the computation of guaranteed intervals; raise if no guarantee exists."""
        families.require_none(self.sums.rates)
        return self.windowed.bands(lipschitz, level, simultaneous)

    # Private.

    @property
    def _found_so_far(self) -> dict[str, Any]:
        """The estimates, or, until they exist, the field whose trials they will come from."""
        if self.found is None and "serving" not in self.__dict__:
            return NOTHING_FOUND | {"earlier": self.earlier or self}
        found, found_at = self.serving
        return {"found": found, "found_at": found_at, "earlier": None}

    @cached
    def _learned(self) -> tuple[tuple[Found, ...], tuple[Smooth, ...]]:
        """The estimates from all trials, and the models that answer queries with them."""
        from betafield.process.links import LINKS, LOGIT
        from betafield.process.model import Asked, learn

        options = self.options
        # Most of several classes are rare nearly everywhere, which log-odds describe better.
        links = LINKS if len(self.classes) == 2 else (LOGIT,)
        scale = units.of_process(options.scale)
        asked = Asked(self.numeric_bounds, options.method == "auto", scale, links)
        each = [learn(one, asked) for one in self.per_class()]
        return tuple(found for found, _ in each), tuple(smooth for _, smooth in each)

    def per_class(self) -> list[ProcessSums]:
        """Return the trials of each class against the rest; with two classes, only the second."""
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
    """Return the posterior at points (m, d), given one fitted model, or one per class."""
    if not isinstance(smooth, tuple):
        return smooth.posterior(points)
    each = [LatentNormal(one.laws(points, n_jobs)) for one in smooth]
    if len(each) == 1:
        return each[0]
    means = np.stack([post.mean() for post in each], axis=1)
    return matching(means, np.stack([post.var() for post in each], axis=1))


def _decisive(options: Options) -> tuple[Any, ...]:
    """Return the options on which the estimates depend."""
    bounds = None if options.bounds is None else np.asarray(options.bounds).tolist()
    wrapping = dict(options.periodic or {}), tuple(options.geographic or ())
    return options.method, units.of_process(options.scale), bounds, wrapping
