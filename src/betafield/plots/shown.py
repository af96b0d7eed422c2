"""The data of a display of a field, as the drawing functions see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from betafield.answers.threshold import Threshold
    from betafield.observed import Binned

Floats = npt.NDArray[np.float64]


class Shown(Protocol):
    """The data of a `FieldDisplay`, where they are documented."""

    grid: tuple[Floats, ...]
    mean: Floats
    low: Floats
    high: Floats
    features: tuple[str, ...]
    events: tuple[str, ...]
    level: float
    band: tuple[Floats, Floats] | None
    bins: tuple[Binned, ...]
    places: Floats | None
    at: Mapping[str, float] | None
    averaged: bool
    threshold: Threshold | None
    by: str | None
