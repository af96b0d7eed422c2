"""Posteriors of draws, against NumPy, SciPy and the definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from betafield import contexts
from betafield.posteriors import Beta, Sampled

RNG = np.random.default_rng(0)
DRAWS = RNG.beta([2.0, 5.0], [3.0, 1.0], (4_000, 2))


def test_moments_tails_and_quantiles_are_those_of_the_draws():
    post = Sampled(DRAWS)
    np.testing.assert_allclose(post.mean(), DRAWS.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(post.var(), DRAWS.var(axis=0), rtol=1e-10)
    for q in (0.0, 0.025, 0.3, 0.5, 1.0):
        exact = np.quantile(DRAWS, q, axis=0, method="inverted_cdf")
        np.testing.assert_array_equal(post.ppf(q), exact)
    for p in (0.0, 0.2, 0.7, 1.0):
        np.testing.assert_allclose(post.cdf(p), (p >= DRAWS).mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(post.prob_above(p), (p < DRAWS).mean(axis=0), atol=1e-12)


def test_weights_count_as_copies():
    copies = RNG.integers(0, 5, 300)
    weighed, copied = Sampled(DRAWS[:300], copies), Sampled(np.repeat(DRAWS[:300], copies, axis=0))
    for ask in (
        Sampled.mean,
        Sampled.var,
        lambda post: post.cdf([[0.2], [0.6]]),
        lambda post: post.ppf([[0.02], [0.5], [0.9]]),
    ):
        np.testing.assert_allclose(ask(weighed), ask(copied), rtol=1e-9)
    assert weighed.effective_size == pytest.approx(copies.sum() ** 2 / (copies**2).sum())


def test_the_density_is_near_that_of_the_law_and_integrates_to_one():
    post, exact = Sampled(DRAWS), Beta([2.0, 5.0], [3.0, 1.0])
    p = np.linspace(0.05, 0.9, 30)[:, None]
    assert np.abs(post.pdf(p) - exact.pdf(p)).max() < 0.35
    grid = np.linspace(0.0, 1.0, 4_001)[:, None]
    np.testing.assert_allclose(np.trapezoid(post.pdf(grid), grid, axis=0), 1.0, rtol=1e-3)


def test_samples_keep_rows_together():
    post = Sampled(np.column_stack([DRAWS[:, 0], 1.0 - DRAWS[:, 0]]))
    found = post.sample((3, 7), random_state=0)
    assert found.shape == (3, 7, 2)
    np.testing.assert_allclose(found.sum(axis=-1), 1.0)
    assert post.sample(random_state=0).shape == (2,)
    one = post.sample(5, random_state=np.random.RandomState(3))
    np.testing.assert_array_equal(one, post.sample(5, random_state=np.random.RandomState(3)))


def test_under_a_context_is_the_polynomial_of_each_draw():
    post = Sampled(DRAWS)
    for context in (contexts.guess_lapse(0.5, 0.02), contexts.affine(-0.6, 0.9)):
        lo, hi = np.ravel(context)
        moved = post.under(context)
        np.testing.assert_allclose(moved.draws, lo + (hi - lo) * DRAWS, rtol=1e-12)
    pooled = post.under(contexts.pooled(3))
    np.testing.assert_allclose(pooled.draws, 1.0 - (1.0 - DRAWS) ** 3, rtol=1e-10)
    mean, var = post.polynomial_moments(np.tile([0.1, 0.4, 1.0], (2, 1)))
    f = 0.1 * (1 - DRAWS) ** 2 + 0.8 * DRAWS * (1 - DRAWS) + DRAWS**2
    np.testing.assert_allclose([mean, var], [f.mean(axis=0), f.var(axis=0)], rtol=1e-9)


def test_values_need_not_be_probabilities():
    draws = RNG.normal(3.0, 2.0, 5_000)
    post = Sampled(draws, support=(-np.inf, np.inf))
    assert post.shape == (1,)
    assert post.cdf(-1.0)[0] == (draws <= -1.0).mean()
    assert post.prob_above(4.0)[0] == pytest.approx((draws > 4.0).mean())
    assert post.pdf(3.0)[0] == pytest.approx(stats.norm.pdf(0.0) / 2.0, rel=0.1)
    with pytest.raises(ValueError, match="contexts are for success probabilities"):
        post.under(contexts.attenuated(0.5))
    low, high = post.interval(0.9)
    assert low[0] < 0.5 < 5.5 < high[0]


def test_rows_can_be_chosen_and_many_values_asked_of_one():
    post = Sampled(DRAWS)
    np.testing.assert_allclose(post[1].mean(), post.mean()[[1]], rtol=1e-12)
    assert post[0].cdf(np.linspace(0, 1, 7)).shape == (7,)
    assert post[[1, 0, 1]].shape == (3,)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20), st.floats(0.0, 1.0))
def test_a_quantile_is_the_least_draw_that_reaches_its_level(draws, q):
    post = Sampled(draws)
    found = post.ppf(q)[0]
    assert found in draws
    assert post.cdf(found)[0] >= q - 1e-12
    below = [each for each in draws if each < found]
    assert not below or post.cdf(max(below))[0] < q


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([],), "draws: found"),
        (([[0.5, np.nan]],), "draws row 0, column 1: found NaN"),
        (([0.5, 1.5],), r"draws row 1.*within \[0.0, 1.0\]"),
        (([0.5], [-1.0]), "weights row 0: found -1.0"),
        (([0.5, 0.6], [1.0]), "weights: found shape"),
        (([0.5], [0.0]), "weights: found 0.0"),
    ],
)
def test_bad_draws_are_refused(arguments, said):
    with pytest.raises(ValueError, match=said):
        Sampled(*arguments)
