"""Evidence for monotone fields, against integrals of normal distributions by other libraries."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from betafield.process.basis import Prior, basis
from betafield.process.design import matrix
from betafield.process.fit import fit
from betafield.process.laplace import mode
from betafield.process.links import LOGIT
from betafield.process.rows import gather
from betafield.process.signs import SOFTNESS, evidence, log_all_positive, slopes, spots


def test_one_sign_is_its_closed_form():
    for mean, var in ((0.3, 1.0), (-2.0, 0.5), (4.0, 2.0)):
        exact = norm.logcdf(mean / np.sqrt(var + SOFTNESS**2))
        assert log_all_positive(np.array([mean]), np.array([[var]])) == pytest.approx(
            exact, abs=1e-6
        )


@pytest.mark.parametrize("rho", [0.0, 0.4, 0.8])
def test_several_signs_are_near_their_integral(rho):
    mean = np.array([0.5, -0.3, 0.2, 1.0])
    K = np.full((4, 4), rho) + (1.0 - rho) * np.eye(4)
    soft = K + SOFTNESS**2 * np.eye(4)
    exact = np.log(multivariate_normal(-mean, soft).cdf(np.zeros(4)))
    assert log_all_positive(mean, K) == pytest.approx(exact, abs=0.05)


def test_slopes_are_differences_of_the_functions():
    theta = np.log([1.0, 0.4, 0.7])
    functions = basis(theta, Prior(1.0, 300.0))
    x, h = spots(2, 1), 1e-5
    step = np.array([0.0, h])
    numeric = (matrix(functions, x + step) - matrix(functions, x - step)) / (2.0 * h)
    np.testing.assert_allclose(slopes(functions, x, 1), numeric, atol=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_spots_are_inside_and_along_the_feature(d):
    at = spots(d, d - 1)
    assert at.shape[1] == d
    assert np.all((at > 0.0) & (at < 1.0))
    assert len(np.unique(at[:, d - 1])) >= 9
    assert len(np.unique(at, axis=0)) == len(at)


def _fitted(truth, trials=400):
    x = (np.arange(trials) + 0.5) / trials
    rng = np.random.default_rng(1)
    y = (rng.random(trials) < truth(x)).astype(np.int64)
    return fit(gather(x[:, None], np.ones(trials, dtype=np.int64), y), LOGIT).mode


@pytest.mark.parametrize(
    ("truth", "rises", "falls"),
    [
        (lambda x: 0.1 + 0.8 * x, True, False),
        (lambda x: 0.9 - 0.8 * x, False, True),
        (lambda x: 0.5 + 0.4 * np.sin(2.0 * np.pi * x), False, False),
    ],
)
def test_evidence_tells_which_way_trials_speak(truth, rises, falls):
    found = _fitted(truth)
    up, down = (evidence([found], np.ones(1), 0, sign) for sign in (1, -1))
    assert (up > -3.0, down > -3.0) == (rises, falls)


def test_evidence_is_the_mean_over_processes():
    found = [_fitted(lambda x: 0.1 + 0.8 * x), _fitted(lambda x: 0.5 + 0.4 * np.sin(9.0 * x))]
    alone = np.array([evidence([each], np.ones(1), 0, 1) for each in found])
    both = evidence(found, np.array([0.3, 0.7]), 0, 1)
    assert both == pytest.approx(np.log(np.array([0.3, 0.7]) @ np.exp(alone)), rel=1e-9)


def test_a_field_without_slopes_says_nothing():
    rows = gather(np.array([[0.2], [0.8]]), np.array([1, 1]), np.array([0, 1]))
    flat = mode(np.array([0.0, np.log(30.0)]), rows, LOGIT, Prior(1.0, 2.0))
    flat = flat._replace(basis=flat.basis._replace(J=np.zeros_like(flat.basis.J)))
    assert evidence([flat], np.ones(1), 0, 1) == 0.0
