"""The guarantee: acknowledged data survive any crash, once, and asks continue as they would."""

import random
import sqlite3
import sys
import threading
import time
import uuid
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, event
from tests.server.serving import (
    DOTS,
    EVEN,
    TOKEN,
    Server,
    ask,
    created,
    limited,
    outcome_at,
    replayed,
    rows_of,
    shared,
    tell,
)

from betafield.decisions import Everywhere, Experiment, LevelSet
from betafield.decisions.experiment.experiment import parts
from betafield.decisions.experiment.placing import Placing
from betafield.decisions.experiment.replaying import Replay
from betafield.server import tables
from betafield.server.backing_up import copied
from betafield.server.definitions import Definition
from betafield.server.storage import Store
from betafield.server.studies import Studies

# Learning in batches -------------------------------------------------------------------------

CONTEXTS = [None, [0.5, 1.0], [0.1, 0.8], [0.0, 0.3, 1.0]]


@pytest.mark.parametrize("goal", [LevelSet(0.5), Everywhere()], ids=["level", "everywhere"])
@settings(max_examples=4)
@given(
    cuts=st.lists(st.integers(0, 90), max_size=4),
    kinds=st.lists(st.integers(0, 3), min_size=90, max_size=90),
)
def test_outcomes_learned_together_are_those_learned_one_by_one(goal, cuts, kinds):
    space = {"x": (0, 1), "y": (0, 2)}
    one, other = (Experiment(space, goal, random_state=3) for _ in range(2))
    replay = Replay(other)
    rng = random.Random(5)
    for i, kind in enumerate(kinds):
        point = {"x": rng.random(), "y": 2 * rng.random()}
        success, context = rng.random() < 0.5, CONTEXTS[kind]
        one.tell(point, success=success, context=context)
        (number,) = replay.add_all([replay.checked_row(point)], ["given"])
        replay.end_all([(number, success, None if context is None else np.array(context))])
        if i in cuts:
            replay.learned()
    asked, expected = replay.learned().ask(3), one.ask(3)
    assert [dict(each) for each in asked] == [dict(each) for each in expected]
    assert [each.why for each in asked] == [each.why for each in expected]


def test_what_was_prepared_is_asked_only_if_nothing_has_happened_since():
    one, other = (Experiment({"x": (0, 1)}, LevelSet(0.5), random_state=3) for _ in range(2))
    replay, rng = Replay(other), random.Random(1)
    for i in range(24):
        point = {"x": rng.random()}
        one.tell(point, success=point["x"] > 0.4)
        (number,) = replay.add_all([replay.checked_row(point)], ["given"])
        replay.end_all([(number, point["x"] > 0.4, None)])
        if i % 3 == 0:
            continue
        replay.prepare()
        if i % 3 == 1:  # another trial comes in between, and stays pending
            row = replay.checked_row({"x": rng.random()})
            for history in (parts(one).history, parts(other).history):
                history.add(row, "in between")
        trials = one.ask(2)
        assert [dict(each) for each in replay.ask(2, {})] == [dict(t) for t in trials]
        one.abandon(trials[0])
        replay.end_all([(trials[0].id, None, None)])


@contextmanager
def calls_of(function):
    """Return a list that gets an entry for each call of a function of Python, in this thread."""
    calls, before = [], sys.getprofile()

    def called(frame, event, _):
        if event == "call" and frame.f_code is function.__code__:
            calls.append(frame.f_lineno)

    sys.setprofile(called)
    try:
        yield calls
    finally:
        sys.setprofile(before)


def test_the_next_trial_is_sought_once_after_each_outcome():
    replay = Replay(Definition.of(DOTS).experiment())
    with calls_of(Placing.next) as sought:
        (trial,) = replay.ask(1, {})
        replay.prepare()  # whoever asked is going to tell: what would be found now is not asked for
        assert len(sought) == 1
        replay.end_all([(trial.id, True, None)])
        replay.prepare()
        replay.prepare()
        assert len(sought) == 2


# Kills ---------------------------------------------------------------------------------------


class Load:
    """Clients that ask and tell until the server is gone, and remember the answers."""

    def __init__(self, server, study, people, before=None):
        self.answered, self.asked = (before.answered, before.asked) if before else ({}, {})
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._take_part, args=(server, study, person))
            for person in range(people)
        ]
        for thread in self._threads:
            thread.start()

    def end(self):
        """Wait until all clients have noticed."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _take_part(self, server, study, person):
        with server.client() as client:
            try:
                while not self._ended.is_set():
                    self._one(client, study, person)
            except httpx.TransportError:
                return

    def _one(self, client, study, person):
        body = {"participant": f"p{person}", "key": uuid.uuid4().hex}
        told = self._insist(lambda: client.post(f"/studies/{study}/asks", json=body))
        (trial,) = told["trials"]
        self.asked[trial["id"]] = trial["values"]
        success = outcome_at(trial["values"], trial["id"])
        self._insist(lambda: tell(client, study, trial["id"], success))
        self.answered[trial["id"]] = success

    def _insist(self, send):
        """Return the answer to a request, which is repeated while the database is away."""
        while (answer := send()).status_code == 503:
            time.sleep(0.1)
        assert answer.status_code == 200, answer.text
        return answer.json()


def require_kept(rows, load):
    """Raise unless everything acknowledged is in the rows, once and unchanged."""
    assert [row["id"] for row in rows] == list(range(len(rows)))
    told = {row["id"]: row["success"] for row in rows if row["state"] == "told"}
    assert load.answered.items() <= told.items()
    assert load.asked.items() <= {row["id"]: row["values"] for row in rows}.items()
    assert not shared(rows)


@pytest.mark.long
def test_kills_under_load_lose_nothing_and_asks_go_on(tmp_path):
    path, rows, load = tmp_path / "study.db", [], None
    for kill in range(3):
        with Server(path, "--rate", "100000") as server, server.client() as client:
            if kill == 0:
                created(client, DOTS, "dots")
            else:
                rows = rows_of(client, "dots")
                require_kept(rows, load)
            if kill == 2:
                again = replayed(DOTS, rows)
                assert dict(again.ask()) == ask(client, "dots")[0]["values"]
                return
            load = Load(server, "dots", 8, load)
            while len(load.answered) < 6 * (kill + 1):
                time.sleep(0.01)
            server.kill()
            load.end()


# PostgreSQL ----------------------------------------------------------------------------------


def test_two_processes_share_one_postgresql(postgresql):
    arguments = ("--database", postgresql.url, "--rate", "100000")
    with (
        Server(*arguments) as first,
        Server(*arguments) as second,
        first.client() as one,
        second.client() as two,
    ):
        made = created(one, EVEN, "shared")
        with second.client(made["run"]) as runner:  # the other process does not know of it yet
            assert runner.get("/studies/shared/status").status_code == 403
        trials = ask(one, "shared", n=2, key="k")
        assert ask(two, "shared", n=2, key="k") == trials
        assert tell(two, "shared", 0, True).status_code == 200
        assert tell(one, "shared", 0, True).status_code == 200
        assert tell(one, "shared", 0, False).status_code == 409
        loads = [Load(server, "shared", 8) for server in (first, second)]
        while sum(len(load.answered) for load in loads) < 120:
            time.sleep(0.01)
        first.kill()
        postgresql.stop()
        answer = two.post("/studies/shared/asks", json={})
        assert answer.status_code == 503
        assert answer.headers["retry-after"]
        assert two.get("/health").status_code == 503
        postgresql.start()
        assert two.get("/health").status_code == 200
        loads[1].end()
        loads[0].end()
        rows = rows_of(two, "shared")
        for load in loads:
            require_kept(rows, load)
        numbers = [set(load.asked) for load in loads]
        assert not numbers[0] & numbers[1]
        again = replayed({**EVEN, "name": "shared"}, rows)
        assert dict(again.ask()) == ask(two, "shared")[0]["values"]


# Files that cannot be written ------------------------------------------------------------------


def test_a_full_disk_is_told_and_what_follows_goes_on(tmp_path):
    path = tmp_path / "study.db"
    with Server(path, "--rate", "100000") as server, server.client() as client:
        created(client, EVEN, "even")
        ask(client, "even", n=3)
        assert tell(client, "even", 0, True).status_code == 200
        limited(server, 1)
        for answer in (
            client.post("/studies/even/asks", json={"key": "k"}),
            tell(client, "even", 1, True),
            client.post("/studies/even/trials", json={"values": {"x": 0, "y": 0}, "success": True}),
            client.get("/health"),
        ):
            assert answer.status_code == 503, answer.text
            assert "full" in answer.json()["detail"] or "I/O" in answer.json()["detail"]
        states = [row["state"] for row in rows_of(client, "even")]
        assert states == ["told", "pending", "pending"]
        limited(server, None)
        assert client.get("/health").status_code == 200
        assert ask(client, "even", key="k")[0]["id"] == 3
        assert tell(client, "even", 1, False).status_code == 200
        with client.stream("GET", "/studies/even/events") as stream:
            next(stream.iter_lines())
            assert server.stop() == 0
    assert not (tmp_path / "study.db-wal").exists()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def read_only(connection, _):
    """Make a connection read-only, because root may write to read-only files."""
    connection.execute("PRAGMA query_only=1")


def test_a_file_that_cannot_be_written_is_told(tmp_path):
    path = tmp_path / "study.db"
    store = Store(str(path), serving=True)
    studies = Studies(store)
    try:
        studies.create(Definition.of(EVEN))
        study = studies.find("even")
        study.submit(lambda state: state.ask(2, {}, None, None)).result()
        store.engine.dispose()
        event.listen(store.engine, "connect", read_only)
        problem = study.submit(lambda state: state.tell(0, True, None)).exception()
        assert problem.status == 503
        assert "readonly" in str(problem)
        event.remove(store.engine, "connect", read_only)
        store.engine.dispose()
        answer = study.submit(lambda state: state.tell(0, True, None)).result()
        assert answer["state"] == "told"
    finally:
        studies.close()
        store.close()


# Operating -------------------------------------------------------------------------------------


def test_a_backup_of_a_served_file_is_whole_and_checked(server, client, tmp_path):
    created(client, EVEN, "backed-up")
    load = Load(server, "backed-up", 4)
    while len(load.answered) < 20:
        time.sleep(0.01)
    copied(Path(server.process.args[4]), tmp_path / "copy.db")
    answered = dict(load.answered)
    load.end()
    store = Store(str(tmp_path / "copy.db"), serving=True)
    studies = Studies(store)
    counts = studies.find("backed-up").submit(lambda state: state.replay.counts).result()
    studies.close()
    store.close()
    assert 20 <= counts["told"] <= len(answered) + 8
    assert not list(tmp_path.glob("*.part"))


def test_one_process_serves_a_file(tmp_path):
    store = Store(str(tmp_path / "study.db"), serving=True)
    with pytest.raises(ValueError, match="another server serves it"):
        Store(str(tmp_path / "study.db"), serving=True)
    store.close()
    Store(str(tmp_path / "study.db"), serving=True).close()


def test_a_file_of_a_later_release_is_refused_and_an_older_one_brought_up_to_date(tmp_path):
    path = tmp_path / "study.db"
    Store(str(path)).close()
    later = [*tables.MIGRATIONS, lambda c: c.exec_driver_sql("CREATE TABLE more (x INTEGER)")]
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        assert tables.migrate(connection, later) == len(tables.MIGRATIONS)
        assert tables.version(connection) == len(later)
        assert connection.exec_driver_sql("SELECT count(*) FROM more").scalar_one() == 0
    engine.dispose()
    with pytest.raises(ValueError, match="a later release wrote it"):
        Store(str(path))


def test_only_this_machine_is_served_without_a_token():
    from betafield.server.running import Served, checked

    with pytest.raises(ValueError, match="--token"):
        checked(Served("study.db", host="0.0.0.0"))
    with pytest.raises(ValueError, match="16 characters"):
        checked(Served("study.db", token="short"))
    with pytest.raises(ValueError, match="--origin"):
        checked(Served("study.db", origins=["*"]))
    assert checked(Served("study.db", host="0.0.0.0", token=TOKEN)).port == 8000


# Clients that disconnect -----------------------------------------------------------------------


def test_whoever_goes_away_before_an_answer_holds_up_nobody(tmp_path):
    with closing(Store(str(tmp_path / "study.db"), serving=True)) as store:
        studies = Studies(store)
        studies.create(Definition.of({**EVEN, "name": "dots"}))
        study = studies.find("dots")
        begun, goes_on = threading.Event(), threading.Event()

        def slow(state):
            begun.set()
            goes_on.wait(60)
            return state.head

        first = study.submit(slow)
        assert begun.wait(60)
        waiting = study.submit(lambda state: state.head)
        assert waiting.cancel()  # it is waiting, and nothing has been done for it
        assert not first.cancel()  # it is in progress
        goes_on.set()
        assert first.result(60) == 0
        assert study.submit(lambda state: state.head).result(60) == 0
        studies.close()
