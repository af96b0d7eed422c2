"""An experiment as plain values and arrays, to save, and back.

What the model had learned when the round began (`learner`) is stored, and checked, as in its own
file: by `betafield.state`. It learns anew the trials that came since.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from betafield import persistence, state
from betafield.decisions.experiment.goals import Goal
from betafield.decisions.experiment.goals import restored as restored_goal
from betafield.decisions.experiment.goals import stored as stored_goal
from betafield.decisions.experiment.history import History
from betafield.decisions.experiment.learner import has_learned
from betafield.decisions.files import load as load_file
from betafield.decisions.space import Space
from betafield.estimators import SmoothBetaClassifier
from betafield.options import Options
from betafield.persistence import Arrays
from betafield.plain import fields_of, require, taken, whole
from betafield.trials import context as checked_context

T = TypeVar("T")

KIND = "Experiment"
VALUES = ("blank", "goal", "model", "observed", "options", "space")
OPTIONS = ("seed", "spread", "strategy")
# Before the names of arrays that are the model's.
MODEL = "model."
STATES = ("pending", "told", "abandoned")


class Saved(NamedTuple):
    """All that an experiment is."""

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
        "space": [[name, *ends] for name, ends in zip(space.names, space.bounds, strict=True)],
    }
    arrays = _stored(saved.history, len(space.names))
    arrays["since"] = np.array(saved.since, dtype=np.int64)
    if has_learned(model):
        values["model"], learned = state.stored(model.field_)
        arrays |= {MODEL + name: array for name, array in learned.items()}
    else:
        values["blank"] = state.stored_options(Options.of(model))
    persistence.write(path, KIND, values, arrays)


def load(path: Any, make: Callable[[Saved], T]) -> T:
    """Return what `make` makes of the experiment of a file."""
    return load_file(path, KIND, lambda values, arrays: make(_saved(values, arrays)))


def _saved(values: Any, left: Arrays) -> Saved:
    fields = fields_of("values", values, VALUES)
    options = _options(fields["options"])
    space = _space(fields["space"], fields["observed"])
    model = _model(fields["blank"], fields["model"], left)
    since = taken(left, "since", (np.int64,), None).tolist() if "since" in left else []
    history = _history(left, space, since)
    require(not left, "arrays", f"{len(left)} of unknown names", "no others")
    goal = restored_goal(fields["goal"])
    return Saved(space, goal, model=model, since=since, history=history, **options)


# The list of trials ------------------------------------------------------------------------


def _stored(history: History, d: int) -> Arrays:
    """Return all trials as arrays."""
    ledger, contexts = history.ledger, [np.empty(0) if c is None else c for c in history.contexts]
    whys = [why.encode() for why in history.whys]
    numbers = range(len(history))
    return {
        "rows": np.array(history.rows, dtype=np.float64).reshape(-1, d),
        "states": np.array([STATES.index(ledger.state(i)) for i in numbers], dtype=np.int8),
        "outcomes": np.array([bool(ledger.outcome(i)) for i in numbers], dtype=np.bool_),
        "contexts": np.concatenate([np.empty(0), *contexts]),
        "context_lengths": np.array([len(each) for each in contexts], dtype=np.int64),
        "whys": np.frombuffer(b"".join(whys), dtype=np.int8),
        "why_lengths": np.array([len(each) for each in whys], dtype=np.int64),
    }


def _history(left: Arrays, space: Space, since: list[int]) -> History:
    """Return the trials that arrays tell, after a look at each; these were told last."""
    rows = _rows(left, space)
    t = len(rows)
    states = taken(left, "states", (np.int8,), t)
    known = range(len(STATES))
    require(np.isin(states, list(known)).all(), "states", "others", list(known))
    outcomes = taken(left, "outcomes", (np.bool_,), t).tolist()
    contexts = _cut(left, "contexts", "context_lengths", np.float64, t)
    whys = [each.tobytes().decode() for each in _cut(left, "whys", "why_lengths", np.int8, t)]
    history = History(len(space.names))
    for i in range(t):
        history.add(rows[i].copy(), whys[i])
    for i in np.flatnonzero(states == STATES.index("abandoned")).tolist():
        history.abandon(i)
    for i in _in_order(np.flatnonzero(states == STATES.index("told")).tolist(), since):
        context = checked_context(contexts[i][None], 1) if contexts[i].size else None
        history.tell(i, outcomes[i], context)
    return history


def _in_order(told: list[int], last: list[int]) -> list[int]:
    """Return the trials that were told, these last."""
    late = set(last)
    is_sound = len(late) == len(last) and late <= set(told)
    require(is_sound, "since", "others", "trials that were told")
    return [*(i for i in told if i not in late), *last]


def _rows(left: Arrays, space: Space) -> npt.NDArray[np.float64]:
    rows: npt.NDArray[np.float64] = taken(left, "rows", (np.float64,), None, len(space.names))
    # Trials at the edge were once asked for up to the rounding error of a side beyond it.
    inside = (rows >= space.low) & (rows <= np.maximum(space.high, space.low + space.side))
    require(inside.all(), "rows", "some outside the space", "those inside")
    return np.minimum(rows, space.high)


def _cut(left: Arrays, name: str, lengths: str, kind: Any, t: int) -> list[npt.NDArray[Any]]:
    """Return t pieces of an array, as long as another one says."""
    sizes = taken(left, lengths, (np.int64,), t)
    whole_array = taken(left, name, (kind,), None)
    ends = np.cumsum(sizes)
    is_sound = np.all(sizes >= 0) and (ends[-1] if t else 0) == whole_array.size
    require(is_sound, lengths, "others", f"those that add up to the {name}")
    return [whole_array[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _options(values: Any) -> dict[str, Any]:
    if isinstance(values, dict):
        values.pop("is_default", None)  # which files of earlier releases have
    options = fields_of("options", values, OPTIONS)
    whole("seed", options["seed"], 0, (1 << 63) - 1)
    return options


def _space(values: Any, observed: Any) -> Space:
    is_sound = isinstance(values, list) and all(
        isinstance(each, list) and len(each) == 3 for each in values
    )
    require(is_sound, "space", values, "lists of a name and two bounds")
    return Space.of({name: (low, high) for name, low, high in values}, observed)


def _model(options: Any, values: Any, left: Arrays) -> Any:
    """Return the model, as it was when it was saved."""
    if options is not None:
        return SmoothBetaClassifier(**state.restored_options(options)._asdict())
    names = [name for name in left if name.startswith(MODEL)]
    learned = {name.removeprefix(MODEL): left.pop(name) for name in names}
    return SmoothBetaClassifier.of(state.restored(values, learned))
