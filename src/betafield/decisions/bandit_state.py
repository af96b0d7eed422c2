"""A bandit as plain values and arrays, to save, and back.

A file tells the arms, the options, and all that happened: what every pull was, how it ended, and in
which steps that was learned. A loaded bandit learns it anew. A file may be anybody's: every value
is checked before anything is made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import persistence, plain, state
from betafield.decisions.arms import Arms
from betafield.decisions.space import Space
from betafield.estimators import SmoothBetaClassifier
from betafield.persistence import Arrays
from betafield.plain import require, taken, whole

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

KIND = "bandit"
VALUES = ("arms", "chosen", "model", "observed", "policy", "seed", "settled")
KINDS = ("continuum", "points")
MOST_SEED = (1 << 63) - 1


def save(bandit: Any, path: Any) -> None:
    """Write a bandit to a file."""
    persistence.write(path, KIND, *_state(bandit))


def load(path: Any, make: Callable[..., Any]) -> Any:
    """Return the bandit of a file; `make` gives one that has pulled nothing."""
    values, arrays = persistence.read(path, KIND)
    try:
        fields, left = plain.fields_of("values", values, VALUES), dict(arrays)
        seed = whole("seed", fields["seed"], 0, MOST_SEED)
        options = fields["model"]
        model = None if options is None else state.blank(options, SmoothBetaClassifier)
        arms = _arms(fields, left, seed)
        bandit = make(arms, fields["policy"], model=model, random_state=seed)
        _restore(bandit, fields, left)
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise ValueError(f"path: {str(path)!r} holds no sound bandit: {error}") from error
    return bandit


# Out ---------------------------------------------------------------------------------------


def _state(bandit: Any) -> tuple[dict[str, Any], Arrays]:
    arms: Arms = bandit.arms
    kind: Any = KINDS[0] if arms.is_continuum else KINDS[1]
    model = bandit.model
    values = {
        "arms": list(arms.names) if arms.names is not None else kind,
        "chosen": arms.chosen and list(arms.chosen.names),
        "model": None if model is None else state.stored_options(model),
        "observed": arms.observed and list(arms.observed.names),
        "policy": bandit.policy,
        "seed": bandit.seed,
        "settled": bandit._settled,
    }
    n_chosen = len(arms.chosen.names) if arms.chosen else 0
    n_observed = len(arms.observed.names) if arms.observed else 0
    rows = np.array(bandit._rows).reshape(bandit.n_pulls, len(arms.bounds))
    whys = "\n".join(pull.why for pull in bandit.pending)
    arrays: Arrays = {
        "ends": np.array(bandit._ends, dtype=np.int64),
        "given": rows[:, n_chosen : n_chosen + n_observed],
        "index": np.array(bandit._index, dtype=np.int64),
        "whys": np.frombuffer(whys.encode("ascii"), dtype=np.int8),
        **_stored_steps(bandit._steps),
    }
    for name, space in (("chosen", arms.chosen), ("observed", arms.observed)):
        if space is not None:
            arrays[name] = np.array(space.bounds)
    if kind == "points" and arms.points is not None:
        arrays["points"] = arms.points
    return values, arrays


def _stored_steps(steps: list[tuple[list[int], Floats | None]]) -> Arrays:
    """Return what was learned at once, step after step, and under which contexts."""
    contexts = [np.empty((0, 0)) if context is None else context for _, context in steps]
    return {
        "step.sizes": np.array([len(numbers) for numbers, _ in steps], dtype=np.int64),
        "step.pulls": np.array([n for numbers, _ in steps for n in numbers], dtype=np.int64),
        "step.contexts": np.array([c.shape for c in contexts], dtype=np.int64).reshape(-1, 2),
        "step.coefficients": np.concatenate([c.ravel() for c in contexts] or [np.empty(0)]),
    }


# In ----------------------------------------------------------------------------------------


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
    return Arms.at(list(chosen), points, observed)


def _bounds(names: Any, left: Arrays, name: str) -> dict[str, tuple[float, float]] | None:
    if names is None:
        return None
    is_sound = isinstance(names, list) and all(isinstance(each, str) for each in names)
    require(is_sound and len(set(names)) == len(names), name, names, "different names")
    ends = taken(left, name, (np.float64,), len(names), 2)
    return dict(zip(names, map(tuple, ends.tolist()), strict=True))


def _restore(bandit: Any, fields: dict[str, Any], left: Arrays) -> None:
    """Give a new bandit all that happened."""
    ends = taken(left, "ends", (np.int64,), None)
    n, observed = len(ends), bandit.arms.observed
    require(bool(((ends >= -1) & (ends <= 2)).all()), "ends", "others", "-1, 0, 1 and 2")
    index = taken(left, "index", (np.int64,), n)
    within = bool(((index >= 0) & (index < bandit.arms.size)).all())
    require(within, "index", "others", f"0 to {bandit.arms.size - 1}")
    given = taken(left, "given", (np.float64,), n, len(observed.names) if observed else 0)
    if observed is not None:
        _require_inside(observed, given)
    steps = _steps(left, ends)
    whys = taken(left, "whys", (np.int8,), None).tobytes().decode("ascii").split("\n")
    pending = np.flatnonzero(ends == -1).tolist()
    require(len(whys) == max(1, len(pending)), "whys", len(whys), "one a pending pull")
    settled = whole("settled", fields["settled"], 0, n)
    require(not left, "arrays", ", ".join(sorted(left)), "those of a bandit")
    bandit._remember(index.tolist(), given, ends.tolist(), steps, settled)
    for number, why in zip(pending, whys, strict=False):
        bandit._pending[number] = bandit._pull_of(number, int(index[number]), given[number], why)


def _require_inside(space: Space, rows: Floats) -> None:
    shares = space.shares(rows)
    inside = bool(np.isfinite(rows).all() and (shares >= 0.0).all() and (shares <= 1.0).all())
    require(inside, "given", "others", "values within the bounds")


def _steps(left: Arrays, ends: Ints) -> list[tuple[list[int], Floats | None]]:
    """Return the steps, in which every pull with a reward was learned once."""
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
        (part.tolist(), context.reshape(shape) if context.size else None)
        for part, context, shape in zip(parts, contexts, shapes, strict=True)
    ]
