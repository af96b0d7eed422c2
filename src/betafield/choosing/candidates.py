"""Candidates for the windows to use, as a table: relevance, width, degree, score and weight."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Records = npt.NDArray[Any]
Relevance = tuple[float, ...]

# Candidates in use, at the most, and the least relevance of a feature to the highest.
HEAVIEST, LEAST = 12, 4.0**-5
# Values this close, relatively, are a tie: windows hold the same trials. The wider one wins, for
# it says more between places.
TIE = 1e-9


class Candidate(NamedTuple):
    """Windows, how they did when trials were left out, and the weight that it gave them."""

    relevance: Relevance
    width: float
    degree: int
    score: float
    effective_parameters: float
    weight: float


def records(kept: list[Candidate]) -> Records:
    """Return candidates as a table, a column a field.

    Examples
    --------
    >>> records([given(0.5, 2, d=3)])["relevance"]
    array([[1., 1., 1.]])
    """
    kinds: list[Any] = [(name, np.float64) for name in Candidate._fields]
    kinds[0] = ("relevance", np.float64, (len(kept[0].relevance),))
    kinds[2] = ("degree", np.int64)
    return np.array([tuple(candidate) for candidate in kept], dtype=kinds)


def given(width: float, degree: int, d: int) -> Candidate:
    """Return the only candidate, which nothing was weighed against."""
    return Candidate((1.0,) * d, width, degree, np.nan, np.nan, 1.0)


def shrunk(kept: Records, growth: float, sides: Floats, metric: str) -> Records:
    """Return candidates for so many times more trials; windows that hold all trials still do."""
    result = kept.copy()
    rate = -1.0 / (2.0 * kept["degree"] + 2.0 + dimensions(sides))
    widest = np.array([diameter(sides * relevance, metric) for relevance in kept["relevance"]])
    result["width"] *= np.where(kept["width"] < widest * (1.0 - TIE), growth**rate, 1.0)
    return result


def dimensions(sides: Floats) -> int:
    """Return the number of features that carry distance, 1 at the least."""
    return max(int(np.count_nonzero(sides)), 1)


def volume(width: float, sides: Floats) -> float:
    """Return about the share of the domain that a window holds.

    Examples
    --------
    >>> volume(0.5, np.array([1.0, 0.25, 0.0]))
    0.5
    """
    return float(np.prod(np.minimum(width / sides[sides > 0], 1.0)))


def diameter(sides: Floats, metric: str) -> float:
    """Return the longest distance in a box; 1 where all points are one."""
    order = {"euclidean": 2, "chebyshev": np.inf, "manhattan": 1}[metric]
    return float(np.linalg.norm(sides, order)) or 1.0
