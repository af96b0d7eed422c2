"""The report as a reader sees it: opened from disk in a real Chromium, without any network."""

import re

import numpy as np
import pandas as pd
import pytest
from tests.browsing import browsers

from betafield import SmoothBetaClassifier, report

OPTIONS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(2)</script>",
    "$x^2$ %{y} <b>bold</b> &lt;",
    "\"quoted\" 'too' `${alert(3)}`",
    "line\u2028separator\u2029 <a href='javascript:alert(4)'>here</a>",
    "long " * 60,
    "\u202eright to left \u05d0\u05d1\u05d2",
    "{{ 7 * 7 }}{% raw %}",
]


@pytest.fixture(scope="module")
def browser():
    yield from browsers("the report", OPTIONS)


class Reader:
    """A page, and everything that went wrong on it."""

    def __init__(self, browser, path, viewport=DESK, **options):
        self.touch = touch = viewport is PHONE
        self.context = browser.new_context(
            viewport=viewport, offline=True, has_touch=touch, is_mobile=touch, **options
        )
        self.context.set_default_timeout(240_000)
        self.page, self.address = self.context.new_page(), path.as_uri()
        self.troubles, self.requests = [], []
        self.page.on("console", lambda m: self.troubles.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(self.address)

    def _dismiss(self, dialog):
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def drawn(self):
        self.page.wait_for_selector("html[data-drawn]")
        return self

    def pixel(self, figure, x, y):
        """Return the position of a figure's point in the window."""
        return self.page.evaluate(
            """([id, x, y]) => {
                const plot = document.getElementById(id);
                plot.scrollIntoView({block: "center"});
                const box = plot.getBoundingClientRect(), all = plot._fullLayout;
                return [box.left + all.xaxis._offset + all.xaxis.l2p(x),
                        box.top + all.yaxis._offset + all.yaxis.l2p(y)];
            }""",
            [f"figure-{figure}", x, y],
        )

    def hover(self, figure, x, y):
        """Return the text shown under the mouse, or under the finger on a phone."""
        at, page = self.pixel(figure, x, y), self.page
        found = page.locator(f"#figure-{figure} .hovertext")
        if self.touch:
            page.touchscreen.tap(*at)
        else:
            page.mouse.move(1, 1)
            page.wait_for_function("!document.querySelector('.hoverlayer .hovertext')")
            page.mouse.move(*at)
        found.first.wait_for()
        # The share of trials next to a curve may be shown too: put the curve first.
        return "\n".join(sorted(found.all_text_contents(), key=lambda text: "P(" not in text))

    def choose(self, label):
        """Choose a class, and wait for its map."""
        if label.locator("input").is_checked():
            return
        self.page.evaluate(
            """() => { window.redrawn = new Promise((resolve) => {
                document.getElementById("figure-map").once("plotly_afterplot", resolve);
                setTimeout(resolve, 240000);
            }); }"""
        )
        label.click()
        self.page.evaluate("() => window.redrawn.then(() => true)")

    def fits(self):
        wide, window = self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        return wide <= window

    def close(self):
        self.context.close()


@pytest.fixture(scope="module")
def readers():
    """Pages that are already open, because loading plotly takes a browser a second."""
    return {}


@pytest.fixture
def read(browser, readers):
    """Open pages, and check at the end for messages, requests and data sent."""
    used = []

    def opened(path, viewport=DESK):
        key = path, viewport["width"]
        if key not in readers:
            readers[key] = Reader(browser, path, viewport).drawn()
        used.append(readers[key])
        return readers[key]

    yield opened
    for reader in used:
        assert reader.troubles == []
        assert reader.requests == [reader.address]


def percents(text):
    """Return the percentages in a text, as fractions."""
    return [float(found) / 100 for found in re.findall(r"([\d.]+)\s?%(?! interval)", text)]


def trials(text):
    (found,) = re.findall(r"trials near ([\d,]+)", text)
    return int(found.replace(",", ""))


# Pages -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reports")


@pytest.fixture(scope="module")
def line(folder):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"dose": rng.uniform(0, 10, size=2_000)})
    y = rng.uniform(size=2_000) < X["dose"] / 10
    model = SmoothBetaClassifier(bandwidth=0.1).fit(X, y)
    report.write(model, folder / "line.html", lipschitz=1.0)
    return model, folder / "line.html"


@pytest.fixture(scope="module")
def plane(folder):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.uniform(size=(3_000, 2)) * [360, 24], columns=["day", "hour"])
    late = rng.uniform(size=3_000) < X["hour"] / 24
    model = SmoothBetaClassifier().fit(X, np.where(late, "late", "on time"))
    report.write(model, folder / "plane.html")
    return model, folder / "plane.html"


@pytest.fixture(scope="module")
def classes(folder):
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(2_000, 2))
    y = np.array(["low", "mid", "top"])[(2.99 * X[:, 0]).astype(int)]
    model = SmoothBetaClassifier().fit(X, y)
    report.write(model, folder / "classes.html")
    return model, folder / "classes.html"


@pytest.fixture(scope="module")
def many(folder):
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.uniform(size=(1_001, 4)), columns=["heat", "damp", "age", "sort"])
    model = SmoothBetaClassifier().fit(X, rng.uniform(size=1_001) < X["heat"])
    report.write(model, folder / "many.html")
    return model, folder / "many.html", X


@pytest.fixture(scope="module")
def hostile(folder):
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.uniform(size=(400, len(HOSTILE))), columns=HOSTILE)
    y = rng.permutation(np.repeat(HOSTILE, 50))
    asked = {"title": " ".join(HOSTILE), "command": "\n".join(HOSTILE), "source": HOSTILE}
    for name, used in [("many", HOSTILE), ("one", HOSTILE[:1]), ("two", HOSTILE[1:3])]:
        outcome = y if name == "two" else np.where(y == HOSTILE[1], HOSTILE[1], HOSTILE[4])
        model = SmoothBetaClassifier(bandwidth=0.5).fit(X[used], outcome)
        report.write(model, folder / f"hostile-{name}.html", **asked)
    return folder


# Hover -------------------------------------------------------------------------------------


@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_a_curve_tells_value_and_interval_where_it_is_pointed_at(read, line, viewport):
    model, path = line
    x = np.linspace(*model.bounds_[0], 300)[120]
    posterior = model.posterior(pd.DataFrame({"dose": [x]}))
    (mean,), ((low,), (high,)) = posterior.mean(), posterior.interval(0.95)
    text = read(path, viewport).hover("curve", x, mean)
    guaranteed = np.ravel(model.band(pd.DataFrame({"dose": [x]}), lipschitz=1.0))
    assert "dose" in text
    assert percents(text)[:5] == pytest.approx([mean, low, high, *guaranteed], abs=0.00056)
    near = np.abs(model.windows_.places[0].axes[0] - (x - model.bounds_[0, 0]) / model.scale_[0])
    assert trials(text) == np.sum(near <= 0.1)


@pytest.mark.sampled
@pytest.mark.parametrize("figure", ["map", "unsure"])
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_a_map_tells_value_and_interval_where_it_is_pointed_at(read, plane, viewport, figure):
    model, path = plane
    (a, b), (c, d) = model.bounds_
    at = pd.DataFrame({"day": [a + (b - a) * 20.5 / 60], "hour": [c + (d - c) * 40.5 / 60]})
    text = read(path, viewport).hover(figure, *at.to_numpy()[0])
    posterior = model.posterior(at)
    (mean,), ((low,), (high,)) = posterior.mean(), posterior.interval(0.95)
    assert percents(text) == pytest.approx([mean, low, high], abs=0.00056)
    assert trials(text) == model.field_.n_near(at.to_numpy())[0]
    assert all(name in text for name in ("day", "hour", "P(on time)"))


def test_shares_of_trials_are_told_too(read, line):
    reader = read(line[1])
    mark = reader.page.evaluate(
        """() => { const data = document.getElementById("figure-curve").data,
            shares = data.find((trace) => trace.mode === "markers");
            return [shares.x[3], shares.y[3], shares.customdata[3][2]]; }"""
    )
    text = reader.hover("curve", *mark[:2])
    assert "share of trials" in text
    assert f"trials {mark[2]:.0f}" in text


@pytest.mark.long
def test_another_class_is_shown_when_it_is_chosen(read, classes):
    model, path = classes
    reader = read(path)
    at = [0.51, 0.5]
    cells = model.bounds_[:, :1] + np.diff(model.bounds_) * (np.arange(60) + 0.5) / 60
    point = [c[np.abs(c - x).argmin()] for c, x in zip(cells, at, strict=True)]
    mean = model.posterior([point]).mean()[0]
    for k, name in enumerate(["low", "mid", "top"]):
        reader.page.get_by_label(name, exact=True).check(force=True)
        reader.page.wait_for_function(
            "name => document.querySelector('#figure-map .cbtitle')?.textContent === name",
            arg=f"P({name})",
        )
        text = reader.hover("map", *point)
        assert f"P({name})" in text
        assert percents(text)[0] == pytest.approx(mean[k], abs=0.00056)


@pytest.mark.long
def test_every_feature_has_a_slice_that_tells_values(read, many):
    model, path, X = many
    reader = read(path)
    for k, name in enumerate(model.feature_names_in_):
        low, high = model.bounds_[k]
        x = np.linspace(low, high, 300)[150]
        point = np.median(X, axis=0)
        point[k] = x
        posterior = model.posterior(pd.DataFrame([point], columns=X.columns))
        (mean,), ((low,), (high,)) = posterior.mean(), posterior.interval(0.95)
        text = reader.hover(f"slice-{k}", x, mean)
        assert name in text
        assert percents(text) == pytest.approx([mean, low, high], abs=0.00056)


# Layout ------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["line", "plane", "classes", "many"])
@pytest.mark.parametrize("viewport", [DESK, PHONE], ids=["desk", "phone"])
def test_nothing_reaches_out_of_the_window(read, request, name, viewport):
    path = request.getfixturevalue(name)[1]
    reader = read(path, viewport)
    assert reader.fits()
    plots = reader.page.locator(".plot").all()
    assert plots
    for plot in plots:
        assert plot.locator("svg.main-svg").count() >= 1
        box = plot.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= viewport["width"]


@pytest.mark.long
def test_maps_stand_side_by_side_or_one_above_the_other(read, plane):
    _, path = plane
    boxes = {}
    for viewport in (DESK, PHONE):
        reader = read(path, viewport)
        left, right = (
            reader.page.locator(f"#figure-{name}").bounding_box() for name in ("map", "unsure")
        )
        boxes[viewport["width"]] = right["x"] - left["x"], right["y"] - left["y"]
    assert boxes[1280][0] > 400
    assert boxes[1280][1] == pytest.approx(0, abs=1)
    assert boxes[360][0] == pytest.approx(0, abs=1)
    assert boxes[360][1] > 400


@pytest.mark.long
def test_figures_follow_the_dark(read, line):
    reader = read(line[1])
    inks = []
    for scheme in ("dark", "light"):
        reader.page.emulate_media(color_scheme=scheme)
        reader.page.wait_for_function(
            """() => getComputedStyle(document.body).color
                === getComputedStyle(document.querySelector("#figure-curve .xtitle")).fill"""
        )
        inks.append(reader.page.evaluate("getComputedStyle(document.body).color"))
    assert inks[0] != inks[1]


def test_without_scripts_words_and_tables_remain(browser, line):
    reader = Reader(browser, line[1], java_script_enabled=False)
    assert reader.page.locator("table").count() >= 5
    assert reader.page.locator("figcaption").first.is_visible()
    assert reader.requests == [reader.address]
    reader.close()


def test_the_page_can_be_read_by_machines_for_people(read, plane):
    page = read(plane[1]).page
    assert page.locator("html").get_attribute("lang") == "en"
    levels = page.locator("h1, h2, h3").evaluate_all("all => all.map((h) => h.tagName)")
    assert levels == ["H1"] + ["H2"] * 8
    assert page.locator(".plot:not([role=img][aria-label])").count() == 0
    assert page.locator("figure:not(:has(figcaption))").count() == 0
    assert page.locator("th:not([scope])").count() == 0
    for link in page.locator("nav a").all():
        assert page.locator(link.get_attribute("href")).count() == 1
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the summary"


# No traffic --------------------------------------------------------------------------------


def test_the_page_could_not_load_anything_if_it_tried(browser, line):
    reader = Reader(browser, line[1]).drawn()
    refused = reader.page.evaluate(
        """() => new Promise((resolve) => {
            const found = [];
            document.addEventListener("securitypolicyviolation", (event) => {
                found.push(event.effectiveDirective);
                if (found.length === 3) resolve(found.sort());
            });
            new Image().src = "http://127.0.0.1:9/pixel.png";
            fetch("http://127.0.0.1:9/").catch(() => {});
            const script = document.createElement("script");
            script.src = "http://127.0.0.1:9/script.js";
            document.head.append(script);
        })"""
    )
    assert refused == ["connect-src", "img-src", "script-src-elem"]
    reader.close()


# Hostile names -----------------------------------------------------------------------------


def literal(text):
    """Return text as it is seen, with spaces joined and without direction marks."""
    return " ".join(re.sub("[\u2068\u2069]", "", text).split())


def begins(shown, name):
    """Return whether a name, perhaps shortened, is what is shown."""
    shown, name = literal(shown), literal(name)
    return shown == name or (
        shown.endswith("…") and len(shown) > 10 and name.startswith(shown[:-1])
    )


def only_our_own(page):
    """Return whether the page has exactly the elements of the template."""
    return page.evaluate(
        """() => document.querySelectorAll("script").length === 3
            && !document.querySelector("img, iframe, object, embed, form, base, [onerror]")
            && [...document.querySelectorAll("a")].every(
                (a) => !a.getAttribute("href") || a.getAttribute("href").startsWith("#"))
            && !document.querySelector("svg a, svg image[href^='http']")"""
    )


@pytest.mark.parametrize(
    ("name", "viewport"),
    [
        ("one", DESK),
        pytest.param("two", DESK, marks=pytest.mark.long),
        ("two", PHONE),
        ("many", DESK),
        pytest.param("many", PHONE, marks=pytest.mark.long),
    ],
    ids=["one-desk", "two-desk", "two-phone", "many-desk", "many-phone"],
)
def test_hostile_names_do_nothing_but_show(read, hostile, name, viewport):
    reader = read(hostile / f"hostile-{name}.html", viewport)
    page = reader.page
    assert only_our_own(page)
    assert reader.fits()
    assert literal(page.locator("h1").text_content()) == literal(" ".join(HOSTILE))
    assert literal(page.title()) == literal(" ".join(HOSTILE))
    command = page.locator("pre").first.text_content()
    assert command == "\n".join(HOSTILE)


@pytest.mark.long
def test_hostile_features_show_on_axes_and_in_hover(read, hostile):
    reader = read(hostile / "hostile-many.html")
    for k, name in enumerate(HOSTILE):
        title = reader.page.locator(f"#figure-slice-{k} .xtitle").text_content()
        assert begins(title, name), (title, name)
        text = reader.hover(f"slice-{k}", 0.5, 0.1)
        assert begins(literal(text)[: len(literal(title))], name), (text, name)
    assert only_our_own(reader.page)


@pytest.mark.long
def test_hostile_classes_show_in_choices_titles_and_hover(read, hostile):
    reader = read(hostile / "hostile-two.html")
    labels = reader.page.locator("fieldset label").all()
    found = [label.text_content() for label in labels]
    assert sorted(map(literal, found)) == sorted(map(literal, HOSTILE))
    for label, name in zip(labels, found, strict=True):
        reader.choose(label)
        title = reader.page.locator("#figure-map .cbtitle").text_content()
        text = reader.hover("map", 0.5083, 0.5083)
        for shown in (title[2:-1], re.search(r"P\((.*?)\) \d", literal(text)).group(1)):
            assert begins(shown, name), (shown, name)
    assert only_our_own(reader.page)


@pytest.mark.long
def test_a_hostile_class_of_two_shows_on_the_axis(read, hostile):
    reader = read(hostile / "hostile-one.html")
    title = reader.page.locator("#figure-curve .ytitle").text_content()
    assert begins(title[2:-1], HOSTILE[4])
    assert begins(reader.page.locator("#figure-curve .xtitle").text_content(), HOSTILE[0])
