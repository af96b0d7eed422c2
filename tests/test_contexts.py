"""Contexts: their models, from numbers and columns, and refusals of impossible ones."""

import re
from fractions import Fraction
from math import comb

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from betafield import contexts

rates = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.5, 1.0])
columns = hnp.arrays(np.float64, st.integers(1, 6), elements=rates)
pi = np.linspace(0.0, 1.0, 11)


def rows():
    """Return contexts of one degree for several trials."""
    return st.integers(0, 5).flatmap(
        lambda p: hnp.arrays(
            np.float64, st.tuples(st.integers(1, 4), st.just(p + 1)), elements=rates
        )
    )


def exact(context, p):
    """Return the success probability by its definition, in fractions."""
    n, p = len(context) - 1, Fraction(p)
    return sum(
        Fraction(b) * comb(n, k) * p**k * (1 - p) ** (n - k) for k, b in enumerate(context.tolist())
    )


def refused(message):
    return pytest.raises(ValueError, match=re.escape(message))


# Models ------------------------------------------------------------------------------------


@given(rates, rates)
def test_affine_is_gain_times_p_plus_offset(low, high):
    context = contexts.affine(high - low, low)
    np.testing.assert_allclose(
        contexts.probability(context, pi), (high - low) * pi + low, atol=1e-15
    )


def test_rounding_of_complementary_rates_is_forgiven():
    shares = np.linspace(0.0, 1.0, 1001)
    assert contexts.affine(1.0 - shares + 4e-16, shares).max() == 1.0
    assert contexts.affine(-shares - 4e-16, shares).min() == 0.0
    assert contexts.polynomial([0.0, 1.0 + 4e-16]).max() == 1.0
    contexts.guess_lapse(shares, 1.0 - shares + 1e-16 * (shares > 0.1))


@given(rates, rates)
def test_guess_lapse(guess, other):
    lapse = (1.0 - guess) * other
    expected = guess + (1 - guess - lapse) * pi
    context = contexts.guess_lapse(guess, lapse)
    np.testing.assert_allclose(contexts.probability(context, pi), expected, atol=1e-15)


@given(rates, rates)
def test_diagnostic(se, sp):
    # Bayes: true positives and false positives.
    expected = se * pi + (1 - sp) * (1 - pi)
    np.testing.assert_allclose(
        contexts.probability(contexts.diagnostic(se, sp), pi), expected, atol=1e-15
    )


@given(rates)
def test_attenuated_and_background(rate):
    np.testing.assert_allclose(
        contexts.probability(contexts.attenuated(rate), pi), rate * pi, atol=1e-15
    )
    np.testing.assert_allclose(
        contexts.probability(contexts.background(rate), pi), 1 - (1 - rate) * (1 - pi), atol=1e-15
    )


@given(rates, rates)
def test_randomized_response(truth, yes):
    expected = truth * pi + (1 - truth) * yes
    context = contexts.randomized_response(truth, yes)
    assert context.min() >= 0.0
    assert context.max() <= 1.0
    np.testing.assert_allclose(contexts.probability(context, pi), expected, atol=2e-15)


def test_guessing_without_lapses_and_a_fair_coin_are_the_defaults():
    np.testing.assert_array_equal(contexts.guess_lapse(0.25), [0.25, 1.0])
    np.testing.assert_array_equal(contexts.randomized_response(0.5), [0.25, 0.75])


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=6),
    st.lists(rates, min_size=6, max_size=6),
    rates,
)
def test_pools_of_any_sizes(sizes, se, sp):
    context = contexts.pooled(sizes, se[: len(sizes)], sp)
    assert context.shape == (len(sizes), max(sizes) + 1)
    for row, size, hit in zip(context, sizes, se, strict=False):
        found = 1 - (1 - pi) ** size
        np.testing.assert_allclose(
            contexts.probability(row, pi), (1 - sp) * (1 - found) + hit * found, atol=1e-14
        )


def test_pools_of_one_size_have_the_plain_coefficients():
    np.testing.assert_array_equal(contexts.pooled(4), [0, 1, 1, 1, 1])
    np.testing.assert_array_equal(contexts.pooled([2, 2], 0.75, 0.5), [[0.5, 0.75, 0.75]] * 2)


@given(rows())
def test_polynomials_come_back_from_their_powers(context):
    degree = context.shape[1] - 1
    powers = [
        [
            float(
                sum(
                    Fraction(b) * comb(degree, k) * comb(degree - k, j - k) * (-1) ** (j - k)
                    for k, b in enumerate(row[: j + 1])
                )
            )
            for j in range(degree + 1)
        ]
        for row in context.tolist()
    ]
    np.testing.assert_allclose(contexts.polynomial(powers), context, atol=1e-13)


def test_polynomials_are_raised_until_their_coefficients_fit():
    # A hump up to 0.9: within [0, 1], but with the coefficient 1.6 in degree 2.
    powers = [0.2, 2.8, -2.8]
    context = contexts.polynomial(powers)
    assert len(context) > 3
    assert (context >= 0).all()
    assert (context <= 1).all()
    np.testing.assert_allclose(
        contexts.probability(context, pi), np.polynomial.Polynomial(powers)(pi), rtol=1e-13
    )


@pytest.mark.parametrize(
    ("powers", "message"),
    [
        ([0.5, 0.7], "coefficients: success probability is 1.2 at π = 1; it must stay within"),
        ([-0.1, 0.7], "coefficients: success probability is -0.1 at π = 0"),
        ([0.0, 6.0, -6.0], "coefficients: success probability is 1.5 at π = 0.5"),
        ([[0.0, 1.0, 0.0], [0.9, -4.0, 4.0]], "coefficients row 1: success probability is -0.1 at"),
        ([0.0, 4.0, -4.0], "coefficients: success probability is 1 at π = 0.5, too near to 1 for"),
        ([0.75, 1.5, -2.25], "success probability is 1 at π = 0.333333, too near to 1 for"),
        ([1.0, -4.0, 4.0], "coefficients: success probability is 0 at π = 0.5, too near to 0 for"),
        ([0.5, 0.7, 5e-324, 0.0], "coefficients: success probability is 1.2 at π = 1"),
        ([1.5, 0.0], "coefficients: success probability is 1.5 at π = 0"),
        ([0.0, np.nan], "coefficients column 1 (of π^1): found NaN"),
        ([[0.0, 1.0], [np.inf, 0.0]], "coefficients row 1, column 0 (of π^0): found inf"),
        ([], "coefficients: found an array of shape (0,)"),
        (0.5, "coefficients: found an array of shape ()"),
        ([[[0.5]]], "coefficients: found an array of shape (1, 1, 1)"),
    ],
)
def test_polynomials_that_leave_the_unit_interval(powers, message):
    with refused(message):
        contexts.polynomial(powers)


# Numbers and columns -----------------------------------------------------------------------

constructors = [
    (contexts.affine, (0.5, 0.25)),
    (contexts.guess_lapse, (0.5, 0.25)),
    (contexts.diagnostic, (0.75, 0.5)),
    (contexts.attenuated, (0.75,)),
    (contexts.background, (0.25,)),
    (contexts.randomized_response, (0.75, 0.25)),
    (contexts.pooled, (3, 0.75, 0.5)),
]


@pytest.mark.parametrize(("make", "numbers"), constructors)
def test_numbers_make_one_context_and_columns_one_a_trial(make, numbers):
    one = make(*numbers)
    assert one.shape == ((4,) if make is contexts.pooled else (2,))
    for chosen in range(len(numbers)):
        mixed = [np.full(5, x) if i == chosen else x for i, x in enumerate(numbers)]
        np.testing.assert_array_equal(make(*mixed), np.tile(one, (5, 1)))
    np.testing.assert_array_equal(make(*([x] for x in numbers)), one[None])
    assert make(*([] for _ in numbers)).shape == (0, 2)


@pytest.mark.parametrize(
    "column",
    [list, tuple, np.array, pd.Series, pl.Series, pa.array, lambda x: pa.chunked_array([x])],
    ids=["list", "tuple", "numpy", "pandas", "polars", "pyarrow", "chunked"],
)
def test_columns_of_any_library(column):
    guess = column([0.5, 0.25])
    np.testing.assert_array_equal(contexts.guess_lapse(guess, 0.25), [[0.5, 0.75], [0.25, 0.75]])


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_of_coefficients(table):
    given_table = table({"at 0": [0.0, 0.5], "at 1": [1.0, 1.0]})
    np.testing.assert_array_equal(contexts.checked(given_table), [[0.0, 1.0], [0.5, 1.0]])


@pytest.mark.parametrize("column", [pd.Series, pl.Series, pa.array])
def test_missing_values_are_named(column):
    with refused("rate row 1: found NaN; a finite number is needed"):
        contexts.background(column([0.5, None, 0.25]))


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (contexts.affine, (0.8, 0.4), "success probability is 1.2000000000000002 at π = 1 (gain"),
        (contexts.affine, ([0.5, -0.5], 0.4), "gain and offset row 1: success probability is -0.0"),
        (contexts.affine, (0.5, -0.1), "gain and offset: success probability is -0.1 at π = 0"),
        (contexts.guess_lapse, (0.5, [0.1, 0.6]), "guess and lapse row 1: found guess 0.5 and"),
        (contexts.guess_lapse, (1.5,), "guess: found 1.5; a probability within [0, 1] is needed"),
        (contexts.diagnostic, (0.9, [0.9, -0.1]), "specificity row 1: found -0.1"),
        (contexts.attenuated, ([1.0, 1.1],), "factor row 1: found 1.1"),
        (contexts.background, (float("nan"),), "rate: found NaN"),
        (contexts.background, (float("inf"),), "rate: found inf"),
        (contexts.background, ([[0.5]],), "rate: found an array of shape (1, 1)"),
        (contexts.randomized_response, (0.5, 2.0), "yes: found 2.0"),
        (contexts.pooled, (0,), "size: found 0.0; a whole number from 1 to 1000 is needed"),
        (contexts.pooled, ([1, 2.5],), "size row 1: found 2.5"),
        (contexts.pooled, (2, 1.5), "sensitivity: found 1.5"),
        (contexts.pooled, (2, 1.0, -0.5), "specificity: found -0.5"),
        (contexts.diagnostic, ([0.9, 0.8], [0.9]), "found 2 rows in sensitivity and 1 rows in"),
        (contexts.attenuated, (["half"],), "factor row 0: found 'half'"),
    ],
)
def test_bad_arguments(make, arguments, message):
    with refused(message):
        make(*arguments)


def test_bad_type_stays_a_type_error():
    with pytest.raises(TypeError, match=r"rate: .*; every value must be a number"):
        contexts.background({"rate": 0.5})


# Operations on any context -----------------------------------------------------------------


@given(rows(), rates)
@example(np.ones((1, 6)), 0.1)
def test_probability_is_the_definition(context, p):
    found = contexts.probability(context, p)
    expected = [float(exact(row, p)) for row in context]
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-300)
    assert (found <= 1.0).all()


def test_probability_broadcasts():
    context = contexts.pooled([1, 2, 3])
    assert contexts.probability([0.0, 1.0], 0.25).shape == ()
    assert contexts.probability(context, 0.25).shape == (3,)
    assert contexts.probability(context, [0.1, 0.2, 0.3]).shape == (3,)
    assert contexts.probability(context, pi[:, None]).shape == (11, 3)
    assert contexts.probability([[0.5], [0.25]], pi[:, None]).shape == (11, 2)
    with refused("p: found shape (2,), which does not broadcast against contexts of shape (3,)"):
        contexts.probability(context, [0.1, 0.2])
    with refused("p row 1: found 1.5"):
        contexts.probability(context, [0.5, 1.5, 0.0])


@given(rows(), st.integers(0, 40))
def test_elevation_keeps_the_function(context, more):
    degree = context.shape[1] - 1 + more
    raised = contexts.elevate(context, degree)
    assert raised.shape == (len(context), degree + 1)
    contexts.checked(raised)
    np.testing.assert_allclose(
        contexts.probability(raised, pi[:, None]),
        contexts.probability(context, pi[:, None]),
        atol=1e-14,
    )


def test_elevation_goes_up_only_and_leaves_its_argument_alone():
    context = np.array([0.0, 0.5, 1.0])
    contexts.elevate(context, 2)[0] = 1.0
    assert context[0] == 0.0
    with refused("degree: found 1; the context has degree 2, and can only be raised"):
        contexts.elevate(context, 1)


@given(rows(), rates)
def test_mirrored_is_the_failure_of_the_complement(context, p):
    failures = contexts.probability(contexts.mirrored(context), p)
    expected = [float(1 - exact(row, 1 - Fraction(p))) for row in context]
    np.testing.assert_allclose(failures, expected, atol=1e-15)


def test_mirroring_swaps_offset_and_complement():
    # Gain A, offset B become A and 1 − A − B.
    mirrored = contexts.mirrored(contexts.affine(0.5, 0.125))
    np.testing.assert_array_equal(mirrored, contexts.affine(0.5, 0.375))


@given(rows(), st.lists(st.booleans(), min_size=4, max_size=4))
def test_likelihood_is_that_of_the_outcome(context, outcomes):
    success = outcomes[: len(context)]
    found = contexts.likelihood(context, success)
    for row, b, won in zip(found, context, success, strict=True):
        np.testing.assert_array_equal(row, b if won else 1.0 - b)


def test_likelihood_of_one_context_or_one_outcome():
    np.testing.assert_array_equal(contexts.likelihood([0.25, 1.0], False), [0.75, 0.0])
    np.testing.assert_array_equal(
        contexts.likelihood([[0.25, 1.0], [0.0, 0.5]], True), [[0.25, 1.0], [0.0, 0.5]]
    )
    np.testing.assert_array_equal(
        contexts.likelihood([0.25, 1.0], [1, 0]), [[0.25, 1.0], [0.75, 0.0]]
    )
    with refused("success: found 2 rows where context has shape (3, 2); one outcome per row"):
        contexts.likelihood(np.ones((3, 2)), [True, False])
    with refused("success row 1: found 0.5; True or False is needed"):
        contexts.likelihood([0.25, 1.0], [1, 0.5])


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ([0.2, 1.2], "context column 1 (success probability at π = 1): found 1.2; it must be"),
        ([[0, 1], [-0.5, 1]], "context row 1, column 0 (success probability at π = 0): found -0.5"),
        ([0.0, np.nan, 1.0], "context column 1 (Bernstein coefficient 1 of degree 2): found NaN"),
        (0.5, "context: found an array of shape ()"),
        (np.empty((3, 0)), "context: found an array of shape (3, 0)"),
        ([["a", "b"]], "context row 0, column 0: found 'a'"),
    ],
)
def test_bad_contexts(context, message):
    with refused(message):
        contexts.checked(context)
