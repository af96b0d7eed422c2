"""What windows have learned, and the answers they give: an immutable value.

A `Field` holds the sums of the trials by place and the units in which places are measured. Learning
returns a new field:

    begun     no trials yet: features, classes, domain and units
    counted   more trials
    merged    the trials of two fields

Queries (`posterior`, `mean`, `n_near`, `band`, `more_trials`) change nothing, so a field can be
queried while others are being made. The width of the windows follows from the options and the
trials, and is computed at the first query; so is what levels of categories have in common, the
prior of a level's windows (`pooling`). The trials need not be on this machine: `windows` may be
anything that sums trials near a point, as `betafield.windows.Forest` does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from betafield import bandwidth as widths
from betafield import categories, choosing, lattice, pooling, priors, success, trials
from betafield._locks import cached, remember
from betafield.evidence import Decoder, Evidence, Polynomial, Totals
from betafield.evidence.columns import MOST, has_fractions, require_total
from betafield.evidence.encode import joined, recounted
from betafield.options import Options
from betafield.refusals import refused
from betafield.units import Units
from betafield.wraps import Wraps

if TYPE_CHECKING:
    from betafield.bands import Bands
    from betafield.posteriors import Posterior
    from betafield.windows import Places

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Records = npt.NDArray[Any]
# Maps windows, queries and a width to the sums in each window.
Ask = Callable[[Any, Floats, float], Ints]
# The fields of `weights_` for windows.
WINDOW = [("width", np.float64), ("score", np.float64), ("weight", np.float64)]


@dataclass(frozen=True, eq=False)
class Field:
    """A smooth probability learned from trials in windows.

    Parameters
    ----------
    options : Options
        The estimator's options.
    features : Features
        Their number, and their names if any.
    classes : array of shape (K,)
        With two classes, the second is the success.
    bounds : array of shape (d, 2)
        The domain.
    units : Units
        The units in which places are measured.
    windows : Forest
        The sums of the trials, by place, in scaled units.
    sharing : {"exact", "mean"}
        How trials under contexts were combined.
    totals : Totals
        The number of trials, and how distorted they were.
    polynomials : tuple of polynomials
        The polynomial contexts among the trials.
    """

    options: Options
    features: trials.Features
    classes: npt.NDArray[Any]
    bounds: Floats
    units: Units
    windows: Any
    sharing: str
    totals: Totals = dataclasses.field(default_factory=Totals)
    polynomials: tuple[Polynomial, ...] = ()

    # Learning.

    @classmethod
    def begun(
        cls,
        options: Options,
        features: trials.Features,
        classes: npt.NDArray[Any],
        bounds: Floats,
        units: Units,
    ) -> Self:
        """Return a field without trials."""
        from betafield.windows import Forest

        windows = Forest(units.dimensions, options.metric)
        return cls(options, features, classes, bounds, units, windows, options.sharing)

    def counted(self, places: Places, evidence: Evidence) -> Self:
        """Return a field that includes these trials."""
        return self.holding(
            self.windows.insert(places),
            self.totals.plus(evidence.totals),
            evidence.polynomials or self.polynomials,
            evidence.sharing or self.sharing,
        )

    def holding(
        self,
        windows: Any,
        totals: Totals,
        polynomials: tuple[Polynomial, ...] | None = None,
        sharing: str | None = None,
    ) -> Self:
        """Return the field with the trials of these windows in place of its own."""
        most = MOST / (lattice.UNIT if totals.distorted else 1.0)
        require_total("trials", totals.number(), most)
        return dataclasses.replace(
            self,
            windows=windows,
            totals=totals,
            polynomials=self.polynomials if polynomials is None else polynomials,
            sharing=sharing or self.sharing,
        )

    def merged(self, other: Field) -> Self:
        """Return a field with the trials of both."""
        self._require_alike(other)
        theirs, ours = other.polynomials, self.polynomials
        windows, polynomials = joined(self.windows, ours, other.windows, theirs)
        low, high = (np.stack([self.bounds[:, i], other.bounds[:, i]]) for i in (0, 1))
        bounds = np.stack([low.min(axis=0), high.max(axis=0)], axis=1)
        grown = self.featured(other.features)
        return dataclasses.replace(grown, bounds=bounds).holding(
            windows,
            self.totals.plus(other.totals),
            polynomials,
            self.sharing if self.totals.distorted else other.sharing,
        )

    def with_only(self, places: Places, totals: Totals) -> Self:
        """Return a field with windows of the same width and strength, but only the given trials.

        Places are in scaled units.
        """
        from betafield.windows import Forest

        windows = Forest(self.units.dimensions, self.windows.metric).insert(places)
        options = self.options._replace(bandwidth=self.width)
        kept = dataclasses.replace(self, options=options).holding(windows, totals)
        remember(kept, "strength", self.strength)
        return kept

    def featured(self, features: trials.Features | None) -> Self:
        """Return the field with these levels of categories added; nothing else changes."""
        if features is None or not features.categories.columns:
            return self
        known = self.features.categories.plus(features.categories)
        categories.require_few(known)
        return dataclasses.replace(self, features=self.features._replace(categories=known))

    def settled(self) -> Self:
        """Return this field, after its width has been computed."""
        assert self.width > 0.0
        return self

    @property
    def is_settled(self) -> bool:
        """Always True, because the width always follows from all trials."""
        return True

    def asked_for(self, options: Options) -> Self:
        """Return the field with other options, which apply from now on."""
        if options.is_as(self.options):
            return self
        success.require_same(self.classes, options.pos_label)
        return dataclasses.replace(self, options=options)

    def in_order(self) -> Self:
        """Return the field with polynomials in the order of one `fit`, whichever came first."""
        from betafield.windows import Forest

        ordered = tuple(sorted(self.polynomials))
        if ordered == self.polynomials:
            return self
        _, places = recounted(self.windows.places, self.polynomials, ordered)
        windows = Forest(self.units.dimensions, self.windows.metric, self.windows.limits)
        for part in places:
            windows = windows.insert(part)
        return self.holding(windows, self.totals, ordered)

    @property
    def wraps(self) -> Wraps:
        """Which features wrap around."""
        return self.units.wraps

    def placed_points(self, points: Floats, name: str = "X") -> Floats:
        """Return points as places in the domain; raise for invalid longitudes or latitudes."""
        return self.units.wraps.placed(points, self.bounds, name)

    def placed(self, points: Floats, evidence: Evidence) -> Places:
        """Return the trials at these points, one per row, in the units of the windows."""
        from betafield.windows import Places

        return Places(self.units.axes(points), evidence.counts, evidence.shifts)

    # Properties.

    @property
    def sides(self) -> Floats:
        """Side lengths of the domain, in scaled units."""
        return self.units.sides(self.bounds)

    @property
    def decoder(self) -> Decoder:
        """Turns the sums of a window into a posterior."""
        return Decoder(
            len(self.classes),
            self.sharing,
            self.windows.width,
            self.windows.span,
            self.polynomials,
            self.options.n_jobs,
        )

    @cached
    def width(self) -> float:
        """Δ, in scaled units: as given, by theory, or by the leave-one-out score."""
        bandwidth = self.options.bandwidth
        if not isinstance(bandwidth, str):
            return float(bandwidth)
        if bandwidth == "theory":
            t = self.totals.number() * self.totals.share()
            return widths.theory(t, len(self.features.numeric), self.options.lipschitz)
        return self.scored.best

    @cached
    def scored(self) -> choosing.Scored:
        """The leave-one-out score of each candidate width."""
        sample, shapes = self._sampled
        if self.levels is not None:
            found = self.levels.scored(sample, shapes, self.sides)
        else:
            asked = self.decoder, shapes, self.sides, self.options.n_jobs
            found = choosing.scored(self.windows, sample, *asked)
        return found._replace(widths=self.units.told(found.widths))

    @cached
    def levels(self) -> pooling.Levels | None:
        """Windows of other levels of the categories; None if there are no categories."""
        columns = self.features.categories.columns
        if not columns:
            return None
        axes = [self.units.axis(column) for column in columns]
        return pooling.Levels(self.windows, axes, self.decoder, self.options.n_jobs)

    @cached
    def strength(self) -> float:
        """How many trials of other levels a level's prior is worth at most; 0 without levels."""
        if self.levels is None:
            return 0.0
        width = self.units.straight(self.width)
        return pooling.least(self.levels.scores(*self._sampled, width))

    def _plain_shapes(self, points: Floats) -> Floats:
        """Return the prior's shapes (m, K) without other levels."""
        return np.broadcast_to(self.shapes(points), (len(points), len(self.classes)))

    @property
    def _sampled(self) -> tuple[choosing.Sample, Floats]:
        """The places at which trials are left out, and the prior's shapes there."""
        sample = self._sample()
        return sample, self._plain_shapes(self.units.restored(sample.places.axes))

    def _sample(self) -> choosing.Sample:
        """Return the places at which trials are left out, wherever they are stored."""
        sampled: Callable[[float], choosing.Sample] | None
        sampled = getattr(self.windows, "sampled", None)
        cost = self.decoder.cost if self.levels is None else self.levels.cost
        return choosing.sampled(self.places(), cost) if sampled is None else sampled(cost)

    @property
    def is_learned(self) -> bool:
        """Whether the width is learned from the trials."""
        return isinstance(self.options.bandwidth, str) and self.options.bandwidth != "theory"

    @property
    def weights(self) -> Records:
        """The windows in use: one width, and its score if it was learned."""
        score = self.scored.scores.max() if self.is_learned else np.nan
        return np.array([(self.width, score, 1.0)], dtype=WINDOW)

    @property
    def levelled(self) -> tuple[int, ...]:
        """The features whose levels have effects of their own: none for windows."""
        return ()

    @property
    def relevance(self) -> Floats:
        """1 for every feature, because windows are round in scaled units."""
        return np.ones(self.features.number)

    @property
    def reaches(self) -> list[tuple[float, Floats]]:
        """How far windows reach along each feature, in its own units, with the weight of each."""
        return [(1.0, self.width * self.units.unit)]

    def places(self) -> list[Places]:
        """Return the places of all trials, in scaled units; a place may appear in several parts."""
        places: list[Places] = self.windows.places
        return places

    def shapes(self, points: Floats) -> Floats:
        """Return the prior's shapes at points, one column per class."""
        return priors.shapes(self.options.prior, points, len(self.classes))

    # Queries.

    def posterior(self, points: Floats, ask: Ask | None = None) -> Posterior:
        """Return the posterior of the success probability at each of the points (m, d).

        `ask`, if given, replaces the lookup of the sums in the windows.
        """
        sums = self.sums(points, self.width, ask)
        return self.decoder.posterior(sums, self._shapes_beside(points, sums))

    def _shapes_beside(self, points: Floats, own: Ints) -> Floats:
        """Return the prior's shapes at points in whose windows the level has these sums."""
        if not self.strength or self.levels is None:
            return self.shapes(points)
        queries, width = self.units.scaled(points), self.units.straight(self.width)
        others = self.levels.others(queries, width, own, self._plain_shapes(points))
        return others.shapes(self.strength)

    def mean(self, points: Floats, at_once: int = 1 << 23) -> Floats:
        """Return the posterior means at each of the points (m, d).

        Sums may take a kilobyte per point, so points are processed in blocks.
        """
        block = max(1, at_once // (self.windows.width + self.windows.span[1] + 6))
        starts = range(0, max(1, len(points)), block)
        return np.concatenate([self.posterior(points[i : i + block]).mean() for i in starts])

    def n_near(self, points: Floats) -> Floats:
        """Return the number of trials in the window of each point."""
        return self.decoder.size(self.sums(points, self.width))

    def sums(self, points: Floats, width: float, ask: Ask | None = None) -> Ints:
        """Return the sums in a window of the given width at each point."""
        queries, width = self.units.scaled(points), self.units.straight(width)
        if ask is not None:
            return ask(self.windows, queries, width)
        found: Ints = self.windows.sums(queries, width, self.options.n_jobs)
        return found

    def posterior_of_all(self, point: Floats) -> Posterior:
        """Return the posterior at a point (1, d) as if all trials had been made there."""
        return self.decoder.posterior(self.sums(point, np.inf), self.shapes(point))

    def band(
        self, points: Floats, lipschitz: float, level: float, simultaneous: bool
    ) -> tuple[Floats, Floats]:
        """Return intervals (low, high) that contain π with a probability of at least `level`."""
        return self.bands(lipschitz, level, simultaneous).intervals(self.units.scaled(points))

    def more_trials(
        self, points: Floats, width: float, lipschitz: float, level: float, simultaneous: bool
    ) -> Floats:
        """Return how many more trials would make the band this narrow."""
        bands = self.bands(lipschitz, level, simultaneous)
        return bands.more_trials(self.units.scaled(points), width)

    def bands(self, lipschitz: float, level: float, simultaneous: bool) -> Bands:
        """Return the computation of guaranteed intervals; raise if no guarantee exists."""
        from betafield.bands import Bands

        if not widths.is_positive(lipschitz):
            raise refused("lipschitz", f"found {lipschitz!r}; a positive number is needed")
        if not (widths.is_positive(level) and level < 1.0):
            raise refused("level", f"found {level!r}; a number between 0 and 1 is needed")
        self._require_whole_affine()
        return Bands(
            self.windows,
            self.decoder,
            self.sides,
            self.totals,
            float(lipschitz),
            min(1.0 - level, 0.5),  # the proof needs intervals that hold more often than not
            simultaneous,
            self.options.n_jobs,
            self.units.radii,
        )

    # Private.

    def _require_whole_affine(self) -> None:
        """Raise if no guarantee is known for the trials seen."""
        if len(self.classes) > 2:
            raise refused(
                "band", f"this model has {len(self.classes)} classes; guarantees are for two"
            )
        if self.polynomials:
            raise refused(
                "band",
                "this model has learned from polynomial contexts; guarantees are for trials "
                "without contexts and for affine contexts",
            )
        if self.windows.has_sizes or has_fractions(self.windows.totals):
            raise refused(
                "band",
                "this model has learned from fractional weights, and a fraction of a trial "
                "has no outcome of its own; guarantees are for whole weights",
            )

    def _require_alike(self, other: Field) -> None:
        """Raise unless trials of the other field have the same meaning here."""
        if self.windows.metric != other.windows.metric:
            raise refused(
                "other", f"its metric is {other.windows.metric}, here it is {self.windows.metric}"
            )
        if self.totals.distorted and other.totals.distorted and self.sharing != other.sharing:
            raise refused("other", f"its sharing is {other.sharing!r}, here it is {self.sharing!r}")
        ranged = all(f.options.scales_by("auto", "range") for f in (self, other))
        require_same_question(self, other)
        if ranged:
            require_equal("bounds_", self.bounds, other.bounds, SAME_BOUNDS)
        else:
            require_equal("scale_", self.units.unit, other.units.unit)
        if not np.array_equal(self.units.origin, other.units.origin):
            _raise_for("bounds_", self.bounds, other.bounds, SAME_BOUNDS)


SAME_BOUNDS = "give both the same `bounds`"


def require_same_question(ours: Any, theirs: Any) -> None:
    """Raise unless two fields have the same features and classes."""
    require_equal("n_features_in_", ours.features.number, theirs.features.number)
    require_equal("feature_names_in_", ours.features.names, theirs.features.names)
    a, b = ours.features.categories, theirs.features.categories
    hint = "give both the same columns, interactions and `missing`"
    for name in ("columns", "interactions", "has_missing"):
        if getattr(a, name) != getattr(b, name):
            _raise_for(f"categories' {name}", getattr(a, name), getattr(b, name), hint)
    require_equal("classes_", np.sort(ours.classes), np.sort(theirs.classes))
    require_equal("pos_label_", ours.classes[1], theirs.classes[1])


def require_equal(name: str, ours: Any, theirs: Any, hint: str = "they must be equal") -> None:
    """Raise unless both fields have equal values."""
    if not np.array_equal(np.asarray(ours), np.asarray(theirs)):
        _raise_for(name, ours, theirs, hint)


def _raise_for(name: str, ours: Any, theirs: Any, hint: str) -> None:
    ours, theirs = (np.asarray(each).tolist() for each in (ours, theirs))
    raise refused("other", f"its {name} is {theirs}, here it is {ours}; {hint}")
