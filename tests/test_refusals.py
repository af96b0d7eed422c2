"""Errors about arguments know what they are about, wherever they go."""

import pickle

import numpy as np
import pytest

from betafield import SmoothBetaClassifier, checks, contexts, persistence
from betafield.refusals import Refused, about, mistyped, refused


@pytest.mark.parametrize(
    ("call", "argument", "row", "part"),
    [
        (lambda: checks.positive("n", -1), "n", None, ""),
        (lambda: checks.finite("x", [1.0, np.inf]), "x", 1, ""),
        (lambda: checks.finite("x", [[1.0, 2.0], [3.0, np.nan]]), "x", 1, "column 1"),
        (lambda: checks.instance("space", 3, dict, "a mapping is needed"), "space", None, ""),
        (lambda: contexts.guess_lapse([0.5, 0.5], [0.1, 0.7]), "guess and lapse", 1, ""),
        (lambda: persistence.file_name(3), "path", None, ""),
        (lambda: persistence.file_name(""), "path", None, ""),
        (
            lambda: SmoothBetaClassifier(monotonic_cst=[2]).fit([[0.0], [1.0]], [0, 1]),
            "monotonic_cst",
            None,
            "feature 0",
        ),
    ],
)
def test_errors_say_what_they_are_about(call, argument, row, part):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    found = about(caught.value)
    assert (found.argument, found.row, found.part) == (argument, row, part)
    assert str(caught.value) == str(found)


@pytest.mark.parametrize(
    "error", [refused("y", "found 2", 3, "column 1"), mistyped("y", "found 2")]
)
def test_what_errors_are_about_reaches_other_processes(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), about(again)) == (type(error), str(error), about(error))


def test_errors_of_others_are_about_nothing():
    assert about(ValueError("y row 3: found 2")) is None


def test_a_note_is_kept_beside_what_the_system_says():
    error = Refused("path", "found 'a'").on(OSError(2, "path: found 'a'"))
    assert (error.errno, about(error).argument) == (2, "path")
