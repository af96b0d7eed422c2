"""One self-contained HTML page about a model.

    summary      the key figures
    learned      a curve, a map, or slices
    sureness     how wide the intervals are
    calibration  whether predictions came true
    near         how far trials reach, and which components answers consist of
    quality      what the trials are like
    advice       where further trials would help most
    recipe       how to reproduce the page

`subject` queries the model, `figures` and `words` format the answers, and `blocks` has the parts of
a page.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from betafield import checks, persistence
from betafield._extras import needed
from betafield.observed import require_model
from betafield.refusals import Refused

if TYPE_CHECKING:
    from betafield.estimators import SmoothBetaClassifier

__all__ = ["html", "write"]


def write(
    model: SmoothBetaClassifier,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    level: float = 0.95,
    lipschitz: float | None = None,
    above: float | None = None,
    command: str | None = None,
    source: Any = None,
) -> None:
    """Write a page about a fitted model that opens from disk, without any network.

    Only the model is needed, because it holds the sums of all trials. The same model gives the same
    page. An existing file is replaced only after everything has succeeded. To check calibration,
    five models with the same length scales and widths each learn from four fifths of the trials.

    Parameters
    ----------
    model : SmoothBetaClassifier
        A fitted model.
    path : str or path
        The file, in an existing folder.
    title : str, default=None
        The heading of the page. None: made from the names of outcome and features.
    level : float, default=0.95
        The level of all intervals.
    lipschitz : float, default=None
        L, how fast the probability may change, in scaled units. If it is given, guaranteed
        intervals are shown too; see `model.band`.
    above : float, default=None
        A level of the probability. If it is given, the page also shows how likely π is above it.
    command : str, default=None
        The command that made the model, for the section on how to reproduce it.
    source : str, path or list of them, default=None
        Where the trials came from.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from betafield import SmoothBetaClassifier
    >>> model = SmoothBetaClassifier(bandwidth=0.5).fit([[0], [1], [2]], [0, 1, 1])
    >>> with TemporaryDirectory() as folder:
    ...     write(model, Path(folder, "report.html"), title="Three trials")
    ...     page = Path(folder, "report.html").read_text(encoding="utf-8")
    >>> "Three trials</h1>" in page
    True
    """
    target = _checked_path(path)
    page = html(
        model,
        title=title,
        level=level,
        lipschitz=lipschitz,
        above=above,
        command=command,
        source=source,
    )
    _replace(target, page.encode("utf-8"))


def html(
    model: SmoothBetaClassifier,
    *,
    title: str | None = None,
    level: float = 0.95,
    lipschitz: float | None = None,
    above: float | None = None,
    command: str | None = None,
    source: Any = None,
) -> str:
    """Return the page that `write` writes."""
    require_model(model)
    level = checks.share("level", level)
    if lipschitz is not None:
        lipschitz = checks.positive("lipschitz", lipschitz, "a positive number or None is needed")
    if above is not None:
        above = checks.probability("above", above)
    _require_text("title", title)
    _require_text("command", command)
    named = _sources(source)
    needed("report", "jinja2", "plotly")
    import betafield.report.page as page
    from betafield.report.recipe import Asked

    return page.rendered(model, Asked(title, level, lipschitz, command, named, above))


# Arguments ---------------------------------------------------------------------------------


def _require_text(name: str, value: Any) -> None:
    if value is not None:
        checks.instance(name, value, str, "a text or None is needed")


def _sources(source: Any) -> str | None:
    """Return the sources of the trials as one text."""
    if source is None:
        return None
    rule = "a text, a path or a list of them is needed"
    alone = isinstance(source, (str, os.PathLike))
    parts = [source] if alone else checks.items("source", source, rule)
    texts = [os.fspath(part) if isinstance(part, (str, os.PathLike)) else None for part in parts]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"source: found {checks.spelled(source)}; {rule}")
    return ", ".join(map(str, texts))


def _checked_path(path: Any) -> str:
    """Return the file's name if it can be written, so that errors come before the page is made."""
    name = persistence.file_name(path)
    folder = os.path.dirname(os.path.realpath(name))
    if os.path.isdir(name):
        said = f"found {name!r}, a folder; a file's name is needed"
        raise Refused("path", said).error(IsADirectoryError)
    if not os.path.isdir(folder):
        said = f"found {name!r}; there is no folder {folder!r}"
        raise Refused("path", said).error(FileNotFoundError)
    return name


def _replace(name: str, content: bytes) -> None:
    """Write a temporary file and rename it, so that the old file stays until all is written."""
    with persistence.replacing(name) as file:
        file.write(content)
