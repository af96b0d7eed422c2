"""Posteriors of averages of π over points, and of their differences: areas, populations, standards.

An average Σ_i ω_i π(x_i), Σ ω = 1, is nearly linear in the field, so it is normal on the log-odds
scale, per component of the posterior, and these components are mixed by their weights. For a
process

    mean Σ ω_i E π(x_i),   variance a′(S + T J′HJ)a,   a = Φ̃′(ω ∘ E g′(f)),

where S + T J′HJ is the covariance of the coefficients with unknown hyper-parameters (`law`); f is
then scaled about its mean to the variance that it has at each point (`companion`). In
windows of residuals, the process enters with the factor (1 − β), and what the windows leave
uncertain, √((1 − β) τ) e(x), is correlated over their width; the same holds for unseen levels and
beyond the domain. With windows alone there is only this: points are correlated as far as windows
reach.

Under contexts, π may be far from linear in what the trials determine (Laplace's approximation is
symmetric even if π saturates), so mean and covariance are those of draws weighted by the likelihood
(`betafield.process.draws`). The same holds for monotone fields.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from betafield import checks
from betafield._rows import distinct
from betafield.methods import AnyField
from betafield.monotone import Monotone
from betafield.posteriors import LatentNormal, Sampled
from betafield.posteriors.base import blocks
from betafield.posteriors.contrasts import Difference, Pair
from betafield.posteriors.latent import moments
from betafield.process import averages, law, linear
from betafield.process.companion import raising
from betafield.process.design import Design, design, pooled
from betafield.process.draws import Fields
from betafield.process.found import Window
from betafield.process.law import Surface
from betafield.process.laws import Laws
from betafield.process.links import LOGIT
from betafield.process.model import Beliefs, Smooth
from betafield.process.pooled import Spread
from betafield.process.residuals import log_odds
from betafield.process.wrapped import Kinds, laid
from betafield.smooth import SmoothField

Floats = npt.NDArray[np.float64]

# Components with less weight are left out.
NEGLIGIBLE = 2e-3
# Up to this many points, correlations are computed by pair; beyond, by this many waves.
PAIRS, WAVES = 256, 64
# Steps of the search for a standard deviation, its tolerance, and its bounds.
STEPS, NEAR, LEAST, WIDEST = 40, 1e-4, 1e-12, 20.0
# Averages are kept this far from 0 and 1.
INNER = 1e-9
# Number of points per block of drawn fields.
BLOCK = 4_096


class Averages(NamedTuple):
    """Joint posterior of several averages, as a mixture.

    Parameters
    ----------
    weights : array of shape (c,)
    means : array of shape (c, a)
        Means of the averages, per component.
    covariances : array of shape (c, a, a)
    is_linear : bool
        Whether the covariances come from linearised fields rather than from the averages
        themselves.
    """

    weights: Floats
    means: Floats
    covariances: Floats
    is_linear: bool = True


def average(
    field: AnyField, points: Floats, weights: Any = None, by: Any = None
) -> LatentNormal | Sampled:
    """Return the posterior of the average over points, or of one average per area."""
    counted, names = shares("weights", weights, len(points)), None if by is None else named(by)
    areas = [
        (points[rows], normalised("weights", counted[rows], names and names[number])[None])
        for number, rows in enumerate(groups(by, len(points)))
    ]
    drawn = _drawn(field)
    if drawn is not None:
        return Sampled(np.clip(np.hstack([_averaged(drawn, *each) for each in areas]), 0.0, 1.0))
    return LatentNormal(joined([laws(averages_of(field, *each)) for each in areas]))


def averages_of(field: AnyField, points: Floats, shares: Floats) -> Averages:
    """Return the posterior of averages over points with shares (a, m), which add up to 1."""
    drawn = _drawn(field)
    if drawn is not None:
        return _of_draws(drawn, points, shares)
    if isinstance(field, SmoothField):
        return _of_smooth(field.smooth[0], points, shares, field.options.n_jobs)
    post = field.posterior(points)
    x = field.units.scaled(points) / field.width
    spread = correlated(shares * post.std(), np.asarray(x))
    mean = (shares * post.mean()).sum(axis=1)
    return Averages(np.ones(1), mean[None], spread[None])


def _drawn(field: AnyField) -> Monotone | Fields | None:
    """Return the draws for averages; None if a linear approximation is good enough."""
    if not isinstance(field, SmoothField):
        return None
    if isinstance(field.answering, Monotone):
        return field.answering
    is_weighed = field.totals.distorted and any(m.is_weighed for m in field.smooth[0].members)
    return field.drawn if is_weighed else None


def _of_draws(drawn: Monotone | Fields, points: Floats, shares: Floats) -> Averages:
    """Return mean and covariance of averages over drawn fields."""
    each = _averaged(drawn, points, shares)
    mean = each.mean(axis=0)
    spread = _product((each - mean).T, each - mean) / drawn.size
    return Averages(np.ones(1), mean[None], spread[None], is_linear=False)


def _averaged(drawn: Monotone | Fields, points: Floats, shares: Floats) -> Floats:
    """Return the averages of every drawn field, shape (size, a)."""
    each = np.zeros((drawn.size, len(shares)))
    for some in blocks(len(points), BLOCK):
        each += _product(drawn.at(points[some]), shares[:, some].T)
    return each


def laws(found: Averages) -> Laws:
    """Return the law of every average, normal in log-odds per component."""
    deviations = np.sqrt(np.maximum(np.diagonal(found.covariances, axis1=1, axis2=2), 0.0))
    told = in_log_odds if found.is_linear else with_moments
    centre, deviation = told(found.means.ravel(), deviations.ravel())
    shape, links = found.means.shape, (LOGIT,) * len(found.weights)
    return Laws(links, found.weights, centre.reshape(shape), deviation.reshape(shape))


def in_log_odds(mean: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Return centre c and deviation s of log-odds with this mean of π, and s E g′ = deviation.

    Newton's steps use E g ≈ g(c/κ), κ² = 1 + πs²/8, which gives s E g′ ≈ mean (1 − mean) s/κ.
    """
    mean = np.clip(mean, INNER, 1.0 - INNER)
    r = np.maximum(deviation / (mean * (1.0 - mean)), LEAST)
    s = r / np.sqrt(np.maximum(1.0 - np.pi / 8.0 * r**2, 0.1))
    for _ in range(STEPS):
        square = 1.0 + np.pi / 8.0 * s**2
        centre = averages.centred(LOGIT, mean, s, averages.guessed(LOGIT, mean, s))
        rise = s * averages.mean_and_slope(LOGIT, centre, s)[1] / (mean * (1.0 - mean))
        if np.all(np.abs(rise - r) <= NEAR * r):
            break
        s = np.clip(s * (r / rise) ** square, 0.5 * s, np.minimum(2.0 * s, WIDEST))
    return centre, s


def with_moments(mean: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """Return centre and deviation of log-odds for this mean and deviation of π, by bisection.

    For a given mean, the deviation of π increases with that of its log-odds.
    """
    mean = np.clip(mean, INNER, 1.0 - INNER)
    low, high = np.full_like(mean, np.log(LEAST)), np.full_like(mean, np.log(WIDEST))
    for _ in range(STEPS):
        s = np.exp(0.5 * (low + high))
        centre = averages.centred(LOGIT, mean, s, averages.guessed(LOGIT, mean, s))
        is_wide = moments(LOGIT, centre, s)[1] > deviation**2
        low, high = np.where(is_wide, low, np.log(s)), np.where(is_wide, np.log(s), high)
    return centre, s


def contrast(found: Averages) -> Difference:
    """Return the law of the first of two averages minus the second."""
    one, (w, means, covariances, _) = laws(found), found
    s = np.sqrt(np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 0.0))
    product = s[:, 0] * s[:, 1]
    together = np.divide(covariances[:, 0, 1], product, np.zeros_like(product), where=product > 0)
    d = one.deviations.copy()
    joint = d[:, :, None] * d[:, None, :]
    joint[:, [0, 1], [1, 0]] *= np.clip(together, -1.0, 1.0)[:, None]
    difference = means[:, 0] - means[:, 1]
    mean = float((w * difference).sum())
    own = covariances[:, 0, 0] + covariances[:, 1, 1] - 2.0 * covariances[:, 0, 1]
    var = float((w * (np.maximum(own, 0.0) + (difference - mean) ** 2)).sum())
    return Difference(Pair(w, one.centres, joint), mean, var)


def joined(each: list[Laws]) -> Laws:
    """Return the laws of single averages as the rows of one."""
    most = max(len(one.weights) for one in each)
    weights, centres, deviations = (np.zeros((most, len(each))) for _ in range(3))
    deviations += 1.0
    for row, one in enumerate(each):
        some = slice(len(one.weights))
        weights[some, row] = one.weights
        centres[some, row], deviations[some, row] = one.centres[:, 0], one.deviations[:, 0]
    return Laws((LOGIT,) * most, weights, centres, deviations)


# Arguments ---------------------------------------------------------------------------------


def shares(name: str, weights: Any, count: int) -> Floats:
    """Return one weight per row, validated."""
    if weights is None:
        return np.ones(count)
    rule = "weights must be finite, none below 0"
    array = checks.array(name, weights, rule)
    checks.shaped(name, array, (count,), f"one weight for each of {count} rows is needed")
    checks.require_all((array >= 0.0) & (array < np.inf), name, array, rule)
    return array


def normalised(name: str, weights: Floats, area: Any = None) -> Floats:
    """Return weights that add up to 1; raise if all are 0."""
    most = float(weights.max(initial=0.0))
    if most == 0.0:
        where = "" if area is None else f" for {area!r}"
        raise ValueError(f"{name}: found 0 for all rows{where}; one weight must be above 0")
    weights = weights / most
    return np.asarray(weights / weights.sum())


def groups(by: Any, count: int) -> list[npt.NDArray[np.intp]]:
    """Return the rows of every area, in the order of their names."""
    if by is None:
        return [np.arange(count)]
    labels = _labels(by)
    checks.shaped("by", labels, (count,), f"one area for each of {count} rows is needed")
    _, number = np.unique(labels, return_inverse=True)
    order = np.argsort(number, kind="stable")
    return np.split(order, np.cumsum(np.bincount(number))[:-1])


def named(by: Any) -> list[Any]:
    """Return the names of areas, in their order."""
    found: list[Any] = np.unique(_labels(by)).tolist()
    return found


def _labels(by: Any) -> npt.NDArray[Any]:
    """Return a column of labels; raise for missing ones."""
    labels = checks.cells("by", by)
    missing = [
        row
        for row, each in enumerate(labels.ravel().tolist())
        if each is None or (isinstance(each, float) and math.isnan(each))
    ]
    if missing:
        raise ValueError(
            f"by row {missing[0]}: found {labels.ravel()[missing[0]]!r}; every row needs an area"
        )
    try:
        return labels.astype(str) if labels.dtype == object else labels
    except ValueError as error:  # such as a list, or a number of thousands of digits
        raise ValueError(
            "by: found a value that cannot be a label; text or numbers are needed"
        ) from error


# Processes and their windows ---------------------------------------------------------------


class Part(NamedTuple):
    """A process at points, in the units of its box.

    Parameters
    ----------
    surface : Surface
    weight : float
        Its weight among the processes.
    x : array of shape (m, d)
    mean, slope : array of shape (m,)
        Mean of π, and its derivative with respect to f.
    off : array of shape (m,)
        Difference of its log-odds from those of all processes together.
    scale : array of shape (m,)
        Derivative of f with respect to log-odds.
    phi : Design
        Its basis functions at the points.
    rho : array of shape (m,)
        How near the points are to the domain.
    raised : array of shape (m,) or float
        How much its rougher companion raises the deviation of f.
    """

    surface: Surface
    weight: float
    x: Floats
    mean: Floats
    slope: Floats
    off: Floats
    scale: Floats
    phi: Design
    rho: Floats
    raised: Floats | float


class Asked(NamedTuple):
    """The posterior at points, with mean and slope of π in every window."""

    smooth: Smooth
    beliefs: Beliefs
    windows: list[tuple[Floats, Floats]]


def _of_smooth(smooth: Smooth, points: Floats, shares: Floats, n_jobs: int | None) -> Averages:
    beliefs = smooth.beliefs(points, n_jobs)
    asked, parts = Asked(smooth, beliefs, _windows(beliefs)), _parts(smooth, beliefs)
    weights, means, covariances = [], [], []
    for share, which in _segments(smooth, beliefs):
        noise = _noise_of_windows(asked, shares, which)
        for part in parts:
            mean, rise = _answered(asked, part, which)
            weights.append(share * part.weight)
            means.append((shares * mean).sum(axis=1))
            own = _of_process(part, shares * rise)
            covariances.append(own + noise + _of_levels(asked, part, shares, mean))
    w = np.array(weights)
    return Averages(w / w.sum(), np.array(means), np.array(covariances))


def _parts(smooth: Smooth, beliefs: Beliefs) -> list[Part]:
    """Return the processes with enough weight, at the points."""
    kept, w = law.counted(smooth.weights)
    f_mean, found = log_odds(beliefs.mean), []
    for k, (i, share) in enumerate(zip(kept, w, strict=True)):
        surface, x = smooth.surfaces[i], beliefs.xs[i]
        link, c = surface.link, beliefs.process.centres[k]
        mean, slope = averages.mean_and_slope(link, c, beliefs.process.deviations[k])
        p, rise = link.rise(c)
        scale = np.maximum(p * (1.0 - p), 1e-4) / np.maximum(rise, 1e-300)
        off = log_odds(mean) - f_mean
        phi, rho = design(surface.basis, x), law.nearness(x, surface.lengths)
        raised = raising(smooth.companions.get(int(i)), surface.wide, phi, x)
        found.append(Part(surface, float(share), x, mean, slope, off, scale, phi, rho, raised))
    return found


def _segments(smooth: Smooth, beliefs: Beliefs) -> Iterator[tuple[float, npt.NDArray[np.int64]]]:
    """Yield shares of draws, and their component at every point; 0 is the process.

    A draw has the component at which the cumulative weight of a point reaches its uniform number.
    """
    if not smooth.windows:
        yield 1.0, np.zeros(len(beliefs.mean), dtype=np.int64)
        return
    table = np.cumsum(smooth.window_weights, axis=1)
    asked, question = np.unique(beliefs.question, return_inverse=True)
    ends = np.unique(np.clip(table[asked], 0.0, 1.0))
    low = 0.0
    for high in np.append(ends[ends < 1.0], 1.0):
        if high - low > NEGLIGIBLE:
            middle = 0.5 * (low + high)
            which = np.minimum((table[asked] <= middle).sum(axis=1), table.shape[1] - 1)
            yield high - low, which[question]
        low = high


def _answered(asked: Asked, part: Part, which: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the mean of π at points, and its derivative with respect to the f of a process."""
    mean, rise = part.mean.copy(), part.slope.copy()
    for j, window in enumerate(asked.smooth.windows):
        rows = np.flatnonzero(which == j + 1)
        if rows.size:
            p, slope = (each[rows] for each in asked.windows[j])
            is_shared = asked.smooth.is_shared(window, asked.beliefs.question[rows])
            kept = np.where(is_shared, asked.beliefs.kept(j, window)[rows], 1.0)
            mean[rows] = p + slope * kept * part.off[rows]
            rise[rows] = slope * kept / part.scale[rows]
    return mean, rise


def _windows(beliefs: Beliefs) -> list[tuple[Floats, Floats]]:
    """Return the mean of π in every window, and its derivative with respect to log-odds."""
    first = len(beliefs.process.centres)
    each = zip(beliefs.laws.centres[first:], beliefs.laws.deviations[first:], strict=True)
    return [averages.mean_and_slope(LOGIT, centre, deviation) for centre, deviation in each]


def _of_process(part: Part, moves: Floats) -> Floats:
    """Return the covariance (a, a) of Σ moves · f."""
    surface, rho = part.surface, part.rho
    factor = rho * _shrunk(part) * part.raised
    a = np.stack([part.phi.adjoint(each) for each in moves * factor])
    if isinstance(surface.wide, Spread):
        turned = np.stack([surface.wide.times(each) for each in a])
    else:
        turned = linear.product(a, surface.wide)
    found = linear.product(turned, np.ascontiguousarray(a.T))
    far = np.flatnonzero(rho < 1.0)
    loose = moves[:, far] * np.sqrt((1.0 - rho[far] ** 2) * surface.variance)
    x = part.x[far, : len(surface.lengths)] / surface.lengths
    return np.asarray(found + correlated(loose, x))


def _shrunk(part: Part) -> Floats | float:
    """Return how much less averages over groups move than f does."""
    surface = part.surface
    if surface.tau == 0.0:
        return 1.0
    f = law.latent(surface, part.x)
    return np.sqrt(law.averaged(surface.link, f, surface.tau).wide / f.wide)


def _noise_of_windows(asked: Asked, shares: Floats, which: npt.NDArray[np.int64]) -> Floats:
    """Return the covariance (a, a) of what the windows leave uncertain."""
    total = np.zeros((len(shares), len(shares)))
    for j, window in enumerate(asked.smooth.windows):
        rows = np.flatnonzero(which == j + 1)
        if rows.size:
            deviation = np.sqrt(asked.beliefs.kept(j, window)[rows] * window.tau)
            moves = shares[:, rows] * asked.windows[j][1][rows] * deviation
            total += _within(window, moves, asked.beliefs.xs[0][rows], asked.smooth.box.kinds)
    return total


def _within(window: Window, moves: Floats, x: Floats, kinds: Kinds) -> Floats:
    """Return the covariance of Σ moves · e, e a unit-variance field as wide as a window."""
    if window.width == 0.0:
        return independent(moves, x[:, window.stretch > 0.0])
    return correlated(moves, laid(x, window.stretch / window.width, kinds))


def _of_levels(asked: Asked, part: Part, shares: Floats, mean: Floats) -> Floats:
    """Return the covariance (a, a) of the effects of unseen levels."""
    total, effects = np.zeros((len(shares), len(shares))), part.surface.basis.effects
    if effects is not None and not effects.is_averaged:
        new = np.flatnonzero(effects.which(part.x) < 0)
        moves = shares[:, new] * part.slope[new] * part.surface.basis.root[-1]
        total += independent(moves, part.x[new][:, [effects.feature]])
    if part.surface.basis.layout is not None:
        for _, psi in pooled(part.surface.basis, part.x).unseen():
            moves = linear.product(shares * part.slope, psi)
            total += linear.product(moves, np.ascontiguousarray(moves.T))
    question = asked.beliefs.question
    for each in np.unique(question[question >= 2]):
        rows = np.flatnonzero(question == each)
        added = float(asked.smooth.added[each])
        moves = shares[:, rows] * (mean * (1.0 - mean))[rows] * math.sqrt(added)
        total += independent(moves, asked.beliefs.xs[0][rows][:, [each - 2]])
    return total


# Random fields of unit variance ------------------------------------------------------------


def correlated(moves: Floats, x: Floats) -> Floats:
    """Return Σ_ij moves_i moves_j e^(−|x_i − x_j|²/2), shape (a, a), for points x (m, d).

    Exact for few points; for more it uses waves, as draws do (`betafield.process.noise`).
    """
    x = np.clip(x, -1e6, 1e6)
    if len(x) <= PAIRS:
        squares = ((x[:, None] - x[None]) ** 2).sum(axis=2)
        K = np.exp(-0.5 * squares)
        return _product(_product(moves, K), moves.T)
    # Each of the few waves stands for many, so seven digits are enough, and faster.
    turns = _product(x, _waves(x.shape[1]) / (2.0 * np.pi))
    angles = (2.0 * np.pi * (turns - np.rint(turns))).astype(np.float32)
    up, across = (_product(moves, f(angles).astype(np.float64)) for f in (np.sin, np.cos))
    return (_product(up, up.T) + _product(across, across.T)) / WAVES


def independent(moves: Floats, x: Floats) -> Floats:
    """Return the same for a field that is independent at different points."""
    if not len(x):
        return np.zeros((len(moves), len(moves)))
    _, place = distinct(x)
    place = place.ravel()
    sums = np.stack([np.bincount(place, each).astype(np.float64) for each in moves])
    return _product(sums, sums.T)


def _product(A: Floats, B: Floats) -> Floats:
    return linear.product(np.ascontiguousarray(A), np.ascontiguousarray(B))


def _waves(d: int) -> Floats:
    """Return evenly spread normal frequencies (d, waves), by Kronecker's sequence."""
    # The root of x^(d+1) = x + 1 spreads points of d dimensions evenly (Roberts, 2018).
    root = 2.0
    for _ in range(60):
        root = (1.0 + root) ** (1.0 / (d + 1.0))
    steps = root ** -np.arange(1.0, d + 1.0)
    return np.asarray(ndtri((0.5 + steps[:, None] * np.arange(1.0, WAVES + 1.0)) % 1.0))
