"""Sums of cosines against the explicit matrix, and the basis against its kernel."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from betafield.process.basis import (
    ADDITIVE,
    FORMS,
    FREE,
    MOST,
    MOST_DENSE,
    QUADRATIC,
    Prior,
    basis,
)
from betafield.process.design import Dense, design, matrix

thetas = st.tuples(
    st.floats(-1.5, 1.5),
    st.lists(st.floats(np.log(0.05), np.log(5.0)), min_size=1, max_size=3),
)


def at(theta, trials=300.0, smoothness=None, form=FREE):
    sigma, lengths = theta
    prior = Prior(1.0, trials, smoothness, form=form)
    return basis(np.array([sigma, *lengths]), prior)


def plain_matrix(functions, x):
    """Return Φ̃ by its definition."""
    box = np.pi * (x + functions.margin) / (1 + 2 * functions.margin)
    return np.cos(box[:, None, :] * functions.J).prod(axis=2) * functions.root


@given(thetas, st.sampled_from(FORMS), st.integers(1, 200), st.integers(0, 2**32 - 1))
def test_sums_of_cosines_are_the_dense_products(theta, form, count, seed):
    functions = at(theta, form=form)
    rng = np.random.default_rng(seed)
    x = rng.random((count, len(theta[1])))
    P, phi = plain_matrix(functions, x), design(functions, x)
    m = len(functions.root)
    b, r, weight = rng.normal(size=m), rng.normal(size=count), rng.random(count) * 30
    S = rng.normal(size=(m, m))
    S += S.T
    near = {"rtol": 1e-9, "atol": 1e-9 * (1 + float(functions.root.sum()) ** 2)}
    np.testing.assert_allclose(matrix(functions, x), P, atol=1e-12 * functions.root.max())
    np.testing.assert_allclose(phi.values(b), P @ b, **near)
    np.testing.assert_allclose(phi.adjoint(r), P.T @ r, **near)
    np.testing.assert_allclose(phi.information(weight), np.eye(m) + P.T * weight @ P, **near)
    np.testing.assert_allclose(phi.forms(S), np.einsum("ij,jk,ik->i", P, S, P), **near)


def test_dense_agrees_with_sums_of_cosines():
    functions = at((0.2, [np.log(0.3), np.log(0.5)]))
    rng = np.random.default_rng(1)
    x = rng.random((5_000, 2))  # more than one block
    quick, dense = design(functions, x), Dense(functions, x)
    b, r = rng.normal(size=len(functions.root)), rng.normal(size=len(x))
    S = np.eye(len(b)) + 0.1
    for name, argument in (("values", b), ("adjoint", r), ("information", r**2), ("forms", S)):
        np.testing.assert_allclose(
            getattr(quick, name)(argument), getattr(dense, name)(argument), rtol=1e-8, atol=1e-8
        )


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_an_answer_does_not_depend_on_what_is_asked_with_it(d):
    functions = basis(np.array([0.3] + [np.log(0.4)] * d), Prior(1.0, 500.0))
    rng = np.random.default_rng(2)
    x, b = rng.random((9, d)), rng.normal(size=len(functions.root))
    S = np.eye(len(b)) + 0.2
    whole = design(functions, x)
    for i in range(len(x)):
        alone = design(functions, x[i : i + 1])
        assert alone.values(b)[0] == whole.values(b)[i]
        assert alone.forms(S)[0] == whole.forms(S)[i]


def gaussian(r):
    return np.exp(-0.5 * r**2)


def matern(r):
    z = np.sqrt(5.0) * np.abs(r)
    return (1 + z + z**2 / 3) * np.exp(-z)


def reflected(kernel, x, length, margin):
    """Return a kernel on a box with reflecting walls, with mean variance 1: sums over images."""
    span = 1 + 2 * margin
    z = x + margin
    images = 2 * span * np.arange(-9, 10)[:, None, None]
    both = kernel((z[:, None] - z + images) / length) + kernel((z[:, None] + z + images) / length)
    area = length * quad(kernel, -np.inf, np.inf)[0]
    return both.sum(axis=0) / (kernel(images[:, 0, 0] / length).sum() + area / (2 * span))


def inverse_share(length, margin):
    """Return 1 over the share of the constant in the mean variance of a reflected Gaussian."""
    span, area = 1 + 2 * margin, length * np.sqrt(2 * np.pi)
    apart = 2 * span * np.arange(-9, 10) / length
    return gaussian(apart).sum() * span / area + 0.5


@pytest.mark.parametrize("lengths", [[0.15], [0.4], [0.3, 0.9], [0.5, 0.4, 2.0]])
def test_prior_covariance_is_the_kernel_between_mirrors(lengths):
    functions = at((np.log(1.3), np.log(lengths)), 1e9)
    x = np.random.default_rng(3).random((30, len(lengths)))
    P = plain_matrix(functions, x)
    expected = np.full((30, 30), 1.3**2)
    for a, length in enumerate(lengths):
        expected *= reflected(gaussian, x[:, a], length, functions.margin[a])
    np.testing.assert_allclose(P @ P.T - 4.0, expected, atol=1e-5 * 4.0 ** len(lengths))


@pytest.mark.parametrize("lengths", [[0.4, 0.7, 0.3], [0.5, 1.5, 0.8, 3.0, 0.4]])
def test_prior_covariance_of_an_additive_process_is_the_sum_of_kernels(lengths):
    functions = at((np.log(1.3), np.log(lengths)), 1e9, form=ADDITIVE)
    x = np.random.default_rng(5).random((30, len(lengths)))
    P = plain_matrix(functions, x)
    # Every kernel brings a share of the constant, of which one is kept.
    expected, total = np.ones((30, 30)), 1.0
    for a, length in enumerate(lengths):
        T = inverse_share(length, functions.margin[a])
        expected += T * reflected(gaussian, x[:, a], length, functions.margin[a]) - 1.0
        total += T - 1.0
    np.testing.assert_allclose(P @ P.T - 4.0, 1.3**2 * expected / total, atol=1e-4)


def test_an_additive_process_has_no_function_of_two_features():
    functions = at((0.0, np.log([0.4] * 5)), form=ADDITIVE)
    assert np.count_nonzero(functions.J, axis=1).max() == 1
    assert {*np.flatnonzero(functions.J.any(axis=0))} == {*range(5)}


@pytest.mark.parametrize("lengths", [[0.4, 0.7], [0.5, 1.5, 3.0]])
def test_prior_covariance_of_a_quadratic_process_is_the_taylor_series_of_the_kernel(lengths):
    functions = at((np.log(1.3), np.log(lengths)), form=QUADRATIC)
    x = np.random.default_rng(6).random((30, len(lengths)))
    # Squares are cosines of a double angle, which are −1 in the middle.
    middle = np.full((1, len(lengths)), 0.5)
    P, z = plain_matrix(functions, x) - plain_matrix(functions, middle), (x - 0.5) / lengths
    z = z @ z.T
    expected = 1.3**2 * (z + 0.5 * z**2)
    np.testing.assert_allclose(P @ P.T, expected, atol=0.05 * np.abs(expected).max())


def test_prior_covariance_of_matern():
    functions = at((0.0, [np.log(0.4)]), 1e9, 2.5)
    x = np.random.default_rng(4).random((30, 1))
    P = plain_matrix(functions, x)
    expected = reflected(matern, x[:, 0], 0.4, functions.margin[0])
    np.testing.assert_allclose(P @ P.T - 4.0, expected, rtol=0.02)


@pytest.mark.parametrize(
    "prior",
    [Prior(1.0, 400.0, 2.5), *(Prior(1.0, 400.0, form=form) for form in FORMS)],
    ids=["Matérn", *FORMS],
)
def test_slope_is_that_of_the_log_variances(prior):
    theta = np.array([0.4, np.log(0.31), np.log(0.77), np.log(1.2)])
    functions = basis(theta, prior)
    for i in range(4):
        step = np.zeros(4)
        step[i] = 1e-5
        up, down = basis(theta + step, prior), basis(theta - step, prior)
        assert np.array_equal(up.J, down.J)
        slope = 2 * (np.log(up.root) - np.log(down.root)) / 2e-5
        np.testing.assert_allclose(functions.slope[i], slope, atol=1e-6)


@given(st.integers(1, 8), st.integers(0, 2**32 - 1))
def test_kept_are_the_lowest_frequencies(d, seed):
    lengths = np.exp(np.random.default_rng(seed).uniform(np.log(0.1), np.log(3.0), d))
    functions = basis(np.array([0.5, *np.log(lengths)]), Prior(1.0, 1e4))
    J = functions.J
    assert not J[0].any()
    assert len(np.unique(J, axis=0)) == len(J) <= MOST.get(d, MOST_DENSE)
    steps = (np.pi * lengths / (1 + 2 * functions.margin)) ** 2
    u = (J**2 * steps).sum(axis=1)
    kept = {tuple(j) for j in J}
    rng = np.random.default_rng(seed)
    for j in rng.integers(0, 4, (50, d)):  # none left out ranks above one kept
        if tuple(j) not in kept:
            assert (j**2 * steps).sum() >= u.max() * (1 - 1e-12)


def test_more_trials_tell_more():
    few, many = (len(at((0.0, [np.log(0.3)]), t).J) for t in (100.0, 1e6))
    assert few < many
    assert not at((0.0, [np.log(0.3)])).is_capped
    assert at((0.0, [np.log(0.05)] * 2), 1e6).is_capped
