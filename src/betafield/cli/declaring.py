"""How arguments and options are declared: name, meaning, and where help shows them."""

from __future__ import annotations

from typing import Any

import typer


def argument(panel: str, metavar: str, meaning: str) -> Any:
    """Return an argument, which stands without a name."""
    return typer.Argument(metavar=metavar, help=meaning, rich_help_panel=panel, show_default=False)


def option(panel: str, metavar: str, meaning: str, *names: str) -> Any:
    """Return an option that has a value."""
    return typer.Option(*names, metavar=metavar, help=meaning, rich_help_panel=panel)


def flag(panel: str, name: str, meaning: str) -> Any:
    """Return an option that is there or not."""
    return typer.Option(name, help=meaning, rich_help_panel=panel)
