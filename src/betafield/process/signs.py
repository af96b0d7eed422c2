"""Evidence for a monotone field: its posterior against its prior probability.

The slope of f along a feature is evaluated at a few points z_v, s_v = ∂f(z_v)/∂x = c_v′b, in units
of its prior standard deviation. A field counts as monotone, softly, if all slopes have the right
sign,

    P(monotone | b) = Π_v Φ(s_v/ν),   ν = .02,

which is averaged over b by expectation propagation (EP): over b ~ N(0, I) before the trials, and
over b ~ N(b̂, M₀⁻¹) after them. The evidence for monotonicity is log P(mono | y) − log P(mono). It
is positive if trials support the direction, about 0 if they say nothing, and negative if they
contradict it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr

from betafield.process import linear
from betafield.process.basis import Basis
from betafield.process.design import functions, without_effects
from betafield.process.laplace import Mode
from betafield.process.pooled import Blocked

Floats = npt.NDArray[np.float64]

# ν; the number of points if there is one feature; with several, points along the feature and
# locations across the others.
SOFTNESS, ALONE, ALONG, ACROSS = 0.02, 24, 9, 7
# Distance of points from the border.
MARGIN = 0.03
# EP: most rounds, damping (the share of a new site that is taken), and the change at which to stop.
ROUNDS, TAKEN, SETTLED = 30, 0.8, 1e-2
# Added to the diagonal of covariances, relative to its mean.
JITTER = 1e-8
# Processes with less weight relative to the heaviest are left out.
NEGLIGIBLE = 0.02
HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


def evidence(modes: Sequence[Mode], shares: Floats, feature: int, sign: int) -> float:
    """Return log P(mono | y) − log P(mono) along a feature, averaged over weighted processes.

    Parameters
    ----------
    modes : sequence of Mode
        Processes at several hyper-parameters, because the answer depends on how smooth they are.
    shares : array with one number per process
        Their weights; those with little weight are left out.
    feature : int
    sign : {1, -1}
        The direction of the field.
    """
    kept = [i for i, share in enumerate(shares) if share > NEGLIGIBLE * shares.max()]
    each = np.array([_evidence(modes[i], feature, sign) for i in kept])
    most, w = float(each.max()), shares[kept] / shares[kept].sum()
    return most + math.log(float((w * np.exp(each - most)).sum()))


def _evidence(mode: Mode, feature: int, sign: int) -> float:
    basis = mode.basis
    m, d = basis.J.shape
    if not basis.J[:, feature].any():
        return 0.0  # there is no slope, so no evidence on its sign
    C = sign * slopes(basis, spots(d, feature), feature)
    C /= math.sqrt(float((C * C).sum(axis=1).mean()))
    curvature = mode.curvature
    # With levels, only the shared field is used: its block of M₀⁻¹ is the complement's inverse.
    whole = curvature.complement if isinstance(curvature, Blocked) else curvature
    S = whole.inverse()[:m, :m]
    after = log_all_positive(_times(C, mode.b[:m, None])[:, 0], _times(_times(C, S), _turned(C)))
    return after - log_all_positive(np.zeros(len(C)), _times(C, _turned(C)))


def spots(d: int, feature: int) -> Floats:
    """Return points of the unit box at which slopes along a feature are evaluated, shape (v, d)."""
    if d == 1:
        return np.linspace(MARGIN, 1.0 - MARGIN, ALONE)[:, None]
    # The others are on a low-discrepancy lattice: powers of the root of g^d = g + 1.
    g = 2.0
    for _ in range(30):
        g = (1.0 + g) ** (1.0 / d)
    steps = g ** -np.arange(1.0, d)
    others = MARGIN + (1.0 - 2.0 * MARGIN) * ((0.5 + np.outer(np.arange(ACROSS), steps)) % 1.0)
    along = np.linspace(MARGIN, 1.0 - MARGIN, ALONG)
    points = np.insert(np.repeat(others, ALONG, axis=0), feature, 0.0, axis=1)
    points[:, feature] = np.tile(along, ACROSS)
    return points


def slopes(basis: Basis, x: Floats, feature: int) -> Floats:
    """Return ∂Φ̃/∂x along a feature, within the unit box and without levels, shape (v, m)."""
    cosines = without_effects(basis)
    if basis.kinds:
        others = [a for a in range(len(basis.kinds)) if a != feature]
        return functions(basis, x, others, basis.J[:, others]) * slopes(
            _along(basis, feature), x[:, [feature]], 0
        )
    angles, rate = basis.angles(x), np.pi / (1.0 + 2.0 * basis.margin[feature])
    out = np.tile(cosines.root, (len(x), 1))
    for a in range(x.shape[1]):
        j = basis.J[:, a]
        turned = np.outer(angles[:, a], j)
        out *= -rate * j * np.sin(turned) if a == feature else np.cos(turned)
    return out


def _along(basis: Basis, feature: int) -> Basis:
    """Return the functions of one feature, which is a line, with the √D of the whole basis."""
    own = [feature]
    return without_effects(basis)._replace(margin=basis.margin[own], J=basis.J[:, own], kinds=())


def log_all_positive(mean: Floats, covariance: Floats) -> float:
    """Return log E Π_v Φ(s_v/ν) for s ~ N(mean, covariance), by expectation propagation.

    Examples
    --------
    Three independent signs are all positive with probability 1/8, certain ones with probability 1:

    >>> import numpy as np
    >>> round(log_all_positive(np.zeros(3), np.eye(3)), 3)
    -2.079
    >>> abs(log_all_positive(np.full(3, 9.0), np.eye(3))) < 1e-9
    True
    """
    K = covariance + JITTER * float(np.trace(covariance)) / len(mean) * np.eye(len(mean))
    S, m = K.copy(), mean.copy()
    n = len(m)
    tau, eta, log_z, centre, spread = (np.zeros(n) for _ in range(5))
    for _ in range(ROUNDS):
        change = 0.0
        for i in range(n):
            own = float(S[i, i])
            precision = max(1.0 / own - tau[i], 1e-10)
            v, c = 1.0 / precision, (float(m[i]) / own - eta[i]) / precision
            log_z[i], mean_i, var_i = _tilted(c, v)
            new_tau = (1.0 - TAKEN) * tau[i] + TAKEN * max(1.0 / var_i - precision, 1e-9)
            new_eta = (1.0 - TAKEN) * eta[i] + TAKEN * (mean_i / var_i - c * precision)
            step, push = new_tau - tau[i], new_eta - eta[i]
            tau[i], eta[i], centre[i], spread[i] = new_tau, new_eta, c, v
            change = max(change, abs(step) * own)
            column, whole = S[:, i].copy(), 1.0 + step * own
            m += column * ((push - step * float(m[i])) / whole)
            S -= np.multiply.outer(column * (step / whole), column)
        if change < SETTLED:
            break
    return _total(mean, K, (tau, eta), (log_z, centre, spread))


def _tilted(c: float, v: float) -> tuple[float, float, float]:
    """Return log Z, mean and variance of N(c, v) times Φ(s/ν)."""
    wide = math.sqrt(SOFTNESS * SOFTNESS + v)
    z = c / wide
    log_z = float(log_ndtr(z))
    ratio = math.exp(-0.5 * z * z - HALF_LOG_2_PI - log_z)
    var = v - v * v * ratio * (z + ratio) / (wide * wide)
    return log_z, c + v * ratio / wide, max(var, 1e-12 * v)


def _total(
    mean: Floats, K: Floats, sites: tuple[Floats, Floats], cavities: tuple[Floats, Floats, Floats]
) -> float:
    """Return the log normaliser of all sites together."""
    (tau, eta), (log_z, centre, spread) = sites, cavities
    wide, target = 1.0 / tau, eta / tau
    U = linear.factor(K + np.diag(wide))
    away = target - mean
    alone = log_z + 0.5 * np.log(spread + wide) + 0.5 * (centre - target) ** 2 / (spread + wide)
    joint = 0.5 * float((away * linear.solve(U, away)).sum()) + float(np.log(np.diag(U)).sum())
    return float(alone.sum()) - joint


def _times(A: Floats, B: Floats) -> Floats:
    return linear.product(np.ascontiguousarray(A), np.ascontiguousarray(B))


def _turned(A: Floats) -> Floats:
    return np.ascontiguousarray(A.T)
