"""Windows of residuals: sums against `windows.Brute`, formulas against closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import expit, logit
from scipy.stats import norm

from betafield import contexts
from betafield.process import averages, law, mixtures, residuals
from betafield.process.ladder import (
    UNIT,
    WIDTHS,
    Left,
    Values,
    climb,
    narrowest_windows,
    units,
    window_means,
    window_sums,
)
from betafield.process.links import LOGIT, SOFT
from betafield.process.rows import Rows
from betafield.process.trees import About, Trees
from betafield.windows.base import CHEBYSHEV, Places
from betafield.windows.brute import Brute

coordinates = st.sampled_from([0.0, 2.0**-9, 2.0**-8, 0.25, 0.25 + 2.0**-9, 0.3, 0.75, 1.0])


@given(
    hnp.arrays(float, st.tuples(st.integers(1, 30), st.just(2)), elements=coordinates),
    hnp.arrays(float, st.tuples(st.integers(1, 5), st.just(2)), elements=coordinates),
    st.sampled_from([(1.0, 1.0), (1.0, 0.25), (1.0, 0.0), (0.0, 1.0)]),
)
def test_sums_are_those_of_windows(places, queries, stretch):
    check_sums(places, queries, np.array(stretch))


def check_sums(places, queries, stretch):
    columns = np.random.default_rng(0).integers(0, 2**40, (len(places), 3))
    found = window_sums(queries, places, columns, stretch)
    np.testing.assert_array_equal(window_sums(queries, places, columns, stretch, few=0), found)
    index = Brute.build(Places((places * stretch).T, columns.T), CHEBYSHEV)
    for b, width in enumerate(WIDTHS):
        radius = width if np.isfinite(width) else 10.0
        np.testing.assert_array_equal(found[:, b], index.sums(queries * stretch, radius))
    trees = Trees(places, columns / UNIT)
    for about in (
        About(trees, queries, 0),
        About(trees, queries),
        About.uncompiled(trees, queries),
    ):
        for b, width in enumerate(WIDTHS):
            np.testing.assert_array_equal(about.sums(stretch, float(width)), found[:, b] / UNIT)
    values = np.random.default_rng(1).random((len(queries), len(places)))
    weight = np.random.default_rng(2).random(len(places))
    own = np.arange(len(queries)) % (len(places) + 1) - 1  # −1 is no place
    each = np.arange(len(queries))
    is_own = own[:, None] == np.arange(len(places))
    # Each query leaves out half of its own place; then all queries leave out all of it.
    left = Left(own, 0.5 * weight[own], values[each, own], each, each + 1)
    check_means(queries, places, values, weight * (1.0 - 0.5 * is_own), stretch, left, weight)
    values[:] = values[0]
    once = np.unique(own)
    left = Left(once, weight[once], values[0, once], 0 * each, np.full_like(each, len(once)))
    check_means(queries, places, values, weight * ~is_own.any(axis=0), stretch, left, weight)


def check_means(queries, places, values, remaining, stretch, left, weight):
    """Check that means over windows are those of what remains, if anything does."""
    # Places queried in another order than in the table have other columns.
    order = np.random.default_rng(3).permutation(len(places))
    rows, column = np.arange(len(queries))[::-1], np.argsort(order)
    table = Values(np.ascontiguousarray(values[::-1, order]), rows.copy(), column)
    means = window_means(queries, places, table, weight, stretch, left)
    np.testing.assert_array_equal(
        window_means(queries, places, table, weight, stretch, left, few=0), means
    )
    apart = np.abs((queries[:, None] - places) * stretch).max(axis=2)
    for b, width in enumerate(WIDTHS):
        held = (apart <= width) * remaining
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(means[:, b], (held * values).sum(1) / held.sum(1))


def test_rungs_at_the_very_ends_of_windows():
    for width in WIDTHS[1:-1]:
        for reach in (np.nextafter(width, 0.0), width, np.nextafter(width, 9.0)):
            assert rung(reach) == np.searchsorted(WIDTHS, reach)
            found = narrowest_windows(np.zeros((1, 1)), np.array([[reach]]), False)
            assert found == rung(reach)
    assert [rung(reach) for reach in (0.0, 5e-324, 1e-300)] == [0, 1, 1]
    assert rung(1e300) == len(WIDTHS) - 1
    assert rung(0.25, 0.25, is_round=True) == rung(2.0**0.5 / 4.0)


def rung(*reach, is_round=False):
    """Return the window of a place at this distance along each feature."""
    found, rungs = np.empty(1), np.empty(1, dtype=np.int64)
    places = np.array(reach)[:, None]
    climb(np.zeros(len(reach)), places, len(WIDTHS), is_round, found, rungs)
    return rungs[0]


@given(
    hnp.arrays(float, st.tuples(st.integers(1, 9), st.integers(1, 3)), elements=st.floats(-9, 9))
)
@pytest.mark.parametrize("is_round", [False, True])
def test_rungs_of_any_distances(is_round, places):
    queries = places[::-1] / 3.0
    found = narrowest_windows(queries, places, is_round)
    for i, j in np.ndindex(found.shape):
        assert found[i, j] == rung(*np.abs(queries[i] - places[j]), is_round=is_round)


@pytest.mark.parametrize("context", [[0.0, 1.0], [0.4, 0.95], contexts.pooled(4, 0.9, 0.95)])
@given(f=st.floats(-4.0, 4.0), n=st.integers(1, 20), share=st.floats(0.0, 1.0))
def test_scores_are_derivatives_of_the_likelihood_by_the_logit(context, f, n, share):
    k = round(share * n)
    rows = Rows(np.zeros((1, 1)), np.array([n]), np.array([k]), np.array([context], dtype=float))
    found = residuals.residuals(expit(np.array([f])), rows)

    def q(f):
        return contexts.probability(np.array(context), expit(f))

    slope = (q(f + 1e-5) - q(f - 1e-5)) / 2e-5
    spread = q(f) * (1 - q(f))
    assert found.score[0] == pytest.approx((k - n * q(f)) * slope / spread, rel=1e-5, abs=1e-6)
    assert found.information[0] == pytest.approx(n * slope**2 / spread, rel=1e-5)
    assert found.weight[0] * n == pytest.approx(found.information[0])
    one = sum(o * (q(f) if o else 1 - q(f)) for o in (0, 1))
    assert found.q[0] == pytest.approx(one)


@given(
    st.lists(st.floats(-50.0, 50.0), min_size=1, max_size=20),
    st.floats(0.0, 100.0),
)
def test_what_windows_add_up_is_not_negative(scores, information):
    score = np.array(scores)
    held = residuals.parts(score, np.full(len(score), information))
    assert (held >= 0).all()
    assert units(held).dtype == np.int64
    np.testing.assert_allclose(held[:, 0] - held[:, 1], score)
    total = Trees(np.zeros((len(score), 1)), held).sums(np.zeros((1, 1)), np.ones(1), 0.0)[0]
    np.testing.assert_allclose(total[0] - total[1], score.sum(), atol=1e-8)
    np.testing.assert_allclose(total[2], information * len(score), atol=1e-8)


@given(st.lists(st.floats(0.0, 1e15), min_size=1, max_size=50))
def test_sums_of_many_trials_stay_whole_numbers(values):
    held = np.array(values)[:, None]
    found = Trees(np.zeros((len(held), 1)), held).sums(np.zeros((1, 1)), np.ones(1), 0.0)
    np.testing.assert_allclose(found, [[math.fsum(values)]], rtol=1e-12, atol=1e-9)


def test_a_window_of_everything_finds_the_share():
    """If a process predicts ½ and 55 % succeed, wide windows correct it; narrow priors do not."""
    rows = Rows(np.zeros((1, 1)), np.array([10_000]), np.array([5_500]), np.array([[0.0, 1.0]]))
    left = residuals.residuals(np.array([0.5]), rows)
    found = residuals.corrected(left.m, left.score, left.information, 1e6)
    assert found[0] == pytest.approx(0.55, abs=2e-4)
    none = residuals.corrected(left.m, left.score, left.information, 1e-9)
    assert none[0] == pytest.approx(0.5, abs=1e-4)


@given(st.floats(0.0, 3.0), st.floats(0.0, 200.0), st.sampled_from(residuals.TAUS))
def test_variance_is_that_of_the_error(v, information, tau):
    """Error (1−β)(e + u) − β noise, e ~ (0, v), u ~ (0, τ), noise ~ (0, 1/ΣW)."""
    beta = information / (1.0 / tau + information)
    noise = beta**2 / information if information > 1e-200 else 0.0
    exact = (1 - beta) ** 2 * (v + tau) + noise
    found = residuals.variance(np.array([v]), np.array([information]), tau, True)
    assert found[0] == pytest.approx(exact, rel=1e-9)
    part = residuals.variance(np.array([v]), np.array([information]), tau, False)
    assert part[0] == pytest.approx(exact + (1 - (1 - beta) ** 2) * v, rel=1e-9)


def test_stretches_are_alike_by_length_scale_and_alone():
    (only,) = residuals.stretches(np.array([0.3]))
    assert only.tolist() == [1.0]
    ways = residuals.stretches(np.array([0.1, 1.0]))
    assert [w.tolist() for w in ways] == [[1.0, 1.0], [1.0, 0.1], [1.0, 0.0], [0.0, 1.0]]
    assert len(residuals.stretches(np.array([0.5, 0.5, 0.45]))) == 4


def test_stretches_by_level_take_levels_apart_and_reach_along_the_others():
    lengths = np.array([0.05, 0.2, 0.4])
    ways = residuals.stretches(lengths, np.array([0.01, np.inf, np.inf]))
    np.testing.assert_allclose(ways[-1], [100.0, 1.0, 0.5])
    assert len(ways) == 1 + len(residuals.stretches(lengths))
    assert len(residuals.stretches(lengths[:1], np.array([0.01]))) == 1


def test_logit_variance_of_the_logit_link_is_its_own():
    laws = law.Laws((LOGIT,), np.ones(1), np.array([[0.3, -1.0]]), np.array([[0.2, 0.05]]))
    found = residuals.logit_variance(
        laws, averages.mean(LOGIT, laws.centres[0], laws.deviations[0])
    )
    np.testing.assert_allclose(found, laws.deviations[0] ** 2, rtol=1e-6)


def test_logit_variance_against_draws():
    laws = law.Laws(
        (LOGIT, SOFT), np.array([0.4, 0.6]), np.array([[0.3], [0.1]]), np.array([[0.1], [0.02]])
    )
    z = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    each = [logit(link.value(c + s * z)) for link, c, s in zip(*laws[:1], *laws[2:], strict=True)]
    weights = np.repeat(laws.weights, len(z)) / len(z)
    values = np.concatenate([e.ravel() for e in each])
    mean = weights @ values
    exact = weights @ (values - mean) ** 2
    found = residuals.logit_variance(laws, mixtures.mean(laws))
    assert found[0] == pytest.approx(exact, rel=0.05)


def test_windows_join_with_the_means_that_they_have():
    base = law.Laws((SOFT,), np.ones(1), np.array([[0.1, -0.2]]), np.array([[0.05, 0.1]]))
    means, variances = [np.array([0.7, 0.2])], [np.array([0.3, 0.5])]
    joined = residuals.with_windows(base, means, variances, np.array([0.25, 0.75]))
    expected = 0.25 * mixtures.mean(base) + 0.75 * means[0]
    np.testing.assert_allclose(mixtures.mean(joined), expected, atol=1e-9)
    assert joined.weights.sum() == pytest.approx(1.0)
