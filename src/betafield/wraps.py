"""Features that wrap around, from `periodic` and `geographic`: hours, places on Earth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import checks, earth
from betafield.refusals import mistyped, refused

Floats = npt.NDArray[np.float64]

PERIODS = "a mapping of features, by name or number, to positive numbers is needed"
PAIR = "the names or numbers of two features are needed, longitude and latitude"
POLE = 90.0


class Wraps(NamedTuple):
    """The period of each feature, 0 if it has none, and which are longitude and latitude.

    Examples
    --------
    >>> import numpy as np
    >>> wraps = of({"hour": 24}, None, 2, ["hour", "dose"])
    >>> wraps.wrapped(np.array([[25.0, 25.0], [-1.0, -1.0]])).tolist()
    [[1.0, 25.0], [23.0, -1.0]]
    """

    periods: tuple[float, ...]
    earth: tuple[int, int] | None = None

    def __bool__(self) -> bool:
        """Whether any feature wraps around."""
        return self.earth is not None or any(self.periods)

    @property
    def more(self) -> int:
        """Number of extra coordinates: a circle has two per feature, the sphere three per pair."""
        return sum(map(bool, self.periods)) + (self.earth is not None)

    @property
    def scales(self) -> tuple[str, ...]:
        """The scale of each feature, empty if it does not wrap around; () if none does."""
        each = ["period" if period else "" for period in self.periods]
        if self.earth is not None:
            each[self.earth[0]], each[self.earth[1]] = "longitude", "latitude"
        return tuple(each) if self else ()

    def among(self, columns: list[int]) -> Wraps:
        """Return the wraps of these columns, in their order."""
        periods = tuple(self.periods[a] for a in columns)
        if self.earth is None:
            return Wraps(periods)
        i, j = self.earth
        return Wraps(periods, (columns.index(i), columns.index(j)))

    def wrapped(self, points: Floats) -> Floats:
        """Return points (m, d) with one value per place: hour 24 is 0, poles have longitude 0."""
        if not self:
            return points
        out = points.copy()
        for a, period in enumerate(self.periods):
            if period:
                rest = np.mod(points[:, a], period)
                out[:, a] = np.where(rest < period, rest, 0.0) + 0.0
        if self.earth is not None:
            i, j = self.earth
            is_pole = np.abs(points[:, j]) == POLE
            out[:, i] = np.where(is_pole, 0.0, earth.wrapped(points[:, i]))
        return out

    def require(
        self, points: Floats, name: str = "X", columns: Sequence[Any] | None = None
    ) -> None:
        """Raise for the first invalid longitude or latitude."""
        ends = (earth.LONGITUDES, earth.LATITUDES)
        for a, (low, high) in zip(self.earth or (), ends, strict=False):
            good = np.ones(points.shape, dtype=np.bool_)
            good[:, a] = ~((points[:, a] < low) | (points[:, a] > high))
            what = "longitudes" if high > POLE else "latitudes"
            rule = f"{what} from {low:g} to {high:g} are allowed"
            checks.require_all(good, name, points, rule, columns)

    def domain(self, bounds: Floats, values: Callable[[int], Floats]) -> Floats:
        """Return the domain of trials within bounds (d, 2); `values` returns those of a feature.

        A periodic feature has its period; longitudes have the shortest arc that contains them.
        """
        bounds = bounds.copy()
        for a, period in enumerate(self.periods):
            if period:
                bounds[a] = 0.0, period
        if self.earth is not None:
            bounds[self.earth[0]] = earth.arc(values(self.earth[0]))
        return bounds

    def placed(self, points: Floats, bounds: Floats, name: str = "X") -> Floats:
        """Return points as places in the domain; raise for invalid longitudes or latitudes."""
        self.require(points, name)
        return self.unrolled(self.wrapped(points), bounds)

    def differ(self, *bounds: Floats) -> bool:
        """Return whether a flat map suits the places on Earth within only some of these bounds."""
        if self.earth is None:
            return False
        ends = [each[list(self.earth)].ravel().tolist() for each in bounds]
        return len({earth.region(*each).is_regional for each in ends}) > 1

    def unrolled(self, points: Floats, bounds: Floats) -> Floats:
        """Return points with longitudes in the turn that starts at the western bound."""
        if self.earth is None:
            return points
        out, west = points.copy(), float(bounds[self.earth[0], 0])
        longitude = out[:, self.earth[0]]
        out[:, self.earth[0]] = np.where(longitude < west, longitude + earth.TURN, longitude)
        return out


def of(periodic: Any, geographic: Any, d: int, names: Any = None) -> Wraps:
    """Return which of d features wrap around; raise for unknown features.

    Examples
    --------
    >>> of(None, ("lon", "lat"), 3, ["lat", "lon", "hour"]).scales
    ('latitude', 'longitude', '')
    """
    periods = [0.0] * d
    for key, period in (periodic or {}).items():
        periods[_column("periodic", key, d, names)] = float(period)
    if geographic is None:
        return Wraps(tuple(periods))
    i, j = (_column("geographic", key, d, names) for key in geographic)
    checks.require(i != j, "geographic", geographic, PAIR)
    for a, key in zip((i, j), geographic, strict=True):
        if periods[a]:
            raise refused(
                "periodic",
                f"found {checks.spelled(key)}, which is geographic too; leave it out of "
                "one of the two",
            )
    return Wraps(tuple(periods), (i, j))


def checked(periodic: Any, geographic: Any) -> None:
    """Raise for invalid options, whatever the features are."""
    if periodic is not None:
        if not isinstance(periodic, Mapping):
            raise mistyped("periodic", f"found {checks.spelled(periodic)}; {PERIODS}")
        for key, period in periodic.items():
            _require_key("periodic", key, PERIODS)
            if not (checks.is_number(period) and 0.0 < checks.as_float(period) < math.inf):
                said = f"found {checks.spelled(period)}; a positive number is needed"
                raise refused("periodic", said, part=f"feature {checks.spelled(key)}")
    if geographic is not None:
        if isinstance(geographic, str) or not isinstance(geographic, list | tuple):
            raise mistyped("geographic", f"found {checks.spelled(geographic)}; {PAIR}")
        checks.require(len(geographic) == 2, "geographic", geographic, PAIR)
        for key in geographic:
            _require_key("geographic", key, PAIR)


def require_free(wraps: Wraps, signs: tuple[int, ...]) -> None:
    """Raise for a feature that both wraps around and is constrained to be monotone."""
    for a, (kind, sign) in enumerate(zip(wraps.scales, signs, strict=False)):
        if kind and sign:
            what = "periodic" if kind == "period" else "geographic"
            said = f"found {sign} for a feature that is {what}; what comes back to where it "
            said += "started cannot rise or fall all the way"
            raise refused("monotonic_cst", said, part=f"feature {a}")


def require_bounds(wraps: Wraps, bounds: Any) -> None:
    """Raise for well-shaped bounds that do not suit features that wrap around."""
    if bounds is None or not wraps:
        return
    box = np.asarray(bounds, dtype=np.float64)
    for a, period in enumerate(wraps.periods):
        if period and box[a].tolist() != [0.0, period]:
            said = f"found {box[a].tolist()} for a feature that is periodic; "
            raise refused("bounds", f"{said}[0, {period:g}] is needed", part=f"feature {a}")
    if wraps.earth is not None:
        wraps.require(box.T, "bounds")
        west, east = box[wraps.earth[0]]
        rule = "longitudes must not go round more than once"
        checks.require(east - west <= earth.TURN, "bounds", box[wraps.earth[0]].tolist(), rule)


def _require_key(name: str, key: Any, rule: str) -> None:
    is_number = isinstance(key, int | np.integer) and not isinstance(key, bool)
    if not (is_number or isinstance(key, str)):
        raise mistyped(name, f"found {checks.spelled(key)}; {rule}")


def _column(name: str, key: Any, d: int, names: Any) -> int:
    """Return the index of the feature that a key names."""
    known = [f"x{a}" for a in range(d)] if names is None else [str(each) for each in names]
    if isinstance(key, str):
        checks.require(key in known, name, key, f"the features are {', '.join(known)}")
        return known.index(key)
    rule = f"features are numbered from 0 to {d - 1}"
    checks.require(0 <= key < d, name, key, rule)
    return int(key)


def is_chord(wraps: Wraps) -> bool:
    """Return whether all features form one circle or one sphere, so a chord determines its arc."""
    return sum(1 for kind in wraps.scales if kind != "longitude") == 1 and bool(wraps)


def arc_of(chord: float, radius: float) -> float:
    """Return the arc of a chord; half the circle for chords from the diameter on.

    Examples
    --------
    >>> round(arc_of(2.0, 1.0), 4), round(chord_of(arc_of(0.3, 1.0), 1.0), 12)
    (3.1416, 0.3)
    """
    if not math.isfinite(radius):
        return chord
    return 2.0 * radius * math.asin(min(0.5 * chord / radius, 1.0))


def chord_of(arc: float, radius: float) -> float:
    """Return the chord of an arc; infinite from half the circle on."""
    if not math.isfinite(radius):
        return arc
    return 2.0 * radius * math.sin(0.5 * arc / radius) if arc < math.pi * radius else math.inf
