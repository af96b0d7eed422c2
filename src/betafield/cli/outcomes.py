"""Which of two outcomes is the success: as specified, or as unmistakable words suggest.

A guess is always printed, and never based on the alphabet, because to read a probability as that of
the other outcome is the worst mistake that a file can lead to. If the words are ambiguous, nothing
is learned until the user specifies the success.
"""

from __future__ import annotations

from typing import Any

from betafield.cli.spelling import fraction
from betafield.cli.usage import UsageError

# Words for events that happened or did not, whatever the other outcome is called.
SURE = (
    frozenset(("yes", "true", "success", "correct", "positive", "dead", "died", "late")),
    frozenset(("no", "false", "incorrect", "wrong", "negative", "on time")),
)
# Words with other meanings too: they count only if both outcomes are in these lists.
LIKELY = (
    frozenset(("1", "y", "t", "right", "hit", "detected", "seen", "heard", "pos", "pass", "win"))
    | {"won", "delayed", "killed", "present"},
    frozenset(("0", "-1", "n", "f", "failure", "miss", "missed", "alive", "survived", "neg"))
    | {"fail", "loss", "lost", "early", "absent"},
)
BOTH = (SURE[0] | LIKELY[0], SURE[1] | LIKELY[1])
# Prefixes that negate a word.
NOT = ("not ", "no ", "non ", "non", "un", "in")


def success(outcome: str, classes: list[Any], said: str | None) -> tuple[Any, str | None]:
    """Return the label of the success, and a message if it was guessed.

    It is None for classes 0 and 1, where 1 is no guess, and for three or more classes.

    Examples
    --------
    >>> success("answer", ["correct", "incorrect"], None)
    ('correct', "success 'correct', by its name; choose the other with --success")
    >>> success("answer", [0, 1], "0")
    (0, None)
    """
    if said is not None:
        return _said(outcome, classes, said), None
    if len(classes) != 2 or classes == [0, 1]:
        return None, None
    found = guess(classes)
    if found is None:
        shown = " and ".join(repr(label) for label in classes)
        raise UsageError(
            f"--success: found {shown} in column {outcome!r}, and neither is clearly the success; "
            f"say which of them is, such as --success {str(classes[1])!r}"
        )
    return found, f"success {found!r}, by its name; choose the other with --success"


def guess(classes: list[Any]) -> Any:
    """Return which of two labels is the success; None if the words are ambiguous.

    Examples
    --------
    >>> guess(["late", "on time"]), guess(["seen", "unseen"]), guess([0, 1])
    ('late', 'seen', 1)
    >>> guess(["left", "right"]), guess([1, 2])
    (None, None)
    """
    words = [_word(label) for label in classes]
    sure, likely = ([_score(word, lists) for word in words] for lists in (SURE, BOTH))
    for label, word, other in zip(classes, words, words[::-1], strict=True):
        if other in [prefix + word for prefix in NOT]:
            return label
    scores = likely if all(likely) else sure
    return None if scores[0] == scores[1] else classes[scores.index(max(scores))]


def _score(word: str, lists: tuple[frozenset[str], frozenset[str]]) -> int:
    """Return 1 for what happened, −1 for what did not, and 0 for other words."""
    return int(word in lists[0]) - int(word in lists[1])


def _word(label: Any) -> str:
    """Return a label as spelled in the lists."""
    word = str(label).strip().lower()
    number = fraction(word)
    return word.replace("_", " ").replace("-", " ") if number is None else f"{number:g}"


def _said(outcome: str, classes: list[Any], said: str) -> Any:
    """Return the label that a text denotes."""
    for label in classes:
        if said == str(label) or (not isinstance(label, str) and _word(said) == _word(label)):
            return label
    known = ", ".join(map(str, classes))
    raise UsageError(f"--success: found {said!r}; column {outcome!r} has {known}")
