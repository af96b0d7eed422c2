"""What is refused: errors that say so, and models that stay as they were."""

import contextlib

import numpy as np
import pytest

from betafield import SmoothBetaClassifier

T = 8
X = np.column_stack([np.linspace(0, 1, T), np.linspace(1, 0, T) ** 2])
Y = np.array([0, 1, 0, 1, 1, 0, 1, 1])


def make(**options):
    return SmoothBetaClassifier(**{"bandwidth": 0.3, "bounds": [(0, 1)] * 2, **options})


@contextlib.contextmanager
def refused(model, error, *said, knowledge):
    """Expect the error with all of these words, and all that is known as it was before."""
    before = knowledge(model)
    with pytest.raises(error) as caught:
        yield
    message = str(caught.value)
    for words in said:
        assert words in message, message
    for noise in ("np.int64(", "np.float64(", "np.str_("):
        assert noise not in message, message
    assert knowledge(model) == before
