"""LogisticGP against scikit-learn's Gaussian process, plain linear algebra and quadrature."""

import numpy as np
import pytest
from flint import arb, arb_mat, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit, log_expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from betafield import contexts
from betafield.baselines import LogisticGP, LogitNormal, base
from betafield.baselines.logistic_gp import Evidence

UNITS = np.array([1.0, 50.0, 0.02])


def trials(t, d, seed=0, steepness=4.0):
    """Return trials whose log-odds are a wave along the first feature; all units differ."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(t, d))
    y = rng.uniform(size=t) < expit(steepness * np.sin(6.0 * X[:, 0]) + X.sum(axis=1) - 1.0)
    return X * UNITS[:d], y


def peer(length_scale, amplitude, **options):
    kernel = ConstantKernel(amplitude**2) * RBF(length_scale)
    return GaussianProcessClassifier(kernel, optimizer=None, **options)


# Given length scales and amplitude.


@pytest.mark.parametrize("t", [2, 30, 200])
@pytest.mark.parametrize("amplitude", [0.3, 2.0, 20.0])
@pytest.mark.parametrize("shares", [(0.05, 0.1, 0.3), (0.5, 2.0, 0.2), (30.0, 30.0, 30.0)])
def test_equal_to_scikit_learn_at_given_scales(t, amplitude, shares):
    X, y = trials(t, 3)
    y[:2] = False, True
    new = np.random.default_rng(1).uniform(-0.3, 1.3, size=(40, 3)) * UNITS
    length_scale = np.array(shares) * UNITS
    ours = LogisticGP(length_scale, amplitude).fit(X, y)
    theirs = peer(length_scale, amplitude).fit(X, y)
    mean, variance = theirs.latent_mean_and_variance(new)
    post = ours.posterior(new)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(
        theirs.log_marginal_likelihood_value_, abs=1e-8
    )
    np.testing.assert_allclose(post.log_odds_mean, mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(post.log_odds_variance, variance, rtol=1e-6, atol=1e-6)
    # scikit-learn approximates the logistic function by a sum of error functions.
    np.testing.assert_allclose(ours.predict_proba(new), theirs.predict_proba(new), atol=1e-2)
    clear = np.abs(mean) > 1e-5
    np.testing.assert_array_equal(ours.predict(new)[clear], theirs.predict(new)[clear])


def test_the_mode_is_where_the_gradient_vanishes():
    # K⁻¹f = s − expit(f), checked with K itself: f = K (s − expit(f)).
    X, y = trials(80, 2, seed=4)
    scales = np.array([0.2, 20.0])
    K = 9.0 * np.exp(-0.5 * (((X[:, None] - X) / scales) ** 2).sum(axis=2))
    f = LogisticGP(scales, 3.0).fit(X, y).posterior(X).log_odds_mean
    np.testing.assert_allclose(f, K @ (y - expit(f)), atol=1e-8)


def test_the_posterior_is_that_of_plain_linear_algebra():
    X, y = trials(60, 1, seed=2)
    new = np.linspace(-0.5, 1.5, 21)[:, None]
    kernel = lambda a, b: 4.0 * np.exp(-0.5 * ((a - b.T) / 0.25) ** 2)
    model = LogisticGP(0.25, 2.0).fit(X, y)
    f = model.posterior(X).log_odds_mean
    W, K, k = np.diag(expit(f) * expit(-f)), kernel(X, X), kernel(new, X)
    # Σ* = k** − k* (K + W⁻¹)⁻¹ k*ᵀ and log Z = log p(y|f) − ½ fᵀK⁻¹f − ½ log|I + WK|.
    variance = 4.0 - np.einsum("ij,ji->i", k, np.linalg.solve(K + np.linalg.inv(W), k.T))
    likelihood = log_expit(np.where(y, f, -f)).sum() - 0.5 * f @ (y - expit(f))
    log_det = np.linalg.slogdet(np.eye(60) + W @ K)[1]
    np.testing.assert_allclose(model.posterior(new).log_odds_variance, variance, rtol=1e-6)
    assert model.log_marginal_likelihood_value_ == pytest.approx(likelihood - 0.5 * log_det)


def test_one_trial_is_laplace_on_the_line():
    # f − m = a² (1 − expit(f)) at the mode, and the evidence is the peak times the width.
    model = LogisticGP(1.0, 2.0).fit([[0.0], [1e6]], [1, 0])
    post = model.posterior([[0.0], [5e5]])
    f = post.log_odds_mean[0]
    curvature = 1 / 4 + expit(f) * expit(-f)
    assert f == pytest.approx(4.0 * expit(-f))
    assert post.log_odds_variance[0] == pytest.approx(1 / curvature)
    one = log_expit(f) - f * f / 8 - 0.5 * np.log(4.0 * curvature)
    assert model.log_marginal_likelihood_value_ == pytest.approx(2 * one)
    # Far from all trials, the prior remains.
    assert (post.log_odds_mean[1], post.log_odds_variance[1]) == pytest.approx((0.0, 4.0))
    # Laplace's approximation itself is close to the integral.
    exact = integrate.quad(lambda u: expit(u) * stats.norm(0, 2).pdf(u), -np.inf, np.inf)[0]
    assert one == pytest.approx(np.log(exact), abs=0.1)


def test_predictions_are_the_integral_over_log_odds():
    X, y = trials(100, 1)
    model = LogisticGP(0.2, 3.0).fit(X, y)
    post = model.posterior([[0.3], [0.9]])
    assert isinstance(post, LogitNormal)
    law = stats.norm(post.log_odds_mean, np.sqrt(post.log_odds_variance))
    truth = integrate.quad_vec(lambda f: expit(f) * law.pdf(f), -60.0, 60.0)[0]
    np.testing.assert_allclose(model.predict_proba([[0.3], [0.9]])[:, 1], truth, rtol=1e-7)


@pytest.mark.parametrize("seed", [3, 18, 45])
def test_the_mode_is_found_from_any_other_mode(seed):
    # Up to amplitudes at which full Newton steps, and starts at earlier modes, fail.
    rng = np.random.default_rng(seed)
    t, d = int(rng.integers(5, 80)), int(rng.integers(1, 3))
    X = rng.uniform(size=(t, d))
    y = rng.uniform(size=t) < (expit(10 * (X[:, 0] - 0.5)) if seed % 2 else 0.5)
    evidence = Evidence(X, y)
    for _ in range(15):
        length_scale, amplitude = 10.0 ** rng.uniform(-2, 2, size=d), 10.0 ** rng.uniform(-2, 3)
        K, mode = evidence.mode(length_scale, amplitude)
        np.testing.assert_allclose(mode.dual, y - expit(K @ mode.dual), atol=1e-6)
        fresh = Evidence(X, y).mode(length_scale, amplitude)[1]
        assert mode.log_likelihood == pytest.approx(fresh.log_likelihood, abs=1e-6)


@pytest.mark.parametrize("amplitude", [0.1, 3.0, 1e4])
def test_trials_at_one_point_are_a_normal_law_on_the_line(amplitude):
    # Precisions add up: 1/a² of the prior, and π(1 − π) per trial.
    y = np.arange(1000) % 4 > 0
    post = LogisticGP(1.0, amplitude).fit(np.zeros((1000, 1)), y).posterior([[0.0]])
    f = post.log_odds_mean[0]
    assert 750 - 1000 * expit(f) == pytest.approx(f / amplitude**2, rel=1e-6, abs=1e-4)
    precision = amplitude**-2.0 + 1000 * expit(f) * expit(-f)
    assert post.log_odds_variance[0] == pytest.approx(1 / precision, rel=1e-4)


def high_precision(X, y, new, length_scale, amplitude, start):
    """Return mean and variance of f at new points: Newton's method as in the book, in 80 digits."""
    column = lambda values: arb_mat([[v] for v in values])
    k = lambda a, b: arb_mat(
        [[amplitude**2 * (-(((arb(u) - v) / length_scale) ** 2) / 2).exp() for v in b] for u in a]
    )
    diagonal = lambda values: arb_mat(np.diag(np.array(values, dtype=object)).tolist())
    K, f, unit = k(X, X), list(map(arb, start)), diagonal([1] * len(X))
    for _ in range(5):
        pi = [1 / (1 + (-u).exp()) for u in f]
        W = diagonal([p * (1 - p) for p in pi])
        B = W * K + unit
        a = B.solve(W * column(f) + column([int(won) - p for won, p in zip(y, pi, strict=True)]))
        f = [u.mid() for u in (K * a).entries()]
    near = k(new, X)
    explained = near * B.solve(W * near.transpose())
    variance = [float(amplitude**2 - explained[i, i]) for i in range(len(new))]
    return np.array([float(u) for u in (near * a).entries()]), np.array(variance)


@settings(max_examples=40)
@given(
    places=st.lists(st.integers(0, 8), min_size=2, max_size=12),
    length_scale=st.floats(-1.5, 1.5).map(lambda e: 10.0**e),
    amplitude=st.floats(-1.0, 4.0).map(lambda e: 10.0**e),
    bits=st.integers(0),
)
def test_the_posterior_is_right_at_any_amplitude(places, length_scale, amplitude, bits):
    X, new = np.array(places) / 8, np.array([0.1, 0.5, 1.2])
    y = np.array([bits >> i & 1 for i in range(len(X))], dtype=bool)
    y[:2] = False, True
    model = LogisticGP(length_scale, amplitude).fit(X[:, None], y)
    post = model.posterior(new[:, None])
    start = model.posterior(X[:, None]).log_odds_mean
    with ctx.workdps(80):
        mean, variance = high_precision(X, y, new, length_scale, amplitude, start)
    deviations = np.sqrt(variance)
    np.testing.assert_allclose(post.log_odds_mean / deviations, mean / deviations, atol=1e-6)
    np.testing.assert_allclose(post.log_odds_variance, variance, rtol=1e-6)


def test_steps_that_do_not_end_are_told():
    X, y = trials(30, 1)
    with pytest.warns(ConvergenceWarning, match="30 trials: 2 of Newton's steps"):
        Evidence(X, y).mode(np.array([0.2]), 2.0, steps=2)


def test_repeated_trials_are_no_trouble():
    X = np.repeat([[0.0], [1.0]], 100, axis=0)
    y = np.tile([True] * 3 + [False], 50)
    model = LogisticGP(0.1, 5.0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba([[0.0], [1.0]])[:, 1], 0.75, atol=0.01)
    assert np.all(model.posterior([[0.0], [1.0]]).log_odds_variance > 0.0)


def test_blocks_do_not_show():
    X, y = trials(50, 2)
    model = LogisticGP([0.2, 10.0], 2.0).fit(X, y)
    whole = model.posterior(X)
    times = base.BLOCK // 50**2 + 2  # more than one block, with the last one incomplete
    parts = model.posterior(np.tile(X, (times, 1)))
    assert len(base.blocks(50 * times, 50)) > 1
    mean, variance = (np.tile(a, times) for a in (whole.log_odds_mean, whole.log_odds_variance))
    np.testing.assert_allclose(parts.log_odds_mean, mean, rtol=1e-12)
    np.testing.assert_allclose(parts.log_odds_variance, variance, rtol=1e-9)


# Gradients.


@settings(max_examples=25)
@given(
    t=st.integers(2, 60),
    shares=st.tuples(*[st.floats(-1.5, 1.0).map(lambda e: 10.0**e)] * 3),
    amplitude=st.floats(0.2, 15.0),
    seed=st.integers(0, 100),
)
def test_gradients_are_those_of_finite_differences(t, shares, amplitude, seed):
    X, y = trials(t, 3, seed)
    scales = np.append(np.array(shares) * UNITS, amplitude)
    evidence = Evidence(X, y)
    value = lambda logs: evidence.log_likelihood(np.exp(logs))[0]
    h, unit = 1e-3, np.eye(4)
    # Richardson extrapolation of two steps has an error of fourth order.
    slope = lambda e, h: (value(np.log(scales) + h * e) - value(np.log(scales) - h * e)) / (2 * h)
    differences = [(4 * slope(e, h) - slope(e, 2 * h)) / 3 for e in unit]
    np.testing.assert_allclose(
        evidence.log_likelihood(scales)[1], differences, rtol=1e-5, atol=2e-6
    )


def test_gradients_are_those_of_scikit_learn():
    X, y = trials(120, 3, seed=8)
    length_scale, amplitude = np.array([0.3, 0.7, 2.0]) * UNITS, 2.5
    model = peer(length_scale, amplitude).fit(X, y)
    theta = np.log([amplitude**2, *length_scale])
    value, gradient = model.log_marginal_likelihood(theta, eval_gradient=True)
    ours, slopes = Evidence(X, y).log_likelihood(np.append(length_scale, amplitude))
    assert ours == pytest.approx(value, abs=1e-8)
    # scikit-learn's is by log amplitude², which is twice log amplitude, and comes first.
    np.testing.assert_allclose(slopes, np.append(gradient[1:], 2 * gradient[0]), atol=1e-6)


def test_gradients_do_not_depend_on_where_zero_is():
    X, y = trials(60, 2)
    scales = np.array([0.2, 20.0, 2.0])
    here = Evidence(X, y).log_likelihood(scales)[1]
    np.testing.assert_allclose(Evidence(X + 1e6, y).log_likelihood(scales)[1], here, rtol=1e-4)


# Learned scales.


def waves(x):
    return 0.5 + 0.4 * np.sin(6.0 * x)


def peak(x):
    return 0.05 + 0.9 * np.exp(-(((x - 0.4) / 0.05) ** 2))


@pytest.mark.parametrize("field", [waves, peak, lambda x: 1.0 - x, lambda x: 0.3 + 0.0 * x])
@pytest.mark.parametrize("d", [1, pytest.param(2, marks=pytest.mark.long)])
@pytest.mark.filterwarnings("ignore:The optimal value found for dimension")
def test_no_likelihood_found_by_scikit_learn_is_higher(field, d):
    rng = np.random.default_rng(d)
    X = rng.uniform(size=(200, d))
    y = rng.uniform(size=200) < field(X[:, 0])
    ours = LogisticGP().fit(X, y).log_marginal_likelihood_value_
    unit = np.ptp(X, axis=0)
    for start in (0.1, 0.3, 1.0):
        # There, all features share one pair of bounds: from the narrowest to the widest.
        kernel = ConstantKernel(4.0, (1e-4, 1e4)) * RBF(
            start * unit, (0.01 * unit.max(), 100.0 * unit.min())
        )
        theirs = GaussianProcessClassifier(kernel).fit(X, y)
        assert ours >= theirs.log_marginal_likelihood_value_ - 1e-3


def test_a_feature_that_says_nothing_gets_a_long_scale():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(300, 2))
    model = LogisticGP().fit(X, rng.uniform(size=300) < waves(X[:, 0]))
    assert model.length_scale_.shape == (2,)
    assert model.length_scale_[1] > 5 * model.length_scale_[0]
    assert 0.05 < model.length_scale_[0] < 0.6


def test_units_of_features_do_not_matter():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(150, 2))
    y = rng.uniform(size=150) < waves(X[:, 0])
    one, other = LogisticGP().fit(X, y), LogisticGP().fit(X * [1000.0, 0.001], y)
    np.testing.assert_allclose(other.length_scale_, one.length_scale_ * [1e3, 1e-3], rtol=1e-6)
    np.testing.assert_allclose(
        other.predict_proba(X * [1000.0, 0.001]), one.predict_proba(X), atol=1e-9
    )


def test_what_is_given_stays_and_the_rest_is_learned():
    X, y = trials(100, 1)
    given_scale = LogisticGP(length_scale=0.2).fit(X, y)
    given_amplitude = LogisticGP(amplitude=1.5).fit(X, y)
    free = LogisticGP().fit(X, y)
    assert given_scale.length_scale_.tolist() == [0.2]
    assert given_amplitude.amplitude_ == 1.5
    # The optimum given the rest: no neighbour on a fine grid is better.
    for factor in (0.98, 1.02):
        worse = LogisticGP(0.2, given_scale.amplitude_ * factor).fit(X, y)
        assert worse.log_marginal_likelihood_value_ < given_scale.log_marginal_likelihood_value_
        worse = LogisticGP(given_amplitude.length_scale_ * factor, 1.5).fit(X, y)
        assert worse.log_marginal_likelihood_value_ < given_amplitude.log_marginal_likelihood_value_
    assert free.log_marginal_likelihood_value_ > given_scale.log_marginal_likelihood_value_
    assert free.log_marginal_likelihood_value_ > given_amplitude.log_marginal_likelihood_value_


def test_bounds_hold_in_ranges_of_each_feature():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.linspace(0, 2, 100), np.linspace(0, 600, 100)[rng.permutation(100)]])
    y = rng.uniform(size=100) < 0.5
    options = {"length_scale_bounds": (0.25, 0.5), "amplitude_bounds": (3.0, 4.0)}
    model = LogisticGP(**options).fit(X, y)
    # For purely random outcomes, the flattest field is best.
    np.testing.assert_allclose(model.length_scale_, [1.0, 300.0])
    assert model.amplitude_ == pytest.approx(3.0)


def test_a_constant_feature_changes_nothing():
    X, y = trials(80, 1)
    alone = LogisticGP().fit(X, y)
    beside = LogisticGP().fit(np.column_stack([X, np.full(80, 7.0)]), y)
    np.testing.assert_allclose(beside.length_scale_[0], alone.length_scale_[0], rtol=1e-5)
    assert beside.log_marginal_likelihood_value_ == pytest.approx(
        alone.log_marginal_likelihood_value_
    )


def test_fits_are_reproducible():
    X, y = trials(100, 2)
    one, other = (LogisticGP().fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.length_scale_, other.length_scale_)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_intervals_hold_the_truth():
    held = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(300, 1))
        model = LogisticGP().fit(X, rng.uniform(size=300) < waves(X[:, 0]))
        grid = np.linspace(0.02, 0.98, 50)[:, None]
        low, high = model.posterior(grid).interval(0.95)
        held.append(np.mean((low <= waves(grid[:, 0])) & (waves(grid[:, 0]) <= high)))
    assert np.mean(held) > 0.85


# Contexts.


@pytest.fixture(scope="module")
def tired():
    """Return trials under fatigue: success has probability a π, with a within [½, 1]."""
    rng = np.random.default_rng(2)
    X, factor = rng.uniform(size=(200, 1)), rng.uniform(0.5, 1.0, size=200)
    return X, rng.uniform(size=200) < factor * (1.0 - X[:, 0]), factor


def test_contexts_are_features(tired):
    X, y, factor = tired
    scales = [0.5, 0.8]
    ours = LogisticGP(scales, 2.0).fit(X, y, context=contexts.attenuated(factor))
    stacked = LogisticGP(scales, 2.0).fit(np.column_stack([X, factor]), y)
    assert ours.n_features_in_ == 1
    assert ours.log_marginal_likelihood_value_ == stacked.log_marginal_likelihood_value_
    for asked in (1.0, 0.5):
        hand = np.column_stack([X, np.full(200, asked)])
        context = contexts.attenuated(asked)
        np.testing.assert_array_equal(
            ours.posterior(X, context).mean(), stacked.posterior(hand).mean()
        )
        np.testing.assert_array_equal(ours.predict(X, context), stacked.predict(hand))
    rested = np.column_stack([X, np.ones(200)])
    np.testing.assert_array_equal(ours.predict_proba(X), stacked.predict_proba(rested))


def test_one_context_a_row_is_read(tired):
    X, y, factor = tired
    model = LogisticGP([0.5, 0.8], 2.0).fit(X, y, context=contexts.attenuated(factor))
    stacked = LogisticGP([0.5, 0.8], 2.0).fit(np.column_stack([X, factor]), y)
    np.testing.assert_array_equal(
        model.predict_proba(X, contexts.attenuated(factor)),
        stacked.predict_proba(np.column_stack([X, factor])),
    )


def test_both_coefficients_are_features_where_both_vary(tired):
    X, y, factor = tired
    context = np.column_stack([factor / 4, 1 - factor / 8])
    ours = LogisticGP([0.5, 0.2, 0.1], 2.0).fit(X, y, context=context)
    stacked = LogisticGP([0.5, 0.2, 0.1], 2.0).fit(np.column_stack([X, context]), y)
    hand = np.column_stack([X, np.zeros(200), np.ones(200)])
    np.testing.assert_array_equal(ours.predict_proba(X), stacked.predict_proba(hand))


def test_contexts_that_do_not_vary_are_left_out(tired):
    X, y, _ = tired
    plain = LogisticGP(0.5, 2.0).fit(X, y)
    for context in ((0.2, 0.9), np.tile([0.2, 0.9], (200, 1))):
        same = LogisticGP(0.5, 2.0).fit(X, y, context=context)
        np.testing.assert_array_equal(same.predict_proba(X), plain.predict_proba(X))


def test_scales_of_contexts_are_learned(tired):
    X, y, factor = tired
    model = LogisticGP().fit(X, y, context=contexts.attenuated(factor))
    assert model.length_scale_.shape == (2,)
    grid = np.linspace(0.1, 0.6, 6)[:, None]
    rested = model.predict_proba(grid)[:, 1]
    exhausted = model.predict_proba(grid, contexts.attenuated(0.5))[:, 1]
    assert np.all(rested > exhausted)
    assert np.abs(rested - (1 - grid[:, 0])).mean() < 0.12


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ([0.0, 1.0, 1.0], "context: found 3 coefficients per row; two are needed"),
        ([[0.0, 1.0]] * 3, "context: found 3 rows where X has 200"),
        ([0.0, 1.5], "context column 1.*found 1.5"),
        ([[0.0, np.nan]] * 200, "context row 0"),
    ],
)
def test_bad_contexts_are_named(tired, context, message):
    X, y, factor = tired
    with pytest.raises(ValueError, match=message):
        LogisticGP(0.5, 2.0).fit(X, y, context=context)
    model = LogisticGP(0.5, 2.0).fit(X, y, context=contexts.attenuated(factor))
    with pytest.raises(ValueError, match=message):
        model.posterior(X, context)


def test_to_read_under_no_context_is_refused(tired):
    X, y, _ = tired
    with pytest.raises(ValueError, match="context: found None"):
        LogisticGP(0.5, 2.0).fit(X, y).posterior(X, None)
