"""Places on Earth, by longitude and latitude in degrees; the Earth is taken to be a sphere.

Distances between places are along great circles. The chord c between two unit vectors determines
the angle of the great circle, 2 arcsin(c/2), so there is no border anywhere: neither at the date
line nor at the poles.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Valid longitudes and latitudes.
LONGITUDES, LATITUDES = (-180.0, 360.0), (-90.0, 90.0)
TURN = 360.0
# If a gap of this many degrees of longitude has no trials, the rest is treated as an arc.
GAP = 30.0
# Points sampled on each edge of a region.
EDGE = 257
# A region within this many degrees of its centre is projected to a plane, which distorts distances
# by at most 13 %: 1/cos(ρ/2).
REGIONAL = 55.0


def wrapped(longitude: Floats) -> Floats:
    """Return longitudes in [−180, 180).

    Examples
    --------
    >>> import numpy as np
    >>> wrapped(np.array([0.0, 180.0, 190.0, 359.0])).tolist()
    [0.0, -180.0, -170.0, -1.0]
    """
    out = np.where(longitude >= 180.0, longitude - TURN, longitude)
    return np.where(out >= 180.0, out - TURN, out) + 0.0


def arc(longitude: Floats) -> tuple[float, float]:
    """Return the shortest arc (west, east) that contains longitudes of [−180, 180).

    It is the whole circle, (−180, 180), unless at least 30° have no longitudes.

    Examples
    --------
    >>> import numpy as np
    >>> arc(np.array([-179.0, 178.0])), arc(np.array([-170.0, -60.0, 20.0, 50.0, 130.0]))
    ((178.0, 181.0), (-60.0, 190.0))
    """
    at = np.unique(longitude)
    gaps = np.diff(at, append=at[:1] + TURN)
    widest = int(np.argmax(gaps))
    west = float(at[(widest + 1) % len(at)])
    east = west + (TURN - float(gaps[widest]))
    # Exactly the given longitude, without rounding.
    east = float(at[widest]) if west <= at[widest] else float(at[widest]) + TURN
    if gaps[widest] < GAP or east > LONGITUDES[1]:
        return -180.0, 180.0
    return west, east


def vectors(longitude: Floats, latitude: Floats) -> Floats:
    """Return unit vectors of places, shape (3, m).

    Examples
    --------
    >>> import numpy as np
    >>> vectors(np.array([0.0, 90.0]), np.array([0.0, 90.0])).round(3).T.tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    around, up = np.radians(longitude), np.radians(latitude)
    level = np.cos(up)
    return np.stack([level * np.cos(around), level * np.sin(around), np.sin(up)])


def places(vectors: Floats) -> tuple[Floats, Floats]:
    """Return longitudes and latitudes of vectors (3, m) of any length."""
    x, y, z = vectors
    return wrapped(np.degrees(np.arctan2(y, x))), np.degrees(np.arctan2(z, np.hypot(x, y)))


class Region(NamedTuple):
    """A cap of the Earth: its centre, and its radius in degrees of a great circle."""

    longitude: float
    latitude: float
    radius: float

    @property
    def is_regional(self) -> bool:
        """Whether it can be projected to a plane."""
        return self.radius <= REGIONAL

    @property
    def extent(self) -> float:
        """Degrees from end to end, at most half way around the Earth."""
        return min(2.0 * self.radius, 180.0)

    def plane(self, longitude: Floats, latitude: Floats) -> Floats:
        """Return places in the plane tangent at the centre, in degrees, shape (2, m).

        Lambert's azimuthal equal-area projection: first to the east, then to the north.
        """
        x, y, z = self._turn() @ vectors(longitude, latitude)
        stretch = np.degrees(np.sqrt(2.0 / np.maximum(1.0 + x, 1e-12)))
        return np.stack([y * stretch, z * stretch])

    def globe(self, plane: Floats) -> tuple[Floats, Floats]:
        """Return longitudes and latitudes of points (2, m) of the plane."""
        east, north = np.radians(plane)
        away = np.minimum(0.25 * (east**2 + north**2), 1.0)
        stretch = np.sqrt(1.0 - away)
        local = np.stack([1.0 - 2.0 * away, east * stretch, north * stretch])
        return places(self._turn().T @ local)

    def _turn(self) -> Floats:
        """Return the rotation that takes the centre to (1, 0, 0), and north to (0, 0, 1)."""
        lon, lat = np.radians([self.longitude, self.latitude])
        a, b, c, d = np.cos(lon), np.sin(lon), np.cos(lat), np.sin(lat)
        return np.array([[c * a, c * b, d], [-b, a, 0.0], [-d * a, -d * b, c]])


@functools.lru_cache(maxsize=64)
def region(west: float, east: float, south: float, north: float) -> Region:
    """Return the smallest cap about the middle of these bounds, or about a pole, containing them.

    Examples
    --------
    >>> region(5.9, 10.5, 45.8, 47.8).is_regional, region(-180.0, 180.0, -90.0, 90.0).is_regional
    (True, False)
    >>> region(-180.0, 180.0, 66.0, 90.0)
    Region(longitude=0.0, latitude=90.0, radius=24.0)
    """
    lon, lat = edges(west, east, south, north)
    held = vectors(lon, lat)
    middles = [(0.5 * (west + east), 0.5 * (south + north)), (0.0, 90.0), (0.0, -90.0)]
    each = [Region(*middle, _farthest(middle, held)) for middle in middles]
    return min(each, key=lambda one: one.radius)


def edges(west: float, east: float, south: float, north: float) -> tuple[Floats, Floats]:
    """Return longitudes and latitudes of points along the edges of bounds."""
    lon, lat = np.linspace(west, east, EDGE), np.linspace(south, north, EDGE)
    ends = [(lon, np.full(EDGE, south)), (lon, np.full(EDGE, north))]
    ends += [(np.full(EDGE, west), lat), (np.full(EDGE, east), lat)]
    around, up = zip(*ends, strict=True)
    return np.concatenate(around), np.concatenate(up)


def _farthest(middle: tuple[float, float], held: Floats) -> float:
    """Return the degrees from a place to the farthest of some unit vectors."""
    at = vectors(*np.array(middle)[:, None])
    chord = np.sqrt(((held - at) ** 2).sum(axis=0)).max()
    return round(float(np.degrees(2.0 * np.arcsin(min(0.5 * float(chord), 1.0)))), 9)
