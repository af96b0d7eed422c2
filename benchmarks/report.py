"""One row a measurement, one table for all: the number, what it should be, whether it is."""

import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

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


TITLES = ("measure", "result", "at least", "aim", "verdict", "absolute (best of several)")
WIDTHS = (54, 10, 10, 10, 13, 0)


def environment() -> dict[str, str]:
    """What the numbers depend on: versions and cores."""
    versions = {name: version(name) for name in PACKAGES}
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return versions | {"Python": platform.python_version(), "cores": str(cores)}


def print_header(quick: bool) -> None:
    print(
        "betafield against its peers in the same run: "
        "uniform points, Δ by theory, float64, n_jobs=2"
    )
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
    steps = [(1e9, "GB"), (1e6, "MB")] if unit == "B" else [(1, "s"), (1e-3, "ms"), (1e-6, "µs")]
    size, name = next((step for step in steps if number >= step[0]), steps[-1])
    return f"{number / size:.3g} {name}"
