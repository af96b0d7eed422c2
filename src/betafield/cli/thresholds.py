"""`betafield threshold`: where the probability reaches a level."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import betafield.cli.options as options
import betafield.cli.spelling as spelling
import betafield.cli.terminal as terminal
from betafield.cli.usage import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from betafield.answers.threshold import Threshold
    from betafield.cli.writing import Columns


def threshold(
    model: options.ModelFile,
    *,
    level: options.Levels,
    feature: options.Feature = None,
    fixed: options.Fixed = None,
    under: options.LevelUnder = None,
    anchored: options.Anchored = False,
    interval: options.Interval = 0.95,
    size: options.Draws = 2000,
    seed: options.Seed = 0,
    out: options.Out = None,
    kind: options.Format = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Compute where the probability reaches a level, with intervals.

    The result is a table with one row per level: the median of the threshold; the ends low and
    high of its interval; never and already, the shares of drawn curves that do not reach the level
    by the high end of the domain, or are beyond it at the low end; and the slope of the
    probability there with its interval. A summary in words goes to standard error.

        betafield threshold model.beta --level 0.5
        betafield threshold model.beta --level 0.75 --under guess=0.5,lapse=0.02
            --anchored --format json
    """
    import betafield.cli.answering as answering
    import betafield.cli.distortions as distortions
    import betafield.cli.writing as writing

    context = distortions.under(under)
    if context is not None and context.columns:
        raise UsageError(f"--under: found {context.columns[0]!r}; a number is needed")
    if not 0.0 < interval < 1.0:
        raise UsageError(f"--interval: found {interval}; a number between 0 and 1 is needed")
    target = out or writing.STANDARD
    form = writing.form(target, kind)
    writing.require_free(target, force, [model])
    fitted = answering.loaded(model)
    with terminal.cautions(quiet):
        found = [
            fitted.threshold(
                each,
                feature,
                _fixed(fixed),
                None if context is None else context.context(),
                anchored,
                size=size,
                random_state=seed,
            )
            for each in level
        ]
    writing.write_tables(_table(found, interval), target, form)
    for each in () if quiet else found:
        terminal.note(str(each))


def _fixed(given: list[str] | None) -> dict[str, float] | None:
    """Return values by name from texts such as `age=40`."""
    if not given:
        return None
    found = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        if not equals or name in found:
            raise UsageError(f"--fixed: found {text!r}; NAME=VALUE is needed, once per feature")
        found[name] = spelling.number("--fixed", value)
    return found


def _table(found: list[Threshold], interval: float) -> Iterator[Columns]:
    import numpy as np

    rows = [_row(each, interval) for each in found]
    yield {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _row(found: Threshold, interval: float) -> dict[str, Any]:
    low, high = found.interval(interval)
    slope = found.slope()
    (steep,), ((least,), (most,)) = slope.median(), slope.interval(interval)
    return {
        "feature": found.asked.feature,
        "level": found.level,
        "threshold": found.median(),
        "low": low,
        "high": high,
        "never": found.never,
        "already": found.already,
        "slope": float(steep),
        "slope_low": float(least),
        "slope_high": float(most),
    }
