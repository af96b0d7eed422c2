"""What was learned of a field apart from its values: plain values, to be kept in files."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

NONE = np.zeros(0)
NONE.flags.writeable = False


class Component(NamedTuple):
    """A process to be fitted.

    Parameters
    ----------
    link : str
        Name of its link.
    smoothness : float or None
        Matérn's ν; None: squared-exponential.
    theta : array of shape (1 + d,), one more with level effects
        (log σ, log ℓ), and log τ of levels.
    scale : tuple of {"range", "rank", "log"}
        Units of every feature; none: all by range.
    effect : int or None
        The feature whose levels have effects of their own; of groups of trials, the number of
        features.
    correlation : float
        ρ, between any two trials of a row.
    """

    link: str
    smoothness: float | None
    theta: Floats
    scale: tuple[str, ...] = ()
    effect: int | None = None
    correlation: float = 0.0


class Window(NamedTuple):
    """Windows of residuals: how distances are stretched, how wide, τ and their weight.

    Parameters
    ----------
    stretch : array of shape (d,)
        By which distances are multiplied; a feature of 0 is not looked at.
    width, tau : float
        How far they reach, and the variance of what the process misses within.
    weight : float
        At places that were seen.
    others : array of shape (1 + d,)
        At new places, and at new levels of every feature; empty: the same everywhere.
    """

    stretch: Floats
    width: float
    tau: float
    weight: float
    others: Floats = NONE

    @property
    def is_whole(self) -> bool:
        """Whether they look at every feature."""
        return bool(self.stretch.min() > 0.0)


class Found(NamedTuple):
    """What was learned of a field apart from its values.

    Parameters
    ----------
    components : tuple of Component
        Processes, weighed by evidence among themselves, the heaviest first: windows are in its
        units. If there are nodes, each process at all of them before the next process.
    windows : tuple of Window
        The process has the weight that they leave.
    spread : array of shape (d,)
        Variance between levels of every feature, on the logit scale, that a new level has on top;
        empty: no feature has levels.
    nodes : array of shape (k, u)
        Values of the rates that are not known at which every process is fitted; empty: all are
        known.
    shares : array of shape (k,)
        Logarithms of what they weigh before any trial.
    """

    components: tuple[Component, ...]
    windows: tuple[Window, ...] = ()
    spread: Floats = NONE
    nodes: Floats = NONE
    shares: Floats = NONE
