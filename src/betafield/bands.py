"""Intervals that contain π(x) with a stated probability, for any number of trials.

Given the points of the trials, their outcomes are independent, and |π(x_i) − π(x)| ≤ L r_i, where
r_i is the distance of trial i. Only sums per ring are used: radii Δ₁ < Δ₂ < … divide a window into
rings, and r_i is at most the outer radius of its ring.

Sums of outcomes
----------------
S, the number of successes among the n trials of a window, has mean n q̄. Among all such sums, that
of identically distributed trials has the heaviest tails (Hoeffding 1956), so the Clopper–Pearson
interval [l, u] for their q̄ holds here too. Under contexts, q_i = A_i π(x_i) + B_i, and then

    π(x) ∈ [(l − B̄ − e) / Ā, (u − B̄ + e) / Ā],    e = L · mean of |A_i| r_i;

without contexts A = 1 and B = 0.

Likelihoods
-----------
If trials under different contexts are kept as likelihoods ("exact" sharing), the ratio

    R(θ) = Π_i l_i(θ + h + L r_i) / l_i(θ + L r_i)

has a mean of at most 1 if π(x) ≤ θ, because the mean of each factor increases with π(x_i) and is 1
if π(x_i) = θ + L r_i. So R ≥ 1/δ has a probability of at most δ (Markov), and the lower limit is
the first θ that this does not exclude. The best step h is not known in advance, so R is averaged
over several steps. The upper limit is the mirror image.

Which windows
-------------
At one point, the window with the narrowest expected interval is chosen from the points of the
trials, without looking at outcomes, so the choice costs nothing. For all points at once, the error
probability is shared among all possible windows, so the narrowest interval may be taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from betafield import checks
from betafield.bandwidth import diameter
from betafield.posteriors import Beta
from betafield.posteriors.base import blocks

if TYPE_CHECKING:
    from betafield.evidence import Decoder, Totals
    from betafield.windows import Forest

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Radii: 0, for trials at the point itself, then STEPS radii, from LEAST times the best one for
# evenly spread trials, each RATIO times the previous one.
RATIO, STEPS, LEAST = 2.0 ** (1 / 3), 21, 1 / 8
# Steps h start from a long one, and each is half the previous one; limits from likelihoods are
# found to 1 in 2^HALVINGS.
TRIED_STEPS, HALVINGS = 4, 16
# Largest error of a trial's log-likelihood on the lattice.
LATTICE_ERROR = 1e-8
# Smaller error probabilities cannot be distinguished from 0.
LEAST_ERROR = 1e-290


class Rings(NamedTuple):
    """Sums over the trials within each of R radii of m points.

    Parameters
    ----------
    radii : array of shape (R,)
    sums : array of shape (m, R, c)
    trials : array of shape (m, R)
    reach : array of shape (m, R)
        An upper bound of the sum of their distances.
    """

    radii: Floats
    sums: Ints
    trials: Floats
    reach: Floats


def checked(lipschitz: Any, level: Any, simultaneous: Any) -> tuple[float, float, bool]:
    """Return the validated arguments of a band.

    Examples
    --------
    >>> checked(1, 0.9, False)
    (1.0, 0.9, False)
    """
    return (
        checks.positive("lipschitz", lipschitz),
        checks.share("level", level),
        checks.flag("simultaneous", simultaneous),
    )


@dataclass(frozen=True)
class Bands:
    """Guaranteed intervals from the trials of some windows.

    Parameters
    ----------
    windows : Forest
        Trials, in the units of `lipschitz`.
    decoder : Decoder
        Turns sums into counts and likelihoods.
    sides : array of shape (d,)
        Side lengths of the domain.
    totals : Totals
        The number of trials, and how distorted they were.
    lipschitz : float
    error : float
        The probability that an interval misses π.
    simultaneous : bool
        Whether `error` is the probability of a miss at any point.
    n_jobs : int or None
        Threads.
    circles : tuple of float
        Radii of the circles and spheres on which trials lie: windows are measured along chords, and
        `lipschitz` refers to arcs, which are longer.
    block : int
        Largest number of values in memory at once.
    """

    windows: Forest
    decoder: Decoder
    sides: Floats
    totals: Totals
    lipschitz: float
    error: float
    simultaneous: bool = False
    n_jobs: int | None = None
    circles: tuple[float, ...] = ()
    block: int = 1 << 22

    def intervals(self, queries: Floats) -> tuple[Floats, Floats]:
        """Return the lower and upper limits at (m, d) queries."""
        low, high = np.zeros(len(queries)), np.ones(len(queries))
        if self.error_of_one < LEAST_ERROR:
            return low, high
        for rows in self._blocks(len(queries)):
            low[rows], high[rows] = self._narrowest(self._rings(queries[rows]))
        return low, high

    def more_trials(self, queries: Floats, width: float) -> Floats:
        """Return how many undistorted trials at each query would make its interval this narrow.

        With k more trials there, the half-width for a window of n trials is at most about

            (L Σ r_i + 1) / (n + k) + z / (2 √(n + k)),

        where z is the normal quantile of the error, whatever their outcomes.
        """
        needed, width = np.empty(len(queries)), min(width, 1.0)  # no interval is wider
        for rows in self._blocks(len(queries)):
            rings = self._rings(queries[rows])
            low, high = self._narrowest(rings)
            n, reach = rings.trials, rings.reach
            if not self.decoder.is_plain:  # distorted trials are worth less, so they are ignored
                n = reach = np.zeros((len(low), 1))
            # With y = 1/√(n + k): (L Σ r + 1) y² + z y / 2 = width / 2.
            with np.errstate(over="ignore", divide="ignore"):  # the result may exceed any float
                a = self._bias(reach) + 1.0
                y = 2.0 * width / (np.sqrt(self._z**2 + 8.0 * a * width) + self._z)
                more = np.maximum(np.ceil(y**-2.0 - n), 1.0).min(axis=1)
            needed[rows] = np.where(high - low <= width, 0.0, more)
        return needed

    # The cost of several windows.

    @property
    def error_of_one(self) -> float:
        """The probability that the interval of one window misses π."""
        if not self.simultaneous:
            return self.error
        return math.exp(max(math.log(self.error) - self._log_windows(), -700.0))

    def _log_windows(self) -> float:
        """Return the logarithm of the number of different windows.

        Along one direction, an interval of a given length can contain 2t + 1 different sets of
        trials. A box consists of intervals along d directions, a Manhattan ball of intervals along
        2^(d−1). For Euclidean balls of all radii, the number follows from the Sauer–Shelah lemma:
        balls cannot shatter d + 2 points.
        """
        d, t, metric = self.windows.d, math.ceil(self.totals.number()), self.windows.metric
        if d > 1 and metric == "euclidean":
            k = np.arange(min(d + 1, t) + 1)
            binomials = (
                special.gammaln(t + 1.0) - special.gammaln(k + 1) - special.gammaln(t - k + 1.0)
            )
            return float(special.logsumexp(binomials))
        directions = d if metric != "manhattan" else 2.0 ** (d - 1)
        return directions * math.log(2.0 * t + 1.0) + math.log(STEPS + 2)

    @property
    def _z(self) -> float:
        return float(-special.ndtri(max(0.5 * self.error_of_one, LEAST_ERROR)))

    # Rings.

    @property
    def radii(self) -> Floats:
        """The radii of the rings, from 0 to one that holds all trials."""
        real = self.sides[self.sides > 0]
        if not real.size:
            return np.zeros(1)
        widest = diameter(self.sides, self.windows.metric)
        # Where bias and noise are equal: L Δ = √(log(2/δ) / n), with n trials in Δ^d.
        noise = math.log(2.0 / max(self.error_of_one, LEAST_ERROR)) / (
            self.totals.share() * self.totals.number()
        )
        log_radius = math.log(noise) + np.log(real).sum() - 2.0 * math.log(self.lipschitz)
        alike = math.exp(min(log_radius / (real.size + 2), math.log(widest)))
        radii = LEAST * alike * RATIO ** np.arange(STEPS)
        return np.concatenate([[0.0], radii[radii < widest], [widest]])

    def _rings(self, queries: Floats) -> Rings:
        radii = self.radii
        sums = np.stack([self.windows.sums(queries, r, self.n_jobs) for r in radii], axis=1)
        trials = self.decoder.size(sums)
        reached = arcs(radii, self.circles)
        return Rings(reached, sums, trials, _reach(trials, reached))

    def _blocks(self, m: int) -> list[slice]:
        numbers = (STEPS + 2) * (self.windows.width + self.windows.span[1] + 8)
        return blocks(m, max(1, self.block // numbers))

    def _narrowest(self, rings: Rings) -> tuple[Floats, Floats]:
        """Return the narrowest interval that the error probability allows."""
        if self.simultaneous and self.decoder.is_summed:
            chosen = np.broadcast_to(np.arange(len(rings.radii)), rings.trials.shape)
        else:
            chosen = np.argmin(self._promise(rings), axis=1)[:, None]
        if not self.decoder.is_summed:
            return self._from_likelihoods(rings, chosen)
        low, high = self._from_sums(rings, chosen)
        rows, best = np.arange(len(low)), np.argmin(high - low, axis=1)
        return low[rows, best], high[rows, best]

    def _bias(self, reach: Floats) -> Floats:
        """Return L times distances; infinity, which excludes nothing, if that overflows."""
        with np.errstate(over="ignore"):
            return self.lipschitz * reach

    def _promise(self, rings: Rings) -> Floats:
        """Return approximate half-widths (m, R) of intervals, from the trials' points alone."""
        n = np.maximum(rings.trials, 1e-9)
        noise = 0.5 * self._z / np.sqrt(self.totals.share() * n) + 1.0 / n
        return self._bias(rings.reach) / n + noise

    # From sums of outcomes.

    def _from_sums(self, rings: Rings, chosen: Ints) -> tuple[Floats, Floats]:
        """Return the intervals (m, k) of the chosen windows (m, k)."""
        affine = self.decoder.affine(rings.sums)
        bends = np.abs(affine.gain) if self._is_of_one_sign else affine.trials
        bias = self._bias(_reach(bends, rings.radii))
        successes, n, gain, offset, bias = (
            np.take_along_axis(each, chosen, axis=1) for each in (*affine, bias)
        )
        low, high = (n * end for end in share_bounds(successes, n, self.error_of_one))
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.stack([low - offset - bias, high - offset + bias]) / gain
        low, high = np.where(gain > 0, ends, np.where(gain < 0, ends[::-1], [[[0.0]], [[1.0]]]))
        return low.clip(0.0, 1.0), high.clip(0.0, 1.0)

    @property
    def _is_of_one_sign(self) -> bool:
        """Whether all A have the same sign, so that |Σ A| = Σ |A|."""
        gain = float(self.decoder.affine(self.windows.totals).gain)
        return abs(gain) >= (1.0 - 1e-6) * self.totals.spread()

    # From likelihoods.

    def _from_likelihoods(self, rings: Rings, chosen: Ints) -> tuple[Floats, Floats]:
        """Return the intervals (m,) of the chosen windows (m, 1)."""
        amounts, ratios = self.decoder.likelihoods(rings.sums)
        amounts = np.diff(amounts, axis=1, prepend=0.0)
        amounts[np.arange(len(rings.radii)) > chosen] = 0.0
        test = Exclusion(self._bias(rings.radii), amounts, ratios, self.error_of_one)
        # Failures are to 1 − π as successes are to π.
        return test.excluded(), 1.0 - test._replace(ratios=-ratios).excluded()


class Exclusion(NamedTuple):
    """Trials as likelihoods, to test π(x) ≤ θ.

    Parameters
    ----------
    bias : array of shape (R,)
        L r: how much π may differ from π(x) in each ring.
    amounts : array of shape (m, R, c)
        Trials per ring.
    ratios : array of shape (c,)
        Their log-likelihood ratios log l₁/l₀.
    error : float
        The error probability of an interval; the test uses half of it.
    """

    bias: Floats
    amounts: Floats
    ratios: Floats
    error: float

    def excluded(self) -> Floats:
        """Return (m,): the θ up to which all values are excluded.

        Likelihoods are log-concave, so log R decreases in θ, and bisection finds it.
        """
        n = self.amounts.sum(axis=(1, 2))
        needed = math.log(2.0 / self.error)
        longest = np.sqrt(8.0 * needed / np.maximum(n, 1.0))
        steps = longest[:, None] * 0.5 ** np.arange(TRIED_STEPS)
        low, high = np.zeros(len(n)), np.ones(len(n))
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            is_excluded = self._log_r(middle, steps) >= needed + 2.0 * LATTICE_ERROR * n
            low, high = np.where(is_excluded, middle, low), np.where(is_excluded, high, middle)
        return low

    def _log_r(self, theta: Floats, steps: Floats) -> Floats:
        """Return log R (m,) at θ (m,), averaged over steps (m, TRIED_STEPS)."""
        total = np.zeros(steps.shape)
        for ring, bias in enumerate(self.bias):
            start = np.minimum(theta + bias, 1.0)[:, None]
            rises = _log_likelihood(np.minimum(start + steps, 1.0), self.ratios)
            rises -= _log_likelihood(start, self.ratios)
            total += (rises @ self.amounts[:, ring, :, None])[..., 0]
        return np.asarray(special.logsumexp(total, axis=1) - math.log(TRIED_STEPS))


def clopper_pearson(successes: Floats, trials: Floats, error: float) -> tuple[Floats, Floats]:
    """Return Clopper–Pearson limits for the probability of identically distributed trials.

    The lower limit is the q at which this many successes or more have probability error/2, a
    quantile of Beta(S, n − S + 1); the upper limit is its mirror image.

    Examples
    --------
    >>> low, high = clopper_pearson(np.array([0.0, 5.0]), np.array([10.0, 10.0]), error=0.05)
    >>> print(low.round(4), high.round(4))
    [0.     0.1871] [0.3085 0.8129]
    """
    failures, tail = trials - successes, 0.5 * error
    return _lower_bound(successes, failures, tail), 1.0 - _lower_bound(failures, successes, tail)


def _lower_bound(successes: Floats, failures: Floats, tail: float) -> Floats:
    some = np.where(successes > 0.0, successes, 1.0)
    bound = Beta(some.ravel(), (failures + 1.0).ravel()).ppf(tail).reshape(successes.shape)
    return np.where(successes > 0.0, bound, 0.0)


def share_bounds(successes: Floats, trials: Floats, error: float) -> tuple[Floats, Floats]:
    """Return limits for the mean probability of trials that need not be identically distributed.

    They are Clopper and Pearson's except for one success, to which Hoeffding's result does not
    apply: there P(S ≥ 1) ≤ n q̄ is used.
    """
    low, high = clopper_pearson(successes, trials, error)
    first = 0.5 * error / np.maximum(trials, 1.0)
    return (
        np.where(successes == 1.0, first, low),
        np.where(trials - successes == 1.0, 1.0 - first, high),
    )


def _log_likelihood(theta: Floats, ratios: Floats) -> Floats:
    """Return (…, c): log((1−θ) l₀ + θ l₁), where the larger of l₀ and l₁ is 1."""
    l0, l1 = np.exp(-np.maximum(ratios, 0.0)), np.exp(np.minimum(ratios, 0.0))
    theta = theta[..., None]
    return np.asarray(np.log(np.maximum((1.0 - theta) * l0 + theta * l1, 1e-300)))


def arcs(chords: Floats, circles: tuple[float, ...]) -> Floats:
    """Return the longest distance along arcs for points at these straight-line distances.

    Along a circle of radius R, an arc is 2R arcsin(c/2R); other distances are straight.

    Examples
    --------
    >>> arcs(np.array([0.0, 1.0, 2.0]), (1.0,)).round(4).tolist()
    [0.0, 1.0472, 3.1416]
    """
    square = chords**2
    for radius in circles:
        chord = np.minimum(chords, 2.0 * radius)
        square = square + (2.0 * radius * np.arcsin(0.5 * chord / radius)) ** 2 - chord**2
    return np.where(np.isfinite(chords), np.sqrt(square), chords) if circles else chords


def _reach(trials: Floats, radii: Floats) -> Floats:
    """Return (m, R): an upper bound of the sum of distances of the trials in windows (m, R)."""
    return np.cumsum(np.diff(trials, axis=1, prepend=0.0) * radii, axis=1)
