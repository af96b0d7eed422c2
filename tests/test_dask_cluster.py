"""A real cluster of two worker processes, which are killed at random moments."""

import gc
import os
import pickle
import random
import signal
import threading
import time
from ipaddress import ip_address

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
import pytest
from distributed import Client, LocalCluster

from betafield import SmoothBetaClassifier as Local
from betafield import contexts
from betafield.dask import SmoothBetaClassifier

pytestmark = [
    pytest.mark.usefixtures("client"),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),  # Dask's own calls of pandas 3
]

T, PARTS = 20_000, 8
RNG = np.random.default_rng(0)
X = RNG.uniform(size=(T, 2))
Y = (RNG.uniform(size=T) < 0.2 + 0.6 * X[:, 0]).astype(np.int64)
QUERIES = RNG.uniform(size=(300, 2))


@pytest.fixture(scope="module")
def client():
    """Return the client of two worker processes, restarted by their nannies when killed."""
    cluster = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=40,
    )
    # On a busy machine, a worker takes long to come back.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})
    with patient, cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def workers(client):
    """Return a function that waits for both workers, and returns their process ids."""

    def ids():
        client.wait_for_workers(2, timeout=300)
        return list(client.run(os.getpid).values())

    ids()
    return ids


def lazy(seconds=0.0, parts=PARTS):
    """Return the trials as Dask arrays whose chunks take some time to read."""

    def read(rows, part):
        time.sleep(seconds)
        return (X if part == "X" else Y)[rows[0] : rows[1]]

    size = T // parts
    starts = [(i * size, (i + 1) * size) for i in range(parts)]
    reader = dask.delayed(read)
    columns = {"X": ((size, 2), float), "y": ((size,), np.int64)}
    return [
        da.concatenate([da.from_delayed(reader(rows, name), shape, dtype=kind) for rows in starts])
        for name, (shape, kind) in columns.items()
    ]


def test_nothing_listens_beyond_this_machine():
    us = psutil.Process()
    listening = [
        ip_address(each.laddr.ip)
        for process in (us, *us.children(recursive=True))
        for each in process.net_connections(kind="inet")
        if each.status == psutil.CONN_LISTEN
    ]
    assert len(listening) >= 5  # the scheduler, two workers, two nannies
    assert all(address.is_loopback for address in listening)


@pytest.mark.parametrize("partition", [pytest.param(None, marks=pytest.mark.long), "space"])
def test_a_cluster_answers_as_one_machine(partition):
    one = Local(0.1).fit(X, Y)
    many = SmoothBetaClassifier(0.1, partition=partition).fit(*lazy())
    np.testing.assert_array_equal(many.posterior(QUERIES).alpha, one.posterior(QUERIES).alpha)
    np.testing.assert_array_equal(many.band(QUERIES, 1.0), one.band(QUERIES, 1.0))
    lazily = many.predict_proba(da.from_array(QUERIES, chunks=(100, 2)))
    np.testing.assert_array_equal(lazily.compute(), one.predict_proba(QUERIES))
    again = pickle.loads(pickle.dumps(many))
    np.testing.assert_array_equal(again.posterior(QUERIES).beta, one.posterior(QUERIES).beta)
    np.testing.assert_array_equal(
        many.compute().posterior(QUERIES).alpha, one.posterior(QUERIES).alpha
    )


def distorted():
    """Return the arguments of trials, half of them under a context."""
    rates = np.repeat([0.0, 0.25], T // 2)
    return {"X": X, "y": Y, "context": contexts.background(rates)}


BY_DEFAULT = {
    "plain": {"X": X, "y": Y},
    "weights": {"X": X, "y": Y, "sample_weight": RNG.exponential(size=T)},
    "counts": {"X": X, "successes": Y, "trials": Y + RNG.integers(0, 3, size=T)},
    "contexts": distorted(),
    "classes": {"X": X, "y": Y + RNG.integers(0, 2, size=T)},
}


@pytest.mark.parametrize("case", BY_DEFAULT)
def test_a_cluster_learns_the_default_as_one_machine(case):
    data = {name: values[::40] for name, values in BY_DEFAULT[case].items()}
    cut = {name: da.from_array(each, chunks=(100, *each.shape[1:])) for name, each in data.items()}
    method = "fit_counts" if case == "counts" else "fit"
    one, many = (
        getattr(model, method)(**given)
        for model, given in ((Local(), data), (SmoothBetaClassifier(), cut))
    )
    assert many.settled_
    assert many.weights_.tobytes() == one.weights_.tobytes()
    expected, found = one.posterior(QUERIES), many.posterior(QUERIES)
    np.testing.assert_array_equal(found.mean(), expected.mean())
    lazily = many.posterior(da.from_array(QUERIES, chunks=(100, 2)))
    for ours, theirs in zip(lazily.interval(), expected.interval(), strict=True):
        np.testing.assert_array_equal(ours.compute(), theirs)


# A killed worker takes some seconds of processor time to restart.
@pytest.mark.long
@pytest.mark.parametrize("moments", [(0.2,), (0.5, 0.8)])
def test_killed_workers_never_show_in_the_default(workers, moments):
    one = Local(method="process").fit(X, Y).posterior(QUERIES).mean()
    many = SmoothBetaClassifier(method="process")
    for seconds in moments:
        thread = threading.Timer(seconds, os.kill, (workers()[0], signal.SIGKILL))
        thread.start()
        many.fit(*lazy(seconds=0.1))
        thread.join()
        np.testing.assert_array_equal(many.posterior(QUERIES).mean(), one)
    workers()


@pytest.mark.long
def test_workers_killed_before_a_question_never_show_in_the_default(workers):
    one = Local(method="process").fit(X, Y).posterior(QUERIES).mean()
    many = SmoothBetaClassifier(method="process").fit(*lazy())
    queries = da.from_array(QUERIES, chunks=(20, 2))
    os.kill(workers()[0], signal.SIGKILL)
    np.testing.assert_array_equal(many.predict_proba(queries)[:, 1].compute(), one)
    workers()


def test_the_default_outlives_its_cluster_and_leaves_nothing_there(client):
    many = SmoothBetaClassifier(method="process").fit(*lazy())

    def kept():
        keys = [str(key) for keys in client.has_what().values() for key in keys]
        return [key for key in keys if key.startswith(("checked", "summed", "joined"))]

    while kept():  # released soon after, or the test times out
        time.sleep(0.1)
    with dask.config.set(scheduler="threads"):
        found = many.predict_proba(da.from_array(QUERIES, chunks=(100, 2))).compute()
    one = Local(method="process").fit(X, Y)
    np.testing.assert_array_equal(found, one.predict_proba(QUERIES))


def test_a_worker_learns_from_many_partitions_together():
    one = Local(0.1).fit(X, Y).posterior(QUERIES)
    many = SmoothBetaClassifier(0.1).fit(*lazy(parts=50))
    assert 2 <= len(many.windows_.kept) <= 8
    np.testing.assert_array_equal(many.posterior(QUERIES).alpha, one.alpha)
    assert "and " in max((each.name for each in many.windows_.kept), key=len)


@pytest.mark.long
def test_contexts_and_chosen_widths_on_a_cluster():
    data = distorted()
    one = Local("loo").fit(**data)
    X_, y_ = lazy()
    context = da.from_array(data["context"], chunks=(T // PARTS, 2))
    many = SmoothBetaClassifier("loo").fit(X_, y_, context=context)
    assert many.weights_.tobytes() == one.weights_.tobytes()
    np.testing.assert_array_equal(many.posterior(QUERIES).mean(), one.posterior(QUERIES).mean())


def test_a_partition_is_read_once(tmp_path):
    def read(rows):
        (tmp_path / f"{rows[0]}-{time.monotonic_ns()}").touch()
        return X[rows[0] : rows[1]]

    size = T // PARTS
    chunks = [dask.delayed(read)((i * size, (i + 1) * size)) for i in range(PARTS)]
    points = da.concatenate([da.from_delayed(each, (size, 2), dtype=float) for each in chunks])
    SmoothBetaClassifier(0.1).fit(points, lazy()[1])
    assert len(list(tmp_path.iterdir())) == PARTS


def test_the_trials_stay_on_the_workers(client):
    many = SmoothBetaClassifier(0.1).fit(*lazy())

    def held(prefix):
        keys = (key for keys in client.has_what().values() for key in keys)
        return sum(str(key).startswith(prefix) for key in keys)

    assert held("learned") == len(many.windows_.kept)
    while held("checked"):  # released soon after, or the test times out
        time.sleep(0.1)
    assert len(pickle.dumps(many.field_.told)) < 100_000


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_killed_workers_never_show(workers, seed):
    one = Local(0.1).fit(X, Y).posterior(QUERIES)
    rng = random.Random(seed)
    said = []

    def killer(latest):
        """Return a thread that kills one of the workers soon."""
        asked = rng.choice(workers()), signal.SIGKILL
        thread = threading.Timer(rng.uniform(0.0, latest), os.kill, asked)
        thread.start()
        return thread

    during_fit = killer(latest=0.6)
    many = SmoothBetaClassifier(0.1, partition="space" if seed else None)
    many.fit(*lazy(seconds=0.1))
    said.append(many.posterior(QUERIES))
    during_fit.join()
    during_queries = killer(latest=0.3)
    while during_queries.is_alive():
        said.append(many.posterior(QUERIES))
    said.append(many.posterior(QUERIES))
    for found in said:
        np.testing.assert_array_equal(found.alpha, one.alpha)
        np.testing.assert_array_equal(found.beta, one.beta)
    assert many.n_trials_ == T
    assert set(workers()).isdisjoint({during_fit.args[0], during_queries.args[0]})


def files(folder):
    size = T // PARTS
    for i in range(PARTS):
        rows = slice(i * size, (i + 1) * size)
        table = pd.DataFrame({"a": X[rows, 0], "b": X[rows, 1], "s": Y[rows]})
        table.to_parquet(folder / f"{i}.parquet")
    table = dd.read_parquet(str(folder))
    return table[["a", "b"]], table["s"]


@pytest.mark.long
@pytest.mark.parametrize("bandwidth", [0.1, "auto"])
def test_a_damaged_file_is_named(tmp_path, bandwidth):
    points, y = files(tmp_path)
    many = SmoothBetaClassifier(bandwidth, method="windows" if bandwidth == 0.1 else "process")
    many.partial_fit(pd.DataFrame(X[:100], columns=["a", "b"]), Y[:100])
    path = tmp_path / "3.parquet"
    path.write_bytes(path.read_bytes()[:1000])
    for learn in (many.fit, many.partial_fit):
        with pytest.raises(ValueError, match="could not be computed") as caught:
            learn(points, y)
        assert str(caught.value).startswith(f"partition 3 ({path})")


@pytest.mark.long
def test_a_file_that_changed_before_it_was_read_again_is_named(workers, tmp_path):
    many = SmoothBetaClassifier(0.1).fit(*files(tmp_path))
    queries = pd.DataFrame(QUERIES, columns=["a", "b"])
    before = many.posterior(queries).alpha
    paths = [tmp_path / f"{i}.parquet" for i in range(PARTS)]
    for path in paths:
        pd.read_parquet(path).assign(s=1).to_parquet(path)
    for process in workers():
        os.kill(process, signal.SIGKILL)
    with pytest.raises(ValueError, match="was read again after a worker was lost") as caught:
        assert np.array_equal(many.posterior(queries).alpha, before)
    assert any(f"({path})" in str(caught.value) for path in paths)
    workers()


@pytest.mark.long
def test_a_task_that_kills_its_worker_is_named(client, workers, monkeypatch):
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)

    def read(rows):
        if rows[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return X[rows[0] : rows[1]]

    halves = [dask.delayed(read)(rows) for rows in ((0, T // 2), (T // 2, T))]
    points = da.concatenate([da.from_delayed(each, (T // 2, 2), dtype=float) for each in halves])
    y = da.from_array(Y, chunks=T // 2)
    with pytest.raises(RuntimeError, match=r"partition \d: could not be computed\. KilledWorker"):
        SmoothBetaClassifier(0.1).fit(points, y)
    workers()


@pytest.mark.long
def test_what_is_asked_lazily_keeps_the_trials_of_a_model_that_is_gone():
    queries = da.from_array(QUERIES, chunks=(100, 2))
    found = SmoothBetaClassifier(0.1).fit(*lazy()).predict_proba(queries)
    gc.collect()
    np.testing.assert_array_equal(found.compute(), Local(0.1).fit(X, Y).predict_proba(QUERIES))


@pytest.mark.parametrize("partition", [None, "space"])
def test_collections_that_a_cluster_keeps_are_learned_from(partition):
    expected = Local(0.1, bounds=[(0, 1)] * 2).fit(X, Y).posterior(QUERIES).alpha
    points, y = dask.persist(*lazy())
    many = SmoothBetaClassifier(0.1, bounds=[(0, 1)] * 2, partition=partition).fit(points, y)
    np.testing.assert_array_equal(many.posterior(QUERIES).alpha, expected)
    table = dd.from_dask_array(points, columns=["a", "b"]).persist()
    many = SmoothBetaClassifier(0.1, partition=partition).fit(table, y)
    found = many.predict_proba(table).compute()
    np.testing.assert_array_equal(found, Local(0.1).fit(X, Y).predict_proba(X))


# Clusters that were restarted, closed, or are not in use.


QUESTIONS = {
    "posterior": lambda model: model.posterior(QUERIES),
    "lazy": lambda model: model.predict_proba(da.from_array(QUERIES, chunks=(100, 2))),
    "band": lambda model: model.band(QUERIES, 1.0),
    "score": lambda model: model.score(*lazy()),
    "compute": lambda model: model.compute(),
    "partial_fit": lambda model: model.partial_fit(*lazy()),
    "merge": lambda model: fitted().merge(model),
}


def fitted():
    return SmoothBetaClassifier(0.1, bounds=[(0, 1)] * 2).fit(*lazy())


def assert_refused(model, *said):
    """Expect the same error from every query that needs the trials, and an unchanged model."""
    before = dict(vars(model))
    for name, ask in QUESTIONS.items():
        with pytest.raises(RuntimeError) as caught:
            ask(model)
        for words in ("partition 0", "and ", *said):
            assert words in str(caught.value), (name, str(caught.value))
    assert vars(model) == before


LOST = "lost, because the cluster that kept the trials, or its client, was restarted or closed"


@pytest.mark.long
def test_a_restart_of_the_cluster_loses_the_trials_and_says_so(client, workers):
    many, points = fitted(), lazy()[0].persist()
    kept = many.compute()
    client.restart(timeout=300)
    workers()
    assert_refused(many, LOST, "fit again", "compute()")
    with pytest.raises(RuntimeError, match=r"partition 0.*: lost, because.*; fit again"):
        SmoothBetaClassifier(0.1).fit(points, lazy()[1])
    expected = Local(0.1, bounds=[(0, 1)] * 2).fit(X, Y).posterior(QUERIES).alpha
    np.testing.assert_array_equal(kept.posterior(QUERIES).alpha, expected)
    np.testing.assert_array_equal(fitted().posterior(QUERIES).alpha, expected)


@pytest.fixture
def another():
    """Return a second cluster, whose client is the one in use."""
    options = {"n_workers": 1, "processes": False, "protocol": "tcp", "host": "127.0.0.1"}
    cluster = LocalCluster(**options, dashboard_address="127.0.0.1:0", silence_logs=40)
    with cluster, Client(cluster) as client:
        yield client


@pytest.mark.parametrize("closed", ["client", pytest.param("cluster", marks=pytest.mark.long)])
def test_a_client_or_cluster_that_is_closed_loses_the_trials_and_says_so(client, another, closed):
    with another.as_current():
        many = fitted()
    (another if closed == "client" else another.cluster).close()
    with client.as_current():
        assert_refused(many, LOST, "fit again")
    with dask.config.set(scheduler="threads"):
        assert_refused(many, LOST, "fit again")


@pytest.mark.long
def test_a_cluster_that_is_not_in_use_is_not_asked(client, another):
    with another.as_current():
        many = fitted()
        before = many.posterior(QUERIES).alpha
    for elsewhere in (client.as_current(), dask.config.set(scheduler="threads")):
        with elsewhere:
            assert_refused(many, "kept by another cluster than the one in use", "as_current()")
    with another.as_current():
        np.testing.assert_array_equal(many.posterior(QUERIES).alpha, before)
