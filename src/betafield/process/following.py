"""How far the others move when a trial leaves the process: windows would otherwise see it.

The residuals of the other trials are those of a process that has seen trial i. Without it f moves
by −C_ij g_i/(1 − v w_i) at j, C the joint posterior covariance of f, so Σg over a window gains

    g_i/(1 − v w_i) · Σ_{j≠i in the window} a_j C_ij,   a_j = n_j (dq/dπ)² m(1−m) (dπ/df)/(q(1−q)).

Leaving this out, or bounding it, lets the left-out outcome leak into its own score. With few places
the sum is taken as it stands; with many, as Σ a_j times the mean of C over the window's coarse
cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from betafield.process import linear
from betafield.process.design import matrix
from betafield.process.fit import Fit
from betafield.process.ladder import UNIT, paired_sums, units, window_sums
from betafield.process.leaving import LEAST, LeftOut, joint_covariance
from betafield.process.likelihood import polynomial, read, success
from betafield.process.rows import Rows, cells

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

# Places up to which pairs are looked at one by one, and queries at a time.
FEW, BLOCK = 4_000, 250


class Pull(NamedTuple):
    """What pairs need: φ̃ of the places, and per place a, and g/(1 − vw) by outcome."""

    P: Floats
    follow: Floats
    after_success: Floats
    after_failure: Floats
    leverages: Floats


def follows(fit: Fit, rows: Rows, sample: Index, stretches: tuple[Floats, ...]) -> list[LeftOut]:
    """Return, per stretch, how far Σg of every window moves when a trial of a sampled row leaves.

    Shapes (sample, widths), by how the trial had ended.
    """
    pull = _pull(fit, rows)
    turned = linear.product(pull.P[sample], joint_covariance(fit))
    summed = _pairs if len(rows.x) <= FEW else _coarse
    own = pull.leverages[sample] * pull.follow[sample] / rows.n[sample]
    return [_ended(summed(turned, pull, rows, sample, s), own, pull, sample) for s in stretches]


def followed(fit: Fit, rows: Rows, f: Floats) -> tuple[Floats, Floats, Floats]:
    """Return score and information of rows on the link's scale, and a, how scores follow f."""
    link = fit.problem.link
    reading = read(f, rows, link)
    p, rise = link.rise(f)
    _, slope, _ = polynomial(rows.context, p, 1.0 - p)
    s = success(f, rows.context, link)
    follow = rows.n * slope**2 * p * (1.0 - p) * rise / (s.q * s.rest)
    return reading.score, reading.information, follow


def _pull(fit: Fit, rows: Rows) -> Pull:
    P = matrix(fit.mode.basis, rows.x)
    f = np.ascontiguousarray(linear.product(P, fit.mode.b[:, None])[:, 0])
    _, information, follow = followed(fit, rows, f)
    s = success(f, rows.context, fit.problem.link)
    v = (linear.product(P, joint_covariance(fit)) * P).sum(axis=1)
    pulled = s.ratio / np.maximum(1.0 - v * information / rows.n, LEAST)
    return Pull(P, follow, pulled * s.rest, -pulled * s.q, v)


def _ended(total: Floats, own: Floats, pull: Pull, sample: Index) -> LeftOut:
    others = total - own[:, None]
    return LeftOut(
        others * pull.after_success[sample, None], others * pull.after_failure[sample, None]
    )


def _pairs(turned: Floats, pull: Pull, rows: Rows, sample: Index, stretch: Floats) -> Floats:
    """Return Σ a_j C_ij over the places of every window, pair by pair."""
    others = np.ascontiguousarray(pull.P.T)
    parts = []
    for start in range(0, len(sample), BLOCK):
        some = slice(start, start + BLOCK)
        values = linear.product(turned[some], others) * pull.follow
        parts.append(paired_sums(rows.x[sample[some]], rows.x, values, stretch))
    return np.concatenate(parts)


def _coarse(turned: Floats, pull: Pull, rows: Rows, sample: Index, stretch: Floats) -> Floats:
    """Return Σ a_j over the window times the mean of C over its coarse cells."""
    exact = (
        window_sums(rows.x[sample], rows.x, units(pull.follow[:, None]), stretch)[:, :, 0] / UNIT
    )
    _, which = np.unique(cells(rows.x), return_inverse=True)
    total = np.asarray(np.bincount(which, pull.follow), dtype=np.float64)
    P = np.stack([np.bincount(which, pull.follow * p) for p in pull.P.T]) / total
    x = np.stack([np.bincount(which, pull.follow * a) for a in rows.x.T], axis=1) / total[:, None]
    C = linear.product(turned, P) * total
    numerator = paired_sums(rows.x[sample], x, C, stretch)
    weight = window_sums(rows.x[sample], x, units(total[:, None]), stretch)[:, :, 0] / UNIT
    nearest = None if stretch.min() == 0.0 else pull.leverages[sample]
    return np.asarray(exact * _filled(numerator, weight, nearest))


def _filled(numerator: Floats, weight: Floats, nearest: Floats | None) -> Floats:
    """Return means of C; windows that hold no cell have their own point's, or the next wider's."""
    ratio = np.where(weight > 0.0, numerator / np.where(weight > 0.0, weight, 1.0), np.nan)
    for b in range(ratio.shape[1] - 2, -1, -1):
        missing = np.isnan(ratio[:, b])
        ratio[missing, b] = (ratio[:, b + 1] if nearest is None else nearest)[missing]
    return ratio
