"""What a model is learned from: sums by place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import families
from betafield.families import Rate
from betafield.process.boxes import Box
from betafield.process.rows import COARSE, GROUPED, LONG, Grid, Levels, Rows, gather, listed

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Values up to which a feature is said to have levels.
MOST_LEVELS = 512


class Sums(NamedTuple):
    """Trials by place, in the features' own units, in any order and any number of parts.

    Parameters
    ----------
    points : array of shape (r, d)
    trials, successes : integer array of shape (r,)
        In units of `unit`.
    context : array of shape (r, p + 1) or None
        Bernstein coefficients of P(success) as a polynomial of π; None: all were seen as they are.
    unit : float
        What 1 counts for.
    group : array of shape (r,) or None
        A number per group of trials; None: there are no groups.
    is_apart : bool
        Whether rows may vary more than trials alone would, so that none are joined.
    rates : tuple of Rate
        Those that are not known; contexts are then at all of their corners, side by side.
    wraps : tuple of {"", "period", "longitude", "latitude"}
        The scale of every feature that wraps around; none: no feature does.
    """

    points: Floats
    trials: Ints
    successes: Ints
    context: Floats | None = None
    unit: float = 1.0
    group: Floats | None = None
    is_apart: bool = False
    rates: tuple[Rate, ...] = ()
    wraps: tuple[str, ...] = ()

    def rows(self, box: Box, grid: Grid = COARSE, levels: Levels = ()) -> Rows:
        """Return the trials gathered in a box, levels of features (in own units) kept apart."""
        held = tuple(
            None if at is None else np.clip(axis.inside(at), 0.0, 1.0)
            for at, axis in zip(levels, box.axes, strict=False)
        )
        return self._rows(box, grid, held)._replace(kinds=box.kinds)

    def _rows(self, box: Box, grid: Grid, held: Levels) -> Rows:
        if self.is_apart:
            return listed(box.within(self.points), *self[1:5])
        if self.group is None:
            return gather(*self[:5], grid=grid, box=box.within, levels=held)
        x, number = box.within(self.points), _numbered(self.group)
        held = (*(held or (None,) * x.shape[1]), np.unique(number))
        x = np.column_stack([x, number])
        return gather(x, *self[1:5], grid=GROUPED, levels=held, is_grouped=True)

    def at(self, rates: Floats) -> Sums:
        """Return the trials if the rates that are not known are these."""
        assert self.context is not None
        return self._replace(context=at(self.context, rates), rates=())

    def levels(self) -> Levels:
        """Return the values of every feature that has few of them, sorted; None for others.

        Places on Earth have none: neither longitude nor latitude is a feature by itself.
        """
        wraps = self.wraps or ("",) * self.points.shape[1]
        return tuple(
            _levels(self.points[:, a], self.trials) if kind in ("", "period") else None
            for a, kind in enumerate(wraps)
        )


def _numbered(group: Floats) -> Floats:
    """Return the numbers of groups in the order of what they are called, within the unit box."""
    each, number = np.unique(group, return_inverse=True)
    return np.asarray(number / max(len(each) - 1, 1))


def at(context: Floats, rates: Floats) -> Floats:
    """Return contexts at rates, of those (r, 2^u (p + 1)) at all of their corners."""
    return families.at(context.reshape(len(context), 2 ** len(rates), -1), rates)


def _levels(x: Floats, trials: Ints) -> Floats | None:
    found = np.zeros(0)
    for start in range(0, len(x), LONG):
        at = slice(start, start + LONG)
        some = np.unique(x[at][trials[at] > 0])
        found = np.unique(np.concatenate([found, some]) + 0.0)
        if len(found) > MOST_LEVELS:
            return None
    return found
