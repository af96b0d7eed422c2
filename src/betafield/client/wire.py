"""Requests to a server, repeated until one is answered; refusals are raised as exceptions.

Every request is idempotent: those that change something carry a key, or set the same thing to the
same value. So a request that is cut off is repeated unchanged.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from betafield import checks
from betafield._extras import needed

if TYPE_CHECKING:
    import httpx

# Statuses after which a request is repeated.
LATER = (408, 425, 429, 500, 502, 503, 504)
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0
CONNECT_SECONDS = 5.0
# Rows per page of a list.
PAGE = 1000


class Wire:
    """A connection to one address, kept open.

    Parameters
    ----------
    url : str
        The prefix of all paths, http or https.
    token : str or None
    timeout : float
        Seconds to wait for an answer.
    client : httpx.Client or None
        A client with its own proxies or certificates; None for a default one.
    """

    def __init__(
        self, url: str, token: str | None, timeout: float, client: httpx.Client | None = None
    ) -> None:
        httpx: Any = needed("client", "httpx")
        self.url = url
        self._errors = httpx.TransportError
        self._timeout = httpx.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS))
        self._is_ours = client is None
        self._client = httpx.Client() if client is None else client
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def json(self, method: str, path: str, **options: Any) -> Any:
        """Return the JSON of the answer; see `call`."""
        response = self.call(method, path, **options)
        try:
            return response.json()
        except ValueError:
            raise ConnectionError(self._strange(response)) from None

    def listed(
        self, path: str, name: str, patience: float, page: int = PAGE
    ) -> list[dict[str, Any]]:
        """Return a whole list, fetched in pages of this many rows."""
        rows: list[dict[str, Any]] = []
        after: Any = -1
        while after is not None:
            query = {"after": after, "limit": page}
            answer = self.json("GET", path, query=query, patience=patience)
            rows += self.field(answer, name, list)
            after = answer.get("next")
        return rows

    def field(self, answer: Any, name: str, kind: type) -> Any:
        """Return a field of an answer; without it, the answer is not from a betafield server."""
        found = answer.get(name) if isinstance(answer, Mapping) else None
        if not isinstance(found, kind):
            raise ConnectionError(
                f"{self.url}: found an answer without {name!r}: {checks.spelled(answer)}"
            )
        return found

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Any = None,
        patience: float = 0.0,
    ) -> httpx.Response:
        """Return the answer to a request, which is repeated for up to `patience` seconds.

        Raises
        ------
        PermissionError
            If the token does not allow it.
        ValueError
            If the server refuses it.
        ConnectionError
            If there is no answer, or the answer is not from a betafield server.
        """
        ends = time.monotonic() + patience
        for wait in _waits():
            answer = self._once(method, path, body, query)
            if not isinstance(answer, str) and answer.status_code not in LATER:
                return self._checked(answer)
            why = answer if isinstance(answer, str) else problem(answer)
            pause = max(wait, _asked_to_wait(answer))
            if time.monotonic() + pause > ends:
                break
            time.sleep(pause)
        raise ConnectionError(f"{self.url}: {why}")

    def _once(self, method: str, path: str, body: Any, query: Any) -> httpx.Response | str:
        """Return the answer, or why there is none."""
        try:
            return self._client.request(
                method,
                f"{self.url}{path}",
                json=body,
                params=query,
                headers=self._headers,
                timeout=self._timeout,
                follow_redirects=False,
            )
        except self._errors as error:
            return f"no answer ({type(error).__name__}: {error})"

    def _checked(self, response: httpx.Response) -> httpx.Response:
        """Return the answer, or raise if it is a refusal."""
        status = response.status_code
        if status in (401, 403):
            raise PermissionError(problem(response))
        if 400 <= status < 500:
            raise ValueError(problem(response))
        if not 200 <= status < 300:
            raise ConnectionError(self._strange(response))
        return response

    def _strange(self, response: httpx.Response) -> str:
        kind = response.headers.get("content-type", "no content type")
        return (
            f"{self.url}: found an answer that does not come from a betafield server (status "
            f"{response.status_code}, {kind}); perhaps a network asks for a login"
        )

    def close(self) -> None:
        """Close the client if it was opened here."""
        if self._is_ours:
            self._client.close()


def problem(response: httpx.Response) -> str:
    """Return the error message of an answer: the detail of RFC 9457, or the status."""
    plain = f"status {response.status_code} {response.reason_phrase}".strip()
    try:
        found = response.json()
    except ValueError:
        return plain
    detail = found.get("detail") if isinstance(found, Mapping) else None
    return detail if isinstance(detail, str) and detail else plain


def _waits() -> Iterator[float]:
    """Yield growing, randomised pauses, so that clients do not all return at once."""
    wait = FIRST_WAIT
    while True:
        yield wait * random.uniform(0.5, 1.0)
        wait = min(2 * wait, LONGEST_WAIT)


def _asked_to_wait(answer: httpx.Response | str) -> float:
    text = "" if isinstance(answer, str) else answer.headers.get("retry-after", "")
    return min(float(text), 60.0) if text.isdecimal() else 0.0


def address(name: str, url: Any) -> str:
    """Return an address without a trailing slash.

    Examples
    --------
    >>> address("url", "http://127.0.0.1:8000/")
    'http://127.0.0.1:8000'
    >>> address("url", "lab.example")
    Traceback (most recent call last):
        ...
    ValueError: url: found 'lab.example'; http://… or https://… without a query is needed
    """
    text = checks.instance(name, url, str, "an address is needed")
    rule = "http://… or https://… without a query is needed"
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    good = good and text.isascii() and text.isprintable() and " " not in text
    checks.require(good and not (parts.query or parts.fragment), name, url, rule)
    return text.rstrip("/")


def plain(name: str, value: Any) -> Any:
    """Return a value as plain JSON; arrays become lists, and their elements numbers.

    Examples
    --------
    >>> import numpy as np
    >>> plain("fixed", {"age": np.int64(40)})
    {'age': 40}
    >>> plain("fixed", {"age": float("nan")})
    Traceback (most recent call last):
        ...
    ValueError: fixed: found {'age': NaN}; finite numbers, text, lists and mappings are possible
    """
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=_listed))
    except (TypeError, ValueError, RecursionError, OverflowError):
        rule = "finite numbers, text, lists and mappings are possible"
        raise ValueError(f"{name}: found {checks.spelled(value)}; {rule}") from None


def _listed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if callable(getattr(value, "tolist", None)):
        return value.tolist()
    raise TypeError
