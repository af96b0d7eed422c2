"""Output for people: tables, notes, progress.

On a terminal, rich draws tables; elsewhere they are plain text. Progress is shown on standard error
if that is a terminal, and only for work that takes longer than a moment.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

from betafield import _compiling
from betafield._extras import needed

# Seconds before progress is shown.
PATIENCE = 2.0

Advance = Callable[[float], None]


def rich() -> Any:
    """Return rich with the modules used here, or say how to install it."""
    return needed("cli", "rich", "rich.console", "rich.progress", "rich.table")


def printable(text: str) -> str:
    r"""Return a text without characters that could control a terminal.

    Examples
    --------
    >>> printable("dose\x1b[2J")
    'dose\\x1b[2J'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def say(text: str, file: TextIO | None = None) -> None:
    """Write a line for people."""
    (file or sys.stdout).write(text + "\n")


def note(text: str) -> None:
    """Write a line to standard error."""
    say(f"betafield: {printable(text)}", sys.stderr)


def tell_dropped(dropped: Any) -> None:
    """Say how many rows were dropped, if any."""
    if dropped.number:
        note(str(dropped))


def announce_compiling(is_quiet: bool = False) -> None:
    """Say when kernels are being compiled, because that takes longer than a moment."""
    if not is_quiet:
        _compiling.once(lambda: note("compiling kernels, once on this machine: a few seconds"))


def as_options(said: str) -> str:
    """Return a warning of the library in terms of options.

    Examples
    --------
    >>> as_options("use fit_counts(…, overdispersion='auto') or fit(…, groups=…)")
    'use --overdispersion or --groups'
    """
    calls = {
        "fit_counts(…, overdispersion='auto')": "--overdispersion",
        "fit(…, groups=…)": "--groups",
    }
    for call, option in calls.items():
        said = said.replace(call, option)
    return said


@contextlib.contextmanager
def cautions(is_quiet: bool) -> Iterator[None]:
    """Show warnings as notes, one line each, without the code that raised them."""

    def told(message: Warning | str, *_: Any, **__: Any) -> None:
        if not is_quiet:
            note(as_options(" ".join(str(message).split()).removeprefix("X: ")))

    with warnings.catch_warnings():
        warnings.showwarning = told
        yield


def facts(rows: Sequence[tuple[str, str]], file: TextIO | None = None) -> None:
    """Write facts, one per line: the name, then the value."""
    table([("", False), ("", False)], rows, file)


def table(
    heads: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]], file: TextIO | None = None
) -> None:
    """Write a table; `heads` has the name of each column and whether it holds numbers."""
    stream = file or sys.stdout
    clean = [[printable(cell) for cell in row] for row in rows]
    if stream.isatty():
        _draw(heads, clean, stream)
    else:
        _write(heads, clean, stream)


def _draw(heads: Sequence[tuple[str, bool]], rows: list[list[str]], stream: TextIO) -> None:
    drawn = rich().table.Table(show_header=any(name for name, _ in heads), box=rich().box.SIMPLE)
    for name, is_number in heads:
        drawn.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    rich().console.Console(file=stream, markup=False, highlight=False).print(drawn)


def _write(heads: Sequence[tuple[str, bool]], rows: list[list[str]], stream: TextIO) -> None:
    named = any(name for name, _ in heads)
    lines = [[name for name, _ in heads], *rows] if named else rows
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    for line in lines:
        cells = [
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, (_, is_number) in zip(line, widths, heads, strict=True)
        ]
        stream.write("  ".join(cells).rstrip() + "\n")


# Progress ----------------------------------------------------------------------------------


def is_watched(out: str | None = None) -> bool:
    """Return whether to show progress: not among rows that are written to a terminal."""
    return sys.stderr.isatty() and not (out == "-" and sys.stdout.isatty())


@contextlib.contextmanager
def progress(
    what: str, total: float | None, watched: bool, patience: float = PATIENCE
) -> Iterator[Advance]:
    """Show progress and the time left, once it takes longer than `patience` seconds.

    Without a total, a moving bar and the elapsed time are shown.
    """
    if not watched:
        yield lambda _: None
        return
    bar = _bar(total is not None)
    task = bar.add_task(what, total=total)
    timer = threading.Timer(patience, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda amount: bar.advance(task, amount)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def _bar(measured: bool) -> Any:
    shown = rich().progress
    time = shown.TimeRemainingColumn() if measured else shown.TimeElapsedColumn()
    share = [shown.TaskProgressColumn()] if measured else []
    return shown.Progress(
        shown.TextColumn("{task.description}"),
        shown.BarColumn(),
        *share,
        time,
        console=rich().console.Console(stderr=True),
        transient=True,
    )
