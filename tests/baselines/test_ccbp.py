"""ContinuousCorrelatedBeta against a double loop, and its limits."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betafield import Prior
from betafield.baselines import ContinuousCorrelatedBeta, base
from betafield.posteriors import Beta


def trials(t, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(t, d)), rng.uniform(size=t) < 0.4


def looped(X, y, at, length_scale, prior):
    """Return the shapes at one point, trial by trial."""
    alpha, beta = prior
    for x, success in zip(X.tolist(), y.tolist(), strict=True):
        squares = sum((a - b) ** 2 for a, b in zip(x, at, strict=True))
        worth = math.exp(-squares / (2.0 * length_scale**2))
        alpha, beta = alpha + worth * success, beta + worth * (not success)
    return alpha, beta


@given(
    t=st.integers(2, 30),
    d=st.integers(1, 4),
    length_scale=st.floats(-2.0, 2.0).map(lambda e: 10.0**e),
    alpha=st.floats(0.1, 20.0),
    beta=st.floats(0.1, 20.0),
    seed=st.integers(0, 1000),
)
def test_equal_to_a_double_loop(t, d, length_scale, alpha, beta, seed):
    X, y = trials(t, d, seed)
    y[:2] = False, True
    new = np.vstack([X[:3], np.random.default_rng(seed).normal(size=(3, d))])
    model = ContinuousCorrelatedBeta(length_scale, prior=(alpha, beta)).fit(X, y)
    posterior = model.posterior(new)
    truth = [looped(X, y, at, length_scale, (alpha, beta)) for at in new.tolist()]
    np.testing.assert_allclose(
        np.stack([posterior.alpha, posterior.beta], axis=1), truth, rtol=1e-12
    )
    mean = [a / (a + b) for a, b in truth]
    np.testing.assert_allclose(model.predict_proba(new)[:, 1], mean, rtol=1e-12)


def test_a_narrow_kernel_leaves_the_prior_away_from_trials():
    X, y = trials(50, 2)
    model = ContinuousCorrelatedBeta(1e-4, prior=(2.0, 5.0)).fit(X, y)
    away = model.posterior(X + 0.1)
    np.testing.assert_array_equal([away.alpha, away.beta], [[2.0] * 50, [5.0] * 50])
    here = model.posterior(X)
    np.testing.assert_allclose(here.alpha, 2.0 + y)
    np.testing.assert_allclose(here.beta, 6.0 - y)


def test_a_wide_kernel_holds_all_trials_everywhere():
    X, y = trials(50, 2)
    posterior = ContinuousCorrelatedBeta(1e9).fit(X, y).posterior([[0.0, 0.0], [100.0, -100.0]])
    np.testing.assert_allclose(posterior.alpha, 1.0 + y.sum())
    np.testing.assert_allclose(posterior.beta, 1.0 + (~y).sum())


def test_scales_beyond_floats_are_limits_too():
    X, y = np.array([[0.0], [1e300]]), [0, 1]
    narrow = ContinuousCorrelatedBeta(1e-300).fit(X, y).posterior(X)
    np.testing.assert_array_equal(narrow.alpha, [1.0, 2.0])
    np.testing.assert_array_equal(narrow.beta, [2.0, 1.0])


def test_blocks_do_not_show():
    X, y = trials(100, 3)
    model = ContinuousCorrelatedBeta(0.7).fit(X, y)
    whole = model.posterior(X)
    times = base.BLOCK // 100**2 + 2  # more than one block, with the last one incomplete
    parts = model.posterior(np.tile(X, (times, 1)))
    assert len(base.blocks(100 * times, 100)) > 1
    np.testing.assert_allclose(parts.alpha, np.tile(whole.alpha, times), rtol=1e-14)
    np.testing.assert_allclose(parts.beta, np.tile(whole.beta, times), rtol=1e-14)


def test_the_prior_may_be_a_field():
    X, y = trials(30, 1)
    prior = Prior.from_mean_variance(lambda points: 1 / (1 + np.exp(-points[:, 0])), 0.01)
    posterior = ContinuousCorrelatedBeta(1e-9, prior=prior).fit(X, y).posterior(X + 0.5)
    np.testing.assert_allclose(posterior.mean(), 1 / (1 + np.exp(-X[:, 0] - 0.5)))


def test_its_error_stops_falling_where_that_of_shrinking_windows_goes_on():
    # π is a ramp between two plateaus; a kernel as wide as the ramp keeps smoothing its corners.
    def learned(t):
        rng = np.random.default_rng(0)
        X = rng.uniform(size=(t, 1))
        y = rng.uniform(size=t) < ramp(X[:, 0])
        mean = ContinuousCorrelatedBeta(0.1).fit(X, y).predict_proba(grid)[:, 1]
        return np.mean((mean - ramp(grid[:, 0])) ** 2)

    ramp = lambda x: np.clip(4.0 * x - 1.5, 0.0, 1.0)
    grid = np.linspace(0.0, 1.0, 101)[:, None]
    assert learned(20_000) > 0.5 * learned(2_000)


@pytest.mark.parametrize("y", [[0, 1], ["b", "a"]])
def test_the_posterior_is_that_of_the_second_class(y):
    posterior = ContinuousCorrelatedBeta(1e-3).fit([[0.0], [1.0]], y).posterior([[0.0]])
    assert isinstance(posterior, Beta)
    assert posterior.mean().tolist() == pytest.approx([2 / 3 if y[0] == "b" else 1 / 3])


def test_many_trials_and_points_take_little_memory():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(100_000, 2))
    model = ContinuousCorrelatedBeta().fit(X, X[:, 0] > rng.uniform(size=100_000))
    new = rng.uniform(0.2, 0.8, size=(500, 2))
    tracemalloc.start()
    mean = model.posterior(new).mean()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6  # all kernel values at once would be 400e6 bytes
    assert np.abs(mean - new[:, 0]).max() < 0.05
