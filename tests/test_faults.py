"""The benchmarks of reliability, on a few cases each: they run, and find no failures."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def figure(name, cases):
    """Return the exit status and the cells of the row that a benchmark prints."""
    command = [sys.executable, "benchmarks/faults.py", name, "--cases", str(cases)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.stdout, run.stderr
    return run.returncode, [cell.strip() for cell in run.stdout.splitlines()[-1].split("|")[1:-1]]


# Orders and settled models are tested by generated cases in every run.
FEW = [
    pytest.param("orders", 20, marks=pytest.mark.long),
    pytest.param("settled", 10, marks=pytest.mark.long),
    ("threads", 640),
]


@pytest.mark.parametrize(("name", "cases"), FEW)
def test_no_harm_is_done(name, cases):
    status, cells = figure(name, cases)
    assert cells[0] == name
    assert cells[2:4] == [f"{cases:,}", "0"]
    assert status == 0


def test_the_figures_of_the_page_are_those_of_the_command():
    page = (ROOT / "docs" / "reliability.md").read_text()
    help_ = subprocess.run(
        [sys.executable, "benchmarks/faults.py", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = help_[help_.index("{") + 1 : help_.index("}")].split(",")
    assert len(names) == 8
    assert [name for name in names if f"\n| {name} |" in page] == names
