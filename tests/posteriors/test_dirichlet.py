"""Dirichlet posteriors: marginals are Betas, draws are joint."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from betafield.posteriors import Beta, Dirichlet

ALPHA = np.array([[1.0, 2.0, 5.0], [0.5, 0.5, 3.0], [1e-3, 40.0, 1e7]])
tables = st.integers(2, 5).flatmap(
    lambda k: st.lists(
        st.lists(st.floats(-3.0, 12.0).map(lambda e: 10.0**e), min_size=k, max_size=k),
        min_size=1,
        max_size=4,
    )
)


@settings(max_examples=60, deadline=None)
@given(tables)
def test_each_class_is_its_marginal_beta(alpha):
    post = Dirichlet(alpha)
    p = np.array([0.1, 0.5, 0.9])[:, None, None]
    asked = {ask: getattr(post, ask)(p) for ask in ("pdf", "cdf", "prob_above", "ppf")}
    interval = post.interval(0.8)
    for k in range(post.shape[1]):
        others = [math.fsum(row[:k] + row[k + 1 :]) for row in alpha]
        beta = Beta([row[k] for row in alpha], others)
        np.testing.assert_array_equal(post.marginal(k).alpha, beta.alpha)
        np.testing.assert_allclose(post.marginal(k).beta, beta.beta, rtol=1e-15)
        for ask in ("mean", "var", "std"):
            np.testing.assert_allclose(getattr(post, ask)()[:, k], getattr(beta, ask)(), rtol=1e-14)
        for ask, found in asked.items():
            same = getattr(post.marginal(k), ask)(p[:, 0])
            np.testing.assert_array_equal(found[..., k], same)
        for end, same in zip(interval, post.marginal(k).interval(0.8), strict=True):
            np.testing.assert_array_equal(end[:, k], same)


def test_a_small_class_beside_a_large_one_is_kept():
    """Subtracting 1e12 from the sum would leave the others nothing."""
    post = Dirichlet([[1e12, 1e-3, 1e-3]])
    np.testing.assert_allclose(post.marginal(0).beta, 2e-3, rtol=1e-15)
    np.testing.assert_allclose(post.var()[0, 0], 2e-27, rtol=1e-9)


def test_uniform_on_the_triangle():
    """The area where one coordinate exceeds p is (1 − p)²."""
    p = np.array([[0.1], [0.7]])[..., None]
    post = Dirichlet([[1.0, 1.0, 1.0]])
    np.testing.assert_allclose(post.prob_above(p), np.broadcast_to((1 - p) ** 2, (2, 1, 3)))
    np.testing.assert_allclose(post.mean(), 1.0 / 3.0)
    np.testing.assert_allclose(post.var(), 1.0 / 18.0)


def test_two_classes_are_a_beta_and_its_mirror():
    post, beta = Dirichlet([[3.0, 8.0]]), Beta([3.0], [8.0])
    np.testing.assert_array_equal(post.cdf(0.3)[:, 0], beta.cdf(0.3))
    np.testing.assert_allclose(post.prob_above(0.7)[:, 1], beta.cdf(0.3), rtol=1e-13)


def test_arguments_broadcast_against_rows_and_classes():
    post = Dirichlet(ALPHA)
    assert post.shape == (3, 3)
    assert len(post) == 3
    grid = post.cdf(np.array([0.2, 0.6])[:, None, None])
    assert grid.shape == (2, 3, 3)
    np.testing.assert_array_equal(post.cdf(0.2), grid[0])
    np.testing.assert_array_equal(post.cdf([0.2, 0.6, 0.2])[:, 1], grid[1, :, 1])
    np.testing.assert_array_equal(post.cdf([[0.2], [0.6], [0.2]])[1], grid[1, 1])


@pytest.mark.parametrize("alpha", [ALPHA, [[1e-3] * 4], [[1e-3, 1e12]], [[1e12] * 3]])
def test_draws_are_on_the_simplex(alpha):
    draws = Dirichlet(alpha).sample(20_000, random_state=1)
    assert draws.shape == (20_000, *np.shape(alpha))
    assert np.all((draws >= 0.0) & (draws <= 1.0))
    np.testing.assert_allclose(draws.sum(axis=-1), 1.0, rtol=1e-14)


@pytest.mark.parametrize("alpha", [[1.0, 2.0, 5.0], [1e-3, 2e-3, 3e-3], [0.1, 1e3, 1e6]])
def test_draws_have_the_moments(alpha):
    n = 40_000
    post = Dirichlet([alpha])
    draws = post.sample(n, random_state=2)[:, 0]
    assert np.all(np.abs(draws.mean(axis=0) - post.mean()[0]) < 4.5 * post.std()[0] / math.sqrt(n))
    # Cov(p_j, p_k) = −α_j α_k / (α₀² (α₀ + 1)): the draws are joint, not class by class.
    total = sum(alpha)
    covariance = -alpha[1] * alpha[2] / (total**2 * (total + 1.0))
    assert np.cov(draws.T)[1, 2] == pytest.approx(covariance, rel=0.05)


@pytest.mark.parametrize("alpha", [[1e-3, 1e-3, 1e-3], [0.3, 2.0, 9.0], [1e-2, 1e5, 1e6]])
def test_draws_follow_the_marginals(alpha):
    n = 20_000
    post = Dirichlet([alpha])
    draws = post.sample(n, random_state=3)[:, 0]
    points = np.concatenate([np.logspace(-290, -1, 200), np.linspace(0.1, 0.99, 90)])
    shares = (draws[:, None, :] <= points[None, :, None]).mean(axis=0)
    assert np.abs(shares - post.cdf(points[:, None, None])[:, 0]).max() < 1.95 / math.sqrt(n)


def test_sample_shapes_and_seeds():
    post = Dirichlet(ALPHA)
    assert post.sample().shape == (3, 3)
    assert post.sample((2, 4)).shape == (2, 4, 3, 3)
    np.testing.assert_array_equal(post.sample(2, random_state=3), post.sample(2, random_state=3))
    legacy = (np.random.RandomState(4) for _ in range(2))
    np.testing.assert_array_equal(*(post.sample(2, random_state=rng) for rng in legacy))


def test_index_gives_a_posterior_of_those_rows():
    post = Dirichlet(ALPHA)
    assert post[1].shape == (1, 3)
    np.testing.assert_array_equal(post[[2, 0]].alpha, ALPHA[[2, 0]])
    np.testing.assert_array_equal(post[post.mean()[:, 2] > 0.7].alpha, ALPHA[1:])
    assert post[:0].mean().shape == (0, 3)
    assert post[:0].sample(2, random_state=0).shape == (2, 0, 3)
    with pytest.raises(IndexError):
        post[0, 1]


def test_repr_names_rows_and_classes():
    assert repr(Dirichlet([[1.0, 3.0]])) == "<Dirichlet, shape 1 x 2, means from 0.25 to 0.75>"
    assert repr(Dirichlet(ALPHA)[:0]) == "<Dirichlet, shape 0 x 3>"


def test_shapes_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        Dirichlet(ALPHA).alpha[0, 0] = 2.0


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        (
            [[1.0, 2.0], [3.0, 0.0]],
            "alpha row 1, column 1: found 0.0; shapes must be positive and finite",
        ),
        ([1.0, 2.0], r"alpha: found shape \(2,\); 2 dimensions are needed"),
        ([[1.0] * 3, [1e308] * 3], "alpha row 1: found .*; shapes with a finite sum are needed"),
        ([[1.0], [2.0]], r"alpha: found shape \(2, 1\); at least 2 classes are needed"),
    ],
)
def test_wrong_shapes_are_refused(alpha, message):
    with pytest.raises(ValueError, match=message):
        Dirichlet(alpha)


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="p row 2: found NaN"):
        Dirichlet(ALPHA).cdf([0.1, 0.2, np.nan])
    with pytest.raises(ValueError, match=r"p: found shape \(2,\).*\(3, 3\)"):
        Dirichlet(ALPHA).cdf([0.1, 0.2])
    for wrong in (3, -4, None, "a", 1.0, np.array([0, 1])):
        with pytest.raises(ValueError, match=r"k: found .* a whole number from -3 to 2 is needed"):
            Dirichlet(ALPHA).marginal(wrong)
