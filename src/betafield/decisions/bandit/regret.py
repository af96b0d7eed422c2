"""The regret of a bandit while it learns, in simulations with a known truth.

The regret of a pull is the success probability of the best arm minus that of the arm pulled.
Probabilities are compared, not outcomes, so luck plays no part. Its sum over n pulls grows like
n^b: b = 1 for a bandit that never learns, less for one that does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from betafield import checks

Floats = npt.NDArray[np.float64]
Truth = Callable[[Floats], Floats]

# Points among which to look for the best of a continuum.
POINTS = 1 << 13


class Regret:
    """Cumulative regret, one row per run.

    Parameters
    ----------
    cumulative : array of shape (runs, n)
        Cumulative regret after each pull of each run.
    label : str, default=""
        The name of the bandit.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure

    Examples
    --------
    >>> import numpy as np
    >>> n = np.arange(1, 1001)
    >>> round(Regret(np.stack([np.sqrt(n), 2 * np.sqrt(n)])).exponent(), 3)
    0.5
    """

    ax_: Any
    figure_: Any

    def __init__(self, cumulative: npt.ArrayLike, label: str = "") -> None:
        rule = "finite numbers of shape (runs, n) are needed"
        found = checks.finite("cumulative", cumulative, rule, (None, None), rule)
        checks.require(found.size, "cumulative: shape", found.shape, rule)
        self.cumulative = found
        self.label = checks.instance("label", label, str, "a text is needed")

    @property
    def final(self) -> Floats:
        """The regret of each run after its last pull."""
        return self.cumulative[:, -1]

    def mean(self) -> Floats:
        """Return the mean over runs after each pull, of shape (n,)."""
        return np.asarray(self.cumulative.mean(axis=0))

    def exponent(self) -> float:
        """Return b if the mean grows like n^b: its log-log slope over the second half."""
        mean = self.mean()
        n = np.arange(1, len(mean) + 1)
        half = slice(len(mean) // 2, None)
        if len(mean) < 4 or mean[half][0] <= 0.0:
            raise ValueError(
                f"cumulative: found {len(mean)} pulls, with a regret of {mean[half][0]:g} after "
                "half of them; four pulls and a positive regret are needed for an exponent"
            )
        return float(np.polyfit(np.log(n[half]), np.log(mean[half]), 1)[0])

    def plot(self, ax: Any = None, **line: Any) -> Self:
        """Draw the mean over runs, and the range from the lowest to the highest.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw. None: a new figure. Several curves may share one.
        **line
            How to draw the mean, as in matplotlib's `plot`.
        """
        from betafield.plots import style

        (axes,) = style.panels(ax, (6.4, 4.0))
        n = np.arange(1, self.cumulative.shape[1] + 1)
        style_ = {"color": style.LINES[len(axes.lines) % len(style.LINES)]} | line
        (drawn,) = axes.plot(n, self.mean(), label=self.label or None, **style_)
        low, high = self.cumulative.min(axis=0), self.cumulative.max(axis=0)
        axes.fill_between(n, low, high, color=drawn.get_color(), alpha=0.15, linewidth=0)
        axes.set_xlabel("pulls")
        axes.set_ylabel("cumulative regret")
        style.plain(axes)
        if self.label:
            style.legend(axes, ncols=3)
        self.ax_, self.figure_ = axes, axes.figure
        return self


def simulate(
    make: Callable[[int], Any],
    truth: Truth,
    n: int,
    seeds: Iterable[int] = range(5),
    *,
    batch: int = 1,
    delay: int = 0,
    label: str = "",
) -> Regret:
    """Return the regret of bandits in simulations with a known truth.

    Parameters
    ----------
    make : callable
        Returns a bandit for a seed: `lambda seed: FieldBandit(..., random_state=seed)`, or any
        other object with `arms`, `pull` and `update`.
    truth : callable
        The success probabilities at rows of features: of shape (m,), or (m, K) for K named arms.
        If there are no features, it receives a single dummy row.
    n : int
        Number of pulls.
    seeds : iterable of int, default=range(5)
        One run per seed. The observed features, uniform between their bounds, and the random
        numbers behind outcomes are the same for every bandit with that seed.
    batch : int, default=1
        Number of pulls that are made at once.
    delay : int, default=0
        Number of pulls between a batch and its rewards.
    label : str, default=""
        The name of the bandit in pictures.

    Examples
    --------
    >>> from betafield.decisions import FieldBandit
    >>> def truth(X):
    ...     return 0.9 - abs(X[:, 0] - 0.3)
    >>> regret = simulate(
    ...     lambda seed: FieldBandit({"x": (0, 1)}, random_state=seed), truth, 400, seeds=[0, 1]
    ... )
    >>> regret.cumulative.shape, regret.exponent() < 1
    ((2, 400), True)
    """
    for name, value, least in (("n", n, 1), ("batch", batch, 1), ("delay", delay, 0)):
        checks.whole(name, value, least)
    checks.require(callable(make), "make", make, "a function of a seed is needed")
    checks.require(callable(truth), "truth", truth, "a function of rows of features is needed")
    given = _seeds(seeds)
    runs = [_run(_bandit(make(seed)), truth, n, seed, batch, delay) for seed in given]
    return Regret(np.cumsum(runs, axis=1), label)


def _seeds(seeds: Any) -> list[int]:
    given = checks.items("seeds", seeds, "a list of whole numbers is needed")
    if not given:
        raise ValueError("seeds: found none; at least one is needed")
    return [checks.whole(f"seeds[{i}]", seed, low=0) for i, seed in enumerate(given)]


def _bandit(made: Any) -> Any:
    if not all(hasattr(made, name) for name in ("arms", "pull", "update")):
        rule = "a bandit with arms, pull and update is needed"
        raise TypeError(f"make: found {type(made).__name__} of a seed; {rule}")
    return made


def _run(bandit: Any, truth: Truth, n: int, seed: int, batch: int, delay: int) -> Floats:
    """Return the regret of each pull of one run."""
    rng = np.random.default_rng([seed, 0])
    observed, luck = _observations(bandit.arms, n, rng), rng.uniform(size=n)
    best = _best(bandit.arms, truth, observed)
    lost, late = np.empty(n), []
    for start in range(0, n, batch):
        rows = slice(start, min(start + batch, n))
        size = rows.stop - start
        pulls = bandit.pull(n=size) if observed is None else bandit.pull(observed[rows])
        chance = _chances(bandit.arms, truth, pulls, None if observed is None else observed[rows])
        lost[rows] = np.broadcast_to(best, n)[rows] - chance
        late.append((rows.stop, pulls, luck[rows] < chance))
        while late and late[0][0] + delay <= rows.stop:
            _, made, success = late.pop(0)
            bandit.update(made, success)
    return np.maximum(lost, 0.0)


def _observations(arms: Any, n: int, rng: np.random.Generator) -> Floats | None:
    space = arms.observed
    return None if space is None else space.rows(rng.uniform(size=(n, len(space.names))))


def _chances(arms: Any, truth: Truth, pulls: list[Any], observed: Floats | None) -> Floats:
    """Return the success probabilities of the arms pulled."""
    if arms.names is None:
        return _asked(arms, truth, np.array([list(pull.features.values()) for pull in pulls]))
    chances = _asked(arms, truth, np.zeros((len(pulls), 1)) if observed is None else observed)
    return np.asarray(chances[np.arange(len(pulls)), [pull.index for pull in pulls]])


def _asked(arms: Any, truth: Truth, rows: Floats) -> Floats:
    """Return the true probabilities at rows of features: (m,), or (m, K) for K named arms."""
    shape = (len(rows),) if arms.names is None else (len(rows), len(arms.names))
    found = checks.finite("truth", truth(rows), shape=shape)
    checks.require_all((found >= 0.0) & (found <= 1.0), "truth", found, "chances are from 0 to 1")
    return found


def _best(arms: Any, truth: Truth, observed: Floats | None) -> Floats:
    """Return the highest success probability available at each pull."""
    if arms.names is not None:
        chances = _asked(arms, truth, np.zeros((1, 1)) if observed is None else observed)
        return np.asarray(np.max(chances, axis=1))
    if observed is None:
        return np.asarray(np.max(_asked(arms, truth, _closer(arms, truth)), keepdims=True))
    points = arms.many(POINTS >> 5)
    each = (np.hstack([points, np.tile(row, (len(points), 1))]) for row in observed)
    return np.array([_asked(arms, truth, rows).max() for rows in each])


def _closer(arms: Any, truth: Truth) -> Floats:
    """Return all points, or points of a continuum that have closed in on its best."""
    points: Floats = arms.many(POINTS)
    if arms.is_continuum:
        pattern = arms.chosen.shares(points) - 0.5
        for side in 0.5 ** np.arange(2, 20, 2):
            best = arms.chosen.shares(points[np.argmax(_asked(arms, truth, points))])
            near = np.vstack([best, np.clip(best + side * pattern, 0.0, 1.0)])
            points = arms.chosen.rows(near)
    return points
