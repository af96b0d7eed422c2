"""Rates of contexts that are not known, learned with the process: nodes of their posterior.

Given rates u, contexts are known and a process is fitted as ever, with the objective E(u). What is
believed of u is prior(u) e^E(u); everything that is asked is a mean over it. It is taken at a few
nodes: those of Gauss and Jacobi for a Beta law (7 of one rate, 5 × 5 of two), of weights w, that
weigh

    log w + log prior(u) − log law(u) + E(u).

The law is at first the prior. It is then matched to mean and variance of what the nodes say, a few
times, until it is near: nodes lie where the posterior is, however much narrower than the prior that
may be. Hyper-parameters are learned at the means of the rates; every node goes on from there.

Rates at which the direction of a context would turn around (a test that is more often wrong than
right) are impossible if it does not at the means of the priors.
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
from betafield.process.finding import alone, find
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
NODES = {1: 7, 2: 5}
# How often nodes are placed anew, at the most; how near, in deviations, and how much as wide a law
# must be for them to stay.
ROUNDS, NEAR, AS_WIDE = 4, 0.25, 1.3
# With fewer nodes that count, these are too far apart to estimate a variance.
FEW = 2.0
# How much wider than what was found a law is, so that no tail is lost.
WIDER = 1.2
# Rates are kept so far from 0 and 1, and shapes between these.
EDGE, LEAST, LARGEST = 1e-12, 1e-3, 1e12
# How near to their mode processes are taken where nodes are placed, in nats.
CLOSE = 1e-4
# Steps of the climb at a node, and the weight from which it is worth one.
STEPS, LIGHT = 4, 1e-3


class Nodes(NamedTuple):
    """Values of rates, and what they weigh before any trial.

    Parameters
    ----------
    law : tuple of (alpha, beta)
        Of which they are the nodes, one per rate.
    rates : array of shape (k, u)
    shares : array of shape (k,)
        Logarithms.
    number : int
        How many values each rate had before impossible ones were left out.
    """

    law: Shapes
    rates: Floats
    shares: Floats
    number: int


def find_unknown(
    sums: Sums,
    bounds: Floats,
    with_windows: bool = True,
    scale: str | tuple[str, ...] = "auto",
    number: int | None = None,
) -> Found:
    """Return what process and windows are best for trials under rates that are not known.

    Windows are those of residuals at the posterior means of the rates. `number` is how many values
    each rate has; None: as `NODES` says.
    """
    number = NODES[len(sums.rates)] if number is None else number
    law: Shapes = tuple((rate.alpha, rate.beta) for rate in sums.rates)
    first = find(sums.at(means(sums.rates)), bounds, False, scale)
    nodes, w = _placed(sums, bounds, first, law, number)
    found = find(sums.at(w @ nodes.rates), bounds, with_windows, scale)
    nodes, w = _placed(sums, bounds, found, nodes.law, number)
    components = tuple(
        each for one in found.components for each in _climbed(sums, bounds, one, nodes, w)
    )
    return found._replace(components=components, nodes=nodes.rates, shares=nodes.shares)


def _climbed(
    sums: Sums, bounds: Floats, component: Component, nodes: Nodes, w: Floats
) -> list[Component]:
    """Return a process per node, with hyper-parameters of its own unless the node hardly counts."""
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
    """Return nodes where the posterior of the rates is, and its weights there."""
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
            break  # with the weights of these nodes, not of new ones
        nodes = _possible(beta_nodes(sums.rates, new, number), rows, sums.rates)
    return nodes, np.asarray(w)


# Nodes -------------------------------------------------------------------------------------


def gauss(alpha: float, beta: float, number: int) -> tuple[Floats, Floats]:
    """Return nodes and weights of Gauss and Jacobi for Beta(alpha, beta).

    Eigenvalues of the matrix of the recurrence (Golub and Welsch); SciPy's overflow for shapes of
    a few hundred and more.

    Examples
    --------
    >>> x, w = gauss(2.0, 3.0, 4)
    >>> float(round(w @ x, 12)), float(round(w @ x**2, 12))
    (0.4, 0.2)
    """
    a, b, n = beta - 1.0, alpha - 1.0, np.arange(1.0, number)
    s = 2.0 * n + a + b
    middle = np.concatenate([[(b - a) / (a + b + 2.0)], (b - a) * (b + a) / (s * (s + 2.0))])
    # For n = 1, n + a + b and s − 1 are the same, and may be 0.
    last = np.concatenate([[1.0], (n + a + b)[1:] / (s - 1.0)[1:]])
    square = 4.0 * n * (n + a) * (n + b) * last / (s**2 * (s + 1.0))
    t, vectors = eigh_tridiagonal(middle, np.sqrt(square))
    return np.clip(0.5 * (1.0 + t), EDGE, 1.0 - EDGE), vectors[0] ** 2


def beta_nodes(rates: tuple[Rate, ...], law: Shapes, number: int) -> Nodes:
    """Return the nodes of a law per rate, so many of each, every combination of them."""
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
    """Return the nodes at which no context turns around, or all nodes if there are none."""
    corners = distinct(rows.context)[0]
    usual = _rise(at(corners, means(rates)))
    kept = np.array([np.all(_rise(at(corners, each)) * usual >= 0.0) for each in nodes.rates])
    if not kept.any():
        return nodes
    return nodes._replace(rates=nodes.rates[kept], shares=nodes.shares[kept])


def _rise(context: Floats) -> Floats:
    return np.asarray(np.sign(context[:, -1] - context[:, 0]))


def _matched(nodes: Nodes, w: Floats, j: int) -> tuple[float, float]:
    """Return the shapes of a law of one rate with mean and variance of what nodes say."""
    x, which = np.unique(nodes.rates[:, j], return_inverse=True)
    v = np.bincount(which.reshape(-1), w).astype(np.float64)
    mean, variance = moments(x, v)
    if 1.0 / np.sum(v**2) < FEW:
        at_nodes, own = gauss(*nodes.law[j], nodes.number)
        mean, variance = _peak(x, v, own[np.isin(at_nodes, x)], nodes.law[j])
    return matched(mean, WIDER * variance)


def moments(x: Floats, w: Floats) -> tuple[float, float]:
    """Return mean and variance of values of these weights."""
    mean = float(w @ x)
    return mean, float(w @ (x - mean) ** 2)


def matched(mean: float, variance: float) -> tuple[float, float]:
    """Return the shapes of the Beta law with this mean and variance."""
    mean = min(max(mean, EDGE), 1.0 - EDGE)
    size = mean * (1.0 - mean) / max(variance, 1e-300) - 1.0
    size = min(max(size, 2.0 * LEAST), LARGEST)
    return max(mean * size, LEAST), max((1.0 - mean) * size, LEAST)


def _peak(x: Floats, v: Floats, own: Floats, law: tuple[float, float]) -> tuple[float, float]:
    """Return mean and variance by a parabola of the log density of log-odds about its peak.

    Of nodes with the weights v, which are `own` under the law itself.
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
    """Return the rows of a process, contexts at all corners."""
    levels = () if component.effect is None or sums.group is not None else sums.levels()
    kept = alone(levels, component.effect) if levels and component.effect is not None else ()
    return sums.rows(boxed(sums, bounds, component.scale), levels=kept)


def problem_at(rows: Rows, component: Component, rates: Floats, share: float = 0.0) -> Problem:
    """Return what a process is fitted to if unknown rates are these."""
    return problem(rows._replace(context=at(rows.context, rates), share=share), component)


def problem(rows: Rows, component: Component) -> Problem:
    """Return what a process is fitted to."""
    link = next(link for link in LINKS if link.name == component.link)
    rows = rows._replace(correlation=component.correlation)
    trials = float(rows.n.sum())
    prior = Prior(link.scale, trials, component.smoothness, None, rows.columns, rows.kinds)
    if rows.is_grouped:
        prior = prior._replace(effects=groups(rows))
    elif component.effect is not None:
        levels = np.unique(rows.x[:, component.effect])
        prior = prior._replace(effects=Effects(component.effect, levels))
    return Problem(rows, link, prior)


def fit_of(rows: Rows, found: Found, i: int, gain: float = FINE) -> Fit:
    """Return the i-th process, at its node if there are rates that are not known."""
    component = found.components[i]
    if not found.nodes.size:
        return settled(problem(rows, component), component.theta, gain)
    node = i % len(found.nodes)
    share = float(found.shares[node])
    return settled(problem_at(rows, component, found.nodes[node], share), component.theta, gain)
