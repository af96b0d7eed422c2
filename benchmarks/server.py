"""Figures of the server: python benchmarks/server.py [PART...] [--scale 0.1] [--seed 0].

outcomes   outcomes per second told durably by 64 clients at once, SQLite and PostgreSQL
asks       milliseconds of an ask at 1,000 trials told, two features, one client
many       64 clients, 10 studies: every trial there once, no place pending twice
kills      kill −9 under load, restart, compare
power      power cuts at every fsync and at random bytes of the recorded writes
requests   generated requests: statuses, memory
rebuild    seconds to rebuild a study of 10⁵ trials from its rows

Parts are run by name, all of them if none is named. A part can be divided as well: each seed makes
other kills, cuts and requests, so that --scale 0.2 with the seeds 0 to 4 is a whole one. Progress
is written to standard error. The status is 1 if anything was lost or failed.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from server_power import power
from server_requests import requests
from server_setup import FAST, Progress, cpu, say, served
from tests.server.serving import (
    DOTS,
    EVEN,
    PostgreSQL,
    Server,
    ask,
    created,
    outcome_at,
    replayed,
    rows_of,
    shared,
    tell,
)
from tests.server.test_promise import Load, require_kept

from betafield.server.definitions import Definition
from betafield.server.state import State
from betafield.server.storage import Store, written
from betafield.server.studies import Studies

PEOPLE = 64


# Outcomes per second ---------------------------------------------------------------------------


def outcomes(scale, _):
    with tempfile.TemporaryDirectory() as folder:
        say("outcomes", f"SQLite: {_outcomes(scale, Path(folder) / 'study.db')}")
    with PostgreSQL() as database:
        say("outcomes", f"PostgreSQL: {_outcomes(scale, '--database', database.url)}")


def _outcomes(scale, *where):
    number = max(PEOPLE, int(20_000 * scale) // PEOPLE * PEOPLE)
    with Server(*where, *FAST) as server, server.client() as client:
        created(client, EVEN, "even")
        for start in range(0, number, 1000):
            ask(client, "even", n=min(1000, number - start))
        # Clients in processes of their own, so that they do not slow each other down.
        share = number // PEOPLE
        code = CLIENT.format(root=str(Path(__file__).parents[1]))
        begun = cpu(server)
        groups = [range(i, PEOPLE, 4) for i in range(4)]
        at = time.perf_counter()
        runs = [
            subprocess.Popen([sys.executable, "-c", code, server.address, str(share), *map(str, g)])
            for g in groups
        ]
        assert not any(run.wait() for run in runs)
        seconds, used = time.perf_counter() - at, cpu(server) - begun
        told = sum(row["state"] == "told" for row in rows_of(client, "even"))
        assert told == number, (told, number)
    return (
        f"{number} outcomes by {PEOPLE} clients: {number / seconds:.0f} per second of wall time, "
        f"{number / used:.0f} per second of the server's processor time"
    )


# Raw sockets: a client in Python that parses all of HTTP takes longer than the server.
CLIENT = """
import socket, sys, threading
address, share, *people = sys.argv[1:]
host, port = address.removeprefix("http://").split(":")
share = int(share)
def run(person):
    link = socket.create_connection((host, int(port)))
    for i in range(person * share, (person + 1) * share):
        body = b'{{"success": true}}' if i % 2 else b'{{"success": false}}'
        head = ("POST /studies/even/trials/%d/outcome HTTP/1.1\\r\\nHost: localhost\\r\\n"
            "Authorization: Bearer the token of whoever started it\\r\\n"
            "Content-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % (i, len(body)))
        link.sendall(head.encode() + body)
        got = b""
        while b"}}" not in got:
            more = link.recv(65536)
            assert more
            got += more
        assert got.startswith(b"HTTP/1.1 200"), got
threads = [threading.Thread(target=run, args=(int(p),)) for p in people]
[t.start() for t in threads]
[t.join() for t in threads]
"""


# Asks --------------------------------------------------------------------------------------------


def asks(scale, seed):
    body = {**DOTS, "space": {"x": [0, 1], "y": [0, 1]}, "contexts": None, "name": "asks"}
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "study.db"
        filled(path, body, ((x, y, rng.random() < (x + y) / 2) for x, y in rng.random((1000, 2))))
        with Server(path, *FAST) as server, server.client() as client:
            _timed_asks(server, client, 5, 0.0, rng)  # which rebuild the study
            for pause in (0.0, 0.5):
                n = int((300 if not pause else 200) * scale) or 20
                seconds, used = _timed_asks(server, client, n, pause, rng)
                median, high = np.quantile(seconds, [0.5, 0.99]) * 1e3
                say(
                    "asks",
                    f"{n} asks from 1,000 trials on, a pause of {pause:g} s after each outcome: "
                    f"median {median:.1f} ms, 99th percentile {high:.1f} ms of wall time; "
                    f"{1e3 * used / n:.1f} ms of processor time per ask and outcome",
                )


def filled(path, body, trials):
    """Write rows as a server does, without an experiment that seeks a next trial in between."""
    store = Store(str(path), serving=True)
    studies = Studies(store)
    studies.create(Definition.of(body))
    study = studies.find(body["name"])
    state = State.begun(study.number, study.definition)
    for x, y, success in trials:
        state.add({"x": float(x), "y": float(y)}, bool(success), None, None, None)
    writes = state.taken()
    store.commit(lambda connection: written(connection, study.number, state.head, writes))
    studies.close()
    store.close()


def _timed_asks(server, client, n, pause, rng):
    seconds, begun = [], cpu(server)
    for _ in range(n):
        at = time.perf_counter()
        (trial,) = ask(client, "asks")
        seconds.append(time.perf_counter() - at)
        values = trial["values"]
        tell(client, "asks", trial["id"], bool(rng.random() < (values["x"] + values["y"]) / 2))
        time.sleep(pause)
    return seconds, cpu(server) - begun


# Many --------------------------------------------------------------------------------------------


def many(scale, seed):
    each = max(1, int(100_000 * scale) // PEOPLE)
    names = [f"study{i}" for i in range(10)]
    progress = Progress("many", each * PEOPLE)
    with served() as (server, client):
        for i, name in enumerate(names):
            created(client, {**EVEN, "seed": 10 * seed + i}, name)

        def take_part(person):
            told = []
            with server.client() as own:
                for i in range(each):
                    study = names[(person + i) % 10]
                    (trial,) = ask(own, study)
                    success = outcome_at(trial["values"], person)
                    assert tell(own, study, trial["id"], success).status_code == 200
                    told.append((study, trial["id"], success))
                    progress.add()
            return told

        with ThreadPoolExecutor(PEOPLE) as threads:
            told = [one for some in threads.map(take_part, range(PEOPLE)) for one in some]
        used = cpu(server)
        rows = {name: rows_of(client, name) for name in names}
    twice = sum(len(shared(some)) for some in rows.values())
    lost = _lost(told, rows)
    say(
        "many",
        f"{len(told)} trials by {PEOPLE} clients in 10 studies: {lost} lost, changed or invented, "
        f"{twice} places given twice; {1e3 * used / len(told):.1f} ms of the server's processor "
        "time per trial",
    )
    return lost + twice


def _lost(told, rows):
    """Return how many trials were told and are not there once, or are there and were not told."""
    expected = sorted((name, number, success) for name, number, success in told)
    kept = sorted((name, r["id"], r["success"]) for name, some in rows.items() for r in some)
    return 0 if kept == expected else max(1, len(set(kept) ^ set(expected)))


# Kills -------------------------------------------------------------------------------------------


# Kills of one file, after which another one is begun: every trial is asked again after each kill,
# which takes longer the more there are.
KILLS_PER_FILE = 10


def kills(scale, seed):
    number, rng, answered = max(3, int(300 * scale)), random.Random(seed), 0
    progress = Progress("kills", number)
    for start in range(0, number, KILLS_PER_FILE):
        with tempfile.TemporaryDirectory() as folder:
            path, some = Path(folder) / "study.db", min(KILLS_PER_FILE, number - start)
            answered += _killed(path, some, rng)
            progress.add(some)
    say(
        "kills",
        f"{number} kills, {KILLS_PER_FILE} per file, {answered} outcomes answered: none missing, "
        "none twice, same asks",
    )


def _killed(path, number, rng):
    """Kill a server under load so many times, and return how many outcomes it had answered."""
    load = None
    for kill in range(number + 1):
        with Server(path, *FAST) as server, server.client() as client:
            if kill == 0:
                created(client, EVEN, "even")
            else:
                rows = rows_of(client, "even")
                require_kept(rows, load)
                again = replayed(EVEN, rows)
                (trial,) = ask(client, "even")
                assert dict(again.ask()) == trial["values"]
            if kill == number:
                break
            load = Load(server, "even", 8, load)
            # A busy machine takes its time until anybody is answered: under load, by outcomes.
            end = len(load.answered) + rng.randint(1, 60)
            while len(load.answered) < end:
                time.sleep(0.002)
            time.sleep(rng.uniform(0.0, 0.02))
            server.kill()
            load.end()
    return len(load.answered)


# Rebuilding --------------------------------------------------------------------------------------


def rebuild(scale, seed):
    number = max(1000, int(100_000 * scale))
    rng = np.random.default_rng(seed)
    body = {**DOTS, "space": {"x": [0, 1], "y": [0, 1]}, "contexts": None, "name": "large"}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "study.db")
        filled(path, body, ((x, y, x > y) for x, y in rng.random((number, 2))))
        store = Store(path, serving=True)
        studies = Studies(store)
        first = studies.find("large").submit(lambda s: s.ask(1, {}, None, "k")).result()
        studies.close()
        store.close()
        wall, used = time.perf_counter(), time.process_time()
        store = Store(path, serving=True)
        studies = Studies(store)
        study = studies.find("large")
        assert study.submit(lambda s: s.ask(1, {}, None, "k")).result() == first
        rows = time.process_time() - used
        study.submit(lambda s: s.ask(1, {}, None, None)).result()
        used, wall = time.process_time() - used, time.perf_counter() - wall
        studies.close()
        store.close()
    say(
        "rebuild",
        f"{number} trials: {rows:.1f} s of processor time until the rows are in memory, "
        f"{used:.1f} s until the next ask is answered ({wall:.1f} s of wall time)",
    )


PARTS = {f.__name__: f for f in (outcomes, asks, many, kills, power, requests, rebuild)}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], default=[])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full numbers")
    parser.add_argument("--seed", type=int, default=0, help="which kills, cuts and requests")
    given = parser.parse_args()
    harm = [PARTS[name](given.scale, given.seed) for name in given.parts or PARTS]
    sys.exit(any(harm))


if __name__ == "__main__":
    main()
