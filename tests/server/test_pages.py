"""The dashboard and the example as people see them: a real server, a real Chromium."""

import html
import re
import uuid

import numpy as np
import pytest
from tests.browsing import browsers
from tests.server.proxy import Proxy
from tests.server.serving import TOKEN

from betafield.client import Study
from betafield.decisions import Everywhere, Integer, LevelSet, Log
from betafield.server import pages

OPTIONS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
HOSTILE_LEVEL = "<img src=x onerror=alert(3)> %{x}"
HOSTILE = "<script>alert(1)</script> %{y} <b>"
# Milliseconds within which something must happen.
PATIENCE = 240_000


@pytest.fixture(scope="module")
def browser():
    yield from browsers("the pages", OPTIONS)


class Visitor:
    """A page, with everything that went wrong on it or went to another address."""

    def __init__(self, browser, viewport=DESK, **options):
        touch = viewport is PHONE
        self.context = browser.new_context(
            viewport=viewport, has_touch=touch, is_mobile=touch, **options
        )
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.troubles, self.requests = [], []
        self.page.on("console", lambda m: self.troubles.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", lambda d: (self.troubles.append(d.message), d.dismiss()))
        self.context.on("request", lambda request: self.requests.append(request.url))

    def opened(self, study, role="owner"):
        """Open the dashboard of a study by its link."""
        self.response = self.page.goto(f"{study.url}/dashboard?token={study.tokens[role]}")
        return self

    def drawn(self, told):
        """Wait until this many trials are in the picture."""
        self.page.wait_for_selector(f"html[data-drawn='{told}']", state="attached")
        return self

    def text(self, place):
        return self.page.inner_text(f"#{place}")

    def fits(self):
        wide, window = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        return wide <= window

    def outside(self, address):
        """Return requests to any other address."""
        return [url for url in self.requests if not url.startswith((address, "data:", "blob:"))]

    def close(self):
        self.context.close()


@pytest.fixture
def visit(browser):
    """Open pages, and close them at the end."""
    opened = []

    def visitor(viewport=DESK, **options):
        opened.append(Visitor(browser, viewport, **options))
        return opened[-1]

    yield visitor
    for each in opened:
        each.close()


def made(server, space, goal=None, name=None, **options):
    """Return a study of a quick model, as its owner."""
    study = Study.create(
        server.address,
        TOKEN,
        name=name or f"page-{uuid.uuid4().hex[:8]}",
        space=space,
        goal=goal or LevelSet(0.75),
        seed=1,
        **options,
    )
    study.url = f"{server.address}/studies/{study.name}"
    return study


def play(study, n, rng, who="anna"):
    for _ in range(n):
        trial = study.ask(participant=who)
        study.tell(trial, success=rng.uniform() < 0.5 + trial[next(iter(trial))])


@pytest.fixture(scope="module")
def line(server):
    with made(server, {"contrast": (0, 0.5)}, strategy="sobol") as study:
        play(study, 12, np.random.default_rng(0))
        study.ask(2, participant="bo")
        yield study


# The dashboard --------------------------------------------------------------------------------


def test_the_dashboard_is_live(line, server, visit):
    visitor = visit(PHONE, color_scheme="dark").opened(line).drawn(12)
    page = visitor.page
    assert page.url == f"{line.url}/dashboard"  # the token is gone from the address
    assert visitor.text("told") == "12"
    assert visitor.text("pending").startswith("2 pending")
    assert visitor.text("who") == "anna, bo"
    known = line.status()["known"]
    assert float(visitor.text("answer")) == pytest.approx(known["threshold"], abs=1e-4)
    assert re.search(r"95 % interval [\d.]+ to [\d.]+", visitor.text("answer-more"))
    curve = "document.getElementById('plot-0').data[2].y"
    before = page.evaluate(curve)
    believed = line.posterior(grid=len(before))
    np.testing.assert_allclose(before, believed["mean"], atol=1e-9)
    assert visitor.fits()
    # Somebody else tells a trial: the page updates by itself.
    play(line, 1, np.random.default_rng(1), who="cleo")
    visitor.drawn(13)
    assert visitor.text("told") == "13"
    assert "cleo" in visitor.text("who")
    assert page.evaluate(curve) != before
    assert "cleo" in page.inner_text("#rows tr:first-child")
    assert page.locator("#rows tr").count() == 12
    assert visitor.troubles == []
    assert visitor.outside(server.address) == []
    cookies = {cookie["name"]: cookie for cookie in visitor.context.cookies()}
    assert cookies["betafield"]["httpOnly"]
    assert cookies["betafield"]["sameSite"] == "Strict"


def test_owners_stop_a_study_and_viewers_do_not(line, visit):
    visitor = visit().opened(line).drawn(line.status()["told"])
    page = visitor.page
    page.click("#stop")
    page.click("#stop-no")
    assert not line.status()["stopped"]
    page.click("#stop")
    page.click("#stop-yes")
    page.wait_for_selector("#state[data-state=stopped]")
    assert line.status()["stopped"]
    with pytest.raises(ValueError, match="stopped"):
        line.ask()
    page.click("#resume")
    page.wait_for_selector("#state[data-state=live]")
    assert not line.status()["stopped"]
    for ending, text in (("csv", b"contrast"), ("parquet", b"PAR1")):
        with page.expect_download() as download:
            page.click(f"a[download$='.{ending}']")
        with open(download.value.path(), "rb") as file:
            assert text in file.read(200)
    assert visitor.fits()
    assert visitor.troubles == []
    viewer = visit().opened(line, "view")
    assert viewer.page.locator("#stop").count() == 0
    policy = viewer.response.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    scripts = [
        each for each in policy.split("; ") if each.startswith(("script-src", "default-src"))
    ]
    assert not any("unsafe" in each for each in scripts)


def test_hostile_names_do_nothing_but_show(server, visit):
    with made(server, {HOSTILE: (0, 1), "$x^2$ &lt;": (0, 1)}, strategy="sobol") as study:
        play(study, 4, np.random.default_rng(2), who="<img src=x onerror=alert(2)>")
        visitor = visit().opened(study).drawn(4)
        page = visitor.page
        title = page.locator("#plot-0 .xtitle").text_content()
        assert title == HOSTILE
        assert page.locator("#plot-0 .ytitle").text_content() == "$x^2$ &lt;"
        assert HOSTILE in page.inner_text("thead")
        assert "<img src=x" in visitor.text("who")
        assert page.locator("script").count() == 2
        assert page.locator("img, iframe, object, [onerror]").count() == 0
        assert visitor.troubles == []
        assert visitor.outside(server.address) == []


DRAWN = "document.getElementById('plot-0').data"


def test_a_level_is_chosen_above_the_figures(server, visit):
    space = {"contrast": (0, 0.5), "eye": ["left", HOSTILE_LEVEL]}
    with made(server, space, strategy="sobol") as study:
        play(study, 8, np.random.default_rng(3))
        rows = study.trials()
        visitor = visit(PHONE).opened(study).drawn(8)
        page, shown = visitor.page, {}
        assert page.locator("select").count() == 1
        assert page.locator("option").all_inner_texts() == space["eye"]
        for level in space["eye"]:
            if shown:
                page.locator("select").focus()
                page.keyboard.press("ArrowDown")
                page.wait_for_function(f"y => {DRAWN}[2].y[60] !== y", arg=shown["left"][60])
            shown[level] = page.evaluate(f"{DRAWN}[2].y")
            x = np.linspace(0, 0.5, len(shown[level]))
            believed = study.posterior({"contrast": x, "eye": level})
            np.testing.assert_allclose(shown[level], believed["mean"], atol=1e-9)
            marked = page.evaluate(f"{DRAWN}.slice(3).flatMap((each) => each.x)")
            made_there = [row["contrast"] for row in rows if row["eye"] == level]
            assert sorted(marked) == sorted(made_there)
            assert 0 < len(marked) < 8
        hover = page.evaluate(f"{DRAWN}.slice(3).flatMap((each) => each.text)")
        assert all(html.escape(HOSTILE_LEVEL) in each for each in hover)
        cells = page.locator("#rows td:nth-child(3)").all_inner_texts()
        assert cells == [row["eye"] for row in reversed(rows)]
        assert page.locator("img, iframe, object, [onerror]").count() == 0
        assert visitor.fits()
        assert visitor.troubles == []
        # The script for browsers passes on names of levels.
        page.goto(f"{server.address}/examples/two-alternatives?study={study.name}")
        values = page.evaluate(
            """async ([url, token, eye]) => {
                const study = new Betafield.Study(url, {token});
                const trial = await study.ask({fixed: {eye}});
                await study.tell(trial, true);
                await study.tell({contrast: 0.25, eye: "left"}, false);
                return trial.values;
            }""",
            [study.url, study.tokens["run"], HOSTILE_LEVEL],
        )
        assert values["eye"] == HOSTILE_LEVEL
        told = [(row["eye"], row["success"]) for row in study.trials()[-2:]]
        assert told == [(HOSTILE_LEVEL, True), ("left", False)]


def test_levels_without_ranges_have_points_with_bars(server, visit):
    space = {"eye": ["left", HOSTILE_LEVEL, "<b>both</b>"], "light": [True, False]}
    with made(server, space, Everywhere(), strategy="sobol") as study:
        for trial in study.ask(5):
            study.tell(trial, trial["eye"] == "left")
        visitor = visit().opened(study).drawn(5)
        page = visitor.page
        found, believed = page.evaluate(f"{DRAWN}[0]"), study.posterior()
        at = [i for i, each in enumerate(believed["points"]) if each["light"] is True]
        np.testing.assert_allclose(found["y"], believed["mean"][at], atol=1e-9)
        top = np.add(found["y"], found["error_y"]["array"])
        np.testing.assert_allclose(top, believed["high"][at], atol=1e-9)
        ticks = page.locator("#plot-0 .xtick text").all_text_contents()
        assert ticks == ["left", f"{HOSTILE_LEVEL[:15]}…", "<b>both</b>"]
        assert page.locator("#plot-1 .xtick text").all_text_contents() == ["true", "false"]
        assert page.locator("img, [onerror]").count() == 0
        assert visitor.troubles == []


def test_a_map_over_decades_and_whole_numbers(server, visit):
    space = {"contrast": Log(0.001, 1), "items": Integer(1, 5)}
    with made(server, space, Everywhere(), strategy="sobol") as study:
        for trial in study.ask(6):
            study.tell(trial, trial["contrast"] > 0.03)
        visitor = visit().opened(study).drawn(6)
        page = visitor.page
        found = page.evaluate(f"{DRAWN}[0]")
        np.testing.assert_allclose(found["x"], np.geomspace(0.001, 1, 33), rtol=1e-9)
        assert found["y"] == [1, 2, 3, 4, 5]
        believed = study.posterior({"contrast": found["x"], "items": 4})
        np.testing.assert_allclose(found["z"][3], believed["mean"], atol=1e-9)
        layout = page.evaluate("document.getElementById('plot-0').layout")
        assert [layout[axis]["type"] for axis in ("xaxis", "yaxis")] == ["log", "linear"]
        np.testing.assert_allclose(layout["xaxis"]["range"], [-3.06, 0.06])  # of the logarithm
        assert page.locator("#plot-0 .xtick").count() > 0
        cells = page.locator("#rows td:nth-child(2)").all_inner_texts()
        told = [row["contrast"] for row in reversed(study.trials())]
        np.testing.assert_allclose(np.array(cells, dtype=float), told, rtol=0.006)
        assert visitor.troubles == []


@pytest.mark.parametrize("kind", ["Everywhere", "Maximize", "Minimize", "Compare", "LevelSet"])
def test_pages_say_what_a_study_is_for(kind):
    goal = {"kind": kind, "level": 0.75, "points": [{"<i>": 0}, {"<i>": 1}]}
    page = pages.dashboard("dots", {"space": {"<i>": [0, 1]}, "goal": goal}, "view")
    assert "<i>" not in page
    assert pages.purpose(goal, ["<i>"]).endswith("?")


# The example ----------------------------------------------------------------------------------

# Observers judge which disc varies more.
SEEN = """() => ["left", "right"].map((id) => {
    const canvas = document.getElementById(id);
    const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    let sum = 0, squares = 0, n = 0;
    for (let i = 0; i < data.length; i += 4) { sum += data[i]; squares += data[i] ** 2; n += 1; }
    return squares / n - (sum / n) ** 2;
})"""


def observed(page, answer):
    """Answer a trial like somebody who sees well."""
    page.wait_for_selector("#choose-left:not([disabled])")
    left, right = page.evaluate(SEEN)
    answer("left" if left > right else "right")
    page.wait_for_selector("#choose-left[disabled]")


def test_an_experiment_runs_from_loading_to_the_last_trial(server, visit):
    with made(server, {"contrast": (0.2, 0.9)}, strategy="sobol") as study:
        link = f"{server.address}/examples/two-alternatives?study={study.name}&trials=4"
        visitor = visit()
        page = visitor.page
        page.goto(f"{link}#token={study.tokens['run']}")
        assert "token" not in page.url
        page.fill("#participant", "dora")
        page.keyboard.press("Enter")
        for _ in range(2):
            observed(page, lambda side: page.keyboard.press(f"Arrow{side.capitalize()}"))
        for _ in range(2):
            observed(page, lambda side: page.click(f"#choose-{side}"))
        page.get_by_text("All of them have arrived").wait_for()
        rows = study.trials()
        told = [row for row in rows if row["state"] == "told"]
        assert [row["participant"] for row in told] == ["dora"] * 4
        right = sum(row["success"] for row in told)
        assert right >= 3  # the discs are cleared after a while, and a slow machine may miss one
        assert f"{25 * right} %" in page.inner_text("#result")
        others = [each for each in visitor.troubles if "willReadFrequently" not in each]
        assert others == []
        assert visitor.outside(server.address) == []


@pytest.mark.long
def test_answers_survive_a_network_that_fails_and_a_page_that_is_left(server, visit):
    study = made(server, {"contrast": (0.2, 0.9)}, strategy="sobol")
    with study, Proxy(server.address, seed=1, most=2500) as proxy:
        page = visit(PHONE).page
        page.goto(f"{proxy.address}/examples/two-alternatives?study={study.name}&trials=1")
        proxy.is_cutting = True
        found = page.evaluate(
            """async ([name, token]) => {
                const study = new Betafield.Study(location.origin, {study: name, token});
                const asked = [];
                for (let i = 0; i < 6; i += 1) {
                    const trial = await study.ask();
                    asked.push(trial.id);
                    await study.tell(trial, i % 2 === 0);
                }
                await study.send();
                return [asked, study.unsent.length];
            }""",
            [study.name, study.tokens["run"]],
        )
        assert found == [[0, 1, 2, 3, 4, 5], 0]
        assert proxy.cut > 2
        assert [row["success"] for row in study.trials()] == [True, False] * 3
        # Unsent outcomes stay in the browser, and are sent when the study is opened again.
        proxy.is_cutting = False
        kept = page.evaluate(
            """async ([name, token]) => {
                const options = {study: name, token, patience: 1};
                const study = new Betafield.Study(location.origin, options);
                window.trial = await study.ask();
                const reach = window.fetch;
                window.fetch = () => Promise.reject(new TypeError("no network"));
                const isThere = await study.tell(trial, true);
                window.fetch = reach;
                return [isThere, study.unsent.length];
            }""",
            [study.name, study.tokens["run"]],
        )
        assert kept == [False, 1]
        page.reload()
        sent = page.evaluate(
            """async ([name, token, trial]) => {
                const study = new Betafield.Study(`${location.origin}/studies/${name}`, {token});
                const before = study.unsent.length;
                await study.send();
                const refusal = await study.tell(6, false).catch((e) => [e.name, e.status]);
                return [before, study.unsent.length, refusal];
            }""",
            [study.name, study.tokens["run"]],
        )
        assert sent == [1, 0, ["Refused", 409]]
        assert study.trials()[6]["success"] is True
