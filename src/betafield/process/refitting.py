"""What was found for some trials, adjusted to a few more: hyper-parameters only."""

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

# Newton steps from the hyper-parameters that were found.
STEPS = 6


def refitted(sums: Sums, bounds: Floats, found: Found) -> Found:
    """Return what was found, with hyper-parameters climbed for these trials from those before.

    Links, levels and windows stay as they were found, and so do units but for ranks: those would be
    the ranks of trials that are not all trials of the same kind.
    """
    k = max(len(found.nodes), 1)  # unknown rates: every process stands at all nodes of them
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
    """Return a process in other units than ranks."""
    scale = tuple("range" if each == "rank" else each for each in component.scale)
    return component._replace(scale=scale)


def _kind(component: Component) -> tuple[Any, ...]:
    """Return what distinguishes processes, apart from their hyper-parameters."""
    scale = component.scale if set(component.scale) - {"range"} else ()
    return component.link, component.smoothness, scale, component.effect, component.correlation
