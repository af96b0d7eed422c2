"""The levels of a category that get a curve or a map of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import betafield.plots.style as style
from betafield import checks
from betafield.checks import feature_index
from betafield.observed import feature_names, observed

if TYPE_CHECKING:
    from betafield.estimators import SmoothBetaClassifier

# More curves than this cannot be told apart.
MOST = 5


class Levels(NamedTuple):
    """The levels of a category that are shown.

    Parameters
    ----------
    column : int
    name : str
        The name of the category.
    labels : tuple of str or None
        Most trials first; None is a missing value.
    shown : tuple of str
        The same, as labels.
    of : int
        The number of levels of the category.
    """

    column: int
    name: str
    labels: tuple[str | None, ...]
    shown: tuple[str, ...]
    of: int

    @property
    def told(self) -> str:
        """The name of the category, and how many levels are left out."""
        name = style.shown(self.name)
        if len(self.labels) == self.of:
            return name
        return f"{name}: the {len(self.labels)} of {self.of} levels with most trials"


def largest(model: SmoothBetaClassifier, by: Any, most: int = MOST) -> Levels:
    """Return the levels of a category with most trials; ties are in the order of their text."""
    names, known = feature_names(model), model.field_.features.categories
    column = feature_index("by", names, by)
    told = ", ".join(names[a] for a in known.columns) or "none"
    checks.require(column in known.columns, "by", by, f"the categories are {told}")
    trials = observed(model).trials_of(column, known.codes(column))
    order = np.argsort(-trials, kind="stable")[:most]
    labels, shown = known.labels[known.columns.index(column)], known.shown(column)
    kept = tuple(labels[i] for i in order), tuple(shown[i] for i in order)
    return Levels(column, names[column], *kept, len(labels))


def axis(model: SmoothBetaClassifier, features: Any) -> Any:
    """Return the features along the axes: the one or two requested, or the most relevant."""
    if features is not None:
        rule = "one feature is needed for a curve per level, or two for a map per level"
        is_one = isinstance(features, str | int | np.integer) or len(features) in (1, 2)
        checks.require(is_one, "features", features, rule)
        return features
    varies = np.ptp(model.bounds_, axis=1) > 0.0
    relevance = np.where(varies, np.nan_to_num(model.relevance_, nan=-1.0), -1.0)
    return int(np.argmax(relevance))
