"""The space of possible trials: named features with bounds, some of which cannot be chosen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import categories, checks
from betafield._locks import cached
from betafield.decisions.sides import Side, side

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# Candidates if one feature is chosen, and if more are. SciPy's Sobol sequences have at most 21,201
# dimensions.
FEW, MANY = 1 << 6, 1 << 10
# Query parameters, beside the features, of a URL that asks about points.
OPTIONS = ("grid", "level")


def beside(taken: Collection[str], feature: str) -> str:
    """Return the name of a feature, prefixed by `value_` if it is already taken.

    Examples
    --------
    >>> beside(OPTIONS, "eye"), beside(OPTIONS, "level")
    ('eye', 'value_level')
    """
    return f"value_{feature}" if feature in taken else feature


@dataclass(frozen=True)
class Space:
    """A box with named sides.

    Parameters
    ----------
    names : tuple of str
        The features.
    sides : tuple of Side
        The possible values of each feature.
    observed : tuple of str
        Features that are given, not chosen.

    Examples
    --------
    >>> space = Space.of({"difficulty": (0, 1), "age": (18, 90)}, observed=["age"])
    >>> space.row("trial", {"age": 40, "difficulty": 0.5})
    array([ 0.5, 40. ])
    >>> space.chosen
    array([ True, False])
    """

    names: tuple[str, ...]
    sides: tuple[Side, ...]
    observed: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, space: Any, observed: Any = (), what: str = "space", is_plain: bool = False
    ) -> Space:
        """Return the space described by a mapping of features to their possible values.

        Errors name the argument `what`. If `is_plain`, all features must be ranges.
        """
        rule = "a mapping of names to (low, high) is needed"
        sides = dict(checks.instance(what, space, Mapping, rule))
        if not sides:
            raise ValueError(f"{what}: found no features; at least one is needed")
        for name in sides:
            checks.instance(f"{what}, feature {name!r}", name, str, "names must be text")
        each = tuple(side(f"{what}, feature {name!r}", ends) for name, ends in sides.items())
        for name, one in zip(sides, each, strict=True):
            rule, good = "(low, high) is needed, two finite numbers", not (is_plain and one.kind)
            checks.require(good, f"{what}, feature {name!r}", sides[name], rule)
        return cls(tuple(sides), each, _observed(observed, tuple(sides)))

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """The ends of each feature."""
        return tuple((each.low, each.high) for each in self.sides)

    @property
    def given(self) -> dict[str, Any]:
        """The mapping it was made from, as `of` takes it."""
        return {name: each.given for name, each in zip(self.names, self.sides, strict=True)}

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
        """Return the coordinates of a mapping with exactly the features of the space."""
        values = self.some(what, point)
        missing = [name for name in self.names if name not in values]
        if missing:
            raise ValueError(f"{what}: found no value of {missing[0]!r}; {self._all()} are needed")
        return np.array([values[name] for name in self.names])

    def some(self, what: str, point: Any) -> dict[str, float]:
        """Return the numbers of a mapping with some of the features, all within bounds."""
        checks.instance(what, point, Mapping, f"a mapping of {self._all()} is needed")
        return {name: self._value(what, name, value) for name, value in point.items()}

    def point(self, row: Floats) -> dict[str, Any]:
        """Return the mapping of these coordinates."""
        return self.values(row.tolist())

    def values(self, numbers: Sequence[float]) -> dict[str, Any]:
        """Return the mapping of these coordinates, given as a list, as in JSON.

        Examples
        --------
        >>> Space.of({"eye": ["left", "right"], "dose": (0, 1)}).values([1.0, 0.5])
        {'eye': 'right', 'dose': 0.5}
        """
        each = zip(self.names, self.sides, numbers, strict=True)
        return {name: one.value(number) for name, one, number in each}

    def shares(self, rows: Floats) -> Floats:
        """Return coordinates as fractions of the sides, from 0 to 1."""
        each = [one.shares(rows[..., a]) for a, one in enumerate(self.sides)]
        return np.stack(each, axis=-1)

    def rows(self, shares: Floats) -> Floats:
        """Return the coordinates at fractions of the sides, none beyond the bounds."""
        each = [one.numbers(shares[..., a]) for a, one in enumerate(self.sides)]
        return np.stack(each, axis=-1)

    def reached(self, reach: Floats, levelled: Sequence[int] = ()) -> Floats:
        """Return how far trials reach along each feature, as fractions of the sides.

        Along features whose levels are categories, they reach no other level.
        """
        each = [float(one.reached(far)) for one, far in zip(self.sides, reach, strict=True)]
        for a in levelled:
            each[a] = 0.5 / len(self.sides[a].levels)
        return np.array(each)

    @property
    def is_finite(self) -> bool:
        """Whether all chosen features are integers or levels."""
        each = zip(self.sides, self.chosen, strict=True)
        return all(side.is_whole for side, is_chosen in each if is_chosen)

    @cached
    def levels(self) -> dict[str, tuple[Any, ...]]:
        """The levels of each feature that has levels."""
        each = zip(self.names, self.sides, strict=True)
        return {name: one.levels for name, one in each if one.kind == "levels"}

    @property
    def levelled(self) -> tuple[int, ...]:
        """The indices of the features with levels."""
        return tuple(a for a, each in enumerate(self.sides) if each.kind == "levels")

    def coded(self, rows: Floats, columns: Sequence[int]) -> Floats:
        """Return coordinates with levels replaced by category codes in these columns.

        Examples
        --------
        >>> space = Space.of({"eye": ["left", "right"], "dose": (0, 1)})
        >>> bool(space.coded(np.array([[1.0, 0.5]]), [0])[0, 0] == categories.code("right"))
        True
        """
        if not len(columns):
            return rows
        out = rows.copy()
        for a in columns:
            out[..., a] = self._codes[a][rows[..., a].astype(np.int64)]
        return out

    @cached
    def _codes(self) -> dict[int, Floats]:
        """The codes of levels, by feature."""
        return {
            a: np.array([categories.code(categories.text(each)) for each in self.sides[a].levels])
            for a in self.levelled
        }

    def labelled(self, rows: Floats, columns: Sequence[int]) -> npt.NDArray[Any]:
        """Return coordinates with numbers replaced by the levels themselves in these columns."""
        if not len(columns):
            return rows
        out = rows.astype(object)
        for a in columns:
            out[:, a] = [self.sides[a].levels[int(number)] for number in rows[:, a]]
        return out

    def sobol(self, n: int, seed: int, skip: int = 0) -> Floats:
        """Return n points of a scrambled Sobol sequence over all features."""
        from scipy.stats import qmc

        sequence = qmc.Sobol(len(self.names), rng=np.random.default_rng(seed))
        if skip:
            sequence.fast_forward(skip)
        return self.rows(sequence.random(n))

    def candidates(self, seed: int) -> Floats:
        """Return the candidates that an ask considers first."""
        return self.sobol(FEW if np.count_nonzero(self.chosen) == 1 else MANY, seed)

    def _value(self, what: str, name: Any, value: Any) -> float:
        """Return the number of a value of the feature with this name."""
        if name not in self.names:
            raise ValueError(f"{what}: found the feature {name!r}; the space has {self._all()}")
        return self.sides[self.names.index(name)].number(f"{what}, feature {name!r}", value)

    def _all(self) -> str:
        return ", ".join(map(repr, self.names))


def _observed(observed: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the features that are not chosen; at least one must be."""
    listed = checks.items("observed", observed, "a list of features is needed")
    for i, name in enumerate(listed):
        checks.one_of(f"observed[{i}]", name, names)
    if set(listed) == set(names):
        raise ValueError("observed: found every feature of the space; at least one must be chosen")
    return tuple(dict.fromkeys(listed))


def seed_of(random_state: Any) -> int:
    """Return the seed of all random draws; a fresh one for None.

    Examples
    --------
    >>> seed_of(7)
    7
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint32)[0])
    rule = "a whole number from 0 to 2⁶³ − 1, or None, is needed"
    return checks.whole("random_state", random_state, 0, (1 << 63) - 1, rule)
