"""How windows predict trials that are left out of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

import betafield.choosing.local as local
from betafield.evidence.decode import LEAST_CHANCE

if TYPE_CHECKING:
    from betafield.evidence import Decoder
    from betafield.windows import Forest, Places
    from betafield.windows.moments import Weigh

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Places at which trials are left out at the most, at the most where that is slow, and at a time.
QUERIES, FEWEST, BLOCK = 4_096, 250, 2_048
# In large samples, trials of a hole are left out together, at so many places.
HOLES = 2_048


class Scores(NamedTuple):
    """Scores and complexities (m, W, D) of the trials left out at m places, and their number."""

    score: Floats
    effective_parameters: Floats
    trials: Floats

    def counting(self, trials: float) -> Scores:
        """Return the scores as if so many trials had been left out: holes overlap or leave gaps."""
        times = trials / self.trials.sum()
        return Scores(*(part * times for part in self))

    def totals(self) -> tuple[Floats, Floats]:
        """Return the sums over places of scores and of complexities."""
        return self.score.sum(axis=0), self.effective_parameters.sum(axis=0)


class Scoring(Protocol):
    """How windows of a kind predict trials."""

    @property
    def degrees(self) -> tuple[int, ...]:
        """The degrees weighed."""

    def most(self, is_large: bool, /) -> int:
        """Return at how many places trials of a sample are left out, at the most."""

    def __call__(
        self, windows: Forest, asked: Places, radii: Floats, hole: float, shapes: Floats, /
    ) -> Scores:
        """Leave out each trial of the places asked or, together, those of a hole around them."""


@dataclass(frozen=True)
class LocalScoring:
    """Two classes, no contexts: local polynomials of some degrees.

    With leverage h at its own place, the fit without a trial of outcome s is (p̂ − h s)/(1 − h).
    """

    weigh: Weigh
    degrees: tuple[int, ...]
    n_jobs: int | None = None

    def most(self, is_large: bool) -> int:
        """Return the number of holes, or of places."""
        return HOLES if is_large else QUERIES

    def __call__(
        self, windows: Forest, asked: Places, radii: Floats, hole: float, shapes: Floats
    ) -> Scores:
        """Leave trials out, some places at a time: moments may take kilobytes a place."""
        leave = self._leave_hole if hole else self._leave_one
        blocks = [slice(i, i + BLOCK) for i in range(0, asked.size, BLOCK)]
        parts = [leave(windows, asked.where(b), radii, hole, shapes[b]) for b in blocks]
        scores = Scores(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        return scores.counting(self.weigh(windows.totals[:, None])[0].sum()) if hole else scores

    def _leave_one(
        self, windows: Forest, asked: Places, radii: Floats, _: float, shapes: Floats
    ) -> Scores:
        sums = self._moments(windows, asked, radii, hole=False)
        held, won = self.weigh(asked.counts)
        fits = local.fits(sums, radii, windows.d, self.degrees)
        # One trial, or what is there of one where weights make it less.
        if_lost, if_won = (
            _chance(*fits.without(np.minimum(there, 1.0), outcome), shapes)
            for there, outcome in ((held - won, 0.0), (won, 1.0))
        )
        return _scores(fits, held, won, if_lost, if_won)

    def _leave_hole(
        self, windows: Forest, asked: Places, radii: Floats, hole: float, shapes: Floats
    ) -> Scores:
        sums = self._moments(windows, asked, np.concatenate([[hole], radii]), hole=True)
        held, won = local.totals(sums[:, 0], windows.d, max(self.degrees))
        fits = local.fits(sums[:, 1:], radii, windows.d, self.degrees)
        chance = _chance(*fits.estimate(), shapes)
        return _scores(fits, held, won, chance, chance)

    def _moments(self, windows: Forest, asked: Places, radii: Floats, hole: bool) -> Floats:
        queries = np.ascontiguousarray(asked.axes.T)
        return windows.moments(queries, radii, max(self.degrees), self.weigh, self.n_jobs, hole)


def _chance(share: Floats, worth: Floats, shapes: Floats) -> Floats:
    """Return the posterior mean of π, from p̂, n_eff and the prior's shapes."""
    failure, success = shapes.T[:, :, None, None]
    return np.asarray((success + worth * share) / (success + failure + worth))


def _scores(fits: local.Fits, held: Floats, won: Floats, if_lost: Floats, if_won: Floats) -> Scores:
    """Return the scores of trials, from the chances of success without a lost one, a won one."""
    trials, wins = held[:, None, None], won[:, None, None]
    lost, won = np.minimum(if_lost, 1.0 - LEAST_CHANCE), np.maximum(if_won, LEAST_CHANCE)
    score = wins * np.log(won) + (trials - wins) * np.log1p(-lost)
    return Scores(score, trials * np.minimum(fits.leverage, 1.0), held)


@dataclass(frozen=True)
class CountScoring:
    """Several classes, or trials under contexts: the sums of windows, degree 0."""

    decoder: Decoder
    n_jobs: int | None = None

    @property
    def degrees(self) -> tuple[int, ...]:
        """Only 0."""
        return (0,)

    def most(self, _: bool) -> int:
        """Return fewer places where a posterior costs more, but enough to tell widths apart."""
        return max(FEWEST, int(QUERIES / self.decoder.cost))

    def __call__(
        self, windows: Forest, asked: Places, radii: Floats, _: float, shapes: Floats
    ) -> Scores:
        """Leave out each trial, a width at a time."""
        queries = np.ascontiguousarray(asked.axes.T)
        decoder = replace(self.decoder, width=windows.width, span=windows.span)
        held, score_of = (_of_classes if decoder.n_classes > 2 else _of_contexts)(decoder, asked)
        score, effective_parameters = np.empty((2, asked.size, len(radii), 1))
        for i, radius in enumerate(radii):
            sums = windows.sums(queries, float(radius), self.n_jobs)
            score[:, i, 0] = score_of(sums, shapes)
            effective_parameters[:, i, 0] = held / np.maximum(decoder.size(sums), 1.0)
        return Scores(score, effective_parameters, held)


# Sums of windows and the prior's shapes → the scores of places.
ScoreOf = Callable[[Ints, Floats], Floats]


def _of_classes(decoder: Decoder, asked: Places) -> tuple[Floats, ScoreOf]:
    """Return the trials of each place, and how they are scored when left out."""
    counts = decoder.trials(asked.counts.T).astype(np.float64)
    return counts.sum(axis=1), lambda sums, shapes: held_out_score(
        counts, decoder.trials(sums), shapes
    )


def _of_contexts(decoder: Decoder, asked: Places) -> tuple[Floats, ScoreOf]:
    out = decoder.left_out(asked)

    def by_place(amounts: Floats) -> Floats:
        return np.bincount(out.place, amounts, asked.size).astype(np.float64)

    return by_place(out.weight), lambda sums, shapes: by_place(
        out.weight * decoder.log_scores(out, sums, shapes)
    )


def held_out_score(counts: Floats, sums: Floats, shapes: Floats) -> Floats:
    """Return Σ log P(a trial's outcome | the other trials of its window), a place at a time.

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
    a, n = np.broadcast_to(shapes, sums.shape), sums.sum(axis=1, keepdims=True)
    chance = (a + (sums - own)) / (a.sum(axis=1, keepdims=True) + (n - own))
    return np.asarray(np.sum(counts * np.log(np.maximum(chance, LEAST_CHANCE)), axis=1))
