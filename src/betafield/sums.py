"""Trials by place: everything the default model keeps of them.

A place is a point together with the context of its trials. Its counts are whole numbers (in the
layout of `evidence.columns`: trials per class, and their fractions), so sums do not depend on
order, batches or merges. Trials that carry no information, because the coefficients of their
context are all equal, are not kept.

Trials in groups are kept by place and group. Overdispersed rows are kept as they are, even if
several are equal.

Contexts are stored by their number of coefficients: none for undistorted trials, two for affine
contexts, and more for polynomials. They are raised to a common degree only when needed. With
unknown rates, the coefficients at all corners (`betafield.families`) are stored side by side, under
minus their number per corner.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from betafield import bernstein, contexts, families
from betafield._locks import cached
from betafield._rows import groups
from betafield.evidence.columns import FRACTIONS, Columns, Totals
from betafield.evidence.encode import Counted
from betafield.families import ContextFamily, Rate
from betafield.refusals import refused

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Largest number of parts before they are joined.
MOST_PARTS = 256
# Largest number of trials for a process; beyond it, the prior would be lost in rounding.
MOST_TRIALS = 1e15
# Sums of trials stay below 2 to this power, in the units of `rows`.
MOST_BITS = 60
# Fractions are stored in units of 2 to minus this power.
WHOLE_BITS = 32


class Part(NamedTuple):
    """Places and their counts; a place may appear several times.

    Parameters
    ----------
    points : array of shape (r, d)
    counts : integer array of shape (c, r)
    context : array of shape (r, p + 1)
        p + 1 is 0 for undistorted trials; (r, 2^u (p + 1)) with u unknown rates.
    group : array of shape (r,) or None
        The number of their group; None if trials have no groups.
    """

    points: Floats
    counts: npt.NDArray[Any]
    context: Floats
    group: Floats | None = None

    def taken(self, order: Any, columns: Any = slice(None)) -> Part:
        """Return these rows, with these coefficients of their contexts."""
        group = None if self.group is None else self.group[order]
        context = self.context[order][:, columns]
        return Part(self.points[order], self.counts[:, order], context, group)

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.points)


class Rows(NamedTuple):
    """Trials by place, all contexts of one degree: the input of a process.

    Parameters
    ----------
    points : array of shape (r, d)
    counts : integer array of shape (K, r)
        Trials per class, in units of `unit`.
    context : array of shape (r, p + 1) or None
        None if no trial was distorted; (r, 2^u (p + 1)) with u unknown rates.
    unit : float
    group : array of shape (r,) or None
    """

    points: Floats
    counts: Ints
    context: Floats | None
    unit: float
    group: Floats | None = None


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums of all trials, by place. `plus` returns new ones.

    Parameters
    ----------
    d, n_classes : int
    totals : Totals
        The number of trials, and how distorted they were.
    parts : dict of tuples of Part
        By number of coefficients of the context.
    is_apart : bool
        Whether rows are kept apart, even if they are equal.
    rates : tuple of Rate
        The unknown rates, sorted by name.
    known : array or None
        The distinct groups of all trials; None: they are collected from the parts.

    Examples
    --------
    >>> import numpy as np
    >>> from betafield.evidence.encode import counted
    >>> seen = np.array([[True, False, False], [False, True, True]])
    >>> some = Sums.of(np.array([[0.5], [0.2], [0.5]]), 2, counted(seen, None, None))
    >>> rows = some.plus(some).distinct().rows()
    >>> rows.points.tolist(), rows.counts.tolist()
    ([[0.2], [0.5]], [[0, 2], [2, 2]])
    """

    d: int
    n_classes: int
    totals: Totals = field(default_factory=Totals)
    parts: Mapping[int, tuple[Part, ...]] = field(default_factory=dict)
    is_apart: bool = False
    rates: tuple[Rate, ...] = ()
    known: Floats | None = None

    @classmethod
    def of(
        cls,
        points: Floats,
        n_classes: int,
        seen: Counted,
        group: Floats | None = None,
        is_apart: bool = False,
        family: ContextFamily | None = None,
    ) -> Sums:
        """Return the sums of trials at these points, one per row; rates may be unknown."""
        rows, counts, context, totals = seen
        if rows is not None:
            points, group = points[rows], None if group is None else group[rows]
        part = Part(points + 0.0, counts, _no_context(points, context), group)
        if family is None:
            parts = _by_kind(part)
        else:
            parts = _by_kind_of_family(
                part, family.corners if rows is None else family.corners[rows]
            )
        every = {kind: (part,) for kind, part in parts.items()}
        rates = () if family is None else family.rates
        return cls(points.shape[1], n_classes, totals, every, is_apart, rates)

    def plus(self, other: Sums) -> Sums:
        """Return the sums of both, which must store trials in the same way."""
        if self.size and other.size:
            _require_alike(self, other)
        is_apart = self.is_apart or other.is_apart
        rates = families.together(self.rates, other.rates)
        ours, theirs = self._under(rates), other._under(rates)
        kinds = sorted({*ours, *theirs})
        parts = {
            kind: _few((*ours.get(kind, ()), *theirs.get(kind, ())), is_apart) for kind in kinds
        }
        totals = self.totals.plus(other.totals)
        require_few(totals)
        # In a long stream, only the new trials are searched for groups.
        groups = np.union1d(self.groups, other.groups)
        return Sums(self.d, self.n_classes, totals, parts, is_apart, rates, groups)

    def _under(self, rates: tuple[Rate, ...]) -> Mapping[int, tuple[Part, ...]]:
        """Return all parts, with contexts at the corners of these rates."""
        if rates == self.rates:
            return self.parts
        return {
            kind: tuple(_widened(part, kind, self.rates, rates) for part in each)
            for kind, each in self.parts.items()
        }

    def distinct(self) -> Sums:
        """Return the same sums, sorted, each place once (or each row, if they are kept apart)."""
        join = _ordered if self.is_apart else _joined
        return dataclasses.replace(self, parts={k: (join(p),) for k, p in self.parts.items()})

    @property
    def is_grouped(self) -> bool:
        """Whether trials have groups."""
        return any(part.group is not None for each in self.parts.values() for part in each)

    def all_have(self, j: int) -> bool:
        """Return whether the contexts of all trials depend on the j-th unknown rate."""
        number = 2 ** len(self.rates)
        own = np.arange(number) >> j & 1 == 1
        for kind, each in self.parts.items():
            for part in each:
                if kind >= 0:
                    return False
                corners = part.context.reshape(part.size, number, -kind)
                if np.any((corners[:, own] == corners[:, ~own]).all(axis=(1, 2))):
                    return False
        return True

    @cached
    def groups(self) -> Floats:
        """The distinct groups of all trials, sorted."""
        if self.known is not None:
            return self.known
        each = [part.group for p in self.parts.values() for part in p if part.group is not None]
        return np.unique(np.concatenate(each)) if each else np.zeros(0)

    def trials(
        self, rates: Floats | None = None
    ) -> Iterator[tuple[Floats, Columns, Floats | None, Floats | None]]:
        """Yield all trials as points, trials per class, weights and contexts.

        Unknown rates are set to `rates`, or to the means of their priors if that is None.
        """
        rates = families.means(self.rates) if rates is None else rates
        for kind, each in self.parts.items():
            points, counts, context, _ = _concatenated(each)
            if kind < 0:
                context = families.at(context.reshape(len(points), -1, -kind), rates)
            among = context if context.shape[1] else None
            yield points, counts[: self.n_classes].astype(np.int64), None, among
            for k, fractions in enumerate(counts[self.n_classes :]):
                some = np.flatnonzero(fractions)
                columns = np.zeros((self.n_classes, len(some)), dtype=np.bool_)
                columns[k] = True
                weight = fractions[some] / FRACTIONS
                yield points[some], columns, weight, None if among is None else among[some]

    @property
    def size(self) -> int:
        """Number of rows."""
        return sum(part.size for each in self.parts.values() for part in each)

    def bounds(self) -> Floats:
        """Return the lowest and highest value of each feature (d, 2)."""
        every = [part.points for each in self.parts.values() for part in each]
        low = np.min([points.min(axis=0) for points in every], axis=0)
        high = np.max([points.max(axis=0) for points in every], axis=0)
        return np.stack([low, high], axis=1)

    def values(self, feature: int) -> Floats:
        """Return the distinct values of a feature, sorted."""
        every = [part.points[:, feature] for each in self.parts.values() for part in each]
        return np.unique(np.concatenate(every))

    def rows(self) -> Rows:
        """Return all trials, in any order, with contexts of one degree and fractions included."""
        parts = [_concatenated(each) for each in self.parts.values()]
        bits = self._bits(parts)
        if bits < WHOLE_BITS and any(len(part.counts) > self.n_classes for part in parts):
            # Rounding to coarser units needs the summed fractions of each place.
            parts = [_joined(each) for each in self.parts.values()]
        context = None if set(self.parts) <= {0} else self._contexts(parts)
        counts = _end_to_end([_in_units(p.counts, self.n_classes, bits) for p in parts], axis=1)
        points = _end_to_end([part.points for part in parts])
        group = _all_groups(parts)
        return Rows(points, counts, context, 2.0**-bits, group)

    def _contexts(self, parts: list[Part]) -> Floats:
        """Return the contexts of all parts at one degree; with unknown rates, at all corners."""
        degree, number = max(max(map(abs, self.parts)) - 1, 1), 2 ** len(self.rates)
        each = []
        for kind, part in zip(self.parts, parts, strict=True):
            if kind < 0:
                corners = part.context.reshape(part.size, number, -kind)
                each.append(bernstein.elevated(corners, degree).reshape(part.size, -1))
            else:
                each.append(np.tile(_raised(part, degree), (1, number)))
        return _end_to_end(each)

    def _bits(self, parts: list[Part]) -> int:
        """Return the resolution of counts in bits: 0, or up to 32 if there are fractions."""
        if all(len(part.counts) == self.n_classes for part in parts):
            return 0
        return max(0, min(WHOLE_BITS, MOST_BITS - int(self.totals.number()).bit_length()))


def _require_alike(ours: Sums, theirs: Sums) -> None:
    """Raise unless both have groups or neither has, and both store rows in the same way."""
    if ours.is_grouped != theirs.is_grouped:
        one, other = ("groups", "none") if theirs.is_grouped else ("none", "groups")
        raise refused(
            "groups",
            f"found {one} where the trials so far have {other}; all trials of a model need "
            "a group, or none, so fit all trials again",
        )
    if ours.is_apart != theirs.is_apart:
        raise refused(
            "overdispersion",
            "some rows were learned with it and some without, but all must be "
            "learned in the same way, so fit all trials again",
        )


def require_few(totals: Totals) -> None:
    """Raise if there are more trials than a process can distinguish in floating point."""
    if totals.number() > MOST_TRIALS:
        raise refused(
            "trials",
            f"they add up to {totals.number():g}; a process takes at most {MOST_TRIALS:g}, and "
            "windows take more, so give method='windows' or a bandwidth",
        )


def _no_context(points: Floats, context: Floats | None) -> Floats:
    return np.empty((len(points), 0)) if context is None else context


def _by_kind(part: Part) -> dict[int, Part]:
    """Return the trials of a part by the number of coefficients their contexts need."""
    if part.context.shape[1] == 0:
        return {0: part} if part.size else {}
    is_affine = contexts.is_affine(part.context)
    is_plain = bernstein.is_plain(part.context)
    # A list, not a dict, because the third kind may also have two coefficients.
    kinds: list[tuple[int, npt.NDArray[np.bool_], Any]] = [
        (0, is_plain, []),
        (2, is_affine & ~is_plain, [0, -1]),
        (part.context.shape[1], ~is_affine, slice(None)),
    ]
    return {kind: part.taken(some, columns) for kind, some, columns in kinds if some.any()}


def _by_kind_of_family(part: Part, corners: Floats) -> dict[int, Part]:
    """Do the same for trials with coefficients (r, 2^u, p + 1) at the corners of unknown rates.

    Contexts that are equal at all corners are known.
    """
    r, number, q = corners.shape
    is_known = (corners == corners[:, :1]).all(axis=(1, 2))
    lines = bernstein.is_line(np.ascontiguousarray(corners.reshape(-1, q)))
    is_affine = lines.reshape(r, number).all(axis=1)
    found = _by_kind(part._replace(context=corners[:, 0]).taken(is_known)) if is_known.any() else {}
    for some, columns in ((is_affine, [0, -1]), (~is_affine, range(q))):
        kept = some & ~is_known
        if kept.any():
            chosen = corners[kept][:, :, list(columns)].reshape(int(kept.sum()), -1)
            found[-len(columns)] = part.taken(kept, [])._replace(context=chosen)
    return found


def _widened(part: Part, kind: int, own: tuple[Rate, ...], every: tuple[Rate, ...]) -> Part:
    """Return a part with its contexts at the corners of more rates."""
    if kind >= 0:
        return part
    corners = part.context.reshape(part.size, 2 ** len(own), -kind)
    wide = families.widened(corners, own, every)
    return part._replace(context=wide.reshape(part.size, -1))


def _few(parts: tuple[Part, ...], is_apart: bool) -> tuple[Part, ...]:
    """Return parts, joined if they are many or if the later ones outgrow the first.

    So each row is moved a logarithmic number of times, and the memory for a stream is of the order
    of its distinct places.
    """
    is_due = len(parts) > MOST_PARTS or sum(p.size for p in parts[1:]) > parts[0].size
    join = _concatenated if is_apart else _joined
    return (join(parts),) if len(parts) > 1 and is_due else parts


def _joined(parts: tuple[Part, ...]) -> Part:
    """Return each place once, sorted."""
    whole = _concatenated(parts)
    order, starts = groups(_keys(whole))
    summed = np.add.reduceat(whole.counts[:, order], starts, axis=1, dtype=np.int64)
    return whole.taken(order[starts])._replace(counts=summed)


def _ordered(parts: tuple[Part, ...]) -> Part:
    """Return all rows, sorted."""
    whole = _concatenated(parts)
    return whole.taken(np.lexsort((*whole.counts[::-1], *_keys(whole)[::-1])))


def _keys(part: Part) -> tuple[Floats, ...]:
    """Return what distinguishes places."""
    group = () if part.group is None else (part.group,)
    return (*part.points.T, *part.context.T, *group)


def _concatenated(parts: tuple[Part, ...]) -> Part:
    if len(parts) == 1:
        return parts[0]
    width = max(len(part.counts) for part in parts)
    counts = [np.pad(p.counts, [(0, width - len(p.counts)), (0, 0)]) for p in parts]
    return Part(
        np.concatenate([part.points for part in parts]),
        np.concatenate(counts, axis=1),
        np.concatenate([part.context for part in parts]),
        _all_groups(parts),
    )


def _all_groups(parts: Sequence[Part]) -> Floats | None:
    """Return the groups of all parts; None if trials have no groups."""
    each = [part.group for part in parts if part.group is not None]
    return _end_to_end(each) if each else None


def _end_to_end(arrays: Sequence[npt.NDArray[Any]], axis: int = 0) -> npt.NDArray[Any]:
    """Return arrays one after the other; a single one is not copied."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=axis)


def _raised(part: Part, degree: int) -> Floats:
    """Return contexts in the coefficients of a higher degree."""
    context = part.context
    if context.shape[1] == 0:
        context = np.broadcast_to(bernstein.PLAIN, (part.size, 2))
    return bernstein.elevated(context, degree)


def _in_units(counts: npt.NDArray[Any], n_classes: int, bits: int) -> Ints:
    """Return trials per class in units of 2^−bits."""
    whole = np.left_shift(counts[:n_classes], bits, dtype=np.int64)
    if len(counts) > n_classes:
        whole += np.rint(counts[n_classes:] * (2.0**bits / FRACTIONS)).astype(np.int64)
    return np.asarray(whole)
