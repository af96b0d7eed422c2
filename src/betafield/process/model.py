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
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process import law
from betafield.process.basis import Prior
from betafield.process.boxes import Box
from betafield.process.fit import Fit, Problem, fit_links, settled, weights
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
from betafield.process.rows import FINE, Rows, gather
from betafield.process.scores import contest, scored, weighed
from betafield.process.trees import Trees

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Sums(NamedTuple):
    """Trials by place, in the features' own units, in any order and any number of parts.

    Parameters
    ----------
    points : array of shape (r, d)
    trials, successes : integer array of shape (r,)
        In units of `unit`.
    context : array of shape (r, p + 1) or None
        Bernstein coefficients of P(success) as a polynomial of π; None: all were seen as they are.
    unit : float
        What 1 counts for.
    """

    points: Floats
    trials: Ints
    successes: Ints
    context: Floats | None = None
    unit: float = 1.0


class Component(NamedTuple):
    """A process to be fitted: its link's name, Matérn's ν or None, and θ = (log σ, log ℓ)."""

    link: str
    smoothness: float | None
    theta: Floats


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
        Processes, weighed by evidence among themselves.
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
    box : Box
        Own units to the unit box.
    fits : tuple of Fit
        One per component.
    windows : tuple of Window
        Those in use.
    fine : Rows or None
        Trials by place or fine cell, whose residuals windows add up; None without windows.
    """

    box: Box
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
        x = self.box.inside(points)
        laws, m = law.believed(self.surfaces, self.weights, x)
        if not self.windows:
            return laws
        v = logit_variance(laws, m)
        means, variances = [], []
        for stretch, width, tau, _ in self.windows:
            up, down, W = self._trees.sums(x, stretch, width, n_jobs).T
            means.append(corrected(m, up - down, W, tau))
            variances.append(variance(v, W, tau, bool(stretch.min() > 0.0)))
        rest = 1.0 - sum(window.weight for window in self.windows)
        w = np.array([rest, *(window.weight for window in self.windows)])
        return with_windows(laws, means, variances, w)

    @functools.cached_property
    def _trees(self) -> Trees:
        """Sums of residuals at fine rows over windows."""
        assert self.fine is not None
        left_over = residuals(law.mean(self.surfaces, self.weights, self.fine.x), self.fine)
        return Trees(self.fine.x, parts(left_over.score, left_over.information))


def find(sums: Sums, bounds: Floats, with_windows: bool = True) -> Found:
    """Return what process and windows are best for these trials."""
    box = Box.of(bounds)
    fits = fit_links(_rows(sums, box))
    components = tuple(
        Component(fit.problem.link.name, fit.problem.prior.smoothness, fit.theta) for fit in fits
    )
    return Found(components, _windows(fits, _fine(sums, box)) if with_windows else ())


def build(sums: Sums, bounds: Floats, found: Found) -> Smooth:
    """Return what answers questions, of these trials and what was found."""
    box = Box.of(bounds)
    fits = _fits(_rows(sums, box), found.components)
    return Smooth(box, fits, found.windows, _fine(sums, box) if found.windows else None)


def _rows(sums: Sums, box: Box) -> Rows:
    return gather(*sums, box=box.within)


def _fine(sums: Sums, box: Box) -> Rows:
    return gather(*sums, grid=FINE, box=box.within)


def _fits(rows: Rows, components: tuple[Component, ...]) -> tuple[Fit, ...]:
    links = {link.name: link for link in LINKS}
    t = float(rows.n.sum())
    return tuple(
        settled(Problem(rows, links[name], Prior(links[name].scale, t, smoothness)), theta)
        for name, smoothness, theta in components
    )


def _windows(fits: tuple[Fit, ...], fine: Rows) -> tuple[Window, ...]:
    """Return the windows of residuals that predict trials left out, with their weights."""
    m = law.mean([law.surface(fit) for fit in fits], weights(fits), fine.x)
    match = contest(fits, fine, m)
    kept, w = weighed(scored(match))
    return tuple(
        Window(match.ways[window.stretch], float(WIDTHS[window.width]), window.tau, float(weight))
        for window, weight in zip(kept, w, strict=True)
        if window is not None
    )
