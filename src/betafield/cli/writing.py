"""Tables to files and standard output, complete or not at all: written, then renamed."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from betafield.cli.usage import UsageError

FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".json": "json"}

STANDARD = "-"

Columns = Mapping[str, Any]


# Targets -----------------------------------------------------------------------------------


def require_free(out: str, force: bool, inputs: Iterable[str] = ()) -> None:
    """Raise if a file cannot be written, before anything is read or computed for it.

    An input is never replaced, even with `force`, because its data would be lost.
    """
    for name in inputs:
        if _is_same(name, out):
            raise UsageError(f"--out: {out} is an input, {_called(name)}; name another file")
    if is_stream(out):
        return
    path = Path(out)
    if path.is_dir():
        raise OSError(f"--out: {out} is a folder; name a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"--out: there is no folder {path.parent}")
    if path.exists() and not force:
        raise FileExistsError(f"--out: {out} already exists; --force replaces it")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"--out: the folder {path.parent} cannot be written to")


def _is_same(path: str, out: str) -> bool:
    """Return whether two names refer to one file, despite links, folders or letter case."""
    read, written = _status(path, sys.stdin), _status(out, sys.stdout)
    if read is None or written is None:
        return False
    return stat.S_ISREG(written.st_mode) and os.path.samestat(read, written)


def _status(path: str, standard: Any) -> os.stat_result | None:
    """Return the status of a file or a standard stream; None if there is none."""
    try:
        if path == STANDARD:
            return os.fstat(standard.fileno())
        return os.stat(os.path.expanduser(path))
    except (OSError, ValueError, AttributeError):  # closed, or replaced by something not a file
        return None


def _called(path: str) -> str:
    return "standard input" if path == STANDARD else path


def is_stream(out: str) -> bool:
    """Return whether this is standard output, a pipe or a device, which cannot be replaced."""
    if out in (STANDARD, "/dev/stdout"):
        return True
    return os.path.exists(out) and not os.path.isfile(out) and not os.path.isdir(out)


@contextlib.contextmanager
def opened(out: str) -> Iterator[IO[bytes]]:
    """Give a stream, or a file that is put in place once all is written."""
    from betafield import persistence

    if out in (STANDARD, "/dev/stdout"):
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    elif is_stream(out):
        with open(out, "wb") as stream:
            yield stream
    else:
        with persistence.replacing(out) as file:
            yield file


def write_whole(write: Callable[[str], object], out: str, suffix: str) -> None:
    """Write a format that needs a path, to a file or to a stream."""
    if not is_stream(out):
        write(out)
        return
    _require_no_terminal(out, f"a {suffix} file")
    with tempfile.TemporaryDirectory(prefix="betafield-") as folder:
        path = os.path.join(folder, f"stdout{suffix}")
        write(path)
        with open(path, "rb") as file, opened(out) as stream:
            shutil.copyfileobj(file, stream)


def _require_no_terminal(out: str, what: str) -> None:
    if is_stream(out) and sys.stdout.isatty():
        raise UsageError(f"--out: {what} cannot be shown on a terminal; name a file or use a pipe")


# Tables ------------------------------------------------------------------------------------


def form(out: str, named: str | None) -> str:
    """Return the format that was requested, or that the file's ending implies."""
    if named is not None:
        if named not in FORMATS.values():
            raise UsageError(f"--format: found {named!r}; csv, parquet or json is needed")
        return named
    if is_stream(out):
        return "csv"
    suffix = Path(out).suffix.lower()
    if suffix not in FORMATS:
        raise UsageError(
            f"--out: found {out!r}; it must end in {', '.join(FORMATS)}, or add --format"
        )
    return FORMATS[suffix]


def write_tables(tables: Iterator[Columns], out: str, name: str) -> int:
    """Write tables with the same columns one after the other, and return the number of rows."""
    if name == "parquet":
        _require_no_terminal(out, "a Parquet file")
    first = next(tables)  # errors in the first rows come before a file is made
    rows = len(next(iter(first.values())))
    with opened(out) as file, WRITERS[name](file, list(first)) as writer:
        writer.write(first)
        for table in tables:
            writer.write(table)
            rows += len(next(iter(table.values())))
    return rows


# Spreadsheets take a cell that begins like this for a formula, and may run it.
FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")


def harmless(name: str) -> str:
    """Return a name for CSV: one that could be a formula gets a quote in front.

    No two names become equal, and removing one quote restores the name.

    Examples
    --------
    >>> harmless("=HYPERLINK(1)"), harmless("'=x"), harmless("dose")
    ("'=HYPERLINK(1)", "''=x", 'dose')
    """
    return f"'{name}" if FORMULA.match(name) else name


def _values(column: Any) -> list[Any]:
    """Return the values of a column; narrow floats with the fewest digits that identify them.

    Examples
    --------
    >>> import numpy as np
    >>> _values(np.array([15.906], np.float32)), _values(np.array([15.906]))
    ([15.906], [15.906])
    """
    is_narrow = column.dtype.kind == "f" and column.dtype.itemsize < 8
    return [float(str(value)) for value in column] if is_narrow else column.tolist()


class _CSV:
    """Comma separated values in UTF-8, with numbers in full and no name that is a formula."""

    def __init__(self, file: IO[bytes], names: list[str]) -> None:
        self.file, self.names = file, names

    def __enter__(self) -> _CSV:
        # If lines end in \n, Python 3.11 and 3.12 leave \r unquoted.
        is_odd = any("\r" in name for name in self.names)
        self._put([map(harmless, self.names)], csv.QUOTE_ALL if is_odd else csv.QUOTE_MINIMAL)
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing, because all is written."""

    def write(self, table: Columns) -> None:
        """Write some rows."""
        self._put(zip(*(_values(column) for column in table.values()), strict=True))

    def _put(self, rows: Any, quoting: Any = csv.QUOTE_MINIMAL) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n", quoting=quoting).writerows(rows)
        self.file.write(text.getvalue().encode())


class _JSON:
    """A list with one object per row, each on its own line."""

    def __init__(self, file: IO[bytes], names: list[str]) -> None:
        self.file, self.names, self.between = file, names, "[\n"

    def __enter__(self) -> _JSON:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        """Close the list, unless there was an error."""
        if kind is None:
            self.file.write(("[]\n" if self.between == "[\n" else "\n]\n").encode())

    def write(self, table: Columns) -> None:
        """Write some rows."""
        for row in zip(*(_values(column) for column in table.values()), strict=True):
            record = dict(zip(self.names, row, strict=True))
            line = json.dumps(record, ensure_ascii=False, allow_nan=False)
            self.file.write(f"{self.between}{line}".encode())
            self.between = ",\n"


class _Parquet:
    """Parquet, with one row group per table."""

    def __init__(self, file: IO[bytes], names: list[str]) -> None:
        self.file, self.names = file, names
        self.writer: Any = None

    def __enter__(self) -> _Parquet:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        """Write the footer, unless there was an error: without it the file is invalid."""
        if self.writer is not None and kind is None:
            self.writer.close()
        elif self.writer is not None:
            self.writer.is_open = False  # otherwise its destructor would write the footer

    def write(self, table: Columns) -> None:
        """Write some rows."""
        from betafield.files import arrow

        pa = arrow()
        cells = pa.table(list(table.values()), self.names)
        if self.writer is None:
            # The file belongs to the caller, and must outlive the writer, which would close it.
            self.writer = pa.parquet.ParquetWriter(pa.PythonFile(self.file, mode="w"), cells.schema)
        self.writer.write_table(cells)


WRITERS: dict[str, Any] = {"csv": _CSV, "json": _JSON, "parquet": _Parquet}
