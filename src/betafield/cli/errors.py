"""Error messages in one sentence, in terms of the command line, and their exit statuses."""

from __future__ import annotations

import sys

from betafield.cli.terminal import printable
from betafield.cli.usage import DEBUG, FAILED, NAME, USAGE, UsageError
from betafield.refusals import Refused, about

# Arguments of the library that are options here by the same name: a wrong one is wrong usage.
_LEARNING = {"bandwidth", "lipschitz", "method", "metric", "prior", "scale", "sharing"}
_OPTIONS = {*_LEARNING, "level", "separator"}
# Arguments of the library that have other names here, also where a part of them is wrong.
_RENAMED = {
    "monotonic_cst": "--monotonic",
    "periodic": "--periodic",
    "geographic": "--geographic",
    "interactions": "--interactions",
    "categorical_features": "--categorical",
}
# Those that have other names only as a whole; of paths, the message says enough.
_RENAMED_WHOLE = {
    "path": "",
    "paths": "",
    "sample_weight": "--weights",
    "outcome": "--outcome",
    "groups": "--groups",
    "overdispersion": "--overdispersion",
    "features": "--features",
    "bounds": "--bounds",
    "error": "--error, squared",
    "background": "--background",
    "d": "--features",
    "feature": "--feature",
    "at": "--fixed",
    "under": "--under",
    "size": "--draws",
    "random_state": "--seed",
    "t": "--trials",
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
    said = " ".join(_renamed(error).split())
    if isinstance(error, OSError) and error.strerror and about(error) is None:
        said = ": ".join(str(part) for part in (error.filename, error.strerror) if part)
    for theirs, ours in _ADVICE.items():
        said = said.replace(theirs, ours)
    if isinstance(error, ValueError) and _is_option(about(error)):
        return f"--{said}", USAGE
    if not isinstance(error, ValueError | TypeError | OSError | ImportError):
        kind = type(error).__name__
        said = f"{kind}{': ' if said else ''}{said}; run it with {DEBUG} to see where"
    return said, USAGE if isinstance(error, UsageError) else FAILED


def _renamed(error: Exception) -> str:
    """Return what is said of an argument of the library, said of the option."""
    found = about(error)
    if found is None:
        return str(error)
    names = _RENAMED_WHOLE | _RENAMED if _is_whole(found) else _RENAMED
    ours = names.get(found.argument, found.argument)
    return str(found._replace(argument=ours)) if ours else found.said


def _is_option(found: Refused | None) -> bool:
    return found is not None and found.argument in _OPTIONS and _is_whole(found)


def _is_whole(found: Refused) -> bool:
    return found.row is None and not found.part
