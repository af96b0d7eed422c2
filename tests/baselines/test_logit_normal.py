"""LogitNormal against Arb, the normal distribution, and properties of every distribution."""

import itertools
import math

import numpy as np
import pytest
from flint import acb, arb, ctx
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit, logit

from betafield import contexts
from betafield.baselines import LogitNormal
from betafield.posteriors import Posterior

VARIANCES = [1e-12, 1e-4, 0.1, 1.0, 1.001, 4.0, 100.0, 1e4]
means = st.floats(-30.0, 30.0)
variances = st.floats(-12.0, 4.0).map(lambda e: 10.0**e)
probabilities = st.floats(1e-9, 1.0 - 1e-9)


def exact_power(m, v, k):
    """Return E[expit(f)^k], f ~ N(m, v), as a ball; k may be negative for powers of 1 − π."""
    ctx.prec = 200
    centre, spread, side = arb(m), arb(v).sqrt(), 1 if k > 0 else -1

    def integrand(z, _):
        return (-(z * z) / 2).exp() / (1 + (-side * (centre + spread * z)).exp()) ** abs(k)

    # The integrand peaks between the mean of the normal distribution and its tilted mean.
    tilt = side * min(abs(k) * math.sqrt(v), max(0.0, -side * m / math.sqrt(v)))
    ends = [tilt + e for e in (-40, -20, -10, -5, -2, 0, 2, 5, 10, 20, 40)]
    limits = {"rel_tol": arb(2) ** -160, "abs_tol": arb(2) ** -1500, "depth_limit": 1000}
    parts = (
        acb.integral(integrand, acb(a), acb(b), eval_limit=10**6, **limits)
        for a, b in itertools.pairwise(ends)
    )
    return sum(parts, acb(0)).real / (2 * arb.pi()).sqrt()


def relative_error(value, truth):
    assert truth.rel_accuracy_bits() > 60
    return abs(float(arb(float(value)) / truth - 1))


# Moments.


@pytest.mark.sampled
@pytest.mark.parametrize("variance", VARIANCES)
@pytest.mark.parametrize("mean", [0.0, 0.7, -3.0, 12.0, -80.0])
def test_moments_are_right_to_rounding(mean, variance):
    first, second = (exact_power(mean, variance, k) for k in (1, 2))
    post = LogitNormal([mean], [variance])
    assert relative_error(post.mean()[0], first) < 1e-12
    assert relative_error(post.var()[0], second - first * first) < 1e-10
    assert post.std()[0] == pytest.approx(math.sqrt(post.var()[0]))


@example(mean=9.0, variance=0.25)  # falls where a rule for all of [0, median] has no node
@given(mean=means, variance=st.floats(0.05, 50.0))
def test_the_mean_is_the_integral_of_the_tail(mean, variance):
    post = LogitNormal([mean], [variance])
    # E[π] = ∫ P(π > p) dp, over log-odds, where no tail is too far out to be seen.
    tail = lambda u: float(post.prob_above(expit(u))[0] * expit(u) * expit(-u))
    cuts = np.unique(np.clip([-40.0, mean - 5, mean, mean + 5, 0.0, 40.0], -40.0, 40.0))
    parts = [integrate.quad(tail, a, b, limit=200)[0] for a, b in itertools.pairwise(cuts)]
    assert post.mean()[0] == pytest.approx(sum(parts), abs=1e-8)


@given(mean=means, variance=variances)
def test_moments_lie_where_they_must(mean, variance):
    post = LogitNormal([mean], [variance])
    average, spread = post.mean()[0], post.std()[0]
    assert 0.0 <= average <= 1.0
    assert 0.0 <= spread**2 <= average * (1.0 - average) * (1 + 1e-9) + 1e-16
    # The median of any distribution is within a standard deviation of its mean.
    rounding = np.spacing(expit(mean))
    assert abs(average - expit(mean)) <= spread * (1 + 1e-9) + rounding


@given(mean=means, variance=variances)
def test_the_mean_rises_with_the_log_odds(mean, variance):
    step = 0.01 * math.sqrt(variance) + 1e-6
    low, high = LogitNormal([mean, mean + step], [variance] * 2).mean()
    assert low <= high


@pytest.mark.parametrize("mean", [-1e6, -2000.0, 2000.0, 1e6])
@pytest.mark.parametrize("variance", [1e-12, 1.0, 1e4])
def test_log_odds_beyond_floats_are_certain(mean, variance):
    post = LogitNormal([mean], [variance])
    assert post.mean()[0] == pytest.approx(float(mean > 0), abs=1e-80)
    assert post.var()[0] == pytest.approx(0.0, abs=1e-80)


def test_a_law_that_knows_nothing_is_a_coin_of_certainties():
    post = LogitNormal([0.0], [1e12])
    assert post.mean()[0] == pytest.approx(0.5)
    assert post.var()[0] == pytest.approx(0.25, rel=1e-5)


def test_rows_and_blocks_do_not_influence_each_other():
    rng = np.random.default_rng(0)
    post = LogitNormal(rng.normal(0, 30, size=60), 10.0 ** rng.uniform(-12, 4, size=60))
    alone = [post[i].mean()[0] for i in range(60)]
    np.testing.assert_allclose(post.mean(), alone, rtol=1e-13)
    # Rows in several blocks, with narrow and with wide distributions.
    many = LogitNormal(*(np.tile(a, 500) for a in (post.log_odds_mean, post.log_odds_variance)))
    np.testing.assert_allclose(many.mean(), np.tile(alone, 500), rtol=1e-13)


# Tails, quantiles, density.


@given(mean=means, variance=variances, q=probabilities)
def test_quantiles_are_those_of_the_normal_law_in_log_odds(mean, variance, q):
    truth = expit(stats.norm(mean, math.sqrt(variance)).ppf(q))
    assert LogitNormal([mean], [variance]).ppf(q)[0] == pytest.approx(truth, rel=1e-12)


@given(mean=st.floats(-8.0, 8.0), variance=st.floats(1e-4, 4.0), q=st.floats(1e-4, 1 - 1e-4))
def test_quantiles_and_tails_undo_each_other(mean, variance, q):
    post = LogitNormal([mean], [variance])
    assert post.cdf(post.ppf(q))[0] == pytest.approx(q, abs=1e-8)
    assert post.prob_above(post.ppf(q))[0] == pytest.approx(1.0 - q, abs=1e-8)


@given(mean=means, variance=variances, p=st.lists(st.floats(-0.5, 1.5), min_size=2, max_size=8))
def test_tails_are_monotone_and_add_up_to_one(mean, variance, p):
    post, points = LogitNormal([mean], [variance]), np.sort(p)[:, None]
    cdf, above = post.cdf(points), post.prob_above(points)
    assert np.all(np.diff(cdf, axis=0) >= 0.0)
    assert np.all(np.diff(above, axis=0) <= 0.0)
    np.testing.assert_allclose(cdf + above, 1.0, rtol=1e-15)


@given(mean=means, variance=variances, q=probabilities, p=st.floats(0.001, 0.999))
def test_negative_log_odds_are_the_mirror_image(mean, variance, q, p):
    post, mirror = LogitNormal([mean], [variance]), LogitNormal([-mean], [variance])
    assert mirror.mean()[0] == pytest.approx(1.0 - post.mean()[0], abs=1e-15)
    assert mirror.var()[0] == post.var()[0]
    assert mirror.ppf(1.0 - q)[0] == pytest.approx(1.0 - post.ppf(q)[0], abs=1e-7)
    # Except near the middle of narrow distributions, where the rounding of p decides.
    if variance > 1e-6:
        assert mirror.cdf(1.0 - p)[0] == pytest.approx(post.prob_above(p)[0], abs=1e-9)


@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (2.0, 0.25), (-1.0, 9.0)])
def test_the_density_is_the_slope_of_the_cdf(mean, variance):
    post = LogitNormal([mean], [variance])
    density = lambda p: float(post.pdf(p)[0])
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.9), (0.9, 1.0)):
        mass = integrate.quad(density, low, high, limit=200, epsabs=1e-12)[0]
        assert mass == pytest.approx((post.cdf(high) - post.cdf(low))[0], abs=1e-9)


@given(mean=means, variance=variances, z=st.floats(-6.0, 6.0))
def test_the_density_is_right(mean, variance, z):
    p = float(expit(mean + z * math.sqrt(variance)))
    if not 1e-300 < p < 1.0:
        return
    ctx.prec = 200
    x, m, v = arb(p), arb(mean), arb(variance)
    log_odds = (x / (1 - x)).log()
    truth = (-((log_odds - m) ** 2) / (2 * v)).exp() / ((2 * arb.pi() * v).sqrt() * x * (1 - x))
    # The rounding of the logarithm, in standard deviations, times the slope of the exponent.
    allowed = 1e-12 + 1e-15 * (1 + abs(mean)) / math.sqrt(variance) * (1 + abs(z)) * 8
    assert relative_error(LogitNormal([mean], [variance]).pdf(p)[0], truth) < allowed


def test_ends_and_what_lies_beyond():
    post = LogitNormal([0.3], [2.0])
    points = np.array([[-1.0], [0.0], [1.0], [2.0]])
    assert post.pdf(points).ravel().tolist() == [0.0] * 4
    assert post.cdf(points).ravel().tolist() == [0.0, 0.0, 1.0, 1.0]
    assert post.prob_above(points).ravel().tolist() == [1.0, 1.0, 0.0, 0.0]
    assert post.ppf([[0.0], [1.0]]).ravel().tolist() == [0.0, 1.0]


def test_upper_tails_keep_their_digits():
    post = LogitNormal([-20.0], [1.0])
    assert post.prob_above(0.5)[0] == pytest.approx(stats.norm.sf(20.0), rel=1e-12)


# Draws, rows, contexts.


@pytest.mark.parametrize("seed", [5, np.random.default_rng(5), np.random.RandomState(5)])
def test_draws_follow_the_cdf(seed):
    post = LogitNormal([0.5, -2.0], [0.2, 6.0])
    draws = post.sample(4000, random_state=seed)
    assert draws.shape == (4000, 2)
    for row in range(2):
        cdf = lambda p, row=row: post[row].cdf(p[:, None])[:, 0]
        assert stats.kstest(draws[:, row], cdf).pvalue > 1e-3


def test_rows_are_taken_like_those_of_other_posteriors():
    post = LogitNormal([0.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    assert isinstance(post, Posterior)
    assert len(post) == 3
    np.testing.assert_array_equal(post[1:].mean(), post.mean()[1:])
    np.testing.assert_array_equal(post[[2, 0]].var(), post.var()[[2, 0]])
    assert repr(post).startswith("<LogitNormal, shape 3, means from 0.5 to")
    nothing = post[[]]
    assert nothing.mean().shape == nothing.var().shape == (0,)


def test_values_cannot_be_changed_from_outside():
    mean = np.zeros(2)
    post = LogitNormal(mean, [1.0, 2.0])
    mean[:] = 9.0
    assert post.mean().tolist() == pytest.approx([0.5, 0.5])
    with pytest.raises(ValueError, match="read-only"):
        post.log_odds_variance[0] = 4.0


def test_under_an_affine_context():
    post = LogitNormal([0.4, -2.0], [1.0, 30.0])
    tired = post.under(contexts.guess_lapse(guess=0.25, lapse=0.05))
    np.testing.assert_allclose(tired.mean(), 0.25 + 0.7 * post.mean())
    np.testing.assert_allclose(tired.var(), 0.49 * post.var())
    np.testing.assert_allclose(tired.ppf(0.1), 0.25 + 0.7 * post.ppf(0.1))


@pytest.mark.parametrize(("mean", "variance"), [(0.4, 1.0), (-2.0, 30.0), (1.0, 1e-6)])
def test_under_a_pool_of_three(mean, variance):
    # A pool is positive with probability 1 − (1 − π)³.
    first, second = (exact_power(mean, variance, -k) for k in (3, 6))
    pooled = LogitNormal([mean], [variance]).under(contexts.pooled(3))
    assert relative_error(pooled.mean()[0], 1 - first) < 1e-9
    assert relative_error(pooled.var()[0], second - first * first) < 1e-7


# Bad input.


@pytest.mark.parametrize(
    ("mean", "variance", "message"),
    [
        ([0.0], [0.0], "variance row 0: found 0.0; it must be > 0"),
        ([0.0, 0.0], [1.0, -1.0], "variance row 1: found -1.0"),
        ([np.nan], [1.0], "mean row 0: found NaN; it must be finite"),
        ([0.0], [np.inf], "variance row 0: found inf; it must be finite"),
        ([0.0, 1.0], [1.0], "mean has 2 rows and variance has 1"),
        (0.0, 1.0, r"mean: found shape \(\); one dimension is needed"),
        (["far"], [1.0], "mean row 0: found 'far'; it must be finite"),
    ],
)
def test_bad_parameters_are_named(mean, variance, message):
    with pytest.raises(ValueError, match=message):
        LogitNormal(mean, variance)


def test_medians_are_those_of_log_odds():
    m = np.linspace(-5.0, 5.0, 11)
    np.testing.assert_allclose(logit(LogitNormal(m, np.full(11, 3.0)).ppf(0.5)), m, atol=1e-13)
