"""HTML pages: the dashboard of a study, and an example experiment.

Templates escape whatever comes from users; scripts are files of this server.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from betafield._extras import needed
from betafield.categories import text
from betafield.decisions.sides import from_json
from betafield.decisions.space import Space

# Most curves shown if there are more than two features.
MOST_CURVES = 6


def dashboard(name: str, values: Mapping[str, Any], role: str) -> str:
    """Return the dashboard of a study.

    Parameters
    ----------
    name : str
        The name of the study.
    values : mapping
        The definition of the study, as JSON values.
    role : str
        The role of the reader: an "owner" may stop the study.

    Examples
    --------
    >>> study = {"space": {"<b>": [0, 1]}, "goal": {"kind": "LevelSet", "level": 0.75}}
    >>> page = dashboard("dots", study, "view")
    >>> "<b>" in page, "&lt;b&gt;" in page, "Stop the study" in page
    (False, True, False)
    """
    from betafield import __version__

    space, goal = Space.of(from_json(values["space"])), dict(values["goal"])
    names, levels = list(space.names), space.levels
    ranges = [each for each in names if each not in levels]
    # Names are listed separately, because browsers put keys that look like numbers first.
    shown = {
        "name": name,
        "names": names,
        "ranges": ranges,
        "space": {
            each: list(side.levels) or [side.low, side.high]
            for each, side in zip(names, space.sides, strict=True)
        },
        "kinds": {each: side.kind for each, side in zip(names, space.sides, strict=True)},
        "goal": goal,
        "enough": values.get("enough"),
    }
    return _rendered(
        "dashboard.html",
        name=name,
        study=json.dumps(shown),
        purpose=purpose(goal, names),
        picture=f"P(success) by {_listed(ranges or names)}",
        figures=_explained(_figures(ranges, list(levels)), goal),
        choices=_choices(levels, is_needed=bool(ranges) or len(levels) > 1),
        features=names,
        threshold=len(ranges) == len(names) == 1 and goal["kind"] == "LevelSet",
        owner=role == "owner",
        version=__version__,
    )


def two_alternatives() -> str:
    """Return the page of a two-alternative experiment."""
    return _rendered("two-alternatives.html")


def index(studies: Sequence[Mapping[str, Any]]) -> str:
    """Return the page that lists studies.

    Examples
    --------
    >>> study = {"name": "dots", "told": 3, "pending": 1, "stopped": True}
    >>> "dots</a>: 3 told, 1 pending, stopped" in index([study])
    True
    """
    return _rendered("index.html", studies=studies)


def routes(described: Sequence[tuple[str, str, str]]) -> str:
    """Return the page that lists routes: method, path, meaning.

    Examples
    --------
    >>> "<code>GET /health</code>" in routes([("GET", "/health", "Say that all is well.")])
    True
    """
    return _rendered("routes.html", routes=described)


def purpose(goal: Mapping[str, Any], names: list[str]) -> str:
    """Return what a study is for, in words.

    Examples
    --------
    >>> purpose({"kind": "LevelSet", "level": 0.75}, ["contrast"])
    'Where does the probability of success reach 75 % along contrast?'
    >>> purpose({"kind": "LevelSet", "level": 0.75, "under": "two"}, ["contrast"])
    'Where does the probability of success under context two reach 75 % along contrast?'
    >>> purpose({"kind": "Everywhere"}, ["dose", "age"])
    'How probable is success, everywhere over dose and age?'
    """
    over = _listed(names)
    level = f"{100 * goal.get('level', 0.5):g} %"
    under = f" {_under(goal)}" if goal.get("under") is not None else ""
    along = "along" if len(names) == 1 else "over"
    said = {
        "LevelSet": f"Where does the probability of success{under} reach {level} {along} {over}?",
        "Maximize": f"Where is success most probable over {over}?",
        "Minimize": f"Where is success least probable over {over}?",
        "Compare": f"Which of {len(goal.get('points', ()))} points of {over} is the best?",
    }
    return said.get(str(goal["kind"]), f"How probable is success, everywhere over {over}?")


def _under(goal: Mapping[str, Any]) -> str:
    """Return the context of a goal in words."""
    given = goal["under"]
    return f"under context {given}" if isinstance(given, str) else "under its context"


def _explained(figures: list[str], goal: Mapping[str, Any]) -> list[str]:
    """Return captions; the first says why the threshold is not where the curve has its level.

    Examples
    --------
    >>> _explained(["π."], {"kind": "LevelSet", "level": 0.75, "under": "two"})[0]
    'π. The threshold is where 75 % is reached under context two; P(success) is shown without it.'
    """
    if goal["kind"] != "LevelSet" or goal.get("under") is None:
        return figures
    where = f"The threshold is where {100 * goal['level']:g} % is reached {_under(goal)}"
    return [f"{figures[0]} {where}; P(success) is shown without it.", *figures[1:]]


def _choices(levels: Mapping[str, Sequence[Any]], is_needed: bool) -> dict[str, list[Any]]:
    """Return the features for which the reader chooses a level, with the names of their levels."""
    return {name: list(map(text, each)) for name, each in levels.items()} if is_needed else {}


def _figures(ranges: list[str], levels: list[str]) -> list[str]:
    """Return the caption of each figure: along ranges, or by level if there are none."""
    at = " at the levels chosen above" if levels else ""
    if not ranges:
        at = ", the others as chosen above" if len(levels) > 1 else ""
        shown = "Mean and 95 % interval of P(success) at each level of"
        return [f"{shown} {name}{at}, as of now." for name in levels[:MOST_CURVES]]
    if len(ranges) == 1:
        return [f"Mean and 95 % interval of P(success) by {ranges[0]}{at}, as of now."]
    if len(ranges) == 2:
        width = "How wide its 95 % interval is: where little is known."
        return [f"Mean of P(success){at}.", width]
    others = "with all other ranges at their middle; trials wherever they were made"
    return [f"P(success) by {name}{at}, {others}." for name in ranges[:MOST_CURVES]]


def _listed(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _rendered(template: str, **values: Any) -> str:
    return str(_template(template).render(**values))


@cache
def _template(name: str) -> Any:
    """Return a template that escapes all its values."""
    jinja2 = needed("server", "jinja2")
    folder = files("betafield.server").joinpath("templates")
    loader = jinja2.FunctionLoader(lambda each: folder.joinpath(each).read_text(encoding="utf-8"))
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template(name)
