"""Acquisition functions, one per strategy: the value of testing each candidate next.

Every function returns one score per candidate, and a description of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from betafield._locks import cached
from betafield.decisions.experiment.goals import LEVEL, Goal
from betafield.decisions.experiment.learner import categories_of
from betafield.decisions.experiment.thresholds import expected_gain
from betafield.decisions.space import Space

if TYPE_CHECKING:
    from betafield.methods import AnyField
    from betafield.posteriors import Posterior

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator

# Cosines per drawn field.
WAVES = 32
# Draws after which the second leader is the runner-up of the first draw.
MOST_DRAWS = 32
# Candidates are drawn in proportion to SHARP or, with probability LOOKS_FURTHER, WIDE powers of
# their scores. With 4, 8 or 64 for all draws, errors are larger; with 16 alone, one run in 24
# missed a part of a circle.
SHARP, WIDE, LOOKS_FURTHER = 16.0, 2.0, 1 / 8
# Candidates whose band is computed.
SHORT_LIST = 8
# Numbers held in memory at once.
BLOCK = 1 << 20


class Scores(NamedTuple):
    """The scores of candidates, and their description.

    Parameters
    ----------
    values : array of shape (m,)
    quantity : str
    power : float or None
        A candidate is drawn in proportion to this power of its score; None takes the highest.
    """

    values: Floats
    quantity: str
    power: float | None = None


@dataclass(frozen=True)
class Belief:
    """A posterior whose moments are computed once."""

    posterior: Posterior

    @cached
    def mean(self) -> Floats:
        """E[π]."""
        return self.posterior.mean()

    @cached
    def var(self) -> Floats:
        """Var[π]."""
        return self.posterior.var()

    @property
    def std(self) -> Floats:
        """Root of the variance."""
        return np.sqrt(self.var)


@dataclass(frozen=True)
class Scene:
    """What a score depends on: a field, a goal, and candidates with their posterior.

    `ask` returns the posterior; it is called only if a score needs it.
    """

    space: Space
    field: AnyField
    goal: Any
    rows: Floats
    ask: Callable[[], Posterior]
    seed: int

    @cached
    def posterior(self) -> Posterior:
        """The posterior of π at the candidates."""
        return self.ask()

    @cached
    def gain(self) -> Floats:
        """The expected reduction of the variance of the goal's threshold by a trial.

        Its random numbers depend on the number of trials in the field, so all asks of a round
        share it.
        """
        rng = np.random.default_rng([self.seed, self.field.totals.trials])
        return expected_gain(self.field, self.goal, self.rows, rng, float(self.space.side[0]))

    @property
    def points(self) -> Floats:
        """The candidates as the field takes them, with category codes."""
        return self.space.coded(self.rows, categories_of(self.field))

    @cached
    def shares(self) -> Floats:
        """The candidates as fractions of the sides of the space."""
        return self.space.shares(self.rows)

    @cached
    def belief(self) -> Belief:
        """The posterior of π with its moments."""
        return Belief(self.posterior)

    @cached
    def seen(self) -> Belief:
        """The posterior of the quantity that the goal is about."""
        seen = self.goal.seen(self.posterior)
        return self.belief if seen is self.posterior else Belief(seen)

    @cached
    def above(self) -> Floats:
        """The probability that this quantity is above the goal's level."""
        return self.seen.posterior.prob_above(self.goal.p)

    @cached
    def reaches(self) -> list[tuple[float, Floats]]:
        """How far trials reach along each feature, as fractions of the sides, with weights."""
        columns = categories_of(self.field)
        return [
            (weight, self.space.reached(reach, columns)) for weight, reach in self.field.reaches
        ]


def variance(scene: Scene, _: Rng) -> Scores:
    """Posterior variance × the volume that a trial reaches: the error that it can remove."""
    volume = volumes(scene.reaches, scene.shares)
    return Scores(scene.belief.var * volume, "posterior variance × volume within reach")


def volumes(reaches: list[tuple[float, Floats]], shares: Floats) -> Floats:
    """Return the share of the space within reach of each point, taken to be a box.

    Examples
    --------
    >>> volumes([(1.0, np.array([0.1]))], np.array([[0.0], [0.5]])).round(3).tolist()
    [0.1, 0.2]
    """
    total = np.zeros(len(shares))
    for weight, reach in reaches:
        ends = np.minimum(shares + reach, 1.0) - np.maximum(shares - reach, 0.0)
        total += weight * ends.prod(axis=1)
    return total


def boundary(scene: Scene, rng: Rng) -> Scores:
    """Uncertainty about the side of the level on which π is; drawn in proportion to a power of it.

    P(π > p) (1 − P(π > p)) is high all along the boundary, however many trials are there, so that
    trials lie on both sides of it and locate it. A low power wastes trials far from it, where the
    score is low but most of the space lies; the highest score alone would test one place only.
    Occasionally a low power looks further, so that no part of the boundary is overlooked.
    """
    above, p = scene.above, scene.goal.p
    quantity = f"P(π > {p}) · P(π < {p})"
    power = WIDE if rng.random() < LOOKS_FURTHER else SHARP
    return Scores(above * (1.0 - above), quantity, power)


def threshold(scene: Scene, _: Rng) -> Scores:
    """Return how much a trial is expected to reduce the variance of the threshold.

    The thresholds of levels beside the goal's count half (`thresholds`).
    """
    return Scores(scene.gain, "expected reduction of the threshold's variance, in sides squared,")


def entropy(scene: Scene, _: Rng) -> Scores:
    """Return how much a trial is expected to reduce the entropy of {π(x) > p}, in bits."""
    bits = information(scene.seen.mean, scene.seen.std, scene.above, scene.goal.p)
    return Scores(bits, f"expected entropy reduction of {{π > {scene.goal.p}}}, in bits,")


def information(mean: Floats, std: Floats, above: Floats, p: float) -> Floats:
    """Return the mutual information between the outcome of a trial and π > p, in bits.

    With q = P(π > p) and m₁, m₀ the means of π above and below p,

        I = H(E[π]) − q H(m₁) − (1 − q) H(m₀),    H(m) = −m log₂ m − (1 − m) log₂(1 − m);

    m₁ = E[π] + e/q and m₀ = E[π] − e/(1 − q), where e = σ φ((p − E[π])/σ) as if π were normal.

    Examples
    --------
    A coin that is known to be fair, and one that may be biased either way:

    >>> half = np.array([0.5, 0.5])
    >>> information(half, np.array([0.001, 0.2]), half, 0.5).round(3).tolist()
    [0.0, 0.075]
    """
    q = above.clip(1e-12, 1.0 - 1e-12)
    spread = np.maximum(std, 1e-12)
    excess = spread * np.exp(-0.5 * ((p - mean) / spread) ** 2) / np.sqrt(2.0 * np.pi)
    higher = np.clip(mean + excess / q, p, 1.0)
    lower = np.clip(mean - excess / (1.0 - q), 0.0, p)
    bits = _bits(mean) - q * _bits(higher) - (1.0 - q) * _bits(lower)
    return np.maximum(bits, 0.0)


def _bits(p: Floats) -> Floats:
    """Entropy of an outcome of probability p."""
    return np.asarray((special.entr(p) + special.entr(1.0 - p)) / np.log(2.0))


def thompson(scene: Scene, rng: Rng) -> Scores:
    """Return a field drawn from the posterior; half of a comparison's asks test a second leader."""
    drawn = scene.goal.sign * fields(scene, 1, rng)[0]
    if hasattr(scene.goal, "points") and len(drawn) > 1 and rng.random() < 0.5:
        drawn = _without_leader(scene, int(np.argmax(drawn)), drawn, rng)
    return Scores(drawn, f"π in a field drawn from the posterior{_turned(scene.goal)}")


def _without_leader(scene: Scene, leader: int, drawn: Floats, rng: Rng) -> Floats:
    """Return a draw in which another point leads, or this draw without its leader."""
    for again in fields(scene, MOST_DRAWS, rng):
        if np.argmax(again) != leader:
            return np.asarray(again)
    rest = drawn.copy()
    rest[leader] = -np.inf
    return rest


def many_fields(scene: Scene, rng: Rng, n: int) -> Floats:
    """Return n `fields`, computed in blocks."""
    most = max(1, BLOCK // (WAVES * len(scene.rows)))
    return np.concatenate([fields(scene, min(most, n - i), rng) for i in range(0, n, most)])


def fields(scene: Scene, n: int, rng: Rng) -> Floats:
    """Return n functions drawn from the posterior, at the candidates.

    At each point π has the posterior's mean and variance, as a Beta distribution approximated on
    the logit scale. Its correlation length is the reach of a trial.
    """
    mean = scene.belief.mean.clip(1e-9, 1.0 - 1e-9)
    size = np.maximum(mean * (1.0 - mean) / np.maximum(scene.belief.var, 1e-15) - 1.0, 1e-3)
    alpha, beta = size * mean, size * (1.0 - mean)
    middle = special.psi(alpha) - special.psi(beta)
    spread = np.sqrt(special.zeta(2.0, alpha) + special.zeta(2.0, beta))
    noise = _noise(scene, n, rng)
    return np.asarray(special.expit(middle + spread * noise))


def _noise(scene: Scene, n: int, rng: Rng) -> Floats:
    """Return n smooth standard normal functions whose correlation length is a trial's reach."""
    _, reach = max(scene.reaches, key=operator.itemgetter(0))
    scaled = scene.shares / reach
    waves = rng.standard_normal((n, scaled.shape[1], WAVES))
    phases = rng.uniform(0.0, 2.0 * np.pi, (n, 1, WAVES))
    sizes = rng.standard_normal((n, WAVES, 1)) * np.sqrt(2.0 / WAVES)
    return np.asarray((np.cos(scaled @ waves + phases) @ sizes)[..., 0])


def ucb(scene: Scene, _: Rng) -> Scores:
    """Upper end of the finite-sample band, with the model's own `lipschitz`.

    The band's guarantee is for trials placed without looking at outcomes. These are not, so it is
    used as an optimistic estimate, not as a guarantee. It takes much longer than a posterior, so it
    is computed only where the posterior's mean + 2σ is highest.
    """
    sign = scene.goal.sign
    may_be = sign * scene.belief.mean + 2.0 * scene.belief.std
    best = np.argsort(-may_be, kind="stable")[:SHORT_LIST]
    try:
        bands = scene.field.bands(scene.field.options.lipschitz, LEVEL, simultaneous=False)
    except ValueError as error:
        raise ValueError(f"strategy: found 'ucb', which needs a band; {error}") from error
    low, high = bands.intervals(scene.field.units.scaled(scene.points[best]))
    # Upper ends are often equal, above all 1; ties are broken by the posterior, and candidates
    # without a band come last.
    values = 1e-9 * may_be - 1.0
    values[best] += 1.0 + (high if sign > 0 else 1.0 - low)
    end = "upper end" if sign > 0 else "1 − lower end"
    return Scores(values, f"{end} of the {LEVEL:.0%} band of π")


def _turned(goal: Goal) -> str:
    return ", lowest first" if getattr(goal, "sign", 1.0) < 0 else ""


STRATEGIES: dict[str, Callable[[Scene, Rng], Scores]] = {
    "variance": variance,
    "boundary": boundary,
    "threshold": threshold,
    "entropy": entropy,
    "thompson": thompson,
    "ucb": ucb,
}
