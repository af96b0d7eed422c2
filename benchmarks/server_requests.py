"""Generated requests: how they are answered, and what memory they leave behind.

One fifth is generated from the OpenAPI document by schemathesis. The others are wrong in ways that
a schema does not know: random bytes, huge bodies, deep JSON, NaN. Beside them, slow clients
send a body bit by bit, and most of them never finish.
"""

from __future__ import annotations

import json
import random
import socket
import threading
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import httpx
import hypothesis
from server_setup import Progress, memory, say, served
from tests.server.serving import EVEN, TOKEN, created

THREADS = 8
# Clients that are slow at the same time, and seconds between the parts of a body.
SLOW, PAUSE = 32, 2.0


def requests(scale, seed):
    number, rng = max(500, int(50_000 * scale)), random.Random(seed)
    progress = Progress("requests", number)
    with served() as (server, client):
        created(client, EVEN, "even")
        document = client.get("/openapi.json").json()
        routes = [(m, p) for p, ms in document["paths"].items() for m in ms if "events" not in p]
        for _ in range(200):
            _odd(client, rng, routes)
        before = memory(server)
        with Slow(server.address) as slow:
            statuses = _schematic(server, document, number // 5, seed, progress)
            left = number - sum(statuses.values())  # some operations have few cases
            statuses += _odd_ones(server, routes, left, seed, progress)
        after = memory(server)
        assert client.get("/health").status_code == 200
    statuses += slow.statuses
    failed = sum(n for status, n in statuses.items() if status >= 500 and status != 503)
    say(
        "requests",
        f"{sum(statuses.values())} requests, {sum(slow.statuses.values())} of them slow: {failed} "
        f"answered by 500, memory {after - before:+.0f} MiB; {dict(sorted(statuses.items()))}",
    )
    return failed + (after - before > 200)


# Wrong ones --------------------------------------------------------------------------------------


def _odd_ones(server, routes, number, seed, progress):
    """Return how often each status was answered to odd requests."""

    def some(thread):
        rng, found = random.Random(f"{seed} {thread}"), Counter()
        with server.client() as own:
            for _ in range(-(-number // THREADS)):
                found[_odd(own, rng, routes)] += 1
                progress.add()
        return found

    with ThreadPoolExecutor(THREADS) as threads:
        return sum(threads.map(some, range(THREADS)), Counter())


ODD = [None, True, -1, 0, 1, 10**30, 1e308, float("nan"), "", "x" * 1000, [], {}, [[[]]], "two"]
NAMES = ("n", "key", "fixed", "success", "context", "values", "participant")
NAMES += ("name", "space", "goal")


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
    headers = {"content-type": rng.choice(["application/json", "application/yaml", "x/y"])}
    name = rng.choice(["after", "limit", "grid", "x", "format", "level"])
    options = {"headers": headers, "params": {name: str(rng.choice(ODD))[:50]}}
    try:
        return client.request(method, path, content=_content(rng), **options).status_code
    except httpx.InvalidURL:
        return 0
    except httpx.TransportError:  # the server closed before a huge body was sent
        return -1


def _content(rng):
    kind = rng.random()
    if kind < 0.1:
        return rng.randbytes(rng.randint(0, 2000))
    if kind < 0.12:
        return b"[" * 50_000
    if kind < 0.13:
        return b" " * (3 << 20)
    names = rng.sample(NAMES, rng.randint(0, 4))
    return json.dumps({name: _value(rng) for name in names}).encode()


# From the document -------------------------------------------------------------------------------


def _schematic(server, document, number, seed, progress):
    """Return how often each status was answered to requests that schemathesis generates."""
    import schemathesis

    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=server.address)
    schema = schema.exclude(path_regex="/events$")
    operations = [result.ok() for result in schema.get_all_operations()]
    found = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for operation in operations:
            found += _of_one(operation, number // len(operations) + 1, seed, progress)
    return found


def _of_one(operation, number, seed, progress):
    """Return how often each status was answered to requests of one operation."""
    found = Counter()

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=number,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy())
    def answered(case):
        if "study" in (case.path_parameters or {}) and sum(found.values()) % 2:
            case.path_parameters["study"] = "even"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        found[case.call(headers=headers, timeout=600).status_code] += 1
        progress.add()

    answered()
    return found


# Slow ones ---------------------------------------------------------------------------------------


class Slow:
    """Clients that send a body bit by bit for as long as the others send requests."""

    def __init__(self, address):
        host, port = address.removeprefix("http://").split(":")
        self._address, self.statuses = (host, int(port)), Counter()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(i,)) for i in range(SLOW)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _run(self, seed):
        rng = random.Random(seed)
        while not self._ended.is_set():
            self.statuses[self._one(rng.randint(1, 30))] += 1

    def _one(self, parts):
        """Send that many parts of a body of 10, and return the status; -1 if there is none."""
        head = (
            "POST /studies/even/asks HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {TOKEN}\r\nContent-Length: 10\r\n\r\n"
        )
        with socket.create_connection(self._address, 60) as link:
            try:
                link.sendall(head.encode())
                for _ in range(min(parts, 10)):
                    if self._ended.wait(PAUSE):
                        return -1
                    link.sendall(b" ")
                if parts > 20:
                    return -1  # it goes away
                answer = link.recv(64)
            except OSError:
                return -1
        return int(answer.split()[1]) if answer else -1
