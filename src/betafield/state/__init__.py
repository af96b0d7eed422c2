"""A fitted model as plain values and arrays, and back.

    common    options, classes, features, trials seen
    windows   a field of windows
    smooth    a field of a process
    older     files of earlier releases

A loaded model answers, learns and merges like the saved one to the last bit.

Files are untrusted. Compiled loops do not check array bounds, so every value is validated before
anything is built from it, and in the same way before it is written, so that whatever is saved can
be loaded. A bad choice that callers are free to make, such as a width of 1e-300, is valid in a file
too.
"""

from __future__ import annotations

from typing import Any

from betafield import persistence
from betafield.methods import AnyField
from betafield.persistence import Arrays
from betafield.refusals import refused
from betafield.smooth import SmoothField
from betafield.state import older, smooth, windows
from betafield.state.common import restored_options, stored_options
from betafield.state.smooth import restored_rates

__all__ = [
    "load",
    "restored",
    "restored_options",
    "restored_rates",
    "save",
    "stored",
    "stored_options",
]

KIND = "SmoothBetaClassifier"


def save(field: AnyField, path: Any) -> None:
    """Write a field to a file."""
    persistence.write(path, KIND, *stored(field))


def load(path: Any, name: str | None = None) -> AnyField:
    """Return the field in a file; `name` is what errors call it, if its path says nothing."""
    values, arrays = persistence.read(path, KIND, name)
    try:
        return restored(values, arrays)
    except (TypeError, ValueError, OverflowError) as error:
        raise refused(
            "path", f"{name or repr(str(path))} does not contain a consistent model: {error}"
        ) from error


def stored(field: AnyField) -> tuple[dict[str, Any], Arrays]:
    """Return a field as plain values and arrays, validated."""
    return smooth.stored(field) if isinstance(field, SmoothField) else windows.stored(field)


def restored(values: Any, arrays: Arrays) -> AnyField:
    """Return the field with these values and arrays; unknown arrays are an error."""
    if isinstance(values, dict) and "chosen" in values:
        return older.restored(values, arrays)
    is_smooth = isinstance(values, dict) and values.get("kind") == "smooth"
    return smooth.restored(values, arrays) if is_smooth else windows.restored(values, arrays)
