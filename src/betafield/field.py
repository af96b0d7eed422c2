"""What was learned, and what it says: an immutable value.

A `Field` holds the sums of the trials by place, the units in which places are measured, and the
windows that were chosen for them. To learn is to make another field:

    begun     no trials yet: features, classes, domain and units
    counted   more trials
    settled   windows chosen for the trials there are
    learned   both
    merged    the trials of two fields

Asking (`posterior`, `mean`, `n_near`, `band`, `more_trials`) changes nothing, so whoever has a
field may ask it while others make new ones. The trials need not be on this machine: `windows` may
be anything that adds up trials near a point, as `betafield.windows.Forest` does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from betafield import bandwidth as widths
from betafield import lattice, priors, trials
from betafield.evidence import Decoder, Evidence, Polynomial, Totals
from betafield.evidence.columns import MOST, has_fractions, require_countable, untallied
from betafield.evidence.encode import joined, recounted
from betafield.options import Options
from betafield.posteriors import Beta, Mixture
from betafield.units import Units

if TYPE_CHECKING:
    from betafield.bands import Bands
    from betafield.choosing import Choice, Chosen, Weighing
    from betafield.posteriors import Posterior
    from betafield.windows import Places

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Records = npt.NDArray[Any]
# Windows, queries and a width → what they hold.
Ask = Callable[[Any, Floats, float], Ints]


@dataclass(frozen=True, eq=False)
class Field:
    """A smooth probability, as far as trials have shown it.

    Parameters
    ----------
    options : Options
        What was asked for.
    features : Features
        Their number, and their names if they have any.
    classes : array of shape (K,)
    bounds : array of shape (d, 2)
        The domain.
    units : Units
        In which places are measured.
    windows : Forest
        The sums of the trials, by place, in scaled units times `relevance`.
    relevance : array of shape (d,)
        That of the heaviest window.
    sharing : {"exact", "mean"}
        How trials under contexts were counted.
    totals : Totals
        How many trials there are, and how distorted they were.
    polynomials : tuple of polynomials
        The polynomial contexts that were counted.
    weights : structured array
        The windows in use, the heaviest first.
    chosen : tuple or None
        When windows were last weighed, what had been asked for, and which were found.
    """

    options: Options
    features: trials.Features
    classes: npt.NDArray[Any]
    bounds: Floats
    units: Units
    windows: Any
    relevance: Floats
    sharing: str
    totals: Totals = dataclasses.field(default_factory=Totals)
    polynomials: tuple[Polynomial, ...] = ()
    weights: Records = dataclasses.field(default_factory=lambda: np.empty(0))
    chosen: Chosen | None = None
    # Windows of other relevances, made when first asked for.
    _made: dict[tuple[float, ...], Any] = dataclasses.field(default_factory=dict, repr=False)

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

        d = features.number
        windows = Forest(d, options.metric)
        return cls(options, features, classes, bounds, units, windows, np.ones(d), options.sharing)

    def learned(self, places: Places, evidence: Evidence) -> Self:
        """Return the field that knows these trials too, windows chosen for all of them."""
        return self.counted(places, evidence).settled()

    def counted(self, places: Places, evidence: Evidence) -> Self:
        """Return the field that knows these trials too; windows are still those of before."""
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
        require_countable("trials", np.array(totals.number()), most)
        return dataclasses.replace(
            self,
            windows=windows,
            totals=totals,
            polynomials=self.polynomials if polynomials is None else polynomials,
            sharing=sharing or self.sharing,
            _made={},
        )

    def settled(self) -> Self:
        """Return the field with windows chosen for its trials: anew as t doubles."""
        choice = self.choice
        chosen = choice.weighed(self.chosen, self.weighing)
        weights = choice.records(chosen)
        return dataclasses.replace(self, chosen=chosen, weights=weights)._related(
            weights["relevance"][0]
        )

    def merged(self, other: Field) -> Self:
        """Return the field that knows the trials of both."""
        self._require_alike(other)
        theirs = other.windows
        if not np.array_equal(other.relevance, self.relevance):
            theirs = theirs.stretched(self.relevance / other.relevance)
        windows, polynomials = joined(self.windows, self.polynomials, theirs, other.polynomials)
        low, high = (np.stack([self.bounds[:, i], other.bounds[:, i]]) for i in (0, 1))
        bounds = np.stack([low.min(axis=0), high.max(axis=0)], axis=1)
        return (
            dataclasses.replace(self, bounds=bounds)
            .holding(
                windows,
                self.totals.plus(other.totals),
                polynomials,
                self.sharing if self.totals.distorted else other.sharing,
            )
            .settled()
        )

    def with_only(self, places: Places, totals: Totals) -> Self:
        """Return a field that chose its windows as this one, and knows these trials alone.

        Places are in scaled units.
        """
        from betafield.windows import Forest

        bare = dataclasses.replace(self, relevance=np.ones_like(self.relevance))
        windows = Forest(self.features.number, self.windows.metric).insert(places)
        return bare.holding(windows, totals).settled()

    def asked_for(self, options: Options) -> Self:
        """Return the field with other options, which count from now on."""
        if all(a is b for a, b in zip(options, self.options, strict=True)):
            return self
        return dataclasses.replace(self, options=options)

    def in_order(self) -> Self:
        """Return the field with polynomials in the order of one `fit`, whichever came first."""
        from betafield.windows import Forest

        ordered = tuple(sorted(self.polynomials))
        if ordered == self.polynomials:
            return self
        _, places = recounted(self.windows.places, self.polynomials, ordered)
        windows = Forest(self.features.number, self.windows.metric)
        for part in places:
            windows = windows.insert(part)
        return self.holding(windows, self.totals, ordered)

    def placed(self, points: Floats, evidence: Evidence) -> Places:
        """Return the trials at points of their rows, in the units of the windows."""
        from betafield.windows import Places

        axes = self.units.axes(points)
        if np.any(self.relevance != 1.0):
            axes *= self.relevance[:, None]
        return Places(axes, evidence.counts, evidence.shifts)

    # What there is to know about it.

    @property
    def is_plain(self) -> bool:
        """Whether all there is to learn from are two classes without contexts."""
        return len(self.classes) == 2 and not self.totals.distorted

    @property
    def sides(self) -> Floats:
        """Lengths of the domain, in scaled units."""
        return np.asarray((self.bounds[:, 1] - self.bounds[:, 0]) / self.units.unit)

    @property
    def decoder(self) -> Decoder:
        """What the sums of a window mean."""
        return Decoder(
            len(self.classes),
            self.sharing,
            self.windows.width,
            self.windows.span,
            self.polynomials,
            self.options.n_jobs,
        )

    @property
    def choice(self) -> Choice:
        """What was asked for, and what the choice of windows depends on."""
        from betafield.choosing import Choice

        return Choice(
            self.options.bandwidth,
            self.options.lipschitz,
            self.options.degree,
            self.options.learns_relevance,
            self.totals,
            len(self.classes),
            self.sides,
            self.windows.metric,
        )

    @property
    def reaches(self) -> list[tuple[float, Floats]]:
        """How far windows reach along each feature, in its own units, with their weights."""
        unit = self.units.unit
        return [
            (float(r["weight"]), r["width"] / r["relevance"] * unit) for r in self.weights
        ]

    def places(self) -> list[Places]:
        """Return the places of all trials, in scaled units; one may stand in several parts."""
        places: list[Places] = self.windows.places
        if np.any(self.relevance != 1.0):
            places = [p._replace(axes=p.axes / self.relevance[:, None]) for p in places]
        return places

    def shapes(self, points: Floats) -> Floats:
        """Return the prior's shapes at points, a column per class."""
        return priors.shapes(self.options.prior, points, len(self.classes))

    # Asking.

    def posterior(self, points: Floats, ask: Ask | None = None) -> Posterior:
        """Return the posterior of the success probability at each of the points (m, d).

        `ask` tells what windows hold, if somebody else knows that sooner than they do.
        """
        if self._is_local:
            return self._local_posterior(points)
        each = [self.posterior_of(points, record, ask) for record in self.weights]
        return each[0] if len(each) == 1 else Mixture(np.log(self.weights["weight"]), each)

    def mean(self, points: Floats, at_once: int = 1 << 23) -> Floats:
        """Return the posterior means at each of the points (m, d).

        Sums may take a kilobyte per point, so only so many numbers are held at once.
        """
        numbers = self.windows.width + self.windows.span[1] + 6 * len(self.weights)
        block = max(1, at_once // numbers)
        starts = range(0, max(1, len(points)), block)
        return np.concatenate([self.posterior(points[i : i + block]).mean() for i in starts])

    def n_near(self, points: Floats) -> Floats:
        """Return how many trials the heaviest window has at each point."""
        return self.decoder.size(self.sums(points, self.weights[0]))

    def sums(self, points: Floats, record: Any, ask: Ask | None = None) -> Ints:
        """Return what one of the windows in use holds at each point."""
        relevance, width = record["relevance"], float(record["width"])
        windows, queries = self.windows_for(relevance), self.units.scaled(points) * relevance
        if ask is not None:
            return ask(windows, queries, width)
        found: Ints = windows.sums(queries, width, self.options.n_jobs)
        return found

    def posterior_of(self, points: Floats, record: Any, ask: Ask | None = None) -> Posterior:
        """Return what the sums of one of the windows in use say."""
        return self.decoder.posterior(self.sums(points, record, ask), self.shapes(points))

    def posterior_of_all(self, point: Floats) -> Posterior:
        """Return what is believed at a point (1, d) if all trials had been made there."""
        everywhere = {"relevance": self.relevance, "width": np.inf}
        return self.posterior_of(point, everywhere)

    def band(
        self, points: Floats, lipschitz: float, level: float, simultaneous: bool
    ) -> tuple[Floats, Floats]:
        """Return intervals (low, high) that hold π with a probability of at least `level`."""
        return self.bands(lipschitz, level, simultaneous).intervals(self.units.scaled(points))

    def more_trials(
        self, points: Floats, width: float, lipschitz: float, level: float, simultaneous: bool
    ) -> Floats:
        """Return how many more trials make the band this narrow."""
        bands = self.bands(lipschitz, level, simultaneous)
        return bands.more_trials(self.units.scaled(points), width)

    def bands(self, lipschitz: float, level: float, simultaneous: bool) -> Bands:
        """Return what computes intervals with a guarantee; raise if there is none."""
        from betafield.bands import Bands

        if not widths.is_positive(lipschitz):
            raise ValueError(f"lipschitz: found {lipschitz!r}; a positive number is needed")
        if not (widths.is_positive(level) and level < 1.0):
            raise ValueError(f"level: found {level!r}; a number between 0 and 1 is needed")
        self._require_whole_affine()
        return Bands(
            self.windows_for(np.ones_like(self.relevance)),
            self.decoder,
            self.sides,
            self.totals,
            float(lipschitz),
            min(1.0 - level, 0.5),  # what is proven is for intervals that hold more often than not
            simultaneous,
            self.options.n_jobs,
        )

    def windows_for(self, relevance: Floats, gather: bool = False) -> Any:
        """Return the windows in which features have this relevance, made when first asked for.

        Those for polynomials may gather trials in cells.
        """
        key = (*relevance.tolist(), gather)
        if key not in self._made:
            windows = self.windows
            if not np.array_equal(relevance, self.relevance):
                windows = windows.stretched(relevance / self.relevance)
            if gather:
                import betafield.choosing.local as local

                windows = local.gathered(windows, float(self.weights["width"].min()))
            self._made[key] = windows
        return self._made[key]

    def weighing(self) -> Weighing:
        """Return what finds the windows that predict best."""
        places, total = self._to_weigh()
        return self.choice.weighing(
            places,
            total,
            self.decoder,
            _tallied,
            lambda axes: self.shapes(self.units.restored(axes)),
        )

    # Inside.

    def _to_weigh(self) -> tuple[list[Places], int | None]:
        """Return places to weigh windows on; and how many there are, if these are not all."""
        sampled: Callable[[], tuple[list[Places], int]] | None
        sampled = getattr(self.windows, "sampled", None)
        return (self.places(), None) if sampled is None else sampled()

    def _related(self, relevance: Floats) -> Self:
        """Return the field whose trials are held in windows of this relevance."""
        windows = self.windows
        if not np.array_equal(relevance, self.relevance):
            windows = windows.stretched(relevance / self.relevance)
        return dataclasses.replace(self, windows=windows, relevance=relevance, _made={})

    @property
    def _is_local(self) -> bool:
        """Whether local polynomials, or several widths, are asked for."""
        return self.is_plain and bool(len(self.weights) > 1 or self.weights["degree"][0])

    def _local_posterior(self, points: Floats) -> Posterior:
        """Return what local polynomials say: mixtures of Beta(α + n_eff p̂, β + n_eff (1 − p̂))."""
        import betafield.choosing.local as local

        scaled, shapes, weights = self.units.scaled(points), self.shapes(points), self.weights
        share, worth = np.empty((2, len(scaled), len(weights)))
        for relevance in np.unique(weights["relevance"], axis=0):
            these = (weights["relevance"] == relevance).all(axis=1)
            share[:, these], worth[:, these] = local.estimates(
                self.windows_for(relevance, gather=True),
                scaled * relevance,
                weights["width"][these],
                weights["degree"][these],
                _tallied,
                self.options.n_jobs,
            )
        alpha, beta = shapes[:, 1:] + worth * share, shapes[:, :1] + worth * (1.0 - share)
        if len(weights) == 1:
            return Beta(alpha[:, 0], beta[:, 0])
        return Mixture.of_betas(np.log(weights["weight"]), alpha, beta)

    def _require_whole_affine(self) -> None:
        """Raise if trials are none of which a guarantee is known."""
        if len(self.classes) > 2:
            raise ValueError(
                f"band: this model has {len(self.classes)} classes; guarantees are for two"
            )
        if self.polynomials:
            raise ValueError(
                "band: this model has learned from polynomial contexts; guarantees are for trials "
                "without contexts and for affine contexts"
            )
        if self.windows.has_sizes or has_fractions(self.windows.totals):
            raise ValueError(
                "band: this model has learned from fractional weights, and a fraction of a trial "
                "has no outcome of its own; guarantees are for whole weights"
            )

    def _require_alike(self, other: Field) -> None:
        """Raise unless trials of the other field mean the same here."""
        if self.windows.metric != other.windows.metric:
            raise ValueError(
                f"other: its metric is {other.windows.metric}, here it is {self.windows.metric}"
            )
        if self.totals.distorted and other.totals.distorted and self.sharing != other.sharing:
            raise ValueError(
                f"other: its sharing is {other.sharing!r}, here it is {self.sharing!r}"
            )
        ranged = all(f.options.scales_by("auto", "range", "ard") for f in (self, other))
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
    require_equal("classes_", ours.classes, theirs.classes)


def require_equal(name: str, ours: Any, theirs: Any, hint: str = "they must be equal") -> None:
    if not np.array_equal(np.asarray(ours), np.asarray(theirs)):
        _raise_for(name, ours, theirs, hint)


def _raise_for(name: str, ours: Any, theirs: Any, hint: str) -> None:
    ours, theirs = (np.asarray(each).tolist() for each in (ours, theirs))
    raise ValueError(f"other: its {name} is {theirs}, here it is {ours}; {hint}")


def _tallied(counts: npt.NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the trials and the successes of places with these counts."""
    held = untallied(counts.T, 2).astype(np.float64)
    return held.sum(axis=1), np.ascontiguousarray(held[:, 1])
