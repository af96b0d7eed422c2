"""Validation of the values of a file: whether `find` can have returned them."""

from __future__ import annotations

import numpy as np

from betafield.process.basis import FREE
from betafield.process.boxes import SCALES, WRAPPED
from betafield.process.finding import NEAREST
from betafield.process.fit import LONGEST, SHORTEST, forms
from betafield.process.found import Component, Found, Window
from betafield.process.links import LINKS

# The largest variance and the largest |θ|.
FAR, LOUD = 50.0, 12.0
# Middle and half-width of the range of log ℓ, up to rounding.
MIDDLE, REACH = 0.5 * (SHORTEST + LONGEST), 0.5 * (LONGEST - SHORTEST) + 1e-9
# The largest factor on distances, which separates the nearest levels.
STRETCHED = 1.0 / NEAREST
# Bounds of a Matérn kernel's ν, and of a positive ρ: 1/ρ must not overflow.
SMOOTHNESS, CORRELATION = (0.1, 100.0), (1e-6, 1.0 - 1e-6)
# Most nodes of unknown rates, and the largest absolute log weight.
MOST_NODES, HEAVIEST = 64, 1e6


def require_sound(found: Found, d: int, extra: int = 0, columns: int = 0) -> None:
    """Raise unless `find` can have returned this for d features.

    The `columns` of categories have `extra` hyper-parameters.
    """
    if not found.components:
        raise ValueError("found: no process; at least one is needed")
    for component in found.components:
        _require_process(component, d, extra)
    for window in found.windows:
        _require_window(window, d, columns)
    _require_nodes(found)
    sizes = {window.others.size for window in found.windows}
    if len(sizes) > 1 or not _together(found.windows) <= 1.0 + 1e-9:
        raise ValueError("found: windows weigh more than 1 together, or differ in what they know")
    is_sound = found.spread.shape in ((0,), (d,)) and bool(np.all(np.abs(found.spread) <= FAR))
    if not is_sound or found.spread.min(initial=0.0) < 0.0:
        raise ValueError(f"found: {found.spread!r:.60} is not a variance between levels")


def _require_nodes(found: Found) -> None:
    """Raise unless nodes are rates, and every process is listed at all of them."""
    nodes, shares = found.nodes, found.shares
    if not nodes.size and not shares.size:
        return
    is_sound = nodes.ndim == 2 and 0 < len(nodes) <= MOST_NODES and shares.shape == (len(nodes),)
    is_sound = is_sound and len(found.components) % len(nodes) == 0
    is_sound = is_sound and bool(np.all((nodes > 0.0) & (nodes < 1.0)))
    if not (is_sound and bool(np.all(np.abs(shares) <= HEAVIEST))):
        raise ValueError(f"found: {nodes!r:.60} are not nodes of rates")
    k = len(nodes)
    for first in range(0, len(found.components), k):
        kinds = {(*each[:2], *each[3:]) for each in found.components[first : first + k]}  # not θ
        if len(kinds) > 1:
            raise ValueError("found: processes differ between nodes of rates")


def _together(windows: tuple[Window, ...]) -> float:
    """Return the largest total weight of the windows over the kinds of query."""
    if not windows:
        return 0.0
    return float(np.sum([[w.weight, *w.others] for w in windows], axis=0).max())


def _require_process(component: Component, d: int, extra: int = 0) -> None:
    link, smoothness, theta, scale, effect, correlation, form = component
    is_sound = link in [known.name for known in LINKS]
    is_sound &= theta.shape == (1 + d + extra + (effect is not None),)
    is_sound &= effect is None or 0 <= effect <= d
    is_sound &= correlation == 0.0 or CORRELATION[0] <= correlation <= CORRELATION[1]
    low, high = SMOOTHNESS
    is_known = smoothness is None or low <= smoothness <= high
    is_known &= form == FREE or (smoothness is None and form in forms(d))
    is_known &= len(scale) in (0, d) and set(scale) <= {*SCALES, *WRAPPED}
    is_sound = is_sound and bool(np.abs(theta).max() <= LOUD)
    is_sound = is_sound and bool(np.all(np.abs(theta[1 : 1 + d] - MIDDLE) <= REACH))
    if not (is_sound and is_known):
        raise ValueError(f"found: {link!r:.40} with {theta!r:.60} is not a process")


def _require_window(window: Window, d: int, columns: int = 0) -> None:
    stretch, width, tau, weight, others = window
    is_sound = (
        stretch.shape == (d + columns,)
        and stretch.min() >= 0.0
        and 0.0 < stretch.max() <= STRETCHED
    )
    each = np.array([weight, *others])
    is_sound &= others.shape in ((0,), (1 + d,)) and np.all((each >= 0.0) & (each <= 1.0))
    if not (is_sound and width >= 0.0 and 0.0 < tau <= FAR):
        raise ValueError(f"found: {stretch!r:.60}, {width!r}, {tau!r} are not windows")
