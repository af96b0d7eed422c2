"""Validation of `monotonic_cst`: the direction of the field along each feature."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

from betafield import checks
from betafield.refusals import mistyped, refused

ALLOWED = "-1 (never rises), 0 (either) and 1 (never falls) are allowed"
# Up to this many features, all can be monotone; with more features, at most this many.
MOST = 3


def signs(monotonic_cst: Any, d: int, names: Any = None) -> tuple[int, ...]:
    """Return the direction along each of d features: 1 rising, −1 falling, 0 unconstrained.

    Examples
    --------
    >>> signs({"dose": 1}, 2, ["age", "dose"]), signs([1, -1], 2), signs(None, 1)
    ((0, 1), (1, -1), (0,))
    """
    if monotonic_cst is None:
        return (0,) * d
    if isinstance(monotonic_cst, Mapping):
        found = _by_name(monotonic_cst, d, names)
    else:
        found = _numbers(monotonic_cst)
        rule = f"one number per feature is needed, {d}"
        checks.require(len(found) == d, "monotonic_cst", monotonic_cst, rule)
    monotone = sum(map(abs, found))
    if d > MOST < monotone:
        raise refused(
            "monotonic_cst",
            f"found {monotone} monotone features of {d}; with more than {MOST} "
            f"features, {MOST} of them can be monotone",
        )
    return tuple(found)


def require(monotonic_cst: Any, d: int, names: Any, n_classes: int) -> None:
    """Raise unless a field with these features and classes can be monotone as requested."""
    if any(signs(monotonic_cst, d, names)) and n_classes > 2:
        raise refused("monotonic_cst", f"this model has {n_classes} classes; two are needed")


def checked(monotonic_cst: Any) -> None:
    """Raise if the constraint is invalid, whatever the features are."""
    if isinstance(monotonic_cst, Mapping):
        for name, value in monotonic_cst.items():
            _sign(checks.spelled(name), value)
    elif monotonic_cst is not None:
        _numbers(monotonic_cst)


def _numbers(monotonic_cst: Any) -> list[int]:
    rule = "a mapping of features to -1, 0 or 1 is needed, or one of them per feature"
    if isinstance(monotonic_cst, str):
        raise mistyped("monotonic_cst", f"found {checks.spelled(monotonic_cst)}; {rule}")
    return [
        _sign(a, each) for a, each in enumerate(checks.items("monotonic_cst", monotonic_cst, rule))
    ]


def _sign(feature: Any, value: Any) -> int:
    if not (isinstance(value, Integral) and checks.is_number(value) and -1 <= int(value) <= 1):
        said = f"found {checks.spelled(value)}; {ALLOWED}"
        raise refused("monotonic_cst", said, part=f"feature {feature}")
    return int(value)


def _by_name(given: Mapping[Any, Any], d: int, names: Any) -> list[int]:
    known = [f"x{a}" for a in range(d)] if names is None else [str(name) for name in names]
    found, rule = [0] * d, f"the features are {', '.join(known)}"
    for name, value in given.items():
        checks.require(isinstance(name, str) and name in known, "monotonic_cst", name, rule)
        found[known.index(name)] = _sign(repr(name), value)
    return found
