"""A consistent copy of a database that is in use."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

# Pages copied at once, so that the server hardly has to wait.
PAGES = 4096


def copied(source: Path, target: Path) -> int:
    """Copy an SQLite file by online backup, check the copy, and return its number of trials."""
    part = target.with_name(f"{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        trials = _copy(source, part)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return trials


def _copy(source: Path, part: Path) -> int:
    uri = f"{source.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as old, closing(sqlite3.connect(part)) as new:
        old.backup(new, pages=PAGES, sleep=0.001)
        new.execute("PRAGMA journal_mode=DELETE")
        (said,) = new.execute("PRAGMA integrity_check").fetchone()
        if said != "ok":
            raise ValueError(f"{source}: found a damaged file: {said}")
        (trials,) = new.execute("SELECT count(*) FROM trials").fetchone()
    return int(trials)
