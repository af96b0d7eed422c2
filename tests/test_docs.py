"""Every Python block of every page runs and gives the output shown; the site has all pages."""

import os
import re
import runpy
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import yaml

import betafield

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = runpy.run_path(str(DOCS / "_pages.py"))
PNG = b"\x89PNG\r\n\x1a\n"


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


# By page: a test of the claims in its text, given what its blocks define.
CLAIMS = {}


def claims(name):
    """Mark a function as the test of a page's claims."""

    def kept(function):
        CLAIMS[name] = function
        return function

    return kept


ALL = [pytest.param(page, id=name_of(page)) for page in PAGES["pages"]()]
# These pages take most of the time.
LONG = ["docs/bandits.md", "docs/decisions.md", "docs/plots.md", "docs/tutorial.md"]
WITH_CODE = [
    pytest.param(p, id=name_of(p), marks=[pytest.mark.long] * (name_of(p) in LONG))
    for p in PAGES["pages"]()
    if PAGES["blocks"](p)
]


@pytest.mark.no_cover
@pytest.mark.parametrize("page", WITH_CODE)
def test_blocks_run_and_say_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    try:
        scope = PAGES["run"](page, tmp_path)
        CLAIMS.get(name_of(page), lambda _: None)(scope)
        for saved, shown in PAGES["pictures"](page, tmp_path).items():
            assert shown.read_bytes().startswith(PNG)
            assert drawn_alike(saved, shown), f"run `python docs/_pages.py {name_of(page)}`"
    finally:
        plt.close("all")


def drawn_alike(saved, shown):
    """Return whether two pictures are the same, up to fonts and rounding."""
    first, second = (plt.imread(path)[..., :3] for path in (saved, shown))
    if first.shape != second.shape:
        return np.abs(np.subtract(first.shape, second.shape)).max() <= 20  # other fonts
    return np.mean(np.abs(first - second)) < 0.015


def test_every_claim_is_of_a_page_with_code():
    assert set(CLAIMS) <= {name_of(param.values[0]) for param in WITH_CODE}


# The claims of pages ------------------------------------------------------------------------


def hill(dose):
    """Return the cure rate of the first page."""
    return 0.1 + 0.75 * np.exp(-(((dose - 6) / 2.5) ** 2))


@claims("README.md")
def _(scope):
    assert (scope["low"] < hill(np.array([2.0, 6.0]))).all()
    assert (scope["high"] > hill(np.array([2.0, 6.0]))).all()
    low, high = scope["corrected"].posterior([[6.0]]).interval(0.99)
    assert low < hill(6.0) < high
    told = re.search(r"# about ([0-9.]+); the observed share is ([0-9.]+)", text_of("README.md"))
    found = scope["corrected"].posterior([[6.0]]).mean()
    assert found == pytest.approx(float(told[1]), abs=0.02)
    near = np.abs(scope["dose"][:, 0] - 6) < 0.5
    assert scope["guessed"][near].mean() == pytest.approx(float(told[2]), abs=0.02)
    low, high = scope["half"].interval(0.99)
    truth = 6 - 2.5 * np.sqrt(np.log(0.75 / 0.4))  # where the curve first reaches one half
    assert low < truth < high


@claims("docs/contexts.md")
def _(scope):
    low, high = scope["posterior"].interval(0.95)
    assert low < 0.7 < high


@claims("docs/windows.md")
def _(scope):
    X, y = scope["X"], scope["y"]
    near = np.linalg.norm((X - X[0]) / np.ptp(X, axis=0), axis=1) <= 0.1
    assert scope["model"].posterior(X[:1]).alpha == 1 + y[near].sum()


@claims("docs/dask.md")
def _(scope):
    assert scope["low"] < 0.5 < scope["high"]
    assert scope["one"].n_trials_ == 200_000


@claims("docs/streaming.md")
def _(scope):
    streamed, merged, read = scope["same"]
    assert streamed == merged == read


@claims("docs/files.md")
def _(scope):
    assert scope["same"]
    assert scope["still"]


@claims("docs/report.md")
def _(scope):
    assert "Mortality by dose" in scope["page"]
    assert not scope["path"].exists()


@claims("docs/guarantees.md")
def _(scope):
    text = text_of("docs/guarantees.md")
    (needed,) = re.findall(r"# (\d+) trials for an error of 0.1\n", text)
    (bound,) = re.findall(r"after 10,000: at most ([\d.]+)\n", text)
    assert scope["guarantees"].trials_needed(0.1**2, d=1, lipschitz=1.0) == int(needed)
    assert scope["guarantees"].error_bound(10_000, 1, 1.0) == pytest.approx(float(bound), rel=0.02)
    truth = 1 - scope["X"][:, 0]
    assert ((scope["low"] <= truth) & (truth <= scope["high"])).all()


@claims("docs/howto/psychometric.md")
def _(scope):
    truth = 0.45 + np.log(3) / 10  # where the curve of `experiment` is 0.75
    assert truth == pytest.approx(0.56, abs=0.001)
    text, threshold = text_of("docs/howto/psychometric.md"), scope["threshold"]
    low, high = threshold.interval(0.95)
    assert low < truth < high
    told = re.search(r"about ([\d.]+), from ([\d.]+) to ([\d.]+)", text)
    found = threshold.median(), low, high
    assert found == pytest.approx([float(number) for number in told.groups()], abs=0.01)
    of_answers = float(re.search(r"random_state=0\)   # about ([\d.]+)", text)[1])
    assert scope["right"].median() == pytest.approx(of_answers, abs=0.01)
    assert scope["anchored"].not_reached < 0.01 < scope["free"].not_reached
    assert scope["held"] >= 13  # of 15; 14.25 are expected
    assert scope["levels"].tolist() == [35, 40, 45, 50, 55, 65]
    assert scope["enough"] == pytest.approx([0, 0, 0, 1, 1, 0.75], abs=0.05)


@claims("docs/howto/screening.md")
def _(scope):
    truth = scope["prevalence"](np.array(scope["towns"]))
    assert truth == pytest.approx([0.11, 0.06, 0.01], abs=0.003)
    assert ((scope["low"] < truth) & (truth < scope["high"])).all()
    told = re.search(r"about (\d+), (\d+) and (\d+) %", text_of("docs/howto/screening.md"))
    ignored = scope["ignored"].posterior(scope["towns"]).mean()
    assert 100 * ignored == pytest.approx([float(number) for number in told.groups()], abs=0.6)
    assert scope["alarm"].sum() > 50
    assert scope["wrong"].sum() < 0.05 * scope["alarm"].sum()


@claims("docs/howto/clicks.md")
def _(scope):
    truth = scope["appeal"](np.array(scope["offers"]))
    learned, plain = (scope[name].posterior(scope["offers"]) for name in ("model", "plain"))
    low, high = learned.interval(0.99)
    assert ((low < truth) & (truth < high)).all()
    assert truth == pytest.approx([0.26, 0.08], abs=0.005)
    assert plain.mean()[1] < 0.6 * truth[1]
    p = np.linspace(0, 1, 20_001)
    density, below = scope["rivals"].pdf(p[:, None])[:, 0], scope["rivals"].cdf(p[:, None])[:, 1]
    assert scope["better"] == pytest.approx(np.trapezoid(density * below, p), abs=0.03)
    assert scope["better"] < 0.99
    assert scope["expected"] == pytest.approx(0.5 * learned.mean(), rel=1e-9)


@claims("docs/howto/dose_response.md")
def _(scope):
    text = text_of("docs/howto/dose_response.md")
    correlation = float(re.search(r"overdispersion_ +# about ([0-9.]+)", text)[1])
    assert scope["model"].overdispersion_ == pytest.approx(correlation, abs=0.02)
    told = re.search(r"about (\d+), from (\d+) to (\d+)", text)
    found = scope["half"].median(), *scope["half"].interval(0.95)
    assert found == pytest.approx([float(number) for number in told.groups()], abs=0.6)
    # Abbott's correction at the chambers near 30, without a model.
    rows, near = scope["rows"], np.abs(scope["dose"][:, 0] - 30) <= 3
    dead, control = rows["dead"][near].sum(), rows["control_mortality"][near]
    control = np.average(control, weights=rows["insects"][near])
    corrected = (dead / rows["insects"][near].sum() - control) / (1 - control)
    assert scope["low"] < corrected < scope["high"]
    assert scope["nearly_all"].never > 0.99
    assert scope["nearly_all"].median() == scope["dose"].max()


@claims("CONTRIBUTING.md")
def _(scope):
    text = text_of("src/betafield/contexts.py")
    assert "def in_series" not in text, "the guide adds what is there already: find another example"
    del scope["contexts"].in_series


@claims("docs/index.md")
def _(scope):
    truth = hill(np.array([2.0, 6.0]))
    assert ((scope["low"] < truth) & (truth < scope["high"])).all()


@claims("docs/limits.md")
def _(scope):
    mean, (low, high) = scope["outside"].mean(), scope["outside"].interval(0.95)
    assert mean == pytest.approx([0.78, 0.67, 0.53], abs=0.02)
    assert scope["y"].mean() == pytest.approx(0.53, abs=0.005)
    assert low == pytest.approx([0.60, 0.05, 0], abs=0.03)
    assert high == pytest.approx([0.94, 1, 1], abs=0.03)
    assert np.ravel(scope["ignored"]) == pytest.approx([0.45, 0.51], abs=0.01)
    assert np.ravel(scope["grouped"]) == pytest.approx([0.42, 0.55], abs=0.01)
    assert scope["error"] == pytest.approx(0.06, abs=0.02)
    assert [scope["beside"], scope["away"]] == pytest.approx([0.36, 0.95], abs=0.03)


@claims("docs/tutorial.md")
def _(scope):
    text = text_of("docs/tutorial.md")
    told = [float(number) for number in re.findall(r"# (0\.\d{3})$", text, re.MULTILINE)]
    assert [scope["always"], scope["hour"], scope["day_and_hour"]] == pytest.approx(told, abs=0.001)
    morning, evening, *interval = re.findall(
        r"0\.\d\d(?= at 7| to|$)", between(text, "mean()", "prob_above"), re.MULTILINE
    )
    assert scope["posterior"].mean() == pytest.approx([float(morning), float(evening)], abs=0.005)
    ends = scope["low"][1], scope["high"][1]
    assert ends == pytest.approx([float(number) for number in interval], abs=0.006)
    assert scope["posterior"].prob_above(0.25) == pytest.approx([0, 1], abs=0.005)
    assert scope["model"].weights_["levels"][0] == "day_of_year"
    assert scope["model"].length_scales_ == pytest.approx([58.3, 8.9], rel=0.02)
    assert scope["together"].n_trials_ == 30_000
    same = [
        m.predict_proba(scope["test"][scope["columns"]])
        for m in (scope["together"], scope["again"])
    ]
    np.testing.assert_array_equal(*same)


@claims("docs/decisions.md")
def _(scope):
    assert scope["status"]["known"]["threshold"] == pytest.approx(0.6, abs=0.05)
    assert scope["same"]


@claims("docs/bandits.md")
def _(scope):
    assert scope["best"]["price"] == pytest.approx(7, abs=1)
    assert (scope["young"], scope["old"]) == ("red", "blue")
    assert scope["same"]
    assert scope["draws"].exponent() < 1


@claims("docs/tracking.md")
def _(scope):
    began = scope["began"]
    assert began
    assert min(day for day, _ in began) >= 40
    assert all(0.55 <= alarm["place"][0] <= 0.85 for _, alarm in began)
    assert scope["usual"].began == 0


def between(text, start, stop):
    return text.split(start)[1].split(stop)[0]


# Links between pages ------------------------------------------------------------------------


def anchors(page):
    """Return the anchors of a page's headings, as the site makes them."""
    text = re.sub(r"(?ms)^```.*?^```", "", page.read_text(encoding="utf-8"))
    titles = [title.lower() for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", title)).strip("-") for title in titles}


def links_of(page):
    """Return the links of a page, without code."""
    return re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", page.read_text(encoding="utf-8")))


def test_most_pages_lead_somewhere():
    assert sum(bool(links_of(page)) for page in PAGES["pages"]()) > len(ALL) / 2


@pytest.mark.parametrize("page", ALL)
def test_links_lead_somewhere(page):
    for link in links_of(page):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        there = (page.parent / target).resolve() if target else page
        assert there.is_file(), link
        assert not anchor or anchor in anchors(there), link


def in_menu(entry):
    """Return the pages in a part of the menu."""
    if isinstance(entry, str):
        return [entry]
    parts = entry if isinstance(entry, list) else list(entry.values())
    return [page for part in parts for page in in_menu(part)]


def test_every_page_is_in_the_menu_once():
    menu = in_menu(yaml.safe_load(text_of("mkdocs.yml"))["nav"])
    outside = runpy.run_path(str(DOCS / "_site.py"))["PAGES"]
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert sorted(menu) == sorted([*pages, *outside.values()])


def test_the_reference_has_every_public_name():
    reference = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    public = set(betafield.__all__) - {"__version__"}
    assert {name for name in public if not re.search(rf"\b{name}\b", reference)} == set()


def rooms():
    """Return the rows of the table of rooms, from the top."""
    table = between(text_of("docs/architecture.md"), "|---|---|\n", "\n\n").splitlines()
    return [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table]


def test_the_architecture_page_has_every_room():
    package = ROOT / "src" / "betafield"
    there = {path.stem for path in package.glob("*.py")} - {"__init__"}
    there |= {path.parent.name for path in package.glob("*/__init__.py")}
    listed = [room for row in rooms() for room in row]
    assert sorted(listed) == sorted(there)
    for name in ("process", "windows", "posteriors", "answers", "decisions", "files", "cli"):
        told = between(text_of("docs/architecture.md"), f"- `{name}`:", "\n-")
        inside = {path.stem for path in (package / name).glob("*.py")} - {"__init__"}
        assert inside <= set(re.findall(r"`(\w+)`", told.split("\n\n")[0]))


def test_rooms_stand_in_the_order_of_imports():
    layers = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"][0][
        "layers"
    ]
    row = {room: i for i, names in enumerate(rooms()) for room in names}
    heights = [
        [
            row[name.removeprefix("betafield.").strip()]
            for name in re.findall(r"betafield\.\w+", layer)
        ]
        for layer in layers
    ]
    assert all(max(upper) < min(lower) for upper, lower in pairwise(heights))


# The site -----------------------------------------------------------------------------------


class Fetched(HTMLParser):
    """Collects what a browser would fetch to show a page."""

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        names = {"link": ["href"], "object": ["data"], "video": ["src", "poster"]}.get(tag, ["src"])
        self.addresses += [attrs[name] for name in (*names, "srcset") if attrs.get(name)]
        self.addresses += re.findall(r"url\(([^)]*)\)", attrs.get("style") or "")


def built(folder):
    """Return the site, built as by `make docs`."""
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        check=False,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


@pytest.mark.long
def test_the_site_is_built_without_warnings_and_asks_nothing_of_other_hosts(tmp_path):
    site = built(tmp_path)
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list(DOCS.rglob("*.md")))
    for page in pages:
        fetched, text = Fetched(), page.read_text(encoding="utf-8")
        fetched.feed(text)
        assert fetched.addresses
        assert not [a for a in fetched.addresses if re.match(r"\s*['\"]?(\w+:)?//", a)], page
        assert 'class="mermaid"' not in text  # the theme would fetch its renderer
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(\w+:)?//", sheet.read_text("utf-8")), sheet
    reference = (site / "api" / "classifier.html").read_text(encoding="utf-8")
    assert 'id="betafield.estimators.SmoothBetaClassifier.partial_fit"' in reference
    assert "the Smooth Beta Process" in reference
    assert (site / "search" / "search_index.js").is_file()  # search works from disk
    assert 'class="arithmatex"' in (site / "how_it_works.html").read_text(encoding="utf-8")
    home = (site / "index.html").read_text(encoding="utf-8")
    assert re.search(r'<a href="(assets/first\.png)"><img [^>]*src="\1"', home)  # a tap enlarges it


def test_long_cells_of_tables_are_marked():
    """They are given more room on a phone."""
    site = runpy.run_path(str(DOCS / "_site.py"))
    short, long = "<td><code>Everywhere()</code></td>", "<td>the trial after which it is least</td>"
    assert site["on_page_content"](short) == short
    assert site["on_page_content"](long) == long.replace("<td>", '<td class="long">')


def test_every_target_of_make_has_its_lines_for_people_without_make():
    """Except those that list the targets, prepare the others, or clean up."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*##", text, re.MULTILINE))
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lines = page.partition("### Without make")[2].partition("\n## ")[0]
    assert set(re.findall(r"`make ([a-z-]+)`", lines)) == targets - {
        "help",
        "environments",
        "clean",
    }
