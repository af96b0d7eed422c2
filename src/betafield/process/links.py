"""Links from a latent value f to a probability π = g(f), and their derivatives.

There are two, both with g′ = C σ(a) σ(−b), σ the logistic function:

    logit           g = σ(f)                                         κ = 1,   a = b = f
    soft identity   g = [log(1 + e^a) − log(1 + e^b)]/κ              κ = 25,  a, b = κ (f ± ½)

The soft identity is linear inside and smooth at 0 and 1. It is better if π is a line or reaches 0
or 1, and the logit is better on steep curves. Written as products, derivatives keep their relative
precision in the tails:

    g″ = g′ κ (σ(−a) − σ(b)).

Both are symmetric: 1 − g(f) = g(−f).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log1p, logit

Floats = npt.NDArray[np.float64]


class Bend(NamedTuple):
    """π, 1 − π and the derivatives of π by f."""

    p: Floats
    rest: Floats
    first: Floats
    second: Floats


class Link(ABC):
    """A link between latent values and probabilities.

    `scale` is s, the typical size of f; `steepness` is κ. f is clipped to ±`most`, because
    probabilities beyond it would leave the range of floats.
    """

    name: str
    scale: float
    steepness: float
    most: float

    def value(self, f: Floats) -> Floats:
        """Return π = g(f).

        Examples
        --------
        >>> import numpy as np
        >>> from betafield.process.links import LOGIT, SOFT
        >>> LOGIT.value(np.array([0.0, 2.0])), SOFT.value(np.array([0.0, 0.25]))
        (array([0.5       , 0.88079708]), array([0.5       , 0.74992...]))
        """
        return self._value(clipped(f, -self.most, self.most))

    def both(self, f: Floats) -> tuple[Floats, Floats]:
        """Return g and 1 − g at f."""
        return self._both(clipped(f, -self.most, self.most))

    def inverse(self, p: Floats) -> Floats:
        """Return f with g(f) = p, at most ±most."""
        with np.errstate(divide="ignore"):
            return np.clip(self._inverse(np.clip(p, 0.0, 1.0)), -self.most, self.most)

    def rise(self, f: Floats) -> tuple[Floats, Floats]:
        """Return g and g′ at f."""
        return self._rise(clipped(f, -self.most, self.most))

    def bend(self, f: Floats) -> Bend:
        """Return g, 1 − g, g′ and g″ at f."""
        return self._bend(clipped(f, -self.most, self.most))

    @abstractmethod
    def _value(self, f: Floats) -> Floats: ...

    @abstractmethod
    def _both(self, f: Floats) -> tuple[Floats, Floats]: ...

    @abstractmethod
    def _inverse(self, p: Floats) -> Floats: ...

    @abstractmethod
    def _rise(self, f: Floats) -> tuple[Floats, Floats]: ...

    @abstractmethod
    def _bend(self, f: Floats) -> Bend: ...


class Logit(Link):
    """π = 1/(1 + e^−f)."""

    name, scale, steepness, most = "logit", 1.0, 1.0, 300.0

    def __reduce__(self) -> str:
        return "LOGIT"  # the one instance, because links are compared by identity

    def _value(self, f: Floats) -> Floats:
        return np.asarray(expit(f))

    def _both(self, f: Floats) -> tuple[Floats, Floats]:
        return np.asarray(expit(f)), np.asarray(expit(-f))

    def _inverse(self, p: Floats) -> Floats:
        return np.asarray(logit(p))

    def _rise(self, f: Floats) -> tuple[Floats, Floats]:
        p = expit(f)
        return p, p * expit(-f)

    def _bend(self, f: Floats) -> Bend:
        p, rest = expit(f), expit(-f)
        first, tilt = p * rest, rest - p
        return Bend(p, rest, first, first * tilt)


class Soft(Link):
    """π = f + ½, bent softly where that would leave [0, 1]."""

    name, scale, steepness, most = "soft identity", 0.27, 25.0, 25.0
    whole = -float(np.expm1(-steepness))

    def __reduce__(self) -> str:
        return "SOFT"

    def _value(self, f: Floats) -> Floats:
        a, b = (_Bent.of(end) for end in self._ends(f))
        return np.minimum((a.above() - b.above()) / self.steepness, 1.0)

    def _both(self, f: Floats) -> tuple[Floats, Floats]:
        a, b = (_Bent.of(end) for end in self._ends(f))
        return self._values(a, b)

    def _values(self, a: _Bent, b: _Bent) -> tuple[Floats, Floats]:
        """Return g and 1 − g, which is g at −f: there the ends are −b and −a."""
        p, rest = a.above() - b.above(), b.below() - a.below()
        return np.minimum(p / self.steepness, 1.0), np.minimum(rest / self.steepness, 1.0)

    def _inverse(self, p: Floats) -> Floats:
        up, down = np.expm1(self.steepness * p), -np.expm1(self.steepness * (p - 1.0))
        return (np.log(up) - np.log(down)) / self.steepness - 0.5

    def _rise(self, f: Floats) -> tuple[Floats, Floats]:
        a, b = (_Bent.of(end) for end in self._ends(f))
        p = np.minimum((a.above() - b.above()) / self.steepness, 1.0)
        return p, self.whole * a.up() * b.down()

    def _bend(self, f: Floats) -> Bend:
        a, b = (_Bent.of(end) for end in self._ends(f))
        a1, a0, b1, b0 = a.up(), a.down(), b.up(), b.down()
        first, tilt = self.whole * a1 * b0, self.steepness * (a0 - b1)
        return Bend(*self._values(a, b), first, first * tilt)

    def _ends(self, f: Floats) -> tuple[Floats, Floats]:
        return self.steepness * (f + 0.5), self.steepness * (f - 0.5)


class _Bent(NamedTuple):
    """One of a, b of the soft identity, with e^−|a| and log(1 + e^−|a|)."""

    a: Floats
    small: Floats
    corner: Floats

    @classmethod
    def of(cls, a: Floats) -> _Bent:
        small = np.exp(-np.abs(a))
        return cls(a, small, log1p(small))

    def above(self) -> Floats:
        """Return log(1 + e^a)."""
        return np.asarray(np.maximum(self.a, 0.0) + self.corner)

    def below(self) -> Floats:
        """Return log(1 + e^−a)."""
        return np.asarray(np.maximum(-self.a, 0.0) + self.corner)

    def up(self) -> Floats:
        """Return 1/(1 + e^−a)."""
        return np.asarray(np.where(self.a >= 0.0, 1.0, self.small) / (1.0 + self.small))

    def down(self) -> Floats:
        """Return 1/(1 + e^a)."""
        return np.asarray(np.where(self.a >= 0.0, self.small, 1.0) / (1.0 + self.small))


def clipped(values: Floats, low: float, high: float) -> Floats:
    """Return the same as np.clip, in a third of the time for few values."""
    return np.minimum(np.maximum(values, low), high)


LOGIT, SOFT = Logit(), Soft()
LINKS: tuple[Link, ...] = (LOGIT, SOFT)
