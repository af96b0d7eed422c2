"""Outcomes on disk until the server has them: lines of JSON, which are never changed.

    {"key": …, "study": …, "path": …, "body": …}   to be sent
    {"done": key}                                   the server has it
    {"refused": key, "why": …}                      the server has refused it

A line is on disk before its outcome is sent. A process that is killed while writing leaves an
incomplete last line; `tell` had not returned for its outcome, so the line is cut off. Any other
file is refused and left unchanged.
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
    """The outcomes told to a study that the server may not have yet.

    Parameters
    ----------
    path : str or path
        A file, created if it does not exist. Only one process at a time can open it.
    study : str
        Name of the study; the journal of another study is refused.

    Attributes
    ----------
    unsent : dict of str to dict
        Entries by key, the oldest first.
    refused : list of dict
        Entries that the server has refused, with `why`.

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
        """Read all complete lines, cut off the rest, and return the length of the file."""
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
        """Write to disk what is to be sent."""
        entry = {"key": key, "study": self._study, "path": path, "body": dict(body)}
        self._write(entry)
        os.fsync(self._file)
        self.unsent[key] = entry

    def done(self, key: str) -> None:
        """Record that the server has an entry.

        A crash may lose this line; the entry is then sent again, and counts once.
        """
        self._write({"done": key})
        self._end(key, {})

    def refuse(self, key: str, why: str) -> None:
        """Record that the server has refused an entry."""
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
    """Open the file, creating it if necessary; errors name the argument."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise type(error)(error.errno, f"journal: {error.strerror}", str(path)) from error
