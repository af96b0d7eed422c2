"""Where trials can be made: named features, each within its bounds, some of them not chosen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# Candidates, by how many features are chosen; SciPy has Sobol sequences up to 21,201 of them.
FEW, MANY = 1 << 6, 1 << 10


@dataclass(frozen=True)
class Space:
    """A box with named sides.

    Parameters
    ----------
    names : tuple of str
        The features.
    bounds : tuple of (low, high)
        Of each feature.
    observed : tuple of str
        Features that are told, not chosen.

    Examples
    --------
    >>> space = Space.of({"difficulty": (0, 1), "age": (18, 90)}, observed=["age"])
    >>> space.row("trial", {"age": 40, "difficulty": 0.5})
    array([ 0.5, 40. ])
    >>> space.chosen
    array([ True, False])
    """

    names: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    observed: tuple[str, ...] = ()

    @classmethod
    def of(cls, space: Any, observed: Any = ()) -> Space:
        """Return the space that a mapping of features to (low, high) describes."""
        if not isinstance(space, Mapping):
            raise TypeError(
                f"space: found {type(space).__name__}; a mapping of names to (low, high) is needed"
            )
        if not space:
            raise ValueError("space: found no features; one at least is needed")
        for name in space:
            if not isinstance(name, str):
                raise TypeError(f"space: found the name {name!r}; names must be text")
        bounds = tuple(_bounds(name, ends) for name, ends in space.items())
        return cls(tuple(space), bounds, _observed(observed, tuple(space)))

    @cached_property
    def low(self) -> Floats:
        """The lower bounds."""
        return np.array([low for low, _ in self.bounds])

    @cached_property
    def side(self) -> Floats:
        """The lengths of the sides."""
        return np.array([high - low for low, high in self.bounds])

    @cached_property
    def chosen(self) -> Bools:
        """Which features are chosen."""
        return np.array([name not in self.observed for name in self.names])

    def row(self, what: str, point: Any) -> Floats:
        """Return the coordinates of a mapping that has every feature and no others."""
        values = self.some(what, point)
        missing = [name for name in self.names if name not in values]
        if missing:
            raise KeyError(f"{what}: found no value of {missing[0]!r}; {self._all()} are needed")
        return np.array([values[name] for name in self.names])

    def some(self, what: str, point: Any) -> dict[str, float]:
        """Return the values of a mapping that has some of the features, all within bounds."""
        if not isinstance(point, Mapping):
            raise TypeError(
                f"{what}: found {type(point).__name__}; a mapping of {self._all()} is needed"
            )
        return {name: self._value(what, name, value) for name, value in point.items()}

    def point(self, row: Floats) -> dict[str, float]:
        """Return the mapping of these coordinates."""
        return dict(zip(self.names, row.tolist(), strict=True))

    def shares(self, rows: Floats) -> Floats:
        """Return coordinates as shares of the sides, from 0 to 1."""
        return np.asarray((rows - self.low) / self.side)

    def rows(self, shares: Floats) -> Floats:
        """Return the coordinates of these shares of the sides, none beyond the bounds."""
        high = self.low + self.side
        return np.clip(self.low + shares * self.side, self.low, high)

    def sobol(self, n: int, seed: int, skip: int = 0) -> Floats:
        """Return n points of a scrambled Sobol sequence over all features."""
        from scipy.stats import qmc

        sequence = qmc.Sobol(len(self.names), rng=np.random.default_rng(seed))
        if skip:
            sequence.fast_forward(skip)
        return self.rows(sequence.random(n))

    def candidates(self, seed: int) -> Floats:
        """Return the points among which an ask looks first."""
        return self.sobol(FEW if np.count_nonzero(self.chosen) == 1 else MANY, seed)

    def _value(self, what: str, name: Any, value: Any) -> float:
        """Return a number that the feature of this name can have."""
        if name not in self.names:
            raise KeyError(f"{what}: found the feature {name!r}; the space has {self._all()}")
        if not isinstance(value, Real) or isinstance(value, bool):
            raise TypeError(f"{what}: found {value!r} for {name!r}; a number is needed")
        low, high = self.bounds[self.names.index(name)]
        number = float(value)
        if not low <= number <= high:
            raise ValueError(
                f"{what}: found {value!r} for {name!r}; it must be from {low:g} to {high:g}"
            )
        return number

    def _all(self) -> str:
        return ", ".join(map(repr, self.names))


def _bounds(name: str, ends: Any) -> tuple[float, float]:
    """Return (low, high), finite and apart."""
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError):
        raise TypeError(f"space: found {ends!r} for {name!r}; (low, high) is needed") from None
    if not (math.isfinite(low) and math.isfinite(high) and math.isfinite(high - low)):
        raise ValueError(f"space: found {ends!r} for {name!r}; both ends must be finite")
    if not low < high:
        raise ValueError(
            f"space: found {ends!r} for {name!r}, which has no width; low must be below high"
        )
    return low, high


def _observed(observed: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the features that are not chosen; one at least must be."""
    if isinstance(observed, str) or not isinstance(observed, Iterable):
        raise TypeError(f"observed: found {observed!r}; a list of features is needed")
    found = tuple(dict.fromkeys(observed))
    for name in found:
        if name not in names:
            raise KeyError(f"observed: found {name!r}; the space has {', '.join(map(repr, names))}")
    if len(found) == len(names):
        raise ValueError("observed: found every feature of the space; one at least must be chosen")
    return found


def seed_of(random_state: Any) -> int:
    """Return the seed of all that is drawn; None: a fresh one.

    Examples
    --------
    >>> seed_of(7)
    7
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    if isinstance(random_state, bool) or not isinstance(random_state, Integral):
        raise TypeError(f"random_state: found {random_state!r}; a whole number or None is needed")
    if not 0 <= int(random_state) < 1 << 63:
        raise ValueError(f"random_state: found {random_state!r}; it must be from 0 to 2⁶³ − 1")
    return int(random_state)
