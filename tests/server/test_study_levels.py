"""Features with levels: created, asked, told, listed and refused by the names of levels."""

import io
import json
from contextlib import closing

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.server.serving import TOKEN, Server, ask, created, rows_of, tell
from tests.server.test_live import handler_of
from tests.server.test_studies import problem_of

import betafield
from betafield.client import Study
from betafield.decisions import Compare, Everywhere, Experiment, Maximize
from betafield.server import points
from betafield.server.definitions import Definition, read
from betafield.server.storage import Store
from betafield.server.studies import Studies

SPACE = {"x": [0, 1], "eye": ["left", "right"]}
POINTS = [{"x": 0.2, "eye": "left"}, {"x": 0.8, "eye": "right"}, {"x": 0.5, "eye": "right"}]
EYES = {"name": "eyes", "space": SPACE, "goal": {"kind": "Compare", "points": POINTS}, "seed": 1}
# The number of trials after which an ask depends on the outcomes.
ENOUGH = 4
PEOPLE = {
    "name": "people",
    "space": {"x": [0, 1], "participant": ["anna", "ben"]},
    "observed": ["participant"],
    "goal": {"kind": "Everywhere"},
    "seed": 1,
}


def success(values):
    """Return an outcome that depends on the level."""
    return values["x"] > (0.3 if values["eye"] == "left" else 0.7)


def play(client, name, n):
    """Ask for n trials, tell them, and return an experiment with the same history."""
    local = Experiment(SPACE, Compare(POINTS), random_state=1)
    for asked, trial in zip(ask(client, name, n=n), local.ask(n), strict=True):
        assert (asked["values"], asked["why"]) == (dict(trial), trial.why)
        assert tell(client, name, asked["id"], success(trial)).status_code == 200
        local.tell(trial, success=success(trial))
    return local


def test_trials_answers_and_tables_have_levels_by_name(client, tmp_path):
    created(client, EYES, "eyes")
    local = play(client, "eyes", ENOUGH)
    told = {"values": {"eye": "right", "x": 0.25}, "success": False}
    answer = client.post("/studies/eyes/trials", json=told).json()
    assert answer["values"] == {"x": 0.25, "eye": "right"}
    local.tell(told["values"], success=False)
    (fixed,) = ask(client, "eyes", fixed={"eye": "left"})
    assert fixed["values"] == dict(local.ask(fixed={"eye": "left"}))
    assert client.post(f"/studies/eyes/trials/{fixed['id']}/abandon").status_code == 200
    assert (
        client.get("/studies/eyes/status").json()["known"]["best"]
        == (local.status()["known"]["best"])
    )
    rows = rows_of(client, "eyes")
    expected = [(row["x"], row["eye"]) for row in local.trials()]
    assert [(row["values"]["x"], row["values"]["eye"]) for row in rows] == expected
    tables = {
        kind: io.BytesIO(client.get("/studies/eyes/trials", params={"format": kind}).content)
        for kind in ("parquet", "csv")
    }
    found = pyarrow.parquet.read_table(tables["parquet"]), pyarrow.csv.read_csv(tables["csv"])
    for table in found:
        assert table["eye"].to_pylist() == [eye for _, eye in expected]
    path = tmp_path / "eyes.beta"
    path.write_bytes(client.get("/studies/eyes/model").content)
    there = np.array([[0.2, "left"], [0.9, "right"]], dtype=object)
    mean = local.model.posterior(there).mean()
    np.testing.assert_array_equal(betafield.load(path).posterior(there).mean(), mean)
    query = {"x": [0.2, 0.9], "eye": ["left", "right"]}
    at_points = client.get("/studies/eyes/posterior", params=query).json()
    assert at_points["mean"] == mean.tolist()
    assert at_points["points"] == [{"x": 0.2, "eye": "left"}, {"x": 0.9, "eye": "right"}]
    assert at_points["grid"] is None


def test_a_grid_is_over_ranges_at_every_level_or_at_those_that_are_named(client):
    created(client, EYES, "grids")
    assert client.get("/studies/grids/posterior", params={"grid": 2}).json()["mean"] == [None] * 4
    local = play(client, "grids", 4)
    every = client.get("/studies/grids/posterior", params={"grid": 3}).json()
    there = [(x, eye) for x in (0.0, 0.5, 1.0) for eye in ("left", "right")]
    assert [(each["x"], each["eye"]) for each in every["points"]] == there
    assert every["grid"] == {"x": 3, "eye": 2}
    believed = local.model.posterior(np.array(there, dtype=object))
    assert every["mean"] == believed.mean().tolist()
    assert [every["low"], every["high"]] == [each.tolist() for each in believed.interval(0.95)]
    one = client.get("/studies/grids/posterior", params={"grid": 3, "eye": "right"}).json()
    assert one["mean"] == every["mean"][1::2]
    along = client.get("/studies/grids/posterior", params={"x": [0, 0.5, 1], "eye": "right"})
    assert along.json()["mean"] == one["mean"]


@pytest.mark.long
def test_a_study_goes_on_after_a_crash_with_the_same_ask(tmp_path):
    file = tmp_path / "study.db"
    with Server(file) as first, first.client() as client:
        created(client, EYES, "eyes")
        local = play(client, "eyes", ENOUGH)
        first.kill()
    store = Store(str(file))
    studies = Studies(store)
    try:
        again = studies.find("eyes").submit(lambda state: state.ask(3, {}, None, None)).result()
        expected = [(dict(trial), trial.why) for trial in local.ask(3)]
        assert [(trial["values"], trial["why"]) for trial in again["trials"]] == expected
        assert "one of the first" not in expected[0][1]
    finally:
        studies.close()
        store.close()


def test_participants_are_levels_where_the_study_lists_them(client):
    created(client, PEOPLE, "listed")
    local = Experiment(PEOPLE["space"], Everywhere(), random_state=1, observed=["participant"])
    for who in ("anna", "ben", "anna"):
        (asked,) = ask(client, "listed", participant=who)
        trial = local.ask(fixed={"participant": who})
        assert asked["values"] == dict(trial)
        tell(client, "listed", asked["id"], who == "anna")
        local.tell(trial, success=who == "anna")
    params = {"x": 0.5, "participant": ["anna", "ben"]}
    told = client.get("/studies/listed/posterior", params=params).json()
    there = np.array([[0.5, "anna"], [0.5, "ben"]], dtype=object)
    assert told["mean"] == local.model.posterior(there).mean().tolist()
    refused = client.post("/studies/listed/asks", json={"participant": "zoe"})
    expected = "fixed, feature 'participant': found 'zoe'; one of 'anna', 'ben' is needed"
    assert problem_of(refused, 422) == expected
    assert "observed" in problem_of(client.post("/studies/listed/asks", json={}), 422)


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        (
            "asks",
            {"fixed": {"eye": "up"}},
            "fixed, feature 'eye': found 'up'; one of 'left', 'right",
        ),
        ("asks", {"fixed": {"eye": 0}}, "fixed, feature 'eye': found 0.0; one of 'left', 'right'"),
        (
            "asks",
            {"fixed": {"x": "0.5"}},
            "fixed, feature 'x': found '0.5'; a number from 0.0 to 1",
        ),
        ("trials", {"x": 0.5, "eye": "Left"}, "values, feature 'eye': found 'Left'; one of 'left'"),
        (
            "trials",
            {"x": "left", "eye": "left"},
            "values, feature 'x': found 'left'; a number from",
        ),
        (
            "trials",
            {"x": True, "eye": "left"},
            "values, feature 'x': found True; a number from 0.0",
        ),
        ("trials", {"x": 0.5}, "values: found no value of 'eye'; 'x', 'eye' are needed"),
        ("posterior", {"x": 0.5, "eye": "up"}, "points, feature 'eye': found 'up'; one of 'left'"),
        ("posterior", {"x": "a", "eye": "left"}, "points, feature 'x': found 'a'; a number from 0"),
        ("posterior", {"eye": "left"}, "points: found {'x': 0, 'eye': 1}; every feature needs"),
        ("posterior", {"grid": 6000}, "grid: found 6,000 values of each range at 2 levels"),
    ],
)
def test_what_is_wrong_is_refused_in_the_words_of_the_library(client, path, body, said):
    if client.get("/studies/refusing").status_code == 404:
        created(client, EYES, "refusing")
    if path == "posterior":
        answer = client.get("/studies/refusing/posterior", params=body)
    else:
        sent = {"values": body, "success": True} if path == "trials" else body
        answer = client.post(f"/studies/refusing/{path}", json=sent)
    assert said in problem_of(answer, 422)
    assert rows_of(client, "refusing") == []


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        (["left"], "found '1 levels'; from 2 to 1,000 are allowed"),
        (["left", "left"], "every level must be there once"),
        ([1, "1", 2], "levels are known by their text, which must differ"),
        (["left", ""], "found ''; a level is text of 1 to 200 characters"),
        (["left", "a\nb"], "none of them a control character"),
        (["left", None], "space, eye"),
        ([1, 0], "low must be below high"),
    ],
)
def test_levels_that_cannot_be_told_apart_or_named_are_refused(client, levels, said):
    space = {"x": [0, 1], "eye": levels}
    body = {**EYES, "name": "never", "space": space, "goal": {"kind": "Maximize"}}
    answer = client.post("/studies", json=body)
    detail = problem_of(answer, 422)
    assert said in detail
    assert "eye" in detail


def test_files_of_every_kind_describe_the_same_levels(tmp_path, client):
    space = {"eye": ["left", "right"], "n": [1, 2, 4]}
    texts = {
        "eyes.json": json.dumps({"space": space, "goal": {"kind": "Maximize"}, "seed": 1}),
        "eyes.yaml": "space: {eye: [left, right], n: [1, 2, 4]}\ngoal: {kind: Maximize}\nseed: 1",
        "eyes.py": f"study = dict(space={space}, goal=dict(kind='Maximize'), seed=1)",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    one, *others = (read(tmp_path / name) for name in texts)
    assert all(other == one for other in others)
    created(client, one.values, "kinds")
    found = client.get("/studies/kinds").json()["space"]
    assert json.dumps(found) == json.dumps(space)  # 1 is not 1.0 there
    told = {"values": {"eye": "left", "n": 4}, "success": True}
    assert client.post("/studies/kinds/trials", json=told).json()["values"] == told["values"]
    every = client.get("/studies/kinds/posterior", params={"grid": 50}).json()
    assert every["grid"] == {"eye": 2, "n": 3}
    named = client.get("/studies/kinds/posterior", params={"eye": "right", "n": "2"}).json()
    assert named["points"] == [{"eye": "right", "n": 2}]


def test_a_feature_may_be_named_as_an_option_of_the_posterior(server):
    with made(server, "options", {"level": ["easy", "hard"], "grid": [0, 1]}) as study:
        study.tell({"level": "hard", "grid": 0.5}, True)
        found = study.posterior({"level": ["easy", "hard"], "grid": 0.5}, level=0.5)
        assert found["points"] == [{"level": "easy", "grid": 0.5}, {"level": "hard", "grid": 0.5}]
        expected = study.model.posterior([["easy", 0.5], ["hard", 0.5]]).interval(0.5)
        np.testing.assert_array_equal([found["low"], found["high"]], expected)


def test_usual_grids_become_coarser_with_the_number_of_levels():
    people = [f"p{i}" for i in range(300)]
    definition = Definition({"space": {"x": [0, 1], "who": people}, "observed": None})
    assert points.asked(definition.space, None, {}).shape == {"x": 33, "who": 300}
    assert points.asked(definition.space, 10_000, {"who": ["p7"]}).shape == {"x": 10_000, "who": 1}
    with pytest.raises(ValueError, match="at most 10,000 points are possible"):
        points.asked(definition.space, 34, {})


def made(server, name, space):
    return Study.create(
        server.address, TOKEN, name=name, seed=1, space=space, goal=Maximize(), strategy="sobol"
    )


def test_the_client_passes_levels_through(server):
    with made(server, "client-levels", SPACE) as study:
        local = Experiment(SPACE, Maximize(), random_state=1, strategy="sobol")
        for _ in range(3):
            trial, expected = study.ask(), local.ask()
            assert dict(trial) == dict(expected)
            study.tell(trial, success(trial))
            local.tell(expected, success(trial))
        study.tell({"x": np.float64(0.5), "eye": np.str_("right")}, True)
        local.tell({"x": 0.5, "eye": "right"}, True)
        assert [row["eye"] for row in study.trials()] == [row["eye"] for row in local.trials()]
        there = {"x": [0.1, 0.9], "eye": np.array(["right", "left"])}
        mean = local.model.posterior(np.array([[0.1, "right"], [0.9, "left"]], dtype=object)).mean()
        np.testing.assert_array_equal(study.posterior(there)["mean"], mean)
        assert study.posterior(grid=2)["points"][1] == {"x": 0.0, "eye": "right"}
        with pytest.raises(ValueError, match=r"^points, feature 'eye': found 'up'; one of 'left'"):
            study.posterior({"x": 0.1, "eye": "up"})


def test_the_handler_of_psychopy_passes_levels_through(server):
    handler_class = handler_of()["BetafieldHandler"]
    with made(server, "handler-levels", {"eye": ["left", "right"]}) as study:
        handler = handler_class(study, nTrials=2)
        for eye in handler:
            handler.addResponse(eye == "left")
        handler.importData(["right"], [0])
        rows = study.trials()
        assert [row["eye"] for row in rows] == [*handler.intensities, "right"]
        assert [int(row["success"]) for row in rows] == [*handler.results, 0]


def test_levels_in_postgresql_are_those_of_the_experiment(postgresql):
    definition = Definition.of({**EYES, "name": "eyes-postgresql", "seed": 5})
    local, successes = definition.experiment(), [True, False, True]
    with closing(Store(postgresql.url, serving=True)) as store:
        studies = Studies(store)
        studies.create(definition)
        study = studies.find("eyes-postgresql")
        for number, success in enumerate(successes):
            (trial,) = study.submit(lambda state: state.ask(1, {}, None, None)).result()["trials"]
            assert trial["values"] == dict(local.ask())
            study.submit(lambda s, n=number, is_so=success: s.tell(n, is_so, None)).result()
            local.tell(number, success=success)
        studies.close()
    with closing(Store(postgresql.url, serving=True)) as store:
        studies = Studies(store)
        asked = studies.find("eyes-postgresql").submit(
            lambda state: state.ask(1, {"eye": "left"}, None, None)
        )
        (trial,) = asked.result()["trials"]
        assert trial["values"] == dict(local.ask(fixed={"eye": "left"}))
        studies.close()
