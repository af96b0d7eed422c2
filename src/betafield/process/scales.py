"""Which units the features are in: their own, ranks or logarithms, weighed by evidence.

What is learned is the law of outcomes given their places, so evidence in different units can be
compared. Processes are fitted in the features' own units, in ranks and in logarithms wherever they
are worth a try (`boxes.candidates`), then, of up to three, one feature at a time is given other
units; those sets of units that are not far behind the best are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process.boxes import SCALES, Box, candidates
from betafield.process.fit import Fit, fit, fit_links
from betafield.process.links import LINKS
from betafield.process.rows import Rows
from betafield.process.sums import Sums
from betafield.refusals import refused

Floats = npt.NDArray[np.float64]
Scale = tuple[str, ...]

# How far behind the best, in nats, units are kept, and how many sets of them.
BEHIND, MOST = 7.0, 3
# Features up to which each is tried in units of its own; with more, all are in the same.
FEW = 3


class Scaled(NamedTuple):
    """A set of units, the box and the rows in it, and the process under each link."""

    scale: Scale
    box: Box
    rows: Rows
    fits: tuple[Fit, ...]


def boxed(sums: Sums, bounds: Floats, scale: Scale) -> Box:
    """Return the box of these units; no units are the features' own."""
    scale = scale or ("range",) * len(bounds)
    box = Box.scaled(bounds, scale, sums.points, sums.trials)
    return box._replace(levels=sums.categories(), arrangement=sums.arrangement)


def checked(scale: str | Scale, d: int) -> list[Scale]:
    """Return the units asked for per feature; if none are, all that are worth trying."""
    if scale == "auto":
        return []
    each = (scale,) * d if isinstance(scale, str) else tuple(scale)
    if len(each) != d or any(kind not in SCALES for kind in each):
        raise refused(
            "scale",
            f"found {scale!r}; expected 'auto', 'range', 'rank' or 'log', or a tuple of one "
            f"of the last three for each of {d} features",
        )
    return [(kind,) for kind in each]


def fitted(sums: Sums, bounds: Floats, scale: str | Scale = "auto") -> list[Scaled]:
    """Return processes in the units that are best for these trials, the best first."""
    choices = _choices(sums, bounds, scale)
    first = tuple(kinds[0] for kinds in choices)
    if all(len(kinds) == 1 for kinds in choices):
        box = boxed(sums, bounds, first)
        rows = sums.rows(box)
        return [Scaled(first, box, rows, fit_links(rows))]
    return [_finished(each) for each in _kept(sums, bounds, choices)]


def _choices(sums: Sums, bounds: Floats, scale: str | Scale) -> list[Scale]:
    """Return the units that are tried, per feature."""
    asked = checked(scale, len(bounds))
    if not asked:
        return candidates(bounds, *sums[:2], sums.unit, sums.wraps)
    wraps = sums.wraps or ("",) * len(asked)
    return [(kind,) if kind else each for kind, each in zip(wraps, asked, strict=True)]


def _kept(sums: Sums, bounds: Floats, choices: list[Scale]) -> list[Scaled]:
    """Return processes under the first link, in those units that are not far behind the best."""
    tried: dict[Scale, Scaled] = {}

    def add(scale: Scale, start: Floats | None = None) -> None:
        if scale not in tried:
            box = boxed(sums, bounds, scale)
            rows = sums.rows(box)
            tried[scale] = Scaled(scale, box, rows, (fit(rows, LINKS[0], start),))

    for kind in SCALES:
        add(tuple(kind if kind in kinds else kinds[-1] for kinds in choices))
    best = max(tried.values(), key=_objective)
    if len(choices) <= FEW:
        for scale in _beside(best.scale, choices):
            add(scale, best.fits[0].theta)
    ranked = sorted(tried.values(), key=lambda each: (-_objective(each), each.scale))
    least = _objective(ranked[0]) - BEHIND
    return [each for each in ranked[:MOST] if _objective(each) >= least]


def _objective(each: Scaled) -> float:
    return each.fits[0].objective


def _beside(scale: Scale, choices: list[Scale]) -> Iterator[Scale]:
    """Yield sets of units that differ in one feature."""
    if sum(len(kinds) > 1 for kinds in choices) > 1:
        for a, kinds in enumerate(choices):
            for kind in kinds:
                yield (*scale[:a], kind, *scale[a + 1 :])


def _finished(each: Scaled) -> Scaled:
    """Return the same with the other links."""
    return each._replace(fits=fit_links(each.rows, first=each.fits))
