"""The two kinds of field: of a process, or of windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import checks, fitting, learning, success, trials
from betafield.field import Field
from betafield.learning import Trials
from betafield.options import Options
from betafield.refusals import refused
from betafield.smooth import SmoothField

AnyField = Field | SmoothField


def taught(
    known: AnyField | None,
    options: Options,
    features: trials.Features,
    classes: npt.NDArray[Any],
    some: Trials,
) -> AnyField:
    """Return a field that includes these trials, of the kind that the options ask for."""
    if options.is_smooth:
        if isinstance(known, Field):
            raise kept_for_others(known, options)
        return fitting.taught(known, options, features, classes, some)
    if isinstance(known, SmoothField):
        raise kept_for_others(known, options)
    _require_independent(options, some)
    return learning.taught(known, options, features, classes, some)


def _require_independent(options: Options, some: Trials) -> None:
    """Raise for dependent trials, which windows would treat as independent."""
    for name, found in (("groups", some.group is not None), ("overdispersion", some.is_apart)):
        if found:
            require_dependent(name, options)


def require_dependent(name: str, options: Options) -> None:
    """Raise for this argument with windows, which treat all trials as independent."""
    if not options.is_smooth:
        raise ValueError(
            f"{name}: found with {_told(options)}, which counts every trial by itself; leave "
            "method and bandwidth at their defaults, or give method='process'"
        )


def classes_of(
    known: AnyField | None, outcome: npt.NDArray[Any], classes: Any, options: Options
) -> npt.NDArray[Any]:
    """Return all classes that may occur, the success last; raise if they differ from before.

    The default model can learn a rate from one class alone. Windows cannot: far from all trials
    they return ½, whatever was seen elsewhere, so there an error asks for the other class.
    """
    if known is None:
        found = trials.classes_of(outcome, classes, alone=options.is_smooth)
        return success.in_order(found, options.pos_label)
    before = np.sort(known.classes)
    said = before if classes is None else trials.classes_of(outcome, classes)
    if not np.array_equal(said, before):
        raise ValueError(
            f"classes: found {checks.spelled(said.tolist())}; the first call said {before.tolist()}"
        )
    return known.classes


def merged(ours: AnyField, theirs: AnyField) -> AnyField:
    """Return a field with the trials of both, which must be of the same kind."""
    if isinstance(ours, SmoothField) and isinstance(theirs, SmoothField):
        return ours.merged(theirs)
    if isinstance(ours, Field) and isinstance(theirs, Field):
        return ours.merged(theirs)
    raise ValueError(
        f"other: it was learned with {_told(theirs.options)}, this one with "
        f"{_told(ours.options)}; both must be of windows, or both of a process"
    )


def added(field: AnyField, some: Trials) -> AnyField:
    """Return a field that includes these trials; estimates are not renewed yet."""
    if isinstance(field, SmoothField):
        return fitting.added(field, some)
    _require_independent(field.options, some)
    return learning.added(field, some)


def kept_for_others(known: AnyField, options: Options) -> ValueError:
    """Return the error for trials that were stored for the other kind of field."""
    return refused(
        "method",
        f"found {_told(options)}; the trials so far were kept for {_told(known.options)}, so fit "
        "all trials again",
    )


def _told(options: Options) -> str:
    return f"method={options.method!r} and bandwidth={options.bandwidth!r}"
