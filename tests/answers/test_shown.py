"""Thresholds in plots and in the report: the drawings agree with the model."""

import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from betafield import SmoothBetaClassifier, contexts, report
from betafield.plots import FieldDisplay, ThresholdDisplay

mpl.use("Agg")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 4.0, size=(400, 1))
    return SmoothBetaClassifier(bounds=[(0.0, 4.0)]).fit(x, rng.uniform(size=400) < x[:, 0] / 4.0)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def _bars(axes):
    """Return the horizontal lines drawn, as (low, high, height)."""
    lines = [line.get_xydata() for line in axes.get_lines() if len(line.get_xydata()) == 2]
    return [(one[0, 0], one[1, 0], one[0, 1]) for one in lines if one[0, 1] == one[1, 1]]


def test_the_display_holds_and_draws_the_threshold(model):
    display = ThresholdDisplay.from_estimator(model, 0.7, size=300, random_state=1, level=0.9)
    expected = model.threshold(0.7, size=300, random_state=1)
    assert np.array_equal(display.threshold.draws, expected.draws)
    assert _bars(display.ax_[0]) == [(*expected.interval(0.9), 0.7)]
    (stairs,) = display.ax_[1].patches
    assert stairs.get_data().values.sum() == pytest.approx(1.0)
    assert display.mean == pytest.approx(model.predict_proba(display.grid[:, None])[:, 1])
    again = display.plot(ax=plt.subplots()[1])
    assert _bars(again.ax_) == [(*expected.interval(0.9), 0.7)]


def test_under_a_context_the_curve_and_the_level_are_of_success(model):
    task = contexts.guess_lapse(1 / 2)
    display = ThresholdDisplay.from_estimator(model, 0.75, under=task, size=200, random_state=0)
    assert display.mean.min() >= 0.5
    assert display.threshold.level == 0.75


def test_a_field_has_a_bar_if_it_is_given_one(model):
    found = model.threshold(0.5, size=200, random_state=0)
    display = FieldDisplay.from_estimator(model, threshold=found, level=0.8)
    assert _bars(display.ax_) == [(*found.interval(0.8), 0.5)]
    assert _bars(FieldDisplay.from_estimator(model).ax_) == []
    with pytest.raises(TypeError, match="threshold: found float"):
        FieldDisplay.from_estimator(model, threshold=0.5)


def test_a_threshold_along_another_feature_is_refused(model):
    rng = np.random.default_rng(1)
    x = rng.uniform(size=(200, 2))
    plane = SmoothBetaClassifier().fit(x, rng.uniform(size=200) < x[:, 0])
    found = plane.threshold(0.5, 1, at=[0.5, 0.5], size=50, random_state=0)
    with pytest.raises(ValueError, match="threshold: found 'x1'; the curve is along x0"):
        FieldDisplay.from_estimator(plane, features=0, threshold=found)
    assert model.n_features_in_ == 1


def test_the_report_tells_where_it_is_one_half(model, tmp_path):
    report.write(model, tmp_path / "half.html")
    page = (tmp_path / "half.html").read_text(encoding="utf-8")
    found = model.threshold(0.5, size=1_000, random_state=0)
    assert "rises to 50.0 %" in page
    assert f"= {found.median():.3f}" in page
    assert "interval of the threshold" in page


def test_the_report_is_silent_if_one_half_is_nowhere(tmp_path):
    rng = np.random.default_rng(2)
    x = rng.uniform(size=(300, 1))
    rare = SmoothBetaClassifier().fit(x, rng.uniform(size=300) < 0.05 + 0.05 * x[:, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report.write(rare, tmp_path / "rare.html")
    assert "interval of the threshold" not in (tmp_path / "rare.html").read_text(encoding="utf-8")
