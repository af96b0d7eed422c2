"""Mixtures against Arb, numerical integration and their single components."""

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import integrate, stats

from betafield.posteriors.beta import Beta
from betafield.posteriors.mixture import Mixture

SHAPES = ("alpha", "beta")
levels = np.array([1e-12, 1e-3, 0.025, 0.3, 0.5, 0.7, 0.975, 0.999])


@st.composite
def mixtures(draw, rows=3, least=-0.5, most=4.0):
    """Draw rows of up to five components with shapes from 10^least to 10^most, some absent."""
    shape = draw(st.integers(1, rows)), draw(st.integers(1, 5))
    exponents = hnp.arrays(np.float64, shape, elements=st.floats(least, most))
    log_weights = draw(hnp.arrays(np.float64, shape, elements=st.floats(-30.0, 3.0)))
    log_weights[:, 1:][draw(hnp.arrays(np.bool_, (shape[0], shape[1] - 1)))] = -np.inf
    return Mixture.of_betas(log_weights, 10.0 ** draw(exponents), 10.0 ** draw(exponents))


def shapes_of(post):
    """Return the shapes of a mixture of Betas, (m, k) each."""
    return (np.column_stack([getattr(c, name) for c in post.components]) for name in SHAPES)


def by_arb(post, row, term):
    """Return Σ w_k term(α_k, β_k) in Arb, with enough precision to prove all digits of float64."""
    present = post.log_weights[row] > -np.inf
    columns = post.log_weights, *shapes_of(post)
    components = np.column_stack([column[row, present] for column in columns]).tolist()
    for bits in (128, 512, 2048, 8192):
        ctx.prec = bits
        weights = [arb(w).exp() for w, _, _ in components]
        terms = [w * term(arb(a), arb(b)) for w, (_, a, b) in zip(weights, components, strict=True)]
        result = sum(terms, arb(0)) / sum(weights, arb(0))
        if result.rel_accuracy_bits() > 60:
            return float(result)
    raise AssertionError(f"Arb knows {result} only")


def arb_density(p):
    p = arb(p)
    return lambda a, b: (
        p ** (a - 1) * (1 - p) ** (b - 1) * (a + b).gamma() / (a.gamma() * b.gamma())
    )


def arb_cdf(p):
    return lambda a, b: arb(p).beta_lower(a, b, regularized=True)


def arb_above(p):
    return lambda a, b: (1 - arb(p)).beta_lower(b, a, regularized=True)


# Moments and tails -------------------------------------------------------------------------


@given(mixtures())
def test_moments_are_those_of_arb(post):
    for row in range(len(post)):
        mean = by_arb(post, row, lambda a, b: a / (a + b))
        assert post.mean()[row] == pytest.approx(mean, rel=1e-13, abs=0)
        # E(π − m)² for the rounded mean, whose error is far below the variance.
        var = by_arb(post, row, lambda a, b, m=mean: second_moment_around(m, a, b))
        assert post.var()[row] == pytest.approx(var, rel=1e-12, abs=0)


def second_moment_around(m, a, b):
    mean = a / (a + b)
    return mean * (1 - mean) / (a + b + 1) + (mean - arb(m)) ** 2


@settings(max_examples=40)
@given(mixtures(rows=1, most=2.0), st.floats(1e-3, 1 - 1e-3))
def test_density_and_tails_are_those_of_arb(post, p):
    assert post.pdf(p)[0] == pytest.approx(by_arb(post, 0, arb_density(p)), rel=1e-11, abs=1e-290)
    assert post.cdf(p)[0] == pytest.approx(by_arb(post, 0, arb_cdf(p)), rel=1e-11, abs=1e-290)
    assert post.prob_above(p)[0] == pytest.approx(
        by_arb(post, 0, arb_above(p)), rel=1e-11, abs=1e-290
    )


@settings(max_examples=30)
@given(mixtures(rows=1, least=0.0, most=2.0), st.floats(0.0, 1.0))
def test_cdf_is_the_integral_of_the_density(post, p):
    area, _ = integrate.quad(lambda x: post.pdf(x)[0], 0.0, p, epsabs=1e-12, limit=200)
    assert post.cdf(p)[0] == pytest.approx(area, abs=1e-9)


@given(mixtures(), st.floats(0.0, 1.0))
def test_tails_are_complements_within_the_unit_interval(post, p):
    lower, upper = post.cdf(p), post.prob_above(p)
    assert ((lower >= 0.0) & (lower <= 1.0) & (upper >= 0.0) & (upper <= 1.0)).all()
    np.testing.assert_allclose(lower + upper, 1.0, rtol=1e-12)


def test_variance_of_narrow_components_does_not_cancel():
    post = Mixture.of_betas([[0.0, 0.0]], [[4e12, 4e12 + 4e4]], [[4e12, 4e12 - 4e4]])
    within, between = 1 / (4 * 8e12), (4e4 / 8e12 / 2) ** 2
    assert post.var()[0] == pytest.approx(within + between, rel=1e-9, abs=0)


def test_ends_of_the_unit_interval():
    post = Mixture.of_betas([[0.0, 0.0], [0.0, -np.inf]], [[0.5, 2.0]], [[2.0, 2.0]])
    np.testing.assert_array_equal(post.cdf([[-1.0], [0.0], [1.0], [2.0]])[:, 0], [0, 0, 1, 1])
    np.testing.assert_array_equal(post.pdf([[-0.1], [0.0], [1.0]])[:, 0], [0, np.inf, 0])
    np.testing.assert_array_equal(post.ppf([[0.0], [1.0]]), [[0, 0], [1, 1]])


def test_an_absent_component_with_unbounded_density_is_absent():
    post = Mixture.of_betas([[0.0, -np.inf, -1e5]], [[2.0, 0.5, 0.5]], [[2.0, 0.5, 0.5]])
    np.testing.assert_array_equal(post.pdf([[0.0], [1.0]]), [[0.0], [0.0]])


# Quantiles ---------------------------------------------------------------------------------


@settings(max_examples=60)
@given(mixtures(), hnp.arrays(np.float64, (4, 1), elements=st.floats(1e-12, 1 - 1e-12)))
def test_quantiles_have_their_tail_on_either_side(post, q):
    """The tail at the quantile is q, up to the resolution of float64 there."""
    p = post.ppf(q)
    below, above = p * (1 - 1e-12), np.minimum(p * (1 + 1e-12), 1.0)
    assert (post.cdf(below) <= q * (1 + 1e-11)).all()
    assert (post.prob_above(above) <= (1 - q) * (1 + 1e-11)).all()


@settings(max_examples=25)
@given(mixtures(rows=1, least=0.0, most=2.5), st.sampled_from(levels.tolist()))
def test_quantiles_are_those_of_arb(post, q):
    p = post.ppf(q)[0]
    tail = by_arb(post, 0, arb_cdf(p)) if q <= 0.5 else by_arb(post, 0, arb_above(p))
    # In narrow rows, one rounding of p moves the tail by more than 1e-11 of it.
    rounding = post.pdf(p)[0] * np.spacing(p)
    assert tail == pytest.approx(min(q, 1 - q), rel=1e-11, abs=4 * rounding)


@settings(max_examples=50)
@given(mixtures(least=-3.0, most=8.0))
def test_quantiles_grow_with_their_level(post):
    q = np.concatenate([[0.0, 1e-300, 1e-100], levels, [1 - 1e-15, 1.0]])[:, None]
    assert (np.diff(post.ppf(q), axis=0) >= 0.0).all()


@pytest.mark.parametrize("shape", [1e-3, 1e-2, 0.1])
def test_quantiles_nearer_to_an_end_than_any_float(shape):
    post = Mixture.of_betas([[0.0, 0.0]], [[shape, 1.0]], [[1.0, shape]])
    q = np.array([0.01, 0.1, 0.4, 0.5, 0.6, 0.9, 0.99])
    p = post.ppf(q[:, None])[:, 0]
    assert (post.cdf(np.nextafter(p, -1.0)[:, None])[:, 0] <= q * (1 + 1e-11)).all()
    assert (post.cdf(np.nextafter(p, 2.0)[:, None])[:, 0] >= q * (1 - 1e-11)).all()


def test_quantiles_of_narrow_modes_far_apart():
    post = Mixture.of_betas(np.log([[0.25, 0.75]]), [[1e8, 9e8]], [[9e8, 1e8]])
    p = post.ppf([[0.125], [0.625]])
    # Far from the other mode, half of each mode lies below its own median.
    np.testing.assert_allclose(p[0], Beta([1e8], [9e8]).ppf(0.5), rtol=1e-12)
    np.testing.assert_allclose(p[1], Beta([9e8], [1e8]).ppf(0.5), rtol=1e-12)
    gap = post.ppf(0.25)[0]
    assert 0.1 < gap < 0.9


@pytest.mark.parametrize("share", [1e-9, 0.01, 0.04, 0.2, 0.5, 0.99, 1.0 - 2.0**-23])
def test_quantiles_on_the_plateau_between_two_modes(share):
    post = Mixture.of_betas(np.log([[0.25, 0.75]]), [[3e7, 9e8]], [[2.5e8, 5e6]])
    expected = Beta([3e7], [2.5e8]).ppf(share)
    np.testing.assert_allclose(post.ppf(0.25 * share), expected, rtol=1e-12)


class Counted(Beta):
    """Counts how often its tails are computed."""

    def __init__(self, alpha, beta):
        super().__init__(alpha, beta)
        self.times = []

    def _cdf(self, p):
        self.times.append(p.size)
        return super()._cdf(p)

    def _above(self, p):
        self.times.append(p.size)
        return super()._above(p)


@pytest.mark.parametrize("q", [0.025, 0.5, 0.999])
def test_quantiles_take_few_steps(q):
    k = np.arange(200)
    components = [Counted([1.0 + i], [200.0 - i]) for i in k]
    Mixture(-(((k - 60) / 10.0) ** 2), components).ppf(q)
    assert 2 <= len(components[60].times) <= 18


# One component, and rows -------------------------------------------------------------------


@settings(max_examples=50)
@given(
    hnp.arrays(np.float64, 3, elements=st.floats(0.3, 1e4)),
    hnp.arrays(np.float64, 3, elements=st.floats(0.3, 1e4)),
)
def test_a_single_component_is_the_beta(alpha, beta):
    post, plain = Mixture.of_betas([[-5.0]], alpha[:, None], beta[:, None]), Beta(alpha, beta)
    p = np.linspace(0.0, 1.0, 7)[:, None]
    np.testing.assert_array_equal(post.mean(), plain.mean())
    np.testing.assert_allclose(post.var(), plain.var(), rtol=1e-15)
    for name in ("pdf", "cdf", "prob_above"):
        np.testing.assert_array_equal(getattr(post, name)(p), getattr(plain, name)(p))
    q = levels[:, None]
    np.testing.assert_allclose(post.ppf(q), plain.ppf(q), rtol=1e-11, atol=1e-300)


@settings(max_examples=50)
@given(mixtures(), st.floats(0.05, 0.95))
def test_rows_are_independent_and_keep_their_bits(post, p):
    last = len(post) - 1
    chosen = post[[last, 0]]
    for name in ("pdf", "cdf", "prob_above", "ppf"):
        np.testing.assert_array_equal(
            getattr(chosen, name)(p), getattr(post, name)(p)[[last, 0]], err_msg=name
        )
    np.testing.assert_array_equal(chosen.mean(), post.mean()[[last, 0]])
    np.testing.assert_array_equal(chosen.var(), post.var()[[last, 0]])


def test_chosen_rows_are_not_normalised_again():
    rng = np.random.default_rng(2)
    post = Mixture.of_betas(rng.normal(size=(50, 40)), *rng.uniform(1, 30, size=(2, 50, 40)))
    np.testing.assert_array_equal(post[10:].log_weights, post.log_weights[10:])


@given(mixtures(), st.floats(-1e4, 1e4))
def test_weights_are_normalised(post, shift):
    np.testing.assert_allclose(np.exp(post.log_weights).sum(axis=1), 1.0, rtol=1e-14)
    moved = Mixture.of_betas(post.log_weights + shift, *shapes_of(post))
    np.testing.assert_allclose(moved.mean(), post.mean(), rtol=1e-10)


def test_arguments_broadcast():
    post = Mixture.of_betas(np.zeros((3, 1)), [1.0, 2.0], [[1.0], [2.0], [3.0]])
    assert post.log_weights.shape == (3, 2)
    assert [component.alpha.tolist() for component in post.components] == [[1.0] * 3, [2.0] * 3]
    assert [component.beta.tolist() for component in post.components] == [[1.0, 2.0, 3.0]] * 2
    assert post.shape == (3,)
    assert post.cdf(np.full((4, 1), 0.5)).shape == (4, 3)
    assert not post.log_weights.flags.writeable


def test_batches_do_not_show():
    rng = np.random.default_rng(3)
    post = Mixture.of_betas(rng.normal(size=(7, 4)), *rng.uniform(1, 30, size=(2, 7, 4)))
    p = rng.uniform(size=(5, 7))
    whole = post.pdf(p), post.cdf(p), post.ppf(p), post.sample(5, random_state=1)
    post.batch_size = 9
    parts = post.pdf(p), post.cdf(p), post.ppf(p), post.sample(5, random_state=1)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one, other)


def test_many_components():
    k = np.arange(5000)
    post = Mixture.of_betas(stats.binom.logpmf(k, 4999, 0.3)[None], 1.0 + k, 5000.0 - k)
    # Given the success rate 0.3 of the weights, E = (4999 · 0.3 + 1) / 5001.
    assert post.mean()[0] == pytest.approx((4999 * 0.3 + 1) / 5001, rel=1e-12, abs=0)
    q = np.linspace(0.01, 0.99, 9)[:, None]
    np.testing.assert_allclose(post.cdf(post.ppf(q)), q, rtol=1e-11)


# Samples -----------------------------------------------------------------------------------


def test_samples_follow_the_distribution():
    post = Mixture.of_betas(np.log([[0.3, 0.0001, 0.6999], [1.0, 1.0, 1.0]]), [2.0, 5.0, 30.0], 7.0)
    draws = post.sample(20_000, random_state=5)
    assert draws.shape == (20_000, 2)
    for row in range(2):
        fit = stats.kstest(draws[:, row], lambda p, row=row: post[row].cdf(p[:, None])[:, 0])
        assert fit.pvalue > 0.01
    np.testing.assert_array_equal(draws, post.sample(20_000, random_state=5))


@pytest.mark.parametrize("rng", [np.random.default_rng(0), np.random.RandomState(0), 0])
def test_samples_never_come_from_absent_components(rng):
    post = Mixture.of_betas([[-np.inf, 0.0, -np.inf]], [[1.0, 1e9, 1.0]], [[1e9, 1.0, 1e9]])
    assert post.sample((50, 20), random_state=rng).min() > 0.99
    assert post.sample(random_state=0).shape == (1,)


# Bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.0, np.nan]], 1.0, 1.0), "log_weights row 0, column 1: found NaN; numbers below"),
        (([[0.0], [np.inf]], 1.0, 1.0), "log_weights row 1, column 0: found inf"),
        (([[0.0], [-np.inf]], 1.0, 1.0), "log_weights row 1: found -inf only; at least one"),
        (
            ([[0.0, 0.0]], [[1.0, 0.0]], 1.0),
            "alpha row 0, column 1: found 0.0; shapes must be positive and finite",
        ),
        (([[0.0, 0.0]], 1.0, -1.0), "beta: found -1.0; shapes must be positive and finite"),
        (([0.0, 0.0], 1.0, 1.0), r"found shapes \(2,\), \(\) and \(\); they must broadcast to"),
        ((np.zeros((2, 3)), np.ones((3, 2)), 1.0), r"shapes \(2, 3\), \(3, 2\) and \(\)"),
        ((np.zeros((2, 0)), 1.0, 1.0), r"shapes \(2, 0\), \(\) and \(\)"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        Mixture.of_betas(*arguments)


def test_no_rows():
    post = Mixture.of_betas(np.zeros((0, 2)), 1.0, 1.0)
    assert post.mean().shape == post.ppf(0.5).shape == post.sample(random_state=0).shape == (0,)
    assert repr(post) == "<Mixture, shape 0>"
