"""What every benchmark measures on: uniform points, a smooth probability, the width by theory."""

import numpy as np
from numpy.typing import NDArray

from betafield import SmoothBetaClassifier

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHUNK = 1 << 16


def probability(X: Floats) -> Floats:
    """A smooth function of the point, between 0.1 and 0.9."""
    return 0.5 + 0.4 * np.cos(3.0 * X.sum(axis=1))


def points(n: int, d: int, seed: int = 1) -> Floats:
    """Uniform points of [0, 1]^d, in no order."""
    return np.random.default_rng(seed).random((n, d))


def trials(t: int, d: int, seed: int = 0) -> tuple[Floats, Ints]:
    """Trials at uniform points; made in chunks, to hold no more memory than X and y."""
    rng = np.random.default_rng(seed)
    X, y = rng.random((t, d)), np.empty(t, dtype=np.int64)
    for start in range(0, t, CHUNK):
        part = slice(start, start + CHUNK)
        y[part] = rng.random(len(y[part])) < probability(X[part])
    return X, y


def theory_model(d: int) -> SmoothBetaClassifier:
    """The estimator as measured: bounds [0, 1]^d, so that scaled units are the data's own."""
    return SmoothBetaClassifier(bandwidth="theory", bounds=[(0.0, 1.0)] * d, n_jobs=2)


def theory_width(t: int, d: int) -> float:
    """Δ = t^(−1/(d+2)), for L = 1 in scaled units."""
    return float(t ** (-1 / (d + 2)))


def window_counts(model: SmoothBetaClassifier, X: Floats) -> tuple[Ints, Ints]:
    """Trials and successes that a posterior rests on, from its mean and variance.

    Beta(1 + S, 1 + n − S) has mean m and variance v with n + 2 = m(1 − m)/v − 1, S + 1 = m(n + 2).
    """
    posterior = model.posterior(X)
    m, v = posterior.mean(), posterior.var()
    total = m * (1 - m) / v - 1
    return np.rint(total - 2).astype(np.int64), np.rint(m * total - 1).astype(np.int64)
