"""Writes that arrive together are committed together: one fsync for all of them.

One thread writes to an SQLite file. While it waits for the disk, other writes queue up, and it then
puts all of them into the next transaction. The caller of a write waits until that transaction is
durable.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection

Write = Callable[[Connection], None]
# Most writes in one transaction.
MOST = 512


class Committer:
    """A thread that commits writes in order of arrival.

    Parameters
    ----------
    transaction : callable
        Opens a connection in a transaction: a context manager that commits at its end.
    """

    def __init__(self, transaction: Callable[[], Any]) -> None:
        self._transaction = transaction
        self._waiting: queue.SimpleQueue[tuple[Write, Future[None]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="committer", daemon=True)
        self._thread.start()

    def commit(self, write: Write) -> None:
        """Return once the write is durable; raise if it fails."""
        done: Future[None] = Future()
        self._waiting.put((write, done))
        done.result()

    def close(self) -> None:
        """Commit all queued writes, and end the thread."""
        self._waiting.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._waiting.get()) is not None:
            some, is_last = [first], False
            while len(some) < MOST and not self._waiting.empty():
                each = self._waiting.get()
                if each is None:
                    is_last = True
                    break
                some.append(each)
            self._commit(some)
            if is_last:
                return

    def _commit(self, some: list[tuple[Write, Future[None]]]) -> None:
        try:
            with self._transaction() as connection:
                for write, _ in some:
                    write(connection)
        except BaseException as error:
            self._apart(some, error)
        else:
            for _, done in some:
                done.set_result(None)

    def _apart(self, some: list[tuple[Write, Future[None]]], error: BaseException) -> None:
        """Fail a single write, or commit several one by one, so that none fails for another."""
        if len(some) == 1:
            some[0][1].set_exception(error)
            return
        for each in some:
            self._commit([each])
