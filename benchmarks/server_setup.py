"""What the figures of the server share: a server of their own, and lines about progress."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.server.serving import Server

FAST = ("--rate", "1000000")


@contextmanager
def served():
    """Return a server with an SQLite file of its own, and a client."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(Path(folder) / "study.db", *FAST) as server,
        server.client() as client,
    ):
        yield server, client


def say(name, told):
    print(f"{name:10s} {told}", flush=True)


class Progress:
    """Tells on standard error, at most twice a minute, how much of a part is done.

    Parameters
    ----------
    name : str
    total : int
        What is done in all.
    """

    def __init__(self, name, total):
        self._name, self._total, self._done = name, total, 0
        self._begun = self._told = time.monotonic()
        self._guard = threading.Lock()

    def add(self, more=1):
        """Count what has been done."""
        with self._guard:
            self._done += more
            now = time.monotonic()
            if now - self._told < 30 and self._done < self._total:
                return
            self._told = now
            told = f"{self._done:,} of {self._total:,} after {now - self._begun:.0f} s"
            print(f"{self._name:10s} {told}", file=sys.stderr, flush=True)


def cpu(server):
    """Return the processor time of a server so far."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(server):
    """Return the MiB that a server has in memory."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024
