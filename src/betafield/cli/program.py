"""The program: runs a command, and returns its exit status whatever happens."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from betafield._extras import needed
from betafield.cli.errors import tell
from betafield.cli.terminal import announce_compiling, cautions
from betafield.cli.usage import DEBUG, INTERRUPTED, NAME, PIPE_CLOSED


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program, and return its exit status.

    Parameters
    ----------
    arguments : list of str, default=None
        The arguments after the program's name. None: those of this process.

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
    announce_compiling("--quiet" in options)
    try:
        with cautions("--quiet" in options):
            return _run(given)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _hush()
    except Exception as error:
        _discard()
        if debug:
            raise
        return tell(error)


def _parted(arguments: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Return the arguments before `--`, the `--`, and those after it, which are not options."""
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
    except SystemExit as error:  # typer raises this for a closed pipe, and for nothing else
        raise BrokenPipeError from error
    return status if isinstance(status, int) else 0


def _hush() -> int:
    """Exit quietly if the reader has gone, as in `| head`."""
    _write_to_nowhere()
    return PIPE_CLOSED


def _discard() -> None:
    """Drop output that cannot be written, as on a full disk."""
    if sys.stdout is None or sys.stdout.closed:
        return
    try:
        sys.stdout.flush()
    except OSError:
        _write_to_nowhere()


def _write_to_nowhere() -> None:
    # Python flushes standard output again at exit, and would complain that it still cannot.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
