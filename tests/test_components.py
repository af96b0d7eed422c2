"""What answers are made of, and what that means, in words: of data that are smooth, or not."""

import re

import numpy as np
import pandas as pd
import pytest

from betafield import FieldWarning, SmoothBetaClassifier, contexts, load
from betafield.components import groups
from betafield.meaning import told


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


def adding(t, interaction):
    """Return points and outcomes of waves along four features, and of a product of two."""
    rng = np.random.default_rng(t)
    X = rng.uniform(size=(t, 4))
    f = 1.5 * np.sin(7.0 * X).sum(axis=1) - 1.0
    f += interaction * (X[:, 0] - 0.5) * (X[:, 1] - 0.5)
    return X, rng.uniform(size=t) < 1 / (1 + np.exp(-f))


def test_features_that_act_independently_are_told(tmp_path):
    X, y = adding(800, 0.0)
    model = SmoothBetaClassifier().fit(X, y)
    weights = model.weights_
    share = weights["weight"][weights["form"] == "additive"].sum() / weights["weight"].sum()
    assert share > 0.9
    (sentence,) = (each for each in said(model) if "independently" in each)
    assert f"(weight {share:.2g})" in sentence
    model.save(tmp_path / "model.beta")
    again = load(tmp_path / "model.beta")
    assert again.weights_.tobytes() == weights.tobytes()
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_features_that_interact_are_not_told_to_act_independently():
    model = SmoothBetaClassifier().fit(*adding(1_500, 25.0))
    assert "additive" not in model.weights_["form"]
    assert not any("independently" in each for each in said(model))


def test_a_field_of_second_degree_is_told():
    rng = np.random.default_rng(5)
    X = rng.uniform(size=(3_000, 2))
    f = 9 * (X[:, 0] - 0.5) * (X[:, 1] - 0.5)
    model = SmoothBetaClassifier().fit(X, rng.uniform(size=len(X)) < 1 / (1 + np.exp(-f)))
    assert model.weights_["form"][0] == "quadratic"
    (sentence,) = (each for each in said(model) if "second degree" in each)
    assert sentence.startswith("in log-odds or probability, the field is a polynomial")
    assert model.length_scales_.min() > 0.99


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


# As an attribute of the model --------------------------------------------------------------


def told_reaches(sentence):
    """Return the reaches that a sentence tells, by feature."""
    return {name: float(reach) for reach, name in re.findall(r"([\d.]+) along (\w+)", sentence)}


def test_a_smooth_model_has_one_component_that_reaches_as_far_as_its_length_scales():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"dose": 10 * rng.uniform(size=300), "age": 90 * rng.uniform(size=300)})
    model = SmoothBetaClassifier(method="process").fit(X, rng.uniform(size=300) < X["dose"] / 10)
    (sentence,) = model.components_
    assert sentence.startswith("process: the smooth part (100 % of the weight), with length scales")
    expected = dict(zip(X.columns, model.length_scales_, strict=True))
    assert told_reaches(sentence) == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("strength", [0.0, 2.0])
def test_components_have_the_weights_of_the_table(strength):
    model = SmoothBetaClassifier().fit(*days(strength, 1_000))
    said, table = model.components_, model.weights_
    told = [int(re.search(r"(\d+) % of the weight", each)[1]) for each in said]
    assert sum(told) == pytest.approx(100, abs=len(told))
    assert told == sorted(told, reverse=True)
    process = table["weight"][table["part"] == "process"].sum()
    of_processes = sum(w for w, each in zip(told, said, strict=True) if each.startswith("process"))
    assert of_processes == pytest.approx(100 * process, abs=1)
    assert any("effects of day {0} (" in each for each in said) == (strength > 0.0)


def test_a_window_reaches_its_width_in_the_units_of_the_features():
    X = pd.DataFrame({"a": [0.0, 10.0], "b": [0.0, 0.5], "c": [3.0, 3.0]})
    model = SmoothBetaClassifier(0.1).fit(X, [0, 1])
    assert model.components_ == [
        "window (100 % of the weight), which reaches 1 along a and 0.05 along b"
    ]
    np.testing.assert_allclose(model.length_scales_, [1.0, 0.05, np.inf])
    np.testing.assert_array_equal(model.relevance_, [1.0, 1.0, 0.0])
    wide = SmoothBetaClassifier(2.0).fit(X, [0, 1]).components_
    assert wide == ["window (100 % of the weight), which reaches all of a and all of b"]


def test_windows_of_residuals_reach_as_far_as_those_of_the_table():
    rng = np.random.default_rng(0)
    X = 10 * rng.uniform(size=(2_000, 1))
    y = rng.uniform(size=2_000) < np.where(np.floor(5 * X[:, 0]) % 2, 0.1, 0.9)
    model = SmoothBetaClassifier().fit(X, y)
    table = model.weights_[model.weights_["part"] == "windows"]
    (said,) = [each for each in model.components_ if each.startswith("windows of its residuals (")]
    reach = table["width"] / table["stretch"][:, 0] * np.ptp(model.bounds_)
    low, high = re.search(r"which reach ([\d.]+) to ([\d.]+) along x0", said).groups()
    assert [float(low), float(high)] == pytest.approx([reach.min(), reach.max()], rel=5e-3)


def test_categories_and_groups_are_named():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"dose": rng.uniform(size=60), "site": rng.choice(["ulm", "bonn"], 60)})
    y, groups_of = rng.integers(0, 2, 60), np.arange(60) // 6
    both = SmoothBetaClassifier().fit(X, y, groups=groups_of)
    assert both.components_[0].startswith(
        "process: the smooth part, and effects of site and groups"
    )
    alone = SmoothBetaClassifier().fit(X[["site"]], y)
    assert alone.components_ == [
        "process: the smooth part, and effects of site (100 % of the weight)"
    ]
    for model in (both, SmoothBetaClassifier(0.2).fit(X, y)):
        for learned in (model.length_scales_, model.relevance_):
            np.testing.assert_array_equal(np.isnan(learned), [False, True])
    (window,) = SmoothBetaClassifier(0.2).fit(X, y).components_
    assert window.startswith("window, within each level of site (100 % of the weight)")


def test_groups_are_told_by_how_much_they_differ():
    rng = np.random.default_rng(0)
    X, group = rng.uniform(size=(600, 1)), np.arange(600) // 20
    chance = 1 / (1 + np.exp(-2 * rng.normal(size=30)[group]))
    model = SmoothBetaClassifier().fit(X, rng.uniform(size=600) < chance, groups=group)
    deviation = f"{model.group_deviation_:.2g}"
    assert f"groups differ by a standard deviation of {deviation} in log-odds" in said(model)
    assert said(model)[-1] == "the residuals of the process were not examined"


def test_a_constant_feature_reaches_everywhere_and_has_no_relevance():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=300), np.full(300, 5.0)])
    with pytest.warns(FieldWarning, match="is constant"):
        model = SmoothBetaClassifier().fit(X, rng.uniform(size=300) < X[:, 0])
    assert np.isfinite(model.length_scales_[0])
    assert np.isposinf(model.length_scales_[1])
    np.testing.assert_array_equal(model.relevance_, [1.0, 0.0])
    assert "x1" not in model.components_[0]


def test_one_place_has_no_feature_that_varies():
    with pytest.warns(FieldWarning, match="is constant"):
        model = SmoothBetaClassifier().fit([[1.0, 5.0], [1.0, 5.0]], [0, 1])
    assert (
        model.components_[0] == "process: the smooth part (100 % of the weight); no feature varies"
    )
    np.testing.assert_array_equal(model.relevance_, [0.0, 0.0])


def test_many_features_are_not_all_listed():
    rng = np.random.default_rng(0)
    model = SmoothBetaClassifier(0.5).fit(rng.uniform(size=(50, 9)), rng.integers(0, 2, 50))
    (sentence,) = model.components_
    assert list(told_reaches(sentence)) == [f"x{a}" for a in range(6)]
    assert sentence.endswith(" and so on along 3 more")
