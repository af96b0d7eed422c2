"""Units of work, each computed once and kept, so that a stopped run goes on where it was.

A unit is one measurement of one method after t trials of a problem. It lies in a file of its own,
written beside and renamed, under a key that changes with the problem, the method's settings and
what is measured. What is kept does not know of changes inside betafield: ``--fresh`` forgets it.
"""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from paper import measures, methods, processes
from paper.problems import PROBLEMS, Problem

# To be raised when a measurement changes its meaning.
MEANING = 1
# How a process starts that computes what it is told.
WORKER = (sys.executable, "-m", "paper.worker")

# What computes a unit, told by its names and numbers.
Measure = Callable[..., dict[str, Any]]


@dataclass(frozen=True, order=True)
class Unit:
    """One measurement, by names and numbers."""

    what: str
    problem: str
    method: str
    t: int
    run: int

    @property
    def alone(self) -> bool:
        """Whether nothing else may run meanwhile."""
        return self.what == "seconds"

    @property
    def expected_seconds(self) -> float:
        return methods.expected_seconds(self.method, self.t)

    def key(
        self, problems: Mapping[str, Problem] = PROBLEMS, known: methods.Methods = methods.METHODS
    ) -> str:
        """Return what changes with the problem, the settings and the measurement."""
        problem = problems[self.problem]
        recipe = methods.recipe(self.method, problem, known)
        parts = [MEANING, *asdict(self).values(), problem.fingerprint, recipe]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]


class Cache:
    """What has been computed, a file a unit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, unit: Unit) -> Path:
        """Return where the unit lies, or would."""
        return self.folder / unit.what / unit.problem.replace(" ", "-") / f"{unit.key()}.json"

    def get(self, unit: Unit) -> dict[str, Any] | None:
        """Return what was found, or None: never computed, cut short, or another unit's."""
        try:
            kept = json.loads(self.path(unit).read_text(encoding="utf-8"))
            return kept["found"] if kept["unit"] == asdict(unit) else None
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def need(self, unit: Unit) -> dict[str, Any]:
        """Return what was found; raise if it was not computed."""
        found = self.get(unit)
        if found is None:
            raise LookupError(f"{unit} has not been computed")
        return found

    def put(self, unit: Unit, found: dict[str, Any]) -> None:
        """Keep it, whole or not at all."""
        path = self.path(unit)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(f".{os.getpid()}.part")
        beside.write_text(json.dumps({"unit": asdict(unit), "found": found}), encoding="utf-8")
        beside.replace(path)

    def clear(self) -> None:
        """Forget all measurements."""
        for what in measures.MEASURES:
            shutil.rmtree(self.folder / what, ignore_errors=True)


def compute(unit: Unit, cache: Cache, measure: Measure = measures.measure) -> Unit:
    """Measure and keep."""
    cache.put(unit, measure(**asdict(unit)))
    return unit


def run(
    units: Iterable[Unit],
    cache: Cache,
    jobs: int = 2,
    worker: Sequence[str] = WORKER,
    measure: Measure = measures.measure,
) -> int:
    """Compute what is not kept yet, dearest first, timings last and alone; return how many.

    One job is done in this process, by `measure`; more by others, with the worker's command.
    """
    missing = [unit for unit in dict.fromkeys(units) if cache.get(unit) is None]
    missing.sort(key=lambda unit: (unit.alone, -unit.expected_seconds))
    here = [unit for unit in missing if unit.alone or jobs == 1]
    elsewhere = missing[: len(missing) - len(here)]
    command = [*worker, str(cache.folder.absolute())]
    with progress(missing) as done, closing(processes.done(elsewhere, command, jobs)) as computed:
        for unit in computed:
            done(unit)
        for unit in here:
            done(compute(unit, cache, measure))
    return len(missing)


# Progress ----------------------------------------------------------------------------------


class Done(Protocol):
    """Told of every unit that is done."""

    def __call__(self, unit: Unit) -> None: ...


@contextmanager
def progress(units: Sequence[Unit]) -> Iterator[Done]:
    """Show how much is done and how long the rest takes: a bar, or lines where there is none."""
    show = bar if sys.stdout.isatty() and find_spec("rich") else lines
    with show(units) as done:
        yield done


@contextmanager
def bar(units: Sequence[Unit]) -> Iterator[Done]:
    """Show a bar that fills by expected seconds, for units differ a thousandfold."""
    from rich.progress import Progress, TimeElapsedColumn, TimeRemainingColumn

    columns = (*Progress.get_default_columns()[:-1], TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, speed_estimate_period=300) as shown:
        task = shown.add_task("starting", total=sum(unit.expected_seconds for unit in units))

        def done(unit: Unit) -> None:
            label = f"{unit.what}: {unit.problem}, {unit.method}, t = {unit.t:,}"
            shown.update(task, advance=unit.expected_seconds, description=f"{label:48}")

        yield done


@contextmanager
def lines(units: Sequence[Unit], every: float = 30.0) -> Iterator[Done]:
    """Print a line now and then."""
    total, started, shown = sum(unit.expected_seconds for unit in units), monotonic(), -every
    finished: list[float] = []

    def done(unit: Unit) -> None:
        nonlocal shown
        finished.append(unit.expected_seconds)
        elapsed = monotonic() - started
        if elapsed - shown >= every or len(finished) == len(units):
            shown = elapsed
            share = sum(finished) / total
            left = elapsed * (1 / share - 1)
            print(
                f"{len(finished):,} of {len(units):,} units, {share:.0%}; {elapsed:,.0f} s gone, "
                f"about {left:,.0f} s left",
                flush=True,
            )

    yield done
