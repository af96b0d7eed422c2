"""Units in which distances are measured: features are scaled so that they can be compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import checks, earth
from betafield.refusals import refused
from betafield.wraps import Wraps, arc_of, chord_of, is_chord

Floats = npt.NDArray[np.float64]

# Maps points and their weights to columns.
Column = Callable[[Floats, Floats], Floats]

SCALES = ("auto", "range", "std", "rank", "log")
# The unit that puts different codes of a category out of each other's reach; a power of two, so
# that nothing is rounded.
APART = 2.0**-20
# Scales for a process, which can be given per feature.
CURVED = ("range", "rank", "log")


NEVER = Wraps(())


@dataclass(frozen=True)
class Units:
    """Scaled coordinates z = (x − origin) / unit, per feature.

    A constant feature has an infinite unit, so it adds no distance.

    Examples
    --------
    >>> import numpy as np
    >>> units = Units(origin=np.array([10.0, 0.0]), unit=np.array([2.0, np.inf]))
    >>> units.scaled(np.array([[11.0, 7.0]])).tolist()
    [[0.5, 0.0]]
    """

    origin: Floats
    unit: Floats
    wraps: Wraps = NEVER

    @property
    def dimensions(self) -> int:
        """Coordinates of a point in scaled units: a circle takes two, the sphere three."""
        return len(self.origin) + self.wraps.more

    @property
    def radii(self) -> tuple[float, ...]:
        """Radii of the circles and the sphere, in scaled units."""
        each = [period / (2.0 * np.pi) for period in self.wraps.periods]
        if self.wraps.earth is not None:
            each[self.wraps.earth[1]] = earth.TURN / (2.0 * np.pi)
        return tuple(float(one / unit) for one, unit in zip(each, self.unit, strict=False) if one)

    def axis(self, feature: int) -> int:
        """Return which coordinate is that of a feature that does not wrap around."""
        before = self.wraps.scales[:feature]
        more = {"": 0, "period": 1, "longitude": -1, "latitude": 2}
        return feature + sum(more[kind] for kind in before)

    def straight(self, width: float) -> float:
        """Return the chord length that corresponds to an arc along the circle or sphere."""
        return chord_of(width, *self.radii) if is_chord(self.wraps) else width

    def told(self, widths: Floats) -> Floats:
        """Return the arcs along the circle or sphere that correspond to these chord lengths."""
        if not is_chord(self.wraps):
            return widths
        return np.array([arc_of(float(width), *self.radii) for width in widths])

    def sides(self, bounds: Floats) -> Floats:
        """Return the side lengths of a domain (d, 2), in scaled units."""
        spans = bounds[:, 1] - bounds[:, 0]
        if self.wraps.earth is not None:
            i, j = self.wraps.earth
            spans[i] *= np.cos(np.radians(bounds[j].mean()))
        return np.asarray(spans / self.unit)

    def scaled(self, X: Floats) -> Floats:
        """Return X, of shape (m, d), in scaled units; overflow becomes infinity."""
        if self.wraps:
            return np.ascontiguousarray(self._rounded(X).T)
        with np.errstate(over="ignore"):
            return (X - self.origin) / self.unit

    def axes(self, X: Floats) -> Floats:
        """Return X in scaled units as a new array of shape (d, m), one row per axis."""
        if self.wraps:
            return self._rounded(X)
        out = np.empty(X.shape[::-1])
        np.subtract(X.T, self.origin[:, None], out=out)
        out /= self.unit[:, None]
        return out

    def among(self, numeric: list[int], every: Floats, wraps: Wraps) -> Units:
        """Return units for all features, in which other features keep different values apart.

        `every` has one row per feature, and `wraps` says which of them wrap around.
        """
        if len(numeric) == len(every):
            return self
        origin, unit = np.zeros(len(every)), np.full(len(every), APART)
        origin[numeric], unit[numeric] = self.origin, self.unit
        return Units(origin, unit, wraps)

    def restored(self, axes: Floats) -> Floats:
        """Return scaled axes (d, m) as points (m, d) in the features' own units."""
        if self.wraps:
            return self._unrounded(axes)
        with np.errstate(invalid="ignore"):
            steps = np.where(np.isfinite(self.unit)[:, None], axes * self.unit[:, None], 0.0)
        return (steps + self.origin[:, None]).T

    def _rounded(self, X: Floats) -> Floats:
        """Return points (m, d) as coordinates (D, m) of lines, circles and the sphere."""
        rows: list[Floats] = []
        for a, (x, kind) in enumerate(
            zip(np.ascontiguousarray(X.T), self.wraps.scales, strict=True)
        ):
            if kind == "period":
                angle, radius = x * (2.0 * np.pi / self.wraps.periods[a]), self._radius(a)
                rows += [radius * np.cos(angle), radius * np.sin(angle)]
            elif kind == "latitude":
                rows += list(
                    self._radius(a) * earth.vectors(X[:, self.wraps.scales.index("longitude")], x)
                )
            elif not kind:
                with np.errstate(over="ignore"):
                    rows.append((x - self.origin[a]) / self.unit[a])
        return np.stack(rows) + 0.0

    def _unrounded(self, axes: Floats) -> Floats:
        """Return the points (m, d) with these coordinates."""
        out, rows = np.empty((axes.shape[1], len(self.origin))), iter(axes)
        for a, kind in enumerate(self.wraps.scales):
            if kind == "period":
                x, y = next(rows), next(rows)
                share = np.mod(np.arctan2(y, x) / (2.0 * np.pi), 1.0)
                out[:, a] = np.where(share < 1.0, share, 0.0) * self.wraps.periods[a]
            elif kind == "latitude":
                found = earth.places(np.stack([next(rows), next(rows), next(rows)]))
                out[:, self.wraps.scales.index("longitude")], out[:, a] = found
            elif not kind:
                step = next(rows) * self.unit[a] if np.isfinite(self.unit[a]) else 0.0
                out[:, a] = step + self.origin[a]
        return out

    def _radius(self, feature: int) -> float:
        own = self.wraps.periods[feature] or earth.TURN
        return float(own / (2.0 * np.pi) / self.unit[feature])


def measure(
    scale: Any, bounds: Floats, X: Floats, weigh: Callable[[], Floats], wraps: Wraps = NEVER
) -> Units:
    """Return the units for `scale`, given the domain and the first data.

    `weigh()` returns the weight of each row of X; it is called only for standard deviations.
    """
    d = X.shape[1]
    if scale is None:
        return Units(np.zeros(d), np.ones(d), wraps)
    given = checked_scale(scale, d)
    if is_curved(scale):
        raise refused(
            "scale",
            f"found {scale!r}, which is for method='auto' and 'process'; windows "
            "need 'auto', 'range', 'std', None, or one number per feature",
        )
    if given is not None:
        _require_alike(given, wraps)
        return Units(bounds[:, 0], given, wraps)
    require_span(bounds)
    unit = _deviations(X, weigh()) if scale == "std" else bounds[:, 1] - bounds[:, 0]
    if wraps.earth is not None:
        each = list(wraps.earth)
        unit[each] = earth.region(*bounds[each].ravel().tolist()).extent or 1.0
    return Units(bounds[:, 0], np.where(unit > 0, unit, np.inf), wraps)


def _require_alike(unit: Floats, wraps: Wraps) -> None:
    """Raise if longitude and latitude have different units."""
    if wraps.earth is not None and unit[wraps.earth[0]] != unit[wraps.earth[1]]:
        raise refused(
            "scale",
            f"found {unit[list(wraps.earth)].tolist()} for longitude and latitude; both are "
            "degrees along great circles, so one number is needed for both",
        )


def is_curved(scale: Any) -> bool:
    """Return whether the scale names units that only a process can have."""
    if isinstance(scale, str):
        return scale in ("rank", "log")
    return isinstance(scale, list | tuple) and any(isinstance(each, str) for each in scale)


def checked_scale(scale: Any, d: int) -> Floats | None:
    """Return the units if they were given as numbers; raise for an invalid scale."""
    if scale is None:
        return None
    if isinstance(scale, str):
        rule = (
            "allowed are 'auto', 'range', 'std', 'rank', 'log', None, one number per feature, or "
            "one of 'range', 'rank', 'log' per feature"
        )
        checks.one_of("scale", scale, SCALES, rule)
        return None
    if isinstance(scale, list | tuple) and scale and all(isinstance(each, str) for each in scale):
        for each in scale:
            checks.one_of("scale", each, CURVED)
        checks.require(len(scale) == d, "scale", scale, f"one per feature is needed, {d}")
        return None
    unit = checks.array("scale", scale, "one number per feature is needed").copy()
    checks.shaped("scale", unit, (d,), f"one number per feature is needed, ({d},)")
    good = np.isfinite(unit) & (unit > 0)
    checks.require(good.all(), "scale", unit.tolist(), "every unit must be positive and finite")
    return unit


def domain(bounds: Any, X: Floats) -> Floats:
    """Return the bounds (d, 2): those given, or the range of X."""
    if bounds is None:
        return np.stack([X.min(axis=0), X.max(axis=0)], axis=1)
    return np.array(checks.array("bounds", bounds))


def check_bounds(
    bounds: Any,
    X: Floats,
    present: npt.NDArray[np.bool_],
    columns: Sequence[Any] | None = None,
) -> None:
    """Raise unless the bounds are sound and hold the rows of X that are present."""
    if bounds is None:
        return
    box = checks.array("bounds", bounds, "(low, high) per feature is needed, shape (d, 2)")
    needed = f"(low, high) per feature is needed, ({X.shape[1]}, 2)"
    checks.shaped("bounds", box, (X.shape[1], 2), needed)
    good = np.isfinite(box).all() and (box[:, 0] <= box[:, 1]).all()
    checks.require(good, "bounds", box.tolist(), "each must be finite, with low <= high")
    outside = ((box[:, 0] > X) | (box[:, 1] < X)) & present[:, None]
    if outside.any():
        rule = f"bounds allow {box[checks.first(outside)[1]].tolist()}"
        checks.require_all(~outside, "X", X, rule, columns)


def require_span(bounds: Floats) -> None:
    """Raise for the first feature whose range exceeds what a float can hold."""
    with np.errstate(over="ignore"):
        spans = bounds[:, 1] - bounds[:, 0]
    if not np.isfinite(spans).all():
        column = int(np.argmin(np.isfinite(spans)))
        raise ValueError(
            f"X column {column}: found values from {bounds[column, 0]:g} to "
            f"{bounds[column, 1]:g}; a range must be a finite float64, so rescale the feature"
        )


def _deviations(X: Floats, weight: Floats) -> Floats:
    """Return the standard deviation of each feature."""
    return deviations(
        X.min(axis=0),
        np.ptp(X, axis=0),
        lambda column: np.array([math.fsum(each) for each in column(X, weight).T]),
    )


def deviations(low: Floats, span: Floats, sums: Callable[[Column], Floats]) -> Floats:
    """Return the standard deviation of each feature, summed exactly, in any order of rows.

    `sums` adds up the columns that a function computes from points (t, d) and their weights (t,).
    """
    # In units of the span, so that squares neither overflow nor underflow; 0 stays 0.
    side = np.where(span > 0, span, 1.0)
    total = sums(lambda _, weight: weight[:, None])
    means = sums(lambda X, weight: weight[:, None] * ((X - low) / side)) / total
    squares = sums(lambda X, weight: weight[:, None] * ((X - low) / side - means) ** 2)
    return np.asarray(span * np.sqrt(squares / total))


def require_positive(scale: Any, points: Floats, columns: Sequence[Any]) -> None:
    """Raise for the first value without a logarithm where the scale is "log"."""
    asked = of_process(scale)
    kinds = (asked,) * points.shape[1] if isinstance(asked, str) else asked
    wrong = (points <= 0.0) & (np.array(kinds) == "log")
    rule = "where scale is 'log', values must be positive"
    checks.require_all(~wrong, "X", points, rule, columns)


def of_process(scale: Any) -> str | tuple[str, ...]:
    """Return the units of a process; it learns its length scales, so it ignores factors."""
    if isinstance(scale, str):
        return "range" if scale == "std" else scale
    if isinstance(scale, list | tuple) and all(isinstance(each, str) for each in scale):
        return tuple(scale)
    return "range"
