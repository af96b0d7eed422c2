"""Error messages in one sentence, in terms of the command line, and their exit statuses."""

from __future__ import annotations

import re
import sys

from betafield.cli.terminal import printable
from betafield.cli.usage import DEBUG, FAILED, NAME, USAGE, UsageError

# Arguments of the library that are options of the same name: a wrong one is invalid usage.
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
# Arguments of the library that have other names on the command line.
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
# Advice of the library, in terms of options.
_ADVICE = {
    "missing='drop'": "--drop-missing",
    "missing='level'": "--missing level",
    "in categorical_features": "with --categorical",
}


def tell(error: Exception) -> int:
    """Print the error in one sentence, and return the exit status."""
    said, status = _sentence(error)
    said = printable(said)
    if sys.stderr is not None:
        sys.stderr.write(f"{NAME}: error: {said}\n")
    return status


def _sentence(error: Exception) -> tuple[str, int]:
    """Return the error in one line, and its exit status."""
    if hasattr(error, "format_message"):  # typer's errors, in any version
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
