"""Priors: from a mean and a variance, and as shapes per class."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betafield import Prior
from betafield.priors import shapes

ANYWHERE = np.array([[0.0], [0.25], [1.0]])


@given(st.floats(1e-6, 1 - 1e-6), st.floats(1e-6, 1 - 1e-6))
def test_the_beta_has_the_mean_and_the_variance_asked_for(mean, share):
    variance = share * mean * (1 - mean)
    alpha, beta = (shape[0] for shape in Prior.from_mean_variance(mean, variance)(ANYWHERE))
    size = alpha + beta
    assert alpha / size == pytest.approx(mean, rel=1e-9)
    assert alpha * beta / (size**2 * (size + 1)) == pytest.approx(variance, rel=1e-9)


def test_the_uniform_prior_has_mean_one_half_and_variance_one_twelfth():
    alpha, beta = Prior.from_mean_variance(0.5, 1 / 12)(ANYWHERE)
    np.testing.assert_allclose(alpha, 1.0, rtol=1e-14)
    np.testing.assert_allclose(beta, 1.0, rtol=1e-14)


def test_mean_and_variance_may_vary_from_point_to_point():
    # Beta(1, 1) and Beta(2, 2), whose variance is 1/20, where x is 0 and 1.
    prior = Prior.from_mean_variance(
        lambda X: np.full(len(X), 0.5), lambda X: np.where(X[:, 0] < 0.5, 1 / 12, 1 / 20)
    )
    alpha, beta = prior(np.array([[0.0], [1.0]]))
    np.testing.assert_allclose(alpha, [1.0, 2.0], rtol=1e-14)
    np.testing.assert_allclose(beta, [1.0, 2.0], rtol=1e-14)


def test_a_prior_with_one_bad_point_names_that_point():
    prior = Prior.from_mean_variance(lambda X: X[:, 0] / 2 + 0.5, 0.01)
    with pytest.raises(ValueError, match=r"prior row 2: found mean 1 and variance 0\.01"):
        prior(ANYWHERE)


def test_priors_with_equal_fields_are_equal():
    assert Prior.from_mean_variance(0.5, 0.01) == Prior(0.5, 0.01)


def test_shapes_come_in_the_order_of_the_classes():
    assert shapes((2.0, 3.0), ANYWHERE, 2).tolist() == [[3.0, 2.0]]
    assert shapes((2.0, 3.0, 4.0), ANYWHERE, 3).tolist() == [[2.0, 3.0, 4.0]]


def test_a_function_gives_a_row_of_shapes_a_point():
    found = shapes(lambda X: (1 + X[:, 0], 2.0), ANYWHERE, 2)
    assert found.tolist() == [[2.0, 1.0], [2.0, 1.25], [2.0, 2.0]]


def test_two_equal_shapes_are_one_for_every_class():
    assert shapes((0.5, 0.5), ANYWHERE, 4).tolist() == [[0.5] * 4]


def test_two_equal_functions_are_one_for_every_class():
    found = shapes(lambda X: (1 + X[:, 0], 1 + X[:, 0]), ANYWHERE, 3)
    assert found.tolist() == [[1.0] * 3, [1.25] * 3, [2.0] * 3]


def test_a_list_and_integers_are_a_pair_too():
    assert shapes([1, 2], ANYWHERE, 2).tolist() == [[2.0, 1.0]]
    assert shapes(np.array([1, 2]), ANYWHERE, 2).tolist() == [[2.0, 1.0]]


def test_a_shape_counts_no_more_trials_than_can_be_counted():
    with pytest.raises(ValueError, match=r"prior: found a shape of 1e\+100; shapes must be"):
        shapes((1e100, 1.0), ANYWHERE, 2)
