"""A field of a process as plain values and arrays, and back: trials and hyper-parameters."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import plain, success, units
from betafield.bernstein import HIGHEST
from betafield.evidence import Totals
from betafield.evidence.columns import FRACTIONS, require_countable
from betafield.families import MOST as MOST_RATES
from betafield.families import Rate, Unknown, together
from betafield.fitting import MOST_GROUPS
from betafield.persistence import Arrays
from betafield.plain import fields_of, require, taken, whole
from betafield.process.boxes import WRAPPED
from betafield.process.found import Found
from betafield.process.sound import require_sound
from betafield.smooth import SmoothField
from betafield.state.common import (
    FLOATS,
    INTEGERS,
    require_options,
    restored_features,
    restored_options,
    restored_totals,
    stored_features,
    stored_options,
)
from betafield.state.trees import told, values_of
from betafield.sums import Part, Sums, require_few

Floats = npt.NDArray[np.float64]

VALUES = (
    "apart",
    "categories",
    "classes",
    "found",
    "found_at",
    "kind",
    "n_features",
    "names",
    "options",
    "parts",
    "rates",
    "seen",
)
# Values that files of earlier releases lack.
USUAL: dict[str, Any] = {"apart": False, "categories": None, "rates": []}


def stored(field: SmoothField) -> tuple[dict[str, Any], Arrays]:
    """Return a field as plain values and arrays, validated."""
    options = field.options.checked()
    found, found_at = field.known
    parts = field.sums.distinct().parts
    values = {
        "apart": field.sums.is_apart,
        "classes": plain.stored_labels(np.sort(field.classes)),
        "found": None if found is None else [told(each) for each in found],
        "found_at": None if found_at is None else list(found_at),
        "kind": "smooth",
        **stored_features(field.features),
        "options": stored_options(options),
        "parts": sorted(parts),
        "rates": [list(rate) for rate in field.sums.rates],
        "seen": list(field.totals),
    }
    arrays: Arrays = {}
    for kind, (part,) in parts.items():
        each = {name: array for name, array in part._asdict().items() if array is not None}
        arrays |= {f"{kind}.{name}": array for name, array in each.items()}
    restored(values, arrays)
    return values, arrays


def restored(values: Any, arrays: Arrays) -> SmoothField:
    """Return the field with these values and arrays; unknown arrays are an error."""
    fields = fields_of("values", values, VALUES, USUAL)
    options = restored_options(fields["options"])
    require(options.is_smooth, "method", options.method, "auto and process here")
    features = restored_features(fields["n_features"], fields["names"], fields["categories"])
    classes = success.in_order(plain.labels(fields["classes"]), options.pos_label)
    seen = restored_totals(fields["seen"])
    rates = restored_rates(fields["rates"])
    sums = _sums(fields["parts"], dict(arrays), features.number, len(classes), seen, rates)
    sums = dataclasses.replace(sums, is_apart=_flag("apart", fields["apart"]))
    require_options(options, features, len(classes))
    units.require_span(sums.bounds())
    field = SmoothField(options, features, classes, sums)
    _require_levels(field)
    return _with_found(field, fields["found"], fields["found_at"])


def _require_levels(field: SmoothField) -> None:
    """Raise unless the levels of categories include those of all trials."""
    points = field.sums.rows().points
    for column in field.features.categories.columns:
        known = np.sort(field.features.categories.codes(column))
        is_sound = np.isin(points[:, column], known).all()
        require(is_sound, "labels", "others", "the levels of all trials")


# Trials ------------------------------------------------------------------------------------


def restored_rates(values: Any) -> tuple[Rate, ...]:
    """Return the unknown rates by name, with their priors."""
    is_sound = isinstance(values, list) and len(values) <= MOST_RATES
    is_sound = is_sound and all(isinstance(each, list) and len(each) == 3 for each in values)
    require(is_sound, "rates", values, f"at most {MOST_RATES} of a name and two shapes")
    for name, alpha, beta in values:
        is_number = all(type(shape) in (int, float) for shape in (alpha, beta))
        require(isinstance(name, str) and is_number, "rates", name, "names and numbers")
        Unknown(alpha, beta, name)  # raises if they are invalid
    rates = together(Rate(name, float(alpha), float(beta)) for name, alpha, beta in values)
    require(len(rates) == len(values), "rates", values, "different ones")
    return rates


def _sums(
    kinds: Any, left: Arrays, d: int, n_classes: int, seen: Totals, rates: tuple[Rate, ...]
) -> Sums:
    is_sound = isinstance(kinds, list) and 0 < len(kinds) <= 64 and len(set(kinds)) == len(kinds)
    require(is_sound, "parts", kinds, "a few different numbers")
    parts = {}
    for kind in kinds:
        whole("parts", kind, -(HIGHEST + 1) if rates else 0, HIGHEST + 1)
        parts[kind] = (_part(left, kind, d, n_classes, 2 ** len(rates)),)
    require(not left, "arrays", f"{len(left)} of unknown names", "no others")
    require(n_classes == 2 or list(parts) == [0], "parts", kinds, "no contexts with these classes")
    sums = Sums(d, n_classes, seen, parts, rates=rates)
    is_grouped = {part.group is not None for (part,) in parts.values()}
    require(len(is_grouped) == 1, "group", "some", "all or none")
    few = len(sums.groups) <= MOST_GROUPS
    require(few, "group", "more", f"at most {MOST_GROUPS} groups")
    require_few(seen)
    _require_counted(sums)
    return sums


def _part(left: Arrays, kind: int, d: int, n_classes: int, n_corners: int) -> Part:
    """Return places, each of which must have trials."""
    points = taken(left, f"{kind}.points", FLOATS, None, d)
    r = len(points)
    require(r and np.isfinite(points).all(), f"{kind}.points", "others", "finite numbers")
    counts = taken(left, f"{kind}.counts", (np.bool_, *INTEGERS), None, r)
    is_sound = len(counts) in (n_classes, 2 * n_classes) and counts.min() >= 0
    require(is_sound and counts.any(axis=0).all(), f"{kind}.counts", "others", "counts of trials")
    for column in counts:
        require_countable(f"{kind}.counts", column)
    width = kind if kind >= 0 else -kind * n_corners
    context = taken(left, f"{kind}.context", FLOATS, r, width)
    _require_contexts(kind, context)
    name = f"{kind}.group"
    group = taken(left, name, FLOATS, r) if name in left else None
    require(group is None or np.isfinite(group).all(), name, "others", "finite numbers")
    return Part(points, counts, context, group)


def _flag(name: str, value: Any) -> bool:
    require(isinstance(value, bool), name, value, "true or false")
    return bool(value)


def _require_contexts(kind: int, context: Floats) -> None:
    """Raise unless contexts are informative, so that every outcome is possible."""
    name = f"{kind}.context"
    require(abs(kind) != 1, name, "one coefficient", "none, or two and more")
    is_sound = np.all((context >= 0.0) & (context <= 1.0))
    require(is_sound, name, "others", "coefficients from 0 to 1")
    if kind:
        teaches = context.max(axis=1) > context.min(axis=1)
        require(teaches.all(), name, "equal coefficients", "different ones")


def _require_counted(sums: Sums) -> None:
    """Raise unless the number of trials seen matches the counts of places."""
    k, unit = sums.n_classes, int(FRACTIONS)
    plain_trials = distorted = 0
    for kind, (part,) in sums.parts.items():
        columns = [int(column.sum(dtype=np.int64)) for column in part.counts]
        amount = unit * sum(columns[:k]) + sum(columns[k:])
        plain_trials += amount * (kind == 0)
        distorted += amount * (kind != 0)
    # Fractions of trials under contexts are rounded individually.
    slack = sums.size if distorted else 0
    is_sound = abs(plain_trials + distorted - sums.totals.trials) <= slack
    require(is_sound, "seen", sums.totals.trials, "as many as are counted")
    is_sound = abs(distorted - sums.totals.distorted) <= slack
    require(is_sound, "seen", sums.totals.distorted, "as many as are distorted")


# Hyper-parameters --------------------------------------------------------------------------


def _with_found(field: SmoothField, found: Any, found_at: Any) -> SmoothField:
    """Return the field with hyper-parameters that were found for all or some of its trials."""
    if found is None:
        require(found_at is None, "found_at", found_at, "nothing where nothing was found")
        return field
    number = 1 if len(field.classes) == 2 else len(field.classes)
    is_sound = isinstance(found, list) and len(found) == number
    require(is_sound, "found", "others", f"a list of {number}")
    each = tuple(values_of("found", Found, one) for one in found)
    d, is_grouped = len(field.features.numeric), field.sums.is_grouped
    extra = field.n_parameters
    for one in each:
        known = field.features.categories
        require_sound(one, d, extra, len(known.columns) + len(known.interactions))
        effects = {component.effect == d for component in one.components}
        is_effect = is_grouped and not extra
        require(effects == {is_effect}, "found", "effects of groups", "those of its trials")
        shape = one.nodes.shape[1:] if one.nodes.size else ()
        n_rates = len(field.sums.rates)
        require(shape == ((n_rates,) if n_rates else ()), "found", "nodes", "those of its rates")
        _require_positive(one, field.numeric_bounds)
        scales = field.wraps.among(field.features.numeric).scales
        _require_wrapped(one, scales or ("",) * len(field.features.numeric))
    totals = restored_totals(found_at)
    require(totals.trials <= field.totals.trials, "found_at", totals.trials, "no more than seen")
    return dataclasses.replace(field, found=each, found_at=totals)


def _require_wrapped(found: Found, wraps: tuple[str, ...]) -> None:
    """Raise unless exactly the features in `wraps` wrap around."""
    for component in found.components:
        each = component.scale or ("",) * len(wraps)
        has = tuple(kind if kind in WRAPPED else "" for kind in each)
        require(has == wraps, "found", component.scale, "features that wrap around as is said")


def _require_positive(found: Found, bounds: Floats) -> None:
    """Raise if a feature on the log scale is not positive."""
    for component in found.components:
        asked = [a for a, kind in enumerate(component.scale) if kind == "log"]
        require(np.all(bounds[asked, 0] > 0.0), "found", "a logarithm", "others here")
