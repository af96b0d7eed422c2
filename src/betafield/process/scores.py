"""Process and windows of its residuals, weighed by leaving trials out.

Every trial at a sample of places is left out: its own counts are taken off the window, the process
says what it would have without it (`leaving`), and the residuals of the others follow
(`following`). A candidate's score is the log probability of what was seen,

    P = q(expit(logit m₋ + Σg₋/(1/τ + ΣW₋))),

and its weight ∝ prior · e^(score/T): ½ for the process, ½ shared by all windows, T = 4, which keeps
every function within a few hundredths of the better of the two. At most twelve are kept.

The sample is of the rows of lowest hash, as many as say what 2,000 undistorted trials would, at
most 8,000: a trial with a guess rate of ½ says less.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from betafield.process import averages, law, leaving
from betafield.process.fit import Fit, hashes, weights
from betafield.process.following import follows
from betafield.process.ladder import WIDTHS
from betafield.process.laws import Laws
from betafield.process.leaving import LeftOut
from betafield.process.likelihood import polynomial
from betafield.process.residuals import (
    NEVER,
    TAUS,
    Residuals,
    Window,
    columns,
    corrected,
    logit_variance,
    residuals,
    stretches,
    sums,
    variance,
    with_windows,
)
from betafield.process.rows import Rows

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]

# Undistorted trials that the sample is worth, and places at the most, as a multiple.
SAMPLE, MOST = 2_000, 4
# T, components kept, and the least weight beside the heaviest.
TEMPERATURE, KEPT, LEAST = 4.0, 12, 0.01


class Scored(NamedTuple):
    """Candidates with their scores; None is the process alone."""

    candidates: tuple[Window | None, ...]
    scores: Floats


class Blend(NamedTuple):
    """Process and windows, weighed: all that answers need.

    Parameters
    ----------
    fits : tuple of Fit
        The process under each link.
    rows : Rows
        Places, and what the process leaves over there.
    residuals : Residuals
        The latter.
    stretches : tuple of array
        Those that windows refer to.
    windows : tuple of Window or None
        Components kept, the process (None) first.
    weights : array
        They add up to 1.
    """

    fits: tuple[Fit, ...]
    rows: Rows
    residuals: Residuals
    stretches: tuple[Floats, ...]
    windows: tuple[Window | None, ...]
    weights: Floats


def blend(fits: tuple[Fit, ...], rows: Rows) -> Blend:
    """Return processes and windows of their residuals at rows, weighed by leaving trials out."""
    best = fits[int(np.argmax(weights(fits)))]
    left_over = residuals(process_mean(fits, rows.x), rows)
    ways = stretches(best.lengths)
    some = sampled(rows, left_over)
    parts = [leaving.means(f, rows.taken(some)) for f in fits]
    scored = by_trial(rows, left_over, some, leaving.mixed(parts, weights(fits)), ways, best)
    windows, w = weighed(scored)
    return Blend(fits, rows, left_over, ways, windows, w)


def process_mean(fits: tuple[Fit, ...], x: Floats) -> Floats:
    """Return the processes' mean of π."""
    total = np.zeros(len(x))
    for fit, weight in zip(fits, weights(fits), strict=True):
        at = law.latent(law.surface(fit), x)
        total += weight * averages.mean(fit.problem.link, at.mean, np.sqrt(at.narrow))
    return total


def sampled(rows: Rows, left_over: Residuals) -> Index:
    """Return the rows at which trials are left out, sorted."""
    plain = left_over.m * (1.0 - left_over.m)
    order = np.argsort(hashes(rows), kind="stable")
    worth = np.cumsum((left_over.weight / plain)[order])
    enough = int(np.searchsorted(worth, SAMPLE)) + 1
    return np.sort(order[: min(enough, MOST * SAMPLE)])


def by_trial(
    rows: Rows,
    left_over: Residuals,
    sample: Index,
    left: LeftOut,
    ways: tuple[Floats, ...],
    fit: Fit,
) -> Scored:
    """Return the scores of the process and of windows, every trial of the sample left out."""
    some, at = rows.taken(sample), Residuals(*(column[sample] for column in left_over))
    held = columns(left_over.score, left_over.information)
    candidates: list[Window | None] = [None]
    scores = [_score(some, LeftOut(*(np.clip(m, NEVER, 1 - NEVER) for m in left)))]
    for i, moved in enumerate(follows(fit, rows, sample, ways)):
        total = sums(some.x, rows.x, held, ways[i])
        for b in range(len(WIDTHS)):
            W = np.maximum(total.information[:, b] - at.weight, 0.0)
            g1 = total.score[:, b] - (1.0 - at.q) * at.ratio + moved.success[:, b]
            g0 = total.score[:, b] + at.q * at.ratio + moved.failure[:, b]
            for tau in TAUS:
                pi = corrected(left.success, g1, W, tau), corrected(left.failure, g0, W, tau)
                candidates.append(Window(i, b, tau))
                scores.append(_score(some, LeftOut(*pi)))
    return Scored(tuple(candidates), np.array(scores))


def _score(rows: Rows, pi: LeftOut) -> float:
    """Return Σ log P of the rows' trials, for π without a success and without a failure."""
    q1 = polynomial(rows.context, pi.success, 1.0 - pi.success)[0]
    q0 = polynomial(1.0 - rows.context, pi.failure, 1.0 - pi.failure)[0]
    n, k = rows.n, rows.k
    return float(np.sum(xlogy(k, np.maximum(q1, NEVER)) + xlogy(n - k, np.maximum(q0, NEVER))))


def weighed(
    scored: Scored, temperature: float = TEMPERATURE
) -> tuple[tuple[Window | None, ...], Floats]:
    """Return the candidates that are kept, the process first, and their weights."""
    raised = (scored.scores - scored.scores.max()) / temperature
    w = np.exp(raised)
    w[0] *= len(w) - 1
    order = np.argsort(-w, kind="stable")[:KEPT]
    kept = np.union1d([0], order[w[order] > LEAST * w[order[0]]])
    return tuple(scored.candidates[i] for i in kept), np.asarray(w[kept] / w[kept].sum())


def answers(blend: Blend, x: Floats) -> Laws:
    """Return what process and windows believe of π at points."""
    laws = law.laws(blend.fits, x)
    m = process_mean(blend.fits, x)
    v = logit_variance(laws, m)
    held = columns(blend.residuals.score, blend.residuals.information)
    means, variances = [], []
    for window in blend.windows[1:]:
        assert window is not None
        stretch = blend.stretches[window.stretch]
        g, W = (part[:, window.width] for part in sums(x, blend.rows.x, held, stretch))
        means.append(corrected(m, g, W, window.tau))
        variances.append(variance(v, W, window.tau, bool(stretch.min() > 0.0)))
    return with_windows(laws, means, variances, blend.weights)
