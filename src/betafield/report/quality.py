"""Data quality: repeats, gaps, balance, weights and contexts, with plain warnings."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

import betafield.report.words as words
from betafield.report.blocks import Block, Notes, Section, Table, Text, name, say
from betafield.report.subject import Floats, Subject

# Cells per side in the search for gaps, and the limits for warnings.
SIDE = 24
FEW_TRIALS, RARE_SHARE, RARE_TRIALS, GAP, MANY_FEATURES = 100, 0.01, 20, 0.1, 6
EMPTY, MOST_FEATURES = 0.05, 30


class Gap(NamedTuple):
    """A box without trials: (feature, low, high) per side, and its share of the domain."""

    sides: list[tuple[int, float, float]]
    share: float


def section(field: Subject) -> Section:
    """Return a description of the trials."""
    gap = largest_gap(field)
    warnings = _warnings(field, gap)
    good = Markup("Nothing stands out: no large gaps, no rare class, no constant feature.")
    blocks: list[Block] = [
        Notes(warnings) if warnings else Notes([good], "good"),
        _facts(field, gap),
        *_balance(field),
        _features(field),
    ]
    return Section("quality", "Data quality", blocks)


# Facts -------------------------------------------------------------------------------------


def _facts(field: Subject, gap: Gap | None) -> Table:
    rows = [*_repeats(field), *_emptiness(field, gap), *_kinds(field)]
    return Table(Markup("The trials"), ["what", "found"], rows, numeric=9)


def _repeats(field: Subject) -> list[list[Any]]:
    trials = field.seen.trials
    shared = float(trials[trials > 1].sum() / trials.sum())
    return [
        ["Trials", words.count(field.model.n_trials_)],
        ["Different places", words.count(len(trials))],
        ["Trials that share their place with others", words.percent(shared)],
        [
            "Trials per place",
            f"median {words.number(np.median(trials))}, at most {words.count(trials.max())}",
        ],
    ]


def _emptiness(field: Subject, gap: Gap | None) -> list[list[Any]]:
    empty = words.percent(empty_share(field))
    rows: list[list[Any]] = [["Share of the domain with no trial near", empty]]
    if gap is not None:
        rows.append(["Largest region without trials", _told_gap(field, gap)])
    return rows


def empty_share(field: Subject) -> float:
    """Return the share of the domain where no trial is near."""
    return float(np.mean(field.n_near(field.domain) == 0))


def _told_gap(field: Subject, gap: Gap) -> Markup:
    sides = [
        say(
            "{} from {} to {}", name(field.names[k]), field.coordinate(k, a), field.coordinate(k, b)
        )
        for k, a, b in gap.sides
    ]
    return say("{} ({} of the domain)", Markup(", ").join(sides), words.percent(gap.share))


def _kinds(field: Subject) -> list[list[Any]]:
    """Return facts about weights and contexts."""
    model = field.model
    seen = model.field_.totals
    rows: list[list[Any]] = [["Fractional weights", "yes" if _has_fractions(field) else "no"]]
    if not seen.distorted:
        return [*rows, ["Contexts", "none: trials show the probability itself"]]
    shared = (
        "each trial with its own context" if field.is_smooth else f"{model.field_.sharing} sharing"
    )
    told = say(
        "{} of the trials, {}; on average {} of a change in π shows in the success probability",
        words.percent(seen.distorted / seen.trials),
        shared,
        words.percent(max(seen.spread(), 0.0) / float(model.n_trials_)),
    )
    rows.append(["Contexts", told])
    polynomials = model.field_.polynomials
    if polynomials:
        rows.append(["Kinds of polynomial contexts", str(len(polynomials))])
    return rows


def _has_fractions(field: Subject) -> bool:
    trials = field.seen.trials
    return bool(np.any(trials != np.round(trials)))


def _balance(field: Subject) -> list[Block]:
    counts = field.seen.counts
    if counts is None:
        return [Text(say("How often each class occurred is not shown: {}.", field.seen.why))]
    totals = counts.sum(axis=0)
    order = np.argsort(-totals, kind="stable")[:MOST_FEATURES]
    rows = [
        [
            name(field.outcome_name(int(c))),
            words.count(totals[c]),
            words.percent(totals[c] / totals.sum()),
        ]
        for c in order
    ]
    what = "Classes, as they were seen under contexts" if field.distorted else "Classes"
    return [Table(Markup(what), ["class", "trials", "share"], rows)]


def _features(field: Subject) -> Table:
    rows = []
    for k in range(min(len(field.names), MOST_FEATURES)):
        column = field.seen.points[:, k]
        low, middle, high = (
            field.coordinate(k, v) for v in (column.min(), field.median[k], column.max())
        )
        rows.append([name(field.names[k]), low, middle, high, words.count(_different(column))])
    head = ["feature", "lowest", "median", "highest", "different values"]
    return Table(Markup("Features"), head, rows)


def _different(values: Floats) -> int:
    """Return the number of distinct values, up to rounding errors."""
    ordered = np.sort(values)
    step = 1e-12 * max(float(np.abs(ordered[[0, -1]]).max()), float(np.ptp(ordered)))
    return int(1 + np.count_nonzero(np.diff(ordered) > step))


# Gaps --------------------------------------------------------------------------------------


def largest_gap(field: Subject) -> Gap | None:
    """Return the largest region without trials; None if all trials share one place.

    Along one feature it is the widest gap between neighbours, including the ends of the domain.
    With more features, the two most relevant ones are cut into cells, and it is the largest
    rectangle of cells that are empty whatever the other features.
    """
    if not field.varying:
        return None
    if len(field.varying) == 1:
        return _widest(field, field.varying[0])
    i, j = sorted(field.varying[:2])
    counts, edges_i, edges_j = np.histogram2d(
        field.seen.points[:, i],
        field.seen.points[:, j],
        bins=SIDE,
        range=[field.bounds[i], field.bounds[j]],
    )
    a, b, c, d = largest_rectangle(counts == 0)
    share = (b - a) * (d - c) / SIDE**2
    return Gap([(i, edges_i[a], edges_i[b]), (j, edges_j[c], edges_j[d])], share) if share else None


def _widest(field: Subject, k: int) -> Gap:
    at = np.unique(np.concatenate([field.seen.points[:, k], field.bounds[k]]))
    widest = int(np.diff(at).argmax())
    low, high = float(at[widest]), float(at[widest + 1])
    return Gap([(k, low, high)], (high - low) / float(field.extents[k]))


def largest_rectangle(empty: npt.NDArray[np.bool_]) -> tuple[int, int, int, int]:
    """Return rows a to b and columns c to d of the largest rectangle of empty cells.

    Examples
    --------
    >>> largest_rectangle(np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=bool))
    (1, 3, 0, 2)
    """
    best, found = 0, (0, 0, 0, 0)
    for a in range(len(empty)):
        for b in range(a + 1, len(empty) + 1):
            free = np.concatenate([[False], empty[a:b].all(axis=0), [False]]).astype(np.int8)
            steps = np.diff(free)
            starts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
            for c, d in zip(starts.tolist(), ends.tolist(), strict=True):
                if (b - a) * (d - c) > best:
                    best, found = (b - a) * (d - c), (a, b, c, d)
    return found


# Warnings ----------------------------------------------------------------------------------


def _warnings(field: Subject, gap: Gap | None) -> list[Markup]:
    found = [*_about_trials(field), *_about_classes(field), *_about_features(field)]
    empty = empty_share(field)
    if empty > EMPTY:
        rest = (
            "so answers there rely on distant trials. Trials there would help."
            if field.is_smooth
            else "so only the prior is left there. A wider bandwidth, or trials there, would help."
        )
        found.append(say("In {} of the domain no trial is near, {}", words.percent(empty), rest))
    if gap is not None and gap.share > GAP and _is_worth_a_warning(field, gap):
        found.append(
            say(
                "No trial was made in {}, so answers there rely on distant trials.",
                _told_gap(field, gap),
            )
        )
    return found


def _is_worth_a_warning(field: Subject, gap: Gap) -> bool:
    """Return whether a gap is larger than the distance between evenly spaced places."""
    return gap.share > 3.0 / max(len(field.seen.points), 1) or len(field.varying) > 1


def _about_trials(field: Subject) -> list[Markup]:
    n, trials = float(field.model.n_trials_), field.seen.trials
    found = []
    if n < FEW_TRIALS:
        found.append(say("There are only {}: intervals are wide.", words.counted(n, "trial")))
    busiest = float(trials.max() / trials.sum())
    if busiest > 0.5 and len(trials) > 1:
        found.append(say("One place has {} of all trials.", words.percent(busiest)))
    shared = float(trials[trials > 1].sum() / trials.sum())
    if shared > 0.5:
        found.append(
            say(
                "{} of the trials share their place with others. Each counts as an independent "
                "trial; if they are repeats on the same subject, intervals are too narrow.",
                words.percent(shared),
            )
        )
    return found


def _about_classes(field: Subject) -> list[Markup]:
    if field.seen.counts is None:
        return []
    totals = field.seen.counts.sum(axis=0)
    found = []
    for c in np.argsort(totals, kind="stable")[:MOST_FEATURES]:
        share, what = totals[c] / totals.sum(), name(field.outcome_name(int(c)))
        if totals[c] == 0:
            found.append(say("No trial had the outcome {}.", what))
        elif share < RARE_SHARE or totals[c] < RARE_TRIALS:
            told = words.counted(totals[c], "trial")
            found.append(say("{} is rare: {}, {}.", what, told, words.percent(share)))
    return found


def _about_features(field: Subject) -> list[Markup]:
    constant = sorted(set(range(len(field.names))) - set(field.varying))
    found = [
        say("{} is constant and carries no information.", name(field.names[k]))
        for k in constant[:MOST_FEATURES]
    ]
    if len(field.varying) > MANY_FEATURES and not field.is_smooth:
        found.append(
            say(
                "With {} features, windows are either empty or contain everything; combine the "
                "features into a score first (FieldCalibratedClassifier).",
                len(field.varying),
            )
        )
    return found
