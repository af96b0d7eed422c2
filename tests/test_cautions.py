"""Warnings: each doubt about an answer is mentioned once, and nothing otherwise."""

import warnings

import numpy as np
import pandas as pd
import pytest

from betafield import FieldWarning, SmoothBetaClassifier

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(400, 2))
Y = RNG.uniform(size=400) < X[:, 0]


def said(act):
    """Return the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    return [str(each.message) for each in caught]


def test_nothing_is_said_of_a_smooth_field_where_its_trials_are():
    assert said(lambda: SmoothBetaClassifier().fit(X, Y).posterior(X)) == []


def test_a_constant_feature_is_named():
    table = pd.DataFrame({"dose": X[:, 0], "site": 3.0})
    (one,) = said(lambda: SmoothBetaClassifier().fit(table, Y))
    assert one == "X: 'site' is constant, 3; it carries no information and can be left out"


def test_a_column_that_numbers_the_rows_is_named():
    table = np.column_stack([X[:, 0], RNG.permutation(400)])
    (one,) = said(lambda: SmoothBetaClassifier().fit(table, Y))
    assert one.startswith("X: column 1 seems to number the rows")


def test_points_far_from_all_trials_are_counted_once():
    model = SmoothBetaClassifier().fit(X, Y)
    away = np.vstack([X[:90], np.full((10, 2), 1000.0)])
    for ask in (model.posterior, model.predict_proba):
        (one,) = said(lambda ask=ask: ask(away))
        assert one.startswith("X: 10% of 100 points are further than two length scales")
        assert said(lambda ask=ask: ask(away[:94])) == []  # four of the far points


def test_rows_that_vary_more_than_trials_can_are_told():
    x = RNG.uniform(size=(200, 1))
    p = RNG.beta(1.0, 1.0, size=200)  # independent in every row, whatever x
    held = np.full(200, 30)
    won = RNG.binomial(held, p)
    model = SmoothBetaClassifier(method="process")
    spread, rough = said(lambda: model.fit_counts(x, won, held))
    assert "times as much as independent ones would" in spread
    assert "rougher than its process can follow" in rough
    fair = RNG.binomial(held, 0.3 + 0.4 * x[:, 0])
    assert said(lambda: model.fit_counts(x, fair, held)) == []


def test_stripes_finer_than_any_length_scale_are_told():
    x = np.random.default_rng(1).uniform(size=(6_000, 2))
    striped = (np.floor(40.0 * x[:, 0]) % 2).astype(int)
    spread, rough = said(lambda: SmoothBetaClassifier(method="process").fit(x, striped))
    assert "vary over 1,000 times as much" in spread
    assert "rougher than its process can follow" in rough
    smooth = RNG.uniform(size=6_000) < 0.2 + 0.6 * x[:, 0]
    assert said(lambda: SmoothBetaClassifier(method="process").fit(x, smooth)) == []


@pytest.mark.parametrize("columns", [["dose"], ["dose", "site"]])
def test_one_single_group_is_told(columns):
    table = pd.DataFrame({"dose": X[:60, 0], "site": ["a", "b"] * 30})[columns]
    (one,) = said(lambda: SmoothBetaClassifier().fit(table, Y[:60], groups=["only"] * 60))
    assert one.startswith("groups: all trials are in one group, so nothing can be learned about")
    assert "leave groups out" in one
    two = np.repeat(["one", "two"], 30)
    assert said(lambda: SmoothBetaClassifier().fit(table, Y[:60], groups=two)) == []


def test_groups_of_one_trial_each_are_refused_or_told():
    each = np.arange(60)
    with pytest.raises(ValueError, match="groups: found 60 groups of one trial each"):
        SmoothBetaClassifier().fit(X[:60], Y[:60], groups=each)

    def counts(trials):
        won = np.minimum(Y[:60], trials)
        SmoothBetaClassifier().fit_counts(X[:60], won, trials, groups=each)

    (one,) = said(lambda: counts(np.ones(60, dtype=int)))
    assert one.startswith("groups: every group has a single trial, so nothing can be learned about")
    assert said(lambda: counts(1 + (each == 7))) == []  # one has two


def test_windows_say_nothing():
    table = np.column_stack([np.arange(400.0), np.ones(400)])
    assert said(lambda: SmoothBetaClassifier(0.1).fit(table, Y).posterior([[9e9, 1.0]])) == []


def test_warnings_point_to_the_callers_line():
    with pytest.warns(FieldWarning) as caught:
        SmoothBetaClassifier().fit(np.column_stack([X[:, 0], np.ones(400)]), Y)
    assert caught[0].filename == __file__
    with pytest.warns(FieldWarning) as caught:
        SmoothBetaClassifier().fit(X, Y).posterior([[99.0, 99.0]])
    assert caught[0].filename == __file__
