"""Links and their derivatives against power series in high precision."""

import numpy as np
import pytest
from flint import arb, arb_series, ctx
from hypothesis import given
from hypothesis import strategies as st

from betafield.process.links import LINKS, LOGIT, SOFT


def series(link, f):
    """Return g, 1 − g, g′ and g″ at f from the power series of g."""
    ctx.prec, ctx.cap = 800, 4
    x = arb_series([arb(f), 1])
    if link is LOGIT:
        g, rest = 1 / (1 + (-x).exp()), 1 / (1 + x.exp())
    else:
        half = arb(1) / 2
        plus, minus = (25 * (x + half)), (25 * (x - half))
        g = ((1 + plus.exp()).log() - (1 + minus.exp()).log()) / 25
        rest = ((1 + (-minus).exp()).log() - (1 + (-plus).exp()).log()) / 25
    return float(g[0]), float(rest[0]), float(g[1]), 2 * float(g[2])


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@given(st.floats(-12.0, 12.0))
def test_derivatives_keep_their_digits_in_the_tails(link, f):
    expected = series(link, f)
    found = link.bend(np.array([f]))
    whole = abs(expected[2]) * np.array([0.0, 0.0, 1.0, 30.0])  # where terms cancel
    for value, exact, size in zip(found, expected, whole, strict=True):
        assert abs(value[0] - exact) <= 1e-11 * max(abs(exact), size)


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
@given(st.floats(1e-9, 1.0 - 1e-9))
def test_inverse_leads_back(link, p):
    f = link.inverse(np.array([p]))
    assert abs(link.value(f)[0] - p) <= 1e-14
    assert abs(link.value(-f)[0] - (1.0 - p)) <= 1e-14
    assert link.value(f + 1.0)[0] <= 1.0


@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
def test_nothing_leaves_the_range_of_floats(link):
    f = np.array([-1e300, -700.0, 700.0, 1e300])
    bend = link.bend(f)
    assert all(np.isfinite(part).all() for part in bend)
    assert (bend.p > 0.0).all()
    assert (bend.rest > 0.0).all()
    assert (bend.first > 0.0).all()
    np.testing.assert_array_equal(link.inverse(np.array([0.0, 1.0])), [-link.most, link.most])


def test_soft_identity_is_the_identity_inside():
    f = np.linspace(-0.2, 0.2, 9)
    np.testing.assert_allclose(SOFT.value(f), f + 0.5, atol=1e-4)


@given(f=st.floats(-400.0, 400.0))
@pytest.mark.parametrize("link", LINKS, ids=lambda link: link.name)
def test_both_are_the_value_and_that_at_the_other_side(link, f):
    f = np.array([f])
    p, rest = link.both(f)
    assert (p[0], rest[0]) == (link.value(f)[0], link.value(-f)[0])
