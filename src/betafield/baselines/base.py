"""Shared by the baselines: two classes, and a failed fit that leaves the model unchanged."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from betafield import trials
from betafield.posteriors.base import blocks as slices

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]

# The most numbers held in memory at once, however many trials and points there are.
BLOCK = 1 << 21


class Observed(NamedTuple):
    """Trials: their points, which of them are successes, their features and classes."""

    points: Floats
    success: npt.NDArray[np.bool_]
    features: trials.Features
    classes: Labels


class TwoClasses(ClassifierMixin, BaseEstimator):
    """A classifier that learns from successes and failures."""

    classes_: Labels
    n_features_in_: int
    n_trials_: int

    def _observed(self, X: Any, y: Any) -> Observed:
        """Return validated trials. Nothing is stored yet, because later steps may fail."""
        points, features = trials.first_points(type(self).__name__, X)
        outcome = trials.labels(y, len(points))
        classes = _two_classes(outcome)
        return Observed(points, trials.outcomes(outcome, classes)[1], features, classes)

    def _note(self, seen: Observed) -> None:
        """Store the learned attributes, once the fit has succeeded."""
        self.classes_ = seen.classes
        self.n_features_in_, names = seen.features.number, seen.features.names
        self.n_trials_ = len(seen.points)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _chosen(self, probability: Floats) -> Labels:
        """Return the more probable class; the first one in case of a tie."""
        return np.asarray(self.classes_[np.argmax(probability, axis=1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def both(success: Floats) -> Floats:
    """Return the probabilities of failure and success, of shape (m, 2)."""
    return np.stack([1.0 - success, success], axis=1)


def blocks(n_points: int, n_trials: int) -> list[slice]:
    """Cut points into blocks small enough to be compared with all trials at once.

    Examples
    --------
    >>> [block.stop for block in blocks(n_points=5, n_trials=BLOCK // 2)]
    [2, 4, 6]
    """
    return slices(n_points, BLOCK // n_trials)


def _two_classes(y: Labels) -> Labels:
    """Return the sorted classes of y; raise unless there are two."""
    classes = np.unique(y)
    if len(classes) < 2:
        found = f"only one class, {classes.tolist()}" if len(classes) else "no class"
        raise ValueError(f"y: found {found}; two are needed")
    if len(classes) > 2:
        raise ValueError(
            f"y: found {len(classes)} classes, {classes.tolist()}; two are needed. "
            "Only binary classification is supported. The type of the target is multiclass"
        )
    return classes
