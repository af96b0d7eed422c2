"""Steps: what curves along a feature are if σ is beyond its largest value.

Fits bound log σ, because beyond the bound π is 0 or 1 nearly everywhere (`fit`). The prior of log σ
has the mass Φ(−2) there. A curve with such a σ that crosses ½ once is a step from 0 to 1, and the
prior of the length scale says how often it does so, and that no place is preferred:

    P(step) = Φ(−2) P(one crossing, upwards) = 0.023 × 0.12,   its place c uniform over the box.

Without steps, a threshold between failures and successes that do not overlap would seem to be known
better than it is: of all the curves between them, only those of bounded slope would be counted, and
these cross the level near the middle.

With L(c) the likelihood of the trials if π is 0 on one side of c and 1 on the other, a process and
its steps have weights in the ratio Σ w/(3 · 2 · 1.5) to P(step) ∫ L(c) dc, where w are the weights
of its members (`ensemble`): on a star they add up to 3 times that of the centre, and 2 and 1.5 are
the mean standard deviations of log σ and log ℓ under the prior. L is constant between trials, so
the integral is a sum.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, ndtr

from betafield.process.boxes import Axis
from betafield.process.ensemble import RADIUS
from betafield.process.fit import AMPLITUDE, LARGEST, LENGTH
from betafield.process.likelihood import at_ends
from betafield.process.model import Smooth
from betafield.process.rows import FINE, Rows
from betafield.process.sums import Sums, at

Floats = npt.NDArray[np.float64]
Order = npt.NDArray[np.intp]

# The probability that a process with the prior's length scale crosses 0 once, upwards.
ONCE = 0.12
# The prior probability of a step, and the weight of a star relative to the evidence of its process.
PRIOR = float(ndtr(-LARGEST / AMPLITUDE[2])) * ONCE
STAR = (1.0 + 1.0 / (RADIUS - 1.0)) * AMPLITUDE[2] * 0.5 * (LENGTH[1] + LENGTH[2])


class Steps(NamedTuple):
    """The posterior of steps along the only feature of a model.

    Parameters
    ----------
    share : float
        The probability that the curve is a step.
    low, high : array of shape (g,)
        The gaps between trials that it may be in, in units of a box.
    weight : array of shape (g,)
        The probability of each gap, given that the curve is a step.
    axes : tuple of Axis
        The maps from own units to boxes.
    which : integer array of shape (g,)
        The index of each gap's map.
    """

    share: float
    low: Floats
    high: Floats
    weight: Floats
    axes: tuple[Axis, ...]
    which: Order

    def drawn(self, count: int, rng: np.random.Generator) -> Floats:
        """Return places of steps in own units, stratified, in random order."""
        u = (rng.permutation(count) + rng.random(count)) / count
        reached = np.cumsum(self.weight)
        gap = np.minimum(np.searchsorted(reached, u * reached[-1], "right"), len(reached) - 1)
        left = np.clip((reached[gap] - u * reached[-1]) / self.weight[gap], 0.0, 1.0)
        x = self.high[gap] - left * (self.high - self.low)[gap]
        each = np.stack([axis.outside(x) for axis in self.axes])
        return np.asarray(each[self.which[gap], np.arange(count)])


def steps(sums: Sums, smooth: Smooth, sign: int) -> Steps:
    """Return the posterior of steps, upwards if `sign` is 1, for a model with one feature.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield.process.model import build, find
    >>> x = np.array([0.1, 0.2, 0.3, 0.41, 0.42, 0.43, 0.44, 0.45, 0.6, 0.7, 0.8])[:, None]
    >>> sums = Sums(x, np.ones(11, dtype=int), (x[:, 0] > 0.43).astype(int))
    >>> smooth = build(sums, np.array([[0.0, 1.0]]), find(sums, np.array([[0.0, 1.0]])))
    >>> found = steps(sums, smooth, 1)
    >>> places = found.drawn(100, np.random.default_rng(0))
    >>> bool(places.min() > 0.43), bool(places.max() < 0.44), 0.0 < found.share < 1.0
    (True, True, True)
    """
    kept = sorted({member.which for member in smooth.members})
    gaps = [_gaps(_rows(sums, smooth, i), sign) for i in kept]
    logs = np.concatenate([each[2] for each in gaps])
    smoothly = float(logsumexp([member.log_weight for member in smooth.members]))
    stepped = math.log(STAR * PRIOR) + float(logsumexp(logs))
    low, high = (np.concatenate([each[end] for each in gaps]) for end in (0, 1))
    weight = np.exp(logs - logsumexp(logs))
    which = np.repeat(np.arange(len(kept)), [len(each[0]) for each in gaps])
    used = weight > 0.0
    return Steps(
        1.0 / (1.0 + math.exp(min(smoothly - stepped, 700.0))),
        low[used],
        high[used],
        weight[used],
        tuple(smooth.boxes[i].axes[0] for i in kept),
        which[used],
    )


def _rows(sums: Sums, smooth: Smooth, i: int) -> Rows:
    """Return the trials by place, under the rates of a process."""
    own, rows = smooth.fits[i].problem.rows, sums.rows(smooth.boxes[i], FINE)
    if smooth.nodes.size:
        rows = rows._replace(context=at(rows.context, smooth.nodes[i % len(smooth.nodes)]))
    return rows._replace(correlation=own.correlation, share=own.share)


def _gaps(rows: Rows, sign: int) -> tuple[Floats, Floats, Floats]:
    """Return the ends of the gaps between trials, and log ∫ L(c) dc over each."""
    order = np.argsort(rows.x[:, 0], kind="stable")
    edges = np.concatenate([[0.0], rows.x[order, 0], [1.0]])
    before, after = at_ends(rows)[::sign, order]
    logs = rows.share + np.concatenate([[0.0], np.cumsum(before)])
    logs += np.concatenate([np.cumsum(after[::-1])[::-1], [0.0]])
    with np.errstate(divide="ignore"):
        return edges[:-1], edges[1:], logs + np.log(np.diff(edges))
