"""What happens when things go wrong: ``python benchmarks/faults.py``.

Each figure is a number of faults that were provoked, and how many of them did harm. All of them, in
the order below, or one: ``python benchmarks/faults.py orders``, with ``--cases 100`` for fewer.

- orders: the same trials in another order, split, and merged, with a width that is given; how
  often bits differ.
- settled: the same with default options, after `settle()`, by threads, files and Dask too.
- threads: 64 threads that teach and ask one model; trials lost, and states that were not whole.
- interrupts: Ctrl-C at random moments from the first import on; processes that do not work on.
- kills: workers of a Dask cluster killed at random; how often fits or posteriors differ.
- saves: processes killed while they save; files that are neither old nor new, or litter.
- files: stored models changed at random, half of them signed anew; those that load and are not
  sound, that end the process, or that need more than 256 MiB.
- hostile: calls of every public function with arguments that make no sense; errors that do not
  name the argument, models or inputs that were changed.

The table is Markdown; its rows are those of docs/reliability.md. The status is 1 if anything did
harm.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from report import environment, telling

Figure = Callable[[int], tuple[int, str]]

MEMORY = 256 << 20
# Files that one process loads after another.
PIECE = 2_500
# The generators of changed files and of hostile calls are those of the tests.
ROOT = Path(__file__).resolve().parents[1]


def orders(cases: int) -> tuple[int, str]:
    from faults_orders import orders

    return orders(cases)


def settled(cases: int) -> tuple[int, str]:
    from faults_settled import settled

    return settled(cases)


def threads(cases: int) -> tuple[int, str]:
    from faults_threads import threads

    return threads(cases)


def interrupts(cases: int) -> tuple[int, str]:
    from faults_interrupts import interrupts

    return interrupts(cases)


def kills(cases: int) -> tuple[int, str]:
    from dataclasses import replace

    import scale

    sizes = replace(scale.QUICK, kill_trials=50_000, files=4, kills=cases)
    (row,) = scale.kills(sizes)
    return cases - int(row.value), f"{int(row.value)} times the same bits"


def saves(cases: int) -> tuple[int, str]:
    from tests.killing import killed_saves

    found = killed_saves(cases)
    missing = abs(cases - found["old"] - found["new"])
    detail = f"{found['old']:,} old, {found['new']:,} new, {found['steps']} different steps"
    return missing + found["litter"], detail


def files(cases: int) -> tuple[int, str]:
    from tests.mutating import mutations

    starts = range(0, cases, PIECE)
    stops = [min(start + PIECE, cases) for start in starts]
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda start, stop: mutations(stop, start=start), starts, stops)
        pieces = list(telling(found, len(stops), f"files: pieces of {PIECE:,}"))
    for number, why in (failure for piece in pieces for failure in piece["failures"]):
        print(f"file {number}: {why}", file=sys.stderr, flush=True)
    names = ("refused", "sound", "unsound", "crashed")
    count = {name: sum(piece[name] for piece in pieces) for name in names}
    memory = max(piece["memory"] for piece in pieces)
    detail = f"{count['refused']:,} refused, {count['sound']:,} sound, {memory >> 20} MiB"
    return count["unsound"] + count["crashed"] + (memory > MEMORY), detail


def hostile(cases: int) -> tuple[int, str]:
    with ThreadPoolExecutor(2) as pool:
        counts = list(pool.map(hostile_calls, halves(cases), range(2)))
    worked, refused, broke = (sum(column) for column in zip(*counts, strict=True))
    return broke + abs(cases - worked - refused - broke), f"{refused:,} refused, {worked:,} worked"


def hostile_calls(cases: int, seed: int) -> list[int]:
    """Return how many calls worked, were refused by the name of an argument, and broke a rule."""
    command = [sys.executable, str(ROOT / "tests" / "hostile.py"), str(cases), str(seed)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"calls: (\d+) worked, (\d+) were refused by name, (\d+) broke", run.stdout)
    if run.returncode:
        print(run.stdout, run.stderr, file=sys.stderr)
    return [int(number) for number in found.groups()] if found else [0, 0, 0]


def halves(cases: int) -> tuple[int, int]:
    return cases // 2, cases - cases // 2


# Each figure, with what was done and how often.
FIGURES: dict[str, tuple[Figure, str, int]] = {
    "orders": (orders, "orders, splits and merges of the same trials, width given", 10_000),
    "settled": (settled, "the same by default options, settled", 10_000),
    "threads": (threads, "trials taught by 32 threads while 32 others ask", 100_000),
    "interrupts": (interrupts, "interrupts at random moments, from the first import on", 200),
    "kills": (kills, "Dask workers killed at work", 100),
    "saves": (saves, "processes killed while saving", 1000),
    "files": (files, "stored models changed at random, half signed anew", 50_000),
    "hostile": (hostile, "hostile calls of public functions", 20_000),
}
TITLES = ("figure", "what was done", "cases", "harm", "seen")


def run(names: list[str], cases: int | None) -> int:
    """Print a row for each figure, and return 1 if anything did harm."""
    print(", ".join(f"{name} {value}" for name, value in environment().items()), end="\n\n")
    print_row(TITLES)
    print_row(["---"] * len(TITLES))
    harm = 0
    for name in names:
        figure, done, usual = FIGURES[name]
        number, started = cases or usual, time.perf_counter()
        wrong, seen = figure(number)
        print_row([name, done, f"{number:,}", f"{wrong:,}", seen])
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
        harm += wrong
    return int(harm > 0)


def print_row(cells: list[str] | tuple[str, ...]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.path.append(str(ROOT))
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("figure", nargs="?", choices=FIGURES, help="one figure; default: all")
    parser.add_argument("--cases", type=int, help="how many cases, instead of the usual number")
    chosen = parser.parse_args()
    sys.exit(run([chosen.figure] if chosen.figure else list(FIGURES), chosen.cases))
