"""Optional packages that only files need: pyarrow, and rich for progress."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

from betafield import checks
from betafield._extras import needed


def arrow() -> Any:
    """Return pyarrow with its readers, or say how to install it."""
    return needed("files", "pyarrow", "pyarrow.compute", "pyarrow.csv", "pyarrow.parquet")


def bar(progress: bool | None) -> Any:
    """Return a progress bar with the time left, or None."""
    if progress is None:
        progress = sys.stderr.isatty() and importlib.util.find_spec("rich") is not None
    if not checks.flag("progress", progress, "True, False or None is needed"):
        return None
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError as error:
        raise ImportError("rich is needed to show progress: pip install rich") from error
    return Progress(console=Console(stderr=True))
