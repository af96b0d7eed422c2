"""Studies over HTTP: asks, outcomes, retries and timeouts, as in the experiment itself."""

import csv
import io
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.server.serving import (
    DOTS,
    EVEN,
    ask,
    created,
    outcome_at,
    replayed,
    rows_of,
    shared,
    tell,
)

import betafield
from betafield.decisions.experiment.replaying import Replay
from betafield.server.definitions import Definition
from betafield.server.problems import Problem
from betafield.server.state import State


def problem_of(answer, status):
    """Return the details of a problem."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == status
    assert set(told) == {"type", "title", "status", "detail", "instance"}
    return told["detail"]


def test_trials_are_those_of_the_experiment(client):
    created(client, DOTS, "same")
    experiment = Definition.of({**DOTS, "name": "same"}).experiment()
    two = [[0.5, 0.98]]
    for i in range(14):
        (asked,) = ask(client, "same")
        trial = experiment.ask()
        assert (asked["id"], asked["values"], asked["why"]) == (trial.id, dict(trial), trial.why)
        success = outcome_at(asked["values"], i)
        context = "two" if i % 3 else None
        assert tell(client, "same", asked["id"], success, context).status_code == 200
        experiment.tell(trial, success=success, context=two if i % 3 else None)
    told = client.get("/studies/same/status").json()
    expected = experiment.status()
    assert told["known"]["threshold"] == expected["known"]["threshold"]
    assert (told["told"], told["pending"], told["enough"]) == (14, 0, expected["enough"])
    believed = client.get("/studies/same/posterior", params={"x": [0.1, 0.7]}).json()
    mean = experiment.model.posterior([[0.1], [0.7]]).mean()
    assert believed["mean"] == mean.tolist()


def test_pending_trials_are_limited_and_what_was_asked_goes_on():
    state = State(0, Definition.of(EVEN), Replay(Definition.of(EVEN).experiment()), most_pending=3)
    first = state.ask(2, {}, None, "first")
    with pytest.raises(Problem, match="2 of its trials are pending, and at most 3 may be") as found:
        state.ask(2, {}, None, "second")
    assert found.value.status == 409
    assert len(state.replay) == 2
    assert state.ask(2, {}, None, "first") == first
    state.ask(1, {}, None, None)
    state.tell(0, True, None)
    state.abandon(1)
    assert [each["id"] for each in state.ask(2, {}, None, "second")["trials"]] == [3, 4]


def test_a_retried_outcome_counts_once_and_the_first_one_stands(client):
    created(client, DOTS, "retried")
    (trial,) = ask(client, "retried")
    first = tell(client, "retried", trial["id"], True, "two")
    assert tell(client, "retried", trial["id"], True, "two").json() == first.json()
    detail = problem_of(tell(client, "retried", trial["id"], False, "two"), 409)
    assert "told before" in detail
    problem_of(tell(client, "retried", trial["id"], True), 409)
    (row,) = rows_of(client, "retried")
    assert (row["success"], row["context"], row["ended_seq"]) == (True, "two", 2)


def test_a_retried_ask_gives_the_same_trials(client):
    created(client, DOTS, "keys")
    body = {"n": 3, "participant": "ann", "key": "abc"}
    first = client.post("/studies/keys/asks", json=body).json()
    assert client.post("/studies/keys/asks", json=body).json() == first
    by_header = client.post(
        "/studies/keys/asks",
        json={"n": 3, "participant": "ann"},
        headers={"Idempotency-Key": "abc"},
    )
    assert by_header.json() == first
    assert "another request" in problem_of(
        client.post("/studies/keys/asks", json={"n": 2, "key": "abc"}), 409
    )
    assert [row["participant"] for row in rows_of(client, "keys")] == ["ann"] * 3
    given = client.post("/studies/keys/asks", json={}).json()["key"]
    again = client.post("/studies/keys/asks", json={"key": given}).json()
    assert again["trials"][0]["id"] == 3


def test_a_trial_that_was_not_asked_for_counts_once_per_key(client):
    created(client, DOTS, "unasked")
    body = {"values": {"x": 0.25}, "success": False, "context": [0.5, 1.0], "key": "k"}
    first, second = (client.post("/studies/unasked/trials", json=body) for _ in range(2))
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    problem_of(client.post("/studies/unasked/trials", json={**body, "success": True}), 409)
    assert len(rows_of(client, "unasked")) == 1
    wrong = client.post("/studies/unasked/trials", json={"values": {"x": 2}, "success": True})
    assert "a number from 0.0 to 1.0 is needed" in problem_of(wrong, 422)


def test_abandoned_trials_and_stopped_studies(client):
    created(client, DOTS, "ended")
    trials = ask(client, "ended", n=2)
    for _ in range(2):
        answer = client.post(f"/studies/ended/trials/{trials[0]['id']}/abandon")
        assert answer.json() == {"id": 0, "state": "abandoned"}
    problem_of(tell(client, "ended", 0, True), 409)
    assert client.post("/studies/ended/stop").json() == {"name": "ended", "stopped": True}
    assert "stopped" in problem_of(client.post("/studies/ended/asks", json={}), 409)
    assert tell(client, "ended", 1, True).status_code == 200
    problem_of(client.post("/studies/ended/trials/1/abandon"), 409)
    client.post("/studies/ended/resume")
    assert ask(client, "ended")[0]["id"] == 2
    listed = {each["name"]: each for each in client.get("/studies").json()}
    assert listed["ended"] == {
        "name": "ended",
        "told": 1,
        "pending": 1,
        "abandoned": 1,
        "stopped": False,
    }


def test_trials_that_time_out_are_free_again_and_late_outcomes_are_kept(client):
    created(client, {**EVEN, "pending_seconds": 0.3}, "late")
    (closed,) = ask(client, "late")
    time.sleep(0.4)
    (other,) = ask(client, "late")
    states = [row["state"] for row in rows_of(client, "late")]
    assert states == ["abandoned", "pending"]
    for _ in range(2):
        answer = tell(client, "late", closed["id"], True)
        assert answer.json() == {"id": 0, "state": "told", "success": True, "recorded_as": 2}
    problem_of(tell(client, "late", closed["id"], False), 409)
    rows = rows_of(client, "late")
    assert rows[2]["values"] == closed["values"]
    assert other["values"] != closed["values"]
    assert replayed({**EVEN, "name": "late"}, rows).status()["told"] == 1


@pytest.mark.parametrize("definition", [DOTS, EVEN], ids=["level", "even"])
def test_many_people_at_once_lose_nothing_and_share_no_trial(client, server, definition):
    name = f"many-{definition['name']}"
    created(client, definition, name)
    people, each = 64, 1 if definition is DOTS else 6

    def take_part(person):
        answers = []
        with server.client() as own:
            for i in range(each):
                body = {"participant": f"p{person}", "key": f"{person}-{i}"}
                (trial,) = ask(own, name, **body)
                success = outcome_at(trial["values"], person)
                assert tell(own, name, trial["id"], success).status_code == 200
                answers.append((trial["id"], success))
        return answers

    with ThreadPoolExecutor(people) as threads:
        answers = [told for some in threads.map(take_part, range(people)) for told in some]
    rows = rows_of(client, name)
    assert sorted(number for number, _ in answers) == list(range(people * each))
    assert {row["id"]: row["success"] for row in rows} == dict(answers)
    assert not shared(rows)
    again = replayed({**definition, "name": name}, rows)
    assert dict(again.ask()) == ask(client, name)[0]["values"]


def test_tables_and_the_model_are_those_of_the_trials(client, tmp_path):
    created(client, EVEN, "tables")
    for trial in ask(client, "tables", n=5):
        tell(client, "tables", trial["id"], trial["id"] % 2 == 0)
    pages = client.get("/studies/tables/trials", params={"limit": 2}).json()
    assert [row["id"] for row in pages["trials"]] == [0, 1]
    assert pages["next"] == 1
    rows = rows_of(client, "tables")
    table = pyarrow.parquet.read_table(
        io.BytesIO(client.get("/studies/tables/trials", params={"format": "parquet"}).content)
    )
    assert table["x"].to_pylist() == [row["values"]["x"] for row in rows]
    assert table["success"].to_pylist() == [True, False, True, False, True]
    text = client.get("/studies/tables/trials", params={"format": "csv"}).content
    assert pyarrow.csv.read_csv(io.BytesIO(text))["y"].to_pylist() == table["y"].to_pylist()
    path = tmp_path / "model.beta"
    path.write_bytes(client.get("/studies/tables/model").content)
    assert betafield.load(path).n_trials_ == 5


def test_tables_have_contexts_by_name_or_by_coefficients(client):
    created(client, DOTS, "table-contexts")
    given = ["two", [0.5, 1.0], None]
    for trial, context in zip(ask(client, "table-contexts", n=3), given, strict=True):
        tell(client, "table-contexts", trial["id"], True, context)
    text = client.get("/studies/table-contexts/trials", params={"format": "csv"}).text
    rows = csv.DictReader(io.StringIO(text))
    assert [row["context"] for row in rows] == ["two", "[0.5, 1.0]", ""]


def test_yaml_makes_the_same_study_as_json(client):
    text = """
    name: from-yaml
    space: {x: [0, 1]}
    goal: {kind: LevelSet, level: 0.75}
    contexts: {two: {guess: 0.5, lapse: 0.02}}
    seed: 1
    """
    headers = {"content-type": "application/yaml"}
    assert client.post("/studies", content=text, headers=headers).status_code == 201
    created(client, DOTS, "from-json")
    studies = [client.get(f"/studies/from-{kind}").json() for kind in ("yaml", "json")]
    assert len({str({**each, "name": ""}) for each in studies}) == 1
    bomb = "name: &a [x]\nspace: *a"
    assert "alias" in problem_of(client.post("/studies", content=bomb, headers=headers), 422)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"space": {"x": [1, 0]}}, "low must be below high"),
        ({"goal": {"kind": "LevelSet"}}, "level"),
        ({"goal": {"kind": "LevelSet", "level": 1.5}}, "goal, level: found 1.5"),
        ({"goal": {"kind": "Everywhere", "within": 2}}, "goal, within: found 2"),
        ({"goal": {"kind": "Best"}}, "Maximize"),
        ({"strategy": "guess"}, "strategy"),
        ({"contexts": {"odd": {"luck": 1}}}, "guess, lapse"),
        ({"contexts": {"odd": {"guess": 0.7, "lapse": 0.7}}}, "at most 1"),
        ({"model": {"depth": 3}}, "depth"),
        ({"model": {"scale": "log"}}, "scale"),
        ({"pending_seconds": 0}, "pending_seconds"),
        ({"name": "a b"}, "name: found 'a b'; 1 to 64 letters, digits, _ and - are needed"),
        ({"colour": "red"}, "colour"),
        ({"enough": {"trials": 0}}, "enough"),
    ],
)
def test_definitions_that_are_wrong_are_refused_in_the_words_of_the_library(client, change, said):
    answer = client.post("/studies", json={**DOTS, "name": "wrong", **change})
    assert said in problem_of(answer, 422)
    problem_of(client.get("/studies/wrong"), 404)


def test_text_that_is_no_json_is_told(client):
    headers = {"content-type": "application/json"}
    detail = problem_of(client.post("/studies", content="{", headers=headers), 422)
    assert detail.startswith("study: found text that is not valid JSON: ")
    created(client, EVEN, "controls")
    detail = problem_of(client.post("/studies/controls/asks", json={"key": "a\nb"}), 422)
    assert detail == "key: found 'a\\nb'; text without control characters is needed"
    path = "/studies/controls/asks"
    detail = problem_of(client.post(path, content='{"n":', headers=headers), 422)
    assert detail == "body: it is not JSON, from character 5 on"
    detail = problem_of(client.post(path, content="n=1", headers={"content-type": "x/y"}), 422)
    assert detail.startswith("body: it is not a JSON object; send one")
    detail = problem_of(client.put("/studies/controls/asks", json={}), 405)
    assert detail == "method: found PUT; allowed here: POST"


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("asks", {"n": 2000}, "n: found 2000; it should be less than or equal to 1000"),
        ("asks", {"n": "two"}, "n: found 'two'; it should be a valid integer"),
        ("trials/0/outcome", {"success": "yes"}, "success: found 'yes'; true or false is needed"),
        ("trials/0/outcome", {}, "success: found none; it is needed"),
        ("trials/0/outcome", {"succes": True}, "succes: there is no field of this name; /docs"),
        ("trials", {"values": {"x": None}, "success": True}, "values, x: found None; a finite"),
    ],
)
def test_fields_that_are_wrong_are_told_with_what_was_found(client, path, body, said):
    if client.get("/studies/fields").status_code == 404:
        created(client, EVEN, "fields")
    assert problem_of(client.post(f"/studies/fields/{path}", json=body), 422).startswith(said)


def test_problems_are_plain_text_to_read(client):
    created(client, DOTS, "read")
    (trial,) = ask(client, "read")
    tell(client, "read", trial["id"], True, "two")
    detail = problem_of(tell(client, "read", trial["id"], False), 409)
    assert detail == (
        "trial 0: it was told before, a success under context two, which stands; "
        "found a failure without a context"
    )
    unknown = client.get("/studies", headers={"Authorization": "Bearer nobody"})
    assert "Bearer …" in unknown.content.decode()


@pytest.mark.parametrize("context", ["pool", [0.0, *[1.0] * 40]])
def test_contexts_may_have_many_coefficients(client, context):
    name = "pool-by-name" if context == "pool" else "pool-by-coefficients"
    created(client, {**DOTS, "contexts": {"pool": {"size": 40}}}, name)
    (trial,) = ask(client, name)
    assert tell(client, name, trial["id"], True, context).status_code == 200


def test_outcomes_that_cannot_be_learned_are_refused_before_they_are_recorded(client):
    created(client, DOTS, "impossible")
    (trial,) = ask(client, "impossible")
    for success, context in ((True, [0.5, 0.5]), (True, "three"), (True, [0.0, 2.0])):
        problem_of(tell(client, "impossible", trial["id"], success, context), 422)
    assert rows_of(client, "impossible")[0]["state"] == "pending"
    assert tell(client, "impossible", trial["id"], True, [0.0, 0.5]).status_code == 200


def test_a_context_by_name_needs_a_study_that_has_contexts(client):
    created(client, EVEN, "no-contexts")
    (trial,) = ask(client, "no-contexts")
    detail = problem_of(tell(client, "no-contexts", trial["id"], True, "two"), 422)
    assert detail == "context: found 'two'; the study has no contexts"


def test_participants_are_a_feature_where_the_study_observes_them(client):
    space = {"x": [0, 1], "participant": [0, 100]}
    body = {**EVEN, "space": space, "observed": ["participant"]}
    created(client, body, "people")
    codes = [
        ask(client, "people", participant=who)[0]["values"]["participant"]
        for who in ("ann", "bob", "ann", "eve")
    ]
    assert codes == [0.0, 1.0, 0.0, 2.0]
    assert "observed" in problem_of(client.post("/studies/people/asks", json={}), 422)


def test_events_tell_what_changes(client):
    created(client, EVEN, "watched")
    with client.stream("GET", "/studies/watched/events") as stream:
        lines = (line for line in stream.iter_lines() if line.startswith("data: "))
        assert '"told": 0' in next(lines)
        (trial,) = ask(client, "watched", participant="ann")
        tell(client, "watched", trial["id"], True)
        told = next(line for line in lines if '"told": 1' in line)
        assert '"participants": ["ann"]' in told
