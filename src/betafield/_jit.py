"""The one switch for compiled kernels: how every hot loop of the package is compiled."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile at the first call, release the GIL, and keep the machine code on disk.

    Not numba's `parallel`: its thread layers abort on concurrent calls and after fork.
    Not `fastmath`: it may contract and reorder, and then two indexes would disagree about
    a trial that lies exactly on the border of a window.
    """
    return cast("F", numba.njit(nogil=True, cache=True)(function))


def inlined(function: F) -> F:
    """Compile a part of a kernel that is copied into its callers' loops."""
    return cast("F", numba.njit(nogil=True, cache=True, forceinline=True)(function))
