"""How often a tracker raises a false alarm if the risk is nowhere above its threshold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield.decisions.tracker.cells import box
from betafield.decisions.tracker.tracker import RiskTracker

Floats = npt.NDArray[np.float64]

# Fewest trials per unit of time; with fewer, times would overflow.
SLOWEST = 1e-100


class FalseAlarms(NamedTuple):
    """The result of a simulation in which every alarm is false.

    Parameters
    ----------
    began : int
        Number of alarms that began.
    trials : int
        Number of trials.
    looks : int
        Number of looks, summed over all places.
    above : int
        Number of looks at which P(π(x) > threshold) was above the level.
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
        The arguments of `RiskTracker`, including `bounds`.
    rate : float
        Trials per unit of time; they arrive at random, at uniform points within the bounds.
    risk : float or callable, default=None
        The risk, as one number or as a function of points (m, d). None: the threshold itself, the
        highest risk at which an alarm is false.
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
    rate = checks.number("rate", rate, f"a number from {SLOWEST} on is needed", low=SLOWEST)
    given = dict(checks.instance("options", options, Mapping, "a mapping of them is needed"))
    if given.get("bounds") is None:
        raise ValueError("options: found no bounds; trials are made within them")
    for name, value in (("batch", batch), ("n_trials", n_trials)):
        checks.whole(name, value, 1, 10**12)
    tracker, rng = RiskTracker(**given), checks.generator("random_state", random_state)
    low, high = box(tracker.bounds).T
    limit, time, began, looks, above = tracker.threshold, 0.0, 0, 0, 0
    for start in range(0, n_trials, batch):
        size = min(batch, n_trials - start)
        X = rng.uniform(low, high, (size, len(low)))
        at = limit if risk is None else _risk(risk(X) if callable(risk) else risk, size, limit)
        times = time + np.cumsum(rng.exponential(1.0 / rate, size))
        time = float(times[-1])
        began += len(tracker.update(X, rng.uniform(size=size) < at, times))
        above += int(np.sum(tracker.alarms()["probability"] > tracker.alarm))
        looks += len(tracker.places_)
    return FalseAlarms(began, n_trials, looks, above)


def _risk(risk: Any, t: int, most: float) -> Floats:
    """Return the risk of each trial, validated to be at most `most`."""
    found = checks.finite("risk", risk)
    checks.shaped("risk", found, (t,) if found.ndim else ())
    at = np.broadcast_to(found, t)
    checks.require_all((at >= 0) & (at <= most), "risk", at, f"from 0 to {most} are allowed")
    return at
