"""What is to be learned: probabilities with a known Lipschitz constant, and trials of them.

The paper's own functions are not printed in our copy. These are cones, 0.1 + L‖x − c‖: as steep as
L allows at every point, and with a kink, so that they are Lipschitz and no smoother, which is all
that the theorems assume. Widths by theory get the true L. The sine is there to see what changes
for a smooth function, at which Gaussian processes are at their best.
"""

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from betafield import contexts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Points a side at which errors are averaged over the domain, by its number of features.
SIDES = {1: 2_000, 2: 45}
RESTED = (0.0, 1.0)
TIRED = (0.0, 0.5)


@dataclass(frozen=True)
class Trials:
    """What a method is given; the contexts as they are told, (0, 1) where there is none."""

    X: Floats
    y: Ints
    context: Floats | None


# Circumstances: contexts of t trials, as told and as they are ---------------------------------

Circumstances = Callable[[np.random.Generator, int], tuple[Floats, Floats]]


def background(rng: np.random.Generator, t: int) -> tuple[Floats, Floats]:
    """B ~ U[0, 1], A = 1 − B."""
    told = contexts.background(rng.random(t))
    return told, told


def fatigue(rng: np.random.Generator, t: int) -> tuple[Floats, Floats]:
    """Success a·π, a ~ U[½, 1]."""
    told = contexts.attenuated(rng.uniform(0.5, 1.0, t))
    return told, told


def middling_background(rng: np.random.Generator, t: int) -> tuple[Floats, Floats]:
    """B ~ U[¼, ¾], A = 1 − B, told as it is."""
    told = contexts.background(rng.uniform(0.25, 0.75, t))
    return told, told


def noisy_background(rng: np.random.Generator, t: int) -> tuple[Floats, Floats]:
    """B ~ U[¼, ¾] is told; it was B + ¼ or B − ¼, by a coin: the most noise that always fits."""
    told = rng.uniform(0.25, 0.75, t)
    true = told + np.where(rng.random(t) < 0.5, 0.25, -0.25)
    return contexts.background(told), contexts.background(true)


# Problems --------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Problem:
    """A probability of success on [0, 1]^d, and how trials of it are made."""

    name: str
    d: int
    lipschitz: float
    of: Callable[[Floats], Floats]
    circumstances: Circumstances | None = None

    def __repr__(self) -> str:
        # Settings that hold a problem must read the same in every run.
        return self.name

    def __call__(self, X: Floats) -> Floats:
        return self.of(X)

    def trials(self, t: int, run: int) -> Trials:
        """Return trials at uniform points: others for every t and run, the same for all methods."""
        rng = np.random.default_rng([zlib.crc32(self.name.encode()), t, run])
        X, chance = rng.random((t, self.d)), rng.random(t)
        if self.circumstances is None:
            return Trials(X, (chance < self(X)).astype(np.int64), None)
        told, true = self.circumstances(rng, t)
        success = chance < true[:, 0] + (true[:, 1] - true[:, 0]) * self(X)
        return Trials(X, success.astype(np.int64), told)

    @cached_property
    def grid(self) -> Floats:
        """The points at which errors are averaged: midpoints of equal cells."""
        side = (np.arange(SIDES[self.d]) + 0.5) / SIDES[self.d]
        return np.stack(np.meshgrid(*[side] * self.d, indexing="ij"), axis=-1).reshape(-1, self.d)

    @cached_property
    def truth(self) -> Floats:
        """Return the probability at the grid's points."""
        return self(self.grid)

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the function, the grid and the way trials are made."""
        some = self.trials(64, 0)
        told = np.zeros(0) if some.context is None else some.context
        parts = [self.grid[:64], self.truth, some.X, some.y.astype(float), told]
        digest = hashlib.sha256(repr((self.d, self.lipschitz)).encode())
        for part in parts:
            digest.update(np.round(part, 9).tobytes())
        return digest.hexdigest()[:12]


def cone_1(X: Floats) -> Floats:
    return 0.1 + 1.3 * np.abs(X[:, 0] - 0.4)


def cone_2(X: Floats) -> Floats:
    return 0.1 + np.sqrt(((X - 0.4) ** 2).sum(axis=1))


def sine(X: Floats) -> Floats:
    return 0.5 + 0.4 * np.sin(2 * np.pi * X[:, 0])


def line(X: Floats) -> Floats:
    return 1.0 - X[:, 0]


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("cone-1", 1, 1.3, cone_1),
        Problem("cone-2", 2, 1.0, cone_2),
        Problem("sine-1", 1, 0.8 * np.pi, sine),
        Problem("background", 1, 1.3, cone_1, background),
        Problem("rehabilitation", 1, 1.0, line, fatigue),
        Problem("told", 1, 1.3, cone_1, middling_background),
        Problem("told with noise", 1, 1.3, cone_1, noisy_background),
    )
}
