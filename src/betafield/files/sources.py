"""Parquet and CSV files by their names, and Parquet files, read in pieces by pyarrow.

Errors of its readers are raised again with the name of the file; rows of Parquet files are counted
from 0.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from betafield import checks
from betafield.files.optional import arrow
from betafield.files.paths import named
from betafield.files.pieces import File, Piece, Types, reading
from betafield.files.text import CSV
from betafield.refusals import mistyped, refused

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


def listed(
    paths: Any, separator: Any = None, limits: Limits = USUAL, name: str | None = None
) -> list[File]:
    """Return the files that paths, globs and folders name, each once, sorted by path.

    In folders, names that begin with a dot or an underscore are not data. `separator` separates the
    columns of text files; None: commas in .csv files, tabs in .tsv files. `name` is what errors
    call a file whose path says nothing. A list of files, made here, is returned as it is.
    """
    if isinstance(paths, list) and paths and all(isinstance(p, CSV | Parquet) for p in paths):
        return paths
    separator = _checked_separator(separator)
    return [_file(path, name or path, separator, limits) for path in named(paths)]


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


def _file(path: str, name: str, separator: str | None, limits: Limits) -> File:
    suffix = Path(path).suffix.lower()
    if suffix not in ENDINGS:
        raise refused(
            "paths",
            f"found {path!r}; files must end in {', '.join(ENDINGS)}. Of a folder that "
            "holds others too, a glob such as 'folder/*.parquet' names some",
        )
    if suffix in SEPARATORS:
        return CSV(path, name, separator or SEPARATORS[suffix], limits.block)
    return Parquet(path, name, limits.buffer)


class Parquet:
    """A Parquet file, read by row group, without ever holding a whole group."""

    def __init__(self, path: str, name: str, buffer: int) -> None:
        self.path, self.name, self.buffer = path, name, buffer

    def schema(self) -> Any:
        """Return the names and types of the columns."""
        with reading(self.name), self._opened() as file:
            return file.schema_arrow

    def pieces(self, columns: Types | None, rows: int) -> Iterator[Piece]:
        """Return rows in pieces of at most `rows`; these columns, or all."""
        with reading(self.name):
            file = self._opened()
        names = None if columns is None else list(columns)
        share, start = os.path.getsize(self.path) / max(1, file.metadata.num_rows), 0
        with file:
            for group in range(file.num_row_groups):
                with reading(f"{self.name}, row group {group}"):
                    for cells in file.iter_batches(rows, [group], names, use_threads=False):
                        yield Piece(cells, start, share * len(cells), group)
                        start += len(cells)

    def where(self, row: int) -> str:
        """Return the name of a row in errors."""
        return f"row {row} of {self.name}"

    def _opened(self) -> Any:
        return arrow().parquet.ParquetFile(
            self.path,
            buffer_size=self.buffer,
            pre_buffer=False,
            page_checksum_verification=True,
        )
