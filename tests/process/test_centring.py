"""Fields with the posterior's mean, against root finding and quadrature."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq
from scipy.special import expit, logit

from betafield import SmoothBetaClassifier, contexts
from betafield.process.centring import FURTHEST, Centred, centred
from betafield.process.draws import Fields
from betafield.process.noise import Seed

SEED = Seed((3,))
GUESSING = contexts.guess_lapse(0.5, 0.02)


def trials(t, context=None, d=1):
    rng = np.random.default_rng(t)
    X = rng.random((t, d))
    p = expit((X[:, 0] - 0.5) / 0.1)
    q = p if context is None else contexts.probability(context, p)
    return X, rng.random(t) < q


# Rows of probabilities ---------------------------------------------------------------------


@given(
    arrays(np.float64, st.integers(2, 30), elements=st.floats(0.001, 0.999)), st.floats(0.05, 0.95)
)
def test_log_odds_of_all_draws_are_moved_by_the_same(p, target):
    def mean(delta):
        return expit(logit(p) + delta).mean() - target

    delta = FURTHEST * np.sign(-mean(0.0))
    if mean(-FURTHEST) < 0.0 < mean(FURTHEST):
        delta = brentq(mean, -FURTHEST, FURTHEST, xtol=1e-14)
    found = centred(p[None], np.array([target]))[0]
    np.testing.assert_allclose(found, expit(logit(p) + delta), rtol=0.0, atol=1e-4)
    if abs(delta) < FURTHEST:
        assert found.mean() == pytest.approx(target, abs=1e-6)


def test_rows_are_independent_and_stay_in_range():
    rng = np.random.default_rng(0)
    values = np.vstack([rng.random((3, 50)), np.zeros(50), np.ones(50), rng.integers(0, 2, 50)])
    values[0, :10], values[1, :10] = 0.0, 1.0
    means = np.array([0.3, 0.7, 0.5, 0.2, 0.9, 0.5])
    found = centred(values, means)
    assert np.isfinite(found).all()
    assert np.all((found >= 0.0) & (found <= 1.0))
    np.testing.assert_array_equal(found[3:], values[3:])
    np.testing.assert_array_equal(found[:2, :10], values[:2, :10])
    np.testing.assert_allclose(found[:3].mean(axis=1), means[:3], rtol=0.0, atol=1e-6)
    for i in range(len(values)):
        np.testing.assert_array_equal(centred(values[i : i + 1], means[i : i + 1])[0], found[i])


# Fields ------------------------------------------------------------------------------------


def rough():
    rng = np.random.default_rng(8)
    X = rng.random((1_500, 1))
    return X, rng.random(1_500) < np.where(np.sin(60 * X[:, 0]) > 0, 0.75, 0.2)


@pytest.mark.parametrize(
    ("given", "context"),
    [
        (trials(100), None),
        (trials(200, d=2), None),
        (rough(), None),
        (trials(100, GUESSING), GUESSING),
        (trials(200, GUESSING, 2), GUESSING),
    ],
    ids=["1", "2", "rough", "1, guessing", "2, guessing"],
)
def test_the_mean_is_that_of_the_posterior(given, context):
    model = SmoothBetaClassifier().fit(*given, context=context)
    x = np.random.default_rng(1).random((20, given[0].shape[1]))
    found = Centred(Fields(model.field_.smooth[0], 400, SEED)).at(x)
    expected = model.posterior(x).mean()
    np.testing.assert_allclose(found.mean(axis=0), expected, rtol=0.0, atol=1e-6)


@pytest.mark.parametrize("context", [None, GUESSING], ids=["plain", "guessing"])
def test_fields_are_the_same_together_and_apart(context):
    model = SmoothBetaClassifier().fit(*trials(150, context), context=context)
    fields = Centred(Fields(model.field_.smooth[0], 200, SEED))
    x = np.random.default_rng(2).random((9, 1))
    whole = fields.at(x)
    for i in range(len(x)):
        np.testing.assert_array_equal(fields.at(x[[i]])[:, 0], whole[:, i])
