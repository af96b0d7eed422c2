"""Posteriors under contexts, against SciPy, Arb, numerical integration and closed forms."""

import re
from math import comb

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import integrate, stats

from betafield import contexts
from betafield.posteriors import Beta, Dirichlet, Mixture
from betafield.posteriors.under import Affine

rates = st.floats(0.0, 1.0).map(lambda x: round(x, 6))
ends = st.tuples(rates, rates).filter(lambda pair: abs(pair[0] - pair[1]) > 1e-3)
shapes = st.floats(-0.5, 4.0).map(lambda e: 10.0**e)
polynomials = st.integers(2, 7).flatmap(lambda p: hnp.arrays(np.float64, p + 1, elements=rates))
levels = np.array([1e-6, 0.025, 0.3, 0.5, 0.7, 0.975, 1.0 - 1e-6])[:, None]
SOME = Beta([4.0, 1.0, 30.0, 0.5], [2.0, 1.0, 70.0, 0.5])
HUMP = [0.0, 1.0, 0.0]  # 2π(1−π)
WAVE = [0.1, 1.0, 0.0, 0.8]
few = settings(max_examples=25)


def same(one, other, rtol=1e-12):
    """Assert that two posteriors agree in all methods, within the support of one."""
    q = one.ppf(levels)
    np.testing.assert_allclose(one.mean(), other.mean(), rtol=rtol)
    np.testing.assert_allclose(one.var(), other.var(), rtol=rtol)
    np.testing.assert_allclose(q, other.ppf(levels), rtol=rtol)
    for name in ("cdf", "prob_above"):
        ask = getattr(one, name)(q), getattr(other, name)(q)
        # Near an end of the support, a rounding of q moves the tail by much more.
        moved = 1e-8 + 1e-8 * ask[1] + 8.0 * np.spacing(q) * one.pdf(q)
        assert np.all(np.abs(ask[0] - ask[1]) <= moved), name


@pytest.mark.parametrize("other", [(2.0, 3.001), (2.001, 3.0015)], ids=["mean", "spread"])
def test_other_distributions_are_told_apart(other):
    same(Beta([2.0], [3.0]), Beta([2.0], [3.0]))
    with pytest.raises(AssertionError):
        same(Beta([2.0], [3.0]), Beta([other[0]], [other[1]]))


# Affine contexts ---------------------------------------------------------------------------


@given(shapes, shapes, ends)
def test_affine_is_scipys_beta_moved_and_stretched(a, b, context):
    low, high = context
    post, scale = Beta([a], [b]).under(context), abs(high - low)
    # A falling line mirrors the Beta.
    a, b = (a, b) if high > low else (b, a)
    truth = stats.beta(a, b, loc=min(context), scale=scale)
    np.testing.assert_allclose(post.mean(), truth.mean(), rtol=1e-12)
    np.testing.assert_allclose(post.var(), truth.var(), rtol=1e-11)
    q = levels[:, 0]
    found, expected = post.ppf(levels)[:, 0], truth.ppf(q)
    # SciPy's quantiles of small shapes may be off by 3e-8; its distribution function is not.
    is_same = np.isclose(found, expected, rtol=1e-8, atol=1e-14)
    assert np.all(is_same | np.isclose(truth.cdf(found), q, rtol=1e-8, atol=0.0))
    p = truth.ppf(np.array([0.01, 0.2, 0.5, 0.8, 0.99]))
    inside = (p > min(context) + 1e-6 * scale) & (p < max(context) - 1e-6 * scale)
    p = p[inside]
    np.testing.assert_allclose(post.cdf(p[:, None])[:, 0], truth.cdf(p), rtol=1e-7)
    np.testing.assert_allclose(post.prob_above(p[:, None])[:, 0], truth.sf(p), rtol=1e-7)
    np.testing.assert_allclose(post.pdf(p[:, None])[:, 0], truth.pdf(p), rtol=1e-6)


@pytest.mark.parametrize("post", [SOME, Mixture.of_betas([[0.0, 0.0]], [[2.0, 9.0]], [[5.0, 1.0]])])
@pytest.mark.parametrize("context", [[0, 1], [0, 0.25, 0.5, 0.75, 1], contexts.elevate([0, 1], 3)])
def test_no_distortion_is_the_posterior_itself(post, context):
    assert post.under(context) is post


@given(ends.filter(lambda context: tuple(context) != (0.0, 1.0)))
def test_elevated_lines_are_lines(context):
    raised = SOME.under(contexts.elevate(context, 5))
    assert isinstance(raised, Affine)
    same(raised, SOME.under(context), rtol=1e-9)


def test_a_falling_line_keeps_small_tails():
    post = Beta([3.0], [50.0])
    turned = post.under([1.0, 0.0])
    np.testing.assert_allclose(turned.cdf(0.25), stats.beta.sf(0.75, 3, 50), rtol=1e-10)
    assert turned.cdf(0.25)[0] < 1e-25
    p = 2.0**-20
    np.testing.assert_array_equal(turned.prob_above(1.0 - p), post.cdf(p))
    np.testing.assert_allclose(turned.ppf(0.975), 1.0 - post.ppf(0.025), rtol=1e-12)


@pytest.mark.parametrize("context", [[0.3, 0.3], [0.3], [0.3, 0.3, 0.3]])
def test_a_constant_is_known(context):
    post = SOME[:2].under(context)
    np.testing.assert_array_equal(post.mean(), [0.3, 0.3])
    np.testing.assert_array_equal(post.var(), [0.0, 0.0])
    points = np.array([0.0, 0.29, 0.3, 0.31, 1.0])[:, None]
    np.testing.assert_array_equal(post.cdf(points)[:, 0], [0, 0, 1, 1, 1])
    np.testing.assert_array_equal(post.prob_above(points)[:, 1], [1, 1, 0, 0, 0])
    np.testing.assert_array_equal(post.pdf(points)[:, 0], [0, 0, np.inf, 0, 0])
    np.testing.assert_array_equal(post.ppf([[0.0], [0.5], [1.0]]), np.full((3, 2), 0.3))
    np.testing.assert_array_equal(post.sample(3, random_state=0), np.full((3, 2), 0.3))


@few
@given(ends, ends)
def test_a_line_of_a_line_is_a_line(first, second):
    (a, b), (c, d) = first, second
    composed = [c + (d - c) * a, c + (d - c) * b]
    same(SOME.under(first).under(second), SOME.under(composed), rtol=1e-9)


def test_certainty_of_an_end_is_a_step_there():
    none, all_ = SOME[0].under([0.0, 0.0]), SOME[0].under([1.0, 1.0])
    points = np.array([-0.1, 0.0, 0.5, 1.0, 1.1])[:, None]
    np.testing.assert_array_equal(none.cdf(points)[:, 0], [0, 1, 1, 1, 1])
    np.testing.assert_array_equal(none.prob_above(points)[:, 0], [1, 0, 0, 0, 0])
    np.testing.assert_array_equal(all_.cdf(points)[:, 0], [0, 0, 0, 1, 1])


def test_the_ends_have_their_own_bits():
    context = [[0.1, 0.7], [0.7, 0.1], [0.0, 0.3], [0.9, 0.3]]
    post = SOME.under(context)
    np.testing.assert_array_equal(post.ppf(0.0), np.min(context, axis=1))
    np.testing.assert_array_equal(post.ppf(1.0), np.max(context, axis=1))


# Polynomials -------------------------------------------------------------------------------


def rising_product(a, n):
    result = arb(1)
    for i in range(n):
        result *= arb(a) + i
    return result


def exact_moments(context, a, b):
    """Return mean and standard deviation of a polynomial of a Beta(a, b), by Bernstein moments."""
    ctx.prec = 500
    degree, context = len(context) - 1, [arb(float(x)) for x in context]

    def expectation(c):
        n = len(c) - 1
        terms = (
            comb(n, k) * c[k] * rising_product(a, k) * rising_product(b, n - k)
            for k in range(n + 1)
        )
        return sum(terms, arb(0)) / rising_product(arb(a) + arb(b), n)

    square = [
        sum(
            (
                context[i] * context[k - i] * comb(degree, i) * comb(degree, k - i)
                for i in range(max(0, k - degree), min(degree, k) + 1)
            ),
            arb(0),
        )
        / comb(2 * degree, k)
        for k in range(2 * degree + 1)
    ]
    mean = expectation(context)
    return float(mean), float((expectation(square) - mean**2).sqrt())


@pytest.mark.parametrize(
    "context", [HUMP, WAVE, [0, 0, 1], contexts.pooled(3), [0.5, 0, 0.5], contexts.pooled(20, 0.9)]
)
def test_moments_are_those_of_arb(context):
    grid = [0.3, 0.5, 1.0, 7.0, 300.0, 1e5, 1e8]
    alpha, beta = (values.ravel() for values in np.meshgrid(grid, grid))
    post = Beta(alpha, beta).under(context)
    truth = np.array([exact_moments(context, a, b) for a, b in zip(alpha, beta, strict=True)])
    np.testing.assert_allclose(post.mean(), truth[:, 0], atol=1e-9, rtol=0)
    # A spread below the resolution of the mean as a float is not compared.
    seen = truth[:, 1] > 1e-12
    np.testing.assert_allclose(post.std()[seen], truth[seen, 1], rtol=1e-6)


def test_moments_of_modes_far_apart():
    narrow = [[3e7, 9e8]], [[2.5e8, 5e6]]
    mixture = Mixture.of_betas(np.log([[0.25, 0.75]]), *narrow)
    post = mixture.under(WAVE)
    parts = [exact_moments(WAVE, a, b) for a, b in zip(narrow[0][0], narrow[1][0], strict=True)]
    mean = 0.25 * parts[0][0] + 0.75 * parts[1][0]
    between = 0.25 * (parts[0][0] - mean) ** 2 + 0.75 * (parts[1][0] - mean) ** 2
    within = 0.25 * parts[0][1] ** 2 + 0.75 * parts[1][1] ** 2
    assert post.mean()[0] == pytest.approx(mean, abs=1e-9)
    assert post.var()[0] == pytest.approx(within + between, rel=1e-8)


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (0.5, 3.0), (40.0, 60.0), (5e5, 5e5)])
def test_two_trials_differ(a, b):
    """2π(1−π) ≤ q where π is at least (1 − 2q)^½ / 2 from ½."""
    post, truth = Beta([a], [b]).under(HUMP), stats.beta(a, b)
    q = np.concatenate([post.ppf(levels)[:, 0], [0.01, 0.3, 0.4999]])
    q = q[q < 0.5]
    far = np.sqrt(1.0 - 2.0 * q) / 2.0
    below = truth.cdf(0.5 - far) + truth.sf(0.5 + far)
    np.testing.assert_allclose(post.cdf(q[:, None])[:, 0], below, atol=1e-8, rtol=0)
    above = truth.cdf(0.5 + far) - truth.cdf(0.5 - far)
    np.testing.assert_allclose(post.prob_above(q[:, None])[:, 0], above, atol=1e-8, rtol=0)
    density = (truth.pdf(0.5 - far) + truth.pdf(0.5 + far)) / (4.0 * far)
    np.testing.assert_allclose(post.pdf(q[:, None])[:, 0], density, rtol=1e-4, atol=1e-12)
    assert post.prob_above(0.5)[0] == 0.0
    assert post.ppf(1.0)[0] == 0.5


@few
@given(polynomials, st.floats(0.5, 50.0), st.floats(0.5, 50.0), st.floats(0.01, 0.99))
def test_tails_agree_with_a_fine_grid(context, a, b, share):
    """P(f ≤ q) as the Beta mass of the cells of a grid on which f ≤ q."""
    grid = np.linspace(0.0, 1.0, 20_001)
    f = contexts.probability(context, 0.5 * (grid[1:] + grid[:-1]))
    assume(np.ptp(f) > 1e-6)
    q = f.min() + share * (f.max() - f.min())
    mass = np.diff(stats.beta.cdf(grid, a, b))
    # One cell at each crossing may be on the wrong side.
    slack = len(context) * mass.max() + 1e-9
    post = Beta([a], [b]).under(context)
    assert abs(post.cdf(q)[0] - mass[f <= q].sum()) <= slack
    assert abs(post.prob_above(q)[0] - mass[f > q].sum()) <= slack


@pytest.mark.parametrize("context", [WAVE, [0.2, 1.0, 0.3], [1.0, 0.6, 0.1], [0.5, 0.0, 0.5]])
def test_density_is_the_slope_of_the_cdf(context):
    post = Beta([3.0], [4.0]).under(context)
    low, high = post.ppf(0.35)[0], post.ppf(0.4)[0]
    area, _ = integrate.quad(lambda q: post.pdf(q)[0], low, high, epsabs=1e-10, limit=200)
    assert area == pytest.approx(0.05, abs=1e-6)


def test_density_at_turns_and_outside():
    post = Beta([2.0], [3.0]).under(HUMP)
    assert post.pdf(0.5)[0] == np.inf
    np.testing.assert_array_equal(post.pdf([[0.500001], [0.9], [-0.1]]), np.zeros((3, 1)))


@few
@given(polynomials, shapes, shapes)
@example(np.array(HUMP), 30.0, 30.0)
@example(np.array([0.0, 1.0, 0.0, 1.0, 0.0]), 3.0, 3.0)  # turns at ½, where [0, 1] is halved
@example(np.array([0.0, 1.0, 0.25, 1.0, 0.0]), 3.0, 3.0)
def test_quantiles_return_to_their_levels(context, a, b):
    post = Beta([a], [b]).under(context)
    q = post.ppf(levels)
    assert np.all(np.diff(q, axis=0) >= 0.0)
    grid = contexts.probability(context, np.linspace(0.0, 1.0, 201))
    least, most = post.ppf(0.0)[0], post.ppf(1.0)[0]
    assert least <= grid.min() + 1e-15
    assert most >= grid.max() - 1e-15
    assert np.all((q >= least) & (q <= most))
    # Up to the resolution of float64 around the quantile.
    width = 4e-14 + 1e-12 * q
    assert np.all(post.cdf(q - width) <= levels + 1e-11)
    assert np.all(post.cdf(q + width) >= levels - 1e-11)
    points = np.linspace(0.0, 1.0, 41)[:, None]
    assert np.all(np.diff(post.cdf(points), axis=0) >= -1e-12)
    np.testing.assert_allclose(post.cdf(points) + post.prob_above(points), 1.0, rtol=1e-11)


@few
@given(polynomials, shapes, shapes)
def test_mirrored_contexts_mirror(context, a, b):
    """1 − f as a function of 1 − π."""
    post = Beta([a], [b]).under(context)
    mirror = Beta([b], [a]).under(contexts.mirrored(context))
    np.testing.assert_allclose(post.mean(), 1.0 - mirror.mean(), atol=1e-11)
    np.testing.assert_allclose(post.std(), mirror.std(), rtol=1e-7, atol=1e-14)
    np.testing.assert_allclose(post.ppf(0.3), 1.0 - mirror.ppf(0.7), atol=1e-10)


def test_pools_are_a_power():
    """1 − (1−π)^n of a Beta(1, b) is a Beta(1, b/n)."""
    for n in (2, 9, 100):
        post, truth = Beta([1.0], [12.0]).under([contexts.pooled(n)]), Beta([1.0], [12.0 / n])
        np.testing.assert_allclose(post.mean(), truth.mean(), atol=1e-10)
        np.testing.assert_allclose(post.std(), truth.std(), rtol=1e-8)
        q = np.array([1e-9, 0.1, 0.5, 0.9])[:, None]
        np.testing.assert_allclose(post.ppf(q), truth.ppf(q), rtol=1e-11)
        p = np.array([1e-12, 0.01, 0.3, 0.8])[:, None]
        np.testing.assert_allclose(post.cdf(p), truth.cdf(p), rtol=1e-11)
        np.testing.assert_allclose(post.pdf(p), truth.pdf(p), rtol=1e-10)


def test_powers_keep_small_tails():
    """π² of a Beta(a, 1) is a Beta(a/2, 1)."""
    post, truth = Beta([3.0], [1.0]).under([0.0, 0.0, 1.0]), Beta([1.5], [1.0])
    p = 10.0 ** -np.array([200.0, 50.0, 9.0, 1.0])[:, None]
    np.testing.assert_allclose(post.cdf(p), truth.cdf(p), rtol=1e-10)


@few
@given(polynomials, polynomials)
def test_a_polynomial_of_a_polynomial(first, second):
    post = SOME.under(first).under(second)
    draws = SOME.sample(400, random_state=1)
    twice = contexts.probability(second, contexts.probability(first, draws).clip(0.0, 1.0))
    np.testing.assert_allclose(post.sample(400, random_state=1), twice, atol=1e-12)
    assert post.base is SOME


def test_draws_follow_the_cdf():
    post = Beta([3.0, 20.0], [4.0, 9.0]).under(WAVE)
    draws = post.sample(5000, random_state=3)
    assert draws.shape == (5000, 2)
    for row in range(2):
        one = post[row]
        distance = stats.kstest(draws[:, row], lambda q, one=one: one.cdf(q[:, None])[:, 0])
        assert distance.statistic < 1.95 / np.sqrt(5000)
    np.testing.assert_allclose(draws.mean(axis=0), post.mean(), atol=4 * post.std().max() / 70)


# Rows and errors ---------------------------------------------------------------------------

MIXED = [HUMP, [0.0, 0.5, 1.0], [0.4, 0.4, 0.4], [1.0, 0.2, 0.1]]


@pytest.mark.parametrize("context", [MIXED, [[0.0, 1.0], [0.2, 0.9], [0.5, 0.5], [0.8, 0.1]]])
def test_rows_are_independent(context):
    post = SOME.under(context)
    assert post.shape == (4,)
    assert len(post[1:3]) == 2
    points = np.array([0.1, 0.3, 0.45])[:, None]
    for row in range(4):
        for chosen in (post[row], SOME[row].under(context[row])):
            np.testing.assert_allclose(chosen.mean(), post.mean()[[row]], rtol=1e-9)
            np.testing.assert_allclose(chosen.var(), post.var()[[row]], rtol=1e-7, atol=1e-30)
            for name in ("cdf", "prob_above", "ppf"):
                found = getattr(post, name)(points)[:, [row]]
                np.testing.assert_allclose(getattr(chosen, name)(points), found, rtol=1e-9)
    assert repr(post).startswith("<")
    assert post.cdf(0.2).shape == (4,)
    assert [end.shape for end in post.interval(0.9)] == [(4,), (4,)]


def test_batches_do_not_show():
    def ask(batch_size):
        post = SOME.under(MIXED)
        post.batch_size = batch_size
        return post.mean(), post.var(), post.cdf(levels), post.ppf(levels), post.sample(9, 1)

    for one, other in zip(ask(1 << 17), ask(7), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("context", [[0.2, 0.7], HUMP])
def test_no_rows(context):
    empty = Beta([], []).under(context)
    for answer in (empty.mean(), empty.var(), empty.cdf(0.5), empty.ppf(0.5), empty.pdf(0.5)):
        assert answer.shape == (0,)
    assert empty.sample(3).shape == (3, 0)


@pytest.mark.parametrize(
    ("context", "message"),
    [
        (
            [[0.0, 1.0]] * 3,
            "context: found shape (3, 2); one context (p + 1,) or (1, p + 1) for all",
        ),
        ([0.5] * 39, "context: found 39 numbers; one context of as many coefficients"),
        (np.ma.array([0.2, 0.9], mask=[0, 1]), "context row 1: found a masked value"),
        (["0.2", "0.9"], "context row 0: found '0.2'"),
        (np.zeros((2, 4, 2)), "context: found shape (2, 4, 2); one context (p + 1,)"),
        ([0.0, 1.2], "context column 1 (success probability at π = 1): found 1.2"),
        (0.5, "context: found an array of shape ()"),
        ([np.nan, 1.0], "context column 0 (success probability at π = 0): found NaN"),
    ],
)
def test_wrong_contexts_are_refused(context, message):
    for post in (SOME, SOME.under([0.1, 0.9]), SOME.under(HUMP)):
        with pytest.raises(ValueError, match=re.escape(message)):
            post.under(context)


@pytest.mark.parametrize("degree", [1, 5, 39])
def test_one_context_for_all_rows_may_be_a_row(degree):
    context = np.linspace(0.2, 0.9, degree + 1)
    each = np.tile(context, (len(SOME), 1))
    np.testing.assert_array_equal(SOME.under([context]).mean(), SOME.under(each).mean())


def test_several_classes_are_refused():
    with pytest.raises(ValueError, match="context: the posterior has 3 classes; contexts need two"):
        Dirichlet([[1.0, 2.0, 3.0]]).under([0.2, 0.9])
