"""Files of trials, read some rows at a time: paths, then record batches, then columns.

Parquet and CSV, by pyarrow. Nothing is learned here: `Rows` says which files and columns there
are, and reads them as often as it is asked to; a `Batch` gives its columns as arrays, and names
its file and row in whatever goes wrong with them. Columns are looked for in all files before the
first row is read.

Files are read as data only: no pickle, no code, no types of others.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import glob
import importlib.util
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from betafield._extras import needed
from betafield.persistence import kind_of

Ints = npt.NDArray[np.int64]

# Bytes of a Parquet column that are read at once, and of a CSV file, of which pyarrow reads some
# thirty blocks ahead.
PARQUET_BUFFER, CSV_BLOCK = 1 << 20, 1 << 20
# What ends lines, and bytes at the end of a file that are looked at at once.
LINE_ENDS, TAIL = b"\r\n", 1 << 16
# Distinct labels beyond which a column is no outcome.
MOST_CLASSES = 1000
# Names that a message lists.
LISTED = 12


def arrow() -> Any:
    """Return pyarrow with its readers, or say how to install it."""
    return needed("files", "pyarrow", "pyarrow.csv", "pyarrow.parquet")


# Paths -------------------------------------------------------------------------------------


def listed(paths: Any) -> list[File]:
    """Return the files that paths, globs and folders name, each once, sorted by path.

    In folders, names that begin with a dot or an underscore are not data.
    """
    given = paths if isinstance(paths, Iterable) and not isinstance(paths, str) else [paths]
    found = {os.path.realpath(file): file for path in given for file in _named_by(path)}
    if not found:
        raise ValueError("paths: found an empty list; one file at least is needed")
    return [_file(found[path]) for path in sorted(found)]


def _named_by(path: Any) -> list[str]:
    """Return the files that one path, glob or folder names."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"paths: found {path!r}; a path, a glob, a folder, or a list of them is needed"
        )
    name = os.path.expanduser(os.fsdecode(path))
    if os.path.lexists(name):
        return _within(name) if os.path.isdir(name) else [_regular(name)]
    matches = glob.glob(name, recursive=True)
    found = [_regular(match) for match in matches if not os.path.isdir(match)]
    if "**" not in name:  # which names what is in folders itself
        folders = (match for match in matches if os.path.isdir(match))
        found += [file for folder in folders for file in _within(folder)]
    if not found:
        what = "no file matches it" if glob.has_magic(name) else "there is no such file"
        raise FileNotFoundError(f"paths: found {name!r}, but {what}")
    return found


def _within(folder: str) -> list[str]:
    """Return the files of a folder and of those in it."""
    inside = (path for path in Path(folder).rglob("*") if not path.is_dir())
    found = [
        _regular(str(path))
        for path in inside
        if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if not found:
        raise FileNotFoundError(f"paths: found {folder!r}, a folder without files")
    return found


def _regular(name: str) -> str:
    """Return the name of a regular file; another kind could be read once only, or never."""
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError as error:
        raise FileNotFoundError(f"paths: found {name!r}, a link to nothing") from error
    if not stat.S_ISREG(mode):
        raise ValueError(
            f"paths: found {name!r}, {kind_of(mode)}; regular files are needed, which can be read "
            "more than once"
        )
    return name


def _file(path: str) -> File:
    suffix = Path(path).suffix.lower()
    if suffix not in READERS:
        raise ValueError(
            f"paths: found {path!r}; files must end in {', '.join(READERS)}. Of a folder that "
            "holds others too, a glob such as 'folder/*.parquet' names some"
        )
    return READERS[suffix](path)


# Files -------------------------------------------------------------------------------------


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


# Columns -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Roles:
    """What each column is for.

    `context` is one context for all rows, names of columns with its coefficients, or a function
    of record batches, which then have all columns of the file.
    """

    features: tuple[str, ...]
    outcome: str | None = None
    successes: str | None = None
    trials: str | None = None
    sample_weight: str | None = None
    context: Any = None

    @property
    def coefficients(self) -> tuple[str, ...]:
        """The columns of the context."""
        return self.context if isinstance(self.context, tuple) else ()

    @property
    def others(self) -> tuple[str, ...]:
        """The columns of numbers that are no features."""
        named = (self.successes, self.trials, self.sample_weight)
        return (*(name for name in named if name is not None), *self.coefficients)

    @property
    def all(self) -> tuple[str, ...]:
        """All columns, the outcome first."""
        return (*([] if self.outcome is None else [self.outcome]), *self.others, *self.features)


def roles(
    features: Any = None,
    *,
    outcome: Any = None,
    successes: Any = None,
    trials: Any = None,
    sample_weight: Any = None,
    context: Any = None,
) -> Roles:
    """Return what each column is for; features still to be found are none."""
    named = {
        "outcome": outcome,
        "successes": successes,
        "trials": trials,
        "sample_weight": sample_weight,
    }
    for argument, name in named.items():
        if not (name is None or isinstance(name, str)):
            raise TypeError(f"{argument}: found {name!r}; the name of a column is needed")
    if (outcome is None) == (successes is None) or (successes is None) != (trials is None):
        raise ValueError(
            "outcome: name either the column of outcomes, or those of successes and trials"
        )
    if successes is not None and sample_weight is not None:
        raise ValueError(
            f"sample_weight: found {sample_weight!r} where trials are counted already; weights "
            "are for outcomes"
        )
    found = Roles(_names("features", features), **named, context=_context(context))
    twice = [name for i, name in enumerate(found.all) if name in found.all[:i]]
    if twice:
        raise ValueError(f"features: found column {twice[0]!r} in two places; each has one use")
    return found


def _names(argument: str, names: Any) -> tuple[str, ...]:
    if names is None:
        return ()
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"{argument}: found {names!r}; a list of names of columns is needed")
    found = tuple(names)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"{argument}: found {name!r} in a list; names of columns are needed")
    if not found:
        raise ValueError(f"{argument}: found no names; one column at least is needed")
    return found


def _context(context: Any) -> Any:
    if context is None or callable(context):
        return context
    if isinstance(context, list | tuple) and any(isinstance(each, str) for each in context):
        return _names("context", context)
    array = np.atleast_2d(np.asarray(context))
    if array.shape[0] != 1:
        raise ValueError(
            f"context: found shape {array.shape}; one context for all rows is needed, or a list "
            "of the columns that hold its coefficients, or a function of record batches"
        )
    return array


def _kind(dtype: Any) -> str:
    """Return what the values of a column are, in words."""
    types = arrow().types
    if types.is_dictionary(dtype):
        return _kind(dtype.value_type)
    if types.is_boolean(dtype):
        return "booleans"
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return "numbers"
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return "text"
    return "nothing" if types.is_null(dtype) else str(dtype)


def _plain(column: Any) -> Any:
    """Return a column as an array of plain values, in place of references and decimals."""
    pa = arrow()
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_null(column.type) or pa.types.is_float16(column.type):
        return column.cast(pa.float64())
    if pa.types.is_decimal(column.type):  # by their digits, which is rounded once
        return column.cast(pa.string()).cast(pa.float64())
    return column


def _numbers(column: Any) -> npt.NDArray[Any]:
    """Return a column of numbers or booleans as an array, missing ones NaN."""
    pa = arrow()
    column = _plain(column)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    return np.asarray(column.to_numpy(zero_copy_only=False))


# Labels ------------------------------------------------------------------------------------


@dataclass
class Labels:
    """The classes of an outcome: `meaning` tells the label that each value of a file stands for.

    CSV files have no types, so theirs is what all of their labels can be: whole numbers,
    numbers, booleans, or else text.
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
        for other, path in self.kinds.items():
            if other != kind:
                raise ValueError(
                    f"{file.path}, column {self.column!r}: found {kind}, where {path} has "
                    f"{other}; outcomes must be of one kind in all files"
                )
        self.kinds[kind] = file.path
        self.meaning.update(meaning)
        self._check(file)

    def _check(self, file: File) -> None:
        for label in self.meaning.values():
            if isinstance(label, float) and not label.is_integer():
                raise ValueError(
                    f"{file.path}, column {self.column!r}: found {label!r}; outcomes must be "
                    "whole numbers, booleans or text"
                )

    def classes(self) -> npt.NDArray[Any]:
        """Return the classes, sorted, of which there must be two."""
        known = list(dict.fromkeys(self.meaning.values()))
        found = np.unique(np.array(known, dtype=object if "text" in self.kinds else None))
        if len(found) < 2:
            raise ValueError(
                f"outcome: found one class only, {known[0]!r}, in all files; two or more are needed"
            )
        return found

    def numbers(self) -> dict[Any, int]:
        """Return the number of the class that each value of a file stands for."""
        number = {label: i for i, label in enumerate(self.classes().tolist())}
        return {value: number[label] for value, label in self.meaning.items()}


def _read_labels(found: set[Any]) -> tuple[str, dict[Any, Any]]:
    """Return the kind of labels that are known as text, and what each stands for."""
    pa = arrow()
    spelled = sorted(found)
    if {label.lower() for label in spelled} <= {"true", "false"}:
        return "booleans", {label: label.lower() == "true" for label in spelled}
    for dtype in (pa.int64(), pa.float64()):
        with contextlib.suppress(pa.ArrowInvalid):
            read = pa.array(spelled, pa.string()).cast(dtype).to_pylist()
            return "numbers", dict(zip(spelled, read, strict=True))
    return "text", {label: label for label in spelled}


# Rows --------------------------------------------------------------------------------------


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
        """Return the features as a table of floats."""
        names = list(self.roles.features)
        return arrow().table([self._column(name).astype(np.float64) for name in names], names)

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
        column = _plain(self.piece.cells.column(self.roles.outcome))
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

    def context(self) -> Any:
        """Return the context of each row, or of all."""
        if callable(self.roles.context):
            return self.roles.context(self.piece.cells)
        if self.roles.coefficients:
            return np.stack([self._column(name) for name in self.roles.coefficients], axis=1)
        return self.roles.context

    def _column(self, name: str) -> npt.NDArray[Any]:
        return _numbers(self.piece.cells.column(name))


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
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "trials.csv").write_text("dose,died\n0.5,yes\n0.1,no\n")
    ...     rows = Rows(folder, roles(outcome="died"), batch_rows=1)
    ...     rows.classes().tolist()
    ...     [batch.points()["dose"].to_pylist() for batch in rows.read("learning")]
    ['no', 'yes']
    [[0.5], [0.1]]
    """

    def __init__(
        self, paths: Any, roles: Roles, batch_rows: Any = 1 << 17, progress: bool | None = False
    ) -> None:
        arrow()
        if not isinstance(batch_rows, Integral) or batch_rows < 1:
            raise ValueError(f"batch_rows: found {batch_rows!r}; a positive whole number is needed")
        self.files = listed(paths)
        schemas = [file.schema() for file in self.files]
        if not roles.features:
            roles = _with_features(roles, self.files, schemas)
        for file, schema in zip(self.files, schemas, strict=True):
            _check(file, schema, roles)
        self.roles, self.schemas, self.batch_rows = roles, schemas, int(batch_rows)
        self._classes: dict[Any, int] = {}
        self._bar = _bar(progress)

    def __enter__(self) -> Rows:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def header(self) -> Any:
        """Return a table of one row that has the names of the features."""
        return arrow().table({name: [0.0] for name in self.roles.features})

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
                _require_few(outcome, found)
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
        names = _spelled([file.path for file in self.files])
        return ValueError(f"paths: found {what} in {len(self.files)} files: {names}")

    def _add(self, labels: Labels, number: int, found: set[Any]) -> None:
        kind = _kind(self.schemas[number].field(labels.column).type)
        labels.add(self.files[number], found, kind)
        _require_few(labels.column, labels.meaning)

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
        if roles.outcome is not None:
            types[roles.outcome] = pa.string()
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


def _with_features(roles: Roles, files: list[File], schemas: list[Any]) -> Roles:
    """Return the roles with all other columns as features, if there is no doubt."""
    first = schemas[0]
    for file, schema in zip(files, schemas, strict=True):
        odd = set(schema.names) ^ set(first.names)
        if odd:
            raise ValueError(
                f"features: {files[0].path} and {file.path} do not have the same columns "
                f"({_spelled(sorted(odd))}); name those that are features"
            )
    names = tuple(name for name in first.names if name not in roles.all)
    for name in dict.fromkeys(names):
        kind = _kind(first.field(name).type) if names.count(name) == 1 else "two of that name"
        if name.startswith("__index_level_"):
            kind = "the index of a pandas dataframe"
        if kind not in ("numbers", "booleans", "nothing"):
            raise ValueError(
                f"features: {files[0].path}, column {name!r}: found {kind}; name the columns "
                "that are features"
            )
    if not names:
        raise ValueError(f"features: {files[0].path} has no other columns; one at least is needed")
    if callable(roles.context):
        raise ValueError(
            "features: name them where context is a function, whose columns may be none of them"
        )
    return Roles(names, **{k: v for k, v in vars(roles).items() if k != "features"})


def _check(file: File, schema: Any, roles: Roles) -> None:
    """Raise for the first column that the file lacks, has twice, or has of another kind."""
    for name in roles.all:
        times = schema.names.count(name)
        if times != 1:
            what = "has no column" if not times else f"has {times} columns"
            raise ValueError(f"{file.path}: {what} {name!r}; it has {_spelled(schema.names)}")
        if isinstance(file, CSV):  # which is judged value by value
            continue
        kind = _kind(schema.field(name).type)
        allowed = ("numbers", "booleans", *(["text"] if name == roles.outcome else []))
        if kind not in (*allowed, "nothing"):
            raise ValueError(
                f"{file.path}, column {name!r}: found {kind}; {' or '.join(allowed)} are needed"
            )


def _require_few(column: str, labels: Any) -> None:
    if len(labels) > MOST_CLASSES:
        raise ValueError(
            f"outcome: found more than {MOST_CLASSES} classes in column {column!r}; "
            "measurements are no outcomes"
        )


def _spelled(names: Sequence[str]) -> str:
    more = [f"and {len(names) - LISTED} more"] if len(names) > LISTED else []
    return ", ".join([*map(repr, names[:LISTED]), *more]) or "none"


# Progress ----------------------------------------------------------------------------------


def _bar(progress: bool | None) -> Any:
    """Return a bar that shows how far it is and the time left, or None."""
    if progress is None:
        progress = sys.stderr.isatty() and importlib.util.find_spec("rich") is not None
    if not progress:
        return None
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError as error:
        raise ImportError("rich is needed to show progress: pip install rich") from error
    return Progress(console=Console(stderr=True))
