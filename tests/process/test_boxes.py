"""Units: ranks against brute force, logarithms against log data, and which units are tried."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import rankdata

from betafield.process import boxes, mixtures
from betafield.process.boxes import Box, by_log, by_range, by_rank, candidates, values
from betafield.process.model import Sums, build, find

ones = np.ones(2_000, np.int64)


def mean(given, bounds, points, scale="auto"):
    found = find(given, bounds, scale=scale)
    return mixtures.mean(build(given, bounds, found).laws(points)), found


@given(
    hnp.arrays(
        float, st.integers(2, 40), elements=st.sampled_from([-3.0, 0.0, 0.1, 7.0, 1e3, 1e9])
    ),
    st.integers(1, 5),
)
def test_ranks_are_mid_ranks(x, times):
    if (x == x[0]).all():
        x = np.append(x, x[0] + 1.0)
    rank = by_rank(*values(x, np.full(len(x), times)))
    exact = rankdata(x)
    exact = (exact - exact.min()) / (exact.max() - exact.min())
    np.testing.assert_allclose(rank.inside(x), exact, atol=1e-12)
    np.testing.assert_allclose(rank.outside(rank.inside(x)), x)


@pytest.mark.parametrize("long", [1, 7, 50])
def test_values_are_counted_in_parts(long):
    rng = np.random.default_rng(0)
    x, trials = rng.integers(0, 20, 200) * 0.1, rng.integers(0, 3, 200)
    whole = values(x, trials)
    for a, b in zip(values(x, trials, long), whole, strict=True):
        np.testing.assert_array_equal(a, b)
    at, which = np.unique(x[trials > 0], return_inverse=True)
    np.testing.assert_array_equal(whole[0], at)
    np.testing.assert_array_equal(whole[1], np.bincount(which, trials[trials > 0]))


def test_many_ranks_are_told_at_a_few_values():
    x = np.random.default_rng(1).normal(size=50_000)
    rank = by_rank(*values(x, np.ones(50_000, np.int64)))
    assert len(rank.at) <= boxes.KNOTS
    exact = (rankdata(x) - 1) / (len(x) - 1)
    assert np.abs(rank.inside(x) - exact).max() < 2e-3


@pytest.mark.parametrize(
    "axis",
    [
        by_range(-2.0, 5.0),
        by_log(0.1, 50.0),
        by_rank(np.array([0.5, 1.0, 4.0, 9.0]), np.array([3, 1, 1, 7])),
    ],
    ids=["range", "log", "rank"],
)
def test_axes_rise_beyond_the_box_too_and_lead_back(axis):
    u = np.linspace(0.0, 1.0, 50)
    np.testing.assert_allclose(axis.inside(axis.outside(u)), u, atol=1e-12)
    wide = axis.inside(np.linspace(-5.0, 100.0, 300))
    assert (np.diff(wide[wide > -20]) > 0).all()
    assert wide[-1] > 1.0


def test_a_logarithm_of_what_is_not_positive_is_far_below():
    assert (by_log(1.0, 10.0).inside(np.array([0.0, -3.0])) < -100).all()


def test_even_data_has_no_candidates_and_uneven_has():
    rng = np.random.default_rng(2)
    for t in (20, 100, 2_000):
        x = rng.random((t, 3))
        assert candidates(np.tile([0.0, 1.0], (3, 1)), x, ones[:t]) == [("range",)] * 3
    spread = np.exp(rng.normal(size=(2_000, 1)))
    bounds = np.array([[spread.min(), spread.max()]])
    assert candidates(bounds, spread, ones) == [("range", "rank", "log")]
    assert candidates(bounds - 2.0, spread - 2.0, ones) == [("range", "rank")]
    constant = np.full((2_000, 1), 3.0)
    assert candidates(np.array([[3.0, 3.0]]), constant, ones) == [("range",)]


def test_logarithms_are_what_data_in_logarithms_give():
    rng = np.random.default_rng(3)
    x = np.exp(rng.normal(size=(400, 2)))
    y = (rng.random(400) < 0.5 + 0.4 * np.sin(np.log(x[:, 0]))).astype(np.int64)
    bounds = np.stack([x.min(axis=0), x.max(axis=0)], axis=1)
    one = np.ones(400, np.int64)
    found, _ = mean(Sums(x, one, y), bounds, x[:50], "log")
    exact, _ = mean(Sums(np.log(x), one, y), np.log(bounds), np.log(x[:50]), "range")
    np.testing.assert_allclose(found, exact, atol=1e-6)


def test_ranks_do_not_change_with_rising_transforms():
    rng = np.random.default_rng(4)
    x = rng.random((300, 1))
    y = (rng.random(300) < x[:, 0]).astype(np.int64)
    one, ends = np.ones(300, np.int64), np.array([[0.0, 1.0]])
    found, _ = mean(Sums(x, one, y), ends, x[:40], "rank")
    moved, _ = mean(Sums(x**3, one, y), ends, x[:40] ** 3, "rank")
    np.testing.assert_allclose(found, moved, atol=1e-9)


def test_an_outlier_does_no_harm():
    rng = np.random.default_rng(5)
    x = rng.random((2_000, 2))
    truth = lambda x: 0.5 + 0.3 * np.sin(7 * x[:, 0]) * np.sin(5 * x[:, 1] + 1)
    y = (rng.random(2_000) < truth(x)).astype(np.int64)
    x[0] = 1_000.0
    points = rng.random((500, 2))
    errors = []
    for each in (x, np.clip(x, 0.0, 1.0)):
        bounds = np.stack([each.min(axis=0), each.max(axis=0)], axis=1)
        found, what = mean(Sums(each, ones, y), bounds, points)
        errors.append(np.mean((found - truth(points)) ** 2))
    assert errors[0] <= 1.1 * errors[1]
    assert {component.scale for component in what.components} == {("range", "range")}


def test_units_are_found_per_feature():
    rng = np.random.default_rng(6)
    x = np.column_stack([10 ** rng.uniform(0, 3, 1_500), rng.random(1_500)])
    y = rng.random(1_500) < 0.5 + 0.4 * np.sin(2 * np.log10(x[:, 0])) * x[:, 1]
    bounds = np.stack([x.min(axis=0), x.max(axis=0)], axis=1)
    given = Sums(x, ones[:1_500], y.astype(np.int64))
    found = find(given, bounds)
    assert found.components[0].scale in (("log", "range"), ("rank", "range"))
    order = rng.permutation(1_500)
    again = Sums(x[order], ones[:1_500], given.successes[order])
    points = x[:30] * 1.1
    one, other = (build(each, bounds, find(each, bounds)).laws(points) for each in (given, again))
    np.testing.assert_array_equal(one.centres, other.centres)
    np.testing.assert_array_equal(one.weights, other.weights)


def test_places_are_found_in_all_units():
    rng = np.random.default_rng(7)
    x = np.exp(rng.normal(size=(200, 2)))
    bounds = np.stack([x.min(axis=0), x.max(axis=0)], axis=1)
    for scale in (("log", "rank"), ("rank", "range")):
        box = Box.scaled(bounds, scale, x, ones[:200])
        np.testing.assert_allclose(box.outside(box.within(x)), x, rtol=1e-9)


@pytest.mark.parametrize("scale", ["ranks", ("range",), ("range", "auto")])
def test_unknown_units_are_refused(scale):
    given = Sums(np.ones((2, 2)), ones[:2], ones[:2])
    with pytest.raises(ValueError, match=r"scale: found .* 2 features"):
        find(given, np.ones((2, 2)), scale=scale)


def test_logarithms_need_positive_values():
    given = Sums(np.array([[-1.0], [2.0]]), ones[:2], ones[:2])
    with pytest.raises(ValueError, match=r"scale: found 'log' for a feature with the value -1\.0"):
        find(given, np.array([[-1.0, 2.0]]), scale="log")
