"""The rows of all files, read as often as needed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield.files.batch import Batch
from betafield.files.columns import Roles, value_kind
from betafield.files.labels import Labels, require_few
from betafield.files.optional import arrow, bar
from betafield.files.schemas import check, spelled, with_categories, with_features
from betafield.files.sources import USUAL, Limits, listed
from betafield.files.text import CSV
from betafield.refusals import refused


class Dropped(NamedTuple):
    """Rows dropped for lack of a value: how many, out of how many, and the first."""

    number: int = 0
    rows: int = 0
    first: str = ""

    def plus(self, batch: Batch, kept: Batch) -> Dropped:
        """Return the count after a batch of which some rows were kept."""
        rows, left = len(batch.piece.cells), len(kept.piece.cells)
        first = self.first
        if kept.kept is not None and not first:
            lacking = np.delete(np.arange(rows), kept.kept)
            first = batch.file.where(batch.row(int(lacking[0])))
        return Dropped(self.number + rows - left, self.rows + rows, first)

    def __str__(self) -> str:
        return (
            f"left out {self.number:,} of {self.rows:,} rows, in which a value is missing; the "
            f"first is {self.first}"
        )


class Rows:
    r"""The rows of all files, read as often as needed.

    Parameters
    ----------
    paths : str, path or list of them
        Files, globs and folders, or files that `listed` returned.
    roles : Roles
        The roles of columns; without features, these are all other columns.
    batch_rows : int
        Rows per batch.
    progress : bool or None
        Whether to show progress. None: if standard error is a terminal.
    categorical : optional
        Which features are categories, as for the estimator.
    separator : str, optional
        The separator of columns in text files; by default it follows from their endings.
    dropping : bool
        Whether rows without a value are dropped, and counted in `dropped`.
    may_miss : names
        Columns that may lack values.
    limits : Limits
        How much is read at once, and how many classes an outcome may have.

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
        separator: str | None = None,
        dropping: bool = False,
        may_miss: Collection[str] = (),
        limits: Limits = USUAL,
    ) -> None:
        arrow()
        self.batch_rows, self._bar = checks.whole("batch_rows", batch_rows), bar(progress)
        self.files, self.limits = listed(paths, separator, limits), limits
        self.dropping, self.may_miss, self.dropped = dropping, may_miss, Dropped()
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
        """Return a table of one row with the names of the features."""
        are = self.roles.categories
        return arrow().table({n: [""] if n in are else [0.0] for n in self.roles.features})

    def classes(self, *, alone: bool = False) -> npt.NDArray[Any]:
        """Return the classes of the outcome, which is the only column read.

        If a single class is enough (`alone`) and it is 0 or 1, the other one is added.
        """
        outcome = self.roles.outcome
        if outcome is None:
            return np.array([0, 1])
        labels, found, last = Labels(outcome), set[Any](), None
        # Dropped rows contribute no class either.
        roles = self.roles if self.dropping else Roles((), outcome)
        for number, batch in self._read("classes", roles):
            if last not in (None, number):
                self._add(labels, last, found)
                found = set()
            with batch.named():
                found.update(batch.labels()[0])
                require_few(outcome, found, self.limits.classes)
            last = number
        if last is None:
            raise self.nothing("no rows")
        self._add(labels, last, found)
        classes = labels.classes(alone)
        self._classes = labels.numbers(classes)
        return classes

    def read(self, what: str) -> Iterator[Batch]:
        """Return all rows of all files, in batches; `what` is shown beside the progress bar."""
        return (batch for _, batch in self._read(what, self.roles))

    def spelled(self, what: str, as_text: bool) -> Iterator[tuple[Batch, list[Any]]]:
        """Return all rows, with their features as in the file: as spelled there, for text files.

        Text is read alongside the numbers, in the same pieces.
        """
        text = dict.fromkeys(self.roles.features, arrow().string())
        wanted = [file for file in self.files if as_text and isinstance(file, CSV)]
        pieces = {file.path: file.pieces(text, self.batch_rows) for file in wanted}
        for batch in self.read(what):
            if batch.file.path not in pieces:
                yield batch, list(batch.given().values())
                continue
            cells = next(p for p in pieces[batch.file.path] if p.start == batch.piece.start).cells
            if batch.kept is not None:
                cells = cells.take(batch.kept)
            yield batch, [np.array(c.to_pylist(), object) for c in cells.columns]

    @contextlib.contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show beside the bars that work of unknown length is going on."""
        task = None if self._bar is None else self._bar.add_task(what, total=None)
        yield
        if self._bar is not None:
            self._bar.update(task, total=1, completed=1)

    def nothing(self, what: str) -> ValueError:
        """Return the error that there is nothing to learn from."""
        names = spelled([file.name for file in self.files])
        if self.dropped.number == self.dropped.rows > 0:
            what = "a missing value in every row"
        return refused("paths", f"found {what} in {len(self.files)} files: {names}")

    def _add(self, labels: Labels, number: int, found: set[Any]) -> None:
        kind = value_kind(self.schemas[number].field(labels.column).type)
        labels.add(self.files[number], found, kind)
        require_few(labels.column, labels.meaning, self.limits.classes)

    def _read(self, what: str, roles: Roles) -> Iterator[tuple[int, Batch]]:
        self.dropped = Dropped()
        sizes = [os.path.getsize(file.path) for file in self.files]
        task = None if self._bar is None else self._bar.add_task(what, total=sum(sizes))
        for number, file in enumerate(self.files):
            columns = self._types(number, roles)
            for piece in file.pieces(columns, self.batch_rows):
                batch = Batch(file, piece, roles, self._classes)
                if self.dropping:
                    batch = self._without_missing(batch)
                if len(batch.piece.cells):
                    yield number, batch
                if self._bar is not None:
                    self._bar.advance(task, piece.size)
            if self._bar is not None:
                self._bar.update(task, completed=sum(sizes[: number + 1]))

    def _without_missing(self, batch: Batch) -> Batch:
        """Return a batch without rows that lack a value, and count those."""
        used = (*batch.roles.all, *_taken(batch.roles))
        here = batch.without_missing(name for name in used if name not in self.may_miss)
        self.dropped = self.dropped.plus(batch, here)
        return here

    def _types(self, number: int, roles: Roles) -> dict[str, Any] | None:
        """Return the columns to read, and their types if the file is CSV."""
        pa = arrow()
        types = {name: pa.float64() for name in roles.all}
        types |= dict.fromkeys((*roles.labels, *roles.categories), pa.string())
        for name in (roles.successes, roles.trials):
            # Integers must not pass through floats, which are exact only up to 2⁵³.
            if name is not None and pa.types.is_integer(self.schemas[number].field(name).type):
                types[name] = pa.int64()
        if not callable(roles.context):
            return types
        # A function may name the columns that it reads; these are numeric, and only they are read.
        if hasattr(roles.context, "columns"):
            return {**types, **dict.fromkeys(_taken(roles), pa.float64())}
        return {name: types.get(name) for name in self.schemas[number].names}


def _taken(roles: Roles) -> tuple[str, ...]:
    """Return the columns that a function of contexts names."""
    return tuple(getattr(roles.context, "columns", ())) if callable(roles.context) else ()
