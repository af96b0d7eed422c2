"""The components of a model's answers and what they say about the data, for plots and reports.

A model of windows has one component, the window. The default model has processes, which describe
what is smooth and may have one effect per level of a feature, and windows of their residuals.
Components of the same kind form a `Group`. `told` puts into sentences what their weights and
reaches mean.
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
# Below the first weight, windows are not mentioned; from the second on, the wording is certain. A
# priori, all windows together have half of the weight.
SLIGHT, SURE = 0.2, 0.5
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


class Group(NamedTuple):
    """Components of one kind: processes with the same effects, or windows of the same features.

    Parameters
    ----------
    part : {"process", "windows"}
    weight : float
        Their total weight, at observed places.
    features : tuple of int
        The features they depend on, without constant ones.
    least, most : array of shape (d,)
        How far they reach along each feature, in its own units: length scales, or half-widths of
        windows; for ranks and logarithms, near the middle. Infinite along features they do not
        depend on.
    windows : tuple of int
        Their indices among the windows of residuals in use.
    effect : int or None
        The feature whose levels have their own effects in these processes.
    apart : tuple of int
        The categories whose levels these windows keep apart.
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
        """Return their name, given the names of all features."""
        if self.part == WINDOWS and len(self.features) == 1 and len(names) > 1:
            return f"windows along {names[self.features[0]]}"
        return self.part if self.effect is None else f"process with effects of {names[self.effect]}"


class Sentence(NamedTuple):
    """A text with one {} per feature name, so that names can be formatted where it is shown."""

    text: str
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text.format(*self.names)


# Groups ------------------------------------------------------------------------------------


def groups(field: AnyField) -> list[Group]:
    """Return the components in use, heaviest group first; for classes, those of the first class.

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
    """Return processes, grouped by the feature whose levels have effects."""
    reach = np.where(_varies(field), field.length_scales, np.inf)
    used, shares = _used(np.isfinite(reach)), effects(field)
    return [
        Group(PROCESS, weight * share, used, reach, reach, effect=effect)
        for effect, share in shares.items()
    ]


def effects(field: SmoothField) -> dict[int | None, float]:
    """Return the relative weights of processes, by the feature whose levels have effects.

    The key None stands for processes without such effects.
    """
    found: dict[int | None, float] = {}
    components = field.serving[0][0].components
    for component, weight in zip(components, field.smooth[0].weights.tolist(), strict=True):
        found[component.effect] = found.get(component.effect, 0.0) + weight
    return found


def _of_residuals(field: SmoothField, windows: tuple[Window, ...]) -> list[Group]:
    """Return windows of residuals, grouped by the features they depend on."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for i, window in enumerate(windows):
        alike.setdefault(_used(window.stretch > 0.0), []).append(i)
    # Category columns follow the features, so windows that keep levels apart are separate.
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
    """Return values of a feature in its own units from box units, extrapolated beyond the box."""
    if len(axis.at) == 1:
        return np.full_like(u, axis.at[0])
    with np.errstate(over="ignore"):
        beyond = axis.side * (np.minimum(u, 0.0) + np.maximum(u - 1.0, 0.0))
        known = axis.outside(u)
        return np.asarray(known * np.exp(beyond) if axis.is_log else known + beyond)


def units(field: SmoothField) -> tuple[str, ...]:
    """Return the units in which the heaviest process measures each feature: range, rank or log."""
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
        *_of_levels(model, field),
        *_of_windows(model, field),
        *_of_rates(field),
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
        f"{_between(group.least[k], group.most[k])} along {{}}" for k in group.features
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


def _between(least: float, most: float) -> str:
    low, high = (number(reach) for reach in (least, most))
    return high if low == high else f"{low} to {high}"


def number(value: float) -> str:
    """Return a length with three significant digits."""
    return f"{value:,.0f}" if 1e3 <= abs(value) < 1e9 else f"{value:.3g}"


def percent(share: float) -> str:
    """Return a weight in whole percent.

    Examples
    --------
    >>> percent(0.996), percent(0.004)
    ('100 %', '0 %')
    """
    return f"{100.0 * share:.0f} %"
