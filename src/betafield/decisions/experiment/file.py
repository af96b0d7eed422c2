"""An experiment as plain values and arrays, to save, and back.

The model as it was when the round began (`learner`) is stored and validated as in its own file, by
`betafield.state`. It learns the trials since then again when the experiment is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from betafield import contexts, persistence, state
from betafield.bernstein import HIGHEST
from betafield.decisions.experiment.goals import Goal
from betafield.decisions.experiment.goals import restored as restored_goal
from betafield.decisions.experiment.goals import stored as stored_goal
from betafield.decisions.experiment.history import History
from betafield.decisions.experiment.learner import has_learned
from betafield.decisions.files import load as load_file
from betafield.decisions.sides import Integer, Log, Side
from betafield.decisions.space import Space
from betafield.distorted import known_context as checked_context
from betafield.estimators import SmoothBetaClassifier
from betafield.families import ContextFamily, Rate
from betafield.options import Options
from betafield.persistence import Arrays
from betafield.plain import fields_of, require, taken, whole

T = TypeVar("T")

KIND = "Experiment"
VALUES = ("blank", "families", "goal", "model", "observed", "options", "space")
OPTIONS = ("seed", "spread", "strategy")
# Prefix of the names of the model's arrays.
MODEL = "model."
STATES = ("pending", "told", "abandoned")
# Most sets of unknown rates in contexts.
MOST_FAMILIES = 64


class Saved(NamedTuple):
    """The complete state of an experiment."""

    space: Space
    goal: Goal
    strategy: str
    spread: float
    seed: int
    model: SmoothBetaClassifier
    since: list[int]
    history: History


def save(path: Any, saved: Saved) -> None:
    """Write an experiment to a file."""
    space, model = saved.space, saved.model
    values = {
        "blank": None,
        "goal": stored_goal(saved.goal),
        "model": None,
        "observed": list(space.observed),
        "options": {name: getattr(saved, name) for name in OPTIONS},
        "space": [_told(name, each) for name, each in zip(space.names, space.sides, strict=True)],
    }
    arrays = _stored(saved.history, len(space.names))
    values["families"], arrays["context_rates"] = _families(saved.history)
    arrays["since"] = np.array(saved.since, dtype=np.int64)
    if has_learned(model):
        values["model"], learned = state.stored(model.field_)
        arrays |= {MODEL + name: array for name, array in learned.items()}
    else:
        values["blank"] = state.stored_options(Options.of(model))
    persistence.write(path, KIND, values, arrays)


def load(path: Any, make: Callable[[Saved], T]) -> T:
    """Return `make(saved)` for the experiment in a file."""
    return load_file(path, KIND, lambda values, arrays: make(_saved(values, arrays)))


def _saved(values: Any, left: Arrays) -> Saved:
    fields = fields_of("values", values, VALUES, {"families": []})
    options = _options(fields["options"])
    space = _space(fields["space"], fields["observed"])
    model = _model(fields["blank"], fields["model"], left)
    since = taken(left, "since", (np.int64,), None).tolist() if "since" in left else []
    families = _restored_families(fields["families"])
    history = _history(left, space, since, families)
    require(not left, "arrays", f"{len(left)} of unknown names", "no others")
    goal = restored_goal(fields["goal"])
    return Saved(space, goal, model=model, since=since, history=history, **options)


def _restored_families(values: Any) -> list[tuple[Rate, ...]]:
    is_sound = isinstance(values, list) and len(values) <= MOST_FAMILIES
    require(is_sound, "families", "others", "a short list of rates")
    return [state.restored_rates(each) for each in values]


# The list of trials ------------------------------------------------------------------------


def _stored(history: History, d: int) -> Arrays:
    """Return all trials as arrays."""
    ledger, each = history.ledger, [_coefficients(one) for one in history.contexts]
    whys = [why.encode() for why in history.whys]
    numbers = range(len(history))
    return {
        "rows": np.array(history.rows, dtype=np.float64).reshape(-1, d),
        "states": np.array([STATES.index(ledger.state(i)) for i in numbers], dtype=np.int8),
        "outcomes": np.array([bool(ledger.outcome(i)) for i in numbers], dtype=np.bool_),
        "contexts": np.concatenate([np.empty(0), *each]),
        "context_lengths": np.array([len(one) for one in each], dtype=np.int64),
        "whys": np.frombuffer(b"".join(whys), dtype=np.int8),
        "why_lengths": np.array([len(each) for each in whys], dtype=np.int64),
    }


def _coefficients(context: Any) -> npt.NDArray[np.float64]:
    """Return the coefficients of a context; with unknown rates, those at all corners."""
    if isinstance(context, ContextFamily):
        return np.asarray(context.corners).ravel()
    return np.empty(0) if context is None else context


def _families(history: History) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """Return the sets of unknown rates, and the index of each trial's set, −1 if it has none."""
    each = [c.rates if isinstance(c, ContextFamily) else None for c in history.contexts]
    known = list(dict.fromkeys(rates for rates in each if rates is not None))
    which = [-1 if rates is None else known.index(rates) for rates in each]
    return [[list(rate) for rate in rates] for rates in known], np.array(which, dtype=np.int64)


def _context(coefficients: npt.NDArray[np.float64], rates: tuple[Rate, ...] | None) -> Any:
    """Return the context of a trial in a file, validated."""
    if rates is None:
        return checked_context(coefficients[None], 1) if coefficients.size else None
    number = 2 ** len(rates)
    is_sound = coefficients.size and coefficients.size % number == 0
    require(rates and is_sound, "contexts", coefficients.size, f"multiples of {number}")
    corners = contexts.checked(coefficients.reshape(number, -1))
    require(corners.shape[1] <= HIGHEST + 1, "contexts", corners.shape[1], "fewer coefficients")
    return ContextFamily(rates, corners[None])


def _history(left: Arrays, space: Space, since: list[int], families: list[Any]) -> History:
    """Return the trials in arrays, validated; those in `since` were told last."""
    rows = _rows(left, space)
    t = len(rows)
    states = taken(left, "states", (np.int8,), t)
    known = range(len(STATES))
    require(np.isin(states, list(known)).all(), "states", "others", list(known))
    outcomes = taken(left, "outcomes", (np.bool_,), t).tolist()
    told = _cut(left, "contexts", "context_lengths", np.float64, t)
    which = np.full(t, -1)
    if "context_rates" in left:
        which = taken(left, "context_rates", (np.int64,), t)
    is_sound = np.all((which >= -1) & (which < len(families)))
    require(is_sound, "context_rates", "others", "the numbers of known ones")
    whys = [each.tobytes().decode() for each in _cut(left, "whys", "why_lengths", np.int8, t)]
    history = History(len(space.names))
    for i in range(t):
        history.add(rows[i].copy(), whys[i])
    for i in np.flatnonzero(states == STATES.index("abandoned")).tolist():
        history.abandon(i)
    for i in _in_order(np.flatnonzero(states == STATES.index("told")).tolist(), since):
        context = _context(told[i], None if which[i] < 0 else families[which[i]])
        history.tell(i, outcomes[i], context)
    return history


def _in_order(told: list[int], last: list[int]) -> list[int]:
    """Return the trials that were told, with `last` at the end."""
    late = set(last)
    is_sound = len(late) == len(last) and late <= set(told)
    require(is_sound, "since", "others", "trials that were told")
    return [*(i for i in told if i not in late), *last]


def _rows(left: Arrays, space: Space) -> npt.NDArray[np.float64]:
    rows: npt.NDArray[np.float64] = taken(left, "rows", (np.float64,), None, len(space.names))
    # Earlier releases could ask for trials beyond the edge by the rounding error of a side.
    inside = (rows >= space.low) & (rows <= np.maximum(space.high, space.low + space.side))
    require(inside.all(), "rows", "some outside the space", "those inside")
    return np.minimum(rows, space.high)


def _cut(left: Arrays, name: str, lengths: str, kind: Any, t: int) -> list[npt.NDArray[Any]]:
    """Return t pieces of an array, with the lengths given by another array."""
    sizes = taken(left, lengths, (np.int64,), t)
    whole_array = taken(left, name, (kind,), None)
    ends = np.cumsum(sizes)
    is_sound = np.all(sizes >= 0) and (ends[-1] if t else 0) == whole_array.size
    require(is_sound, lengths, "others", f"those that add up to the {name}")
    return [whole_array[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _options(values: Any) -> dict[str, Any]:
    if isinstance(values, dict):
        values.pop("is_default", None)  # present in files of earlier releases
    options = fields_of("options", values, OPTIONS)
    whole("seed", options["seed"], 0, (1 << 63) - 1)
    return options


def _space(values: Any, observed: Any) -> Space:
    is_sound = isinstance(values, list) and all(
        isinstance(each, list) and len(each) in (3, 4) and isinstance(each[0], str)
        for each in values
    )
    require(is_sound, "space", values, "lists of a name and what it can be")
    return Space.of({each[0]: _side(*each[1:]) for each in values}, observed)


def _told(name: str, side: Side) -> list[Any]:
    """Return a side as JSON values: its ends, and its levels or its kind if it is not plain."""
    more = list(side.levels) if side.kind == "levels" else side.kind
    return [name, side.low, side.high, *([more] if more else [])]


def _side(low: Any, high: Any, kind: Any = "") -> Any:
    if isinstance(kind, list):
        require(high == len(kind) - 1, "space", high, "the number of the last level")
        return kind
    known = {"": lambda *ends: ends, "log": Log, "integer": Integer}
    require(isinstance(kind, str) and kind in known, "space", kind, "log and integer")
    if kind == "integer":
        is_whole = all(isinstance(end, int | float) and end == int(end) for end in (low, high))
        require(is_whole, "space", (low, high), "whole numbers")
        return Integer(int(low), int(high))
    return known[kind](low, high)


def _model(options: Any, values: Any, left: Arrays) -> Any:
    """Return the model, as it was when it was saved."""
    if options is not None:
        return SmoothBetaClassifier(**state.restored_options(options)._asdict())
    names = [name for name in left if name.startswith(MODEL)]
    learned = {name.removeprefix(MODEL): left.pop(name) for name in names}
    return SmoothBetaClassifier.of(state.restored(values, learned))
