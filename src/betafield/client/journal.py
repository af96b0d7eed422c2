"""Outcomes on disk until the server has them: lines of JSON, which are never changed.

    {"key": …, "study": …, "path": …, "body": …}   what is to be sent
    {"done": key}                                   the server has it
    {"refused": key, "why": …}                      the server will not have it

A line is on disk before its outcome is sent. Whoever was killed while writing leaves a last line
without an end; its outcome was never said to be kept, and the line is cut off. Everything else
that does not consist of such lines is refused, and nothing is changed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from betafield import checks
from betafield.persistence import sync_folder

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

Entry = dict[str, Any]
FIELDS = {"key": str, "study": str, "path": str, "body": dict}


class Journal:
    """What a study was told and the server may not have yet.

    Parameters
    ----------
    path : str or path
        A file, made if there is none. One process at a time has it.
    study : str
        Name of the study; a journal of another one is refused.

    Attributes
    ----------
    unsent : dict of str to dict
        By key, the oldest first.
    refused : list of dict
        Those that the server will not have, and `why`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     journal = Journal(f"{folder}/dots.jsonl", "dots")
    ...     journal.add("a", "/trials/0/outcome", {"success": True})
    ...     journal.add("b", "/trials/1/outcome", {"success": False})
    ...     journal.done("a")
    ...     journal.close()
    ...     again = Journal(f"{folder}/dots.jsonl", "dots")
    ...     list(again.unsent)
    ...     again.close()
    ['b']
    """

    def __init__(self, path: Any, study: str) -> None:
        self.unsent: dict[str, Entry] = {}
        self.refused: list[Entry] = []
        self._study = study
        given: Any = checks.instance("journal", path, (str, os.PathLike), "a path is needed")
        self.path = Path(given)
        self._file = _opened(self.path)
        try:
            self._lock()
            self._size = self._read()
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"journal: {str(self.path)!r} is in use by another study") from None

    # Reading.

    def _read(self) -> int:
        """Take in all whole lines, cut off what follows them, and return how long that is."""
        data = self.path.read_bytes()
        size = data.rfind(b"\n") + 1
        for number, line in enumerate(data[:size].splitlines(), 1):
            self._take(f"journal: line {number} of {str(self.path)!r}", line)
        if size < len(data):
            os.ftruncate(self._file, size)
        os.fsync(self._file)
        sync_folder(str(self.path.parent))
        return size

    def _take(self, what: str, line: bytes) -> None:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ValueError(f"{what} is not a JSON object: found {checks.spelled(line)}")
        if "key" in found:
            self._take_entry(what, found)
        else:
            self._end(found.get("done", found.get("refused")), found)

    def _take_entry(self, what: str, found: Entry) -> None:
        for name, kind in FIELDS.items():
            if not isinstance(found.get(name), kind):
                raise ValueError(f"{what} has no valid {name!r}: found {checks.spelled(found)}")
        if found["study"] != self._study:
            raise ValueError(f"{what} is of the study {found['study']!r}, not {self._study!r}")
        self.unsent[found["key"]] = found

    def _end(self, key: Any, line: Mapping[str, Any]) -> None:
        entry = self.unsent.pop(key, None) if isinstance(key, str) else None
        if entry is not None and "refused" in line:
            self.refused.append({**entry, "why": line.get("why")})

    # Writing.

    def add(self, key: str, path: str, body: Mapping[str, Any]) -> None:
        """Put on disk what is to be sent."""
        entry = {"key": key, "study": self._study, "path": path, "body": dict(body)}
        self._write(entry)
        os.fsync(self._file)
        self.unsent[key] = entry

    def done(self, key: str) -> None:
        """Say that the server has it.

        A crash may lose this line; then it is sent again, and counts once.
        """
        self._write({"done": key})
        self._end(key, {})

    def refuse(self, key: str, why: str) -> None:
        """Say that the server will not have it."""
        line = {"refused": key, "why": why}
        self._write(line)
        self._end(key, line)

    def _write(self, line: Mapping[str, Any]) -> None:
        """Append a line, or leave the file as it was."""
        data = json.dumps(line, allow_nan=False).encode("ascii") + b"\n"
        try:
            if os.write(self._file, data) < len(data):
                raise OSError(f"journal: {str(self.path)!r} accepts no more outcomes")
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._size)
            raise
        self._size += len(data)

    def close(self) -> None:
        """Close the file."""
        os.fsync(self._file)
        os.close(self._file)


def _opened(path: Path) -> int:
    """Return the file, which is made if there is none; errors name the argument."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise type(error)(error.errno, f"journal: {error.strerror}", str(path)) from error
