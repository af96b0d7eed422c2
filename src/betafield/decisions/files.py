"""Files of experiments, bandits and trackers. They are untrusted, so everything is validated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from betafield import persistence
from betafield.persistence import Arrays
from betafield.refusals import refused

T = TypeVar("T")


def load(path: Any, kind: str, make: Callable[[Any, Arrays], T]) -> T:
    """Return `make(values, arrays)` for the contents of a file.

    If it raises, the error names the file.
    """
    values, arrays = persistence.read(path, kind)
    try:
        return make(values, dict(arrays))
    except (TypeError, ValueError, OverflowError) as error:
        raise refused(
            "path", f"{str(path)!r} does not contain a consistent {kind.lower()}: {error}"
        ) from error
