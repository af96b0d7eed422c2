"""The command line: arguments in, library calls out.

    commands     what each command does
    options      what can be asked for, and how it is spelled
    distortions  how trials were distorted, by numbers and by columns
    layout       how commands and their options are told
    reference    docs/commands.md, made from the program
    reading      tables from files and standard input; which columns are meant
    predicting   points in, columns out, some rows at a time
    writing      tables to files and standard output, never by halves
    describing   what a model has learned, in words
    demo         a demonstration without data
    terminal     what people see: tables, notes, progress

Status 0: done; 1: failed; 2: asked for in a way that cannot be; 130: interrupted. What went wrong
is one sentence on standard error. Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from betafield._extras import needed

NAME = "betafield"
FAILED, USAGE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141
DEBUG = "--debug"


class UsageError(ValueError):
    """Something was asked for in a way that cannot be."""


def __getattr__(name: str) -> Any:
    """Import the app when it is asked for: typer may be missing, and `main` says so."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from betafield.cli.commands import app

    return app


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program, and return its status.

    Parameters
    ----------
    arguments : list of str, default=None
        What follows the name of the program; None: those of this process.

    Examples
    --------
    >>> from betafield.cli import main
    >>> main(["plan", "--error", "0.1", "--features", "1", "--lipschitz", "1"])
    2,077 trials, ...
    0
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    options, _, _ = _parted(given)
    debug = DEBUG in options
    try:
        return _run(given)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _hush()
    except Exception as error:
        if debug:
            raise
        return _tell(error)


def _parted(arguments: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the arguments before `--`, that itself, and those after, which are no options."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    return arguments[:at], arguments[at : at + 1], arguments[at + 1 :]


def _without_debug(arguments: list[str]) -> list[str]:
    options, mark, rest = _parted(arguments)
    return [*(each for each in options if each != DEBUG), *mark, *rest]


def _run(given: list[str]) -> int:
    typer = needed("cli", "typer")
    from betafield.cli.commands import app

    if sys.stdout is None:
        raise OSError("standard output is closed")
    try:
        status = app(args=_without_debug(given), prog_name=NAME, standalone_mode=False, obj=given)
        sys.stdout.flush()
    except typer.Abort as error:
        raise KeyboardInterrupt from error
    except SystemExit as error:  # which is how typer itself leaves a closed pipe, and nothing else
        raise BrokenPipeError from error
    return status if isinstance(status, int) else 0


def _hush() -> int:
    """Leave quietly when nobody reads any more, as in `| head`."""
    # Python flushes standard output once more at its end, and would say that nobody listens.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return PIPE_CLOSED


# Errors ------------------------------------------------------------------------------------

# Arguments of the library that are options here by the same name: a wrong one is wrong usage.
_OPTIONS = ("bandwidth", "lipschitz", "metric", "scale", "degree", "prior", "sharing", "level")
_OPTION = re.compile(rf"^({'|'.join(_OPTIONS)}):")
# Arguments of the library that have other names here.
_RENAMED = {
    "path: ": "",
    "paths: ": "",
    "sample_weight: ": "--weights: ",
    "outcome: ": "--outcome: ",
    "features: ": "--features: ",
    "bounds: ": "--bounds: ",
    "error: ": "--error, squared: ",
    "background: ": "--background: ",
    "d: ": "--features: ",
    "t: ": "--trials: ",
}


def _tell(error: Exception) -> int:
    """Write one sentence about what went wrong, and return the status."""
    from betafield.cli.terminal import printable

    said, status = _sentence(error)
    said = printable(said)
    if sys.stderr is not None:
        sys.stderr.write(f"{NAME}: error: {said}\n")
    return status


def _sentence(error: Exception) -> tuple[str, int]:
    """Return what went wrong in one line, and the status that goes with it."""
    if hasattr(error, "format_message"):  # of typer, whichever its version
        said = " ".join(error.format_message().split()).rstrip(".")
        path = getattr(getattr(error, "ctx", None), "command_path", NAME)
        return f"{said[:1].lower()}{said[1:]}; see {path} --help", USAGE
    said = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        said = ": ".join(str(part) for part in (error.filename, error.strerror) if part)
    for theirs, ours in _RENAMED.items():
        said = ours + said.removeprefix(theirs) if said.startswith(theirs) else said
    if isinstance(error, ValueError) and _OPTION.match(said):
        return f"--{said}", USAGE
    if not isinstance(error, ValueError | TypeError | OSError | ImportError):
        kind = type(error).__name__
        said = f"{kind}{': ' if said else ''}{said}; run it with {DEBUG} to see where"
    return said, USAGE if isinstance(error, UsageError) else FAILED
