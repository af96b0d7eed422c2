"""Thresholds and slopes of fitted models, against roots of the truth and of the posterior mean."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import brentq
from sklearn.base import clone

from betafield import SmoothBetaClassifier, contexts, load
from betafield.answers.crossings import crossings
from betafield.answers.threshold import Asked, Threshold
from betafield.answers.thresholds import reached
from betafield.cautions import FieldWarning

TASK = contexts.guess_lapse(1 / 2, 0.02)


def _curve(x):
    return 1.0 / (1.0 + np.exp(-(x - 4.0)))


def _model(t=20_000, falls=False, task=None, **options):
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 10.0, size=(t, 1))
    p = 1.0 - _curve(x[:, 0]) if falls else _curve(x[:, 0])
    y = rng.uniform(size=t) < (p if task is None else contexts.probability(task, p))
    return SmoothBetaClassifier(bounds=[(0.0, 10.0)], **options).fit(x, y, context=task)


@pytest.fixture(scope="module")
def rising():
    return _model()


@pytest.fixture(scope="module")
def plane():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"dose": rng.uniform(0, 10, 4_000), "age": rng.uniform(0, 2, 4_000)})
    p = _curve(table["dose"] - table["age"])
    return SmoothBetaClassifier(bounds=[(0, 10), (0, 2)]).fit(table, rng.uniform(size=4_000) < p)


@pytest.mark.parametrize("level", [0.2, 0.5, 0.9])
def test_many_trials_find_the_root(rising, level):
    root = brentq(lambda x: _curve(x) - level, 0.0, 10.0)
    found = rising.threshold(level, random_state=0)
    low, high = found.interval(0.999)
    assert low < root < high < low + 1.0
    assert found.not_reached == 0.0
    # And the slope: p (1 − p).
    slope = found.slope().interval(0.999)
    assert slope[0][0] < level * (1.0 - level) < slope[1][0]


def test_the_median_is_where_the_median_of_the_curve_is(rising):
    half = rising.threshold(0.5, random_state=0).median()
    middle = brentq(lambda x: rising.posterior([[x]]).ppf(0.5)[0] - 0.5, 2.0, 6.0)
    assert half == pytest.approx(middle, abs=0.05)


def test_below_x_is_above_the_level_there(rising):
    found, x = rising.threshold(0.5, random_state=0), 4.02
    assert found.prob_below(x) == pytest.approx(rising.posterior([[x]]).prob_above(0.5)[0], abs=0.1)
    assert found.prob_below(-1.0) == 0.0
    assert found.prob_below(99.0) == 1.0


def test_a_falling_curve_is_crossed_downwards():
    found = _model(4_000, falls=True).threshold(0.2, random_state=0)
    low, high = found.interval(0.999)
    assert low < brentq(lambda x: 0.8 - _curve(x), 0.0, 10.0) < high
    assert not found.asked.rises
    assert found.slope().mean()[0] < 0.0
    assert "first falls to 0.2" in str(found)


def test_a_level_under_a_context_is_that_of_the_success_probability():
    model = _model(6_000, task=TASK)
    right = model.threshold(0.75, under=TASK, random_state=0)
    assert np.array_equal(right.draws, model.threshold(0.25 / 0.48, random_state=0).draws)
    np.testing.assert_allclose(
        right.slope().mean(), 0.48 * model.threshold(0.25 / 0.48, random_state=0).slope().mean()
    )
    assert right.level == 0.75


@pytest.mark.parametrize("context", [[0.5, 0.98], [0.9, 0.1], [0.0, 1.0, 1.0], [0.02, 0.9, 0.95]])
def test_levels_are_reached_where_the_context_says(context):
    goal, slope = reached(0.6, context)
    p = np.array([goal - 1e-6, goal, goal + 1e-6])
    below, at, above = contexts.probability(np.tile(context, (3, 1)), p)
    assert at == pytest.approx(0.6, abs=1e-9)
    assert slope == pytest.approx((above - below) / 2e-6, rel=1e-4)


def test_a_level_that_is_not_reached_is_told():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(500, 1))
    model = SmoothBetaClassifier().fit(x, rng.uniform(size=500) < 0.1 + 0.2 * x[:, 0])
    beyond = model.threshold(0.9, random_state=0)
    assert beyond.never > 0.95
    assert beyond.median() == model.bounds_[0, 1]
    assert beyond.prob_below(99.0) < 0.05
    assert "x0 above" in str(beyond)
    assert "not reached in 100 % of draws" in repr(beyond)
    before = model.threshold(0.01, random_state=0)
    assert before.already > 0.5
    assert before.median() == model.bounds_[0, 0]
    assert before.prob_below(-99.0) == 0.0
    assert "x0 below" in str(before)


def test_logarithmic_doses_have_a_grid_of_their_own():
    rng = np.random.default_rng(2)
    dose = np.exp(rng.uniform(np.log(1e-3), np.log(1e3), size=(2_000, 1)))
    died = rng.uniform(size=2_000) < 1.0 / (1.0 + (0.02 / dose[:, 0]) ** 1.5)
    found = SmoothBetaClassifier(scale="log").fit(dose, died).threshold(0.5, random_state=0)
    low, high = found.interval(0.99)
    assert 0.005 < low < 0.02 < high < 0.08


def test_others_are_fixed_or_averaged(plane):
    for age in (0.2, 1.8):
        low, high = plane.threshold(0.5, "dose", at={"age": age}, random_state=0).interval(0.99)
        assert low < 4.0 + age < high
    mean = plane.threshold(0.5, "dose", size=200, random_state=0)
    assert mean.asked.averaged
    assert mean.median() == pytest.approx(5.0, abs=0.3)
    by_row = plane.threshold(0.5, 0, at=[0.0, 1.8], random_state=0)
    assert np.array_equal(
        by_row.draws, plane.threshold(0.5, "dose", at={"age": 1.8}, random_state=0).draws
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_a_step_is_anywhere_between_the_outcomes_that_it_parts(sign):
    rng = np.random.default_rng(0)
    held = []
    for low, share in rng.uniform((0.1, 0.0), (0.8, 1.0), size=(12, 2)):
        # As adaptive experiments do, most trials are made next to a gap.
        at, high = low + 0.02 * share, low + 0.02
        beside = [low - rng.uniform(0, 0.03, size=30), high + rng.uniform(0, 0.03, size=30)]
        x = np.concatenate([np.linspace(0, low, 10), np.linspace(high, 1, 10), *beside])
        y = sign * (x - at) > 0.0
        model = SmoothBetaClassifier(bounds=[(0, 1)], scale="range").fit(x[:, None], y)
        first, last = model.threshold(0.5, random_state=0).interval(0.95)
        assert last - first > 0.8 * (high - low)
        assert low - 0.005 < first < last < high + 0.005
        held.append(first <= at <= last)
    # Fewer of 12 would be held with a probability of less than one in 1,000.
    assert np.sum(held) >= stats.binom.ppf(1e-3, 12, 0.95)


@pytest.mark.parametrize("lapse", [None, contexts.Unknown(1, 60)])
def test_a_step_is_found_whatever_the_units_and_the_rates(lapse):
    x = np.concatenate([np.linspace(0.0, 3.3, 30), np.linspace(3.5, 7.0, 30)])[:, None]
    task = None if lapse is None else contexts.guess_lapse(0.0, lapse)
    model = SmoothBetaClassifier(bounds=[(1.0, np.exp(7.0))], scale="log")
    found = model.fit(np.exp(x), x[:, 0] > 3.4, context=task).threshold(0.5, random_state=0)
    low, high = np.log(found.interval(0.95))
    assert low < 3.3 + 0.02
    assert high > 3.5 - 0.02
    assert np.log(found.median()) == pytest.approx(3.4, abs=0.03)


def test_slopes_are_derivatives(rising, plane):
    slope = rising.slope([[4.0], [9.0]], random_state=0)
    low, high = slope.interval(0.999)
    truth = _curve(np.array([4.0, 9.0])) * (1.0 - _curve(np.array([4.0, 9.0])))
    assert np.all((low < truth) & (truth < high))
    each = plane.slope(pd.DataFrame({"dose": [5.0], "age": [1.0]}), random_state=0)
    assert each.keys() == {"dose", "age"}
    assert each["dose"].mean()[0] == pytest.approx(0.25, abs=0.08)
    assert each["age"].mean()[0] == pytest.approx(-0.25, abs=0.15)
    alone = plane.slope(pd.DataFrame({"dose": [5.0], "age": [1.0]}), "age", random_state=0)
    assert np.array_equal(alone.draws, each["age"].draws)
    # It also exists at the ends of the domain and beyond.
    assert np.isfinite(rising.slope([[0.0], [10.0], [12.0]], random_state=0).draws).all()


def test_anchors_hold_the_ends_of_a_curve():
    rng = np.random.default_rng(3)
    x = np.clip(rng.normal(4.0, 0.7, size=(120, 1)), 0.0, 10.0)
    y = rng.uniform(size=120) < contexts.probability(TASK, _curve(x[:, 0]))
    model = SmoothBetaClassifier(bounds=[(0.0, 10.0)]).fit(x, y, context=TASK)
    free, held = (model.threshold(0.5, anchored=a, random_state=0) for a in (False, True))
    assert held.not_reached < 0.01 < free.not_reached
    width = np.diff(held.interval())[0]
    assert width < np.diff(free.interval())[0]
    low, high = held.interval()
    assert low < 4.0 < high
    mirrored = SmoothBetaClassifier(bounds=[(0.0, 10.0)])
    mirrored.fit(x, ~y, context=contexts.affine(0.48, 0.02))
    down = mirrored.threshold(0.5, anchored=True, random_state=0)
    assert not down.asked.rises
    assert down.median() == pytest.approx(held.median(), abs=0.3)


def test_anchors_that_trials_contradict_are_told():
    rng = np.random.default_rng(4)
    x = rng.uniform(size=(800, 1))
    model = SmoothBetaClassifier(bounds=[(0, 1)]).fit(
        x, rng.uniform(size=800) < 0.3 + 0.4 * x[:, 0]
    )
    with pytest.warns(FieldWarning, match=r"anchored: .* above 0.1 at x0 = 0 .* and below 0.9"):
        model.threshold(0.5, anchored=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _model(300).threshold(0.5, anchored=True)


@pytest.mark.long
def test_groups_and_rows_that_vary_take_anchors_too():
    rng = np.random.default_rng(5)
    x = np.repeat(np.linspace(0.0, 10.0, 30), 10)[:, None]
    y = rng.uniform(size=300) < _curve(x[:, 0])
    asked = {"level": 0.5, "anchored": True, "size": 300, "random_state": 0}
    grouped = SmoothBetaClassifier().fit(x, y, groups=np.arange(300) % 5)
    assert 3.0 < grouped.threshold(**asked).median() < 5.0
    counts = SmoothBetaClassifier().fit_counts(
        x[::10], y.reshape(30, 10).sum(axis=1), np.full(30, 10), overdispersion="auto"
    )
    assert 3.0 < counts.threshold(**asked).median() < 5.0


def test_rates_that_are_not_known_take_anchors_too():
    rng = np.random.default_rng(7)
    x = rng.uniform(0.0, 10.0, size=(200, 1))
    y = rng.uniform(size=200) < 0.5 + 0.45 * _curve(x[:, 0])
    task = contexts.guess_lapse(1 / 2, contexts.Unknown(1.5, 30))
    model = SmoothBetaClassifier(bounds=[(0.0, 10.0)]).fit(x, y, context=task)
    low, high = model.threshold(0.5, anchored=True, size=300, random_state=0).interval(0.95)
    assert 1.0 < low < 4.0 < high < 7.0


def test_windows_have_thresholds():
    rng = np.random.default_rng(6)
    x = rng.uniform(size=(4_000, 2))
    model = SmoothBetaClassifier(bandwidth=0.15).fit(x, rng.uniform(size=4_000) < x[:, 0])
    for at in (None, [0.0, 0.5]):
        found = model.threshold(0.5, 0, at=at, size=40, random_state=0)
        assert found.median() == pytest.approx(0.5, abs=0.1)
    with pytest.raises(ValueError, match="anchored: windows"):
        model.threshold(0.5, 0, at=[0.0, 0.5], anchored=True)


def test_seeds_decide(rising):
    one, same, other = (rising.threshold(0.5, random_state=seed).draws for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    assert rising.threshold(0.5, size=10, random_state=0).draws.shape == (10,)


def test_copies_and_files_say_the_same(rising, tmp_path):
    rising.save(tmp_path / "m.beta")
    asked = {"level": 0.5, "anchored": True, "random_state": 0}
    expected = rising.threshold(**asked).draws
    for each in (copy.deepcopy(rising), load(tmp_path / "m.beta")):
        assert np.array_equal(each.threshold(**asked).draws, expected)


def test_draws_of_a_known_law():
    # Lines of slope 1 through a random place cross ½ there.
    rng, grid = np.random.default_rng(0), np.linspace(-8.0, 8.0, 2_001)
    at = rng.normal(size=500)
    found = Threshold(crossings(0.5 + grid - at[:, None], grid, 0.5), Asked(0.5, "x", (-8.0, 8.0)))
    np.testing.assert_allclose(found.draws, at, atol=1e-9)
    assert found.median() == pytest.approx(np.median(at))
    assert found.interval(0.8) == pytest.approx(tuple(np.quantile(at, [0.1, 0.9])))
    assert found.prob_below(0.3) == pytest.approx(np.mean(at <= 0.3))


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"level": 0.0}, "level: found 0"),
        ({"level": 1.2}, "level: found 1.2"),
        ({"level": "a"}, "level: found 'a'"),
        (
            {"level": 0.4, "under": [0.5, 0.98]},
            "level: found 0.4; under the context it is from 0.5",
        ),
        ({"level": 0.4, "under": [0.0, 1.0, 0.0]}, "under: found"),
        ({"level": 0.4, "under": [0.5, 0.5]}, "under: found"),
        ({"level": 0.5, "feature": "y"}, "feature: found 'y'"),
        ({"level": 0.5, "feature": 7}, "feature: found 7"),
        ({"level": 0.5, "at": {"x1": 1.0}}, "at: found 'x1'"),
        ({"level": 0.5, "at": {"x0": 1.0}}, "at: found 'x0', which is the feature"),
        ({"level": 0.5, "at": [1.0, 2.0]}, "at: found"),
        ({"level": 0.5, "anchored": 1}, "anchored: found 1"),
        ({"level": 0.5, "size": 0}, "size: found 0"),
        ({"level": 0.5, "random_state": "a"}, "random_state"),
    ],
    ids=str,
)
def test_wrong_questions_are_refused_by_name(rising, arguments, match):
    with pytest.raises((ValueError, TypeError), match=match):
        rising.threshold(**arguments)


def test_several_features_need_one_to_go_along(plane):
    with pytest.raises(ValueError, match="feature: found None; one of dose, age"):
        plane.threshold(0.5)
    with pytest.raises(ValueError, match=r"at: .* values of age are missing"):
        plane.threshold(0.5, "dose", at={})
    with pytest.raises(ValueError, match=r"anchored: .* give `at`"):
        plane.threshold(0.5, "dose", anchored=True)


def test_constant_features_and_several_classes_are_refused():
    x = np.column_stack([np.linspace(0, 1, 40), np.ones(40)])
    y = np.arange(40) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FieldWarning)
        model = SmoothBetaClassifier().fit(x, y > 0)
        three = SmoothBetaClassifier().fit(x[:, :1], y)
    with pytest.raises(ValueError, match=r"feature: .* one value, 1"):
        model.threshold(0.5, "x1")
    with pytest.raises(ValueError, match="feature: x1 has one value"):
        model.slope(x, "x1")
    with pytest.raises(ValueError, match="level: this model has 3 classes"):
        three.threshold(0.5)
    with pytest.raises(ValueError, match="X: this model has 3 classes"):
        three.slope(x[:, :1])


def test_clones_ask_for_the_same_field():
    model = _model(300, monotonic_cst={"x0": 1})
    again = clone(model).fit(np.linspace(0, 10, 60)[:, None], np.arange(60) > 20)
    assert again.monotonic_cst == {"x0": 1}
    assert 2.0 < again.threshold(0.5, random_state=0).median() < 5.0
