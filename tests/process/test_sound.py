"""What a file may say was found: only what can be used."""

import numpy as np
import pytest

from betafield.process.found import NONE, Component, Found
from betafield.process.sound import require_sound


def found(**changes):
    """Return one process of two features, with some values changed."""
    component = Component("logit", None, np.log([1.0, 0.5, 0.5]), (), None, 0.0)
    return Found((component._replace(**changes),), (), NONE)


@pytest.mark.parametrize("correlation", [0.0, 1e-6, 0.003, 0.4])
def test_correlations_that_can_be_used_are_accepted(correlation):
    require_sound(found(correlation=correlation), 2)


# 1/ρ − 1 overflows for the first one, and every answer would be NaN.
@pytest.mark.parametrize("correlation", [5e-324, 1e-9, -0.1, 1.0, np.nan, np.inf])
def test_correlations_that_cannot_be_used_are_refused(correlation):
    with pytest.raises(ValueError, match="is not a process"):
        require_sound(found(correlation=correlation), 2)


def test_a_quadratic_process_has_one_kernel():
    require_sound(found(form="quadratic"), 2)
    with pytest.raises(ValueError, match="is not a process"):
        require_sound(found(form="quadratic", smoothness=2.5), 2)


@pytest.mark.parametrize("form", ["additive", "cubic", ""])
def test_forms_that_two_features_cannot_have_are_refused(form):
    with pytest.raises(ValueError, match="is not a process"):
        require_sound(found(form=form), 2)
