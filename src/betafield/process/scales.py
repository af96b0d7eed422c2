"""The units of the features: their own, ranks or logarithms, weighed by evidence.

The likelihood is that of outcomes given their places, so evidence in different units can be
compared. Processes are fitted in the features' own units, in ranks and in logarithms where these
are worth trying (`boxes.candidates`); with up to three features, the units of one at a time are
then changed. Sets of units that are not far behind the best are kept. If the trials of a row may be
correlated, units are compared at the correlation that is likeliest in the first of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process.boxes import SCALES, Box, candidates
from betafield.process.correlations import likeliest
from betafield.process.fit import Fit, fit, fit_links
from betafield.process.links import LINKS, Link
from betafield.process.rows import Rows
from betafield.process.sums import Sums
from betafield.refusals import refused

Floats = npt.NDArray[np.float64]
Scale = tuple[str, ...]

# At most MOST sets of units are kept, none more than BEHIND nats behind the best.
BEHIND, MOST = 7.0, 3
# Up to this many features, units are tried per feature; with more, all have the same.
FEW = 3


class Scaled(NamedTuple):
    """A set of units, the box and the rows in it, and the process under each link."""

    scale: Scale
    box: Box
    rows: Rows
    fits: tuple[Fit, ...]


def boxed(sums: Sums, bounds: Floats, scale: Scale) -> Box:
    """Return the box in these units; if empty, the features' own."""
    scale = scale or ("range",) * len(bounds)
    box = Box.scaled(bounds, scale, sums.points, sums.trials)
    return box._replace(levels=sums.categories(), arrangement=sums.arrangement)


def checked(scale: str | Scale, d: int) -> list[Scale]:
    """Return the units given, per feature; an empty list means those worth trying."""
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


def fitted(
    sums: Sums,
    bounds: Floats,
    scale: str | Scale = "auto",
    links: tuple[Link, ...] = LINKS,
) -> list[Scaled]:
    """Return processes in the best units for these trials, the best first."""
    choices = _choices(sums, bounds, scale)
    first = tuple(kinds[0] for kinds in choices)
    if all(len(kinds) == 1 for kinds in choices):
        box = boxed(sums, bounds, first)
        rows = sums.rows(box)
        return [Scaled(first, box, rows, fit_links(rows, links))]
    return [_finished(each, links) for each in _kept(sums, bounds, choices, links[0])]


def _choices(sums: Sums, bounds: Floats, scale: str | Scale) -> list[Scale]:
    """Return the units to try, per feature."""
    asked = checked(scale, len(bounds))
    if not asked:
        return candidates(bounds, *sums[:2], sums.unit, sums.wraps)
    wraps = sums.wraps or ("",) * len(asked)
    return [(kind,) if kind else each for kind, each in zip(wraps, asked, strict=True)]


def _kept(sums: Sums, bounds: Floats, choices: list[Scale], link: Link) -> list[Scaled]:
    """Return processes under one link, in the units that are not far behind the best."""
    tried: dict[Scale, Scaled] = {}
    first = boxed(sums, bounds, tuple(kinds[0] for kinds in choices))
    rho = likeliest(sums.rows(first), link) if sums.is_apart else 0.0

    def add(scale: Scale, start: Floats | None = None) -> None:
        if scale not in tried:
            box = boxed(sums, bounds, scale)
            rows = sums.rows(box)
            found = fit(rows._replace(correlation=rho), link, start)
            tried[scale] = Scaled(scale, box, rows, (found,))

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


def _finished(each: Scaled, links: tuple[Link, ...]) -> Scaled:
    """Return processes under all links in the same units, for uncorrelated trials."""
    first = None if each.fits[0].problem.rows.correlation else each.fits[0]
    return each._replace(fits=fit_links(each.rows, links, first))
