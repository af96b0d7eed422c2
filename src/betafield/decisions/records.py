"""The list of trials of an experiment, and its file.

What the model has learned is stored, and checked, as in its own file: by `betafield.state`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import persistence, state
from betafield.decisions import goals
from betafield.decisions.space import Space
from betafield.estimators import SmoothBetaClassifier
from betafield.persistence import Arrays
from betafield.plain import fields_of, require, taken, whole
from betafield.trials import context as checked_context

Floats = npt.NDArray[np.float64]

KIND = "Experiment"
VALUES = ("blank", "goal", "model", "observed", "options", "space")
OPTIONS = ("is_default", "seed", "spread", "strategy")
# Before the names of arrays that are the model's.
MODEL = "model."
PENDING, TOLD, ABANDONED = 0, 1, 2
STATES = {PENDING: "pending", TOLD: "told", ABANDONED: "abandoned"}


class History:
    """What was asked, told and abandoned, in the order of asking.

    Parameters
    ----------
    d : int
        Number of features.

    Examples
    --------
    >>> history = History(1)
    >>> first = history.add(np.array([0.5]), "the first")
    >>> history.end(first, TOLD, outcome=True)
    >>> history.told, history.pending()
    (1, [])
    """

    def __init__(self, d: int) -> None:
        self._d = d
        self._rows: list[Floats] = []
        self._states: list[int] = []
        self._outcomes: list[bool] = []
        self._contexts: list[Floats | None] = []
        self._whys: list[str] = []
        # Asked for with every ask, so counted and kept apart.
        self._pending: dict[int, None] = {}
        self.told = 0

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: Floats, why: str) -> int:
        """Add a pending trial, and return its place."""
        place = len(self._rows)
        self._rows.append(row)
        self._states.append(PENDING)
        self._outcomes.append(False)
        self._contexts.append(None)
        self._whys.append(why)
        self._pending[place] = None
        return place

    def end(self, place: int, state: int, outcome: bool = False, context: Any = None) -> None:
        """Say how a pending trial ended."""
        del self._pending[place]
        self._states[place] = state
        self._outcomes[place] = outcome
        if context is not None:
            self._contexts[place] = np.array(context, dtype=np.float64).reshape(-1)
        self.told += state == TOLD

    def count(self, state: int) -> int:
        """Return how many trials are in this state."""
        ended = {TOLD: self.told, PENDING: len(self._pending)}
        return ended.get(state, len(self) - sum(ended.values()))

    def pending(self) -> list[int]:
        """Return the places of the trials that are pending."""
        return list(self._pending)

    def pending_rows(self) -> list[Floats]:
        """Return where they are."""
        return [self._rows[place] for place in self._pending]

    def rows(self, state: int) -> Floats:
        """Return where the trials in this state are."""
        found = [row for row, s in zip(self._rows, self._states, strict=True) if s == state]
        return np.array(found).reshape(-1, self._d)

    def row(self, place: int) -> Floats:
        """Return where a trial is."""
        return self._rows[place]

    def state(self, place: int) -> int:
        """Return PENDING, TOLD or ABANDONED."""
        return self._states[place]

    def why(self, place: int) -> str:
        """Return why it was asked for."""
        return self._whys[place]

    def told_of(self, place: int) -> dict[str, Any]:
        """Return what is known of a trial, but where it is."""
        context = self._contexts[place]
        is_told = self._states[place] == TOLD
        return {
            "id": place,
            "state": STATES[self._states[place]],
            "success": self._outcomes[place] if is_told else None,
            "context": None if context is None else context.tolist(),
            "why": self._whys[place],
        }

    def stored(self) -> Arrays:
        """Return all trials as arrays."""
        contexts = [np.empty(0) if each is None else each for each in self._contexts]
        whys = [why.encode() for why in self._whys]
        return {
            "rows": np.array(self._rows, dtype=np.float64).reshape(-1, self._d),
            "states": np.array(self._states, dtype=np.int8),
            "outcomes": np.array(self._outcomes, dtype=np.bool_),
            "contexts": np.concatenate([np.empty(0), *contexts]),
            "context_lengths": np.array([len(each) for each in contexts], dtype=np.int64),
            "whys": np.frombuffer(b"".join(whys), dtype=np.int8),
            "why_lengths": np.array([len(each) for each in whys], dtype=np.int64),
        }

    @classmethod
    def restored(cls, left: Arrays, space: Space) -> History:
        """Return the trials that arrays tell, after a look at each of them."""
        history = cls(len(space.names))
        rows = taken(left, "rows", (np.float64,), None, len(space.names))
        inside = (rows >= space.low) & (rows <= space.low + space.side)
        require(inside.all(), "rows", "some outside the space", "those inside")
        t = len(rows)
        states = taken(left, "states", (np.int8,), t)
        require(np.isin(states, list(STATES)).all(), "states", "others", list(STATES))
        outcomes = taken(left, "outcomes", (np.bool_,), t)
        contexts = _cut(left, "contexts", "context_lengths", np.float64, t)
        whys = [each.tobytes().decode() for each in _cut(left, "whys", "why_lengths", np.int8, t)]
        for row, ended, outcome, context, why in zip(
            rows, states.tolist(), outcomes.tolist(), contexts, whys, strict=True
        ):
            place = history.add(row.copy(), why)
            if ended != PENDING:
                told = checked_context(context, 1) if context.size else None
                history.end(place, ended, outcome, told)
        return history


def _cut(left: Arrays, name: str, lengths: str, kind: Any, t: int) -> list[npt.NDArray[Any]]:
    """Return t pieces of an array, as long as another one says."""
    sizes = taken(left, lengths, (np.int64,), t)
    whole_array = taken(left, name, (kind,), None)
    ends = np.cumsum(sizes)
    is_sound = np.all(sizes >= 0) and (ends[-1] if t else 0) == whole_array.size
    require(is_sound, lengths, "others", f"those that add up to the {name}")
    return [whole_array[end - size : end] for end, size in zip(ends, sizes, strict=True)]


# The file ----------------------------------------------------------------------------------


def save(
    path: Any,
    options: dict[str, Any],
    space: Space,
    goal: goals.Goal,
    model: Any,
    history: History,
) -> None:
    """Write an experiment to a file."""
    values = {
        "blank": None,
        "goal": goals.stored(goal),
        "model": None,
        "observed": list(space.observed),
        "options": options,
        "space": [[name, *ends] for name, ends in zip(space.names, space.bounds, strict=True)],
    }
    arrays = history.stored()
    if hasattr(model, "n_trials_"):
        values["model"], learned = state.stored(model)
        arrays |= {MODEL + name: array for name, array in learned.items()}
    else:
        values["blank"] = state.stored_options(model)
    persistence.write(path, KIND, values, arrays)


def load(path: Any) -> tuple[dict[str, Any], Space, goals.Goal, Any, History]:
    """Return the parts of the experiment of a file, to be called within `sound`."""
    values, arrays = _read(path)
    fields = fields_of("values", values, VALUES)
    options = _options(fields["options"])
    space = _space(fields["space"], fields["observed"])
    model = _model(fields["blank"], fields["model"], arrays)
    history = History.restored(arrays, space)
    require(not arrays, "arrays", f"{len(arrays)} of unknown names", "no others")
    return options, space, goals.restored(fields["goal"]), model, history


class NoExperimentError(ValueError):
    """A file that is none of an experiment, which has said so itself."""


def _read(path: Any) -> tuple[Any, Arrays]:
    try:
        return persistence.read(path, KIND)
    except ValueError as error:
        raise NoExperimentError(*error.args) from error


@contextlib.contextmanager
def sound(path: Any) -> Iterator[None]:
    """Say of what is wrong inside that the file is."""
    try:
        yield
    except NoExperimentError as error:
        raise ValueError(*error.args) from error
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise ValueError(f"path: {str(path)!r} holds no sound experiment: {error}") from error


def _options(values: Any) -> dict[str, Any]:
    options = fields_of("options", values, OPTIONS)
    whole("seed", options["seed"], 0, (1 << 63) - 1)
    require(type(options["is_default"]) is bool, "is_default", options["is_default"], "booleans")
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
        return state.blank(options, SmoothBetaClassifier)
    names = [name for name in left if name.startswith(MODEL)]
    learned = {name.removeprefix(MODEL): left.pop(name) for name in names}
    return state.restored(values, learned, SmoothBetaClassifier)
