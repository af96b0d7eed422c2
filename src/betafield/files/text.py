"""CSV files, read in pieces by pyarrow.

If a row is the reason why a file cannot be read, it is looked for, and named by its line, which
people see in an editor.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import math
import os
from collections.abc import Iterator
from typing import Any, BinaryIO

from betafield import checks
from betafield.files.optional import arrow
from betafield.files.pieces import Piece, Types, reading
from betafield.refusals import refused

# Bytes of line ends, and how many bytes at the end of a file are read at once.
LINE_ENDS, TAIL = b"\r\n", 1 << 16


class CSV:
    """A text file in UTF-8 with a header line, and columns separated by one character.

    Every later line is a row. A blank one is a row without values, refused like any missing value,
    so that answers stay aligned with rows. Only blank lines before the header do not count, nor
    those at the end of a file with two or more columns.
    """

    def __init__(self, path: str, name: str, separator: str, block: int) -> None:
        self.path, self.name, self.separator, self.block = path, name, separator, block

    def schema(self) -> Any:
        """Return the names and types of the columns, inferred from the first rows."""
        with self._reading(), self._opened() as reader:
            return reader.schema

    def where(self, row: int) -> str:
        """Return the name of a row in errors: the line on which it begins, counted from 1."""
        return f"line {self._line(row)} of {self.name}"

    def _line(self, row: int) -> int:
        """Return the line on which a row begins; earlier rows may span several lines.

        The file is read from its start, so this is for errors only.
        """
        number, line = 0, 1
        with contextlib.suppress(csv.Error):  # an unclosed quote: count rows as lines
            for number, (begins, _) in enumerate(self._lines()):  # the header is number 0
                line = begins
                if number == row + 1:
                    break
        return line + row + 1 - number

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Give the header and each row, with the line on which it begins, by Python's reader."""
        start, _ = _span(self.path, self.separator)
        with open(self.path, "rb") as file:
            above = file.read(start).count(b"\n")  # blank lines before the header
        line = above + 1
        # Latin-1 decodes every byte, and separators and quotes are the same in UTF-8.
        with open(self.path, encoding="latin-1", newline="") as file:
            file.seek(start)
            rows = csv.reader(file, delimiter=self.separator)
            for values in rows:
                yield line, values
                line = above + rows.line_num + 1

    def is_numeric(self, name: str) -> bool:
        """Return whether at least half of the values in a column of text are numbers.

        Judged by the first rows. If so, words in the column are mistakes; if not, numbers are.
        """
        with self._reading(), self._opened() as reader:
            block = next(iter(reader), None)
        values = [] if block is None else [v for v in block.column(name).to_pylist() if v]
        return 2 * sum(map(_is_number, values)) >= max(len(values), 1)

    def pieces(self, columns: Types | None, rows: int) -> Iterator[Piece]:
        """Return rows in pieces of at most `rows`; these columns, or all."""
        size, start = os.path.getsize(self.path), 0
        with self._reading(columns):
            reader = self._opened(columns)
        with reader, self._reading(columns):
            for block in reader:
                read = min(self.block, size)
                size -= read
                for first in range(0, len(block), rows):
                    cells = block.slice(first, rows)
                    yield Piece(cells, start + first, read * len(cells) / len(block))
                start += len(block)

    def _opened(self, columns: Types | None = None) -> Any:
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
    def _reading(self, columns: Types | None = None) -> Iterator[None]:
        """Name the line, if a row or a value in it is why the file cannot be read."""
        try:
            with reading(self.name):
                yield
        except ValueError as error:
            reason = self._reason(columns)
            if reason is None:
                raise
            raise reason from error

    def _reason(self, columns: Types | None) -> ValueError | None:
        """Return an error about the first wrong row, if there is one; the file is read again."""
        with contextlib.suppress(arrow().ArrowException, OSError):
            return self._wrong_value(columns)
        with contextlib.suppress(csv.Error, OSError):
            return self._ragged_row()
        return None

    def _wrong_value(self, columns: Types | None) -> ValueError | None:
        """Return an error about the first value that is not of its column's type, if any."""
        with self._opened() as reader:
            types = dict(zip(reader.schema.names, reader.schema.types, strict=True))
        types |= {name: kind for name, kind in (columns or {}).items() if kind is not None}
        names, start = list(columns or types), 0
        with self._opened(dict.fromkeys(names, arrow().binary())) as reader:
            for block in reader:
                for name, cells in zip(names, block.columns, strict=True):
                    if not _can_be_read(cells, types[name]):
                        row = _first_wrong(cells, types[name])
                        where, said = self.where(start + row), _wrong(cells[row], types[name])
                        return refused(where, said, part=f"column {name!r}")
                start += len(block)
        return None

    def _ragged_row(self) -> ValueError | None:
        """Return an error about the first row with too few or too many values, if any."""
        rows = self._lines()
        _, header = next(rows, (1, []))
        for line, values in rows:
            if values and len(values) != len(header):  # a blank line is a row without values
                said = f"found {len(values)} values; {len(header)} are needed, one per column"
                return refused(f"line {line} of {self.name}", said)
        return None


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


def _can_be_read(cells: Any, kind: Any) -> bool:
    """Return whether values, as bytes, are all of a type; spaces around numbers are allowed."""
    pa = arrow()
    if pa.types.is_binary(kind):
        return True
    try:
        text = cells.drop_null().cast(pa.string())
        if not pa.types.is_string(kind):
            pa.compute.utf8_trim(text, " \t").cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _first_wrong(cells: Any, kind: Any) -> int:
    rows = range(len(cells))
    return next(row for row in rows if not _can_be_read(cells.slice(row, 1), kind))


def _wrong(cell: Any, kind: Any) -> str:
    """Return what was found instead of a value of this type, and what is allowed."""
    if arrow().types.is_string(kind):
        return f"found {checks.spelled(cell.as_py())}; text must be in UTF-8"
    value = cell.as_py().decode("utf-8", "replace")
    return f"found an invalid value {checks.spelled(value)}; every value must be a number"
