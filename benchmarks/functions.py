"""Probabilities to be learned, over [0, 1]^d: smooth, kinked, flat, steep, oscillating and more.

None was chosen by how well anyone learns it. A name ends in its number of features.
"""

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr
from scipy.stats import qmc

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POINTS = 2000


@dataclass(frozen=True)
class Function:
    """A probability of success, given the axes (d, n) of points."""

    name: str
    d: int
    of: Callable[[Floats], Floats]

    def __call__(self, X: Floats) -> Floats:
        return self.of(X.T)

    @property
    def fingerprint(self) -> str:
        """Changes with the function: what was computed for an earlier form is not its own."""
        values = np.round(self(space(self.d)[:64]), 9)
        return hashlib.sha256(values.tobytes()).hexdigest()[:8]

    def trials(self, t: int, seed: int) -> tuple[Floats, Ints]:
        """Trials at uniform points; the same ones whatever other functions there are."""
        rng = np.random.default_rng([zlib.crc32(self.name.encode()), t, seed])
        X = rng.random((t, self.d))
        return X, (rng.random(t) < self(X)).astype(np.int64)


def space(d: int) -> Floats:
    """The points at which errors are averaged: quasi-random and always the same."""
    return qmc.Halton(d, scramble=True, rng=0).random(POINTS)


def _distance(x: Floats, centre: tuple[float, ...]) -> Floats:
    return np.sqrt(((x - np.array(centre)[:, None]) ** 2).sum(axis=0))


FUNCTIONS = tuple(
    Function(name, int(name[-1]), of)
    for name, of in {
        "smooth-1": lambda x: 0.5 + 0.4 * np.sin(2 * np.pi * x[0]),
        "kinked-1": lambda x: 0.1 + 1.3 * np.abs(x[0] - 0.4),
        "flat-1": lambda x: np.full(x.shape[1], 0.3),
        "steep-1": lambda x: 0.05 + 0.9 * expit(40 * (x[0] - 0.6)),
        "oscillating-1": lambda x: 0.5 + 0.35 * np.sin(2 * np.pi * (x[0] + 3 * x[0] ** 2)),
        "product-2": lambda x: 0.5 + 1.7 * (x[0] - 0.5) * (x[1] - 0.5),
        "bump-2": lambda x: 0.1 + 0.8 * np.exp(-0.5 * (_distance(x, (0.4, 0.6)) / 0.15) ** 2),
        "irrelevant-2": lambda x: expit(8 * (x[0] - 0.5)),
        "steep-axis-2": lambda x: 0.1 + 0.6 * expit(25 * (x[0] - 0.5)) + 0.2 * x[1],
        "cone-2": lambda x: np.minimum(0.9, 0.1 + 1.4 * _distance(x, (0.5, 0.4))),
        "ridge-2": lambda x: 0.5 + 0.4 * np.sin(2 * np.pi * (x[0] + x[1])),
        "smooth-3": lambda x: expit(2 * np.sin(np.pi * x[0]) + 2 * x[1] - 3 * x[2]),
        "irrelevant-3": lambda x: 0.5 + 0.4 * np.sin(np.pi * (x[0] + x[1])),
        "corner-3": lambda x: 0.1 + 0.8 * np.maximum(np.maximum(x[0], x[1]), x[2]),
        "steep-axis-3": lambda x: expit(15 * (x[0] - 0.5) + x[1] - x[2]),
    }.items()
)

# Written down later, before any of them was looked at.
NEW = tuple(
    Function(name, int(name[-1]), of)
    for name, of in {
        "two-steps-1": lambda x: (
            0.15 + 0.35 * expit(18 * (x[0] - 0.25)) + 0.4 * expit(30 * (x[0] - 0.72))
        ),
        "decay-1": lambda x: 0.05 + 0.85 * np.exp(-3 * x[0]),
        "beat-1": lambda x: 0.5 + 0.25 * np.sin(9 * x[0]) + 0.15 * np.sin(23 * x[0] + 1),
        "plateau-1": lambda x: np.clip(2.2 * x[0] - 0.6, 0.05, 0.95),
        "saddle-2": lambda x: expit(6 * ((x[0] - 0.4) ** 2 - (x[1] - 0.6) ** 2) + 0.5 * x[0]),
        "wave-2": lambda x: 0.5 + 0.35 * np.sin(6 * x[0] + 3 * x[1] ** 2),
        "valley-2": lambda x: 0.1 + 0.8 * np.abs(x[0] - x[1]) ** 1.5,
        "two-bumps-2": lambda x: (
            0.12
            + 0.6 * np.exp(-0.5 * (_distance(x, (0.25, 0.3)) / 0.12) ** 2)
            + 0.5 * np.exp(-0.5 * (_distance(x, (0.7, 0.7)) / 0.2) ** 2)
        ),
        "additive-3": lambda x: expit(2 * np.sin(4 * x[0]) + 2 * (x[1] - 0.5) - 1.5 * x[2] ** 2),
        "shell-3": lambda x: (
            0.2 + 0.6 * np.exp(-0.5 * ((_distance(x, (0.5, 0.5, 0.5)) - 0.45) / 0.2) ** 2)
        ),
        "product-3": lambda x: 0.05 + 0.8 * x[0] * (1 - x[1]) + 0.1 * x[2],
    }.items()
)

# Jumps, sawteeth and levels: where a smooth process alone is not enough.
ROUGH = tuple(
    Function(name, int(name[-1]), of)
    for name, of in {
        "jump-1": lambda x: np.where(x[0] < 0.58, 0.3, 0.85) - 0.2 * x[0],
        "teeth-1": lambda x: 0.2 + 0.6 * ((3 * x[0] + 0.1) % 1),
        "stairs-1": lambda x: np.array([0.2, 0.55, 0.4, 0.9, 0.65])[(x[0] * 4.999).astype(int)],
        "quadrants-2": lambda x: np.where((x[0] < 0.45) ^ (x[1] < 0.6), 0.25, 0.75),
        "ring-2": lambda x: np.where(np.abs(_distance(x, (0.5, 0.5)) - 0.3) < 0.1, 0.75, 0.25),
        "edge-2": lambda x: expit(3 * x[0] - 2 + 2 * (x[1] > 0.35 + 0.3 * x[0])),
        "half-3": lambda x: np.where(x[0] + x[1] < 0.9, 0.2, 0.7) + 0.1 * x[2],
        "ball-3": lambda x: np.where(_distance(x, (0.4, 0.5, 0.6)) < 0.4, 0.8, 0.3),
    }.items()
)

# Added with docs/figures.md, before any model had seen them.
FRESH = tuple(
    Function(name, int(name[-1]), of)
    for name, of in {
        "dip-1": lambda x: 0.8 - 0.55 * np.exp(-0.5 * ((x[0] - 0.7) / 0.08) ** 2),
        "slow-wave-1": lambda x: expit(2.5 * np.sin(5 * x[0]) - 1 + x[0]),
        "tilted-2": lambda x: expit(4 * x[0] - 3 * x[1] + 2 * np.sin(5 * x[0] * x[1]) - 0.5),
        "arch-2": lambda x: 0.15 + 0.7 * np.sin(np.pi * x[0]) * np.sqrt(x[1]),
        "mound-3": lambda x: (
            0.1
            + 0.75
            * np.exp(-0.5 * sum(((x[a] - 0.55) / w) ** 2 for a, w in enumerate((0.25, 0.35, 0.6))))
        ),
        "crossed-3": lambda x: expit(9 * (x[0] - 0.5) * (x[1] - 0.4) + 2 * x[2] - 1),
    }.items()
)

# One feature matters much more than another, which rises and falls. The first showed that length
# scales have several optima; the others were written down before any model had seen them.
UNEVEN = tuple(
    Function(name, int(name[-1]), of)
    for name, of in {
        "rise-and-wave-2": lambda x: expit(8 * (x[0] - 0.5) + np.sin(2 * np.pi * x[1])),
        "rise-and-dip-2": lambda x: expit(
            7 * (x[0] - 0.4) - 1.5 * np.exp(-0.5 * ((x[1] - 0.6) / 0.12) ** 2)
        ),
        "rise-and-ripple-3": lambda x: expit(
            6 * (x[0] - 0.5) + 0.9 * np.cos(7 * x[1]) + 0.5 * (x[2] - 0.5)
        ),
    }.items()
)

# Many features, of which all, some or none matter; written down before any model had seen them.
MANY = tuple(
    Function(name, int(name.rsplit("-", 1)[1]), of)
    for name, of in {
        "rise-and-wave-4": lambda x: expit(5 * (x[0] - 0.5) + 2 * np.sin(5 * x[1])),
        "ridge-5": lambda x: 0.5 + 0.4 * np.sin(2 * x.sum(axis=0)),
        "bump-6": lambda x: 0.1 + 0.8 * np.exp(-0.5 * (_distance(x, (0.5,) * 6) / 0.3) ** 2),
        "rare-6": lambda x: 0.03 + 0.25 * x[1] ** 4,
        "mixed-7": lambda x: expit(
            12 * (x[0] - 0.5) * (x[1] - 0.3) + 1.5 * np.cos(6 * x[2]) + x[3] - 1
        ),
        "additive-8": lambda x: expit(np.sin(4 * x).sum(axis=0) - 3),
        "linear-10": lambda x: expit(2 * (x[::2] - x[1::2]).sum(axis=0)),
        "product-12": lambda x: expit(16 * (x[2] - 0.5) * (x[5] - 0.5) + x[0] - 0.5),
        "step-15": lambda x: np.where(x[4] > 0.45, 0.75, 0.25),
        "linear-20": lambda x: expit(np.array([4.0, -3.0, 3.0, -2.0, 2.0]) @ (x[:5] - 0.5)),
        "flat-20": lambda x: np.full(x.shape[1], 0.3),
    }.items()
)

# Written down before additive processes were tried on any function, and looked at only after these
# had been tuned on those above.
LATER = tuple(
    Function(name, int(name[-1]), of)
    for name, of in {
        "probit-1": lambda x: ndtr(2.5 * (x[0] - 0.35)),
        "hump-1": lambda x: 0.1 + 5 * x[0] * np.exp(-3 * x[0]),
        "late-kink-1": lambda x: 0.7 - 1.35 * np.maximum(x[0] - 0.6, 0),
        "chirp-1": lambda x: 0.5 + 0.3 * np.sin(3 / (x[0] + 0.25)),
        "parabola-1": lambda x: 0.85 - 2.2 * (x[0] - 0.55) ** 2,
        "cubic-1": lambda x: expit(20 * (x[0] - 0.15) * (x[0] - 0.5) * (x[0] - 0.9)),
        "interaction-2": lambda x: expit(3 * x[0] - 2 + 5 * (x[0] - 0.5) * (x[1] - 0.5)),
        "additive-2": lambda x: expit(2 * np.sin(5 * x[0]) + 2 * x[1] ** 2 - 1),
        "curved-edge-2": lambda x: expit(12 * (x[1] - 0.3 - 0.5 * x[0] ** 2)),
        "pit-2": lambda x: (
            0.7 - 0.55 * np.exp(-((x[0] - 0.7) ** 2) / 0.02 - (x[1] - 0.3) ** 2 / 0.08)
        ),
        "plane-2": lambda x: 0.15 + 0.3 * x[0] + 0.4 * x[1],
        "scaled-rise-2": lambda x: ndtr(4 * (x[0] - 0.5)) * (0.4 + 0.5 * x[1]),
        "rings-2": lambda x: 0.5 + 0.3 * np.cos(9 * _distance(x, (0.2, 0.2))),
        "additive-wave-3": lambda x: expit(
            1.5 * np.sin(6 * x[0]) + 6 * (x[1] - 0.5) ** 2 - 1 + x[2]
        ),
        "linear-3": lambda x: expit(2 * x[0] - 3 * x[1] + x[2]),
        "fold-3": lambda x: 0.2 + 0.5 * np.abs(x[0] + x[1] - x[2] - 0.5),
        "pair-and-wave-3": lambda x: expit(8 * (x[0] - 0.5) * (x[1] - 0.5) + np.sin(5 * x[2])),
        "twist-3": lambda x: 0.5 + 0.35 * np.sin(4 * x[0] + 3 * x[1] * x[2]),
        "blob-3": lambda x: (
            0.15
            + 0.7 * np.exp(-6 * (x[0] - 0.3) ** 2 - 8 * (x[1] - 0.7) ** 2 - 2 * (x[2] - 0.5) ** 2)
        ),
    }.items()
)

# The same with many features.
LATER_MANY = tuple(
    Function(name, int(name.rsplit("-", 1)[1]), of)
    for name, of in {
        "waves-4": lambda x: expit(1.5 * np.sin(5 * x[0]) + 1.5 * np.cos(6 * x[1]) + x[2] - x[3]),
        "hill-4": lambda x: 0.15 + 0.7 * np.exp(-2 * ((x - 0.4) ** 2).sum(axis=0)),
        "pairs-5": lambda x: expit(
            7 * (x[0] - 0.5) * (x[1] - 0.5) - 6 * (x[2] - 0.5) * x[3] + x[4]
        ),
        "parabolas-6": lambda x: expit(4 * ((x - 0.5) ** 2).sum(axis=0) - 2),
        "edge-6": lambda x: np.where(x[0] + x[1] + x[2] > 1.6, 0.8, 0.35),
        "rises-8": lambda x: expit(1.2 * np.tanh(4 * (x - 0.5)).sum(axis=0)),
        "radial-8": lambda x: 0.2 + 0.6 * expit(8 * (_distance(x, (0.5,) * 8) - 0.8)),
        "linear-12": lambda x: expit(np.linspace(-3, 3, 12) @ (x - 0.5)),
        "wave-and-noise-15": lambda x: 0.5 + 0.4 * np.sin(7 * x[3]),
        "sparse-20": lambda x: expit(4 * x[1] - 6 * (x[7] - 0.3) ** 2 + 2 * np.sin(5 * x[12]) - 2),
    }.items()
)

ALL = (*FUNCTIONS, *NEW, *FRESH, *ROUGH)
KINDS = {
    "smooth": FUNCTIONS,
    "new": NEW,
    "fresh": FRESH,
    "rough": ROUGH,
    "uneven": UNEVEN,
    "many": MANY,
    "later": LATER,
    "later-many": LATER_MANY,
}
