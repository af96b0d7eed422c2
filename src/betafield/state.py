"""What a model has learned, as plain values and arrays, and back.

A file tells what was given (options), what was seen, and where: the places of each index, and the
batches that wait, as they are. Indexes are built anew from their places, in the same order, so that
a loaded model answers, learns and merges like the saved one to the last bit.

A file may be anybody's. Compiled loops do not ask whether a number lies within an array, so every
value is checked before anything is built, and in the same way before it is written: what is saved
can be loaded. What a caller may choose badly, such as a width of 1e-300, may stand in a file too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import betafield.choosing.candidates as candidates
from betafield import bandwidth as widths
from betafield import lattice, persistence, plain, priors, trials, units
from betafield.evidence import Polynomial, Totals
from betafield.evidence.columns import FRACTIONS, MOST, OTHERS, require_countable
from betafield.evidence.encode import MOST_POLYNOMIALS
from betafield.field import Field
from betafield.options import SHARINGS, Options
from betafield.persistence import Arrays
from betafield.plain import fields_of, one_of, require, taken, whole
from betafield.windows import Forest, Places, Shifts
from betafield.windows.base import METRICS

Floats = npt.NDArray[np.float64]
Records = npt.NDArray[Any]
Chosen = tuple[int | float, tuple[Any, bool, tuple[int, ...]], Records]

KIND = "SmoothBetaClassifier"
OPTIONS = (
    "bandwidth",
    "bounds",
    "degree",
    "lipschitz",
    "metric",
    "n_jobs",
    "prior",
    "scale",
    "sharing",
)
VALUES = (
    "built",
    "chosen",
    "classes",
    "metric",
    "n_features",
    "names",
    "options",
    "seen",
    "sharing",
    "waiting",
)
CHOSEN = ("bandwidth", "degrees", "relevance", "trials")
# Windows in use, by their names in files, which had another for one of them.
RECORD = {field: field for field in candidates.Candidate._fields} | {
    "effective_parameters": "complexity"
}
FLOATS, INTEGERS = (np.float64,), (np.int8, np.int16, np.int32, np.int64)
# Indexes of a forest, each larger than all after it; and what is no limit but that of the file.
MOST_INDEXES, MANY = 64, persistence.MOST_HEADER


class Learned(NamedTuple):
    """What a model has learned, every part sound, and all of them together."""

    classes: npt.NDArray[Any]
    n_features: int
    names: list[str] | None
    bounds: Floats
    units: units.Units
    seen: Totals
    sharing: str
    metric: str
    polynomials: tuple[Polynomial, ...]
    weights: Records
    chosen: Chosen | None
    built: list[Places]
    waiting: list[Places]

    @property
    def parts(self) -> list[Places]:
        """All places."""
        return [*self.built, *self.waiting]


def save(field: Field, path: Any) -> None:
    """Write a field to a file."""
    persistence.write(path, KIND, *stored(field))


def load(path: Any) -> Field:
    """Return the field of a file."""
    values, arrays = persistence.read(path, KIND)
    try:
        return restored(values, arrays)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"path: {str(path)!r} holds no sound model: {error}") from error


def stored(field: Field) -> tuple[dict[str, Any], Arrays]:
    """Return a field as plain values and arrays, which are sound."""
    options = field.options.checked()
    values, arrays = _state(field)
    _require_options(options, _learned(values, arrays))
    return values, arrays


def restored(values: Any, arrays: Arrays) -> Field:
    """Return the field of these values and arrays, all of which must belong to it."""
    fields = fields_of("values", values, VALUES)
    options = restored_options(fields["options"])
    learned = _learned(fields, arrays)
    _require_options(options, learned)
    return _field(options, learned)


def stored_options(options: Options) -> dict[str, Any]:
    """Return options as JSON has them."""
    return {name: plain.stored(name, getattr(options, name)) for name in OPTIONS}


def restored_options(values: Any) -> Options:
    """Return the options of these values, which must be allowed."""
    given = fields_of("options", values, OPTIONS)
    return Options(**{name: plain.option(name, given[name]) for name in OPTIONS}).checked()


# Out ---------------------------------------------------------------------------------------


def _state(field: Field) -> tuple[dict[str, Any], Arrays]:
    """Return the values and the arrays of a field."""
    built, waiting = field.windows.parts
    names = field.features.names
    values = {
        "built": len(built),
        "chosen": _stored_choice(field.chosen),
        "classes": plain.stored_labels(field.classes),
        "metric": field.windows.metric,
        "n_features": field.features.number,
        "names": None if names is None else [str(name) for name in names],
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
        **_stored_records("weights", field.weights),
    }
    if field.chosen is not None:
        arrays |= _stored_records("chosen", field.chosen[2])
    for i, places in enumerate(built):
        arrays |= _stored_places(f"built.{i}", places)
    for i, places in enumerate(waiting):
        arrays |= _stored_places(f"waiting.{i}", places)
    return values, arrays


def _stored_choice(chosen: Chosen | None) -> dict[str, Any] | None:
    """Return for how many trials windows were chosen, and what was asked for."""
    if chosen is None:
        return None
    t, (bandwidth, relevance, degrees), _ = chosen
    return {
        "bandwidth": plain.stored("bandwidth", bandwidth),
        "degrees": list(degrees),
        "relevance": relevance,
        "trials": t,
    }


def _stored_records(name: str, records: Records) -> Arrays:
    return {f"{name}.{stored}": records[field] for field, stored in RECORD.items()}


def _stored_places(name: str, places: Places) -> Arrays:
    arrays = {f"{name}.axes": places.axes, f"{name}.counts": places.counts}
    if places.shifts is not None:
        arrays |= {f"{name}.shifts": places.shifts.values, f"{name}.held": places.shifts.held}
        if places.shifts.size is not None:
            arrays[f"{name}.sizes"] = places.shifts.size
    return arrays


# In ----------------------------------------------------------------------------------------


def _learned(values: dict[str, Any], arrays: Arrays) -> Learned:
    """Return what values and arrays say; raise unless it can have been learned."""
    left = dict(arrays)
    d = whole("n_features", values["n_features"], 1, MANY)
    built, waiting = (
        [_places(left, f"{name}.{i}", d) for i in range(whole(name, values[name], 0, most))]
        for name, most in (("built", MOST_INDEXES), ("waiting", MANY))
    )
    seen = _seen(values["seen"])
    learned = Learned(
        plain.labels(values["classes"]),
        d,
        _names(values["names"], d),
        _domain(left, d),
        _units(left, d),
        seen,
        one_of("sharing", values["sharing"], SHARINGS),
        one_of("metric", values["metric"], tuple(METRICS)),
        _polynomials(left),
        _records(left, "weights", d),
        _choice(left, values["chosen"], d, seen.number()),
        built,
        waiting,
    )
    require(not left, "arrays", f"{len(left)} of unknown names", "no others")
    _require_counted(learned)
    _require_columns(learned)
    return learned


def _names(values: Any, d: int) -> list[str] | None:
    if values is None:
        return None
    is_sound = isinstance(values, list) and all(isinstance(name, str) for name in values)
    require(is_sound and len(values) == d, "names", values, f"{d} names")
    return list(values)


def _seen(values: Any) -> Totals:
    """Return the trials seen: what contexts take away is theirs."""
    require(isinstance(values, list) and len(values) == 4, "seen", values, "four numbers")
    most = int(MOST * FRACTIONS)
    seen = Totals(*(whole("seen", value, 0, most) for value in values))
    is_sound = max(seen.low, seen.high) <= seen.distorted <= seen.trials and seen.trials > 0
    require(is_sound, "seen", values, "trials, not more of them distorted, nor more taken off")
    countable = MOST / (lattice.UNIT if seen.distorted else 1.0)
    require_countable("trials", np.array(seen.number()), countable)
    return seen


def _domain(left: Arrays, d: int) -> Floats:
    bounds: Floats = taken(left, "bounds", FLOATS, d, 2)
    is_sound = np.isfinite(bounds).all() and (bounds[:, 0] <= bounds[:, 1]).all()
    require(is_sound, "bounds", bounds.tolist(), "finite ones, with low <= high")
    return bounds


def _units(left: Arrays, d: int) -> units.Units:
    origin, unit = (taken(left, name, FLOATS, d) for name in ("origin", "unit"))
    require(np.isfinite(origin).all(), "origin", origin.tolist(), "finite numbers")
    require((unit > 0.0).all(), "unit", unit.tolist(), "positive numbers")
    return units.Units(origin, unit)


def _polynomials(left: Arrays) -> tuple[Polynomial, ...]:
    """Return the polynomials counted: all different, the highest coefficient of each 1."""
    lengths = taken(left, "lengths", (np.int64,), None)
    require(lengths.size <= MOST_POLYNOMIALS, "lengths", lengths.size, "fewer")
    is_sound = np.all((lengths >= 3) & (lengths <= trials.HIGHEST + 1))
    require(is_sound, "lengths", lengths, f"3 to {trials.HIGHEST + 1} coefficients")
    flat = taken(left, "coefficients", FLOATS, int(lengths.sum()))
    found = tuple(tuple(row.tolist()) for row in np.split(flat, np.cumsum(lengths))[:-1])
    is_high = np.all((flat >= 0.0) & (flat <= 1.0)) and all(max(row) == 1.0 for row in found)
    require(is_high, "coefficients", "others", "those from 0 to 1, the highest 1")
    require(len(set(found)) == len(found), "coefficients", "some twice", "different ones")
    return found


def _records(left: Arrays, name: str, d: int) -> Records:
    """Return windows as `candidates.records` has them."""
    width = left.get(f"{name}.width", np.empty(0))
    require(width.ndim == 1 and 1 <= width.size <= candidates.HEAVIEST, name, width.shape, "a few")
    found = np.repeat(candidates.records([candidates.given(1.0, 0, d)]), width.size)
    for field, stored in RECORD.items():
        kinds = (found.dtype[field].base.type,)
        found[field] = taken(left, f"{name}.{stored}", kinds, *found[field].shape)
    relevance, width, weight = found["relevance"], found["width"], found["weight"]
    is_relevant = np.all((relevance >= candidates.LEAST) & (relevance <= 1.0))
    require(is_relevant, f"{name}.relevance", relevance.tolist(), f"{candidates.LEAST} to 1")
    is_wide = np.all((width > 0.0) & (width < np.inf))
    require(is_wide, f"{name}.width", width.tolist(), "positive finite numbers")
    is_weighed = np.all(weight > 0.0) and abs(weight.sum() - 1.0) <= candidates.TIE
    require(is_weighed, f"{name}.weight", weight.tolist(), "positive ones that add up to 1")
    told = np.stack([found["score"], found["effective_parameters"]])  # NaN of what was not weighed
    require(not np.isinf(told).any(), f"{name}.score", told.tolist(), "finite numbers and NaN")
    degrees = widths.weighed_degrees(d)
    is_sound = np.isin(found["degree"], degrees).all()
    require(is_sound, f"{name}.degree", found["degree"].tolist(), degrees)
    return found


def _choice(left: Arrays, values: Any, d: int, n_trials: int | float) -> Chosen | None:
    """Return for how many trials windows were chosen, what was asked for, and the windows."""
    if values is None:
        return None
    fields = fields_of("chosen", values, CHOSEN)
    bandwidth, degrees = plain.option("bandwidth", fields["bandwidth"]), fields["degrees"]
    widths.check(bandwidth)
    t, relevance = fields["trials"], fields["relevance"]
    require(type(t) in (int, float) and 0 < t <= n_trials, "chosen.trials", t, "no more than all")
    require(type(relevance) is bool, "chosen.relevance", relevance, "true and false")
    require(isinstance(degrees, list) and len(degrees) <= 5, "chosen.degrees", degrees, "a few")
    known = tuple(whole("chosen.degrees", degree, 0, 4) for degree in degrees)
    return t, (bandwidth, relevance, known), _records(left, "chosen", d)


def _places(left: Arrays, name: str, d: int) -> Places:
    """Return places, something at each of them; what is infinitely far may be."""
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
    # In units of 2⁻³² they must be int64.
    is_sound = np.all((size > 0.0) & (size < MOST / FRACTIONS))
    require(is_sound, f"{name}.sizes", "others", "positive ones that can be counted")
    return Shifts(values, held, size)


def _require_countable(name: str, counts: npt.NDArray[Any]) -> None:
    """Raise unless no count is below 0, and each column can be added up."""
    require(counts.min(initial=0) >= 0, name, "counts below 0", "others")
    for column in counts:
        require_countable(name, column)


# What must hold of all parts together ------------------------------------------------------


def _require_counted(learned: Learned) -> None:
    """Raise unless the trials seen are those that places count, the distorted ones among them."""
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
    """Return what distorted trials count for, in units of 2⁻³², whatever their number."""
    units = np.rint(shifts.sizes() * FRACTIONS)
    total = float(np.dot(units, shifts.held))
    require_countable("held", np.array(total / FRACTIONS), MOST / lattice.UNIT)
    if total < MOST:
        return int(np.dot(units.astype(np.int64), shifts.held))
    pairs = zip(units.astype(np.int64).tolist(), shifts.held.tolist(), strict=True)
    return sum(unit * held for unit, held in pairs)


def _require_columns(learned: Learned) -> None:
    """Raise unless there are the columns of counts that classes and contexts ask for."""
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
    degree = int(learned.weights["degree"].max())
    require(degree == 0 or (k == 2 and not is_distorted), "weights.degree", degree, "0 here")
    if mean:
        for part in learned.parts:
            _require_mean(part.counts)


def _require_mean(counts: npt.NDArray[Any]) -> None:
    """Raise unless there are trials at each place, and contexts take away no more than them."""
    held = counts[:2].sum(axis=0, dtype=np.float64)
    held += counts[2:4].sum(axis=0, dtype=np.float64) / FRACTIONS
    require(held.all(), "counts", "contexts without trials", "trials")
    # Weights near 2⁻³² are rounded in one and not in the other.
    lost = counts[OTHERS::2].astype(np.float64)
    require(np.all(lost <= 1.125 * lattice.UNIT * held), "counts", "too much lost", "less")


def _require_options(options: Options, learned: Learned) -> None:
    """Raise unless options that depend on the number of features and classes are sound."""
    d, scale, prior = learned.n_features, options.scale, options.prior
    units.check_bounds(options.bounds, np.empty((0, d)), np.empty(0, dtype=np.bool_))
    if isinstance(scale, str):
        one_of("scale", scale, units.SCALES)
    elif scale is not None:
        units.measure(scale, learned.bounds, np.zeros((1, d)), lambda: np.ones(1))
    each = prior if isinstance(prior, list | tuple | np.ndarray) else []
    n_points = max((np.size(part) for part in each), default=1)
    priors.shapes(prior, np.broadcast_to(0.0, (n_points, d)), len(learned.classes))


# Back --------------------------------------------------------------------------------------


def _field(options: Options, learned: Learned) -> Field:
    """Return the field that has learned this."""
    names = None if learned.names is None else np.array(learned.names, dtype=object)
    return Field(
        options,
        trials.Features(learned.n_features, names),
        learned.classes,
        learned.bounds,
        learned.units,
        Forest.of(learned.n_features, learned.metric, learned.built, learned.waiting),
        learned.weights["relevance"][0],
        learned.sharing,
        learned.seen,
        learned.polynomials,
        learned.weights,
        learned.chosen,
    )
