"""docs/commands.md, made from the program: python -m betafield.cli.reference > docs/commands.md.

The page does not depend on the release of typer.
"""

from __future__ import annotations

import html
import sys
from typing import Any

import betafield.cli.layout as layout
from betafield.cli.usage import FAILED, INTERRUPTED, NAME, USAGE

START = f"""# Commands

This page repeats `{NAME} COMMAND --help`; `python -m betafield.cli.reference` generates it.
[From the command line](command_line.md) is an introduction. `pip install '.[cli,files,report]'` in
a checkout installs what the commands need.

| exit status | meaning |
|---|---|
| 0 | success |
| {FAILED} | failure: one sentence on standard error says why |
| {USAGE} | invalid usage |
| {INTERRUPTED} | interrupted from the keyboard |

No file is ever left half-written: a command that fails leaves the old file, or none.
"""


def page() -> str:
    """Return docs/commands.md.

    Examples
    --------
    >>> page().splitlines()[0]
    '# Commands'
    """
    from typer.main import get_command

    from betafield.cli.commands import app

    program: Any = get_command(app)
    listed = [f"| [{name}](#{NAME}-{name}) | {told} |" for name, told in layout.summaries(program)]
    table = "\n".join(["| command | does |", "|---|---|", *listed])
    sections = [_section(name, command) for name, command in program.commands.items()]
    return "\n".join([START, table, "", *sections]).rstrip() + "\n"


def _section(name: str, command: Any) -> str:
    parts = [f"## {NAME} {name}", _block(f"{NAME} {name} {layout.usage(command)}")]
    parts += [_paragraph(each) for each in command.help.strip().split("\n\n")]
    for title, entries in layout.groups(command).items():
        if title != layout.GENERAL:
            rows = [f"| `{said}` | {_escaped(told)} |" for said, told in entries]
            parts.append("\n".join([f"| {title} | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _paragraph(text: str) -> str:
    if text.startswith("    "):
        return _block("\n".join(line[4:] for line in text.splitlines()))
    return _escaped(text)


def _block(text: str) -> str:
    return f"```text\n{text}\n```"


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
