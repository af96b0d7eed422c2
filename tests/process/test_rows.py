"""Rows are a function of the sums by place, to the bit, and gather trials as documented."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from betafield.process.rows import COARSE, FINE, Rows, by_place, cell_sums, gather


def same(one: Rows, other: Rows) -> bool:
    return all(
        np.array_equal(a, b) and np.asarray(a).dtype == np.asarray(b).dtype
        for a, b in zip(one, other, strict=True)
    )


@st.composite
def trial_tables(draw):
    """Draw points on a coarse grid (so that places repeat), counts and, sometimes, contexts."""
    t, d = draw(st.integers(1, 40)), draw(st.integers(1, 4))
    x = draw(hnp.arrays(float, (t, d), elements=st.sampled_from([0.0, -0.0, 0.25, 0.3, 1.0])))
    trials = draw(hnp.arrays(np.int64, t, elements=st.integers(1, 9)))
    successes = np.array([draw(st.integers(0, int(n))) for n in trials], dtype=np.int64)
    ends = st.sampled_from([0.1, 0.5, 0.75])
    context = draw(st.none() | hnp.arrays(float, (t, 2), elements=ends))
    return x, trials, successes, context


@given(trial_tables(), st.randoms(use_true_random=False))
def test_order_cannot_be_seen(table, random):
    x, trials, successes, context = table
    order = list(range(len(x)))
    random.shuffle(order)
    moved = gather(
        x[order], trials[order], successes[order], None if context is None else context[order]
    )
    assert same(gather(x, trials, successes, context), moved)


@given(trial_tables())
def test_places_have_the_sums_of_their_trials(table):
    x, trials, successes, context = table
    rows = gather(x, trials, successes, context)
    seen = {}
    contexts = np.tile([0.0, 1.0], (len(x), 1)) if context is None else context
    for row in zip(x + 0.0, contexts, trials, successes, strict=True):
        key = (*row[0], *row[1])
        n, k = seen.get(key, (0, 0))
        seen[key] = (n + row[2], k + row[3])
    found = {
        (*at, *b): (n, k)
        for at, b, n, k in zip(rows.x, rows.context, rows.trials, rows.successes, strict=True)
    }
    assert found == seen
    assert list(found) == sorted(found)


def scattered(t, d, seed, contexts=0):
    rng = np.random.default_rng(seed)
    x = rng.random((t, d))
    x[: t // 3] = x[t // 3 : 2 * (t // 3)]  # places that repeat
    context = None
    if contexts:
        ends = np.sort(rng.random((contexts, 2)), axis=1)
        context = ends[rng.integers(contexts, size=t)]
    return x, rng.integers(0, 4, t), context


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("contexts", [0, 5, 200])
def test_cells_do_not_depend_on_order_or_splits(d, contexts):
    t = 4 * COARSE.most[d]
    x, trials, context = scattered(t, d, 1, contexts)
    successes = np.random.default_rng(2).binomial(trials, 0.4)
    whole = gather(x, trials, successes, context)
    keys = x if context is None else np.column_stack([x, context])
    assert len(whole.x) < len(np.unique(keys[trials > 0], axis=0))
    order = np.random.default_rng(3).permutation(t)
    split = np.concatenate([order, order])  # every trial in two parts, one of them elsewhere
    part = np.concatenate([trials[order] // 2, trials[order] - trials[order] // 2])
    won = np.minimum(successes[order], part[:t])
    moved = gather(
        x[split],
        part,
        np.concatenate([won, successes[order] - won]),
        None if context is None else context[split],
    )
    assert same(whole, moved)


@pytest.mark.parametrize("grid", [COARSE, FINE], ids=["coarse", "fine"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_cells_add_up_and_stand_at_the_mean_of_their_trials(d, grid):
    t = 3 * grid.most[d]
    x, trials, _ = scattered(t, d, 4)
    trials += 1
    successes = np.random.default_rng(5).binomial(trials, 0.4)
    rows = gather(x, trials, successes, grid=grid)
    cell = np.minimum(np.floor(x * grid.cells[d]), grid.cells[d] - 1)
    _, which = np.unique(cell, axis=0, return_inverse=True)
    which = which.ravel()
    np.testing.assert_array_equal(rows.trials, np.bincount(which, trials))
    np.testing.assert_array_equal(rows.successes, np.bincount(which, successes))
    mean = np.stack([np.bincount(which, trials * a) / np.bincount(which, trials) for a in x.T], 1)
    np.testing.assert_allclose(rows.x, mean, atol=2e-9)
    assert rows.is_plain


@pytest.mark.parametrize("long", [1, 7, 100, 1000])
@pytest.mark.parametrize("context", [None, np.array([0.2, 0.9])])
@pytest.mark.parametrize("d", [1, 2])
def test_parts_cannot_be_seen(long, context, d):
    """Rows are gathered in parts of any size, at places and, from some part on, in cells."""
    for t in (50, 700, 3 * COARSE.most[d]):
        x, trials, _ = scattered(t, d, 8)
        x[: t // 2] = x[0]
        successes = trials // 2
        whole = gather(x, trials, successes, context)
        parts = gather(2.0 * x, trials, successes, context, box=lambda x: 0.5 * x, long=long)
        assert same(whole, parts)


@pytest.mark.parametrize("d", [2, 3])
def test_levels_stay_levels_to_the_last_bit(d):
    rng = np.random.default_rng(9)
    t = 4 * COARSE.most[d]
    x = rng.random((t, d))
    levels = np.sort(rng.random(100))
    levels[1] = levels[0] + 1e-12
    day = rng.integers(100, size=t)
    x[:, 1] = levels[day]
    y = rng.integers(0, 2, t)
    rows = gather(x, np.ones(t, np.int64), y, levels=(None, levels, None)[:d])
    np.testing.assert_array_equal(np.unique(rows.x[:, 1]), np.unique(x[:, 1]))
    which = np.searchsorted(levels, rows.x[:, 1])
    np.testing.assert_array_equal(np.bincount(which, rows.trials), np.bincount(day))
    np.testing.assert_array_equal(np.bincount(which, rows.successes), np.bincount(day, y))
    assert len(rows.x) < t


def test_many_trials_of_three_features_get_narrower_cells():
    assert [COARSE.side(3, t) for t in (1, 1e4, 1e5, 1e6, 1e12)] == [16, 16, 19, 24, 24]
    assert [COARSE.side(d, 1e12) for d in (1, 2)] == [256, 40]
    assert FINE.side(3, 1e12) == 40
    rng = np.random.default_rng(10)
    x, y = rng.random((5_000, 3)), rng.integers(0, 2, 5_000)
    for n, side in ((1, 16), (400, 24)):
        rows = gather(x, np.full(5_000, n), n * y)
        assert len(rows.x) == len(np.unique(np.floor(side * x), axis=0))
        assert rows.n.sum() == 5_000 * n
    halves = gather(x, np.full(5_000, 800), 800 * y, unit=0.5)
    assert len(halves.x) == len(np.unique(np.floor(24 * x), axis=0))


def test_cells_leave_room_for_levels():
    few, many = np.linspace(0, 1, 365), np.linspace(0, 1, 512)
    assert FINE.cut(2, (few, None)).sides == (365, 192)
    assert FINE.cut(3, (few, None, None)).sides == (365, 18, 18)
    assert FINE.cut(2, (few, many)).sides == (365, 192)
    assert FINE.cut(2, (few, few[:200])).sides == (365, 200)
    assert FINE.cut(3).sides == (40, 40, 40)


def test_unequal_contexts_do_not_share_a_cell():
    x = np.full((400, 1), 0.5) + np.linspace(0, 1e-4, 400)[:, None]
    context = np.where(np.arange(400)[:, None] % 2, (0.0, 1.0), (0.5, 0.98))
    rows = gather(x, np.ones(400, np.int64), np.zeros(400, np.int64), context)
    np.testing.assert_allclose(rows.context, [[0.0, 1.0], [0.5, 0.98]], atol=1e-9)
    assert list(rows.trials) == [200, 200]


def test_fractions_of_trials_are_counted_in_their_unit():
    x, trials, _ = scattered(900, 1, 6)
    trials = (trials + 1) * 2**40  # far too many to weigh a sum of coordinates with
    successes = trials // 2
    rows = gather(x, trials, successes, unit=2.0**-40)
    whole = by_place(Rows(x, trials >> 40, successes >> 40, np.tile([0.0, 1.0], (900, 1))))
    cut = COARSE.cut(1)
    plain = cell_sums(whole, cut).rows(cut)
    np.testing.assert_array_equal(rows.n, plain.trials)
    np.testing.assert_allclose(rows.x, plain.x, atol=1e-8)


def test_four_features_stay_places():
    x, trials, _ = scattered(9_000, 4, 7)
    rows = gather(x, trials + 1, trials)
    assert len(rows.x) == 6_000


def test_no_trials_are_refused():
    nothing = np.zeros(2, np.int64)
    with pytest.raises(ValueError, match="trials: found none"):
        gather(np.zeros((2, 1)), nothing, nothing)


@pytest.mark.parametrize(("ends", "successes"), [((0.0, 0.0), 1), ((1.0, 1.0), 0)])
def test_impossible_outcomes_are_refused_by_row(ends, successes):
    x, one = np.zeros((3, 1)), np.ones(3, np.int64)
    context = np.array([[0.0, 1.0], [0.2, 0.9], ends])
    with pytest.raises(ValueError, match=r"context row 2: found \[.*cannot happen"):
        gather(x, one, np.array([0, 1, successes]), context)
