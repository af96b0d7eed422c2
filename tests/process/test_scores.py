"""Weights of process and windows: scores against real refits, weights in clear cases."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import ttest_1samp

from betafield.posteriors import LatentNormal
from betafield.process import law, leaving, mixtures, scores
from betafield.process.blocks import Arrangement, Column
from betafield.process.design import matrix
from betafield.process.fit import Problem, fit, fit_links, settled, weights
from betafield.process.following import Following, Own
from betafield.process.groups import by_group, level_effects
from betafield.process.ladder import UNIT, WIDTHS, units, window_sums
from betafield.process.links import LOGIT
from betafield.process.model import Sums, build, find
from betafield.process.residuals import Window, by_category, corrected, parts, residuals
from betafield.process.rows import Rows, by_place

SQUARE = np.array([[0.0, 1.0], [0.0, 1.0]])


def process_mean(fits, x):
    return law.mean([law.surface(f) for f in fits], weights(fits), [x] * len(fits))


def contest(fits, rows):
    return scores.contest(fits, rows, (rows.x,) * len(fits))


def window_of(x, rows, left, window, ways):
    """Return Σg and ΣW of windows about points, by brute force."""
    held = units(parts(left.score, left.information))
    total = window_sums(x, rows.x, held, ways[window.stretch])[:, window.width] / UNIT
    return total[:, 0] - total[:, 1], total[:, 2]


def table(rows):
    return Sums(rows.x, rows.trials, rows.successes, rows.context)


def smooth(t, seed, context=(0.0, 1.0)):
    rng = np.random.default_rng(seed)
    x = rng.random((t, 2))
    p = 0.5 + 0.4 * np.sin(5 * x[:, 0]) * x[:, 1]
    y = rng.random(t) < context[0] + (context[1] - context[0]) * p
    return by_place(Rows(x, np.ones(t, np.int64), y * 1, np.tile(context, (t, 1))))


def days(t, seed, levels=40):
    rng = np.random.default_rng(seed)
    effect = np.random.default_rng(99).normal(size=levels)
    day = rng.integers(levels, size=t)
    x = np.column_stack([(day + 0.5) / levels, rng.random(t)])
    y = rng.random(t) < expit(effect[day] + 0.8 * (x[:, 1] - 0.5))
    return by_place(Rows(x, np.ones(t, np.int64), y * 1, np.tile([0.0, 1.0], (t, 1)))), effect


def real(rows, i, window, ways, theta):
    """Return log P of row i by a process fitted to the others and a window of their residuals."""
    others = rows.taken(np.delete(np.arange(len(rows.x)), i))
    again = (fit(others, LOGIT, theta),)
    m = process_mean(again, rows.x[i : i + 1])
    if window is not None:
        left = residuals(process_mean(again, others.x), others)
        m = corrected(m, *window_of(rows.x[i : i + 1], others, left, window, ways), window.tau)
    q = rows.context[i, 0] + (rows.context[i, 1] - rows.context[i, 0]) * m[0]
    return np.log(q if rows.k[i] else 1.0 - q)


def by_trial(match, entries):
    """Return log P of entries under all candidates, each left out."""
    every = np.ones(len(match.candidates), dtype=np.bool_)
    return scores.Leaving.of(match, entries).logs(every)


@pytest.mark.parametrize(
    "make",
    [lambda: smooth(150, 1), lambda: days(200, 2, 20)[0], lambda: smooth(200, 3, (0.3, 0.95))],
    ids=["smooth", "days", "guesses"],
)
def test_scores_are_those_of_real_refits(make):
    rows = make()
    found = fit(rows, LOGIT)
    match = contest((found,), rows)
    ways = match.ways
    some = np.arange(0, len(rows.x), max(1, len(rows.x) // 20))
    entries = scores.entries(rows, some)
    logs = by_trial(match, entries)
    wanted = [
        None,
        Window(0, 15, 0.3),
        Window(0, len(WIDTHS) - 1, 1.2),
        Window(len(ways) - 2, 0, 1.2),
    ]
    gaps = []
    for at, i in enumerate(entries.row):
        for window in wanted:
            score = logs[match.candidates.index(window), at]
            gaps.append(score - real(rows, i, window, ways, found.theta))
    by_row = np.array(gaps).reshape(-1, len(wanted)).mean(axis=1)
    assert np.abs(gaps).mean() < 0.02
    assert abs(np.mean(gaps)) < 0.01
    assert ttest_1samp(by_row, 0.0).pvalue > 0.001


def sites(t, seed, *counts, truth=lambda x: 2.0 * np.sin(5 * x)):
    """Return trials with levels of columns, each level with its own intercept."""
    rng = np.random.default_rng(seed)
    levels = [rng.integers(size, size=t) for size in counts]
    x = rng.random(t)
    f = truth(x) + sum(np.linspace(-1.0, 1.0, n)[at] for n, at in zip(counts, levels, strict=True))
    codes = [at / (n - 1) for n, at in zip(counts, levels, strict=True)]
    y, plain = rng.random(t) < expit(f), np.tile([0.0, 1.0], (t, 1))
    rows = by_place(Rows(np.column_stack([x, *codes]), np.ones(t, np.int64), y * 1, plain))
    return rows._replace(columns=tuple(Column(size) for size in counts))


@pytest.mark.parametrize("counts", [(4,), pytest.param((5, 2), marks=pytest.mark.long)])
def test_scores_beside_levels_are_those_of_real_refits(counts):
    """The left-out trial also changes the process's levels and the residuals of the others."""
    rows = sites(160, 3, *counts)
    found = fit(rows, LOGIT)
    match = contest((found,), rows)
    ways, whole = match.ways, len(WIDTHS) - 1
    each = [(i, b) for i in range(len(ways)) for b in (0, 13, whole)]
    wanted = [None, *(Window(i, b, 1.2) for i, b in each)]
    entries = scores.entries(rows, np.arange(0, len(rows.x), 8))
    logs = by_trial(match, entries)
    gaps = np.empty((len(wanted), len(entries.row)))
    for at, i in enumerate(entries.row):
        others = rows.taken(np.delete(np.arange(len(rows.x)), i))
        again = (fit(others, LOGIT, found.theta),)
        m, x = process_mean(again, rows.x[i : i + 1]), rows.x[i : i + 1]
        left = residuals(process_mean(again, others.x), others)
        for w, window in enumerate(wanted):
            sums = (0.0, 0.0) if window is None else window_of(x, others, left, window, ways)
            q = corrected(m, *sums, 1.2)[0]
            score = logs[match.candidates.index(window), at]
            gaps[w, at] = score - np.log(q if rows.k[i] else 1.0 - q)
    assert np.abs(gaps).mean() < 0.02
    assert np.abs(gaps.mean(axis=1)).max() < 0.01


@pytest.mark.parametrize("columns", [1, 2])
def test_windows_beside_levels_hold_all_of_them_or_one_of_each(columns):
    rng = np.random.default_rng(8)
    codes = rng.integers(3, size=(60, columns))
    rows = np.column_stack([rng.random((60, 1)), codes / 2.0])
    ways = by_category((np.ones(1),), columns)
    assert len(ways) == (2 if columns == 1 else 4)
    for way in ways:
        near = np.abs(rows[:, 0] - 0.4) <= WIDTHS[15]
        apart = way[1:] > 0.0
        is_in = near & (codes[:, apart] == codes[7, apart]).all(axis=1)
        at = np.column_stack([[0.4], rows[7:8, 1:]])
        held = window_sums(at, rows, np.ones((60, 1), np.int64), way)[0, 15, 0]
        assert held == is_in.sum()


@pytest.mark.long
def test_what_levels_share_and_is_rough_is_found_by_windows():
    """Teeth too narrow for the trials of one level; windows contain all levels."""
    comb = lambda x: 2.5 * np.sign(np.sin(40.0 * x))
    rows = sites(1_500, 1, 4, truth=comb)
    levels = np.round(rows.x[:, 1] * 3.0)
    given = table(rows)._replace(points=rows.x[:, :1], codes=levels[:, None])
    given = given._replace(arrangement=Arrangement((0,), ((1,),)))
    found = find(given, SQUARE[:1])
    assert sum(w.weight for w in found.windows) > 0.5
    assert sum(w.weight for w in found.windows if w.stretch[1] == 0.0) > 0.5
    grid = np.linspace(0.01, 0.99, 99)
    asked = np.column_stack([grid, np.ones(99)])
    truth = expit(comb(grid) - 1.0 / 3.0)
    plain, whole = (
        mixtures.mean(build(given, SQUARE[:1], each).laws(asked))
        for each in (found._replace(windows=()), found)
    )
    assert np.mean((whole - truth) ** 2) < 0.8 * np.mean((plain - truth) ** 2)


def test_without_following_the_outcome_leaks():
    """On pure noise no window predicts; without the changes of others, wide ones would seem to."""
    rng = np.random.default_rng(4)
    rows = by_place(
        Rows(
            rng.random((300, 1)),
            np.ones(300, np.int64),
            rng.integers(0, 2, 300),
            np.tile([0.0, 1.0], (300, 1)),
        )
    )
    found = fit(rows, LOGIT)
    windows, w = scores.weighed(scores.scored(contest((found,), rows)))
    assert windows[0] is None
    assert w[0] > 0.6


@pytest.mark.parametrize("seed", [5, 6])
def test_smooth_fields_stay_with_the_process(seed):
    given = table(smooth(400, seed))
    found = find(given, SQUARE)
    x = np.random.default_rng(7).random((300, 2))
    truth = 0.5 + 0.4 * np.sin(5 * x[:, 0]) * x[:, 1]
    errors = [
        np.mean((mixtures.mean(build(given, SQUARE, each).laws(x)) - truth) ** 2)
        for each in (found, found._replace(windows=()))
    ]
    assert sum(window.weight for window in found.windows) < 0.5
    assert errors[0] < 1.1 * errors[1]


def test_effects_of_days_are_found():
    rows, effect = days(3_000, 8)
    found = find(table(rows), SQUARE)
    day = np.arange(40)
    x = np.column_stack([(day + 0.5) / 40, np.full(40, 0.3)])
    truth = expit(effect + 0.8 * -0.2)
    laws = build(table(rows), SQUARE, found).laws(x)
    low, high = LatentNormal(laws).interval()
    plain = find(table(rows), SQUARE, with_windows=False)
    alone = build(table(rows), SQUARE, plain).laws(x)
    error = np.mean((mixtures.mean(laws) - truth) ** 2)
    assert error < 0.3 * np.mean((mixtures.mean(alone) - truth) ** 2)
    assert np.mean((low <= truth) & (truth <= high)) >= 0.85
    assert found.components[0].effect == 0


def test_the_variance_between_days_is_that_of_windows_along_days():
    rows, _ = days(3_000, 8)
    match = contest((fit(rows, LOGIT),), rows)
    windows, w = scores.weighed(scores.scored(match))
    weight, variance = level_effects(windows, w, match.ways, 0, 1 / 40)
    assert 0.9 < weight <= 1.0
    assert 0.3 < variance < 1.3
    assert level_effects(windows, w, match.ways, 1, 1 / 40) == (0.0, 0.0)
    assert level_effects(windows, w, match.ways, 0, 0.0) == (0.0, 0.0)


def test_a_sample_is_chosen_by_hash_and_grows_under_contexts():
    plain, guessed = smooth(300, 10), smooth(300, 10, (0.5, 1.0))
    m = np.full(300, 0.5)
    few = scores.sampled(plain, residuals(m, plain), 50)
    more = scores.sampled(guessed, residuals(m, guessed), 50)
    assert len(few) == 50
    assert len(more) == 150  # A² m(1−m)/(q(1−q)) = 1/3 at m = ½
    assert len(set(more)) == 150


@pytest.mark.parametrize("way", [(1.0, 1.0), (1.0, 0.3), (1.0, 0.0), (0.0, 1.0)])
def test_cells_follow_as_pairs_do(way):
    """Means of C over windows without the trial itself, by cells and place by place.

    A strip along one feature with a few of the rows has C at their places along the other feature,
    whereas cells have its mean over all: for k rows the sums differ by √k h times the deviation of
    C along the strip, some hundredths. They do not differ systematically: that would be the trial
    itself, whose C is the largest.
    """
    rows = smooth(600, 11)
    found = fit(rows, LOGIT)
    follow = Following.of(found, rows)
    some = np.arange(0, 600, 10)
    queries, stretch = rows.x[some], np.array(way)
    P = matrix(found.mode.basis, rows.x)
    turned = P[some] @ leaving.joint_covariance(found)
    others = some[:, None] != np.arange(600)
    pairs = turned @ P.T * follow.follow * others
    apart = np.abs((queries[:, None] - rows.x) * stretch).max(axis=2)
    means = follow.moves(queries, turned, Own(some, follow.follow[some])).means(stretch)
    for b, width in enumerate(WIDTHS):
        held = apart <= width
        is_strip = min(way) == 0.0 and (held & others).sum(axis=1).mean() < 50
        found_sum = means[:, b] * (follow.follow * (held & others)).sum(axis=1)
        size = np.abs(pairs * held).sum(axis=1).max()
        gap = (pairs * held).sum(axis=1) - found_sum
        assert np.abs(gap).mean() <= 0.05 * size + (0.01 if is_strip else 0.001)
        assert abs(gap.mean()) <= 0.015 * size + 0.005
    assert abs(gap.mean()) < 1e-3


def test_windows_without_hope_are_not_asked_again():
    rng = np.random.default_rng(20)
    logs = np.log(rng.uniform(0.4, 0.6, (1, 200))) + rng.normal(0, 0.05, (4, 200))
    logs[1] -= 0.5
    logs[2] += 0.5
    every = np.ones(4, dtype=bool)
    assert scores.promising(logs, every, 4.0).tolist() == [True, False, True, False]
    logs[2] -= 0.5
    assert scores.promising(logs, every, 4.0).tolist() == [True, False, True, True]


def test_dropping_windows_early_changes_no_weight_that_matters():
    rows, _ = days(3_000, 21)
    match = contest(fit_links(rows), rows)
    kept, w = scores.weighed(scores.scored(match))
    every, full = scores.weighed(scores.scored(match, deviations=1e9))
    assert kept == every
    np.testing.assert_allclose(w, full, rtol=1e-12)


def test_windows_weigh_by_what_they_gain_over_the_process():
    candidates = (None, *(Window(0, b, 0.3) for b in range(10)))
    # No better than the process, or worse: no weight.
    kept, w = scores.weighed(scores.Scored(candidates, np.array([0.0, *[0.0] * 5, *[-1.0] * 5])))
    assert (kept, w.tolist()) == ((None,), [1.0])
    # e^(s/4) − 1 = 1 each, with a prior weight of 1/10 of the process's.
    better = np.array([7.0, *[7.0 + 4.0 * np.log(2.0)] * 10])
    _, w = scores.weighed(scores.Scored(candidates, better))
    np.testing.assert_allclose(w, [0.5] + [0.05] * 10, rtol=1e-12)
    kept, w = scores.weighed(scores.Scored(candidates, np.array([-400.0, *[0.0] * 9, -60.0])))
    assert kept[0] is None
    assert len(kept) == 10
    assert w[0] < 1e-6


def test_a_group_of_one_trial_is_a_trial():
    """Leaving out places of one trial each equals leaving out trials, up to hyper-parameters."""
    rows = smooth(120, 12)
    found = fit(rows, LOGIT)
    match = contest((found,), rows)
    grouped = by_group(match, np.arange(120))
    logs = by_trial(match, scores.entries(rows, np.arange(120)))
    asked = np.isfinite(grouped.scored.scores)
    assert asked.mean() > 0.5
    np.testing.assert_allclose(grouped.scored.scores[asked], logs.sum(axis=1)[asked], rtol=0.03)
    assert 1.0 <= grouped.spread < 1.3


def test_new_days_are_told_from_days_that_were_seen():
    """Scores by level: a day that is left out whole has no window of its own."""
    rows, _ = days(1_500, 13)
    found = fit(rows, LOGIT)
    match = contest((found,), rows)
    ways, grouped = match.ways, by_group(match, rows.x[:, 0])
    own = [
        i
        for i, window in enumerate(grouped.scored.candidates)
        if window is not None and window.width == 0 and ways[window.stretch].tolist() == [1.0, 0.0]
    ]
    np.testing.assert_allclose(grouped.scored.scores[own], grouped.scored.scores[0], rtol=1e-9)
    assert grouped.spread > 2.0
    assert grouped.temperature == pytest.approx(4.0 * np.sqrt(grouped.spread))


def test_groups_against_real_refits():
    """A place of ten trials is left out whole, with fixed hyper-parameters."""
    rng = np.random.default_rng(14)
    x = np.linspace(0.0, 1.0, 30)[:, None]
    k = rng.binomial(10, 0.5 + 0.35 * np.sin(5 * x[:, 0]))
    rows = by_place(Rows(x, np.full(30, 10), k, np.tile([0.0, 1.0], (30, 1))))
    found = fit(rows, LOGIT)
    grouped = by_group(contest((found,), rows), np.arange(30))
    exact = 0.0
    for i in range(30):
        others = rows.taken(np.delete(np.arange(30), i))
        m = process_mean((fit(others, LOGIT, found.theta),), rows.x[i : i + 1])[0]
        exact += k[i] * np.log(m) + (10 - k[i]) * np.log1p(-m)
    assert grouped.scored.scores[0] == pytest.approx(exact, abs=0.02 * 300)


def real_group(rows, group, windows, match):
    """Return log P of a group by a process fitted to the others and windows of their residuals."""
    prior, theta, ways = match.best.problem.prior, match.best.theta, match.ways
    some, others = rows.taken(np.flatnonzero(group)), rows.taken(np.flatnonzero(~group))
    again = (settled(Problem(others, LOGIT, prior), theta),)
    left, m = residuals(process_mean(again, others.x), others), process_mean(again, some.x)
    each = [m] + [
        corrected(m, *window_of(some.x, others, left, window, ways), window.tau)
        for window in windows
    ]
    return [np.sum(some.k * np.log(q) + (some.n - some.k) * np.log1p(-q)) for q in each]


@pytest.mark.parametrize("seed", [5, 6])
def test_windows_of_groups_against_real_refits(seed):
    """Days left out whole must not affect how the residuals of others follow.

    Their own covariances are the largest: in the mean by which the others follow they would raise
    the scores of all wide windows, by 1.5 for seed 5.
    """
    rows, _ = days(300, seed, 12)
    match = contest((fit(rows, LOGIT),), rows)
    widths = range(10, len(WIDTHS), 3)
    windows = [Window(i, b, 1.2) for i in range(len(match.ways)) for b in widths]
    found = by_group(match, rows.x[:, 0]).scored.scores
    asked = found[[match.candidates.index(window) for window in (None, *windows)]]
    which = [rows.x[:, 0] == day for day in np.unique(rows.x[:, 0])]
    exact = np.sum([real_group(rows, group, windows, match) for group in which], axis=0)
    is_asked = np.isfinite(asked)
    gain, exact_gain = (asked - asked[0])[is_asked], (exact - exact[0])[is_asked]
    assert is_asked.sum() > len(widths)
    assert asked[0] == pytest.approx(exact[0], abs=0.5)
    assert (np.abs(gain - exact_gain) < 0.2 + 0.05 * np.abs(exact_gain)).all()


def test_links_count_by_their_weight():
    rows = smooth(200, 15)
    fits = fit_links(rows)
    parts = np.array([process_mean((f,), rows.x) for f in fits])
    assert len(parts) > 1
    np.testing.assert_allclose(process_mean(fits, rows.x), weights(fits) @ parts)
