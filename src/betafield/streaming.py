"""Learning from files: names, classes and domain first, then the rows in batches."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from betafield import distorted, fitting, learning, methods, priors, success, trials, units
from betafield.learning import Trials
from betafield.refusals import refused

if TYPE_CHECKING:
    from betafield.files import Batch, Rows
    from betafield.methods import AnyField
    from betafield.options import Options

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]


def learned(owner: str, field: AnyField, rows: Rows, is_apart: bool = False) -> AnyField:
    """Return a begun field with all rows learned; errors call the estimator `owner`.

    `is_apart` keeps rows apart, because they may be overdispersed.
    """
    for batch in rows.read("learning"):
        with batch.named():
            some = _trials(owner, batch, field.features, field.classes)
            field = methods.added(field, some._replace(is_apart=is_apart))
    if not field.totals.trials:
        raise rows.nothing("no row that teaches anything")
    if rows.dropped.number:
        warnings.warn(f"X: {rows.dropped}", stacklevel=3)
    with rows.working("choosing"):
        return field.in_order().settled()


def begun(owner: str, options: Options, rows: Rows) -> AnyField:
    """Return a field without trials, with the features, classes and domain of the files."""
    if options.scales_by("std"):
        raise refused(
            "scale",
            "found 'std', for which files would have to be read twice more; give the "
            "standard deviations as numbers, one per feature",
        )
    nowhere, features = trials.first_points(owner, rows.header(), options.asked)
    features = features.unseen()
    units.check_bounds(options.bounds, nowhere[:, features.numeric], np.zeros(1, dtype=np.bool_))
    classes = success.in_order(rows.classes(alone=options.is_smooth), options.pos_label)
    if not callable(options.prior):
        priors.shapes(options.prior, nowhere, len(classes))
    if options.is_smooth:
        units.checked_scale(options.scale, len(features.numeric))
        return fitting.begun(options, features, classes)
    corners = nowhere
    if options.bounds is None:
        corners = _corners(owner, options, features, classes, rows)
    return learning.begun(options, features, classes, corners)


def _corners(
    owner: str, options: Options, features: trials.Features, classes: Labels, rows: Rows
) -> Floats:
    """Return the lowest and highest coordinates of trials that carry information."""
    corners, longitudes = np.empty((0, features.number)), np.zeros(0)
    wraps = options.wraps(features)
    for batch in rows.read("bounds"):
        with batch.named():
            some = _trials(owner, batch, features, classes)
            points, _ = learning.located(None, options, features, len(classes), some)
        ends = np.concatenate([corners, points])
        if len(ends):
            corners = np.stack([ends.min(axis=0), ends.max(axis=0)])
        if wraps.earth is not None:
            longitudes = np.union1d(longitudes, points[:, wraps.earth[0]])
    if not len(corners):
        raise rows.nothing("no row that teaches anything")
    if wraps.earth is not None:  # the extremes do not determine the arc
        more = np.repeat(corners[:1], len(longitudes), axis=0)
        more[:, wraps.earth[0]] = longitudes
        corners = np.concatenate([corners, more])
    return corners


def _trials(owner: str, batch: Batch, features: trials.Features, classes: Labels) -> Trials:
    """Return some rows of a file, validated; outcomes are indices of the sorted classes."""
    points, seen = trials.further_points(owner, batch.points(), features)
    t = len(points)
    counts, context = batch.counts(), distorted.context(batch.context(), t)
    group = trials.groups(batch.groups(), t, part=True)
    if counts is not None:
        held = trials.binomial(*counts, t, part=True)
        return Trials(points, held, None, context, group, features=seen)
    columns = trials.outcomes(batch.outcomes(), np.argsort(classes))
    weight = trials.weights(batch.weights(), t, part=True)
    return Trials(points, columns, weight, context, group, features=seen)
