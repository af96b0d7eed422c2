"""Whether what a file says was found can have been found."""

from __future__ import annotations

import numpy as np

from betafield.process.boxes import SCALES
from betafield.process.links import LINKS
from betafield.process.model import Component, Found, Window

# Hyper-parameters, in logarithms, and variances beyond which there are none.
FAR = 50.0
# Matérn's ν that may be asked for.
SMOOTHNESS = (0.1, 100.0)


def require_sound(found: Found, d: int) -> None:
    """Raise unless this can have been found for d features."""
    if not found.components:
        raise ValueError("found: no process; at least one is needed")
    for component in found.components:
        _require_process(component, d)
    for window in found.windows:
        _require_window(window, d)
    if sum(window.weight for window in found.windows) > 1.0 + 1e-9:
        raise ValueError("found: windows weigh more than 1 together")


def _require_process(component: Component, d: int) -> None:
    link, smoothness, theta, scale = component
    is_sound = link in [known.name for known in LINKS] and theta.shape == (1 + d,)
    low, high = SMOOTHNESS
    is_known = smoothness is None or low <= smoothness <= high
    is_known &= len(scale) in (0, d) and set(scale) <= set(SCALES)
    if not (is_sound and is_known and np.abs(theta).max() <= FAR):
        raise ValueError(f"found: {link!r:.40} with {theta!r:.60} is no process")


def _require_window(window: Window, d: int) -> None:
    stretch, width, tau, weight = window
    is_sound = stretch.shape == (d,) and stretch.min() >= 0.0 and 0.0 < stretch.max() <= 1.0
    if not (is_sound and width >= 0.0 and 0.0 < tau <= FAR and 0.0 < weight <= 1.0):
        raise ValueError(f"found: {stretch!r:.60}, {width!r}, {tau!r} are no windows")
