"""The components of a model's answers: in groups of one kind, and in words.

A model of windows has one component, the window. The default model has processes, which describe
what is smooth and may have one effect per level of a feature, and windows of their residuals.
Components of the same kind form a `Group`. Pictures, reports and `components_` all show these
groups; `betafield.meaning` puts into sentences what they mean for the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.field import Field
from betafield.weighed import stretched_apart

if TYPE_CHECKING:
    from betafield.methods import AnyField
    from betafield.process.boxes import Axis, Box
    from betafield.process.model import Window
    from betafield.smooth import SmoothField

Floats = npt.NDArray[np.float64]

PROCESS, WINDOWS = "process", "windows"
# Groups of windows of less weight are not listed.
LIGHT = 0.005
# Features whose reaches a sentence lists.
MOST_LISTED = 6


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
        Categories whose levels these windows keep apart.
    levels : tuple of int
        Categories whose levels have effects of their own in these processes.
    is_grouped : bool
        Whether groups of trials have effects of their own in these processes.
    """

    part: str
    weight: float
    features: tuple[int, ...]
    least: Floats
    most: Floats
    windows: tuple[int, ...] = ()
    effect: int | None = None
    apart: tuple[int, ...] = ()
    levels: tuple[int, ...] = ()
    is_grouped: bool = False

    def named(self, names: tuple[str, ...]) -> str:
        """Return their name, given the names of all features."""
        if self.part == WINDOWS and len(self.features) == 1 and len(names) > 1:
            return f"windows along {names[self.features[0]]}"
        return self.part if self.effect is None else f"process with effects of {names[self.effect]}"

    def called(self, names: tuple[str, ...]) -> Sentence:
        """Return what they are, given the names of all features."""
        if self.part == PROCESS:
            own = self.levels if self.effect is None else (self.effect, *self.levels)
            every = (*(names[k] for k in own), *["groups"] * self.is_grouped)
            return Sentence("process: the smooth part" + _listed(", and effects of", every), every)
        apart = tuple(names[k] for k in self.apart)
        within = _listed(", within each level of", apart)
        if not self.windows:
            return Sentence(f"window{within}", apart)
        along = tuple(names[k] for k in self.features if len(self.features) == 1 < len(names))
        what = f"windows of its residuals{_listed(' along', along)}{within}"
        return Sentence(what, along + apart)


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
        apart = field.features.categories.columns
        return [Group(WINDOWS, 1.0, _used(np.isfinite(reach)), reach, reach, apart=apart)]
    windows = field.smooth[0].windows
    rest = max(0.0, 1.0 - sum(window.weight for window in windows))
    found = [*_processes(field, rest), *_of_residuals(field, windows)]
    return sorted(found, key=lambda group: -group.weight)


def _processes(field: SmoothField, weight: float) -> list[Group]:
    """Return processes, grouped by the feature whose levels have effects."""
    reach = np.where(_varies(field), field.length_scales, np.inf)
    every = Group(
        PROCESS,
        weight,
        _used(np.isfinite(reach)),
        reach,
        reach,
        levels=field.features.categories.columns,
        is_grouped=field.sums.is_grouped,
    )
    shares = effects(field).items()
    return [every._replace(weight=weight * share, effect=effect) for effect, share in shares]


def effects(field: SmoothField) -> dict[int | None, float]:
    """Return the relative weights of processes, by the feature whose levels have effects.

    The key None stands for processes without such effects.
    """
    found: dict[int | None, float] = {}
    components, features = field.serving[0][0].components, len(field.features.numeric)
    for component, weight in zip(components, field.smooth[0].weights.tolist(), strict=True):
        effect = None if component.effect == features else component.effect  # those are of groups
        found[effect] = found.get(effect, 0.0) + weight
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


def in_words(field: AnyField) -> list[str]:
    """Return a sentence per group: what it is, its weight, and how far it reaches.

    Examples
    --------
    >>> from betafield import SmoothBetaClassifier
    >>> model = SmoothBetaClassifier(bandwidth=0.1).fit([[0.0], [10.0]], [0, 1])
    >>> in_words(model.field_)
    ['window (100 % of the weight), which reaches 1 along x0']
    """
    return [str(sentence(field, group)) for group in listed(field)]


def listed(field: AnyField) -> list[Group]:
    """Return the groups, the heaviest first, without windows that hardly count."""
    return [group for group in groups(field) if is_listed(group)]


def is_listed(group: Group) -> bool:
    """Return whether a group is worth listing: a process, or windows that count."""
    # Windows of what a process leaves over begin with it, however light it is.
    return group.weight >= LIGHT or group.part == PROCESS


def sentence(field: AnyField, group: Group) -> Sentence:
    """Return what a group is, its weight, and how far it reaches along features."""
    names = field.features.called
    what = group.called(names)
    weight = f"{what.text} ({percent(group.weight)} of the weight)"
    if not group.features:
        return Sentence(weight if group.levels else f"{weight}; no feature varies", what.names)
    shown, more = group.features[:MOST_LISTED], len(group.features) - MOST_LISTED
    each = [_along(field, group, k) for k in shown]
    each += [f"so on along {more} more"] * (more > 0)
    text = f"{weight}, {_reaching(group)} {_and(each)}"
    return Sentence(text, (*what.names, *(names[k] for k in shown)))


def _reaching(group: Group) -> str:
    if group.part == PROCESS:
        return "with length scales of" if len(group.features) > 1 else "with a length scale of"
    return "which reach" if group.windows else "which reaches"


def _along(field: AnyField, group: Group, k: int) -> str:
    """Return how far a group reaches along one feature; windows may reach across all of it."""
    if group.part != PROCESS and group.least[k] >= np.ptp(field.bounds[k]):
        return "all of {}"
    return f"{between(group.least[k], group.most[k])} along {{}}"


def _listed(before: str, names: tuple[str, ...]) -> str:
    """Return words before places for names, nothing if there are none."""
    return f"{before} {_and(['{}'] * len(names))}" if names else ""


def _and(each: list[str]) -> str:
    """Return a list in words.

    Examples
    --------
    >>> _and(["a"]), _and(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(each[:-1]), each[-1]] if len(each) > 1 else each)


def between(least: float, most: float) -> str:
    """Return a range of lengths, or one length if they are told alike."""
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
