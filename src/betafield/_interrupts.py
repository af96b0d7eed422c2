"""Interrupts that wait: for work that could not be done again if it were cut short."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def held() -> Iterator[None]:
    """Let Ctrl-C wait until the block is through, and then do what it would have done.

    Compilers and packages that are being imported keep books of what they have begun. An exception
    between two of their lines leaves those books wrong for as long as the process lives. Python
    runs handlers of signals in its main thread alone, so blocks in other threads are as they are.
    So they are where nothing in Python would be called: an interrupt that is ignored, or that ends
    the process.

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
