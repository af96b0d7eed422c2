"""Parquet and CSV files, read in pieces by pyarrow, as often as needed.

Errors of its readers are raised again with the name of the file, and with the column and the line
or row if the reader says which. Errors in CSV files name lines, which people see in an editor; rows
of Parquet files are counted from 0.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import math
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

from betafield import checks
from betafield.files.optional import arrow
from betafield.files.paths import named
from betafield.refusals import mistyped, refused

# Bytes of line ends, and how many bytes at the end of a file are read at once.
LINE_ENDS, TAIL = b"\r\n", 1 << 16
# The separator of columns in text files, by the ending of their names.
SEPARATORS = {".csv": ",", ".tsv": "\t"}
ENDINGS = (".parquet", ".pq", *SEPARATORS)


class Limits(NamedTuple):
    """How much is read at once, and how many classes an outcome may have.

    Parameters
    ----------
    buffer : int
        Bytes of a Parquet column.
    block : int
        Bytes of a CSV file, of which pyarrow reads some thirty blocks ahead.
    classes : int
        A column with more distinct labels is not an outcome.
    """

    buffer: int = 1 << 20
    block: int = 1 << 20
    classes: int = 1000


USUAL = Limits()


def listed(paths: Any, separator: Any = None, limits: Limits = USUAL) -> list[File]:
    """Return the files that paths, globs and folders name, each once, sorted by path.

    In folders, names that begin with a dot or an underscore are not data. `separator` separates the
    columns of text files; None: commas in .csv files, tabs in .tsv files.
    """
    separator = _checked_separator(separator)
    return [_file(path, separator, limits) for path in named(paths)]


def _checked_separator(separator: Any) -> str | None:
    """Return the separator; raise if it is not a character that can be one."""
    if separator is None:
        return None
    rule = "one character is needed, such as ';', and no quote, line end or letter"
    if not isinstance(separator, str):
        raise mistyped("separator", f"found {checks.spelled(separator)}; {rule}")
    is_plain = len(separator) == 1 and separator.isascii() and separator not in '"\r\n\0.+-'
    if not is_plain or separator.isalnum():
        raise refused("separator", f"found {separator!r}; {rule}")
    return str.__str__(separator)


def _file(path: str, separator: str | None, limits: Limits) -> File:
    suffix = Path(path).suffix.lower()
    if suffix not in ENDINGS:
        raise refused(
            "paths",
            f"found {path!r}; files must end in {', '.join(ENDINGS)}. Of a folder that "
            "holds others too, a glob such as 'folder/*.parquet' names some",
        )
    if suffix in SEPARATORS:
        return CSV(path, separator or SEPARATORS[suffix], limits.block)
    return Parquet(path, limits.buffer)


class Piece(NamedTuple):
    """Rows of a file: a record batch, the number of its first row, bytes read, the row group."""

    cells: Any
    start: int
    size: float
    group: int | None = None


class File(Protocol):
    """A file that can be read in pieces, as often as needed."""

    path: str

    def schema(self) -> Any:
        """Return the names and types of the columns."""

    def pieces(self, columns: dict[str, Any] | None, rows: int) -> Iterator[Piece]:
        """Return rows in pieces of at most `rows`; these columns, or all.

        `columns` gives the type of each, for files without types.
        """

    def where(self, row: int) -> str:
        """Return the name of row `row` (from 0) in errors: its line, if the file has lines."""


class Parquet:
    """A Parquet file, read by row group, without ever holding a whole group."""

    def __init__(self, path: str, buffer: int = USUAL.buffer) -> None:
        self.path, self.buffer = path, buffer

    def schema(self) -> Any:
        """Return the names and types of the columns."""
        with _reading(self.path), self._opened() as file:
            return file.schema_arrow

    def pieces(self, columns: dict[str, Any] | None, rows: int) -> Iterator[Piece]:
        """Return rows in pieces of at most `rows`; these columns, or all."""
        with _reading(self.path):
            file = self._opened()
        names = None if columns is None else list(columns)
        share, start = os.path.getsize(self.path) / max(1, file.metadata.num_rows), 0
        with file:
            for group in range(file.num_row_groups):
                with _reading(f"{self.path}, row group {group}"):
                    for cells in file.iter_batches(rows, [group], names, use_threads=False):
                        yield Piece(cells, start, share * len(cells), group)
                        start += len(cells)

    def where(self, row: int) -> str:
        """Return the name of a row in errors."""
        return f"row {row} of {self.path}"

    def _opened(self) -> Any:
        return arrow().parquet.ParquetFile(
            self.path,
            buffer_size=self.buffer,
            pre_buffer=False,
            page_checksum_verification=True,
        )


class CSV:
    """A text file in UTF-8 with a header line, and columns separated by one character.

    Every later line is a row. A blank one is a row without values, refused like any missing value,
    so that answers stay aligned with rows. Only blank lines before the header do not count, nor
    those at the end of a file with two or more columns.
    """

    def __init__(self, path: str, separator: str = ",", block: int = USUAL.block) -> None:
        self.path, self.separator, self.block = path, separator, block

    def schema(self) -> Any:
        """Return the names and types of the columns, inferred from the first rows."""
        with self._reading(), self._opened() as reader:
            return reader.schema

    def where(self, row: int) -> str:
        """Return the name of a row in errors: the line on which it begins, counted from 1."""
        return f"line {self._line(row)} of {self.path}"

    def _line(self, row: int) -> int:
        """Return the line on which a row begins; earlier rows may span several lines.

        The file is read from its start, so this is for errors only.
        """
        start, _ = _span(self.path, self.separator)
        with open(self.path, "rb") as file:
            above = file.read(start).count(b"\n")  # blank lines before the header
        with open(self.path, encoding="latin-1", newline="") as file:
            file.seek(start)
            lines = csv.reader(file, delimiter=self.separator)
            try:
                for _ in range(row + 1):  # the header, and the rows before this one
                    next(lines)
            except (csv.Error, StopIteration):  # an unclosed quote: count rows as lines
                return above + row + 2
            return above + lines.line_num + 1

    def is_numeric(self, name: str) -> bool:
        """Return whether at least half of the values in a column of text are numbers.

        Judged by the first rows. If so, words in the column are mistakes; if not, numbers are.
        """
        with self._reading(), self._opened() as reader:
            block = next(iter(reader), None)
        values = [] if block is None else [v for v in block.column(name).to_pylist() if v]
        return 2 * sum(map(_is_number, values)) >= max(len(values), 1)

    def pieces(self, columns: dict[str, Any] | None, rows: int) -> Iterator[Piece]:
        """Return rows in pieces of at most `rows`; these columns, or all."""
        names = self.schema().names
        size, start = os.path.getsize(self.path), 0
        with self._reading(names):
            reader = self._opened(columns)
        with reader, self._reading(names):
            for block in reader:
                read = min(self.block, size)
                size -= read
                for first in range(0, len(block), rows):
                    cells = block.slice(first, rows)
                    yield Piece(cells, start + first, read * len(cells) / len(block))
                start += len(block)

    def _opened(self, columns: dict[str, Any] | None = None) -> Any:
        pa = arrow()
        start, stop = _span(self.path, self.separator)
        return pa.csv.open_csv(
            pa.OSFile(self.path).get_stream(start, stop - start),
            # A single thread, because only then do errors name the row.
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=self.block),
            parse_options=pa.csv.ParseOptions(
                delimiter=self.separator, newlines_in_values=True, ignore_empty_lines=False
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types={k: v for k, v in (columns or {}).items() if v is not None},
                include_columns=list(columns or ()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    @contextlib.contextmanager
    def _reading(self, names: Sequence[str] = ()) -> Iterator[None]:
        """Name the line and the column in errors of the reader, if it gives them."""
        try:
            with _reading(self.path):
                yield
        except ValueError as error:
            said = str(error)
            told = _NO_NUMBER.search(said)
            if told:
                raise ValueError(
                    f"{self.where(int(told[2]) - 2)}, column {names[int(told[1])]!r}: "
                    f"found an {told[3]}; every value must be a number"
                ) from error
            counted = re.search(r"Row #(\d+): ", said)
            if not counted:
                raise
            where, rest = self.where(int(counted[1]) - 2), said.replace(counted[0], "")
            raise refused(where, f"{rest.removeprefix(f'{self.path}: ')}") from error


def _is_number(value: str | None) -> bool:
    try:
        return value is not None and math.isfinite(float(value))
    except ValueError:
        return False


def _span(path: str, separator: str) -> tuple[int, int]:
    """Return where the rows of a CSV file begin and end, without blank lines around them."""
    stop = os.path.getsize(path)
    with open(path, "rb") as file:
        start, names = 0, file.readline(TAIL)
        while names and not names.strip(LINE_ENDS):
            start, names = file.tell(), file.readline(TAIL)
        # Latin-1 decodes every byte, and separators and quotes are the same in UTF-8.
        text = names.removeprefix(codecs.BOM_UTF8).decode("latin-1")
        columns = next(csv.reader([text], delimiter=separator), [])
        return start, stop if len(columns) < 2 else _end_of_rows(file, start, stop)


def _end_of_rows(file: BinaryIO, start: int, stop: int) -> int:
    """Return the end of the last line that is not blank, including its line end."""
    while stop > start:
        file.seek(max(start, stop - TAIL))
        tail = file.read(stop - file.tell())
        kept = tail.rstrip(LINE_ENDS)
        if kept:
            line_end = 2 if tail.startswith(b"\r\n", len(kept)) else 1
            return min(stop, stop - len(tail) + len(kept) + line_end)
        stop -= len(tail)
    return start


# pyarrow counts rows from 1, including the header.
_NO_NUMBER = re.compile(r"In CSV column #(\d+): Row #(\d+): .* error to \w+: (invalid value '.*')")


@contextlib.contextmanager
def _reading(where: str) -> Iterator[None]:
    """Name the file in errors of its reader."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        said = " ".join(str(error).split())
        raise refused(where, f"cannot be read: {said}") from error
