"""Steps as the limit of steep curves, against quadrature and simulation."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import logsumexp

from betafield.process import ensemble
from betafield.process.basis import Prior
from betafield.process.fit import LENGTH, LONGEST, SHORTEST, Problem, fit
from betafield.process.laplace import mode
from betafield.process.links import LOGIT
from betafield.process.model import build, find
from betafield.process.rows import gather
from betafield.process.steps import ONCE, PRIOR, STAR, steps
from betafield.process.sums import Sums

UNIT = np.array([[0.0, 1.0]])


def model(x, y, context=None, bounds=UNIT):
    """Return trials and the model fitted to them."""
    given = None if context is None else np.tile(context, (len(x), 1))
    sums = Sums(x[:, None], np.ones(len(x), dtype=np.int64), y.astype(np.int64), given)
    return sums, build(sums, bounds, find(sums, bounds, scale="range"))


def likelihood(c, x, y, context, sign):
    """Return the likelihood of trials under a step at c, from the definition."""
    low, high = context
    q = np.where(sign * (x - c) > 0.0, high, low)
    return np.prod(np.where(y, q, 1.0 - q))


@given(seed=st.integers(0, 10_000), n=st.integers(1, 12), sign=st.sampled_from([1, -1]))
def test_the_weight_of_steps_is_the_integral_of_their_likelihood(seed, n, sign):
    rng = np.random.default_rng(seed)
    x, context = np.sort(rng.uniform(size=n)), (0.3, 0.9)
    y = rng.uniform(size=n) < 0.6
    sums, smooth = model(x, y, context)
    found = steps(sums, smooth, sign)
    edges = np.concatenate([[0.0], x, [1.0]])
    parts = [
        integrate.quad(likelihood, a, b, args=(x, y, context, sign))[0] for a, b in pairwise(edges)
    ]
    processes = len({member.which for member in smooth.members})
    smoothly = np.exp([member.log_weight for member in smooth.members]).sum()
    odds = STAR * PRIOR * processes * np.sum(parts) / smoothly
    assert found.share == pytest.approx(odds / (1.0 + odds), rel=1e-9)
    np.testing.assert_allclose(
        [found.weight[found.low == a].sum() for a in edges[:-1]], parts / np.sum(parts), rtol=1e-9
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_steps_are_anywhere_between_the_last_failure_and_the_first_success(sign):
    rng = np.random.default_rng(0)
    x = rng.uniform(2.0, 7.0, size=30)
    y = sign * (x - 4.1) > 0.0
    found = steps(*model(x, y, bounds=np.array([[2.0, 7.0]])), sign)
    low, high = x[x < 4.1].max(), x[x > 4.1].min()
    drawn = found.drawn(500, rng)
    assert stats.kstest(drawn, stats.uniform(low, high - low).cdf).pvalue > 0.01
    assert 0.3 < found.share < 1.0
    # Of steps the other way there are none.
    assert steps(*model(x, ~y, bounds=np.array([[2.0, 7.0]])), sign).share < 1e-12


def test_overlapping_outcomes_are_no_step():
    x = np.linspace(0.05, 0.95, 40)
    y = x > 0.5
    y[25] = False
    assert steps(*model(x, y), 1).share < 1e-12


def test_the_prior_crosses_once_as_often_as_is_said():
    rng = np.random.default_rng(0)
    count, x = 4_000, np.linspace(0.0, 1.0, 65)
    size = np.abs(rng.standard_normal(count))
    is_below = rng.random(count) < LENGTH[1] / (LENGTH[1] + LENGTH[2])
    logs = LENGTH[0] + np.where(is_below, -LENGTH[1], LENGTH[2]) * size
    once = 0
    for length in np.exp(np.clip(logs, SHORTEST, LONGEST)):
        K = np.exp(-0.5 * ((x[:, None] - x) / length) ** 2)
        values, vectors = np.linalg.eigh(K)
        f = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(len(x)))
        once += f[0] < 0.0 < f[-1] and np.count_nonzero(np.diff(np.sign(f))) == 1
    assert once / count == pytest.approx(ONCE, abs=0.02)


def test_a_star_weighs_as_much_as_the_evidence_of_its_process():
    """The integral over θ of the evidence, on a grid, under the normalised prior."""
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(400, 1))
    y = rng.uniform(size=400) < 0.5 + 0.45 * np.sin(9.0 * x[:, 0])
    rows = gather(x, np.ones(400, dtype=np.int64), y.astype(np.int64))
    problem = Problem(rows, LOGIT, Prior(1.0, 400.0))
    star = list(ensemble.of_fit(fit(rows, LOGIT), 0))
    step = 0.2
    sigmas, lengths = np.arange(-3.0, 4.0, step), np.arange(SHORTEST, 2.0, step)
    logs = []
    for theta in np.stack(np.meshgrid(sigmas, lengths), axis=-1).reshape(-1, 2):
        at = mode(theta, *problem, None, 1e-3)
        logs.append(at.evidence + problem.log_prior(theta))
    whole = logsumexp(logs) + 2.0 * np.log(step) - np.log(2.0 * np.pi * 2.0 * 1.5)
    found = logsumexp([member.log_weight for member in star]) - np.log(STAR)
    assert found == pytest.approx(whole, abs=0.3)
