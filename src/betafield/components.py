"""What answers are made of, and what that says of the data: for pictures, reports and commands.

A model of windows has one component, the window. By default there are processes, which know what
is smooth and may have an effect per level of a feature, and windows of what these leave over.
Components of one kind are told as one `Group`. `told` says in sentences what weights and reaches
mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.field import Field
from betafield.observed import Observed, feature_names, observed, require_model
from betafield.smooth import SmoothField
from betafield.weighed import stretched_apart

if TYPE_CHECKING:
    from betafield.estimators import SmoothBetaClassifier
    from betafield.methods import AnyField
    from betafield.process.boxes import Axis, Box
    from betafield.process.model import Window

Floats = npt.NDArray[np.float64]

PROCESS, WINDOWS = "process", "windows"
# Weights of windows below which a sentence on them would say too much, and from which it is sure:
# before any trial, all windows together have half of the weight.
SLIGHT, SURE = 0.2, 0.5
# Levels of a category up to which they are told apart in words.
MOST_TOLD = 200
# Features along which it is told how far windows reach.
SPELLED = 3
# Trials per value of a feature from which its values are levels.
REPEATED = 2.0

CURVED = {"rank": "ranks", "log": "logarithms"}
CHOSEN = {
    "auto": "the width is the one that best predicts trials left out one at a time",
    "loo": "the width is the one that best predicts trials left out one at a time",
    "theory": "the width follows from the number of trials and from how fast the probability may "
    "change",
}


class Group(NamedTuple):
    """Components of one kind: processes with the same effects, or windows of the same features.

    Parameters
    ----------
    part : {"process", "windows"}
    weight : float
        Of all of them, at places that were seen.
    features : tuple of int
        Those that they look at; constant ones are not among them.
    least, most : array of shape (d,)
        How far they reach along each feature, in its own units: length scales, or half widths of
        windows; of ranks and logarithms about the middle. Infinite along features that they do not
        look at.
    windows : tuple of int
        Their numbers among the windows of residuals in use.
    effect : int or None
        The feature whose levels have effects of their own in these processes.
    apart : tuple of int
        Categories whose levels these windows keep apart.
    """

    part: str
    weight: float
    features: tuple[int, ...]
    least: Floats
    most: Floats
    windows: tuple[int, ...] = ()
    effect: int | None = None
    apart: tuple[int, ...] = ()

    def named(self, names: tuple[str, ...]) -> str:
        """Return what they are called, given the names of all features."""
        if self.part == WINDOWS and len(self.features) == 1 and len(names) > 1:
            return f"windows along {names[self.features[0]]}"
        return self.part if self.effect is None else f"process with effects of {names[self.effect]}"


class Sentence(NamedTuple):
    """A text with a {} per name of a feature, so that names can be set apart where it is shown."""

    text: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text.format(*self.names)


# Groups ------------------------------------------------------------------------------------


def groups(field: AnyField) -> list[Group]:
    """Return the components in use, the heaviest group first; of classes those of the first.

    Examples
    --------
    >>> from betafield import SmoothBetaClassifier
    >>> model = SmoothBetaClassifier(bandwidth=0.1).fit([[0.0], [10.0]], [0, 1])
    >>> (group,) = groups(model.field_)
    >>> group.part, group.weight, group.least.tolist()
    ('windows', 1.0, [1.0])
    """
    if isinstance(field, Field):
        reach = np.where(_varies(field), field.width * field.units.unit, np.inf)
        return [Group(WINDOWS, 1.0, _used(np.isfinite(reach)), reach, reach)]
    windows = field.smooth[0].windows
    rest = max(0.0, 1.0 - sum(window.weight for window in windows))
    found = [*_processes(field, rest), *_of_residuals(field, windows)]
    return sorted(found, key=lambda group: -group.weight)


def _processes(field: SmoothField, weight: float) -> list[Group]:
    """Return processes by the feature whose levels have effects."""
    reach = np.where(_varies(field), field.length_scales, np.inf)
    used, shares = _used(np.isfinite(reach)), effects(field)
    return [
        Group(PROCESS, weight * share, used, reach, reach, effect=effect)
        for effect, share in shares.items()
    ]


def effects(field: SmoothField) -> dict[int | None, float]:
    """Return the weights of processes among themselves, by the feature whose levels have effects.

    None: no feature has.
    """
    found: dict[int | None, float] = {}
    components = field.serving[0][0].components
    for component, weight in zip(components, field.smooth[0].weights.tolist(), strict=True):
        found[component.effect] = found.get(component.effect, 0.0) + weight
    return found


def _of_residuals(field: SmoothField, windows: tuple[Window, ...]) -> list[Group]:
    """Return windows of residuals by the features that they look at."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for i, window in enumerate(windows):
        alike.setdefault(_used(window.stretch > 0.0), []).append(i)
    # Columns of categories come after the features, so that levels apart are a kind of their own.
    return [_joined(field, windows, some) for some in alike.values()]


def _joined(field: SmoothField, windows: tuple[Window, ...], some: list[int]) -> Group:
    varies, box, features = _varies(field), field.smooth[0].boxes[0], field.features
    reach = np.full((len(some), features.number), np.inf)
    reach[:, features.numeric] = [_reach(windows[i], box) for i in some]
    reach[:, ~varies] = np.inf
    looked_at, stretch = np.zeros(features.number, dtype=np.bool_), windows[some[0]].stretch
    looked_at[features.numeric] = stretch[: len(box.axes)] > 0.0
    weight = float(sum(windows[i].weight for i in some))
    apart, ends = stretched_apart(stretch, features), (reach.min(axis=0), reach.max(axis=0))
    return Group(WINDOWS, weight, _used(looked_at & varies), *ends, tuple(some), apart=apart)


def _reach(window: Window, box: Box) -> Floats:
    """Return how far a window reaches along each feature about its middle, in its own units."""
    reach = np.full(len(box.axes), np.inf)
    for a in np.flatnonzero(window.stretch[: len(reach)] > 0.0).tolist():
        half = 0.5 * window.width / window.stretch[a]
        low, high = own(box.axes[a], np.array([0.5 - half, 0.5 + half]))
        reach[a] = high - low
    return reach


def own(axis: Axis, u: Floats) -> Floats:
    """Return values of a feature in its own units, for those of the box and beyond."""
    if len(axis.at) == 1:
        return np.full_like(u, axis.at[0])
    with np.errstate(over="ignore"):
        beyond = axis.side * (np.minimum(u, 0.0) + np.maximum(u - 1.0, 0.0))
        known = axis.outside(u)
        return np.asarray(known * np.exp(beyond) if axis.is_log else known + beyond)


def units(field: SmoothField) -> tuple[str, ...]:
    """Return in which units the heaviest process measures each feature: range, rank or log."""
    scale = field.serving[0][0].components[0].scale
    every = ["range"] * field.features.number
    for a, kind in zip(field.features.numeric, scale, strict=False):
        every[a] = kind
    return tuple(every)


def _varies(field: AnyField) -> npt.NDArray[np.bool_]:
    return np.asarray((np.ptp(field.bounds, axis=1) > 0.0) & np.isfinite(field.units.unit))


def _used(which: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(np.flatnonzero(which).tolist())


# In words ----------------------------------------------------------------------------------


def told(model: SmoothBetaClassifier) -> list[Sentence]:
    """Return in sentences what a model takes for near, and what that says of the probability.

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
        *_of_levels(model, field),
        *_of_windows(model, field),
        *_of_rates(field),
    ]


def _said(text: str) -> Sentence:
    return Sentence(text)


def _of_rates(field: SmoothField) -> list[Sentence]:
    """Return what was learned of rates that were not known."""
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
    """Return along which features it is smooth in other units than their own."""
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
    """Return which features start again after a period, and which are places on Earth."""
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
    """Return how much the levels of categories differ, and which of them most."""
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


def _of_windows(model: SmoothBetaClassifier, field: SmoothField) -> list[Sentence]:
    """Return what windows of residuals say: that the field is smooth, or what is not."""
    known = observed(model)
    every = groups(field)
    found = [group for group in every if group.part == WINDOWS]
    said = [
        *(_differing(group, known.names) for group in every if _tells(group)),
        *(_beyond(field, group, known) for group in found if group.weight >= SLIGHT),
    ]
    if said:
        return said
    if field.options.method == "process" or not field.features.numeric:
        return [_said("the residuals of the process were not examined")]
    weight = percent(sum(group.weight for group in found))
    return [
        _said(
            "nothing contradicts a smooth probability: windows of residuals have "
            f"{weight} of the weight"
        )
    ]


def _tells(group: Group) -> bool:
    """Return whether these are processes with levels, and heavy enough to speak of."""
    return group.effect is not None and group.weight >= SLIGHT


def _differing(group: Group, names: tuple[str, ...]) -> Sentence:
    """Return that levels of a feature differ."""
    assert group.effect is not None
    may = "" if group.weight >= SURE else "may "
    what = f"values of {{}} {may}differ from each other more than a smooth curve would"
    return Sentence(f"{what} ({percent(group.weight)} of the weight)", (names[group.effect],))


def _beyond(field: SmoothField, group: Group, known: Observed) -> Sentence:
    """Return what windows of residuals say that look at some features."""
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
        f"{_between(group.least[k], group.most[k])} along {{}}" for k in group.features
    )
    what = f"trials within {near}{within} {may}deviate together from the process"
    return Sentence(f"{what} {weight}", (*names, *levels))


def are_levels(field: SmoothField, group: Group, known: Observed) -> bool:
    """Return whether windows along one feature hold one of its values each, seen again and again.

    Parameters
    ----------
    field : SmoothField
    group : Group
        Windows along one feature.
    known : Observed
        What the field has seen.
    """
    (k,), smooth = group.features, field.smooth[0]
    values = np.unique(known.points[:, k])
    at = field.features.numeric.index(k)
    widest = max(smooth.windows[i].width / smooth.windows[i].stretch[at] for i in group.windows)
    apart = np.diff(smooth.boxes[0].axes[at].inside(values))
    is_repeated = known.trials.sum() >= REPEATED * len(values)
    return bool(is_repeated and (len(apart) == 0 or widest < apart.min()))


def _between(least: float, most: float) -> str:
    low, high = (number(reach) for reach in (least, most))
    return high if low == high else f"{low} to {high}"


def number(value: float) -> str:
    """Return a length with three digits."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.3g}"


def percent(share: float) -> str:
    """Return a weight in whole percent.

    Examples
    --------
    >>> percent(0.996), percent(0.004)
    ('100 %', '0 %')
    """
    return f"{100.0 * share:.0f} %"
