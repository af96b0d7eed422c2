"""The contents of the report, against the trials and SciPy; browsers have their own tests."""

import ast
import json
import re
import stat
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.exceptions import NotFittedError

from betafield import SmoothBetaClassifier, contexts, report
from betafield.observed import LeftOut
from betafield.report import advice, calibration, near, quality, recipe, words
from betafield.report.subject import Belief, Subject


def trials(n=300, d=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    return X, rng.uniform(size=n) < X[:, 0]


@pytest.fixture(scope="module")
def model():
    return SmoothBetaClassifier(bandwidth=0.2).fit(*trials())


class Page(HTMLParser):
    """The text of each part of a page, and its elements."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.inside, self.told, self.data = [], [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br", "input"):
            self.inside.append((tag, dict(attrs).get("id")))

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop()[0] != tag:
            pass

    def handle_data(self, data):
        inside, name = self.inside[-1] if self.inside else ("", None)
        if name == "figures":
            self.data += data
        elif inside not in ("script", "style"):
            self.told.append(data)

    @property
    def words(self):
        return " ".join("".join(self.told).split())

    @property
    def figures(self):
        return json.loads(self.data)


def page_of(model, **options):
    return Page(report.html(model, **options))


# The page ----------------------------------------------------------------------------------


KINDS = {
    "one feature": lambda: SmoothBetaClassifier(0.2).fit(*trials()),
    "two": lambda: SmoothBetaClassifier(0.3).fit(*trials(d=2)),
    "four": lambda: SmoothBetaClassifier(0.5).fit(*trials(d=4)),
    "scored": lambda: SmoothBetaClassifier("loo").fit(*trials(60)),
    "three classes": lambda: SmoothBetaClassifier(0.2).fit(trials()[0], np.arange(300) % 3),
    "twelve classes": lambda: SmoothBetaClassifier(0.4).fit(
        trials(d=2)[0], [f"c{k % 12}" for k in range(300)]
    ),
    "contexts": lambda: SmoothBetaClassifier(0.2).fit(
        *trials(), context=contexts.guess_lapse(guess=0.3)
    ),
    "mean contexts": lambda: SmoothBetaClassifier(0.2, sharing="mean").fit(
        *trials(), context=contexts.background(np.linspace(0, 0.5, 300))
    ),
    "pools": lambda: SmoothBetaClassifier(0.2).fit(*trials(), context=contexts.pooled(3)),
    "weights": lambda: SmoothBetaClassifier(0.2).fit(*trials(), sample_weight=np.full(300, 0.37)),
    "one place": lambda: SmoothBetaClassifier(0.2).fit([[5.0]] * 20, [0, 1] * 10),
    "two trials": lambda: SmoothBetaClassifier(0.2).fit([[1e9], [1e9 + 1]], [0, 1]),
    "constant feature": lambda: SmoothBetaClassifier(0.2).fit(
        np.c_[trials()[0], np.ones(300)], trials()[1]
    ),
    "tiny": lambda: SmoothBetaClassifier(0.2).fit(trials()[0] * 1e-200, trials()[1]),
    "all succeed": lambda: SmoothBetaClassifier(0.2).partial_fit(
        [[0.0], [1.0]], [1, 1], classes=[0, 1]
    ),
    "prior by function": lambda: SmoothBetaClassifier(
        0.2, prior=lambda X: (1 + X[:, 0], 2 - X[:, 0])
    ).fit(*trials()),
    "default, one feature": lambda: SmoothBetaClassifier().fit(*trials(60)),
    "default, two": lambda: SmoothBetaClassifier().fit(*trials(d=2)),
    "default, four": lambda: SmoothBetaClassifier().fit(*trials(d=4)),
    "default, three classes": lambda: SmoothBetaClassifier().fit(trials()[0], np.arange(300) % 3),
    "default, contexts": lambda: SmoothBetaClassifier().fit(
        *trials(), context=contexts.guess_lapse(guess=0.3)
    ),
    "default, pools": lambda: SmoothBetaClassifier().fit(*trials(), context=contexts.pooled(3)),
    "default, weights": lambda: SmoothBetaClassifier().fit(
        *trials(), sample_weight=np.full(300, 0.37)
    ),
    "default, one place": lambda: SmoothBetaClassifier().fit([[5.0]] * 20, [0, 1] * 10),
    "default, two trials": lambda: SmoothBetaClassifier().fit([[1e9], [1e9 + 1]], [0, 1]),
    "default, constant feature": lambda: SmoothBetaClassifier().fit(
        np.c_[trials()[0], np.ones(300)], trials()[1]
    ),
    "default, tiny": lambda: SmoothBetaClassifier().fit(trials()[0] * 1e-200, trials()[1]),
    "default, all succeed": lambda: SmoothBetaClassifier().partial_fit(
        [[0.0], [1.0]], [1, 1], classes=[0, 1]
    ),
    "process": lambda: SmoothBetaClassifier(method="process").fit(*trials()),
}


# Models with windows and default ones, whose reports differ.
LONG = ["default, two", "default, weights", "default, constant feature", "default, tiny", "weights"]


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.long] * (kind in LONG)) for kind in KINDS]
)
def test_every_kind_of_model_has_a_page(kind):
    page = page_of(KINDS[kind]())
    assert [tag for tag, _ in page.tags].count("h2") == 8
    assert set(page.figures) == {a["data-figure"] for _, a in page.tags if "data-figure" in a}
    assert "nan" not in re.findall(r"\w+", page.words.lower())
    assert len(json.dumps(page.figures)) < 1_000_000


@pytest.mark.parametrize("bandwidth", [0.2, "auto"])
def test_the_same_trials_give_the_same_page(bandwidth):
    first = SmoothBetaClassifier(bandwidth).fit(*trials())
    again = SmoothBetaClassifier(bandwidth).fit(*(part[::-1] for part in trials()))
    assert report.html(first) == report.html(again)


def test_the_page_asks_for_nothing(model):
    page = page_of(model)
    policies = [a["content"] for tag, a in page.tags if a.get("http-equiv")]
    assert policies[0].startswith("default-src 'none'; script-src 'unsafe-inline'")
    for tag, attributes in page.tags:
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith(("#", "data:,")), tag


# Numbers -----------------------------------------------------------------------------------


def test_the_overall_share_is_that_of_all_trials(model):
    y = trials()[1]
    low, high = stats.beta(1 + y.sum(), 1 + (~y).sum()).interval(0.9)
    text = page_of(model, level=0.9).words
    assert f"{100 * low:.1f} to {100 * high:.1f} %" in text
    assert "learned from 300 trials" in text


def test_the_curve_is_the_posterior(model):
    (figure,) = [f for name, f in page_of(model, level=0.8).figures.items() if name == "curve"]
    line = next(trace for trace in figure["views"][0] if trace["name"] == "mean")
    X = np.array(line["x"])[:, None]
    posterior = model.posterior(np.linspace(*model.bounds_[0], 300)[:, None])
    low, high = posterior.interval(0.8)
    told = np.array(line["customdata"])
    assert np.allclose(X[:, 0], np.linspace(*model.bounds_[0], 300), atol=1e-4)
    assert np.allclose(line["y"], posterior.mean(), atol=1e-4)
    assert np.allclose(told[:, :2], np.stack([low, high], axis=1), atol=1e-4)
    at = np.linspace(*model.bounds_[0], 300)
    near = np.abs(trials()[0] - at) <= 0.2 * model.scale_[0]
    assert np.abs(told[:, 2] - near.sum(axis=0)).max() <= 1  # one may lie on the border


def test_a_band_is_shown_where_the_slope_is_known(model):
    def names(**options):
        views = page_of(model, **options).figures["curve"]["views"]
        return [trace["name"] for trace in views[0]]

    assert "95 % guaranteed" not in names()
    assert names(lipschitz=1.0).count("95 % guaranteed") == 2


def test_marks_are_the_shares_of_the_trials():
    model = SmoothBetaClassifier(0.5).fit_counts([[0], [1], [2]], [1, 2, 9], [10, 4, 9])
    views = page_of(model).figures["curve"]["views"]
    marks = next(trace for trace in views[0] if trace["mode"] == "markers")
    assert marks["y"] == [0.1, 0.5, 1.0]
    ends = [stats.binomtest(s, n).proportion_ci(0.95) for s, n in [(1, 10), (2, 4), (9, 9)]]
    assert np.allclose(np.array(marks["customdata"])[:, :2], ends, atol=1e-4)


def test_distorted_trials_are_not_drawn_beside_the_probability_without_distortion():
    page = page_of(KINDS["mean contexts"]())
    views = page.figures["curve"]["views"]
    assert all(trace["mode"] == "lines" for trace in views[0])
    assert "All probabilities here are of π" in page.words


def test_groups_of_predictions_are_those_of_a_plain_loop():
    rng = np.random.default_rng(0)
    predicted = np.repeat(np.linspace(0.05, 0.95, 10), 3)
    held = np.full(30, 50.0)
    won = rng.binomial(50, predicted).astype(float)
    found = calibration.groups(LeftOut(predicted, won, held), 0.95)
    assert found.predicted == pytest.approx(np.linspace(0.05, 0.95, 10))
    for i in range(10):
        expected = stats.binomtest(int(won[3 * i : 3 * i + 3].sum()), 150)
        low, high = expected.proportion_ci(0.95)
        assert found.low[i] == pytest.approx(low)
        assert found.high[i] == pytest.approx(high)


@pytest.mark.parametrize(
    ("shift", "n", "tone", "told"),
    [
        (0.0, 1_000, "good", "face value"),
        (0.2, 1_000, "warning", "too low"),
        (-0.2, 1_000, "warning", "too high"),
        (0.012, 1_000_000, "good", "but little"),
    ],
)
def test_the_verdict_follows_what_happened(shift, n, tone, told):
    predicted = np.linspace(0.25, 0.75, 10)
    won = np.round((predicted + shift) * n)
    found = calibration.groups(LeftOut(predicted, won, np.full(10, float(n))), 0.95)
    assert calibration.verdict(found, 0.95)[0] == tone
    assert told in calibration.verdict(found, 0.95)[1]


@given(alpha=st.floats(0.5, 500), beta=st.floats(0.5, 500), more=st.integers(1, 40))
@settings(max_examples=50)
def test_gains_are_what_beta_binomial_trials_bring_on_average(alpha, beta, more):
    known = stats.beta(alpha, beta)
    belief = Belief(*(np.array([[v]]) for v in (known.mean(), 0.0, 1.0, known.var())))
    wins = np.arange(more + 1)
    then = stats.beta(alpha + wins, beta + more - wins).var()
    expected = known.var() - stats.betabinom(more, alpha, beta).pmf(wins) @ then
    assert advice.gains(belief, more)[0, 0] == pytest.approx(expected, rel=1e-6)


def test_the_next_trials_are_where_none_were_made():
    X = np.r_[np.linspace(0, 0.6, 500), 1.0][:, None]
    model = SmoothBetaClassifier(0.05, bounds=[(0, 1)]).fit(X, np.arange(501) % 2)
    field = Subject(model)
    points = field.domain[advice.best(field).rows][:, 0]
    assert 0.65 <= points[0] <= 0.95
    assert np.diff(np.sort(points)).min() >= 0.1


def test_features_that_do_not_matter_do_not_part_points():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2_000, 2))
    model = SmoothBetaClassifier().fit(X, rng.uniform(size=2_000) < 0.5 + 0.5 * np.sin(9 * X[:, 0]))
    assert model.relevance_[1] < 0.1
    field = Subject(model)
    points = field.domain[advice.best(field).rows]
    assert np.diff(np.sort(points[:, 0])).min() >= 0.09


# Near trials -------------------------------------------------------------------------------


def cells(field):
    """Return the tables of the section as texts, by the first cell of each row."""
    made = near.section(field)
    tables = [block for block in made.blocks if block.kind == "table"]
    rows = [(re.sub("<[^>]*>", "", str(r[0])), r[1:]) for table in tables for r in table.rows]
    return {first: [re.sub("<[^>]*>", "", str(cell)) for cell in rest] for first, rest in rows}


def test_length_scales_are_told_in_the_units_of_their_features():
    X, y = trials(500, d=2)
    X = pd.DataFrame({"dose (mg)": 1e3 * X[:, 0], "age": 50 + 30 * X[:, 1]})
    model = SmoothBetaClassifier().fit(X, y)
    field = Subject(model)
    told = cells(field)
    for k, column in enumerate(["dose (mg)", "age"]):
        length, share, relevance, change = told[column]
        assert length == words.number(model.length_scales_[k])
        expected = model.length_scales_[k] / np.ptp(X[column])
        assert float(share.split()[0]) == pytest.approx(expected, abs=2e-3)
        assert relevance == words.number(model.relevance_[k])
        mean = model.predict_proba(pd.DataFrame(field.along(k), columns=X.columns))[:, 1]
        assert change == f"{100 * np.ptp(mean):.1f} points"
    reach = [words.number(model.length_scales_[k]) for k in field.varying]
    assert told["process: the smooth part"][1:] == reach
    assert "length scale" in page_of(model).words


def test_a_smooth_probability_is_called_smooth():
    told = page_of(SmoothBetaClassifier().fit(*trials(1_000))).words
    assert "Nothing contradicts a smooth probability" in told


def test_days_that_differ_are_told():
    rng = np.random.default_rng(0)
    day, hour, effect = rng.integers(0, 40, 4_000), rng.uniform(0, 24, 4_000), rng.normal(size=40)
    y = rng.uniform(size=4_000) < 1 / (1 + np.exp(-2 * effect[day] - np.sin(hour / 4)))
    model = SmoothBetaClassifier().fit(pd.DataFrame({"day <b>": day, "hour": hour}), y)
    page = page_of(model)
    assert (
        "Values of day <b> differ from each other more than a smooth curve would (100 % of"
        in page.words
    )
    field = Subject(model)
    share, *reaches = cells(field)["process: the smooth part, and effects of day &lt;b&gt;"]
    assert float(share.split()[-2]) > 90
    assert reaches == [words.number(model.length_scales_[k]) for k in field.varying]
    # Days are most relevant, however long their length scale.
    assert field.varying == [0, 1]


def test_windows_are_told_by_their_reach(model):
    told = cells(Subject(model))
    assert told == {"window": ["100 %", words.number(0.2 * np.ptp(trials()[0]))]}
    assert "The width was given." in page_of(model).words
    assert "best predicts trials left out one at a time." in page_of(KINDS["scored"]()).words


@pytest.mark.parametrize("bandwidth", [0.1, "auto"])
def test_trials_near_are_those_within_the_window_that_is_told(bandwidth):
    X, y = trials(500)
    field = Subject(SmoothBetaClassifier(bandwidth).fit(X, y))
    width = 0.1 if bandwidth == 0.1 else 500 ** (-1 / 3)
    assert field.window == pytest.approx(width)
    expected = (np.abs(X - 0.5) / np.ptp(X) <= width).sum()
    assert field.n_near(np.array([[0.5]])) == expected
    if bandwidth == "auto":
        assert f"they are within {words.percent(width)} of the domain" in page_of(field.model).words


# Gaps and warnings -------------------------------------------------------------------------


@given(
    st.integers(1, 6).flatmap(
        lambda n: st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=1, max_size=6)
    )
)
def test_the_largest_rectangle_is_that_of_all_rectangles(cells):
    empty = np.array(cells)
    rows, columns = empty.shape
    best = max(
        (b - a) * (d - c) * empty[a:b, c:d].all()
        for a in range(rows)
        for b in range(a + 1, rows + 1)
        for c in range(columns)
        for d in range(c + 1, columns + 1)
    )
    a, b, c, d = quality.largest_rectangle(empty)
    assert (b - a) * (d - c) == best
    assert empty[a:b, c:d].all()


def test_the_widest_gap_is_told():
    model = SmoothBetaClassifier(0.1).fit([[x] for x in (0, 1, 2, 7, 8, 10)], [0, 1] * 3)
    gap = quality.largest_gap(Subject(model))
    assert gap.sides == [(0, 2.0, 7.0)]
    assert gap.share == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: SmoothBetaClassifier(0.5).fit(*trials(50)), "only 50 trials"),
        (KINDS["all succeed"], "No trial had the outcome failure"),
        (KINDS["constant feature"], "x1 is constant"),
        (
            lambda: SmoothBetaClassifier(0.01).fit(*trials(20)),
            "no trial is near, so only the prior",
        ),
        (
            lambda: SmoothBetaClassifier().fit(
                np.r_[trials(1_000)[0], [[5.0]]], [0, 1, 1] * 333 + [1, 0]
            ),
            "no trial is near, so answers there rely on distant trials",
        ),
        (
            lambda: SmoothBetaClassifier(0.5).fit(trials(5_000)[0], np.arange(5_000) < 5),
            "success is rare: 5 trials, 0.1 %",
        ),
        (lambda: SmoothBetaClassifier(0.5).fit([[0]] * 90 + [[1]] * 30, [0, 1] * 60), "75.0 %"),
    ],
    ids=["few", "missing class", "constant", "empty", "far", "rare", "one place"],
)
def test_what_is_wrong_with_the_trials_is_said(make, told):
    assert told in page_of(make()).words


def test_good_trials_are_called_good():
    assert "Nothing stands out" in page_of(SmoothBetaClassifier(0.2).fit(*trials(2_000))).words


# Reproducing -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made",
    [
        SmoothBetaClassifier(),
        SmoothBetaClassifier(0.25, metric="manhattan", scale=np.array([2.0]), n_jobs=2),
        SmoothBetaClassifier("theory", lipschitz=np.float64(3.0), prior=(0.5, 0.5)),
        SmoothBetaClassifier("loo", bounds=np.array([[0.0, 1.0]]), sharing="mean", scale=None),
    ],
    ids=["usual", "array", "numbers", "bounds"],
)
def test_the_code_makes_the_same_model(made):
    again = eval(recipe.constructor(made), {"SmoothBetaClassifier": SmoothBetaClassifier})
    for name, value in made.get_params().items():
        assert np.array_equal(np.array(again.get_params()[name]), np.array(value)), name


def test_the_code_is_python_whatever_the_names():
    names = ['"""', "\n", "'); import os #", "\\"]
    X = pd.DataFrame(trials(d=4)[0], columns=names)
    y = np.array(["\n) import os #", '"'])[trials()[1].astype(int)]
    field = Subject(SmoothBetaClassifier(0.5).fit(X, y))
    code = recipe.code(field, recipe.Asked("\n'", 0.9, 2.0, "a\nb", "\n#\n'"))
    tree = ast.parse(code)
    imported = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert [node.module for node in imported] == ["betafield"]
    values = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    assert set(names) <= set(values)
    assert {"\n'", "a\nb", "\n#\n'"} <= set(values)


def test_the_fingerprint_is_of_the_trials_alone():
    X, y = trials()
    made = [
        SmoothBetaClassifier(0.2).fit(X, y),
        SmoothBetaClassifier(0.4).fit(X[::-1], y[::-1]),
        SmoothBetaClassifier(0.2).fit(X, ~y),
    ]
    first, again, other = (recipe.fingerprint(Subject(each)) for each in made)
    assert first == again != other


# Escaping ----------------------------------------------------------------------------------


@given(st.text())
def test_no_name_can_leave_the_data_of_the_figures(text):
    written = words.script_json({"name": text})
    assert json.loads(written) == {"name": text}
    assert written.isascii()
    assert not set("<>&") & set(written)


@given(st.text(max_size=30))
def test_plotly_gets_no_tag_and_no_template(text):
    drawn = words.drawn(text)
    assert not set("<>%") & set(drawn)
    assert "&" not in re.sub("&(lt|gt|amp|#37);", "", drawn)


def test_hostile_names_add_no_element():
    names = ["<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>"]
    X = pd.DataFrame(trials(d=2)[0], columns=names)
    y = np.array(["<b>", "</pre><script>"])[trials()[1].astype(int)]
    plain = SmoothBetaClassifier(0.5).fit(X.to_numpy(), trials()[1])
    model = SmoothBetaClassifier(0.5).fit(X, y)
    page = page_of(model, title=names[0], command=names[1], source=names)
    usual = page_of(plain, title="t", command="c", source=["s", "t"])
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in usual.tags]
    assert names[0] in page.words
    assert names[1] in page.words


# Refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"level": 1.0}, ValueError, "level: found 1.0"),
        ({"level": "high"}, ValueError, "level: found 'high'"),
        ({"lipschitz": -1}, ValueError, "lipschitz: found -1"),
        ({"title": 5}, TypeError, "title: found int"),
        ({"command": ["a"]}, TypeError, "command: found list"),
        ({"source": 5}, TypeError, "source: found int"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_wrong_options_are_named(model, tmp_path, options, error, told):
    with pytest.raises(error, match=re.escape(told)):
        report.write(model, tmp_path / "r.html", **options)
    assert list(tmp_path.iterdir()) == []


def test_only_fitted_models_have_a_report():
    with pytest.raises(NotFittedError):
        report.html(SmoothBetaClassifier())
    with pytest.raises(TypeError, match="model: found int"):
        report.html(5)


def test_wrong_paths_are_named_before_the_page_is_made(model, tmp_path):
    with pytest.raises(IsADirectoryError, match=r"path: found .*, a folder"):
        report.write(model, tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        report.write(model, tmp_path / "none" / "r.html")
    with pytest.raises(TypeError, match="path: found 5"):
        report.write(model, 5)


def test_bands_that_cannot_be_are_refused(tmp_path):
    with pytest.raises(ValueError, match="3 classes; guarantees are for two"):
        report.write(KINDS["three classes"](), tmp_path / "r.html", lipschitz=1.0)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_replaced_and_keeps_its_mode(model, tmp_path):
    path = tmp_path / "r.html"
    path.write_text("old")
    path.chmod(0o640)
    with pytest.raises(ValueError, match="level"):
        report.write(model, path, level=2)
    assert path.read_text() == "old"
    report.write(model, str(path), title="New")
    assert "<title>New</title>" in path.read_text(encoding="utf-8")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_package_is_named_with_the_line_that_installs_it(model, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "plotly", None)
    with pytest.raises(ImportError, match=re.escape("pip install '.[report]'")):
        report.html(model)


# Exceedance --------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_level_that_was_asked_for_is_shown(d):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, d))
    model = SmoothBetaClassifier(bandwidth=0.3).fit(X, rng.uniform(size=400) < X[:, 0])
    page = report.html(model, above=0.4)
    assert "How likely the probability is above 40" in page
    assert "above=0.4" in page  # in the code that reproduces the page
    assert "How likely the probability is above" not in report.html(model)


def test_chances_in_the_report_are_those_of_the_posterior():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    model = SmoothBetaClassifier(bandwidth=0.3).fit(X, rng.uniform(size=300) < X[:, 0])
    field = Subject(model, above=0.4)
    points = rng.uniform(size=(5, 2))
    expected = model.posterior(points).prob_above(0.4)
    np.testing.assert_array_equal(field.exceeding(points, 0.4)[:, 0], expected)


def test_a_level_beyond_probabilities_is_refused():
    model = SmoothBetaClassifier(bandwidth=0.5).fit([[0], [1]], [0, 1])
    with pytest.raises(ValueError, match="above: found 2"):
        report.html(model, above=2)
