"""Some rows of a file, and what their columns are for."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield.categories import require_words, text
from betafield.files.columns import Roles, as_numbers, as_plain
from betafield.files.optional import arrow
from betafield.files.sources import Piece

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Some rows of a file, and what their columns are for."""

    path: str
    piece: Piece
    roles: Roles
    classes: dict[Any, int]

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """Name the file in errors about these rows, and count rows as the file does."""
        try:
            yield
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            group = "" if self.piece.group is None else f", row group {self.piece.group}"
            said = re.sub(
                r"^(\w+ row )(\d+)", lambda m: f"{m[1]}{int(m[2]) + self.piece.start}", str(error)
            )
            raise kind(f"{self.path}{group}: {said}") from error

    def points(self) -> Any:
        """Return the features as a table of floats, and of text where they are categories."""
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
        """Whether the file does not say what its values are."""
        return self.piece.group is None

    def outcomes(self) -> Ints:
        """Return the number of each row's class."""
        values, at = self.labels()
        numbers = np.array([self.classes.get(value, -1) for value in values], dtype=np.int64)
        if (numbers < 0).any():
            raise ValueError("outcome: found a label that was not there when classes were sought")
        return numbers[at]

    def labels(self) -> tuple[list[Any], Ints]:
        """Return the distinct labels, and which of them each row has; none may be missing."""
        pa = arrow()
        column = as_plain(self.piece.cells.column(self.roles.outcome))
        if pa.types.is_floating(column.type):
            missing = ~np.isfinite(column.to_numpy(zero_copy_only=False))
        else:
            missing = column.is_null().to_numpy(zero_copy_only=False)
        if missing.any():
            row = int(np.argmax(missing))
            raise ValueError(
                f"outcome row {row}: found {column[row].as_py()}; no label may be missing"
            )
        encoded = column.dictionary_encode()
        return encoded.dictionary.to_pylist(), encoded.indices.to_numpy()

    def counts(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
        """Return successes and trials, where the rows have counts."""
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
        """Return the context of each row, or of all."""
        if callable(self.roles.context):
            return self.roles.context(self.piece.cells)
        if self.roles.coefficients:
            return np.stack([self._column(name) for name in self.roles.coefficients], axis=1)
        return self.roles.context

    def _column(self, name: str) -> npt.NDArray[Any]:
        return as_numbers(self.piece.cells.column(name))
