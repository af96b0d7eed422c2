"""On a real cluster of two worker processes, which are killed at random moments."""

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
    pytest.mark.filterwarnings("ignore:The inplace keyword"),  # of dask's own calls of pandas 3
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
    # Where others use the processor too, a worker takes long to come back.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})
    with patient, cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def workers(client):
    """Return a function that waits until both workers are there, and gives their process ids."""

    def ids():
        client.wait_for_workers(2, timeout=300)
        return list(client.run(os.getpid).values())

    ids()
    return ids


def lazy(seconds=0.0, parts=PARTS):
    """Return the trials as dask arrays, whose chunks take some time to read."""

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


@pytest.mark.parametrize("partition", [None, "space"])
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


def test_a_worker_learns_from_many_partitions_together():
    one = Local(0.1).fit(X, Y).posterior(QUERIES)
    many = SmoothBetaClassifier(0.1).fit(*lazy(parts=50))
    assert 2 <= len(many.windows_.parts) <= 8
    np.testing.assert_array_equal(many.posterior(QUERIES).alpha, one.alpha)
    assert "and " in max(many.windows_.names, key=len)


def test_contexts_and_chosen_widths_on_a_cluster():
    rates = np.repeat([0.0, 0.25], T // 2)
    one = Local("loo").fit(X, Y, context=contexts.background(rates))
    X_, y_ = lazy()
    context = da.from_array(contexts.background(rates), chunks=(T // PARTS, 2))
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

    assert held("learned") == len(many.windows_.parts)
    for _ in range(100):
        if not held("checked"):
            break
        time.sleep(0.1)
    assert held("checked") == 0
    assert len(pickle.dumps(many._local())) < 100_000


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


def test_a_damaged_file_is_named(tmp_path):
    points, y = files(tmp_path)
    path = tmp_path / "3.parquet"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match="could not be computed") as caught:
        SmoothBetaClassifier(0.1).fit(points, y)
    assert str(caught.value).startswith(f"partition 3 ({path})")


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
