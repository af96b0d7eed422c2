"""The state of a study in memory: a function of its definition and its rows.

Every change is recorded in `Writes` as it is made. If they cannot be made durable, the state is
discarded and rebuilt from the rows.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from betafield.decisions.experiment.experiment import UNASKED
from betafield.decisions.experiment.replaying import Replay
from betafield.server.definitions import Definition
from betafield.server.problems import Problem, conflict, missing, refused
from betafield.server.storage import Writes
from betafield.server.tables import ABANDONED, EXPIRED, PENDING, TOLD

# Prefix of the key of an outcome that arrived after its trial had expired.
LATE = "late outcome of trial "
# Most trials of a study that may be pending at once: an ask takes longer the more there are.
MOST_PENDING = 10_000


class Answered(NamedTuple):
    """The answer to a request with a key: `n` trials from `first` on."""

    request: str
    first: int
    n: int


@dataclass
class State:
    """A study up to its last event, which has the number `head`."""

    study: int
    definition: Definition
    replay: Replay
    head: int = 0
    stopped: bool = False
    keys: dict[str, Answered] = field(default_factory=dict)
    asked_at: dict[int, float] = field(default_factory=dict)
    participants: dict[int, str] = field(default_factory=dict)
    contexts: dict[int, Any] = field(default_factory=dict)
    expired: set[int] = field(default_factory=set)
    codes: dict[str, int] = field(default_factory=dict)
    writes: Writes = field(default_factory=Writes)
    most_pending: int = MOST_PENDING

    @classmethod
    def begun(cls, study: int, definition: Definition) -> State:
        """Return a study before its first trial."""
        return cls(study, definition, Replay(definition.experiment()))

    # From rows.

    def follow(self, rows: Sequence[Any], keys: Iterable[Any]) -> None:
        """Apply the events since `head`, given rows ordered by number.

        All asks are applied first, then all ends. The experiment is the same as if they came in
        order, because the points of asks are not computed here but read from the rows.
        """
        head = self.head
        self._follow_asked([row for row in rows if row.asked_seq > head])
        ended = [row for row in rows if row.ended_seq is not None and row.ended_seq > head]
        self._follow_ended(sorted(ended, key=attrgetter("ended_seq", "id")))
        for each in keys:
            self.keys[each.key] = Answered(each.request, each.first, each.n)
            self.head = max(self.head, each.seq)

    def _follow_asked(self, rows: Sequence[Any]) -> None:
        due = range(len(self.replay), len(self.replay) + len(rows))
        for number, row in zip(due, rows, strict=True):
            if number != row.id:
                raise ValueError(f"rows: found trial {row.id} where {number} is due")
            self._remember(number, row.participant, row.asked_at)
            self.head = max(self.head, row.asked_seq)
        self.replay.add_all(_points([row.point for row in rows]), [row.why for row in rows])

    def _follow_ended(self, rows: Sequence[Any]) -> None:
        ends = []
        for row in rows:
            del self.asked_at[row.id]
            given = None if row.context is None else json.loads(row.context)
            if given is not None:
                self.contexts[row.id] = given
            if row.state == EXPIRED:
                self.expired.add(row.id)
            outcome = bool(row.success) if row.state == TOLD else None
            ends.append((row.id, outcome, _flat(self.definition.context(given))))
            self.head = max(self.head, row.ended_seq)
        self.replay.end_all(ends)

    def _remember(self, number: int, participant: str | None, now: float) -> None:
        self.asked_at[number] = now
        if participant is not None:
            self.participants[number] = participant
            self.codes.setdefault(participant, len(self.codes))

    def _told(self, number: int, success: bool, given: Any, context: Any) -> None:
        self.replay.end_all([(number, success, _flat(context))])
        if given is not None:
            self.contexts[number] = given

    # What clients do.

    def ask(
        self, n: int, fixed: dict[str, Any], participant: str | None, key: str | None
    ) -> dict[str, Any]:
        """Return the n trials to make next; for a known key, those of the first time."""
        request = json.dumps(["ask", n, fixed, participant], sort_keys=True)
        known = self._known(key, request)
        if known is None:
            if self.stopped:
                raise conflict("study: it is stopped; an owner can resume it")
            known = self._asked_now(n, fixed, participant, key or uuid.uuid4().hex, request)
        key, answered = known
        numbers = range(answered.first, answered.first + answered.n)
        return {
            "key": key,
            "trials": [self._trial(number) for number in numbers],
            "enough": self.definition.enough(self.replay.counts["told"], False),
        }

    def _known(self, key: str | None, request: str) -> tuple[str, Answered] | None:
        """Return the earlier answer to this request; raise if the key belongs to another one."""
        if key is None or key not in self.keys:
            return None
        if self.keys[key].request != request:
            raise conflict(f"key: found {key!r}, which belongs to another request")
        return key, self.keys[key]

    def _asked_now(
        self, n: int, fixed: dict[str, Any], participant: str | None, key: str, request: str
    ) -> tuple[str, Answered]:
        now = time.time()
        self.expire(now)
        self._require_room(n)
        first = len(self.replay)
        try:
            self.replay.ask(n, self._with_participant(fixed, participant))
        except (ValueError, TypeError) as error:
            raise refused(error) from error
        for number in range(first, first + n):
            self.head += 1
            self._remember(number, participant, now)
            self._write_asked(number, participant, now)
        return key, self._write_key(key, request, first, n)

    def _with_participant(self, fixed: dict[str, Any], participant: str | None) -> dict[str, Any]:
        """Return the fixed values, with the participant if the study observes that."""
        if not self.definition.has_participants or "participant" in fixed or participant is None:
            return fixed
        space = self.definition.space
        side = space.sides[space.names.index("participant")]
        if side.levels:
            return {**fixed, "participant": side.named(participant)}
        return {**fixed, "participant": side.low + self.codes.get(participant, len(self.codes))}

    def tell(self, number: int, success: bool, given: Any) -> dict[str, Any]:
        """Record the outcome of a trial; telling it again gets the same answer."""
        self._require_known(number)
        try:
            context = self.definition.outcome(success, given)
        except (ValueError, TypeError) as error:
            raise refused(error) from error
        if number in self.expired:
            return self._told_late(number, success, given)
        state = self.replay.state(number)
        if state == "abandoned":
            raise conflict(f"trial {number}: it was abandoned, and nothing was recorded")
        if state == "told":
            self._require_same(number, success, given)
        else:
            self.head += 1
            del self.asked_at[number]
            self._told(number, success, given, context)
            self._write_end(number, TOLD, success, given)
        return {"id": number, "state": "told", "success": success}

    def _require_same(self, number: int, success: bool, given: Any) -> None:
        first = self.replay.outcome(number), self.contexts.get(number)
        if first != (success, given):
            raise conflict(
                f"trial {number}: it was told before, {_outcome(*first)}, which stands; "
                f"found {_outcome(success, given)}"
            )

    def _told_late(self, number: int, success: bool, given: Any) -> dict[str, Any]:
        """Record the outcome of an expired trial as that of a new trial at the same point."""
        who = self.participants.get(number)
        point = self.replay.point(number)
        key = f"{LATE}{number}"
        if key in self.keys:
            self._require_same(self.keys[key].first, success, given)
        told = self.add(point, success, given, who, key)
        return {"id": number, "state": "told", "success": success, "recorded_as": told["id"]}

    def add(
        self, values: Any, success: bool, given: Any, participant: str | None, key: str | None
    ) -> dict[str, Any]:
        """Record a trial that was not asked for."""
        request = json.dumps(["tell", values, success, given, participant], sort_keys=True)
        known = self._known(key, request)
        if known is None:
            try:
                row = self.replay.checked_row(values)
                context = self.definition.outcome(success, given)
            except (ValueError, TypeError) as error:
                raise refused(error) from error
            known = self._added(row, success, given, context, participant, key, request)
        _, answered = known
        return {**self._trial(answered.first), "state": "told", "success": success}

    def _added(
        self,
        row: Any,
        success: bool,
        given: Any,
        context: Any,
        participant: str | None,
        key: str | None,
        request: str,
    ) -> tuple[str, Answered]:
        self.head += 1
        (number,) = self.replay.add_all([row], [UNASKED])
        now = time.time()
        self._remember(number, participant, now)
        del self.asked_at[number]
        self._told(number, success, given, context)
        self._write_asked(number, participant, now)
        self.writes.asked[-1] |= self._end(TOLD, success, given)
        key = key or uuid.uuid4().hex
        return key, self._write_key(key, request, number, 1)

    def abandon(self, number: int) -> dict[str, Any]:
        """Record that a trial will not be made; repeating this gets the same answer."""
        self._require_known(number)
        state = self.replay.state(number)
        if state == "told":
            raise conflict(f"trial {number}: its outcome is already recorded and stays as it is")
        if state == "pending":
            self.head += 1
            del self.asked_at[number]
            self.replay.end_all([(number, None, None)])
            self._write_end(number, ABANDONED, None, None)
        return {"id": number, "state": "abandoned"}

    def expire(self, now: float) -> int:
        """Give up trials that have been pending for too long, and return their number."""
        limit = now - self.definition.pending_seconds
        late = [number for number, at in self.asked_at.items() if at < limit]
        for number in late:
            self.head += 1
            del self.asked_at[number]
            self.replay.end_all([(number, None, None)])
            self.expired.add(number)
            self._write_end(number, EXPIRED, None, None)
        return len(late)

    def stop(self, stopped: bool) -> dict[str, Any]:
        """Stop or resume a study."""
        if stopped != self.stopped:
            self.head += 1
            self.stopped = self.writes.stopped = stopped
        return {"name": self.definition.name, "stopped": self.stopped}

    def taken(self) -> Writes:
        """Return the changes to make durable, and forget them here."""
        writes, self.writes = self.writes, Writes()
        return writes

    # Inside.

    def _require_known(self, number: int) -> None:
        if not 0 <= number < len(self.replay):
            raise missing(
                f"trial: found number {number}; trials of this study so far: {len(self.replay)}, "
                "numbered from 0"
            )

    def _require_room(self, n: int) -> None:
        pending = self.replay.counts["pending"]
        if pending + n > self.most_pending:
            raise conflict(
                f"study: {pending:,} of its trials are pending, and at most {self.most_pending:,} "
                "may be; tell or abandon some, or wait until they time out"
            )

    def _trial(self, number: int) -> dict[str, Any]:
        replay = self.replay
        return {"id": number, "values": replay.point(number), "why": replay.why(number)}

    def _write_asked(self, number: int, participant: str | None, now: float) -> None:
        self.writes.asked.append(
            {
                "study": self.study,
                "id": number,
                "point": json.dumps(self.replay.row(number).tolist()),
                "why": self.replay.why(number),
                "participant": participant,
                "asked_seq": self.head,
                "asked_at": now,
                "state": PENDING,
                "success": None,
                "context": None,
                "ended_seq": None,
                "ended_at": None,
            }
        )

    def _write_end(self, number: int, state: int, success: bool | None, given: Any) -> None:
        of = {"of_study": self.study, "of_id": number}
        self.writes.ended.append(of | self._end(state, success, given))

    def _end(self, state: int, success: bool | None, given: Any) -> dict[str, Any]:
        return {
            "state": state,
            "success": success,
            "context": None if given is None else json.dumps(given),
            "ended_seq": self.head,
            "ended_at": time.time(),
        }

    def _write_key(self, key: str, request: str, first: int, n: int) -> Answered:
        answered = self.keys[key] = Answered(request, first, n)
        row = {"study": self.study, "key": key, "seq": self.head, **answered._asdict()}
        self.writes.keys.append(row)
        return answered


def _points(texts: Sequence[str]) -> list[Any]:
    """Return points from their JSON, parsed all at once.

    Examples
    --------
    >>> _points(["[0.5, 1.0]", "[2.0, 3.0]"])
    [array([0.5, 1. ]), array([2., 3.])]
    """
    return list(np.array(json.loads(f"[{','.join(texts)}]"), dtype=np.float64))


def _outcome(success: bool | None, given: Any) -> str:
    """Return an outcome in words.

    Examples
    --------
    >>> _outcome(True, "two"), _outcome(False, None)
    ('a success under context two', 'a failure without a context')
    """
    under = "without a context" if given is None else f"under context {given}"
    return f"a {'success' if success else 'failure'} {under}"


def _flat(context: Any) -> Any:
    return context.reshape(-1) if isinstance(context, np.ndarray) else context


__all__ = ["Problem", "State"]
