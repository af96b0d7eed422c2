"""Where trials can be made: named features, each within its bounds, some of them not chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield._locks import cached

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
    def of(cls, space: Any, observed: Any = (), what: str = "space") -> Space:
        """Return the space that a mapping of features to (low, high) describes.

        Errors name the argument `what`.
        """
        rule = "a mapping of names to (low, high) is needed"
        sides = dict(checks.instance(what, space, Mapping, rule))
        if not sides:
            raise ValueError(f"{what}: found no features; one at least is needed")
        for name in sides:
            checks.instance(f"{what}, feature {name!r}", name, str, "names must be text")
        bounds = tuple(_bounds(f"{what}, feature {name!r}", ends) for name, ends in sides.items())
        return cls(tuple(sides), bounds, _observed(observed, tuple(sides)))

    @cached
    def low(self) -> Floats:
        """The lower bounds."""
        return np.array([low for low, _ in self.bounds])

    @cached
    def high(self) -> Floats:
        """The upper bounds."""
        return np.array([high for _, high in self.bounds])

    @cached
    def side(self) -> Floats:
        """The lengths of the sides."""
        return self.high - self.low

    @cached
    def chosen(self) -> Bools:
        """Which features are chosen."""
        return np.array([name not in self.observed for name in self.names])

    def row(self, what: str, point: Any) -> Floats:
        """Return the coordinates of a mapping that has every feature and no others."""
        values = self.some(what, point)
        missing = [name for name in self.names if name not in values]
        if missing:
            raise ValueError(f"{what}: found no value of {missing[0]!r}; {self._all()} are needed")
        return np.array([values[name] for name in self.names])

    def some(self, what: str, point: Any) -> dict[str, float]:
        """Return the values of a mapping that has some of the features, all within bounds."""
        checks.instance(what, point, Mapping, f"a mapping of {self._all()} is needed")
        return {name: self._value(what, name, value) for name, value in point.items()}

    def point(self, row: Floats) -> dict[str, float]:
        """Return the mapping of these coordinates."""
        return dict(zip(self.names, row.tolist(), strict=True))

    def shares(self, rows: Floats) -> Floats:
        """Return coordinates as shares of the sides, from 0 to 1."""
        return np.asarray((rows - self.low) / self.side)

    def rows(self, shares: Floats) -> Floats:
        """Return the coordinates of these shares of the sides, none beyond the bounds."""
        return np.clip(self.low + shares * self.side, self.low, self.high)

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
            raise ValueError(f"{what}: found the feature {name!r}; the space has {self._all()}")
        low, high = self.bounds[self.names.index(name)]
        rule = f"a number from {low!r} to {high!r} is needed"
        return checks.number(f"{what}, feature {name!r}", value, rule, low=low, high=high)

    def _all(self) -> str:
        return ", ".join(map(repr, self.names))


def _bounds(what: str, ends: Any) -> tuple[float, float]:
    """Return (low, high), finite and apart."""
    rule = "(low, high) is needed, two finite numbers"
    low, high = checks.finite(what, ends, rule, (2,), rule).tolist()
    checks.require(low < high, what, (low, high), "low must be below high")
    checks.require(
        math.isfinite(high - low), what, (low, high), "high - low must be a finite float"
    )
    return low, high


def _observed(observed: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the features that are not chosen; one at least must be."""
    listed = checks.items("observed", observed, "a list of features is needed")
    for i, name in enumerate(listed):
        checks.one_of(f"observed[{i}]", name, names)
    if set(listed) == set(names):
        raise ValueError("observed: found every feature of the space; one at least must be chosen")
    return tuple(dict.fromkeys(listed))


def seed_of(random_state: Any) -> int:
    """Return the seed of all that is drawn; None: a fresh one.

    Examples
    --------
    >>> seed_of(7)
    7
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    rule = "a whole number from 0 to 2⁶³ − 1, or None, is needed"
    return checks.whole("random_state", random_state, 0, (1 << 63) - 1, rule)
