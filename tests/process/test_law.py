"""Normal laws of fitted processes against dense Laplace, draws, scikit-learn and invariants."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessClassifier
from tests.process.test_laplace import Given

from betafield.posteriors import LatentNormal
from betafield.process import averages, law, mixtures
from betafield.process.basis import Prior
from betafield.process.design import matrix
from betafield.process.fit import Problem, fit, fit_links, settled, weights
from betafield.process.likelihood import read
from betafield.process.links import LINKS, LOGIT, SOFT
from betafield.process.rows import gather


def trials(t, d, seed):
    rng = np.random.default_rng(seed)
    x = rng.random((t, d))
    p = 0.5 + 0.4 * np.sin(5 * x[:, 0]) * x[:, -1]
    return gather(x, np.ones(t, np.int64), (rng.random(t) < p).astype(np.int64))


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_latent_laws_are_the_dense_ones(link, d):
    rows = trials(150, d, 1)
    theta = np.array([np.log(link.scale)] + [np.log(0.8)] * d)
    found = settled(Problem(rows, link, Prior(link.scale, 150.0)), theta)
    x = np.random.default_rng(2).random((25, d))
    P, Q = matrix(found.mode.basis, rows.x), matrix(found.mode.basis, x)
    S = np.linalg.inv(np.eye(P.shape[1]) + P.T * found.mode.reading.information @ P)
    J = Q @ S @ (found.mode.basis.slope * found.mode.b).T
    narrow = np.einsum("ij,jk,ik->i", Q, S, Q)
    wide = narrow + 3.0 * np.einsum("ij,jk,ik->i", J, found.covariance, J)
    v = np.einsum("ij,jk,ik->i", P, S, P)
    moved = S @ P.T @ (0.5 * v * read(found.mode.f, rows, link).third)
    ours = law.latent(law.surface(found), x)
    np.testing.assert_allclose(ours.mean, Q @ (found.mode.b + moved), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(ours.narrow, narrow, rtol=1e-7)
    np.testing.assert_allclose(ours.wide, wide, rtol=1e-7)


def test_scikit_learn_predicts_the_same_about_the_mode():
    rows = trials(150, 2, 3)
    theta = np.array([0.2, np.log(0.4), np.log(0.6)])
    found = settled(Problem(rows, LOGIT, Prior(1.0, 150.0)), theta)
    surface = law.surface(found)
    x = np.random.default_rng(4).random((40, 2))
    theirs = GaussianProcessClassifier(Given(surface.basis), optimizer=None, max_iter_predict=500)
    expected = theirs.fit(rows.x, rows.successes).predict_proba(x)[:, 1]
    at = law.latent(surface, x)
    mode = matrix(surface.basis, x) @ found.mode.b
    ours = averages.mean(LOGIT, mode, np.sqrt(at.narrow))
    np.testing.assert_allclose(
        ours, expected, atol=2e-4
    )  # scikit-learn's is an approximation of five terms


def test_the_mean_of_the_coefficients_is_nearer_to_that_of_the_posterior_than_the_mode():
    """At one place, the posterior of f is known up to a one-dimensional integral."""
    rows = gather(np.array([[0.5]]), np.array([12]), np.array([1]))
    found = settled(Problem(rows, LOGIT, Prior(1.0, 12.0)), np.array([0.0, np.log(0.5)]))
    P = matrix(found.mode.basis, rows.x)
    prior = float((P**2).sum())
    f = np.linspace(-15, 8, 20_001)
    density = norm.pdf(f, scale=np.sqrt(prior)) * np.exp(f) / (1 + np.exp(f)) ** 12
    exact = (f * density).sum() / density.sum()
    shifted = law.latent(law.surface(found), rows.x).mean[0]
    assert abs(shifted - exact) < 0.5 * abs(found.mode.f[0] - exact)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
def test_one_law_has_the_mean_under_the_narrow_variance(link):
    found = fit(trials(120, 2, 5), link)
    at = law.latent(law.surface(found), np.random.default_rng(6).random((50, 2)))
    centre, deviation = law.one_law(link, at)
    np.testing.assert_allclose(deviation**2, at.wide)
    np.testing.assert_allclose(
        averages.mean(link, centre, deviation),
        averages.mean(link, at.mean, np.sqrt(at.narrow)),
        atol=1e-7,
    )


def test_far_from_all_trials_it_is_the_base_rate():
    rows = trials(600, 2, 7)
    fits = fit_links(rows)
    laws = law.laws(fits, np.array([[40.0, 0.5], [0.5, -60.0]]))
    rates = [np.mean(f.problem.link.value(f.mode.f)) for f in fits]
    np.testing.assert_allclose(mixtures.mean(laws), weights(fits) @ rates, atol=1e-4)
    np.testing.assert_allclose(mixtures.mean(laws), rows.k.mean(), atol=0.01)
    low, high = LatentNormal(laws).interval()
    assert (high - low > 0.4).all()


def test_nothing_jumps_at_the_border_of_the_domain():
    fits = fit_links(trials(300, 1, 8))
    laws = law.laws(fits, np.array([[1.0], [1.0 + 1e-9], [-1e-9], [0.0]]))
    mean, (low, _) = mixtures.mean(laws), LatentNormal(laws).interval()
    np.testing.assert_allclose(mean[[0, 3]], mean[[1, 2]], atol=1e-8)
    np.testing.assert_allclose(low[[0, 3]], low[[1, 2]], atol=1e-8)


def test_an_answer_does_not_depend_on_what_is_asked_with_it():
    for d in (1, 2, 3):
        fits = fit_links(trials(200, d, 9))
        x = np.random.default_rng(10).random((12, d)) * 1.4 - 0.2
        whole = law.laws(fits, x)
        low, _ = LatentNormal(whole).interval()
        for i in range(len(x)):
            alone = law.laws(fits, x[i : i + 1])
            assert np.array_equal(alone.centres[:, 0], whole.centres[:, i])
            assert np.array_equal(alone.deviations[:, 0], whole.deviations[:, i])
            assert LatentNormal(alone).interval()[0][0] == low[i]


def mixture():
    rng = np.random.default_rng(11)
    centres = np.stack([rng.normal(size=30), 0.3 * rng.normal(size=30)])
    deviations = np.stack([0.2 + rng.random(30), 0.02 + 0.2 * rng.random(30)])
    return law.Laws((LOGIT, SOFT), np.array([0.3, 0.7]), centres, deviations)


def draws_of(laws, size):
    rng = np.random.default_rng(12)
    f = laws.centres + laws.deviations * rng.normal(size=(size, *laws.centres.shape))
    pi = np.stack([link.value(f[:, i]) for i, link in enumerate(laws.links)])
    first = rng.random((size, laws.centres.shape[1])) < laws.weights[0]
    return np.where(first, pi[0], pi[1])


def test_mixtures_are_what_their_draws_are():
    laws = mixture()
    pi = draws_of(laws, 40_000)
    np.testing.assert_allclose(mixtures.mean(laws), pi.mean(axis=0), atol=0.006)
    for q in (0.025, 0.3, 0.975):
        share = (pi <= LatentNormal(laws).ppf(q)).mean(axis=0)
        np.testing.assert_allclose(share, q, atol=0.012)


@pytest.mark.parametrize("q", [1e-6, 0.025, 0.5, 0.9, 0.999])
def test_quantiles_invert_the_distribution(q):
    laws = mixture()
    p = LatentNormal(laws).ppf(q)
    np.testing.assert_allclose(LatentNormal(laws).cdf(p), q, rtol=1e-6, atol=1e-12)


def test_density_is_the_slope_of_the_distribution():
    laws = mixture()
    p = np.random.default_rng(13).uniform(0.05, 0.95, 30)
    below = LatentNormal(laws).cdf
    slope = (below(p + 1e-6) - below(p - 1e-6)) / 2e-6
    np.testing.assert_allclose(mixtures.pdf(laws, p), slope, rtol=1e-4, atol=1e-6)
