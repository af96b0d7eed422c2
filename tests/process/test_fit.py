"""Hyper-parameters: they maximise the objective, in any order of trials, on any machine."""

import itertools
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from betafield.process.basis import ADDITIVE, FREE, QUADRATIC, Prior
from betafield.process.design import matrix
from betafield.process.fit import (
    LARGEST,
    LEARNED_FROM,
    PROMISING,
    Problem,
    fit,
    fit_links,
    groups,
    hashes,
    sampled,
    weights,
)
from betafield.process.laplace import mode
from betafield.process.law import mean, surface
from betafield.process.links import LINKS, LOGIT
from betafield.process.rows import gather


def trials(t, d, seed, wave=5.0):
    rng = np.random.default_rng(seed)
    x = rng.random((t, d))
    p = 0.5 + 0.4 * np.sin(wave * x[:, 0]) * x[:, -1]
    return x, (rng.random(t) < p).astype(np.int64)


def rows_of(x, y):
    return gather(x, np.ones(len(x), np.int64), y)


def objective(theta, problem):
    return mode(theta, *problem).evidence + problem.log_prior(theta)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@pytest.mark.parametrize("d", [1, 2])
def test_no_general_optimiser_does_better_by_much(link, d):
    rows = rows_of(*trials(200, d, 1))
    found = fit(rows, link)
    problem = Problem(rows, link, Prior(link.scale, 200.0))
    highest = minimize(
        lambda theta: -objective(theta, problem),
        found.theta,
        method="Nelder-Mead",
        options={"maxfev": 120, "initial_simplex": found.theta + 0.3 * np.eye(d + 2, d + 1)},
    )
    assert found.objective == pytest.approx(objective(found.theta, problem), abs=1e-9)
    assert found.objective > -highest.fun - 0.15


def test_a_feature_that_means_nothing_gets_a_long_length_scale():
    x, y = trials(1_000, 1, 2)
    rows = rows_of(np.column_stack([x, np.random.default_rng(3).random(1_000)]), y)
    first, second = fit(rows, LOGIT).lengths
    assert second > 3.0 * first


@pytest.mark.parametrize("seed", [0, 1])
def test_few_of_twenty_features_are_found(seed):
    rng = np.random.default_rng(seed)
    x, at = rng.random((300, 20)), rng.random((1_000, 20))
    slopes = np.zeros(20)
    slopes[[2, 7, 11, 19]] = [5.0, -4.0, 3.0, -3.0]
    y = (rng.random(300) < expit((x - 0.5) @ slopes)).astype(np.int64)
    found = fit(rows_of(x, y), LOGIT)
    truth = expit((at - 0.5) @ slopes)
    # The logistic regression knows that the field is linear; the process does not.
    linear = LogisticRegression(C=10.0).fit(x, y).predict_proba(at)[:, 1]
    ours = mean([surface(found)], np.ones(1), [at])
    assert np.mean((ours - truth) ** 2) < 1.2 * np.mean((linear - truth) ** 2)
    assert np.median(found.lengths[slopes == 0.0]) > 2.0 * np.median(found.lengths[slopes != 0.0])


def test_the_prior_counts():
    rows = rows_of(np.array([[0.5]]), np.array([1]))
    found = fit(rows, LOGIT)
    np.testing.assert_allclose(found.theta, [0.0, np.log(0.5)], atol=0.3)
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), [2.0, 1.0], rtol=0.6)


def test_weights_are_the_evidence():
    fits = fit_links(rows_of(*trials(300, 1, 4)))
    a, b = (f.objective + 0.5 * np.linalg.slogdet(f.covariance)[1] for f in fits)
    np.testing.assert_allclose(weights(fits), [1 / (1 + np.exp(b - a)), 1 / (1 + np.exp(a - b))])
    assert [f.problem.link.name for f in fits] == [link.name for link in LINKS]


def rising_and_waving(t, seed):
    """Return rows of a field that rises along one feature and waves weakly along another."""
    rng = np.random.default_rng([seed, t])
    x = rng.random((t, 2))
    f = 8.0 * (x[:, 0] - 0.5) + np.sin(2.0 * np.pi * x[:, 1])
    return rows_of(x, (rng.random(t) < expit(f)).astype(np.int64))


@pytest.mark.parametrize("seed", [1, 3])
def test_the_best_optimum_is_found_beside_a_strong_feature(seed):
    rows = rising_and_waving(1_500, seed)
    found = fit_links(rows, (LOGIT,))
    starts = itertools.product([0.0], np.log([0.2, 0.8, 3.0]), np.log([0.2, 0.8, 3.0]))
    best = max(fit(rows, LOGIT, np.array(start)).objective for start in starts)
    assert max(f.objective for f in found) > best - 1.0  # another one is 7 nats behind


def share_of(form, fits):
    """Return the weight of processes of a form."""
    return weights(fits) @ [each.problem.prior.form == form for each in fits]


def adding(t, d, seed, interaction=0.0):
    """Return points and outcomes of a field that adds waves, and a product of two features."""
    rng = np.random.default_rng([seed, t, d])
    x = rng.random((t, d))
    f = (
        1.5 * np.sin(7.0 * x).sum(axis=1)
        - 0.2 * d
        + interaction * (x[:, 0] - 0.5) * (x[:, 1] - 0.5)
    )
    return x, (rng.random(t) < expit(f)).astype(np.int64), f


@pytest.mark.parametrize("d", [3, 6])
def test_a_field_that_adds_features_is_found_to_be_additive(d):
    ours, free, fits = beside_free(*adding(600, d, 1))
    assert share_of(ADDITIVE, fits) > 0.8
    assert ours < free


def test_what_is_far_behind_is_not_tried_under_the_second_link():
    x, y, _ = adding(3_000, 3, 1)
    fits = fit_links(rows_of(x, y))
    first = [f for f in fits if f.problem.link is LOGIT]
    least = max(f.objective for f in first) - PROMISING
    near = {f.problem.prior.form for f in first if f.objective > least}
    assert FREE in {f.problem.prior.form for f in first} - near
    assert {f.problem.prior.form for f in fits if f.problem.link is not LOGIT} == near


def test_a_product_of_features_is_not_additive():
    x, y, _ = adding(600, 3, 1, interaction=25.0)
    fits = fit_links(rows_of(x, y))
    assert share_of(ADDITIVE, fits) == 0.0


def beside_free(x, y, f):
    """Return mean squared errors of all processes, and of the free one alone; and all of them."""
    fits = fit_links(rows_of(x, y))
    alone, truth = fits[0], expit(f)  # the first one fitted is free
    ours = mean([surface(each) for each in fits], weights(fits), [x] * len(fits))
    free = mean([surface(alone)], np.ones(1), [x])
    return np.mean((ours - truth) ** 2), np.mean((free - truth) ** 2), fits


@pytest.mark.parametrize("d", [2, 3])
def test_a_field_of_second_degree_is_found_to_be_one(d):
    rng = np.random.default_rng([2, d])
    x = rng.random((2_000, d))
    u = x - 0.5
    f = 9.0 * u[:, 0] * u[:, 1] - 5.0 * u[:, -1] ** 2 + 0.5
    ours, free, fits = beside_free(x, (rng.random(len(x)) < expit(f)).astype(np.int64), f)
    assert share_of(QUADRATIC, fits) > 0.5
    assert ours < free


def test_a_polynomial_reaches_over_the_whole_domain():
    rng = np.random.default_rng(4)
    x = rng.random((3_000, 2))
    y = rng.random(3_000) < expit(9.0 * (x[:, 0] - 0.5) * (x[:, 1] - 0.5) + 0.2 * x[:, 1])
    found = fit(rows_of(x, y.astype(np.int64)), LOGIT, form=QUADRATIC)
    assert np.exp(found.theta[1:]).min() < 0.6
    assert found.lengths.min() == pytest.approx(1.0)
    assert found.lengths[0] / found.lengths[1] == pytest.approx(
        np.exp(-np.diff(found.theta[1:])[0])
    )
    # Far away, f varies as much as polynomials do over the domain.
    basis, at = found.mode.basis, np.random.default_rng(5).random((20_000, 2))
    P = matrix(basis, at) - matrix(basis, np.full((1, 2), 0.5))
    assert found.mode.variance == pytest.approx(np.mean((P**2).sum(axis=1)), rel=0.05)
    assert found.mode.variance > 2.0 * np.exp(2.0 * found.theta[0])
    # Effects of groups are no part of that.
    theta, group = np.append(found.theta, 1.0), np.arange(3_000) % 7 / 6.0
    grouped = rows_of(np.column_stack([x, group]), y.astype(np.int64))._replace(is_grouped=True)
    prior = found.problem.prior._replace(effects=groups(grouped))
    assert mode(theta, grouped, LOGIT, prior).variance == found.mode.variance


def test_waves_are_not_of_second_degree():
    rng = np.random.default_rng(3)
    x = rng.random((600, 2))
    y = rng.random(600) < expit(2.0 * np.sin(7.0 * x).sum(axis=1))
    assert share_of(QUADRATIC, fit_links(rows_of(x, y.astype(np.int64)))) == 0.0


def test_optima_between_which_trials_do_not_decide_are_both_kept():
    fits = fit_links(rising_and_waving(900, 0), (LOGIT,))
    found = tuple(f for f in fits if f.problem.prior.form == FREE)
    assert len(found) == 2
    assert weights(found).min() > 0.05
    assert np.ptp(np.log([f.lengths[1] for f in found])) > 1.0


def test_order_and_splits_cannot_be_seen():
    x, y = trials(900, 2, 5)
    order = np.random.default_rng(6).permutation(len(x))
    one, other = fit_links(rows_of(x, y)), fit_links(rows_of(x[order], y[order]))
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a.theta, b.theta)
        assert np.array_equal(a.mode.b, b.mode.b)
        assert a.objective == b.objective


@pytest.mark.parametrize("t", [1, 2])
@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_hardly_any_trials(t, d):
    rows = rows_of(np.random.default_rng(7).random((t, d)), np.arange(t) % 2)
    for found in fit_links(rows):
        assert np.isfinite(found.objective)
        assert np.isfinite(found.mode.b).all()


@pytest.mark.parametrize("outcome", [0, 1])
def test_one_outcome_only(outcome):
    rows = rows_of(np.random.default_rng(8).random((500, 2)), np.full(500, outcome))
    for found in fit_links(rows):
        p = found.problem.link.value(found.mode.f)
        assert np.abs(p - outcome).max() < 0.05


def test_contradicting_rows_do_not_drive_the_deviation_on():
    """Without a bound, their objective would be higher at 400 times the usual deviation."""
    rng = np.random.default_rng(0)
    x, n = rng.integers(0, 9, (40, 3)) / 8, rng.integers(1, 9, 40)
    context = np.tile([0.5, 0.9], (40, 1))
    rows = gather(x, n, n * rng.integers(0, 2, 40), context)
    found = fit(rows, LOGIT)
    assert found.theta[0] <= LARGEST + np.log(LOGIT.scale)


def test_many_trials_at_one_place():
    rows = gather(np.array([[0.3, 0.3]]), np.array([10**6]), np.array([200_000]))
    for found in fit_links(rows):
        np.testing.assert_allclose(found.problem.link.value(found.mode.f), 0.2, atol=1e-3)


def test_learned_from_a_sample_that_order_does_not_decide():
    x, y = trials(LEARNED_FROM + 500, 5, 9)
    rows = rows_of(x, y)
    some = sampled(rows)
    assert len(some.x) == LEARNED_FROM
    lowest = np.sort(hashes(rows))[:LEARNED_FROM]
    assert set(hashes(some)) == set(lowest)
    assert sampled(some) is some


SCRIPT = """
import json, sys
import numpy as np
sys.path.insert(0, {tests!r})
from test_fit import trials, rows_of
from betafield.process.fit import fit_links
found = []
for d, t in ((1, 400), (2, 600), (3, 500)):
    for f in fit_links(rows_of(*trials(t, d, 10))):
        found += [*f.theta, f.objective, *f.mode.f[:50], *f.slopes.leverages[:50]]
print(json.dumps(found))
"""


def elsewhere(**settings):
    """Return what another process finds with these settings of its libraries."""
    script = SCRIPT.format(tests=os.path.dirname(__file__))
    run = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    return np.array(json.loads(run.stdout))


@pytest.mark.long
def test_processors_and_threads_cannot_be_seen():
    """Kernels for other processors, and other numbers of threads: the same answers."""
    reference = elsewhere(OPENBLAS_CORETYPE="Haswell", OPENBLAS_NUM_THREADS="1")
    for kernels, threads in (("SkylakeX", "1"), ("Prescott", "1"), ("Haswell", "2")):
        found = elsewhere(OPENBLAS_CORETYPE=kernels, OPENBLAS_NUM_THREADS=threads)
        np.testing.assert_allclose(found, reference, rtol=1e-12, atol=1e-12)
