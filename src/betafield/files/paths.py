"""The files that paths, globs and folders name."""

from __future__ import annotations

import glob
import os
import stat
from pathlib import Path
from typing import Any

from betafield import checks
from betafield.persistence import kind_of
from betafield.refusals import Refused, mistyped, refused

_RULE = "a path, a glob, a folder, or a list of them is needed"


def named(paths: Any) -> list[str]:
    """Return the paths of the files that paths, globs and folders name, each once, sorted.

    In folders, names that begin with a dot or an underscore are not data.
    """
    is_one = isinstance(paths, str | os.PathLike)
    given = [paths] if is_one else checks.items("paths", paths, _RULE)
    found = {os.path.realpath(file): file for path in given for file in _named_by(path)}
    if not found:
        raise refused("paths", "found an empty list; at least one file is needed")
    return [found[path] for path in sorted(found)]


def _named_by(path: Any) -> list[str]:
    """Return the files that one path, glob or folder names."""
    if not isinstance(path, str | os.PathLike):
        raise mistyped("paths", f"found {checks.spelled(path)}; {_RULE}")
    name = os.path.expanduser(os.fsdecode(path))
    if os.path.lexists(name):
        return _within(name) if os.path.isdir(name) else [_regular(name)]
    matches = glob.glob(name, recursive=True)
    found = [_regular(match) for match in matches if not os.path.isdir(match)]
    if "**" not in name:  # which matches the contents of folders itself
        folders = (match for match in matches if os.path.isdir(match))
        found += [file for folder in folders for file in _within(folder)]
    if not found:
        what = "no file matches it" if glob.has_magic(name) else "there is no such file"
        raise Refused("paths", f"found {name!r}, but {what}").error(FileNotFoundError)
    return found


def _within(folder: str) -> list[str]:
    """Return the files in a folder and its subfolders."""
    inside = (path for path in Path(folder).rglob("*") if not path.is_dir())
    found = [
        _regular(str(path))
        for path in inside
        if not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if not found:
        raise Refused("paths", f"found {folder!r}, a folder without files").error(FileNotFoundError)
    return found


def _regular(name: str) -> str:
    """Return the name of a regular file; others could be read only once, or never."""
    try:
        mode = os.stat(name).st_mode
    except FileNotFoundError as error:
        raise Refused("paths", f"found {name!r}, a broken link").error(FileNotFoundError) from error
    if not stat.S_ISREG(mode):
        raise refused(
            "paths",
            f"found {name!r}, {kind_of(mode)}; regular files are needed, which can be read "
            "more than once",
        )
    return name
