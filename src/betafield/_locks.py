"""One lock per model: writers queue up, readers never wait."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

__all__ = ["cached", "writing"]

if TYPE_CHECKING:
    from functools import cached_property as cached
else:

    class cached:  # noqa: N801 (it is used as cached_property is)
        """A property that is computed once per instance.

        In Python 3.11, `functools.cached_property` has one lock for all instances of a class, so
        that queries of one model would wait for those of another.

        Examples
        --------
        >>> class Circle:
        ...     @cached
        ...     def area(self):
        ...         return [3.14]
        >>> circle = Circle()
        >>> circle.area is circle.area, Circle().area is circle.area
        (True, False)
        """

        def __init__(self, compute):
            self._compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._compute(instance)
            return value


def remember(instance: Any, name: str, value: Any) -> None:
    """Give a cached property the value that it would compute, if that is known already.

    Examples
    --------
    >>> class Square:
    ...     @cached
    ...     def area(self):
    ...         raise NotImplementedError
    >>> square = Square()
    >>> remember(square, "area", 9.0)
    >>> square.area
    9.0
    """
    instance.__dict__[name] = value


_LOCKS: WeakKeyDictionary[Any, threading.RLock] = WeakKeyDictionary()
_GUARD = [threading.Lock()]  # one lock, in a list so that a forked child can replace it


def writing(model: Any) -> threading.RLock:
    """Return the lock to hold while changing a model, from reading it to replacing it.

    Locks are kept apart from the models, because models are copied, pickled and cloned, and a lock
    is not part of what they have learned.

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
    """Start afresh in a forked child, where the threads that held locks no longer exist."""
    _GUARD[:] = [threading.Lock()]
    _LOCKS.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
