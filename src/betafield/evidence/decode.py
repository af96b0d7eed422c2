"""From the sums of a window to a posterior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import contexts, lattice
from betafield._locks import cached
from betafield.evidence.columns import (
    FRACTIONS,
    OTHERS,
    Polynomial,
    polynomial_columns,
    polynomial_trials,
    untallied,
)
from betafield.evidence.encode import FINE
from betafield.posteriors import Beta, Contextual, Dirichlet, Posterior

if TYPE_CHECKING:
    from betafield.windows import Places, Shifts

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# This many polynomials double the time of a posterior.
CHEAP = 16
# Smaller probabilities of an outcome may round to 0, which has no logarithm.
LEAST_CHANCE = 2.0**-53


class Affine(NamedTuple):
    """Sums over trials with affine contexts, P(success) = A π + B: S, n, Σ A and Σ B."""

    successes: Floats
    trials: Floats
    gain: Floats
    offset: Floats


@dataclass(frozen=True)
class Decoder:
    """Interprets the sums of a window.

    Parameters
    ----------
    n_classes : int
    sharing : {"exact", "mean"}
    width : int
        Number of counts among the sums; lattice points follow them.
    span : (int, int)
        The first lattice point, and the number of points.
    polynomials : tuple of polynomials
        The polynomials counted.
    n_jobs : int or None
        Threads for posteriors that use them.
    """

    n_classes: int
    sharing: str = "exact"
    width: int = 2
    span: tuple[int, int] = (0, 0)
    polynomials: tuple[Polynomial, ...] = ()
    n_jobs: int | None = None

    def posterior(self, sums: Ints, shapes: Floats) -> Posterior:
        """Return the posteriors for windows with these sums, given prior shapes (m, K)."""
        if not self.is_plain:
            return self._mean(sums, shapes) if self.sharing == "mean" else self._exact(sums, shapes)
        shapes = shapes + self.trials(sums)
        return Dirichlet(shapes) if self.n_classes > 2 else Beta(shapes[:, 1], shapes[:, 0])

    @property
    def is_plain(self) -> bool:
        """Whether the sums count only undistorted trials."""
        return not self.span[1] and self.width <= 2 * self.n_classes

    def trials(self, sums: Ints) -> npt.NDArray[Any]:
        """Return the Beta counts, one column per class."""
        return untallied(sums[..., : min(self.width, 2 * self.n_classes)], self.n_classes)

    def size(self, sums: Ints) -> Floats:
        """Return the number of trials."""
        total = self.trials(sums).sum(axis=-1) + sums[..., self.width :].sum(axis=-1) / lattice.UNIT
        if self.polynomials:
            total = total + self._repeats(sums).sum(axis=-1)
        return np.asarray(total, dtype=np.float64)

    @property
    def is_summed(self) -> bool:
        """Whether the sums hold successes and contexts rather than likelihoods."""
        return self.is_plain or self.sharing == "mean"

    def affine(self, sums: Ints) -> Affine:
        """Return the sums over affine contexts, if windows hold such sums."""
        trials = self.trials(sums)
        successes, n = trials[..., 1].astype(np.float64), trials.sum(axis=-1).astype(np.float64)
        if self.is_plain:
            return Affine(successes, n, n, np.zeros_like(n))
        low, low_rest, high, high_rest = np.moveaxis(sums[..., OTHERS : OTHERS + 4], -1, 0)
        offset = (low + low_rest / FINE) / lattice.UNIT
        return Affine(successes, n, n - offset - (high + high_rest / FINE) / lattice.UNIT, offset)

    def likelihoods(self, sums: Ints) -> tuple[Floats, Floats]:
        """Return numbers of trials (…, c) and their log-likelihood ratios log l₁/l₀ (c,)."""
        first, points = self.span
        ratios = lattice.STEP * np.arange(first, first + points)
        amounts = [self.trials(sums), sums[..., self.width :] / lattice.UNIT]
        return np.concatenate(amounts, axis=-1), np.concatenate([[-np.inf, np.inf], ratios])

    @cached
    def _order(self) -> npt.NDArray[np.intp]:
        """An order of the polynomials that does not depend on which came first."""
        return np.array(
            sorted(range(len(self.polynomials)), key=lambda i: self.polynomials[i]), dtype=np.intp
        )

    @cached
    def _coefficients(self) -> Floats:
        """The polynomials in that order, all raised to the highest degree."""
        return np.concatenate([_raised([self.polynomials[i]], self._degree) for i in self._order])

    def _repeats(self, sums: Ints) -> Floats:
        """Return the number of trials of each polynomial."""
        return polynomial_trials(sums[..., : self.width])[..., self._order]

    def _exact(self, sums: Ints, shapes: Floats) -> Contextual:
        """Return the posterior from the likelihood of all trials in the window."""
        beta, alpha = (shapes + self.trials(sums)).T
        options: dict[str, Any] = {}
        if self.polynomials:
            options = {"polynomials": self._coefficients, "repeats": self._repeats(sums)}
        if sums.shape[1] > self.width:
            options |= {"amounts": sums[:, self.width :] / lattice.UNIT, "first": self.span[0]}
        return Contextual(alpha, beta, n_jobs=self.n_jobs, **options)

    def _mean(self, sums: Ints, shapes: Floats) -> Contextual:
        """Return the posterior as if all trials in the window had its mean context."""
        trials = self.trials(sums)
        rows = _mean_likelihoods(sums, trials.sum(axis=1))
        is_lost, is_won = rows[..., 1] == 0.0, rows[..., 0] == 0.0
        shifted = ~(is_won | is_lost)
        return Contextual(
            shapes[:, 1] + (trials * is_won).sum(axis=1),
            shapes[:, 0] + (trials * is_lost).sum(axis=1),
            shifts=lattice.shift(np.where(shifted[..., None], rows, 1.0)),
            trials=trials * shifted,
            n_jobs=self.n_jobs,
        )

    # Leave-one-out.

    def left_out(self, places: Places) -> LeftOut:
        """Return the trials of these places, to be left out of their windows one at a time."""
        parts = self._counted_mean(places) if self.sharing == "mean" else self._counted(places)
        if places.shifts is not None:
            parts.append(self._shifted(places.shifts))
        return LeftOut(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def log_scores(self, out: LeftOut, sums: Ints, shapes: Floats) -> Floats:
        """Return log P(outcome | the other trials in its window) for each left-out trial.

        This is log E[l(π)] under the posterior without the trial, where l is its likelihood, up to
        a constant that is the same for every window.
        """
        rest, shapes = sums[out.place] - out.own, shapes[out.place]
        if self.polynomials:
            shares = self._exact(rest, shapes).moments(self._degree)
        else:
            mean = self.posterior(rest, shapes).mean()
            shares = np.stack([1.0 - mean, mean], axis=1)
        chance = np.sum(shares * out.likelihood, axis=1)
        return np.asarray(np.log(np.maximum(chance, LEAST_CHANCE)))

    @property
    def cost(self) -> float:
        """Approximate cost of a posterior, relative to one without polynomials."""
        return 1.0 + len(self.polynomials) / CHEAP

    def _counted(self, places: Places) -> list[LeftOut]:
        """Return the counted trials of each class and each polynomial."""
        failure, success = _raised([[1.0, 0.0], [0.0, 1.0]], self._degree)
        columns = [(0, 2, failure), (1, 3, success)]
        for i, polynomial in enumerate(self.polynomials):
            whole, fraction = polynomial_columns(i)
            columns.append((whole, fraction, _raised([polynomial], self._degree)[0]))
        parts = []
        for whole, fraction, likelihood in columns:
            part = self._taken(places, whole, fraction)
            rows = np.broadcast_to(likelihood, (len(part.place), len(likelihood)))
            parts.append(part._replace(likelihood=rows))
        return parts

    def _counted_mean(self, places: Places) -> list[LeftOut]:
        """Return the trials of each class; all trials of a place have its mean context."""
        sums = places.counts.T.astype(np.int64)
        n = self.trials(sums).sum(axis=1)
        rows, each = _mean_likelihoods(sums, n), sums[:, OTHERS:] / n[:, None]
        parts = []
        for outcome in (0, 1):
            part = self._taken(places, outcome, outcome + 2)
            one = np.minimum(part.weight, 1.0)[:, None]
            part.own[:, OTHERS:] = np.rint(each[part.place] * one)
            parts.append(part._replace(likelihood=rows[part.place, outcome]))
        return parts

    def _taken(self, places: Places, whole: int, fraction: int) -> LeftOut:
        """Return the trials in two columns of counts; one is left out, or less if less is there."""
        wholes = places.counts[whole].astype(np.int64)
        rests = places.counts[fraction].astype(np.int64) if fraction < self.width else 0 * wholes
        place = np.flatnonzero(wholes + rests)
        own = np.zeros((len(place), self.width + self.span[1]), dtype=np.int64)
        own[:, whole] = np.minimum(wholes[place], 1)
        if fraction < self.width:
            own[:, fraction] = np.where(wholes[place] > 0, 0, rests[place])
        weight = wholes[place] + rests[place] / FRACTIONS
        return LeftOut(place, own, weight, np.empty((len(place), 0)))

    def _shifted(self, shifts: Shifts) -> LeftOut:
        """Return the trials on the lattice."""
        place = np.flatnonzero(shifts.held)
        values, held, size = shifts.values[place], shifts.held[place], shifts.sizes()[place]
        own = np.zeros((len(place), self.width + self.span[1]), dtype=np.int64)
        at = lattice.position(values) - self.span[0] + self.width
        units = lattice.weights(values, np.minimum(size, 1.0))
        own[np.arange(len(place))[:, None], at[:, None] + np.arange(lattice.POINTS)] = units
        ends = np.exp(np.stack([-np.maximum(values, 0.0), np.minimum(values, 0.0)], axis=1))
        return LeftOut(place, own, held * size, _raised(ends, self._degree))

    @cached
    def _degree(self) -> int:
        """The highest degree of a trial's likelihood."""
        return max([2, *map(len, self.polynomials)]) - 1


class LeftOut(NamedTuple):
    """Trials of places: the place, what to subtract from its window, their weight, likelihood."""

    place: Ints
    own: Ints
    weight: Floats
    likelihood: Floats


def _raised(rows: Any, degree: int) -> Floats:
    return contexts.elevate(np.asarray(rows, dtype=np.float64), degree)


def _mean_likelihoods(sums: Ints, n: npt.NDArray[Any]) -> Floats:
    """Return (m, 2, 2): l₀ and l₁ of a failure and of a success, under the mean context.

    1 − B̄ and Ā + B̄ are computed from the sums of B and 1 − A − B by integer subtraction.
    """
    low, low_rest, high, high_rest = sums[:, OTHERS : OTHERS + 4].T
    units = np.rint(n * lattice.UNIT).astype(np.int64)
    coarse = np.stack([units - low, high, low, units - high])
    fine = np.stack([-low_rest, high_rest, low_rest, -high_rest])
    means = (coarse + fine / FINE) / (lattice.UNIT * np.maximum(n, 1.0 / FINE))
    return np.asarray(means.T.clip(0.0, 1.0).reshape(-1, 2, 2))
