"""Linear algebra in a fixed order of summation against NumPy's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from betafield.process import linear

sizes = st.integers(1, 40)
seeds = st.integers(0, 2**32 - 1)


def positive(m, seed):
    Z = np.random.default_rng(seed).normal(size=(2 * m, m)) * np.logspace(0, -4, m)
    return np.eye(m) + 50.0 * Z.T @ Z


@given(sizes, seeds)
def test_factor_solve_and_inverse(m, seed):
    A = positive(m, seed)
    U = linear.factor(A)
    np.testing.assert_allclose(U, np.linalg.cholesky(A).T, rtol=1e-9, atol=1e-11)
    y = np.random.default_rng(seed).normal(size=m)
    np.testing.assert_allclose(linear.solve(U, y), np.linalg.solve(A, y), rtol=1e-7, atol=1e-11)
    np.testing.assert_allclose(linear.inverse(U), np.linalg.inv(A), rtol=1e-7, atol=1e-11)
    assert np.array_equal(linear.inverse(U), linear.inverse(U).T)


@given(st.integers(1, 8), st.integers(20, 60), seeds, st.sampled_from([1e-16, 1e-14, 1e-13]))
def test_of_a_few_rows_told_with_rounding_no_entry_outgrows_what_is_there(rank, m, seed, noise):
    """Entries of a factor are at most the square roots of the diagonal, however small the rest."""
    rng = np.random.default_rng(seed)
    Z = 1e8 * rng.normal(size=(rank, m))
    A = Z.T @ Z
    rounding = noise * np.abs(A).max() * rng.uniform(-1.0, 1.0, (m, m))
    A += rounding + rounding.T
    A[np.diag_indices(m)] += 1.0
    U = linear.factor(A)
    assert (np.abs(U) <= 2.0 * np.sqrt(np.abs(A).max())).all()
    assert np.abs(linear.product(np.ascontiguousarray(U.T), U) - A).max() <= 1e-6 * np.abs(A).max()


@given(st.integers(1, 300), sizes, seeds)
def test_products(count, m, seed):
    rng = np.random.default_rng(seed)
    P, weight, S = rng.normal(size=(count, m)), rng.random(count), rng.normal(size=(m, 3))
    np.testing.assert_allclose(linear.weighted_gram(P, weight), P.T * weight @ P, atol=1e-11)
    np.testing.assert_allclose(linear.product(P, S), P @ S, atol=1e-11)


def test_a_row_of_a_product_does_not_depend_on_the_others():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(37, 21)), rng.normal(size=(21, 21))
    whole = linear.product(A, B)
    for i in range(len(A)):
        assert np.array_equal(linear.product(A[i : i + 1], B)[0], whole[i])
