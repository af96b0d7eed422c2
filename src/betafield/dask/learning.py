"""From partitions to a field: a survey of all trials, then windows or sums on workers."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import dask
import numpy as np
import numpy.typing as npt
from dask.delayed import Delayed, delayed

from betafield import checks, fitting, methods, priors, success, trials, units
from betafield.dask.partitions import (
    Partition,
    Regions,
    about,
    client_in_use,
    computed,
    in_tree,
    joint,
    together,
)
from betafield.dask.tasks import (
    Look,
    checked,
    cornered,
    exact_sums,
    joined,
    levels_of,
    looked_at,
    summed,
    union,
)
from betafield.dask.windows import AnyField, SpreadField, Windows
from betafield.evidence.columns import require_total
from betafield.field import Field
from betafield.learning import NOTHING_LEARNED
from betafield.options import Options
from betafield.refusals import refused
from betafield.smooth import SmoothField
from betafield.sums import Sums

Floats = npt.NDArray[np.float64]
Inputs = list[tuple[str, Delayed]]


def taught(
    known: AnyField | None,
    options: Options,
    found: Sequence[Partition],
    classes: Any,
    by_space: bool,
) -> AnyField:
    """Return a field of the requested kind that includes the trials of these partitions."""
    if known is not None and isinstance(known, SmoothField) != options.is_smooth:
        raise methods.kept_for_others(known, options)
    inputs = _inputs(known, found, options)
    if isinstance(known, SpreadField):
        return _added(known.asked_for(options), inputs)
    if isinstance(known, SmoothField):
        return _summed(known.asked_for(options), inputs)
    if options.is_smooth:
        return _first_sums(options, inputs, classes)
    return _added(_begun(options, inputs, classes, by_space), inputs)


def merged(one: AnyField, other: AnyField) -> AnyField:
    """Return a field with the trials of both, which must be of one kind."""
    if isinstance(one, SpreadField) and isinstance(other, SpreadField):
        return _merged(one, other)
    found = methods.merged(one, other)
    assert isinstance(found, SmoothField)
    return found


def _inputs(known: AnyField | None, found: Sequence[Partition], options: Options) -> Inputs:
    """Return the checked contents of all partitions, with their names."""
    features = None if known is None else known.features
    # Windows on workers do not support categories.
    asked = options.asked if options.is_smooth else trials.NUMBERS
    reads = [delayed(checked)(part.name, part.batch, features, asked) for part in found]
    if known is None and client_in_use() is not None:
        reads = list(dask.persist(*reads))  # a cluster has room to keep them, so they are read once
    return [(part.name, read) for part, read in zip(found, reads, strict=True)]


# Windows, which stay on the workers ---------------------------------------------------------


def _added(field: SpreadField, inputs: Inputs) -> SpreadField:
    """Return the field with the trials of these partitions added."""
    names, reads = zip(*inputs, strict=True)
    added = field.windows.learned(without_trials(field), names, reads)
    totals = field.totals.plus(added.seen)
    if not totals.trials:
        raise ValueError(NOTHING_LEARNED)
    every = union(field.polynomials, *added.polynomials)
    sharing = field.options.sharing if added.seen.distorted else field.sharing
    windows = field.windows.merge(added).counted(every)
    return field.holding(windows, totals, every, sharing).settled()


def _merged(one: SpreadField, other: SpreadField) -> SpreadField:
    """Return a field with the trials of both, counted by the polynomials of both."""
    every = union(one.polynomials, other.polynomials)
    ours, theirs = (
        field.holding(field.windows.counted(every), field.totals, every) for field in (one, other)
    )
    return ours.merged(theirs).settled()


def without_trials(field: SpreadField) -> Field:
    """Return a field without trials, for workers, that knows how trials were counted so far."""
    bare = Field.begun(field.options, field.features, field.classes, field.bounds, field.units)
    return bare.holding(bare.windows, field.totals, (), field.sharing)


# Sums by place, brought to the client --------------------------------------------------------


def _first_sums(options: Options, inputs: Inputs, classes: Any) -> SmoothField:
    """Return the settled field of a process with the trials of all partitions."""
    _, features, every = _surveyed(options, inputs, classes, wants_corners=False)
    nowhere = np.empty((0, len(features.numeric)))
    units.check_bounds(options.bounds, nowhere, np.empty(0, dtype=np.bool_))
    units.checked_scale(options.scale, len(features.numeric))
    field = _summed(fitting.begun(options, features, every), inputs)
    if not field.totals.trials:
        raise ValueError(NOTHING_LEARNED)
    return field.settled()


def _summed(field: SmoothField, inputs: Inputs) -> SmoothField:
    """Return a field that includes the trials of these partitions."""
    more = _sums(fitting.begun(field.options, field.features, field.classes), inputs)
    totals = field.totals.plus(more.totals)
    require_total("trials", totals.number())
    if not more.totals.trials:
        return field
    return field.learned(more).featured(_levelled(field.features, inputs))


def _levelled(features: trials.Features, inputs: Inputs) -> trials.Features:
    """Return features with the levels of categories in these partitions added."""
    if not features.categories.columns:
        return features
    every = computed([delayed(levels_of)(read) for _, read in inputs], inputs)
    known = features.categories
    for each in every:
        known = known if each is None else known.plus(each)
    return features._replace(categories=known)


def _sums(bare: SmoothField, inputs: Inputs) -> Sums:
    """Return the trials of all partitions by place, joined on the workers."""
    names, reads = zip(*inputs, strict=True)
    groups, model = together(reads), delayed(bare, pure=False, traverse=False)
    parts = [delayed(summed)(model, *(reads[i] for i in group)) for group in groups]
    if client_in_use() is not None:
        parts = list(dask.persist(*parts))  # so that the cluster can tell which part failed
    blamed = [joint([names[i] for i in group]) for group in groups]
    (found,) = computed([in_tree(joined, parts)], list(zip(blamed, parts, strict=True)))
    every: Sums = found
    return every


# Survey ------------------------------------------------------------------------------------


class Survey(NamedTuple):
    """A survey of all partitions: a look at each, and what they have in common."""

    looks: Sequence[Look]
    features: trials.Features
    classes: npt.NDArray[Any]


def _surveyed(options: Options, inputs: Inputs, classes: Any, *, wants_corners: bool) -> Survey:
    """Return a survey of all partitions; raise if they do not fit together."""
    given = None if classes is None else _in_order(options, np.empty(0), classes)
    looks = computed(
        [delayed(looked_at)(read, given, options, wants_corners) for _, read in inputs], inputs
    )
    _require_something(looks)
    _require_same_features(looks)
    seen = [look for look in looks if look.rows]
    features = seen[0].features.unseen()
    return Survey(looks, features, _in_order(options, _labels(seen), classes))


def _in_order(options: Options, labels: npt.NDArray[Any], classes: Any) -> npt.NDArray[Any]:
    """Return all classes, with the success last."""
    found = trials.classes_of(labels, classes, alone=options.is_smooth)
    return success.in_order(found, options.pos_label)


def _begun(options: Options, inputs: Inputs, classes: Any, by_space: bool) -> SpreadField:
    """Return a field without trials, with the features, classes and units of all partitions."""
    _require_straight(options)
    wants = options.bounds is None or options.scales_by("std")
    looks, features, every = _surveyed(options, inputs, classes, wants_corners=wants)
    corners = _corners(options, looks, inputs, every) if wants else None
    domain, measured = _measured(options, features.number, inputs, every, corners)
    field = SpreadField.begun(options, features, every, domain, measured)
    regions = _regions(looks, measured) if by_space else None
    windows = Windows(features.number, options.metric, regions=regions)
    return field.holding(windows, field.totals)


def _require_straight(options: Options) -> None:
    """Raise for features that wrap around, which windows on workers do not support."""
    for name, found in (("periodic", options.periodic), ("geographic", options.geographic)):
        if found:
            raise refused(
                name,
                f"found {checks.spelled(found)} with windows on dask; leave method and "
                "bandwidth at their defaults, or fit a local model",
            )


def _regions(looks: Sequence[Look], measured: units.Units) -> Regions:
    """Return as many regions as there are partitions, cut by a sample of their points."""
    sample = np.concatenate([look.sample for look in looks if look.rows])
    return Regions.cut(measured.scaled(sample), len(looks))


def _corners(
    options: Options, looks: Sequence[Look], inputs: Inputs, classes: npt.NDArray[Any]
) -> Floats:
    """Return the lowest and the highest coordinates of all informative trials."""
    late = [read for look, (_, read) in zip(looks, inputs, strict=True) if look.is_late]
    more = computed([delayed(cornered)(read, classes, options) for read in late], inputs)
    ends = [look.corners for look in looks if look.corners is not None]
    found = [each for each in (*ends, *more) if len(each)]
    if not found:
        raise ValueError(NOTHING_LEARNED)
    return np.concatenate(found)


def _measured(
    options: Options,
    d: int,
    inputs: Inputs,
    classes: npt.NDArray[Any],
    corners: Floats | None,
) -> tuple[Floats, units.Units]:
    """Return the domain and the units."""
    nowhere = np.empty((0, d))
    units.check_bounds(options.bounds, nowhere, np.empty(0, dtype=np.bool_))
    if not callable(options.prior):
        priors.shapes(options.prior, nowhere, len(classes))
    domain = units.domain(options.bounds, nowhere if corners is None else corners)
    is_std = options.scales_by("std")
    scale = "range" if is_std else options.scale
    measured = units.measure(scale, domain, nowhere, lambda: np.empty(0))
    if corners is not None and is_std:
        found = _deviations(options, inputs, classes, corners)
        measured = units.Units(measured.origin, np.where(found > 0, found, np.inf))
    return domain, measured


def _deviations(
    options: Options, inputs: Inputs, classes: npt.NDArray[Any], corners: Floats
) -> Floats:
    """Return the standard deviations of all trials, exactly as on one machine."""

    def sums(column: Callable[..., Floats]) -> Floats:
        of = functools.partial(delayed(exact_sums), column=column)
        some = computed([of(read, classes, options) for _, read in inputs], inputs)
        found = [each for each in some if each]
        return np.array([math.fsum(itertools.chain(*each)) for each in zip(*found, strict=True)])

    return units.deviations(corners.min(axis=0), np.ptp(corners, axis=0), sums)


def _require_something(looks: Sequence[Look]) -> None:
    """Raise if no partition has a trial with weight."""
    if not any(look.rows for look in looks):
        raise refused("X", "found 0 rows in all partitions; at least one is needed")
    if all(look.is_void for look in looks):
        raise ValueError(
            "sample_weight, trials: all are zero in all partitions; at least one must be positive"
        )


def _require_same_features(looks: Sequence[Look]) -> None:
    """Raise for the first partition whose features are not those of the first one with rows."""
    first, *others = [look for look in looks if look.rows]
    names = ("n_features_in_", "feature_names_in_")
    for look in others:
        for name, ours, theirs in zip(names, first.features[:2], look.features[:2], strict=True):
            if not np.array_equal(np.asarray(theirs), np.asarray(ours)):
                what = f"its {name} is {_listed(theirs)}, that of {first.name} is {_listed(ours)}"
                raise about(look.name, ValueError(), f"{what}; they must be equal")
        one, other = (each.features.categories.columns for each in (look, first))
        if one != other:
            what = f"its columns {list(one)} are categories, those of {first.name} {list(other)}"
            raise about(look.name, ValueError(), f"X: {what}; name them in categorical_features")


def _labels(looks: Sequence[Look]) -> npt.NDArray[Any]:
    """Return the labels of all partitions; raise if some are texts and others numbers."""
    first, *others = looks
    for look in others:
        if _is_text(look.labels) != _is_text(first.labels):
            what = f"found y such as {_listed(look.labels[:1])}, where {first.name} has"
            rule = "text and numbers cannot both be labels of one y"
            raise about(look.name, ValueError(), f"{what} {_listed(first.labels[:1])}; {rule}")
    return np.concatenate([look.labels for look in looks])


def _is_text(labels: npt.NDArray[Any]) -> bool:
    return any(isinstance(label, str | bytes) for label in labels.tolist())


def _listed(values: Any) -> str:
    return str(np.asarray(values).tolist())
