"""Every index against `Brute`, and `Brute` against the definition in exact arithmetic."""

import tracemalloc
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from betafield.windows import Brute, KDTree, Line, Places, kdtree, line
from betafield.windows.base import CHEBYSHEV, EUCLIDEAN, MANHATTAN, concatenate, metric_code
from betafield.windows.kdtree import LEAF, LEAF_SIZE

METRICS = [EUCLIDEAN, CHEBYSHEV, MANHATTAN]
# With kernels, however few queries there are, and without.
FEW = [-1, line.FEW]


def generated(seed, n, d, step=None, most=2):
    """Return places with random counts; on a grid of this step there are many duplicates."""
    rng = np.random.default_rng(seed)
    axes = rng.uniform(size=(d, n))
    if step is not None:
        axes = np.round(axes / step) * step
    return Places(axes, rng.integers(0, most, size=(2, n)))


def copied(places):
    return Places(places.axes.copy(), places.counts.copy())


def kind(d):
    return Line if d == 1 else KDTree


def exactly_inside(x, q, radius, metric):
    apart = [abs(Fraction(a) - Fraction(b)) for a, b in zip(x, q, strict=True)]
    if metric == CHEBYSHEV:
        return max(apart) <= Fraction(radius)
    if metric == MANHATTAN:
        return sum(apart) <= Fraction(radius)
    return sum(a * a for a in apart) <= Fraction(radius) ** 2


@pytest.mark.parametrize("metric", METRICS)
@given(seed=st.integers(0, 2**32), d=st.integers(1, 4), radius=st.sampled_from([0.25, 0.5, 0.625]))
def test_brute_is_the_definition_where_float_arithmetic_is_exact(metric, seed, d, radius):
    # Multiples of 1/8: sums of squares are exact, and many points lie exactly at the radius.
    places = generated(seed, 12, d, step=0.125)
    queries = generated(seed + 1, 5, d, step=0.125).axes.T
    expected = [
        [
            sum(
                int(count)
                for x, count in zip(places.axes.T, row, strict=True)
                if exactly_inside(x, q, radius, metric)
            )
            for row in places.counts
        ]
        for q in queries
    ]
    assert Brute.build(places, metric).sums(queries, radius).tolist() == expected


@pytest.mark.parametrize("few", FEW)
@pytest.mark.parametrize("metric", METRICS)
@given(
    seed=st.integers(0, 2**32),
    d=st.integers(1, 8),
    n=st.integers(1, 3 * LEAF_SIZE),
    step=st.sampled_from([None, 0.25, 0.01]),
    radius=st.sampled_from([1e-9, 0.05, 0.25, 0.5, 0.75, 1.0, 3.0]),
    most=st.sampled_from([2, 2**40]),
)
def test_an_index_sums_as_brute_does(few, metric, seed, d, n, step, radius, most):
    places = generated(seed, n, d, step, most)
    metric = metric if d > 1 else CHEBYSHEV
    # Queries at the places themselves too, where distances equal the radius exactly.
    queries = np.concatenate([generated(seed + 1, 5, d, step).axes.T, places.axes.T[:10]])
    brute, index = Brute.build(copied(places), metric), kind(d).build(copied(places), metric)
    index = replace(index, few=few) if d == 1 else index
    assert np.array_equal(index.sums(queries, radius), brute.sums(queries, radius))
    assert np.array_equal(index.totals, brute.totals)


coordinates = st.one_of(
    st.floats(-10, 10, width=32), st.floats(-1e-15, 1e-15), st.floats(allow_nan=False, width=64)
).filter(np.isfinite)


@pytest.mark.parametrize("few", FEW)
@given(
    xs=st.lists(coordinates, min_size=1, max_size=40),
    q=coordinates,
    radius=st.one_of(st.floats(1e-6, 20), st.sampled_from([0.0, 1.0, 5e-324, np.inf])),
)
@example(xs=[-2e-16, -1e-16, -5e-17, 0.0, 1e-17], q=1.0, radius=1.0)
def test_line_finds_any_floats_brute_finds(few, xs, q, radius):
    places = Places(np.array([xs]), np.ones((1, len(xs)), dtype=np.int64))
    with np.errstate(over="ignore"):
        queries = np.array([[q], [xs[0] + radius], [xs[-1] - radius], [xs[0]]])
    queries = queries[np.isfinite(queries[:, 0])]
    with np.errstate(over="ignore"):
        expected = Brute.build(copied(places), CHEBYSHEV).sums(queries, radius)
        index = replace(Line.build(places, CHEBYSHEV), few=few)
        assert np.array_equal(index.sums(queries, radius), expected)


@given(
    rows=st.lists(
        st.tuples(*[st.floats(allow_nan=False, allow_infinity=False)] * 2), min_size=1, max_size=30
    ),
    radius=st.floats(min_value=1e-300, max_value=1e300),
)
def test_kdtree_finds_any_floats_brute_finds(rows, radius):
    axes = np.array(rows).T.copy()
    places = Places(axes, np.ones((1, len(rows)), dtype=np.int64))
    queries = axes.T.copy()
    for metric in METRICS:
        expected = Brute.build(copied(places), metric).sums(queries, radius)
        tree = KDTree.build(copied(places), metric)
        with np.errstate(over="ignore"):
            assert np.array_equal(tree.sums(queries, radius), expected)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_far_outlier_changes_nothing(d):
    near = generated(0, 500, d)
    outlier = Places(np.full((d, 1), 1e12), np.ones((2, 1), dtype=np.int64))
    places = concatenate([near, outlier])
    metric = metric_code("euclidean", d)
    queries = near.axes.T[:20].copy()
    expected = Brute.build(copied(places), metric).sums(queries, 0.1)
    assert np.array_equal(kind(d).build(places, metric).sums(queries, 0.1), expected)


def test_another_order_of_memory_is_the_same_question_and_compiles_nothing():
    places = generated(0, 500, 2)
    tree, queries = KDTree.build(places, EUCLIDEAN), places.axes.T[:20].copy()
    expected = tree.sums(queries, 0.1)
    compiled = list(getattr(kdtree._sums, "signatures", ()))  # none if it is plain Python
    assert np.array_equal(tree.sums(np.asfortranarray(queries), 0.1), expected)
    assert list(getattr(kdtree._sums, "signatures", ())) == compiled


@given(seed=st.integers(0, 2**32), d=st.integers(2, 4), step=st.sampled_from([None, 0.1]))
def test_kdtree_keeps_its_invariants(seed, d, step):
    tree = KDTree.build(generated(seed, 4 * LEAF_SIZE, d, step), EUCLIDEAN)
    child, start, stop, box, sums, _ = tree.nodes
    axes, counts, _ = tree.places
    assert (start[0], stop[0]) == (0, tree.places.size)
    for node in range(len(child)):
        inside = axes[:, start[node] : stop[node]]
        assert np.array_equal(box[node], [inside.min(axis=1), inside.max(axis=1)])
        assert np.array_equal(sums[node], counts[:, start[node] : stop[node]].sum(axis=1))
        if child[node] == LEAF:
            assert stop[node] - start[node] <= LEAF_SIZE
        else:
            left, right = child[node], child[node] + 1
            assert node < left
            ranges = start[left], stop[left], start[right], stop[right]
            assert ranges == (start[node], stop[left], stop[left], stop[node])


@pytest.mark.parametrize("d", [1, 2])
def test_equal_points_become_one_place(d):
    places = generated(0, 1000, d, step=0.5)
    index = kind(d).build(copied(places), CHEBYSHEV)
    assert index.places.size == 3**d
    assert np.array_equal(index.totals, places.counts.sum(axis=1))


@pytest.mark.parametrize("most", [1, 2**7, 2**15, 2**31, 2**60])
@pytest.mark.parametrize("d", [1, 2])
def test_counts_of_any_size_are_held_and_summed_exactly(d, most):
    axes = np.random.default_rng(d).uniform(size=(d, 3))
    index = kind(d).build(Places(axes, np.array([[most - 1, most, 1]])), CHEBYSHEV)
    assert index.sums(np.zeros((1, d)), 2.0).tolist() == [[2 * most]]
    assert sorted(index.places.counts[0].tolist()) == sorted([most - 1, most, 1])


def test_a_question_along_a_line_copies_no_places():
    n = 200_000
    places = Places(np.arange(float(n))[None], np.ones((1, n), dtype=np.int64))
    index, query = Line.build(places, CHEBYSHEV), np.array([[5_000.0]])
    index.sums(query, 10.0)
    tracemalloc.start()
    try:
        assert index.sums(query, 10.0).tolist() == [[21]]
        assert tracemalloc.get_traced_memory()[1] < n
    finally:
        tracemalloc.stop()


def test_yes_and_no_take_a_byte_a_place():
    n = 20_000
    axes = np.array([np.arange(n), np.zeros(n)], dtype=float)
    index = KDTree.build(Places(axes, np.arange(2 * n).reshape(2, n) % 2 == 0), EUCLIDEAN)
    assert index.places.counts.nbytes == 2 * n


@pytest.mark.parametrize("d", [1, 3])
def test_many_places_with_one_code_are_split_by_number(d):
    # All but one lie in one cell of the grid, so only splits into halves are left.
    axes = np.concatenate([np.linspace(0, 1e-9, 500)[None].repeat(d, 0), np.full((d, 1), 1e9)], 1)
    places = Places(axes, np.ones((1, 501), dtype=np.int64))
    expected = Brute.build(copied(places), CHEBYSHEV).sums(np.zeros((1, d)), 5e-10)
    assert np.array_equal(kind(d).build(places, CHEBYSHEV).sums(np.zeros((1, d)), 5e-10), expected)


@pytest.mark.parametrize("metric", [CHEBYSHEV, MANHATTAN])
@given(seed=st.integers(0, 2**32), d=st.integers(1, 4))
def test_one_float_decides_whether_a_place_is_inside(metric, seed, d):
    place, query = np.random.default_rng(seed).uniform(size=(2, d))
    apart = np.abs(place - query)
    radius = apart.max() if metric == CHEBYSHEV or d == 1 else np.add.accumulate(apart)[-1]
    index = kind(d).build(Places(place[:, None].copy(), np.array([[1]])), metric)
    assert index.sums(query[None], radius).tolist() == [[1]]
    assert index.sums(query[None], np.nextafter(radius, 0)).tolist() == [[0]]


@pytest.mark.parametrize("n", [1, 8, 9, 63, 64, 65, 513])
def test_line_with_many_levels_sums_as_brute_does(n):
    places = generated(n, n, 1)
    queries = np.concatenate([places.axes.T, np.linspace(-1, 2, 50)[:, None]])
    expected = Brute.build(copied(places), CHEBYSHEV).sums(queries, 0.1)
    index = replace(Line.build(places, CHEBYSHEV, cached=4), few=-1)
    assert len(index.levels) > 1 or n <= 4
    assert np.array_equal(index.sums(queries, 0.1), expected)


@pytest.mark.parametrize("few", FEW)
def test_a_query_at_infinity_is_near_nothing(few):
    index = replace(Line.build(generated(0, 9, 1), CHEBYSHEV), few=few)
    assert not index.sums(np.array([[np.inf], [-np.inf]]), 0.5).any()
