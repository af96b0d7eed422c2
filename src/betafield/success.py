"""Which class is the success: the one to which π refers.

Fields order their two classes as failure, success. Counts, windows, contexts and posteriors then
refer to the second class, whatever its label is. scikit-learn's `classes_` and the columns of
`predict_proba` stay sorted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from betafield import checks
from betafield.refusals import refused

Labels = npt.NDArray[Any]


def in_order(classes: Labels, pos_label: Any = None) -> Labels:
    """Return classes with the success last: the second of two, unless `pos_label` names the other.

    Examples
    --------
    >>> in_order(np.array(["correct", "incorrect"]), "correct").tolist()
    ['incorrect', 'correct']
    """
    if pos_label is None:
        return classes
    if len(classes) != 2:
        raise refused(
            "pos_label",
            f"found {checks.spelled(pos_label)} where there are {len(classes)} classes; "
            "a success is one of two, so leave pos_label out (every class then has a probability), "
            "or learn from y == label",
        )
    is_it = np.array([_is(label, pos_label) for label in classes.tolist()])
    known = checks.spelled(classes.tolist())
    checks.require(is_it.any(), "pos_label", pos_label, f"the classes are {known}")
    return classes if is_it[1] else classes[::-1]


def with_the_other(classes: Labels) -> Labels:
    """Return 0 and 1 if there is one class and it is either of them; otherwise the classes given.

    Examples
    --------
    >>> with_the_other(np.array([True])).tolist()
    [False, True]
    >>> with_the_other(np.array(["no"])).tolist()
    ['no']
    """
    if len(classes) != 1 or isinstance(classes[0], str | bytes) or classes[0] not in (0, 1):
        return classes
    return np.array([0, 1]).astype(type(classes[0]))


def require_label(pos_label: Any) -> None:
    """Raise unless it can be a class: text, a boolean or a number."""
    kinds = str | bytes | bool | np.bool_
    is_label = pos_label is None or isinstance(pos_label, kinds) or checks.is_number(pos_label)
    rule = "one of the two classes is needed, or None for the second of them"
    checks.require(is_label, "pos_label", pos_label, rule)


def require_same(classes: Labels, pos_label: Any) -> None:
    """Raise if this would change which class is the success, the second of `classes`."""
    asked = in_order(np.sort(classes), pos_label)
    if not np.array_equal(asked, classes):
        raise refused(
            "pos_label",
            f"found {checks.spelled(pos_label)}; the trials so far were learned with "
            f"{classes.tolist()[1]!r} as the success, so fit all trials again",
        )


def require_true(pos_label: Any) -> None:
    """Raise unless the success can be called True, as decisions call it."""
    if not (pos_label is None or _is(True, pos_label)):
        raise refused(
            "model",
            f"found pos_label={checks.spelled(pos_label)} before the first trial; outcomes "
            "are True for a success and False otherwise, so leave pos_label out",
        )


def of_counts(pos_label: Any = None) -> Labels:
    """Return the classes of binomial rows, 0 and 1, with 1 as the success."""
    if not (pos_label is None or _is(1, pos_label)):
        raise refused(
            "pos_label",
            f"found {checks.spelled(pos_label)}; counts have the classes 0 and 1, and "
            "`successes` are those of class 1, so leave it out",
        )
    return np.array([0, 1])


def _is(label: Any, other: Any) -> bool:
    """Return whether two labels are the same; text never equals a number."""
    is_text = isinstance(label, str | bytes), isinstance(other, str | bytes)
    return is_text[0] == is_text[1] and bool(label == other)


def by_class(classes: Labels, mean: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the probabilities (m, K) of sorted classes; of two, `mean` (m,) is the success's.

    Examples
    --------
    >>> by_class(np.array(["incorrect", "correct"]), np.array([0.75])).tolist()
    [[0.75, 0.25]]
    """
    if mean.ndim > 1:
        return mean
    both = np.stack([1.0 - mean, mean], axis=1)
    return np.asarray(both[:, np.argsort(classes)])
