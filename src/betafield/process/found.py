"""The estimated hyper-parameters of a field, as plain values that files can hold."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process.basis import FREE

Floats = npt.NDArray[np.float64]

NONE = np.zeros(0)
NONE.flags.writeable = False


class Component(NamedTuple):
    """The hyper-parameters of one process.

    Parameters
    ----------
    link : str
        Name of its link.
    smoothness : float or None
        ν of a Matérn kernel; None for the squared exponential.
    theta : array of shape (1 + d,), or longer with level effects
        (log σ, log ℓ), and log τ of the level effects.
    scale : tuple of {"range", "rank", "log"}
        Units of each feature; if empty, all by range.
    effect : int or None
        The feature whose levels have effects of their own; for groups of trials, the number of
        features.
    correlation : float
        ρ, the correlation between any two trials of a row.
    form : {"free", "additive", "quadratic"}
        Whether the process is a sum of functions of one feature each, or of second degree.
    """

    link: str
    smoothness: float | None
    theta: Floats
    scale: tuple[str, ...] = ()
    effect: int | None = None
    correlation: float = 0.0
    form: str = FREE


class Window(NamedTuple):
    """Windows of residuals: metric, width, prior variance τ and weights.

    Parameters
    ----------
    stretch : array of shape (d,)
        Factors on distances along each feature; a feature with factor 0 is ignored.
    width, tau : float
        The radius, and the prior variance of what the process misses within it.
    weight : float
        Weight at places with trials.
    others : array of shape (1 + d,)
        Weights at new places, and at new levels of each feature; empty if all are the same.
    """

    stretch: Floats
    width: float
    tau: float
    weight: float
    others: Floats = NONE

    @property
    def is_whole(self) -> bool:
        """Whether no feature is ignored."""
        return bool(self.stretch.min() > 0.0)


class Found(NamedTuple):
    """The estimated hyper-parameters of a field.

    Parameters
    ----------
    components : tuple of Component
        Processes, weighed by evidence, the heaviest first; windows are in the units of the first.
        With nodes, each process is listed at all nodes before the next process.
    windows : tuple of Window
        Windows of residuals; the processes have the remaining weight.
    spread : array of shape (d,)
        Variance between the levels of each feature, on the logit scale, that is added at a new
        level; empty if no feature has levels.
    nodes : array of shape (k, u)
        Values of the unknown rates at which every process is fitted; empty if all are known.
    shares : array of shape (k,)
        Log prior weights of the nodes.
    """

    components: tuple[Component, ...]
    windows: tuple[Window, ...] = ()
    spread: Floats = NONE
    nodes: Floats = NONE
    shares: Floats = NONE
