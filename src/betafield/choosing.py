"""The width of windows: as given, by theory, or the best by leave-one-out score.

The score of a width is Σ log P(outcome of a trial | the others in its window) over the trials at a
sample of places, where each trial is left out on its own (`bandwidth="loo"`). Places are sampled by
a hash of their coordinates, and windows hold all trials, so neither the order of the trials nor
their batches matter. Among ties the widest width is best, because it covers more of the gaps
between places.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.bandwidth import candidates, diameter
from betafield.evidence.decode import LEAST_CHANCE

if TYPE_CHECKING:
    from betafield.evidence import Decoder
    from betafield.windows import Places

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Hashes = npt.NDArray[np.uint64]

# Number of places at which trials are left out, and the minimum when posteriors cost more.
QUERIES, FEWEST = 4_096, 250
# Scores with a relative difference below this tie: their windows hold the same trials.
TIE = 1e-9


class Sample(NamedTuple):
    """Places at which trials are left out, in scaled units, and the total number of places."""

    places: Places
    total: int


class Scored(NamedTuple):
    """Widths in increasing order, the score of each, and how much worse the chosen one may be."""

    widths: Floats
    scores: Floats
    slack: float = 0.0

    @property
    def best(self) -> float:
        """The narrowest width within the slack; without any, the widest of those that tie."""
        if self.slack:
            return float(self.widths[np.argmax(self.scores >= self.scores.max() - self.slack)])
        slack = TIE * np.abs(self.scores.max())
        return float(self.widths[np.flatnonzero(self.scores >= self.scores.max() - slack)[-1]])


def sampled(parts: list[Places], cost: float = 1.0) -> Sample:
    """Return enough places to score widths: those with the lowest hashes, sorted.

    A place may appear in several parts, and several times with different contexts.
    """
    from betafield.windows.base import concatenate

    known = [hashes(part.axes) for part in parts]
    every = np.unique(np.concatenate(known))
    most = max(FEWEST, int(QUERIES / cost))
    last = every[min(most, len(every)) - 1]
    kept = [part.where(each <= last) for part, each in zip(parts, known, strict=True)]
    return Sample(_sorted(concatenate(kept)), len(every))


def _sorted(places: Places) -> Places:
    """Return places in an order that depends only on them, with equal ones joined."""
    keys = [] if places.shifts is None else places.shifts.alike()
    return places.sorted_by(np.lexsort((*keys, *places.axes)))


def scored(
    windows: Any,
    sample: Sample,
    decoder: Decoder,
    shapes: Floats,
    sides: Floats,
    n_jobs: int | None = None,
) -> Scored:
    """Return the scores of widths, from one that holds about one place to one that holds all.

    Parameters
    ----------
    windows : Forest
        All trials.
    sample : Sample
    decoder : Decoder
    shapes : array of shape (places, K)
        The prior's shapes at the places of the sample.
    sides : array of shape (d,)
        Side lengths of the domain, in scaled units.
    n_jobs : int or None
    """
    widths = candidates(sides, diameter(sides, windows.metric), sample.total)
    queries = np.ascontiguousarray(sample.places.axes.T)
    decoder = replace(decoder, width=windows.width, span=windows.span)
    score = score_of(decoder, sample.places)
    totals = [score(windows.sums(queries, float(width), n_jobs), shapes) for width in widths]
    return Scored(widths, np.array(totals))


# Maps the sums of windows and the prior's shapes to the leave-one-out score of all trials.
Score = Callable[[Ints, Floats], float]


def score_of(decoder: Decoder, asked: Places) -> Score:
    """Return the score function of the trials of these places."""
    return (_of_classes if decoder.is_plain else _of_contexts)(decoder, asked)


def _of_classes(decoder: Decoder, asked: Places) -> Score:
    """Return the score function of undistorted trials."""
    counts = decoder.trials(asked.counts.T).astype(np.float64)
    return lambda sums, shapes: float(np.sum(held_out_score(counts, decoder.trials(sums), shapes)))


def _of_contexts(decoder: Decoder, asked: Places) -> Score:
    """Return the score function of trials under contexts."""
    out, each = decoder.left_out(asked), (asked.size, 2)

    def score(sums: Ints, shapes: Floats) -> float:
        logs = decoder.log_scores(out, sums, np.broadcast_to(shapes, each))
        return float(np.sum(out.weight * logs))

    return score


def held_out_score(counts: Floats, sums: Floats, shapes: Floats) -> Floats:
    """Return Σ log P(a trial's outcome | the other trials of its window), per place.

    With N_c trials of class c in the window and prior shapes a_c, leaving out a trial of class c
    gives (a_c + N_c − 1) / (Σ a + Σ N − 1). If weights make a place worth less than one trial, only
    its own weight is removed.

    Parameters
    ----------
    counts : array of shape (m, k)
        Trials at each place, one column per class.
    sums : array of shape (m, k)
        Trials in the window of each place, including its own.
    shapes : array that broadcasts against (m, k)
        The prior's shapes.
    """
    own = np.minimum(counts, 1.0)
    a, n = np.broadcast_to(shapes, sums.shape), sums.sum(axis=1, keepdims=True)
    chance = (a + (sums - own)) / (a.sum(axis=1, keepdims=True) + (n - own))
    return np.asarray(np.sum(counts * np.log(np.maximum(chance, LEAST_CHANCE)), axis=1))


def hashes(axes: Floats) -> Hashes:
    """Return a well-mixed 64-bit hash of each point (the finaliser of splitmix64, chained)."""
    state = np.zeros(axes.shape[1], dtype=np.uint64)
    for axis in axes:
        # Adding 0.0 turns -0.0 into 0.0.
        state = (state ^ (axis + 0.0).view(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state
