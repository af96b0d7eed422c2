"""A bandit as plain values and arrays, to save, and back.

A file contains the arms, the options, and the whole history: every pull, how it ended, and in which
steps that was learned. A loaded bandit learns it again. Files are untrusted: every value is
validated before it is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from betafield import persistence, plain, state
from betafield.decisions.bandit.arms import Arms
from betafield.decisions.bandit.pulls import Pulls, Step
from betafield.decisions.files import load as load_file
from betafield.decisions.ledger import ABANDONED, PENDING, Ledger
from betafield.decisions.space import Space
from betafield.estimators import SmoothBetaClassifier
from betafield.options import Options
from betafield.persistence import Arrays
from betafield.plain import require, taken, whole

T = TypeVar("T")
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

KIND = "bandit"
VALUES = ("arms", "chosen", "model", "observed", "policy", "seed")
KINDS = ("continuum", "points")
MOST_SEED = (1 << 63) - 1


class Saved(NamedTuple):
    """The complete state of a bandit."""

    policy: str
    seed: int
    model: SmoothBetaClassifier | None
    pulls: Pulls


def save(path: Any, saved: Saved) -> None:
    """Write a bandit to a file."""
    arms, model = saved.pulls.arms, saved.model
    kind: Any = KINDS[0] if arms.is_continuum else KINDS[1]
    values = {
        "arms": list(arms.names) if arms.names is not None else kind,
        "chosen": arms.chosen and list(arms.chosen.names),
        "model": None if model is None else state.stored_options(Options.of(model)),
        "observed": arms.observed and list(arms.observed.names),
        "policy": saved.policy,
        "seed": saved.seed,
    }
    persistence.write(path, KIND, values, _stored_arms(arms, kind) | _stored_pulls(saved.pulls))


def load(path: Any, make: Callable[[Saved], T]) -> T:
    """Return `make(saved)` for the bandit in a file."""
    return load_file(path, KIND, lambda values, arrays: make(_saved(values, arrays)))


# Out ---------------------------------------------------------------------------------------


def _stored_arms(arms: Arms, kind: str) -> Arrays:
    spaces = {"chosen": arms.chosen, "observed": arms.observed}
    arrays = {name: np.array(space.bounds) for name, space in spaces.items() if space is not None}
    if kind == "points" and arms.points is not None:
        arrays["points"] = arms.points
    return arrays


def _stored_pulls(pulls: Pulls) -> Arrays:
    n_observed = len(pulls.arms.observed.names) if pulls.arms.observed else 0
    whys = "\n".join(pull.why for pull in pulls.pending)
    return {
        "ends": np.array(pulls.ledger.ends, dtype=np.int64),
        "given": np.array(pulls.given).reshape(len(pulls), n_observed),
        "index": np.array(pulls.index, dtype=np.int64),
        "whys": np.frombuffer(whys.encode("ascii"), dtype=np.int8),
        **_stored_steps(pulls.steps),
    }


def _stored_steps(steps: list[Step]) -> Arrays:
    """Return the pulls learned in each step, and their contexts."""
    contexts = [np.empty((0, 0)) if context is None else context for _, context in steps]
    return {
        "step.sizes": np.array([len(numbers) for numbers, _ in steps], dtype=np.int64),
        "step.pulls": np.array([n for numbers, _ in steps for n in numbers], dtype=np.int64),
        "step.contexts": np.array([c.shape for c in contexts], dtype=np.int64).reshape(-1, 2),
        "step.coefficients": np.concatenate([c.ravel() for c in contexts] or [np.empty(0)]),
    }


# In ----------------------------------------------------------------------------------------


def _saved(values: Any, left: Arrays) -> Saved:
    if isinstance(values, dict):
        values.pop("settled", None)  # present in files of earlier releases
    fields = plain.fields_of("values", values, VALUES)
    seed = whole("seed", fields["seed"], 0, MOST_SEED)
    options = fields["model"]
    model = None if options is None else state.restored_options(options)
    pulls = _pulls(_arms(fields, left, seed), left)
    require(not left, "arrays", ", ".join(sorted(left)), "those of a bandit")
    blank = None if model is None else SmoothBetaClassifier(**model._asdict())
    return Saved(fields["policy"], seed, blank, pulls)


def _arms(fields: dict[str, Any], left: Arrays, seed: int) -> Arms:
    kind, chosen = fields["arms"], _bounds(fields["chosen"], left, "chosen")
    observed = _bounds(fields["observed"], left, "observed")
    if isinstance(kind, list):
        require(chosen is None, "chosen", chosen, "none for named arms")
        return Arms.of(kind, observed, seed)
    plain.one_of("arms", kind, KINDS)
    if chosen is None:
        raise ValueError("chosen: found none; arms that are points have features")
    if kind == "continuum":
        return Arms.of(chosen, observed, seed)
    points = taken(left, "points", (np.float64,), None, len(chosen))
    require(points.size > 0, "points", 0, "some")
    require(bool(np.isfinite(points).all()), "points", "others", "finite numbers")
    return Arms.at(list(chosen), points, observed)


def _bounds(names: Any, left: Arrays, name: str) -> dict[str, tuple[float, float]] | None:
    if names is None:
        return None
    is_sound = isinstance(names, list) and all(isinstance(each, str) for each in names)
    require(is_sound and len(set(names)) == len(names), name, names, "different names")
    ends = taken(left, name, (np.float64,), len(names), 2)
    return dict(zip(names, map(tuple, ends.tolist()), strict=True))


def _pulls(arms: Arms, left: Arrays) -> Pulls:
    """Return the history of pulls."""
    ends = taken(left, "ends", (np.int64,), None)
    n, observed, pulls = len(ends), arms.observed, Pulls(arms)
    possible = bool(((ends >= PENDING) & (ends <= ABANDONED)).all())
    require(possible, "ends", "others", "-1, 0, 1 and 2")
    index = taken(left, "index", (np.int64,), n)
    within = bool(((index >= 0) & (index < arms.size)).all())
    require(within, "index", "others", f"0 to {arms.size - 1}")
    given = taken(left, "given", (np.float64,), n, len(observed.names) if observed else 0)
    if observed is not None:
        _require_inside(observed, given)
    whys = taken(left, "whys", (np.int8,), None).tobytes().decode("ascii").split("\n")
    pending = np.flatnonzero(ends == PENDING).tolist()
    require(len(whys) == max(1, len(pending)), "whys", len(whys), "one per pending pull")
    pulls.ledger, pulls.steps = Ledger(ends.tolist()), _steps(left, ends)
    pulls.index, pulls.given = index.tolist(), list(given)
    pulls.whys = dict(zip(pending, whys, strict=False))
    return pulls


def _require_inside(space: Space, rows: Floats) -> None:
    shares = space.shares(rows)
    inside = bool(np.isfinite(rows).all() and (shares >= 0.0).all() and (shares <= 1.0).all())
    require(inside, "given", "others", "values within the bounds")


def _steps(left: Arrays, ends: Ints) -> list[Step]:
    """Return the steps; every pull with a reward must be in exactly one."""
    sizes = taken(left, "step.sizes", (np.int64,), None)
    pulls = taken(left, "step.pulls", (np.int64,), None)
    shapes = taken(left, "step.contexts", (np.int64,), len(sizes), 2)
    flat = taken(left, "step.coefficients", (np.float64,), None)
    learned = np.flatnonzero((ends == 0) | (ends == 1))
    require(bool((sizes >= 1).all()) and sizes.sum() == len(pulls), "step.sizes", sizes, "others")
    require(np.array_equal(np.sort(pulls), learned), "step.pulls", "others", "those with rewards")
    areas = shapes.prod(axis=1)
    is_sound = bool((shapes >= 0).all() and (shapes <= flat.size).all())
    require(is_sound and areas.sum() == flat.size, "step.contexts", "others", "shapes of contexts")
    parts = np.split(pulls, np.cumsum(sizes)[:-1]) if len(sizes) else []
    contexts = np.split(flat, np.cumsum(areas)[:-1]) if len(sizes) else []
    return [
        Step(part.tolist(), context.reshape(shape) if context.size else None)
        for part, context, shape in zip(parts, contexts, shapes, strict=True)
    ]
