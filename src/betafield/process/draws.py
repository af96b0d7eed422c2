"""Fields drawn from the joint posterior, equally weighted.

A pool of coefficients is drawn from the members of the posterior (`ensemble`), in proportion to
their weights, with importance weights for the exact likelihood of the rows (`sampling`); then the
pool is resampled systematically.

Windows of residuals (`residuals`) are mixed in per point, as in the posterior at each point: a draw
has a uniform number u, and at a point it belongs to the component at which the cumulative weights
there reach u. In a window, with λ the log-odds of the process's draw, linearised about its mean,

    logit π = c + (1 − β)(λ − logit m) + √((1 − β) τ) e(x),

where e is a smooth random field correlated over the width of the window (`noise`). Beyond the
domain a draw returns to the base rate as in `law`, f ← c₀ + ρ (f − c₀) + √(1 − ρ²) σ e(x).

Every random number is a function of the seed, not of the points: fields are the same whichever
points are queried, together or separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from betafield._locks import cached
from betafield.process import averages, law, linear
from betafield.process.design import pooled, product
from betafield.process.ensemble import Member, shares
from betafield.process.finding import inside
from betafield.process.found import Window
from betafield.process.model import Beliefs, Smooth
from betafield.process.noise import Noise, Seed
from betafield.process.pooled import Loose
from betafield.process.residuals import log_odds
from betafield.process.sampling import tempered, weighed
from betafield.process.wrapped import dimensions, laid

Floats = npt.NDArray[np.float64]
Order = npt.NDArray[np.intp]

# The default number of fields.
SIZE = 1_000
# Purposes of random numbers.
POOL, UNIFORM, BEYOND, LEVELS, WINDOWS = range(5)


class Drawn(NamedTuple):
    """Coefficients drawn from a member.

    Parameters
    ----------
    member : Member
    b : array of shape (m, k)
        Coefficients.
    copies : integer array of shape (c,)
        The column of b of each draw from this member.
    draws : integer array of shape (c,)
        The indices of these draws.
    """

    member: Member
    b: Floats
    copies: Order
    draws: Order


@dataclass(frozen=True, eq=False)
class Fields:
    """Fields drawn from the joint posterior, which can be evaluated at any points.

    Parameters
    ----------
    smooth : Smooth
        The posterior.
    size : int
        Number of fields.
    seed : Seed
        The seed of all random numbers.
    n_jobs : int or None
        Threads for sums over windows.
    """

    smooth: Smooth
    size: int
    seed: Seed
    n_jobs: int | None = None

    def at(self, points: Floats) -> Floats:
        """Return π of every field at points in own units, shape (size, points)."""
        if not self.smooth.windows:
            xs = inside(list(self.smooth.boxes), points)
            return np.ascontiguousarray(self._process(xs).T)
        beliefs = self.smooth.beliefs(points, self.n_jobs, is_joint=True)
        return np.ascontiguousarray(self._mixed(beliefs).T)

    @cached
    def drawn(self) -> list[Drawn]:
        """The coefficients of every field."""
        return drawn(self.smooth.members, self.size, self.seed.generator(POOL))

    @cached
    def _uniform(self) -> Floats:
        """u, stratified over [0, 1]."""
        rng = self.seed.generator(UNIFORM)
        return (rng.permutation(self.size) + rng.random(self.size)) / self.size

    @cached
    def _noises(self) -> dict[int, Noise]:
        box = self.smooth.boxes[0]
        d = len(box.axes)
        sides = {BEYOND: d, LEVELS: d, WINDOWS: dimensions(box.kinds, d) + len(box.levels)}
        return {each: Noise(self.seed, each, self.size, side) for each, side in sides.items()}

    # The processes.

    def _process(self, xs: list[Floats]) -> Floats:
        """Return π of the processes, shape (points, draws)."""
        out = np.empty((len(xs[0]), self.size))
        for each in self.drawn:
            out[:, each.draws] = self._value(each, self._latent(each, xs[each.member.which]))
        return out

    def _value(self, each: Drawn, f: Floats) -> Floats:
        """Return π at latent values, averaged over groups if there are any."""
        link, tau = each.member.problem.link, law.group_deviation(each.member.mode.basis)
        if tau == 0.0:
            return link.value(f)
        return averages.mean(link, f.ravel(), np.full(f.size, tau)).reshape(f.shape)

    def _latent(self, each: Drawn, x: Floats) -> Floats:
        """Return f of the draws of a member at points in units of its box."""
        member = each.member
        f = product(member.mode.basis, x, each.b)[:, each.copies]
        return self._returned(each, self._levelled(each, f, x), x)

    def _levelled(self, each: Drawn, f: Floats, x: Floats) -> Floats:
        """Return f with the effects of unseen levels added."""
        basis = each.member.mode.basis
        if basis.layout is not None:
            return self._new(each, f, x)
        if basis.effects is None or basis.effects.is_averaged:
            return f
        new = np.flatnonzero(basis.effects.which(x) < 0)
        at = x[new][:, [basis.effects.feature]]
        f[new] += basis.root[-1] * self._noises[LEVELS].scattered(at, each.draws)
        return f

    def _new(self, each: Drawn, f: Floats, x: Floats) -> Floats:
        """Return f with the effects of unseen levels of categories added."""
        for k, psi in pooled(each.member.mode.basis, x).unseen():
            rows = np.flatnonzero(psi.any(axis=1))
            for j in range(psi.shape[1]):
                at = np.tile([float(k), float(j)], (1, 1))
                f[rows] += psi[rows, j, None] * self._noises[LEVELS].scattered(at, each.draws)
        return f

    def _returned(self, each: Drawn, f: Floats, x: Floats) -> Floats:
        """Return f, made to return to the base rate beyond the domain."""
        member = each.member
        rho = law.nearness(x, member.lengths)
        far = np.flatnonzero(rho < 1.0)
        if far.size:
            kept, base = rho[far, None], member.base
            e = self._noises[BEYOND].some(
                x[far, : len(member.lengths)] / member.lengths, each.draws
            )
            f[far] = base + kept * (f[far] - base) + np.sqrt(1.0 - kept**2) * member.deviation * e
        return f

    # Windows.

    def _mixed(self, beliefs: Beliefs) -> Floats:
        """Return π of processes and windows together, shape (points, draws)."""
        effects = self._new_levels(beliefs)
        out, moved = self._widened(beliefs, effects)
        for question in np.unique(beliefs.question):
            rows = np.flatnonzero(beliefs.question == question)
            ends = np.cumsum(self.smooth.window_weights[question])
            for j, window in enumerate(self.smooth.windows):
                is_last = j + 1 == len(self.smooth.windows)
                upper = np.inf if is_last else ends[j + 1]
                draws = np.flatnonzero((self._uniform >= ends[j]) & (self._uniform < upper))
                if draws.size:
                    at = np.ix_(rows, draws)
                    f = self._window(beliefs, j, window, rows, draws)
                    is_shared = self.smooth.is_shared(window, question)
                    kept = beliefs.kept(j, window)[rows, None] if is_shared else 1.0
                    out[at] = expit(f + kept * moved[at] + effects[at])
        return out

    def _widened(self, beliefs: Beliefs, effects: Floats) -> tuple[Floats, Floats]:
        """Return π of the processes, and their log-odds minus logit m."""
        out = np.empty_like(effects)
        moved, f_mean = np.empty_like(effects), log_odds(beliefs.mean)
        kept, _ = law.counted(self.smooth.weights)
        for each in self.drawn:
            link, k = each.member.problem.link, int(np.searchsorted(kept, each.member.which))
            f = self._latent(each, beliefs.xs[each.member.which])
            c, s = beliefs.process.centres[k], beliefs.process.deviations[k]
            p, rise = link.rise(c)
            scale = np.maximum(p * (1.0 - p), 1e-4) / rise
            own = log_odds(averages.mean(link, c, s)) - f_mean
            moved[:, each.draws] = own[:, None] + (f - c[:, None]) / scale[:, None]
            shift = beliefs.laws.centres[k] - c
            f = f + shift[:, None] + scale[:, None] * effects[:, each.draws]
            out[:, each.draws] = link.value(f)
        return out, moved

    def _window(
        self, beliefs: Beliefs, j: int, window: Window, rows: Order, draws: Order
    ) -> Floats:
        """Return centre plus noise of a window, for some points and draws."""
        x, noise = beliefs.xs[0][rows], self._noises[WINDOWS]
        if window.width > 0.0:
            laid_out = laid(x, window.stretch / window.width, self.smooth.boxes[0].kinds)
            e = noise.some(laid_out, draws)
        else:
            e = noise.scattered(x[:, window.stretch > 0.0], draws)
        centre = beliefs.laws.centres[len(beliefs.process.centres) + j]
        deviation = np.sqrt(beliefs.kept(j, window) * window.tau)
        return np.asarray(centre[rows, None] + deviation[rows, None] * e)

    def _new_levels(self, beliefs: Beliefs) -> Floats:
        """Return the effects of unseen levels on log-odds, shape (points, draws)."""
        out = np.zeros((len(beliefs.mean), self.size))
        for question in np.unique(beliefs.question):
            added = self.smooth.added[question] if self.smooth.windows[0].others.size else 0.0
            if added > 0.0:
                rows = np.flatnonzero(beliefs.question == question)
                at = beliefs.xs[0][rows][:, [question - 2]]
                out[rows] = np.sqrt(added) * self._noises[LEVELS].scattered(at)
        return out


# Coefficients ------------------------------------------------------------------------------


def drawn(members: tuple[Member, ...], size: int, rng: np.random.Generator) -> list[Drawn]:
    """Return the coefficients of `size` equally weighted fields, in random order."""
    counts = systematic(shares(members), size, rng.random())
    pools, logs = [], []
    for member, count in zip(members, counts, strict=True):
        pool, log = proposed(member, int(count), rng)
        pools.append(pool)
        logs.append(log)
    copies = systematic(tempered(np.concatenate(logs)), size, rng.random())
    chosen, order = np.repeat(np.arange(size), copies), rng.permutation(size)
    ends = np.cumsum(counts)
    found = []
    for member, pool, end in zip(members, pools, ends, strict=True):
        own = (chosen >= end - pool.shape[1]) & (chosen < end)
        which, numbers = np.unique(chosen[own] - (end - pool.shape[1]), return_inverse=True)
        if which.size:
            found.append(Drawn(member, np.ascontiguousarray(pool[:, which]), numbers, order[own]))
    return found


def proposed(member: Member, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return coefficients drawn from a member, and their log importance weights."""
    z, U = rng.standard_normal((len(member.centre), count)), member.factor
    if isinstance(U, Loose):
        e = rng.standard_normal((len(U.root), count))
        return member.centre[:, None] + U.drawn(z, e), np.zeros(count)
    if not member.is_weighed or not count:
        return member.centre[:, None] + linear.backward(U, z), np.zeros(count)
    return weighed(member.problem, member.mode, U, z)


def systematic(w: Floats, size: int, u: float) -> Order:
    """Return how often each is drawn, `size` times in all, by systematic resampling.

    Examples
    --------
    >>> import numpy as np
    >>> systematic(np.array([0.5, 0.1, 0.4]), 10, 0.3).tolist()
    [5, 1, 4]
    """
    reached = np.floor(np.cumsum(w) / w.sum() * size + u)
    reached[-1] = size
    return np.asarray(np.diff(np.minimum(reached, size), prepend=0.0), dtype=np.intp)
