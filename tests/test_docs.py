"""Every Python block of every page runs, as a reader would run it: one after the other."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = {
    "README.md": 3,
    "contexts.md": 1,
    "dask.md": 1,
    "guarantees.md": 2,
    "streaming.md": 1,
    "windows.md": 2,
}


def run(page):
    """Return what the blocks of a page define."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == BLOCKS[page.name]
    scope = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), scope)
    return scope


@pytest.fixture(scope="module")
def readme():
    return run(ROOT / "README.md")


def test_intervals_hold_the_probability(readme):
    assert (readme["low"] < [0.8, 0.5]).all()
    assert (readme["high"] > [0.8, 0.5]).all()


def test_guesses_are_told_from_knowledge(readme):
    low, high = readme["known"].posterior([[0.5]]).interval(0.99)
    assert low < 0.5 < high < 0.75
    assert readme["tired"].mean() == pytest.approx(0.3, abs=0.05)


def test_the_page_on_contexts():
    low, high = run(ROOT / "docs" / "contexts.md")["posterior"].interval(0.95)
    assert low < 0.7 < high


def test_the_page_on_windows():
    assert run(ROOT / "docs" / "windows.md")["model"].relevance_.tolist() == [1.0, 0.25**4]


def test_the_page_on_dask():
    scope = run(ROOT / "docs" / "dask.md")
    assert scope["low"] < 0.5 < scope["high"]
    assert scope["one"].n_trials_ == 200_000


def test_the_page_on_streaming():
    streamed, merged, read = run(ROOT / "docs" / "streaming.md")["same"]
    assert streamed == merged == read


def test_the_page_on_guarantees():
    scope = run(ROOT / "docs" / "guarantees.md")
    text = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    (needed,) = re.findall(r"# (\d+) trials for an error of 0.1\n", text)
    (bound,) = re.findall(r"after 10,000: at most ([\d.]+)\n", text)
    assert scope["guarantees"].trials_needed(0.1**2, d=1, lipschitz=1.0) == int(needed)
    assert scope["guarantees"].error_bound(10_000, 1, 1.0) == pytest.approx(float(bound), rel=0.02)
    truth = 1 - scope["X"][:, 0]
    assert ((scope["low"] <= truth) & (truth <= scope["high"])).all()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [x for x in links if "://" not in x and not (page.parent / x).is_file()]
    assert not missing
