"""What went wrong, as problem details (RFC 9457), in the library's own words."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

MEDIA_TYPE = "application/problem+json"
# The longest detail in characters, because it may quote what a client sent.
LONGEST = 1000


class Problem(Exception):  # noqa: N818 (as RFC 9457 calls it)
    """A request that cannot be answered as it was meant.

    Parameters
    ----------
    status : int
        Of HTTP.
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
        """Return the problem as JSON has it; `instance` is the path that was asked for."""
        return {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail[:LONGEST],
            "instance": instance[:LONGEST],
        }

    def body(self, instance: str) -> bytes:
        """Return the document as bytes."""
        return json.dumps(self.document(instance), ensure_ascii=True).encode()


class Unavailable(Problem):
    """The database cannot be written or read at the moment."""

    def __init__(self, why: str) -> None:
        self.why = why
        detail = f"the database cannot be used now: {why}; nothing of this request was recorded, "
        super().__init__(503, detail + "try again with the same key", {"Retry-After": "1"})


def failure() -> Problem:
    """Return the problem of a request at which the server failed."""
    return Problem(500, "the server failed; its log has the request's id")


def conflict(detail: str) -> Problem:
    """Return the problem of a request that contradicts what is recorded."""
    return Problem(409, detail)


def missing(detail: str) -> Problem:
    """Return the problem of something that is not there."""
    return Problem(404, detail)


def refused(error: Exception) -> Problem:
    """Return the problem of values that the library does not allow."""
    return Problem(422, str(error))
