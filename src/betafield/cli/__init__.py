"""The command line: arguments in, library calls out.

    program      runs a command, and returns its exit status
    errors       error messages in one sentence
    usage        shared names, exit statuses, and the error of invalid usage
    commands     the commands
    options      the declarations of arguments and options
    distortions  contexts, from numbers and columns
    layout       the help texts of commands and their options
    reference    docs/commands.md, made from the program
    reading      tables from files and standard input; which columns are used
    predicting   points in, columns out, in batches
    writing      tables to files and standard output, complete or not at all
    describing   a model in words
    serving      live experiments: serve, tokens, backup
    demo         a demonstration without data
    terminal     tables, notes and progress for people

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
    """Import the app on first use: typer may be missing, and `main` reports that."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from betafield.cli.commands import app

    return app
