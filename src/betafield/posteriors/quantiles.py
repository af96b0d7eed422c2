"""Quantiles without a closed form: those of mixtures, and of polynomials that turn.

The equation is g(u) = 0, where g is the log ratio of the smaller tail to the required tail, with
the sign that makes it increasing, and u are log-odds, in which small probabilities and their
complements are equally precise. It is solved by Chandrupatla's method: inverse quadratic
interpolation if three points allow it, and bisection otherwise.
"""

from typing import NamedTuple

import numpy as np
from scipy import special
from scipy.optimize import elementwise

from betafield.posteriors.base import Floats, Posterior, Rows

_EPS = float(np.finfo(np.float64).eps)
# Log-odds to full relative precision, or to ε near 0; or the tail as far as rounding allows.
_TOLERANCES = {"xrtol": 4.0 * _EPS, "xatol": _EPS, "fatol": 1e-14}
_SMALLEST = 5e-324
# Bound of the logarithms of tails.
_FAR = 800.0


def solved_quantiles(post: Posterior, q: Floats, low: Floats, high: Floats) -> Floats:
    """Return points with P(π ≤ p) = q, all of shape (l, m), between `low` and `high`."""
    result = np.where(q == 1.0, high, low)
    at = np.flatnonzero((q > 0.0) & (q < 1.0) & (low < high))
    # A distribution with all its mass at one value has a step there, which may be the end of a
    # bracket; and if floats are too coarse for the required tail, the bracket is two neighbouring
    # floats.
    before = np.nextafter(high.flat[at], 0.0)
    search = _Search(post, q, low.flat[at], before)
    found = elementwise.find_root(
        search.error,
        (_log_odds(low.flat[at]), _log_odds(before)),
        args=(np.arange(at.size), at),
        tolerances=_TOLERANCES,
    )
    # Without a sign change, the quantile is at one of the ends.
    end = np.where(found.f_bracket[1] < 0.0, high.flat[at], low.flat[at])
    inside = search.point(np.where(found.success, found.x, 0.0), np.arange(at.size))
    result.flat[at] = np.where(found.success, inside, end)
    return result


def _log_odds(p: Floats) -> Floats:
    """Return finite log-odds: 0 and 1 are replaced by the nearest floats inside."""
    return np.asarray(special.logit(p.clip(_SMALLEST, 1.0 - 0.5 * _EPS)))


class _Search(NamedTuple):
    """Quantiles at levels q (l, m), and the ends of some brackets."""

    post: Posterior
    q: Floats
    low: Floats
    high: Floats

    def point(self, u: Floats, number: Rows) -> Floats:
        """Return probabilities; at the ends of brackets they equal these ends exactly."""
        low, high = self.low[number], self.high[number]
        # SciPy's expit is 0 for subnormal results.
        inside = np.exp(-np.logaddexp(0.0, -u)).clip(low, high)
        return np.select([u <= _log_odds(low), u >= _log_odds(high)], [low, high], inside)

    def error(self, u: Floats, number: Rows, at: Rows) -> Floats:
        """Return g."""
        p, level = self.point(u, number), self.q.flat[at]
        tail, upper = np.empty(p.shape), level > 0.5
        for above in (False, True):
            chosen = np.flatnonzero(upper == above)
            if chosen.size:
                tail[chosen] = self._tails(p[chosen], at[chosen], above)
        with np.errstate(divide="ignore", over="ignore"):  # clipped right away
            error = np.log(tail / np.where(upper, 1.0 - level, level)).clip(-_FAR, _FAR)
        return np.where(upper, -error, error)

    def _tails(self, p: Floats, at: Rows, above: bool) -> Floats:
        """Return tails; each row is queried once for all its points, to save time."""
        line, row = np.divmod(at, self.q.shape[1])
        rows, column = np.unique(row, return_inverse=True)
        post = self.post if len(rows) == len(self.post) else self.post[rows]
        points = np.empty((len(self.q), len(rows)))
        points[:, column] = p
        points[line, column] = p
        tails = post.prob_above(points) if above else post.cdf(points)
        return np.asarray(tails[line, column])
