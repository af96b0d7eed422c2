"""Process and windows weighed: scores against real refits, weights where they must go."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import ttest_1samp

from betafield.process import following, leaving, mixtures, scores
from betafield.process.fit import fit, fit_links, weights
from betafield.process.groups import by_group, level_variance
from betafield.process.ladder import WIDTHS
from betafield.process.links import LOGIT
from betafield.process.residuals import Window, columns, corrected, residuals, stretches, sums
from betafield.process.rows import Rows, by_place, gather


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
    """log P of row i by a process fitted to the others and a window of their residuals."""
    others = rows.taken(np.delete(np.arange(len(rows.x)), i))
    again = (fit(others, LOGIT, theta),)
    m = scores.process_mean(again, rows.x[i : i + 1])
    if window is not None:
        left = residuals(scores.process_mean(again, others.x), others)
        held = columns(left.score, left.information)
        g, W = (
            part[:, window.width]
            for part in sums(rows.x[i : i + 1], others.x, held, ways[window.stretch])
        )
        m = corrected(m, g, W, window.tau)
    q = rows.context[i, 0] + (rows.context[i, 1] - rows.context[i, 0]) * m[0]
    return np.log(q if rows.k[i] else 1.0 - q)


def scored_each(rows, found, ways):
    """The scores of every row alone, from one call per row."""
    left_over = residuals(scores.process_mean((found,), rows.x), rows)
    out = {}
    for i in range(0, len(rows.x), max(1, len(rows.x) // 20)):
        one = np.array([i])
        left = leaving.means(found, rows.taken(one))
        out[i] = scores.by_trial(rows, left_over, one, left, ways, found)
    return out


@pytest.mark.parametrize(
    "make",
    [lambda: smooth(150, 1), lambda: days(200, 2, 20)[0], lambda: smooth(200, 3, (0.3, 0.95))],
    ids=["smooth", "days", "guesses"],
)
def test_scores_are_those_of_real_refits(make):
    rows = make()
    found = fit(rows, LOGIT)
    ways = stretches(found.lengths)
    each = scored_each(rows, found, ways)
    wanted = [
        None,
        Window(0, 15, 0.3),
        Window(0, len(WIDTHS) - 1, 1.2),
        Window(len(ways) - 2, 0, 1.2),
    ]
    gaps = []
    for i, scored in each.items():
        for window in wanted:
            score = scored.scores[scored.candidates.index(window)]
            gaps.append(score - real(rows, i, window, ways, found.theta))
    by_row = np.array(gaps).reshape(-1, len(wanted)).mean(axis=1)
    assert np.abs(gaps).mean() < 0.02
    assert abs(np.mean(gaps)) < 0.01
    assert ttest_1samp(by_row, 0.0).pvalue > 0.001


def test_without_following_the_outcome_leaks():
    """On pure noise no window predicts; without the others' moves, wide ones would seem to."""
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
    windows, w = scores.weighed(
        scores.by_trial(
            rows,
            residuals(scores.process_mean((found,), rows.x), rows),
            np.arange(300),
            leaving.means(found),
            stretches(found.lengths),
            found,
        )
    )
    assert windows[0] is None
    assert w[0] > 0.6


@pytest.mark.parametrize("seed", [5, 6])
def test_smooth_fields_stay_with_the_process(seed):
    rows = smooth(400, seed)
    fits = fit_links(rows)
    found = scores.blend(fits, rows)
    x = np.random.default_rng(7).random((300, 2))
    truth = 0.5 + 0.4 * np.sin(5 * x[:, 0]) * x[:, 1]
    alone = np.mean((scores.process_mean(fits, x) - truth) ** 2)
    both = np.mean((mixtures.mean(scores.answers(found, x)) - truth) ** 2)
    assert found.weights[0] > 0.5
    assert both < 1.1 * alone


def test_effects_of_days_are_found():
    rows, effect = days(3_000, 8)
    fits = fit_links(rows)
    found = scores.blend(fits, rows)
    day = np.arange(40)
    x = np.column_stack([(day + 0.5) / 40, np.full(40, 0.3)])
    truth = expit(effect + 0.8 * -0.2)
    laws = scores.answers(found, x)
    low, high = mixtures.interval(laws)
    alone = np.mean((scores.process_mean(fits, x) - truth) ** 2)
    assert np.mean((mixtures.mean(laws) - truth) ** 2) < 0.3 * alone
    assert np.mean((low <= truth) & (truth <= high)) >= 0.85
    heaviest = found.windows[int(np.argmax(found.weights))]
    assert found.stretches[heaviest.stretch].tolist() == [1.0, 0.0]
    assert level_variance(found.windows, found.weights, found.stretches, 0) > 0.2
    assert level_variance(found.windows, found.weights, found.stretches, 1) == 0.0


def test_order_cannot_be_seen():
    rng = np.random.default_rng(9)
    x, y = rng.random((300, 2)), rng.integers(0, 2, 300)
    one = np.ones(300, np.int64)
    order = rng.permutation(300)
    both = []
    for at in (np.arange(300), order):
        rows = gather(x[at], one, y[at])
        both.append(scores.blend(fit_links(rows), rows))
    assert both[0].windows == both[1].windows
    assert np.array_equal(both[0].weights, both[1].weights)


def test_a_sample_is_chosen_by_hash_and_grows_under_contexts(monkeypatch):
    monkeypatch.setattr(scores, "SAMPLE", 50)
    plain, guessed = smooth(300, 10), smooth(300, 10, (0.5, 1.0))
    m = np.full(300, 0.5)
    few = scores.sampled(plain, residuals(m, plain))
    more = scores.sampled(guessed, residuals(m, guessed))
    assert len(few) == 50
    assert len(more) == 150  # A² m(1−m)/(q(1−q)) = 1/3 at m = ½
    assert (np.diff(few) > 0).all()


def test_coarse_cells_follow_as_pairs_do(monkeypatch):
    rows = smooth(500, 11)
    found = fit(rows, LOGIT)
    sample, ways = np.arange(0, 500, 10), stretches(found.lengths)
    exact = following.follows(found, rows, sample, ways)
    monkeypatch.setattr(following, "FEW", 0)
    coarse = following.follows(found, rows, sample, ways)
    for a, b in zip(exact, coarse, strict=True):
        size = np.abs(a.success).max(axis=0)
        gap = np.abs(a.success - b.success).mean(axis=0)
        assert (gap <= 0.05 * size + 1e-3).all()


def test_weights_are_half_the_process_before_any_score():
    candidates = (None, *(Window(0, b, 0.3) for b in range(10)))
    _, w = scores.weighed(scores.Scored(candidates, np.zeros(11)))
    np.testing.assert_allclose(w, [0.5] + [0.05] * 10)
    kept, w = scores.weighed(scores.Scored(candidates, np.array([-400.0, *[0.0] * 9, -60.0])))
    assert kept[0] is None
    assert len(kept) == 10
    assert w[0] < 1e-6


def test_a_group_of_one_trial_is_a_trial():
    """Leaving out places of one trial each is leaving out trials, but for the hyper-parameters."""
    rows = smooth(120, 12)
    found = fit(rows, LOGIT)
    ways = stretches(found.lengths)
    left_over = residuals(scores.process_mean((found,), rows.x), rows)
    grouped = by_group(rows, left_over, np.arange(120), ways, found)
    trial = scores.by_trial(rows, left_over, np.arange(120), leaving.means(found), ways, found)
    assert grouped.scored.candidates == trial.candidates
    np.testing.assert_allclose(grouped.scored.scores, trial.scores, rtol=0.03)
    assert 1.0 <= grouped.spread < 1.3


def test_new_days_are_told_from_days_that_were_seen():
    """Scores by level: a day that is left out whole has no window of its own to go by."""
    rows, _ = days(1_500, 13)
    found = fit(rows, LOGIT)
    ways = stretches(found.lengths)
    left_over = residuals(scores.process_mean((found,), rows.x), rows)
    grouped = by_group(rows, left_over, rows.x[:, 0], ways, found)
    own = [
        i
        for i, window in enumerate(grouped.scored.candidates)
        if window is not None and window.width == 0 and ways[window.stretch].tolist() == [1.0, 0.0]
    ]
    np.testing.assert_allclose(grouped.scored.scores[own], grouped.scored.scores[0], rtol=1e-9)
    assert grouped.spread > 2.0
    assert grouped.temperature == pytest.approx(4.0 * np.sqrt(grouped.spread))


def test_groups_against_real_refits():
    """A place of ten trials left out whole, the hyper-parameters kept."""
    rng = np.random.default_rng(14)
    x = np.linspace(0.0, 1.0, 30)[:, None]
    k = rng.binomial(10, 0.5 + 0.35 * np.sin(5 * x[:, 0]))
    rows = by_place(Rows(x, np.full(30, 10), k, np.tile([0.0, 1.0], (30, 1))))
    found = fit(rows, LOGIT)
    left_over = residuals(scores.process_mean((found,), rows.x), rows)
    grouped = by_group(rows, left_over, np.arange(30), stretches(found.lengths), found)
    exact = 0.0
    for i in range(30):
        others = rows.taken(np.delete(np.arange(30), i))
        m = scores.process_mean((fit(others, LOGIT, found.theta),), rows.x[i : i + 1])[0]
        exact += k[i] * np.log(m) + (10 - k[i]) * np.log1p(-m)
    assert grouped.scored.scores[0] == pytest.approx(exact, abs=0.02 * 300)


def test_links_count_by_their_weight():
    rows = smooth(200, 15)
    fits = fit_links(rows)
    parts = [scores.process_mean((f,), rows.x) for f in fits]
    w = weights(fits)
    np.testing.assert_allclose(scores.process_mean(fits, rows.x), w[0] * parts[0] + w[1] * parts[1])
