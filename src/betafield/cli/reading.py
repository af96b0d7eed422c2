"""Tables from files and standard input, and which of their columns are used.

Files are read by `betafield.files`. This module only checks beforehand whether a file is readable
text, guesses columns that are not named, and reports what else people would want to know.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import betafield.cli.outcomes as outcomes
import betafield.cli.spelling as spelling
from betafield.cli.terminal import is_watched, progress
from betafield.cli.usage import UsageError

if TYPE_CHECKING:
    from betafield.cli.terminal import Advance
    from betafield.files import File, Labels, Roles, Rows

STANDARD = "standard input"
# Bytes of a text file inspected before it is read, and other separators looked for there.
HEAD = 1 << 16
TEXT = (".csv", ".tsv")
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars", ",": "commas"}
# A column with more spellings of its values (0, 0.0, 1 and 1.0 are four) is not an outcome.
SPELLINGS = 8
# Rows per batch.
ROWS = 1 << 17
TAB = "\t"
# Names of columns that number the rows, as spreadsheets and dataframes write them.
NUMBERING = {"", "id", "index", "row", "unnamed: 0"}


class Given(NamedTuple):
    """Tables, and whether to drop rows without a value."""

    files: list[File]
    drop_missing: bool = False

    def rows(
        self,
        roles: Roles,
        watched: bool = False,
        categorical: Any = None,
        batch_rows: int = ROWS,
        may_miss: Sequence[str] = (),
    ) -> Rows:
        """Return the rows of all files."""
        from betafield.files import Rows

        how = (batch_rows, watched, categorical, None, self.drop_missing, may_miss)
        return Rows(self.files, roles, *how)


# Standard input ----------------------------------------------------------------------------


@contextlib.contextmanager
def tables(
    paths: Sequence[str], separator: str | None = None, drop_missing: bool = False
) -> Iterator[Given]:
    """Give tables that are readable, with standard input in a temporary file."""
    if list(paths).count("-") > 1:
        raise UsageError("FILE: found - twice; standard input can be read only once")
    mark, named = spelling.separator(separator), [path for path in paths if path != "-"]
    files = _listed(named, mark) if named else []
    with contextlib.ExitStack() as stack:
        if "-" in paths:
            real = stack.enter_context(_spooled(_suffix))
            files = [*files, *_listed([real], mark, STANDARD)]
        for file in files:
            _require_text(file)
        yield Given(files, drop_missing)


def inputs(paths: Sequence[str]) -> list[str]:
    """Return the files that paths of tables name; `-` for standard input is kept."""
    named = [path for path in paths if path != "-"]
    found = [file.path for file in _listed(named)] if named else []
    return [*found, *(path for path in paths if path == "-")]


@contextlib.contextmanager
def model_file(path: str) -> Iterator[tuple[str, str | None]]:
    """Give the path of a model and what errors call it, with standard input in a temporary file."""
    if path != "-":
        yield path, None
        return
    with _spooled(lambda _: ".beta") as real:
        yield real, STANDARD


@contextlib.contextmanager
def _spooled(suffix: Callable[[bytes], str]) -> Iterator[str]:
    """Give the path of a temporary file with all of standard input."""
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(f"-: {STANDARD} is a terminal; pipe a file into it")
    stream = sys.stdin.buffer
    with tempfile.TemporaryDirectory(prefix="betafield-") as folder:
        start = stream.read(4)
        real = os.path.join(folder, f"stdin{suffix(start)}")
        with open(real, "wb") as file:
            file.write(start)
            shutil.copyfileobj(stream, file)
        yield real


def _suffix(start: bytes) -> str:
    return ".parquet" if start == b"PAR1" else ".csv"


def stem(path: str) -> str:
    """Return a name for a result: that of the file, without folder and ending.

    Examples
    --------
    >>> stem("-")
    'model'
    """
    if path == "-":
        return "model"
    # For a glob or a folder: its first file.
    return Path(path if os.path.isfile(path) else _listed([path])[0].path).stem


def _listed(
    paths: Sequence[str], separator: str | None = None, name: str | None = None
) -> list[File]:
    from betafield import files

    return files.listed(list(paths), separator, name=name)


# Text --------------------------------------------------------------------------------------


def _require_text(file: File) -> None:
    """Raise unless a text file is valid UTF-8 with the expected separator."""
    name = file.name
    if Path(file.path).suffix.lower() not in TEXT:
        return
    with open(file.path, "rb") as opened:
        head = opened.read(HEAD)
    if not head.strip(b"\xef\xbb\xbf\r\n "):
        raise ValueError(f"{name}: is empty; a line of column names and rows are needed")
    if b"\0" in head:
        raise ValueError(
            f"{name}: is not text in UTF-8; it has NUL bytes, as UTF-16 and binaries do"
        )
    header = head.splitlines()[0]
    try:
        text = header.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name}: is not text in UTF-8; its first line has byte 0x{header[error.start]:02x} "
            f"at place {error.start}, so convert it"
        ) from error
    expected = getattr(file, "separator", ",")
    for mark, called in SEPARATORS.items():
        if mark in text and expected not in text:
            raise ValueError(
                f"{name}: its columns are separated by {called}, not by {expected!r}; add "
                f"--separator {'tab' if mark == TAB else repr(mark)}"
            )


# Columns -----------------------------------------------------------------------------------


class Columns(NamedTuple):
    """The roles of columns, and messages about those that were guessed."""

    features: list[str]
    outcome: str | None
    guessed: list[str]


def columns(
    given: Given,
    features: list[str] | None,
    outcome: str | None,
    others: dict[str, str | None],
    distorting: tuple[str, ...],
    categorical: Any = None,
) -> Columns:
    """Return the columns to use; those not named are guessed if the files leave no doubt.

    Parameters
    ----------
    given : Given
        The files.
    features, outcome
        The named columns.
    others : dict
        The columns of successes, trials and weights, by role.
    distorting : tuple of str
        The columns that contexts read.
    categorical : "from_dtype" or list of str
        Which features are categories.
    """
    for file in given.files if distorting else ():
        _require_columns(file, distorting)
    guessed = []
    used = [*(name for name in others.values() if name), *distorting, *(features or ())]
    if outcome is None and others.get("successes") is None:
        outcome = _only_outcome(given, used)
        guessed.append(f"outcome {outcome!r}, the only column with two values")
    if features is None:
        features = _other_columns(given, outcome, others, distorting, categorical)
        are = "the only other column" if len(features) == 1 else "all other columns"
        guessed.append(f"features {', '.join(map(repr, features))}, {are}")
    return Columns(features, outcome, guessed)


def numbers(given: Given, meant: Columns, categorical: Any) -> list[str]:
    """Return the features that are not categories."""
    from betafield.files import Roles

    roles = given.rows(Roles(tuple(meant.features)), categorical=categorical).roles
    return [name for name in roles.features if name not in roles.categories]


def success(
    given: Given, meant: Columns, said: str | None, categorical: Any = None
) -> tuple[Any, list[str]]:
    """Return the success and messages if it was guessed; None if rows have counts."""
    from betafield.files import Roles

    outcome = meant.outcome
    if outcome is None:
        return None, []
    roles = Roles(tuple(meant.features), outcome)
    with given.rows(roles, is_watched(), categorical) as rows:
        label, told = outcomes.success(outcome, rows.classes(alone=True).tolist(), said)
    return label, [] if told is None else [told]


def _require_columns(file: File, names: tuple[str, ...]) -> None:
    there = file.schema().names
    for name in names:
        if there.count(name) != 1:
            what = f"has {there.count(name)} columns" if name in there else "has no column"
            raise ValueError(f"{file.name}: {what} {name!r}; it has {', '.join(map(repr, there))}")


def _other_columns(
    given: Given,
    outcome: str | None,
    others: dict[str, Any],
    distorting: tuple[str, ...],
    categorical: Any = None,
) -> list[str]:
    """Return all other columns, if all are numeric and none is a row number."""
    from betafield.files import Roles

    context = tuple(dict.fromkeys(distorting)) or None
    roles = Roles((), outcome, **others, context=context)
    found = list(given.rows(roles, categorical=categorical).roles.features)
    for name in found:
        if name.strip().lower() in NUMBERING:
            raise ValueError(
                f"--features: column {name!r} seems to number the rows; name the columns that are "
                "features with --features"
            )
    return found


def _only_outcome(given: Given, used: list[str]) -> str:
    """Return the only column with two values over all rows of all files."""
    found = [name for name in _two_valued(given.files) if name not in used]
    if len(found) == 1:
        return found[0]
    which = f"columns {', '.join(map(repr, found))} have" if found else "no column has"
    raise ValueError(
        f"--outcome: {which} two values; name the outcome with --outcome, or counts with "
        "--successes and --trials"
    )


def _two_valued(listed: list[File]) -> list[str]:
    """Return the columns with two values over all rows of all files."""
    from betafield.files import Labels

    names = listed[0].schema().names
    few = {name: Labels(name) for name in names if names.count(name) == 1}
    size = sum(os.path.getsize(file.path) for file in listed)
    with progress("looking at columns", size, is_watched()) as advance:
        for file in listed:
            few = _still_few(file, few, advance)
    if few and not any(labels.meaning for labels in few.values()):
        raise ValueError(f"{', '.join(file.name for file in listed)}: no rows to learn from")
    return [name for name, labels in few.items() if len(set(labels.meaning.values())) == 2]


def _still_few(file: File, few: dict[str, Labels], advance: Advance) -> dict[str, Labels]:
    """Return the columns that have few values in this file too, with its values added."""
    schema = file.schema()
    columns = {name: _type(file) for name in few if schema.names.count(name) == 1}
    found: dict[str, set[Any]] = {name: set() for name in columns}
    for piece in file.pieces(columns, ROWS):
        for name in list(found):
            found[name] |= _values(piece.cells.column(name))
            if len(found[name]) > SPELLINGS:
                del found[name]
        advance(piece.size)
    still = {}
    for name, values in found.items():
        with contextlib.suppress(ValueError):  # measurements, or text here and numbers elsewhere
            few[name].add(file, values, str(schema.field(name).type))
            still[name] = few[name]
    return still


def _type(file: File) -> Any:
    """Return the type to read a column as: text for CSV, else that of the file."""
    from betafield.files import CSV, arrow

    return arrow().string() if isinstance(file, CSV) else None


def _values(column: Any) -> set[Any]:
    """Return the distinct values of a column; nested values cannot be labels."""
    if column.type.num_fields:
        return set(range(SPELLINGS + 1))
    return set(column.unique().drop_null().to_pylist())
