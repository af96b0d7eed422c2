"""The page: all sections, in a template that escapes everything that came from data."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

import betafield.report.advice as advice
import betafield.report.calibration as calibration
import betafield.report.learned as learned
import betafield.report.near as near
import betafield.report.quality as quality
import betafield.report.recipe as recipe
import betafield.report.summary as summary
import betafield.report.sureness as sureness
import betafield.report.words as words
from betafield.report.blocks import Section
from betafield.report.subject import Subject

if TYPE_CHECKING:
    from betafield.estimators import SmoothBetaClassifier


def rendered(model: SmoothBetaClassifier, asked: recipe.Asked) -> str:
    """Return the page as text."""
    import betafield

    field = Subject(model, asked.level, asked.lipschitz, asked.above)
    parts = sections(field, asked)
    data = {figure.name: figure.data() for part in parts for figure in part.figures()}
    return _template().render(
        title=asked.title if asked.title is not None else _title(field),
        sections=parts,
        version=betafield.__version__,
        plotly=Markup(_plotly()),
        figures=Markup(words.script_json(data)),
    )


def sections(field: Subject, asked: recipe.Asked) -> list[Section]:
    """Return all sections in order."""
    return [
        summary.section(field),
        learned.section(field),
        sureness.section(field),
        calibration.section(field),
        near.section(field),
        quality.section(field),
        advice.section(field),
        recipe.section(field, asked),
    ]


def _title(field: Subject) -> str:
    """Return a heading made from the names of outcomes and features."""
    what = words.listed(words.short(field.outcome_name(c)) for c in field.outcomes)
    where = words.listed([words.short(name) for name in field.names[:4]])
    more = " and more" if len(field.names) > 4 else ""
    return f"Probability of {what} by {where}{more}"


@cache
def _template() -> Template:
    text = files("betafield.report").joinpath("template.html").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    return environment.from_string(text)


def _plotly() -> str:
    """Return plotly's script, which is embedded in the page."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
