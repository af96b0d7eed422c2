"""Adjusting the result of `find` to other trials: hyper-parameters only."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield.process.fit import climb
from betafield.process.found import Component, Found
from betafield.process.laplace import ROUGH
from betafield.process.model import build
from betafield.process.sums import Sums

Floats = npt.NDArray[np.float64]

# Newton steps from the previous hyper-parameters.
STEPS = 6


def refitted(sums: Sums, bounds: Floats, found: Found) -> Found:
    """Return `found` with hyper-parameters optimised for these trials, from the previous ones.

    Links, levels and windows are kept, and so are units except ranks, because these would be the
    ranks of only some of the trials.
    """
    k = max(len(found.nodes), 1)  # with unknown rates, each process is listed at all nodes
    groups: dict[tuple[Any, ...], tuple[Component, ...]] = {}
    for start in range(0, len(found.components), k):
        unranked = tuple(map(_unranked, found.components[start : start + k]))
        groups.setdefault(_kind(unranked[0]), unranked)
    kept = found._replace(components=tuple(chain.from_iterable(groups.values())))
    fits = build(sums, bounds, kept._replace(windows=()), ROUGH).fits
    climbed: list[Component] = []
    for start in range(0, len(fits), k):
        best = max(fits[start : start + k], key=lambda fit: fit.objective)
        theta = climb(best.problem, best.theta, best.mode.f, STEPS).mode.theta
        climbed += [each._replace(theta=theta) for each in kept.components[start : start + k]]
    return kept._replace(components=tuple(climbed))


def _unranked(component: Component) -> Component:
    """Return a process with ranks replaced by the range scale."""
    scale = tuple("range" if each == "rank" else each for each in component.scale)
    return component._replace(scale=scale)


def _kind(component: Component) -> tuple[Any, ...]:
    """Return what distinguishes processes, apart from their hyper-parameters."""
    scale = component.scale if set(component.scale) - {"range"} else ()
    return (*component[:2], scale, *component[4:])  # not θ
