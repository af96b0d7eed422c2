"""What the components of answers say about the data, in sentences: for reports and commands.

`betafield.components` lists the components themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from betafield.components import (
    WINDOWS,
    Group,
    Sentence,
    between,
    groups,
    percent,
    units,
)
from betafield.field import Field
from betafield.observed import Observed, feature_names, observed, require_model
from betafield.smooth import SmoothField
from betafield.weighed import share_of

if TYPE_CHECKING:
    from betafield.estimators import SmoothBetaClassifier
    from betafield.methods import AnyField

# Below the first weight, components are not mentioned; from the second on, the wording is certain.
# A priori, all windows together have half of the weight.
SLIGHT, SURE = 0.2, 0.5
# What is said of a process's form.
FORMS = {
    "additive": "the features act independently: the effect of one does not depend on the others",
    "quadratic": "the field is a polynomial of second degree",
}
# With more levels than this, the levels of a category are not described in words.
MOST_TOLD = 200
# The reach of windows is described along at most this many features.
SPELLED = 3
# With at least this many trials per value, the values of a feature count as levels.
REPEATED = 2.0

CURVED = {"rank": "ranks", "log": "logarithms"}
CHOSEN = {
    "auto": "the width is the one that best predicts trials left out one at a time",
    "loo": "the width is the one that best predicts trials left out one at a time",
    "theory": "the width follows from the number of trials and from how fast the probability may "
    "change",
}


def told(model: SmoothBetaClassifier) -> list[Sentence]:
    """Return sentences about which trials a model uses, and what that says about the probability.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield import SmoothBetaClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(500, 1))
    >>> model = SmoothBetaClassifier().fit(X, rng.uniform(size=500) < X[:, 0])
    >>> str(told(model)[-1])
    'nothing contradicts a smooth probability: windows of residuals have ... % of the weight'
    """
    require_model(model)
    field = model.field_
    if isinstance(field, Field):
        rule = CHOSEN.get(str(field.options.bandwidth), "the width was given")
        said = "the probability at a point is estimated from the trials in a window around it"
        return [Sentence(said), _said(rule), *_of_wraps(model, field)]
    return [
        Sentence(
            "a process has learned how smooth the probability is: trials within one length scale "
            "of a point say much about it, those beyond three length scales hardly anything"
        ),
        *_of_wraps(model, field),
        *_of_units(model, field),
        *_of_forms(field),
        *_of_levels(model, field),
        *_of_groups(field),
        *_of_windows(model, field),
        *_of_rates(field),
    ]


def _of_forms(field: SmoothField) -> list[Sentence]:
    """Return sentences about simpler forms that the field seems to have."""
    every = {form: share_of(form, field.smooth[0], field.serving[0][0]) for form in FORMS}
    return [
        _said(
            f"{'' if share >= SURE else 'perhaps, '}in log-odds or probability, {FORMS[form]} "
            f"(weight {share:.2g})"
        )
        for form, share in every.items()
        if share >= SLIGHT
    ]


def _said(text: str) -> Sentence:
    return Sentence(text)


def _of_rates(field: SmoothField) -> list[Sentence]:
    """Return sentences about the unknown rates."""
    each = [(name, post.mean()[0], post.interval(0.95)) for name, post in field.rates.items()]
    return [
        Sentence(
            f"{{}} was unknown and is estimated as {mean:.3f}, 95 % credible interval "
            f"{ends[0][0]:.3f} to {ends[1][0]:.3f}",
            (name,),
        )
        for name, mean, ends in each
    ]


def _of_units(model: SmoothBetaClassifier, field: SmoothField) -> list[Sentence]:
    """Return sentences about features along which the field is smooth in ranks or logarithms."""
    pairs = zip(feature_names(model), units(field), model.units_.values(), strict=True)
    return [
        Sentence(
            f"the probability is smooth in {CURVED[kind]} of {{}} (weight {weights[kind]:.2g}), so "
            "its length scale varies; it is given near the middle of the domain",
            (name,),
        )
        for name, kind, weights in pairs
        if kind in CURVED
    ]


def _of_wraps(model: SmoothBetaClassifier, field: AnyField) -> list[Sentence]:
    """Return sentences about periodic features and places on Earth."""
    names, wraps = feature_names(model), field.wraps
    said = [
        Sentence(f"{{}} repeats every {period:g}", (name,))
        for name, period in zip(names, wraps.periods, strict=True)
        if period
    ]
    if wraps.earth is not None:
        places = "{} and {} are places on Earth: distances are along great circles"
        said.append(Sentence(places, tuple(names[a] for a in wraps.earth)))
    return said


def _of_levels(model: SmoothBetaClassifier, field: SmoothField) -> list[Sentence]:
    """Return sentences about how much the levels of categories differ, naming the extremes."""
    names, said = feature_names(model), []
    for a in field.features.categories.columns if len(field.classes) == 2 else ():
        if len(field.features.categories.shown(a)) > MOST_TOLD:
            continue
        values, post = model.partial_dependence(a)
        mean, (low, high) = post.mean(), post.interval(0.95)
        least, most = int(np.argmin(mean)), int(np.argmax(mean))
        ends = [
            f"{{}} has an average of {mean[i]:.3f} (95 % interval {low[i]:.3f} to {high[i]:.3f})"
            for i in (least, most)
        ]
        text = (
            f"of the {len(values)} levels of {{}}, {ends[0]}, the lowest, and {ends[1]}, "
            "the highest"
        )
        said.append(Sentence(text, (names[a], str(values[least]), str(values[most]))))
    return said


def _of_groups(field: SmoothField) -> list[Sentence]:
    """Return how much groups of trials differ."""
    if not field.sums.is_grouped:
        return []
    deviation = field.group_deviation
    return [_said(f"groups differ by a standard deviation of {deviation:.2g} in log-odds")]


def _of_windows(model: SmoothBetaClassifier, field: SmoothField) -> list[Sentence]:
    """Return sentences about the windows of residuals: the field is smooth, or where it is not."""
    known = observed(model)
    every = groups(field)
    found = [group for group in every if group.part == WINDOWS]
    said = [
        *(_differing(group, known.names) for group in every if _tells(group)),
        *(_beyond(field, group, known) for group in found if group.weight >= SLIGHT),
    ]
    if said:
        return said
    if not _are_examined(field):
        return [_said("the residuals of the process were not examined")]
    weight = percent(sum(group.weight for group in found))
    return [
        _said(
            "nothing contradicts a smooth probability: windows of residuals have "
            f"{weight} of the weight"
        )
    ]


def _are_examined(field: SmoothField) -> bool:
    """Return whether windows of residuals were weighed against the process."""
    is_shared = field.sums.is_grouped or field.sums.is_apart
    return field.options.method == "auto" and bool(field.features.numeric) and not is_shared


def _tells(group: Group) -> bool:
    """Return whether these are processes with level effects, heavy enough to mention."""
    return group.effect is not None and group.weight >= SLIGHT


def _differing(group: Group, names: tuple[str, ...]) -> Sentence:
    """Return a sentence that levels of a feature differ."""
    assert group.effect is not None
    may = "" if group.weight >= SURE else "may "
    what = f"values of {{}} {may}differ from each other more than a smooth curve would"
    return Sentence(f"{what} ({percent(group.weight)} of the weight)", (names[group.effect],))


def _beyond(field: SmoothField, group: Group, known: Observed) -> Sentence:
    """Return a sentence about windows of residuals along some features."""
    if len(group.features) == 1 and not group.apart and are_levels(field, group, known):
        return _differing(group._replace(effect=group.features[0]), known.names)
    may = "" if group.weight >= SURE else "may "
    weight = f"({percent(group.weight)} of the weight)"
    names = tuple(known.names[k] for k in group.features)
    levels = tuple(known.names[k] for k in group.apart)
    within = f", each level of {' and '.join(['{}'] * len(levels))} alone," if levels else ""
    if len(names) > SPELLED:
        what = f"trials close to each other{within} {may}deviate together from the process"
        return Sentence(f"{what} {weight}", levels)
    near = " and ".join(
        f"{between(group.least[k], group.most[k])} along {{}}" for k in group.features
    )
    what = f"trials within {near}{within} {may}deviate together from the process"
    return Sentence(f"{what} {weight}", (*names, *levels))


def are_levels(field: SmoothField, group: Group, known: Observed) -> bool:
    """Return whether each window along one feature holds one value, with repeated trials.

    Parameters
    ----------
    field : SmoothField
    group : Group
        Windows along one feature.
    known : Observed
        The trials that the field has seen.
    """
    (k,), smooth = group.features, field.smooth[0]
    values = np.unique(known.points[:, k])
    at = field.features.numeric.index(k)
    widest = max(smooth.windows[i].width / smooth.windows[i].stretch[at] for i in group.windows)
    apart = np.diff(smooth.boxes[0].axes[at].inside(values))
    is_repeated = known.trials.sum() >= REPEATED * len(values)
    return bool(is_repeated and (len(apart) == 0 or widest < apart.min()))
