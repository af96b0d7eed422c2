"""Cross-validation folds, in which each trial is held out once."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import check_cv

from betafield import checks

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[Any]
Rows = npt.NDArray[np.intp]
Folds = list[tuple[Rows, Rows]]  # per fold: the training rows and the held-out rows

FOLDS = 5


def divided(
    cv: Any, X: Any, y: Labels, weight: Floats | None, split_params: dict[str, Any]
) -> Folds:
    """Return folds that hold out each trial once and train on every class.

    Parameters
    ----------
    cv : int, splitter, iterable of (train, test) or None
        None: as many as the rarest class has trials, but at least 2 and at most 5.
    X, y : arrays of t rows
    weight : array of shape (t,) or None
        Trials of weight 0 are ignored.
    split_params : dict
        Passed to the `split` method of a splitter.

    Examples
    --------
    >>> y = np.array(["no", "yes", "no", "yes"])
    >>> [test.tolist() for _, test in divided(None, np.zeros((4, 1)), y, None, {})]
    [[0, 1], [2, 3]]
    """
    classes, number = np.unique(y, return_inverse=True)
    present = np.ones(len(y)) if weight is None else weight > 0
    counts = np.bincount(number, present).astype(int)
    if cv is None:
        cv = max(2, min(FOLDS, counts.min()))
    folds = _split(cv, X, y, split_params)
    for fold, (train, _) in enumerate(folds):
        seen = np.bincount(number[train], present[train], len(classes))
        if not seen.all():
            lost = int(np.argmin(seen))
            raise ValueError(
                f"y: class {classes.tolist()[lost]!r} has {counts[lost]} trials of weight above 0, "
                f"none of them outside fold {fold} of cv; the classifier must see every class"
            )
    _require_held_out_once(folds, len(y))
    return folds


def _split(cv: Any, X: Any, y: Labels, split_params: dict[str, Any]) -> Folds:
    """Return the rows (train, test) of each fold."""
    if isinstance(cv, Integral):
        cv = checks.whole("cv", cv, 2, len(y))
    rows = np.arange(len(y))  # turns masks and negative indices into row numbers
    try:
        splits = check_cv(cv, y, classifier=True).split(X, y, **split_params)
        return [(rows[train], rows[test]) for train, test in splits]
    except (IndexError, TypeError, ValueError) as error:
        if isinstance(error, ValueError) and (isinstance(cv, int) or hasattr(cv, "split")):
            raise ValueError(f"cv: {error}") from error  # scikit-learn says what is wrong
        rule = (
            "a number of folds, a splitter or the rows (train, test) of each fold are needed, "
            f"from 0 to {len(y) - 1}"
        )
        raise ValueError(f"cv: found {checks.spelled(cv)}; {rule}") from error


def _require_held_out_once(folds: Folds, n_rows: int) -> None:
    """Raise for the first trial that is not held out exactly once."""
    times = np.zeros(n_rows, dtype=int)
    for _, test in folds:
        np.add.at(times, test, 1)
    if np.any(times != 1):
        row = int(np.argmax(times != 1))
        raise ValueError(
            f"cv: row {row} is held out {times[row]} times; every trial must be held out once"
        )
