"""Checks of arguments: numbers, arrays and names are accepted, or refused by name."""

import datetime
import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betafield import checks

BIG = 10**400
MASKED = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
NO_NUMBERS = {
    "text": "a",
    "digits": "09",
    "bytes": b"1",
    "None": None,
    "NaN": math.nan,
    "infinity": math.inf,
    "a huge whole number": BIG,
    "more digits than Python writes": 10**5000,
    "a huge fraction": Fraction(BIG, 3),
    "a complex number": 1j,
    "True": True,
    "np.True_": np.True_,
    "a date": datetime.date(2024, 1, 1),
    "a date of NumPy": np.datetime64("2024-01-01"),
    "a span of time": np.timedelta64(3, "s"),
    "no date": np.datetime64("NaT", "s"),
    "a masked value": np.ma.masked,
    "an array": np.ones(2),
    "an array of one": np.ones(1),
    "an array of no axes": np.array(1.0),
    "a list": [1.0],
    "a set": {1.0},
    "a dict": {},
    "a function": len,
    "a generator": (i for i in range(3)),
    "a table": pd.DataFrame({"a": [1.0]}),
    "NA": pd.NA,
}


@pytest.mark.parametrize("case", NO_NUMBERS)
@pytest.mark.parametrize(
    "check",
    [
        checks.number,
        checks.positive,
        checks.probability,
        checks.share,
        checks.whole,
        lambda name, value: checks.one_of(name, value, ("x", 3)),
        lambda name, value: checks.instance(name, value, type(self_made), "one of ours is needed"),
    ],
)
def test_what_is_no_number_is_refused_by_name(check, case):
    with pytest.raises(
        (ValueError, TypeError), match=r"^size: found .*(needed|possible)$|^size: .*allowed"
    ):
        check("size", NO_NUMBERS[case])


class Unspeakable:
    def __repr__(self):
        raise RuntimeError("I will not say")


self_made = Unspeakable()


def test_what_cannot_be_shown_is_named_by_its_type():
    with pytest.raises(ValueError, match=r"^n: found <Unspeakable instance at .*>; a positive"):
        checks.positive("n", self_made)


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(0, 1), st.floats(0, 1))
def test_a_number_is_returned_as_it_is_within_its_limits(value, low, high):
    assert checks.number("x", value) == value
    for limits, good in [
        ({"low": low, "high": high}, low <= value <= high),
        ({"above": low, "below": high}, low < value < high),
    ]:
        if good:
            assert checks.number("x", value, **limits) == value
        else:
            with pytest.raises(ValueError, match=r"^x: found"):
                checks.number("x", value, **limits)


@pytest.mark.parametrize("value", [np.float32(0.5), Fraction(1, 2), 0.5, np.longdouble(0.5)])
def test_numbers_of_every_type_are_numbers(value):
    found = checks.share("x", value)
    assert found == 0.5
    assert type(found) is float


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_whole_numbers_of_every_type_are_whole(value):
    found = checks.whole("n", value, low=3, high=3)
    assert found == 3
    assert type(found) is int


@pytest.mark.parametrize("value", [2, 4, 3.0, BIG, -BIG])
def test_whole_numbers_outside_are_refused(value):
    with pytest.raises(ValueError, match=r"^n: found .*; a whole number from 3 to 3 is needed$"):
        checks.whole("n", value, low=3, high=3)


def test_one_of_several_is_told_with_the_others():
    assert checks.one_of("degree", np.int64(1), ("auto", 0, 1)) == 1
    assert checks.one_of("degree", None, (None, 1)) is None
    with pytest.raises(ValueError, match=r"^degree: found 'b'; allowed are 'auto', 0 and 1$"):
        checks.one_of("degree", "b", ("auto", 0, 1))
    with pytest.raises(ValueError, match=r"^degree: found True; allowed are 'auto', 0 and 1$"):
        checks.one_of("degree", True, ("auto", 0, 1))


def test_a_flag_is_true_or_false():
    assert checks.flag("all", np.False_) is False
    for value in (0, 1, None, "yes", np.ones(2)):
        with pytest.raises(ValueError, match=r"^all: found .*; True or False is needed$"):
            checks.flag("all", value)


# Arrays.

BAD_ARRAYS = {
    "masked": (MASKED, "w row 1: found a masked value"),
    "masked in a table": (np.ma.array(np.eye(2), mask=np.eye(2)), "w row 0, column 0: found a m"),
    "masked rows in a list": ([MASKED, MASKED], "w row 0, column 1: found a masked value"),
    "masked in a list": ([1.0, np.ma.masked], "w row 1: found a masked value"),
    "masked in lists": ([[1.0], [np.ma.masked]], "w row 1, column 0: found a masked value"),
    "nothing but masked": (np.ma.masked, "w: found a masked value"),
    "complex": ([1.0, 2j], "w row 1: found 2j"),
    "dates": (np.array(["2024-01-01"], "M8[D]"), "w row 0: found 2024-01-01"),
    "no date": (np.array(["NaT"], "M8[D]"), "w row 0: found NaT"),
    "spans": (np.array([3], "m8[s]"), "w row 0: found 3 seconds"),
    "days": ([datetime.date(2024, 1, 1)], "w row 0: found datetime.date(2024, 1, 1)"),
    "digits": ([0.5, "09"], "w row 1: found '09'"),
    "digits in an array": (np.array(["0.5", "09"]), "w row 0: found '0.5'"),
    "bytes": (np.array([b"1"]), "w row 0: found b'1'"),
    "huge": ([1, BIG], "w row 1: found 1000"),
    "ragged": ([[1.0], [1.0, 2.0]], "w: found rows of different lengths"),
    "ragged objects": (np.array([[1.0], [1.0, 2.0]], dtype=object), "w row 0: found [1.0]"),
    "a set": ({1.0}, "w: found {1.0}"),
    "a generator": ((i for i in [1.0]), "w: found <generator"),
    "a record": (np.zeros(2, dtype=[("a", float)]), "w: found array("),
    "dates of pandas": (pd.Series(pd.to_datetime(["2024-01-01"])), "w row 0: found 2024-01-01"),
    "dates of polars": (pl.Series([datetime.date(2024, 1, 1)]), "w row 0: found 2024-01-01"),
    "a lazy table": (pl.LazyFrame({"a": [1.0]}), "w: found a lazy frame; call its .collect()"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_arrays_of_other_things_are_refused_with_their_row(case):
    values, said = BAD_ARRAYS[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((ValueError, TypeError)) as caught:
            checks.array("w", values)
    assert str(caught.value).startswith(said), caught.value


NULLS = {
    "None": [1.0, None],
    "pandas' NA": pd.array([1, None], dtype="Int64"),
    "pandas' nullable column": pd.Series([1.0, None], dtype="Float64"),
    "pandas' Arrow column": pd.Series([1.0, None], dtype="float64[pyarrow]"),
    "NA among objects": np.array([1.0, pd.NA], dtype=object),
    "polars": pl.Series([1, None]),
    "pyarrow": pa.chunked_array([[1, None]]),
}


@pytest.mark.parametrize("case", NULLS)
def test_what_is_missing_is_nan_and_not_finite(case):
    assert np.isnan(checks.array("w", NULLS[case])).tolist() == [False, True]
    with pytest.raises(ValueError, match=r"^w row 1: found NaN; every value must be a finite"):
        checks.finite("w", NULLS[case])


@given(st.recursive(st.floats(-1e9, 1e9) | st.integers() | st.booleans(), st.lists, max_leaves=12))
def test_lists_of_numbers_are_what_numpy_makes_of_them(values):
    try:
        expected = np.array(values, dtype=np.float64)
    except (ValueError, TypeError):
        with pytest.raises((ValueError, TypeError), match=r"^w"):
            checks.array("w", values)
    else:
        np.testing.assert_array_equal(checks.array("w", values), expected)


def test_numbers_of_other_types_are_numbers():
    found = checks.array("w", [Decimal("0.5"), Fraction(1, 4), np.float32(2.0), 2**100, True])
    assert found.tolist() == [0.5, 0.25, 2.0, 2.0**100, 1.0]
    nothing_hidden = np.ma.array([1.0, 2.0], mask=[False, False])
    assert checks.array("w", nothing_hidden).tolist() == [1.0, 2.0]
    assert not isinstance(checks.array("w", nothing_hidden), np.ma.MaskedArray)


def test_lists_within_themselves_are_refused():
    endless: list = []
    endless.append(endless)
    with pytest.raises((ValueError, TypeError), match=r"^w"):
        checks.array("w", endless)


def test_shapes_are_told_in_words_if_there_are_some():
    with pytest.raises(ValueError, match=r"^at: found shape \(2,\); \(any, 2\) is needed$"):
        checks.finite("at", [1.0, 2.0], shape=(None, 2))
    with pytest.raises(ValueError, match=r"^at: found shape \(1, 3\); two numbers, please$"):
        checks.finite("at", [[1.0, 2.0, 3.0]], shape=(2,), needed="two numbers, please")


def test_seeds_are_whole_numbers_or_generators():
    same = np.random.default_rng(3)
    assert checks.generator("seed", same) is same
    assert checks.generator("seed", 3).random() == np.random.default_rng(3).random()
    one, other = (checks.generator("seed", np.random.RandomState(3)) for _ in range(2))
    assert one.random() == other.random()
    within: list = []
    within.append(within)  # which crashes the process if passed to NumPy
    for value in (within, [1, 2], -1, 1.0, "a", np.ma.masked, True):
        with pytest.raises(ValueError, match=r"^seed: found .*; a whole number from 0 on"):
            checks.generator("seed", value)


@pytest.mark.parametrize("values", ["ab", b"ab", {"a": 1}, 3, None, np.array(3), np.ma.masked])
def test_what_cannot_be_gone_through_has_no_items(values):
    with pytest.raises(TypeError, match=r"^names: found .*; a list is needed$"):
        checks.items("names", values, "a list is needed")
