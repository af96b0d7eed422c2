"""What clients send, validated; the library itself validates what the values mean."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

NAME = r"^[A-Za-z0-9_-]{1,64}$"
# Trials of one ask, and numbers of trials.
MOST_ASKED, HIGHEST = 1000, (1 << 53) - 1

Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Text = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Context = (
    Annotated[str, Field(max_length=64)]
    | Annotated[list[Number], Field(min_length=2, max_length=64)]
    | None
)
Values = Annotated[dict[Annotated[str, Field(max_length=64)], Number], Field(max_length=256)]


class Body(BaseModel):
    """What every body has in common: no unknown names."""

    model_config = ConfigDict(extra="forbid")


class Enough(Body):
    """When there are trials enough."""

    trials: Annotated[int, Field(ge=1, le=HIGHEST, strict=True)] | None = None
    goal: StrictBool | None = None


class NewStudy(Body):
    """A study: see `betafield.server.definitions`."""

    name: Annotated[str, Field(pattern=NAME)]
    space: dict[str, Annotated[list[Number], Field(min_length=2, max_length=2)]]
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
    """Which trials are to be made next."""

    n: Annotated[int, Field(ge=1, le=MOST_ASKED, strict=True)] = 1
    fixed: Values = {}
    participant: Text | None = None
    key: Text | None = None


class Outcome(Body):
    """How a trial ended."""

    success: StrictBool
    context: Context = None
    participant: Text | None = None


class ToldTrial(Body):
    """A trial that was not asked for, and how it ended."""

    values: Values
    success: StrictBool
    context: Context = None
    participant: Text | None = None
    key: Text | None = None


Form = Literal["json", "csv", "parquet"]
