"""The components of answers, in words, for data that are smooth or not."""

import numpy as np
import pandas as pd
import pytest

from betafield import SmoothBetaClassifier, contexts
from betafield.components import groups, told


def said(model):
    return [str(sentence) for sentence in told(model)]


def days(strength, n=4_000, seed=0):
    """Return trials by day and hour; the effects of days have this standard deviation."""
    rng = np.random.default_rng(seed)
    day, hour, effect = rng.integers(0, 40, n), rng.uniform(0, 24, n), rng.normal(size=40)
    chance = 1 / (1 + np.exp(-strength * effect[day] - np.sin(hour / 4)))
    return pd.DataFrame({"day {0}": day, "hour": hour}), rng.uniform(size=n) < chance


@pytest.mark.parametrize("strength", [0.0, 2.0])
def test_days_that_differ_and_days_that_do_not(strength):
    sentences = said(SmoothBetaClassifier().fit(*days(strength)))
    assert ("nothing contradicts a smooth probability" in sentences[-1]) == (strength == 0.0)
    levels = (
        "values of day {0} differ from each other more than a smooth curve would "
        "(100 % of the weight)"
    )
    assert (levels in sentences) == (strength > 0.0)


@pytest.mark.long
def test_groups_have_all_of_the_weight_and_reach_as_far_as_their_windows():
    model = SmoothBetaClassifier().fit(*days(1.0))
    found, table = groups(model.field_), model.weights_
    assert sum(group.weight for group in found) == pytest.approx(table["weight"].sum())
    windows = table[table["part"] == "windows"]
    for group in found:
        if group.part == "process":
            np.testing.assert_array_equal(group.least, model.length_scales_)
            continue
        mine = windows[((windows["stretch"] > 0) == np.isin([0, 1], group.features)).all(axis=1)]
        assert group.weight == pytest.approx(mine["weight"].sum())
        for k in group.features:
            reach = mine["width"] / mine["stretch"][:, k] * np.ptp(model.bounds_[k])
            assert group.least[k] == pytest.approx(reach.min())
            assert group.most[k] == pytest.approx(reach.max())
        others = [k for k in (0, 1) if k not in group.features]
        assert np.isinf(group.most[others]).all()


def test_the_paper_s_windows_are_one_group():
    X, y = days(1.0, 200)
    for bandwidth, rule in [(0.2, "was given"), ("theory", "follows from"), ("loo", "predicts")]:
        model = SmoothBetaClassifier(bandwidth).fit(X, y)
        (group,) = groups(model.field_)
        np.testing.assert_array_equal(group.most, model.bandwidth_ * model.scale_)
        assert rule in said(model)[-1]


def test_a_process_alone_says_that_nothing_else_was_looked_at():
    model = SmoothBetaClassifier(method="process").fit(*days(2.0, 500))
    assert said(model)[-1] == "the residuals of the process were not examined"
    assert [group.part for group in groups(model.field_)] == ["process"]


def test_other_units_are_told():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"dose": 10.0 ** rng.uniform(-2, 2, 500), "age": rng.uniform(size=500)})
    y = rng.uniform(size=500) < 1 / (1 + X["dose"])
    model = SmoothBetaClassifier(scale=["log", "range"]).fit(X, y)
    assert sum("smooth in logarithms of dose" in each for each in said(model)) == 1
    assert not any("along age it is" in each for each in said(model))


def test_few_trials_say_nothing_of_jumps():
    model = SmoothBetaClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    assert "nothing contradicts" in said(model)[-1]


@pytest.mark.parametrize(
    "model",
    [
        SmoothBetaClassifier().fit([[1.0, 5.0], [1.0, 5.0]], [0, 1]),
        SmoothBetaClassifier(0.5).fit([[1.0, 5.0], [1.0, 5.0]], [0, 1]),
        SmoothBetaClassifier().fit([[0.0], [1.0], [2.0]], ["a", "b", "c"]),
        SmoothBetaClassifier().fit([[0.0], [1.0]], [0, 1], context=contexts.guess_lapse(0.5)),
    ],
    ids=["one place", "one place in windows", "classes", "contexts"],
)
def test_every_model_can_be_told(model):
    assert len(said(model)) >= 2
    assert sum(group.weight for group in groups(model.field_)) == pytest.approx(1.0)
