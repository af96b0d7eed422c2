"""The rows of all files, read as often as they are asked for."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield.files.batch import Batch
from betafield.files.columns import Roles, value_kind
from betafield.files.labels import Labels, require_few
from betafield.files.optional import arrow, bar
from betafield.files.schemas import check, spelled, with_categories, with_features
from betafield.files.sources import listed


class Rows:
    r"""The rows of all files, read as often as they are asked for.

    Parameters
    ----------
    paths : str, path or list of them
        Files, globs and folders.
    roles : Roles
        What columns are for; without features these are all other columns.
    batch_rows : int
        Rows that are read at once.
    progress : bool or None
        Whether to show how far it is; None: where somebody looks at the terminal.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from betafield.files import Rows, roles
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "trials.csv").write_text("dose,died\n0.5,yes\n0.1,no\n")
    ...     rows = Rows(folder, roles(outcome="died"), batch_rows=1)
    ...     rows.classes().tolist()
    ...     [batch.points()["dose"].to_pylist() for batch in rows.read("learning")]
    ['no', 'yes']
    [[0.5], [0.1]]
    """

    def __init__(
        self,
        paths: Any,
        roles: Roles,
        batch_rows: Any = 1 << 17,
        progress: bool | None = False,
        categorical: Any = None,
    ) -> None:
        arrow()
        self.batch_rows, self._bar = checks.whole("batch_rows", batch_rows), bar(progress)
        self.files = listed(paths)
        schemas = [file.schema() for file in self.files]
        if not roles.features:
            named = () if categorical is None or isinstance(categorical, str) else categorical
            named = tuple(name for name in named if isinstance(name, str))
            roles = with_features(roles, self.files, schemas, named)
        roles = with_categories(roles, self.files, schemas, categorical)
        for file, schema in zip(self.files, schemas, strict=True):
            check(file, schema, roles)
        self.roles, self.schemas = roles, schemas
        self._classes: dict[Any, int] = {}

    def __enter__(self) -> Rows:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def header(self) -> Any:
        """Return a table of one row that has the names of the features."""
        are = self.roles.categories
        return arrow().table({n: [""] if n in are else [0.0] for n in self.roles.features})

    def classes(self) -> npt.NDArray[Any]:
        """Return the classes of the outcome, which is the only column read."""
        outcome = self.roles.outcome
        if outcome is None:
            return np.array([0, 1])
        labels, found, last = Labels(outcome), set[Any](), None
        for number, batch in self._read("classes", Roles((), outcome)):
            if last not in (None, number):
                self._add(labels, last, found)
                found = set()
            with batch.named():
                found.update(batch.labels()[0])
                require_few(outcome, found)
            last = number
        if last is None:
            raise self.nothing("no rows")
        self._add(labels, last, found)
        self._classes = labels.numbers()
        return labels.classes()

    def read(self, what: str) -> Iterator[Batch]:
        """Return all rows of all files, in batches; `what` is said beside the bar."""
        return (batch for _, batch in self._read(what, self.roles))

    @contextlib.contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show beside the bars that something goes on whose end is not known."""
        task = None if self._bar is None else self._bar.add_task(what, total=None)
        yield
        if self._bar is not None:
            self._bar.update(task, total=1, completed=1)

    def nothing(self, what: str) -> ValueError:
        """Return the error that there is nothing to learn from."""
        names = spelled([file.path for file in self.files])
        return ValueError(f"paths: found {what} in {len(self.files)} files: {names}")

    def _add(self, labels: Labels, number: int, found: set[Any]) -> None:
        kind = value_kind(self.schemas[number].field(labels.column).type)
        labels.add(self.files[number], found, kind)
        require_few(labels.column, labels.meaning)

    def _read(self, what: str, roles: Roles) -> Iterator[tuple[int, Batch]]:
        sizes = [os.path.getsize(file.path) for file in self.files]
        task = None if self._bar is None else self._bar.add_task(what, total=sum(sizes))
        for number, file in enumerate(self.files):
            columns = self._types(number, roles)
            for piece in file.pieces(columns, self.batch_rows):
                if len(piece.cells):
                    yield number, Batch(file.path, piece, roles, self._classes)
                if self._bar is not None:
                    self._bar.advance(task, piece.size)
            if self._bar is not None:
                self._bar.update(task, completed=sum(sizes[: number + 1]))

    def _types(self, number: int, roles: Roles) -> dict[str, Any] | None:
        """Return the columns to read, and their types if the file is CSV."""
        pa = arrow()
        types = {name: pa.float64() for name in roles.all}
        types |= dict.fromkeys((*roles.labels, *roles.categories), pa.string())
        for name in (roles.successes, roles.trials):
            # Whole numbers never pass through a float, which is exact to 2⁵³ only.
            if name is not None and pa.types.is_integer(self.schemas[number].field(name).type):
                types[name] = pa.int64()
        if not callable(roles.context):
            return types
        # A function may say which columns it takes; these are numbers, and no others are read.
        if hasattr(roles.context, "columns"):
            return {**types, **dict.fromkeys(roles.context.columns, pa.float64())}
        return {name: types.get(name) for name in self.schemas[number].names}
