"""Normal laws of latent values, mixed over links: the form in which beliefs are passed on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process.links import Link

Floats = npt.NDArray[np.float64]


class Laws(NamedTuple):
    """What is believed of π at points: a mixture of normal laws of f under links.

    Parameters
    ----------
    links : tuple of Link
        One per component.
    weights : array of shape (c,), or (c, q) if they differ by point
        They add up to 1.
    centres, deviations : array of shape (c, q)
        Of f, per component and point.
    """

    links: tuple[Link, ...]
    weights: Floats
    centres: Floats
    deviations: Floats
