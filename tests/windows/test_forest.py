"""Forests against one `Brute` over all their trials: inserts, merges, threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betafield.windows import Brute, Forest, Places, Shifts, Standing
from betafield.windows.base import concatenate, metric_code
from betafield.windows.forest import Limits

# Indexes of a few places are kept separate, so that small forests have many trees.
SMALL = Limits(small=2)


def batch(rng, n, d, width=2):
    axes = np.round(rng.uniform(size=(d, n)), 3)
    return Places(axes, rng.integers(0, 5, size=(width, n)))


def copied(places):
    return Places(places.axes.copy(), places.counts.copy())


def brute(batches, d, metric="euclidean"):
    return Brute.build(concatenate([copied(b) for b in batches]), metric_code(metric, d))


def sizes(forest):
    return [places.size for places in forest.places]


def grown(forest, batches):
    """Insert the batches one by one, each indexed at once as if after a query."""
    for b in batches:
        forest = forest.insert(copied(b))
        assert forest.indexes
    return forest


@pytest.mark.parametrize("metric", ["euclidean", "chebyshev", "manhattan"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_inserting_in_batches_gives_the_sums_of_all(d, metric):
    rng = np.random.default_rng(d)
    batches = [batch(rng, n, d) for n in (1, 1, 3, 50, 2, 7, 150, 1, 30)]
    forest = grown(Forest(d, metric, SMALL), batches)
    queries = np.concatenate([rng.uniform(size=(20, d)), batches[3].axes.T[:10]])
    expected = brute(batches, d, metric).sums(queries, 0.2)
    assert len(forest.indexes) > 1
    assert np.array_equal(forest.sums(queries, 0.2), expected)
    assert forest.totals.tolist() == sum(b.counts.sum(axis=1) for b in batches).tolist()


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("metric", ["euclidean", "chebyshev", "manhattan"])
def test_first_answers_about_few_trials_need_no_index(d, metric):
    rng = np.random.default_rng(d)
    batches = [batch(rng, n, d) for n in (5, 40, 1)]
    forest = Forest(d, metric)
    for b in batches:
        forest = forest.insert(copied(b))
    queries = np.concatenate([rng.uniform(size=(20, d)), batches[1].axes.T[:10]])
    expected = brute(batches, d, metric).sums(queries, 0.2)
    for times in range(2 * forest.limits.times):
        assert np.array_equal(forest.sums(queries, 0.2), expected)
        assert bool(forest.parts[0]) == (times >= forest.limits.times)


def test_many_pairs_are_indexed_at_once():
    rng = np.random.default_rng(0)
    b = batch(rng, 300, 2)
    forest = Forest(2).insert(copied(b))
    queries = rng.uniform(size=(300, 2))
    assert np.array_equal(forest.sums(queries, 0.2), brute([b], 2).sums(queries, 0.2))
    assert forest.parts[0]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.integers(1, 2))
def test_each_tree_is_larger_than_all_after_it(ns, d):
    rng = np.random.default_rng(len(ns))
    forest = Forest(d, limits=SMALL)
    for n in ns:
        forest = forest.insert(Places(rng.uniform(size=(d, n)), np.ones((1, n), dtype=np.int64)))
        found = sizes(forest)
        assert all(size > sum(found[i + 1 :]) for i, size in enumerate(found))
    assert sum(sizes(forest)) == sum(ns)


def test_small_trees_are_not_kept_apart():
    rng = np.random.default_rng(0)
    parts = [5000] + 20 * [1]
    batches = [Places(rng.uniform(size=(2, n)), np.ones((1, n), dtype=np.int64)) for n in parts]
    assert sizes(grown(Forest(2), batches)) == [5000, 20]


@pytest.mark.parametrize("limit", ["waiting", "batch", "rows"])
def test_small_batches_wait_for_a_query_up_to_a_limit(limit):
    rng = np.random.default_rng(0)
    batches = [batch(rng, n, 2) for n in (3, 4, 5, 2000, 30, 6, 7, 8, 3000, *range(1, 15))]
    forest = Forest(2, limits=Limits(**{limit: 10}))
    for b in batches:
        forest = forest.insert(copied(b))
    queries = rng.uniform(size=(20, 2))
    assert np.array_equal(forest.sums(queries, 0.2), brute(batches, 2).sums(queries, 0.2))


def test_few_rows_wait_however_large_their_batches():
    rng, forest = np.random.default_rng(0), Forest(2, limits=Limits(rows=100))
    for n in rng.integers(1, 60, size=50):
        forest = forest.insert(batch(rng, n, 2))
        assert sum(waiting.size for waiting in forest._state[1]) <= 100


@st.composite
def crowds(draw):
    """Draw a few places, all but one of them too close together for the grid of the codes."""
    d = draw(st.integers(1, 7))
    near = draw(st.lists(st.tuples(*[st.integers(0, 2)] * d), min_size=1, max_size=6, unique=True))
    return np.array([*near, (1e13,) * d], dtype=np.float64).T


@given(crowds(), st.lists(st.integers(1, 40), min_size=1, max_size=6), st.booleans())
def test_rows_at_one_place_are_one_place_however_near_others_are(places, sizes, distorted):
    rng = np.random.default_rng(len(sizes))
    forest, rows = Forest(len(places)), []
    for n in sizes:
        at = rng.integers(0, places.shape[1], size=n)
        ones, shifts = np.ones((1, n), dtype=np.int64), None
        if distorted:
            shifts = Shifts(at % 2 + 0.5, np.ones(n, dtype=np.int64))
        forest = forest.insert(Places(places[:, at], ones, shifts))
        assert len(forest.indexes) == 1
        rows.extend(at)
    found = forest.places[0]
    assert found.size == len(set(rows))
    assert sorted(found.counts[0].tolist()) == sorted(np.unique(rows, return_counts=True)[1])


def test_forests_that_share_waiting_batches_do_not_disturb_each_other():
    rng = np.random.default_rng(0)
    batches = [batch(rng, n, 2) for n in (200, 300)]
    queries = rng.uniform(size=(20, 2))
    first = Forest(2).insert(copied(batches[0]))
    second = first.insert(copied(batches[1]))
    assert np.array_equal(first.sums(queries, 0.2), brute(batches[:1], 2).sums(queries, 0.2))
    assert np.array_equal(second.sums(queries, 0.2), brute(batches, 2).sums(queries, 0.2))


@pytest.mark.parametrize("d", [1, 2])
def test_merging_leaves_both_forests_as_they_were(d):
    rng = np.random.default_rng(d)
    batches = [batch(rng, n, d) for n in (100, 30, 5, 100, 40, 2)]
    none = Forest(d, limits=SMALL)
    left, right = grown(none, batches[:3]), grown(none, batches[3:])
    queries = rng.uniform(size=(30, d))
    before = left.sums(queries, 0.1), right.sums(queries, 0.1)
    merged = left.merge(right)
    assert np.array_equal(merged.sums(queries, 0.1), brute(batches, d).sums(queries, 0.1))
    assert np.array_equal(left.sums(queries, 0.1), before[0])
    assert np.array_equal(right.sums(queries, 0.1), before[1])


def test_statistics_that_come_later_are_zero_before():
    rng = np.random.default_rng(0)
    narrow, wide = batch(rng, 200, 2, width=1), batch(rng, 60, 2, width=3)
    queries = rng.uniform(size=(20, 2))
    expected = brute([narrow.widened(3), wide], 2).sums(queries, 0.3)
    none = Forest(2, limits=SMALL)
    waiting = none.insert(copied(narrow)).insert(copied(wide))
    for forest in (grown(none, [narrow, wide]), waiting, grown(none, [wide, narrow])):
        assert forest.width == 3
        assert np.array_equal(forest.sums(queries, 0.3), expected)
    assert np.array_equal(none.insert(narrow).merge(forest).totals[1:], forest.totals[1:])


@pytest.mark.parametrize("n_jobs", [None, 2, 5, -1, -100])
@pytest.mark.parametrize("d", [1, 2])
def test_threads_answer_in_the_callers_order(d, n_jobs):
    rng = np.random.default_rng(d)
    b = batch(rng, 500, d)
    queries = rng.uniform(size=(100, d))
    expected = brute([b], d).sums(queries, 0.05)
    assert np.array_equal(
        Forest(d, limits=Limits(chunk=7)).insert(b).sums(queries, 0.05, n_jobs), expected
    )


@pytest.mark.parametrize("d", [1, 2])
def test_no_queries_have_no_sums(d):
    forest = Forest(d).insert(batch(np.random.default_rng(0), 10, d))
    assert forest.sums(np.empty((0, d)), 0.1).shape == (0, 2)


class Counted:
    """An index that counts its queries."""

    def __init__(self, index):
        self.index, self.asked = index, 0

    def __getattr__(self, name):
        return getattr(self.index, name)

    def sums(self, queries, radius):
        self.asked += 1
        return self.index.sums(queries, radius)


@given(
    st.lists(st.tuples(st.integers(1, 30), st.sampled_from([0.1, 0.3])), min_size=1, max_size=10),
    st.integers(1, 3),
    st.booleans(),
)
def test_what_is_asked_again_has_the_sums_of_all_trials_so_far(steps, d, distorted):
    rng = np.random.default_rng(0)
    queries, batches, forest = rng.uniform(size=(9, d)), [], Forest(d, limits=SMALL)
    standing = Standing(queries)
    for n, radius in steps:
        batches.append(batch(rng, n, d))
        if distorted:
            batches[-1] = batches[-1]._replace(
                shifts=Shifts(rng.normal(size=n), np.ones(n, dtype=np.int64))
            )
        forest = forest.insert(batches[-1])
        assert np.array_equal(standing.sums(forest, radius), forest.sums(queries, radius))
        if not distorted:
            expected = brute(batches, d).sums(queries, radius)
            assert np.array_equal(standing.sums(forest, radius), expected)


def test_large_indexes_are_asked_once_for_a_radius():
    rng = np.random.default_rng(0)
    forest = Forest(2).insert(batch(rng, 5_000, 2))
    forest._state = tuple(Counted(index) for index in forest.indexes), ()
    (large,) = forest.indexes
    standing = Standing(rng.uniform(size=(9, 2)))
    for radius, asked in ((0.1, 1), (0.1, 1), (0.2, 2), (0.1, 3)):
        forest = forest.insert(batch(rng, 1, 2))
        standing.sums(forest, radius)
        assert large.asked == asked
