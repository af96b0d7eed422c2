"""Sums by place, the data that a model is fitted to."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import families
from betafield._rows import distinct
from betafield.families import Rate
from betafield.process.blocks import Arrangement, Column, coordinates
from betafield.process.boxes import Box
from betafield.process.rows import (
    COARSE,
    FEWEST,
    GROUPED,
    LONG,
    Grid,
    Levels,
    Rows,
    gather,
    listed,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# The grid for trials with categories, each cell within one combination of levels.
POOLED = Grid({1: 4_096, 2: 8_192, 3: 8_192}, {1: 128, 2: 40, 3: 16}, 1 << 15)
# A feature with at most this many distinct values has levels.
MOST_LEVELS = 512


class Sums(NamedTuple):
    """Trials by place, in the features' own units, in any order and with repetitions.

    Parameters
    ----------
    points : array of shape (r, d)
    trials, successes : integer array of shape (r,)
        In multiples of `unit`.
    context : array of shape (r, p + 1) or None
        Bernstein coefficients of P(success) as a polynomial of π; None if no trial is distorted.
    unit : float
        The number of trials that 1 stands for.
    group : array of shape (r,) or None
        The number of each trial's group; None if there are no groups.
    is_apart : bool
        Whether rows may be overdispersed, so that they are not merged.
    rates : tuple of Rate
        Unknown rates; `context` then holds the contexts at all corners of the rates, side by side.
    codes : array of shape (r, c) or None
        The levels of categories, as distinct numbers; None if there are none.
    arrangement : Arrangement or None
        Which columns of queried points are features, and which are categories.
    wraps : tuple of {"", "period", "longitude", "latitude"}
        The scale of each feature that wraps around; if empty, no feature does.
    """

    points: Floats
    trials: Ints
    successes: Ints
    context: Floats | None = None
    unit: float = 1.0
    group: Floats | None = None
    is_apart: bool = False
    rates: tuple[Rate, ...] = ()
    codes: Floats | None = None
    arrangement: Arrangement | None = None
    wraps: tuple[str, ...] = ()

    def rows(self, box: Box, grid: Grid = COARSE, levels: Levels = ()) -> Rows:
        """Return the trials gathered in a box, with levels of features (in own units) apart."""
        held = tuple(
            None if at is None else np.clip(axis.inside(at), 0.0, 1.0)
            for at, axis in zip(levels, box.axes, strict=False)
        )
        return self._rows(box, grid, held)._replace(kinds=box.kinds)

    def _rows(self, box: Box, grid: Grid, held: Levels) -> Rows:
        if self.codes is not None:
            return self._pooled(box, self.codes)
        if self.is_apart:
            return listed(box.within(self.points), *self[1:5])
        if self.group is None:
            return gather(*self[:5], grid=grid, box=box.within, levels=held)
        x, number = box.within(self.points), _numbered(self.group)
        held = (*(held or (None,) * x.shape[1]), np.unique(number))
        x = np.column_stack([x, number])
        return gather(x, *self[1:5], grid=GROUPED, levels=held, is_grouped=True)

    def categories(self) -> tuple[Floats, ...]:
        """Return the sorted levels with trials, per column of categories."""
        if self.codes is None:
            return ()
        return tuple(np.unique(column) for column in self.codes[self.trials > 0].T)

    def _pooled(self, box: Box, codes: Floats) -> Rows:
        """Return the trials gathered in a box, with levels of categories and groups apart."""
        d, seen = len(box.axes), self.trials > 0
        x = box.beside(self.points, codes)
        x[:, :d] = np.clip(x[:, :d], 0.0, 1.0)
        columns = [Column(len(at), is_smooth=d > 0) for at in box.levels]
        if self.group is not None:
            x = np.column_stack([x, coordinates(self.group, np.unique(self.group[seen]))])
            columns.append(Column(len(np.unique(self.group[seen])), False, is_averaged=True))
        if self.is_apart:
            return listed(x, *self[1:5])._replace(columns=tuple(columns))
        # Each combination of levels counts as one level, whatever the number of columns.
        every, which = distinct(x[:, d:])
        last = max(len(every) - 1, 1)
        joint = np.column_stack([x[:, :d], which.ravel() / last])
        kept = (*(None,) * d, np.arange(len(every)) / last)
        rows = gather(joint, *self[1:5], grid=pooled(len(every)), levels=kept, is_grouped=True)
        back = every[np.rint(rows.x[:, d] * last).astype(np.int64)]
        found = np.column_stack([rows.x[:, :d], back])
        return rows._replace(x=found, is_grouped=False, columns=tuple(columns))

    def at(self, rates: Floats) -> Sums:
        """Return the trials with the unknown rates fixed at these values."""
        assert self.context is not None
        return self._replace(context=at(self.context, rates), rates=())

    def levels(self) -> Levels:
        """Return the sorted values of each feature that has few of them; None for others.

        Longitude and latitude have no levels, because neither is a feature by itself.
        """
        wraps = self.wraps or ("",) * self.points.shape[1]
        return tuple(
            _levels(self.points[:, a], self.trials) if kind in ("", "period") else None
            for a, kind in enumerate(wraps)
        )


def pooled(count: int) -> Grid:
    """Return the grid for trials with this many combinations of levels."""
    return POOLED._replace(whole=max(POOLED.whole, FEWEST * count))


def _numbered(group: Floats) -> Floats:
    """Return the rank of each group's number, scaled to the unit box."""
    each, number = np.unique(group, return_inverse=True)
    return np.asarray(number / max(len(each) - 1, 1))


def at(context: Floats, rates: Floats) -> Floats:
    """Return contexts at rates, given those at all corners, shape (r, 2^u (p + 1))."""
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
