"""How widths around those in use do when trials are left out."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from betafield import weighing

if TYPE_CHECKING:
    from betafield.estimators import SmoothBetaClassifier

Records = npt.NDArray[Any]

# Widths so many times narrower and wider than those in use are scored.
SPREAD = 8.0


@dataclass(frozen=True, eq=False)
class Weighed(weighing.Weighing):
    """Weighs candidates, and goes on to leave trials out by the holes that it began with.

    Holes depend on the narrowest width that is tried, and scores on the holes.
    """

    holes: list[float] = field(default_factory=list)

    def _hole(self, relevance: weighing.Relevance, narrowest: float) -> float:
        if not self.holes:
            self.holes.append(super()._hole(relevance, narrowest))
        return self.holes[0]


def candidates_of(model: SmoothBetaClassifier) -> tuple[Records, float]:
    """Return widths around those in use, scored with the relevance of the heaviest; the price."""
    found = _weighing(model)
    total = found._n_places
    share, is_large = min(1.0, weighing.MOST / total), min(total, weighing.MOST) > weighing.LARGE
    if is_large:
        found()  # tells the holes
    relevance = tuple(model.weights_["relevance"][0].tolist())
    table = found._table(found._sample(share, is_large), relevance, _band(model, found))
    records = weighing.records(
        [
            weighing.Candidate(
                relevance, float(width), degree, float(score[k]), float(complexity[k]), 0.0
            )
            for k, degree in enumerate(found.scoring.degrees)
            for width, score, complexity in zip(
                table.widths, table.score, table.complexity, strict=True
            )
        ]
    )
    return weighing.shrunk(records, 1.0 / share, found.sides, found.metric), found.price


def _band(model: SmoothBetaClassifier, found: Weighed) -> weighing.Band:
    """Return the volumes of windows somewhat narrower and wider than those in use."""
    mine = (model.weights_["relevance"] == model.weights_["relevance"][0]).all(axis=1)
    widths, sides = model.weights_["width"][mine], found.sides * model.weights_["relevance"][0]
    low, high = (
        weighing.volume(float(width), sides)
        for width in (widths.min() / SPREAD, widths.max() * SPREAD)
    )
    # Windows must be large beside holes.
    holes = [hole ** weighing.dimensions(sides) / np.prod(sides[sides > 0]) for hole in found.holes]
    return max([low, *(hole / weighing.HOLE for hole in holes)]), high


def _weighing(model: SmoothBetaClassifier) -> Weighed:
    """Return what weighs windows for the trials of a model."""
    weighing_ = model._weighing(model._choice())
    return Weighed(**{each.name: getattr(weighing_, each.name) for each in fields(weighing_)})
