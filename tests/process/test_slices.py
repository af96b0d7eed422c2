"""Monotone fields on grids, against SciPy's interpolation and the definition of monotone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import RegularGridInterpolator
from sklearn.isotonic import isotonic_regression

from betafield.process.slices import ACROSS, Slice, at_points, sides

RNG = np.random.default_rng(0)


def _grid(signs, counts=(7, 5, 4)):
    grids = tuple(np.sort(RNG.random(n)) for n in counts[: len(signs)])
    return Slice(tuple(range(len(signs))), grids, tuple(signs))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_between_nodes_it_is_scipys(d):
    grid = _grid([0] * d)
    values = RNG.random(grid.shape)
    points = np.stack([RNG.uniform(g[0], g[-1], 50) for g in grid.grids], axis=1)
    expected = RegularGridInterpolator(grid.grids, values)(points)
    np.testing.assert_allclose(grid.between(values.ravel(), points), expected, atol=1e-12)


def test_beyond_the_grid_it_is_as_at_its_border():
    grid = Slice((0,), (np.array([0.0, 1.0]),), (0,))
    said = grid.between(np.array([0.2, 0.7]), np.array([[-5.0], [0.0], [1.0], [9.0]]))
    assert said.tolist() == [0.2, 0.2, 0.7, 0.7]


def test_lines_are_projected_one_by_one():
    grid = _grid((0, -1))
    values = RNG.random((3, 1, grid.size))
    lines = grid.projected(values).reshape(3, *grid.shape)
    for draw, i in np.ndindex(3, grid.shape[0]):
        given_line = values.reshape(3, *grid.shape)[draw, i]
        expected = isotonic_regression(given_line, increasing=False)
        np.testing.assert_allclose(lines[draw, i], expected, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=3), st.integers(0, 10_000))
def test_fields_are_monotone_along_every_signed_feature(signs, seed):
    rng, grid = np.random.default_rng(seed), _grid(signs)
    table = grid.projected(rng.random((4, 1, grid.size))).reshape(4, *grid.shape)
    for axis, sign in enumerate(signs, start=1):
        if sign:
            assert np.all(sign * np.diff(table, axis=axis) >= -1e-12)


def test_sides_have_all_of_few_features_and_the_monotone_ones_of_many():
    assert sides((1, 0, 0)).keys() == {0, 1, 2}
    assert sides((1, 0, 0), apart=(1,)).keys() == {0, 2}
    assert sides((1, 0, 0), apart=(0,)).keys() == {0, 1, 2}
    many = (0,) * (max(ACROSS) + 1)
    assert sides((*many, 1, -1)).keys() == {len(many), len(many) + 1}


def test_points_asked_apart_are_as_those_asked_together():
    def draw(points):
        return np.stack([np.sin(9.0 * (points * w).sum(axis=1)) for w in np.eye(4) + 0.3])

    grid = Slice((1,), (np.linspace(0.0, 1.0, 9),), (1,))
    points = RNG.random((40, 4))
    points[20:, [0, 2, 3]] = points[:20, [0, 2, 3]]
    together = at_points(draw, 4, grid, points)
    apart = np.concatenate([at_points(draw, 4, grid, each[None]) for each in points], axis=1)
    assert np.array_equal(together, apart)
    assert at_points(draw, 4, grid, points[:0]).shape == (4, 0)
    # Along the grid's feature, at the same place of the others:
    rises = (points[20:, 1] >= points[:20, 1]) * 2 - 1
    assert np.all(rises * (together[:, 20:] - together[:, :20]) >= -1e-12)
