"""Parsing the values of options.

Lists, bounds, numbers and names of columns are parsed; anything else is invalid usage.
"""

from __future__ import annotations

import csv
import math
import re
from fractions import Fraction
from typing import Any

from betafield.cli.usage import UsageError


def names(given: list[str] | None) -> list[str] | None:
    """Return the names in a list such as `lon,lat`; names with commas need double quotes.

    Examples
    --------
    >>> names(["lon,lat", '"a, b"'])
    ['lon', 'lat', 'a, b']
    """
    if not given:
        return None
    return [name.strip() for part in csv.reader(given, skipinitialspace=True) for name in part]


def separator(text: str | None) -> str | None:
    r"""Return the separator of columns; a tab may be spelled out.

    Examples
    --------
    >>> separator("tab"), separator(";")
    ('\t', ';')
    """
    return "\t" if text in ("tab", "\\t") else text


def missing(how: str, is_dropped: bool) -> str:
    """Return how to treat rows without a value; raise if two options disagree.

    Examples
    --------
    >>> missing("error", is_dropped=True), missing("level", is_dropped=False)
    ('drop', 'level')
    """
    if is_dropped and how not in ("error", "drop"):
        raise UsageError(f"--missing, --drop-missing: found {how!r} and drop; give one of them")
    return "drop" if is_dropped else how


def number(option: str, text: str) -> float:
    """Return a number, which may be a fraction.

    Examples
    --------
    >>> number("--guess", "1/4")
    0.25
    """
    found = fraction(text)
    if found is None:
        raise UsageError(f"{option}: found {text!r}; a number is needed, such as 0.25 or 1/4")
    return found


def fraction(text: str) -> float | None:
    """Return a number or a fraction; None if the text is neither."""
    try:
        return float(Fraction(text.replace(" ", "")))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Return the numbers of a list such as `1,0.5`."""
    return tuple(number(option, part) for part in text.split(","))


def number_or_name(text: str) -> Any:
    """Return a number if the text is one, else the text; whole numbers are integers."""
    if re.fullmatch(r"\d+", text):
        return int(text)
    found = fraction(text)
    return text if found is None else found


def scale(text: str) -> Any:
    """Return the scale: a name, None, or one per feature.

    Examples
    --------
    >>> scale("none"), scale("log"), scale("log,range"), scale("1,1/2")
    (None, 'log', ['log', 'range'], [1.0, 0.5])
    """
    if text == "none":
        return None
    parts = [part.strip() for part in text.split(",")]
    if all(part.isalpha() for part in parts):
        return parts if len(parts) > 1 else parts[0]
    return list(numbers("--scale", text))


def bounds(given: list[str] | None, features: list[str]) -> list[tuple[float, float]] | None:
    """Return the domain of each feature, from texts such as `dose=0:60`.

    Examples
    --------
    >>> bounds(["lat=40:50", "lon=-10:10"], ["lon", "lat"])
    [(-10.0, 10.0), (40.0, 50.0)]
    """
    if not given:
        return None
    found: dict[str, tuple[float, float]] = {}
    for text in given:
        name, _, ends = text.rpartition("=")
        low, colon, high = ends.partition(":")
        if not colon or name not in features or name in found:
            raise UsageError(
                f"--bounds: found {text!r}; NAME=LOW:HIGH is needed, once for each feature: "
                f"{', '.join(features)}"
            )
        found[name] = number("--bounds", low), number("--bounds", high)
    missing = [name for name in features if name not in found]
    if missing:
        raise UsageError(
            f"--bounds: found none for {', '.join(missing)}; give them for all features, or none"
        )
    return [found[name] for name in features]


def monotonic(given: list[str] | None) -> dict[str, int] | None:
    """Return the direction along features, from texts such as `dose,-age`.

    Examples
    --------
    >>> monotonic(["dose,-age"])
    {'dose': 1, 'age': -1}
    """
    found = names(given)
    if found is None:
        return None
    return {name.removeprefix("-"): -1 if name.startswith("-") else 1 for name in found}


def periodic(given: list[str] | None) -> dict[str, float] | None:
    """Return the periods of features, from texts such as `hour=24`.

    Examples
    --------
    >>> periodic(["hour=24,day_of_year=365.25"])
    {'hour': 24.0, 'day_of_year': 365.25}
    """
    found: dict[str, float] = {}
    for each in names(given) or []:
        name, _, period = each.rpartition("=")
        if not name:
            raise UsageError(f"--periodic: found {each!r}; NAME=PERIOD is needed, such as hour=24")
        try:
            found[name] = float(period)
        except ValueError:
            raise UsageError(f"--periodic: found {each!r}; a period is a number") from None
    return found or None


def geographic(given: list[str] | None) -> tuple[str, ...] | None:
    """Return the features that are longitude and latitude, from a text such as `lon,lat`.

    Examples
    --------
    >>> geographic(["lon,lat"])
    ('lon', 'lat')
    """
    found = names(given)
    return None if found is None else tuple(found)


def level(value: float) -> float:
    """Return the level of intervals; raise if it is not between 0 and 1."""
    if not 0.0 < value < 1.0:
        raise UsageError(f"--level: found {value}; a number between 0 and 1 is needed")
    return value


def probability(option: str, value: float | None) -> float | None:
    """Return a probability, if one is given; raise if it is not from 0 to 1."""
    if value is not None and not 0.0 <= value <= 1.0:
        raise UsageError(f"{option}: found {value}; a number from 0 to 1 is needed")
    return value


def positive(option: str, value: float | None) -> float | None:
    """Return a number, if one is given; raise if it is not positive."""
    if value is not None and not (value > 0.0 and math.isfinite(value)):
        raise UsageError(f"{option}: found {value}; a positive number is needed")
    return value
