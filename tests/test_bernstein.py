"""Bernstein polynomials against rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betafield import bernstein

UNIT = st.integers(0, 64).map(lambda k: k / 64)
ROWS = st.lists(UNIT, min_size=1, max_size=6)
PLACES = [0.0, 0.125, 0.5, 0.6875, 1.0]


def exact(coefficients, p):
    """Return f(p) by the definition, in rational numbers."""
    n, p = len(coefficients) - 1, Fraction(p)
    terms = (
        Fraction(b) * math.comb(n, k) * p**k * (1 - p) ** (n - k)
        for k, b in enumerate(coefficients)
    )
    return sum(terms, Fraction(0))


def close(found, wanted):
    assert found == pytest.approx(float(wanted), rel=1e-12, abs=1e-13)


@given(ROWS)
def test_values_are_the_definition(row):
    found = bernstein.value(np.array(row), np.array(PLACES))
    for p, value in zip(PLACES, found, strict=True):
        close(value, exact(row, p))


def test_values_broadcast():
    rows = np.array([[0.0, 1.0], [1.0, 0.0]])
    found = bernstein.value(rows, np.array([[0.25], [0.5], [1.0]]))
    assert found.tolist() == [[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]]


@given(ROWS, st.sampled_from([0.125, 0.5, 0.6875]))
def test_values_at_log_odds_are_those_at_their_probability(row, p):
    u = np.array([math.log(p / (1 - p))])
    close(bernstein.value_at_log_odds(np.array([row]), u)[0], exact(row, p))


@pytest.mark.parametrize("u", [-1e4, -800.0, 800.0, 1e4])
def test_signs_are_kept_where_values_underflow(u):
    row = np.array([[-1.0, 0.0, 0.0, 0.0, 1.0]])
    assert bernstein.scaled_at_log_odds(row, np.array([u]))[0] == pytest.approx(np.sign(u))
    assert bernstein.value_at_log_odds(row, np.array([u]))[0] == pytest.approx(np.sign(u))
    inner = np.array([[0.0, -1.0, 0.0]])
    assert bernstein.scaled_at_log_odds(inner, np.array([u]))[0] < 0.0


@given(ROWS, st.integers(0, 5))
def test_elevation_keeps_the_function(row, more):
    found = bernstein.elevated(np.array(row), len(row) - 1 + more)
    assert len(found) == len(row) + more
    for p in PLACES:
        close(float(exact(found.tolist(), p)), exact(row, p))


@given(ROWS)
def test_powers_come_back(row):
    n = len(row) - 1
    powers = [
        sum(
            Fraction(row[k]) * math.comb(n, k) * math.comb(n - k, j - k) * (-1) ** (j - k)
            for k in range(j + 1)
        )
        for j in range(n + 1)
    ]
    found = bernstein.from_powers(np.array([float(c) for c in powers]))
    assert found == pytest.approx(row, abs=1e-10)


@given(UNIT, UNIT, st.integers(1, 60), UNIT)
def test_lines_are_lines_in_every_degree(low, high, degree, bend):
    line = bernstein.elevated(np.array([[low, high]]), degree)
    assert bernstein.is_line(line).tolist() == [True]
    if degree > 1:
        line[0, 1] += 0.001 + bend
        assert bernstein.is_line(line).tolist() == [False]


@given(ROWS)
def test_halves_are_the_function_on_half_the_interval(row):
    left, right = bernstein.halves(np.array([row]))
    for p in PLACES:
        close(float(exact(left[0].tolist(), p)), exact(row, p / 2))
        close(float(exact(right[0].tolist(), p)), exact(row, (1 + p) / 2))


@given(ROWS.filter(lambda row: len(row) > 1))
def test_the_derivative_is_the_limit_of_differences(row):
    found = bernstein.derivative(np.array(row))
    n, h = len(row) - 1, Fraction(1, 10**9)
    for p in (0.125, 0.5, 0.6875):
        slope = (exact(row, Fraction(p) + h) - exact(row, Fraction(p) - h)) / (2 * h)
        assert float(exact(found.tolist(), p)) == pytest.approx(float(slope), abs=1e-9 * n**3)


@given(ROWS, ROWS)
def test_products_and_compositions_are_those_of_the_values(one, other):
    times = bernstein.product(np.array([one]), np.array([other]))[0]
    inside = bernstein.composed(np.array([one]), np.array([other]))[0]
    assert len(times) == len(one) + len(other) - 1
    for p in PLACES:
        close(float(exact(times.tolist(), p)), exact(one, p) * exact(other, p))
        close(float(exact(inside.tolist(), p)), exact(one, exact(other, p)))


def test_binomials_are_those_of_whole_numbers():
    for n in (0, 1, 7, 60):
        wanted = [math.log(math.comb(n, k)) for k in range(n + 1)]
        assert bernstein.log_binomials(n) == pytest.approx(wanted, rel=1e-12, abs=1e-12)
