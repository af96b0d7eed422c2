"""What a model has learned, as plain values and arrays, and back.

    common    options, classes, features, trials seen
    windows   a field of windows
    smooth    a field of a process
    older     what earlier releases wrote

A loaded model answers, learns and merges like the saved one to the last bit.

A file may be anybody's. Compiled loops do not ask whether a number lies within an array, so every
value is checked before anything is built, and in the same way before it is written: what is saved
can be loaded. What a caller may choose badly, such as a width of 1e-300, may stand in a file too.
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


def load(path: Any) -> AnyField:
    """Return the field of a file."""
    values, arrays = persistence.read(path, KIND)
    try:
        return restored(values, arrays)
    except (TypeError, ValueError, OverflowError) as error:
        raise refused(
            "path", f"{str(path)!r} does not contain a consistent model: {error}"
        ) from error


def stored(field: AnyField) -> tuple[dict[str, Any], Arrays]:
    """Return a field as plain values and arrays, which are sound."""
    return smooth.stored(field) if isinstance(field, SmoothField) else windows.stored(field)


def restored(values: Any, arrays: Arrays) -> AnyField:
    """Return the field of these values and arrays, all of which must belong to it."""
    if isinstance(values, dict) and "chosen" in values:
        return older.restored(values, arrays)
    is_smooth = isinstance(values, dict) and values.get("kind") == "smooth"
    return smooth.restored(values, arrays) if is_smooth else windows.restored(values, arrays)
