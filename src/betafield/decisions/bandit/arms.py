"""The arms of a bandit: named arms, points, or all points between bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield.decisions.sides import Side
from betafield.decisions.space import Space

Floats = npt.NDArray[np.float64]
Point = dict[str, float]

# Limits, because every pull computes the posterior of all points, or one per named arm.
MOST_POINTS, MOST_NAMES = 1 << 20, 1 << 12
# Candidates of a continuum with one feature, and with more.
FEW, MANY = 1 << 8, 1 << 10
# Most pulls in one batch, because all are kept until their rewards come.
MOST_PULLS = 1 << 20


@dataclass(frozen=True, eq=False)
class Arms:
    """The arms, with their own features and those observed before a pull.

    Parameters
    ----------
    names : tuple of str, or None
        Names of the arms, if they have names; each has its own field.
    points : array of shape (m, c), or None
        Otherwise the points, in the features that are chosen.
    chosen, observed : Space or None
        Features of the points, and those that are known before a pull.
    is_continuum : bool
        Whether the points are candidates that represent a continuum.
    """

    names: tuple[str, ...] | None
    points: Floats | None
    chosen: Space | None
    observed: Space | None
    is_continuum: bool = False

    @classmethod
    def of(cls, arms: Any, observed: Any, seed: int) -> Arms:
        """Return the arms that a user describes; `seed` places the candidates of a continuum."""
        if isinstance(arms, Arms):
            return arms
        seen = None if observed is None else Space.of(observed, what="observed", is_plain=True)
        if isinstance(arms, Mapping):
            chosen = Space.of(arms, what="arms", is_plain=True)
            n = FEW if len(chosen.names) == 1 else MANY
            return cls(None, chosen.sobol(n, seed), _apart(chosen, seen), seen, True)
        if _is_table(arms):
            return cls.at(*_table(arms), observed)
        return cls(_names(arms), None, None, seen)

    @classmethod
    def at(cls, names: Sequence[str], points: Floats, observed: Any) -> Arms:
        """Return the arms at these points."""
        seen = None if observed is None else Space.of(observed, what="observed", is_plain=True)
        low, high = points.min(axis=0).tolist(), points.max(axis=0).tolist()
        chosen = Space(tuple(names), tuple(map(Side, low, high)))
        return cls(None, points, _apart(chosen, seen), seen)

    @property
    def n_fields(self) -> int:
        """The number of fields to learn."""
        return 1 if self.names is None else len(self.names)

    @property
    def size(self) -> int:
        """The number of arms that a pull chooses from."""
        return len(self.points) if self.points is not None else self.n_fields

    @property
    def features(self) -> tuple[str, ...]:
        """The names of all features, those chosen first."""
        spaces = (self.chosen, self.observed)
        return tuple(name for space in spaces if space for name in space.names)

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The bounds of all features; if there are none, those of a single point."""
        spaces = (self.chosen, self.observed)
        return [ends for space in spaces if space for ends in space.bounds] or [(0.0, 0.0)]

    def rows(self, given: Floats) -> Floats:
        """Return all features of every point, given the observed ones."""
        assert self.points is not None
        if not given.size:
            return self.points
        return np.hstack([self.points, np.tile(given, (len(self.points), 1))])

    def many(self, n: int) -> Floats:
        """Return all points, or n points of a continuum."""
        assert self.points is not None
        assert self.chosen is not None
        return self.chosen.sobol(n, 0) if self.is_continuum else self.points

    def row_of(self, at: int, given: Floats) -> Floats:
        """Return all features of an arm, given the observed ones."""
        if self.points is not None:
            return np.concatenate([self.points[at], given])
        return given if given.size else np.zeros(1)

    def arm(self, at: int) -> Any:
        """Return the arm as users see it: its name, its number, or its point in a continuum."""
        if self.names is not None:
            return self.names[at]
        if not self.is_continuum:
            return at
        assert self.points is not None
        assert self.chosen is not None
        return self.chosen.point(self.points[at])

    def point(self, row: Floats) -> Point:
        """Return the mapping of a row of all features."""
        return dict(zip(self.features, row.tolist(), strict=bool(self.features)))

    def row(self, what: str, point: Any) -> Floats:
        """Return the row of a mapping of all features."""
        if not self.features:
            return np.zeros(1)
        return Space(self.features, tuple(Side(*ends) for ends in self.bounds)).row(what, point)

    def field(self, arm: Any) -> int:
        """Return the number of the field of an arm."""
        if self.names is None:
            if arm is not None:
                rule = "these arms have no names; describe the arm by its features alone"
                raise ValueError(f"arm: found {checks.spelled(arm)}; {rule}")
            return 0
        rule = f"the arms are {_some(self.names)}"
        return self.names.index(checks.one_of("arm", arm, self.names, rule))

    def given(self, x: Any, n: Any) -> tuple[Floats, bool]:
        """Return the observed features, one row per pull, and whether a single pull is wanted."""
        if n is not None:
            n = checks.whole("n", n, high=MOST_PULLS)
        if self.observed is None:
            if x is not None:
                raise ValueError("x: found values; this bandit has no observed features")
            return np.empty((n or 1, 0)), n is None
        if x is None:
            raise ValueError(f"x: found nothing; {_some(self.observed.names)} are observed here")
        rows, alone = self._observations(x)
        if n is None:
            return rows, alone
        if len(rows) > 1:
            raise ValueError(f"n: found {n} with {len(rows)} rows of x; one of them says how many")
        return np.repeat(rows, n, axis=0), False

    def _observations(self, x: Any) -> tuple[Floats, bool]:
        """Return the rows of observed features, and whether they were given as one mapping."""
        assert self.observed is not None
        if isinstance(x, Mapping):
            return self.observed.row("x", x)[None], True
        points = self._named(x)
        if not 1 <= len(points) <= MOST_PULLS:
            raise ValueError(f"x: found {len(points)} rows; 1 to {MOST_PULLS} are possible")
        rows = [self.observed.row(f"x row {i}", point) for i, point in enumerate(points)]
        return np.array(rows), False

    def _named(self, x: Any) -> list[Any]:
        """Return mappings of feature names, from rows of a table, of mappings or of numbers."""
        assert self.observed is not None
        names = self.observed.names
        table = nw.from_native(x, pass_through=True)
        if isinstance(table, nw.DataFrame):
            return list(table.iter_rows(named=True))
        if isinstance(x, str) or not hasattr(x, "__iter__"):
            rule = f"a mapping, or rows, of {_some(names)} are needed"
            raise TypeError(f"x: found {type(x).__name__}; {rule}")
        rows = x if isinstance(x, np.ndarray) else list(x)
        if any(isinstance(each, Mapping) for each in rows):
            return list(rows)
        found = checks.array("x", rows)
        found = found.reshape(-1, 1) if found.ndim == 1 else found
        checks.shaped("x", found, (None, len(names)), f"rows of {_some(names)} are needed")
        return [dict(zip(names, row, strict=True)) for row in found.tolist()]


def _apart(chosen: Space, observed: Space | None) -> Space:
    """Return the chosen features, none of which may also be observed."""
    both = set(chosen.names) & set(observed.names) if observed else set()
    if both:
        raise ValueError(f"observed: found {min(both)!r}, which is a feature of the arms")
    return chosen


def _is_table(arms: Any) -> bool:
    """Return whether these are rows of numbers rather than names."""
    if isinstance(nw.from_native(arms, pass_through=True), nw.DataFrame):
        return True
    if isinstance(arms, np.ndarray):
        return arms.ndim == 2 or not (_has_no_axis(arms) or arms.dtype.kind in "OU")
    is_list = isinstance(arms, Sequence) and not isinstance(arms, str) and len(arms) > 0
    return is_list and isinstance(arms[0], Sequence | np.ndarray) and not isinstance(arms[0], str)


def _table(arms: Any) -> tuple[list[str], Floats]:
    """Return the names of the features of a table, and its rows."""
    _require_size(len(arms), MOST_POINTS)
    points = checks.finite("arms", arms, shape=(None, None), needed="points are rows of numbers")
    if not points.size:
        raise ValueError(f"arms: found shape {points.shape}; points need at least one feature")
    table = nw.from_native(arms, pass_through=True)
    is_frame = isinstance(table, nw.DataFrame)
    return table.columns if is_frame else [f"x{i}" for i in range(points.shape[1])], points


def _names(arms: Any) -> tuple[str, ...]:
    """Return the names of arms, all different."""
    if isinstance(arms, str) or not isinstance(arms, Sequence | np.ndarray) or _has_no_axis(arms):
        raise TypeError(
            f"arms: found {type(arms).__name__}; names, points of shape (k, d), or a mapping of "
            "features to (low, high) are needed"
        )
    _require_size(len(arms), MOST_NAMES)
    names = tuple(str(name) if isinstance(name, np.str_) else name for name in arms)
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise TypeError(f"arms[{i}]: found {checks.spelled(name)}; names must be text")
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"arms: found {twice!r} twice; names must differ")
    return names


def _has_no_axis(arms: Any) -> bool:
    """Return whether this is a zero-dimensional array."""
    return isinstance(arms, np.ndarray) and not arms.ndim


def _require_size(n: int, most: int) -> None:
    if not 2 <= n <= most:
        raise ValueError(f"arms: found {n:,}; 2 to {most:,} are possible")


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")
