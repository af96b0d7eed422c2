"""Declarations of arguments and options: name, meaning, and place in the help."""

from __future__ import annotations

from typing import Any

import typer


def argument(panel: str, metavar: str, meaning: str) -> Any:
    """Return a positional argument."""
    return typer.Argument(metavar=metavar, help=meaning, rich_help_panel=panel, show_default=False)


def option(panel: str, metavar: str, meaning: str, *names: str) -> Any:
    """Return an option with a value."""
    return typer.Option(*names, metavar=metavar, help=meaning, rich_help_panel=panel)


def flag(panel: str, name: str, meaning: str) -> Any:
    """Return an option without a value."""
    return typer.Option(name, help=meaning, rich_help_panel=panel)
