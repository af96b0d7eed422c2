"""Models whose forests build separate indexes even for small data."""

from dataclasses import replace

import numpy as np
import pytest

from betafield import SmoothBetaClassifier, learning
from betafield.options import Options
from betafield.trials import Features
from betafield.windows import Forest
from betafield.windows.forest import Limits

SMALL = Limits(small=4, batch=8, waiting=2)
ANY_LIMITS = pytest.mark.parametrize("limits", [None, SMALL], ids=["as shipped", "small"])


def empty(limits, classes, **options):
    """Return a model of windows without trials whose forest has these limits.

    None: an unfitted model, as users make it.
    """
    if limits is None:
        return SmoothBetaClassifier(**options)
    asked = Options(**options)
    d = len(asked.bounds)
    field = learning.begun(asked, Features(d), np.asarray(classes), np.zeros((1, d)))
    return SmoothBetaClassifier.of(replace(field, windows=Forest(d, asked.metric, limits)))
