"""How all hot loops of the package are compiled."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from betafield import _compiling
from betafield._interrupts import held

with held():
    import numba

F = TypeVar("F", bound=Callable[..., object])
_njit: Any = numba.njit  # its type hints lack some of its options
_general: Any = numba.types.unliteral
_OPTIONS = {"nogil": True, "cache": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def kernel(function: F) -> F:
    """Compile at the first call, release the GIL, and keep the machine code on disk.

    numba's `parallel` is not used: its thread layers abort on concurrent calls and after fork. Nor
    is `fastmath`: it may contract and reorder operations, and then two indexes could disagree about
    a trial exactly on the border of a window.
    """
    compiled = _njit(**_OPTIONS)(function)
    return cast("F", _whole(_of_any_value(compiled)))


def inlined(function: F) -> F:
    """Compile a function that is inlined into the loops of its callers."""
    compiled = _njit(**_OPTIONS, forceinline=True)(function)
    return cast("F", _whole(_of_any_value(compiled)))


def _of_any_value(compiled: Any) -> Any:
    """Let calls from kernels with a literal argument, such as 0, share the code for all integers.

    Otherwise numba would compile the called kernel once per literal.
    """
    if hasattr(compiled, "get_call_template"):
        template = compiled.get_call_template

        def general(args: Any, kws: Any) -> Any:
            named = {name: _general(kind) for name, kind in kws.items()}
            return template(tuple(map(_general, args)), named)

        compiled.get_call_template = general
    return compiled


def _whole(compiled: Any) -> Any:
    """Defer interrupts while the kernel is compiled or read from disk.

    numba calls `_compile_for_args` only if it has no machine code for the types of the arguments,
    so other calls are not slowed down.
    """
    if hasattr(compiled, "_compile_for_args"):
        compiled._compile_for_args = held()(compiled._compile_for_args)
        compiled._compiler.compile = _told(compiled._compiler.compile)
    return compiled


def _told(compile_it: Callable[..., Any]) -> Callable[..., Any]:
    """Notify when a kernel is compiled; numba does not call this if it finds the code on disk."""

    def telling(*args: Any) -> Any:
        _compiling.begun()
        return compile_it(*args)

    return telling
