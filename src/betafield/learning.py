"""From validated trials to a field of windows: their evidence, their units, their places."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import categories, distorted, monotonic, priors, trials, units
from betafield.evidence import Evidence, encode
from betafield.evidence.columns import Columns
from betafield.families import ContextFamily
from betafield.field import Field
from betafield.options import Options
from betafield.refusals import refused
from betafield.sums import Sums
from betafield.wraps import Wraps, require_bounds, require_free

Floats = npt.NDArray[np.float64]

NOTHING_LEARNED = (
    "context: every trial has equal coefficients, so that none says anything about π; "
    "at least one must have different ones"
)


class Trials(NamedTuple):
    """Validated trials.

    Parameters
    ----------
    points : array of shape (t, d)
    columns : array of shape (K, t)
        Number of trials per class.
    weight : array of shape (t,) or None
    context : array of shape (t, p + 1), ContextFamily of t rows, or None
    group : array of shape (t,) or None
        One number per group of trials.
    is_apart : bool
        Whether rows may be overdispersed, so that they are kept apart.
    features : Features or None
        Their features, with the levels of categories that occur.
    """

    points: Floats
    columns: Columns
    weight: Floats | None = None
    context: distorted.Context | None = None
    group: Floats | None = None
    is_apart: bool = False
    features: trials.Features | None = None

    def taken(self, rows: npt.NDArray[np.intp]) -> Trials:
        """Return the trials of these rows."""
        return self._replace(
            points=self.points[rows],
            columns=self.columns[:, rows],
            weight=None if self.weight is None else self.weight[rows],
            context=None if self.context is None else self.context[rows],
            group=None if self.group is None else self.group[rows],
        )


def begun(
    options: Options,
    features: trials.Features,
    classes: npt.NDArray[np.generic],
    points: Floats,
    weigh: Callable[[], Floats] = lambda: np.ones(1),
) -> Field:
    """Return a field without trials whose domain and units suit these points.

    `weigh()` returns the weight of each point; it is called only for standard deviations.
    """
    numbers, wraps = features.numbers(points), options.wraps(features).among(features.numeric)
    domain = units.domain(options.bounds, numbers)
    if options.bounds is None and wraps:
        domain = wraps.domain(domain, lambda a: numbers[:, a])
    measured = units.measure(options.scale, domain, numbers, weigh, wraps)
    return _begun(options, features, classes, domain, measured)


def _begun(
    options: Options,
    features: trials.Features,
    classes: npt.NDArray[np.generic],
    domain: Floats,
    measured: units.Units,
) -> Field:
    """Return a field without trials; levels of categories are out of each other's reach."""
    every = np.zeros((features.number, 2))
    every[features.numeric] = domain
    own = measured.among(features.numeric, every, options.wraps(features))
    return Field.begun(options, features, classes, every, own)


def taught(
    known: Field | None,
    options: Options,
    features: trials.Features,
    classes: npt.NDArray[np.generic],
    some: Trials,
) -> Field:
    """Return a field that includes these trials."""
    require_features(options, features)
    if known is None:
        return started(options, features, classes, some)
    before = known.asked_for(options)
    after = added(before, some)
    return known if after is before else after


def started(
    options: Options, features: trials.Features, classes: npt.NDArray[np.generic], some: Trials
) -> Field:
    """Return a field with the first trials; raise if none of them carries information."""
    points, evidence = located(None, options, features, len(classes), some)
    if not len(points):
        raise ValueError(NOTHING_LEARNED)
    categories.require_few(features.categories)
    field = begun(options, features, classes, points, lambda: evidence.weights(len(classes)))
    return field.counted(field.placed(points, evidence), evidence).settled()


def added(field: Field, some: Trials) -> Field:
    """Return a field that includes these trials."""
    points, evidence = located(field, field.options, field.features, len(field.classes), some)
    if not len(points):
        return field
    counted = field.counted(field.placed(points, evidence), evidence)
    return counted.featured(some.features)


def located(
    known: Field | None,
    options: Options,
    features: trials.Features,
    n_classes: int,
    some: Trials,
) -> tuple[Floats, Evidence]:
    """Return the points of trials that carry information, and their evidence.

    Raises for points out of bounds, impossible outcomes, and invalid priors.
    """
    evidence = evident(known, options, n_classes, some)
    present = evidence.present(len(some.points))
    points = placed_numbers(options, features, some.points, present)
    if not callable(options.prior):
        priors.shapes(options.prior, some.points, n_classes)
    return points if evidence.rows is None else points[evidence.rows], evidence


def placed(
    options: Options,
    wraps: Wraps,
    points: Floats,
    present: npt.NDArray[np.bool_],
    columns: Sequence[Any] | None = None,
) -> Floats:
    """Return points as places, with periodic features wrapped into one period; raise if invalid."""
    if not wraps:
        units.check_bounds(options.bounds, points, present, columns)
        return points
    wraps.require(points, columns=columns)
    points, bounds = wraps.wrapped(points), options.bounds
    held = points if bounds is None else wraps.unrolled(points, np.asarray(bounds))
    units.check_bounds(bounds, held, present, columns)
    return points


def placed_numbers(
    options: Options, features: trials.Features, points: Floats, present: npt.NDArray[np.bool_]
) -> Floats:
    """Return points as places; categories have neither bounds nor periods and stay unchanged."""
    wraps, numeric = options.wraps(features), features.numeric
    found = placed(
        options, wraps.among(numeric), features.numbers(points), present, features.numeric_names
    )
    if not wraps:
        return points
    out = points.copy()
    out[:, numeric] = found
    return out


def require_features(options: Options, features: trials.Features) -> None:
    """Raise for options that do not suit periodic or geographic features."""
    wraps, numeric = options.wraps(features), features.numeric
    for column in features.categories.columns:
        if wraps.scales and wraps.scales[column]:
            what = "periodic" if wraps.periods[column] else "geographic"
            raise refused(
                what,
                f"found {features.named(column)}, whose values are categories; only "
                "numbers wrap around",
            )
    require_free(wraps, monotonic.signs(options.monotonic_cst, features.number, features.names))
    nowhere = np.empty((0, len(numeric)))
    units.check_bounds(options.bounds, nowhere, np.empty(0, dtype=np.bool_))
    require_bounds(wraps.among(numeric), options.bounds)


def require_two_classes(n_classes: int, context: distorted.Context | None) -> None:
    """Raise for contexts with more than two classes."""
    if context is not None and n_classes > 2:
        raise refused(
            "context", f"found one where there are {n_classes} classes; contexts are for two"
        )


def in_windows(
    options: Options,
    features: trials.Features,
    classes: npt.NDArray[np.generic],
    bounds: Floats,
    sums: Sums,
    rates: Floats | None = None,
) -> Field:
    """Return a field of windows with the trials of these sums.

    Unknown rates are set to `rates`, or to the means of their priors if that is None.
    """
    domain, wraps = bounds[features.numeric], options.wraps(features).among(features.numeric)
    measured = units.measure(options.scale, domain, domain.T, lambda: np.ones(2), wraps)
    field = _begun(options._replace(bounds=None), features, classes, domain, measured)
    for part in sums.distinct().trials(rates):  # so that fractions are rounded only once per place
        field = added(field, Trials(*part))
    return dataclasses.replace(field, options=options)


def evident(known: Field | None, options: Options, n_classes: int, some: Trials) -> Evidence:
    """Return the evidence of trials, wherever they were made; raise for impossible outcomes."""
    if some.context is None:
        return encode.plain(some.columns, some.weight)
    require_two_classes(n_classes, some.context)
    context = known_context(some.context, options)
    if known is not None and known.totals.distorted and options.sharing != known.sharing:
        raise refused(
            "sharing",
            f"found {options.sharing!r}; the trials so far were kept for "
            f"{known.sharing!r}, so fit all trials again",
        )
    polynomials = () if known is None else known.polynomials
    return encode.distorted(some.columns, some.weight, context, options.sharing, polynomials)


def known_context(context: distorted.Context, options: Options) -> Floats:
    """Return contexts for windows; raise for unknown rates, which windows cannot learn."""
    if isinstance(context, ContextFamily):
        raise refused(
            "context",
            f"found rates that are not known, {context!r}, with method="
            f"{options.method!r} and bandwidth={options.bandwidth!r}; windows need known rates, so "
            "leave method and bandwidth at their defaults, or give numbers",
        )
    return context


def present(some: Trials) -> Trials:
    """Return trials without those in which a feature is missing; warn how many there were."""
    is_missing = np.isnan(some.points)
    if not is_missing.any():
        return some
    is_there = np.asarray(~is_missing.any(axis=1))
    if not is_there.any():
        raise refused("X", "every row has a missing value; at least one row without is needed")
    warnings.warn(
        f"X: left out {np.count_nonzero(~is_there)} of {len(is_there)} rows, in which a feature is "
        f"missing; the first is row {int(np.argmin(is_there))}",
        stacklevel=5,
    )
    return some.taken(np.flatnonzero(is_there))
