"""One server process for all tests of a worker that need no more than one."""

import pytest
from tests.server.serving import TOKEN, PostgreSQL, Server


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A server with an SQLite file."""
    with Server(tmp_path_factory.mktemp("server") / "study.db", "--rate", "100000") as running:
        yield running


@pytest.fixture(scope="session")
def client(server):
    """Whoever started it."""
    with server.client(TOKEN) as client:
        yield client


@pytest.fixture(scope="session")
def postgresql():
    """A database."""
    with PostgreSQL() as database:
        yield database
