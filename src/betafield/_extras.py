"""Optional packages, imported on use."""

from importlib import import_module
from typing import Any

from betafield._interrupts import held


@held()
def needed(extra: str, *names: str) -> Any:
    """Import these modules and return the first, or say how to install them.

    Examples
    --------
    >>> needed("plot", "graphics_of_tomorrow.lines")
    Traceback (most recent call last):
    ImportError: graphics_of_tomorrow is needed for this: pip install '.[plot]' in a checkout
    """
    for name in names:
        try:
            import_module(name)
        except ImportError as error:
            package = name.partition(".")[0]
            raise ImportError(
                f"{package} is needed for this: pip install '.[{extra}]' in a checkout"
            ) from error
    return import_module(names[0])
