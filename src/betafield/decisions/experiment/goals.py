"""Goals of an experiment, which decide where to test next and when to stop.

Each goal measures its remaining uncertainty in its own unit, and is reached once that is at most
`within`:

    Everywhere   square root of the mean posterior variance of π over the space
    LevelSet     expected share of the space on the wrong side of the level
    Maximize     expected shortfall, E[max π] − E[π(best)]; Minimize is its mirror image
    Compare      probability that another point is better

These are statements about the posterior: they hold under the model, wherever trials were placed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import bernstein, checks
from betafield._rows import distinct
from betafield.decisions.space import Space
from betafield.distorted import one_context
from betafield.field import Field
from betafield.plain import fields_of, one_of

if TYPE_CHECKING:
    from betafield.answers.threshold import Threshold
    from betafield.methods import AnyField
    from betafield.posteriors import Posterior

Floats = npt.NDArray[np.float64]
PLAIN = ("random", "sobol")
# The level of intervals and bands.
LEVEL = 0.95
# Draws of the field for a status: over a space, and at compared points.
DRAWS, COMPARED = 1 << 7, 1 << 12
# Draws of the field for a threshold.
THRESHOLDS = 2_000


class View(NamedTuple):
    """Candidates spread evenly over a space, and their posterior.

    Parameters
    ----------
    space : Space
    rows : array of shape (m, d)
    posterior : Posterior of m rows
    draws : callable
        Maps n to an array of shape (n, m): π in n fields drawn from the posterior.
    field : Field or SmoothField
        The field whose posterior it is.
    seed : int
        The experiment's seed.
    """

    space: Space
    rows: Floats
    posterior: Posterior
    draws: Callable[[int], Floats]
    field: AnyField
    seed: int


@dataclass(frozen=True)
class Known:
    """The answer of a goal: what is known, how uncertain it is, and what that number means."""

    known: dict[str, Any]
    unsure: float
    means: str


@dataclass(frozen=True, kw_only=True)
class Goal:
    """The goal of an experiment.

    Parameters
    ----------
    within : float, default=0.05
        The uncertainty at which the goal is reached.
    """

    within: float = field(default=0.05)
    strategies: ClassVar[tuple[str, ...]] = PLAIN

    def __post_init__(self) -> None:
        object.__setattr__(self, "within", checks.share("within", self.within))

    def only(self, space: Space) -> Floats | None:  # noqa: ARG002
        """Return the only points that may be asked for; None for the whole space."""
        return None

    def possible(self, space: Space) -> tuple[str, ...]:  # noqa: ARG002
        """Return the allowed strategies."""
        return self.strategies

    def usual(self, space: Space, is_smooth: bool) -> str:  # noqa: ARG002
        """Return the default strategy; `is_smooth` if the model has a process."""
        return self.strategies[0]

    def seen(self, posterior: Posterior) -> Posterior:
        """Return the distribution of the quantity that the goal is about."""
        return posterior

    def known(self, view: View) -> Known:
        """Return the answer to the goal, from candidates spread evenly over the space."""
        raise NotImplementedError

    def proven(self, low: Floats, high: Floats) -> dict[str, Any]:
        """Return what follows if π lies between these bounds at all candidates."""
        return {"widest": float((high - low).max())}

    def ratio(self, unsure: float, d: int) -> float:
        """Return the trials needed divided by those told, by the rate at which error shrinks."""
        return float((unsure / self.within) ** (d + 2))


@dataclass(frozen=True, kw_only=True)
class Everywhere(Goal):
    """Learn π over the whole space.

    The strategy is "variance": posterior variance × window volume, the error that a trial can
    remove.

    Examples
    --------
    >>> Everywhere(within=0.02)
    Everywhere(within=0.02)
    """

    strategies: ClassVar[tuple[str, ...]] = ("variance", *PLAIN)

    def known(self, view: View) -> Known:
        """Return the range of the posterior means, and the root of the mean variance."""
        mean = view.posterior.mean()
        error = float(np.sqrt(view.posterior.var().mean()))
        told = {"lowest": float(mean.min()), "highest": float(mean.max())}
        return Known(told, error, "the root of the mean posterior variance of π over the space")


@dataclass(frozen=True)
class LevelSet(Goal):
    """Learn where the success probability is above p: thresholds.

    Strategies are "threshold" for one feature, the point where a trial is expected to reduce the
    variance of the threshold most; "boundary", points drawn in proportion to a power of
    P(π > p) P(π < p); and "entropy", the point where a trial is expected to reduce the entropy of
    {π(x) > p} most. The default is the first if there is one feature and the model has a process,
    otherwise the second.

    Parameters
    ----------
    p : float
        The level.
    under : context, default=None
        The context to which the level refers: with two alternatives, 75 % correct is
        `LevelSet(0.75, under=contexts.guess_lapse(1 / 2))`. None: the level refers to π itself.
    anchored : bool, default=False
        Whether π is known to start at 0 and end at 1 along the one feature; see
        `SmoothBetaClassifier.threshold`.

    Examples
    --------
    >>> LevelSet(0.75)
    LevelSet(within=0.05, p=0.75, under=None, anchored=False)
    """

    p: float
    under: Any = None
    anchored: bool = False
    strategies: ClassVar[tuple[str, ...]] = ("boundary", "entropy", "threshold", *PLAIN)

    def __post_init__(self) -> None:
        super().__post_init__()
        rule = "a level between 0 and 1 is needed"
        object.__setattr__(self, "p", checks.share("p", self.p, rule))
        if self.under is not None:
            object.__setattr__(self, "under", tuple(one_context("under", self.under).tolist()))
        checks.flag("anchored", self.anchored)

    def possible(self, space: Space) -> tuple[str, ...]:
        """Return the allowed strategies; "threshold" needs a single numeric feature."""
        is_line = self._is_line(space) and self.has_threshold
        return tuple(name for name in self.strategies if is_line or name != "threshold")

    def usual(self, space: Space, is_smooth: bool) -> str:
        """Return the default strategy; `is_smooth` if the model has a process."""
        return "threshold" if is_smooth and "threshold" in self.possible(space) else "boundary"

    @staticmethod
    def _is_line(space: Space) -> bool:
        """Return whether there is a single, numeric feature."""
        return len(space.names) == 1 and not space.levelled

    @property
    def has_threshold(self) -> bool:
        """Whether the success probability under the context reaches the level at one π only."""
        if self.under is None:
            return True
        steps, ends = np.diff(self.under), sorted((self.under[0], self.under[-1]))
        return bool(np.all(steps >= 0) or np.all(steps <= 0)) and ends[0] < self.p < ends[1]

    def crossing(self, field: AnyField, seed: int) -> Threshold:
        """Return where a field with one feature crosses the level."""
        from betafield.answers.thresholds import threshold
        from betafield.process.noise import Seed

        anchored = self.anchored and not isinstance(field, Field)
        where = None, None, self.under, anchored
        return threshold(field, self.p, *where, THRESHOLDS, Seed((seed,)))

    def seen(self, posterior: Posterior) -> Posterior:
        """Return the distribution of the success probability under the goal's context."""
        return posterior if self.under is None else posterior.under(np.array([self.under]))

    def known(self, view: View) -> Known:
        """Return the share of the space above the level and, with one feature, the crossing.

        The crossing is the median of the threshold, with its 95 % interval and the probability
        that it lies outside the space.
        """
        above = self.seen(view.posterior).prob_above(self.p)
        told: dict[str, Any] = {"share_above": float(above.mean())}
        if self._is_line(view.space) and self.has_threshold:
            found = self.crossing(view.field, view.seed)
            told |= {
                "threshold": found.median(),
                "interval": found.interval(LEVEL),
                "not_reached": found.not_reached,
            }
        wrong = float(np.minimum(above, 1.0 - above).mean())
        return Known(told, wrong, f"the expected share of the space on the wrong side of {self.p}")

    def proven(self, low: Floats, high: Floats) -> dict[str, Any]:
        """Return the shares of candidates that are certainly above, and below, the level."""
        if self.under is not None:
            low, high = bernstein.image(np.array(self.under), low, high)
        return {
            "surely_above": float(np.mean(low > self.p)),
            "surely_below": float(np.mean(high < self.p)),
        }


@dataclass(frozen=True, kw_only=True)
class Maximize(Goal):
    """Find where the success probability is highest, with few failures on the way.

    Strategies are "thompson", the highest point of a field drawn from the posterior, and "ucb",
    the highest upper end of the model's band with its own `lipschitz`, among the eight candidates
    with the highest posterior mean + 2σ.

    Examples
    --------
    >>> Maximize()
    Maximize(within=0.05)
    """

    strategies: ClassVar[tuple[str, ...]] = ("thompson", "ucb", *PLAIN)
    sign: ClassVar[float] = 1.0

    def known(self, view: View) -> Known:
        """Return the best point, its mean and interval, and the expected shortfall."""
        best = int(np.argmax(self.sign * view.posterior.mean()))
        low, high = view.posterior[best].interval(LEVEL)
        told = {
            "best": view.space.point(view.rows[best]),
            "mean": float(view.posterior.mean()[best]),
            "interval": (float(low[0]), float(high[0])),
        }
        drawn = self.sign * view.draws(DRAWS)
        shortfall = float((drawn.max(axis=1) - drawn[:, best]).mean())
        word = "highest" if self.sign > 0 else "lowest"
        return Known(told, shortfall, f"the expected distance of π at the best from its {word}")

    def proven(self, low: Floats, high: Floats) -> dict[str, Any]:
        """Return the share of candidates that may still be the best."""
        best, least = (high, low) if self.sign > 0 else (-low, -high)
        return {"may_be_best": float(np.mean(best >= least.max()))}


@dataclass(frozen=True, kw_only=True)
class Minimize(Maximize):
    """Find where the success probability is lowest: the mirror image of `Maximize`.

    Examples
    --------
    >>> Minimize()
    Minimize(within=0.05)
    """

    sign: ClassVar[float] = -1.0


@dataclass(frozen=True)
class Compare(Goal):
    """Find the best of some given points.

    The strategy is "thompson" with two leaders: half of the time the best point of a drawn field,
    otherwise the best point of another draw that prefers a different one.

    Parameters
    ----------
    points : list of mappings
        Two or more, each with a value of every feature.

    Examples
    --------
    >>> goal = Compare([{"dose": 1.0}, {"dose": 2.0}])
    >>> goal.strategies
    ('thompson', 'ucb', 'random', 'sobol')
    """

    points: Any
    strategies: ClassVar[tuple[str, ...]] = ("thompson", "ucb", *PLAIN)
    sign: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        given = checks.items("points", self.points, "a list of mappings is needed")
        points = tuple(dict(p) if isinstance(p, Mapping) else p for p in given)
        if len(points) < 2:
            raise ValueError(f"points: found {len(points)}; at least two are needed")
        object.__setattr__(self, "points", points)

    def only(self, space: Space) -> Floats:
        """Return the points, which must be different and within the space."""
        rows = np.array([space.row(f"points[{i}]", point) for i, point in enumerate(self.points)])
        if len(distinct(rows)[0]) < len(rows):
            raise ValueError("points: found one of them twice; they must be different")
        return rows

    def known(self, view: View) -> Known:
        """Return the probability of each point to be the best."""
        won = (
            np.bincount(np.argmax(view.draws(COMPARED), axis=1), minlength=len(view.rows))
            / COMPARED
        )
        told = {"best": view.space.point(view.rows[int(np.argmax(won))]), "prob_best": won.tolist()}
        return Known(told, float(1.0 - won.max()), "the probability that another point is better")

    proven = Maximize.proven

    def ratio(self, unsure: float, d: int) -> float:  # noqa: ARG002
        """Return the trials needed divided by those told; z-scores of differences grow as √t."""
        from scipy.special import ndtri

        now = float(ndtri(1.0 - unsure))
        return float((ndtri(1.0 - self.within) / now) ** 2) if now > 0.0 else np.inf


NAMES: dict[str, type[Goal]] = {
    goal.__name__: goal for goal in (Everywhere, LevelSet, Maximize, Minimize, Compare)
}


def stored(goal: Goal) -> dict[str, Any]:
    """Return a goal as JSON values.

    Examples
    --------
    >>> stored(LevelSet(0.75))
    {'name': 'LevelSet', 'options': {'anchored': False, 'p': 0.75, 'under': None, 'within': 0.05}}
    """
    options = {each.name: _plain(getattr(goal, each.name)) for each in fields(goal)}
    return {"name": type(goal).__name__, "options": dict(sorted(options.items()))}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return value if value is None or isinstance(value, str | bool) else float(value)


def restored(values: Any) -> Goal:
    """Return the goal with these JSON values.

    Examples
    --------
    >>> restored(stored(Everywhere()))
    Everywhere(within=0.05)
    """
    told = fields_of("goal", values, ("name", "options"))
    kind = NAMES[one_of("goal", told["name"], tuple(NAMES))]
    names = tuple(each.name for each in fields(kind))
    usual = {each.name: each.default for each in fields(kind) if each.default is not MISSING}
    return kind(**fields_of("goal", told["options"], names, usual))
