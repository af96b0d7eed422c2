"""What was found for some trials, adjusted to a few more: hyper-parameters only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from betafield.process.fit import climb
from betafield.process.found import Component, Found
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
    components: dict[tuple[Any, ...], Component] = {}
    for i, component in enumerate(found.components):
        unranked, node = _unranked(component), i % max(len(found.nodes), 1)
        components.setdefault((node, *_kind(unranked)), unranked)
    kept = found._replace(components=tuple(components.values()))
    fits = build(sums, bounds, kept._replace(windows=())).fits
    climbed = [climb(fit.problem, fit.theta, fit.mode.f, STEPS).mode.theta for fit in fits]
    return kept._replace(
        components=tuple(
            each._replace(theta=theta) for each, theta in zip(kept.components, climbed, strict=True)
        )
    )


def _unranked(component: Component) -> Component:
    """Return a process in other units than ranks."""
    scale = tuple("range" if each == "rank" else each for each in component.scale)
    return component._replace(scale=scale)


def _kind(component: Component) -> tuple[Any, ...]:
    """Return what tells processes apart, but for hyper-parameters."""
    scale = component.scale if set(component.scale) - {"range"} else ()
    return component.link, component.smoothness, scale, component.effect, component.correlation
