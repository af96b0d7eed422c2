"""From validated trials to the default field.

The counterpart of `learning`, which does this for windows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import learning, monotonic, trials, units
from betafield.evidence.encode import counted
from betafield.families import ContextFamily
from betafield.learning import Trials
from betafield.options import Options
from betafield.refusals import refused
from betafield.smooth import SmoothField
from betafield.sums import Sums

# Largest number of groups of trials.
MOST_GROUPS = 1_000


def require_monotone(
    options: Options, features: trials.Features, classes: npt.NDArray[Any]
) -> None:
    """Raise unless a field with these features and classes can be monotone as requested."""
    asked = options.monotonic_cst, features.number, features.names
    monotonic.require(*asked, len(classes))
    signs = monotonic.signs(*asked)
    for a in features.categories.columns:
        if signs[a]:
            raise refused(
                "monotonic_cst",
                f"found {signs[a]} for {features.named(a)}, which is a category; "
                "levels have no order, so name features that are numbers",
            )


def begun(options: Options, features: trials.Features, classes: npt.NDArray[Any]) -> SmoothField:
    """Return a field without trials."""
    learning.require_features(options, features)
    require_monotone(options, features, classes)
    return SmoothField(options, features, classes, Sums(features.number, len(classes)))


def taught(
    known: SmoothField | None,
    options: Options,
    features: trials.Features,
    classes: npt.NDArray[Any],
    some: Trials,
) -> SmoothField:
    """Return a field that includes these trials, settled if they are the first."""
    learning.require_features(options, features)
    units.checked_scale(options.scale, len(features.numeric))
    units.require_positive(options.scale, features.numbers(some.points), features.numeric_names)
    require_monotone(options, features, classes)
    if known is None:
        first = added(begun(options, features, classes), some)
        if not first.totals.trials:
            raise ValueError(learning.NOTHING_LEARNED)
        units.require_span(first.numeric_bounds)
        return first.settled()
    return added(known.asked_for(options), some)


def added(field: SmoothField, some: Trials) -> SmoothField:
    """Return a field that includes these trials; raise for impossible or out-of-bounds ones."""
    more = _summed(field, some)
    if not more.totals.trials:
        return field
    return field.learned(more).featured(some.features)


def supposing(field: SmoothField, some: Trials) -> SmoothField:
    """Return the field as if these trials had been made, without renewing the estimates."""
    return field.supposing(_summed(field, some))


def _summed(field: SmoothField, some: Trials) -> Sums:
    """Return the sums of trials, after checking that the field may learn from them."""
    learning.require_two_classes(len(field.classes), some.context)
    _require_few_groups(field, some)
    family, context = None, some.context
    if isinstance(context, ContextFamily):
        family, context = context, context.at_means()
    seen = counted(some.columns, some.weight, context)
    present = seen.present(len(some.points))
    points = learning.placed_numbers(field.options, field.features, some.points, present)
    is_apart = some.is_apart or field.sums.is_apart
    return Sums.of(points, len(field.classes), seen, some.group, is_apart, family)


def _require_few_groups(field: SmoothField, some: Trials) -> None:
    """Raise if there are more groups than a process can have effects for."""
    if some.group is None:
        return
    number = len(np.union1d(field.sums.groups, some.group))
    if number > MOST_GROUPS:
        raise refused(
            "groups",
            f"found {number} groups; at most {MOST_GROUPS:,} are possible, so join those "
            "that are alike",
        )
