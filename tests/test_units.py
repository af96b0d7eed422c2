"""Units: points scaled, and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from betafield.units import Units, check_bounds, domain, measure

X = np.array([[1.0, -8.0, 5.0], [3.0, 8.0, 5.0], [2.0, 0.0, 5.0]])
BOUNDS = np.array([[1.0, 3.0], [-8.0, 8.0], [5.0, 5.0]])
finite = st.floats(-1e6, 1e6)


def even():
    return np.ones(len(X))


@given(hnp.arrays(np.float64, (4, 2), elements=finite), hnp.arrays(np.float64, 2, elements=finite))
def test_axes_are_the_scaled_points_turned(points, origin):
    units = Units(origin, np.array([0.3, 7.0]))
    scaled = (points - origin) / [0.3, 7.0]
    np.testing.assert_array_equal(units.scaled(points), scaled)
    np.testing.assert_array_equal(units.axes(points), scaled.T)


def test_axes_are_new_arrays_even_where_nothing_changes():
    units = Units(np.zeros(3), np.ones(3))
    assert not np.shares_memory(units.axes(X), X)


@given(hnp.arrays(np.float64, (4, 2), elements=finite), hnp.arrays(np.float64, 2, elements=finite))
def test_restored_points_are_the_points(points, origin):
    units = Units(origin, np.array([0.25, 8.0]))
    np.testing.assert_allclose(units.restored(units.axes(points)), points, atol=1e-9)


def test_a_constant_feature_is_restored_as_its_origin():
    units = Units(np.array([7.0, 0.0]), np.array([np.inf, 2.0]))
    points = np.array([[7.0, 1.0], [7.0, 4.0]])
    np.testing.assert_array_equal(units.restored(units.axes(points)), points)


def test_range_takes_the_widths_of_the_bounds():
    units = measure("range", BOUNDS, X, even)
    assert units.origin.tolist() == [1.0, -8.0, 5.0]
    assert units.unit.tolist() == [2.0, 16.0, np.inf]


def test_std_takes_the_deviations_of_the_data():
    units = measure("std", BOUNDS, X, even)
    np.testing.assert_allclose(units.unit[:2], X[:, :2].std(axis=0), rtol=1e-15)
    assert units.unit[2] == np.inf


def test_std_counts_a_row_by_its_weight():
    units = measure("std", BOUNDS, X, lambda: np.array([1.0, 0.0, 3.0]))
    np.testing.assert_allclose(units.unit[:2], X[[0, 2, 2, 2], :2].std(axis=0), rtol=1e-15)


@given(finite, st.integers(1, 50), st.sampled_from([0.7, 1.0, 3.0]))
def test_std_finds_a_constant_column_constant(value, t, weight):
    points = np.full((t, 1), value)
    units = measure("std", domain(None, points), points, lambda: np.full(t, weight))
    assert units.unit.tolist() == [np.inf]


def test_none_leaves_points_as_they_are():
    np.testing.assert_array_equal(measure(None, BOUNDS, X, even).scaled(X), X)


def test_given_units_are_used():
    units = measure((1, 2, 4), BOUNDS, X, even)
    assert units.unit.tolist() == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("scale", ["range", None, [1.0, 1.0, 1.0]])
def test_weights_are_asked_for_by_deviations_only(scale):
    def refuse():
        raise AssertionError("weights are not needed")

    measure(scale, BOUNDS, X, refuse)
    with pytest.raises(AssertionError, match="not needed"):
        measure("std", BOUNDS, X, refuse)


def test_the_domain_is_what_was_given_or_the_range_of_the_data():
    assert domain(None, X).tolist() == BOUNDS.tolist()
    assert domain([(0, 9)] * 3, X).tolist() == [[0.0, 9.0]] * 3


def test_points_on_the_bounds_are_inside():
    check_bounds(BOUNDS, X, np.ones(3, dtype=bool))
    with pytest.raises(ValueError, match=r"X row 1, column 0: found 3\.0; bounds allow \[1\.0, 2"):
        check_bounds([(1, 2), (-8, 8), (5, 5)], X, np.ones(3, dtype=bool))


def test_rows_that_are_absent_may_lie_anywhere():
    check_bounds([(1, 2), (-8, 8), (5, 5)], X, np.array([True, False, True]))
