"""Likelihoods under contexts against the binomial likelihood and high-precision power series."""

import numpy as np
import pytest
from flint import arb, arb_series, ctx
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom, binom

from betafield import contexts
from betafield.process.likelihood import polynomial, read, success
from betafield.process.links import LINKS, LOGIT, SOFT
from betafield.process.rows import Rows

CONTEXTS = {
    "plain": [0.0, 1.0],
    "guess and lapse": [0.5, 0.98],
    "upside down": [0.9, 0.2],
    "pool": contexts.pooled(5, 0.9, 0.95),
    "flat": [0.3, 0.3],
}


def one_row(n, k, context):
    return Rows(np.zeros((1, 1)), np.array([n]), np.array([k]), np.array([context], dtype=float))


def latent_series(link, f):
    x = arb_series([arb(f), 1])
    if link is LOGIT:
        return 1 / (1 + (-x).exp())
    half = arb(1) / 2
    return ((1 + (25 * (x + half)).exp()).log() - (1 + (25 * (x - half)).exp()).log()) / 25


def series(link, f, context):
    """Return the power series of the success probability about f."""
    ctx.prec, ctx.cap = 400, 5
    p = latent_series(link, f)
    m = len(context) - 1
    rest, total = 1 - p, arb_series([0])
    for j, b in enumerate(context):
        term = arb_series([arb(float(b)) * arb(m).bin(j)])
        for _ in range(j):
            term = term * p
        for _ in range(m - j):
            term = term * rest
        total = total + term
    return total


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
@given(f=st.floats(-1.5, 1.5), n=st.integers(1, 30), share=st.floats(0.0, 1.0))
def test_against_power_series(link, context, f, n, share):
    k = round(share * n)
    q = series(link, f, context)
    log = k * q.log() + (n - k) * (1 - q).log()
    found = read(np.array([f]), one_row(n, k, context), link)
    q0, q1, q2 = (float(q[i]) * (1, 1, 2)[i] for i in range(3))
    ratio = q1 / (q0 * float(1 - q[0]))
    size = n * ratio * (abs(q2) + abs(q1 * ratio)) + 1e-300
    assert found.log == pytest.approx(float(log[0]), rel=1e-10)
    assert found.score[0] == pytest.approx(float(log[1]), rel=1e-9, abs=1e-10 * n * abs(ratio))
    assert found.information[0] == pytest.approx(n * q1 * ratio, rel=1e-9)
    information = n * q.derivative() ** 2 / (q * (1 - q))
    assert found.slope[0] == pytest.approx(float(information[1]), rel=1e-8, abs=1e-8 * abs(size))
    # Next to 0 and 1 it is a small difference of large terms, of which rounding is left, as of
    # k − n q if they are nearly equal.
    terms = (abs(found.score[0]) + n * q0 * abs(ratio)) * (abs(q2 / q1) + abs(ratio)) if q1 else 0.0
    rounding = 1e-8 * abs(size) + 1e-15 * terms
    assert found.observed[0] == pytest.approx(-2.0 * float(log[2]), rel=1e-8, abs=rounding)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
def test_third_is_the_expectation_over_outcomes(link, context):
    f, n = 0.23, 7
    q = series(link, f, context)
    chances = binom.pmf(range(n + 1), n, float(q[0]))
    logs = [k * q.log() + (n - k) * (1 - q).log() for k in range(n + 1)]
    expected = sum(w * 6 * float(log[3]) for w, log in zip(chances, logs, strict=True))
    found = read(np.array([f]), one_row(n, 3, context), link)
    assert found.third[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_rows_add_up_to_the_binomial():
    rng = np.random.default_rng(0)
    f, n = rng.normal(size=20), rng.integers(1, 9, 20)
    k = rng.binomial(n, 0.4)
    rows = Rows(np.zeros((20, 1)), n, k, np.tile([0.1, 0.8], (20, 1)))
    q = 0.1 + 0.7 / (1 + np.exp(-f))
    constant = binom.logpmf(k, n, k / n).sum() - (
        np.where(k > 0, k * np.log(np.maximum(k, 1) / n), 0.0).sum()
        + np.where(k < n, (n - k) * np.log1p(-np.minimum(k, n - 1) / n), 0.0).sum()
    )
    expected = binom.logpmf(k, n, q).sum() - constant
    assert read(f, rows, LOGIT).log == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
def test_finite_however_far_out(link):
    f = np.array([-1e6, -30.0, 30.0, 1e6])
    for k in (0, 1):
        rows = Rows(np.zeros((4, 1)), np.ones(4, int), np.full(4, k), np.tile([0.0, 1.0], (4, 1)))
        found = read(f, rows, link)
        assert np.isfinite(found.log)
        assert all(np.isfinite(part).all() for part in found[1:])


def test_logit_has_a_score_of_one_trial_however_wrong_it_was():
    rows = Rows(np.zeros((2, 1)), np.ones(2, int), np.array([1, 0]), np.tile([0.0, 1.0], (2, 1)))
    found = read(np.array([-200.0, 200.0]), rows, LOGIT)
    np.testing.assert_allclose(found.score, [1.0, -1.0], rtol=1e-12)


@given(st.integers(1, 40), st.floats(0.0, 1.0))
def test_a_pool_fails_if_all_its_members_do(size, p):
    context = np.atleast_2d(contexts.pooled(size))
    value, _, _ = polynomial(context, np.array([p]), np.array([1.0 - p]))
    assert value[0] == pytest.approx(1.0 - (1.0 - p) ** size, abs=1e-13)


def test_success_is_between_its_ends():
    f = np.linspace(-9.0, 9.0, 50)
    found = success(f, np.tile([0.25, 0.9], (50, 1)), SOFT)
    assert found.q.min() >= 0.25 - 1e-15
    assert found.q.max() <= 0.9 + 1e-15
    np.testing.assert_allclose(found.q + found.rest, 1.0, rtol=1e-15)


# Overdispersed rows.


def correlated_row(n, k, context, rho):
    return one_row(n, k, context)._replace(correlation=rho)


@given(
    q=st.floats(0.01, 0.99), n=st.integers(1, 200), share=st.floats(0, 1), rho=st.floats(0.001, 0.6)
)
def test_correlated_trials_are_beta_binomial(q, n, share, rho):
    k, size = round(share * n), 1.0 / rho - 1.0
    found = read(np.array([np.log(q / (1 - q))]), correlated_row(n, k, [0.0, 1.0], rho), LOGIT)
    chance = betabinom.logpmf(k, n, q * size, (1 - q) * size)
    ways = float(arb(n).bin(k).log())
    assert found.log + ways == pytest.approx(chance, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
@pytest.mark.parametrize("rho", [0.003, 0.2])
def test_the_score_of_correlated_trials_is_a_slope(link, context, rho):
    row, f, h = correlated_row(17, 11, context, rho), 0.21, 1e-5
    low, high = (read(np.array([f + step]), row, link).log for step in (-h, h))
    expected = (high - low) / (2 * h)
    assert read(np.array([f]), row, link).score[0] == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
def test_uncorrelated_trials_are_the_limit(context):
    f = np.array([0.4])
    found, limit = (read(f, correlated_row(9, 4, context, rho), LOGIT) for rho in (1e-9, 0.0))
    for one, other in zip(found, limit, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
