"""A risk that moves, and alarms where it passes a threshold.

A tracker forgets: seen from time t, a trial made at s counts for 2^(−(t − s)/half_life), or for 1
as long as it is in the window (`betafield.decisions.forgetting`). With such weights w the posterior
is that of `SmoothBetaClassifier`,

    π(x) ~ Beta(α + Σ w y, β + Σ w (1 − y)),         trials within the bandwidth of x,

and a place is in alarm once P(π(x) > threshold) is above the level `alarm`.

What an alarm promises
----------------------
At each look, that the risk is above the threshold with that posterior probability. Many looks at
many places see more of what is rare. For a sliding window, trials without contexts, and a prior
with α ≤ 1 ≤ β, this much is certain: at a time that was not chosen by outcomes, and at a place near
which no trial in the window had a risk above the threshold τ,

    P(P(π(x) > τ) > alarm) ≤ (1 − alarm)/τ.

For with n trials and S events P(π(x) > τ) ≤ P(Bin(n + 1, τ) ≤ S), so that it is above the level
only where S ≥ k, the least k for which P(Bin(n + 1, τ) > k) < 1 − alarm. One event more has
probability τ, so P(Bin(n + 1, τ) > k) ≥ τ P(Bin(n, τ) ≥ k); and P(S ≥ k) ≤ P(Bin(n, τ) ≥ k) where
no risk is above τ. Adding up, m places looked at k times begin no more than m k (1 − alarm)/τ false
alarms on average. There are far fewer, for one look is much like the next: `false_alarm_rate`
counts them for given settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import plain
from betafield.bandwidth import is_positive
from betafield.decisions.forgetting import require_each
from betafield.decisions.tracker import RiskTracker

__all__ = ["FalseAlarms", "RiskTracker", "false_alarm_rate"]

Floats = npt.NDArray[np.float64]


class FalseAlarms(NamedTuple):
    """What a simulation without any true alarm has seen.

    Parameters
    ----------
    began : int
        Alarms that began.
    trials : int
        Trials made.
    looks : int
        Looks at a place, at all places together.
    above : int
        Those among them at which P(π(x) > threshold) was above the level.
    """

    began: int
    trials: int
    looks: int
    above: int

    @property
    def per_100_000(self) -> float:
        """Alarms begun per 100,000 trials."""
        return 1e5 * self.began / self.trials

    @property
    def share(self) -> float:
        """The share of looks at which a place was above the level."""
        return self.above / self.looks


def false_alarm_rate(
    options: Mapping[str, Any],
    rate: float,
    risk: float | Callable[[Floats], Floats] | None = None,
    *,
    batch: int = 100,
    n_trials: int = 100_000,
    random_state: Any = 0,
) -> FalseAlarms:
    """Count the alarms of a tracker while the risk is nowhere above its threshold.

    Parameters
    ----------
    options : mapping
        What `RiskTracker` is called with, `bounds` among it.
    rate : float
        Trials per unit of time: they come at random, and lie anywhere within the bounds.
    risk : float or callable, default=None
        The risk, everywhere, or as a function of points (m, d). None: the threshold itself, the
        highest of which an alarm is false.
    batch : int, default=100
        Trials between one look and the next.
    n_trials : int, default=100_000
    random_state : int, numpy Generator or RandomState, default=0

    Examples
    --------
    >>> found = false_alarm_rate(
    ...     {"threshold": 0.2, "window": 7.0, "bounds": [(0, 1)], "alarm": 0.99},
    ...     rate=300.0, risk=0.1, n_trials=10_000,
    ... )
    >>> found.began, found.per_100_000
    (0, 0.0)
    """
    if not is_positive(rate):
        raise ValueError(f"rate: found {rate!r}; a positive number is needed")
    if options.get("bounds") is None:
        raise ValueError("options: found no bounds; trials are made within them")
    for name, value in (("batch", batch), ("n_trials", n_trials)):
        plain.whole(name, value, 1, 10**12)
    tracker, rng = RiskTracker(**options), np.random.default_rng(random_state)
    low, high = tracker.cells_.bounds.T
    limit, time, began, looks, above = tracker.threshold, 0.0, 0, 0, 0
    for start in range(0, n_trials, batch):
        size = min(batch, n_trials - start)
        X = rng.uniform(low, high, (size, len(low)))
        at = np.broadcast_to(limit if risk is None else risk(X) if callable(risk) else risk, size)
        require_each((at >= 0) & (at <= limit), "risk", at, f"from 0 to {limit} are allowed")
        times = time + np.cumsum(rng.exponential(1.0 / rate, size))
        time = float(times[-1])
        began += len(tracker.update(X, rng.uniform(size=size) < at, times))
        above += int(np.sum(tracker.alarms()["probability"] > tracker.alarm))
        looks += len(tracker.places_)
    return FalseAlarms(began, n_trials, looks, above)
