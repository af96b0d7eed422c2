"""A field of windows, as plain values and arrays, and back.

A file contains the options, the number of trials seen, and their places: those of each index, and
those of batches that are not indexed yet. Indexes are rebuilt from their places, in the same order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import bernstein, lattice, plain, success, units
from betafield.evidence import Polynomial, Totals
from betafield.evidence.columns import FRACTIONS, MOST, OTHERS, require_countable, require_total
from betafield.evidence.encode import MOST_POLYNOMIALS
from betafield.field import Field
from betafield.metrics import ORDERS
from betafield.options import SHARINGS, Options
from betafield.persistence import Arrays
from betafield.plain import fields_of, one_of, require, taken, whole
from betafield.state.common import (
    FLOATS,
    INTEGERS,
    MANY,
    require_options,
    restored_features,
    restored_options,
    restored_totals,
    stored_features,
    stored_options,
)
from betafield.trials import Features
from betafield.windows import Forest, Places, Shifts
from betafield.wraps import Wraps

Floats = npt.NDArray[np.float64]

VALUES = (
    "built",
    "categories",
    "classes",
    "kind",
    "metric",
    "n_features",
    "names",
    "options",
    "seen",
    "sharing",
    "waiting",
)
# Most indexes of a forest; each is larger than all after it together.
MOST_INDEXES = 64


class Learned(NamedTuple):
    """The learned state of a model, validated in its parts and as a whole."""

    classes: npt.NDArray[Any]
    features: Features
    bounds: Floats
    units: units.Units
    seen: Totals
    sharing: str
    metric: str
    polynomials: tuple[Polynomial, ...]
    built: list[Places]
    waiting: list[Places]

    @property
    def parts(self) -> list[Places]:
        """All places."""
        return [*self.built, *self.waiting]


def stored(field: Field) -> tuple[dict[str, Any], Arrays]:
    """Return a field as plain values and arrays, validated."""
    options = field.options.checked()
    values, arrays = _state(field)
    _require_options(options, learned(values, arrays))
    return values, arrays


def restored(values: Any, arrays: Arrays) -> Field:
    """Return the field with these values and arrays; unknown arrays are an error."""
    fields = fields_of("values", values, VALUES, {"categories": None})
    options = restored_options(fields["options"])
    found = learned(fields, arrays)
    _require_options(options, found)
    classes = success.in_order(found.classes, options.pos_label)
    return as_field(options, found._replace(classes=classes))


# Out ---------------------------------------------------------------------------------------


def _state(field: Field) -> tuple[dict[str, Any], Arrays]:
    """Return the values and the arrays of a field."""
    built, waiting = field.windows.parts
    values = {
        "built": len(built),
        "kind": "windows",
        "classes": plain.stored_labels(np.sort(field.classes)),
        "metric": field.windows.metric,
        **stored_features(field.features),
        "options": stored_options(field.options),
        "seen": list(field.totals),
        "sharing": field.sharing,
        "waiting": len(waiting),
    }
    polynomials = field.polynomials
    arrays = {
        "bounds": field.bounds,
        "origin": field.units.origin,
        "unit": field.units.unit,
        "coefficients": np.array([c for row in polynomials for c in row], dtype=np.float64),
        "lengths": np.array([len(row) for row in polynomials], dtype=np.int64),
    }
    for i, places in enumerate(built):
        arrays |= _stored_places(f"built.{i}", places)
    for i, places in enumerate(waiting):
        arrays |= _stored_places(f"waiting.{i}", places)
    return values, arrays


def _stored_places(name: str, places: Places) -> Arrays:
    arrays = {f"{name}.axes": places.axes, f"{name}.counts": places.counts}
    if places.shifts is not None:
        arrays |= {f"{name}.shifts": places.shifts.values, f"{name}.held": places.shifts.held}
        if places.shifts.size is not None:
            arrays[f"{name}.sizes"] = places.shifts.size
    return arrays


# In ----------------------------------------------------------------------------------------


def learned(values: dict[str, Any], arrays: Arrays) -> Learned:
    """Return the learned state in values and arrays; raise if it is impossible."""
    left = dict(arrays)
    features = restored_features(values["n_features"], values["names"], values.get("categories"))
    d, wraps = features.number, restored_options(values["options"]).wraps(features)
    built, waiting = (
        [
            _places(left, f"{name}.{i}", d + wraps.more)
            for i in range(whole(name, values[name], 0, most))
        ]
        for name, most in (("built", MOST_INDEXES), ("waiting", MANY))
    )
    seen = restored_totals(values["seen"])
    found = Learned(
        plain.labels(values["classes"]),
        features,
        domain(left, d),
        _units(left, d, wraps),
        seen,
        one_of("sharing", values["sharing"], SHARINGS),
        one_of("metric", values["metric"], tuple(ORDERS)),
        _polynomials(left),
        built,
        waiting,
    )
    require(not left, "arrays", f"{len(left)} of unknown names", "no others")
    _require_counted(found)
    _require_columns(found)
    return found


def domain(left: Arrays, d: int) -> Floats:
    """Return bounds, low and high per feature."""
    bounds: Floats = taken(left, "bounds", FLOATS, d, 2)
    is_sound = np.isfinite(bounds).all() and (bounds[:, 0] <= bounds[:, 1]).all()
    require(is_sound, "bounds", bounds.tolist(), "finite ones, with low <= high")
    return bounds


def _units(left: Arrays, d: int, wraps: Wraps) -> units.Units:
    origin, unit = (taken(left, name, FLOATS, d) for name in ("origin", "unit"))
    require(np.isfinite(origin).all(), "origin", origin.tolist(), "finite numbers")
    require((unit > 0.0).all(), "unit", unit.tolist(), "positive numbers")
    return units.Units(origin, unit, wraps)


def _polynomials(left: Arrays) -> tuple[Polynomial, ...]:
    """Return the polynomials of contexts: all distinct, each with largest coefficient 1."""
    lengths = taken(left, "lengths", (np.int64,), None)
    require(lengths.size <= MOST_POLYNOMIALS, "lengths", lengths.size, "fewer")
    is_sound = np.all((lengths >= 3) & (lengths <= bernstein.HIGHEST + 1))
    require(is_sound, "lengths", lengths, f"3 to {bernstein.HIGHEST + 1} coefficients")
    flat = taken(left, "coefficients", FLOATS, int(lengths.sum()))
    found = tuple(tuple(row.tolist()) for row in np.split(flat, np.cumsum(lengths))[:-1])
    is_high = np.all((flat >= 0.0) & (flat <= 1.0)) and all(max(row) == 1.0 for row in found)
    require(is_high, "coefficients", "others", "those from 0 to 1, the highest 1")
    require(len(set(found)) == len(found), "coefficients", "some twice", "different ones")
    return found


def _places(left: Arrays, name: str, d: int) -> Places:
    """Return places, each with trials; coordinates may be infinite."""
    axes = taken(left, f"{name}.axes", FLOATS, d, None)
    t = axes.shape[1]
    require(t and not np.isnan(axes).any(), f"{name}.axes", "NaN or nothing", "numbers")
    counts = taken(left, f"{name}.counts", (np.bool_, *INTEGERS), None, t)
    _require_countable(f"{name}.counts", counts)
    shifts = _shifts(left, name, t) if f"{name}.shifts" in left else None
    there = counts.any(axis=0) if shifts is None else counts.any(axis=0) | (shifts.held > 0)
    require(there.all(), name, "places without trials", "places with some")
    return Places(axes, counts, shifts)


def _shifts(left: Arrays, name: str, t: int) -> Shifts:
    values = taken(left, f"{name}.shifts", FLOATS, t)
    is_sound = np.all(np.abs(values) <= lattice.EDGE)
    require(is_sound, f"{name}.shifts", "others", f"those up to {lattice.EDGE}")
    held = taken(left, f"{name}.held", INTEGERS, t)
    _require_countable(f"{name}.held", held[None])
    if f"{name}.sizes" not in left:
        return Shifts(values, held)
    size = taken(left, f"{name}.sizes", FLOATS, t)
    # In units of 2⁻³² they must fit an int64.
    is_sound = np.all((size > 0.0) & (size < MOST / FRACTIONS))
    require(is_sound, f"{name}.sizes", "others", "positive ones that can be counted")
    return Shifts(values, held, size)


def _require_countable(name: str, counts: npt.NDArray[Any]) -> None:
    """Raise if a count is negative or the sum of a column would overflow."""
    require(counts.min(initial=0) >= 0, name, "counts below 0", "others")
    for column in counts:
        require_countable(name, column)


# Consistency of all parts ------------------------------------------------------------------


def _require_counted(learned: Learned) -> None:
    """Raise unless the numbers of trials seen, and distorted, match the counts of places."""
    k, seen = len(learned.classes), learned.seen
    width = max(part.width for part in learned.parts) if learned.parts else 0
    totals = [0] * width
    shifted = 0
    for part in learned.parts:
        for i, column in enumerate(part.counts.sum(axis=1, dtype=np.int64).tolist()):
            totals[i] += column
        shifted += 0 if part.shifts is None else _amount(part.shifts)
    require(max(totals, default=0) <= MOST, "counts", max(totals, default=0), "fewer")
    unit = int(FRACTIONS)
    undistorted = unit * sum(totals[:k]) + sum(totals[k : 2 * k])
    others = totals[OTHERS:] if learned.polynomials else []
    special = shifted + unit * sum(others[::2]) + sum(others[1::2])
    require(undistorted + special == seen.trials, "seen", seen.trials, "as many as are counted")
    require(special <= seen.distorted, "seen", seen.distorted, "as many as are distorted")


def _amount(shifts: Shifts) -> int:
    """Return the total weight of distorted trials, in units of 2⁻³², without overflow."""
    units = np.rint(shifts.sizes() * FRACTIONS)
    total = float(np.dot(units, shifts.held))
    require_total("held", total / FRACTIONS, MOST / lattice.UNIT)
    if total < MOST:
        return int(np.dot(units.astype(np.int64), shifts.held))
    pairs = zip(units.astype(np.int64).tolist(), shifts.held.tolist(), strict=True)
    return sum(unit * held for unit, held in pairs)


def _require_columns(learned: Learned) -> None:
    """Raise unless the columns of counts are those that classes and contexts require."""
    k, n, is_distorted = len(learned.classes), len(learned.polynomials), learned.seen.distorted > 0
    is_mean = learned.sharing == "mean"
    has_shifts = any(part.shifts is not None for part in learned.parts)
    require(k == 2 or not is_distorted, "seen", "contexts", "two classes with them")
    is_sound = (is_distorted and not is_mean) or not (n or has_shifts)
    require(is_sound, "sharing", "polynomials or shifts", "none here")
    mean = {OTHERS + 4} if is_mean and is_distorted else set()
    wide = mean | {OTHERS + 2 * i for i in range(1, n + 1)}
    found = {part.width for part in learned.parts}
    require(found <= {k, 2 * k} | wide, "counts: columns", found, {k, 2 * k} | wide)
    require(not wide or max(wide) in found, "counts: columns", found, wide)
    require(len({part.width for part in learned.built}) <= 1, "built", found, "equal columns")
    if mean:
        for part in learned.parts:
            _require_mean(part.counts)


def _require_mean(counts: npt.NDArray[Any]) -> None:
    """Raise unless each place has trials, and contexts take away no more than these."""
    held = counts[:2].sum(axis=0, dtype=np.float64)
    held += counts[2:4].sum(axis=0, dtype=np.float64) / FRACTIONS
    require(held.all(), "counts", "contexts without trials", "trials")
    # Weights near 2⁻³² are rounded in one sum and not in the other.
    lost = counts[OTHERS::2].astype(np.float64)
    require(np.all(lost <= 1.125 * lattice.UNIT * held), "counts", "too much lost", "less")


def _require_options(options: Options, found: Learned) -> None:
    """Raise unless options are consistent with the learned state."""
    require_options(options, found.features, len(found.classes))
    require(not options.is_smooth, "method", options.method, "windows here")


# Back --------------------------------------------------------------------------------------


def as_field(options: Options, found: Learned) -> Field:
    """Return the field with this learned state."""
    d = found.units.dimensions
    return Field(
        options,
        found.features,
        found.classes,
        found.bounds,
        found.units,
        Forest.of(d, found.metric, found.built, found.waiting),
        found.sharing,
        found.seen,
        found.polynomials,
    )
