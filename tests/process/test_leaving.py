"""Leaving out, against fits that have really not seen the trial."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm, ttest_1samp

from betafield import contexts
from betafield.process import averages, law, leaving
from betafield.process.basis import Prior
from betafield.process.fit import Problem, fit, fit_links, settled, weights
from betafield.process.links import LINKS, LOGIT, SOFT
from betafield.process.rows import Rows, by_place


def trials(t, d, seed, wave, context=(0.0, 1.0)):
    rng = np.random.default_rng(seed)
    x = rng.random((t, d))
    p = 0.5 + 0.45 * np.sin(wave * x[:, 0]) * x[:, -1]
    p = context[0] + (context[1] - context[0]) * p
    return by_place(
        Rows(x, np.ones(t, np.int64), (rng.random(t) < p) * 1, np.tile(context, (t, 1)))
    )


def refitted(full, i, again):
    """log P of row i under a fit to the others."""
    rows, link = full.problem.rows, full.problem.link
    others = rows.taken(np.delete(np.arange(len(rows.x)), i))
    problem = Problem(others, link, full.problem.prior)
    found = fit(others, link, full.theta) if again else settled(problem, full.theta)
    at = law.latent(law.surface(found), rows.x[i : i + 1])
    p = averages.mean(link, at.mean, np.sqrt(at.narrow))[0]
    q = rows.context[i, 0] + (rows.context[i, 1] - rows.context[i, 0]) * p
    return np.log(q if rows.k[i] else 1.0 - q)


CASES = [(200, 1, 6.0), (200, 2, 4.0), (250, 3, 3.0)]


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@pytest.mark.parametrize(("t", "d", "wave"), CASES)
def test_trials_are_as_if_never_seen(link, t, d, wave):
    full = fit(trials(t, d, 1, wave), link)
    rows = full.problem.rows
    left = leaving.log_score(leaving.trials(full), rows.n, rows.k)
    some = range(0, t, t // 25)
    gap = np.array([left[i] - refitted(full, i, again=True) for i in some])
    assert np.abs(gap).mean() < 0.02
    assert abs(gap.mean()) < 0.01


def test_without_bias():
    """Over data sets: as often too high as too low."""
    gaps = []
    for seed in range(6):
        full = fit(trials(150, 2, 20 + seed, 4.0), LOGIT)
        rows = full.problem.rows
        left = leaving.log_score(leaving.trials(full), rows.n, rows.k)
        gaps += [left[i] - refitted(full, i, again=True) for i in range(0, 150, 15)]
    assert ttest_1samp(gaps, 0.0).pvalue > 0.01
    assert np.abs(gaps).mean() < 0.02


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
def test_under_a_guess_rate(link):
    full = fit(trials(250, 1, 3, 5.0, (0.5, 0.98)), link)
    rows = full.problem.rows
    left = leaving.log_score(leaving.trials(full), rows.n, rows.k)
    gap = np.array([left[i] - refitted(full, i, again=True) for i in range(0, 250, 10)])
    assert np.abs(gap).mean() < 0.02


def test_seen_trials_look_better_than_they_are():
    full = fit(trials(200, 2, 4, 5.0), LOGIT)
    rows = full.problem.rows
    p = LOGIT.value(full.mode.f)
    seen = rows.k * np.log(p) + (1 - rows.k) * np.log1p(-p)
    assert leaving.log_score(leaving.trials(full), rows.n, rows.k).sum() < seen.sum() - 1.0


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
def test_whole_rows_against_refits(link):
    """Rows of ten trials at twenty places, the hyper-parameters kept."""
    rng = np.random.default_rng(5)
    x = np.linspace(0.0, 1.0, 20)[:, None]
    k = rng.binomial(10, 0.5 + 0.35 * np.sin(5 * x[:, 0]))
    rows = by_place(Rows(x, np.full(20, 10), k, np.tile([0.0, 1.0], (20, 1))))
    problem = Problem(rows, link, Prior(link.scale, 200.0))
    theta = np.array([np.log(link.scale), np.log(0.25)])
    full = settled(problem, theta)
    found = leaving.whole_rows(full)
    z, gaps = np.linspace(-8, 8, 4001), []
    for i in range(20):
        others = rows.taken(np.delete(np.arange(20), i))
        fewer = settled(problem._replace(rows=others), theta)
        surface = law.surface(fewer)
        phi = law.design(surface.basis, rows.x[i : i + 1])
        f = phi.values(fewer.mode.b) + z * np.sqrt(phi.forms(surface.narrow))
        log = k[i] * np.log(link.value(f)) + (10 - k[i]) * np.log(link.value(-f))
        exact = logsumexp(log + norm.logpdf(z)) + np.log(z[1] - z[0])
        assert found[i] == pytest.approx(exact, rel=0.05)
        gaps.append(found[i] - exact)
    assert np.abs(gaps).mean() < 0.1  # of ten trials


def test_success_under_a_pool_is_the_integral():
    context = np.tile(contexts.pooled(4, 0.9, 0.97), (3, 1))
    centre, deviation = np.array([-1.0, 0.2, 1.5]), np.array([0.1, 0.6, 1.0])
    z = np.linspace(-9, 9, 20_001)
    for link in (LOGIT, SOFT):
        p = link.value(centre[:, None] + deviation[:, None] * z)
        q = contexts.probability(context[:, None, :], p)
        exact = (q * norm.pdf(z)).sum(axis=1) * (z[1] - z[0])
        found = leaving.success_mean(link, context, centre, deviation)
        np.testing.assert_allclose(found, exact, atol=3e-3)


def test_links_are_mixed_by_weight():
    fits = fit_links(trials(100, 1, 6, 5.0))
    parts = [leaving.trials(f) for f in fits]
    found = leaving.mixed(parts, weights(fits))
    w = weights(fits)
    np.testing.assert_allclose(found.success, w[0] * parts[0].success + w[1] * parts[1].success)
    assert (found.success <= found.failure).all()
