"""Guaranteed intervals: against exact probabilities of all outcomes, and published bounds."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from betafield import SmoothBetaClassifier, contexts
from betafield.bands import Bands, share_bounds
from betafield.evidence import Decoder, Totals
from betafield.windows import Forest


def fixed(**options):
    return SmoothBetaClassifier(bandwidth=0.1, **({"bounds": [(0.0, 1.0)]} | options))


def trials(t, d=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((t, d))
    return X, rng.random(t) < 0.2 + 0.6 * X[:, 0]


# One window --------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [0.5, 0.05, 1e-9])
def test_bounds_of_shares_are_clopper_and_pearson(error):
    for n in (1, 2, 5, 30, 400):
        for k in {0, 2, n // 2, n - 2, n} & set(range(n + 1)) - {1, n - 1}:
            low, high = share_bounds(np.array([k * 1.0]), np.array([n * 1.0]), error)
            theirs = stats.binomtest(k, n).proportion_ci(1 - error, method="exact")
            np.testing.assert_allclose([low[0], high[0]], theirs, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize(("k", "n"), [(2, 10), (5, 10), (300, 1000), (40, 10**6)])
def test_bounds_for_tiny_errors(k, n):
    error = 1e-60
    low, _ = share_bounds(np.array([k * 1.0]), np.array([n * 1.0]), error)
    # P(Bin(n, low) ≥ k) is the regularised incomplete beta function.
    tail = arb(float(low[0])).beta_lower(arb(k), arb(n - k + 1), regularized=True)
    assert float(tail) == pytest.approx(0.5 * error, rel=1e-9)


def distribution_of_sum(p):
    """Return P(S = k) of independent trials with these probabilities."""
    out = np.ones(1)
    for each in p:
        out = np.convolve(out, [1.0 - each, each])
    return out


@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=14),
    st.sampled_from([0.5, 0.2, 0.05, 0.001]),
)
@settings(max_examples=400)
def test_bounds_hold_the_mean_of_trials_that_are_not_alike(p, error):
    n, mean = len(p), float(np.mean(p))
    low, high = share_bounds(np.arange(n + 1.0), np.full(n + 1, float(n)), error)
    chance = distribution_of_sum(p)
    slack = 1e-12
    assert chance[low > mean + slack].sum() <= 0.5 * error + slack
    assert chance[high < mean - slack].sum() <= 0.5 * error + slack


# All possible outcomes ---------------------------------------------------------------------

PLACES = np.array([[0.1], [0.35], [0.4], [0.9]])
HELD = np.array([2, 4, 3, 4])
QUERIES = np.linspace(0.0, 1.0, 11)[:, None]
FUNCTIONS = {
    "slope": (lambda x: 0.1 + 0.8 * x, 0.8),
    "kink": (lambda x: 0.9 - 0.9 * np.minimum(2 * np.abs(x - 0.4), 1.0), 1.8),
    "rare": (lambda x: 0.02 + 0.02 * x, 0.02),
}


def chances_of_misses(function, lipschitz, level, context, sharing, simultaneous):
    """Return the exact probability of a miss at each query, and of any miss, over all outcomes."""
    under = np.broadcast_to([0.0, 1.0] if context is None else context, (4, 2))
    success = contexts.probability(under, function(PLACES[:, 0]))
    truth = function(QUERIES[:, 0])
    at_each, anywhere, total = np.zeros(len(QUERIES)), 0.0, 0.0
    for won in itertools.product(*(range(n + 1) for n in HELD)):
        chance = np.prod(stats.binom.pmf(won, HELD, success))
        if chance < 1e-4:
            continue
        model = fixed(sharing=sharing).fit_counts(PLACES, won, HELD, context=context)
        low, high = model.band(QUERIES, lipschitz, level, simultaneous)
        missed = (low > truth + 1e-12) | (high < truth - 1e-12)
        at_each += chance * missed
        anywhere += chance * missed.any()
        total += chance
    assert total > 0.99
    return at_each + (1 - total), anywhere + (1 - total)


@pytest.mark.no_cover
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("level", [0.55, 0.9])
def test_misses_of_plain_trials(name, level):
    at_each, _ = chances_of_misses(*FUNCTIONS[name], level, None, "exact", False)
    assert at_each.max() <= 1 - level


def test_misses_at_all_points_at_once():
    _, anywhere = chances_of_misses(*FUNCTIONS["slope"], 0.5, None, "exact", True)
    assert anywhere <= 0.5


CONTEXTS = {
    "guesses": np.array([[0.1, 1.0], [0.3, 1.0], [0.0, 0.9], [0.5, 1.0]]),
    "reversed": np.array([[0.1, 1.0], [0.9, 0.2], [0.8, 0.0], [0.0, 1.0]]),
}


# The exact ones take ten seconds each, the others one second.
LONG = pytest.mark.long


@pytest.mark.long
@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("context", "sharing"),
    [
        ("guesses", "mean"),
        ("reversed", "mean"),
        ("guesses", "exact"),
        pytest.param("reversed", "exact", marks=LONG),
    ],
)
def test_misses_of_distorted_trials(context, sharing):
    of = chances_of_misses(*FUNCTIONS["slope"], 0.55, CONTEXTS[context], sharing, False)
    assert of[0].max() <= 0.45


def test_the_exact_probabilities_see_a_lipschitz_constant_that_is_too_small():
    function, lipschitz = FUNCTIONS["kink"]
    at_each, _ = chances_of_misses(function, lipschitz / 20, 0.9, None, "exact", False)
    assert at_each.max() > 0.2


# Parts of bands ----------------------------------------------------------------------------


def bands(metric, d, t, simultaneous=True):
    seen = Totals(t << 32)
    return Bands(Forest(d, metric), Decoder(2), np.ones(d), seen, 1.0, 0.05, simultaneous)


@pytest.mark.parametrize("metric", ["euclidean", "chebyshev", "manhattan"])
@pytest.mark.parametrize(("d", "t"), [(1, 6), (2, 5), (3, 4)])
def test_there_are_no_more_windows_than_are_paid_for(metric, d, t):
    rng = np.random.default_rng(d)
    order = {"euclidean": 2, "chebyshev": np.inf, "manhattan": 1}[metric]
    points = rng.integers(0, 4, (t, d)) / 4.0  # a grid puts trials on the borders of windows
    centres = np.concatenate([rng.integers(-4, 9, (20_000, d)) / 8.0, rng.random((20_000, d))])
    apart = np.linalg.norm(centres[:, None] - points, order, axis=2)
    of = bands(metric, d, t)
    seen = {row.tobytes() for radius in of.radii for row in apart <= radius}
    assert len(seen) <= 0.05 / of.error_of_one * (1 + 1e-9)
    assert len(seen) > t


def test_the_likelihood_ratio_has_a_mean_of_at_most_one():
    """The basis of intervals from likelihoods, over all outcomes of trials that differ."""
    from betafield.bands import _log_likelihood

    rng = np.random.default_rng(3)
    for _ in range(50):
        context = rng.random((6, 2))
        theta, step = rng.random(), 0.3 * rng.random()
        bias = 0.2 * rng.random(6)
        start = np.minimum(theta + bias, 1.0)
        p = contexts.probability(context, start * rng.random(6))
        mean = 1.0
        for i in range(6):
            outcomes = np.stack([1.0 - context[i], context[i]])
            ratios = np.log(outcomes[:, 1] / outcomes[:, 0])
            top = _log_likelihood(np.minimum(start[i] + step, 1.0), ratios)
            log_r = top - _log_likelihood(start[i], ratios)
            mean *= (1.0 - p[i]) * math.exp(log_r[0]) + p[i] * math.exp(log_r[1])
        assert mean <= 1.0 + 1e-12


@pytest.mark.parametrize("metric", ["euclidean", "chebyshev", "manhattan"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_radii_rise_from_nothing_to_everything(metric, d):
    for t in (1, 100, 10**6):
        for lipschitz in (1e-6, 1.0, 1e6):
            of = bands(metric, d, t)
            radii = Bands(of.windows, of.decoder, of.sides, of.totals, lipschitz, 0.05).radii
            order = {"euclidean": 2, "chebyshev": np.inf, "manhattan": 1}[metric]
            assert radii[0] == 0.0
            assert radii[-1] == pytest.approx(np.linalg.norm(np.ones(d), order))
            assert (np.diff(radii) > 0).all()


# The estimator -----------------------------------------------------------------------------


def test_where_no_trial_is_anything_is_possible():
    model = fixed(bounds=[(0, 100)]).fit([[0.0], [1.0]], [0, 1])
    low, high = model.band([[60.0], [1e6]], lipschitz=50.0)
    assert low.tolist() == [0.0, 0.0]
    assert high.tolist() == [1.0, 1.0]


def test_many_trials_at_one_point_make_a_narrow_interval_whatever_the_slope():
    model = fixed().fit_counts([[0.2], [0.7]], [3_000, 10], [10_000, 10])
    low, high = model.band([[0.2]], lipschitz=1e6)
    theirs = stats.binomtest(3_000, 10_000).proportion_ci(0.95, method="exact")
    np.testing.assert_allclose([low[0], high[0]], theirs, rtol=1e-9)


def test_a_window_counts_its_trials_as_far_as_its_rings_reach():
    """One window, by hand: 400 trials at 0.05 from the point, and none elsewhere."""
    model = fixed().fit_counts([[0.45], [0.55]], [60, 80], [200, 200])
    low, high = model.band([[0.5]], lipschitz=4.0)
    inner, outer = stats.binomtest(140, 400).proportion_ci(0.95, method="exact")
    bias = 4.0 * 0.05
    ring = 2 ** (1 / 3)
    assert inner - bias * ring <= low[0] <= inner - bias + 1e-9
    assert outer + bias - 1e-9 <= high[0] <= outer + bias * ring


@pytest.mark.parametrize("sharing", ["exact", "mean"])
def test_distorted_trials_elsewhere_say_no_more_than_the_slope_allows(sharing):
    """π is practically known to be 0.7 at 0.6, so it may be anything from 0.6 to 0.8 at 0.5."""
    n, context = 10**6, contexts.background(0.2)
    won = int(n * contexts.probability(context, 0.7))
    model = fixed(sharing=sharing).fit_counts([[0.6], [0.0]], [won, 1], [n, 2], context=context)
    low, high = model.band([[0.5], [0.6]], lipschitz=1.0)
    assert low[0] <= 0.6 <= 0.8 <= high[0]
    assert high[0] - low[0] <= 0.2 * 2 ** (1 / 3) + 0.01
    assert low[1] < 0.7 < high[1] < low[1] + 0.01


def test_neither_batches_nor_order_nor_threads_nor_chosen_windows_can_be_seen():
    X, y = trials(3_000, d=2)
    Q = np.random.default_rng(1).random((50, 2))
    box = [(0.0, 1.0)] * 2
    ours = fixed(bounds=box).fit(X, y)
    others = [
        fixed(bounds=box, n_jobs=2).fit(X[::-1], y[::-1]),
        fixed(bounds=box).fit(X[:700], y[:700]).partial_fit(X[700:], y[700:]),
        fixed(bounds=box).fit(X[:700], y[:700]).merge(fixed(bounds=box).fit(X[700:], y[700:])),
        SmoothBetaClassifier(bounds=box).fit(X, y),
        SmoothBetaClassifier("loo", bounds=box).fit(X, y),
    ]
    for simultaneous in (False, True):
        expected = ours.band(Q, 2.0, 0.9, simultaneous)
        for other in others:
            np.testing.assert_array_equal(other.band(Q, 2.0, 0.9, simultaneous), expected)


@pytest.mark.parametrize("sharing", ["exact", "mean"])
def test_failures_are_successes_of_the_mirror_image(sharing):
    X, y = trials(500)
    Q = np.linspace(0, 1, 21)[:, None]
    context = contexts.guess_lapse(0.2, 0.1)
    for these in (None, context):
        low, high = fixed(sharing=sharing).fit(X, y, context=these).band(Q, 1.0)
        if these is not None:  # failures under the opposite context
            opposite = fixed(sharing=sharing).fit(X, ~y, context=1.0 - these).band(Q, 1.0)
            np.testing.assert_allclose(opposite, (low, high), atol=1e-9)
        turned = None if these is None else contexts.mirrored(these)
        mirrored = fixed(sharing=sharing).fit(X, ~y, context=turned).band(Q, 1.0)
        np.testing.assert_allclose(mirrored, (1.0 - high, 1.0 - low), atol=1e-4)


@pytest.mark.parametrize("sharing", ["exact", "mean"])
def test_blocks_of_queries_cannot_be_seen(sharing):
    X, y = trials(400)
    context = contexts.background(np.random.default_rng(2).random(400) * 0.5)
    model = fixed(sharing=sharing).fit(X, y | (context[:, 0] > 0.4), context=context)
    Q = np.linspace(0, 1, 30)[:, None]
    whole = model.band(Q, 1.0)
    one_by_one = replace(model.field_.bands(1.0, 0.95, simultaneous=False), block=1)
    np.testing.assert_allclose(one_by_one.intervals(Q), whole, rtol=0, atol=1e-12)


def test_units_are_the_models_own():
    X, y = trials(1_000)
    Q = np.linspace(0, 1, 11)[:, None]
    plain = fixed().fit(X, y).band(Q, 2.0)
    stretched = fixed(bounds=[(0.0, 64.0)]).fit(64 * X, y).band(64 * Q, 2.0)
    np.testing.assert_array_equal(stretched, plain)
    own = fixed(bounds=[(0.0, 64.0)], scale=None).fit(64 * X, y).band(64 * Q, 2.0 / 64)
    np.testing.assert_allclose(own, plain, rtol=1e-12)


def test_a_constant_feature_changes_little():
    X, y = trials(300)
    flat = np.column_stack([X, np.full(300, 7.0)])
    box = [(0.0, 1.0), (7.0, 7.0)]
    low, high = fixed(bounds=box, metric="chebyshev").fit(flat, y).band(flat[:20], 1.0)
    np.testing.assert_array_equal((low, high), fixed().fit(X, y).band(X[:20], 1.0))


def test_so_many_dimensions_that_nothing_can_be_said_of_all_points():
    rng = np.random.default_rng(0)
    X = rng.random((50, 12))
    model = SmoothBetaClassifier(0.1, metric="manhattan").fit(X, X[:, 0] > 0.5)
    low, high = model.band(X[:2], 1.0, simultaneous=True)
    assert low.tolist() == [0.0, 0.0]
    assert high.tolist() == [1.0, 1.0]


def test_higher_levels_are_wider_and_more_trials_narrower():
    X, y = trials(2_000)
    Q = np.linspace(0, 1, 11)[:, None]
    width = [
        np.subtract(*fixed().fit(X, y).band(Q, 1.0, level)[::-1]) for level in (0.5, 0.9, 0.99)
    ]
    assert (np.diff(width, axis=0) > 0).all()
    few = np.subtract(*fixed().fit(X[:200], y[:200]).band(Q, 1.0)[::-1])
    assert few.mean() > 1.5 * width[1].mean()


@pytest.mark.parametrize("width", [0.02, 0.1, 0.3])
def test_more_trials_are_enough_and_not_far_too_many(width):
    X, y = trials(500)
    x = np.array([[0.3]])
    model = fixed().fit(X, y)
    more = int(model.field_.bands(1.0, 0.95, False).more_trials(x, width)[0])

    def after(k):
        grown = fixed().fit(X, y).partial_fit_counts(x, [k // 2], [k])
        return float(np.subtract(*grown.band(x, 1.0)[::-1])[0])

    assert after(more) <= 1.02 * width
    assert after(more // 2) > width


def test_no_more_trials_are_needed_where_the_interval_is_narrow():
    model = fixed().fit_counts([[0.2], [0.7]], [3_000, 10], [10_000, 10])
    more = model.field_.bands(1.0, 0.95, False).more_trials(np.array([[0.2], [0.7]]), 0.1)
    assert more[0] == 0
    assert more[1] > 0


# Bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lipschitz": 0.0}, "lipschitz: found 0.0; a positive number is needed"),
        ({"lipschitz": np.nan}, "lipschitz: found NaN"),
        ({"lipschitz": "1"}, "lipschitz: found '1'"),
        ({"lipschitz": 1.0, "level": 1.0}, "level: found 1.0; a number between 0 and 1"),
        ({"lipschitz": 1.0, "level": 95}, "level: found 95"),
    ],
)
def test_bad_arguments(arguments, message):
    model = fixed().fit([[0.1], [0.2]], [0, 1])
    with pytest.raises(ValueError, match=message):
        model.band([[0.1]], **arguments)


def test_trials_without_a_guarantee():
    X, y = [[0.1], [0.2], [0.3]], [0, 1, 1]
    several = fixed().fit(X, [0, 1, 2])
    with pytest.raises(ValueError, match="3 classes; guarantees are for two"):
        several.band(X, 1.0)
    pools = fixed().fit(X, y, context=contexts.pooled(3))
    with pytest.raises(ValueError, match="polynomial contexts"):
        pools.band(X, 1.0)
    for context in (None, contexts.background(0.2)):
        parts = fixed().fit(X, y, sample_weight=[1, 0.5, 2], context=context)
        with pytest.raises(ValueError, match="fractional weights"):
            parts.band(X, 1.0)
    doubled = fixed().fit(X, y, sample_weight=[1, 3, 2])
    repeated = fixed().fit(np.repeat(X, [1, 3, 2], axis=0), np.repeat(y, [1, 3, 2]))
    np.testing.assert_array_equal(doubled.band(X, 1.0), repeated.band(X, 1.0))
