"""A batch of rows of one file, with the roles of their columns."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield.categories import require_words, text
from betafield.files.columns import Roles, as_numbers, as_plain, is_missing
from betafield.files.optional import arrow
from betafield.files.pieces import File, Piece
from betafield.refusals import about, refused

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """A batch of rows of one file, with the roles of their columns.

    `kept` are the rows of the piece that remain, if others were dropped.
    """

    file: File
    piece: Piece
    roles: Roles
    classes: dict[Any, int]
    kept: Ints | None = None

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Name the file in errors about these rows, and its own line or row number."""
        try:
            yield
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(self._told(error)) from error

    def _told(self, error: Exception) -> str:
        found = about(error)
        if found is None or found.row is None:
            return f"{self.file.name}: {error}"
        where = self.file.where(self.row(found.row))
        if found.argument == "X" and found.part:  # a column, which the file has too
            return f"{where}, {found.part}: {found.said}"
        return f"{where}: {found._replace(row=None)}"

    def row(self, number: int) -> int:
        """Return the row of the file that one of these rows is."""
        return self.piece.start + (number if self.kept is None else int(self.kept[number]))

    def without_missing(self, columns: Iterable[str]) -> Batch:
        """Return the batch without rows in which one of these columns has no value."""
        cells = self.piece.cells
        is_there = np.ones(len(cells), dtype=np.bool_)
        for name in columns:
            is_there &= ~is_missing(cells.column(name))
        kept = np.flatnonzero(is_there)
        if len(kept) == len(cells):
            return self
        piece = self.piece._replace(cells=cells.filter(arrow().array(is_there)))
        return dataclasses.replace(self, piece=piece, kept=kept)

    def given(self) -> dict[str, npt.NDArray[Any]]:
        """Return the features as in the file: whole numbers are not turned into floats."""
        return {
            name: np.array(as_plain(self.piece.cells.column(name)).to_pylist(), object)
            if name in self.roles.categories
            else self._column(name)
            for name in self.roles.features
        }

    def points(self) -> Any:
        """Return the features as a table of floats, and of text for categories."""
        names = list(self.roles.features)
        return arrow().table([self._feature(name) for name in names], names)

    def _feature(self, name: str) -> Any:
        if name not in self.roles.categories:
            return self._column(name).astype(np.float64)
        pa = arrow()
        labels = [text(value) for value in as_plain(self.piece.cells.column(name)).to_pylist()]
        if name in self.roles.worded and self.is_csv:
            require_words(name, labels)
        return pa.array(labels, pa.string())

    @property
    def is_csv(self) -> bool:
        """Whether the file is CSV, which has no types."""
        return self.piece.group is None

    def outcomes(self) -> Ints:
        """Return the index of each row's class."""
        values, at = self.labels()
        numbers = np.array([self.classes.get(value, -1) for value in values], dtype=np.int64)
        if (numbers < 0).any():
            raise refused("outcome", "found a label that was not there when classes were sought")
        return numbers[at]

    def labels(self) -> tuple[list[Any], Ints]:
        """Return the distinct labels, and the index of each row's; raise if any is missing."""
        pa = arrow()
        column = as_plain(self.piece.cells.column(self.roles.outcome))
        missing = is_missing(column)
        if pa.types.is_floating(column.type):
            missing = missing | ~np.isfinite(column.to_numpy(zero_copy_only=False))
        if missing.any():
            row = int(np.argmax(missing))
            raise refused(
                "outcome", f"found {column[row].as_py()}; no label may be missing", row=row
            )
        encoded = column.dictionary_encode()
        return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()

    def counts(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
        """Return successes and trials, if the rows have counts."""
        successes, trials = self.roles.successes, self.roles.trials
        if successes is None or trials is None:
            return None
        return self._column(successes), self._column(trials)

    def weights(self) -> npt.NDArray[Any] | None:
        """Return the weight of each row, if there are any."""
        name = self.roles.sample_weight
        return None if name is None else self._column(name)

    def groups(self) -> npt.NDArray[Any] | None:
        """Return the group of each row, if there are any."""
        name = self.roles.groups
        if name is None:
            return None
        return np.asarray(as_plain(self.piece.cells.column(name)).to_numpy(zero_copy_only=False))

    def context(self) -> Any:
        """Return the context of each row, or the one context of all."""
        if callable(self.roles.context):
            return self.roles.context(self.piece.cells)
        if self.roles.coefficients:
            return np.stack([self._column(name) for name in self.roles.coefficients], axis=1)
        return self.roles.context

    def _column(self, name: str) -> npt.NDArray[Any]:
        return as_numbers(self.piece.cells.column(name))
