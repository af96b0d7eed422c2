"""Features over decades and of whole numbers: `{"log": [0.001, 1]}`, `{"integer": [1, 10]}`."""

import io
import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.server.serving import TOKEN, Server, ask, created, rows_of, tell
from tests.server.test_studies import problem_of

from betafield.client import Study
from betafield.decisions import Everywhere, Experiment, Integer, Log
from betafield.server import points
from betafield.server.definitions import Definition, read

LOCAL = {"contrast": Log(0.001, 1), "items": Integer(1, 10)}
SPACE = {"contrast": {"log": [0.001, 1]}, "items": {"integer": [1, 10]}}
STUDY = {"space": SPACE, "goal": {"kind": "Everywhere"}, "seed": 1}
# Trials after which an ask depends on what was told: 4 (1 + d) are spread over the space.
FIRST = 12


def success(values):
    """Return an outcome that depends on both features."""
    return values["contrast"] > 0.03 * values["items"] ** 0.5


def play(client, name, local, n):
    """Ask for n trials one by one, and tell them to the study and to the experiment."""
    for _ in range(n):
        (asked,), trial = ask(client, name), local.ask()
        assert (asked["values"], asked["why"]) == (dict(trial), trial.why)
        assert tell(client, name, asked["id"], success(trial)).status_code == 200
        local.tell(trial, success=success(trial))


def test_trials_are_those_of_the_experiment_and_go_on_after_a_crash(tmp_path):
    local = Experiment(LOCAL, Everywhere(), random_state=1)
    path = tmp_path / "study.db"
    with Server(path) as server, server.client() as client:
        created(client, STUDY, "decades")
        play(client, "decades", local, FIRST + 2)
        server.kill()
    with Server(path) as server, server.client() as client:
        assert client.get("/studies/decades").json()["space"] == SPACE
        play(client, "decades", local, 1)
        where = {"contrast": [0.002, 0.2], "items": "3"}
        believed = client.get("/studies/decades/posterior", params=where).json()
        mean = local.model.posterior([[0.002, 3], [0.2, 3]]).mean()
        np.testing.assert_array_equal(believed["mean"], mean)
        rows = rows_of(client, "decades")
        assert all(isinstance(row["values"]["items"], int) for row in rows)
        # Spread over decades, half of the first trials are below the geometric middle.
        first = [row["values"]["contrast"] for row in rows[:FIRST]]
        assert np.sum(np.array(first) < np.sqrt(0.001)) == FIRST // 2


def test_files_of_every_kind_describe_the_same_study(tmp_path):
    python = "from betafield.decisions import Integer, Log\nstudy = "
    study = "{'space': {'contrast': Log(0.001, 1), 'items': Integer(1, 10)}, "
    texts = {
        "s.json": json.dumps(STUDY),
        "s.yaml": "space: {contrast: {log: [0.001, 1]}, items: {integer: [1, 10]}}\n"
        "goal: {kind: Everywhere}\nseed: 1",
        "s.py": python + study + "'goal': {'kind': 'Everywhere'}, 'seed': 1}",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    one, *others = (read(tmp_path / name) for name in texts)
    assert all(other == one for other in others)
    assert one.values["space"] == SPACE
    assert one.space.given == LOCAL


def test_whole_numbers_are_whole_in_answers_and_tables(client):
    created(client, STUDY, "whole")
    for number in (3, 3.0):  # which JSON does not tell apart
        told = {"values": {"contrast": 0.5, "items": number}, "success": True}
        answer = client.post("/studies/whole/trials", json=told)
        assert '"items": 3}' in answer.text, answer.text
    held = ask(client, "whole", fixed={"items": 7})
    assert [trial["values"]["items"] for trial in held] == [7]
    table = client.get("/studies/whole/trials", params={"format": "csv"}).content
    assert pyarrow.csv.read_csv(io.BytesIO(table))["items"].to_pylist() == [3, 3, 7]
    table = client.get("/studies/whole/trials", params={"format": "parquet"}).content
    column = pyarrow.parquet.read_table(io.BytesIO(table))["items"]
    assert (str(column.type), column.to_pylist()) == ("int64", [3, 3, 7])


def test_a_grid_is_spread_as_the_space_is(client):
    created(client, STUDY, "gridded")
    found = client.get("/studies/gridded/posterior", params={"grid": 4}).json()
    assert found["grid"] == {"contrast": 4, "items": 4}
    contrasts = [point["contrast"] for point in found["points"][::4]]
    np.testing.assert_allclose(contrasts, [0.001, 0.01, 0.1, 1.0], rtol=1e-12)
    assert [point["items"] for point in found["points"][:4]] == [1, 4, 7, 10]
    # There are no more than ten whole numbers, so that more of the other fit in.
    found = client.get("/studies/gridded/posterior", params={"grid": 1000})
    assert found.json()["grid"] == {"contrast": 1000, "items": 10}
    many = client.get("/studies/gridded/posterior", params={"grid": 1001})
    assert "at most 10,000 points" in problem_of(many, 422)
    between = client.get("/studies/gridded/posterior", params={"contrast": 1, "items": "2.5"})
    assert "a whole number from 1 to 10 is needed" in problem_of(between, 422)


def test_options_of_the_model_leave_decades_decades():
    given = {**STUDY, "name": "s", "space": SPACE | {"eye": ["left", "right"], "x": [0, 1]}}
    plain, own = Definition.of(given), Definition.of({**given, "model": {"lipschitz": 2.0}})
    assert own.experiment().model.scale == plain.experiment().model.scale
    assert plain.experiment().model.scale == ["log", "range", "range"]


def test_a_study_of_whole_numbers_alone_can_be_shared(client):
    created(client, {**STUDY, "space": {"items": {"integer": [1, 3]}}}, "few")
    trials = ask(client, "few", n=5)
    assert {trial["values"]["items"] for trial in trials} <= {1, 2, 3}
    assert points.asked(Definition(STUDY | {"observed": None}).space, None, {}).shape == {
        "contrast": 21,
        "items": 10,
    }


@pytest.mark.parametrize(
    ("side", "said"),
    [
        ({"log": [0, 1]}, "a logarithm needs positive numbers"),
        ({"log": [1, 0.1]}, "low must be below high"),
        ({"log": [1]}, '{"log": [low, high]} or {"integer": [low, high]} is needed'),
        ({"log": [0.1, 1], "integer": [1, 2]}, '{"log": [low, high]} or {"integer"'),
        ({}, '{"log": [low, high]} or {"integer"'),
        ({"integer": [1.5, 3]}, "found 1.5"),
        ({"integer": [3, 3]}, "low must be below high"),
        ({"integer": ["a", "b"]}, "space, x, integer, 0: found 'a'; a finite number is needed"),
        ({"log": [1, 2, 3]}, "space, x, log: "),
        ({"decades": [1, 2]}, "space, x, decades"),
        ("log", "space, x: "),
    ],
)
def test_what_is_wrong_is_refused(client, side, said):
    answer = client.post("/studies", json={**STUDY, "name": "wrong", "space": {"x": side}})
    assert said in problem_of(answer, 422)
    assert "-listed" not in answer.text
    assert "-scaled" not in answer.text


def test_the_client_takes_what_an_experiment_takes(server):
    made = Study.create(
        server.address, TOKEN, name="client-decades", seed=1, space=LOCAL, goal=Everywhere()
    )
    with made as study:
        local = Experiment(LOCAL, Everywhere(), random_state=1)
        trial = study.ask()
        assert trial == local.ask()
        assert type(trial["items"]) is int
        study.tell(trial, True)
        assert study.trials()[0]["items"] == trial["items"]
