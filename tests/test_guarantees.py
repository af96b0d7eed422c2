"""Rates, error bounds and trials needed: against exact sums, volumes, and simulated errors."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import qmc

from betafield import SmoothBetaClassifier, contexts, guarantees
from betafield.guarantees import certificate, error_bound, rate, trials_needed

METRICS = {"euclidean": 2, "chebyshev": np.inf, "manhattan": 1}


# Rates -------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_rates(d):
    assert rate(d) == (-2 / (d + 2), -1 / (d + 2), -1 / (d + 2))
    assert rate(d).l2 == 2 * rate(d).l1 == 2 * rate(d).risk


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("background", [0.0, 0.6])
def test_the_bound_falls_at_the_rate(d, background):
    t = [10**12, 10**14]
    logs = np.log([error_bound(n, d, 1.0, background=background) for n in t])
    assert np.diff(logs)[0] / np.log(100.0) == pytest.approx(rate(d).l2, abs=0.01)


# Error bounds ------------------------------------------------------------------------------


def by_the_formula(t, v, bias, alpha=Fraction(1), beta=Fraction(1)):
    """Return the bound in rational numbers, averaged over n ~ Bin(t, v)."""
    total, m = Fraction(0), alpha + beta
    for n in range(t + 1):
        given = 1 / (4 * (n + m + 1)) + n / (4 * (n + m) ** 2)
        given += ((n * bias + max(alpha, beta)) / (n + m)) ** 2
        total += math.comb(t, n) * v**n * (1 - v) ** (t - n) * given
    return float(total)


@pytest.mark.parametrize("t", [0, 1, 7, 60])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("prior", [(1, 1), (3, Fraction(1, 2))])
def test_bounds_are_the_formula_in_rational_numbers(t, d, prior):
    width, lipschitz = Fraction(1, 4), Fraction(2, 3)
    found = error_bound(t, d, 2 / 3, 0.25, tuple(map(float, prior)), metric="chebyshev")
    expected = by_the_formula(t, width**d, width * lipschitz, *map(Fraction, prior))
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_width_is_by_theory_where_none_is_given():
    assert error_bound(500, 2, 3.0) == error_bound(500, 2, 3.0, (9.0 * 500) ** (-1 / 4))
    worst = error_bound(500, 2, 3.0, background=0.5)
    assert worst == error_bound(500, 2, 3.0, (9.0 * 250) ** (-1 / 4), background=0.5)


def test_large_numbers_of_trials_are_averaged_closely():
    """Many numbers of trials are grouped: a bound from above, and a close one."""
    t, v = 10**9, 0.3
    n = np.arange(int(t * v) - 120_000, int(t * v) + 120_000, dtype=float)
    given = 0.25 / (n + 3) + 0.25 * n / (n + 2) ** 2 + ((n * 1e-4 * v + 1) / (n + 2)) ** 2
    exact = stats.binom.pmf(n, t, v) @ given
    found = error_bound(t, 1, 1e-4, v)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-4)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("width", [0.3, 0.9, 1.2, 9.0])
def test_corners_hold_at_least_the_share_that_is_counted_on(metric, d, width):
    points = qmc.Sobol(d, scramble=True, rng=0).random_base2(16)
    share = np.mean(np.linalg.norm(points, METRICS[metric], axis=1) <= width)
    found = guarantees._corner(width, d, metric)
    assert found <= share + 1e-3
    if width < 1 or width > d:  # in between, a lower bound is used
        assert found == pytest.approx(share, abs=1e-3)


FIELDS = {
    "slope": (lambda X: 0.1 + 0.8 * X[:, 0], 0.8),
    "edge": (lambda X: np.abs(1.0 - X[:, 0]), 1.0),
    "wave": (lambda X: 0.5 + 0.4 * np.sin(2 * np.pi * X[:, 0]), 0.8 * np.pi),
}


def measured_error(name, d, t, runs, context=None):
    """Return the largest mean of (π̃ − π)² at points including the corners, and its s.e."""
    function, lipschitz = FIELDS[name]
    rng = np.random.default_rng(d)
    corners = np.array(np.meshgrid(*[[0.0, 1.0]] * d)).reshape(d, -1).T
    Q = np.concatenate([corners, rng.random((10, d))])
    errors = []
    for _ in range(runs):
        X = rng.random((t, d))
        under = np.array([0.0, 1.0]) if context is None else context
        y = rng.random(t) < contexts.probability(under, function(X))
        model = SmoothBetaClassifier(
            "theory", lipschitz=lipschitz, bounds=[(0, 1)] * d, sharing="mean"
        )
        post = model.partial_fit(X, y, classes=[False, True], context=context).posterior(Q)
        errors.append(post.var() + (post.mean() - function(Q)) ** 2)
    means = np.mean(errors, axis=0)
    worst = int(np.argmax(means))
    return means[worst], np.std(np.array(errors)[:, worst]) / math.sqrt(runs)


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize(("d", "t"), [(1, 30), (1, 1_000), (2, 300), (3, 100)])
def test_bounds_are_above_measured_errors(name, d, t):
    error, spread = measured_error(name, d, t, runs=100)
    bound = error_bound(t, d, FIELDS[name][1])
    assert error - 3 * spread <= bound
    assert bound <= 12 * error  # and not by orders of magnitude


@pytest.mark.parametrize("background", [0.3, 0.9])
@pytest.mark.parametrize("name", ["slope", "edge"])
def test_bounds_are_above_measured_errors_under_a_background(name, background):
    for t in (100, 3_000):
        error, spread = measured_error(name, 1, t, 60, contexts.background(background))
        bound = error_bound(t, 1, FIELDS[name][1], background=background)
        assert error - 3 * spread <= bound <= 30 * error


@pytest.mark.long
def test_the_bound_of_a_cut_mean_holds():
    """E[X | X ≥ a] − max(E X, a) ≤ CUT σ, for Beta distributions, as posteriors are."""
    for a, b in [(1, 1), (1, 30), (30, 1), (5, 5), (200, 300)]:
        law = stats.beta(a, b)
        for cut in np.linspace(0.0, 0.99, 34):
            if law.sf(cut) > 1e-12:
                mean = law.expect(lb=cut, ub=1.0) / law.sf(cut)
                assert mean - max(law.mean(), cut) <= guarantees.CUT * law.std() + 1e-9


# Trials needed -----------------------------------------------------------------------------


@given(
    st.floats(1e-3, 0.2),
    st.integers(1, 3),
    st.floats(0.2, 5.0),
    st.sampled_from([0.0, 0.5]),
)
@settings(max_examples=40)
def test_trials_needed_are_the_least(error, d, lipschitz, background):
    t = trials_needed(error, d, lipschitz, background=background)
    assert error_bound(t, d, lipschitz, background=background) <= error
    assert error_bound(t - 1, d, lipschitz, background=background) > error


def test_a_prior_is_enough_for_an_error_as_large_as_its_own():
    assert trials_needed(0.34, 2, 1.0) == 0
    assert trials_needed(0.33, 2, 1.0) > 0


def test_more_precision_needs_more_trials_at_the_rate():
    few, many = trials_needed(1e-4, 1, 1.0), trials_needed(1e-6, 1, 1.0)
    assert np.log(many / few) / np.log(100.0) == pytest.approx(3 / 2, abs=0.02)


# Certificates ------------------------------------------------------------------------------


def test_certificates_tell_what_the_model_tells():
    rng = np.random.default_rng(0)
    X = rng.random((2_000, 2)) * [0.7, 1.0]
    y = rng.random(2_000) < X[:, 1]
    model = SmoothBetaClassifier(bandwidth=0.1, bounds=[(0, 1), (0, 1)]).fit(X, y)
    Q = np.array([[0.3, 0.5], [0.6, 0.1], [0.98, 0.98]])
    table = pd.DataFrame(certificate(model, Q, 1.0, level=0.9, width=0.2))
    assert list(table) == [
        "trials",
        "mean",
        "low",
        "high",
        "guaranteed_low",
        "guaranteed_high",
        "more_trials",
    ]
    apart = np.linalg.norm(X[:, None] - Q, axis=2)
    assert table["trials"].tolist() == (apart <= 0.1).sum(axis=0).tolist()
    np.testing.assert_array_equal(table[["low", "high"]].T, model.posterior(Q).interval(0.9))
    guaranteed = table[["guaranteed_low", "guaranteed_high"]].T
    np.testing.assert_array_equal(guaranteed, model.band(Q, 1.0, 0.9))
    assert (table["more_trials"] > 0).all()
    assert table["more_trials"][2] >= table["more_trials"][0]
    at_once = certificate(model, Q, 1.0, 0.9, simultaneous=True)
    assert (at_once["guaranteed_low"] <= table["guaranteed_low"]).all()


def test_certificates_of_the_default_and_of_distorted_trials():
    rng = np.random.default_rng(1)
    X = rng.random((500, 1))
    for context, share in ((None, 1.0), (contexts.background(0.3), 0.7)):
        model = SmoothBetaClassifier().fit(X, rng.random(500) < 0.7, context=context)
        table = certificate(model, [[0.5]], lipschitz=1.0)
        assert table["guaranteed_low"] <= table["low"] <= table["mean"] <= table["high"]
        # Near means within a window of the theoretical width.
        inside = np.abs(X[:, 0] - 0.5) / model.scale_[0] <= (500 * share) ** (-1 / 3)
        assert table["trials"][0] == pytest.approx(inside.sum())
        # Distorted trials are ignored: this many undistorted ones would be enough alone.
        k = int(table["more_trials"][0])
        alone = stats.binomtest(k // 2, k).proportion_ci(0.95, method="exact")
        assert context is None or 0.095 <= alone.high - alone.low <= 0.1


# Calibration -------------------------------------------------------------------------------


@pytest.mark.long
def test_a_million_probability_integral_transforms_are_uniform():
    """π from the prior, trials from π: the posterior's cdf at π is uniform, exactly."""
    rng = np.random.default_rng(0)
    t = 10**6
    pi, trials = rng.beta(2.0, 3.0, t), rng.integers(0, 30, t)
    X = np.arange(t)[:, None]
    model = SmoothBetaClassifier(bandwidth=0.4, scale=None, prior=(2.0, 3.0))
    post = model.fit_counts(X, rng.binomial(trials, pi), trials).posterior(X)
    assert stats.kstest(post.cdf(pi), "uniform").pvalue > 0.001
    # The test would detect a posterior with a twentieth of a trial too many.
    wrong = stats.beta(post.alpha + 0.05, post.beta).cdf(pi)
    assert stats.kstest(wrong, "uniform").pvalue < 1e-6


@pytest.mark.long
def test_transforms_under_contexts_are_uniform():
    rng = np.random.default_rng(1)
    t = 50_000
    pi = rng.random(t)
    place = np.repeat(np.arange(t), 3)
    context = np.sort(rng.random((3 * t, 2)), axis=1)
    y = rng.random(3 * t) < contexts.probability(context, pi[place])
    model = SmoothBetaClassifier(bandwidth=0.4, scale=None)
    post = model.fit(place[:, None], y, context=context).posterior(np.arange(t)[:, None])
    assert stats.kstest(post.cdf(pi), "uniform").pvalue > 0.001


# Bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rate(0), "d: found 0; a whole number from 1 on"),
        (lambda: rate(1.5), "d: found 1.5"),
        (lambda: error_bound(-1, 1, 1.0), "t: found -1; a whole number from 0 on"),
        (lambda: error_bound(True, 1, 1.0), "t: found True"),
        (lambda: error_bound(2**60, 1, 1.0), "t: found 1152921504606846976; at most"),
        (lambda: error_bound(10, 1, 0.0), "lipschitz: found 0.0; a positive number"),
        (lambda: error_bound(10, 1, 1.0, -1.0), "bandwidth: found -1.0"),
        (lambda: error_bound(10, 1, 1.0, prior=(1, 0)), r"prior: found 0"),
        (lambda: error_bound(10, 2, 1.0, metric="l2"), "metric: found 'l2'"),
        (lambda: error_bound(10, 1, 1.0, metric="l2"), "metric: found 'l2'"),
        (lambda: error_bound(10, 1, 1.0, background=1.0), "background: found 1.0"),
        (
            lambda: error_bound(10, 1, 1.0, prior=(2, 2), background=0.1),
            r"prior: found \(2, 2\); under a background",
        ),
        (lambda: trials_needed(0.0, 1, 1.0), "error: found 0.0"),
        (lambda: trials_needed(1e-9, 6, 1.0), "error: found 1e-09; it would take more than"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_bad_widths_of_certificates():
    model = SmoothBetaClassifier(0.1).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="width: found 0"):
        certificate(model, [[0.0]], 1.0, width=0)
