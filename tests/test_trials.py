"""Trials as integers that add up exactly."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from betafield import trials
from betafield.evidence import columns as layout

any_weight = st.floats(0, 1e9) | st.floats(0, 1) | st.integers(0, 100).map(float)
weights_and_outcomes = st.integers(1, 40).flatmap(
    lambda t: st.tuples(
        hnp.arrays(np.float64, t, elements=any_weight),
        hnp.arrays(np.int64, t, elements=st.integers(0, 2)),
    )
)


@given(weights_and_outcomes)
def test_tallied_weights_add_up_to_their_sum_a_class(drawn):
    weight, y = drawn
    columns = layout.tally(trials.outcomes(y, np.arange(3)), weight)
    found = layout.untallied(columns.sum(axis=1), 3)
    for c in range(3):
        exact = sum((Fraction(w) for w in weight[y == c]), Fraction(0))
        # Each weight is stored to within half of 2⁻³²; then the sum is rounded to a float.
        assert abs(Fraction(float(found[c])) - exact) <= Fraction(len(y), 2**33) + exact / 2**52


@given(hnp.arrays(np.float64, st.integers(1, 40), elements=st.integers(0, 2**40).map(float)))
def test_whole_weights_stay_integers_in_a_column_a_class(weight):
    y = np.arange(len(weight)) % 2
    columns = layout.tally(trials.outcomes(y, np.arange(2)), weight)
    assert columns.shape == (2, len(weight))
    assert layout.untallied(columns.sum(axis=1), 2).tolist() == [
        sum(int(w) for w in weight[0::2]),
        sum(int(w) for w in weight[1::2]),
    ]


def test_a_fraction_anywhere_takes_a_second_column_a_class():
    columns = layout.tally(np.array([[True, False], [False, True]]), np.array([1.5, 2.0]))
    assert columns.tolist() == [[1, 0], [0, 2], [2**31, 0], [0, 0]]


def test_no_weights_leave_the_outcomes_as_they_are():
    columns = np.array([[True, False], [False, True]])
    assert layout.tally(columns, None).tolist() == columns.tolist()


def test_a_fraction_that_rounds_up_to_one_is_one():
    columns = layout.tally(np.array([[True]]), np.array([np.nextafter(3.0, 0.0)]))
    assert layout.untallied(columns.sum(axis=1), 1).tolist() == [3.0]


def test_outcomes_have_a_row_a_class():
    found = trials.outcomes(np.array(["b", "a", "b"]), np.array(["a", "b", "c"]))
    assert found.tolist() == [[False, True, False], [True, False, True], [False] * 3]


@pytest.mark.parametrize(
    ("y", "classes", "found"),
    [
        ([2, 1, 2], None, [1, 2]),
        (["b", "a"], None, ["a", "b"]),
        ([1, 1], [3, 1], [1, 3]),
        ([1, 1], [3, 1, 1, 2], [1, 2, 3]),
    ],
)
def test_classes_are_sorted_and_each_stands_once(y, classes, found):
    assert trials.classes_of(np.array(y), classes).tolist() == found


def test_binomial_rows_are_failures_and_successes():
    assert trials.binomial([1, 0, 3], [4, 0, 3], 3).tolist() == [[3, 0, 0], [1, 0, 3]]


def test_one_count_serves_every_row():
    assert trials.binomial([1, 0, 3], 5, 3).tolist() == [[4, 5, 2], [1, 0, 3]]


def test_counts_may_come_as_whole_floats():
    assert trials.binomial(np.array([1.0, 2.0]), [2, 2], 2).tolist() == [[1, 0], [1, 2]]


@pytest.mark.parametrize(
    ("labels", "dtype"), [([0, 1], "i"), ([True, False], "b"), (["a", "b"], "U"), ([0.0, 1.0], "f")]
)
def test_labels_keep_their_kind(labels, dtype):
    assert trials.labels(labels, 2).dtype.kind == dtype


def test_a_column_of_labels_is_flattened_with_scikit_learns_warning():
    from sklearn.exceptions import DataConversionWarning

    with pytest.warns(DataConversionWarning, match="column-vector y"):
        assert trials.labels(np.array([[0], [1]]), 2).tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float16, np.float32, np.longdouble])
def test_arrays_of_numbers_are_what_their_cells_are(dtype):
    X = np.array([[0, 1], [1, 0], [1, 1]], dtype=dtype)
    asked = trials.Asked("from_dtype")
    array, features = trials.first_points("model", X, asked)
    of_cells, others = trials.first_points("model", X.astype(object), asked)
    np.testing.assert_array_equal(array, of_cells)
    assert array.dtype == of_cells.dtype == np.float64
    assert features.number == others.number == 2
