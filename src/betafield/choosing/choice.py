"""Which windows to use: those that were asked for, or those that predict best.

What predicts best is weighed anew as the number of trials doubles; in between, widths shrink in
steps, as theory has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

import betafield.choosing.candidates as candidates
from betafield import bandwidth as widths
from betafield.choosing.scoring import CountScoring, LocalScoring, Scoring
from betafield.choosing.weighing import PRICE, Weighing
from betafield.evidence import Totals

if TYPE_CHECKING:
    from betafield.evidence import Decoder
    from betafield.windows import Places
    from betafield.windows.moments import Weigh

Floats = npt.NDArray[np.float64]
Records = npt.NDArray[Any]
# When windows were last weighed, what had been asked for, and which were found.
Chosen = tuple[int | float, Any, Records]
# Steps in which windows shrink while the number of trials doubles.
STEPS = 16


class Choice(NamedTuple):
    """What was asked for, and what is known of the trials that it is chosen for.

    Parameters
    ----------
    bandwidth, lipschitz, degree
        As those of `SmoothBetaClassifier`.
    learns_relevance : bool
        Whether features may differ in relevance.
    totals : Totals
        How many trials there were, and how distorted.
    n_classes : int
    sides : array of shape (d,)
        Those of the domain, in scaled units.
    metric : str
    """

    bandwidth: float | str
    lipschitz: float
    degree: int | str
    learns_relevance: bool
    totals: Totals
    n_classes: int
    sides: Floats
    metric: str

    @property
    def learns_width(self) -> bool:
        """Whether the width is learned from the trials."""
        return self.bandwidth in ("loo", "auto")

    @property
    def learns(self) -> bool:
        """Whether anything about the windows is learned from the trials."""
        return self.learns_width or self.learns_relevance

    @property
    def is_plain(self) -> bool:
        """Whether all there is to learn from are two classes without contexts."""
        return self.n_classes == 2 and not self.totals.distorted

    @property
    def width(self) -> float:
        """The width that was asked for, where it is not learned."""
        if self.bandwidth == "theory":
            t = self.totals.number() * self.totals.share()
            return widths.theory(t, len(self.sides), self.lipschitz)
        return float(self.bandwidth)

    def degrees(self) -> tuple[int, ...]:
        """Return the degrees that may be used; raise if the one asked for may not.

        Examples
        --------
        >>> totals, sides = Totals(trials=1000), np.ones(2)
        >>> choice = Choice("auto", 1.0, "auto", True, totals, 2, sides, "euclidean")
        >>> choice.degrees(), choice._replace(bandwidth=0.1).degrees()
        ((0, 1, 2), (0,))
        """
        d = len(self.sides)
        if self.degree == "auto":
            weighs = self.bandwidth == "auto" and self.is_plain and np.any(self.sides > 0)
            return widths.weighed_degrees(d) if weighs else (0,)
        degree, highest = int(self.degree), widths.highest_degree(d) if self.is_plain else 0
        if degree > highest:
            why = f"with {d} features, where a window seldom holds enough trials for more terms"
            if not self.is_plain:
                why = f"with {self.n_classes} classes" if self.n_classes > 2 else "with contexts"
            raise ValueError(f"degree: found {degree}; at most {highest} is possible {why}")
        return (degree,)

    def weighing(
        self,
        places: list[Places],
        total: int | None,
        decoder: Decoder,
        weigh: Weigh,
        shapes_at: Callable[[Floats], Floats],
    ) -> Weighing:
        """Return what finds the windows that predict best.

        Places are in scaled units; `total` is their number if they are not all.
        """
        scoring: Scoring = CountScoring(decoder, decoder.n_jobs)
        if self.is_plain:
            scoring = LocalScoring(weigh, self.degrees(), decoder.n_jobs)
        return Weighing(
            places,
            self.metric,
            scoring,
            shapes_at,
            self.sides,
            None if self.learns_width else self.width,
            self.learns_relevance,
            PRICE if self.bandwidth == "auto" else 0.0,
            total,
        )

    def weighed(self, last: Chosen | None, weighing_of: Callable[[], Weighing]) -> Chosen | None:
        """Return the windows last weighed, or those that a weighing finds where that is due."""
        degrees = self.degrees()
        if not self.learns:
            return last
        before, answered, _ = last or (0, None, None)
        now, asked = self.totals.number(), (self.bandwidth, self.learns_relevance, degrees)
        if last is None or now >= 2 * before or asked != answered:
            return now, asked, weighing_of()()
        return last

    def records(self, chosen: Chosen | None) -> Records:
        """Return the windows to use, given those last weighed."""
        if chosen is None or not self.learns:
            given = candidates.given(self.width, self.degrees()[0], len(self.sides))
            return candidates.records([given])
        before, _, kept = chosen
        if self.bandwidth != "auto" or self.n_classes > 2:  # mixtures are for two classes
            kept = kept[:1].copy()
            kept["weight"] = 1.0
        if not self.learns_width:
            kept["width"] = self.width
            return kept
        growth = _stepped(self.totals.number() / before)
        return candidates.shrunk(kept, growth, self.sides, self.metric)


def _stepped(growth: float) -> float:
    """Return the power of 2^(1/STEPS) at or below: a trial more seldom changes all windows.

    Examples
    --------
    >>> _stepped(1.04), _stepped(1.05) == 2 ** (1 / 16)
    (1.0, True)
    """
    return float(2.0 ** (math.floor(STEPS * math.log2(growth)) / STEPS))
