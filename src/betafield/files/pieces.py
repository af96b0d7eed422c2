"""What every kind of file can be asked for: its columns, and its rows in pieces."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from betafield.files.optional import arrow
from betafield.refusals import refused

# The columns to read and the type of each; None: as the file has it.
Types = dict[str, Any]


class Piece(NamedTuple):
    """Rows of a file: a record batch, the number of its first row, bytes read, the row group."""

    cells: Any
    start: int
    size: float
    group: int | None = None


class File(Protocol):
    """A file that can be read in pieces, as often as needed; errors call it `name`."""

    path: str
    name: str

    def schema(self) -> Any:
        """Return the names and types of the columns."""

    def pieces(self, columns: Types | None, rows: int) -> Iterator[Piece]:
        """Return rows in pieces of at most `rows`; these columns, or all.

        `columns` gives the type of each, for files without types.
        """

    def where(self, row: int) -> str:
        """Return the name of row `row` (from 0) in errors: its line, if the file has lines."""


@contextlib.contextmanager
def reading(where: str) -> Iterator[None]:
    """Name the file in errors of its reader."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        said = " ".join(str(error).split())
        raise refused(where, f"cannot be read: {said}") from error
