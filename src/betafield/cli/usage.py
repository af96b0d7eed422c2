"""What every room of the command line knows: its name, its statuses, what wrong usage is."""

from __future__ import annotations

NAME = "betafield"
FAILED, USAGE, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141
DEBUG = "--debug"


class UsageError(ValueError):
    """Something was asked for in a way that cannot be."""
