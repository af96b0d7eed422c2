"""One server process: where it listens, who has access, how it starts and stops."""

from __future__ import annotations

import ipaddress
import secrets
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from betafield.server import definitions, logs
from betafield.server.app import RATE, App, create_app
from betafield.server.definitions import Definition
from betafield.server.security import LOOPBACK, host_of
from betafield.server.storage import Store
from betafield.server.studies import Studies

# Seconds that open requests have to finish when the server stops.
GRACE = 10
# Seconds after which a computing thread yields to others. With Python's default of 0.005, a request
# that arrives while a next trial is computed waits that long whenever it touches its socket.
SWITCH = 0.0005


class Served(NamedTuple):
    """The options of a server: what it serves, where, and to whom."""

    database: str
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    origins: Sequence[str] = ()
    hosts: Sequence[str] = ()
    study: str | None = None
    rate: float = RATE


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only.

    Examples
    --------
    >>> is_loopback("localhost"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def checked(served: Served) -> Served:
    """Return the options of a server, or raise if they are not safe."""
    if not is_loopback(served.host) and served.token is None:
        raise ValueError(
            f"--host: found {served.host}, which others reach; name a token with --token or "
            "BETAFIELD_TOKEN, and put a proxy with TLS in front"
        )
    if served.token is not None and len(served.token) < 16:
        raise ValueError("--token: found fewer than 16 characters; use a long random text")
    for origin in served.origins:
        if origin == "*" or not origin.startswith(("http://", "https://")) or origin.endswith("/"):
            raise ValueError(
                f"--origin: found {origin}; the origin of one site is needed, such as "
                "https://lab.example"
            )
    return served


def hosts_of(served: Served) -> list[str]:
    """Return the host names under which the server may be reached."""
    own = LOOPBACK if is_loopback(served.host) else (served.host,)
    return sorted({*own, *map(host_of, served.hosts)})


def check(served: Served) -> list[tuple[str, str]]:
    """Open the database, rebuild every study, and return a summary."""
    checked(served)
    store = Store(served.database, serving=True)
    studies = Studies(store)
    try:
        store.probe()
        found = [("database", str(store.url))]
        for row in store.studies():
            counts = studies.find(row.name).submit(lambda state: state.replay.counts).result()
            told = ", ".join(f"{n:,} {state}" for state, n in counts.items())
            found.append(("study", f"{row.name}: {told}"))
        return [*found, ("check", "all is well")]
    finally:
        studies.close()
        store.close()


def serve(served: Served, tell: Callable[[str, str], None]) -> None:
    """Serve until stopped; `tell` prints a name and a value."""
    checked(served)
    # The study is read first, so that its errors come before the database is opened.
    definition = None if served.study is None else definitions.read(served.study)
    token = served.token or f"bf_{secrets.token_urlsafe(32)}"
    with _listening(served.host, served.port) as listening:
        app = create_app(
            Store(served.database, serving=True),
            token,
            hosts=hosts_of(served),
            origins=served.origins,
            rate=served.rate,
        )
        made = None if definition is None else _made(app.hub.studies, definition)
        app.hub.tokens.refresh()  # for the tokens of the new study
        logs.start()
        sys.setswitchinterval(SWITCH)
        address = f"http://{_spelled(served.host)}:{listening.getsockname()[1]}"
        # Whoever connects from now on waits until it answers, instead of being refused.
        listening.listen()
        _announce(tell, address, served, token, made)
        _Server(_config(app), app.hub).run([listening])


def _config(app: App) -> Any:
    import uvicorn

    return uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_graceful_shutdown=GRACE,
        limit_concurrency=4096,
        h11_max_incomplete_event_size=1 << 16,
    )


def _announce(
    tell: Callable[[str, str], None],
    address: str,
    served: Served,
    token: str,
    made: dict[str, Any] | None,
) -> None:
    tell("address", address)
    if served.token is None:
        tell("dashboard", f"{address}/?token={token}")
    for role, each in (made["tokens"] if made else {}).items():
        tell(f"{made['name'] if made else ''} {role} token", each)
    if not is_loopback(served.host):
        tell("note", "tokens travel as plain text: put a proxy with TLS in front")
    tell("stop", "Ctrl-C")


def _made(studies: Studies, definition: Definition) -> dict[str, Any] | None:
    """Create a study unless there is one with its name."""
    if any(row.name == definition.name for row in studies.store.studies()):
        return None
    return studies.create(definition)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With its protocol named, asyncio lets every connection send at once (TCP_NODELAY). Otherwise
    # the second part of an answer waits until the client has acknowledged the first, 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        what = f"--host, --port: {_spelled(host)}:{port} cannot be listened on"
        raise ValueError(f"{what}: {error.strerror}") from error
    return listening


def _spelled(host: str) -> str:
    return f"[{host}]" if ":" in host else host


class _Server:
    """uvicorn's server, extended to notify listeners of events when it stops."""

    def __init__(self, config: Any, hub: Any) -> None:
        import uvicorn

        class Server(uvicorn.Server):
            def handle_exit(self, sig: int, frame: Any) -> None:  # noqa: ARG002
                """Stop once open requests have finished; at a second Ctrl-C, immediately."""
                hub.is_closing = True
                self.force_exit = self.should_exit and sig == signal.SIGINT
                self.should_exit = True

        self._server = Server(config)

    def run(self, sockets: list[socket.socket]) -> None:
        """Serve until stopped."""
        self._server.run(sockets=sockets)
