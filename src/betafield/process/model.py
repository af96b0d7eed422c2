"""All of it together: from sums by place to what is believed anywhere.

`find` learns what the process and the windows of its residuals are to be like (`Found`: length
scales, widths, weights), which is most of the work; `build` makes of it, and of the same sums or
of a few more, what answers questions (`Smooth`). Both are functions of the sums by place and of
nothing else: what `build` makes of what was found does not depend on how it was found.

Examples
--------
>>> import numpy as np
>>> from betafield.process import mixtures
>>> from betafield.process.model import Sums, build, find
>>> points = np.array([[0.0], [10.0], [20.0], [30.0]])
>>> sums = Sums(points, np.full(4, 100), np.array([20, 20, 80, 80]))
>>> bounds = np.array([[0.0, 30.0]])
>>> smooth = build(sums, bounds, find(sums, bounds))
>>> mixtures.mean(smooth.laws(points)).round(1)
array([0.2, 0.2, 0.8, 0.8])
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process import law
from betafield.process.basis import Prior
from betafield.process.boxes import Box
from betafield.process.fit import Fit, Problem, settled, weights
from betafield.process.ladder import WIDTHS
from betafield.process.law import Surface
from betafield.process.laws import Laws
from betafield.process.links import LINKS
from betafield.process.residuals import (
    corrected,
    logit_variance,
    parts,
    residuals,
    variance,
    with_windows,
)
from betafield.process.rows import FINE, Rows
from betafield.process.scales import boxed, fitted
from betafield.process.scores import contest, scored, weighed
from betafield.process.sums import Sums
from betafield.process.trees import Trees

__all__ = ["Component", "Found", "Smooth", "Sums", "Window", "build", "find"]

Floats = npt.NDArray[np.float64]

# Processes of less weight are not kept.
LIGHT = 0.01


class Component(NamedTuple):
    """A process to be fitted.

    Parameters
    ----------
    link : str
        Name of its link.
    smoothness : float or None
        Matérn's ν; None: squared-exponential.
    theta : array of shape (1 + d,)
        (log σ, log ℓ).
    scale : tuple of {"range", "rank", "log"}
        Units of every feature; none: all by range.
    """

    link: str
    smoothness: float | None
    theta: Floats
    scale: tuple[str, ...] = ()


class Window(NamedTuple):
    """Windows of residuals: how distances are stretched, how wide, τ and their weight."""

    stretch: Floats
    width: float
    tau: float
    weight: float


class Found(NamedTuple):
    """What was learned of a field apart from its values.

    Parameters
    ----------
    components : tuple of Component
        Processes, weighed by evidence among themselves, the heaviest first: windows are in its
        units.
    windows : tuple of Window
        The process has the weight that they leave.
    """

    components: tuple[Component, ...]
    windows: tuple[Window, ...] = ()


@dataclass(frozen=True, eq=False)
class Smooth:
    """A smooth probability: what a process and windows of its residuals believe anywhere.

    Parameters
    ----------
    boxes : tuple of Box
        Own units to the unit box, one per component.
    fits : tuple of Fit
        One per component.
    windows : tuple of Window
        Those in use, in the units of the first component.
    fine : Rows or None
        Trials by place or fine cell, whose residuals windows add up; None without windows.
    """

    boxes: tuple[Box, ...]
    fits: tuple[Fit, ...]
    windows: tuple[Window, ...] = ()
    fine: Rows | None = None

    @functools.cached_property
    def surfaces(self) -> list[Surface]:
        """The processes, as far as answers need them."""
        return [law.surface(fit) for fit in self.fits]

    @functools.cached_property
    def weights(self) -> Floats:
        """The weights of the processes among themselves."""
        return weights(self.fits)

    @property
    def lengths(self) -> Floats:
        """Length scales of the heaviest process, in shares of the box."""
        return self.fits[int(np.argmax(self.weights))].lengths

    def laws(self, points: Floats, n_jobs: int | None = None) -> Laws:
        """Return what is believed of π at points, in own units."""
        xs = _each(self.boxes, points)
        laws, m = law.believed(self.surfaces, self.weights, xs)
        if not self.windows:
            return laws
        v = logit_variance(laws, m)
        means, variances = [], []
        for stretch, width, tau, _ in self.windows:
            up, down, W = self._trees.sums(xs[0], stretch, width, n_jobs).T
            means.append(corrected(m, up - down, W, tau))
            variances.append(variance(v, W, tau, bool(stretch.min() > 0.0)))
        rest = 1.0 - sum(window.weight for window in self.windows)
        w = np.array([rest, *(window.weight for window in self.windows)])
        return with_windows(laws, means, variances, w)

    @functools.cached_property
    def _trees(self) -> Trees:
        """Sums of residuals at fine rows over windows."""
        assert self.fine is not None
        xs = _places(self.boxes, self.fine)
        left_over = residuals(law.mean(self.surfaces, self.weights, xs), self.fine)
        return Trees(self.fine.x, parts(left_over.score, left_over.information))


def find(
    sums: Sums,
    bounds: Floats,
    with_windows: bool = True,
    scale: str | tuple[str, ...] = "auto",
) -> Found:
    """Return what process and windows are best for these trials.

    Parameters
    ----------
    sums : Sums
        The trials.
    bounds : array of shape (d, 2)
        The domain, in own units.
    with_windows : bool
        Whether windows of the process's residuals are weighed against it.
    scale : {"auto", "range", "rank", "log"} or tuple of one of the last three per feature
        Units in which the field is smooth: the features' own, ranks or logarithms. "auto" weighs
        them by evidence.
    """
    tried = fitted(sums, bounds, scale)
    fits = [(each, fit) for each in tried for fit in each.fits]
    w = weights(tuple(fit for _, fit in fits))
    kept = [i for i in np.argsort(-w, kind="stable") if w[i] > LIGHT]
    components = tuple(_component(fits[i][0].scale, fits[i][1]) for i in kept)
    found = Found(components)
    if not with_windows:
        return found
    boxes, best = tuple(fits[i][0].box for i in kept), tuple(fits[i][1] for i in kept)
    return found._replace(windows=_windows(sums, boxes, best))


def _component(scale: tuple[str, ...], fit: Fit) -> Component:
    problem = fit.problem
    return Component(problem.link.name, problem.prior.smoothness, fit.theta, scale)


def build(sums: Sums, bounds: Floats, found: Found) -> Smooth:
    """Return what answers questions, of these trials and what was found."""
    boxes: dict[tuple[str, ...], Box] = {}
    rows: dict[tuple[str, ...], Rows] = {}
    for scale in dict.fromkeys(component.scale for component in found.components):
        boxes[scale] = boxed(sums, bounds, scale)
        rows[scale] = sums.rows(boxes[scale])
    fits = tuple(_settled(rows[component.scale], component) for component in found.components)
    each = tuple(boxes[component.scale] for component in found.components)
    smooth = Smooth(each, fits, found.windows)
    if not found.windows:
        return smooth
    return replace(smooth, fine=sums.rows(each[0], FINE, sums.levels()))


def _settled(rows: Rows, component: Component) -> Fit:
    link = next(link for link in LINKS if link.name == component.link)
    prior = Prior(link.scale, float(rows.n.sum()), component.smoothness)
    return settled(Problem(rows, link, prior), component.theta)


def _each(boxes: tuple[Box, ...], points: Floats) -> list[Floats]:
    """Return points in units of every box; boxes that are the same are asked once."""
    known: dict[int, Floats] = {}
    for box in boxes:
        if id(box) not in known:
            known[id(box)] = box.inside(points)
    return [known[id(box)] for box in boxes]


def _places(boxes: tuple[Box, ...], rows: Rows) -> list[Floats]:
    """Return where rows of the first box are in every box."""
    if all(box is boxes[0] for box in boxes):
        return [rows.x] * len(boxes)
    xs = _each(boxes, boxes[0].outside(rows.x))
    same = (box is boxes[0] for box in boxes)
    return [rows.x if is_own else np.clip(x, 0.0, 1.0) for x, is_own in zip(xs, same, strict=True)]


def _windows(sums: Sums, boxes: tuple[Box, ...], fits: tuple[Fit, ...]) -> tuple[Window, ...]:
    """Return the windows of residuals that predict trials left out, with their weights."""
    fine = sums.rows(boxes[0], FINE, sums.levels())
    match = contest(fits, fine, tuple(_places(boxes, fine)))
    kept, w = weighed(scored(match))
    return tuple(
        Window(match.ways[window.stretch], float(WIDTHS[window.width]), window.tau, float(weight))
        for window, weight in zip(kept, w, strict=True)
        if window is not None
    )
