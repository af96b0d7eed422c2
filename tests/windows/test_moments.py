"""Moments of windows against plain sums over all trials."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betafield.windows import Forest, KDTree, Line, Places
from betafield.windows import forest as forest_module
from betafield.windows.base import concatenate, metric_code
from betafield.windows.kdtree import LEAF_SIZE
from betafield.windows.moments import moments, monomials

NORMS = {"euclidean": 2, "chebyshev": np.inf, "manhattan": 1}


def generated(seed, n, d, step=None):
    rng = np.random.default_rng(seed)
    axes = rng.uniform(-1, 1, size=(d, n))
    if step is not None:
        axes = np.round(axes / step) * step
    return Places(axes, rng.integers(0, 4, size=(2, n)))


def weigh(counts):
    return counts.sum(axis=0).astype(np.float64), counts[1].astype(np.float64)


def plain(places, queries, radii, degree, metric):
    """Σ w z^e and Σ s z^e over the trials within each radius, one by one."""
    exponents = monomials(len(places.axes), degree).exponents
    low = exponents[exponents.sum(axis=1) <= degree]
    held, won = weigh(places.counts)
    out = []
    for q in queries:
        z = places.axes.T - q
        reach = np.linalg.norm(z, NORMS[metric], axis=1)
        for radius in radii:
            near = reach <= radius
            powers = np.prod(z[near][:, None] ** exponents, axis=2)
            few = np.prod(z[near][:, None] ** low, axis=2)
            out.append(np.concatenate([held[near] @ powers, won[near] @ few]))
    return np.array(out).reshape(len(queries), len(radii), -1)


@pytest.mark.parametrize("metric", list(NORMS))
@given(
    seed=st.integers(0, 2**32),
    d=st.integers(1, 4),
    n=st.integers(1, 4 * LEAF_SIZE),
    degree=st.integers(0, 2),
    step=st.sampled_from([None, 0.25]),
)
def test_moments_are_sums_over_the_window(metric, seed, d, n, degree, step):
    places = generated(seed, n, d, step)
    # Radii that no distance on the grid of 1/4 is equal to.
    radii = np.array([0.1, 0.33, 0.7, 1.3])
    queries = generated(seed + 1, 8, d, step).axes.T.copy()
    expected = plain(places, queries, radii, degree, metric)
    kind = Line if d == 1 else KDTree
    index = kind.build(Places(places.axes.copy(), places.counts.copy()), metric_code(metric, d))
    found = moments(index, queries, radii, degree, weigh)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("d", [1, 2])
def test_forests_add_up_their_indexes(d, monkeypatch):
    monkeypatch.setattr(forest_module, "SMALL", 2)
    batches = [generated(seed, n, d) for seed, n in enumerate((300, 90, 20, 3))]
    forest = Forest(d)
    for b in batches:
        forest = forest.insert(Places(b.axes.copy(), b.counts.copy()))
        assert forest.indexes
    assert len(forest.indexes) > 1
    every = concatenate(batches)
    queries, radii = generated(9, 30, d).axes.T.copy(), np.array([0.3, 0.9])
    expected = plain(every, queries, radii, 2, "euclidean")
    found = forest.moments(queries, radii, 2, weigh, n_jobs=2)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_far_from_the_origin_nothing_cancels():
    places = generated(0, 500, 2)
    far = Places(places.axes + 2.0**20, places.counts)
    queries, radii = places.axes.T[:5].copy(), np.array([0.5])
    near = KDTree.build(Places(places.axes.copy(), places.counts.copy()), 0)
    moved = KDTree.build(Places(far.axes.copy(), far.counts.copy()), 0)
    found = moments(moved, queries + 2.0**20, radii, 2, weigh)
    expected = moments(near, queries, radii, 2, weigh)
    # The points themselves were rounded to 2⁻³² by the move.
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


@given(d=st.integers(1, 6), degree=st.integers(0, 2))
def test_there_are_as_many_monomials_as_there_should_be(d, degree):
    from math import comb

    kinds = monomials(d, degree)
    assert len(kinds.exponents) == comb(d + 2 * degree, d)
    assert kinds.half == comb(d + degree, d)
    assert len(np.unique(kinds.exponents, axis=0)) == len(kinds.exponents)
