"""More than one process: ``python benchmarks/scale.py``.

Trials at uniform points of the unit square, in Parquet files on disk, and posteriors at uniform
points; the width by theory. What is counted is compared bit by bit with one process first: a wrong
engine gets no benchmark. All processes listen on this machine alone. The results are also written
to out/scale.json.

- overhead: fit and posteriors on a cluster of one worker, against one process that reads the same
  files with `fit_files`; the best of several repeats each. Workers have one thread.
- speedup: the same with two workers, against one.
- memory: the highest resident memory of a worker, less what it held before, against X and y.
- space: posteriors in a small region with partition="space", against partitions as they are.
- parts: what a cost model is made of: seconds to read and to learn a trial, bytes that are kept
  of it, seconds to ask a partition, to add up answers, and of a task that does nothing.
- kills: workers killed at random moments of repeated fits and predictions, on fewer trials; how
  many of these end with the same bits.
"""

import os
import pickle
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from dask.delayed import delayed
from distributed import Client, LocalCluster
from field import Floats, points, trials
from report import Row, Target, race, refuse_unless, run

import betafield
from betafield.dask import SmoothBetaClassifier
from betafield.dask.learning import without_trials
from betafield.dask.questions import Answer, noted
from betafield.dask.tasks import checked, learned
from betafield.field import Field

RESULTS = Path("out") / "scale.json"
OPTIONS: dict[str, Any] = {"bandwidth": "theory", "bounds": [(0.0, 1.0)] * 2}
# Side of the small region, in which queries ask few partitions of space.
REGION = 0.1
# Tasks that do nothing.
TASKS = 2000


@dataclass(frozen=True)
class Sizes:
    """How much of everything one run measures."""

    trials: int
    files: int
    points: int
    kill_trials: int
    kills: int
    repeats: int


FULL = Sizes(2 * 10**7, 20, 10**5, 10**6, 50, 3)
QUICK = Sizes(2 * 10**5, 4, 10**3, 10**4, 2, 1)


# Files -------------------------------------------------------------------------------------


@contextmanager
def folder(t: int, files: int) -> Iterator[str]:
    """A folder on disk with so many trials, in files of equal size."""
    RESULTS.parent.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=RESULTS.parent) as name:
        for i in range(files):
            X, y = trials(t // files, 2, seed=i)
            table = pa.table({"a": X[:, 0], "b": X[:, 1], "s": y})
            pq.write_table(table, Path(name) / f"{i:03}.parquet")
        yield str(Path(name).resolve())


def columns(name: str) -> tuple[Any, Any]:
    table = dd.read_parquet(name)
    return table[["a", "b"]], table["s"]


# One process -------------------------------------------------------------------------------


def in_a_process(action: Callable[..., Any], *arguments: Any) -> Any:
    """What an action returns in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(action, *arguments).result()


def one_process(name: str, n: int) -> dict[str, Any]:
    """Seconds to learn from files and to ask at n points, bytes at the peak, and what was said."""
    warm_up()
    forget_peak()
    before = resident("VmRSS")
    started = time.perf_counter()
    model = betafield.SmoothBetaClassifier(**OPTIONS).fit_files(name, outcome="s", progress=False)
    fitted = time.perf_counter()
    with_names = model.posterior(named(points(n, 2)))
    return {
        "fit": fitted - started,
        "ask": time.perf_counter() - fitted,
        "memory": resident("VmHWM") - before,
        "said": digest(with_names),
    }


def warm_up() -> None:
    """Import and compile: not what is measured."""
    X, y = trials(40_000, 2)
    model = betafield.SmoothBetaClassifier(**OPTIONS).fit(X, y)
    model.posterior(X[:5000]).mean()


def named(Q: Floats) -> Any:
    import pandas as pd

    return pd.DataFrame(Q, columns=["a", "b"])


def digest(posterior: Any) -> str:
    return sha256(posterior.alpha.tobytes() + posterior.beta.tobytes()).hexdigest()


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def resident(field: str) -> int:
    """Bytes of one field of the kernel's account of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) * 1024


# A cluster ---------------------------------------------------------------------------------


@contextmanager
def cluster(n_workers: int) -> Iterator[Client]:
    """Worker processes of one thread, that nobody else can reach, with all code compiled."""
    # A worker that was killed may come back late. Dask gives up a task during which some workers
    # died, and remembers that while the same collection is fitted again and again.
    patient = dask.config.set(
        {
            "distributed.deploy.lost-worker-timeout": "10 minutes",
            "distributed.scheduler.allowed-failures": 1_000,
        }
    )
    with (
        patient,
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as workers,
        Client(workers) as client,
    ):
        client.run(warm_up)
        yield client


def on_cluster(client: Client, name: str, n: int) -> dict[str, Any]:
    """The same as `one_process`, on the workers of a client."""
    client.run(forget_peak)
    before = client.run(resident, "VmRSS")
    started = time.perf_counter()
    model = SmoothBetaClassifier(**OPTIONS).fit(*columns(name))
    fitted = time.perf_counter()
    posterior = model.posterior(named(points(n, 2)))
    asked = time.perf_counter()
    peak = client.run(resident, "VmHWM")
    return {
        "fit": fitted - started,
        "ask": asked - fitted,
        "memory": max(peak[worker] - before[worker] for worker in peak),
        "said": digest(posterior),
    }


@cache
def measured(sizes: Sizes) -> dict[str, dict[str, Any]]:
    """The best of several repeats: one process, one worker, two workers, in turns."""
    rounds: dict[str, list[dict[str, Any]]] = {}
    with folder(sizes.trials, sizes.files) as name:
        for _ in range(sizes.repeats):
            found = in_a_process(one_process, name, sizes.points)
            rounds.setdefault("one process", []).append(found)
            for number, what in ((1, "one worker"), (2, "two workers")):
                with cluster(number) as client:
                    found = on_cluster(client, name, sizes.points)
                rounds.setdefault(what, []).append(found)
    said = {each["said"] for some in rounds.values() for each in some}
    refuse_unless(len(said) == 1, "a cluster said something else than one process")
    return {what: min(some, key=taken) for what, some in rounds.items()}


def taken(found: dict[str, Any]) -> float:
    return float(found["fit"] + found["ask"])


def overhead(sizes: Sizes) -> Iterator[Row]:
    found = measured(sizes)
    alone, one = found["one process"], found["one worker"]
    yield Row(
        f"one worker, against one process, t={sizes.trials:,}",
        100.0 * (taken(one) / taken(alone) - 1.0),
        " %",
        Target(30.0),
        {
            "fit": one["fit"],
            "ask": one["ask"],
            "fit_files": alone["fit"],
            "ask alone": alone["ask"],
        },
    )


def speedup(sizes: Sizes) -> Iterator[Row]:
    found = measured(sizes)
    one, two = found["one worker"], found["two workers"]
    yield Row(
        f"two workers, against one, t={sizes.trials:,}",
        taken(one) / taken(two),
        "×",
        Target(1.6, more_is_better=True),
        {"one": taken(one), "two": taken(two), "fit": two["fit"], "ask": two["ask"]},
    )


def memory(sizes: Sizes) -> Iterator[Row]:
    found = measured(sizes)
    for number, what in ((1, "one worker"), (2, "two workers")):
        data = 24 * sizes.trials / number
        yield Row(
            f"memory of each of {what}, against its X and y",
            found[what]["memory"] / data,
            "×",
            Target(4.0, 2.5),
            {
                "peak": found[what]["memory"],
                "X and y": data,
                "one process": found["one process"]["memory"],
            },
            numbers_unit="B",
        )


def space(sizes: Sizes) -> Iterator[Row]:
    Q = named(0.4 + REGION * points(sizes.points, 2))
    seconds: dict[str, float] = {}
    asked: dict[str, int] = {}
    said = set()
    with folder(sizes.trials, sizes.files) as name, cluster(2):
        for what, partition in (("as they are", None), ("space", "space")):
            started = time.perf_counter()
            model = SmoothBetaClassifier(**OPTIONS, partition=partition).fit(*columns(name))
            seconds[f"fit, {what}"] = time.perf_counter() - started
            times = []
            for _ in range(sizes.repeats + 1):
                started = time.perf_counter()
                said.add(digest(model.posterior(Q)))
                times.append(time.perf_counter() - started)
            seconds[what] = min(times)
            questions = noted(model.field_.told, Field.posterior, Q.to_numpy())
            asked[what] = len(model.windows_.near(questions))
    refuse_unless(len(said) == 1, "partitions of space said something else")
    yield Row(
        f"partitions of space, queries in {REGION:g} × {REGION:g}, "
        f"asks {asked['space']} not {asked['as they are']}",
        seconds["as they are"] / seconds["space"],
        "×",
        Target(1.0, 2.0, more_is_better=True),
        seconds,
    )


# Parts of a cost model ---------------------------------------------------------------------


def parts(sizes: Sizes) -> Iterator[Row]:
    t = sizes.trials // sizes.files
    with folder(sizes.trials, sizes.files) as name:
        found = in_a_process(part_seconds, name, sizes.points)
    with cluster(2):
        (task,) = race(3, lambda: dask.compute(*(delayed(abs)(i) for i in range(TASKS))))
    for what, value, most in (
        ("read and check, a trial", found["read"] / t, 1.0),
        ("learn, a trial", found["learn"] / t, 2.0),
        ("ask a partition, a query", found["ask"] / sizes.points, 20.0),
        ("add up answers, a query and partition", found["add"] / sizes.points / 8, 1.0),
        ("a task that does nothing", task / TASKS, 5000.0),
    ):
        yield Row(what, 1e6 * value, " µs", Target(most), {"seconds": value})
    yield Row(
        "kept of a trial",
        found["bytes"] / t,
        " B",
        Target(40.0),
        {"a partition": found["bytes"]},
        "B",
    )


def part_seconds(name: str, n: int) -> dict[str, float]:
    """Seconds that one partition takes, a step at a time, in this process."""
    warm_up()
    X, y = columns(name)
    with dask.config.set(scheduler="synchronous"):
        model = SmoothBetaClassifier(**OPTIONS).fit(X.partitions[:1], y.partitions[:1])
        started = time.perf_counter()
        batch = {"X": X.partitions[0].compute(), "y": y.partitions[0].compute()}
        read = checked("", batch, None)
        first = time.perf_counter()
        part = learned(without_trials(model.field_), read)
        second = time.perf_counter()
        questions = noted(model.field_.told, Field.posterior, points(n, 2))
        third = time.perf_counter()
        (answer,) = part.answers((questions, model.windows_.outline))
        fourth = time.perf_counter()
        Answer.added([answer] * 8)
    return {
        "read": first - started,
        "learn": second - first,
        "ask": fourth - third,
        "add": time.perf_counter() - fourth,
        "bytes": float(len(pickle.dumps(part, protocol=5))),
    }


# Faults ------------------------------------------------------------------------------------


def kills(sizes: Sizes) -> Iterator[Row]:
    rng, same, times = random.Random(0), 0, []
    Q = named(points(sizes.points, 2))
    with folder(sizes.kill_trials, sizes.files) as name, cluster(2) as client:
        expected = digest(SmoothBetaClassifier(**OPTIONS).fit(*columns(name)).posterior(Q))
        for number in range(sizes.kills):
            client.wait_for_workers(2, timeout=120)
            victim = rng.choice(list(client.run(os.getpid).values()))
            killer = threading.Timer(rng.uniform(0.0, 1.5), os.kill, (victim, signal.SIGKILL))
            killer.start()
            started = time.perf_counter()
            partition = "space" if number % 4 == 3 else None
            said = []
            while killer.is_alive():  # fits and predictions until a worker is killed
                model = SmoothBetaClassifier(**OPTIONS, partition=partition).fit(*columns(name))
                said += [digest(model.posterior(Q)), digest(model.posterior(Q))]
            said.append(digest(model.posterior(Q)))
            times.append(time.perf_counter() - started)
            same += set(said) == {expected}
    yield Row(
        f"workers killed, of {sizes.kills}: the same bits",
        float(same),
        "",
        Target(float(sizes.kills), more_is_better=True),
        {"median": float(np.median(times)), "worst": max(times)},
    )


MEASUREMENTS: dict[str, Callable[[Sizes], Iterator[Row]]] = {
    "overhead": overhead,
    "speedup": speedup,
    "memory": memory,
    "space": space,
    "parts": parts,
    "kills": kills,
}

TITLE = "betafield over dask: Parquet on disk, uniform points of the unit square, Δ by theory"

if __name__ == "__main__":
    run(TITLE, __doc__, MEASUREMENTS, FULL, QUICK, RESULTS)
