"""The client against a real server, over a failing network, with crashes on either side."""

import json
import signal
import socketserver
import subprocess
import sys
import threading
import time
import uuid
import warnings
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from typing import ClassVar

import numpy as np
import pytest
from tests.server.proxy import Proxy
from tests.server.serving import TOKEN, Server

from betafield import client
from betafield.client.wire import Wire
from betafield.decisions import Experiment, LevelSet, Maximize

SPACE = {"x": (0.0, 1.0)}
NOWHERE = "http://127.0.0.1:9/studies/dots"


class Study(client.Study):
    """A study that is closed at the end of the test."""

    opened: ClassVar[list] = []

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.opened.append(self)


@pytest.fixture(autouse=True)
def closed():
    """Close all studies of a test, whatever is still in their journals."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        while Study.opened:
            Study.opened.pop().close()


def name():
    return f"client-{uuid.uuid4().hex[:12]}"


def made(server, goal=None, space=SPACE, **options):
    """Return a newly created study, as its owner."""
    goal, seed = goal or LevelSet(0.5), options.pop("seed", 3)
    options = {"name": name(), "strategy": "sobol", **options}
    return Study.create(server.address, TOKEN, space=space, goal=goal, seed=seed, **options)


def reached(study, address, **options):
    """Return the same study at another address, to ask and tell."""
    return Study(f"{address}/studies/{study.name}", study.tokens["run"], **options)


def answered(trial):
    """Return an outcome that depends on the trial."""
    return bool(np.random.default_rng(trial.id).random() < trial["x"])


def played(one, n):
    """Ask and tell n times."""
    for _ in range(n):
        trial = one.ask()
        one.tell(trial, success=answered(trial))
    return one


def common(rows):
    """Return the fields of trials that an experiment has too."""
    names = ("x", "id", "state", "success", "context", "why")
    return [{name: row[name] for name in names} for row in rows]


# Like an experiment ---------------------------------------------------------------------------


def test_a_study_asks_and_tells_what_an_experiment_would(server):
    local = played(Experiment(SPACE, LevelSet(0.5), random_state=3), 6)
    with made(server, strategy=None) as study:
        played(study, 6)
        assert common(study.trials()) == common(local.trials())
        status = study.status()
        known = local.status()
        assert {name: status[name] for name in known} == json.loads(json.dumps(known))
        there = np.array([[0.2], [0.7]])
        expected = local.model.posterior(there)
        np.testing.assert_array_equal(study.model.posterior(there).mean(), expected.mean())
        found = study.posterior({"x": there[:, 0]}, level=0.9)
        np.testing.assert_allclose(found["mean"], expected.mean())
        np.testing.assert_allclose([found["low"], found["high"]], expected.interval(0.9))
        assert found["points"] == [{"x": 0.2}, {"x": 0.7}]
        assert len(study.posterior(grid=5)["mean"]) == 5


def test_batches_contexts_and_trials_that_were_not_asked_for(server):
    with made(server, contexts={"two": {"guess": 0.5, "lapse": 0.02}}) as study:
        first, second, third, fourth = study.ask(4, participant="anna")
        study.tell(first, True, context="two")
        study.tell(second.id, np.False_, context=np.array([0.25, 1.0]))
        study.tell(json.loads(json.dumps(third.to_dict())), 1)
        study.abandon(fourth)
        study.abandon(fourth)
        study.tell({"x": np.float64(0.5)}, success=False)
        waiting = study.ask(fixed={"x": 0.25}, participant="bo")
        assert waiting["x"] == 0.25
        assert [(t.id, dict(t), t.why) for t in study.pending()] == [
            (waiting.id, {"x": 0.25}, waiting.why)
        ]
        rows = study.trials()
        assert [row["state"] for row in rows] == ["told"] * 3 + ["abandoned", "told", "pending"]
        assert [row["success"] for row in rows] == [True, False, True, None, False, None]
        assert [row["context"] for row in rows[:3]] == ["two", [0.25, 1.0], None]
        assert [row["participant"] for row in rows] == ["anna"] * 4 + [None, "bo"]
        assert study.status()["told"] == 4


def test_before_the_first_trial_nothing_is_known(server):
    with made(server, Maximize()) as study:
        assert study.status()["known"] is None
        assert np.isnan(study.posterior(grid=3)["mean"]).all()
        with pytest.raises(ValueError, match="learned nothing yet"):
            _ = study.model


@pytest.mark.parametrize("page", [7, 20, 1000])
def test_long_lists_come_page_by_page(server, page):
    with made(server) as study:
        for trial in study.ask(20):
            study.tell(trial, True)
        url = f"{server.address}/studies/{study.name}"
        with closing(Wire(url, study.tokens["owner"], 30.0)) as wire:
            rows = wire.listed("/trials", "trials", 0.0, page)
        assert [row["id"] for row in rows] == list(range(20))
        assert [row["id"] for row in study.trials()] == list(range(20))


def test_studies_are_stopped_resumed_and_have_enough(server):
    with made(server, enough={"trials": 2}) as study:
        played(study, 2)
        assert not study.enough
        pending = study.ask()
        assert study.enough
        study.stop()
        with pytest.raises(ValueError, match="stopped"):
            study.ask()
        study.tell(pending, True)
        assert study.status()["stopped"]
        study.resume()
        study.ask()


def test_what_is_told_twice_counts_once_and_the_first_stands(server):
    with made(server) as study:
        trial = study.ask()
        study.tell(trial, True)
        study.tell(trial, True)
        with pytest.raises(ValueError, match=r"trial 0: it was told before, a success"):
            study.tell(trial, False)
        assert [row["success"] for row in study.trials()] == [True]


# Refusals -------------------------------------------------------------------------------------


def test_tokens_allow_what_their_role_allows(server):
    study = made(server)
    runner = reached(study, server.address)
    runner.tell(runner.ask(), True)
    for refused in (runner.status, runner.trials, runner.stop, lambda: runner.model):
        with pytest.raises(PermissionError, match="token: found one to run"):
            refused()
    viewer = Study(f"{server.address}/studies/{study.name}", study.tokens["view"])
    assert viewer.status()["told"] == 1
    with pytest.raises(PermissionError):
        viewer.ask()
    for token in ("wrong", None):
        with pytest.raises(PermissionError, match=r"^token: found"):
            Study(f"{server.address}/studies/{study.name}", token).ask()


def test_what_the_server_refuses_is_told_in_its_words(server):
    with made(server, contexts={"two": {"guess": 0.5}}) as study:
        with pytest.raises(ValueError, match=r"^fixed, feature 'x': found 5\.0; a number from"):
            study.ask(fixed={"x": 5})
        with pytest.raises(ValueError, match=r"^trial: found number 7; trials of this study"):
            study.tell(7, True)
        with pytest.raises(ValueError, match="'three'"):
            study.tell(study.ask(), True, context="three")
        elsewhere = Study(f"{server.address}/studies/{name()}", TOKEN)
        with pytest.raises(ValueError, match="study"):
            elsewhere.status()
        with pytest.raises(ValueError, match="space"):
            made(server, space={"x": (1, 0)})


def test_a_trial_of_another_study_is_refused(server):
    one, other = made(server, seed=1), made(server, seed=2)
    mine, others = one.ask(), other.ask()
    assert (mine.id, others.id) == (0, 0)
    with pytest.raises(ValueError, match=rf"as number 0, which is none of '{one.name}'"):
        one.tell(others, True)
    with pytest.raises(ValueError, match="none of"):
        one.abandon(others.to_dict())
    assert [row["state"] for row in one.trials()] == ["pending"]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"url": 3}, TypeError, "^url: found int"),
        ({"url": "127.0.0.1:8000/studies/x"}, ValueError, "^url: found '127.*http://… or"),
        ({"url": "ftp://a/studies/x"}, ValueError, "^url: found 'ftp:"),
        ({"url": "http://a/"}, ValueError, "^url: found 'http://a/'; …/studies/NAME is needed"),
        ({"url": "http://a/studies/a b"}, ValueError, "^url: found"),
        ({"url": "http://a/studies/x?token=secret"}, ValueError, "without a query"),
        ({"url": "http://a:99999/studies/x"}, ValueError, "^url: found"),
        ({"token": 3}, TypeError, "^token: found int"),
        ({"token": "a\nb"}, ValueError, "^token: found characters that cannot be part of a token"),
        ({"patience": -1}, ValueError, "^patience: found -1"),
        ({"timeout": 0}, ValueError, "^timeout: found 0"),
        ({"journal": 3}, TypeError, "^journal: found int"),
    ],
)
def test_impossible_studies_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        Study(**{"url": NOWHERE, **given})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda s: s.ask(0), ValueError, "^n: found 0"),
        (lambda s: s.ask(fixed={"x": np.nan}), ValueError, "^fixed: found {'x': NaN}"),
        (lambda s: s.ask(participant=3), TypeError, "^participant: found int"),
        (lambda s: s.tell(-1, True), ValueError, "^trial: found -1; the id of a trial"),
        (lambda s: s.tell("7", True), TypeError, "^trial: found str"),
        (lambda s: s.tell(7, "yes"), ValueError, "^success: found 'yes'"),
        (lambda s: s.tell(7, True, context=[0, 2]), ValueError, "^context"),
        (lambda s: s.abandon({"x": 0.5}), TypeError, "^trial: found dict"),
        (lambda s: s.posterior([1]), TypeError, "^points: found list"),
        (lambda s: s.posterior(level=2), ValueError, "^level: found 2"),
    ],
)
def test_impossible_calls_are_refused_before_anything_is_sent(call, error, message, tmp_path):
    study = Study(NOWHERE, journal=tmp_path / "j", patience=0)
    with pytest.raises(error, match=message):
        call(study)
    assert study.unsent == []


def test_tokens_are_not_shown():
    study = Study(NOWHERE, "very-secret", patience=0)
    assert "secret" not in repr(study)
    with pytest.raises(ConnectionError) as told:
        study.ask()
    assert "secret" not in str(told.value)


# Failing networks -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "is_kept", [pytest.param(False, marks=pytest.mark.long), True], ids=["plain", "journal"]
)
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long)])
def test_connections_that_are_cut_lose_nothing_and_count_nothing_twice(
    server, seed, is_kept, tmp_path
):
    study = made(server)
    journal = tmp_path / "j" if is_kept else None
    with (
        Proxy(server.address, seed) as proxy,
        reached(study, proxy.address, journal=journal) as one,
    ):
        proxy.is_cutting = True
        played(one, 12)
        one.tell({"x": 0.5}, success=True)
        one.send()
        proxy.is_cutting = False
        assert proxy.cut >= 8
    local = played(Experiment(SPACE, LevelSet(0.5), random_state=3, strategy="sobol"), 12)
    local.tell({"x": 0.5}, success=True)
    assert common(study.trials()) == common(local.trials())


def test_without_a_server_asks_fail_and_outcomes_are_kept(tmp_path):
    study = Study(NOWHERE, journal=tmp_path / "j", patience=0.2)
    study.tell(0, True)
    study.tell({"x": 0.5}, False)
    with pytest.raises(ConnectionError, match=r"^http://127.0.0.1:9/studies/dots: no answer"):
        study.ask()
    assert [each["path"] for each in study.unsent] == ["/trials/0/outcome", "/trials"]
    with pytest.warns(UserWarning, match=r"^journal: 2 outcomes are kept"):
        study.close()
    with pytest.raises(ConnectionError):
        Study(NOWHERE, patience=0.2).tell(0, True)


@pytest.mark.long
def test_a_server_that_is_killed_goes_on_where_it_was(tmp_path):
    database, journal = tmp_path / "s.db", tmp_path / "j"
    with Server(database) as first:
        study = made(first)
        one = reached(study, first.address, journal=journal, patience=0.3)
        played(one, 3)
        pending = one.ask(2)
        first.kill()
        port = int(first.address.rpartition(":")[2])
    one.tell(pending[0], success=True)
    one.tell({"x": 0.5}, success=False)
    assert len(one.unsent) == 2
    with pytest.raises(ConnectionError):
        one.ask()
    with pytest.warns(UserWarning, match="2 outcomes are kept"):
        one.close()
    # A waiting client continues by itself when the server is back.
    patient, found = reached(study, first.address, patience=300), []
    waiting = threading.Thread(target=lambda: found.append(patient.ask()))
    waiting.start()
    with Server(database, port=port) as second:
        waiting.join(300)
        assert [trial.id for trial in found] == [5]
        again = reached(study, second.address, journal=journal)
        assert len(again.unsent) == 2
        again.tell(pending[1], success=False)
        assert again.unsent == []
        patient.tell(found[0], success=True)
        again.close()
        rows = study.trials()
    states = [(row["id"], row["success"]) for row in rows[3:]]
    assert states == [(3, True), (4, False), (5, True), (6, False)]
    assert all(row["state"] == "told" for row in rows)


CRASH = """
import os, signal, sys
from betafield.client import Study
study = Study(sys.argv[1], journal=sys.argv[2], patience=0)
for i in range(5):
    study.tell(i, success=i % 2 == 0)
    print(i, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_kept_survives_a_crash_of_the_program(server, tmp_path):
    study, journal = made(server), tmp_path / "j"
    study.ask(5)
    command = [sys.executable, "-c", CRASH, f"http://127.0.0.1:9/studies/{study.name}", journal]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout.split() == ["0", "1", "2", "3", "4"]
    with journal.open("ab") as file:
        file.write(b'{"key": "torn", "stu')
    with reached(study, server.address, journal=journal) as one:
        assert len(one.unsent) == 5
        one.send()
        assert one.unsent == []
    assert [row["success"] for row in study.trials()] == [True, False, True, False, True]
    with reached(study, server.address, journal=journal) as one:
        assert one.unsent == []


def test_what_is_refused_later_is_told_and_does_not_hold_up_the_rest(server, tmp_path):
    study = made(server)
    first, second = study.ask(2)
    away = Study(f"http://127.0.0.1:9/studies/{study.name}", journal=tmp_path / "j")
    away.tell(first, False)
    away.tell(second, False)
    with pytest.warns(UserWarning, match="2 outcomes are kept"):
        away.close()
    study.tell(first, True)
    with (
        reached(study, server.address, journal=tmp_path / "j") as one,
        pytest.warns(UserWarning, match=r"^/trials/0/outcome: trial 0: it was told before"),
    ):
        one.send()
    assert [row["success"] for row in study.trials()] == [True, False]
    with reached(study, server.address, journal=tmp_path / "j") as one:
        assert one.unsent == []
        ((path, why),) = [(each["path"], each["why"]) for each in one.refused]
        assert path == "/trials/0/outcome"
        assert "told before" in why
        with pytest.raises(ValueError, match="told before"):
            one.tell(first.id, False)
        assert len(one.refused) == 2


def test_a_token_that_is_wrong_loses_nothing(server, tmp_path):
    study = made(server)
    trial = study.ask()
    one = Study(f"{server.address}/studies/{study.name}", "wrong", tmp_path / "j")
    with pytest.raises(PermissionError, match=r"^token: found one that is not valid"):
        one.tell(trial, True)
    assert len(one.unsent) == 1
    with pytest.warns(UserWarning, match="1 outcomes are kept"):
        one.close()
    with reached(study, server.address, journal=tmp_path / "j") as again:
        again.send()
    assert study.status()["told"] == 1


# Answers that are not the server's ------------------------------------------------------------


class Portal(BaseHTTPRequestHandler):
    """Answers every request in the same way, like a network that asks for a login."""

    answers = ()

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        status, kind, body, headers = self.answers[0]
        if len(self.answers) > 1:
            self.answers.pop(0)
        self.send_response(status)
        for key, value in {"content-type": kind, "content-length": len(body), **headers}.items():
            self.send_header(key, str(value))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST  # noqa: N815

    def log_message(self, *_):
        pass


@pytest.fixture
def portal():
    """Return the answers of a portal, and its address."""
    kind = type("Own", (Portal,), {"answers": []})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), kind) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        kind.address = f"http://127.0.0.1:{server.server_address[1]}/studies/dots"
        yield kind
        server.shutdown()


@pytest.mark.parametrize(
    "answer",
    [
        (200, "text/html", b"<h1>Please log in</h1>", {}),
        (200, "application/json", b'{"hello": 1}', {}),
        (200, "application/json", b"[]", {}),
        (204, "text/plain", b"", {}),
        (302, "text/html", b"", {"location": "http://127.0.0.1:9/login"}),
        (503, "text/html", b"down", {}),
    ],
    ids=["page", "other", "list", "nothing", "redirect", "down"],
)
def test_only_the_server_can_say_that_it_has_an_outcome(portal, answer, tmp_path):
    portal.answers[:] = [answer]
    study = Study(portal.address, journal=tmp_path / "j", patience=0)
    study.tell(0, True)
    assert len(study.unsent) == 1
    for asked in (study.ask, study.status, lambda: Study(portal.address, patience=0).tell(0, 1)):
        with pytest.raises(ConnectionError, match=r"found an answer|status 503"):
            asked()


def test_a_busy_server_is_asked_again_when_it_says(portal):
    busy = (429, "application/problem+json", b'{"detail": "wait"}', {"retry-after": "1"})
    good = (200, "application/json", b'{"id": 0}', {})
    portal.answers[:] = [busy, busy, good]
    began = time.monotonic()
    Study(portal.address).tell(0, True)
    assert time.monotonic() - began >= 2
    portal.answers[:] = [busy]
    with pytest.raises(ConnectionError, match="wait"):
        Study(portal.address, patience=0.5).tell(0, True)
