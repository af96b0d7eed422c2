"""The help of commands and their options: plain text, in groups.

Help is formatted here instead of by rich, whose import alone would take too long; so it is also the
same in every release of typer.
"""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from betafield.cli.usage import DEBUG

Entries = list[tuple[str, str]]

GENERAL = "General"
_ALWAYS = [
    ("--help", "Show this and exit."),
    (DEBUG, "Show where an error came from, with a traceback."),
]


class Command(TyperCommand):
    """A command whose help shows its options in groups."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text."""
        formatter.write_usage(ctx.command_path, usage(self))
        _write_paragraphs(formatter, self.help or "")
        for title, entries in groups(self).items():
            _write_entries(formatter, title, entries)


class Group(TyperGroup):
    """The program itself, whose help lists its commands in the order of use."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Show the help of a command at once: typer would first load what checks options."""
        command = self.commands.get(args[0]) if args else None
        options = args[1 : args.index("--")] if "--" in args else args[1:]
        if command is not None and any(name in options for name in ctx.help_option_names):
            inner: Any = type(ctx)(command, info_name=args[0], parent=ctx)
            typer.echo(command.get_help(inner))
            ctx.exit()
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help text."""
        formatter.write_usage(ctx.command_path, "COMMAND [OPTIONS]")
        _write_paragraphs(formatter, self.help or "")
        _write_entries(formatter, "Commands", summaries(self))
        _write_entries(formatter, GENERAL, groups(self)[GENERAL])


def usage(command: Any) -> str:
    """Return the arguments of a command, in one line."""
    names = [
        param.metavar if param.required else f"[{param.metavar}]"
        for param in command.params
        if param.param_type_name == "argument"
    ]
    return " ".join([*names, "[OPTIONS]"])


def groups(command: Any) -> dict[str, Entries]:
    """Return the arguments and options of a command with their meanings, by group."""
    found: dict[str, Entries] = {}
    for param in command.params:
        if param.name != "help":
            found.setdefault(param.rich_help_panel or GENERAL, []).append(_entry(param))
    found[GENERAL] = [*found.pop(GENERAL, []), *_ALWAYS]
    return found


def summaries(group: Any) -> Entries:
    """Return the commands, each with the first sentence of its help."""
    return [(name, first_sentence(each.help)) for name, each in group.commands.items()]


def first_sentence(text: str) -> str:
    """Return the first paragraph of a help text in one line."""
    return " ".join(text.split("\n\n", maxsplit=1)[0].split())


def _entry(param: Any) -> tuple[str, str]:
    if param.param_type_name == "argument":
        return param.metavar, param.help or ""
    names = ", ".join(param.opts)
    name = names if param.is_flag else f"{names} {param.metavar}"
    standard = param.default
    is_told = standard is not None and standard is not False and standard not in ([], "")
    spelled = f"{standard:g}" if isinstance(standard, float) else standard
    return name, f"{param.help}{f' [default: {spelled}]' if is_told else ''}"


def _write_paragraphs(formatter: Any, text: str) -> None:
    for paragraph in text.strip().split("\n\n"):
        formatter.write_paragraph()
        if paragraph.startswith("    "):  # examples are not wrapped
            formatter.write("\n".join(line[2:] for line in paragraph.splitlines()) + "\n")
        else:
            formatter.write_text(" ".join(paragraph.split()))


def _write_entries(formatter: Any, title: str, entries: Entries) -> None:
    with formatter.section(title):
        formatter.write_dl(entries, col_max=24)
