"""The reference against exact rational arithmetic, Arb, and under invariances."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from flint import arb, arb_poly, ctx
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from betafield import contexts
from betafield.posteriors.beta import Beta
from betafield.posteriors.reference import constant_offset_mixture, exact_mixture

# Edge values, and numbers with exact complements, so that 1 − b is exact.
rates = st.one_of(
    st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 1024).map(lambda n: n / 1024)
) | st.floats(0.0, 1.0, width=32)
shapes = st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.5, 100.0])


@st.composite
def experiments(draw, most=12, highest=3):
    """Draw contexts (t, p + 1), possible outcomes, and a prior."""
    degree, t = draw(st.integers(1, highest)), draw(st.integers(0, most))
    row = st.lists(rates, min_size=degree + 1, max_size=degree + 1)
    context = np.array(draw(st.lists(row, min_size=t, max_size=t))).reshape(t, degree + 1)
    success = np.array(draw(st.lists(st.booleans(), min_size=t, max_size=t)), dtype=bool)
    assume((contexts.likelihood(context, success) > 0).any(axis=1).all())
    return context, success, (draw(shapes), draw(shapes))


def exact_moments(context, success, prior):
    """Return two moments as fractions, by integrals of the likelihood's powers of θ."""
    likelihood = [Fraction(1)]
    for row, happened in zip(context.tolist(), success.tolist(), strict=True):
        b = [Fraction(x) if happened else 1 - Fraction(x) for x in row]
        likelihood = product(likelihood, powers_of(b))
    alpha, beta = (Fraction(x) for x in prior)
    moments = [Fraction(1)]  # E θ^j under the prior
    for j in range(len(likelihood) + 2):
        moments.append(moments[-1] * (alpha + j) / (alpha + beta + j))
    raw = [sum(c * moments[j + m] for j, c in enumerate(likelihood)) for m in range(3)]
    return raw[1] / raw[0], raw[2] / raw[0]


def powers_of(bernstein):
    """Return the coefficients of θ^j in Σ b_k binom(p, k) θ^k (1−θ)^(p−k)."""
    p = len(bernstein) - 1
    result = [Fraction(0)] * (p + 1)
    for k, b in enumerate(bernstein):
        for j in range(p - k + 1):
            result[k + j] += b * comb(p, k) * comb(p - k, j) * (-1) ** j
    return result


def product(x, y):
    result = [Fraction(0)] * (len(x) + len(y) - 1)
    for i, u in enumerate(x):
        for j, v in enumerate(y):
            result[i + j] += u * v
    return result


def assert_same(first, second, rtol=1e-12):
    """Expect two posteriors to agree in moments, and in tails on a grid."""
    np.testing.assert_allclose(first.mean(), second.mean(), rtol=rtol)
    np.testing.assert_allclose(first.var(), second.var(), rtol=10 * rtol)
    grid = np.linspace(0.01, 0.99, 25)[:, None]
    np.testing.assert_allclose(first.cdf(grid), second.cdf(grid), rtol=10 * rtol, atol=1e-300)


@pytest.mark.parametrize("other", [(2.0, 3.001), (2.001, 3.0015)], ids=["mean", "spread"])
def test_other_distributions_are_told_apart(other):
    assert_same(Beta([2.0], [3.0]), Beta([2.0], [3.0]))
    with pytest.raises(AssertionError):
        assert_same(Beta([2.0], [3.0]), Beta([other[0]], [other[1]]))


def one_row(alpha, beta):
    return Beta([alpha], [beta])


@settings(max_examples=200)
@given(experiments())
def test_moments_are_those_of_exact_arithmetic(experiment):
    post = exact_mixture(*experiment)
    first, second = exact_moments(*experiment)
    assert post.mean()[0] == pytest.approx(float(first), rel=1e-13, abs=0)
    assert post.var()[0] == pytest.approx(float(second - first**2), rel=1e-12, abs=0)


def test_single_trial_puts_its_weights_with_the_right_components():
    # As printed in the paper, with the weights exchanged, the mean would be 0.3833.
    post = exact_mixture([contexts.affine(0.5, 0.2)], [True], prior=(2, 3))
    assert post.mean()[0] == pytest.approx(0.45, rel=1e-15, abs=0)
    # w₀ ∝ lo β = 0.6 belongs to Beta(2, 4), w₁ ∝ hi α = 1.4 to Beta(3, 3).
    np.testing.assert_allclose(np.exp(post.log_weights), [[0.3, 0.7]], rtol=1e-15)
    np.testing.assert_array_equal([post.alpha[0], post.beta[0]], [[2, 3], [4, 3]])


@given(experiments(), st.randoms(use_true_random=False))
def test_order_of_trials_does_not_matter(experiment, random):
    context, success, prior = experiment
    order = list(range(len(success)))
    random.shuffle(order)
    shuffled = exact_mixture(context[order], success[order], prior)
    assert_same(shuffled, exact_mixture(context, success, prior))


@given(experiments())
def test_naming_failures_mirrors_the_posterior(experiment):
    context, success, (alpha, beta) = experiment
    # The complement of a rate below 2^-53 is 1 in float64.
    assume(((context == 0.0) | (context > 1e-3)).all())
    post = exact_mixture(context, success, (alpha, beta))
    other = exact_mixture(contexts.mirrored(context), ~success, (beta, alpha))
    np.testing.assert_array_equal(other.alpha, post.beta[:, ::-1])
    np.testing.assert_allclose(
        np.exp(other.log_weights), np.exp(post.log_weights[:, ::-1]), rtol=1e-11, atol=1e-300
    )


@given(experiments(), st.integers(1, 3))
def test_degree_elevation_changes_nothing(experiment, more):
    context, success, prior = experiment
    raised = contexts.elevate(context, context.shape[1] - 1 + more)
    assert_same(exact_mixture(raised, success, prior), exact_mixture(context, success, prior))


@given(st.lists(st.booleans(), max_size=60), shapes, shapes)
def test_undistorted_trials_give_exactly_the_beta(success, alpha, beta):
    post = exact_mixture([0.0, 1.0], success, (alpha, beta))
    present = np.isfinite(post.log_weights)
    wins = sum(success)
    assert post.log_weights[present] == [0.0]
    assert post.alpha[present] == [alpha + wins]
    assert post.beta[present] == [beta + len(success) - wins]
    assert post.mean() == one_row(alpha + wins, beta + len(success) - wins).mean()


@given(st.lists(st.tuples(rates, st.booleans()), max_size=30), shapes, shapes)
def test_gain_zero_gives_exactly_the_prior(trials, alpha, beta):
    possible = [(rate, won) for rate, won in trials if rate != (0.0 if won else 1.0)]
    context = np.array([[rate, rate] for rate, _ in possible]).reshape(-1, 2)
    post = exact_mixture(context, [won for _, won in possible], (alpha, beta))
    assert (post.alpha, post.beta, post.log_weights) == ([[alpha]], [[beta]], [[0.0]])


def test_no_trials_give_the_prior():
    post = exact_mixture(np.empty((0, 2)), [], prior=(2, 5))
    assert_same(post, one_row(2.0, 5.0))


# Thousands of trials ----------------------------------------------------------------------


def arb_moments(context, success, prior, bits=256):
    """Return mean and variance by Arb, from the product of all likelihoods as one polynomial."""
    ctx.prec = bits
    rows = [
        [arb(b) if happened else 1 - arb(b) for b in row]
        for row, happened in zip(context.tolist(), success.tolist(), strict=True)
    ]
    # Π (lo (1−θ) + hi θ) = Σ e_i θ^i (1−θ)^(t−i), with e_i the coefficients of Π (lo + hi z).
    e, t = multiplied([arb_poly(row) for row in rows]), len(rows)
    alpha, beta = (arb(x) for x in prior)
    raw, term = [arb(0)] * 3, arb(1)  # term: B(α+i, β+t−i) up to a common factor
    for i in range(t + 1):
        moment = e[i] * term
        for m in range(3):
            raw[m] += moment
            moment *= (alpha + i + m) / (alpha + beta + t + m)
        if i < t:
            term *= (alpha + i) / (beta + t - i - 1)
    mean = raw[1] / raw[0]
    return float(mean), float(raw[2] / raw[0] - mean * mean)


def multiplied(factors):
    while len(factors) > 1:
        pairs = zip(factors[::2], factors[1::2], strict=False)
        factors = [x * y for x, y in pairs] + factors[len(factors) // 2 * 2 :]
    return factors[0]


def edges(rng, t):
    """Return affine contexts of all kinds: B = 0, A + B = 1, A = 0, A < 0, and any."""
    low, high = rng.uniform(size=(2, t))
    kind = rng.integers(5, size=t)
    low = np.select([kind == 0], [0.0], low)
    high = np.select([kind == 1, kind == 2, kind == 3], [1.0, low, low * high], high)
    return np.column_stack([low, high])


@pytest.mark.long
@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.3, 7.0)])
@pytest.mark.parametrize(
    "make",
    [
        edges,
        lambda rng, t: np.column_stack([np.zeros(t), rng.uniform(size=t)]),
        lambda rng, t: np.column_stack([rng.uniform(size=t), np.ones(t)]),
        lambda rng, t: np.column_stack([np.ones(t), rng.uniform(size=t)]),
    ],
    ids=["all kinds", "B = 0", "A + B = 1", "A < 0"],
)
@pytest.mark.sampled
def test_stable_at_thousands_of_trials(make, prior):
    rng, t = np.random.default_rng(7), 5000 if prior == (1.0, 1.0) else 500
    context = make(rng, t)
    success = rng.uniform(size=t) < contexts.probability(context, 0.2)
    post = exact_mixture(context, success, prior)
    mean, var = arb_moments(context, success, prior)
    assert post.mean()[0] == pytest.approx(mean, rel=1e-12, abs=0)
    assert post.var()[0] == pytest.approx(var, rel=1e-12, abs=0)


def test_far_tails_survive_until_they_matter():
    """A thousand successes, then four thousand failures: the successes were background.

    That none of the first thousand was more than background has a weight of 0.3^1000 = 1e-523
    after those trials, and the largest of all weights in the end.
    """
    success = np.arange(5000) < 1000
    context = np.tile([0.3, 1.0], (5000, 1))
    post = exact_mixture(context, success)
    assert post.log_weights[0].argmax() == 0
    mean, var = arb_moments(context, success, (1.0, 1.0))
    np.testing.assert_allclose([post.mean()[0], post.var()[0]], [mean, var], rtol=1e-12)


def test_tiny_rates_are_as_good_as_any():
    """Sixty successes of probability 1e-30 π: only their number matters."""
    success = np.arange(80) < 60
    context = np.where(success[:, None], [0.0, 1e-30], [0.0, 1.0])
    assert_same(exact_mixture(context, success), one_row(61.0, 21.0))


# The closed form --------------------------------------------------------------------------


@given(rates, st.integers(0, 60), st.integers(0, 60), shapes, shapes)
@example(5e-324, 40, 20, 1.0, 1.0)
@example(0.0, 40, 20, 0.5, 2.0)
@example(1.0, 40, 0, 0.5, 2.0)
def test_constant_offset_is_the_recursion(offset, wins, losses, alpha, beta):
    assume(offset < 1.0 or not losses)
    post = constant_offset_mixture(offset, wins, wins + losses, (alpha, beta))
    success = np.arange(wins + losses) < wins
    assert_same(post, exact_mixture(contexts.background(offset), success, (alpha, beta)))


def test_constant_offset_zero_and_one():
    impossible = constant_offset_mixture(0.0, 7, 10, (2, 3))
    assert impossible.mean() == one_row(9.0, 6.0).mean()
    assert np.isfinite(impossible.log_weights).sum() == 1
    certain = constant_offset_mixture(1.0, 10, 10, (2, 3))
    assert (certain.alpha, certain.beta) == ([[2.0]], [[3.0]])


def test_constant_offset_of_many_trials():
    t, wins, offset = 1_000_000, 450_000, 0.3
    post = constant_offset_mixture(offset, wins, t)
    # Under a uniform prior q = B + (1 − B) π is a Beta(S+1, t−S+1) truncated to [B, 1]; all but
    # 1e-300 of it is above 0.3, so its moments are those of the Beta.
    whole = one_row(wins + 1.0, t - wins + 1.0)
    assert post.mean()[0] == pytest.approx(
        (whole.mean()[0] - offset) / (1 - offset), rel=1e-13, abs=0
    )
    assert post.std()[0] == pytest.approx(whole.std()[0] / (1 - offset), rel=1e-12, abs=0)


# Bad input --------------------------------------------------------------------------------


def test_impossible_outcomes_name_the_row():
    context = [[0.2, 0.7], [0.0, 0.0], [1.0, 1.0]]
    with pytest.raises(ValueError, match=r"context row 1: found \[0.*prob.* is 0 .*a success"):
        exact_mixture(context, [True, True, True])
    with pytest.raises(ValueError, match=r"context row 2: found \[1.*prob.* is 1 .*a failure"):
        exact_mixture(context, [True, False, False])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.2, 1.2]], [True]), r"context row 0, column 1 \(success probability at π = 1\)"),
        (([[0.2, 1.0]], [True, False]), "success: found 2 rows where context has shape"),
        (([0.2, 1.0], [2]), "success row 0: found 2.0; True or False"),
        (([0.2, 1.0], [True], (0, 1)), "prior: found"),
        (([0.2, 1.0], np.ma.array([1, 0], mask=[0, 1])), "success row 1: found a masked value"),
    ],
)
def test_bad_arguments_of_the_recursion(arguments, message):
    with pytest.raises(ValueError, match=message):
        exact_mixture(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", 1, 2), "offset: found 'a'"),
        ((0.5, None, 2), "successes: found None"),
        ((0.5, 1, 10**30), "trials: found 10"),
        ((0.5, 1.0, 2), "successes: found 1.0"),
        ((0.5, 1, 2, None), "prior: "),
        ((0.5, 1, 2, (1.0, "1")), "prior row 1: found '1'"),
        ((0.5, 1, 2, (1.0,)), "prior: found shape"),
        ((1.5, 1, 2), "offset: found 1.5"),
        ((float("nan"), 1, 2), "offset: found NaN"),
        ((0.5, 3, 2), "successes: found 3; a whole number from 0 to 2"),
        ((0.5, -1, 2), "successes: found -1; a whole number from 0 to 2"),
        ((1.0, 1, 2), "successes: found 1; under an offset of 1 all of 2 trials"),
    ],
)
def test_bad_arguments_of_the_closed_form(arguments, message):
    with pytest.raises(ValueError, match=message):
        constant_offset_mixture(*arguments)
