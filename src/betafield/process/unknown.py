"""Unknown rates of contexts, estimated together with the process: nodes of their posterior.

Given rates u, contexts are known and a process is fitted as usual, with the objective E(u). The
posterior of u is ∝ prior(u) e^E(u), and every answer is a mean over it. The mean is taken at a few
nodes, those of Gauss–Jacobi quadrature for a Beta distribution, the law (7 for one rate, 5 × 5 for
two). With quadrature weights w, their log weights are

    log w + log prior(u) − log law(u) + E(u).

The law is at first the prior. It is then matched to the posterior mean and variance at the nodes,
repeatedly, until it hardly changes: nodes end up where the posterior is, however much narrower than
the prior it may be. Hyper-parameters are estimated at the means of the rates; every node starts
from there.

Rates at which a context would reverse its direction (a test that is more often wrong than right)
are excluded if it does not at the prior means.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh_tridiagonal
from scipy.special import betaln, logsumexp

from betafield._rows import distinct
from betafield.families import Rate, means
from betafield.process.basis import Effects, Prior
from betafield.process.finding import Asked, alone, search
from betafield.process.fit import Fit, Problem, climb, groups, sampled, settled
from betafield.process.found import Component, Found
from betafield.process.laplace import FINE, mode
from betafield.process.links import LINKS
from betafield.process.rows import Rows
from betafield.process.scales import boxed
from betafield.process.sums import Sums, at

Floats = npt.NDArray[np.float64]
Shapes = tuple[tuple[float, float], ...]

# Nodes per rate, by number of rates.
NODES = {1: 9, 2: 5}
# Most rounds of placing nodes, and when to stop: the mean of the law changes by less than NEAR
# standard deviations, and its variance by less than the factor AS_WIDE.
ROUNDS, NEAR, AS_WIDE = 4, 0.25, 1.3
# With a smaller effective number of nodes, they are too far apart to estimate a variance.
FEW = 2.0
# The factor by which the variance of the law is increased, so that no tail is lost.
WIDER = 1.2
# Distance of rates from 0 and 1, and bounds of shapes.
EDGE, LEAST, LARGEST = 1e-12, 1e-3, 1e12
# Tolerance of modes while nodes are placed, in nats.
CLOSE = 1e-4
# Newton steps for the hyper-parameters at a node, and the weight it needs for that.
STEPS, LIGHT = 4, 1e-3


class Nodes(NamedTuple):
    """Values of rates, and their prior weights.

    Parameters
    ----------
    law : tuple of (alpha, beta)
        The Beta distributions whose quadrature nodes they are, one per rate.
    rates : array of shape (k, u)
    shares : array of shape (k,)
        Log prior weights.
    number : int
        Number of values per rate, before impossible ones were left out.
    """

    law: Shapes
    rates: Floats
    shares: Floats
    number: int


def find_unknown(sums: Sums, asked: Asked, number: int | None = None) -> Found:
    """Return the best processes and windows for trials under unknown rates.

    Windows use the residuals at the posterior means of the rates. `number` is the number of nodes
    per rate, by default that of `NODES`.
    """
    number = NODES[len(sums.rates)] if number is None else number
    law: Shapes = tuple((rate.alpha, rate.beta) for rate in sums.rates)
    bounds = asked.bounds
    first = search(sums.at(means(sums.rates)), asked._replace(with_windows=False)).found
    nodes, w = _placed(sums, bounds, first, law, number)
    found = search(sums.at(w @ nodes.rates), asked).found
    nodes, w = _placed(sums, bounds, found, nodes.law, number)
    components = tuple(
        each for one in found.components for each in _climbed(sums, bounds, one, nodes, w)
    )
    return found._replace(components=components, nodes=nodes.rates, shares=nodes.shares)


def _climbed(
    sums: Sums, bounds: Floats, component: Component, nodes: Nodes, w: Floats
) -> list[Component]:
    """Return one process per node, with its own hyper-parameters if the node has enough weight."""
    rows = gathered(sums, bounds, component)
    few = sampled(rows)
    found = []
    for rates, weight in zip(nodes.rates, w, strict=True):
        theta = component.theta
        if weight > LIGHT:
            theta = climb(problem_at(few, component, rates), theta, None, STEPS).mode.theta
        found.append(component._replace(theta=theta))
    return found


def _placed(
    sums: Sums, bounds: Floats, found: Found, law: Shapes, number: int
) -> tuple[Nodes, Floats]:
    """Return nodes placed at the posterior of the rates, and its weights there."""
    component = found.components[0]
    rows = gathered(sums, bounds, component)
    nodes = _possible(beta_nodes(sums.rates, law, number), rows, sums.rates)
    near: Floats | None = None
    for left in reversed(range(ROUNDS)):
        logs = np.empty(len(nodes.rates))
        for i, (values, share) in enumerate(zip(nodes.rates, nodes.shares, strict=True)):
            problem = problem_at(rows, component, values)
            found_mode = mode(component.theta, *problem, near, CLOSE)
            near, logs[i] = found_mode.f, found_mode.evidence + share
        w = np.exp(logs - logsumexp(logs))
        new = tuple(_matched(nodes, w, j) for j in range(len(sums.rates)))
        if not left or all(_is_near(a, b) for a, b in zip(nodes.law, new, strict=True)):
            break  # before new nodes, because w belongs to these
        nodes = _possible(beta_nodes(sums.rates, new, number), rows, sums.rates)
    return nodes, np.asarray(w)


# Nodes -------------------------------------------------------------------------------------


def gauss(alpha: float, beta: float, number: int) -> tuple[Floats, Floats]:
    """Return Gauss–Jacobi nodes and weights for Beta(alpha, beta).

    They come from the eigenvalues of the recurrence matrix (Golub and Welsch), because SciPy's
    routine overflows for shapes of a few hundred or more.

    Examples
    --------
    >>> x, w = gauss(2.0, 3.0, 4)
    >>> float(round(w @ x, 12)), float(round(w @ x**2, 12))
    (0.4, 0.2)
    """
    a, b, n = beta - 1.0, alpha - 1.0, np.arange(1.0, number)
    s = 2.0 * n + a + b
    middle = np.concatenate([[(b - a) / (a + b + 2.0)], (b - a) * (b + a) / (s * (s + 2.0))])
    # For n = 1, n + a + b equals s − 1, and both may be 0.
    last = np.concatenate([[1.0], (n + a + b)[1:] / (s - 1.0)[1:]])
    square = 4.0 * n * (n + a) * (n + b) * last / (s**2 * (s + 1.0))
    t, vectors = eigh_tridiagonal(middle, np.sqrt(square))
    return np.clip(0.5 * (1.0 + t), EDGE, 1.0 - EDGE), vectors[0] ** 2


def beta_nodes(rates: tuple[Rate, ...], law: Shapes, number: int) -> Nodes:
    """Return all combinations of the nodes of each rate's law, `number` per rate."""
    each, shares = [], []
    for rate, shapes in zip(rates, law, strict=True):
        x, w = gauss(*shapes, number)
        ratio = _log_density(x, rate.alpha, rate.beta) - _log_density(x, *shapes)
        each.append(x)
        shares.append(np.log(np.maximum(w, 1e-300)) + ratio)
    grid = np.meshgrid(*each, indexing="ij")
    total = np.sum(np.meshgrid(*shares, indexing="ij"), axis=0)
    return Nodes(law, np.stack([axis.ravel() for axis in grid], axis=1), total.ravel(), number)


def _log_density(x: Floats, alpha: float, beta: float) -> Floats:
    return np.asarray((alpha - 1.0) * np.log(x) + (beta - 1.0) * np.log1p(-x) - betaln(alpha, beta))


def _possible(nodes: Nodes, rows: Rows, rates: tuple[Rate, ...]) -> Nodes:
    """Return the nodes at which no context reverses its direction, or all if there are none."""
    corners = distinct(rows.context)[0]
    usual = _rise(at(corners, means(rates)))
    kept = np.array([np.all(_rise(at(corners, each)) * usual >= 0.0) for each in nodes.rates])
    if not kept.any():
        return nodes
    return nodes._replace(rates=nodes.rates[kept], shares=nodes.shares[kept])


def _rise(context: Floats) -> Floats:
    return np.asarray(np.sign(context[:, -1] - context[:, 0]))


def _matched(nodes: Nodes, w: Floats, j: int) -> tuple[float, float]:
    """Return the shapes of one rate's law, matched to its mean and variance over the nodes."""
    x, which = np.unique(nodes.rates[:, j], return_inverse=True)
    v = np.bincount(which.reshape(-1), w).astype(np.float64)
    mean, variance = moments(x, v)
    if 1.0 / np.sum(v**2) < FEW:
        at_nodes, own = gauss(*nodes.law[j], nodes.number)
        mean, variance = _peak(x, v, own[np.isin(at_nodes, x)], nodes.law[j])
    return matched(mean, WIDER * variance)


def moments(x: Floats, w: Floats) -> tuple[float, float]:
    """Return mean and variance of values with these weights."""
    mean = float(w @ x)
    return mean, float(w @ (x - mean) ** 2)


def matched(mean: float, variance: float) -> tuple[float, float]:
    """Return the shapes of the Beta distribution with this mean and variance."""
    mean = min(max(mean, EDGE), 1.0 - EDGE)
    size = mean * (1.0 - mean) / max(variance, 1e-300) - 1.0
    size = min(max(size, 2.0 * LEAST), LARGEST)
    return max(mean * size, LEAST), max((1.0 - mean) * size, LEAST)


def _peak(x: Floats, v: Floats, own: Floats, law: tuple[float, float]) -> tuple[float, float]:
    """Return mean and variance by a parabola through the log density of log-odds at its peak.

    Nodes have posterior weights v, and weights `own` under the law itself.
    """
    if len(x) < 3:
        return moments(x, v)
    t = np.log(x) - np.log1p(-x)
    log = np.log(np.maximum(v, 1e-300)) - np.log(np.maximum(own, 1e-300))
    log = log + _log_density(x, *law) + np.log(x) + np.log1p(-x)
    i = int(np.clip(np.argmax(log), 1, len(x) - 2))
    bend, slope, _ = np.polyfit(t[i - 1 : i + 2] - t[i], log[i - 1 : i + 2], 2)
    if bend >= 0.0:
        return moments(x, v)
    mean = 1.0 / (1.0 + np.exp(-(t[i] - np.clip(0.5 * slope / bend, -2.0, 2.0))))
    return float(mean), float((mean * (1.0 - mean)) ** 2 / (-2.0 * bend))


def _is_near(a: tuple[float, float], b: tuple[float, float]) -> bool:
    """Return whether two laws are nearly the same."""
    (m, v), (n, u) = _told(*a), _told(*b)
    return abs(m - n) <= NEAR * np.sqrt(u) and 1.0 / AS_WIDE <= v / u <= AS_WIDE


def _told(alpha: float, beta: float) -> tuple[float, float]:
    """Return mean and variance of a law."""
    size = alpha + beta
    return alpha / size, alpha * beta / (size**2 * (size + 1.0))


# Processes ---------------------------------------------------------------------------------


def gathered(sums: Sums, bounds: Floats, component: Component) -> Rows:
    """Return the rows of a process, with contexts at all corners of the rates."""
    levels = () if component.effect is None or sums.group is not None else sums.levels()
    kept = alone(levels, component.effect) if levels and component.effect is not None else ()
    return sums.rows(boxed(sums, bounds, component.scale), levels=kept)


def problem_at(rows: Rows, component: Component, rates: Floats, share: float = 0.0) -> Problem:
    """Return the problem of a process, with unknown rates at these values."""
    return problem(rows._replace(context=at(rows.context, rates), share=share), component)


def problem(rows: Rows, component: Component) -> Problem:
    """Return the problem of a process: rows, link and prior."""
    link = next(link for link in LINKS if link.name == component.link)
    rows = rows._replace(correlation=component.correlation)
    trials = float(rows.n.sum())
    prior = Prior(link.scale, trials, component.smoothness, None, rows.columns, rows.kinds)
    prior = prior._replace(form=component.form)
    if rows.is_grouped:
        prior = prior._replace(effects=groups(rows))
    elif component.effect is not None:
        levels = np.unique(rows.x[:, component.effect])
        prior = prior._replace(effects=Effects(component.effect, levels))
    return Problem(rows, link, prior)


def fit_of(rows: Rows, found: Found, i: int, gain: float = FINE) -> Fit:
    """Return the fit of the i-th process, at its node if there are unknown rates."""
    component = found.components[i]
    if not found.nodes.size:
        return settled(problem(rows, component), component.theta, gain)
    node = i % len(found.nodes)
    share = float(found.shares[node])
    return settled(problem_at(rows, component, found.nodes[node], share), component.theta, gain)
