"""The one switch for compiled kernels: how every hot loop of the package is compiled."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from betafield import _compiling
from betafield._interrupts import held

with held():
    import numba

F = TypeVar("F", bound=Callable[..., object])
_njit: Any = numba.njit  # its types lack some of its options
_general: Any = numba.types.unliteral
_OPTIONS = {"nogil": True, "cache": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def kernel(function: F) -> F:
    """Compile at the first call, release the GIL, and keep the machine code on disk.

    Not numba's `parallel`: its thread layers abort on concurrent calls and after fork.
    Not `fastmath`: it may contract and reorder, and then two indexes would disagree about
    a trial that lies exactly on the border of a window.
    """
    compiled = _njit(**_OPTIONS)(function)
    return cast("F", _whole(_of_any_value(compiled)))


def inlined(function: F) -> F:
    """Mark a part of a kernel that is copied into its callers' loops."""
    compiled = _njit(**_OPTIONS, forceinline=True)(function)
    return cast("F", _whole(_of_any_value(compiled)))


def _of_any_value(compiled: Any) -> Any:
    """Let kernels that spell out an argument, say 0, share the machine code for all integers.

    numba would compile the kernel that they call once per number they spell out.
    """
    if hasattr(compiled, "get_call_template"):
        template = compiled.get_call_template

        def general(args: Any, kws: Any) -> Any:
            named = {name: _general(kind) for name, kind in kws.items()}
            return template(tuple(map(_general, args)), named)

        compiled.get_call_template = general
    return compiled


def _whole(compiled: Any) -> Any:
    """Let interrupts wait while the kernel is compiled or read from disk.

    numba asks for `_compile_for_args` only where it has no machine code for the types of the
    arguments, so calls are as quick as without.
    """
    if hasattr(compiled, "_compile_for_args"):
        compiled._compile_for_args = held()(compiled._compile_for_args)
        compiled._compiler.compile = _told(compiled._compiler.compile)
    return compiled


def _told(compile_it: Callable[..., Any]) -> Callable[..., Any]:
    """Tell that a kernel is compiled. numba does not come here where it finds it on disk."""

    def telling(*args: Any) -> Any:
        _compiling.begun()
        return compile_it(*args)

    return telling
