"""Processes that are adjusted to other trials stay what they are."""

import numpy as np
from scipy.special import expit

from betafield.process.basis import ADDITIVE, FREE
from betafield.process.model import Sums, find
from betafield.process.refitting import refitted

CUBE = np.array([[0.0, 1.0]] * 3)


def nearly_additive(t, seed):
    """Return sums of trials that do not decide whether three features interact."""
    rng = np.random.default_rng([seed, t])
    x = rng.random((t, 3))
    y = rng.random(t) < expit(np.sin(4.0 * x).sum(axis=1) - 1.2)
    return Sums(x, np.ones(t, dtype=np.int64), y.astype(np.int64))


def kinds_of(found):
    return {(one.link, one.form) for one in found.components}


def test_processes_of_different_forms_are_kept_as_such():
    found = find(nearly_additive(500, 0), CUBE)
    assert {FREE, ADDITIVE} <= {one.form for one in found.components}
    again = refitted(nearly_additive(600, 1), CUBE, found)
    assert kinds_of(again) == kinds_of(found)
    old, new = (np.array([one.theta for one in each.components]) for each in (found, again))
    assert not np.array_equal(old, new)
