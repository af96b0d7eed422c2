"""Estimating how smooth a field is: hyper-parameters by evidence, and links weighed by it.

θ = (log σ, log ℓ_1, …, log ℓ_d) has the prior log σ ~ N(log s, 2²), s the link's scale, and log ℓ
two-piece normal about log ½ (standard deviation 1 below and 2 above, so that irrelevant features
get a long ℓ; 4 above with four or more features, of which most may be irrelevant). The objective,
Laplace's log evidence plus the log prior, is maximised by damped Newton steps with the gradient and
information of `laplace`, from the best of a few starting length scales. With two or three features,
another optimum is sought wherever the length scale of a feature is long. The second link starts at
the optima of the first; weights are ∝ e^objective |H|^½, H the covariance of θ. With two or three
features one process is quadratic, and with three or more one is additive (`basis`).

With four or more features, θ is estimated from at most 3,000 rows, chosen by a hash of their
coordinates; the final mode uses all rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process import linear, wrapped
from betafield.process.basis import ADDITIVE, FREE, QUADRATIC, Effects, Prior
from betafield.process.blocks import mixed, parameters
from betafield.process.laplace import FINE, ROUGH, Mode, Slopes, mode, sloped
from betafield.process.links import LINKS, Link
from betafield.process.rows import COARSE, Rows

Floats = npt.NDArray[np.float64]

# Priors of log σ (in units of s) and log ℓ: centre, standard deviation below and above. Beyond the
# largest σ, π is 0 or 1 nearly everywhere; rows that contradict each other would push σ past it.
AMPLITUDE, LARGEST = (0.0, 2.0, 2.0), 4.0
LENGTH = (math.log(0.5), 1.0, 2.0)
# The standard deviation of log ℓ above its centre with MANY features or more: each one that means
# nothing has to get there.
MANY, LENGTH_OF_MANY = 4, 4.0
# The same for log τ of level effects (in units of s), and its bounds.
EFFECT, EFFECT_ENDS = (math.log(0.5), 1.0, 1.0), (math.log(0.02), math.log(5.0))
# Bounds of log ℓ, and the starting length scales by number of features.
SHORTEST, LONGEST = math.log(0.03), math.log(30.0)
STARTS = {1: (0.8, 0.4, 0.2, 0.1, 0.05), 2: (0.8, 0.4, 0.2, 0.1), 3: (0.8, 0.4, 0.2)}
# With MANY features or more, long length scales start with a large σ, STEEPER · ℓ · s: along each
# feature f varies by about σ/ℓ in the box, so from σ = s no start would see what many add up to.
STARTS_DENSE, STEEPER = (5.0, 2.0, 1.0, 0.4), 2.0
# The search for a start ends after one that is worse by this much; scoring steps per start.
HOPELESS, GLANCE = 20.0, 3
# With 2 to MOST_PROBED features, another optimum is sought from log ℓ = SHORTER if that of a
# feature is above LONG and this start is less than PROMISING nats behind. The optimum is used if it
# is less than BEHIND nats behind, and is a new one if θ differs by more than SAME.
MOST_PROBED, SHORTER, LONG = 3, math.log(0.4), math.log(0.8)
PROMISING, BEHIND, SAME = 8.0, 5.0, 0.3
# The fewest and the most features with which a form is tried beside a free process, and the log of
# how much less likely it is before the trials: few of them do not show what else there is.
FEATURES = {QUADRATIC: (2, 3), ADDITIVE: (3, math.inf)}
UNLIKELY = 2.0
# Newton steps: their number and length at most, the gain below which to stop, and the loss to
# ignore, because the objective jumps a little when basis functions enter or leave.
STEPS, LONGEST_STEP, WORTH, SLACK = 12, 1.2, 0.02, 1e-3
# Damping: initial value, factor after a gain, minimum, factor and increment after a loss, and the
# value at which to give up.
DAMPING, EASED, LEAST, RAISED, ADDED, MOST_DAMPING = 0.3, 0.3, 1e-2, 6.0, 0.3, 50.0
# With fewer trials of the rarer outcome, only the first link is tried, because the soft identity
# can reach π = 0 and 1, and the prior of log σ is narrowed above, by this factor if there are none.
FEW_EVENTS, LEAST_DEVIATION = 20.0, 0.1
# Rows from which hyper-parameters are estimated if the basis is dense.
LEARNED_FROM = 3_000


class Problem(NamedTuple):
    """Rows, their link and the prior."""

    rows: Rows
    link: Link
    prior: Prior

    @property
    def centre(self) -> Floats:
        """Return the centre of the prior of θ."""
        scale = math.log(self.link.scale)
        return self._each(AMPLITUDE[0] + scale, LENGTH[0], EFFECT[0] + scale)

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """Return the bounds of θ."""
        scale = math.log(self.link.scale)
        low = self._each(-np.inf, SHORTEST, EFFECT_ENDS[0] + scale)
        return low, self._each(LARGEST + scale, LONGEST, EFFECT_ENDS[1] + scale)

    def _each(self, amplitude: float, length: float, effect: float) -> Floats:
        """Return one value per hyper-parameter."""
        number = parameters(self.prior.columns) + (self.prior.effects is not None)
        levels = [effect] * number
        return np.array([amplitude, *[length] * self.rows.d, *levels])

    def precision(self, theta: Floats) -> Floats:
        """Return the prior precision of each hyper-parameter, on its side of the centre."""
        spread = LENGTH_OF_MANY if self.rows.d >= MANY else LENGTH[2]
        below = self._each(AMPLITUDE[1], LENGTH[1], EFFECT[1])
        above = self._each(AMPLITUDE[2], spread, EFFECT[2])
        # If nearly all outcomes are the same, they bound f away from 0 but do not say how much it
        # varies: by evidence alone, σ would grow until π is certainly 0.
        above[0] *= min(1.0, max(self.rows.events / FEW_EVENTS, LEAST_DEVIATION))
        return np.where(theta > self.centre, above, below) ** -2.0

    def log_prior(self, theta: Floats) -> float:
        """Return the log prior density of θ, of unknown rates and of the form of the field."""
        away = self.precision(theta) * (theta - self.centre) ** 2
        given = 0.0 if self.prior.form == FREE else -UNLIKELY
        return self.rows.share + given - 0.5 * float(np.sum(away))


class Ascent(NamedTuple):
    """The state of the maximisation: the mode, its derivatives and the objective."""

    mode: Mode
    slopes: Slopes
    objective: float


@dataclass(frozen=True)
class Fit:
    """A fitted process under one link.

    Parameters
    ----------
    problem : Problem
        Rows, link and prior.
    mode : Mode
        The mode at the best hyper-parameters.
    slopes : Slopes
        Its derivatives with respect to them.
    covariance : array of shape (1 + d, 1 + d)
        H, the covariance of the hyper-parameters.
    log_width : float
        log |H|^½, of how wide the optimum is.
    objective : float
        Log evidence plus log prior.
    """

    problem: Problem
    mode: Mode
    slopes: Slopes
    covariance: Floats
    log_width: float
    objective: float

    @property
    def theta(self) -> Floats:
        """Return (log σ, log ℓ)."""
        return self.mode.theta

    @property
    def lengths(self) -> Floats:
        """Return the length scales, in units of the box."""
        return self.mode.lengths


def fit(
    rows: Rows,
    link: Link,
    start: Floats | None = None,
    smoothness: float | None = None,
    effects: Effects | None = None,
    steps: int = STEPS,
    form: str = FREE,
) -> Fit:
    """Return a process under one link, with the hyper-parameters that maximise the objective.

    If trials are grouped, groups have effects of their own.
    """
    effects = groups(rows) if rows.is_grouped else effects
    trials = float(rows.n.sum())
    prior = Prior(link.scale, trials, smoothness, effects, rows.columns, rows.kinds, form)
    problem = Problem(rows, link, prior)
    few = problem._replace(rows=sampled(rows))
    near = None
    if start is None:
        best = _glanced(few)
        start, near = best.theta, best.f
    theta = climb(few, start, near, steps).mode.theta
    return settled(problem, theta)


def groups(rows: Rows) -> Effects:
    """Return the groups of trials as levels of a column after the features."""
    return Effects(rows.d, np.unique(rows.x[:, rows.d]), is_averaged=True)


def settled(problem: Problem, theta: Floats, gain: float = FINE) -> Fit:
    """Return the fit at these hyper-parameters; scoring stops when a step gains less."""
    last = _ascent(problem, theta, None, gain)
    information = last.slopes.information + np.diag(problem.precision(theta))
    factor = linear.factor(information)
    log_width = -float(np.log(np.diag(factor)).sum())
    return Fit(problem, last.mode, last.slopes, linear.inverse(factor), log_width, last.objective)


def fit_links(
    rows: Rows, links: tuple[Link, ...] = LINKS, first: Fit | None = None
) -> tuple[Fit, ...]:
    """Return the processes under every link, one per optimum of the hyper-parameters.

    `first` is a fit under the first link, if known. Other links start at the optima of the first
    that are not far behind; rare events get the first link only.
    """
    first = fit(rows, links[0]) if first is None else first
    fits = _optima(first) + _of_forms(first)
    least = max(each.objective for each in fits) - PROMISING
    near = [each for each in fits if each.objective > least]
    few = links[1:] if rows.events >= FEW_EVENTS else ()
    return _distinct(fits + [_under(link, each) for link in few for each in near])


def _under(link: Link, first: Fit) -> Fit:
    """Return a fit like the first under another link."""
    rows, _, prior = first.problem
    return fit(rows, link, _moved(first, link), form=prior.form)


def _of_forms(free: Fit) -> list[Fit]:
    """Return fits of other forms beside a free one that are not far behind."""
    rows, link, _ = free.problem
    if rows.kinds or rows.columns:
        return []
    found = [fit(rows, link, form=form) for form in forms(rows.d)]
    return [each for each in found if each.objective > free.objective - PROMISING]


def forms(d: int) -> list[str]:
    """Return the forms of d features that are tried beside a free one."""
    return [form for form, (least, most) in FEATURES.items() if least <= d <= most]


def _optima(first: Fit) -> list[Fit]:
    """Return a fit and those at other optima, where a long length scale is short.

    A strong feature decides which start is the best. From there, a weaker one that rises and falls
    may look as if it did not matter: its length scale has an optimum at a long and one at a short
    value, and few trials do not tell which of them is right.
    """
    fits = [first]
    for a in range(first.problem.rows.d):
        best = max(fits, key=lambda fit: fit.objective)
        if _may_be_shorter(best, a):
            fits += _shorter(best, a)
    return fits


def _may_be_shorter(fit: Fit, a: int) -> bool:
    """Return whether a feature has a long length scale beside other features."""
    d, kinds = fit.problem.rows.d, fit.problem.prior.kinds
    is_free = not kinds or kinds[a] != wrapped.LONGITUDE
    return 1 < d <= MOST_PROBED and is_free and bool(fit.theta[1 + a] > LONG)


def _shorter(fit: Fit, a: int) -> list[Fit]:
    """Return the fit at the optimum with a shorter length scale of a feature, if there is one."""
    problem, theta = fit.problem, fit.theta.copy()
    theta[1 + a] = SHORTER
    seen = mode(theta, *problem, None, ROUGH, GLANCE)
    if seen.evidence + problem.log_prior(theta) < fit.objective - PROMISING:
        return []
    other = climb(problem, theta, seen.f)
    is_near = other.objective > fit.objective - BEHIND
    return [settled(problem, other.mode.theta)] if is_near else []


def _distinct(fits: list[Fit]) -> tuple[Fit, ...]:
    """Return fits without those at an optimum that an earlier one has reached."""
    kept: list[Fit] = []
    for one in fits:
        same = (each for each in kept if _are_alike(each, one))
        if all(np.abs(each.theta - one.theta).max() > SAME for each in same):
            kept.append(one)
    return tuple(kept)


def _are_alike(one: Fit, other: Fit) -> bool:
    """Return whether fits differ in their hyper-parameters at most."""
    (_, link, prior), (_, its, own) = one.problem, other.problem
    return link is its and prior.form == own.form


def weights(fits: tuple[Fit, ...]) -> Floats:
    """Return the weight of each fit, ∝ e^objective |H|^½: the mass around its optimum."""
    masses = np.array([f.objective + f.log_width for f in fits])
    w = np.exp(masses - masses.max())
    return np.asarray(w / w.sum())


def climb(
    problem: Problem, start: Floats, near: Floats | None = None, steps: int = STEPS
) -> Ascent:
    """Return the optimum that damped Newton steps reach from the start."""
    at, damping = _ascent(problem, start, near, ROUGH), DAMPING
    for _ in range(steps):
        theta = _proposed(problem, at, damping)
        new = _ascent(problem, theta, at.mode.f, ROUGH)
        gain = new.objective - at.objective
        if gain > -SLACK:
            at, damping = new, max(EASED * damping, LEAST)
            if gain < WORTH:
                break
        else:
            damping = RAISED * damping + ADDED
            if damping > MOST_DAMPING:
                break
    return at


def sampled(rows: Rows) -> Rows:
    """Return the rows to estimate hyper-parameters from: all, or those with the lowest hashes."""
    if rows.d in COARSE.most or len(rows.x) <= LEARNED_FROM or rows.is_grouped:
        return rows
    lowest = np.argsort(hashes(rows), kind="stable")[:LEARNED_FROM]
    return rows.taken(np.sort(lowest))


def hashes(rows: Rows) -> npt.NDArray[np.uint64]:
    """Return a pseudo-random number per row, a function of its coordinates and context only."""
    key = np.zeros(len(rows.x), dtype=np.uint64)
    for column in (*rows.x.T, *rows.context.T):
        key = mixed(key ^ np.ascontiguousarray(column).view(np.uint64))
    return key


def _ascent(problem: Problem, theta: Floats, near: Floats | None, gain: float) -> Ascent:
    at, slopes = sloped(theta, *problem, near, gain)
    return Ascent(at, slopes, at.evidence + problem.log_prior(theta))


def _glanced(problem: Problem) -> Mode:
    """Return the best of the starts, judged by a few scoring steps."""
    best, best_objective, near = None, -np.inf, None
    d, kinds = problem.rows.d, problem.prior.kinds
    free = [kind != wrapped.LONGITUDE for kind in kinds or (wrapped.LINE,) * d]
    for length in STARTS.get(d, STARTS_DENSE):
        theta = problem.centre
        theta[1 : 1 + d] = np.where(free, math.log(length), theta[1 : 1 + d])
        if d >= MANY:
            theta[0] += max(0.0, math.log(STEEPER * length))
        seen = mode(theta, *problem, near, ROUGH, GLANCE)
        near, objective = seen.f, seen.evidence + problem.log_prior(theta)
        if best is None or objective > best_objective:
            best, best_objective = seen, objective
        elif objective < best_objective - HOPELESS:
            break
    assert best is not None
    return best


def _proposed(problem: Problem, at: Ascent, damping: float) -> Floats:
    """Return the θ of a damped Newton step."""
    theta, precision = at.mode.theta, problem.precision(at.mode.theta)
    H = at.slopes.information + np.diag(precision)
    gradient = at.slopes.gradient - precision * (theta - problem.centre)
    damped = H + damping * np.diag(np.diag(H))
    step = linear.solve(linear.factor(damped), gradient)
    return np.clip(theta + np.clip(step, -LONGEST_STEP, LONGEST_STEP), *problem.ends)


def _moved(fit: Fit, link: Link) -> Floats:
    """Return the hyper-parameters of a fit in the units of another link."""
    theta = fit.theta.copy()
    shift = math.log(link.scale / fit.problem.link.scale)
    theta[0] += shift
    theta[1 + len(fit.lengths) :] += shift
    return theta
