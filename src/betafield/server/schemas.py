"""Schemas of request bodies; the library itself validates the meaning of the values."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictInt,
    Tag,
)
from pydantic_core import PydanticCustomError

from betafield import checks
from betafield.decisions.sides import MOST_LEVELS

NAME = r"^[A-Za-z0-9_-]{1,64}$"
TEXT = r"^[^\x00-\x1f\x7f]+$"
# Explanations of patterns for error messages.
MEANT = {
    NAME: "1 to 64 letters, digits, _ and - are needed",
    TEXT: "text without control characters is needed",
}
# Most trials per ask, and the highest number of trials.
MOST_ASKED, HIGHEST = 1000, (1 << 53) - 1
# Most characters of a text.
LONGEST = 200

Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Text = Annotated[str, Field(min_length=1, max_length=LONGEST, pattern=TEXT)]
Context = (
    Annotated[str, Field(max_length=64)]
    | Annotated[list[Number], Field(min_length=2, max_length=64)]
    | None
)


def _finite(value: Any) -> Any:
    """Return a finite number; a union would list one error per alternative."""
    if not _is_finite(value):
        raise PydanticCustomError("value", "a finite number is needed")
    return value


def _plain(value: Any) -> Any:
    """Return a finite number, text or a boolean."""
    is_short = isinstance(value, str) and len(value) <= LONGEST
    if not (is_short or _is_finite(value) or isinstance(value, bool)):
        rule = "a finite number, text of at most {most} characters or a boolean is needed"
        raise PydanticCustomError("value", rule, {"most": LONGEST})
    return value


def _is_finite(value: Any) -> bool:
    return checks.is_number(value) and math.isfinite(checks.as_float(value))


# The value of a feature: a number, or a level by its name. The library knows which is needed.
Value = Annotated[
    Number | Annotated[str, Field(max_length=LONGEST)] | StrictBool, BeforeValidator(_plain)
]
Values = Annotated[dict[Annotated[str, Field(max_length=64)], Value], Field(max_length=256)]
# Integers stay integers, because they may be levels.
Listed = Annotated[
    list[Annotated[StrictInt | Value, BeforeValidator(_plain)]], Field(max_length=MOST_LEVELS)
]
End = Annotated[StrictInt | Number, BeforeValidator(_finite)]
Scaled = dict[Literal["log", "integer"], Annotated[list[End], Field(max_length=2)]]
# Tags by which pydantic tells the two apart; they never reach people.
TAGS = ("-listed", "-scaled")
Side = Annotated[
    Annotated[Listed, Tag(TAGS[0])] | Annotated[Scaled, Tag(TAGS[1])],
    Discriminator(lambda given: TAGS[isinstance(given, dict)]),
]


class Body(BaseModel):
    """The base of all bodies, which forbids unknown names."""

    model_config = ConfigDict(extra="forbid")


class Enough(Body):
    """When a study has enough trials."""

    trials: Annotated[int, Field(ge=1, le=HIGHEST, strict=True)] | None = None
    goal: StrictBool | None = None


class NewStudy(Body):
    """A study: see `betafield.server.definitions`."""

    name: Annotated[str, Field(pattern=NAME)]
    space: dict[str, Side]
    goal: dict[str, Any]
    model: dict[str, Any] | None = None
    seed: Annotated[int, Field(ge=0, le=(1 << 63) - 1, strict=True)] | None = None
    strategy: Annotated[str, Field(max_length=64)] | None = None
    spread: Number | None = None
    observed: Annotated[list[str], Field(max_length=256)] | None = None
    contexts: dict[str, dict[str, Any] | list[Number]] | None = None
    pending_seconds: Number | None = None
    enough: Enough | None = None


class Ask(Body):
    """A request for the next trials."""

    n: Annotated[int, Field(ge=1, le=MOST_ASKED, strict=True)] = 1
    fixed: Values = {}
    participant: Text | None = None
    key: Text | None = None


class Outcome(Body):
    """The outcome of a trial."""

    success: StrictBool
    context: Context = None
    participant: Text | None = None


class ToldTrial(Body):
    """A trial that was not asked for, and its outcome."""

    values: Values
    success: StrictBool
    context: Context = None
    participant: Text | None = None
    key: Text | None = None


Form = Literal["json", "csv", "parquet"]
