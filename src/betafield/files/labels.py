"""The classes of an outcome, and the class of each value in a file."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import success
from betafield.files.optional import arrow
from betafield.files.pieces import File
from betafield.files.text import CSV
from betafield.refusals import refused


@dataclass
class Labels:
    """The classes of an outcome; `meaning` maps the values in files to labels.

    CSV files have no types, so their labels are read as a type that fits all of them: whole
    numbers, numbers, booleans, or else text.
    """

    column: str
    meaning: dict[Any, Any] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)

    def add(self, file: File, found: set[Any], kind: str) -> None:
        """Add the labels found in one file; raise if they are of another kind than before."""
        meaning = {value: value for value in found}
        if isinstance(file, CSV):
            kind, meaning = _read_labels(found)
        if not found:
            return
        for other, name in self.kinds.items():
            if other != kind:
                raise ValueError(
                    f"{file.name}, column {self.column!r}: found {kind}, where {name} has "
                    f"{other}; outcomes must be of one kind in all files"
                )
        self.kinds[kind] = file.name
        self.meaning.update(meaning)
        self._check(file)

    def _check(self, file: File) -> None:
        for label in self.meaning.values():
            if isinstance(label, float) and not label.is_integer():
                raise ValueError(
                    f"{file.name}, column {self.column!r}: found {label!r}; outcomes must be "
                    "whole numbers, booleans or text"
                )

    def classes(self, alone: bool) -> npt.NDArray[Any]:
        """Return the classes, sorted; raise if there are fewer than two.

        If a single class is enough (`alone`) and it is 0 or 1, the other one is added.
        """
        known = list(dict.fromkeys(self.meaning.values()))
        found = np.unique(np.array(known, dtype=object if "text" in self.kinds else None))
        if alone:
            found = success.with_the_other(found)
        if len(found) < 2:
            raise refused(
                "outcome",
                f"found only one class, {known[0]!r}, in all files; two or more are needed",
            )
        return found

    def numbers(self, classes: npt.NDArray[Any]) -> dict[Any, int]:
        """Return the class index of each value in files."""
        number = {label: i for i, label in enumerate(classes.tolist())}
        return {value: number[label] for value, label in self.meaning.items()}


def _read_labels(found: set[Any]) -> tuple[str, dict[Any, Any]]:
    """Return the kind of labels that are given as text, and the meaning of each."""
    pa = arrow()
    spelled = sorted(found)
    if {label.lower() for label in spelled} <= {"true", "false"}:
        return "booleans", {label: label.lower() == "true" for label in spelled}
    for dtype in (pa.int64(), pa.float64()):
        with contextlib.suppress(pa.ArrowInvalid):
            read = pa.array(spelled, pa.string()).cast(dtype).to_pylist()
            return "numbers", dict(zip(spelled, read, strict=True))
    return "text", {label: label for label in spelled}


def require_few(column: str, labels: Any, most: int) -> None:
    """Raise if a column has more labels than an outcome may have."""
    if len(labels) > most:
        raise refused(
            "outcome",
            f"found more than {most} classes in column {column!r}; "
            "an outcome has few classes, unlike a measurement",
        )
