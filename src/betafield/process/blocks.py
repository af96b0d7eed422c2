"""Levels of categories: their columns, and the prior of their effects.

Each level c of a column has an effect of its own, added to the shared field:

    f(x, c) = φ(x)′b₀ + ψ(x)′b_c,   b_c ~ N(0, diag V),

where ψ are at most 16 of the functions φ, those with the largest prior variance, the constant
first. V is σ_d² times the shared spectrum, plus τ² for the constant: an intercept and a smooth
deviation. Both are estimated per column, so that rare levels borrow from the others as much as
these are similar. Effects of several columns add up; an unseen level has effects with mean 0 and
variance V.

Columns are coordinates after the features: the index of the level divided by the highest index,
negative if the level is unseen.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Most functions of a deviation, and their smallest variance relative to the largest.
MOST, LEAST = 16, 1e-4
# Most entries in the blocks of the column with most levels, and most functions of any other.
MOST_ENTRIES, MOST_DENSE = 1 << 24, 256
# The coordinate of unseen levels.
NEVER = -1.0


class Arrangement(NamedTuple):
    """Which columns of points are features, and which are levels of categories.

    Parameters
    ----------
    numeric : tuple of int
        Columns that are features.
    combined : tuple of tuples of int
        Per column of categories, the columns of points whose levels are combined in it.

    Examples
    --------
    >>> import numpy as np
    >>> x, codes = Arrangement((1,), ((0,),)).arranged(np.array([[7.0, 0.5], [8.0, 0.1]]))
    >>> x.tolist(), codes.tolist()
    ([[0.5], [0.1]], [[7.0], [8.0]])
    """

    numeric: tuple[int, ...]
    combined: tuple[tuple[int, ...], ...]

    def arranged(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the features of points, and the codes of their levels."""
        x = np.ascontiguousarray(points[:, list(self.numeric)])
        return x, np.stack([combined(points[:, list(each)]) for each in self.combined], axis=1)


def combined(codes: Floats) -> Floats:
    """Return one code per row of codes (r, k): 53 bits of a hash if k > 1."""
    if codes.shape[1] == 1:
        return codes[:, 0]
    key = np.zeros(len(codes), dtype=np.uint64)
    for column in codes.T:
        key = mixed(key ^ np.ascontiguousarray(column + 0.0).view(np.uint64))
    return (key >> np.uint64(11)).astype(np.float64)


def mixed(key: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return the splitmix64 hash of integers."""
    key = key + np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


class Column(NamedTuple):
    """A column of categories.

    Parameters
    ----------
    size : int
        Number of levels with trials.
    is_smooth : bool
        Whether effects vary with the features.
    is_averaged : bool
        Whether answers are averages over levels, as for groups of trials.
    """

    size: int
    is_smooth: bool = True
    is_averaged: bool = False

    @property
    def parameters(self) -> int:
        """The number of its hyper-parameters: log τ, and log σ_d if it is smooth."""
        return 1 + self.is_smooth

    def which(self, x: Floats) -> Ints:
        """Return the indices of levels at coordinates, −1 if they are unseen."""
        number = np.rint(x * max(self.size - 1, 1)).astype(np.int64)
        return np.where(x < 0.0, -1, number)


Columns = tuple[Column, ...]


def parameters(columns: Columns) -> int:
    """Return the number of hyper-parameters of all columns."""
    return sum(column.parameters for column in columns)


def longest(columns: Columns) -> int:
    """Return the column with most levels, the first if several have as many."""
    return max(range(len(columns)), key=lambda k: (columns[k].size, -k))


def coordinates(codes: Floats, levels: Floats) -> Floats:
    """Return the coordinates of codes among sorted levels.

    Examples
    --------
    >>> import numpy as np
    >>> coordinates(np.array([7.0, 3.0, 5.0]), np.array([3.0, 4.0, 7.0])).tolist()
    [1.0, 0.0, -1.0]
    """
    index = np.minimum(np.searchsorted(levels, codes), len(levels) - 1)
    return np.where(levels[index] == codes, index / max(len(levels) - 1, 1), NEVER)


class Effects(NamedTuple):
    """The prior of the effects of a column's levels, given hyper-parameters.

    Parameters
    ----------
    low : integer array of shape (k,)
        The functions ψ among φ, the constant first.
    root : array of shape (k,)
        √V.
    slope : array of shape (parameters, k)
        ∂ log V/∂θ.
    """

    low: Ints
    root: Floats
    slope: Floats


class Shared(NamedTuple):
    """The spectrum that all levels share.

    Parameters
    ----------
    variance : array of shape (m,)
        Prior variances of the functions, without the additional variance of the constant.
    slope : array of shape (1 + d, m)
        Derivatives of their logarithms by log σ and log ℓ.
    """

    variance: Floats
    slope: Floats


def effects(shared: Shared, theta: Floats, at: int, column: Column, most: int) -> Effects:
    """Return the prior of the levels of a column whose hyper-parameters start at `at`."""
    tau = math.exp(2.0 * theta[at])
    if not column.is_smooth:
        slope = np.zeros((len(theta), 1))
        slope[at] = 2.0
        return Effects(np.zeros(1, dtype=np.int64), np.array([math.sqrt(tau)]), slope)
    low = lowest(shared.variance, most)
    V = math.exp(2.0 * (theta[at + 1] - theta[0])) * shared.variance[low]
    slope = np.zeros((len(theta), len(low)))
    slope[1 : len(shared.slope)] = shared.slope[1:, low]
    slope[at + 1] = 2.0
    slope[:, 0] *= V[0] / (V[0] + tau)
    slope[at, 0] = 2.0 * tau / (V[0] + tau)
    V[0] += tau
    return Effects(low, np.sqrt(V), slope)


def lowest(variance: Floats, most: int) -> Ints:
    """Return the constant and the functions with the largest variance, at most `most`."""
    order = 1 + np.argsort(-variance[1:], kind="stable")
    kept = order[variance[order] > LEAST * variance[0]]
    return np.concatenate([[0], kept[: max(most, 1) - 1]]).astype(np.int64)


class Layout(NamedTuple):
    """The order of the coefficients of all levels; those of the longest column come last.

    Parameters
    ----------
    columns : tuple of Column
    effects : tuple of Effects
        One per column.
    first : tuple of int
        Index of the first coefficient of each column.
    size : int
        Number of coefficients, including those of the shared functions.
    """

    columns: Columns
    effects: tuple[Effects, ...]
    first: tuple[int, ...]
    size: int

    @property
    def last(self) -> int:
        """The column with most levels."""
        return longest(self.columns)

    @property
    def core(self) -> int:
        """The number of coefficients before those of the longest column."""
        return self.first[self.last]


def layout(shared: Shared, theta: Floats, columns: Columns) -> Layout:
    """Return the order of coefficients and their prior."""
    m, last = len(shared.variance), longest(columns)
    at = len(theta) - parameters(columns)
    found: list[Effects] = []
    for k, column in enumerate(columns):
        room = MOST_ENTRIES // (column.size * m) if k == last else MOST_DENSE // column.size
        found.append(effects(shared, theta, at, column, min(MOST, max(room, 1))))
        at += column.parameters
    first, size = [0] * len(columns), m
    for k in [*(k for k in range(len(columns)) if k != last), last]:
        first[k] = size
        size += columns[k].size * len(found[k].low)
    return Layout(columns, tuple(found), tuple(first), size)
