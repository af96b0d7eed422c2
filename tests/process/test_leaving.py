"""Leave-one-out predictions, against fits without the trial."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from betafield.process import averages, law, leaving
from betafield.process.fit import Problem, fit, settled
from betafield.process.links import LINKS, LOGIT
from betafield.process.rows import Rows, by_place


def trials(t, d, seed, wave, context=(0.0, 1.0)):
    rng = np.random.default_rng(seed)
    x = rng.random((t, d))
    p = 0.5 + 0.45 * np.sin(wave * x[:, 0]) * x[:, -1]
    p = context[0] + (context[1] - context[0]) * p
    return by_place(
        Rows(x, np.ones(t, np.int64), (rng.random(t) < p) * 1, np.tile(context, (t, 1)))
    )


def log_scores(full):
    """Return log P of every row's trial, had it been left out."""
    rows = full.problem.rows
    p = leaving.means(full, rows, rows.k == 1)
    q = rows.context[:, 0] + (rows.context[:, 1] - rows.context[:, 0]) * p
    return np.log(np.where(rows.k == 1, q, 1.0 - q))


def refitted(full, i, again):
    """Return log P of row i under a fit to the others."""
    rows, link = full.problem.rows, full.problem.link
    others = rows.taken(np.delete(np.arange(len(rows.x)), i))
    problem = Problem(others, link, full.problem.prior)
    found = fit(others, link, full.theta) if again else settled(problem, full.theta)
    at = law.latent(law.surface(found), rows.x[i : i + 1])
    p = averages.mean(link, at.mean, np.sqrt(at.narrow))[0]
    q = rows.context[i, 0] + (rows.context[i, 1] - rows.context[i, 0]) * p
    return np.log(q if rows.k[i] else 1.0 - q)


CASES = [(200, 1, 6.0), (200, 2, 4.0), (250, 3, 3.0)]


@pytest.mark.sampled
@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@pytest.mark.parametrize(("t", "d", "wave"), CASES)
def test_trials_are_as_if_never_seen(link, t, d, wave):
    full = fit(trials(t, d, 1, wave), link)
    left = log_scores(full)
    some = range(0, t, t // 25)
    gap = np.array([left[i] - refitted(full, i, again=True) for i in some])
    assert np.abs(gap).mean() < 0.02
    assert abs(gap.mean()) < 0.01


def test_without_bias():
    """Over data sets, the error is as often positive as negative."""
    gaps = []
    for seed in range(6):
        full = fit(trials(150, 2, 20 + seed, 4.0), LOGIT)
        left = log_scores(full)
        gaps += [left[i] - refitted(full, i, again=True) for i in range(0, 150, 15)]
    assert ttest_1samp(gaps, 0.0).pvalue > 0.01
    assert np.abs(gaps).mean() < 0.02


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
def test_under_a_guess_rate(link):
    full = fit(trials(250, 1, 3, 5.0, (0.5, 0.98)), link)
    left = log_scores(full)
    gap = np.array([left[i] - refitted(full, i, again=True) for i in range(0, 250, 10)])
    assert np.abs(gap).mean() < 0.02


def test_seen_trials_look_better_than_they_are():
    full = fit(trials(200, 2, 4, 5.0), LOGIT)
    rows = full.problem.rows
    p = LOGIT.value(full.mode.f)
    seen = rows.k * np.log(p) + (1 - rows.k) * np.log1p(-p)
    assert log_scores(full).sum() < seen.sum() - 1.0
