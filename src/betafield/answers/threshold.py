"""The posterior of where a probability reaches a level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield.answers.crossings import Crossings
from betafield.posteriors import Sampled

Floats = npt.NDArray[np.float64]

# Smaller shares of draws are not mentioned.
WORTH_TELLING = 0.005


@dataclass(frozen=True)
class Asked:
    """What a threshold refers to.

    Parameters
    ----------
    level : float
        The probability to be reached.
    feature : str
        The feature along which it is reached.
    domain : (low, high)
        The range of its values.
    rises : bool
        Whether the probability rises to the level or falls to it.
    at : mapping of str to float
        Values of fixed features; empty if there are none, or if they are averaged over.
    averaged : bool
        Whether other features are averaged over the places of the trials.
    """

    level: float
    feature: str = "x0"
    domain: tuple[float, float] = (0.0, 1.0)
    rises: bool = True
    at: Mapping[str, float] = field(default_factory=dict)
    averaged: bool = False


class Threshold:
    r"""The value of a feature at which the probability first reaches a level, by joint draws.

    Each draw is a whole curve, made monotone, and the place where it crosses the level is a draw of
    the threshold. A curve that does not cross the level within the domain counts as the end beyond
    which it would; `not_reached` is the share of such draws. So if an interval ends at an end of
    the domain, it means "there, or beyond".

    Parameters
    ----------
    crossings : Crossings
        Where draws of the curve reach the level, and their slopes there.
    asked : Asked
        What the threshold refers to.

    Attributes
    ----------
    draws : array of shape (size,)
        Draws of the threshold.
    never, already : float
        Shares of draws that do not reach the level by the high end of the domain, and that are
        beyond it already at the low end.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield.answers.crossings import crossings
    >>> from betafield.answers.threshold import Asked, Threshold
    >>> grid = np.linspace(0.0, 10.0, 11)
    >>> curves = np.array([grid / 10.0, grid / 8.0, grid / 25.0]).clip(0.0, 1.0)
    >>> found = Threshold(crossings(curves, grid, 0.5), Asked(0.5, "dose", (0.0, 10.0)))
    >>> found.median(), found.prob_below(4.5), round(found.not_reached, 3)
    (5.0, 0.333..., 0.333)
    >>> print(str(found).replace(". ", ".\n"))
    dose = 5 (95 % interval from 4.05 to 9.75 or above) is where the probability first reaches 0.5.
    It is not reached within 0 to 10 in 33 % of draws.
    """

    def __init__(self, crossings: Crossings, asked: Asked) -> None:
        self._crossings = checks.instance("crossings", crossings, Crossings, "Crossings are needed")
        self.asked = checks.instance("asked", asked, Asked, "an Asked is needed")

    @property
    def draws(self) -> Floats:
        """Draws of the threshold, shape (size,)."""
        return self._crossings.at

    @property
    def never(self) -> float:
        """Share of draws that do not reach the level by the high end of the domain."""
        return float(self._crossings.never.mean())

    @property
    def already(self) -> float:
        """Share of draws that are already beyond the level at the low end of the domain."""
        return float(self._crossings.already.mean())

    @property
    def not_reached(self) -> float:
        """Share of draws that do not cross the level within the domain."""
        return self.never + self.already

    @property
    def level(self) -> float:
        """The probability to be reached."""
        return self.asked.level

    def median(self) -> float:
        """Return the median; an end of the domain if most draws reach the level beyond it."""
        return float(np.median(self.draws))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the equal-tailed interval (low, high); ends of the domain mean "or beyond"."""
        rule = "a probability strictly between 0 and 1 is needed"
        tail = 0.5 * (1.0 - checks.share("level", level, rule))
        low, high = np.quantile(self.draws, [tail, 1.0 - tail])
        return float(low), float(high)

    def prob_below(self, x: Any) -> float:
        """Return the probability that the threshold is x or below.

        For curves that never reach the level within the domain, it is above any x.
        """
        value = checks.number("x", x)
        at, _, never, already = self._crossings
        is_below = np.where(already, value >= self.asked.domain[0], ~never & (at <= value))
        return float(is_below.mean())

    def slope(self) -> Sampled:
        """Return the posterior of the slope of the probability at the threshold.

        The slope is in probability per unit of the feature. Draws that do not cross the level have
        the slope at the end of the domain where they come closest to it.

        Examples
        --------
        >>> import numpy as np
        >>> from betafield.answers.crossings import crossings
        >>> grid = np.linspace(0.0, 1.0, 5)
        >>> Threshold(crossings(grid[None], grid, 0.5), Asked(0.5)).slope().median()
        array([1.])
        """
        return Sampled(self._crossings.slope, support=(-np.inf, np.inf))

    def __repr__(self) -> str:
        low, high = self.interval()
        told = f"level {self.level:g} along {self.asked.feature}: {self.median():.4g}"
        told += f", 95 % from {low:.4g} to {high:.4g}"
        return f"<Threshold, {told}{self._short()}>"

    def __str__(self) -> str:
        return f"{self._where()} is {self._of_what()}.{self._missed()}"

    # In words.

    def _short(self) -> str:
        missed = 100.0 * self.not_reached
        return (
            f", not reached in {missed:.0f} % of draws" if missed >= 100.0 * WORTH_TELLING else ""
        )

    def _where(self) -> str:
        """Return the median and the interval; ends of the domain are spelled out."""
        name, (low, high) = self.asked.feature, self.interval()
        if self.never > 0.5:
            return f"{name} above {self.asked.domain[1]:.4g} (probability {self.never:.2g})"
        if self.already > 0.5:
            return f"{name} below {self.asked.domain[0]:.4g} (probability {self.already:.2g})"
        or_below = " or below" if self.already > 0.025 else ""
        or_above = " or above" if self.never > 0.025 else ""
        ends = f"from {low:.4g}{or_below} to {high:.4g}{or_above}"
        return f"{name} = {self.median():.4g} (95 % interval {ends})"

    def _of_what(self) -> str:
        verb = "first reaches" if self.asked.rises else "first falls to"
        told = f"where the probability {verb} {self.level:g}"
        if self.asked.at:
            told += " at " + ", ".join(f"{a} = {_told(x)}" for a, x in self.asked.at.items())
        return told + (", averaged over the places of the trials" if self.asked.averaged else "")

    def _missed(self) -> str:
        if self.not_reached < WORTH_TELLING:
            return ""
        low, high = self.asked.domain
        share = f"{100.0 * self.not_reached:.0f} %"
        return f" It is not reached within {low:.4g} to {high:.4g} in {share} of draws."


def _told(value: Any) -> str:
    """Return a value of a feature, a number or a level, as written in sentences."""
    return f"{value:.4g}" if checks.is_number(value) else str(value)
