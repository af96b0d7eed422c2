"""The states of trials and pulls: what was asked for, and how it ended.

asked for ──► pending ──► told        a failure or a success, once
└──► abandoned   given up
"""

from __future__ import annotations

from collections.abc import Sequence

PENDING, FAILURE, SUCCESS, ABANDONED = -1, 0, 1, 2
STATES = {PENDING: "pending", FAILURE: "told", SUCCESS: "told", ABANDONED: "abandoned"}


class Ledger:
    """The state of every item asked for, by number.

    Parameters
    ----------
    ends : sequence of int
        PENDING, FAILURE, SUCCESS or ABANDONED for each item so far.

    Examples
    --------
    >>> ledger = Ledger()
    >>> first, second = ledger.ask(), ledger.ask()
    >>> ledger.end([first], [SUCCESS])
    >>> ledger.pending, ledger.counts()
    ([1], {'told': 1, 'pending': 1, 'abandoned': 0})
    """

    def __init__(self, ends: Sequence[int] = ()) -> None:
        self._ends = list(ends)
        # Every ask needs the pending ones, so they are kept separately, oldest first.
        self._pending = {n: None for n, end in enumerate(self._ends) if end == PENDING}
        self._n_abandoned = self._ends.count(ABANDONED)

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def ends(self) -> list[int]:
        """The state of each item."""
        return list(self._ends)

    @property
    def pending(self) -> list[int]:
        """The numbers of the pending items."""
        return list(self._pending)

    def ask(self) -> int:
        """Add a pending item and return its number."""
        number = len(self._ends)
        self._ends.append(PENDING)
        self._pending[number] = None
        return number

    def end(self, numbers: Sequence[int], ends: Sequence[int]) -> None:
        """Record how some pending items ended."""
        for number, end in zip(numbers, ends, strict=True):
            del self._pending[number]
            self._ends[number] = end
            self._n_abandoned += end == ABANDONED

    def require_pending(self, name: str, number: int) -> int:
        """Return `number` if it is pending, otherwise raise an error that names the argument."""
        state = self.state(number)
        if state != "pending":
            raise ValueError(
                f"{name}: number {number} was {state} before; only what is pending can be told or "
                "abandoned, and nothing was counted"
            )
        return number

    def state(self, number: int) -> str:
        """Return "pending", "told" or "abandoned"."""
        return STATES[self._ends[number]]

    def outcome(self, number: int) -> bool | None:
        """Return whether it was a success; None if it was not told."""
        return bool(self._ends[number]) if self.state(number) == "told" else None

    def counts(self) -> dict[str, int]:
        """Return how many are in each state."""
        pending, abandoned = len(self._pending), self._n_abandoned
        told = len(self) - pending - abandoned
        return {"told": told, "pending": pending, "abandoned": abandoned}
