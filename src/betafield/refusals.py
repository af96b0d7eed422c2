"""Errors about arguments that say what they are about, to programs as well as to people.

Whoever took an argument under another name, or rows from a file, tells the error in their own
words: by what it is about, never by its text.
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
        Where else, such as "column 'dose'".
    """

    argument: str
    said: str
    row: int | None = None
    part: str = ""

    def __str__(self) -> str:
        row = "" if self.row is None else f" row {self.row}"
        return f"{self.argument}{row}{', ' if self.part else ''}{self.part}: {self.said}"

    def error(self, kind: type[E]) -> E:
        """Return the error that says it."""
        return self.on(kind(str(self)))

    def on(self, error: E) -> E:
        """Note it on an error that says it."""
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
    """Return the same about an argument that is another kind of thing altogether."""
    return Refused(argument, said, row).error(TypeError)


def about(error: BaseException) -> Refused | None:
    """Return what an error is about, if it is one of these.

    Examples
    --------
    >>> about(refused("level", "found 2; a number between 0 and 1 is needed")).argument
    'level'
    >>> about(ValueError("level: found 2"))
    """
    found: Refused | None = getattr(error, "refused", None)
    return found
