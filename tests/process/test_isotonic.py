"""Isotonic projection, against scikit-learn's."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.isotonic import isotonic_regression

from betafield.process.isotonic import isotonic

CURVES = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, max_side=12),
    elements=st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 0.5, 1.0])),
)


@given(CURVES, st.sampled_from([1, -1]))
def test_it_is_scikit_learns(curves, sign):
    expected = [isotonic_regression(row, increasing=sign > 0) for row in curves]
    np.testing.assert_allclose(isotonic(curves, sign), expected, rtol=0.0, atol=1e-12)


@given(CURVES)
def test_monotone_curves_stay_as_they_are(curves):
    rising = np.sort(curves, axis=1)
    assert np.array_equal(isotonic(rising), rising)
    assert np.array_equal(isotonic(rising[:, ::-1], -1), rising[:, ::-1])


@given(CURVES, st.floats(0.0, 1.0))
def test_curves_one_above_the_other_stay_so(curves, by):
    rng = np.random.default_rng(0)
    above = curves + by * rng.random(curves.shape)
    assert np.all(isotonic(above) >= isotonic(curves) - 1e-12)


def test_what_is_given_is_not_written_to():
    curves = np.array([[1.0, 0.0]])
    assert isotonic(curves).tolist() == [[0.5, 0.5]]
    assert curves.tolist() == [[1.0, 0.0]]
