"""Shared by the whole command line: its name, its exit statuses, and invalid usage."""

from __future__ import annotations

NAME = "betafield"
FAILED, USAGE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141
DEBUG = "--debug"


class UsageError(ValueError):
    """The command line is invalid."""
