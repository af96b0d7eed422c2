"""z-order codes against bits interleaved one by one in Python integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betafield.windows.zorder import codes, visiting_order


def interleaved(cells, bits):
    """Interleave bits from the highest, first axis first."""
    code = 0
    for bit in reversed(range(bits)):
        for cell in cells:
            code = (code << 1) | (cell >> bit) & 1
    return code


@given(seed=st.integers(0, 2**32), d=st.integers(2, 9))
def test_codes_interleave_the_bits_of_the_cells(seed, d):
    bits = 64 // d
    # The grid covers [0, 2): cells of side 2 / 2^bits, so these coordinates are cells exactly.
    top = min(bits - 1, 50)
    cells = np.random.default_rng(seed).integers(0, 2**top, size=(d, 20)) * 2 ** (bits - 1 - top)
    axes = cells * 2.0 ** (1 - bits)
    axes = np.concatenate([axes, np.zeros((d, 1)), np.ones((d, 1))], axis=1)
    expected = [interleaved([int(c) for c in point], bits) for point in cells.T]
    assert codes(axes)[:-2].tolist() == expected


def test_neighbours_in_the_order_share_a_cell():
    side = np.arange(8.0)
    axes = np.array(np.meshgrid(side, side, indexing="ij")).reshape(2, -1)
    order = np.argsort(codes(axes))
    for four in axes[:, order].reshape(2, 16, 4).transpose(1, 0, 2):
        assert np.ptp(four, axis=1).tolist() == [1.0, 1.0]


def test_sets_of_about_the_same_extent_share_a_grid():
    rng = np.random.default_rng(0)
    common = rng.uniform(0.2, 0.8, size=(2, 50))
    a, b = (np.concatenate([common, rng.uniform(size=(2, 500))], axis=1) for _ in range(2))
    assert np.array_equal(codes(a)[:50], codes(b)[:50])


@pytest.mark.parametrize("d", [1, 2, 63, 64, 65, 200])
def test_any_number_of_dimensions_has_codes(d):
    axes = np.concatenate([np.zeros((d, 1)), np.ones((d, 1))], axis=1)
    low, high = codes(axes)
    assert low < high


def test_equal_points_and_overflowing_extents_share_one_code():
    assert codes(np.full((2, 3), 7.0)).tolist() == [0, 0, 0]
    assert codes(np.array([[-1.7e308, 1.7e308], [0.0, 0.0]])).tolist() == [0, 0]


@pytest.mark.parametrize("d", [1, 2, 3])
def test_points_are_visited_with_short_steps(d):
    axes = np.random.default_rng(d).uniform(3.0, 4.0, size=(d, 5000))
    order = visiting_order(axes)
    assert np.array_equal(np.sort(order), np.arange(5000))
    steps = np.abs(np.diff(axes[:, order], axis=1)).max(axis=0)
    assert np.median(steps) < 3 * 5000 ** (-1 / d)


def test_codes_that_differ_in_few_bits_are_ordered():
    axes = np.array([[1.0, 0.0, 0.5]])
    assert visiting_order(axes).tolist() == [1, 2, 0]
