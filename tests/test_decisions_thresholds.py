"""Trials placed by the expected variance of a threshold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from betafield import SmoothBetaClassifier, contexts
from betafield.answers.lines import Line, along
from betafield.answers.rising import rising
from betafield.decisions import Experiment, LevelSet
from betafield.decisions.experiment.thresholds import expected_gain, levels, remaining, usual
from betafield.process.noise import Seed

GUESSED = contexts.guess_lapse(1 / 2, 0.02)
LAPSING = contexts.guess_lapse(1 / 2, contexts.Unknown(2, 98))


def chance(x):
    """Return a probability of success that is 0.75 at 0.412, with half of the answers guessed."""
    return 0.5 + 0.48 * (1 - np.exp(-((x / 0.45) ** 3.5)))


def told(experiment, n, seed, probability, context=None):
    """Make the trials that are asked for."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        trial = experiment.ask()
        experiment.tell(trial, bool(rng.random() < probability(trial["x"])), context)
    return experiment


@given(seed=st.integers(0, 1000), under=st.sampled_from([None, (0.5, 0.98), (0.9, 0.1)]))
def test_what_remains_is_the_mean_variance_after_either_outcome(seed, under):
    rng = np.random.default_rng(seed)
    curves, t = rng.uniform(size=(40, 5)), rng.normal(3.0, 2.0, size=40)
    low, high = (0.0, 1.0) if under is None else under
    q = low + (high - low) * curves
    expected = []
    for column in q.T:
        variances = [
            np.average((t - np.average(t, weights=w)) ** 2, weights=w) for w in (column, 1 - column)
        ]
        expected.append(np.average(variances, weights=[column.mean(), 1 - column.mean()]))
    np.testing.assert_allclose(remaining(curves, t, under), expected, rtol=1e-9)
    assert (remaining(curves, t, under) <= t.var() * (1 + 1e-12)).all()


@given(aim=st.floats(0.001, 0.999))
def test_levels_beside_are_possible_and_on_either_side(aim):
    (own, whole), (low, half), (high, other) = levels(aim)
    assert own == aim
    assert 0.0 < low < aim < high < 1.0
    assert half == other == whole / 2


@pytest.mark.parametrize("p", [0.2, 0.5])
def test_gains_are_those_of_all_levels(p):
    """Against averages over draws of the same field, each with the weight of its outcome."""
    X = np.linspace(0.0, 1.0, 40)[:, None]
    field = SmoothBetaClassifier(bounds=[(0, 1)], scale="range").fit(X, X[:, 0] ** 2 > 0.3).field_
    field = SmoothBetaClassifier.of(field).partial_fit(X[::3], X[::3, 0] < 0.6).field_
    found = expected_gain(field, LevelSet(p), X, np.random.default_rng(0), 1.0)
    line = Line(0, along(field, 0, 65), np.zeros((1, 1)))
    drawn = rising(field, line, 1, 900, Seed.of(np.random.default_rng(0)))
    expected = np.zeros(65)
    for level, weight in levels(p):
        t, q = drawn.crossings(level).at, np.clip(drawn.curves, 1e-9, 1 - 1e-9)
        for w in (q, 1.0 - q):
            mean = (w * t[:, None]).sum(axis=0) / w.sum(axis=0)
            variance = (w * (t[:, None] - mean) ** 2).sum(axis=0) / w.sum(axis=0)
            expected += weight * w.mean(axis=0) * (t.var() - variance)
    np.testing.assert_allclose(found, np.interp(X[:, 0], line.grid, expected), atol=1e-9)


def test_the_usual_strategy_is_that_of_the_goal_the_space_and_the_model():
    def used(goal, space=("x",), model=None):
        experiment = Experiment(dict.fromkeys(space, (0, 1)), goal, model, random_state=0)
        told(experiment, 10, 0, lambda x: x) if space == ("x",) else None
        return experiment.ask().why

    assert "the threshold's variance" in used(LevelSet(0.5))
    assert "P(π > 0.5)" in used(LevelSet(0.5), model=SmoothBetaClassifier(0.2))
    # That level is reached nowhere, or at two probabilities.
    assert "P(π > 0.3)" in used(LevelSet(0.3, under=[0.5, 1.0]))
    assert "P(π > 0.45)" in used(LevelSet(0.45, under=[0.0, 1.0, 0.0]))


@pytest.mark.long
def test_thresholds_of_guessed_answers_are_found():
    errors, held = [], []
    for seed in range(3):
        goal = LevelSet(0.75, under=GUESSED, anchored=True)
        experiment = Experiment({"x": (0, 1)}, goal, random_state=seed)
        known = told(experiment, 60, seed, chance, GUESSED).status()["known"]
        low, high = known["interval"]
        errors.append(abs(known["threshold"] - 0.412))
        held.append(low <= 0.412 <= high)
        assert high - low < 0.5
        assert 0.0 <= known["not_reached"] <= 1.0
    assert np.mean(errors) < 0.08
    assert np.mean(held) > 0.5


LONG = pytest.param(LAPSING, marks=pytest.mark.long)


@pytest.mark.parametrize("context", [None, GUESSED, LONG])
def test_the_next_trial_is_taken_to_be_distorted_as_those_so_far(context):
    goal = LevelSet(0.5, anchored=True)
    told_ones = told(Experiment({"x": (0, 1)}, goal, random_state=0), 20, 0, chance, context)
    field = told_ones.model.field_
    low, high = usual(field, None)
    if context is None:
        assert (low, high) == (0.0, 1.0)
    else:
        assert low == pytest.approx(0.5)
        assert high == pytest.approx(0.98, abs=1e-12 if context is GUESSED else 0.015)
    # If half of the answers are guesses, the most informative trials are higher on the curve.
    rows = np.linspace(0.0, 1.0, 65)[:, None]
    best = rows[np.argmax(expected_gain(field, goal, rows, np.random.default_rng(0), 1.0)), 0]
    level = field.mean(np.array([[best]]))[0]
    assert level > 0.5 if context is not None else level < 0.95


def test_trials_of_several_contexts_count_by_their_number():
    rng = np.random.default_rng(0)
    X, y = rng.random((40, 1)), rng.random(40) < 0.7
    mixed = np.where(np.arange(40)[:, None] < 10, [0.0, 1.0], [0.5, 0.98])
    field = SmoothBetaClassifier().fit(X, y, context=mixed).field_
    np.testing.assert_allclose(usual(field, None), mixed.mean(axis=0), rtol=1e-12)


def test_trials_are_made_near_the_threshold():
    experiment = Experiment({"x": (0, 10)}, LevelSet(0.5), random_state=0)
    told(experiment, 40, 0, lambda x: expit(3 * (x - 7)))
    late = [trial["x"] for trial in experiment.trials()[-20:]]
    assert np.mean(np.abs(np.array(late) - 7) < 1.5) > 0.7


def test_asks_go_on_from_a_file_as_they_would_have(tmp_path):
    goal = LevelSet(0.75, under=GUESSED, anchored=True)
    experiment = told(Experiment({"x": (0, 1)}, goal, random_state=3), 15, 1, chance, GUESSED)
    experiment.save(tmp_path / "e.beta")
    again = Experiment.load(tmp_path / "e.beta")
    assert again.ask() == experiment.ask()
    assert again.status() == experiment.status()


def test_what_is_refused():
    with pytest.raises((TypeError, ValueError), match=r"^anchored: found 3"):
        LevelSet(0.5, anchored=3)
    with pytest.raises(ValueError, match=r"^strategy: found 'threshold'; for LevelSet"):
        Experiment({"x": (0, 1), "y": (0, 1)}, LevelSet(0.5), strategy="threshold")
