"""The short path of frequent requests gives the same answers as the long one."""

import asyncio
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.serving import DOTS, ask, created

from betafield.server.access import Hub
from betafield.server.definitions import Definition
from betafield.server.direct import Direct
from betafield.server.security import Bucket
from betafield.server.storage import Store
from betafield.server.studies import Studies
from betafield.server.tokens import Tokens

# A request with a query string takes the long path, which ignores it.
LONG = "?long"
# Each is sent to two otherwise equal studies, by one path and by the other.
TEXTS = st.sampled_from([None, "a", "", "x" * 300, "a\x00", 3, "\ud800"])
CONTEXTS = st.sampled_from([None, "two", "none", [0.5, 1.0], [0.5], {}])
SUCCESS = st.sampled_from([True, False, True, False, None, 1, "true"])
ODD = {"participant": TEXTS, "odd": st.just(1)}
ASKS = st.fixed_dictionaries(
    {},
    optional={
        "n": st.sampled_from([1, 2, True, 0, -1, 1001, 1.0, 10**30, float("nan"), "1", []]),
        "fixed": st.sampled_from([{}, {"x": 0.25}, {"x": 7}, None]),
        "key": TEXTS,
        **ODD,
    },
)
OUTCOMES = st.fixed_dictionaries({"success": SUCCESS}, optional={"context": CONTEXTS, **ODD})
POINTS = st.sampled_from([{"x": 0.5}, {"x": 1}, {"x": 2}, {"y": 1}, {"x": "0.5"}, {}, None, [1]])
# For a study with levels: right and wrong names, numbers, texts, and neither.
EYES = {**DOTS, "space": {"x": [0, 1], "eye": ["left", "right"]}, "strategy": "sobol"}
LEVELS = st.sampled_from(["left", "right", "up", "", "left\x00", 0, True, None, ["left"], "\ud800"])
SEEN = st.fixed_dictionaries({"x": st.sampled_from([0.5, 1, "left"])}, optional={"eye": LEVELS})
TOLD = st.fixed_dictionaries(
    {"values": POINTS, "success": SUCCESS}, optional={"context": CONTEXTS, "key": TEXTS, **ODD}
)
NUMBERS = ("0", "1", "2", "3", "00", "700", "9" * 16, "-1")
# Mostly what clients send, so that the short path is taken.
PLAIN = st.one_of(
    st.tuples(st.just("asks"), st.sampled_from([{}, {"n": 2}, {"key": "k"}, {"key": "l"}])),
    st.tuples(st.just("trials"), st.just({"values": {"x": 0.5}, "success": True})),
    st.tuples(
        st.sampled_from([f"trials/{n}/outcome" for n in NUMBERS]),
        st.sampled_from(
            [{"success": True}, {"success": False}, {"success": True, "context": "two"}]
        ),
    ),
)
ANY = st.one_of(
    st.tuples(st.just("asks"), ASKS),
    st.tuples(st.just("trials"), TOLD),
    st.tuples(st.sampled_from([f"trials/{n}/outcome" for n in NUMBERS]), OUTCOMES),
)
TEXT = st.sampled_from([b"", b"[", b"null", b"[]", b"\xff", b"[" * 20_000, b'{"n": 1, "n": 2}'])
REQUESTS = st.one_of(
    PLAIN.map(lambda each: (each[0], json.dumps(each[1]).encode())),
    ANY.map(lambda each: (each[0], json.dumps(each[1]).encode())),
    st.tuples(st.sampled_from(["asks", "trials", "trials/1/outcome"]), TEXT),
)


@pytest.fixture(scope="module")
def twins(client):
    """Return tokens of two studies that differ in their names only."""
    return {name: created(client, DOTS, name) for name in ("short-way", "long--way")}


@pytest.fixture(scope="module")
def levelled(client):
    """Return tokens of two studies with levels that differ in their names only."""
    return {name: created(client, EYES, name) for name in ("short-eyes", "long--eyes")}


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(
    sent=REQUESTS,
    role=st.sampled_from(["run", "owner", "view", "wrong"]),
    kind=st.sampled_from([*["application/json"] * 4, "text/plain", None]),
    key=st.sampled_from([*[None] * 6, "k", ""]),
)
def test_both_ways_answer_the_same(client, twins, sent, role, kind, key):
    require_same_answers(client, twins, sent, role, kind, key)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    sent=st.one_of(
        SEEN.map(lambda each: ("trials", {"values": each, "success": True})),
        SEEN.map(lambda each: ("asks", {"fixed": each})),
        st.sampled_from(NUMBERS).map(lambda n: (f"trials/{n}/outcome", {"success": True})),
    )
)
def test_both_ways_answer_the_same_about_levels(client, levelled, sent):
    path, body = sent
    require_same_answers(client, levelled, (path, json.dumps(body).encode()))


def require_same_answers(client, twins, sent, role="run", kind="application/json", key=None):
    """Send the same to both studies, by the short path and by the long one."""
    (path, content), answers = sent, []
    for name, way in zip(twins, ("", LONG), strict=True):
        headers = {"Authorization": f"Bearer {twins[name].get(role, 'bf_wrong')}"}
        headers |= {} if kind is None else {"content-type": kind}
        headers |= {} if key is None else {"idempotency-key": key}
        answer = client.post(f"/studies/{name}/{path}{way}", content=content, headers=headers)
        told = answer.text.replace(name, "name")
        told = json.loads(told)
        if "key" in told and not key and not json.loads(content).get("key"):
            told["key"] = "drawn"
        kept = {k: v for k, v in answer.headers.items() if k not in ("x-request-id", "date")}
        answers.append((answer.status_code, told, kept))
    assert answers[0] == answers[1]


def test_plain_requests_take_the_short_way(tmp_path):
    store = Store(str(tmp_path / "study.db"), serving=True)
    studies = Studies(store)
    made = studies.create(Definition.of(DOTS))["tokens"]
    known = Tokens(store, "the server's own token")
    hub = Hub(studies, known, Bucket(100.0, 100.0), Bucket(1.0, 1.0))

    async def long_way(*_):
        raise LookupError("the long way")

    def sent(path, body):
        scope = {
            "type": "http",
            "method": "POST",
            "path": f"/studies/dots/{path}",
            "query_string": b"",
            "headers": [
                (b"authorization", f"Bearer {made['run']}".encode()),
                (b"content-type", b"application/json"),
            ],
        }
        messages = []

        async def receive():
            return {"type": "http.request", "body": json.dumps(body).encode()}

        async def send(message):
            messages.append(message)

        asyncio.run(Direct(long_way, hub)(scope, receive, send))
        return messages[0]["status"], json.loads(messages[1]["body"])

    try:
        with pytest.raises(LookupError):  # the study is not in memory yet
            sent("asks", {})
        studies.find("dots")
        assert sent("asks", {"n": 2})[1]["trials"][1]["id"] == 1
        told = {"id": 1, "state": "told", "success": True}
        assert sent("trials/1/outcome", {"success": True}) == (200, told)
        assert sent("trials/1/outcome", {"success": False})[0] == 409
        assert sent("trials", {"values": {"x": 0.5}, "success": True})[0] == 201
        with pytest.raises(LookupError):
            sent("asks", {"n": 0})
    finally:
        studies.close()
        known.close()
        store.close()


def test_a_token_that_is_no_text_of_ascii_is_refused(client):
    assert ask(client, "short-way")
    for token in ("bf_ü".encode(), b"\xff"):
        headers = {"authorization": b"Bearer " + token}
        answer = client.post("/studies/short-way/asks", json={}, headers=headers)
        assert answer.status_code == 401


def test_the_second_part_of_an_answer_waits_for_nobody(client):
    """A client that acknowledges late, as they all do after a while, is answered at once.

    An answer is sent in two parts, its head and its body. The kernel used to hold back the second
    until the first was acknowledged, which takes 40 ms or more, on every request but the first few.
    """
    created(client, DOTS, "at-once")
    seconds = []
    for number in range(30):
        at = time.perf_counter()
        client.post("/studies/at-once/trials/0/outcome", json={"success": number % 2 == 0})
        seconds.append(time.perf_counter() - at)
    assert min(seconds[10:]) < 0.03
