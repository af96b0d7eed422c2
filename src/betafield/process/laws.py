"""Mixtures over links of normal laws of latent values: the form in which posteriors are passed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process.links import Link

Floats = npt.NDArray[np.float64]


class Laws(NamedTuple):
    """The posterior of π at points: a mixture of normal laws of f under links.

    Parameters
    ----------
    links : tuple of Link
        One per component.
    weights : array of shape (c,), or (c, q) if they differ between points
        Weights of the components, which sum to 1.
    centres, deviations : array of shape (c, q)
        Mean and standard deviation of f, per component and point.
    """

    links: tuple[Link, ...]
    weights: Floats
    centres: Floats
    deviations: Floats
