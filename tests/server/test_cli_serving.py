"""The commands `betafield serve`, `tokens` and `backup`, on a file that is being served."""

import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import httpx
import pytest
from tests.server.serving import (
    DOTS,
    EVEN,
    SSL,
    TOKEN,
    Server,
    ask,
    created,
    environment_with,
    rows_of,
    tell,
    wait,
)

from betafield.cli import main

YAML = """
name: stripes
space: {contrast: [0, 1]}
goal: {kind: LevelSet, level: 0.75, under: two}
contexts: {two: {guess: 0.5, lapse: 0.02}}
seed: 1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of this module's server."""
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(scope="module")
def served(folder):
    """Return a server started with a study."""
    (folder / "stripes.yaml").write_text(YAML)
    with Server(folder / "study.db", "--study", folder / "stripes.yaml") as running:
        yield running


@pytest.fixture
def said(capsys):
    """Return the output of a command, if its exit status is as expected."""

    def run(*arguments, status=0):
        assert main(list(map(str, arguments))) == status
        out, err = capsys.readouterr()
        return out if status == 0 else err

    return run


def facts(lines):
    """Return the facts that a server prints at its start."""
    return dict(line.rsplit(" ", 1) for line in lines if "token" in line)


def test_a_study_of_a_file_is_created_once(served, folder):
    tokens = facts(served.told)
    assert set(tokens) == {f"stripes {role} token" for role in ("owner", "run", "view")}
    with served.client(tokens["stripes run token"]) as runner:
        (trial,) = ask(runner, "stripes")
        assert tell(runner, "stripes", trial["id"], True, "two").status_code == 200
        assert runner.get("/studies/stripes/trials").status_code == 403
    shutil.copy(folder / "stripes.yaml", folder / "again.yaml")
    command = [sys.executable, "-m", "betafield", "backup", folder / "study.db", folder / "2.db"]
    told = subprocess.run(
        list(map(str, command)),
        env=environment_with(TOKEN),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert re.search(r"trials\s+1\b", told)
    with (
        Server(folder / "2.db", "--study", folder / "again.yaml", token=None) as second,
        second.client(tokens["stripes view token"]) as viewer,
    ):
        assert not facts(line for line in second.told if "?token=" not in line)
        (link,) = [line.split(" ")[1] for line in second.told if line.startswith("dashboard ")]
        assert httpx.get(link, verify=SSL).status_code == 303
        (row,) = rows_of(viewer, "stripes")
        assert (row["success"], row["values"]) == (True, trial["values"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("space: [", "not valid YAML"),
        ("space: {x: [1, 0]}\ngoal: {kind: Everywhere}", "low must be below"),
    ],
)
def test_a_study_file_that_is_wrong_is_told_before_anything_is_served(
    text, message, said, tmp_path
):
    (tmp_path / "odd.yaml").write_text(text)
    told = said("serve", tmp_path / "a.db", "--study", tmp_path / "odd.yaml", "--port", 0, status=1)
    assert message in " ".join(told.split())


def test_check_tells_what_a_file_holds(served, said, tmp_path):
    file = served.process.args[4]
    told = " ".join(said("serve", file, "--check", status=1).split())
    assert "another server serves it" in told
    said("backup", file, tmp_path / "copy.db")
    told = said("serve", tmp_path / "copy.db", "--check")
    assert re.search(r"stripes: \d+ told, \d+ pending, \d+ abandoned", told)
    assert "all is well" in told
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"no database at all" * 100)
    told = said("serve", damaged, "--check", status=1)
    assert f"{damaged}: file is not a database" in told
    assert "try again" not in told
    none = tmp_path / "none" / "study.db"
    assert f"{none}: it cannot be opened" in said("serve", none, "--check", status=1)
    with closing(sqlite3.connect(tmp_path / "copy.db")) as connection, connection:
        connection.execute("UPDATE trials SET id = 7")
    assert "found trial 7 where 0 is due" in said(
        "serve", tmp_path / "copy.db", "--check", status=1
    )


def test_a_backup_appears_whole_or_not_at_all(served, said, tmp_path):
    file = served.process.args[4]
    with served.client() as client:
        created(client, EVEN, "backed")
        for trial in ask(client, "backed", n=5):
            tell(client, "backed", trial["id"], True)
    (tmp_path / "taken.db").write_text("mine")
    assert "the file already exists" in said("backup", file, tmp_path / "taken.db", status=1)
    assert (tmp_path / "taken.db").read_text() == "mine"
    assert "no such file" in said("backup", tmp_path / "none.db", tmp_path / "b.db", status=1)
    assert "pg_dump" in said("backup", "postgresql://lab@db/s", tmp_path / "b.db", status=2)
    said("backup", file, tmp_path / "b.db")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b.db", "taken.db"]
    with closing(sqlite3.connect(tmp_path / "b.db")) as connection:
        query = (
            "SELECT count(*) FROM trials JOIN studies ON studies.id = study "
            "WHERE name = 'backed' AND state = 1"
        )
        assert connection.execute(query).fetchone() == (5,)


def test_tokens_are_made_listed_and_revoked_while_a_file_is_served(served, said):
    file = served.process.args[4]
    with served.client() as client:
        created(client, DOTS, "tablets")
    label = "tablet 3"
    told = said("tokens", "make", file, "--study", "tablets", "--role", "run", "--label", label)
    made = dict(line.split(maxsplit=1) for line in told.splitlines() if line.strip())
    with served.client(made["token"]) as tablet:
        wait(lambda: tablet.post("/studies/tablets/asks", json={}).status_code == 200)
        assert tablet.get("/studies/tablets/status").status_code == 403
        listed = said("tokens", "list", file)
        assert made["id"] in listed
        assert label in listed
        assert made["token"] not in listed
        assert f"revoked {made['id']}" in said("tokens", "revoke", file, "--id", made["id"])
        wait(lambda: tablet.post("/studies/tablets/asks", json={}).status_code == 401)
    line = next(each for each in said("tokens", "list", file).splitlines() if made["id"] in each)
    assert len(re.findall(r"\d{4}-\d\d-\d\d \d\d:\d\d", line)) == 2


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("make", "--study", "none", "--role", "run"), 1, "'none'; there is no study of this name"),
        (("make", "--study", "stripes", "--role", "king"), 2, "owner, run and view"),
        (("make", "--role", "run"), 2, "owner, run and view"),
        (("revoke", "--id", "none"), 1, "found no id 'none'"),
        (("revoke",), 2, "--id: found none"),
        (("burn",), 2, "make, list or revoke"),
    ],
)
def test_impossible_commands_about_tokens_are_refused(served, said, arguments, status, message):
    action, *others = arguments
    told = said("tokens", action, served.process.args[4], *others, status=status)
    assert message in " ".join(told.split())


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ((), 2, "found both or neither"),
        (("a.db", "--database", "sqlite:///b.db"), 2, "found both or neither"),
        (("a.db", "--port", "70000"), 2, "0 to 65535"),
        (("a.db", "--rate", "0"), 2, "positive"),
        (("a.db", "--host", "0.0.0.0"), 1, "--token"),
        (("a.db", "--token", "short"), 1, "16 characters"),
        (("a.db", "--origin", "*"), 1, "the origin of one site"),
        (("--database", "mysql://h/d"), 1, "sqlite or postgresql"),
        (("a.db", "--study", "none.yaml"), 1, "none.yaml"),
    ],
)
def test_impossible_servers_are_refused(said, monkeypatch, tmp_path, arguments, status, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BETAFIELD_TOKEN", raising=False)
    told = said("serve", *arguments, status=status)
    assert message in " ".join(told.split())


def test_a_port_that_is_taken_is_named(served, said, tmp_path):
    port = served.address.rpartition(":")[2]
    told = said("serve", tmp_path / "b.db", "--port", port, status=1)
    assert f"--port: 127.0.0.1:{port} cannot be listened on" in told
    assert not (tmp_path / "b.db").exists()


CONNECTING = """
import os, socket, sys
from betafield.server.running import Served, serve

def tell(name, value):
    if name == "address":
        host, port = value.removeprefix("http://").split(":")
        socket.create_connection((host, int(port)))
        print("connected", flush=True)
        os._exit(0)

serve(Served(sys.argv[1], port=0), tell)
"""


def test_an_address_that_is_printed_refuses_nobody(tmp_path):
    command = [sys.executable, "-c", CONNECTING, tmp_path / "study.db"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.stdout == "connected\n", run.stderr
