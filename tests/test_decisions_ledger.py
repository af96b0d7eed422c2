"""Every trial that is asked for is told or abandoned once, whatever other threads do."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from betafield import SmoothBetaClassifier
from betafield.decisions import Experiment, FieldBandit, LevelSet, RiskTracker
from betafield.decisions.ledger import ABANDONED, FAILURE, PENDING, SUCCESS, Ledger


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from([FAILURE, SUCCESS, ABANDONED]))))
@settings(deadline=None)
def test_a_ledger_is_what_a_list_of_ends_says(ended):
    ledger, ends = Ledger(), [PENDING] * 10
    assert [ledger.ask() for _ in range(10)] == list(range(10))
    for number, end in ended:
        if ends[number] == PENDING:
            assert ledger.require_pending("trial", number) == number
            ledger.end([number], [end])
            ends[number] = end
        else:
            with pytest.raises(ValueError, match=rf"^trial: number {number} was (told|abandoned)"):
                ledger.require_pending("trial", number)
    for each in (ledger, Ledger(ends)):
        assert each.ends == ends
        assert each.pending == [i for i, end in enumerate(ends) if end == PENDING]
        assert each.counts() == {
            "told": ends.count(FAILURE) + ends.count(SUCCESS),
            "pending": ends.count(PENDING),
            "abandoned": ends.count(ABANDONED),
        }
        told = {FAILURE: False, SUCCESS: True}
        assert [each.outcome(i) for i in range(10)] == [told.get(end) for end in ends]


def at_once(work, n_threads=4):
    """Run the same work in several threads, and wait for all."""
    with ThreadPoolExecutor(n_threads) as threads:
        for done in [threads.submit(work, seed) for seed in range(n_threads)]:
            done.result()


def test_no_trial_of_an_experiment_is_lost_among_threads():
    experiment = Experiment({"x": (0, 1)}, LevelSet(0.5), SmoothBetaClassifier(0.2), 0)

    def work(seed):
        for i in range(6):
            trial = experiment.ask()
            experiment.tell(trial, success=(i + seed) % 2)
            experiment.status()

    at_once(work)
    trials = experiment.trials()
    assert experiment.status()["told"] == experiment.model.n_trials_ == len(trials) == 24
    assert sorted(trial["id"] for trial in trials) == list(range(24))
    model = SmoothBetaClassifier(0.2, bounds=[(0, 1)])
    model.fit([[t["x"]] for t in trials], [t["success"] for t in trials])
    there = [[0.2], [0.7]]
    assert np.array_equal(experiment.model.posterior(there).mean(), model.posterior(there).mean())


@pytest.mark.parametrize("policy", ["thompson", "ucb"])
def test_no_pull_of_a_bandit_is_lost_among_threads(policy):
    bandit = FieldBandit(["a", "b"], policy, random_state=0)

    def work(seed):
        for i in range(15):
            pulls = bandit.pull(n=2)
            bandit.update(pulls[0], success=(i + seed) % 2)
            bandit.abandon(pulls[1])

    at_once(work)
    assert (bandit.n_pulls, bandit.pending) == (120, [])
    shapes = [bandit.posterior({}, arm) for arm in "ab"]
    assert sum(float(each.alpha[0] + each.beta[0]) for each in shapes) == 4 + 60


def test_no_trial_of_a_tracker_is_lost_among_threads_and_states_are_whole():
    tracker = RiskTracker(0.2, window=1e6, bounds=[(0, 1)], places=[[0.5]])
    seen = []

    def work(seed):
        for i in range(25):
            tracker.update([[0.5]] * 4, [1, 0, 0, 0], times=float(i + seed))
            post = tracker.posterior([[0.5]])
            seen.append((float(post.alpha[0]) - 1, float(post.beta[0]) - 1))

    at_once(work)
    assert tracker.n_trials == 400
    assert tracker.posterior([[0.5]]).alpha == 101
    assert all(lost == 3 * won for won, lost in seen)
