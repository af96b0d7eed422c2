"""Permissions: every route, method and kind of token, exactly as in docs/server.md."""

import re

import httpx
import pytest
from tests.server.serving import DOTS, ROOT, SSL, TOKEN, ask, created, logged, tell, wait

from betafield.cli import main

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD")
KINDS = ("no token", "run", "view", "owner", "server")


def table():
    """Return who may use which route, from the documentation."""
    text = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| `(\w+) (/[^`]*)` \|(.*)\|$", text, re.MULTILINE)
    rows = {}
    for method, route, cells in found:
        allowed = [cell.strip() == "yes" for cell in cells.split("|")]
        if len(allowed) == len(KINDS):
            rows[method, route] = {k for k, may in zip(KINDS, allowed, strict=True) if may}
    return rows


TABLE = table()


@pytest.fixture(scope="module")
def tokens(client, server):
    """Return tokens of every kind."""
    made = created(client, DOTS, "guarded")
    other = created(client, DOTS, "other")
    ask(client, "guarded", n=2)
    tell(client, "guarded", 0, True)
    revoked = created(client, DOTS, "third")["owner"]
    database = server.process.args[4]
    assert main(["tokens", "list", database]) == 0
    with server.client(revoked) as gone:
        assert gone.get("/studies/third").status_code == 200
        from betafield.server import tokens as kept
        from betafield.server.storage import Store

        store = Store(database)
        (row,) = [r for r in kept.listed(store) if (r.study, r.role) == ("third", "owner")]
        store.close()
        assert main(["tokens", "revoke", database, "--id", row.id]) == 0
        wait(lambda: gone.get("/studies/third").status_code == 401)
    return {
        "no token": None,
        "wrong": "bf_wrong",
        "revoked": revoked,
        "other": other["owner"],
        **made,
        "server": TOKEN,
    }


def test_the_table_has_every_route(client):
    paths = client.get("/openapi.json").json()["paths"]
    routes = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert set(TABLE) - routes == {("GET", "/docs"), ("GET", "/openapi.json")}
    assert routes <= set(TABLE)


def expected(method, route, kind):
    """Return the documented status; None if access is allowed."""
    if (method, route) not in TABLE:
        return 405
    allowed = TABLE[method, route]
    if "no token" in allowed or kind in allowed:
        return None
    if kind == "other" and route == "/studies":
        return None if method == "GET" else 403
    return 401 if kind in ("no token", "wrong", "revoked") else 403


@pytest.mark.parametrize("route", sorted({route for _, route in TABLE}))
def test_every_route_and_method_and_token_is_as_documented(server, tokens, route):
    path = route.format(study="guarded", trial=1, name="none.js")
    found = {}
    for kind, token in tokens.items():
        with server.client(token) as client:
            for method in METHODS:
                with client.stream(method, path, json={"odd": 1}) as answer:
                    found[method, kind] = answer.status_code
                    if answer.status_code in (401, 403, 404, 405) and method != "HEAD":
                        assert answer.headers["content-type"] == "application/problem+json"
    for (method, kind), status in found.items():
        promised = expected(method, route, kind)
        if promised is None:
            assert status not in (401, 403, 405, 500), (method, route, kind, status)
        else:
            assert status == promised, (method, route, kind, status)


def test_problems_say_what_is_needed_instead(server, client, tokens):
    assert client.get("/nothing").json()["detail"] == "path: found /nothing; /docs lists all routes"
    with server.client(tokens["owner"]) as owner:
        said = owner.post("/studies", json={}).json()["detail"]
        assert said == "token: found one of a study; this needs the server's own"
        said = owner.get("/studies/none/status").json()["detail"]
        assert said == "token: found one of another study"


def test_a_link_becomes_a_cookie_that_no_script_reads(server, tokens):
    link = f"{server.address}/studies/guarded/dashboard"
    answer = httpx.get(link, params={"token": tokens["view"]}, verify=SSL)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/studies/guarded/dashboard"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Path=/studies/guarded" in cookie
    cookies = {"Cookie": f"betafield={tokens['view']}"}
    told = httpx.get(f"{server.address}/studies/guarded/status", headers=cookies, verify=SSL)
    assert told.status_code == 200
    assert httpx.get(link, params={"token": "bf_wrong"}, verify=SSL).status_code == 401


def test_a_page_of_another_site_cannot_use_the_cookie(server, tokens):
    stop = f"{server.address}/studies/other/stop"
    cookie = {"Cookie": f"betafield={tokens['other']}"}
    foreign = {**cookie, "Origin": "https://elsewhere.example"}
    assert httpx.post(stop, headers=foreign, verify=SSL).status_code == 403
    own = {**cookie, "Origin": server.address, "Sec-Fetch-Site": "same-origin"}
    assert httpx.post(stop, headers=own, verify=SSL).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "[::2]:80"])
def test_another_name_of_this_machine_reaches_nothing(client, host):
    assert client.get("/health", headers={"Host": host}).status_code in (400, 421)
    assert client.get("/health", headers={"Host": "localhost:1"}).status_code == 200


def test_other_origins_are_told_nothing(client):
    origin = {"Origin": "https://elsewhere.example"}
    assert "access-control-allow-origin" not in client.get("/health", headers=origin).headers


@pytest.mark.usefixtures("tokens")
def test_large_and_odd_bodies_are_refused(client):
    large = client.post("/studies/guarded/asks", content=b" " * (1 << 20) + b"{}")
    assert large.status_code == 413
    chunks = client.post("/studies/guarded/asks", content=(b" " * 65536 for _ in range(20)))
    assert chunks.status_code == 413
    for body in (b"[" * 100_000, b'{"n": NaN}', b'{"n": 1e400}', b"\xff", b'{"n": 1' + b"0" * 5000):
        answer = client.post("/studies", content=body)
        assert answer.status_code in (400, 422), answer.text
        headers = {"content-type": "application/json"}
        answer = client.post("/studies/guarded/asks", content=body, headers=headers)
        assert answer.status_code in (400, 422), answer.text


def test_tokens_are_never_logged_and_every_request_has_an_id(server, client, tokens):
    answer = client.get("/studies/guarded/dashboard", params={"token": tokens["owner"]})
    request = client.get("/health", headers={"X-Request-ID": "mine-1"})
    assert request.headers["x-request-id"] == "mine-1"
    wait(lambda: "mine-1" in server.log())
    text = server.log()
    assert not any(token in text for token in tokens.values() if token)
    assert answer.headers["x-request-id"] in {line.get("request") for line in logged(server)}
    assert all({"time", "level", "message"} <= set(line) for line in logged(server))


def test_metrics_are_as_prometheus_reads_them(client):
    lines = client.get("/metrics").text.splitlines()
    shape = re.compile(r'[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [0-9.eE+-]+')
    assert all(line.startswith("# ") or shape.fullmatch(line) for line in lines)
    assert any(line.startswith("betafield_request_seconds_bucket") for line in lines)
