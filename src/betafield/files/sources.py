"""Parquet and CSV files, read in pieces by pyarrow, as often as needed.

What its readers say of a file that cannot be read is told with the name of the file, and with the
column and the row where they tell them.
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

from betafield.files.optional import arrow
from betafield.files.paths import named

# Bytes of a Parquet column that are read at once, and of a CSV file, of which pyarrow reads some
# thirty blocks ahead.
PARQUET_BUFFER, CSV_BLOCK = 1 << 20, 1 << 20
# What ends lines, and bytes at the end of a file that are looked at at once.
LINE_ENDS, TAIL = b"\r\n", 1 << 16


def listed(paths: Any) -> list[File]:
    """Return the files that paths, globs and folders name, each once, sorted by path.

    In folders, names that begin with a dot or an underscore are not data.
    """
    return [_file(path) for path in named(paths)]


def _file(path: str) -> File:
    suffix = Path(path).suffix.lower()
    if suffix not in READERS:
        raise ValueError(
            f"paths: found {path!r}; files must end in {', '.join(READERS)}. Of a folder that "
            "holds others too, a glob such as 'folder/*.parquet' names some"
        )
    return READERS[suffix](path)


class Piece(NamedTuple):
    """Rows of a file: a record batch, the row at which it begins, bytes read, the row group."""

    cells: Any
    start: int
    size: float
    group: int | None = None


class File(Protocol):
    """A file that can be read in pieces, as often as needed."""

    path: str

    def __init__(self, path: str) -> None:
        """Remember the path; nothing is opened yet."""

    def schema(self) -> Any:
        """Return names and types of the columns."""

    def pieces(self, columns: dict[str, Any] | None, rows: int) -> Iterator[Piece]:
        """Return its rows, that many at once; those columns of it, or all.

        `columns` tells the type that each has where the file itself says none.
        """


class Parquet:
    """A Parquet file, a row group at a time, without ever holding a whole one."""

    def __init__(self, path: str) -> None:
        self.path = path

    def schema(self) -> Any:
        """Return names and types of the columns."""
        with _reading(self.path), self._opened() as file:
            return file.schema_arrow

    def pieces(self, columns: dict[str, Any] | None, rows: int) -> Iterator[Piece]:
        """Return its rows, that many at once; those columns of it, or all."""
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

    def _opened(self) -> Any:
        return arrow().parquet.ParquetFile(
            self.path,
            buffer_size=PARQUET_BUFFER,
            pre_buffer=False,
            page_checksum_verification=True,
        )


class CSV:
    """A CSV file in UTF-8 whose first line names the columns.

    Every line after that is a row: a blank one is a row without values, which is then refused
    like any missing value, so that results stand beside their rows. Only blank lines before the
    names are none, and those at the end of a file of two columns or more.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def schema(self) -> Any:
        """Return names and types of the columns, as the first rows suggest them."""
        with _reading(self.path), self._opened() as reader:
            return reader.schema

    def has_number(self, name: str) -> bool:
        """Return whether a value of a column of text is a number, as far as the first rows show."""
        with _reading(self.path), self._opened() as reader:
            block = next(iter(reader), None)
        return block is not None and any(map(_is_number, block.column(name).to_pylist()))

    def pieces(self, columns: dict[str, Any] | None, rows: int) -> Iterator[Piece]:
        """Return its rows, that many at once; those columns of it, or all."""
        names = self.schema().names
        size, start = os.path.getsize(self.path), 0
        with _reading(self.path, names):
            reader = self._opened(columns)
        with reader, _reading(self.path, names):
            for block in reader:
                read = min(CSV_BLOCK, size)
                size -= read
                for first in range(0, len(block), rows):
                    cells = block.slice(first, rows)
                    yield Piece(cells, start + first, read * len(cells) / len(block))
                start += len(block)

    def _opened(self, columns: dict[str, Any] | None = None) -> Any:
        pa = arrow()
        start, stop = _span(self.path)
        return pa.csv.open_csv(
            pa.OSFile(self.path).get_stream(start, stop - start),
            # One thread: only then do errors tell the row.
            read_options=pa.csv.ReadOptions(use_threads=False, block_size=CSV_BLOCK),
            parse_options=pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=pa.csv.ConvertOptions(
                column_types={k: v for k, v in (columns or {}).items() if v is not None},
                include_columns=list(columns or ()),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


def _is_number(value: str | None) -> bool:
    try:
        return value is not None and math.isfinite(float(value))
    except ValueError:
        return False


def _span(path: str) -> tuple[int, int]:
    """Return where in a CSV file rows begin and end, without blank lines that are none of them."""
    stop = os.path.getsize(path)
    with open(path, "rb") as file:
        start, names = 0, file.readline(TAIL)
        while names and not names.strip(LINE_ENDS):
            start, names = file.tell(), file.readline(TAIL)
        # Latin-1 knows every byte, and commas and quotes are the same in UTF-8.
        text = names.removeprefix(codecs.BOM_UTF8).decode("latin-1")
        columns = next(csv.reader([text]), [])
        return start, stop if len(columns) < 2 else _end_of_rows(file, start, stop)


def _end_of_rows(file: BinaryIO, start: int, stop: int) -> int:
    """Return the end of the last line that is not blank, its own line end included."""
    while stop > start:
        file.seek(max(start, stop - TAIL))
        tail = file.read(stop - file.tell())
        kept = tail.rstrip(LINE_ENDS)
        if kept:
            line_end = 2 if tail.startswith(b"\r\n", len(kept)) else 1
            return min(stop, stop - len(tail) + len(kept) + line_end)
        stop -= len(tail)
    return start


READERS: dict[str, type[Parquet | CSV]] = {".parquet": Parquet, ".pq": Parquet, ".csv": CSV}

_NO_NUMBER = re.compile(r"In CSV column #(\d+): Row #(\d+): .* error to \w+: (invalid value '.*')")


@contextlib.contextmanager
def _reading(where: str, names: Sequence[str] = ()) -> Iterator[None]:
    """Name the file in errors of its reader, and the column and the row where they tell them."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        said = " ".join(str(error).split())
        told = _NO_NUMBER.match(said)
        if told:  # rows are counted from 0, after the line of names
            raise ValueError(
                f"{where} row {int(told[2]) - 2}, column {names[int(told[1])]!r}: "
                f"found an {told[3]}; every value must be a number"
            ) from error
        said = re.sub(r"Row #(\d+)", lambda row: f"row {int(row[1]) - 2}", said)
        raise ValueError(f"{where}: cannot be read: {said}") from error
