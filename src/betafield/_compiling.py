"""Whom to tell that kernels are compiled: nobody, unless a program asks to be told."""

from __future__ import annotations

from collections.abc import Callable

_listening: list[Callable[[], None]] = []


def once(tell: Callable[[], None]) -> None:
    """Call this when the first kernel is compiled, not read from disk; and then never again.

    Examples
    --------
    >>> once(lambda: print("compiling"))
    >>> begun()
    compiling
    >>> begun()
    """
    _listening[:] = [tell]


def begun() -> None:
    """Tell whoever listens that a kernel is being compiled."""
    while _listening:
        _listening.pop()()
