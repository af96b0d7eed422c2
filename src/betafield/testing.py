"""Coverage: how often intervals contain the truth, on functions that you supply.

Data sets are simulated from a known probability, and a model learns from each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc
from sklearn.base import clone

from betafield import checks, contexts, distorted
from betafield.estimators import SmoothBetaClassifier

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# Largest numbers of features, trials, data sets and points: more than any machine can hold.
MOST = 10**8
KINDS = ("credible", "pointwise", "simultaneous")


class Held(NamedTuple):
    """How often intervals of one kind contained the probability.

    Parameters
    ----------
    share : float
        Share of the intervals that contain the truth; for simultaneous intervals, share of the data
        sets in which all of them do.
    standard_error : float
        Standard error of that share, from the differences between data sets.
    width : float
        Mean width of the intervals.
    worst : float
        The lowest share at any point.
    """

    share: float
    standard_error: float
    width: float
    worst: float


class Coverage(NamedTuple):
    """What `coverage` measured; None for bands if no Lipschitz constant was given."""

    credible: Held
    pointwise: Held | None
    simultaneous: Held | None

    def __str__(self) -> str:
        lines = [f"{'intervals':14}{'share':>8}{'± s.e.':>9}{'worst':>8}{'width':>8}"]
        for kind, held in zip(KINDS, self, strict=True):
            if held is not None:
                share = f"{held.share:8.4f}{held.standard_error:9.4f}"
                lines.append(f"{kind:14}{share}{held.worst:8.4f}{held.width:8.4f}")
        return "\n".join(lines)


def coverage(
    function: Callable[[Floats], npt.ArrayLike],
    d: int = 1,
    t: int = 1_000,
    runs: int = 100,
    *,
    lipschitz: float | None = None,
    level: float = 0.95,
    model: SmoothBetaClassifier | None = None,
    context: Any = None,
    points: int | npt.ArrayLike = 100,
    random_state: int | np.random.Generator | None = None,
) -> Coverage:
    """Measure how often intervals contain a known probability.

    Parameters
    ----------
    function : callable
        X → π(x), points (n, d) of the unit cube to probabilities (n,).
    d, t, runs : int
        Number of features; of trials per data set, at uniform random points; of data sets.
    lipschitz : float, default=None
        L of the function. If it is given, pointwise and simultaneous bands are measured too.
    level : float, default=0.95
        The level of the intervals.
    model : SmoothBetaClassifier, default=None
        The model to use; it is not changed. None: the default model over the unit cube.
    context : array of shape (p + 1,) or (t, p + 1), or callable, default=None
        How trials are distorted, see `betafield.contexts`. A callable receives a random generator
        and t, and returns the contexts of one data set.
    points : int or array of shape (m, d), default=100
        The points at which intervals are checked, or their number; they are then spread evenly.
    random_state : int, Generator or None
        Seed.

    Examples
    --------
    >>> found = coverage(lambda X: 1 - X[:, 0], lipschitz=1.0, t=200, runs=20, random_state=0)
    >>> found.pointwise.share >= 0.95, found.simultaneous.share >= 0.95
    (True, True)
    >>> print(found)
    intervals        share   ± s.e.   worst   width
    credible     ...
    pointwise    ...
    simultaneous ...
    """
    for name, count in {"d": d, "t": t, "runs": runs}.items():
        checks.whole(name, count, high=MOST)
    checks.share("level", level)
    if lipschitz is not None:
        checks.positive("lipschitz", lipschitz)
    if model is not None:
        checks.instance("model", model, SmoothBetaClassifier, "a SmoothBetaClassifier is needed")
    where = _points(points, d)
    truth = _probabilities(function, where)
    model = SmoothBetaClassifier(bounds=[(0.0, 1.0)] * d) if model is None else model
    rng = checks.generator("random_state", random_state)
    kinds = KINDS if lipschitz is not None else KINDS[:1]
    hits = np.empty((len(kinds), runs, len(where)), dtype=np.bool_)
    widths = np.empty((len(kinds), runs))
    for run in range(runs):
        learned = _learned(model, function, rng, d, t, context)
        for kind, (low, high) in enumerate(_intervals(learned, where, level, lipschitz)):
            hits[kind, run] = (low <= truth) & (truth <= high)
            widths[kind, run] = np.mean(high - low)
    held = [_held(*each) for each in zip(kinds, hits, widths, strict=True)]
    return Coverage(*held, *[None] * (len(KINDS) - len(held)))


def _points(points: Any, d: int) -> Floats:
    rule = f"a number or points (m, {d}) is needed"
    if checks.is_number(points):
        n = checks.whole("points", points, high=MOST, rule=rule)
        return np.asarray(qmc.Halton(d, scramble=False).random(n + 1)[1:])
    array = checks.finite("points", points, shape=(None, d), needed=rule)
    checks.require(len(array), "points", array, rule)
    return array


def _probabilities(function: Callable[[Floats], npt.ArrayLike], X: Floats) -> Floats:
    checks.require(callable(function), "function", function, "a function of points is needed")
    values = checks.array("function", function(X))
    checks.shaped("function", values, (len(X),), f"one value per point is needed, ({len(X)},)")
    good = (values >= 0.0) & (values <= 1.0)
    if not good.all():
        row = int(np.argmin(good))
        raise ValueError(
            f"function: found {values[row]:g} at {X[row].tolist()}; probabilities are from 0 to 1"
        )
    return values


def _learned(
    model: SmoothBetaClassifier,
    function: Callable[[Floats], npt.ArrayLike],
    rng: np.random.Generator,
    d: int,
    t: int,
    context: Any,
) -> SmoothBetaClassifier:
    """Return a model that has learned from one simulated data set."""
    X = rng.random((t, d))
    under = distorted.context(context(rng, t) if callable(context) else context, t)
    chance = _probabilities(function, X)
    if under is not None:
        chance = contexts.probability(under, chance)
    success = rng.random(t) < chance
    learner: SmoothBetaClassifier = clone(model)
    return learner.partial_fit(X, success, classes=[False, True], context=under)


def _intervals(
    model: SmoothBetaClassifier, where: Floats, level: float, lipschitz: float | None
) -> Iterator[tuple[Floats, Floats]]:
    yield model.posterior(where).interval(level)
    if lipschitz is not None:
        for simultaneous in (False, True):
            yield model.band(where, lipschitz, level, simultaneous)


def _held(kind: str, hits: Bools, widths: Floats) -> Held:
    """Return the summary of hits (runs, m) and mean widths (runs,)."""
    each = np.asarray(hits.all(axis=1) if kind == "simultaneous" else hits.mean(axis=1))
    error = np.std(each, ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
    worst = hits.mean(axis=0).min()
    return Held(float(each.mean()), float(error), float(widths.mean()), float(worst))
