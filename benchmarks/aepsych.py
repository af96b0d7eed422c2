"""An ask of our server beside one of AEPsych's, over their own sockets: milliseconds.

    make bench-aepsych
    python benchmarks/aepsych.py --trials 50 100 --asks 20

AEPsych needs an older SQLAlchemy than ours, so it has an environment of its own; `--aepsych` is its
server there. Both are told the same trials of one threshold problem with two features, and then
asked and told in turn, each asked as soon as it was told. AEPsych's server has the settings of its
example for thresholds (EAVC, a refit from scratch after every fifth trial, at most 0.1 s to
search). It polls its socket without a pause, so it is stopped while ours is asked. The processor
time is that of each server per ask and outcome.
"""

import argparse
import json
import math
import os
import random
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import httpx

TOKEN = "the token of this benchmark"
CONFIG = """
[common]
parnames = [x, y]
stimuli_per_trial = 1
outcome_types = [binary]
strategy_names = [opt_strat]

[x]
par_type = continuous
lower_bound = 0
upper_bound = 1

[y]
par_type = continuous
lower_bound = 0
upper_bound = 1

[opt_strat]
min_asks = 100000
refit_every = 5
generator = OptimizeAcqfGenerator
model = GPClassificationModel

[OptimizeAcqfGenerator]
acqf = EAVC
max_gen_time = 0.1
restarts = 10
samps = 1000

[EAVC]
target = 0.75
objective = ProbitObjective
"""
STUDY = {
    "name": "plane",
    "space": {"x": [0, 1], "y": [0, 1]},
    "goal": {"kind": "LevelSet", "level": 0.75},
    "seed": 1,
}


class Ours:
    """A study of `betafield serve`, over HTTP."""

    def __init__(self, process, address):
        self.process = process
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self._client = httpx.Client(base_url=address, headers=headers, timeout=600)
        self._post("/studies", STUDY)

    def told(self, values, success):
        """Tell a trial that was not asked for."""
        self._post("/studies/plane/trials", {"values": values, "success": success})

    def ask(self):
        """Return the values of the next trial."""
        (self._trial,) = self._post("/studies/plane/asks", {})["trials"]
        return self._trial["values"]

    def tell(self, _, success):
        """Tell the outcome of the last trial."""
        path = f"/studies/plane/trials/{self._trial['id']}/outcome"
        self._post(path, {"success": success})

    def _post(self, path, body):
        answer = self._client.post(path, json=body)
        assert answer.is_success, answer.text
        return answer.json()


class Theirs:
    """AEPsych's server, over its socket."""

    def __init__(self, process, link):
        self.process, self._link = process, link
        self._send("setup", {"config_str": CONFIG})

    def tell(self, values, success):
        """Tell a trial."""
        config = {name: [x] for name, x in values.items()}
        self._send("tell", {"config": config, "outcome": int(success)})

    told = tell

    def ask(self):
        """Return the values of the next trial."""
        found = self._send("ask", {"num_points": 1})
        return {name: x[0] for name, x in found["config"].items()}

    def _send(self, kind, message):
        self._link.sendall(json.dumps({"type": kind, "message": message}).encode())
        answer = json.loads(self._link.recv(1 << 16))
        assert "server_error" not in answer, answer
        return answer


@contextmanager
def ours(folder):
    environment = os.environ | {"BETAFIELD_TOKEN": TOKEN}
    program = [sys.executable, "-m", "betafield", "serve", f"{folder}/study.db"]
    arguments = [*program, "--port", "0", "--rate", "1000000"]
    with started(arguments, folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        lines = iter(process.stdout.readline, "")
        address = next(line for line in lines if line.startswith("address")).split()[1]
        next(line for line in lines if line.startswith("stop"))
        yield Ours(process, address)


@contextmanager
def theirs(folder, program):
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    arguments = [program, "--port", str(port), "--db", f"{folder}/theirs.db"]
    with (
        started(arguments, folder, stdout=subprocess.DEVNULL) as process,
        connected(process, port) as link,
    ):
        yield Theirs(process, link)


def connected(process, port):
    """Return a connection to a server that needs a while to start."""
    while process.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.5)
    raise RuntimeError("AEPsych's server does not start")


@contextmanager
def started(arguments, folder, **options):
    process = subprocess.Popen(arguments, cwd=folder, stderr=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def paused(process):
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def success_at(values, rng):
    """Return an outcome; its probability is 0.75 on a curve across the square."""
    rise = 8.0 * (values["y"] - 0.3 - 0.4 * values["x"] ** 2)
    return rng.random() < 1.0 / (1.0 + math.exp(-rise))


def cpu(process):
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(study, rng):
    """Return the seconds of an ask, whose outcome is then told."""
    at = time.perf_counter()
    values = study.ask()
    seconds = time.perf_counter() - at
    study.tell(values, success_at(values, rng))
    return seconds


def compared(trials, asks, program):
    """Return the seconds and the processor time that asks take after so many trials, of both."""
    rng, seconds = random.Random(0), ([], [])
    points = [{"x": rng.random(), "y": rng.random()} for _ in range(trials)]
    with (
        tempfile.TemporaryDirectory() as folder,
        theirs(folder, program) as other,
        ours(folder) as mine,
    ):
        for values in points:
            success = success_at(values, rng)
            other.told(values, success)
            mine.told(values, success)
        for i in range(asks + 2):
            if i == 2:  # the first ones compile and rebuild
                seconds, begun = ([], []), [cpu(each.process) for each in (mine, other)]
            with paused(other.process):
                seconds[0].append(measured(mine, rng))
            seconds[1].append(measured(other, rng))
        ended = [cpu(each.process) for each in (mine, other)]
    return [(each, (b - a) / asks) for each, a, b in zip(seconds, begun, ended, strict=True)]


def spelled(seconds, used):
    """Return the median and the 99th percentile, and the mean processor time."""
    found = sorted(seconds)
    high = found[min(len(found) - 1, math.ceil(0.99 * len(found)) - 1)]
    return (
        f"median {1e3 * statistics.median(found):.1f} ms, 99th percentile {1e3 * high:.1f} ms, "
        f"processor {1e3 * used:.1f} ms"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, nargs="+", default=[50, 100])
    parser.add_argument("--asks", type=int, default=20)
    parser.add_argument("--aepsych", default=".venv-aepsych/bin/aepsych_server")
    given = parser.parse_args()
    program = Path(given.aepsych).absolute()
    for trials in given.trials:
        one, two = compared(trials, given.asks, program)
        told = f"{given.asks} asks from {trials} trials on"
        print(f"{told}: ours {spelled(*one)}; AEPsych {spelled(*two)}", flush=True)


if __name__ == "__main__":
    main()
