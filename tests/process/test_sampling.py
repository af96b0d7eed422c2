"""Moments of the coefficients under contexts, against integrals over one and two latent values."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from betafield import SmoothBetaClassifier, contexts
from betafield.process import law
from betafield.process.basis import Prior
from betafield.process.design import matrix
from betafield.process.finding import inside
from betafield.process.fit import Problem, settled
from betafield.process.likelihood import log_likelihoods
from betafield.process.links import LINKS
from betafield.process.rows import gather
from betafield.process.sampling import can_be_sampled, moments

GUESSING = contexts.guess_lapse(0.5, 0.02)


def fitted(x, n, k, link, context=GUESSING, d=1):
    rows = gather(np.reshape(x, (-1, d)), np.array(n), np.array(k), np.tile(context, (len(x), 1)))
    theta = np.array([np.log(link.scale)] + [np.log(0.5)] * d)
    return settled(Problem(rows, link, Prior(link.scale, float(sum(n)))), theta)


def integrated(fit):
    """Return mean and covariance of f at the (one or two) rows, by a sum over a fine grid."""
    rows, link = fit.problem.rows, fit.problem.link
    P = matrix(fit.mode.basis, rows.x)
    K = P @ P.T
    sides = [np.linspace(-7, 7, 561) * np.sqrt(K[i, i]) for i in range(len(K))]
    f = np.stack(np.meshgrid(*sides, indexing="ij"), -1).reshape(-1, len(K))
    log = log_likelihoods(np.ascontiguousarray(f.T), rows, link)
    log = log + multivariate_normal(np.zeros(len(K)), K).logpdf(f)
    w = np.exp(log - log.max())
    w /= w.sum()
    mean = w @ f
    return mean, (f - mean).T @ ((f - mean) * w[:, None])


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@pytest.mark.parametrize(("x", "n", "k"), [([0.4], [30], [28]), ([0.3, 0.6], [20, 20], [12, 19])])
def test_moments_are_those_of_the_exact_posterior(link, x, n, k):
    found = fitted(x, n, k, link)
    P = matrix(found.mode.basis, found.problem.rows.x)
    b, S = moments(found)
    mean, covariance = integrated(found)
    deviation = np.sqrt(np.diag(covariance))
    # Of 512 draws, the mean has an error of about a fifteenth of the standard deviation.
    assert_allclose(P @ b / deviation, mean / deviation, atol=0.15)
    assert_allclose(P @ S @ P.T, covariance, atol=0.25 * deviation.max() ** 2)
    # The mode is somewhere else, and Laplace's variance is another one.
    laplace = np.diag(P @ found.slopes.S @ P.T)
    assert (np.abs(P @ found.mode.b - mean) / deviation).max() > 0.1
    assert np.abs(np.sqrt(laplace) / deviation - 1.0).max() > 0.1


def test_a_surface_has_them_under_contexts_only():
    told = fitted([0.2, 0.7], [20, 20], [12, 19], LINKS[0])
    b, S = moments(told)
    surface = law.surface(told)
    assert_array_equal(surface.b, 0.5 * (told.mode.b + b))
    assert_array_equal(surface.narrow, S)
    added = 3.0 * told.slopes.moves.T @ told.covariance @ told.slopes.moves
    assert_allclose(surface.wide, S + added, atol=1e-9)
    plain = fitted([0.2, 0.7], [20, 20], [12, 19], LINKS[0], np.array([0.0, 1.0]))
    assert not can_be_sampled(plain)
    assert_array_equal(law.surface(plain).narrow, plain.slopes.S)
    many = fitted(np.full((3, 4), 0.4), [9, 9, 9], [5, 6, 7], LINKS[0], d=4)
    assert not can_be_sampled(many)
    assert_array_equal(law.surface(many).b, many.mode.b)


def test_order_cannot_be_seen():
    rng = np.random.default_rng(1)
    X = rng.random((150, 1))
    y = rng.random(150) < 0.5 + 0.48 * X[:, 0]
    order = rng.permutation(150)
    one = SmoothBetaClassifier().fit(X, y, context=GUESSING)
    other = SmoothBetaClassifier().fit(X[order], y[order], context=GUESSING)
    at = np.linspace(0, 1, 7)[:, None]
    assert_array_equal(one.posterior(at).mean(), other.posterior(at).mean())
    assert_array_equal(one.posterior(at).interval(), other.posterior(at).interval())


def test_steep_curves_under_guessing_are_learned_better():
    """Where π saturates the mode lags behind; halfway to the mean the error is at most .9 of it."""
    at = np.linspace(0.02, 0.98, 49)[:, None]
    truth = 1.0 / (1.0 + np.exp(-(at[:, 0] - 0.5) / 0.08))
    ours, about_modes = [], []
    for seed in range(12):
        rng = np.random.default_rng([7, seed])
        X = rng.random((200, 1))
        p = 1.0 / (1.0 + np.exp(-(X[:, 0] - 0.5) / 0.08))
        y = rng.random(200) < contexts.probability(GUESSING, p)
        model = SmoothBetaClassifier(bounds=[(0, 1)]).fit(X, y, context=GUESSING)
        ours.append(np.mean((model.posterior(at).mean() - truth) ** 2))
        about_modes.append(np.mean((mean_about_modes(model.field_.smooth[0], at) - truth) ** 2))
    assert np.mean(ours) < 0.9 * np.mean(about_modes)


def mean_about_modes(smooth, points):
    surfaces = [replace(law.surface(fit), b=fit.mode.b, narrow=fit.slopes.S) for fit in smooth.fits]
    return law.mean(surfaces, smooth.weights, inside(list(smooth.boxes), points))
