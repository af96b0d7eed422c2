"""The one switch for compiled kernels: how every hot loop of the package is compiled."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from betafield._interrupts import held

with held():
    import numba

F = TypeVar("F", bound=Callable[..., object])


def kernel(function: F) -> F:
    """Compile at the first call, release the GIL, and keep the machine code on disk.

    Not numba's `parallel`: its thread layers abort on concurrent calls and after fork.
    Not `fastmath`: it may contract and reorder, and then two indexes would disagree about
    a trial that lies exactly on the border of a window.
    """
    return cast("F", _whole(numba.njit(nogil=True, cache=True)(function)))


def inlined(function: F) -> F:
    """Compile a part of a kernel that is copied into its callers' loops."""
    return cast("F", _whole(numba.njit(nogil=True, cache=True, forceinline=True)(function)))


def _whole(compiled: Any) -> Any:
    """Let interrupts wait while the kernel is compiled or read from disk.

    numba asks for `_compile_for_args` only where it has no machine code for the types of the
    arguments, so calls are as quick as without.
    """
    if hasattr(compiled, "_compile_for_args"):
        compiled._compile_for_args = held()(compiled._compile_for_args)
    return compiled
