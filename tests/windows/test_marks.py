"""Distorted trials in indexes and forests, against `Brute`, which uses `lattice` for each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betafield import lattice
from betafield.windows import Brute, Forest, KDTree, Line, Places, Shifts
from betafield.windows.base import CHEBYSHEV, EUCLIDEAN, concatenate, metric_code
from betafield.windows.forest import Limits
from betafield.windows.kdtree import LEAF_SIZE


def generated(seed, n, d, *, sized=False, step=None, most=3, widest=5.0):
    """Return places, some with distorted trials, on a grid if there is a step."""
    rng = np.random.default_rng(seed)
    axes = rng.uniform(size=(d, n))
    values = rng.laplace(size=n).clip(-widest, widest)
    if step is not None:
        axes, values = np.round(axes / step) * step, np.round(values)
    held = rng.integers(0, most, size=n)
    size = rng.choice([0.25, 1.0, 1 / 3], size=n) if sized else None
    return Places(axes, rng.integers(0, 5, size=(2, n)), Shifts(values * (held > 0), held, size))


def plain(seed, n, d):
    return generated(seed, n, d)._replace(shifts=None)


def copied(places):
    return Places(places.axes.copy(), places.counts.copy(), places.shifts)


def brute(batches, d):
    return Brute.build(concatenate([copied(b) for b in batches]), metric_code("euclidean", d))


@given(
    seed=st.integers(0, 2**32),
    d=st.integers(1, 4),
    n=st.integers(1, 3 * LEAF_SIZE),
    sized=st.booleans(),
    step=st.sampled_from([None, 0.25]),
    most=st.sampled_from([2, 2**20]),
    radius=st.sampled_from([1e-9, 0.25, 0.6, 3.0]),
)
def test_a_tree_shares_out_as_brute_does(seed, d, n, sized, step, most, radius):
    places = generated(seed, n, d, sized=sized, step=step, most=most)
    metric = metric_code("euclidean", d)
    expected = Brute.build(copied(places), metric)
    tree = KDTree.build(copied(places), metric)
    queries = np.concatenate([np.random.default_rng(seed).uniform(size=(70, d)), places.axes.T[:9]])
    assert tree.span == expected.span
    assert np.array_equal(tree.sums(queries, radius), expected.sums(queries, radius))
    assert np.array_equal(tree.totals, expected.totals)


def test_shares_of_a_window_add_up_to_its_trials():
    places = generated(0, 300, 2)
    sums = KDTree.build(copied(places), EUCLIDEAN).sums(np.array([[0.5, 0.5]]), 2.0)
    assert sums[0, 2:].sum() == places.shifts.held.sum() * lattice.UNIT


@pytest.mark.parametrize("sized", [False, True])
def test_trials_alike_become_one_place(sized):
    places = generated(0, 5000, 2, step=0.5, sized=sized)
    index = KDTree.build(copied(places), CHEBYSHEV)
    kinds = np.vstack([places.axes, places.shifts.values, places.shifts.sizes()])
    assert index.places.size <= 3 * len(np.unique(kinds, axis=1).T)
    assert index.places.shifts.total() == places.shifts.total()


@pytest.mark.parametrize("d", [1, 2])
def test_forests_align_batches_that_reach_different_shifts(d):
    batches = [
        plain(0, 400, d),
        generated(1, 190, d, widest=0.3),
        generated(2, 90, d, widest=30.0, sized=True),
        plain(3, 40, d),
        generated(4, 9, d)._replace(counts=np.ones((4, 9), dtype=np.int64)),
    ]
    queries = np.random.default_rng(9).uniform(size=(50, d))
    expected = brute(batches, d)
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]):
        forest = Forest(d, limits=Limits(small=2))
        for i in order:
            forest = forest.insert(copied(batches[i]))
            assert forest.indexes
        assert len(forest.indexes) > 1 or order[0] == 4
        assert forest.span == expected.span
        assert np.array_equal(forest.sums(queries, 0.3, n_jobs=2), expected.sums(queries, 0.3))
    assert forest.distorted == sum(b.shifts.total() for b in batches if b.shifts)


@pytest.mark.parametrize("d", [1, 2])
def test_merged_forests_are_the_forest_of_all(d):
    batches = [generated(1, 500, d, sized=True), plain(2, 300, d), generated(3, 40, d)]
    queries = np.random.default_rng(9).uniform(size=(50, d))
    one, other = Forest(d).insert(copied(batches[0])), Forest(d).insert(copied(batches[1]))
    merged = one.merge(other.insert(copied(batches[2])))
    assert np.array_equal(merged.sums(queries, 0.3), brute(batches, d).sums(queries, 0.3))
    assert merged.distorted == sum(b.shifts.total() for b in batches if b.shifts)


def test_without_distorted_trials_nothing_is_shared_out():
    places = plain(0, 50, 1)
    nobody = places._replace(shifts=Shifts.none(50))
    assert nobody.span == (0, 0)
    assert Line.build(copied(places), CHEBYSHEV).span == (0, 0)
    sums = Forest(1).insert(copied(nobody)).sums(np.array([[0.5]]), 0.2)
    assert np.array_equal(sums, Forest(1).insert(copied(places)).sums(np.array([[0.5]]), 0.2))
