"""Every Python block of the README runs, as a reader would run it: one after the other."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.fixture(scope="module")
def scope():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    scope = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), scope)
    return scope


def test_intervals_hold_the_probability(scope):
    assert (scope["low"] < [0.8, 0.5]).all()
    assert (scope["high"] > [0.8, 0.5]).all()


def test_guesses_are_told_from_knowledge(scope):
    low, high = scope["known"].posterior([[0.5]]).interval(0.99)
    assert low < 0.5 < high < 0.75
    assert scope["tired"].mean() == pytest.approx(0.3, abs=0.05)
