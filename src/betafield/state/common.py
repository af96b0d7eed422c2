"""The parts that files of all models have: options, classes, features, trials seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from betafield import lattice, learning, monotonic, persistence, plain, priors, units
from betafield.categories import MOST_LEVELS, Categories, joined, require_few
from betafield.evidence import Totals
from betafield.evidence.columns import FRACTIONS, MOST, require_total
from betafield.options import Options
from betafield.plain import fields_of, require, whole
from betafield.trials import Features

OPTIONS = (
    "bandwidth",
    "bounds",
    "categorical_features",
    "geographic",
    "interactions",
    "lipschitz",
    "method",
    "metric",
    "missing",
    "monotonic_cst",
    "n_jobs",
    "periodic",
    "pos_label",
    "prior",
    "scale",
    "sharing",
)
LABEL = "pos_label"
FLOATS, INTEGERS = (np.float64,), (np.int8, np.int16, np.int32, np.int64)
# In effect no limit other than the size of the file.
MANY = persistence.MOST_HEADER


def stored_options(options: Options) -> dict[str, Any]:
    """Return options as JSON values."""
    told = {name: plain.stored(name, getattr(options, name)) for name in OPTIONS if name != LABEL}
    return told | {LABEL: plain.stored_label(LABEL, options.pos_label)}


def restored_options(values: Any) -> Options:
    """Return the options with these values, validated; those of older files are converted."""
    if isinstance(values, dict) and "degree" in values:
        values = _newer(values)
    given = fields_of("options", values, OPTIONS, stored_options(Options()))
    told = {name: plain.option(name, given[name]) for name in OPTIONS if name != LABEL}
    return Options(**told, pos_label=plain.label(LABEL, given[LABEL])).checked()


def _newer(values: dict[str, Any]) -> dict[str, Any]:
    """Convert the options of a version 1 file; local polynomials and relevance are dropped."""
    is_default = values.get("bandwidth") == "auto"
    usual = {"prior": {"tuple": [1.0, 1.0]}, "sharing": "exact"}
    is_smooth = is_default and all(values.get(name) == value for name, value in usual.items())
    scale = values.get("scale")
    kept = {name: value for name, value in values.items() if name != "degree"}
    return kept | {
        "method": "auto" if is_smooth or not is_default else "windows",
        "scale": "range" if isinstance(scale, str) and scale == "ard" else scale,
    }


def stored_features(features: Features) -> dict[str, Any]:
    """Return the number and names of features, and their categories, as JSON values."""
    names = None if features.names is None else [str(name) for name in features.names]
    return {
        "n_features": features.number,
        "names": names,
        "categories": _stored_categories(features.categories),
    }


def _stored_categories(known: Categories) -> dict[str, Any] | None:
    if not known.columns:
        return None
    return {
        "columns": list(known.columns),
        "labels": [list(labels) for labels in known.labels],
        "interactions": [list(each) for each in known.interactions],
        "missing": known.has_missing,
    }


def _restored_categories(values: Any, d: int) -> Categories:
    """Return the columns that are categories, which must be among d columns, and their levels."""
    if values is None:
        return Categories()
    told = fields_of("categories", values, ("columns", "interactions", "labels", "missing"), {})
    columns, labels = told["columns"], told["labels"]
    is_sound = isinstance(columns, list) and all(type(a) is int and 0 <= a < d for a in columns)
    is_sound = is_sound and columns == sorted(set(columns)) and isinstance(labels, list)
    require(is_sound and len(labels) == len(columns), "categories", columns, "columns, sorted")
    for each in labels:
        is_sound = isinstance(each, list) and 0 < len(each) <= MOST_LEVELS
        is_sound = is_sound and all(label is None or isinstance(label, str) for label in each)
        require(is_sound and list(joined(each, ())) == each, "labels", each, "levels, sorted")
    pairs = told["interactions"]
    is_sound = isinstance(pairs, list) and len(pairs) <= MOST_LEVELS
    is_sound = is_sound and all(
        isinstance(each, list) and len(each) > 1 and set(each) <= set(columns) for each in pairs
    )
    require(is_sound, "interactions", pairs, "lists of columns that are categories")
    require(isinstance(told["missing"], bool), "missing", told["missing"], "true or false")
    found = tuple(tuple(each) for each in labels)
    known = Categories(tuple(columns), found, tuple(map(tuple, pairs)), told["missing"])
    require_few(known)
    return known


def restored_features(number: Any, names: Any, categories: Any = None) -> Features:
    """Return features with this number and these names."""
    d = whole("n_features", number, 1, MANY)
    known = _restored_categories(categories, d)
    if names is None:
        return Features(d, None, known)
    is_sound = isinstance(names, list) and all(isinstance(name, str) for name in names)
    require(is_sound and len(names) == d, "names", names, f"{d} names")
    return Features(d, np.array(names, dtype=object), known)


def restored_totals(values: Any) -> Totals:
    """Return the trials seen; contexts must not take away more trials than there are."""
    require(isinstance(values, list) and len(values) == 4, "seen", values, "four numbers")
    most = int(MOST * FRACTIONS)
    seen = Totals(*(whole("seen", value, 0, most) for value in values))
    is_sound = max(seen.low, seen.high) <= seen.distorted <= seen.trials and seen.trials > 0
    require(is_sound, "seen", values, "trials, not more of them distorted, nor more taken off")
    countable = MOST / (lattice.UNIT if seen.distorted else 1.0)
    require_total("trials", seen.number(), countable)
    return seen


def require_options(options: Options, features: Features, n_classes: int) -> None:
    """Raise unless the options that depend on features and classes are valid."""
    prior, d, names = options.prior, features.number, features.names
    learning.require_features(options, features)
    units.checked_scale(options.scale, len(features.numeric))
    monotonic.require(options.monotonic_cst, d, names, n_classes)
    is_line = not units.is_curved(options.scale)
    require(options.is_smooth or is_line, "scale", options.scale, "numbers, for windows")
    each = prior if isinstance(prior, list | tuple | np.ndarray) else []
    n_points = max((np.size(part) for part in each), default=1)
    is_learned = isinstance(options.bandwidth, str) and options.bandwidth != "theory"
    require(
        n_points == 1 or not is_learned, "prior", prior, "one for all points, as widths are learned"
    )
    priors.shapes(prior, np.broadcast_to(0.0, (n_points, d)), n_classes)
