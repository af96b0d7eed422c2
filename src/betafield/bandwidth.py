"""How near is near: the width Δ of the windows, by theory or from the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from betafield.sharing import LeftOut, Reading
    from betafield.windows import Forest, Places

Floats = npt.NDArray[np.float64]
Sample = tuple["Places", Floats, "LeftOut | None"]

NAMES = ("theory", "loo", "auto")
STEP = 2.0**0.5
# Places scored to find about the best width, and to find it; neighbours looked at then.
FEW, MANY = 1_000, 10_000
NEAR = 3
# Places scored at the least, where posteriors are slow.
FEWEST = 250
# Widths without improvement after which no wider one is tried.
PATIENCE = 3
# Scores this close, relatively, are a tie: windows hold the same trials. The wider one wins, for
# it says more between places.
TIE = 1e-12


# Dimensions up to which local polynomials of degree 2 and of degree 1 are possible.
QUADRATIC, LINEAR = 3, 6


def theory(t: float, d: int, lipschitz: float) -> float:
    """Return Δ = L^(−2/(d+2)) t^(−1/(d+2)), the width that balances bias and variance.

    Examples
    --------
    >>> round(theory(t=1_000_000, d=1, lipschitz=1.0), 6)
    0.01
    """
    return float((lipschitz**2 * t) ** (-1.0 / (d + 2)))


def window(t: float, d: int) -> float:
    """Return t^(2/(d+2)), about the number of trials in a window of the width by theory."""
    return float(t ** (2.0 / (d + 2)))


def highest_degree(d: int) -> int:
    """Return the highest degree of local polynomials in d dimensions: 2 up to 3, 1 up to 6."""
    return 2 if d <= QUADRATIC else 1 if d <= LINEAR else 0


def check(bandwidth: Any) -> None:
    """Raise unless the bandwidth is a positive number or a rule's name."""
    if not (bandwidth in NAMES if isinstance(bandwidth, str) else is_positive(bandwidth)):
        raise ValueError(
            f"bandwidth: found {bandwidth!r}; allowed are a positive number, "
            "'theory', 'loo', 'auto'"
        )


def is_positive(value: Any) -> bool:
    """Return whether the value is a positive finite number."""
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf


def candidates(sides: Floats, widest: float, n_places: int) -> Floats:
    """Return widths from one that holds about one place up to `widest`, which holds all.

    `sides` are those of the domain. A place has the volume Π sides / n to itself; sides of
    length 0 carry no distance.

    Examples
    --------
    >>> candidates(np.array([1.0]), widest=1.0, n_places=4).round(3).tolist()
    [0.25, 0.354, 0.5, 0.707, 1.0]
    """
    real = sides[sides > 0]
    if not real.size:
        return np.array([widest])
    narrowest = np.exp((np.log(real).sum() - np.log(n_places)) / real.size)
    steps = int(np.ceil(np.log(widest / narrowest) / np.log(STEP) - TIE)) + 1
    return widest * STEP ** np.arange(1.0 - steps, 1.0)


def leave_one_out(
    score: Callable[[float, int], tuple[float, float]], grid: Floats, enough: float
) -> float:
    """Return the width of the grid with the best score.

    `score(width, size)` gives a width's score on a sample of that many places, and how many
    trials the median window held. All widths are scored on a small sample, from the narrowest
    on; then those near the best on a large one. Wide windows cost most and are seldom best:
    the first pass ends when windows hold `enough` trials and the score no longer rises.

    Examples
    --------
    >>> grid = np.array([0.125, 0.25, 0.5, 1.0])
    >>> leave_one_out(lambda width, size: (-abs(width - 0.3), size * width), grid, enough=100)
    0.25
    """
    scores: list[float] = []
    for width in grid:
        value, held = score(float(width), FEW)
        scores.append(value)
        if held >= enough and len(scores) - np.argmax(scores) > PATIENCE:
            break
    best, previous = int(np.argmax(scores)), -1
    final = np.full(len(grid), -np.inf)
    # A small sample may mislead: go on until the best width is among its own neighbours.
    while best != previous:
        for i in range(max(0, best - NEAR), min(len(grid), best + NEAR + 1)):
            if final[i] == -np.inf:
                final[i] = score(float(grid[i]), MANY)[0]
        ties = np.flatnonzero(final >= final.max() - TIE * abs(final.max()))
        previous, best = best, int(ties[-1])
    return float(grid[best])


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Scores a width by how well it predicts each trial of a sample from the others.

    Parameters
    ----------
    windows : Forest
        The trials.
    reading : Reading
        What their sums mean.
    shapes_at : callable
        Axes (d, m) in scaled units → the prior's shapes there.
    n_jobs : int or None
        Threads.
    """

    windows: Forest
    reading: Reading
    shapes_at: Callable[[Floats], Floats]
    n_jobs: int | None = None
    samples: dict[int, Sample] = field(default_factory=dict, init=False)

    def __call__(self, width: float, size: int) -> tuple[float, float]:
        """Return the width's score on about `size` places, and the trials in a median window."""
        places, shapes, out = self._sample(size)
        sums = self.windows.sums(places.axes.T, width, self.n_jobs)
        median = float(np.median(self.reading.size(sums)))
        if out is None:
            counts, near = (self.reading.trials(s) for s in (places.counts.T, sums))
            return held_out_score(counts, near, shapes), median
        scores = self.reading.log_scores(out, sums, shapes)
        return float(np.sum(out.weight * scores)), median

    def _sample(self, size: int) -> Sample:
        if size not in self.samples:
            self.samples[size] = self._drawn(size)
        return self.samples[size]

    def _drawn(self, size: int) -> Sample:
        """Return about `size` places, the prior's shapes there, and trials to leave out."""
        from betafield.windows.base import concatenate

        share = max(size / self.reading.cost, FEWEST) / self.windows.size
        places = concatenate([p.where(chosen(p.axes, share)) for p in self.windows.places])
        shapes = np.broadcast_to(self.shapes_at(places.axes), (places.size, self.reading.n_classes))
        return places, shapes, None if self.reading.is_plain else self.reading.left_out(places)


def held_out_score(counts: Floats, sums: Floats, shapes: Floats) -> float:
    """Return Σ log P(a trial's outcome | the other trials of its window), over all trials.

    With N_c trials of class c in the window, a_c the prior's shapes, and the trial itself of
    class c taken off: (a_c + N_c − 1) / (Σ a + Σ N − 1). Where weights make a place worth less
    than one trial, what is there is taken off.

    Parameters
    ----------
    counts : array of shape (m, k)
        Trials at each place, a column a class.
    sums : array of shape (m, k)
        Trials in the window of each place, its own included.
    shapes : array that broadcasts against (m, k)
        The prior's.
    """
    own = np.minimum(counts, 1.0)
    alone = np.broadcast_to(shapes, sums.shape) + sums
    return float(np.sum(counts * np.log((alone - own) / (alone.sum(axis=1, keepdims=True) - own))))


def chosen(axes: Floats, share: float) -> npt.NDArray[np.bool_]:
    """Return a mask of about this share of the places, by a hash of their coordinates.

    A place is chosen or not wherever and whenever it is seen: neither order nor batches matter.
    """
    if share >= 1.0:
        return np.ones(axes.shape[1], dtype=np.bool_)
    return _hashes(axes) < np.uint64(share * 2.0**64)


def _hashes(axes: Floats) -> npt.NDArray[np.uint64]:
    """Return a well-mixed 64-bit hash of each point (the finaliser of splitmix64, chained)."""
    state = np.zeros(axes.shape[1], dtype=np.uint64)
    for axis in axes:
        # Adding 0.0 makes -0.0 the same as 0.0.
        state = (state ^ (axis + 0.0).view(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state
