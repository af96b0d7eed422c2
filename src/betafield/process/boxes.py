"""Maps between the features' own units and the unit box of a process.

A feature is mapped to the box by its range, by its ranks or by its logarithm:

    range   (x − low)/(high − low), where low and high are the ends of the domain
    log     the same for log x; values that are not positive are far below
    rank    the share of trials below x (and half of those at x), 0 at the smallest and 1 at the
            largest observed value, interpolated linearly between at most 1,024 of them, and beyond
    period  the phase, from 0 to 1, where it starts again

Longitude and latitude are fractions of 360° and of 180° or, if a plane can represent the domain,
coordinates of that plane by their ranges (`betafield.earth`).

Points outside the domain are outside the box.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import earth
from betafield.process.blocks import Arrangement, coordinates
from betafield.process.wrapped import CIRCLE, LATITUDE, LINE, LONGITUDE, Kinds
from betafield.refusals import refused

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SCALES = ("range", "rank", "log")
# Scales that are given, never estimated, and the kind of the feature in the box.
WRAPPED = {"period": CIRCLE, "longitude": LONGITUDE, "latitude": LATITUDE}
# Most values of a feature at which ranks are stored.
KNOTS = 1_024
# Ranks are tried only if somewhere they differ by more than this from the range scale.
ALIKE = 0.1
# The difference must also exceed this many standard deviations of a proportion, ½/√t.
DEVIATIONS = 2.8
# Values of a feature processed at a time, and bins in which they are counted.
LONG, BINS = 1 << 20, 256


class Axis(NamedTuple):
    """How a feature is mapped to the box: x, or log x, is `to` at the knots `at`, linear between.

    Beyond the knots the slope is 1/side; a constant feature has one knot, at the middle.
    """

    at: Floats
    to: Floats
    side: float
    is_log: bool = False
    is_circle: bool = False

    def inside(self, x: Floats) -> Floats:
        """Return values in units of the box."""
        if self.is_circle:
            share = np.mod(x - self.at[0], self.side) / self.side
            return np.where(share < 1.0, share, 0.0)
        if self.is_log:
            x = np.log(np.maximum(x, np.finfo(np.float64).tiny))
        if len(self.at) == 1:
            return np.full_like(x, 0.5)
        if len(self.at) == 2:
            return np.asarray((x - self.at[0]) / self.side)
        beyond = np.minimum(x - self.at[0], 0.0) + np.maximum(x - self.at[-1], 0.0)
        return np.asarray(np.interp(x, self.at, self.to) + beyond / self.side)

    def outside(self, u: Floats) -> Floats:
        """Return values of the feature, given its coordinates in the box."""
        x = np.interp(u, self.to, self.at)
        return np.asarray(np.exp(x) if self.is_log else x)


class Box(NamedTuple):
    """The map of a domain to the unit box, per feature; constant features are at its middle.

    If there are categories, `arrangement` says which columns of points they are; the coordinates
    of their codes among the sorted `levels` come after the features.

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
    chart: Chart | None = None
    kinds: Kinds = ()

    @classmethod
    def of(cls, bounds: Floats) -> Box:
        """Return the box of bounds (d, 2), by range."""
        return cls(tuple(by_range(*ends) for ends in bounds))

    @classmethod
    def scaled(cls, bounds: Floats, scale: tuple[str, ...], points: Floats, trials: Ints) -> Box:
        """Return the box of bounds with one scale per feature; ranks are those of these trials."""
        chart = _chart(bounds, scale)
        axes = tuple(axis(kind, bounds[a], points[:, a], trials) for a, kind in enumerate(scale))
        if chart is not None:
            return cls(axes, chart=chart, kinds=_kinds(scale, ("period",)))
        whole = tuple(map(_whole, axes, scale))
        return cls(whole, kinds=_kinds(scale, tuple(WRAPPED)))

    def inside(self, points: Floats) -> Floats:
        """Return points (m, d) in units of the box; points outside the domain are outside it."""
        if self.arrangement is not None:
            return self.beside(*self.arrangement.arranged(points))
        return self.features(points)

    def beside(self, points: Floats, codes: Floats) -> Floats:
        """Return points in units of the box, followed by the coordinates of levels."""
        levels = [coordinates(*both) for both in zip(codes.T, self.levels, strict=True)]
        return np.column_stack([self.features(points), *levels])

    def features(self, points: Floats) -> Floats:
        """Return the features of points (m, d) in units of the box."""
        x = np.empty((len(points), len(self.axes)))
        for a, axis in enumerate(self.axes):
            x[:, a] = axis.inside(points[:, a])
        return x if self.chart is None else self.chart.inside(points, x)

    def outside(self, x: Floats) -> Floats:
        """Return points of the box in own units."""
        own = np.empty((len(x), len(self.axes)))
        for a, axis in enumerate(self.axes):
            own[:, a] = axis.outside(x[:, a])
        return own if self.chart is None else self.chart.outside(x, own)

    def within(self, points: Floats) -> Floats:
        """Return `inside`, clipped to the box because rounding may leave it."""
        return np.clip(self.inside(points), 0.0, 1.0)


class Chart(NamedTuple):
    """A plane that represents a region of the Earth.

    Parameters
    ----------
    columns : tuple of int
        Columns of longitude and latitude.
    region : Region
        The region.
    low, side : tuple of float
        Origin of the box in coordinates of the plane, east and north, and its side lengths.
    """

    columns: tuple[int, int]
    region: earth.Region
    low: tuple[float, float]
    side: tuple[float, float]

    def inside(self, points: Floats, x: Floats) -> Floats:
        """Return x with longitude and latitude replaced by coordinates of the plane."""
        plane = self.region.plane(*points[:, self.columns].T)
        x[:, self.columns] = (plane.T - self.low) / self.side
        return x

    def outside(self, x: Floats, own: Floats) -> Floats:
        """Return `own` with longitude and latitude computed from the plane."""
        plane = np.array(self.low) + x[:, self.columns] * self.side
        longitude, latitude = self.region.globe(plane.T)
        middle = self.region.longitude  # others are given within half a turn of it
        own[:, self.columns[0]] = middle + earth.wrapped(np.mod(longitude - middle, earth.TURN))
        own[:, self.columns[1]] = latitude
        return own


def _chart(bounds: Floats, scale: tuple[str, ...]) -> Chart | None:
    """Return the plane for longitude and latitude, if there are such and a plane suffices."""
    if "longitude" not in scale:
        return None
    columns = scale.index("longitude"), scale.index("latitude")
    ends = [float(end) for a in columns for end in bounds[a]]
    region = earth.region(*ends)
    if not region.is_regional:
        return None
    plane = region.plane(*earth.edges(*ends))
    low, side = plane.min(axis=1), np.ptp(plane, axis=1)
    side = np.where(side > 0.0, side, max(side.max(), 1.0))
    return Chart(columns, region, (low[0], low[1]), (side[0], side[1]))


def _whole(axis: Axis, kind: str) -> Axis:
    """Return the axis of a feature; those of longitude and latitude cover the whole Earth."""
    if kind == "longitude":
        return by_period(-180.0, 180.0)
    return by_range(*earth.LATITUDES) if kind == "latitude" else axis


def _kinds(scale: tuple[str, ...], wrapping: tuple[str, ...]) -> Kinds:
    """Return the kind of each feature in the box; empty if all are lines."""
    kinds = tuple(WRAPPED[kind] if kind in wrapping else LINE for kind in scale)
    return kinds if any(kind != LINE for kind in kinds) else ()


def axis(kind: str, ends: Floats, x: Floats, trials: Ints) -> Axis:
    """Return the axis of a feature whose domain has these ends."""
    if kind == "log":
        return by_log(*_positive(ends, x, trials))
    if kind == "rank":
        return by_rank(*values(x, trials))
    return by_period(*ends) if kind == "period" else by_range(*ends)


def by_period(low: float, high: float) -> Axis:
    """Return the axis of a feature for which `high` is the same as `low`."""
    return by_range(low, high)._replace(is_circle=True)


def by_range(low: float, high: float) -> Axis:
    """Return the axis from low to high."""
    if not high > low:
        return Axis(np.array([low]), np.array([0.5]), np.inf)
    return Axis(np.array([low, high]), np.array([0.0, 1.0]), float(high - low))


def by_log(low: float, high: float) -> Axis:
    """Return the logarithmic axis from low to high, both positive."""
    return by_range(float(np.log(low)), float(np.log(high)))._replace(is_log=True)


def by_rank(at: Floats, trials: Ints) -> Axis:
    """Return the axis of ranks, given sorted values and their trials."""
    if len(at) == 1:
        return by_range(at[0], at[0])
    below = np.cumsum(trials) - 0.5 * trials
    ranks = (below - below[0]) / (below[-1] - below[0])
    if len(at) > KNOTS:
        kept = np.unique(np.searchsorted(ranks, np.linspace(0.0, 1.0, KNOTS)))
        at, ranks = at[kept], ranks[kept]
    return Axis(at, ranks, float(at[-1] - at[0]))


def values(x: Floats, trials: Ints, long: int = LONG) -> tuple[Floats, Ints]:
    """Return the distinct values of a feature, sorted, and the trials at each.

    Columns are processed in parts of length `long`.
    """
    parts = [
        _values(x[start : start + long], trials[start : start + long])
        for start in range(0, len(x), long)
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
    """Return positive ends of a domain: its own, or from the smallest observed value."""
    if ends[0] > 0.0:
        return float(ends[0]), float(ends[1])
    seen = x[trials > 0]
    least = float(seen.min())
    if not least > 0.0:
        raise refused(
            "scale",
            f"found 'log' for a feature with the value {least}; logarithms need all "
            "values to be positive",
        )
    return least, float(ends[1])


def candidates(
    bounds: Floats,
    points: Floats,
    trials: Ints,
    unit: float = 1.0,
    wraps: tuple[str, ...] = (),
) -> list[tuple[str, ...]]:
    """Return, per feature, the scales worth trying, its own units first.

    Ranks are tried if trials are spread unevenly over the range, and logarithms too if they spread
    trials more evenly. 1 of `trials` stands for `unit`. Features that wrap around have the scale
    given in `wraps`.
    """
    alike = max(ALIKE, DEVIATIONS * 0.5 / math.sqrt(float(trials.sum()) * unit))
    return [
        (kind,) if kind else tuple(_worth(bounds[a], points[:, a], trials, alike))
        for a, kind in enumerate(wraps or ("",) * len(bounds))
    ]


def _worth(ends: Floats, x: Floats, trials: Ints, alike: float) -> Iterator[str]:
    yield "range"
    plain = by_range(*ends)
    if len(plain.at) == 1 or _is_even(plain, x, trials, alike):
        return
    rank = by_rank(*values(x, trials))
    if len(rank.at) == 1 or _apart(plain, rank) <= alike:
        return
    yield "rank"
    if ends[0] > 0.0:  # otherwise some points of the domain have no logarithm
        log = by_log(*_positive(ends, x, trials))
        if _apart(log, rank) < _apart(plain, rank):
            yield "log"


def _apart(one: Axis, rank: Axis) -> float:
    """Return the largest difference between two axes at the knots of the second."""
    u = one.inside(rank.at)
    # Only the range of the trials counts, because the ends may be far from all of them.
    return float(np.abs((u - u[0]) / (u[-1] - u[0]) - rank.to).max())


def _is_even(plain: Axis, x: Floats, trials: Ints, alike: float) -> bool:
    """Return whether counts in bins show that trials are spread evenly over the range."""
    total = np.zeros(BINS, dtype=np.int64)
    for start in range(0, len(x), LONG):
        at = slice(start, start + LONG)
        u = np.clip((plain.inside(x[at]) * BINS).astype(np.int64), 0, BINS - 1)
        total += np.bincount(u, trials[at], BINS).astype(np.int64)
    share = np.cumsum(total) / total.sum()
    even = np.arange(1, BINS + 1) / BINS
    return bool(np.abs(share - even).max() <= alike - 1.0 / BINS)
