"""Errors as problem details (RFC 9457), with the library's own messages."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

MEDIA_TYPE = "application/problem+json"
# Most characters of a detail, which may quote what a client sent.
LONGEST = 1000


class Problem(Exception):  # noqa: N818 (as RFC 9457 calls it)
    """An error to be sent as the answer to a request.

    Parameters
    ----------
    status : int
        The HTTP status.
    detail : str
        One sentence: what was found, and what is allowed.
    headers : dict, default=None

    Examples
    --------
    >>> Problem(409, "trial 3: it was told before").document("/studies/dots")["title"]
    'Conflict'
    """

    def __init__(self, status: int, detail: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers or {}

    def document(self, instance: str) -> dict[str, Any]:
        """Return the problem as JSON values; `instance` is the path of the request."""
        return {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail[:LONGEST],
            "instance": instance[:LONGEST],
        }

    def body(self, instance: str) -> bytes:
        """Return the document as bytes."""
        return json.dumps(self.document(instance), ensure_ascii=False).encode(errors="replace")


class Unavailable(Problem):
    """The database cannot be written or read at the moment."""

    def __init__(self, why: str) -> None:
        self.why = why
        detail = f"the database cannot be used now: {why}; nothing of this request was recorded, "
        super().__init__(503, detail + "try again with the same key", {"Retry-After": "1"})


def failure() -> Problem:
    """Return the problem for a failure of the server."""
    return Problem(500, "the server failed; its log has the request's id")


def conflict(detail: str) -> Problem:
    """Return the problem for a request that contradicts what is recorded."""
    return Problem(409, detail)


def missing(detail: str) -> Problem:
    """Return the problem for something that does not exist."""
    return Problem(404, detail)


def refused(error: Exception) -> Problem:
    """Return the problem for values that the library does not allow."""
    return Problem(422, str(error))
