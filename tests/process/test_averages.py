"""Means of π under normal distributions against adaptive integration."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from betafield.process import averages
from betafield.process.links import LINKS

laws = st.tuples(st.floats(-4.0, 4.0), st.floats(np.log(1e-3), np.log(30.0)).map(np.exp))


def integral(values, centre, deviation):
    """Return E values(f), split where the soft identity bends and at every second deviation."""
    bends = [(b - centre) / deviation for b in (-0.7, -0.5, -0.3, 0.3, 0.5, 0.7)]
    cuts = sorted({-10.0, *range(-8, 9, 2), 10.0, *(b for b in bends if abs(b) < 10.0)})
    pieces = [
        quad(lambda z: norm.pdf(z) * values(centre + z * deviation), low, high)[0]
        for low, high in itertools.pairwise(cuts)
    ]
    return sum(pieces)


@pytest.mark.long
@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@given(law=laws)
def test_mean_and_slope(link, law):
    centre, deviation = law
    found, slope = averages.mean_and_slope(link, np.array([centre]), np.array([deviation]))
    value = integral(lambda f: link.value(np.array([f]))[0], centre, deviation)
    rise = integral(lambda f: link.rise(np.array([f]))[1][0], centre, deviation)
    assert found[0] == pytest.approx(value, abs=5e-5)
    assert slope[0] == pytest.approx(rise, abs=1e-3 * max(link.steepness * 0.1, 1.0))
    assert averages.mean(link, np.array([centre]), np.array([deviation]))[0] == found[0]


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@example(target=0.125, deviation=np.exp(1.5))  # a wide law, whose mean is flat
@given(target=st.floats(0.003, 0.997), deviation=st.floats(np.log(1e-3), np.log(5.0)).map(np.exp))
def test_a_centre_has_the_mean_that_was_asked_for(link, target, deviation):
    near = link.inverse(np.array([target]))
    centre = averages.centred(link, np.array([target]), np.array([deviation]), near)
    found = averages.mean(link, centre, np.array([deviation]))
    assert found[0] == pytest.approx(target, abs=1e-7)


def test_an_answer_does_not_depend_on_what_is_asked_with_it():
    rng = np.random.default_rng(0)
    target, deviation = rng.random(60), np.exp(rng.uniform(-5, 2, 60))
    for link in LINKS:
        near = link.inverse(target)
        whole = averages.centred(link, target, deviation, near)
        for i in range(60):
            one = slice(i, i + 1)
            alone = averages.centred(link, target[one], deviation[one], near[one])
            assert alone[0] == whole[i]
