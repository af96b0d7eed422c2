"""Spaces with decades, whole numbers and levels."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betafield.decisions import Everywhere, Experiment, Integer, LevelSet, Log
from betafield.decisions.space import Space

MIXED = {"eye": ["left", "right"], "contrast": Log(0.001, 1), "items": Integer(1, 10)}


def test_candidates_are_spread_over_decades_whole_numbers_and_levels():
    rows = Space.of(MIXED).candidates(0)
    decade = np.floor(np.log10(rows[:, 1]) + 1e-12).clip(-3, -1)
    for values, n in ((rows[:, 0], 2), (decade, 3), (rows[:, 2], 10)):
        each, counts = np.unique(values, return_counts=True)
        assert len(each) == n
        assert np.allclose(counts / len(rows), 1 / n, atol=0.02)


@given(st.floats(0.001, 1), st.integers(1, 10), st.sampled_from(["left", "right"]))
def test_points_and_rows_undo_each_other(contrast, items, eye):
    space, point = Space.of(MIXED), {"eye": eye, "contrast": contrast, "items": items}
    row = space.row("trial", point)
    assert space.point(row) == point
    again = space.rows(space.shares(row[None]))[0]
    assert np.allclose(again, row, rtol=1e-12)
    assert space.point(again)["items"] == items


def test_an_experiment_asks_tells_saves_and_goes_on(tmp_path):
    rng = np.random.default_rng(0)
    experiment = Experiment(MIXED, Everywhere(), random_state=1)
    for _ in range(25):
        trial = experiment.ask()
        assert trial["eye"] in ("left", "right")
        assert isinstance(trial["items"], int)
        assert 0.001 <= trial["contrast"] <= 1
        json.dumps(dict(trial))
        hit = rng.random() < 1 / (1 + 0.03 / trial["contrast"])
        experiment.tell(trial, hit)
    experiment.tell({"eye": "left", "contrast": 0.5, "items": 3}, True)
    experiment.save(tmp_path / "experiment.beta")
    again = Experiment.load(tmp_path / "experiment.beta")
    assert dict(again.ask()) == dict(experiment.ask())
    told = again.model.posterior([[0, 0.002, 5], [0, 0.9, 5]]).mean()
    assert told[0] < told[1]


@pytest.mark.long
def test_a_threshold_is_found_over_three_decades():
    rng = np.random.default_rng(2)
    experiment = Experiment({"contrast": Log(0.001, 1)}, LevelSet(0.5), random_state=2)
    for _ in range(120):
        trial = experiment.ask()
        experiment.tell(trial, rng.random() < 1 / (1 + (0.02 / trial["contrast"]) ** 3))
    at = 10 ** np.linspace(-3, 0, 200)[:, None]
    mean = experiment.model.posterior(at).mean()
    assert 0.013 < at[np.argmin(np.abs(mean - 0.5)), 0] < 0.03


@pytest.mark.parametrize(
    ("side", "told"),
    [
        (Log(0, 1), "space, feature 'x': found .*positive"),
        (Log(1, 0.1), "space, feature 'x': found .*low must be below high"),
        (Integer(1.5, 3), "space, feature 'x': found 1.5"),
        (Integer(3, 3), "space, feature 'x': found .*low must be below high"),
        (["left"], "space, feature 'x': found '1 levels'"),
        (["left", "left"], "space, feature 'x': found .*once"),
        (["left", None], "space, feature 'x': found None"),
    ],
)
def test_sides_that_are_none_are_refused(side, told):
    with pytest.raises((ValueError, TypeError), match=told):
        Experiment({"x": side}, Everywhere())


def test_values_that_a_side_cannot_have_are_refused():
    space = Space.of(MIXED)
    for name, value in (("eye", "middle"), ("contrast", 2.0), ("items", 2.5), ("items", 11)):
        with pytest.raises((ValueError, TypeError), match=f"trial, feature '{name}': found"):
            space.some("trial", {name: value})
