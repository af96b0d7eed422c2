"""Guarantees before and after the trials: rates, error bounds, numbers of trials needed.

They hold for π with |π(x) − π(y)| ≤ L ‖x − y‖ on the unit cube, which is the domain in scaled
units. The bounds are those of the Smooth Beta Process (windows of one width) for trials at uniform
random points. For intervals that hold wherever the points are, use the estimator's `band`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from betafield import checks, priors
from betafield.bandwidth import theory
from betafield.metrics import ORDERS

if TYPE_CHECKING:
    from betafield.estimators import SmoothBetaClassifier

Floats = npt.NDArray[np.float64]

# How many standard deviations of the number of trials in a window are covered, at how many values.
SPREAD, NUMBERS = 12.0, 1 << 14
SHAPES = f"(alpha, beta) is needed, both positive numbers, from {priors.LEAST:g} to {priors.MOST:g}"
# A bias of 1 says nothing, and the square of more than this would overflow.
MOST_BIAS = 1e100
# E[X | X ≥ a] − max(E X, a) is at most this many standard deviations, for log-concave X.
CUT = math.sqrt(math.e - 1.0)


class Rate(NamedTuple):
    """Exponents b of errors that fall as t^b.

    Parameters
    ----------
    l2 : float
        Exponent of E(π̃ − π)², the mean squared error of the posterior.
    l1 : float
        Exponent of E|π̃ − π|.
    risk : float
        Exponent of the excess risk of the classifier 1[E π̃ ≥ ½] over the best classifier.
    """

    l2: float
    l1: float
    risk: float


def rate(d: int) -> Rate:
    """Return how fast errors fall with the number of trials, in d dimensions.

    No method can be faster for all Lipschitz functions. Contexts do not change the exponents.

    Examples
    --------
    >>> rate(2)
    Rate(l2=-0.5, l1=-0.25, risk=-0.25)
    """
    checks.whole("d", d)
    return Rate(-2.0 / (d + 2), -1.0 / (d + 2), -1.0 / (d + 2))


def error_bound(
    t: int,
    d: int,
    lipschitz: float,
    bandwidth: float | None = None,
    prior: tuple[float, float] = (1.0, 1.0),
    *,
    metric: str = "euclidean",
    background: float = 0.0,
) -> float:
    """Return a bound of E(π̃(x) − π(x))² at every x, after t trials at uniform random points.

    With n trials within Δ of x and a prior Beta(α, β), m = α + β,

        E[(π̃ − π)² | n] ≤ 1/(4(n+m+1)) + n/(4(n+m)²) + ((n L Δ + max(α, β))/(n+m))²,

    the sum of the posterior variance, the variance of the posterior mean, and the squared bias.
    It is averaged over n ~ Bin(t, v), where v is the share of the domain in a window at a corner.

    Parameters
    ----------
    t, d : int
        Numbers of trials and of dimensions.
    lipschitz : float
        L, in scaled units.
    bandwidth : float, default=None
        Δ, in scaled units. None: by theory, L^(−2/(d+2)) ((1−B) t)^(−1/(d+2)).
    prior : (alpha, beta), default=(1.0, 1.0)
        Shapes of the prior.
    metric : {"euclidean", "chebyshev", "manhattan"}, default="euclidean"
        The distance that defines windows.
    background : float, default=0.0
        The largest B, if trials succeed with probability B + (1 − B) π. The posterior is then that
        of the mean context of the window, `sharing="mean"`, with the prior (1, 1).

    Examples
    --------
    >>> print(round(error_bound(t=1_000, d=1, lipschitz=1.0), 4))
    0.0165
    """
    t, d = checks.whole("t", t, low=0), checks.whole("d", d)
    checks.one_of("metric", metric, ORDERS)
    lipschitz = checks.positive("lipschitz", lipschitz)
    alpha, beta = _checked_prior(prior)
    background = _checked_background(background, prior)
    if bandwidth is None:
        bandwidth = theory(max((1.0 - background) * t, 1.0), d, lipschitz)
    bandwidth = checks.positive("bandwidth", bandwidth)
    held, chance = _numbers_in_window(t, _corner(bandwidth, d, metric))
    bias, numbers = min(lipschitz * bandwidth, MOST_BIAS), np.append(held, t)
    if background > 0.0:
        given = _bound_under(numbers, bias, background)
    else:
        given = _bound(numbers, bias, alpha, beta)
    # Windows elsewhere hold more trials, so the bound must not rise with their number.
    given = np.maximum.accumulate(given[::-1])[:0:-1]
    return min(float(chance @ given), 1.0)


def _bound(n: Floats, bias: float, alpha: float, beta: float) -> Floats:
    """Return the bound given n trials in the window, where π differs by at most `bias`."""
    m = alpha + beta
    squared_bias = ((n * bias + max(alpha, beta)) / (n + m)) ** 2
    return np.asarray(0.25 / (n + m + 1.0) + 0.25 * n / (n + m) ** 2 + squared_bias)


def _bound_under(n: Floats, bias: float, background: float) -> Floats:
    """Return the bound given n trials that succeed with probability q = B + (1 − B) π.

    The posterior of q is Beta(S+1, n−S+1), truncated below at B. It is log-concave, so truncation
    does not increase its variance, and moves its mean by at most CUT of its standard deviations σ:

        E(q̃ − q)² ≤ σ² + (√(Var q̂ + bias²) + CUT σ)²,    q̂ = (S+1)/(n+2),

    with bias ((1−B) n L Δ + 1)/(n+2), and π̃ − π = (q̃ − q)/(1 − B).
    """
    seen = 1.0 - background
    sampled = n * _largest_variance(background) / (n + 2.0) ** 2
    believed = _largest_variance((n * background + 1.0) / (n + 2.0)) / (n + 3.0)
    squared_bias = ((seen * n * bias + 1.0) / (n + 2.0)) ** 2
    moved = np.sqrt(sampled + squared_bias) + CUT * np.sqrt(believed)
    return np.asarray(np.minimum((believed + moved**2) / seen**2, 1.0))


def _largest_variance(least: float | Floats) -> Any:
    """Return the largest q (1 − q) for q between `least` and 1."""
    q = np.maximum(least, 0.5)
    return q * (1.0 - q)


def _corner(bandwidth: float, d: int, metric: str) -> float:
    """Return a lower bound of the share of the unit cube within `bandwidth` of a corner."""
    reach = min(bandwidth, 1.0)
    if metric == "chebyshev" or d == 1:
        return reach**d
    if bandwidth >= (math.sqrt(d) if metric == "euclidean" else d):
        return 1.0
    if metric == "manhattan":
        return float(np.exp(d * math.log(reach) - special.gammaln(d + 1.0)))
    log_ball = 0.5 * d * math.log(math.pi) - special.gammaln(0.5 * d + 1.0)
    return float(np.exp(log_ball + d * (math.log(reach) - math.log(2.0))))


def _numbers_in_window(t: int, share: float) -> tuple[Floats, Floats]:
    """Return numbers n and the probability that Bin(t, share) is n, or from n to below the next."""
    middle, spread = t * share, SPREAD * (math.sqrt(t * share * (1.0 - share)) + 1.0)
    low, high = max(math.floor(middle - spread), 0), min(math.ceil(middle + spread), t)
    n = np.unique(np.concatenate([[0.0], np.floor(np.linspace(low, high, NUMBERS))]))
    if n[-1] - n[0] + 1 == len(n):
        return n, np.asarray(stats.binom.pmf(n, t, share))
    below = stats.binom.cdf(n[1:] - 1.0, t, share)
    return n, np.diff(below, prepend=0.0, append=1.0)


def trials_needed(
    error: float,
    d: int,
    lipschitz: float,
    prior: tuple[float, float] = (1.0, 1.0),
    *,
    metric: str = "euclidean",
    background: float = 0.0,
) -> int:
    """Return how many trials reduce E(π̃(x) − π(x))² to at most `error` at every x.

    It is the smallest t at which `error_bound` is that low, with the width by theory.

    Examples
    --------
    For a root mean square error of 0.1, in one dimension and in two:

    >>> [trials_needed(0.1**2, d, lipschitz=1.0) for d in (1, 2)]
    [2077, 32131]
    """
    checks.positive("error", error)

    def is_enough(t: int) -> bool:
        found = error_bound(t, d, lipschitz, None, prior, metric=metric, background=background)
        return found <= error

    if is_enough(0):
        return 0
    too_few, enough = 0, 1
    while not is_enough(enough):
        too_few, enough = enough, 2 * enough
        rule = f"it would take more than {checks.MOST:.1e} trials"
        checks.require(enough <= checks.MOST, "error", error, rule)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if is_enough(middle) else (middle, enough)
    return enough


def certificate(
    model: SmoothBetaClassifier,
    X: Any,
    lipschitz: float,
    level: float = 0.95,
    width: float = 0.1,
    *,
    simultaneous: bool = False,
) -> npt.NDArray[Any]:
    """Return what is known at each row of X, and how many more trials would be enough.

    Parameters
    ----------
    model : SmoothBetaClassifier
        A fitted model of two classes.
    X, lipschitz, level, simultaneous
        As for `model.band`.
    width : float, default=0.1
        The width at which a guaranteed interval is narrow enough.

    Returns
    -------
    structured array of shape (m,)
        `trials`: the number in the model's window, by default in a window of the width by theory;
        `mean`: the posterior mean; `low` and `high`: its credible interval; `guaranteed_low` and
        `guaranteed_high`: the guaranteed interval; `more_trials`: with that many more trials
        there, whatever their outcomes, the guaranteed interval has about the given `width` or
        less. `pandas.DataFrame` and `polars.DataFrame` accept the array.

    Examples
    --------
    >>> from betafield import SmoothBetaClassifier
    >>> model = SmoothBetaClassifier(bandwidth=0.1, bounds=[(0, 1)])
    >>> model = model.fit_counts([[0.2], [0.3]], successes=[30, 40], trials=[100, 100])
    >>> known = certificate(model, [[0.2], [0.9]], lipschitz=1.0)
    >>> known["trials"].tolist()
    [200.0, 0.0]
    >>> known["guaranteed_low"][1], known["guaranteed_high"][1]
    (np.float64(0.0), np.float64(1.0))
    >>> bool(known["more_trials"][0] < known["more_trials"][1])
    True
    """
    from betafield import bands
    from betafield.estimators import SmoothBetaClassifier

    checks.instance("model", model, SmoothBetaClassifier, "a SmoothBetaClassifier is needed")
    width = checks.positive("width", width)
    asked = bands.checked(lipschitz, level, simultaneous)
    field, points = model.asked(X)
    posterior = field.posterior(points)
    low, high = posterior.interval(level)
    guaranteed_low, guaranteed_high = field.band(points, *asked)
    columns = {
        "trials": field.n_near(points),
        "mean": posterior.mean(),
        "low": low,
        "high": high,
        "guaranteed_low": guaranteed_low,
        "guaranteed_high": guaranteed_high,
        "more_trials": field.more_trials(points, width, *asked),
    }
    table = np.empty(len(points), dtype=[(name, np.float64) for name in columns])
    for name, values in columns.items():
        table[name] = values
    return table


# Checks ------------------------------------------------------------------------------------


def _checked_prior(prior: Any) -> tuple[float, float]:
    """Return α and β; functions of x are refused, because the bound holds for every x."""
    good = isinstance(prior, (tuple, list)) and len(prior) == 2
    checks.require(good, "prior", prior, SHAPES)
    alpha, beta = (
        checks.number("prior", a, SHAPES, low=priors.LEAST, high=priors.MOST) for a in prior
    )
    return alpha, beta


def _checked_background(background: Any, prior: tuple[float, float]) -> float:
    rule = "a number from 0 to below 1 is needed"
    share = checks.number("background", background, rule, low=0.0, below=1.0)
    if share:
        rule = "under a background the bound is for (1.0, 1.0)"
        checks.require(tuple(prior) == (1.0, 1.0), "prior", prior, rule)
    return share
