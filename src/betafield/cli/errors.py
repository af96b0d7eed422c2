"""What went wrong, in one sentence of the command line's own words, and the status it makes."""

from __future__ import annotations

import re
import sys

from betafield.cli.terminal import printable
from betafield.cli.usage import DEBUG, FAILED, NAME, USAGE, UsageError

# Arguments of the library that are options here by the same name: a wrong one is wrong usage.
_OPTIONS = (
    "method",
    "bandwidth",
    "lipschitz",
    "metric",
    "scale",
    "prior",
    "sharing",
    "level",
    "separator",
)
_OPTION = re.compile(rf"^({'|'.join(_OPTIONS)}):")
# Arguments of the library that have other names here.
_RENAMED = {
    "path: ": "",
    "paths: ": "",
    "sample_weight: ": "--weights: ",
    "outcome: ": "--outcome: ",
    "groups: ": "--groups: ",
    "overdispersion: ": "--overdispersion: ",
    "features: ": "--features: ",
    "bounds: ": "--bounds: ",
    "error: ": "--error, squared: ",
    "background: ": "--background: ",
    "d: ": "--features: ",
    "monotonic_cst": "--monotonic",
    "periodic": "--periodic",
    "geographic": "--geographic",
    "interactions": "--interactions",
    "categorical_features": "--categorical",
    "feature: ": "--feature: ",
    "at: ": "--fixed: ",
    "under: ": "--under: ",
    "size: ": "--draws: ",
    "random_state: ": "--seed: ",
    "t: ": "--trials: ",
}
# What the library advises, in options.
_ADVICE = {
    "missing='drop'": "--drop-missing",
    "missing='level'": "--missing level",
    "in categorical_features": "with --categorical",
}


def tell(error: Exception) -> int:
    """Write one sentence about what went wrong, and return the status."""
    said, status = _sentence(error)
    said = printable(said)
    if sys.stderr is not None:
        sys.stderr.write(f"{NAME}: error: {said}\n")
    return status


def _sentence(error: Exception) -> tuple[str, int]:
    """Return what went wrong in one line, and the status that goes with it."""
    if hasattr(error, "format_message"):  # of typer, whichever its version
        said = " ".join(error.format_message().split()).rstrip(".")
        path = getattr(getattr(error, "ctx", None), "command_path", NAME)
        return f"{said[:1].lower()}{said[1:]}; see {path} --help", USAGE
    said = " ".join(str(error).split())
    if isinstance(error, OSError) and error.strerror:
        said = ": ".join(str(part) for part in (error.filename, error.strerror) if part)
    for theirs, ours in _RENAMED.items():
        said = ours + said.removeprefix(theirs) if said.startswith(theirs) else said
    for theirs, ours in _ADVICE.items():
        said = said.replace(theirs, ours)
    if isinstance(error, ValueError) and _OPTION.match(said):
        return f"--{said}", USAGE
    if not isinstance(error, ValueError | TypeError | OSError | ImportError):
        kind = type(error).__name__
        said = f"{kind}{': ' if said else ''}{said}; run it with {DEBUG} to see where"
    return said, USAGE if isinstance(error, UsageError) else FAILED
