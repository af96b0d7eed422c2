"""Widths: the formula and the candidates; their weights are tested in test_weighing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from betafield import bandwidth

# Theory.


@given(st.integers(1, 10**12), st.integers(1, 8), st.floats(1e-3, 1e3))
def test_the_width_by_theory_balances_bias_and_variance(t, d, lipschitz):
    width = bandwidth.theory(t, d, lipschitz)
    # (L Δ)² = 1 / (t Δᵈ).
    assert lipschitz**2 * width ** (d + 2) * t == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize(
    ("t", "d", "lipschitz", "width"),
    [(1000, 1, 1.0, 0.1), (10_000, 2, 1.0, 0.1), (1000, 1, 8.0, 0.025), (16, 2, 4.0, 0.25)],
)
def test_widths_by_theory_on_paper(t, d, lipschitz, width):
    assert bandwidth.theory(t, d, lipschitz) == pytest.approx(width, rel=1e-14)


# Candidates.


@given(
    hnp.arrays(np.float64, st.integers(1, 6), elements=st.floats(0.01, 10)), st.integers(1, 10**8)
)
def test_candidates_go_from_one_place_a_window_to_all(sides, n_places):
    widest = float(np.linalg.norm(sides))
    grid = bandwidth.candidates(sides, widest, n_places)
    assert grid[-1] == pytest.approx(widest)
    np.testing.assert_allclose(grid[1:] / grid[:-1], 2**0.5, rtol=1e-9)
    # A cube as wide as the narrowest candidate holds one place, up to one step.
    assert np.prod(sides) / grid[0] ** len(sides) * 1.001 >= n_places
    if len(grid) > 1:
        assert np.prod(sides) / grid[1] ** len(sides) <= n_places * 1.001


def test_a_domain_without_extent_has_one_candidate():
    assert bandwidth.candidates(np.zeros(3), 1.0, 500).tolist() == [1.0]
