"""The memory of a stream of trials: integer sums by place and by span of time.

At time t, a trial made at s counts for

    half-life h    2^(−(t − s)/h)          spans of h; forgotten after 40 of them
    window w       1 up to an age of w     spans of w/64; forgotten after 64 of them

Trials of one span and one place are summed. With a half-life the weight has two factors,

    2^(−(t − s)/h) = 2^(−(e − s)/h) · 2^(−(t − e)/h),        e the end of the span,

of which the first is counted in units of 2⁻³², and the second is the same for all trials of the
span. Sums are integers, so they depend neither on the order of arrival nor on batches, and their
number depends on places and spans, not on the length of the stream.

Whole spans are forgotten at once. So trials in a window count up to an age between w and w + w/64,
and with a half-life, trials older than 40 h, which would count for less than 10⁻¹², may not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield._rows import groups
from betafield.evidence.columns import FRACTIONS
from betafield.windows import Places
from betafield.windows.base import concatenate

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

HALF_LIVES, SPANS = 40, 64
# The largest |time|, in spans: beyond it, float64 does not resolve times within a span.
FURTHEST = 2.0**40
# A shorter span would be a subnormal number, with fewer digits.
SHORTEST = float(np.finfo(np.float64).tiny)
# The largest sum, in units.
MOST = 2**62


@dataclass(frozen=True)
class Forgetting:
    """How trials lose their weight: by a half-life, or all at once when they leave a window.

    Examples
    --------
    >>> Forgetting(half_life=3.0).left(spans=2)
    0.25
    >>> Forgetting(window=3.0).span
    0.046875
    """

    half_life: float | None = None
    window: float | None = None

    def __post_init__(self) -> None:
        given = {"half_life": self.half_life, "window": self.window}
        named = {name: value for name, value in given.items() if value is not None}
        if len(named) != 1:
            found = "both" if named else "neither"
            raise ValueError(f"half_life, window: found {found}; exactly one of them is needed")
        for name, value in named.items():
            checks.positive(name, value)
        rule = f"spans of {SHORTEST:.2g} or more are needed"
        checks.require(self.span >= SHORTEST, *next(iter(named.items())), rule)

    @property
    def span(self) -> float:
        """The length of a span of time."""
        if self.half_life is not None:
            return float(self.half_life)
        assert self.window is not None
        return float(self.window) / SPANS

    @property
    def kept(self) -> int:
        """The number of spans remembered, including the current one."""
        return 1 + (SPANS if self.half_life is None else HALF_LIVES)

    @property
    def unit(self) -> float:
        """The number of trials that one unit of a sum stands for."""
        return 1.0 if self.half_life is None else 1.0 / FRACTIONS

    def number(self, times: Floats) -> Ints:
        """Return the number of the span of each time."""
        return np.floor(times / self.span).astype(np.int64)

    def number_at(self, time: float) -> int:
        """Return the number of the span of one time."""
        return int(self.number(np.array([time]))[0])

    def sizes(self, times: Floats) -> Ints:
        """Return the weight of trials at the end of their span, in units."""
        if self.half_life is None:
            return np.ones(len(times), dtype=np.int64)
        spans = times / self.span
        return np.rint(np.exp2(spans - np.floor(spans) - 1.0) * FRACTIONS).astype(np.int64)

    def left(self, spans: float) -> float:
        """Return the remaining weight of a span that ended this many spans ago."""
        return 1.0 if self.half_life is None else 2.0 ** -float(spans)

    def require_near(self, name: str, times: Floats) -> None:
        """Raise for times so far from 0 that float64 is too coarse for them."""
        most = FURTHEST * self.span
        rule = f"times from -{most:g} to {most:g} are allowed"
        checks.require_all(np.abs(times) <= most, name, times, rule)


class Recalled(NamedTuple):
    """Places (d, n), and the weights of failures and successes at each, (2, n)."""

    axes: Floats
    counts: Floats


class Memory:
    """The trials of a stream that are not forgotten; `added` returns a new memory.

    Parameters
    ----------
    forgetting : Forgetting
    spans : dict of Places
        The places of each span's trials, by its number; counts are failures and successes.

    Examples
    --------
    >>> import numpy as np
    >>> memory = Memory(Forgetting(half_life=1.0))
    >>> axes, success, times = np.array([[0.5, 0.5]]), np.array([0, 1]), np.array([7.0, 3.0])
    >>> memory = memory.added(axes, success, times, latest=7.0)
    >>> memory.recalled(8.0)
    Recalled(axes=array([[0.5]]), counts=array([[0.5    ],
           [0.03125]]))
    """

    def __init__(self, forgetting: Forgetting, spans: dict[int, Places] | None = None) -> None:
        self.forgetting = forgetting
        self.spans = dict(sorted((spans or {}).items()))
        # The spans before the last, and the sums over them.
        self._before: tuple[list[tuple[int, Places]], Recalled | None] = ([], None)

    @property
    def size(self) -> int:
        """The number of places, in all spans."""
        return sum(places.size for places in self.spans.values())

    def forgets(self, times: Floats, latest: float) -> npt.NDArray[np.bool_]:
        """Return which trials are already forgotten at the latest time."""
        return np.asarray(self.forgetting.number(times) <= self._forgotten(latest))

    def added(
        self, axes: Floats, success: npt.NDArray[Any], times: Floats, latest: float
    ) -> Memory:
        """Return the memory with these trials added, and without those that are too old by now."""
        numbers, sizes = self.forgetting.number(times), self.forgetting.sizes(times)
        counts = np.stack([sizes * (success == 0), sizes * (success == 1)])
        forgotten = self._forgotten(latest)
        spans = {number: places for number, places in self.spans.items() if number > forgotten}
        for number in np.unique(numbers[numbers > forgotten]).tolist():
            these = numbers == number
            fresh = Places(axes[:, these], counts[:, these])
            known = [spans[number]] if number in spans else []
            spans[number] = _joined(concatenate([*known, fresh]))
            _require_countable(spans[number])
        grown = Memory(self.forgetting, spans)
        grown._before = self._before
        return grown

    def recalled(self, time: float) -> Recalled | None:
        """Return all trials with their weights at a later time; None if there are none."""
        forgotten = self._forgotten(time)
        spans = [(number, places) for number, places in self.spans.items() if number > forgotten]
        if not spans:
            return None
        sums = self._summed(spans)
        age = time / self.forgetting.span - (spans[-1][0] + 1.0)
        counts = sums.counts * (self.forgetting.unit * self.forgetting.left(age))
        return Recalled(sums.axes, counts)

    def _forgotten(self, time: float) -> int:
        """Return the number of the newest span that is forgotten at this time."""
        return self.forgetting.number_at(time) - self.forgetting.kept

    def _summed(self, spans: list[tuple[int, Places]]) -> Recalled:
        """Return the sums over these spans, weighted as at the end of the last one.

        All but the last are summed first and kept, because they seldom change: only when a trial
        arrives late. The result does not depend on what was kept.
        """
        *before, (last, places) = spans
        known, sums = self._before
        if not _same(known, before):
            left = [self.forgetting.left(last - number) for number, _ in before]
            parts = [Recalled(each.axes, each.counts) for _, each in before]
            sums = _sum(parts, left) if parts else None
            self._before = before, sums
        newest = Recalled(places.axes, places.counts.astype(np.float64))
        return newest if sums is None else _sum([sums, newest], [1.0, 1.0])


def _same(some: list[tuple[int, Places]], others: list[tuple[int, Places]]) -> bool:
    """Return whether spans hold the same `Places` objects."""
    pairs = zip(some, others, strict=False)
    return len(some) == len(others) and all(a == b and p is q for (a, p), (b, q) in pairs)


def _sum(parts: list[Recalled], weights: list[float]) -> Recalled:
    """Return the weighted sum of all parts, by place."""
    axes = np.concatenate([part.axes for part in parts], axis=1)
    weighed = [part.counts * weight for part, weight in zip(parts, weights, strict=True)]
    order, starts = groups(axes)
    counts = np.concatenate(weighed, axis=1)[:, order]
    return Recalled(axes[:, order[starts]], np.add.reduceat(counts, starts, axis=1))


def _joined(places: Places) -> Places:
    """Return distinct places in order."""
    return places.sorted_by(groups(places.axes)[0])


def _require_countable(places: Places) -> None:
    if places.counts.max() > MOST:
        raise ValueError(
            "X: found too many trials at one place and in one span of time; no sum may be above "
            f"{MOST} units"
        )


# Validation of times -------------------------------------------------------------------------


def checked_times(times: Any, t: int) -> Floats:
    """Return one finite time per trial; a single time applies to all."""
    given = checks.cells("times", times)
    if given.dtype.kind not in "iuf":
        raise TypeError(
            f"times: found {given.dtype} values; numbers are needed, in the unit of the half life "
            "or the window"
        )
    if given.shape not in ((), (t,)):
        raise ValueError(f"times: found shape {given.shape}; ({t},) is needed, one per row of X")
    return np.broadcast_to(checks.finite("times", given, "every time must be a finite number"), t)
