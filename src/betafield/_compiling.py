"""Notification when kernels are compiled, if a program asks for it."""

from __future__ import annotations

from collections.abc import Callable

_listening: list[Callable[[], None]] = []


def once(tell: Callable[[], None]) -> None:
    """Call `tell` when the first kernel is compiled rather than read from disk, and only then.

    Examples
    --------
    >>> once(lambda: print("compiling"))
    >>> begun()
    compiling
    >>> begun()
    """
    _listening[:] = [tell]


def begun() -> None:
    """Notify the listener that a kernel is being compiled."""
    while _listening:
        _listening.pop()()
