"""Experiments: asking, telling, answers and refusals."""

import functools
import json
import tracemalloc
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from betafield import SmoothBetaClassifier, contexts, persistence
from betafield.decisions import (
    Compare,
    Everywhere,
    Experiment,
    LevelSet,
    Maximize,
    Minimize,
    Trial,
)
from betafield.decisions.experiment import acquisition, goals
from betafield.decisions.experiment.experiment import parts
from betafield.decisions.experiment.learner import Learner
from betafield.decisions.experiment.neighbours import Neighbours
from betafield.decisions.experiment.standing import StandingPoints
from betafield.decisions.space import Space

DATA = Path(__file__).parent / "data"
LINE = {"x": (0.0, 1.0)}
PLANE = {"x": (0.0, 2.0), "y": (-1.0, 1.0)}
POINTS = [{"x": 0.5, "y": 0.0}, {"x": 1.0, "y": 0.0}, {"x": 1.5, "y": 0.5}]
QUICK = SmoothBetaClassifier(bandwidth=0.2)
GOALS = {
    "everywhere": Everywhere(),
    "level": LevelSet(0.6),
    "maximize": Maximize(),
    "minimize": Minimize(),
    "compare": Compare(POINTS),
}
PAIRS = [
    pytest.param(GOALS[name], strategy, id=f"{name}-{strategy}")
    for name in GOALS
    for strategy in GOALS[name].possible(Space.of(PLANE))
]


def field(point):
    """Return a probability that rises with x and is highest at y = 0."""
    return 0.1 + 0.4 * point["x"] * (1.0 - 0.5 * point.get("y", 0.0) ** 2)


def played(experiment, n, seed=1, f=field, context=None, fixed=None):
    """Ask and tell n times."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        trial = experiment.ask(fixed=fixed)
        q = f(trial) if context is None else context[0] + (context[1] - context[0]) * f(trial)
        experiment.tell(trial, success=rng.uniform() < q, context=context)
    return experiment


def made(goal=None, strategy=None, space=PLANE, model=QUICK, seed=0, **options):
    return Experiment(space, goal or Everywhere(), model, seed, strategy, **options)


# Asking -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("goal", "strategy"), PAIRS)
def test_asks_are_in_the_space_and_say_why(goal, strategy):
    experiment = played(made(goal, strategy), 20)
    trial = experiment.ask()
    assert set(trial) == {"x", "y"}
    assert 0 <= trial["x"] <= 2
    assert -1 <= trial["y"] <= 1
    assert trial.why
    if strategy not in goals.PLAIN:
        value = trial.why.split(" is ")[1].split(" here")[0]
        assert np.isfinite(float(value))


@pytest.mark.parametrize(("goal", "strategy"), PAIRS)
def test_same_seed_and_history_ask_the_same(goal, strategy):
    first, second = (played(made(goal, strategy, seed=5), 18) for _ in range(2))
    assert [dict(t) for t in first.ask(3)] == [dict(t) for t in second.ask(3)]


@pytest.mark.sampled
@pytest.mark.parametrize(("goal", "strategy"), PAIRS)
def test_saving_in_the_middle_changes_nothing(goal, strategy, tmp_path):
    experiment = played(made(goal, strategy), 15)
    waiting = experiment.ask(2)
    experiment.save(tmp_path / "e.beta")
    again = Experiment.load(tmp_path / "e.beta")
    assert again.trials() == experiment.trials()
    assert again.status() == experiment.status()
    for each in (experiment, again):
        each.tell(waiting[1], success=True)
        each.abandon(waiting[0])
        played(each, 5, seed=2)
    assert again.trials() == experiment.trials()
    assert again.status() == experiment.status()


@pytest.mark.parametrize("goal", [LevelSet(0.5), Everywhere()])
def test_what_is_asked_depends_on_the_trials_alone(goal, tmp_path):
    """Queries in between, and saving and loading, change nothing, not even the last bit."""
    model = SmoothBetaClassifier(bounds=[(0, 1)])
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(125, 1))
    model.fit(X, rng.uniform(size=125) < X[:, 0])
    quiet, curious = (made(goal, space=LINE, model=model) for _ in range(2))
    for i in range(16):  # rounds of two; after 12 trials the length scales are estimated again
        played(quiet, 1, seed=i, f=lambda t: t["x"])
        played(curious, 1, seed=i, f=lambda t: t["x"])
        curious.model.posterior([[0.5]])
        if i % 5 == 4:
            curious.status()
            curious.save(tmp_path / "e.beta")
            curious = Experiment.load(tmp_path / "e.beta")
    assert curious.trials() == quiet.trials()
    assert curious.status() == quiet.status()


def test_another_seed_asks_something_else():
    assert dict(made(seed=0).ask()) != dict(made(seed=1).ask())


def test_no_seed_is_still_one_seed(tmp_path):
    experiment = made(seed=None)
    experiment.save(tmp_path / "e.beta")
    assert Experiment.load(tmp_path / "e.beta").ask() == experiment.ask()


@pytest.mark.parametrize(("goal", "strategy"), PAIRS)
def test_a_batch_is_what_one_after_the_other_would_be(goal, strategy):
    first, second = (played(made(goal, strategy), 20) for _ in range(2))
    assert [dict(t) for t in first.ask(4)] == [dict(second.ask()) for _ in range(4)]


@pytest.mark.sampled
@pytest.mark.parametrize(("goal", "strategy"), [p for p in PAIRS if not p.id.startswith("compare")])
@pytest.mark.parametrize("told", [0, 20])
def test_batches_have_no_repeats(goal, strategy, told):
    experiment = played(made(goal, strategy), told)
    asked = [*experiment.ask(20), *experiment.ask(20)]
    assert len({tuple(trial.items()) for trial in asked}) == 40


def test_the_best_candidate_is_not_asked_again_while_it_is_pending():
    # Taking the highest variance twice would give the same point twice.
    experiment = played(made(Everywhere()), 30)
    first, second = experiment.ask(2)
    apart = np.hypot((first["x"] - second["x"]) / 2, (first["y"] - second["y"]) / 2)
    assert apart > 0.08  # the reach of a window is 0.1 of the sides


def test_many_pending_trials_need_little_memory_and_the_same_point_follows():
    whole, blocks = (played(made(Everywhere()), 20) for _ in range(2))
    parts(blocks).placing.block = 1 << 14
    rows = np.random.default_rng(2).uniform([0.0, -1.0], [2.0, 1.0], (2_000, 2))
    for row in rows:
        for experiment in (whole, blocks):
            parts(experiment).history.add(row, "elsewhere")
    expected = whole.ask()
    tracemalloc.start()
    try:
        trial = blocks.ask()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (dict(trial), trial.why) == (dict(expected), expected.why)
    # Differences from 1,024 candidates to all of them would be 32 MiB, several times over.
    assert most < 24 << 20


def test_pending_rows_follow_asks_and_ends():
    experiment, rng = made(Everywhere(), "sobol"), np.random.default_rng(3)
    history = parts(experiment).history
    for _ in range(60):
        pending = experiment.pending()
        if pending and rng.random() < 0.5:
            trial = pending[rng.integers(len(pending))]
            experiment.abandon(trial) if rng.random() < 0.5 else experiment.tell(trial, True)
        else:
            experiment.ask(int(rng.integers(1, 4)))
        expected = [list(trial.values()) for trial in experiment.pending()]
        assert history.pending_rows().tolist() == expected
        assert history.pending_rows([np.array([1.0, 0.5])]).tolist() == [*expected, [1.0, 0.5]]


def test_compared_points_are_asked_for_in_turn_while_all_are_pending():
    asked = played(made(Compare(POINTS)), 10).ask(6)
    counts = [sum(dict(trial) == point for trial in asked) for point in POINTS]
    assert counts == [2, 2, 2]


def test_spread_keeps_stimuli_apart():
    experiment = played(made(LevelSet(0.5), space=LINE, spread=0.01), 40)
    x = sorted(trial["x"] for trial in experiment.trials())
    assert min(b - a for a, b in pairwise(x)) >= 0.01 - 1e-12


@given(st.lists(st.integers(0, 9), max_size=9), st.integers(1, 3), st.integers(0, 99))
@settings(deadline=None)
def test_neighbours_are_as_far_as_all_distances_say(batches, d, seed):
    rng, known = np.random.default_rng(seed), Neighbours()
    rows, parts = rng.uniform(size=(5, d)), [rng.uniform(size=(n, d)) for n in batches]
    for part in parts:
        known.add(part)
    points = np.concatenate([np.empty((0, d)), *parts])
    far = np.linalg.norm(rows[:, None] - points, axis=2).min(axis=1, initial=np.inf)
    np.testing.assert_allclose(known.distances(rows), far, rtol=1e-12)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=300))
@settings(max_examples=20, deadline=None)
def test_neighbours_are_kept_in_few_trees_and_seldom_built_anew(batches):
    known, built, t = Neighbours(), 0, 0
    for n in batches:
        before = known.sizes
        known.add(np.zeros((n, 1)))
        t += n
        kept = [a for a, b in zip(before, known.sizes, strict=False) if a == b]
        built += t - sum(kept)
        assert all(a > b for a, b in pairwise(known.sizes))
        assert sum(known.sizes) == t
    assert len(known.sizes) <= np.log2(t) + 1
    assert built <= t * (np.log2(t) + 1)


@pytest.mark.parametrize("strategy", ["variance", "random", "sobol"])
def test_spread_that_leaves_no_room_is_refused_and_nothing_is_asked(strategy):
    experiment = played(made(strategy=strategy, space=LINE, spread=0.4), 2)
    before = experiment.trials()
    with pytest.raises(ValueError, match=r"^spread: none of 64 candidates is 0\.4 away"):
        experiment.ask(9)
    assert experiment.trials() == before


def test_fixed_values_are_kept_and_the_rest_is_chosen():
    experiment = played(made(Maximize()), 20)
    trial = experiment.ask(fixed={"y": 0.25})
    assert trial["y"] == 0.25
    everything = experiment.ask(fixed={"y": 0.25, "x": 1.0})
    assert dict(everything) == {"x": 1.0, "y": 0.25}


def test_observed_features_must_be_fixed_and_are_learned_from():
    experiment = made(LevelSet(0.5), observed=["y"])
    with pytest.raises(ValueError, match=r"found no value for 'y'; it is observed"):
        experiment.ask()
    played(experiment, 20, fixed={"y": -0.5})
    assert all(trial["y"] == -0.5 for trial in experiment.trials())
    assert experiment.model.n_trials_ == 20


def test_random_placement_is_uniform():
    experiment = made(strategy="random", space=LINE)
    x = [trial["x"] for trial in experiment.ask(400)]
    assert stats.kstest(x, "uniform").pvalue > 1e-3


def test_sobol_placement_is_more_even_than_chance():
    experiment = made(strategy="sobol", space=LINE)
    x = [trial["x"] for trial in experiment.ask(256)]
    assert stats.kstest(x, "uniform").statistic < 0.01


def test_plain_placement_does_not_look_at_outcomes():
    for strategy in ("random", "sobol"):
        up, down = (
            played(made(LevelSet(0.5), strategy), 15, f=lambda _, p=p: p) for p in (0.0, 1.0)
        )
        assert dict(up.ask()) == dict(down.ask())


# The strategies ------------------------------------------------------------------------------


@pytest.mark.long
def test_level_sets_are_tested_near_the_level():
    curve = lambda t: 1 / (1 + np.exp(-40 * (t["x"] - 0.3)))
    experiment = played(made(LevelSet(0.5), space=LINE, model=None), 90, f=curve)
    late = np.array([trial["x"] for trial in experiment.trials()[30:]])
    assert np.mean(np.abs(late - 0.3) < 0.05) > 0.4  # it would be 0.1 by chance


@pytest.mark.long
def test_steps_are_found():
    held = []
    for seed, at in enumerate(np.random.default_rng(0).uniform(0.05, 0.95, size=10)):
        experiment = made(LevelSet(0.5), space=LINE, model=None, seed=seed)
        known = played(experiment, 90, f=lambda t, at=at: float(t["x"] > at)).status()["known"]
        assert known["threshold"] == pytest.approx(at, abs=0.02)
        # Where it is between the last failure and the first success cannot be known.
        tested = np.array([trial["x"] for trial in experiment.trials()])
        last, first = tested[tested <= at].max(), tested[tested > at].min()
        low, high = known["interval"]
        assert last - 1e-3 < low < known["threshold"] < high < first + 1e-3
        assert high - low > 0.8 * (first - last)
        held.append(low <= at <= high)
    assert np.sum(held) >= 8


def test_a_threshold_is_that_of_the_model():
    experiment = played(made(LevelSet(0.5), space=LINE), 60, f=lambda t: 1 - t["x"] ** 2)
    known, found = experiment.status()["known"], experiment.model.threshold(0.5, random_state=0)
    # Windows make steps, and the median may be at either end of one.
    assert known["threshold"] == pytest.approx(found.median(), abs=0.05)
    assert known["interval"] == pytest.approx(found.interval(0.95), abs=0.06)
    assert known["not_reached"] == pytest.approx(found.not_reached, abs=0.02)


def test_a_threshold_outside_the_space_is_not_made_up():
    experiment = played(made(LevelSet(0.5), space=LINE), 60, f=lambda t: 0.1 * t["x"])
    known = experiment.status()["known"]
    assert known["not_reached"] > 0.8
    assert known["interval"][1] == 1.0


@pytest.mark.parametrize(("goal", "best"), [(Maximize(), 0.7), (Minimize(), 0.2)])
def test_extremes_are_found(goal, best):
    f = lambda t: 0.5 + 0.45 * np.sin(2 * np.pi * (t["x"] - 0.45))
    experiment = played(made(goal, space=LINE), 120, f=f)
    assert abs(experiment.status()["known"]["best"]["x"] - best) < 0.1
    late = np.array([trial["x"] for trial in experiment.trials()[60:]])
    assert np.mean(np.abs(late - best) < 0.2) > 0.6


def test_the_better_of_two_is_found_and_it_is_enough():
    goal = Compare([{"x": 0.1}, {"x": 0.9}])
    experiment = played(made(goal, space=LINE), 80, f=lambda t: t["x"])
    status = experiment.status()
    assert status["known"]["best"] == {"x": 0.9}
    assert status["enough"]
    assert status["still_needed"] == 0


def test_variance_goes_where_nothing_is_known():
    experiment = made(Everywhere(), space=LINE)
    for x in np.linspace(0.0, 0.5, 60):
        experiment.tell({"x": float(x)}, success=False)
    assert experiment.ask()["x"] > 0.5


@given(alpha=st.floats(5, 200), beta=st.floats(5, 200), p=st.floats(0.2, 0.8))
@settings(max_examples=50)
def test_information_is_that_of_the_exact_posterior(alpha, beta, p):
    # Exactly: P(π > p | success) and P(π > p | failure) are tails of two other Betas.
    belief = stats.beta(alpha, beta)
    above, mean = belief.sf(p), belief.mean()
    entropy = lambda q: float(stats.entropy([q, 1 - q], base=2))
    after = mean * entropy(stats.beta(alpha + 1, beta).sf(p))
    after += (1 - mean) * entropy(stats.beta(alpha, beta + 1).sf(p))
    exact = entropy(above) - after
    found = acquisition.information(
        np.array([mean]), np.array([belief.std()]), np.array([above]), p
    )[0]
    assert found >= 0
    if 0.1 < above < 0.9:
        assert found == pytest.approx(exact, rel=0.35, abs=1e-4)


@pytest.mark.parametrize("bandwidth", [0.2, "auto"])
def test_drawn_fields_have_the_moments_of_the_posterior(bandwidth):
    model = SmoothBetaClassifier(bandwidth, bounds=[(0, 1)])
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 1))
    model.fit(X, rng.uniform(size=400) < 0.2 + 0.6 * X[:, 0])
    rows = np.linspace(0, 1, 6)[:, None]
    space = Space.of(LINE)
    ask = functools.partial(model.posterior, rows)
    scene = acquisition.Scene(space, model.field_, Maximize(), rows, ask, 0)
    drawn = acquisition.fields(scene, 4000, rng)
    assert np.abs(drawn.mean(axis=0) - scene.posterior.mean()).max() < 0.01
    assert np.abs(drawn.std(axis=0) / scene.posterior.std() - 1).max() < 0.1
    near = acquisition.fields(replace(scene, rows=rows / 1000), 200, rng)
    assert stats.spearmanr(near[:, 0], near[:, 5]).statistic > 0.99
    far = acquisition.fields(replace(scene, rows=rows * 1000), 200, rng)
    assert abs(stats.spearmanr(far[:, 0], far[:, 5]).statistic) < 0.3


@pytest.mark.parametrize("bandwidth", [0.2, "theory", "loo", "auto"])
def test_points_that_are_asked_again_have_the_posterior_of_the_model(bandwidth):
    rng = np.random.default_rng(0)
    rows = rng.uniform(size=(20, 2))
    standing = StandingPoints(rows)
    model = SmoothBetaClassifier(bandwidth, bounds=[(0, 1), (0, 1)])
    for n in (50, 1, 1, 7, 100, 1):
        X = rng.uniform(size=(n, 2))
        model.partial_fit(X, rng.uniform(size=n) < X[:, 0], classes=[False, True])
        found, expected = standing.posterior(model.field_), model.posterior(rows)
        assert np.array_equal(found.mean(), expected.mean())
        assert np.array_equal(found.ppf(0.1), expected.ppf(0.1))


# Telling ------------------------------------------------------------------------------------


def test_what_is_told_is_what_the_model_learns():
    experiment = played(made(LevelSet(0.5)), 30)
    trials = experiment.trials()
    X = [[trial["x"], trial["y"]] for trial in trials]
    y = [trial["success"] for trial in trials]
    model = SmoothBetaClassifier(0.2, bounds=[(0, 2), (-1, 1)]).fit(X, y)
    there = [[1.0, 0.5], [0.3, -0.5]]
    assert np.array_equal(experiment.model.posterior(there).mean(), model.posterior(there).mean())


def test_contexts_are_told_with_each_trial():
    chance = contexts.guess_lapse(1 / 2)
    experiment = played(made(LevelSet(0.75, under=chance), space=LINE), 12, context=chance)
    experiment.tell({"x": 0.5}, success=True)
    trials = experiment.trials()
    assert trials[0]["context"] == [0.5, 1.0]
    assert trials[12]["context"] is None
    model = SmoothBetaClassifier(0.2, bounds=[(0, 1)])
    model.fit(
        [[t["x"]] for t in trials],
        [t["success"] for t in trials],
        context=[t["context"] or [0.0, 1.0] for t in trials],
    )
    there = [[0.2], [0.7]]
    assert np.array_equal(experiment.model.posterior(there).mean(), model.posterior(there).mean())


def test_a_level_under_a_context_is_that_of_pi_below_it():
    chance = contexts.guess_lapse(1 / 2)
    direct, seen = (made(goal, space=LINE) for goal in (LevelSet(0.5), LevelSet(0.75, chance)))
    for each in (direct, seen):
        rng = np.random.default_rng(3)
        for x in rng.uniform(size=50):
            each.tell({"x": x}, success=rng.uniform() < x, context=chance)
    known = [each.status()["known"]["threshold"] for each in (direct, seen)]
    assert known[0] == pytest.approx(known[1], abs=1e-9)


def test_a_model_that_has_learned_is_built_on_and_left_as_it_was():
    model = SmoothBetaClassifier(0.2, bounds=[(0, 1)]).fit([[0.1], [0.9]], ["no", "yes"])
    experiment = made(LevelSet(0.5), space=LINE, model=model)
    experiment.tell({"x": 0.5}, success=True)
    assert (model.n_trials_, experiment.model.n_trials_) == (2, 3)
    assert experiment.model.posterior([[0.5]]).mean() > 0.5


@given(st.integers(0, 300), st.integers(0, 40))
@settings(max_examples=10, deadline=None)
def test_a_round_has_a_64th_of_the_trials_at_most(known, n):
    model = SmoothBetaClassifier("loo", bounds=[(0, 1)])
    if known:
        X, y = np.arange(known)[:, None] / known, np.arange(known) % 2 == 0
        model.partial_fit(X, y, classes=[False, True])
    learner = Learner(model, Space.of({"x": (0, 1)}))
    for i in range(n):
        learner.learn(np.array([i / 40]), i % 3 > 0, None)
        begun = learner.field.totals.number()
        assert learner.model.n_trials_ == known + i + 1 == begun + learner.n_since
        assert learner.n_since <= begun / 64 < learner.n_since + known + i + 1


def test_windows_of_a_given_width_look_at_all_trials():
    learner = Learner(SmoothBetaClassifier(0.1, bounds=[(0, 1)]), Space.of({"x": (0, 1)}))
    for i in range(150):
        learner.learn(np.array([i / 150]), i % 3 > 0, None)
    assert learner.field is learner.model.field_


def test_what_a_trial_cannot_teach_changes_no_model():
    learner = Learner(SmoothBetaClassifier(0.2, bounds=[(0, 1)]), Space.of({"x": (0, 1)}))
    learner.learn(np.array([0.5]), True, None)
    with pytest.raises(ValueError, match="bounds"):
        learner.learn(np.array([1.5]), True, None)
    assert learner.model.n_trials_ == 1


# Answers ------------------------------------------------------------------------------------


def test_status_counts_trials():
    experiment = made()
    first, second, _ = experiment.ask(3)
    experiment.tell(first, success=True)
    experiment.abandon(second)
    status = experiment.status()
    assert [status[name] for name in ("told", "pending", "abandoned")] == [1, 1, 1]
    assert [t["state"] for t in experiment.trials()] == ["told", "abandoned", "pending"]
    assert [t.id for t in experiment.pending()] == [2]


def test_status_before_the_first_trial_knows_nothing():
    status = made().status()
    assert status["known"] is None
    assert not status["enough"]


@pytest.mark.parametrize("name", ["everywhere", "level", "maximize", "minimize", "compare"])
def test_status_is_surer_with_more_trials(name):
    experiment = played(made(GOALS[name], "random"), 30)
    before = experiment.status()
    played(experiment, 400, seed=3)
    after = experiment.status()
    assert after["unsure"] < before["unsure"]
    assert after["means"] in after["guarantee"]
    assert after["enough"] == (after["unsure"] <= 0.05)
    assert (after["still_needed"] == 0) == after["enough"]


def test_bands_are_told_where_outcomes_did_not_place_trials():
    plain, adaptive = (
        played(made(LevelSet(0.5), s, space=LINE), 300, f=lambda t: float(t["x"] > 0.5))
        for s in ("sobol", "boundary")
    )
    band = plain.status()["band"]
    assert band["level"] == 0.95
    assert 0 < band["surely_above"] <= 0.5
    assert 0 < band["surely_below"] <= 0.5
    assert adaptive.status()["band"] is None


def test_what_is_proven_of_a_level_holds_under_contexts_that_turn():
    # 2π(1−π) is 0.42 at both ends of this band, and 0.5 in its middle.
    found = LevelSet(0.45, under=[0, 1, 0]).proven(np.array([0.3]), np.array([0.7]))
    assert found == {"surely_above": 0.0, "surely_below": 0.0}
    found = LevelSet(0.45, under=[0, 1, 0]).proven(np.array([0.45, 0.1]), np.array([0.55, 0.2]))
    assert found == {"surely_above": 0.5, "surely_below": 0.5}


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=6),
    st.floats(0.01, 0.99),
    st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted),
    st.floats(0, 1),
)
@settings(deadline=None)
def test_whatever_is_proven_is_so_wherever_pi_is_within_the_band(under, p, ends, share):
    low, high = ends
    found = LevelSet(p, under=under).proven(np.array([low]), np.array([high]))
    value = contexts.probability(under, min(max(low + share * (high - low), low), high))
    assert not (found["surely_above"] and value < p - 1e-12)
    assert not (found["surely_below"] and value > p + 1e-12)


@pytest.mark.parametrize("under", [[0, 1, 1], None])
def test_a_status_has_no_band_where_no_guarantee_is_known(under):
    # Pools, and a trial of weight one half.
    model = SmoothBetaClassifier(0.2, bounds=[(0, 1)])
    weight = [0.5, 1.0] if under is None else None
    model.fit([[0.1], [0.9]], [0, 1], sample_weight=weight, context=under)
    experiment = played(made(LevelSet(0.5), "sobol", space=LINE, model=model), 3)
    status = experiment.status()
    assert status["band"] is None
    assert status["told"] == 3


def test_bounds_that_need_a_band_say_so_where_there_is_none():
    experiment = played(made(Maximize(), "ucb", space=LINE), 10)
    experiment.tell({"x": 0.5}, True, context=[0, 1, 1])
    with pytest.raises(ValueError, match=r"^strategy: found 'ucb', which needs a band"):
        experiment.ask()


@pytest.mark.long
@pytest.mark.parametrize("seeds", [(0,), (1, 2, 3)])
def test_the_stopping_rule_holds_where_it_stops(seeds):
    wrong = []
    for seed in seeds:
        experiment = made(LevelSet(0.5, within=0.08), space=LINE, seed=seed, model=None)
        rng = np.random.default_rng(seed)
        for i in range(300):
            trial = experiment.ask()
            experiment.tell(trial, success=rng.uniform() < 0.1 + 0.8 * (trial["x"] > 0.6))
            if i % 25 == 24 and experiment.status()["enough"]:
                break
        grid = np.linspace(0, 1, 201)[:, None]
        above = experiment.model.posterior(grid).prob_above(0.5) > 0.5
        wrong.append(np.mean(above != (grid[:, 0] > 0.6)))
    assert np.mean(wrong) < 0.08


# Bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("space", "error", "message"),
    [
        ({"x": (1, 1)}, ValueError, r", feature 'x': found \(1\.0, 1\.0\); low must be below high"),
        ({"x": (1, 0)}, ValueError, ", feature 'x': .*low must be below high"),
        ({"x": (0, np.inf)}, ValueError, ", feature 'x' row 1: found inf; .*finite"),
        ({"x": (np.nan, 1)}, ValueError, ", feature 'x' row 0: found NaN; .*finite"),
        ({"x": (-1e308, 1e308)}, ValueError, ", feature 'x': .*must be a finite float"),
        ({"x": 3}, ValueError, r", feature 'x': found shape \(\); \(low, high\) is needed"),
        ({"x": (0, 1, 2)}, ValueError, r", feature 'x': found shape \(3,\)"),
        ({"x": "09"}, ValueError, ", feature 'x': found '09'"),
        ({"x": ("0", 9)}, ValueError, ", feature 'x' row 0: found '0'"),
        (
            {"x": np.ma.array([0, 9], mask=[0, 1])},
            ValueError,
            ", feature 'x' row 1: found a masked",
        ),
        ({"x": (0, 1j)}, ValueError, ", feature 'x' row 1: found 1j"),
        ({"x": np.array([0, 9], "M8[D]")}, ValueError, ", feature 'x' row 0: found 1970-01-01"),
        ({"x": {0, 1}}, TypeError, ", feature 'x': found {0, 1}"),
        ({"x": (0, 10**400)}, ValueError, ", feature 'x' row 1: found 1000"),
        ({}, ValueError, ": found no features"),
        ({3: (0, 1)}, TypeError, ", feature 3: found int; names must be text"),
        ([(0, 1)], TypeError, ": found list; a mapping of names"),
    ],
)
def test_impossible_spaces_are_refused(space, error, message):
    with pytest.raises(error, match=f"^space{message}"):
        Experiment(space, Everywhere())


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_no_point_of_a_space_is_beyond_its_bounds(low, high):
    assume(low < high)
    rows = Space.of({"x": (low, high)}).rows(np.array([[0.0], [0.5], [1.0]]))
    assert low == rows[0, 0] <= rows[1, 0] <= rows[2, 0] <= high


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"goal": "level"}, TypeError, "^goal: found 'level'"),
        ({"strategy": "thompson"}, ValueError, "for Everywhere allowed are 'variance'"),
        ({"spread": -0.1}, ValueError, "^spread: found -0.1"),
        ({"spread": np.nan}, ValueError, "^spread: found NaN"),
        ({"spread": np.ma.masked}, ValueError, "^spread: found masked"),
        ({"spread": np.timedelta64(0, "s")}, ValueError, "^spread: found 0"),
        ({"strategy": np.array(["sobol"] * 2)}, ValueError, "^strategy: found array"),
        ({"goal": Compare(POINTS), "spread": 0.1}, ValueError, "tested repeatedly"),
        ({"observed": ["z"]}, ValueError, r"^observed\[0\]: found 'z'"),
        ({"observed": ["x", np.ones(2)]}, ValueError, r"^observed\[1\]: found array"),
        ({"observed": ["x", "y"]}, ValueError, "at least one must be chosen"),
        ({"observed": "x"}, TypeError, "a list of features"),
        ({"seed": 1.5}, ValueError, "^random_state: found 1.5"),
        ({"seed": 2**63}, ValueError, "^random_state: found 9223372036854775808"),
        ({"seed": -1}, ValueError, "^random_state: found -1"),
        ({"model": "auto"}, TypeError, "^model: found str"),
        ({"goal": Compare([{"x": 0, "y": 0}, {"x": 9, "y": 0}])}, ValueError, r"points\[1\]"),
        ({"goal": Compare([{"x": 0, "y": 0}, {"x": 0}])}, ValueError, "no value of 'y'"),
        ({"goal": Compare([{"x": 0, "y": 0}] * 2)}, ValueError, "one of them twice"),
    ],
)
def test_impossible_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        made(**options)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: LevelSet(1.0), ValueError, "^p: found 1.0"),
        (lambda: LevelSet(np.nan), ValueError, "^p: found NaN"),
        (lambda: LevelSet(np.ma.masked), ValueError, "^p: found masked"),
        (lambda: LevelSet(0.5j), ValueError, "^p: found 0.5j"),
        (lambda: LevelSet(np.ones(2) / 2), ValueError, "^p: found array"),
        (lambda: LevelSet(0.5, under=[0.5, 1.5]), ValueError, "^under row 1: found 1.5"),
        (lambda: LevelSet(0.5, under="09"), ValueError, "^under: found '09'"),
        (lambda: LevelSet(0.5, under=np.ma.array([0, 1], mask=[1, 0])), ValueError, "^under row 0"),
        (lambda: LevelSet(0.5, under=[[0, 1], [0, 1]]), ValueError, "^under: found shape"),
        (lambda: Maximize(within=10**400), ValueError, "^within: found 1000"),
        (lambda: LevelSet(0.5, within=0), ValueError, "^within: found 0"),
        (lambda: Compare([{"x": 1}]), ValueError, "^points: found 1"),
        (lambda: Compare({"x": 1}), TypeError, "^points: found dict"),
    ],
)
def test_impossible_goals_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("point", "success", "context", "error", "message"),
    [
        ({"x": 3.0, "y": 0}, True, None, ValueError, "^trial, feature 'x': found 3.0; .*to 2.0"),
        ({"x": np.nan, "y": 0}, True, None, ValueError, "^trial, feature 'x': found NaN"),
        ({"x": 1.0}, True, None, ValueError, "^trial: found no value of 'y'"),
        ({"x": 1.0, "y": 0, "z": 0}, True, None, ValueError, "^trial: found the feature 'z'"),
        ({"x": "1", "y": 0}, True, None, ValueError, "^trial, feature 'x': found '1'"),
        ({"x": np.ma.masked, "y": 0}, True, None, ValueError, "^trial, feature 'x': found masked"),
        (
            {"x": np.timedelta64(1, "s"), "y": 0},
            True,
            None,
            ValueError,
            "^trial, feature 'x': found 1",
        ),
        ({"x": 10**400, "y": 0}, True, None, ValueError, "^trial, feature 'x': found 1000"),
        ({"x": 1.0, "y": 0}, np.ma.masked, None, ValueError, "^success: found a masked value"),
        ({"x": 1.0, "y": 0}, np.timedelta64(1, "s"), None, ValueError, "^success: found"),
        ({"x": 1.0, "y": 0}, 1 + 0j, None, ValueError, "^success: found"),
        ({"x": 1.0, "y": 0}, [True], None, ValueError, "^success: found shape"),
        (
            {"x": 1.0, "y": 0},
            True,
            np.ma.array([0, 1], mask=[0, 1]),
            ValueError,
            "^context row 1: found a masked value",
        ),
        ({"x": 1.0, "y": 0}, True, [0, 1j], ValueError, "^context row 1: found 1j"),
        ({"x": 1.0, "y": 0}, True, "01", ValueError, "^context: found '01'"),
        ([1.0, 0.0], True, None, TypeError, "found list"),
        ({"x": 1.0, "y": 0}, 0.5, None, ValueError, "^success: found 0.5"),
        ({"x": 1.0, "y": 0}, "yes", None, ValueError, "^success: found 'yes'"),
        ({"x": 1.0, "y": 0}, None, None, ValueError, "^success: found None"),
        ({"x": 1.0, "y": 0}, True, [0.2, 1.2], ValueError, "1.2"),
        ({"x": 1.0, "y": 0}, True, [[0, 1], [0, 1]], ValueError, "context"),
    ],
)
def test_impossible_trials_are_refused_and_nothing_is_counted(
    point, success, context, error, message
):
    experiment = played(made(), 3)
    before, learned = experiment.trials(), experiment.model.n_trials_
    with pytest.raises(error, match=message):
        experiment.tell(point, success=success, context=context)
    assert experiment.trials() == before
    assert experiment.model.n_trials_ == learned


def test_a_trial_is_told_once():
    experiment = made()
    told, dropped = experiment.ask(2)
    experiment.tell(told, success=True)
    experiment.abandon(dropped)
    before = experiment.trials()
    for trial, state in ((told, "told"), (dropped, "abandoned")):
        with pytest.raises(ValueError, match=f"number {trial.id} was {state} before"):
            experiment.tell(trial, success=False)
        with pytest.raises(ValueError, match=f"number {trial.id} was {state} before"):
            experiment.abandon(trial)
    assert experiment.trials() == before
    assert experiment.model.n_trials_ == 1


def test_an_impossible_context_leaves_the_trial_pending():
    experiment = made()
    trial = experiment.ask()
    with pytest.raises(ValueError, match="context"):
        experiment.tell(trial, success=True, context=[0.0, 2.0])
    experiment.tell(trial, success=True)
    assert experiment.model.n_trials_ == 1


def test_a_trial_of_another_experiment_is_refused():
    trial = made(seed=1).ask()
    experiment = made(seed=2)
    for known in range(2):
        with pytest.raises(ValueError, match="none of this experiment"):
            experiment.tell(trial, success=True)
        assert len(experiment.trials()) == known
        experiment.ask()
    with pytest.raises(TypeError, match="found dict"):
        experiment.abandon({"x": 1.0, "y": 0.0})


# Over a wire and back -----------------------------------------------------------------------


@given(
    st.integers(0, 2**53),
    st.dictionaries(
        st.text(), st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=4
    ),
    st.text(),
)
def test_a_trial_that_was_json_is_the_same_to_the_last_bit(number, values, why):
    trial = Trial(number, values, why)
    again = Trial.from_dict(json.loads(json.dumps(trial.to_dict())))
    assert type(again) is Trial
    assert (again.id, again.why, list(again.items())) == (number, why, list(values.items()))
    assert {name: x.hex() for name, x in again.items()} == {n: x.hex() for n, x in values.items()}


WIRES = {
    "id": lambda trial: trial.id,
    "numpy": lambda trial: np.int64(trial.id),
    "dict": lambda trial: trial.to_dict(),
    "json": lambda trial: json.loads(json.dumps(trial.to_dict())),
    "only": lambda trial: {"id": trial.id},
    "flat": lambda trial: {"id": trial.id, "seconds": 0.3, **trial},
    "back": lambda trial: Trial.from_dict(trial.to_dict()),
}


@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
def test_a_trial_that_went_over_a_wire_is_no_new_one(wire):
    away, here = made(), made()
    for each, name in ((away, wire), (here, lambda trial: trial)):
        first, second, third = each.ask(3)
        each.tell(name(third), success=True, context=[0.1, 1.0])
        each.abandon(name(first))
        each.tell(name(second), success=False)
        with pytest.raises(ValueError, match=f"^trial: number {first.id} was abandoned before"):
            each.tell(name(first), success=True)
    assert away.trials() == here.trials()
    assert away.status() == here.status()
    assert dict(away.ask()) == dict(here.ask())


def test_a_row_of_the_list_is_a_trial_of_it():
    experiment = made()
    experiment.ask(2)
    experiment.tell(experiment.trials()[1], success=True)
    assert [trial["state"] for trial in experiment.trials()] == ["pending", "told"]


def test_a_point_without_an_id_stays_a_new_trial():
    experiment = made()
    trial = experiment.ask()
    experiment.tell(dict(trial), success=True)
    assert [each["state"] for each in experiment.trials()] == ["pending", "told"]


def test_features_may_be_called_id_and_values():
    experiment = made(space={"id": (0, 9), "values": (0, 9)})
    trial = experiment.ask()
    experiment.tell({"id": 0, "values": 1}, success=True)
    experiment.tell(trial.to_dict(), success=False)
    states = [(each["values"], each["success"]) for each in experiment.trials()]
    assert states == [(trial["values"], False), (1.0, True)]


@pytest.mark.parametrize(
    ("trial", "message"),
    [
        (
            2,
            r"^trial: found 2; none of this experiment has that id: it has 2 trials",
        ),
        (-1, r"^trial: found -1; none of this experiment has that id"),
        (0.0, r"^trial: found 0\.0; none of this experiment has that id"),
        ({"id": "0"}, r"^trial: found '0'; none of this experiment has that id"),
        ({"id": True}, r"^trial: found True; none of this experiment has that id"),
        (
            {"id": None, "values": {"x": 1, "y": 0}},
            r"^trial: found None; none of this",
        ),
        ({"id": 0, "values": {"x": 1}}, r"^trial: found {'x': 1} as number 0, which is none of"),
        ({"id": 0, "values": {"x": 1, "y": np.ones(2)}}, r"^trial: found .*none of this"),
        ({"id": 0, "x": 0.123, "y": 0}, r"^trial: found {'x': 0.123, 'y': 0} as number 0"),
    ],
)
@pytest.mark.parametrize("what", ["tell", "abandon"])
def test_ids_of_no_trial_are_refused_and_nothing_is_counted(trial, message, what):
    experiment = made()
    experiment.ask(2)
    before = experiment.trials()
    with pytest.raises(ValueError, match=message):
        experiment.tell(trial, True) if what == "tell" else experiment.abandon(trial)
    assert experiment.trials() == before
    assert experiment.status()["told"] == 0


@pytest.mark.parametrize(
    ("wire", "error", "message"),
    [
        ([1], TypeError, r"^trial: found list; {\"id\": …, \"values\": {…}} is needed"),
        ({"values": {}}, ValueError, "^trial: found no 'id' in {'values': {}}"),
        ({"id": 1}, ValueError, "^trial: found no 'values' in {'id': 1}"),
        ({"id": -1, "values": {}}, ValueError, "^trial, 'id': found -1; a whole number from 0 on"),
        ({"id": 1, "values": [0.5]}, TypeError, "^trial, 'values': found list"),
        ({"id": 1, "values": {"x": None}}, ValueError, "^trial, feature 'x': found None"),
        ({"id": 1, "values": {"x": np.nan}}, ValueError, "^trial, feature 'x': found NaN"),
        ({"id": 1, "values": {3: 1.0}}, TypeError, "^trial, feature 3: found int; names must be"),
        ({"id": 1, "values": {}, "why": 3}, TypeError, "^trial, 'why': found int; text"),
    ],
)
def test_what_is_no_trial_is_not_read_as_one(wire, error, message):
    with pytest.raises(error, match=message):
        Trial.from_dict(wire)


def test_text_is_no_value_of_a_feature_that_is_a_number():
    experiment = Experiment({"x": (0, 1)}, Everywhere(), random_state=0)
    wire = experiment.ask().to_dict()
    wire["values"]["x"] = str(wire["values"]["x"])  # text may be a level, but not of this feature
    with pytest.raises(ValueError, match=r"^trial: found {'x': '0\."):
        experiment.tell(wire, success=True)
    assert experiment.status()["told"] == 0


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2", 10**9, 10**400, np.timedelta64(2, "s")])
def test_impossible_batches_are_refused(n):
    with pytest.raises(ValueError, match=r"^n: found"):
        made().ask(n)


def test_impossible_fixed_values_are_refused():
    with pytest.raises(ValueError, match=r"^fixed, feature 'x': found 5"):
        made().ask(fixed={"x": 5})
    with pytest.raises(ValueError, match=r"^fixed: found the feature 'z'"):
        made().ask(fixed={"z": 5})
    with pytest.raises(ValueError, match="none of the compared points"):
        made(Compare(POINTS)).ask(fixed={"x": 0.1})


def test_models_of_other_spaces_are_refused():
    one = SmoothBetaClassifier(0.2).fit([[0.1], [0.9]], [0, 1])
    three = SmoothBetaClassifier(0.2).fit([[0.1], [0.5], [0.9]], [0, 1, 2])
    named = SmoothBetaClassifier(0.2).fit(pd.DataFrame({"x": [0.1, 0.9]}), [0, 1])
    with pytest.raises(ValueError, match="1 features; the space has 2"):
        made(model=one)
    with pytest.raises(ValueError, match="3 classes"):
        made(space=LINE, model=three)
    with pytest.raises(ValueError, match="named features"):
        made(space=LINE, model=named)


# Files --------------------------------------------------------------------------------------


def test_an_experiment_without_trials_can_be_saved(tmp_path):
    experiment = made(LevelSet(0.75, contexts.guess_lapse(0.5)), observed=["y"], spread=0.01)
    experiment.save(tmp_path / "e.beta")
    again = Experiment.load(tmp_path / "e.beta")
    assert again.ask(fixed={"y": 0}) == experiment.ask(fixed={"y": 0})
    assert again.trials() == experiment.trials()


def changed(path, change):
    """Rewrite a file after a change, with a valid checksum."""
    values, arrays = persistence.read(path, "Experiment")
    change(values, arrays)
    persistence.write(path, "Experiment", values, arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v, _: v["options"].update(strategy="thompson"), "strategy"),
        (lambda v, _: v["options"].update(seed=-1), "seed"),
        (lambda _, a: a.update(since=np.array([4])), "since"),
        (lambda _, a: a.update(since=np.array([1, 1])), "since"),
        (lambda v, _: v.update(more=1), "other fields"),
        (lambda v, _: v.update(goal={"name": "Guess", "options": {}}), "goal"),
        (lambda v, _: v["space"][0].pop(), "space"),
        (lambda v, _: v["space"].pop(), "rows"),
        (lambda _, a: a["rows"].__setitem__((0, 0), 9.0), "outside the space"),
        (lambda _, a: a["states"].__setitem__(0, 7), "states"),
        (lambda _, a: a["why_lengths"].__setitem__(0, 10**9), "why_lengths"),
        (lambda _, a: a["why_lengths"].__setitem__(slice(0, 2), [-1, 10**6]), "why_lengths"),
        (lambda _, a: a.pop("outcomes"), "outcomes"),
        (lambda _, a: a.update(other=np.zeros(3)), "unknown names"),
        (lambda v, _: v["model"]["options"].update(bandwidth=-1.0), "bandwidth"),
        (lambda _, a: a.update({"model.more": np.zeros(3)}), "unknown names"),
        (lambda v, _: v.update(model=None), "values"),
    ],
    ids=[
        "strategy", "seed", "since", "twice", "fields", "goal", "bounds", "features", "outside",
        "state", "long", "negative", "missing", "unknown", "width", "more", "model",
    ],
)  # fmt: skip
def test_unsound_files_are_refused(change, message, tmp_path):
    path = tmp_path / "e.beta"
    played(made(), 4).save(path)
    changed(path, change)
    with pytest.raises(
        ValueError, match=rf"(?s)does not contain a consistent experiment: .*{message}"
    ):
        Experiment.load(path)


def test_a_model_is_no_experiment(tmp_path):
    played(made(), 4).model.save(tmp_path / "m.beta")
    with pytest.raises(ValueError, match="not 'Experiment'"):
        Experiment.load(tmp_path / "m.beta")


def test_an_experiment_of_the_first_version_goes_on():
    experiment = Experiment.load(DATA / "version-1-experiment.beta")
    trials = experiment.trials()
    states = [trial["state"] for trial in trials]
    assert states == ["told"] * 24 + ["abandoned", "pending"]
    assert [trial["context"] for trial in trials[:3]] == [[0.1, 1.0], None, None]
    model = SmoothBetaClassifier(0.2, bounds=[(0, 2), (-1, 1)])
    model.fit(
        [[t["x"], t["y"]] for t in trials[:24]],
        [t["success"] for t in trials[:24]],
        context=[t["context"] or [0.0, 1.0] for t in trials[:24]],
    )
    there = [[1.0, 0.5], [0.3, -0.5]]
    np.testing.assert_allclose(
        experiment.model.posterior(there).mean(), model.posterior(there).mean(), rtol=1e-12
    )
    (waiting,) = experiment.pending()
    experiment.tell(waiting, success=True)
    trial = experiment.ask(fixed={"y": 0.5})
    far = [np.hypot((trial["x"] - t["x"]) / 2, (trial["y"] - t["y"]) / 2) for t in trials[:24]]
    assert min(far) >= 0.01


def test_an_experiment_of_the_second_version_goes_on():
    experiment = Experiment.load(DATA / "version-2-experiment.beta")
    assert len(experiment.trials()) == 20
    experiment.tell(experiment.ask(), success=True)
    assert len(experiment.trials()) == 21
