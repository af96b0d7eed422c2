"""Work done by processes, each of which starts fresh for a piece of it and ends with the piece.

A process says a byte for every unit that it has done. If it ends while work is left, of whatever
cause, another one goes on with the rest; a unit that ended several is named in an error. All that
is waited for are bytes and ends of processes, both of which the system tells: there is no thread
here that could die unseen.
"""

import json
import os
import selectors
import subprocess
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

ROOT = Path(__file__).parent.parent
# So many expected seconds make a piece; what a process needs to start is little beside them.
PIECE = 10.0
# So many processes may end on a unit before it is given up.
TRIES = 3

Units = Sequence[Any]  # dataclasses of names and numbers, with their expected seconds


class Worker:
    """A process at work on a piece."""

    def __init__(self, command: Sequence[str], units: Units) -> None:
        self.left = deque(units)
        with TemporaryFile() as told:
            told.write(json.dumps([asdict(unit) for unit in units]).encode())
            told.seek(0)
            self.process = subprocess.Popen(command, stdin=told, stdout=subprocess.PIPE, cwd=ROOT)
        self.said: Any = self.process.stdout

    def done(self) -> list[Any]:
        """Wait, and return what was done meanwhile: nothing if the process has ended."""
        return [self.left.popleft() for _ in os.read(self.said.fileno(), 4096)]

    def end(self) -> int:
        """End the process if it has not, and return its exit status."""
        if self.left:
            self.process.kill()
        self.said.close()
        return self.process.wait()


def pieces(units: Units, seconds: float = PIECE) -> Iterator[list[Any]]:
    """Cut the work, in its order, into pieces of about as many expected seconds."""
    piece: list[Any] = []
    for unit in units:
        piece.append(unit)
        if sum(each.expected_seconds for each in piece) >= seconds:
            yield piece
            piece = []
    if piece:
        yield piece


def done(units: Units, command: Sequence[str], jobs: int) -> Iterator[Any]:
    """Yield units as they are done, by so many processes at a time."""
    if jobs < 1:
        raise ValueError(f"jobs: found {jobs}; allowed are 1, 2, …")
    waiting, lost = deque(pieces(units)), Counter[Any]()
    with selectors.DefaultSelector() as working:
        try:
            while waiting or working.get_map():
                hire(working, waiting, command, jobs)
                for worker in [key.data for key, _ in working.select()]:
                    finished = worker.done()
                    yield from finished
                    if not finished:
                        waiting.extendleft(left_by(worker, working, lost))
        finally:
            for key in list(working.get_map().values()):
                key.data.end()


def hire(
    working: selectors.BaseSelector, waiting: deque[list[Any]], command: Sequence[str], jobs: int
) -> None:
    """Start a process for each of the first pieces, up to so many at a time."""
    while waiting and len(working.get_map()) < jobs:
        worker = Worker(command, waiting.popleft())
        working.register(worker.said, selectors.EVENT_READ, worker)


def left_by(
    worker: Worker, working: selectors.BaseSelector, lost: Counter[Any]
) -> Iterable[list[Any]]:
    """Return what is to be done again of a piece whose process has ended: a piece, or none."""
    working.unregister(worker.said)
    left, status = list(worker.left), worker.end()
    if left:
        lost[left[0]] += 1
        if lost[left[0]] == TRIES:
            raise RuntimeError(
                f"{left[0]} was not computed: {TRIES} processes ended before it was done, "
                f"the last with exit status {status}"
            )
    return [left] if left else []
