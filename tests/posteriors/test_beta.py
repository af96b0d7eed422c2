"""Beta posteriors against Arb, closed forms, and properties of every distribution."""

import math

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from betafield.posteriors import Beta, Posterior

# Log-uniform over the whole range, and the round and whole numbers at which libraries switch
# algorithms: there SciPy's quantiles are off by whole standard deviations.
shapes = st.one_of(
    st.floats(-3.0, 12.0).map(lambda e: 10.0**e),
    st.integers(-3, 12).map(lambda e: 10.0**e),
    st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 39.0, 300.0, 3e3, 5e3, 5001.0, 2e9]),
    st.integers(1, 100_000).map(float),
)
large_shapes = st.one_of(
    st.floats(3.7, 12.0).map(lambda e: 10.0**e), st.integers(4, 12).map(lambda e: 10.0**e)
)
probabilities = st.one_of(
    st.floats(1e-12, 1.0 - 1e-12),
    st.floats(-12.0, -0.3).map(lambda e: 10.0**e),
    st.floats(-12.0, -0.3).map(lambda e: 1.0 - 10.0**e),
    st.sampled_from([0.005, 0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975, 0.995]),
)
deviations = st.floats(-8.0, 8.0)
thorough = settings(max_examples=150, deadline=None)

EXTREMES = np.array([1e-3, 0.01, 0.5, 1.0, 1.5, 2.0, 39.0, 1e3, 5001.0, 1e6, 1e9, 1e12])
ALPHA, BETA = (grid.ravel() for grid in np.meshgrid(EXTREMES, EXTREMES))


def exact_tails(a, b, p):
    """Return balls around P(π ≤ p) and P(π > p) at the exact value of the float p."""
    if p <= 0.0 or p >= 1.0:
        return arb(float(p >= 1.0)), arb(float(p < 1.0))
    for ctx.prec in (128, 256, 512, 1024, 2048):
        # Arb's series is fast up to 1/2.
        if p <= 0.5:
            lower = arb(p).beta_lower(a, b, regularized=True)
            upper = 1 - lower
        else:
            upper = (1 - arb(p)).beta_lower(b, a, regularized=True)
            lower = 1 - upper
        if min(lower.rel_accuracy_bits(), upper.rel_accuracy_bits()) > 60:
            return lower, upper
    raise ArithmeticError(f"Arb is not sure at {a}, {b}, {p}")


def exact_density(a, b, p):
    ctx.prec = 256
    a, b, p = arb(a), arb(b), arb(p)
    return (
        (a - 1) * p.log() + (b - 1) * (1 - p).log() + (a + b).lgamma() - a.lgamma() - b.lgamma()
    ).exp()


def relative_error(value, truth):
    return abs(float(arb(float(value)) / truth - 1))


def point(a, b, z):
    """Return a float about z standard deviations from the mean, well inside (0, 1)."""
    mean, rest = a / (a + b), b / (a + b)
    p = mean + z * math.sqrt(mean * rest / (a + b + 1.0))
    return min(max(p, 1e-3 * mean), 1.0 - 1e-3 * rest, math.nextafter(1.0, 0.0))


def one(a, b):
    return Beta([a], [b])


def assert_tails_right(a, b, p, tolerance, kind=Beta):
    found = kind([a], [b])
    lower, upper = exact_tails(a, b, p)
    for value, truth in ((found.cdf(p), lower), (found.prob_above(p), upper)):
        if truth > 1e-290:
            assert relative_error(value[0], truth) < tolerance
        else:
            assert value[0] < 1e-289


def assert_quantile_right(a, b, q, tolerance, kind=Beta):
    """Assert that q, up to `tolerance` of its smaller tail, is that of p or its neighbour."""
    p = kind([a], [b]).ppf(q)[0]
    _, above_previous = exact_tails(a, b, np.nextafter(p, -1.0))
    _, above_next = exact_tails(a, b, np.nextafter(p, 2.0))
    ctx.prec = 256
    asked, slack = 1 - arb(q), tolerance * min(q, 1.0 - q)
    assert above_next - slack < asked < above_previous + slack


@pytest.mark.parametrize("off", [1.0 - 1e-9, 1.0 + 1e-9])
def test_tails_and_quantiles_that_are_off_are_told_apart(off):
    class Off(Beta):
        def cdf(self, p):
            return off * super().cdf(p)

        def ppf(self, q):
            return off * super().ppf(q)

    assert_tails_right(2.0, 3.0, 0.4, 1e-13)
    assert_quantile_right(2.0, 3.0, 0.3, 1e-13)
    with pytest.raises(AssertionError):
        assert_tails_right(2.0, 3.0, 0.4, 1e-13, Off)
    with pytest.raises(AssertionError):
        assert_quantile_right(2.0, 3.0, 0.3, 1e-13, Off)


@thorough
@given(shapes, shapes, deviations)
@example(1e12, 1e12, -2.8)  # SciPy 1.17: 1e-4 off
@example(2.0, 1e9, 0.1)  # SciPy 1.17: 2e-8 off
def test_tails_agree_with_arb(a, b, z):
    assert_tails_right(a, b, point(a, b, z), 1e-9)


@thorough
@given(large_shapes, large_shapes, deviations)
def test_tails_of_large_shapes_agree_with_arb_to_rounding(a, b, z):
    assert_tails_right(a, b, point(a, b, z), 2e-13)


@thorough
@given(st.floats(2.0, 50.0), large_shapes, deviations, st.booleans())
def test_tails_of_one_large_shape_agree_with_arb_to_rounding(a, b, z, mirrored):
    if mirrored:
        a, b, z = b, a, -z
    assert_tails_right(a, b, point(a, b, z), 2e-13)


@thorough
@given(shapes, shapes, deviations)
@example(1e12, 1e12, 0.0)
def test_density_agrees_with_arb(a, b, z):
    p = point(a, b, z)
    truth = exact_density(a, b, p)
    assume(1e-290 < truth < 1e290)
    assert relative_error(one(a, b).pdf(p)[0], truth) < 1e-12


@thorough
@given(shapes, shapes, probabilities)
@example(1000.0, 1e12, 1e-12)  # SciPy 1.17: fifteen times the mean
@example(1000.0, 1e9, 0.4)
@example(1e12, 1000.0, 1.0 - 1e-12)
@example(1e-3, 1e-3, 0.25)
@example(0.005, 500.0, 0.025)  # a subnormal quantile
@example(1.154781984699946, 1.154781984699946, 0.5)  # SciPy 1.17: 1e-8 beside 1/2
def test_quantiles_agree_with_arb(a, b, q):
    assert_quantile_right(a, b, q, 2e-9)


def test_medians_of_equal_shapes_are_one_half():
    shapes = np.geomspace(1e-3, 1e6, 20_000)
    assert np.abs(Beta(shapes, shapes).ppf(0.5) - 0.5).max() < 1e-15


@thorough
@given(large_shapes, large_shapes, probabilities)
def test_quantiles_of_large_shapes_agree_with_arb_to_rounding(a, b, q):
    assert_quantile_right(a, b, q, 2e-13)


@pytest.mark.parametrize("q", [5e-324, 1e-310, 1e-200, 1e-100, 1e-30, 1e-16])
@pytest.mark.parametrize(
    ("a", "b"), [(1.5, 1e-3), (3.0, 39.0), (1e9, 0.5), (1.2, 0.5), (1e6, 1e6), (2.0, 1e12)]
)
def test_quantiles_of_vanishing_probabilities_return_to_them(a, b, q):
    post = one(a, b)
    below, above = (post.cdf(np.nextafter(post.ppf(q), end)) for end in (-1.0, 2.0))
    assert below[0] * (1 - 1e-9) <= q <= above[0] * (1 + 1e-9)


@settings(max_examples=50, deadline=None)
@given(shapes, shapes)
def test_tails_of_quantiles_are_the_probabilities(a, b):
    q = np.linspace(0.01, 0.99, 33)[:, None]
    post, p = one(a, b), one(a, b).ppf(q)
    assert np.all(post.cdf(np.nextafter(p, -1.0)) <= q * (1.0 + 1e-9))
    assert np.all(post.cdf(np.nextafter(p, 2.0)) >= q * (1.0 - 1e-9))


@settings(max_examples=50, deadline=None)
@given(shapes, shapes)
def test_cdf_and_quantile_never_decrease(a, b):
    q = np.concatenate([[0.0], np.logspace(-300, -1, 50), np.linspace(0.1, 1.0, 50)])
    q = np.concatenate([q, 1.0 - np.logspace(-15, -1, 50)])
    q.sort()
    p = one(a, b).ppf(q[:, None])
    assert np.all(np.diff(p, axis=0) >= 0.0)
    assert p[0] == 0.0
    assert p[-1] == 1.0
    points = np.sort(np.concatenate([p[:, 0], np.linspace(-0.5, 1.5, 41)]))[:, None]
    assert np.all(np.diff(one(a, b).cdf(points), axis=0) >= -1e-13)
    assert np.all(np.diff(one(a, b).prob_above(points), axis=0) <= 1e-13)


@thorough
@given(shapes, shapes, st.integers(0, 2**20))
def test_mirrored_shapes_mirror_everything(a, b, k):
    p = k / 2**20  # 1 − p is exact
    post, mirror = one(a, b), one(b, a)
    np.testing.assert_allclose(post.cdf(p), mirror.prob_above(1.0 - p), rtol=1e-9)
    np.testing.assert_allclose(post.pdf(p), mirror.pdf(1.0 - p), rtol=1e-11)
    np.testing.assert_allclose(post.ppf(0.25), 1.0 - mirror.ppf(0.75), rtol=1e-9, atol=2e-16)
    np.testing.assert_allclose(post.var(), mirror.var(), rtol=1e-14)


@thorough
@given(shapes, shapes, deviations)
def test_both_sides_of_a_point_make_one(a, b, z):
    p = point(a, b, z)
    np.testing.assert_allclose(one(a, b).cdf(p) + one(a, b).prob_above(p), 1.0, rtol=1e-9)


@pytest.mark.parametrize("shape", [1e-3, 0.1, 1.0, 7.0, 1e3, 1e6, 1e12])
def test_power_laws(shape):
    """Beta(a, 1) has the cdf p^a, and Beta(1, b) is its mirror."""
    q = np.array([1e-12, 1e-3, 0.3, 0.5, 0.9, 1.0 - 1e-9])[:, None]
    rising, falling = one(shape, 1.0), one(1.0, shape)
    np.testing.assert_allclose(rising.ppf(q), q ** (1.0 / shape), rtol=1e-13, atol=5e-324)
    np.testing.assert_allclose(falling.ppf(q), -np.expm1(np.log1p(-q) / shape), rtol=1e-13)
    p = 0.9 / (1.0 + shape)
    np.testing.assert_allclose(falling.prob_above(p), np.exp(shape * np.log1p(-p)), rtol=1e-13)
    np.testing.assert_allclose(rising.pdf(0.5), shape * 0.5 ** (shape - 1.0), rtol=1e-9)


def test_uniform():
    p = np.array([-0.5, 0.0, 0.25, 1.0, 1.5])[:, None]
    post = one(1.0, 1.0)
    assert post.cdf(p).ravel().tolist() == [0.0, 0.0, 0.25, 1.0, 1.0]
    assert post.prob_above(p).ravel().tolist() == [1.0, 1.0, 0.75, 0.0, 0.0]
    np.testing.assert_allclose(post.pdf(p).ravel(), [0.0, 1.0, 1.0, 1.0, 0.0], rtol=1e-15)
    np.testing.assert_allclose(post.ppf(0.25), 0.25, rtol=1e-15)
    np.testing.assert_allclose(post.var(), 1.0 / 12.0, rtol=1e-15)


def test_arcsine():
    p = np.array([1e-9, 0.1, 0.5, 0.9])[:, None]
    post = one(0.5, 0.5)
    np.testing.assert_allclose(post.cdf(p), 2.0 / np.pi * np.arcsin(np.sqrt(p)), rtol=1e-13)
    np.testing.assert_allclose(post.pdf(p), 1.0 / (np.pi * np.sqrt(p * (1.0 - p))), rtol=1e-13)
    np.testing.assert_allclose(post.ppf(p), np.sin(np.pi * p / 2.0) ** 2, rtol=1e-13)


def test_moments_are_those_of_the_formulas_without_cancellation():
    post = Beta([4.0, 1e-3, 1e12], [2.0, 1e12, 1e12])
    np.testing.assert_allclose(post.mean(), [2.0 / 3.0, 1e-15, 0.5], rtol=1e-14)
    variances = [2.0 / 63.0, 1e-27 * (1.0 - 1e-12), 0.25 / (2e12 + 1.0)]
    np.testing.assert_allclose(post.var(), variances, rtol=1e-14)
    np.testing.assert_array_equal(post.std(), np.sqrt(post.var()))


def test_density_at_the_ends():
    post = Beta([0.5, 1.0, 1.0, 2.0], [1.0, 3.0, 1.0, 0.5])
    np.testing.assert_array_equal(post.pdf(0.0), [np.inf, 3.0, 1.0, 0.0])
    np.testing.assert_array_equal(post.pdf(1.0), [0.5, 0.0, 1.0, np.inf])
    np.testing.assert_array_equal(post.pdf([[-1e-300], [1.0 + 1e-15], [np.inf]]), np.zeros((3, 4)))


def test_no_nan_at_any_extreme():
    post = Beta(ALPHA, BETA)
    ends = [0.0, 5e-324, 1e-310, 1e-300, 1e-16, 1e-6, 0.5]
    points = np.array([-np.inf, *ends, *(1.0 - np.array(ends)), 2.0, np.inf])[:, None]
    for answer in (post.pdf(points), post.cdf(points), post.prob_above(points)):
        assert not np.isnan(answer).any()
        assert answer.min() >= 0.0
    quantiles = post.ppf(points[1:-2].clip(0.0, 1.0))
    assert np.all((quantiles >= 0.0) & (quantiles <= 1.0))


@pytest.mark.parametrize("level", [1e-300, 1e-9, 0.5, 0.95, 1.0 - 1e-12])
def test_intervals_are_ordered_and_inside(level):
    low, high = Beta(ALPHA, BETA).interval(level)
    assert np.all(low >= 0.0)
    assert np.all(low <= high)
    assert np.all(high <= 1.0)


def test_intervals_have_equal_tails():
    low, high = Beta([3.0, 2e6], [8.0, 1e7]).interval(0.9)
    post = Beta([3.0, 2e6], [8.0, 1e7])
    np.testing.assert_allclose(post.cdf(low), 0.05, rtol=1e-12)
    np.testing.assert_allclose(post.prob_above(high), 0.05, rtol=1e-9)


# Sampling

SAMPLED = [
    (1e-3, 1e-3),
    (1e-3, 2.0),
    (5.0, 0.01),
    (0.5, 0.5),
    (3.0, 40.0),
    (1e6, 3e6),
    (1e12, 1e12),
]


@pytest.mark.parametrize(("a", "b"), SAMPLED)
def test_samples_follow_the_cdf(a, b):
    """The Kolmogorov–Smirnov distance, between the atoms at 0 and 1 that rounding makes."""
    n = 20_000
    draws = np.sort(one(a, b).sample(n, random_state=7)[:, 0])
    points = np.concatenate(
        [np.logspace(-290, -1, 300), one(a, b).ppf(np.linspace(0.01, 0.99, 99)[:, None])[:, 0]]
    )
    points = points[(points > 1e-290) & (points < 1.0 - 1e-9)]
    shares = np.searchsorted(draws, points, side="right") / n
    assert np.abs(shares - one(a, b).cdf(points[:, None])[:, 0]).max() < 1.95 / math.sqrt(n)


def test_sample_shapes_and_seeds():
    post = Beta([1.0, 2.0, 3.0], [3.0, 2.0, 1.0])
    assert post.sample().shape == (3,)
    assert post.sample(5).shape == (5, 3)
    assert post.sample((2, 4), random_state=0).shape == (2, 4, 3)
    assert post.sample(np.int64(2)).shape == (2, 3)
    np.testing.assert_array_equal(post.sample(9, random_state=3), post.sample(9, random_state=3))
    for make in (np.random.default_rng, np.random.RandomState):
        rng = make(5)
        assert not np.array_equal(post.sample(2, rng), post.sample(2, rng))
        np.testing.assert_array_equal(post.sample(2, make(5)), post.sample(2, make(5)))


# Shapes, rows, errors


@pytest.mark.parametrize("method", ["pdf", "cdf", "ppf", "prob_above"])
@pytest.mark.parametrize("alpha", [[2.0, 3.0, 0.2], [2.0, 3e7, 0.2]])
def test_arguments_broadcast_like_arrays(method, alpha):
    post = Beta(alpha, [1.0, 5.0, 0.4])
    ask = getattr(post, method)
    grid = ask([[0.2], [0.6]])
    assert grid.shape == (2, 3)
    np.testing.assert_array_equal(ask(0.2), grid[0])
    np.testing.assert_array_equal(ask([0.2, 0.6, 0.2]), [grid[0, 0], grid[1, 1], grid[0, 2]])
    for row in range(3):
        np.testing.assert_array_equal(
            getattr(post[row], method)([[0.2], [0.6]])[:, 0], grid[:, row]
        )


@pytest.mark.parametrize(
    ("index", "rows"),
    [
        (1, [1]),
        (-1, [3]),
        (slice(1, None, 2), [1, 3]),
        ([2, 0, 2], [2, 0, 2]),
        ([], []),
        ([True, False, False, True], [0, 3]),
        (np.array([False, True, True, False]), [1, 2]),
        (np.int64(2), [2]),
    ],
)
def test_index_gives_a_posterior_of_those_rows(index, rows):
    alpha, beta = np.arange(1.0, 5.0), np.arange(5.0, 9.0)
    chosen = Beta(alpha, beta)[index]
    assert isinstance(chosen, Beta)
    assert len(chosen) == len(rows)
    assert chosen.shape == (len(rows),)
    np.testing.assert_array_equal(chosen.alpha, alpha[rows])
    np.testing.assert_array_equal(chosen.beta, beta[rows])


@pytest.mark.parametrize("index", [4, (0, 1), None, 0.5, [True]])
def test_index_that_is_not_of_rows_is_refused(index):
    with pytest.raises(IndexError):
        Beta([1.0, 2.0], [1.0, 2.0])[index]


def test_rows_iterate_as_posteriors():
    assert [float(row.mean()[0]) for row in Beta([1.0, 3.0], [1.0, 1.0])] == [0.5, 0.75]


def test_no_rows():
    empty = Beta([], [])
    assert empty.interval()[0].shape == (0,)
    assert empty.cdf([[0.1], [0.2]]).shape == (2, 0)
    assert empty.pdf(0.5).shape == empty.ppf(0.5).shape == empty.prob_above(0.5).shape == (0,)
    assert empty.sample(3, random_state=0).shape == (3, 0)
    assert repr(empty) == "Beta(alpha=[], beta=[])"


def test_shapes_are_copied_and_read_only():
    alpha = np.array([1, 2])
    post = Beta(alpha, alpha)
    alpha[0] = 9
    assert post.alpha.dtype == post.beta.dtype == np.float64
    assert post.alpha.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        post.alpha[0] = 3.0


def test_repr_is_short_for_many_rows():
    assert isinstance(one(1.0, 1.0), Posterior)
    assert repr(one(4.0, 2.5)) == "Beta(alpha=[4.], beta=[2.5])"
    many = np.linspace(1.0, 2.0, 10_000)
    assert len(repr(Beta(many, many))) < 120


@pytest.mark.parametrize(
    ("alpha", "beta", "message"),
    [
        ([1.0, 0.0], [1.0, 1.0], "alpha row 1: found 0.0; shapes must be positive and finite"),
        ([1.0], [-2.0], "beta row 0: found -2.0; shapes"),
        ([1.0, 2.0, np.nan], [1.0] * 3, "alpha row 2: found NaN; shapes"),
        ([np.inf], [1.0], "alpha row 0: found inf; shapes"),
        (1.0, 1.0, r"alpha: found shape \(\); 1 dimensions are needed"),
        ([[1.0]], [[1.0]], r"alpha: found shape \(1, 1\); 1 dimensions are needed"),
        ([1.0, 2.0], [1.0], "beta: found 1 rows; alpha has 2, one each is needed"),
        (["many"], [1.0], "alpha row 0: found 'many'; shapes must be positive and finite"),
    ],
)
def test_wrong_shapes_are_refused(alpha, beta, message):
    with pytest.raises(ValueError, match=message):
        Beta(alpha, beta)


@pytest.mark.parametrize(
    ("method", "argument", "message"),
    [
        ("cdf", np.nan, "p: found NaN; points must be real numbers"),
        ("pdf", [0.5, np.nan], "p row 1: found NaN; points"),
        ("prob_above", [[0.1], [np.nan]], "p row 1, column 0: found NaN; points"),
        ("ppf", [0.5, 1.5], r"q row 1: found 1\.5; probabilities must be within \[0, 1\]"),
        ("ppf", -1e-9, "q: found -1e-09; probabilities"),
        ("ppf", [np.nan, 0.1], "q row 0: found NaN; probabilities"),
        ("cdf", [0.1, 0.2, 0.3], r"p: found shape \(3,\).*posterior's shape \(2,\)"),
        ("ppf", [[0.1] * 3], r"q: found shape \(1, 3\).*posterior's shape \(2,\)"),
        ("cdf", "half", "p: found 'half'; points must be real numbers"),
        ("interval", 1.0, "level: found 1.0; a probability strictly between 0 and 1 is needed"),
        ("interval", 0.0, "level: found 0.0"),
        ("interval", math.nan, "level: found NaN"),
        ("interval", 95, "level: found 95"),
    ],
)
def test_wrong_arguments_are_refused(method, argument, message):
    with pytest.raises(ValueError, match=message):
        getattr(Beta([1.0, 2.0], [3.0, 4.0]), method)(argument)


masked = np.ma.array([0.5, 0.9], mask=[False, True])
HOSTILE = [
    "a", "0.5", b"a", None, 0.5 + 1j, np.nan, np.ma.masked, masked, np.array([0.5, "a"], object),
    10**400, [10**400, 1], (x for x in [0.5]), np.datetime64("2020-01-01"), np.timedelta64(1, "s"),
    {}, {0.5}, [[0.5], [0.5, 0.6]], object(), [0.1, 0.2, 0.3],
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "name"), [("pdf", "p"), ("cdf", "p"), ("prob_above", "p"), ("ppf", "q")]
)
@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: type(value).__name__)
def test_anything_else_than_numbers_is_refused_by_name(method, name, value):
    post = Beta([1.0, 2.0], [3.0, 4.0])
    with pytest.raises((ValueError, TypeError), match=f"^{name}( row|: )"):
        getattr(post, method)(value)


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("keyword", [False, True])
def test_levels_are_single_probabilities(value, keyword):
    post = Beta([1.0, 2.0], [3.0, 4.0])
    with pytest.raises(
        ValueError, match=r"^level: found .*; a probability strictly between 0 and 1"
    ):
        post.interval(level=value) if keyword else post.interval(value)


@pytest.mark.parametrize("value", [*HOSTILE[:3], *HOSTILE[4:], -1, 2.5, (2, -1), [2, 3], 10**400])
def test_wrong_sizes_are_refused(value):
    with pytest.raises(ValueError, match=r"^size: found "):
        one(1.0, 1.0).sample(value)


@pytest.mark.parametrize("value", [*HOSTILE[:3], *HOSTILE[4:], -1, 2.5, (2, 1)])
def test_wrong_seeds_are_refused(value):
    with pytest.raises(ValueError, match=r"^random_state: found .*; a whole number from 0 on"):
        one(1.0, 1.0).sample(random_state=value)


@pytest.mark.parametrize("index", ["a", 2.5, 5, np.ma.array([0, 1], mask=[True, False]), {}])
def test_wrong_rows_are_refused(index):
    with pytest.raises((IndexError, ValueError), match=r"^index( row 0)?: found"):
        Beta([1.0, 2.0], [3.0, 4.0])[index]


# Shapes of any size ------------------------------------------------------------------------

any_shapes = st.one_of(
    st.floats(-323.0, 308.0).map(lambda e: 10.0**e),
    st.sampled_from([5e-324, 1e-308, 1e-300, 1.0, 2.0, 5001.0, 1e30, 2.0**300, 1e154, 1e308]),
)


@pytest.mark.parametrize("huge", [1e300, 1e308, 1.7e308])
def test_equal_huge_shapes_are_sure_of_a_half(huge):
    post = one(huge, huge)
    assert post.mean() == post.ppf(1e-12) == post.ppf(0.9) == post.sample(random_state=0) == 0.5
    assert post.var()[0] == pytest.approx(0.125 / huge, rel=1e-9)
    assert post.interval() == (0.5, 0.5)
    near = np.nextafter([[0.5], [0.5]], [[0.0], [1.0]])
    np.testing.assert_array_equal(post.cdf(near), [[0.0], [1.0]])
    np.testing.assert_array_equal(post.prob_above(near), [[1.0], [0.0]])
    np.testing.assert_allclose([post.cdf(0.5), post.prob_above(0.5)], 0.5, rtol=1e-12)
    # The peak is that of the normal distribution with the same variance.
    assert post.pdf(0.5)[0] == pytest.approx(math.sqrt(4.0 / math.pi) * math.sqrt(huge), rel=1e-9)


@pytest.mark.parametrize("minute", [5e-324, 1e-310, 1e-307, 1e-100])
def test_minute_shapes_are_sure_of_0_or_1(minute):
    post = one(minute, 3.0 * minute)
    assert post.mean()[0] == pytest.approx(0.25)
    assert post.var()[0] == pytest.approx(0.25 * 0.75)
    np.testing.assert_allclose(post.cdf([[1e-9], [0.5]]), 0.75)
    np.testing.assert_allclose(post.prob_above([[1e-9], [0.5]]), 0.25)
    np.testing.assert_array_equal(post.ppf([[0.7], [0.8]]), [[0.0], [1.0]])
    density = post.pdf(0.5)[0] / minute
    assert density == pytest.approx(3.0, rel=0.1 if minute < 1e-320 else 1e-9)


@given(st.floats(5.0, 308.0).map(lambda e: 10.0**e), st.floats(-3.0, 2.5))
def test_one_shape_of_1_beside_any_other_has_closed_forms(b, power):
    p = min(10.0**power / b, 0.5)
    lower, upper = -math.expm1(b * math.log1p(-p)), math.exp(b * math.log1p(-p))
    post = one(1.0, b)
    assert post.cdf(p)[0] == pytest.approx(lower, rel=1e-9)
    assert post.prob_above(p)[0] == pytest.approx(upper, rel=1e-9)
    if lower < 0.99:
        assert post.ppf(lower)[0] == pytest.approx(p, rel=1e-9)


@thorough
@given(any_shapes, any_shapes, st.lists(st.floats(0.0, 1.0), min_size=2, max_size=5))
@example(1e308, 1e-308, [1e-300, 0.5])
@example(1e-3, 1e300, [1e-301, 1e-290])
@example(1e154, 1e160, [1e-6, 0.025])
def test_shapes_of_any_size_give_distributions(a, b, points):
    post, points = one(a, b), np.sort(points)[:, None]
    lower, upper = post.cdf(points), post.prob_above(points)
    assert np.all(np.diff(lower, axis=0) >= -1e-12)
    np.testing.assert_allclose(lower + upper, 1.0, atol=1e-9)
    assert np.all(post.pdf(points) >= 0.0)
    quantiles = post.ppf(points)
    assert np.all((quantiles >= 0.0) & (quantiles <= 1.0))
    assert np.all(np.diff(quantiles, axis=0) >= -1e-12)
    assert 0.0 <= post.mean()[0] <= 1.0
    assert 0.0 <= post.var()[0] <= 0.25
    draws = post.sample(5, random_state=0)
    assert np.all((draws >= 0.0) & (draws <= 1.0))
