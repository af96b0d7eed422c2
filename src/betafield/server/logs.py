"""One line of JSON per request, with an id that is also in the answer; never a token."""

from __future__ import annotations

import json
import logging
import re
import sys
import time
import uuid
from functools import lru_cache
from typing import Any

from betafield.server.metrics import Metrics
from betafield.server.problems import failure
from betafield.server.security import answer

log = logging.getLogger("betafield.server")
# Methods counted by name; others are not, so that a client cannot fill the memory with them.
METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH")
_ID = re.compile(rb"[A-Za-z0-9_.-]{1,64}")
_encoded = json.JSONEncoder(ensure_ascii=True, default=str).encode


class Lines(logging.Formatter):
    """Log records as lines of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line."""
        told = {
            "time": f"{_second(int(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return _encoded(told)


@lru_cache(maxsize=4)
def _second(since: int) -> str:
    """Return a time, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since))


def start(level: str = "INFO") -> None:
    """Send log lines to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    for name in ("betafield.server", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
    logging.getLogger("uvicorn.error").handlers = []
    logging.getLogger("uvicorn.error").propagate = True


class Log:
    """Counts, times and logs each request, and answers unexpected errors.

    Parameters
    ----------
    app : ASGI application
    metrics : Metrics
    """

    def __init__(self, app: Any, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, send)
        self._metrics.open += 1
        try:
            await self._app(scope, receive, request.send)
        except Exception:
            fields = {"request": request.id, "path": scope["path"][:200]}
            log.exception("a request failed", extra={"fields": fields})
            if request.status is None:
                await answer(failure(), scope, request.send)
        finally:
            self._metrics.open -= 1
            self._tell(request)

    def _tell(self, request: Request) -> None:
        seconds, scope = time.perf_counter() - request.began, request.scope
        method = scope["method"] if scope["method"] in METHODS else "other"
        route = getattr(scope.get("route"), "path", "none")
        status = request.status or 499
        self._metrics.answered(method, route, status, seconds)
        if not log.isEnabledFor(logging.INFO):
            return
        fields = {
            "request": request.id,
            "method": method,
            # Only the path, because a query may contain the dashboard's token.
            "path": scope["path"][:200],
            "status": status,
            "ms": round(seconds * 1e3, 3),
            "client": (scope.get("client") or ("",))[0],
            "token": scope.get("state", {}).get("token_id"),
        }
        # The record is made here because `log.info` would search the stack for its caller.
        record = logging.LogRecord(log.name, logging.INFO, __file__, 0, "request", (), None)
        record.fields = fields
        log.handle(record)


class Request:
    """A request in progress: its id, when it began, and the status of its answer."""

    def __init__(self, scope: Any, send: Any) -> None:
        given = next((v for k, v in scope["headers"] if k == b"x-request-id"), b"")
        self.id = given.decode() if _ID.fullmatch(given) else uuid.uuid4().hex
        self.scope, self._send = scope, send
        self.began, self.status = time.perf_counter(), None

    async def send(self, message: Any) -> None:
        """Send a message with the id added."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message["headers"], (b"x-request-id", self.id.encode())]
            message = {**message, "headers": headers}
        await self._send(message)
