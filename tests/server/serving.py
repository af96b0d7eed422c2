"""A real server process, a real PostgreSQL, and helpers for clients."""

import contextlib
import json
import os
import resource
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
from tests.server.nursery import Child, nursery

from betafield.server.definitions import Definition

ROOT = Path(__file__).parents[2]
TOKEN = "the token of whoever started it"
DOTS = {
    "name": "dots",
    "space": {"x": [0, 1]},
    "goal": {"kind": "LevelSet", "level": 0.75},
    "contexts": {"two": {"guess": 0.5, "lapse": 0.02}},
    "seed": 1,
}
# Quick to ask, whatever the outcomes.
EVEN = {
    "name": "even",
    "space": {"x": [0, 1], "y": [-1, 1]},
    "goal": {"kind": "Everywhere"},
    "strategy": "sobol",
    "seed": 2,
}


# Made once, because it takes longer than many requests.
SSL = ssl.create_default_context()


class Server:
    """A process of the nursery that runs `betafield serve`."""

    def __init__(self, *arguments, token=TOKEN, port=0, **environment):
        given = ["serve", *map(str, arguments), "--port", str(port)]
        self.process = Child(nursery(), given, environment_with(token, **environment))
        self.told = []
        # The log is drained into a file, because a full pipe would block the server.
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._reader = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=self._log)
        while not self.told or not self.told[-1].startswith("stop "):
            line = self.process.stdout.readline()
            assert line, self.log()
            self.told.append(line.rstrip("\n"))
        self.address = self.told[0].removeprefix("address ")
        # Once the address is printed, nobody is refused.
        assert httpx.get(f"{self.address}/docs", verify=SSL, timeout=60).status_code == 200

    def log(self):
        """Return what it has written to standard error so far."""
        self.process.poll() is not None and self._reader.wait()
        self._log.seek(0)
        return self._log.read()

    def client(self, token=TOKEN, **options):
        """Return a client that sends this token."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(
            base_url=self.address, headers=headers, timeout=60, verify=SSL, **options
        )

    def kill(self):
        """End it like a crash."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """End it as an operator would, and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        self._reader.wait()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.kill()
        self._reader.wait()
        for file in (self.process.stdout, self.process.stderr, self._log):
            file.close()


def environment_with(token, **more):
    """Return the environment of a server."""
    found = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "BETAFIELD_TOKEN": token or ""}
    return found | more


def limited(server, size):
    """Limit the size of a server's files, like a full disk; None: no limit."""
    most = resource.RLIM_INFINITY if size is None else size
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


def wait(is_so, seconds=60):
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(httpx.TransportError):
            if is_so():
                return
        time.sleep(0.05)
    raise AssertionError("it did not come about")


def created(client, definition, name):
    """Create a study, and return its tokens."""
    answer = client.post("/studies", json={**definition, "name": name})
    assert answer.status_code == 201, answer.text
    return answer.json()["tokens"]


def ask(client, study, **body):
    """Return the trials of an ask."""
    answer = client.post(f"/studies/{study}/asks", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["trials"]


def tell(client, study, number, success, context=None):
    """Return the answer to an outcome."""
    body = {"success": success, "context": context}
    return client.post(f"/studies/{study}/trials/{number}/outcome", json=body)


def rows_of(client, study):
    """Return all trials of a study."""
    found, after = [], -1
    while after is not None:
        page = client.get(f"/studies/{study}/trials", params={"after": after}).json()
        found += page["trials"]
        after = page["next"]
    return found


def replayed(definition, rows):
    """Return an experiment with the same history, in which each ask is asked again.

    If every trial lies where the experiment itself puts it, asks are a function of the seed and the
    list of trials.
    """
    study = Definition.of(definition)
    experiment, trials = study.experiment(), {}
    happened = [(r["asked_seq"], 0, r) for r in rows]
    happened += [(r["ended_seq"], 1, r) for r in rows if r["ended_seq"] is not None]
    for _, is_end, row in sorted(happened, key=lambda each: each[:2]):
        context = study.context(row["context"])
        if not is_end and row["asked_seq"] != row["ended_seq"]:
            trials[row["id"]] = trial = experiment.ask()
            assert (trial.id, dict(trial)) == (row["id"], row["values"])
        elif not is_end:
            experiment.tell(row["values"], success=row["success"], context=context)
        elif row["state"] == "told" and row["id"] in trials:
            experiment.tell(trials[row["id"]], success=row["success"], context=context)
        elif row["id"] in trials:
            experiment.abandon(trials[row["id"]])
    return experiment


def shared(rows):
    """Return the places that two people had at the same time."""
    found, pending = [], {}
    happened = [(r["asked_seq"], 0, r) for r in rows]
    happened += [(r["ended_seq"], 1, r) for r in rows if r["ended_seq"] is not None]
    for _, is_end, row in sorted(happened, key=lambda each: (each[0], each[1], each[2]["id"])):
        place = tuple(row["values"].values())
        if is_end:
            del pending[place]
        elif place in pending:
            found.append(place)
        else:
            pending[place] = row["id"]
    return found


def outcome_at(values, number):
    """Return an outcome that depends on the place and the number, so that mix-ups show."""
    return bool(np.random.default_rng(number).random() < next(iter(values.values())))


class PostgreSQL:
    """A PostgreSQL server in its own folder, reached by a socket there."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="bfpg", dir="/tmp"))
        if os.getuid() == 0:
            shutil.chown(self.folder, "nobody")
        data = self.folder / "data"
        self._run("initdb", "--no-sync", "--auth=trust", "--username=lab", "-D", data)
        self.start()
        self.url = f"postgresql://lab@/postgres?host={self.folder}"

    def start(self):
        """Start it."""
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}'"
        log = self.folder / "log"
        self._run("pg_ctl", "-w", "-D", self.folder / "data", "-l", log, "-o", options, "start")

    def stop(self):
        """Stop it at once."""
        self._run("pg_ctl", "-w", "-D", self.folder / "data", "-m", "immediate", "stop")

    def _run(self, program, *arguments):
        as_other = ["runuser", "-u", "nobody", "--"] if os.getuid() == 0 else []
        command = [*as_other, str(binary(program)), *map(str, arguments)]
        subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.stop()
        shutil.rmtree(self.folder)


def binary(program):
    """Return the path of a PostgreSQL program; Debian keeps them out of PATH."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
    return found[-1] if found else Path(shutil.which(program) or program)


def logged(server):
    """Return the lines of a server's log."""
    return [json.loads(line) for line in server.log().splitlines()]
