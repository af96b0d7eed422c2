"""A tracker as plain values and arrays, to save, and back.

Files are untrusted: every value is validated before it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from betafield import checks, persistence, plain
from betafield.decisions.files import load as load_file
from betafield.decisions.tracker.memory import MOST, Memory
from betafield.decisions.tracker.state import State
from betafield.persistence import Arrays
from betafield.plain import require, taken, whole
from betafield.trials import Features
from betafield.windows import Places

T = TypeVar("T")
Floats = npt.NDArray[np.float64]
# Takes a new state, and a function that adds a domain of d features; returns the saved state.
StateOf = Callable[[State, Callable[[State, int], State]], State]

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


def save(path: Any, options: dict[str, Any], state: State) -> None:
    """Write a tracker to a file."""
    names = None if state.features is None else state.features.names
    values = {
        "n_features": None if state.features is None else state.features.number,
        "n_late": state.n_late,
        "n_trials": state.n_trials,
        "names": None if names is None else [str(name) for name in names],
        "options": {name: plain.stored(name, options[name]) for name in OPTIONS},
        "time": state.time,
    }
    spans = state.memory.spans
    arrays: Arrays = {
        "contexts": np.array(sorted(state.contexts), dtype=np.float64).reshape(-1, 2),
        "spans": np.array(list(spans), dtype=np.int64),
    }
    if state.n_trials:
        arrays["since"] = state.since
    for i, places in enumerate(spans.values()):
        arrays |= {f"axes.{i}": places.axes, f"counts.{i}": places.counts}
    persistence.write(path, KIND, values, arrays)


def load(path: Any, make: Callable[[dict[str, Any], StateOf], T]) -> T:
    """Return `make(options, state_of)` for the options and the state in a file."""

    def made(values: Any, arrays: Arrays) -> T:
        fields = plain.fields_of("values", values, VALUES)
        options = plain.fields_of("options", fields["options"], OPTIONS)
        given = {name: plain.option(name, options[name]) for name in OPTIONS}
        return make(given, lambda new, begun: _restored(new, begun, fields, arrays))

    return load_file(path, KIND, made)


def _restored(
    new: State, begun: Callable[[State, int], State], fields: dict[str, Any], left: Arrays
) -> State:
    """Return the saved state."""
    numbers = taken(left, "spans", (np.int64,), None)
    rows = taken(left, "contexts", (np.float64,), None, 2)
    n_trials = whole("n_trials", fields["n_trials"], 0, MANY)
    n_late = whole("n_late", fields["n_late"], 0, n_trials)
    if not n_trials:
        require(not (rows.size or numbers.size), "n_trials", 0, "more, where there are trials")
        require(not left, "arrays", ", ".join(sorted(left)), "those of a tracker")
        return new
    features = _features(fields)
    state = new if new.domain is not None else begun(new, features.number)
    assert state.domain is not None
    d = len(state.domain.cells.bounds)
    require(features.number == d, "n_features", features.number, d)
    time = checks.number("time", fields["time"])
    state.memory.forgetting.require_near("time", np.array([time]))
    require(bool(((rows >= 0) & (rows <= 1)).all()), "contexts", "others", "numbers in [0, 1]")
    contexts = frozenset(map(tuple, rows.tolist()))
    since = _since(left, len(state.since), time)
    state = replace(state, features=features, contexts=contexts, time=time, since=since)
    memory = Memory(state.memory.forgetting, _spans(left, numbers, state))
    require(not left, "arrays", ", ".join(sorted(left)), "those of a tracker")
    return replace(state, memory=memory, n_trials=n_trials, n_late=n_late)


def _features(fields: dict[str, Any]) -> Features:
    d, names = whole("n_features", fields["n_features"], 1, 1 << 16), fields["names"]
    if names is None:
        return Features(d)
    is_sound = isinstance(names, list) and all(isinstance(name, str) for name in names)
    require(is_sound and len(names) == d, "names", names, f"a list of {d} names")
    return Features(d, np.array(names, dtype=object))


def _since(left: Arrays, m: int, time: float) -> Floats:
    since: Floats = taken(left, "since", (np.float64,), m)
    require(bool((np.isnan(since) | (since <= time)).all()), "since", "others", "the past")
    return since


def _spans(left: Arrays, numbers: npt.NDArray[np.int64], state: State) -> dict[int, Places]:
    """Return the places of each span, none of them outside the domain or forgotten."""
    forgetting, spans = state.memory.forgetting, {}
    assert state.time is not None
    newest = forgetting.number_at(state.time)
    for i, number in enumerate(numbers.tolist()):
        whole("spans", number, newest - forgetting.kept + 1, newest)
        spans[number] = _places(left, i, state)
    require(list(spans) == sorted(spans) and len(spans) == len(numbers), "spans", numbers, "rising")
    return spans


def _places(left: Arrays, i: int, state: State) -> Places:
    assert state.domain is not None
    assert state.features is not None
    cells, d = state.domain.cells, state.features.number
    axes = taken(left, f"axes.{i}", (np.float64,), d + 2, None)
    counts = taken(left, f"counts.{i}", INTEGERS, 2, axes.shape[1])
    require(bool(np.isfinite(axes).all()) and axes.size, f"axes.{i}", "others", "finite numbers")
    cells.require_inside(axes[:d].T)
    require(bool((counts >= 0).all() and (counts <= MOST).all()), f"counts.{i}", "others", "counts")
    known = {tuple(row) for row in np.unique(axes[d:], axis=1).T.tolist()} <= state.contexts
    require(known, f"axes.{i}", "other contexts", "those of the file")
    order = np.lexsort(axes[::-1])
    is_sorted = bool(np.array_equal(order, np.arange(len(order))))
    places = Places(axes, counts)
    require(is_sorted and places.joined() is places, f"axes.{i}", "others", "places in order, once")
    return places
