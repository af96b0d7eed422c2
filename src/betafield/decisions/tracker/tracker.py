"""`RiskTracker`, which forgets old trials and records which alarms are active."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from betafield import checks, distorted, priors, trials
from betafield._locks import writing
from betafield._rows import distinct
from betafield.bernstein import PLAIN
from betafield.decisions.tracker.cells import Cells, box, given_places, grid, parts
from betafield.decisions.tracker.file import OPTIONS, load, save
from betafield.decisions.tracker.memory import Forgetting, Memory, checked_times
from betafield.decisions.tracker.state import Domain, State
from betafield.estimators import SmoothBetaClassifier
from betafield.evidence.columns import FRACTIONS
from betafield.field import Field
from betafield.posteriors import Beta, Posterior

Floats = npt.NDArray[np.float64]

# Memory grows with the number of contexts.
MOST_CONTEXTS = 256
# Windows round smaller weights to 0.
LEAST = 0.5 / FRACTIONS


class RiskTracker:
    """Track the current probability of an event over a space, and where it is too high.

    Trials may arrive in any order and in any batches: the posterior at a time depends only on the
    trials and their times, to the last bit. Memory is bounded by cells times spans of time, however
    long the tracker runs; see `n_places`. `betafield.decisions.tracker` explains what an alarm
    guarantees.

    Parameters
    ----------
    threshold : float
        The risk that is too high, strictly between 0 and 1.
    half_life : float, default=None
        The age at which a trial counts for half. Give this or `window`.
    window : float, default=None
        The age up to which trials count. Trials up to window/64 older may still count.
    alarm : float, default=0.99
        An alarm begins at a place once P(π(x) > threshold) is above this level.
    bounds : array of shape (d, 2), default=None
        The domain, (low, high) per feature. None: from 0 to 1.
    bandwidth : float, default=0.1
        The width of the windows in space, as a fraction of the domain.
    prior : (alpha, beta), callable or Prior, default=(1.0, 1.0)
        As in `SmoothBetaClassifier`.
    resolution : float or None, default=0.125
        Points are moved to the middle of a cell with sides of at most this fraction of the
        bandwidth. None: points stay where they are, and memory grows with the number of distinct
        points.
    clear : float, default=0.5
        An alarm ends once P(π(x) > threshold) is below this level, which is at most `alarm`.
    places : array of shape (m, d), default=None
        Where to look. None: a grid over the domain, its step at most the bandwidth.

    Attributes
    ----------
    time : float or None
        The latest time seen.
    n_trials : int
        Trials seen.
    n_late : int
        Trials that arrived too late to count.
    n_places : int
        Places in memory, in all spans of time: at most cells × contexts × 41 for a half-life, or
        × 65 for a window.
    places_ : array of shape (m, d)
        The places that are checked for alarms.

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
        self.threshold = checks.share("threshold", threshold)
        self.alarm = checks.share("alarm", alarm)
        self.clear = checks.share("clear", clear)
        if self.clear > self.alarm:
            raise ValueError(f"clear: found {clear!r}; at most alarm, {alarm!r}, is allowed")
        self.bandwidth = checks.positive("bandwidth", bandwidth)
        self.resolution = None if resolution is None else checks.positive("resolution", resolution)
        self.half_life, self.window = half_life, window
        self.bounds, self.places = bounds, places
        self.prior = prior
        self._state = State(Memory(Forgetting(half_life, window)))
        if bounds is not None:
            self._state = self._begun(self._state)
        # The memory, time and field of the last query.
        self._recent: tuple[Memory, float, Field | None] | None = None

    # Learning. The state is replaced as a whole, after everything has succeeded.

    def update(self, X: Any, y: Any, times: Any, context: Any = None, now: Any = None) -> Any:
        """Learn from trials, look at all places, and return the alarms that began.

        There is one look per update, at the latest time seen. While an alarm is active, no new one
        begins at that place.

        Parameters
        ----------
        X : array or dataframe of shape (t, d)
            Where the trials were made, within the bounds.
        y : array of shape (t,)
            Whether the event happened: booleans, or 0 and 1.
        times : array of shape (t,) or float
            The times of the trials, in the units of `half_life` or `window`; they may go backwards.
        context : array of shape (t, 2), (1, 2) or (2,), default=None
            How each trial, or all of them, were distorted; see `betafield.contexts`. At most 256
            different contexts in all.
        now : float, default=None
            The current time: no trial may be later. None: the time of the latest trial. It is worth
            giving, because a trial that is dated tomorrow by mistake ages all others by a day.

        Returns
        -------
        structured array
            As in `alarms`.
        """
        with writing(self):
            after = self._learned(self._state, X, y, times, context, now)
            assert after.domain is not None
            assert after.time is not None
            since = self._since_at(after, after.time)
            began = np.isnan(after.since) & ~np.isnan(since)
            alarms = self._told(after, after.domain.places[began], after.time, since[began])
            self._state = replace(after, since=since)
        return alarms

    # Asking.

    def posterior(self, X: Any, time: float | None = None) -> Posterior:
        """Return the posterior of the risk at each row of X.

        Parameters
        ----------
        X : array or dataframe of shape (m, d)
        time : float, default=None
            The time of the question, not before the latest time seen. None: the latest time seen.
        """
        state = self._state
        return self._posterior_at(state, self._points(state, X), self._asked(state, time))

    def alarms(self, time: float | None = None, X: Any = None) -> Any:
        """Return the places with an active alarm.

        Parameters
        ----------
        time : float, default=None
            The time of the question, not before the latest time seen. None: the latest time seen.
            A later time assumes that there are no trials until then.
        X : array or dataframe of shape (m, d), default=None
            Other places to look at. None: `places_`.

        Returns
        -------
        structured array
            `place`; `probability` that the risk is above the threshold; `mean` of the risk, and its
            95 % interval from `low` to `high`; and `since`, the time at which the alarm began. It
            is NaN for X, because there are no earlier looks at these places.
        """
        state = self._state
        when = self._asked(state, time)
        if X is not None:
            points = self._points(state, X)
            on = self._probability_at(state, points, when) > self.alarm
            return self._told(state, points[on], when, np.full(on.sum(), np.nan))
        if when is None or state.domain is None:
            return self._told(state, np.empty((0, 1)), None, np.empty(0))
        since = self._since_at(state, when)
        on = ~np.isnan(since)
        return self._told(state, state.domain.places[on], when, since[on])

    @property
    def time(self) -> float | None:
        """The latest time seen."""
        return self._state.time

    @property
    def n_trials(self) -> int:
        """Trials seen."""
        return self._state.n_trials

    @property
    def n_late(self) -> int:
        """Number of trials that arrived too late to count."""
        return self._state.n_late

    @property
    def n_places(self) -> int:
        """Places in memory, in all spans of time."""
        return self._state.memory.size

    @property
    def places_(self) -> Floats:
        """The places that are checked for alarms."""
        if self._state.domain is None:
            raise AttributeError("places_: they are known as soon as bounds or trials are given")
        return self._state.domain.places

    def save(self, path: Any) -> None:
        """Write the tracker to one file, which `RiskTracker.load` reads.

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
        save(path, {name: getattr(self, name) for name in OPTIONS}, self._state)

    @classmethod
    def load(cls, path: Any) -> Self:
        """Return the tracker that `save` wrote; it continues as the saved one would.

        Nothing in the file is run, and every value is checked before it is used.
        """
        return load(path, cls._restored)

    @classmethod
    def _restored(cls, options: dict[str, Any], state_of: Any) -> Self:
        tracker = cls(**options)
        tracker._state = state_of(tracker._state, tracker._begun)
        return tracker

    def __repr__(self) -> str:
        forgets = "half_life" if self.window is None else "window"
        return (
            f"<RiskTracker, threshold {self.threshold:g}, {forgets} {getattr(self, forgets):g}, "
            f"{self.n_trials} trials up to time {self.time}>"
        )

    # Inside.

    def _begun(self, state: State, d: int | None = None) -> State:
        """Return a state with a domain, its cells, and the places to look at."""
        bounds = box(self.bounds, d)
        if not callable(self.prior):
            priors.shapes(self.prior, bounds, 2)
        side = None if self.resolution is None else self.resolution * self.bandwidth
        n = None if side is None else parts("bandwidth", side)
        where = self.places
        places = grid(bounds, self.bandwidth) if where is None else given_places(where, len(bounds))
        domain = Domain(Cells(bounds, n), places)
        return replace(state, domain=domain, since=np.full(len(places), np.nan))

    def _learned(self, state: State, X: Any, y: Any, times: Any, context: Any, now: Any) -> State:
        """Return the state after learning these trials, with alarms unchanged."""
        points, features = self._located(state, X)
        if state.domain is None:
            state = self._begun(state, points.shape[1])
        assert state.domain is not None
        cells = state.domain.cells
        cells.require_inside(points)
        success = trials.outcomes(trials.labels(y, len(points)), np.array([0, 1]))[1]
        moments = checked_times(times, len(points))
        latest = self._latest(state, moments, now)
        distortion, contexts = _distortion(context, len(points), state.contexts)
        late = state.memory.forgets(moments, latest)
        teaches = ~late & (distortion[0] != distortion[1])
        axes = np.concatenate([cells.axes(points), distortion])[:, teaches]
        return replace(
            state,
            memory=state.memory.added(axes, success[teaches], moments[teaches], latest),
            features=features,
            contexts=contexts,
            time=latest,
            n_trials=state.n_trials + len(points),
            n_late=state.n_late + int(late.sum()),
        )

    def _located(self, state: State, X: Any) -> tuple[Floats, trials.Features]:
        """Return points and their features."""
        owner = type(self).__name__
        if state.features is not None:
            return trials.more_points(owner, X, state.features), state.features
        points, features = trials.first_points(owner, X)
        d = features.number if state.domain is None else len(state.domain.cells.bounds)
        if features.number != d:
            raise ValueError(f"X: found {features.number} features; bounds are those of {d}")
        return points, features

    def _points(self, state: State, X: Any) -> Floats:
        return self._located(state, X)[0]

    def _latest(self, state: State, moments: Floats, now: Any) -> float:
        """Return the time of the look, which is not before any trial."""
        forgetting = state.memory.forgetting
        forgetting.require_near("times", moments)
        if now is not None:
            clock = np.array([checks.number("now", now)])
            forgetting.require_near("now", clock)
            rule = f"none after now, {now!r}, is allowed"
            checks.require_all(moments <= clock, "times", moments, rule)
            moments = np.append(moments, clock)
        latest = float(moments.max())
        return latest if state.time is None else max(latest, state.time)

    def _since_at(self, state: State, time: float) -> Floats:
        """Return when the alarm at each place began, NaN if there is none."""
        assert state.domain is not None
        probability = self._probability_at(state, state.domain.places, time)
        was_on = ~np.isnan(state.since)
        begins = ~was_on & (probability > self.alarm)
        stays = was_on & (probability >= self.clear)
        return np.where(begins, time, np.where(stays, state.since, np.nan))

    def _told(self, state: State, points: Floats, time: float | None, since: Floats) -> Any:
        """Return probabilities, means and intervals at these points as a structured array."""
        names = ("probability", "mean", "low", "high", "since")
        fields: list[Any] = [("place", np.float64, (points.shape[1],))]
        table = np.empty(len(points), dtype=fields + [(name, np.float64) for name in names])
        if len(points):
            post = self._posterior_at(state, points, time)
            table["probability"], table["mean"] = post.prob_above(self.threshold), post.mean()
            table["low"], table["high"] = post.interval(0.95)
        table["place"], table["since"] = points, since
        return table

    def _probability_at(self, state: State, points: Floats, time: float | None) -> Floats:
        """Return the probability that the risk is above the threshold."""
        return self._posterior_at(state, points, time).prob_above(self.threshold)

    def _posterior_at(self, state: State, points: Floats, time: float | None) -> Posterior:
        field = None if time is None else self._seen_from(state, time)
        if field is not None:
            return field.posterior(points)
        beta, alpha = priors.shapes(self.prior, points, 2).T
        return Beta(*(np.broadcast_to(shape, len(points)) for shape in (alpha, beta)))

    def _seen_from(self, state: State, time: float) -> Field | None:
        """Return the field of all trials, weighted as at this time; None if none counts."""
        recent = self._recent
        if recent is None or recent[0] is not state.memory or recent[1] != time:
            recent = self._recent = state.memory, time, self._recalled(state, time)
        return recent[2]

    def _recalled(self, state: State, time: float) -> Field | None:
        recalled = state.memory.recalled(time)
        if state.domain is None or recalled is None or not (recalled.counts > LEAST).any():
            return None
        bounds = state.domain.cells.bounds
        d = len(bounds)
        outcome, place = np.nonzero(recalled.counts > LEAST)
        context = recalled.axes[d:, place].T
        model = SmoothBetaClassifier(self.bandwidth, bounds=bounds, prior=self.prior)
        model.partial_fit(
            recalled.axes[:d, place].T,
            outcome,
            classes=[0, 1],
            sample_weight=recalled.counts[outcome, place],
            context=None if np.all(context == PLAIN) else context,
        )
        field = model.field_
        assert isinstance(field, Field)  # a field of windows, because their width is given
        return field

    def _asked(self, state: State, time: Any) -> float | None:
        """Return the time of the question; None before the first trial."""
        if time is None or state.time is None:
            return state.time
        when = checks.number("time", time)
        state.memory.forgetting.require_near("time", np.array([when]))
        if when < state.time:
            raise ValueError(
                f"time: found {time!r}; not before the latest time seen, {state.time!r}, for what "
                "was forgotten until then cannot be recalled"
            )
        return when


def _distortion(
    context: Any, t: int, known: frozenset[tuple[float, ...]]
) -> tuple[Floats, frozenset[tuple[float, ...]]]:
    """Return the contexts (2, t), and the set of all contexts so far."""
    if context is None:
        return np.repeat([[0.0], [1.0]], t, axis=1), known | {PLAIN}
    rows = distorted.known_context(context, t)
    assert rows is not None
    if rows.shape[1] != 2:
        raise ValueError(
            f"context: found {rows.shape[1]} coefficients; two are needed, the probabilities "
            "of the event at risks of 0 and 1"
        )
    every = known | {tuple(row) for row in distinct(rows)[0].tolist()}
    if len(every) > MOST_CONTEXTS:
        raise ValueError(
            f"context: found {len(every)} different ones; at most {MOST_CONTEXTS} are possible, "
            "so round them"
        )
    return np.ascontiguousarray(rows.T), every
