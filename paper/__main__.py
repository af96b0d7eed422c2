"""Run every experiment of the paper: ``python -m paper``; reduced: ``python -m paper --quick``.

Prints a table of checks (met or MISSED); the quick run fails if one is missed. The full run writes
paper/results.json, the pictures and the tables of docs/paper.md. A stopped run goes on where it
was: what has been computed is kept in out/paper.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from paper import figure_1, figure_2, figure_3, figure_4, harness, measures, page, theorems
from paper.results import Check, Checks, Curve, Results
from paper.sizes import FULL, QUICK, Sizes

ROOT = Path(__file__).parent.parent
FIGURES = (figure_1, figure_2, figure_3, figure_4, theorems)
CHECKS: Checks = {name: check for figure in FIGURES for name, check in figure.CHECKS.items()}


def curves(sizes: Sizes) -> list[Curve]:
    """Return every curve of every figure."""
    return [curve for figure in FIGURES for curve in figure.curves(sizes)]


def reproduce(sizes: Sizes, folder: Path, jobs: int, measure: harness.Measure) -> Results:
    """Compute what is not kept in the folder yet, and return all curves."""
    cache = harness.Cache(folder)
    wanted = curves(sizes)
    units = (unit for curve in wanted for unit in curve.units())
    harness.run(units, cache, jobs, measure=measure)
    return Results.read(wanted, cache)


def checked(results: Results) -> dict[str, Check]:
    """Return every check of what the paper says."""
    return {name: check(results) for name, check in CHECKS.items()}


def save(results: Results, checks: dict[str, Check], sizes: Sizes, path: Path) -> None:
    """Write all numbers; posterior means, which are pictures, are left out."""
    text = json.dumps(page.as_json(results, checks, sizes), indent=1, ensure_ascii=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def publish(results: Results, checks: dict[str, Check], sizes: Sizes, quick: Path | None) -> None:
    """Write numbers and pictures: into the quick run's folder, or where the page shows them."""
    save(results, checks, sizes, quick / "results.json" if quick else page.RESULTS)
    for figure in FIGURES:
        figure.draw(results, quick or page.PICTURES)
    if quick is None:
        page.renew()


def main(
    arguments: Sequence[str] | None = None,
    quick: Sizes = QUICK,
    measure: harness.Measure = measures.measure,
) -> int:
    chosen = parsed(arguments)
    sizes, started = (quick if chosen.quick else FULL), perf_counter()
    if chosen.fresh:
        harness.Cache(chosen.cache).clear()
    results = reproduce(sizes, chosen.cache, chosen.jobs, measure)
    checks = checked(results)
    publish(results, checks, sizes, chosen.cache / "quick" if chosen.quick else None)
    print(*checks.values(), sep="\n")
    missed = sum(not check.met for check in checks.values())
    print(f"{len(checks) - missed} of {len(checks)} met; {perf_counter() - started:,.0f} s")
    # What the full run misses is a finding, and stands on the page; the quick run is a test.
    return int(chosen.quick and missed > 0)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="fewer runs; writes to the cache only")
    parser.add_argument("--fresh", action="store_true", help="forget what was computed before")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--cache", type=Path, default=ROOT / "out" / "paper", help="where to keep")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
