"""RadiusNeighbors against scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import RadiusNeighborsClassifier

from betafield.baselines import RadiusNeighbors


def trials(t, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(t, d))
    y = rng.uniform(size=t) < X[:, 0]
    y[:2] = False, True
    return X, y


@given(
    t=st.integers(2, 80),
    d=st.integers(1, 4),
    radius=st.floats(0.05, 2.0),
    seed=st.integers(0, 1000),
)
def test_equal_to_scikit_learn_where_trials_are_near(t, d, radius, seed):
    X, y = trials(t, d, seed)
    theirs = RadiusNeighborsClassifier(radius, algorithm="brute").fit(X, y)
    ours = RadiusNeighbors(radius).fit(X, y)
    # At the trials themselves, so that every window contains at least one.
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-15)


def test_half_where_no_trial_is_near():
    X, y = trials(50, 2, seed=3)
    model = RadiusNeighbors(0.2).fit(X, y)
    assert model.predict_proba([[5.0, 5.0], [-0.3, -0.3]]).tolist() == [[0.5, 0.5]] * 2
    assert model.predict([[5.0, 5.0]]).tolist() == [False]


def test_a_trial_on_the_border_is_near():
    model = RadiusNeighbors(0.5).fit([[0.0], [2.0]], [0, 1])
    assert model.predict_proba([[1.5], [1.499]])[:, 1].tolist() == [1.0, 0.5]


@pytest.mark.parametrize(
    ("t", "d", "lipschitz", "width"),
    [(1000, 1, 1.0, 0.1), (10_000, 2, 1.0, 0.1), (125, 1, 8.0, 0.05)],
)
def test_the_width_by_theory(t, d, lipschitz, width):
    # Δ = L^(−2/(d+2)) t^(−1/(d+2)): roots of round numbers.
    X, y = trials(t, d, seed=0)
    model = RadiusNeighbors(lipschitz=lipschitz).fit(X, y)
    assert model.bandwidth_ == pytest.approx(width)
    given_width = RadiusNeighbors(model.bandwidth_).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), given_width.predict_proba(X))


def test_units_are_the_users():
    X, y = trials(300, 2, seed=5)
    small, large = RadiusNeighbors(0.1).fit(X, y), RadiusNeighbors(102.4).fit(X * 1024.0, y)
    np.testing.assert_array_equal(small.predict_proba(X), large.predict_proba(X * 1024.0))


def test_there_is_no_posterior():
    assert not hasattr(RadiusNeighbors(), "posterior")
