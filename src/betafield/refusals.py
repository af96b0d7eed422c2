"""Errors about arguments that carry the argument's name, the row and the part of it.

A caller that took the argument under another name, or its rows from a file, uses these to rephrase
the error; nothing needs to parse its text.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

E = TypeVar("E", bound=Exception)


class Refused(NamedTuple):
    """What an error is about.

    Parameters
    ----------
    argument : str
        Its name.
    said : str
        What was found, and what is allowed.
    row : int or None
        Which row of it, if that is known.
    part : str
        A further location, such as "column 'dose'".
    """

    argument: str
    said: str
    row: int | None = None
    part: str = ""

    def __str__(self) -> str:
        row = "" if self.row is None else f" row {self.row}"
        return f"{self.argument}{row}{', ' if self.part else ''}{self.part}: {self.said}"

    def error(self, kind: type[E]) -> E:
        """Return an error of this kind with this text."""
        return self.on(kind(str(self)))

    def on(self, error: E) -> E:
        """Attach this to an error and return the error."""
        vars(error)["refused"] = self
        return error


def refused(argument: str, said: str, row: int | None = None, part: str = "") -> ValueError:
    """Return an error about an argument.

    Examples
    --------
    >>> refused("y", "found NaN; every label must be finite", row=3)
    ValueError('y row 3: found NaN; every label must be finite')
    """
    return Refused(argument, said, row, part).error(ValueError)


def mistyped(argument: str, said: str, row: int | None = None) -> TypeError:
    """Return a TypeError about an argument of the wrong type."""
    return Refused(argument, said, row).error(TypeError)


def about(error: BaseException) -> Refused | None:
    """Return what an error is about, or None if that is not known.

    Examples
    --------
    >>> about(refused("level", "found 2; a number between 0 and 1 is needed")).argument
    'level'
    >>> about(ValueError("level: found 2"))
    """
    found: Refused | None = getattr(error, "refused", None)
    return found
