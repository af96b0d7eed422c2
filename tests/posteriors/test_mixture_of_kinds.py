"""Mixtures of any kind against those of Betas, Arb, integration, and under invariances."""

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import integrate, special, stats

from betafield import contexts
from betafield.posteriors import Beta, Contextual, Dirichlet, Mixture

levels = np.array([1e-12, 1e-6, 0.001, 0.025, 0.3, 0.5, 0.7, 0.975, 0.999, 1 - 1e-6, 1 - 1e-12])
METHODS = ("pdf", "cdf", "prob_above", "ppf")


@st.composite
def both(draw, rows=3, least=-0.5, most=4.0):
    """Draw a mixture of separate Betas, and the same as one batch, with some components absent."""
    shape = draw(st.integers(1, rows)), draw(st.integers(1, 4))
    exponents = hnp.arrays(np.float64, shape, elements=st.floats(least, most))
    log_weights = draw(hnp.arrays(np.float64, shape, elements=st.floats(-30.0, 3.0)))
    log_weights[:, 1:][draw(hnp.arrays(np.bool_, (shape[0], shape[1] - 1)))] = -np.inf
    alpha, beta = 10.0 ** draw(exponents), 10.0 ** draw(exponents)
    return of_betas(log_weights, alpha, beta), Mixture.of_betas(log_weights, alpha, beta)


def of_betas(log_weights, alpha, beta):
    return Mixture(log_weights, [Beta(a, b) for a, b in zip(alpha.T, beta.T, strict=True)])


def distorted(rng, rows, trials=12.0, widths=3):
    """Return contextual posteriors of nested windows, and the arrays that define them."""
    shape = widths, rows, 4
    counts = rng.poisson(trials, size=shape).cumsum(axis=0).astype(float)
    shifts = np.broadcast_to(rng.normal(scale=2.0, size=shape[1:]), shape)
    alpha, beta = 0.7 + rng.poisson(trials, size=(2, *shape[:2])).cumsum(axis=1)
    made = [
        Contextual(alpha[k], beta[k], shifts=shifts[k], trials=counts[k]) for k in range(widths)
    ]
    return made, (alpha, beta, shifts, counts)


def integrated(alpha, beta, shifts, trials):
    """Return the density in log-odds u of one row, and its integrals up to u and from u on.

    The formula of `Contextual`, by Simpson's rule.
    """
    u = np.linspace(-60.0, 60.0, 240_001)
    phi = np.logaddexp(0.0, u)
    log_density = alpha * u - (alpha + beta) * phi
    log_density += (trials * (np.logaddexp(0.0, u[:, None] + shifts) - phi[:, None])).sum(axis=1)
    density = np.exp(log_density - log_density.max())
    lower = integrate.cumulative_simpson(density, x=u, initial=0.0)
    upper = integrate.cumulative_simpson(density[::-1], x=u, initial=0.0)[::-1]
    return np.array([density, lower, upper]) / lower[-1]


# Against mixtures of Betas and Arb ---------------------------------------------------------


@settings(max_examples=60)
@given(both(), st.floats(0.0, 1.0))
def test_a_blend_of_betas_is_their_mixture(pair, p):
    post, truth = pair
    np.testing.assert_allclose(post.mean(), truth.mean(), rtol=1e-14)
    np.testing.assert_allclose(post.var(), truth.var(), rtol=1e-12)
    for name in ("pdf", "cdf", "prob_above"):
        np.testing.assert_allclose(
            getattr(post, name)(p), getattr(truth, name)(p), rtol=1e-13, err_msg=name
        )


@settings(max_examples=60)
@given(both())
def test_quantiles_are_those_of_the_mixture(pair):
    post, truth = pair
    assert_tails(truth, post.ppf(levels[:, None]), levels[:, None], 1e-11)


def assert_tails(truth, p, q, tolerance):
    """Expect the smaller tail at p to be that of q, up to one rounding of p."""
    assert excess(truth, np.nextafter(p, 0.0), q).max() < tolerance
    assert excess(truth, np.nextafter(p, 1.0), q).min() > -tolerance


def excess(truth, p, q):
    """Return the excess of the cdf at p over q, relative to the smaller tail of q."""
    return np.where(q <= 0.5, truth.cdf(p) / q - 1.0, 1.0 - truth.prob_above(p) / (1.0 - q))


@pytest.mark.parametrize("q", [1e-6, 0.3, 0.975])
def test_quantiles_that_are_off_are_told_apart(q):
    truth = Beta([2.0], [3.0])
    p = truth.ppf(q)
    assert_tails(truth, p, q, 1e-11)
    for off in (1.0 - 1e-9, 1.0 + 1e-9):
        with pytest.raises(AssertionError):
            assert_tails(truth, p * off, q, 1e-11)


@pytest.mark.long
@pytest.mark.parametrize("q", [1e-12, 0.025, 0.3, 0.975, 1 - 1e-6])
@pytest.mark.parametrize("shapes", [(5.0, 50.0), (1e8, 1.001e8)])
def test_no_quantile_of_thousands_is_taken_for_settled_too_early(q, shapes):
    rng = np.random.default_rng(12)
    log_weights, (alpha, beta) = rng.normal(size=(2000, 3)), rng.uniform(*shapes, (2, 2000, 3))
    p = of_betas(log_weights, alpha, beta).ppf(q)
    assert_tails(Mixture.of_betas(log_weights, alpha, beta), p, q, 1e-11)


@pytest.mark.parametrize("q", [0.3, 0.45])
def test_quantiles_where_the_tail_hardly_moves(q):
    """For p^a and p^2a: Σ w p^a = q is a quadratic equation in p^a."""
    a, w = 0.005, np.linspace(0.01, 0.99, 2000)
    post = Mixture(
        np.log(np.column_stack([w, 1 - w])),
        [Beta(np.full(2000, s), np.ones(2000)) for s in (a, 2 * a)],
    )
    root = 2 * q / (w + np.sqrt(w * w + 4 * (1 - w) * q))
    np.testing.assert_allclose(post.ppf(q), root ** (1 / a), rtol=2e-12)


def test_quantiles_nearer_to_an_end_than_any_float():
    post = Mixture(0.0, [Beta([1.0], [0.01]), Beta([1.0], [0.02])])
    # 1 − p is a power of the upper tail.
    p = post.ppf([[1e-3], [0.2], [0.6], [0.9]])[:, 0]
    np.testing.assert_array_equal(p[2:], 1.0)
    upper = 0.5 * ((1 - p[:2]) ** 0.01 + (1 - p[:2]) ** 0.02)
    np.testing.assert_allclose(upper, [0.999, 0.8], rtol=1e-11)
    zero = Mixture(0.0, [Beta([0.01], [1.0]), Beta([0.02], [1.0])]).ppf([[1e-9], [0.8]])
    assert zero[0] == 0.0
    assert 0.5 * (zero[1] ** 0.01 + zero[1] ** 0.02) == pytest.approx(0.8, rel=1e-12)


def test_probabilities_are_at_most_1_in_spite_of_rounding():
    rng = np.random.default_rng(13)
    post = Mixture(rng.normal(size=(500, 7)), [Beta(np.ones(500), np.ones(500))] * 7)
    assert np.exp(post.log_weights).sum(axis=1).max() > 1.0
    assert post.cdf(1.0).max() == post.prob_above(0.0).max() == 1.0


@settings(max_examples=40)
@given(both(least=-3.0, most=8.0))
def test_quantiles_grow_with_their_level(pair):
    q = np.concatenate([[0.0, 1e-300, 1e-100], levels, [1 - 1e-15, 1.0]])[:, None]
    p = pair[0].ppf(q)
    assert (np.diff(p, axis=0) >= -1e-11 * p[1:]).all()
    np.testing.assert_array_equal(p[[0, -1]], np.broadcast_to([[0.0], [1.0]], p[[0, -1]].shape))


def by_arb(weights, alpha, beta, p, above):
    """Return Σ w I_p(α, β), or its upper tail, for integer shapes in 600 bits."""
    ctx.prec = 600
    total = arb(0)
    for w, a, b in zip(weights, alpha, beta, strict=True):
        x, shapes = (1 - arb(p), (b, a)) if above else (arb(p), (a, b))
        total += arb(w) * x.beta_lower(*map(arb, shapes), regularized=True)
    return float(total / sum(map(arb, weights), arb(0)))


@pytest.mark.parametrize(
    ("p", "above"), [(1e-20, False), (1e-5, False), (0.3, False), (0.9999, True), (0.999999, True)]
)
def test_tails_keep_their_digits(p, above):
    weights, alpha, beta = [0.25, 0.5, 4.0], [12.0, 20.0, 11.0], [40.0, 50.0, 41.0]
    post = of_betas(np.log([weights]), np.array([alpha]), np.array([beta]))
    tail = post.prob_above(p) if above else post.cdf(p)
    truth = by_arb(weights, alpha, beta, p, above)
    assert tail[0] == pytest.approx(truth, rel=1e-12, abs=0)
    assert p != 1e-20 or truth < 1e-200


@pytest.mark.parametrize("q", [1e-200, *levels])
def test_quantiles_are_those_of_arb(q):
    weights, alpha, beta = [0.25, 0.5, 4.0], [2.0, 20.0, 11.0], [40.0, 50.0, 3.0]
    post = of_betas(np.log([weights]), np.array([alpha]), np.array([beta]))
    p = post.ppf(q)[0]
    rounding = post.pdf(p)[0] * np.spacing(p)
    tail = by_arb(weights, alpha, beta, p, above=q > 0.5)
    assert tail == pytest.approx(min(q, 1 - q), rel=2e-12, abs=2 * rounding)


def test_exact_moments_and_tails_of_two_simple_components():
    post = Mixture(np.log([0.25, 0.75]), [Beta([1.0], [1.0]), Beta([2.0], [1.0])])
    # Densities 1 and 2p: means 1/2 and 2/3, variances 1/12 and 1/18.
    mean = 0.25 / 2 + 0.75 * 2 / 3
    assert post.mean()[0] == pytest.approx(mean, rel=1e-15)
    second = 0.25 / 3 + 0.75 / 2
    assert post.var()[0] == pytest.approx(second - mean**2, rel=1e-14)
    assert post.std()[0] == pytest.approx((second - mean**2) ** 0.5, rel=1e-14)
    assert post.cdf(0.5)[0] == pytest.approx(0.25 * 0.5 + 0.75 * 0.25, rel=1e-15)
    # 3p² + p = 4q.
    q = levels[:, None]
    root = 8 * q / (1 + np.sqrt(1 + 48 * q))
    np.testing.assert_allclose(post.ppf(q), root, rtol=1e-13)
    low, high = post.interval(0.9)
    np.testing.assert_allclose([low[0], high[0]], [0.4 / (1 + 3.4**0.5), 7.6 / (1 + 46.6**0.5)])


def test_variance_of_narrow_components_does_not_cancel():
    post = of_betas(0.0, np.array([[4e12, 4e12 + 4e4]]), np.array([[4e12, 4e12 - 4e4]]))
    within, between = 1 / (4 * 8e12), (4e4 / 8e12 / 2) ** 2
    assert post.var()[0] == pytest.approx(within + between, rel=1e-9, abs=0)


# Against numerical integration -------------------------------------------------------------


def test_blends_of_distorted_trials_are_integrals_of_their_densities():
    rng = np.random.default_rng(4)
    components, arrays = distorted(rng, rows=3)
    log_weights = rng.normal(size=(3, 3))
    post = Mixture(log_weights, components)
    u = np.linspace(-60.0, 60.0, 240_001)
    x = special.expit(u)
    for row in range(3):
        weights = special.softmax(log_weights[row])
        each = [integrated(*(array[k, row] for array in arrays)) for k in range(3)]
        density, lower, upper = np.tensordot(weights, each, 1)
        mean = integrate.simpson(x * density, x=u)
        assert post.mean()[row] == pytest.approx(mean, rel=1e-9)
        var = integrate.simpson((x - mean) ** 2 * density, x=u)
        assert post.var()[row] == pytest.approx(var, rel=1e-8)
        at = np.searchsorted(lower, [1e-6, 0.025, 0.5, 0.975, 1 - 1e-6])
        points, one = x[at][:, None], post[row]
        np.testing.assert_allclose(one.cdf(points)[:, 0], lower[at], rtol=1e-7)
        np.testing.assert_allclose(one.prob_above(points)[:, 0], upper[at], rtol=1e-7)
        truth = density[at] / (x[at] * special.expit(-u[at]))
        np.testing.assert_allclose(one.pdf(points)[:, 0], truth, rtol=1e-7)
        np.testing.assert_allclose(one.ppf(lower[at][:, None]), points, rtol=1e-7)


@pytest.mark.parametrize("trials", [1.0, 5.0, 300.0])
def test_quantiles_of_distorted_trials_have_their_tails(trials):
    rng = np.random.default_rng(5)
    components, _ = distorted(rng, 40, trials)
    post, q = Mixture(rng.normal(size=(40, 3)), components), levels[1:-1, None]
    assert_tails(post, post.ppf(q), q, 1e-10)


def test_cdf_is_the_integral_of_the_density():
    post = mixed_kinds()
    for row in range(2):
        one = post[row]
        area, _ = integrate.quad(lambda p, one=one: one.pdf(p)[0], 0.1, 0.45, epsabs=1e-11)
        assert one.cdf(0.45)[0] - one.cdf(0.1)[0] == pytest.approx(area, abs=1e-9)


# Kinds -------------------------------------------------------------------------------------


def mixed_kinds():
    rng = np.random.default_rng(6)
    plain = Beta([3.0, 40.0], [5.0, 20.0])
    kinds = [
        plain,
        distorted(rng, 2)[0][0],
        Mixture.of_betas(np.zeros((2, 2)), [[2.0, 9.0]], [[4.0, 4.0]]),
        plain.under([0.1, 0.8]),
        Beta([2.0, 3.0], [2.0, 3.0]).under(contexts.pooled(3)),
        Mixture([0.0, 1.0], [plain, Beta([1.0, 2.0], [1.0, 2.0])]),
    ]
    return Mixture(np.log([1.0, 2.0, 3.0, 1.0, 0.5, 2.5]), kinds)


def test_components_may_be_of_any_kind():
    post, weights = mixed_kinds(), np.array([1.0, 2.0, 3.0, 1.0, 0.5, 2.5]) / 10.0
    p = np.array([[0.02], [0.3], [0.9]])
    for name in ("pdf", "cdf", "prob_above"):
        each = [getattr(component, name)(p) for component in post.components]
        np.testing.assert_allclose(
            getattr(post, name)(p), np.tensordot(weights, each, 1), rtol=1e-13
        )
    # Nearer to 1, the polynomial's own tail is as coarse as floats are there.
    q = levels[:-2, None]
    assert_tails(post, post.ppf(q), q, 1e-11)
    means = np.array([component.mean() for component in post.components])
    seconds = [c.var() + m**2 for c, m in zip(post.components, means, strict=True)]
    np.testing.assert_allclose(post.mean(), weights @ means, rtol=1e-13)
    np.testing.assert_allclose(post.var(), weights @ seconds - (weights @ means) ** 2, rtol=1e-10)


@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_a_component_may_be_certain(value):
    """A step of 0.3 at `value`, and 0.7 of a Beta: its quantiles are known on both sides."""
    plain = Beta([2.0], [3.0])
    post = Mixture(np.log([0.3, 0.7]), [plain.under([value, value]), plain])
    before = 0.7 * plain.cdf(value)[0]
    assert post.cdf(value)[0] == pytest.approx(before + 0.3, rel=1e-15)
    assert post.cdf(-1e-9)[0] == 0.0
    assert post.prob_above(value)[0] == pytest.approx(0.7 - before, rel=1e-15)
    inside = before + 0.3 * np.array([[1e-9], [0.2], [0.5], [1 - 1e-9]])
    np.testing.assert_array_equal(post.ppf(inside), value)
    for share in (1e-12, 1e-3, 0.4, 0.9):
        low, high = share * before, 1.0 - share * (0.7 - before)
        if before > 0.0:
            np.testing.assert_allclose(post.ppf(low), plain.ppf(low / 0.7), rtol=1e-12)
        if before < 0.7:
            # From the upper tail, because q has fewer digits than 1 − q.
            expected = 1 - Beta([3.0], [2.0]).ppf((1.0 - high) / 0.7)
            np.testing.assert_allclose(post.ppf(high), expected, rtol=1e-12)
    draws = post.sample(2000, random_state=1)
    assert (draws == value).mean() == pytest.approx(0.3, abs=0.04)


@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_steps_take_few_rounds(value):
    plain = Counted([2.0], [3.0])
    post = Mixture(np.log([0.3, 0.7]), [plain.under([value, value]), plain])
    level = 0.7 * plain.cdf(value)[0] + 0.2
    plain.asked.clear()
    assert post.ppf(level)[0] == value
    assert len(plain.asked) <= 4  # at both ends, by both components


def test_rows_with_and_without_certain_components():
    plain = Beta([2.0, 2.0, 2.0], [3.0, 3.0, 3.0])
    post = Mixture(0.0, [plain.under([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), plain])
    half = plain.ppf(0.6)[0], plain.ppf(0.3)[0]
    np.testing.assert_allclose(post.ppf(0.3), [0.0, half[1], half[0]], rtol=1e-13)
    np.testing.assert_allclose(post.ppf(0.8), [half[0], plain.ppf(0.8)[0], 1.0], rtol=1e-13)


def test_the_ends_are_those_of_the_components():
    plain = Beta([2.0, 5.0], [3.0, 1.0])
    post = Mixture([[0.0, 0.0], [0.0, -np.inf]], [plain.under([0.2, 0.5]), plain.under([0.4, 0.7])])
    np.testing.assert_array_equal(post.ppf([[0.0], [1.0]]), [[0.2, 0.2], [0.7, 0.5]])
    np.testing.assert_array_equal(post.cdf([[-1.0], [2.0]]), [[0, 0], [1, 1]])


def test_under_a_context():
    rng = np.random.default_rng(7)
    components, _ = distorted(rng, 4)
    post = Mixture(rng.normal(size=(4, 3)), components)
    tired, q = post.under([0.1, 0.6]), levels[1:-1, None]
    np.testing.assert_allclose(tired.mean(), 0.1 + 0.5 * post.mean(), rtol=1e-13)
    np.testing.assert_allclose(tired.var(), 0.25 * post.var(), rtol=1e-12)
    np.testing.assert_allclose(tired.ppf(q), 0.1 + 0.5 * post.ppf(q), rtol=1e-9)
    differ = post.under([0.0, 1.0, 0.0])
    # 2π(1−π) ≤ 0.32 outside of (0.2, 0.8).
    expected = post.cdf(0.2) + post.prob_above(0.8)
    np.testing.assert_allclose(differ.cdf(0.32), expected, rtol=1e-9)
    np.testing.assert_allclose(
        differ.mean(), 2 * (post.mean() - post.mean() ** 2 - post.var()), rtol=1e-9
    )
    one_a_row = post.under(np.array([[0.0, 1.0], [0.5, 1.0], [0.0, 0.5], [1.0, 0.0]]))
    means = post.mean() * [1.0, 0.5, 0.5, -1.0] + [0.0, 0.5, 0.0, 1.0]
    np.testing.assert_allclose(one_a_row.mean(), means, rtol=1e-13)
    assert post.under([0.0, 1.0]) is post
    with pytest.raises(ValueError, match=r"found shape \(2, 2\); one context"):
        post.under([[0.0, 1.0], [0.0, 0.5]])


# Weights -----------------------------------------------------------------------------------


def test_weights_of_all_rows_or_of_each():
    components = [Beta([2.0, 3.0], [1.0, 1.0]), Beta([1.0, 1.0], [2.0, 4.0])]
    means = np.array([component.mean() for component in components]).T
    for log_weights in (np.log([1.0, 3.0]), np.log([[1.0, 3.0]]), [[5.0, 5.0 + np.log(3.0)]] * 2):
        np.testing.assert_allclose(Mixture(log_weights, components).mean(), means @ [0.25, 0.75])
    np.testing.assert_allclose(Mixture(0.0, components).mean(), means @ [0.5, 0.5])
    np.testing.assert_allclose(Mixture([[0.0], [9.0]], components).mean(), means @ [0.5, 0.5])
    each = Mixture(np.log([[1.0, 3.0], [3.0, 1.0]]), components)
    np.testing.assert_allclose(each.mean(), [means[0] @ [0.25, 0.75], means[1] @ [0.75, 0.25]])
    assert each.log_weights.shape == (2, 2)
    assert not each.log_weights.flags.writeable


class Unasked(Beta):
    """Refuses all computations that could be expensive."""

    def mean(self):
        raise AssertionError("asked")

    var = _pdf = _cdf = _above = _ppf = _draw = lambda *_: Unasked.mean(None)


def test_absent_components_are_not_asked():
    there = Beta([2.0, 3.0], [4.0, 1.0])
    post = Mixture([-np.inf, 0.0], [Unasked([1.0, 1.0], [1.0, 1.0]), there])
    for name in METHODS:
        np.testing.assert_array_equal(getattr(post, name)(0.3), getattr(there, name)(0.3))
    np.testing.assert_array_equal(post.mean(), there.mean())
    np.testing.assert_array_equal(post.var(), there.var())
    assert post.sample(5, random_state=0).shape == (5, 2)


def test_an_absent_component_with_unbounded_density_is_absent():
    components = [Beta([2.0, 2.0], [2.0, 2.0]), Beta([0.5, 0.5], [0.5, 0.5])]
    post = Mixture([[0.0, -np.inf], [0.0, 0.0]], components)
    np.testing.assert_array_equal(post.pdf([[0.0], [1.0]]), [[0.0, np.inf], [0.0, np.inf]])


def test_a_component_of_hardly_any_weight_does_not_move_quantiles():
    post = Mixture([0.0, -90.0], [Beta([30.0], [40.0]), Beta([1e-3], [1e3])])
    np.testing.assert_array_equal(
        post.ppf(levels[:, None]), Beta([30.0], [40.0]).ppf(levels[:, None])
    )


# The cost of quantiles ----------------------------------------------------------------------


@settings(max_examples=20)
@given(st.integers(0, 1000))
def test_quantiles_of_equal_components_are_theirs(seed):
    rng = np.random.default_rng(seed)
    component = distorted(rng, 3)[0][1]
    post = Mixture(rng.normal(size=(3, 3)), [component] * 3)
    q = levels[:, None]
    np.testing.assert_array_equal(post.ppf(q), component.ppf(q))


class Counted(Beta):
    """Records for how many rows the tails are computed each time, also in subsets of rows."""

    def __init__(self, alpha, beta):
        super().__init__(alpha, beta)
        self.asked = []

    def _cdf(self, p):
        self.asked.append(len(self))
        return super()._cdf(p)

    def _above(self, p):
        self.asked.append(len(self))
        return super()._above(p)


def test_quantiles_take_few_rounds():
    rng = np.random.default_rng(8)
    components = [Counted(*rng.uniform(2.0, 40.0, size=(2, 200))) for _ in range(3)]
    post = Mixture(rng.normal(size=(200, 3)), components)
    for q in (0.025, 0.975):
        post.ppf(q)
    assert len(components[0].asked) <= 2 * 20
    assert sum(components[0].asked) <= 2 * 200 * 11


def test_levels_of_one_row_are_asked_for_together():
    rng = np.random.default_rng(8)
    components = [Counted(*rng.uniform(2.0, 40.0, size=(2, 200))) for _ in range(3)]
    post = Mixture(rng.normal(size=(200, 3)), components)
    post.ppf(np.linspace(0.05, 0.45, 9)[:, None])
    assert sum(components[0].asked) <= 200 * 14


@pytest.mark.long
@pytest.mark.parametrize(
    ("alpha", "beta"),
    [([3e7, 9e8], [2.5e8, 5e6]), ([1e-3, 1.0], [1.0, 1e-3]), ([1e12, 1e12], [1e12, 3e12])],
)
def test_quantiles_of_components_far_apart_take_no_endless_search(alpha, beta):
    components = [Counted([a], [b]) for a, b in zip(alpha, beta, strict=True)]
    post = Mixture(np.log([[0.25, 0.75]]), components)
    truth = Mixture.of_betas(np.log([[0.25, 0.75]]), alpha, beta)
    q = 0.25 * np.array([1e-9, 0.01, 0.2, 0.5, 0.99, 1.0 - 2.0**-23, 1.0, 1.5, 2.0, 3.9])
    for level in q:
        p = post.ppf(level)
        assert truth.cdf(np.nextafter(p * (1 - 1e-14), -1.0))[0] <= level * (1 + 1e-9)
        assert truth.cdf(np.nextafter(p * (1 + 1e-14), 2.0))[0] >= level * (1 - 1e-9)
    assert len(components[0].asked) <= 90 * len(q)


def test_moments_ask_for_no_tails():
    post = Mixture(0.0, [Counted([1.0] * 3, [2.0] * 3)] * 2)
    assert post.mean().shape == post.var().shape == (3,)
    assert post.under([0.0, 1.0, 1.0]).var().shape == (3,)
    assert post.components[0].asked == []


# Rows --------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(both(), st.floats(0.05, 0.95))
def test_rows_are_independent_and_keep_their_bits(pair, p):
    post, last = pair[0], len(pair[0]) - 1
    chosen = post[[last, 0]]
    assert isinstance(chosen, Mixture)
    np.testing.assert_array_equal(chosen.log_weights, post.log_weights[[last, 0]])
    for name in METHODS:
        np.testing.assert_array_equal(
            getattr(chosen, name)(p), getattr(post, name)(p)[[last, 0]], err_msg=name
        )
    np.testing.assert_array_equal(chosen.mean(), post.mean()[[last, 0]])
    np.testing.assert_array_equal(chosen.var(), post.var()[[last, 0]])


def test_levels_of_both_tails_in_one_call():
    rng = np.random.default_rng(10)
    post = Mixture(rng.normal(size=(5, 3)), distorted(rng, 5)[0])
    q = rng.permutation(np.append(levels, [0.0, 1.0]))[:, None, None]
    q = np.broadcast_to(q, (len(q), 2, 5)) * [[[1.0], [0.25]]]
    one_by_one = np.array([[post.ppf(level) for level in pair] for pair in q])
    np.testing.assert_array_equal(post.ppf(q), one_by_one)
    own = np.array([0.1, 0.6, 0.5, 0.99, 0.0])
    np.testing.assert_array_equal(post.ppf(own), [post[i].ppf(own[i])[0] for i in range(5)])


def test_batches_do_not_show():
    rng = np.random.default_rng(11)
    post, q = Mixture(rng.normal(size=(7, 3)), distorted(rng, 7)[0]), rng.uniform(size=(5, 7))
    whole = post.ppf(q)
    post.batch_size = 3 * 5 * 3
    np.testing.assert_array_equal(post.ppf(q), whole)


def test_no_rows():
    none = np.zeros(0)
    for component in (
        Beta(none, none),
        Contextual(none, none, shifts=np.zeros((0, 2)), trials=np.zeros((0, 2))),
    ):
        post = Mixture([0.0, 0.0], [component, Beta(none, none)])
        assert post.shape == post.mean().shape == post.var().shape == (0,)
        assert all(getattr(post, name)(0.5).shape == (0,) for name in METHODS)
        assert post.ppf([[0.1], [0.9]]).shape == (2, 0)
        assert post.sample(3, random_state=0).shape == (3, 0)
        assert repr(post) == "<Mixture, shape 0>"


def test_no_points():
    post = mixed_kinds()
    assert all(getattr(post, name)(np.zeros((0, 1))).shape == (0, 2) for name in METHODS)
    assert post.sample(0, random_state=0).shape == (0, 2)


# Samples -----------------------------------------------------------------------------------


def test_samples_follow_the_distribution():
    post = mixed_kinds()
    draws = post.sample((50, 200), random_state=5)
    assert draws.shape == (50, 200, 2)
    for row in range(2):
        fit = stats.kstest(
            draws[..., row].ravel(), lambda p, row=row: post[row].cdf(p[:, None])[:, 0]
        )
        assert fit.pvalue > 0.01
    np.testing.assert_array_equal(draws, post.sample((50, 200), random_state=5))
    # Rows are drawn independently, and so are the draws of one row.
    flat = special.ndtri(post.cdf(draws)).reshape(-1, 2)
    assert abs(np.corrcoef(flat.T)[0, 1]) < 0.04
    assert abs(np.corrcoef(flat[:-1, 0], flat[1:, 0])[0, 1]) < 0.04


@pytest.mark.parametrize("rng", [np.random.default_rng(0), np.random.RandomState(0), 0])
def test_samples_come_from_each_rows_own_components(rng):
    near_one, near_zero = Beta([1e9, 1e9], [1.0, 1.0]), Beta([1.0, 1.0], [1e9, 1e9])
    post = Mixture([[0.0, -np.inf], [-np.inf, 0.0]], [near_one, near_zero])
    draws = post.sample((5, 20), random_state=rng)
    assert draws[..., 0].min() > 0.99
    assert draws[..., 1].max() < 0.01
    assert post.sample(random_state=rng).shape == (2,)


# Bad input ---------------------------------------------------------------------------------

two = Beta([1.0, 2.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("log_weights", "components", "message"),
    [
        (0.0, [], r"components: found \(\); at least one posterior is needed"),
        (
            0.0,
            [two, Beta([1.0], [1.0])],
            r"components\[1\]: found 1 rows; components\[0\] has 2, one each is needed",
        ),
        (
            0.0,
            [two, Dirichlet([[1.0, 2.0, 3.0]] * 2)],
            r"components\[1\]: found shape \(2, 3\); posteriors of one probability per row, of "
            r"shape \(m,\), are needed, such as one class of several, marginal\(k\)",
        ),
        ([0.0, np.nan], [two, two], "log_weights row 1: found NaN; numbers below infinity"),
        ([[0.0], [np.inf]], [two, two], "log_weights row 1, column 0: found inf; numbers below"),
        (
            [[0.0, 1.0], [-np.inf, -np.inf]],
            [two, two],
            "log_weights row 1: found -inf only; at least one",
        ),
        (
            [0.0, 0.0, 0.0],
            [two, two],
            r"log_weights: found shape \(3,\); with 2 components of 2 rows it must broadcast to "
            r"\(2, 2\)",
        ),
        (
            np.zeros((1, 2, 2)),
            [two, two],
            r"log_weights: found shape \(1, 2, 2\); with 2 components",
        ),
        (["a", "b"], [two, two], "log_weights row 0: found 'a'"),
    ],
)
def test_bad_arguments(log_weights, components, message):
    with pytest.raises(ValueError, match=message):
        Mixture(log_weights, components)


@pytest.mark.parametrize(
    ("components", "message"),
    [
        (two, "components: found one Beta; a sequence of posteriors is needed"),
        ([two, 0.5], r"components\[1\]: found float; posteriors are needed"),
    ],
)
def test_what_is_no_sequence_of_posteriors(components, message):
    with pytest.raises(TypeError, match=message):
        Mixture(0.0, components)


def test_bad_questions():
    post = Mixture(0.0, [two, two])
    with pytest.raises(ValueError, match="p: found NaN; points must be real numbers"):
        post.cdf(np.nan)
    with pytest.raises(
        ValueError, match=r"q row 1: found 1.5; probabilities must be within \[0, 1\]"
    ):
        post.ppf([0.5, 1.5])
