"""A live study, which serialises concurrent requests.

Requests are queued. One thread at a time works for a study: it takes all waiting requests, makes
the changes in memory, makes them durable in one transaction, and only then answers. Other studies
have other threads, so that a slow one does not hold up the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Any

from betafield.server.awaiting import Answer, Awaited, deliver
from betafield.server.definitions import Definition
from betafield.server.problems import Problem
from betafield.server.state import State
from betafield.server.storage import Store, Turn

Change = Callable[[State], Any]
# Most requests in one transaction.
MOST = 256
# Most requests that may wait.
LONGEST = 4096
# Seconds after the last ask or tell for which a participant counts as present.
CONNECTED = 60.0


class Study:
    """A study that several people may change at once.

    Parameters
    ----------
    store : Store
    number : int
        The number of its row.
    definition : Definition
    threads : Executor
        The threads that do the work.
    """

    def __init__(
        self, store: Store, number: int, definition: Definition, threads: Executor
    ) -> None:
        self.number, self.definition = number, definition
        self._store, self._threads = store, threads
        self._state: State | None = None
        self._waiting: deque[tuple[Change, Answer]] = deque()
        self._guard = threading.Lock()
        self._is_working = False
        self._failed = False
        self._seen: dict[str, float] = {}
        self._status: tuple[int, dict[str, Any]] | None = None
        self._telling = threading.Lock()

    @property
    def name(self) -> str:
        """The name of the study."""
        return self.definition.name

    @property
    def head(self) -> int:
        """The number of the last event that this process knows of."""
        return -1 if self._state is None else self._state.head

    def submit(self, change: Change, participant: str | None = None) -> Future[Any]:
        """Return a future of the change's answer, available once it is durable."""
        answer: Future[Any] = Future()
        self._queue(change, answer, participant)
        return answer

    async def changed(self, change: Change, participant: str | None = None) -> Any:
        """Make a change, and return its answer once it is durable."""
        answer = Awaited(asyncio.get_running_loop())
        self._queue(change, answer, participant)
        return await answer.future

    def _queue(self, change: Change, answer: Answer, participant: str | None) -> None:
        with self._guard:
            if len(self._waiting) >= LONGEST:
                raise Problem(
                    503, "study: too many requests are waiting for it", {"Retry-After": "1"}
                )
            if participant is not None:
                self._seen[participant] = time.monotonic()
            self._waiting.append((change, answer))
            if self._is_working:
                return
            self._is_working = True
        self._threads.submit(self._work)

    def has_late(self, now: float) -> bool:
        """Return whether this process knows of a trial that has been pending for too long."""
        state = self._state
        if state is None:
            return False
        oldest = next(iter(list(state.asked_at.values())[:1]), now)
        return oldest < now - self.definition.pending_seconds

    def connected(self) -> list[str]:
        """Return the participants who have asked or told within the last minute."""
        limit = time.monotonic() - CONNECTED
        with self._guard:
            self._seen = {name: at for name, at in self._seen.items() if at >= limit}
            return sorted(self._seen)

    def status(self) -> dict[str, Any]:
        """Return the status of the experiment, computed once after each change."""
        with self._telling:
            head, experiment = self.submit(lambda s: (s.head, s.replay.learned())).result()
            if self._status is None or self._status[0] != head:
                self._status = head, experiment.status()
            state = self._state
            stopped = state is not None and state.stopped
            return {**self._status[1], "stopped": stopped, "head": head}

    def known_status(self) -> dict[str, Any] | None:
        """Return the last status computed, if there is one."""
        return None if self._status is None else self._status[1]

    # Working.

    def _work(self) -> None:
        while some := self._taken():
            # Requests cancelled so far are skipped; from here on they cannot be cancelled, so that
            # every answer can be delivered.
            begun = [each for each in some if each[1].set_running_or_notify_cancel()]
            if begun:
                self._answer(begun)
            self._prepare()

    def _taken(self) -> list[tuple[Change, Answer]]:
        """Return up to MOST waiting requests; if there are none, the work is done."""
        with self._guard:
            some = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
            self._is_working = bool(some)
            return some

    def _prepare(self) -> None:
        """Prepare the next ask while nobody is waiting."""
        with self._guard:
            is_busy = bool(self._waiting)
        if self._state is not None and not is_busy and not self._state.stopped:
            try:
                self._state.replay.prepare()
            except Exception:  # the next ask reports it
                return

    def _answer(self, some: list[tuple[Change, Answer]]) -> None:
        try:
            with self._store.turn(self.number) as turn:
                answers = self._changed(turn, [change for change, _ in some])
        except BaseException as error:
            # The state in memory may not be durable, so it is rebuilt from the rows.
            self._state = None
            self._failed = isinstance(error, Problem)
            answers = [error] * len(some)
        else:
            self._failed = False
        deliver([(answer, value) for (_, answer), value in zip(some, answers, strict=True)])

    def _changed(self, turn: Turn, changes: list[Change]) -> list[Any]:
        if self._failed:
            self._store.probe()
        state = self._caught_up(turn)
        answers = [_tried(change, state) for change in changes]
        writes = state.taken()
        if writes:
            turn.commit(state.head, writes)
        return answers

    def _caught_up(self, turn: Turn) -> State:
        """Return the state, updated with the changes of other processes."""
        found = turn.head()
        state = self._state
        if state is None:
            state = State.begun(self.number, self.definition)
            row = self._store.study(self.name)
            found = found or (int(row.head), bool(row.stopped))
        if found is not None and found[0] > state.head:
            with _uncollected():
                state.follow(turn.rows(state.head), turn.keys(state.head))
            state.head = found[0]
        if found is not None:
            state.stopped = found[1]
        self._state = state
        return state


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Pause garbage collection, which finds nothing in many rows and takes longer than they do."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _tried(change: Change, state: State) -> Any:
    """Return the answer of a change, or the problem that it raises."""
    try:
        return change(state)
    except Problem as problem:
        return problem
