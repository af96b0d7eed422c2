"""Modes, evidence and slopes against integrals, finite differences and a plain dense oracle."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import Kernel

from betafield import contexts
from betafield.process import linear
from betafield.process.basis import Prior, basis
from betafield.process.curvature import Low, Whole
from betafield.process.design import matrix
from betafield.process.laplace import mode, slopes
from betafield.process.likelihood import polynomial, read
from betafield.process.links import LINKS, LOGIT, SOFT
from betafield.process.rows import Rows, gather

GUESS = np.array([0.3, 0.95])


def trials(t, d, seed, context=None):
    rng = np.random.default_rng(seed)
    x = rng.random((t, d))
    p = 0.5 + 0.4 * np.sin(5 * x[:, 0]) * x[:, -1]
    if context is not None:
        p = context[0] + (context[1] - context[0]) * p
    return gather(x, np.ones(t, np.int64), (rng.random(t) < p).astype(np.int64), context)


def theta_of(link, d, length=0.4):
    return np.array([0.3 + np.log(link.scale)] + [np.log(length)] * d)


def plain_mode(P, rows, link):
    """Return the mode found by a general optimiser, from the definitions."""

    def loss(b):
        p = link.value(P @ b)
        q, _, _ = polynomial(rows.context, p, 1.0 - p)
        return 0.5 * b @ b - np.sum(rows.k * np.log(q) + (rows.n - rows.k) * np.log1p(-q))

    def gradient(b):
        return b - P.T @ read(P @ b, rows, link).score

    best = minimize(loss, np.zeros(P.shape[1]), jac=gradient, method="BFGS", options={"gtol": 1e-9})
    return best.x, -best.fun


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@pytest.mark.parametrize("context", [None, GUESS, contexts.pooled(3)], ids=["", "guess", "pool"])
@pytest.mark.parametrize("d", [1, 2, 4])
def test_mode_and_evidence_are_those_of_a_plain_optimiser(link, context, d):
    rows = trials(60, d, 1, context if context is None or len(context) == 2 else None)
    if context is not None:
        rows = rows._replace(context=np.tile(context, (len(rows.x), 1)))
    theta, prior = theta_of(link, d, 0.8), Prior(link.scale, 30.0)
    found = mode(theta, rows, link, prior)
    P = matrix(basis(theta, prior), rows.x)
    b, height = plain_mode(P, rows, link)
    np.testing.assert_allclose(found.b, b, atol=2e-5)
    M = np.eye(len(b)) + P.T * read(P @ found.b, rows, link).information @ P
    assert found.evidence == pytest.approx(height - 0.5 * np.linalg.slogdet(M)[1], abs=1e-7)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@pytest.mark.parametrize("count", [1, 30, 10**6])
@given(seed=st.integers(0, 2**32 - 1), low=st.floats(0.0, 0.9), end=st.sampled_from([0, 0.5, 1]))
def test_the_slope_of_the_objective_is_nothing_at_the_mode(link, count, seed, low, end):
    """However trials are distorted, and if all ended alike, Newton's method finds the mode."""
    rng = np.random.default_rng(seed)
    x, n = rng.random((20, 1)), np.full(20, count)
    share = np.full(20, end) if end != 0.5 else rng.random(20)
    k = rng.binomial(n, low + (0.98 - low) * share)
    rows = Rows(x, n, k, np.tile([low, 0.98], (20, 1)))
    theta, prior = theta_of(link, 1, float(rng.uniform(0.1, 1.0))), Prior(link.scale, 30.0)
    found = mode(theta, rows, link, prior)
    P = matrix(basis(theta, prior), x)
    slope = P.T @ found.reading.score - found.b
    M = np.eye(len(slope)) + P.T * found.reading.information @ P
    assert 0.5 * slope @ np.linalg.solve(M, slope) < 1e-8


@example(seed=186553334, link=LOGIT)  # takes about 70 steps
@given(seed=st.integers(0, 2**32 - 1), link=st.sampled_from(LINKS))
def test_contexts_that_outcomes_contradict_have_a_mode_too(seed, link):
    """Polynomials that rise and fall: Fisher scoring alone oscillated."""
    rng = np.random.default_rng(seed)
    x, n = rng.random((30, 2)), rng.integers(1, 20, 30)
    rows = Rows(x, n, n * rng.integers(0, 2, 30), rng.random((30, 4)))
    theta = np.array([2.0 + np.log(link.scale), *np.log(rng.uniform(0.05, 0.5, 2))])
    prior = Prior(link.scale, 300.0)
    found = mode(theta, rows, link, prior)
    slope = matrix(found.basis, x).T @ found.reading.score - found.b
    assert np.abs(slope).max() < 1e-6


@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 4),
    link=st.sampled_from(LINKS),
    is_told=st.booleans(),
    repeated=st.booleans(),
)
def test_few_rows_are_learned_from_as_many_are(seed, d, link, is_told, repeated):
    """With fewer rows than functions, matrices have one row per row: another way to the same."""
    rng = np.random.default_rng(seed)
    x = rng.random((12, d))
    x[6:] = x[:6] if repeated else x[6:]
    n = rng.integers(1, 9, 12)
    rows = Rows(x, n, rng.binomial(n, 0.6), np.tile(GUESS if is_told else [0.0, 1.0], (12, 1)))
    theta, prior = theta_of(link, d, float(rng.uniform(0.04, 0.15))), Prior(link.scale, 1e5)
    # A row that is nearly, but not quite, within the span of others is rounded to it (`SINGULAR`).
    P = matrix(basis(theta, prior), x)
    outside = np.diag(np.linalg.qr(P.T, mode="r")) ** 2 / (P**2).sum(axis=1)
    assume(((outside > 1e3 * linear.SINGULAR) | (outside < 1e-25)).all())
    few = mode(theta, rows, link, prior, sparse=1.0)
    assert isinstance(few.curvature, Low)
    whole = mode(theta, rows, link, prior, sparse=np.inf)
    expected = slopes(whole, rows, sparse=np.inf)
    assert isinstance(whole.curvature, Whole)
    found = slopes(few, rows, sparse=1.0)
    assert few.evidence == pytest.approx(whole.evidence, abs=1e-9)
    np.testing.assert_allclose(few.f, whole.f, atol=1e-8)
    np.testing.assert_allclose(few.b, whole.b, atol=1e-8)
    for name in ("gradient", "information", "S", "leverages", "moves"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-8)
    U = few.curvature.factor()
    np.testing.assert_allclose(U.T @ U, whole.curvature.U.T @ whole.curvature.U, atol=1e-8)
    step = rng.normal(size=len(few.b))
    assert few.curvature.form(step) == pytest.approx(whole.curvature.form(step))
    np.testing.assert_allclose(few.curvature.solve(step), whole.curvature.solve(step), atol=1e-9)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
def test_evidence_approximates_the_integral(link):
    """With a single, constant function the evidence is a one-dimensional integral."""
    rows = Rows(np.array([[0.5]]), np.array([40]), np.array([14]), np.array([[0.0, 1.0]]))
    found = mode(np.array([-9.0, np.log(20.0)]), rows, link, Prior(link.scale, 1.0))
    scale = found.basis.root[0]
    assert abs(found.basis.root[1:]).max(initial=0.0) < 1e-3

    def density(b):
        p, rest = link.value(np.array([scale * b, -scale * b]))
        return norm.pdf(b) * np.exp(14 * np.log(p) + 26 * np.log(rest) + 26.0)

    exact = np.log(quad(density, -8, 8, epsabs=0, epsrel=1e-10, limit=500)[0]) - 26.0
    assert found.evidence == pytest.approx(exact, abs=0.03)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_gradient_is_that_of_the_evidence(d):
    rows, theta, prior = trials(200, d, 2), theta_of(LOGIT, d), Prior(1.0, 200.0)
    found = slopes(mode(theta, rows, LOGIT, prior), rows)
    for i in range(d + 1):
        step = np.zeros(d + 1)
        step[i] = 1e-4
        up, down = (mode(theta + s * step, rows, LOGIT, prior).evidence for s in (1, -1))
        assert found.gradient[i] == pytest.approx((up - down) / 2e-4, abs=1e-5)


@pytest.mark.parametrize(("link", "context"), [(SOFT, None), (LOGIT, GUESS), (SOFT, GUESS)])
def test_gradient_is_near_where_information_is_expected_not_observed(link, context):
    rows, theta = trials(300, 2, 3, context), theta_of(link, 2)
    prior = Prior(link.scale, 300.0)
    found = slopes(mode(theta, rows, link, prior), rows)
    for i in range(3):
        step = np.zeros(3)
        step[i] = 1e-4
        up, down = (mode(theta + s * step, rows, link, prior).evidence for s in (1, -1))
        assert found.gradient[i] == pytest.approx((up - down) / 2e-4, abs=0.25)


def test_moves_are_those_of_the_latent_values():
    rows, theta, prior = trials(150, 2, 4), theta_of(LOGIT, 2), Prior(1.0, 150.0)
    at = mode(theta, rows, LOGIT, prior)
    moves = slopes(at, rows).moves @ matrix(at.basis, rows.x).T
    for i in range(3):
        step = np.zeros(3)
        step[i] = 1e-4
        up, down = (mode(theta + s * step, rows, LOGIT, prior).f for s in (1, -1))
        np.testing.assert_allclose(moves[i], (up - down) / 2e-4, atol=1e-5)


def test_leverages_and_covariance_are_the_dense_ones():
    rows, theta, prior = trials(150, 3, 5), theta_of(SOFT, 3), Prior(SOFT.scale, 150.0)
    at = mode(theta, rows, SOFT, prior)
    found = slopes(at, rows)
    P = matrix(at.basis, rows.x)
    S = np.linalg.inv(np.eye(P.shape[1]) + P.T * at.reading.information @ P)
    np.testing.assert_allclose(found.S, S, atol=1e-10)
    np.testing.assert_allclose(found.leverages, np.einsum("ij,jk,ik->i", P, S, P), rtol=1e-8)
    M = np.eye(len(S)) - S
    G = at.basis.slope
    np.testing.assert_allclose(found.information, 0.5 * G @ (M * M) @ G.T, rtol=1e-9)


class Given(Kernel):
    """The covariance of our basis, for scikit-learn."""

    def __init__(self, functions):
        self.functions = functions

    def __call__(self, X, Y=None, **_):
        P = matrix(self.functions, X)
        return P @ (P if Y is None else matrix(self.functions, Y)).T

    def diag(self, X):
        return (matrix(self.functions, X) ** 2).sum(axis=1)

    def is_stationary(self):
        return False


@pytest.mark.parametrize("d", [1, 2, 3])
def test_scikit_learn_finds_the_same_mode_and_evidence(d):
    rows, theta, prior = trials(120, d, 6), theta_of(LOGIT, d), Prior(1.0, 120.0)
    ours = mode(theta, rows, LOGIT, prior)
    theirs = GaussianProcessClassifier(Given(ours.basis), optimizer=None, max_iter_predict=500).fit(
        rows.x, rows.successes
    )
    assert theirs.log_marginal_likelihood() == pytest.approx(ours.evidence, abs=1e-6)
    K = Given(ours.basis)(rows.x)
    inner = theirs.base_estimator_
    np.testing.assert_allclose(K @ (rows.k - inner.pi_), ours.f, atol=1e-5)
    np.testing.assert_allclose(expit(ours.f), inner.pi_, atol=1e-6)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@pytest.mark.parametrize("outcome", [0, 1])
def test_one_class_only(link, outcome):
    x = np.random.default_rng(7).random((400, 2))
    rows = gather(x, np.ones(400, np.int64), np.full(400, outcome))
    found = mode(theta_of(link, 2), rows, link, Prior(link.scale, 400.0))
    p = link.value(found.f)
    assert np.isfinite(found.evidence)
    assert (np.abs(p - outcome) < 0.1).all()


def test_start_does_not_matter():
    rows, theta, prior = trials(200, 2, 8), theta_of(SOFT, 2), Prior(SOFT.scale, 200.0)
    cold = mode(theta, rows, SOFT, prior)
    warm = mode(theta, rows, SOFT, prior, near=cold.f + 0.2)
    np.testing.assert_allclose(warm.f, cold.f, atol=1e-7)
    assert warm.evidence == pytest.approx(cold.evidence, abs=1e-8)
