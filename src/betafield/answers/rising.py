"""Curves drawn along a feature, made monotone, and where they reach a level.

Along the only feature of a model, some of the curves are steps (`betafield.process.steps`), as many
as their posterior probability says.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.answers.crossings import Crossings, crossings
from betafield.answers.draws import fields
from betafield.answers.lines import Line
from betafield.methods import AnyField
from betafield.process.isotonic import isotonic
from betafield.process.noise import Seed
from betafield.smooth import SmoothField

Floats = npt.NDArray[np.float64]

# Purpose of the random numbers of steps.
STEPS = 64


class Rising(NamedTuple):
    """Monotone curves along a line, the first of which are steps.

    Parameters
    ----------
    curves : array of shape (size, n)
    grid : array of shape (n,)
        Where they are known.
    sign : {1, -1}
        Whether they rise or fall.
    steps : array of shape (k,)
        The places of the steps.
    """

    curves: Floats
    grid: Floats
    sign: int
    steps: Floats

    def crossings(self, level: float) -> Crossings:
        """Return where they reach a level."""
        found = crossings(self.curves, self.grid, level, self.sign)
        found.at[: len(self.steps)] = self.steps
        return found


def rising(field: AnyField, line: Line, sign: int, size: int, seed: Seed) -> Rising:
    """Return `size` curves drawn along a line, made monotone."""
    curves = isotonic(line.curves(fields(field, size, seed, is_centred=False)), sign)
    at = stepped(field, sign, size, seed)
    # Draws are in random order, so any of them may be replaced.
    curves[: len(at)] = sign * (line.grid - at[:, None]) >= 0.0
    return Rising(curves, line.grid, sign, at)


def stepped(field: AnyField, sign: int, size: int, seed: Seed) -> Floats:
    """Return the places of the steps among `size` draws of the curve; often there are none."""
    if not isinstance(field, SmoothField) or not is_line(field):
        return np.zeros(0)
    from betafield.process.steps import steps

    (sums,), (smooth,) = field.per_class(), field.smooth
    found = steps(sums, smooth, sign)
    return found.drawn(round(found.share * size), seed.generator(STEPS))


def is_line(field: SmoothField) -> bool:
    """Return whether the model has one numeric feature, without groups, that does not wrap."""
    is_plain = not (field.sums.is_grouped or field.features.categories.columns)
    return is_plain and field.features.number == 1 and not field.smooth[0].boxes[0].kinds
