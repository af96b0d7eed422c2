"""Policies: which arm to pull, by a quantile of each arm's posterior.

    "thompson"  the arm whose quantile at a random level is highest, θ_a = ppf_a(u): a draw from
                its posterior. Named arms have one level each. Points all have the same level:
                neighbouring points share trials, so their posteriors rise and fall together, and
                the highest of a thousand independent draws would nearly always be one of the
                least known points.
    "ucb"       the arm whose quantile at the level 1 − 1/(2 + log(1 + t)^1.5) is highest, after t
                pulls: 0.92 after 100, 0.97 after 10,000. Pulls whose rewards are pending count
                as if each had brought its expected reward, so that a batch does not pull one arm
                only.

Arms with equal scores take turns; the points of a continuum are in an order that spreads over all
of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy import special

if TYPE_CHECKING:
    from betafield.decisions.bandit.arms import Arms
    from betafield.posteriors import Posterior

Floats = npt.NDArray[np.float64]

# Policies, with the description of the quantile they use.
POLICIES = {"thompson": "draw from its posterior", "ucb": "upper bound"}


def levels(policy: str, arms: Arms, seed: int, number: int) -> Floats:
    """Return the quantile level of each arm in the pull with this number."""
    if policy == "ucb":
        return np.full(arms.size, 1.0 - 1.0 / (2.0 + np.log1p(number) ** 1.5))
    rng = np.random.default_rng([seed, number])
    return rng.uniform(size=arms.size) if arms.names else np.full(arms.size, rng.uniform())


def chosen(scores: Floats, number: int) -> int:
    """Return the arm with the highest score; equal ones take turns.

    Examples
    --------
    >>> [chosen(np.array([0.2, 0.7, 0.7]), number) for number in range(3)]
    [1, 2, 1]
    """
    top = np.flatnonzero(scores == scores.max())
    return int(top[number % len(top)])


def highest(belief: Posterior, level: float) -> Floats:
    """Return the quantiles of all rows that may have the highest; −∞ for the others.

    A quantile is above v if P(π ≤ v) is below its level, which is much faster to compute.
    """
    mean, std = belief.mean(), belief.std()
    least = belief[int(np.argmax(mean + special.ndtri(level) * std))].ppf(level)
    # By Cantelli's inequality no quantile is further above the mean.
    may = np.flatnonzero(mean + np.sqrt(level / (1.0 - level)) * std >= least - 1e-9)
    # Just below it, because a quantile next to 1 is rounded to 1, where all rows have P = 1.
    may = may[belief[may].cdf(np.nextafter(least, 0.0)) <= level + 1e-9]
    scores = np.full(len(mean), -np.inf)
    scores[may] = belief[may].ppf(level)
    return scores
