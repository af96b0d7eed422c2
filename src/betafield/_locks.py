"""One lock per model: writers queue up, readers never wait."""

from __future__ import annotations

import os
import threading
from typing import Any
from weakref import WeakKeyDictionary

_LOCKS: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()
_GUARD = [threading.Lock()]  # one; in a list, to be another in a forked child


def writing(model: Any) -> threading.RLock:
    """Return the lock that whoever changes a model holds, from reading it to replacing it.

    Locks are kept beside the models, because a model is copied, pickled and cloned, and a lock is
    none of what it has learned.

    Examples
    --------
    >>> class Model: ...
    >>> model = Model()
    >>> writing(model) is writing(model), writing(model) is writing(Model())
    (True, False)
    """
    with _GUARD[0]:
        return _LOCKS.setdefault(model, threading.RLock())


def _forget() -> None:
    """Begin anew in a forked child, where the threads that held locks are no more."""
    _GUARD[:] = [threading.Lock()]
    _LOCKS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
