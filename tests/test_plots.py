"""Plots: their data against the model's own answers, and the drawings against their data."""

import subprocess
import sys
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.cbook import is_math_text
from matplotlib.colors import to_rgb
from scipy import stats
from scipy.spatial.distance import cdist
from sklearn.calibration import calibration_curve
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LogisticRegression

from betafield import FieldCalibratedClassifier, SmoothBetaClassifier, contexts
from betafield._locks import remember
from betafield.baselines import ContinuousCorrelatedBeta, RadiusNeighbors
from betafield.observed import binned, observed
from betafield.plots import (
    BandwidthDisplay,
    CalibrationDisplay,
    ComponentsDisplay,
    ExceedanceDisplay,
    FieldDisplay,
    WindowDisplay,
    style,
)
from betafield.survey import Question


@pytest.fixture(autouse=True)
def figures():
    """Draw without a screen, restore the settings, and close all figures."""
    plt.switch_backend("Agg")
    before = dict(mpl.rcParams)
    yield
    changed = {name for name, value in before.items() if mpl.rcParams[name] != value}
    plt.close("all")
    assert not changed


def table(n=400, d=1, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(size=(n, d)) * 10, columns=["dose", "age", "mass"][:d])
    chance = 1 / (1 + np.exp(-(X["dose"] - 5) / 2))
    return X, np.where(rng.uniform(size=n) < chance, "dead", "alive")


def jump(n=5_000):
    """Return trials with a jump in the probability, which no process can follow."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 1))
    return X, rng.uniform(size=n) < 0.2 + 0.6 * (X[:, 0] > 0.37)


@pytest.fixture(scope="module")
def line():
    return SmoothBetaClassifier().fit(*table())


@pytest.fixture(scope="module")
def scored():
    return SmoothBetaClassifier("loo").fit(*table())


@pytest.fixture(scope="module")
def levels():
    """Return a model of days that differ more than a smooth function allows."""
    rng = np.random.default_rng(0)
    day, hour, effect = rng.integers(0, 40, 4_000), rng.uniform(0, 24, 4_000), rng.normal(size=40)
    chance = 1 / (1 + np.exp(-effect[day] - np.sin(hour / 4)))
    X = pd.DataFrame({"day": day, "hour": hour})
    return SmoothBetaClassifier().fit(X, rng.uniform(size=4_000) < chance)


@pytest.fixture(scope="module")
def plane():
    return SmoothBetaClassifier(bandwidth=0.3).fit(*table(d=2))


@pytest.fixture(scope="module")
def space():
    return SmoothBetaClassifier(bandwidth=0.4).fit(*table(n=151, d=3))


@pytest.fixture(scope="module")
def classes():
    X, y = table()
    return SmoothBetaClassifier(bandwidth=0.2).fit(X, np.where(X["dose"] < 2, "ill", y))


@pytest.fixture(scope="module")
def guessed():
    X, y = table()
    return SmoothBetaClassifier(0.2).fit(X, y, context=contexts.guess_lapse(guess=0.3))


def frame(model, points):
    return pd.DataFrame(points, columns=model.feature_names_in_)


def lines_of(ax):
    return {each.get_label(): each.get_xydata() for each in ax.lines}


# Fields over one feature -------------------------------------------------------------------


def test_a_curve_is_what_the_model_says(line):
    display = FieldDisplay.from_estimator(line, level=0.8, lipschitz=3.0, grid_resolution=50)
    (grid,) = display.grid
    np.testing.assert_array_equal(grid[[0, -1]], line.bounds_[0])
    points = frame(line, grid[:, None])
    posterior = line.posterior(points)
    np.testing.assert_array_equal(display.mean, posterior.mean())
    np.testing.assert_array_equal([display.low, display.high], posterior.interval(0.8))
    np.testing.assert_array_equal(display.band, line.band(points, 3.0, level=0.8))


def test_what_is_kept_is_drawn(line):
    display = FieldDisplay.from_estimator(line, lipschitz=3.0, show_places=True)
    ax = display.ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("dose", "P(dead)")
    drawn = lines_of(ax)
    np.testing.assert_array_equal(drawn["posterior mean"].T, [display.grid[0], display.mean])
    np.testing.assert_array_equal(drawn["95 % guaranteed band"][:, 1], display.band[0])
    np.testing.assert_array_equal(drawn["places of trials"][:, 0], display.places[:, 0])
    (bars,) = ax.containers
    bins = binned(observed(line), level=0.95)
    np.testing.assert_array_equal(bars[0].get_ydata(), bins.share)
    ends = np.array([segment[:, 1] for segment in bars[2][0].get_segments()])
    np.testing.assert_allclose(ends.T, [bins.low, bins.high])
    shown = {text.get_text() for text in ax.get_legend().get_texts()}
    assert shown == {
        "posterior mean",
        "95 % credible interval",
        "95 % guaranteed band",
        "share of successes in bins",
        "places of trials",
    }


def test_the_first_class_is_the_second_turned_round(line):
    dead = FieldDisplay.from_estimator(line, lipschitz=3.0)
    alive = FieldDisplay.from_estimator(line, lipschitz=3.0, class_="alive")
    np.testing.assert_allclose(alive.mean, 1 - dead.mean)
    np.testing.assert_allclose([alive.low, alive.high], [1 - dead.high, 1 - dead.low])
    np.testing.assert_allclose(alive.band, [1 - dead.band[1], 1 - dead.band[0]])
    np.testing.assert_allclose(alive.bins[0].share, 1 - dead.bins[0].share)
    assert alive.ax_.get_ylabel() == "P(alive)"


def test_classes_have_a_curve_each(classes):
    display = FieldDisplay.from_estimator(classes)
    posterior = classes.posterior(frame(classes, display.grid[0][:, None]))
    np.testing.assert_array_equal(display.mean, posterior.mean())
    drawn = lines_of(display.ax_)
    for k, label in enumerate(["P(alive)", "P(dead)", "P(ill)"]):
        np.testing.assert_array_equal(drawn[label][:, 1], display.mean[:, k])
    assert len(display.bins) == 3
    one = FieldDisplay.from_estimator(classes, class_="ill")
    np.testing.assert_array_equal(one.mean, display.mean[:, 2])
    np.testing.assert_array_equal(one.bins[0].share, display.bins[2].share)
    assert one.ax_.get_ylabel() == "P(ill)"


def test_trials_given_are_drawn_in_place_of_those_seen(line):
    X, y = table(n=60, seed=5)
    display = FieldDisplay.from_estimator(line, X, y, n_bins=5)
    held, edges = np.histogram(X["dose"], 5)
    np.testing.assert_allclose(display.bins[0].edges, edges)
    np.testing.assert_array_equal(display.bins[0].trials, held)
    won = np.histogram(X["dose"][y == "dead"], edges)[0]
    np.testing.assert_array_equal(display.bins[0].successes, won)
    assert FieldDisplay.from_estimator(line, X).bins == ()


# Contexts ----------------------------------------------------------------------------------


def test_after_contexts_outcomes_are_not_drawn(guessed):
    display = FieldDisplay.from_estimator(guessed, lipschitz=3.0)
    assert display.bins == ()
    assert display.ax_.get_ylabel() == "P(dead), undistorted"
    assert not display.ax_.containers


@pytest.mark.parametrize("context", [contexts.background(0.2), [1.0, 0.0], contexts.pooled(3)])
def test_under_a_context(line, context):
    display = FieldDisplay.from_estimator(line, under=context, lipschitz=3.0, grid_resolution=20)
    points = frame(line, display.grid[0][:, None])
    posterior = line.posterior(points).under(context)
    np.testing.assert_array_equal(display.mean, posterior.mean())
    np.testing.assert_array_equal([display.low, display.high], posterior.interval(0.95))
    ends = [contexts.probability(context, end) for end in line.band(points, 3.0)]
    np.testing.assert_allclose(display.band, np.sort(ends, axis=0))
    assert display.bins == ()


# Fields over two features, and of several --------------------------------------------------


def test_a_map_has_the_first_feature_along_x(plane):
    display = FieldDisplay.from_estimator(plane, grid_resolution=7, level=0.9)
    x, y = display.grid
    for j, i in [(0, 0), (3, 5), (6, 1)]:
        posterior = plane.posterior(frame(plane, [[x[i], y[j]]]))
        assert display.mean[j, i] == posterior.mean()[0]
        assert (display.low[j, i], display.high[j, i]) == tuple(np.ravel(posterior.interval(0.9)))
    left, right = display.ax_
    assert (left.get_xlabel(), left.get_ylabel()) == ("dose", "age")
    assert left.get_title(loc="left") == "P(dead)"
    np.testing.assert_array_equal(left.collections[0].get_array().reshape(7, 7), display.mean)
    width = display.high - display.low
    np.testing.assert_array_equal(right.collections[0].get_array().reshape(7, 7), width)
    assert left.collections[0].get_cmap().name != right.collections[0].get_cmap().name


def test_a_map_turned_round(plane):
    straight = FieldDisplay.from_estimator(plane, grid_resolution=7)
    turned = FieldDisplay.from_estimator(plane, grid_resolution=7, features=["age", "dose"])
    np.testing.assert_array_equal(turned.mean, straight.mean.T)
    assert turned.ax_[0].get_xlabel() == "age"


def test_the_second_map_may_be_of_the_band(plane):
    display = FieldDisplay.from_estimator(plane, grid_resolution=5, lipschitz=2.0)
    low, high = display.band
    np.testing.assert_array_equal(
        display.ax_[1].collections[0].get_array().ravel(), (high - low).ravel()
    )
    assert display.ax_[1].get_title(loc="left") == "width of the 95 % guaranteed band"


def test_slices_are_at_medians_or_where_they_are_asked(space):
    X, _ = table(n=151, d=3)
    display = FieldDisplay.from_estimator(space, features=["mass", 0], grid_resolution=4)
    assert display.at == {"age": pytest.approx(np.median(X["age"]))}
    assert "at age = " in display.ax_[0].get_xlabel()
    asked = FieldDisplay.from_estimator(
        space, features=["mass", 0], at={"age": 2.5}, grid_resolution=4
    )
    x, y = asked.grid
    expected = space.predict_proba(frame(space, [[y[2], 2.5, x[1]]]))[0, 1]
    assert asked.mean[2, 1] == expected
    curve = FieldDisplay.from_estimator(space, features="dose", at={}, grid_resolution=4)
    assert curve.at == {name: pytest.approx(np.median(X[name])) for name in ("age", "mass")}


def test_more_than_two_features_show_the_most_relevant():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1_000, 3))
    y = rng.uniform(size=1_000) < 0.5 + 0.45 * np.sin(6 * X[:, 2]) * np.cos(3 * X[:, 0])
    model = SmoothBetaClassifier().fit(X, y)
    assert model.relevance_[1] < min(model.relevance_[[0, 2]])
    display = FieldDisplay.from_estimator(model, grid_resolution=4)
    assert display.features == ("x0", "x2")


def test_partial_dependence_is_that_of_scikit_learn(space):
    X, _ = table(n=151, d=3)
    display = FieldDisplay.from_estimator(space, features="dose", grid_resolution=6)
    assert display.averaged
    found = partial_dependence(
        space, X, ["dose"], custom_values={"dose": display.grid[0]}, method="brute"
    )
    np.testing.assert_allclose(display.mean, found["average"][0], rtol=1e-12)


def test_intervals_of_averages_are_averages_of_intervals(space):
    X, _ = table(n=151, d=3)
    display = FieldDisplay.from_estimator(space, features="age", grid_resolution=3, lipschitz=2.0)
    for i, value in enumerate(display.grid[0]):
        moved = X.assign(age=value)
        low, high = space.posterior(moved).interval(0.95)
        assert display.low[i] == pytest.approx(low.mean())
        assert display.high[i] == pytest.approx(high.mean())
        low, high = space.band(moved, 2.0, simultaneous=True)
        assert display.band[0][i] == pytest.approx(low.mean())
        assert display.band[1][i] == pytest.approx(high.mean())


def test_averages_are_over_trials_not_over_places():
    # Nine tenths of the trials are at age 0, where the probability is 0.9, the others at age 1.
    rows = pd.DataFrame({"dose": [0.0, 1.0, 0.0, 1.0], "age": [0.0, 0.0, 1.0, 1.0]})
    model = SmoothBetaClassifier(bandwidth=0.4, prior=(1e-9, 1e-9))
    model.fit_counts(rows, [8_100, 8_100, 100, 100], [9_000, 9_000, 1_000, 1_000])
    display = FieldDisplay.from_estimator(model, features="dose", grid_resolution=2)
    np.testing.assert_allclose(display.mean, 0.9 * 0.9 + 0.1 * 0.1, atol=0.01)


# Calibration -------------------------------------------------------------------------------


@given(
    st.integers(0, 2**32 - 1),
    st.integers(20, 300),
    st.integers(1, 12),
    st.sampled_from(["quantile", "uniform"]),
)
@settings(max_examples=15)
def test_calibration_is_that_of_scikit_learn(seed, n, n_bins, strategy):
    rng = np.random.default_rng(seed)
    predicted = np.round(rng.beta(2, 5, n), 3)
    y = (rng.uniform(size=n) < predicted).astype(int)
    y[:2] = 0, 1
    figure, ax = plt.subplots()
    display = CalibrationDisplay.from_predictions(
        y, predicted, n_bins=n_bins, strategy=strategy, ax=ax
    )
    plt.close(figure)
    share, mean = calibration_curve(y, predicted, n_bins=n_bins, strategy=strategy)
    np.testing.assert_allclose(display.prob_true, share)
    np.testing.assert_allclose(display.prob_pred, mean)
    for k in range(len(share)):
        held = int(display.trials[k])
        exact = stats.binomtest(round(share[k] * held), held).proportion_ci(0.95, method="exact")
        np.testing.assert_allclose([display.low[k], display.high[k]], [exact.low, exact.high])
    assert display.trials.sum() == n


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        FieldCalibratedClassifier(),
        RadiusNeighbors(2.0),
        ContinuousCorrelatedBeta(1.0),
        SmoothBetaClassifier(0.1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_any_classifier_can_be_looked_at(model):
    X, y = table(n=600)
    model.fit(X[:300], y[:300])
    display = CalibrationDisplay.from_estimator(model, X[300:], y[300:], n_bins=4)
    predicted = model.predict_proba(X[300:])[:, 1]
    share, mean = calibration_curve(y[300:] == "dead", predicted, n_bins=4, strategy="quantile")
    np.testing.assert_allclose(display.prob_true, share)
    np.testing.assert_allclose(display.prob_pred, mean)
    assert display.ax_[1].get_xlabel() == "P(dead), predicted"
    assert sum(bar.get_height() for bar in display.ax_[1].patches) <= 300


def test_one_class_against_the_others(classes):
    X, y = table(seed=3)
    y = np.where(X["dose"] < 2, "ill", y)
    display = CalibrationDisplay.from_estimator(classes, X, y, class_="ill", n_bins=3)
    predicted = classes.predict_proba(X)[:, 2]
    share, _ = calibration_curve(y == "ill", predicted, n_bins=3, strategy="quantile")
    np.testing.assert_allclose(display.prob_true, share)
    with pytest.raises(ValueError, match="class_: found None; one of the classes"):
        CalibrationDisplay.from_estimator(classes, X, y)


def test_a_model_is_calibrated_by_its_own_trials():
    X, y = table(n=2_000)
    model = SmoothBetaClassifier(0.1).fit(X, y)
    display = CalibrationDisplay.from_model(model, level=0.999)
    assert display.trials.sum() == 2_000
    assert (display.low < display.prob_pred).all()
    assert (display.prob_pred < display.high).all()
    # Windows of one place know nothing about a held-out trial, and everything about a seen one.
    blind = SmoothBetaClassifier(1e-9).fit(X, y)
    assert CalibrationDisplay.from_model(blind).prob_pred.tolist() == [0.5]
    assert len(CalibrationDisplay.from_estimator(blind, X, y).prob_pred) == 2


def test_bins_of_weighted_rows_hold_as_many_trials():
    rng = np.random.default_rng(0)
    predicted, held = rng.uniform(size=2_000), rng.integers(1, 9, 2_000)
    display = CalibrationDisplay.from_predictions(
        rng.binomial(held, predicted), predicted, weight=held, n_bins=5
    )
    np.testing.assert_allclose(display.trials, held.sum() / 5, rtol=0.01)


def test_why_a_model_cannot_be_calibrated_by_its_own_trials(guessed):
    with pytest.raises(ValueError, match="model: the model has learned from contexts"):
        CalibrationDisplay.from_model(guessed)


# Bandwidths --------------------------------------------------------------------------------


def test_scores_are_those_of_trials_left_out_by_hand(scored):
    X, y = table()
    display = BandwidthDisplay.from_estimator(scored)
    x, dead = X["dose"].to_numpy() / np.ptp(X["dose"].to_numpy()), y == "dead"
    apart = np.abs(x[:, None] - x) + np.diag(np.full(len(x), np.inf))
    for width, score in list(zip(display.widths, display.scores, strict=True))[::4]:
        others = apart <= width
        alike = (others & (dead[:, None] == dead)).sum(axis=1)
        expected = np.log((1 + alike) / (2 + others.sum(axis=1))).sum()
        assert score == pytest.approx(expected, rel=1e-9)
    assert display.scores.max() == display.scores[display.widths == scored.bandwidth_][0]


def test_the_width_in_use_is_marked_in_the_units_of_the_only_feature(scored):
    display = BandwidthDisplay.from_estimator(scored)
    assert display.ax_.get_xlabel() == "width of the windows (dose)"
    drawn = lines_of(display.ax_)
    np.testing.assert_array_equal(drawn["trials left out"][:, 0], display.widths * scored.scale_[0])
    behind = display.scores - display.scores.max()
    np.testing.assert_array_equal(drawn["trials left out"][:, 1], behind)
    np.testing.assert_array_equal(drawn["in use"], [[scored.bandwidth_ * scored.scale_[0], 0.0]])


@pytest.mark.parametrize("bandwidth", [0.1, "theory"])
def test_one_width_is_shown_as_such(bandwidth):
    model = SmoothBetaClassifier(bandwidth).fit(*table())
    display = BandwidthDisplay.from_estimator(model)
    assert len(display.widths) == 0
    assert "no others were scored" in display.ax_.get_title(loc="left")
    assert display.ax_.lines[0].get_xdata()[0] == model.bandwidth_ * model.scale_[0]


def test_classes_contexts_and_planes_are_scored_too():
    for model in (
        SmoothBetaClassifier("loo").fit(*table(d=2)),
        SmoothBetaClassifier(method="windows").fit(*table(), context=contexts.background(0.1)),
        SmoothBetaClassifier("loo").fit(table()[0], np.arange(400) % 3),
    ):
        display = BandwidthDisplay.from_estimator(model)
        assert (display.widths == model.bandwidth_).sum() == 1


def test_the_default_has_no_width_to_show(line):
    with pytest.raises(ValueError, match=r"model: method='auto' has no width.*ComponentsDisplay"):
        BandwidthDisplay.from_estimator(line)
    assert not plt.get_fignums()


# Components --------------------------------------------------------------------------------


def test_components_are_those_of_the_model(levels):
    display = ComponentsDisplay.from_estimator(levels)
    assert sum(group.weight for group in display.groups) == pytest.approx(1.0)
    by_name = {group.named(display.names): group for group in display.groups}
    days = by_name["process with effects of day"]
    assert days.weight > 0.9
    np.testing.assert_array_equal(days.least, levels.length_scales_)


def test_reaches_and_weights_are_drawn(levels):
    display = ComponentsDisplay.from_estimator(levels)
    reaches, weights = display.ax_
    assert [text.get_text() for text in reaches.get_yticklabels()] == ["day", "hour"]
    shares = np.clip(levels.length_scales_ / np.ptp(levels.bounds_, axis=1), 1e-3, 10)
    drawn = lines_of(reaches)["process with effects of day"]
    np.testing.assert_allclose(drawn[:, 0], shares)
    tall = [bar.get_width() for bar in weights.containers[0]]
    shown = [text.get_text() for text in weights.get_yticklabels()]
    for name, width in zip(shown, tall, strict=True):
        expected = [g.weight for g in display.groups if g.named(display.names) == name]
        assert [width] == pytest.approx(expected)


def test_windows_of_residuals_are_drawn_beside_the_process():
    X, y = jump()
    model = SmoothBetaClassifier().fit(X, y)
    display = ComponentsDisplay.from_estimator(model)
    table = model.weights_[model.weights_["part"] == "windows"]
    (group,) = [group for group in display.groups if group.part == "windows"]
    assert group.weight == pytest.approx(table["weight"].sum())
    drawn = lines_of(display.ax_[0])["windows"][:, 0]
    assert drawn[0] == pytest.approx(max(table["width"].min(), 1e-3), rel=1e-6)


@pytest.mark.parametrize("model", ["scored", "plane", "classes", "guessed", "line"])
def test_every_model_has_components(model, request):
    model = request.getfixturevalue(model)
    display = ComponentsDisplay.from_estimator(model)
    assert sum(group.weight for group in display.groups) == pytest.approx(1.0)
    if model.bandwidth != "auto":
        (group,) = display.groups
        np.testing.assert_array_equal(group.most, model.bandwidth_ * model.scale_)


# Windows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["euclidean", "chebyshev", "manhattan"])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_windows_hold_what_is_near(metric, d):
    X, y = table(n=500, d=d)
    model = SmoothBetaClassifier("loo", metric=metric).fit(X, y)
    x = X.iloc[[7]]
    near = WindowDisplay.from_estimator(model, x).near
    scipy_name = {"manhattan": "cityblock"}.get(metric, metric)
    apart = cdist(x / model.scale_, X / model.scale_, scipy_name)[0]
    inside = apart <= model.bandwidth_ * (1 + 1e-12)
    assert (near.trials, near.successes) == (inside.sum(), (inside & (y == "dead")).sum())
    # Points at the full reach of a window, along one feature, are on its border.
    reach = (near.high - near.low) / 2
    np.testing.assert_allclose(reach / model.scale_, model.bandwidth_, rtol=1e-12)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_near_is_a_length_scale_by_default(d):
    X, y = table(n=500, d=d)
    model = SmoothBetaClassifier().fit(X, y)
    x = X.iloc[[7]]
    near = WindowDisplay.from_estimator(model, x, class_="alive").near
    apart = cdist(x, X, "seuclidean", V=model.length_scales_**2)[0]
    inside = apart <= 1.0
    assert (near.trials, near.successes) == (inside.sum(), (inside & (y == "alive")).sum())
    np.testing.assert_allclose(near.low, x.to_numpy()[0] - model.length_scales_)
    np.testing.assert_allclose(near.high, x.to_numpy()[0] + model.length_scales_)


def test_near_is_a_ratio_where_logarithms_are_smooth():
    rng = np.random.default_rng(0)
    dose = 10.0 ** rng.uniform(-2, 2, size=(2_000, 1))
    y = rng.uniform(size=2_000) < 0.5 + 0.5 * np.sin(3 * np.log10(dose[:, 0]))
    model = SmoothBetaClassifier(scale="log").fit(dose, y)
    display = WindowDisplay.from_estimator(model, [1.0])
    (low,), (high,) = display.near.low, display.near.high
    assert low * high == pytest.approx(1.0)
    inside = (dose[:, 0] >= low) & (dose[:, 0] <= high)
    assert (display.near.trials, display.near.successes) == (inside.sum(), y[inside].sum())
    process = model.weights_[model.weights_["part"] == "process"][0]
    span = np.log(dose.max() / dose.min())
    assert np.log(high) == pytest.approx(process["length_scales"][0] * span)


@pytest.mark.parametrize("name", ["line", "levels", "scored"])
def test_densities_add_up_to_the_posterior(name, request):
    model = request.getfixturevalue(name)
    x = [4.0] if name != "levels" else [4.0, 12.0]
    display = WindowDisplay.from_estimator(model, x, level=0.9)
    posterior = model.posterior(frame(model, [x]))
    np.testing.assert_allclose(display.density, posterior.pdf(display.p[:, None])[:, 0])
    together = sum(part.weight * part.density for part in display.parts)
    # Parts of negligible weight are left out.
    np.testing.assert_allclose(display.density, together, atol=0.02 * display.density.max())
    assert (display.low, display.high) == tuple(np.ravel(posterior.interval(0.9)))
    assert np.trapezoid(display.density, display.p) == pytest.approx(1.0, abs=5e-3)


def test_a_process_and_windows_of_what_it_leaves_over_are_drawn_apart():
    model = SmoothBetaClassifier().fit(*jump())
    display = WindowDisplay.from_estimator(model, [0.37])
    weights = {part.name: part.weight for part in display.parts}
    is_window = model.weights_["part"] == "windows"
    assert weights["windows"] == pytest.approx(model.weights_["weight"][is_window].sum())
    assert 0.1 < weights["windows"] < 0.9
    drawn = lines_of(display.ax_[1])
    for part in display.parts:
        expected = part.weight * part.density
        np.testing.assert_array_equal(
            drawn[f"{part.name}, weight {part.weight:.2f}"][:, 1], expected
        )
        assert np.trapezoid(part.density, display.p) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize("name", ["line", "scored"])
def test_the_first_class_of_a_window(name, request):
    model = request.getfixturevalue(name)
    dead = WindowDisplay.from_estimator(model, [4.0])
    alive = WindowDisplay.from_estimator(model, [4.0], class_="alive")
    np.testing.assert_allclose(alive.p, 1 - dead.p[::-1], atol=1e-9)
    np.testing.assert_allclose(alive.density, dead.density[::-1], rtol=1e-6)
    assert alive.near.successes == dead.near.trials - dead.near.successes


@pytest.mark.parametrize("name", ["line", "scored"])
def test_strips_reach_as_far_as_what_is_near(name, request):
    model = request.getfixturevalue(name)
    display = WindowDisplay.from_estimator(model, [4.0])
    (strip,) = display.ax_[0].patches
    if name == "line":
        (reach,) = model.length_scales_
    else:
        reach = model.bandwidth_ * model.scale_[0]
    assert strip.get_x() == pytest.approx(4.0 - reach)
    assert strip.get_width() == pytest.approx(2 * reach)


@pytest.mark.parametrize("metric", ["euclidean", "chebyshev", "manhattan"])
def test_outlines_are_borders_of_windows(metric):
    X, y = table(d=2)
    model = SmoothBetaClassifier("loo", metric=metric).fit(X, y)
    display = WindowDisplay.from_estimator(model, [4.0, 6.0])
    (outline,) = [each.get_xydata() for each in display.ax_[0].lines[1:-1]]
    order = {"euclidean": 2, "chebyshev": np.inf, "manhattan": 1}[metric]
    steps = (outline - [4.0, 6.0]) / model.scale_
    np.testing.assert_allclose(np.linalg.norm(steps, order, axis=1), model.bandwidth_)


def test_the_outline_of_length_scales_is_an_ellipse():
    model = SmoothBetaClassifier(metric="chebyshev").fit(*table(d=2))
    display = WindowDisplay.from_estimator(model, [4.0, 6.0])
    (outline,) = [each.get_xydata() for each in display.ax_[0].lines[1:-1]]
    steps = (outline - [4.0, 6.0]) / model.length_scales_
    np.testing.assert_allclose(np.linalg.norm(steps, axis=1), 1.0)


def test_windows_after_contexts_and_of_classes(guessed, classes):
    display = WindowDisplay.from_estimator(guessed, [4.0])
    assert display.near.successes is None
    posterior = guessed.posterior(frame(guessed, [[4.0]]))
    np.testing.assert_allclose(display.density, posterior.pdf(display.p[:, None])[:, 0])
    display = WindowDisplay.from_estimator(classes, [4.0], class_="ill")
    marginal = classes.posterior(frame(classes, [[4.0]])).marginal(2)
    np.testing.assert_allclose(display.density, marginal.pdf(display.p))


def test_the_default_after_contexts_and_of_classes():
    X, y = table()
    guessed = SmoothBetaClassifier().fit(X, y, context=contexts.background(0.1))
    display = WindowDisplay.from_estimator(guessed, [4.0])
    posterior = guessed.posterior(frame(guessed, [[4.0]]))
    np.testing.assert_allclose(display.density, posterior.pdf(display.p[:, None])[:, 0])
    inside = np.abs(X["dose"] - 4.0) <= guessed.length_scales_[0]
    # Outcomes as observed.
    assert display.near.successes == (inside & (y == "dead")).sum()
    classes = SmoothBetaClassifier().fit(X, np.where(X["dose"] < 2, "ill", y))
    display = WindowDisplay.from_estimator(classes, [4.0], class_="ill")
    marginal = classes.posterior(frame(classes, [[4.0]])).marginal(2)
    np.testing.assert_allclose(display.density, marginal.pdf(display.p))


def test_a_constant_feature_and_a_point_outside():
    X = np.stack([np.linspace(0, 1, 50), np.full(50, 3.0)], axis=1)
    model = SmoothBetaClassifier(0.2).fit(X, np.arange(50) % 2)
    display = WindowDisplay.from_estimator(model, [7.0, 3.0])
    assert display.near.trials == 0.0
    display.figure_.canvas.draw()
    process = SmoothBetaClassifier().fit(X, X[:, 0] > 0.5)
    near = WindowDisplay.from_estimator(process, [0.5, 3.0]).near
    assert near.trials == (np.abs(X[:, 0] - 0.5) <= process.length_scales_[0]).sum()
    assert (near.low[1], near.high[1]) == (-np.inf, np.inf)
    assert ComponentsDisplay.from_estimator(process).groups[0].features == (0,)
    assert FieldDisplay.from_estimator(model, grid_resolution=5).features == ("x0",)
    flat = FieldDisplay.from_estimator(model, features=[0, 1], grid_resolution=5)
    flat.figure_.canvas.draw()
    np.testing.assert_array_equal(flat.mean, np.tile(flat.mean[0], (5, 1)))


# Axes --------------------------------------------------------------------------------------


def displays(line, plane, scored, levels):
    return {
        "curve": lambda ax=None: FieldDisplay.from_estimator(line, ax=ax),
        "map": lambda ax=None: FieldDisplay.from_estimator(plane, grid_resolution=9, ax=ax),
        "calibration": lambda ax=None: CalibrationDisplay.from_model(plane, ax=ax),
        "bandwidth": lambda ax=None: BandwidthDisplay.from_estimator(scored, ax=ax),
        "components": lambda ax=None: ComponentsDisplay.from_estimator(levels, ax=ax),
        "strips": lambda ax=None: WindowDisplay.from_estimator(line, [4.0], ax=ax),
        "outlines": lambda ax=None: WindowDisplay.from_estimator(plane, [4.0, 5.0], ax=ax),
    }


NAMES = ["curve", "map", "calibration", "bandwidth", "components", "strips", "outlines"]


@pytest.mark.parametrize("name", NAMES)
def test_axes_given_are_drawn_on_and_no_figure_is_made(name, line, plane, scored, levels):
    make = displays(line, plane, scored, levels)[name]
    figure, (first, second, third) = plt.subplots(1, 3)
    display = make(first)
    assert display.ax_ is first
    assert display.figure_ is figure
    if name not in ("curve", "bandwidth"):
        display = make([second, third])
        assert list(display.ax_) == [second, third]
        assert second.has_data()
        assert third.has_data()
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_display_can_be_drawn_again(name, line, plane, scored, levels):
    display = displays(line, plane, scored, levels)[name]()
    before, old = np.ravel(display.ax_), display.figure_
    assert display.plot() is display
    after = np.ravel(display.ax_)
    assert display.figure_ is not old
    for a, b in zip(before, after, strict=True):
        assert a is not b
        for one, other in zip(a.lines, b.lines, strict=True):
            np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())
        assert a.get_xlabel() == b.get_xlabel()
        assert a.get_xlim() == b.get_xlim()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_written_overlaps(name, line, plane, scored, levels):
    display = displays(line, plane, scored, levels)[name]()
    display.figure_.canvas.draw()
    for ax in np.ravel(display.ax_):
        texts = [ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels(), *ax.get_yticklabels()]
        if ax.get_legend() is not None:
            texts += ax.get_legend().get_texts()
        boxes = [t.get_window_extent() for t in texts if t.get_text() and t.get_visible()]
        boxes = [box for box in boxes if box.width > 0]
        assert len(boxes) > 1
        for a, b in combinations(boxes, 2):
            assert not a.shrunk(0.9, 0.9).overlaps(b.shrunk(0.9, 0.9))
        if ax.get_legend() is not None:  # above the data, and within the figure
            legend = ax.get_legend().get_window_extent()
            assert legend.y0 >= ax.get_window_extent().y1 - 1
            assert legend.x1 <= display.figure_.bbox.x1 + 1
            assert legend.y1 <= display.figure_.bbox.y1 + 1


@pytest.mark.parametrize(
    ("ax", "found"), [("left", "str"), ([], "0 of them"), ([1, 2, 3], "3 of them")]
)
def test_what_is_no_axes_is_refused(ax, found, line):
    with pytest.raises(ValueError, match=f"ax: found {found}; one Axes is needed"):
        FieldDisplay.from_estimator(line, ax=ax)
    with pytest.raises(ValueError, match=f"ax: found {found}; one Axes or 2 are needed"):
        ComponentsDisplay.from_estimator(line, ax=ax)


# Names -------------------------------------------------------------------------------------


@given(st.text(max_size=60))
def test_no_name_is_taken_for_a_formula(name):
    text = style.shown(name)
    assert not is_math_text(text)
    plain = " ".join(name.split())
    assert text.replace(r"\$", "$") == (plain if len(plain) <= 40 else plain[:39] + "…")


@pytest.mark.parametrize(
    "name", ["$x_1$_", "$\\frac{$", "\\$ _ ^", "_hidden", "%d {x} \\n", "$" * 99]
)
def test_names_are_shown_as_they_are(name):
    rows = pd.DataFrame({name: [0.0, 1.0, 2.0], "b": [0.0, 1.0, 0.0]})
    model = SmoothBetaClassifier(1.0).fit(rows, [f"{name}!", "z", f"{name}!"])
    figure, axes = plt.subplots(2, 2, figsize=(4, 4))
    FieldDisplay.from_estimator(model, ax=axes[0], grid_resolution=3, class_=f"{name}!")
    FieldDisplay.from_estimator(model, features="b", at={name: 1.0}, ax=axes[1, 0])
    WindowDisplay.from_estimator(model, [0.0, 1.0], ax=axes[1, 1])
    figure.canvas.draw()
    labels = axes[0, 0].get_xlabel(), axes[1, 0].get_xlabel(), axes[0, 0].get_title(loc="left")
    assert not any(is_math_text(text) for text in labels)
    shown = [text.replace(r"\$", "$") for text in labels]
    cut, cut_class = (each if len(each) <= 40 else each[:39] + "…" for each in (name, f"{name}!"))
    assert shown == [cut, f"b\nat {cut} = 1", f"P({cut_class})"]


def test_without_names_features_are_numbered():
    X, y = table(d=2)
    model = SmoothBetaClassifier(0.3).fit(X.to_numpy(), y == "dead")
    display = FieldDisplay.from_estimator(model, grid_resolution=3)
    assert display.ax_[0].get_xlabel() == "x0"
    assert display.ax_[0].get_title(loc="left") == "P(success)"


# Colours -----------------------------------------------------------------------------------

# Machado, Oliveira and Fernandes (2009), severity 1, for linear RGB.
SIGHT = {
    "all colours": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}


MAPS = [style.MEAN_MAP, style.UNCERTAINTY_MAP]


def lab(rgb, sight):
    """Return CIELAB (D65) of sRGB colours as seen with this kind of colour vision."""
    rgb = np.asarray(rgb)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(linear @ SIGHT[sight].T, 0, 1)
    to_xyz = [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
    xyz = linear @ np.transpose(to_xyz) / [0.95047, 1.0, 1.08883]
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.stack(
        [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], axis=1
    )


def test_the_conversion_to_lab_is_the_standard_one():
    found = lab([[1, 1, 1], [1, 0, 0], [0, 0, 1]], "all colours")
    expected = [[100, 0, 0], [53.24, 80.09, 67.20], [32.30, 79.19, -107.86]]
    np.testing.assert_allclose(found, expected, atol=0.03)


@pytest.mark.parametrize("sight", SIGHT)
def test_lines_can_be_told_apart(sight):
    colours = lab([to_rgb(each) for each in style.LINES], sight)
    apart = [np.linalg.norm(a - b) for a, b in combinations(colours, 2)]
    assert min(apart) > 20  # 2.3 is a just noticeable difference
    white = lab([[1, 1, 1]], sight)
    assert (np.linalg.norm(colours - white, axis=1) > 30).all()


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("name", MAPS)
def test_maps_grow_steadily_lighter_or_darker(name, sight):
    lightness = lab(mpl.colormaps[name](np.linspace(0, 1, 64))[:, :3], sight)[:, 0]
    steps = np.diff(lightness)
    assert (steps > 0).all() or (steps < 0).all()
    assert np.ptp(lightness) > 60


def test_a_map_is_palest_where_the_field_is_least_sure():
    narrow, wide = lab(mpl.colormaps[style.UNCERTAINTY_MAP]([0.0, 1.0])[:, :3], "all colours")[:, 0]
    assert narrow < wide


# Without matplotlib ------------------------------------------------------------------------


@pytest.mark.long
def test_matplotlib_is_needed_only_to_draw():
    code = """
import sys
from betafield import SmoothBetaClassifier
from betafield.plots import FieldDisplay
print("matplotlib" in sys.modules)
sys.modules["matplotlib"] = None
model = SmoothBetaClassifier(1.0).fit([[0.0], [1.0]], [0, 1])
try:
    FieldDisplay.from_estimator(model)
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported, error = done.stdout.splitlines()
    assert imported == "False"
    assert error == "matplotlib is needed for this: pip install '.[plot]' in a checkout"


@pytest.mark.parametrize(
    "context", [contexts.pooled(5), [0.0, 1.0, 0.0], [1.0, 0.2, 0.9, 0.4]], ids=str
)
def test_a_band_under_any_context_holds_all_that_the_band_does(context):
    """It is an average of values under a context, not the value of an average.

    In trials at two ages, nobody succeeds at one and everybody at the other: half of all.
    """
    X = [[dose, age] for dose in (0.0, 1.0) for age in (0.0, 1.0)]
    model = SmoothBetaClassifier(0.1).fit_counts(X, [0, 5000] * 2, [5000] * 4)
    display = FieldDisplay.from_estimator(
        model, features=0, lipschitz=1.0, under=context, grid_resolution=2
    )
    low, high = model.band(X[:2], lipschitz=1.0, simultaneous=True)
    inside = np.linspace(low, high, 1001)
    held = contexts.probability(np.asarray(context), inside)
    truth = contexts.probability(np.asarray(context), np.array([0.0, 1.0])).mean()
    assert np.all((display.band[0] <= truth) & (truth <= display.band[1]))
    np.testing.assert_allclose(display.band[0], held.min(axis=0).mean(), atol=1e-6)
    np.testing.assert_allclose(display.band[1], held.max(axis=0).mean(), atol=1e-6)


# Bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"features": "weight"}, "features: found 'weight'; the features are dose, age"),
        ({"features": ["dose", "dose"]}, r"features: found \['dose', 'dose'\]"),
        ({"features": []}, r"features: found \[\]"),
        ({"features": 2}, "features: found 2; a name or a number from 0 to 1"),
        ({"features": "dose", "at": {"dose": 1.0}}, "at: found 'dose', which is an axis"),
        ({"features": "dose", "at": {"age": "old"}}, "at, feature 'age': found 'old'"),
        ({"features": "dose", "at": {"age": np.nan}}, "at, feature 'age': found NaN"),
        ({"level": 1.0}, "level: found 1"),
        ({"lipschitz": -1.0}, "lipschitz: found -1.0; a positive number"),
        ({"grid_resolution": 1}, "grid_resolution: found 1; a whole number from 2 to"),
        ({"class_": "ill"}, "class_: found 'ill'; the classes are"),
        ({"y": ["dead"]}, "X: found None where y was given"),
        ({"under": [[0.0, 1.0]] * 2}, r"under: found shape \(2, 2\)"),
    ],
    ids=str,
)
def test_fields_say_what_is_wrong(arguments, message, plane):
    with pytest.raises(ValueError, match=message):
        FieldDisplay.from_estimator(plane, **arguments)
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": "best"}, "strategy: found 'best'"),
        ({"n_bins": 0}, "n_bins: found 0"),
        ({"level": 2.0}, "level: found 2.0"),
        ({"y_prob": [0.5, 1.5]}, "y_prob row 1: found 1.5"),
        ({"y_prob": [0.5, np.nan]}, "y_prob row 1: found NaN"),
        ({"y_prob": []}, r"y_prob: found shape \(0,\)"),
        ({"successes": [1]}, r"successes: found shape \(1,\)"),
        ({"successes": [1, 2]}, "successes row 1: found 2.0 of 1.0 trials"),
        ({"weight": [1, 0]}, "weight row 1: found 0.0; a positive number"),
    ],
    ids=str,
)
def test_calibration_says_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        CalibrationDisplay.from_predictions(
            **{"successes": [0, 1], "y_prob": [0.2, 0.7], **arguments}
        )
    assert not plt.get_fignums()


def test_other_estimators_are_refused(line):
    X, y = table()
    other = LogisticRegression().fit(X, y)
    for make in (
        FieldDisplay.from_estimator,
        BandwidthDisplay.from_estimator,
        ComponentsDisplay.from_estimator,
        CalibrationDisplay.from_model,
    ):
        with pytest.raises(TypeError, match="found LogisticRegression; a SmoothBetaClassifier"):
            make(other)
    with pytest.raises(TypeError, match="found LogisticRegression"):
        WindowDisplay.from_estimator(other, [1.0])
    with pytest.raises(ValueError, match="not fitted"):
        FieldDisplay.from_estimator(SmoothBetaClassifier())
    with pytest.raises(ValueError, match="y row 0: found 'unknown'"):
        CalibrationDisplay.from_estimator(line, X, np.full(len(X), "unknown"))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([1.0, 2.0], r"x: found shape \(2,\); one finite number per feature is needed, 1 in all"),
        ([np.inf], "x row 0: found inf; one finite number"),
        (pd.DataFrame({"dose": [1.0, 2.0]}), "x: found 2 points; one is needed"),
    ],
    ids=["two numbers", "infinite", "two rows"],
)
def test_windows_say_what_is_wrong(x, message, line):
    with pytest.raises(ValueError, match=message):
        WindowDisplay.from_estimator(line, x)


# Exceedance --------------------------------------------------------------------------------


def exceeding(d=2, n=600):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, d))
    return SmoothBetaClassifier().fit(X, rng.uniform(size=n) < X[:, 0])


def test_chances_are_those_of_the_posterior():
    model = exceeding()
    display = ExceedanceDisplay.from_estimator(model, 0.5, grid_resolution=7, show_places=True)
    x, y = display.grid
    points = np.column_stack([each.ravel() for each in np.meshgrid(x, y)])
    expected = model.posterior(points).prob_above(0.5).reshape(7, 7)
    np.testing.assert_allclose(display.chance, expected, rtol=1e-12)
    assert display.ax_.get_title(loc="left") == "chance that P(success) > 0.5"
    failure = ExceedanceDisplay.from_estimator(model, 0.5, grid_resolution=7, class_=False)
    np.testing.assert_allclose(failure.chance, 1.0 - display.chance, atol=1e-12)
    moved = ExceedanceDisplay.from_estimator(
        model, 0.75, grid_resolution=7, under=contexts.guess_lapse(0.5)
    )
    np.testing.assert_allclose(moved.chance, display.chance, atol=1e-9)


def test_a_chance_over_one_feature_of_several_is_that_of_the_average():
    model = exceeding()
    # Averages know rougher companions, draws do not.
    remember(model.field_.smooth[0], "companions", {})
    display = ExceedanceDisplay.from_estimator(model, 0.6, features=1, grid_resolution=3)
    assert display.chance.shape == (3,)
    assert display.ax_.get_ylabel() == "chance that P(success) > 0.6"
    drawn = Question(model, features=1, resolution=3).points.reshape(3, -1, 2)
    for chance, points in zip(display.chance, drawn, strict=True):
        average = model.draws(points, random_state=0).mean(axis=1)
        assert chance == pytest.approx((average > 0.6).mean(), abs=0.08)


def test_what_has_no_average_asks_for_a_place():
    X = np.random.default_rng(0).uniform(size=(90, 2))
    model = SmoothBetaClassifier(bandwidth=0.3).fit(X, np.arange(90) % 3)
    with pytest.raises(ValueError, match="at: found None"):
        ExceedanceDisplay.from_estimator(model, 0.5, features=0)
    fixed = ExceedanceDisplay.from_estimator(model, 0.5, features=0, at={1: 0.5}, class_=2)
    assert fixed.event == "P(2)"
    with pytest.raises(ValueError, match=r"above: found 1.5"):
        ExceedanceDisplay.from_estimator(model, 1.5)
