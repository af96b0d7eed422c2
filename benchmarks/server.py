"""Figures of the server: python benchmarks/server.py [PART...] [--scale 0.1]; parts by name.

outcomes   outcomes per second told durably by 64 clients at once, SQLite and PostgreSQL
asks       milliseconds of an ask at 1,000 trials told, two features, one client
many       64 clients, 10 studies: every trial there once, no place pending twice
kills      kill −9 under load, restart, compare
power      power cuts at every fsync and at random bytes of the recorded writes
requests   generated requests: statuses, memory
rebuild    seconds to rebuild a study of 10⁵ trials from its rows
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
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

FAST = ("--rate", "1000000")
PEOPLE = 64


@contextmanager
def served():
    """Return a server with an SQLite file of its own, and a client."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(Path(folder) / "study.db", *FAST) as server,
        server.client() as client,
    ):
        yield server, client


def say(name, told):
    print(f"{name:10s} {told}", flush=True)


# Outcomes per second ---------------------------------------------------------------------------


def outcomes(scale):
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
        begun = _cpu(server)
        groups = [range(i, PEOPLE, 4) for i in range(4)]
        at = time.perf_counter()
        runs = [
            subprocess.Popen([sys.executable, "-c", code, server.address, str(share), *map(str, g)])
            for g in groups
        ]
        assert not any(run.wait() for run in runs)
        seconds, used = time.perf_counter() - at, _cpu(server) - begun
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


def _cpu(server):
    """Return the processor time of a server so far."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# Asks --------------------------------------------------------------------------------------------


def asks(scale):
    body = {**DOTS, "space": {"x": [0, 1], "y": [0, 1]}, "contexts": None, "name": "asks"}
    rng = np.random.default_rng(0)
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
    seconds, begun = [], _cpu(server)
    for _ in range(n):
        at = time.perf_counter()
        (trial,) = ask(client, "asks")
        seconds.append(time.perf_counter() - at)
        values = trial["values"]
        tell(client, "asks", trial["id"], bool(rng.random() < (values["x"] + values["y"]) / 2))
        time.sleep(pause)
    return seconds, _cpu(server) - begun


# Many --------------------------------------------------------------------------------------------


def many(scale):
    each = max(1, int(100_000 * scale) // PEOPLE)
    with served() as (server, client):
        for i in range(10):
            created(client, EVEN, f"study{i}")

        def take_part(person):
            told = []
            with server.client() as own:
                for i in range(each):
                    study = f"study{(person + i) % 10}"
                    (trial,) = ask(own, study)
                    success = outcome_at(trial["values"], person)
                    assert tell(own, study, trial["id"], success).status_code == 200
                    told.append((study, trial["id"], success))
            return told

        with ThreadPoolExecutor(PEOPLE) as threads:
            told = [one for some in threads.map(take_part, range(PEOPLE)) for one in some]
        rows = {f"study{i}": rows_of(client, f"study{i}") for i in range(10)}
    kept = {(s, r["id"]): r["success"] for s, some in rows.items() for r in some}
    expected = {(s, number): success for s, number, success in told}
    twice = sum(len(shared(some)) for some in rows.values())
    say(
        "many",
        f"{len(told)} trials by {PEOPLE} clients in 10 studies: "
        f"{'every one there once' if kept == expected else 'LOST'}, {twice} places twice",
    )


# Kills -------------------------------------------------------------------------------------------


# Kills of one file, after which another one is begun: every trial is asked again after each kill,
# which takes longer the more there are.
KILLS_PER_FILE = 10


def kills(scale):
    number, rng, answered = max(3, int(300 * scale)), random.Random(0), 0
    for start in range(0, number, KILLS_PER_FILE):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "study.db"
            answered += _killed(path, min(KILLS_PER_FILE, number - start), rng)
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


# Power cuts --------------------------------------------------------------------------------------

CALLS = "openat,close,pwrite64,write,fsync,fdatasync,ftruncate,unlink,sendto,sendmsg,writev"


def power(scale):
    """Record what a server writes, and cut the power at fsyncs and at random bytes."""
    cuts = max(50, int(10_000 * scale))
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        path = Path(folder) / "study.db"
        tracing = ["strace", "-f", "-q", "-xx", "-s", "1000000", "-e", f"trace={CALLS}"]
        with Server(path, *FAST) as server, server.client() as client:
            created(client, EVEN, "even")
            strace = subprocess.Popen([*tracing, "-o", trace, "-p", str(server.process.pid)])
            time.sleep(2.0)
            base = {name: _bytes(f"{path}{name}") for name in ("", "-wal")}
            load = Load(server, "even", 8)
            time.sleep(max(3.0, 20.0 * scale))
            load.end()
            strace.terminate()
            strace.wait()
            links = {
                int(each.name): os.readlink(each)
                for each in Path(f"/proc/{server.process.pid}/fd").iterdir()
                if each.exists()
            }
        log = _parsed(trace, links, str(path))
        told = _cut(log, base, cuts, Path(folder))
    say("power", told)


def _bytes(path):
    found = Path(path)
    return found.read_bytes() if found.exists() else b""


def _parsed(trace, links, path):
    """Return writes, fsyncs and answers in the order in which they ended."""
    pending, log = {}, []
    for line in trace.read_text(errors="replace").splitlines():
        thread, _, call = line.partition(" ")
        call = call.strip()
        if call.endswith("<unfinished ...>"):
            pending[thread] = call.removesuffix("<unfinished ...>")
            continue
        if call.startswith("<..."):
            call = pending.pop(thread, "") + call.partition("resumed>")[2]
        found = re.match(r"(\w+)\((\d+)", call)
        if found is None:
            continue
        name, number = found[1], int(found[2])
        where = links.get(number, "")
        kind = {path: "", f"{path}-wal": "-wal"}.get(where)
        data = re.search(r'"((?:\\x[0-9a-f]{2})*)"', call)
        raw = bytes.fromhex(data[1].replace("\\x", "")) if data else b""
        if kind is not None and name == "pwrite64":
            offset = int(re.search(r", (\d+)\s*\)\s+= \d+", call)[1])
            log.append(("write", kind, offset, raw))
        elif kind is not None and name in ("fsync", "fdatasync"):
            log.append(("sync", kind, 0, b""))
        elif kind is not None and name == "ftruncate":
            log.append(("truncate", kind, int(re.search(r", (\d+)\s*\)", call)[1]), b""))
        elif kind is None and b'"state": "told"' in raw:
            found = re.findall(rb'\{"id": (\d+), "state": "told", "success": (\w+)', raw)
            log += [("answer", "", int(number), success) for number, success in found]
    return log


def _cut(log, base, cuts, folder):
    """Return what is found after power cuts: after every fsync, and within writes after it."""
    rng = random.Random(0)
    syncs = [i for i, each in enumerate(log) if each[0] == "sync"]
    writes = [i for i, each in enumerate(log) if each[0] == "write"]
    moments = [(i + 1, None) for i in syncs]
    moments += [(i, rng.random()) for i in rng.choices(writes, k=cuts)]
    moments.sort(key=lambda each: each[0])
    durable = {kind: bytearray(data) for kind, data in base.items()}
    waiting, answered, at, lost, broken = [], {}, 0, 0, 0
    for moment, share in moments:
        while at < moment:
            what, kind, where, data = log[at]
            if what == "answer":
                answered[where] = data == b"true"
            elif what == "sync":
                for each in [one for one in waiting if one[1] == kind]:
                    _apply(durable, each)
                waiting = [one for one in waiting if one[1] != kind]
            else:
                waiting.append(log[at])
            at += 1
        state = {kind: bytearray(data) for kind, data in durable.items()}
        # What was not synchronised is there in part, in any order.
        for each in waiting:
            if rng.random() < 0.5:
                _apply(state, each)
        if share is not None:
            what, kind, where, data = log[moment]
            _apply(state, (what, kind, where, data[: int(share * len(data))]))
        missing, is_sound = _opened(state, answered, folder)
        lost += missing
        broken += not is_sound
    return (
        f"{len(syncs)} fsyncs and {cuts} random bytes cut, {len(answered)} outcomes answered: "
        f"{lost} missing, {broken} files that do not open"
    )


def _apply(state, change):
    what, kind, where, data = change
    file = state[kind]
    if what == "truncate":
        del file[where:]
        return
    file.extend(b"\0" * (where + len(data) - len(file)))
    file[where : where + len(data)] = data


def _opened(state, answered, folder):
    path = folder / "cut.db"
    for kind in ("", "-wal", "-shm"):
        Path(f"{path}{kind}").unlink(missing_ok=True)
    for kind, data in state.items():
        Path(f"{path}{kind}").write_bytes(data)
    with closing(sqlite3.connect(path)) as connection:
        try:
            rows = connection.execute("SELECT id, success FROM trials WHERE state = 1").fetchall()
            (said,) = connection.execute("PRAGMA quick_check").fetchone()
        except sqlite3.DatabaseError:
            return len(answered), False
    told = {number: bool(success) for number, success in rows}
    return sum(told.get(n) != s for n, s in answered.items()), said == "ok"


# Requests ----------------------------------------------------------------------------------------


def requests(scale):
    number, rng = max(500, int(50_000 * scale)), random.Random(0)
    with served() as (server, client):
        created(client, EVEN, "even")
        paths = client.get("/openapi.json").json()["paths"]
        routes = [(m, p) for p, ms in paths.items() for m in ms if "events" not in p]
        for _ in range(200):
            _odd(client, rng, routes)
        before, statuses = _memory(server), Counter()

        def some(seed):
            own_rng = random.Random(seed)
            with server.client() as own:
                return Counter(_odd(own, own_rng, routes) for _ in range(number // 8))

        with ThreadPoolExecutor(8) as threads:
            for counted in threads.map(some, range(8)):
                statuses += counted
        after = _memory(server)
        assert client.get("/health").status_code == 200
    failed = sum(n for status, n in statuses.items() if status in (500, 502))
    say(
        "requests",
        f"{sum(statuses.values())} requests: {failed} answered by 500, "
        f"memory {after - before:+.0f} MiB; {dict(sorted(statuses.items()))}",
    )


def _memory(server):
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


ODD = [None, True, -1, 0, 1, 10**30, 1e308, float("nan"), "", "x" * 1000, [], {}, [[[]]], "two"]


def _value(rng, depth=0):
    if depth < 3 and rng.random() < 0.3:
        return {rng.choice("nxyk"): _value(rng, depth + 1) for _ in range(rng.randint(0, 4))}
    return rng.choice(ODD)


def _odd(client, rng, routes):
    """Send a request that is wrong in some way, or right, and return its status."""
    method, path = rng.choice(routes)
    study = rng.choice(["even", "even", "none", "%00", "a b", "x" * 300])
    trial = rng.choice(["0", "1", "99999999", "-1", "x", "9" * 40])
    path = path.replace("{study}", study).replace("{trial}", trial).replace("{name}", "a.js")
    names = (
        "n",
        "key",
        "fixed",
        "success",
        "context",
        "values",
        "participant",
        "name",
        "space",
        "goal",
    )
    body = {name: _value(rng) for name in rng.sample(names, rng.randint(0, 4))}
    content = json.dumps(body).encode()
    kind = rng.random()
    if kind < 0.1:
        content = rng.randbytes(rng.randint(0, 2000))
    elif kind < 0.12:
        content = b"[" * 50_000
    elif kind < 0.13:
        content = b" " * (3 << 20)
    headers = {"content-type": rng.choice(["application/json", "application/yaml", "x/y"])}
    query = {
        rng.choice(["after", "limit", "grid", "x", "format", "level"]): str(rng.choice(ODD))[:50]
    }
    try:
        return client.request(
            method, path, content=content, headers=headers, params=query
        ).status_code
    except httpx.InvalidURL:
        return 0
    except httpx.TransportError:  # the server closed before a huge body was sent
        return -1


# Rebuilding --------------------------------------------------------------------------------------


def rebuild(scale):
    number = max(1000, int(100_000 * scale))
    rng = np.random.default_rng(0)
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], default=[])
    parser.add_argument("--scale", type=float, default=1.0, help="share of the full numbers")
    given = parser.parse_args()
    for name in given.parts or PARTS:
        PARTS[name](given.scale)


if __name__ == "__main__":
    main()
