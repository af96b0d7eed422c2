"""Local polynomials against least squares by NumPy, and leaving out against refitting."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from betafield import SmoothBetaClassifier
from betafield.choosing import local
from betafield.posteriors import Beta
from betafield.windows import Forest, Places
from betafield.windows.moments import monomials


def trials(seed, t, d):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(t, d))
    return X, (rng.uniform(size=t) < X[:, 0]).astype(np.int64)


def weigh(counts):
    return counts.sum(axis=0).astype(np.float64), counts[1].astype(np.float64)


def fitted(X, y, query, width, degree):
    """p̂ and h by solving the normal equations of the trials near the query."""
    z = (X - query) / width
    near = np.sqrt((z**2).sum(axis=1)) <= 1.0
    exponents = monomials(X.shape[1], degree).exponents
    basis = exponents[exponents.sum(axis=1) <= degree]
    phi = np.prod(z[near][:, None] ** basis, axis=2)
    G = phi.T @ phi + local.RIDGE * np.diag([0.0] + [1.0] * (len(basis) - 1))
    inverse = np.linalg.inv(G)
    return (inverse @ (phi.T @ y[near]))[0], inverse[0, 0], near.sum()


def fits_at(X, y, queries, widths, degrees):
    places = Places(X.T.copy(), np.array([1 - y, y]))
    forest = Forest(X.shape[1]).insert(places)
    sums = forest.moments(queries, widths, max(degrees), weigh)
    return local.fits(sums, widths, X.shape[1], degrees)


@given(seed=st.integers(0, 2**32), d=st.integers(1, 3), t=st.integers(30, 300))
def test_fits_are_least_squares_with_a_ridge(seed, d, t):
    X, y = trials(seed, t, d)
    widths, degrees = np.array([0.4, 0.9]), (0, 1, 2)
    found = fits_at(X, y, X[:5].copy(), widths, degrees)
    for i in range(5):
        for w, width in enumerate(widths):
            for degree in degrees:
                share, leverage, held = fitted(X, y, X[i], width, degree)
                assert found.share[i, w, degree] == pytest.approx(share, abs=1e-8)
                assert found.leverage[i, w, degree] == pytest.approx(leverage, rel=1e-8)
                assert found.held[i, w] == held


@given(seed=st.integers(0, 2**32), d=st.integers(1, 3), t=st.integers(10, 100))
def test_leaving_a_trial_out_is_refitting_without_it(seed, d, t):
    X, y = trials(seed, t, d)
    widths, degrees = np.array([0.5]), (0, 1, 2)
    found = fits_at(X, y, X.copy(), widths, degrees)
    if_lost, if_won = (found.without(np.ones(t), won) for won in (0.0, 1.0))
    shares, worths = (
        np.where(y[:, None, None] == 1, won, lost)
        for lost, won in zip(if_lost, if_won, strict=True)
    )
    for i in range(3):
        rest = np.arange(t) != i
        near = np.sqrt(((X[rest] - X[i]) ** 2).sum(axis=1)) <= 0.5
        for degree in degrees:
            if near.any():
                share, leverage, held = fitted(X[rest], y[rest], X[i], 0.5, degree)
                assert shares[i, 0, degree] == pytest.approx(min(max(share, 0), 1), abs=1e-7)
                assert worths[i, 0, degree] == pytest.approx(min(1 / leverage, held), rel=1e-7)
            else:
                assert worths[i, 0, degree] == 0.0


def test_a_window_without_trials_is_worth_nothing():
    X, y = trials(0, 50, 2)
    share, worth = fits_at(X, y, np.array([[5.0, 5.0]]), np.array([0.1]), (0, 1, 2)).estimate()
    assert (worth == 0.0).all()
    assert ((share >= 0.0) & (share <= 1.0)).all()


# The estimator.


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("degree", [1, 2])
def test_the_posterior_is_worth_as_many_trials_as_the_fit(degree, d):
    X, y = trials(1, 400, d)
    model = SmoothBetaClassifier(0.5, degree=degree, scale=None, prior=(2.0, 0.5)).fit(X, y)
    posterior = model.posterior(X[:20])
    for i in range(20):
        share, leverage, held = fitted(X, y, X[i], 0.5, degree)
        share, worth = min(max(share, 0.0), 1.0), min(1.0 / leverage, held)
        assert posterior.alpha[i] == pytest.approx(2.0 + worth * share, rel=1e-7)
        assert posterior.beta[i] == pytest.approx(0.5 + worth * (1.0 - share), rel=1e-7)


def test_degree_0_is_the_share_of_successes():
    X, y = trials(2, 300, 2)
    model = SmoothBetaClassifier(0.3, degree=0).fit(X, y)
    same = SmoothBetaClassifier(0.3).fit(X, y)
    assert np.array_equal(model.posterior(X).alpha, same.posterior(X).alpha)


@pytest.mark.parametrize("degree", [1, 2])
def test_a_straight_line_is_followed_to_the_border(degree):
    # Weights make outcomes the probabilities themselves: 1 − x, without noise.
    x = np.linspace(0.0, 1.0, 401)
    X = np.concatenate([x, x])[:, None]
    weight = 100.0 * np.concatenate([x, 1.0 - x])
    y = np.repeat([0, 1], 401)
    straight = SmoothBetaClassifier(0.3, degree=degree).fit(X, y, sample_weight=weight)
    flat = SmoothBetaClassifier(0.3, degree=0).fit(X, y, sample_weight=weight)
    at = np.array([[0.05], [0.5], [0.95]])
    assert np.abs(straight.posterior(at).mean() - (1.0 - at[:, 0])).max() < 0.01
    assert np.abs(flat.posterior(at).mean() - (1.0 - at[:, 0])).max() > 0.05


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), d=st.integers(1, 2))
def test_batches_merges_and_weights_change_rounding_only(seed, d):
    X, y = trials(seed, 120, d)
    options = {"bandwidth": 0.4, "degree": 2, "bounds": [(0, 1)] * d}
    whole = SmoothBetaClassifier(**options).fit(X, y).posterior(X[:9])
    streamed = SmoothBetaClassifier(**options)
    for start in range(0, 120, 40):
        rows = slice(start, start + 40)
        streamed.partial_fit(X[rows], y[rows], classes=[0, 1])
    halves = [
        SmoothBetaClassifier(**options).partial_fit(X[rows], y[rows], classes=[0, 1])
        for rows in (slice(0, 50), slice(50, 120))
    ]
    twice = SmoothBetaClassifier(**options).fit(X, y, sample_weight=np.full(120, 2.0))
    doubled = SmoothBetaClassifier(**options).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    for found, expected in (
        (streamed.posterior(X[:9]), whole),
        (halves[0].merge(halves[1]).posterior(X[:9]), whole),
        (twice.posterior(X[:9]), doubled.posterior(X[:9])),
    ):
        np.testing.assert_allclose(found.alpha, expected.alpha, rtol=1e-9)
        np.testing.assert_allclose(found.beta, expected.beta, rtol=1e-9)


def test_counts_and_theory_and_threads():
    X, y = trials(3, 500, 2)
    model = SmoothBetaClassifier("theory", degree=1, n_jobs=2).fit(X, y)
    counted = clone(model).fit_counts(X, y, np.ones(500))
    assert isinstance(model.posterior(X), Beta)
    assert np.array_equal(model.posterior(X).alpha, counted.posterior(X).alpha)
    assert np.array_equal(model.predict_proba(X)[:, 1], model.posterior(X).mean())


@pytest.mark.parametrize(("t", "degree"), [(1, 2), (2, 2), (3, 1)])
def test_a_few_trials_or_one_point_give_no_nonsense(t, degree):
    for X in (np.zeros((t, 2)), np.arange(2.0 * t).reshape(t, 2)):
        y = np.arange(t) % 2
        model = SmoothBetaClassifier(0.5, degree=degree).partial_fit(X, y, classes=[0, 1])
        posterior = model.posterior(np.vstack([X, X + 0.1]))
        low, high = posterior.interval(0.95)
        assert ((low >= 0.0) & (low <= high) & (high <= 1.0)).all()


@pytest.mark.parametrize(
    ("d", "options", "message"),
    [
        (4, {"degree": 2}, "degree: found 2; at most 1 is possible with 4 features"),
        (7, {"degree": 1}, "degree: found 1; at most 0 is possible with 7 features"),
        (4, {"degree": 2, "bandwidth": "auto"}, "degree: found 2; at most 1 is possible with 4"),
        (7, {"degree": 1, "bandwidth": "loo"}, "degree: found 1; at most 0 is possible with 7"),
        (1, {"degree": 3}, "degree: found 3; allowed are 'auto', 0, 1 and 2"),
        (1, {"degree": True}, "degree: found True"),
    ],
)
def test_degrees_that_are_not_possible_are_refused(d, options, message):
    X, y = trials(0, 30, d)
    with pytest.raises(ValueError, match=message):
        SmoothBetaClassifier(**{"bandwidth": 0.5} | options).fit(X, y)


def test_classes_and_contexts_need_degree_0():
    X, y = trials(0, 30, 1)
    with pytest.raises(ValueError, match="at most 0 is possible with 3 classes"):
        SmoothBetaClassifier(0.5, degree=1).fit(X, np.arange(30) % 3)
    with pytest.raises(ValueError, match="at most 0 is possible with contexts"):
        SmoothBetaClassifier(0.5, degree=1).fit(X, y, context=(0.2, 1.0))
    model = SmoothBetaClassifier(0.5, degree=1).fit(X, y)
    before = model.posterior(X).alpha
    with pytest.raises(ValueError, match="with contexts"):
        model.partial_fit(X, y, context=(0.2, 1.0))
    assert np.array_equal(model.posterior(X).alpha, before)


@pytest.mark.parametrize("width", [1e-300, 1e-100, 0.5, 1e100, 1e308])
@pytest.mark.parametrize("held", [1, 2**20, 2**61])
@pytest.mark.parametrize("degree", [1, 2])
def test_where_no_polynomial_can_be_told_the_mean_is(degree, held, width):
    """Trials at one place beside the point, so many that the ridge is nothing beside them."""
    counts = np.array([[held // 2, 0], [held - held // 2, 1]])
    places = Places(np.array([[0.1 * min(width, 1.0), -np.inf]]), counts)
    forest = Forest(1).insert(places)
    share, worth = local.estimates(
        forest, np.zeros((1, 1)), np.array([width]), np.array([degree]), weigh
    )
    assert np.isfinite(share).all()
    assert ((share >= 0.0) & (share <= 1.0)).all()
    assert ((worth > 0.0) & (worth <= held * (1 + 1e-9) + 1)).all()
