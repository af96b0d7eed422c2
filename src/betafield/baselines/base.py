"""What the baselines share: two classes, and a failed fit that leaves the model as it was."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin

from betafield import trials
from betafield.posteriors.base import blocks as slices

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]

# Numbers that are held at once, whatever the numbers of trials and of points.
BLOCK = 1 << 21


class TwoClasses(ClassifierMixin, BaseEstimator):
    """A classifier that learns from successes and failures."""

    classes_: Labels
    n_features_in_: int

    def _draft(self) -> Self:
        """Return a copy of this model, to learn in its place until all has gone well."""
        draft = object.__new__(type(self))
        draft.__dict__ = dict(vars(self))
        return draft

    def _become(self, draft: Self) -> Self:
        """Take over what the draft has learned, all at once."""
        self.__dict__ = draft.__dict__
        return self

    def _learn_trials(self, X: Any, y: Any) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Return the points and which of them are successes, after noting features and classes."""
        points = trials.points(self, X, reset=True)
        outcome = trials.labels(y, len(points))
        self.classes_ = _two_classes(outcome)
        return points, trials.outcomes(outcome, self.classes_)[1]

    def _chosen(self, probability: Floats) -> Labels:
        """Return the more probable class; of equal ones the first."""
        return np.asarray(self.classes_[np.argmax(probability, axis=1)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def both(success: Floats) -> Floats:
    """Return the probabilities of failure and success, of shape (m, 2)."""
    return np.stack([1.0 - success, success], axis=1)


def blocks(n_points: int, n_trials: int) -> list[slice]:
    """Cut points into blocks that all trials can be compared with at once.

    Examples
    --------
    >>> [block.stop for block in blocks(n_points=5, n_trials=BLOCK // 2)]
    [2, 4, 6]
    """
    return slices(n_points, BLOCK // n_trials)


def _two_classes(y: Labels) -> Labels:
    """Return the sorted classes of y, which must be two."""
    classes = np.unique(y)
    if len(classes) < 2:
        found = f"one class only, {classes.tolist()}" if len(classes) else "no class"
        raise ValueError(f"y: found {found}; two are needed")
    if len(classes) > 2:
        raise ValueError(
            f"y: found {len(classes)} classes, {classes.tolist()}; two are needed. "
            "Only binary classification is supported. The type of the target is multiclass"
        )
    return classes
