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

from betafield.process import law, leaving
from betafield.process.basis import Prior
from betafield.process.boxes import Box
from betafield.process.fit import Fit, Problem, fit_links, settled, weights
from betafield.process.ladder import UNIT, WIDTHS
from betafield.process.law import Laws, Surface
from betafield.process.links import LINKS
from betafield.process.residuals import (
    columns,
    corrected,
    logit_variance,
    residuals,
    stretches,
    variance,
    with_windows,
)
from betafield.process.rows import FINE, Rows, gather
from betafield.process.scores import by_trial, process_mean, sampled, weighed
from betafield.windows import Forest, Places

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
        laws = law.mixed(self.surfaces, self.weights, x)
        if not self.windows:
            return laws
        m = process_mean(self.fits, x)
        v = logit_variance(laws, m)
        means, variances = [], []
        for window in self.windows:
            g, W = self._sums(x, window, n_jobs)
            means.append(corrected(m, g, W, window.tau))
            variances.append(variance(v, W, window.tau, bool(window.stretch.min() > 0.0)))
        rest = 1.0 - sum(window.weight for window in self.windows)
        w = np.array([rest, *(window.weight for window in self.windows)])
        return with_windows(laws, means, variances, w)

    def _sums(self, x: Floats, window: Window, n_jobs: int | None) -> tuple[Floats, Floats]:
        """Return Σg and ΣW over windows about points of the box."""
        used = window.stretch > 0.0
        forest = self._forest(tuple(window.stretch.tolist()))
        held = forest.sums(x[:, used] * window.stretch[used], window.width, n_jobs)
        return (held[:, 0] - held[:, 1]) / UNIT, held[:, 2] / UNIT

    def _forest(self, stretch: tuple[float, ...]) -> Forest:
        if stretch not in self._forests:
            used = np.array(stretch) > 0.0
            fine = self._fine_rows
            axes = np.ascontiguousarray((fine.x[:, used] * np.array(stretch)[used]).T)
            forest = Forest(int(used.sum()), "chebyshev").insert(Places(axes, self._columns.copy()))
            self._forests[stretch] = forest
        return self._forests[stretch]

    @functools.cached_property
    def _forests(self) -> dict[tuple[float, ...], Forest]:
        return {}

    @property
    def _fine_rows(self) -> Rows:
        assert self.fine is not None
        return self.fine

    @functools.cached_property
    def _columns(self) -> Ints:
        """What windows add up at fine rows."""
        fine = self._fine_rows
        left_over = residuals(process_mean(self.fits, fine.x), fine)
        return np.ascontiguousarray(columns(left_over.score, left_over.information).T)


def find(sums: Sums, bounds: Floats, with_windows: bool = True) -> Found:
    """Return what process and windows are best for these trials."""
    box = Box.of(bounds)
    fits = fit_links(_rows(sums, box))
    components = tuple(
        Component(fit.problem.link.name, fit.problem.prior.smoothness, fit.theta) for fit in fits
    )
    if not with_windows:
        return Found(components)
    return Found(components, _windows(_fits(_rows(sums, box), components), _fine(sums, box)))


def build(sums: Sums, bounds: Floats, found: Found) -> Smooth:
    """Return what answers questions, of these trials and what was found."""
    box = Box.of(bounds)
    fits = _fits(_rows(sums, box), found.components)
    return Smooth(box, fits, found.windows, _fine(sums, box) if found.windows else None)


def _rows(sums: Sums, box: Box) -> Rows:
    return gather(box.within(sums.points), *sums[1:])


def _fine(sums: Sums, box: Box) -> Rows:
    return gather(box.within(sums.points), *sums[1:], grid=FINE)


def _fits(rows: Rows, components: tuple[Component, ...]) -> tuple[Fit, ...]:
    links = {link.name: link for link in LINKS}
    t = float(rows.n.sum())
    return tuple(
        settled(Problem(rows, links[name], Prior(links[name].scale, t, smoothness)), theta)
        for name, smoothness, theta in components
    )


def _windows(fits: tuple[Fit, ...], fine: Rows) -> tuple[Window, ...]:
    """Return the windows of residuals that predict trials left out, with their weights."""
    best = fits[int(np.argmax(weights(fits)))]
    left_over = residuals(process_mean(fits, fine.x), fine)
    ways, some = stretches(best.lengths), sampled(fine, left_over)
    parts = [leaving.means(fit, fine.taken(some)) for fit in fits]
    scored = by_trial(fine, left_over, some, leaving.mixed(parts, weights(fits)), ways, best)
    kept, w = weighed(scored)
    return tuple(
        Window(ways[window.stretch], float(WIDTHS[window.width]), window.tau, float(weight))
        for window, weight in zip(kept, w, strict=True)
        if window is not None
    )
