"""What the other levels say: the prior of a window that holds the trials of one level.

Let m(x) be the posterior mean of the trials of all other levels in the window of x, and n(x) their
number. The prior of a level there is worth κ of their trials, but never more than they are:

    (α, β) + κ n/(κ + n) · (m, 1 − m),

so no trial counts twice, and without other levels it is (α, β). The strength κ is learned from how
well windows predict held-out trials. It is the least that is not clearly worse than the best:
levels that nearly agree by chance would otherwise make all intervals too narrow. For the same
reason the width is the narrowest that is about as good as the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from betafield import choosing
from betafield._locks import cached
from betafield.bandwidth import candidates, diameter

if TYPE_CHECKING:
    from betafield.evidence import Decoder
    from betafield.windows import Forest

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Strengths that are tried, in trials.
STRENGTHS = np.concatenate([[0.0], 2.0 ** (0.5 * np.arange(-2, 16))])
# A strength is clearly worse if its score is lower by SURE nats (the lower end of a 95 % likelihood
# interval is at 1.92), and a width is about as good if it is lower by at most CLOSE.
SURE, CLOSE = 2.0, 1.0
# With contexts, a score costs a posterior per strength, so fewer places are scored.
DEARER = 8.0


class Others:
    """The trials of other levels in a window: their posterior mean and their number.

    Parameters
    ----------
    decoder : Decoder
    sums : integer array of shape (m, c)
    plain : array of shape (m, K)
        Shapes of the prior without other levels.
    """

    def __init__(self, decoder: Decoder, sums: Ints, plain: Floats) -> None:
        post = decoder.posterior(sums, plain)
        mean = post.mean()
        self.plain = plain
        self.mean = mean if mean.ndim == 2 else np.stack([1.0 - mean, mean], axis=1)
        if decoder.is_plain:
            self.size = decoder.size(sums)
        else:  # as many undistorted trials as would tell as much
            worth = mean * (1.0 - mean) / np.maximum(post.var(), np.finfo(float).tiny) - 1.0
            self.size = np.maximum(worth - plain.sum(axis=1), 0.0)

    def shapes(self, strength: float) -> Floats:
        """Return the prior's shapes, one column per class."""
        if not strength:
            return self.plain
        worth = strength * self.size / (strength + self.size)
        return np.asarray(self.plain + worth[:, None] * self.mean)


@dataclass(frozen=True, eq=False)
class Levels:
    """Windows of one level each, and how to ask for the other levels.

    Parameters
    ----------
    windows : Forest
        The trials, by place and level.
    axes : sequence of int
        The coordinates that keep levels apart.
    decoder : Decoder
    n_jobs : int or None
    """

    windows: Any
    axes: Sequence[int]
    decoder: Decoder
    n_jobs: int | None = None

    def others(self, queries: Floats, width: float, own: Ints, plain: Floats) -> Others:
        """Return the trials of other levels in windows of which `own` are the level's own sums."""
        at = np.ascontiguousarray(self._together(queries.T).T)
        return Others(self.decoder, self._joint.sums(at, width, self.n_jobs) - own, plain)

    @property
    def cost(self) -> float:
        """Approximate cost of the scores at a place, relative to undistorted trials."""
        return self.decoder.cost * (1.0 if self.decoder.is_plain else DEARER)

    def scored(self, sample: choosing.Sample, plain: Floats, sides: Floats) -> choosing.Scored:
        """Return the scores of widths, each with its best strength."""
        widths = candidates(sides, diameter(sides, self.windows.metric), sample.total)
        scores = [self.scores(sample, plain, float(width)).max() for width in widths]
        return choosing.Scored(widths, np.array(scores), CLOSE)

    def scores(self, sample: choosing.Sample, plain: Floats, width: float) -> Floats:
        """Return the leave-one-out score of each strength for windows of this width."""
        queries = np.ascontiguousarray(sample.places.axes.T)
        own = self.windows.sums(queries, width, self.n_jobs)
        others = self.others(queries, width, own, plain)
        score = choosing.score_of(self.decoder, sample.places)
        return np.array([score(own, others.shapes(strength)) for strength in STRENGTHS])

    @cached
    def _joint(self) -> Forest:
        """The trials of all levels, by place."""
        from betafield.windows import Forest

        joint = Forest(self.windows.d, self.windows.metric)
        for part in self.windows.places:
            joint = joint.insert(part._replace(axes=self._together(part.axes)))
        return joint

    def _together(self, axes: Floats) -> Floats:
        """Return coordinates (d, m) without those that keep levels apart."""
        out = axes.copy()
        out[list(self.axes)] = 0.0
        return out


def least(scores: Floats) -> float:
    """Return the least strength that is not clearly worse than the best.

    Examples
    --------
    >>> least(np.r_[-9.0, -7.5, -6.0, np.full(16, -8.5)])
    0.5
    """
    return float(STRENGTHS[np.flatnonzero(scores >= scores.max() - SURE)[0]])
