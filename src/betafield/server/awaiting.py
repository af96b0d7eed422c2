"""Answers that a thread, or a coroutine of an event loop, waits for.

Waking an event loop takes longer than answering a request, so answers that become known together
wake it once.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any


class Awaited:
    """An answer that a coroutine awaits and another thread provides.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.future = loop, loop.create_future()

    def set_running_or_notify_cancel(self) -> bool:
        """Return whether the coroutine is still waiting."""
        return not self.future.cancelled()

    def give(self, value: Any) -> None:
        """Set the answer, in the loop's own thread, unless nobody is waiting any more."""
        if self.future.done():
            return
        if isinstance(value, BaseException):
            self.future.set_exception(value)
        else:
            self.future.set_result(value)


Answer = Awaited | Future[Any]


def deliver(answers: Iterable[tuple[Answer, Any]]) -> None:
    """Deliver answers; exceptions are raised where they are awaited."""
    by_loop: defaultdict[asyncio.AbstractEventLoop, list[tuple[Awaited, Any]]] = defaultdict(list)
    for answer, value in answers:
        if isinstance(answer, Awaited):
            by_loop[answer.loop].append((answer, value))
        elif isinstance(value, BaseException):
            answer.set_exception(value)
        else:
            answer.set_result(value)
    for loop, some in by_loop.items():
        try:
            loop.call_soon_threadsafe(_give, some)
        except RuntimeError:  # the loop has ended, so nobody is waiting
            continue


def _give(some: list[tuple[Awaited, Any]]) -> None:
    for answer, value in some:
        answer.give(value)
