"""Deferred interrupts, for work that could not be repeated if it were cut short."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def held() -> Iterator[None]:
    """Defer Ctrl-C until the block has finished, and then handle it as usual.

    Compilers and imports keep track of what they have begun. An exception in the middle leaves that
    state inconsistent for the life of the process. Python runs signal handlers in its main thread
    only, so blocks in other threads are left alone. So are all blocks if there is no Python
    handler, that is if interrupts are ignored or end the process.

    Examples
    --------
    >>> import signal
    >>> before = signal.signal(signal.SIGINT, signal.default_int_handler)
    >>> try:
    ...     with held():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("through")
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    through
    interrupted
    >>> _ = signal.signal(signal.SIGINT, before)
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[Any] = []
    signal.signal(signal.SIGINT, lambda *told: arrived.append(told))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        for told in arrived:
            handler(*told)
