"""The posteriors of arms: fields, which are immutable values.

Learning returns a new field. `supposing` returns one in which pending pulls have brought their
expected rewards, a fraction of a success each; its sums do not depend on their order.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from betafield import fitting, learning, priors, success, trials
from betafield.decisions.bandit.zoom import ZoomedField
from betafield.estimators import SmoothBetaClassifier
from betafield.learning import Trials
from betafield.methods import AnyField
from betafield.options import Options
from betafield.posteriors import Beta, Posterior
from betafield.smooth import SmoothField

Floats = npt.NDArray[np.float64]
CLASSES = (0, 1)


class ArmField(Protocol):
    """The interface of a field that a bandit needs."""

    def learned(self, rows: Floats, ends: npt.NDArray[Any], context: Any = None) -> Self:
        """Return the field after learning these trials."""

    def supposing(self, rows: Floats, mean: Floats) -> Self:
        """Return the field as if a trial at each row had brought its mean reward."""

    def posterior(self, points: Floats, part: slice = slice(None)) -> Posterior:
        """Return the posterior at some of the points; before the first trial, the prior."""


class ModelField:
    """The posterior of a `SmoothBetaClassifier`; before its first trial, the prior.

    Supposed trials are counted with the length scales and widths estimated from real ones. Before
    the first real trial, they are ignored.

    Parameters
    ----------
    model : SmoothBetaClassifier
    field : Field or SmoothField, default=None
        The model's field with supposed trials; None if there are none.

    Examples
    --------
    >>> field = ModelField(SmoothBetaClassifier(0.5, bounds=[(0, 1)]))
    >>> field = field.learned(np.array([[0.5]]), np.array([1]))
    >>> field.posterior(np.array([[0.4]]))
    Beta(alpha=[2.], beta=[1.])
    >>> field.supposing(np.array([[0.5]]), np.array([0.75])).posterior(np.array([[0.4]]))
    Beta(alpha=[2.75], beta=[1.25])
    """

    def __init__(self, model: SmoothBetaClassifier, field: AnyField | None = None) -> None:
        self._model = model
        is_new = not hasattr(model, "n_trials_")
        self._field = field if is_new or field is not None else model.field_

    def learned(self, rows: Floats, ends: npt.NDArray[Any], context: Any = None) -> Self:
        """Return the field after learning these trials."""
        model = copy.copy(self._model)
        return type(self)(model.partial_fit(rows, ends, classes=CLASSES, context=context))

    def supposing(self, rows: Floats, mean: Floats) -> Self:
        """Return the field as if a trial at each row had brought its mean reward."""
        if self._field is None:
            return self
        ends = np.repeat([[False], [True]], len(rows), axis=1).ravel()
        parts = Trials(
            np.vstack([rows, rows]),
            trials.outcomes(ends, np.array([False, True])),
            np.concatenate([1.0 - mean, mean]),
        )
        return type(self)(self._model, _supposing(self._field, parts))

    def posterior(self, points: Floats, part: slice = slice(None)) -> Posterior:
        """Return the posterior at some of the points; before the first trial, the prior."""
        if self._field is not None:
            return self._field.posterior(points[part])
        shapes = priors.shapes(self._model.prior, points[part], 2)
        return Beta(*np.broadcast_to(shapes, (len(points[part]), 2)).T[::-1])


def _supposing(field: AnyField, some: Trials) -> AnyField:
    """Return the field with these trials added, keeping length scales and widths."""
    if isinstance(field, SmoothField):
        return fitting.supposing(field, some)
    options = field.options._replace(bandwidth=field.width)
    return learning.added(dataclasses.replace(field, options=options), some)


def blank(model: Any, bounds: list[tuple[float, float]], lipschitz: float) -> ArmField:
    """Return a field without trials: with the options of a model, or a `ZoomedField`."""
    if model is None:
        return ZoomedField(bounds, lipschitz)
    if not isinstance(model, SmoothBetaClassifier):
        raise TypeError(f"model: found {type(model).__name__}; a SmoothBetaClassifier is needed")
    options = Options.of(model).checked()._replace(bounds=bounds)
    success.require_true(options.pos_label)
    return ModelField(SmoothBetaClassifier(**options._asdict()))
