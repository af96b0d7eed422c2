"""The first section: a summary in numbers and words."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

import betafield.report.words as words
from betafield.report.blocks import Block, Section, Table, Text, Tile, Tiles, name, say
from betafield.report.subject import Belief, Floats, Subject

# The largest number of coordinates given for a place.
SPELLED = 4


def section(field: Subject) -> Section:
    """Return the key figures."""
    blocks: list[Block] = [Text(_opening(field))]
    if len(field.outcomes) == 1:
        blocks += [Tiles([*_sizes(field), _overall(field)]), Tiles(_ends(field))]
    else:
        blocks += [Tiles(_sizes(field)), _table(field)]
    return Section("summary", "In short", [*blocks, Text(_reading(field))])


def place(field: Subject, point: Floats) -> Markup:
    """Return where a point is, in the user's names and units."""
    known = [
        say("{} {}", name(field.names[k]), field.coordinate(k, point[k])) for k in _told(field)
    ]
    return Markup(", ").join(known) if known else Markup("the only place")


def _told(field: Subject) -> list[int]:
    """Return the features that describe a place, in the order of the data."""
    return sorted(field.varying[:SPELLED])


def _opening(field: Subject) -> Markup:
    model = field.model
    where = Markup(", ").join(name(field.names[k]) for k in range(len(field.names)))
    what = Markup(" or ").join(name(field.outcome_name(c)) for c in field.outcomes)
    told = say(
        "The probability of {} by {}, learned from {}.",
        what,
        where,
        words.counted(model.n_trials_, "trial"),
    )
    if field.distorted:
        totals = model.field_.totals
        share = totals.distorted / totals.trials
        told += say(
            " {} of them were distorted in a known way (contexts). All probabilities here are of "
            "π, the probability without distortion.",
            words.percent(share),
        )
    return told


def _sizes(field: Subject) -> list[Tile]:
    trials, places = field.model.n_trials_, len(field.seen.points)
    mean = say("{} per place on average", words.number(trials / places))
    names = Markup(", ").join(name(words.short(each)) for each in field.names[:SPELLED])
    more = len(field.names) - SPELLED
    if more > 0:
        names += say(" and {} more", more)
    return [
        ("Trials", words.count(trials), mean),
        ("Places", words.count(places), Markup("different points")),
        ("Features", str(len(field.names)), names),
    ]


def _overall(field: Subject) -> Tile:
    """Return the probability as if it were the same everywhere."""
    what = "Overall, distortion removed" if field.distorted else "Overall"
    number, ends = _valued(field.of_all(), 0, 0)
    return what, number, say("{} · {}", ends, name(field.outcome_name(field.outcomes[0])))


def _ends(field: Subject) -> list[Tile]:
    """Return where the probability is highest and lowest."""
    points, belief = _candidates(field)
    mean, tiles = belief.mean[:, 0], []
    for label, i in (("Highest", int(mean.argmax())), ("Lowest", int(mean.argmin()))):
        number, ends = _valued(belief, i, 0)
        tiles.append(
            (f"{label} probability", number, say("{} · {}", ends, place(field, points[i])))
        )
    return tiles


def _table(field: Subject) -> Table:
    """Return the same for several classes, one per row."""
    overall, (points, belief) = field.of_all(), _candidates(field)
    rows: list[list[Any]] = []
    for column, c in enumerate(field.outcomes):
        mean = belief.mean[:, column]
        told = [_both(*_valued(overall, 0, column))]
        for i in (int(mean.argmax()), int(mean.argmin())):
            told += [_both(*_valued(belief, i, column)), place(field, points[i])]
        rows.append([name(field.outcome_name(c)), *told])
    head = ["class", "overall", "highest", "where", "lowest", "where"]
    return Table(Markup("How probable each class is"), head, rows, numeric=9)


def _both(number: str, ends: str) -> Markup:
    return say("{}<br><small>{}</small>", number, ends)


def _candidates(field: Subject) -> tuple[Floats, Belief]:
    """Return points to search for the extremes: with over two features, only places of trials."""
    if len(field.varying) > 2:
        return field.seen.points[field.places], field.of_places
    return field.domain, field.of_domain


def _valued(belief: Belief, row: int, column: int) -> tuple[str, str]:
    """Return a mean and its interval."""
    ends = words.span(belief.low[row, column], belief.high[row, column])
    return words.percent(belief.mean[row, column]), ends


def _reading(field: Subject) -> Markup:
    found = "the places of trials" if len(field.varying) > 2 else "a grid over the domain"
    told = say(
        "Ranges are {} credible intervals: given the trials and the model, the probability lies "
        "within them with that probability. The highest and lowest values were sought on {}; "
        "because they are the extremes of many estimates, they are a little too extreme.",
        words.level_name(field.level),
        found,
    )
    others = len(field.model.classes_) - len(field.outcomes)
    if len(field.outcomes) > 1 and others:
        told += say(" Of {} classes, the most frequent are shown.", len(field.model.classes_))
    return told
