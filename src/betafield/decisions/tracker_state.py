"""A tracker as plain values and arrays, to save, and back.

A file may be anybody's: every value is checked before anything is made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import persistence, plain
from betafield.decisions.forgetting import MOST, Memory, finite
from betafield.plain import require, taken, whole
from betafield.windows import Places

KIND = "tracker"
OPTIONS = (
    "alarm",
    "bandwidth",
    "bounds",
    "clear",
    "half_life",
    "places",
    "prior",
    "resolution",
    "threshold",
    "window",
)
VALUES = ("n_features", "n_late", "n_trials", "names", "options", "time")
INTEGERS = (np.int8, np.int16, np.int32, np.int64)
MANY = 1 << 62


def save(tracker: Any, path: Any) -> None:
    """Write a tracker to a file."""
    values, arrays = _state(tracker)
    persistence.write(path, KIND, values, arrays)


def load(path: Any, make: Callable[..., Any]) -> Any:
    """Return the tracker of a file; `make` gives one without trials that has these options."""
    values, arrays = persistence.read(path, KIND)
    try:
        fields = plain.fields_of("values", values, VALUES)
        options = plain.fields_of("options", fields["options"], OPTIONS)
        tracker = make(**{name: plain.option(name, options[name]) for name in OPTIONS})
        _restore(tracker, fields, dict(arrays))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"path: {str(path)!r} holds no sound tracker: {error}") from error
    return tracker


def _state(tracker: Any) -> tuple[dict[str, Any], persistence.Arrays]:
    names = getattr(tracker._model, "feature_names_in_", None)
    values = {
        "n_features": getattr(tracker._model, "n_features_in_", None),
        "n_late": tracker.n_late,
        "n_trials": tracker.n_trials,
        "names": None if names is None else [str(name) for name in names],
        "options": {name: plain.stored(name, getattr(tracker, name)) for name in OPTIONS},
        "time": tracker.time,
    }
    spans = tracker._memory.spans
    arrays: persistence.Arrays = {
        "contexts": np.array(sorted(tracker._contexts), dtype=np.float64).reshape(-1, 2),
        "spans": np.array(list(spans), dtype=np.int64),
    }
    if tracker.n_trials:
        arrays["since"] = tracker._since
    for i, places in enumerate(spans.values()):
        arrays |= {f"axes.{i}": places.axes, f"counts.{i}": places.counts}
    return values, arrays


def _restore(tracker: Any, fields: dict[str, Any], left: persistence.Arrays) -> None:
    """Give a new tracker all that it had learned."""
    numbers = taken(left, "spans", (np.int64,), None)
    rows = taken(left, "contexts", (np.float64,), None, 2)
    tracker.n_trials = whole("n_trials", fields["n_trials"], 0, MANY)
    tracker.n_late = whole("n_late", fields["n_late"], 0, tracker.n_trials)
    if tracker.n_trials:
        _restore_domain(tracker, fields)
        tracker._since = _since(left, tracker)
        require(bool(((rows >= 0) & (rows <= 1)).all()), "contexts", "others", "numbers in [0, 1]")
        tracker._contexts = frozenset(map(tuple, rows.tolist()))
        tracker._memory = Memory(tracker._memory.forgetting, _spans(left, numbers, tracker))
    else:
        require(not (rows.size or numbers.size), "n_trials", 0, "more, where there are trials")
    require(not left, "arrays", ", ".join(sorted(left)), "those of a tracker")


def _restore_domain(tracker: Any, fields: dict[str, Any]) -> None:
    d, names = whole("n_features", fields["n_features"], 1, 1 << 16), fields["names"]
    if tracker.bounds is None:
        tracker._begin(d)
    require(d == len(tracker.cells_.bounds), "n_features", d, len(tracker.cells_.bounds))
    tracker._model.n_features_in_ = d
    if names is not None:
        is_sound = isinstance(names, list) and all(isinstance(name, str) for name in names)
        require(is_sound and len(names) == d, "names", names, f"a list of {d} names")
        tracker._model.feature_names_in_ = np.array(names, dtype=object)
    tracker.time = finite("time", fields["time"])
    tracker._require_near("time", np.array([tracker.time]))


def _since(left: persistence.Arrays, tracker: Any) -> npt.NDArray[np.float64]:
    since: npt.NDArray[np.float64] = taken(left, "since", (np.float64,), len(tracker.places_))
    require(bool((np.isnan(since) | (since <= tracker.time)).all()), "since", "others", "the past")
    return since


def _spans(
    left: persistence.Arrays, numbers: npt.NDArray[np.int64], tracker: Any
) -> dict[int, Places]:
    """Return the places of each span, none of them outside of the domain or forgotten."""
    forgetting, spans = tracker._memory.forgetting, {}
    newest = forgetting.number_at(tracker.time)
    for i, number in enumerate(numbers.tolist()):
        whole("spans", number, newest - forgetting.kept + 1, newest)
        spans[number] = _places(left, i, tracker)
    require(list(spans) == sorted(spans) and len(spans) == len(numbers), "spans", numbers, "rising")
    return spans


def _places(left: persistence.Arrays, i: int, tracker: Any) -> Places:
    d = len(tracker.cells_.bounds)
    axes = taken(left, f"axes.{i}", (np.float64,), d + 2, None)
    counts = taken(left, f"counts.{i}", INTEGERS, 2, axes.shape[1])
    require(bool(np.isfinite(axes).all()) and axes.size, f"axes.{i}", "others", "finite numbers")
    tracker.cells_.require_inside(axes[:d].T)
    require(bool((counts >= 0).all() and (counts <= MOST).all()), f"counts.{i}", "others", "counts")
    known = {tuple(row) for row in np.unique(axes[d:], axis=1).T.tolist()} <= tracker._contexts
    require(known, f"axes.{i}", "other contexts", "those of the file")
    order = np.lexsort(axes[::-1])
    is_sorted = bool(np.array_equal(order, np.arange(len(order))))
    places = Places(axes, counts)
    require(is_sorted and places.joined() is places, f"axes.{i}", "others", "places in order, once")
    return places
