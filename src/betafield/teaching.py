"""From the arguments of `fit` and its relatives to a field: validate all, then learn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import categories, distorted, learning, methods, success, trials
from betafield.learning import Trials
from betafield.methods import AnyField
from betafield.options import Options

Floats = npt.NDArray[np.float64]


class Before(NamedTuple):
    """An estimator before it learns.

    Parameters
    ----------
    owner : str
        Its name in errors.
    options : Options
    known : Field or SmoothField, or None
        What it has learned so far, if it is not to forget that.
    """

    owner: str
    options: Options
    known: AnyField | None


def by_labels(
    before: Before,
    X: Any,
    y: Any,
    classes: Any,
    *,
    sample_weight: Any,
    context: Any,
    groups: Any,
) -> AnyField:
    """Return a field that includes these trials."""
    _, options, known = before
    points, features = _points(before, X)
    t = len(points)
    outcome, weight = trials.labels(y, t), trials.weights(sample_weight, t)
    every = methods.classes_of(known, outcome, classes, options)
    columns, context = trials.outcomes(outcome, every), distorted.context(context, t)
    group = trials.groups(groups, t, part=known is not None)
    some = learning.present(Trials(points, columns, weight, context, group, features=features))
    return methods.taught(known, options, features, every, some)


def by_counts(
    before: Before,
    X: Any,
    successes: Any,
    held: Any,
    *,
    context: Any,
    groups: Any,
    overdispersion: Any,
) -> AnyField:
    """Return a field that includes these binomial rows."""
    _, options, known = before
    points, features = _points(before, X)
    t = len(points)
    classes = success.of_counts(options.pos_label) if known is None else known.classes
    require_two(classes)
    columns, context = trials.binomial(successes, held, t), distorted.context(context, t)
    group = trials.groups(groups, t, part=True)
    is_apart = trials.overdispersed(overdispersion, group is not None)
    some = learning.present(Trials(points, columns, None, context, group, is_apart, features))
    return methods.taught(known, options, features, classes, some)


def require_two(classes: npt.NDArray[Any]) -> None:
    """Raise for counts if the model has more than two classes."""
    if len(classes) != 2:
        raise ValueError(f"successes: this model has {len(classes)} classes; counts need two")


def _points(before: Before, X: Any) -> tuple[Floats, trials.Features]:
    """Return the points of trials, and their features."""
    owner, options, known = before
    if known is None:
        return trials.first_points(owner, X, options.asked)
    may_miss = options.missing == "drop"
    if isinstance(options.categorical_features, str):
        categories.require_alike(X, known.features.categories)
    return trials.further_points(owner, X, known.features, may_miss=may_miss)
