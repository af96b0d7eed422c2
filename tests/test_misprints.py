"""The paper's misprints: the printed formulas are wrong, and those computed here are right.

Bayes' rule decides: the posterior of θ = π(x) is proportional to the prior times the probability of
every outcome, Aθ + B for a success and 1 − Aθ − B for a failure, integrated by quadrature.
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import integrate

from betafield import contexts
from betafield.posteriors import Mixture, exact_mixture

shapes = st.floats(1.0, 8.0)


@st.composite
def gains_and_offsets(draw):
    """Draw A and B with B and A + B within [0, 1]; A may be negative."""
    low, high = draw(st.floats(0.0, 1.0)), draw(st.floats(0.0, 1.0))
    return high - low, low


def bayes(trials, alpha, beta):
    """Return mean and variance of θ after trials (success, A, B), by quadrature."""

    def density(theta):
        value = theta ** (alpha - 1.0) * (1.0 - theta) ** (beta - 1.0)
        for success, gain, offset in trials:
            chance = gain * theta + offset
            value *= chance if success else 1.0 - chance
        return value

    moments = [
        integrate.quad(lambda theta, k=k: theta**k * density(theta), 0.0, 1.0, epsabs=1e-13)[0]
        for k in range(3)
    ]
    mean = moments[1] / moments[0]
    return mean, moments[2] / moments[0] - mean**2


def ends(success, gain, offset):
    """Return lo and hi: the probability of the outcome at θ = 0 and at θ = 1."""
    low, high = offset, gain + offset
    return (low, high) if success else (1.0 - low, 1.0 - high)


def mean_of(weights, alphas, betas):
    """Return the mean of a mixture of Betas with these weights, normalised."""
    weights, alphas, betas = (np.asarray(v, dtype=float) for v in (weights, alphas, betas))
    return float(weights / weights.sum() @ (alphas / (alphas + betas)))


def mended_weights(trials, alpha, beta):
    """Return C_i' ∝ lo C_i (β + n − i) + hi C_(i−1) (α + i − 1), lo and hi of the n-th trial."""
    weights = np.ones(1)
    for n, trial in enumerate(trials):
        low, high = ends(*trial)
        i = np.arange(n + 1)
        stays, rises = low * weights * (beta + n - i), high * weights * (alpha + i)
        weights = np.append(stays, 0.0) + np.append(0.0, rises)
        weights /= weights.sum()
    return weights


def printed_weights(trials, alpha, beta):
    """Return the same recursion with A_i and B_i as printed, i being the component's index.

    Trials are numbered from 1 as in the paper; A_0 and B_0, which it lacks, are taken from the
    first trial. Only the outcome is that of the n-th trial.
    """
    weights = np.ones(1)
    for n, (success, _, _) in enumerate(trials):
        new = np.zeros(n + 2)
        for i in range(n + 2):
            _, gain, offset = trials[max(i, 1) - 1]
            low, high = ends(success, gain, offset)
            stays = weights[i] * (beta + n - i) if i <= n else 0.0
            rises = weights[i - 1] * (alpha + i - 1) if i else 0.0
            new[i] = low * stays + high * rises
        weights = new / new.sum()
    return weights


# One trial: the two weights are exchanged between the components.


def test_after_one_trial_the_first_weight_belongs_to_the_failures_component():
    """C₀ ∝ Bβ is printed with Beta(α+1, β); it belongs to Beta(α, β+1).

    With α = 2, β = 3, A = ½, B = ⅕ and a success the mean is 0.45; as printed it would be 0.3833.
    """
    alpha, beta, gain, offset = 2.0, 3.0, 0.5, 0.2
    first, second = offset * beta, (gain + offset) * alpha
    truth, _ = bayes([(True, gain, offset)], alpha, beta)
    assert truth == pytest.approx(0.45)
    assert mean_of([first, second], [alpha, alpha + 1], [beta + 1, beta]) == pytest.approx(truth)
    printed = mean_of([first, second], [alpha + 1, alpha], [beta, beta + 1])
    assert printed == pytest.approx(23 / 60)
    assert exact_mixture([[0.2, 0.7]], [True], (2, 3)).mean()[0] == pytest.approx(truth)


def test_as_printed_a_plain_success_would_lower_the_belief():
    """Without distortion (A = 1, B = 0) a success gives Beta(α+1, β); Beta(α, β+1) is printed."""
    printed = mean_of([0.0, 1.0], [3.0, 2.0], [3.0, 4.0])
    truth, _ = bayes([(True, 1.0, 0.0)], 2.0, 3.0)
    assert truth == pytest.approx(3 / 6)
    assert printed < 2 / 5 < truth


@given(distortion=gains_and_offsets(), success=st.booleans(), alpha=shapes, beta=shapes)
def test_after_one_trial_of_any_kind(distortion, success, alpha, beta):
    trial = (success, *distortion)
    low, high = ends(*trial)
    assume(max(low, high) > 1e-3)
    truth, _ = bayes([trial], alpha, beta)
    weights = [low * beta, high * alpha]
    mended = mean_of(weights, [alpha, alpha + 1], [beta + 1, beta])
    printed = mean_of(weights, [alpha + 1, alpha], [beta, beta + 1])
    assert mended == pytest.approx(truth, rel=1e-8)
    # The two coincide only if both weights are equal.
    share = low * beta / (low * beta + high * alpha)
    assert printed - truth == pytest.approx((2 * share - 1) / (alpha + beta + 1), abs=1e-8)


# Many trials: A and B belong to the trial, not to the component.

TRIALS = [(True, 0.5, 0.2), (False, 0.9, 0.0), (True, 0.2, 0.7), (False, -0.6, 0.8)]


def test_the_recursion_takes_gain_and_offset_of_the_new_trial():
    """The printed recursion has A_i and B_i, with i the index of the mixture's component."""
    alpha, beta, t = 2.0, 3.0, len(TRIALS)
    components = alpha + np.arange(t + 1), beta + t - np.arange(t + 1)
    mended, printed = (
        mean_of(weights(TRIALS, alpha, beta), *components)
        for weights in (mended_weights, printed_weights)
    )
    truth, variance = bayes(TRIALS, alpha, beta)
    assert mended == pytest.approx(truth, rel=1e-10)
    assert abs(printed - truth) > 0.01
    won, gain, offset = zip(*TRIALS, strict=True)
    ours = exact_mixture(contexts.affine(gain, offset), won, (alpha, beta))
    assert ours.mean()[0] == pytest.approx(truth, rel=1e-10)
    assert ours.var()[0] == pytest.approx(variance, rel=1e-8)


def test_as_printed_the_order_of_trials_would_matter():
    """Likelihoods multiply, so the posterior cannot depend on the order of the trials."""
    components = 2.0 + np.arange(5), 7.0 - np.arange(5)
    there, back = TRIALS, TRIALS[::-1]
    mended = [mean_of(mended_weights(trials, 2.0, 3.0), *components) for trials in (there, back)]
    printed = [mean_of(printed_weights(trials, 2.0, 3.0), *components) for trials in (there, back)]
    assert mended[0] == pytest.approx(mended[1], rel=1e-12)
    assert abs(printed[0] - printed[1]) > 0.01


@given(
    trials=st.lists(st.tuples(st.booleans(), gains_and_offsets()), min_size=1, max_size=6),
    alpha=shapes,
    beta=shapes,
)
def test_the_mended_recursion_on_any_trials(trials, alpha, beta):
    flat = [(success, *distortion) for success, distortion in trials]
    assume(all(max(ends(*trial)) > 0.05 for trial in flat))
    t = len(flat)
    components = alpha + np.arange(t + 1), beta + t - np.arange(t + 1)
    truth, _ = bayes(flat, alpha, beta)
    assert mean_of(mended_weights(flat, alpha, beta), *components) == pytest.approx(truth, rel=1e-7)


# The general theorem: every component counts one more trial.


def test_components_after_another_trial_have_one_more_in_all():
    """Beta(α+i, β+n−i) is printed after n + 1 trials; it is Beta(α+i, β+n+1−i).

    As printed, the last component, i = n + 1, would have the second shape β − 1, which is invalid
    for β ≤ 1.
    """
    alpha, beta, t = 2.0, 3.0, len(TRIALS)
    i = np.arange(t + 1)
    weights = mended_weights(TRIALS, alpha, beta)
    truth, variance = bayes(TRIALS, alpha, beta)
    mended = Mixture.of_betas(np.log(weights)[None], alpha + i, beta + t - i)
    printed = Mixture.of_betas(np.log(weights)[None], alpha + i, beta + t - 1 - i)
    assert mended.mean()[0] == pytest.approx(truth, rel=1e-10)
    assert mended.var()[0] == pytest.approx(variance, rel=1e-8)
    assert abs(printed.mean()[0] - truth) > 0.03
    with pytest.raises(ValueError, match="must be positive"):
        Mixture.of_betas(np.log(weights)[None], alpha + i, 1.0 + t - 1 - i)


# Certainty: the condition is on π(x_i) = 1.


@given(offset=st.floats(0.0, 1.0))
def test_what_is_certain_stays_certain_where_gain_and_offset_add_up_to_one(offset):
    """ "If π(x_i), then A_i π(x_i) + B_i = 1" lacks "= 1" after its first π(x_i).

    With A + B = 1 a trial of a certain event succeeds with certainty, whatever B is. A trial of any
    other event does not, unless B = 1: without "= 1" the condition would allow no other B.
    """
    context = contexts.affine(gain=1.0 - offset, offset=offset)
    assert contexts.probability(context, 1.0) == 1.0
    for chance in (0.0, 0.5, 0.9):
        # 1 − Aπ − B = (1 − B)(1 − π).
        missed = 1.0 - contexts.probability(context, chance)
        assert missed == pytest.approx((1.0 - offset) * (1.0 - chance), abs=1e-15)


@given(distortion=gains_and_offsets())
def test_certainty_stays_only_where_gain_and_offset_add_up_to_one(distortion):
    """The corrected condition is equivalent to A + B = 1, as the paper says."""
    gain, offset = distortion
    assert contexts.probability(contexts.affine(gain, offset), 1.0) == gain + offset


def test_a_failure_then_leaves_no_belief_in_certainty():
    """With A + B = 1, a failure proves by Bayes' rule that π(x) < 1; with less it does not."""
    for offset in (0.0, 0.3, 0.9):
        kept = exact_mixture([contexts.affine(1.0 - offset, offset)], [False])
        assert kept.pdf(1.0)[0] == 0.0
    assert exact_mixture([contexts.affine(0.5, 0.3)], [False]).pdf(1.0)[0] > 0.1


# The number of trials in a window.


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_share_of_trials_in_a_window_depends_on_where_it_is(d):
    """D_x ~ Bin(t, Δ^d) is printed for every x; it holds at corners.

    Inside, a window is twice as wide along every axis: Bin(t, (2Δ)^d). The printed formula is thus
    a lower bound, which is what the proof needs.
    """
    t, runs, width = 500, 200, 0.2
    points = np.random.default_rng(d).uniform(size=(runs, t, d))
    inside = lambda x: (np.abs(points - x).max(axis=2) <= width).sum(axis=1)
    for x, share in ((0.0, width**d), (1.0, width**d), (0.5, (2 * width) ** d)):
        held = inside(np.full(d, x))
        error = np.sqrt(share * (1.0 - share) / (t * runs))
        assert held.mean() / t == pytest.approx(share, abs=4.0 * error)
        # The variance over runs is binomial too, t v (1 − v), to within four standard errors.
        assert held.var() == pytest.approx(t * share * (1.0 - share), rel=4.0 * np.sqrt(2.0 / runs))
    middle = inside(np.full(d, 0.5)).mean() / t
    assert middle / width**d == pytest.approx(2.0**d, rel=0.05)
    edge = np.r_[0.0, np.full(d - 1, 0.5)]
    assert inside(edge).mean() / t == pytest.approx(width * (2 * width) ** (d - 1), rel=0.05)
