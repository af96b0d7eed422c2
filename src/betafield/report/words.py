"""Formatting of numbers, names and places: readable, and safe in a page."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Iterable
from typing import Any

import numpy as np

# Characters of a name that fit beside an axis, or into the head of a column.
SHORT = 32
# Bidirectional classes of characters that could reorder the text around them.
TURNING = {"R", "AL", "RLE", "RLO", "LRE", "LRO", "PDF", "RLI", "LRI", "FSI", "PDI"}


def number(value: float) -> str:
    """Return a number with four significant digits: 1234.5 is 1,234.

    Examples
    --------
    >>> [number(x) for x in (0.123456, -5.0, 1234.5, 6.02e23, 0.0)]
    ['0.1235', '−5', '1,234', '6.02e+23', '0']
    """
    value = float(value)
    text = f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.4g}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def count(value: float) -> str:
    """Return a number of trials: whole, or with one decimal.

    Examples
    --------
    >>> count(327346), count(2.5)
    ('327,346', '2.5')
    """
    return f"{value:,.0f}" if float(value).is_integer() or value >= 1e6 else f"{value:,.1f}"


def counted(value: float, one: str, many: str | None = None) -> str:
    """Return how many there are of something.

    Examples
    --------
    >>> counted(1, "place"), counted(3, "place"), counted(2, "class", "classes")
    ('1 place', '3 places', '2 classes')
    """
    return f"{count(value)} {one if value == 1 else many or one + 's'}"


def percent(share: float) -> str:
    """Return a share in per cent, rounded to 0 or 100 % only if it is exactly that.

    Examples
    --------
    >>> [percent(p) for p in (0.0, 0.00001, 0.1234, 0.99999, 1.0)]
    ['0 %', 'under 0.1 %', '12.3 %', 'over 99.9 %', '100 %']
    """
    if 0.0 < share < 0.0005:
        return "under 0.1 %"
    if 0.9995 <= share < 1.0:
        return "over 99.9 %"
    return "0 %" if share == 0 else "100 %" if share == 1 else f"{share * 100:.1f} %"


def span(low: float, high: float) -> str:
    """Return an interval of probabilities.

    Examples
    --------
    >>> span(0.1, 0.25)
    '10.0 to 25.0 %'
    """
    return f"{low * 100:.1f} to {high * 100:.1f} %"


def level_name(level: float) -> str:
    """Return a level in per cent: 0.95 is 95 %."""
    return f"{level * 100:.6g} %"


def listed(parts: Iterable[str]) -> str:
    """Return parts as an enumeration.

    Examples
    --------
    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *rest, last = list(parts)
    return f"{', '.join(rest)} and {last}" if rest else last


def shown(name: Any) -> str:
    r"""Return a name on one line, with invisible characters shown as codes.

    Examples
    --------
    >>> shown("a\nb\x00")
    'a b\\x00'
    """
    text = " ".join(str(name).split())
    return "".join(c if _is_visible(c) else f"\\x{ord(c):02x}" for c in text)


def _is_visible(character: str) -> bool:
    return unicodedata.category(character) not in {"Cc", "Cs", "Cn"}


def short(name: Any, most: int = SHORT) -> str:
    """Return a name that fits beside an axis.

    Examples
    --------
    >>> short("concentration times time", most=12)
    'concentrati…'
    """
    text = shown(name)
    return text if len(text) <= most else text[: most - 1] + "…"


def isolated(text: str) -> str:
    """Return text whose writing direction does not affect the text around it."""
    turns = any(unicodedata.bidirectional(c) in TURNING for c in text)
    return f"\u2068{text}\u2069" if turns else text


def drawn(name: Any, most: int = SHORT) -> str:
    """Return a name for plotly, which interprets tags, entities and %{...} in all texts.

    Examples
    --------
    >>> drawn("<b>5 %{x} & more</b>")
    '&lt;b&gt;5 &#37;{x} &amp; more&lt;/b&gt;'
    """
    text = isolated(short(name, most)).replace("&", "&amp;")
    return text.replace("<", "&lt;").replace(">", "&gt;").replace("%", "&#37;")


def script_json(value: Any) -> str:
    r"""Return JSON in ASCII that cannot end a script element.

    Examples
    --------
    >>> script_json({"a": "</script>"})
    '{"a":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def rounded(values: Any, digits: int = 4) -> Any:
    """Return an array as nested lists of rounded numbers, with None for NaN and infinities.

    Examples
    --------
    >>> rounded(np.array([[0.123456, np.nan]]))
    [[0.1235, None]]
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim > 1:
        return [rounded(row, digits) for row in array]
    return [round(v, digits) if math.isfinite(v) else None for v in array.tolist()]


def places_after_point(extent: float, digits: int = 4) -> int:
    """Return the decimals that tell places within this extent apart.

    Examples
    --------
    >>> [places_after_point(extent) for extent in (0.5, 24.0, 365.0, 2e6)]
    [4, 2, 1, -3]
    """
    return digits - 1 - math.floor(math.log10(extent)) if extent > 0 else digits


def coordinate(value: float, extent: float) -> str:
    """Return a coordinate, as precise as the extent of its feature requires.

    Examples
    --------
    >>> coordinate(17.5, 24.0), coordinate(-0.25, 1.0), coordinate(1.5e9 + 0.25, 1.0)
    ('17.5', '−0.25', '1,500,000,000.25')
    """
    decimals = places_after_point(extent)
    if not -9 <= decimals <= 9 or abs(value) >= 1e15:
        text = f"{value:.6g}"
    else:
        text = f"{round(value, decimals) + 0.0:,.{max(decimals, 0)}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−", 1) if text.startswith("-") else text


def coordinates(values: Any, extent: float) -> list[float]:
    """Return coordinates for a figure, rounded to well below what is visible.

    Examples
    --------
    >>> coordinates([1 / 3, 2 / 3], 1.0)
    [0.33333, 0.66667]
    """
    decimals = places_after_point(extent, digits=6)
    return [round(v, decimals) for v in np.asarray(values, dtype=np.float64).tolist()]
