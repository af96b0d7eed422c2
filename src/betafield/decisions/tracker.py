"""RiskTracker: forgets, delegates to the windows, and remembers which alarms are on."""

from __future__ import annotations

import copy
import math
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from betafield import priors, trials
from betafield.bandwidth import is_positive
from betafield.decisions import cells, tracker_state
from betafield.decisions.forgetting import (
    FURTHEST,
    Forgetting,
    Memory,
    checked_times,
    finite,
    require_each,
)
from betafield.estimators import SmoothBetaClassifier
from betafield.posteriors import Beta, Posterior

Floats = npt.NDArray[np.float64]

# What is remembered goes with the number of contexts.
MOST_CONTEXTS = 256
# Weights below it are none to the windows.
LEAST = 0.5 / trials.FRACTIONS
UNDISTORTED = (0.0, 1.0)


class RiskTracker:
    """The probability of an event over a space, as it is now, and where it is too high.

    Trials may come in any order and in any batches: what is believed at a time depends on the
    trials and on their times alone, to the last bit. Memory is bounded by cells times spans of time
    however long it runs, see `n_places`. What an alarm promises is said in
    `betafield.decisions.tracking`.

    Parameters
    ----------
    threshold : float
        The risk that is too high, strictly between 0 and 1.
    half_life : float, default=None
        The age at which a trial counts for half. Give this or `window`.
    window : float, default=None
        The age up to which trials count; those up to window/64 older may still do.
    alarm : float, default=0.99
        A place is in alarm once P(π(x) > threshold) is above this level.
    bounds : array of shape (d, 2), default=None
        The domain, (low, high) a feature. None: from 0 to 1.
    bandwidth : float, default=0.1
        The width of the windows in space, as a share of the domain.
    prior : (alpha, beta), callable or Prior, default=(1.0, 1.0)
        As of `SmoothBetaClassifier`.
    resolution : float or None, default=0.125
        Points are moved to the middle of a cell, whose side is at most this share of the bandwidth.
        None: they stay where they are, and memory goes with the number of distinct ones.
    clear : float, default=0.5
        An alarm ends once P(π(x) > threshold) is below this level: not above `alarm`.
    places : array of shape (m, d), default=None
        Where to look. None: a grid over the domain, its step at most the bandwidth.

    Attributes
    ----------
    time : float or None
        The latest time seen.
    n_trials : int
        Trials seen.
    n_late : int
        Those among them that came too late to count.
    n_places : int
        Places in memory, in all spans of time: at most cells × contexts × 41 for a half life, or 65
        for a window.
    places_ : array of shape (m, d)
        Where it looks.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> tracker = RiskTracker(threshold=0.2, half_life=20.0, bandwidth=0.2)
    >>> for day in range(200):
    ...     X = rng.uniform(size=(40, 1))
    ...     risk = np.where((day >= 150) & (X[:, 0] > 0.7), 0.5, 0.05)
    ...     began = tracker.update(X, rng.uniform(size=40) < risk, times=day)
    ...     for alarm in began:
    ...         print(day, alarm["place"].tolist())
    168 [1.0]
    176 [0.8]
    >>> tracker.alarms()["since"].tolist()
    [176.0, 168.0]
    """

    def __init__(
        self,
        threshold: float,
        half_life: float | None = None,
        window: float | None = None,
        alarm: float = 0.99,
        *,
        bounds: Any = None,
        bandwidth: float = 0.1,
        prior: Any = (1.0, 1.0),
        resolution: float | None = 0.125,
        clear: float = 0.5,
        places: Any = None,
    ) -> None:
        self.threshold = _probability("threshold", threshold)
        self.alarm = _probability("alarm", alarm)
        self.clear = _probability("clear", clear)
        if self.clear > self.alarm:
            raise ValueError(f"clear: found {clear!r}; at most alarm, {alarm!r}, is allowed")
        for name, value in (("bandwidth", bandwidth), ("resolution", resolution)):
            if not (is_positive(value) or (name == "resolution" and value is None)):
                raise ValueError(f"{name}: found {value!r}; a positive number is needed")
        self.half_life, self.window = half_life, window
        self.bounds, self.places = bounds, places
        self.bandwidth, self.resolution = float(bandwidth), resolution
        self.prior = prior
        self.time: float | None = None
        self.n_trials = self.n_late = 0
        self._memory = Memory(Forgetting(half_life, window))
        # The model that was asked last: what it was made of, and when.
        self._seen: tuple[Any, float, SmoothBetaClassifier | None] = (None, 0.0, None)
        self._contexts: frozenset[tuple[float, ...]] = frozenset()
        self._model = SmoothBetaClassifier(bandwidth, bounds=bounds, prior=prior)
        if bounds is not None:
            self._begin()

    # Learning. A draft takes this tracker's place when all went well.

    def update(self, X: Any, y: Any, times: Any, context: Any = None, now: Any = None) -> Any:
        """Learn from trials, look at all places, and return the alarms that began.

        There is one look an update, at the latest time seen. A place whose alarm is on begins none
        until it has cleared.

        Parameters
        ----------
        X : array or dataframe of shape (t, d)
            Where the trials were made, within the bounds.
        y : array of shape (t,)
            Whether the event happened: booleans, or 0 and 1.
        times : array of shape (t,) or float
            When, in the unit of `half_life` or `window`; they may go backwards.
        context : array of shape (t, 2), (1, 2) or (2,), default=None
            How each trial was distorted, or all of them, see `betafield.contexts`; no more
            than 256 different ones in all.
        now : float, default=None
            The time on the clock: no trial may be later. None: the latest trial is now. As a trial
            of tomorrow by mistake ages all others by a day, it is worth giving.

        Returns
        -------
        structured array
            As of `alarms`.
        """
        draft = copy.copy(self)
        draft._model = copy.copy(self._model)
        draft._learn(X, y, times, context, now)
        began = draft._look()
        self.__dict__ = draft.__dict__
        return began

    # Asking.

    def posterior(self, X: Any, time: float | None = None) -> Posterior:
        """Return the posterior of the risk at each row of X.

        Parameters
        ----------
        X : array or dataframe of shape (m, d)
        time : float, default=None
            When: not before the latest time seen, which is what None stands for.
        """
        return self._posterior_at(self._points(X), self._asked(time))

    def alarms(self, time: float | None = None, X: Any = None) -> Any:
        """Return the places that are in alarm.

        Parameters
        ----------
        time : float, default=None
            When: not before the latest time seen, which is what None stands for. A later time is
            asked as if there were no trials until then.
        X : array or dataframe of shape (m, d), default=None
            Where else to look. None: at `places_`.

        Returns
        -------
        structured array
            `place`; `probability` that the risk is above the threshold; `mean` of the risk, and its
            95 % interval from `low` to `high`; and `since`, the time of the look at which the alarm
            began: NaN for X, of which no earlier look is known.
        """
        when = self._asked(time)
        if X is not None:
            points = self._points(X)
            on = self._probability_at(points, when) > self.alarm
            return self._told(points[on], when, np.full(on.sum(), np.nan))
        if when is None:
            return self._told(np.empty((0, 1)), None, np.empty(0))
        since = self._since_at(self._probability_at(self.places_, when), when)
        on = ~np.isnan(since)
        return self._told(self.places_[on], when, since[on])

    @property
    def n_places(self) -> int:
        """Places in memory, in all spans of time."""
        return self._memory.size

    def save(self, path: Any) -> None:
        """Write the tracker to one file, from which `RiskTracker.load` gives it back.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> tracker = RiskTracker(threshold=0.2, window=7.0)
        >>> _ = tracker.update([[0.3], [0.4]], [True, False], times=[1.0, 0.5])
        >>> with TemporaryDirectory() as folder:
        ...     tracker.save(f"{folder}/week.beta")
        ...     again = RiskTracker.load(f"{folder}/week.beta")
        >>> again.posterior([[0.35]])
        Beta(alpha=[2.], beta=[2.])
        """
        tracker_state.save(self, path)

    @classmethod
    def load(cls, path: Any) -> Self:
        """Return the tracker that `save` wrote: it goes on as the saved one would, to the last bit.

        Nothing in the file is run, and every value is checked before it is used.
        """
        tracker: Self = tracker_state.load(path, cls)
        return tracker

    def __repr__(self) -> str:
        forgets = "half_life" if self.window is None else "window"
        return (
            f"<RiskTracker, threshold {self.threshold:g}, {forgets} {getattr(self, forgets):g}, "
            f"{self.n_trials} trials up to time {self.time}>"
        )

    # Inside.

    def _begin(self, d: int | None = None) -> None:
        """Fix the domain, its cells, and the places to look at."""
        bounds = cells.box(self.bounds, d)
        if not callable(self.prior):
            priors.shapes(self.prior, bounds, 2)
        side = None if self.resolution is None else self.resolution * self.bandwidth
        self.cells_ = cells.Cells(bounds, None if side is None else math.ceil(1.0 / side))
        if self.places is None:
            self.places_ = cells.grid(bounds, self.bandwidth)
        else:
            self.places_ = cells.given_places(self.places, len(bounds))
        self._since = np.full(len(self.places_), np.nan)

    def _learn(self, X: Any, y: Any, times: Any, context: Any, now: Any) -> None:
        points = trials.points(self._model, X, reset=not self.n_trials)
        if not hasattr(self, "cells_"):
            self._begin(points.shape[1])
        self._require_features(points)
        self.cells_.require_inside(points)
        success = trials.outcomes(trials.labels(y, len(points)), np.array([0, 1]))[1]
        moments = checked_times(times, len(points))
        latest = self._latest(moments, now)
        distortion = self._distortion(context, len(points))
        late = self._memory.forgets(moments, latest)
        teaches = ~late & (distortion[0] != distortion[1])
        axes = np.concatenate([self.cells_.axes(points), distortion])[:, teaches]
        self._memory = self._memory.added(axes, success[teaches], moments[teaches], latest)
        self.time = latest
        self.n_trials += len(points)
        self.n_late += int(late.sum())

    def _latest(self, moments: Floats, now: Any) -> float:
        """Return the time to look, after all trials."""
        self._require_near("times", moments)
        if now is not None:
            clock = np.array([finite("now", now)])
            self._require_near("now", clock)
            require_each(moments <= clock, "times", moments, f"none after now, {now!r}, is allowed")
            moments = np.append(moments, clock)
        return float(moments.max() if self.time is None else max(moments.max(), self.time))

    def _require_near(self, name: str, times: Floats) -> None:
        """Raise for times so far from 0 that a float64 is too coarse for them."""
        most = FURTHEST * self._memory.forgetting.span
        require_each(
            np.abs(times) <= most, name, times, f"times from -{most:g} to {most:g} are allowed"
        )

    def _distortion(self, context: Any, t: int) -> Floats:
        """Return the contexts (2, t), and remember which there were."""
        if context is None:
            self._contexts |= {UNDISTORTED}
            return np.repeat([[0.0], [1.0]], t, axis=1)
        rows = trials.context(context, t)
        assert rows is not None
        if rows.shape[1] != 2:
            raise ValueError(
                f"context: found {rows.shape[1]} coefficients; two are needed, the probabilities "
                "of the event at risks of 0 and 1"
            )
        self._contexts |= {tuple(row) for row in np.unique(rows, axis=0).tolist()}
        if len(self._contexts) > MOST_CONTEXTS:
            raise ValueError(
                f"context: found {len(self._contexts)} different ones; at most {MOST_CONTEXTS} are "
                "possible, so round them"
            )
        return np.ascontiguousarray(rows.T)

    def _look(self) -> Any:
        """Look at all places, keep what alarms there are, and return those that began."""
        assert self.time is not None
        before = self._since
        probability = self._probability_at(self.places_, self.time)
        self._since = self._since_at(probability, self.time)
        began = np.isnan(before) & ~np.isnan(self._since)
        return self._told(self.places_[began], self.time, self._since[began])

    def _since_at(self, probability: Floats, time: float) -> Floats:
        """Return when the alarm at each place began, NaN where there is none."""
        was_on = ~np.isnan(self._since)
        begins = ~was_on & (probability > self.alarm)
        stays = was_on & (probability >= self.clear)
        return np.where(begins, time, np.where(stays, self._since, np.nan))

    def _told(self, points: Floats, time: float | None, since: Floats) -> Any:
        """Return what is known at these points, as a table."""
        names = ("probability", "mean", "low", "high", "since")
        fields: list[Any] = [("place", np.float64, (points.shape[1],))]
        table = np.empty(len(points), dtype=fields + [(name, np.float64) for name in names])
        if len(points):
            post = self._posterior_at(points, time)
            table["probability"], table["mean"] = post.prob_above(self.threshold), post.mean()
            table["low"], table["high"] = post.interval(0.95)
        table["place"], table["since"] = points, since
        return table

    def _probability_at(self, points: Floats, time: float | None) -> Floats:
        """Return how sure it is that the risk is above the threshold."""
        return self._posterior_at(points, time).prob_above(self.threshold)

    def _posterior_at(self, points: Floats, time: float | None) -> Posterior:
        model = None if time is None else self._seen_from(time)
        if model is not None:
            return model._posterior_at(points)
        beta, alpha = priors.shapes(self.prior, points, 2).T
        return Beta(*(np.broadcast_to(shape, len(points)) for shape in (alpha, beta)))

    def _seen_from(self, time: float) -> SmoothBetaClassifier | None:
        """Return the model of all trials as they count at this time; None where none does."""
        memory, when, model = self._seen
        if memory is not self._memory or when != time:
            model = self._learned(time)
            self._seen = self._memory, time, model
        return model

    def _learned(self, time: float) -> SmoothBetaClassifier | None:
        recalled = self._memory.recalled(time)
        if recalled is None or not (recalled.counts > LEAST).any():
            return None
        d = len(self.cells_.bounds)
        outcome, place = np.nonzero(recalled.counts > LEAST)
        context = recalled.axes[d:, place].T
        model = SmoothBetaClassifier(self.bandwidth, bounds=self.cells_.bounds, prior=self.prior)
        return model.partial_fit(
            recalled.axes[:d, place].T,
            outcome,
            classes=[0, 1],
            sample_weight=recalled.counts[outcome, place],
            context=None if np.all(context == UNDISTORTED) else context,
        )

    def _points(self, X: Any) -> Floats:
        if self.n_trials:
            return trials.points(self._model, X, reset=False)
        points = trials.points(copy.copy(self._model), X, reset=True)
        self._require_features(points)
        return points

    def _require_features(self, points: Floats) -> None:
        if self.bounds is not None and points.shape[1] != len(self.cells_.bounds):
            d = len(self.cells_.bounds)
            raise ValueError(f"X: found {points.shape[1]} features; bounds are those of {d}")

    def _asked(self, time: Any) -> float | None:
        """Return the time that is asked for; None where there is none yet."""
        if time is None or self.time is None:
            return self.time
        when = finite("time", time)
        self._require_near("time", np.array([when]))
        if when < self.time:
            raise ValueError(
                f"time: found {time!r}; not before the latest time seen, {self.time!r}, for what "
                "was forgotten until then cannot be recalled"
            )
        return when


def _probability(name: str, value: Any) -> float:
    if not (is_positive(value) and value < 1.0):
        raise ValueError(f"{name}: found {value!r}; a number between 0 and 1 is needed")
    return float(value)
