"""Where curves reach a level, against SciPy's root finding and closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from betafield.answers.crossings import crossings, direction

GRID = np.linspace(0.0, 2.0, 513)


@given(st.floats(0.2, 1.8), st.floats(1.0, 8.0), st.floats(0.1, 0.9))
def test_crossings_are_roots_of_the_curve(centre, power, level):
    def curve(x):
        return 1.0 - np.exp(-((x / centre) ** power))

    found = crossings(np.array([curve(GRID)]), GRID, level)
    if curve(2.0) < level:
        assert found.never.tolist() == [True]
        assert found.at.tolist() == [2.0]
    else:
        root = brentq(lambda x: curve(x) - level, 0.0, 2.0)
        assert found.at[0] == pytest.approx(root, abs=1.5e-3)
        assert not found.never[0]
    assert not found.already[0]


@given(st.floats(0.05, 0.95), st.floats(0.1, 2.0))
def test_falling_curves_are_the_mirror_image(level, steep):
    curve = 1.0 / (1.0 + np.exp(-(GRID - 1.0) / steep))
    up = crossings(curve[None], GRID, level, 1)
    down = crossings(1.0 - curve[None], GRID, 1.0 - level, -1)
    np.testing.assert_allclose(up.at, down.at, atol=1e-9)
    np.testing.assert_allclose(up.slope, -down.slope, atol=1e-9)
    assert (up.never, up.already) == (down.never, down.already)


def test_slopes_are_derivatives_of_the_curve():
    curve = np.sin(GRID / 2.0)
    found = crossings(curve[None], GRID, 0.5)
    assert found.slope[0] == pytest.approx(0.5 * np.cos(found.at[0] / 2.0), abs=1e-3)


def test_the_first_point_of_a_flat_part_is_the_crossing():
    grid = np.arange(5.0)
    found = crossings(np.array([[0.0, 0.5, 0.5, 0.5, 1.0]]), grid, 0.5)
    assert found.at.tolist() == [1.0]


def test_curves_beyond_the_level_at_an_end_are_told():
    grid = np.arange(3.0)
    found = crossings(np.array([[0.6, 0.7, 0.8], [0.1, 0.2, 0.3]]), grid, 0.5)
    assert found.at.tolist() == [0.0, 2.0]
    assert found.already.tolist() == [True, False]
    assert found.never.tolist() == [False, True]
    falling = crossings(np.array([[0.4, 0.3, 0.2], [0.9, 0.8, 0.7]]), grid, 0.5, -1)
    assert falling.already.tolist() == [True, False]
    assert falling.never.tolist() == [False, True]


def test_the_direction_is_that_of_the_whole():
    assert direction(np.array([0.5, 0.0, 1.0])) == 1
    assert direction(np.array([1.0, 0.0, 0.5])) == -1
