"""The model of an experiment, which learns trial by trial."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield.decisions.space import Space
from betafield.estimators import SmoothBetaClassifier

Floats = npt.NDArray[np.float64]


class Learner:
    """A model for a space, that of the user or one by default.

    Parameters
    ----------
    model : SmoothBetaClassifier
    is_default : bool, default=False
        Whether it may change how it learns.
    many : int, default=2048
        Trials from which on a default model has one window, which is quick to ask.

    Attributes
    ----------
    model : SmoothBetaClassifier
    """

    def __init__(
        self, model: SmoothBetaClassifier, is_default: bool = False, many: int = 1 << 11
    ) -> None:
        self.model = model
        self.is_default = is_default
        self._many = many

    @classmethod
    def of(cls, model: Any, space: Space) -> Learner:
        """Return a learner with a copy of the model, or with one by default."""
        bounds = [tuple(ends) for ends in space.bounds]
        if model is None:
            return cls(SmoothBetaClassifier(bounds=bounds), is_default=True)
        if not isinstance(model, SmoothBetaClassifier):
            raise TypeError(
                f"model: found {type(model).__name__}; a SmoothBetaClassifier is needed"
            )
        own = copy.copy(model)
        if has_learned(own):
            _require_fitting(own, space)
        elif own.bounds is None:
            own.set_params(bounds=bounds)
        return cls(own)

    def learn(self, row: Floats, outcome: bool, context: Floats | None) -> None:
        """Teach the model one trial, or raise and change nothing."""
        model = copy.copy(self.model)
        if not has_learned(model):
            model.partial_fit(row[None], [outcome], classes=[False, True], context=context)
        else:
            if self.is_default and model.n_trials_ >= self._many:
                model.set_params(bandwidth="loo")
            model.partial_fit(row[None], model.classes_[[int(outcome)]], context=context)
        self.model = model


def has_learned(model: SmoothBetaClassifier) -> bool:
    """Return whether a model has seen a trial."""
    return hasattr(model, "n_trials_")


def _require_fitting(model: SmoothBetaClassifier, space: Space) -> None:
    """Raise unless what the model has learned is of this space."""
    if model.n_features_in_ != len(space.names):
        raise ValueError(
            f"model: found one with {model.n_features_in_} features; the space has "
            f"{len(space.names)}"
        )
    if len(model.classes_) != 2:
        raise ValueError(f"model: found one with {len(model.classes_)} classes; two are needed")
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        raise ValueError(
            f"model: found one with named features, {list(names)}; fit it to an array whose "
            f"columns are {', '.join(space.names)}"
        )
