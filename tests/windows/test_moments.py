"""Moments of windows against plain sums over all trials."""

from fractions import Fraction
from math import comb

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
# Dimensions with degrees that are used, and on the line some more.
KINDS = [(1, 3), (1, 4), *((d, degree) for d in range(1, 7) for degree in range(3))]


def generated(seed, n, d, step=None):
    rng = np.random.default_rng(seed)
    axes = rng.uniform(-1, 1, size=(d, n))
    if step is not None:
        axes = np.round(axes / step) * step
    return Places(axes, rng.integers(0, 4, size=(2, n)))


def weigh(counts):
    return counts.sum(axis=0).astype(np.float64), counts[1].astype(np.float64)


def built(places, metric="euclidean"):
    d = len(places.axes)
    kind = Line if d == 1 else KDTree
    return kind.build(Places(places.axes.copy(), places.counts.copy()), metric_code(metric, d))


def windows(reach, radii, hole):
    """Which places are in each window."""
    within = [reach <= radius for radius in radii]
    return [within[0], *(w & ~within[0] for w in within[1:])] if hole else within


def plain(places, queries, radii, degree, metric, hole=False):
    """Σ w z^e and Σ s z^e over the trials within each radius, one by one."""
    exponents = monomials(len(places.axes), degree).exponents
    low = exponents[exponents.sum(axis=1) <= degree]
    held, won = weigh(places.counts)
    out = []
    for q in queries:
        z = places.axes.T - q
        reach = np.linalg.norm(z, NORMS[metric], axis=1)
        for near in windows(reach, radii, hole):
            powers = np.prod(z[near][:, None] ** exponents, axis=2)
            few = np.prod(z[near][:, None] ** low, axis=2)
            out.append(np.concatenate([held[near] @ powers, won[near] @ few]))
    return np.array(out).reshape(len(queries), len(radii), -1)


def exact(places, query, radius, degree, metric):
    """The same sums of one window without rounding; and what each is measured by.

    The measure of a sum Σ w z^e is Σ w r^|e|, r the radius. Floats are whole numbers of some power
    of 1/2, the smallest of which is the unit: whole numbers are added much faster than fractions.
    """
    kinds = monomials(len(places.axes), degree)
    unit = max(Fraction(a).denominator for a in [*places.axes.flat, *query, radius])
    whole = np.vectorize(lambda a: int(Fraction(a) * unit), otypes=[object])
    z, r = whole(places.axes.T) - whole(query), int(whole(radius))
    near = [inside(each, r, metric) for each in z.tolist()]
    columns = kinds.exponents.tolist()
    found = []
    for weights, some in zip(weigh(places.counts), (columns, columns[: kinds.half]), strict=True):
        w = weights[near].astype(int).astype(object)
        for e in some:
            size = unit ** sum(e)
            total = sum(w * np.prod(z[near] ** e, axis=1))
            found.append((Fraction(total, size), Fraction(sum(w) * r ** sum(e), size)))
    return np.array(found, dtype=float).T


def inside(z, radius, metric):
    if metric == "euclidean":
        return sum(a * a for a in z) <= radius * radius
    sizes = [abs(a) for a in z]
    return (max(sizes) if metric == "chebyshev" else sum(sizes)) <= radius


@pytest.mark.parametrize("metric", list(NORMS))
@given(
    seed=st.integers(0, 2**32),
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 4 * LEAF_SIZE),
    step=st.sampled_from([None, 0.25]),
    hole=st.booleans(),
)
def test_moments_are_sums_over_the_window(metric, seed, kind, n, step, hole):
    d, degree = kind
    places = generated(seed, n, d, step)
    # Radii that no distance on the grid of 1/4 is equal to.
    radii = np.array([0.1, 0.33, 0.7, 1.3])
    queries = generated(seed + 1, 8, d, step).axes.T.copy()
    expected = plain(places, queries, radii, degree, metric, hole)
    found = moments(built(places, metric), queries, radii, degree, weigh, hole=hole)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("metric", list(NORMS))
@given(
    seed=st.integers(0, 2**32),
    d=st.integers(1, 3),
    n=st.integers(1, 3 * LEAF_SIZE),
    hole=st.booleans(),
)
def test_places_on_a_border_are_inside_it(metric, seed, d, n, hole):
    # On a grid of 1/4 all reaches are exact, and many are equal to a limit; places repeat.
    places = generated(seed, n, d, step=0.25)
    radii = np.array([0.0, 0.25, 0.5, 0.75, 1.25, 4.0])
    queries = generated(seed + 1, 6, d, step=0.25).axes.T.copy()
    found = moments(built(places, metric), queries, radii, 2, weigh, hole=hole)
    expected = plain(places, queries, radii, 2, metric, hole)
    # Trials are counted exactly, so one place in the wrong ring cannot pass for rounding.
    np.testing.assert_array_equal(found[..., 0], expected[..., 0])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize("metric", list(NORMS))
@given(
    seed=st.integers(0, 2**32),
    d=st.integers(1, 3),
    spread=st.sampled_from([1.0, 1e-3, 1e-9]),
    offset=st.sampled_from([0.0, 2.0**10, -(2.0**20)]),
)
def test_no_window_is_too_small_or_too_far_off_to_be_exact(metric, seed, d, spread, offset):
    # Two clusters in one leaf: windows inside a cluster are far smaller than the leaf's box.
    rng = np.random.default_rng(seed)
    clusters = rng.integers(0, 2, size=(1, 60)) + spread * rng.uniform(-1, 1, size=(d, 60))
    places = Places(clusters + offset, rng.integers(0, 4, size=(2, 60)))
    queries = places.axes.T[:2].copy()
    radii = spread * np.array([0.3, 1.0, 1.0 + 1.0 / spread])
    found = moments(built(places, metric), queries, radii, 2, weigh)
    for q, row in zip(queries, found, strict=True):
        for radius, got in zip(radii, row, strict=True):
            sums, measures = exact(places, q, radius, 2, metric)
            assert np.all(np.abs(got - sums) <= 1e-11 * measures)


def test_windows_need_not_be_smaller_than_all():
    places = generated(0, 300, 2)
    everything = moments(built(places), np.zeros((1, 2)), np.array([np.inf]), 2, weigh)
    np.testing.assert_allclose(
        everything, plain(places, np.zeros((1, 2)), [np.inf], 2, "euclidean"), rtol=1e-10
    )
    nothing = moments(built(places), np.full((1, 2), 9.0), np.array([0.5, 1.0]), 2, weigh)
    assert not nothing.any()


def test_no_queries_have_no_moments():
    found = moments(built(generated(0, 300, 2)), np.empty((0, 2)), np.array([0.5, 1.0]), 1, weigh)
    assert found.shape == (0, 2, 6 + 3)


def test_a_query_has_its_own_moments_in_any_order_of_the_queries():
    places, queries = generated(0, 5_000, 2), generated(1, 300, 2).axes.T.copy()
    tree, radii = built(places), np.array([0.05, 0.2])
    together = moments(tree, queries, radii, 2, weigh)
    backwards = moments(tree, queries[::-1].copy(), radii, 2, weigh)
    one_by_one = [moments(tree, q[None], radii, 2, weigh)[0] for q in queries]
    np.testing.assert_array_equal(backwards[::-1], together)
    np.testing.assert_array_equal(one_by_one, together)


@pytest.mark.parametrize("hole", [False, True])
@pytest.mark.parametrize("d", [1, 2])
def test_forests_add_up_their_indexes(d, hole, monkeypatch):
    monkeypatch.setattr(forest_module, "SMALL", 2)
    batches = [generated(seed, n, d) for seed, n in enumerate((300, 90, 20, 3))]
    forest = Forest(d)
    for b in batches:
        forest = forest.insert(Places(b.axes.copy(), b.counts.copy()))
        assert forest.indexes
    assert len(forest.indexes) > 1
    every = concatenate(batches)
    queries, radii = generated(9, 30, d).axes.T.copy(), np.array([0.3, 0.9])
    expected = plain(every, queries, radii, 2, "euclidean", hole)
    found = forest.moments(queries, radii, 2, weigh, n_jobs=2, hole=hole)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


def test_far_from_the_origin_nothing_cancels():
    places = generated(0, 500, 2)
    far = Places(places.axes + 2.0**20, places.counts)
    queries, radii = places.axes.T[:5].copy(), np.array([0.5])
    near, moved = built(places), built(far)
    found = moments(moved, queries + 2.0**20, radii, 2, weigh)
    expected = moments(near, queries, radii, 2, weigh)
    # The points themselves were rounded to 2⁻³² by the move.
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)


@given(d=st.integers(1, 6), degree=st.integers(0, 2))
def test_there_are_as_many_monomials_as_there_should_be(d, degree):
    kinds = monomials(d, degree)
    assert len(kinds.exponents) == comb(d + 2 * degree, d)
    assert kinds.half == comb(d + degree, d)
    assert len(np.unique(kinds.exponents, axis=0)) == len(kinds.exponents)
