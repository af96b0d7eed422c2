"""Interrupts: Ctrl-C at random moments of processes, from their first import on.

A process that is interrupted begins its work again: it imports the package, learns and asks. When
it has been interrupted some times it is left alone, and must then say what an undisturbed process
says. Some processes find no kernel on disk and compile all, others find what those have left.
"""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from report import refuse_unless

# Interrupts of a process; processes that share what they compile.
OFTEN, SHARING = 8, 5
PROCESSES = 2
# Seconds to the next interrupt, at most; seconds after which a process is said to hang.
PAUSE, PATIENCE = 1.0, 900.0
# What a process tells.
WORKING, LEARNED, INTERRUPTED = b"working\n", b"learned\n", b"interrupted\n"


class Told(NamedTuple):
    """How often a process was interrupted, and what it said at the end."""

    interrupts: int
    said: bytes


def interrupts(cases: int) -> tuple[int, str]:
    """Return how many processes did not work on, and how many there were."""
    expected = disturbed(None, 0, 0).said
    numbers = [min(OFTEN, cases - start) for start in range(0, cases, OFTEN)]
    groups = [range(i, min(i + SHARING, len(numbers))) for i in range(0, len(numbers), SHARING)]
    with ThreadPoolExecutor(PROCESSES) as pool:
        told = [each for some in pool.map(lambda g: group(g, numbers), groups) for each in some]
    wrong = sum(each.said != expected for each in told)
    seen = sum(each.interrupts for each in told)
    refuse_unless(seen > 0.9 * cases, f"only {seen} of {cases} interrupts were raised")
    return wrong, f"{len(told)} processes, {seen} interrupts raised"


def group(seeds: range, numbers: list[int]) -> list[Told]:
    """Return what processes told that started one after the other, with one folder of kernels."""
    with TemporaryDirectory() as folder:
        return [disturbed(folder, numbers[seed], seed) for seed in seeds]


def disturbed(folder: str | None, number: int, seed: int) -> Told:
    """Return what a process told that was interrupted so many times.

    Kernels are kept in the folder, or where they always are.
    """
    chance, raised = random.Random(seed), 0
    with working(folder) as process:
        try:
            wait_for(process, WORKING)
            for _ in range(number):
                time.sleep(chance.uniform(0.0, PAUSE))
                raised += interrupted(process)
            process.stdin.close()  # type: ignore[union-attr]
            return Told(raised, last_line(process))
        except TimeoutError:
            process.kill()
            return Told(raised, b"")


def interrupted(process: subprocess.Popen[bytes]) -> bool:
    """Interrupt a process; return whether that was raised, and not lost where Python ignores it."""
    while select.select([process.stdout], [], [], 0)[0]:
        line(process)
    process.send_signal(signal.SIGINT)
    # The first work may have been done before the interrupt came.
    told = line(process)
    if (line(process) if told == LEARNED else told) != INTERRUPTED:
        return False
    wait_for(process, WORKING)
    return True


def working(folder: str | None) -> subprocess.Popen[bytes]:
    kernels = {} if folder is None else {"NUMBA_CACHE_DIR": folder}
    return subprocess.Popen(
        [sys.executable, str(Path(__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=os.environ | kernels,
    )


def last_line(process: subprocess.Popen[bytes]) -> bytes:
    found = line(process)
    while found in (WORKING, LEARNED, INTERRUPTED):
        found = line(process)
    return found


def wait_for(process: subprocess.Popen[bytes], expected: bytes) -> None:
    while line(process) not in (expected, b""):
        pass


def line(process: subprocess.Popen[bytes]) -> bytes:
    """Return the next line that a process writes, or nothing if it has ended."""
    ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
    if not ready:
        raise TimeoutError
    return process.stdout.readline()  # type: ignore[union-attr]


# The process that is interrupted -------------------------------------------------------------


def learned() -> str:
    """Import, learn and ask in several ways; return what was said, to the last bit."""
    from betafield import SmoothBetaClassifier, contexts

    X, y = [[i / 40] for i in range(40)], [i % 3 == 0 for i in range(40)]
    plain = SmoothBetaClassifier(0.2, bounds=[(0, 1)]).fit(X, y)
    plain.partial_fit(X, y).merge(plain)
    distorted = SmoothBetaClassifier(0.2, bounds=[(0, 1)])
    distorted.fit(X, y, context=contexts.guess_lapse(0.1, 0.05))
    means = [model.posterior([[0.3], [0.8]]).mean() for model in (plain, distorted)]
    return " ".join(float(value).hex() for mean in means for value in mean)


def is_over() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


def work() -> None:
    """Work until told to end, however often that is interrupted; then work once more, and tell."""
    # A process that was started in the background of a shell may have inherited to ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    while not is_over():
        # No interrupt comes before the first word, nor between the last and the next first.
        try:
            tell(WORKING)
            while not is_over():
                learned()
                tell(LEARNED)
        except KeyboardInterrupt:
            tell(INTERRUPTED)
    tell(learned().encode() + b"\n")


def tell(word: bytes) -> None:
    os.write(1, word)


if __name__ == "__main__":
    work()
