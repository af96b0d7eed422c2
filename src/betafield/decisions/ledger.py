"""What was asked for, and how it ended: the states of trials and of pulls.

asked for ──► pending ──► told        a failure or a success, once
└──► abandoned   given up
"""

from __future__ import annotations

from collections.abc import Sequence

PENDING, FAILURE, SUCCESS, ABANDONED = -1, 0, 1, 2
STATES = {PENDING: "pending", FAILURE: "told", SUCCESS: "told", ABANDONED: "abandoned"}


class Ledger:
    """How each of the things asked for ended, by number.

    Parameters
    ----------
    ends : sequence of int
        PENDING, FAILURE, SUCCESS or ABANDONED for each of those asked for so far.

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
        # Asked for with every ask, so they are kept apart: the oldest first.
        self._pending = {n: None for n, end in enumerate(self._ends) if end == PENDING}
        self._n_abandoned = self._ends.count(ABANDONED)

    def __len__(self) -> int:
        return len(self._ends)

    @property
    def ends(self) -> list[int]:
        """How each of them ended, if it has."""
        return list(self._ends)

    @property
    def pending(self) -> list[int]:
        """The numbers of those that have not ended."""
        return list(self._pending)

    def ask(self) -> int:
        """Add one that is pending, and return its number."""
        number = len(self._ends)
        self._ends.append(PENDING)
        self._pending[number] = None
        return number

    def end(self, numbers: Sequence[int], ends: Sequence[int]) -> None:
        """Say how some that are pending have ended."""
        for number, end in zip(numbers, ends, strict=True):
            del self._pending[number]
            self._ends[number] = end
            self._n_abandoned += end == ABANDONED

    def require_pending(self, name: str, number: int) -> int:
        """Return the number of one that is pending; errors name the argument."""
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
        """Return whether it was a success; None unless that was told."""
        return bool(self._ends[number]) if self.state(number) == "told" else None

    def counts(self) -> dict[str, int]:
        """Return how many are in each state."""
        pending, abandoned = len(self._pending), self._n_abandoned
        told = len(self) - pending - abandoned
        return {"told": told, "pending": pending, "abandoned": abandoned}
