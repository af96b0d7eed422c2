"""Windows of levels: a prior from the other levels, against plain sums over all trials."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import beta

import betafield
from betafield import SmoothBetaClassifier, contexts
from betafield.evidence import Decoder
from betafield.pooling import STRENGTHS, Others

KAPPAS = [0.0, *(0.5 * 2.0 ** (j / 2) for j in range(18))]


def table(n=240, levels=8, spread=0.3, seed=0):
    """Return trials of levels that share a slope, and differ by normal effects."""
    rng = np.random.default_rng(seed)
    site, dose = rng.integers(0, levels, n), rng.random(n)
    f = 3.0 * dose - 1.5 + spread * rng.normal(size=levels)[site]
    X = pd.DataFrame({"site": [f"s{c}" for c in site], "dose": dose})
    return X, rng.random(n) < expit(f)


def near(X, y, asked, width):
    """Return successes and trials of the own level, and of the others, by loops over all rows."""
    own, others = [], []
    for site, dose in zip(asked["site"], asked["dose"], strict=True):
        is_near = (X["dose"] - dose).abs() <= width
        for found, kept in ((own, X["site"] == site), (others, X["site"] != site)):
            found.append((int(y[is_near & kept].sum()), int((is_near & kept).sum())))
    return np.array(own), np.array(others)


def prior(others, kappa):
    """Return Beta(1, 1) with κn/(κ + n) trials more, at the posterior mean of the others."""
    (k, n) = others.T
    mean, worth = (1 + k) / (2 + n), 0.0 if not kappa else kappa * n / (kappa + n)
    return 1 + worth * mean, 1 + worth * (1 - mean)


def strength(X, y, width):
    """Return the least κ whose leave-one-out score is within two nats of the best."""
    own, others = near(X, y, X, width)
    scores = []
    for kappa in KAPPAS:
        a, b = prior(others, kappa)
        p = (a + own[:, 0] - y) / (a + b + own[:, 1] - 1)
        scores.append(np.log(np.where(y, p, 1 - p)).sum())
    return next(k for k, s in zip(KAPPAS, scores, strict=True) if s >= max(scores) - 2.0)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_window_is_its_own_trials_over_a_prior_from_the_others(seed):
    X, y = table(seed=seed)
    asked = pd.DataFrame({"site": ["s0", "s3", "new"], "dose": [0.2, 0.6, 0.9]})
    kappa = strength(X, y, 0.25)
    assert kappa > 0.0
    own, others = near(X, y, asked, 0.25)
    a, b = prior(others, kappa)
    model = SmoothBetaClassifier(0.25, bounds=[(0, 1)]).fit(X, y)
    expected = beta.ppf([[0.05], [0.95]], a + own[:, 0], b + own[:, 1] - own[:, 0])
    np.testing.assert_allclose(model.posterior(asked).interval(0.9), expected, rtol=1e-9)


def test_levels_with_nothing_in_common_have_the_plain_prior():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"site": np.repeat([f"s{c}" for c in range(10)], 40), "dose": rng.random(400)})
    y = np.repeat(np.arange(10) % 2 == 0, 40)  # always, or never
    post = SmoothBetaClassifier(0.2, bounds=[(0, 1)]).fit(X, y).posterior(X.iloc[[0, 50]])
    own, _ = near(X, y, X.iloc[[0, 50]], 0.2)
    np.testing.assert_array_equal(post.mean(), (1 + own[:, 0]) / (2 + own[:, 1]))


def test_one_level_is_as_no_level():
    X, y = table(levels=1)
    alone, beside = (
        SmoothBetaClassifier(0.2, bounds=[(0, 1)]).fit(Z, y).posterior(Z.iloc[:9])
        for Z in (X[["dose"]], X)
    )
    np.testing.assert_array_equal(beside.interval(0.9), alone.interval(0.9))


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["loo", "theory", 0.3]), st.booleans())
def test_order_batches_and_merges_change_nothing(seed, bandwidth, is_distorted):
    (X, y), rng = table(120, seed=seed), np.random.default_rng(seed)
    c = contexts.guess_lapse(np.where(rng.random(120) < 0.5, 0.0, 0.3), 0.01)
    order, asked = rng.permutation(120), X.iloc[:7].assign(site=["s0", "s1", "new", *["s2"] * 4])

    def taught(model, rows):
        more = {"context": c[rows]} if is_distorted else {}
        return model.partial_fit(X.iloc[rows], y[rows], classes=[False, True], **more)

    def begun():
        return SmoothBetaClassifier(bandwidth, bounds=[(0, 1)])

    whole = taught(begun(), np.arange(120))
    streamed = taught(taught(begun(), order[:50]), order[50:])
    merged = taught(begun(), order[50:]).merge(taught(begun(), order[:50]))
    for other in (streamed, merged):
        for answer, expected in zip(
            other.posterior(asked).interval(0.9), whole.posterior(asked).interval(0.9), strict=True
        ):
            np.testing.assert_array_equal(answer, expected)


def test_a_file_has_the_same_prior(tmp_path):
    X, y = table()
    model = SmoothBetaClassifier("loo", bounds=[(0, 1)]).fit(X, y)
    model.save(tmp_path / "m.beta")
    again = betafield.load(tmp_path / "m.beta")
    assert again.field_.strength == model.field_.strength > 0.0
    np.testing.assert_array_equal(
        again.posterior(X).interval(0.9), model.posterior(X).interval(0.9)
    )


def test_no_trial_counts_twice_whatever_wraps_around():
    """Own trials and those of others are all trials near, on circles and on the sphere."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "hour": rng.uniform(0, 24, 300),
            "lon": rng.uniform(-180, 180, 300),
            "site": rng.choice(["a", "b", "c"], 300),
            "lat": rng.uniform(-90, 90, 300),
            "old": rng.random(300) < 0.5,
            "dose": rng.random(300),
        }
    )
    wraps = {"periodic": {"hour": 24}, "geographic": ("lon", "lat")}
    y = rng.random(300) < 0.4
    model = SmoothBetaClassifier(0.6, **wraps).fit(X, y)
    field, points = model.asked(X)
    own, width = field.sums(points, field.width), field.units.straight(field.width)
    found = field.levels.others(field.units.scaled(points), width, own, np.ones((300, 2)))
    joint = SmoothBetaClassifier(0.6, **wraps).fit(X.drop(columns=["site", "old"]), y)
    every = joint.field_.n_near(joint.asked(X.drop(columns=["site", "old"]))[1])
    np.testing.assert_array_equal(found.size + field.decoder.size(own), every)
    assert found.size.max() > 0


def test_distorted_trials_of_others_are_worth_less_than_their_number():
    X, y = table(400)
    c = contexts.guess_lapse(np.full(400, 0.5), 0.0)
    model = SmoothBetaClassifier(0.3, bounds=[(0, 1)]).fit(
        X, y | (np.arange(400) % 2 == 0), context=c
    )
    field, points = model.asked(X)
    own = field.sums(points, field.width)
    found = field.levels.others(field.units.scaled(points), field.width, own, np.ones((400, 2)))
    every = near(X, y, X, 0.3)[1][:, 1]
    assert np.all(found.size < 0.75 * every)
    assert np.all(found.size > 0.0)


def test_three_classes_lean_on_the_others():
    sums = np.array([[6, 3, 1], [0, 0, 0]])
    found = Others(Decoder(3, width=3), sums, np.ones((2, 3)))
    worth = 4.0 * 10 / 14
    expected = [1 + worth * np.array([7, 4, 2]) / 13, np.ones(3)]
    np.testing.assert_allclose(found.shapes(4.0), expected)
    assert STRENGTHS.tolist() == pytest.approx(KAPPAS)


def test_the_width_is_the_narrowest_that_is_about_as_good():
    X, y = table(400)
    model = SmoothBetaClassifier("loo", bounds=[(0, 1)]).fit(X, y)
    widths, scores, slack = model.field_.scored
    good = widths[scores >= scores.max() - 1.0]
    assert (model.bandwidth_, slack) == (good.min(), 1.0)
