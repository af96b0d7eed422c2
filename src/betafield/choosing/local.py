"""Local polynomials: what the moments of a window say about the probability at its centre.

Outcomes s ∈ {0, 1} of the window's trials are fitted by a polynomial of z = (x − q)/Δ, with
monomials φ up to a degree, a small ridge λ on all of them but the constant:

    G = Σ w φ φᵀ + λ diag(0, 1, …, 1),    p̂ = (G⁻¹ Σ s φ)₀,    h = (G⁻¹)₀₀.

p̂ is a weighted mean of the outcomes with Σ weights² = h, the ridge aside, so it is worth
n_eff = 1/h trials, never more than the window's, and the posterior is
Beta(α + n_eff p̂, β + n_eff (1 − p̂)). Degree 0 is the share of successes, and n_eff = n.

h is also the leverage of a trial at q itself. Without that trial the fit is (p̂ − h s)/(1 − h),
and is worth (1 − h)/h trials: leaving one out costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield._jit import kernel
from betafield.windows.moments import Monomials, monomials

if TYPE_CHECKING:
    from betafield.windows import Forest
    from betafield.windows.moments import Weigh

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

RIDGE = 0.1
# Points at a time: moments may take kilobytes a point.
BLOCK = 8192
# Places beyond which trials are gathered in cells, and CELLS^(1/(d+1)) of them to a radius.
GATHERED, CELLS = 1 << 17, 10**3


class Fits(NamedTuple):
    """Local fits at m points, for W widths and D degrees.

    Parameters
    ----------
    share : array of shape (m, W, D)
        p̂, as fitted: it may leave [0, 1].
    leverage : array of shape (m, W, D)
        h; 1 where there are no trials.
    held : array of shape (m, W)
        Trials in the window.
    """

    share: Floats
    leverage: Floats
    held: Floats

    def estimate(self) -> tuple[Floats, Floats]:
        """Return p̂ within [0, 1], and n_eff = 1/h, at most the number of trials."""
        return self.share.clip(0.0, 1.0), np.minimum(1.0 / self.leverage, self.held[..., None])

    def without(self, own: Floats, won: float) -> tuple[Floats, Floats]:
        """Return what `estimate` would without a trial at the point itself, of weight `own`.

        `won` is 1 if it was a success, 0 if not.
        """
        own = own[:, None, None]
        left = 1.0 - np.minimum(self.leverage * own, 1.0)
        alone = left < 1e-9
        safe = np.where(alone, 1.0, left)
        share = (self.share - self.leverage * own * won) / safe
        worth = np.where(alone, 0.0, left / self.leverage)
        most = np.maximum(self.held[..., None] - own, 0.0)
        return share.clip(0.0, 1.0), np.minimum(worth, most)


def fits(moments: Floats, radii: Floats, d: int, degrees: tuple[int, ...]) -> Fits:
    """Return the local fits of windows with these moments (m, W, c), as `windows.moments` has them.

    The moments are those for the highest of the degrees.
    """
    kinds = monomials(d, max(degrees))
    m, w, _ = moments.shape
    share, leverage = np.empty((m, w, len(degrees))), np.empty((m, w, len(degrees)))
    for k, degree in enumerate(degrees):
        products = _products(d, degree, max(degrees))
        _fit(moments, radii, kinds, products, RIDGE, share[..., k], leverage[..., k])
    return Fits(share, leverage, moments[..., 0])


def totals(moments: Floats, d: int, degree: int) -> tuple[Floats, Floats]:
    """Return the trials and the successes of windows with these moments (m, c)."""
    return moments[:, 0], moments[:, len(monomials(d, degree).exponents)]


def gathered(windows: Forest, narrowest: float) -> Forest:
    """Return windows for local polynomials: of many trials, those of cells taken together.

    A window then ends where cells do, which are small beside the narrowest one: its polynomial
    is that of other trials at its border, not of worse ones.
    """
    if windows.size <= GATHERED:
        return windows
    cells = windows.gathered(cell(narrowest, windows.d))
    return cells if 2 * cells.size <= windows.size else windows


def cell(narrowest: float, d: int) -> float:
    """Return the size of cells that are small beside the narrowest window."""
    return float(narrowest / CELLS ** (1.0 / (d + 1)))


def estimates(
    windows: Forest,
    queries: Floats,
    widths: Floats,
    degrees: Ints,
    weigh: Weigh,
    n_jobs: int | None = None,
) -> tuple[Floats, Floats]:
    """Return p̂ and n_eff, (m, k): at each of the m queries for each of k widths and degrees."""
    radii, which = np.unique(widths, return_inverse=True)
    powers, kind = np.unique(degrees, return_inverse=True)
    share, worth = np.empty((len(queries), len(widths))), np.empty((len(queries), len(widths)))
    for start in range(0, len(queries), BLOCK):
        rows = slice(start, start + BLOCK)
        sums = windows.moments(queries[rows], radii, int(powers[-1]), weigh, n_jobs)
        found = fits(sums, radii, windows.d, tuple(powers.tolist())).estimate()
        share[rows], worth[rows] = (part[:, which, kind] for part in found)
    return share, worth


def _products(d: int, degree: int, highest: int) -> Ints:
    """Return (p, p): which monomial, up to twice the highest degree, the product of two is."""
    kinds = monomials(d, highest)
    number = {tuple(e): i for i, e in enumerate(kinds.exponents.tolist())}
    basis = [e for e in kinds.exponents.tolist() if sum(e) <= degree]
    return np.array(
        [[number[tuple(a + b for a, b in zip(e, f, strict=True))] for f in basis] for e in basis]
    )


@kernel
def _fit(
    moments: Floats,
    radii: Floats,
    kinds: Monomials,
    products: Ints,
    ridge: float,
    share: Floats,
    leverage: Floats,
) -> None:
    n, p = kinds.exponents.shape[0], products.shape[0]
    factor, row, scale = np.empty((p, p)), np.empty(p), np.empty(n)
    for w in range(radii.size):
        for e in range(n):
            scale[e] = radii[w] ** -float(kinds.exponents[e].sum())
        for i in range(moments.shape[0]):
            sums = moments[i, w]
            share[i, w], leverage[i, w] = 0.5, 1.0
            if sums[0] > 0.0:
                for a in range(p):
                    for b in range(a + 1):
                        e = products[a, b]
                        factor[a, b] = sums[e] * scale[e]
                    if a > 0:
                        factor[a, a] += ridge
                share[i, w], leverage[i, w] = _solved(factor, row, sums, scale)


@kernel
def _solved(factor: Floats, row: Floats, sums: Floats, scale: Floats) -> tuple[float, float]:
    """Return a polynomial's value at the point, and its leverage there.

    They are those of a constant where the arithmetic has no other: there are so many trials that
    the ridge is nothing beside them, or the width or a distance is too large or small to be raised
    to a power.
    """
    n = scale.size
    if _first_of_inverse(factor, row):
        value = 0.0
        for a in range(row.size):
            value += row[a] * sums[n + a] * scale[a]
        if np.isfinite(value) and 0.0 < row[0] < np.inf:
            return value, row[0]
    return sums[n] / sums[0], 1.0 / sums[0]


@kernel
def _first_of_inverse(factor: Floats, row: Floats) -> bool:
    """Write the first row of the inverse of a symmetric matrix, whose lower half is overwritten.

    Returns whether the matrix is positive definite, in floating point too.
    """
    p = row.size
    for a in range(p):
        for b in range(a + 1):
            value = factor[a, b]
            for k in range(b):
                value -= factor[a, k] * factor[b, k]
            if a == b and not value > 0.0:
                return False
            factor[a, b] = np.sqrt(value) if a == b else value / factor[b, b]
    for a in range(p):
        value = 1.0 if a == 0 else 0.0
        for k in range(a):
            value -= factor[a, k] * row[k]
        row[a] = value / factor[a, a]
    for a in range(p - 1, -1, -1):
        value = row[a]
        for k in range(a + 1, p):
            value -= factor[k, a] * row[k]
        row[a] = value / factor[a, a]
    return True
