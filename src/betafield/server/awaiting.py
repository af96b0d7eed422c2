"""Answers that somebody waits for: a thread, or a coroutine of an event loop.

To wake a loop takes longer than to answer one request. Answers that become known together wake it
once.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any


class Awaited:
    """An answer for which a coroutine waits; other threads give it.

    Parameters
    ----------
    loop : asyncio.AbstractEventLoop
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop, self.future = loop, loop.create_future()

    def set_running_or_notify_cancel(self) -> bool:
        """Return whether somebody still waits."""
        return not self.future.cancelled()

    def give(self, value: Any) -> None:
        """Give the answer, in the loop's own thread, unless nobody waits any more."""
        if self.future.done():
            return
        if isinstance(value, BaseException):
            self.future.set_exception(value)
        else:
            self.future.set_result(value)


Answer = Awaited | Future[Any]


def deliver(answers: Iterable[tuple[Answer, Any]]) -> None:
    """Give answers, of which exceptions are raised where they are waited for."""
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
        except RuntimeError:  # the loop has ended, and nobody waits
            continue


def _give(some: list[tuple[Awaited, Any]]) -> None:
    for answer, value in some:
        answer.give(value)
