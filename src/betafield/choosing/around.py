"""Widths around those in use, and how they do when trials are left out."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

import betafield.choosing.weighing as weighing
from betafield.choosing.candidates import (
    Candidate,
    Relevance,
    dimensions,
    records,
    shrunk,
    volume,
)

Records = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Around(weighing.Weighing):
    """Weighs candidates, and goes on to leave trials out by the holes that it began with.

    Holes depend on the narrowest width that is tried, and scores on the holes.
    """

    holes: list[float] = field(default_factory=list)

    def scored(self, used: Records, spread: float = 8.0) -> Records:
        """Return widths up to so many times narrower and wider than those used.

        They have the relevance of the heaviest.
        """
        total = self._n_places
        share = min(1.0, weighing.MOST / total)
        is_large = min(total, weighing.MOST) > weighing.LARGE
        if is_large:
            self()  # tells the holes
        relevance = tuple(used["relevance"][0].tolist())
        table = self._table(self._sample(share, is_large), relevance, self._band(used, spread))
        found = [
            Candidate(
                relevance,
                float(width),
                degree,
                float(score[k]),
                float(effective_parameters[k]),
                0.0,
            )
            for k, degree in enumerate(self.scoring.degrees)
            for width, score, effective_parameters in zip(
                table.widths, table.score, table.effective_parameters, strict=True
            )
        ]
        return shrunk(records(found), 1.0 / share, self.sides, self.metric)

    def _hole(self, relevance: Relevance, narrowest: float) -> float:
        if not self.holes:
            self.holes.append(super()._hole(relevance, narrowest))
        return self.holes[0]

    def _band(self, used: Records, spread: float) -> weighing.Band:
        """Return the volumes of windows somewhat narrower and wider than those used."""
        mine = (used["relevance"] == used["relevance"][0]).all(axis=1)
        widths, sides = used["width"][mine], self.sides * used["relevance"][0]
        low, high = (
            volume(float(width), sides) for width in (widths.min() / spread, widths.max() * spread)
        )
        # Windows must be large beside holes.
        real = np.prod(sides[sides > 0])
        holes = [hole ** dimensions(sides) / real for hole in self.holes]
        return max([low, *(hole / weighing.HOLE for hole in holes)]), high


def around(found: weighing.Weighing, used: Records) -> tuple[Records, float]:
    """Return widths around those used, scored as `found` weighs them; the price of a parameter."""
    each = {part.name: getattr(found, part.name) for part in fields(found)}
    return Around(**each).scored(used), found.price
