"""Measured coverage, against known values."""

import numpy as np
import pytest
from scipy import stats

from betafield import SmoothBetaClassifier, contexts
from betafield.testing import coverage


@pytest.mark.long
def test_bands_hold_at_every_level():
    for d, level in [(1, 0.95), (1, 0.6), (2, 0.8)]:
        found = coverage(
            lambda X: 0.5 + 0.3 * np.sin(4 * X[:, 0]),
            d,
            t=150,
            runs=60,
            lipschitz=1.2,
            level=level,
            points=20,
            model=SmoothBetaClassifier("theory", bounds=[(0, 1)] * d),
            random_state=0,
        )
        assert found.pointwise.share >= level
        assert found.simultaneous.share >= level
        assert found.simultaneous.width > found.pointwise.width > found.credible.width


@pytest.mark.long
@pytest.mark.no_cover
def test_shares_and_errors_are_those_of_the_data_sets():
    """One window over everything: S is binomial, so the coverage is a finite sum."""
    n, p, level = 40, 0.3, 0.9
    s = np.arange(n + 1)
    law = stats.beta(s + 1, n - s + 1)
    held = (law.ppf(0.05) <= p) & (p <= law.ppf(0.95))
    share = stats.binom.pmf(s, n, p) @ held
    width = stats.binom.pmf(s, n, p) @ (law.ppf(0.95) - law.ppf(0.05))
    found = coverage(
        lambda X: np.full(len(X), p),
        t=n,
        runs=2_000,
        level=level,
        points=[[0.2], [0.9]],
        model=SmoothBetaClassifier(10.0, bounds=[(0, 1)]),
        random_state=1,
    ).credible
    error = np.sqrt(share * (1 - share) / 2_000)
    assert found.share == pytest.approx(share, abs=4 * error)
    assert found.standard_error == pytest.approx(error, rel=0.1)
    assert found.width == pytest.approx(width, rel=0.01)
    assert found.worst == found.share


@pytest.mark.long
def test_contexts_are_given_once_or_drawn_anew():
    options = {"t": 300, "runs": 10, "lipschitz": 1.0, "points": 10, "random_state": 2}
    model = SmoothBetaClassifier("theory", bounds=[(0, 1)])
    for context in (
        contexts.guess_lapse(0.5),
        np.tile([0.2, 0.9], (300, 1)),
        lambda rng, t: contexts.background(rng.random(t)),
    ):
        found = coverage(lambda X: X[:, 0], context=context, model=model, **options)
        assert found.pointwise.share >= 0.95


def test_the_same_seed_gives_the_same_answer_and_the_model_stays_as_it_is():
    model = SmoothBetaClassifier(0.2)
    a, b = (coverage(lambda X: X[:, 0], t=50, runs=3, model=model, random_state=7) for _ in "ab")
    assert a == b
    assert a.pointwise is None
    assert a.simultaneous is None
    assert str(a).count("\n") == 1
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runs": 0}, "runs: found 0; a whole number from 1 to"),
        ({"t": 2.5}, "t: found 2.5"),
        ({"points": [[1.0, 2.0]]}, r"points: found shape \(1, 2\)"),
        ({"function": lambda X: X}, r"function: found shape \(100, 1\); one value per point"),
        ({"function": lambda X: 2 * X[:, 0]}, "probabilities are from 0 to 1"),
        ({"level": 2, "lipschitz": 1.0}, "level"),
    ],
)
def test_bad_arguments(options, message):
    options = {"function": lambda X: X[:, 0], "t": 20, "runs": 2} | options
    with pytest.raises(ValueError, match=message):
        coverage(**options)
