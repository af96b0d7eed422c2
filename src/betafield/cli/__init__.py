"""The command line: arguments in, library calls out.

    program      runs a command, and returns its status
    errors       what went wrong, in one sentence
    usage        what every room knows: names, statuses, what wrong usage is
    commands     what each command does
    options      what can be asked for, and how it is spelled
    distortions  how trials were distorted, by numbers and by columns
    layout       how commands and their options are told
    reference    docs/commands.md, made from the program
    reading      tables from files and standard input; which columns are meant
    predicting   points in, columns out, some rows at a time
    writing      tables to files and standard output, never by halves
    describing   what a model has learned, in words
    serving      live experiments: serve, tokens, backup
    demo         a demonstration without data
    terminal     what people see: tables, notes, progress

Exit status: 0 success; 1 failure; 2 invalid usage; 130 interrupted. An error is one sentence on
standard error. Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from betafield.cli.program import main
from betafield.cli.usage import UsageError

if TYPE_CHECKING:
    from betafield.cli.commands import app

__all__ = ["UsageError", "app", "main"]


def __getattr__(name: str) -> Any:
    """Import the app when it is asked for: typer may be missing, and `main` says so."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from betafield.cli.commands import app

    return app
