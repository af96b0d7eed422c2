"""Saves that are killed at a chosen step: there is always either the old file or the new one.

A process counts its system calls on the way to a saved file (create, lock, write, sync, rename,
remove) and kills itself with SIGKILL just before a chosen one. So every step is met, however busy
the machine is. The next save into the folder clears away what was left. Nothing here needs pytest.
"""

import contextlib
import fcntl
import functools
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from tests.mutating import QUICK, ROOT

from betafield import SmoothBetaClassifier
from betafield.cli import main
from betafield.decisions import Experiment, Maximize

# Bytes written per step.
BLOCK = 1 << 12
FIELDS = ("kills", "old", "new", "torn", "left", "litter", "steps")


# Two states of each kind, and their saves ----------------------------------------------------


def model(which):
    """Return the save of one of two models, which takes several writes."""
    X = np.random.default_rng(which).uniform(size=(1000, 2))
    return SmoothBetaClassifier(0.1, bounds=[(0, 1)] * 2).fit(X, X[:, 0] < 0.5).save


def experiment(which):
    """Return the save of one of two experiments."""
    made = Experiment({"dose": (0.0, 1.0)}, Maximize(), random_state=0)
    for row in range(3 + which):
        made.tell({"dose": row / 8}, row % 2 == 0)
    return made.save


def command(which):
    """Return a function that writes one of two tables of several blocks."""

    def save(path):
        asked = path.parent / "asked.beta"
        if not asked.exists():
            X = np.linspace(0.0, 1.0, 50)[:, None]
            SmoothBetaClassifier(0.2).fit(X, X[:, 0] > 0.3).save(asked)
        if main(["predict", str(asked), "--grid", str(200 + which), "--out", str(path), "--force"]):
            raise RuntimeError("the command failed")

    return save


KINDS = {"model.beta": model, "some.experiment": experiment, "told.csv": command}


# Steps -------------------------------------------------------------------------------------


class Steps:
    """Counts steps, and kills the process before the one with this number."""

    def __init__(self, last=None):
        self.taken, self.last = 0, last

    def counted(self, call):
        """Return the same call, counted as a step."""

        @functools.wraps(call)
        def step(*arguments, **named):
            if self.taken == self.last:
                os.kill(os.getpid(), signal.SIGKILL)
            self.taken += 1
            return call(*arguments, **named)

        return step

    @contextlib.contextmanager
    def watching(self):
        """Count system calls, which are still made."""
        calls = [(os, name) for name in ("open", "fsync", "fchmod", "replace", "unlink")]
        with contextlib.ExitStack() as stack:
            for where, name in [*calls, (fcntl, "flock")]:
                stack.callback(setattr, where, name, getattr(where, name))
                setattr(where, name, self.counted(getattr(where, name)))
            stack.callback(setattr, os, "fdopen", os.fdopen)
            os.fdopen = functools.partial(self.opened, os.fdopen)
            yield

    def opened(self, plain, number, mode):
        """Return an open file; writing a block to it is a step."""
        if "w" not in mode:
            return plain(number, mode)
        return io.BufferedWriter(Blocks(number, self), BLOCK)


class Blocks(io.FileIO):
    """A file that accepts one block at a time."""

    def __init__(self, number, steps):
        super().__init__(number, "w")
        self.put = steps.counted(super().write)

    def write(self, data):
        """Write as much as is accepted, and return how much that is."""
        return self.put(memoryview(data)[:BLOCK])


# Kills -------------------------------------------------------------------------------------


def killed(save, path, step=None):
    """Save in a process killed before this step; without one, return the number of steps."""
    told, tell = os.pipe()
    child = os.fork()
    if child == 0:
        steps = Steps(step)
        with steps.watching():
            save(path)
        os.write(tell, str(steps.taken).encode())
        os._exit(0)
    os.close(tell)
    with open(told, "rb") as answer:
        taken = answer.read()
    _, status = os.waitpid(child, 0)
    if not taken and os.WTERMSIG(status) != signal.SIGKILL:
        raise RuntimeError(f"the process ended with status {status}")
    return int(taken) if taken else None


class Case:
    """A kind of file with a known old and new state."""

    def __init__(self, folder, name, make):
        self.path = folder / name
        self.saves = [make(which) for which in range(2)]
        self.states = [self.saved(save) for save in self.saves]
        if self.states[0] == self.states[1]:
            raise RuntimeError("two states are the same")
        self.steps = killed(self.saves[1], self.path)
        self.kept = {path.name for path in folder.iterdir()} | {name}

    def saved(self, save):
        """Return the contents of the saved file."""
        save(self.path)
        return self.path.read_bytes()

    def litter(self):
        """Return the number of unexpected files."""
        return len({path.name for path in self.path.parent.iterdir()} - self.kept)

    def after_kill(self, step, is_fresh):
        """Return what a kill before this step leaves: old, new or torn, and any temporary file.

        If it is fresh, there was no old file, and there may be none; such a save has one step
        fewer, because there is no mode to keep.
        """
        old = self.saved(self.saves[0])
        if is_fresh:
            self.path.unlink()
            old = None
        if killed(self.saves[1], self.path, min(step, self.steps - 1 - is_fresh)) is not None:
            raise RuntimeError("a save was done before its last step")
        there = self.path.read_bytes() if self.path.exists() else None
        named = {old: "old", self.states[1]: "new"}
        return named.get(there, "torn"), self.litter() > 0


def run(folder, seed, n):
    """Write the results of n kills of all kinds; every step is killed once before any repeats."""
    chance, counts = random.Random(seed), Counter(dict.fromkeys(FIELDS, 0))
    cases = []
    for name, make in KINDS.items():
        inside = Path(folder, name.replace(".", "-"))
        inside.mkdir()
        cases.append(Case(inside, name, make))
    orders = [chance.sample(range(case.steps), case.steps) for case in cases]
    for number in range(n):
        turn, which = divmod(number, len(cases))
        case, order = cases[which], orders[which]
        found, is_left = case.after_kill(order[turn % len(order)], is_fresh=turn % 4 == 3)
        case.saves[turn % 2](case.path)
        counts.update({"kills": 1, found: 1, "left": is_left, "litter": case.litter()})
    counts["steps"] = sum(case.steps for case in cases)
    sys.stdout.write(json.dumps(counts))


def killed_saves(n, seed=0):
    """Kill n saves of models, experiments and tables, and return the results.

    Returns
    -------
    dict
        `kills`; how many left the `old` file, the `new` one, or something else (`torn`); how many
        `left` a temporary file; how many such files remained after the next save (`litter`); and
        the number of different `steps`, all of which are met if n is at least three times that.
    """
    with tempfile.TemporaryDirectory(dir=QUICK) as folder:
        command = [sys.executable, "-m", "tests.killing", folder, str(seed), str(n)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


if __name__ == "__main__":
    run(sys.argv[1], *map(int, sys.argv[2:]))
