"""Monotone pieces of polynomials f(π) in Bernstein form, and where f crosses a value.

Points are represented as log-odds u = log(π/(1−π)), in which small probabilities and their
complements are equally precise. [0, 1] is divided into pieces on which f is monotone: by Descartes'
rule for the Bernstein form, a polynomial has no root in (0, 1) if its coefficients do not change
sign, and exactly one if they change sign once.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special
from scipy.optimize import elementwise

from betafield._rows import distinct
from betafield.bernstein import derivative, halves, scaled_at_log_odds, value_at_log_odds

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

# Log-odds beyond which the probability rounds to 0 or 1.
ZERO, ONE = -750.0, 40.0
_EPS = float(np.finfo(np.float64).eps)
# Differences of coefficients up to this may be rounding errors, as from degree elevation.
_NOISE = 64.0 * _EPS
# Turns closer together than this many halvings of [0, 1] cancel, to full precision.
_MOST_HALVINGS = 24
_SAME_TURN = 1e-12


class Pieces(NamedTuple):
    """Ends (in log-odds) of the pieces on which f is monotone, and f there, both (m, J + 1).

    They go from π = 0 to π = 1; rows with fewer pieces are padded with empty ones on the right.
    """

    ends: Floats
    values: Floats

    def sides(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Left and right ends of the pieces, and f at each."""
        return self.ends[:, :-1], self.ends[:, 1:], self.values[:, :-1], self.values[:, 1:]


def monotone_pieces(coefficients: Floats) -> Pieces:
    """Return the pieces of the polynomials (m, p + 1)."""
    kinds, which = distinct(coefficients)
    ends = _without_duplicates(_with_both_ends(*_possible_turns(kinds), len(kinds)))
    values = _values_at_ends(kinds, ends)
    # A candidate at which f keeps rising, or keeps falling, is not a turn.
    steps = np.diff(values)
    ends[:, 1:-1][steps[:, :-1] * steps[:, 1:] > 0.0] = ONE
    ends.sort(axis=1)
    ends = ends[:, : 1 + max(1, int((ends < ONE).sum(axis=1).max(initial=0)))]
    return Pieces(ends[which], _values_at_ends(kinds, ends)[which])


def _values_at_ends(coefficients: Floats, ends: Floats) -> Floats:
    values = value_at_log_odds(coefficients[:, None], ends)
    values = np.where(ends == ZERO, coefficients[:, :1], values)
    return np.where(ends == ONE, coefficients[:, -1:], values)


def _log_odds(p: Floats) -> Floats:
    return np.asarray(special.logit(p).clip(ZERO, ONE))


def _with_both_ends(row: Rows, u: Floats, rows: int) -> Floats:
    """Sort the points of each row between 0 and 1, padded with ones."""
    order = np.lexsort((u, row))
    row, u = row[order], u[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    ends = np.full((rows, 3 + int(rank.max(initial=-1))), ONE)
    ends[:, 0] = ZERO
    ends[row, 1 + rank] = u
    return ends


def _without_duplicates(ends: Floats) -> Floats:
    near = np.diff(special.expit(ends)) <= _SAME_TURN
    ends[:, 1:][near] = ONE
    return np.sort(ends, axis=1)


def _possible_turns(coefficients: Floats) -> tuple[Rows, Floats]:
    """Rows and log-odds of all points at which f may turn, and possibly of some more.

    By Descartes' rule for the Bernstein form, a polynomial has no root in (0, 1) if its
    coefficients do not change sign, and exactly one if they change sign once; all others are halved
    by de Casteljau's algorithm.
    """
    slopes = derivative(coefficients)
    rounding = _NOISE * coefficients.max(axis=1, keepdims=True) * slopes.shape[1]
    slopes = np.where(np.abs(slopes) <= rounding, 0.0, slopes)
    row, local = np.arange(len(slopes)), slopes
    left, right = np.zeros(len(row)), np.ones(len(row))
    rows, turns = [row[:0]], [left[:0]]
    for _ in range(_MOST_HALVINGS):
        changes, first_sign = _sign_changes(local)
        one, more = changes == 1, changes > 1
        rows += [row[one], row[more]]
        middle = 0.5 * (left[more] + right[more])
        turns += [
            _turn(slopes[row[one]], left[one], right[one], first_sign[one]),
            _log_odds(middle),
        ]
        row, local = np.tile(row[more], 2), np.concatenate(halves(local[more]))
        left, right = np.append(left[more], middle), np.append(middle, right[more])
    return np.concatenate(rows), np.concatenate(turns)


def _sign_changes(coefficients: Floats) -> tuple[npt.NDArray[np.intp], Floats]:
    """How often the sign changes along each row, ignoring zeros, and the first sign."""
    signs = np.sign(coefficients)
    for k in range(1, signs.shape[1]):
        signs[:, k] = np.where(signs[:, k] == 0.0, signs[:, k - 1], signs[:, k])
    changes = (signs[:, 1:] * signs[:, :-1] < 0.0).sum(axis=1)
    # The last sign is known, so the number of changes gives the first one.
    return changes, signs[:, -1] * (-1.0) ** changes


def _turn(slopes: Floats, left: Floats, right: Floats, first_sign: Floats) -> Floats:
    """Log-odds of the only root of f' between two points."""
    return _root(
        lambda u, at: scaled_at_log_odds(slopes[at], u),
        _log_odds(left),
        _log_odds(right),
        first_sign,
        -first_sign,
    )


def crossings(pieces: Pieces, coefficients: Floats, q: Floats) -> Floats:
    """Log-odds in each piece at which f crosses q, or the end that puts all or none below q."""
    left, right, start, end = pieces.sides()
    level = q[:, None]
    at_right = (start <= end) == (np.maximum(start, end) <= level)
    cuts = np.where(at_right, right, left)
    row, piece = np.nonzero((np.minimum(start, end) < level) & (level < np.maximum(start, end)))
    coefficients, goal = coefficients[row], q[row]
    before, after = start[row, piece] - goal, end[row, piece] - goal
    # f is nowhere steeper than this, so it cannot cross q within some distance of the ends.
    steepest = 2.0 * np.abs(derivative(coefficients)).max(axis=1, initial=0.0)
    low = special.logit(special.expit(left[row, piece]) + np.abs(before) / steepest)
    high = -special.logit(special.expit(-right[row, piece]) + np.abs(after) / steepest)
    cuts[row, piece] = _root(
        lambda u, at: value_at_log_odds(coefficients[at], u) - goal[at],
        np.maximum(low, left[row, piece]),
        np.minimum(high, right[row, piece]),
        before,
        after,
    )
    return cuts


def _root(
    function: Callable[[Floats, Rows], Floats],
    low: Floats,
    high: Floats,
    at_low: Floats,
    at_high: Floats,
) -> Floats:
    """Solve function = 0 between `low` and `high`, at which it is known and has opposite signs.

    `function` is called with points and the indices of their equations.
    """

    def known(u: Floats, at: Rows) -> Floats:
        ends = [u <= low[at], u >= high[at]]
        return np.select(ends, [at_low[at], at_high[at]], function(u, at))

    return np.asarray(elementwise.find_root(known, (low, high), args=(np.arange(len(low)),)).x)
