"""One server process per test worker, for all tests that need only one."""

import os
import shutil

import pytest
from tests.server.serving import TOKEN, PostgreSQL, Server, binary


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """Return a server with an SQLite file."""
    with Server(tmp_path_factory.mktemp("server") / "study.db", "--rate", "100000") as running:
        yield running


@pytest.fixture(scope="session")
def client(server):
    """Return a client with the server's token."""
    with server.client(TOKEN) as client:
        yield client


@pytest.fixture(scope="session")
def postgresql():
    """Return a database if PostgreSQL is installed, which is required in CI."""
    if not shutil.which(str(binary("initdb"))):
        why = "no PostgreSQL found for the tests of the server: apt-get install postgresql"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    with PostgreSQL() as database:
        yield database
