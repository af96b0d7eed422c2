"""Between the features' own units and the unit box in which a process lives.

A feature is put into the box by its range, by its ranks or by its logarithm:

    range   (x − low)/(high − low), the ends being those of the domain
    log     the same of log x; what is not positive is far below
    rank    the share of trials below x (and half of those at x), 0 at the least and 1 at the
            greatest value that was seen, linear between at most 1,024 of them and beyond

Points outside the domain are outside the box.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process.blocks import Arrangement, coordinates

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SCALES = ("range", "rank", "log")
# Values of a feature that ranks are told at.
KNOTS = 1_024
# Ranks, or logarithms, that nowhere differ by more from what they would replace are not tried.
ALIKE = 0.1
# So many deviations of a share, ½/√t, are no difference either.
DEVIATIONS = 2.8
# Values of a feature that are looked at together, and bins in which they are counted.
LONG, BINS = 1 << 20, 256


class Axis(NamedTuple):
    """How a feature is put into the box: x, or log x, is `to` at the knots `at`, linear between.

    Beyond the knots it goes on with slope 1/side; a constant feature has one knot, its middle.
    """

    at: Floats
    to: Floats
    side: float
    is_log: bool = False

    def inside(self, x: Floats) -> Floats:
        """Return values in units of the box."""
        if self.is_log:
            x = np.log(np.maximum(x, np.finfo(np.float64).tiny))
        if len(self.at) == 1:
            return np.full_like(x, 0.5)
        if len(self.at) == 2:
            return np.asarray((x - self.at[0]) / self.side)
        beyond = np.minimum(x - self.at[0], 0.0) + np.maximum(x - self.at[-1], 0.0)
        return np.asarray(np.interp(x, self.at, self.to) + beyond / self.side)

    def outside(self, u: Floats) -> Floats:
        """Return values of the feature, for its units within the box."""
        x = np.interp(u, self.to, self.at)
        return np.asarray(np.exp(x) if self.is_log else x)


class Box(NamedTuple):
    """A domain that is made the unit box, feature by feature; constant ones are in its middle.

    If there are categories, an `arrangement` says which columns of points they are; after the
    features come the coordinates of their codes among `levels`, which are sorted.

    Examples
    --------
    >>> import numpy as np
    >>> box = Box.of(np.array([[0.0, 10.0], [7.0, 7.0]]))
    >>> box.inside(np.array([[5.0, 7.0], [20.0, 9.0]])).tolist()
    [[0.5, 0.5], [2.0, 0.5]]
    """

    axes: tuple[Axis, ...]
    levels: tuple[Floats, ...] = ()
    arrangement: Arrangement | None = None

    @classmethod
    def of(cls, bounds: Floats) -> Box:
        """Return the box of bounds (d, 2), by range."""
        return cls(tuple(by_range(*ends) for ends in bounds))

    @classmethod
    def scaled(cls, bounds: Floats, scale: tuple[str, ...], points: Floats, trials: Ints) -> Box:
        """Return the box of bounds by a scale per feature; ranks are those of these trials."""
        return cls(
            tuple(axis(kind, bounds[a], points[:, a], trials) for a, kind in enumerate(scale))
        )

    def inside(self, points: Floats) -> Floats:
        """Return points (m, d) in units of the box, beyond it if they are."""
        if self.arrangement is not None:
            return self.beside(*self.arrangement.arranged(points))
        return np.stack([axis.inside(points[:, a]) for a, axis in enumerate(self.axes)], axis=1)

    def beside(self, points: Floats, codes: Floats) -> Floats:
        """Return points in units of the box, and after them the coordinates of levels."""
        each = [axis.inside(points[:, a]) for a, axis in enumerate(self.axes)]
        each += [coordinates(*both) for both in zip(codes.T, self.levels, strict=True)]
        return np.stack(each, axis=1)

    def outside(self, x: Floats) -> Floats:
        """Return points of the box in own units."""
        if not self.axes:
            return np.zeros((len(x), 0))
        return np.stack([axis.outside(x[:, a]) for a, axis in enumerate(self.axes)], axis=1)

    def within(self, points: Floats) -> Floats:
        """Return the same, none beyond the box: rounding takes none out."""
        return np.clip(self.inside(points), 0.0, 1.0)


def axis(kind: str, ends: Floats, x: Floats, trials: Ints) -> Axis:
    """Return how a feature with these ends of its domain is put into the box."""
    if kind == "log":
        return by_log(*_positive(ends, x, trials))
    if kind == "rank":
        return by_rank(*values(x, trials))
    return by_range(*ends)


def by_range(low: float, high: float) -> Axis:
    """Return the axis from low to high."""
    if not high > low:
        return Axis(np.array([low]), np.array([0.5]), np.inf)
    return Axis(np.array([low, high]), np.array([0.0, 1.0]), float(high - low))


def by_log(low: float, high: float) -> Axis:
    """Return the logarithmic axis from low to high, both positive."""
    return by_range(float(np.log(low)), float(np.log(high)))._replace(is_log=True)


def by_rank(at: Floats, trials: Ints) -> Axis:
    """Return the axis of ranks, for sorted values and their trials."""
    if len(at) == 1:
        return by_range(at[0], at[0])
    below = np.cumsum(trials) - 0.5 * trials
    ranks = (below - below[0]) / (below[-1] - below[0])
    if len(at) > KNOTS:
        kept = np.unique(np.searchsorted(ranks, np.linspace(0.0, 1.0, KNOTS)))
        at, ranks = at[kept], ranks[kept]
    return Axis(at, ranks, float(at[-1] - at[0]))


def values(x: Floats, trials: Ints) -> tuple[Floats, Ints]:
    """Return the distinct values of a feature, sorted, and the trials at each."""
    parts = [
        _values(x[start : start + LONG], trials[start : start + LONG])
        for start in range(0, len(x), LONG)
    ]
    if len(parts) == 1:
        return parts[0]
    at, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    return _values(at, counts)


def _values(x: Floats, trials: Ints) -> tuple[Floats, Ints]:
    seen = trials > 0
    x, trials = x[seen], trials[seen]
    order = np.argsort(x, kind="stable")
    ordered = x[order]
    is_new = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(x) else order
    return ordered[is_new], np.add.reduceat(trials[order], is_new) if len(x) else trials


def _positive(ends: Floats, x: Floats, trials: Ints) -> tuple[float, float]:
    """Return positive ends of a domain: its own, or from the least value that was seen."""
    if ends[0] > 0.0:
        return float(ends[0]), float(ends[1])
    seen = x[trials > 0]
    least = float(seen.min())
    if not least > 0.0:
        raise ValueError(
            f"scale: found 'log' for a feature with the value {least}; logarithms need all "
            "values to be positive"
        )
    return least, float(ends[1])


def candidates(
    bounds: Floats, points: Floats, trials: Ints, unit: float = 1.0
) -> list[tuple[str, ...]]:
    """Return, per feature, the scales that are worth a try, its own units first.

    Ranks if trials are spread unevenly over the range; logarithms if they spread them evenly. 1 of
    `trials` counts for `unit`.
    """
    alike = max(ALIKE, DEVIATIONS * 0.5 / math.sqrt(float(trials.sum()) * unit))
    return [tuple(_worth(bounds[a], points[:, a], trials, alike)) for a in range(len(bounds))]


def _worth(ends: Floats, x: Floats, trials: Ints, alike: float) -> Iterator[str]:
    yield "range"
    plain = by_range(*ends)
    if len(plain.at) == 1 or _is_even(plain, x, trials, alike):
        return
    rank = by_rank(*values(x, trials))
    if len(rank.at) == 1 or _apart(plain, rank) <= alike:
        return
    yield "rank"
    if ends[0] > 0.0:  # else there are points of the domain that have no logarithm
        log = by_log(*_positive(ends, x, trials))
        if _apart(log, rank) < _apart(plain, rank):
            yield "log"


def _apart(one: Axis, rank: Axis) -> float:
    """Return how far two axes differ at the most, at the knots of the second."""
    u = one.inside(rank.at)
    # Where trials are counts, but ends may be far from all of them.
    return float(np.abs((u - u[0]) / (u[-1] - u[0]) - rank.to).max())


def _is_even(plain: Axis, x: Floats, trials: Ints, alike: float) -> bool:
    """Return whether trials surely are spread evenly over the range, by counts in bins."""
    total = np.zeros(BINS, dtype=np.int64)
    for start in range(0, len(x), LONG):
        at = slice(start, start + LONG)
        u = np.clip((plain.inside(x[at]) * BINS).astype(np.int64), 0, BINS - 1)
        total += np.bincount(u, trials[at], BINS).astype(np.int64)
    share = np.cumsum(total) / total.sum()
    even = np.arange(1, BINS + 1) / BINS
    return bool(np.abs(share - even).max() <= alike - 1.0 / BINS)
