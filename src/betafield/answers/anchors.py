"""A curve known to start at 0 and end at 1, passed to a model as a few trials at its ends.

These are five failures where the curve starts and five successes where it ends, all undistorted.
Adaptive designs hardly visit the ends, and without such trials the model cannot distinguish a curve
that levels off from one that continues. Length scales are then re-estimated, starting from the
previous ones.
"""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import numpy.typing as npt

from betafield import fitting
from betafield.answers.lines import Line, labels
from betafield.cautions import FieldWarning
from betafield.learning import Trials
from betafield.methods import AnyField
from betafield.smooth import SmoothField

Floats = npt.NDArray[np.float64]

# Trials at each end.
ANCHORS = 5
# How far from 0 or 1 an end must be, and with which probability, to contradict the anchors.
AWAY, SURELY = 0.1, 0.975


def anchored(field: AnyField, line: Line, sign: int) -> SmoothField:
    """Return the field as if the curve along a line had been observed to start at 0 and end at 1.

    With `sign` −1 it starts at 1 and ends at 0.
    """
    if not isinstance(field, SmoothField):
        raise ValueError(
            "anchored: windows know nothing of a window further away, so that ends say nothing of "
            "the curve between them; use method='auto'"
        )
    if len(line.others) > 1:
        raise ValueError(
            "anchored: the model has several features; give `at`, the values of the others at "
            "which the curve starts at 0 and ends at 1"
        )
    _warn_if_contradicted(field, line, sign)
    low, high = _ends(line)
    ends = np.repeat(np.stack([low, high]), ANCHORS, axis=0)
    ends_high = np.repeat([sign < 0, sign > 0], ANCHORS)
    # If trials have groups, each anchor is a group of its own, because they share nothing.
    number = np.arange(-1.0, -1.0 - len(ends), -1.0)
    group = number if field.sums.is_grouped else None
    some = Trials(ends, np.stack([~ends_high, ends_high]), None, None, group)
    return _refitted(fitting.supposing(field, some))


def _refitted(field: SmoothField) -> SmoothField:
    """Return a field with re-estimated hyper-parameters, starting from those in use."""
    from betafield.process.refitting import refitted

    (sums,), ((found,), _) = field.per_class(), field.serving
    again = refitted(sums, field.numeric_bounds, found)
    return dataclasses.replace(field, found=(again,), found_at=field.totals, earlier=None)


def _ends(line: Line) -> tuple[Floats, Floats]:
    low, high = line.points[0], line.points[-1]
    return low, high


def _warn_if_contradicted(field: SmoothField, line: Line, sign: int) -> None:
    """Warn if the trials contradict an anchored end of the curve."""
    start, end = _ends(line)[::sign]
    post = field.posterior(np.stack([start, end]))
    above, below = post.prob_above(AWAY)[0], post.cdf(1.0 - AWAY)[1]
    name = labels(field.features)[line.feature]
    told = []
    if above > SURELY:
        told.append(f"above {AWAY:g} at {name} = {start[line.feature]:.4g} ({above:.1%} sure)")
    if below > SURELY:
        told.append(f"below {1.0 - AWAY:g} at {name} = {end[line.feature]:.4g} ({below:.1%} sure)")
    if told:
        warnings.warn(
            f"anchored: the trials speak against a curve from 0 to 1: it is {' and '.join(told)}; "
            "the threshold without anchors is the safer one",
            FieldWarning,
            stacklevel=5,
        )
