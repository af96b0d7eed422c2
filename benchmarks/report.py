"""One row per measurement, one table for all: the number, what it should be, whether it is."""

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


@dataclass(frozen=True)
class Target:
    """What a result must at least be, and what it should be; by default less is better."""

    at_least: float
    aim: float | None = None
    more_is_better: bool = False

    def verdict(self, value: float) -> str:
        if self.aim is not None and self._reached(value, self.aim):
            return "met, aim met"
        return "met" if self._reached(value, self.at_least) else "MISSED"

    def _reached(self, value: float, goal: float) -> bool:
        return value >= goal if self.more_is_better else value <= goal


@dataclass(frozen=True)
class Row:
    """A result with its target, and the absolute numbers (seconds or bytes) it came from."""

    measure: str
    value: float
    unit: str
    target: Target
    numbers: dict[str, float]
    numbers_unit: str = "s"

    @property
    def verdict(self) -> str:
        return self.target.verdict(self.value)

    def cells(self) -> tuple[str, ...]:
        sign = "≥" if self.target.more_is_better else "≤"
        absolute = ", ".join(
            f"{name} {_absolute(number, self.numbers_unit)}"
            for name, number in self.numbers.items()
        )
        aim = "" if self.target.aim is None else f"{sign} {self.target.aim:,g}{self.unit}"
        return (
            self.measure,
            f"{_short(self.value)}{self.unit}",
            f"{sign} {self.target.at_least:,g}{self.unit}",
            aim,
            self.verdict,
            absolute,
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"verdict": self.verdict}


# Timing ------------------------------------------------------------------------------------


def race(repeats: int, *contestants: Callable[[], object]) -> list[float]:
    """Best seconds of each contestant; they take turns, so that noise meets all of them."""
    rounds = [[seconds(contestant) for contestant in contestants] for _ in range(repeats)]
    return [min(taken) for taken in zip(*rounds, strict=True)]


def seconds(action: Callable[..., object], *arguments: object) -> float:
    started = perf_counter()
    action(*arguments)
    return perf_counter() - started


def processor(action: Callable[..., object], *arguments: object) -> float:
    """Seconds of the processor, which other processes do not lengthen."""
    started = process_time()
    action(*arguments)
    return process_time() - started


def refuse_unless(right: bool, what: str) -> None:
    """Stop everything: numbers of a wrong engine, or of an unfair race, are worth nothing."""
    if not right:
        sys.exit(f"no benchmark: {what}")


def fresh(measurement: str, *arguments: object, **environ: str) -> dict[str, float]:
    """Result of a measurement of fresh.py, taken in a process of its own."""
    script = Path(__file__).with_name("fresh.py")
    done = subprocess.run(
        [sys.executable, str(script), measurement, *map(str, arguments)],
        env=os.environ | environ,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


# Averages ----------------------------------------------------------------------------------


def geometric(ratios: Any) -> tuple[float, float]:
    """Geometric mean of ratios (cases, seeds) and its standard error: seeds vary, cases do not."""
    logs = np.log(np.atleast_2d(ratios))
    value = float(np.exp(logs.mean()))
    if logs.shape[1] < 2:
        return value, float("nan")
    variances = logs.var(axis=1, ddof=1) / logs.shape[1]
    return value, value * float(np.sqrt(variances.sum())) / len(logs)


# The table ---------------------------------------------------------------------------------


TITLES = ("measure", "result", "at least", "aim", "verdict", "absolute (best of several)")
WIDTHS = (54, 10, 10, 10, 13, 0)


def telling(results: Iterable[Any], total: int, what: str) -> Iterator[Any]:
    """Yield results, and say on stderr after every twentieth part of them how far it is."""
    for number, result in enumerate(results, 1):
        if 20 * number // total > 20 * (number - 1) // total:
            print(f"{what}: {number:,} of {total:,}", file=sys.stderr, flush=True)
        yield result


def environment() -> dict[str, str]:
    """What the numbers depend on: versions and cores."""
    versions = {name: version(name) for name in PACKAGES}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return versions | {"Python": platform.python_version(), "cores": str(cores)}


def run(
    title: str,
    description: str | None,
    measurements: Mapping[str, Callable[[Any], Iterator[Row]]],
    full: Any,
    quick: Any,
    results: Path,
) -> None:
    """Measure what the command line asks for; print a row per measurement and keep them as JSON."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, for a smoke test")
    parser.add_argument("--only", choices=measurements, metavar="NAME", help="one measurement")
    chosen = parser.parse_args()
    sizes = quick if chosen.quick else full
    rows = []
    print_header(title, chosen.quick)
    for name in [chosen.only] if chosen.only else measurements:
        for row in measurements[name](sizes):
            print_cells(row.cells())
            rows.append(row)
    missed = sum(row.verdict == "MISSED" for row in rows)
    print(f"\n{len(rows) - missed} of {len(rows)} met, {missed} missed; also in {results}\n")
    record = {
        "environment": environment(),
        "sizes": asdict(sizes),
        "rows": [row.as_json() for row in rows],
    }
    results.parent.mkdir(exist_ok=True)
    results.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def print_header(title: str, quick: bool) -> None:
    print(title)
    print(", ".join(f"{name} {value}" for name, value in environment().items()))
    if quick:
        print("A quick run: too small for its results to say anything about the targets.")
    print()
    print_cells(TITLES)
    print_cells(["-" * len(title) for title in TITLES])


def print_cells(cells: Iterable[str]) -> None:
    """Print one line of the table at once: a full run takes minutes."""
    line = "  ".join(f"{cell:{width}}" for cell, width in zip(cells, WIDTHS, strict=True))
    print(line.rstrip(), flush=True)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _absolute(number: float, unit: str) -> str:
    if not unit:
        return f"{number:.4g}"
    steps = [(1e9, "GB"), (1e6, "MB")] if unit == "B" else [(1, "s"), (1e-3, "ms"), (1e-6, "µs")]
    size, name = next((step for step in steps if number >= step[0]), steps[-1])
    return f"{number / size:.3g} {name}"
