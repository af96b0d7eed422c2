"""From the arguments of `fit` and its relatives to a field: validate all, then learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import categories, distorted, learning, methods, success, trials
from betafield.learning import Trials
from betafield.methods import AnyField
from betafield.options import Options

Floats = npt.NDArray[np.float64]


def by_labels(
    owner: str,
    options: Options,
    known: AnyField | None,
    X: Any,
    y: Any,
    classes: Any,
    *,
    sample_weight: Any,
    context: Any,
    groups: Any,
) -> AnyField:
    """Return a field that includes these trials; errors call the estimator `owner`."""
    points, features = _points(owner, known, X, options)
    t = len(points)
    outcome, weight = trials.labels(y, t), trials.weights(sample_weight, t)
    every = methods.classes_of(known, outcome, classes, options)
    columns, context = trials.outcomes(outcome, every), distorted.context(context, t)
    group = trials.groups(groups, t, part=known is not None)
    some = learning.present(Trials(points, columns, weight, context, group, features=features))
    return methods.taught(known, options, features, every, some)


def by_counts(
    owner: str,
    options: Options,
    known: AnyField | None,
    X: Any,
    successes: Any,
    held: Any,
    *,
    context: Any,
    groups: Any,
    overdispersion: Any,
) -> AnyField:
    """Return a field that includes these binomial rows."""
    points, features = _points(owner, known, X, options)
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


def _points(
    owner: str, known: AnyField | None, X: Any, options: Options
) -> tuple[Floats, trials.Features]:
    """Return the points of trials, and their features."""
    if known is None:
        return trials.first_points(owner, X, options.asked)
    may_miss = options.missing == "drop"
    if isinstance(options.categorical_features, str):
        categories.require_alike(X, known.features.categories)
    return trials.further_points(owner, X, known.features, may_miss=may_miss)
