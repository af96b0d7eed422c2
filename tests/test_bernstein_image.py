"""Polynomials in Bernstein form, against exact fractions."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from flint import fmpq, fmpq_poly
from hypothesis import given, settings
from hypothesis import strategies as st

from betafield import bernstein, contexts

rates = st.floats(0, 1)


def exact(row, pi):
    """Return Σ_k b_k binom(p, k) π^k (1−π)^(p−k) without any rounding."""
    pi, p = Fraction(pi), len(row) - 1
    terms = (Fraction(b) * comb(p, k) * pi**k * (1 - pi) ** (p - k) for k, b in enumerate(row))
    return sum(terms)


@given(st.lists(rates, min_size=1, max_size=9), st.tuples(rates, rates).map(sorted), st.data())
@settings(deadline=None)
def test_no_value_lies_outside_of_an_image(row, ends, data):
    low, high = (float(each[0]) for each in bernstein.image(np.array(row), *np.array([ends]).T))
    shares = data.draw(st.lists(rates, min_size=5, max_size=20))
    points = [ends[0], ends[1], *(ends[0] + share * (ends[1] - ends[0]) for share in shares)]
    values = [exact(row, point) for point in points if ends[0] <= point <= ends[1]]
    assert low <= min(values)
    assert max(values) <= high


@given(st.lists(rates, min_size=1, max_size=9), st.tuples(rates, rates).map(sorted))
@settings(deadline=None)
def test_images_are_as_narrow_as_the_roots_of_the_derivative_say(row, ends):
    # Rational, because roots in floats are lost if the leading coefficient is tiny.
    curve, up, down = fmpq_poly([0]), fmpq_poly([0, 1]), fmpq_poly([1, -1])
    for k, b in enumerate(row):
        ways = fmpq(*b.as_integer_ratio()) * comb(len(row) - 1, k)
        curve += ways * up**k * down ** (len(row) - 1 - k)
    slope = curve.derivative()
    turns = [float(root.real) for root, _ in slope.complex_roots()] if slope.degree() > 0 else []
    points = [*ends, *(turn for turn in turns if ends[0] < turn < ends[1])]
    values = [float(exact(row, point)) for point in points]
    found = [each[0] for each in bernstein.image(np.array(row), *np.array([ends]).T)]
    np.testing.assert_allclose(found, [min(values), max(values)], rtol=0, atol=2e-9)


def test_two_turns_that_are_near_are_both_found():
    # q' = (π − ½)² − 1e-8 has roots 2e-4 apart, and q differs by 1.3e-12 between them.
    curve = np.polynomial.Polynomial([-0.5, 1.0]) ** 2 - 1e-8
    powers = curve.integ().coef * 2 + [0.3, 0, 0, 0]
    p = np.arange(4)
    row = [sum(comb(k, j) / comb(3, j) * powers[j] for j in range(k + 1)) for k in p]
    low, high = bernstein.image(np.array(row), np.array([0.4999]), np.array([0.5001]))
    ends = [float(exact(row, x)) for x in (0.4999, 0.5001)]
    assert high[0] - low[0] == pytest.approx(ends[0] - ends[1], rel=0.05)


def test_each_row_has_its_own_polynomial():
    rows = np.array([[0.0, 1.0, 0.0], [0.0, 0.5, 1.0], [1.0, 0.0, 1.0]])
    low, high = bernstein.image(rows, np.array([0.1, 0.1, 0.2]), np.array([0.9, 0.6, 0.4]))
    np.testing.assert_allclose(low, [0.18, 0.1, 0.52], atol=1e-12)
    np.testing.assert_allclose(high, [0.5, 0.6, 0.68], atol=1e-12)


def test_an_image_of_a_high_degree_is_that_of_its_formula():
    low, high = np.array([0.001, 0.0]), np.array([0.01, 1.0])
    found = bernstein.image(np.r_[0.0, np.ones(200)], low, high)
    np.testing.assert_allclose(found, 1 - (1 - np.array([low, high])) ** 200, atol=1e-11)
    # Of two pools of 40, exactly one is positive.
    one = contexts.elevate(contexts.pooled(40), 80)
    two = contexts.pooled(80)
    found = bernstein.image(two - one, np.array([0.0]), np.array([1.0]))
    np.testing.assert_allclose(np.ravel(found), [0.0, 0.25], atol=1e-11)
