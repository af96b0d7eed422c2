"""Checks before a route is reached: host, size of bodies, requests per second.

`Guard` is plain ASGI. It refuses foreign hosts (so that a page of another site cannot reach a
loopback server by DNS rebinding) and bodies that are too large or too slow, and adds security
headers for browsers.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

from betafield import checks
from betafield.server.problems import MEDIA_TYPE, Problem

Scope = Any
# Most bytes of a body, and most seconds until it has arrived.
LARGEST, SLOWEST = 1 << 20, 20.0
# Excess bytes are read and discarded up to this size, so that the client still gets the answer.
DRAINED = 1 << 24
# Most tokens and addresses whose requests are counted at once.
MOST_COUNTED = 10_000
LOOPBACK = ("127.0.0.1", "localhost", "::1")
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


class Bucket:
    """A rate limit: one token bucket per client, refilled at that rate.

    Parameters
    ----------
    rate : float
        Requests per second.
    burst : float
        Most requests at once.

    Examples
    --------
    >>> bucket = Bucket(rate=1.0, burst=2.0)
    >>> [bucket.take("me", now=0.0) for _ in range(3)], bucket.take("me", now=1.5)
    ([True, True, False], True)
    """

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str, now: float | None = None) -> bool:
        """Return whether one more request is allowed."""
        now = time.monotonic() if now is None else now
        left, at = self._left.pop(who, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        self._left[who] = (left - 1.0 if left >= 1.0 else left), now
        while len(self._left) > MOST_COUNTED:
            self._left.popitem(last=False)
        return left >= 1.0

    def require(self, who: str) -> None:
        """Raise if there were too many requests."""
        if not self.take(who):
            detail = f"requests: found more than {self._rate:g} per second; wait and try again"
            raise Problem(429, detail, {"Retry-After": "1"})


def host_of(header: str) -> str:
    """Return the host of a `Host` header, without its port.

    Examples
    --------
    >>> host_of("Example.org:8000"), host_of("[::1]:8000")
    ('example.org', '::1')
    """
    header = header.strip().lower()
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


class Guard:
    """Refuses requests to other hosts, and bodies that are too large or too slow.

    Parameters
    ----------
    app : ASGI application
    hosts : iterable of str
        Host names under which this server may be reached.
    largest : int
        Most bytes of a body.
    """

    def __init__(self, app: Any, hosts: Iterable[str], largest: int = LARGEST) -> None:
        self._app, self._hosts, self._largest = app, frozenset(hosts), largest

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            headers = {name: value for name, value in scope["headers"] if name in _NEEDED}
            self._require_host(headers)
            body = await self._body(headers, scope["method"], receive)
        except Problem as problem:
            await answer(problem, scope, send)
            return
        message = {"type": "http.request", "body": body, "more_body": False}
        await self._app(scope, again(message, receive), _with_headers(send))

    def _require_host(self, headers: dict[bytes, bytes]) -> None:
        host = host_of(headers.get(b"host", b"").decode("latin-1"))
        if "*" not in self._hosts and host not in self._hosts:
            raise Problem(
                421,
                f"Host: found {host[:80]!r}; this server is reached by "
                f"{checks.listed(sorted(self._hosts))}",
            )

    async def _body(self, headers: dict[bytes, bytes], method: str, receive: Any) -> bytes:
        """Return the whole body; raise if it is too large or too slow."""
        told = headers.get(b"content-length", b"0")
        if told.isdigit() and int(told[:20]) > DRAINED:
            raise Problem(413, f"body: found more than {self._largest} bytes")
        if method in ("GET", "HEAD") and told == b"0" and b"transfer-encoding" not in headers:
            return b""
        try:
            async with asyncio.timeout(SLOWEST):
                return await self._read(receive)
        except TimeoutError:
            raise Problem(408, f"body: it did not arrive within {SLOWEST:g} seconds") from None

    async def _read(self, receive: Any) -> bytes:
        parts, size = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Problem(400, "body: the connection ended before it was complete")
            size += len(message.get("body", b""))
            if size <= self._largest:
                parts.append(message.get("body", b""))
            if size > DRAINED or (size > self._largest and not message.get("more_body")):
                raise Problem(413, f"body: found more than {self._largest} bytes")
            if not message.get("more_body"):
                return b"".join(parts)


_NEEDED = (b"host", b"content-length", b"transfer-encoding")


def again(message: Any, receive: Any) -> Any:
    """Return a `receive` that first repeats a message that was already read."""
    is_given = False

    async def given() -> Any:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return message

    return given


def _with_headers(send: Any) -> Any:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            told = {name for name, _ in message["headers"]}
            more = [each for each in HEADERS if each[0] not in told]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return sending


async def answer(problem: Problem, scope: Scope, send: Any) -> None:
    """Send a problem."""
    body = problem.body(scope["path"])
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
        # The rest of the request is not read.
        (b"connection", b"close"),
        *((k.lower().encode(), v.encode()) for k, v in problem.headers.items()),
        *HEADERS,
    ]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
