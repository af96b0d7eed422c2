"""A study as plain values (JSON, YAML), and the experiment that it describes."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from betafield import categories, checks, contexts
from betafield.decisions.experiment.experiment import Experiment
from betafield.decisions.experiment.goals import NAMES, Goal
from betafield.decisions.experiment.history import Context
from betafield.decisions.experiment.learner import usual_scale
from betafield.decisions.results import contexts as checked_contexts
from betafield.decisions.sides import from_json, to_json
from betafield.decisions.space import Space, seed_of
from betafield.estimators import SmoothBetaClassifier
from betafield.refusals import about
from betafield.server import schemas

# Named contexts by their rates: the first entry whose names include all given rates.
FORMULAS = {
    "guess_lapse": ("guess", "lapse"),
    "diagnostic": ("sensitivity", "specificity"),
    "pooled": ("size", "sensitivity", "specificity"),
    "attenuated": ("factor",),
    "background": ("rate",),
    "randomized_response": ("truth", "yes"),
    "affine": ("gain", "offset"),
}
FIELDS = (
    "name",
    "space",
    "goal",
    "model",
    "seed",
    "strategy",
    "spread",
    "observed",
    "contexts",
    "pending_seconds",
    "enough",
)
# Most features, contexts and compared points.
MOST = 256
LONGEST = 64
# A trial is pending for at most a year.
YEAR = 366 * 24 * 3600.0
# A level that is text, which may be a participant.
LEVEL = re.compile(schemas.TEXT)
ENOUGH = ("trials", "goal")


@dataclass(frozen=True)
class Definition:
    """The definition of a study, validated.

    Parameters
    ----------
    values : dict
        JSON values: `name`, `space`, `goal`, `model`, `seed`, `strategy`, `spread`, `observed`,
        `contexts`, `pending_seconds`, `enough`.

    Examples
    --------
    >>> study = Definition.of(
    ...     {
    ...         "name": "dots",
    ...         "space": {"contrast": [0, 1]},
    ...         "goal": {"kind": "LevelSet", "level": 0.75, "under": "two"},
    ...         "contexts": {"two": {"guess": 0.5, "lapse": 0.02}},
    ...         "seed": 1,
    ...     }
    ... )
    >>> study.context("two")
    array([[0.5 , 0.98]])
    >>> list(study.experiment().ask())
    ['contrast']
    """

    values: dict[str, Any]
    _probes: Any = field(default=None, compare=False)

    @classmethod
    def of(cls, values: Any) -> Definition:
        """Return the study that these values describe; raise for the first invalid one."""
        given = dict(checks.instance("study", values, Mapping, "a mapping is needed"))
        for name in given:
            checks.one_of("study", name, FIELDS)
        usual = dict.fromkeys(FIELDS) | {"pending_seconds": 600.0}
        told = usual | {name: value for name, value in given.items() if value is not None}
        told["seed"] = seed_of(told["seed"])
        told["space"] = to_json(told["space"])
        study = cls(json.loads(json.dumps(told, allow_nan=False)))
        study._check()
        return study

    def _check(self) -> None:
        _require_few("space", self.values["space"])
        _require_few("contexts", self.values["contexts"] or {})
        rule = "a number of seconds above 0, up to a year, is needed"
        checks.number("pending_seconds", self.pending_seconds, rule, above=0, high=YEAR)
        for name, value in (self.values["enough"] or {}).items():
            if checks.one_of("enough", name, ENOUGH) == "trials":
                checks.whole("enough, trials", value, 1)
        experiment = self.experiment()
        _require_names(self.space)
        self._probe(experiment)

    def _probe(self, experiment: Experiment) -> None:
        """Tell a scratch experiment the corners under every context, so that errors occur now."""
        space = self.space
        low, high = space.point(space.low), space.point(space.high)
        for context in (None, *map(self.context, self.values["contexts"] or {})):
            for point in (low, high):
                experiment.tell(point, success=True, context=context)
        experiment.ask(fixed={name: low[name] for name in self.values["observed"] or ()})

    @property
    def name(self) -> str:
        """The name of the study."""
        return str(self.values["name"])

    @cached_property
    def space(self) -> Space:
        """The features and their possible values."""
        return Space.of(from_json(self.values["space"]), self.values["observed"] or ())

    @property
    def pending_seconds(self) -> float:
        """The number of seconds that a trial stays pending."""
        return float(self.values["pending_seconds"])

    @property
    def has_participants(self) -> bool:
        """Whether the participant is an observed feature."""
        return "participant" in (self.values["observed"] or ())

    def enough(self, told: int, by_goal: bool) -> bool:
        """Return whether there are enough trials; `by_goal` is whether the goal is reached."""
        rules = self.values["enough"] or {}
        number = rules.get("trials")
        return (number is not None and told >= number) or (bool(rules.get("goal")) and by_goal)

    def experiment(self) -> Experiment:
        """Return the experiment before its first trial."""
        values = self.values
        return Experiment(
            self.space.given,
            self.goal,
            self._model(),
            values["seed"],
            values["strategy"],
            0.0 if values["spread"] is None else values["spread"],
            values["observed"] or (),
        )

    def _model(self) -> SmoothBetaClassifier | None:
        options = self.values["model"]
        if options is None:
            return None
        given = dict(checks.instance("model", options, Mapping, "a mapping of options is needed"))
        allowed = tuple(SmoothBetaClassifier().get_params())
        for name in given:
            checks.one_of("model", name, allowed)
        return SmoothBetaClassifier(**{"scale": usual_scale(self.space)} | given)

    @property
    def goal(self) -> Goal:
        """What the trials are for."""
        rule = "a mapping such as {'kind': 'LevelSet', 'level': 0.75} is needed"
        told = dict(checks.instance("goal", self.values["goal"], Mapping, rule))
        kind = NAMES[checks.one_of("goal, kind", told.pop("kind", None), tuple(NAMES))]
        if "level" in told:
            told["p"] = told.pop("level")
        if told.get("under") is not None:
            told["under"] = self._coefficients("goal, under", told["under"])
        allowed = tuple(each.name for each in dataclasses.fields(kind))
        for name in told:
            checks.one_of("goal", name, allowed)
        missing = [n for n in ("p", "points") if n in allowed and n not in told]
        if missing:
            name = {"p": "level"}.get(missing[0], missing[0])
            raise ValueError(f"goal: found no {name!r}, which {kind.__name__} needs")
        if "points" in told:
            _require_few("goal, points", told["points"])
        try:
            return kind(**told)
        except (ValueError, TypeError) as error:
            found = about(error)
            if found is not None and found.argument == "p":
                found = found._replace(argument="level")
            raise type(error)(f"goal, {found or error}") from error

    def context(self, given: Any) -> Context | None:
        """Return the context that a client gives by name or by coefficients."""
        if given is None:
            return None
        found = self._coefficients("context", given)
        is_flat = isinstance(found, np.ndarray) and found.ndim == 1
        # One row: many coefficients by themselves could be those of many trials.
        context: Context = checked_contexts(found[None] if is_flat else found, 1)
        return context

    def _coefficients(self, what: str, given: Any) -> Any:
        if isinstance(given, str):
            known = self.values["contexts"] or {}
            checks.require(bool(known), what, given, "the study has no contexts")
            return _coefficients(f"contexts, {given}", known[checks.one_of(what, given, known)])
        return _coefficients(what, given)

    def outcome(self, success: bool, given: Any) -> Context | None:
        """Return the context of an outcome; raise if it cannot be learned."""
        key = json.dumps([bool(success), given], sort_keys=True)
        context: Context | None = self._probed(key)
        return context

    @cached_property
    def _probed(self) -> Any:
        """A function that tries an outcome on a scratch experiment, once per kind of outcome."""

        @lru_cache(maxsize=1024)
        def probed(key: str) -> Context | None:
            success, given = json.loads(key)
            context = self.context(given)
            _require_informative(context)
            scratch = self._scratch
            scratch.tell(_middle(self.space), success=success, context=context)
            return context

        return probed

    @property
    def _scratch(self) -> Experiment:
        """A new experiment that has learned one trial."""
        experiment = self.experiment()
        experiment.tell(_middle(self.space), success=True)
        return experiment


def _middle(space: Space) -> dict[str, Any]:
    return space.point(space.rows(np.full(len(space.names), 0.5)))


def _require_informative(context: Any) -> None:
    """Raise for a context under which an outcome says nothing about π."""
    if isinstance(context, np.ndarray) and np.ptp(context) == 0.0:
        raise ValueError(
            f"context: found {context.ravel().tolist()}, whose coefficients are equal; an outcome "
            "under it says nothing of π"
        )


def _require_names(space: Space) -> None:
    """Raise unless each level has a distinct name by which requests can refer to it."""
    for name, levels in space.levels.items():
        what = f"space, feature {name!r}"
        for level in levels:
            is_plain = not isinstance(level, str) or (
                len(level) <= schemas.LONGEST and LEVEL.fullmatch(level)
            )
            size = f"1 to {schemas.LONGEST} characters"
            rule = f"a level is text of {size}, none of them a control character"
            checks.require(is_plain, what, level, rule)
        is_told_apart = len(set(map(categories.text, levels))) == len(levels)
        rule = "levels are known by their text, which must differ"
        checks.require(is_told_apart, what, list(levels), rule)


def _require_few(what: str, values: Any) -> None:
    if hasattr(values, "__len__") and len(values) > MOST:
        raise ValueError(f"{what}: found {len(values)} entries; at most {MOST} are possible")
    for name in values if isinstance(values, Mapping) else ():
        if len(str(name)) > LONGEST:
            raise ValueError(f"{what}: found a name longer than {LONGEST} characters")


def _coefficients(what: str, given: Any) -> Any:
    """Return the coefficients of a context given by its rates or by its coefficients."""
    if not isinstance(given, Mapping):
        return checks.finite(what, given)
    rates = dict(given)
    for formula, names in FORMULAS.items():
        if set(rates) <= set(names) and names[0] in rates:
            return getattr(contexts, formula)(**rates)
    known = "; ".join(", ".join(names) for names in FORMULAS.values())
    raise ValueError(f"{what}: found rates {checks.listed(rates)}; allowed are {known}")


# From files ---------------------------------------------------------------------------------


def read(path: str | Path) -> Definition:
    """Return the study that a file describes: .json, .yaml, .yml, or .py with `study = {…}`."""
    found = Path(path)
    text = found.read_text(encoding="utf-8")
    if found.suffix == ".py":
        named: dict[str, Any] = {}
        exec(compile(text, str(found), "exec"), named)  # the operator's own file
        if "study" not in named:
            raise ValueError(f"{found}: found no variable `study`")
        values = named["study"]
    else:
        values = parsed(text, is_yaml=found.suffix in (".yaml", ".yml"))
    if isinstance(values, Mapping) and "name" not in values:
        values = {"name": found.stem, **values}
    return Definition.of(values)


def parsed(text: str, is_yaml: bool) -> Any:
    """Return the values in JSON or YAML; aliases are refused, because they may expand endlessly.

    Examples
    --------
    >>> parsed("{x: [0, 1]}", is_yaml=True)
    {'x': [0, 1]}
    """
    if not is_yaml:
        return _parsed_json(text)
    import yaml

    class Plain(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.events.AliasEvent):
                raise ValueError("study: found an alias (*name); they are not allowed here")
            return super().compose_node(parent, index)

    try:
        return yaml.load(text, Plain)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"study: found text that is not valid YAML: {error}") from error


def _parsed_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"study: found text that is not valid JSON: {error}") from error
