"""One server process for all tests of a worker that need no more than one."""

import os
import shutil

import pytest
from tests.server.serving import TOKEN, PostgreSQL, Server, binary


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
    """A database, if PostgreSQL is installed, as it must be where changes are checked."""
    if not shutil.which(str(binary("initdb"))):
        why = "no PostgreSQL found for the tests of the server: apt-get install postgresql"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    with PostgreSQL() as database:
        yield database
