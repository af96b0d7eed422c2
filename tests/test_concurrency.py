"""Many threads, forked processes, joblib, and copies of a model."""

import copy
import functools
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from betafield import SmoothBetaClassifier


def trials(t=6000, d=2, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(t, d)), rng.integers(0, n_classes, size=t)


def bits(model, X):
    posterior = model.posterior(X)
    return posterior.mean().tobytes(), posterior.ppf(0.9).tobytes()


def test_bits_tell_models_apart():
    X, y = trials(100)
    model = SmoothBetaClassifier(0.1)
    assert bits(model.fit(X, y), X) == bits(model.fit(X[::-1], y[::-1]), X)
    assert bits(model.fit(X, y), X) != bits(model.fit(X, 1 - y), X)


@pytest.fixture
def often():
    """Make threads switch far more often than by default."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


# Threads.


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_sixteen_threads_at_once_get_the_serial_answers(d, n_jobs):
    X, y = trials(d=d)
    queries = [trials(5000, d, seed=i)[0] for i in range(16)]
    serial, model = (SmoothBetaClassifier(0.05, bounds=[(0, 1)] * d) for _ in range(2))
    expected = [bits(serial.fit(X, y), q) for q in queries]
    # In batches, because a model may consolidate them at the first query.
    model.set_params(n_jobs=n_jobs)
    for start in range(0, len(y), 500):
        model.partial_fit(X[start : start + 500], y[start : start + 500])
    barrier = threading.Barrier(16)

    def ask(q):
        barrier.wait()
        return bits(model, q)

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(ask, queries)) == expected


def answers_during(ask, steps, threads=4):
    """Return all answers that threads get while the steps are taken.

    Each step waits for enough answers to include one that was asked for after the previous step.
    """
    done, answered = threading.Event(), threading.Semaphore(0)

    def keep_asking():
        seen = set()
        try:
            while not done.is_set():
                seen.add(ask())
                answered.release()
        finally:
            # An error here ends the wait of the others too.
            done.set()
            answered.release(threads + 1)
        return seen

    with ThreadPoolExecutor(threads) as pool:
        asking = [pool.submit(keep_asking) for _ in range(threads)]
        try:
            for step in steps:
                while answered.acquire(blocking=False):
                    pass
                if not done.is_set():
                    for _ in range(threads + 1):
                        answered.acquire()
                    step()
        finally:
            done.set()
        return set().union(*(future.result() for future in asking))


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("bandwidth", [0.3, "theory"])
def test_answers_while_learning_are_of_the_model_before_or_after(bandwidth):
    X, y = trials(4000)
    query = np.array([[0.5, 0.5]])
    batches = [(X[i : i + 40], y[i : i + 40]) for i in range(0, len(y), 40)]
    make = lambda: SmoothBetaClassifier(bandwidth, bounds=[(0, 1)] * 2)
    serial, model = make(), make().partial_fit(*batches[0])
    allowed = {bits(serial.partial_fit(*batch), query) for batch in batches}
    steps = [functools.partial(model.partial_fit, *batch) for batch in batches[1:]]
    seen = answers_during(lambda: bits(model, query), steps)
    assert len(seen) > 1
    assert seen <= allowed


@pytest.mark.long
@pytest.mark.usefixtures("often")
def test_answers_while_fitting_anew_are_of_the_model_before_or_after():
    queries = trials(50)[0]
    both = trials(300), trials(200, n_classes=3, seed=1)
    allowed = {
        SmoothBetaClassifier("theory").fit(*data).predict_proba(queries).tobytes() for data in both
    }
    model = SmoothBetaClassifier("theory").fit(*both[0])
    steps = [functools.partial(model.fit, *data) for data in both[::-1] * 50]
    assert answers_during(lambda: model.predict_proba(queries).tobytes(), steps) == allowed


def in_threads(work, n):
    """Run the work in n threads that start together; an error in any of them is raised here."""
    barrier = threading.Barrier(n)

    def one(i):
        barrier.wait()
        return work(i)

    with ThreadPoolExecutor(n) as pool:
        return list(pool.map(one, range(n)))


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("bandwidth", [0.3, "auto"])
def test_no_trial_is_lost_where_several_threads_teach(bandwidth):
    model = SmoothBetaClassifier(bandwidth).fit([[0.0], [1.0]], [0, 1])

    def teach(i):
        for _ in range(100):
            if i % 2:
                model.partial_fit([[0.5]], [1])
            else:
                model.partial_fit_counts([[0.5]], [1], [1])

    in_threads(teach, 4)
    assert model.n_trials_ == 402
    assert model.windows_.totals.tolist() == [1, 401]


@pytest.mark.usefixtures("often")
def test_no_trial_is_lost_where_models_merge_both_ways_while_they_learn():
    make = lambda: SmoothBetaClassifier(0.3, bounds=[(0, 1)]).fit([[0.0], [1.0]], [0, 1])
    ours, theirs, total = make(), make(), make()

    def work(i):
        for _ in range(50):
            if i == 0:
                total.merge(theirs)
            elif i == 1:
                theirs.partial_fit([[0.5], [0.6]], [1, 0])
            elif i == 2:
                ours.partial_fit([[0.5]], [1])
            else:
                total.merge(ours)

    in_threads(work, 4)
    assert theirs.windows_.totals.tolist() == [51, 51]
    assert ours.windows_.totals.tolist() == [1, 51]
    # Each merge added a whole state: as many trials as its places count.
    assert total.n_trials_ == total.windows_.totals.sum()


# Processes. Forks run in a separate interpreter, because Python warns if there are threads.

FORKED = """
import multiprocessing, numpy as np
from betafield import SmoothBetaClassifier

rng = np.random.default_rng(0)
X = rng.uniform(size=(20_000, 2))
model = SmoothBetaClassifier(0.05, n_jobs=2).fit(X, rng.uniform(size=20_000) < X[:, 0])
ask = lambda: (model.posterior(X).alpha.tobytes(), model.posterior(X).beta.tobytes())
before = ask()
receive, send = multiprocessing.Pipe(duplex=False)
child = multiprocessing.get_context("fork").Process(target=lambda: send.send(ask()))
child.start()
assert receive.poll(240), "the child gave no answer"
assert receive.recv() == before, "the child's answer differs"
child.join(240)
assert child.exitcode == 0, child.exitcode
assert ask() == before, "the parent's answer differs after the fork"
print("same")
"""


def test_a_forked_child_and_its_parent_both_answer():
    run = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=300, check=False
    )
    assert (run.returncode, run.stdout) == (0, "same\n"), run.stderr


@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_joblib_gets_the_serial_answers(backend, n_jobs):
    X, y = trials()
    model = SmoothBetaClassifier(0.05, n_jobs=n_jobs).fit(X, y)
    parts = np.array_split(X, 4)
    found = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(bits)(model, part) for part in parts
    )
    assert found == [bits(model, part) for part in parts]


# Copies.


def through_a_file(model, tmp_path):
    joblib.dump(model, tmp_path / "model.joblib")
    return joblib.load(tmp_path / "model.joblib")


COPIES = {
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "joblib": through_a_file,
    "deepcopy": lambda model, _: copy.deepcopy(model),
    "copy": lambda model, _: copy.copy(model),
}


@pytest.mark.sampled
@pytest.mark.parametrize("kind", COPIES)
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("bandwidth", [0.1, "theory", "auto"])
def test_a_copy_knows_the_same_and_goes_its_own_way(kind, d, bandwidth, tmp_path):
    X, y = trials(3000, d)
    model = SmoothBetaClassifier(bandwidth, bounds=[(0, 1)] * d)
    model.partial_fit(X[:2000], y[:2000], sample_weight=np.linspace(0, 2, 2000))
    twin = COPIES[kind](model, tmp_path)
    before = bits(model, X)
    assert bits(twin, X) == before
    assert twin.get_params() == model.get_params()
    twin.partial_fit(X[2000:], y[2000:])
    assert bits(twin, X) != before
    assert bits(model, X) == before
    assert bits(model.partial_fit(X[2000:], y[2000:]), X) == bits(twin, X)


@pytest.mark.parametrize("kind", COPIES)
def test_a_copy_merges_with_its_origin(kind, tmp_path):
    X, y = trials(2000)
    model = SmoothBetaClassifier(0.1).fit(X, y)
    twice = SmoothBetaClassifier(0.1).fit(X, y, sample_weight=2)
    assert bits(model.merge(COPIES[kind](model, tmp_path)), X) == bits(twice, X)


def test_a_clone_learns_the_same_anew():
    X, y = trials(2000)
    model = SmoothBetaClassifier(0.1, prior=(0.5, 0.5), scale="std").fit(X, y)
    assert bits(clone(model).fit(X, y), X) == bits(model, X)
