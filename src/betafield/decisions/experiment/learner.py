"""The model of an experiment, which learns trial by trial.

A model that estimates its length scales takes longer to query after a new trial than one that only
counts it. Querying all candidates again after every trial would take too long, and one trial among
many changes little. So trials are chosen by the field as it was when a round began
(`Learner.field`), and a round ends once the trials have grown by more than 1/64. Up to 64 trials,
every trial begins a round.
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import checks, learning, success
from betafield.categories import Categories, columns_of, text
from betafield.decisions.space import Space
from betafield.distorted import Context
from betafield.estimators import SmoothBetaClassifier
from betafield.evidence.columns import FRACTIONS
from betafield.methods import AnyField
from betafield.options import Options
from betafield.smooth import GROWTH, SmoothField
from betafield.trials import Features

Floats = npt.NDArray[np.float64]

# Trials in a round, as a fraction of those before it.
ROUND = 1 / 64


class Learner:
    """A model for a space, the user's or the default one.

    Parameters
    ----------
    model : SmoothBetaClassifier
    space : Space
    columns : tuple of int
        The features with levels that are categories to the model.

    Attributes
    ----------
    model : SmoothBetaClassifier
        The model with all trials.
    field : Field or SmoothField, or None
        The field when the round began, by which the next trial is chosen. None if there was none.
    n_since : int
        Number of trials since then.

    Examples
    --------
    >>> learner = Learner.of(None, Space.of({"x": (0, 1)}))
    >>> for i in range(67):
    ...     learner.learn(np.array([i / 67]), i > 33, None)
    >>> learner.model.n_trials_, learner.field.totals.number(), learner.n_since
    (67, 66, 1)
    """

    def __init__(
        self, model: SmoothBetaClassifier, space: Space, columns: tuple[int, ...] = ()
    ) -> None:
        self.model = model
        self._space, self._columns = space, columns
        self.field = model.field_ if has_learned(model) else None
        self.n_since = 0

    @property
    def begun(self) -> SmoothBetaClassifier:
        """The model as it was when the round began."""
        return self.model if self.field is None else SmoothBetaClassifier.of(self.field)

    @classmethod
    def of(cls, model: Any, space: Space) -> Learner:
        """Return a learner with a copy of the model, or with the default model."""
        if model is None:
            return cls(_usual(space), space, space.levelled)
        if not isinstance(model, SmoothBetaClassifier):
            raise TypeError(
                f"model: found {type(model).__name__}; a SmoothBetaClassifier is needed"
            )
        own = copy.copy(model)
        if not has_learned(own):
            success.require_true(own.pos_label)
        if has_learned(own):
            _require_fitting(own, space)
            return cls(own, space, categories_of(own.field_))
        columns = _prepared(own, space)
        return cls(own, space, columns)

    def learn(self, row: Floats, outcome: bool, context: Context | None) -> None:
        """Teach the model one trial; if this raises, nothing has changed."""
        model, X = copy.copy(self.model), self._space.labelled(row[None], self._columns)
        if not has_learned(model):
            model.partial_fit(X, [outcome], classes=[False, True], context=context)
        else:
            model.partial_fit(X, model.field_.classes[[int(outcome)]], context=context)
        self.model = model
        self._look(model.field_)

    def learn_all(
        self, rows: Floats, outcomes: Sequence[bool], contexts: Sequence[Context | None]
    ) -> None:
        """Teach the model several trials in order; if this raises, nothing has changed.

        The result is that of `learn` for each, but much faster: trials are learned together as long
        as no round begins and nothing is estimated again between them.

        Examples
        --------
        >>> one, all_ = (Learner.of(None, Space.of({"x": (0, 1)})) for _ in range(2))
        >>> rows, ends = np.linspace(0, 1, 70)[:, None], [i > 33 for i in range(70)]
        >>> for row, end in zip(rows, ends):
        ...     one.learn(row, end, None)
        >>> all_.learn_all(rows, ends, [None] * 70)
        >>> one.n_since == all_.n_since, one.field.totals == all_.field.totals
        (True, True)
        """
        before = self.model, self.field, self.n_since
        try:
            start = 0
            while start < len(rows):
                end = min(start + self._together(), len(rows))
                self._learn_some(rows[start:end], outcomes[start:end], contexts[start:end])
                start = end
        except BaseException:
            self.model, self.field, self.n_since = before
            raise

    def _together(self) -> int:
        """Return how many trials can be learned together, because they only change sums."""
        if self.field is None:
            return 1
        now = self.model.field_
        if _is_quick(now):
            return sys.maxsize
        trials, before = now.totals.trials, self.field.totals.trials
        limits = [before + ROUND * before]
        if isinstance(now, SmoothField):
            limits.append(GROWTH * now.served_at.trials)
        # The trial that passes a limit is learned alone, so that rounding cannot move it.
        return max(1, math.floor((min(limits) - trials) / FRACTIONS) - 1)

    def _learn_some(
        self, rows: Floats, outcomes: Sequence[bool], contexts: Sequence[Context | None]
    ) -> None:
        """Teach some trials, of which only the last may begin a round."""
        if len(rows) == 1:
            self.learn(rows[0], outcomes[0], contexts[0])
            return
        model = copy.copy(self.model)
        classes, X = model.field_.classes, self._space.labelled(rows, self._columns)
        for which, context in _by_kind(contexts):
            labels = classes[np.array([int(outcomes[i]) for i in which])]
            model.partial_fit(X[which], labels, context=context)
        self.model = model
        self._look(model.field_, len(rows))

    def _look(self, now: AnyField, n: int = 1) -> None:
        """Begin a new round if it is time, after n more trials."""
        self.n_since += n
        if self.field is None or _is_quick(now) or _outgrows(now, self.field):
            self.field, self.n_since = now, 0


def _by_kind(contexts: Sequence[Context | None]) -> Iterator[tuple[list[int], Any]]:
    """Yield the trials whose contexts are of one kind, with these contexts.

    The kinds are: none, a number of coefficients, or a single context with unknown rates.
    """
    kinds: dict[Any, list[int]] = {}
    for i, context in enumerate(contexts):
        kinds.setdefault(_kind(context, i), []).append(i)
    for which in kinds.values():
        some = [contexts[i] for i in which]
        arrays = [np.atleast_2d(one) for one in some if isinstance(one, np.ndarray)]
        yield which, np.concatenate(arrays) if arrays else some[0]


def _kind(context: Context | None, i: int) -> Any:
    """Return the key of contexts that can be learned together."""
    if isinstance(context, np.ndarray):
        return context.size
    return None if context is None else ("family", i)


def _is_quick(field: AnyField) -> bool:
    """Return whether the field has windows of a width that need not be estimated."""
    return not (isinstance(field, SmoothField) or field.is_learned)


def _outgrows(now: AnyField, before: AnyField) -> bool:
    new = now.totals.trials - before.totals.trials
    return bool(new > ROUND * before.totals.trials)


def categories_of(field: AnyField) -> tuple[int, ...]:
    """Return the features that are categories to a field."""
    return field.features.categories.columns


def _usual(space: Space) -> SmoothBetaClassifier:
    """Return the default model."""
    model = SmoothBetaClassifier(scale=usual_scale(space))
    _prepared(model, space)
    return model


def usual_scale(space: Space) -> str | list[str]:
    """Return the units in which each feature is learned by default.

    Examples
    --------
    >>> from betafield.decisions import Log
    >>> usual_scale(Space.of({"x": (0, 1)})), usual_scale(Space.of({"x": (0, 1), "y": Log(1, 9)}))
    ('range', ['range', 'log'])
    """
    # Ranks would reflect the places that the experiment itself has chosen.
    each = ["log" if one.kind == "log" else "range" for one in space.sides]
    return each if "log" in each else "range"


def _numeric(space: Space, columns: tuple[int, ...]) -> list[int]:
    """Return the features that are numeric to a model."""
    return [a for a in range(len(space.names)) if a not in columns]


def _prepared(model: SmoothBetaClassifier, space: Space) -> tuple[int, ...]:
    """Adapt a model without trials to the space, and return the features that are categories."""
    columns = _categorical(model.categorical_features, space)
    numeric = _numeric(space, columns)
    if model.bounds is None and numeric:
        model.set_params(bounds=[space.bounds[a] for a in numeric])
    if not columns:
        return ()
    model.set_params(
        bounds=_of_numbers(model.bounds, space, numeric),
        scale=_of_numbers(model.scale, space, numeric),
        categorical_features=list(columns),
    )
    features = Features(len(space.names), None, Categories(columns)).unseen()
    learning.require_features(Options.of(model), features)
    return columns


def _of_numbers(values: Any, space: Space, numeric: list[int]) -> Any:
    """Return an option without its entries for features with levels, if it has one per feature."""
    is_each = isinstance(values, list | tuple | np.ndarray) and len(values) == len(space.names)
    return [values[a] for a in numeric] if is_each else values


def _categorical(asked: Any, space: Space) -> tuple[int, ...]:
    """Return the features with levels that become categories: all, unless some are named."""
    columns = columns_of(asked, (), space.names, len(space.names))
    if isinstance(asked, str):
        columns = space.levelled
    for a in columns:
        name, levels = space.names[a], space.sides[a].levels
        rule = f"{name!r} is a number: it has no levels"
        checks.require(a in space.levelled, "categorical_features", asked, rule)
        is_told_apart = len({text(level) for level in levels}) == len(levels)
        rule = "levels are known by their text, which must differ"
        checks.require(is_told_apart, f"space, feature {name!r}", list(levels), rule)
    return columns


def has_learned(model: SmoothBetaClassifier) -> bool:
    """Return whether a model has seen any trial."""
    return hasattr(model, "n_trials_")


def _require_fitting(model: SmoothBetaClassifier, space: Space) -> None:
    """Raise unless a fitted model matches this space."""
    if model.n_features_in_ != len(space.names):
        raise ValueError(
            f"model: found one with {model.n_features_in_} features; the space has "
            f"{len(space.names)}"
        )
    if len(model.classes_) != 2:
        raise ValueError(f"model: found one with {len(model.classes_)} classes; two are needed")
    for a in categories_of(model.field_):
        if a not in space.levelled:
            raise ValueError(
                f"model: found one to which {space.names[a]!r} is a category; the space has no "
                "levels of it"
            )
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        raise ValueError(
            f"model: found one with named features, {list(names)}; fit it to an array whose "
            f"columns are {', '.join(space.names)}"
        )
